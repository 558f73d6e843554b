"""Ids of rows in sixteen bytes each, and the way back from an id to its newest row.

A hundred thousand ids as Python texts under a dict take 18 MB; here 2.4.

Invariants
(1) an id comes back as it was given: what is no UUID in its usual form stands as a text beside, under a hash.
(2) rows are ordered by their ids' last 64 bits, random in a UUID, and then by row; the newest rows stand apart
    until there are enough of them to be put in order together.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval.growable import Growable

Halves = npt.NDArray[np.uint64]

_USUAL: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_LENGTH: Final = 36
_DASHES: Final = (8, 13, 18, 23)
_DIGITS: Final = [n for n in range(_LENGTH) if n not in _DASHES]
_LOW: Final = (1 << 64) - 1
#: Rows that are looked through one by one, at most; to put rows in order costs one pass over all of them.
_APART: Final = 4_096
#: From so many on it is cheaper to take ids together.
_MANY: Final = 16


class Ids:
    """The id of each row, in order of application; several rows may have one id."""

    __slots__ = ("_high", "_low", "_odd", "_order")

    def __init__(self) -> None:
        self._high = Growable(np.uint64)
        self._low = Growable(np.uint64)
        #: Ids that are no UUIDs, by row.
        self._odd: dict[int, str] = {}
        #: Rows in order, all but the newest.
        self._order: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)

    def __len__(self) -> int:
        return len(self._low)

    def __getitem__(self, row: int) -> str:
        odd = self._odd.get(row)
        if odd is not None:
            return odd
        digits = f"{int(self._high.view[row]):016x}{int(self._low.view[row]):016x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    @property
    def nbytes(self) -> int:
        """Bytes held in arrays."""
        return self._high.nbytes + self._low.nbytes + self._order.nbytes

    def extend(self, ids: Sequence[str]) -> None:
        """Append the ids of new rows."""
        if len(ids) == 1 and _USUAL.fullmatch(ids[0]):
            for half, bits in zip((self._high, self._low), _one(ids[0]), strict=True):
                half.append(bits)
            return
        first = len(self)
        high, low, usual = _halves(ids)
        if not usual:
            self._odd.update((first + n, each) for n, each in enumerate(ids) if _USUAL.fullmatch(each) is None)
        self._high.extend(high)
        self._low.extend(low)

    def newest(self, ids: Sequence[str]) -> npt.NDArray[np.intp]:
        """Return the newest row of each id, -1 where it has none."""
        if not len(self):
            return np.full(len(ids), -1, dtype=np.intp)
        if len(ids) < _MANY:
            return np.array([self._newest(*_one(each)) for each in ids], dtype=np.intp)
        self._settle()
        high, low, _ = _halves(ids)
        places = np.searchsorted(self._low.view, low, side="right", sorter=self._order)
        rows = self._order[np.maximum(places - 1, 0)]
        same = self._low.view[rows] == low
        found = np.where(same & (self._high.view[rows] == high), rows, -1)
        for n in np.flatnonzero(same & (found < 0)).tolist():
            found[n] = self._newest(int(high[n]), int(low[n]))
        return found

    def _newest(self, high: int, low: int) -> int:
        if len(self) - len(self._order) > _APART:
            self._settle()
        lows, highs, settled, end = self._low.view, self._high.view, len(self._order), np.uint64(low)
        for place in np.flatnonzero(lows[settled:] == end)[::-1].tolist():
            if highs[settled + place] == high:
                return settled + int(place)
        last = int(np.searchsorted(lows[:settled], end, side="right", sorter=self._order))
        if not last or lows[row := int(self._order[last - 1])] != end:
            return -1
        if highs[row] == high:
            return row
        # Another id with the same end.
        first = int(np.searchsorted(lows[:settled], end, side="left", sorter=self._order))
        rows = self._order[first:last]
        rows = rows[highs[rows] == np.uint64(high)]
        return int(rows[-1]) if len(rows) else -1

    def _settle(self) -> None:
        """Put the newest rows in order with the others."""
        low, settled = self._low.view, len(self._order)
        if settled == len(low):
            return
        fresh = settled + np.argsort(low[settled:], kind="stable")
        places = np.searchsorted(low[:settled], low[fresh], side="right", sorter=self._order)
        self._order = np.insert(self._order, places, fresh)

    def keep(self, rows: npt.NDArray[np.intp], new_rows: npt.NDArray[np.int32]) -> None:
        """Keep these rows (ascending); `new_rows` maps each old row to its new number or -1."""
        self._settle()
        order = new_rows[self._order]
        self._order = order[order >= 0].astype(np.intp)
        self._high.keep(rows)
        self._low.keep(rows)
        self._odd = {new: each for row, each in self._odd.items() if (new := int(new_rows[row])) >= 0}


def _halves(ids: Sequence[str]) -> tuple[Halves, Halves, bool]:
    """Return both halves of each id's 128 bits, and whether all of them are UUIDs in their usual form."""
    if len(ids) >= _MANY and (together := _together(ids)) is not None:
        return *together, True
    halves = np.array([_one(each) for each in ids], dtype=np.uint64).reshape(-1, 2)
    return halves[:, 0], halves[:, 1], all(_USUAL.fullmatch(each) for each in ids)


def _together(ids: Sequence[str]) -> tuple[Halves, Halves] | None:
    """Return both halves of UUIDs; None if any is written in another way."""
    text = "".join(ids)
    if any(len(each) != _LENGTH for each in ids) or not text.isascii() or text != text.lower():
        return None
    signs = np.frombuffer(text.encode(), dtype=np.uint8).reshape(-1, _LENGTH)
    if not np.all(signs[:, _DASHES] == ord("-")):
        return None
    try:
        raw = bytes.fromhex(signs[:, _DIGITS].tobytes().decode())
    except ValueError:
        return None
    if len(raw) != 16 * len(ids):
        # It passed over blanks.
        return None
    halves = np.frombuffer(raw, dtype=">u8").astype(np.uint64).reshape(-1, 2)
    return halves[:, 0], halves[:, 1]


def _one(each: str) -> tuple[int, int]:
    if _USUAL.fullmatch(each) is None:
        bits = int.from_bytes(blake2b(each.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    else:
        bits = int(each.replace("-", ""), 16)
    return bits >> 64, bits & _LOW
