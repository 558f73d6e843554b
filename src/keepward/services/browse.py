"""Lists and counts of memories: a page in any order, facets, activity by day, and sources.

Counts come from the rows of the newest versions. A list reads and verifies the memories that it shows. A memory that
does not match its seal is named in ``withheld`` and in a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Any, get_args

from keepward.core.browse import Activity, Count, Facets, Member, Series, SourceActivity, Sources
from keepward.core.filters import Where, matches
from keepward.core.memory import Record, Status, as_read, importance_at
from keepward.core.principals import Trust, project_of, user_of
from keepward.core.query import AsOf, Filter, Memories
from keepward.core.serialization import encode_record
from keepward.core.value import from_micros, to_micros
from keepward.core.wording import Wording
from keepward.errors import InvalidInput
from keepward.services.access import corrupt_memories, ids_of, unreadable_memories, unreadable_notes
from keepward.services.read import read_point
from keepward.services.reader import GRANT_HINT
from keepward.services.request_context import RequestContext
from keepward.storage.listing import ListedRow, Listing, WrittenVersion, count_by
from keepward.storage.rows import parse_body
from keepward.types import Facet

#: The facets by which memories are counted.
FACETS = get_args(Facet)
#: Orders by fields that are only in the content of a memory, not in a column.
_SORTS_BY_CONTENT = frozenset({"importance", "confidence", "author"})
#: Orders that begin with the least value, unless ``ascending``.
_NAMES = frozenset({"tier", "kind", "scope", "source", "author"})
#: Maximum number of listed values of a facet, and of names in a list of sources.
MAX_LISTED = 50
MAX_SOURCES = 500
#: Maximum number of days of one activity, and of series in it.
MAX_SERIES = 12
_DAY = timedelta(days=1)
_SENSITIVE_OMITTED = f"sensitive memories were left out: asking for them {GRANT_HINT} --can read,propose,sensitive`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The filters of a list or a count; an empty value or None means all."""

    #: By facet, the accepted values.
    any_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    text: str | None = None
    #: Written from one instant on and before another.
    since: datetime | None = None
    until: datetime | None = None
    #: Date of the event; see ``Record.happened_at``.
    occurred_since: datetime | None = None
    occurred_until: datetime | None = None
    min_importance: float = 0.0
    include_ended: bool = False
    include_sensitive: bool = True
    #: Also include the scopes below, for an actor that may decide.
    below: bool = False
    #: Only this scope and those below it, for an actor that may see them.
    within: str | None = None
    #: Conditions on the memory's metadata.
    where: Where = ()
    as_of: AsOf = None

    @property
    def needs_content(self) -> bool:
        return bool(self.text or self.where or self.min_importance or self.occurred_since or self.occurred_until)

    def accepts(self, record: Record, now: datetime) -> bool:
        """Whether a memory passes the filters that need its content: text, metadata, importance, event date."""
        part = (self.text or "").casefold()
        first, end, happened = self.occurred_since, self.occurred_until, record.happened_at
        return (
            (not part or part in f"{record.text}\n{record.key or ''}".casefold())
            and matches(record.metadata, self.where)
            and (not self.min_importance or importance_at(record, now) >= round(self.min_importance, 4))
            and (first is None or (happened is not None and happened >= first))
            and (end is None or (happened is not None and happened < end))
        )


_Rows = list[tuple[ListedRow, Record | None]]


class _VisibleState:
    """One state as a reader may see it, and the rows that pass a selection."""

    def __init__(self, session: RequestContext, selection: Selection) -> None:
        self.session, self.selection = session, selection
        self.store, self.tenant = session.store, session.tenant
        self.reader = session.reader.within(selection.within)
        self.sensitive = selection.include_sensitive and self.reader.may_ask_for_sensitive
        with self.store.read_snapshot(self.tenant):
            self.at = read_point(session, selection.as_of)
            self.visible = self.reader.scopes_with_memories(below=selection.below)

    def listing(self, any_of: Mapping[str, Sequence[str]], ids: Collection[str] | None = None) -> Listing:
        """Return the selection in the form that the store takes, with ``any_of`` instead of its own."""
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
        """Return the rows that pass, newest arrival first; with ``content``, or if a filter needs it, with records."""
        selection, listing = self.selection, self.listing(any_of)
        rows: Iterable[tuple[ListedRow, Record | None]]
        if self.at.seq is not None:
            filters = Filter(scopes=(*self.visible, ""), include_sensitive=self.sensitive)
            past = self.reader.find(filters, live_at=None, as_of=self.at.seq).records
            past_rows = ((_row_of(record, -n, self.at.now), record) for n, record in enumerate(past))
            rows = (pair for pair in past_rows if listing.accepts(pair[0]))
        elif content or selection.needs_content:
            rows = self.store.contents(self.tenant, listing, part=selection.text or "")
        else:
            rows = ((row, None) for row in self.store.list_rows(self.tenant, listing))
        # A corrupt memory passes: it is read again, and named in ``withheld``.
        passing = [pair for pair in rows if pair[1] is None or selection.accepts(pair[1], self.at.now)]
        return sorted(passing, key=lambda pair: pair[0].arrival, reverse=True)

    def omission_notes(self, passing: int) -> tuple[str, ...]:
        """Return a note on sensitive memories if some would pass that the reader may not see."""
        if not self.selection.include_sensitive or self.sensitive:
            return ()
        self.sensitive = True
        omitted = len(self.rows(self.selection.any_of)) > passing
        self.sensitive = False
        return (_SENSITIVE_OMITTED,) if omitted else ()

    def corrupt_ids(self, damaged: Sequence[str] = ()) -> tuple[tuple[str, ...], list[str]]:
        """Return the ids of memories that do not match their seals, and the notes about them."""
        unreadable = corrupt_memories(damaged)
        if self.at.seq is None:
            tiers = tuple(self.selection.any_of.get("tier", ()))
            filters = Filter(scopes=(*self.visible, ""), tiers=tiers, include_sensitive=self.sensitive)
            live_at = None if self.selection.include_ended else self.at.now
            unreadable = unreadable_memories(self.session, filters, live_at=live_at, damaged=damaged)
        return ids_of(unreadable), unreadable_notes(unreadable)


