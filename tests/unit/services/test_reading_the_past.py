"""A read of a past commit shows the state of that commit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
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


def test_the_text_of_an_instant_is_read_by_its_clock(memory: Memory) -> None:
    written = memory.remember("Dan drinks milk", tier="archival", ttl="1h").records[0].created_at
    for then, found in ((written + timedelta(minutes=30), True), (written + timedelta(minutes=90), False)):
        read = [memory.list_memories(as_of=as_of) for as_of in (then, then.isoformat())]
        assert [any(each.text == "Dan drinks milk" for each in memories) for memories in read] == [found, found]
