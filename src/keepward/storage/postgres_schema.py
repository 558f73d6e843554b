"""Create a store in a database, and migrate it.

Invariants
(1) One transaction creates or migrates a store, so it is never half done.
(2) Each table of tenants has row-level security: a connection selects its tenant and sees no rows of another, even if
    a statement has no condition for it.
"""

from __future__ import annotations

import re
import secrets

import psycopg
from psycopg import errors

from keepward.errors import NewerSchema, NotAStore, StoreUnavailable
from keepward.storage import candidates
from keepward.storage.rows import LISTED, RECORDS_WITH_FEATURES, listed_rows
from keepward.storage.server_state import TABLE
from keepward.storage.sql import SQL, Row, load_migrations, read_sql, statements

#: Oldest supported server, and oldest release of pgvector.
MIN_SERVER_VERSION, MIN_VECTOR_VERSION = 150_000, (0, 8)
_NEEDS_VECTORS = "candidates from the database need the extension pgvector"
#: Memories that one statement adds to a new table.
_FILLED_AT_ONCE = 2_000
#: Advisory lock for creating and migrating a store.
_SCHEMA_LOCK_ID = 0x4B454550
#: The rows that a connection sees; see (2).
_TENANT_CONDITION = """
    tenant = (SELECT current_setting('keepward.tenant', true))
    OR (SELECT current_setting('keepward.all', true)) = 'on'"""

#: The elements of a list in a body that may be damaged.
_ELEMENTS = r"json_each\(CASE json_valid\(CAST\((\S+) AS TEXT\)\) .*? END, '\$\.(\w+)'\)"


def tables() -> list[str]:
    """Return the names of the tables that belong to tenants; that of vectors may not exist."""
    found = [name for step in load_migrations() for name in re.findall(r"CREATE TABLE (\w+)", step.sql)]
    return [*(name for name in found if name not in {"meta", "migrations"}), "blob_bytes", *candidates.CANDIDATE_TABLES]


def prepare(connection: psycopg.Connection[Row], *, create: bool, writable: bool) -> str:
    """Create or migrate the store if needed; return its id; see (1)."""
    server = connection.info.server_version
    if server < MIN_SERVER_VERSION:
        raise StoreUnavailable(
            f"PostgreSQL {server // 10_000} is too old for a store; use {MIN_SERVER_VERSION // 10_000} or newer"
        )
    with connection.transaction():
        if connection.execute("SELECT current_schema()").fetchone() == (None,):
            raise StoreUnavailable("the schema that the address names does not exist; make it, or name another")
        if not has_table(connection, "migrations"):
            if has_table(connection, "meta"):
                raise NotAStore("the database is another program's; choose another database or schema")
            if not create:
                raise StoreUnavailable("there is no store in this database; make one with `keepward init`")
        if writable:
            _lock_schema(connection)
            _migrate(connection)
        number = _schema_version(connection)
        if number > load_migrations()[-1].number:
            raise NewerSchema
        if number < load_migrations()[-1].number:
            raise StoreUnavailable("the store needs a new schema and can only be read; open it once for writing")
        row = connection.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
    if row is None or not row[0]:
        raise NotAStore("the store has lost its id: its tables were emptied; restore it from a backup")
    return str(row[0])


def _lock_schema(connection: psycopg.Connection[Row]) -> None:
    """Let no other process change the schema until this transaction ends; wait at most half a minute for it."""
    connection.execute("SET LOCAL lock_timeout = '30s'")
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK_ID,))


def create_vectors(connection: psycopg.Connection[Row]) -> None:
    """Create the table of candidates' vectors unless it exists; see ``candidates.py``.

    Raises:
        StoreUnavailable: the database lacks pgvector and this role cannot create it, or it is too old.
    """
    with connection.transaction():
        _lock_schema(connection)
        if has_table(connection, "candidate_vectors"):
            return
        _extend(connection)
        query = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
        (schema,) = connection.execute(query).fetchone() or ("public",)
        _make(connection, read_sql("postgres_vectors.sql").replace("HALFVEC", f"{schema}.halfvec"))


def _extend(connection: psycopg.Connection[Row]) -> None:
    """Check that the database has pgvector, and create it if allowed; see ``create_vectors``."""
    query = """
        SELECT coalesce(installed_version, default_version), installed_version IS NOT NULL
          FROM pg_available_extensions WHERE name = 'vector'"""
    row = connection.execute(query).fetchone()
    if row is None:
        raise StoreUnavailable(f'{_NEEDS_VECTORS}: install it on the server, or set candidates = "process"')
    if tuple(int(part) for part in row[0].split(".")[:2]) < MIN_VECTOR_VERSION:
        wanted = ".".join(map(str, MIN_VECTOR_VERSION))
        raise StoreUnavailable(f"{_NEEDS_VECTORS} {wanted} or newer, and the database has {row[0]}: update it there")
    if not row[1]:
        command = "CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public"
        try:
            connection.execute(command)
        except errors.InsufficientPrivilege as exc:
            raise StoreUnavailable(f"{_NEEDS_VECTORS}: let a superuser run in this database: {command}") from exc


