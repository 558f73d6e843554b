"""What of memory reaches the model: format, filters, caps and order (promises B8, B24, B35-B46)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from outcomes import held, kept

from keepward import Actor, Memory, Policy

RULE: dict[str, Any] = {"kind": "rule", "confidence": 0.9, "evidence": ["chat:1"]}
PARTS = ["anchor", "bell", "compass", "deck", "engine", "flag", "galley"]


@pytest.mark.promise("B35")
def test_context_text_and_its_list_of_memories_agree(mem: Memory) -> None:
    wanted = [kept(mem.remember(f"The {name} ferry is blue", tier="archival")) for name in ("Thor", "Freya")]
    compiled = mem.context("which ferry is blue")
    items = [item.id for section in compiled.sections for item in section.items]
    assert sorted(items) == sorted(each.id for each in wanted)
    shown = re.findall(r"^\[fact\] (.*)$", compiled.text, re.MULTILINE)
    assert shown == [mem.get(each).text for each in items]


@pytest.mark.promise("B36")
def test_recalled_memories_share_one_heading_and_show_their_kind(mem: Memory) -> None:
    kept(mem.remember("The ferry is blue", tier="archival"))
    kept(mem.remember("Paint the ferry in May", **RULE))
    blocks = mem.context("paint the blue ferry").text.split("\n\n")
    assert blocks[0].splitlines()[0] == "## Memory Context · noted by an agent"
    assert blocks[1].startswith("### ")
    assert sorted(blocks[2:]) == ["[fact] The ferry is blue", "[rule] Paint the ferry in May"]


@pytest.mark.promise("B36")
def test_a_context_without_memories_is_the_empty_text(mem: Memory) -> None:
    assert mem.context("paint the blue ferry").text == ""


@pytest.mark.promise("B37", "B38", "B39")
def test_expired_replaced_and_sensitive_memories_are_excluded_with_reasons(mem: Memory, clock: Any) -> None:
    over = kept(mem.remember("The ferry is late today", tier="working", ttl="1h"))
    old = kept(mem.remember("The ferry is red", tier="archival"))
    new = kept(mem.remember("The ferry was painted blue", tier="archival"))
    kept(mem.supersede(old.id, new.id, reason="painted"))
    secret = kept(mem.remember("The ferry captain is ill", tier="archival", sensitivity="sensitive"))
    clock.move(hours=2)
    compiled = mem.context("ferry captain late red blue")
    lines = [line for line in compiled.text.splitlines() if line.startswith("[")]
    assert [line.partition(" (")[0] for line in lines] == ["[fact] The ferry was painted blue"]
    why = {each.id: each.reason.code for each in compiled.excluded}
    assert why == {over.id: "expired", secret.id: "sensitive"}


@pytest.mark.promise("B40")
def test_prompt_recalls_up_to_the_policy_limit(opened: Callable[..., Memory], clock: Any) -> None:
    mem = opened("twenty", policy=Policy(max_items=20)).as_actor(Actor.agent())
    names = [f"Ferry number {n} sails to island {n * 7}" for n in range(25)]
    for name in names:
        clock.move(minutes=1)
        kept(mem.remember(name, tier="archival"))
    assert [each.text for each in mem.list_memories(limit=20)] == names[:4:-1]
    compiled = mem.context("ferry island")
    assert compiled.text.count("[fact]") == 20
    assert [each.reason.code for each in compiled.excluded] == ["cap"] * 5


@pytest.mark.promise("B40")
def test_working_notes_newest_first(mem: Memory, clock: Any) -> None:
    for name in ("first", "second", "third"):
        clock.move(minutes=1)
        kept(mem.remember(f"the {name} call was made", tier="working"))
    assert re.findall(r"the (\w+) call", mem.context("").text) == ["third", "second", "first"]


@pytest.mark.promise("B41", "B54")
def test_relevant_old_memory_precedes_recent_irrelevant_ones(opened: Callable[..., Memory], clock: Any) -> None:
    with opened("few", policy=Policy(max_items=3)) as memory:
        kept(memory.remember("The spare anchor lies in shed nine", tier="archival"))
        for n in range(8):
            clock.move(days=1)
            kept(memory.remember(f"Lunch on day {n} was soup number {n}", tier="archival"))
        assert "shed nine" in memory.context("where is the spare anchor").text
        assert "shed nine" not in memory.context("what soup was for lunch on day 5").text


@pytest.mark.promise("B42")
def test_chat_messages_contain_every_memory_and_nothing_else(mem: Memory, owner: Memory) -> None:
    kept(owner.remember("Sail to Oslo", key="mission", tier="core"))
    kept(mem.remember("The ferry is blue", tier="archival"))
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
        kept(memory.remember("Summed up: the ferry sailed", kind="summary"))
        own.approve(held(memory.remember("The ferry never sails in fog", stability="permanent", **RULE)).id)
        text = memory.context("ferry sailed").text
    places = [text.index(part) for part in ("I am Orion.", "never sails in fog", "Summed up")]
    assert places == sorted(places)


@pytest.mark.promise("B44")
def test_at_most_ten_permanent_rules_are_pinned(
    owner: Memory,
) -> None:
    words = [*PARTS, "hatch", "island", "jetty", "keel", "lamp"]
    lasting: dict[str, Any] = {**RULE, "stability": "permanent"}
    rules = [kept(owner.remember(f"Check the {word} daily", **lasting)) for word in words]
    kept(owner.supersede(rules[0].id, rules[1].id, reason="one check"))
    kept(owner.remember("Hide the wine from guests", sensitivity="sensitive", **lasting))
    orion = owner.at(scope="orion")
    kept(orion.remember("Feed the cat at noon", **lasting))
    compiled = orion.context("")
    shown = re.findall(r"\[rule\] (.*)", compiled.text)
    assert len(shown) == 10
    assert "Feed the cat at noon" in shown
    assert not {"Check the anchor daily", "Hide the wine from guests"} & set(shown)
    assert [each.reason.code for each in compiled.excluded] == ["cap", "cap", "sensitive"]


@pytest.mark.promise("B45")
def test_at_most_five_valid_summaries_are_recalled(mem: Memory, owner: Memory) -> None:
    made = [kept(mem.remember(f"Summed up the voyage: {word} repaired", kind="summary")) for word in PARTS]
    kept(owner.supersede(made[0].id, made[1].id, reason="said already"))
    kept(mem.remember("Summed up the voyage: captain ill", kind="summary", sensitivity="sensitive"))
    compiled = mem.context("summary of the voyage")
    shown = re.findall(r"\[summary\] (.*)", compiled.text)
    assert len(shown) == 5
    assert not {"Summed up the voyage: anchor repaired", "Summed up the voyage: captain ill"} & set(shown)
    assert sorted(each.reason.code for each in compiled.excluded) == ["cap", "sensitive"]
