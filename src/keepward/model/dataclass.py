"""Dataclasses of which all share the functions that compare, hash and show them.

For each class ``dataclasses`` writes these functions as text and compiles it, which took a tenth of the time of a
command; here one function reads the fields of any class. In all else, and to type checkers, a class is one of
``dataclasses``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, eq: bool = True, **options: bool) -> Callable[[type], type]:
        """Make a class a dataclass; ``options`` are those of ``dataclasses.dataclass``."""

        def made(given: type) -> type:
            own = vars(given)
            found = dataclasses.dataclass(given, eq=False, repr=False, **options)
            shared = {"__repr__": _shown, "_compared": _reader(found)}
            if eq:
                shared |= {"__eq__": _equal, "__hash__": _hashed if options.get("frozen") else None}
            for name, function in shared.items():
                if own.get(name) is None:
                    setattr(found, name, function)
            return found

        return made


@recursive_repr()
def _shown(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: Any) -> bool:
    return self._compared(self) == self._compared(other) if type(other) is type(self) else NotImplemented


def _hashed(self: Any) -> int:
    return hash(self._compared(self))


def _reader(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what reads the fields that tell two objects of a class apart."""
    names = [each.name for each in dataclasses.fields(kind) if each.compare]
    return attrgetter(*names) if len(names) > 1 else staticmethod(lambda item: tuple(getattr(item, n) for n in names))
