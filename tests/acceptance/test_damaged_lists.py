"""A damaged row takes no list away: each shows what is intact, and names what is not with the commands that help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keepward import Filters, Memory
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


@pytest.mark.parametrize("read", [Memory.log, lambda mem: mem.news("2026-01-01"), lambda mem: mem.diff(0)])
def test_intact_store_has_no_notes(owner: Memory, told: list[Any], read: Callable[[Memory], Any]) -> None:
    assert read(owner).notes == ()
