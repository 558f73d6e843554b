"""Reading by id obeys the right to what is sensitive as recall does: every verb that names a memory or lists some.

The tables below are complete: a verb that is in none of them fails this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import test_reach
from outcomes import codes, kept

from keepward import Actor, Filters, KeepwardError, Memory, NotFound, Replace, Unauthorised
from keepward.storage.driver import SqliteConnection

WORD = "Quillzephyr"
TEXT = f"Ana sees doctor {WORD} on Mondays"
NOTICE = "ask the owner for a token with the right `sensitive`"
MAIL = "zephyr.quill@mail.example.org"

Enter = Callable[..., Memory]


class Stage:
    """An agent without the right, and a sensitive memory of the owner in its reach."""

    def __init__(self, owner: Memory) -> None:
        self.owner = owner
        self.agent = owner.as_actor(Actor.agent("lyra"))
        made = owner.remember(
            TEXT, tier="archival", key="doctor", subject=WORD, metadata={"of": WORD}, sensitivity="sensitive"
        )
        self.id, self.commit, self.receipt = kept(made).id, made.commit.id, made.receipt.id  # type: ignore[union-attr]
        kept(owner.revise(self.id, f"{TEXT} and Fridays", reason=f"said {WORD}"))
        self.own = kept(self.agent.remember("The bakery opens at six", tier="archival")).id
        self.derived = kept(owner.remember("Doctors are at the pier", tier="archival", derived_from=[self.id])).id
        kept(owner.revise(self.derived, sensitivity="normal", reason="no names"))
        self.compiled, self.later = (
            owner.context(f"Which doctor does Ana see{end}", include_sensitive=True).receipt.id for end in "?!"
        )
        held = self.agent.remember("Ana is well", tier="core", key="mission", evidence=[self.id])
        self.proposal = held.item.id  # type: ignore[union-attr]


@pytest.fixture
def stage(owner: Memory) -> Stage:
    return Stage(owner)


@pytest.fixture(scope="module")
def shared(shared_owner: Memory) -> Stage:
    """A stage for what is refused, or only reads."""
    return Stage(shared_owner)


#: Every verb that takes the name of a memory: it says what is withheld and by which right.
BY_NAME: dict[str, Callable[[Memory, Stage], Any]] = {
    "append": lambda mem, at: mem.append(at.id, "and is old", reason="x"),
    "archive": lambda mem, at: mem.archive(at.id, reason="x"),
    "blame": lambda mem, at: mem.blame(at.id),
    "forget": lambda mem, at: mem.forget(at.id, reason="x"),
    "draft": lambda mem, at: _drafted(mem, at),
    "forget_many": lambda mem, at: mem.forget_many([at.id], reason="x"),
    "get": lambda mem, at: mem.get(at.id),
    "get by its key": lambda mem, at: mem.get("doctor"),
    "get by a part of its id": lambda mem, at: mem.get(at.id[:30]),
    "get of the past": lambda mem, at: mem.get(at.id, as_of=1),
    "history": lambda mem, at: mem.history(at.id),
    "lineage": lambda mem, at: mem.lineage(at.id),
    "merge": lambda mem, at: mem.merge([at.own, at.id], reason="x"),
    "move": lambda mem, at: mem.move(at.id, scope="/", key="other", reason="x"),
    "promote": lambda mem, at: mem.promote(at.id, "Ana sees a doctor", reason="x"),
    "propose": lambda mem, at: mem.propose([Replace(id=at.id, importance=0.1)], reason="x"),
    "reinforce": lambda mem, at: mem.reinforce(at.id),
    "remember": lambda mem, at: mem.remember("Nobody", tier="archival", key="doctor"),
    "remember from it": lambda mem, at: mem.remember("Nobody", tier="archival", derived_from=[at.id]),
    "replay": lambda mem, at: mem.replay(at.compiled),
    "restore": lambda mem, at: mem.restore(at.id, reason="x"),
    "revise": lambda mem, at: mem.revise(at.id, importance=0.1, reason="x"),
    "supersede": lambda mem, at: mem.supersede(at.id, at.own, reason="x"),
    "update_by_key": lambda mem, at: mem.update_by_key("doctor", "Nobody", tier="archival"),
}
#: What answers, and tells no words of it.
SILENT: dict[str, Callable[[Memory, Stage], Any]] = {
    "agent": lambda mem, at: mem.agent("gemini").recall("Which doctor does Ana see?", floor=0),
    "project": lambda mem, at: mem.project("shop").recall("Which doctor does Ana see?", floor=0),
    "user": lambda mem, at: mem.user("ana").recall("Which doctor does Ana see?", floor=0),
    "forget_matching": lambda mem, at: _tried(lambda: mem.forget_matching("Which doctor does Ana see?", "0" * 64)),
    "plan_forget_matching": lambda mem, at: mem.plan_forget_matching("Which doctor does Ana see?"),
    "activity": lambda mem, at: mem.activity(by="session"),
    "add": lambda mem, at: mem.add([{"role": "user", "content": "I like tea", "id": at.id}], session=at.id),
    "bisect": lambda mem, at: _tried(lambda: mem.bisect("Which doctor does Ana see?", contains="Fridays")),
    "context": lambda mem, at: mem.context("Which doctor does Ana see?"),
    "context of the past": lambda mem, at: mem.context("Which doctor does Ana see?", as_of=1),
    "context_diff": lambda mem, at: mem.context_diff(at.compiled, at.later),
    "contradictions": lambda mem, at: mem.contradictions(),
    "diff": lambda mem, at: mem.diff(0),
    "diff between versions": lambda mem, at: mem.diff(1, 2),
    "facets": lambda mem, at: mem.facets(filters=Filters(include_ended=True)),
    "feedback": lambda mem, at: mem.feedback(at.compiled, used=[at.id]),
    "list_memories": lambda mem, at: mem.list_memories(limit=None, include_ended=True),
    "find in the past": lambda mem, at: mem.list_memories(limit=None, include_ended=True, as_of=1),
    "identity": lambda mem, at: mem.identity(),
    "lineage of what was made from it": lambda mem, at: mem.lineage(at.derived),
    "log": lambda mem, at: mem.log(),
    "merge_candidates": lambda mem, at: mem.merge_candidates(floor=0.0),
    "memory_block": lambda mem, at: mem.memory_block("Which doctor does Ana see?"),
    "notices": lambda mem, at: mem.notices(),
    "pending": lambda mem, at: mem.pending(state="all"),
    "proposal": lambda mem, at: mem.proposal(at.proposal),
    "receipt": lambda mem, at: mem.receipt(at.receipt),
    "receipt of a context": lambda mem, at: mem.receipt(at.compiled),
    "recall": lambda mem, at: mem.recall("Which doctor does Ana see?", floor=0),
    "rollback": lambda mem, at: _tried(lambda: mem.rollback(at.commit)),
    "show": lambda mem, at: mem.show(at.commit),
    "snapshot": lambda mem, at: mem.snapshot(),
    "sources": lambda mem, at: mem.sources(),
    "users": lambda mem, at: mem.users(),
    "projects": lambda mem, at: mem.projects(),
    "status": lambda mem, at: mem.status(),
}
#: What takes a reviewer, who may not read what is sensitive either.
REVIEWER: dict[str, Callable[[Memory, Stage], Any]] = {
    "plan_contain": lambda mem, at: mem.plan_contain(commit=at.commit),
    "impact": lambda mem, at: mem.impact(commit=at.commit),
    "context previewed": lambda mem, at: mem.context("Which doctor does Ana see?", preview=True),
    "receipts": lambda mem, at: mem.receipts(),
}
#: What reads no memory, or judges the identity alone.
NEITHER = {*test_reach.NEITHER, *test_reach.RIGHTS, "update_identity", "remember_many"} - REVIEWER.keys()


def _tried(call: Callable[[], Any]) -> str:
    try:
        return str(call())
    except KeepwardError as fault:
        return str(fault)


def _drafted(mem: Memory, at: Stage) -> Any:
    with mem.draft(reason="x") as draft:
        draft.replace(at.id, "Nobody is ill")
    return draft.outcome


def test_every_verb_is_in_one_of_the_tables() -> None:
    known = {verb.split()[0] for verb in (*BY_NAME, *SILENT, *REVIEWER)} | NEITHER
    assert {name for name in dir(Memory) if not name.startswith("_")} - known == set()


@pytest.mark.parametrize("verb", sorted(REVIEWER))
def test_a_reviewer_without_the_right_reads_no_words(shared: Stage, verb: str) -> None:
    assert WORD not in repr(REVIEWER[verb](shared.owner.as_actor(Actor.reviewer("rita")), shared))


@pytest.mark.parametrize("verb", sorted(BY_NAME))
def test_operations_on_a_sensitive_memory_name_the_missing_right(shared: Stage, verb: str) -> None:
    with pytest.raises(Unauthorised) as fault:
        BY_NAME[verb](shared.agent, shared)
    assert NOTICE in str(fault.value)
    assert WORD not in str(fault.value)
    assert shared.owner.get(shared.id).version == 2


@pytest.mark.parametrize("verb", sorted(SILENT))
def test_lists_show_no_words_of_sensitive_memories(shared: Stage, verb: str) -> None:
    assert WORD not in repr(SILENT[verb](shared.agent, shared))


@pytest.mark.parametrize("verb", ["diff", "log", "receipt", "receipt of a context", "show"])
def test_what_is_left_out_of_a_list_is_reported(shared: Stage, verb: str) -> None:
    assert NOTICE in repr(SILENT[verb](shared.agent, shared))


#: Changes that need a store of their own.
CHANGES = {**BY_NAME, "rollback": SILENT["rollback"]}


def answer_with_the_right(stage: Stage, operation: Callable[[Memory, Stage], Any]) -> str:
    granted = stage.owner.as_actor(Actor.agent("lyra", also=["sensitive"]))
    try:
        return repr(operation(granted, stage))
    except KeepwardError as fault:
        return str(fault)  # Such as restoring what never ended: it was read.


@pytest.mark.parametrize("verb", sorted(CHANGES))
def test_agent_with_the_right_changes_sensitive_memories(stage: Stage, verb: str) -> None:
    assert NOTICE not in answer_with_the_right(stage, CHANGES[verb])


def test_agent_with_the_right_reads_sensitive_memories(shared: Stage) -> None:
    reads = {verb: read for verb, read in SILENT.items() if verb != "rollback"}
    assert [verb for verb, read in reads.items() if NOTICE in answer_with_the_right(shared, read)] == []


def test_what_became_sensitive_later_is_withheld_as_it_was_before(owner: Memory, mem: Memory) -> None:
    made = owner.remember(f"Doctor {WORD} is at the pier", tier="archival")
    then, head = kept(made).id, owner.head
    assert mem.get(then).text
    kept(owner.revise(then, sensitivity="sensitive", reason="it is private"))
    for ask in (lambda: mem.get(then, as_of=head), lambda: mem.history(then)):
        with pytest.raises(Unauthorised, match="the right `sensitive`"):
            ask()
    found = [mem.log(), mem.diff(0, head), mem.show(made.commit.id), mem.receipt(made.receipt.id)]  # type: ignore[union-attr]
    assert WORD not in repr(found)
    hits, listed = mem.recall("doctor at the pier", as_of=head), mem.list_memories(as_of=head)
    compiled = mem.context("doctor at the pier", as_of=head)
    assert WORD not in repr((hits, list(listed))) + compiled.text
    assert all(NOTICE in repr(notes) for notes in (hits.notes, listed.notes, compiled.notes))


def test_memory_declassified_later_is_read_without_its_past(owner: Memory, mem: Memory) -> None:
    made = kept(owner.remember(TEXT, tier="archival", sensitivity="sensitive"))
    kept(owner.revise(made.id, "Ana sees a doctor", sensitivity="normal", reason=WORD))
    assert mem.get(made.id).text == "Ana sees a doctor"
    versions = mem.history(made.id)
    assert [each.op for each in versions] == ["insert", "replace"]
    assert TEXT not in repr(versions)


@pytest.fixture
def asked(owner: Memory, entering: Enter) -> Memory:
    """An agent that may say that a person consented, and may not read what is sensitive."""
    return entering(token=owner.create_token("claude", can=["read", "propose", "consent"]).secret)


def test_agent_changes_its_own_newly_sensitive_memory_unread(owner: Memory, asked: Memory) -> None:
    outcome = asked.remember(f"Write to {MAIL} about the crane", tier="archival", consent=True, key="post")
    made = kept(outcome)
    assert (MAIL in made.text, made.sensitivity.value) == (True, "sensitive")
    with pytest.raises(Unauthorised, match="the right `sensitive`"):
        asked.get(made.id)
    for change in (
        lambda: asked.revise(made.id, importance=0.2, reason="x"),
        lambda: asked.append(made.id, "after six", reason="x"),
        lambda: asked.remember("Write nowhere", tier="archival", key="post"),
        lambda: asked.forget("post", reason="x"),
    ):
        told = change()
        assert NOTICE in kept(told).text
        assert MAIL not in repr(told)
    assert owner.get(made.id).status.value == "retired"


def test_agent_cannot_declassify_its_own_sensitive_memory(owner: Memory, asked: Memory) -> None:
    made = kept(asked.remember(f"Write to {MAIL} about the crane", tier="archival", consent=True))
    assert MAIL not in repr(asked.revise(made.id, sensitivity="normal", reason="x"))
    assert owner.get(made.id).sensitivity.value == "sensitive"


def test_agent_undoes_its_own_change_of_sensitive_text_unread(owner: Memory, asked: Memory) -> None:
    made = asked.remember(f"Write to {MAIL} about the crane", tier="archival", consent=True)
    done = asked.rollback(made.commit.id)  # type: ignore[union-attr]
    assert (done.applied, MAIL in repr(done)) == (True, False)
    with pytest.raises(Unauthorised):
        asked.get(kept(made).id)


def test_pending_sensitive_change_shows_its_words_only_to_reviewers(owner: Memory) -> None:
    agent = owner.as_actor(Actor.agent("lyra"))
    outcome = agent.remember(TEXT, tier="core", key="mission", sensitivity="sensitive")
    assert outcome.outcome == "quarantined"
    assert [WORD in repr(item) for item in agent.pending()] == [False]
    assert [WORD in repr(item) for item in owner.as_actor(Actor.reviewer("rita")).pending()] == [True]
    assert kept(owner.approve(owner.pending()[0].id)).text == TEXT


def test_repeated_sensitive_text_reveals_no_neighbours(owner: Memory, mem: Memory) -> None:
    kept(owner.remember(TEXT, tier="archival", sensitivity="sensitive", evidence=["chat:secret"]))
    again = mem.remember(TEXT, tier="archival", sensitivity="sensitive")
    assert (again.outcome, "chat:secret" in repr(again)) == ("duplicate", False)


def test_batch_item_built_on_sensitive_memory_spoils_no_other(stage: Stage) -> None:
    first, second = stage.agent.remember_many(
        [
            {"text": "Nobody is ill", "tier": "archival", "derived_from": [stage.id]},
            {"text": "The crane is red", "tier": "archival"},
        ]
    )
    assert codes(first) == {"unknown_memory"}
    assert NOTICE in first.reasons[0].detail
    kept(second)


def test_invisible_sensitive_memory_is_reported_as_missing(owner: Memory) -> None:
    made = kept(owner.remember(TEXT, tier="archival", sensitivity="sensitive", scope="/agents/orion"))
    with pytest.raises(NotFound):
        owner.as_actor(Actor.agent("lyra")).get(made.id)


def test_reading_by_id_and_checking_visibility_is_one_query(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    execute = SqliteConnection.execute
    monkeypatch.setattr(
        SqliteConnection, "execute", lambda db, sql, *given: asked.append(sql) or execute(db, sql, *given)
    )
    stage.agent.get(stage.own)
    assert sum("FROM records r WHERE" in sql for sql in asked) == 1
