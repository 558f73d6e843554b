"""What may be done inside one transaction on a SQLite store.

Invariants
(1) A commit is written only on the head it names and on the versions it was judged on.
(2) A key has one active record. An expired occupant keeps its key until it is upserted, archived or retired.
(3) Only a memory's final state in a commit reaches the tables beside the journal, so that keys may be
    handed on within one commit, in any order.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from operator import itemgetter

from keepward.errors import Conflict, InvalidInput, StaleVersion, Tampered
from keepward.model.codec import canonical, encode_record
from keepward.model.commit import Commit, Head, Receipt, commit_hash
from keepward.model.job import JobRow
from keepward.model.memory import Record, Status
from keepward.model.proposal import Waiting, waiting_to_dict
from keepward.model.query import Feedback
from keepward.model.trust import Token
from keepward.model.value import to_micros
from keepward.ports.erasing import Destruction
from keepward.ports.store import Features, Stage
from keepward.stores.sql import load_queries
from keepward.stores.sqlite import deliveries, erasing, feedback, jobs
from keepward.stores.sqlite.beside import Ledger
from keepward.stores.sqlite.blobs import BlobWrites
from keepward.stores.sqlite.heads import read_head, write_head
from keepward.stores.sqlite.rows import (
    WIDTH,
    Row,
    event_hash,
    facts_of,
    feature_row,
    features_of,
    listed,
    pack_marks,
    payload_commitment,
    place_of,
    placed_marks,
    record_of,
    record_row,
    unpack_marks,
)
from keepward.stores.sqlite.seals import Sealer, sha256
from keepward.stores.sqlite.search import is_known
from keepward.stores.sqlite.tokens import put_token

SQL = load_queries("keepward.stores.sqlite")
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


class SqliteWriter(BlobWrites):
    """One open transaction. See ``ports.store.Writer``."""

    def __init__(self, connection: sqlite3.Connection, sealer: Sealer) -> None:
        self._db = connection
        self._sealer = sealer
        #: Counts what stands beside the journal.
        self.ledger = Ledger(connection, sealer)
        #: Heads to note at the anchor once the transaction is durable.
        self.heads: dict[str, Head] = {}

    def append(self, tenant: str, stage: Stage) -> Commit:
        """Write a commit with its events, records and features.

        Raises:
            StaleVersion: a base version has moved.
            Conflict: a key is taken, or a digest is no longer free.
            InvalidInput: salts or features are not one for each step, or there are over a million steps.
        """
        steps = stage.steps
        if len(stage.salts) != len(steps) + 1 or len(stage.features) != len(steps) or len(steps) >= WIDTH:
            raise InvalidInput("a commit needs a salt of its own, and a salt and features for each of its steps")
        head, restored = read_head(self._db, self._sealer, tenant)
        self.ledger.begin(tenant)
        self._check_base(tenant, stage)
        self._check_digests(tenant, stage)
        seq, tenant_bytes = head.seq + 1, tenant.encode()
        hashes, events = [], []
        for n, (step, salt) in enumerate(zip(steps, stage.salts[1:], strict=True)):
            payload = encode_record(step.after)
            promise = payload_commitment(salt, payload)
            hashed = event_hash(n, step.op, step.after.id, step.after.version, promise)
            hashes.append(hashed)
            seal = self._sealer.event(tenant_bytes, seq, n, hashed)
            events.append((tenant, seq, n, step.op, step.after.id, step.after.version, salt, payload, promise, seal))
        details, salt = stage.details.encode(), stage.salts[0]
        joined = sha256(b"keepward/events/v1\0", *hashes)
        commit = Commit(
            id=stage.commit_id,
            tenant=tenant,
            seq=seq,
            at=stage.at,
            kind=stage.kind,
            actor_kind=stage.actor_kind,
            prev=head.hash,
            events_hash=joined,
            salt=salt,
            payload=details,
            hash=commit_hash(
                commit_id=stage.commit_id,
                tenant=tenant,
                seq=seq,
                at=stage.at,
                kind=stage.kind,
                actor_kind=stage.actor_kind,
                prev=head.hash,
                events=joined,
                payload_commit=payload_commitment(salt, details),
            ),
        )
        self._db.execute(SQL["add_commit"], commit_row(commit, self._sealer))
        self._db.executemany(SQL["add_event"], events)
        self._project(tenant, seq, stage)
        self.set_head(tenant, Head(seq=seq, hash=commit.hash), restored)
        return commit

    def set_head(self, tenant: str, head: Head, restored: int) -> None:
        """Write the head row, and note the head once the transaction is durable."""
        write_head(self._db, self._sealer, tenant, head, restored)
        self.heads[tenant] = head

    def _check_base(self, tenant: str, stage: Stage) -> None:
        ids = sorted({*stage.base, *(step.after.id for step in stage.steps)})
        newest = dict(self._db.execute(SQL["newest_versions"], {"tenant": tenant, "ids": listed(ids)}))
        for memory_id, version in stage.base.items():
            if newest.get(memory_id, 0) != version:
                raise StaleVersion(f"memory {memory_id} has moved on; read it again and decide anew")
        for step in stage.steps:
            version = newest.get(step.after.id, 0) + 1
            if step.after.version != version:
                raise StaleVersion(f"memory {step.after.id} is not at the version this change follows")
            newest[step.after.id] = version

    def _check_digests(self, tenant: str, stage: Stage) -> None:
        own = {step.after.id for step in stage.steps}
        for tier, scope, sensitivity, subject, digest in stage.free_digests:
            # Nearly every text is new, and then the longer question need not be asked.
            if not is_known(self._db, tenant, digest):
                continue
            values = {
                "tenant": tenant,
                "tier": tier,
                "scope": scope,
                "sensitivity": sensitivity,
                "subject": subject,
                "digest": digest,
                "now": to_micros(stage.at),
            }
            if any(memory_id not in own for (memory_id,) in self._db.execute(SQL["digest_taken"], values)):
                raise Conflict("the same was remembered in the meantime; propose again")

    def _project(self, tenant: str, seq: int, stage: Stage) -> None:
        final: dict[str, tuple[int, Record, Features | None]] = {}
        for n, (step, features) in enumerate(zip(stage.steps, stage.features, strict=True)):
            earlier = final.get(step.after.id)
            kept = features if features is not None or earlier is None else earlier[2]
            final[step.after.id] = (n, step.after, kept)
        born = {step.after.id: n for n, step in enumerate(stage.steps) if step.after.version == 1}
        known = [memory_id for memory_id in final if memory_id not in born]
        arrivals = {memory_id: seq * WIDTH + n for memory_id, n in born.items()}
        old: dict[str, Row] = {}
        dropped: list[Row] = []
        tally = Counter(record.tier.value for _, record, _ in final.values() if record.status is Status.ACTIVE)
        if known:
            ids = {"tenant": tenant, "ids": listed(known)}
            arrivals |= dict(self._db.execute(SQL["arrivals"], ids))
            old = {row[0]: row[1:] for row in self._db.execute(SQL["features_by_id"], ids)}
            places = self._db.execute(SQL["places"], ids).fetchall()
            tally.subtract(place.split(" ")[0] for _, _, status, place, _ in places if status == Status.ACTIVE)
            self._drop_marks(tenant, places, old)
            dropped = self._db.execute(SQL["drop_records"], ids).fetchall()
            for name in ("drop_lineage", "drop_aliases", "drop_attachments"):
                self._db.execute(SQL[name], ids)
        rows = {each: record_row(tenant, seq, n, arrivals[each], record) for each, (n, record, _) in final.items()}
        try:
            self._db.executemany(SQL["add_record"], rows.values())
        except sqlite3.IntegrityError as fault:
            raise Conflict("the key is taken by another memory; revise that one instead") from fault
        self.ledger.turn_records(tenant, dropped, rows.values())
        self._db.executemany(SQL["add_tally"], [(tenant, tier, count) for tier, count in tally.items() if count])
        link_rows(self._db, tenant, (record for _, record, _ in final.values()))
        made = []
        touched = Counter(step.after.id for step in stage.steps)
        for memory_id, (_, record, features) in final.items():
            kept = features
            if kept is None and memory_id in old:
                row = old[memory_id]
                kept = features_of(self._sealer, tenant, memory_id, record.version - touched[memory_id], row)
            if kept is not None:
                columns = rows[memory_id][1:]
                made.append((record, feature_row(self._sealer, tenant, columns, facts_of(record), kept)))
        self._db.executemany(SQL["set_features"], (row for _, row in made))
        placed = [mark_rows(tenant, record, rows[record.id][5], row[6]) for record, row in made]
        self._db.executemany(
            SQL["add_mark"],
            # In the order of the table, so that neighbours are written together; the tenant is one and the same.
            sorted(chain.from_iterable(placed), key=itemgetter(1)),
        )

    def _drop_marks(self, tenant: str, places: Iterable[Row], old: Mapping[str, Row]) -> None:
        gone = [
            (tenant, mark, position)
            for memory_id, _, _, place, position in places
            if memory_id in old
            for mark in placed_marks(place, unpack_marks(old[memory_id][4]))
        ]
        self._db.executemany(SQL["drop_mark"], gone)

    def put_receipt(self, receipt: Receipt) -> None:
        """Keep a receipt.

        Raises:
            Conflict: there is one by that id.
            InvalidInput: its facts are not JSON.
        """
        values = (receipt.tenant, receipt.id, receipt.kind, to_micros(receipt.at), _json(receipt.as_dict()))
        seal = self._sealer.row("receipts", *values)
        try:
            self._db.execute(SQL["add_receipt"], (*values, seal))
        except sqlite3.IntegrityError as fault:
            raise Conflict("a receipt is written once; this one is there already") from fault
        self.ledger.turn("receipts", receipt.tenant, None, seal)
        if receipt.kind == "compile":
            deliveries.write(self._db, receipt.tenant, receipt.id, receipt.facts)

    def put_token(self, token: Token) -> None:
        """Keep a token, or its new state."""
        put_token(self._db, self._sealer, self.ledger, token)

    def put_waiting(self, item: Waiting, *, was: str | None = None) -> None:
        """Keep a proposal in the review queue, or its new state.

        Raises:
            Conflict: ``was`` names another state than the one it is in.
        """
        row = self._db.execute(SQL["proposal"], {"tenant": item.tenant, "id": item.id}).fetchone()
        if was is not None and (row is None or row[1] != was):
            raise Conflict("the proposal was decided in the meantime; look at it again")
        values = (
            item.tenant,
            item.id,
            item.state,
            to_micros(item.created_at),
            to_micros(item.expires_at),
            canonical(waiting_to_dict(item)),
        )
        seal = self._sealer.row("proposals", *values)
        self._db.execute(SQL["set_proposal"], (*values, seal))
        self.ledger.turn("proposals", item.tenant, row and row[-1], seal)

    def put_features(
        self, tenant: str, features: Mapping[str, Features], versions: Mapping[str, int] | None = None
    ) -> None:
        """Replace the features of memories, by id; one whose newest version is not the named one is skipped."""
        ids = {"tenant": tenant, "ids": listed(features)}
        old = {row[0]: row[1:] for row in self._db.execute(SQL["features_by_id"], ids)}
        places = {row[0]: row[1:] for row in self._db.execute(SQL["places"], ids)}
        self._drop_marks(tenant, [(name, *row) for name, row in places.items()], old)
        rows, marks = [], []
        name = tenant.encode()
        records = {row[0]: row for row in self._db.execute(SQL["records_by_id"], ids)}
        for memory_id, fresh in features.items():
            if memory_id not in places:
                continue
            version, status, place, position = places[memory_id]
            stale = versions is not None and versions.get(memory_id) != version
            if not stale:
                try:
                    facts = facts_of(record_of(self._sealer, name, records[memory_id]))
                except Tampered:
                    # What does not hold gets a seal of its own words alone.
                    facts = b""
                rows.append(feature_row(self._sealer, tenant, records[memory_id][:25], facts, fresh))
            raw = old[memory_id][4] if stale and memory_id in old else b"" if stale else pack_marks(fresh.marks)
            if status == Status.ACTIVE:
                marks += [(tenant, mark, position) for mark in placed_marks(place, unpack_marks(raw))]
        self._db.executemany(SQL["set_features"], rows)
        self._db.executemany(SQL["add_mark"], marks)

    def count_use(self, tenant: str, ids: Sequence[str], at: datetime) -> None:
        """Count one use of each memory, beside the journal."""
        asked = {"tenant": tenant, "ids": listed(ids)}
        rows = {row[0]: row[1:] for row in self._db.execute(SQL["usage"], asked)}
        fresh = []
        for memory_id, times in Counter(ids).items():
            count, last, learned, seal = rows.get(memory_id, (0, 0, 0, None))
            if seal is not None and not self._sealer.holds_row(seal, "usage", tenant, memory_id, count, last, learned):
                continue  # A forged count must not get a good seal.
            values = (tenant, memory_id, count + times, max(last, to_micros(at)), learned)
            fresh.append((*values, self._sealer.row("usage", *values)))
            self.ledger.turn("usage", tenant, seal, fresh[-1][-1])
        self._db.executemany(SQL["set_usage"], fresh)

    def put_feedback(self, given: Feedback) -> Feedback:
        """Keep feedback; return it with its number."""
        return feedback.put_feedback(self._db, self._sealer, self.ledger, given)

    def learn_uses(self, tenant: str, uses: Mapping[str, int]) -> None:
        """Note that importance has learned from so many more uses of each memory."""
        feedback.learn_uses(self._db, self._sealer, self.ledger, tenant, uses)

    def job_row(self, tenant: str, job: str) -> JobRow | None:
        """Return what is kept of a job."""
        return next(iter(jobs.job_rows(self._db, self._sealer, tenant, job)), None)

    def put_job_row(self, row: JobRow) -> None:
        """Keep what is to be known of a job."""
        jobs.put_job_row(self._db, self._sealer, row)

    def destroy(self, tenant: str, what: Destruction) -> None:
        """Destroy content, named by the commit this transaction appended; see ``erasing.py``."""
        self.put_features(tenant, erasing.emptied(what.ids))
        for item in what.proposals:
            self.put_waiting(item)
        for given in what.feedback:
            self.put_feedback(given)
        erasing.destroy(self._db, self._sealer, self.ledger, tenant, what, self.heads[tenant].seq)

    def settle(self) -> None:
        """Take back the note that the file is unclean."""
        self._db.execute("DELETE FROM meta WHERE name = ?", (erasing.NOTE,))

    def put_artefact(self, tenant: str, kind: str, version: str, text: str) -> None:
        """Keep a text that a receipt names; the first text under a version stays."""
        values = (tenant, kind, version, text)
        seal = self._sealer.row("artefacts", *values)
        if self._db.execute(SQL["set_artefact"], (*values, seal)).rowcount:
            self.ledger.turn("artefacts", tenant, None, seal)

    def drop_artefacts(self, tenant: str, kind: str) -> None:
        """Let go of every kept text of a kind."""
        for (seal,) in self._db.execute(SQL["drop_artefacts"], (tenant, kind)).fetchall():
            self.ledger.turn("artefacts", tenant, seal, None)


def commit_row(commit: Commit, sealer: Sealer) -> Row:
    """Return the row of ``commits``."""
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
        sealer.event(commit.tenant.encode(), commit.seq, -1, commit.hash),
    )


def mark_rows(tenant: str, record: Record, position: int, raw: bytes) -> list[Row]:
    """Return the rows of ``marks``, given packed marks: none for a memory that is not active."""
    if record.status is not Status.ACTIVE:
        return []
    return [(tenant, mark, position) for mark in placed_marks(place_of(record), unpack_marks(raw))]


def link_rows(connection: sqlite3.Connection, tenant: str, records: Iterable[Record]) -> None:
    """Write the lineage, the aliases and the blobs of records."""
    parents, aliases, attached = [], [], []
    for record in records:
        parents += [(tenant, parent, record.id) for parent in record.derived_from]
        aliases += [(tenant, alias, record.id) for alias in record.aliases]
        attached += [(tenant, record.blob, record.id)] if record.blob is not None else []
    connection.executemany(SQL["add_lineage"], parents)
    connection.executemany(SQL["add_alias"], aliases)
    connection.executemany(SQL["add_attachment"], attached)


def recount(connection: sqlite3.Connection, tenant: str) -> None:
    """Write a tenant's tallies anew from its records."""
    connection.execute("DELETE FROM tallies WHERE tenant = ?", (tenant,))
    rows = connection.execute(SQL["recount"], {"tenant": tenant}).fetchall()
    connection.executemany(SQL["add_tally"], [(tenant, *row) for row in rows])


def _json(value: object) -> bytes:
    try:
        return _encode(value).encode()
    except (TypeError, ValueError) as fault:
        raise InvalidInput("the facts of a receipt must be JSON without NaN, infinity or lone surrogates") from fault
