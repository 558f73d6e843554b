"""Contexts as people meet them: budgets, weak hits, receipts at their versions, and what differs between two."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from outcomes import kept

from keepward import Actor, InvalidInput, Memory

NOTHING = "Who is the president of France?"


@pytest.fixture
def harbour(opened: Callable[..., Memory]) -> Any:
    """A store of 120 notes about one thing."""
    with opened("harbour", embedder="hashed", actor=Actor.operator()) as mem:
        texts = [f"Harbour log {n}: pier {n} takes ships of {n * 7} metres and has {n % 9} cranes" for n in range(120)]
        mem.remember_many([{"text": text, "tier": "archival"} for text in texts])
        yield mem


def recalled(context: Any) -> int:
    return sum(len(section.items) for section in context.sections if section.name == "recalled")


def test_without_a_budget_thirty_lines_and_2000_tokens_are_recalled(harbour: Memory) -> None:
    made = harbour.context("harbour log of the piers and cranes", include_weak=True)
    assert (recalled(made), made.tokens <= 2_000) == (30, True)


def test_a_named_budget_is_the_only_cap(harbour: Memory) -> None:
    made = harbour.context("harbour log of the piers and cranes", include_weak=True, budget_tokens=1_500)
    assert recalled(made) > 30
    assert made.tokens <= 1_500


def test_a_budget_above_the_maximum_is_refused(harbour: Memory) -> None:
    with pytest.raises(InvalidInput, match="128,000"):
        harbour.context("harbour", budget_tokens=128_001)


def test_a_question_about_nothing_remembered_brings_permanent_rules_alone(harbour: Memory) -> None:
    lasting = kept(harbour.remember("Never moor at pier 7", kind="rule", stability="permanent"))
    kept(harbour.remember("Ask before you dredge", kind="rule"))
    shown = [item.id for section in harbour.context(NOTHING).sections for item in section.items]
    assert shown == [lasting.id]


def test_receipt_is_small_and_counts_unnamed_candidates(harbour: Memory) -> None:
    made = harbour.context(NOTHING)
    stored = harbour.receipt(made.receipt.id)
    del stored["explanation"]
    named = len(stored["excluded"]) + sum(len(section["items"]) for section in stored["sections"])
    size = len(zlib.compress(json.dumps(stored).encode()))
    assert size <= 2_000 + 150 * named
    assert sum(stored["unlisted"].values()) > 0


def test_explanation_shows_the_version_of_then_and_of_now(harbour: Memory) -> None:
    record = kept(harbour.remember("Ana moors at pier four", tier="archival"))
    made = harbour.context("Where does Ana moor?")
    kept(harbour.revise(record.id, "Ana moors at pier nine", reason="she moved"))
    explanation = harbour.receipt(made.receipt.id)["explanation"]
    found = next(each for each in explanation["candidates"] if each["id"] == record.id)
    first = harbour.history(record.id)[0].commit.id
    assert (found["text"], found["now"], found["version"], found["commit"]) == (
        "Ana moors at pier four",
        "Ana moors at pier nine",
        1,
        first,
    )
