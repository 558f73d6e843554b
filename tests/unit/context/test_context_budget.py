"""Budgets: what goes when room is short, and that the numbers add up."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from context_made import NOW, POLICY, alike, block, event, found, ids, inputs, record, rule, scored, why
from msgspec.structs import replace

from keepward.context import compile_context
from keepward.core.memory import Stability
from keepward.core.principals import Trust

TEN = "one two three four five six seven eight nine"


@pytest.mark.parametrize("waited", [timedelta(0), timedelta(minutes=7), timedelta(hours=20)])
def test_more_relevant_memory_of_a_day_stays_regardless_of_time(waited: timedelta) -> None:
    first = record("first", f"x {TEN}", reinforced_at=NOW - timedelta(hours=3))
    recalled = alike(first, record("second", f"y {TEN}", reinforced_at=NOW))
    full = compile_context(inputs(recalled=recalled)).tokens
    short = inputs(recalled=recalled, budget_tokens=full - 1, now=NOW + waited)
    assert set(why(compile_context(short))) == {"second"}


def test_far_less_relevant_memories_go_before_less_certain_ones() -> None:
    recalled = found(record("sought", f"x {TEN}", confidence=0.3), event("other", f"y {TEN}", confidence=0.9))
    full = compile_context(inputs(recalled=recalled)).tokens
    assert set(why(compile_context(inputs(recalled=recalled, budget_tokens=full - 1)))) == {"other"}


def test_long_memory_does_not_block_later_short_ones() -> None:
    recalled = found(record("long", "word " * 500), record("short", "tabs"))
    assert ids(compile_context(inputs(recalled=recalled, budget_tokens=100)), "recalled") == ["short"]


def test_pinned_memories_beyond_their_budget_go_by_confidence() -> None:
    tight = replace(POLICY, pinned_budget=30)
    pinned = [rule(f"c{n}", f"{n} {TEN}", confidence=n / 10) for n in (9, 8, 7, 6)]
    assert ids(compile_context(inputs(policy=tight, pinned=pinned)), "pinned") == ["c8", "c9"]


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_equal_ones_of_one_instant_the_better_ranked_stays(first: str) -> None:
    names = sorted("ab", reverse=first == "b")
    equal = [scored(record(name, f"{name} {'word ' * 20}"), 0.5) for name in names]
    assert ids(compile_context(inputs(recalled=equal, budget_tokens=45)), "recalled") == [first]


def test_the_given_entries_stay_as_they_were() -> None:
    same = "The harbour closes at six."
    given = inputs(recalled=found(record("web", same, trust=Trust.WEB), record("own", same), record("far", TEN)))
    before = [dataclasses.asdict(each) for each in given.recalled]
    assert compile_context(given).facts == compile_context(given).facts
    assert [dataclasses.asdict(each) for each in given.recalled] == before


@pytest.mark.parametrize("more", range(1, 120, 20))
def test_recalled_line_never_pushes_out_a_pinned_one(more: int) -> None:
    # The heading of the recalled line costs more than the line itself.
    fixed = {
        "core": [block("mission", f"Ship it. {TEN} {TEN} {TEN}")],
        "pinned": [record("pinned", "Sign in.", stability=Stability.PERMANENT)],
        "count": len,
    }
    bare = compile_context(inputs(**fixed))
    recalled = found(record("recalled", "Tea."))
    full = compile_context(inputs(**fixed, recalled=recalled, budget_tokens=bare.tokens + more))
    assert full.prefix_digest == bare.prefix_digest
