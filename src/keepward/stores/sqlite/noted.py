"""Noted: what this machine has seen of each tenant, held against the store before it is used.

Invariants
(1) A tenant is met once by a store that is open: its journal and what stands beside it are not behind what was noted.
(2) What was noted is read before the store is: another process may write in between, and only forward.
(3) A note that cannot be written costs nothing that is durable: the next one tells of a later state.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from keepward.errors import KeepwardError, NotAdopted, Tampered
from keepward.model.commit import Head
from keepward.ports.world import Anchor
from keepward.stores.sqlite import beside
from keepward.stores.sqlite.connection import Connections, explained
from keepward.stores.sqlite.heads import against_noted, read_head
from keepward.stores.sqlite.seals import Sealer

_log = logging.getLogger(__name__)
#: The head of a tenant's journal and that of what stands beside it, as noted.
Seen: TypeAlias = tuple[Head | None, Head | None]


class Noted:
    """A part of ``SqliteStore``."""

    _sealer: Sealer
    _anchor: Anchor | None
    _known: set[str]
    _known_lock: threading.Lock
    _connections: Connections
    foreign: str | None
    #: ``lent``: of this thread, the tenant and the connection whose snapshot its reads share.
    _shared: threading.local

    def _admit(self) -> None:
        """Refuse the use of a store that this machine does not know, unless this thread inspects it.

        Raises:
            NotAdopted: see ``foreign``.
        """
        if self.foreign is not None and not getattr(self._shared, "inspecting", False):
            raise NotAdopted(self.foreign)

    @contextmanager
    def inspecting(self) -> Iterator[None]:
        """Let this thread read what is not to be used, to show a person what is in it; see the port."""
        before = getattr(self._shared, "inspecting", False)
        self._shared.inspecting = True
        try:
            yield
        finally:
            self._shared.inspecting = before

    @contextmanager
    def together(self, tenant: str) -> Iterator[None]:
        """Make this thread's reads of a tenant one snapshot; see the port."""
        with self._reading(tenant) as connection:
            before = getattr(self._shared, "lent", None)
            self._shared.lent = (tenant, connection)
            try:
                yield
            finally:
                self._shared.lent = before

    @contextmanager
    def _reading(self, tenant: str) -> Iterator[sqlite3.Connection]:
        self._admit()
        lent = getattr(self._shared, "lent", None)
        if lent is not None and lent[0] == tenant:
            try:
                yield lent[1]
            except sqlite3.Error as fault:
                raise explained(fault) from fault
            return
        # Noted first, then read: another process may write in between, and only forward.
        noted = self.noted(tenant)
        with self._connections.reading() as connection:
            if tenant not in self._known and not getattr(self._shared, "inspecting", False):
                self.meet(connection, tenant, noted)
            yield connection

    def _note(self, heads: Mapping[str, Head], besides: Mapping[str, Head]) -> None:
        if self._anchor is None:
            return
        for tenant in sorted(heads.keys() | besides.keys()):
            try:
                self._anchor.note(tenant, heads.get(tenant), besides.get(tenant))
            except (OSError, KeepwardError) as fault:
                _log.warning("the head could not be noted: %s", fault, extra={"action": "anchor_failed"})

    def meet(self, connection: sqlite3.Connection, tenant: str, seen: Seen) -> None:
        """Compare a tenant with what was noted of it, once.

        Raises:
            Tampered: the store is behind, or its journal was rewritten.
        """
        head, _ = read_head(connection, self._sealer, tenant)
        wrong = against_noted(connection, tenant, head, seen[0])
        wrong = wrong or beside.against_noted(connection, self._sealer, tenant, seen[1])
        if wrong:
            raise Tampered(
                f"{wrong}. Run `keepward verify`; if the change was meant, accept the store as it is with `adopt`"
            )
        with self._known_lock:
            self._known.add(tenant)

    def has_met(self, tenant: str) -> bool:
        """Whether a tenant was compared with what was noted of it."""
        return tenant in self._known

    def noted(self, tenant: str) -> Seen:
        """Return what was noted of a tenant that this handle has not met yet."""
        if self._anchor is None or tenant in self._known:
            return None, None
        return self._anchor.noted(tenant), self._anchor.noted(tenant, "beside")
