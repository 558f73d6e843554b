"""Resources and prompts, read by the SDK's own client in both eras."""

from __future__ import annotations

import json

import pytest
from mcp.shared.exceptions import MCPError
from mcp_made import ERAS, ORDER, call, opened, served, talk

from keepward import Actor


@pytest.fixture
def owner(tmp_path):
    with opened(tmp_path) as memory:
        memory.remember("Ship the app before Easter", tier="core", key="mission")
        yield memory


@pytest.fixture
def server(agent):
    return served(agent)


def read(server, uri, era="auto"):
    return talk(server, lambda client: client.read_resource(uri), era=era).contents[0]


def refused(server, uri, era="auto"):
    async def script(client):
        with pytest.raises(MCPError) as fault:
            await client.read_resource(uri)
        return fault.value.error

    return talk(server, script, era=era)


@pytest.mark.parametrize("era", ERAS)
def test_the_resources_with_one_address_are_listed(server, era):
    listed = talk(server, lambda client: client.list_resources(), era=era)
    assert [each.uri for each in listed.resources] == ["memory://core", "memory://snapshot/shared"]


@pytest.mark.promise("Z47")
def test_the_families_of_resources_are_listed(server):
    listed = talk(server, lambda client: client.list_resource_templates())
    assert [each.uri_template for each in listed.resource_templates] == [
        "memory://snapshot/{scope}",
        "memory://items/{id}",
        "memory://receipts/{id}",
    ]


def test_a_memory_is_read_complete(owner, server):
    record = owner.list_memories(tiers=["core"])[0]
    assert json.loads(read(server, f"memory://items/{record.id}").text)["trust"] == "owner"


def test_agent_reads_the_snapshot_of_its_own_scope(owner):
    owner.remember("Orion runs at night", scope="/agents/orion/tasks/42", tier="archival", stability="permanent")
    server = served(owner.as_actor(Actor.agent("orion")).at(scope="/agents/orion/tasks/42"))
    listed = talk(server, lambda client: client.list_resources()).resources[1].uri
    assert "Orion runs at night" in read(server, listed).text


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("scope", ["other", "%2Fagents%2Fother%2Ftasks%2F1"])
def test_the_snapshot_of_another_agents_scope_is_not_there(owner, scope, era):
    mine = served(owner.as_actor(Actor.agent("claude")).at(scope="/agents/claude"))
    assert "no such visible resource" in refused(mine, f"memory://snapshot/{scope}", era).message


def test_a_memory_of_another_scope_is_not_there(owner):
    found = owner.at(scope="/agents/other").remember("The launch bird is the heron", tier="archival").records[0]
    mine = served(owner.as_actor(Actor.agent("claude")).at(scope="/agents/claude"))
    assert "there is no memory" in refused(mine, f"memory://items/{found.id}").message


def test_a_receipt_of_another_scope_is_not_there(owner):
    receipt = owner.at(scope="/agents/other").remember("The launch bird is the heron", tier="archival").receipt
    mine = served(owner.as_actor(Actor.agent("claude")).at(scope="/agents/claude"))
    assert "there is no receipt" in refused(mine, f"memory://receipts/{receipt.id}").message


@pytest.mark.promise("T22")
def test_a_quarantined_memory_has_no_address(agent, server):
    held = agent.remember("Ship the zeppelin", tier="archival", stability="permanent")
    assert "there is no memory" in refused(server, f"memory://items/{held.item.steps[0].after.id}").message


@pytest.mark.promise("T22")
def test_a_quarantined_text_is_in_no_resource(agent, server):
    held = agent.remember("Ship the zeppelin", tier="core", key="mission")
    uris = ("memory://core", "memory://snapshot/shared", f"memory://receipts/{held.receipt.id}")
    assert [uri for uri in uris if "zeppelin" in read(server, uri).text] == []


@pytest.mark.parametrize(
    "uri",
    ["memory://nothing", "memory://items/%00", "file:///etc/passwd"],
)
def test_unknown_resource_address_is_a_protocol_error(server, uri):
    assert refused(server, uri).code == -32602


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("Z47")
def test_the_prompts_are_listed(server, era):
    listed = talk(server, lambda client: client.list_prompts(), era=era)
    assert [each.name for each in listed.prompts] == ["compile_context", "review_pending"]


def prompt(server, name, given=None):
    result = talk(server, lambda client: client.get_prompt(name, given or {}))
    return result.messages[0].content.text


def test_a_compiled_context_precedes_the_task(server):
    text = prompt(server, "compile_context", {"objective": "plan the week"})
    assert text.index("Ship the app before Easter") < text.index("plan the week")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("compile_context", {}),
        ("compile_context", {"objective": "x", "budget_tokens": "many"}),
        ("approve", {}),
    ],
)
def test_prompt_that_cannot_be_built_is_a_protocol_error(server, name, given):
    async def script(client):
        with pytest.raises(MCPError) as fault:
            await client.get_prompt(name, given)
        return fault.value.error.code

    assert talk(server, script) == -32602


@pytest.mark.promise("F10")
def test_reviewing_shows_what_waits_and_decides_nothing(owner, agent, server):
    agent.remember("Ship the zeppelin", tier="core", key="mission")
    text = prompt(server, "review_pending")
    assert ("Ship the zeppelin" in text, len(owner.pending())) == (True, 1)


@pytest.mark.promise("T22")
def test_reviewing_does_not_hand_an_order_to_the_model(server):
    call(server, "remember", {"text": ORDER})
    assert "evil.example" not in prompt(server, "review_pending")
