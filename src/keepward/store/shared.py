"""What servers of one database share between requests: drafts, answers, sessions, allowances; and news of commits.

Invariants
(1) Each change is atomic, whichever server makes it: an entry is locked from its reading to its writing.
(2) The database learns nothing from it: names and owners are hashed, and values sealed (ChaCha20-Poly1305), under a key
    made from that of the store, which is not in the database. The table is UNLOGGED: neither the database's log nor a
    replica nor a backup of files ever holds it, and a crash of the database empties it, as a stop empties one server's.
(3) An entry is gone when its time is over by the clock of the database; where a kind is full the one changed longest
    ago goes first. Kinds of thousands are looked through once a second.
(4) A server that runs holds a lock under its number on the connection by which it listens: when it dies, however, the
    database lets go of that lock, and what it was at is nobody's.
(5) Each commit is told to whoever listens, after it, in a transaction of its own: a notice takes a lock that all share,
    and writers must not wait for each other's disk. One that was lost costs a wait, never a commit.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from keepward.errors import KeepwardError, StoreUnavailable, Tampered
from keepward.model.codec import decode, encode
from keepward.model.state import Kind
from keepward.store.sql import Session

if TYPE_CHECKING:
    from keepward.store.postgres import Postgres

#: Seconds between two looks at whether to stop listening, between two tries to listen again, between two cleanings.
_LOOK, _AGAIN, _CLEAN = 0.5, 1.0, 1.0
#: Kinds of at most so many entries are held to it at every addition.
_FEW = 1024
_NONCE = 12
_log = logging.getLogger(__name__)

TABLE = """
CREATE UNLOGGED TABLE server_state (
    kind TEXT NOT NULL, owner BYTEA NOT NULL, name BYTEA NOT NULL,
    until DOUBLE PRECISION NOT NULL, changed TIMESTAMPTZ NOT NULL, size BIGINT NOT NULL, body BYTEA NOT NULL,
    PRIMARY KEY (kind, owner, name));
