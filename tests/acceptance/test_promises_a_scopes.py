"""Who sees what: scopes, agents beside each other, and writers at the same time (promises A2, A20, A40, A68-A71)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from outcomes import kept, refused

from keepward import InvalidInput, Memory, Policy


@pytest.mark.promise("A2", "A68", "A69", "Z11", "B69")
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


@pytest.mark.promise("A69")
def test_log_skips_commits_of_others_and_still_fills_its_page(mem: Memory) -> None:
    orion, elysia = mem.at(scope="orion"), mem.at(scope="elysia")
    for n in range(3):
        kept(orion.remember(f"crane {n} is red", tier="archival"))
        kept(elysia.remember(f"ferry {n} is blue", tier="archival"))
    assert [each.commit.seq for each in orion.log(limit=2)] == [5, 3]
    assert [each.commit.seq for each in orion.log(limit=2, before=3)] == [1]


@pytest.mark.promise("A71", "D37", "Z29")
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
