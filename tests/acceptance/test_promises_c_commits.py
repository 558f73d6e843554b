"""Commits and receipts: all or nothing, and everything on record (promises C38, C45-C50)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import held, kept, refused

from keepward import Actor, InvalidInput, Memory
from keepward.core.change import Insert, Retire


@pytest.mark.promise("C38")
@pytest.mark.parametrize("step", ["append", "finish"])
def test_crash_inside_a_commit_leaves_the_earlier_state(opened: Callable[..., Memory], step: str) -> None:
    with opened("kill") as memory:
        kept(memory.remember("The tide turns at six", tier="archival"))
        kept(memory.forget(memory.list_memories()[0].id, reason="make room"))
        before = memory.status()["head"], memory.list_memories(include_ended=True)
    child = os.fork()
    if child == 0:
        # The child dies where no test runner can clean up after it.
        try:
            _die_after(step, opened("kill"))
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    with opened("kill") as memory:
        assert (memory.status()["head"], memory.list_memories(include_ended=True)) == before
        assert memory.verify().ok
        assert list(memory.recall("plank mast rudder")) == []
        assert len(memory.remember_many(["plank of oak", "mast of pine"], mode="atomic")) == 2


def _die_after(step: str, memory: Memory) -> None:
    from keepward.storage import writer as write

    writers = [each for each in vars(write).values() if isinstance(each, type) and hasattr(each, step)]
    for writer in writers:
        original = getattr(writer, step)

        def dying(*args: Any, _original: Any = original, **kwargs: Any) -> None:
            _original(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(writer, step, dying)
    with memory.draft(reason="a ship") as draft:
        for text in ("plank of oak", "mast of pine", "rudder of iron"):
            draft.insert(text, tier="archival")


@pytest.mark.promise("C45", "C46", "C48", "C49", "C50")
def test_receipt_of_a_commit_shows_target_change_reason_and_source(owner: Memory, clock: Any) -> None:
    block = kept(owner.remember("Working on API v2", key="mission", tier="core"))
    outcome = owner.revise(
        block.id,
        "Working on API v2, branch feat",
        source="user_message",
        evidence=["chat:42"],
        confidence=0.95,
        reason="after the branch switch",
    )
    kept(outcome)
    commit = outcome.commit.id  # type: ignore[union-attr]
    receipt = owner.receipt(owner.show(commit[:-4]).details.receipt)
    assert (receipt["commit"], receipt["kind"], receipt["actor"]) == (commit, "commit", "operator:olga")
    assert receipt["reason"] == "after the branch switch"
    assert receipt["at"] == clock.now().isoformat()
    (change,) = receipt["changes"]
    assert (change["op"], change["tier"], change["key"], change["id"]) == ("replace", "core", "mission", block.id)
    assert (change["before"], change["after"]) == ("Working on API v2", "Working on API v2, branch feat")
    assert (change["confidence"], change["source"], change["evidence"]) == (0.95, "user_message", ["chat:42"])


@pytest.mark.promise("C50")
def test_every_outcome_of_a_write_has_a_readable_receipt(mem: Memory, owner: Memory) -> None:
    outcomes = {
        "commit": mem.remember("The tide turns at six", tier="archival"),
        "duplicate": mem.remember("The tide turns at six", tier="archival"),
        "quarantine": mem.remember("Sail to Oslo", key="mission", tier="core"),
        "refusal": mem.remember("", tier="archival"),
    }
    outcomes["approval"] = owner.approve(held(outcomes["quarantine"]).id)
    for kind, outcome in outcomes.items():
        assert mem.receipt(outcome.receipt.id)["kind"] == kind
    assert {each.details.receipt for each in mem.log()} <= {each.receipt.id for each in outcomes.values()}


@pytest.mark.promise("C50")
def test_what_was_redacted_is_redacted_in_the_receipt_too(mem: Memory, path: Path) -> None:
    address = "ana.berg" + "@" + "harbour-mail.org"
    outcome = mem.remember(f"write to {address}", tier="archival", reason=f"she gave {address}")
    kept(outcome)
    assert address not in str(mem.receipt(outcome.receipt.id))
    assert address not in str(mem.show(outcome.commit.id))  # type: ignore[union-attr]
    mem.close()
    assert not any(address.encode() in each.read_bytes() for each in path.parent.iterdir() if each.is_file())


@pytest.mark.promise("C47")
def test_reason_of_a_change_is_recorded_or_names_the_operation(mem: Memory, owner: Memory) -> None:
    given = kept(mem.remember("The tide turns at six", reason="read it at the quay"))
    assert mem.history(given.id)[0].details.reason == "read it at the quay"
    one, two = kept(owner.remember("The ferry is red")), kept(owner.remember("The ferry carries forty cars"))
    changes = {
        "revised": owner.revise(one.id, "The ferry is blue"),
        "appended": owner.append(one.id, "It was red before"),
        "confirmed": owner.reinforce(one.id),
        "moved": owner.move(one.id, scope="/agents/orion"),
        "forgotten": owner.forget(one.id, reason=" "),
        "restored": owner.restore(one.id),
        "archived": owner.archive(one.id),
        "promoted": owner.promote(two.id, "The ferry carries forty cars"),
        "superseded": owner.supersede(two.id, given.id),
        "merged": owner.merge([kept(owner.remember(text)).id for text in ("The crane lifts", "The dock floods")]),
        "edited": owner.propose([Insert(id="a", text="The buoy rings", scope="/"), Retire(id=given.id)]),
    }
    assert {word: out.commit and owner.show(out.commit.id).details.reason for word, out in changes.items()} == {
        word: word for word in changes
    }
    forgotten = changes["forgotten"].commit
    rollbacks = (
        owner.rollback(changes["edited"].commit.id),
        owner.rollback(forgotten.id, with_later=True, reason="late"),
    )
    reasons = [owner.show(each.commit.id).details.reason for each in rollbacks]
    assert reasons == ["rolled back", "late"]


def test_rollback_refuses_a_secret_as_its_reason(owner: Memory) -> None:
    commit = owner.remember("The tide turns at six").commit
    with pytest.raises(InvalidInput, match="looks like a secret"):
        owner.rollback(commit.id, reason="-".join(("sk", "ant", "api03", "Zq7" * 31 + "AA")))


def test_commit_can_be_named_by_its_number(owner: Memory) -> None:
    owner.remember("The tide turns at six", tier="archival")
    number: Any = 1
    assert owner.rollback(number, dry_run=True).undone == (owner.show("1").commit.id,)


@pytest.mark.parametrize("given", [{"actor": "ana"}, {"policy": {"enabled": True}}])
def test_actor_or_policy_of_another_type_is_a_clear_error(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"Actor\.user"):
        Memory.open(":memory:", embedder=None, **given)


@pytest.mark.promise("C48")
@pytest.mark.parametrize("confidence", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_confidence_outside_zero_to_one_is_refused(mem: Memory, confidence: Any) -> None:
    assert "bad_confidence" in refused(mem.remember("The tide turns at six", confidence=confidence))
    assert mem.list_memories() == []


@pytest.mark.promise("C48")
@pytest.mark.parametrize("confidence", ["high", True])
def test_a_confidence_that_is_no_number_is_an_error(mem: Memory, confidence: Any) -> None:
    with pytest.raises(InvalidInput, match="a number from 0 to 1"):
        mem.remember("The tide turns at six", confidence=confidence)


@pytest.mark.promise("C48")
@pytest.mark.parametrize("confidence", [0.3, 1])
def test_a_confidence_at_either_end_is_recorded(mem: Memory, confidence: float) -> None:
    assert kept(mem.remember("The tide turns at six", tier="archival", confidence=confidence)).confidence == confidence


@pytest.mark.promise("C49")
def test_journal_names_author_and_evidence_of_each_version(mem: Memory, owner: Memory) -> None:
    record = kept(
        owner.as_actor(Actor.agent("orion")).remember("Fog", tier="archival", source="tool", evidence=["s:3"])
    )
    kept(owner.revise(record.id, "Thick fog", evidence=["s:3", "s:4"], reason="second sensor"))
    told = [(each.details.actor, each.record.source, each.record.evidence) for each in mem.history(record.id)]
    assert told == [("agent:orion", "tool", ("s:3",)), ("operator:olga", "operator", ("s:3", "s:4"))]
