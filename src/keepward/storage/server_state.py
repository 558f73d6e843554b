"""What servers remember between requests: one table of entries that expire.

The one process that serves a file has the table in its own memory; several share it in a file of their own. Servers of
one PostgreSQL database share the table in it.

Invariants
(1) Each change is atomic. If two servers add the same entry at once, one adds it and the other finds it.
(2) An entry expires by the clock of its table. If one owner has too many entries of a kind, the one changed longest ago
    is deleted first. Entries of other owners are not.
(3) Names and owners are keyed hashes, and each value has a keyed seal. The key is not in the database, so someone who
    can write the table cannot create a login session. Values hold no text, no code and no token. The table is
    UNLOGGED: no log, replica or backup of files holds it, and a crash of the database empties it.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keepward.core.json_form import decode, encode
from keepward.storage import forks

#: Bytes of the seal that a body begins with.
_SEAL_BYTES = 32
#: Advisory lock for deleting expired entries: two sweepers must not wait for each other's rows.
_SWEEP_LOCK_ID = 0x4B455357
_log = logging.getLogger(__name__)

TABLE = """
CREATE UNLOGGED TABLE server_state (
    kind TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL, revision BIGINT NOT NULL, body BYTEA NOT NULL,
    PRIMARY KEY (kind, owner, name));
