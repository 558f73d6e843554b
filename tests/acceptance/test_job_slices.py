"""A job lets others write: no transaction of it changes more than 200 memories or documents, and none reads them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from keepward import Actor, Feedback, Memory, Policy, Tier
from keepward.core.memory import Kind, Record, Stability
from keepward.core.principals import Trust
from keepward.jobs import planners, registry
from keepward.jobs.planners import CHANGES_PER_COMMIT
from keepward.storage import documents, rows
from keepward.storage.store import EventStore
from keepward.storage.writer import UnitOfWork
from support.bulk_data import put_records

MANY = 230
POLICY = Policy(removal_share=1.0, archive_facts_after=None, archive_unused=("fact",))


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of changes of memories and of stored documents in each transaction."""
    counts: list[int] = []
    write, append, put = EventStore.write, UnitOfWork.append, UnitOfWork._put

    @contextmanager
    def counted(self: EventStore, **options: Any) -> Iterator[UnitOfWork]:
        with write(self, **options) as writer:
            counts.append(0)
            yield writer

    def appended(self: UnitOfWork, tenant: str, stage: Any) -> Any:
        counts[-1] += len(stage.steps)
        return append(self, tenant, stage)

    def stored(self: UnitOfWork, *given: Any, **options: Any) -> None:
        counts[-1] += 1
        put(self, *given, **options)

    monkeypatch.setattr(EventStore, "write", counted)
    monkeypatch.setattr(UnitOfWork, "append", appended)
    monkeypatch.setattr(UnitOfWork, "_put", stored)
    return counts


def facts(memory: Memory, text: str = "Shelf {} holds flour", **fields: Any) -> list[Record]:
    """Return stored facts of an agent."""
    return put_records(memory, [text.format(n) for n in range(MANY)], trust=Trust.AGENT, source="chat", **fields)


CASES: dict[str, tuple[dict[str, Any], dict[str, int], Policy, str]] = {
    "expire": ({"ttl_days": 1, "stability": Stability.VOLATILE}, {"days": 2}, POLICY, "expired"),
    "decay_archival": ({"importance": 0.1}, {"days": 700}, POLICY, "archived"),
    "prune": ({}, {}, replace(POLICY, capacity={Tier.ARCHIVAL: 5}), "archived"),
    "consolidate": ({"text": "The same shelf holds flour"}, {}, POLICY, "archived"),
}


@pytest.mark.parametrize("job", CASES)
def test_a_job_changes_at_most_two_hundred_memories_at_once(
    opened: Callable[..., Memory], clock: Any, changed: list[int], job: str
) -> None:
    fields, passed, policy, count = CASES[job]
    with opened("many", actor=Actor.operator("olga"), policy=policy) as owner:
        facts(owner, **fields)
        clock.move(**passed)
        changed.clear()
        run = owner.run_job(job, force=True)
        # The lease, and the receipt with the end of the run, count a little.
        assert (run.outcome, max(changed) <= CHANGES_PER_COMMIT + 5) == ("run", True)
        assert run.counts[count] >= MANY - 40


def test_uses_are_learned_from_two_hundred_memories_at_once(opened: Callable[..., Memory], changed: list[int]) -> None:
    with opened("many", actor=Actor.operator("olga"), policy=POLICY) as owner:
        records = facts(owner)
        with owner._context.store.write() as writer:
            writer.count_uses(owner.tenant, {record.id: (1, owner.now) for record in records})
        changed.clear()
        run = owner.run_job("learn_importance", force=True)
        assert (run.counts["reinforced"], len(run.commits)) == (MANY, 2)
        assert max(changed) <= CHANGES_PER_COMMIT + 5


def test_consolidation_decodes_what_resembles_the_newest_alone(
    opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planners, "MAX_RECENT", 2)
    with opened("many", actor=Actor.operator("olga"), policy=POLICY) as owner:
        facts(owner)
        decoded, decode = list[bytes](), rows.decode_record
        monkeypatch.setattr(rows, "decode_record", lambda payload: decoded.append(payload) or decode(payload))
        assert owner.run_job("consolidate", force=True).outcome == "run"
        # The newest, and at most eight candidates of each.
        assert len(decoded) <= 2 * (2 + 2 * 8)


@pytest.mark.parametrize("job", ["decay_archival", "prune"])
def test_a_job_that_has_nothing_to_do_decodes_no_memory(
    opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    with opened("many", actor=Actor.operator("olga"), policy=POLICY) as owner:
        facts(owner)
        decoded, decode = list[bytes](), rows.decode_record
        monkeypatch.setattr(rows, "decode_record", lambda payload: decoded.append(payload) or decode(payload))
        assert owner.run_job(job, force=True).outcome == "run"
        assert len(decoded) <= 1


def test_what_the_jobs_merge_is_what_all_pairs_say(opened: Callable[..., Memory]) -> None:
    texts = ("The ferry leaves at noon", "Ferry leaves at noon", "The ferry leaves at one", "Bo likes the rye bread")
    with opened("pairs", actor=Actor.operator("olga"), policy=POLICY) as owner:
        for kind in (Kind.FACT, Kind.RULE):
            for scope in ("/", "/users/bo"):
                put_records(owner, texts, trust=Trust.AGENT, kind=kind, scope=scope)
        pairs = [pair for pair in owner.merge_candidates(limit=100) if pair.same]
        below = owner.at(scope="/users/bo").merge_candidates(limit=100)
        names = {each.id for pair in (*pairs, *below) if pair.same for each in (pair.first, pair.second)}
        assert len(names) == 8
        run = owner.run_job("consolidate", force=True)
        left = {record.id for record in owner.list_memories(limit=None, below=True)}
        assert (run.counts["archived"], len(names & left)) == (4, 4)


def test_compacting_reads_the_feedback_of_its_receipts_alone(
    opened: Callable[..., Memory], clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened("receipts", actor=Actor.operator("olga"), policy=POLICY) as owner:
        (ferry,) = put_records(owner, ["The ferry leaves at noon"])
        for number in range(6):
            made = owner.context("When does the ferry leave?")
            if number % 2:
                owner.feedback(made.receipt.id, used=[ferry.id])
        clock.move(days=91)
        read, value_of = list[type](), documents.value_of
        monkeypatch.setattr(registry, "_RECEIPT_BATCH", 2)
        monkeypatch.setattr(documents, "value_of", lambda kind, row: read.append(kind) or value_of(kind, row))
        run = owner.run_job("compact_receipts", force=True)
        assert (run.counts["receipts"], read.count(Feedback)) == (3, 3)
