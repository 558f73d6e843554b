"""The compiled context: the same every time, within budget, and fully accounted for (promises C1, C2, C72-C87)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import held, kept

from keepward import Actor, ContextTooSmall, Memory, Policy

TASK = "/agents/orion/tasks/42"


class Words:
    """Counts words, so that budgets can be reckoned in the head."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def fill(memory: Memory) -> None:
    """Store something of every tier."""
    kept(memory.remember("Sail to Oslo", key="mission", tier="core"))
    for n in range(6):
        kept(memory.remember(f"Harbour fact number {n} about pier {n * 3}", tier="archival"))
        kept(memory.remember(f"Harbour day {n}: {n * 2} ships came in", kind="event", session="s1"))
    kept(memory.remember("Harbour week in short: many ships", kind="summary"))
    kept(memory.remember("call the harbour master", tier="working"))


@pytest.mark.promise("C1", "F11", "Z44")
def test_same_inputs_give_the_same_bytes_after_restart_and_reads(opened: Callable[..., Memory], owner: Memory) -> None:
    with opened("same", actor=owner.actor) as memory:
        fill(memory)
        first = memory.context("ships in the harbour")
        memory.recall("pier")
        second = memory.context("ships in the harbour")
        memory.rebuild()
        third = memory.context("ships in the harbour")
    with opened("same", actor=owner.actor) as memory:
        fourth = memory.context("ships in the harbour")
    assert first.text
    assert {each.text for each in (second, third, fourth)} == {first.text}
    assert {each.context_id for each in (second, third, fourth)} == {first.context_id}


@pytest.mark.promise("C1")
def test_the_order_in_which_memories_were_written_does_not_show(
    opened: Callable[..., Memory], clock: Any, owner: Memory
) -> None:
    start = clock.instant
    notes = [(f"Harbour fact about {word}", n) for n, word in enumerate(["cranes", "bollards", "gulls", "ropes"])]
    texts = []
    for name, order in (("one", notes), ("two", notes[::-1])):
        with opened(name, actor=owner.actor) as memory:
            for text, minute in order:
                clock.instant = start
                clock.move(minutes=minute)
                kept(memory.remember(text, tier="archival"))
                kept(memory.remember(f"todo: {text}", tier="working", ttl="2d"))
            clock.instant = start
            clock.move(hours=1)
            texts.append(memory.context("bollards, gulls and ropes of the harbour").text)
    assert texts[0] == texts[1] != ""


@pytest.mark.promise("C2", "C79", "C87")
def test_receipt_replays_the_exact_bytes_years_later(
    opened: Callable[..., Memory], owner: Memory, clock: Any, tmp_path: Path
) -> None:
    page, about = tmp_path / "identity.md", tmp_path / "USER.md"
    page.write_text("I am Orion.")
    about.write_text("Ana, captain.")
    with opened("seen", actor=owner.actor, identity=page, user_file=about) as memory:
        fill(memory)
        seen = memory.context("ships in the harbour")
        assert seen.kept
        page.write_text("I am Orion the second.")
        about.unlink()
        for record in memory.list_memories(limit=None):
            if record.kind.value != "event":
                kept(memory.revise(record.id, f"{record.text}, revised", reason="later"))
        clock.move(days=900)
    with opened("seen", actor=owner.actor, policy=Policy(max_items=1)) as memory:
        again = memory.replay(seen.receipt.id)
        assert (again.text, again.same, again.missing) == (seen.text, True, ())
        assert memory.receipt(seen.receipt.id)["context_id"] == seen.context_id
        assert memory.context("ships in the harbour").text != seen.text


@pytest.mark.promise("C72", "C12", "C82")
@pytest.mark.parametrize("form", ["markdown", "messages"])
def test_a_prompt_never_counts_more_than_its_budget(opened: Callable[..., Memory], owner: Memory, form: str) -> None:
    with opened("budget", actor=owner.actor) as memory:
        fill(memory)
        least = memory.context("", format=form).tokens
        for budget in range(least, least + 150, 37):
            compiled = memory.context("ships in the harbour", budget_tokens=budget, format=form)
            assert compiled.tokens <= budget
            assert "Sail to Oslo" in compiled.text


@pytest.mark.promise("C82")
def test_core_fits_the_smallest_budget_or_compiling_fails(opened: Callable[..., Memory], owner: Memory) -> None:
    with opened("least", actor=owner.actor, counter=Words()) as memory:
        fill(memory)
        assert memory.context("ships", budget_tokens=5).text == "## mission\n\nSail to Oslo"
        with pytest.raises(ContextTooSmall, match="1 more than the budget of 4"):
            memory.context("ships", budget_tokens=4)


@pytest.mark.promise("C75")
def test_task_notes_precede_shared_ones_and_omissions_are_named(mem: Memory, clock: Any) -> None:
    task = mem.at(scope=TASK)
    kept(task.remember("task note"))
    clock.move(minutes=5)
    kept(mem.remember("shared note", tier="working"))
    kept(mem.at(scope="orion").remember("agent note", tier="working"))
    over = kept(task.remember("short note", ttl="10m"))
    clock.move(minutes=10)
    compiled = task.context("")
    order = [compiled.text.index(f"{who} note") for who in ("task", "agent", "shared")]
    assert order == sorted(order)
    assert "short note" not in compiled.text
    assert [(each.id, each.reason.code) for each in compiled.excluded] == [(over.id, "expired")]


@pytest.mark.promise("C76")
def test_objective_brings_in_the_relevant_fact_and_summary(mem: Memory) -> None:
    kept(mem.remember("The spare anchor lies in shed nine", tier="archival"))
    kept(mem.remember("Ana oiled the anchor winch last week", kind="summary"))
    text = mem.context("anchor").text
    assert "[fact] The spare anchor lies in shed nine" in text
    assert "[summary] Ana oiled the anchor winch last week" in text
    assert mem.context("").text == ""


