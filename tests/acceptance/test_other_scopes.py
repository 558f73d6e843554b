"""What another scope holds changes no answer of a token: two stores that differ in nothing else answer equally."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from outcomes import committed_record

from keepward import Actor, KeepwardError, Memory
from support.clock import SteppingClock

HIDDEN_WORD = "Quillzephyr"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
#: What differs between any two stores: ids, heads, hashes, bytes, and numbers of commits.
_OWN = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b\d+:[0-9a-f]{16}\b|[0-9a-f]{64}|[0-9a-f]{32}"
    r"|b'(?:[^'\\]|\\.)*'|b\"(?:[^\"\\]|\\.)*\"|seq=\d+|'path': '[^']*'"
)


class Bob:
    """What the scope of Bob holds."""

    def __init__(self, owner: Memory, clock: SteppingClock) -> None:
        writer = owner.as_actor(Actor.agent("orion")).at(scope="/agents/bob")

        def made(outcome: Any) -> Any:
            clock.move(seconds=1)
            return outcome

        first = made(writer.remember("Bob likes the red crane", tier="archival", key="crane"))
        self.memory, self.commit = first.id, first.commit.id
        self.context = made(writer.context("the red crane")).receipt.id
        self.recalled = made(writer.recall("crane", receipt=True)).receipt
        made(writer.revise(self.memory, "Bob likes the blue crane", reason="painted"))
        self.shared = made(owner.remember("The office closes at six", tier="archival")).id
        self.last = writer.remember("Stars are far", tier="archival")
        self.proposal = writer.remember("Bob waits here", stability="permanent", tier="archival").item.id


def fill_elsewhere(owner: Memory, shared: str) -> None:
    """Write something of each kind at the scope of Ann."""
    ann = owner.as_actor(Actor.agent("orion")).at(scope="/agents/ann")
    for number in range(5):
        fields = {"category": "sea", "session": "s1", "evidence": ["chat:9"], "derived_from": [shared]}
        committed_record(
            ann.remember(f"Crane {number} of {HIDDEN_WORD} lifts {number * 7} tons", tier="archival", **fields)
        )
    # A name in the middle of a sentence.
    keyed = committed_record(
        ann.remember(f"The red crane that Bob likes is {HIDDEN_WORD}", tier="archival", key="crane")
    )
    ann.feedback(ann.context(f"Where is {HIDDEN_WORD}?").receipt.id, used=[keyed.id])
    ann.recall(HIDDEN_WORD, receipt=True)
    for decide in (lambda item: None, lambda item: owner.reject(item.id, reason=HIDDEN_WORD)):
        decide(ann.remember(f"Pier {HIDDEN_WORD} is old", stability="permanent", tier="archival").item)
    ann.put_blob(PNG, media_type="image/png")
    erased = committed_record(ann.remember(f"The horn is {HIDDEN_WORD}", tier="archival")).id
    owner.erase(owner.plan_erase([erased]).digest, [erased])
    owner.create_token("ann", scope="/agents/ann")


CALLS: dict[str, Callable[[Memory, Bob], Any]] = {
    "log": lambda mem, bob: mem.log(),
    "show": lambda mem, bob: mem.show(bob.commit),
    "diff": lambda mem, bob: mem.diff(0),
    "receipts": lambda mem, bob: mem.receipts(limit=500).items,
    "receipt of a commit": lambda mem, bob: mem.receipt(bob.commit),
    "receipt of a context": lambda mem, bob: mem.receipt(bob.context),
    "replay": lambda mem, bob: mem.replay(bob.context),
    "context_diff": lambda mem, bob: mem.context_diff(bob.context, bob.context),
    "status": lambda mem, bob: mem.status(),
    "doctor": lambda mem, bob: mem.doctor(),
    "verify": lambda mem, bob: mem.verify(),
    "pending": lambda mem, bob: mem.pending(state="all"),
    "proposal": lambda mem, bob: mem.proposal(bob.proposal),
    "notices": lambda mem, bob: mem.notices(),
    "impact of a memory": lambda mem, bob: mem.impact(memory=bob.shared),
    "impact of an actor": lambda mem, bob: mem.impact(actor="agent:orion"),
    "plan_contain": lambda mem, bob: mem.plan_contain(actor="agent:orion").impact,
    "rollback": lambda mem, bob: mem.rollback(bob.commit, dry_run=True),
    "list": lambda mem, bob: mem.list_memories(limit=None, include_ended=True),
    "facets": lambda mem, bob: mem.facets(),
    "activity": lambda mem, bob: mem.activity(),
    "sources": lambda mem, bob: mem.sources(),
    "users": lambda mem, bob: (mem.users(), mem.projects()),
    "lineage": lambda mem, bob: mem.lineage(bob.shared),
    "get": lambda mem, bob: mem.get(bob.shared),
    "history": lambda mem, bob: mem.history(bob.memory),
    "blame": lambda mem, bob: mem.blame(bob.memory),
    "recall": lambda mem, bob: mem.recall("crane"),
    "context": lambda mem, bob: mem.context("the red crane").text,
    "snapshot": lambda mem, bob: mem.snapshot().text,
    "memory_block": lambda mem, bob: mem.memory_block("crane").text,
    "preview": lambda mem, bob: mem.context("the red crane", preview=True),
    "bisect": lambda mem, bob: mem.bisect("crane", contains="blue").commit,
    "contradictions": lambda mem, bob: mem.contradictions(),
    "merge_candidates": lambda mem, bob: mem.merge_candidates(floor=0.0),
    "jobs": lambda mem, bob: mem.jobs(),
    "identity": lambda mem, bob: mem.identity(),
    # Ids begin with their time, and what is Ann's was made in the same second as the last of these.
    "show by a part": lambda mem, bob: mem.show(bob.last.commit.id[:13]),
    "state by a part": lambda mem, bob: mem.diff(0, bob.last.commit.id[:13]),
    "receipt by a part": lambda mem, bob: mem.receipt(bob.last.receipt.id[:13]),
    "proposal by a part": lambda mem, bob: mem.proposal(bob.proposal[:13]),
}


@pytest.fixture(scope="module")
def two_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Memory, Bob]]]:
    """Yield two stores of which the second also holds what is Ann's."""
    stores = []
    with ExitStack() as opened:
        for name in ("alone", "shared"):
            folder, clock = tmp_path_factory.mktemp(name), SteppingClock()
            (folder / "identity.md").write_text("I keep the harbour", "utf-8")
            given = {"embedder": "hashed", "clock": clock, "config_dir": folder, "identity": folder / "identity.md"}
            owner = opened.enter_context(Memory.open(folder / "m.db", actor=Actor.operator("olga"), **given))
            bob = Bob(owner, clock)
            if name == "shared":
                fill_elsewhere(owner, bob.shared)
            clock.move(hours=2)
            stores.append((owner, bob))
        yield stores


@pytest.mark.promise("Z11")
@pytest.mark.parametrize("rights", ["agent", "reviewer"])
def test_what_is_elsewhere_changes_no_answer(two_stores: list[tuple[Memory, Bob]], rights: str) -> None:
    answers: list[dict[str, str]] = []
    for owner, bob in two_stores:
        token = owner.with_token(owner.create_token("rob", rights=rights, scope="/agents/bob").secret)
        found = {}
        for name, call in CALLS.items():
            try:
                found[name] = _OWN.sub("#", repr(call(token, bob)))
            except KeepwardError as fault:
                found[name] = _OWN.sub("#", f"{fault.code}: {fault}")
        answers.append(found)
    alone, shared = answers
    assert HIDDEN_WORD not in repr(shared)
    assert shared == alone
    assert "red crane" in alone["diff"] + alone["log"]
