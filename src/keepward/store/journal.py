"""What may be asked about the journal, and the pass over it that recomputes every hash.

Invariants
(1) A commit is returned only when its hash covers what it holds, and its own and its events' seals hold.
(2) Events leave as they are stored, so that an export carries the very bytes that were hashed.
(3) The pass holds one event and one commit at a time, and believes nothing of a row before its hash was recomputed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from keepward.errors import InvalidInput, KeepwardError, Tampered
from keepward.model.codec import canonical, decode_record, digest
from keepward.model.commit import (
    EMPTY_HASH,
    ERASED,
    OWN,
    Commit,
    CommitDetails,
    Event,
    Place,
    Step,
    blank,
    commit_hash,
    decode_details,
    event_hash,
)
from keepward.model.journal import CommitView, Fault
from keepward.model.memory import Record, Status
from keepward.model.value import from_micros
from keepward.ports.store import PREFIX
from keepward.store.erasing import named_places, promise_of, sealed_row
from keepward.store.rows import Gone, flaw_of_event, record_at, sound_commit, sound_header
from keepward.store.seals import Sealer
from keepward.store.sql import Row, Session, Snapshot, between

_END = 2**62


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


class JournalReads(Snapshot):
    """What may be asked about the journal; a part of ``Reader``."""

    def commits(
        self, tenant: str, *, before: int | None, limit: int, kind: str | None = None, actor: str | None = None
    ) -> list[CommitView]:
        """Return commits, newest first, with seq below ``before``, of one ``kind`` where that is given.

        ``actor`` leaves out most commits that it neither made nor approved, without reading what they changed.
        """
        sifted = {"kind": kind, "part": None if actor is None else canonical(actor)[1:]}
        values = {"tenant": tenant, "before": _END if before is None else before, "limit": limit}
        with self._reading(tenant) as db:
            rows = db.run("commits_before", values | sifted)
            return [self._view(db, tenant, row) for row in rows.fetchall()]

    def commit(self, tenant: str, commit_id: str) -> CommitView | None:
        """Return a commit by id, seq in decimal, or unique prefix of at least 8 characters, tried in this order.

        Raises:
            InvalidInput: more than one commit begins so.
        """
        name = commit_id
        with self._reading(tenant) as db:
            row = db.run("commit_by_id", tenant=tenant, id=name).fetchone()
            if row is None and name.isascii() and name.isdecimal() and len(name) < 16:
                row = db.run("commit_by_seq", tenant=tenant, seq=int(name)).fetchone()
            if row is None and len(name) >= PREFIX:
                rows = db.run("commit_by_prefix", tenant=tenant, **between(name)).fetchall()
                if len(rows) > 1:
                    raise InvalidInput("more than one commit begins so; give more of its id")
                row = rows[0] if rows else None
            return None if row is None else self._view(db, tenant, row)

    def steps(self, tenant: str, memory_id: str) -> list[Step]:
        """Return what became of one memory, oldest first: every version held against its own seal, without commits."""
        with self._reading(tenant) as db:
            return [step for _, step in self._steps_of(db, tenant, memory_id)]

    def history(self, tenant: str, memory_id: str) -> list[tuple[CommitView, Step]]:
        """Return every version of one memory, oldest first; each view holds that memory's steps alone."""
        return self.histories(tenant, [memory_id])[memory_id]

    def histories(self, tenant: str, ids: Iterable[str]) -> dict[str, list[tuple[CommitView, Step]]]:
        """Return the history of each of these; a commit of many of them is read once."""
        views: dict[int, tuple[Commit, CommitDetails]] = {}
        found: dict[str, list[tuple[CommitView, Step]]] = {}
        with self._reading(tenant) as db:
            for memory_id in ids:
                numbered = self._steps_of(db, tenant, memory_id)
                entries = found[memory_id] = []
                for seq, step in numbered:
                    if seq not in views:
                        row = db.run("commit_by_seq", tenant=tenant, seq=seq).fetchone()
                        if row is None:
                            raise Tampered("a commit is missing; run `keepward verify`")
                        events = db.run("events_of_commit", tenant=tenant, seq=seq).fetchall()
                        views[seq] = self._checked(db, tenant, row, events)
                    commit, details = views[seq]
                    own = tuple(each for at, each in numbered if at == seq)
                    entries.append((CommitView(commit=commit, details=details, steps=own), step))
        return found

    def _steps_of(self, db: Session, tenant: str, memory_id: str) -> list[tuple[int, Step]]:
        steps: list[tuple[int, Step]] = []
        before = None
        for row in db.run("versions", tenant=tenant, id=memory_id).fetchall():
            record = record_or_blank(db, self._sealer, tenant, row)
            if record.version != len(steps) + 1:
                raise Tampered("a version of the memory is missing; run `keepward verify`")
            steps.append((row[0], Step(op=row[2], before=before, after=record)))
            before = record
        return steps

    def events(self, tenant: str, *, after: int = 0) -> Iterator[tuple[Commit, list[Event]]]:
        """Yield commits after a seq with their events as stored, oldest first.

        Raises:
            Tampered: a commit does not hold.
        """
        with self._reading(tenant) as db:
            events = iter(db.stream("events_from", tenant=tenant, after=after))
            pending: Row | None = next(events, None)
            for row in db.stream("commits_after", tenant=tenant, after=after):
                own = []
                while pending is not None and pending[0] <= row[0]:
                    own.append(pending)
                    pending = next(events, None)
                commit, _ = self._checked(db, tenant, row, own)
                yield commit, [event_of(each) for each in own]

    def undone_by(self, tenant: str, commit_id: str) -> list[str]:
        """Return the ids of the commits that undo this one, newest first, whether or not they stand."""
        found = []
        for _, payload, name in self._run("commits_of_kind", tenant, kind="rollback"):
            try:
                if payload is not None and commit_id in decode_details(payload).undoes:
                    found.append(name)
            except (KeepwardError, TypeError):
                continue  # The chain's own check names the commit.
        return found[::-1]

    def erasing(self, tenant: str) -> list[str]:
        """Return the ids of the commits that erased something, oldest first."""
        with self._everywhere() as db:
            return [row[2] for row in db.run("commits_of_kind", tenant=tenant, kind="erase")]

    def _checked(self, db: Session, tenant: str, row: Row, events: list[Row]) -> tuple[Commit, CommitDetails]:
        promise = remains = None
        if row[8] is None:
            promise, remains = sealed_row(db, self._sealer, tenant, row[0])
        commit, _ = commit_held(self._sealer, tenant, row, events, promise)
        if commit.payload is None and remains is None:
            # An export carries no remains of it.
            gone = CommitDetails(actor=f"{commit.actor_kind}:{ERASED}", reason=ERASED, receipt="", policy="")
            return commit, gone
        return commit, decode_details(commit.payload or remains or b"")

    def _view(self, db: Session, tenant: str, row: Row) -> CommitView:
        events = db.run("events_of_commit", tenant=tenant, seq=row[0]).fetchall()
        commit, details = self._checked(db, tenant, row, events)
        steps = []
        for each in events:
            before = None
            if each[4] > 1:
                earlier = db.run("event_at", tenant=tenant, id=each[3], version=each[4] - 1).fetchone()
                if earlier is None or earlier[4] != each[4] - 1:
                    raise Tampered("an earlier version is missing; run `keepward verify`")
                before = record_or_blank(db, self._sealer, tenant, earlier)
            steps.append(Step(op=each[2], before=before, after=record_or_blank(db, self._sealer, tenant, each)))
        return CommitView(commit=commit, details=details, steps=tuple(steps))


