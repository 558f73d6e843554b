"""Browsing: windows over all memories in any order, and what there is of each sort, by day and by source.

Invariants
(1) A reader is shown, and counted, what recall or ``get`` would give it: its own scope and those above; with ``below``,
    who decides also those below. What is sensitive takes its right, also in a state of before it was.
(2) Counts and orders come from the catalogue, which is level with the journal; memories are read from the store.
(3) What is shown of a state is the same whenever it is asked for, but for what fades and ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from keepward.engine.read import moment, replica_notes, seq_of
from keepward.engine.session import Session
from keepward.engine.view import GRANT, ids_of, notes_of, reaches, see_below, unsound
from keepward.errors import InvalidInput, Unauthorised
from keepward.model.browse import Activity, Facets, MeaningMap, Origins, Series, Sources, counted
from keepward.model.commit import EMPTY_HASH, Head
from keepward.model.memory import Status, as_read
from keepward.model.query import AsOf, Filter, Memories, check_names
from keepward.model.trust import Trust, visible_from
from keepward.model.value import chosen, from_micros, to_micros
from keepward.model.where import Where

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from keepward.retrieval.catalogue import Catalogue, Sight, Wanted
    from keepward.retrieval.rows import Places

#: Values listed of a facet, and names in a list of sources.
LISTED = 50
SOURCES = 500
#: Days of one activity, and series in it.
DAYS = 400
SERIES = 12
#: Points of a map.
MOST_POINTS = 100_000
_DAY = 86_400_000_000
#: Microseconds of the earliest instant that there is.
_BEGIN = -62_135_596_800_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which memories are browsed; what is empty or None leaves all."""

    #: By facet, any of these values.
    any_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    text: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    min_importance: float = 0.0
    include_ended: bool = False
    include_sensitive: bool = True
    #: Also what lies in the scopes below, for who may decide.
    below: bool = False
    #: Only what lies in this scope or below it, for who may see that.
    within: str | None = None
    #: Conditions on fields of the memory's own.
    where: Where = ()
    as_of: AsOf = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """The rows of a state that a reader may see, and what it asked of them."""

    catalogue: Catalogue
    #: Newest version of each memory, in order of arrival.
    rows: Places
    sight: Sight
    wanted: Wanted
    seq: int | None
    head: str
    now: datetime
    notes: tuple[str, ...]

    @property
    def at(self) -> int:
        return to_micros(self.now)

    @property
    def passing(self) -> Places:
        return self.catalogue.chosen(self.rows, self.wanted, self.at)


def _state(session: Session, selection: Selection) -> _State:
    """Return what a reader may see of a state; the caller holds the lock of the catalogues."""
    from keepward.retrieval.catalogue import Sight, Wanted

    _check(selection)
    if selection.within is not None:
        see_below(session, selection.within)
    with session.store.together(session.tenant):
        catalogue = session.engine.catalogues.level(session.store, session.tenant)
        seq = seq_of(session, selection.as_of)
        now, head = moment(session, selection.as_of, seq), session.store.head(session.tenant)
        notes = replica_notes(session, head) if session.store.from_replica else ()
        if seq is not None:
            view = session.store.commit(session.tenant, str(seq)) if seq else None
            head = Head(seq=seq, hash=view.commit.hash if view else EMPTY_HASH)
    own, able = visible_from(session.scope), session.actor.able("sensitive")

    def seen(scope: str) -> bool:
        if selection.within is not None:
            return selection.within in visible_from(scope)
        return scope in own or (selection.below and reaches(session, scope))

    sight = Sight(reaches=seen, include_sensitive=selection.include_sensitive and able)
    wanted = Wanted(
        any_of=selection.any_of,
        text=selection.text,
        since=None if selection.since is None else to_micros(selection.since),
        until=None if selection.until is None else to_micros(selection.until),
        where=selection.where,
        min_importance=selection.min_importance,
        include_ended=selection.include_ended,
    )
    every = catalogue.state(seq)
    rows = catalogue.seen(every, sight)
    if selection.include_sensitive and not able:
        whole = catalogue.seen(every, replace(sight, include_sensitive=True))
        if len(catalogue.chosen(whole, wanted, to_micros(now))) > len(catalogue.chosen(rows, wanted, to_micros(now))):
            left = f"sensitive memories were left out: asking for them {GRANT} --can read,propose,sensitive`"
            notes = (*notes, left)
    return _State(
        catalogue=catalogue, rows=rows, sight=sight, wanted=wanted, seq=seq, head=head.name, now=now, notes=notes
    )


