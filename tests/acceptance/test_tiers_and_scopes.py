"""Tiers, scopes, core memory and the snapshot."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record, quarantined_item, refused

from keepward import Actor, ContextTooSmall, Insert, InvalidInput, Memory, Policy, Quarantined
from keepward.interchange import load

# --- What belongs to which tier, and how a keyed memory is kept current


BLOCKS = {
    "human": "Olga founded the harbour museum in 1998",
    "operating_rules": "Never promise a refund",
    "mission": "Keep the museum open all year",
}


def tell(owner: Memory) -> None:
    """Write the core blocks; the block about a person rests on that person's own message."""
    said = committed_record(
        owner.remember("I founded the harbour museum in 1998", tier="episodic", source="user_message")
    )
    for key, text in BLOCKS.items():
        committed_record(owner.remember(text, tier="core", key=key, confidence=1.0, evidence=[said.id]))


@pytest.mark.promise("A8", "A85", "D27")
def test_bio_rules_and_mission_come_first_in_every_prompt(owner: Memory) -> None:
    tell(owner)
    committed_record(owner.remember("The ferry leaves at six", tier="archival", stability="permanent"))
    committed_record(
        owner.remember("Projects: repaint the ferry", key="current_projects", kind="state", tier="archival")
    )
    committed_record(owner.remember("Ask when the ferry leaves", tier="working"))
    for reader, objective in ((owner, "when does the ferry leave"), (owner.at(scope="orion"), "something else")):
        text = reader.context(objective).text
        ends = [text.index(each) for each in BLOCKS.values()]
        assert ends == sorted(ends)
        assert max(ends) < min(text.index(other) for other in ("The ferry leaves", "repaint", "Ask when"))


@pytest.mark.promise("A10", "A47", "A52", "A53")
@pytest.mark.parametrize("tier", ["working", "archival"])
def test_second_write_under_a_key_updates_the_first(mem: Memory, tier: str) -> None:
    first = committed_record(mem.remember("Projects: dashboard", kind="state", key="current_projects", tier=tier))
    again = committed_record(
        mem.remember("Projects: dashboard, email", kind="state", key="current_projects", tier=tier)
    )
    assert (first.version, again.id, again.version) == (1, first.id, 2)
    assert mem.list_memories(key="current_projects") == [again]
    assert len(mem.list_memories(include_ended=True)) == 1


@pytest.mark.promise("A47")
def test_a_key_belongs_to_one_scope(mem: Memory) -> None:
    shared = committed_record(mem.remember("calm", key="mood", kind="state"))
    own = committed_record(mem.at(scope="orion").remember("busy", key="mood", kind="state"))
    assert (own.id != shared.id, own.version, mem.get(shared.id).text) == (True, 1, "calm")


@pytest.mark.promise("A55")
def test_twenty_rewordings_under_one_key_leave_one_memory(mem: Memory) -> None:
    for n in range(20):
        mem.remember(
            f"We are working on {'really ' * (n % 3)}the dashboard, part {n // 2}", key="current_projects", kind="state"
        )
    assert [each.text for each in mem.list_memories()] == ["We are working on really the dashboard, part 9"]


EVERYBODY = [Actor.agent(), Actor.user(), Actor.operator("olga"), Actor.importer()]


@pytest.mark.promise("A22")
@pytest.mark.parametrize("actor", EVERYBODY, ids=lambda actor: actor.kind.value)
def test_write_without_a_tier_is_permanent_and_never_core(owner: Memory, actor: Actor, clock: Any) -> None:
    made = committed_record(owner.as_actor(actor).remember("The harbour opens at six"))
    assert (made.tier.value, made.kind.value, made.stability.value) == ("archival", "fact", "stable")
    assert (made.expires_at, made.pinned) == (None, False)
    clock.move(days=400)
    assert [each.id for each in owner.list_memories()] == [made.id]
    assert [hit.memory.id for hit in owner.recall("when does the harbour open")] == [made.id]


