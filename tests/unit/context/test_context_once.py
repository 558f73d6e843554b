"""What a context does once for each memory, however often the memory is looked at on its way."""

from __future__ import annotations

from collections import Counter

import pytest
from context_made import POLICY, alike, block, event, inputs, record
from msgspec.structs import replace

from keepward.context import compile_context, lines


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often the paragraph of each memory is made."""
    made: Counter[str] = Counter()
    original = lines._own

    def spy(line: lines.Line) -> str:
        made[line.record.id if line.record else line.section] += 1
        return original(line)

    monkeypatch.setattr(lines, "_own", spy)
    return made


@pytest.mark.parametrize("form", ["markdown", "messages"])
def test_a_memory_is_written_once_to_be_priced_placed_and_told_of(form: str, written: Counter[str]) -> None:
    given = alike(record("a", "tea"), event("b", "coffee", session="s", speaker="Ana"))
    compile_context(inputs(core=[block("human", "Ana")], recalled=given, format=form))
    assert written == {"block-human": 1, "a": 1, "b": 1}


def test_a_memory_that_a_limit_keeps_out_is_not_written(written: Counter[str]) -> None:
    many = [record(f"m{n}", f"tea number {n}") for n in range(5)]
    compile_context(inputs(recalled=alike(*many), budget_tokens=None, policy=replace(POLICY, max_items=3)))
    assert len(written) == 3
