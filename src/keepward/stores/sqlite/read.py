"""What may be asked of a SQLite store about memories, and about what stands beside the journal.

Invariants
(1) Filters apply before limits.
(2) A row that does not hold is left out, named in ``damaged`` and logged; it is never returned.
(3) Every order is total: newest arrival first, ties by id, unless a docstring says otherwise.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from keepward.errors import InvalidInput, Tampered
from keepward.model.memory import Record, Status
from keepward.model.proposal import Waiting, waiting_from_dict
from keepward.model.query import Filter
from keepward.model.value import from_micros, to_micros
from keepward.ports.searching import Likely, Profile
from keepward.ports.store import PREFIX, Features, Found, Indexed
from keepward.stores.sql import load_queries
from keepward.stores.sqlite import search
from keepward.stores.sqlite.erasing import record_or_blank
from keepward.stores.sqlite.rows import (
    Row,
    features_of,
    important,
    passes,
    place_of,
    record_of,
)
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
#: Tiers whose memories all stand in the index of ``standing``.
_STANDING = frozenset({"core", "working"})
_EMPTY = Features(terms=b"")
_log = logging.getLogger(__name__)


def _query_for(filters: Filter) -> str:
    """Return the query of ``find`` that has the best index for a filter."""
    if filters.key is not None:
        return "find_key"
    if filters.session is not None:
        return "find_session"
    standing = filters.keyed or filters.permanent or (filters.tiers and set(filters.tiers) <= _STANDING)
    return "find_standing" if standing else "find"


def _listed(names: Sequence[str]) -> str:
    """Return names as JSON; most filters name nothing."""
    return json.dumps(names) if names else "[]"


class Asked:
    """One snapshot of one tenant."""

    __slots__ = ("_bytes", "_db", "_sealer", "_tenant")

    def __init__(self, connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> None:
        self._db = connection
        self._sealer = sealer
        self._tenant = tenant
        self._bytes = tenant.encode()

    def _rows(self, name: str, **values: Any) -> sqlite3.Cursor:
        return self._db.execute(SQL[name], {"tenant": self._tenant, **values})

    def _named(self, what: str, name: str) -> Row | None:
        """Return the one receipt or proposal with an id, or with an id that begins so."""
        row: Row | None = self._rows(what, id=name).fetchone()
        if row is None and len(name) >= PREFIX:
            rows = self._rows(f"{what}s_by_prefix", id=name).fetchall()
            if len(rows) > 1:
                raise InvalidInput(f"more than one {what} begins so; give more of its id")
            row = rows[0] if rows else None
        return row

    def beginning(self, prefix: str, limit: int) -> list[str]:
        """Return ids of memories that begin so, in their order."""
        return [name for (name,) in self._rows("memories_by_prefix", id=prefix, limit=limit).fetchall()]

    def _damaged(self, found: Found, memory_id: object, fault: Tampered) -> None:
        found.damaged.append(str(memory_id))
        _log.warning("memory %s was left out: %s", memory_id, fault, extra={"action": "damaged"})

    def records(self, ids: Sequence[str], as_of: int | None) -> Found:
        """Return records by id or alias, in the order asked, each once."""
        found = Found()
        by_id: dict[str, Record] = {}
        self._read(list(ids), as_of, found, by_id)
        others = json.dumps([name for name in ids if name not in by_id])
        aliases = dict(self._rows("by_alias", ids=others).fetchall()) if others != "[]" else {}
        wanted = [each for each in dict.fromkeys(aliases.values()) if each not in by_id]
        if wanted:
            self._read(wanted, as_of, found, by_id)
        missing = [name for name in (*ids, *wanted) if name not in by_id and name not in found.damaged]
        if as_of is None and missing:
            for (memory_id,) in self._rows("in_journal", ids=json.dumps(missing)).fetchall():
                self._damaged(found, memory_id, Tampered("its record is missing"))
        seen: set[str] = set()
        for name in ids:
            record_or_none = by_id.get(name)
            if record_or_none is None and name in aliases:
                # An alias counts only while the memory itself says so.
                target = by_id.get(aliases[name])
                record_or_none = target if target is not None and name in target.aliases else None
            if record_or_none is not None and record_or_none.id not in seen:
                seen.add(record_or_none.id)
                found.records.append(record_or_none)
        return found

    def _read(self, ids: Sequence[str], as_of: int | None, found: Found, by_id: dict[str, Record]) -> None:
        """Read records by their own ids into ``by_id``; name those that do not hold in ``found``."""
        if as_of is None:
            rows = self._rows("records_by_id", ids=json.dumps(ids))
        else:
            rows = self._rows("records_as_of", ids=json.dumps(ids), as_of=as_of)
        for row in rows:
            memory_id = row[0] if as_of is None else row[3]
            try:
                by_id[memory_id] = self._record(row) if as_of is None else self._then(row, as_of)
            except Tampered as fault:
                self._damaged(found, memory_id, fault)

    def _then(self, row: Row, as_of: int) -> Record:
        """Return the record of an event that must lie within the first ``as_of`` commits."""
        record = record_or_blank(self._db, self._sealer, self._tenant, row[:9])
        if row[0] > as_of:
            raise Tampered("an index is damaged")
        return record

    def _record(self, row: Row) -> Record:
        return record_of(self._sealer, self._bytes, row)

    def find(self, filters: Filter, live_at: datetime | None, limit: int | None, as_of: int | None) -> Found:
        """Return records that pass."""
        if as_of is not None:
            return self._find_as_of(filters, live_at, limit, as_of)
        values = {
            "scopes": _listed(filters.scopes),
            "tiers": _listed(filters.tiers),
            "kinds": _listed(filters.kinds),
            "content_types": _listed(filters.content_types),
            "tags": json.dumps(filters.tags, ensure_ascii=False) if filters.tags else "[]",
            "key": filters.key,
            "subject": filters.subject,
            "category": filters.category,
            "session": filters.session,
            "job": filters.job,
            "keyed": filters.keyed,
            "permanent": filters.permanent,
            "min_importance": round(filters.min_importance * 10_000),
            "include_sensitive": filters.include_sensitive,
            "now": None if live_at is None else to_micros(live_at),
            "limit": -1,
        }
        found = Found()
        # The limit is counted here: a damaged row must not take the place of a good one.
        for row in self._rows(_query_for(filters), **values):
            if limit is not None and len(found.records) >= limit:
                break
            try:
                record = self._record(row)
            except Tampered as fault:
                self._damaged(found, row[0], fault)
                continue
            # The statement compares what is stored, and nothing fades upwards.
            if important(record, filters):
                found.records.append(record)
        return found

    def _find_as_of(self, filters: Filter, live_at: datetime | None, limit: int | None, as_of: int) -> Found:
        found = Found()
        for row in self._rows("find_as_of", as_of=as_of):
            if limit is not None and len(found.records) >= limit:
                break
            try:
                record = self._then(row, as_of)
            except Tampered as fault:
                self._damaged(found, row[3], fault)
                continue
            if passes(record, filters) and (live_at is None or record.is_live(live_at)):
                found.records.append(record)
        return found

    def similar(self, record: Record, features: Features, now: datetime) -> Found:
        """Return up to 8 others: equal digest first, then by marks shared, most first, ties by newer position."""
        ((likely, _),) = self.likely([(record, features)], now)
        found = self.records([each.id for each in likely], None)
        place = place_of(record)
        found.records = [each for each in found.records if each.is_live(now) and place_of(each) == place]
        return found

    def likely(self, asked: Sequence[tuple[Record, Features]], now: datetime) -> list[tuple[tuple[Likely, ...], bool]]:
        """Return for each record what ``similar`` would, not read, and whether its digest is known."""
        return search.likely(self._db, self._tenant, asked, now)

    def profiles(self, after: int) -> Iterator[tuple[str, Profile | None]]:
        """Yield every memory touched after a position, as ranking sees it; None when it is not active."""
        return search.profiles(self._db, self._sealer, self._tenant, after)

    def superseded(self, scope: str, digest: bytes) -> Found:
        """Return superseded memories of a scope with this digest, newest first."""
        ids = [memory_id for (memory_id,) in self._rows("superseded", scope=scope, digest=digest)]
        return self.records(ids, None) if ids else Found()

    def tally(self) -> dict[str, int]:
        """Return active memories by tier."""
        return dict(self._rows("tally").fetchall())

    def lapsed(self, now: datetime, limit: int) -> Found:
        """Return active memories whose term is over, the longest ago first."""
        ids = [memory_id for (memory_id,) in self._rows("lapsed", now=to_micros(now), limit=limit)]
        return self.records(ids, None) if ids else Found()

    def children(self, ids: Sequence[str]) -> list[str]:
        """Return directly derived memories, sorted."""
        return [memory_id for (memory_id,) in self._rows("children", ids=json.dumps(list(ids)))]

    def deliveries(self, ids: Sequence[str]) -> list[tuple[str, int, str]]:
        """Return (memory id, version, receipt id) of contexts that held any of these, oldest receipt first."""
        return [(row[0], row[1], row[2]) for row in self._rows("deliveries", ids=json.dumps(list(ids)))]

    def undone_by(self, commit_id: str) -> list[str]:
        """Return the rollbacks that name a commit, newest first."""
        return [name for (name,) in self._rows("undone_by", commit_id=commit_id).fetchall()]

    def session_tail(self, session: str) -> Record | None:
        """Return the newest active memory of a session."""
        row = self._rows("session_tail", session=session).fetchone()
        found = self.records([row[0]], None).records if row else []
        return found[0] if found else None

    def indexed(self, after: int, as_of: int | None) -> Iterator[tuple[str, Indexed | None]]:
        """Yield every memory touched after a position, oldest touch first; None when it is not active."""
        if as_of is not None:
            yield from self._indexed_as_of(after, as_of)
            return
        for row in self._rows("indexed", after=after):
            memory_id, version, status = row[0], row[1], row[6]
            try:
                record = self._record(row) if status == Status.ACTIVE else None
            except Tampered as fault:
                _log.warning("memory %s was left out: %s", memory_id, fault, extra={"action": "damaged"})
                record = None
            if record is None:
                yield memory_id, None
                continue
            features = features_of(self._sealer, self._tenant, memory_id, version, row[36:45])
            yield memory_id, Indexed(record=record, position=row[4], arrival=row[5], features=features or _EMPTY)

    def _indexed_as_of(self, after: int, as_of: int) -> Iterator[tuple[str, Indexed | None]]:
        for row in self._rows("indexed_as_of", after=after, as_of=as_of):
            memory_id, version = row[3], row[4]
            try:
                record = self._then(row, as_of)
            except Tampered as fault:
                _log.warning("memory %s was left out: %s", memory_id, fault, extra={"action": "damaged"})
                yield memory_id, None
                continue
            if record.status is not Status.ACTIVE or row[9] is None:
                yield memory_id, None
                continue
            features = features_of(self._sealer, self._tenant, memory_id, version, row[10:19])
            yield (
                memory_id,
                Indexed(record=record, position=(row[0] << 20) + row[1], arrival=row[9], features=features or _EMPTY),
            )

    def queue(self, state: str | None) -> list[Waiting]:
        """Return proposals, oldest first; one that does not hold is left out and logged."""
        items = []
        for row in self._rows("queue", state=state):
            try:
                items.append(self._waiting(row))
            except Tampered as fault:
                _log.warning("proposal %s was left out: %s", row[0], fault, extra={"action": "damaged"})
        return items

    def untold(self, now: datetime) -> int:
        """Return how many proposals ended without their proposer being told."""
        return int(self._rows("untold", now=to_micros(now)).fetchone()[0])

    def waiting(self, proposal_id: str) -> Waiting | None:
        """Return one proposal by id or unique prefix.

        Raises:
            Tampered: it does not hold.
            InvalidInput: more than one begins so.
        """
        row = self._named("proposal", proposal_id)
        return None if row is None else self._waiting(row)

    def _waiting(self, row: Row) -> Waiting:
        proposal_id, state, created_at, expires_at, body, seal = row
        if not self._sealer.holds_row(seal, "proposals", self._tenant, *row[:5]):
            raise Tampered("a proposal in the queue does not match its seal; run `keepward verify`")
        item = waiting_from_dict(_object(body))
        if (item.id, item.state, to_micros(item.created_at), to_micros(item.expires_at)) != (
            proposal_id,
            state,
            created_at,
            expires_at,
        ):
            raise Tampered("a proposal in the queue differs from its columns; run `keepward verify`")
        return item

    def receipt(self, receipt_id: str) -> dict[str, Any] | None:
        """Return a receipt as it was stored, by id or unique prefix.

        Raises:
            Tampered: it does not match its seal.
            InvalidInput: more than one begins so.
        """
        row = self._named("receipt", receipt_id)
        if row is None:
            return None
        receipt_id, kind, at, body, seal = row
        if not self._sealer.holds_row(seal, "receipts", self._tenant, receipt_id, kind, at, body):
            raise Tampered("the receipt does not match its seal; run `keepward verify`")
        return _object(body)

    def handed(self, after: str) -> list[dict[str, Any]]:
        """Return the receipts above an id that name what was handed out, by id; one without its seal is left out."""
        rows = self._rows("receipts_handed", after=after).fetchall()
        return [
            _object(body)
            for name, kind, at, body, seal in rows
            if self._sealer.holds_row(seal, "receipts", self._tenant, name, kind, at, body)
        ]

    def artefact(self, kind: str, version: str) -> str | None:
        """Return a kept text.

        Raises:
            Tampered: it does not match its seal.
        """
        row = self._rows("artefact", kind=kind, version=version).fetchone()
        if row is None:
            return None
        text, seal = row
        if not self._sealer.holds_row(seal, "artefacts", self._tenant, kind, version, text):
            raise Tampered(f"the kept {kind} does not match its seal; run `keepward verify`")
        return str(text)

    def usage(self, ids: Iterable[str]) -> dict[str, tuple[int, datetime]]:
        """Return (count, last use) by id."""
        rows = self._rows("usage", ids=json.dumps(list(ids)))
        return {
            memory_id: (count, from_micros(last))
            for memory_id, count, last, learned, seal in rows
            if self._sealer.holds_row(seal, "usage", self._tenant, memory_id, count, last, learned)
        }


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError as fault:
        raise Tampered("a row beside the journal is damaged; run `keepward verify`") from fault
    if not isinstance(value, dict):
        raise Tampered("a row beside the journal is damaged; run `keepward verify`")
    return value
