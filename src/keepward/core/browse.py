"""What lists and counts return: facets, activity, sources, and lineage."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from keepward.core.value import Data, Value


class Count(Data):
    """How many memories have a value."""

    value: str
    count: int


class Member(Value):
    """A user or a project."""

    name: str
    #: How many of its memories hold.
    memories: int


class Facets(Value):
    """How many memories there are, and how many of each sort."""

    #: Name of the state that was counted.
    head: str
    #: Number of its commit.
    seq: int
    #: Memories that pass all filters.
    total: int
    #: By facet, the values with most memories first; each facet as if nothing was chosen of it.
    facets: Mapping[str, tuple[Count, ...]]
    #: Facets that have more values than are listed, and how many.
    more: Mapping[str, int]
    notes: tuple[str, ...] = ()


class Series(Data):
    """What one of them wrote, day by day."""

    name: str
    #: One number a day, in the order of ``days``.
    counts: tuple[int, ...]
    total: int


class Activity(Value):
    """How much was written on each day, and by whom."""

    head: str
    #: What the series are of: ``author``, ``source``, ``session``, ``tier``, ``kind`` or ``scope``.
    by: str
    #: ISO 8601 dates, oldest first, without a gap.
    days: tuple[str, ...]
    #: Versions written on each day.
    counts: tuple[int, ...]
    #: Who wrote most first, ties by name.
    series: tuple[Series, ...]
    #: How many more wrote something in these days.
    more: int


class SourceActivity(Data):
    """What one actor, source, reference or session wrote."""

    name: str
    #: Memories it wrote, or wrote a version of, whatever their status; and those that hold.
    memories: int
    live: int
    #: Versions it wrote.
    writes: int
    #: Memories by the trust that they have now.
    trust: Mapping[str, int]
    first: datetime
    last: datetime


class Sources(Value):
    """Who and what memories come from; in each list who wrote most first, ties by name."""

    head: str
    #: ``kind:name``.
    actors: tuple[SourceActivity, ...]
    #: Classes such as ``web``.
    sources: tuple[SourceActivity, ...]
    #: What stands in evidence, such as a page or a chat.
    references: tuple[SourceActivity, ...]
    sessions: tuple[SourceActivity, ...]
    #: How many more there are in a list than it shows.
    more: Mapping[str, int]


class LineageNode(Data):
    """A memory that this one was made from, or that was made from it."""

    id: str
    text: str
    tier: str
    kind: str
    status: str
    trust: str
    source: str
    version: int
    #: Steps from the memory that was asked about: below 0 what it was made from, 0 itself and what took its place.
    depth: int


class LineageEdge(Data):
    """That one memory was made from another, or took its place."""

    #: Id of what was there first.
    before: str
    #: Id of what was made of it.
    after: str
    #: ``derived`` or ``superseded``.
    how: str


class Lineage(Value):
    """Where a memory comes from and what was made of it, over any number of steps."""

    id: str
    #: By depth, then by id.
    memories: tuple[LineageNode, ...]
    bonds: tuple[LineageEdge, ...]
    #: How many are out of the reader's reach, and how many were left out because there are so many.
    hidden: int
    left_out: int
