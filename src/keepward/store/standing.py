"""Sealing: which key this machine uses for a store, and what happens when it has none.

Invariants
(1) A store that holds something and for which this machine has no key, or another than it was last written with,
    is foreign: it is looked at and never obeyed, until an owner accepts it with ``adopt``.
(2) Where this machine has a key, that key decides: rows without its seal are damaged, whatever the store
    says of itself, until an owner accepts them with ``adopt``.
"""

from __future__ import annotations

import errno
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from keepward.errors import StoreUnavailable, Tampered
from keepward.model.codec import digest
from keepward.ports.world import Anchor
from keepward.store import anew
from keepward.store.seals import Sealer
from keepward.store.sql import Connector, Session
from keepward.store.tenant import against_noted, of_row

_log = logging.getLogger(__name__)


#: Tables that are empty in a store that is new.
_CONTENT = ("tenants", "commits", "events", "records", "documents")
_UNKNOWN = (
    "this machine does not know the store, so nothing of it is used: look at it with `keepward adopt`, which lists "
    "what it would tell an agent; if it is your own, from another home, bring its key with `keepward key import`"
)
_ELSEWHERE = (
    "the store was last written under the key of another home, so nothing of it is used: give both one key with "
    "`keepward key export` there and `keepward key import` here, or look at it with `keepward adopt`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a store stands to this machine."""

    sealer: Sealer
    #: None where nothing can be noted of it.
    anchor: Anchor | None
    #: Of the anchor, in words.
    state: str
    #: Why it is not used; None where it is.
    foreign: str | None = None
    #: Whether it is a copy of a store that lives on, seen for the first time.
    copied: bool = False


def stand(connector: Connector, store_id: str, anchor: Anchor | None, path: Path | None) -> Standing:
    """Return how a store stands to this machine; a new one gets a key."""
    if anchor is None:
        return Standing(sealer=Sealer(None), anchor=None, state="unavailable: none was given")
    try:
        known = anchor.bind(store_id, path)
        key = anchor.key()
    except OSError as fault:
        _not_the_disk(fault)
        why = fault.strerror or "its folder cannot be read"
        return Standing(sealer=Sealer(None), anchor=None, state=f"unavailable: {why}")
    if key is not None:
        sealer = Sealer(key)
        if _written_elsewhere(connector, sealer, anchor):
            return Standing(sealer=Sealer(None), anchor=anchor, state="of another home", foreign=_ELSEWHERE)
        if known == "copied":
            _log.warning(
                "this is a copy of a store that is still at its place: it is a store of its own from here on, and "
                "what is written, revoked or erased in one does not reach the other",
                extra={"action": "copied"},
            )
        return Standing(sealer=sealer, anchor=anchor, state="kept", copied=known == "copied")
    if not _is_new(connector):
        return Standing(sealer=Sealer(None), anchor=anchor, state="not adopted", foreign=_UNKNOWN)
    if full := connector.full():
        # It holds nothing to read, and what is written once there is room needs its key before.
        raise StoreUnavailable(full)
    try:
        sealer = anew.adopt(connector, anchor, None) if connector.writable else Sealer(None)
    except OSError as fault:
        _not_the_disk(fault)
        why = fault.strerror or "its folder cannot be written"
        return Standing(sealer=Sealer(None), anchor=None, state=f"unavailable: {why}")
    if not sealer.active:
        return Standing(sealer=sealer, anchor=None, state="unavailable: the store is empty and can only be read")
    return Standing(sealer=sealer, anchor=anchor, state="kept")


def _not_the_disk(fault: OSError) -> None:
    """Let a folder that may not be used be done without; a disk that fails passes, and the store waits for it.

    Raises:
        StoreUnavailable: what would be written now without a key would be unknown to this machine afterwards.
    """
    if fault.errno in {errno.EIO, errno.ENOSPC, errno.EDQUOT}:
        why = os.strerror(fault.errno).lower()
        raise StoreUnavailable(
            f"the folder of keys cannot be used ({why}); mend that and try again: nothing was lost"
        ) from fault


def _is_new(connector: Connector) -> bool:
    with connector.reading() as db:
        return all(db.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() is None for name in _CONTENT)


def _held(db: Session, sealer: Sealer) -> bool:
    """Whether the rows of all tenants carry this seal."""
    return all(sealer.holds_row(row[-1], "tenants", *row[:-1]) for row in db.run("tenant_rows"))


def _written_elsewhere(connector: Connector, sealer: Sealer, anchor: Anchor) -> bool:
    """Whether the store was sealed under another key and its journal goes on from what this machine has seen of it."""
    with connector.reading() as db:
        row = db.run("meta", name="sealed_by").fetchone()
        if row is None or not row[0] or row[0] == sealer.key_id or _held(db, sealer):
            return False
        gone = anchor.names()
        for cells in db.run("tenant_rows").fetchall():
            try:
                state = of_row(Sealer(None), cells)
                gone.discard(digest("tenant", state.tenant.encode("utf-8", "surrogatepass")).hex())
                noted = anchor.noted(state.tenant)
            except Tampered:
                return False
            if against_noted(db, state, noted):
                return False
        return not gone


def claim(db: Session, sealer: Sealer) -> None:
    """Make sure, inside a transaction, that the store names the key that is about to be used.

    Raises:
        Tampered: the store was written with another key, or without one, or its settings are gone.
    """
    row = db.run("meta", name="sealed_by").fetchone()
    if row is None:
        raise Tampered(
            "the store has lost its settings; run `keepward verify`; `keepward rescue` copies what still holds"
        )
    if row[0] == sealer.key_id:
        return
    if sealer.active and not _held(db, sealer):
        raise Tampered(
            "the store was written without this machine's key; run `keepward verify`, and accept it with "
            "`adopt` if that was meant"
        )
    # Either the name alone was bent, or this process writes without seals and says so.
    db.run("set_meta", name="sealed_by", value=sealer.key_id)
