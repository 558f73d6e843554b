"""What browsing shows: windows, counts, activity, sources, the map of meaning, and what became of one memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from keepward.model.journal import Delivery
from keepward.model.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many memories have a value."""

    value: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What one of them wrote, day by day."""

    name: str
    #: One number a day, in the order of ``days``.
    counts: tuple[int, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources(Value):
    """Who and what memories come from; in each list who wrote most first, ties by name."""

    head: str
    #: ``kind:name``.
    actors: tuple[Origins, ...]
    #: Classes such as ``web``.
    sources: tuple[Origins, ...]
    #: What stands in evidence, such as a page or a chat.
    references: tuple[Origins, ...]
    sessions: tuple[Origins, ...]
    #: How many more there are in a list than it shows.
    more: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningMap(Value):
    """Memories as points in a plane, near each other where they mean much the same; lists have one item a point."""

    head: str
    #: Model of the vectors; None where there are none.
    model: str | None
    #: Memories that pass all filters; those with a vector, and so many of them are shown.
    total: int
    placed: int
    ids: tuple[str, ...]
    #: From -1000 to 1000.
    x: tuple[int, ...]
    y: tuple[int, ...]
    #: Places in ``tiers``, ``sources``, ``kinds``.
    tier: tuple[int, ...]
    source: tuple[int, ...]
    kind: tuple[int, ...]
    #: Days since it was written.
    age: tuple[int, ...]
    tiers: tuple[str, ...]
    sources: tuple[str, ...]
    kinds: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Faded:
    """What is left of confidence and importance at an instant, 0..1."""

    at: datetime
    confidence: float
    importance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(Value):
    """What became of a memory: the contexts that held it, and how it fades."""

    id: str
    #: How often it was handed out, by recall or in a context, and when last.
    uses: int
    last_used: datetime | None
    #: Contexts that held it, of those that the reader reaches; ``items`` names the version. Newest first.
    contexts: tuple[Delivery, ...]
    #: How many older ones were not looked at.
    older: int
    #: Contexts by day, oldest first; days without any are left out.
    days: tuple[Count, ...]
    #: Time in which confidence halves, in days; None for what does not fade.
    half_life_days: float | None
    #: Oldest first; what lies ahead is as it will be unless it is confirmed.
    fading: tuple[Faded, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bond:
    """That one memory was made from another, or took its place."""

    #: Id of what was there first.
    before: str
    #: Id of what was made of it.
    after: str
    #: ``derived`` or ``superseded``.
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage(Value):
    """Where a memory comes from and what was made of it, over any number of steps."""

    id: str
    #: By depth, then by id.
    memories: tuple[Relative, ...]
    bonds: tuple[Bond, ...]
    #: How many are out of the reader's reach, and how many were left out because there are so many.
    hidden: int
    left_out: int


def counted(pairs: Iterable[tuple[str, int]]) -> tuple[Count, ...]:
    """Return pairs of a value and a number as counts."""
    return tuple(Count(value=value, count=count) for value, count in pairs)
