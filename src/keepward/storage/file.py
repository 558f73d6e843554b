"""The file of a SQLite store: what must hold before it is used, how a new one comes to be, and copies of it.

Invariants
(1) A file is never half a store: a new one is made aside, whole, and then linked into place.
(2) A store's id stands in it and in a file beside it; an empty, foreign, cut or replaced file is refused
    and nothing is written to it.
(3) A copy is consistent, readable by its owner alone, and under its final name only when it is whole. It is believed
    only as far as its hash chain: it is opened unsealed, and walked before anything is taken from it.
(4) Accepting a copy seals everything anew under a fresh key and forgets every head noted before; only an owner asks
    for it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from keepward import durable
from keepward.errors import NewerSchema, NotAStore, StoreUnavailable, Tampered
from keepward.ports.world import Anchor
from keepward.storage import rebuild
from keepward.storage.driver import connected, first_unwritable_path, sidecar_path, translate_error
from keepward.storage.journal import walk_chain
from keepward.storage.seals import Sealer
from keepward.storage.sql import SQL, load_migrations
from keepward.storage.sqlite import (
    APPLICATION_ID,
    SqliteDatabase,
    check_free,
    create_schema,
    leftover_sidecar,
    migrate,
    remove,
    write_copy,
)


def newest_schema() -> int:
    """Return the number of the newest schema."""
    return load_migrations()[-1].number


def id_file(path: Path) -> Path:
    """Return the file beside a store that names it; beside what a link leads to, as its log is."""
    return sidecar_path(path, ".id")


def prepare(path: Path, *, create: bool, read_only: bool, known: Callable[[Path], bool] | None = None) -> str:
    """Make sure that a store is there; return the mode in which it can be opened: rw or ro.

    An empty file becomes a new store where nothing says that one was here: the id file does, and ``known``.

    Raises:
        StoreUnavailable, NotAStore, NewerSchema: see (2).
    """
    try:
        present = path.exists()
        if not present:
            _make_folder(path, create=create and not read_only)
            _create(path)
        elif path.is_file() and path.stat().st_size == 0 and not (id_file(path).exists() or (known and known(path))):
            if read_only or not create:
                raise StoreUnavailable(f"{path} is empty, there is no store in it yet; make one with `keepward init`")
            _create(path)
        elif not path.is_file():
            raise NotAStore(f"{path} is not a file; name a file for the store")
        _inspect(path)
        writable = not read_only and first_unwritable_path(path) is None
    except PermissionError as fault:
        raise StoreUnavailable(f"{path} cannot be reached: this user may not read its file or folder") from fault
    except OSError as fault:
        raise StoreUnavailable(f"{path} cannot be reached: {fault.strerror or 'the disk gave an error'}") from fault
    return "rw" if writable else "ro"


def store_id_in(path: Path) -> str | None:
    """Return the id that a file's own tables name, as they stand; None where it is not a store."""
    try:
        with connected(path, mode="immutable", pragmas=()) as connection:
            row = connection.execute(SQL["meta"], {"name": "store_id"}).fetchone()
    except (sqlite3.Error, OSError, UnicodeDecodeError):
        return None
    return str(row[0]) if row else None


def _make_folder(path: Path, *, create: bool) -> None:
    # Asked in this order: another process that makes the store at this moment writes the file before its id.
    if id_file(path).exists() and not path.exists():
        raise NotAStore(
            f"{path} is gone but {id_file(path).name} is still beside it: restore the store from a backup, "
            "or delete that file to begin a new one"
        )
    if path.is_symlink():
        raise StoreUnavailable(f"{path} is a link to a file that is not there; put that back, or remove the link")
    if not create:
        raise StoreUnavailable(f"there is no store at {path}; check the path")
    if not path.parent.is_dir():
        raise StoreUnavailable(f"the folder {path.parent} does not exist; check the path, or create it")


@cache
def _empty_store() -> tuple[bytes, bytes]:
    """Return the bytes of an empty store, and its id; a new store has the same bytes with an id of its own."""
    with connected(":memory:") as connection:
        create_schema(connection)
        (store_id,) = connection.run("meta", name="store_id").fetchone()
        file = bytearray(connection.serialize())
    # The two bytes of the header that say that a log is written (WAL).
    file[18:20] = b"\x02\x02"
    return bytes(file), str(store_id).encode("ascii")


