"""Commits, drafts, batches and rollback."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from outcomes import codes, committed_record, quarantined_item, refused

import keepward.core
import keepward.services
from keepward import Actor, Conflict, InvalidInput, Memory, Record, StaleVersion
from keepward.core.change import Insert, Retire
from keepward.core.proposal import Committed, Duplicate, Outcome
from keepward.core.value import Value
from keepward.services.writing.write import EVALUATE_FIRST_FROM
from support.clock import SteppingClock
from support.ids import CountingIds

# --- Commits and receipts: all or nothing, and everything on record


@pytest.mark.promise("C38")
@pytest.mark.parametrize("step", ["append", "finish"])
def test_crash_inside_a_commit_leaves_the_earlier_state(opened: Callable[..., Memory], step: str) -> None:
    with opened("kill") as memory:
        committed_record(memory.remember("The tide turns at six", tier="archival"))
        committed_record(memory.forget(memory.list_memories()[0].id, reason="make room"))
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
    block = committed_record(owner.remember("Working on API v2", key="mission", tier="core"))
    outcome = owner.revise(
        block.id,
        "Working on API v2, branch feat",
        source="user_message",
        evidence=["chat:42"],
        confidence=0.95,
        reason="after the branch switch",
    )
    committed_record(outcome)
    commit = outcome.commit.id  # type: ignore[union-attr]
    receipt = owner.receipt(owner.show(commit).details.receipt)
    assert (receipt["commit"], receipt["kind"], receipt["actor"]) == (commit, "commit", "operator:olga")
    assert receipt["reason"] == "after the branch switch"
    assert receipt["at"] == clock.now().isoformat()
    (change,) = receipt["changes"]
    assert (change["op"], change["tier"], change["key"], change["id"]) == ("replace", "core", "mission", block.id)
    assert (change["before"], change["after"]) == ("Working on API v2", "Working on API v2, branch feat")
    assert (change["confidence"], change["source"], change["evidence"]) == (0.95, "user_message", ["chat:42"])


def test_commit_is_found_by_the_beginning_of_its_id(owner: Memory) -> None:
    commit = owner.remember("The ferry leaves from dock 4").commit.id  # type: ignore[union-attr]
    assert owner.show(commit[:12]).commit.id == commit


@pytest.mark.promise("C50")
def test_every_outcome_of_a_write_has_a_readable_receipt(mem: Memory, owner: Memory) -> None:
    outcomes = {
        "commit": mem.remember("The tide turns at six", tier="archival"),
        "duplicate": mem.remember("The tide turns at six", tier="archival"),
        "quarantine": mem.remember("Sail to Oslo", key="mission", tier="core"),
        "refusal": mem.remember("", tier="archival"),
    }
    outcomes["approval"] = owner.approve(quarantined_item(outcomes["quarantine"]).id)
    for kind, outcome in outcomes.items():
        assert mem.receipt(outcome.receipt.id)["kind"] == kind
    assert {each.details.receipt for each in mem.log()} <= {each.receipt.id for each in outcomes.values()}


@pytest.mark.promise("C50")
def test_what_was_redacted_is_redacted_in_the_receipt_too(mem: Memory, path: Path) -> None:
    address = "ana.berg" + "@" + "harbour-mail.org"
    outcome = mem.remember(f"write to {address}", tier="archival", reason=f"she gave {address}")
    committed_record(outcome)
    assert address not in str(mem.receipt(outcome.receipt.id))
    assert address not in str(mem.show(outcome.commit.id))  # type: ignore[union-attr]
    mem.close()
    assert not any(address.encode() in each.read_bytes() for each in path.parent.iterdir() if each.is_file())


@pytest.mark.promise("C47")
def test_reason_of_a_change_is_recorded_or_names_the_operation(mem: Memory, owner: Memory) -> None:
    given = committed_record(mem.remember("The tide turns at six", reason="read it at the quay"))
    assert mem.history(given.id)[0].details.reason == "read it at the quay"
    one, two = (
        committed_record(owner.remember("The ferry is red")),
        committed_record(owner.remember("The ferry carries forty cars")),
    )
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
        "merged": owner.merge(
            [committed_record(owner.remember(text)).id for text in ("The crane lifts", "The dock floods")]
        ),
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
    assert (
        committed_record(mem.remember("The tide turns at six", tier="archival", confidence=confidence)).confidence
        == confidence
    )


@pytest.mark.promise("C49")
def test_journal_names_author_and_evidence_of_each_version(mem: Memory, owner: Memory) -> None:
    record = committed_record(
        owner.as_actor(Actor.agent("orion")).remember("Fog", tier="archival", source="tool", evidence=["s:3"])
    )
    committed_record(owner.revise(record.id, "Thick fog", evidence=["s:3", "s:4"], reason="second sensor"))
    told = [(each.details.actor, each.record.source, each.record.evidence) for each in mem.history(record.id)]
    assert told == [("agent:orion", "tool", ("s:3",)), ("operator:olga", "operator", ("s:3", "s:4"))]


# --- Drafts: changes are collected, then carried out together or not at all


def state(memory: Memory) -> tuple[Any, ...]:
    """Return all that a reader could notice."""
    compiled = memory.context("hull deck mast")
    return (
        memory.status()["head"],
        memory.list_memories(include_ended=True),
        compiled.text,
        len(memory.log()),
        memory.pending(),
    )


@dataclass
class Ship:
    """Three memories to work on."""

    hull: str
    deck: str
    mast: str


@pytest.fixture
def ship(mem: Memory) -> Ship:
    return Ship(
        *(
            committed_record(mem.remember(f"The {part} is sound", tier="archival")).id
            for part in ("hull", "deck", "mast")
        )
    )


@pytest.mark.promise("C39", "C40", "C41", "C42")
def test_nothing_that_is_staged_shows_before_the_end(mem: Memory, ship: Ship, opened: Callable[..., Memory]) -> None:
    before = state(mem)
    with mem.draft(reason="refit") as draft:
        new = draft.insert("The keel is new", tier="archival")
        assert state(mem) == before
        draft.replace(ship.hull, "The hull is patched")
        draft.append(ship.deck, "and swept")
        assert state(mem) == before
        draft.retire(ship.mast)
        assert state(mem) == before
        assert len(draft) == 4
    committed_record(draft.outcome)
    assert mem.get(new).text == "The keel is new"


@pytest.mark.promise("C43")
def test_the_end_carries_out_everything_in_one_commit(mem: Memory, ship: Ship) -> None:
    commits = len(mem.log())
    with mem.draft(reason="refit") as draft:
        new = draft.insert("The keel is new", tier="archival")
        draft.replace(ship.hull, "The hull is patched", tags=("wet",))
        draft.append(ship.deck, "and swept")
        draft.retire(ship.mast)
    committed_record(draft.outcome)
    assert len(mem.log()) == commits + 1
    view = mem.show(draft.outcome.commit.id)  # type: ignore[union-attr]
    assert [(step.op, step.after.id) for step in view.steps] == [
        ("insert", new),
        ("replace", ship.hull),
        ("append", ship.deck),
        ("retire", ship.mast),
    ]
    assert {each.text for each in mem.list_memories()} == {
        "The keel is new",
        "The hull is patched",
        "The deck is sound\nand swept",
    }


@pytest.mark.promise("C43")
def test_one_change_that_is_refused_takes_all_with_it(mem: Memory, ship: Ship) -> None:
    before = state(mem)
    with mem.draft(reason="refit") as draft:
        draft.replace(ship.hull, "The hull is patched")
        draft.insert("x" * 1201, tier="archival")
        draft.retire(ship.mast)
    assert "too_long" in refused(draft.outcome)
    assert state(mem) == before


@pytest.mark.promise("C43")
def test_one_quarantined_change_quarantines_the_complete_draft(mem: Memory, owner: Memory, ship: Ship) -> None:
    before = mem.list_memories()
    with mem.draft(reason="refit") as draft:
        draft.replace(ship.hull, "The hull is patched")
        draft.insert("Sail to Oslo", key="mission", tier="core")
    waiting = quarantined_item(draft.outcome)
    assert "needs_approval" in codes(draft.outcome)  # type: ignore[arg-type]
    assert mem.list_memories() == before
    committed_record(owner.approve(waiting.id))
    assert mem.get(ship.hull).text == "The hull is patched"
    assert "Sail to Oslo" in mem.context("").text


@pytest.mark.promise("C44")
def test_error_or_discard_of_a_draft_leaves_no_trace(mem: Memory, ship: Ship) -> None:
    before = state(mem)
    draft = mem.draft(reason="refit")

    def refit() -> None:
        with draft:
            draft.insert("The keel is new", tier="archival")
            draft.retire(ship.mast)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        refit()
    assert draft.outcome is None
    with mem.draft(reason="refit") as other:
        other.insert("The keel is new", tier="archival")
        other.discard()
    assert other.outcome is None
    assert state(mem) == before


@pytest.mark.promise("C44")
def test_a_draft_whose_process_ends_was_never_there(mem: Memory, ship: Ship, path: Any) -> None:
    before = state(mem)
    mem.draft(reason="refit").insert("The keel is of brass", tier="archival")
    assert state(mem) == before
    mem.close()
    assert not any(b"of brass" in each.read_bytes() for each in path.parent.iterdir() if each.is_file())


@pytest.mark.promise("C39")
def test_draft_stops_when_a_version_it_read_has_changed(mem: Memory, ship: Ship) -> None:
    version = mem.get(ship.hull).version

    def refit() -> None:
        with mem.draft(reason="refit") as draft:
            draft.insert("The keel is new", tier="archival")
            draft.replace(ship.hull, "The hull is patched", if_version=version)
            committed_record(mem.revise(ship.hull, "The hull leaks", reason="somebody was faster"))

    with pytest.raises(StaleVersion):
        refit()
    assert {each.text for each in mem.list_memories()} == {"The hull leaks", "The deck is sound", "The mast is sound"}


@pytest.mark.promise("C40", "C41", "C42")
def test_later_changes_of_a_draft_build_on_its_earlier_ones(mem: Memory) -> None:
    with mem.draft(reason="refit") as draft:
        new = draft.insert("The keel is new", tier="archival", key="keel")
        draft.replace(new, "The keel is of oak")
        draft.append(new, "and tarred")
        draft.move(new, key="hull")
    committed_record(draft.outcome)
    record = mem.get(new)
    assert (record.text, record.key, record.version) == ("The keel is of oak\nand tarred", "hull", 4)
    assert [each.op for each in mem.history(new)] == ["insert", "replace", "append", "move"]


@pytest.mark.promise("C42")
def test_memory_deleted_in_a_draft_cannot_be_edited_later(mem: Memory, ship: Ship) -> None:
    before = state(mem)

    def refit() -> None:
        with mem.draft(reason="refit") as draft:
            draft.retire(ship.hull)
            draft.replace(ship.hull, "The hull is patched")

    with pytest.raises(Conflict, match="retired"):
        refit()
    assert state(mem) == before


@pytest.mark.promise("C45", "C46", "C47", "C48", "C49")
def test_each_draft_change_has_its_own_fields_and_one_reason(mem: Memory) -> None:
    with mem.draft(reason="from the survey", session="s1") as draft:
        draft.insert("The keel is new", tier="archival", source="tool", evidence=["survey:1"], confidence=0.7)
        draft.insert("Ask about the mast", tier="working", key="todo", confidence=0.6)
    committed_record(draft.outcome)
    view = mem.show(draft.outcome.commit.id)  # type: ignore[union-attr]
    assert (view.details.reason, view.details.session) == ("from the survey", "s1")
    told = [
        (each.after.tier.value, each.after.key, each.after.text, each.after.confidence, each.after.evidence)
        for each in view.steps
    ]
    assert told == [
        ("archival", None, "The keel is new", 0.7, ("survey:1",)),
        ("working", "todo", "Ask about the mast", 0.6, ()),
    ]


# --- Undoing exactly, and what waits meanwhile


def plain(record: Record) -> Record:
    """Return a record without what every version has of its own."""
    return replace(record, version=0, updated_at=None)


def records_of(memory: Memory) -> set[Record]:
    return {plain(record) for record in memory.list_memories(limit=None)}


@pytest.mark.promise("C54")
def test_a_rollback_has_a_receipt_that_names_what_it_undid(owner: Memory) -> None:
    committed_record(owner.remember("The ferry leaves at six", tier="archival"))
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
        made = committed_record(owner.remember("The ferry leaves at six", tier="archival"))
        before = records_of(owner)
        for hour in ("seven", "eight", "nine"):
            committed_record(owner.revise(made.id, f"The ferry leaves at {hour}", reason="timetable"))
    with opened("own", actor=Actor.operator("olga")) as owner:
        assert owner.rollback(owner.log(limit=3)[-1].commit.id, with_later=True).applied
        assert records_of(owner) == before
    with opened("own", actor=Actor.operator("olga")) as owner:
        assert records_of(owner) == before
        assert owner.verify().ok


HOURS = ("seven", "eight", "nine")


@pytest.fixture
def chain(owner: Memory) -> tuple[str, list[str]]:
    """A memory with four versions, and the commits that revised it, newest first."""
    made = committed_record(owner.remember("The ferry leaves at six", tier="archival", key="ferry", tags=["pier"]))
    for hour in HOURS:
        committed_record(owner.revise(made.id, f"The ferry leaves at {hour}", tags=[hour], reason="timetable"))
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
    quarantined_item(mem.remember("The crane may be red", tier="archival", confidence=0.29))
    committed_record(mem.remember("The crane may be blue", tier="archival", confidence=0.3))
    diverted = mem.remember("Sail to Oslo", tier="core", key="mission", confidence=0.79)
    assert (committed_record(diverted).tier.value, "diverted_to_archival" in codes(diverted)) == ("archival", True)
    assert mem.list_memories(tiers=["core"]) == []


# --- A batch is asked about at once and judged as its items are one by one


IBAN = "DE89 3704 0044 " + "0532 0130 00"
STORED = (
    "The deploy runs on Monday at 9.",
    "Ana keeps the key to the oven in the cellar",
    "Ben prefers tea with milk",
    f"pay the rent to {IBAN}",
)
ITEMS: tuple[dict[str, Any], ...] = (
    {"text": "the deploy runs on monday at 9"},
    {"text": "The deploy runs on Monday at 10."},
    {"text": "Ana is keeping the key to the oven in the cellar"},
    {"text": "Ana keeps the key to the oven in the attic"},
    {"text": "Ben does not prefer tea with milk"},
    {"text": f"pay the rent to {IBAN}"},
    {"text": "Chidi measured the backup plan"},
    {"text": "Chidi measured the backup plan."},
    {"text": "Ben prefers tea with milk", "subject": "ben"},
    {"text": "heartbeat ok"},
    {"text": "status unchanged"},
    {"text": "the release is frozen", "key": "release", "kind": "state"},
    {"text": "the release is open", "key": "release", "kind": "state"},
)


def _plain(outcome: Outcome) -> tuple[Any, ...]:
    """Return what an outcome says but for ids, which are given in another order."""
    reasons = [(each.gate, each.code) for each in outcome.reasons]
    record = outcome.record.text if isinstance(outcome, Duplicate) else None
    stored = [each.text for each in outcome.records] if isinstance(outcome, Committed) else None
    return type(outcome).__name__, reasons, record, stored


def _filled(folder: Path) -> Iterator[Memory]:
    with Memory.open(
        folder / "m.db",
        actor=Actor.operator("ada"),
        embedder=None,
        config_dir=folder / "config",
        clock=SteppingClock(),
        ids=CountingIds(),
    ) as opened:
        for text in STORED:
            opened.remember(text, tier="archival")
        yield opened


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    yield from _filled(tmp_path)


@pytest.fixture
def one_by_one(memory: Memory) -> list[tuple[Any, ...]]:
    return [_plain(memory.remember_many([{"tier": "archival", **item}])[0]) for item in ITEMS]


@pytest.fixture
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    yield from _filled(tmp_path_factory.mktemp("other"))


@pytest.mark.promise("A34", "A36")
def test_batch_is_judged_like_its_items_one_by_one(one_by_one: list[tuple[Any, ...]], at_once: Memory) -> None:
    outcomes = at_once.remember_many([{"tier": "archival", **item} for item in ITEMS])
    assert [_plain(each) for each in outcomes] == one_by_one


def test_text_rewritten_by_a_gate_is_compared_as_stored(memory: Memory) -> None:
    for month in ("May", "June", "July"):
        # Nearer to the text as it came: they share its digits, which the stored one has lost.
        memory.remember(f"pay the rent to {IBAN[5:]} in {month}", tier="archival")
    assert isinstance(memory.remember(f"pay the rent to {IBAN}", tier="archival"), Duplicate)


def test_a_batch_of_a_thousand_is_one_commit(memory: Memory) -> None:
    memory.remember_many([f"case {n} is about number {n * n}" for n in range(120)], batch=120)
    assert len(memory.log(limit=3)[0].steps) == 120


def test_what_another_commit_brought_since_counts_for_the_batch(memory: Memory) -> None:
    text = "Chidi measured the backup plan"
    original, asked = memory._engine.store.duplicate_candidates, []

    def late(*args: Any) -> Any:
        found = original(*args)
        if not asked:
            asked.append(True)
            memory.remember(text, tier="archival")
        return found

    memory._engine.store.duplicate_candidates = late  # type: ignore[method-assign]
    # Many are judged before the transaction begins; with few of them nobody comes in between.
    others = [f"Dana sails to harbour {number * 7}" for number in range(EVALUATE_FIRST_FROM)]
    outcomes = memory.remember_many([{"text": each, "tier": "archival"} for each in (text, *others)])
    assert [type(each).__name__ for each in outcomes] == ["Duplicate", *["Committed"] * EVALUATE_FIRST_FROM]


def test_what_was_erased_is_refused_in_a_batch_too(memory: Memory) -> None:
    kept = memory.remember("Farah owns a garden plot", tier="archival")
    assert isinstance(kept, Committed)
    ids = (kept.records[0].id,)
    memory.erase(memory.plan_erase(ids).digest, ids)
    texts = ("Farah owns a garden plot", "Goran owns a bicycle")
    outcomes = memory.remember_many([{"text": text, "tier": "archival"} for text in texts])
    assert [type(each).__name__ for each in outcomes] == ["Refused", "Committed"]


def test_a_batch_stores_its_reason_without_personal_identifiers(tmp_path: Path) -> None:
    for mem in _filled(tmp_path):
        items = [{"text": "The boat is red"}, {"text": "The tram is green", "consent": True}]
        mem.remember_many(items, reason=f"asked by the holder of {IBAN}")
        assert mem.log()[0].details.reason == "asked by the holder of [IBAN]"


# --- Every result can be sent on: plain JSON values, and metadata as it came


METADATA = {
    "n": 1,
    "share": 0.25,
    "list": [1, "zwei", None],
    "nested": {"yes": True},
    "ü": "茶",
    "empty": {},
    "big": 2**60,
}
#: What verbs return that is no result of ours.
OTHERS = {"Actor", "Any", "Draft", "Iterator", "Memory", "None", "Path", "Policy", "Self", "Shadow", "Conversation"}


def results(owner: Memory, folder: Path) -> list[Any]:
    """Return one result of nearly every verb."""
    kept = owner.remember(
        "Ana prefers tabs", key="indent", kind="state", tier="archival", metadata=METADATA, subject="ana"
    )
    agent = owner.as_actor(owner.actor.agent())
    held = agent.remember("Ship it", tier="core", key="mission", confidence=0.9)
    assert held.item is not None
    assert kept.commit is not None
    context = owner.context("indentation", budget_tokens=500)
    blob = owner.put_blob(b"%PDF-1.4 a plan")
    found = owner.recall("tabs", receipt=True)
    return [
        kept,
        held,
        owner.remember("Ana prefers tabs", tier="archival"),
        owner.remember("too sure", confidence=2.0),
        found,
        *found,
        owner.get("indent"),
        owner.list_memories(),
        *owner.history(str(kept.id)),
        context,
        owner.replay(context.receipt.id),
        *owner.doctor(),
        *owner.pending(),
        *owner.proposed_steps(held.item),
        *owner.log(),
        *owner.diff(0),
        owner.feedback(str(found.receipt), used=[str(kept.id)]),
        owner.impact(memory=str(kept.id)),
        owner.blame("indent"),
        owner.create_token("orion", expires=3600),
        *owner.tokens(),
        *owner.jobs(),
        owner.run_job("expire"),
        owner.verify(),
        owner.reject(held.item.id, reason="not now"),
        owner.rollback(kept.commit.id, dry_run=True),
        owner.plan_contain(memory=str(kept.id)),
        owner.plan_erase(subject="ana"),
        owner.backup(folder / "copy.kwb"),
        blob,
    ]


def test_every_result_is_plain_json(owner: Memory, tmp_path: Path) -> None:
    for each in results(owner, tmp_path):
        assert isinstance(each, Value), type(each)
        told = each.to_dict()
        assert json.loads(json.dumps(told, allow_nan=False)) == told, type(each)


def test_every_verb_gives_what_can_be_made_plain() -> None:
    rooms = (keepward.services, keepward.core)
    for module in (one for room in rooms for one in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")):
        import_module(module.name)
    known = {kind.__name__ for kind in _below(Value)} | {"Outcome"}
    for name in dir(Memory):
        verb = getattr(Memory, name)
        if name.startswith("_") or not callable(verb):
            continue
        told = str(verb.__annotations__["return"])
        assert set(re.findall(r"\b[A-Z]\w+", told)) <= known | OTHERS, (name, told)


def _below(kind: type) -> list[type]:
    return [each for direct in kind.__subclasses__() for each in (direct, *_below(direct))]


def test_hit_gives_the_metadata_of_its_memory_as_an_object(owner: Memory) -> None:
    owner.remember("Ana prefers tabs", tier="archival", metadata=METADATA)
    assert owner.recall("tabs").to_dict()["hits"][0]["memory"]["metadata"] == METADATA


@pytest.mark.promise("E17", "E28")
def test_metadata_comes_back_as_it_went_in(owner: Memory) -> None:
    out = owner.remember("The crane is red", tier="archival", metadata=METADATA)
    memory = owner.get(str(out.id))
    assert memory.metadata == METADATA
    assert memory.to_dict()["metadata"] == METADATA
    memory.metadata["n"] = 2
    assert owner.recall("crane")[0].memory.metadata == METADATA
    changed = owner.revise(memory.id, reason="counted", metadata={"n": 3})
    assert changed.record is not None
    assert changed.record.metadata == {"n": 3}
    emptied = owner.revise(memory.id, reason="cleared", metadata=None)
    assert emptied.record is not None
    assert emptied.record.metadata == {}
    assert [each.record.metadata for each in owner.history(memory.id)] == [METADATA, {"n": 3}, {}]


@pytest.mark.promise("E17")
@pytest.mark.parametrize("metadata", [{"a": float("nan")}, {"a": object()}, {"a": {1: 2}}, {1: 2}, [1], "x"])
def test_metadata_that_would_come_back_otherwise_is_an_error(owner: Memory, metadata: Any) -> None:
    with pytest.raises(InvalidInput, match="JSON"):
        owner.remember("The crane is red", tier="archival", metadata=metadata)
    assert owner.list_memories() == []


def test_a_memory_that_faded_between_two_reads_is_the_same(owner: Memory, clock: Any) -> None:
    made = owner.remember("Ana prefers tabs", tier="archival").id
    first = owner.get(made)
    clock.instant += timedelta(days=40)
    second = owner.get(made)
    assert second.confidence < first.confidence
    assert first == second
    assert not first != second  # noqa: SIM202  what is asked
    assert len({first, second}) == 1


def test_a_token_is_shown_without_its_secret(owner: Memory) -> None:
    issued = owner.create_token("orion", expires=3600)
    shown = repr(issued)
    assert issued.secret not in shown
    assert issued.token.id in shown
