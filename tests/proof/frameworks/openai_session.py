"""A plugin of pytest: the tests of OpenAI's session in SQLite are run against Keepward's, under the same names.

Where they look into SQLite, they are shown the connections of the store, and what they break in a file is ours.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import agents
import pytest

from keepward import Memory
from keepward.errors import KeepwardError
from keepward.integrations.openai_agents import KeepwardSession

_THREADS = "connections that belong to a thread; those of a store are in a pool"
_ROLLBACK = "a connection of its own that cannot be rolled back"
#: By test, what it looks into that there is not.
LEFT_OUT = {
    "test_sqlite_session_reaps_connections_from_exited_worker_threads": _THREADS,
    "test_sqlite_session_closes_retired_connections_before_the_next_allocation": _THREADS,
    "test_sqlite_session_rollback_failure_evicts_connection": _ROLLBACK,
    "test_sqlite_session_close_retries_quarantined_connection": _ROLLBACK,
    "test_sqlite_session_file_lock_is_shared_across_instances": "its own counts of a lock on a file",
}
#: Our tables, by those of theirs that a test takes away.
TABLES = {"agent_sessions": "commits", "agent_messages": "commits"}
#: Stores that are open, and how many sessions use each, by file: sessions of one file share one.
OPEN: dict[str, Memory] = {}
USED: Counter[str] = Counter()


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

    messages_table = "the session"

    def __init__(self, session_id: str, db_path: Any = ":memory:", session_settings: Any = None) -> None:
        self._place = str(db_path)
        if self._place == ":memory:":
            memory = _opened(self._place)
        else:
            memory = OPEN.get(self._place) or OPEN.setdefault(self._place, _opened(self._place))
            USED[self._place] += 1
        self._connections_lock = threading.Lock()
        super().__init__(session_id, memory, session_settings)

    @property
    def _connections(self) -> set[sqlite3.Connection]:
        """The connection of the store that writes: there is one, whichever thread it writes for."""
        writer: Any = self.memory._shared.engine.store._database._writer
        return {writer} - {None}

    def _get_connection(self) -> sqlite3.Connection | None:
        """Return None, or what a test puts here: it is committed after the store was, and may pause."""
        return None

    def _add(self, items: list[Any]) -> None:
        self._then_paused(super()._add, items)

    def _pop(self) -> Any | None:
        return self._then_paused(super()._pop)

    def _clear(self) -> None:
        self._then_paused(super()._clear)

    def _then_paused(self, function: Callable[..., Any], *given: Any) -> Any:
        try:
            found = function(*given)
        except KeepwardError as fault:
            # The driver's error, of which ours was made.
            raise fault.__cause__ or fault from None
        if connection := self._get_connection():
            connection.commit()
        return found

    @contextmanager
    def _locked_connection(self) -> Iterator[Strange]:
        yield Strange(self.memory)

    def close(self) -> None:
        """Close the store with the last session of its file."""
        super().close()
        USED[self._place] -= 1
        if not USED[self._place]:
            OPEN.pop(self._place).close()


def _opened(place: str) -> Memory:
    memory = Memory.open(place, scope="/t", embedder=None, maintenance=False)
    if place != ":memory:":
        with closing(sqlite3.connect(place)) as beside:
            # By writing to this table the tests ask whether the file is locked.
            beside.execute("CREATE TABLE IF NOT EXISTS agent_sessions (session_id TEXT)")
    return memory


def pytest_configure() -> None:
    """Put ours in the place of theirs, before a test is collected."""
    agents.SQLiteSession = SQLiteSession


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not apply, and let what drops a table drop one of ours."""
    for module in {each.module for each in items if hasattr(getattr(each, "module", None), "_drop_sqlite_table")}:
        drop = module._drop_sqlite_table
        module._drop_sqlite_table = lambda path, table, drop=drop: drop(path, TABLES[table])
    out = [each for each in items if getattr(each, "originalname", each.name) in LEFT_OUT]
    items[:] = [each for each in items if each not in out]
    config.hook.pytest_deselected(items=out)
