"""Rewrite the rows of tenants: reseal under another key, rebuild records, restore or copy a journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
    CommitRow,
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


def reseal(db: Connection, sealer: Sealer, tenant: str) -> None:
    """Reseal the rows of a tenant that ``compute`` does not write: its journal, documents and features."""
    raw = tenant.encode()
    # Idempotency keys are hashed under the previous key, so no request could match them.
    db.run("forget_requests", tenant=tenant)

    def commit(row: Row) -> Row:
        each = CommitRow._make(row)
        return (sealer.commit(raw, each.seq, each.hash, each.receipt), tenant, each.seq)

    def event(row: Row) -> Row:
        each = EventRow._make(row)
        hashed = event_hash(each.n, each.op, each.memory_id, each.version, each.payload_commit)
        return (sealer.event(raw, each.seq, each.n, hashed), tenant, each.seq, each.n)

    def document(row: Row) -> Row:
        return (StoredDocument._make(row).sealed(sealer).seal, *row[:3])

    def features(row: Row) -> Row:
        each = FeatureRow._make(row).sealed(sealer, tenant)
        return (each.seal, tenant, each.id)

    _paged(db, "set_commit_seal", map(commit, db.stream("commits_after", tenant=tenant, after=-1)))
    _paged(db, "set_event_seal", map(event, db.stream("events_from", tenant=tenant, after=-1)))
    _paged(db, "set_document_seal", map(document, db.stream("all_documents", tenant=tenant)))
    _paged(db, "set_feature_seal", map(features, db.stream("all_features", tenant=tenant)))


def _paged(db: Connection, name: str, rows: Iterable[Row]) -> None:
    """Run a named statement for rows, a thousand at a time."""
    page: list[Row] = []
    for row in rows:
        page.append(row)
        if len(page) == _PAGE:
            db.run_many(name, page)
            page = []
    db.run_many(name, page)


def copy_tenant(source: Connection, writer: UnitOfWork, sealer: Sealer, tenant: str, source_head: TenantHead) -> None:
    """Replace all rows of a tenant by the source's rows, resealed with this store's key.

    ``source_head`` is the tenant's row in the source.
    """
    state, db = writer.state(tenant), writer.session
    writer.forget_candidates(tenant)
    for table in COLUMN_COUNTS:
        db.execute(f"DELETE FROM {table} WHERE tenant = ?", (tenant,))
        if table not in _COMPUTED:
            _paged(db, f"put_into_{table}", source.stream(f"all_of_{table}", tenant=tenant))
    state.head, state.restored = source_head.head, source_head.restored
    reseal(db, sealer, tenant)
    compute(db, sealer, tenant)
    tenants.recount(db, sealer, state)


def rebuild(writer: UnitOfWork, sealer: Sealer, tenant: str) -> int:
    """Recompute the rows that result from a tenant's journal and receipts; return the number of records.

    Features with a valid seal stay. Those with an invalid seal, or without a record, are deleted and computed later.

    Raises:
        Tampered: an event is damaged; nothing was changed.
    """
    state = writer.state(tenant)
    writer.forget_candidates(tenant)
    count = compute(writer.session, sealer, tenant)
    tenants.recount_records(writer.session, sealer, state)
    return count


def compute(db: Connection, sealer: Sealer, tenant: str) -> int:
    """Compute records, links, marks and deliveries from the journal and the receipts; see ``rebuild``."""
    raw, count = tenant.encode(), 0
    for table in _COMPUTED:
        db.execute(f"DELETE FROM {table} WHERE tenant = ?", (tenant,))
    for *cells, arrival in db.stream("newest_as_of", tenant=tenant, as_of=2**62):
        event = EventRow._make(cells)
        record = record_at(sealer, raw, event)
        if arrival is None or event.payload is None:
            raise Tampered("the first version of a memory is missing; run `keepward verify`")
        row = record_row(sealer, tenant, event.seq * MAX_EVENTS_PER_COMMIT + event.n, arrival, record, event.payload)
        db.run("add_record", (tenant, *row))
        db.run_many("add_link", link_rows(tenant, [record]))
        count += 1
    dropped = [memory_id for (memory_id,) in db.run("stray_features", tenant=tenant)]
    for row, features in map(split_record_row, db.stream("profiles", tenant=tenant, after=-1)):
        if features is not None and not features.has_valid_seal(sealer, tenant):
            dropped.append(row.id)
            db.run_many("add_listed", [listed_row(tenant, row, None)])
            continue
        db.run_many("add_listed", [listed_row(tenant, row, features)])
        if row.status == Status.ACTIVE:
            add_minhashes(db, minhash_rows(tenant, row, features))
    db.run_many("drop_features", [(tenant, memory_id) for memory_id in dropped])
    _paged(db, "add_delivery", project_deliveries(db, sealer, tenant))
    return count


def restore(writer: UnitOfWork, sealer: Sealer, tenant: str, commits: Iterator[tuple[Commit, list[Event]]]) -> Head:
    """Write an exported journal into an empty tenant, byte for byte. Its features are computed later.

    Raises:
        Conflict: the tenant is not empty.
        Tampered: the chain is broken, or belongs to another tenant.
    """
    state, db, raw = writer.state(tenant), writer.session, tenant.encode()
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
