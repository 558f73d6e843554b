"""Sealing: which key this machine uses for a store, and what happens when it has none.

Invariants
(1) A store for which this machine has no key is sealed anew only after its whole journal was verified,
    and never silently.
(2) Where this machine has a key, that key decides: rows without its seal are damaged, whatever the store
    says of itself, until an owner accepts them with ``adopt``.
"""

from __future__ import annotations

import logging
import sqlite3
import warnings

from keepward.errors import Tampered
from keepward.ports.world import Anchor
from keepward.stores.sql import load_queries
from keepward.stores.sqlite import renew
from keepward.stores.sqlite.connection import Connections
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
_log = logging.getLogger(__name__)


class UnsealedWarning(UserWarning):
    """The store's seals were made anew, or there are none."""


def choose_sealer(connections: Connections, store_id: str, anchor: Anchor | None) -> tuple[Sealer, Anchor | None, str]:
    """Return the sealer, the anchor if it can be used, and its state in words."""
    if anchor is None:
        return Sealer(None), None, "unavailable: none was given"
    try:
        anchor.bind(store_id)
        key = anchor.key()
    except OSError as fault:
        return Sealer(None), None, f"unavailable: {fault.strerror or 'its folder cannot be read'}"
    with connections.reading() as connection:
        empty = connection.execute("SELECT NOT EXISTS (SELECT 1 FROM commits)").fetchone()[0]
    if key is not None:
        return Sealer(key), anchor, "kept"
    if not connections.writable:
        return Sealer(None), None, "unavailable: this machine has no key for the store, which can only be read"
    reason = "this machine had no key for it"
    try:
        sealer = renew.adopt(connections, anchor, None if empty else reason)
    except OSError as fault:
        return Sealer(None), None, f"unavailable: {fault.strerror or 'its folder cannot be written'}"
    if not empty:
        message = f"the store's journal was verified and its seals were made anew, because {reason}"
        _log.warning(message, extra={"action": "adopted"})
        warnings.warn(message, UnsealedWarning, stacklevel=4)
    return sealer, anchor, "kept"


def claim(connection: sqlite3.Connection, sealer: Sealer) -> None:
    """Make sure, inside a transaction, that the store names the key that is about to be used.

    Raises:
        Tampered: the store was written with another key, or without one, or its settings are gone.
    """
    row = connection.execute(SQL["meta"], {"name": "sealed_by"}).fetchone()
    if row is None:
        raise Tampered("the store has lost its settings; run `keepward verify` and restore it from a backup")
    if row[0] == sealer.key_id:
        return
    if sealer.active:
        for tenant, seq, digest, restored, mac in connection.execute(SQL["heads"]).fetchall():
            if not sealer.holds_row(mac, "heads", tenant, seq, digest, restored):
                raise Tampered(
                    "the store was written without this machine's key; run `keepward verify`, and accept it with "
                    "`adopt` if that was meant"
                )
    # Either the name alone was bent, or this process writes without seals and says so.
    connection.execute(SQL["set_meta"], {"name": "sealed_by", "value": sealer.key_id})