def _migrate(connection: psycopg.Connection[Row]) -> None:
    """Migrate a store to the newest schema; the caller holds the advisory lock."""
    done = _schema_version(connection) if has_table(connection, "migrations") else 0
    # A migration changes the rows of all tenants.
    connection.execute("SELECT set_config('keepward.all', 'on', true)")
    for step in load_migrations():
        if step.number > done:
            _make(connection, step.sql)
            if step.name == LISTED:
                _fill_listed(connection)
            query = "INSERT INTO migrations (number, name, sha256) VALUES (%s, %s, %s)"
            connection.execute(query, (step.number, step.name, step.sha256))
    _fold_scopes(connection)
    _narrow_trait_index(connection)
    if not done:
        query = "INSERT INTO meta (name, value) VALUES ('store_id', %s), ('sealed_by', '')"
        connection.execute(query, (secrets.token_hex(16),))
        _make(connection, read_sql("postgres_tables.sql"))
        connection.execute(TABLE)


def _fill_listed(connection: psycopg.Connection[Row]) -> None:
    """Fill ``listed`` from the records of all tenants."""
    connection.execute("SELECT set_config('keepward.all', 'on', true)")
    with connection.cursor("records") as stored, connection.cursor() as made:
        stored.execute(RECORDS_WITH_FEATURES)
        while rows := stored.fetchmany(_FILLED_AT_ONCE):
            made.executemany(SQL["add_listed"].replace("?", "%s"), listed_rows(rows))
    # Without statistics the first lists would be read in full.
    connection.execute("ANALYZE listed")


def _fold_scopes(connection: psycopg.Connection[Row]) -> None:
    """Store each scope in lower case too: below row-level security PostgreSQL uses no index of an expression."""
    query = "SELECT FROM pg_attribute WHERE attrelid = to_regclass('records') AND attname = 'folded'"
    if connection.execute(query).fetchone() is None:
        folded = 'folded TEXT COLLATE "C" GENERATED ALWAYS AS (lower(scope)) STORED'
        connection.execute(f"ALTER TABLE records ADD COLUMN {folded}")
        connection.execute("DROP INDEX records_scope")
        connection.execute("CREATE INDEX records_scope ON records (tenant, folded, scope) WHERE status = 'active'")


def _narrow_trait_index(connection: psycopg.Connection[Row]) -> None:
    """Let only a query that names a trait use the index of traits.

    Otherwise PostgreSQL may look ids up in it while the table is new, and reads that of the whole tenant each time.
    """
    query = "SELECT indpred IS NOT NULL FROM pg_index WHERE indexrelid = to_regclass('features_trait')"
    if connection.execute(query).fetchone() != (True,):
        connection.execute("DROP INDEX IF EXISTS features_trait")
        connection.execute("CREATE INDEX features_trait ON features (tenant, trait, id) WHERE trait IS NOT NULL")


def _schema_version(connection: psycopg.Connection[Row]) -> int:
    """Return the number of the last migration that ran."""
    (number,) = connection.execute("SELECT max(number) FROM migrations").fetchone() or (None,)
    return number or 0


def has_table(connection: psycopg.Connection[Row], table: str) -> bool:
    """Whether the schema of a connection has a table."""
    return connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,)


def _make(connection: psycopg.Connection[Row], written: str) -> None:
    """Translate the statements of a migration to PostgreSQL.

    Text sorts by its bytes, and tables of tenants have row-level security; see (2).
    """
    for statement in statements(written):
        text = re.sub(r"\s+STRICT(, WITHOUT ROWID)?$", "", statement.rstrip(";"))
        text = re.sub(_ELEMENTS, r"json_array_elements_text(CAST(convert_from(\1, 'UTF8') AS JSON) -> '\2')", text)
        text = re.sub(r"\bBLOB\b", "BYTEA", re.sub(r"\bINTEGER\b", "BIGINT", text))
        text = re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', text)
        connection.execute(text)
        match = re.match(r"CREATE TABLE (\w+)", text)
        if match is not None and match[1] not in {"meta", "migrations"}:
            connection.execute(f"ALTER TABLE {match[1]} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
            connection.execute(f"CREATE POLICY own ON {match[1]} USING ({_TENANT_CONDITION})")
