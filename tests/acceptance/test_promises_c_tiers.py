"""Working, episodic and archival memory (promises C15-C37)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from outcomes import held, kept, refused

from keepward import Actor, InvalidInput, Memory

TASK = "/agents/orion/tasks/42"


class Words:
    """Counts words, so that budgets can be reckoned in the head."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


# --- working


@pytest.mark.promise("C15", "C19")
def test_a_task_note_is_seen_by_that_task_alone(mem: Memory) -> None:
    task = mem.at(scope=TASK)
    note = kept(task.remember("try the blue key first"))
    assert note.scope == TASK
    assert "blue key" in task.context("").text
    for other in ("/", "orion", "/agents/orion/tasks/43", "/agents/orion/tasks/4", "/agents/elysia/tasks/42"):
        handle = mem.at(scope=other)
        assert "blue key" not in handle.context("blue key").text
        assert handle.list_memories() == []
        assert list(handle.recall("blue key")) == []


@pytest.mark.promise("C16")
def test_end_of_a_task_archives_its_own_notes_only(mem: Memory) -> None:
    mine, other = mem.at(scope=TASK), mem.at(scope="/agents/orion/tasks/43")
    for n in range(3):
        kept(mine.remember(f"step {n} of the plan"))
    kept(other.remember("another plan"))
    outcome, missing = mine.forget_many(
        [each.id for each in mine.list_memories(tiers=["working"]) if each.scope == TASK], reason="the task is over"
    )
    kept(outcome)
    assert missing == []
    assert mine.context("plan").text == ""
    assert "another plan" in other.context("plan").text


@pytest.mark.promise("C16", "C18")
def test_working_note_lasts_exactly_a_day_by_default(mem: Memory, clock: Any) -> None:
    kept(mem.remember("try the blue key first", tier="working"))
    kept(mem.remember("the red key is broken", tier="working", ttl="2h"))
    kept(mem.remember("the lock was oiled on Monday", tier="working", ttl="3d"))
    left = []
    for step in (timedelta(hours=2), timedelta(hours=22), timedelta(days=2)):
        clock.instant += step - timedelta(microseconds=1)
        before = len(mem.list_memories())
        clock.instant += timedelta(microseconds=1)
        left.append((before, len(mem.list_memories())))
    assert left == [(3, 2), (2, 1), (1, 0)]


@pytest.mark.promise("C18")
@pytest.mark.parametrize(("ttl", "left"), [(None, 24), ("2h", 2), ("9d", 24)])
def test_memory_moved_to_working_tier_expires_like_the_others(mem: Memory, ttl: str | None, left: int) -> None:
    fact = kept(mem.remember("the red key is broken", tier="archival", ttl=ttl))
    moved = kept(mem.move(fact.id, tier="working", reason="only today"))
    assert (moved.stability.value, moved.expires_at) == ("volatile", fact.created_at + timedelta(hours=left))


@pytest.mark.promise("C17")
def test_working_memory_shows_plans_facts_todos_and_decisions_by_label(mem: Memory) -> None:
    texts = {
        "plan": "first the hull, then the deck",
        "fact": "the crane lifts four tonnes",
        "todo": "order green paint",
        "decision": "we sail on Tuesday",
    }
    for label, text in texts.items():
        kept(mem.remember(text, tier="working", category=label))
    assert {label: [each.text for each in mem.list_memories(category=label)] for label in texts} == {
        label: [text] for label, text in texts.items()
    }
    assert all(text in mem.context("").text for text in texts.values())


@pytest.mark.promise("C20")
def test_agent_edits_working_notes_freely_but_never_stores_a_secret(mem: Memory) -> None:
    note = kept(mem.remember("try the blue key first", tier="working"))
    kept(mem.revise(note.id, "try the red key first", reason="blue broke"))
    kept(mem.append(note.id, "then the green one", reason="in case"))
    kept(mem.forget(note.id, reason="done"))
    token = "ghp_" + "aB3dE5gH7j" * 3 + "K9mN2p"
    assert "secrets" in {each.gate for each in mem.remember(f"key is {token}").reasons}
    assert mem.list_memories() == []
    assert token not in str(mem.pending())


@pytest.mark.promise("C21", "C81")
def test_over_budget_archival_is_dropped_first_and_core_never(opened: Callable[..., Memory], owner: Memory) -> None:
    with opened("tight", counter=Words(), actor=owner.actor) as memory:
        kept(memory.remember("mission harbour text", key="mission", tier="core"))
        kept(memory.remember("working harbour text noted", tier="working"))
        kept(memory.remember("harbour text summed up", kind="summary"))
        kept(memory.remember("archival harbour text filed", tier="archival"))

        def tiers(budget: int) -> list[str]:
            compiled = memory.context("harbour text", budget_tokens=budget)
            assert Words().count(compiled.text) <= budget
            return [item.tier for section in compiled.sections for item in section.items]

        seen = [tuple(sorted(tiers(budget))) for budget in range(44, 4, -3)]
    stages = [now for n, now in enumerate(seen) if n == 0 or now != seen[n - 1]]
    assert stages == [
        ("archival", "core", "episodic", "working"),
        ("core", "episodic", "working"),
        ("core", "working"),
        ("core",),
    ]


# --- episodic


