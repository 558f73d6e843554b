"""Connections of one process to a database, which stay open between transactions.

A connection stays in psycopg's pipeline. The end of a read is sent and not awaited: the next transaction on the
connection reads its answer, so that a read takes no round trip more than its questions. psycopg-pool takes back only
connections whose transaction has ended, which costs every read one round trip.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable
from contextlib import ExitStack, suppress

import psycopg

from keepward.errors import StoreUnavailable
from keepward.storage.sql import Row

#: Seconds that a connection stays open: at all, and without a transaction.
MAX_AGE_S, MAX_IDLE_S = 3600.0, 600.0
#: All pools, whose idle connections are closed before a fork.
_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
#: A connection that was idle for so many seconds has received everything, so a look at it waits for nothing.
_QUIET_S = 1.0


class PooledConnection:
    """A connection with its pipeline; ``waits`` means that the end of a read is awaited as well."""

    def __init__(self, connection: psycopg.Connection[Row], *, waits: bool) -> None:
        self.connection, self.waits = connection, waits
        #: The thread that uses it, and whether it is one of those that the pool counts.
        self.thread, self.counts = 0, True
        self._pipeline: psycopg.Pipeline | None = None
        self._leave = ExitStack()
        self._opened_at = self.idle_since = time.monotonic()

    def enter(self) -> None:
        """Enter the pipeline, unless the connection is in it."""
        if self._pipeline is None:
            self._pipeline = self._leave.enter_context(self.connection.pipeline())

    def wait(self) -> None:
        """Wait for the answers to all that was sent; raise the first error."""
        if self.waits:
            self.leave()
        elif self._pipeline is not None:
            self._pipeline.sync()

    def leave(self) -> None:
        """Do the same, and leave the pipeline."""
        self._pipeline, leave = None, self._leave.pop_all()
        if not self.connection.closed:
            leave.close()

    def send_rollback(self) -> None:
        """End a transaction without waiting for the answer."""
        self.connection.execute("ROLLBACK")
        if self._pipeline is not None:
            # The part of `Pipeline.sync` before it waits; the driver has no public name for it.
            self._pipeline._enqueue_sync()  # noqa: SLF001
            self.connection.wait(self._pipeline._communicate_gen())  # noqa: SLF001

    def is_usable(self) -> bool:
        """Whether the connection is young enough and, if that can be seen without waiting, not closed by the server."""
        now = time.monotonic()
        if self.connection.closed or now - self._opened_at > MAX_AGE_S or now - self.idle_since > MAX_IDLE_S:
            return False
        if now - self.idle_since > _QUIET_S:
            try:
                self.wait_for_sent()
                self.connection.pgconn.consume_input()
            except psycopg.Error:
                return False
        return True

    def wait_for_sent(self) -> None:
        """Read the answers that a transaction before has left."""
        if self._pipeline is not None:
            self.connection.wait(self._pipeline._fetch_gen(flush=False))  # noqa: SLF001

    def close(self) -> None:
        """Close the connection."""
        with suppress(psycopg.Error):
            self.leave()
        with suppress(psycopg.Error):
            self.connection.close()


class Pool:
    """At most ``size`` connections; a caller waits ``patience_s`` for one.

    A thread that has one and needs another does not wait: others may wait for what it holds. It gets one more.

    ``waits`` awaits the end of each read: a pooler in between does not expect statements behind it.
    """

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Row]], *, size: int, patience_s: float, waits: bool
    ) -> None:
        self._connect, self._size, self._patience_s, self._waits = connect, size, patience_s, waits
        self._slots = threading.BoundedSemaphore(size)
        # Reentrant: the garbage collector may end a read while this thread takes a connection.
        self._lock = threading.RLock()
        #: The one that was used last is on the right.
        self._idle: deque[PooledConnection] = deque()
        #: By thread, how many connections it uses.
        self._used = Counter[int]()
        self._closed = False
        _pools.add(self)

    def take(self) -> PooledConnection:
        """Return an idle or new connection; the caller must give it back.

        Raises:
            StoreUnavailable: all are in use for too long.
            psycopg.Error: the database takes no connection.
        """
        thread = threading.get_ident()
        nested = self._used[thread] > 0
        counts = self._slots.acquire(timeout=0 if nested else self._patience_s)
        if not counts and not nested:
            raise StoreUnavailable(f"all {self._size} connections of this process are in use; try again")
        try:
            taken = self._idle_or_new()
        except BaseException:
            if counts:
                self._slots.release()
            raise
        taken.thread, taken.counts = thread, counts
        with self._lock:
            self._used[thread] += 1
        return taken

    def _idle_or_new(self) -> PooledConnection:
        while True:
            with self._lock:
                taken = self._idle.pop() if self._idle else None
            if taken is None:
                return PooledConnection(self._connect(), waits=self._waits)
            if taken.is_usable():
                return taken
            taken.close()

    def give_back(self, used: PooledConnection) -> None:
        """Take back a connection, which is in no transaction."""
        used.idle_since = time.monotonic()
        expired = []
        with self._lock:
            self._used[used.thread] -= 1
            if not self._used[used.thread]:
                del self._used[used.thread]
            if self._closed or used.connection.closed or not used.counts:
                expired.append(used)
            else:
                self._idle.append(used)
            while self._idle and used.idle_since - self._idle[0].idle_since > MAX_IDLE_S:
                expired.append(self._idle.popleft())
        if used.counts:
            self._slots.release()
        for each in expired:
            each.close()

    def drop_idle(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, deque()
        for each in idle:
            each.close()

    def close(self) -> None:
        """Close every connection, those in use when they are given back."""
        self._closed = True
        self.drop_idle()


def _close_idle_connections() -> None:
    for pool in list(_pools):
        pool.drop_idle()


if hasattr(os, "register_at_fork"):
    # A child that drops an inherited connection would read the answers that its parent waits for.
    os.register_at_fork(before=_close_idle_connections)