def commit_held(
    sealer: Sealer, tenant: str, row: Row, events: list[Row], promise: bytes | None
) -> tuple[Commit, list[Event]]:
    """Return a commit and its events as far as their hashes cover what they hold and their seals hold.

    Raises:
        Tampered: they do not.
    """
    raw = tenant.encode()
    if not sound_commit(row) or not all(sound_header(each) for each in events):
        raise Tampered(f"the cells of commit {row[0]} are damaged; run `keepward verify`")
    hashes = [event_hash(each[1], each[2], each[3], each[4], each[7]) for each in events]
    numbered = [each[1] for each in events] == list(range(len(events)))
    if not numbered or digest("events", *hashes) != row[6] or _hash(tenant, row, promise) != row[9]:
        raise Tampered(f"commit {row[0]} does not match its hash; run `keepward verify`")
    if not sealer.holds_commit(row[10], raw, row[0], row[9], row[11]):
        raise Tampered(f"commit {row[0]} does not match its seal; run `keepward verify`")
    for each, hashed in zip(events, hashes, strict=True):
        if (flaw := flaw_of_event(sealer, raw, each, hashed)) is not None:
            raise Tampered(f"an event of commit {row[0]} is damaged: {flaw}; run `keepward verify`")
    return commit_of(tenant, row, promise), [event_of(each) for each in events]


def record_or_blank(db: Session, sealer: Sealer, tenant: str, event: Row) -> Record:
    """Return the record of an event row; where it was erased, one of status ``erased`` without content.

    Raises:
        Tampered: the row does not hold, or content is missing that no erasure names.
    """
    raw = tenant.encode()
    try:
        return record_at(sealer, raw, event)
    except Gone:
        try:
            newest = record_at(sealer, raw, db.run("newest_event", tenant=tenant, id=event[3]).fetchone())
        except Gone:
            newest = None
        # Of an erased memory all content before its tombstone is gone; of another one a version that copied it.
        lawful = newest is not None and (newest.status is Status.ERASED or _named(db, sealer, tenant, event[:2]))
        if newest is None or not lawful or flaw_of_event(sealer, raw, event) is not None:
            raise Tampered("content is missing and no erasure names it; run `keepward verify`") from None
        return blank(newest, event[4])