def _check(selection: Selection) -> None:
    """Refuse a filter that no memory can pass because a name in it is misspelt."""
    given = selection.any_of
    check_names(tiers=given.get("tier", ()), kinds=given.get("kind", ()), content_types=given.get("content_type", ()))
    for name in given.get("status", ()):
        chosen("status", name, tuple(Status))
    for name in given.get("trust", ()):
        chosen("trust", name, tuple(each.label for each in Trust))


def window(
    session: Session, selection: Selection, *, sort: str, ascending: bool, offset: int, limit: int | None
) -> Memories:
    """Return one window of the memories that pass, in an order; ``total`` is how many there are.

    What cannot be shown because it does not hold is named in ``withheld`` and leaves its place empty.

    Raises:
        InvalidInput: an offset below 0, a limit below 1, an unknown order, tier, kind, status or trust.
    """
    from keepward.retrieval.catalogue import SORTS

    if offset < 0 or (limit is not None and limit < 1):
        raise InvalidInput("an offset is at least 0 and a limit at least 1")
    sort = chosen("order", sort, SORTS)
    with session.engine.catalogues.lock:
        state = _state(session, selection)
        catalogue, rows = state.catalogue, state.passing
        rows = catalogue.ordered(rows, sort, state.at, ascending=ascending)
        shown = rows[offset : None if limit is None else offset + limit]
        ids = [catalogue.ids[number] for number in catalogue["memory"][shown]]
    found = session.store.records(session.tenant, ids, as_of=state.seq)
    records = [as_read(record, state.now) for record in found.records if state.sight.reaches(record.scope)]
    gone = unsound(found.damaged)
    notes = (*state.notes, *notes_of(gone))
    return Memories(records, withheld=ids_of(gone), notes=notes, total=len(rows), head=state.head)


