"""Old receipts of contexts are reduced to what a replay needs, and still give back the same bytes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from outcomes import kept

from keepward import Actor, Memory, Policy, Tampered
from support import tamper

ASKED = "ships in the harbour"


def fill(memory: Memory) -> None:
    """Keep more memories than a context of a small budget holds."""
    kept(memory.remember("The harbour opens at six", tier="working"))
    kept(memory.remember("Ships have right of way in the harbour", stability="permanent", tier="archival"))
    for number in range(60):
        kept(memory.remember(f"Pier {number} of the harbour holds {number + 3} ships", tier="archival"))


def compact(memory: Memory) -> int:
    """Run the job now; return how many receipts it compacted."""
    run = memory.run_job("compact_receipts", force=True)
    assert run.outcome == "run", run.why
    return run.counts["receipts"]


@pytest.mark.promise("C79", "C84", "C87")
def test_a_compacted_receipt_replays_the_same_bytes(owner: Memory, clock: Any) -> None:
    fill(owner)
    seen = owner.context(ASKED, budget_tokens=400)
    whole = owner.receipt(seen.receipt.id)
    for record in owner.list_memories(limit=None):
        kept(owner.revise(record.id, f"{record.text}, as of late", reason="later"))
    clock.move(days=91)
    assert compact(owner) == 1
    left = owner.receipt(seen.receipt.id)
    again = owner.replay(seen.receipt.id)
    assert (again.text, again.same, again.missing) == (seen.text, True, ())
    assert (left["context_id"], left["compacted_at"]) == (seen.context_id, clock.now().isoformat())
    assert whole["excluded"]
    assert left.keys() == whole.keys() - {"excluded", "unlisted", "signals", "tokens_by_tier"} | {"compacted_at"}
    held = [[(item["id"], item["version"]) for item in part["items"]] for part in whole["sections"]]
    assert [[(item["id"], item["version"]) for item in part["items"]] for part in left["sections"]] == held
    assert {name for part in left["sections"] for item in part["items"] for name in item} <= {
        *("id", "version", "tier", "masks", "block", "weak")
    }
    sizes = [len(json.dumps({**each, "explanation": None})) for each in (left, whole)]
    assert sizes[0] < sizes[1] / 2
    assert owner.verify().ok
    assert "".join(part["text"] for part in left["explanation"]["parts"]) == seen.text


def test_only_receipts_of_old_contexts_are_compacted_and_once(owner: Memory, clock: Any) -> None:
    fill(owner)
    recall = owner.recall(ASKED, receipt=True)
    contexts = [owner.context(ASKED).receipt.id for _ in range(3)]
    clock.move(days=89)
    assert compact(owner) == 0
    late = owner.context(ASKED).receipt.id
    clock.move(days=1)
    assert (compact(owner), compact(owner)) == (3, 0)
    assert ["compacted_at" in owner.receipt(each) for each in (*contexts, late)] == [True, True, True, False]
    assert "compacted_at" not in owner.receipt(str(recall.receipt))


def test_a_receipt_with_feedback_stays_complete(owner: Memory, clock: Any) -> None:
    fill(owner)
    seen = owner.context(ASKED)
    used = [item.id for section in seen.sections for item in section.items if section.name == "recalled"]
    owner.feedback(seen.receipt.id, used=used[:1])
    before = owner.receipt(seen.receipt.id)
    clock.move(days=91)
    assert (compact(owner), owner.receipt(seen.receipt.id)) == (0, before)


def test_the_policy_says_when_receipts_are_compacted(opened: Callable[..., Memory], clock: Any) -> None:
    policy = Policy(compact_receipts_after=timedelta(days=2))
    with opened("early", policy=policy, actor=Actor.operator("olga")) as memory:
        fill(memory)
        memory.context(ASKED)
        clock.move(days=2)
        assert compact(memory) == 1


def test_a_damaged_receipt_is_not_compacted(owner: Memory, clock: Any) -> None:
    fill(owner)
    name = owner.context(ASKED).receipt.id
    tamper.bend_receipt(owner.path, name, b'"version":1', b'"version":2')
    clock.move(days=91)
    with pytest.raises(Tampered):
        owner.receipt(name)
    assert (compact(owner), owner.verify().ok) == (0, False)


@pytest.mark.parametrize("count", [300, 1_000])
def test_receipt_size_is_bounded_per_candidate(owner: Memory, count: int) -> None:
    names = ("harbour", "pier", "ship", "crane", "depot")
    texts = [f"The {names[n % 5]} number {n} of the harbour holds {n * 7} crates of tea" for n in range(count)]
    owner.remember_many([{"text": text, "tier": "archival"} for text in texts])
    for budget in (2_000, 16_000):
        receipt = owner.receipt(owner.context("which crates are in the harbour", budget_tokens=budget).receipt.id)
        named = len(receipt["excluded"]) + sum(len(part["items"]) for part in receipt["sections"])
        with closing(sqlite3.connect(owner.path)) as connection:
            query = "SELECT length(body) FROM documents WHERE id = ?"
            (size,) = connection.execute(query, (receipt["id"],)).fetchone()
        assert named >= 30
        assert size <= 2_000 + 150 * named
