"""Arrays that grow at the end: one write per row, no copy of what stands before it.

Invariants
(1) `view` shows exactly the rows appended so far and is invalid after the next append.
(2) capacity doubles up to 16,384 rows and grows by an eighth beyond: appends stay O(1) amortised and spare
    room small.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_FIRST: Final = 64
_DOUBLING_UP_TO: Final = 16_384


class Growable:
    """One numpy array, `len` rows of `shape`, room behind them."""

    __slots__ = ("_data", "_len")

    def __init__(self, dtype: npt.DTypeLike, shape: tuple[int, ...] = ()) -> None:
        self._data: npt.NDArray[Any] = np.zeros((_FIRST, *shape), dtype=dtype)
        self._len = 0

    def __len__(self) -> int:
        return self._len

    def extend(self, rows: npt.ArrayLike) -> None:
        """Append rows, converted to the dtype of the array."""
        values = np.asarray(rows, dtype=self._data.dtype)
        needed = self._len + len(values)
        if needed > len(self._data):
            self._grow(needed)
        self._data[self._len : needed] = values
        self._len = needed

    def append(self, value: Any) -> None:
        """Append one number: what `extend` does, without an array made of it first."""
        if self._len == len(self._data):
            self._grow(self._len + 1)
        self._data[self._len] = value
        self._len += 1

    def _grow(self, needed: int) -> None:
        held = len(self._data)
        room = held * 2 if held < _DOUBLING_UP_TO else held + held // 8
        data = np.zeros((max(room, needed), *self._data.shape[1:]), dtype=self._data.dtype)
        data[: self._len] = self._data[: self._len]
        self._data = data

    def keep(self, rows: npt.NDArray[np.intp]) -> None:
        """Keep only these rows, in this order, without spare room."""
        self._data = np.ascontiguousarray(self._data[: self._len][rows])
        self._len = len(rows)
        if not self._len:
            self._data = np.zeros((_FIRST, *self._data.shape[1:]), dtype=self._data.dtype)

    @property
    def view(self) -> npt.NDArray[Any]:
        return self._data[: self._len]

    @property
    def nbytes(self) -> int:
        return self._data.nbytes


class Codes(Growable):
    """Whole numbers from -1 on: one byte each, until a number comes that needs more."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(np.int8)

    def extend(self, rows: npt.ArrayLike) -> None:
        """Append numbers."""
        values = np.asarray(rows, dtype=np.int64)
        self._widen(int(values.max(initial=0)))
        super().extend(values)

    def append(self, value: int) -> None:
        """Append one number."""
        self._widen(value)
        super().append(value)

    def _widen(self, largest: int) -> None:
        if largest >= 1 << (8 * self._data.itemsize - 1):
            self._data = self._data.astype(np.min_scalar_type(-largest - 1))
