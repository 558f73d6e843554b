"""The session service and the memory service of Google's Agent Development Kit over a handle on memories.

An app and a user are scopes below the handle's. An event is a message of its session, with the event as its fields; the
states of an app, a user and a session are structured memories with a key. Needs the extra ``google-adk``.

Invariants
(1) An event and what it changes in states are one commit, based on the versions that were read.
(2) Of an event that a gate refuses or holds nothing is stored, and the session does not get it: ``NotStored``. What
    became of facts and other memories is a warning.
(3) A message that is stored already is not stored again when its session is added to memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.platform import uuid
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
from google.genai.types import Content, Part

from keepward.core.memory import ContentType, Record
from keepward.errors import NotFound
from keepward.integrations import emit_notes, text_with_origin
from keepward.integrations.adk_sessions import (
    ADK_TAG,
    USER_STATE,
    UserSessions,
    is_unanswered,
    sessions_of,
    speaker_of,
    state_under,
    texts_in,
)
from keepward.integrations.messages import run_shielded
from keepward.integrations.namespaces import key_of
from keepward.memory import Memory

#: Most memories that a search returns, as in the framework's own services.
MAX_RESULTS = 10


class KeepwardSessionService(BaseSessionService):
    """Sessions, their events, and the states of apps, users and sessions."""

    def __init__(self, mem: Memory) -> None:
        self.memory = mem

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Make a session; raise ``AlreadyExistsError`` where there is one of that id."""
        user, name = UserSessions(self.memory, app_name, user_id), (session_id or "").strip() or uuid.new_uuid()
        await run_shielded(user.write, name, state or {})
        return await asyncio.to_thread(user.session, name)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Return a session with its events, oldest first."""
        return await asyncio.to_thread(UserSessions(self.memory, app_name, user_id).session, session_id.strip(), config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of a user, or of all, without their events; the latest one last."""
        found = await asyncio.to_thread(sessions_of, self.memory, app_name, user_id)
        return ListSessionsResponse(
            sessions=sorted(found, key=lambda each: (each.last_update_time, each.user_id, each.id))
        )

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Retire a session and its events; they can be restored."""
        await run_shielded(UserSessions(self.memory, app_name, user_id).delete, session_id.strip())

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state of a user in an app, by names without their prefix."""
        return await asyncio.to_thread(state_under, UserSessions(self.memory, app_name, user_id).own, USER_STATE)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event and what it changes in states, once, however often it is given; see (1), (2)."""
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        user = UserSessions(self.memory, session.app_name, session.user_id)
        if await run_shielded(user.write, session.id, event.actions.state_delta, event):
            await super().append_event(session, event)
            session.last_update_time = event.timestamp
        return event


class KeepwardMemoryService(BaseMemoryService):
    """What is remembered of a user in an app, and what other surfaces keep in that scope and above it."""

    def __init__(self, mem: Memory, *, extract: bool = True) -> None:
        self.memory, self.extract = mem, extract

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session and the facts that they tell."""
        given: Any = {"app_name": session.app_name, "user_id": session.user_id, "session_id": session.id}
        await self.add_events_to_memory(**given, events=session.events)

    async def add_events_to_memory(
        self, *, app_name: str, user_id: str, events: Sequence[Event], session_id: str | None = None, **_: Any
    ) -> None:
        """Add events and the facts that they tell; with ``extract=False`` without the facts."""
        said = [
            {"role": speaker_of(each), "id": each.id, "timestamp": each.timestamp}
            | {"content": "\n".join(texts_in(each.content))}
            for each in events
        ]
        user = UserSessions(self.memory, app_name, user_id)
        asked: dict[str, Any] = {"subject": user.subject, "extract": self.extract}
        added = await run_shielded(
            lambda: user.own.add(said, session=key_of(session_id) if session_id else None, **asked)
        )
        emit_notes((*added.turns, *added.facts))

    async def add_memory(
        self, *, app_name: str, user_id: str, memories: Sequence[MemoryEntry], custom_metadata: Any = None
    ) -> None:
        """Remember facts; their metadata comes back with them."""
        user = UserSessions(self.memory, app_name, user_id)
        items = [
            {
                "text": "\n".join(texts_in(each.content)),
                "metadata": {**each.custom_metadata, **(custom_metadata or {})},
                "occurred_at": each.timestamp,
                "speaker": each.author,
                "subject": user.subject,
            }
            for each in memories
        ]
        emit_notes(await run_shielded(lambda: user.own.remember_many(items, reason="memories of a user")))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the memories for a query, best first, without states and the unanswered message."""
        own = UserSessions(self.memory, app_name, user_id).own
        if not query.strip():
            return SearchMemoryResponse()
        found = await asyncio.to_thread(self._search, own, query)
        return SearchMemoryResponse(memories=[_entry(each) for each in found])

    @staticmethod
    def _search(own: Memory, query: str) -> list[Record]:
        # Two conversations of a user may wait for answers at once.
        hits = own.recall(query, limit=2 * MAX_RESULTS).hits
        near = [each.memory for each in hits if not each.weak and ADK_TAG not in each.memory.tags]
        others = (each for each in near if each.kind != "event" or not (each.text == query or is_unanswered(own, each)))
        return list(islice(others, MAX_RESULTS))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Retire a memory of the user, which can be restored; one of others is left alone."""
        own = UserSessions(self.memory, app_name, user_id).own
        with suppress(NotFound):
            if memory_id and (found := await asyncio.to_thread(own.get, memory_id)).scope == own.scope:
                emit_notes([await run_shielded(lambda: own.forget(found.id, reason="deleted"))])


def _entry(found: Record) -> MemoryEntry:
    own = {} if found.content_type is ContentType.STRUCTURED else found.metadata
    return MemoryEntry(
        id=found.id,
        content=Content(role="user", parts=[Part(text=text_with_origin(found))]),
        author=found.speaker,
        timestamp=found.said_at.isoformat(),
        custom_metadata={"kind": str(found.kind), "trust": found.trust.name.lower(), **own},
    )
