"""Verification: recompute everything that a store contains.

Invariants
(1) Every cell of every row is covered by a hash, a seal, or a comparison with its source. A fault names the table or
    kind of document, and the key.
(2) Memory use does not grow with the store: computed rows are compared as one number, see ``_RowFingerprint``.
(3) A check that fails because the store is damaged yields a fault, never an exception.
(4) No event is checked twice: if its hash, content and seal are valid in the chain, its record is compared with it
    without a second check, in the same snapshot. A record with a valid seal has the columns computed from its body.
    The sums of all records show that the row belongs to this journal.
"""

from __future__ import annotations

import json
import marshal
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import chain, islice
from typing import Any, TypeAlias

from keepward.core.commit import EMPTY_HASH, Head
from keepward.core.journal import Fault
from keepward.core.serialization import decode_fields, decode_record, tenant_digest
from keepward.errors import KeepwardError, Tampered
from keepward.ports.world import Anchor
from keepward.storage import erasing
from keepward.storage import tenant as tenants
from keepward.storage.documents import StoredDocument, blob_positions
from keepward.storage.journal import walk_chain
from keepward.storage.rows import (
    MAX_EVENTS_PER_COMMIT,
    RECORD_AND_FEATURE_COLUMNS,
    FeatureRow,
    RecordRow,
    json_array,
    listed_row,
    partitioned_minhashes,
    record_row,
    split_record_row,
    unpack_minhashes,
)
from keepward.storage.seals import Sealer, pack
from keepward.storage.sql import COLUMN_COUNTS, Connection, Database, Row, load_migrations
from keepward.storage.tenant import SUM_MODULUS, TenantHead
from keepward.storage.uses import deliveries_of, project_deliveries
from keepward.storage.writer import link_rows

#: The recorded heads of a tenant's journal and of its sums.
NotedHeads: TypeAlias = tuple[Head | None, Head | None]
#: Beginnings of settings that end with the name of a tenant.
_OF_TENANTS = ("carried_", "reindexed_")
_KNOWN_SETTINGS = {"store_id", "sealed_by", "note_adopted", "note_foreign", erasing.SCRUB_PENDING, "copying"}
#: Tables computed from records: what lists read, minhashes, and the kinds of links.
_LINKED_FIELDS = ("derived_from", "branched_from", "evidence", "aliases", "blob")
_COMPUTED = ("marks", "lineage", "evidence", "aliases", "attachments")
#: First cell of the row of ``listed`` in a row to verify.
_LISTED = RECORD_AND_FEATURE_COLUMNS + 3
_PRIME = (1 << 127) - 1
#: Names of the counts of checked rows.
_COUNTED = (
    *("commits", "events", "records", "features", "receipts", "proposals", "artefacts", "erased", "usage", "feedback"),
    *("jobs", "blobs", "tokens", "sources", "lineage", "evidence", "aliases", "attachments", "listed", "marks"),
)
#: Rows between two progress reports.
_REPORT_EVERY_ROWS = 500
_Section: TypeAlias = tuple[str, Callable[[], Iterator[Fault]]]


class _RowFingerprint:
    """A set of rows as one number that does not depend on their order.

    It is the product of the differences between a secret point and each row, modulo a prime. Two different sets of n
    rows have the same number with a probability below n in 2^120.
    """

    def __init__(self, point: int | None = None) -> None:
        self.point = secrets.randbelow(_PRIME) if point is None else point
        self._hash = blake2b(key=self.point.to_bytes(16, "big"), digest_size=15)
        self.scale = self.point * self.point % _PRIME
        self.count, self.value = 0, 1

    def add(self, cells: Iterable[object]) -> None:
        """Add a row of any cells."""
        hashed = self._hash.copy()
        hashed.update(marshal.dumps(list(cells), 2))
        self.count += 1
        self.value = self.value * (self.point - int.from_bytes(hashed.digest(), "big")) % _PRIME

    def add_pairs(self, rows: Iterable[tuple[int, int]]) -> None:
        """Add rows of two 64-bit numbers; a memory has ten and more of these."""
        point, scale, value, count = self.point, self.scale, self.value, 0
        for one, two in rows:
            value = value * (point - one - two * scale) % _PRIME
            count += 1
        self.value, self.count = value, self.count + count

    def add_with(self, numbers: Sequence[int], two: int) -> None:
        """Add a row of each number with a second one."""
        base, value = self.point - two * self.scale, self.value
        for one in numbers:
            value = value * (base - one) % _PRIME
        self.value, self.count = value, self.count + len(numbers)


