"""Files of search indexes: the arrays of one tenant's index at one commit, for the next process.

Layout: the arrays, each at a multiple of 4096 bytes, then a digest for each block of each array, then a footer: JSON,
its seal of 16 bytes, its length as 8 bytes little-endian, and the magic. A digest is the first 16 bytes of SHA-256. The
footer names the store, the tenant, the commit with its hash, and the digest of each array's digests.

Invariants
(1) A file is believed only if its footer has the seal of this store's key and names a commit that the store has, and if
    nothing was erased since. Its blocks are checked before their first use.
(2) A file is written under another name and then renamed; it is never changed or replaced. A newer one has another
    name.
(3) After an erasure no file contains the erased content: a writer that began before renames nothing.
(4) No error of a file reaches a reader: without a believable file the index is built from the store.
"""

from __future__ import annotations

import contextlib
import json
import logging
import mmap
import os
import re
import secrets
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from keepward.core.serialization import tenant_digest
from keepward.ports.index_parts import DamagedIndex, IndexedState, Part, StoredPart
from keepward.storage.seals import Sealer

#: Changes with the layout of a file or of an index.
FORMAT = 1
_MAGIC = b"keepward index 1"
_TAIL = struct.Struct("<Q16s")
_PAGE = 4_096
_DIGEST = 16
_SUFFIX, _PART = ".index", ".part"
#: How often an erasure searches for files that another process renames meanwhile.
_TRIES = 100
#: Seconds after which an unfinished file was abandoned by its writer.
_ABANDONED_S = 3_600
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """A believable file that is open."""

    path: Path
    state: IndexedState
    #: What its writer stored with the arrays.
    facts: Mapping[str, Any]
    parts: Mapping[str, StoredPart]
    #: Identity and times of the file when it was opened.
    seen: tuple[int, ...]

    def is_unchanged(self) -> bool:
        """Whether the file exists and was not written to."""
        with contextlib.suppress(OSError):
            return _seen(self.path.stat()) == self.seen
        return False


