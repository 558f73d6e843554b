"""The event store: the journal and everything computed from it, in one database.

Invariants
(1) Every read names a tenant. Only owner tools, and reads that precede the choice of a tenant, see all tenants.
(2) ``write`` is one transaction: other readers see all of it or nothing.
(3) The sealing key is never stored next to the store. Without a folder for the key, nothing is written to a new store.
    An unsealed store whose key folder cannot be read still works; ``facts`` and ``notes`` say that it is unsealed.
(4) Before an open store uses a tenant, it compares the tenant's head with the anchor once: the store must not be behind
    it. The anchor is read first, since another process can only advance the store in between.
(5) A head that the anchor cannot record loses no durable data. The next record describes a later state.
(6) A store is untrusted if it has content and this machine has no key for it, or another key than it was written with.
    It can be inspected, but its content is not used until an owner accepts it with ``adopt``.
(7) The key of this machine decides: rows without its seal are damaged, until an owner accepts them.

Late imports: an extra may be missing.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from keepward import deadline
from keepward.core.commit import Commit, Event, Head
from keepward.core.journal import Fault
from keepward.core.memory import Record, Status
from keepward.core.query import Filter
from keepward.core.serialization import tenant_digest
from keepward.errors import Conflict, KeepwardError, NotAdopted, NotAStore, StoreUnavailable, Tampered
from keepward.folders import data_folder
from keepward.locks import ForkSafeLock
from keepward.ports.store import ReadResult, ScopeRange, UnreadableMemory
from keepward.ports.world import Anchor, BlobStore
from keepward.storage import rebuild
from keepward.storage import tenant as tenants
from keepward.storage.driver import sidecar_path
from keepward.storage.erasing import SCRUB_PENDING
from keepward.storage.file import give_new_id, migrate_and_check_id, open_unsealed, prepare
from keepward.storage.index_files import IndexFiles
from keepward.storage.integrity import IntegrityMonitor
from keepward.storage.reads import StoreReader
from keepward.storage.rows import json_array
from keepward.storage.seals import Sealer
from keepward.storage.server_state import SharedState
from keepward.storage.sql import Connection, Database
from keepward.storage.sqlite import SqliteDatabase, create_schema
from keepward.storage.tenant import TenantHead, compare_head_with_anchor, head_of_row
from keepward.storage.verify import NotedHeads, check_store
from keepward.storage.writer import UnitOfWork

#: URL schemes of PostgreSQL.
URL_SCHEMES = ("postgresql://", "postgres://")
_log = logging.getLogger(__name__)
#: Name in ``meta`` of the id of the store that is being copied to this one.
COPYING = "copying"
#: Tables that are empty in a new store.
_CONTENT = ("tenants", "commits", "events", "records", "documents")
UNKNOWN_STORE = (
    "this machine does not know the store, so nothing of it is used: look at it with `keepward adopt`, which lists "
    "what it would tell an agent; if it is your own, from another home, bring its key with `keepward key import`"
)
_COPY = (
    "this is a copy of the store at {path}, which is still there, so nothing of it is used: look at it with "
    "`keepward adopt`, which makes it a store of its own; what is written, revoked or erased in one then does not "
    "reach the other. If it is to replace the original, move that away first"
)
_OUT_OF_REACH = "the store is sealed, and its key is out of reach here"
_READ_KEY = "let this user read and write the configuration folder"
_ELSEWHERE = (
    "the store was last written under the key of another home, so nothing of it is used: give both one key with "
    "`keepward key export` there and `keepward key import` here, or look at it with `keepward adopt`"
)


def open_store(
    url: str | Path,
    *,
    anchor: Anchor | None = None,
    create: bool = True,
    read_only: bool = False,
    continues_copy: bool = False,
) -> EventStore:
    """Open the store in a file or in a PostgreSQL database, or a new one in ``:memory:``.

    A file without write permission is opened read-only. ``anchor`` stores the sealing key and the heads outside the
    store's folder; without it a file is not sealed. A store unknown to the anchor is opened as untrusted: see
    ``foreign``. ``continues_copy`` opens a store to which a migration was interrupted as well.

    Raises:
        StoreUnavailable, NotAStore, NewerSchema: the message says what to do.
    """
    if str(url) == ":memory:":
        memory = SqliteDatabase(":memory:", mode="rw")
        with memory.reading() as db:
            create_schema(db)
            sealer = Sealer(db.execute("SELECT randomblob(32)").fetchone()[0])
            db.run("set_meta", name="sealed_by", value=sealer.key_id)
        return EventStore(
            memory, migrate_and_check_id(memory, None), StoreTrust(sealer=sealer, anchor=None, state="memory")
        )
    if str(url).startswith(URL_SCHEMES):
        from keepward.storage.postgres import PostgresDatabase

        database = PostgresDatabase(str(url), create=create, read_only=read_only)
        try:
            _refuse_half_copy(database, continues_copy)
            return EventStore(database, database.store_id, resolve_key(database, database.store_id, anchor, None))
        except BaseException:
            database.close()
            raise
    file = Path(url)
    mode = prepare(file, create=create, read_only=read_only, known=None if anchor is None else anchor.had_store_at)
    connections = SqliteDatabase(str(file), mode=mode)
    try:
        store_id = migrate_and_check_id(connections, file)
        _refuse_half_copy(connections, continues_copy)
        return EventStore(connections, store_id, resolve_key(connections, store_id, anchor, file))
    except BaseException:
        connections.close()
        raise


def _refuse_half_copy(database: Database, continues_copy: bool) -> None:
    """Refuse a store to which a migration was interrupted; see ``EventStore.begin_copy``.

    Raises:
        StoreUnavailable: it is half a copy, unless ``continues_copy``.
    """
    with database.reading() as db:
        if db.run("meta", name=COPYING).fetchone() is not None and not continues_copy:
            raise StoreUnavailable(
                "this store is half a copy, since a migration to it was interrupted: run `keepward store migrate` "
                "from the old store again"
            )


def open_copy(file: Path) -> EventStore:
    """Open a copy of a file to scrub it; see ``file.open_unsealed``."""
    connections, store_id = open_unsealed(file)
    return EventStore(connections, store_id, StoreTrust(sealer=Sealer(None), anchor=None, state="a copy"))


@dataclass(slots=True)
class _OpenSnapshot:
    """A snapshot of one tenant that reads of a thread share, with what they have read of it."""

    tenant: str
    db: Connection
    row: TenantHead | None = None
    #: Newest records by id.
    records: dict[str, Record] = field(default_factory=dict)


class EventStore(StoreReader):
    """An open store. Threads may share it; each read sees one snapshot."""

    def __init__(self, database: Database, store_id: str, trust: StoreTrust) -> None:
        self._database = database
        self._sealer = trust.sealer
        self._anchor = trust.anchor
        self._state = trust.state
        #: Why this machine does not trust the store; None if it does. Reads and writes of it raise ``NotAdopted``.
        self.foreign = trust.foreign
        #: Whether it is a copy of a store that still exists at its path.
        self.is_copy = trust.is_copy
        self._keyless = trust.keyless
        self._known: set[str] = set()
        self._known_lock = ForkSafeLock()
        #: Per thread: ``snapshot``, which its reads share; ``opens``, the tenant of one that the next read opens, and
        #: what ends it; ``inspecting``.
        self._shared = threading.local()
        self._watch = IntegrityMonitor(database)
        #: Names the store for as long as it exists, at any path. The id file and the anchor repeat it.
        self.store_id = store_id

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return not self._database.writable

    def __enter__(self) -> EventStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- transactions and snapshots

    @contextmanager
    def write(self, *, brief: bool = False) -> Iterator[UnitOfWork]:
        """Open one transaction. It commits when the block ends and rolls back when the block raises.

        ``brief`` waits at most 5 s for other writers instead of 30 s.
        """
        self._require_trusted()
        self.end_snapshot()
        with ExitStack() as if_rolled_back:
            with self._database.writing(brief=brief) as db:
                writer = UnitOfWork(db, self._sealer, self._check_anchor, if_rolled_back.callback)
                yield writer
                states = writer.finish()
            if_rolled_back.pop_all()
        if self._anchor is None:
            return
        for tenant, state in states.items():
            head, sums = state.head if state.head.seq else None, state.sums_head() if self._sealer.active else None
            try:
                self._anchor.record_head(tenant, head, sums)
            except (OSError, KeepwardError) as exc:
                text = "the write is stored, but its head is not recorded in the configuration folder; fix that: %s"
                _log.warning(text, exc, extra={"action": "anchor_failed"})

    def _require_trusted(self) -> None:
        """Refuse an untrusted store, unless this thread inspects it.

        Raises:
            NotAdopted: see ``foreign``.
        """
        if self.foreign is not None and not getattr(self._shared, "inspecting", False):
            raise NotAdopted(self.foreign)

    @contextmanager
    def inspecting(self) -> Iterator[None]:
        """Let this thread read an untrusted store during the block, to show it to its owner."""
        with self._thread_note(inspecting=True):
            yield

    @contextmanager
    def read_snapshot(self, tenant: str) -> Iterator[None]:
        with self._reading(tenant) as db:
            snapshot = self._snapshot(tenant) or _OpenSnapshot(tenant, db)
            with self._thread_note(snapshot=snapshot):
                yield

    @contextmanager
    def sharing_snapshot(self, tenant: str) -> Iterator[None]:
        """Give all reads of a tenant in this thread one snapshot, from the first read on and until a write begins."""
        if self._snapshot(tenant) is not None or getattr(self._shared, "opens", None) or not self._database.concurrent:
            yield
            return
        with ExitStack() as opened, self._thread_note(opens=(tenant, opened)):
            yield

    def end_snapshot(self) -> None:
        opens = getattr(self._shared, "opens", None)
        if opens is not None:
            opens[1].close()

    def _snapshot(self, tenant: str) -> _OpenSnapshot | None:
        """Return the snapshot of a tenant that this thread has open."""
        snapshot: _OpenSnapshot | None = getattr(self._shared, "snapshot", None)
        return snapshot if snapshot is not None and snapshot.tenant == tenant else None

    @contextmanager
    def _thread_note(self, **state: Any) -> Iterator[None]:
        """Set attributes of this thread during the block."""
        before = {name: getattr(self._shared, name, None) for name in state}
        self._shared.__dict__.update(state)
        try:
            yield
        finally:
            self._shared.__dict__.update(before)

    @contextmanager
    def _reading(self, tenant: str) -> Iterator[Connection]:
        deadline.check()
        self._require_trusted()
        opens = getattr(self._shared, "opens", None)
        if opens is not None and opens[0] == tenant and self._snapshot(tenant) is None:
            with self._thread_note(opens=None):
                opens[1].enter_context(self.read_snapshot(tenant))
            with self._reading(tenant) as db:
                # Nearly every operation needs it.
                db.ask_ahead("tenant", tenant=tenant)
        snapshot = self._snapshot(tenant)
        if snapshot is not None:
            try:
                yield snapshot.db
            except snapshot.db.fault as exc:
                raise snapshot.db.translate_error(exc) from exc
            return
        noted = self._noted(tenant)
        with self._database.reading(tenant) as db:
            if tenant not in self._known and not getattr(self._shared, "inspecting", False):
                self._compare(db, tenants.read(db, self._sealer, tenant), noted)
            yield db

    def ask_ahead(self, name: str, tenant: str, *, pages: bool = False, **values: Any) -> None:
        with self._reading(tenant) as db:
            # Without a shared snapshot, no later read could take the answer.
            if self._snapshot(tenant) is not None:
                db.ask_ahead(name, pages=pages, tenant=tenant, **values)

    def _tenant_row(self, tenant: str) -> TenantHead:
        with self._reading(tenant):
            snapshot = self._snapshot(tenant)
            if snapshot is None:
                return super()._tenant_row(tenant)
            if snapshot.row is None:
                snapshot.row = tenants.read(snapshot.db, self._sealer, tenant)
            return snapshot.row

    def _read(
        self,
        db: Connection,
        tenant: str,
        ids: Sequence[str],
        as_of: int | None,
        found: ReadResult,
        by_id: dict[str, Record],
    ) -> None:
        snapshot = self._snapshot(tenant)
        if snapshot is None or as_of is not None:
            super()._read(db, tenant, ids, as_of, found, by_id)
            return
        missing = [name for name in ids if name not in snapshot.records]
        if missing:
            super()._read(db, tenant, missing, as_of, found, snapshot.records)
        by_id |= {name: snapshot.records[name] for name in ids if name in snapshot.records}

    @contextmanager
    def _reading_unchecked(self, tenant: str) -> Iterator[Connection]:
        # A second connection could wait behind a rewrite of tables, which waits for the snapshot of this thread.
        with self._everywhere() if self._snapshot(tenant) is None else self._reading(tenant) as db:
            yield db

    @contextmanager
    def _everywhere(self) -> Iterator[Connection]:
        deadline.check()
        self._require_trusted()
        with self._database.reading() as db:
            yield db

    def _check_anchor(self, db: Connection, state: TenantHead) -> None:
        """Compare a tenant with the anchor inside a transaction, see (4), and check the sealing key of the store."""
        if self._keyless and state.sealed_by:
            raise StoreUnavailable(
                f"{_OUT_OF_REACH} ({self._state}): a write without it would lock the store for every user; {_READ_KEY}"
            )
        if state.sealed_by != self._sealer.key_id:
            check_sealing_key(db, self._sealer, state.sealed_by)
        if state.tenant not in self._known:
            self._compare(db, state, self._noted(state.tenant))

    def _check_tenants(self, tenants: Iterable[str]) -> None:
        super()._check_tenants({*tenants} - self._known)

    def _noted(self, tenant: str) -> NotedHeads:
        if self._anchor is None or tenant in self._known:
            return None, None
        return self._anchor.last_head(tenant), self._anchor.last_head(tenant, "sums")

    def _compare(self, db: Connection, state: TenantHead, seen: NotedHeads) -> None:
        """Compare the head and sums of a tenant with the anchor.

        Raises:
            Tampered: the store is behind, or its journal was rewritten.
        """
        wrong = tenants.compare_head_with_anchor(db, state, seen[0])
        wrong = wrong or tenants.compare_sums_with_anchor(self._sealer, state, seen[1])
        if wrong:
            raise Tampered(
                f"{wrong}. Run `keepward verify`; if the change was meant, accept the store as it is with `adopt`"
            )
        with self._known_lock:
            self._known.add(state.tenant)

    # --- missing and edited rows

    def unreadable_memories(
        self, tenant: str, filters: Filter, *, live_at: datetime | None, tiers: Collection[str] = ()
    ) -> list[UnreadableMemory]:
        """Return the memories that a read with these filters would have shown and that are known to be corrupt, by id.

        The first call of a handle compares the number of records with the sealed one; later calls compare that of some
        ``tiers``. A memory with an unreadable event passes every filter. Rows that a read finds itself may be missing
        here: it reports those as ``damaged``.
        """
        if not self._sealer.active or (not tiers and self._watch.is_counted(tenant)):
            return []
        # Read the counter before the snapshot, so that a change in between is noticed.
        version = self._watch.change_counter() if self._snapshot(tenant) is None else None
        with self._reading(tenant) as db:
            if self._watch.is_counted(tenant):
                # The row and the counts come together.
                db.ask_ahead("tenant", tenant=tenant)
                db.ask_ahead("counts_of_records", tenant=tenant, tiers=json_array(tiers), statuses=json_array(Status))
            found = self._watch.corrupt_records(db, self._sealer, tenant, version, tiers)
        return [match.as_unreadable() for match in found if match.passes(filters, live_at)]

    def _on_damaged_row(self, tenant: str) -> None:
        self._watch.suspect(tenant)

    def facts(self, tenant: str, now: datetime, *, scopes: ScopeRange | None = None) -> dict[str, Any]:
        """Return counts for ``status``: by tier, kind, scope, status, content type, source, and sizes.

        With ``scopes`` they count only what is there.
        """
        with self._reading(tenant) as db:
            # Another connection would wait behind a rewrite of tables, which waits for this snapshot.
            size = self._database.size(db) if scopes is None else None
        return super().facts(tenant, now, scopes=scopes) | {
            "store_id": self.store_id,
            "file_bytes": size,
            "read_only": self.read_only,
            "sealed": self._sealer.active,
            "anchor": self._anchor_state(tenant),
            "adopted": self.foreign is None,
        }

    def _anchor_state(self, tenant: str) -> str:
        """Return the state of the anchor, or why it records no heads; see (5)."""
        if self._anchor is None or self.foreign is not None or self.read_only:
            return self._state
        why = self._anchor.unwritable_reason(tenant)
        return self._state if why is None else f"takes no new heads: {why}"

    def heads(self) -> dict[str, Head]:
        """Return each tenant's head as stored, without checks."""
        with self._database.reading() as db:
            return {row[0]: Head(seq=row[1], hash=row[2]) for row in db.run("tenant_rows") if row[1]}

    def notes(self) -> list[str]:
        """Return sentences about missing protection, for example a missing anchor."""
        snapshot: _OpenSnapshot | None = getattr(self._shared, "snapshot", None)
        with self._database.reading() if snapshot is None else nullcontext(snapshot.db) as db:
            notes = [str(value) for (value,) in db.run("notes")]
        if self.foreign is not None:
            notes.append(self.foreign)
        elif not self._sealer.active:
            notes.append(
                f"the store is not sealed, so an edit that recomputes every hash goes unnoticed: {self._state}"
            )
        return notes

    def index_files(self) -> IndexFiles | None:
        """Return the files of search indexes: next to the store, or in this user's data folder for a database.

        None for a store in memory.
        """
        if isinstance(self._database, SqliteDatabase):
            if self._database.in_memory:
                return None
            folder = sidecar_path(self._database.path, ".index")
        else:
            folder = Path(data_folder(os.environ)) / "indexes" / self.store_id
        return IndexFiles(folder, self.store_id, self._sealer)

    def erasure_count(self, tenant: str) -> int:
        """Return a number that rises with each erasure, as of now, also within ``read_snapshot``."""
        with self._thread_note(snapshot=None, opens=None):
            return self.indexed_state(tenant).erasures

    def has_damage(self, tenant: str) -> bool:
        """Whether a read found missing or damaged records of a tenant."""
        return self._watch.is_suspect(tenant)

    def shared(self, monotonic: Callable[[], float]) -> SharedState | None:
        """Return what several servers of this store share between requests; None for a file or an unsealed store."""
        server = self._database.server
        return None if server is None else server.shared_state(self._sealer.derived(b"servers"), monotonic)

    # --- maintenance

    def verify(
        self, tenant: str | None = None, *, on_progress: Callable[[int, int], None] | None = None
    ) -> tuple[dict[str, int], list[Fault]]:
        """Check the complete store; return the counts of checked rows, and the faults in journal order.

        ``on_progress`` receives the checked and the total number of rows. An error that it raises ends the check.
        """
        return check_store(
            *(self._database, self._sealer, self._anchor, tenant, on_progress),
            unusable=self.foreign or (f"{_OUT_OF_REACH} ({self._state}); {_READ_KEY}" if self._keyless else None),
            is_copy=self.is_copy,
        )

    def adopt(self, note: str) -> None:
        """Accept the store after verifying its chain: create a new key, reseal all rows and record the heads.

        ``note`` is stored. For an untrusted store it stays for good; otherwise the next note replaces it.

        Raises:
            StoreUnavailable: there is no anchor, or it cannot be written.
            Tampered: the chain is broken.
        """
        if self._anchor is None:
            raise StoreUnavailable("this machine has no place for a sealing key; set a configuration folder")
        name = "note_adopted" if self.foreign is None else "note_foreign"
        try:
            if self.is_copy and isinstance(self._database, SqliteDatabase):
                self.store_id = give_new_id(self._database, self._anchor)
            self._sealer = rebuild.adopt(self._database, self._anchor, (name, note))
        except OSError as exc:
            raise StoreUnavailable("the configuration folder cannot be written; see to it and try again") from exc
        self.foreign, self.is_copy, self._state = None, False, "kept"
        with self._known_lock:
            self._known.clear()

    def rebuild(self, tenant: str) -> int:
        """Recompute the records from the journal; return their number."""
        with self.write() as writer:
            return rebuild.rebuild(writer, self._sealer, tenant)

    def restore_journal(self, tenant: str, commits: Iterator[tuple[Commit, list[Event]]]) -> Head:
        """Write an exported journal into an empty tenant, byte for byte, and verify its chain.

        Raises:
            Conflict: the tenant is not empty.
            Tampered: the chain is broken.
        """
        with self.write() as writer:
            return rebuild.restore(writer, self._sealer, tenant, commits)

    def begin_copy(self, source: EventStore, names: Iterable[str]) -> None:
        """Note that this store is half a copy until ``end_copy``: until then only a continued migration opens it.

        Raises:
            Conflict: a tenant has a history of its own in this store, or another store is being copied to it.
        """
        with source._everywhere() as theirs, self.write() as writer:
            row = writer.connection.run("meta", name=COPYING).fetchone()
            if row is not None and row[0] != source.store_id:
                raise Conflict("a migration of another store to this one was interrupted; run that one again")
            for tenant in names:
                self._is_to_copy(writer, source, tenants.read(theirs, source._sealer, tenant))
            writer.connection.run("set_meta", name=COPYING, value=source.store_id)

    def copy_steps(self, tenant: str) -> int:
        """Return how many steps of a thousand rows the copy of a tenant takes, about; see ``copy_tenant``."""
        row = self._tenant_row(tenant)
        rows = row.head.seq + row.documents.counts.total() + 4 * row.records.counts.total()
        return 1 + rows // 1_000

    def end_copy(self) -> None:
        """Note that all of the other store was copied."""
        with self.write() as writer:
            writer.connection.run("drop_meta", name=COPYING)

    def copy_tenant(self, source: EventStore, tenant: str, report: Callable[[], None]) -> bool:
        """Copy all rows of a tenant from another store, under the seals of this one, in one transaction.

        Returns False if both stores already have the same head and as many rows of each kind. ``report`` is called
        after each thousand rows.

        Raises:
            Conflict: the tenant has a history of its own in this store.
        """
        with source._reading(tenant) as theirs, self.write() as writer:
            source_row = tenants.read(theirs, source._sealer, tenant)
            if not self._is_to_copy(writer, source, source_row):
                return False
            rebuild.copy_tenant(theirs, writer, self._sealer, tenant, source_row, report)
            # This transaction counts as well.
            value = f"{source.store_id} {writer.state(tenant).writes + 1}"
            writer.connection.run("set_meta", name=f"carried_{tenant}", value=value)
        return True

    @staticmethod
    def _is_to_copy(writer: UnitOfWork, source: EventStore, source_row: TenantHead) -> bool:
        """Whether a tenant differs from the source's row and may be replaced; see ``copy_tenant``."""
        tenant, own = source_row.tenant, writer.unchanged_state(source_row.tenant)
        if (own.head, own.tallies()) == (source_row.head, source_row.tallies()):
            return False
        row = writer.connection.run("meta", name=f"carried_{tenant}").fetchone()
        if own.writes and (row is None or row[0] != f"{source.store_id} {own.writes}"):
            raise Conflict(
                f"the tenant {tenant} has a history of its own there, or was used since it came over: nothing was moved"
            )
        return True

    def scrub_pending(self) -> bool:
        """Whether free pages or the log may still contain erased content."""
        with self._database.reading() as db:
            return db.run("meta", name=SCRUB_PENDING).fetchone() is not None

    def create_vectors(self) -> None:
        """Create what candidates from a database need; a file needs nothing.

        Raises:
            StoreUnavailable: the database lacks pgvector; the message says what to install.
        """
        if (server := self._database.server) is not None:
            server.create_vectors()

    def index_vectors(self, tenant: str) -> None:
        """Create the missing vector indexes of a tenant while other connections write."""
        if (server := self._database.server) is not None:
            for statement in self.missing_indexes(tenant):
                server.execute_autocommit(statement)

    def scrub(self) -> str | None:
        """Rewrite the file and empty its log. Return None, or the reason to try again later."""
        return self._database.scrub()

    def backup(self, target: Path) -> None:
        """Write a consistent copy of the live store to a new file.

        Raises:
            StoreUnavailable: it cannot be written.
        """
        self._require_trusted()
        self._database.backup(target)

    def blob_store(self) -> BlobStore | None:
        """Return where the database stores the bytes of blobs; None for a folder next to the store."""
        server = self._database.server
        return None if server is None else server.blob_store()

    def close(self) -> None:
        """Release everything; a second call does nothing."""
        self._database.close()