class _Progress:
    """Reports the number of checked rows; it never falls and ends at the total."""

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self._report, self._done, self._total = report, 0, 0

    def expect(self, db: Connection, tenant: str) -> None:
        """Add the rows of a tenant to the total. Commits and events are read twice."""
        tables = {"commits": 2, "events": 2, "records": 1, "documents": 1}
        for table, times in tables.items():
            with suppress(db.fault):
                count = db.execute(f"SELECT count(*) FROM {table} WHERE tenant = ?", (tenant,)).fetchone()[0]
                self._total += times * count

    def rows(self, count: int) -> None:
        """Count rows as checked."""
        self._done += count
        self._report(min(self._done, self._total), self._total)

    def end(self) -> None:
        """Report that all rows are checked."""
        self._report(self._total, self._total)


class _CountingConnection:
    """A connection that counts the rows it streams."""

    def __init__(self, db: Connection, progress: _Progress) -> None:
        self._db, self._progress = db, progress

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def stream(self, name: str, **named: Any) -> Iterator[Row]:
        def pages() -> Iterator[list[Row]]:
            rows = iter(self._db.stream(name, **named))
            while some := list(islice(rows, _REPORT_EVERY_ROWS)):
                yield some
                self._progress.rows(len(some))

        # Rows of a page pass through no code of ours.
        return chain.from_iterable(pages())


def check_store(
    database: Database,
    sealer: Sealer,
    anchor: Anchor | None,
    tenant: str | None,
    on_progress: Callable[[int, int], None] | None = None,
    *,
    unusable: str | None = None,
    is_copy: bool = False,
) -> tuple[dict[str, int], list[Fault]]:
    """Check one tenant, or all tenants and the database; return counts of checked rows, and faults in a fixed order.

    ``unusable`` says why no seal can be checked; then ``sealer`` has no key. The anchor of a copy is its original's.

    ``on_progress`` receives the checked and the total number of rows. An error that it raises ends the check.
    """
    progress = None if on_progress is None else _Progress(on_progress)
    faults: list[Fault] = []
    # Read the anchor before the store: a tenant that appears in between must not seem to be missing.
    seen = anchor.tenant_digests() if anchor else set()
    known = [tenant] if tenant is not None else _check_database(database, faults)
    if progress is not None:
        for name in known:
            with suppress(KeepwardError), database.reading(name) as db:
                progress.expect(db, name)
    counts: dict[str, int] = dict.fromkeys(_COUNTED, 0)
    if tenant is None:
        try:
            for row, detail in database.check():
                faults.append(Fault(check=row.split()[0].replace("sqlite_", ""), row=row, detail=detail))
        except KeepwardError as exc:
            faults.append(Fault(check="file", row="file", detail=str(exc)))
        _run(
            database,
            None,
            faults,
            lambda db: [("meta", lambda: _meta(db, sealer, unusable)), ("schema", lambda: _schema(db))],
        )
        here = set(map(tenant_digest, known))
        for name in sorted(seen - here):
            detail = "a tenant this machine has seen is missing"
            faults.append(Fault(check="anchor", row=f"anchor {name[:16]}", detail=detail))
    tokens: dict[str, StoredDocument] = {}
    with suppress(KeepwardError), database.reading() as db:
        tokens = {each.id: each for each in map(StoredDocument._make, db.run("all_tokens"))}
    for name in known:
        recorded: NotedHeads = (None, None)
        try:
            recorded = (anchor.last_head(name), anchor.last_head(name, "sums")) if anchor else recorded
        except Tampered as exc:
            faults.append(Fault(check="anchor", row=f"anchor {name}", detail=str(exc)))

        def of_tenant(db: Connection, name: str = name, recorded: NotedHeads = recorded) -> list[_Section]:
            watched: Any = db if progress is None else _CountingConnection(db, progress)
            return _Check(watched, sealer, name, counts, tokens, is_copy=is_copy).all(recorded)

        _run(database, name, faults, of_tenant)
    if progress is not None:
        progress.end()
    return counts, faults


