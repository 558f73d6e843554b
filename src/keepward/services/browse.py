"""Lists and counts of memories: a page in any order, facets, activity by day, and sources.

Counts come from the rows of the newest versions. A list reads the memories that it shows from the store, which
verifies them. A memory that does not match its seal is named in ``withheld`` and in a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from keepward.core.browse import Activity, Count, Facets, Member, Series, SourceActivity, Sources
from keepward.core.filters import Where, matches
from keepward.core.memory import Record, Status, as_read, importance_at
from keepward.core.principals import Trust, project_of, user_of
from keepward.core.query import AsOf, Filter, Memories, check_limit, check_names
from keepward.core.value import from_micros, one_of, to_micros
from keepward.errors import InvalidInput, Unauthorised
from keepward.services.access import corrupt_memories, ids_of, unreadable_memories, unreadable_notes
from keepward.services.read import read_point
from keepward.services.reader import GRANT_HINT
from keepward.services.request_context import RequestContext
from keepward.storage.listing import COUNTED, ListedRow, Listing, WrittenVersion, count_by
from keepward.types import Sort

#: What memories are counted by.
FACETS = (*COUNTED, "author", "tag")
SORTS = get_args(Sort)
#: Orders that only the content of a memory answers.
_SORTS_BY_CONTENT = frozenset({"importance", "confidence", "author"})
#: Orders whose least value comes first, unless ``ascending``.
_NAMES = frozenset({"tier", "kind", "scope", "source", "author"})
#: Values listed of a facet, and names in a list of sources.
MAX_LISTED = 50
MAX_SOURCES = 500
#: Days of one activity, and series in it.
MAX_DAYS = 400
MAX_SERIES = 12
_DAY = timedelta(days=1)
_SENSITIVE_OMITTED = f"sensitive memories were left out: asking for them {GRANT_HINT} --can read,propose,sensitive`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which memories are listed or counted; an empty value or None means all."""

    #: By facet, any of these values.
    any_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    text: str | None = None
    #: When it was written: from one instant on and before another.
    since: datetime | None = None
    until: datetime | None = None
    #: Date of the event; see ``Record.happened_at``.
    occurred_since: datetime | None = None
    occurred_until: datetime | None = None
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

    @property
    def needs_content(self) -> bool:
        return bool(self.text or self.where or self.min_importance or self.occurred_since or self.occurred_until)

    def accepts(self, record: Record, now: datetime) -> bool:
        """Whether a memory passes what its content answers: text, own fields, decayed importance, when it happened."""
        part = (self.text or "").casefold()
        first, end, happened = self.occurred_since, self.occurred_until, record.happened_at
        return (
            (not part or part in f"{record.text}\n{record.key or ''}".casefold())
            and matches(record.metadata, self.where)
            and (not self.min_importance or importance_at(record, now) >= round(self.min_importance, 4))
            and (first is None or (happened is not None and happened >= first))
            and (end is None or (happened is not None and happened < end))
        )

    def passed(self, record: Record, now: datetime) -> bool:
        """Whether a memory of an earlier state passes all filters."""
        values = {name: getattr(record, name, None) for name in (*FACETS, "key", "job")}
        values |= {"trust": record.effective_trust.label, "status": record.status_at(now)}
        wanted = self.any_of if self.include_ended else {"status": (Status.ACTIVE,), **self.any_of}
        tags = wanted.get("tag", ())
        return (
            all(not names or name == "tag" or values[name] in names for name, names in wanted.items())
            and (not tags or bool({*tags} & {*record.tags}))
            and (self.since is None or record.created_at >= self.since)
            and (self.until is None or record.created_at < self.until)
            and self.accepts(record, now)
        )


_Rows = list[tuple[ListedRow, Record | None]]