def _row_of(record: Record, arrival: int, now: datetime) -> ListedRow:
    body, status = parse_body(encode_record(record)), record.status_at(now).value
    changed = to_micros(record.updated_at or record.created_at)
    fields = (record.tier.value, record.kind.value, record.scope, record.source, record.text_by)
    return ListedRow(record.id, arrival, changed, status, int(record.effective_trust), *fields, body)


def list_page(
    session: RequestContext, selection: Selection, *, sort: str, ascending: bool, offset: int, limit: int | None
) -> Memories:
    """Return one page of the memories that pass, in an order; ``total`` is how many pass.

    Equal values are in order of arrival, newest first.
    """
    view = _VisibleState(session, selection)
    rows = view.rows(selection.any_of, content=sort in _SORTS_BY_CONTENT)

    def value(pair: tuple[ListedRow, Record | None]) -> Any:
        row, record = pair
        if sort not in _SORTS_BY_CONTENT:
            return getattr(row, "arrival" if sort == "created" else sort)
        if record is None:
            return "" if sort == "author" else 0.0
        return record.text_by if sort == "author" else getattr(as_read(record, view.at.now), sort)

    ordered = sorted(rows, key=value, reverse=ascending is (sort in _NAMES))
    ids = [row.id for row, _ in ordered[offset : None if limit is None else offset + limit]]
    found = view.reader.records(ids, as_of=view.at.seq)
    records = [as_read(record, view.at.now) for record in found.records]
    withheld, corrupt_notes = view.corrupt_ids(found.damaged)
    notes = (*view.omission_notes(len(rows)), *corrupt_notes)
    return Memories(records, withheld=withheld, notes=notes, total=len(rows), head=view.at.head.name)


def matching_ids(session: RequestContext, selection: Selection) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the ids of the memories that pass, and their scopes."""
    rows = [row for row, _ in _VisibleState(session, selection).rows(selection.any_of)]
    return frozenset(row.id for row in rows), tuple(sorted({row.scope for row in rows}))


def facets(session: RequestContext, selection: Selection, *, of: Sequence[str] = (), most: int = MAX_LISTED) -> Facets:
    """Return how many memories pass, and how many have each value of a facet.

    A facet is counted without its own filter. ``of`` names the facets to count, by default all; at most ``most``
    values of each are listed.
    """
    view = _VisibleState(session, selection)
    total = len(view.rows(selection.any_of))
    listed, unlisted = dict[str, tuple[Count, ...]](), dict[str, int]()
    for name, counts in _counts(view, of or FACETS):
        order = sorted(counts, key=lambda value: (-counts[value], value))
        # Values of the filter are always listed, even with a count of 0.
        shown = dict.fromkeys((*order[:most], *selection.any_of.get(name, ())))
        listed[name] = tuple(Count(value=value, count=counts.get(value, 0)) for value in shown)
        if len(order) > most:
            unlisted[name] = len(order) - most
    notes = (*view.omission_notes(total), *view.corrupt_ids()[1])
    return Facets(head=view.at.head.name, seq=view.at.head.seq, total=total, facets=listed, more=unlisted, notes=notes)


def _counts(view: _VisibleState, of: Sequence[str]) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield each facet with the number of memories of each value."""
    ids = None
    if view.selection.needs_content:
        ids = [row.id for row, _ in view.rows({"status": tuple(Status)})]
    any_of = view.selection.any_of
    all_rows = view.store.list_rows(view.tenant, view.listing(any_of, ids))
    for name in of:
        rows = all_rows
        if name == "status" or name in any_of:
            others: dict[str, Sequence[str]] = {other: values for other, values in any_of.items() if other != name}
            if name == "status":
                others["status"] = tuple(Status)
            rows = view.store.list_rows(view.tenant, view.listing(others, ids))
        yield name, count_by(rows, name)


def users(session: RequestContext) -> list[Member]:
    """Return the users with memories at the session's scope and below, by name."""
    return _members(session, user_of)


def projects(session: RequestContext) -> list[Member]:
    """Return the projects with memories at the session's scope and below, by name."""
    return _members(session, project_of)