# --- trust in a store


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTrust:
    """Whether this machine trusts a store, and the key and anchor for it."""

    sealer: Sealer
    #: None if heads of this store cannot be recorded.
    anchor: Anchor | None
    #: State of the anchor, for a person.
    state: str
    #: Why the store is not trusted; None if it is.
    foreign: str | None = None
    is_copy: bool = False
    #: Whether this process cannot read the key of the store.
    keyless: bool = False


def resolve_key(database: Database, store_id: str, anchor: Anchor | None, path: Path | None) -> StoreTrust:
    """Return whether this machine trusts a store. A new store gets a key.

    Raises:
        NotAStore: the store's id is invalid.
    """
    if not store_id.isalnum():
        raise NotAStore("the store's id was changed outside of Keepward; restore the store from a backup")
    if anchor is None:
        return _without_key("none was given")
    try:
        known = anchor.bind(store_id, path)
        key = anchor.key()
    except OSError as exc:
        _raise_if_disk_failed(exc)
        if database.writable and _is_new(database):
            raise _no_key_folder_error(exc) from exc
        return _without_key(exc.strerror or "its folder cannot be read")
    if key is not None:
        sealer = Sealer(key)
        if _written_elsewhere(database, sealer, anchor):
            return StoreTrust(sealer=Sealer(None), anchor=anchor, state="of another home", foreign=_ELSEWHERE)
        if known == "copied":
            foreign = _COPY.format(path=anchor.recorded_path())
            return StoreTrust(sealer=Sealer(None), anchor=anchor, state="not adopted", foreign=foreign, is_copy=True)
        return StoreTrust(sealer=sealer, anchor=anchor, state="kept")
    if not _is_new(database):
        return StoreTrust(sealer=Sealer(None), anchor=anchor, state="not adopted", foreign=UNKNOWN_STORE)
    try:
        sealer = rebuild.adopt(database, anchor, None) if database.writable else Sealer(None)
    except OSError as exc:
        _raise_if_disk_failed(exc)
        raise _no_key_folder_error(exc) from exc
    if not sealer.active:
        return _without_key("the store is empty and can only be read")
    return StoreTrust(sealer=sealer, anchor=anchor, state="kept")


