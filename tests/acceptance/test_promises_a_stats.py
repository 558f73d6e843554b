"""What the numbers of a store say, and its file of lines (promises A12-A17, A77-A84, A90)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import brought_back, committed_record

from keepward import Memory, Policy
from keepward.interchange import load, write_vault


def lines(owner: Memory) -> list[dict[str, Any]]:
    """Return the lines of an export, without the head that the first of them names."""
    stream = io.StringIO()
    assert write_vault(owner, stream) == len(stream.getvalue().splitlines())
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    for line in found[:1]:
        line.pop("export")
    return found


@pytest.fixture
def filled(owner: Memory) -> Memory:
    """Five memories in two scopes and three tiers, one of them changed and one forgotten."""
    changed = committed_record(owner.remember("The ferry costs 4 euros", category="prices"))
    committed_record(owner.remember("Ana is in the office", tier="working", category="people"))
    committed_record(owner.remember("Projects: dashboard", key="current_projects", kind="state", tier="archival"))
    committed_record(owner.remember("The crane is red", tier="episodic", scope="orion"))
    gone = committed_record(owner.remember("The buoy is green", category="prices"))
    committed_record(owner.revise(changed.id, "The ferry costs 5 euros", reason="dearer"))
    committed_record(owner.forget(gone.id, reason="sunk"))
    return owner


@pytest.mark.promise("A77", "A80", "A81", "A84")
def test_status_counts_live_and_forgotten_memories_events_and_keys(filled: Memory) -> None:
    status = filled.status()
    assert (status["live"], status["retired"], status["events"], status["topics"]) == (4, 1, 7, 1)
    assert status["events"] == len(lines(filled)) == sum(len(events) for _, events in filled.journal())


@pytest.mark.promise("A82")
def test_bloat_is_events_for_each_live_memory(filled: Memory) -> None:
    assert filled.status()["bloat"] == 1.75


@pytest.mark.promise("A83")
def test_counts_by_scope_tier_and_category_sum_to_active(filled: Memory) -> None:
    status = filled.status()
    assert status["by_scope"] == {"/": 3, "/agents/orion": 1}
    assert status["by_tier"] == {"archival": 2, "episodic": 1, "working": 1}
    assert status["by_category"] == {"people": 1, "prices": 1}
    assert sum(status["by_kind"].values()) == status["live"] == 4


@pytest.mark.promise("A77", "A83")
def test_what_has_run_out_is_no_longer_counted_as_live(filled: Memory, clock: Any) -> None:
    clock.move(hours=24)
    status = filled.status()
    assert (status["live"], status["by_status"]["expired"]) == (3, 1)
    assert "working" not in status["by_tier"]


@pytest.mark.promise("A78", "A79")
def test_status_shows_limit_and_use_of_each_tier(opened: Callable[..., Memory]) -> None:
    with opened("small", policy=Policy(capacity={"archival": 8, "working": 100})) as mem:
        for name in ("red", "blue", "green"):
            committed_record(mem.remember(f"the {name} crane", tier="archival"))
        assert mem.status()["capacity"] == {
            "archival": {"live": 3, "max": 8, "utilisation": 0.375},
            "working": {"live": 0, "max": 100, "utilisation": 0.0},
        }


@pytest.mark.promise("A13", "A14", "A15", "A16")
def test_each_write_adds_one_line_and_changes_no_other(owner: Memory) -> None:
    made = committed_record(owner.remember("The ferry costs 4 euros"))
    steps: list[Callable[[], object]] = [
        lambda: owner.remember("The crane is red"),
        lambda: owner.revise(made.id, "The ferry costs 5 euros", reason="dearer"),
        lambda: owner.forget(made.id, reason="sunk"),
    ]
    before = lines(owner)
    for step in steps:
        step()
        after = lines(owner)
        assert (after[:-1], len(after)) == (before, len(before) + 1)
        before = after
    assert [(line["op"], line["version"]) for line in before] == [
        ("insert", 1),
        ("insert", 1),
        ("replace", 2),
        ("retire", 3),
    ]


@pytest.mark.promise("A12")
def test_export_file_restores_memories_with_their_history(
    filled: Memory, opened: Callable[..., Memory], tmp_path: Path
) -> None:
    write_vault(filled, tmp_path / "vault.jsonl")
    with opened("copy", actor=filled.actor) as copy:
        brought_back(copy, tmp_path / "vault.jsonl")
        assert copy.list_memories(include_ended=True) == filled.list_memories(include_ended=True)
        assert copy.at(scope="orion").list_memories() == filled.at(scope="orion").list_memories()
        assert [each.commit.hash for each in copy.log()] == [each.commit.hash for each in filled.log()]
        assert copy.verify().ok


@pytest.mark.promise("A17", "A82")
def test_only_a_copy_of_active_memories_is_shorter(filled: Memory, tmp_path: Path) -> None:
    before = lines(filled)
    write_vault(filled, tmp_path / "vault.jsonl")
    compact = filled.at(tenant="compact")
    load(compact, tmp_path / "vault.jsonl")
    # Core memory and keys of a file wait for a person.
    for item in compact.pending():
        compact.approve(item.id, digest=item.digest)
    status = compact.status()
    assert (status["live"], status["events"], status["bloat"]) == (4, 4, 1.0)

    def content(mem: Memory) -> set[object]:
        return {
            (each.text, each.tier, each.key, each.scope, each.category)
            for each in [*mem.list_memories(), *mem.at(scope="orion").list_memories()]
        }

    assert content(compact) == content(filled)
    assert lines(filled) == before
