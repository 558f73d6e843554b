"""A draft: changes that are collected in a ``with`` block and proposed together at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from keepward.core.change import KEEP, AppendFields, Change, Insert, InsertFields, ReplaceFields, TierName
from keepward.core.proposal import Outcome
from keepward.core.value import Duration
from keepward.errors import Conflict
from keepward.verbs import write

if TYPE_CHECKING:
    from keepward.calls.use import Use


class Draft:
    """Changes being collected; nothing is judged or visible until the block ends, and then it takes no more."""

    _over = False

    def __init__(
        self, handle: Use, reason: str, session: str | None, made: Callable[[str, Mapping[str, Any]], Insert]
    ) -> None:
        """Collect for a handle; ``made`` gives the change that makes a memory, by its text and fields."""
        self._handle, self._reason, self._session, self._made = handle, reason, session, made
        self._changes: list[Change] = []
        #: What became of it; None until the block has ended without an error.
        self.outcome: Outcome | None = None

    def insert(self, text: str, **fields: Unpack[InsertFields]) -> str:
        """Stage a new memory with the fields of ``Memory.remember``; return the id it will have."""
        change = self._made(text, fields)
        self.stage(change)
        return change.id

    def replace(
        self, memory_id: str, text: str = KEEP, *, if_version: int | None = None, **fields: Unpack[ReplaceFields]
    ) -> None:
        """Stage new text or fields for a memory."""
        self.stage(
            write.Revise(memory_id=memory_id, text=text, values=fields, if_version=if_version, reason="").change()
        )

    def append(
        self, memory_id: str, text: str, *, if_version: int | None = None, **fields: Unpack[AppendFields]
    ) -> None:
        """Stage an addition."""
        self.stage(
            write.Append(memory_id=memory_id, text=text, values=fields, if_version=if_version, reason="").change()
        )

    def retire(self, memory_id: str, *, if_version: int | None = None) -> None:
        """Stage a retirement."""
        self.stage(write.Forget(memory_id=memory_id, if_version=if_version, reason="").change())

    def move(
        self,
        memory_id: str,
        *,
        tier: TierName = KEEP,
        scope: str = KEEP,
        key: str | None = KEEP,
        if_version: int | None = None,
    ) -> None:
        """Stage a move to another tier, scope or key."""
        where: Any = {"tier": tier, "scope": scope, "key": key}
        self.stage(write.Move(memory_id=memory_id, values=where, if_version=if_version, reason="").change())

    def supersede(self, memory_id: str, by: str) -> None:
        """Stage that a memory is replaced by another."""
        self.stage(write.Supersede(memory_id=memory_id, by=by, reason="").change())

    def promote(self, memory_id: str, text: str) -> None:
        """Stage a promotion to lasting knowledge."""
        self.stage(write.Promote(memory_id=memory_id, text=text, reason="").change())

    def restore(self, memory_id: str, *, ttl: Duration | None = None, if_version: int | None = None) -> None:
        """Stage that an ended memory comes back; ``ttl`` gives an expired one a new term."""
        self.stage(write.Restore(memory_id=memory_id, ttl=ttl, if_version=if_version, reason="").change())

    def reinforce(self, memory_id: str, *, gain: float = 0.0) -> None:
        """Stage that a memory is confirmed."""
        self.stage(write.Reinforce(memory_id=memory_id, gain=gain).change())

    def stage(self, change: Change) -> None:
        """Stage a change as it is.

        Raises:
            Conflict: the block has ended.
        """
        self._see_open()
        self._changes.append(change)

    def discard(self) -> None:
        """Drop everything that was staged."""
        self._changes.clear()

    def __len__(self) -> int:
        return len(self._changes)

    def _see_open(self) -> None:
        if self._over:
            raise Conflict("the block of this draft has ended: nothing more would be proposed; begin another draft")

    def __enter__(self) -> Draft:
        self._see_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if kind is None and self._changes:
            self.outcome = self._handle.propose(self._changes, reason=self._reason, session=self._session)
