"""Lengths come before detectors: what is too long is refused before anything reads it, on every way in."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from outcomes import codes, committed_record, quarantined_item, refused

from keepward import Actor, Append, InvalidInput, Memory, Policy, Replace, Tier
from keepward.gates import pipeline
from keepward.gates.detectors import injection, pii, secrets
from keepward.services.writing import staged

HUGE = "a" * 1_000_000
WORDS = "passwort ist geheim " * 50_000


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long each text was that a detector was given."""
    lengths: list[int] = []
    for module in (secrets, pii, injection):
        for name in ("scan", "cannot_match"):
            inner = getattr(module, name)

            def spy(text: Any, inner: Any = inner, **how: Any) -> Any:
                lengths.append(len(getattr(text, "text", text)))
                return inner(text, **how)

            monkeypatch.setattr(module, name, spy)
    return lengths


def drafted(mem: Memory) -> Any:
    with mem.draft(reason="x") as draft:
        draft.insert(HUGE)
    return draft.outcome


#: Every field that takes text, and every way to say it.
WAYS: dict[str, Callable[[Memory, str], Any]] = {
    "text": lambda mem, _: mem.remember(HUGE),
    "words": lambda mem, _: mem.remember(WORDS),
    "key": lambda mem, _: mem.remember("The crane is red", key=HUGE),
    "subject": lambda mem, _: mem.remember("The crane is red", subject=HUGE),
    "category": lambda mem, _: mem.remember("The crane is red", category=HUGE),
    "session": lambda mem, _: mem.remember("The crane is red", session=HUGE),
    "speaker": lambda mem, _: mem.remember("The crane is red", speaker=HUGE),
    "job": lambda mem, _: mem.remember("The crane is red", job=HUGE),
    "source": lambda mem, _: mem.remember("The crane is red", source=HUGE),
    "one tag": lambda mem, _: mem.remember("The crane is red", tags=[HUGE]),
    "many tags": lambda mem, _: mem.remember("The crane is red", tags=["a" * 200] * 5_000),
    "evidence": lambda mem, _: mem.remember("The crane is red", evidence=[HUGE]),
    "aliases": lambda mem, _: mem.remember("The crane is red", aliases=[HUGE]),
    "metadata": lambda mem, _: mem.remember("The crane is red", metadata={"note": HUGE}),
    "metadata of numbers": lambda mem, _: mem.remember("The crane is red", metadata={"n": [1] * 400_000}),
    "metadata deep down": lambda mem, _: mem.remember("The crane is red", metadata={"n": [[[[[HUGE]]]]]}),
    "reason": lambda mem, _: mem.remember("The crane is red", reason=HUGE),
    "revise": lambda mem, name: mem.revise(name, HUGE, reason="x"),
    "revise metadata": lambda mem, name: mem.revise(name, metadata={"note": HUGE}, reason="x"),
    "append": lambda mem, name: mem.append(name, HUGE, reason="x"),
    "merge": lambda mem, name: mem.merge(
        [name, committed_record(mem.remember("The pier is long")).id], HUGE, reason="x"
    ),
    "promote": lambda mem, name: mem.promote(name, HUGE, reason="x"),
    "draft": lambda mem, _: drafted(mem),
    "propose": lambda mem, name: mem.propose([Replace(id=name, text=HUGE)], reason="x"),
    "propose append": lambda mem, name: mem.propose([Append(id=name, text=HUGE)], reason="x"),
    "many": lambda mem, _: mem.remember_many([HUGE])[0],
    "by key": lambda mem, _: mem.remember(HUGE, key="crane", kind="state"),
}


@pytest.mark.parametrize("way", WAYS)
def test_overlong_text_is_refused_before_a_detector_reads_it(owner: Memory, seen: list[int], way: str) -> None:
    name = committed_record(owner.remember("The ferry leaves at six", tier="archival")).id
    # A name off a list is an error of the call.
    with contextlib.suppress(InvalidInput):
        assert refused(WAYS[way](owner, name))
    # The longest that all fields of one memory may hold together.
    assert max(seen, default=0) < 100_000


