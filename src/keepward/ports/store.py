"""What goes into the store and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from keepward.model.commit import CommitDetails, Step
from keepward.model.memory import Record

#: Characters of an id that are taken for the whole of it, where no other begins so.
PREFIX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What is computed from one version of a memory for recall."""

    #: Packed terms, see ``retrieval.analyze.pack``.
    terms: bytes
    #: Id of the embedder, or None when there are no vectors yet.
    model: str | None = None
    #: ``retrieval.vectors.pack`` of the unit vectors; the first unit is the memory's own vector.
    vectors: bytes = b""
    #: Number of vectors.
    units: int = 0
    #: Hash under the declared normalisation, for equality of texts.
    digest: bytes = b""
    #: Marks shared by similar texts, for finding candidates.
    marks: tuple[int, ...] = ()
    #: Equal for texts that may state the same, so that others need not be compared; empty where it is not known.
    trait: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """One live memory as recall needs it."""

    record: Record
    #: Rises with every event of the tenant's journal.
    position: int
    #: Position of the memory's first version: its order of arrival.
    arrival: int
    features: Features


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A commit about to be written."""

    commit_id: str
    at: datetime
    kind: str
    actor_kind: str
    details: CommitDetails
    steps: tuple[Step, ...]
    #: One for each step; None keeps what the version before had.
    features: tuple[Features | None, ...]
    #: Versions the steps were decided on, by memory id, 0 for "not there"; empty where this transaction read them.
    base: Mapping[str, int]
    #: Salts, one for the commit and one for each step.
    salts: tuple[bytes, ...] = ()


@dataclass(slots=True, kw_only=True)
class Found:
    """Records, and the ids of those that failed their seal."""

    records: list[Record] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A memory that no read can show, since its row is missing or was edited outside of Keepward."""

    #: None where the journal does not name it any more.
    id: str | None
    #: Its key, where the journal still tells.
    key: str | None
    #: Whether it is core memory, or cannot be shown not to be.
    core: bool
    #: What is wrong with it.
    why: str
