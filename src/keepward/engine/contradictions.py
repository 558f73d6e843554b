"""Contradictions: pairs of live statements of the same thing, of which the newer one outdoes the older one.

Invariants
(1) Nothing is changed, merged or superseded by what is found; that is for a person to decide.
(2) What takes part is what a list under the same filters shows this handle.
(3) Work is bounded. So many statements are all compared with each other; of more, the newest ones that could outdo
    something are each compared with what is nearest to them, and a note says so.
(4) The order is total: most signs first, then the closest, then by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from keepward.engine.read import by_meaning, find, nearest, outdone_among
from keepward.engine.session import Session
from keepward.errors import InvalidInput
from keepward.model.journal import Contradiction, Contradictions
from keepward.model.memory import Record, as_read
from keepward.model.query import Filter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from keepward.retrieval.current import Newer

#: Statements that are all compared with each other.
TOGETHER = 1_000
#: Of more: newest ones that are read, how many of them are compared, and with how many of the nearest.
READ, LOOKED, NEAREST = 2_000, 256, 24
#: Characters of a statement by which others are nearest to it.
BEGINNING = 1_000


def contradictions(session: Session, filters: Filter, *, limit: int) -> Contradictions:
    """Return the pairs that a handle can see, see (4).

    Raises:
        InvalidInput: a limit below 1, an unknown tier, kind or content type.
    """
    if limit < 1:
        raise InvalidInput("a limit is at least 1")
    seen = find(session, filters, limit=READ, include_ended=False)
    records = {record.id: record for record in seen}
    notes = list(seen.notes)
    if not by_meaning(session):
        notes.append("no embedder of meaning: statements were compared by their words alone")
    if len(seen) <= TOGETHER:
        compared, found = len(seen), outdone_among(session, None, seen)
    else:
        newest = _newest(seen)
        compared, found = len(newest), _near(session, newest, filters, records)
        notes.append(
            f"there are more than {TOGETHER} statements: the newest {compared} that could outdo another were compared "
            "with what is nearest to them; narrow it, such as by subject or session, to compare all with each other"
        )
    pairs = [
        Contradiction(older=records[name], newer=records[by.id], signs=by.signs, score=round(min(by.score, 1.0), 4))
        for name, by in found.items()
    ]
    pairs.sort(key=lambda pair: (-len(pair.signs), -pair.score, pair.older.id))
    return Contradictions(
        items=tuple(pairs[:limit]), total=len(pairs), compared=compared, withheld=seen.withheld, notes=tuple(notes)
    )


def _newest(records: Sequence[Record]) -> list[Record]:
    """Return the newest ones that could outdo another, newest first."""
    from keepward.retrieval.current import could_outdo, instant

    able = filter(could_outdo, records)
    return sorted(able, key=lambda each: (*instant(each), each.id), reverse=True)[:LOOKED]


def _near(session: Session, newest: Sequence[Record], filters: Filter, records: dict[str, Record]) -> dict[str, Newer]:
    """Return what is outdone near each of the newest statements; what had to be read for it joins ``records``."""
    from keepward.retrieval.current import instant

    found: dict[str, Newer] = {}
    for newer, near in zip(newest, _neighbours(session, newest, filters), strict=True):
        now = session.clock.now()
        unread = session.store.records(session.tenant, [name for name in near if name not in records]).records
        records |= {each.id: as_read(each, now) for each in unread if each.is_live(now)}
        group = {newer.id: newer} | {name: records[name] for name in near if name in records and name not in found}
        found = outdone_among(session, None, [*group.values()]) | found
    # By the newest of a chain, as among statements that are all compared with each other.
    for name in sorted(found, key=lambda name: instant(records[name]), reverse=True):
        last = found.get(found[name].id)
        found[name] = found[name] if last is None else found[name]._replace(id=last.id)
    return found


def _neighbours(session: Session, newest: Sequence[Record], filters: Filter) -> Iterator[list[str]]:
    model, ids = session.embedder, [record.id for record in newest]
    own: dict[str, NDArray[np.float32]] = {}
    if model is not None:
        with session.indexes.lock:
            index = session.indexes.of(session.engine, session.tenant, ids)
            vectors, known = index.own_vectors(ids, model.id, model.dim)
        own = {name: vector for name, vector, has in zip(ids, vectors, known, strict=True) if has}
    for record in newest:
        yield nearest(session, record.text[:BEGINNING], own.get(record.id), filters, limit=NEAREST)
