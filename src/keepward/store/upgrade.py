"""Moving a store of the first format, in which each kind of thing had a table of its own, to this one.

Invariants
(1) It is one transaction on the file: the store is of one format or of the other, whatever happens.
(2) Journals stay as they are, byte for byte, and so do the heads; everything else is checked by its old seal, written
    in the new form and sealed anew. A row that did not match its seal matches none afterwards, and ``verify`` names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keepward.errors import StoreUnavailable, Tampered
from keepward.model.commit import Head
from keepward.ports.world import Anchor
from keepward.store import tenant as tenants
from keepward.store.documents import Document
from keepward.store.driver import SqliteSession
from keepward.store.rows import feature_cells, features_in, record_at, record_row
from keepward.store.seals import Sealer
from keepward.store.sql import FIRST, Row, load_migrations, parse_queries, statements, text_of
from keepward.store.sqlite import Connections
from keepward.store.tenant import State
from keepward.store.writer import link_rows, sealed_row

#: Tables of the first format that this one has under the same name and in another form.
_RENAMED = ("meta", "migrations", "commits", "records")
_INDEXES = (
    *("commits_id", "records_key", "records_by_key", "records_position", "records_arrival", "records_standing"),
    "records_session",
)
_NO_KEY = (
    "the store is of an earlier format, and this machine does not have its key: bring it with `keepward key import`, "
    "or open the store once where it was made"
)
_DAMAGED = "the store is of an earlier format and does not match its seals ({}); restore it from a backup"
#: By the table that became documents: how its rows are read.
_DOCUMENTS = parse_queries(text_of("upgrade.sql"))
_FEATURES = "tenant, id, version, model, units, digest, marks, terms, vectors, trait"


def upgraded(connections: Connections, store_id: str, anchor: Anchor | None, file: Path) -> None:
    """Move a store to this format.

    Raises:
        StoreUnavailable: this machine has no key for it.
        Tampered: its heads or sums do not hold.
    """
    key = None
    if anchor is not None:
        anchor.bind(store_id, file)
        key = anchor.key()
    with connections.writing() as db:
        if db.execute("PRAGMA user_version").fetchone()[0] >= FIRST:
            return  # Another process was first.
        (sealed_by,) = db.execute("SELECT value FROM meta WHERE name = 'sealed_by'").fetchone()
        if sealed_by and key is None:
            raise StoreUnavailable(_NO_KEY)
        sealer = Sealer(key)
        states = [_state(db, sealer, anchor, row) for row in _tenants(db)]
        _renamed(db)
        for table in _DOCUMENTS:
            db.many("put_document", _documents(db, sealer, table))
        for state in states:
            _records(db, sealer, state.tenant)
            tenants.recount(db, sealer, state)
            tenants.write(db, sealer, state)
        for table in (*_DOCUMENTS, "features", "heads", "beside", "tallies", "lineage", "aliases", "attachments"):
            db.execute(f"DROP TABLE {table}")
        for table in _RENAMED:
            db.execute(f"DROP TABLE old_{table}")
        db.execute(f"PRAGMA user_version={FIRST}")


def _tenants(db: SqliteSession) -> list[Row]:
    """Return (tenant, seq, hash, restored, mac, writes, sums, seal) of each tenant."""
    query = """
        SELECT t.tenant, h.seq, h.hash, h.restored, h.mac, b.writes, b.sums, b.seal
          FROM (SELECT tenant FROM heads UNION SELECT tenant FROM beside) AS t
          LEFT JOIN heads h ON h.tenant = t.tenant LEFT JOIN beside b ON b.tenant = t.tenant ORDER BY t.tenant"""
    return db.execute(query).fetchall()


def _state(db: SqliteSession, sealer: Sealer, anchor: Anchor | None, row: Row) -> State:
    """Return the head of a tenant and how often it was written, checked as the first format was.

    Raises:
        Tampered: head or sums do not match their seals, the rows that are there, or what was noted of them.
    """
    tenant, seq, digest, restored, mac, writes, sums, seal = row
    state = State(tenant=tenant, head=Head(seq=0, hash=bytes(32)), writes=writes or 0)
    if seq is not None:
        if not sealer.holds_row(mac, "heads", tenant, seq, digest, restored):
            raise Tampered(_DAMAGED.format("its head"))
        state.head, state.restored = Head(seq=seq, hash=digest), restored
    if sealer.active and sums is not None:
        if not sealer.holds_row(seal, "beside", tenant, writes, sums):
            raise Tampered(_DAMAGED.format("its sums"))
        for table in tenants.SUMMED:
            for (each,) in db.execute(f"SELECT seal FROM {table} WHERE tenant = ?", (tenant,)):
                state.turn(sealer, table, None, each)
        if not sums.startswith(state.sums()[: 40 * len(tenants.SUMMED)]):
            raise Tampered(_DAMAGED.format("a row is missing or was put back"))
    if anchor is not None and sealer.active:
        noted = anchor.noted(tenant, "beside")
        wrong = tenants.against_noted(db, state, anchor.noted(tenant))
        if wrong or (noted is not None and noted.seq > state.writes):
            raise Tampered(_DAMAGED.format(wrong or "an older copy was put in its place"))
    return state


def _renamed(db: SqliteSession) -> None:
    """Put the tables aside that have another form now, and make those that are not there."""
    for table in _RENAMED:
        db.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    for name in _INDEXES:
        db.execute(f"DROP INDEX {name}")
    held = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    step = load_migrations()[0]
    for statement in statements(step.sql):
        words = statement.replace("UNIQUE ", "").split()
        if words[2] not in held:
            db.execute(statement)
    db.execute("INSERT INTO meta SELECT name, value FROM old_meta")
    columns = "tenant, seq, id, at, kind, actor_kind, prev, events_hash, salt, payload, hash"
    db.execute(f"INSERT INTO commits SELECT {columns}, NULL, seal FROM old_commits")
    query = "INSERT INTO migrations (number, name, sha256) VALUES (?, ?, ?)"
    db.execute(query, (step.number, step.name, step.sha256))


def _documents(db: SqliteSession, sealer: Sealer, table: str) -> Iterator[Document]:
    for name, state, at, until, body, *row, seal in db.execute(_DOCUMENTS[table]):
        document = Document(row[0], table, name, state, at, until, body)
        holds = sealer.holds_row(seal, table, *row)
        yield document.sealed(sealer) if holds else document._replace(seal=b"?")


def _records(db: SqliteSession, sealer: Sealer, tenant: str) -> None:
    """Write the records of a tenant from its journal, with the features that hold; an event that does not has none."""
    for row in db.stream("newest_as_of", tenant=tenant, as_of=2**62):
        try:
            record = record_at(sealer, tenant.encode(), row[:9])
        except Tampered:
            continue
        query = f"SELECT {_FEATURES}, seal FROM features WHERE tenant = ? AND id = ? AND version = ?"
        found: Any = db.execute(query, (tenant, record.id, record.version)).fetchone()
        features = None
        if found is not None and sealer.holds_row(found[-1], "features", *found[:-1]):
            _, _, _, model, units, digest, marks, terms, vectors, trait, _ = found
            features = features_in(model, units, digest, marks, trait, terms, vectors)
        whole = sealed_row(sealer, record_row(tenant, row[0], row[1], row[9], record), feature_cells(record, features))
        db.run("add_record", whole)
        db.many("add_link", link_rows(tenant, [record]))
