"""The chain: one pass over a tenant's journal that recomputes every hash.

Invariants
(1) One event and one commit are held at a time.
(2) Nothing of a row is believed before its hash was recomputed from its cells.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

from keepward.errors import KeepwardError
from keepward.model.commit import EMPTY_HASH, OWN, Place, commit_hash
from keepward.model.journal import Fault
from keepward.model.value import from_micros
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.erasing import named_places, promise_of
from keepward.stores.sqlite.rows import Row, event_hash, payload_commitment, sound_commit, sound_header
from keepward.stores.sqlite.seals import Sealer, sha256

SQL = load_queries("keepward.stores.sqlite")


def walk_chain(
    connection: sqlite3.Connection, sealer: Sealer, tenant: str, broken: set[tuple[int, int]] | None = None
) -> Iterator[Fault]:
    """Yield what does not hold in a tenant's commits, events and head row, in journal order.

    ``broken`` takes up the places of events that do not hold.
    """
    broken = set() if broken is None else broken
    raw = tenant.encode()
    values = {"tenant": tenant, "after": -(2**62)}
    events = iter(connection.execute(SQL["events_from"], values))
    event: Row | None = next(events, None)
    named = named_places(connection, tenant)
    seq, prev = 0, EMPTY_HASH
    for row in connection.execute(SQL["commits_after"], values):
        name = f"commits {tenant}/{row[0]}"
        seq += 1
        while event is not None and event[0] < row[0]:
            broken.add(event[:2])
            yield Fault(check="chain", row=_name(tenant, event), detail="the event belongs to no commit")
            event = next(events, None)
        hashes, n = [], 0
        while event is not None and event[0] == row[0]:
            digest, wrong = _event(sealer, raw, event, n, named)
            if wrong:
                broken.add(event[:2])
                yield Fault(check="events", row=_name(tenant, event), detail=wrong)
            hashes.append(digest)
            event = next(events, None)
            n += 1
        if row[0] != seq:
            yield Fault(check="chain", row=name, detail=f"commit {seq} is missing before it")
            seq = row[0]
        if row[5] != prev:
            yield Fault(check="chain", row=name, detail="it does not name the hash of the commit before it")
        if sha256(b"keepward/events/v1\0", *hashes) != row[6]:
            yield Fault(check="chain", row=name, detail="its events are not the ones it was made with")
        erased = promise_of(connection, tenant, (row[0], OWN)) if row[8] is None else None
        if not sound_commit(row) or _hash(tenant, row, erased) != row[9]:
            yield Fault(check="chain", row=name, detail="its hash does not cover its cells")
        wrong = _unlawful(named, (row[0], OWN), gone=row[8] is None)
        if wrong:
            yield Fault(check="chain", row=name, detail=wrong)
        if not sealer.holds_event(row[10], raw, row[0], -1, row[9]):
            yield Fault(check="seals", row=name, detail="its seal does not hold")
        prev = row[9]
    while event is not None:
        broken.add(event[:2])
        yield Fault(check="chain", row=_name(tenant, event), detail="the event belongs to no commit")
        event = next(events, None)
    yield from _head(connection, sealer, tenant, seq, prev)


def _name(tenant: str, event: Row) -> str:
    return f"events {tenant}/{event[0]}/{event[1]}"


def _unlawful(named: Mapping[Place, int], place: Place, *, gone: bool) -> str | None:
    """Return what is wrong with content that is gone, or that is there; None if nothing."""
    if gone:
        return None if named.get(place, 0) > place[0] else "its content is missing, and no erasure names it"
    return "its content was erased and is here again" if place in named else None


def _event(sealer: Sealer, tenant: bytes, event: Row, n: int, named: Mapping[Place, int]) -> tuple[bytes, str | None]:
    if not sound_header(event):
        return b"", "its cells are damaged"
    digest = event_hash(event[1], event[2], event[3], event[4], event[7])
    if event[1] != n:
        return digest, f"event {n} of its commit is missing before it"
    gone = event[6] is None
    wrong = _unlawful(named, (event[0], event[1]), gone=gone) if gone or named else None
    if wrong or (event[5] is None) != (event[6] is None):
        return digest, wrong or "half of its content is missing"
    if event[6] is not None and payload_commitment(event[5], event[6]) != event[7]:
        return digest, "its content does not open its commitment"
    if not sealer.holds_event(event[8], tenant, event[0], event[1], digest):
        return digest, "its seal does not hold"
    return digest, None


def _hash(tenant: str, row: Row, erased: bytes | None) -> bytes:
    try:
        return commit_hash(
            commit_id=row[1],
            tenant=tenant,
            seq=row[0],
            at=from_micros(row[2]),
            kind=row[3],
            actor_kind=row[4],
            prev=row[5],
            events=row[6],
            payload_commit=payload_commitment(row[7], row[8]) if erased is None else erased,
        )
    except (KeepwardError, OverflowError, ValueError):
        return b""


def _head(connection: sqlite3.Connection, sealer: Sealer, tenant: str, seq: int, digest: bytes) -> Iterator[Fault]:
    name = f"heads {tenant}"
    row = connection.execute("SELECT seq, hash, restored, mac FROM heads WHERE tenant = ?", (tenant,)).fetchone()
    if row is None:
        # A tenant with a refusal or a token and no commit has none; one whose commits are gone too, the anchor misses.
        if seq:
            yield Fault(check="heads", row=name, detail="the head is missing")
        return
    if row[:2] != (seq, digest):
        yield Fault(check="heads", row=name, detail="the newest commit is not the one the head names")
    if not sealer.holds_row(row[3], "heads", tenant, *row[:3]):
        yield Fault(check="seals", row=name, detail="its seal does not hold")
