"""Stores of a size that no test could write one by one: rows as the gates would have left them, put there at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from keepward import Actor, Memory
from keepward.core.commit import CommitDetails, Step
from keepward.core.memory import Kind, Record, Tier
from keepward.core.principals import Trust
from keepward.core.proposal import digest_of
from keepward.machine.clock import RandomIds
from keepward.ports.store import Features, PendingCommit
from keepward.retrieval import tokenizer
from keepward.services.search.features import text_features
from keepward.services.transaction import receipt_of

CHUNK = 100


def many_memories(owner: Memory, count: int) -> None:
    """Put facts into a store, a hundred a commit; their texts are ``Shelf N holds flour ...``."""
    texts = [f"Shelf {n} holds flour {n * 7} of the mill at house {n % 97}." for n in range(count)]
    put_records(owner, texts, features=_words_alone)


def _words_alone(record: Record) -> Features:
    return Features(terms=tokenizer.pack(record.text.lower().rstrip(".").split()), model=None, vectors=b"", units=0)


def many_subjects(owner: Memory, count: int) -> None:
    """Put two facts about each of so many people into a store; they are called ``person N``, with three digits or more.

    Then there is one about ``Olga Brandt``, whose text does not name her.
    """
    names = [f"person {n:03}" for n in range(count) for _ in range(2)]
    texts = [f"Entry {n} names {name}." for n, name in enumerate(names)]
    texts.append("Takes ten units of insulin.")
    put_records(owner, texts, subjects=[*names, "Olga Brandt"], features=_words_alone)


def put_records(
    owner: Memory,
    texts: Sequence[str],
    *,
    ttl_days: int | None = None,
    features: Callable[[Record], Features] = text_features,
    subjects: Sequence[str | None] = (),
    **fields: Any,
) -> list[Record]:
    """Put archival facts of the owner into a store, a hundred a commit, with other fields as named; return them.

    ``subjects`` are whom the texts are about, one each.
    """
    context, ids = owner._context, RandomIds()
    now = owner.now
    made: list[Record] = []
    for start in range(0, len(texts), CHUNK):
        given: dict[str, Any] = {
            "version": 1,
            "tier": Tier.ARCHIVAL,
            "kind": Kind.FACT,
            "scope": "/",
            "source": "operator",
            "trust": Trust.OWNER,
            "confidence": 1.0,
            "importance": 0.5,
            "author": "operator:ana",
            "created_at": now,
            "reinforced_at": now,
            "expires_at": None if ttl_days is None else now + timedelta(days=ttl_days),
        }
        about = subjects[start : start + CHUNK] or [None] * CHUNK
        records = [
            Record(id=ids.new_id(now), text=text, **({"subject": subject} | given | fields))
            for text, subject in zip(texts[start : start + CHUNK], about, strict=False)
        ]
        commit_id = ids.new_id(now)
        stage = PendingCommit(
            commit_id=commit_id,
            at=now,
            kind="write",
            actor_kind="operator",
            details=CommitDetails(actor="operator:ana", reason="stock", receipt=commit_id, policy="0" * 16),
            steps=tuple(Step(op="insert", before=None, after=each) for each in records),
            features=tuple(map(features, records)),
            base={},
            salts=tuple(ids.salt() for _ in range(len(records) + 1)),
            receipt=receipt_of(context, "commit", {"commit": commit_id, "targets": []}, id=commit_id, at=now, head="-"),
        )
        with context.store.write() as writer:
            writer.append(context.tenant, stage)
        made += records
    return made


def many_waiting(owner: Memory, count: int) -> None:
    """Put proposals into the queue, all like one that an agent made; their texts are ``Guess N``."""
    owner.as_actor(Actor.agent("assistant")).remember("Guess", tier="archival", confidence=0.2, reason="a guess")
    (model,) = owner.pending()
    (step,) = model.steps
    context, ids = owner._context, RandomIds()
    with context.store.write() as writer:
        for number in range(1, count):
            name = ids.new_id(model.created_at)
            steps = (replace(step, after=replace(step.after, id=name, text=f"Guess {number}: {number * 7} sacks.")),)
            base = {name: 0}
            writer.put(
                replace(model, id=ids.new_id(model.created_at), steps=steps, base=base, digest=digest_of(steps, base))
            )
