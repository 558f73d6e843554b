"""What goes into the store and what comes out of it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from keepward.core.commit import CommitDetails, EventPosition, Receipt, Step
from keepward.core.memory import Record
from keepward.core.proposal import Proposal
from keepward.core.query import Feedback
from keepward.idempotency import IdempotencyKey

#: Heads of packed features, whose first byte names the layout. Of terms: the length of the text in terms; then uint32
#: hashes, ascending, and a byte for each. Of unit vectors: 0, dimension and number; then a float32 step for each, and
#: 8-bit components. See ``retrieval.analyze`` and ``retrieval.vectors``.
TERMS_HEADER, VECTORS_HEADER = struct.Struct("<BI"), struct.Struct("<BBHI")
#: Characters of an id that are taken for the whole of it, where no other begins so.
MIN_ID_PREFIX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What is computed from one version of a memory for recall."""

    #: Packed terms, see ``retrieval.analyze.pack``.
    terms: bytes
    #: Id of the embedder, or None when there are no vectors yet.
    model: str | None = None
    #: By what rules the embedded texts were made, see ``retrieval.units.RECIPE``; "" before there were numbers of them.
    recipe: str = ""
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
class IndexedMemory:
    """One live memory as recall needs it."""

    record: Record
    #: Rises with every event of the tenant's journal.
    position: int
    #: Position of the memory's first version: its order of arrival.
    arrival: int
    features: Features


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommit:
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
    #: What the decision was, by the id of the commit; its head is told once it is known.
    receipt: Receipt | None = None
    #: The key of the call that makes it.
    idempotency_key: IdempotencyKey | None = None


@dataclass(slots=True, kw_only=True)
class ReadResult:
    """Records, and the ids of those that failed their seal."""

    records: list[Record] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableMemory:
    """A memory that no read can show, since its row is missing or was edited outside of Keepward."""

    #: None where the journal does not name it any more.
    id: str | None
    #: Its key, where the journal still tells.
    key: str | None
    #: Whether it is core memory, or cannot be shown not to be.
    core: bool
    #: What is wrong with it.
    why: str


class RankingRow(NamedTuple):
    """One live memory version as ranking sees it.

    Shares are 0..1, instants microseconds since 1970, UTC. A tuple, since a cold start makes all of them.
    """

    id: str
    version: int
    #: Position of the newest version.
    touched: int
    #: Order of arrival: position of the first version.
    position: int
    scope: str
    tier: str
    kind: str
    content_type: str
    key: str | None
    subject: str | None
    category: str | None
    #: None for what is no event.
    session: str | None
    speaker: str | None
    tags: tuple[str, ...]
    #: Rank of ``core.principals.Trust``.
    trust: int
    sensitive: bool
    importance: float
    confidence: float
    #: From when importance fades; None: it does not.
    idle_since: int | None
    #: When what it tells happened, or else when it was first written.
    created_at: int
    expires_at: int | None
    #: Empty where they are not kept and have to be computed.
    terms: bytes
    vector_model: str | None
    units: bytes | None
    #: By what rules the texts of its vectors were made.
    recipe: str = ""


class DuplicateCandidate(NamedTuple):
    """A memory that may say the same as another, before it is read. A tuple, since a batch makes eight a memory."""

    id: str
    version: int
    #: Whether they may state the same, as far as their traits tell.
    kindred: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Destruction:
    """What a transaction destroys beside the commit it has just appended."""

    #: Memories that are gone: what recall needs of them goes, and their uses.
    ids: tuple[str, ...] = ()
    #: Events whose payload and salt go.
    events: tuple[EventPosition, ...] = ()
    #: Commits whose details go, by seq, with what may stay of them.
    details: Mapping[int, CommitDetails] = field(default_factory=dict)
    #: What stays of receipts, by id.
    receipts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: What stays of proposals.
    proposals: tuple[Proposal, ...] = ()
    #: Kind and version of kept texts that go.
    artefacts: tuple[tuple[str, str], ...] = ()
    #: What stays of feedback, under its number.
    feedback: tuple[Feedback, ...] = ()
