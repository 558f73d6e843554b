"""Lists and counts of memories: a page in any order, facets, activity by day, and sources.

The database orders and counts. A list reads and verifies the memories that it shows. A memory that does not match its
seal is named in ``withheld`` and in a note.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, datetime, timedelta
from functools import cache
from typing import Any, get_args

from msgspec.structs import replace

from keepward.core.browse import Activity, Count, Facets, Member, Series, SourceActivity, Sources
from keepward.core.memory import MemoryFields, Record, Sensitivity, as_read
from keepward.core.principals import Trust, project_of, user_of
from keepward.core.query import AsOf, Filter, Memories
from keepward.core.value import from_micros, plain_name, to_micros
from keepward.core.wording import Wording
from keepward.errors import InvalidInput
from keepward.services.access import corrupt_memories, ids_of, unreadable_memories, unreadable_notes
from keepward.services.reading.recall import read_point
from keepward.services.reading.visible import GRANT_HINT, HIDDEN_TEXT, VisibleReader, VisibleRecords
from keepward.services.request_context import RequestContext
from keepward.storage.listing import names_of
from keepward.types import Facet

#: The facets by which memories are counted.
FACETS = get_args(Facet)
#: Orders that begin with the least value, unless ``ascending``.
_NAMES = frozenset({"tier", "kind", "scope", "source", "author"})
#: Maximum number of listed values of a facet, and of names in a list of sources.
MAX_LISTED = 50
MAX_SOURCES = 500
#: Maximum number of days of one activity, and of series in it.
MAX_SERIES = 12
_DAY = timedelta(days=1)
_DAY_MICROS = 86_400_000_000
_SENSITIVE_OMITTED = f"sensitive memories were left out: asking for them {GRANT_HINT} --can read,propose,sensitive`"


class _Visible:
    """One state as a reader may see it, and the memories in it that pass a filter."""

    def __init__(self, context: RequestContext, asked: Filter, reader: VisibleReader, as_of: AsOf = None) -> None:
        self.context, self.reader = context, reader
        self.store, self.tenant = context.store, context.tenant
        with self.store.read_snapshot(self.tenant):
            self.at = read_point(context, as_of)
        #: Whether sensitive memories were asked for that the reader may not see.
        self.omits_sensitive = asked.include_sensitive and not reader.may_ask_for_sensitive
        self.now = to_micros(self.at.now)
        self.filters = replace(
            asked, now=self.now, include_sensitive=asked.include_sensitive and reader.may_ask_for_sensitive
        )

    def has_omitted(self) -> bool:
        """Whether a sensitive memory would pass that the reader may not see."""
        if not self.omits_sensitive:
            return False
        if self.at.seq is None:
            return self.store.has_sensitive(self.tenant, self.filters, self.now)
        every = self.past(replace(self.filters, include_sensitive=True)).records
        return any(record.sensitivity is Sensitivity.SENSITIVE for record in every)

    def past(self, filters: Filter, *, limit: int | None = None) -> VisibleRecords:
        """Return the memories of a past state that pass, newest arrival first."""
        return self.reader.find(filters, live_at=None, as_of=self.at.seq, limit=limit)

    def corrupt_ids(self, damaged: Sequence[str] = ()) -> tuple[tuple[str, ...], list[str]]:
        """Return the ids of memories that do not match their seals, and the notes about them."""
        unreadable = corrupt_memories(damaged)
        if self.at.seq is None:
            unreadable = unreadable_memories(self.context, self.filters, live_at=None, damaged=damaged)
        return ids_of(unreadable), unreadable_notes(unreadable)


def list_page(
    context: RequestContext,
    filters: Filter,
    reader: VisibleReader,
    *,
    as_of: AsOf = None,
    sort: str = "created",
    ascending: bool = False,
    offset: int = 0,
    limit: int | None = None,
    counted: bool = False,
) -> Memories:
    """Return one page of the memories that pass, in an order; if it is ``counted``, ``total`` is how many pass.

    Equal values are in order of arrival, newest first.
    """
    view = _Visible(context, filters, reader, as_of)
    # Names begin with the least, everything else with the most.
    least_first = ascending is not (sort in _NAMES)
    total: int | None = None
    if view.at.seq is not None:
        found = view.past(view.filters, limit=None if counted else limit)
        total = len(found.records)
        found = _past_page(found, view.at.now, sort, least_first=least_first, offset=offset, limit=limit)
    else:
        page: dict[str, Any] = {"sort": sort, "ascending": least_first, "offset": offset, "limit": limit}
        if counted and (view.filters.text or view.filters.where):
            # The texts decide: they are read once, for the page and for the total.
            every = view.store.listed_ids(view.tenant, view.filters, view.now, **(page | {"offset": 0, "limit": None}))
            ids, total = every[offset : None if limit is None else offset + limit], len(every)
        else:
            ids = view.store.listed_ids(view.tenant, view.filters, view.now, **page)
            if counted:
                total = view.store.count_listed(view.tenant, view.filters, view.now)
        found = view.reader.records(ids)
    records = tuple(as_read(record, view.at.now) for record in found.records)
    withheld, notes = view.corrupt_ids(found.damaged)
    if view.has_omitted():
        notes = [_SENSITIVE_OMITTED, *notes]
    elif found.left_out:
        notes = [f"left out: {HIDDEN_TEXT}", *notes]
    head = view.at.head.name if counted else None
    return Memories(items=records, withheld=withheld, notes=tuple(notes), total=total if counted else None, head=head)


def _past_page(
    found: VisibleRecords, now: datetime, sort: str, *, least_first: bool, offset: int, limit: int | None
) -> VisibleRecords:
    """Return one page of the memories of a past state, which are newest first."""
    of_sort: dict[str, Callable[[Record], Any]] = {
        "changed": lambda record: record.updated_at or record.created_at,
        "trust": lambda record: record.effective_trust,
        "author": lambda record: record.text_by,
    }
    value = of_sort.get(sort, lambda record: getattr(as_read(record, now), sort))
    records = found.records
    if sort == "created":
        records = records[::-1] if least_first else records
    else:
        records = sorted(records, key=value, reverse=not least_first)
    return dataclasses.replace(found, records=records[offset : None if limit is None else offset + limit])


def matching_ids(
    context: RequestContext, filters: Filter, reader: VisibleReader, *, as_of: AsOf
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the ids of the memories that pass, and their scopes."""
    view = _Visible(context, filters, reader, as_of)
    if view.at.seq is None:
        found = [(name, scope) for name, scope, _, _ in view.store.listed(view.tenant, view.filters, view.now)]
    else:
        found = [(record.id, record.scope) for record in view.past(view.filters).records]
    return frozenset(name for name, _ in found), tuple(sorted({scope for _, scope in found}))


