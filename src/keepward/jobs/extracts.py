"""Extracts: summaries of quotes, which need no model.

An extract quotes its sources word for word and in order, at most one line each. Of a session it quotes what people
stated: no question, no thanks and no reply of the assistant. See ``core.quotes`` for what it loses when a source is
forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from keepward.core.memory import Record
from keepward.core.patterns import lazy_regex
from keepward.core.value import to_micros
from keepward.retrieval.chunking import is_question, speaker_name
from keepward.retrieval.small_talk import has_content
from keepward.retrieval.time_expressions import day_of, phrase

#: Sources of one summary expire at most this much later than the first of them.
MAX_EXPIRY_SPREAD = timedelta(days=7)
_PEOPLE = frozenset({"operator", "manual", "user_message", "user", "chat"})
_ELLIPSIS = " …"
#: Ends a sentence: every word of a text is in one of its sentences.
_BOUNDARY = lazy_regex(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")


def by_expiry(records: Sequence[Record]) -> list[list[Record]]:
    """Return groups that one summary may cover, oldest first in each: a summary expires with the first of its sources.

    The lasting ones come last.
    """
    lasting = [record for record in records if record.expires_at is None]
    expiring = sorted((record.expires_at, record.id, record) for record in records if record.expires_at is not None)
    clusters: list[list[Record]] = []
    first: datetime | None = None
    for expires_at, _, record in expiring:
        if first is None or expires_at > first + MAX_EXPIRY_SPREAD:
            clusters.append([])
            first = expires_at
        clusters[-1].append(record)
    return [
        sorted(cluster, key=lambda record: (record.said_at, record.created_at, record.id))
        for cluster in (*clusters, lasting)
        if cluster
    ]


def stated(record: Record) -> list[str]:
    """Return the sentences of a message that state something; none if no person said it."""
    role = record.metadata.get("role")
    by_person = role == "user" if role is not None else record.source in _PEOPLE
    # An import without roles names its speakers.
    if not by_person and (role is not None or record.source != "import" or speaker_name(record.speaker) is None):
        return []
    return [each for each in split_sentences(record.text) if not is_question(each) and has_content(each)]


def session_extract(sources: Sequence[Record], limit: int) -> tuple[str, list[int]] | None:
    """Return an extract of what people stated in a session, and how many lines each source gave; None if nothing.

    The text has at most ``limit`` characters.
    """
    parts = [stated(source) for source in sources]
    quoted = [source for source, own in zip(sources, parts, strict=True) if own]
    if not quoted:
        return None
    names = {_speaker(source) for source in quoted}
    who = f"{next(iter(names))} stated".lstrip() if len(names) == 1 else "Stated"
    first, last = (phrase(day_of(to_micros(source.said_at))) for source in (quoted[0], quoted[-1]))
    days = f"on {first}" if first == last else f"from {first} to {last}"
    heading = f"{who[0].upper()}{who[1:]} {days}:"
    openings = ["" if len(names) == 1 else _opening(source) for source in sources]
    lines = _fitted(parts, openings, limit - len(heading) - 1)
    return "\n".join([heading, *filter(None, lines)]), [int(bool(line)) for line in lines]


def extract(sources: Sequence[Record], limit: int) -> tuple[str, list[int]]:
    """Return the texts of sources word for word, one a line with its speaker, and how many lines each source gave.

    The text has at most ``limit`` characters.
    """
    lines = _fitted(
        [split_sentences(source.text) for source in sources], [_opening(source) for source in sources], limit
    )
    return "\n".join(filter(None, lines)), [int(bool(line)) for line in lines]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text in order; together they have every word of it."""
    return [" ".join(each.split()) for each in _BOUNDARY.split(text) if each.strip()]


def _speaker(record: Record) -> str:
    """Return the name of the speaker; nothing for a role."""
    return speaker_name(record.speaker) or ""


def _opening(record: Record) -> str:
    speaker = _speaker(record) or (record.speaker or "").strip()
    return f"{speaker}: " if speaker else ""


def _fitted(parts: Sequence[Sequence[str]], openings: Sequence[str], limit: int) -> list[str]:
    """Return a line for each source, of its opening and its sentences, in at most ``limit`` characters together.

    If not everything fits, each source gets its first sentence before any gets its second, and a sentence is quoted
    once. A source that gets none has an empty line.
    """
    complete = [opening + " ".join(own) if own else "" for opening, own in zip(openings, parts, strict=True)]
    if len("\n".join(filter(None, complete))) <= limit:
        return complete
    chosen: list[list[str]] = [[] for _ in parts]
    left = limit + 1
    for n in range(max(map(len, parts), default=0)):
        for opening, own_sentences, own in zip(openings, parts, chosen, strict=True):
            if n >= len(own_sentences) or any(own_sentences[n] in other for other in chosen):
                continue
            # The sentence with a space, or with a line break and the speaker.
            length = len(own_sentences[n]) + (1 if own else 1 + len(opening))
            if length <= left:
                own.append(own_sentences[n])
                left -= length
    if not any(chosen):
        first = next(index for index, line in enumerate(complete) if line)
        cut = complete[first][: max(limit - len(_ELLIPSIS), 0)].rstrip() + _ELLIPSIS
        return [cut if index == first else "" for index in range(len(complete))]
    return [opening + " ".join(own) if own else "" for opening, own in zip(openings, chosen, strict=True)]
