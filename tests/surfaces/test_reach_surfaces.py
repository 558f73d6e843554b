"""What lies in another agent's scope is not found by id: every route with a name in its path, every MCP tool, the CLI.

Nor are the words of what is sensitive shown by any of them to who may not read it; they say which right it takes.

The tables are complete: a route or a tool that is in none of them fails this module.
"""

from __future__ import annotations

import pytest
from http_fixtures import HttpTestServer
from mcp_made import call, served, told

from keepward import Actor
from keepward.mcp.profiles import PROFILE_NAMES, tool_set

WORD = "Quillzephyr"
TEXT = f"The lighthouse keeper of Sagres is called {WORD}"
WHY = {"reason": "x"}
#: (method, path) of what names something in its path, with the body of a call; ``{id}`` is a memory there.
NAMED = {
    ("GET", "/memory/blame/{name}"): None,
    ("GET", "/memory/commits/{commit_id}"): None,
    ("GET", "/memory/receipts/{id}"): None,
    ("POST", "/memory/receipts/{id}/replay"): None,
    ("GET", "/memory/receipts/{id}/diff/{other}"): None,
    ("GET", "/memory/items/{id}"): None,
    ("PATCH", "/memory/items/{id}"): {**WHY, "text": "Nobody keeps it"},
    ("DELETE", "/memory/items/{id}"): None,
    ("GET", "/memory/items/{id}/history"): None,
    ("GET", "/memory/items/{id}/lineage"): None,
    ("POST", "/memory/rollback/{commit_id}"): {},
    ("POST", "/memory/items/{id}/archive"): WHY,
    ("POST", "/memory/items/{id}/append"): {**WHY, "text": "and is old"},
    ("POST", "/memory/items/{id}/move"): {**WHY, "scope": "/agents/orion/tasks/1"},
    ("POST", "/memory/items/{id}/restore"): WHY,
    ("POST", "/memory/items/{id}/reinforce"): WHY,
    ("POST", "/memory/items/{id}/promote"): {**WHY, "text": TEXT},
    ("POST", "/memory/items/{id}/supersede"): {**WHY, "by": "{id}"},
}
#: What names no memory, or takes rights that no agent has.
OTHER = {
    "/memory/blobs/{ref}",
    "/memory/certificates/{name}", "/memory/quarantine/{id}",
    "/memory/quarantine/{id}/approve", "/memory/quarantine/{id}/amend",
    "/memory/quarantine/{id}/reject", "/memory/quarantine/{id}/reopen", "/memory/tokens/{id}",
    "/memory/jobs/{name}/run", "/memory/keys/{key}",
}  # fmt: skip
#: Tools that take an id.
TOOLS = {"revise": {"text": "Nobody keeps it", "reason": "x"}, "forget": {"reason": "x"}, "history": {}}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = HttpTestServer(tmp_path_factory.mktemp("reach"))
    yield made
    made.memory.close()


@pytest.fixture(scope="module")
def made(world):
    return placed(world)


def placed(world):
    """Store a memory in another agent's scope; return the ids of the memory, its commit and a receipt."""
    other = world.memory.as_actor(Actor.agent("orion")).at(scope="/agents/orion")
    outcome = other.remember(TEXT, tier="archival", key="keeper")
    return {
        "id": outcome.records[0].id,
        "commit_id": outcome.commit.id,
        "receipt": other.context("Who keeps the lighthouse?").receipt.id,
    }


def asked(client, method, path, body, made):
    receipts = path.startswith("/memory/receipts")
    name = made["receipt"] if receipts else made["id"]
    url = path.format(id=name, name=made["id"], commit_id=made["commit_id"], other=made["receipt"])
    given = {key: made["id"] if value == "{id}" else value for key, value in body.items()} if body is not None else None
    etag = client.get("/memory/status").json()["etag"] if "rollback" in path else '"1"'
    bound = method in {"DELETE", "PATCH"} or "rollback" in path
    return client.request(
        method,
        url,
        params={"reason": "x"} if method == "DELETE" else None,
        headers={"If-Match": etag} if bound else {},
        **({"json": given} if given is not None else {}),
    )


def test_every_route_with_a_name_is_in_a_table(world):
    named = {
        (method.upper(), path) for path, methods in world.api["paths"].items() if "{" in path for method in methods
    }
    assert {pair for pair in named if pair not in NAMED and pair[1] not in OTHER} == set()


@pytest.mark.parametrize(("method", "path"), NAMED)
def test_an_agent_above_does_not_find_it_over_http(world, made, method, path):
    answer = asked(world.bearer("lyra"), method, path, NAMED[method, path], made)
    # Of a rollback it may read that nothing is undone.
    assert answer.status_code in {404, 403}, answer.text
    assert WORD not in answer.text
    assert world.memory.get(made["id"]).version == 1


