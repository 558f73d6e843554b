"""What became of one memory: the contexts that held it, how it fades, and its relatives up and down.

Invariants
(1) A reader is told of the contexts whose receipt it reaches, and of relatives that ``get`` would give it; how many
    others there are is all that is said of them.
(2) A context counts when its own receipt, which is sealed, names the memory.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from keepward.engine.read import get, history
from keepward.engine.session import Session
from keepward.engine.view import fetch, handed_in, proven, reaches, veiled, withholds
from keepward.errors import InvalidInput
from keepward.model.browse import Bond, Faded, Lineage, Relative, Usage, counted
from keepward.model.memory import Record, confidence_at, half_life, importance_at

#: Receipts that are looked at, newest first; and contexts that are shown of them.
LOOKED_AT = 1_000
#: Memories of one lineage, and characters that are shown of the text of each.
RELATIVES = 200
SHOWN = 160
#: Instants of one curve, beside those at which the memory changed.
INSTANTS = 48


def usage(session: Session, memory_id: str, *, limit: int) -> Usage:
    """Return the contexts that held a memory, at most ``limit`` newest first, and how it fades.

    Raises:
        NotFound, Unauthorised: as for ``get``.
        InvalidInput: a limit outside 1..1,000.
    """
    if not 1 <= limit <= LOOKED_AT:
        raise InvalidInput(f"a limit is from 1 to {LOOKED_AT}")
    record = get(session, memory_id)
    versions = history(session, record.id)
    held = handed_in(session, {record.id: 1})
    # Ids of receipts rise with time.
    newest = sorted(held, reverse=True)
    found = [each for name in newest[:LOOKED_AT] if (each := proven(session, name, held[name])) is not None]
    span = half_life(record)
    return Usage(
        id=record.id,
        uses=record.uses or 0,
        last_used=record.last_used,
        contexts=tuple(found[:limit]),
        older=max(0, len(newest) - LOOKED_AT),
        days=counted(sorted(Counter(each.at[:10] for each in found).items())),
        half_life_days=None if span is None else span / timedelta(days=1),
        fading=_fading([each.record for each in versions], session.clock.now(), span),
    )


def _fading(versions: list[Record], now: datetime, span: timedelta | None) -> tuple[Faded, ...]:
    """Return the curve from the first version to one half-life from now, each version to where the next begins."""
    if not versions:
        return ()
    begins = [each.updated_at or each.created_at for each in versions]
    end = now + (span or timedelta(0))
    step = max((end - begins[0]) / INSTANTS, timedelta(seconds=1))
    found: list[Faded] = []
    for record, start, stop in zip(versions, begins, [*begins[1:], end], strict=True):
        at = start
        while at < stop:
            found.append(Faded(at=at, confidence=confidence_at(record, at), importance=importance_at(record, at)))
            at += step
        found.append(Faded(at=stop, confidence=confidence_at(record, stop), importance=importance_at(record, stop)))
    return tuple(found)


def lineage(session: Session, memory_id: str) -> Lineage:
    """Return what a memory was made from and what was made of it, the nearest first, at most 200.

    Raises:
        NotFound, Unauthorised: as for ``get``.
    """
    start = fetch(session, memory_id)
    depths, bonds = {start.id: 0}, set[Bond]()
    shown = {start.id: start}
    out_of_reach: set[str] = set()
    left_out: set[str] = set()
    for step in (-1, 1):
        fresh = [start.id]
        while fresh:
            near = _parents(session, shown, fresh) if step < 0 else _children(session, shown, fresh)
            wanted = list(dict.fromkeys(each for pair in near for each in (pair.before, pair.after)))
            read = session.store.records(session.tenant, [each for each in wanted if each not in shown]).records
            fresh = []
            for record in read:
                if not reaches(session, record.scope):
                    out_of_reach.add(record.id)
                elif len(shown) >= RELATIVES:
                    left_out.add(record.id)
                else:
                    shown[record.id] = veiled(record) if withholds(session, record) else record
                    depths[record.id] = _depth(near, record.id, depths, step)
                    fresh.append(record.id)
            bonds |= near
    return Lineage(
        id=start.id,
        memories=tuple(
            sorted(
                (_relative(session, shown[each], depths[each]) for each in shown),
                key=lambda each: (each.depth, each.id),
            )
        ),
        bonds=tuple(
            sorted(
                (each for each in bonds if each.before in shown and each.after in shown),
                key=lambda each: (each.before, each.after, each.how),
            )
        ),
        hidden=len(out_of_reach),
        left_out=len(left_out),
    )


def _depth(near: set[Bond], name: str, depths: dict[str, int], step: int) -> int:
    """Return the depth of a relative: one step beyond the one through which it was found."""
    through = [each.before if each.after == name else each.after for each in near if name in {each.before, each.after}]
    return min((depths[each] for each in through if each in depths), key=abs) + step


def _parents(session: Session, shown: dict[str, Record], names: list[str]) -> set[Bond]:
    """Return what these were made from, and what they took the place of."""
    found = {Bond(before=parent, after=name, how="derived") for name in names for parent in shown[name].derived_from}
    with session.engine.catalogues.lock:
        replaced = session.engine.catalogues.level(session.store, session.tenant).replaced
        found |= {Bond(before=old, after=name, how="superseded") for name in names for old in replaced.get(name, ())}
    return found


def _children(session: Session, shown: dict[str, Record], names: list[str]) -> set[Bond]:
    """Return what was made of these, and what took their place."""
    ids = session.store.children(session.tenant, names)
    made = session.store.records(session.tenant, ids).records if ids else []
    found = {
        Bond(before=parent, after=child.id, how="derived")
        for child in made
        for parent in child.derived_from
        if parent in names
    }
    successors = ((name, shown[name].superseded_by) for name in names)
    return found | {Bond(before=name, after=by, how="superseded") for name, by in successors if by is not None}


def _relative(session: Session, record: Record, depth: int) -> Relative:
    return Relative(
        id=record.id,
        text=record.text[:SHOWN],
        tier=record.tier.value,
        kind=record.kind.value,
        status=record.status_at(session.clock.now()).value,
        trust=record.trust.label,
        source=record.source,
        version=record.version,
        depth=depth,
    )
