"""Conditions on a memory's own fields, on time and on place: in lists, counts and searches alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient
from outcomes import kept

from keepward import Actor, Client, Filters, InvalidInput, Memory, Unauthorised
from keepward.http import create_app

ITEMS: dict[str, dict[str, Any]] = {
    "ana": {"city": "Linz", "stars": 4, "tags": ["a", "b"], "user": {"role-name": "cook"}, "fresh": True},
    "ben": {"city": "Graz", "stars": 2.5, "tags": ["a"], "user": {"role-name": "smith"}, "fresh": False},
    "eva": {"city": "Linz", "stars": 5.0, "1st": None},
    "tom": {"stars": "many", "long": "x" * 1_000 + "a"},
}
#: A condition, and whose items meet it.
CASES: list[tuple[dict[str, Any], str]] = [
    ({}, "ana ben eva tom"),
    ({"city": "Linz"}, "ana eva"),
    ({"city": {"$eq": "Linz"}, "stars": {"$gt": 4}}, "eva"),
    ({"city": {"$ne": "Linz"}}, "ben tom"),
    ({"city": {"$ne": "Linz", "$exists": True}}, "ben"),
    ({"city": {"$in": ["Graz", "Wien"]}}, "ben"),
    ({"city": {"$nin": ["Graz", "Wien"]}}, "ana eva tom"),
    ({"stars": {"$gte": 4, "$lt": 5}}, "ana"),
    ({"stars": {"$lte": 1e300}}, "ana ben eva"),
    ({"stars": {"$lt": float("inf")}}, "ana ben eva"),
    ({"stars": float("nan")}, ""),
    ({"stars": 5}, "eva"),
    ({"stars": {"$gt": "l"}}, "tom"),
    ({"fresh": True}, "ana"),
    ({"fresh": 1}, ""),
    ({"tags": ["a"]}, "ben"),
    ({"tags": "a"}, ""),
    ({"user.role-name": "cook"}, "ana"),
    ({"user": {"role-name": "smith"}}, "ben"),
    ({"user": {"$exists": True}}, "ana ben"),
    ({"user": {"$exists": False}}, "eva tom"),
    ({"1st": None}, "eva"),
    ({"long": "x" * 1_000 + "a"}, "tom"),
    ({"long": "x" * 1_000 + "b"}, ""),
]


@pytest.fixture
def items(mem: Memory) -> Memory:
    for name, value in ITEMS.items():
        kept(mem.remember(f"A card of {name}", key=name, metadata=value))
    return mem


def names(found: Any) -> str:
    return " ".join(sorted(each.key for each in found))


@pytest.mark.parametrize(("where", "whose"), CASES)
def test_a_list_has_what_meets_every_condition(items: Memory, where: dict[str, Any], whose: str) -> None:
    assert names(items.list_memories(where=where)) == whose


@pytest.mark.parametrize(("where", "whose"), CASES)
def test_a_search_has_what_meets_every_condition(items: Memory, where: dict[str, Any], whose: str) -> None:
    found = items.recall("whose card is it", where=where, floor=0.0)
    assert names(hit.memory for hit in found) == whose


def test_conditions_may_be_json_text(items: Memory) -> None:
    assert names(items.list_memories(where='{"city": "Graz"}')) == "ben"


def test_counts_are_of_what_meets_every_condition(items: Memory) -> None:
    assert items.facets(filters=Filters(where={"city": "Linz"})).total == 2


def test_condition_applies_to_the_newest_version_or_the_past_one(items: Memory) -> None:
    then = items.head
    kept(items.remember("A card of ben", key="ben", metadata={"city": "Linz"}))
    assert names(items.list_memories(where={"city": "Linz"})) == "ana ben eva"
    assert names(items.list_memories(where={"city": "Linz"}, as_of=then)) == "ana eva"
    assert names(hit.memory for hit in items.recall("card", where={"city": "Graz"}, as_of=then, floor=0.0)) == "ben"


@pytest.mark.parametrize(
    "where",
    [
        *([1], "[1]", "{", {"a": {"$like": "x"}}, {"a": {"$in": "x"}}, {"a": {"$gt": [1]}}, {"a": {"$exists": 1}}),
        *({"$or": [{"a": 1}]}, {"a": {"$gte": 4, "lt": 6}}),
    ],
)
def test_a_condition_that_means_nothing_is_an_error(items: Memory, where: Any) -> None:
    with pytest.raises(InvalidInput):
        items.list_memories(where=where)


def test_a_search_is_narrowed_by_when_it_was_written(mem: Memory, clock: Any) -> None:
    instants = []
    for name in ("ana", "ben", "eva"):
        kept(mem.remember(f"A card of {name}", key=name))
        instants.append(mem.now)
        clock.move(days=1)
    found = mem.recall("whose card is it", since=instants[1], until=instants[2], floor=0.0)
    assert names(hit.memory for hit in found) == "ben"


@pytest.fixture
def nested(owner: Memory) -> Callable[..., Memory]:
    """Handles at scopes, of which three hold one item each."""
    handles = {
        scope: owner.as_actor(Actor.agent("orion")).at(scope=scope)
        for scope in ("/", "/agents", "/agents/orion", "/agents/orion/tasks/1", "/agents/orio")
    }
    for scope in ("/agents/orion", "/agents/orion/tasks/1", "/agents/orio"):
        kept(handles[scope].remember("The crane is red", key=scope.replace("/", "-"), tier="archival"))
    return lambda scope: handles[scope]


def test_subtree_of_a_scope_includes_itself_and_all_below(nested: Callable[..., Memory]) -> None:
    mem = nested("/agents/orion")
    both = "-agents-orion -agents-orion-tasks-1"
    assert names(mem.list_memories(within="/agents/orion")) == both
    assert names(hit.memory for hit in mem.recall("crane", within="/agents/orion", floor=0.0)) == both


def test_scopes_are_counted(nested: Callable[..., Memory]) -> None:
    counted = nested("/agents/orion").facets(filters=Filters(within="/agents/orion"), of=["scope"]).facets
    assert {name: [each.value for each in values] for name, values in counted.items()} == {
        "scope": ["/agents/orion", "/agents/orion/tasks/1"]
    }


@pytest.mark.parametrize(("at", "within"), [("/", "/"), ("/", "/agents"), ("/agents/orion", "/agents")])
def test_an_agent_lists_nothing_but_what_is_its_own(nested: Callable[..., Memory], at: str, within: str) -> None:
    with pytest.raises(Unauthorised):
        nested(at).list_memories(within=within)
    with pytest.raises(Unauthorised):
        nested(at).recall("crane", within=within)


def test_who_decides_lists_everything(owner: Memory, nested: Callable[..., Memory]) -> None:
    assert len(owner.list_memories(within="/")) == 3


def test_a_token_of_the_shared_scope_lists_no_agents_scopes(owner: Memory, nested: Callable[..., Memory]) -> None:
    token = owner.create_token("lyra").secret
    with pytest.raises(Unauthorised):
        owner.with_token(token).at(scope="/agents").list_memories(within="/agents")


def test_a_token_of_an_agent_lists_what_lies_below_it(owner: Memory, nested: Callable[..., Memory]) -> None:
    token = owner.create_token("orion", scope="/agents/orion").secret
    assert len(owner.with_token(token).list_memories(within="/agents/orion")) == 2


@pytest.mark.parametrize(
    "ask", [lambda mem: mem.list_memories(), lambda mem: mem.recall("crane"), lambda mem: mem.list_memories(key="k")]
)
def test_empty_answer_names_scopes_below_to_those_who_may_list(
    owner: Memory, nested: Callable[..., Memory], ask: Callable[[Memory], Any]
) -> None:
    told = "no memory is seen from /; 3 scopes below it hold some: /agents/orio (1), /agents/orion (1), "
    assert [note for note in ask(owner).notes if "below it" in note] == [
        f"{told}/agents/orion/tasks/1 (1); name one as the scope"
    ]
    nested("/agents/orion").archive("-agents-orion", reason="cleared")
    for token, names in (
        (owner.create_token("lyra").secret, ""),
        (owner.create_token("o", scope="/agents/orion").secret, "tasks/1 (1)"),
    ):
        notes = " ".join(ask(owner.with_token(token)).notes)
        assert ("below it" in notes, names in notes) == (bool(names), True)


def test_empty_answer_of_a_nonempty_scope_names_no_other(owner: Memory, nested: Callable[..., Memory]) -> None:
    kept(owner.remember("The office is in Linz"))
    assert not any(
        "below it" in note for found in (owner.list_memories(key="k"), owner.recall("crane")) for note in found.notes
    )


@pytest.fixture
def told_of_spring(mem: Memory) -> Memory:
    """A store of 1 January 2026, with memories that tell of the spring of 2025 and of no time."""
    for name, kind, at in (
        ("march", "event", "2025-03-14T09:00:00Z"),
        ("april", "event", "2025-04-01T00:00:00Z"),
        ("fact of march", "fact", "2025-03-31T23:59:59Z"),
        ("event of now", "event", None),
        ("fact of now", "fact", None),
    ):
        tier = "episodic" if kind == "event" else "archival"
        kept(mem.remember(f"The {name} card of Ana", tier=tier, kind=kind, tags=[name], occurred_at=at))
    return mem


MARCH = {"occurred_since": "2025-03-01", "occurred_until": "2025-04-01"}


@pytest.mark.parametrize(
    ("asked", "passing"),
    [
        (MARCH, "fact of march, march"),
        ({"occurred_since": "2025-04-01"}, "april, event of now"),
        ({"occurred_until": "2025-04-01"}, "fact of march, march"),
        ({"since": "2025-03-01", "until": "2025-04-01"}, ""),
        (MARCH | {"until": "2025-04-01"}, ""),
        (MARCH | {"kinds": ["event"]}, "march"),
    ],
)
def test_memories_are_narrowed_by_when_it_happened(told_of_spring: Memory, asked: dict[str, Any], passing: str) -> None:
    mem = told_of_spring
    for found in (
        mem.list_memories(**asked),
        mem.list_memories(**asked, as_of=mem.head),
        [hit.memory for hit in mem.recall("the card of Ana", **asked)],
        [hit.memory for hit in mem.recall("the card of Ana", **asked, as_of=mem.head)],
    ):
        assert ", ".join(sorted(tag for each in found for tag in each.tags)) == passing
    assert mem.facets(filters=Filters(**asked), of=["tag"]).total == len([each for each in passing.split(", ") if each])


def test_a_client_narrows_by_when_it_happened(owner: Memory, told_of_spring: Memory) -> None:
    with TestClient(create_app(owner)) as server:
        client = Client("http://127.0.0.1:8321", owner.create_token("claude").secret, transport=server)
        since, until = datetime(2025, 3, 1, tzinfo=UTC), datetime(2025, 4, 1, tzinfo=UTC)
        for asked in (MARCH, {"occurred_since": since, "occurred_until": until}):
            found = client.list_memories(**asked), [hit.memory for hit in client.recall("the card of Ana", **asked)]
            assert [sorted(each.tags[0] for each in some) for some in found] == [["fact of march", "march"]] * 2
            assert client.facets(filters=Filters(**asked), of=["tag"]).total == 2
        with pytest.raises(InvalidInput, match="occurred_since"):
            client.list_memories(occurred_since="last spring")


def test_a_time_that_is_none_is_refused_by_its_name(mem: Memory) -> None:
    with pytest.raises(InvalidInput, match="occurred_since is"):
        mem.list_memories(occurred_since="last spring")
