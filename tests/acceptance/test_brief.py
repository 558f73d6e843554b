"""Results printed: a few lines that a person reads, whatever a verb returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keepward import Actor, Memory


@pytest.fixture(scope="module")
def filled() -> Any:
    with Memory.open(":memory:", actor=Actor.operator("ana"), embedder=None) as mem:
        mem.remember("Ana likes tea " * 30, tags=["drinks"], key="drink", confidence=0.9)
        mem.revise("drink", "Ana likes coffee", reason="she said so")
        for n in range(40):
            mem.remember(f"Ferry number {n} leaves the harbour at {n % 24}:15", tier="archival")
        mem.as_actor(Actor.agent("claude")).remember("Ship on Friday", tier="core", key="mission")
        yield mem


def first(mem: Memory) -> Any:
    return mem.get("drink")


RESULTS: dict[str, Callable[[Memory], Any]] = {
    "record": first,
    "outcome": lambda mem: mem.remember("The crane is red"),
    "held": lambda mem: mem.pending()[0],
    "blame": lambda mem: mem.blame("drink"),
    "impact": lambda mem: mem.impact(source="operator"),
    "contain": lambda mem: mem.plan_contain(source="operator"),
    "show": lambda mem: mem.show("1"),
    "difference": lambda mem: mem.diff(0, 2)[0],
    "version": lambda mem: mem.history("drink")[0],
    "rollback": lambda mem: mem.rollback("2", dry_run=True),
    "recall": lambda mem: mem.recall("ferry harbour", limit=40),
    "list_memories": lambda mem: mem.list_memories(limit=None),
    "receipts": lambda mem: mem.receipts(),
    "receipt": lambda mem: mem.remember("The crane is high").receipt,
    "context difference": lambda mem: mem.context_diff(mem.context("ferry").receipt.id, mem.context("tea").receipt.id),
    "erase plan": lambda mem: mem.plan_erase("drink"),
    "verification": lambda mem: mem.verify(),
    "check": lambda mem: mem.doctor()[0],
    "pending": lambda mem: mem.pending(),
    "review context": lambda mem: mem.proposal(mem.pending()[0].id).review_context,
    "bisection": lambda mem: mem.bisect("Which ferry leaves at 3:15?", contains="3:15"),
    "job": lambda mem: mem.jobs()[0],
    "run": lambda mem: mem.run_job("expire", force=True),
    "training": lambda mem: mem.train_reranker(),
    "contradictions": lambda mem: mem.contradictions(),
    "identity": lambda mem: mem.identity(),
    "added": lambda mem: mem.add([{"role": "user", "content": "Good morning"}]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_prints_in_a_few_lines(filled: Memory, name: str) -> None:
    text = str(RESULTS[name](filled))
    lines = text.splitlines()
    assert (bool(text), len(lines) <= 20, len(text) <= 3_500, "\x1b" in text) == (True, True, True, False)


def test_printed_lists_show_texts_and_name_omissions(filled: Memory) -> None:
    text = str(filled.list_memories(limit=None))
    assert ("leaves the harbour" in text, "more; to_dict() has all of them" in text) == (True, True)


def test_a_printed_blame_names_fields_values_and_commits(filled: Memory) -> None:
    text = str(filled.blame("drink"))
    assert ("field text, value Ana likes coffee" in text, "commit 2" in text) == (True, True)


def test_a_printed_recall_labels_weak_hits(filled: Memory) -> None:
    found = filled.recall("ferry harbour", limit=5)
    assert str(found).count(", weak)") == sum(hit.weak for hit in found.hits)
