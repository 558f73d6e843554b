"""How a memory ends: time to live, expiry, supersession and merging (promises B3, B9, B23-B33, B63)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from outcomes import codes, kept, refused

from keepward import Conflict, Insert, InvalidInput, Memory, NotFound, Supersede


def texts(memory: Memory) -> set[str]:
    """Return what a list, a recall and a context each show, together."""
    shown = {each.text for each in memory.list_memories()} | {hit.memory.text for hit in memory.recall("ferry dock")}
    compiled = memory.context("ferry dock").text
    lines = [line.split("] ", 1)[1] for line in compiled.splitlines() if line.startswith("[")]
    return shown | {line.partition(" (20")[0] for line in lines}


@pytest.mark.promise("B9")
@pytest.mark.parametrize(
    ("fields", "span"),
    [
        ({"stability": "volatile", "tier": "archival"}, timedelta(days=30)),
        ({"stability": "volatile", "kind": "summary"}, timedelta(days=7)),
        ({"kind": "event"}, timedelta(days=30)),
        ({"tier": "working"}, timedelta(hours=24)),
        ({"scope": "/agents/orion/tasks/42"}, timedelta(hours=24)),
    ],
)
def test_volatile_memory_without_a_ttl_gets_one_with_notice(
    mem: Memory, fields: dict[str, Any], span: timedelta
) -> None:
    outcome = mem.remember("The ferry leaves from dock 4", **fields)
    record = kept(outcome)
    assert (record.stability.value, record.expires_at) == ("volatile", record.created_at + span)
    assert "default_ttl" in codes(outcome)


@pytest.mark.promise("B9")
def test_an_edit_cannot_take_the_term_from_what_is_volatile(mem: Memory) -> None:
    record = kept(mem.remember("The ferry leaves from dock 4", tier="working"))
    assert "volatile_without_ttl" in refused(mem.revise(record.id, ttl=None, reason="for good"))
    assert mem.get(record.id) == record
    longer = kept(mem.revise(record.id, ttl="3d", reason="a little longer"))
    assert longer.expires_at == record.created_at + timedelta(days=3)


@pytest.mark.promise("B63")
@pytest.mark.parametrize("ttl", ["0s", 0, -1.5, "-1d", timedelta(0), timedelta(days=-1), timedelta(days=40_000)])
def test_nonpositive_or_centuries_long_ttl_is_refused(mem: Memory, ttl: timedelta | str) -> None:
    assert refused(mem.remember("The ferry leaves from dock 4", ttl=ttl)) == {"bad_ttl"}
    record = kept(mem.remember("The ferry leaves from dock 4", ttl="1h"))
    assert "bad_ttl" in refused(mem.revise(record.id, ttl=ttl, reason="sooner"))
    assert mem.get(record.id) == record


@pytest.mark.promise("B63")
@pytest.mark.parametrize("ttl", ["soon", "5", True, float("nan"), ["5s"]])
def test_a_term_that_is_no_duration_is_an_error(mem: Memory, ttl: Any) -> None:
    with pytest.raises(InvalidInput, match="not a duration"):
        mem.remember("The ferry leaves from dock 4", ttl=ttl)


@pytest.mark.promise("B32")
@pytest.mark.parametrize("ttl", [90, 90.0, "90s", timedelta(seconds=90)])
def test_a_term_is_seconds_a_timedelta_or_text(mem: Memory, ttl: Any) -> None:
    record = kept(mem.remember("The ferry leaves from dock 4", ttl=ttl))
    assert record.expires_at == record.created_at + timedelta(seconds=90)


@pytest.mark.promise("B3", "B24", "B25", "B30", "B37", "Z13", "C37")
@pytest.mark.parametrize("stability", ["volatile", "stable"])
def test_a_memory_holds_until_the_very_microsecond_its_term_ends(mem: Memory, clock: Any, stability: str) -> None:
    text = "The ferry leaves from dock 4"
    kept(mem.remember(text, tier="archival", stability=stability, ttl="90s"))
    clock.move(seconds=89, microseconds=999_999)
    assert texts(mem) == {text}
    clock.move(microseconds=1)
    assert texts(mem) == set()


@pytest.mark.promise("B25")
@pytest.mark.parametrize("hours", [-11, -3.5, 5.75, 14])
def test_expiry_is_the_same_instant_in_any_time_zone(opened: Callable[..., Memory], clock: Any, hours: float) -> None:
    class Local:
        def now(self) -> datetime:
            return clock.now().astimezone(timezone(timedelta(hours=hours)))

    clock.instant = datetime(2026, 3, 29, 23, 59, 30, tzinfo=UTC)
    with opened("zone", clock=Local()) as memory:
        kept(memory.remember("The ferry leaves from dock 4", ttl="60s"))
        clock.move(seconds=59)
        assert len(texts(memory)) == 1
        clock.move(seconds=1)
        assert texts(memory) == set()


@pytest.mark.promise("B32")
def test_stored_expiry_is_creation_plus_ttl_after_reopening(opened: Callable[..., Memory], clock: Any) -> None:
    clock.move(microseconds=123_457)
    with opened("exact") as memory:
        record = kept(memory.remember("The ferry leaves from dock 4", ttl="17d"))
        made = clock.now()
    clock.move(days=3)
    with opened("exact") as memory:
        assert memory.get(record.id).expires_at == made + timedelta(days=17)


@pytest.mark.promise("B33", "B11", "B18")
def test_what_has_no_term_is_still_there_after_decades(owner: Memory, clock: Any) -> None:
    kept(owner.remember("The ferry is called Thor", tier="archival"))
    kept(owner.remember("The dock belongs to us", tier="archival", stability="permanent"))
    kept(owner.remember("Ring the ferry bell twice", kind="rule", evidence=["chat:1"]))
    clock.move(days=365 * 40)
    assert len(texts(owner)) == 3


@pytest.mark.promise("B23", "B27")
def test_chain_of_replacements_can_be_followed_both_ways(mem: Memory) -> None:
    said = ["The ferry leaves at six", "The ferry leaves at seven", "The ferry leaves at eight"]
    ids = [kept(mem.remember(text, tier="archival")).id for text in said]
    for old, new in pairwise(ids):
        kept(mem.supersede(old, new, reason="the timetable changed"))
    walked = [mem.get(ids[0])]
    while walked[-1].superseded_by is not None:
        walked.append(mem.get(walked[-1].superseded_by))
    assert [each.text for each in walked] == said
    assert [each.status.value for each in walked] == ["superseded", "superseded", "active"]
    assert mem.history(ids[0])[-1].details.reason == "the timetable changed"


@pytest.mark.promise("B23")
def test_every_identity_edition_is_readable_from_its_contexts(opened: Callable[..., Memory], tmp_path: Any) -> None:
    page = tmp_path / "identity.md"
    receipts = []
    with opened("own", identity=page) as memory:
        for edition in ("I am Orion.", "I am Orion the second."):
            page.write_text(edition)
            receipts.append(memory.context("who are you").receipt)
        first, second = (memory.replay(each.id).text for each in receipts)
    assert (first, second) == ("## persona\n\nI am Orion.", "## persona\n\nI am Orion the second.")
    versions = [each.facts["documents"]["identity"] for each in receipts]
    assert versions[0] != versions[1]
    assert "Orion" not in str([each.as_dict() for each in receipts])


@pytest.mark.promise("B24")
def test_active_memory_is_found_every_time(mem: Memory, clock: Any) -> None:
    kept(mem.remember("The ferry leaves from dock 4", tier="archival"))
    for _ in range(5):
        clock.move(days=30)
        assert texts(mem) == {"The ferry leaves from dock 4"}


@pytest.mark.promise("B26", "B31", "B38", "B75")
def test_merged_memories_are_hidden_unless_requested(mem: Memory) -> None:
    parts = ["The ferry was late", "The dock was icy"]
    ids = [kept(mem.remember(text, tier="archival")).id for text in parts]
    outcome = mem.merge(ids, reason="one day, one note")
    (summary,) = mem.list_memories()
    assert [hit.memory.id for hit in mem.recall("ferry dock")] == [summary.id]
    assert mem.context("ferry dock").text.count("The dock was icy") == 1
    assert summary.derived_from == tuple(ids)
    assert {mem.get(each).superseded_by for each in ids} == {summary.id}
    assert {each.text for each in mem.list_memories(include_ended=True)} == {summary.text, *parts}
    assert len(outcome.records) == 3  # type: ignore[union-attr]


@pytest.mark.promise("B27", "B31", "B38", "Z14")
def test_superseded_memory_appears_only_in_its_history(mem: Memory) -> None:
    old = kept(mem.remember("The ferry leaves at six", tier="archival"))
    new = kept(mem.remember("The ferry dock closes at seven", tier="archival"))
    kept(mem.supersede(old.id, new.id, reason="the season ended"))
    assert texts(mem) == {"The ferry dock closes at seven"}
    assert old.id in {each.id for each in mem.list_memories(include_ended=True)}
    assert [each.op for each in mem.history(old.id)] == ["insert", "supersede"]


@pytest.mark.promise("B27")
def test_replacing_by_something_new_is_one_commit(mem: Memory) -> None:
    old = kept(mem.remember("The ferry leaves at six", tier="archival"))
    with mem.draft(reason="new timetable") as draft:
        new = draft.insert("The ferry leaves at nine", tier="archival")
        draft.supersede(old.id, new)
    assert texts(mem) == {"The ferry leaves at nine"}
    assert mem.get(old.id).superseded_by == new
    assert len(mem.show(draft.outcome.commit.id).steps) == 2  # type: ignore[union-attr]


@pytest.mark.promise("B29")
def test_superseded_memory_can_be_deleted_on_record(mem: Memory) -> None:
    old = kept(mem.remember("The ferry leaves at six", tier="archival"))
    new = kept(mem.remember("The ferry leaves at seven", tier="archival"))
    kept(mem.supersede(old.id, new.id, reason="the timetable changed"))
    kept(mem.forget(old.id, reason="nobody asks any more"))
    assert mem.get(old.id).status.value == "retired"
    assert mem.history(old.id)[-1].details.reason == "nobody asks any more"


@pytest.mark.promise("B27")
def test_memory_cannot_be_superseded_by_a_missing_one(mem: Memory) -> None:
    old = kept(mem.remember("The ferry leaves at six", tier="archival"))
    with pytest.raises(NotFound):
        mem.propose([Supersede(id=old.id, by="019ca000-0000-7000-8000-000000000000")], reason="gone")
    assert texts(mem) == {"The ferry leaves at six"}


@pytest.mark.promise("B23", "B27")
def test_replacements_never_form_a_circle(mem: Memory) -> None:
    old, new = (kept(mem.remember(f"The ferry leaves at {hour}", tier="archival")) for hour in ("six", "seven"))
    with pytest.raises(Conflict, match="itself"):
        mem.supersede(old.id, old.id, reason="circle")
    kept(mem.supersede(old.id, new.id, reason="the timetable changed"))
    with pytest.raises(Conflict, match="is not active"):
        mem.supersede(new.id, old.id, reason="and back")
    assert texts(mem) == {"The ferry leaves at seven"}


@pytest.mark.promise("B26")
def test_manual_proposal_can_insert_and_supersede_at_once(mem: Memory) -> None:
    old = kept(mem.remember("The ferry leaves at six", tier="archival"))
    new = Insert(id="019ca000-0000-7000-8000-000000000001", text="The ferry leaves at noon", tier="archival")
    kept(mem.propose([new, Supersede(id=old.id, by=new.id)], reason="corrected"))
    assert texts(mem) == {"The ferry leaves at noon"}


@pytest.mark.promise("B74")
def test_merge_with_an_existing_summary_points_at_that_memory(mem: Memory) -> None:
    known = kept(mem.remember("The oven is serviced in June", tier="archival", kind="fact"))
    first = kept(mem.remember("Oven service happened in the sixth month", tier="archival"))
    second = kept(mem.remember("Somebody serviced ovens when June came", tier="archival"))
    mem.merge([first.id, second.id], known.text, reason="one fact", tier="archival", kind="fact", stability="stable")
    assert {mem.get(each.id).superseded_by for each in (first, second)} == {known.id}


@pytest.mark.promise("B76")
@pytest.mark.parametrize("times", [0, 1, 2])
def test_merge_of_fewer_than_two_memories_writes_nothing(mem: Memory, times: int) -> None:
    only = kept(mem.remember("The ferry was late", tier="archival"))
    head = mem.head
    assert mem.merge([only.id] * times, "The ferry was late that day", reason="one note") is None
    assert (mem.head, texts(mem), mem.pending()) == (head, {"The ferry was late"}, [])


@pytest.mark.promise("B78", "Z10")
@pytest.mark.parametrize(
    "other", [{"subject": "ben"}, {"scope": "/agents/agent"}, {"sensitivity": "sensitive"}], ids=str
)
def test_memories_of_two_subjects_scopes_or_sensitivities_are_not_merged(owner: Memory, other: dict[str, Any]) -> None:
    here = owner.at(scope="agent")
    given = {"tier": "archival", "subject": "ana", "scope": "/"}
    one = kept(here.remember("The ferry was late", **given))
    two = kept(here.remember("The dock was icy", **{**given, **other}))
    head = owner.head
    with pytest.raises(InvalidInput, match="one subject, scope and sensitivity"):
        here.merge([one.id, two.id], "A bad day", reason="one note")
    assert owner.head == head


@pytest.mark.promise("B78")
def test_merge_never_widens_subject_or_visibility(mem: Memory) -> None:
    here = mem.at(scope="agent")
    ids = [kept(here.remember(text, subject="ana", scope="/agents/agent")).id for text in ("Likes tea", "Sails late")]
    with pytest.raises(InvalidInput, match="leave `subject` out"):
        here.merge(ids, "Tea and late sails", reason="one note", subject="ben")
    here.merge(ids, "Tea and late sails", reason="one note", scope="/", sensitivity="normal")
    (summary,) = here.list_memories()
    assert (summary.subject, summary.scope, mem.list_memories()) == ("ana", "/agents/agent", [])


@pytest.mark.promise("B67")
def test_the_same_text_about_another_subject_is_another_memory(mem: Memory) -> None:
    mem.remember("Prefers window seats", tier="archival", subject="ana")
    assert kept(mem.remember("Prefers window seats", tier="archival", subject="ben")).subject == "ben"
