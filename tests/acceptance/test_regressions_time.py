"""How time, state and rollback fail elsewhere."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from outcomes import committed_record, quarantined_item

from keepward import Actor, Conflict, InvalidInput, KeepwardError, Memory, NotFound, Record
from keepward.core.commit import Commit
from keepward.interchange.imports import load
from keepward.ports.store import PendingCommit

MISSION: dict[str, Any] = {"tier": "core", "key": "mission"}


def contents(mem: Memory) -> list[Record]:
    """Return everything that holds, regardless of version numbers and of when it was touched."""
    return [
        replace(each, version=0, updated_at=None) for each in sorted(mem.list_memories(limit=None), key=lambda r: r.id)
    ]


def files(folder: Path) -> dict[str, str]:
    """Return the hash of every file but the scratch memory in which SQLite notes who is reading."""
    found = [each for each in sorted(folder.rglob("*")) if each.is_file() and not each.name.endswith("-shm")]
    return {str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest() for each in found}


@pytest.mark.promise("Z13")
@pytest.mark.parametrize("offset", ["+05:45", "-09:30", "+14:00", "-12:00"])
def test_an_instant_means_the_same_in_every_zone(mem: Memory, clock: Any, offset: str) -> None:
    clock.instant = datetime(2026, 3, 28, 23, 59, 59, tzinfo=UTC)
    made = committed_record(mem.remember("The ferry is out of order", tier="archival", ttl="2s"))
    local = clock.instant.astimezone(datetime.fromisoformat(f"2026-01-01T00:00:00{offset}").tzinfo)
    assert [each.id for each in mem.list_memories(as_of=local)] == [made.id]
    clock.instant = local + timedelta(seconds=2)
    assert mem.list_memories() == []


@pytest.mark.promise("Z15", "E16")
def test_a_tag_is_found_beyond_the_page(mem: Memory) -> None:
    rare = [committed_record(mem.remember(f"rope {n}", tier="archival", tags=["rare"])).id for n in range(3)]
    mem.remember_many([{"text": f"ferry {n} of the line", "tier": "archival", "tags": ["common"]} for n in range(120)])
    assert {each.id for each in mem.list_memories(tags=["rare"], limit=3)} == set(rare)
    assert {hit.memory.id for hit in mem.recall("ferry rope of the line", tags=["rare"], limit=3)} == set(rare)


ODD: dict[str, Callable[[Memory], object]] = {
    "recall limit 0": lambda mem: mem.recall("ferry", limit=0),
    "recall limit -1": lambda mem: mem.recall("ferry", limit=-1),
    "find limit 0": lambda mem: mem.list_memories(limit=0),
    "log limit 0": lambda mem: mem.log(limit=0),
    "budget 0": lambda mem: mem.context("ferry", budget_tokens=0),
    "ttl 0 as text": lambda mem: mem.remember("x ray", ttl="0s").outcome,
    "ttl 0": lambda mem: mem.remember("x ray", ttl=timedelta(0)).outcome,
    "negative ttl": lambda mem: mem.remember("x ray", ttl=timedelta(seconds=-5)).outcome,
    "endless ttl": lambda mem: mem.remember("x ray", ttl=timedelta.max).outcome,
    "as of -1": lambda mem: mem.list_memories(as_of=-1),
    "as of tomorrow's commit": lambda mem: mem.list_memories(as_of=99),
}


@pytest.mark.promise("Z16")
@pytest.mark.parametrize("what", sorted(ODD))
def test_nonpositive_limit_or_ttl_is_refused(mem: Memory, what: str) -> None:
    committed_record(mem.remember("The ferry is blue", tier="archival"))
    try:
        answer = ODD[what](mem)
    except (InvalidInput, NotFound):
        answer = "refused"
    assert answer == "refused"
    assert len(mem.list_memories()) == 1


@pytest.mark.promise("Z18")
def test_a_dry_run_changes_no_byte(mem: Memory, owner: Memory, tmp_path: Path) -> None:
    made = mem.remember("The ferry leaves at six", tier="archival")
    committed_record(mem.revise(committed_record(made).id, "The ferry leaves at seven", reason="winter"))
    before = files(tmp_path)
    plan = owner.rollback(made.commit.id, with_later=True, dry_run=True)  # type: ignore[union-attr]
    assert (plan.applied, len(plan.undone)) == (False, 2)
    assert files(tmp_path) == before


@pytest.mark.promise("Z20")
@pytest.mark.parametrize("stage", ["append", "finish"])
def test_a_failed_commit_leaves_everything_as_it_was(
    mem: Memory, owner: Memory, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.storage.writer import UnitOfWork

    committed_record(owner.remember("Sail to Oslo", **MISSION))
    gone = committed_record(mem.remember("The ferry leaves at six", tier="archival"))
    before = (contents(owner), owner.status()["head"], owner.context("ferry").text)
    real = getattr(UnitOfWork, stage)

    def fails(*given: Any) -> Any:
        real(*given)
        raise RuntimeError("the disk has gone")

    monkeypatch.setattr(UnitOfWork, stage, fails)
    with pytest.raises(RuntimeError), owner.draft(reason="spring") as draft:
        draft.retire(gone.id)
        draft.insert("The ferry leaves at five", tier="archival")
        draft.replace(owner.list_memories(key="mission")[0].id, "Sail to Bergen")
    monkeypatch.undo()
    assert (contents(owner), owner.status()["head"], owner.context("ferry").text) == before
    assert owner.verify().ok


@pytest.mark.promise("Z21", "C77")
def test_rollback_preserves_unrelated_later_commits(mem: Memory, owner: Memory) -> None:
    first = owner.remember("Sail to Oslo", **MISSION)
    wrong = owner.remember("Sail to Bergen", **MISSION)
    committed_record(wrong)
    later = committed_record(mem.remember("The ferry is blue", tier="archival"))
    assert owner.rollback(wrong.commit.id).applied  # type: ignore[union-attr]
    assert owner.get(committed_record(first).id).text == "Sail to Oslo"
    assert owner.get(later.id) == later
    assert "Sail to Oslo" in owner.context("").text


@pytest.mark.promise("Z22", "F9", "T15", "C53", "C54")
def test_rollback_survives_restart_repetition_and_its_own_rollback(opened: Callable[..., Memory]) -> None:
    who = Actor.operator("olga")
    with opened("undo", actor=who) as mem:
        committed_record(mem.remember("Sail to Oslo", **MISSION))
        before = (contents(mem), mem.context("sail").text, [hit.memory.text for hit in mem.recall("sail to")])
        wrong = mem.remember("Sail to Bergen", **MISSION)
        after = contents(mem)
    with opened("undo", actor=who) as mem:
        done = mem.rollback(wrong.commit.id)  # type: ignore[union-attr]
        assert done.commit is not None
    with opened("undo", actor=who) as mem:
        assert (contents(mem), mem.context("sail").text, [hit.memory.text for hit in mem.recall("sail to")]) == before
        head = mem.status()["head"]
        again = mem.rollback(wrong.commit.id)  # type: ignore[union-attr]
        assert (again.applied, again.already, again.receipt_id) == (False, True, done.receipt_id)
        assert (contents(mem), mem.status()["head"]) == (before[0], head)
        assert mem.rollback(done.commit.id).applied
        assert contents(mem) == after


@pytest.mark.promise("T15", "C52")
def test_rollback_restores_rows_recall_and_context(mem: Memory, owner: Memory) -> None:
    names = [
        committed_record(mem.remember(f"{word} of the harbour", tier="archival")).id
        for word in ("crane", "ferry", "rope")
    ]
    before = (contents(owner), owner.context("harbour").text, [hit.memory.id for hit in owner.recall("harbour")])
    with owner.draft(reason="spring") as draft:
        draft.insert("gulls of the harbour", tier="archival")
        draft.retire(names[0])
        draft.move(names[1], tier="working")
        draft.replace(names[2], "chain of the harbour", tags=["iron"])
    assert contents(owner) != before[0]
    commits = len(owner.log())
    owner.rollback(draft.outcome.commit.id)  # type: ignore[union-attr]
    assert (
        contents(owner),
        owner.context("harbour").text,
        [hit.memory.id for hit in owner.recall("harbour")],
    ) == before
    assert len(owner.log()) == commits + 1
    assert owner.verify().ok


@pytest.mark.promise("T17")
@pytest.mark.parametrize("way", ["write", "approval", "rollback"])
def test_a_change_without_its_receipt_does_not_happen(
    mem: Memory, owner: Memory, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepward.storage.writer import UnitOfWork

    made = mem.remember("The ferry leaves at six", tier="archival")
    item = quarantined_item(mem.remember("Sail to Oslo", **MISSION))
    before = (contents(owner), owner.status()["head"], owner.pending())

    real = UnitOfWork.append

    def fails(writer: UnitOfWork, tenant: str, stage: PendingCommit) -> Commit:
        assert stage.receipt is not None
        facts = {"not JSON": object()}
        return real(writer, tenant, dataclasses.replace(stage, receipt=replace(stage.receipt, facts=facts)))

    monkeypatch.setattr(UnitOfWork, "append", fails)
    with pytest.raises(InvalidInput):
        {
            "write": lambda: mem.remember("The crane is red"),
            "approval": lambda: owner.approve(item.id),
            "rollback": lambda: owner.rollback(made.commit.id),  # type: ignore[union-attr]
        }[way]()
    monkeypatch.undo()
    assert (contents(owner), owner.status()["head"], owner.pending()) == before


@pytest.mark.promise("Z27", "D4")
def test_replaying_the_journal_gives_the_state(mem: Memory, owner: Memory, opened: Callable[..., Memory]) -> None:
    a = committed_record(mem.remember("The ferry leaves at six", tier="archival", tags=["x"]))
    committed_record(mem.revise(a.id, "The ferry leaves at seven", reason="winter"))
    committed_record(owner.approve(quarantined_item(mem.remember("Sail to Oslo", **MISSION)).id))
    b = mem.remember("The crane is red", tier="archival")
    owner.rollback(b.commit.id)  # type: ignore[union-attr]
    committed_record(mem.forget(a.id, reason="sold"))
    committed_record(mem.restore(a.id, reason="bought back"))
    state = (owner.list_memories(include_ended=True, limit=None), owner.context("ferry").text)
    owner.rebuild()
    assert (owner.list_memories(include_ended=True, limit=None), owner.context("ferry").text) == state
    with opened("twin", actor=owner.actor) as twin:
        twin.restore_journal(owner.journal())
        assert (twin.list_memories(include_ended=True, limit=None), twin.context("ferry").text) == state


@pytest.mark.promise("F7")
def test_two_hundred_facts_with_different_numbers_stay_separate(mem: Memory) -> None:
    outcomes = mem.remember_many(
        [
            {"text": f"Locker {n} at the harbour office is rented by the ferry crew", "tier": "archival"}
            for n in range(200)
        ]
    )
    assert {each.outcome for each in outcomes} == {"committed"}
    assert len(mem.list_memories(limit=None)) == 200
    single = [mem.remember(f"Pump {n} was checked by the harbour crew", tier="archival").outcome for n in range(20)]
    assert single == ["committed"] * 20


@pytest.mark.promise("F8")
@pytest.mark.parametrize("way", ["revise", "key", "supersede"])
def test_old_value_does_not_return_by_repetition_after_a_correction(mem: Memory, way: str) -> None:
    old, new = "The ferry leaves at six", "The ferry leaves at seven"
    fields: dict[str, Any] = {"tier": "archival", "kind": "fact", **({"key": "ferry"} if way == "key" else {})}
    first = committed_record(mem.remember(old, **fields))
    if way == "revise":
        committed_record(mem.revise(first.id, new, reason="winter"))
    elif way == "key":
        committed_record(mem.remember(new, **fields))
    else:
        committed_record(mem.supersede(first.id, committed_record(mem.remember(new, **fields)).id, reason="winter"))
    said = mem.remember(old, **fields)
    assert said.outcome != "committed"
    assert [hit.memory.text for hit in mem.recall("when does the ferry leave")] == [new]
    assert (new in mem.context("ferry leaves").text, old in mem.context("ferry leaves").text) == (True, False)


@pytest.mark.promise("T11")
@pytest.mark.parametrize("damage", ["missing", "unreadable", "cut", "binary"])
def test_unreadable_source_is_not_taken_as_an_empty_one(mem: Memory, tmp_path: Path, damage: str) -> None:
    committed_record(mem.remember("The ferry is blue", tier="archival"))
    path = tmp_path / "chat.json"
    whole = json.dumps([{"role": "user", "content": "I like green tea"}])
    {
        "missing": lambda: None,
        "unreadable": path.mkdir,
        "cut": lambda: path.write_text(whole[:-10]),
        "binary": lambda: path.write_bytes(b"\xff\xfe\x00\x01" * 50),
    }[damage]()
    with pytest.raises((KeepwardError, OSError)):
        load(mem, path, format="messages")
    assert [each.text for each in mem.list_memories()] == ["The ferry is blue"]


@pytest.mark.promise("T27")
@pytest.mark.parametrize("verb", ["revise", "append", "forget", "move", "restore"])
def test_every_update_takes_the_version_it_was_made_on(mem: Memory, verb: str) -> None:
    made = committed_record(mem.remember("The ferry leaves at six", tier="archival"))
    committed_record(mem.revise(made.id, "The ferry leaves at seven", reason="winter"))
    stale: dict[str, Callable[[], object]] = {
        "revise": lambda: mem.revise(made.id, "at eight", reason="x", if_version=1),
        "append": lambda: mem.append(made.id, "at eight", reason="x", if_version=1),
        "forget": lambda: mem.forget(made.id, reason="x", if_version=1),
        "move": lambda: mem.move(made.id, tier="working", reason="x", if_version=1),
        "restore": lambda: mem.restore(made.id, reason="x", if_version=1),
    }
    with pytest.raises(Conflict, match="version 2"):
        stale[verb]()
    assert mem.get(made.id).version == 2
