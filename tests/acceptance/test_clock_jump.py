"""A clock that jumps forward takes nothing out of the review queue for good."""

from __future__ import annotations

from typing import Any

import pytest
from outcomes import held, kept

from keepward import Memory
from keepward.core.proposal import Proposal
from keepward.errors import Conflict


@pytest.fixture
def waiting(mem: Memory) -> Proposal:
    return held(mem.remember("Sail to Oslo", tier="core", key="mission", confidence=0.9))


def test_clock_that_returns_finds_the_review_queue_unchanged(owner: Memory, clock: Any, waiting: Proposal) -> None:
    clock.move(days=400)
    assert owner.pending() == []
    clock.move(days=-400)
    assert [each.id for each in owner.pending()] == [waiting.id]


@pytest.mark.parametrize("back", [0, 400])
def test_maintenance_during_a_jump_loses_no_proposal(owner: Memory, clock: Any, waiting: Proposal, back: int) -> None:
    clock.move(days=400)
    owner.run_job("sweep_blobs", force=True)
    clock.move(days=-back)
    owner.run_job("sweep_blobs", force=True)
    owner.reopen(waiting.id, reason="the clock was wrong")
    assert [each.id for each in owner.pending()] == [waiting.id]
    assert kept(owner.approve(waiting.id, digest=waiting.digest)).text == "Sail to Oslo"


def test_expired_proposal_is_reopened_with_a_new_ttl(owner: Memory, clock: Any, waiting: Proposal) -> None:
    clock.move(days=31)
    with pytest.raises(Conflict, match="keepward reopen"):
        owner.approve(waiting.id)
    owner.reopen(waiting.id, reason="I was away")
    clock.move(days=29)
    assert [each.id for each in owner.pending()] == [waiting.id]
    clock.move(days=2)
    assert owner.pending() == []


def test_an_expired_body_goes_a_term_after_maintenance_found_it(owner: Memory, clock: Any, waiting: Proposal) -> None:
    for days in (400, 31):
        clock.move(days=days)
        owner.run_job("sweep_blobs", force=True)
    with pytest.raises(Conflict, match="was dropped"):
        owner.reopen(waiting.id, reason="too late")


def test_the_owner_is_reported_what_a_jump_expired(owner: Memory, clock: Any, waiting: Proposal) -> None:
    def expired() -> int:
        return int(owner.status()["quarantine"]["expired"])

    told = [expired()]
    for days in (400, 29, 2):
        clock.move(days=days)
        owner.run_job("sweep_blobs", force=True)
        told.append(expired())
    assert told == [0, 1, 1, 0]
