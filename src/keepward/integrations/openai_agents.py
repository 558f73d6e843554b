"""The session of the OpenAI Agents SDK over a handle on memories: a conversation whose items are messages of a session.

An item is an event of the session with the item as its fields, found by what is said in it: other surfaces recall it
and read it in the session. Needs the extra ``openai-agents``.

Invariants
(1) Items come back as they went in, in their order. Those of one call are stored together or not at all.
(2) What is taken back is retired: it can be restored, and the journal has it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from agents import SessionSettings
from agents.memory import SessionABC
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from keepward.integrations import emit_warnings
from keepward.integrations.messages import message_fields, run_shielded, session_messages
from keepward.integrations.namespaces import key_of
from keepward.memory import Memory

#: Most items that are stored together.
MAX_ITEMS_PER_WRITE = 500


class KeepwardSession(SessionABC):
    """One conversation at the scope of a handle, under its id."""

    def __init__(
        self, session_id: str, mem: Memory, session_settings: SessionSettings | dict[str, Any] | None = None
    ) -> None:
        self.session_id, self.memory = session_id, mem
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        self._name, self._closed = key_of(session_id), False

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items, oldest first; with a limit the newest so many."""
        self._check()
        most = resolve_session_limit(limit, self.session_settings)
        records = await asyncio.to_thread(session_messages, self.memory, self._name, most)
        return [each.metadata for each in reversed(records)]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Add items behind the others.

        Raises:
            NotStored: a gate refused one of them, and none is stored.
            TypeError: one of them is no JSON, and none is stored.
        """
        self._check()
        if items:
            await run_shielded(self._add, list(items))

    async def pop_item(self) -> Any | None:
        """Take the newest item back and return it; None where there is none."""
        self._check()
        return await run_shielded(self._pop)

    async def clear_session(self) -> None:
        """Take all items back."""
        self._check()
        await run_shielded(self._clear)

    def close(self) -> None:
        """Use this session no more: every later call is a RuntimeError. The handle stays open."""
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise RuntimeError(f"{type(self).__name__} is closed")

    def _add(self, items: list[Any]) -> None:
        json.dumps(items)  # what is none is a TypeError, as in every session of the SDK
        items = [message_fields(self.memory, self._name, dict(item), item, item.get("role")) for item in items]
        for start in range(0, len(items), MAX_ITEMS_PER_WRITE):
            outcomes = self.memory.remember_many(
                items[start : start + MAX_ITEMS_PER_WRITE], mode="atomic", reason="messages of a session"
            )
            emit_warnings(outcomes[:1])

    def _pop(self) -> Any | None:
        for record in session_messages(self.memory, self._name, 1):
            emit_warnings([self.memory.forget(record.id, reason="taken back")])
            return record.metadata
        return None

    def _clear(self) -> None:
        records = session_messages(self.memory, self._name)
        if records:
            outcome, _ = self.memory.forget_many([each.id for each in records], reason="the session was cleared")
            emit_warnings([outcome] if outcome else [])
