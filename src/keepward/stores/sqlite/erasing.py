"""Erasing in SQLite: payloads and salts go, a row of ``erased`` says by which commit, the chain stays whole.

Invariants
(1) A missing payload is lawful only where a later commit of kind ``erase`` names its place; one that is there
    although it is named is damage too.
(2) ``erased`` repeats what those commits say; it is sealed, and compared with them by ``verify``.
(3) From the first destroyed byte until the file was written anew, ``meta`` notes that it is unclean.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from keepward.errors import Conflict, KeepwardError, Tampered
from keepward.model.commit import OWN, Commit, Place, blank, decode_details, parse_place
from keepward.model.journal import Fault
from keepward.model.memory import Record
from keepward.ports.erasing import Destruction
from keepward.ports.store import Features
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.beside import Ledger
from keepward.stores.sqlite.rows import Gone, Row, payload_commitment, record_at
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
NOTE = "note_erasing"
_UNCLEAN = (
    "content was erased, and its bytes may still lie in free pages or in the log of the file: close other readers "
    "and open the store once more"
)


def named_places(connection: sqlite3.Connection, tenant: str) -> dict[Place, int]:
    """Return the places that a tenant's commits of kind ``erase`` name, with the seq of the commit."""
    places: dict[Place, int] = {}
    for seq, payload, _ in connection.execute(SQL["erasures"], {"tenant": tenant}):
        try:
            names = decode_details(payload).erased
            for place in map(parse_place, names):
                places.setdefault(place, seq)
        except (KeepwardError, TypeError):
            continue  # The chain's own check names the commit.
    return places


def promise_of(connection: sqlite3.Connection, tenant: str, place: Place) -> bytes:
    """Return the commitment to what stood at an erased place; empty when nothing says so."""
    row = connection.execute(SQL["erased_at"], {"tenant": tenant, "seq": place[0], "n": place[1]}).fetchone()
    return row[1] if row is not None and isinstance(row[1], bytes) else b""


def sealed_row(connection: sqlite3.Connection, sealer: Sealer, tenant: str, place: Place) -> tuple[bytes, bytes | None]:
    """Return promise and remains of an erased place.

    Raises:
        Tampered: no erasure names the place, or its row does not match its seal.
    """
    row = connection.execute(SQL["erased_at"], {"tenant": tenant, "seq": place[0], "n": place[1]}).fetchone()
    if row is None:
        raise Tampered("content is missing and no erasure names it; run `keepward verify`")
    if not sealer.holds_row(row[3], "erased", tenant, *place, *row[:3]) or row[0] <= place[0]:
        raise Tampered("an erasure does not match its seal; run `keepward verify`")
    return row[1], row[2]


def record_or_blank(connection: sqlite3.Connection, sealer: Sealer, tenant: str, event: Row) -> Record:
    """Return the record of an event row; where it was erased, one of status ``erased`` without content.

    Raises:
        Tampered: the row does not hold, or content is missing that no erasure names.
    """
    raw = tenant.encode()
    try:
        return record_at(sealer, raw, event)
    except Gone:
        promise, _ = sealed_row(connection, sealer, tenant, (event[0], event[1]))
        if promise != event[7]:
            raise Tampered("an erasure is of other content; run `keepward verify`") from None
        newest = connection.execute(SQL["newest_event"], {"tenant": tenant, "id": event[3]}).fetchone()
        # The newest version always has content: a tombstone's at the least.
        return blank(record_at(sealer, raw, newest), event[4])


