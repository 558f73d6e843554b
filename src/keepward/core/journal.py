"""Results of reading, verifying, querying, rolling back and erasing the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import force_setattr

from keepward.core.brief import field_text
from keepward.core.commit import Commit, CommitDetails, EventPosition, Reason, Receipt, Step
from keepward.core.memory import Record
from keepward.core.quotes import Shortened
from keepward.core.value import Data, ListResult, Value


class CommitView(Value):
    """A commit with its details and steps."""

    commit: Commit
    details: CommitDetails
    steps: tuple[Step, ...]
    #: Sentences about what of it does not match its hash or seal, with the commands that help. Damaged steps are not in
    #: ``steps``; a damaged commit and its details are as stored, and may be false.
    damage: tuple[str, ...] = ()


#: What ``damage_note`` says of something that is shown nevertheless.
SHOWN_AS_STORED = "and shown as stored: its actor, time and reason may be false"
SHOWN_AS_LEFT = "and only what is left of it is shown"


def damage_note(what: str, why: str, *, shown: str = "and not shown") -> str:
    """Return a sentence about something damaged, and whether it is shown, with the commands that help."""
    return (
        f"{what} is damaged {shown}: {why.partition(';')[0]}; `keepward verify` names each fault, "
        "`keepward store recover` copies what is intact"
    )


class DamagedCommit(Data):
    """A commit that a list cannot show, because it or a version that it replaced does not match its hash or seal."""

    seq: int
    #: Its id as stored, unchecked.
    id: str
    #: What does not match.
    why: str

    @property
    def note(self) -> str:
        """A sentence about it, with the commands that help."""
        return damage_note(f"commit {self.seq}", self.why)


class CommitPage(ListResult[CommitView]):
    """Visible commits, newest first. A page of large commits is shorter over HTTP."""

    #: ``before`` of the next page; None at the end.
    next_before: int | None = None
    #: Commits of this page that cannot be shown, newest first.
    damaged: tuple[DamagedCommit, ...] = ()
    #: Sentences about these, with the commands that help.
    notes: tuple[str, ...] = ()


class Fault(Data):
    """A failed check."""

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
    #: Sentences about what of this version, or of the version before it, cannot be read; empty if all can.
    damage: tuple[str, ...] = ()


class Versions(ListResult[Version]):
    """The versions of one memory, oldest first."""

    id: str
    #: Numbers of the versions that cannot be shown, because they do not match their seals or are missing.
    damaged: tuple[int, ...] = ()
    #: Sentences about these, with the commands that help.
    notes: tuple[str, ...] = ()


@field_text.register
def _text_of_version(version: Version) -> str:
    return f"commit {version.commit.seq}"


class Difference(Value):
    """One memory in two states; None if it is not active in a state."""

    id: str
    before: Record | None
    after: Record | None


class Differences(ListResult[Difference]):
    """A page of the memories that differ between two states, by id; those with another importance only come last."""

    #: Position of the first item among all that differ, from 0, and their number.
    offset: int = 0
    total: int = 0
    #: Numbers of those ``added``, ``changed``, ``removed``, and of those that differ in ``importance`` and uses only.
    counts: Mapping[str, int] = msgspec.field(default_factory=dict)
    #: Ids of memories that were not compared, because a version does not match its seal.
    withheld: tuple[str, ...] = ()
    #: Sentences about these, with the commands that help.
    notes: tuple[str, ...] = ()


class Conflicting(Data):
    """A later commit that prevents a rollback: it changed the memory, or gave the memory's key to another one."""

    memory_id: str
    seq: int
    commit_id: str


class Rollback(Value):
    """The result of a rollback or of its dry run."""

    applied: bool
    #: Whether the commit had been undone before.
    already: bool
    commit: Commit | None
    receipt: Receipt | None
    #: Id of the receipt, also of the first one when ``already``.
    receipt_id: str | None
    #: Ids of the commits that are undone, newest first.
    undone: tuple[str, ...]
    targets: tuple[Difference, ...]
    conflicts: tuple[Conflicting, ...]
    #: Ids of memories derived from a target, directly or through others. A person should check them.
    dependents: tuple[str, ...]
    #: Names the commits that it undoes and the present versions of their memories; other changes leave it as it is.
    digest: str
    reasons: tuple[Reason, ...] = ()


