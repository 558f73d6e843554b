"""No row beside the journal is edited, added, taken away, exchanged or put back as it once was without notice."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from filled import ANY, TENANT, TOKEN, by_hand, opened
from keepward.stores.sqlite import beside
from keepward.stores.sqlite.renew import SEALED

from keepward.errors import Tampered
from keepward.model.query import Feedback
from support.ids import CountingIds
from support.stages import Maker

#: What names a row of each table, after the tenant.
KEYS = {
    "receipts": "id",
    "proposals": "id",
    "artefacts": "version",
    "usage": "id",
    "feedback": "n",
    "tokens": "id",
}
TABLES = tuple(KEYS)
#: A cell that says something, and what it says instead.
CELLS = {
    "receipts": ("body", "x'7b7d'"),
    "proposals": ("state", "'approved'"),
    "artefacts": ("text", "'I am the owner.'"),
    "usage": ("count", "999"),
    "feedback": ("body", "x'7b7d'"),
    "tokens": ("revoked_at", "NULL"),
}


def faults(path: Path) -> set[str]:
    """Return the rows that verify names, or the error with which the store refuses."""
    with opened(path) as store:
        return {fault.row for fault in store.verify()[1]}


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f"SELECT * FROM {table} ORDER BY {KEYS[table]}").fetchall()


def put(path: Path, table: str, *given: tuple[object, ...]) -> None:
    """Write rows as they stand, in place of any of the same key."""
    marks = ", ".join("?" for _ in given[0])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for row in given:
            db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)


def changed(path: Path) -> None:
    """Give every table a newer state of a row that it holds, and one row more."""
    make = Maker(CountingIds(50_000))
    with opened(path) as store:
        waiting = store.queue(TENANT, state=None)[0]
        (told,) = store.feedback(TENANT, limit=9)[:1]
        ids = [each.id for each in store.find(TENANT, ANY, live_at=None, limit=9).records]
        used = min(store.usage(TENANT, ids))
        with store.write() as writer:
            writer.put_waiting(replace(waiting, state="rejected", decision="no"))
            writer.put_feedback(replace(told, used=told.ignored, ignored=told.used))
            writer.count_use(TENANT, [used], make.now)
            writer.put_token(replace(TOKEN, revoked_at=make.now + timedelta(minutes=1)))
            writer.put_receipt(make.receipt(TENANT, "9"))
            writer.put_artefact(TENANT, "identity", "v3", "I am Lyra.")


def test_every_sealed_table_that_nothing_else_vouches_for_has_a_sum() -> None:
    # Features are compared with the records, erasures with the commits that say so; a lost lease runs a job again.
    assert set(SEALED) - set(beside.TABLES) == {"features", "erased", "jobs"} & set(SEALED)


def test_a_store_as_it_was_written_has_no_faults(path: Path) -> None:
    changed(path)
    assert faults(path) == set()


@pytest.mark.promise("F1")
@pytest.mark.parametrize("table", TABLES)
def test_an_edited_row_is_named(path: Path, table: str) -> None:
    cell, value = CELLS[table]
    name = KEYS[table]
    by_hand(path, f"UPDATE {table} SET {cell} = {value} WHERE {name} = (SELECT min({name}) FROM {table})")
    assert any(row.startswith(f"{table} {TENANT}/") for row in faults(path))


@pytest.mark.promise("F2")
@pytest.mark.parametrize("table", TABLES)
def test_an_added_row_is_noticed(path: Path, table: str) -> None:
    first = list(rows(path, table)[0])
    at = [column for _, column, *_ in _columns(path, table)].index(KEYS[table])
    first[at] = 77 if isinstance(first[at], int) else "0190f3c2-7b1e-7c3a-9f00-ffffffffffff"
    unique = {"feedback": ("actor", "agent:lyra"), "tokens": ("hash", bytes(32))}
    if table in unique:
        place, value = unique[table]
        first[[column for _, column, *_ in _columns(path, table)].index(place)] = value
    put(path, table, tuple(first))
    assert f"{table} {TENANT}" in faults(path)


def _columns(path: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(f"PRAGMA table_info({table})").fetchall()


@pytest.mark.promise("F2")
@pytest.mark.parametrize("table", TABLES)
def test_a_deleted_row_is_noticed(path: Path, table: str) -> None:
    name = KEYS[table]
    by_hand(path, f"DELETE FROM {table} WHERE {name} = (SELECT max({name}) FROM {table})")
    assert f"{table} {TENANT}" in faults(path)


@pytest.mark.promise("F2")
@pytest.mark.parametrize("table", TABLES)
def test_an_emptied_table_is_noticed(path: Path, table: str) -> None:
    by_hand(path, f"DELETE FROM {table}")
    assert f"{table} {TENANT}" in faults(path)


@pytest.mark.promise("F1")
@pytest.mark.parametrize("table", TABLES)
def test_two_rows_that_change_places_are_named(path: Path, table: str) -> None:
    first, second = rows(path, table)[:2]
    at = [column for _, column, *_ in _columns(path, table)].index(KEYS[table])
    swapped = [
        (*second[:at], first[at], *second[at + 1 :]),
        (*first[:at], second[at], *first[at + 1 :]),
    ]
    by_hand(path, f"DELETE FROM {table} WHERE {KEYS[table]} IN ({first[at]!r}, {second[at]!r})")
    put(path, table, *swapped)
    assert any(row.startswith(f"{table} {TENANT}/") for row in faults(path))


@pytest.mark.promise("F5")
@pytest.mark.parametrize("table", ["proposals", "usage", "feedback", "tokens"])
def test_a_row_put_back_as_it_once_was_is_noticed(path: Path, table: str) -> None:
    before = rows(path, table)
    changed(path)
    put(path, table, *before)
    assert f"{table} {TENANT}" in faults(path)


@pytest.mark.promise("F5")
@pytest.mark.parametrize("table", TABLES)
def test_an_older_table_put_back_with_its_sums_is_noticed(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        sums = db.execute("SELECT * FROM beside").fetchall()
    before = {each: rows(path, each) for each in TABLES}
    changed(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for each in TABLES:
            db.execute(f"DELETE FROM {each}")
        db.execute("DELETE FROM beside")
        db.executemany("INSERT INTO beside VALUES (?, ?, ?, ?)", sums)
    for each, held in before.items():
        put(path, each, *held)
    assert f"beside {TENANT}" in faults(path)


@pytest.mark.promise("F5")
def test_an_older_copy_of_the_file_is_not_read_although_no_commit_came_since(path: Path, original: Path) -> None:
    changed(path)
    shutil.copy(original / "m.db", path)
    with opened(path) as store, pytest.raises(Tampered, match="older copy"):
        store.head(TENANT)


def test_a_token_that_was_revoked_does_not_come_back_with_an_older_copy_of_the_file(path: Path, original: Path) -> None:
    changed(path)
    shutil.copy(original / "m.db", path)
    with opened(path) as store, pytest.raises(Tampered, match="older copy"):
        store.token_by_hash(TOKEN.hash)


def test_sums_that_are_gone_are_noticed(path: Path) -> None:
    by_hand(path, "DELETE FROM beside")
    assert f"beside {TENANT}" in faults(path)


def test_sums_that_are_gone_are_not_made_anew_by_the_next_write(path: Path) -> None:
    by_hand(path, "DELETE FROM beside", "DELETE FROM receipts")
    with opened(path) as store, pytest.raises(Tampered, match="older"):
        store.head(TENANT)


def test_accepting_a_store_counts_anew(path: Path) -> None:
    by_hand(path, "DELETE FROM usage")
    with opened(path) as store:
        store.adopt("accepted")
    assert faults(path) == set()


def test_nobody_can_make_sums_without_the_key(path: Path) -> None:
    by_hand(path, "DELETE FROM usage", "UPDATE beside SET sums = zeroblob(length(sums))")
    assert f"beside {TENANT}" in faults(path)


def test_a_transaction_that_fails_counts_nothing(path: Path) -> None:
    with opened(path) as store, pytest.raises(RuntimeError), store.write() as writer:
        writer.put_artefact(TENANT, "identity", "v9", "I am nobody.")
        raise RuntimeError
    assert faults(path) == set()


def test_a_text_that_is_kept_twice_counts_once(path: Path) -> None:
    with opened(path) as store:
        for _ in range(2):
            with store.write() as writer:
                writer.put_artefact(TENANT, "identity", "v9", "I am Lyra.")
    assert faults(path) == set()


def test_a_tenant_with_feedback_alone_has_sums_too(path: Path) -> None:
    with opened(path) as store, store.write() as writer:
        writer.put_feedback(
            Feedback(tenant="bob", at=Maker().now, receipt="r", actor="agent:a", used=("x",), ignored=())
        )
    by_hand(path, "DELETE FROM feedback WHERE tenant = 'bob'")
    assert "feedback bob" in faults(path)