class _VisibleState:
    """What a reader may see of one state, and the rows that pass its selection."""

    def __init__(self, session: RequestContext, selection: Selection) -> None:
        given, within = selection.any_of, selection.within
        check_names(
            tiers=given.get("tier", ()), kinds=given.get("kind", ()), content_types=given.get("content_type", ())
        )
        for name, known in (("status", tuple(Status)), ("trust", tuple(each.label for each in Trust))):
            for value in given.get(name, ()):
                one_of(name, value, known)
        self.session, self.selection = session, selection
        self.store, self.tenant = session.store, session.tenant
        self.reader = session.reader.within(within)
        self.sensitive = selection.include_sensitive and self.reader.may_ask_for_sensitive
        with self.store.read_snapshot(self.tenant):
            self.at = read_point(session, selection.as_of)
            self.visible = self.reader.scopes_with_memories(below=selection.below)

    def listing(self, any_of: Mapping[str, Sequence[str]], ids: Collection[str] | None = None) -> Listing:
        """Return the selection as the store takes it, with ``any_of`` in place of its own."""
        if not self.selection.include_ended:
            any_of = {"status": (Status.ACTIVE,), **any_of}
        since, until = self.selection.since, self.selection.until
        return Listing(
            visible=self.visible,
            include_sensitive=self.sensitive,
            any_of=any_of,
            ids=ids,
            since=None if since is None else to_micros(since),
            until=None if until is None else to_micros(until),
            now=to_micros(self.at.now),
        )

    def rows(self, any_of: Mapping[str, Sequence[str]], *, content: bool = False) -> _Rows:
        """Return what passes, newest arrival first; with its content where that is asked for or needed."""
        asked = self.selection
        if self.at.seq is not None:
            return self._past()
        found: _Rows
        if content or asked.needs_content:
            passing = self.store.contents(self.tenant, self.listing(any_of), part=asked.text or "")
            # A memory whose content is damaged passes: it is read again, and named as withheld.
            found = [(row, record) for row, record in passing if record is None or asked.accepts(record, self.at.now)]
        else:
            found = [(row, None) for row in self.store.listed(self.tenant, self.listing(any_of))]
        return sorted(found, key=lambda each: each[0].arrival, reverse=True)

    def _past(self) -> _Rows:
        """Return what passed in an earlier state, newest arrival first."""
        filters = Filter(scopes=(*self.visible, ""), include_sensitive=self.sensitive)
        found = self.reader.find(filters, live_at=None, as_of=self.at.seq)
        passing = (each for each in found.records if self.selection.passed(each, self.at.now))
        return [(_row_of(record, -n, self.at.now), record) for n, record in enumerate(passing)]

    def left_out(self, passing: int) -> tuple[str, ...]:
        """Return the notes, with one on sensitive memories where these would pass and the reader may not see them."""
        if not self.selection.include_sensitive or self.sensitive:
            return ()
        self.sensitive = True
        more = len(self.rows(self.selection.any_of)) > passing
        self.sensitive = False
        return (_SENSITIVE_OMITTED,) if more else ()

    def withheld(self, damaged: Sequence[str] = ()) -> tuple[tuple[str, ...], list[str]]:
        """Return the ids of memories that do not match their seals, and the sentence about them."""
        gone = corrupt_memories(damaged)
        if self.at.seq is None:
            tiers = tuple(self.selection.any_of.get("tier", ()))
            filters = Filter(scopes=(*self.visible, ""), tiers=tiers, include_sensitive=self.sensitive)
            live_at = None if self.selection.include_ended else self.at.now
            gone = unreadable_memories(self.session, filters, live_at=live_at, damaged=damaged)
        return ids_of(gone), unreadable_notes(gone)


def _row_of(record: Record, arrival: int, now: datetime) -> ListedRow:
    changed = to_micros(record.updated_at or record.created_at)
    words = (record.tier.value, record.kind.value, record.scope, record.source, record.author)
    status = record.status_at(now).value
    return ListedRow(record.id, arrival, changed, status, int(record.effective_trust), *words, None)


