"""Events of clients: their input on stdin, and the answers in each client's format.

Input that cannot be parsed is no event and has no answer; the client continues as without a hook. An answer only adds
text to the model's input: it blocks nothing and changes no prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal, get_args
from uuid import NAMESPACE_OID, uuid5

EventKind = Literal["start", "prompt", "reply", "compact", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFormat:
    """The event format of one client."""

    name: str
    #: Kind of each event, by the client's name of the event.
    events: Mapping[str, EventKind]
    #: Events whose answer may add text.
    adds: frozenset[str]
    #: Field with the assistant's message in the event after it.
    reply: str
    #: Whether its session ids are random letters, which the secrets gate would quarantine as tokens.
    at_random: bool = False


def _client(
    name: str, events: str, *, adds: int = 2, reply: str = "last_assistant_message", at_random: bool = False
) -> ClientFormat:
    """Return a client by its names of the events start, prompt, reply, compaction and, if it has one, end.

    The answers of the first ``adds`` events may add text.
    """
    names = events.split()
    kinds = dict(zip(names, get_args(EventKind), strict=False))
    return ClientFormat(name=name, events=kinds, adds=frozenset(names[:adds]), reply=reply, at_random=at_random)


CLIENTS: Mapping[str, ClientFormat] = {
    client.name: client
    for client in (
        _client("claude", "SessionStart UserPromptSubmit Stop PreCompact SessionEnd"),
        _client("codex", "SessionStart UserPromptSubmit Stop PreCompact"),
        _client("gemini", "SessionStart BeforeAgent AfterAgent PreCompress SessionEnd", reply="prompt_response"),
        # The names of our plugin; see `opencode.js`.
        _client("opencode", "start prompt reply compact", at_random=True),
        _client(
            "cursor", "sessionStart beforeSubmitPrompt afterAgentResponse preCompact sessionEnd", adds=1, reply="text"
        ),
    )
}
#: Most files of one event.
MAX_FILES = 8
_MENTION = re.compile(r"""(?<!\S)@(?:"([^"\n]+)"|((?:~|[A-Za-z]:)?[\w./\\-]*[\w/]))""")
_SESSION = ("session_id", "conversation_id", "sessionId")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """One event of a client."""

    what: EventKind
    #: The client's own name of the event; may be empty.
    name: str
    session: str
    #: The working folder, and its name; empty if unknown.
    folder: str = ""
    project: str = ""
    #: The text that the user typed.
    prompt: str = ""
    #: Paths of the files that the prompt names or that are attached to it, relative to the folder or absolute.
    files: tuple[str, ...] = ()
    #: The message of the assistant.
    reply: str = ""
    #: Whether the model no longer sees the text added earlier: the session is new or was compacted.
    afresh: bool = False
    #: Whether the answer may add text.
    adds: bool = False


def event_name(client: ClientFormat, what: str) -> str:
    """Return a client's name of an event; the empty text if it has no such event."""
    return next((name for name, kind in client.events.items() if kind == what), "")


def parse_event(client: ClientFormat, what: str, data: str) -> HookEvent | None:
    """Return the parsed event of a client, or None if it is not usable."""
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
    return HookEvent(
        what=client.events[name],
        name=name,
        session=session.strip()[:200],
        folder=folder,
        project=PurePath(folder).name,
        prompt=_text(given, "prompt"),
        files=tuple(_files(given)),
        reply=_text(given, client.reply) if client.events[name] == "reply" else "",
        afresh=_text(given, "source") != "resume",
        adds=name in client.adds,
    )


def format_answer(client: ClientFormat, event: HookEvent, text: str) -> str:
    """Return the answer that adds a text, in the client's format; the empty text if there is nothing to add."""
    if not text or not event.adds:
        return ""
    if client.name == "opencode":
        return text
    if client.name == "cursor":
        return json.dumps({"additional_context": text})
    return json.dumps({"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}})


def _files(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files that a prompt names as ``@src/conf.py``, and those that Cursor attaches to it."""
    names = [quoted or plain.rstrip(".") for quoted, plain in _MENTION.findall(_text(given, "prompt"))]
    attached = given.get("attachments")
    names += [
        _text(each, "file_path") or _text(each, "filePath")
        for each in (attached if isinstance(attached, list) else ())
        if isinstance(each, dict) and each.get("type") == "file"
    ]
    yield from list(dict.fromkeys(name for name in names if name))[:MAX_FILES]


def _text(args: Mapping[str, Any], key: str) -> str:
    value = args.get(key)
    return value if isinstance(value, str) else ""
