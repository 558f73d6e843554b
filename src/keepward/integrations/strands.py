"""A memory store of Strands Agents over a handle on memories, for its ``MemoryManager``.

Needs the extra ``strands``.

Invariants
(1) A refused or quarantined write is an error, which the tool ``add_memory`` reports to the model; a changed one is a
    warning.
(2) Messages are added once, however often a batch of them is sent again: each has an id made of its session, number
    and text.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

from strands.memory import MemoryEntry, MemoryStore

from keepward.core.memory import Record
from keepward.core.messages import Added
from keepward.integrations import emit_notes, require_all_stored, text_with_origin
from keepward.integrations.messages import run_shielded
from keepward.integrations.namespaces import key_of
from keepward.memory import Memory

#: Most memories that a search returns unless it is said otherwise.
DEFAULT_MAX_RESULTS = 10


class KeepwardMemoryStore(MemoryStore):
    """What is remembered in reach of a handle.

    ``session`` names the conversation that messages are added to, and ``subject`` whom it is about: the user. With
    ``extraction`` messages are added by ``Memory.add``, which stores a fact if a user asks to remember it.
    """

    def __init__(
        self,
        mem: Memory,
        *,
        name: str = "keepward",
        description: str | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: Any = None,
        session: str | None = None,
        subject: str | None = None,
    ) -> None:
        if not name.strip():
            raise ValueError("name must not be empty")
        self.memory, self.name, self.description, self.writable = mem, name, description, writable
        self.max_search_results = None if max_search_results is None else _checked(max_search_results)
        self.extraction, self.session, self.subject = extraction, session, subject

    async def search(self, query: str, options: Any = None) -> list[MemoryEntry]:
        """Return what bears on a query, best first, with id, score and trust of each in its metadata."""
        asked = (options or {}).get("max_search_results")
        limit = _checked(asked) if asked is not None else self.max_search_results or DEFAULT_MAX_RESULTS
        if not any(map(str.isalnum, query)):
            return []
        hits = (await asyncio.to_thread(self.memory.recall, query, limit=limit)).hits
        return [
            MemoryEntry(
                content=text_with_origin(each.memory),
                metadata={
                    **each.memory.metadata,
                    "id": each.memory.id,
                    "score": round(each.score, 4),
                    "trust": each.memory.trust.label,
                },
            )
            for each in hits
        ]

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> Record:
        """Remember a text; the same text again strengthens what is there.

        Raises:
            NotStored: a gate refused it, or holds it for a person.
            ValueError: the store takes no writes, or there is no text.
        """
        self._writes()
        if not content.strip():
            raise ValueError("content must not be empty")
        outcome = await run_shielded(
            self.memory.remember, content, kind="fact", tier="archival", metadata=metadata or {}, reason="added"
        )
        return require_all_stored([outcome], stacklevel=2)[0]

    async def add_messages(self, messages: list[Any], context: Any = None) -> Added:
        """Add messages to the session, with the facts in them; a quarantined or refused one is a warning."""
        self._writes()
        numbers = getattr(context, "sequence_numbers", None) or range(len(messages))
        talk = []
        for message, number in zip(messages, numbers, strict=True):
            text = "\n\n".join(block["text"] for block in message["content"] if block.get("text"))
            digest = sha256(f"{self.session}\n{number}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
            talk.append({"role": message["role"], "content": text, "id": digest})
        name = None if self.session is None else key_of(self.session)
        added = await run_shielded(self.memory.add, talk, session=name, subject=self.subject)
        emit_notes((*added.turns, *added.facts), stacklevel=3)
        return added

    def _writes(self) -> None:
        if not self.writable:
            raise ValueError("the store is not writable")


def _checked(limit: int) -> int:
    if limit < 1:
        raise ValueError("max_search_results must be at least 1")
    return limit
