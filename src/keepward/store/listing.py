"""What lists and counts of the newest versions read.

Rows are not verified here. A caller reads the memories that it shows by ``records``, which verifies them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from keepward.errors import Tampered
from keepward.model.codec import decode_record
from keepward.model.memory import Record
from keepward.model.trust import Trust
from keepward.model.value import name_forms
from keepward.store.rows import listed, opened
from keepward.store.sql import COUNTED, Snapshot

#: Filters of a list that name any of several values, each by a column of its own.
SEVERAL = (*COUNTED, "tag", "key", "job")


class ListedRow(NamedTuple):
    """The columns of one record that a list is ordered by."""

    id: str
    arrival: int
    #: Number of the commit of its newest version.
    changed: int
    status: str
    trust: int
    tier: str
    kind: str
    scope: str
    source: str


class Written(NamedTuple):
    """One version, and when and by whom it was written."""

    memory_id: str
    #: Microseconds since 1970.
    at: int
    actor: str
    #: The fields of the version, as its payload has them.
    fields: Mapping[str, Any]


class ListReads(Snapshot):
    """Lists and counts of the newest versions; a part of ``Reader``."""

    def scopes(self, tenant: str) -> list[str]:
        """Return the scopes that have memories, whatever their status."""
        return [scope for (scope,) in self._run("scopes", tenant)]

    def listed(self, tenant: str, filters: Mapping[str, Any]) -> list[ListedRow]:
        """Return the rows of the memories that pass; ``filters`` come from ``list_filters``."""
        return [ListedRow._make(row) for row in self._run("listed_rows", tenant, **filters)]

    def count_by(self, tenant: str, column: str, filters: Mapping[str, Any]) -> dict[str, int]:
        """Return how many of the memories that pass have each value of a column."""
        counts: dict[str, int] = {}
        for cell, count in self._run(f"count_by_{column}", tenant, **filters):
            for value in _values(column, cell):
                counts[value] = counts.get(value, 0) + count
        return counts

    def contents(
        self, tenant: str, filters: Mapping[str, Any], *, part: str = ""
    ) -> Iterator[tuple[ListedRow, Record | None]]:
        """Yield the memories that pass with their content; None where that does not match its seal.

        Memories without ``part`` in any field, whatever its case, are left out.
        """
        width = len(ListedRow._fields)
        needle = json.dumps(part, ensure_ascii=False)[1:-1].casefold()
        with self._reading(tenant) as db:
            for row in db.stream("listed_contents", tenant=tenant, **filters):
                try:
                    payload = opened(self._sealer, tenant.encode(), row[width:])
                    if needle and needle not in payload.decode().casefold():
                        continue
                    record = decode_record(payload)
                except (Tampered, UnicodeDecodeError):
                    record = None
                yield ListedRow._make(row[:width]), record

    def authors(self, tenant: str, filters: Mapping[str, Any]) -> dict[str, str]:
        """Return the author of each memory that passes, by id."""
        rows = self._run("listed_payloads", tenant, **filters)
        return {name: fields["author"] for name, payload in rows if (fields := _object(payload)).get("author")}

    def written(self, tenant: str, since: int, until: int, filters: Mapping[str, Any]) -> Iterator[Written]:
        """Yield the versions that said something between two instants, of the memories that pass, oldest first."""
        with self._reading(tenant) as db:
            for name, version, payload, at, details in db.stream(
                "written", tenant=tenant, written_since=since, written_until=until, **filters
            ):
                if fields := _object(payload):
                    actor = _object(details).get("actor") if version > 1 else None
                    yield Written(name, at, actor or fields.get("author", ""), fields)

    def predecessors(self, tenant: str) -> dict[str, list[str]]:
        """Return the ids of superseded memories by the id of what superseded them."""
        found: dict[str, list[str]] = {}
        for name, payload in self._run("superseded_payloads", tenant):
            if by := _object(payload).get("superseded_by"):
                found.setdefault(by, []).append(name)
        return found


def list_filters(
    *,
    visible: Sequence[str],
    include_sensitive: bool,
    any_of: Mapping[str, Sequence[str]],
    ids: Collection[str] | None,
    since: int | None,
    until: int | None,
    now: int,
) -> dict[str, Any]:
    """Return the filters of a list as its statements take them; instants are microseconds since 1970."""
    several = {name: any_of.get(name, ()) for name in SEVERAL}
    several |= {name: name_forms(several[name]) for name in ("subject", "category", "session", "tag")}
    several["trust"] = [str(int(each)) for each in Trust if each.label in several["trust"]]
    several["tag"] = [json.dumps(tag, ensure_ascii=False) for tag in several["tag"]]
    return {
        **{f"any_{name}": listed(values) for name, values in several.items()},
        "visible": listed(visible),
        "include_sensitive": int(include_sensitive),
        "ids": None if ids is None else listed(ids),
        "since": since,
        "until": until,
        "now": now,
    }


def _values(column: str, cell: Any) -> Sequence[str]:
    """Return the values that a cell of a column stands for; none for a damaged one."""
    if cell is None:
        return ()
    if column == "trust":
        return [each.label for each in Trust if each == cell]
    if column == "tag":
        try:
            tags = json.loads(cell)
        except ValueError:
            return ()
        return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else ()
    return (cell,)


def _object(payload: bytes | None) -> Mapping[str, Any]:
    """Return the object that a payload holds; an empty one where it was erased or damaged."""
    try:
        found = json.loads(payload or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
