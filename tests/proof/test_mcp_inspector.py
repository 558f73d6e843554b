"""The Inspector finds nothing to report on any tool, and calls them: on stdio and over HTTP, in both eras."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import node
import pytest
from proof_stage import KEEPWARD, Stage

from keepward.mcp.profiles import PROFILE_NAMES, tool_set

pytestmark = pytest.mark.proof

ERAS = ("legacy", "modern")
LIST = ("--method", "tools/list", "--strict")


def asked(stage: Stage, target: list[str], *options: str, era: str = "modern") -> Any:
    """Run the Inspector's command line once."""
    command = node.command("mcp-inspector", "--cli", "--protocol-era", era, "--format", "json", *options, *target)
    return stage.run(command)


def called(stage: Stage, target: list[str], tool: str, *, era: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool through the Inspector and return the result."""
    options = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    done = asked(stage, target, *options, era=era)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["result"]


def stdio(stage: Stage, name: str = "default") -> list[str]:
    """Return the target that starts our process."""
    # It hands on no environment of its own but a home and a path.
    return [KEEPWARD, "--", "mcp", "--profile", name, "--db", str(stage.store), "--embedder", "none"]


def http(url: str, token: str) -> list[str]:
    """Return the target of a server that runs."""
    return ["--server-url", url, "--transport", "http", "--header", f"Authorization: Bearer {token}"]


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    return Stage(tmp_path_factory.mktemp("inspector"))


@pytest.fixture(scope="module", params=PROFILE_NAMES)
def listed(request, stage):
    """What the Inspector says to the tools of a profile, by transport and era."""
    found = {("stdio", era): asked(stage, stdio(stage, request.param), *LIST, era=era) for era in ERAS}
    with stage.serving(profile=request.param) as url:
        target = http(url, stage.token())
        found |= {("http", era): asked(stage, target, *LIST, era=era) for era in ERAS}
    return request.param, found


def test_a_strict_listing_of_every_profile_is_passed(listed):
    assert {key: done.returncode for key, done in listed[1].items()} == dict.fromkeys(listed[1], 0)


def test_a_strict_listing_of_every_profile_reports_nothing(listed):
    assert {key: done.stderr for key, done in listed[1].items()} == dict.fromkeys(listed[1], "")


@pytest.mark.promise("Z47")
def test_listing_contains_exactly_the_tools_of_the_profile(listed):
    name, found = listed
    names = {key: [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]] for key, done in found.items()}
    assert names == {key: [tool.name for tool in tool_set(name).tools] for key in found}


@pytest.mark.parametrize("era", ERAS)
def test_what_the_inspector_remembers_on_stdio_it_recalls(tmp_path, era):
    stage = Stage(tmp_path)
    called(stage, stdio(stage), "remember", era=era, text="Ana prefers tabs", tier="archival")
    hits = called(stage, stdio(stage), "recall", era=era, query="tabs")["structuredContent"]["hits"]
    assert [hit["text"] for hit in hits] == ["Ana prefers tabs"]


@pytest.mark.parametrize("era", ERAS)
def test_what_the_inspector_remembers_over_http_it_recalls(tmp_path, era):
    stage = Stage(tmp_path)
    with stage.serving() as url:
        target = http(url, stage.token())
        called(stage, target, "remember", era=era, text="Ana prefers tabs", tier="archival")
        hits = called(stage, target, "recall", era=era, query="tabs")["structuredContent"]["hits"]
    assert [hit["text"] for hit in hits] == ["Ana prefers tabs"]


@pytest.mark.promise("Z49")
def test_without_a_token_the_inspector_is_turned_away(stage):
    with stage.serving() as url:
        done = asked(stage, ["--server-url", url, "--transport", "http", "--stored-auth-only"], *LIST)
    assert (done.returncode != 0, re.findall(r'"tools"', done.stdout)) == (True, [])


def test_a_schema_that_some_clients_drop_is_reported(tmp_path):
    # So that silence on ours is worth something: even a warning is told.
    script = Path(tmp_path, "bad.py")
    script.write_text(BAD)
    done = asked(Stage(tmp_path), [str(Path(KEEPWARD).with_name("python")), "--", str(script)], *LIST)
    assert "inputSchema.properties.b" in done.stderr


BAD = """
import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server


async def tools(ctx, params):
    schema = {"type": "object", "properties": {"b": {"$ref": "https://example.org/b.json"}}}
    return types.ListToolsResult(tools=[types.Tool(name="bad", input_schema=schema)])


async def main():
    server = Server("bad", on_list_tools=tools)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


anyio.run(main)
"""
