"""Bodies of proposals: many changes in one call, and drafts.

Each kind of change has the fields of its class in ``model.change``; a new memory those of ``remember``.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from keepward.http.bodies import (
    MOST,
    Appended,
    Body,
    Edited,
    Id,
    Moved,
    NewMemory,
    ReadLine,
    Share,
    Text,
    Ttl,
    Version,
    Why,
    told,
)
from keepward.model.change import (
    Append,
    Archive,
    Change,
    Move,
    Promote,
    Reinforce,
    Replace,
    Restore,
    Retire,
    Supersede,
)


class _Op(Body):
    makes: ClassVar[type[Any]]
    id: Id

    def change(self) -> Change:
        """Return what is asked for, as data."""
        made: Change = self.makes(**self.given("op"))
        return made


class InsertOp(NewMemory):
    """Remember something new."""

    op: Literal["insert"]


class ReplaceOp(Edited, _Op):
    """Give a memory new text or fields."""

    makes = Replace
    op: Literal["replace"]


class AppendOp(Appended, _Op):
    """Add text to a memory."""

    makes = Append
    op: Literal["append"]


class SupersedeOp(_Op):
    """Mark a memory as replaced by another."""

    makes = Supersede
    op: Literal["supersede"]
    by: Id
    if_version: Version | None = None


class MoveOp(Moved, _Op):
    """Put a memory in another tier or scope, or under another key."""

    makes = Move
    op: Literal["move"]


class PromoteOp(_Op):
    """Raise a memory to lasting knowledge."""

    makes = Promote
    op: Literal["promote"]
    text: Text
    if_version: Version | None = None


class RetireOp(_Op):
    """Stop a memory from holding; it can be restored."""

    makes = Retire
    op: Literal["retire"]
    if_version: Version | None = None


class ArchiveOp(_Op):
    """Put a memory away; it can be restored."""

    makes = Archive
    op: Literal["archive"]
    if_version: Version | None = None


class RestoreOp(_Op):
    """Bring back what had ended."""

    makes = Restore
    op: Literal["restore"]
    ttl: Ttl | None = None
    if_version: Version | None = None


class ReinforceOp(_Op):
    """Confirm a memory."""

    makes = Reinforce
    op: Literal["reinforce"]
    gain: Share = 0.0
    confirms: bool = True


Op = InsertOp | ReplaceOp | AppendOp | SupersedeOp | MoveOp | PromoteOp | RetireOp | ArchiveOp | RestoreOp | ReinforceOp
Ops = Annotated[list[Annotated[Op, Field(discriminator="op")]], Field(min_length=1, max_length=MOST)]


class Edit(Body):
    """One proposal of one or many changes, carried out, held or refused together."""

    reason: Why
    session: ReadLine | None = None
    changes: Ops
    mode: Literal["atomic"] = "atomic"


class Begin(Body):
    """A draft to be."""

    reason: Annotated[str, Field(max_length=1000), told("Why.", minLength=1, pattern=r"\S")]
    session: ReadLine | None = None


class Stage(Body):
    """Changes to add to a draft."""

    changes: Ops
