"""Over /mcp a token has the allowance and the time limit that it has over HTTP."""

from __future__ import annotations

import anyio
import httpx2
import pytest
from http_fixtures import BASE
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_made import result_text

from keepward import Memory
from keepward.http.app_state import ServerOptions
from keepward.http.server import build

PIN = "The blue boat has berth 4711"


def calls(world, token, *asked, writes_per_minute=0, profile="default", ask=None):
    """Return the results of tool calls, each a name and arguments, by one token of one server; or of ``ask``."""
    app = build(world.memory, ServerOptions(writes_per_minute=writes_per_minute, mcp_profile=profile))
    app.state.serving.monotonic = world.ticks

    async def run():
        headers = {"Authorization": f"Bearer {token}"}
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url=BASE, headers=headers) as http,
            Client(streamable_http_client(f"{BASE}/mcp", http_client=http), mode="auto") as client,
        ):
            if ask is not None:
                return await ask(client)
            return [await client.call_tool(name, arguments) for name, arguments in asked]

    return anyio.run(run)


def test_a_tool_that_only_reads_has_a_deadline(world, monkeypatch):
    real = Memory.list_memories

    def slow(*given, **options):
        world.ticks.now += 31
        return real(*given, **options)

    monkeypatch.setattr(Memory, "list_memories", slow)
    monkeypatch.setattr(Memory, "status", slow)
    token = world.memory.create_token("claude").secret
    (answer,) = calls(world, token, ("status", {}))
    assert (answer.is_error, "longer than this token may use" in result_text(answer)) == (True, True)


def test_a_resource_has_a_deadline(world, monkeypatch):
    real = Memory.list_memories

    def slow(*given, **options):
        world.ticks.now += 31
        return real(*given, **options)

    monkeypatch.setattr(Memory, "list_memories", slow)
    token = world.memory.create_token("claude").secret

    async def read(client):
        with pytest.raises(MCPError) as caught:
            await client.read_resource("memory://core")
        return str(caught.value)

    assert "longer than this token may use" in calls(world, token, ask=read)


def test_a_tool_that_writes_has_no_deadline(world, monkeypatch):
    real = Memory.remember

    def slow(*given, **options):
        world.ticks.now += 31
        return real(*given, **options)

    monkeypatch.setattr(Memory, "remember", slow)
    token = world.memory.create_token("claude").secret
    (answer,) = calls(world, token, ("remember", {"text": "The kettle is blue"}), profile="default")
    assert (answer.is_error, answer.structured_content["outcome"]) == (False, "committed")