@pytest.mark.promise("A22")
@pytest.mark.parametrize(
    ("scope", "tier"),
    [
        ("/agents/orion/tasks/42", "working"),
        ("/tasks/7", "working"),
        ("/agents/orion/tasks/42/steps", "working"),
        ("/agents/orion/tasks", "archival"),
        ("/agents/tasks", "archival"),
        ("orion", "archival"),
    ],
)
def test_task_scope_alone_defaults_to_working_memory(owner: Memory, scope: str, tier: str) -> None:
    assert committed_record(owner.at(scope=scope).remember("The blue key sticks")).tier.value == tier
    assert committed_record(owner.remember("The red key is lost", scope=scope)).tier.value == tier
    assert committed_record(owner.remember("The lock was oiled", scope=scope, tier="archival")).expires_at is None


def old_line(path: Path, **fields: object) -> Path:
    """Write a vault file of the old kind with one line."""
    line = {"id": "0123456789ab", "text": "Keep the museum open", "scope": "shared", "version": 1, **fields}
    path.write_text(json.dumps(line) + "\n")
    return path


@pytest.mark.promise("A22")
def test_old_line_without_a_tier_is_pinned_for_an_owner(owner: Memory, tmp_path: Path) -> None:
    assert load(owner, old_line(tmp_path / "old.jsonl")).committed == 1
    assert "Keep the museum open" in owner.context("").text


@pytest.mark.promise("A22", "C57")
def test_old_line_without_a_tier_is_quarantined_for_an_agent(mem: Memory, tmp_path: Path) -> None:
    assert load(mem, old_line(tmp_path / "old.jsonl")).quarantined == 1
    assert "museum" not in mem.context("the museum").text
    assert [each.steps[0].after.text for each in mem.pending()] == ["Keep the museum open"]


@pytest.mark.promise("A59")
def test_promotion_gives_lasting_text_and_preserves_history(mem: Memory, owner: Memory) -> None:
    made = committed_record(mem.remember("we seem to want to stay open", key="opening", kind="state", tier="archival"))
    canonical = "Keep the museum open all year"
    asked = mem.promote(made.id, canonical, reason="settled")
    assert isinstance(asked, Quarantined)
    assert canonical not in mem.context("").text
    lasting = committed_record(owner.approve(asked.item.id))
    assert (lasting.id, lasting.version, lasting.text, lasting.source) == (made.id, 2, canonical, "promotion")
    assert (lasting.tier.value, lasting.kind.value, lasting.stability.value) == ("archival", "fact", "permanent")
    assert [each.record.text for each in mem.history(made.id)] == [made.text, canonical]
    assert canonical in mem.at(scope="orion").context("").text


@pytest.mark.promise("A59")
def test_promotion_without_a_block_is_pinned_and_never_expires(mem: Memory, owner: Memory, clock: Any) -> None:
    made = committed_record(mem.remember("The ferry is yellow"))
    committed_record(owner.promote(made.id, "The ferry has always been yellow", reason="settled"))
    clock.move(days=400)
    assert "The ferry has always been yellow" in mem.context("").text


@pytest.mark.promise("A86")
def test_projects_priorities_and_self_state_are_current_in_every_prompt(mem: Memory) -> None:
    for key in ("current_projects", "priorities", "self_state"):
        committed_record(mem.remember(f"the first of my {key}", key=key, kind="state", tier="archival"))
        committed_record(mem.remember(f"the newest of my {key}", key=key, kind="state", tier="archival"))
        text = mem.context("an unrelated question").text
        assert f"{key}: the newest of my {key}" in text
        assert "the first" not in text


# --- Working, episodic and archival memory


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
    note = committed_record(task.remember("try the blue key first"))
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
        committed_record(mine.remember(f"step {n} of the plan"))
    committed_record(other.remember("another plan"))
    outcome, missing = mine.forget_many(
        [each.id for each in mine.list_memories(tiers=["working"]) if each.scope == TASK], reason="the task is over"
    )
    committed_record(outcome)
    assert missing == []
    assert mine.context("plan").text == ""
    assert "another plan" in other.context("plan").text


@pytest.mark.promise("C16", "C18")
def test_working_note_lasts_exactly_a_day_by_default(mem: Memory, clock: Any) -> None:
    committed_record(mem.remember("try the blue key first", tier="working"))
    committed_record(mem.remember("the red key is broken", tier="working", ttl="2h"))
    committed_record(mem.remember("the lock was oiled on Monday", tier="working", ttl="3d"))
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
    fact = committed_record(mem.remember("the red key is broken", tier="archival", ttl=ttl))
    moved = committed_record(mem.move(fact.id, tier="working", reason="only today"))
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
        committed_record(mem.remember(text, tier="working", category=label))
    assert {label: [each.text for each in mem.list_memories(category=label)] for label in texts} == {
        label: [text] for label, text in texts.items()
    }
    assert all(text in mem.context("").text for text in texts.values())