def _matching(names: Iterable[str], part: str | None) -> list[str]:
    """Return the names that contain a text in any case: first equal ones, then those that begin with it.

    The kind of an actor, as in ``user:ana``, counts as no part of its name. Names that match alike stay in order.
    """
    if part is None:
        return list(names)
    sought = plain_name(part).casefold()

    def distance(name: str) -> int:
        forms = {name, name.partition(":")[2]}
        return 0 if sought in forms else 1 if any(form.startswith(sought) for form in forms) else 2

    folded = {name: name.casefold() for name in names}
    return sorted((name for name in folded if sought in folded[name]), key=lambda name: distance(folded[name]))


def facets(
    context: RequestContext,
    filters: Filter,
    reader: VisibleReader,
    *,
    of: Sequence[str] = (),
    name: str | None = None,
    most: int = MAX_LISTED,
) -> Facets:
    """Return how many memories pass, and how many have each value of a facet.

    A facet is counted without its own filter. ``of`` names the facets to count, by default all; at most ``most``
    values of each are listed, with ``name`` of those that contain it.
    """
    view = _Visible(context, filters, reader)
    total, found = view.store.facet_counts(view.tenant, view.filters, view.now, of or FACETS)
    listed: dict[str, tuple[Count, ...]] = {}
    unlisted: dict[str, int] = {}
    for facet in of or FACETS:
        counts = found[facet]
        order = _matching(sorted(counts, key=lambda value: (-counts[value], value)), name)
        # Values of the filter are always listed, even with a count of 0.
        shown = dict.fromkeys((*order[:most], *names_of(filters, facet)))
        listed[facet] = tuple(Count(value=value, count=counts.get(value, 0)) for value in shown)
        if len(order) > most:
            unlisted[facet] = len(order) - most
    notes = (*([_SENSITIVE_OMITTED] if view.has_omitted() else ()), *view.corrupt_ids()[1])
    return Facets(head=view.at.head.name, seq=view.at.head.seq, total=total, facets=listed, more=unlisted, notes=notes)


def users(context: RequestContext, *, name: str | None = None) -> list[Member]:
    """Return the users with memories at the handle's scope and below, by name; with ``name`` those that contain it."""
    return _members(context, user_of, name)


def projects(context: RequestContext, *, name: str | None = None) -> list[Member]:
    """Return the projects with memories at the handle's scope and below, as ``users`` does."""
    return _members(context, project_of, name)


def _members(context: RequestContext, name_of: Callable[[str], str | None], part: str | None) -> list[Member]:
    counts: Counter[str] = Counter()
    for scope, count in VisibleReader(context).memories_below().items():
        if name := name_of(scope):
            counts[name] += count
    return [Member(name=name, memories=counts[name]) for name in _matching(sorted(counts), part)]


