"""Salvage: what can still be read of a file that is cut or damaged, and what of it still proves itself.

Invariants
(1) The damaged file is never opened for writing: it is copied first, with its log, and the copy is worked on.
(2) A row that cannot be read is passed over; those before and behind it are read all the same, one by one.
(3) A commit counts while every one before it does: hash, seals and contents. Behind the first that does not, a memory
    counts by its newest version that carries the seal of this machine or, where there is no key, stands in a commit
    that matches its own hash.
(4) What this machine has erased is not brought back.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keepward.errors import KeepwardError, NotAStore
from keepward.model.codec import decode_record
from keepward.model.commit import EMPTY_HASH, OWN, Commit, Event, Place, decode_details, parse_place
from keepward.model.memory import Record
from keepward.store import forks
from keepward.store.driver import companion, connect
from keepward.store.erasing import empty_places
from keepward.store.file import id_file
from keepward.store.journal import commit_held, event_of, payload_fits
from keepward.store.rows import flaw_of_event
from keepward.store.seals import Sealer
from keepward.store.sql import Row
from keepward.store.sqlite import lay_out

_COLUMNS = {
    "commits": "tenant, seq, id, at, kind, actor_kind, prev, events_hash, salt, payload, hash, seal, receipt",
    "events": "tenant, seq, n, op, memory_id, version, salt, payload, payload_commit, seal",
    "documents": "tenant, kind, id, state, at, until, body",
}
#: Row numbers without a row after which the end of a table is taken to be there.
_SILENT = 4_096
_HEADER = 100
_MAGIC = b"SQLite format 3\0"


@dataclass(slots=True, kw_only=True)
class Salvaged:
    """What a damaged store still holds of one tenant."""

    tenant: str
    #: Commits from the first on, as far as all of them hold.
    commits: list[tuple[Commit, list[Event]]] = field(default_factory=list)
    #: Behind these, the newest version of each memory that holds by itself, oldest first.
    later: list[Record] = field(default_factory=list)
    #: Of these, the ids whose newest version is known to be lost: what came after is not known.
    outdated: set[str] = field(default_factory=set)
    #: Memories of which nothing holds.
    lost: set[str] = field(default_factory=set)
    #: Number of the newest commit that anything tells of.
    newest: int = 0

    @property
    def lost_commits(self) -> int:
        """How many commits are not carried over as they were."""
        return self.newest - len(self.commits)


class Wreck:
    """A damaged file, read as far as it goes. Close it."""

    def __init__(self, path: Path, aside: Path) -> None:
        """Copy a store to ``aside`` and read it there.

        Raises:
            NotAStore: nothing of it can be read as a store.
            InvalidInput: this process has it open.
        """
        if not path.is_file():
            raise NotAStore(f"there is no file at {path}")
        forks.spare(path)
        for suffix in ("", "-wal"):
            source = companion(path, suffix)
            if source.exists():
                shutil.copyfile(source, aside.with_name(aside.name + suffix))
        self._db = _readable(aside, path)
        self._rows = {table: list(_table(self._db, table, columns)) for table, columns in _COLUMNS.items()}
        self.store_id = self._named(path)

    def close(self) -> None:
        """Release the copy."""
        self._db.close()

    def _named(self, path: Path) -> str:
        try:
            said = self._db.execute("SELECT value FROM meta WHERE name = 'store_id'").fetchone()
        except sqlite3.Error:
            said = None
        try:
            beside = id_file(path).read_text("ascii", errors="replace").strip()
        except OSError:
            beside = ""
        return str(said[0]) if said and said[0] else beside

    def tenants(self) -> list[str]:
        """Return every tenant that a commit or an event tells of, sorted."""
        names = {row[0] for table in ("commits", "events") for row in self._rows[table]}
        return sorted(name for name in names if isinstance(name, str))

    def blobs(self, tenant: str) -> list[Row]:
        """Return (ref, media type, active, day) of the tenant's blobs."""
        told = ((ref, at, body.get("blob") or {}) for ref, at, body in self._documents(tenant, "blobs"))
        return [(ref, blob.get("media_type"), blob.get("active"), at) for ref, at, blob in told]

    def names(self, tenant: str, ref: str) -> bool:
        """Whether a version of a memory refers to a blob."""
        wanted = f'"blob":"{ref}"'.encode()
        return any(row[0] == tenant and isinstance(row[7], bytes) and wanted in row[7] for row in self._rows["events"])

    def _documents(self, tenant: str, kind: str) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
        """Yield (id, instant, body) of the documents of a kind that can be read."""
        for row in self._rows["documents"]:
            try:
                told = json.loads(row[6]) if row[:2] == (tenant, kind) else None
            except (ValueError, TypeError):
                continue
            if isinstance(told, dict):
                yield row[2], row[4], told

    def _promises(self, tenant: str) -> Iterator[tuple[Place, bytes]]:
        """Yield places of erased content and the commitments to what stood there."""
        for name, _, told in self._documents(tenant, "erased"):
            try:
                seq, n = map(int, name.split("/"))
                yield (seq, n), bytes.fromhex(told["promise"])
            except (ValueError, TypeError, KeyError, AttributeError):
                continue

    def salvaged(self, tenant: str, sealer: Sealer, erased: Collection[str]) -> Salvaged:
        """Return what holds of a tenant; ``erased`` are commitments, in hex, that may not come back."""
        found = Salvaged(tenant=tenant)
        commits = {row[1]: row[1:] for row in self._rows["commits"] if row[0] == tenant and _whole(row[1])}
        events: dict[int, dict[int, Row]] = {}
        for row in self._rows["events"]:
            if row[0] == tenant and _whole(row[1]) and _whole(row[2]):
                events.setdefault(row[1], {})[row[2]] = row[1:]
        promises = dict(self._promises(tenant))
        found.newest = max((*commits, *events, 0))
        judge = _Judge(tenant, sealer, erased, promises)
        for commit, own in judge.chained(commits, events):
            found.commits.append((commit, own))
        versions = self._versions(tenant, events)
        kept = {each.memory_id: each.version for _, own in found.commits for each in own}
        own_hash = set() if sealer.active else judge.matching(commits, events)
        for memory_id, newest in versions.items():
            if kept.get(memory_id, 0) >= newest:
                continue
            record = judge.newest(memory_id, events, above=kept.get(memory_id, 0), within=own_hash)
            if record is not None:
                found.later.append(record)
            if (record.version if record else kept.get(memory_id, 0)) < newest:
                (found.outdated if record or memory_id in kept else found.lost).add(memory_id)
        return found

    def _versions(self, tenant: str, events: dict[int, dict[int, Row]]) -> dict[str, int]:
        """Return by memory, in order of the journal, the newest version that anything tells of."""
        versions: dict[str, int] = {}
        for seq in sorted(events):
            for _, row in sorted(events[seq].items()):
                if isinstance(row[3], str) and _whole(row[4]):
                    versions[row[3]] = max(versions.get(row[3], 0), row[4])
        for memory_id, version in _some(self._db, "SELECT id, version FROM records WHERE tenant = ?", (tenant,)):
            if isinstance(memory_id, str) and _whole(version):
                versions[memory_id] = max(versions.get(memory_id, 0), version)
        return versions


