"""Types that go into the store and come out of it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from keepward.core.commit import CommitDetails, EventPosition, Receipt, Step
from keepward.core.memory import MemoryFields, Record
from keepward.core.proposal import Proposal
from keepward.core.query import Feedback
from keepward.core.value import Data
from keepward.idempotency import IdempotencyKey

#: Headers of packed features, whose first byte is the layout version. Terms: the length of the text in terms; then
#: ascending uint32 hashes with one byte each. Vectors: 0, dimension and number; then a float32 step for each, and 8-bit
#: components. See ``retrieval.tokenizer`` and ``retrieval.vector_index``.
TERMS_HEADER, VECTORS_HEADER = struct.Struct("<BI"), struct.Struct("<BBHI")
#: Shortest unique prefix that is accepted as an id, in characters.
MIN_ID_PREFIX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRange:
    """Some scopes, and one with every scope below it."""

    each: tuple[str, ...]
    below: str | None = None


class Features(Data, gc=False):
    """Values for recall that are computed from one version of a memory."""

    #: Packed terms, see ``retrieval.tokenizer.pack``.
    terms: bytes
    #: Id of the embedder; None without vectors.
    model: str | None = None
    #: Embedding version of the texts, see ``retrieval.chunking``; "" for versions before they were numbered.
    recipe: str = ""
    #: Packed unit vectors, see ``retrieval.vector_index``; the first one is the memory's own vector.
    vectors: bytes = b""
    #: Number of vectors.
    units: int = 0
    #: Hash of the normalised text; equal texts have equal hashes.
    digest: bytes = b""
    #: Minhashes that similar texts share, for finding duplicate candidates.
    marks: tuple[int, ...] = ()
    #: Equal for texts that may state the same, so that others need no comparison; empty if unknown.
    trait: bytes = b""

    @property
    def has_vectors(self) -> bool:
        """Whether there are vectors to compare; a memory without text has a model and none."""
        return self.units > 0 and self.model is not None


class IndexedMemory(NamedTuple):
    """One live memory as an index of recall takes it. A tuple, because a cold start makes one of every memory."""

    fields: MemoryFields
    #: Those without terms are not stored, and must be computed.
    features: Features
    #: Of the memory's first version: its order of arrival.
    arrival: int
    #: Of the newest version; it rises with every event of the tenant's journal.
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommit:
    """A commit that is about to be written."""

    commit_id: str
    at: datetime
    kind: str
    actor_kind: str
    details: CommitDetails
    steps: tuple[Step, ...]
    #: One for each step; None keeps those of the previous version.
    features: tuple[Features | None, ...]
    #: Versions that the steps were decided on, by memory id, 0 for no memory; empty if this transaction read them.
    base: Mapping[str, int]
    #: Salts: one for the commit and one for each step.
    salts: tuple[bytes, ...] = ()
    #: The receipt of the decision, stored by the id of the commit; its head is added once it is known.
    receipt: Receipt | None = None
    #: The idempotency key of the request.
    idempotency_key: IdempotencyKey | None = None


@dataclass(slots=True, kw_only=True)
class ReadResult:
    """Records, and the ids of those whose seal does not match."""

    records: list[Record] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableMemory:
    """A memory that no read can show: its row is missing or was edited outside of Keepward."""

    #: None if no event in the journal names it.
    id: str | None
    #: Its key, if the journal has it.
    key: str | None
    #: Whether it is, or may be, core memory.
    core: bool
    #: What is wrong with it.
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Destruction:
    """Content that a transaction destroys in addition to the commit that it has appended."""

    #: Erased memories: their uses are deleted. Their commit has deleted their features and links.
    ids: tuple[str, ...] = ()
    #: Events whose payload and salt are deleted.
    events: tuple[EventPosition, ...] = ()
    #: Commits whose details are deleted, by seq, with the part that may stay.
    details: Mapping[int, CommitDetails] = field(default_factory=dict)
    #: The part of each receipt that stays, by id.
    receipts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: The part of each proposal that stays.
    proposals: tuple[Proposal, ...] = ()
    #: Kind and version of stored texts that are deleted.
    artefacts: tuple[tuple[str, str], ...] = ()
    #: Feedback as it stays, under its number.
    feedback: tuple[Feedback, ...] = ()