@pytest.mark.parametrize(("method", "path"), NAMED)
def test_the_agent_of_the_scope_finds_it_over_http(tmp_path, method, path):
    world = HttpTestServer(tmp_path)
    made = placed(world)
    answer = asked(world.bearer("orion", scope="/agents/orion"), method, path, NAMED[method, path], made)
    world.memory.close()
    assert answer.status_code not in {400, 401, 404, 405, 422, 428}, answer.text


def test_every_tool_that_takes_an_id_is_in_the_table():
    tools = [tool for name in PROFILE_NAMES for tool in tool_set(name).tools]
    assert {tool.name for tool in tools if "id" in tool.as_dict()["inputSchema"]["properties"]} == set(TOOLS)


@pytest.mark.parametrize("tool", TOOLS)
def test_an_agent_above_does_not_find_it_over_mcp(world, made, tool):
    agent = world.memory.as_actor(Actor.agent("lyra"))
    result = call(served(agent), tool, {"id": made["id"], **TOOLS[tool]})
    assert result.is_error
    assert WORD not in told(result)
    assert world.memory.get(made["id"]).version == 1


@pytest.mark.parametrize(
    "command",
    [["get"], ["history"], ["blame"], ["revise", "Nobody keeps it", "--reason", "x"], ["forget", "--reason", "x"]],
    ids=lambda each: each[0],
)
def test_agent_above_does_not_find_it_at_the_cli(world, made, run, monkeypatch, command):
    monkeypatch.setenv("KEEPWARD_HOME", str(world.folder / "home"))
    verb, *rest = command
    ran = run(verb, made["id"], *rest, "--db", str(world.path), "--as", "agent:lyra")
    assert ran.code != 0
    assert "there is no memory" in ran.err
    assert WORD not in ran.out + ran.err
    assert world.memory.get(made["id"]).version == 1


NOTICE = "ask the owner for a token with the right `sensitive`"
#: Routes that answer, without the words of what is withheld.
ANSWERED = {
    "/memory/commits/{commit_id}", "/memory/receipts/{id}", "/memory/receipts/{id}/diff/{other}",
}  # fmt: skip


@pytest.fixture(scope="module")
def vault(tmp_path_factory):
    """A store with a sensitive memory."""
    made = HttpTestServer(tmp_path_factory.mktemp("vault"))
    yield made
    made.memory.close()


@pytest.fixture(scope="module")
def secret(vault):
    outcome = vault.memory.remember(TEXT, tier="archival", key="keeper", sensitivity="sensitive")
    return {
        "id": outcome.records[0].id,
        "commit_id": outcome.commit.id,
        "receipt": vault.memory.context("Who keeps the lighthouse?", include_sensitive=True).receipt.id,
    }


@pytest.mark.parametrize(("method", "path"), NAMED)
def test_an_agent_without_the_right_reads_nothing_sensitive_over_http(vault, secret, method, path):
    answer = asked(vault.bearer("lyra"), method, path, NAMED[method, path], secret)
    assert (answer.status_code, WORD in answer.text) == (200 if path in ANSWERED else 403, False)
    assert NOTICE in answer.text or "receipts" in path or "rollback" in path
    assert vault.memory.get(secret["id"]).version == 1


@pytest.mark.parametrize("tool", TOOLS)
def test_an_agent_without_the_right_reads_nothing_sensitive_over_mcp(vault, secret, tool):
    agent = vault.memory.as_actor(Actor.agent("lyra"))
    result = call(served(agent), tool, {"id": secret["id"], **TOOLS[tool]})
    assert (result.is_error, WORD in told(result), NOTICE in told(result)) == (True, False, True)


@pytest.mark.parametrize(
    "command", [["get"], ["history"], ["blame"], ["show"], ["diff", "0", "1"], ["log"]], ids=lambda each: each[0]
)
def test_agent_without_the_right_reads_nothing_sensitive_by_cli(vault, secret, run, monkeypatch, command):
    monkeypatch.setenv("KEEPWARD_HOME", str(vault.folder / "home"))
    verb, *rest = command
    named = {"show": [secret["commit_id"]], "diff": [], "log": []}.get(verb, [secret["id"]])
    ran = run(verb, *named, *rest, "--db", str(vault.path), "--as", "agent:lyra")
    assert WORD not in ran.out + ran.err
    assert verb == "log" or NOTICE in " ".join((ran.out + ran.err).split())


def test_agent_changes_its_own_newly_sensitive_memory_over_http(world):
    agent = world.bearer("lyra", can=["read", "propose", "consent"])
    body = {"text": "Write to q.zephyr@mail.example.org", "tier": "archival", "consent": True}
    made = agent.post("/memory/items", json=body).json()["records"][0]["id"]
    assert agent.get(f"/memory/items/{made}").status_code == 403
    change = {"reason": "x", "importance": 0.2}
    for match, status in (('"1"', 403), ("*", 201)):
        answer = agent.patch(f"/memory/items/{made}", json=change, headers={"If-Match": match})
        assert (answer.status_code, "q.zephyr" in answer.text) == (status, False)
    assert agent.delete(f"/memory/items/{made}", params={"reason": "x"}).status_code == 201
    assert world.memory.get(made).status.value == "retired"