@pytest.mark.promise("C22", "C26")
def test_session_events_are_appended_and_never_changed(mem: Memory, owner: Memory) -> None:
    first = kept(mem.remember("Ana asked for the ferry", kind="event", session="s1"))
    kept(mem.remember("The ferry was booked", kind="event", session="s1"))
    for handle in (mem, owner):
        assert "append_only" in refused(handle.revise(first.id, "Ana asked for gin", reason="x"))
        assert "append_only" in refused(handle.append(first.id, "and gin", reason="x"))
    other = owner.as_actor(Actor.agent("other"))
    assert "append_only" in refused(other.forget(first.id, reason="x"))
    assert "append_only" in refused(mem.move(first.id, tier="archival", reason="x"))
    assert [each.text for each in mem.list_memories(session="s1")] == [
        "The ferry was booked",
        "Ana asked for the ferry",
    ]
    assert len(mem.history(first.id)) == 1


@pytest.mark.promise("C23")
def test_session_contains_its_messages_in_order_with_speakers(mem: Memory) -> None:
    turns = [("Ana", "When does it sail?", "chat:1"), ("Orion", "It sails at six.", "chat:2")]
    for speaker, text, reference in turns:
        kept(mem.remember(text, kind="event", session="s1", speaker=speaker, evidence=[reference]))
    told = [(each.speaker, each.text, *each.evidence) for each in reversed(mem.list_memories(session="s1"))]
    assert told == turns


# --- archival


@pytest.mark.promise("C29", "A1")
def test_archival_memory_outlives_process_and_years(opened: Callable[..., Memory], clock: Any) -> None:
    with opened("long") as memory:
        before = kept(memory.remember("The lighthouse was built in 1871", tier="archival"))
    clock.move(days=3650)
    with opened("long") as memory:
        assert memory.recall("when was the lighthouse built")[0].memory == before


@pytest.mark.promise("C30", "C36")
def test_every_fact_names_its_source_and_confidence(mem: Memory, owner: Memory) -> None:
    told = kept(mem.remember("Fog at dawn", tier="archival", source="tool", evidence=["sensor:3"], confidence=0.75))
    assert (told.source, told.evidence, told.confidence, told.author) == ("tool", ("sensor:3",), 0.75, "agent:agent")
    bare = kept(mem.remember("Rain at noon", tier="archival"))
    assert (bare.source, bare.trust.label) == ("inference", "agent")
    assert kept(owner.remember("Snow at night")).trust.label == "owner"
    with pytest.raises(InvalidInput, match="unknown source"):
        mem.remember("Hail at dusk", tier="archival", source="hearsay")


@pytest.mark.promise("C31", "C32")
def test_patterns_and_documents_are_kinds_of_their_own_and_found(mem: Memory) -> None:
    kept(mem.remember("Fog follows a cold night", kind="rule", confidence=0.9, evidence=["log:1", "log:2"]))
    kept(mem.remember("Pilot handbook: approach from the east", kind="document", metadata={"ref": "handbook.pdf#12"}))
    assert [each.tier.value for each in mem.list_memories(kinds=["rule", "document"])] == ["archival"] * 2
    assert mem.recall("approach", kinds=["document"])[0].memory.metadata == {"ref": "handbook.pdf#12"}
    assert mem.recall("fog cold night")[0].memory.kind.value == "rule"


@pytest.mark.promise("C33")
def test_past_receipts_can_be_listed_and_searched(mem: Memory, clock: Any) -> None:
    outcome = mem.remember("Quay four is ours", tier="archival")
    kept(outcome)
    kept(
        mem.remember(
            "The tug invoice of May was paid", kind="document", category="receipt", evidence=[outcome.receipt.id]
        )
    )
    clock.move(days=700)
    assert mem.receipt(outcome.receipt.id)["kind"] == "commit"
    (found,) = mem.recall("tug invoice", category="receipt")
    assert mem.receipt(found.memory.evidence[0])["id"] == outcome.receipt.id


@pytest.mark.promise("C34")
def test_distant_words_match_and_filters_apply_before_the_limit(mem: Memory) -> None:
    kept(mem.remember("The lighthouse keeper of the northern cape retired in autumn", tier="archival", tags=["cape"]))
    for n in range(30):
        kept(mem.remember(f"The lighthouse keeper log {n} for autumn week {n}", tier="archival", tags=["log"]))
    assert "northern cape" in mem.recall("cape retired keeper", limit=1)[0].memory.text
    assert [hit.memory.tags for hit in mem.recall("lighthouse keeper autumn", tags=["cape"], limit=1)] == [("cape",)]
    assert mem.recall("lighthouse keeper", tags=["nothing"]).hits == ()


@pytest.mark.promise("C35")
def test_confidence_fades_unless_confirmed_and_looking_often_changes_nothing(
    opened: Callable[..., Memory], clock: Any
) -> None:
    with opened("fade", counter=Words()) as memory:
        old = kept(memory.remember("harbour crane alpha is green", tier="archival", confidence=0.9))
        clock.move(days=40)
        new = kept(memory.remember("harbour crane lifts forty tonnes", tier="archival", confidence=0.5))

        def survivor() -> list[str]:
            # Room for one: the less certain goes. 0.9 has faded to 0.36 by now.
            found = memory.context("harbour crane", budget_tokens=26)
            return [item.id for section in found.sections for item in section.items]

        assert [survivor() for _ in range(3)] == [[new.id]] * 3
        kept(memory.reinforce(old.id, reason="seen again"))
        assert survivor() == [old.id]
        assert memory.get(old.id).confidence == 0.9


@pytest.mark.promise("C20", "C22")
def test_task_note_moved_to_the_archive_loses_its_ttl(mem: Memory) -> None:
    note = kept(mem.remember("The blue key opens the shed", tier="working"))
    kept(mem.move(note.id, tier="archival", reason="worth keeping"))
    assert mem.get(note.id).expires_at is None
    held(mem.move(note.id, tier="core", key="mission", reason="even more"))