def _without_key(why: str) -> StoreTrust:
    return StoreTrust(sealer=Sealer(None), anchor=None, state=f"unavailable: {why}", keyless=True)


def _no_key_folder_error(fault: OSError) -> StoreUnavailable:
    where = f" at {fault.filename}" if fault.filename else ""
    why = fault.strerror or "the disk gave an error"
    return StoreUnavailable(
        f"the key of a new store has no place{where} ({why}): let this user write there, or set KEEPWARD_HOME to a "
        "folder that it may write; content written without a key would be unknown to this machine afterwards"
    )


def _raise_if_disk_failed(fault: OSError) -> None:
    """Return if the key folder is only forbidden. Raise if its disk failed, so that the store waits for it.

    Raises:
        StoreUnavailable: content written now without a key would be unknown to this machine afterwards.
    """
    if fault.errno in {errno.EIO, errno.ENOSPC, errno.EDQUOT}:
        why = os.strerror(fault.errno).lower()
        raise StoreUnavailable(
            f"the folder of keys cannot be used ({why}); fix that and try again: nothing was lost"
        ) from fault


def _is_new(database: Database) -> bool:
    with database.reading() as db:
        return all(db.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() is None for name in _CONTENT)


def _all_rows_sealed_by(db: Connection, sealer: Sealer) -> bool:
    """Whether the rows of all tenants have the seal of this key."""
    return all(sealer.matches_row(row[-1], "tenants", *row[:-1]) for row in db.run("tenant_rows"))