def _create(path: Path) -> None:
    # Asked in this order: another process that makes the store at this moment writes its log after the file.
    if (log := leftover_sidecar(path)) and not (path.exists() and path.stat().st_size):
        raise NotAStore(
            f"{path} is gone but {log.name}, which holds what was written to it last, is still beside it: put the file "
            "back, or move that one away to begin a new store"
        )
    aside = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns():x}.new")
    empty, store_id = _empty_store()
    try:
        with durable.new_file(aside) as out:
            out.write(empty.replace(store_id, secrets.token_hex(16).encode("ascii")))
        _inspect(aside)
        try:
            os.link(aside, path)
        except FileExistsError:
            if path.stat().st_size:
                return  # Another process was first; its store is as good.
            aside.rename(path)
        except OSError:
            # A file system without links: the check and the rename are two steps there.
            if not path.exists():
                aside.rename(path)
        durable.flush(path.parent)
    finally:
        remove(aside)


def _inspect(path: Path) -> None:
    """Look at the header of the file without touching it.

    Raises:
        NotAStore, NewerSchema: see (2).
    """
    beside = " (its id file says that a store was here: restore it from a backup)" if id_file(path).exists() else ""
    if path.stat().st_size == 0:
        raise NotAStore(f"{path} is empty, and a store was here; restore it from a backup")
    for left in range(20, -1, -1):
        application, schema, short = _header(path)
        if application is None:
            hint = f"`keepward store recover {path} NEW` copies what still holds" if beside else "choose another file"
            raise NotAStore(f"{path} is not a Keepward store{beside}; {hint}")
        if application != APPLICATION_ID:
            raise NotAStore(f"{path} is another program's database{beside}; choose another file")
        if schema > newest_schema():
            raise NewerSchema
        if not short:
            return
        # While the file is being written it can be shorter than its header says for a moment.
        if left:
            time.sleep(0.01)
    raise NotAStore(f"{path} was cut off; `keepward store recover {path} NEW` copies what holds, or restore a backup")


def _header(path: Path) -> tuple[int | None, int, bool]:
    """Return the program and the schema that a file's header names, None where it has none, and whether it was cut off.

    SQLite reads it: to close the file by any other way drops the locks that other handles of this process have on it,
    and then another process removes the log that they write to.
    """
    wal = sidecar_path(path, "-wal")
    if not os.access(path, os.R_OK):
        raise PermissionError(path.name)
    short = False
    while True:
        # With that it opens a file that is shorter than its header says.
        pragmas = ("writable_schema=ON",) if short else ()
        try:
            with connected(path, mode="immutable", pragmas=pragmas) as db:
                application, schema, page = (
                    int(db.execute(f"PRAGMA {name}").fetchone()[0])
                    for name in ("application_id", "user_version", "page_size")
                )
        except sqlite3.Error as fault:
            name = getattr(fault, "sqlite_errorname", None)
            if name == "SQLITE_CORRUPT" and not short:
                short = True
                continue
            if name in {"SQLITE_NOTADB", "SQLITE_CORRUPT"}:
                return None, 0, short
            raise translate_error(fault) from fault
        # SQLite takes a part of a page for a whole one. What is not in the file may be in the log.
        short = short or path.stat().st_size % page > 0
        return application, schema, short and not (wal.exists() and wal.stat().st_size > 0)


def migrate_and_check_id(connections: SqliteDatabase, path: Path | None) -> str:
    """Bring an opened store up to date, compare its id with the file beside it, and return its id.

    Raises:
        NotAStore: the store is another than the one that was here.
        NewerSchema: see (2).
    """
    with connections.reading() as db:
        schema = db.execute("PRAGMA user_version").fetchone()[0]
        if schema > newest_schema():
            raise NewerSchema
        row = db.run("meta", name="store_id").fetchone()
    if row is None or not row[0]:
        raise NotAStore(
            "the store has lost its id: its tables were emptied; `keepward store recover` copies what holds"
        )
    store_id = str(row[0])
    if schema < newest_schema():
        if not connections.writable:
            raise StoreUnavailable("the store needs a new schema and can only be read; open it once for writing")
        with connections.maintenance_connection() as db:
            migrate(db)
    if path is not None:
        _compare_id(path, store_id, writable=connections.writable)
    return store_id


