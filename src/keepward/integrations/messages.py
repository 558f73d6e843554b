"""Turns of a conversation, as events of a session found by what is said in them; and calls awaited in a thread.

Invariants
(1) An item comes back as it went in; the text beside it is what it is found by.
(2) A cancelled await ends when what it began is over: the next write does not overtake it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from keepward.core.memory import Record, Tier
from keepward.integrations.namespaces import index_text
from keepward.memory import Memory

P = ParamSpec("P")
R = TypeVar("R")
#: Fields of an item, and of the parts of its content, in which something is said.
_TEXT_FIELDS = ("text", "content", "parts", "output", "arguments", "summary", "refusal", "transcript")


def turn_fields(mem: Memory, session: str, item: dict[str, Any], spoken: Any, speaker: str | None) -> dict[str, Any]:
    """Return an item as what ``remember`` takes: an event of a session, found by what is said in ``said``."""
    return {
        "text": index_text(_texts_in(spoken), mem.policy.text_limit[Tier.EPISODIC]),
        "metadata": item,
        "content_type": "structured",
        "kind": "event",
        "tier": "episodic",
        "stability": "stable",
        "session": session,
        "speaker": speaker,
    }


def session_turns(mem: Memory, session: str, limit: int | None = None, **filters: Any) -> list[Record]:
    """Return the turns of a session at a handle's scope, newest first; ``filters`` go to ``list_memories``."""
    if limit is not None and limit < 1:
        return []
    filters |= {"session": session, "kinds": ["event"], "content_types": ["structured"]}
    return list(mem.list_memories(**filters, scopes=[mem.scope], limit=limit))


async def run_shielded(function: Callable[P, R], *given: P.args, **named: P.kwargs) -> R:
    """Call in a thread and wait for it, however often the await is cancelled (2)."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *given, **named))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as fault:
            cancelled = fault
    if cancelled is None:
        return task.result()
    # Seen here, so that nobody is told of an error that nobody waited for.
    task.exception()
    raise cancelled


def async_method(name: str, part: str = "") -> Any:
    """Return a method that carries out the one of this name, of the object or of a part of it; see (2)."""

    async def method(self: Any, *given: Any, **named: Any) -> Any:
        return await run_shielded(getattr(getattr(self, part) if part else self, name), *given, **named)

    return method


def _texts_in(item: Any) -> Iterator[str]:
    if isinstance(item, str):
        yield item
    elif isinstance(item, list):
        for part in item:
            yield from _texts_in(part)
    elif isinstance(item, dict):
        for name in _TEXT_FIELDS:
            yield from _texts_in(item.get(name))