CREATE INDEX server_state_expires_at ON server_state (expires_at)"""
_GET = "SELECT body, expires_at FROM server_state WHERE kind = ? AND owner = ? AND name = ? AND expires_at > ?"
_PUT = """
    INSERT INTO server_state (kind, owner, name, expires_at, body, revision)
    VALUES (?, ?, ?, ?, ?, (SELECT coalesce(max(revision), 0) + 1 FROM server_state WHERE kind = ? AND owner = ?))
        ON CONFLICT (kind, owner, name) DO UPDATE
       SET expires_at = excluded.expires_at, revision = excluded.revision, body = excluded.body"""
_DELETE = "DELETE FROM server_state WHERE kind = ? AND owner = ? AND name = ?"
_TRIM = """
    DELETE FROM server_state WHERE kind = ? AND owner = ? AND name IN (
        SELECT name FROM (
            SELECT name, row_number() OVER (ORDER BY revision DESC, name) AS n
              FROM server_state WHERE kind = ? AND owner = ?) AS newest
         WHERE n > ?)"""

#: Kind, owner and name of an entry, as the table has them.
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryKind:
    """One kind of entries: their type, how long they last, and how many one owner may have."""

    name: str
    #: Type of the values, for ``core.serialization.decode``.
    of: Any
    ttl_s: float
    #: Whether a change restarts the lifetime of an entry.
    renewed: bool = False
    #: Maximum number of entries of one owner.
    max_entries: int


class ServerState:
    """Entries in the memory of this process, which are lost when it ends, or in a file that processes share."""

    def __init__(self, now: Callable[[], float], *, path: Path | None = None, secret: bytes | None = None) -> None:
        """Use the file at ``path``, with one clock and one secret for all its processes."""
        #: Seconds of the clock by which entries expire.
        self.now = now
        self._secret = secret or secrets.token_bytes(32)
        # Reentrant: the garbage collector may end a call while this thread changes an entry.
        self._lock = threading.RLock()
        # What is in the file is worthless after a crash of the machine, so nothing is flushed.
        pragmas = "PRAGMA temp_store = MEMORY; PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL;"
        self._db = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None, timeout=30)
        # Since 3.13 Python warns of a connection that is collected while it is open.
        weakref.finalize(self, self._db.close)
        table = TABLE.replace("UNLOGGED", "").replace("TABLE ", "TABLE IF NOT EXISTS ")
        self._db.executescript(f"{pragmas} {table.replace('INDEX ', 'INDEX IF NOT EXISTS ')}")

    @contextmanager
    def _transaction(self, lock: int = 0) -> Iterator[Any]:
        """Open a transaction; transactions with the same lock run one after the other."""
        with self._lock, forks.using():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _key_of(self, kind: EntryKind, owner: str, name: str) -> _Key:
        return kind.name, self._hash(owner), self._hash(owner, name)

    def _hash(self, *parts: str) -> str:
        return hmac.digest(self._secret, json.dumps(parts).encode(), "sha256").hex()

    def _seal(self, key: _Key, text: bytes) -> bytes:
        return hmac.digest(self._secret, b"\0".join((*(part.encode() for part in key), text)), "sha256")

    def get(self, kind: EntryKind, name: str, *, owner: str = "") -> Any:
        """Return the value of an entry; None if it does not exist."""
        with self._transaction() as db:
            return self._find(db, kind, self._key_of(kind, owner, name))[0]

    def change(self, kind: EntryKind, name: str, new: Callable[[Any], Any], *, owner: str = "") -> Any:
        """Replace the value of an entry by ``new(value)`` and return it; the value is None if there is no entry.

        A result of None deletes the entry. If ``new`` raises, the entry does not change. ``new`` must not read entries.
        """
        key = self._key_of(kind, owner, name)
        with self._transaction(int(key[2][:15], 16)) as db:
            before, expires_at = self._find(db, kind, key)
            value = new(before)
            if value is None:
                db.execute(_DELETE, key)
                return None
            if before is None or kind.renewed:
                expires_at = self.now() + kind.ttl_s
            if kind.renewed or value != before:
                text = encode(value)
                db.execute(_PUT, (*key, expires_at, self._seal(key, text) + text, *key[:2]))
        if before is None:
            with self._transaction(_SWEEP_LOCK_ID) as db:
                db.execute("DELETE FROM server_state WHERE expires_at <= ?", (self.now(),))
                db.execute(_TRIM, (*key[:2], *key[:2], kind.max_entries))
        return value

    def count(self, kind: EntryKind, *, owner: str | None = None) -> int:
        """Return how many entries there are, of one owner or of all."""
        query = "SELECT count(*) FROM server_state WHERE kind = ? AND expires_at > ? AND (? = 1 OR owner = ?)"
        values = (kind.name, self.now(), int(owner is None), self._hash(owner or ""))
        with self._transaction() as db:
            return int(db.execute(query, values).fetchone()[0])

    def _find(self, db: Any, kind: EntryKind, key: _Key) -> tuple[Any, float]:
        row = db.execute(_GET, (*key, self.now())).fetchone()
        if row is None:
            return None, 0.0
        seal, text = bytes(row[0])[:_SEAL_BYTES], bytes(row[0])[_SEAL_BYTES:]
        if hmac.compare_digest(seal, self._seal(key, text)):
            with suppress(ValueError, TypeError, KeyError):
                return decode(kind.of, text), row[1]
        # A value under another key, of another release, or edited counts as missing.
        _log.warning("an entry of a server does not open", extra={"action": "entry_damaged", "kind": kind.name})
        return None, 0.0


class SharedState(ServerState):
    """Entries in a database, which its servers share."""

    def __init__(
        self,
        transaction: Callable[[], AbstractContextManager[Any]],
        name: str,
        key: bytes,
        monotonic: Callable[[], float],
    ) -> None:
        """Share the entries of the store ``name``; ``transaction`` opens a transaction of its database."""
        self._open, self._secret, self.name = transaction, key, name[:8]
        with transaction() as db:
            (instant,) = db.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone() or (0,)
        ahead = float(instant) - monotonic()
        #: Seconds of the database's clock, read once at the start; off by at most the time of that call.
        self.now: Callable[[], float] = lambda: monotonic() + ahead

    @contextmanager
    def _transaction(self, lock: int = 0) -> Iterator[Any]:
        with self._open() as db:
            if lock:
                db.execute("SELECT pg_advisory_xact_lock(?)", (lock,))
            yield db
