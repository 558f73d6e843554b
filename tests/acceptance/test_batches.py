"""A batch is asked about at once and judged as its items are one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, Memory
from keepward.core.proposal import Committed, Duplicate, Outcome
from keepward.services.write import EVALUATE_FIRST_FROM
from support.clock import SteppingClock
from support.ids import CountingIds

IBAN = "DE89 3704 0044 " + "0532 0130 00"
STORED = (
    "The deploy runs on Monday at 9.",
    "Ana keeps the key to the oven in the cellar",
    "Ben prefers tea with milk",
    f"pay the rent to {IBAN}",
)
ITEMS: tuple[dict[str, Any], ...] = (
    {"text": "the deploy runs on monday at 9"},
    {"text": "The deploy runs on Monday at 10."},
    {"text": "Ana is keeping the key to the oven in the cellar"},
    {"text": "Ana keeps the key to the oven in the attic"},
    {"text": "Ben does not prefer tea with milk"},
    {"text": f"pay the rent to {IBAN}"},
    {"text": "Chidi measured the backup plan"},
    {"text": "Chidi measured the backup plan."},
    {"text": "Ben prefers tea with milk", "subject": "ben"},
    {"text": "heartbeat ok"},
    {"text": "status unchanged"},
    {"text": "the release is frozen", "key": "release", "kind": "state"},
    {"text": "the release is open", "key": "release", "kind": "state"},
)


def _plain(outcome: Outcome) -> tuple[Any, ...]:
    """Return what an outcome says but for ids, which are given in another order."""
    reasons = [(each.gate, each.code) for each in outcome.reasons]
    record = outcome.record.text if isinstance(outcome, Duplicate) else None
    stored = [each.text for each in outcome.records] if isinstance(outcome, Committed) else None
    return type(outcome).__name__, reasons, record, stored


def _filled(folder: Path) -> Iterator[Memory]:
    with Memory.open(
        folder / "m.db",
        actor=Actor.operator("ada"),
        embedder=None,
        config_dir=folder / "config",
        clock=SteppingClock(),
        ids=CountingIds(),
    ) as opened:
        for text in STORED:
            opened.remember(text, tier="archival")
        yield opened


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    yield from _filled(tmp_path)


@pytest.fixture
def one_by_one(memory: Memory) -> list[tuple[Any, ...]]:
    return [_plain(memory.remember_many([{"tier": "archival", **item}])[0]) for item in ITEMS]


@pytest.fixture
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    yield from _filled(tmp_path_factory.mktemp("other"))


@pytest.mark.promise("A34", "A36")
def test_batch_is_judged_like_its_items_one_by_one(one_by_one: list[tuple[Any, ...]], at_once: Memory) -> None:
    outcomes = at_once.remember_many([{"tier": "archival", **item} for item in ITEMS])
    assert [_plain(each) for each in outcomes] == one_by_one


def test_text_rewritten_by_a_gate_is_compared_as_stored(memory: Memory) -> None:
    for month in ("May", "June", "July"):
        # Nearer to the text as it came: they share its digits, which the stored one has lost.
        memory.remember(f"pay the rent to {IBAN[5:]} in {month}", tier="archival")
    assert isinstance(memory.remember(f"pay the rent to {IBAN}", tier="archival"), Duplicate)


def test_a_batch_of_a_thousand_is_one_commit(memory: Memory) -> None:
    memory.remember_many([f"case {n} is about number {n * n}" for n in range(120)], batch=120)
    assert len(memory.log(limit=3)[0].steps) == 120


def test_what_another_commit_brought_since_counts_for_the_batch(memory: Memory) -> None:
    text = "Chidi measured the backup plan"
    original, asked = memory._engine.store.duplicate_candidates, []

    def late(*args: Any) -> Any:
        found = original(*args)
        if not asked:
            asked.append(True)
            memory.remember(text, tier="archival")
        return found

    memory._engine.store.duplicate_candidates = late  # type: ignore[method-assign]
    # Many are judged before the transaction begins; with few of them nobody comes in between.
    others = [f"Dana sails to harbour {number * 7}" for number in range(EVALUATE_FIRST_FROM)]
    outcomes = memory.remember_many([{"text": each, "tier": "archival"} for each in (text, *others)])
    assert [type(each).__name__ for each in outcomes] == ["Duplicate", *["Committed"] * EVALUATE_FIRST_FROM]


def test_what_was_erased_is_refused_in_a_batch_too(memory: Memory) -> None:
    kept = memory.remember("Farah owns a garden plot", tier="archival")
    assert isinstance(kept, Committed)
    ids = (kept.records[0].id,)
    memory.erase(memory.plan_erase(ids).digest, ids)
    texts = ("Farah owns a garden plot", "Goran owns a bicycle")
    outcomes = memory.remember_many([{"text": text, "tier": "archival"} for text in texts])
    assert [type(each).__name__ for each in outcomes] == ["Refused", "Committed"]


def test_a_batch_stores_its_reason_without_personal_identifiers(tmp_path: Path) -> None:
    for mem in _filled(tmp_path):
        items = [{"text": "The boat is red"}, {"text": "The tram is green", "consent": True}]
        mem.remember_many(items, reason=f"asked by the holder of {IBAN}")
        assert mem.log()[0].details.reason == "asked by the holder of [IBAN]"
