"""Moving a store of the first format, in which each kind of thing had a table of its own, to this one.

Invariants
(1) It is one transaction on the file: the store is of one format or of the other, whatever happens.
(2) Journals stay as they are, byte for byte, and so do the heads; everything else is checked by its old seal, written
    in the new form and sealed anew. A row that did not match its seal matches none afterwards, and ``verify`` names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from keepward.errors import StoreUnavailable, Tampered
from keepward.model.commit import Head
from keepward.ports.store import Features
from keepward.ports.world import Anchor
from keepward.store import tenant as tenants
from keepward.store.documents import Document, body_of
from keepward.store.rows import feature_cells, record_at, record_row, unpack_marks
from keepward.store.seals import Sealer
from keepward.store.sql import FIRST, Row, load_migrations, statements
from keepward.store.sqlite import Connections, SqliteSession
from keepward.store.tenant import State
from keepward.store.writer import link_rows, sealed_row

#: Tables of the first format that this one has under the same name and in another form.
_RENAMED = ("meta", "migrations", "records")
_INDEXES = ("key", "by_key", "position", "arrival", "standing", "session")
_NO_KEY = (
    "the store is of an earlier format, and this machine does not have its key: bring it with `keepward key import`, "
    "or open the store once where it was made"
)
_DAMAGED = "the store is of an earlier format and does not match its seals ({}); restore it from a backup"
#: Tables that became documents, by the columns under the seal.
_COLUMNS = {
    "receipts": "tenant, id, kind, at, body",
    "proposals": "tenant, id, state, created_at, expires_at, body",
    "artefacts": "tenant, kind, version, text",
    "usage": "tenant, id, count, last_at, learned",
    "feedback": "tenant, n, at, receipt, actor, body",
    "tokens": "tenant, id, name, hash, rights, can, scope, created_by, created_at, expires_at, revoked_at",
    "blobs": "tenant, ref, bytes, media_type, active, at, puts",
    "jobs": "tenant, job, holder, until, last_at, outcome, receipt",
    "erased": "tenant, seq, n, by_seq, promise, remains",
}
_FEATURES = "tenant, id, version, model, units, digest, marks, terms, vectors, trait"


def _receipt(row: Row) -> Document:
    tenant, name, kind, at, body = row
    lent = kind in {"compile", "recall"} and b'"handed":' in body
    return Document(tenant, "receipts", name, "handed" if lent else None, at, None, body)


def _use(row: Row) -> Document:
    tenant, name, count, last, learned = row
    body = body_of({"count": count, "learned": learned})
    return Document(tenant, "usage", name, "new" if count > learned else None, last, None, body)


def _feedback(row: Row) -> Document:
    tenant, n, at, receipt, actor, body = row
    said = {"trust": "unknown", **json.loads(body), "receipt": receipt, "actor": actor}
    return Document(tenant, "feedback", f"{receipt} {actor}", f"{n:012}", at, None, body_of(said))


def _token(row: Row) -> Document:
    tenant, name, called, digest, rights, can, scope, by, created, expires, revoked = row
    said = {
        "name": called,
        "rights": rights,
        "can": json.loads(can),
        "scope": scope,
        "created_by": by,
        "revoked_at": revoked,
    }
    return Document(tenant, "tokens", name, digest.hex(), created, expires, body_of(said))


def _blob(row: Row) -> Document:
    tenant, ref, size, media, active, at, puts = row
    said = {"bytes": size, "media_type": media, "active": bool(active), "puts": json.loads(puts)}
    return Document(tenant, "blobs", ref, None, at, None, body_of(said))


def _job(row: Row) -> Document:
    tenant, job, holder, until, last, outcome, receipt = row
    said = {"holder": holder, "last_at": last, "outcome": outcome, "receipt": receipt}
    return Document(tenant, "jobs", job, None, 0, until, body_of(said))


def _erased(row: Row) -> Document:
    tenant, seq, n, by_seq, promise, remains = row
    said = {"promise": promise.hex(), "remains": None if remains is None else remains.decode()}
    return Document(tenant, "erased", f"{seq}/{n}", None, by_seq, None, body_of(said))


_MADE: Mapping[str, Callable[[Row], Document]] = {
    "receipts": _receipt,
    "proposals": lambda row: Document(row[0], "proposals", *row[1:]),
    "artefacts": lambda row: Document(row[0], "artefacts", f"{row[1]}/{row[2]}", None, 0, None, row[3].encode()),
    "usage": _use,
    "feedback": _feedback,
    "tokens": _token,
    "blobs": _blob,
    "jobs": _job,
    "erased": _erased,
}


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
        for table in _COLUMNS:
            db.many("put_document", _documents(db, sealer, table))
        for state in states:
            _records(db, sealer, state.tenant)
            fresh = tenants.counted(db, sealer, state.tenant)
            state.counts, state.totals = fresh.counts, fresh.totals
            tenants.recount_records(db, sealer, state)
            tenants.write(db, sealer, state)
        for table in (*_COLUMNS, "features", "heads", "beside", "tallies", "lineage", "aliases", "attachments"):
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
        db.execute(f"DROP INDEX records_{name}")
    held = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    step = load_migrations()[0]
    for statement in statements(step.sql):
        words = statement.replace("UNIQUE ", "").split()
        if words[2] not in held:
            db.execute(statement)
    db.execute("INSERT INTO meta SELECT name, value FROM old_meta")
    query = "INSERT INTO migrations (number, name, sha256) VALUES (?, ?, ?)"
    db.execute(query, (step.number, step.name, step.sha256))


def _documents(db: SqliteSession, sealer: Sealer, table: str) -> Iterator[Document]:
    for *row, seal in db.execute(f"SELECT {_COLUMNS[table]}, seal FROM {table}"):
        document = _MADE[table](tuple(row))
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
            features = Features(
                model=model,
                units=units,
                digest=digest,
                marks=unpack_marks(marks),
                terms=terms,
                vectors=vectors,
                trait=trait,
            )
        whole = sealed_row(sealer, record_row(tenant, row[0], row[1], row[9], record), feature_cells(record, features))
        db.run("add_record", whole)
        db.many("add_link", link_rows(tenant, [record]))