def _members(session: RequestContext, name_of: Callable[[str], str | None]) -> list[Member]:
    counts: Counter[str] = Counter()
    for scope, count in session.reader.memories_below().items():
        if name := name_of(scope):
            counts[name] += count
    return [Member(name=name, memories=count) for name, count in sorted(counts.items())]


def activity(session: RequestContext, selection: Selection, *, by: str, days: int, zone: int) -> Activity:
    """Return how many versions were written on each of the last ``days``, and by whom.

    The last day is that of ``until``, or today; ``zone`` is minutes east of UTC. Filters apply to the memories as they
    are now.

    Raises:
        InvalidInput: the period is outside the years that have dates.
    """
    view = _VisibleState(session, replace(selection, since=None, until=None, include_ended=True))
    shift = timedelta(minutes=zone)
    last = selection.until or view.at.now
    if not 2 < last.year < MAXYEAR:
        raise InvalidInput("activity ends between the years 3 and 9998: choose another `until`")
    last = last - timedelta(microseconds=1) if selection.until else last
    first = (last + shift).date() - (days - 1) * _DAY
    begin = datetime(first.year, first.month, first.day, tzinfo=UTC) - shift
    begin = begin if selection.since is None else max(begin, selection.since)
    totals, series = [0] * days, dict[str, list[int]]()
    for version in _written_versions(view, to_micros(begin), to_micros(last)):
        if not version.is_new:
            continue
        day = ((from_micros(version.at) + shift).date() - first).days
        totals[day] += 1
        if name := version.author if by == "author" else version.fields.get(by):
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
    """Yield the versions with new text between two instants, and rollbacks, of the memories that pass."""
    selection = view.selection
    ids = [row.id for row, _ in view.rows(selection.any_of)] if selection.needs_content else None
    rows = view.store.list_rows(view.tenant, view.listing(selection.any_of, ids))
    versions = view.store.written(view.tenant, since, until, [row.id for row in rows])
    return view.reader.readable_versions(versions)


def sources(session: RequestContext, selection: Selection) -> Sources:
    """Return where memories come from: how many each source wrote, how far they are trusted, and when.

    A reference and a session stay in the fields of a memory when another writer rewrites its text; the new text is not
    theirs. Errors are as in ``list_page``.
    """
    view = _VisibleState(session, replace(selection, include_ended=True))
    rows = {row.id: row for row, _ in view.rows(selection.any_of)}
    groups: dict[str, dict[str, _SourceCounts]] = {name: {} for name in ("actors", "sources", "references", "sessions")}
    wordings: dict[str, Wording[str]] = {}
    for version in _written_versions(view, _FIRST, _LAST):
        author, fields = version.author, version.fields
        written_at = fields.get("text_at", fields.get("created_at"))
        wordings.setdefault(version.memory_id, Wording()).add(fields.get("text", ""), author, written_at)
        if not version.is_new:
            continue
        names = {"actors": [author], "references": fields.get("evidence", ())}
        names |= {f"{name}s": [fields.get(name)] for name in ("source", "session")}
        for group, values in names.items():
            for name in filter(None, values):
                counts = groups[group].setdefault(name, _SourceCounts(first=version.at))
                writers = counts.writers.setdefault(version.memory_id, set())
                if writers and author not in writers and group in {"references", "sessions"}:
                    continue
                writers.add(author)
                counts.writes, counts.last = counts.writes + 1, version.at
    lists = {
        group: sorted(
            (counts.summary(name, rows, wordings) for name, counts in by_name.items()),
            key=lambda summary: (-summary.memories, summary.name),
        )
        for group, by_name in groups.items()
    }
    return Sources(
        head=view.at.head.name,
        **{group: tuple(summaries[:MAX_SOURCES]) for group, summaries in lists.items()},
        more={
            group: len(summaries) - MAX_SOURCES for group, summaries in lists.items() if len(summaries) > MAX_SOURCES
        },
    )


#: Before and after every instant.
_FIRST, _LAST = -(1 << 62), 1 << 62
_LABELS = {int(trust): trust.label for trust in Trust}


@dataclass(slots=True)
class _SourceCounts:
    """What one source wrote."""

    first: int
    last: int = 0
    writes: int = 0
    #: By memory, the authors of its texts that are from this source.
    writers: dict[str, set[str]] = field(default_factory=dict)

    def summary(self, name: str, rows: Mapping[str, ListedRow], wordings: Mapping[str, Wording[str]]) -> SourceActivity:
        present = {memory_id: wordings[memory_id].present for memory_id in self.writers if memory_id in rows}
        own = [
            rows[memory_id] for memory_id, authors in present.items() if not authors.isdisjoint(self.writers[memory_id])
        ]
        return SourceActivity(
            name=name,
            memories=len(own),
            corrected=len(present) - len(own),
            live=sum(row.status == Status.ACTIVE for row in own),
            writes=self.writes,
            trust=dict(sorted(Counter(_LABELS.get(row.trust, "unknown") for row in own).items())),
            first=from_micros(self.first),
            last=from_micros(self.last),
        )
