"""Handles of users, agents and projects: where they write, what they read, and what keeps two users apart."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record

from keepward import Actor, AsyncMemory, Insert, KeepwardError, Memory
from keepward.core.messages import Added
from keepward.core.principals import Trust
from keepward.errors import Conflict, InvalidInput, Unauthorised

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "users.md"
Enter = Callable[..., Memory]


def texts(mem: Memory) -> set[str]:
    return {each.text for each in mem.list_memories(limit=None)}


@pytest.fixture
def filled_store(owner: Memory) -> Memory:
    """A store where each scope says its own name."""
    places = {
        "everybody": owner,
        "ana": owner.user("ana"),
        "bob": owner.user("bob"),
        "shop": owner.project("shop"),
        "ana in shop": owner.project("shop").user("ana"),
        "bob in shop": owner.project("shop").user("bob"),
        "ana in mill": owner.project("mill").user("ana"),
    }
    for name, handle in places.items():
        committed_record(handle.remember(f"This is of {name}"))
    return owner


@pytest.mark.parametrize(
    ("at", "seen"),
    [
        (lambda mem: mem.user("ana"), {"ana", "everybody"}),
        (lambda mem: mem.project("shop"), {"shop", "everybody"}),
        (lambda mem: mem.project("shop").user("ana"), {"ana in shop", "shop", "ana", "everybody"}),
        (lambda mem: mem.user("ana").project("shop"), {"ana in shop", "shop", "ana", "everybody"}),
        (lambda mem: mem.project("shop").agent("planner"), {"shop", "everybody"}),
        (lambda mem: mem.agent("planner").user("bob"), {"bob", "everybody"}),
    ],
)
def test_a_handle_reads_its_own_scope_and_those_above(
    filled_store: Memory, at: Callable[[Memory], Memory], seen: set[str]
):
    handle = at(filled_store.as_actor(Actor.agent()))
    assert texts(handle) == {f"This is of {name}" for name in seen}
    assert {hit.memory.text for hit in handle.recall("This is of everybody", limit=50)} == texts(handle)


def test_handles_nest_into_one_scope(mem: Memory) -> None:
    assert mem.user("ana").scope == "/users/ana"
    assert mem.agent("planner").scope == "/agents/planner"
    assert mem.project("shop").user("ana").scope == "/projects/shop/users/ana"
    assert mem.user("ana").project("shop").scope == "/projects/shop/users/ana"
    assert mem.project("shop").agent("planner").scope == "/projects/shop"
    assert mem.project("shop").user("ana").user("bob").scope == "/projects/shop/users/bob"


def test_what_a_user_handle_writes_is_about_the_user(mem: Memory) -> None:
    ana = mem.user("ana")
    assert committed_record(ana.remember("I moved to Porto")).subject == "ana"
    assert committed_record(ana.remember("Bob is my brother", subject="bob")).subject == "bob"
    said = ana.add([{"role": "user", "content": "I moved to Faro."}, {"role": "assistant", "content": "Noted!"}])
    assert {each.record.subject for each in said.turns} == {"ana"}
    assert {each.record.scope for each in said.turns} == {"/users/ana"}
    with ana.session("talk") as talk:
        for number in range(3):
            talk.user(f"I have {number + 2} cats in Faro")
    assert [each.subject for each in ana.list_memories(kinds=["summary"])] == ["ana"]


def test_a_session_of_a_user_handle_is_about_the_user(mem: Memory) -> None:
    ana = mem.user("ana")
    with ana.session("s1") as talk:
        turn = talk.user("I moved to Faro.").turns[0].record
        other = ana.session("s1", subject="bob").user("He moved to Lund.").turns[0].record
    assert (turn.subject, turn.scope, turn.session) == ("ana", "/users/ana", "s1")
    assert other.subject == "bob"
    assert "Faro" in talk.context("Did I move to Faro?").text


def test_an_awaited_session_of_a_user_has_the_subject(mem: Memory) -> None:
    async def spoken() -> Added:
        async with AsyncMemory(mem).user("ana").session("s1") as talk:
            return await talk.user("I moved to Faro.")

    assert asyncio.run(spoken()).turns[0].record.subject == "ana"


def test_a_shared_memory_is_about_no_one(mem: Memory) -> None:
    assert committed_record(mem.user("ana").remember("The office closes at six", scope="/")).subject is None


def test_no_handle_raises_rights_or_trust(owner: Memory, mem: Memory) -> None:
    for handle in (mem.user("ana"), mem.agent("planner"), mem.project("shop").agent("planner").user("ana")):
        assert handle.actor.rights is mem.actor.rights
        assert committed_record(handle.remember(f"This is from {handle!r}")).trust is Trust.AGENT
        with pytest.raises(Unauthorised):
            handle.create_token("more")
    assert owner.user("ana").actor == owner.actor
    assert owner.agent("planner").actor == Actor.agent("planner")
    reviewer = owner.as_actor(Actor.reviewer())
    assert reviewer.agent("planner").actor == reviewer.actor


def test_an_agent_answers_for_what_its_handle_read(owner: Memory, mem: Memory) -> None:
    committed_record(owner.remember("The vault opens with a song", source="web"))
    assert mem.recall("How does the vault open?").hits
    assert (
        committed_record(mem.agent("other").remember("The vault opens with a song, they say")).effective_trust
        is Trust.WEB
    )


def test_a_project_block_is_nearer_than_one_of_the_user(owner: Memory) -> None:
    handle = owner.project("a").user("a-very-long-name")
    for each, text in ((owner.user("a-very-long-name"), "of the user"), (owner.project("a"), "of the project")):
        committed_record(each.remember(f"This block is {text}", tier="core", key="mission"))
    assert handle.get("mission").text == "This block is of the project"
    assert "This block is of the project" in handle.snapshot().text
    assert handle.status()["blocks"]["mission"]["id"] == handle.get("mission").id


def test_users_and_projects_are_listed_with_counts(filled_store: Memory, entering: Enter) -> None:
    assert [(each.name, each.memories) for each in filled_store.users()] == [("ana", 3), ("bob", 2)]
    assert [(each.name, each.memories) for each in filled_store.projects()] == [("mill", 1), ("shop", 3)]
    assert [(each.name, each.memories) for each in filled_store.project("shop").users()] == [("ana", 1), ("bob", 1)]
    token = entering(token=filled_store.user("ana").create_token("ana").secret)
    assert [(each.name, each.memories) for each in token.users()] == [("ana", 1)]
    assert token.projects() == []


def test_erasing_a_user_includes_citing_memories(filled_store: Memory) -> None:
    ana = filled_store.user("ana")
    theirs = committed_record(ana.remember("I take insulin twice a day"))
    about = committed_record(filled_store.remember("Ana sits by the window", subject="ana"))
    citing = committed_record(filled_store.remember("Order a fridge for the office", evidence=[theirs.id]))
    plan = ana.erase()
    assert {theirs.id, about.id, citing.id} < {each.id for each in plan.targets}
    assert ana.get(theirs.id) == theirs
    ana.erase(plan.digest)
    assert texts(filled_store.user("ana")) == {"This is of everybody"}
    assert [each.name for each in filled_store.users()] == ["bob"]
    assert "This is of shop" in texts(filled_store.project("shop").user("ana"))
    with pytest.raises(Conflict):
        ana.erase()
    with pytest.raises(InvalidInput, match="say what to erase"):
        filled_store.erase()
    with pytest.raises(Unauthorised):
        filled_store.as_actor(Actor.agent()).user("bob").erase()


@pytest.mark.parametrize("name", ["", "a/b", "..", "ana@example.com", "Zoë", "x" * 65, None])
def test_a_name_that_is_none_is_refused(mem: Memory, name: Any) -> None:
    for give in (mem.user, mem.agent, mem.project):
        with pytest.raises(InvalidInput, match="an id such as u-1042"):
            give(name)


@pytest.mark.parametrize("names", [["x"] * 9, ["a\nb"], ["x" * 65], [7]])
def test_further_names_are_a_few_short_lines(mem: Memory, names: Any) -> None:
    with pytest.raises(InvalidInput, match="name"):
        mem.user("ana", names=names)


#: Ways to name somebody else, or another place.
PLACES: list[Callable[[Memory], Memory]] = [
    lambda mem: mem,
    lambda mem: mem.user("bob"),
    lambda mem: mem.user("eve"),
    lambda mem: mem.project("shop"),
    lambda mem: mem.project("shop").user("ana"),
    lambda mem: mem.project("shop").user("bob"),
    lambda mem: mem.agent("planner"),
    lambda mem: mem.agent("planner").user("bob"),
    lambda mem: mem.at(scope="/"),
    lambda mem: mem.at(scope="/users"),
    lambda mem: mem.at(scope="/users/bob"),
    lambda mem: mem.at(scope="/users/ana/users/bob"),
    lambda mem: mem.at(scope="/users/ana/tasks/1"),
    lambda mem: mem.at(tenant="other"),
]
#: What is tried there; ``at`` names a memory of Bob's and one that is shared.
TRIES: list[Callable[[Memory, dict[str, str]], Any]] = [
    lambda mem, at: mem.recall("lighthouse", limit=50),
    lambda mem, at: mem.recall("lighthouse", within="/users/bob"),
    lambda mem, at: mem.recall("lighthouse", subject="bob"),
    lambda mem, at: mem.context("lighthouse").text,
    lambda mem, at: mem.list_memories(limit=None),
    lambda mem, at: mem.list_memories(scopes=["/users/bob", "/projects/shop"], limit=None),
    lambda mem, at: mem.list_memories(subject="bob", below=True),
    lambda mem, at: mem.facets(below=True),
    lambda mem, at: mem.sources(below=True),
    lambda mem, at: mem.users(),
    lambda mem, at: mem.projects(),
    lambda mem, at: mem.get(at["bob"]),
    lambda mem, at: mem.history(at["bob"]),
    lambda mem, at: mem.lineage(at["bob"]),
    lambda mem, at: mem.log(limit=200),
    lambda mem, at: mem.diff(0),
    lambda mem, at: mem.status()["by_scope"],
    lambda mem, at: mem.snapshot().text,
    lambda mem, at: mem.remember("Gulls nest here", scope="/users/bob"),
    lambda mem, at: mem.remember("Gulls nest here", scope="/"),
    lambda mem, at: mem.remember("Gulls nest here", scope="/projects/shop"),
    lambda mem, at: mem.remember("Gulls nest here", scope="/projects/shop/users/ana"),
    lambda mem, at: mem.add([{"role": "user", "content": "Remember that gulls nest here."}]),
    lambda mem, at: mem.propose([Insert(id="n1", text="Gulls nest here", scope="/users/bob")], reason="x"),
    lambda mem, at: mem.revise(at["bob"], "Gulls nest here", reason="x"),
    lambda mem, at: mem.forget(at["shared"], reason="x"),
    lambda mem, at: mem.move(at["shared"], scope="/users/ana", reason="x"),
    lambda mem, at: mem.supersede(at["shared"], at["ana"], reason="x"),
    lambda mem, at: mem.remember("Gulls nest here", key="light", kind="state", scope="/users/bob"),
    lambda mem, at: mem.remember("Gulls nest here", derived_from=[at["bob"]]),
    lambda mem, at: mem.erase(subject="bob"),
    lambda mem, at: mem.create_token("more"),
]


@pytest.mark.slow
def test_500_calls_with_tokens_of_users_leak_and_write_nothing(owner: Memory, entering: Enter) -> None:
    """Each token of Ana's tries each call from each place that it can name; none sees Bob's, none writes elsewhere."""
    secret = "lighthouse of Bob"
    at = {
        "bob": committed_record(owner.user("bob").remember(f"The {secret} is in Sagres", key="light")).id,
        "shared": committed_record(owner.remember("A lighthouse is white")).id,
        "ana": committed_record(owner.user("ana").remember("My lighthouse is red")).id,
    }
    committed_record(owner.project("shop").remember(f"The {secret} is on the sign of the shop"))
    committed_record(owner.project("shop").user("bob").remember(f"The {secret} is a till"))
    committed_record(owner.project("shop").user("ana").remember(f"The {secret} is Ana's till"))
    others = {each.id: each for each in owner.list_memories(limit=None, below=True) if each.scope != "/users/ana"}
    rights = (None, ["read"], ["read", "propose", "sensitive", "consent"])
    tokens = [entering(token=owner.user("ana").create_token("ana", can=can).secret) for can in rights]
    tried = answered = 0
    for token, place, call in itertools.product(tokens, PLACES, TRIES):
        tried += 1
        try:
            said = str(call(place(token), at))
        except KeepwardError as fault:
            said = str(fault)
        else:
            answered += 1
        assert secret not in said
        assert "bob" not in said.replace("/users/ana/users/bob", "").casefold()
    assert tried >= 500
    assert answered > 100
    after = {each.id: each for each in owner.list_memories(limit=None, below=True, include_ended=True)}
    assert {name: after[name] for name in others} == others
    assert all(each.scope.startswith("/users/ana") for name, each in after.items() if name not in others)
    assert not [
        each for each in owner.pending() for step in each.steps if not step.after.scope.startswith("/users/ana")
    ]


def test_a_project_token_reads_no_users_own_memories(filled_store: Memory, entering: Enter) -> None:
    shop = entering(token=filled_store.project("shop").create_token("shop").secret)
    assert texts(shop.user("ana")) == {"This is of ana in shop", "This is of shop", "This is of everybody"}
    both = entering(token=filled_store.project("shop").user("ana").create_token("both").secret)
    assert "This is of ana" in texts(both)
    assert both.remember("This is new", scope="/users/ana").outcome == "refused"
    wide = entering(token=filled_store.create_token("wide").secret)
    assert "This is of ana" in texts(wide.project("shop").user("ana"))


def test_a_token_of_a_user_cannot_share(owner: Memory) -> None:
    with pytest.raises(InvalidInput, match="writes that user alone"):
        owner.user("ana").create_token("ana", can=["read", "propose", "share"])


@pytest.mark.parametrize("stored", ["I keep two hens", "Ana keeps two hens", "The user keeps two hens"])
@pytest.mark.parametrize("asked", ["What do I keep?", "What does the user keep?", "What does Ana keep?"])
def test_i_the_user_and_the_name_are_one_person(opened: Callable[..., Memory], stored: str, asked: str) -> None:
    with opened("persons", embedder="minilm", actor=Actor.operator("olga")) as owner:
        for person in ("bob", "eve"):
            for text in ("I keep two cats", f"{person.capitalize()} keeps two dogs", "The user keeps two goats"):
                committed_record(owner.remember(f"{text} in {person.capitalize()}'s barn", subject=person))
        hens = committed_record(owner.remember(stored, subject="ana"))
        ana = owner.user("ana", names=["Ana Silva"])
        assert ana.recall(asked, limit=1).hits[0].memory == ana.get(hens.id)
        assert ana.get(hens.id).text == stored


def test_names_of_a_user_find_nothing_by_themselves(owner: Memory) -> None:
    committed_record(owner.remember("Silva is a river in Galicia"))
    ana = owner.user("ana", names=["Ana Silva"])
    assert all(hit.weak for hit in ana.recall("Which car do I drive?").hits)


def test_a_message_of_a_user_is_the_users(mem: Memory) -> None:
    said = mem.user("ana").add([{"role": "user", "content": "I moved to Faro."}])
    assert said.turns[0].record.speaker == "user"
    assert mem.add([{"role": "user", "content": "I moved to Lund."}], subject="Ana").turns[0].record.speaker == "Ana"


def test_the_sample_of_the_page_runs_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0], names)
    context, found = capsys.readouterr().out.split("Recall: ")
    assert "I moved to Porto." in context
    assert "Porto" not in found
    assert "Member(name='ana', memories=2), Member(name='bob', memories=1)" in found
    assert "Member(name='shop', memories=1)" in found
    assert [each.name for each in names["mem"].users()] == ["bob"]
    names["mem"].close()
