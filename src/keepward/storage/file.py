"""The file of a SQLite store: checks before it is opened, creation of a new one, and copies of it.

Invariants
(1) A file is never half a store: a new one is written under another name, completely, and then linked to its path.
(2) The id of a store is in its tables and in a file next to it. An empty, foreign, cut off or replaced file is refused
    and stays unchanged.
(3) A copy is consistent, readable by its owner only, and gets its final name once it is complete. It is opened
    unsealed, and its hash chain is verified before anything is read from it.
(4) Accepting a copy seals all rows under a new key and deletes every recorded head; only an owner does that.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from keepward import durable
from keepward.errors import NewerSchema, NotAStore, StoreUnavailable, Tampered
from keepward.ports.world import Anchor
from keepward.storage import rebuild
from keepward.storage.driver import connected, first_unwritable_path, has_wal, sidecar_path, translate_error
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
    """Return the path of the file with a store's id; next to the target of a link, like the log."""
    return sidecar_path(path, ".id")


def prepare(path: Path, *, create: bool, read_only: bool, known: Callable[[Path], bool] | None = None) -> str:
    """Create the store if needed; return the mode in which it can be opened: rw or ro.

    An empty file becomes a new store, unless the id file or ``known`` says that a store was here.

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
    except PermissionError as exc:
        raise StoreUnavailable(f"{path} cannot be reached: this user may not read its file or folder") from exc
    except OSError as exc:
        raise StoreUnavailable(f"{path} cannot be reached: {exc.strerror or 'the disk gave an error'}") from exc
    return "rw" if writable else "ro"


def store_id_in(path: Path) -> str | None:
    """Return the id in a file's own tables, unchecked; None if it is not a store."""
    try:
        with connected(path, mode="immutable", pragmas=()) as connection:
            row = connection.execute(SQL["meta"], {"name": "store_id"}).fetchone()
    except (sqlite3.Error, OSError, UnicodeDecodeError):
        return None
    return str(row[0]) if row else None


def _make_folder(path: Path, *, create: bool) -> None:
    # In this order: another process that creates the store at this moment writes the file before its id.
    if id_file(path).exists() and not path.exists():
        raise NotAStore(
            f"{path} is missing but {id_file(path).name} is still next to it: restore the store from a backup, "
            "or delete that file to begin a new one"
        )
    if path.is_symlink():
        raise StoreUnavailable(f"{path} is a link to a file that is not there; put that back, or remove the link")
    if not create:
        raise StoreUnavailable(f"there is no store at {path}; check the path")
    if not path.parent.is_dir():
        raise StoreUnavailable(f"the folder {path.parent} does not exist; check the path, or create it")


def _empty_store() -> bytes:
    """Return the bytes of an empty store."""
    with connected(":memory:") as connection:
        create_schema(connection)
        file = bytearray(connection.serialize())
    # The two bytes of the header for WAL mode.
    file[18:20] = b"\x02\x02"
    return bytes(file)


def _create(path: Path) -> None:
    # In this order: another process that creates the store at this moment writes its log after the file.
    if (log := leftover_sidecar(path)) and not (path.exists() and path.stat().st_size):
        raise NotAStore(
            f"{path} is missing but {log.name}, which has the last changes to it, is still next to it: put the file "
            "back, or move that one away to begin a new store"
        )
    aside = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns():x}.new")
    try:
        with durable.new_file(aside) as out:
            out.write(_empty_store())
        _inspect(aside)
        try:
            os.link(aside, path)
        except FileExistsError:
            if path.stat().st_size:
                return  # Another process was first; its store is as good.
            aside.replace(path)
        except OSError:
            # A file system without links: the check and the rename are two steps there.
            if not path.exists():
                aside.rename(path)
        durable.flush(path.parent)
    except PermissionError as exc:
        raise StoreUnavailable(f"{path} cannot be made: this user may not write the folder {path.parent}") from exc
    finally:
        remove(aside)


def _inspect(path: Path) -> None:
    """Read the header of the file without changing it.

    Raises:
        NotAStore, NewerSchema: see (2).
    """
    id_hint = " (its id file says that a store was here: restore it from a backup)" if id_file(path).exists() else ""
    if path.stat().st_size == 0:
        raise NotAStore(f"{path} is empty, and a store was here; restore it from a backup")
    for left in range(20, -1, -1):
        application, schema, short = _header(path)
        if application is None:
            hint = f"`keepward store recover {path} NEW` copies what is intact" if id_hint else "choose another file"
            raise NotAStore(f"{path} is not a Keepward store{id_hint}; {hint}")
        if application != APPLICATION_ID:
            raise NotAStore(f"{path} is another program's database{id_hint}; choose another file")
        if schema > newest_schema():
            raise NewerSchema
        if not short:
            return
        # While another process writes the file, it can be shorter than its header says for a moment.
        if left:
            time.sleep(0.01)
    raise NotAStore(
        f"{path} was cut off; `keepward store recover {path} NEW` copies what is intact, or restore a backup"
    )


