"""A plugin of pytest: the tests of OpenAI's session in SQLite are run against Keepward's, under the same names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agents
import pytest

from keepward import Memory
from keepward.integrations.openai_agents import KeepwardSession

_CONNECTIONS = "its own connections to SQLite, one a thread"
_TABLES = "its own tables, in which a statement is made to fail"
#: By test, what it looks into that there is not.
LEFT_OUT = {
    "test_sqlite_session_close_closes_worker_thread_connections": _CONNECTIONS,
    "test_sqlite_session_reaps_connections_from_exited_worker_threads": _CONNECTIONS,
    "test_sqlite_session_closes_retired_connections_before_the_next_allocation": _CONNECTIONS,
    "test_sqlite_session_keeps_connections_of_live_worker_threads": _CONNECTIONS,
    "test_sqlite_session_rollback_failure_evicts_connection": _CONNECTIONS,
    "test_sqlite_session_close_retries_quarantined_connection": _CONNECTIONS,
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome": _CONNECTIONS,
    "test_sqlite_session_file_lock_is_shared_across_instances": "its own lock on a file",
    "test_sqlite_session_failed_add_items_releases_write_lock": _TABLES,
    "test_sqlite_session_failed_clear_session_rolls_back": _TABLES,
    "test_sqlite_session_failed_pop_item_releases_write_lock": _TABLES,
    "test_sqlite_session_closed_rejects_empty_add_items": "who opens a handle closes it; a session has nothing to close",
}
#: Stores that are open, by file: sessions of one file share one.
OPEN: dict[str, Memory] = {}


class Strange:
    """Puts what is no item into a session, where the tests insert a row that is none."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def execute(self, _: str, values: tuple[str, str]) -> None:
        session, text = values
        self.memory.remember(text, kind="event", session=session)

    def commit(self) -> None:
        """It is committed."""


class SQLiteSession(KeepwardSession):
    """What the tests make."""

    def __init__(self, session_id: str, db_path: Any = ":memory:", session_settings: Any = None) -> None:
        place = str(db_path)
        if place == ":memory:":
            memory = _opened(place)
        else:
            memory = OPEN.get(place) or OPEN.setdefault(place, _opened(str(Path(place).with_suffix(".keepward"))))
        super().__init__(session_id, memory, session_settings)

    messages_table = "the session"

    @contextmanager
    def _locked_connection(self) -> Iterator[Strange]:
        yield Strange(self.memory)

    def close(self) -> None:
        """The store stays open for the other sessions of its file."""


def _opened(place: str) -> Memory:
    return Memory.open(place, scope="/t", embedder=None, maintenance=False)


def pytest_configure() -> None:
    """Put ours in the place of theirs, before a test is collected."""
    agents.SQLiteSession = SQLiteSession


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not apply."""
    out = [each for each in items if getattr(each, "originalname", each.name) in LEFT_OUT]
    items[:] = [each for each in items if each not in out]
    config.hook.pytest_deselected(items=out)