def activity(
    context: RequestContext, filters: Filter, reader: VisibleReader, *, by: str, days: int, zone: int
) -> Activity:
    """Return how many versions were written on each of the last ``days``, and by whom.

    The last day is that of ``until``, or today; ``zone`` is minutes east of UTC. Filters apply to the memories as they
    are now.

    Raises:
        InvalidInput: the period is outside the years that have dates.
    """
    view = _Visible(context, replace(filters, since=None, until=None), reader)
    shift = timedelta(minutes=zone)
    last = filters.until or view.at.now
    if not 2 < last.year < MAXYEAR:
        raise InvalidInput("activity ends between the years 3 and 9998: choose another `until`")
    last = last - timedelta(microseconds=1) if filters.until else last
    first = (last + shift).date() - (days - 1) * _DAY
    begin = datetime(first.year, first.month, first.day, tzinfo=UTC) - shift
    midnight = to_micros(begin)
    begin = begin if filters.since is None else max(begin, filters.since)
    totals, series, damaged = [0] * days, dict[str, list[int]](), set[str]()
    for at, fields, is_new in _written_versions(view, to_micros(begin), to_micros(last), damaged):
        if not is_new:
            continue
        day = (at - midnight) // _DAY_MICROS
        totals[day] += 1
        if name := fields.said_by if by == "author" else getattr(fields, by):
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
        damaged=len(damaged),
    )


def _written_versions(
    view: _Visible, since: int, until: int, damaged: set[str]
) -> Iterator[tuple[int, MemoryFields, bool]]:
    """Yield the readable versions of ``ListReads.written`` of the memories that pass."""
    versions = view.store.written(view.tenant, since, until, view.filters, view.now, damaged=damaged)
    return view.reader.readable_versions(versions)


def sources(context: RequestContext, filters: Filter, reader: VisibleReader, *, name: str | None = None) -> Sources:
    """Return where memories come from: how many each source wrote, how far they are trusted, and when.

    With ``name`` these are the sources that contain it.

    A reference and a session stay in the fields of a memory when another writer rewrites its text; the new text is not
    theirs. Errors are as in ``list_page``.
    """
    view = _Visible(context, filters, reader)
    listed = view.store.listed(view.tenant, view.filters, view.now)
    # By id: its trust, and whether it is live.
    present = {name: (trust, live) for name, _, trust, live in listed}
    groups: dict[str, dict[str, _SourceCounts]] = {name: {} for name in ("actors", "sources", "references", "sessions")}
    # Most memories have one version, whose author is enough: a set and a wording of each would take most of the time.
    firsts: dict[str, tuple[str, str, int]] = {}
    wordings: dict[str, Wording[str]] = {}
    only = cache(lambda author: frozenset({author}))
    is_asked = cache(lambda value: bool(_matching([value], name)))
    damaged = set[str]()
    for at, fields, is_new in _written_versions(view, _FIRST, _LAST, damaged):
        author = fields.said_by
        said = fields.text, author, fields.written_at
        if (wording := wordings.get(fields.id)) is not None:
            wording.add(*said)
        elif (first := firsts.pop(fields.id, None)) is None:
            firsts[fields.id] = said
        else:
            wording = wordings[fields.id] = Wording()
            wording.add(*first)
            wording.add(*said)
        if not is_new:
            continue
        for group, value in (
            ("actors", author),
            ("sources", fields.source),
            *(("references", reference) for reference in fields.evidence),
            ("sessions", fields.session),
        ):
            if not value or not is_asked(value):
                continue
            if (counts := groups[group].get(value)) is None:
                counts = groups[group][value] = _SourceCounts(first=at)
            writers = counts.writers.get(fields.id)
            if writers is None:
                counts.writers[fields.id] = only(author)
            elif author not in writers:
                if group in {"references", "sessions"}:
                    continue
                counts.writers[fields.id] = writers | only(author)
            counts.writes, counts.last = counts.writes + 1, at

    def authors_of(memory_id: str) -> frozenset[str]:
        """Return the authors of the present text of a memory."""
        first = firsts.get(memory_id)
        return wordings[memory_id].present if first is None else only(first[1])

    lists: dict[str, list[SourceActivity]] = {}
    for group, by_name in groups.items():
        summaries = {each: counts.summary(each, present, authors_of) for each, counts in by_name.items()}
        order = sorted(summaries, key=lambda each: (-summaries[each].memories, each))
        lists[group] = [summaries[each] for each in _matching(order, name)]
    return Sources(
        head=view.at.head.name,
        **{group: tuple(summaries[:MAX_SOURCES]) for group, summaries in lists.items()},
        more={
            group: len(summaries) - MAX_SOURCES for group, summaries in lists.items() if len(summaries) > MAX_SOURCES
        },
        damaged=len(damaged),
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
    writers: dict[str, frozenset[str]] = field(default_factory=dict)

    def summary(
        self, name: str, present: Mapping[str, tuple[int, bool]], authors_of: Callable[[str], frozenset[str]]
    ) -> SourceActivity:
        """Return it in numbers; ``authors_of`` gives the authors of the present text of a memory."""
        written = [memory_id for memory_id in self.writers if memory_id in present]
        own = [
            present[memory_id] for memory_id in written if not authors_of(memory_id).isdisjoint(self.writers[memory_id])
        ]
        return SourceActivity(
            name=name,
            memories=len(own),
            corrected=len(written) - len(own),
            live=sum(live for _, live in own),
            writes=self.writes,
            trust=dict(sorted(Counter(_LABELS.get(trust, "unknown") for trust, _ in own).items())),
            first=from_micros(self.first),
            last=from_micros(self.last),
        )