def _compare_id(path: Path, store_id: str, *, writable: bool) -> None:
    beside = id_file(path)
    try:
        said = beside.read_text("ascii", errors="replace").strip()
    except FileNotFoundError:
        said = ""
    except OSError as fault:
        raise StoreUnavailable(f"{beside} cannot be read; check its permissions") from fault
    if said and said != store_id:
        raise NotAStore(
            f"{path} is not the store that was here: {beside.name} names another. Put the right file back, "
            "or delete that file if the change was meant"
        )
    if not said and writable:
        try:
            durable.replace(beside, f"{store_id}\n".encode("ascii"))
        except OSError as fault:
            why = fault.strerror or "the disk gave an error"
            raise StoreUnavailable(f"{beside} cannot be written: {why}; mend that and try again") from fault


def open_unsealed(file: Path) -> tuple[SqliteDatabase, str]:
    """Open a copy, and return its id: nothing is noted of it, and no file is made beside it.

    Raises:
        StoreUnavailable, NotAStore, NewerSchema: it is not a store, or cannot be reached.
        Tampered: a chain does not hold; see (3).
    """
    prepare(file, create=False, read_only=False)
    connections = SqliteDatabase(str(file), mode="rw")
    try:
        store_id = migrate_and_check_id(connections, None)
        with connections.reading() as db:
            for (tenant,) in db.run("tenants").fetchall():
                for fault in walk_chain(db, Sealer(None), tenant):
                    raise Tampered(f"the copy's journal does not hold ({fault.row}: {fault.detail})")
    except BaseException:
        connections.close()
        raise
    return connections, store_id


def restore_file(backup: Path, aside: Path, target: Path) -> None:
    """Copy a backup to a file beside the one that it is to become.

    Raises:
        InvalidInput: the target is there already.
        NotAStore: what was at the target was another store.
        StoreUnavailable: a file cannot be read or written.
    """
    check_free(target)
    prepare(backup, create=False, read_only=True)
    with contextlib.closing(SqliteDatabase(str(backup), mode="ro")) as connections:
        store_id = migrate_and_check_id(connections, None)
        said = id_file(target)
        if said.exists() and said.read_text("ascii", errors="replace").strip() != store_id:
            raise NotAStore(f"{said.name} names another store; restore to another file, or delete that one")
        with connections.reading() as db:
            write_copy(db, aside)


def give_copy_new_id(file: Path) -> str:
    """Give a copy an id of its own, so that it and the store it was made of can both live here; return the id."""
    fresh = secrets.token_hex(16)
    with contextlib.closing(SqliteDatabase(str(file), mode="rw")) as connections, connections.writing() as db:
        db.run("set_meta", name="store_id", value=fresh)
    return fresh


def give_new_id(connections: SqliteDatabase, anchor: Anchor) -> str:
    """Give an opened copy an id of its own, in its tables, beside its file and in the anchor; return the id.

    A crash in between leaves a store that its owner adopts again.

    Raises:
        OSError: the file beside it cannot be written.
    """
    file, fresh = Path(connections.path), secrets.token_hex(16)
    id_file(file).unlink(missing_ok=True)
    with connections.writing() as db:
        db.run("set_meta", name="store_id", value=fresh)
    durable.replace(id_file(file), f"{fresh}\n".encode("ascii"))
    anchor.bind(fresh, file)
    return fresh


def adopt_copy(file: Path, store_id: str, anchor: Anchor) -> None:
    """Seal a copy anew and note its heads; see (4). Its log is a log again from here on."""
    with contextlib.closing(SqliteDatabase(str(file), mode="rw")) as connections:
        with connections.maintenance_connection() as db:
            db.execute("PRAGMA journal_mode=WAL")
        anchor.bind(store_id, file)
        rebuild.adopt(connections, anchor, ("note_adopted", "the store was brought back from a backup"))