@pytest.mark.promise("C20")
def test_agent_edits_working_notes_freely_but_never_stores_a_secret(mem: Memory) -> None:
    note = committed_record(mem.remember("try the blue key first", tier="working"))
    committed_record(mem.revise(note.id, "try the red key first", reason="blue broke"))
    committed_record(mem.append(note.id, "then the green one", reason="in case"))
    committed_record(mem.forget(note.id, reason="done"))
    token = "ghp_" + "aB3dE5gH7j" * 3 + "K9mN2p"
    assert "secrets" in {each.gate for each in mem.remember(f"key is {token}").reasons}
    assert mem.list_memories() == []
    assert token not in str(mem.pending())


@pytest.mark.promise("C21", "C81")
def test_over_budget_archival_is_dropped_first_and_core_never(opened: Callable[..., Memory], owner: Memory) -> None:
    with opened("tight", counter=Words(), actor=owner.actor) as memory:
        committed_record(memory.remember("mission harbour text", key="mission", tier="core"))
        committed_record(memory.remember("working harbour text noted", tier="working"))
        committed_record(memory.remember("harbour text summed up", kind="summary"))
        committed_record(memory.remember("archival harbour text filed", tier="archival"))

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
    first = committed_record(mem.remember("Ana asked for the ferry", kind="event", session="s1"))
    committed_record(mem.remember("The ferry was booked", kind="event", session="s1"))
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
        committed_record(mem.remember(text, kind="event", session="s1", speaker=speaker, evidence=[reference]))
    told = [(each.speaker, each.text, *each.evidence) for each in reversed(mem.list_memories(session="s1"))]
    assert told == turns


# --- archival


@pytest.mark.promise("C29", "A1")
def test_archival_memory_outlives_process_and_years(opened: Callable[..., Memory], clock: Any) -> None:
    with opened("long") as memory:
        before = committed_record(memory.remember("The lighthouse was built in 1871", tier="archival"))
    clock.move(days=3650)
    with opened("long") as memory:
        assert memory.recall("when was the lighthouse built")[0].memory == before


@pytest.mark.promise("C30", "C36")
def test_every_fact_names_its_source_and_confidence(mem: Memory, owner: Memory) -> None:
    told = committed_record(
        mem.remember("Fog at dawn", tier="archival", source="tool", evidence=["sensor:3"], confidence=0.75)
    )
    assert (told.source, told.evidence, told.confidence, told.author) == ("tool", ("sensor:3",), 0.75, "agent:agent")
    bare = committed_record(mem.remember("Rain at noon", tier="archival"))
    assert (bare.source, bare.trust.label) == ("inference", "agent")
    assert committed_record(owner.remember("Snow at night")).trust.label == "owner"
    with pytest.raises(InvalidInput, match="unknown source"):
        mem.remember("Hail at dusk", tier="archival", source="hearsay")


@pytest.mark.promise("C31", "C32")
def test_patterns_and_documents_are_kinds_of_their_own_and_found(mem: Memory) -> None:
    committed_record(mem.remember("Fog follows a cold night", kind="rule", confidence=0.9, evidence=["log:1", "log:2"]))
    committed_record(
        mem.remember("Pilot handbook: approach from the east", kind="document", metadata={"ref": "handbook.pdf#12"})
    )
    assert [each.tier.value for each in mem.list_memories(kinds=["rule", "document"])] == ["archival"] * 2
    assert mem.recall("approach", kinds=["document"])[0].memory.metadata == {"ref": "handbook.pdf#12"}
    assert mem.recall("fog cold night")[0].memory.kind.value == "rule"


