"""Counts of ``status`` are computed once for reads at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from keepward import Actor, Memory
from keepward.storage import reads


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Memory]:
    actor = Actor.operator("ana")
    with Memory.open(tmp_path / "m.db", actor=actor, embedder="none", config_dir=tmp_path / "home") as memory:
        yield memory


def test_reads_at_the_same_time_count_a_store_once(owner: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.remember("The ferry leaves at noon")
    counted = reads._counted
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def slow(*args: object) -> object:
        calls.append(args)
        begun.set()
        go_on.wait(20)
        return counted(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(reads, "_counted", slow)
    first = threading.Thread(target=owner.status)
    others = [threading.Thread(target=owner.status) for _ in range(3)]
    first.start()
    assert begun.wait(20)
    for thread in others:
        thread.start()
    # A read that does not wait for the first one counts by itself, and sets this again.
    begun.clear()
    counted_twice = begun.wait(0.3)
    go_on.set()
    for thread in (first, *others):
        thread.join(20)
    assert (counted_twice, len(calls)) == (False, 1)
