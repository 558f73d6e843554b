"""The session store of the Claude Agent SDK: its conformance suite, and a transcript that the next process loads."""

from __future__ import annotations

import asyncio
import sys
import warnings
from typing import Any

from claude_agent_sdk import delete_session_via_store, get_session_messages_from_store, list_sessions_from_store
from claude_agent_sdk.testing import run_session_store_conformance

from keepward import Memory
from keepward.integrations import GateWarning
from keepward.integrations.claude_agent_sdk import KeepwardSessionStore

FOLDER = "/srv/editor"
SESSION = "0f8a6f0e-2f1b-4c3d-9a45-0d2f3f1f6a01"
AGENT: Any = {"session_id": SESSION, "subpath": "subagents/agent-1"}
PASSWORD = "the database password is Tr0ub4dor&3x!"
RESULT = "Invoices go to the account 4711 at Northbank."


def entry(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return an entry as Claude Code writes it."""
    return {
        "type": kind,
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "parentUuid": f"00000000-0000-4000-8000-{number - 1:012}" if number > 1 else None,
        "sessionId": SESSION,
        "timestamp": f"2026-11-30T10:00:{number:02}.000Z",
        "cwd": FOLDER,
        "isSidechain": False,
        "message": {"role": kind, "content": content},
        **more,
    }


TALK = [
    {"type": "mode", "mode": "default", "sessionId": SESSION},
    entry(1, "user", "My cat is called Tom."),
    entry(2, "assistant", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "bank.txt"}}]),
    entry(3, "user", [{"type": "tool_result", "tool_use_id": "t1", "content": RESULT}]),
    entry(4, "assistant", [{"type": "text", "text": "Noted."}], usage={"input_tokens": 3, "cost": 0.25, "x": None}),
]


async def remember(mem: Memory, project: str) -> None:
    """Store a transcript, and a second time what was sent again."""
    made = [mem.at(scope=f"/app/conformance/{number}") for number in range(30)]
    await run_session_store_conformance(lambda: KeepwardSessionStore(made.pop()))
    store = KeepwardSessionStore(mem)
    key: Any = {"project_key": project, "session_id": SESSION}
    await store.append(key, TALK[:3])
    await store.append(key, TALK[1:])
    await store.append({"project_key": project, **AGENT}, [entry(1, "user", "Count the files.")])
    assert await store.load(key) == TALK
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        await store.append(key, [entry(5, "user", PASSWORD)])
    assert any(issubclass(each.category, GateWarning) for each in said), said
    long: Any = {"project_key": "-home" + "-folder" * 40, "session_id": SESSION}
    await store.append(long, TALK)
    assert await store.load(long) == TALK


async def recall(mem: Memory, project: str) -> None:
    """Load it after a restart, as the SDK does."""
    store = KeepwardSessionStore(mem)
    messages = await get_session_messages_from_store(store, SESSION, directory=FOLDER)
    assert [each.type for each in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert PASSWORD not in str(messages), "a password was stored"
    (listed,) = await list_sessions_from_store(store, directory=FOLDER)
    assert (listed.session_id, listed.first_prompt) == (SESSION, "My cat is called Tom.")
    assert await store.list_subkeys({"project_key": project, "session_id": SESSION}) == [AGENT["subpath"]]
    own = mem.at(scope=store._project(project).scope)
    said = {each.text: each.speaker for each in own.list_memories(session=SESSION, kinds=["event"], limit=None)}
    assert said["My cat is called Tom."] == "user"
    assert RESULT not in " ".join(said), "a tool's answer was said by somebody"
    assert "Tom" in own.call_tool("recall", {"query": "the cat"}).text
    assert RESULT not in own.context("Where do invoices go?").text
    await delete_session_via_store(store, SESSION, directory=FOLDER)
    assert await store.load({"project_key": project, **AGENT}) is None
    assert await list_sessions_from_store(store, directory=FOLDER) == []


with Memory.open("memory.db", scope="/app") as mem:
    from claude_agent_sdk import project_key_for_directory

    asyncio.run({"remember": remember, "recall": recall}[sys.argv[1]](mem, project_key_for_directory(FOLDER)))
