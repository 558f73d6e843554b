"""Events of clients: what they send on standard input, and the answer that each of them reads.

Invariants
(1) What cannot be read is no event and has no answer: the client goes on as if there were no hook.
(2) An answer adds text to what the model is told, and does nothing else: it blocks nothing and changes no prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal, get_args
from uuid import NAMESPACE_OID, uuid5

EventKind = Literal["start", "prompt", "compact", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFormat:
    """How one client speaks of events."""

    name: str
    #: Its own names of events.
    events: Mapping[str, EventKind]
    #: Of which events the answer may add text.
    adds: frozenset[str]
    #: Whether it names sessions by letters at random, which look like a token: their like would be held as a secret.
    at_random: bool = False


def _client(name: str, events: str, *, adds: int = 2, at_random: bool = False) -> ClientFormat:
    """Return a client by its names of a start, a prompt, a compaction and, where it tells that, an end.

    To the first ``adds`` of them it takes text as an answer.
    """
    names = events.split()
    sorts = dict(zip(names, get_args(EventKind), strict=False))
    return ClientFormat(name=name, events=sorts, adds=frozenset(names[:adds]), at_random=at_random)


CLIENTS: Mapping[str, ClientFormat] = {
    each.name: each
    for each in (
        _client("claude", "SessionStart UserPromptSubmit PreCompact SessionEnd"),
        _client("codex", "SessionStart UserPromptSubmit PreCompact"),
        _client("gemini", "SessionStart BeforeAgent PreCompress SessionEnd"),
        # Named by a plugin of ours: see `opencode.js`.
        _client("opencode", "start prompt compact", at_random=True),
        _client("cursor", "sessionStart beforeSubmitPrompt preCompact sessionEnd", adds=1),
    )
}
_SESSION = ("session_id", "conversation_id", "sessionId")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened in a client."""

    what: EventKind
    #: The client's own name for it; empty where it was not said.
    name: str
    session: str
    #: The folder that is worked in, and its name; the empty text where that was not said.
    folder: str = ""
    project: str = ""
    #: What the user typed.
    prompt: str = ""
    #: Whether what was put in before is gone from what the model reads: a new session, or one that was compacted.
    afresh: bool = False
    #: Whether the answer may add text.
    adds: bool = False


def event_name(client: ClientFormat, what: str) -> str:
    """Return what a client calls an event; the empty text where it has none of that sort."""
    return next((name for name, sort in client.events.items() if sort == what), "")


def parse_event(client: ClientFormat, what: str, data: str) -> Event | None:
    """Return the event that a client wrote; None where it is none that can be used."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    session = next((given[key] for key in _SESSION if isinstance(given.get(key), str) and given[key].strip()), None)
    name = event_name(client, what)
    if session is None or not name:
        return None
    session = str(uuid5(NAMESPACE_OID, session)) if client.at_random else session
    roots = given.get("workspace_roots")
    # Cursor names the folders of its window.
    folder = _text(given, "cwd") or (_text({"": roots[0]}, "") if isinstance(roots, list) and roots else "")
    return Event(
        what=client.events[name],
        name=name,
        session=session.strip()[:200],
        folder=folder,
        project=PurePath(folder).name,
        prompt=_text(given, "prompt"),
        afresh=_text(given, "source") != "resume",
        adds=name in client.adds,
    )


def format_answer(client: ClientFormat, event: Event, text: str) -> str:
    """Return what the client is to read for a text to be added; the empty text where there is nothing to say."""
    if not text or not event.adds:
        return ""
    if client.name == "opencode":
        return text
    if client.name == "cursor":
        return json.dumps({"additional_context": text})
    return json.dumps({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}})


def _text(args: Mapping[str, Any], key: str) -> str:
    value = args.get(key)
    return value if isinstance(value, str) else ""