@pytest.mark.parametrize("verb", ["recall", "context", "memory_block"])
def test_a_question_that_is_too_long_is_an_error(mem: Memory, seen: list[int], verb: str) -> None:
    with pytest.raises(InvalidInput, match="32,768 characters"):
        getattr(mem, verb)(HUGE)
    assert max(seen, default=0) < 100_000


def test_the_reason_of_a_rejection_has_a_length(mem: Memory, owner: Memory, seen: list[int]) -> None:
    item = quarantined_item(mem.remember("Ship it", tier="core", key="mission", confidence=0.9))
    with pytest.raises(InvalidInput, match="1,000 characters"):
        owner.reject(item.id, reason=HUGE)
    assert max(seen, default=0) < 100_000


@pytest.mark.slow
def test_a_long_text_of_an_import_is_read_in_windows(owner: Memory, tmp_path: Any, seen: list[int]) -> None:
    from keepward.interchange.imports import load

    (tmp_path / "long.md").write_text(
        "- " + " ".join(f"The crane at pier {n} lifts {n * 7} tonnes." for n in range(6_000))
    )
    done = load(owner, tmp_path / "long.md")
    assert done.committed > 100
    assert max(seen) < 100_000


def test_a_secret_at_the_edge_of_a_window_is_found(owner: Memory, tmp_path: Any) -> None:
    from keepward.services.writing.splitter import _WINDOW, UnusableItem, split_text

    key = "AKIA" + "HTLGMXGEDN73U55X"
    for place in range(_WINDOW - 24, _WINDOW + 4, 3):
        text = ("crane " * (place // 6 + 1))[:place] + " " + key + " crane" * 2_000
        with pytest.raises(UnusableItem):
            split_text(text, 1200)


class Meter:
    """Time that a gate seems to take, of the processor and of the clock."""

    def __init__(self) -> None:
        self.now = 0.0

    def thread_time(self) -> float:
        return self.now

    perf_counter = thread_time


@pytest.mark.parametrize("name", [name for name, _ in pipeline.GATES])
def test_gate_over_its_time_limit_quarantines_the_write(
    owner: Memory, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    meter = Meter()

    def slow(case: Any, view: Any, policy: Any) -> None:
        meter.now += pipeline.GATE_BUDGET_S + 0.1

    monkeypatch.setattr(staged, "time", meter)
    monkeypatch.setattr(
        pipeline, "GATES", tuple((each, slow if each == name else gate) for each, gate in pipeline.GATES)
    )
    outcome = owner.remember("The ferry leaves at six", tier="archival")
    assert quarantined_item(outcome).steps[0].after.text == "The ferry leaves at six"
    assert "over_budget" in codes(outcome)
    assert owner.list_memories() == []


@pytest.mark.parametrize("name", [name for name, _ in pipeline.GATES if name not in {"secrets", "privacy"}])
def test_a_gate_that_crashes_holds_the_write(owner: Memory, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def broken(case: Any, view: Any, policy: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(
        pipeline, "GATES", tuple((each, broken if each == name else gate) for each, gate in pipeline.GATES)
    )
    assert "gate_failed" in codes(owner.remember("The ferry leaves at six", tier="archival"))
    assert owner.list_memories() == []


def test_an_owner_who_allows_long_texts_has_them(opened: Callable[..., Memory]) -> None:
    policy = Policy(text_limit=dict.fromkeys(Tier, 20_000))
    with opened("long", policy=policy) as mem:
        text = "The crane at the pier is red. " * 600
        assert committed_record(mem.remember(text, tier="archival")).text == text


@pytest.mark.parametrize("text", ["", " \n"])
def test_nothing_is_promoted_to_no_text(tmp_path, text):
    with Memory.open(tmp_path / "e.db", actor=Actor.operator(), embedder=None, config_dir=tmp_path / "k") as owner:
        fact = owner.remember("The tide turns at six").record
        assert (owner.promote(fact.id, text, reason="x").ok, owner.get(fact.id).text) == (False, fact.text)
