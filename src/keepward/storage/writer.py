"""The writes of one transaction, and reads of the state that it sees.

Invariants
(1) A commit follows the newest one. It is written only if the memories in its ``base`` still have the versions there.
(2) A key has one active record. An expired memory occupies its key until it is upserted, archived or retired.
(3) If a commit changes a memory several times, only the final state is written to the records. So one commit can take a
    key from one memory and give it to another.
(4) The row of each changed tenant is written once, when the transaction ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from keepward.core.commit import DETAILS, Commit, EventPosition, Head, commit_hash, event_hash
from keepward.core.json_form import HexBytes
from keepward.core.memory import MemoryFields, Record, Status
from keepward.core.serialization import commitment, digest, encode_record
from keepward.core.value import to_micros
from keepward.errors import Conflict, InvalidInput, StaleVersion, Tampered
from keepward.idempotency import IdempotencyKey
from keepward.ports.store import Destruction, Features, PendingCommit
from keepward.storage import candidates
from keepward.storage import tenant as tenants
from keepward.storage.documents import ReceiptArtefact, encode_body
from keepward.storage.erasing import SCRUB_PENDING, erased_details_document, erased_positions
from keepward.storage.reads import StoreReader
from keepward.storage.rows import (
    MAX_EVENTS_PER_COMMIT,
    EventRow,
    FeatureRow,
    RecordRow,
    feature_row,
    json_array,
    listed_row,
    minhash_rows,
    record_row,
    split_record_row,
)
from keepward.storage.seals import Sealer
from keepward.storage.sql import Connection, Row
from keepward.storage.tenant import TenantHead
from keepward.storage.uses import UseWrites

_SCRUB_PENDING_NOTE = (
    "content was erased, and its bytes may still lie in free pages or in the log of the file: close other readers "
    "and open the store once more"
)
_ALREADY_ERASED = "the content is already erased; plan the erasure again"


class UnitOfWork(UseWrites, StoreReader):
    """One open transaction."""

    def __init__(
        self,
        db: Connection,
        sealer: Sealer,
        check_anchor: Callable[[Connection, TenantHead], None],
        if_rolled_back: Callable[[Callable[[], None]], object],
    ) -> None:
        """Write on a connection; ``check_anchor`` compares a tenant with the anchor before its first use."""
        #: Takes functions, which are called once the transaction has rolled back.
        self.if_rolled_back = if_rolled_back
        self._db = db
        self._sealer = sealer
        self._check_anchor = check_anchor
        self._states: dict[str, TenantHead] = {}
        #: The tenant that is selected on the connection, if one is.
        self._selected: str | None = None
        #: Tenants whose row was asked for.
        self._awaited: set[str] = set()
        #: Tenants whose row has changed.
        self._changed: set[str] = set()
        #: Ids of memories whose rows have changed, by tenant.
        self._changed_ids: dict[str, set[str]] = {}

    @property
    def connection(self) -> Connection:
        """The connection of this transaction, for rebuilding the rows of a tenant."""
        return self._db

    def unchanged_state(self, tenant: str) -> TenantHead:
        """Return the row of a tenant, to read it."""
        return self._tenant_row(tenant)

    def state(self, tenant: str) -> TenantHead:
        """Return the row of a tenant for changes; it is written when the transaction ends."""
        state = self._tenant_row(tenant)
        self._changed.add(tenant)
        return state

    def _select(self, tenant: str) -> None:
        if self._selected != tenant:
            self._db.select_tenant(tenant)
            self._selected = tenant

    def _tenant_row(self, tenant: str) -> TenantHead:
        self._select(tenant)
        state = self._states.get(tenant)
        if state is None:
            state = tenants.read(self._db, self._sealer, tenant)
            self._check_anchor(self._db, state)
            self._states[tenant] = state
        return state

    @contextmanager
    def _reading(self, tenant: str) -> Iterator[Connection]:
        self._select(tenant)
        if tenant not in self._states and tenant not in self._awaited:
            # Where an answer takes a round trip, the row is checked with that of the first read, or at the end.
            if self._db.ask_ahead("tenant", tenant=tenant):
                self._awaited.add(tenant)
            else:
                self._tenant_row(tenant)
        yield self._db

    def ask_ahead(self, name: str, tenant: str, *, pages: bool = False, **values: Any) -> None:
        with self._reading(tenant) as db:
            db.ask_ahead(name, pages=pages, tenant=tenant, **values)

    @contextmanager
    def _everywhere(self) -> Iterator[Connection]:
        self._db.select_tenant(None)
        self._selected = None
        yield self._db

    def finish(self) -> dict[str, TenantHead]:
        """Write the changed tenant rows; return what the anchor records once the transaction is durable."""
        for tenant in sorted(self._awaited):
            self._tenant_row(tenant)
        for tenant, ids in sorted(self._changed_ids.items()):
            if self._tenant_row(tenant).searched:
                candidates.refresh(self._db, self._sealer, tenant, ids)
        for tenant in sorted(self._changed):
            tenants.write(self._db, self._sealer, self._tenant_row(tenant))
        return {tenant: self._states[tenant] for tenant in sorted(self._changed)}

    def index_next_batch(self, tenant: str) -> bool:
        """Index a tenant's next memories as candidates; return whether these were the last."""
        self._tenant_row(tenant).searched = True
        return candidates.index_next_batch(self._db, self._sealer, tenant)

    def forget_candidates(self, tenant: str) -> None:
        """Delete a tenant's candidate rows."""
        state = self._tenant_row(tenant)
        if state.searched:
            candidates.drop_candidates(self._db, tenant)
            state.searched = False

    def append(self, tenant: str, stage: PendingCommit) -> Commit:
        """Write a commit with its events, records and features.

        Raises:
            StaleVersion: a base version is outdated.
            Conflict: a key is taken, or an earlier commit has the idempotency key.
            InvalidInput: the numbers of salts, features and steps differ, there are over a million steps, or
                the facts of the receipt are not JSON.
        """
        steps = stage.steps
        if (
            len(stage.salts) != len(steps) + 1
            or len(stage.features) != len(steps)
            or len(steps) >= MAX_EVENTS_PER_COMMIT
        ):
            raise InvalidInput("a commit needs a salt of its own, and a salt and features for each of its steps")
        state = self.state(tenant)
        head = state.head
        if stage.base:
            self._check_base(tenant, stage)
        seq, tenant_bytes = head.seq + 1, tenant.encode()
        hashes, events, payloads = [], [], []
        for n, (step, salt) in enumerate(zip(steps, stage.salts[1:], strict=True)):
            record, payload = step.after, encode_record(step.after)
            payload_commit = commitment(salt, payload)
            hashed = event_hash(n, step.op, record.id, record.version, payload_commit)
            seal = self._sealer.event(tenant_bytes, seq, n, hashed)
            hashes.append(hashed)
            payloads.append(payload)
            events.append(
                (tenant, *EventRow(seq, n, step.op, record.id, record.version, salt, payload, payload_commit, seal))
            )
        unhashed = Commit(
            id=stage.commit_id,
            tenant=tenant,
            seq=seq,
            at=stage.at,
            kind=stage.kind,
            actor_kind=stage.actor_kind,
            prev=HexBytes(head.hash),
            events_hash=HexBytes(digest("events", *hashes)),
            salt=HexBytes(stage.salts[0]),
            payload=HexBytes(stage.details.encode()),
            hash=HexBytes(),
        )
        commit = replace(unhashed, hash=HexBytes(commit_hash(unhashed)))
        state.head = Head(seq=seq, hash=commit.hash)
        receipt = None if stage.receipt is None else encode_body(stage.receipt.as_dict() | {"head": state.head.name})
        self._db.run_many("add_commit", [commit_row(commit, self._sealer, receipt, stage.idempotency_key)])
        self._db.run_many("add_event", events)
        self._project(tenant, seq, stage, payloads, state)
        self._changed_ids.setdefault(tenant, set()).update(step.after.id for step in steps)
        return commit

    def _check_base(self, tenant: str, stage: PendingCommit) -> None:
        ids = sorted({*stage.base, *(step.after.id for step in stage.steps)})
        newest = dict(self._db.run("newest_versions", tenant=tenant, ids=json_array(ids)).fetchall())
        for memory_id, version in stage.base.items():
            if newest.get(memory_id, 0) != version:
                raise StaleVersion(f"memory {memory_id} has changed; read it again and decide again")
        for step in stage.steps:
            version = newest.get(step.after.id, 0) + 1
            if step.after.version != version:
                raise StaleVersion(f"memory {step.after.id} is not at the version this change follows")
            newest[step.after.id] = version

    def _project(
        self, tenant: str, seq: int, stage: PendingCommit, payloads: Sequence[bytes], state: TenantHead
    ) -> None:
        """Replace the records, features, links and minhashes of the memories that a commit changes."""
        final: dict[str, tuple[int, Record, Features | None]] = {}
        arrivals: dict[str, int] = {}
        for n, (step, computed) in enumerate(zip(stage.steps, stage.features, strict=True)):
            earlier = final.get(step.after.id)
            current = computed if computed is not None or earlier is None else earlier[2]
            final[step.after.id] = (n, step.after, current)
            if step.after.version == 1:
                arrivals[step.after.id] = seq * MAX_EVENTS_PER_COMMIT + n
        known = [memory_id for memory_id in final if memory_id not in arrivals]
        old: dict[str, tuple[RecordRow, FeatureRow | None]] = {}
        if known:
            ids = {"tenant": tenant, "ids": json_array(known)}
            arrived, profiles = self._db.run("arrivals", ids), self._db.run("profiles_by_id", ids)
            arrivals |= dict(arrived.fetchall())
            old = {row[0]: split_record_row(row) for row in profiles.fetchall()}
            self._db.run_many(
                "drop_minhash", [minhash for value in old.values() for minhash in minhash_rows(tenant, *value)]
            )
            self._db.run("drop_records", ids)
            self._db.run("drop_listed", tenant=tenant, arrivals=str([arrivals[memory_id] for memory_id in known]))
            self._db.run("drop_links", ids)
        rows: list[RecordRow] = []
        valid_features: list[FeatureRow] = []
        listed: list[Row] = []
        minhashes: list[Row] = []
        for memory_id, (n, record, given) in final.items():
            position = seq * MAX_EVENTS_PER_COMMIT + n
            row = record_row(self._sealer, tenant, position, arrivals[memory_id], record, payloads[n])
            rows.append(row)
            features: FeatureRow | None = None
            before = old[memory_id][1] if memory_id in old else None
            if given is not None:
                features = feature_row(self._sealer, tenant, memory_id, record.version, given)
            elif before is not None and before.has_valid_seal(self._sealer, tenant):
                features = before._replace(version=record.version).sealed(self._sealer, tenant)
            if features is not None:
                valid_features.append(features)
            listed.append(listed_row(tenant, row, features))
            if row.status == Status.ACTIVE:
                minhashes += minhash_rows(tenant, row, features)
        self._db.run_many("add_record", [(tenant, *row) for row in rows])
        self._db.run_many("add_listed", listed)
        self._db.run_many("put_features", [(tenant, *row) for row in valid_features])
        self._db.run_many("add_link", link_rows(tenant, (record for _, record, _ in final.values())))
        add_minhashes(self._db, minhashes)
        state.replace_records(self._sealer, (row for row, _ in old.values()), rows)

    def put_features(
        self, tenant: str, features: Mapping[str, Features], versions: Mapping[str, int] | None = None
    ) -> None:
        """Replace the features of memories, by id. ``versions`` skips memories whose newest version is another one."""
        self.state(tenant)
        self._changed_ids.setdefault(tenant, set()).update(features)
        dropped: list[Row] = []
        changed: list[FeatureRow] = []
        vectors: list[Row] = []
        minhashes: list[Row] = []
        rows = self._db.run("profiles_by_id", tenant=tenant, ids=json_array(features)).fetchall()
        for row, before in map(split_record_row, rows):
            if versions is not None and versions.get(row.id) != row.version:
                continue
            fresh = feature_row(self._sealer, tenant, row.id, row.version, features[row.id])
            dropped += minhash_rows(tenant, row, before)
            changed.append(fresh)
            vectors.append((fresh.model, None if fresh.model is None else fresh.recipe, tenant, row.arrival))
            if row.status == Status.ACTIVE:
                minhashes += minhash_rows(tenant, row, fresh)
        self._db.run_many("drop_minhash", dropped)
        self._db.run_many("put_features", [(tenant, *row) for row in changed])
        self._db.run_many("set_listed_vectors", vectors)
        add_minhashes(self._db, minhashes)

    def destroy(self, tenant: str, what: Destruction) -> None:
        """Destroy the content that this transaction's commit names, and record that the file must be scrubbed.

        Raises:
            Conflict: a payload is missing or already erased.
        """
        self.put_all(what.proposals)
        self.put_all(what.feedback)
        by_seq, seqs = self.state(tenant).head.seq, sorted({seq for seq, _ in what.events})
        rows = self._db.run("contents_at", tenant=tenant, seqs=str(seqs)).fetchall()
        if not {(seq, n) for seq, n in rows}.issuperset(what.events):
            raise Conflict(_ALREADY_ERASED)
        rows = self._db.run("details_at", tenant=tenant, seqs=str(sorted(what.details))).fetchall()
        if len(rows) != len(what.details):
            raise Conflict(_ALREADY_ERASED)
        self._put_all(
            [
                erased_details_document(tenant, seq, by_seq, commitment(salt, payload), what.details[seq].encode())
                for seq, salt, payload in rows
            ]
        )
        self._db.run_many("erase_event", [(tenant, *position) for position in what.events])
        self._db.run_many("erase_details", [(tenant, seq) for seq in what.details])
        emptied = sorted({seq for seq, _ in what.events} | what.details.keys())
        self._db.run_many("forget_request", [(tenant, seq) for seq in emptied])
        self.drop_of_memories(tenant, what.ids)
        self.delete(ReceiptArtefact, tenant, *(f"{kind}/{version}" for kind, version in what.artefacts))
        self.rewrite_receipts(tenant, what.receipts)
        self._db.run("set_meta", name=SCRUB_PENDING, value=_SCRUB_PENDING_NOTE)

    def note_reindexed(self, tenant: str) -> None:
        """Store that vectors or words were replaced, so that no index file from before is believed."""
        self._db.run("set_meta", name=f"reindexed_{tenant}", value=str(self.state(tenant).writes))

    def clear_scrub_pending(self) -> None:
        """Delete the note that the file must be scrubbed."""
        self._db.run("drop_meta", name=SCRUB_PENDING)

    def restore_erasures(self, tenant: str, missing: Mapping[EventPosition, bytes]) -> None:
        """Record the erasures of a restored journal. ``missing`` has the commitments of its positions without content.

        Raises:
            Tampered: content is missing without a later erasure that names it, or exists despite one.
        """
        named = erased_positions(self._db, tenant)
        if missing.keys() != named.keys() or any(by <= position[0] for position, by in named.items()):
            raise Tampered("the exported journal lacks content that no erasure names, or contains erased content")
        for seq, n in sorted(missing):
            if n == DETAILS:
                self._put(erased_details_document(tenant, seq, named[seq, n], missing[seq, n], None), new=True)


