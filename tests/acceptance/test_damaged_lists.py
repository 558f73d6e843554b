"""A damaged row takes no list away: each shows what is intact, and names what is not with the commands that help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keepward import Actor, Filters, Memory, NotFound, Tampered
from support import tamper

ON_BOTH_DATABASES = True
VERIFY, RECOVER = "`keepward verify`", "`keepward store recover`"


@pytest.fixture
def told(owner: Memory, clock: Any) -> list[Any]:
    """Return five memories of a commit each."""
    records = []
    for number in range(5):
        clock.move(hours=1)
        records.append(owner.remember(f"Mill {number} grinds rye", tier="archival", reason="told").record)
    return records


@pytest.fixture(params=["a commit", "an event"])
def damaged(request: pytest.FixtureRequest, owner: Memory, told: list[Any]) -> Any:
    """Damage what told the third memory; return that memory."""
    place, record = owner.path, told[2]
    if request.param == "a commit":
        tamper.edit(place, "commits", "at = at + 1", "seq = 3")
    else:
        tamper.edit(place, "events", "payload = salt", f"memory_id = '{record.id}'")
    return record


def test_journal_shows_the_intact_commits_and_names_the_damaged_one(owner: Memory, damaged: Any) -> None:
    page = owner.log()
    assert [view.commit.seq for view in page] == [5, 4, 2, 1]
    assert [each.seq for each in page.damaged] == [3]
    (note,) = page.notes
    assert note.startswith("commit 3 is damaged and not shown: ")
    assert VERIFY in note
    assert RECOVER in note


def test_pages_of_the_journal_go_on_behind_a_damaged_commit(owner: Memory, damaged: Any) -> None:
    seqs, before = list[int](), None
    while True:
        page = owner.log(limit=2, before=before)
        seqs += sorted([*(view.commit.seq for view in page), *(each.seq for each in page.damaged)], reverse=True)
        if page.next_before is None:
            break
        before = page.next_before
    assert seqs == [5, 4, 3, 2, 1]


def test_news_show_what_is_intact_and_name_the_damaged_memory(owner: Memory, clock: Any, damaged: Any) -> None:
    news = owner.news("2026-01-01", most=5)
    assert len(news.learned.newest) == 4
    assert damaged.id not in {each.memory for each in news.learned.newest}
    note = next(note for note in news.notes if damaged.id in note)
    assert "commit 3" in note
    assert VERIFY in note
    assert RECOVER in note


def test_receipts_go_on_behind_a_damaged_one_and_name_it(owner: Memory, told: list[Any]) -> None:
    receipt = next(line.id for line in owner.receipts().items if line.commit == owner.show("2").commit.id)
    tamper.edit(owner.path, "commits", "receipt = salt", "seq = 2")
    page = owner.receipts()
    assert page.damaged == (receipt,)
    assert len(page.items) == 4


def test_counts_by_source_and_day_tell_of_a_damaged_version(owner: Memory, told: list[Any]) -> None:
    tamper.edit(owner.path, "events", "payload = salt", f"memory_id = '{told[2].id}'")
    assert owner.sources().damaged == 1
    assert owner.activity(filters=Filters(), days=400).damaged == 1
    assert [each.memories for each in owner.sources().actors] == [4]


def test_difference_names_a_damaged_memory_and_does_not_call_it_removed(
    owner: Memory, clock: Any, told: list[Any]
) -> None:
    changed = owner.revise(told[2].id, "Mill 2 grinds spelt", reason="told").record
    assert [each.id for each in owner.diff(5)] == [changed.id]
    tamper.edit(owner.path, "events", "payload_commit = salt", f"memory_id = '{changed.id}' AND version = 1")
    found = owner.diff(5)
    assert (list(found), found.withheld) == ([], (changed.id,))
    assert VERIFY in found.notes[0]


def test_damaged_commit_is_shown_as_far_as_it_can_be_read(owner: Memory, damaged: Any) -> None:
    view = owner.show("3")
    assert (view.commit.seq, view.details.reason) == (3, "told")
    (note,) = view.damage
    assert "commit 3" in note
    assert VERIFY in note
    assert RECOVER in note
    # An event that does not match is not shown; the row of a commit is, as stored.
    assert len(view.steps) == ("as stored" in note)


def test_history_shows_what_can_be_read_of_a_damaged_commit(owner: Memory, damaged: Any) -> None:
    found = owner.history(damaged.id)
    said = [*found.notes, *(note for version in found for note in version.damage)]
    assert any("commit 3" in note and VERIFY in note and RECOVER in note for note in said)
    # An event that does not match is named; of a damaged commit its version is shown.
    assert ([version.record.text for version in found], found.damaged) in (
        ([damaged.text], ()),
        ([], (1,)),
    )


def test_versions_around_a_damaged_one_are_shown_and_blamed(owner: Memory, told: list[Any]) -> None:
    memory = told[2].id
    owner.revise(memory, "Mill 2 grinds spelt", reason="told")
    owner.revise(memory, "Mill 2 grinds oats", reason="told")
    tamper.edit(owner.path, "events", "payload = salt", f"memory_id = '{memory}' AND version = 2")
    found = owner.history(memory)
    assert ([version.record.version for version in found], found.damaged) == ([1, 3], (2,))
    assert (found[1].before, "version 3 is not known" in found[1].damage[0]) == (None, True)
    assert f"version 2 of memory {memory}" in found.notes[0]
    blame = owner.blame(memory)
    assert blame.notes == found.notes
    assert next(each for each in blame.origins if each.field == "text").made.damage


def test_history_goes_on_where_the_newest_version_is_damaged(owner: Memory, told: list[Any]) -> None:
    memory = told[2].id
    owner.revise(memory, "Mill 2 grinds spelt", reason="told")
    tamper.edit(owner.path, "events", "payload = salt", f"memory_id = '{memory}' AND version = 2")
    found = owner.history(memory)
    assert ([version.record.text for version in found], found.damaged) == ([told[2].text], (2,))
    blame = owner.blame(memory)
    assert "text" not in {each.field for each in blame.origins}
    assert any(note.startswith("who gave text") for note in blame.notes)
    tamper.edit(owner.path, "records", "body = seal", f"id = '{memory}'")
    assert [version.record.text for version in owner.history(memory)] == [told[2].text]
    assert owner.blame(memory).record.text == told[2].text
    with pytest.raises(Tampered):
        owner.get(memory)


def test_agent_learns_nothing_from_a_damaged_commit(owner: Memory, told: list[Any]) -> None:
    agent = owner.as_actor(Actor.agent("scribe"))
    owner.remember("The vault opens with 7291", tier="archival", sensitivity="sensitive", reason="the code is 7291")
    tamper.edit(owner.path, "events", "payload = salt", "seq = 6")
    with pytest.raises((Tampered, NotFound)) as caught:
        agent.show("6")
    assert "7291" not in str(caught.value)


def test_receipt_of_a_damaged_commit_says_so(owner: Memory, told: list[Any]) -> None:
    receipt = owner.show("3").details.receipt
    tamper.edit(owner.path, "events", "payload = salt", "seq = 3")
    found = owner.receipt(receipt)
    assert found["changes"] == []
    assert VERIFY in found["damage"][0]


def test_a_context_calls_a_damaged_version_damaged_not_erased(owner: Memory, told: list[Any]) -> None:
    memory = told[2].id
    receipt = owner.context("Which mill grinds rye?").receipt.id
    owner.revise(memory, "Mill 2 grinds spelt", reason="told")
    later = owner.context("Which mill grinds rye?").receipt.id
    tamper.edit(owner.path, "events", "payload = salt", f"memory_id = '{memory}' AND version = 1")
    explained = owner.receipt(receipt)["explanation"]
    assert next(each["text"] for each in explained["candidates"] if each["id"] == memory).startswith("damaged")
    assert "[damaged]" in next(part["text"] for part in explained["parts"] if part["id"] == memory)
    assert any(f"version 1 of memory {memory}" in note for note in owner.context_diff(receipt, later).notes)


def test_past_state_is_read_past_damage_and_refused_at_an_unproven_time(owner: Memory, told: list[Any]) -> None:
    tamper.edit(owner.path, "events", "payload = salt", "seq = 3")
    assert [each.text for each in owner.list_memories(as_of=3)] == [told[1].text, told[0].text]
    tamper.edit(owner.path, "commits", "at = at + 1", "seq = 4")
    with pytest.raises(Tampered, match="name another one, such as the commit 3"):
        owner.list_memories(as_of=4)


def test_containment_of_a_damaged_commit_is_refused(owner: Memory, damaged: Any) -> None:
    with pytest.raises(Tampered):
        owner.plan_contain(commit="3")


@pytest.mark.parametrize("read", [Memory.log, lambda mem: mem.news("2026-01-01"), lambda mem: mem.diff(0)])
def test_intact_store_has_no_notes(owner: Memory, told: list[Any], read: Callable[[Memory], Any]) -> None:
    assert read(owner).notes == ()
