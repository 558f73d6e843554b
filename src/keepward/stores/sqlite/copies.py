"""Copies of a store: opened without seals, made whole, and accepted in its place.

Invariants
(1) A copy is believed only as far as its hash chain: it is opened unsealed, and walked before anything is taken
    from it.
(2) Accepting seals everything anew under a fresh key and forgets every head noted before; only an owner asks for it.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from keepward.errors import InvalidInput, NotAStore, Tampered
from keepward.ports.world import Anchor
from keepward.stores.sql import load_queries
from keepward.stores.sqlite import renew
from keepward.stores.sqlite.chain import walk_chain
from keepward.stores.sqlite.connection import Connections, translated
from keepward.stores.sqlite.opening import confirm, id_file, prepare
from keepward.stores.sqlite.sealing import Standing
from keepward.stores.sqlite.seals import Sealer
from keepward.stores.sqlite.store import SqliteStore
from keepward.stores.sqlite.upkeep import write_copy

SQL = load_queries("keepward.stores.sqlite")


def open_copy(file: Path) -> SqliteStore:
    """Open a copy for cleaning it; nothing is noted of it, and no file is made beside it.

    Raises:
        StoreUnavailable, NotAStore, NewerSchema: it is not a store, or cannot be reached.
        Tampered: a chain does not hold; see (1).
    """
    prepare(file, create=False, read_only=False)
    connections = Connections(str(file), mode="rw")
    try:
        store_id = confirm(connections, None)
        with connections.reading() as connection:
            for (tenant,) in connection.execute(SQL["tenants"]).fetchall():
                for fault in walk_chain(connection, Sealer(None), tenant):
                    raise Tampered(f"the copy's journal does not hold ({fault.row}: {fault.detail})")
    except BaseException:
        connections.close()
        raise
    return SqliteStore(connections, store_id, Standing(sealer=Sealer(None), anchor=None, state="a copy"))


def bring_back(backup: Path, aside: Path, target: Path) -> None:
    """Copy a backup to a file beside the one that it is to become.

    Raises:
        InvalidInput: the target is there already.
        NotAStore: what was at the target was another store.
        StoreUnavailable: a file cannot be read or written.
    """
    if target.exists():
        raise InvalidInput(f"{target.name} is there already; move it away, or name another file")
    prepare(backup, create=False, read_only=True)
    connections = Connections(str(backup), mode="ro")
    try:
        store_id = confirm(connections, None)
        said = id_file(target)
        if said.exists() and said.read_text("ascii", errors="replace").strip() != store_id:
            raise NotAStore(f"{said.name} names another store; restore to another file, or delete that one")
        with connections.reading() as connection:
            write_copy(connection, aside)
    finally:
        connections.close()


def rename(file: Path) -> str:
    """Give a copy an id of its own, so that it and the store it was made of can both live here; return the id."""
    fresh = secrets.token_hex(16)
    connections = Connections(str(file), mode="rw")
    try:
        with connections.writing() as connection:
            connection.execute(SQL["set_meta"], {"name": "store_id", "value": fresh})
    finally:
        connections.close()
    return fresh


def accept(file: Path, store_id: str, anchor: Anchor) -> None:
    """Seal a copy anew and note its heads; see (2). Its log is a log again from here on."""
    connections = Connections(str(file), mode="rw")
    try:
        with connections.rewriting() as connection, translated():
            connection.execute("PRAGMA journal_mode=WAL")
        anchor.bind(store_id, file)
        renew.adopt(connections, anchor, ("note_adopted", "the store was brought back from a backup"))
    finally:
        connections.close()
