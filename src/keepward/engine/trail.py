"""Lineage: what a memory was made from and what was made of it.

A reader is shown the relatives that ``get`` would return to it. Of others it learns only the number.
"""

from __future__ import annotations

from keepward.engine.session import Session
from keepward.engine.view import fetch, reaches, veiled, withholds
from keepward.model.browse import Bond, Lineage, Relative
from keepward.model.memory import Record

#: Memories of one lineage, and characters that are shown of the text of each.
RELATIVES = 200
SHOWN = 160


def lineage(session: Session, memory_id: str) -> Lineage:
    """Return what a memory was made from and what was made of it, the nearest first, at most 200.

    Raises:
        NotFound, Unauthorised: as for ``get``.
    """
    start = fetch(session, memory_id)
    depths, bonds = {start.id: 0}, set[Bond]()
    shown = {start.id: start}
    replaced = session.store.predecessors(session.tenant)
    out_of_reach: set[str] = set()
    left_out: set[str] = set()
    for step in (-1, 1):
        fresh = [start.id]
        while fresh:
            near = _parents(shown, replaced, fresh) if step < 0 else _children(session, shown, fresh)
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


def _parents(shown: dict[str, Record], replaced: dict[str, list[str]], names: list[str]) -> set[Bond]:
    """Return what these were made from, and what they superseded."""
    found = {Bond(before=parent, after=name, how="derived") for name in names for parent in shown[name].derived_from}
    return found | {Bond(before=old, after=name, how="superseded") for name in names for old in replaced.get(name, ())}


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
