"""The awaited handle: one hop a verb, and what a cancellation leaves behind."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, AsyncMemory, Memory, errors
from keepward.async_memory import ThreadPool
from support.clock import SteppingClock


def opened(folder: Path, **named: Any) -> Any:
    return AsyncMemory.open(
        folder / "m.db",
        actor=Actor.operator("ana"),
        embedder=None,
        clock=SteppingClock(),
        config_dir=folder / "config",
        **named,
    )


#: Threads of tests before, which may wait for ever.
others: list[threading.Thread] = []


@pytest.fixture(autouse=True)
def _others() -> None:
    others[:] = threading.enumerate()


def ours() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("keepward") and each not in others]


class Held:
    """A call that lasts until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        self.go.wait(10)
        self.ended.set()
        return "done"


async def begun(held: Held) -> None:
    while not held.begun.is_set():
        await asyncio.sleep(0)


def test_a_draft_is_proposed_at_the_end_of_its_block(tmp_path: Path) -> None:
    async def main() -> None:
        async with await opened(tmp_path) as memory:
            async with memory.draft(reason="two at once") as draft:
                name = await draft.insert("Ana prefers tabs")
                await draft.append(name, "and dark mode")
            assert (len(draft), draft.outcome.outcome) == (2, "committed")

    asyncio.run(main())


def test_journal_arrives_in_order_for_any_chunk_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepward.async_memory._COMMITS_PER_READ", 3)

    async def main() -> None:
        async with await opened(tmp_path) as memory:
            for n in range(8):
                await memory.remember(f"it stands at {n}", key="count", kind="state")
            assert [commit.seq async for commit, _ in memory.journal(after=2)] == list(range(3, 9))

    asyncio.run(main())


def test_handles_at_other_places_share_store_and_threads(tmp_path: Path) -> None:
    async def main() -> None:
        async with await opened(tmp_path) as memory:
            token = await memory.create_token("orion", scope="/agents/orion")
            handles = [memory.at(scope="orion"), memory.as_actor(Actor.agent()), await memory.with_token(token.secret)]
            assert {each._threads for each in handles} == {memory._threads}

    asyncio.run(main())


def test_variables_of_the_context_go_along() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")

    async def main() -> str:
        name.set("orion")
        threads = ThreadPool()
        try:
            return await threads.run(name.get)
        finally:
            await threads.end(lambda: None)

    assert asyncio.run(main()) == "orion"


# --- cancellation


def test_a_call_that_was_cancelled_before_it_began_never_happens() -> None:
    async def main() -> bool:
        threads, happened = ThreadPool(), threading.Event()
        held = [Held() for _ in range(8)]
        busy = [asyncio.ensure_future(threads.run(each)) for each in held]
        for each in held:
            await begun(each)
        waiting = asyncio.ensure_future(threads.run(happened.set))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        for each in held:
            each.go.set()
        await asyncio.gather(*busy)
        await threads.end(lambda: None)
        return happened.is_set()

    assert asyncio.run(main()) is False


def test_a_second_cancellation_does_not_end_it_early() -> None:
    async def main() -> tuple[bool, bool]:
        threads, held = ThreadPool(), Held()
        task = asyncio.ensure_future(threads.run(held))
        await begun(held)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        early = task.done()
        held.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await threads.end(lambda: None)
        return early, held.ended.is_set()

    assert asyncio.run(main()) == (False, True)


def test_an_error_of_what_was_cancelled_is_nobodys() -> None:
    def failing(held: Held) -> None:
        held()
        raise errors.Conflict

    async def main() -> list[Any]:
        told: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        threads, held = ThreadPool(), Held()
        task = asyncio.ensure_future(threads.run(failing, held))
        await begun(held)
        task.cancel()
        await asyncio.sleep(0)
        held.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await threads.end(lambda: None)
        return told

    assert asyncio.run(main()) == []


@pytest.mark.parametrize("turns", [0, 2, 200])
def test_cancelled_write_is_atomic_and_the_next_one_works(tmp_path: Path, turns: int) -> None:
    async def main() -> None:
        async with await opened(tmp_path) as memory:
            task = asyncio.ensure_future(memory.remember("Ana prefers tabs"))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            settled = (await asyncio.gather(task, return_exceptions=True))[0]
            found = await memory.list_memories()
            assert len(found) == (await memory.status())["commits"] <= 1
            if not isinstance(settled, asyncio.CancelledError):
                assert found == list(settled.records)
            assert (await memory.remember("lunch is at noon")).outcome == "committed"
            assert (await memory.verify()).ok

    asyncio.run(main())


def test_what_was_opened_for_no_one_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, held = threading.Event(), Held()

    class Slow(Memory):
        def close(self) -> None:
            super().close()
            closed.set()

    def opening(*args: Any, **named: Any) -> Memory:
        held()
        return Slow.open(tmp_path / "m.db", embedder=None, config_dir=tmp_path)

    from keepward import async_memory as handle

    async def main() -> None:
        task = asyncio.ensure_future(handle._open_async(opening)())
        await begun(held)
        task.cancel()
        await asyncio.sleep(0)
        held.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (closed.is_set(), ours()) == (True, [])


# --- closing


def test_closing_waits_for_what_is_under_way() -> None:
    async def main() -> list[bool]:
        threads, held, seen = ThreadPool(), Held(), []
        task = asyncio.ensure_future(threads.run(held))
        await begun(held)
        closing = asyncio.ensure_future(threads.end(lambda: seen.append(held.ended.is_set())))
        while not threads._pool._shutdown:
            await asyncio.sleep(0)
        for _ in range(1000):
            await asyncio.sleep(0)
        held.go.set()
        await asyncio.gather(task, closing)
        return seen

    assert asyncio.run(main()) == [True]


def test_a_backup_is_brought_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with await opened(tmp_path) as memory:
            await memory.remember("Ana prefers tabs")
            await memory.backup(tmp_path / "copy.db")
        owner = Actor.operator("ana")
        done = await AsyncMemory.restore_backup(
            tmp_path / "copy.db", tmp_path / "again.db", actor=owner, config_dir=tmp_path / "config"
        )
        assert done.path == str(tmp_path / "again.db")

    asyncio.run(main())


def test_async_with_opens_a_store(tmp_path: Path) -> None:
    async def main() -> tuple[bool, str]:
        async with opened(tmp_path) as memory:
            out = await memory.remember("the office is in Linz")
        with pytest.raises(errors.InvalidInput, match="closed"):
            await memory.list_memories()
        return out.ok, out.outcome

    assert asyncio.run(main()) == (True, "committed")
    assert ours() == []


def test_a_store_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path, create=False):
            raise AssertionError("it is not there")

    with pytest.raises(errors.KeepwardError):
        asyncio.run(main())
    assert ours() == []
