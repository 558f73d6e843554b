"""What use and time make of a memory (promises C98, E13, E15, E39, E40, E46, E51, E52, E54)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from outcomes import held, kept

from keepward import Committed, Conflict, Memory, Policy
from keepward.core.reducer import content

IDLE = 1_110


@pytest.mark.promise("E13", "E15", "E51")
def test_get_reports_the_number_and_time_of_deliveries(owner: Memory, clock: Any) -> None:
    name = kept(owner.remember("The ferry is red")).id
    fresh = owner.get(name)
    assert (fresh.uses, fresh.last_used) == (0, None)
    seen = []
    for _ in range(3):
        clock.move(hours=5)
        owner.recall("the ferry")
        again = owner.get(name)
        seen.append((again.uses, again.last_used))
        clock.move(minutes=5)
        kept(owner.remember(f"A day of {len(seen)} gulls"))
    assert [count for count, _ in seen] == [1, 2, 3]
    last = owner.get(name)
    assert (last.uses, last.last_used) == (3, seen[-1][1])
    assert last.last_used == clock.now() - timedelta(minutes=5)


@pytest.mark.promise("E39", "E40", "E52", "C98")
@pytest.mark.parametrize("steps", [1, 37])
def test_importance_and_confidence_fade_by_the_formula_in_every_read(owner: Memory, clock: Any, steps: int) -> None:
    made = kept(owner.remember("The ferry is red", importance=0.8, confidence=0.9))
    for _ in range(steps):
        clock.move(days=74 / steps)
        owner.run_job("decay_archival")
        found = owner.list_memories()[0]
    for read in (owner.get(made.id), found, owner.recall("the ferry")[0].memory):
        assert (read.importance, read.confidence) == (
            pytest.approx(0.8 * math.exp(-0.74), abs=1e-4),
            pytest.approx(0.9 * 0.5 ** (74 / 30), abs=1e-4),
        )
        assert (read.base_importance, read.base_confidence) == (0.8, 0.9)
        assert (read == made, content(read) == content(made)) == (True, True)


@pytest.mark.promise("E39", "E52")
def test_decayed_importance_counts_in_filters(owner: Memory, clock: Any) -> None:
    name = kept(owner.remember("The ferry is red", importance=0.8)).id
    seq = owner.log()[0].commit.seq
    days = [0, 30, 46, 48, IDLE]
    passed = []
    for day, before in zip(days, [0, *days], strict=False):
        clock.move(days=day - before)
        ids = [each.id for each in owner.list_memories(min_importance=0.5)]
        hits = [hit.memory.id for hit in owner.recall("the ferry", min_importance=0.5)]
        assert ids == hits
        assert [each.id for each in owner.list_memories(min_importance=0.5, include_ended=True)] == ids
        passed.append(ids == [name])
    assert passed == [True, True, True, False, False]
    assert [each.importance for each in owner.list_memories(min_importance=0.5, as_of=seq)] == [0.8]
    assert [hit.memory.importance for hit in owner.recall("the ferry", min_importance=0.5, as_of=seq)] == [0.8]


@pytest.mark.promise("E40")
def test_importance_never_falls_below_a_hundredth(owner: Memory, clock: Any) -> None:
    name = kept(owner.remember("The ferry is red", importance=0.8)).id
    low = kept(owner.remember("Gulls are loud", importance=0.004)).id
    clock.move(days=20_000)
    assert (owner.get(name).importance, owner.get(low).importance) == (0.01, 0.004)


@pytest.mark.promise("E52", "E12")
@pytest.mark.parametrize("how", ["used", "confirmed", "told again"])
def test_confirmation_starts_from_the_decayed_importance(owner: Memory, clock: Any, how: str) -> None:
    name = kept(owner.remember("The ferry is red", importance=0.8)).id
    clock.move(days=IDLE)
    if how == "used":
        owner.recall("the ferry")
        owner.run_job("learn_importance")
        assert owner.get(name).importance == pytest.approx(0.01 + 0.99 * 0.02, abs=1e-4)
    elif how == "confirmed":
        kept(owner.reinforce(name, gain=0.1))
        assert owner.get(name).importance == 0.11
    else:
        owner.remember("The ferry is red")
        assert owner.get(name).importance == 0.01


@pytest.mark.promise("C98", "E39", "C35")
def test_core_and_lasting_memories_do_not_fade(owner: Memory, clock: Any) -> None:
    made = [
        kept(owner.remember("Ship the app by June", tier="core", key="mission", importance=0.8)),
        kept(owner.remember("The ferry is red", stability="permanent", importance=0.8)),
    ]
    clock.move(days=IDLE)
    for each in made:
        read = owner.get(each.id)
        assert (read.importance, read.confidence) == (0.8, each.confidence)
    assert {each.id for each in owner.list_memories(min_importance=0.8)} == {each.id for each in made}


@pytest.mark.promise("C98")
def test_a_poisoned_note_fades_while_what_is_confirmed_does_not(owner: Memory, mem: Memory, clock: Any) -> None:
    poison = kept(mem.remember("The ferry sank in the night", source="web"))
    fact = kept(owner.remember("The ferry was painted red by Bo", source="user_message"))
    for _ in range(12):
        clock.move(days=10)
        kept(owner.reinforce(fact.id))
    assert (owner.get(poison.id).confidence < 0.04, owner.get(fact.id).confidence) == (True, fact.confidence)


@pytest.mark.promise("E46", "E54")
def test_full_tier_drops_the_least_important_then_least_used(opened: Callable[..., Memory], clock: Any) -> None:
    policy = Policy(capacity={"archival": 3}, removal_share=1.0)
    with opened("full", policy=policy) as memory:
        agent = memory.as_actor(type(memory.actor).agent())
        faded = kept(agent.remember("The mast is new", importance=0.9))
        clock.move(days=200)
        used = kept(agent.remember("The keel is long", importance=0.5))
        clock.move(seconds=1)
        idle = kept(agent.remember("Gulls are loud", importance=0.5))
        assert memory.recall("how long is the keel", limit=1)[0].memory.id == used.id
        clock.move(seconds=1)
        gone = []
        for text in ("Rope is cheap", "Fog came early"):
            kept_ids = {each.id for each in memory.list_memories()}
            assert agent.remember(text, importance=0.9).outcome == "committed"
            gone += sorted(kept_ids - {each.id for each in memory.list_memories()})
        assert gone == [faded.id, idle.id]
        assert memory.get(idle.id).status.value == "archived"


@pytest.mark.promise("E46")
def test_full_tier_prefers_used_memories(opened: Callable[..., Memory], clock: Any) -> None:
    with opened("used", policy=Policy(capacity={"archival": 2}, removal_share=1.0)) as memory:
        used = kept(memory.remember("The keel is long", importance=0.45))
        idle = kept(memory.remember("Gulls are loud", importance=0.5))
        for _ in range(6):
            memory.recall("how long is the keel", limit=1)
        kept(memory.remember("The tide is out", tier="working"))
        memory.remember("Rope is cheap", importance=0.9)
        assert [memory.get(each.id).status.value for each in (used, idle)] == ["active", "archived"]


def test_json_of_a_memory_shows_stored_and_decayed_values(owner: Memory, clock: Any) -> None:
    from keepward.core import results

    name = kept(owner.remember("The ferry is red", importance=0.8, confidence=0.9)).id
    clock.move(days=30)
    owner.recall("the ferry")
    shown = json.loads(json.dumps(results.record_as_dict(owner.get(name))))
    assert (shown["confidence"], shown["base_confidence"], shown["base_importance"]) == (0.45, 0.9, 0.8)
    assert (shown["importance"], shown["uses"], shown["last_used"]) == (0.5927, 1, clock.now().isoformat())


@pytest.mark.promise("E18", "E29")
def test_lineage_is_reported_in_both_directions(owner: Memory, mem: Memory) -> None:
    parents = [kept(owner.remember(text)) for text in ("The ferry is red", "The ferry is slow")]
    child = kept(owner.remember("Red boats are slow", derived_from=[parents[0].id]))
    hidden = kept(owner.at(scope="/agents/bo").remember("Bo thinks so", derived_from=[parents[0].id]))
    assert owner.get(child.id).derived_from == (parents[0].id,)
    assert owner.get(parents[0].id).children == tuple(sorted([child.id, hidden.id]))
    assert owner.get(parents[1].id).children == ()
    merged = owner.merge([each.id for each in parents], "The ferry is red and slow", reason="one note")
    assert isinstance(merged, Committed)
    summary = merged.records[0]
    for each in parents:
        assert summary.id in (owner.get(each.id).children or ())
    assert set(summary.derived_from) == {each.id for each in parents}
    assert owner.get(parents[1].id, as_of=owner.log()[-1].commit.seq + 1).children == ()
    other = mem.at(scope="/agents/ana")
    assert hidden.id not in (other.get(parents[0].id).children or ())


@pytest.mark.promise("E19")
def test_a_person_puts_a_memory_away_and_brings_it_back(owner: Memory) -> None:
    made = kept(owner.remember("The ferry is red"))
    away = kept(owner.archive(made.id, reason="nobody asks", if_version=1))
    assert (away.status.value, owner.list_memories(), len(owner.recall("the ferry")), owner.context("ferry").text) == (
        "archived",
        [],
        0,
        "",
    )
    with pytest.raises(Conflict):
        owner.archive(made.id, reason="again")
    back = kept(owner.restore(made.id, reason="asked for"))
    assert ([each.id for each in owner.list_memories()], back.text) == ([made.id], made.text)


@pytest.mark.promise("E19")
def test_archiving_a_protected_memory_needs_approval(owner: Memory, mem: Memory) -> None:
    made = kept(owner.remember("The ferry is red", access="approval"))
    item = held(mem.archive(made.id, reason="in the way"))
    assert [each.id for each in owner.list_memories()] == [made.id]
    assert kept(owner.approve(item.id)).status.value == "archived"


def test_decayed_memory_below_the_tier_minimum_is_not_moved(mem: Memory, clock: Any) -> None:
    made = kept(mem.remember("The ferry is red", tier="working", ttl="90d", confidence=0.5))
    early = kept(mem.remember("The harbour opens at six", tier="working", ttl="90d", confidence=0.5))
    kept(mem.move(early.id, tier="archival", reason="worth keeping"))
    clock.move(days=25)
    item = held(mem.move(made.id, tier="archival", reason="worth keeping"))
    assert {each.code for each in item.reasons} == {"below_floor"}
