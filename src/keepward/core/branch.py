"""Branches: their list, their differences from main, and the result of a merge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from keepward.core.commit import Reason
from keepward.core.memory import Record
from keepward.core.value import Instant, ListResult, Value

#: Which side of a conflict a person chose.
Side = Literal["branch", "main"]


class Branch(Value):
    """A branch: changes that main does not have until they are merged."""

    name: str
    #: It takes changes at this scope and below.
    scope: str
    #: ``kind:name`` of who made it.
    author: str
    created_at: Instant
    #: From then on the branch is closed; ``discard_branch`` retires its memories.
    expires_at: Instant | None
    #: The head of the store when it was made.
    base: str
    reason: str = ""
    #: Number of its changes that the reader may see; of a discarded branch, those that it had at its end.
    changes: int = 0
    #: Number of those that left it in a merge.
    merged: int = 0
    #: ``merged`` if no change is left after a merge. It takes further changes until ``closed_at``.
    state: Literal["open", "merged", "discarded", "expired"] = "open"
    #: When it was discarded or expired; None while it takes changes.
    closed_at: Instant | None = None


class BranchPage(ListResult[Branch]):
    """A page of branches: the open ones, oldest first; then, if asked for, the closed ones, newest first."""

    #: Position of the first item among all, from 0, and their number.
    offset: int = 0
    total: int = 0


class BranchChange(Value):
    """What a branch changes: one memory."""

    #: Id of the memory on the branch.
    id: str
    op: Literal["added", "changed", "removed"]
    #: Id of the memory of main that it changes, or whose key it has; None for a new one.
    of: str | None = None
    #: The memory on the branch; its text is hidden from those who may not read it.
    branch: Record
    #: The memory of main that the change began from, and as it is now; None if there was or is none.
    base: Record | None = None
    main: Record | None = None
    #: Whether main changed as well: then a person decides.
    conflict: bool = False
    #: Whether its text reads like an instruction to the model, so that no context and no recall has it.
    instructs: bool = False


class BranchDiff(Value):
    """A page of what a branch changes: conflicts first, else in the order of the changes."""

    branch: Branch
    changes: tuple[BranchChange, ...]
    #: Position of the first change among all, from 0, and their number.
    offset: int = 0
    total: int = 0
    #: Numbers of those ``added``, ``changed`` and ``removed``, and of the ``conflicts`` among them.
    counts: Mapping[str, int] = msgspec.field(default_factory=dict)


class MergedChange(Value):
    """What became of one change in a merge."""

    #: Id of the memory on the branch, and on main.
    id: str
    main_id: str | None = None
    #: Id of the proposal, if it waits for a decision.
    proposal: str | None = None
    text: str
    reasons: tuple[Reason, ...] = ()


class BranchMerge(Value):
    """The result of a merge. What did not land stays on the branch."""

    branch: Branch
    #: On main now.
    landed: tuple[MergedChange, ...] = ()
    #: In the review queue.
    waiting: tuple[MergedChange, ...] = ()
    #: Not taken by a gate.
    refused: tuple[MergedChange, ...] = ()
    #: Given up for what main has.
    dropped: tuple[MergedChange, ...] = ()
    #: Changed on both sides: a person decides on each, with ``take``.
    conflicts: tuple[BranchChange, ...] = ()
    #: Ids of the commits on main; ``rollback`` undoes them.
    commits: tuple[str, ...] = ()
    #: Id of the commit, and of its receipt, by which changes left the branch.
    receipt: str | None = None
