"""An index of memories' own fields: by path and value, the rows that have it.

Invariants
(1) Rows are only ever added, in ascending order.
(2) What is asked of a path is decided once for each distinct value of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from keepward.model.where import ORDERED, Condition, Where, key_of, leaves
from keepward.retrieval.rows import Growable, Mask, Rows

#: Answers on orders that are kept for a path.
_KEPT: Final = 16


class _Path:
    """The values of one path and the rows that have them."""

    __slots__ = ("codes", "known", "of", "rows", "values")

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        #: By code; a text as far as it is ordered, None for what has no order.
        self.values: list[Any] = []
        self.rows, self.of = Growable(np.int32), Growable(np.int32)
        #: By order and bound, which values pass.
        self.known: dict[tuple[str, Any], npt.NDArray[np.bool_]] = {}

    def add(self, row: int, value: Any) -> None:
        code = self.codes.setdefault(key_of(value), len(self.values))
        if code == len(self.values):
            ordered = value[:ORDERED] if isinstance(value, str) else value
            self.values.append(ordered if isinstance(value, str | int | float) else None)
        self.rows.extend([row])
        self.of.extend([code])

    def having(self, condition: Condition) -> Rows:
        """Return the rows whose value passes, before anything is negated."""
        rows: Rows = self.rows.view
        if condition.operator == "$exists":
            return rows
        if condition.operator == "$in":
            codes = [code for key in condition.keys if (code := self.codes.get(key)) is not None]
            return np.asarray(rows[np.isin(self.of.view, codes)])
        return np.asarray(rows[self._ordered(condition)[self.of.view]])

    def _ordered(self, condition: Condition) -> npt.NDArray[np.bool_]:
        name = (condition.operator, condition.bound)
        known = self.known.get(name, np.zeros(0, dtype=np.bool_))
        fresh = [condition.holds(value) for value in self.values[len(known) :]]
        if fresh:
            while len(self.known) >= _KEPT:
                del self.known[next(iter(self.known))]
            known = self.known[name] = np.append(known, fresh)
        return known


class Fields:
    """The fields of all rows of a catalogue."""

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        self._paths: dict[str, _Path] = {}

    def add(self, row: int, metadata: Mapping[str, Any]) -> None:
        """Take in the fields of one row, which comes after all others."""
        for path, value in leaves(metadata):
            self._paths.setdefault(path, _Path()).add(row, value)

    def passing(self, where: Where, count: int) -> Mask:
        """Return which of so many rows meet all conditions."""
        mask = np.ones(count, dtype=np.bool_)
        for condition in where:
            held = np.zeros(count, dtype=np.bool_)
            path = self._paths.get(condition.path)
            if path is not None:
                held[path.having(condition)] = True
            mask &= ~held if condition.negated else held
        return mask
