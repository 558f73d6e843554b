"""When a memory holds: from an instant, until an instant, and what was so at another one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from outcomes import codes, committed_record

from keepward import InvalidInput, Memory

ON_BOTH_DATABASES = True
#: The clock of these tests stands at 2026-03-01.
BEFORE, LATER = "2026-01-01", "2027-01-03"
QUESTION = "Where is the office?"


def texts(memory: Memory, **options) -> list[str]:
    return [hit.memory.text for hit in memory.recall(QUESTION, **options)]


@pytest.fixture
def moved(owner: Memory) -> Memory:
    """An office that moved two months ago, and moves again next year."""
    owner.remember("The office is in Linz", valid_until=BEFORE)
    owner.remember("The office is in Graz", valid_from=BEFORE, valid_until=LATER)
    owner.remember("The office is in Wien", valid_from=LATER)
    return owner


@pytest.mark.parametrize(
    ("at", "city"), [(None, "Graz"), ("2025-06-01", "Linz"), (BEFORE, "Graz"), (LATER, "Wien"), ("2030-01-01", "Wien")]
)
def test_a_search_finds_what_holds_at_the_instant(moved, at, city):
    options = {} if at is None else {"valid_at": at}
    assert texts(moved, **options) == [f"The office is in {city}"]
    listed = moved.list_memories(valid_at=at or "2026-03-01T09:00:00Z")
    assert [record.text for record in listed] == [f"The office is in {city}"]
    assert listed.total == 1


def test_a_list_and_a_read_by_id_show_all_with_their_dates(moved):
    listed = moved.list_memories(ascending=True)
    ends = [record.valid_until and record.valid_until.date().isoformat() for record in listed]
    assert ends == [BEFORE, LATER, None]
    assert moved.get(listed[0].id).valid_until == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_context_has_what_holds_and_says_until_when(moved):
    made = moved.context(QUESTION)
    assert "[fact] The office is in Graz (holds until 2027-01-03)" in made.text
    assert "Linz" not in made.text
    assert "Wien" not in made.text
    reasons = {item.reason.detail for item in made.excluded if item.reason.code == "not_valid"}
    assert reasons == {"it held until 2026-01-01", "it holds from 2027-01-03"}
    why = {item.why for item in moved.context(QUESTION, preview=True).explanation.candidates if item.section is None}
    assert "it held until 2026-01-01" in why


def test_a_context_of_another_instant_says_what_held_and_what_will(moved):
    past, future = (moved.context(QUESTION, valid_at=at).text for at in ("2025-06-01", "2028-01-01"))
    assert "The office is in Linz (held until 2026-01-01)" in past
    assert "The office is in Wien (holds from 2027-01-03)" in future
    assert "Graz" not in past + future


def test_a_replay_gives_the_same_bytes_after_the_end(moved, clock):
    made = moved.context(QUESTION)
    clock.move(days=700)
    replayed = moved.replay(made.receipt.id)
    assert replayed.same
    assert replayed.text == made.text
    assert "Wien" in moved.context(QUESTION).text


def test_a_memory_leaves_and_enters_at_the_instant_itself(owner, clock):
    end = clock.now() + timedelta(hours=1)
    owner.remember("The office is in Graz", valid_until=end)
    owner.remember("The office is in Wien", valid_from=end)
    assert texts(owner) == ["The office is in Graz"]
    clock.move(minutes=59, seconds=59)
    assert texts(owner) == ["The office is in Graz"]
    clock.move(seconds=1)
    assert texts(owner) == ["The office is in Wien"]


def test_what_does_not_hold_is_named_where_a_store_is_large(owner):
    owner.remember_many([f"Note {n} of the office about crates, ships and the weather of day {n}" for n in range(60)])
    ended = committed_record(owner.remember("The office is in Linz", valid_until=BEFORE))
    made = owner.context(QUESTION)
    assert "Linz" not in made.text
    assert [item.reason.detail for item in made.excluded if item.id == ended.id] == ["it held until 2026-01-01"]


@pytest.mark.parametrize(
    "fields",
    [
        {"key": "office", "kind": "state"},
        {"kind": "rule", "stability": "permanent"},
        {"tier": "working"},
        {"tier": "core", "key": "mission"},
    ],
    ids=["state", "pinned", "working", "core"],
)
def test_a_section_that_every_context_has_follows_the_dates(owner, clock, fields):
    owner.remember("Ship from Graz", valid_until=LATER, **fields)
    assert "Ship from Graz" in owner.context("hi").text
    assert "holds until 2027-01-03" in owner.context("hi").text
    assert "Ship from Graz" not in owner.context("hi", valid_at=LATER).text
    clock.move(hours=1)
    owner.revise(owner.list_memories()[0].id, valid_until=clock.now() - timedelta(minutes=1))
    made = owner.context("hi")
    assert "Ship from Graz" not in made.text
    assert [item.reason.code for item in made.excluded] == ["not_valid"]


def test_as_of_asks_what_was_known_and_valid_at_what_was_so(moved):
    known = moved.log()[0].commit.seq
    wrong = moved.list_memories(valid_at="2025-06-01")[0]
    moved.revise(wrong.id, "The office was in Wels", valid_until=BEFORE)
    assert texts(moved, valid_at="2025-06-01") == ["The office was in Wels"]
    assert texts(moved, valid_at="2025-06-01", as_of=known) == ["The office is in Linz"]
    assert "Linz" in moved.context(QUESTION, valid_at="2025-06-01", as_of=known).text


def test_revise_sets_and_removes_the_dates(owner):
    made = committed_record(owner.remember("The office is in Graz"))
    assert made.valid_until is None
    ended = committed_record(owner.revise(made.id, valid_until=BEFORE))
    assert texts(owner) == []
    assert committed_record(owner.revise(ended.id, valid_until=None)).valid_until is None
    assert texts(owner) == ["The office is in Graz"]


@pytest.mark.parametrize("end", [BEFORE, "2025-12-31"])
def test_an_end_that_is_not_later_than_the_beginning_is_refused(owner, end):
    refused = owner.remember("The office is in Graz", valid_from=BEFORE, valid_until=end)
    assert codes(refused) == {"bad_valid_until"}
    made = committed_record(owner.remember("The office is in Graz", valid_from=BEFORE))
    assert codes(owner.revise(made.id, valid_until=end)) == {"bad_valid_until"}


def test_a_date_that_is_none_is_an_error_that_says_the_form(owner):
    with pytest.raises(InvalidInput, match="valid_until is not an instant: use ISO 8601"):
        owner.remember("The office is in Graz", valid_until="next year")


@pytest.mark.parametrize("dates", [{"valid_from": LATER}, {"valid_until": BEFORE}], ids=["later", "earlier"])
def test_a_value_of_another_time_does_not_hide_the_present_one(owner, dates):
    owner.remember("The rate is 4 percent", key="rate")
    outcome = owner.remember("The rate is 5 percent", key="rate", **dates)
    assert "of_another_time" in codes(outcome)
    assert owner.get("rate").text == "The rate is 4 percent"
    assert [hit.memory.text for hit in owner.recall("rate")] == ["The rate is 4 percent"]
    assert "The rate is 5 percent" in [record.text for record in owner.list_memories()]


def test_a_present_value_does_not_hide_a_later_one_of_its_key(owner):
    owner.remember("The rate is 5 percent", key="rate", valid_from=LATER)
    assert "of_another_time" in codes(owner.remember("The rate is 4 percent", key="rate"))
    assert [hit.memory.text for hit in owner.recall("rate")] == ["The rate is 4 percent"]
    later = {hit.memory.text for hit in owner.recall("rate", valid_at=LATER)}
    assert later == {"The rate is 4 percent", "The rate is 5 percent"}


def test_a_value_takes_the_key_of_one_that_has_ended(owner):
    owner.remember("The rate is 4 percent", key="rate", valid_until=BEFORE)
    owner.remember("The rate is 5 percent", key="rate", valid_from=LATER)
    assert owner.get("rate").text == "The rate is 5 percent"


def test_the_same_words_of_another_time_are_another_memory(owner):
    owner.remember("The office is in Graz", valid_until=BEFORE)
    again = owner.remember("The office is in Graz", valid_from=LATER)
    assert again.outcome == "committed"
    assert owner.remember("The office is in Graz", valid_from=LATER).outcome == "duplicate"
    owner.run_jobs("consolidate", force=True)
    assert len(owner.list_memories()) == 2


def test_statements_of_different_times_do_not_contradict(owner):
    owner.remember("The office rent is 4000 euros a month", valid_until=BEFORE)
    owner.remember("The office rent is 5000 euros a month", valid_from=BEFORE)
    assert owner.contradictions().items == ()


def test_a_merged_memory_ends_with_the_first_of_its_parts(owner):
    ids = [
        committed_record(owner.remember(text, valid_until=end)).id
        for text, end in (("The office is in Graz", LATER), ("The garage is in Wels", "2026-06-01"))
    ]
    merged = owner.merge(ids, text="The office is in Graz, the garage in Wels")
    assert merged.records[0].valid_until == datetime(2026, 6, 1, tzinfo=UTC)


def test_a_new_session_of_an_agent_begins_with_what_holds(moved):
    from keepward.services.reading.session_start import session_start

    text = session_start(moved._context, "s1", budget_tokens=1_500).text
    assert "Graz" in text
    assert "Linz" not in text