class Verification(Value):
    """The checks of ``verify`` and their faults."""

    ok: bool
    #: Numbers of checked items by kind.
    checked: dict[str, int]
    #: In the order in which they were found.
    faults: tuple[Fault, ...]
    #: Limits of the verification, such as the origin of the store, in sentences.
    notes: tuple[str, ...] = ()


class Check(Value):
    """One check of ``doctor``."""

    name: str
    ok: bool
    detail: str
    #: What to do if it fails or warns.
    remedy: str = ""
    #: Whether a person should read ``detail`` although the check passed. The health check passes too.
    warning: bool = False


class Selection(Data):
    """The memories to erase: all that any field selects."""

    ids: tuple[str, ...] = ()
    subject: str | None = None
    #: A reference in ``evidence``, an alias, a session, or the name of a source.
    source: str | None = None
    #: Everything in the scopes of this user or about this user.
    user: str | None = None
    #: Whether memories and proposals that cite an erased memory are erased too, directly or through other memories.
    include_citing: bool = False


class Target(Data):
    """A memory to erase."""

    id: str
    #: 0 if it was only proposed.
    versions: int
    #: ``named``; ``copy`` if it says the same; ``quotes`` if it quotes, merges or sums up a target; ``proposed`` if it
    #: is a proposal; ``derived`` or ``cites`` because of ``include_citing``.
    why: str
    #: The beginning of its newest text; empty after the erasure.
    text: str


class Candidate(Data):
    """A memory or proposal that is not erased unless it is selected."""

    id: str
    #: ``derived`` from a target; ``cites`` it as evidence; ``quotes`` it as another user's copy, or shows its blob.
    why: str
    #: The beginning of its newest text; empty in the result of an erasure.
    text: str


class ErasePlan(Value):
    """What an erasure destroys, with the beginning of each text. The result of an erasure has no texts."""

    #: Identifies this plan; 64 hex digits.
    digest: str
    reason: str
    #: A person decides on them. First derived ones, then citing ones, then quoting ones; each group by id.
    candidates: tuple[Candidate, ...] = ()
    #: By id.
    targets: tuple[Target, ...]
    #: Summaries that lose the lines of a target, by id, also in their old versions. They keep their other lines.
    shortened: tuple[Shortened, ...] = ()
    #: Ids of memories derived from a target with a text of their own; select them to erase them too.
    derived: tuple[str, ...]
    #: Ids of other memories that say the same for another user, or show the same blob.
    quoting: tuple[str, ...]
    #: Positions to erase: versions of memories, then details of commits.
    versions: tuple[EventPosition, ...]
    details: tuple[int, ...]
    #: Ids of the receipts and proposals that are rewritten without the erased content.
    receipts: tuple[str, ...]
    proposals: tuple[str, ...]
    #: Kind and version of deleted artefacts, such as ``reranker`` weights trained on a target.
    artefacts: tuple[tuple[str, str], ...]
    #: Numbers of the feedback entries that lose the id of a target.
    feedback: tuple[int, ...] = ()
    #: Blobs to delete, because nothing else refers to them.
    blobs: tuple[str, ...] = ()


class Erased(Value):
    """An applied erasure."""

    plan: ErasePlan
    commit: Commit
    receipt: Receipt


class Selector(Data):
    """The selection of an inquiry: ``source``, ``actor``, ``session``, ``commit`` or ``memory``, and its value."""

    way: str
    value: str

    def __str__(self) -> str:
        return f"{self.way} {self.value}"


class Delivery(Data):
    """A compiled context that contained one of the memories."""

    receipt: str
    #: ISO 8601.
    at: str
    #: ``kind:name`` of the actor who got the context.
    actor: str
    purpose: str
    #: (memory id, version) of its memories, sorted.
    items: tuple[tuple[str, int], ...]