def among(session: Session, selection: Selection) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the ids of the memories that pass, and the scopes that they lie in; errors are as for ``window``."""
    with session.engine.catalogues.lock:
        state = _state(session, selection)
        catalogue, rows = state.catalogue, state.passing
        ids = [catalogue.ids[number] for number in catalogue["memory"][rows]]
        return frozenset(ids), tuple(name for name, _ in catalogue.tally(rows, "scope", state.at))


def facets(session: Session, selection: Selection, *, of: Sequence[str] = (), most: int = LISTED) -> Facets:
    """Return how many memories pass, and how many of each sort there are; errors are as for ``window``.

    ``of`` names the facets that are counted, all of them where it is empty; ``most`` values of each are listed.
    """
    from keepward.retrieval.catalogue import FACETS

    for name in of:
        chosen("facet", name, FACETS)
    with session.engine.catalogues.lock:
        state = _state(session, selection)
        counts = state.catalogue.counts(state.rows, state.wanted, state.at, of or FACETS)
        total = len(state.passing)
    return Facets(
        head=state.head,
        seq=int(state.head.split(":")[0]),
        total=total,
        facets={name: counted(_listed(pairs, selection.any_of.get(name, ()), most)) for name, pairs in counts.items()},
        more={name: len(pairs) - most for name, pairs in counts.items() if len(pairs) > most},
        notes=state.notes,
    )


def elsewhere(session: Session) -> tuple[str, ...]:
    """Return what is said with an empty answer where nothing holds that the handle sees: which scopes below hold some.

    It is what ``facets`` would answer, and so nothing where the handle may not list what lies below.
    """
    own = Filter(scopes=visible_from(session.scope), include_sensitive=True)
    found = session.store.find(session.tenant, own, live_at=session.clock.now(), limit=1)
    if found.records or found.damaged:
        return ()
    try:
        below = facets(session, Selection(within=session.scope), of=("scope",), most=3)
    except Unauthorised:
        return ()
    scopes = below.facets["scope"]
    if not scopes:
        return ()
    count = len(scopes) + below.more.get("scope", 0)
    named = ", ".join(f"{each.value} ({each.count})" for each in scopes)
    held = "1 scope below it holds some" if count == 1 else f"{count} scopes below it hold some"
    rest = f" and {count - len(scopes)} more" if count > len(scopes) else ""
    return (f"no memory is seen from {session.scope}; {held}: {named}{rest}; name one as the scope",)


def _listed(pairs: list[tuple[str, int]], asked: Sequence[str], most: int) -> list[tuple[str, int]]:
    """Return the first of them, and what was asked for, which may be none."""
    first = pairs[:most]
    shown, rest = {name for name, _ in first}, dict(pairs[most:])
    return [*first, *((name, rest.get(name, 0)) for name in asked if name not in shown)]


#: What activity is counted by, and the column that it is in.
_BY = {"author": "actor", "source": "source", "session": "session", "tier": "tier", "kind": "kind", "scope": "scope"}


def activity(session: Session, selection: Selection, *, by: str, days: int, zone: int) -> Activity:
    """Return how many versions were written on each of the last ``days``, and by whom.

    The days end with that of ``until``, or today; they are those of a zone so many minutes east of UTC. Filters are
    compared with each version as it was written, and with what holds by now or not.

    Raises:
        InvalidInput: days outside 1..400, a zone outside a day, or as for ``window``.
    """
    import numpy as np

    column = _BY[chosen("series", by, tuple(_BY))]
    if not 1 <= days <= DAYS or not -1_440 < zone < 1_440:
        raise InvalidInput(f"days are from 1 to {DAYS}, and a zone is less than 1,440 minutes from UTC")
    shift = timedelta(minutes=zone)
    with session.engine.catalogues.lock:
        state = _state(session, replace(selection, since=None, until=None, include_ended=True))
        catalogue = state.catalogue
        last = (selection.until - timedelta(microseconds=1)) if selection.until else state.now
        end = (last + shift).date()
        first = end - timedelta(days=days - 1)
        begin = to_micros(datetime(first.year, first.month, first.day, tzinfo=UTC) - shift)
        begin = max(begin, _BEGIN if selection.since is None else to_micros(selection.since))
        rows = _written(state)
        at = catalogue["at"][rows]
        rows = rows[(at >= begin) & (at <= to_micros(last))]
        places = (catalogue["at"][rows] + zone * 60_000_000) // _DAY - (first - datetime(1970, 1, 1).date()).days  # noqa: DTZ001  a date alone
        codes, names = catalogue[column][rows].astype(np.int64), catalogue.names(column)
        table = np.zeros((len(names) + 1, days), dtype=np.int64)
        np.add.at(table, (codes, places), 1)
    totals = table.sum(axis=1)
    # The last row is of versions that have no such value.
    order = sorted(np.flatnonzero(totals[:-1]).tolist(), key=lambda code: (-int(totals[code]), names[code]))
    return Activity(
        head=state.head,
        by=by,
        days=tuple((first + timedelta(days=day)).isoformat() for day in range(days)),
        counts=tuple(table.sum(axis=0).tolist()),
        series=tuple(
            Series(name=names[code], counts=tuple(table[code].tolist()), total=int(totals[code]))
            for code in order[:SERIES]
        ),
        more=max(0, len(order) - SERIES),
    )


def _written(state: _State) -> Places:
    """Return the versions that say something and that a reader may see, up to the state."""
    import numpy as np

    catalogue = state.catalogue
    end = len(catalogue) if state.seq is None else int(np.searchsorted(catalogue["seq"], state.seq, side="right"))
    said = np.flatnonzero(catalogue["says"][:end])
    return catalogue.chosen(catalogue.seen(said, state.sight), state.wanted, state.at)


def sources(session: Session, selection: Selection) -> Sources:
    """Return who and what memories come from: how many each wrote, how far they are relied on, and when.

    Errors are as for ``window``.
    """
    with session.engine.catalogues.lock:
        state = _state(session, replace(selection, include_ended=True))
        rows = _written(state)
        lists = {
            name: _origins(state, rows, column)
            for name, column in (
                ("actors", "actor"),
                ("sources", "source"),
                ("references", "reference"),
                ("sessions", "session"),
            )
        }
    return Sources(
        head=state.head,
        **{name: tuple(each[:SOURCES]) for name, each in lists.items()},
        more={name: len(each) - SOURCES for name, each in lists.items() if len(each) > SOURCES},
    )


def _origins(state: _State, rows: Places, column: str) -> list[Origins]:
    import numpy as np

    catalogue = state.catalogue
    versions, codes = catalogue.said_by(rows, column)
    if not len(versions):
        return []
    names, many = catalogue.names(column), len(catalogue.ids)
    order = np.argsort(codes, kind="stable")
    versions, codes = versions[order], codes[order]
    newest = np.full(many, -1, dtype=np.intp)
    newest[catalogue["memory"][state.rows]] = state.rows
    live = np.zeros(many, dtype=np.bool_)
    holding = state.rows[catalogue.status(state.rows, state.at) == catalogue.code("status", Status.ACTIVE.value)]
    live[catalogue["memory"][holding]] = True
    trusts = catalogue.names("trust")
    found: list[Origins] = []
    present, begins = np.unique(codes, return_index=True)
    for code, part in zip(present.tolist(), np.split(versions, begins[1:]), strict=True):
        memories = np.unique(catalogue["memory"][part])
        memories = memories[newest[memories] >= 0]
        ranked = np.bincount(catalogue["trust"][newest[memories]], minlength=len(trusts))
        at = catalogue["at"][part]
        found.append(
            Origins(
                name=names[code],
                memories=len(memories),
                live=int(live[memories].sum()),
                writes=len(part),
                trust={trusts[each]: int(ranked[each]) for each in np.flatnonzero(ranked).tolist()},
                first=from_micros(int(at.min())),
                last=from_micros(int(at.max())),
            )
        )
    return sorted(found, key=lambda each: (-each.memories, each.name))


def meaning_map(session: Session, selection: Selection, *, limit: int) -> MeaningMap:
    """Return the memories that pass as points of a plane; of more than ``limit`` evenly spaced ones by arrival.

    Raises:
        InvalidInput: a limit outside 1..100,000, or as for ``window``.
    """
    import numpy as np

    if not 1 <= limit <= MOST_POINTS:
        raise InvalidInput(f"a map has from 1 to {MOST_POINTS:,} points")
    with session.engine.catalogues.lock:
        state = _state(session, selection)
        catalogue = state.catalogue
        passing = state.passing
        rows = passing[np.unique(np.linspace(0, len(passing) - 1, min(len(passing), limit)).astype(np.intp))]
        ids = [catalogue.ids[number] for number in catalogue["memory"][rows]]
        model, known, places = _places(session, state, ids)
        rows = rows[known]
        ages = np.maximum(state.at - catalogue["created_at"][rows], 0) // _DAY
        columns: dict[str, Any] = {name: tuple(catalogue[name][rows].tolist()) for name in ("tier", "source", "kind")}
        columns |= {f"{name}s": tuple(catalogue.names(name)) for name in tuple(columns)}
    notes = list(state.notes)
    if len(passing) > limit:
        notes.append(f"{limit:,} of {len(passing):,} memories are shown, evenly spaced by arrival")
    if not known.all():
        notes.append(f"{int((~known).sum()):,} have no vector and no place; `keepward reindex` makes them")
    return MeaningMap(
        head=state.head,
        model=model,
        total=len(passing),
        placed=int(known.sum()),
        ids=tuple(each for each, has in zip(ids, known, strict=True) if has),
        x=tuple(places[:, 0].tolist()),
        y=tuple(places[:, 1].tolist()),
        age=tuple(ages.tolist()),
        **columns,
        notes=tuple(notes),
    )


def _places(
    session: Session, state: _State, ids: list[str]
) -> tuple[str | None, npt.NDArray[np.bool_], npt.NDArray[np.int16]]:
    """Return the model of the vectors, which memories have one, and the places of those; the last map is kept."""
    import numpy as np

    from keepward.retrieval.projection import plane

    asked = (session.tenant, state.head, tuple(ids))
    held, answer = session.engine.catalogues.places
    if held != asked:
        none = np.zeros(len(ids), dtype=np.bool_)
        answer = (None, none, np.zeros((0, 2), dtype=np.int16))
        with session.indexes.lock:
            if state.seq is not None:
                index = session.indexes.at(session.store, session.tenant, state.seq)
            else:
                index = session.indexes.of(session.engine, session.tenant, ids)
            if ids and index.spaces:
                model, dim = index.spaces[0]
                units, known = index.own_vectors(ids, model, dim)
                answer = (model, known, plane(units[known]))
        session.engine.catalogues.places = (asked, answer)
    found: tuple[str | None, npt.NDArray[np.bool_], npt.NDArray[np.int16]] = answer
    return found
