"""Pages and counts of newest versions, from the table ``listed``.

Invariants
(1) A filter is one condition in SQL. Only a part of a text, conditions on metadata and valid time are decided here,
    by the body.
(2) A page, a count and a facet read no memory: a caller reads those that it shows by ``records``, which verifies them.
(3) Every order is total: equal values are in order of arrival, newest first.
(4) A memory whose content cannot be read passes; the read of it names it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from msgspec.structs import replace

from keepward.core.memory import (
    DEFAULT_HALF_LIFE,
    HALF_LIFE_BY_KIND,
    IMPORTANCE_DECAY_PER_DAY,
    MIN_IMPORTANCE,
    MemoryFields,
    Status,
)
from keepward.core.principals import BRANCH_PATHS, BRANCH_PREFIX, SHARED_SCOPE, Trust, main_scope
from keepward.core.query import Filter
from keepward.core.serialization import decode_fields
from keepward.core.value import name_forms, to_micros
from keepward.ports.store import ScopeRange
from keepward.storage.rows import (
    MAX_EVENTS_PER_COMMIT,
    RECORD_COLUMNS,
    EventRow,
    RecordRow,
    event_flaw,
    joined_tags,
    json_array,
    split_tags,
    text_in,
)
from keepward.storage.seals import Sealer
from keepward.storage.sql import MAX_CHARACTER, Connection, Row, Snapshot

_DAMAGED_EVENT = "an event of commit %d does not match its seal and was left out"
_log = logging.getLogger(__name__)
_LABELS = {int(trust): trust.label for trust in Trust}
_RANKS = {label: rank for rank, label in _LABELS.items()}
#: Facets with few values, in the order of the index ``listed_counts``, with the field of the filter on each.
_GROUPED = {
    "scope": "named_scopes",
    "status": "statuses",
    "tier": "tiers",
    "kind": "kinds",
    "trust": "trusts",
    "content_type": "content_types",
    "source": "sources",
    "author": "authors",
}
#: The columns of that index before its time of expiry.
_COUNTED = "l.scope, l.status, l.sensitivity, l.tier, l.kind, l.trust, l.content_type, l.source, l.author"
#: Facets that have their own index, each with the name of its field in ``Filter``.
_NAMED = {"subject": "subject", "category": "category", "session": "session", "tag": "tags"}
_SINGLE = frozenset({"subject", "category", "session"})
#: Up to so many memories are sorted; more are read in the order of arrival.
_FEW = 2_000
#: More than any table has rows.
_ALL = 1 << 60
_DAY = 86_400_000_000
_LIVE = "l.status = 'active' AND (l.expires_at IS NULL OR l.expires_at > :now)"
_LAPSED = "l.status = 'active' AND l.expires_at <= :now"
#: Conditions on a memory: it was learned, changed, ended or erased since the instant ``since``. The first event since
#: then has the position ``first``.
_RECENT = {
    "learned": "l.arrival >= :first AND l.status <> 'erased'",
    "changed": f"l.arrival < :first AND l.position >= :first AND l.written_at >= :since AND {_LIVE}",
    "ended": "(l.position >= :first AND l.status IN ('superseded', 'retired', 'archived'))"
    " OR (l.expires_at >= :since AND l.expires_at <= :now AND l.status IN ('active', 'expired'))",
    "erased": "l.position >= :first AND l.status = 'erased'",
}
_BASE = "CAST(l.importance AS DOUBLE PRECISION) / 10000"
_FADED = f"{_BASE} * exp(-{IMPORTANCE_DECAY_PER_DAY} * (CAST(:now - l.idle_since AS DOUBLE PRECISION) / {_DAY}.0))"
_LEAST = round(MIN_IMPORTANCE * 10_000)
#: Importance and confidence as they have decayed, in 1/10,000; see ``memory.importance_at`` and ``confidence_at``.
_IMPORTANCE = (
    f"CASE WHEN l.idle_since IS NULL OR l.idle_since >= :now OR l.importance <= {_LEAST} THEN l.importance "
    f"WHEN {_FADED} < {MIN_IMPORTANCE} THEN {_LEAST} ELSE round({_FADED} * 10000) END"
)
_SPANS = " ".join(
    f"WHEN '{kind.value}' THEN {span.total_seconds() * 1e6:.1f}" for kind, span in HALF_LIFE_BY_KIND.items()
)
_CONFIDENCE = (
    "CASE WHEN l.idle_since IS NULL OR l.reinforced_at >= :now THEN l.confidence "
    "ELSE round(CAST(l.confidence AS DOUBLE PRECISION) / 10000 * power(0.5, "
    "CAST(:now - l.reinforced_at AS DOUBLE PRECISION) / "
    f"CASE l.kind {_SPANS} ELSE {DEFAULT_HALF_LIFE.total_seconds() * 1e6:.1f} END) * 10000) END"
)
_ORDERS = {
    "created": "l.arrival",
    "changed": f"l.position / {MAX_EVENTS_PER_COMMIT}",
    "importance": _IMPORTANCE,
    "confidence": _CONFIDENCE,
}


class _Condition:
    """A filter as a condition in SQL on ``listed AS l``, with its values."""

    def __init__(
        self, tenant: str, filters: Filter, now: int, *, sensitive: bool = False, among_hidden: bool = False
    ) -> None:
        """``sensitive`` asks for sensitive memories alone, ``among_hidden`` for those that the filter hides."""
        self.values: dict[str, Any] = {"tenant": tenant, "now": now}
        self._parts = ["l.tenant = :tenant"]
        self._any_scope(filters)
        if sensitive or not filters.include_sensitive:
            self._parts.append(f"l.sensitivity = '{'sensitive' if sensitive else 'normal'}'")
        self._any_status(filters.statuses)
        self.names_scopes = bool(filters.scopes or filters.below) and main_scope(filters.below or "") != SHARED_SCOPE
        #: The part that narrows to scopes, sensitivity and status, which every index of counts answers.
        self.visible = " AND ".join(self._parts)
        self._any("l.scope", filters.named_scopes)
        self._any("l.tier", filters.tiers)
        self._any("l.kind", filters.kinds)
        self._any("l.trust", [_RANKS.get(label, -1) for label in filters.trusts])
        self._any("l.content_type", filters.content_types)
        self._any("l.source", filters.sources)
        self._any("l.author", filters.authors)
        #: Whether there is nothing more so far.
        self.is_grouped = self.sql == self.visible
        before = len(self._parts)
        for column in ("subject", "category", "session", "key", "job"):
            if (name := getattr(filters, column)) is not None:
                self._any(f"l.{column}", dict.fromkeys((name, *name_forms([name]))))
        if filters.keyed is not None:
            self._parts.append("l.key IS NOT NULL" if filters.keyed else "l.key IS NULL")
        self._either(
            [
                f"instr(l.tags, CAST({self._value(joined_tags([name]))} AS TEXT)) > 0"
                for name in name_forms(filters.tags)
            ]
        )
        for column, operator, at in (
            ("written_at", ">=", filters.since),
            ("written_at", "<", filters.until),
            ("happened_at", ">=", filters.occurred_since),
            ("happened_at", "<", filters.occurred_until),
        ):
            if at is not None:
                self._parts.append(f"l.{column} {operator} {self._value(to_micros(at))}")
        if filters.min_importance:
            self._parts.append(f"{_IMPORTANCE} >= {self._value(round(filters.min_importance * 10_000))}")
        #: Whether the columns of the index of counts answer it.
        self.is_counted = len(self._parts) == before
        if filters.hidden:
            hidden = ", ".join(map(self._value, sorted(filters.hidden)))
            # By arrival, as `listed` has no index of ids.
            own = f"(SELECT h.arrival FROM records h WHERE h.tenant = :tenant AND h.id IN ({hidden}))"
            self._parts.append(f"l.arrival IN {own}" if among_hidden else f"l.id NOT IN ({hidden})")
            self.is_counted = self.is_grouped = False
        self._filters = filters

    @property
    def sql(self) -> str:
        """The condition."""
        return " AND ".join(self._parts)

    def index(self, db: Connection) -> str:
        """Return how SQLite, which has no statistics, reads ``listed`` to count: by an index with all it needs, or not.

        Otherwise it is read by the scopes of few memories, or all of it in order.
        """
        return " INDEXED BY listed_counts" if self.is_counted and not db.has_statistics else _hint(db, self)

    @property
    def needs_content(self) -> bool:
        """Whether the body decides as well; see ``accepts``."""
        return needs_content(self._filters)

    def accepts(self, sealer: Sealer, row: RecordRow) -> bool:
        """Whether the text and metadata of a memory pass the filter; unreadable content passes, see (4)."""
        # Most filters ask for the text alone, which takes a third of the time of all fields.
        text, at = text_in(row.body), self._filters.valid_at
        needs_fields = bool(self._filters.where) or at is not None
        fields = decode_fields(row.body) if needs_fields else None
        if text is None or (needs_fields and fields is None):
            return True
        try:
            passes = self._filters.passes_content(text, row.key, fields.metadata if fields else {})
            passes = passes and (fields is None or at is None or fields.holds_at(at))
        except (ValueError, RecursionError):
            return True
        return passes or not row.has_valid_seal(sealer, self.values["tenant"])

    def _value(self, value: Any) -> str:
        """Return the placeholder of a value."""
        name = f"v{len(self.values)}"
        self.values[name] = value
        return f":{name}"

    def _either(self, parts: Sequence[str]) -> None:
        """Add an OR of conditions; an empty list adds nothing."""
        if parts:
            self._parts.append(parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})")

    def _any(self, column: str, values: Iterable[Any]) -> None:
        """Require that a column has one of some values; an empty list adds nothing."""
        if names := [self._value(value) for value in values]:
            self._parts.append(f"{column} IN ({', '.join(names)})")

    def _any_scope(self, filters: Filter) -> None:
        each = [f"l.scope IN ({', '.join(map(self._value, filters.scopes))})"] if filters.scopes else []
        # A branch reads what main has at the same scopes.
        for below in () if filters.below is None else dict.fromkeys((filters.below, main_scope(filters.below))):
            if below == SHARED_SCOPE:
                low, high = map(self._value, BRANCH_PATHS)
                each.append(f"(l.scope < {low} OR l.scope >= {high})")
            else:
                low, high = self._value(f"{below}/"), self._value(f"{below}0")
                each.append(f"(l.scope >= {low} AND l.scope < {high})")
        self._either(each)

    def _any_status(self, statuses: Sequence[str]) -> None:
        stored = [status for status in statuses if status not in {Status.ACTIVE, Status.EXPIRED}]
        each = [f"({_LIVE})"] if Status.ACTIVE in statuses else []
        each += [f"({_LAPSED})"] if Status.EXPIRED in statuses else []
        stored += [Status.EXPIRED.value] if Status.EXPIRED in statuses else []
        each += [f"l.status IN ({', '.join(map(self._value, stored))})"] if stored else []
        self._either(each)


def needs_content(filters: Filter) -> bool:
    """Whether bodies decide a filter too."""
    return bool(filters.text or filters.where) or filters.valid_at is not None


class ListReads(Snapshot):
    """Pages and counts of the newest versions; a part of ``StoreReader``. ``now`` is in microseconds since 1970."""

    def listed_ids(
        self,
        tenant: str,
        filters: Filter,
        now: int,
        *,
        sort: str = "created",
        ascending: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> list[str]:
        """Return the ids of one page of the memories that pass, in an order; ``ascending`` begins with the least."""
        where = _Condition(tenant, filters, now)
        order = _ORDERS.get(sort, f"l.{sort}")
        order = f"{order} {'ASC' if ascending else 'DESC'}" + ("" if sort == "created" else ", l.arrival DESC")
        stop = None if limit is None else offset + limit
        with self._reading(tenant) as db:
            if where.needs_content:
                passing = _with_content(db, self._sealer, where, "l.id", order)
                return [memory_id for (memory_id,) in islice(passing, offset, stop)]
            query = f"""
                SELECT l.id FROM listed AS l{_hint(db, where)} WHERE {where.sql}
                 ORDER BY {order} LIMIT :limit OFFSET :offset"""
            page = {"limit": _ALL if limit is None else limit, "offset": offset}
            return [memory_id for (memory_id,) in db.execute(query, where.values | page)]

    def count_listed(self, tenant: str, filters: Filter, now: int) -> int:
        """Return the number of memories that pass."""
        where = _Condition(tenant, filters, now)
        with self._reading(tenant) as db:
            if where.needs_content:
                return sum(1 for _ in _with_content(db, self._sealer, where, "l.id", "l.arrival"))
            return sum(sign * _count(db, part) for sign, part in _counted_parts(tenant, filters, now))

    def recent(
        self, tenant: str, filters: Filter, now: int, *, since: int, most: int
    ) -> dict[str, tuple[int, list[str]]]:
        """Return how many memories that pass were learned, changed, ended and erased since an instant.

        Each comes with the ids of the newest, at most ``most``.
        """
        where = _Condition(tenant, filters, now)
        with self._reading(tenant) as db:
            query = "SELECT min(seq) FROM commits WHERE tenant = :tenant AND at >= :since"
            (seq,) = db.execute(query, {"tenant": tenant, "since": since}).fetchone()
            first = _ALL if seq is None else seq * MAX_EVENTS_PER_COMMIT
            values = {**where.values, "since": since, "first": first}
            found: dict[str, tuple[int, list[str]]] = {}
            for name, condition in _RECENT.items():
                recent = f"FROM listed AS l{_hint(db, where)} WHERE {where.sql} AND ({condition})"
                (count,) = db.execute(f"SELECT count(*) {recent}", values).fetchone()
                query = f"SELECT l.id {recent} ORDER BY l.position DESC, l.arrival DESC LIMIT :most"
                found[name] = int(count), [each for (each,) in db.execute(query, values | {"most": most})]
        return found

    def has_sensitive(self, tenant: str, filters: Filter, now: int) -> bool:
        """Whether a sensitive memory passes a filter, which else may leave these out."""
        where = _Condition(tenant, filters, now, sensitive=True)
        with self._reading(tenant) as db:
            if where.needs_content:
                return any(True for _ in _with_content(db, self._sealer, where, "l.id", "l.arrival"))
            query = f"SELECT 1 FROM listed AS l{where.index(db)} WHERE {where.sql} LIMIT 1"
            return db.execute(query, where.values).fetchone() is not None

    def listed(self, tenant: str, filters: Filter, now: int) -> list[tuple[str, str, int, bool]]:
        """Return id, scope, rank of effective trust, and whether it is live, of all that pass, in order of arrival."""
        where = _Condition(tenant, filters, now)
        columns = f"l.id, l.scope, l.trust, CASE WHEN {_LIVE} THEN 1 ELSE 0 END"
        with self._reading(tenant) as db:
            if where.needs_content:
                rows: Iterable[Row] = _with_content(db, self._sealer, where, columns, "l.arrival")
            else:
                query = f"SELECT {columns} FROM listed AS l WHERE {where.sql} ORDER BY l.arrival"
                rows = db.execute(query, where.values)
            return [(name, scope, trust, bool(live)) for name, scope, trust, live in rows]

    def facet_counts(
        self, tenant: str, filters: Filter, now: int, of: Collection[str]
    ) -> tuple[int, dict[str, Counter[str]]]:
        """Return how many memories pass, and for each facet how many have each value.

        The filter of a facet does not apply to its own counts.
        """
        with self._reading(tenant) as db:
            if needs_content(filters):
                return _count_by_content(db, self._sealer, tenant, filters, now, of)
            opened = replace(filters, **dict.fromkeys(_GROUPED.values(), ()))
            groups = (
                (values, sign * number)
                for sign, where in _counted_parts(tenant, opened, now)
                for values, number in _groups(db, where)
            )
            total, counts = _count_groups(groups, filters, of)
            for facet, name in _NAMED.items():
                if facet in of:
                    own = replace(filters, **{name: () if name == "tags" else None})
                    counts[facet] = Counter()
                    for sign, where in _counted_parts(tenant, own, now):
                        for value, number in _count_named(db, where, facet).items():
                            counts[facet][value] += sign * number
        return total, {facet: +counted for facet, counted in counts.items()} if filters.hidden else counts

    def faded(self, tenant: str, now: int, *, confidence: float, importance: float) -> list[str]:
        """Return the ids of active memories whose decayed confidence and importance are below two shares.

        Uses are not considered: a memory that was used may be more important.
        """
        return self._decayed(tenant, now, f"{_CONFIDENCE} < :confidence", importance, confidence=confidence * 10_000)

    def unused_facts(self, tenant: str, now: int, *, before: int, importance: float) -> list[str]:
        """Return the ids of active facts, said before an instant and never confirmed nor used, below an importance."""
        condition = """l.kind = 'fact' AND l.written_at < :before AND l.reinforced_at <= l.written_at AND NOT EXISTS (
            SELECT 1 FROM documents u WHERE u.tenant = l.tenant AND u.kind = 'usage' AND u.id = l.id)"""
        return self._decayed(tenant, now, condition, importance, before=before)

    def _decayed(self, tenant: str, now: int, condition: str, importance: float, **values: Any) -> list[str]:
        """Return the ids of active memories below an importance, in order of arrival."""
        query = f"""
            SELECT l.id FROM listed AS l WHERE l.tenant = :tenant AND l.worth IS NOT NULL AND {_LIVE} AND {condition}
               AND {_IMPORTANCE} < :importance ORDER BY l.arrival"""
        with self._reading(tenant) as db:
            given = {"tenant": tenant, "now": now, "importance": importance * 10_000, **values}
            return [name for (name,) in db.execute(query, given)]

    def scope_counts(self, tenant: str, filters: Filter, now: int) -> Counter[str]:
        """Return the number of memories that pass by scope."""
        return self.facet_counts(tenant, filters, now, ("scope",))[1]["scope"]

    def scopes(self, tenant: str) -> list[str]:
        """Return the scopes that have memories, whatever their status."""
        return [scope for (scope,) in self._run("scopes", tenant)]

    def ids_on_branch(self, tenant: str, branch: str, *, active: bool = False) -> list[str]:
        """Return the ids of the memories on a branch, in any scope, oldest first; with ``active`` only active ones."""
        path = f"{BRANCH_PREFIX}{branch}"
        rows = self._run("on_branch", tenant, path=path, low=f"{path}/", high=f"{path}0", active=int(active))
        return [name for (name,) in rows]

    def first_and_newest(self, tenant: str, ids: Iterable[str]) -> dict[str, tuple[int, int, str]]:
        """Return, by id, the first and the newest commit of each of these memories, and the kind of the newest."""
        rows = self._run("first_and_newest", tenant, ids=json_array(ids))
        return {name: (first, newest, kind) for name, first, newest, kind in rows}

    def scopes_below(
        self, tenant: str, scope: str, now: datetime, *, include_sensitive: bool, limit: int
    ) -> tuple[dict[str, int], bool]:
        """Return scopes below one with their number of active memories, and whether there may be more.

        At most ``limit`` memories are read, in the order of their scopes.
        """
        # No name of a scope starts with a character before "0"; that of the store's own scope does.
        low = "/0" if scope == SHARED_SCOPE else f"{scope}/"
        high = f"{scope.removesuffix('/')}/{MAX_CHARACTER}"
        between = {"low": low, "high": high, "low_folded": low.lower(), "high_folded": high.lower()}
        values = {**between, "now": to_micros(now), "include_sensitive": int(include_sensitive), "limit": limit}
        rows = self._run("scopes_between", tenant, **values)
        on_branches = scope == SHARED_SCOPE
        counts = {
            name: int(visible)
            for name, visible, _ in rows
            if visible and not (on_branches and name.startswith(BRANCH_PREFIX))
        }
        return counts, sum(read for *_, read in rows) >= limit

    def scopes_in_other_case(self, tenant: str, scopes: Collection[str]) -> list[tuple[str, str]]:
        """Return (scope, other) where the other has active memories and differs only in upper and lower case."""
        rows = self._run("scopes_in_other_case", tenant, scopes=json_array(scopes))
        return [(scope, other) for scope, *others in rows for other in others if other is not None]

    def written(
        self, tenant: str, since: int, until: int, filters: Filter, now: int, *, damaged: set[str]
    ) -> Iterator[tuple[int, MemoryFields, bool]]:
        """Yield the versions with new text between two instants, and those that bring one back, oldest first.

        Each comes after the instant of its commit, and before whether its text is new. They are of the memories that
        pass now, without erased ones. ``damaged`` collects the memories of rows that do
        not match their seals, which are left out and logged.
        """
        passing, raw = set(self.listed_ids(tenant, filters, now)), tenant.encode()
        with self._reading(tenant) as db:
            for cells in db.stream("written", tenant=tenant, since=since, until=until):
                row, at = tuple.__new__(EventRow, cells[:-1]), cells[-1]
                if row.memory_id not in passing:
                    continue
                flaw = event_flaw(self._sealer, raw, row)
                if flaw is None and row.payload is None:
                    continue
                if flaw is not None or (fields := decode_fields(row.payload)) is None:
                    damaged.add(row.memory_id)
                    _log.warning(_DAMAGED_EVENT, row.seq, extra={"action": "damaged"})
                    continue
                # A change of another field than the text is later than the text.
                is_new = row.op != "revert" and (fields.version == 1 or fields.written_at == fields.updated_at)
                if is_new or row.op == "revert":
                    yield at, fields, is_new

    def changed_between(self, tenant: str, after: int, until: int) -> list[str]:
        """Return the ids of the memories that the commits of a range changed, in order."""
        return [name for (name,) in self._run("changed_between", tenant, after=after, until_seq=until)]

    def predecessors(self, tenant: str) -> dict[str, list[str]]:
        """Return the ids of superseded memories by the id of their successor."""
        found: dict[str, list[str]] = {}
        for name, payload in self._run("superseded_bodies", tenant):
            fields = decode_fields(payload)
            if fields is not None and fields.superseded_by:
                found.setdefault(fields.superseded_by, []).append(name)
        return found


def _counted_parts(tenant: str, filters: Filter, now: int) -> Iterator[tuple[int, _Condition]]:
    """Yield conditions that the index of counts answers, each with the sign of its number in the sum.

    What a branch hides is few memories: they are counted, and subtracted from all.
    """
    yield 1, _Condition(tenant, replace(filters, hidden=frozenset()), now)
    if filters.hidden:
        yield -1, _Condition(tenant, filters, now, among_hidden=True)


def _count(db: Connection, where: _Condition) -> int:
    query = f"SELECT count(*) FROM listed AS l{where.index(db)} WHERE {where.sql}"
    return int(db.execute(query, where.values).fetchone()[0])


def _hint(db: Connection, where: _Condition) -> str:
    """Return how SQLite, which has no statistics, reads ``listed``: by the scopes of few memories, or all in order."""
    if db.has_statistics or not where.names_scopes:
        return ""
    query = (
        f"SELECT count(*) FROM (SELECT 1 FROM listed AS l INDEXED BY listed_counts WHERE {where.visible} LIMIT {_FEW})"
    )
    few = db.execute(query, where.values).fetchone()[0] < _FEW
    return " INDEXED BY listed_counts" if few else " INDEXED BY sqlite_autoindex_listed_1"


def _with_content(db: Connection, sealer: Sealer, where: _Condition, columns: str, order: str) -> Iterator[Row]:
    """Yield columns of the memories that pass with their content, in an order."""
    cells = ", ".join(f"r.{name}" for name in RecordRow._fields)
    query = f"""
        SELECT {cells}, {columns} FROM listed AS l{_hint(db, where)} CROSS JOIN records r
         WHERE {where.sql} AND r.tenant = l.tenant AND r.id = l.id ORDER BY {order}"""
    for row in db.execute(query, where.values):
        if where.accepts(sealer, RecordRow._make(row[:RECORD_COLUMNS])):
            yield row[RECORD_COLUMNS:]


def _groups(db: Connection, where: _Condition) -> Iterator[tuple[list[tuple[str, ...]], int]]:
    """Yield the values of each facet in ``_GROUPED`` that memories share, and the number of these memories."""
    query = f"""
        SELECT {_COUNTED}, count(*), sum(CASE WHEN {_LAPSED} THEN 1 ELSE 0 END) FROM listed AS l{where.index(db)}
         WHERE {where.sql} GROUP BY {_COUNTED}"""
    for scope, status, _, tier, kind, trust, *others, count, lapsed in db.execute(query, where.values):
        rest = [(tier,), (kind,), (_LABELS[trust],) if trust in _LABELS else (), *((name,) for name in others)]
        if count > lapsed:
            yield [(scope,), (status,), *rest], count - int(lapsed)
        if lapsed:
            yield [(scope,), (Status.EXPIRED.value,), *rest], int(lapsed)


def _count_groups(
    groups: Iterable[tuple[Sequence[Sequence[str]], int]],
    filters: Filter,
    of: Collection[str],
    facets: Mapping[str, str] = _GROUPED,
) -> tuple[int, dict[str, Counter[str]]]:
    """Count the groups that pass a filter: in total, and for each facet as if that facet were not filtered."""
    wanted = [
        (n, frozenset((*names, *(name_forms(names) if facet in _NAMED else ()))))
        for n, facet in enumerate(facets)
        if (names := names_of(filters, facet))
    ]
    asked = [(n, facet) for n, facet in enumerate(facets) if facet in of]
    total, counts = 0, {facet: Counter[str]() for _, facet in asked}
    for values, count in groups:
        failing = [n for n, names in wanted if names.isdisjoint(values[n])]
        if len(failing) > 1:
            continue
        total += 0 if failing else count
        for n, facet in asked:
            if not failing or failing[0] == n:
                for value in values[n]:
                    counts[facet][value] += count
    return total, counts


def names_of(filters: Filter, facet: str) -> tuple[str, ...]:
    """Return the accepted values of a facet, as given; none for all."""
    given: str | tuple[str, ...] | None = getattr(filters, (_GROUPED | _NAMED)[facet])
    return (given,) if isinstance(given, str) else given or ()


def _count_named(db: Connection, where: _Condition, facet: str) -> Counter[str]:
    """Return how many memories that pass have each value of a facet in ``_NAMED``."""
    column = _NAMED[facet]
    index = f" INDEXED BY listed_{column}" if where.is_grouped and where.is_counted else _hint(db, where)
    query = f"""
        SELECT l.{column}, count(*) FROM listed AS l{index}
         WHERE {where.sql} AND l.{column} IS NOT NULL GROUP BY l.{column}"""
    counts: Counter[str] = Counter()
    for value, count in db.execute(query, where.values):
        for name in split_tags(value) if facet == "tag" else [value]:
            counts[name] += count
    return counts


def _count_by_content(
    db: Connection, sealer: Sealer, tenant: str, filters: Filter, now: int, of: Collection[str]
) -> tuple[int, dict[str, Counter[str]]]:
    """Count as ``facet_counts`` does, for a filter that bodies decide."""
    facets = {**_GROUPED, **_NAMED}
    opened = replace(filters, **{name: None if facet in _SINGLE else () for facet, name in facets.items()})
    columns = ", ".join(f"l.{'tags' if facet == 'tag' else facet}" for facet in facets)
    where = _Condition(tenant, opened, now)

    def groups() -> Iterator[tuple[list[Sequence[str]], int]]:
        for row in _with_content(db, sealer, where, f"l.expires_at, {columns}", "l.arrival"):
            expires_at, scope, status, tier, kind, trust, *others, tags = row
            if status == Status.ACTIVE and expires_at is not None and expires_at <= now:
                status = Status.EXPIRED.value
            label = (_LABELS[trust],) if trust in _LABELS else ()
            names = [(name,) if name else () for name in others]
            yield [(scope,), (status,), (tier,), (kind,), label, *names, split_tags(tags) if tags else ()], 1

    return _count_groups(groups(), filters, of, facets)


def count_memories(db: Connection, tenant: str, scopes: ScopeRange | None, now: int) -> dict[str, Any]:
    """Return the numbers of memories that ``status`` shows, of all or of some scopes."""
    # What is on a branch is not counted with main.
    each, below = ((SHARED_SCOPE,), SHARED_SCOPE) if scopes is None else (scopes.each, scopes.below)
    every = Filter(scopes=each, below=below, include_sensitive=True)
    where = _Condition(tenant, every, now)
    by: dict[str, dict[str, int]] = {f"by_{name}": {} for name in _GROUPED if name != "author"}
    recipes: dict[str, Counter[str]] = {}
    sensitive = without = 0
    query = f"""
        SELECT {_COUNTED}, l.model, l.recipe, count(*), sum(CASE WHEN {_LAPSED} THEN 1 ELSE 0 END)
          FROM listed AS l INDEXED BY listed_counts WHERE {where.sql} GROUP BY {_COUNTED}, l.model, l.recipe"""

    def add(name: str, value: str, number: int) -> None:
        counts = by[f"by_{name}"]
        counts[value] = counts.get(value, 0) + number

    for row in db.execute(query, where.values):
        scope, status, sensitivity, tier, kind, trust, content_type, source, _, model, recipe, count, lapsed = row
        lapsed = int(lapsed) if status == Status.ACTIVE else 0
        number = count - lapsed
        if lapsed:
            add("status", Status.EXPIRED.value, lapsed)
        if number:
            add("status", status, number)
        if status != Status.ACTIVE or not number:
            continue
        add("scope", scope, number)
        add("tier", tier, number)
        add("kind", kind, number)
        add("content_type", content_type, number)
        add("source", source, number)
        if trust in _LABELS:
            add("trust", _LABELS[trust], number)
        sensitive += number * (sensitivity == "sensitive")
        without += number * (model is None)
        if model is not None:
            recipes.setdefault(model, Counter())[recipe or ""] += number
    live = _Condition(tenant, replace(every, statuses=(Status.ACTIVE.value,)), now)
    by["by_category"] = _count_named(db, live, "category")
    query = f"SELECT sum({_IMPORTANCE}) FROM listed AS l WHERE {live.sql}"
    importance = db.execute(query, live.values).fetchone()[0] or 0
    query = f"""
        SELECT count(*) FROM records r INDEXED BY records_by_key CROSS JOIN listed l
         WHERE r.tenant = :tenant AND r.key IS NOT NULL AND l.arrival = r.arrival AND l.kind = 'state' AND {live.sql}"""
    (topics,) = db.execute(query, live.values).fetchone()
    number = by["by_status"].get(Status.ACTIVE, 0)
    return {
        **{name: dict(sorted(counts.items())) for name, counts in by.items()},
        "live": number,
        "total": sum(by["by_status"].values()),
        "retired": by["by_status"].get(Status.RETIRED, 0),
        "topics": topics,
        "sensitive": sensitive,
        "average_importance": round(float(importance) / 10_000 / number, 4) if number else 0.0,
        "vectors_pending": without,
        "vectors_by_embedder": {model: counts.total() for model, counts in sorted(recipes.items()) if counts.total()},
        "vectors_by_recipe": recipes,
    }
