"""Drafts: changes are collected, then carried out together or not at all (promises C39-C47)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from outcomes import codes, held, kept, refused

from keepward import Conflict, Memory, StaleVersion


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
    return Ship(*(kept(mem.remember(f"The {part} is sound", tier="archival")).id for part in ("hull", "deck", "mast")))


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
    kept(draft.outcome)
    assert mem.get(new).text == "The keel is new"


@pytest.mark.promise("C43")
def test_the_end_carries_out_everything_in_one_commit(mem: Memory, ship: Ship) -> None:
    commits = len(mem.log())
    with mem.draft(reason="refit") as draft:
        new = draft.insert("The keel is new", tier="archival")
        draft.replace(ship.hull, "The hull is patched", tags=("wet",))
        draft.append(ship.deck, "and swept")
        draft.retire(ship.mast)
    kept(draft.outcome)
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
    waiting = held(draft.outcome)
    assert "needs_approval" in codes(draft.outcome)  # type: ignore[arg-type]
    assert mem.list_memories() == before
    kept(owner.approve(waiting.id))
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
            kept(mem.revise(ship.hull, "The hull leaks", reason="somebody was faster"))

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
    kept(draft.outcome)
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
    kept(draft.outcome)
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
