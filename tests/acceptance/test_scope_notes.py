"""Notes on scopes: what lies below and was not read, and names that differ only in upper and lower case."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, Memory, Policy
from keepward.core.messages import Added

#: Every read whose result has notes.
READS: list[Callable[[Memory], Any]] = [
    lambda mem: mem.recall("tabs"),
    lambda mem: mem.list_memories(),
    lambda mem: mem.list_memories(key="k"),
    lambda mem: mem.list_memories(sort="importance"),
    lambda mem: mem.context("tabs"),
    lambda mem: mem.memory_block("tabs"),
]
reads = pytest.mark.parametrize("read", READS)


def below(result: Any) -> list[str]:
    return [note for note in result.notes if "scopes below" in note]


def named(scope: str) -> str:
    return f'at(scope="{scope}") or --scope {scope} reads there'


def in_other_case(result: Any) -> list[str]:
    notes = [*getattr(result, "notes", ()), *(reason.detail for reason in getattr(result, "reasons", ()))]
    return [note for note in notes if "upper and lower case" in note]


@pytest.fixture
def filled_store(owner: Memory) -> Memory:
    """A store with a memory of everybody, two of Ana and one of a task of hers."""
    owner.remember("Lunch is at noon")
    owner.user("ana").remember("Ana prefers tabs")
    owner.user("ana").remember("Ana likes dark mode")
    owner.at(scope="/users/ana/tasks/1").remember("The task is to sort the tabs")
    return owner


@reads
def test_a_read_names_the_scopes_below_also_if_it_found_something(
    filled_store: Memory, read: Callable[[Memory], Any]
) -> None:
    assert below(read(filled_store)) == [
        "3 memories in scopes below were not read (/users/ana, /users/ana/tasks/1); " + named("/users/ana")
    ]
    assert below(read(filled_store.at(scope="/users/ana/tasks/1"))) == []


@reads
def test_the_handle_that_the_note_names_reads_what_was_not_read(
    filled_store: Memory, read: Callable[[Memory], Any]
) -> None:
    scope = below(read(filled_store))[0].partition('at(scope="')[2].partition('"')[0]
    assert "Ana prefers tabs" in {memory.text for memory in filled_store.at(scope=scope).list_memories()}


@reads
def test_who_may_not_list_scopes_below_does_not_learn_of_them(
    filled_store: Memory, read: Callable[[Memory], Any]
) -> None:
    token = filled_store.create_token("lyra").secret
    for handle in (
        filled_store.as_actor(Actor.agent()),
        filled_store.agent("plan").at(scope="/"),
        filled_store.with_token(token),
    ):
        assert below(read(handle)) == []
    own = filled_store.create_token("o", scope="/users/ana").secret
    assert "1 memory in scopes below was not read (/users/ana/tasks/1)" in below(read(filled_store.with_token(own)))[0]


def test_a_sensitive_memory_below_is_not_counted_for_who_may_not_read_it(owner: Memory) -> None:
    owner.at(scope="/users/ana/tasks/1").remember("Ana takes insulin", sensitivity="sensitive")
    reader = owner.with_token(owner.create_token("o", scope="/users/ana").secret)
    assert [len(below(handle.recall("insulin"))) for handle in (owner, reader)] == [1, 0]


def test_what_ended_below_is_not_counted(owner: Memory, clock: Any) -> None:
    owner.user("ana").remember("Ana is in Ghent", ttl="1d")
    gone = owner.user("bob").remember("Bob rows")
    assert below(owner.recall("Ghent"))[0].startswith("2 memories")
    owner.user("bob").forget(gone.id, reason="left")
    clock.move(days=2)
    assert below(owner.recall("Ghent")) == []


@pytest.mark.parametrize(
    "read",
    [
        lambda mem: mem.recall("tabs", within="/"),
        lambda mem: mem.recall("tabs", as_of=mem.head),
        lambda mem: mem.list_memories(below=True),
        lambda mem: mem.list_memories(scopes=["/"]),
        lambda mem: mem.list_memories(as_of=mem.head),
        lambda mem: mem.context("tabs", as_of=mem.head),
    ],
)
def test_a_read_that_chose_its_scopes_or_time_gets_no_note(filled_store: Memory, read: Callable[[Memory], Any]) -> None:
    assert below(read(filled_store)) == []


def test_no_more_than_a_hundred_memories_are_counted(owner: Memory) -> None:
    owner.remember_many([{"text": f"Fact {n} of a person", "scope": f"/users/u{n % 4}"} for n in range(120)])
    assert below(owner.list_memories(limit=1)) == [
        "at least 100 memories in scopes below were not read (/users/u0, /users/u1, /users/u2, …); "
        + named("/users/u0")
    ]


def test_a_receipt_does_not_name_scopes_below(filled_store: Memory) -> None:
    compiled = filled_store.context("tabs")
    recalled = filled_store.recall("tabs", receipt=True)
    assert compiled.receipt is not None
    for receipt in (compiled.receipt.id, str(recalled.receipt)):
        assert "users" not in str(filled_store.receipt(receipt))


def test_a_store_that_is_switched_off_names_no_scope(filled_store: Memory, tmp_path: Path) -> None:
    off = Memory.open(
        filled_store.path, actor=filled_store.actor, policy=Policy(enabled=False), config_dir=tmp_path / "config"
    )
    with off:
        assert below(off.recall("tabs")) == below(off.context("tabs")) == []


@reads
@pytest.mark.parametrize("kind", ["user", "agent", "project"])
def test_a_read_says_that_a_name_differs_only_in_case(owner: Memory, kind: str, read: Callable[[Memory], Any]) -> None:
    def handle(name: str) -> Memory:
        return owner.at(scope=f"/{kind}s/{name}")

    handle("ana").remember("Ana prefers tabs")
    assert in_other_case(read(handle("ana"))) == in_other_case(read(handle("bob"))) == []
    assert in_other_case(read(getattr(owner, kind)("Ana"))) == [
        f"/{kind}s/Ana and /{kind}s/ana differ only in upper and lower case and are two names; use one spelling"
    ]


def test_each_scope_that_a_handle_sees_is_compared(owner: Memory) -> None:
    owner.project("shop").remember("The shop opens at nine")
    owner.user("ana").remember("Ana prefers tabs")
    notes = in_other_case(owner.project("Shop").user("Ana").recall("tabs"))
    assert [note.partition(" differ")[0] for note in notes] == [
        "/projects/Shop and /projects/shop",
        "/users/Ana and /users/ana",
    ]


@pytest.mark.parametrize(
    "write",
    [
        lambda mem: mem.user("Ana").remember("Ana rows on Sundays"),
        lambda mem: mem.user("Ana").add([{"role": "user", "content": "I row on Sundays"}]),
        lambda mem: mem.user("Ana").remember("Ana has a boat", key="boat", kind="state"),
        lambda mem: mem.remember("Ana rows on Sundays", scope="/users/Ana"),
    ],
)
def test_a_write_says_that_a_name_differs_only_in_case(owner: Memory, write: Callable[[Memory], Any]) -> None:
    owner.user("ana").remember("Ana prefers tabs")
    wrote = write(owner)
    assert len(in_other_case(wrote)) == 1
    first = wrote.turns[0] if isinstance(wrote, Added) else wrote
    assert (first.outcome, first.record.scope) == ("committed", "/users/Ana")
    assert in_other_case(first.receipt) == []


def test_many_writes_say_it_once(owner: Memory) -> None:
    owner.user("ana").remember("Ana prefers tabs")
    outcomes = owner.user("Ana").remember_many(["Ana rows on Sundays", "Ana has a red boat"])
    assert [len(in_other_case(outcome)) for outcome in outcomes] == [1, 0]


def test_a_token_learns_of_no_name_that_it_does_not_reach(owner: Memory) -> None:
    owner.user("ana").remember("Ana prefers tabs")
    ana = owner.with_token(owner.create_token("a", scope="/users/Ana").secret)
    assert in_other_case(ana.recall("tabs")) == in_other_case(ana.remember("Ana rows on Sundays")) == []
    everyone = owner.with_token(owner.create_token("all").secret)
    assert len(in_other_case(everyone.user("Ana").recall("tabs"))) == 1


def test_a_name_whose_memories_all_ended_is_not_said(owner: Memory) -> None:
    gone = owner.user("ana").remember("Ana prefers tabs")
    owner.user("ana").forget(gone.id, reason="left")
    assert in_other_case(owner.user("Ana").recall("tabs")) == []


def test_tools_tell_a_model_the_notes(owner: Memory) -> None:
    owner.user("ana").remember("Ana prefers tabs")
    owner.at(scope="/users/Ana/tasks/1").remember("The task is to sort the tabs")
    for tool, arguments in (("recall", {"query": "tabs"}), ("get_context", {"objective": "tabs"})):
        at_all, of_ana = (handle.call_tool(tool, arguments).text for handle in (owner, owner.user("Ana")))
        assert ("scopes below" in at_all, "lower case" in at_all) == (False, False)
        assert (of_ana.count("scopes below"), of_ana.count("lower case")) == (1, 1)
    assert owner.user("Ana").call_tool("remember", {"text": "Ana rows on Sundays"}).text.count("lower case") == 1
