"""The rows of an index: one memory version each, by column, and which of them a reader may see.

Invariants
(1) A row is never rewritten; a new version is a new row and the old row is dead. Rows are renumbered only by `keep`,
    which drops the dead ones.
(2) A mask is computed from columns only, before any ranking.
(3) An id comes back as it was given. In sixteen bytes each: a hundred thousand ids under a dict take 18 MB, here 2.4.
(4) Codes take as few bytes as their number allows: most columns hold one byte a row.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from keepward.model.memory import FLOOR, IDLE_RATE
from keepward.model.patterns import regex
from keepward.model.value import name_forms
from keepward.ports.store import Profile

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]

_FIRST: Final = 64
_DOUBLING_UP_TO: Final = 16_384
_USUAL: Final = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
#: Newest rows that are looked through one by one, at most; to put rows in order costs one pass over all of them.
_APART: Final = 4_096
#: From so many ids on it is cheaper to put the newest rows in order first.
_MANY: Final = 16
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Which entries may be seen, counted and returned; conditions are joined by and.

    None means "no condition"; an empty set allows nothing. Instants are microseconds since 1970, UTC.
    """

    #: Exact scope paths that the reader sees.
    scopes: frozenset[str] | None
    #: Entries with expires_at <= now are out.
    now: int
    tiers: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    #: At least one of these.
    tags: frozenset[str] | None = None
    content_types: frozenset[str] | None = None
    subject: str | None = None
    category: str | None = None
    session: str | None = None
    #: Of what importance has faded to at ``now``.
    min_importance: float | None = None
    min_trust: int | None = None
    include_sensitive: bool = False
    exclude: frozenset[str] = frozenset()
    #: Of these ids alone.
    ids: frozenset[str] | None = None


class Growable:
    """One numpy array with room behind its rows: an append copies nothing that stands before it.

    Capacity doubles up to 16,384 rows and grows by an eighth beyond, so that spare room stays small. `view` shows the
    rows so far and is invalid after the next append.
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
            held = len(self._data)
            room = held * 2 if held < _DOUBLING_UP_TO else held + held // 8
            data = np.zeros((max(room, needed), *self._data.shape[1:]), dtype=self._data.dtype)
            data[: self._len] = self.view
            self._data = data
        self._data[self._len : needed] = values
        self._len = needed

    def put(self, rows: npt.NDArray[Any]) -> None:
        """Hold these rows and no others, without spare room."""
        kept = np.ascontiguousarray(rows, dtype=self._data.dtype)
        self._len = len(kept)
        self._data = kept if len(kept) else np.zeros((_FIRST, *kept.shape[1:]), dtype=kept.dtype)


class Codes(Growable):
    """Whole numbers from -1 on: one byte each, until a number comes that needs more."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(np.int8)

    def extend(self, rows: Any) -> None:
        """Append numbers."""
        if (largest := max(rows, default=0)) >= 1 << (8 * self._data.itemsize - 1):
            self._data = self._data.astype(np.min_scalar_type(-largest - 1))
        super().extend(rows)


class Ids:
    """The id of each row, and the way back from an id to its newest row; several rows may have one id.

    What is no UUID in its usual form stands as a text beside, under a hash. Rows are ordered by their ids' last 64
    bits, random in a UUID, and then by row; the newest rows stand apart until there are many.
    """

    __slots__ = ("_high", "_low", "_odd", "_order")

    def __init__(self) -> None:
        self._high = Growable(np.uint64)
        self._low = Growable(np.uint64)
        #: Ids that are no UUIDs, by row.
        self._odd: dict[int, str] = {}
        #: Rows in order, all but the newest.
        self._order: Places = np.empty(0, dtype=np.intp)

    def __len__(self) -> int:
        return len(self._low)

    def __getitem__(self, row: int) -> str:
        odd = self._odd.get(row)
        if odd is not None:
            return odd
        digits = f"{int(self._high.view[row]):016x}{int(self._low.view[row]):016x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def named(self, rows: Places) -> list[str]:
        """Return the ids of several rows, in their order."""
        digits = np.stack((self._high.view[rows], self._low.view[rows]), axis=1).astype(">u8").tobytes().hex()
        ids = [
            f"{digits[at : at + 8]}-{digits[at + 8 : at + 12]}-{digits[at + 12 : at + 16]}"
            f"-{digits[at + 16 : at + 20]}-{digits[at + 20 : at + 32]}"
            for at in range(0, len(digits), 32)
        ]
        odd = self._odd
        return [odd.get(row, name) for row, name in zip(rows.tolist(), ids, strict=True)] if odd else ids

    @property
    def nbytes(self) -> int:
        return self._high.nbytes + self._low.nbytes + self._order.nbytes

    def extend(self, ids: Sequence[str]) -> None:
        """Append the ids of new rows."""
        first = len(self)
        self._odd.update((first + n, each) for n, each in enumerate(ids) if _USUAL.fullmatch(each) is None)
        high, low = _halves(ids)
        self._high.extend(high)
        self._low.extend(low)

    def newest(self, ids: Sequence[str]) -> Places:
        """Return the newest row of each id, -1 where it has none."""
        found = np.full(len(ids), -1, dtype=np.intp)
        if len(self) - len(self._order) > _APART or len(ids) >= _MANY:
            self._settle()
        high, low = _halves(ids)
        highs, lows, settled = self._high.view, self._low.view, len(self._order)
        if settled:
            ends = np.searchsorted(lows[:settled], low, side="right", sorter=self._order)
            rows = self._order[np.maximum(ends - 1, 0)]
            alike = lows[rows] == low
            found = np.where(alike & (highs[rows] == high), rows, -1)
            for n in np.flatnonzero(alike & (found < 0)).tolist():
                # Another id with the same end.
                same = np.flatnonzero((lows[:settled] == low[n]) & (highs[:settled] == high[n]))
                found[n] = same[-1] if len(same) else -1
        for n in range(len(ids) if settled < len(lows) else 0):
            fresh = np.flatnonzero(lows[settled:] == low[n])
            fresh = fresh[highs[settled + fresh] == high[n]]
            found[n] = settled + fresh[-1] if len(fresh) else found[n]
        return found

    def _settle(self) -> None:
        """Put the newest rows in order with the others."""
        low, settled = self._low.view, len(self._order)
        fresh = settled + np.argsort(low[settled:], kind="stable")
        places = np.searchsorted(low[:settled], low[fresh], side="right", sorter=self._order)
        self._order = np.insert(self._order, places, fresh)

    def keep(self, rows: Places, new_rows: Rows) -> None:
        """Keep these rows (ascending); `new_rows` maps each old row to its new number or -1."""
        self._settle()
        order = new_rows[self._order]
        self._order = order[order >= 0].astype(np.intp)
        self._high.put(self._high.view[rows])
        self._low.put(self._low.view[rows])
        self._odd = {new: each for row, each in self._odd.items() if (new := int(new_rows[row])) >= 0}


