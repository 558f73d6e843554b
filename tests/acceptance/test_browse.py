"""Browsing: a window is a part of one order, a count is of what may be seen, and the past is as it was."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest
from outcomes import committed_record

from keepward import Actor, Filters, InvalidInput, Memory
from keepward.storage import rows
from support import tamper
from support.bulk_data import many_memories

TEXTS = ("Rye bread takes a day", "The shop opens at eight", "Tom prefers emails", "The oven is at 230 degrees")


@pytest.fixture
def owner(tmp_path, clock):
    folder = tmp_path / "config"
    with Memory.open(tmp_path / "m.db", clock=clock, config_dir=folder, actor=Actor.operator("olga")) as memory:
        yield memory


@pytest.fixture
def agent(owner):
    return owner.as_actor(Actor.agent("claude"))


@pytest.fixture
def story(owner, agent, clock):
    """Four memories, of which one is revised, one retired and one expires, a day apart."""
    ids = []
    for number, text in enumerate(TEXTS):
        ttl = "3d" if number == 2 else None
        ids.append(committed_record(agent.remember(text, tier="archival", tags=[f"t{number % 2}"], ttl=ttl)).id)
        clock.move(days=1)
    owner.revise(ids[0], "Rye bread takes two days", reason="measured")
    owner.forget(ids[1], reason="it moved")
    clock.move(days=3)
    return ids


@pytest.fixture
def bend(owner):
    """Return what edits the stored content of a memory past its seal."""

    def edit(memory_id):
        tamper.run(owner.path, tamper.BENT_BODY.format(memory_id))

    return edit


def ids_of(found):
    return [each.id for each in found]


def test_a_page_and_a_list_narrow_to_the_job(agent):
    made = [
        committed_record(agent.remember(f"Goal: bread {job}", kind="summary", tier="episodic", job=job)).id
        for job in ("a", "b")
    ]
    pages = agent.list_memories(job="b", offset=0), agent.list_memories(job="b")
    assert [[each.id for each in page] for page in pages] == [made[1:], made[1:]]
    counted = agent.facets(filters=Filters(job="b")), agent.facets(filters=Filters(job="b", text="bread", key="none"))
    assert [each.total for each in counted] == [1, 0]


def test_a_misspelt_filter_of_a_count_is_named(agent):
    with pytest.raises(InvalidInput, match=r"tag.*tags"):
        agent.facets(filters={"tag": ["work"]})


def test_a_window_has_what_a_list_has_at_every_commit(owner, story):
    head = int(owner.head.split(":")[0])
    for seq, ended, tags in product([*range(head + 1), None], (False, True), ((), ("t0",))):
        asked = {"as_of": seq, "include_ended": ended, "tags": tags}
        listed = ids_of(owner.list_memories(limit=None, **asked))
        assert ids_of(owner.list_memories(offset=0, limit=None, **asked)) == listed
        if seq is None:
            assert owner.facets(filters=Filters(include_ended=ended, tags=tags)).total == len(listed)


def test_windows_side_by_side_are_the_complete_order(owner, story):
    for sort, ascending in product(("created", "changed", "confidence", "trust", "source"), (False, True)):
        asked = {"sort": sort, "ascending": ascending, "include_ended": True}
        whole = ids_of(owner.list_memories(limit=None, **asked))
        parts = [ids_of(owner.list_memories(limit=1, offset=place, **asked)) for place in range(len(whole))]
        assert [each for part in parts for each in part] == whole
        assert sorted(whole) == sorted(story)


def test_fields_computed_for_an_order_are_those_of_the_memory(owner, story):
    found = owner.list_memories(sort="confidence", limit=None)
    shown = [each.confidence for each in found]
    assert shown == sorted(shown, reverse=True)
    least = found[-1].importance
    assert len(owner.list_memories(offset=0, min_importance=least, limit=None)) == len(found)
    assert len(owner.list_memories(offset=0, min_importance=round(least + 0.0001, 4), limit=None)) < len(found)


def test_a_status_is_that_of_the_clock(owner, story):
    counts = {each.value: each.count for each in owner.facets().facets["status"]}
    assert counts == {"active": 2, "expired": 1, "retired": 1}
    assert ids_of(owner.list_memories(statuses=["expired"])) == [story[2]]


def test_newly_sensitive_memory_counts_in_no_state_without_the_right(owner, agent):
    plain = committed_record(agent.remember("The shop opens at eight", tier="archival"))
    record = committed_record(agent.remember("Ana has an appointment on Friday", tier="archival", tags=["health"]))
    before = owner.head.split(":")[0]
    owner.revise(record.id, "Ana sees a doctor on Friday", sensitivity="sensitive", reason="private")
    for seq in (None, int(before)):
        assert ids_of(agent.list_memories(offset=0, as_of=seq)) == [plain.id]
    assert agent.facets().facets["tag"] == ()
    assert agent.sources().actors[0].memories == 1
    assert "sensitive" in agent.facets().notes[0]
    assert owner.facets().total == 2


def test_erased_memory_is_found_by_no_part_of_its_text(owner, agent):
    record = committed_record(agent.remember("Ana lives at 7 Mill Lane", tier="archival", subject="Ana"))
    assert ids_of(owner.list_memories(text="mill lane")) == [record.id]
    owner.erase(owner.plan_erase(ids=[record.id]).digest, ids=[record.id])
    for seq in (None, 1):
        assert ids_of(owner.list_memories(text="mill lane", include_ended=True, as_of=seq)) == []


def test_restored_store_is_browsed_in_its_current_state(tmp_path, clock):
    given = {"clock": clock, "embedder": None, "config_dir": tmp_path / "config", "actor": Actor.operator("olga")}
    with Memory.open(tmp_path / "m.db", **given) as memory, Memory.open(tmp_path / "m.db", **given) as other:
        memory.remember(TEXTS[0])
        assert memory.facets().total == 1
        other.remember(TEXTS[1])
        assert memory.facets().total == 2


@pytest.mark.parametrize("asked", [{"sort": "colour"}, {"offset": -1}, {"trusts": ["high"]}, {"statuses": ["gone"]}])
def test_a_window_that_cannot_be_is_an_error(owner, asked):
    with pytest.raises(InvalidInput):
        owner.list_memories(**asked)


def test_days_are_those_of_the_readers_zone(owner, agent, clock):
    agent.remember(TEXTS[0])
    now = clock.now()
    east = (24 - now.hour) * 60
    assert owner.activity(days=1).days == (now.date().isoformat(),)
    assert owner.activity(days=1, zone=east).days == ((now + timedelta(days=1)).date().isoformat(),)
    assert owner.activity(days=1, zone=east).counts == (1,)


@pytest.mark.parametrize("asked", [{}, {"text": "rye"}, {"sort": "importance"}, {"where": {"oven": 230}}])
def test_a_damaged_memory_is_named_by_every_page_and_count(owner, agent, bend, asked):
    record = committed_record(agent.remember(TEXTS[0], tier="archival", metadata={"oven": 230}))
    bend(record.id)
    found = owner.list_memories(offset=0, **asked)
    assert (list(found), found.withheld, found.total) == ([], (record.id,), 1)
    assert record.id in found.notes[0]
    counted = {name: each for name, each in asked.items() if name != "sort"}
    assert owner.facets(filters=Filters(**counted)).total == 1


def test_a_record_whose_row_was_edited_is_named_by_facets(owner, agent):
    record = committed_record(agent.remember(TEXTS[0], tier="archival"))
    tamper.edit(owner.path, "records", "status = 'retired'", "id = ?", (record.id,))
    assert record.id in owner.facets().notes[0]
    assert owner.list_memories(offset=0).withheld == (record.id,)


def test_facets_of_an_earlier_state_are_not_offered(owner):
    with pytest.raises(TypeError, match="no argument `as_of`"):
        owner.facets(as_of=0)


@pytest.fixture
def decoded(monkeypatch):
    """Return the list of what each decoded record was decoded from."""
    seen, decode = [], rows.decode_record
    monkeypatch.setattr(rows, "decode_record", lambda payload: seen.append(payload) or decode(payload))
    return seen


@pytest.mark.parametrize("sort", ["created", "importance", "author"])
def test_a_page_far_into_an_order_decodes_its_own_memories_alone(owner, decoded, sort):
    many_memories(owner, 600)
    page = owner.list_memories(offset=500, limit=10, sort=sort)
    assert (len(page), page.total, len(decoded)) == (10, 600, 10)


def test_counts_decode_no_memory(owner, decoded):
    many_memories(owner, 300)
    assert (owner.facets().total, owner.status()["live"]) == (300, 300)
    assert decoded == []
    assert owner.activity().counts[-1] == 300


def test_the_first_page_of_the_past_decodes_its_own_memories_alone(owner, decoded):
    many_memories(owner, 300)
    committed_record(owner.remember(TEXTS[0]))
    seq, _ = owner.head.split(":")
    decoded.clear()
    assert (len(owner.list_memories(limit=10, as_of=seq)), len(decoded)) == (10, 10)


@pytest.mark.parametrize("field", ["subject", "category", "session", "key", "job", "tags"])
@pytest.mark.parametrize("asked", ["Zo\u00eb", "Zoe\u0308"])
def test_each_name_is_found_in_either_unicode_form(owner, field, asked):
    for number, given in enumerate(("Zo\u00eb", "Zoe\u0308")):
        scope = f"/users/u{number}" if field == "key" else "/"
        fields = {field: [given] if field == "tags" else given}
        owner.at(scope=scope).remember(f"The crane number {number} lifts", tier="archival", **fields)
    wanted = {field: [asked] if field == "tags" else asked}
    for page in ({"limit": None}, {"offset": 0}):
        assert len(owner.list_memories(**wanted, **page, **({"below": True} if field == "key" else {}))) == 2


def test_status_names_the_file_of_a_store_from_every_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Memory.open("here.db", actor=Actor.operator(), embedder=None, config_dir=tmp_path / "c") as memory:
        assert memory.status()["path"] == str(tmp_path / "here.db")
