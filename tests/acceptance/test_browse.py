"""Browsing: a window is a part of one order, a count is of what may be seen, and the past is as it was."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest
from outcomes import kept

from keepward import Actor, InvalidInput, Memory

TEXTS = ("Rye bread takes a day", "The shop opens at eight", "Tom prefers emails", "The oven is at 230 degrees")


@pytest.fixture
def owner(tmp_path, clock):
    folder = tmp_path / "config"
    with Memory.open(tmp_path / "m.db", clock=clock, config_dir=folder, actor=Actor.operator("olga")) as memory:
        yield memory


@pytest.fixture
def agent(owner):
    return owner.acting_as(Actor.agent("claude"))


@pytest.fixture
def story(owner, agent, clock):
    """Four memories, of which one is revised, one retired and one expires, a day apart."""
    ids = []
    for number, text in enumerate(TEXTS):
        ttl = "3d" if number == 2 else None
        ids.append(kept(agent.remember(text, tier="archival", tags=[f"t{number % 2}"], ttl=ttl)).id)
        clock.move(days=1)
    owner.revise(ids[0], "Rye bread takes two days", reason="measured")
    owner.forget(ids[1], reason="it moved")
    clock.move(days=3)
    return ids


def ids_of(found):
    return [each.id for each in found]


def test_a_window_has_what_a_list_has_at_every_commit(owner, story):
    head = int(owner.head.split(":")[0])
    for seq, ended, tags in product([*range(head + 1), None], (False, True), ((), ("t0",))):
        asked = {"as_of": seq, "include_ended": ended, "tags": tags}
        listed = ids_of(owner.find(limit=None, **asked))
        assert ids_of(owner.find(offset=0, limit=None, **asked)) == listed
        assert owner.facets(**asked).total == len(listed)


def test_windows_side_by_side_are_the_whole_order(owner, story):
    for sort, ascending in product(("created", "changed", "confidence", "trust", "source"), (False, True)):
        asked = {"sort": sort, "ascending": ascending, "include_ended": True}
        whole = ids_of(owner.find(limit=None, **asked))
        parts = [ids_of(owner.find(limit=1, offset=place, **asked)) for place in range(len(whole))]
        assert [each for part in parts for each in part] == whole
        assert sorted(whole) == sorted(story)


def test_what_was_computed_for_an_order_is_what_a_memory_shows(owner, story):
    found = owner.find(sort="confidence", limit=None)
    shown = [each.confidence for each in found]
    assert shown == sorted(shown, reverse=True)
    least = found[-1].importance
    assert len(owner.find(offset=0, min_importance=least, limit=None)) == len(found)
    assert len(owner.find(offset=0, min_importance=round(least + 0.0001, 4), limit=None)) < len(found)


def test_a_status_is_that_of_the_clock(owner, story):
    counts = {each.value: each.count for each in owner.facets().facets["status"]}
    assert counts == {"active": 2, "expired": 1, "retired": 1}
    assert ids_of(owner.find(statuses=["expired"])) == [story[2]]


def test_what_became_sensitive_counts_in_no_state_for_who_may_not_read_it(owner, agent):
    plain = kept(agent.remember("The shop opens at eight", tier="archival"))
    record = kept(agent.remember("Ana has an appointment on Friday", tier="archival", tags=["health"]))
    before = owner.head.split(":")[0]
    owner.revise(record.id, "Ana sees a doctor on Friday", sensitivity="sensitive", reason="private")
    for seq in (None, int(before)):
        assert ids_of(agent.find(offset=0, as_of=seq)) == [plain.id]
        assert agent.facets(as_of=seq).facets["tag"] == ()
        assert agent.sources(as_of=seq).actors[0].memories == 1
        assert agent.meaning_map(as_of=seq).total == 1
        assert "sensitive" in agent.facets(as_of=seq).notes[0]
    assert owner.facets().total == 2


def test_what_was_erased_is_found_by_no_part_of_its_text(owner, agent):
    record = kept(agent.remember("Ana lives at 7 Mill Lane", tier="archival", subject="Ana"))
    assert ids_of(owner.find(text="mill lane")) == [record.id]
    owner.erase(owner.plan_erase(ids=[record.id]).digest, ids=[record.id])
    for seq in (None, 1):
        assert ids_of(owner.find(text="mill lane", include_ended=True, as_of=seq)) == []
    assert not any("mill lane" in text for text in owner._session.engine.catalogues._held["default"].catalogue._texts)


def test_a_store_that_was_put_back_is_browsed_as_it_is_now(tmp_path, clock):
    given = {"clock": clock, "embedder": None, "config_dir": tmp_path / "config", "actor": Actor.operator("olga")}
    with Memory.open(tmp_path / "m.db", **given) as memory, Memory.open(tmp_path / "m.db", **given) as other:
        memory.remember(TEXTS[0])
        assert memory.facets().total == 1
        other.remember(TEXTS[1])
        assert memory.facets().total == 2


def test_a_map_is_the_same_each_time_and_puts_like_beside_like(owner, agent, tmp_path):
    bread = [f"Rye bread number {n} rests for a day in the cold" for n in range(4)]
    trains = [f"Train number {n} to Leeds leaves from platform two" for n in range(4)]
    ids = [kept(agent.remember(text, tier="archival")).id for text in (*bread, *trains)]
    found = owner.meaning_map()
    assert (found.total, found.placed, set(found.ids)) == (8, 8, set(ids))
    assert all(-1000 <= each <= 1000 for each in (*found.x, *found.y))
    places = dict(zip(found.ids, found.x, strict=True))
    sides = [{places[each] > 0 for each in part} for part in (ids[:4], ids[4:])]
    assert sides in ([{True}, {False}], [{False}, {True}])
    with Memory.open(
        owner.path, clock=owner._session.clock, config_dir=tmp_path / "config", actor=owner.actor
    ) as again:
        assert again.meaning_map() == found


def test_a_map_of_many_shows_evenly_spaced_ones_and_says_so(owner, story):
    found = owner.meaning_map(limit=2, include_ended=True)
    assert (found.total, found.placed) == (4, 2)
    assert set(found.ids) == {story[0], story[3]}
    assert "evenly spaced" in found.notes[0]


@pytest.mark.parametrize("asked", [{"sort": "colour"}, {"offset": -1}, {"trusts": ["high"]}, {"statuses": ["gone"]}])
def test_a_window_that_cannot_be_is_an_error(owner, asked):
    with pytest.raises(InvalidInput):
        owner.find(**asked)


def test_days_are_those_of_the_readers_zone(owner, agent, clock):
    agent.remember(TEXTS[0])
    now = clock.now()
    east = (24 - now.hour) * 60
    assert owner.activity(days=1).days == (now.date().isoformat(),)
    assert owner.activity(days=1, zone=east).days == ((now + timedelta(days=1)).date().isoformat(),)
    assert owner.activity(days=1, zone=east).counts == (1,)
