"""Words of other memory systems at the terminal, over HTTP and as arguments of tools: each error names ours."""

from __future__ import annotations

from typing import Any

import pytest

from keepward import InvalidInput
from keepward.mcp.profiles import tool_set

WORDS = [
    ({"topic_id": "status"}, "key"),
    ({"permission": "familiar"}, "access"),
    ({"provenance": "user_message"}, "source"),
    ({"content": "Ana prefers tabs"}, "text"),
    ({"tier": "canon"}, "stability permanent"),
    ({"kind": "soul"}, "update_identity"),
]


@pytest.mark.parametrize(("fields", "ours"), WORDS)
def test_at_the_terminal(run: Any, fields: dict[str, str], ours: str) -> None:
    options = [part for name, value in fields.items() for part in (f"--{name.replace('_', '-')}", value)]
    ran = run("remember", "Ana prefers tabs", *options)
    assert (ran.code, ours in ran.err.lower()) == (2, True)


@pytest.mark.parametrize(("fields", "ours"), WORDS)
def test_over_http(world: Any, fields: dict[str, str], ours: str) -> None:
    body = {"text": "Ana prefers tabs", **fields} if "content" not in fields else fields
    answer = world.bearer().post("/memory/items", json=body)
    assert (answer.status_code in {400, 422}, ours in answer.text) == (True, True)


@pytest.mark.parametrize(("fields", "ours"), WORDS)
def test_as_an_argument_of_a_tool(fields: dict[str, str], ours: str) -> None:
    remember = next(each for each in tool_set("default").tools if each.name == "remember")
    with pytest.raises(InvalidInput) as fault:
        remember.checked_arguments({"text": "Ana prefers tabs", **fields})
    assert ours in str(fault.value)