@pytest.mark.promise("C33")
def test_past_receipts_can_be_listed_and_searched(mem: Memory, clock: Any) -> None:
    outcome = mem.remember("Quay four is ours", tier="archival")
    committed_record(outcome)
    committed_record(
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
    committed_record(
        mem.remember("The lighthouse keeper of the northern cape retired in autumn", tier="archival", tags=["cape"])
    )
    for n in range(30):
        committed_record(
            mem.remember(f"The lighthouse keeper log {n} for autumn week {n}", tier="archival", tags=["log"])
        )
    assert "northern cape" in mem.recall("cape retired keeper", limit=1)[0].memory.text
    assert [hit.memory.tags for hit in mem.recall("lighthouse keeper autumn", tags=["cape"], limit=1)] == [("cape",)]
    assert mem.recall("lighthouse keeper", tags=["nothing"]).hits == ()


@pytest.mark.promise("C35")
def test_confidence_fades_unless_confirmed_and_looking_often_changes_nothing(
    opened: Callable[..., Memory], clock: Any
) -> None:
    with opened("fade", counter=Words()) as memory:
        old = committed_record(memory.remember("harbour crane alpha is green", tier="archival", confidence=0.9))
        clock.move(days=40)
        new = committed_record(memory.remember("harbour crane lifts forty tonnes", tier="archival", confidence=0.5))

        def survivor() -> list[str]:
            # Room for one: the less certain goes. 0.9 has faded to 0.36 by now.
            found = memory.context("harbour crane", budget_tokens=26)
            return [item.id for section in found.sections for item in section.items]

        assert [survivor() for _ in range(3)] == [[new.id]] * 3
        committed_record(memory.reinforce(old.id, reason="seen again"))
        assert survivor() == [old.id]
        assert memory.get(old.id).confidence == 0.9


@pytest.mark.promise("C20", "C22")
def test_task_note_moved_to_the_archive_loses_its_ttl(mem: Memory) -> None:
    note = committed_record(mem.remember("The blue key opens the shed", tier="working"))
    committed_record(mem.move(note.id, tier="archival", reason="worth keeping"))
    assert mem.get(note.id).expires_at is None
    quarantined_item(mem.move(note.id, tier="core", key="mission", reason="even more"))


# --- Who sees what: scopes, agents beside each other, and writers at the same time


@pytest.mark.promise("A2", "A68", "A69", "Z11", "B69")
def test_agent_reads_shared_memories_and_its_own(mem: Memory) -> None:
    for scope in ("shared", "orion", "elysia"):
        committed_record(mem.remember(f"the crane of {scope} is red", scope=scope, tier="archival"))
    for name in ("orion", "elysia"):
        seen = {f"the crane of {who} is red" for who in ("shared", name)}
        reader = mem.at(scope=name)
        assert {each.text for each in reader.list_memories()} == seen
        assert {hit.memory.text for hit in reader.recall("which crane is red")} == seen
    assert {each.text for each in mem.list_memories()} == {"the crane of shared is red"}


@pytest.mark.promise("A20", "A68")
def test_the_three_names_work_out_of_the_box(mem: Memory) -> None:
    names = ("shared", "orion", "elysia")
    assert [committed_record(mem.remember(f"I am {name}", scope=name)).scope for name in names] == [
        "/",
        "/agents/orion",
        "/agents/elysia",
    ]


@pytest.mark.promise("A20", "A40", "A91")
def test_only_scopes_that_policy_names_are_written(opened: Callable[..., Memory]) -> None:
    with opened("few", policy=Policy(scopes=("shared", "orion"))) as mem:
        committed_record(mem.remember("the ferry is blue", scope="shared"))
        committed_record(mem.remember("the crane is red", scope="orion"))
        assert refused(mem.remember("the buoy is green", scope="elysia")) == {"unknown_scope"}
        made = mem.list_memories()[0]
        assert refused(mem.move(made.id, scope="elysia", reason="for her")) == {"unknown_scope"}


@pytest.mark.promise("A40")
@pytest.mark.parametrize("name", ["", "/agents/../orion", "or ion", "/", "Orión"])
def test_a_name_that_is_no_scope_is_an_error(mem: Memory, name: str) -> None:
    if name == "/":
        assert mem.at(scope=name).scope == "/"
        return
    with pytest.raises(InvalidInput, match="scope"):
        mem.remember("the ferry is blue", scope=name)


@pytest.mark.promise("A69")
def test_log_skips_commits_of_others_and_still_fills_its_page(mem: Memory) -> None:
    orion, elysia = mem.at(scope="orion"), mem.at(scope="elysia")
    for n in range(3):
        committed_record(orion.remember(f"crane {n} is red", tier="archival"))
        committed_record(elysia.remember(f"ferry {n} is blue", tier="archival"))
    assert [each.commit.seq for each in orion.log(limit=2)] == [5, 3]
    assert [each.commit.seq for each in orion.log(limit=2, before=3)] == [1]


@pytest.mark.promise("A71", "D37", "Z29")
def test_two_writers_at_once_lose_tear_and_double_nothing(opened: Callable[..., Memory]) -> None:
    def write(name: str) -> None:
        with opened("crowd") as mem:
            for n in range(6):
                committed_record(mem.remember(f"{name} saw ship number {n}", tier="archival"))
                mem.remember(f"{name} {n}", key="guestbook", access="append", tier="archival", confidence=0.9)

    with opened("crowd") as mem:
        committed_record(mem.remember("open", key="guestbook", access="append", tier="archival"))
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, ("ana", "ben")))
        texts = sorted(each.text for each in mem.list_memories(limit=None) if each.key is None)
        assert texts == sorted(f"{who} saw ship number {n}" for who in ("ana", "ben") for n in range(6))
        (book,) = mem.list_memories(key="guestbook")
        assert sorted(book.text.split("\n")) == sorted(
            ["open", *(f"{w} {n}" for w in ("ana", "ben") for n in range(6))]
        )
        assert book.version == 13
        assert mem.verify().ok


