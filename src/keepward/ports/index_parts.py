"""What an index consists of in a file: arrays whose blocks are checked before their first use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DamagedIndex(Exception):
    """A block of an index file is not the one that was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedState:
    """The state of a tenant that an index is of."""

    #: Number and hash of the newest commit.
    seq: int
    hash: bytes
    #: How often content of the tenant was erased.
    erasures: int


class Blocks(Protocol):
    """The blocks of one array in a file. Each method raises ``DamagedIndex`` if a block was changed."""

    #: Rows of one block; the last block may have fewer.
    rows: int

    def check_rows(self, rows: NDArray[Any]) -> None:
        """Check the blocks of some rows; rows beyond those of the file are ignored."""

    def check_range(self, first: int, last: int) -> None:
        """Check the blocks of the rows from ``first`` up to and without ``last``."""

    def check_all(self) -> None:
        """Check every block."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """One array to write."""

    name: str
    #: The rows in pieces: arrays of the same dtype and the same row shape.
    chunks: Iterable[NDArray[Any]]
    #: Rows of a block; 0 to check all rows at once.
    block: int = 0
    #: Whether rows will be appended behind it.
    grows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredPart:
    """One array of a file in memory that belongs to this process: changes of it do not reach the file."""

    #: The rows, and room for those that are appended.
    data: NDArray[Any]
    #: Number of rows that the file has.
    count: int
    blocks: Blocks