def _written_elsewhere(database: Database, sealer: Sealer, anchor: Anchor) -> bool:
    """Whether the store has the seal of another key, while its journal continues the heads that the anchor recorded."""
    with database.reading() as db:
        row = db.run("meta", name="sealed_by").fetchone()
        if row is None or not row[0] or row[0] == sealer.key_id or _all_rows_sealed_by(db, sealer):
            return False
        missing = anchor.tenant_digests()
        for cells in db.run("tenant_rows").fetchall():
            try:
                state = head_of_row(Sealer(None), cells)
                missing.discard(tenant_digest(state.tenant))
                noted = anchor.last_head(state.tenant)
            except Tampered:
                return False
            if compare_head_with_anchor(db, state, noted):
                return False
        return not missing


def check_sealing_key(db: Connection, sealer: Sealer, sealed_by: str | None) -> None:
    """Check inside a transaction that the store was sealed with the key that is about to be used.

    Raises:
        Tampered: the store was written with another key or without one, or its settings are missing.
    """
    if sealed_by is None:
        raise Tampered(
            "the store has lost its settings; run `keepward verify`; `keepward store recover` copies what is intact"
        )
    if sealer.active and not _all_rows_sealed_by(db, sealer):
        raise Tampered(
            "the store was written without this machine's key; run `keepward verify`, and accept it with "
            "`adopt` if that was meant"
        )
    # Either only the stored key id was changed, or this process writes without seals and reports that.
    db.run("set_meta", name="sealed_by", value=sealer.key_id)
