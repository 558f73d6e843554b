"""The rows of an index: one memory version each, by column, and the filter by which a reader sees them.

A row is never rewritten: a new version is a new row, and the old row is dead. Only `keep` renumbers rows; it drops the
dead ones. A mask is computed from columns only, before any ranking.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from keepward.core.memory import IMPORTANCE_DECAY_PER_DAY, MIN_IMPORTANCE
from keepward.core.query import Filter
from keepward.core.value import name_forms
from keepward.ports.store import RankingRow

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

_FIRST: Final = 64
#: Bytes of an id, with its entries in a list and a dict.
_ID_BYTES: Final = 180
_TEXT: Final = ("scope", "tier", "kind", "content_type", "subject", "category", "session", "speaker")
_NEVER: Final = np.iinfo(np.int64).max
_DAY: Final = 86_400_000_000
#: Columns in which None means never.
_INSTANTS: Final = ("expires_at", "idle_since")
_NUMBERS: Final[dict[str, type]] = {
    "version": np.int32,
    "position": np.int64,
    "trust": np.int8,
    "sensitive": np.bool_,
    "importance": np.float32,
    "created_at": np.int64,
}


class RowFilter(Filter):
    """The entries that may be seen, counted and returned."""

    #: Microseconds since 1970, UTC. Entries with expires_at <= now are excluded, and importance decays until now.
    now: int
    min_trust: int = 0


class GrowableArray:
    """One numpy array with spare rows: most appends do not copy the earlier rows.

    `view` contains the rows so far and is invalid after the next append.
    """

    __slots__ = ("_data", "_len")

    def __init__(self, dtype: npt.DTypeLike, shape: tuple[int, ...] = ()) -> None:
        self._data: npt.NDArray[Any] = np.zeros((_FIRST, *shape), dtype=dtype)
        self._len = 0

    def __len__(self) -> int:
        return self._len

    @property
    def view(self) -> npt.NDArray[Any]:
        return self._data[: self._len]

    @property
    def nbytes(self) -> int:
        return self._data.nbytes

    def extend(self, rows: npt.ArrayLike) -> None:
        """Append rows, converted to the dtype of the array."""
        values = np.asarray(rows, dtype=self._data.dtype)
        needed = self._len + len(values)
        if needed > len(self._data):
            room = max(len(self._data) * 5 // 4, needed)
            data = np.zeros((room, *self._data.shape[1:]), dtype=self._data.dtype)
            data[: self._len] = self.view
            self._data = data
        self._data[self._len : needed] = values
        self._len = needed

    def put(self, rows: npt.NDArray[Any]) -> None:
        """Replace all rows, without spare rows."""
        values = np.ascontiguousarray(rows, dtype=self._data.dtype)
        self._len = len(values)
        self._data = values if len(values) else np.zeros((_FIRST, *values.shape[1:]), dtype=values.dtype)


class Columns:
    """One interned column for each field that filters or ranks."""

    __slots__ = ("_codes", "_columns", "_rows", "_tag_codes", "_tag_rows", "ids")

    def __init__(self) -> None:
        self.ids: list[str] = []
        #: The newest row of each id.
        self._rows: dict[str, int] = {}
        self._codes: dict[str, dict[str, int]] = {name: {} for name in (*_TEXT, "tag")}
        self._columns: dict[str, GrowableArray] = {name: GrowableArray(np.int32) for name in _TEXT}
        self._columns |= {name: GrowableArray(dtype) for name, dtype in _NUMBERS.items()}
        self._columns |= {name: GrowableArray(np.int64) for name in _INSTANTS}
        self._columns["live"] = GrowableArray(np.bool_)
        self._tag_rows = GrowableArray(np.int32)
        self._tag_codes = GrowableArray(np.int32)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name].view

    @property
    def nbytes(self) -> int:
        arrays = (*self._columns.values(), self._tag_rows, self._tag_codes)
        return _ID_BYTES * len(self.ids) + sum(array.nbytes for array in arrays)

    def names(self, column: str) -> Sequence[str]:
        """Interned values of a text column by code."""
        return tuple(self._codes[column])

    def extend(self, entries: Sequence[RankingRow]) -> None:
        """Append entries. Their ids must be unique and have no live row."""
        first = len(self.ids)
        fields = dict(zip(RankingRow._fields, zip(*entries, strict=True), strict=True))
        for name in _TEXT:
            codes, values = self._codes[name], fields[name]
            for value in dict.fromkeys(values):
                if value is not None:
                    codes.setdefault(value, len(codes))
            self._columns[name].extend([-1 if value is None else codes[value] for value in values])
        for name in _NUMBERS:
            self._columns[name].extend(fields[name])
        for name in _INSTANTS:
            self._columns[name].extend([_NEVER if at is None else at for at in fields[name]])
        self._columns["live"].extend(np.ones(len(entries), dtype=np.bool_))
        tagged = [(first + n, tag) for n, tags in enumerate(fields["tags"]) for tag in tags]
        if tagged:
            codes = self._codes["tag"]
            self._tag_rows.extend([row for row, _ in tagged])
            self._tag_codes.extend([codes.setdefault(tag, len(codes)) for _, tag in tagged])
        self.ids.extend(fields["id"])
        self._rows.update(zip(fields["id"], range(first, len(self.ids)), strict=True))

    def mark_deleted(self, ids: Sequence[str]) -> int:
        """Mark the rows of these ids as dead; return their number. Unknown ids are ignored."""
        rows = self.rows(ids)
        rows = rows[rows >= 0]
        self["live"][rows] = False
        # An id may be named twice.
        return len(set(rows.tolist()))

    def rows(self, ids: Iterable[str]) -> Places:
        """Return the live row of each id, or -1. Only the newest row of an id can be live."""
        rows = np.array([self._rows.get(name, -1) for name in ids], dtype=np.intp)
        if len(self):
            rows[~self["live"][rows]] = -1
        return rows

    def keep(self, rows: Places, new_rows: Rows) -> None:
        """Drop all rows but these (ascending). `new_rows` maps each old row to its new number, or to -1."""
        for column in self._columns.values():
            column.put(column.view[rows])
        tag_rows = new_rows[self._tag_rows.view]
        self._tag_codes.put(self._tag_codes.view[tag_rows >= 0])
        self._tag_rows.put(tag_rows[tag_rows >= 0])
        self.ids = [self.ids[row] for row in rows.tolist()]
        self._rows = {name: row for row, name in enumerate(self.ids)}

    def importance(self, rows: Places, now: int) -> npt.NDArray[np.float64]:
        """Return the decayed importance of rows at an instant, like ``importance_at`` of the core."""
        base = self["importance"][rows].astype(np.float64).round(4)
        days = np.maximum(now - self["idle_since"][rows], 0) / _DAY
        return np.asarray(
            np.maximum(base * np.exp(-IMPORTANCE_DECAY_PER_DAY * days), np.minimum(base, MIN_IMPORTANCE)).round(4)
        )

    def _among(self, column: str, values: Sequence[str]) -> Mask:
        known = [code for value in values if (code := self._codes[column].get(value)) is not None]
        wanted = np.zeros(len(self._codes[column]) + 1, dtype=np.bool_)
        wanted[known] = True
        # Code -1 (no value) reads the last cell, which is False.
        return np.asarray(wanted[self[column]], dtype=np.bool_)

    def mask(self, allowed: RowFilter) -> Mask:
        """Rows that are live and satisfy every condition except expiry."""
        mask = self["live"].copy()
        sets: dict[str, Sequence[str]] = {"scope": allowed.scopes, "tier": allowed.tiers, "kind": allowed.kinds}
        sets["content_type"] = allowed.content_types
        for name in ("subject", "category", "session"):
            value = getattr(allowed, name)
            sets[name] = () if value is None else name_forms([value])
        for name, values in sets.items():
            if values:
                mask &= self._among(name, values)
        if allowed.tags:
            codes = [code for tag in name_forms(allowed.tags) if (code := self._codes["tag"].get(tag)) is not None]
            tagged = np.zeros(len(self), dtype=np.bool_)
            tagged[self._tag_rows.view[np.isin(self._tag_codes.view, codes)]] = True
            mask &= tagged
        if allowed.min_importance:
            visible = np.flatnonzero(mask)
            mask[visible] = self.importance(visible, allowed.now) >= round(allowed.min_importance, 4)
        if allowed.min_trust:
            mask &= self["trust"] >= allowed.min_trust
        if not allowed.include_sensitive:
            mask &= ~self["sensitive"]
        if allowed.ids is not None:
            rows, among = self.rows(allowed.ids), np.zeros(len(self), dtype=np.bool_)
            among[rows[rows >= 0]] = True
            mask &= among
        return mask
