"""What of a memory is analysed and what is embedded.

Invariants
(1) pure: the same memory gives the same texts for ever; a change of rules needs a reindex.
(2) only a named speaker is rewritten to the third person; "I" in a user-and-assistant chat stays "I".
(3) there is at least one unit for a text that holds anything but white space, and at most `MOST_UNITS`.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from keepward.retrieval.analyze import terms
from keepward.retrieval.times import day_of, phrase, resolve

MOST_UNITS: Final = 16
_ROLES: Final = frozenset(["user", "assistant", "system", "tool", "agent", "human", "ai", "bot"])
_SENTENCE: Final = re.compile(r"[^.!?。！？\n]+(?:[.!?。！？]+(?=\s|$|[^\x00-\x7f])|\n+|$)")

_TERMS_OF_A_SENTENCE: Final = 4
_TERMS_OF_A_SHORT_TURN: Final = 10
_TERMS_OF_A_CHUNK: Final = 10
_FIRST_PERSON: Final = tuple(
    (re.compile(rf"\b(?:{pattern})\b"), form)
    for pattern, form in (
        ("I'm|I am", "{} is"),
        ("I've|I have", "{} has"),
        ("I'd", "{} would"),
        ("I'll", "{} will"),
        ("I", "{}"),
        ("[Mm]y", "{}'s"),
        ("[Mm]ine", "{}'s"),
        ("[Mm]e|[Mm]yself", "{}"),
    )
)


def named(speaker: str | None) -> str | None:
    """The speaker where it is a name, None where it is a role or nothing."""
    if speaker is None or not speaker.strip() or speaker.strip().casefold() in _ROLES:
        return None
    return speaker.strip()


def indexed_text(
    text: str,
    *,
    speaker: str | None = None,
    created_at: int | None = None,
    key: str | None = None,
    tags: Sequence[str] = (),
    category: str | None = None,
) -> str:
    """The text to analyse: key, category, tags, named speaker, text, its date, and the dates it speaks of."""
    head = [part for part in (key, category, *tags, named(speaker)) if part]
    tail = [] if created_at is None else [phrase(day_of(created_at)), *resolve(text, created_at)]
    return "\n".join((*head, text, *tail))


def sentences(text: str) -> list[str]:
    """Sentences in order, white space trimmed; a text without sentence marks is one."""
    return [s for m in _SENTENCE.finditer(text) if (s := m.group().strip())]


def third_person(text: str, name: str) -> str:
    """Rewrite English "I", "my", "me" to the name, with the verb forms that change most often."""
    text = text.replace("’", "'")
    for pattern, form in _FIRST_PERSON:
        text = pattern.sub(lambda _, form=form: form.format(name), text)  # type: ignore[misc]
    return text


def question_of(previous: str | None) -> str | None:
    """The last sentence of the previous turn that asks something, None where none does."""
    asked = [s for s in sentences(previous or "") if s.endswith(("?", "？"))]
    return asked[-1] if asked else None


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


def sentence_units(
    text: str,
    *,
    speaker: str | None = None,
    created_at: int | None = None,
    question: str | None = None,
    key: str | None = None,
    tags: Sequence[str] = (),
    category: str | None = None,
    kind: str | None = None,
) -> list[str]:
    """Texts to embed: the whole, then parts of it where it is long enough to have some.

    `question` is the text of the previous turn of the session, or None; only its last question is used, in
    front of the whole. Where a speaker is named the parts are sentences of four terms or more, in the third
    person behind the name, so that each stands on its own; elsewhere a sentence alone has lost what it is
    about, so the parts are runs of sentences of ten terms or more.
    """
    name = named(speaker)

    def told(part: str) -> str:
        return f"{name}: {third_person(part, name)}" if name else part

    label = re.sub(r"[_.\-/]+", " ", key) + ": " if key else ""
    asked = question_of(question)
    whole = label + told(text.strip())
    split = sentences(text)
    if not name:
        parts = _joined(split)
    elif len(terms(text)) > _TERMS_OF_A_SHORT_TURN:
        parts = [s for s in split if len(terms(s)) >= _TERMS_OF_A_SENTENCE]
    else:
        parts = []
    units = [f"{asked} {whole}" if asked else whole]
    if len(parts) > 1:
        units.extend(told(part) for part in _grouped(parts, MOST_UNITS - 1))
    return [u for u in dict.fromkeys(units) if u.strip()]