@dataclass(frozen=True, slots=True)
class _Judge:
    """Tells what holds of one tenant's rows."""

    tenant: str
    sealer: Sealer
    erased: Collection[str]
    promises: dict[Place, bytes]

    def chained(self, commits: dict[int, Row], events: dict[int, dict[int, Row]]) -> list[tuple[Commit, list[Event]]]:
        """Return the commits from the first on that hold; see (3). One of them has to name what content is gone."""
        found: list[tuple[Commit, list[Event]]] = []
        prev = EMPTY_HASH
        while (row := commits.get(len(found) + 1)) is not None:
            own = events.get(row[0], {})
            held = self._commit(row, [own[n] for n in sorted(own)])
            if held is None or held[0].prev != prev:
                break
            found.append(held)
            prev = held[0].hash
        while (short := _unlawful(found)) is not None:
            found = found[:short]
        return found

    def matching(self, commits: dict[int, Row], events: dict[int, dict[int, Row]]) -> set[int]:
        """Return the numbers of commits that match their own hash."""
        return {
            seq
            for seq, row in commits.items()
            if self._commit(row, [events.get(seq, {})[n] for n in sorted(events.get(seq, {}))]) is not None
        }

    def _commit(self, row: Row, events: list[Row]) -> tuple[Commit, list[Event]] | None:
        promise = self.promises.get((row[0], OWN)) if row[8] is None else None
        try:
            commit, own = commit_held(self.sealer, self.tenant, row, events, promise)
        except (KeepwardError, ValueError, TypeError, OverflowError):
            return None
        back = commit.commitment().hex() in self.erased
        return None if back or not all(self._event(each, gone=True) for each in events) else (commit, own)

    def _event(self, row: Row, *, gone: bool) -> bool:
        """Whether an event holds by itself; ``gone`` lets one pass whose content is not there."""
        if flaw_of_event(self.sealer, self.tenant.encode(), row) is not None or row[7].hex() in self.erased:
            return False
        return gone if row[6] is None else payload_fits(event_of(row))

    def newest(
        self, memory_id: str, events: dict[int, dict[int, Row]], *, above: int, within: set[int]
    ) -> Record | None:
        """Return the newest version of a memory above one that holds by itself; see (3)."""
        rows = [row for own in events.values() for row in own.values() if row[3] == memory_id and _whole(row[4])]
        for row in sorted(rows, key=lambda each: -each[4]):
            if row[4] > above and (not within or row[0] in within) and self._event(row, gone=False):
                return decode_record(row[6])
        return None


