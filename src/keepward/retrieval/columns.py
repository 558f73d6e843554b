"""The rows of an index: one memory version each, by column, and the filter by which a reader sees them.

The arrays lie in memory, or in a file with room for more rows; those of a file are checked before their first use.

A row is never rewritten: a new version is a new row, and the old row is dead. Only `keep` renumbers rows; it drops the
dead ones. A mask is computed from columns only, before any ranking.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from operator import attrgetter
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from keepward.core.memory import IMPORTANCE_DECAY_PER_DAY, MIN_IMPORTANCE
from keepward.core.query import Filter
from keepward.core.value import name_forms
from keepward.ports.index_parts import Blocks, Part, StoredPart
from keepward.ports.store import IndexedMemory
from keepward.retrieval.chunking import CURRENT_VERSIONS

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Indices = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

_FIRST: Final = 64
#: Bytes of an id, with its entries in a list and a dict.
_ID_BYTES: Final = 180
#: Bytes of a block of which a search reads a few rows.
BLOCK_BYTES: Final = 4_096
#: Rows of one chunk of a large array.
CHUNK_ROWS: Final = 65_536
#: Rows have 24 bits in a sorted array.
ROW_BITS: Final = np.uint64(24)
ROW_MASK: Final = np.uint64(0xFF_FFFF)
_TEXT: Final = ("scope", "tier", "kind", "content_type", "subject", "category", "session", "speaker")
_NEVER: Final = np.iinfo(np.int64).max
_DAY: Final = 86_400_000_000
#: How a column reads the fields of a memory, unless by its own name.
_FIELDS: Final = {
    "session": "event_session",
    "trust": "effective_trust",
    "created_at": "said_at",
}
#: Columns of instants, each with what None means: never, or always.
_INSTANTS: Final = {"expires_at": _NEVER, "idle_since": _NEVER, "valid_from": -_NEVER, "valid_until": _NEVER}
_NUMBERS: Final[dict[str, type]] = {
    "version": np.int32,
    "position": np.int64,
    "trust": np.int8,
    "sensitive": np.bool_,
    "fresh": np.bool_,
    "importance": np.float32,
    "created_at": np.int64,
}
#: The dtype of each column. ``stale``: its vectors have an earlier embedding version.
_COLUMNS: Final[dict[str, type]] = {
    **dict.fromkeys(_TEXT, np.int32),
    **_NUMBERS,
    **dict.fromkeys(_INSTANTS, np.int64),
    **dict.fromkeys(("live", "stale"), np.bool_),
}


class GrowableArray:
    """One numpy array with spare rows: most appends do not copy the earlier rows.

    `view` contains the rows so far and is invalid after the next append. Rows of a file are checked before they are
    returned: all of them for `view`, their blocks for `take` and `between`.
    """

    __slots__ = ("_blocks", "_data", "_len")

    def __init__(self, dtype: npt.DTypeLike, shape: tuple[int, ...] = (), *, stored: StoredPart | None = None) -> None:
        self._data: npt.NDArray[Any] = np.zeros((_FIRST, *shape), dtype=dtype) if stored is None else stored.data
        self._len = 0 if stored is None else stored.count
        #: Of a file that was not checked completely.
        self._blocks: Blocks | None = None if stored is None else stored.blocks

    def __len__(self) -> int:
        return self._len

    @property
    def view(self) -> npt.NDArray[Any]:
        if self._blocks is not None:
            self._blocks.check_all()
            self._blocks = None
        return self._data[: self._len]

    def take(self, rows: Indices) -> npt.NDArray[Any]:
        """Return some rows."""
        if self._blocks is not None:
            self._blocks.check_rows(rows)
        return self._data.take(rows, axis=0)

    def between(self, first: int, last: int) -> npt.NDArray[Any]:
        """Return the rows from ``first`` up to and without ``last``."""
        if self._blocks is not None:
            self._blocks.check_range(first, last)
        return self._data[first : min(last, self._len)]

    def chunks(self, rows: Indices) -> Iterator[npt.NDArray[Any]]:
        """Yield some rows (ascending), a part at a time."""
        for start in range(0, max(len(rows), 1), CHUNK_ROWS):
            yield self.take(rows[start : start + CHUNK_ROWS])

    @property
    def nbytes(self) -> int:
        """Bytes in memory; those of a file are not."""
        return self._data.nbytes if self._data.flags.owndata else 0

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
        self._len, self._blocks = len(values), None
        self._data = values if len(values) else np.zeros((_FIRST, *values.shape[1:]), dtype=values.dtype)


class SortedArray:
    """Sorted uint64 that differ, of a file; a search reads and checks the blocks that it needs."""

    __slots__ = ("_array", "_block", "_firsts")

    def __init__(self, array: StoredPart, firsts: StoredPart) -> None:
        self._block = array.blocks.rows
        self._array, self._firsts = GrowableArray(np.uint64, stored=array), GrowableArray(np.uint64, stored=firsts)

    def __len__(self) -> int:
        return len(self._array)

    def between(self, low: int, high: int) -> npt.NDArray[np.uint64]:
        """Return the numbers from ``low`` up to and without ``high``."""
        firsts = self._firsts.view
        ends = np.array((low, high), dtype=np.uint64)
        first, last = int(firsts.searchsorted(ends[0], side="right")), int(firsts.searchsorted(ends[1]))
        found = self._array.between(max(first - 1, 0) * self._block, last * self._block)
        return found[slice(*found.searchsorted(ends).tolist())]

    def last_before(self, limits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return the greatest number up to and with each limit, or the smallest one."""
        if not limits.size:
            return limits
        blocks = np.maximum(self._firsts.view.searchsorted(limits, side="right") - 1, 0)
        needed = np.unique(blocks)
        parts = [self._array.between(block * self._block, (block + 1) * self._block) for block in needed.tolist()]
        found = np.concatenate(parts)
        return found[np.maximum(found.searchsorted(limits, side="right") - 1, 0)]

    def chunks(self) -> Iterator[npt.NDArray[np.uint64]]:
        """Yield all numbers, a part at a time."""
        size = self._block * max(CHUNK_ROWS // self._block, 1)
        for start in range(0, len(self), size):
            yield self._array.between(start, start + size)


def sorted_parts(name: str, chunks: Iterable[npt.NDArray[np.uint64]]) -> Iterator[Part]:
    """Yield the parts of a `SortedArray` from its numbers in order; the first part is written first."""
    block, firsts, seen = BLOCK_BYTES // 8, [np.zeros(0, dtype=np.uint64)], 0

    def noted() -> Iterator[npt.NDArray[np.uint64]]:
        nonlocal seen
        yield firsts[0]
        for chunk in chunks:
            firsts.append(chunk[-seen % block :: block])
            seen += len(chunk)
            yield chunk

    yield Part(name=name, chunks=noted(), block=block)
    yield Part(name=f"{name}.firsts", chunks=firsts)


def stored_names(names: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Return names as bytes."""
    return np.frombuffer(msgspec.json.encode(list(names)), dtype=np.uint8)


def _id_hashes(ids: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Return 40 bits for each id, in the upper bits."""
    found = b"".join(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in ids)
    return np.frombuffer(found, dtype="<u8").astype(np.uint64) & ~ROW_MASK


class _Ids:
    """The id of each row, and the newest row of each id."""

    __slots__ = ("_added", "_hashes", "_rows", "_stored")

    def __init__(self, parts: Mapping[str, StoredPart] | None = None) -> None:
        self._stored = self._hashes = None
        if parts is not None:
            self._stored = GrowableArray("S1", stored=parts["ids"])
            self._hashes = SortedArray(parts["id rows"], parts["id rows.firsts"])
        self._added: list[str] = []
        self._rows: dict[str, int] = {}

    def __len__(self) -> int:
        return (0 if self._stored is None else len(self._stored)) + len(self._added)

    def __getitem__(self, row: int) -> str:
        stored = 0 if self._stored is None else len(self._stored)
        if row >= stored or self._stored is None:
            return self._added[row - stored]
        name: bytes = self._stored.take(np.array([row]))[0]
        return name.decode("utf-8", "surrogatepass")

    @property
    def nbytes(self) -> int:
        return _ID_BYTES * len(self._added)

    def extend(self, ids: Sequence[str]) -> None:
        first = len(self)
        self._added.extend(ids)
        self._rows.update(zip(ids, range(first, first + len(ids)), strict=True))

    def rows(self, ids: Sequence[str]) -> Indices:
        """Return the newest row of each id, or -1."""
        rows = np.array([self._rows.get(name, -1) for name in ids], dtype=np.intp)
        if self._stored is not None and self._hashes is not None and len(self._stored):
            missing = np.flatnonzero(rows < 0)
            hashes = _id_hashes([ids[number] for number in missing.tolist()])
            known = self._hashes.last_before(hashes | ROW_MASK) & ~ROW_MASK == hashes
            for number, hashed in zip(missing[known].tolist(), hashes[known].tolist(), strict=True):
                rows[number] = self._stored_row(ids[number], hashed)
        return rows

    def _stored_row(self, name: str, hashed: int) -> int:
        """Return the row of an id in the file; several ids may have one hash."""
        assert self._hashes is not None
        same = self._hashes.between(hashed, hashed + (1 << int(ROW_BITS))) & ROW_MASK
        return next((row for row in same.tolist() if self[row] == name), -1)

    def keep(self, rows: Indices) -> None:
        """Drop all rows but these."""
        ids = [self[row] for row in rows.tolist()]
        self._stored = self._hashes = None
        self._added, self._rows = ids, {name: row for row, name in enumerate(ids)}

    def parts(self, rows: Indices, new_rows: Rows) -> Iterator[Part]:
        """Yield what a file has of some rows (ascending)."""
        stored = 0 if self._stored is None else len(self._stored)
        split = int(np.searchsorted(rows, stored))
        added = [self._added[row - stored].encode("utf-8", "surrogatepass") for row in rows[split:].tolist()]
        old_width = 1 if self._stored is None else self._stored.take(rows[:0]).dtype.itemsize
        width = max(old_width, *map(len, added)) if added else old_width

        def texts() -> Iterator[npt.NDArray[Any]]:
            yield np.zeros(0, dtype=f"S{width}")
            if self._stored is not None:
                yield from (chunk.astype(f"S{width}") for chunk in self._stored.chunks(rows[:split]))
            yield np.array(added, dtype=f"S{width}")

        hashes = [_id_hashes(self._added[row - stored] for row in rows[split:].tolist())]
        hashes[0] = hashes[0] | np.arange(split, len(rows), dtype=np.uint64)
        for chunk in () if self._hashes is None else self._hashes.chunks():
            moved = new_rows[(chunk & ROW_MASK).astype(np.intp)]
            hashes.append((chunk[moved >= 0] & ~ROW_MASK) | moved[moved >= 0].astype(np.uint64))
        yield Part(name="ids", chunks=texts(), block=max(BLOCK_BYTES // width, 1))
        yield from sorted_parts("id rows", [np.sort(np.concatenate(hashes))])


class Columns:
    """One interned column for each field that filters or ranks."""

    __slots__ = ("_codes", "_columns", "_tag_codes", "_tag_rows", "ids")

    def __init__(self, parts: Mapping[str, StoredPart] | None = None) -> None:
        stored = parts or {}
        self.ids = _Ids(parts)
        self._codes: dict[str, dict[str, int] | GrowableArray] = {
            name: {} if parts is None else GrowableArray(np.uint8, stored=parts[f"{name} names"])
            for name in (*_TEXT, "tag")
        }
        self._columns = {name: GrowableArray(dtype, stored=stored.get(name)) for name, dtype in _COLUMNS.items()}
        self._tag_rows = GrowableArray(np.int32, stored=stored.get("tag rows"))
        self._tag_codes = GrowableArray(np.int32, stored=stored.get("tag codes"))

    def parts(self, rows: Indices, new_rows: Rows) -> Iterator[Part]:
        """Yield what a file has of some rows (ascending). ``new_rows`` maps each row to its new number, or to -1."""
        yield from self.ids.parts(rows, new_rows)
        for name, column in self._columns.items():
            if name in _TEXT:
                yield from self._named(name, column.view[rows])
            else:
                yield Part(name=name, chunks=column.chunks(rows), grows=True)
        tag_rows = new_rows[self._tag_rows.view]
        yield Part(name="tag rows", chunks=[tag_rows[tag_rows >= 0]], grows=True)
        yield from self._named("tag", self._tag_codes.view[tag_rows >= 0], "tag codes")

    def _named(self, column: str, codes: Rows, name: str | None = None) -> Iterator[Part]:
        """Yield the codes and the values of a text column, without values that no row has."""
        used = np.unique(codes[codes >= 0])
        values = self.names(column)
        yield Part(name=f"{column} names", chunks=[stored_names(values[code] for code in used.tolist())])
        recoded = np.where(codes >= 0, np.searchsorted(used, codes), -1).astype(np.int32)
        yield Part(name=name or column, chunks=[recoded], grows=True)

    def __len__(self) -> int:
        return len(self._columns["live"])

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name].view

    @property
    def nbytes(self) -> int:
        arrays = (*self._columns.values(), self._tag_rows, self._tag_codes)
        return self.ids.nbytes + sum(array.nbytes for array in arrays)

    def _codes_of(self, column: str) -> dict[str, int]:
        codes = self._codes[column]
        if not isinstance(codes, dict):
            names = msgspec.json.decode(codes.view.tobytes(), type=list[str])
            codes = self._codes[column] = dict(zip(names, count()))
        return codes

    def names(self, column: str) -> Sequence[str]:
        """Interned values of a text column by code."""
        return tuple(self._codes_of(column))

    def extend(self, memories: Sequence[IndexedMemory]) -> None:
        """Append memories. Their ids must be unique and have no live row."""
        first = len(self)
        fields = [memory.fields for memory in memories]

        def values_of(column: str) -> list[Any]:
            return list(map(attrgetter(_FIELDS.get(column, column)), fields))

        for name in _TEXT:
            codes, values = self._codes_of(name), values_of(name)
            for value in dict.fromkeys(values):
                if value is not None:
                    codes.setdefault(value, len(codes))
            self._columns[name].extend([-1 if value is None else codes[value] for value in values])
        for name in ("version", "trust", "created_at"):
            self._columns[name].extend(values_of(name))
        self._columns["position"].extend([memory.arrival for memory in memories])
        self._columns["sensitive"].extend([each.sensitivity != "normal" for each in fields])
        self._columns["fresh"].extend([each.stale_at is None or each.tier == "core" for each in fields])
        self._columns["importance"].extend([each.importance / 10_000 for each in fields])
        for name, missing in _INSTANTS.items():
            self._columns[name].extend([missing if at is None else at for at in values_of(name)])
        self._columns["live"].extend(np.ones(len(memories), dtype=np.bool_))
        self._columns["stale"].extend(
            [features.has_vectors and features.recipe not in CURRENT_VERSIONS for _, features, _, _ in memories]
        )
        tagged = [(first + n, tag) for n, each in enumerate(fields) for tag in each.tags]
        if tagged:
            codes = self._codes_of("tag")
            self._tag_rows.extend([row for row, _ in tagged])
            self._tag_codes.extend([codes.setdefault(tag, len(codes)) for _, tag in tagged])
        self.ids.extend([each.id for each in fields])

    def mark_deleted(self, ids: Sequence[str]) -> int:
        """Mark the rows of these ids as dead; return their number. Unknown ids are ignored."""
        rows = self.rows(ids)
        rows = rows[rows >= 0]
        self["live"][rows] = False
        # An id may be named twice.
        return len(set(rows.tolist()))

    def rows(self, ids: Iterable[str]) -> Indices:
        """Return the live row of each id, or -1. Only the newest row of an id can be live."""
        rows = self.ids.rows([*ids])
        if len(self):
            rows[~self["live"][rows]] = -1
        return rows

    def keep(self, rows: Indices, new_rows: Rows) -> None:
        """Drop all rows but these (ascending). `new_rows` maps each old row to its new number, or to -1."""
        for column in self._columns.values():
            column.put(column.view[rows])
        tag_rows = new_rows[self._tag_rows.view]
        self._tag_codes.put(self._tag_codes.view[tag_rows >= 0])
        self._tag_rows.put(tag_rows[tag_rows >= 0])
        self.ids.keep(rows)

    def importance(self, rows: Indices, now: int) -> npt.NDArray[np.float64]:
        """Return the decayed importance of rows at an instant, like ``importance_at`` of the core."""
        base = self["importance"][rows].astype(np.float64).round(4)
        days = np.maximum(now - self["idle_since"][rows], 0) / _DAY
        return np.asarray(
            np.maximum(base * np.exp(-IMPORTANCE_DECAY_PER_DAY * days), np.minimum(base, MIN_IMPORTANCE)).round(4)
        )

    def _among(self, column: str, values: Sequence[str]) -> Mask:
        codes = self._codes_of(column)
        known = [code for value in values if (code := codes.get(value)) is not None]
        wanted = np.zeros(len(codes) + 1, dtype=np.bool_)
        wanted[known] = True
        # Code -1 (no value) reads the last cell, which is False.
        return np.asarray(wanted[self[column]], dtype=np.bool_)

    def holds(self, at: int) -> Mask:
        """Rows of what holds at an instant."""
        return np.asarray((self["valid_from"] <= at) & (at < self["valid_until"]), dtype=np.bool_)

    def mask(self, allowed: Filter) -> Mask:
        """Rows that are live and pass the conditions for which there is a column, except expiry and valid time.

        Other conditions, such as a time or a session, come as ``ids``: a list finds these memories first.
        """
        mask = self["live"].copy()
        sets: dict[str, Sequence[str]] = {"scope": allowed.scopes, "tier": allowed.tiers, "kind": allowed.kinds}
        sets["content_type"] = allowed.content_types
        for name in ("subject", "category"):
            value = getattr(allowed, name)
            sets[name] = () if value is None else name_forms([value])
        for name, values in sets.items():
            if values:
                mask &= self._among(name, values)
        if allowed.tags:
            codes = [code for tag in name_forms(allowed.tags) if (code := self._codes_of("tag").get(tag)) is not None]
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
        if allowed.hidden:
            rows = self.rows(allowed.hidden)
            mask[rows[rows >= 0]] = False
        if allowed.fresh:
            mask &= self["fresh"]
        if allowed.ids is not None:
            rows, among = self.rows(allowed.ids), np.zeros(len(self), dtype=np.bool_)
            among[rows[rows >= 0]] = True
            mask &= among
        return mask
