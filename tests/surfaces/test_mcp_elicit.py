"""Asking the person in the chat: only where policy says so, and never about what they should not decide there."""

from __future__ import annotations

import json

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from mcp_made import ERAS, ORDER, call, opened, served, talk, told

from keepward import Actor, Policy, Tier
from keepward.mcp.server import decision_of

ALLOWED = Policy(chat_approval=(Tier.CORE, Tier.ARCHIVAL))
MISSION = {"text": "Ship the zeppelin", "tier": "core", "key": "mission"}


class Person:
    """Answers every question with one decision, and keeps the questions."""

    def __init__(self, action="accept", **content):
        self.action, self.content, self.asked = action, content or None, []

    async def __call__(self, context, params):
        self.asked.append(params.message)
        return types.ElicitResult(action=self.action, content=self.content)


@pytest.fixture
def owner(tmp_path):
    with opened(tmp_path, ALLOWED) as memory:
        yield memory


@pytest.fixture
def server(owner, agent):
    return served(agent, reviewer=owner.acting_as(Actor.reviewer("ann (chat)")))


def asked(server, person, arguments=MISSION, tool="remember", era="auto"):
    return call(server, tool, arguments, era=era, elicitation_callback=person)


@pytest.mark.parametrize("era", ERAS)
def test_what_the_person_approves_is_committed(owner, server, era):
    result = asked(server, Person(decision="approve"), era=era)
    assert (result.structured_content["outcome"], [record.text for record in owner.find(tiers=["core"])]) == (
        "committed",
        ["Ship the zeppelin"],
    )


@pytest.mark.parametrize("era", ERAS)
def test_it_is_proposed_once_and_asked_once(owner, server, era):
    person = Person(decision="approve")
    asked(server, person, era=era)
    assert (len(person.asked), len(owner.pending(state=None))) == (1, 1)


@pytest.mark.parametrize("era", ERAS)
def test_what_the_person_rejects_is_discarded(owner, server, era):
    result = asked(server, Person(decision="reject"), era=era)
    assert (result.structured_content["decided"], owner.pending(), owner.find(tiers=["core"])) == ("rejected", [], [])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "person",
    [
        Person(decision="decide later"),
        Person(decision="yes"),
        Person(approve="true"),
        Person(),
        Person(action="decline"),
        Person(action="cancel"),
    ],
    ids=["later", "other word", "other field", "empty", "decline", "cancel"],
)
def test_anything_but_a_plain_decision_leaves_it_waiting(owner, server, person, era):
    result = asked(server, person, era=era)
    assert (result.structured_content["outcome"], len(owner.pending())) == ("quarantined", 1)


def test_the_journal_names_the_person(owner, server):
    asked(server, Person(decision="approve"))
    assert owner.log()[0].details.approved_by == "operator:ann (chat)"


def test_the_person_sees_what_would_be_stored_with_invisible_characters_shown(server):
    person = Person(decision="approve")
    asked(server, person, {**MISSION, "text": "Ship the zep\u00adpelin"})
    assert "zep⟦U+00AD⟧pelin" in person.asked[0]


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_cannot_ask_leaves_it_waiting(owner, server, era):
    assert (call(server, "remember", MISSION, era=era).structured_content["outcome"], len(owner.pending())) == (
        "quarantined",
        1,
    )


@pytest.mark.promise("F10")
def test_as_policy_stands_nobody_is_asked(tmp_path):
    person = Person(decision="approve")
    with opened(tmp_path) as owner:
        server = served(owner.acting_as(Actor.agent("claude")), reviewer=owner.acting_as(Actor.reviewer("ann")))
        asked(server, person)
        assert (person.asked, len(owner.pending())) == ([], 1)


def test_without_a_handle_of_the_persons_nobody_is_asked(agent):
    person = Person(decision="approve")
    asked(served(agent), person)
    assert person.asked == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": ORDER, "tier": "archival"},
        {"text": "Bo is the new boss", "tier": "archival", "key": "boss", "source": "web"},
        {"text": "Always run the tests", "tier": "archival", "kind": "rule", "source": "document", "confidence": 0.9},
    ],
    ids=["an order", "an untrusted source under a key", "an untrusted rule"],
)
@pytest.mark.promise("F10")
def test_some_things_are_decided_in_the_queue_alone(owner, server, arguments):
    person = Person(decision="approve")
    asked(server, person, arguments)
    assert (person.asked, len(owner.pending())) == ([], 1)


def test_a_text_made_from_an_untrusted_one_is_decided_in_the_queue_alone(owner, agent, server):
    page = agent.remember("The page says that Bo runs Acme", tier="archival", source="web").records[0]
    person = Person(decision="approve")
    asked(server, person, {**MISSION, "derived_from": [page.id]})
    assert (person.asked, len(owner.pending())) == ([], 1)


def test_a_tier_that_policy_does_not_name_is_not_asked_about(tmp_path):
    person = Person(decision="approve")
    with opened(tmp_path, Policy(chat_approval=(Tier.ARCHIVAL,))) as owner:
        server = served(owner.acting_as(Actor.agent("claude")), reviewer=owner.acting_as(Actor.reviewer("ann")))
        asked(server, person)
    assert person.asked == []


def test_a_rule_of_the_owners_own_is_not_decided_in_the_chat(tmp_path):
    from keepward import EthicsRule

    rule = EthicsRule(name="no health", pattern="diagnos")
    person = Person(decision="approve")
    with opened(tmp_path, Policy(chat_approval=tuple(Tier), memory_ethics=(rule,))) as owner:
        server = served(owner.acting_as(Actor.agent("claude")), reviewer=owner.acting_as(Actor.reviewer("ann")))
        asked(server, person, {"text": "Ana has a diagnosis", "tier": "archival"})
    assert person.asked == []


def test_a_change_of_the_block_while_the_person_thinks_voids_the_approval(owner, server):
    async def think(context, params):
        owner.remember("Ship nothing", tier="core", key="mission")
        return types.ElicitResult(action="accept", content={"decision": "approve"})

    result = asked(server, think)
    assert ("could not be carried out" in told(result), [r.text for r in owner.find(tiers=["core"])]) == (
        True,
        ["Ship nothing"],
    )


def test_an_answer_that_was_never_asked_for_decides_nothing(owner, agent, server):
    held = agent.remember(**MISSION)
    answers = {"decision": types.ElicitResult(action="accept", content={"decision": "approve"})}
    forged = json.dumps({"proposal": held.item.id, "data": {}, "text": ""})

    async def script(client):
        with pytest.raises(MCPError, match="requestState"):
            await client.session.call_tool("remember", MISSION, input_responses=answers, request_state=forged)
        return len(owner.pending())

    assert talk(server, script, elicitation_callback=Person()) == 1


def test_the_state_of_one_call_does_not_answer_another(owner, server):
    answers = {"decision": types.ElicitResult(action="accept", content={"decision": "approve"})}

    async def script(client):
        first = await client.session.call_tool("remember", MISSION, allow_input_required=True)
        other = {**MISSION, "text": "Ship nothing"}
        with pytest.raises(MCPError, match="requestState"):
            await client.session.call_tool(
                "remember", other, input_responses=answers, request_state=first.request_state
            )
        return len(owner.pending())

    assert talk(server, script, elicitation_callback=Person()) == 1


def test_a_decision_is_one_of_three_words():
    assert [decision_of(content) for content in (None, {}, {"decision": "approve"}, {"decision": 1})] == [
        "decide later",
        "decide later",
        "approve",
        "decide later",
    ]
