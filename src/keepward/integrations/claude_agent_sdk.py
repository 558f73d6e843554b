"""Keep the transcripts of the Claude Agent SDK in Keepward: `SessionStore` of the SDK, on a handle.

An entry is an event of the session with the entry as its fields, found by what a person or the model said in it. The
answer of a tool is stored, but has no text to find. Needs the extra ``claude-agent-sdk``.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any

from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
)

from keepward.core.memory import Record
from keepward.errors import StaleVersion
from keepward.integrations import require_stored
from keepward.integrations.messages import message_fields, run_shielded, session_messages
from keepward.integrations.namespaces import key_of, segment_of, to_scope
from keepward.memory import Memory

_TAG = "claude-session"
_HEADER: Any = {"tags": [_TAG], "tier": "archival", "kind": "fact", "content_type": "structured", "if_version": 0}
#: Most entries that are stored together: a filter takes so many ids.
MAX_ENTRIES_PER_WRITE = 64


class KeepwardSessionStore(SessionStore):
    """Stores transcripts below the scope of a handle. Each project of the SDK has a scope of its own.

    An entry that comes again with its ``uuid`` is stored once. A secret in an entry is replaced by a marker.
    """

    def __init__(self, mem: Memory) -> None:
        self.memory = mem

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Store a batch of entries behind the others, all of them or none.

        Raises:
            NotStored: a gate refused or quarantined one of them.
        """
        await run_shielded(self._append, key, [dict(each) for each in entries])

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries of a transcript, oldest first; None if there is no transcript."""
        found: Any = await asyncio.to_thread(self._load, key)
        return found  # type: ignore[no-any-return]

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project, each with the time of its newest entry."""
        return await asyncio.to_thread(self._sessions, project_key)

    async def delete(self, key: SessionKey) -> None:
        """Retire a transcript, and with a session those of its agents; they can be restored."""
        await run_shielded(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the names of the other transcripts of a session, such as those of its agents."""
        own = self._project(key["project_key"])
        found = await asyncio.to_thread(lambda: list(_headers(own, session_id=key["session_id"])))
        return [each.metadata["subpath"] for each in found if each.metadata["subpath"]]

    def _project(self, name: str) -> Memory:
        try:
            segment_of(name)
        except ValueError:
            # The SDK makes names from paths, which may be longer than a part of a scope.
            name = f"project-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"
        return self.memory.at(scope=to_scope(self.memory.scope, [name]))

    def _append(self, key: SessionKey, entries: list[dict[str, Any]]) -> None:
        own, session = self._project(key["project_key"]), _session_of(key)
        for start in range(0, len(entries), MAX_ENTRIES_PER_WRITE):
            batch = entries[start : start + MAX_ENTRIES_PER_WRITE]
            ids = [each["uuid"] for each in batch if each.get("uuid")]
            stored = session_messages(own, session, len(ids), where={"uuid": {"$in": ids}}) if ids else []
            known = {each.metadata["uuid"] for each in stored}
            new = [each for each in batch if each.get("uuid") not in known]
            if not new:
                continue
            try:
                self._write(own, key, new)
            except StaleVersion:
                # Another process made the session in between.
                self._write(own, key, new)

    @staticmethod
    def _write(own: Memory, key: SessionKey, entries: list[dict[str, Any]]) -> None:
        session, subpath = _session_of(key), key.get("subpath", "")
        with own.draft(reason="a session went on") as draft:
            if not list(_headers(own, session_id=key["session_id"], subpath=subpath)):
                header = {"session_id": key["session_id"], "subpath": subpath}
                draft.insert("", key=key_of(f"{_TAG}:{session}"), metadata=header, **_HEADER)
            for each in entries:
                said, speaker = _said(each, is_main=not subpath)
                draft.insert(**message_fields(own, session, each, said, speaker))
        require_stored(draft.outcome)

    def _load(self, key: SessionKey) -> list[dict[str, Any]] | None:
        messages = session_messages(self._project(key["project_key"]), _session_of(key))
        return [each.metadata for each in reversed(messages)] or None

    def _sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        own = self._project(project_key)
        sessions = [each.metadata["session_id"] for each in _headers(own, subpath="")]
        newest = ((name, session_messages(own, key_of(name), 1)) for name in sessions)
        return [
            {"session_id": name, "mtime": int(records[0].created_at.timestamp() * 1_000)}
            for name, records in newest
            if records
        ]

    def _delete(self, key: SessionKey) -> None:
        own = self._project(key["project_key"])
        which = {"subpath": key["subpath"]} if key.get("subpath") else {}
        records: list[Record] = []
        for header in _headers(own, session_id=key["session_id"], **which):
            session = _session_of({"project_key": "", **header.metadata})
            records += (header, *session_messages(own, session))
        if records:
            require_stored(own.forget_many([each.id for each in records], reason="a session was deleted")[0])


def _session_of(key: SessionKey) -> str:
    """Return the name of the session in which a transcript is."""
    return key_of("/".join(filter(None, (key["session_id"], key.get("subpath", "")))))


def _headers(own: Memory, **fields: str) -> Iterator[Record]:
    yield from own.list_memories(tags=[_TAG], scopes=[own.scope], where=fields, limit=None)


def _said(entry: dict[str, Any], *, is_main: bool) -> tuple[list[str], str]:
    """Return what was said in an entry, and who said it; a message of the user may be the answer of a tool."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [
        str(each.get("text", ""))
        for each in (parts if isinstance(parts, list) else [])
        if isinstance(each, dict) and each.get("type") == "text"
    ]
    if not texts or entry.get("type") not in {"user", "assistant"} or entry.get("isMeta"):
        return [], "tool"
    # An agent is asked by the model that started it.
    return texts, "user" if entry["type"] == "user" and is_main else "assistant"
