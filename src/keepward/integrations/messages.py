"""Messages of a conversation as events of a session, and calls in a thread.

An item is returned unchanged; its index text is stored next to it. A cancelled await ends only after its call has
finished, so that the next write cannot overtake it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from keepward.core.memory import Record, Tier
from keepward.core.principals import SOURCES, Trust
from keepward.integrations.namespaces import index_text
from keepward.memory import Memory

P = ParamSpec("P")
R = TypeVar("R")
_SOURCES = [name for name, source in SOURCES.items() if source.trust >= Trust.AGENT]
#: Fields of an item, and of its parts, that contain text.
_TEXT_FIELDS = ("text", "content", "parts", "output", "arguments", "summary", "refusal", "transcript")


def message_fields(mem: Memory, session: str, item: dict[str, Any], spoken: Any, speaker: str | None) -> dict[str, Any]:
    """Return the arguments of ``remember`` for an item: an event of a session, with the texts of ``spoken``."""
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


def session_messages(mem: Memory, session: str, limit: int | None = None, **filters: Any) -> list[Record]:
    """Return the messages of a session at a handle's scope, newest first; ``filters`` as for ``list_memories``.

    A message from a page, tool, document or import is left out: an item says its own role, which may be ``system``.
    """
    if limit is not None and limit < 1:
        return []
    filters |= {"session": session, "kinds": ["event"], "content_types": ["structured"], "sources": _SOURCES}
    return list(mem.list_memories(**filters, scopes=[mem.scope], limit=limit))


async def run_shielded(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a thread and wait until it has finished, even if the await is cancelled."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as fault:
            cancelled = fault
    if cancelled is None:
        return task.result()
    # Retrieve the exception, so that asyncio does not report it as never retrieved.
    task.exception()
    raise cancelled


def async_method(name: str, part: str = "") -> Any:
    """Return an async method that calls the method of this name, of the object or of a part of it."""

    async def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await run_shielded(getattr(getattr(self, part) if part else self, name), *args, **kwargs)

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
