"""Reading by id obeys the scope as recall does: every verb, every route, every tool, for an agent above and one beside.

The tables below are complete: a verb, a route or a tool that is in none of them fails this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outcomes import kept, refused

from keepward import Actor, Filters, KeepwardError, Memory, NotFound

TEXT = "The lighthouse keeper of Sagres is called Quillzephyr"
WORD = "Quillzephyr"


class Stage:
    """An agent at a scope, and what another agent remembers at its own."""

    def __init__(self, owner: Memory, scope: str = "/") -> None:
        self.owner = owner
        self.other = owner.as_actor(Actor.agent("orion")).at(scope="/agents/orion")
        self.agent = owner.as_actor(Actor.agent("lyra")).at(scope=scope)
        made = self.other.remember(TEXT, tier="archival", key="keeper")
        self.id, self.commit, self.receipt = kept(made).id, made.commit.id, made.receipt.id  # type: ignore[union-attr]
        self.twin = kept(self.other.remember("The pier of Sagres is long", tier="archival")).id
        self.own = kept(self.agent.remember("The bakery opens at six", tier="archival")).id
        self.compiled = self.other.context("Who keeps the lighthouse of Sagres?").receipt.id
        self.recalled = self.other.recall("lighthouse keeper Sagres", receipt=True).receipt


@pytest.fixture
def stage(owner: Memory) -> Stage:
    return Stage(owner)


@pytest.fixture(scope="module", params=["/", "/agents/lyra"], ids=["above", "beside"])
def apart(shared_owner: Memory, request: pytest.FixtureRequest) -> Stage:
    """A stage in a tenant of its own, on which nothing that a test does is seen by another."""
    return Stage(shared_owner.at(tenant=request.param.replace("/", "") or "above"), request.param)


#: Every verb that takes the name of something: it answers that there is no such thing.
BY_NAME: dict[str, Callable[[Memory, Stage], Any]] = {
    "archive": lambda mem, at: mem.archive(at.id, reason="x"),
    "append": lambda mem, at: mem.append(at.id, "and is old", reason="x"),
    "blame": lambda mem, at: mem.blame(at.id),
    "context_diff": lambda mem, at: mem.context_diff(at.compiled, at.compiled),
    "feedback": lambda mem, at: mem.feedback(at.recalled, used=[at.id]),
    "forget": lambda mem, at: mem.forget(at.id, reason="x"),
    "get": lambda mem, at: mem.get(at.id),
    "lineage": lambda mem, at: mem.lineage(at.id),
    "history": lambda mem, at: mem.history(at.id),
    "merge": lambda mem, at: mem.merge([at.id, at.twin], reason="x"),
    "move": lambda mem, at: mem.move(at.id, scope="/", reason="x"),
    "promote": lambda mem, at: mem.promote(at.id, TEXT, reason="x"),
    "receipt": lambda mem, at: mem.receipt(at.receipt),
    "receipt of a context": lambda mem, at: mem.receipt(at.compiled),
    "reinforce": lambda mem, at: mem.reinforce(at.id),
    "remember": lambda mem, at: mem.remember("It is mine", tier="archival", key="keeper", scope="/agents/orion"),
    "replay": lambda mem, at: mem.replay(at.compiled),
    "restore": lambda mem, at: mem.restore(at.id, reason="x"),
    "revise": lambda mem, at: mem.revise(at.id, "The keeper is somebody else", reason="x"),
    "show": lambda mem, at: mem.show(at.commit),
    "supersede": lambda mem, at: mem.supersede(at.id, at.own, reason="x"),
}
#: What answers without an error, and tells nothing.
SILENT: dict[str, Callable[[Memory, Stage], Any]] = {
    "forget_matching": lambda mem, at: _tried(
        lambda: mem.forget_matching("Who keeps the lighthouse of Sagres?", "0" * 64)
    ),
    "plan_forget_matching": lambda mem, at: mem.plan_forget_matching("Who keeps the lighthouse of Sagres?"),
    "add": lambda mem, at: mem.add([{"role": "user", "content": "I like tea", "id": at.id}], session=at.id),
    "activity": lambda mem, at: mem.activity(by="session"),
    "facets": lambda mem, at: mem.facets(filters=Filters(below=True, include_ended=True)),
    "sources": lambda mem, at: mem.sources(filters=Filters(below=True)),
    "users": lambda mem, at: mem.users(),
    "projects": lambda mem, at: mem.projects(),
    "user": lambda mem, at: mem.user("ana").recall("Who keeps the lighthouse of Sagres?"),
    "agent": lambda mem, at: mem.agent("gemini").recall("Who keeps the lighthouse of Sagres?"),
    "project": lambda mem, at: mem.project("shop").recall("Who keeps the lighthouse of Sagres?"),
    "bisect": lambda mem, at: _tried(lambda: mem.bisect("Who keeps the lighthouse of Sagres?", contains=WORD)),
    "contradictions": lambda mem, at: mem.contradictions(),
    "context": lambda mem, at: mem.context("Who keeps the lighthouse of Sagres?").text,
    "diff": lambda mem, at: mem.diff(0),
    "list_memories": lambda mem, at: mem.list_memories(limit=None, include_ended=True),
    "forget_many": lambda mem, at: mem.forget_many([at.id], reason="x"),
    "identity": lambda mem, at: mem.identity(),
    "log": lambda mem, at: mem.log(),
    "memory_block": lambda mem, at: mem.memory_block("Who keeps the lighthouse of Sagres?").text,
    "merge_candidates": lambda mem, at: mem.merge_candidates(floor=0.0),
    "notices": lambda mem, at: mem.notices(),
    "pending": lambda mem, at: mem.pending(state="all"),
    "proposal": lambda mem, at: _tried(lambda: mem.proposal(at.id)),
    "propose": lambda mem, at: _proposed(mem, at),
    "recall": lambda mem, at: mem.recall("Who keeps the lighthouse of Sagres?"),
    "remember_many": lambda mem, at: mem.remember_many([{"text": TEXT, "tier": "archival", "derived_from": [at.id]}]),
    "rollback": lambda mem, at: _tried(lambda: mem.rollback(at.commit)),
    "snapshot": lambda mem, at: mem.snapshot().text,
    "status": lambda mem, at: mem.status(),
    "update_identity": lambda mem, at: _tried(lambda: mem.update_identity("I am Orion", reason="x")),
    "update_by_key": lambda mem, at: mem.update_by_key("keeper", "The bakery is red", tier="archival"),
    "draft": lambda mem, at: _drafted(mem, at),
}
#: Verbs that no agent may use, whatever they name.
RIGHTS: dict[str, Callable[[Memory, Stage], Any]] = {
    "adopt": lambda mem, at: mem.adopt("0" * 64),
    "amend": lambda mem, at: mem.amend(at.id, "It is mine"),
    "approve": lambda mem, at: mem.approve(at.id),
    "backup": lambda mem, at: mem.backup("copy.db"),
    "contain": lambda mem, at: mem.contain("0" * 64, memory=at.id),
    "plan_contain": lambda mem, at: mem.plan_contain(memory=at.id),
    "create_token": lambda mem, at: mem.create_token("x"),
    "erase": lambda mem, at: mem.erase("0" * 64, at.id),
    "impact": lambda mem, at: mem.impact(memory=at.id),
    "journal": lambda mem, at: list(mem.journal()),
    "move_store": lambda mem, at: mem.move_store("moved.db"),
    "owner_token": lambda mem, at: mem.owner_token(),
    "plan_adopt": lambda mem, at: mem.plan_adopt(),
    "plan_erase": lambda mem, at: mem.plan_erase(at.id),
    "context previewed": lambda mem, at: mem.context("Who keeps the lighthouse of Sagres?", preview=True),
    "rebuild": lambda mem, at: mem.rebuild(),
    "receipts": lambda mem, at: mem.receipts(),
    "reindex": lambda mem, at: mem.reindex(),
    "reject": lambda mem, at: mem.reject(at.id, reason="x"),
    "reopen": lambda mem, at: mem.reopen(at.id, reason="x"),
    "restore_journal": lambda mem, at: mem.restore_journal(iter(())),
    "revoke_token": lambda mem, at: mem.revoke_token(at.id),
    "run_job": lambda mem, at: mem.run_job("compact_working"),
    "run_jobs": lambda mem, at: mem.run_jobs(),
    "tokens": lambda mem, at: mem.tokens(),
    "train_reranker": lambda mem, at: mem.train_reranker(),
}
#: What names no memory and holds none.
NEITHER = {
    "as_actor", "actor", "call_tool", "tools", "recover", "approve_many", "at", "certificate", "close", "doctor", "head", "jobs", "with_token",
    "now", "open", "path", "policy", "put_blob", "read_blob", "reject_many", "restore_backup", "scope", "session", "proposed_steps",
    "tenant", "verify",
}  # fmt: skip


def _tried(call: Callable[[], Any]) -> str:
    try:
        return str(call())
    except KeepwardError as fault:
        return str(fault)


def _proposed(mem: Memory, at: Stage) -> str:
    from keepward import Replace

    return _tried(lambda: mem.propose([Replace(id=at.id, text="Nobody keeps it")], reason="x"))


def _drafted(mem: Memory, at: Stage) -> str:
    def run() -> Any:
        with mem.draft(reason="x") as draft:
            draft.replace(at.id, "Nobody keeps it")
        return draft.outcome

    return _tried(run)


def test_every_verb_is_in_one_of_the_tables() -> None:
    known = {*BY_NAME, *SILENT, *RIGHTS, *NEITHER}
    assert {name for name in dir(Memory) if not name.startswith("_")} - known == set()


@pytest.mark.parametrize("verb", sorted(BY_NAME))
def test_a_verb_finds_nothing_of_another_agents_scope(apart: Stage, verb: str) -> None:
    with pytest.raises(NotFound) as fault:
        BY_NAME[verb](apart.agent, apart)
    assert WORD not in str(fault.value)
    assert apart.owner.get(apart.id).version == 1


@pytest.mark.parametrize("verb", sorted(BY_NAME))
def test_the_agent_that_is_there_gets_an_answer(stage: Stage, verb: str) -> None:
    try:
        BY_NAME[verb](stage.other, stage)
    except NotFound as fault:
        pytest.fail(str(fault))
    except KeepwardError:
        pass  # Such as restoring what never ended: it was found.


@pytest.mark.parametrize("verb", sorted(SILENT.keys() - {"remember_many"}))
def test_a_verb_shows_nothing_of_another_agents_scope(apart: Stage, verb: str) -> None:
    assert WORD not in repr(SILENT[verb](apart.agent, apart))
    assert apart.owner.get(apart.id).version == 1


def test_many_derived_from_another_agents_memory_leave_it_unchanged(stage: Stage) -> None:
    SILENT["remember_many"](stage.agent, stage)
    assert stage.owner.get(stage.id).version == 1


@pytest.mark.parametrize("verb", sorted(RIGHTS))
def test_a_verb_of_the_owner_is_closed_to_an_agent(apart: Stage, verb: str) -> None:
    with pytest.raises(KeepwardError) as fault:
        RIGHTS[verb](apart.agent, apart)
    assert fault.value.code in {"unauthorised", "not_found"}


@pytest.mark.parametrize("actor", [Actor.operator("olga"), Actor.reviewer("rita")])
def test_who_decides_sees_what_lies_below(stage: Stage, actor: Actor) -> None:
    handle = stage.owner if actor.is_owner else stage.owner.as_actor(actor)
    assert handle.get(stage.id).text == TEXT
    assert [each.record.text for each in handle.history(stage.id)] == [TEXT]


def test_writer_below_learns_nothing_of_unreadable_memories(stage: Stage) -> None:
    outcome = stage.agent.remember(TEXT, tier="archival", scope="/agents/orion")
    assert refused(outcome)
    assert stage.id not in repr(outcome)


def test_the_past_of_a_memory_out_of_reach_stays_there(stage: Stage) -> None:
    kept(stage.owner.revise(stage.id, "The lighthouse is open on Sundays", reason="tidy"))
    kept(stage.owner.move(stage.id, scope="/", reason="for all"))
    assert WORD not in repr(stage.agent.history(stage.id))
    assert WORD not in repr(stage.agent.blame(stage.id))
