"""What is awaited in a thread is over when its await ends."""

from __future__ import annotations

import asyncio
import threading

import pytest

from keepward.integrations.messages import async_method, run_shielded


def test_twice_cancelled_await_ends_after_its_operation() -> None:
    began, go = threading.Event(), threading.Event()
    done: list[str] = []

    def write() -> None:
        began.set()
        assert go.wait(60)
        done.append("written")

    async def cancelled() -> None:
        task = asyncio.ensure_future(run_shielded(write))
        while not began.is_set():
            await asyncio.sleep(0)
        for _ in range(2):
            task.cancel()
            await asyncio.wait({task}, timeout=0)
        assert not task.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(task), 60)

    asyncio.run(cancelled())
    assert done == ["written"]


def test_method_is_awaited_by_its_name() -> None:
    class Words(str):
        louder, part = async_method("upper"), "quiet"
        softer = async_method("lower", "part")

    async def both() -> tuple[str, str]:
        return await Words("loud").louder(), await Words("loud").softer()

    assert asyncio.run(both()) == ("LOUD", "quiet")
