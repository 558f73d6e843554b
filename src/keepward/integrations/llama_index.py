"""A memory block of LlamaIndex over a handle on memories.

The block gives the compiled context for the newest message of the user. Messages that leave the short-term memory are
added to the session, with the facts that they tell. Needs the extra ``llama-index``.

Invariants
(1) A quarantined, refused or changed write is a warning; no chat fails because of it.
"""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemoryBlock

from keepward.core.principals import ROLES
from keepward.integrations import emit_notes
from keepward.integrations.messages import run_shielded
from keepward.integrations.namespaces import key_of
from keepward.memory import Memory

#: What some models call themselves.
_ASSISTANTS = frozenset({"chatbot", "model"})


class KeepwardMemoryBlock(BaseMemoryBlock[str]):
    """What is remembered that bears on a chat, and what becomes of its older messages."""

    name: str = "Memories"
    mem: Memory = Field(exclude=True, description="The handle.")
    subject: str | None = Field(None, description="Whom the chats are about: the user.")
    budget_tokens: int | None = Field(None, description="Most tokens of the block; None: as policy says.")
    extract: bool = Field(default=True, description="Whether facts are taken from what was said.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        said = (each.content for each in reversed(messages or ()) if each.role == "user" and each.content)
        objective = next(said, None)
        if objective is None:
            return ""
        compiled = await asyncio.to_thread(self.mem.context, objective, budget_tokens=self.budget_tokens)
        return compiled.text

    async def _aput(self, messages: list[ChatMessage]) -> None:
        for session, part in groupby(messages, lambda each: each.additional_kwargs.get("session_id")):
            said = []
            for each in part:
                role = "assistant" if each.role.value in _ASSISTANTS else each.role.value
                if each.content and role in ROLES:
                    said.append({"role": role, "content": each.content})
            added = await run_shielded(
                self.mem.add,
                said,
                session=None if session is None else key_of(session),
                subject=self.subject,
                extract=self.extract,
            )
            emit_notes((*added.turns, *added.facts))
