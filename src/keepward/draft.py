"""Drafts: changes that are collected in a ``with`` block and proposed together at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

import msgspec

from keepward.core import change as changes
from keepward.core.change import (
    UNSET,
    AccessName,
    Append,
    Change,
    ContentTypeName,
    Insert,
    KindName,
    Replace,
    SensitivityName,
    SourceName,
    StabilityName,
    TierName,
)
from keepward.core.proposal import Outcome
from keepward.core.value import Data, Duration
from keepward.errors import Conflict
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

    def insert(
        self,
        text: str,
        *,
        tier: TierName | None = None,
        kind: KindName | None = None,
        key: str | None = None,
        scope: str | None = None,
        subject: str | None = None,
        category: str | None = None,
        tags: Sequence[str] = (),
        content_type: ContentTypeName = "text",
        blob: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        source: SourceName | None = None,
        evidence: Sequence[str] = (),
        derived_from: Sequence[str] = (),
        confidence: float | None = None,
        importance: float | None = None,
        ttl: Duration | None = None,
        stability: StabilityName | None = None,
        sensitivity: SensitivityName | None = None,
        access: AccessName | None = None,
        session: str | None = None,
        speaker: str | None = None,
        job: str | None = None,
        aliases: Sequence[str] = (),
        occurred_at: datetime | str | None = None,
        consent: bool = False,
        vector: Sequence[float] | None = None,
        if_version: int | None = None,
    ) -> str:
        """Stage a new memory with the fields of ``Memory.remember``; return its future id."""
        # Every argument is a field of the memory.
        return self._insert(text, _changed_fields(locals(), Insert))

    def _insert(self, text: str, fields: Mapping[str, Any]) -> str:
        change = self._make_insert(text, fields)
        self.stage(change)
        return change.id

    def replace(
        self,
        memory_id: str,
        text: str = UNSET,
        *,
        if_version: int | None = None,
        category: str | None = UNSET,
        subject: str | None = UNSET,
        tags: Sequence[str] = UNSET,
        metadata: Mapping[str, Any] | None = UNSET,
        source: SourceName | None = None,
        evidence: Sequence[str] = UNSET,
        speaker: str | None = UNSET,
        occurred_at: datetime | str | None = UNSET,
        confidence: float | None = None,
        importance: float | None = None,
        sensitivity: SensitivityName | None = None,
        ttl: Duration | None = UNSET,
        consent: bool = False,
    ) -> None:
        """Stage new text or fields for a memory."""
        self._edit(Replace, id=memory_id, text=text, **_changed_fields(locals(), Replace))

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
        self._edit(Append, id=memory_id, text=text, **_changed_fields(locals(), Append))

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


def _changed_fields(arguments: Mapping[str, Any], kind: type[Data]) -> dict[str, Any]:
    """Return the arguments, without id and text, that are fields of a change and differ from its defaults."""
    fields = (field for field in msgspec.structs.fields(kind) if field.name not in {"id", "text"})
    return {
        field.name: value
        for field in fields
        if (value := arguments[field.name]) is not field.default and value != field.default
    }