def destroy(
    connection: sqlite3.Connection, sealer: Sealer, ledger: Ledger, tenant: str, what: Destruction, by_seq: int
) -> None:
    """Destroy the content of events and commits and what is computed from it; see ``ports.erasing``."""
    rows: list[Row] = []
    for seq, n in what.events:
        row = connection.execute(
            "SELECT payload_commit FROM events WHERE tenant = ? AND seq = ? AND n = ? AND payload IS NOT NULL",
            (tenant, seq, n),
        ).fetchone()
        if row is None:
            raise Conflict("what was to be erased is gone already; plan anew")
        rows.append((tenant, seq, n, by_seq, row[0], None))
    for seq, remains in what.details.items():
        row = connection.execute(
            "SELECT salt, payload FROM commits WHERE tenant = ? AND seq = ? AND payload IS NOT NULL", (tenant, seq)
        ).fetchone()
        if row is None:
            raise Conflict("what was to be erased is gone already; plan anew")
        rows.append((tenant, seq, OWN, by_seq, payload_commitment(*row), remains.encode()))
    add_rows(connection, sealer, rows)
    connection.executemany(
        "UPDATE events SET payload = NULL, salt = NULL WHERE tenant = ? AND seq = ? AND n = ?",
        [(tenant, *place) for place in what.events],
    )
    connection.executemany(
        "UPDATE commits SET payload = NULL, salt = NULL WHERE tenant = ? AND seq = ?",
        [(tenant, seq) for seq in what.details],
    )
    gone: dict[str, list[tuple[str, tuple[str, ...]]]] = {
        "usage": [("id = ?", (each,)) for each in what.ids],
        "artefacts": [("kind = ? AND version = ?", each) for each in what.artefacts],
    }
    for table, places in gone.items():
        for where, key in places:
            query = f"DELETE FROM {table} WHERE tenant = ? AND {where} RETURNING seal"
            for (seal,) in connection.execute(query, (tenant, *key)).fetchall():
                ledger.turn(table, tenant, seal, None)
    for receipt_id, body in what.receipts.items():
        _rewrite(connection, sealer, ledger, tenant, receipt_id, body)
    connection.execute(SQL["set_meta"], {"name": NOTE, "value": _UNCLEAN})


def add_rows(connection: sqlite3.Connection, sealer: Sealer, rows: Iterable[Row]) -> None:
    """Write rows of ``erased``: tenant, seq, n, by_seq, promise, remains."""
    connection.executemany(SQL["add_erased"], [(*row, sealer.row("erased", *row)) for row in rows])


def _rewrite(
    connection: sqlite3.Connection,
    sealer: Sealer,
    ledger: Ledger,
    tenant: str,
    receipt_id: str,
    body: Mapping[str, Any],
) -> None:
    _, kind, at, _, before = connection.execute(SQL["receipt"], {"tenant": tenant, "id": receipt_id}).fetchone()
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()
    seal = sealer.row("receipts", tenant, receipt_id, kind, at, text)
    connection.execute(
        "UPDATE receipts SET body = ?, seal = ? WHERE tenant = ? AND id = ?", (text, seal, tenant, receipt_id)
    )
    ledger.turn("receipts", tenant, before, seal)


def emptied(ids: Iterable[str]) -> dict[str, Features]:
    """Return features that say nothing, by memory id."""
    return {memory_id: Features(terms=b"") for memory_id in ids}


def check(connection: sqlite3.Connection, tenant: str) -> Iterator[Fault]:
    """Yield where the table of erasures and the commits of kind ``erase`` differ, in order."""
    due = named_places(connection, tenant)
    held = {
        (seq, n): by
        for seq, n, by in connection.execute("SELECT seq, n, by_seq FROM erased WHERE tenant = ?", (tenant,))
    }
    for seq, n in sorted(due.keys() | held.keys()):
        if due.get((seq, n)) != held.get((seq, n)):
            detail = "no erasure says so" if (seq, n) not in due else "it does not say what the erasure says"
            yield Fault(check="erased", row=f"erased {tenant}/{seq}/{n}", detail=detail)


def take_over(connection: sqlite3.Connection, sealer: Sealer, tenant: str, missing: Mapping[Place, bytes]) -> None:
    """Write the erasures of a restored journal, given the places without content and their commitments.

    Raises:
        Tampered: content is missing that no later erasure names, or is there although one does.
    """
    named = named_places(connection, tenant)
    if missing.keys() != named.keys() or any(by <= place[0] for place, by in named.items()):
        raise Tampered("the exported journal lacks content that no erasure names, or holds what was erased")
    add_rows(
        connection,
        sealer,
        [(tenant, *place, named[place], missing[place], None) for place in sorted(missing)],
    )


def empty_places(commit: Commit, events: Iterable[Any]) -> dict[Place, bytes]:
    """Return the places of a commit that have no content, with their commitments."""
    found: dict[Place, bytes] = {
        (event.seq, event.n): event.payload_commit for event in events if event.payload is None
    }
    if commit.payload is None:
        found[commit.seq, OWN] = commit.commitment()
    return found
