"""What reading, checking, asking of, undoing and erasing what the journal holds gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from keepward.core.commit import Commit, CommitDetails, EventPosition, Reason, Receipt, Step
from keepward.core.memory import Record
from keepward.core.value import Data, Value


class CommitView(Value):
    """A commit with its details and steps."""

    commit: Commit
    details: CommitDetails
    steps: tuple[Step, ...]


class Fault(Data):
    """Something that does not hold."""

    #: Which check.
    check: str
    #: Table and key of the row.
    row: str
    detail: str


class Version(Value):
    """One version of a memory and the commit that made it."""

    record: Record
    before: Record | None
    op: str
    commit: Commit
    details: CommitDetails


class Difference(Value):
    """One memory in two states; None where it does not hold."""

    id: str
    before: Record | None
    after: Record | None


class Conflicting(Data):
    """Why a target cannot be undone alone: a later commit touched it, or holds its key."""

    memory_id: str
    seq: int
    commit_id: str


class Rollback(Value):
    """What a rollback did, or would do."""

    applied: bool
    #: Whether the commit was undone before, so that nothing was left to do.
    already: bool
    commit: Commit | None
    receipt: Receipt | None
    #: Id of the receipt, also of the first one when ``already``.
    receipt_id: str | None
    #: Ids of the commits that are undone, newest first.
    undone: tuple[str, ...]
    targets: tuple[Difference, ...]
    conflicts: tuple[Conflicting, ...]
    #: Memories derived from a target over any number of steps, which somebody should look at; by id.
    dependents: tuple[str, ...]
    reasons: tuple[Reason, ...] = ()


class Verification(Value):
    """What was checked, and what does not hold."""

    ok: bool
    #: How many of each were checked.
    checked: dict[str, int]
    #: First first.
    faults: tuple[Fault, ...]
    #: How far the store can vouch for itself, such as where it came from, in plain sentences.
    notes: tuple[str, ...] = ()


class Check(Value):
    """One thing ``doctor`` looked at."""

    name: str
    ok: bool
    detail: str
    #: What to do, when it is not well or warns.
    remedy: str = ""
    #: Well as far as a store can tell, and worth a look by a person; it makes no health check fail.
    warning: bool = False


class Selection(Data):
    """Which memories are to be erased; everything named, together."""

    ids: tuple[str, ...] = ()
    subject: str | None = None
    #: A reference in evidence, a foreign name, a session, or the name of a source.
    source: str | None = None
    #: All that lies in this user's scopes or is about the user.
    user: str | None = None
    #: Whether memories and proposals that cite an erased memory are erased too, directly or through other memories.
    include_citing: bool = False


class Target(Data):
    """A memory that goes."""

    id: str
    #: 0 for what was only proposed.
    versions: int
    #: ``named``, ``copy`` for one that says the same, ``proposed`` for one that no decision has made a memory,
    #: ``derived`` or ``cites`` for one that was taken along.
    why: str
    #: The beginning of its newest text, for a person to judge by; empty once it is erased.
    text: str


class Candidate(Data):
    """A memory, or a proposal, that stays unless it is named, or taken along."""

    id: str
    #: ``derived`` from a target, ``cites`` a target as evidence, ``quotes`` what a target said.
    why: str
    #: The beginning of its newest text; empty in the result of an erasure.
    text: str


class ErasePlan(Value):
    """What an erasure would destroy, with the beginning of each text; the result of an erasure holds no text."""

    #: Names this very plan; 64 hex digits.
    digest: str
    reason: str
    #: What a person decides about: derived memories, then citing ones and proposals, then quoting ones, each by id.
    candidates: tuple[Candidate, ...] = ()
    #: By id.
    targets: tuple[Target, ...]
    #: Ids of memories made from a target that say something of their own: name those that are to go as well.
    derived: tuple[str, ...]
    #: Ids of other memories with a version that quotes a target.
    quoting: tuple[str, ...]
    #: Places that lose their content: versions of memories, then details of commits.
    versions: tuple[EventPosition, ...]
    details: tuple[int, ...]
    #: Ids of what is rewritten without it.
    receipts: tuple[str, ...]
    proposals: tuple[str, ...]
    #: Kind and version of kept texts that go; of kind ``reranker`` weights that have learned from a target.
    artefacts: tuple[tuple[str, str], ...]
    #: Numbers of the feedback that loses the name of a target.
    feedback: tuple[int, ...] = ()
    #: Blobs that go, because nothing else refers to them.
    blobs: tuple[str, ...] = ()


class Erased(Value):
    """An erasure that was carried out."""

    plan: ErasePlan
    commit: Commit
    receipt: Receipt


class Selector(Data):
    """What was asked: one of ``WAYS`` and its value."""

    way: str
    value: str

    def __str__(self) -> str:
        return f"{self.way} {self.value}"


class Delivery(Data):
    """A compiled context that held some of it."""

    receipt: str
    #: ISO 8601.
    at: str
    #: ``kind:name`` of who was given the context.
    actor: str
    purpose: str
    #: (memory id, version) of what it held, sorted.
    items: tuple[tuple[str, int], ...]


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


class Origin(Data):
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


class Blame(Value):
    """One memory as it stands, and where each of its values comes from, in the order of ``Record``."""

    record: Record
    origins: tuple[Origin, ...]


class Contradiction(Value):
    """Two active memories that say nearly the same and differ in something; which one holds is not said."""

    older: Record
    newer: Record
    #: What differs: number, date, name, unit, negation, quantifier, order, value.
    differs: tuple[str, ...]
    #: How close the two are, 0..1: in meaning where both have vectors of one embedder, else by their letters.
    score: float


class Contradictions(Value):
    """Pairs of memories that may contradict each other, the closest first; nothing was changed by looking."""

    items: tuple[Contradiction, ...]
    #: How many pairs were found; as many of them as were asked for are listed.
    total: int
    #: How many memories passed the filters.
    compared: int
    #: Ids of memories that would have taken part, and were edited outside of Keepward or are missing.
    withheld: tuple[str, ...] = ()
    #: Plain sentences on what did not take part, with the command that helps.
    notes: tuple[str, ...] = ()


class Bisection(Value):
    """The commit with which a context changed its answer to a predicate."""

    commit: CommitView
    #: How many contexts were compiled.
    compiled: int
    #: What the last context before it and the first one with it say.
    before: str
    after: str


class ContextDiffItem(Data):
    """One memory that the two contexts do not share as it is."""

    id: str
    change: Literal["added", "removed", "changed"]
    #: Where it stands, or stood.
    section: str
    #: Versions in the first and in the second context; None where it is not in it.
    before: int | None
    after: int | None
    #: The newest commit between the two heads that changed it; None where none did.
    commit: CommitView | None
    #: All of these, oldest first. Commits that only note uses or confirmations are left out.
    commits: tuple[CommitView, ...]
    why: str


class ContextDifference(Value):
    """What differs between two contexts."""

    first: str
    second: str
    #: Whether both have the same bytes.
    same: bool
    #: Added, then removed, then changed; each by id.
    items: tuple[ContextDiffItem, ...]
    #: What was asked differently, by name: (first, second).
    inputs: Mapping[str, tuple[Any, Any]]
