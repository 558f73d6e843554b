"""The awaited handle: every verb of ``Memory``, for an event loop.

async with await AsyncMemory.open("memory.db") as memory:
    await memory.remember("Ana prefers tabs", source="user_message")
"""

from keepward.aio.drafts import AsyncDraft
from keepward.aio.handle import AsyncMemory

__all__ = ["AsyncDraft", "AsyncMemory"]
