"""A term that slides begins anew with each touch, and a touch is bookkeeping: no commit, nothing that replay misses."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from outcomes import codes, held, kept

from keepward import Actor, InvalidInput, Memory, Policy, Tampered
from keepward.interchange import plan_restore_export, restore_export, write_vault

HOUR = timedelta(hours=1)
TEXT = "The ferry leaves at six"


def note(mem: Memory, text: str = TEXT, **fields: Any) -> str:
    return kept(mem.remember(text, **{"tier": "archival", "ttl": "1h", "sliding": True, **fields})).id


def used(mem: Memory, clock: Any, memory_id: str, times: int) -> None:
    """Touch it every half hour, so many times."""
    for _ in range(times):
        clock.move(minutes=30)
        assert mem.touch([memory_id]) == 1


def test_a_hundred_touches_make_no_commit_and_the_memory_holds(mem: Memory, clock: Any) -> None:
    memory_id, head = note(mem), mem.head
    used(mem, clock, memory_id, 100)
    assert (mem.head, mem.get(memory_id).version, mem.get(memory_id).expires_at) == (head, 1, clock.now() + HOUR)
    assert [hit.memory.text for hit in mem.recall("ferry", floor=0)] == [TEXT]
    assert TEXT in mem.context("When does the ferry leave?").text


def test_without_a_touch_it_ends_and_is_expired_by_its_job(owner: Memory, clock: Any) -> None:
    memory_id = note(owner)
    used(owner, clock, memory_id, 3)
    assert owner.run_job("expire", force=True).counts["expired"] == 0
    clock.move(minutes=61)
    assert (len(owner.find()), owner.touch([memory_id])) == (0, 0)
    assert owner.run_job("expire", force=True).counts["expired"] == 1


def test_what_ends_at_a_fixed_instant_is_not_touched(mem: Memory, clock: Any) -> None:
    memory_id = note(mem, sliding=False)
    clock.move(minutes=30)
    assert (mem.touch([memory_id]), mem.get(memory_id).expires_at) == (0, clock.now() + HOUR / 2)


def test_a_touch_a_moment_after_the_last_is_not_written(mem: Memory, clock: Any) -> None:
    memory_id = note(mem)
    used(mem, clock, memory_id, 1)
    clock.move(seconds=1)
    assert mem.touch([memory_id]) == 0


def test_a_term_slides_only_where_there_is_one(mem: Memory) -> None:
    assert "sliding_without_ttl" in codes(mem.remember(TEXT, tier="archival", sliding=True))


def test_what_is_made_of_a_memory_with_an_end_does_not_slide_beyond_it(mem: Memory) -> None:
    memory_id = note(mem)
    child = note(mem, "Plan the day around the ferry", derived_from=[memory_id])
    assert (mem.get(child).sliding_ms, mem.get(child).expires_at) == (None, mem.get(memory_id).expires_at)


def test_the_past_is_read_as_it_was(owner: Memory, clock: Any) -> None:
    memory_id, start = note(owner, key="ferry"), clock.now()
    used(owner, clock, memory_id, 3)
    clock.move(hours=5)
    lapsed = clock.now()
    kept(owner.remember(f"{TEXT}, and at nine", key="ferry", ttl="1h", sliding=True))
    used(owner, clock, memory_id, 9)
    held_at = {at: len(owner.find(as_of=at)) for at in (start + 1.5 * HOUR, start + 2.4 * HOUR, start + 2.6 * HOUR)}
    assert [*held_at.values(), len(owner.find(as_of=lapsed - HOUR)), len(owner.find())] == [1, 1, 0, 0, 1]


def test_a_context_that_a_touch_kept_alive_is_replayed_to_the_letter(owner: Memory, clock: Any) -> None:
    memory_id = note(owner)
    used(owner, clock, memory_id, 5)
    compiled = owner.context("When does the ferry leave?")
    used(owner, clock, memory_id, 5)
    clock.move(days=3)
    replayed = owner.replay(compiled.receipt.id)
    assert TEXT in compiled.text
    assert replayed.text == compiled.text


def test_a_change_keeps_the_end_and_its_rollback_does_not_move_it(mem: Memory, clock: Any) -> None:
    memory_id = note(mem)
    used(mem, clock, memory_id, 4)
    changed = mem.revise(memory_id, "The ferry leaves at seven", reason="season")
    assert kept(changed).expires_at == clock.now() + HOUR
    used(mem, clock, memory_id, 2)
    assert mem.rollback(changed.commit.id).applied  # type: ignore[union-attr]
    assert (mem.get(memory_id).text, mem.get(memory_id).expires_at) == (TEXT, clock.now() + HOUR)


def test_a_new_time_to_live_is_the_term_from_then_on(mem: Memory, clock: Any) -> None:
    memory_id = note(mem)
    used(mem, clock, memory_id, 2)
    mem.revise(memory_id, ttl="10m", reason="shorter")
    assert mem.get(memory_id).expires_at == clock.now() + timedelta(minutes=10)
    clock.move(minutes=9)
    assert (mem.touch([memory_id]), mem.get(memory_id).expires_at) == (1, clock.now() + timedelta(minutes=10))


def test_what_was_touched_while_a_change_waited_ends_no_earlier_by_its_approval(owner: Memory, clock: Any) -> None:
    memory_id = note(owner)
    agent = owner.acting_as(Actor.agent())
    waiting = held(agent.revise(memory_id, "The ferry leaves at eight", reason="heard"))
    used(owner, clock, memory_id, 4)
    owner.approve(waiting.id)
    assert (owner.get(memory_id).text[-5:], owner.get(memory_id).expires_at) == ("eight", clock.now() + HOUR)


@pytest.mark.parametrize("reader", ["recall", "find", "facets"])
def test_what_another_process_touched_is_known_to_every_read(
    opened: Callable[..., Memory], clock: Any, reader: str
) -> None:
    reads: dict[str, Callable[[Memory], int]] = {
        "recall": lambda mem: len(mem.recall("ferry", floor=0)),
        "find": lambda mem: len(mem.find(sort="changed")),
        "facets": lambda mem: mem.facets().total,
    }
    with opened("shared") as one, opened("shared") as other:
        memory_id = note(one)
        assert reads[reader](other) == 1
        used(one, clock, memory_id, 3)
        assert reads[reader](other) == 1
        clock.move(hours=2)
        assert reads[reader](other) == 0


# --- what is kept beside the journal is kept as safely


def test_making_records_anew_keeps_the_end(owner: Memory, clock: Any) -> None:
    memory_id = note(owner)
    used(owner, clock, memory_id, 3)
    owner.rebuild()
    assert (owner.get(memory_id).expires_at, owner.verify().faults) == (clock.now() + HOUR, ())


EDITS = {
    "the end of the row put back": "UPDATE records SET expires_at = expires_at - 1 WHERE id = ?",
    "the end of the row put off": "UPDATE records SET expires_at = expires_at * 2 WHERE id = ?",
    "what tells of it changed": "UPDATE documents SET until = until * 2 WHERE id = ? || '/term'",
    "what tells of it gone": "DELETE FROM documents WHERE id = ? || '/term'",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_verify_sees_that_an_end_was_moved_by_hand(owner: Memory, clock: Any, path: Path, edit: str) -> None:
    memory_id = note(owner)
    used(owner, clock, memory_id, 3)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        assert raw.execute(edit, (memory_id,)).rowcount == 1
    assert not owner.verify().ok
    if "records" in edit:
        assert owner.find().withheld == (memory_id,)


def test_a_memory_whose_end_was_moved_by_hand_is_not_touched(owner: Memory, clock: Any, path: Path) -> None:
    memory_id = note(owner)
    used(owner, clock, memory_id, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("UPDATE documents SET until = until * 2 WHERE id LIKE '%/term'")
    clock.move(minutes=30)
    with pytest.raises(Tampered):
        owner.touch([memory_id])


def test_with_an_erased_memory_goes_what_told_when_it_ends(owner: Memory, clock: Any, path: Path) -> None:
    memory_id = note(owner)
    used(owner, clock, memory_id, 1)
    owner.erase(owner.plan_erase(memory_id).digest, memory_id)
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT count(*) FROM documents WHERE kind = 'usage'").fetchone() == (0,)
    assert owner.verify().ok


def test_an_export_carries_the_end(owner: Memory, opened: Callable[..., Memory], clock: Any, tmp_path: Path) -> None:
    memory_id, file = note(owner), tmp_path / "vault.jsonl"
    used(owner, clock, memory_id, 3)
    write_vault(owner, file)
    with opened("twin", actor=Actor.operator("olga")) as twin:
        restore_export(twin, file, plan_restore_export(twin, file).digest)
        assert [each.expires_at for each in twin.find()] == [clock.now() + HOUR]
        assert (twin.head, twin.verify().faults) == (owner.head, ())
        write_vault(twin, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()


@pytest.mark.parametrize(("line", "allowed"), [('"touched":99999999999999999', True), ('"touched":"soon"', False)])
def test_an_end_in_an_export_is_no_later_than_a_touch_would_make_it(
    owner: Memory, opened: Callable[..., Memory], clock: Any, tmp_path: Path, line: str, *, allowed: bool
) -> None:
    memory_id, file = note(owner), tmp_path / "vault.jsonl"
    used(owner, clock, memory_id, 1)
    write_vault(owner, file)
    text = file.read_text()
    at = text.index('"touched":')
    file.write_text(text[:at] + line + text[at + len('"touched":') + 16 :])
    with opened("twin", actor=Actor.operator("olga")) as twin:
        if not allowed:
            with pytest.raises(InvalidInput, match="sliding"):
                plan_restore_export(twin, file)
            return
        restore_export(twin, file, plan_restore_export(twin, file).digest)
        assert [each.expires_at for each in twin.find()] == [clock.now() + HOUR]


def test_switched_off_by_policy_nothing_is_touched(owner: Memory, clock: Any, opened: Callable[..., Memory]) -> None:
    with opened("off") as mem:
        memory_id = note(mem)
    clock.move(minutes=30)
    with opened("off", policy=Policy(enabled=False)) as mem:
        assert mem.touch([memory_id]) == 0
