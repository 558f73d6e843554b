"""A wrong argument of a tool is a sentence that names it, for every argument of every tool; no value is repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest

from keepward import Actor, Conflict, KeepwardError, Memory, NotFound, Unauthorised
from keepward.mcp.profiles import tool_set
from keepward.mcp.tool import Tool
from support.wrong_arguments import Call, Case, arguments_of, cases

#: Python types of the types of a schema.
TYPES: Mapping[str, Any] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list[str], "object": dict[str, Any],
}  # fmt: skip
TOOLS = {tool.name: tool for name in ("default", "blocks") for tool in tool_set(name).tools}
#: Arguments that are right.
RIGHT: Mapping[str, Mapping[str, Any]] = {
    "recall": {"query": "boat"},
    "remember": {"text": "The boat is blue"},
    "revise": {"id": "{id}", "text": "The boat is red"},
    "forget": {"id": "{id}"},
    "get_context": {"objective": "boat"},
    "history": {"id": "{id}"},
    "block_append": {"label": "mission", "text": "Keep the boat dry"},
    "block_replace": {"label": "mission", "new": "Keep the boat dry"},
    "update_identity": {"text": "I keep the boat"},
}
#: What is taken on purpose, by what is wrong, with the reason.
TAKEN: Mapping[str, str] = {
    **dict.fromkeys(
        ("empty", "blank", "None", "empty list", "empty in it", "blank in it"), "models write it for nothing"
    ),
    **dict.fromkeys(("text", "0", "1"), "it can mean one value only"),
    "int": "seconds",
    "unknown in it": "tags and references are the caller's own words",
    "twice in it": "a repeated item counts once",
}
#: Other words for an argument in messages.
WORDS: Mapping[str, str] = {
    "ttl": "time to live",
    "as_of": "past state",
    "occurred_at": "a date",
    "kinds": "kind",
    "label": "key",
    "new": "text",
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("wrong")
    with Memory.open(":memory:", actor=Actor.operator("ada"), config_dir=folder, embedder=None) as made:
        yield made


def hint_of(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    return TYPES[schema.get("type", "string")]


def call_of(memory: Memory, tool: Tool) -> Call:
    stored = memory.remember("The boat is green").id if "id" in tool.input_schema["properties"] else ""
    args = {name: value.format(id=stored) for name, value in RIGHT.get(tool.name, {}).items()}
    types = {name: hint_of(schema) for name, schema in tool.input_schema["properties"].items()}
    agent = memory.as_actor(Actor.agent("mcp"))
    return Call(tool.name, lambda **given: tool.call(agent, given), types, args, memory)


def fault_of(case: Case, call: Call) -> str:
    """Return what is wrong with how a case is answered; empty if nothing is."""
    try:
        answer = call.run(**arguments_of(call, case))
    except (NotFound, Conflict, Unauthorised):
        # The value is usable, and names nothing, an older version, or what the agent may not see.
        return ""
    except KeepwardError as error:
        text = str(error)
    except Exception as raw:
        return f"raw {type(raw).__name__}: {raw}"[:200]
    else:
        if answer.data.get("outcome") != "refused":
            return "" if case.wrong in TAKEN else "taken silently"
        text = answer.text
    repeated = isinstance(case.value, str) and len(case.value.strip()) > 3 and case.value in text
    named = any(word in text for word in (case.argument, WORDS.get(case.argument, case.argument)))
    return f"repeats the value: {text[:200]}" if repeated else "" if named else f"does not name it: {text[:200]}"


@pytest.mark.promise("T30")
@pytest.mark.parametrize("name", TOOLS)
def test_wrong_argument_of_a_tool_is_named(memory: Memory, name: str) -> None:
    call = call_of(memory, TOOLS[name])
    faults = {str(case): fault_of(case, call) for case in cases(call)}
    assert {case: fault for case, fault in faults.items() if fault} == {}
