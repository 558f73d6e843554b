"""What a write costs does not grow with what is remembered: counted in the database's steps, not in time."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import count

import pytest

from keepward import Memory
from keepward.storage import sqlite as opening

EVERY = 50


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """One number: the steps that SQLite took, in fifties, on connections opened from here on."""
    taken = [0]
    connect = opening.connect

    def counted(*given, **named):
        made = connect(*given, **named)

        def step() -> int:
            taken[0] += 1
            return 0

        made.set_progress_handler(step, EVERY)
        return made

    monkeypatch.setattr(opening, "connect", counted)
    yield taken


NUMBERS = count()


def note() -> str:
    """A note of its own words, some shared with thousands of others."""
    number = next(NUMBERS)
    word = "".join("bcdfghklmn"[int(digit)] + "aeiou"[int(digit) % 5] for digit in str(7 * number + 1))
    return f"Ana keeps {word} in the cellar of house {number} for the {word}ist"


def median(mem: Memory, steps: list[int]) -> float:
    """Steps of one write, the middle of eleven."""
    costs = []
    for _ in range(11):
        before = steps[0]
        mem.remember(note(), tier="archival")
        costs.append(steps[0] - before)
    return statistics.median(costs)


@pytest.mark.slow
@pytest.mark.promise("F18")
def test_write_cost_does_not_grow_with_the_store(steps: list[int], opened) -> None:
    with opened("flat", embedder=None) as mem:
        mem.remember_many([{"text": note(), "tier": "archival"} for _ in range(200)])
        few = median(mem, steps)
        mem.remember_many([{"text": note(), "tier": "archival"} for _ in range(20_000)], batch=2_000)
        many = median(mem, steps)
    # The trees of the tables are a level deeper, and that is all.
    assert 0 < many < 1.5 * few