CREATE INDEX server_state_changed ON server_state (kind, changed)"""
_READ = "SELECT body, until FROM server_state WHERE kind = ? AND owner = ? AND name = ? AND until > ?"
_PUT = """
    INSERT INTO server_state (kind, owner, name, until, changed, size, body)
    VALUES (?, ?, ?, ?, clock_timestamp(), ?, ?) ON CONFLICT (kind, owner, name) DO UPDATE
       SET until = excluded.until, changed = excluded.changed, size = excluded.size, body = excluded.body"""
_DROP = "DELETE FROM server_state WHERE kind = ? AND owner = ? AND name = ?"
_TRIM = """
    DELETE FROM server_state AS s USING (
        SELECT owner, name, row_number() OVER w AS n, sum(size) OVER w AS bytes FROM server_state WHERE kind = ?
        WINDOW w AS (ORDER BY changed DESC, name)) AS old
     WHERE s.kind = ? AND s.owner = old.owner AND s.name = old.name AND old.n > 1
       AND (old.n > ? OR old.bytes > CAST(? AS BIGINT))"""
_TRIM_OWN = """
    DELETE FROM server_state AS s USING (
        SELECT name FROM server_state WHERE kind = ? AND owner = ? ORDER BY changed DESC, name OFFSET ?) AS old
     WHERE s.kind = ? AND s.owner = ? AND s.name = old.name"""


class SharedState:
    """Entries that end by themselves, in a database, as ``state.LocalState`` has them; and news of commits."""

    def __init__(self, database: Postgres, name: str, key: bytes, monotonic: Callable[[], float]) -> None:
        """Begin to listen; ``name`` is the store's.

        Raises:
            StoreUnavailable: the database, or the package that seals, is not there.
        """
        try:
            from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
        except ImportError as fault:
            raise StoreUnavailable("servers of one database need `keepward[postgres]` whole; install it") from fault
        self._channel, self.name, self.me = f"keepward_{name[:16]}", name[:8], secrets.randbits(62) + 1
        self._database, self._key = database, key
        self._cipher = ChaCha20Poly1305(hmac.digest(key, b"bodies", "sha256"))
        with database.lending() as db:
            (instant,) = db.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone() or (0,)
        ahead = float(instant) - monotonic()
        #: Seconds of the database's clock, as near as its answer came.
        self.now: Callable[[], float] = lambda: monotonic() + ahead
        self._cleaned: dict[str, float] = {}
        self._hearers: list[Callable[[str], None]] = []
        #: Whether news of commits come at once.
        self.hears = False
        self._stop, begun = threading.Event(), threading.Event()
        threading.Thread(target=self._listen, args=(begun,), name="keepward-listen", daemon=True).start()
        begun.wait(10)

    # --- entries

    def get(self, kind: Kind, name: str, *, owner: str = "") -> Any:
        place = self._place(kind, owner, name)
        with self._database.lending() as db:
            return self._found(db, kind, place)[0]

    def change(self, kind: Kind, name: str, new: Callable[[Any], Any], *, owner: str = "") -> Any:
        """Put what ``new`` makes of an entry's value in its place; it asks for no entry itself."""
        place = self._place(kind, owner, name)
        with self._database.lending() as db:
            db.execute("SELECT pg_advisory_xact_lock(?)", (int.from_bytes(place[2][:7], "big"),))
            before, until = self._found(db, kind, place)
            value = new(before)
            if value is None:
                db.execute(_DROP, place)
                return None
            if before is None or kind.renewed:
                until = self.now() + kind.seconds
            if kind.renewed or value != before:
                size = kind.size(value) if kind.most_bytes else 0
                db.execute(_PUT, (*place, until, size, self._sealed(place, value)))
            if before is None or kind.most_bytes:
                self._make_room(db, kind, place)
            return value

    def count(self, kind: Kind, *, owner: str | None = None) -> int:
        query = "SELECT count(*) FROM server_state WHERE kind = ? AND until > ? AND (? OR owner = ?)"
        hashed = b"" if owner is None else self._hash(kind.name, owner)
        with self._database.lending() as db:
            return int((db.execute(query, (kind.name, self.now(), owner is None, hashed)).fetchone() or (0,))[0])

    def clear(self, kind: Kind) -> None:
        with self._database.lending() as db:
            db.execute("DELETE FROM server_state WHERE kind = ?", (kind.name,))

    def alive(self, number: int) -> bool:
        """Whether the server of a number runs; see (4)."""
        return number == self.me or self._database.held(number)

    def _hash(self, *parts: str) -> bytes:
        text = json.dumps(parts).encode()
        return hmac.digest(self._key, text, hashlib.sha256)

    def _place(self, kind: Kind, owner: str, name: str) -> tuple[str, bytes, bytes]:
        return kind.name, self._hash(kind.name, owner), self._hash(kind.name, owner, name)

    def _sealed(self, place: tuple[str, bytes, bytes], value: Any) -> bytes:
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, encode(value), _about(place))

    def _found(self, db: Session, kind: Kind, place: tuple[str, bytes, bytes]) -> tuple[Any, float]:
        from cryptography.exceptions import InvalidTag

        row = db.execute(_READ, (*place, self.now())).fetchone()
        if row is None:
            return None, 0.0
        body = bytes(row[0])
        try:
            text = self._cipher.decrypt(body[:_NONCE], body[_NONCE:], _about(place))
            return decode(kind.of, text), row[1]
        except (InvalidTag, ValueError, TypeError, KeyError, Tampered):
            # Of another key, of another release, or bent: to us it is not there.
            _log.warning("an entry of a server does not open", extra={"action": "entry_damaged", "kind": kind.name})
            return None, 0.0

    def _make_room(self, db: Session, kind: Kind, place: tuple[str, bytes, bytes]) -> None:
        """Let go of what is over, and of the oldest where there are too many; see (3)."""
        if kind.most_each:
            db.execute(_TRIM_OWN, (kind.name, place[1], kind.most_each, kind.name, place[1]))
        now = time.monotonic()
        if kind.most > _FEW and now - self._cleaned.get(kind.name, -_CLEAN) < _CLEAN:
            return
        self._cleaned[kind.name] = now
        db.execute("DELETE FROM server_state WHERE kind = ? AND until <= ?", (kind.name, self.now()))
        db.execute(_TRIM, (kind.name, kind.name, kind.most, kind.most_bytes or 2**62))

    # --- news

    @contextmanager
    def hearing(self, hear: Callable[[str], None]) -> Iterator[None]:
        """Call a function with the tenant of each commit, from another thread; empty for any tenant's."""
        self._hearers.append(hear)
        try:
            yield
        finally:
            self._hearers.remove(hear)

    def close(self) -> None:
        """Stop listening; the lock under this server's number goes with it."""
        self._stop.set()

    def _listen(self, begun: threading.Event) -> None:
        while not self._stop.is_set():
            with suppress(KeepwardError), self._database.listening(self._channel, self.me) as heard:
                self.hears = True
                begun.set()
                # What came while nobody listened.
                self._tell("")
                while not self._stop.is_set():
                    for tenant in heard(_LOOK):
                        self._tell(tenant)
            self.hears = False
            self._stop.wait(_AGAIN)

    def _tell(self, tenant: str) -> None:
        for hear in tuple(self._hearers):
            hear(tenant)


def _about(place: tuple[str, bytes, bytes]) -> bytes:
    return place[0].encode() + b"\0" + place[1] + place[2]