def _halves(ids: Sequence[str]) -> npt.NDArray[np.uint64]:
    """Return the upper and the lower 64 bits of each id, shape (2, n)."""
    digits = [
        each.replace("-", "")
        if _USUAL.fullmatch(each)
        else blake2b(each.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        for each in ids
    ]
    return np.frombuffer(bytes.fromhex("".join(digits)), dtype=">u8").astype(np.uint64).reshape(-1, 2).T


class Columns:
    """One interned column for each field that filters or ranks."""

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

    def extend(self, entries: Sequence[Profile]) -> None:
        """Append entries; ids must be unique among them and not live yet."""
        first = len(self.ids)
        fields = dict(zip(Profile._fields, zip(*entries, strict=True), strict=True))
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

    def kill(self, ids: Sequence[str]) -> int:
        """Mark the rows of these ids dead, unknown ones aside; return how many there were."""
        rows = self.rows(ids)
        rows = rows[rows >= 0]
        self["live"][rows] = False
        # An id may be named twice.
        return len(set(rows.tolist()))

    def rows(self, ids: Sequence[str]) -> Places:
        """Return the live row of each id, -1 where it has none; only the newest row of an id can be live."""
        rows = self.ids.newest(ids)
        if len(self):
            rows[~self["live"][rows]] = -1
        return rows

    def keep(self, rows: Places, new_rows: Rows) -> None:
        """Keep these rows (ascending); `new_rows` maps each old row to its new number or -1."""
        for column in self._columns.values():
            column.put(column.view[rows])
        tag_rows = new_rows[self._tag_rows.view]
        self._tag_codes.put(self._tag_codes.view[tag_rows >= 0])
        self._tag_rows.put(tag_rows[tag_rows >= 0])
        self.ids.keep(rows, new_rows)

    def importance(self, rows: Places, now: int) -> npt.NDArray[np.float64]:
        """Return what the importance of rows has faded to at an instant, as ``importance_at`` of the model does."""
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

    def mask(self, allowed: Allowed) -> Mask:
        """Rows that are live and meet every condition but expiry."""
        mask = self["live"].copy()
        sets = {"scope": allowed.scopes, "tier": allowed.tiers, "kind": allowed.kinds}
        sets["content_type"] = allowed.content_types
        for name in ("subject", "category", "session"):
            value = getattr(allowed, name)
            sets[name] = None if value is None else frozenset(name_forms([value]))
        for name, values in sets.items():
            if values is not None:
                mask &= self._among(name, values)
        if allowed.tags is not None:
            codes = [code for tag in name_forms(allowed.tags) if (code := self._codes["tag"].get(tag)) is not None]
            tagged = np.zeros(len(self), dtype=np.bool_)
            tagged[self._tag_rows.view[np.isin(self._tag_codes.view, codes)]] = True
            mask &= tagged
        if allowed.min_importance is not None:
            shown = np.flatnonzero(mask)
            mask[shown] = self.importance(shown, allowed.now) >= round(allowed.min_importance, 4)
        if allowed.min_trust is not None:
            mask &= self["trust"] >= allowed.min_trust
        if not allowed.include_sensitive:
            mask &= ~self["sensitive"]
        if allowed.ids is not None:
            rows, among = self.rows(sorted(allowed.ids)), np.zeros(len(self), dtype=np.bool_)
            among[rows[rows >= 0]] = True
            mask &= among
        if allowed.exclude:
            rows = self.rows(sorted(allowed.exclude))
            mask[rows[rows >= 0]] = False
        return mask
