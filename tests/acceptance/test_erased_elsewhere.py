"""Who may not see the scope in which something was erased learns nothing of it by guessing."""

from __future__ import annotations

from pathlib import Path

import pytest
from outcomes import codes, held, kept, refused

from keepward import Memory
from keepward.errors import Conflict
from keepward.interchange import load

PIN = "The blue boat has berth 4711"
PNG = b"\x89PNG\r\n\x1a\n" + b"quokka" * 20


@pytest.fixture
def stone(owner: Memory) -> str:
    """The id of a memory that was erased in the scope of another agent."""
    secret = owner.at(scope="/agents/ana")
    ref = secret.put_blob(PNG).ref
    made = kept(secret.remember(PIN, tier="archival", aliases=["chat:9"], blob=ref, content_type="image"))
    plan = owner.plan_erase(made.id)
    owner.erase(plan.digest, [made.id])
    return made.id


@pytest.fixture
def stranger(mem: Memory) -> Memory:
    return mem.at(scope="/agents/bo")


def guesses(folder: Path) -> Path:
    file = folder / "guesses.md"
    file.write_text("# Notes\n\n" + "".join(f"- The blue boat has berth {n}\n" for n in range(4700, 4720)))
    return file


def test_a_stranger_gets_the_answer_of_an_ordinary_write(stranger: Memory, stone: str) -> None:
    assert kept(stranger.remember(PIN, tier="archival")).text == PIN
    assert kept(stranger.remember("Tea is on the left", tier="archival", aliases=["chat:9"])).aliases == ("chat:9",)


def test_batches_drafts_and_edits_answer_a_stranger_alike(stranger: Memory, stone: str) -> None:
    rows = [f"The blue boat has berth {n}" for n in (4710, 4711, 4712)]
    assert [each.outcome for each in stranger.remember_many(rows)] == ["committed"] * 3
    other = kept(stranger.remember("Tea is on the left", tier="archival"))
    with stranger.draft(reason="note") as draft:
        draft.replace(other.id, f"{PIN}.")
    assert draft.outcome is not None
    assert stone not in str(draft.outcome.to_dict())


def test_a_stranger_puts_erased_bytes_as_any_others(stranger: Memory, stone: str) -> None:
    assert stranger.put_blob(PNG).bytes == len(PNG)


def test_guesses_in_one_import_tell_nothing(stranger: Memory, stone: str, tmp_path: Path) -> None:
    told = []
    tried = load(stranger, guesses(tmp_path), dry_run=True, on_result=told.append)
    assert (tried.refused, [each for each in told if "erased" in repr(each)]) == (0, [])
    assert load(stranger, guesses(tmp_path)).refused == 0


def test_dry_run_reports_nothing_to_an_agent_of_that_scope(mem: Memory, stone: str, tmp_path: Path) -> None:
    near = mem.at(scope="/agents/ana")
    assert load(near, guesses(tmp_path), dry_run=True).refused == 0
    assert load(near, guesses(tmp_path)).refused == 1


def test_who_sees_the_scope_is_refused_and_reported_the_tombstone(owner: Memory, mem: Memory, stone: str) -> None:
    for handle in (owner, mem.at(scope="/agents/ana"), mem.at(scope="/agents/ana/tasks/1")):
        outcome = handle.remember(PIN, tier="archival", scope=handle.scope)
        assert refused(outcome) == {"erased"}
        assert stone in outcome.reasons[0].detail


def test_a_dry_run_reports_the_owner(owner: Memory, stone: str, tmp_path: Path) -> None:
    assert load(owner, guesses(tmp_path), dry_run=True).refused == 1


def test_a_reviewer_is_reported_and_the_proposer_is_not(owner: Memory, stranger: Memory, stone: str) -> None:
    item = held(stranger.remember(PIN, tier="core", key="mission"))
    with pytest.raises(Conflict, match=stone):
        owner.approve(item.id)
    assert codes(owner.amend(item.id, f"{PIN}.")) == {"erased"}
    assert (stranger.notices(), [each.id for each in owner.pending()]) == ([], [item.id])
    assert stone not in str(stranger.proposal(item.id).to_dict())
