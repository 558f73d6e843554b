"""Reinforcement, learning from use and repetition make versions that stand in nobody's way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outcomes import held, kept

from keepward import Committed, Duplicate, Memory, StaleVersion
from keepward.core.reducer import content


def used(owner: Memory, name: str) -> None:
    """Let a memory be recalled, and let the due jobs learn from that."""
    assert name in {hit.memory.id for hit in owner.recall("the ferry", limit=5)}
    before = owner.get(name).version
    owner.run_job("learn_importance")
    assert owner.get(name).version == before + 1


def repeated(owner: Memory, name: str) -> None:
    assert isinstance(owner.remember(owner.get(name).text), Duplicate)


def confirmed(owner: Memory, name: str) -> None:
    kept(owner.reinforce(name))


BOOKKEEPING = [used, repeated, confirmed]
Step = Callable[[Memory, str], None]


@pytest.mark.parametrize("step", BOOKKEEPING)
def test_commit_is_rolled_back_exactly_after_bookkeeping(owner: Memory, clock: Any, step: Step) -> None:
    first = kept(owner.remember("The ferry is red"))
    clock.move(hours=1)
    outcome = owner.revise(first.id, "The ferry is blue", reason="painted")
    assert isinstance(outcome, Committed)
    clock.move(hours=1)
    step(owner, first.id)
    clock.move(hours=1)
    done = owner.rollback(outcome.commit.id)
    assert (done.applied, done.conflicts, done.undone) == (True, (), (outcome.commit.id,))
    assert content(owner.get(first.id)) == content(first)
    assert [each.record.version for each in owner.history(first.id)] == [1, 2, 3, 4]
    assert (owner.rollback(outcome.commit.id).already, owner.verify().ok) == (True, True)


@pytest.mark.parametrize("step", BOOKKEEPING)
def test_what_was_remembered_is_withdrawn_after_bookkeeping_on_it(owner: Memory, step: Step) -> None:
    outcome = owner.remember("The ferry is red")
    assert isinstance(outcome, Committed)
    step(owner, outcome.records[0].id)
    assert owner.rollback(outcome.commit.id).applied
    assert owner.list_memories() == []


def test_taking_later_commits_along_takes_no_bookkeeping_of_other_memories(owner: Memory) -> None:
    outcome = owner.remember("The ferry is red")
    assert isinstance(outcome, Committed)
    other = kept(owner.remember("The harbour opens at six"))
    assert len(owner.recall("the ferry and the harbour", limit=5)) == 2
    owner.run_job("learn_importance")
    learnt = owner.get(other.id)
    done = owner.rollback(outcome.commit.id, with_later=True)
    assert (done.applied, done.undone, owner.get(other.id)) == (True, (outcome.commit.id,), learnt)


def test_content_change_still_blocks_a_rollback(owner: Memory) -> None:
    outcome = owner.remember("The ferry is red")
    assert isinstance(outcome, Committed)
    name = outcome.records[0].id
    confirmed(owner, name)
    kept(owner.revise(name, tags=["boats"], reason="sorted"))
    confirmed(owner, name)
    done = owner.rollback(outcome.commit.id)
    assert (done.applied, [each.memory_id for each in done.conflicts]) == (False, [name])


def test_recorded_expiry_does_not_block_a_rollback(owner: Memory, clock: Any) -> None:
    with owner.draft(reason="two at once") as draft:
        draft.insert("The ferry is late today", ttl="1h")
        draft.insert("The ferry is red")
    assert isinstance(draft.outcome, Committed)
    clock.move(hours=2)
    owner.run_job("expire")
    assert owner.rollback(draft.outcome.commit.id).applied
    assert owner.list_memories() == []


@pytest.mark.parametrize("step", BOOKKEEPING)
def test_edit_of_the_read_version_succeeds_after_bookkeeping(owner: Memory, step: Step) -> None:
    name = kept(owner.remember("The ferry is red")).id
    step(owner, name)
    assert kept(owner.revise(name, "The ferry is blue", reason="painted", if_version=1)).version == 3
    for wrong in (1, 2, 4):
        with pytest.raises(StaleVersion):
            owner.revise(name, "The ferry is green", reason="again", if_version=wrong)
    assert owner.get(name).text == "The ferry is blue"


@pytest.mark.parametrize("step", BOOKKEEPING)
def test_an_approval_holds_after_bookkeeping_and_preserves_what_was_learnt(
    owner: Memory, mem: Memory, clock: Any, step: Step
) -> None:
    name = kept(owner.remember("The ferry is red", access="approval")).id
    item = held(mem.revise(name, "The ferry is blue", reason="painted"))
    clock.move(hours=1)
    step(owner, name)
    learnt = owner.get(name)
    after = kept(owner.approve(item.id, digest=item.digest))
    assert (after.text, after.version, after.importance) == ("The ferry is blue", 3, learnt.importance)
    assert (owner.get(name), owner.verify().ok) == (after, True)


def test_an_approval_is_stale_once_the_content_has_changed(owner: Memory, mem: Memory) -> None:
    name = kept(owner.remember("The ferry is red", access="approval")).id
    item = held(mem.revise(name, "The ferry is blue", reason="painted"))
    confirmed(owner, name)
    kept(owner.revise(name, "The ferry is green", reason="painted already"))
    confirmed(owner, name)
    with pytest.raises(StaleVersion):
        owner.approve(item.id)
    assert owner.get(name).text == "The ferry is green"