def list_page(
    session: RequestContext, selection: Selection, *, sort: str, ascending: bool, offset: int, limit: int | None
) -> Memories:
    """Return one page of the memories that pass, in an order; ``total`` is how many there are.

    Equal values are in order of arrival, newest first.

    Raises:
        InvalidInput: an offset below 0, a limit below 1, an unknown order, tier, kind, status or trust.
    """
    check_limit(limit)
    if offset < 0:
        raise InvalidInput("offset is at least 0")
    sort = one_of("order", sort, SORTS)
    view = _VisibleState(session, selection)
    rows = view.rows(selection.any_of, content=sort in _SORTS_BY_CONTENT)

    def value(each: tuple[ListedRow, Record | None]) -> Any:
        row, record = each
        if sort not in _SORTS_BY_CONTENT:
            return getattr(row, "arrival" if sort == "created" else sort)
        return ("" if sort == "author" else 0.0) if record is None else getattr(as_read(record, view.at.now), sort)

    ordered = sorted(rows, key=value, reverse=ascending is (sort in _NAMES))
    ids = [row.id for row, _ in ordered[offset : None if limit is None else offset + limit]]
    found = view.reader.records(ids, as_of=view.at.seq)
    records = [as_read(record, view.at.now) for record in found.records]
    gone, damaged = view.withheld(found.damaged)
    notes = (*view.left_out(len(rows)), *damaged)
    return Memories(records, withheld=gone, notes=notes, total=len(rows), head=view.at.head.name)


def matching_ids(session: RequestContext, selection: Selection) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the ids of the memories that pass, and the scopes that they lie in; errors are as for ``window``."""
    rows = [row for row, _ in _VisibleState(session, selection).rows(selection.any_of)]
    return frozenset(row.id for row in rows), tuple(sorted({row.scope for row in rows}))


def facets(session: RequestContext, selection: Selection, *, of: Sequence[str] = (), most: int = MAX_LISTED) -> Facets:
    """Return how many memories pass, and how many have each value of a facet; errors are as for ``window``.

    A facet is counted as if nothing of it was chosen. ``of`` names the facets that are counted, all of them where it
    is empty; ``most`` values of each are listed.
    """
    for name in of:
        one_of("facet", name, FACETS)
    view = _VisibleState(session, selection)
    total = len(view.rows(selection.any_of))
    listed, more = dict[str, tuple[Count, ...]](), dict[str, int]()
    for name, counts in _counts(view, of or FACETS):
        order = sorted(counts, key=lambda value: (-counts[value], value))
        # What was asked for is listed in any case, and may be none.
        shown = dict.fromkeys((*order[:most], *selection.any_of.get(name, ())))
        listed[name] = tuple(Count(value=value, count=counts.get(value, 0)) for value in shown)
        if len(order) > most:
            more[name] = len(order) - most
    notes = (*view.left_out(total), *view.withheld()[1])
    return Facets(head=view.at.head.name, seq=view.at.head.seq, total=total, facets=listed, more=more, notes=notes)


def _counts(view: _VisibleState, of: Sequence[str]) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield each facet with the number of memories of each value."""
    ids = None
    if view.selection.needs_content:
        ids = [row.id for row, _ in view.rows({"status": tuple(Status)})]
    asked = view.selection.any_of
    every = view.store.listed(view.tenant, view.listing(asked, ids))
    for name in of:
        rows = every
        if name == "status" or name in asked:
            others: dict[str, Sequence[str]] = {each: names for each, names in asked.items() if each != name}
            if name == "status":
                others["status"] = tuple(Status)
            rows = view.store.listed(view.tenant, view.listing(others, ids))
        yield name, count_by(rows, name)


def users(session: RequestContext) -> list[Member]:
    """Return the users with memories at the session's scope and below, by name."""
    return _members(session, user_of)


def projects(session: RequestContext) -> list[Member]:
    """Return the projects with memories at the session's scope and below, by name."""
    return _members(session, project_of)


def _members(session: RequestContext, name_of: Callable[[str], str | None]) -> list[Member]:
    found: Counter[str] = Counter()
    for scope, count in session.reader.memories_below().items():
        if name := name_of(scope):
            found[name] += count
    return [Member(name=name, memories=count) for name, count in sorted(found.items())]


def other_scope_notes(session: RequestContext) -> tuple[str, ...]:
    """Return what is said with an empty answer where nothing holds that the handle sees: which scopes below hold some.

    It is what ``facets`` would answer, and so nothing where the handle may not list what lies below.
    """
    found = session.reader.find(Filter(scopes=(), include_sensitive=True), live_at=session.clock.now(), limit=1)
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


