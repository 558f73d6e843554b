"""Compiled contexts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record, quarantined_item

from keepward import Actor, ContextTooSmall, Memory, Policy

# --- What of memory reaches the model: format, filters, caps and order


RULE: dict[str, Any] = {"kind": "rule", "confidence": 0.9, "evidence": ["chat:1"]}
PARTS = ["anchor", "bell", "compass", "deck", "engine", "flag", "galley"]


@pytest.mark.promise("B35")
def test_context_text_and_its_list_of_memories_agree(mem: Memory) -> None:
    wanted = [
        committed_record(mem.remember(f"The {name} ferry is blue", tier="archival")) for name in ("Thor", "Freya")
    ]
    compiled = mem.context("which ferry is blue")
    items = [item.id for section in compiled.sections for item in section.items]
    assert sorted(items) == sorted(each.id for each in wanted)
    shown = re.findall(r"^\[fact\] (.*)$", compiled.text, re.MULTILINE)
    assert shown == [mem.get(each).text for each in items]


@pytest.mark.promise("B36")
def test_recalled_memories_share_one_heading_and_show_their_kind(mem: Memory) -> None:
    committed_record(mem.remember("The ferry is blue", tier="archival"))
    committed_record(mem.remember("Paint the ferry in May", **RULE))
    blocks = mem.context("paint the blue ferry").text.split("\n\n")
    assert blocks[0].splitlines()[0] == "## Memory Context · noted by an agent"
    assert blocks[1].startswith("### ")
    assert sorted(blocks[2:]) == ["[fact] The ferry is blue", "[rule] Paint the ferry in May"]


@pytest.mark.promise("B36")
def test_a_context_without_memories_is_the_empty_text(mem: Memory) -> None:
    assert mem.context("paint the blue ferry").text == ""


@pytest.mark.promise("B37", "B38", "B39")
def test_expired_replaced_and_sensitive_memories_are_excluded_with_reasons(mem: Memory, clock: Any) -> None:
    over = committed_record(mem.remember("The ferry is late today", tier="working", ttl="1h"))
    old = committed_record(mem.remember("The ferry is red", tier="archival"))
    new = committed_record(mem.remember("The ferry was painted blue", tier="archival"))
    committed_record(mem.supersede(old.id, new.id, reason="painted"))
    secret = committed_record(mem.remember("The ferry captain is ill", tier="archival", sensitivity="sensitive"))
    clock.move(hours=2)
    compiled = mem.context("ferry captain late red blue")
    lines = [line for line in compiled.text.splitlines() if line.startswith("[")]
    assert [line.partition(" (")[0] for line in lines] == ["[fact] The ferry was painted blue"]
    why = {each.id: each.reason.code for each in compiled.excluded}
    assert why == {over.id: "expired", secret.id: "sensitive"}


@pytest.mark.promise("A64")
@pytest.mark.parametrize("objective", ["hello", "Which colour has quay 3?"])
def test_a_context_begins_with_the_snapshot_however_many_rules_there_are(owner: Memory, objective: str) -> None:
    for number in range(13):
        committed_record(
            owner.remember(f"Quay {number} is painted in colour {number * 7}", kind="rule", stability="permanent")
        )
    snapshot = owner.snapshot().text
    assert (owner.context(objective).text.startswith(snapshot), snapshot.count("[rule")) == (True, 10)


@pytest.mark.promise("B40")
def test_prompt_recalls_up_to_the_policy_limit(opened: Callable[..., Memory], clock: Any) -> None:
    mem = opened("twenty", policy=Policy(max_items=20)).as_actor(Actor.agent())
    names = [f"Ferry number {n} sails to island {n * 7}" for n in range(25)]
    for name in names:
        clock.move(minutes=1)
        committed_record(mem.remember(name, tier="archival"))
    assert [each.text for each in mem.list_memories(limit=20)] == names[:4:-1]
    compiled = mem.context("ferry island", budget_tokens=2_000)
    assert compiled.text.count("[fact]") == 20
    assert [each.reason.code for each in compiled.excluded] == ["cap"] * 5


@pytest.mark.promise("B40")
@pytest.mark.parametrize("query", ["", "  "])
def test_memory_block_without_a_query_has_the_newest_twenty(owner: Memory, mem: Memory, clock: Any, query: str) -> None:
    names = [f"Ferry number {n} sails to island {n * 7}" for n in range(25)]
    for name in names:
        clock.move(minutes=1)
        committed_record(mem.remember(name, tier="archival"))
    for n in range(90):
        committed_record(
            owner.remember(f"The pin of card {n} is in the safe", sensitivity="sensitive", tier="archival")
        )
    committed_record(owner.remember("Sail to Oslo", key="mission", tier="core"))
    mem.forget(committed_record(mem.remember("Ferry number 99 sails to the moon")).id, reason="wrong")
    block = mem.memory_block(query, budget_tokens=2_000)
    assert re.findall(r"Ferry number (\d+)", block.text) == [str(n) for n in range(24, 4, -1)]
    assert "Oslo" not in block.text
    assert "pin of card" not in block.text


@pytest.mark.promise("B40")
def test_working_notes_newest_first(mem: Memory, clock: Any) -> None:
    for name in ("first", "second", "third"):
        clock.move(minutes=1)
        committed_record(mem.remember(f"the {name} call was made", tier="working"))
    assert re.findall(r"the (\w+) call", mem.context("").text) == ["third", "second", "first"]


@pytest.mark.promise("B41", "B54")
def test_relevant_old_memory_precedes_recent_irrelevant_ones(opened: Callable[..., Memory], clock: Any) -> None:
    with opened("few", policy=Policy(max_items=3)) as memory:
        committed_record(memory.remember("The spare anchor lies in shed nine", tier="archival"))
        for n in range(8):
            clock.move(days=1)
            committed_record(memory.remember(f"Lunch on day {n} was soup number {n}", tier="archival"))
        assert "shed nine" in memory.context("where is the spare anchor").text
        assert "shed nine" not in memory.context("what soup was for lunch on day 5").text


@pytest.mark.promise("B42")
def test_chat_messages_contain_every_memory_and_nothing_else(mem: Memory, owner: Memory) -> None:
    committed_record(owner.remember("Sail to Oslo", key="mission", tier="core"))
    committed_record(mem.remember("The ferry is blue", tier="archival"))
    messages = json.loads(mem.context("which ferry", format="messages").text)
    assert [each["role"] for each in messages] == ["system", "user"]
    assert "Sail to Oslo" in messages[0]["content"]
    assert "[fact] The ferry is blue" in messages[1]["content"]
    assert "".join(each["content"] for each in messages) == mem.context("which ferry").text.replace(
        "\n\n## Memory Context", "## Memory Context"
    )


@pytest.mark.promise("B43", "B46", "B8")
def test_identity_then_rules_then_summaries_in_any_write_order(opened: Callable[..., Memory], tmp_path: Any) -> None:
    (tmp_path / "identity.md").write_text("I am Orion.")
    with opened("own", identity=tmp_path / "identity.md", actor=Actor.operator("olga")) as own:
        memory = own.as_actor(Actor.agent())
        committed_record(memory.remember("Summed up: the ferry sailed", kind="summary"))
        own.approve(quarantined_item(memory.remember("The ferry never sails in fog", stability="permanent", **RULE)).id)
        text = memory.context("ferry sailed").text
    places = [text.index(part) for part in ("I am Orion.", "never sails in fog", "Summed up")]
    assert places == sorted(places)


@pytest.mark.promise("B44")
def test_at_most_ten_permanent_rules_are_pinned(
    owner: Memory,
) -> None:
    words = [*PARTS, "hatch", "island", "jetty", "keel", "lamp"]
    lasting: dict[str, Any] = {**RULE, "stability": "permanent"}
    rules = [committed_record(owner.remember(f"Check the {word} daily", **lasting)) for word in words]
    committed_record(owner.supersede(rules[0].id, rules[1].id, reason="one check"))
    committed_record(owner.remember("Hide the wine from guests", sensitivity="sensitive", **lasting))
    orion = owner.at(scope="orion")
    committed_record(orion.remember("Feed the cat at noon", **lasting))
    compiled = orion.context("")
    shown = re.findall(r"\[rule\] (.*)", compiled.text)
    assert len(shown) == 10
    assert "Feed the cat at noon" in shown
    assert not {"Check the anchor daily", "Hide the wine from guests"} & set(shown)
    assert [each.reason.code for each in compiled.excluded] == ["cap", "cap", "sensitive"]


@pytest.mark.promise("B45")
def test_at_most_five_valid_summaries_are_recalled(mem: Memory, owner: Memory) -> None:
    made = [committed_record(mem.remember(f"Summed up the voyage: {word} repaired", kind="summary")) for word in PARTS]
    committed_record(owner.supersede(made[0].id, made[1].id, reason="said already"))
    committed_record(mem.remember("Summed up the voyage: captain ill", kind="summary", sensitivity="sensitive"))
    compiled = mem.context("summary of the voyage")
    shown = re.findall(r"\[summary\] (.*)", compiled.text)
    assert len(shown) == 5
    assert not {"Summed up the voyage: anchor repaired", "Summed up the voyage: captain ill"} & set(shown)
    assert sorted(each.reason.code for each in compiled.excluded) == ["cap", "sensitive"]


# --- The compiled context: the same every time, within budget, and fully accounted for


TASK = "/agents/orion/tasks/42"


class Words:
    """Counts words, so that budgets can be reckoned in the head."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def fill(memory: Memory) -> None:
    """Store something of every tier."""
    committed_record(memory.remember("Sail to Oslo", key="mission", tier="core"))
    for n in range(6):
        committed_record(memory.remember(f"Harbour fact number {n} about pier {n * 3}", tier="archival"))
        committed_record(memory.remember(f"Harbour day {n}: {n * 2} ships came in", kind="event", session="s1"))
    committed_record(memory.remember("Harbour week in short: many ships", kind="summary"))
    committed_record(memory.remember("call the harbour master", tier="working"))


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
                committed_record(memory.remember(text, tier="archival"))
                committed_record(memory.remember(f"todo: {text}", tier="working", ttl="2d"))
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
                committed_record(memory.revise(record.id, f"{record.text}, revised", reason="later"))
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
    committed_record(task.remember("task note"))
    clock.move(minutes=5)
    committed_record(mem.remember("shared note", tier="working"))
    committed_record(mem.at(scope="orion").remember("agent note", tier="working"))
    over = committed_record(task.remember("short note", ttl="10m"))
    clock.move(minutes=10)
    compiled = task.context("")
    order = [compiled.text.index(f"{who} note") for who in ("task", "agent", "shared")]
    assert order == sorted(order)
    assert "short note" not in compiled.text
    assert [(each.id, each.reason.code) for each in compiled.excluded] == [(over.id, "expired")]