def _run(
    database: Database, tenant: str | None, faults: list[Fault], sections: Callable[[Connection], list[_Section]]
) -> None:
    """Run checks on one snapshot; see (3)."""
    try:
        with database.reading(tenant) as db:
            for title, section in sections(db):
                try:
                    faults += section()
                except db.fault as exc:
                    faults.append(Fault(check=title, row=title, detail=str(db.translate_error(exc))))
                except (KeepwardError, ValueError, TypeError, OverflowError, RecursionError) as exc:
                    faults.append(Fault(check=title, row=title, detail=f"it cannot be read: {exc}"))
    except KeepwardError as exc:
        faults.append(Fault(check="file", row="file", detail=str(exc)))


def _check_database(database: Database, faults: list[Fault]) -> list[str]:
    names: set[str] = set()
    for table in ("tenants", *COLUMN_COUNTS):
        try:
            with database.reading() as db:
                names.update(str(row[0]) for row in db.execute(f"SELECT DISTINCT tenant FROM {table}"))
        except KeepwardError as exc:
            faults.append(Fault(check="file", row=table, detail=str(exc)))
    return sorted(names)


def _schema(db: Connection) -> Iterator[Fault]:
    """Yield differences between the recorded migrations and the released ones."""
    ran = {row[0]: row[1:] for row in db.execute("SELECT number, name, sha256 FROM migrations")}
    for step in load_migrations():
        if ran.pop(step.number, None) != (step.name, step.sha256):
            yield Fault(check="schema", row=f"migrations {step.number}", detail="it is not as released")
    for number in sorted(ran):
        yield Fault(check="schema", row=f"migrations {number}", detail="there is no such migration")


def _meta(db: Connection, sealer: Sealer, unusable: str | None) -> Iterator[Fault]:
    """Yield faults of the store's settings."""
    stored = dict(db.execute("SELECT name, value FROM meta").fetchall())
    for name in sorted(name for name in stored.keys() - _KNOWN_SETTINGS if not name.startswith(_OF_TENANTS)):
        yield Fault(check="meta", row=f"meta {name}", detail="there is no such setting")
    if not stored.get("store_id"):
        yield Fault(check="meta", row="meta store_id", detail="the store has lost its id")
    if unusable is not None:
        if stored.get("sealed_by"):
            yield Fault(check="seal", row="store", detail=unusable)
    elif stored.get("sealed_by") != sealer.key_id:
        yield Fault(check="meta", row="meta sealed_by", detail="it does not name the key of this machine")