def activity(session: RequestContext, selection: Selection, *, by: str, days: int, zone: int) -> Activity:
    """Return how many versions were written on each of the last ``days``, and by whom.

    The days end with that of ``until``, or today; they are those of a zone so many minutes east of UTC. Filters are
    compared with the memories as they are now.

    Raises:
        InvalidInput: days outside 1..400, a zone outside a day, or as for ``window``.
    """
    by = one_of("series", by, ("author", "source", "session", "tier", "kind", "scope"))
    if not 1 <= days <= MAX_DAYS or not -1_440 < zone < 1_440:
        raise InvalidInput(f"days are from 1 to {MAX_DAYS}, and a zone is less than 1,440 minutes from UTC")
    view = _VisibleState(session, replace(selection, since=None, until=None, include_ended=True))
    shift = timedelta(minutes=zone)
    last = selection.until - timedelta(microseconds=1) if selection.until else view.at.now
    first = (last + shift).date() - (days - 1) * _DAY
    begin = datetime(first.year, first.month, first.day, tzinfo=UTC) - shift
    begin = begin if selection.since is None else max(begin, selection.since)
    totals, series = [0] * days, dict[str, list[int]]()
    for each in _written_versions(view, to_micros(begin), to_micros(last)):
        day = ((from_micros(each.at) + shift).date() - first).days
        totals[day] += 1
        if name := each.actor if by == "author" else each.fields.get(by):
            series.setdefault(name, [0] * days)[day] += 1
    order = sorted(series, key=lambda name: (-sum(series[name]), name))
    return Activity(
        head=view.at.head.name,
        by=by,
        days=tuple((first + day * _DAY).isoformat() for day in range(days)),
        counts=tuple(totals),
        series=tuple(
            Series(name=name, counts=tuple(series[name]), total=sum(series[name])) for name in order[:MAX_SERIES]
        ),
        more=max(0, len(order) - MAX_SERIES),
    )


def _written_versions(view: _VisibleState, since: int, until: int) -> Iterator[WrittenVersion]:
    """Yield the versions that said something between two instants, of the memories that pass."""
    asked = view.selection
    ids = [row.id for row, _ in view.rows(asked.any_of)] if asked.needs_content else None
    rows = view.store.listed(view.tenant, view.listing(asked.any_of, ids))
    return view.store.written(view.tenant, since, until, [row.id for row in rows])


def sources(session: RequestContext, selection: Selection) -> Sources:
    """Return who and what memories come from: how many each wrote, how far they are relied on, and when.

    Errors are as for ``window``.
    """
    view = _VisibleState(session, replace(selection, include_ended=True))
    rows = {row.id: row for row, _ in view.rows(selection.any_of)}
    origins: dict[str, dict[str, _SourceCounts]] = {
        name: {} for name in ("actors", "sources", "references", "sessions")
    }
    for each in _written_versions(view, _FIRST, _LAST):
        names = {"actors": [each.actor], "references": each.fields.get("evidence", ())}
        names |= {f"{name}s": [each.fields.get(name)] for name in ("source", "session")}
        for group, found in names.items():
            for name in filter(None, found):
                tally = origins[group].setdefault(name, _SourceCounts(first=each.at))
                tally.memories.add(each.memory_id)
                tally.writes, tally.last = tally.writes + 1, each.at
    lists = {
        group: sorted((tally.summary(name, rows) for name, tally in found.items()), key=lambda e: (-e.memories, e.name))
        for group, found in origins.items()
    }
    return Sources(
        head=view.at.head.name,
        **{name: tuple(each[:MAX_SOURCES]) for name, each in lists.items()},
        more={name: len(each) - MAX_SOURCES for name, each in lists.items() if len(each) > MAX_SOURCES},
    )


#: Before and after every instant.
_FIRST, _LAST = -(1 << 62), 1 << 62
_LABELS = {int(each): each.label for each in Trust}


@dataclass(slots=True)
class _SourceCounts:
    """What one origin wrote, as far as it was counted."""

    first: int
    last: int = 0
    writes: int = 0
    memories: set[str] = field(default_factory=set)

    def summary(self, name: str, rows: Mapping[str, ListedRow]) -> SourceActivity:
        own = [rows[each] for each in self.memories if each in rows]
        return SourceActivity(
            name=name,
            memories=len(own),
            live=sum(row.status == Status.ACTIVE for row in own),
            writes=self.writes,
            trust=dict(sorted(Counter(_LABELS.get(row.trust, "unknown") for row in own).items())),
            first=from_micros(self.first),
            last=from_micros(self.last),
        )
