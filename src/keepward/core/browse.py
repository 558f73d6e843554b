"""Results of lists and counts: facets, activity, sources and lineage."""

from __future__ import annotations

from collections.abc import Mapping

from keepward.core.value import Data, Instant, Value


class Count(Data):
    """The number of memories with a value."""

    value: str
    count: int


class Member(Value):
    """A user or a project."""

    name: str
    #: Number of its active memories.
    memories: int


class Facets(Value):
    """The number of memories, in total and by value of each facet."""

    #: Name of the state that was counted.
    head: str
    #: Number of its commit.
    seq: int
    #: Memories that pass all filters.
    total: int
    #: By facet, the most frequent values first. The filter of a facet does not apply to its own counts.
    facets: Mapping[str, tuple[Count, ...]]
    #: By facet, the number of values that are not listed.
    more: Mapping[str, int]
    notes: tuple[str, ...] = ()


class Series(Data):
    """Versions written by one author (or source, session, ...) on each day."""

    name: str
    #: One number for each day, in the order of ``days``.
    counts: tuple[int, ...]
    total: int


class Activity(Value):
    """Versions written on each day, in total and by author or another field."""

    head: str
    #: Field of the series: ``author``, ``source``, ``session``, ``tier``, ``kind`` or ``scope``.
    by: str
    #: ISO 8601 dates, oldest first, without a gap.
    days: tuple[str, ...]
    #: Versions written on each day.
    counts: tuple[int, ...]
    #: Most versions first, then by name.
    series: tuple[Series, ...]
    #: Number of further series.
    more: int
    #: How many memories have a version that does not match its seal. These versions are not counted above.
    damaged: int = 0


class SourceActivity(Data):
    """Memories written by one actor, source, reference or session."""

    name: str
    #: Memories whose present text it wrote, whatever their status; and the active ones.
    memories: int
    live: int
    #: Memories that it wrote, and whose text another writer has changed since.
    corrected: int
    #: Versions it wrote.
    writes: int
    #: ``memories`` by their current trust.
    trust: Mapping[str, int]
    first: Instant
    last: Instant


class Sources(Value):
    """Origins of memories. Each list is ordered by number of versions, then by name."""

    head: str
    #: ``kind:name``.
    actors: tuple[SourceActivity, ...]
    #: Names of sources, such as ``web``.
    sources: tuple[SourceActivity, ...]
    #: References in ``evidence``, such as a page or a chat.
    references: tuple[SourceActivity, ...]
    sessions: tuple[SourceActivity, ...]
    #: By list, the number of entries that are not listed.
    more: Mapping[str, int]
    #: How many memories have a version that does not match its seal. These versions are not counted above.
    damaged: int = 0


class Happening(Data):
    """What was done last to one memory, or one decision."""

    #: Id of the memory; None for a decision.
    memory: str | None
    #: Its text, or the reason of a decision; empty if it was erased.
    text: str
    #: Operation of the commit, such as ``insert`` or ``retire``, or the kind of a receipt, such as ``refusal``.
    op: str
    #: ``kind:name``; None if the memory expired by itself.
    actor: str | None
    at: Instant
    #: Id of the commit, and of the receipt.
    commit: str | None
    receipt: str | None


class Happenings(Data):
    """How often something happened, and the last of it."""

    #: None if there was more than could be counted.
    total: int | None
    #: Newest first.
    newest: tuple[Happening, ...]


class News(Value):
    """What happened to memories since an instant. A memory that was learned and ended since counts as both."""

    head: str
    since: Instant
    #: Memories that are new, whatever their status; not erased ones.
    learned: Happenings
    #: Earlier memories with another text since.
    changed: Happenings
    #: Memories that were forgotten, replaced, archived, taken out of use, or expired.
    ended: Happenings
    erased: Happenings
    #: Proposals that were approved or rejected.
    decisions: Happenings
    #: Writes that were refused.
    refusals: Happenings
    #: Sentences about what is damaged and not shown, with the commands that help.
    notes: tuple[str, ...] = ()


class LineageNode(Data):
    """A memory that this one was derived from, or that was derived from it."""

    id: str
    text: str
    tier: str
    kind: str
    status: str
    trust: str
    source: str
    version: int
    #: Steps from the requested memory: negative for its sources, 0 for itself and its successors.
    depth: int


class LineageEdge(Data):
    """One memory that was derived from another or superseded it."""

    #: Id of the earlier memory.
    before: str
    #: Id of the later memory.
    after: str
    #: ``derived`` or ``superseded``.
    how: str


class Lineage(Value):
    """The memories that a memory was derived from and those derived from it, over all steps."""

    id: str
    #: By depth, then by id.
    memories: tuple[LineageNode, ...]
    bonds: tuple[LineageEdge, ...]
    #: Number of memories that these name and the reader may not see, and of those beyond the limit.
    hidden: int
    left_out: int
