"""One interned column per filterable field, and the mask of rows a reader may see.

Invariants
(1) a row is never rewritten; a new version is a new row and the old row is dead.
(2) a mask is computed from columns only, before any ranking; what it hides takes no part in statistics.
(3) rows are renumbered only by `keep`, which drops the dead ones.
(4) codes take as few bytes as their number allows: most columns hold one byte a row.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from keepward.model.memory import FLOOR, IDLE_RATE
from keepward.ports.searching import Profile
from keepward.retrieval.entries import Allowed, Entry
from keepward.retrieval.growable import Codes, Growable
from keepward.retrieval.ids import Ids

Mask = npt.NDArray[np.bool_]

_TEXT: Final = ("scope", "tier", "kind", "content_type", "subject", "category", "session", "speaker")
_NEVER: Final = np.iinfo(np.int64).max
_DAY: Final = 86_400_000_000
#: None stands for never.
_INSTANTS: Final = ("expires_at", "idle_since")
_NUMBERS: Final[dict[str, type]] = {
    "version": np.int32,
    "position": np.int64,
    "trust": np.int8,
    "sensitive": np.bool_,
    "importance": np.float32,
    "created_at": np.int64,
}


class Columns:
    """Rows of one tenant in order of application."""

    __slots__ = ("_codes", "_columns", "_tag_codes", "_tag_rows", "ids")

    def __init__(self) -> None:
        self.ids = Ids()
        self._codes: dict[str, dict[str, int]] = {name: {} for name in (*_TEXT, "tag")}
        self._columns: dict[str, Growable] = {name: Codes() for name in _TEXT}
        self._columns |= {name: Growable(dtype) for name, dtype in _NUMBERS.items()}
        self._columns |= {name: Growable(np.int64) for name in _INSTANTS}
        self._columns["live"] = Growable(np.bool_)
        self._tag_rows = Growable(np.int32)
        self._tag_codes = Growable(np.int32)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name].view

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + sum(c.nbytes for c in (*self._columns.values(), self._tag_rows, self._tag_codes))

    def names(self, column: str) -> Sequence[str]:
        """Interned values of a text column by code."""
        return tuple(self._codes[column])

    def extend(self, entries: Sequence[Entry | Profile]) -> None:
        """Append entries; ids must be unique among them and not live yet."""
        if len(entries) == 1:
            self._append(entries[0])
            return
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
        for name in _INSTANTS:
            self._columns[name].extend([_NEVER if (at := getattr(e, name)) is None else at for e in entries])
        self._columns["live"].extend(np.ones(len(entries), dtype=np.bool_))
        tagged = [(first + n, tag) for n, entry in enumerate(entries) for tag in entry.tags]
        if tagged:
            codes = self._codes["tag"]
            self._tag_rows.extend([row for row, _ in tagged])
            self._tag_codes.extend([codes.setdefault(tag, len(codes)) for _, tag in tagged])
        self.ids.extend([entry.id for entry in entries])

    def _append(self, entry: Entry | Profile) -> None:
        """Append one entry: what ``extend`` does, without a list and an array for each cell."""
        columns = self._columns
        for name in _TEXT:
            codes, value = self._codes[name], getattr(entry, name)
            code = -1 if value is None else codes.setdefault(value, len(codes))
            columns[name].append(code)
        for name in _NUMBERS:
            columns[name].append(getattr(entry, name))
        for name in _INSTANTS:
            columns[name].append(_NEVER if (at := getattr(entry, name)) is None else at)
        columns["live"].append(True)
        for tag in entry.tags:
            codes = self._codes["tag"]
            self._tag_rows.append(len(self))
            self._tag_codes.append(codes.setdefault(tag, len(codes)))
        self.ids.extend((entry.id,))

    def kill(self, ids: Sequence[str]) -> int:
        """Mark the rows of these ids dead, unknown ones aside; return how many there were."""
        live = self._columns["live"].view
        count = 0
        for row in self.ids.newest(ids).tolist():
            # Only the newest row of an id can be live; an id may be named twice.
            if row >= 0 and live[row]:
                live[row] = False
                count += 1
        return count

    def rows(self, ids: Sequence[str]) -> npt.NDArray[np.intp]:
        """Return the live row of each id, -1 where it has none."""
        rows = self.ids.newest(ids)
        if len(self):
            rows[~self._columns["live"].view[rows]] = -1
        return rows

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
        self.ids.keep(rows, new_rows)

    def importance(self, rows: npt.NDArray[np.intp], now: int) -> npt.NDArray[np.float64]:
        """Return what the importance of rows has faded to at an instant, as ``model.memory.importance_at`` does."""
        base = self["importance"][rows].astype(np.float64).round(4)
        days = np.maximum(now - self["idle_since"][rows], 0) / _DAY
        return np.asarray(np.maximum(base * np.exp(-IDLE_RATE * days), np.minimum(base, FLOOR)).round(4))

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
            shown = np.flatnonzero(mask)
            mask[shown] = self.importance(shown, allowed.now) >= round(allowed.min_importance, 4)
        if allowed.min_trust is not None:
            mask &= self["trust"] >= allowed.min_trust
        if not allowed.include_sensitive:
            mask &= ~self["sensitive"]
        if allowed.exclude:
            rows = self.rows(sorted(allowed.exclude))
            mask[rows[rows >= 0]] = False
        return mask
