"""When sliding terms end: what touches have moved, kept beside the journal as counts of uses are.

A touch is no commit. It is a sealed document a memory, which tells version by version when that ends since it was
touched, and the end of the newest version stands in its row of ``records`` too, where filters look.

Invariants
(1) Only what holds is touched, and an end moves forward alone: at an instant of the past a version held if it was
    touched after that, or if its own term was not over. So the past is read as it was.
(2) A row that ends at another instant than its payload says is believed as far as the document says the same.
(3) A version that is written takes over the end that its memory has then: touches of earlier ones do not count for it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from keepward.model.commit import TermEnds
from keepward.model.memory import Record
from keepward.model.value import from_micros, to_micros
from keepward.store.rows import holds_record, listed
from keepward.store.seals import Sealer
from keepward.store.sql import Row, Session, Snapshot

if TYPE_CHECKING:
    from keepward.store.tenant import State

#: By version, the instant of its end in microseconds since 1970.
Ends = Mapping[int, int]
#: Behind a memory's id, the id of its document among those of uses; before a number of transactions, its state.
_BEHIND, _STATE = "/term", "term"
#: Place of ``expires_at`` in a row of ``profiles``.
_END = 19
_log = logging.getLogger(__name__)


def document_ids(ids: Iterable[str]) -> list[str]:
    """Return the ids of the documents that tell when memories end."""
    return [f"{each}{_BEHIND}" for each in ids]


def ends_of(db: Session, sealer: Sealer, tenant: str, ids: Iterable[str]) -> dict[str, Ends]:
    """Return, by id of those memories that were touched, when their versions end; what does not hold is left out."""
    rows = db.run("documents_by_id", tenant=tenant, kind="usage", ids=listed(document_ids(ids)))
    return dict(_read(row) for row in rows.fetchall() if _holds(sealer, row))


def all_ends(db: Session, sealer: Sealer, tenant: str) -> dict[str, Ends]:
    """Return the same of all memories of a tenant."""
    return {memory_id: ends for memory_id, ends, _ in ends_after(db, sealer, tenant, "")}


def ends_after(db: Session, sealer: Sealer, tenant: str, after: str) -> Iterator[tuple[str, Ends, str]]:
    """Yield (memory id, when its versions end, mark) of what was touched after a mark, in order of marks."""
    rows = db.run("documents_after", tenant=tenant, kind="usage", after=after or _STATE, before=f"{_STATE}~")
    for row in rows.fetchall():
        if _holds(sealer, row):
            yield (*_read(row), row[3])


def prolonged(record: Record, ends: Ends | None) -> Record:
    """Return a record with the end that touches have given its version."""
    end = (ends or {}).get(record.version)
    if end is None or record.sliding_ms is None or record.expires_at is None or end <= to_micros(record.expires_at):
        return record
    return replace(record, expires_at=from_micros(end))


def touched_in(db: Session, sealer: Sealer, tenant: str) -> Callable[[Record], Record]:
    """Return what gives a record the end that touches have given its version, where its term slides."""

    def touched(record: Record) -> Record:
        if record.sliding_ms is None:
            return record
        return prolonged(record, ends_of(db, sealer, tenant, [record.id]).get(record.id))

    return touched


def _holds(sealer: Sealer, row: Row) -> bool:
    if sealer.holds_row(row[7], row[1], *row[:7]):
        return True
    _log.warning("the end of a term was left out: %s", row[2], extra={"action": "damaged"})
    return False


def _read(row: Row) -> tuple[str, Ends]:
    memory_id = row[2].removesuffix(_BEHIND)
    try:
        return memory_id, {int(version): int(end) for version, end in json.loads(row[6])["ends"]}
    except (ValueError, TypeError, KeyError):
        # Only a store without a key gets here.
        return memory_id, {}


class TermReads(Snapshot):
    """What may be asked about sliding terms; a part of ``Reader``."""

    def ends_after(self, tenant: str, after: str) -> list[tuple[str, Ends, str]]:
        """Return (memory id, when its versions end, mark) of what was touched after a mark, in order of marks."""
        with self._reading(tenant) as db:
            return list(ends_after(db, self._sealer, tenant, after))


def prolong(db: Session, sealer: Sealer, state: State, ends: TermEnds) -> set[str]:
    """Move ends of versions forward; return the ids of the memories whose newest version ends later now.

    A row, or a document, that does not match its seal stays as it is: it must not get a good one.
    """
    tenant, ids = state.tenant, listed(ends)
    known = {
        row[2]: row for row in db.run("documents_by_id", tenant=tenant, kind="usage", ids=listed(document_ids(ends)))
    }
    fresh, moved = [], []
    for row in db.run("profiles_by_id", tenant=tenant, ids=ids).fetchall():
        memory_id, version = row[0], row[1]
        before = known.get(f"{memory_id}{_BEHIND}")
        if not holds_record(sealer, tenant, row) or (before is not None and not _holds(sealer, before)):
            continue
        held = dict(_read(before)[1]) if before is not None else {}
        told = {each: end for each, end in ends[memory_id].items() if each <= version and end > held.get(each, 0)}
        if not told:
            continue
        body = json.dumps({"ends": sorted((held | told).items())}, separators=(",", ":")).encode()
        end = (held | told).get(version, 0)
        cells = (tenant, "usage", f"{memory_id}{_BEHIND}", f"{_STATE}{state.writes + 1:012}", 0, end, body)
        fresh.append((*cells, sealer.row("usage", *cells)))
        state.turn(sealer, "usage", None if before is None else before[7], fresh[-1][7])
        if row[6] == "active" and row[_END] is not None and end > row[_END]:
            moved.append((row, (*row[:_END], end, *row[_END + 1 : 34])))
    db.many("put_document", fresh)
    db.many("set_end", [(row[_END], sealer.record(tenant, *row), tenant, row[0]) for _, row in moved])
    state.turn_records(sealer, ((tenant, *row[:25]) for row, _ in moved), ((tenant, *row[:25]) for _, row in moved))
    return {row[0] for row, _ in moved}
