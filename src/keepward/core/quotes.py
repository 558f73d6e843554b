"""Quotes: what a derived memory says of its sources, and what is left of it when some of them are forgotten.

* A summary of quotes records in its metadata how many of its lines come from each memory of ``derived_from``, in that
  order, after an optional heading: ``{"quotes": [1, 0, 2]}``. It loses exactly the lines of a forgotten source.
* Another text that says what a source says is forgotten entirely: a summary that a model or a person wrote, a merged
  text, and a fact with the words of its source in ``{"quote": "..."}``.
* Any other memory stays: its author said something of their own. Words are never compared with those of a source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from keepward.core.memory import Kind, Record
from keepward.core.reducer import metadata_text
from keepward.core.value import Data

#: Fields of the metadata: lines by source, and the words of the only source.
LINES, QUOTE = "quotes", "quote"
#: The op of a step by which a memory follows its sources: it loses quotes, is forgotten, or gets both back.
FOLLOW = "follow"


class Shortened(Data):
    """A summary that loses the lines of forgotten memories, and keeps others."""

    id: str
    #: Its version before.
    version: int
    #: The lines that it loses; empty after an erasure.
    text: str


def quotes_metadata(counts: Sequence[int]) -> dict[str, Any]:
    """Return the metadata of a summary of quotes: how many lines each source gave."""
    return {LINES: list(counts)}


def lines_by_source(record: Record) -> tuple[list[str], list[list[str]]] | None:
    """Return the heading of a summary of quotes, and its lines by source; None for any other memory."""
    counts = record.metadata.get(LINES)
    if not isinstance(counts, list) or len(counts) != len(record.derived_from):
        return None
    if not all(type(count) is int and count >= 0 for count in counts):
        return None
    lines = record.text.split("\n")
    heading = len(lines) - sum(counts)
    if heading not in {0, 1}:
        return None
    parts, at = [], heading
    for count in counts:
        parts.append(lines[at : at + count])
        at += count
    return lines[:heading], parts


def says_the_same(record: Record, sources: Sequence[Record]) -> bool:
    """Whether a derived memory sums up, merges or quotes its sources; ``sources`` are those that are known."""
    return (
        record.kind is Kind.SUMMARY
        or not record.metadata.keys().isdisjoint({LINES, QUOTE})
        or any(source.superseded_by == record.id for source in sources)
    )


def without_forgotten(
    record: Record, sources: Mapping[str, Record | None], known: Sequence[Record] = (), *, edited: bool = False
) -> Record | None:
    """Return a derived memory without what forgotten sources say; the same object if it says nothing of them.

    ``sources`` has the forgotten ones as None, and those that lost lines themselves as they are now. None means that
    the memory is forgotten entirely. ``edited`` means that a person changed the text of a summary of quotes.
    """
    affected = [name for name in record.derived_from if name in sources]
    if not affected:
        return record
    parsed = None if edited else lines_by_source(record)
    if parsed is None:
        return None if says_the_same(record, known) else record
    heading, parts = parsed
    remaining = []
    for name, part in zip(record.derived_from, parts, strict=True):
        source = sources.get(name)
        if name not in sources:
            remaining.append(part)
        elif source is None:
            remaining.append([])
        else:
            left = set(source.text.split("\n"))
            remaining.append([line for line in part if line in left])
    if remaining == parts:
        return record
    if not any(remaining):
        return None
    text = "\n".join([*heading, *(line for part in remaining for line in part)])
    metadata = {**record.metadata, **quotes_metadata([len(part) for part in remaining])}
    return replace(record, text=text, metadata_json=metadata_text(metadata))


def lost_lines(before: Record, after: Record) -> str:
    """Return the lines of a summary of quotes that a shortened version of it lacks."""
    old, new = lines_by_source(before), lines_by_source(after)
    if old is None or new is None:
        return before.text
    pairs = zip(old[1], new[1], strict=True)
    return "\n".join(line for was, now in pairs for line in was if line not in now)