class _Check:
    """The checks of one tenant on one snapshot."""

    def __init__(
        self,
        db: Connection,
        sealer: Sealer,
        tenant: str,
        counts: dict[str, int],
        tokens: Mapping[str, StoredDocument],
        *,
        is_copy: bool = False,
    ) -> None:
        self._db, self._is_copy = db, is_copy
        self._tokens = tokens
        self._sealer = sealer
        self._tenant = tenant
        self._raw = tenant.encode()
        self._counts = counts
        #: Positions of damaged events; None until the chain is checked.
        self._broken: set[tuple[int, int]] | None = None
        #: Sums of the stored records, and the faults of features that ``records`` finds.
        self._stored = TenantHead(tenant=tenant, head=Head(seq=0, hash=EMPTY_HASH))
        self._features: list[Fault] = []
        #: How many records have another row of ``listed`` than they result in, and how many have that one.
        self._listed = [0, 0]
        #: Rows of ``deliveries`` that result from receipts.
        self._delivered = _RowFingerprint()
        self._due = {kind: _RowFingerprint() for kind in _COMPUTED}

    def all(self, recorded: NotedHeads) -> list[_Section]:
        """Return the checks in order."""
        db, tenant = self._db, self._tenant
        return [
            ("chain", self.chain),
            ("erased", lambda: erasing.check(db, tenant)),
            ("anchor", lambda: self.anchor(recorded)),
            ("versions", self.versions),
            ("records", self.records),
            ("computed", self.computed),
            ("features", lambda: iter(self._features)),
            ("seals", self.documents),
            ("receipts", self.references),
            ("side_tables", lambda: tenants.check(db, self._sealer, tenant, self._stored)),
        ]

    def _state(self) -> TenantHead:
        """Return the tenant's row; an empty one if it is damaged, which the check of the chain reports."""
        with suppress(Tampered):
            return tenants.read(self._db, self._sealer, self._tenant)
        return TenantHead(tenant=self._tenant, head=Head(seq=0, hash=EMPTY_HASH))

    def chain(self) -> Iterator[Fault]:
        """Check every hash, commitment and seal of the journal."""
        count = """SELECT (SELECT count(*) FROM commits WHERE tenant = ?),
            (SELECT count(*) FROM events WHERE tenant = ?), (SELECT count(receipt) FROM commits WHERE tenant = ?)"""
        found = self._db.execute(count, (self._tenant,) * 3).fetchone()
        for name, number in zip(("commits", "events", "receipts"), found, strict=True):
            self._counts[name] += number
        broken: set[tuple[int, int]] = set()
        yield from walk_chain(self._db, self._sealer, self._tenant, broken)
        self._broken = broken
        for seq, commit_id, key, digest in self._db.stream("requested_commits", tenant=self._tenant):
            if not self._sealer.matches_request(commit_id, key, digest):
                row = f"commits {self._tenant}/{seq}"
                yield Fault(check="chain", row=row, detail="its idempotency key is not that of the call that made it")

    def anchor(self, recorded: NotedHeads) -> Iterator[Fault]:
        """Check that the store is not behind the anchor, and is on the same chain."""
        state = self._state()
        noted = recorded[0]
        if self._is_copy and noted is not None and noted.seq > state.head.seq:
            detail = f"this copy ends at commit {state.head.seq}, and its original has commit {noted.seq}"
            yield Fault(check="anchor", row=f"tenants {self._tenant}", detail=detail)
        elif wrong := tenants.compare_head_with_anchor(self._db, state, noted):
            yield Fault(check="anchor", row=f"tenants {self._tenant}", detail=wrong)
        if wrong := tenants.compare_sums_with_anchor(self._sealer, state, recorded[1]):
            yield Fault(check="anchor", row=f"side tables {self._tenant}", detail=wrong)

    def versions(self) -> Iterator[Fault]:
        """Check that a memory's versions run from 1 without a gap, in journal order."""
        for memory_id, version in self._db.run("misordered", tenant=self._tenant).fetchall():
            row = f"events {self._tenant}/{memory_id}@{version}"
            yield Fault(check="versions", row=row, detail="a version is missing before it")

    def references(self) -> Iterator[Fault]:
        """Yield missing rows that something else names: receipts of commits, blobs, tokens, deliveries."""
        # Commits that came from an export have no receipts.
        restored = self._state().restored
        commits = self._db.stream("commit_payloads", tenant=self._tenant)
        while page := list(islice(commits, _REPORT_EVERY_ROWS)):
            yield from self._missing_receipts((seq, payload) for seq, payload in page if seq > restored)
        known = {name for (name,) in self._db.run("document_ids", tenant=self._tenant, kind="blobs")}
        for ref in sorted({ref for *_, ref in blob_positions(self._db, self._tenant)} - known):
            yield Fault(
                check="blobs", row=f"blobs {self._tenant}/{ref}", detail="a memory refers to it, and it is missing"
            )
        for row in self._db.run("documents_in", tenant=self._tenant, kind="receipts", state="token"):
            yield from self._check_token(StoredDocument._make(row))
        yield from self._deliveries()

    def _missing_receipts(self, commits: Iterable[tuple[int, bytes]]) -> Iterator[Fault]:
        """Yield the receipts that the details of commits name and that are missing."""
        named: dict[int, str] = {}
        for seq, payload in commits:
            # The check of the chain reports unreadable details.
            with suppress(ValueError, AttributeError):
                if (name := json.loads(payload).get("receipt")) is not None:
                    named[seq] = name
        ids = json_array(map(str, named.values()))
        rows = self._db.run("present_documents", tenant=self._tenant, kind="receipts", ids=ids) if named else ()
        present = {name for (name,) in rows}
        for seq, name in named.items():
            if name not in present:
                yield Fault(check="receipts", row=f"receipts {self._tenant}/{name}", detail=f"commit {seq} names it")

    def _deliveries(self) -> Iterator[Fault]:
        """Compare the rows of delivered contexts with the receipts; they are named only if they differ."""
        found = _RowFingerprint(self._delivered.point)
        for row in self._db.stream("all_deliveries", tenant=self._tenant):
            found.add(row)
        if (found.count, found.value) == (self._delivered.count, self._delivered.value):
            return
        due = set(project_deliveries(self._db, self._sealer, self._tenant))
        stored = {tuple(row) for row in self._db.stream("all_deliveries", tenant=self._tenant)}
        for detail, wrong in (
            ("the row is missing; `rebuild` writes it", due - stored),
            ("no receipt says so", stored - due),
        ):
            for row in sorted(wrong):
                yield Fault(check="deliveries", row=f"deliveries {row[0]}/{row[1]}@{row[2]}/{row[3]}", detail=detail)

    def _check_token(self, receipt: StoredDocument) -> Iterator[Fault]:
        """Compare a token with the receipts of its creation and revocation: a revoked token must not be valid again."""
        try:
            body = receipt.json()
            name, revoked = str(body["token"]), str(body["action"]).startswith("revoked")
            token = self._tokens.get(name)
            row = f"tokens {receipt.tenant}/{name}"
            if token is None:
                yield Fault(check="tokens", row=row, detail="it is missing, and a receipt names it")
            elif revoked and token.json()["revoked_at"] is None:
                yield Fault(check="tokens", row=row, detail="a receipt says that it was revoked")
        except (Tampered, KeyError, TypeError):
            return  # The check of seals reports the row.

    def records(self) -> Iterator[Fault]:
        """Check that records equal their newest events; collect the rows to compare in ``computed``."""
        db, tenant, known = self._db, self._tenant, self._counts["features"]
        # The loop of most of the time: what every row needs is a local variable.
        term, minhashes, table = self._sealer.sum_term, self._due["marks"], self._stored.records
        for line in db.stream("records_to_verify", tenant=tenant):
            row, features = split_record_row(line)
            packed = pack("records", tenant, row[:-1])
            self._counts["records"] += 1
            table.counts[f"{row.tier} {row.status}"] += 1
            table.total += term("records", packed)
            valid = self._check_features(row, features)
            if (wrong := self._flaw(row, packed, *line[RECORD_AND_FEATURE_COLUMNS:_LISTED])) is not None:
                yield Fault(check="records", row=f"records {tenant}/{row.id}", detail=wrong)
                continue
            fields = decode_fields(row.body)
            self._listed[listed_row(tenant, row, valid, fields) == line[_LISTED:]] += 1
            if fields is not None and any(getattr(fields, name) for name in _LINKED_FIELDS):
                for _, kind, *link in dict.fromkeys(link_rows(tenant, [fields])):
                    self._due[kind].add(link)
            if row.status == "active" and features is not None:
                minhashes.add_with(partitioned_minhashes(row.partition, unpack_minhashes(features.marks)), row.position)
        table.total %= SUM_MODULUS
        for (memory_id,) in db.run("unrecorded", tenant=tenant).fetchall():
            yield Fault(check="records", row=f"records {tenant}/{memory_id}", detail="its record is missing")
        (stored,) = db.execute("SELECT count(*) FROM features WHERE tenant = ?", (tenant,)).fetchone()
        strays = (
            db.run("stray_features", tenant=tenant).fetchall() if stored != self._counts["features"] - known else []
        )
        for (memory_id,) in strays:
            detail = "no memory is at their version; `rebuild` removes them"
            self._features.append(Fault(check="features", row=f"features {tenant}/{memory_id}", detail=detail))

    def documents(self) -> Iterator[Fault]:
        """Check and count every document; collect the rows of delivered contexts for ``references``."""
        for document in map(StoredDocument._make, self._db.stream("all_documents", tenant=self._tenant)):
            self._counts[document.kind] = self._counts.get(document.kind, 0) + 1
            self._stored.replace_document(self._sealer, document.kind, None, document.seal)
            if not document.has_valid_seal(self._sealer):
                name = f"{document.kind} {self._tenant}/{document.id}"
                yield Fault(check="seals", row=name, detail="its seal does not match")
            elif document.kind == "receipts":
                for row in deliveries_of(document):
                    self._delivered.add(row)

    def _flaw(
        self, row: RecordRow, packed: bytes, newest: int | None, arrival: int | None, equals_event: int
    ) -> str | None:
        """Return the fault of a record, compared with the journal; see (4)."""
        if self._sealer.active and row.seal != self._sealer.packed(packed):
            return "its record does not match its seal"
        if row.version != newest:
            return "a record is not the newest version"
        if (
            row.arrival != arrival
            or self._broken is None
            or divmod(row.position, MAX_EVENTS_PER_COMMIT) in self._broken
        ):
            return "a record is out of place"
        if not equals_event:
            return "a record differs from its event"
        if not self._sealer.active:
            if decode_fields(row.body) is None:
                return "its content is damaged"
            due = record_row(self._sealer, self._tenant, row.position, row.arrival, decode_record(row.body), row.body)
            return None if due == row._replace(seal=b"") else "a record's columns differ from its content"
        return None

    def _check_features(self, row: RecordRow, features: FeatureRow | None) -> FeatureRow | None:
        """Return a memory's features if their seal matches; collect a fault otherwise."""
        if features is None:
            wrong = ("features", "they are missing; `rebuild` makes them")
        else:
            self._counts["features"] += 1
            if features.has_valid_seal(self._sealer, self._tenant):
                return features
            wrong = ("seals", "its seal does not match")
        self._features.append(Fault(check=wrong[0], row=f"features {self._tenant}/{row.id}", detail=wrong[1]))
        return None

    def computed(self) -> Iterator[Fault]:
        """Compare the tables that are computed from records."""
        stored = {kind: _RowFingerprint(self._due[kind].point) for kind in _COMPUTED}
        stored["marks"].add_pairs(self._db.stream("all_minhashes", tenant=self._tenant))
        (listed,) = self._db.execute("SELECT count(*) FROM listed WHERE tenant = ?", (self._tenant,)).fetchone()
        self._counts["listed"] += listed
        if self._listed != [0, listed]:
            yield self._computed_fault("listed")
        for kind, *link in self._db.stream("link_rows", tenant=self._tenant):
            stored.setdefault(kind, _RowFingerprint(self._due["lineage"].point)).add(link)
        for kind, rows in stored.items():
            self._counts[kind] = self._counts.get(kind, 0) + rows.count
            due = self._due.get(kind)
            if due is None or (due.count, due.value) != (rows.count, rows.value):
                yield self._computed_fault(kind)

    def _computed_fault(self, kind: str) -> Fault:
        detail = "its rows are not those that the memories result in; `rebuild` recomputes them"
        return Fault(check=kind, row=f"{kind} {self._tenant}", detail=detail)
