"""Kinds of what servers remember between requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of entries: what they are, how long they last and how many there are at most."""

    name: str
    #: Type of the values, as ``model.codec.decode`` takes it.
    of: Any
    seconds: float
    #: Whether a change lets an entry last as long again.
    renewed: bool = False
    most: int
    #: Most entries of one owner, and most bytes of all; 0 is no limit.
    most_each: int = 0
    most_bytes: int = 0
    size: Callable[[Any], int] = len
