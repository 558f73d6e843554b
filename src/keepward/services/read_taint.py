"""Taint by reads: an agent that reads untrusted text and then remembers it uses its own words.

The text does not show its source then, so each read of low trust taints the agent's writes for ``TAINT_WINDOW``. The
agent is known by its token or name. Receipts record reads through other processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from keepward.core.principals import Actor, Trust
from keepward.core.value import to_micros
from keepward.locks import ForkSafeLock
from keepward.storage.reads import StoreReader

#: How long a read taints later writes.
TAINT_WINDOW = timedelta(hours=1)
#: A receipt may be stored up to this long after it was made, because its transaction waited for a lock.
_LATE = timedelta(minutes=1)
#: Most actors, counted once for each trust that they read, whose reads of one tenant are stored apart.
MAX_READERS = 10_000
_BY_LABEL = {trust.label: trust for trust in Trust}
_LOW = tuple(trust for trust in Trust if trust < Trust.AGENT)
#: The name that means every actor.
_EVERYONE = ""


class ReadTaint:
    """What each actor of one tenant has read lately, from this process and from receipts of others.

    Threads may share it. The lock is never held while the store is read.
    """

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        #: Time of the last read, by actor key and trust; the one whose last read was noted first leads.
        self._last: dict[tuple[str, Trust], datetime] = {}
        #: Time of the newest receipt that was taken into account.
        self._learned_until: datetime | None = None
        #: Writes of the tenant at that time, plus later writes of this process.
        self._writes = -1

    def note(self, name: str, trust: Trust, at: datetime) -> datetime | None:
        """Note a read; return when the same actor last read something of this trust, or None."""
        with self._lock:
            before = self._last.pop((name, trust), None)
            self._last[name, trust] = at if before is None else max(before, at)
            if len(self._last) > MAX_READERS:
                self._make_room(at)
        return before

    def _make_room(self, now: datetime) -> None:
        """Forget reads that taint no more. If few did, let the oldest half of the others taint every actor."""
        self._last = {key: at for key, at in self._last.items() if now - at <= TAINT_WINDOW}
        for name, trust in list(self._last)[: max(0, len(self._last) - MAX_READERS // 2)]:
            at = self._last.pop((name, trust))
            self._last[_EVERYONE, trust] = max(at, self._last.pop((_EVERYONE, trust), at))

    def lowest(self, names: Iterable[str], now: datetime) -> Trust | None:
        """Return the lowest trust that one of these actors has read lately, or None."""
        pairs = [(name, trust) for name in (*names, _EVERYONE) for trust in _LOW]
        with self._lock:
            read = [(trust, self._last.get((name, trust))) for name, trust in pairs]
        return min((trust for trust, at in read if at is not None and now - at <= TAINT_WINDOW), default=None)

    def learn(self, store: StoreReader, tenant: str, now: datetime) -> None:
        """Learn from the receipts of other processes, unless nothing was written since the last time."""
        writes = store.writes(tenant)
        if writes == self._writes:
            return
        until = self._learned_until
        since = now - TAINT_WINDOW
        if until is not None:
            since = max(since, until - _LATE)
        # Receipt ids are UUIDv7: they begin with the time in milliseconds.
        millis = to_micros(since) // 1000
        for receipt in store.low_trust_deliveries(tenant, f"{millis >> 16:08x}-{millis & 0xFFFF:04x}"):
            at, trust, name = datetime.fromisoformat(receipt["at"]), receipt.get("handed", ""), receipt.get("to")
            until = at if until is None else max(at, until)
            if trust in _BY_LABEL and isinstance(name, str):
                self.note(name, _BY_LABEL[trust], at)
        with self._lock:
            self._learned_until, self._writes = until, writes

    def skip_own_write(self, writes: int) -> None:
        """Record that this process made the tenant's write of this number: it has no receipt of another process."""
        with self._lock:
            if self._writes == writes - 1:
                self._writes = writes


def actor_key(actor: Actor) -> str:
    """Return what distinguishes one actor from another: its token, else its kind and name."""
    return actor.credential or actor.label
