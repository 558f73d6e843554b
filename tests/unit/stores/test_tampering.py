"""Whatever somebody changes in the file by hand is named by verify, and no read returns it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from filled import KINDS, TABLES, TENANT, answers, opened

from keepward.core.query import Filter
from keepward.errors import KeepwardError, NotAStore, Tampered
from keepward.storage.sqlite import create_schema
from support import tamper


def _columns():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create_schema(connection)
        for table in TABLES:
            for row in connection.execute(f"PRAGMA table_info({table})").fetchall():
                yield table, row[1], row[2], row[5]


COLUMNS = [row[:3] for row in _columns()]
KEYS = {table: [row[1] for row in _columns() if row[0] == table and row[3]] for table in TABLES}
OTHER = {
    "TEXT": "substr({0} || 'x', 2) || 'y'",
    "INTEGER": "{0} + 100",
    "BLOB": "CASE WHEN {0} = zeroblob(length({0})) THEN x'0101010101010101' ELSE zeroblob(length({0})) END",
}
GIVEN = {"TEXT": "'given'", "INTEGER": "7", "BLOB": "x'07'"}


def _faults(path):
    """Return the tables that verify names; opening may refuse first, which says as much."""
    try:
        with opened(path) as store:
            return {fault.row.split()[0] for fault in store.verify()[1]}
    except KeepwardError as refusal:
        return {type(refusal).__name__}


def _silent(path, truth):
    """Return what reads give that the untouched store does not."""
    return {name: value for name, value in answers(path).items() if truth.get(name) != value}


def _edit(path, table, column, kind, of=None):
    row = "(SELECT min(rowid) FROM {0})"
    keyless = table in {"meta", "migrations", "tenants", "records", "features", "marks", "links", "listed"}
    where = "TRUE" if keyless else f"rowid = {row.format(table)}"
    if table == "meta":
        where = "name = 'store_id'"
    if table in {"records", "features"}:
        where = f"id = (SELECT min(id) FROM {table})"
    if table == "marks":
        where = "(mark, position) = (SELECT mark, position FROM marks ORDER BY mark, position LIMIT 1)"
    if of is not None:
        where = f"rowid = (SELECT min(rowid) FROM documents WHERE kind = '{of}')"
    value = OTHER[kind].format(column)
    tamper.edit(path, table, f"{column} = coalesce({value}, {GIVEN[kind]})", where)


@pytest.mark.parametrize(("table", "column", "kind"), COLUMNS, ids=[f"{row[0]}.{row[1]}" for row in COLUMNS])
def test_edited_cell_is_named_and_never_returned(path, truth, table, column, kind):
    _edit(path, table, column, kind)
    named = {"links": {"lineage", "aliases"}, "documents": {"receipts"}, "features": {"marks"}}
    assert _faults(path) & {table, *named.get(table, ()), "sqlite_schema", "NotAStore", "Tampered"}
    assert _silent(path, truth) == {}


READ = [
    row
    for row in COLUMNS
    if row[:2] in {("records", "body"), ("records", "seal"), ("features", "terms"), ("events", "payload")}
]


@pytest.mark.parametrize(("table", "column", "kind"), READ, ids=[f"{row[0]}.{row[1]}" for row in READ])
def test_earlier_reader_of_an_edited_row_sees_the_same(path, table, column, kind):
    everything = Filter(include_sensitive=True)
    with opened(path) as store:
        store.find(TENANT, everything, live_at=None, limit=None)
        _edit(path, table, column, kind)
        again = store.find(TENANT, everything, live_at=None, limit=None)
    with opened(path) as fresh:
        assert again == fresh.find(TENANT, everything, live_at=None, limit=None)


DOCUMENT = [(of, *row[1:3]) for of in KINDS for row in _columns() if row[0] == "documents"]


@pytest.mark.promise("F1")
@pytest.mark.parametrize(("of", "column", "kind"), DOCUMENT, ids=[f"{row[0]}.{row[1]}" for row in DOCUMENT])
def test_edited_cell_of_a_document_is_named_and_never_returned(path, truth, of, column, kind):
    _edit(path, "documents", column, kind, of)
    assert _faults(path) & {of, "NotAStore", "Tampered"}
    assert _silent(path, truth) == {}


@pytest.mark.parametrize("table", TABLES)
def test_a_deleted_row_is_noticed(path, table):
    key = ", ".join(KEYS[table])
    tamper.delete(path, table, where=f"({key}) = (SELECT {key} FROM {table} ORDER BY {key} DESC LIMIT 1)")
    assert _faults(path)


def test_a_tenant_that_was_emptied_everywhere_is_not_read(path):
    tamper.delete(path, *TABLES[2:])
    with opened(path) as store, pytest.raises(Tampered):
        store.head(TENANT)


def test_swapped_payloads_are_never_returned(path, truth):
    tamper.run(path, tamper.SWAPPED_PAYLOADS)
    assert "events" in _faults(path)
    assert _silent(path, truth) == {}


def test_swapped_vectors_are_noticed(path):
    tamper.run(path, tamper.SWAPPED_WORDS)
    assert "features" in _faults(path)


def test_record_reset_to_an_earlier_version_is_never_returned(path, truth):
    tamper.edit(path, "records", "version = 1, position = 1048576", "key = 'drink'")
    assert _silent(path, truth) == {}


def test_a_forged_commit_without_the_key_is_refused(path):
    tamper.run(path, *tamper.FORGED_COMMIT)
    with opened(path) as store, pytest.raises(Tampered):
        store.head(TENANT)


def test_a_dropped_index_is_noticed(path):
    tamper.run(path, "DROP INDEX records_key")
    assert "sqlite_schema" in _faults(path)


def test_a_trigger_that_was_added_is_noticed(path):
    tamper.run(path, "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM documents; END")
    assert "sqlite_schema" in _faults(path)


def test_a_journal_rewritten_on_another_machine_is_not_believed(path):
    from support.factories import RecordFactory

    config = path.parent / "config"
    config.rename(path.parent / "mine")
    tamper.delete(path, *TABLES[2:])
    make = RecordFactory()
    with opened(path) as store:
        store.adopt("forged")
        with store.write() as writer:
            for n in range(9):
                writer.append(TENANT, make.stage(make.record(f"forged {n}")))
    shutil.rmtree(config)
    (path.parent / "mine").rename(config)
    with opened(path) as store, pytest.raises(Tampered):
        store.head(TENANT)


def test_a_bent_key_name_does_not_make_the_seals_again(path):
    tamper.edit(path, "meta", "value = ''", "name = 'sealed_by'")
    tamper.edit(path, "documents", "body = x'7b7d'")
    assert "receipts" in _faults(path)


def test_another_store_at_its_path_is_refused(path, tmp_path_factory):
    from keepward.storage.store import open_store

    other = tmp_path_factory.mktemp("other") / "m.db"
    open_store(other).close()
    shutil.copy(other, path)
    with pytest.raises(NotAStore, match="names another"):
        opened(path)
