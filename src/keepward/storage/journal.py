"""Reads of the journal, and the pass over it that recomputes every hash.

A commit is returned only if its hash covers its content, and its seal and the seals of its events match. Events are
yielded as stored, so that an export contains exactly the hashed bytes. The pass keeps one event and one commit in
memory, and trusts no row before it has recomputed the hash.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from keepward.core.commit import (
    DETAILS,
    EMPTY_HASH,
    ERASED,
    Commit,
    CommitDetails,
    Event,
    EventPosition,
    Head,
    Step,
    commit_hash,
    decode_details,
    erased_record,
    event_hash,
)
from keepward.core.journal import SHOWN_AS_LEFT, SHOWN_AS_STORED, CommitView, DamagedCommit, Fault, damage_note
from keepward.core.json_form import HexBytes, canonical
from keepward.core.memory import Record, Status
from keepward.core.principals import main_scope
from keepward.core.serialization import commitment, decode_record, digest
from keepward.core.value import from_micros, to_micros
from keepward.errors import InvalidInput, KeepwardError, Tampered
from keepward.idempotency import IdempotencyKey
from keepward.ports.store import MIN_ID_PREFIX, ScopeRange
from keepward.storage.erasing import commitment_of, erased_commitments, erased_details, erased_positions
from keepward.storage.rows import (
    CommitRow,
    ContentMissing,
    EventRow,
    event_flaw,
    has_commit_types,
    has_event_types,
    json_array,
    record_at,
    text_in,
)
from keepward.storage.seals import Sealer
from keepward.storage.sql import Connection, Snapshot, prefix_range

_AFTER_LAST_SEQ = 2**62
#: Replaces the actor and reason of a commit whose details cannot be read.
UNREADABLE = "unreadable"
_log = logging.getLogger(__name__)


def commit_of(tenant: str, row: CommitRow, commitment: bytes | None = None) -> Commit:
    """Return the commit of a row without a check. ``commitment`` is the one of erased details."""
    return Commit(
        tenant=tenant,
        seq=row.seq,
        id=row.id,
        at=from_micros(row.at),
        kind=row.kind,
        actor_kind=row.actor_kind,
        prev=HexBytes(row.prev),
        events_hash=HexBytes(row.events_hash),
        salt=HexBytes(row.salt or b""),
        payload=None if row.payload is None else HexBytes(row.payload),
        hash=HexBytes(row.hash),
        payload_commit=None if commitment is None else HexBytes(commitment),
    )


def event_of(row: EventRow) -> Event:
    """Return the event of a row, unchecked."""
    return Event(
        seq=row.seq,
        n=row.n,
        op=row.op,
        memory_id=row.memory_id,
        version=row.version,
        salt=row.salt or b"",
        payload=row.payload,
        payload_commit=row.payload_commit,
    )


def _hash_of(event: EventRow) -> bytes:
    return event_hash(event.n, event.op, event.memory_id, event.version, event.payload_commit)


class JournalReads(Snapshot):
    """Reads of the journal; a part of ``StoreReader``."""

    def commits(
        self,
        tenant: str,
        *,
        before: int | None,
        limit: int,
        kind: str | None = None,
        actor: str | None = None,
        scopes: ScopeRange | None = None,
    ) -> list[CommitView | DamagedCommit]:
        """Return commits, newest first. ``before`` selects those with a lower seq, ``kind`` those of this kind.

        A commit that does not match its hash or seal is named instead.
        ``actor`` skips most commits that this actor neither made nor approved, and ``scopes`` most that change nothing
        in them; the caller has to skip the rest.
        """
        filters = {"kind": kind, "part": None if actor is None else canonical(actor)[1:], **scope_parameters(scopes)}
        values = {"tenant": tenant, "before": _AFTER_LAST_SEQ if before is None else before, "limit": limit}
        with self._reading(tenant) as db:
            rows = db.run("commits_before", values | filters).fetchall()
            return [self._view_or_damage(db, tenant, row) for row in map(CommitRow._make, rows)]

    def commits_within(self, tenant: str, ids: Collection[str], scopes: ScopeRange | None) -> list[str]:
        """Return those of some ids of commits that may change something in the scopes."""
        if not ids:
            return []
        found = self._run("commits_within", tenant, ids=json_array(ids), **scope_parameters(scopes))
        return [name for (name,) in found]

    def commits_until(self, tenant: str, seq: int, scopes: ScopeRange) -> int:
        """Return how many of the first ``seq`` commits changed a memory that is in the scopes now."""
        ((count,),) = self._run("commits_until", tenant, until_seq=seq, **scope_parameters(scopes))
        return int(count)

    def commit(self, tenant: str, commit_id: str) -> CommitView | None:
        """Return a commit by id, by seq in decimal, or by unique prefix of at least 8 characters, in this order.

        Raises:
            InvalidInput: several commits start with it.
        """
        with self._reading(tenant) as db:
            row = _named_commit(db, tenant, commit_id)
            return None if row is None else self._view(db, tenant, row)

    def readable_commit(self, tenant: str, commit_id: str, *, has_steps: bool = True) -> CommitView | None:
        """Return a commit as ``commit`` does; of a damaged one what can be read, and in ``damage`` what cannot.

        Without ``has_steps`` only its own row is read and checked.

        Raises:
            InvalidInput: several commits start with it.
            Tampered: not even the cells of its row can be read.
        """
        with self._reading(tenant) as db:
            row = _named_commit(db, tenant, commit_id)
            read = self._readable_view if has_steps else self._readable_commit
            return None if row is None else read(db, tenant, row)

    def commit_stamp(self, tenant: str, seq: int) -> tuple[Head, datetime] | None:
        """Return the head that a commit left, and its instant, as stored and unchecked; None if there is none."""
        found = self._run("commit_stamp", tenant, seq=seq)
        return next(((Head(seq=seq, hash=digest), from_micros(at)) for digest, at in found), None)

    def newest_commit_at(self, tenant: str, at: datetime) -> int:
        """Return the seq of the newest commit whose time is at most an instant; 0 without one.

        Times need not rise with the chain: a clock may have run ahead.
        """
        ((seq,),) = self._run("newest_commit_at", tenant, at=to_micros(at))
        return int(seq)

    def commit_ids(self, tenant: str, prefix: str) -> list[str]:
        """Return the ids of commits that begin with a text, in order."""
        return [name for (name,) in self._run("commit_ids_by_prefix", tenant, **prefix_range(prefix))]

    def commit_of_request(self, tenant: str, key: IdempotencyKey) -> tuple[str, bool] | None:
        """Return the id of the commit made under a key, and whether the same request made it; None without one."""
        with self._reading(tenant) as db:
            row = db.run("commit_by_request", tenant=tenant, key=self._sealer.request_key(tenant, key)).fetchone()
        if row is None:
            return None
        return row[0], hmac.compare_digest(bytes(row[1]), self._sealer.request_digest(tenant, key, row[0]))

    def steps(self, tenant: str, memory_id: str) -> list[Step]:
        """Return all versions of one memory, oldest first, each checked against its own seal, without commits."""
        return [step for _, step in self.versions(tenant, [memory_id])[memory_id]]

    def versions(self, tenant: str, ids: Iterable[str]) -> dict[str, list[tuple[EventPosition, Step]]]:
        """Return, by memory, all its versions with their positions, as in ``steps``; none of an unknown memory."""
        with self._reading(tenant) as db:
            return self._versions(db, tenant, list(ids))

    def replaced_texts(self, tenant: str, matches: Callable[[str], bool]) -> Iterator[tuple[EventPosition, Record]]:
        """Yield the versions that are not the newest ones and whose text matches, in no order.

        Raises:
            Tampered: such a version is damaged.
        """
        with self._reading(tenant) as db:
            for row in map(EventRow._make, db.stream("replaced_versions", tenant=tenant)):
                text = text_in(row.payload or b"")
                if text is not None and matches(text):
                    yield (row.seq, row.n), record_at(self._sealer, tenant.encode(), row)

    def details_at(self, tenant: str, seqs: Iterable[int]) -> dict[int, tuple[CommitDetails, int]]:
        """Return, by seq, the details of commits and their number of events; not of erasures or erased details.

        Raises:
            Tampered: a commit does not match its hash or seal.
        """
        raw, found = tenant.encode(), {}
        for *cells, events in self._run("commits_at", tenant, seqs=str(sorted(seqs))):
            row = CommitRow._make(cells)
            if row.payload is None or row.kind == "erase":
                continue
            sealed = self._sealer.matches_commit(row.seal, raw, row.seq, row.hash, row.receipt)
            if not has_commit_types(row) or _hash(tenant, row, None) != row.hash or not sealed:
                raise Tampered(f"commit {row.seq} is damaged; run `keepward verify`")
            found[row.seq] = decode_details(row.payload), events
        return found

    def commitments_at(self, tenant: str, positions: Iterable[EventPosition]) -> dict[EventPosition, bytes]:
        """Return the commitments to the content of events and of details of commits, also of erased ones.

        Raises:
            Tampered: an event, or the document of erased details, does not match its seal; or it is missing.
        """
        asked, raw = set(positions), tenant.encode()
        found: dict[EventPosition, bytes] = {}
        with self._reading(tenant) as db:
            seqs = str(sorted({seq for seq, n in asked if n != DETAILS}))
            for row in map(EventRow._make, db.run("events_at", tenant=tenant, seqs=seqs)):
                if (row.seq, row.n) in asked:
                    if (flaw := event_flaw(self._sealer, raw, row)) is not None:
                        raise Tampered(f"an event of commit {row.seq} is damaged: {flaw}; run `keepward verify`")
                    found[row.seq, row.n] = row.payload_commit
            seqs = str(sorted({seq for seq, n in asked if n == DETAILS}))
            for seq, salt, payload in db.run("details_at", tenant=tenant, seqs=seqs).fetchall():
                found[seq, DETAILS] = commitment(salt, payload)
            erased = {seq for seq, n in asked - found.keys() if n == DETAILS}
            for seq, erased_commitment in erased_commitments(db, self._sealer, tenant, erased).items():
                found[seq, DETAILS] = erased_commitment
        if asked - found.keys():
            raise Tampered("content is missing and no erasure names it; run `keepward verify`")
        return found

    def versions_by_op(self, tenant: str, ids: Iterable[str]) -> list[tuple[str, str, int]]:
        """Return (id, op, newest version that the op made) of memories, in no order. The rows are not verified."""
        return self._run("versions_by_op", tenant, ids=json_array(sorted(ids)))

    def history(self, tenant: str, memory_id: str) -> list[tuple[CommitView, Step]]:
        """Return every version of one memory, oldest first; each view has only the steps of that memory."""
        return self.histories(tenant, [memory_id])[memory_id]

    def histories(self, tenant: str, ids: Iterable[str]) -> dict[str, list[tuple[CommitView, Step]]]:
        """Return the history of each of these memories; a commit of several of them is read once."""
        views: dict[int, tuple[Commit, CommitDetails]] = {}
        found: dict[str, list[tuple[CommitView, Step]]] = {}
        with self._reading(tenant) as db:
            for memory_id, numbered in self._versions(db, tenant, list(ids)).items():
                entries = found[memory_id] = []
                for (seq, _), step in numbered:
                    if seq not in views:
                        row = db.run("commit_by_seq", tenant=tenant, seq=seq).fetchone()
                        if row is None:
                            raise Tampered("a commit is missing; run `keepward verify`")
                        views[seq] = self._checked(db, tenant, CommitRow._make(row), _events(db, tenant, seq))
                    commit, details = views[seq]
                    own = tuple(each for (at, _), each in numbered if at == seq)
                    entries.append((CommitView(commit=commit, details=details, steps=own), step))
        return found

    def readable_histories(
        self, tenant: str, ids: Iterable[str]
    ) -> dict[str, tuple[list[tuple[CommitView, Step]], dict[int, str]]]:
        """Return the history of each of these memories as far as it can be read, and why other versions cannot be.

        The step after such a version has no ``before``. A view has the steps of no other memory, and in ``damage``
        what of its commit does not match.
        """
        commits: dict[int, CommitView | str] = {}
        found: dict[str, tuple[list[tuple[CommitView, Step]], dict[int, str]]] = {name: ([], {}) for name in ids}
        with self._reading(tenant) as db:
            rows = db.run("versions", tenant=tenant, ids=json_array(found)).fetchall()
            for row in map(EventRow._make, rows):
                entries, damaged = found[row.memory_id]
                before = entries[-1][1].after if entries else None
                try:
                    after = _record_of_event(db, self._sealer, tenant, row)
                    if row.seq not in commits:
                        commits[row.seq] = self._commit_or_flaw(db, tenant, row.seq)
                    view = commits[row.seq]
                    if isinstance(view, str):
                        raise Tampered(view)
                except Tampered as exc:
                    damaged[row.version] = str(exc)
                    continue
                step = Step(
                    op=row.op, before=before if before and before.version == row.version - 1 else None, after=after
                )
                entries.append((replace(view, steps=(step,)), step))
        for entries, damaged in found.values():
            known = {*damaged, *(step.after.version for _, step in entries)}
            damaged |= {each: "it is missing" for each in range(1, max(known, default=0)) if each not in known}
        return found

    def _versions(self, db: Connection, tenant: str, ids: Sequence[str]) -> dict[str, list[tuple[EventPosition, Step]]]:
        found: dict[str, list[tuple[EventPosition, Step]]] = {name: [] for name in ids}
        for row in map(EventRow._make, db.run("versions", tenant=tenant, ids=json_array(found)).fetchall()):
            record, steps = record_or_erased(db, self._sealer, tenant, row), found[row.memory_id]
            if record.version != len(steps) + 1:
                raise Tampered("a version of the memory is missing; run `keepward verify`")
            before = steps[-1][1].after if steps else None
            steps.append(((row.seq, row.n), Step(op=row.op, before=before, after=record)))
        return found

    def events(self, tenant: str, *, after: int = 0) -> Iterator[tuple[Commit, list[Event]]]:
        """Yield commits after a seq with their events as stored, oldest first.

        Raises:
            Tampered: a commit is damaged.
        """
        with self._reading(tenant) as db:
            events = map(EventRow._make, db.stream("events_from", tenant=tenant, after=after))
            pending = next(events, None)
            for row in map(CommitRow._make, db.stream("commits_after", tenant=tenant, after=after)):
                own = []
                while pending is not None and pending.seq <= row.seq:
                    own.append(pending)
                    pending = next(events, None)
                commit, _ = self._checked(db, tenant, row, own)
                yield commit, [event_of(each) for each in own]

    def undone_by(self, tenant: str, commit_id: str) -> list[str]:
        """Return the ids of the commits that undo this one, newest first, even if they were undone themselves."""
        found = []
        for _, payload, name in self._run("commits_of_kind", tenant, kind="rollback"):
            try:
                if payload is not None and commit_id in decode_details(payload).undoes:
                    found.append(name)
            except (KeepwardError, TypeError):
                continue  # The check of the chain reports the commit.
        return found[::-1]

    def approving(self, tenant: str, proposals: Collection[str]) -> list[int]:
        """Return the seqs of the commits that stored one of some proposals, in order."""
        found = []
        for seq, payload, _ in self._run("commits_of_kind", tenant, kind="approve") if proposals else ():
            try:
                if payload is not None and decode_details(payload).proposal in proposals:
                    found.append(seq)
            except (KeepwardError, TypeError):
                continue  # The check of the chain reports the commit.
        return found

    def erasing(self, tenant: str) -> list[str]:
        """Return the ids of the commits that erased something, oldest first."""
        with self._everywhere() as db:
            return [CommitRow._make(row).id for row in db.run("erasing_commits", tenant=tenant)]

    def erasures(self, tenant: str, ids: Collection[str]) -> list[tuple[Commit, list[Event]]]:
        """Return some of the commits that erased something, with their events as stored, oldest first.

        Raises:
            Tampered: such a commit is damaged.
        """
        with self._reading(tenant) as db:
            rows = [row for row in map(CommitRow._make, db.run("erasing_commits", tenant=tenant)) if row.id in ids]
            events: dict[int, list[EventRow]] = {row.seq: [] for row in rows}
            for event in map(EventRow._make, db.run("events_at", tenant=tenant, seqs=str(list(events)))):
                events[event.seq].append(event)
            return [
                (self._checked(db, tenant, row, events[row.seq])[0], [event_of(each) for each in events[row.seq]])
                for row in rows
            ]

    def _checked(
        self, db: Connection, tenant: str, row: CommitRow, events: list[EventRow]
    ) -> tuple[Commit, CommitDetails]:
        erased_commitment = residual_payload = None
        if row.payload is None:
            erased_commitment, residual_payload = erased_details(db, self._sealer, tenant, row.seq)
        commit, _ = verified_commit(self._sealer, tenant, row, events, erased_commitment)
        if commit.payload is None and residual_payload is None:
            # An export does not include the rest of erased details.
            erased = CommitDetails(actor=f"{commit.actor_kind}:{ERASED}", reason=ERASED, receipt="", policy="")
            return commit, erased
        return commit, decode_details(commit.payload or residual_payload or b"")

    def _view_or_damage(self, db: Connection, tenant: str, row: CommitRow) -> CommitView | DamagedCommit:
        try:
            return self._view(db, tenant, row)
        except Tampered as exc:
            _log.warning("commit %d was left out: %s", row.seq, exc, extra={"action": "damaged"})
            return DamagedCommit(seq=row.seq, id=str(row.id), why=str(exc))

    def _view(self, db: Connection, tenant: str, row: CommitRow) -> CommitView:
        events = _events(db, tenant, row.seq)
        commit, details = self._checked(db, tenant, row, events)
        steps = tuple(self._step(db, tenant, event) for event in events)
        return CommitView(commit=commit, details=details, steps=steps)

    def _step(self, db: Connection, tenant: str, event: EventRow) -> Step:
        before = None
        if event.version > 1:
            found = db.run("event_at", tenant=tenant, id=event.memory_id, version=event.version - 1).fetchone()
            earlier = None if found is None else EventRow._make(found)
            if earlier is None or earlier.version != event.version - 1:
                raise Tampered("an earlier version is missing; run `keepward verify`")
            before = record_or_erased(db, self._sealer, tenant, earlier)
        return Step(op=event.op, before=before, after=record_or_erased(db, self._sealer, tenant, event))

    def _readable_view(self, db: Connection, tenant: str, row: CommitRow) -> CommitView:
        """Return a commit with the steps that match their seals; see ``readable_commit``."""
        view = self._readable_commit(db, tenant, row)
        name, damage, steps = f"commit {row.seq}", [*view.damage], []
        events = _events(db, tenant, row.seq)
        for number, event in enumerate(events, 1):
            try:
                _record_of_event(db, self._sealer, tenant, event)
                steps.append(self._step(db, tenant, event))
            except Tampered as exc:
                damage.append(damage_note(f"change {number} of {name}, of memory {event.memory_id},", str(exc)))
        if not damage:
            hashes = [_hash_of(event) for event in events]
            if [event.n for event in events] != list(range(len(events))) or digest(
                "events", *hashes
            ) != row.events_hash:
                damage.append(damage_note(name, "these are not the changes it was made with", shown=SHOWN_AS_LEFT))
        return replace(view, steps=tuple(steps), damage=tuple(damage))

    def _commit_or_flaw(self, db: Connection, tenant: str, seq: int) -> CommitView | str:
        row = db.run("commit_by_seq", tenant=tenant, seq=seq).fetchone()
        try:
            return (
                f"commit {seq} is missing" if row is None else self._readable_commit(db, tenant, CommitRow._make(row))
            )
        except Tampered as exc:
            return str(exc)

    def _readable_commit(self, db: Connection, tenant: str, row: CommitRow) -> CommitView:
        """Return a commit as its row says it, without its steps; ``damage`` says what does not match.

        Raises:
            Tampered: its cells cannot be read.
        """
        erased_commitment = residual_payload = flaw = None
        try:
            if row.payload is None:
                erased_commitment, residual_payload = erased_details(db, self._sealer, tenant, row.seq)
        except Tampered as exc:
            flaw = str(exc)
        flaw = flaw or _row_flaw(self._sealer, tenant, row, erased_commitment)
        try:
            if not has_commit_types(row):
                raise Tampered(str(flaw))
            commit = commit_of(tenant, row, erased_commitment)
        except (OverflowError, ValueError) as exc:
            raise Tampered(f"the cells of commit {row.seq} are damaged") from exc
        unread = ERASED if row.payload is None else UNREADABLE
        details = CommitDetails(actor=f"{commit.actor_kind}:{unread}", reason=unread, receipt="", policy="")
        payload = row.payload or residual_payload
        if payload is not None:
            try:
                details = decode_details(payload)
            except Tampered as exc:
                flaw = flaw or str(exc)
        damage = () if flaw is None else (damage_note(f"commit {row.seq}", flaw, shown=SHOWN_AS_STORED),)
        return CommitView(commit=commit, details=details, steps=(), damage=damage)


def scope_parameters(scopes: ScopeRange | None) -> dict[str, Any]:
    """Return the values of the fragment ``in_scopes``."""
    if scopes is None:
        return {"scopes": None, "low": "", "high": "", "main_low": "", "main_high": ""}
    # The character after a slash ends the range. A branch reads main too.
    below, main = ("", "") if scopes.below is None else (scopes.below, main_scope(scopes.below))
    ranges = {"low": f"{below}/", "high": f"{below}0", "main_low": f"{main}/", "main_high": f"{main}0"}
    return {"scopes": json_array(scopes.each), **(ranges if below else dict.fromkeys(ranges, ""))}


def _named_commit(db: Connection, tenant: str, name: str) -> CommitRow | None:
    """Return the row that ``JournalReads.commit`` is to return."""
    row = db.run("commit_by_id", tenant=tenant, id=name).fetchone()
    if row is None and name.isascii() and name.isdecimal() and len(name) < 16:
        row = db.run("commit_by_seq", tenant=tenant, seq=int(name)).fetchone()
    if row is None and len(name) >= MIN_ID_PREFIX:
        rows = db.run("commit_by_prefix", tenant=tenant, **prefix_range(name)).fetchall()
        if len(rows) > 1:
            raise InvalidInput("more than one commit begins so; give more of its id")
        row = rows[0] if rows else None
    return None if row is None else CommitRow._make(row)


def _events(db: Connection, tenant: str, seq: int) -> list[EventRow]:
    return [*map(EventRow._make, db.run("events_of_commit", tenant=tenant, seq=seq).fetchall())]


def _row_flaw(sealer: Sealer, tenant: str, row: CommitRow, erased_commitment: bytes | None) -> str | None:
    """Return the fault of the row of a commit; None if there is none. Its events are not looked at."""
    if not has_commit_types(row):
        return f"the cells of commit {row.seq} are damaged; run `keepward verify`"
    if _hash(tenant, row, erased_commitment) != row.hash:
        return f"commit {row.seq} does not match its hash; run `keepward verify`"
    if not sealer.matches_commit(row.seal, tenant.encode(), row.seq, row.hash, row.receipt):
        return f"commit {row.seq} does not match its seal; run `keepward verify`"
    return None


def verified_commit(
    sealer: Sealer, tenant: str, row: CommitRow, events: list[EventRow], erased_commitment: bytes | None
) -> tuple[Commit, list[Event]]:
    """Return a commit and its events after checking their hashes and seals.

    Raises:
        Tampered: a hash or seal does not match.
    """
    raw = tenant.encode()
    if not all(has_event_types(each) for each in events):
        raise Tampered(f"the cells of commit {row.seq} are damaged; run `keepward verify`")
    if (flaw := _row_flaw(sealer, tenant, row, erased_commitment)) is not None:
        raise Tampered(flaw)
    hashes = [_hash_of(event) for event in events]
    numbered = [each.n for each in events] == list(range(len(events)))
    if not numbered or digest("events", *hashes) != row.events_hash:
        raise Tampered(f"commit {row.seq} does not match its hash; run `keepward verify`")
    for each, hashed in zip(events, hashes, strict=True):
        if (flaw := event_flaw(sealer, raw, each, hashed)) is not None:
            raise Tampered(f"an event of commit {row.seq} is damaged: {flaw}; run `keepward verify`")
    return commit_of(tenant, row, erased_commitment), [event_of(each) for each in events]


def _record_of_event(db: Connection, sealer: Sealer, tenant: str, event: EventRow) -> Record:
    """Return the record of an event row as ``record_or_erased`` does; its cells may have any type.

    Raises:
        Tampered: as there.
    """
    if not has_event_types(event):
        raise Tampered(f"an event of commit {event.seq} is damaged: its cells are damaged; run `keepward verify`")
    return record_or_erased(db, sealer, tenant, event)


def record_or_erased(db: Connection, sealer: Sealer, tenant: str, event: EventRow) -> Record:
    """Return the record of an event row; an erased one has the status ``erased`` and no content.

    Raises:
        Tampered: the row is damaged, or content is missing that no erasure names.
    """
    raw = tenant.encode()
    try:
        return record_at(sealer, raw, event)
    except ContentMissing:
        last = EventRow._make(db.run("newest_event", tenant=tenant, id=event.memory_id).fetchone())
        try:
            newest = record_at(sealer, raw, last)
        except ContentMissing:
            newest = None
        # An erased memory loses all content before its tombstone; another one only the versions that copied it.
        position = (event.seq, event.n)
        lawful = newest is not None and (
            newest.status is Status.ERASED or _is_erased_position(db, sealer, tenant, position)
        )
        if newest is None or not lawful or event_flaw(sealer, raw, event) is not None:
            raise Tampered("content is missing and no erasure names it; run `keepward verify`") from None
        return erased_record(newest, event.version)


def _is_erased_position(db: Connection, sealer: Sealer, tenant: str, position: EventPosition) -> bool:
    """Whether a later commit of kind ``erase``, checked against its hash and seal, names a position."""
    by = erased_positions(db, tenant).get(position, 0)
    found = db.run("commit_by_seq", tenant=tenant, seq=by).fetchone() if by > position[0] else None
    if found is None:
        return False
    row = CommitRow._make(found)
    raw = tenant.encode()
    return _hash(tenant, row, None) == row.hash and sealer.matches_commit(row.seal, raw, by, row.hash, row.receipt)


def payload_matches_event(event: Event) -> bool:
    """Whether a payload is about the memory and version that its event names."""
    if event.payload is None:
        return True
    try:
        record = decode_record(event.payload)
    except Tampered:
        return False
    return (record.id, record.version) == (event.memory_id, event.version)


def walk_chain(
    db: Connection, sealer: Sealer, tenant: str, broken: set[EventPosition] | None = None
) -> Iterator[Fault]:
    """Yield faults of a tenant's commits, events and head row, in journal order.

    ``broken`` collects the positions of damaged events.
    """
    broken = set() if broken is None else broken
    raw = tenant.encode()
    events = map(EventRow._make, db.stream("events_from", tenant=tenant, after=-_AFTER_LAST_SEQ))
    event = next(events, None)
    named = erased_positions(db, tenant)
    seq, prev = 0, EMPTY_HASH
    for row in map(CommitRow._make, db.stream("commits_after", tenant=tenant, after=-_AFTER_LAST_SEQ)):
        name = f"commits {tenant}/{row.seq}"
        seq += 1
        while event is not None and event.seq < row.seq:
            yield _orphan_event_fault(tenant, event, broken)
            event = next(events, None)
        hashes: list[bytes] = []
        while event is not None and event.seq == row.seq:
            hashed, wrong = _event(sealer, raw, event, len(hashes), named)
            if wrong:
                broken.add((event.seq, event.n))
                yield Fault(check="events", row=_event_name(tenant, event), detail=wrong)
            hashes.append(hashed)
            event = next(events, None)
        if row.seq != seq:
            yield Fault(check="chain", row=name, detail=f"commit {seq} is missing before it")
            seq = row.seq
        if row.prev != prev:
            yield Fault(check="chain", row=name, detail="it does not name the hash of the commit before it")
        if digest("events", *hashes) != row.events_hash:
            yield Fault(check="chain", row=name, detail="its events are not the ones it was made with")
        erased = commitment_of(db, tenant, row.seq) if row.payload is None else None
        if not has_commit_types(row) or _hash(tenant, row, erased) != row.hash:
            yield Fault(check="chain", row=name, detail="its hash does not cover its cells")
        wrong = _presence_error(named, (row.seq, DETAILS), is_missing=row.payload is None)
        if wrong:
            yield Fault(check="chain", row=name, detail=wrong)
        if not sealer.matches_commit(row.seal, raw, row.seq, row.hash, row.receipt):
            yield Fault(check="seals", row=name, detail="its seal does not match")
        prev = row.hash
    while event is not None:
        yield _orphan_event_fault(tenant, event, broken)
        event = next(events, None)
    yield from _head(db, sealer, tenant, seq, prev)


def _event_name(tenant: str, event: EventRow) -> str:
    return f"events {tenant}/{event.seq}/{event.n}"


def _orphan_event_fault(tenant: str, event: EventRow, broken: set[EventPosition]) -> Fault:
    """Return the fault of an event without a commit, and add its position to ``broken``."""
    broken.add((event.seq, event.n))
    return Fault(check="chain", row=_event_name(tenant, event), detail="the event belongs to no commit")


def _presence_error(named: Mapping[EventPosition, int], position: EventPosition, *, is_missing: bool) -> str | None:
    """Return why content may not be missing, or may not exist; None if it may."""
    if is_missing:
        return None if named.get(position, 0) > position[0] else "its content is missing, and no erasure names it"
    return "its content was erased and is here again" if position in named else None


def _event(
    sealer: Sealer, tenant: bytes, event: EventRow, n: int, named: Mapping[EventPosition, int]
) -> tuple[bytes, str | None]:
    if not has_event_types(event):
        return b"", "its cells are damaged"
    digest = _hash_of(event)
    if event.n != n:
        return digest, f"event {n} of its commit is missing before it"
    is_missing = event.payload is None
    wrong = _presence_error(named, (event.seq, event.n), is_missing=is_missing) if is_missing or named else None
    return digest, wrong or event_flaw(sealer, tenant, event, digest)


def _hash(tenant: str, row: CommitRow, erased: bytes | None) -> bytes:
    try:
        return commit_hash(commit_of(tenant, row, erased))
    except (KeepwardError, OverflowError, ValueError):
        return b""


def _head(db: Connection, sealer: Sealer, tenant: str, seq: int, digest: bytes) -> Iterator[Fault]:
    name = f"tenants {tenant}"
    row = db.run("tenant", tenant=tenant).fetchone()
    if row[0] is None:
        # A tenant without commits has no row. If its commits were deleted too, the check against the anchor notices.
        if seq:
            yield Fault(check="tenants", row=name, detail="the row with its head is missing")
        return
    if row[:2] != (seq, digest):
        yield Fault(check="tenants", row=name, detail="the newest commit is not the one the head names")
    if not sealer.matches_row(row[6], "tenants", tenant, *row[:6]):
        yield Fault(check="seals", row=name, detail="its seal does not match")
