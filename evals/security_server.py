"""A PostgreSQL server of a run's own: it can be stopped without a checkpoint, and its files looked into."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from benchmarks.database import Server

from evals.security_figure import Figure, none_of, opened
from evals.target import DatabaseTarget, words_in
from evals.workload import acknowledged, survivors, writing
from keepward import KeepwardError
from keepward.locations import DatabaseUrl


class ServerTarget(DatabaseTarget):
    """A schema on a server of the run's own."""

    def __init__(self, folder: Path, server: Server) -> None:
        super().__init__(folder, DatabaseUrl(server.address()))
        self.server = server

    def in_files(self, words: Mapping[str, str]) -> set[str]:
        """Return the names of those words that stand in any file of the server, its log among them."""
        with psycopg.connect(self.server.admin(), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
        return words_in([self.server.data], words)


def stopped(target: ServerTarget, long: bool) -> list[Figure]:
    """Stop the server at random moments, while somebody writes."""
    turns, lines = 40 if long else 4, set[int]()
    for turn in range(turns):
        with writing(target.address, target.home, turn * 100_000) as child:
            lines |= acknowledged(child, 1 + turn * 7 % 60)
            target.server.restart("immediate")
            # A writer that was at a call gets one clear error and ends; one between two calls goes on.
            child.kill()
            lines |= acknowledged(child)
    found, faults = survivors(target.address, target.home)
    return [
        none_of(f"acknowledged commits lost, server stopped {turns} times", len(lines - found), len(lines), "commits"),
        none_of("faults that verify finds after the stops", faults, turns, "stops"),
    ]


@contextmanager
def _breaking(nth: int, *, after: bool) -> Iterator[list[int]]:
    """Break the connection of the nth statement, before it is sent or after it was carried out; 0 for none.

    Yields a list whose one value is how many statements there were.
    """
    real, count = psycopg.Cursor.execute, [0]

    def execute(cursor: Any, *given: Any, **named: Any) -> Any:
        count[0] += 1
        if count[0] != nth:
            return real(cursor, *given, **named)
        if after:
            real(cursor, *given, **named)
        cursor.connection.close()
        raise psycopg.OperationalError("the connection was broken")

    psycopg.Cursor.execute = execute  # type: ignore[assignment]
    try:
        yield count
    finally:
        psycopg.Cursor.execute = real  # type: ignore[method-assign]


def broken(target: ServerTarget, long: bool) -> list[Figure]:
    """Break the connection at each statement of a story in turn, while a store is made and while it is written."""
    figures = []
    for after, word in ((False, "before a statement"), (True, "after a statement")):
        lost = stuck = stories = 0
        for fresh, step in ((True, 5 if long else 31), (False, 1 if long else 9)):
            # The first story is told undisturbed, and says how many statements there are.
            nth, many = 0, 0
            while nth <= many:
                if fresh:
                    target.empty()
                with _breaking(nth, after=after) as count:
                    noted = _story(target, nth)
                missing, sound = _afterwards(target, noted)
                lost, stuck, stories = lost + missing, stuck + (not sound), stories + bool(nth)
                nth, many = nth + (step if nth else 1), many or count[0]
        figures += [
            none_of(f"acknowledged commits lost, broken {word}", lost, stories, "broken connections"),
            none_of(f"stores that do not verify or go on, broken {word}", stuck, stories, "broken connections"),
        ]
    return figures


def _story(target: ServerTarget, nth: int) -> set[str]:
    """Open a store and write three times; return the ids that were acknowledged."""
    noted = set()
    try:
        with opened(target) as memory:
            for n in range(3):
                try:
                    said = memory.remember(f"Crate {nth} {n} " + "left the harbour " * 12, tier="archival")
                    noted.add(said.records[0].id)
                except KeepwardError:
                    continue
    except KeepwardError:
        pass
    return noted


def _afterwards(target: ServerTarget, noted: set[str]) -> tuple[int, bool]:
    """Return how many of those are lost, and whether the store holds and takes a write."""
    try:
        with opened(target) as memory:
            found = {each.id for each in memory.list_memories(limit=None)}
            said = memory.remember(f"Day {len(found)} goes on as ever", tier="archival")
            return len(noted - found), memory.verify().ok and said.outcome == "committed"
    except (KeepwardError, subprocess.SubprocessError):
        return len(noted), False