WRITER = """
import sys
from pathlib import Path
from keepward import Memory
with Memory.open(sys.argv[1], embedder=None, config_dir=Path(sys.argv[2])) as mem:
    for n in range(25):
        assert mem.remember(f"{sys.argv[3]} saw ship number {n}", tier="archival").outcome == "committed"
        assert mem.remember(f"{sys.argv[3]} {n}", key="guestbook", tier="archival").outcome == "committed"
"""


@pytest.mark.slow
@pytest.mark.promise("A71")
def test_processes_that_write_at_once_lose_tear_and_double_nothing(
    tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    with opened("crowd") as mem:
        committed_record(mem.remember("open", key="guestbook", access="append", tier="archival"))
        command = [sys.executable, "-c", WRITER, str(tmp_path / "crowd.db"), str(tmp_path / "config")]
        running = [subprocess.Popen([*command, who]) for who in ("ana", "ben", "cy")]
        assert [each.wait(60) for each in running] == [0, 0, 0]
        assert len([each for each in mem.list_memories(limit=None) if each.key is None]) == 75
        (book,) = mem.list_memories(key="guestbook")
        assert (book.version, len(set(book.text.split("\n")))) == (76, 76)
        assert mem.verify().ok


# --- Core memory: blocks, the identity, and who may change them (promises C3-C14, C93 in part)


BLOCKS_IN_ORDER = ("human", "operating_rules", "mission", "workspace_state")


def fields_of(block: str) -> dict[str, Any]:
    """Return what the owner has to give for a block to be taken."""
    return {"key": block, "tier": "core", "evidence": ["chat:1"]}


@pytest.mark.promise("C3")
def test_each_tier_has_a_policy_of_its_own(mem: Memory) -> None:
    quarantined_item(mem.remember("Sail to Oslo", **fields_of("mission")))
    working = committed_record(mem.remember("ask for the tide table", tier="working"))
    assert working.expires_at is not None
    committed_record(mem.revise(working.id, "ask for the tide table twice", reason="sure"))
    event = committed_record(mem.remember("Ana waved", tier="episodic"))
    refused(mem.revise(event.id, "Ana frowned", reason="looked again"))
    fact = committed_record(mem.remember("The tide turns at six", tier="archival"))
    assert fact.expires_at is None
    committed_record(mem.revise(fact.id, "The tide turns at seven", reason="measured"))


@pytest.mark.promise("C4", "C8", "C9", "C10", "D6", "D21")
@pytest.mark.parametrize("block", BLOCKS_IN_ORDER)
def test_block_is_read_back_and_in_every_prompt(owner: Memory, block: str) -> None:
    committed_record(owner.remember(f"The {block} text", **fields_of(block)))
    assert [each.text for each in owner.list_memories(key=block)] == [f"The {block} text"]
    for objective in ("", "zebra crossings in Peru", block):
        for handle in (owner, owner.at(scope="/agents/orion/tasks/42")):
            assert f"## {block}\n\nThe {block} text" in handle.context(objective).text


@pytest.mark.promise("C5", "C74")
def test_blocks_have_their_fixed_order_in_any_write_order(
    opened: Callable[..., Memory], owner: Memory, tmp_path: Path
) -> None:
    (tmp_path / "identity.md").write_text("I am Orion.")
    with opened("own", identity=tmp_path / "identity.md", actor=owner.actor) as memory:
        for block in reversed(BLOCKS_IN_ORDER):
            committed_record(memory.remember(f"The {block} text", **fields_of(block)))
        headings = [line[3:] for line in memory.context("").text.splitlines() if line.startswith("## ")]
    assert headings == ["persona", *BLOCKS_IN_ORDER]


@pytest.mark.promise("C6", "C73")
def test_the_persona_follows_its_document_and_nothing_else(
    opened: Callable[..., Memory], owner: Memory, tmp_path: Path
) -> None:
    page = tmp_path / "identity.md"
    page.write_text("I am Orion.")
    with opened("own", identity=page, actor=owner.actor) as memory:
        assert memory.context("").text == "## persona\n\nI am Orion."
        refused(memory.remember("I am Nova.", key="persona", tier="core"))
        committed_record(memory.remember("Orion is called Nova now", tier="archival"))
        assert memory.context("").text == "## persona\n\nI am Orion."
        page.write_text("I am Orion, and I sail.")
        assert memory.context("").text == "## persona\n\nI am Orion, and I sail."


@pytest.mark.promise("C7")
def test_human_block_is_the_current_user_file_and_facts(
    opened: Callable[..., Memory], owner: Memory, tmp_path: Path
) -> None:
    page = tmp_path / "USER.md"
    page.write_text("Ana, captain.")
    with opened("own", user_file=page, actor=owner.actor) as memory:
        committed_record(memory.remember("Ana is left-handed.", **fields_of("human")))
        assert memory.context("").text == "## human\n\nAna, captain.\n\nAna is left-handed."
        page.write_text("Ana, admiral.")
        assert memory.context("").text == "## human\n\nAna, admiral.\n\nAna is left-handed."
        page.unlink()
        assert memory.context("").text == "## human\n\nAna is left-handed."


@pytest.mark.promise("C7")
def test_user_file_that_is_not_text_is_named_not_shown(opened: Callable[..., Memory], tmp_path: Path) -> None:
    page = tmp_path / "USER.md"
    page.write_bytes(b"Ana \xff\xfe captain")
    with opened("own", user_file=page) as memory, pytest.raises(InvalidInput, match=r"USER\.md") as fault:
        memory.context("")
    assert "captain" not in str(fault.value)


@pytest.mark.promise("C11", "C13", "C90", "C57", "A9", "D16", "Z3")
@pytest.mark.parametrize("block", BLOCKS_IN_ORDER)
def test_agent_edit_of_a_block_needs_approval_before_any_prompt(mem: Memory, owner: Memory, block: str) -> None:
    # The human block asks for a recorded message of the user on top.
    message = committed_record(owner.remember("I sail", kind="event", source="user_message")).id
    waiting = quarantined_item(mem.remember("Sails by night", key=block, tier="core", evidence=[message]))
    assert "night" not in mem.context("sails by night").text
    assert mem.list_memories(key=block) == []
    committed_record(owner.approve(waiting.id))
    assert f"## {block}\n\nSails by night" in mem.context("").text
    current = mem.list_memories(key=block)[0]
    waiting = quarantined_item(mem.revise(current.id, "Sails by day", evidence=[message], reason="seen"))
    assert "Sails by night" in mem.context("").text
    assert "by day" not in mem.context("").text
    owner.reject(waiting.id, reason="not so")
    assert "Sails by night" in mem.context("").text


@pytest.mark.promise("C12")
def test_block_over_its_budget_is_refused_and_unchanged(opened: Callable[..., Memory], owner: Memory) -> None:
    policy = Policy(block_budget={"mission": 4})
    with opened("small", policy=policy, counter=Words(), actor=owner.actor) as memory:
        record = committed_record(memory.remember("one two three four", **fields_of("mission")))
        assert "over_budget" in refused(memory.revise(record.id, "one two three four five", reason="more"))
        assert "over_budget" in refused(memory.append(record.id, "five", reason="more"))
        assert "over_budget" in refused(memory.remember("a b c d e", **fields_of("mission")))
        assert memory.context("").text == "## mission\n\none two three four"


@pytest.mark.promise("C12", "C82")
def test_block_over_a_later_budget_is_an_error_never_cut(opened: Callable[..., Memory], owner: Memory) -> None:
    with opened("small", counter=Words(), actor=owner.actor) as memory:
        committed_record(memory.remember("one two three four", **fields_of("mission")))
    policy = Policy(block_budget={"mission": 3})
    with opened("small", counter=Words(), policy=policy) as memory, pytest.raises(ContextTooSmall, match="budget of 3"):
        memory.context("")


@pytest.mark.promise("C14")
def test_no_rollback_reaches_the_identity(opened: Callable[..., Memory], tmp_path: Path, owner: Memory) -> None:
    page = tmp_path / "identity.md"
    page.write_text("I am Orion.")
    with opened("own", identity=page, actor=owner.actor) as memory:
        committed_record(memory.remember("Sail to Oslo", **fields_of("mission")))
        page.write_text("I am Orion the second.")
        for entry in memory.log():
            memory.rollback(entry.commit.id)
        assert memory.context("").text == "## persona\n\nI am Orion the second."


# --- What is injected every time, and what only when it is relevant


@pytest.fixture
def filled_store(owner: Memory) -> Memory:
    """A store with one memory of every sort that a snapshot may or may not hold."""
    committed_record(owner.remember("Keep the museum open all year", tier="core", key="mission", confidence=1.0))
    committed_record(owner.remember("The museum stands on the old quay", tier="archival", stability="permanent"))
    committed_record(
        owner.remember("Projects: repaint the ferry", key="current_projects", kind="state", tier="archival")
    )
    committed_record(owner.remember("The crane is being oiled", kind="state", tier="archival"))
    committed_record(owner.remember("Tickets cost 4 euros", tier="archival"))
    return owner


@pytest.mark.promise("A7", "A60", "A61", "A62")
def test_snapshot_is_markdown_with_all_invariants_and_named_states(filled_store: Memory) -> None:
    text = filled_store.snapshot().text
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[0] == "## mission"
    for wanted in ("Keep the museum open all year", "on the old quay", "current_projects: Projects: repaint"):
        assert wanted in text


@pytest.mark.promise("A63")
def test_plain_facts_and_unnamed_states_are_not_in_the_snapshot(filled_store: Memory) -> None:
    text = filled_store.snapshot().text
    assert "crane" not in text
    assert "Tickets" not in text


@pytest.mark.promise("A60")
def test_snapshot_over_budget_drops_state_before_core(filled_store: Memory) -> None:
    full = filled_store.snapshot()
    less = filled_store.snapshot(budget_tokens=full.tokens - 1)
    assert less.tokens < full.tokens
    assert "Keep the museum open all year" in less.text
    assert {each.reason.code for each in less.excluded} == {"budget"}


@pytest.mark.promise("A64", "A88")
@pytest.mark.parametrize("objective", ["", "what do tickets cost", "an unrelated question"])
def test_every_prompt_begins_with_the_snapshot(filled_store: Memory, objective: str) -> None:
    text = filled_store.context(objective).text
    assert text.startswith(filled_store.snapshot().text)
    assert "Keep the museum open all year" in text


@pytest.mark.promise("A88")
def test_reminder_pinned_by_the_owner_is_in_every_prompt(mem: Memory, owner: Memory) -> None:
    committed_record(owner.remember("Olga answers to Ole", tier="archival", stability="permanent", category="reminder"))
    for scope in ("orion", "elysia"):
        assert "Olga answers to Ole" in mem.at(scope=scope).context("an unrelated question").text


@pytest.mark.promise("A65")
def test_a_snapshot_holds_what_is_shared_and_the_readers_own(filled_store: Memory) -> None:
    for name in ("orion", "elysia"):
        committed_record(
            filled_store.remember(f"{name} is calm", key="mood", kind="state", scope=name, tier="archival")
        )
        committed_record(
            filled_store.remember(f"{name} was born in June", scope=name, tier="archival", stability="permanent")
        )
    text = filled_store.at(scope="orion").snapshot().text
    for wanted in ("Keep the museum open", "repaint the ferry", "orion is calm", "orion was born"):
        assert wanted in text
    assert "elysia" not in text


@pytest.fixture(params=["none", "hashed"])
def by_query(request: pytest.FixtureRequest, opened: Callable[..., Memory]) -> Memory:
    """Facts in a store that recalls by words alone, and in one that recalls by meaning as well."""
    with opened("facts", embedder=None if request.param == "none" else "hashed") as mem:
        for text in ("Ana indents Python with tabs", "The ferry leaves the quay at six", "Tickets cost 4 euros"):
            committed_record(mem.remember(text, tier="archival"))
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
def test_what_is_lasting_precedes_what_is_passing(filled_store: Memory) -> None:
    committed_record(filled_store.remember("Asked about the museum roof", tier="episodic", session="s1", speaker="Ana"))
    committed_record(filled_store.remember("Museum work goes on this week", tier="working"))
    text = filled_store.context("what about the museum").text
    wanted = ("Keep the museum open", "on the old quay", "repaint", "Museum work goes on", "Asked about the museum")
    places = [text.index(each) for each in wanted]
    assert places == sorted(places)


@pytest.mark.promise("A87")
def test_behaviour_rule_appears_only_for_relevant_queries(opened: Callable[..., Memory]) -> None:
    with opened("rules", embedder=None, actor=Actor.operator()) as owner:
        mem = owner.as_actor(Actor.agent())
        rule = "Apologise before refusing a refund"
        committed_record(owner.remember(rule, kind="rule", confidence=0.9, evidence=["chat:1"]))
        for n in range(24):
            committed_record(owner.remember(f"Boat {n} sails to island {n}", tier="archival"))
        assert rule in mem.context("a visitor wants a refund").text
        assert rule not in mem.context("when does the boat sail").text
        assert mem.snapshot().text == ""


@pytest.mark.promise("A92")
def test_no_prompt_recalls_more_than_policy_allows(opened: Callable[..., Memory]) -> None:
    with opened("many", embedder=None, policy=Policy(max_items=3)) as mem:
        for n in range(6):
            committed_record(mem.remember(f"Ferry number {n} sails to island {n}", tier="archival"))
        assert mem.context("which ferry sails").text.count("Ferry number") == 3
        assert mem.memory_block("which ferry sails").text.count("Ferry number") == 3


# --- A token writes at its scope and below; writing above takes the right ``share``


Enter = Callable[..., Memory]
OWN = "/agents/a"


@pytest.fixture
def narrow(owner: Memory, entering: Enter) -> Memory:
    return entering(token=owner.create_token("a", scope=OWN).secret)


def codes(said: Any) -> list[str]:
    return [said.outcome, *(each.code for each in said.reasons)]


def test_a_token_changes_nothing_above_its_scope(owner: Memory, narrow: Memory) -> None:
    shared = committed_record(owner.remember("The ferry leaves at six", key="ferry", tier="archival"))
    own = committed_record(narrow.remember("The crane is red", tier="archival"))
    assert own.scope == OWN
    tried = [
        narrow.remember("The ferry leaves at nine", scope="/", tier="archival"),
        narrow.remember("The ferry leaves at nine", scope="/agents", tier="archival"),
        narrow.remember("The ferry leaves at nine", key="ferry", kind="state", scope="/"),
        narrow.revise(shared.id, "The ferry leaves at nine", reason="x"),
        narrow.append(shared.id, "or at nine", reason="x"),
        narrow.forget(shared.id, reason="x"),
        narrow.archive(shared.id, reason="x"),
        narrow.supersede(shared.id, own.id, reason="x"),
        narrow.move(own.id, scope="/", reason="x"),
        narrow.propose([Insert(id="n1", text="The ferry is late", scope="/")], reason="x"),
    ]
    assert [codes(each) for each in tried] == [["refused", "out_of_scope"]] * len(tried)
    assert owner.get("ferry") == shared
    assert not narrow.pending()
    assert "The ferry leaves at six" in narrow.context("When does the ferry leave?").text


def test_a_token_writes_below_its_scope(narrow: Memory) -> None:
    below = committed_record(narrow.remember("Task 4 is done", scope=f"{OWN}/tasks/4", tier="archival"))
    task = narrow.at(scope=below.scope)
    assert committed_record(task.revise(below.id, "Task 4 is open again", reason="x")).scope == f"{OWN}/tasks/4"


def test_the_right_to_share_writes_above(owner: Memory, entering: Enter) -> None:
    wide = entering(token=owner.create_token("a", scope=OWN, can=["read", "propose", "share"]).secret)
    assert committed_record(wide.remember("The crane is red", scope="/", tier="archival")).scope == "/"
