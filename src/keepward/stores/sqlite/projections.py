"""Verification of what is computed from the journal: records, features, and the tables beside them, in one pass.

Invariants
(1) What was checked of an event is not checked again: an event whose hash, content and seal held in the chain holds
    when its record is compared with it, since all is read from one snapshot. Where it did not, or the chain was not
    read to its end, the event is checked here.
(2) Memory use does not grow with the store: tables computed from records are compared by sums of hashes, and row by
    row only where the sums differ.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from array import array
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from keepward.errors import Tampered
from keepward.model.journal import Fault
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.contents import Content, content_of
from keepward.stores.sqlite.fingerprint import Fingerprint
from keepward.stores.sqlite.rows import WIDTH, Row, place_bits, placed_marks, record_of, unpack_marks
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
#: Tables computed from records and features, by their columns after the tenant.
COMPUTED = {"lineage": "parent, child", "aliases": "alias, id", "attachments": "ref, id", "marks": "mark, position"}
#: Rows of marks that are hashed together.
_TOGETHER = 20_000


class _Sum:
    """An order-free fingerprint of rows of texts."""

    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0

    def add(self, row: Row) -> None:
        self.count += 1
        # What Python writes of texts, numbers, bytes and None says which is which, and is made in a moment.
        self.total += int.from_bytes(hashlib.sha256(repr(tuple(row)).encode("utf-8", "surrogatepass")).digest(), "big")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Sum) and (self.count, self.total) == (other.count, other.total)

    __hash__ = None  # type: ignore[assignment]


class _Marks:
    """A fingerprint of rows of marks: six a memory, so that to hash them one by one would take longer than all else."""

    __slots__ = ("_counts", "_places", "_positions", "_raw", "sum")

    def __init__(self, key: bytes) -> None:
        self.sum = Fingerprint(key)
        self._raw = bytearray()
        self._counts, self._positions, self._places = array("q"), array("q"), array("q")

    def add(self, raw: bytes, place: str, position: int) -> None:
        """Add the rows that the packed marks of a memory call for."""
        count = len(raw) // 8
        self._raw += raw[: count * 8]
        self._counts.append(count)
        self._positions.append(position)
        self._places.append(place_bits(place))
        if len(self._raw) >= 8 * _TOGETHER:
            self.settle()

    def settle(self) -> None:
        """Take into the sum what was added."""
        import numpy as np

        counts, positions, places = (np.array(each) for each in (self._counts, self._positions, self._places))
        marks = np.frombuffer(self._raw, dtype="<i8").astype(np.int64) ^ np.repeat(places, counts)
        self.sum.add(marks, np.repeat(positions, counts))
        self._raw = bytearray()
        self._counts, self._positions, self._places = array("q"), array("q"), array("q")


class Projections:
    """The checks of one tenant; ``records`` comes first and makes what the others compare with."""

    def __init__(self, connection: sqlite3.Connection, sealer: Sealer, tenant: str, counts: dict[str, int]) -> None:
        self._db = connection
        self._sealer = sealer
        self._tenant = tenant
        self._raw = tenant.encode()
        self._counts = counts
        #: Places of events that do not hold; None while that is not known.
        self.broken: Collection[tuple[int, int]] | None = None
        self._sums = {table: _Sum() for table in COMPUTED if table != "marks"}
        self._key = sealer.row("fingerprint", tenant)
        self._marks = _Marks(self._key)
        #: What ``records`` found out about features on its way.
        self._strange: list[Fault] = []
        self._unsealed: list[str] = []
        #: Features of records.
        self._counted = 0

    def _rows(self, name: str, **values: Any) -> sqlite3.Cursor:
        return self._db.execute(SQL[name], {"tenant": self._tenant, **values})

    def records(self) -> Iterator[Fault]:
        """Records equal what the newest events say."""
        for row in self._rows("standing_rows"):
            self._counts["records"] += 1
            self._features(row)
            try:
                content = self._content(row)
            except Tampered as fault:
                yield Fault(check="records", row=f"records {self._tenant}/{row[0]}", detail=str(fault))
                continue
            if content.derived_from or content.aliases or content.blob is not None:
                for table, total in self._sums.items():
                    for due in _due(table, content):
                        total.add(due)
            if content.active and row[34] is not None:
                self._marks.add(row[34], content.place, row[4])
        for (memory_id,) in self._rows("unrecorded"):
            yield Fault(check="records", row=f"records {self._tenant}/{memory_id}", detail="its record is missing")

    def _content(self, row: Row) -> Content:
        """Return what a record's event says.

        Raises:
            Tampered: anything about the row does not hold.
        """
        payload = row[27]
        if self.broken is None or payload is None or (row[2], row[3]) in self.broken:
            whole = self._rows("records_by_id", ids=json.dumps([row[0]])).fetchone()
            return Content.of(record_of(self._sealer, self._raw, whole))
        content = content_of(payload)
        if (content.id, content.version) != row[25:27]:
            raise Tampered("an event holds the content of another")
        if (content.id, content.version, row[28]) != (row[0], row[1], row[1]):
            raise Tampered("a record is not the newest version")
        if row[4] != row[2] * WIDTH + row[3] or row[5] != row[29]:
            raise Tampered("a record is out of place")
        if content.columns != row[6:25]:
            raise Tampered("a record's columns differ from its content")
        return content

    def _features(self, row: Row) -> None:
        """Check the features of a record; what is wrong is told in its own section."""
        sealer, features = self._sealer, row[30:38]
        if row[30] != row[1]:
            self._unfeatured(row[0], row[30])
        if row[30] is None:
            return
        self._counted += 1
        if not sealer.holds_row(row[38], "features", self._tenant, row[0], *features):
            self._unsealed.append(row[0])
        if sealer.active and row[40] != sealer.bond(self._tenant, *row[:25], *features, row[39]):
            detail = "they do not belong to the record as it stands"
            self._strange.append(Fault(check="features", row=self._name("features", row[:1]), detail=detail))

    def _unfeatured(self, memory_id: str, version: int | None) -> None:
        detail = f"they are {'missing' if version is None else 'of another version'}; `rebuild` makes them"
        self._strange.append(Fault(check="features", row=self._name("features", (memory_id,)), detail=detail))

    def computed(self, table: str) -> Iterator[Fault]:
        """A table equals what is computed from the records."""
        query = f"SELECT {COMPUTED[table]} FROM {table} WHERE tenant = ?"
        if self._equal(table, self._db.execute(query, (self._tenant,))):
            return
        rows, due = set(self._db.execute(query, (self._tenant,))), set()
        for row in self._rows("standing_rows"):
            with suppress(Tampered):
                content = self._content(row)
                if table != "marks":
                    due.update(_due(table, content))
                elif content.active and row[34] is not None:
                    due.update((mark, row[4]) for mark in placed_marks(content.place, unpack_marks(row[34])))
        for row in sorted(due - rows):
            yield Fault(check=table, row=self._name(table, row), detail="the row is missing; `rebuild` writes it")
        for row in sorted(rows - due):
            yield Fault(check=table, row=self._name(table, row), detail="no memory says so; `rebuild` removes it")

    def _equal(self, table: str, rows: sqlite3.Cursor) -> bool:
        """Count the rows of a table, and compare them with what is due."""
        if table != "marks":
            held = _Sum()
            for row in rows:
                held.add(row)
            self._counts[table] = self._counts.get(table, 0) + held.count
            return held == self._sums[table]
        import numpy as np

        found = Fingerprint(self._key)

        while part := rows.fetchmany(_TOGETHER):
            # An array of its own kind takes whole numbers alone.
            cells = np.array(array("q", chain.from_iterable(part)), dtype=np.int64).reshape(-1, 2)
            found.add(np.ascontiguousarray(cells[:, 0]), np.ascontiguousarray(cells[:, 1]))
        self._counts[table] = self._counts.get(table, 0) + found.count
        self._marks.settle()
        return found == self._marks.sum

    def features(self) -> Iterator[Fault]:
        """Every record has features of its newest version, no others are there, and each row matches its seal."""
        held = self._db.execute("SELECT count(*) FROM features WHERE tenant = ?", (self._tenant,)).fetchone()[0]
        # Those of records were counted on the way.
        for row in self._rows("stray_features") if held != self._counted else ():
            self._unfeatured(row[0], row[1])
            if not self._sealer.holds_row(row[-1], "features", self._tenant, *row[:-1]):
                self._unsealed.append(row[0])
        self._counts["features"] += held
        yield from self._strange
        for memory_id in self._unsealed:
            yield Fault(check="seals", row=self._name("features", (memory_id,)), detail="its seal does not hold")

    def _name(self, table: str, row: tuple[Any, ...]) -> str:
        return f"{table} {self._tenant}/" + "/".join(str(cell) for cell in row)


def _due(table: str, content: Content) -> list[Row]:
    """Return the rows of a table of texts that one record calls for."""
    match table:
        case "lineage":
            return [(parent, content.id) for parent in dict.fromkeys(content.derived_from)]
        case "aliases":
            return [(alias, content.id) for alias in dict.fromkeys(content.aliases)]
    return [(content.blob, content.id)] if content.blob is not None else []