class IndexFiles:
    """The files of one store in a folder of their own, which is made when the first file is written."""

    def __init__(self, folder: Path, store_id: str, sealer: Sealer) -> None:
        self._folder = folder
        self._store_id = store_id
        self._sealer = sealer

    @property
    def usable(self) -> bool:
        """Whether files can be checked: without a key there is no seal, and no file is used."""
        return self._sealer.active

    def open(self, tenant: str, made_by: str, is_past: Callable[[IndexFile], bool]) -> IndexFile | None:
        """Return the newest believable file of a tenant; the others are removed.

        ``made_by`` names the release of the index. ``is_past`` says whether a file may be believed.
        """
        for path in sorted(self._paths(tenant), reverse=True):
            try:
                found = self._read(path, tenant, made_by)
                if found is not None and is_past(found):
                    return found
                why = (
                    "it is of another store, key or release" if found is None else "it is of another state of the store"
                )
            except OSError as exc:
                # Another process removed it, or it belongs to another user.
                _log.info("an index file cannot be read: %s", exc.strerror, extra={"action": "index_unreadable"})
                continue
            except (ValueError, KeyError, TypeError, struct.error, DamagedIndex) as exc:
                why = f"it is damaged: {exc}"
                found = None
            # After an erasure by another process this is usual.
            level = logging.WARNING if found is None else logging.INFO
            _log.log(level, "an index file was dropped and is built again: %s", why, extra={"action": "index_dropped"})
            with contextlib.suppress(OSError):
                path.unlink()
        return None

    def write(
        self,
        tenant: str,
        made_by: str,
        state: IndexedState,
        facts: Mapping[str, Any],
        parts: Iterable[Part],
        *,
        entries: int,
        spare: int,
        is_present: Callable[[], bool],
    ) -> None:
        """Write a file, and remove older ones. Nothing is written if ``is_present`` says that content was erased since.

        The parts are of so many ``entries``, and those that grow get room for the rows of ``spare`` more.

        Raises:
            OSError: it cannot be written.
            DamagedIndex: the parts come from a file that was changed.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Names are in order: by commit, then by generation.
        generation = 1 + max((int(path.name.split("-")[2]) for path in self._paths(tenant)), default=0)
        order = f"{state.seq:016x}-{generation:08}-{secrets.token_hex(4)}"
        name = f"{tenant_digest(tenant)}-{order}{_SUFFIX}"
        aside, path = self._folder / f"{name}{_PART}", self._folder / name
        try:
            with os.fdopen(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _BINARY, 0o600), "wb") as out:
                # From here on an erasure finds the file; see (3).
                if not is_present():
                    return
                head: dict[str, Any] = {"store": self._store_id, "tenant": tenant, "made_by": made_by}
                head |= {"seq": state.seq, "hash": state.hash.hex(), "erasures": state.erasures, "facts": dict(facts)}
                footer = json.dumps(head | {"parts": _write_parts(out, parts, entries, spare)}).encode()
                out.write(footer + self._seal(tenant, footer) + _TAIL.pack(len(footer), _MAGIC))
            if is_present():
                aside.rename(path)
        finally:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
        self._remove_older(tenant, path)

    def _remove_older(self, tenant: str, path: Path) -> None:
        """Remove what comes before a file, and what a process that was killed has left. An open file may stay."""
        for other in self._paths(tenant, with_parts=True):
            with contextlib.suppress(OSError):
                abandoned = other.stat().st_mtime < path.stat().st_mtime - _ABANDONED_S
                if other.name < path.name and (other.suffix != _PART or abandoned):
                    other.unlink()

    def drop(self, tenant: str, *, but: Path | None = None) -> bool:
        """Remove the files of a tenant, and what other processes are writing; return whether that succeeded.

        ``but`` is a file that stays.
        """
        for _ in range(_TRIES):
            rest = [path for path in self._paths(tenant, with_parts=True) if path != but]
            if not rest:
                return True
            for path in rest:
                with contextlib.suppress(OSError):
                    path.unlink()
        return False

    def _paths(self, tenant: str, *, with_parts: bool = False) -> list[Path]:
        name = re.compile(rf"{tenant_digest(tenant)}-[0-9a-f]{{16}}-[0-9]{{8}}-[0-9a-f]{{8}}{_SUFFIX}({_PART})?")
        try:
            found = [(path, name.fullmatch(path.name)) for path in self._folder.iterdir()]
        except OSError:
            return []
        return [path for path, match in found if match is not None and (with_parts or match[1] is None)]

    def _seal(self, tenant: str, footer: bytes) -> bytes:
        return self._sealer.row("index", tenant, footer)

    def _read(self, path: Path, tenant: str, made_by: str) -> IndexFile | None:
        """Open a file; None if it is of another store, tenant or release."""
        with os.fdopen(os.open(path, os.O_RDONLY | _BINARY | _NO_LINKS), "rb") as file:
            seen = _seen(os.fstat(file.fileno()))
            # A change of the mapping is one of this process alone.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        length, magic = _TAIL.unpack_from(mapped, len(mapped) - _TAIL.size)
        start = len(mapped) - _TAIL.size - _DIGEST - length
        if magic != _MAGIC or start < 0:
            raise DamagedIndex("its end is missing")
        footer, seal = bytes(mapped[start : start + length]), bytes(mapped[start + length : -_TAIL.size])
        if not self._sealer.active or seal != self._seal(tenant, footer):
            return None
        head = json.loads(footer)
        if (head["store"], head["tenant"], head["made_by"]) != (self._store_id, tenant, made_by):
            return None
        return IndexFile(
            path=path,
            state=IndexedState(seq=head["seq"], hash=bytes.fromhex(head["hash"]), erasures=head["erasures"]),
            facts=head["facts"],
            parts={name: _part(mapped, about) for name, about in head["parts"].items()},
            seen=seen,
        )


_BINARY = getattr(os, "O_BINARY", 0)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


def _seen(about: os.stat_result) -> tuple[int, ...]:
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _digest(content: Any) -> bytes:
    return sha256(content).digest()[:_DIGEST]


def _write_parts(out: Any, parts: Iterable[Part], entries: int, spare: int) -> dict[str, dict[str, Any]]:
    """Write arrays and then their digests; return what the footer says of each."""
    about: dict[str, dict[str, Any]] = {}
    tables: dict[str, bytes] = {}
    for part in parts:
        about[part.name], tables[part.name] = _write_part(out, part, entries, spare)
    for name, table in tables.items():
        about[name] |= {"table": out.tell(), "digest": _digest(table).hex()}
        out.write(table)
    return about


def _write_part(out: Any, part: Part, entries: int, spare: int) -> tuple[dict[str, Any], bytes]:
    start = -(-out.tell() // _PAGE) * _PAGE
    out.seek(start)
    count, dtype, shape, row = 0, "|u1", (), 1
    table, waiting, total = bytearray(), bytearray(), sha256()
    for chunk in part.chunks:
        dtype, shape = chunk.dtype.str, chunk.shape[1:]
        row = chunk.dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        raw = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8).data
        count += len(chunk)
        out.write(raw)
        if not part.block:
            total.update(raw)
            continue
        waiting += raw
        size = part.block * row
        full = len(waiting) // size * size
        with memoryview(waiting) as content:
            table += b"".join(_digest(content[at : at + size]) for at in range(0, full, size))
        del waiting[:full]
    if not part.block:
        table += total.digest()[:_DIGEST]
    elif waiting:
        table += _digest(waiting)
    room = spare * max(-(-count // max(entries, 1)), 1) if part.grows else 0
    out.seek(start + (count + room) * row)
    about = {"at": start, "dtype": dtype, "shape": shape, "count": count, "room": room, "block": part.block}
    return about, bytes(table)


def _part(mapped: mmap.mmap, about: Mapping[str, Any]) -> StoredPart:
    dtype, shape, count = np.dtype(about["dtype"]), tuple(about["shape"]), about["count"]
    cells = int(np.prod(shape, dtype=np.int64))
    data = np.frombuffer(mapped, dtype, (count + about["room"]) * cells, about["at"]).reshape(-1, *shape)
    rows = about["block"] or max(count, 1)
    return StoredPart(data=data, count=count, blocks=_Blocks(mapped, about, dtype.itemsize * cells, rows))


class _Blocks:
    """The blocks of one array, see ``ports.index_parts.Blocks``."""

    __slots__ = ("_about", "_checked", "_mapped", "_row", "_table", "rows")

    def __init__(self, mapped: mmap.mmap, about: Mapping[str, Any], row: int, rows: int) -> None:
        self.rows = rows
        self._mapped, self._about, self._row = mapped, about, row
        self._checked = np.zeros(-(-about["count"] // rows), dtype=np.bool_)
        self._table: bytes | None = None

    def check_rows(self, rows: np.ndarray[Any, Any]) -> None:
        wanted = np.unique(rows[rows < self._about["count"]] // self.rows)
        self._check(wanted[~self._checked[wanted]])

    def check_range(self, first: int, last: int) -> None:
        begin, end = first // self.rows, -(-min(last, self._about["count"]) // self.rows)
        self._check(begin + np.flatnonzero(~self._checked[begin:end]))

    def check_all(self) -> None:
        self.check_range(0, self._about["count"])

    def _check(self, blocks: np.ndarray[Any, Any]) -> None:
        if not len(blocks):
            return
        start, size, end = self._about["at"], self.rows * self._row, self._about["count"] * self._row
        with memoryview(self._mapped) as content:
            table = self._digests(content)
            for block in blocks.tolist():
                part = content[start + block * size : start + min((block + 1) * size, end)]
                if _digest(part) != table[block * _DIGEST : (block + 1) * _DIGEST]:
                    raise DamagedIndex("a block was changed")
        self._checked[blocks] = True

    def _digests(self, content: memoryview) -> bytes:
        if self._table is None:
            at = self._about["table"]
            table = bytes(content[at : at + len(self._checked) * _DIGEST])
            if _digest(table).hex() != self._about["digest"]:
                raise DamagedIndex("its digests were changed")
            self._table = table
        return self._table
