"""What a verification holds in memory does not grow with the store."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, Memory

pytestmark = pytest.mark.slow
#: Bytes that a page of rows may take, and by how much a store three times as large may differ.
MOST, GROWTH = 30 << 20, 2 << 20


@pytest.fixture(params=["file", "database"])
def owner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    address: Any = tmp_path / "m.db" if request.param == "file" else request.getfixturevalue("database")
    given: dict[str, Any] = {"embedder": None, "config_dir": tmp_path / "config", "maintenance": False}
    with Memory.open(address, actor=Actor.operator("olga"), **given) as memory:
        yield memory


def peak(call: Callable[[], Any]) -> int:
    """Return the most bytes that Python held at once during a call."""
    tracemalloc.start()
    try:
        assert call().ok
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def fill(owner: Memory, first: int, last: int) -> None:
    texts = [{"text": f"The ferry number {n} leaves at {n * 7}", "tier": "archival"} for n in range(first, last)]
    owner.remember_many(texts, batch=1000)
    for n in range(first, last, 10):
        owner.context(f"when does the ferry number {n} leave", budget_tokens=300)
    for n in range(first, last, 20):
        owner.remember(f"Ana takes the ferry number {n}", tier="archival", evidence=[f"mail:{n}"])


def test_a_verification_takes_no_more_memory_in_a_larger_store(owner: Memory) -> None:
    fill(owner, 0, 1_500)
    owner.verify()
    small = peak(owner.verify)
    fill(owner, 1_500, 4_500)
    large = peak(owner.verify)
    assert large < MOST
    assert large - small < GROWTH
