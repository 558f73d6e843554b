"""Python calls, files entered and SQL statements of one write and one context; events a second of `verify`."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import keepward
from benchmarks.measure import table
from benchmarks.texts import notes
from keepward import Memory
from keepward.storage.driver import SqliteConnection

#: Memories held for calls, and for `verify`.
HELD, VERIFIED = 300, 3_000
_PACKAGE = str(Path(keepward.__file__).parent)


def _counted(action: Callable[[], object]) -> tuple[int, int]:
    """Return the Python calls that an action makes, and the files of the package that it enters."""
    calls, files = 0, set[str]()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        if event == "call":
            calls += 1
            files.add(frame.f_code.co_filename)

    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls, sum(name.startswith(_PACKAGE) for name in files)


def _statements(action: Callable[[], object]) -> int:
    """Return the SQL statements that an action executes, BEGIN and COMMIT included."""
    count = 0
    single, many = SqliteConnection.execute, SqliteConnection.executemany

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def execute(self: sqlite3.Connection, *given: Any) -> Any:
            nonlocal count
            count += 1
            return real(self, *given)

        return execute

    SqliteConnection.execute = counting(single)  # type: ignore[method-assign]
    SqliteConnection.executemany = counting(many)  # type: ignore[method-assign]
    try:
        action()
    finally:
        SqliteConnection.execute, SqliteConnection.executemany = single, many  # type: ignore[method-assign]
    return count


def run() -> None:
    """Print the table."""
    texts = list(dict.fromkeys(notes(VERIFIED + 100)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Memory.open(folder / "store.db", embedder="hashed", config_dir=folder / "keepward") as memory:

            def compile_context() -> object:
                return memory.context("what everybody drinks", budget_tokens=1_000)

            memory.remember_many([{"text": text} for text in texts[:HELD]])
            memory.remember(texts[HELD])
            memory.recall("what everybody drinks")
            written = _counted(lambda: memory.remember(texts[HELD + 1]))
            statements = _statements(lambda: memory.remember(texts[HELD + 2]))
            # A memory that is shown for the first time in a process is screened.
            first, again, read = _counted(compile_context), _counted(compile_context), _statements(compile_context)
            goal = "4,000 calls, 25 files"
            rows: list[list[object]] = [
                ["remember", *written, statements, "20 files, 12 statements"],
                ["context of 1,000 tokens, first", *first, read, ""],
                ["context of 1,000 tokens, again", *again, read, goal],
            ]
            memory.remember_many([{"text": text} for text in texts[HELD + 10 : VERIFIED]])
            begun = time.process_time()
            events = memory.verify().checked["events"]
            rate = events / (time.process_time() - begun)
    table(f"Calls, {HELD} memories held, hashed embedder", ["operation", "calls", "files", "statements", "goal"], rows)
    print(f"\nverify: {rate:,.0f} events a second of processor time, {events} events (goal: 50,000)")
