"""The store: keeps the journal and what is computed from it; decides nothing.

Invariants
(1) Every read names a tenant; there is no call that means "all tenants".
(2) ``write`` is one transaction: all of it is visible together, or nothing.
(3) A record is checked against its seal before it is returned; one that fails is left out and named
    in ``damaged``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from keepward.model.commit import Commit, CommitDetails, Event, Head, Receipt, Step
from keepward.model.journal import CommitView, Fault
from keepward.model.memory import Record
from keepward.model.proposal import Waiting
from keepward.model.query import Feedback, Filter
from keepward.model.trust import Token
from keepward.ports.blobs import ReadsBlobs, WritesBlobs
from keepward.ports.erasing import Erasable, Erases
from keepward.ports.jobs import KeepsJobs, TellsJobs
from keepward.ports.searching import Searches

#: Where a text may stand once: tier, scope, sensitivity, subject, and the normalised text's digest.
Slot = tuple[str, str, str, str | None, bytes]

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
    #: Versions the steps were judged on, by memory id; 0 for "not there".
    base: Mapping[str, int]
    #: Slots that were free when judged.
    free_digests: tuple[Slot, ...] = ()
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


class Writer(Erases, KeepsJobs, WritesBlobs, Protocol):
    """What may be done inside one transaction."""

    def append(self, tenant: str, stage: Stage) -> Commit:
        """Write a commit with its events, records and features.

        Raises:
            Conflict: a base version has moved, a key is taken, or a digest is no longer free.
        """
        ...

    def put_receipt(self, receipt: Receipt) -> None:
        """Keep a receipt."""
        ...

    def put_waiting(self, item: Waiting, *, was: str | None = None) -> None:
        """Keep a proposal in the review queue, or its new state.

        Raises:
            Conflict: ``was`` names another state than the one it is in; of two deciders one wins.
        """
        ...

    def put_token(self, token: Token) -> None:
        """Keep a token, or its new state."""
        ...

    def put_features(
        self, tenant: str, features: Mapping[str, Features], versions: Mapping[str, int] | None = None
    ) -> None:
        """Replace the features of memories, by id; one whose newest version is not the named one is skipped."""
        ...

    def count_use(self, tenant: str, ids: Sequence[str], at: datetime) -> None:
        """Count one use of each memory, beside the journal."""
        ...

    def put_feedback(self, given: Feedback) -> Feedback:
        """Keep feedback; return it with its number. A second of one actor on one receipt replaces the first."""
        ...

    def learn_uses(self, tenant: str, uses: Mapping[str, int]) -> None:
        """Note that importance has learned from so many more uses of each memory."""
        ...

    def put_artefact(self, tenant: str, kind: str, version: str, text: str) -> None:
        """Keep a text that a receipt names, such as an identity or policy, so that a context can be replayed."""
        ...

    def drop_artefacts(self, tenant: str, kind: str) -> None:
        """Let go of every kept text of a kind; for what no receipt names, such as how far a training has come."""
        ...


class Reader(TellsJobs, ReadsBlobs, Searches, Protocol):
    """What may be asked."""

    def head(self, tenant: str) -> Head:
        """Return the tenant's head; seq 0 when nothing was committed."""
        ...

    def records(self, tenant: str, ids: Sequence[str], *, as_of: int | None = None) -> Found:
        """Return the newest records by id or alias, in the order asked, without those that are not there."""
        ...

    def beginning(self, tenant: str, prefix: str, *, limit: int) -> list[str]:
        """Return ids of memories that begin with a text, in their order."""
        ...

    def find(
        self, tenant: str, filters: Filter, *, live_at: datetime | None, limit: int | None, as_of: int | None = None
    ) -> Found:
        """Return records that pass, newest arrival first; ``live_at`` None includes those that do not hold."""
        ...

    def withheld(self, tenant: str, filters: Filter, *, live_at: datetime | None) -> list[Withheld]:
        """Return memories whose rows are not those that were written, and that would have passed, by id.

        In constant time while nobody but this handle has changed the file. A memory of which the journal does not
        tell enough passes every filter. Memories whose row is as written and whose content does not hold are not among
        them: reads name those as ``damaged``.
        """
        ...

    def similar(self, tenant: str, record: Record, features: Features, now: datetime) -> Found:
        """Return live memories of the same scope, tier and sensitivity with an equal digest, or two shared marks."""
        ...

    def superseded(self, tenant: str, scope: str, digest: bytes) -> Found:
        """Return superseded and contained memories of a scope whose newest text has this digest, at most 8."""
        ...

    def tally(self, tenant: str) -> dict[str, int]:
        """Return active memories by tier, in constant time."""
        ...

    def children(self, tenant: str, ids: Sequence[str]) -> list[str]:
        """Return ids of memories derived directly from any of these, sorted."""
        ...

    def deliveries(self, tenant: str, ids: Sequence[str]) -> list[tuple[str, int, str]]:
        """Return (memory id, version, receipt id) of the compiled contexts that held any of these memories.

        Oldest receipt first, then by memory and version. The receipt itself is the proof.
        """
        ...

    def undone_by(self, tenant: str, commit_id: str) -> list[str]:
        """Return the ids of the commits that undo this one, newest first, whether or not they stand."""
        ...

    def session_tail(self, tenant: str, session: str) -> Record | None:
        """Return the newest active memory of a session, or None."""
        ...

    def history(self, tenant: str, memory_id: str) -> list[tuple[CommitView, Step]]:
        """Return every version of one memory, oldest first."""
        ...

    def indexed(self, tenant: str, *, after: int, as_of: int | None = None) -> Iterator[tuple[str, Indexed | None]]:
        """Yield (id, entry) for every memory touched after a position, oldest first; None when not active."""
        ...

    def commits(self, tenant: str, *, before: int | None, limit: int) -> list[CommitView]:
        """Return commits, newest first, with seq below ``before``."""
        ...

    def commit(self, tenant: str, commit_id: str) -> CommitView | None:
        """Return a commit by id, unique prefix of at least 8 characters, or seq in decimal."""
        ...

    def queue(self, tenant: str, *, state: str | None = "pending") -> list[Waiting]:
        """Return proposals, oldest first; None means all states."""
        ...

    def untold(self, tenant: str, now: datetime) -> int:
        """Return how many proposals ended without being stored and without a note that their proposer was told.

        Counted from what the rows say of themselves: who wants to know what became of them reads the queue.
        """
        ...

    def waiting(self, tenant: str, proposal_id: str) -> Waiting | None:
        """Return one proposal."""
        ...

    def receipt(self, tenant: str, receipt_id: str) -> dict[str, Any] | None:
        """Return a receipt as it was stored."""
        ...

    def handed(self, tenant: str, after: str) -> list[dict[str, Any]]:
        """Return the receipts with an id above ``after`` that say that something of low trust was handed out."""
        ...

    def artefact(self, tenant: str, kind: str, version: str) -> str | None:
        """Return a kept text, or None."""
        ...

    def usage(self, tenant: str, ids: Sequence[str]) -> dict[str, tuple[int, datetime]]:
        """Return (count, last use) by id."""
        ...

    def feedback(self, tenant: str, *, limit: int) -> list[Feedback]:
        """Return the newest feedback, oldest first, without what fails its seal."""
        ...

    def feedback_count(self, tenant: str) -> int:
        """Return the number of the newest feedback, 0 for none."""
        ...

    def unlearned(self, tenant: str) -> dict[str, int]:
        """Return, by memory id in order, uses that importance has not learned from."""
        ...

    def events(self, tenant: str, *, after: int = 0) -> Iterator[tuple[Commit, list[Event]]]:
        """Yield commits after a seq with their events as stored, oldest first."""
        ...

    def tokens(self, token_id: str | None = None) -> list[Token]:
        """Return the store's tokens, or the one by an id, oldest first; those that fail their seal are left out."""
        ...

    def token_by_hash(self, digest: bytes) -> Token | None:
        """Return the token whose SHA-256 is ``digest``, whatever its state, compared in constant time; or None."""
        ...

    def tenants(self) -> list[str]:
        """Return the names of tenants with at least one commit, sorted; for an owner's tools alone."""
        ...

    def facts(self, tenant: str, now: datetime, *, scopes: Collection[str] | None = None) -> dict[str, Any]:
        """Return counts for ``status``: by tier, kind, scope, status, content type, source, and sizes.

        Where ``scopes`` are given, no other scope is named, and no category that stands in others alone.
        """
        ...


