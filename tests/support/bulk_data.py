"""Stores of a size that no test could write one by one: rows as the gates would have left them, put there at once."""

from __future__ import annotations

from msgspec.structs import replace

from keepward import Actor, Memory
from keepward.adapters.world import RandomIds
from keepward.core.commit import CommitDetails, Step
from keepward.core.memory import Kind, Record, Tier
from keepward.core.principals import Trust
from keepward.core.proposal import digest_of
from keepward.ports.store import Features, PendingCommit
from keepward.retrieval import tokenizer

CHUNK = 100


def many_memories(owner: Memory, count: int) -> None:
    """Put facts into a store, a hundred a commit; their texts are ``Shelf N holds flour ...``."""
    session, ids = owner._session, RandomIds()
    now = owner.now
    for start in range(0, count, CHUNK):
        texts = [
            f"Shelf {n} holds flour {n * 7} of the mill at house {n % 97}."
            for n in range(start, min(count, start + CHUNK))
        ]
        records = [
            Record(
                id=ids.new_id(now),
                version=1,
                tier=Tier.ARCHIVAL,
                kind=Kind.FACT,
                text=text,
                scope="/",
                source="operator",
                trust=Trust.OWNER,
                confidence=1.0,
                importance=0.5,
                author="operator:ana",
                created_at=now,
                reinforced_at=now,
            )
            for text in texts
        ]
        stage = PendingCommit(
            commit_id=ids.new_id(now),
            at=now,
            kind="write",
            actor_kind="operator",
            details=CommitDetails(actor="operator:ana", reason="stock", receipt=ids.new_id(now), policy="0" * 16),
            steps=tuple(Step(op="insert", before=None, after=each) for each in records),
            features=tuple(
                Features(terms=tokenizer.pack(text.lower().rstrip(".").split()), model=None, vectors=b"", units=0)
                for text in texts
            ),
            base={},
            salts=tuple(ids.salt() for _ in range(len(records) + 1)),
        )
        with session.store.write() as writer:
            writer.append(session.tenant, stage)


def many_waiting(owner: Memory, count: int) -> None:
    """Put proposals into the queue, all like one that an agent made; their texts are ``Guess N``."""
    owner.as_actor(Actor.agent("assistant")).remember("Guess", tier="archival", confidence=0.2, reason="a guess")
    (model,) = owner.pending()
    (step,) = model.steps
    session, ids = owner._session, RandomIds()
    with session.store.write() as writer:
        for number in range(1, count):
            name = ids.new_id(model.created_at)
            steps = (replace(step, after=replace(step.after, id=name, text=f"Guess {number}: {number * 7} sacks.")),)
            base = {name: 0}
            writer.put(
                replace(model, id=ids.new_id(model.created_at), steps=steps, base=base, digest=digest_of(steps, base))
            )
