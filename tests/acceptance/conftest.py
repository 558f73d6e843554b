"""What acceptance tests stand on: a fresh store, its handles, and a clock that moves when told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, Memory
from support.database import emptied
from support.embedders import embedder


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.instant = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.instant

    def move(self, **span: float) -> None:
        self.instant += timedelta(**span)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module with ``ON_BOTH_DATABASES`` on a file and, among the slow tests, on PostgreSQL."""
    if "place_of" in metafunc.fixturenames and getattr(metafunc.module, "ON_BOTH_DATABASES", False):
        kinds = ["file", pytest.param("database", marks=pytest.mark.slow)]
        metafunc.parametrize("place_of", kinds, indirect=True)


@pytest.fixture
def place_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Path | str]:
    """Return the place of a store by its name: a file, or a schema of the database of the tests."""
    if getattr(request, "param", "file") == "file":
        return lambda name: tmp_path / f"{name}.db"
    import psycopg

    address, made = request.getfixturevalue("postgres").address(), set[str]()

    def schema(name: str) -> str:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS store_{name}".encode())
        place = f"{address}&options=-csearch_path%3Dstore_{name}"
        if name not in made:
            made.add(name)
            emptied(place)
        return place

    return schema


@pytest.fixture
def path(place_of: Callable[[str], Path | str]) -> Path | str:
    place = place_of("memory")
    return place.parent / "store" / place.name if isinstance(place, Path) else place


@pytest.fixture
def owner(path: Path | str, tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    """The owner's handle on a fresh store; rights are given from here and never gained."""
    if isinstance(path, Path):
        path.parent.mkdir()
    given = {"embedder": "hashed", "clock": clock, "config_dir": tmp_path / "config"}
    with Memory.open(path, actor=Actor.operator("olga"), **given) as memory:
        yield memory


@pytest.fixture(scope="module")
def shared_owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """The owner's handle on one store for all tests of a module that change nothing there which another looks at."""
    folder = tmp_path_factory.mktemp("shared")
    given = {"embedder": "hashed", "clock": Clock(), "config_dir": folder / "config"}
    with Memory.open(folder / "memory.db", actor=Actor.operator("olga"), **given) as memory:
        yield memory


@pytest.fixture
def mem(owner: Memory) -> Memory:
    """An agent's handle on the same store."""
    return owner.as_actor(Actor.agent())


@pytest.fixture
def opened(place_of: Callable[[str], Path | str], tmp_path: Path, clock: Clock) -> Callable[..., Memory]:
    """Opens stores by name, each anew: the same name twice is the same store. Use it as `with opened("a") as a:`."""

    def open_again(name: str, **options: Any) -> Memory:
        given = {"embedder": "hashed", "clock": clock, "config_dir": tmp_path / "config", **options}
        return Memory.open(place_of(name), **given)

    return open_again


@pytest.fixture
def entering(owner: Memory, tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Memory]]:
    """Opens the owner's store once more, by an actor or a token: rights that no handle there is gave."""
    with ExitStack() as handles:

        def enter(actor: Actor | None = None, **options: Any) -> Memory:
            given = {"embedder": "hashed", "clock": clock, "config_dir": tmp_path / "config", **options}
            return handles.enter_context(Memory.open(owner.path, actor=actor, **given))

        yield enter


@pytest.fixture
def everywhere(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Memory]]:
    """Opens new stores, each with an embedder of `support.embedders`; returns the owner's handle of one user."""
    with ExitStack() as stores:

        def open_one(name: str, **options: Any) -> Memory:
            given = {"embedder": embedder(name), "clock": clock, "config_dir": tmp_path / "config", **options}
            memory = Memory.open(":memory:", actor=Actor.operator("olga"), **given)
            return stores.enter_context(memory).user("ana")

        yield open_one
