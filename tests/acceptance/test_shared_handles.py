"""What threads may do with one handle, and what a transaction that rolls back must leave as it was."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, Memory
from keepward.core.principals import Trust
from keepward.errors import StoreUnavailable
from keepward.services import read_taint
from keepward.storage.writer import UnitOfWork

OWNER = Actor.operator("ana")


@pytest.fixture(params=["file", pytest.param("database", marks=pytest.mark.slow)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Memory]:
    address = tmp_path / "m.db" if request.param == "file" else request.getfixturevalue("database")

    def open_(**given: Any) -> Memory:
        return Memory.open(address, actor=OWNER, embedder=None, config_dir=tmp_path / "config", **given)

    return open_


@pytest.fixture
def switching() -> Iterator[None]:
    """Let the interpreter change threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_eight_threads_share_a_handle(opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    # More actors read than are kept apart, so that the threads also make room for others.
    monkeypatch.setattr(read_taint, "MAX_READERS", 1_500)
    failed: list[BaseException] = []
    recalled: list[bool] = []
    with opened() as owner:
        crawler = owner.as_actor(Actor.agent("crawler"))
        page = str(crawler.remember("The ferry leaves the island at dawn", tier="archival", source="web").id)
        for number in range(1_000):
            owner.as_actor(Actor.agent(f"reader-{number}")).list_memories(limit=1)

        def work(number: int) -> None:
            try:
                for turn in range(6):
                    agent = owner.as_actor(Actor.agent(f"agent-{number}-{turn}"))
                    recalled.append(page in [hit.memory.id for hit in agent.recall("ferry island dawn").hits])
                    for other in range(15):
                        owner.as_actor(Actor.agent(f"other-{number}-{turn}-{other}")).list_memories(limit=1)
                    said = agent.remember(f"The number {turn} of worker {number} is {number * 1000 + turn}")
                    assert agent.get(str(said.id)).heard is Trust.WEB
                    if turn % 2:
                        agent.context("ferry island dawn")
                        recalled.append(True)
            except BaseException as exc:
                failed.append(exc)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (failed, all(recalled)) == ([], True)
        # Each recall counts a use, and each context another.
        assert owner.get(page).uses == len(recalled)


def test_uses_outlive_a_write_that_rolls_back(opened: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as owner:
        used = str(owner.remember("The ferry leaves the island at dawn").id)
        for _ in range(5):
            owner.recall("ferry island dawn")
        assert owner.get(used).uses == 5

        def fail(writer: UnitOfWork) -> None:
            raise StoreUnavailable("the disk failed")

        with monkeypatch.context() as failing, pytest.raises(StoreUnavailable):
            failing.setattr(UnitOfWork, "finish", fail)
            owner.remember("The lease ends in October")
        assert owner.get(used).uses == 5
        owner.remember("The lease ends in October")
        owner.recall("ferry island dawn")
    with opened() as owner:
        assert owner.get(used).uses == 6


def test_uses_of_one_tenant_wait_for_its_own_write(opened: Callable[..., Memory]) -> None:
    with opened() as owner:
        there = owner.at(tenant="there")
        used = str(there.remember("The ferry leaves the island at dawn").id)
        there.recall("ferry island dawn")
        owner.remember("The lease ends in October")
        with opened() as beside:
            assert beside.at(tenant="there").get(used).uses == 0
    with opened() as owner:
        assert owner.at(tenant="there").get(used).uses == 1