def _named(db: Session, sealer: Sealer, tenant: str, place: Place) -> bool:
    """Whether a later commit of kind ``erase``, held against its hash and seal, names a place."""
    by = named_places(db, tenant).get(place, 0)
    row = db.run("commit_by_seq", tenant=tenant, seq=by).fetchone() if by > place[0] else None
    return (
        row is not None
        and _hash(tenant, row, None) == row[9]
        and sealer.holds_commit(row[10], tenant.encode(), by, row[9], row[11])
    )


def payload_fits(event: Event) -> bool:
    """Whether a payload tells of the memory and version that its event names."""
    if event.payload is None:
        return True
    try:
        record = decode_record(event.payload)
    except Tampered:
        return False
    return (record.id, record.version) == (event.memory_id, event.version)


def walk_chain(db: Session, sealer: Sealer, tenant: str, broken: set[tuple[int, int]] | None = None) -> Iterator[Fault]:
    """Yield what does not hold in a tenant's commits, events and head row, in journal order.

    ``broken`` takes up the places of events that do not hold.
    """
    broken = set() if broken is None else broken
    raw = tenant.encode()
    events = iter(db.stream("events_from", tenant=tenant, after=-_END))
    event: Row | None = next(events, None)
    named = named_places(db, tenant)
    seq, prev = 0, EMPTY_HASH
    for row in db.stream("commits_after", tenant=tenant, after=-_END):
        name = f"commits {tenant}/{row[0]}"
        seq += 1
        while event is not None and event[0] < row[0]:
            broken.add(event[:2])
            yield Fault(check="chain", row=_event_name(tenant, event), detail="the event belongs to no commit")
            event = next(events, None)
        hashes: list[bytes] = []
        n = 0
        while event is not None and event[0] == row[0]:
            hashed, wrong = _event(sealer, raw, event, n, named)
            if wrong:
                broken.add(event[:2])
                yield Fault(check="events", row=_event_name(tenant, event), detail=wrong)
            hashes.append(hashed)
            event = next(events, None)
            n += 1
        if row[0] != seq:
            yield Fault(check="chain", row=name, detail=f"commit {seq} is missing before it")
            seq = row[0]
        if row[5] != prev:
            yield Fault(check="chain", row=name, detail="it does not name the hash of the commit before it")
        if digest("events", *hashes) != row[6]:
            yield Fault(check="chain", row=name, detail="its events are not the ones it was made with")
        erased = promise_of(db, tenant, row[0]) if row[8] is None else None
        if not sound_commit(row) or _hash(tenant, row, erased) != row[9]:
            yield Fault(check="chain", row=name, detail="its hash does not cover its cells")
        wrong = _unlawful(named, (row[0], OWN), gone=row[8] is None)
        if wrong:
            yield Fault(check="chain", row=name, detail=wrong)
        if not sealer.holds_commit(row[10], raw, row[0], row[9], row[11]):
            yield Fault(check="seals", row=name, detail="its seal does not hold")
        prev = row[9]
    while event is not None:
        broken.add(event[:2])
        yield Fault(check="chain", row=_event_name(tenant, event), detail="the event belongs to no commit")
        event = next(events, None)
    yield from _head(db, sealer, tenant, seq, prev)


def _event_name(tenant: str, event: Row) -> str:
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
    return digest, wrong or flaw_of_event(sealer, tenant, event, digest)


def _hash(tenant: str, row: Row, erased: bytes | None) -> bytes:
    try:
        return commit_hash(commit_of(tenant, row, erased))
    except (KeepwardError, OverflowError, ValueError):
        return b""


def _head(db: Session, sealer: Sealer, tenant: str, seq: int, digest: bytes) -> Iterator[Fault]:
    name = f"tenants {tenant}"
    row = db.run("tenant", tenant=tenant).fetchone()
    if row[0] is None:
        # A tenant that nothing was ever stored for has none; one whose commits are gone too, the anchor misses.
        if seq:
            yield Fault(check="tenants", row=name, detail="the row with its head is missing")
        return
    if row[:2] != (seq, digest):
        yield Fault(check="tenants", row=name, detail="the newest commit is not the one the head names")
    if not sealer.holds_row(row[6], "tenants", tenant, *row[:6]):
        yield Fault(check="seals", row=name, detail="its seal does not hold")
