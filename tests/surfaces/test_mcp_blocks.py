"""The profile `blocks`: core blocks read, appended to and replaced, alone and as edits made together."""

from __future__ import annotations

from time import monotonic

import pytest
from mcp_made import call, opened, served, talk, told

from keepward import Access, Actor, Conflict, NotFound, Policy, Tier
from keepward.mcp.blocks import block_tools
from keepward.mcp.profiles import profile
from keepward.mcp.server import build
from keepward.state import DRAFT, MOST_OWN, Drafts, ServerState

APPEND = Policy(access={**Policy().access, Tier.CORE: Access.APPEND})


@pytest.fixture
def owner(tmp_path):
    with opened(tmp_path) as memory:
        memory.remember("Ship the app before Easter", tier="core", key="mission")
        yield memory


@pytest.fixture
def server(agent):
    return served(agent, "blocks")


def text_of(owner, label="mission"):
    return {record.key: record.text for record in owner.find(tiers=["core"])}.get(label)


def test_every_block_is_read_with_its_size_and_access(server):
    found = call(server, "read_blocks").structured_content["blocks"]
    assert [(each["label"], each["text"], each["access"]) for each in found] == [
        ("persona", "", "read_only"),
        ("human", "", "approval"),
        ("operating_rules", "", "approval"),
        ("mission", "Ship the app before Easter", "approval"),
        ("workspace_state", "", "approval"),
    ]


@pytest.mark.promise("F10")
def test_an_addition_waits_for_a_person(owner, server):
    result = call(server, "block_append", {"label": "mission", "text": "and tell nobody", "reason": "asked"})
    assert (result.structured_content["outcome"], text_of(owner)) == ("quarantined", "Ship the app before Easter")


def test_an_approved_addition_stands_on_a_line_of_its_own(owner, server):
    held = call(server, "block_append", {"label": "mission", "text": "and tell nobody", "reason": "asked"})
    owner.approve(held.structured_content["proposal"])
    assert text_of(owner) == "Ship the app before Easter\nand tell nobody"


def test_under_an_access_of_append_an_addition_is_committed(tmp_path):
    with opened(tmp_path, APPEND) as owner:
        owner.remember("Ship the app", tier="core", key="mission")
        server = served(owner.acting_as(Actor.agent("claude")), "blocks")
        result = call(server, "block_append", {"label": "mission", "text": "and tell nobody", "reason": "asked"})
    assert result.structured_content["outcome"] == "committed"


def test_a_passage_is_replaced(owner, server):
    asked = {"label": "mission", "old": "Easter", "new": "summer", "reason": "moved"}
    owner.approve(call(server, "block_replace", asked).structured_content["proposal"])
    assert text_of(owner) == "Ship the app before summer"


@pytest.mark.parametrize("old", ["Christmas", "e", ""])
def test_a_passage_that_does_not_stand_there_exactly_once_is_an_error(server, old):
    result = call(server, "block_replace", {"label": "mission", "old": old, "new": "x", "reason": "r"})
    assert (result.is_error, "exactly once" in told(result)) == (True, True)


def test_an_empty_block_can_be_written(owner, server):
    asked = {"label": "operating_rules", "new": "Answer in French", "reason": "asked"}
    owner.approve(call(server, "block_replace", asked).structured_content["proposal"])
    assert text_of(owner, "operating_rules") == "Answer in French"


def test_a_block_that_policy_does_not_know_is_refused(server):
    result = call(server, "block_append", {"label": "diary", "text": "x y", "reason": "r"})
    assert result.structured_content["outcome"] == "refused"


def test_the_persona_is_refused(server):
    result = call(server, "block_append", {"label": "persona", "text": "You are free", "reason": "r"})
    assert result.structured_content["outcome"] == "refused"


def test_a_change_at_once_needs_a_reason(server):
    result = call(server, "block_append", {"label": "mission", "text": "x"})
    assert (result.is_error, "`reason`" in told(result)) == (True, True)


def begun(server):
    return call(server, "begin_edits", {"reason": "tidying"}).structured_content["edits"]


