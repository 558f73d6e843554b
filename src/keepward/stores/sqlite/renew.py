"""Making anew: seals under another key, records from the journal, a journal from an export."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from keepward.errors import Conflict, Tampered
from keepward.model.codec import decode_record
from keepward.model.commit import EMPTY_HASH, Commit, Event, Head, Place, recompute
from keepward.ports.world import Anchor
from keepward.stores.sql import load_queries
from keepward.stores.sqlite import beside, deliveries, erasing
from keepward.stores.sqlite.chain import walk_chain
from keepward.stores.sqlite.connection import Connections
from keepward.stores.sqlite.heads import read_head, write_head
from keepward.stores.sqlite.journal import payload_fits
from keepward.stores.sqlite.rows import WIDTH, Row, bond_of, event_hash, payload_commitment, record_at, record_row
from keepward.stores.sqlite.seals import Sealer
from keepward.stores.sqlite.write import commit_row, link_rows, mark_rows, recount

SQL = load_queries("keepward.stores.sqlite")
#: Sealed tables beside the journal: columns under the seal, tenant and key first.
SEALED = {
    "receipts": ("tenant", "id", "kind", "at", "body"),
    "proposals": ("tenant", "id", "state", "created_at", "expires_at", "body"),
    "artefacts": ("tenant", "kind", "version", "text"),
    "erased": ("tenant", "seq", "n", "by_seq", "promise", "remains"),
    "features": ("tenant", "id", "version", "model", "units", "digest", "marks", "terms", "vectors", "trait"),
    "usage": ("tenant", "id", "count", "last_at", "learned"),
    "feedback": ("tenant", "n", "at", "receipt", "actor", "body"),
    "jobs": ("tenant", "job", "holder", "until", "last_at", "outcome", "receipt"),
    "blobs": ("tenant", "ref", "bytes", "media_type", "active", "at", "puts"),
    "tokens": (
        *("tenant", "id", "name", "hash", "rights", "can", "scope"),
        *("created_by", "created_at", "expires_at", "revoked_at"),
    ),
}
_PAGE = 1000


def adopt(connections: Connections, anchor: Anchor, note: tuple[str, str] | None) -> Sealer:
    """Verify every tenant's chain, then seal everything under a new key, in one transaction.

    ``note`` is a name and a sentence, kept in the store; None for a store that holds nothing.

    Raises:
        Tampered: a chain does not hold.
        OSError: the anchor cannot be written.
    """
    heads: dict[str, Head] = {}
    besides: dict[str, Head] = {}
    with connections.writing() as connection:
        key = anchor.key()
        if note is None and key is not None:
            return Sealer(key)  # Another process was first.
        for (tenant,) in connection.execute(SQL["tenants"]).fetchall():
            faults = list(walk_chain(connection, Sealer(None), tenant))
            if faults:
                raise Tampered(
                    f"the store cannot be sealed anew, since its journal does not hold ({faults[0].row}: "
                    f"{faults[0].detail}); `keepward rescue` copies what still holds"
                )
            heads[tenant], _ = read_head(connection, Sealer(None), tenant)
        sealer = Sealer(anchor.adopt())
        reseal(connection, sealer)
        besides = beside.count_anew(connection, sealer)
        connection.execute(SQL["set_meta"], {"name": "sealed_by", "value": sealer.key_id})
        if note is not None:
            connection.execute(SQL["set_meta"], {"name": note[0], "value": note[1]})
    for tenant in sorted(heads.keys() | besides.keys()):
        anchor.note(tenant, heads.get(tenant), besides.get(tenant))
    return sealer


def reseal(connection: sqlite3.Connection, sealer: Sealer) -> None:
    """Write every seal of the store anew."""
    for tenant, seq, digest, restored in connection.execute("SELECT tenant, seq, hash, restored FROM heads").fetchall():
        write_head(connection, sealer, tenant, Head(seq=seq, hash=digest), restored)
    for rows in _pages(connection, "commits", "tenant, seq, hash"):
        connection.executemany(
            "UPDATE commits SET seal = ? WHERE rowid = ?",
            [(sealer.event(row[1].encode(), row[2], -1, row[3]), row[0]) for row in rows],
        )
    for rows in _pages(connection, "events", "tenant, seq, n, op, memory_id, version, payload_commit"):
        connection.executemany(
            "UPDATE events SET seal = ? WHERE rowid = ?",
            [(sealer.event(row[1].encode(), row[2], row[3], event_hash(*row[3:])), row[0]) for row in rows],
        )
    for table, columns in SEALED.items():
        if table == "usage":
            continue
        for rows in _pages(connection, table, ", ".join(columns)):
            connection.executemany(
                f"UPDATE {table} SET seal = ? WHERE rowid = ?",
                [(sealer.row(table, *row[1:]), row[0]) for row in rows],
            )
    for (tenant,) in connection.execute(SQL["tenants"]).fetchall():
        bonded = connection.execute(SQL["bonded"], {"tenant": tenant})
        bonds = [(bond_of(sealer, tenant, row), tenant, row[0]) for row in bonded]
        connection.executemany("UPDATE features SET bond = ? WHERE tenant = ? AND id = ?", bonds)
    usage = connection.execute("SELECT tenant, id, count, last_at, learned FROM usage").fetchall()
    connection.executemany(SQL["set_usage"], [(*row, sealer.row("usage", *row)) for row in usage])


def _pages(connection: sqlite3.Connection, table: str, columns: str) -> Iterator[list[Row]]:
    last = 0
    while True:
        rows = connection.execute(
            f"SELECT rowid, {columns} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?", (last, _PAGE)
        ).fetchall()
        if not rows:
            return
        last = rows[-1][0]
        yield rows


def rebuild(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> int:
    """Compute a tenant's records, marks, lineage and aliases anew; return how many records there are.

    Features stay where their seal and version hold; the others are dropped, to be computed anew.

    Raises:
        Tampered: an event does not hold; nothing was changed.
    """
    head, _ = read_head(connection, sealer, tenant)
    for table in ("records", "marks", "lineage", "aliases", "attachments"):
        connection.execute(f"DELETE FROM {table} WHERE tenant = ?", (tenant,))
    raw = tenant.encode()
    count = 0
    dropped = []
    cursor = connection.execute(SQL["indexed_as_of"], {"tenant": tenant, "as_of": head.seq, "after": -1})
    for row in cursor:
        record = record_at(sealer, raw, row[:9])
        if row[9] is None:
            raise Tampered("the first version of a memory is missing; run `keepward verify`")
        connection.execute(SQL["add_record"], record_row(tenant, row[0], row[1], row[9], record))
        link_rows(connection, tenant, [record])
        if row[10] == record.version and sealer.holds_row(row[18], "features", tenant, record.id, *row[10:18]):
            connection.executemany(SQL["add_mark"], mark_rows(tenant, record, row[0] * WIDTH + row[1], row[14]))
        elif row[10] is not None:
            dropped.append((tenant, record.id))
        count += 1
    connection.executemany("DELETE FROM features WHERE tenant = ? AND id = ?", dropped)
    connection.execute(
        "DELETE FROM features WHERE tenant = :tenant AND id NOT IN (SELECT id FROM records WHERE tenant = :tenant)",
        {"tenant": tenant},
    )
    recount(connection, tenant)
    deliveries.rebuild(connection, sealer, tenant)
    return count


def restore(
    connection: sqlite3.Connection, sealer: Sealer, tenant: str, commits: Iterator[tuple[Commit, list[Event]]]
) -> Head:
    """Write an exported journal into an empty tenant, byte for byte.

    Raises:
        Conflict: the tenant is not empty.
        Tampered: the chain does not hold, or is another tenant's.
    """
    head, _ = read_head(connection, sealer, tenant)
    if head.seq:
        raise Conflict("a journal can only be restored into an empty tenant; choose another")
    raw = tenant.encode()
    head = Head(seq=0, hash=EMPTY_HASH)
    missing: dict[Place, bytes] = {}
    for commit, events in commits:
        _check_export(tenant, head, commit, events)
        missing |= erasing.empty_places(commit, events)
        connection.execute(SQL["add_commit"], commit_row(commit, sealer))
        connection.executemany(
            SQL["add_event"],
            [
                (
                    tenant,
                    each.seq,
                    each.n,
                    each.op,
                    each.memory_id,
                    each.version,
                    None if each.payload is None else each.salt,
                    each.payload,
                    each.payload_commit,
                    sealer.event(raw, each.seq, each.n, each.hash()),
                )
                for each in events
            ],
        )
        head = Head(seq=commit.seq, hash=commit.hash)
    erasing.take_over(connection, sealer, tenant, missing)
    newest: dict[str, Row] = {}
    arrivals: dict[str, int] = {}
    for seq, n, memory_id, version in connection.execute(
        "SELECT seq, n, memory_id, version FROM events WHERE tenant = ? ORDER BY seq, n", (tenant,)
    ):
        if version != (newest[memory_id][2] if memory_id in newest else 0) + 1:
            raise Tampered("the exported journal skips a version of a memory; export it again")
        newest[memory_id] = (seq, n, version)
        arrivals.setdefault(memory_id, seq * WIDTH + n)
    for memory_id, (seq, n, version) in newest.items():
        row = connection.execute(SQL["event_at"], {"tenant": tenant, "id": memory_id, "version": version}).fetchone()
        if row[6] is None:
            raise Tampered("the newest version of a memory in the exported journal has no content; export it again")
        record = decode_record(row[6])
        connection.execute(SQL["add_record"], record_row(tenant, seq, n, arrivals[memory_id], record))
        link_rows(connection, tenant, [record])
    recount(connection, tenant)
    return head


def _check_export(tenant: str, head: Head, commit: Commit, events: list[Event]) -> None:
    numbered = all(event.seq == commit.seq and event.n == n for n, event in enumerate(events))
    if commit.tenant != tenant or (commit.seq, commit.prev) != (head.seq + 1, head.hash) or not numbered:
        raise Tampered("the exported journal is not this tenant's, or a commit is missing; export it again")
    if recompute(commit, events) != commit.hash:
        raise Tampered(f"commit {commit.seq} of the exported journal does not match its hash; export it again")
    for event in events:
        opens = event.payload is None or payload_commitment(event.salt, event.payload) == event.payload_commit
        if not opens or not payload_fits(event):
            raise Tampered(f"an event of commit {commit.seq} of the exported journal was changed; export it again")
