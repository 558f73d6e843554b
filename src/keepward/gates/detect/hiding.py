"""Ways to keep text out of a reader's sight: invisible letters, direction controls, words written together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from keepward.gates.detect.engine import Haystack, Rule
from keepward.gates.detect.finding import Certainty, Finding

#: Override wording with every separator removed.
TIGHT: tuple[Rule, ...] = (
    Rule(
        name="disguised_order",
        literals=("instruction", "prompt", "rules", "guideline", "directive"),
        pattern=(
            r"(?i)(?:ignore|disregard|forget|override|bypass)(?:all|any|the|of|your|my|every|these|those)*"
            r"(?:previous|prior|above|earlier|preceding|system|original|initial|safety|your)(?:system|safety|given|user)?"
            r"(?:instructions?|prompts?|rules|guidelines|directives|commands|orders)"
            r"|(?:reveal|show|print|output|repeat)(?:me|us)?(?:your|the)(?:hidden|secret|full|initial)?systemprompt"
            r"|(?:donot|dont|never)(?:tell|inform|notify|alert)(?:the|your)(?:user|owner)"
        ),
        bounded=False,
    ),
)

_BIDI = r"[\x{202A}-\x{202E}\x{2066}-\x{2069}]"
_TAGS = r"[\x{E0001}\x{E0020}-\x{E007F}]{2,}"
_FLAG = "\U0001f3f4"
_SELECTORS = r"[\x{FE00}-\x{FE0F}\x{E0100}-\x{E01EF}]{3,}"
_INSIDE = r"[A-Za-z][\x{200B}\x{200C}\x{200D}\x{2060}-\x{2064}\x{FEFF}\x{180E}\x{00AD}\x{034F}]+[A-Za-z]"
_RUN = r"[\x{200B}\x{200C}\x{200D}\x{2060}-\x{2064}\x{FEFF}\x{180E}\x{2800}\x{3164}\x{115F}\x{1160}]{6,}"


def hidden_characters(text: str) -> Iterator[Finding]:
    """Yield runs of characters that hide text or turn its direction."""
    if text.isascii():
        return
    hay = Haystack(text)
    for start, end in islice(hay.spans(_TAGS), 100):
        # Flags of England, Scotland and Wales are a black flag and six tags.
        if not (start and text[start - 1] == _FLAG and end - start <= 7):
            yield Finding(detector="invisible_text", start=start, end=end)
    for start, end in islice(hay.spans(_SELECTORS), 100):
        yield Finding(detector="invisible_text", start=start, end=end)
    for start, end in islice(hay.spans(_RUN), 100):
        yield Finding(detector="invisible_text", start=start, end=end)
    # Three are enough to tell hiding from a stray soft hyphen.
    inside = [(start + 1, end - 1) for start, end in islice(hay.spans(_INSIDE), 3)]
    if len(inside) >= 3:
        yield Finding(detector="invisible_text", start=inside[0][0], end=inside[-1][1], certainty="certain")
    elif inside and any(text[start] != "\u00ad" for start, _ in inside):
        yield Finding(detector="invisible_text", start=inside[0][0], end=inside[-1][1], certainty="likely")
    turned = [start for start, _ in islice(hay.spans(_BIDI), 100)]
    if turned:
        right_to_left = any("\u0590" <= char <= "\u08ff" for char in text)
        certainty: Certainty = "likely" if right_to_left else "certain"
        yield Finding(detector="bidi_control", start=turned[0], end=turned[-1] + 1, certainty=certainty)