def _unlawful(found: list[tuple[Commit, list[Event]]]) -> int | None:
    """Return how many commits come before the first that lacks content which none of them names as erased."""
    named: set[Place] = set()
    for commit, _ in found:
        if commit.kind == "erase" and commit.payload is not None:
            named |= {parse_place(name) for name in decode_details(commit.payload).erased}
    for at, (commit, own) in enumerate(found):
        if empty_places(commit, own).keys() - named:
            return at
    return None


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _readable(aside: Path, path: Path) -> sqlite3.Connection:
    """Return a connection to a copy whose schema can be read, mended from an empty store where it cannot."""
    raw = aside.read_bytes()
    size = int.from_bytes(raw[16:18], "big") if raw[:16] == _MAGIC else 4_096
    size = 65_536 if size == 1 else size
    if size < 512 or size & (size - 1):
        size = 4_096
    pages = max(-(-len(raw) // size), int.from_bytes(raw[28:32], "big") if raw[:16] == _MAGIC else 0)
    # A file that ends within a page, or before its last one, is refused as a whole.
    raw = raw.ljust(min(pages, 4 * (len(raw) // size + 1)) * size, b"\0")
    for mended in _mended(raw, size):
        aside.write_bytes(mended)
        connection = _opened(aside)
        if connection is not None:
            return connection
    raise NotAStore(f"nothing of {path} can be read as a store; restore it from a backup")


def _opened(aside: Path) -> sqlite3.Connection | None:
    try:
        connection = connect(str(aside), pragmas=("trusted_schema=OFF",))
    except sqlite3.Error:
        return None
    # Letters of a damaged page are no text; what does not hold is found out by its hash.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if {"commits", "events"} <= names:
            return connection
    except sqlite3.Error:
        pass
    connection.close()
    return None


def _mended(raw: bytes, size: int) -> Iterator[bytes]:
    """Yield the file as it is, with the first page of an empty store, and with all pages of its schema."""
    yield raw
    with closing(connect(":memory:", pragmas=())) as empty:
        empty.execute(f"PRAGMA page_size={size}")
        lay_out(empty)
        pattern = empty.serialize()
    first = bytearray(pattern[:size])
    first[28:32] = (len(raw) // size).to_bytes(4, "big")
    # No free pages, and a size that is believed: nothing is written to this copy.
    first[32:40] = bytes(8)
    first[92:96] = first[24:28]
    yield bytes(first) + raw[size:]
    mended = bytearray(bytes(first) + raw[size:])
    cells = int.from_bytes(pattern[_HEADER + 3 : _HEADER + 5], "big")
    children = [int.from_bytes(pattern[_HEADER + 8 : _HEADER + 12], "big")]
    for cell in range(cells):
        at = int.from_bytes(pattern[_HEADER + 12 + 2 * cell : _HEADER + 14 + 2 * cell], "big")
        children.append(int.from_bytes(pattern[at : at + 4], "big"))
    for page in children if pattern[_HEADER] == 5 else ():
        start = (page - 1) * size
        mended[start : start + size] = pattern[start : start + size]
    yield bytes(mended)


def _some(connection: sqlite3.Connection, query: str, values: tuple[Any, ...] = ()) -> Iterator[Row]:
    """Yield rows up to the first that cannot be read."""
    try:
        yield from connection.execute(query, values)
    except (sqlite3.Error, UnicodeDecodeError, OverflowError):
        return


def _table(connection: sqlite3.Connection, table: str, columns: str) -> Iterator[Row]:
    """Yield the rows of a table that can be read, by row number; see (2)."""
    query = f"SELECT rowid, {columns} FROM {table} NOT INDEXED"
    found: dict[int, Row] = {}
    whole = False
    try:
        for row in connection.execute(f"{query} ORDER BY rowid"):
            found[row[0]] = row[1:]
        whole = True
    except (sqlite3.Error, UnicodeDecodeError, OverflowError):
        pass
    if not whole:
        below = max(found, default=0)
        for row in _some(connection, f"{query} ORDER BY rowid DESC"):
            found.setdefault(row[0], row[1:])
        above = min((each for each in found if each > below), default=None)
        at, silent = below + 1, 0
        while at < above if above is not None else silent < _SILENT:
            row = next(_some(connection, f"{query} WHERE rowid = ?", (at,)), None)
            if row is not None:
                found[at] = row[1:]
            silent = 0 if row is not None else silent + 1
            at += 1
    for at in sorted(found):
        yield found[at]
