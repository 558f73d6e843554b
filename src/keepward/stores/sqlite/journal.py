"""What may be asked of a SQLite store about its journal.

Invariants
(1) A commit is returned only when its hash covers what it holds, and its own and its events' seals hold.
(2) Events leave as they are stored, so that an export carries the very bytes that were hashed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from keepward.errors import InvalidInput, Tampered
from keepward.model.codec import decode_record
from keepward.model.commit import (
    ERASED,
    OWN,
    Commit,
    CommitDetails,
    Event,
    Step,
    decode_details,
    events_hash,
    recompute,
)
from keepward.model.journal import CommitView
from keepward.model.memory import Record
from keepward.model.value import from_micros
from keepward.ports.store import PREFIX
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.erasing import record_or_blank, sealed_row
from keepward.stores.sqlite.rows import Row, event_hash, payload_commitment, sound_commit, sound_header
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")


def commit_of(tenant: str, row: Row, promise: bytes | None = None) -> Commit:
    """Return the commit of a ``commit_row``, unchecked; ``promise`` is the commitment to details that were erased."""
    return Commit(
        tenant=tenant,
        seq=row[0],
        id=row[1],
        at=from_micros(row[2]),
        kind=row[3],
        actor_kind=row[4],
        prev=row[5],
        events_hash=row[6],
        salt=row[7] or b"",
        payload=row[8],
        hash=row[9],
        payload_commit=promise,
    )


def event_of(row: Row) -> Event:
    """Return the event of an ``event_row``, unchecked."""
    return Event(
        seq=row[0],
        n=row[1],
        op=row[2],
        memory_id=row[3],
        version=row[4],
        salt=row[5] or b"",
        payload=row[6],
        payload_commit=row[7],
    )


class Journal:
    """One snapshot of one tenant's journal."""

    __slots__ = ("_bytes", "_db", "_sealer", "_tenant")

    def __init__(self, connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> None:
        self._db = connection
        self._sealer = sealer
        self._tenant = tenant
        self._bytes = tenant.encode()

    def _rows(self, name: str, **values: Any) -> sqlite3.Cursor:
        return self._db.execute(SQL[name], {"tenant": self._tenant, **values})

    def commits(self, before: int | None, limit: int) -> list[CommitView]:
        """Return commits, newest first."""
        return [self._view(row) for row in self._rows("commits_before", before=before, limit=limit).fetchall()]

    def commit(self, name: str) -> CommitView | None:
        """Return a commit by id, seq in decimal, or unique prefix of at least 8 characters, tried in this order.

        Raises:
            InvalidInput: more than one commit begins so.
        """
        row = self._rows("commit_by_id", id=name).fetchone()
        if row is None and name.isascii() and name.isdecimal() and len(name) < 16:
            row = self._rows("commit_by_seq", seq=int(name)).fetchone()
        if row is None and len(name) >= PREFIX:
            rows = self._rows("commit_by_prefix", id=name).fetchall()
            if len(rows) > 1:
                raise InvalidInput("more than one commit begins so; give more of its id")
            row = rows[0] if rows else None
        return None if row is None else self._view(row)

    def history(self, memory_id: str) -> list[tuple[CommitView, Step]]:
        """Return every version of a memory, oldest first; each view holds that memory's steps alone."""
        steps: list[Step] = []
        before = None
        seqs = []
        for row in self._rows("versions", id=memory_id).fetchall():
            record = self._record(row)
            if record.version != len(steps) + 1:
                raise Tampered("a version of the memory is missing; run `keepward verify`")
            steps.append(Step(op=row[2], before=before, after=record))
            seqs.append(row[0])
            before = record
        entries = []
        views: dict[int, tuple[Commit, CommitDetails]] = {}
        for seq, step in zip(seqs, steps, strict=True):
            if seq not in views:
                row = self._rows("commit_by_seq", seq=seq).fetchone()
                if row is None:
                    raise Tampered("a commit is missing; run `keepward verify`")
                views[seq] = self._checked(row, self._rows("events_of_commit", seq=seq).fetchall())
            commit, details = views[seq]
            own = tuple(each for each, at in zip(steps, seqs, strict=True) if at == seq)
            entries.append((CommitView(commit=commit, details=details, steps=own), step))
        return entries

    def events(self, after: int) -> Iterator[tuple[Commit, list[Event]]]:
        """Yield commits after a seq with their events as stored, oldest first.

        Raises:
            Tampered: a commit does not hold.
        """
        events = iter(self._rows("events_from", after=after))
        pending: Row | None = next(events, None)
        for row in self._rows("commits_after", after=after):
            own = []
            while pending is not None and pending[0] <= row[0]:
                own.append(pending)
                pending = next(events, None)
            commit, _ = self._checked(row, own)
            yield commit, [event_of(each) for each in own]

    def _checked(self, row: Row, events: list[Row]) -> tuple[Commit, CommitDetails]:
        if not sound_commit(row) or not all(sound_header(each) for each in events):
            raise Tampered(f"the cells of commit {row[0]} are damaged; run `keepward verify`")
        promise = remains = None
        if row[8] is None:
            promise, remains = sealed_row(self._db, self._sealer, self._tenant, (row[0], OWN))
        commit = commit_of(self._tenant, row, promise)
        own = [event_of(each) for each in events]
        numbered = [each[1] for each in events] == list(range(len(events)))
        if not numbered or events_hash(own) != commit.events_hash or recompute(commit, own) != commit.hash:
            raise Tampered(f"commit {commit.seq} does not match its hash; run `keepward verify`")
        if not self._sealer.holds_event(row[10], self._bytes, commit.seq, -1, commit.hash):
            raise Tampered(f"commit {commit.seq} does not match its seal; run `keepward verify`")
        for each in events:
            digest = event_hash(each[1], each[2], each[3], each[4], each[7])
            if not self._sealer.holds_event(each[8], self._bytes, each[0], each[1], digest):
                raise Tampered(f"an event of commit {commit.seq} does not match its seal; run `keepward verify`")
            if each[6] is not None and (each[5] is None or payload_commitment(each[5], each[6]) != each[7]):
                raise Tampered(f"an event of commit {commit.seq} does not hold its content; run `keepward verify`")
        if commit.payload is None and remains is None:
            # An export carries no remains of it.
            gone = CommitDetails(actor=f"{commit.actor_kind}:{ERASED}", reason=ERASED, receipt="", policy="")
            return commit, gone
        return commit, decode_details(commit.payload or remains or b"")

    def _record(self, event: Row) -> Record:
        return record_or_blank(self._db, self._sealer, self._tenant, event)

    def _view(self, row: Row) -> CommitView:
        events = self._rows("events_of_commit", seq=row[0]).fetchall()
        commit, details = self._checked(row, events)
        steps = []
        for each in events:
            before = None
            if each[4] > 1:
                earlier = self._rows("event_at", id=each[3], version=each[4] - 1).fetchone()
                if earlier is None or earlier[4] != each[4] - 1:
                    raise Tampered("an earlier version is missing; run `keepward verify`")
                before = self._record(earlier)
            steps.append(Step(op=each[2], before=before, after=self._record(each)))
        return CommitView(commit=commit, details=details, steps=tuple(steps))


def payload_fits(event: Event) -> bool:
    """Whether a payload tells of the memory and version that its event names."""
    if event.payload is None:
        return True
    try:
        record = decode_record(event.payload)
    except Tampered:
        return False
    return (record.id, record.version) == (event.memory_id, event.version)
