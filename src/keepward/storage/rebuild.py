"""Rewrite the rows of tenants: reseal under another key, rebuild records, restore or copy a journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from keepward.core.commit import EMPTY_HASH, Commit, Event, EventPosition, Head, event_hash, recompute_commit_hash
from keepward.core.memory import Status
from keepward.core.serialization import commitment
from keepward.errors import Conflict, Tampered
from keepward.ports.world import Anchor
from keepward.storage import tenant as tenants
from keepward.storage.documents import StoredDocument
from keepward.storage.erasing import empty_positions
from keepward.storage.journal import payload_matches_event, walk_chain
from keepward.storage.rows import (
    MAX_EVENTS_PER_COMMIT,
    EventRow,
    FeatureRow,
    listed_row,
    minhash_rows,
    record_at,
    record_row,
    split_record_row,
)
from keepward.storage.seals import Sealer
from keepward.storage.sql import COLUMN_COUNTS, Connection, Database, Row
from keepward.storage.tenant import TenantHead
from keepward.storage.uses import project_deliveries
from keepward.storage.writer import UnitOfWork, add_minhashes, commit_row, link_rows

_PAGE = 1000
#: Tables that are computed from the others.
_COMPUTED = ("records", "listed", "marks", "links", "deliveries")


def adopt(database: Database, anchor: Anchor, note: tuple[str, str] | None) -> Sealer:
    """Verify the chain of every tenant, then seal all rows under a new key, in one transaction.

    ``note`` is a name and a sentence, stored in the metadata; None for an empty store.

    Raises:
        Tampered: a chain is broken.
        OSError: the anchor cannot be written.
    """
    unsealed = Sealer(None)
    with database.writing() as db:
        db.run("lock_seals").fetchall()
        key = anchor.key()
        if note is None and key is not None:
            return Sealer(key)  # Another process was first.
        states = []
        for (tenant,) in db.run("everyone").fetchall():
            db.select_tenant(tenant)
            for fault in walk_chain(db, unsealed, tenant):
                raise Tampered(
                    f"the store cannot be resealed, since its journal is damaged ({fault.row}: {fault.detail}); "
                    "`keepward store recover` copies what is intact"
                )
            states.append(tenants.read(db, unsealed, tenant))
        sealer = Sealer(anchor.adopt())
        for state in states:
            db.select_tenant(state.tenant)
            reseal(db, sealer, state.tenant)
            compute(db, sealer, state.tenant)
            tenants.recount(db, sealer, state)
            tenants.write(db, sealer, state)
        db.run("set_meta", name="sealed_by", value=sealer.key_id)
        if note is not None:
            db.run("set_meta", name=note[0], value=note[1])
    for state in states:
        anchor.record_head(state.tenant, state.head if state.head.seq else None, state.sums_head())
    return sealer


def _sealed_commit(sealer: Sealer, tenant: bytes, row: Row) -> Row:
    # Idempotency keys are hashed under the previous key, so no request could match them.
    *cells, receipt, _, _, _ = row
    return (*cells, receipt, None, None, sealer.commit(tenant, row[1], row[10], receipt))


def _sealed_event(sealer: Sealer, tenant: bytes, row: Row) -> Row:
    _, seq, n, op, memory_id, version, _, _, payload_commit, _ = row
    return (*row[:-1], sealer.event(tenant, seq, n, event_hash(n, op, memory_id, version, payload_commit)))


def _sealed_document(sealer: Sealer, tenant: bytes, row: Row) -> Row:
    return StoredDocument._make(row).sealed(sealer)


def _sealed_features(sealer: Sealer, tenant: bytes, row: Row) -> Row:
    return (row[0], *FeatureRow._make(row[1:]).sealed(sealer, row[0]))


#: By table that ``compute`` does not write: what seals one of its rows, and the statement and key that change its seal.
_SEALED: dict[str, tuple[Callable[[Sealer, bytes, Row], Row], str, int]] = {
    "commits": (_sealed_commit, "set_commit_seal", 2),
    "events": (_sealed_event, "set_event_seal", 3),
    "documents": (_sealed_document, "set_document_seal", 3),
    "features": (_sealed_features, "set_feature_seal", 2),
}


def reseal(db: Connection, sealer: Sealer, tenant: str) -> None:
    """Reseal the rows of a tenant that ``compute`` does not write: its journal, documents and features."""
    raw = tenant.encode()
    db.run("forget_requests", tenant=tenant)
    for table, (sealed, statement, width) in _SEALED.items():
        rows = db.stream(f"all_of_{table}", tenant=tenant)
        _paged(db, statement, ((sealed(sealer, raw, row)[-1], *row[:width]) for row in rows))


def _paged(db: Connection, name: str, rows: Iterable[Row], report: Callable[[], None] = lambda: None) -> int:
    """Run a named statement for rows, a thousand at a time, and report each thousand; return their number."""
    count, waiting = 0, iter(rows)
    while page := list(islice(waiting, _PAGE)):
        db.run_many(name, page)
        count += len(page)
        report()
    return count


def _analyze(db: Connection, table: str, count: int) -> None:
    """Let the planner know that a table got many rows: inside a transaction it takes a new table for empty."""
    if db.has_statistics and count >= _PAGE:
        db.execute(f"ANALYZE {table}")


def copy_tenant(
    source: Connection,
    writer: UnitOfWork,
    sealer: Sealer,
    tenant: str,
    source_head: TenantHead,
    report: Callable[[], None],
) -> None:
    """Replace all rows of a tenant by the source's rows, resealed with this store's key.

    ``source_head`` is the tenant's row in the source. ``report`` is called after each thousand rows.
    """
    state, db, raw = writer.state(tenant), writer.connection, tenant.encode()
    writer.forget_candidates(tenant)
    for table in COLUMN_COUNTS:
        db.execute(f"DELETE FROM {table} WHERE tenant = ?", (tenant,))
    for table, (sealed, _, _) in _SEALED.items():
        rows = source.stream(f"all_of_{table}", tenant=tenant)
        count = _paged(db, f"put_into_{table}", (sealed(sealer, raw, row) for row in rows), report)
        _analyze(db, table, count)
    state.head, state.restored = source_head.head, source_head.restored
    compute(db, sealer, tenant, report)
    tenants.recount(db, sealer, state)


def rebuild(writer: UnitOfWork, sealer: Sealer, tenant: str) -> int:
    """Recompute the rows that result from a tenant's journal and receipts; return the number of records.

    Features with a valid seal stay. Those with an invalid seal, or without a record, are deleted and computed later.

    Raises:
        Tampered: an event is damaged; nothing was changed.
    """
    state = writer.state(tenant)
    writer.forget_candidates(tenant)
    count = compute(writer.connection, sealer, tenant)
    tenants.recount_records(writer.connection, sealer, state)
    return count


def compute(db: Connection, sealer: Sealer, tenant: str, report: Callable[[], None] = lambda: None) -> int:
    """Compute records, links, marks and deliveries from the journal and the receipts; see ``rebuild``.

    ``report`` is called after each thousand memories.
    """
    raw = tenant.encode()
    for table in _COMPUTED:
        db.execute(f"DELETE FROM {table} WHERE tenant = ?", (tenant,))
    links: list[Row] = []

    def records() -> Iterator[Row]:
        for *cells, arrival in db.stream("newest_as_of", tenant=tenant, as_of=2**62):
            event = EventRow._make(cells)
            record = record_at(sealer, raw, event)
            if arrival is None or event.payload is None:
                raise Tampered("the first version of a memory is missing; run `keepward verify`")
            links.extend(link_rows(tenant, [record]))
            position = event.seq * MAX_EVENTS_PER_COMMIT + event.n
            yield (tenant, *record_row(sealer, tenant, position, arrival, record, event.payload))

    def save_links() -> None:
        db.run_many("add_link", links)
        links.clear()
        report()

    count = _paged(db, "add_record", records(), save_links)
    _analyze(db, "records", count)
    dropped = [memory_id for (memory_id,) in db.run("stray_features", tenant=tenant)]
    listed, minhashes = list[Row](), list[Row]()

    def save() -> None:
        db.run_many("add_listed", listed)
        add_minhashes(db, minhashes)
        listed.clear()
        minhashes.clear()
        report()

    for row, features in map(split_record_row, db.stream("profiles", tenant=tenant, after=-1)):
        if features is not None and not features.has_valid_seal(sealer, tenant):
            dropped.append(row.id)
            listed.append(listed_row(tenant, row, None))
            continue
        listed.append(listed_row(tenant, row, features))
        if row.status == Status.ACTIVE:
            minhashes += minhash_rows(tenant, row, features)
        if len(listed) == _PAGE:
            save()
    save()
    db.run_many("drop_features", [(tenant, memory_id) for memory_id in dropped])
    _paged(db, "add_delivery", project_deliveries(db, sealer, tenant))
    return count


def restore(writer: UnitOfWork, sealer: Sealer, tenant: str, commits: Iterator[tuple[Commit, list[Event]]]) -> Head:
    """Write an exported journal into an empty tenant, byte for byte. Its features are computed later.

    Raises:
        Conflict: the tenant is not empty.
        Tampered: the chain is broken, or belongs to another tenant.
    """
    state, db, raw = writer.state(tenant), writer.connection, tenant.encode()
    if state.head.seq:
        raise Conflict("a journal can only be restored into an empty tenant; choose another")
    head = Head(seq=0, hash=EMPTY_HASH)
    missing: dict[EventPosition, bytes] = {}
    for commit, events in commits:
        _check_export(tenant, head, commit, events)
        missing |= empty_positions(commit, events)
        db.run("add_commit", commit_row(commit, sealer))
        db.run_many("add_event", [event_row(tenant, raw, event, sealer) for event in events])
        head = Head(seq=commit.seq, hash=commit.hash)
    state.head, state.restored = head, head.seq
    writer.restore_erasures(tenant, missing)
    if db.run("misordered", tenant=tenant).fetchone() is not None:
        raise Tampered("the exported journal skips a version of a memory; export it again")
    try:
        rebuild(writer, sealer, tenant)
    except Tampered as exc:
        raise Tampered(
            "the newest version of a memory in the exported journal has no content; export it again"
        ) from exc
    return head


def event_row(tenant: str, raw: bytes, event: Event, sealer: Sealer) -> Row:
    return (
        tenant,
        event.seq,
        event.n,
        event.op,
        event.memory_id,
        event.version,
        None if event.payload is None else event.salt,
        event.payload,
        event.payload_commit,
        sealer.event(raw, event.seq, event.n, event.hash()),
    )


def _check_export(tenant: str, head: Head, commit: Commit, events: list[Event]) -> None:
    numbered = all(event.seq == commit.seq and event.n == n for n, event in enumerate(events))
    if commit.tenant != tenant or (commit.seq, commit.prev) != (head.seq + 1, head.hash) or not numbered:
        raise Tampered("the exported journal is not this tenant's, or a commit is missing; export it again")
    if recompute_commit_hash(commit, events) != commit.hash:
        raise Tampered(f"commit {commit.seq} of the exported journal does not match its hash; export it again")
    for event in events:
        opens = event.payload is None or commitment(event.salt, event.payload) == event.payload_commit
        if not opens or not payload_matches_event(event):
            raise Tampered(f"an event of commit {commit.seq} of the exported journal was changed; export it again")
