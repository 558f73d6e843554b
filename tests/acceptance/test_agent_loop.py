"""The tools of an agent, for a loop that somebody writes by hand over any chat API."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, InvalidInput, Memory
from keepward.mcp.profiles import tool_set

DOCS = Path(__file__).parents[2] / "docs" / "howto" / "agent-loop.md"


@pytest.fixture
def agent(opened: Callable[..., Memory]) -> Any:
    with opened("loop", actor=Actor.agent("orion")) as memory:
        yield memory


class Scripted:
    """A chat API that says what was written for it, and keeps what it was sent."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.replies, self.sent = list(replies), []

    def __call__(self, *, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        self.sent.append(json.loads(json.dumps({"messages": messages, "tools": tools})))
        return self.replies.pop(0)


def calls(*wanted: tuple[str, Any]) -> dict[str, Any]:
    made = [{"id": f"call-{n}", "name": name, "arguments": given} for n, (name, given) in enumerate(wanted)]
    return {"role": "assistant", "content": None, "tool_calls": made}


@pytest.mark.promise("D25")
def test_the_loop_of_the_documentation_remembers_and_answers(agent: Memory) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(block.strip().splitlines()) <= 17
    names: dict[str, Any] = {}
    exec(compile(block, str(DOCS), "exec"), names)
    chat = Scripted(
        calls(("remember", json.dumps({"text": "Ana prefers tabs", "tier": "archival", "source": "user_message"}))),
        calls(("recall", {"query": "what does Ana prefer"}), ("recal", {"query": "x"}), ("recall", "{")),
        {"role": "assistant", "content": "Tabs."},
    )
    assert names["answer"](agent, chat, "How does Ana indent?") == "Tabs."
    told = [each["content"] for each in chat.sent[-1]["messages"] if each["role"] == "tool"]
    assert told[0].startswith("committed")
    assert "Ana prefers tabs" in told[1]
    assert "did you mean recall?" in told[2]
    assert told[3] == "arguments must be a JSON object"


@pytest.mark.promise("B84")
def test_the_tools_are_those_of_the_server_as_schemas(agent: Memory) -> None:
    made = agent.tools()
    assert json.loads(json.dumps(made)) == made
    assert [set(each) for each in made] == [{"name", "description", "input_schema"}] * 8
    assert [each["name"] for each in made] == [each.name for each in tool_set("default").tools]
    assert [each["name"] for each in agent.tools(profile="readonly")] == [
        *("recall", "get_context", "history", "pending", "status")
    ]
    with pytest.raises(InvalidInput, match="did you mean readonly"):
        agent.tools(profile="read_only")  # type: ignore[arg-type]


@pytest.mark.promise("B81")
def test_what_the_tool_remembers_is_stable_and_has_no_term(agent: Memory) -> None:
    done = agent.call_tool("remember", {"text": "The ferry leaves at six"})
    record = agent.get(done.data["id"])
    assert (record.tier.value, record.kind.value, record.stability.value) == ("archival", "fact", "stable")
    assert record.expires_at is None


def test_a_call_gives_text_and_the_same_as_data(agent: Memory) -> None:
    done = agent.call_tool("remember", {"text": "The ferry leaves at six", "tier": "archival", "metadata": {"n": 1}})
    assert (done.ok, done.data["outcome"]) == (True, "committed")
    assert agent.get(done.data["id"]).metadata == {"n": 1}
    assert json.loads(json.dumps(done.to_dict()))["data"] == done.data
    found = agent.call_tool("recall", {"query": "when does the ferry leave"})
    assert found.data["hits"][0]["metadata"] == {"n": 1}
    assert "The ferry leaves at six" in found.text


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("forgett", {}, "did you mean forget?"),
        ("remember", {"text": "x", "teir": "core"}, "did you mean `tier`?"),
        ("remember", {"text": "x", "tier": "archivall"}, "did you mean archival?"),
        ("remember", {"text": 5}, "`text` is a text"),
        ("remember", [1], "object"),
        ("remember", "[1]", "arguments must be a JSON object"),
        ("history", {"id": "nobody"}, ""),
    ],
)
def test_wrong_tool_call_gets_an_answer_the_model_can_read(agent: Memory, name: str, arguments: Any, says: str) -> None:
    done = agent.call_tool(name, arguments)
    assert (done.ok, done.data, says in done.text) == (False, {}, True)
    assert agent.list_memories() == []


@pytest.mark.promise("D25")
def test_model_output_through_an_owner_handle_counts_as_the_agents(owner: Memory) -> None:
    done = owner.call_tool("remember", {"text": "Ship it", "tier": "core", "key": "mission", "confidence": 0.9})
    assert (done.ok, done.data["outcome"]) == (True, "quarantined")
    kept = owner.call_tool("remember", {"text": "The ferry leaves at six", "tier": "archival"})
    assert owner.get(kept.data["id"]).trust.label == "agent"


@pytest.mark.promise("D25")
def test_no_tool_decides(agent: Memory) -> None:
    names = {each["name"] for one in ("default", "readonly") for each in agent.tools(profile=one)}  # type: ignore[arg-type]
    assert names == {"recall", "remember", "revise", "forget", "get_context", "history", "pending", "status"}


def test_tools_need_no_sdk() -> None:
    script = "import sys; sys.modules['mcp'] = None; from keepward import Memory; m = Memory.open(':memory:');"
    script += "print(len(m.tools()), m.call_tool('status').ok)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("8 True", "")