@pytest.mark.promise("C76")
def test_objective_brings_in_the_relevant_fact_and_summary(mem: Memory) -> None:
    committed_record(mem.remember("The spare anchor lies in shed nine", tier="archival"))
    committed_record(mem.remember("Ana oiled the anchor winch last week", kind="summary"))
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
            record = committed_record(memory.remember(f"harbour {word} seen", tier="archival", confidence=confidence))
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
        committed_record(memory.revise(fact.id, "Harbour fact revised: 77 ships", reason="counted"))
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
        over = committed_record(memory.remember("harbour note for now", tier="working", ttl="1h"))
        hidden = committed_record(memory.remember("harbour debts", tier="archival", sensitivity="sensitive"))
        web = committed_record(agent.remember("harbour rumour of gold", tier="archival", source="web"))
        waits = quarantined_item(agent.remember("harbour first", key="mission", tier="core"))
        for word in ("cranes", "gulls", "ropes"):
            committed_record(memory.remember(f"harbour {word}", tier="archival"))
        clock.move(hours=2)
        compiled = memory.context("harbour", purpose="act")
        why = {each.id: each.reason.code for each in compiled.excluded}
        stored = memory.receipt(compiled.receipt.id)["excluded"]
    assert (why[over.id], why[hidden.id], why[web.id], why[waits.id]) == ("expired", "sensitive", "trust", "quarantine")
    assert sorted(why.values()).count("cap") == 1
    assert {each["id"]: each["code"] for each in stored} == why


@pytest.mark.promise("C87")
def test_answer_is_traced_back_to_everything_the_model_read(mem: Memory) -> None:
    read = committed_record(mem.remember("The tide turns at six", tier="archival"))
    compiled = mem.context("tide")
    answer = committed_record(mem.remember("We sail at five", tier="archival", evidence=[compiled.receipt.id]))
    receipt = mem.receipt(answer.evidence[0])
    assert receipt["context_id"] == compiled.context_id
    assert [item["id"] for section in receipt["sections"] for item in section["items"]] == [read.id]
