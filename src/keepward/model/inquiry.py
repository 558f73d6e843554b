"""What an inquiry gives: what something touched, where a value comes from, how two contexts differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from keepward.model.commit import Commit, Receipt
from keepward.model.journal import CommitView, Version
from keepward.model.memory import Record
from keepward.model.value import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """What was asked: one of ``WAYS`` and its value."""

    way: str
    value: str

    def __str__(self) -> str:
        return f"{self.way} {self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A compiled context that held some of it."""

    receipt: str
    #: ISO 8601.
    at: str
    #: ``kind:name`` of who was given the context.
    actor: str
    purpose: str
    #: (memory id, version) of what it held, sorted.
    items: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact(Value):
    """What was touched. Memories are shown at their newest version, whatever their status."""

    selector: Selector
    #: In the order in which they were first touched.
    direct: tuple[Record, ...]
    #: Made from these, over any number of steps; by id.
    derived: tuple[Record, ...]
    #: Oldest first.
    contexts: tuple[Delivery, ...]
    #: Ids of proposals that wait and were made by, or from, any of it.
    waiting: tuple[str, ...]
    #: Ids of memories and receipts that do not match their seal, and so could not be looked at.
    damaged: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Containment(Value):
    """What was contained, or would be."""

    applied: bool
    impact: Impact
    #: What is not contained yet, as it stands now: direct ones first, then derived ones.
    items: tuple[Record, ...]
    #: Names this very plan; 64 hex digits.
    digest: str
    commit: Commit | None = None
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the present value of one field comes from."""

    field: str
    value: Any
    #: Version that brought the value.
    version: int
    #: The version as it came, with its commit.
    made: Version
    #: ``kind:name`` of who asked for it; the approver, where there is one, is in ``approved_by``.
    actor: str
    source: str
    approved_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame(Value):
    """One memory as it stands, and where each of its values comes from, in the order of ``Record``."""

    record: Record
    origins: tuple[Origin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection(Value):
    """The commit with which a context changed its answer to a predicate."""

    commit: CommitView
    #: How many contexts were compiled.
    compiled: int
    #: What the last context before it and the first one with it say.
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """One memory that the two contexts do not share as it is."""

    id: str
    change: Literal["added", "removed", "changed"]
    #: Where it stands, or stood.
    section: str
    #: Versions in the first and in the second context; None where it is not in it.
    before: int | None
    after: int | None
    #: The newest commit between the two heads that touched it; None where none did.
    commit: CommitView | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDifference(Value):
    """What differs between two contexts."""

    first: str
    second: str
    #: Whether both have the same bytes.
    same: bool
    #: Added, then removed, then changed; each by id.
    items: tuple[ContextItem, ...]
    #: What was asked differently, by name: (first, second).
    inputs: Mapping[str, tuple[Any, Any]]