class Impact(Value):
    """What a selection touched. Memories are at their newest version, whatever their status."""

    selector: Selector
    #: In the order in which they were first touched.
    direct: tuple[Record, ...]
    #: Derived from these, directly or through others, by id.
    derived: tuple[Record, ...]
    #: Memories of both kinds whose text another writer has written since; they are in neither list.
    corrected: tuple[Record, ...]
    #: Oldest first.
    contexts: tuple[Delivery, ...]
    #: Ids of pending proposals that the selection made, or that derive from one of these.
    waiting: tuple[str, ...]
    #: Ids of memories and receipts that do not match their seal and could not be read.
    damaged: tuple[str, ...]


class Containment(Value):
    """A containment, or its plan."""

    applied: bool
    impact: Impact
    #: Memories not contained yet, at their newest version: direct ones first, then derived ones.
    items: tuple[Record, ...]
    #: What comes back because a contained text had replaced it, by id: a version of an item, or a superseded memory.
    restored: tuple[Record, ...] = ()
    #: Summaries that lose the lines of what is contained, by id.
    shortened: tuple[Shortened, ...] = ()
    #: Identifies this plan; 64 hex digits.
    digest: str
    #: Sentences on what comes back, and on corrected memories, which stay in use.
    notes: tuple[str, ...] = ()
    commit: Commit | None = None
    receipt: Receipt | None = None


class Origin(Data):
    """The origin of the current value of one field."""

    field: str
    value: Any
    #: Version that brought the value.
    version: int
    #: That version with its commit.
    made: Version
    #: ``kind:name`` of the author; an approver is in ``approved_by``.
    actor: str
    source: str
    approved_by: str | None

    def __post_init__(self) -> None:
        # In JSON, an instant, a trust and a member of a closed set are texts, and a tuple is a list.
        if isinstance(self.value, str | list) and self.field in _RECORD_TYPES:
            force_setattr(self, "value", msgspec.convert(self.value, _RECORD_TYPES[self.field]))


_RECORD_TYPES = {field.name: field.type for field in msgspec.structs.fields(Record)}


class Blame(Value):
    """One memory and the origin of each of its values, in the order of ``Record``."""

    record: Record
    origins: tuple[Origin, ...]
    #: Sentences about versions that cannot be read, with the commands that help. What such a version changed has the
    #: next readable one as its origin.
    notes: tuple[str, ...] = ()


class Contradiction(Value):
    """Two active memories that say nearly the same but differ. Which one is right is not decided."""

    older: Record
    newer: Record
    #: How they differ: number, date, name, unit, negation, quantifier, order, value.
    differs: tuple[str, ...]
    #: 0..1: semantic similarity if both have vectors of the same embedder, else similarity of letters.
    score: float


class Contradictions(Value):
    """Pairs of memories that may contradict each other, closest first."""

    items: tuple[Contradiction, ...]
    #: Number of pairs that were found, before ``limit``.
    total: int
    #: Number of memories that passed the filters.
    compared: int
    #: Whether there may be more pairs, because not all memories that share words were compared with each other.
    is_partial: bool = False
    #: Ids of memories that were not compared: edited outside Keepward, or missing.
    withheld: tuple[str, ...] = ()
    #: Sentences about pairs that are not listed and memories that were not compared, with what helps.
    notes: tuple[str, ...] = ()


class Bisection(Value):
    """The first commit after which a context passes a predicate."""

    commit: CommitView
    #: Number of compiled contexts.
    compiled: int
    #: The text of the context before this commit, and of that after it.
    before: str
    after: str


class ContextDiffItem(Data):
    """One memory that differs between two contexts."""

    id: str
    change: Literal["added", "removed", "changed"]
    #: Its section, now or before.
    section: str
    #: Versions in the first and in the second context; None if it is not in one.
    before: int | None
    after: int | None
    #: The newest commit between the two heads that changed it; None if there is none.
    commit: CommitView | None
    #: All these commits, oldest first, without those that only record uses or confirmations.
    commits: tuple[CommitView, ...]
    why: str


class ContextDifference(Value):
    """The differences between two contexts."""

    first: str
    second: str
    #: Whether both have the same bytes.
    same: bool
    #: Added, then removed, then changed; each by id.
    items: tuple[ContextDiffItem, ...]
    #: Different arguments, by name: (first, second).
    inputs: Mapping[str, tuple[Any, Any]]
    #: Sentences about versions that cannot be read, with the commands that help: their commits are in no item.
    notes: tuple[str, ...] = ()