def commit_row(commit: Commit, sealer: Sealer, receipt: bytes | None = None, key: IdempotencyKey | None = None) -> Row:
    return (
        commit.tenant,
        commit.seq,
        commit.id,
        to_micros(commit.at),
        commit.kind,
        commit.actor_kind,
        commit.prev,
        commit.events_hash,
        None if commit.payload is None else commit.salt,
        commit.payload,
        commit.hash,
        receipt,
        None if key is None else sealer.request_key(commit.tenant, key),
        None if key is None else sealer.request_digest(commit.tenant, key, commit.id),
        sealer.commit(commit.tenant.encode(), commit.seq, commit.hash, receipt),
    )


def add_minhashes(db: Connection, rows: Iterable[Row]) -> None:
    """Write rows of the table ``marks`` in its own order, so that neighbouring rows are written together."""
    db.run_many("add_minhash", sorted(rows))


def link_rows(tenant: str, records: Iterable[Record | MemoryFields]) -> list[Row]:
    """Return the links of records: their source memories, evidence, aliases and blobs."""
    rows: list[Row] = []
    for record in records:
        rows += [(tenant, "lineage", parent, record.id) for parent in record.derived_from]
        # The state of a memory on a branch derives from it.
        rows += [(tenant, "lineage", record.branched_id, record.id)] if record.branched_id is not None else []
        rows += [(tenant, "evidence", cited, record.id) for cited in dict.fromkeys(record.evidence)]
        rows += [(tenant, "aliases", alias, record.id) for alias in record.aliases]
        rows += [(tenant, "attachments", record.blob, record.id)] if record.blob is not None else []
    return rows
