"""Streamable HTTP at exactly `/mcp`: both eras, authentication at each request, sessions of their owner alone."""

from __future__ import annotations

import contextlib

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_made import ERAS
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

from keepward import StoreUnavailable
from keepward.mcp.server import lifespan, routes

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def bearer(owner, name="claude", **options):
    return {"Authorization": f"Bearer {owner.create_token(name, **options).secret}"}


def hosted(owner, script, *, handlers=None, **options):
    """Run a script with a plain HTTP client against an application that holds our routes."""
    found = routes(owner, **options)

    @contextlib.asynccontextmanager
    async def during(app):
        async with lifespan(app.router.routes):
            yield

    app = Starlette(routes=found, lifespan=during, exception_handlers=handlers)

    async def run():
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://testserver") as http,
        ):
            return await script(http)

    return anyio.run(run)


def talk(owner, headers, script, *, era="auto", **options):
    """Run a script with the SDK's client over HTTP."""

    async def run(http):
        http.headers.update(headers)
        transport = streamable_http_client("http://testserver/mcp", http_client=http)
        async with Client(transport, mode=era) as client:
            return await script(client)

    return hosted(owner, run, **options)


@pytest.mark.parametrize("era", ERAS)
def test_the_sdks_client_remembers_and_recalls_over_http(owner, era):
    async def script(client):
        await client.call_tool("remember", {"text": "Ana prefers tabs", "tier": "archival"})
        return await client.call_tool("recall", {"query": "tabs"})

    result = talk(owner, bearer(owner), script, era=era)
    assert [hit["text"] for hit in result.structured_content["hits"]] == ["Ana prefers tabs"]


@pytest.mark.promise("Z49")
def test_without_a_token_nothing_is_answered(owner):
    answer = hosted(owner, lambda http: http.post("/mcp", json=INITIALIZE, headers=ACCEPT))
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("header", ["Bearer kw_nothing", "Basic abc"])
@pytest.mark.promise("Z49")
def test_a_token_that_opens_nothing_is_refused(owner, header):
    answer = hosted(owner, lambda http: http.post("/mcp", json=INITIALIZE, headers={**ACCEPT, "Authorization": header}))
    assert answer.status_code == 401


async def session(http, headers):
    answer = await http.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **headers})
    return {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25", **ACCEPT}


@pytest.mark.promise("Z49")
def test_a_session_is_not_there_for_another_token(owner):
    mine, other = bearer(owner), bearer(owner, "other")

    async def script(http):
        opened_one = await session(http, mine)
        return [
            (await http.post("/mcp", json=LIST, headers={**opened_one, **who})).status_code for who in (other, mine)
        ]

    assert hosted(owner, script) == [404, 200]


def test_a_token_that_is_revoked_ends_its_session(owner):
    issued = owner.create_token("claude")
    headers = {"Authorization": f"Bearer {issued.secret}"}

    async def script(http):
        opened_one = await session(http, headers)
        owner.revoke_token(issued.token.id)
        return (await http.post("/mcp", json=LIST, headers={**opened_one, **headers})).status_code

    assert hosted(owner, script) == 401


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("F10")
def test_an_owners_token_is_an_agent_here(owner, era):
    headers = bearer(owner, "ann", rights="owner")
    result = talk(
        owner,
        headers,
        lambda client: client.call_tool("remember", {"text": "Ship it", "tier": "core", "key": "mission"}),
        era=era,
    )
    assert result.structured_content["outcome"] == "quarantined"


def test_a_host_application_can_say_who_asks(owner):
    from keepward import Actor

    who = owner.as_actor(Actor.agent("host"))
    result = talk(owner, {}, lambda client: client.call_tool("status", {}), authenticate=lambda _: who)
    assert result.structured_content["actor"] == "agent:host"


def test_what_a_host_raises_is_left_to_the_host(owner):
    class Own(Exception):
        pass

    def authenticate(_):
        raise Own

    answer = hosted(
        owner,
        lambda http: http.post("/mcp", json=INITIALIZE),
        authenticate=authenticate,
        handlers={Own: lambda request, fault: PlainTextResponse("mine", 418)},
    )
    assert (answer.status_code, answer.text) == (418, "mine")


def test_too_large_a_body_is_refused(owner):
    big = {**LIST, "params": {"x": "y" * 3_000}}
    answer = hosted(
        owner, lambda http: http.post("/mcp", json=big, headers={**ACCEPT, **bearer(owner)}), body_limit=2_000
    )
    assert answer.status_code == 413


@pytest.mark.parametrize("body", [b"", b"[]", b'{"id":NaN}', b"[" * 5_000])
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_body_that_means_nothing_is_the_callers_fault(owner, body, version):
    headers = {**ACCEPT, **bearer(owner), "Content-Type": "application/json", "MCP-Protocol-Version": version}
    answer = hosted(owner, lambda http: http.post("/mcp", content=body, headers=headers))
    assert 400 <= answer.status_code < 500


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_another_method_gets_the_allowed_ones(owner, version):
    headers = {**ACCEPT, **bearer(owner), "MCP-Protocol-Version": version}
    answer = hosted(owner, lambda http: http.put("/mcp", json={}, headers=headers))
    assert (answer.status_code, "POST" in answer.headers["allow"]) == (405, True)


def test_the_routes_serve_again_after_a_restart_of_the_host(owner):
    found = routes(owner)
    headers = {**ACCEPT, **bearer(owner)}

    async def once():
        app = Starlette(routes=found)
        transport = httpx2.ASGITransport(app=app)
        async with lifespan(found), httpx2.AsyncClient(transport=transport, base_url="http://testserver") as http:
            return (await http.post("/mcp", json=INITIALIZE, headers=headers)).status_code

    assert [anyio.run(once), anyio.run(once)] == [200, 200]


def test_without_a_lifespan_the_host_is_reported_what_is_missing(owner):
    app = Starlette(routes=routes(owner))

    async def run():
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as http:
            await http.post("/mcp", json=INITIALIZE, headers=bearer(owner))

    with pytest.raises(RuntimeError, match="lifespan"):
        anyio.run(run)


def test_a_token_opens_no_more_than_its_share_of_sessions(owner, monkeypatch):
    monkeypatch.setattr("keepward.mcp.server.MAX_SESSIONS_PER_TOKEN", 2)
    mine, other = bearer(owner), bearer(owner, "other")

    async def script(http):
        begun = [(await http.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **mine})) for _ in range(3)]
        statuses = [each.status_code for each in begun]
        statuses.append((await http.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **other})).status_code)
        named = {"Mcp-Session-Id": begun[0].headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        statuses.append((await http.delete("/mcp", headers={**named, **mine})).status_code)
        statuses.append((await http.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **mine})).status_code)
        return statuses

    assert hosted(owner, script) == [200, 200, 429, 200, 200, 200]


def test_a_store_out_of_reach_is_a_json_rpc_error(owner):
    def authenticate(_):
        raise StoreUnavailable("the database does not answer; try again")

    answer = hosted(owner, lambda http: http.post("/mcp", json=INITIALIZE), authenticate=authenticate)
    assert (answer.status_code, answer.json()["error"]["message"]) == (503, "the database does not answer; try again")