def _header(path: Path) -> tuple[int | None, int, bool]:
    """Return the application id and schema in a file's header, None without one, and whether it was cut off.

    SQLite reads it: closing the file by any other means drops the locks of this process's other handles, and then
    another process can remove the log that they write to.
    """
    if not os.access(path, os.R_OK):
        raise PermissionError(path.name)
    # With this setting SQLite opens a file that is shorter than its header says.
    for pragmas in ((), ("writable_schema=ON",)):
        try:
            with connected(path, mode="immutable", pragmas=pragmas) as db:
                application, schema, page = (
                    int(db.execute(f"PRAGMA {name}").fetchone()[0])
                    for name in ("application_id", "user_version", "page_size")
                )
        except sqlite3.Error as exc:
            if getattr(exc, "sqlite_errorname", None) not in {"SQLITE_NOTADB", "SQLITE_CORRUPT"}:
                raise translate_error(exc) from exc
            continue
        # SQLite counts a partial page as a complete one. The log may have the missing pages.
        short = bool(pragmas) or path.stat().st_size % page > 0
        return application, schema, short and not has_wal(str(path))
    return None, 0, False


def migrate_and_check_id(connections: SqliteDatabase, path: Path | None) -> str:
    """Migrate an open store, compare its id with the id file, and return the id.

    Raises:
        NotAStore: it is another store than the one that was here.
        NewerSchema: see (2).
    """
    with connections.reading() as db:
        schema = db.execute("PRAGMA user_version").fetchone()[0]
        if schema > newest_schema():
            raise NewerSchema
        row = db.run("meta", name="store_id").fetchone()
    if row is None or not row[0]:
        raise NotAStore(
            "the store has lost its id: its tables were emptied; `keepward store recover` copies what is intact"
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


def read_id(id_path: Path) -> str:
    """Return the content of an id file.

    Raises:
        InvalidInput: it is not a regular file.
        OSError: it cannot be read.
    """
    return durable.read_regular(id_path, 1 << 20).decode("ascii", "replace").strip()


def _compare_id(path: Path, store_id: str, *, writable: bool) -> None:
    id_path = id_file(path)
    try:
        said = read_id(id_path)
    except FileNotFoundError:
        said = ""
    except OSError as exc:
        raise StoreUnavailable(f"{id_path} cannot be read; check its permissions") from exc
    if said and said != store_id:
        raise NotAStore(
            f"{path} is not the store that was here: {id_path.name} names another. Put the right file back, "
            "or delete that file if the change was meant"
        )
    if not said and writable:
        try:
            durable.replace(id_path, f"{store_id}\n".encode("ascii"))
        except OSError as exc:
            why = exc.strerror or "the disk gave an error"
            raise StoreUnavailable(f"{id_path} cannot be written: {why}; fix that and try again") from exc


def open_unsealed(file: Path) -> tuple[SqliteDatabase, str]:
    """Open a copy and return its id. No head is recorded and no id file is written.

    Raises:
        StoreUnavailable, NotAStore, NewerSchema: it is not a store, or cannot be read.
        Tampered: a chain is broken; see (3).
    """
    prepare(file, create=False, read_only=False)
    connections = SqliteDatabase(str(file), mode="rw")
    try:
        store_id = migrate_and_check_id(connections, None)
        with connections.reading() as db:
            for (tenant,) in db.run("tenants").fetchall():
                for fault in walk_chain(db, Sealer(None), tenant):
                    raise Tampered(f"the copy's journal is damaged ({fault.row}: {fault.detail})")
    except BaseException:
        connections.close()
        raise
    return connections, store_id


def restore_file(backup: Path, aside: Path, target: Path) -> None:
    """Copy a backup to a temporary file next to its target.

    Raises:
        InvalidInput: the target exists.
        NotAStore: the id file at the target names another store.
        StoreUnavailable: a file cannot be read or written.
    """
    check_free(target)
    prepare(backup, create=False, read_only=True)
    with contextlib.closing(SqliteDatabase(str(backup), mode="ro")) as connections:
        store_id = migrate_and_check_id(connections, None)
        said = id_file(target)
        if said.exists() and read_id(said) != store_id:
            raise NotAStore(f"{said.name} names another store; restore to another file, or delete that one")
        with connections.reading() as db:
            write_copy(db, aside)


def give_copy_new_id(file: Path) -> str:
    """Give a copy an id of its own, so that it can exist with the original on one machine; return the id."""
    fresh = secrets.token_hex(16)
    with contextlib.closing(SqliteDatabase(str(file), mode="rw")) as connections, connections.writing() as db:
        db.run("set_meta", name="store_id", value=fresh)
    return fresh


def give_new_id(connections: SqliteDatabase, anchor: Anchor) -> str:
    """Give an open copy an id of its own in its tables, its id file and the anchor; return the id.

    A crash in between leaves a store that its owner adopts again.

    Raises:
        OSError: the id file cannot be written.
    """
    file, fresh = Path(connections.path), secrets.token_hex(16)
    id_file(file).unlink(missing_ok=True)
    with connections.writing() as db:
        db.run("set_meta", name="store_id", value=fresh)
    durable.replace(id_file(file), f"{fresh}\n".encode("ascii"))
    anchor.bind(fresh, file)
    return fresh


def use_wal(file: Path) -> None:
    """Switch a copy back to WAL mode."""
    with (
        contextlib.closing(SqliteDatabase(str(file), mode="rw")) as connections,
        connections.maintenance_connection() as db,
    ):
        db.execute("PRAGMA journal_mode=WAL")


def adopt_copy(file: Path, store_id: str, anchor: Anchor) -> None:
    """Reseal a copy and record its heads, see (4)."""
    with contextlib.closing(SqliteDatabase(str(file), mode="rw")) as connections:
        anchor.bind(store_id, file)
        rebuild.adopt(connections, anchor, ("note_adopted", "the store was brought back from a backup"))
