"""The large stores of the tests are intact, so that what a test finds wrong in one is not their fault."""

from __future__ import annotations

from keepward import Memory
from support.bulk_data import many_memories, many_subjects, many_waiting


def test_stores_that_are_written_at_once_are_intact(owner: Memory) -> None:
    many_memories(owner, 130)
    many_subjects(owner, 10)
    many_waiting(owner, 20)
    assert owner.verify().faults == ()
