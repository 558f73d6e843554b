"""How often a call waits for a database: as the bytes that it sends say, so that no other load changes the number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.distance import Distance, calls_of, distant
from benchmarks.texts import notes

from keepward import Actor, Memory
from support.database import on_each_server

pytestmark = [pytest.mark.slow, on_each_server]

TEXTS = list(notes(500))


@pytest.fixture
def far(database: str) -> Iterator[Distance]:
    with distant(database) as far:
        yield far


@pytest.fixture
def owner(far: Distance, tmp_path: Path) -> Iterator[Memory]:
    given: dict[str, Any] = {"embedder": "hashed", "config_dir": tmp_path / "config", "maintenance": False}
    with Memory.open(far.address, actor=Actor.operator("ana"), **given) as owner:
        yield owner


#: Most round trips of a call, while nobody else writes.
CEILINGS = {
    "remember": 4,
    "recall": 6,
    "context": 9,
    "get": 1,
    "list_memories": 3,
    "forget": 5,
    "a batch of 50": 6,
    "an atomic batch of 50": 6,
}


def test_calls_wait_for_the_database_a_few_times(owner: Memory, far: Distance) -> None:
    calls = calls_of(owner)
    for call in calls.values():
        call()
    found, statements = {}, {}
    for name, call in calls.items():
        owner.recall("what did the harbour say about the ferry")
        far.clear()
        call()
        found[name], statements[name] = far.trips, far.statements
    over = {name: statements[name] for name, trips in found.items() if trips > CEILINGS[name]}
    assert over == {}, (found, over)


def test_a_read_beside_a_writer_waits_twice_more(owner: Memory, far: Distance) -> None:
    owner.remember_many([{"text": text, "tier": "archival"} for text in TEXTS[:50]])
    trips = []
    for number in range(3):
        owner.recall("which plan is there for the ferry")
        far.clear()
        owner.recall("which plan is there for the ferry")
        trips.append(far.trips)
        owner.remember(TEXTS[100 + number])
        far.clear()
        owner.recall("which plan is there for the ferry")
        trips.append(far.trips)
    assert max(trips[1::2]) <= max(trips[0::2]) + 2
