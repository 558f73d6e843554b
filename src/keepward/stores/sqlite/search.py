"""What ranking and the duplicate gate ask: rows that are seen by the thousand, and read only where they matter.

Invariants
(1) A profile holds by its bond, or is made from the memory itself once that was checked.
(2) What is told of likely memories is not checked here: whoever uses one reads it, and reading checks.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain

from keepward.domain.instant import to_micros
from keepward.domain.memory import Record, Status
from keepward.errors import Tampered
from keepward.ports.searching import Likely, Profile
from keepward.ports.store import Features
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.rows import Row, features_of, pack_marks, place_of, profile_of, record_of, unpack_marks
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
#: Most candidates for one text.
CANDIDATES = 8
#: Marks of six that a candidate shares, unless its text is equal; see ``engine.features``.
SHARED = 2
#: Holders of one mark that are counted, the newest ones.
CROWD = 32
#: Candidates of each text of which anything is asked at first.
_TOLD = 2 * CANDIDATES
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
    asked = {"tenant": tenant, "ids": json.dumps([memory_id])}
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

    Equal digest first, then by marks shared, most first, ties by newer id.
    """
    holders = _holders(connection, tenant, asked)
    micros = to_micros(now)
    equals: list[list[str]] = []
    known: list[bool] = []
    ranked: list[list[str]] = []
    for record, features in asked:
        digest, place = features.digest, place_of(record)
        has = bool(digest) and connection.execute(SQL["known_digest"], (tenant, digest)).fetchone() is not None
        known.append(has)
        equals.append(_equal(connection, tenant, record, digest, micros) if has else [])
        crowds = [holders[place, mark] for mark in set(_stored(features)) if (place, mark) in holders]
        shared: Counter[str] = Counter()
        for crowd in crowds:
            shared.update(crowd[:CROWD])
        if record.id in shared:
            shared = Counter(chain.from_iterable([each for each in crowd if each != record.id] for crowd in crowds))
        counted = [(count, memory_id) for memory_id, count in shared.items() if count >= SHARED]
        # Newer ids are greater, and come first among those that share as many.
        counted.sort(reverse=True)
        ranked.append([memory_id for _, memory_id in counted])
    order = [list(dict.fromkeys([*same, *near])) for same, near in zip(equals, ranked, strict=True)]
    told = _told(connection, tenant, {memory_id for names in order for memory_id in names[:_TOLD]})
    found: list[tuple[tuple[Likely, ...], bool]] = []
    for (_, features), same, names, some in zip(asked, equals, order, known, strict=True):
        first = _living(names[:_TOLD], told, features, same, micros)
        if len(first) < CANDIDATES and len(names) > _TOLD:
            # Many of them have run out: then all have to be looked at.
            first = _living(names, _told(connection, tenant, names), features, same, micros)
        found.append((first, some))
    return found


def _living(
    names: Sequence[str], told: Mapping[str, Row], features: Features, equal: Sequence[str], now: int
) -> tuple[Likely, ...]:
    """Return the first of some memories that hold, as far as they tell; a row that tells nothing has to be read."""
    found: list[Likely] = []
    for memory_id in names:
        row = told.get(memory_id)
        if row is not None and (row[2] != Status.ACTIVE or (row[3] is not None and row[3] <= now)):
            continue
        same = memory_id in equal
        kindred = same or row is None or not row[5] or not features.trait or row[5] == features.trait
        found.append(Likely(id=memory_id, version=row[1] if row else 0, equal=same, kindred=kindred))
        if len(found) == CANDIDATES:
            break
    return tuple(found)


def _stored(features: Features) -> tuple[int, ...]:
    marks = features.marks
    return marks if not marks or 0 <= min(marks) <= max(marks) < 1 << 63 else unpack_marks(pack_marks(marks))


def _holders(
    connection: sqlite3.Connection, tenant: str, asked: Iterable[tuple[Record, Features]]
) -> dict[tuple[str, int], list[str]]:
    """Return the newest holders of each mark of some records, by place and mark."""
    marks: dict[str, set[int]] = {}
    for record, features in asked:
        marks.setdefault(place_of(record), set()).update(_stored(features))
    found: dict[tuple[str, int], list[str]] = {}
    for place, wanted in marks.items():
        # One more than counted: the memory that asks may be among them.
        values = {"tenant": tenant, "place": place, "marks": json.dumps(sorted(wanted)), "most": CROWD + 1}
        for mark, names in connection.execute(SQL["holders"], values):
            if names is not None:
                found[place, mark] = names.split(" ")
    return found


def _equal(connection: sqlite3.Connection, tenant: str, record: Record, digest: bytes, now: int) -> list[str]:
    values = {
        "tenant": tenant,
        "digest": digest,
        "id": record.id,
        "tier": record.tier.value,
        "scope": record.scope,
        "sensitivity": record.sensitivity.value,
        "now": now,
    }
    return sorted(memory_id for (memory_id,) in connection.execute(SQL["same_digest"], values))


def _told(connection: sqlite3.Connection, tenant: str, ids: Iterable[str]) -> dict[str, Row]:
    wanted = json.dumps(sorted(ids))
    return {row[0]: row for row in connection.execute(SQL["likely"], {"tenant": tenant, "ids": wanted})}
