"""One interned column per filterable field, and the mask of rows a reader may see.

Invariants
(1) a row is never rewritten; a new version is a new row and the old row is dead.
(2) a mask is computed from columns only, before any ranking; what it hides takes no part in statistics.
(3) rows are renumbered only by `keep`, which drops the dead ones.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from keepward.ports.searching import Profile
from keepward.retrieval.entries import Allowed, Entry
from keepward.retrieval.growable import Growable

Mask = npt.NDArray[np.bool_]

_TEXT: Final = ("scope", "tier", "kind", "content_type", "subject", "category", "session", "speaker")
_NEVER: Final = np.iinfo(np.int64).max
_NUMBERS: Final[dict[str, type]] = {
    "version": np.int32,
    "position": np.int64,
    "trust": np.int8,
    "sensitive": np.bool_,
    "importance": np.float32,
    "confidence": np.float32,
    "created_at": np.int64,
}


class Columns:
    """Rows of one tenant in order of application."""

    __slots__ = ("_codes", "_columns", "_tag_codes", "_tag_rows", "ids", "row_of")

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.row_of: dict[str, int] = {}
        self._codes: dict[str, dict[str, int]] = {name: {} for name in (*_TEXT, "tag")}
        self._columns: dict[str, Growable] = {name: Growable(np.int32) for name in _TEXT}
        self._columns |= {name: Growable(dtype) for name, dtype in _NUMBERS.items()}
        self._columns |= {"expires_at": Growable(np.int64), "live": Growable(np.bool_)}
        self._tag_rows = Growable(np.int32)
        self._tag_codes = Growable(np.int32)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name].view

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in (*self._columns.values(), self._tag_rows, self._tag_codes))

    def names(self, column: str) -> Sequence[str]:
        """Interned values of a text column by code."""
        return tuple(self._codes[column])

    def extend(self, entries: Sequence[Entry | Profile]) -> None:
        """Append entries; ids must be unique among them and not live yet."""
        first = len(self.ids)
        for name in _TEXT:
            codes = self._codes[name]
            values = list(map(attrgetter(name), entries))
            for value in dict.fromkeys(values):
                if value is not None:
                    codes.setdefault(value, len(codes))
            self._columns[name].extend([-1 if v is None else codes[v] for v in values])
        for name in _NUMBERS:
            self._columns[name].extend(list(map(attrgetter(name), entries)))
        self._columns["expires_at"].extend([_NEVER if e.expires_at is None else e.expires_at for e in entries])
        self._columns["live"].extend(np.ones(len(entries), dtype=np.bool_))
        tagged = [(first + n, tag) for n, entry in enumerate(entries) for tag in entry.tags]
        if tagged:
            codes = self._codes["tag"]
            self._tag_rows.extend([row for row, _ in tagged])
            self._tag_codes.extend([codes.setdefault(tag, len(codes)) for _, tag in tagged])
        for n, entry in enumerate(entries, start=first):
            self.row_of[entry.id] = n
        self.ids.extend(entry.id for entry in entries)

    def kill(self, row: int) -> None:
        """Mark a row dead and forget its id."""
        self._columns["live"].view[row] = False
        if self.row_of.get(self.ids[row]) == row:
            del self.row_of[self.ids[row]]

    def keep(self, rows: npt.NDArray[np.intp], new_rows: npt.NDArray[np.int32]) -> None:
        """Keep these rows (ascending); `new_rows` maps each old row to its new number or -1."""
        for column in self._columns.values():
            column.keep(rows)
        tag_rows = new_rows[self._tag_rows.view]
        kept = np.flatnonzero(tag_rows >= 0)
        self._tag_codes.keep(kept)
        moved = tag_rows[kept]
        self._tag_rows.keep(np.arange(0))
        self._tag_rows.extend(moved)
        self.ids = [self.ids[row] for row in rows.tolist()]
        self.row_of = {self.ids[n]: n for n in range(len(self.ids))}

    def _among(self, column: str, values: frozenset[str]) -> Mask:
        known = sorted(code for value in values if (code := self._codes[column].get(value)) is not None)
        if len(known) <= 4:
            mask = np.zeros(len(self), dtype=np.bool_)
            for code in known:
                mask |= self[column] == code
            return mask
        wanted = np.zeros(len(self._codes[column]) + 1, dtype=np.bool_)
        wanted[known] = True
        # Code -1 (no value) reads the last cell, which stays False.
        return np.asarray(wanted[self[column]], dtype=np.bool_)

    def _tagged(self, tags: frozenset[str]) -> Mask:
        codes = [code for tag in tags if (code := self._codes["tag"].get(tag)) is not None]
        mask = np.zeros(len(self), dtype=np.bool_)
        mask[self._tag_rows.view[np.isin(self._tag_codes.view, codes)]] = True
        return mask

    def mask(self, allowed: Allowed) -> Mask:
        """Rows that are live and meet every condition but expiry."""
        mask = self["live"].copy()
        sets = {"scope": allowed.scopes, "tier": allowed.tiers, "kind": allowed.kinds}
        sets["content_type"] = allowed.content_types
        for name, one in (("subject", allowed.subject), ("category", allowed.category), ("session", allowed.session)):
            sets[name] = None if one is None else frozenset((one,))
        for name, values in sets.items():
            if values is not None:
                mask &= self._among(name, values)
        if allowed.tags is not None:
            mask &= self._tagged(allowed.tags)
        if allowed.min_importance is not None:
            mask &= self["importance"] >= np.float32(allowed.min_importance)
        if allowed.min_trust is not None:
            mask &= self["trust"] >= allowed.min_trust
        if not allowed.include_sensitive:
            mask &= ~self["sensitive"]
        for excluded in allowed.exclude:
            if (row := self.row_of.get(excluded)) is not None:
                mask[row] = False
        return mask
