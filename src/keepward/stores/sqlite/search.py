"""What ranking and the duplicate gate ask: rows that are seen by the thousand, and read only where they matter.

Invariants
(1) A profile holds by its bond, or is made from the memory itself once that was checked.
(2) What is told of likely memories is not checked here: whoever uses one reads it, which checks, and compares its
    place, since marks of two places may meet.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain

from keepward.errors import Tampered
from keepward.model.memory import Record, Status
from keepward.model.value import to_micros
from keepward.ports.searching import Likely, Profile
from keepward.ports.store import Features
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.rows import (
    Row,
    features_of,
    listed,
    pack_marks,
    place_of,
    placed_marks,
    profile_of,
    record_of,
    unpack_marks,
)
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
#: Most candidates for one text.
CANDIDATES = 8
#: Marks of six that a candidate shares, unless its text is equal; see ``engine.features``.
SHARED = 2
#: Holders of one mark that are counted, those touched last.
CROWD = 32
#: Candidates of each text of which anything is asked at first.
_TOLD = CANDIDATES
_log = logging.getLogger(__name__)


def profiles(
    connection: sqlite3.Connection, sealer: Sealer, tenant: str, after: int
) -> Iterator[tuple[str, Profile | None]]:
    """Yield every memory touched after a position, oldest touch first; None when it is not active."""
    rows = connection.execute(SQL["profiles"], {"tenant": tenant, "after": after})
    for row in rows:
        if row[6] != Status.ACTIVE:
            yield row[0], None
            continue
        found = profile_of(sealer, tenant, row)
        yield row[0], found if found is not None else _read(connection, sealer, tenant, row)


def _read(connection: sqlite3.Connection, sealer: Sealer, tenant: str, row: Row) -> Profile | None:
    """Return the profile of a memory whose bond does not hold, made from the memory itself."""
    memory_id = row[0]
    asked = {"tenant": tenant, "ids": listed([memory_id])}
    try:
        whole = connection.execute(SQL["records_by_id"], asked).fetchone()
        record = record_of(sealer, tenant.encode(), whole)
    except Tampered as fault:
        _log.warning("memory %s was left out: %s", memory_id, fault, extra={"action": "damaged"})
        return None
    features = features_of(sealer, tenant, memory_id, record.version, row[25:34])
    return Profile.of(record, features or Features(terms=b""), touched=whole[4], position=whole[5])


def likely(
    connection: sqlite3.Connection,
    tenant: str,
    asked: Sequence[tuple[Record, Features]],
    now: datetime,
) -> list[tuple[tuple[Likely, ...], bool]]:
    """Return for each record up to 8 others, and whether any memory has its digest.

    Equal digest first, by id; then by marks shared, most first, ties by newer position: the memory touched last.
    A memory without a record is left out.
    """
    marks = [_stored(record, features) for record, features in asked]
    holders = _holders(connection, tenant, marks)
    micros = to_micros(now)
    own = _positions(connection, tenant, asked)
    equals: list[list[int]] = []
    known: list[bool] = []
    ranked: list[list[int]] = []
    for (record, features), placed in zip(asked, marks, strict=True):
        digest = features.digest
        has = is_known(connection, tenant, digest)
        known.append(has)
        equals.append(_equal(connection, tenant, record, digest, micros) if has else [])
        crowds = [crowd for mark in placed if (crowd := holders.get(mark))]
        shared = Counter(chain.from_iterable([crowd[:CROWD] for crowd in crowds]))
        mine = own.get(record.id)
        if mine in shared:
            shared = Counter(chain.from_iterable([each for each in crowd if each != mine] for crowd in crowds))
        # Positions rise with time: among those that share as many, what was touched last comes first.
        counted = sorted(((count, int(each)) for each, count in shared.items() if count >= SHARED), reverse=True)
        ranked.append([position for _, position in counted])
    order = [list(dict.fromkeys([*same, *near])) for same, near in zip(equals, ranked, strict=True)]
    told = _told(connection, tenant, {position for places in order for position in places[:_TOLD]})
    found: list[tuple[tuple[Likely, ...], bool]] = []
    for (_, features), same, places, some in zip(asked, equals, order, known, strict=True):
        first = _living(places[:_TOLD], told, features, same, micros)
        if len(first) < CANDIDATES and len(places) > _TOLD:
            # Many of them have run out: then all have to be looked at.
            first = _living(places, _told(connection, tenant, places), features, same, micros)
        found.append((first, some))
    return found


def is_known(connection: sqlite3.Connection, tenant: str, digest: bytes) -> bool:
    """Whether any memory has a digest, whatever its state; an empty one is nobody's."""
    return bool(digest) and connection.execute(SQL["known_digest"], (tenant, digest)).fetchone() is not None


def _living(
    positions: Sequence[int], told: Mapping[int, Row], features: Features, equal: Sequence[int], now: int
) -> tuple[Likely, ...]:
    """Return the first of some memories that hold, as far as they tell; one that tells no trait has to be read."""
    found: list[Likely] = []
    for position in positions:
        row = told.get(position)
        if row is None or row[3] != Status.ACTIVE or (row[4] is not None and row[4] <= now):
            continue
        same = position in equal
        kindred = same or not row[5] or not features.trait or row[5] == features.trait
        found.append(Likely(row[1], row[2], same, kindred))
        if len(found) == CANDIDATES:
            break
    return tuple(found)


def _stored(record: Record, features: Features) -> set[int]:
    marks = features.marks
    if marks and not 0 <= min(marks) <= max(marks) < 1 << 63:
        marks = unpack_marks(pack_marks(marks))
    return set(placed_marks(place_of(record), marks))


def _holders(connection: sqlite3.Connection, tenant: str, marks: Iterable[set[int]]) -> dict[int, list[str]]:
    """Return by mark the positions of its newest holders, in digits."""
    wanted: set[int] = set().union(*marks)
    # One more than counted: the memory that asks may be among them.
    values = {"tenant": tenant, "marks": str(sorted(wanted)), "most": CROWD + 1}
    rows = connection.execute(SQL["holders"], values)
    return {mark: positions.split(" ") for mark, positions in rows if positions is not None}


def _positions(connection: sqlite3.Connection, tenant: str, asked: Iterable[tuple[Record, Features]]) -> dict[str, str]:
    """Return the positions, in digits, of those records that are stored."""
    ids = listed([record.id for record, _ in asked])
    rows = connection.execute(SQL["positions"], {"tenant": tenant, "ids": ids})
    return {memory_id: str(position) for memory_id, position in rows}


def _equal(connection: sqlite3.Connection, tenant: str, record: Record, digest: bytes, now: int) -> list[int]:
    values = {
        "tenant": tenant,
        "digest": digest,
        "id": record.id,
        "tier": record.tier.value,
        "scope": record.scope,
        "sensitivity": record.sensitivity.value,
        "now": now,
    }
    return [position for _, position in sorted(connection.execute(SQL["same_digest"], values))]


def _told(connection: sqlite3.Connection, tenant: str, positions: Iterable[int]) -> dict[int, Row]:
    wanted = str(sorted(positions))
    return {row[0]: row for row in connection.execute(SQL["likely"], {"tenant": tenant, "positions": wanted})}
