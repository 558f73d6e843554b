"""Reads of lists and counts of newest versions.

Only content is verified here. A caller reads the memories that it shows by ``records``, which verifies them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from keepward.core.memory import Record
from keepward.core.principals import SHARED_SCOPE, Trust
from keepward.core.serialization import is_new_text
from keepward.core.value import name_forms, to_micros
from keepward.errors import Tampered
from keepward.storage.rows import MAX_EVENTS_PER_COMMIT, Body, RecordRow, json_array, parse_body, record_of
from keepward.storage.sql import MAX_CHARACTER, Snapshot

_TRUST = {int(each): each.label for each in Trust}
_NAMES = frozenset({"subject", "category", "session", "tag"})


class ListedRow(NamedTuple):
    """The fields of one memory that lists are ordered and counted by."""

    id: str
    arrival: int
    #: Number of the commit of its newest version.
    changed: int
    #: The status at the instant of the list: an active memory past its TTL is expired.
    status: str
    #: Rank of ``Trust``.
    trust: int
    tier: str
    kind: str
    scope: str
    source: str
    #: The author of its present text.
    author: str
    #: None if it is unreadable.
    body: Body | None

    def values(self, facet: str) -> Sequence[str]:
        """Return the values that the memory has of a facet."""
        if facet == "trust":
            return (_TRUST[self.trust],) if self.trust in _TRUST else ()
        if facet == "tag":
            return self.body.tags if self.body else ()
        value = getattr(self, facet, None) or getattr(self.body, facet, None)
        return (value,) if value else ()


class WrittenVersion(NamedTuple):
    """One version, with the instant of its commit and the author of its text."""

    memory_id: str
    #: Microseconds since 1970.
    at: int
    author: str
    #: Whether it has a new text; otherwise a rollback brought back an earlier one.
    is_new: bool
    #: The fields of the version, as its payload has them.
    fields: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The memories to list; an empty value or None means all. Instants are microseconds since 1970."""

    #: Exact scopes.
    visible: Sequence[str]
    include_sensitive: bool
    #: By facet, ``key`` or ``job``: any of these values.
    any_of: Mapping[str, Sequence[str]]
    ids: Collection[str] | None
    since: int | None
    until: int | None
    now: int

    def parameters(self) -> dict[str, Any]:
        """Return the parameters for the part that columns answer."""
        return {
            "visible": json_array(self.visible),
            "include_sensitive": int(self.include_sensitive),
            "until": self.until,
            "subject": json_array(name_forms(self.any_of.get("subject", ()))),
            "category": json_array(name_forms(self.any_of.get("category", ()))),
        }

    @cached_property
    def _conditions(self) -> list[tuple[str, frozenset[str]]]:
        found = [(name, names) for name, names in self.any_of.items() if names]
        return [(name, frozenset(name_forms(names) if name in _NAMES else names)) for name, names in found]

    def accepts(self, row: ListedRow) -> bool:
        """Whether a row has the facets and its text was written in time; the scope is not checked."""
        written_at = row.body.written_at if row.body else None
        return (
            (self.since is None or written_at is None or written_at >= self.since)
            and (self.until is None or written_at is None or written_at < self.until)
            and all(not names.isdisjoint(row.values(name)) for name, names in self._conditions)
        )


class ListReads(Snapshot):
    """Lists and counts of the newest versions; a part of ``Reader``."""

    def scopes(self, tenant: str) -> list[str]:
        """Return the scopes that have memories, whatever their status."""
        return [scope for (scope,) in self._run("scopes", tenant)]

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
        counts = {name: int(visible) for name, visible, _ in rows if visible}
        return counts, sum(read for *_, read in rows) >= limit

    def scopes_in_other_case(self, tenant: str, scopes: Collection[str]) -> list[tuple[str, str]]:
        """Return (scope, other) where the other has active memories and differs only in upper and lower case."""
        rows = self._run("scopes_in_other_case", tenant, scopes=json_array(scopes))
        return [(scope, other) for scope, *others in rows for other in others if other is not None]

    def list_rows(self, tenant: str, asked: Listing) -> list[ListedRow]:
        """Return the rows of the matching memories."""
        with self._reading(tenant) as db:
            stream = map(RecordRow._make, db.stream("listed", tenant=tenant, **asked.parameters()))
            return [row for row, _ in _matching_rows(stream, asked)]

    def contents(self, tenant: str, asked: Listing, *, part: str = "") -> Iterator[tuple[ListedRow, Record | None]]:
        """Yield the matching memories with their content; None if its seal does not match.

        Memories without ``part`` in any field, whatever its case, are left out.
        """
        needle = json.dumps(part, ensure_ascii=False)[1:-1].casefold()
        with self._reading(tenant) as db:
            stream = map(RecordRow._make, db.stream("listed", tenant=tenant, **asked.parameters()))
            for row, record in _matching_rows(stream, asked):
                try:
                    content = needle and record.has_valid_seal(self._sealer, tenant) and record.body.decode().casefold()
                    if content and needle not in content:
                        continue
                    yield row, record_of(self._sealer, tenant, record, record.version)
                except (Tampered, UnicodeDecodeError):
                    yield row, None

    def written(self, tenant: str, since: int, until: int, ids: Iterable[str]) -> Iterator[WrittenVersion]:
        """Yield the versions with new text between two instants, and those that bring one back, oldest first."""
        values = {"since": since, "until": until, "ids": json_array(ids)}
        with self._reading(tenant) as db:
            for name, op, payload, at in db.stream("written", tenant=tenant, **values):
                fields = _object(payload)
                # Another field than the text changes ``updated_at`` alone.
                is_new = bool(fields) and op != "revert" and is_new_text(fields)
                if fields and (is_new or op == "revert"):
                    yield WrittenVersion(name, at, fields.get("text_by") or fields.get("author", ""), is_new, fields)

    def predecessors(self, tenant: str) -> dict[str, list[str]]:
        """Return the ids of superseded memories by the id of their successor."""
        found: dict[str, list[str]] = {}
        for name, payload in self._run("superseded_bodies", tenant):
            body = parse_body(payload)
            if body is not None and body.superseded_by:
                found.setdefault(body.superseded_by, []).append(name)
        return found


def count_by(rows: Iterable[ListedRow], facet: str) -> Counter[str]:
    """Return how many of some memories have each value of a facet."""
    return Counter(value for row in rows for value in row.values(facet))


def _matching_rows(rows: Iterable[RecordRow], asked: Listing) -> Iterator[tuple[ListedRow, RecordRow]]:
    ids = None if asked.ids is None else frozenset(asked.ids)
    for row in rows:
        if ids is not None and row.id not in ids:
            continue
        body = parse_body(row.body)
        expired = row.status == "active" and row.expires_at is not None and row.expires_at <= asked.now
        status = "expired" if expired else row.status
        source, author = (body.source, body.said_by) if body else ("", "")
        cells = (
            row.id,
            row.arrival,
            row.position // MAX_EVENTS_PER_COMMIT,
            status,
            row.trust,
            row.tier,
            row.kind,
            row.scope,
        )
        made = ListedRow(*cells, source, author, body)
        if asked.accepts(made):
            yield made, row


def _object(payload: bytes | None) -> Mapping[str, Any]:
    """Return the object in a payload; an empty one if it was erased or is damaged."""
    try:
        found = json.loads(payload or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
