"""Who sees what: scopes, agents beside each other, and writers at the same time (promises A2, A20, A40, A68-A71)."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from outcomes import held, kept, refused

from keepward import Actor, InvalidInput, KeepwardError, Memory, NotFound, Policy, Unauthorised
from keepward.interchange import write_vault

HERS = "The lighthouse keeper likes liquorice"


@pytest.mark.promise("A2", "A68", "A69")
def test_agent_reads_shared_memories_and_its_own(mem: Memory) -> None:
    for scope in ("shared", "orion", "elysia"):
        kept(mem.remember(f"the crane of {scope} is red", scope=scope, tier="archival"))
    for name in ("orion", "elysia"):
        seen = {f"the crane of {who} is red" for who in ("shared", name)}
        reader = mem.at(scope=name)
        assert {each.text for each in reader.list_memories()} == seen
        assert {hit.memory.text for hit in reader.recall("which crane is red")} == seen
    assert {each.text for each in mem.list_memories()} == {"the crane of shared is red"}


@pytest.mark.promise("A20", "A68")
def test_the_three_names_work_out_of_the_box(mem: Memory) -> None:
    names = ("shared", "orion", "elysia")
    assert [kept(mem.remember(f"I am {name}", scope=name)).scope for name in names] == [
        "/",
        "/agents/orion",
        "/agents/elysia",
    ]


@pytest.mark.promise("A20", "A40", "A91")
def test_only_scopes_that_policy_names_are_written(opened: Callable[..., Memory]) -> None:
    with opened("few", policy=Policy(scopes=("shared", "orion"))) as mem:
        kept(mem.remember("the ferry is blue", scope="shared"))
        kept(mem.remember("the crane is red", scope="orion"))
        assert refused(mem.remember("the buoy is green", scope="elysia")) == {"unknown_scope"}
        made = mem.list_memories()[0]
        assert refused(mem.move(made.id, scope="elysia", reason="for her")) == {"unknown_scope"}


@pytest.mark.promise("A40")
@pytest.mark.parametrize("name", ["", "/agents/../orion", "or ion", "/", "Orión"])
def test_a_name_that_is_no_scope_is_an_error(mem: Memory, name: str) -> None:
    if name == "/":
        assert mem.at(scope=name).scope == "/"
        return
    with pytest.raises(InvalidInput, match="scope"):
        mem.remember("the ferry is blue", scope=name)


@pytest.fixture
def hers(owner: Memory) -> dict[str, Any]:
    """What there is of one agent that another agent must not read."""
    elysia = owner.at(scope="elysia").as_actor(Actor.agent("elysia"))
    outcome = elysia.remember(HERS, tier="archival", key="keeper", aliases=["old-7"])
    made = kept(outcome)
    waiting = held(elysia.remember(f"{HERS} a lot", tier="archival", confidence=0.1))
    seen = elysia.context("what does the keeper like")
    assert HERS in seen.text
    commit = elysia.log()[0].commit
    receipts = {"receipt": outcome.receipt.id, "context": seen.receipt.id}
    return {"id": made.id, "commit": commit.id, "waiting": waiting.id, **receipts}


ROUTES: dict[str, Callable[[Memory, dict[str, Any]], object]] = {
    "recall": lambda orion, _: list(orion.recall("what does the lighthouse keeper like")),
    "recall of the past": lambda orion, _: list(orion.recall("lighthouse keeper liquorice", as_of=1)),
    "list_memories": lambda orion, _: orion.list_memories(include_ended=True, limit=None),
    "find by key": lambda orion, _: orion.list_memories(key="keeper"),
    "find in the past": lambda orion, _: orion.list_memories(as_of=1),
    "get": lambda orion, hers: orion.get(hers["id"]),
    "get by alias": lambda orion, _: orion.get("old-7"),
    "history": lambda orion, hers: orion.history(hers["id"]),
    "context": lambda orion, _: orion.context("what does the lighthouse keeper like"),
    "snapshot": lambda orion, _: orion.snapshot(),
    "memory block": lambda orion, _: orion.memory_block("what does the lighthouse keeper like"),
    "replay": lambda orion, hers: orion.replay(hers["context"]),
    "receipt of a commit": lambda orion, hers: orion.receipt(hers["receipt"]),
    "receipt of a context": lambda orion, hers: orion.receipt(hers["context"]),
    "log": lambda orion, _: orion.log(),
    "show": lambda orion, hers: orion.show(hers["commit"]),
    "show by number": lambda orion, _: orion.show("1"),
    "diff": lambda orion, _: orion.diff(0),
    "pending": lambda orion, _: orion.pending(state="all"),
    "rollback": lambda orion, hers: orion.rollback(hers["commit"], dry_run=True),
    "export": lambda orion, _: write_vault(orion, io.StringIO()),
    "journal": lambda orion, _: list(orion.journal()),
    "status": lambda orion, _: orion.status(),
    "same text": lambda orion, _: orion.remember(HERS, tier="archival"),
    "same text in her scope": lambda orion, _: orion.remember(HERS, tier="archival", scope="elysia"),
    "same key in her scope": lambda orion, _: orion.remember("nothing", tier="archival", scope="elysia", key="keeper"),
    "revise": lambda orion, hers: orion.revise(hers["id"], "He does not", reason="malice"),
    "derive": lambda orion, hers: orion.remember("a guess", derived_from=[hers["id"]]),
}


@pytest.mark.promise("A69", "D35", "D36")
@pytest.mark.parametrize("route", sorted(ROUTES))
def test_no_route_shows_an_agent_what_is_anothers(owner: Memory, hers: dict[str, Any], route: str) -> None:
    orion = owner.at(scope="orion").as_actor(Actor.agent("orion"))
    try:
        answer = ROUTES[route](orion, hers)
    except (NotFound, Unauthorised, KeepwardError) as fault:
        answer = str(fault)
    shown = repr(answer)
    if route == "same text":
        # He says so himself: it is a memory of his own, and not hers confirmed.
        assert orion.list_memories()[0].id != hers["id"]
    else:
        assert "liquorice" not in shown
    assert owner.at(scope="elysia").list_memories(key="keeper")[0].version == 1


@pytest.mark.promise("A69")
def test_log_skips_commits_of_others_and_still_fills_its_page(mem: Memory) -> None:
    orion, elysia = mem.at(scope="orion"), mem.at(scope="elysia")
    for n in range(3):
        kept(orion.remember(f"crane {n} is red", tier="archival"))
        kept(elysia.remember(f"ferry {n} is blue", tier="archival"))
    assert [each.commit.seq for each in orion.log(limit=2)] == [5, 3]
    assert [each.commit.seq for each in orion.log(limit=2, before=3)] == [1]


@pytest.mark.promise("A71", "D37")
def test_two_writers_at_once_lose_tear_and_double_nothing(opened: Callable[..., Memory]) -> None:
    def write(name: str) -> None:
        with opened("crowd") as mem:
            for n in range(6):
                kept(mem.remember(f"{name} saw ship number {n}", tier="archival"))
                mem.remember(f"{name} {n}", key="guestbook", access="append", tier="archival", confidence=0.9)

    with opened("crowd") as mem:
        kept(mem.remember("open", key="guestbook", access="append", tier="archival"))
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, ("ana", "ben")))
        texts = sorted(each.text for each in mem.list_memories(limit=None) if each.key is None)
        assert texts == sorted(f"{who} saw ship number {n}" for who in ("ana", "ben") for n in range(6))
        (book,) = mem.list_memories(key="guestbook")
        assert sorted(book.text.split("\n")) == sorted(
            ["open", *(f"{w} {n}" for w in ("ana", "ben") for n in range(6))]
        )
        assert book.version == 13
        assert mem.verify().ok


WRITER = """
import sys
from pathlib import Path
from keepward import Memory
with Memory.open(sys.argv[1], embedder=None, config_dir=Path(sys.argv[2])) as mem:
    for n in range(25):
        assert mem.remember(f"{sys.argv[3]} saw ship number {n}", tier="archival").outcome == "committed"
        assert mem.remember(f"{sys.argv[3]} {n}", key="guestbook", tier="archival").outcome == "committed"
"""


@pytest.mark.slow
@pytest.mark.promise("A71")
def test_processes_that_write_at_once_lose_tear_and_double_nothing(
    tmp_path: Path, opened: Callable[..., Memory]
) -> None:
    with opened("crowd") as mem:
        kept(mem.remember("open", key="guestbook", access="append", tier="archival"))
        command = [sys.executable, "-c", WRITER, str(tmp_path / "crowd.db"), str(tmp_path / "config")]
        running = [subprocess.Popen([*command, who]) for who in ("ana", "ben", "cy")]
        assert [each.wait(60) for each in running] == [0, 0, 0]
        assert len([each for each in mem.list_memories(limit=None) if each.key is None]) == 75
        (book,) = mem.list_memories(key="guestbook")
        assert (book.version, len(set(book.text.split("\n")))) == (76, 76)
        assert mem.verify().ok