@pytest.mark.promise("C77", "C83", "C85")
def test_least_certain_memory_of_a_tier_is_dropped_first(
    opened: Callable[..., Memory],
) -> None:
    with opened("drop", counter=Words()) as memory:
        sure = {}
        for confidence, word in ((0.5, "cranes"), (0.41, "gulls"), (0.47, "ropes"), (0.44, "piers")):
            record = kept(memory.remember(f"harbour {word} seen", tier="archival", confidence=confidence))
            sure[record.id] = confidence
        kept_ones = []
        for budget in range(40, 20, -2):
            compiled = memory.context("harbour seen", budget_tokens=budget)
            inside = sorted((sure[item.id] for section in compiled.sections for item in section.items), reverse=True)
            if not kept_ones or inside != kept_ones[-1]:
                kept_ones.append(inside)
            assert {each.reason.code for each in compiled.excluded} <= {"budget"}
            assert len(compiled.excluded) == 4 - len(inside)
    assert kept_ones == [[0.5, 0.47, 0.44, 0.41], [0.5, 0.47, 0.44], [0.5, 0.47], [0.5]]


@pytest.mark.promise("C80")
def test_each_section_has_its_own_configurable_budget(opened: Callable[..., Memory], owner: Memory) -> None:
    for name, setting in (("working", "working_budget"), ("recalled", "retrieved_budget"), ("pinned", "pinned_budget")):
        sizes = []
        for limit in (12, 30):
            with opened(
                f"{name}{limit}", counter=Words(), policy=Policy(**{setting: limit}), actor=owner.actor
            ) as memory:
                stable = "permanent" if name == "pinned" else None
                tier = "working" if name == "working" else "archival"
                texts = [f"harbour {word} were seen" for word in ("cranes", "gulls", "ropes", "piers")]
                memory.remember_many([{"text": text, "tier": tier, "stability": stable} for text in texts])
                compiled = memory.context("harbour seen")
                sizes.append({each.name: each.tokens for each in compiled.sections}.get(name, 0))
                assert sizes[-1] <= limit
        assert sizes[0] < sizes[1]


@pytest.mark.promise("C84", "C86", "C79")
def test_receipt_lists_ids_and_versions_and_tokens_add_up(opened: Callable[..., Memory], owner: Memory) -> None:
    with opened("sum", actor=owner.actor) as memory:
        fill(memory)
        fact = memory.list_memories(tiers=["archival"])[0]
        kept(memory.revise(fact.id, "Harbour fact revised: 77 ships", reason="counted"))
        compiled = memory.context("ships in the harbour")
        receipt = memory.receipt(compiled.receipt.id)
        listed = {(item["id"], item["version"]) for section in receipt["sections"] for item in section["items"]}
        assert (fact.id, 2) in listed
        shown = {(each.id, each.version) for each in memory.list_memories(limit=None) if each.text in compiled.text}
    assert listed == shown
    assert sum(receipt["tokens_by_tier"].values()) == receipt["tokens"] == compiled.tokens
    assert sum(section["tokens"] for section in receipt["sections"]) == receipt["tokens"]
    assert set(receipt["tokens_by_tier"]) == {"core", "working", "episodic", "archival"}


@pytest.mark.promise("C84")
def test_a_receipt_of_a_context_holds_no_memory_text(opened: Callable[..., Memory], owner: Memory) -> None:
    with opened("bare", actor=owner.actor) as memory:
        fill(memory)
        receipt = memory.receipt(memory.context("what to do").receipt.id)
    # What it explains is read from the memories that it names.
    del receipt["explanation"]
    assert not any(word in str(receipt) for word in ("Oslo", "ships", "pier"))


@pytest.mark.promise("C85")
def test_every_excluded_candidate_is_named_with_its_reason(
    opened: Callable[..., Memory], owner: Memory, clock: Any
) -> None:
    with opened("why", policy=Policy(max_items=2), actor=owner.actor) as memory:
        agent = memory.as_actor(Actor.agent())
        over = kept(memory.remember("harbour note for now", tier="working", ttl="1h"))
        hidden = kept(memory.remember("harbour debts", tier="archival", sensitivity="sensitive"))
        web = kept(agent.remember("harbour rumour of gold", tier="archival", source="web"))
        waits = held(agent.remember("harbour first", key="mission", tier="core"))
        for word in ("cranes", "gulls", "ropes"):
            kept(memory.remember(f"harbour {word}", tier="archival"))
        clock.move(hours=2)
        compiled = memory.context("harbour", purpose="act")
        why = {each.id: each.reason.code for each in compiled.excluded}
        stored = memory.receipt(compiled.receipt.id)["excluded"]
    assert (why[over.id], why[hidden.id], why[web.id], why[waits.id]) == ("expired", "sensitive", "trust", "quarantine")
    assert sorted(why.values()).count("cap") == 1
    assert {each["id"]: each["code"] for each in stored} == why


@pytest.mark.promise("C87")
def test_answer_is_traced_back_to_everything_the_model_read(mem: Memory) -> None:
    read = kept(mem.remember("The tide turns at six", tier="archival"))
    compiled = mem.context("tide")
    answer = kept(mem.remember("We sail at five", tier="archival", evidence=[compiled.receipt.id]))
    receipt = mem.receipt(answer.evidence[0])
    assert receipt["context_id"] == compiled.context_id
    assert [item["id"] for section in receipt["sections"] for item in section["items"]] == [read.id]
