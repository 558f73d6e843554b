"""What a handle may see: its scope and the scopes above, and sensitive memories only with the right to read them.

``surfaces/test_calls.py`` tries every operation; here is what has no operation of its own, and what changes in time.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from outcomes import codes, committed_record, refused

from calls import EXAMPLES, QUESTION, WORD, Stage
from calls import TEXT as KEEPER
from keepward import Actor, Insert, Memory, NotFound, Unauthorised
from keepward.api import OPERATIONS
from keepward.interchange import write_vault
from keepward.storage.driver import SqliteConnection

TEXT = f"Ana sees doctor {WORD} on Mondays"
NOTICE = "ask the owner for a token with the right `sensitive`"
MAIL = "zephyr.quill@mail.example.org"

Enter = Callable[..., Memory]

#: Methods that are no operation, and that need the owner.
OWNERS: dict[str, Callable[[Memory], Any]] = {
    "backup": lambda mem: mem.backup("copy.db"),
    "journal": lambda mem: list(mem.journal()),
    "move_store": lambda mem: mem.move_store("moved.db"),
    "owner_token": lambda mem: mem.owner_token(),
    "export": lambda mem: write_vault(mem, io.StringIO()),
    "restore_journal": lambda mem: mem.restore_journal(iter(())),
}


def drafted(mem: Memory, memory_id: str) -> Any:
    with mem.draft(reason="x") as draft:
        draft.replace(memory_id, "No one keeps it")
    return draft.outcome


#: Methods that are no operation, and that make handles or changes which may see memories.
HANDLES: dict[str, Callable[[Memory], Any]] = {
    "user": lambda mem: mem.user("ana").recall(QUESTION),
    "agent": lambda mem: mem.agent("gemini").recall(QUESTION),
    "project": lambda mem: mem.project("shop").recall(QUESTION),
    "branch": lambda mem: (mem.create_branch("try-x"), mem.branch("try-x").recall(QUESTION))[1],
    "at": lambda mem: mem.at(scope="/tasks/1").recall(QUESTION),
}
#: What sees no memory by itself.
NEITHER = {
    "actor", "as_actor", "branch_name", "call_tool", "close", "draft", "head", "now", "open", "path", "policy", "proposed_steps",
    "recover", "restore_backup", "run_job", "scope", "session", "shadow", "tenant", "tools", "with_token",
}  # fmt: skip


@pytest.mark.promise("A5", "D6", "D10", "D45")
def test_every_method_is_an_operation_or_in_a_table() -> None:
    methods = {each.method.__name__ for each in OPERATIONS.values()}
    public = {name for name in dir(Memory) if not name.startswith("_")}
    assert public - methods - OWNERS.keys() - HANDLES.keys() - NEITHER == set()


@pytest.mark.promise("F10", "Z24")
@pytest.mark.parametrize("method", OWNERS)
def test_methods_of_the_owner_are_closed_to_an_agent(owner: Memory, entering: Enter, method: str) -> None:
    for agent in (owner.as_actor(Actor.agent("lyra")), entering(token=owner.create_token("lyra").secret)):
        with pytest.raises(Unauthorised):
            OWNERS[method](agent)


@pytest.mark.parametrize(
    "target", [{"scope": "/agents/orion"}, {"sensitivity": "sensitive"}], ids=["scope", "sensitive"]
)
def test_handles_made_from_a_handle_see_no_more(owner: Memory, target: dict[str, str]) -> None:
    at = Stage(owner, "apart", **target)
    agent = at.owner.as_actor(Actor.agent("lyra"))
    assert [name for name, call in HANDLES.items() if WORD in repr(call(agent))] == []
    with pytest.raises((NotFound, Unauthorised)) as fault:
        drafted(agent, at.memory)
    assert (WORD in str(fault.value), at.owner.get(at.memory).version) == (False, 1)


# --- scopes


@pytest.fixture
def below(owner: Memory) -> Stage:
    return Stage(owner, "apart", scope="/agents/orion")


@pytest.mark.parametrize("actor", [Actor.operator("olga"), Actor.reviewer("rita")])
def test_reviewer_and_owner_see_the_scopes_below(below: Stage, actor: Actor) -> None:
    handle = below.owner if actor.is_owner else below.owner.as_actor(actor)
    assert handle.get(below.memory).text == KEEPER
    assert [each.record.text for each in handle.history(below.memory)] == [KEEPER]


def test_writer_below_learns_nothing_of_unreadable_memories(owner: Memory, mem: Memory) -> None:
    made = committed_record(
        owner.as_actor(Actor.agent("orion")).at(scope="/agents/orion").remember(KEEPER, tier="archival")
    )
    outcome = mem.remember(KEEPER, tier="archival", scope="/agents/orion")
    assert committed_record(outcome).id != made.id
    assert made.id not in repr(outcome)


def test_earlier_versions_in_another_scope_stay_invisible(below: Stage) -> None:
    committed_record(
        below.owner.revise(below.memory, "The lighthouse is open on Sundays", metadata=None, reason="tidy")
    )
    committed_record(below.owner.move(below.memory, scope="/", reason="for all"))
    agent = below.owner.as_actor(Actor.agent("lyra"))
    assert WORD not in repr(agent.history(below.memory))
    assert WORD not in repr(agent.blame(below.memory))


# --- sensitive memories


@pytest.mark.parametrize("name", ["diff", "log", "receipt", "receipt of a context", "show"])
def test_sensitive_memories_left_out_of_a_list_are_reported(owner: Memory, name: str) -> None:
    at = Stage(owner, "apart", sensitivity="sensitive")
    method = getattr(at.owner.as_actor(Actor.agent("lyra")), name.partition(" ")[0])
    assert NOTICE in repr(method(**at.fill(EXAMPLES[name].args)))


def test_reviewer_without_the_right_previews_no_sensitive_words(owner: Memory) -> None:
    at = Stage(owner, "apart", sensitivity="sensitive")
    reviewer = at.owner.as_actor(Actor.reviewer("rita"))
    assert WORD not in repr(reviewer.context(QUESTION, preview=True))
    assert WORD not in repr(reviewer.plan_contain(commit=at.commit))
    assert WORD not in repr(reviewer.impact(commit=at.commit))


def test_what_became_sensitive_later_is_withheld_as_it_was_before(owner: Memory, mem: Memory) -> None:
    made = owner.remember(f"Doctor {WORD} is at the pier", tier="archival")
    then, head = committed_record(made).id, owner.head
    assert mem.get(then).text
    committed_record(owner.revise(then, sensitivity="sensitive", reason="it is private"))
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
    made = committed_record(owner.remember(TEXT, tier="archival", sensitivity="sensitive"))
    committed_record(owner.revise(made.id, "Ana sees a doctor", sensitivity="normal", reason=WORD))
    assert mem.get(made.id).text == "Ana sees a doctor"
    versions = mem.history(made.id)
    assert [each.op for each in versions] == ["insert", "replace"]
    assert TEXT not in repr(versions)


def test_reason_of_a_hidden_change_is_not_in_its_commit(owner: Memory, mem: Memory) -> None:
    made = owner.remember("Ana sees a doctor", tier="archival", sensitivity="sensitive", reason=f"heard of {WORD}")
    assert WORD in str(owner.show(made.commit.id).commit.payload)  # type: ignore[union-attr]
    views = [mem.show(made.commit.id), *mem.log(), *mem.diff(0, owner.head)]  # type: ignore[union-attr]
    assert WORD not in repr(views)


@pytest.fixture
def asked(owner: Memory, entering: Enter) -> Memory:
    """An agent that may say that a person consented, and may not read what is sensitive."""
    return entering(token=owner.create_token("claude", can=["read", "propose", "consent"]).secret)


def test_agent_changes_its_own_newly_sensitive_memory_unread(owner: Memory, asked: Memory) -> None:
    outcome = asked.remember(f"Write to {MAIL} about the crane", tier="archival", consent=True, key="post")
    made = committed_record(outcome)
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
        assert NOTICE in committed_record(told).text
        assert MAIL not in repr(told)
    assert owner.get(made.id).status.value == "retired"


def test_agent_cannot_declassify_its_own_sensitive_memory(owner: Memory, asked: Memory) -> None:
    made = committed_record(asked.remember(f"Write to {MAIL} about the crane", tier="archival", consent=True))
    assert MAIL not in repr(asked.revise(made.id, sensitivity="normal", reason="x"))
    assert owner.get(made.id).sensitivity.value == "sensitive"


def test_agent_undoes_its_own_change_of_sensitive_text_unread(owner: Memory, asked: Memory) -> None:
    made = asked.remember(f"Write to {MAIL} about the crane", tier="archival", consent=True)
    done = asked.rollback(made.commit.id)  # type: ignore[union-attr]
    assert (done.applied, MAIL in repr(done)) == (True, False)
    with pytest.raises(Unauthorised):
        asked.get(committed_record(made).id)


def test_pending_sensitive_change_shows_its_words_only_to_reviewers(owner: Memory) -> None:
    agent = owner.as_actor(Actor.agent("lyra"))
    outcome = agent.remember(TEXT, tier="core", key="mission", sensitivity="sensitive")
    assert outcome.outcome == "quarantined"
    assert [WORD in repr(item) for item in agent.pending()] == [False]
    assert [WORD in repr(item) for item in owner.as_actor(Actor.reviewer("rita")).pending()] == [True]
    assert committed_record(owner.approve(owner.pending()[0].id)).text == TEXT


def test_repeated_sensitive_text_reveals_no_neighbours(owner: Memory, mem: Memory) -> None:
    committed_record(owner.remember(TEXT, tier="archival", sensitivity="sensitive", evidence=["chat:secret"]))
    again = mem.remember(TEXT, tier="archival", sensitivity="sensitive")
    assert (again.outcome, again.reasons, "chat:secret" in repr(again)) == ("committed", (), False)


def test_batch_item_built_on_sensitive_memory_spoils_no_other(owner: Memory) -> None:
    at = Stage(owner, "apart", sensitivity="sensitive")
    first, second = at.owner.as_actor(Actor.agent("lyra")).remember_many(
        [
            {"text": "Nobody is ill", "tier": "archival", "derived_from": [at.memory]},
            {"text": "The crane is red", "tier": "archival"},
        ]
    )
    assert codes(first) == {"unknown_memory"}
    assert NOTICE in first.reasons[0].detail
    committed_record(second)


def test_invisible_sensitive_memory_is_reported_as_missing(owner: Memory) -> None:
    made = committed_record(owner.remember(TEXT, tier="archival", sensitivity="sensitive", scope="/agents/orion"))
    with pytest.raises(NotFound):
        owner.as_actor(Actor.agent("lyra")).get(made.id)


def test_reading_by_id_and_checking_visibility_is_one_query(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    own = committed_record(mem.remember("The bakery opens at six", tier="archival")).id
    asked: list[str] = []
    execute = SqliteConnection.execute
    monkeypatch.setattr(
        SqliteConnection, "execute", lambda db, sql, *given: asked.append(sql) or execute(db, sql, *given)
    )
    mem.get(own)
    assert sum("FROM records r WHERE" in sql for sql in asked) == 1


REFUSED: dict[str, Callable[[Memory], Any]] = {
    "remember": lambda bo: bo.remember("The bins go out on Monday", scope="/users/ana"),
    "a key": lambda bo: bo.remember("The bins go out on Monday", key="bins", scope="/users/ana"),
    "propose": lambda bo: bo.propose([Insert(text="The bins go out on Monday", key="bins", scope="/users/ana")]),
    "move": lambda bo: bo.move(bo.list_memories()[0].id, scope="/users/ana", key="bins"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_write_reads_nothing_of_the_scope_that_it_names(
    owner: Memory, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    ana, bo = owner.user("ana"), owner.as_actor(Actor.agent("bob")).user("bo")
    committed_record(ana.remember("The bins go out on Monday", key="bins"))
    committed_record(bo.remember("The cat sleeps all day", key="cat"))
    asked: list[tuple[str, Any]] = []
    execute = SqliteConnection.execute
    monkeypatch.setattr(
        SqliteConnection, "execute", lambda db, sql, *given: asked.append((sql, given)) or execute(db, sql, *given)
    )
    assert refused(REFUSED[what](bo)) == {"out_of_scope"}
    reads = [given for sql, given in asked if "SELECT" in sql and not sql.lstrip().startswith("INSERT")]
    assert reads
    assert [given for given in reads if "/users/ana" in repr(given)] == []
