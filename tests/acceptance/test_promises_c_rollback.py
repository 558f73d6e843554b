"""Undoing exactly, and what waits meanwhile (promises C52-C58)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from outcomes import codes, held, kept

from keepward import Actor, Memory, Record


def plain(record: Record) -> Record:
    """Return a record without what every version has of its own."""
    return replace(record, version=0, updated_at=None)


def state(memory: Memory) -> set[Record]:
    return {plain(record) for record in memory.list_memories(limit=None)}


@pytest.mark.promise("C54")
def test_a_rollback_has_a_receipt_that_names_what_it_undid(owner: Memory) -> None:
    kept(owner.remember("The ferry leaves at six", tier="archival"))
    commit = owner.log()[0].commit.id
    owner.rollback(commit)
    undone = owner.log()[0]
    receipt = owner.receipt(undone.details.receipt)
    assert (undone.commit.kind, commit in undone.details.undoes, receipt["actor"]) == (
        "rollback",
        True,
        "operator:olga",
    )


@pytest.mark.promise("C55")
def test_several_commits_are_undone_after_a_restart_too(
    opened: Callable[..., Memory],
) -> None:
    with opened("own", actor=Actor.operator("olga")) as owner:
        made = kept(owner.remember("The ferry leaves at six", tier="archival"))
        before = state(owner)
        for hour in ("seven", "eight", "nine"):
            kept(owner.revise(made.id, f"The ferry leaves at {hour}", reason="timetable"))
    with opened("own", actor=Actor.operator("olga")) as owner:
        assert owner.rollback(owner.log(limit=3)[-1].commit.id, with_later=True).applied
        assert state(owner) == before
    with opened("own", actor=Actor.operator("olga")) as owner:
        assert state(owner) == before
        assert owner.verify().ok


HOURS = ("seven", "eight", "nine")


@pytest.fixture
def chain(owner: Memory) -> tuple[str, list[str]]:
    """A memory with four versions, and the commits that revised it, newest first."""
    made = kept(owner.remember("The ferry leaves at six", tier="archival", key="ferry", tags=["pier"]))
    for hour in HOURS:
        kept(owner.revise(made.id, f"The ferry leaves at {hour}", tags=[hour], reason="timetable"))
    return made.id, [view.commit.id for view in owner.log(limit=len(HOURS))]


def hour(memory: Memory, name: str) -> str:
    return memory.get(name).text.rpartition(" ")[2]


@pytest.mark.promise("C55")
def test_commits_of_one_memory_are_undone_newest_first(owner: Memory, chain: tuple[str, list[str]]) -> None:
    name, commits = chain
    first = plain(owner.history(name)[0].record)
    for commit, said in zip(commits, ("eight", "seven", "six"), strict=True):
        done = owner.rollback(commit)
        assert (done.applied, done.undone, done.conflicts, hour(owner, name)) == (True, (commit,), (), said)
    assert plain(owner.history(name)[-1].record) == first
    head = owner.head
    assert [owner.rollback(commit).already for commit in commits] == [True] * 3
    assert (owner.head, owner.verify().ok) == (head, True)
    assert owner.rollback(owner.history(name)[0].commit.id).applied
    assert owner.list_memories() == []


@pytest.mark.promise("C55", "T16")
def test_an_older_commit_is_not_undone_below_one_in_force(owner: Memory, chain: tuple[str, list[str]]) -> None:
    name, (newest, middle, oldest) = chain
    for commit, ways in ((oldest, [middle, newest]), (middle, [newest])):
        stopped = owner.rollback(commit)
        assert (stopped.applied, [each.commit_id for each in stopped.conflicts]) == (False, ways)
    owner.rollback(newest)
    assert [each.commit_id for each in owner.rollback(oldest).conflicts] == [middle]
    assert hour(owner, name) == "eight"
    taken = owner.rollback(oldest, with_later=True)
    assert (taken.undone, hour(owner, name)) == ((middle, oldest), "six")


@pytest.mark.promise("C55")
def test_rollbacks_are_undone_one_after_the_other_newest_first(owner: Memory, chain: tuple[str, list[str]]) -> None:
    name, commits = chain
    undoing = [owner.rollback(commit).commit.id for commit in commits]  # type: ignore[union-attr]
    assert not owner.rollback(undoing[0]).applied
    for commit, said in zip(reversed(undoing), HOURS, strict=True):
        assert (owner.rollback(commit).applied, hour(owner, name)) == (True, said)
    # Each stands again: so does what it takes to undo it, and what is in its way.
    assert not owner.rollback(commits[-1]).applied
    for commit, said in zip(commits, ("eight", "seven", "six"), strict=True):
        assert (owner.rollback(commit).applied, hour(owner, name)) == (True, said)


def test_text_repeated_after_a_rollback_blocks_undoing_it(owner: Memory, chain: tuple[str, list[str]]) -> None:
    name, (newest, middle, _) = chain
    owner.rollback(newest)
    fresh = owner.revise(name, "The ferry leaves at ten", reason="timetable")
    assert [each.commit_id for each in owner.rollback(middle).conflicts] == [fresh.commit.id]  # type: ignore[union-attr]
    assert hour(owner, name) == "ten"


@pytest.mark.promise("C58")
def test_write_below_its_tier_minimum_is_quarantined_or_archived(mem: Memory) -> None:
    held(mem.remember("The crane may be red", tier="archival", confidence=0.29))
    kept(mem.remember("The crane may be blue", tier="archival", confidence=0.3))
    diverted = mem.remember("Sail to Oslo", tier="core", key="mission", confidence=0.79)
    assert (kept(diverted).tier.value, "diverted_to_archival" in codes(diverted)) == ("archival", True)
    assert mem.list_memories(tiers=["core"]) == []
