"""Heads: how far each tenant's journal has come, under a key that is not in the store.

Invariants
(1) The head row equals the newest commit and carries a MAC; anything else is Tampered.
(2) What this machine noted of a tenant is never ahead of the store, and is on its chain.
"""

from __future__ import annotations

import sqlite3

from keepward.errors import Tampered
from keepward.model.commit import EMPTY_HASH, Head
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")


def read_head(connection: sqlite3.Connection, sealer: Sealer, tenant: str) -> tuple[Head, int]:
    """Return a tenant's head, and the seq up to which its journal was restored from an export.

    Raises:
        Tampered: see (1).
    """
    seq, digest, restored, mac, last, last_hash = connection.execute(SQL["head"], {"tenant": tenant}).fetchone()
    if seq is None and last is None:
        return Head(seq=0, hash=EMPTY_HASH), 0
    if (seq, digest) != (last, last_hash):
        raise Tampered("the end of the journal is missing or was replaced; run `keepward verify`")
    if not sealer.holds_row(mac, "heads", tenant, seq, digest, restored):
        raise Tampered(
            "the head of the journal does not carry this machine's seal; run `keepward verify`, and accept the store "
            "with `adopt` if it was meant to be written elsewhere"
        )
    return Head(seq=seq, hash=digest), restored


def write_head(connection: sqlite3.Connection, sealer: Sealer, tenant: str, head: Head, restored: int) -> None:
    """Write a tenant's head."""
    values = (tenant, head.seq, head.hash, restored)
    connection.execute(SQL["set_head"], (*values, sealer.row("heads", *values)))


def against_noted(connection: sqlite3.Connection, tenant: str, head: Head, noted: Head | None) -> str | None:
    """Return what is wrong with a head, given what this machine noted before the head was read; None if nothing."""
    if noted is None or noted.seq == 0:
        return None
    if noted.seq > head.seq:
        return (
            f"the store ends at commit {head.seq} but this machine has seen commit {noted.seq}: an older copy was "
            "put in its place, or its end was cut off"
        )
    row = connection.execute(SQL["commit_hash_at"], {"tenant": tenant, "seq": noted.seq}).fetchone()
    if row is None or row[0] != noted.hash:
        return f"commit {noted.seq} is not the one this machine has seen: the journal was rewritten"
    return None
