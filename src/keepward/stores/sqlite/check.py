"""Verification: everything a store claims, recomputed.

Invariants
(1) Every cell of every row is under a hash, a seal, or a comparison with what it was computed from; a
    fault names the table and the key.
(2) Memory use does not grow with the store; see ``projections.py`` for the tables computed from others.
(3) A check that cannot run because the file is damaged is a fault and never an exception.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeAlias

from keepward.errors import KeepwardError, Tampered
from keepward.model.codec import digest
from keepward.model.commit import Head
from keepward.model.journal import Fault
from keepward.ports.world import Anchor
from keepward.stores.sql import load_queries
from keepward.stores.sqlite import beside, blobs, deliveries, erasing, tokens
from keepward.stores.sqlite.chain import walk_chain
from keepward.stores.sqlite.connection import Connections, explained
from keepward.stores.sqlite.heads import against_noted, read_head
from keepward.stores.sqlite.noted import Seen
from keepward.stores.sqlite.opening import lay_out, migrations
from keepward.stores.sqlite.projections import COMPUTED, Projections
from keepward.stores.sqlite.renew import SEALED
from keepward.stores.sqlite.rows import Row
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
_META = {"store_id", "sealed_by", "note_adopted", "note_foreign", erasing.NOTE}
_KEY = {"artefacts": 3, "erased": 3}
_Section: TypeAlias = tuple[str, Callable[[], Iterator[Fault]]]


def check_store(
    connections: Connections, sealer: Sealer, anchor: Anchor | None, tenant: str | None
) -> tuple[dict[str, int], list[Fault]]:
    """Check one tenant, or all and the file itself; return how much was checked, and faults in a fixed order."""
    faults: list[Fault] = []
    # Asked before the store is looked at: a tenant that appears in between must not look gone.
    seen = anchor.names() if anchor else set()
    known = [tenant] if tenant is not None else _tenants(connections, faults)
    noted: dict[str, Seen] = {}
    for name in known:
        try:
            noted[name] = (anchor.noted(name), anchor.noted(name, "beside")) if anchor else (None, None)
        except Tampered as fault:
            faults.append(Fault(check="anchor", row=f"anchor {name}", detail=str(fault)))
    counts = dict.fromkeys(("commits", "events", "records", "features", *SEALED), 0)
    with connections.reading() as connection:
        check = _Check(connection, sealer, counts)
        sections: list[_Section] = []
        if tenant is None:
            sections += [
                ("file", check.file),
                ("schema", check.schema),
                ("meta", check.meta),
                ("anchor", lambda: _names(seen, known)),
            ]
        for name in known:
            sections += check.sections(name, noted.get(name, (None, None)))
        for title, section in sections:
            try:
                faults += section()
            except sqlite3.Error as fault:
                faults.append(Fault(check=title, row=title, detail=str(explained(fault))))
            except (KeepwardError, ValueError, TypeError, OverflowError) as fault:
                faults.append(Fault(check=title, row=title, detail=f"it cannot be read: {fault}"))
    return counts, faults


def _tenants(connections: Connections, faults: list[Fault]) -> list[str]:
    names: set[str] = set()
    for table in ("commits", "events", "heads", "records", *COMPUTED, "tallies", "deliveries", "beside", *SEALED):
        try:
            with connections.reading() as connection:
                names.update(str(row[0]) for row in connection.execute(f"SELECT DISTINCT tenant FROM {table}"))
        except KeepwardError as fault:
            faults.append(Fault(check="file", row=table, detail=str(fault)))
    return sorted(names)


def _names(seen: set[str], known: list[str]) -> Iterator[Fault]:
    here = {digest("tenant", name.encode("utf-8", "surrogatepass")).hex() for name in known}
    for name in sorted(seen - here):
        yield Fault(check="anchor", row=f"anchor {name[:16]}", detail="a tenant this machine has seen is gone")


class _Check:
    def __init__(self, connection: sqlite3.Connection, sealer: Sealer, counts: dict[str, int]) -> None:
        self._db = connection
        self._sealer = sealer
        self._counts = counts

    def sections(self, tenant: str, noted: Seen) -> list[_Section]:
        """Return the checks of one tenant, in order."""
        computed = Projections(self._db, self._sealer, tenant, self._counts)
        return [
            ("chain", lambda: self.chain(tenant, computed)),
            ("erased", lambda: erasing.check(self._db, tenant)),
            ("anchor", lambda: self.anchor(tenant, noted)),
            ("versions", lambda: self.versions(tenant)),
            ("records", computed.records),
            *((table, lambda table=table: computed.computed(table)) for table in COMPUTED),
            ("tallies", lambda: self.tallies(tenant)),
            ("features", computed.features),
            *((table, lambda table=table: self.sealed(tenant, table)) for table in SEALED if table != "features"),
            ("receipts", lambda: self.receipts(tenant)),
            ("blobs", lambda: blobs.check(self._db, tenant)),
            ("tokens", lambda: tokens.check(self._db, tenant)),
            ("beside", lambda: beside.check(self._db, self._sealer, tenant)),
            ("deliveries", lambda: deliveries.check(self._db, self._sealer, tenant)),
        ]

    # --- the file

    def file(self) -> Iterator[Fault]:
        """SQLite's own check: pages, indexes, uniqueness."""
        for (line,) in self._db.execute("PRAGMA integrity_check(20)").fetchall():
            if line != "ok":
                yield Fault(check="file", row="file", detail=str(line).replace("\n", " "))

    def schema(self) -> Iterator[Fault]:
        """Tables and indexes as the migrations make them, and the migrations' own record."""
        fresh = sqlite3.connect(":memory:", isolation_level=None)
        try:
            lay_out(fresh)
            query = "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            wanted, held = dict(fresh.execute(query)), dict(self._db.execute(query))
        finally:
            fresh.close()
        for name in sorted(wanted.keys() | held.keys()):
            if wanted.get(name) != held.get(name):
                yield Fault(check="schema", row=f"sqlite_schema {name}", detail="it is not what the migrations make")
        ran = {row[0]: row[1:] for row in self._db.execute("SELECT number, name, sha256 FROM migrations")}
        for step in migrations():
            if ran.pop(step.number, None) != (step.name, step.sha256):
                yield Fault(check="schema", row=f"migrations {step.number}", detail="it is not as released")
        for number in sorted(ran):
            yield Fault(check="schema", row=f"migrations {number}", detail="there is no such migration")

    def meta(self) -> Iterator[Fault]:
        """The store's settings."""
        held = dict(self._db.execute("SELECT name, value FROM meta"))
        for name in sorted(held.keys() - _META):
            yield Fault(check="meta", row=f"meta {name}", detail="there is no such setting")
        if not held.get("store_id"):
            yield Fault(check="meta", row="meta store_id", detail="the store has lost its id")
        if held.get("sealed_by") != self._sealer.key_id:
            yield Fault(check="meta", row="meta sealed_by", detail="it does not name the key of this machine")

    # --- the journal

    def chain(self, tenant: str, computed: Projections) -> Iterator[Fault]:
        """Every hash, commitment and seal of the journal."""
        for table in ("commits", "events"):
            self._counts[table] += self._db.execute(
                f"SELECT count(*) FROM {table} WHERE tenant = ?", (tenant,)
            ).fetchone()[0]
        broken: set[tuple[int, int]] = set()
        yield from walk_chain(self._db, self._sealer, tenant, broken)
        computed.broken = broken

    def anchor(self, tenant: str, noted: Seen) -> Iterator[Fault]:
        """The store is not behind what this machine has seen, and on the same chain."""
        head = Head(seq=0, hash=b"")
        with suppress(Tampered):  # The chain's own check names it.
            head, _ = read_head(self._db, self._sealer, tenant)
        wrong = against_noted(self._db, tenant, head, noted[0])
        if wrong:
            yield Fault(check="anchor", row=f"heads {tenant}", detail=wrong)
        wrong = None
        with suppress(Tampered):
            wrong = beside.against_noted(self._db, self._sealer, tenant, noted[1])
        if wrong:
            yield Fault(check="anchor", row=f"beside {tenant}", detail=wrong)

    def versions(self, tenant: str) -> Iterator[Fault]:
        """A memory's versions run from 1 without a gap, in journal order."""
        query = """
            SELECT memory_id, version FROM (
                SELECT memory_id, version, seq, n,
                       lag(version, 1, 0) OVER own AS before, lag(seq, 1, -1) OVER own AS seq_before,
                       lag(n, 1, -1) OVER own AS n_before
                  FROM events WHERE tenant = ? WINDOW own AS (PARTITION BY memory_id ORDER BY version))
             WHERE version <> before + 1 OR (seq, n) <= (seq_before, n_before)"""
        for memory_id, version in self._db.execute(query, (tenant,)):
            yield Fault(
                check="versions",
                row=f"events {tenant}/{memory_id}@{version}",
                detail="a version is missing before it",
            )

    # --- beside it

    def tallies(self, tenant: str) -> Iterator[Fault]:
        """Counts by tier are what counting gives."""
        counted = dict(self._db.execute(SQL["recount"], {"tenant": tenant}))
        held = dict(self._db.execute(SQL["tally"], {"tenant": tenant}))
        for tier in sorted(counted.keys() | held.keys()):
            if counted.get(tier) != held.get(tier):
                yield Fault(check="tallies", row=f"tallies {tenant}/{tier}", detail="the count is off")

    def sealed(self, tenant: str, table: str) -> Iterator[Fault]:
        """Every row of a table beside the journal matches its seal."""
        columns = SEALED[table]
        key = _KEY.get(table, 2)
        for row in self._db.execute(f"SELECT {', '.join(columns)}, seal FROM {table} WHERE tenant = ?", (tenant,)):
            self._counts[table] += 1
            if not self._sealer.holds_row(row[-1], table, *row[:-1]):
                yield Fault(check="seals", row=_name(table, tenant, row[1:key]), detail="its seal does not hold")

    def receipts(self, tenant: str) -> Iterator[Fault]:
        """Every commit that was made here has its receipt."""
        rows = self._db.execute(SQL["unreceipted"], {"tenant": tenant})
        for seq, receipt in rows:
            yield Fault(check="receipts", row=f"receipts {tenant}/{receipt}", detail=f"commit {seq} names it")


def _name(table: str, tenant: str, row: Row) -> str:
    return f"{table} {tenant}/" + "/".join(str(cell) for cell in row)
