"""What of a memory is analysed and what is embedded, with the dates that it speaks of.

Invariants
(1) Pure: no clock; the same memory gives the same texts for ever; whoever changes a rule, here, in what is passed in
    (the question that a turn answers), in how MiniLM is computed or in what marks a text (`services.features`), gives
    `EMBEDDING_VERSION` the next number, and what was written before is embedded and marked anew.
(2) What a named speaker says is embedded in the third person. What speaks of its subject as "I" or "the user" is
    embedded as said, and once more with the subject's name.
(3) There is at least one unit for a text that holds anything but white space, and at most `MAX_PASSAGES`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from keepward.core.patterns import lazy_regex
from keepward.retrieval.persons import third_person, with_name
from keepward.retrieval.preferences import preference_topic
from keepward.retrieval.roles import ROLES, USER
from keepward.retrieval.time_expressions import day_of, phrase, resolve
from keepward.retrieval.tokenizer import terms

#: By what rules texts are embedded, the packaged model's way of computing among them; it stands beside the embedder's
#: name with every vector.
EMBEDDING_VERSION: Final = "5"
#: Begins what stands in place of it where a vector came with its memory: no change of rules makes that anew, and what
#: else ranks the memory is by this recipe.
PROVIDED_PREFIX: Final = "given"
PROVIDED: Final = f"{PROVIDED_PREFIX} {EMBEDDING_VERSION}"
CURRENT_VERSIONS: Final = (EMBEDDING_VERSION, PROVIDED)

MAX_PASSAGES: Final = 16
#: A text of no person that is longer, in characters, has a vector of its opening in place of one of the whole: its
#: parts say the rest, and a model that reads 256 tokens sees no whole of it anyway.
_LONG: Final = 600
_OPENING: Final = 275
_NO_PERSON: Final = ROLES.union(("system", "tool"))
_SENTENCE: Final = lazy_regex(r"[^.!?。！？\n]+(?:[.!?。！？]+(?=\s|$|[^\x00-\x7f])|\n+|$)")

#: Of a sentence that is embedded by itself: behind a name, and of a user; a shorter question tells nothing.
_TERMS_OF_A_SENTENCE: Final = 4
_TERMS_OF_A_USER_SENTENCE: Final = 2
_TERMS_OF_A_TELLING_QUESTION: Final = 10
_TERMS_OF_A_SHORT_TURN: Final = 10
_TERMS_OF_A_CHUNK: Final = 10


def speaker_name(speaker: str | None) -> str | None:
    """The speaker where it is a name, None where it is a role or nothing."""
    if speaker is None or not speaker.strip() or speaker.strip().casefold() in _NO_PERSON:
        return None
    return speaker.strip()


def is_user_text(speaker: str | None) -> bool:
    """Whether a text is the user's: what a user said, or what nobody is named for."""
    return speaker is None or not speaker.strip() or speaker.strip().casefold() in USER


def indexed_metadata(
    text: str,
    *,
    speaker: str | None = None,
    created_at: int | None = None,
    key: str | None = None,
    tags: Sequence[str] = (),
    category: str | None = None,
) -> str:
    """What is analysed with a text, a line each: key, category, tags, named speaker, its date, dates it speaks of."""
    head = [part for part in (key, category, *tags, speaker_name(speaker)) if part]
    tail = [] if created_at is None else [phrase(day_of(created_at)), *resolve(text, created_at)]
    return "\n".join((*head, *tail))


def sentences(text: str) -> list[str]:
    """Sentences in order, white space trimmed; a text without sentence marks is one."""
    return [s for m in _SENTENCE.finditer(text) if (s := m.group().strip())]


def last_question(previous: str | None) -> str | None:
    """The last sentence of the previous turn that asks something, None where none does."""
    asked = [s for s in sentences(previous or "") if is_question(s)]
    return asked[-1] if asked else None


def _informative_sentences(parts: list[str], least: int) -> list[str]:
    """Sentences of so many terms; questions only where they are long enough to tell something as well."""
    return [s for s in parts if len(terms(s)) >= (_TERMS_OF_A_TELLING_QUESTION if is_question(s) else least)]


def is_question(text: str) -> bool:
    """Whether a text ends in a question; white space behind it is one more character."""
    return text.endswith(("?", "？"))


def _joined(parts: list[str]) -> list[str]:
    """Join neighbouring sentences into chunks of at least `_TERMS_OF_A_CHUNK` terms."""
    chunks: list[str] = []
    held: list[str] = []
    count = 0
    for part in parts:
        held.append(part)
        count += len(terms(part))
        if count >= _TERMS_OF_A_CHUNK:
            chunks.append(" ".join(held))
            held, count = [], 0
    if held:
        # A short rest alone would be a unit that says little and wins by luck.
        if chunks and count < _TERMS_OF_A_CHUNK // 2:
            held = [chunks.pop(), *held]
        chunks.append(" ".join(held))
    return chunks


def _grouped(parts: list[str], most: int) -> list[str]:
    """Join neighbours until there are at most `most` groups of nearly equal number."""
    if len(parts) <= most:
        return parts
    cuts = [len(parts) * n // most for n in range(most + 1)]
    return [" ".join(parts[a:b]) for a, b in pairwise(cuts)]


def sentence_passages(
    text: str,
    *,
    speaker: str | None = None,
    created_at: int | None = None,
    question: str | None = None,
    subject: str | None = None,
) -> list[str]:
    """Texts to embed: the whole, or of a long text of no person its opening, then parts where it is long enough.

    `question` is the text of the previous turn of the session, or None; only its last question is used, in
    front of the whole. What a person says is parted into sentences that tell something: behind a named speaker in
    the third person, so that each stands on its own. What an assistant or a document says is parted into runs of
    sentences of ten terms or more, for there a sentence alone has lost what it is about. A key, tags and a category
    are words of their own, see `around`, and no part of what is embedded: equal texts mean the same under any name.
    """
    name = speaker_name(speaker)

    def told(part: str) -> str:
        return f"{name}: {third_person(part, name)}" if name else part

    asked = last_question(question)
    whole = told(text.strip())
    split = sentences(text)
    seen: int | None = None
    if name:
        parts = _informative_sentences(split, _TERMS_OF_A_SENTENCE) if len(terms(text)) > _TERMS_OF_A_SHORT_TURN else []
    elif speaker is not None and speaker.strip() and is_user_text(speaker):
        parts = _informative_sentences(split, _TERMS_OF_A_USER_SENTENCE)
    else:
        runs = _joined(split)
        parts = runs if len(runs) > 1 else []
        if parts and len(text) > _LONG:
            seen = _OPENING
    units = [(f"{asked} {whole}" if asked else whole)[:seen]]
    if len(split) > 1:
        units.extend(told(part) for part in _grouped(parts, MAX_PASSAGES - 1))
    elif is_user_text(speaker) and (liked := preference_topic(text)):
        # Preferences are alike in their wording. Their subject is what a request is like.
        units.append(liked)
    if subject and is_user_text(speaker) and (said := with_name(text.strip()[:_LONG], subject)):
        units = [*units[: MAX_PASSAGES - 1], said]
    return [u for u in dict.fromkeys(units) if u.strip()]


def field_passages(text: str) -> list[str]:
    """Texts to embed of what a program holds, a field a line: the whole, then each field by itself."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return list(dict.fromkeys([text.strip(), *_grouped(lines, MAX_PASSAGES - 1)])) if lines else []