class Store(Reader, Erasable, Protocol):
    """A reader that can write, check itself and close."""

    @property
    def store_id(self) -> str:
        """Names the store for as long as it exists, whatever path it is at."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        ...

    @property
    def foreign(self) -> str | None:
        """Why this machine does not use the store; None where it does. Reads and writes then raise ``NotAdopted``."""
        ...

    @property
    def copied(self) -> bool:
        """Whether this opening found it to be a copy of a store that lives on."""
        ...

    def inspecting(self) -> AbstractContextManager[None]:
        """Let this thread read a store as it stands, known or not, while the block lasts; to show it to a person."""
        ...

    def write(self) -> AbstractContextManager[Writer]:
        """Open one transaction; it commits when the block ends and rolls back when it raises."""
        ...

    def verify(self, tenant: str | None = None) -> tuple[dict[str, int], list[Fault]]:
        """Check everything; return counts of what was checked, and faults, first first."""
        ...

    def notes(self) -> list[str]:
        """Return plain sentences on how far the store can vouch for itself, such as a missing anchor."""
        ...

    def rebuild(self, tenant: str) -> int:
        """Compute the records anew from the journal; return how many there are."""
        ...

    def restore_journal(self, tenant: str, commits: Iterator[tuple[Commit, list[Event]]]) -> Head:
        """Write an exported journal into an empty tenant, byte for byte, verifying the chain.

        Raises:
            Conflict: the tenant is not empty.
            Tampered: the chain does not hold.
        """
        ...

    def close(self) -> None:
        """Release everything; a second call does nothing."""
        ...
