"""Migrations make the schema, each once, and are never edited."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from keepward.storage import sqlite
from keepward.storage.driver import connect
from keepward.storage.sql import SQL, load_migrations, parse_queries, statements
from keepward.storage.sqlite import create_schema, migrate

#: Digests of released migrations; a line here never changes.
RELEASED: dict[int, str] = {}


@pytest.fixture
def database():
    with closing(connect(":memory:")) as connection:
        yield connection


def _schema(connection):
    query = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name"
    return connection.execute(query).fetchall()


def test_migrating_twice_changes_nothing(database):
    migrate(database)
    before = _schema(database)
    migrate(database)
    assert _schema(database) == before


def test_the_schema_number_is_the_newest_migration(database):
    create_schema(database)
    assert database.execute("PRAGMA user_version").fetchone() == (load_migrations()[-1].number,)


def test_each_migration_is_recorded_with_its_hash(database):
    migrate(database)
    recorded = database.execute("SELECT number, name, sha256 FROM migrations ORDER BY number").fetchall()
    assert recorded == [(each.number, each.name, each.sha256) for each in load_migrations()]


def test_a_migration_that_fails_leaves_nothing(database, monkeypatch):
    from dataclasses import replace

    broken = replace(load_migrations()[0], sql=load_migrations()[0].sql + "\nCREATE TABLE meta (x);\n")
    monkeypatch.setattr(sqlite, "load_migrations", lambda: (broken,))
    with pytest.raises(sqlite3.OperationalError):
        migrate(database)
    assert _schema(database) == []


def test_a_released_migration_is_never_edited():
    assert {each.number: each.sha256 for each in load_migrations() if each.number in RELEASED} == RELEASED


def test_statements_are_split_where_they_end():
    assert [each.strip() for each in statements("CREATE TABLE a (x\n);\nCREATE TABLE b (y);\n")] == [
        "CREATE TABLE a (x\n);",
        "CREATE TABLE b (y);",
    ]


def test_a_gap_in_the_numbers_is_refused(tmp_path):
    (tmp_path / "migrations").mkdir()
    (tmp_path / "migrations" / "0003_second.sql").write_text("SELECT 1;")
    with pytest.raises(ValueError, match="gap"):
        load_migrations(tmp_path)


def test_a_fragment_is_filled_in():
    assert parse_queries("-- a --\nSELECT {{b}};\n\n-- b --\n-- Fragment.\nx, y\n")["a"] == "SELECT x, y"


def test_every_query_is_understood_by_sqlite(database):
    create_schema(database)
    for table, columns in (("links", "kind, name, id"), ("marks", "mark, position")):
        database.execute(f"CREATE TEMPORARY TABLE due_{table} AS SELECT {columns} FROM {table} LIMIT 0")
    # Fragments are tested through those that include them.
    fragments = {"live", "record_columns", "feature_columns", "select_documents", "record_row", "profile", "passes"}
    fragments |= {"event_row", "due_row", "commit_row", "searched", "of_kind", "listing", "in_scopes", "touches_scopes"}
    for name in sorted(SQL.keys() - fragments):
        values = Values() if ":" in SQL[name] else [None] * SQL[name].count("?")
        assert database.execute(f"EXPLAIN {SQL[name]}", values).fetchall(), name


class Values(dict):
    """Gives NULL for every name."""

    def __missing__(self, key):
        return None
