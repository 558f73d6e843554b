"""What is injected every time, and what only when it is relevant (promises A7, A60-A67, A87-A88)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from outcomes import kept

from keepward import Actor, Memory, Policy


@pytest.fixture
def told(owner: Memory) -> Memory:
    """A store with one memory of every sort that a snapshot may or may not hold."""
    kept(owner.remember("Keep the museum open all year", tier="core", key="mission", confidence=1.0))
    kept(owner.remember("The museum stands on the old quay", tier="archival", stability="permanent"))
    kept(owner.update_by_key("current_projects", "Projects: repaint the ferry", tier="archival"))
    kept(owner.remember("The crane is being oiled", kind="state", tier="archival"))
    kept(owner.remember("Tickets cost 4 euros", tier="archival"))
    return owner


@pytest.mark.promise("A7", "A60", "A61", "A62")
def test_snapshot_is_markdown_with_all_invariants_and_named_states(told: Memory) -> None:
    text = told.snapshot().text
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[0] == "## mission"
    for wanted in ("Keep the museum open all year", "on the old quay", "current_projects: Projects: repaint"):
        assert wanted in text


@pytest.mark.promise("A63")
def test_plain_facts_and_unnamed_states_are_not_in_the_snapshot(told: Memory) -> None:
    text = told.snapshot().text
    assert "crane" not in text
    assert "Tickets" not in text


@pytest.mark.promise("A60")
def test_snapshot_over_budget_drops_state_before_core(told: Memory) -> None:
    full = told.snapshot()
    less = told.snapshot(budget_tokens=full.tokens - 1)
    assert less.tokens < full.tokens
    assert "Keep the museum open all year" in less.text
    assert {each.reason.code for each in less.excluded} == {"budget"}


@pytest.mark.promise("A64", "A88")
@pytest.mark.parametrize("objective", ["", "what do tickets cost", "an unrelated question"])
def test_every_prompt_begins_with_the_snapshot(told: Memory, objective: str) -> None:
    text = told.context(objective).text
    assert text.startswith(told.snapshot().text)
    assert "Keep the museum open all year" in text


@pytest.mark.promise("A88")
def test_reminder_pinned_by_the_owner_is_in_every_prompt(mem: Memory, owner: Memory) -> None:
    kept(owner.remember("Olga answers to Ole", tier="archival", stability="permanent", category="reminder"))
    for scope in ("orion", "elysia"):
        assert "Olga answers to Ole" in mem.at(scope=scope).context("an unrelated question").text


@pytest.mark.promise("A65")
def test_a_snapshot_holds_what_is_shared_and_the_readers_own(told: Memory) -> None:
    for name in ("orion", "elysia"):
        kept(told.update_by_key("mood", f"{name} is calm", scope=name, tier="archival"))
        kept(told.remember(f"{name} was born in June", scope=name, tier="archival", stability="permanent"))
    text = told.at(scope="orion").snapshot().text
    for wanted in ("Keep the museum open", "repaint the ferry", "orion is calm", "orion was born"):
        assert wanted in text
    assert "elysia" not in text


@pytest.fixture(params=["none", "hashed"])
def by_query(request: pytest.FixtureRequest, opened: Callable[..., Memory]) -> Memory:
    """Facts in a store that recalls by words alone, and in one that recalls by meaning as well."""
    with opened("facts", embedder=None if request.param == "none" else "hashed") as mem:
        for text in ("Ana indents Python with tabs", "The ferry leaves the quay at six", "Tickets cost 4 euros"):
            kept(mem.remember(text, tier="archival"))
        yield mem


@pytest.mark.promise("A7", "A66")
def test_a_memory_block_holds_what_is_relevant_and_nothing_else(by_query: Memory) -> None:
    text = by_query.memory_block("when does the ferry leave the quay").text
    assert "The ferry leaves the quay at six" in text
    assert text.startswith("## ")
    assert "Tickets" not in text
    assert "Ana" not in text


@pytest.mark.promise("A66")
def test_a_memory_block_is_empty_when_nothing_is_relevant(by_query: Memory) -> None:
    assert by_query.memory_block("quantum chromodynamics").text == ""


@pytest.mark.promise("A67")
def test_what_is_lasting_precedes_what_is_passing(told: Memory) -> None:
    kept(told.remember("Asked about the museum roof", tier="episodic", session="s1", speaker="Ana"))
    kept(told.remember("Museum work goes on this week", tier="working"))
    text = told.context("what about the museum").text
    wanted = ("Keep the museum open", "on the old quay", "repaint", "Museum work goes on", "Asked about the museum")
    places = [text.index(each) for each in wanted]
    assert places == sorted(places)


@pytest.mark.promise("A87")
def test_behaviour_rule_appears_only_for_relevant_queries(opened: Callable[..., Memory]) -> None:
    with opened("rules", embedder=None, actor=Actor.operator()) as owner:
        mem = owner.as_actor(Actor.agent())
        rule = "Apologise before refusing a refund"
        kept(owner.remember(rule, kind="rule", confidence=0.9, evidence=["chat:1"]))
        assert rule in mem.context("a visitor wants a refund").text
        assert mem.context("when does the ferry leave").text == ""
        assert mem.snapshot().text == ""


@pytest.mark.promise("A92")
def test_no_prompt_recalls_more_than_policy_allows(opened: Callable[..., Memory]) -> None:
    with opened("many", embedder=None, policy=Policy(max_items=3)) as mem:
        for n in range(6):
            kept(mem.remember(f"Ferry number {n} sails to island {n}", tier="archival"))
        assert mem.context("which ferry sails", include_weak=True).text.count("Ferry number") == 3
        assert mem.memory_block("which ferry sails", include_weak=True).text.count("Ferry number") == 3