def test_edits_made_together_are_one_proposal(owner, server):
    edits = begun(server)
    call(server, "block_append", {"label": "mission", "text": "and tell nobody", "edits": edits})
    call(server, "block_replace", {"label": "mission", "old": "Easter", "new": "summer", "edits": edits})
    call(server, "block_append", {"label": "operating_rules", "text": "Answer in French", "edits": edits})
    call(server, "finish_edits", {"edits": edits})
    owner.approve(owner.pending()[0].id)
    assert (text_of(owner), text_of(owner, "operating_rules"), len(owner.pending())) == (
        "Ship the app before summer\nand tell nobody",
        "Answer in French",
        0,
    )


def test_collected_edits_are_not_visible_and_not_proposed(owner, server):
    edits = begun(server)
    result = call(server, "block_append", {"label": "mission", "text": "and tell nobody", "edits": edits})
    assert (result.structured_content["outcome"], owner.pending(), text_of(owner)) == (
        "staged",
        [],
        "Ship the app before Easter",
    )


def test_discarded_edits_are_gone(owner, server):
    edits = begun(server)
    call(server, "block_append", {"label": "mission", "text": "x y", "edits": edits})
    call(server, "discard_edits", {"edits": edits})
    assert (call(server, "finish_edits", {"edits": edits}).is_error, owner.pending()) == (True, [])


def test_edits_that_hold_nothing_are_an_error(server):
    assert "no change" in told(call(server, "finish_edits", {"edits": begun(server)}))


def test_edits_of_a_block_that_changed_meanwhile_are_stale_and_kept(owner, server):
    edits = begun(server)
    call(server, "block_replace", {"label": "mission", "new": "Rest", "edits": edits})
    owner.update_by_key("mission", "Ship two apps", tier="core")
    first = call(server, "finish_edits", {"edits": edits})
    discarded = call(server, "discard_edits", {"edits": edits})
    assert (first.is_error, discarded.structured_content) == (True, {"discarded": 1})


def test_edits_of_one_agent_are_unknown_to_another(owner):
    drafts = Drafts(ServerState(monotonic))
    name = drafts.begin(owner.acting_as(Actor.agent("claude")), "mine").id
    with pytest.raises(NotFound):
        drafts.get(owner.acting_as(Actor.agent("other")), name)


def test_edits_end_after_an_hour(agent):
    now = [0.0]
    drafts = Drafts(ServerState(lambda: now[0]))
    name = drafts.begin(agent, "mine").id
    now[0] = DRAFT.ttl_s
    with pytest.raises(NotFound, match="for an hour"):
        drafts.get(agent, name)


def test_who_begins_too_many_edits_is_told(agent):
    drafts = Drafts(ServerState(monotonic))
    for _ in range(MOST_OWN):
        drafts.begin(agent, "mine")
    with pytest.raises(Conflict, match="finish or discard"):
        drafts.begin(agent, "one more")


def test_a_text_that_is_collected_is_in_no_file(tmp_path, agent):
    server = served(agent, "blocks")
    edits = begun(server)
    call(server, "block_append", {"label": "mission", "text": "zeppelin heron", "edits": edits})
    assert [file for file in tmp_path.rglob("*") if file.is_file() and b"zeppelin heron" in file.read_bytes()] == []


def test_edits_begun_at_one_server_of_a_store_are_finished_at_another(owner, agent):
    drafts = Drafts(ServerState(monotonic))
    first, second = (build(profile("blocks", drafts), lambda _: agent) for _ in "ab")
    edits = begun(first)
    call(second, "block_append", {"label": "mission", "text": "and tell nobody", "edits": edits})
    call(first, "finish_edits", {"edits": edits})
    owner.approve(owner.pending()[0].id)
    assert text_of(owner) == "Ship the app before Easter\nand tell nobody"


def test_two_servers_have_drafts_of_their_own(agent):
    first, second = served(agent, "blocks"), served(agent, "blocks")
    assert call(second, "finish_edits", {"edits": begun(first)}).is_error


def test_the_profile_names_its_tools():
    assert [tool.name for tool in block_tools()] == [
        "read_blocks",
        "block_append",
        "block_replace",
        "update_identity",
        "begin_edits",
        "finish_edits",
        "discard_edits",
    ]


def test_the_queue_is_shown_beside_the_blocks(server):
    listed = talk(server, lambda client: client.list_tools())
    assert {"pending", "status"} <= {tool.name for tool in listed.tools}
