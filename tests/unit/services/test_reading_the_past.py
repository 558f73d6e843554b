"""A state of the past is read whole, so it is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keepward import Memory
from support.clock import SteppingClock


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    given: dict[str, Any] = {"embedder": None, "clock": SteppingClock(), "config_dir": tmp_path / "config"}
    with Memory.open(tmp_path / "store.db", **given) as opened:
        opened.remember("Ana drinks tea", tier="archival")
        opened.remember("Ben drinks coffee", tier="working")
        yield opened


@pytest.fixture
def asked(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is asked of the store."""
    counts: Counter[str] = Counter()
    store = memory._engine.store

    def counting(name: str) -> Any:
        original = getattr(store, name)

        def ask(*given: Any, **named: Any) -> Any:
            counts[name] += 1
            return original(*given, **named)

        return ask

    for name in ("find", "commit"):
        monkeypatch.setattr(store, name, counting(name))
    return counts


def test_a_context_of_the_past_folds_the_journal_once(memory: Memory, asked: Counter[str]) -> None:
    memory.context("who drinks what", as_of=1)
    memory.context("who drinks what", as_of=1)
    before = asked["find"]
    memory.context("who drinks what", as_of=1)
    assert asked["find"] - before == 1


def test_a_context_of_the_past_reads_its_commit_once(memory: Memory, asked: Counter[str]) -> None:
    memory.context("who drinks what", as_of=1)
    assert asked["commit"] == 1


def test_a_context_of_the_past_holds_nothing_that_came_later(memory: Memory) -> None:
    memory.remember("Chidi drinks water", tier="archival")
    held = [memory.context("who drinks what", as_of=seq).text for seq in (1, 2, 3)]
    assert [[name in text for name in ("tea", "coffee", "water")] for text in held] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_recall_of_the_past_names_the_commit_it_read(memory: Memory) -> None:
    assert memory.recall("tea", as_of=1).head.startswith("1:")


def test_a_recall_of_the_empty_store_names_it(memory: Memory) -> None:
    assert memory.recall("tea", as_of=0).head == "0:" + "0" * 16
