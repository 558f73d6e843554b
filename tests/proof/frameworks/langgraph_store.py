"""A plugin of pytest: LangGraph's own tests of its SQLite store are run against Keepward's, under the same names."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langgraph.store import sqlite

from keepward import Memory
from keepward.integrations import langgraph as ours

#: By test, why it does not apply: each looks into the SQL of another store.
LEFT_OUT = {
    "test_escape_glob_literal": "a function that writes SQL",
    "test_namespace_match_pattern": "a function that writes SQL",
    "test_list_namespaces_prefix_uses_indexable_condition": "the text of a SQL query",
    "test_nonnull_migrations": "the migrations of its tables",
    "test_vector_store_initialization": "its table of vectors, by name (the asynchronous one applies)",
}


class SqliteStore(ours.KeepwardStore):
    """What the tests open."""

    @classmethod
    @contextmanager
    def from_conn_string(cls, path: str, **options: Any) -> Iterator[SqliteStore]:
        with _opened(path, options.get("index")) as memory:
            yield cls(memory, **_renamed(options))

    def setup(self) -> None:
        """There is nothing to set up."""


class AsyncSqliteStore(ours.AsyncKeepwardStore):
    """The same for an event loop."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, path: str, **options: Any) -> AsyncIterator[AsyncSqliteStore]:
        with _opened(path, options.get("index")) as memory:
            yield cls(memory, **_renamed(options))

    async def setup(self) -> None:
        """There is nothing to set up."""


def _opened(path: str, index: Any) -> Memory:
    # The tests make an empty file first, which is no store.
    place = path if path == ":memory:" else str(Path(path).with_suffix(".keepward"))
    return Memory.open(place, scope="/t", embedder=ours.embedder_of(index) if index else "hashed")


def _renamed(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the fields of an index as the interface calls them."""
    index = options.get("index")
    return {**options, "index": {**index, "fields": index.get("text_fields")}} if index else options


def pytest_configure() -> None:
    """Put ours in the place of theirs, before a test is collected."""
    sqlite.SqliteStore, sqlite.AsyncSqliteStore = SqliteStore, AsyncSqliteStore
    aio: ModuleType = sys.modules["langgraph.store.sqlite.aio"]
    aio.AsyncSqliteStore = AsyncSqliteStore


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not apply."""
    out = [
        each for each in items if getattr(each, "originalname", each.name) in LEFT_OUT and "async" not in str(each.path)
    ]
    items[:] = [each for each in items if each not in out]
    config.hook.pytest_deselected(items=out)
