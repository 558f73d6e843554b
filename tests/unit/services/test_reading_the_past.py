"""A read of a past commit shows the state of that commit."""

from __future__ import annotations

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
