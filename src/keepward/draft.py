"""Drafts: changes that are collected in a ``with`` block and proposed together at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Unpack

from keepward.core import change as changes
from keepward.core.change import (
    UNSET,
    Change,
    ChangedFields,
    Insert,
    NewFields,
    Replace,
    SourceName,
    TierName,
)
from keepward.core.proposal import Outcome
from keepward.core.value import Duration
from keepward.errors import Conflict
from keepward.operations import shows_fields
from keepward.services import arguments


class Draft:
    """Collected changes.

    Nothing is checked or visible before the block ends; after it, the draft takes no more changes.
    """

    _ended = False

    def __init__(
        self,
        propose: Callable[..., Outcome],
        reason: str,
        session: str | None,
        make_insert: Callable[[str, Mapping[str, Any]], Insert],
    ) -> None:
        """Collect changes for a handle, whose method ``propose`` takes them.

        ``make_insert`` returns the change that inserts a memory with a text and fields.
        """
        self._propose, self._reason, self._session = propose, reason, session
        self._make_insert = make_insert
        self._changes: list[Change] = []
        #: Outcome of the proposal; None until the block has ended without an error.
        self.outcome: Outcome | None = None

    @shows_fields
    def insert(
        self,
        text: str,
        **fields: Unpack[NewFields],
    ) -> str:
        """Stage a new memory with the fields of ``Memory.remember``; return its future id."""
        return self._insert(text, fields)

    def _insert(self, text: str, fields: Mapping[str, Any]) -> str:
        change = self._make_insert(text, fields)
        self.stage(change)
        return change.id

    @shows_fields
    def replace(
        self,
        memory_id: str,
        text: str = UNSET,
        *,
        if_version: int | None = None,
        **fields: Unpack[ChangedFields],
    ) -> None:
        """Stage new text or fields for a memory."""
        self._edit(Replace, id=memory_id, text=text, if_version=if_version, **fields)

    def append(
        self,
        memory_id: str,
        text: str,
        *,
        if_version: int | None = None,
        source: SourceName | None = None,
        evidence: Sequence[str] = (),
        confidence: float | None = None,
        consent: bool = False,
    ) -> None:
        """Stage an addition."""
        fields = {"source": source, "evidence": evidence, "confidence": confidence, "consent": consent}
        self._edit(changes.Append, id=memory_id, text=text, if_version=if_version, **fields)

    def retire(self, memory_id: str, *, if_version: int | None = None) -> None:
        """Stage a retirement."""
        self._edit(changes.Retire, id=memory_id, if_version=if_version)

    def move(
        self,
        memory_id: str,
        *,
        tier: TierName = UNSET,
        scope: str = UNSET,
        key: str | None = UNSET,
        if_version: int | None = None,
    ) -> None:
        """Stage a move to another tier, scope or key."""
        self._edit(changes.Move, id=memory_id, tier=tier, scope=scope, key=key, if_version=if_version)

    def supersede(self, memory_id: str, by: str) -> None:
        """Stage the replacement of one memory by another."""
        self._edit(changes.Supersede, id=memory_id, by=by)

    def promote(self, memory_id: str, text: str) -> None:
        """Stage a promotion to permanent knowledge."""
        self._edit(changes.Promote, id=memory_id, text=text)

    def restore(self, memory_id: str, *, ttl: Duration | None = None, if_version: int | None = None) -> None:
        """Stage the restoration of an inactive memory; ``ttl`` is the new time to live of an expired one."""
        self._edit(changes.Restore, id=memory_id, ttl=ttl, if_version=if_version)

    def reinforce(self, memory_id: str, *, gain: float = 0.0) -> None:
        """Stage the confirmation of a memory."""
        self._edit(changes.Reinforce, id=memory_id, gain=gain)

    def stage(self, change: Change) -> None:
        """Stage a change.

        Raises:
            Conflict: the block has ended.
        """
        self._require_open()
        self._changes.append(change)

    def _edit(self, change_type: type[Any], **given: Any) -> None:
        self.stage(arguments.require_content(arguments.build_change(change_type, given)))

    def discard(self) -> None:
        """Drop all staged changes."""
        self._changes.clear()

    def __len__(self) -> int:
        return len(self._changes)

    def _require_open(self) -> None:
        if self._ended:
            raise Conflict("the block of this draft has ended; begin another draft")

    def __enter__(self) -> Draft:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        if kind is None and self._changes:
            self.outcome = self._propose(self._changes, reason=self._reason, session=self._session)
