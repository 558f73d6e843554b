"""Laws of the compiler, over memories of every sort, budgets of every size and counters of every temper."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from keepward.context import (
    CompileInput,
    CompileResult,
    Entry,
    OutputFilterResult,
    compile_context,
    memory_block,
    replay,
    snapshot,
)
from keepward.core import escaping
from keepward.core.commit import Reason
from keepward.core.escaping import escape_markup, indented
from keepward.core.memory import CORE_BLOCKS, Kind, Record, Sensitivity, Stability, Status, Tier, is_textless
from keepward.core.policy import Policy
from keepward.core.principals import Trust
from keepward.errors import ContextTooSmall

pytestmark = pytest.mark.slow

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
DROP = Reason(gate="compile", code="secret", detail="it holds a secret")
ROOMY = Policy(block_budget=dict.fromkeys(CORE_BLOCKS, 100_000))
TEXT = st.text(st.sampled_from('ab \n#`-[]rule:<|>/\\System\u2028é日"&'), min_size=1, max_size=40)
INSTANT = st.integers(-400, 40).map(lambda hours: NOW + timedelta(hours=hours))

#: Additive, rounded up per call, growing faster than the text, and falling at some joins.
COUNTERS: dict[str, Callable[[str], int]] = {
    "characters": len,
    "quarters": lambda text: -(-len(text) // 4),
    "steep": lambda text: math.floor(len(text) ** 1.15),
    "uneven": lambda text: len(text) // 3 + (len(text) % 7 == 3),
}


@st.composite
def records(draw: st.DrawFn, *tiers: Tier, keyed: bool = False) -> Record:
    tier = draw(st.sampled_from(tiers))
    kinds = [Kind.EVENT, Kind.SUMMARY] if tier is Tier.EPISODIC else list(Kind)
    created = draw(INSTANT)
    keys = st.sampled_from(CORE_BLOCKS) if tier is Tier.CORE else st.sampled_from("pqr")
    return Record(
        id=draw(st.sampled_from([f"m{n:02}" for n in range(30)])),
        version=draw(st.integers(1, 2)),
        tier=tier,
        kind=draw(st.sampled_from(kinds)),
        text=draw(TEXT),
        scope=draw(st.sampled_from(["/", "/agents/orion", "/agents/orion/tasks/4"])),
        key=draw(keys) if keyed else draw(st.none() | keys),
        source="user",
        trust=draw(st.sampled_from(Trust)),
        confidence=draw(st.integers(0, 10)) / 10,
        importance=0.5,
        sensitivity=draw(st.sampled_from([*[Sensitivity.NORMAL] * 15, Sensitivity.SENSITIVE])),
        stability=draw(st.sampled_from(Stability)),
        status=draw(st.sampled_from([*[Status.ACTIVE] * 40, *Status])),
        author="user:ana",
        session=draw(st.sampled_from([None, "s1", "s2"])),
        speaker=draw(st.sampled_from([None, "Ana", "Ben\n# x"])),
        created_at=created,
        occurred_at=draw(st.none() | INSTANT),
        expires_at=draw(st.sampled_from([*[None] * 10, NOW, NOW + timedelta(hours=1)])),
        reinforced_at=created,
    )


def unescaped(text: str) -> str:
    """Return the text before ``escape_markup`` and ``indented``."""
    plain = re.sub(f"([{escaping.LINE_BREAK_CHARS}])    ", r"\1", text)
    return escaping._MARKUP.sub(
        lambda found: (found["tag"] or found["box"]) + (found["a"] or found["b"] or "")[1:], plain
    )


def screen(record: Record) -> OutputFilterResult:
    """Drop some and mask some, by what they say."""
    if record.text.startswith("<"):
        return OutputFilterResult(drop=DROP)
    return OutputFilterResult(text_masks=((1, 3, "NAME"),) if "e" in record.text else ())


@st.composite
def contexts(draw: st.DrawFn) -> CompileInput:
    pool = {
        (each.id, each.version): each
        for each in draw(
            st.lists(records(*Tier), min_size=draw(st.integers(0, 12)), max_size=16, unique_by=lambda each: each.id)
        )
    }
    everything = list(pool.values())
    plain = [each for each in everything if each.tier is not Tier.CORE]
    counter = draw(st.sampled_from(sorted(COUNTERS)))
    return CompileInput(
        objective="what now",
        purpose=draw(st.sampled_from(["answer", "answer", "answer", "act", "core"])),
        now=NOW,
        policy=replace(
            ROOMY,
            max_items=draw(st.none() | st.integers(0, 8)),
            pinned_budget=draw(st.integers(0, 300)),
            working_budget=draw(st.integers(0, 300)),
            retrieved_budget=draw(st.integers(0, 600)),
        ),
        budget_tokens=draw(st.integers(0, 400) | st.integers(400, 2_000)),
        identity=draw(st.none() | TEXT.map(lambda text: ("v1", text))),
        user_file=draw(st.none() | TEXT.map(lambda text: ("u1", text))),
        core=[each for each in everything if each.tier is Tier.CORE],
        pinned=[each for each in plain if each.stability is Stability.PERMANENT],
        state=[each for each in plain if each.kind is Kind.STATE and each.stability is not Stability.PERMANENT],
        working=[each for each in plain if each.tier is Tier.WORKING and each.kind is not Kind.STATE],
        recalled=[
            Entry(record=each, score=(score := draw(st.floats(0, 1))), strength=score)
            for each in plain
            if draw(st.integers(0, 6))
        ],
        excluded=draw(st.lists(st.sampled_from([(*key, DROP) for key in pool]), max_size=2)) if pool else [],
        counter_name=counter,
        count=COUNTERS[counter],
        screen=lambda found: [screen(each) for each in found],
        include_sensitive=draw(st.booleans()),
        format=draw(st.sampled_from(["markdown", "messages"])),
    )


def attempt(given_inputs: CompileInput) -> CompileResult | None:
    try:
        return compile_context(given_inputs)
    except ContextTooSmall:
        return None


def placed(compiled: CompileResult) -> list[tuple[str, int]]:
    return [(item.id, item.version) for section in compiled.sections for item in section.items]


def everything(made: CompileInput) -> dict[tuple[str, int], Record]:
    plain = [*made.core, *made.pinned, *made.state, *made.working, *(each.record for each in made.recalled)]
    return {(each.id, each.version): each for each in plain}


def replayed(compiled: CompileResult, made: CompileInput, *, without: tuple[str, int] | None = None) -> Any:
    kept = {key: each for key, each in everything(made).items() if key != without}
    documents = {"identity": made.identity, "user_file": made.user_file}
    return replay(
        json.loads(json.dumps(compiled.facts, allow_nan=False)),
        lambda name, version: kept.get((name, version)),
        lambda kind, version: (documents[kind] or ("", None))[1],
    )


@given(contexts())
@settings(max_examples=10, deadline=None)
def test_the_same_inputs_give_the_same_context(made: CompileInput) -> None:
    assert attempt(made) == attempt(made)


@given(contexts(), st.randoms(use_true_random=False))
@settings(max_examples=10, deadline=None)
def test_the_order_of_what_is_given_does_not_matter(made: CompileInput, chance: Any) -> None:
    names = ("core", "pinned", "state", "working", "excluded")
    shuffled = {name: chance.sample(list(getattr(made, name)), len(getattr(made, name))) for name in names}
    assert attempt(dataclasses.replace(made, **shuffled)) == attempt(made)


@given(contexts())
@settings(max_examples=12, deadline=None)
def test_the_text_never_counts_more_than_the_budget(made: CompileInput) -> None:
    compiled = attempt(dataclasses.replace(made, format="markdown"))
    assert compiled is None or made.count(compiled.text) == compiled.tokens <= made.budget_tokens


@given(contexts())
@settings(max_examples=10, deadline=None)
def test_each_section_respects_its_budget(made: CompileInput) -> None:
    # The marks that close the other formats are the whole's affair.
    made = dataclasses.replace(made, format="markdown")
    compiled = attempt(made)
    tokens = {section.name: section.tokens for section in compiled.sections} if compiled else {}
    assert tokens.get("pinned", 0) + tokens.get("state", 0) <= made.policy.pinned_budget
    assert tokens.get("working", 0) <= made.policy.working_budget
    assert tokens.get("recalled", 0) <= made.policy.retrieved_budget


@given(contexts())
@settings(max_examples=10, deadline=None)
def test_tokens_sum_to_the_complete_by_section_and_by_tier(made: CompileInput) -> None:
    compiled = attempt(made)
    if compiled is not None and compiled.sections:
        assert sum(section.tokens for section in compiled.sections) == compiled.tokens
        assert sum(compiled.tokens_by_tier.values()) == compiled.tokens


@given(contexts())
@settings(max_examples=10, deadline=None)
def test_core_that_may_be_shown_is_always_in(made: CompileInput) -> None:
    compiled = attempt(made)
    barred = {(name, version) for name, version, _ in made.excluded}
    wanted = {
        (each.id, each.version)
        for each in made.core
        if each.is_live(NOW)
        and (made.include_sensitive or each.sensitivity is Sensitivity.NORMAL)
        and screen(each).drop is None
        and not is_textless(each)
        and (each.id, each.version) not in barred
    }
    assert compiled is None or wanted <= set(placed(compiled))


@given(contexts())
@settings(max_examples=12, deadline=None)
def test_each_memory_is_in_one_section_or_excluded_once(made: CompileInput) -> None:
    compiled = attempt(made)
    if compiled is not None:
        told = placed(compiled) + [(out.id, out.version) for out in compiled.excluded]
        named = {(name, version) for name, version, _ in made.excluded}
        assert sorted(told) == sorted(named | set(everything(made)))


@given(contexts())
@settings(max_examples=10, deadline=None)
def test_a_repeat_names_a_memory_that_is_in(made: CompileInput) -> None:
    compiled = attempt(made)
    if compiled is not None:
        inside = {name for name, _ in placed(compiled)}
        named = {out.reason.detail.split()[0] for out in compiled.excluded if out.reason.code == "repeat"}
        assert named <= inside


@given(contexts())
@settings(max_examples=12, deadline=None)
def test_a_receipt_gives_the_bytes_again(made: CompileInput) -> None:
    compiled = attempt(made)
    if compiled is not None:
        again = replayed(compiled, made)
        assert (again.text, again.same, again.missing) == (compiled.text, True, ())


@given(contexts(), st.integers(0))
@settings(max_examples=10, deadline=None)
def test_an_erasure_changes_the_digests_of_its_own_section_alone(made: CompileInput, pick: int) -> None:
    compiled = attempt(made)
    if compiled is not None and (inside := placed(compiled)):
        gone = inside[pick % len(inside)]
        again = replayed(compiled, made, without=gone)
        other = {
            section.name
            for section in compiled.sections
            if gone not in [(item.id, item.version) for item in section.items]
        }
        assert other <= set(again.unchanged)


@given(contexts())
@settings(max_examples=10, deadline=None)
def test_the_stable_prefix_does_not_depend_on_what_follows(made: CompileInput) -> None:
    # Notes of agents leave room for people's memories in the tail: without those the prefix is the same whatever follows.
    people = [each for each in (*made.working, *(it.record for it in made.recalled)) if each.trust >= Trust.USER]
    notes = [each for each in (*made.pinned, *made.state) if each.trust < Trust.USER]
    assume(not (people and notes))
    compiled = attempt(made)
    # What is recalled and pinned may come in by recall where pinning has no room; that is the tail's affair.
    bare = attempt(dataclasses.replace(made, working=(), recalled=()))
    if compiled is not None and bare is not None and bare.sections:
        assert bare.prefix_digest == compiled.prefix_digest


@given(contexts())
@settings(max_examples=10, deadline=None)
def test_snapshot_and_memory_block_respect_the_budget_too(made: CompileInput) -> None:
    for make in (snapshot, memory_block):
        try:
            compiled = make(made)
        except ContextTooSmall:
            continue
        assert made.budget_tokens is None or compiled.tokens <= made.budget_tokens


@given(st.text(st.sampled_from("# \n\\`<|s>/[]INSTrulefact:-=\u2028\u200b"), max_size=60) | st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_text_of_a_line_can_be_read_back(text: str) -> None:
    assert unescaped(indented(escape_markup(text))) == text


@pytest.mark.parametrize("wrapped", ["<system>", "<|im_end|>", "[/INST]", "</s>", "<<SYS>>", "<tool_call>"])
@given(st.text("ab\\ \n", max_size=6), st.text("ab\\ \n", max_size=6))
@settings(max_examples=30, deadline=None)
def test_no_chat_markup_is_complete_in_a_line(wrapped: str, before: str, after: str) -> None:
    assert wrapped not in indented(escape_markup(before + wrapped + after))
