"""The SQLite store: one file that holds the journal and everything computed from it.

Invariants
(1) What stands in ``ports.store``.
(2) The sealing key is never in the store's folder. Without a place for it the store works unsealed and
    says so in ``facts`` and ``notes``.
(3) A tenant is compared with what this machine noted of it before it is first used.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from keepward.errors import StoreUnavailable
from keepward.model.commit import Commit, Event, Head, Step
from keepward.model.job import JobRow
from keepward.model.journal import CommitView, Fault
from keepward.model.memory import Record
from keepward.model.proposal import Waiting
from keepward.model.query import Feedback, Filter
from keepward.model.trust import Token
from keepward.model.value import to_micros
from keepward.ports.searching import Likely, Profile
from keepward.ports.store import Features, Found, Indexed, Withheld
from keepward.ports.world import Anchor
from keepward.stores.sql import load_queries
from keepward.stores.sqlite import facts as counted
from keepward.stores.sqlite import feedback, jobs, renew
from keepward.stores.sqlite.blobs import BlobRows
from keepward.stores.sqlite.check import check_store
from keepward.stores.sqlite.connection import Connections
from keepward.stores.sqlite.heads import read_head
from keepward.stores.sqlite.journal import Journal
from keepward.stores.sqlite.noted import Noted
from keepward.stores.sqlite.opening import confirm, lay_out, prepare
from keepward.stores.sqlite.read import Asked
from keepward.stores.sqlite.sealing import Standing, claim, stand
from keepward.stores.sqlite.seals import Sealer
from keepward.stores.sqlite.tokens import token_by_hash, tokens
from keepward.stores.sqlite.upkeep import Upkeep
from keepward.stores.sqlite.withheld import Watch
from keepward.stores.sqlite.write import SqliteWriter

SQL = load_queries("keepward.stores.sqlite")


def open_sqlite(
    path: str | Path, *, anchor: Anchor | None = None, create: bool = True, read_only: bool = False
) -> SqliteStore:
    """Open the store in a file, or a new one in ``:memory:``.

    A file that cannot be written is opened for reading. ``anchor`` keeps the sealing key and notes heads
    outside the store's folder; without one a file is not sealed. A store that the anchor does not know is opened
    and not used: see ``foreign``.

    Raises:
        StoreUnavailable, NotAStore, NewerSchema: the message says what to do.
    """
    if str(path) == ":memory:":
        connections = Connections(":memory:", mode="rw")
        with connections.reading() as connection:
            lay_out(connection)
            key = connection.execute("SELECT randomblob(32)").fetchone()[0]
            connection.execute(SQL["set_meta"], {"name": "sealed_by", "value": Sealer(key).key_id})
        standing = Standing(sealer=Sealer(key), anchor=None, state="memory")
        return SqliteStore(connections, confirm(connections, None), standing)
    file = Path(path)
    mode = prepare(file, create=create, read_only=read_only, known=None if anchor is None else anchor.knows)
    connections = Connections(str(file), mode=mode)
    try:
        store_id = confirm(connections, file)
        standing = stand(connections, store_id, anchor, file)
    except BaseException:
        connections.close()
        raise
    return SqliteStore(connections, store_id, standing)


class SqliteStore(Noted, Upkeep, BlobRows):
    """See ``ports.store.Store``. Safe for threads; a reader sees one snapshot."""

    def __init__(self, connections: Connections, store_id: str, standing: Standing) -> None:
        self._connections = connections
        self._sealer = standing.sealer
        self._anchor = standing.anchor
        self._state = standing.state
        #: Why nothing of the store is used; None where it is this machine's own.
        self.foreign = standing.foreign
        #: Whether it was recognised, by this opening, as a copy of a store that lives on.
        self.copied = standing.copied
        self._known: set[str] = set()
        self._known_lock = threading.Lock()
        self._shared = threading.local()
        self._watch = Watch(connections)
        #: Names the store; also beside it and in the anchor.
        self.store_id = store_id

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return not self._connections.writable

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing

    @contextmanager
    def write(self) -> Iterator[_Checked]:
        """Open one transaction; see the port."""
        self._admit()
        with self._connections.writing() as connection:
            claim(connection, self._sealer)
            writer = _Checked(connection, self._sealer, self)
            yield writer
            besides = writer.ledger.write()
        self._note(writer.heads, besides)

    # --- reading

    @contextmanager
    def _asked(self, tenant: str) -> Iterator[Asked]:
        with self._reading(tenant) as connection:
            yield Asked(connection, self._sealer, tenant)

    @contextmanager
    def _journal(self, tenant: str) -> Iterator[Journal]:
        with self._reading(tenant) as connection:
            yield Journal(connection, self._sealer, tenant)

    def head(self, tenant: str) -> Head:
        """Return the tenant's head; see the port."""
        with self._reading(tenant) as connection:
            return read_head(connection, self._sealer, tenant)[0]

    def beginning(self, tenant: str, prefix: str, *, limit: int) -> list[str]:
        """Return ids of memories that begin so; see the port."""
        with self._asked(tenant) as asked:
            return asked.beginning(prefix, limit)

    def records(self, tenant: str, ids: Sequence[str], *, as_of: int | None = None) -> Found:
        """Return records by id or alias; see the port."""
        with self._asked(tenant) as asked:
            return asked.records(ids, as_of)

    def find(
        self, tenant: str, filters: Filter, *, live_at: datetime | None, limit: int | None, as_of: int | None = None
    ) -> Found:
        """Return records that pass; see the port."""
        with self._asked(tenant) as asked:
            return asked.find(filters, live_at, limit, as_of)

    def withheld(self, tenant: str, filters: Filter, *, live_at: datetime | None) -> list[Withheld]:
        """Return memories that cannot be shown and would have passed; see the port."""
        mark = self._watch.mark()
        with self._reading(tenant) as connection:
            found = self._watch.amiss(connection, self._sealer, tenant, mark)
        return [each.result() for each in found if each.passes(filters, live_at)]

    def similar(self, tenant: str, record: Record, features: Features, now: datetime) -> Found:
        """Return up to 8 like memories; see the port."""
        with self._asked(tenant) as asked:
            return asked.similar(record, features, now)

    def likely(
        self, tenant: str, asked: Sequence[tuple[Record, Features]], now: datetime
    ) -> list[tuple[tuple[Likely, ...], bool]]:
        """Return like memories of several, not read; see the port."""
        with self._asked(tenant) as snapshot:
            return snapshot.likely(asked, now)

    def profiles(self, tenant: str, *, after: int) -> Iterator[tuple[str, Profile | None]]:
        """Yield memories as ranking sees them; see the port."""
        with self._asked(tenant) as asked:
            yield from asked.profiles(after)

    def superseded(self, tenant: str, scope: str, digest: bytes) -> Found:
        """Return superseded memories that say the same; see the port."""
        with self._asked(tenant) as asked:
            return asked.superseded(scope, digest)

    def tally(self, tenant: str) -> dict[str, int]:
        """Return active memories by tier; see the port."""
        with self._asked(tenant) as asked:
            return asked.tally()

    def lapsed(self, tenant: str, now: datetime, *, limit: int) -> Found:
        """Return memories past their term; see the port."""
        with self._asked(tenant) as asked:
            return asked.lapsed(now, limit)

    def unembedded(self, tenant: str, now: datetime, model: str) -> bool:
        """Whether a live memory has no vectors of this embedder; see the port."""
        asked = {"tenant": tenant, "now": to_micros(now), "model": model}
        with self._reading(tenant) as connection:
            return bool(connection.execute(SQL["unembedded"], asked).fetchone()[0])

    def job_rows(self, tenant: str) -> list[JobRow]:
        """Return what is kept of jobs; see the port. A damaged journal does not keep the audit from running."""
        self._admit()
        with self._connections.reading() as connection:
            return jobs.job_rows(connection, self._sealer, tenant)

    def children(self, tenant: str, ids: Sequence[str]) -> list[str]:
        """Return directly derived memories; see the port."""
        with self._asked(tenant) as asked:
            return asked.children(ids)

    def deliveries(self, tenant: str, ids: Sequence[str]) -> list[tuple[str, int, str]]:
        """Return which contexts held memories; see the port."""
        with self._asked(tenant) as asked:
            return asked.deliveries(ids)

    def undone_by(self, tenant: str, commit_id: str) -> list[str]:
        """Return the commits that undo one; see the port."""
        with self._asked(tenant) as asked:
            return asked.undone_by(commit_id)

    def session_tail(self, tenant: str, session: str) -> Record | None:
        """Return the newest memory of a session; see the port."""
        with self._asked(tenant) as asked:
            return asked.session_tail(session)

    def history(self, tenant: str, memory_id: str) -> list[tuple[CommitView, Step]]:
        """Return every version of one memory; see the port. A view holds this memory's steps alone."""
        with self._journal(tenant) as journal:
            return journal.history(memory_id)

    def indexed(self, tenant: str, *, after: int, as_of: int | None = None) -> Iterator[tuple[str, Indexed | None]]:
        """Yield what recall needs; see the port."""
        with self._asked(tenant) as asked:
            yield from asked.indexed(after, as_of)

    def commits(self, tenant: str, *, before: int | None, limit: int) -> list[CommitView]:
        """Return commits, newest first; see the port."""
        with self._journal(tenant) as journal:
            return journal.commits(before, limit)

    def commit(self, tenant: str, commit_id: str) -> CommitView | None:
        """Return one commit; see the port."""
        with self._journal(tenant) as journal:
            return journal.commit(commit_id)

    def events(self, tenant: str, *, after: int = 0) -> Iterator[tuple[Commit, list[Event]]]:
        """Yield the journal; see the port."""
        with self._journal(tenant) as journal:
            yield from journal.events(after)

    def queue(self, tenant: str, *, state: str | None = "pending") -> list[Waiting]:
        """Return proposals; see the port."""
        with self._asked(tenant) as asked:
            return asked.queue(state)

    def untold(self, tenant: str, now: datetime) -> int:
        """Return how many ended proposals nobody was told of; see the port."""
        with self._asked(tenant) as asked:
            return asked.untold(now)

    def waiting(self, tenant: str, proposal_id: str) -> Waiting | None:
        """Return one proposal; see the port."""
        with self._asked(tenant) as asked:
            return asked.waiting(proposal_id)

    def receipt(self, tenant: str, receipt_id: str) -> dict[str, Any] | None:
        """Return a receipt; see the port."""
        with self._asked(tenant) as asked:
            return asked.receipt(receipt_id)

    def handed(self, tenant: str, after: str) -> list[dict[str, Any]]:
        """Return receipts of what was handed out; see the port."""
        with self._asked(tenant) as asked:
            return asked.handed(after)

    def artefact(self, tenant: str, kind: str, version: str) -> str | None:
        """Return a kept text; see the port."""
        with self._asked(tenant) as asked:
            return asked.artefact(kind, version)

    def usage(self, tenant: str, ids: Sequence[str]) -> dict[str, tuple[int, datetime]]:
        """Return use counts; see the port."""
        with self._asked(tenant) as asked:
            return asked.usage(ids)

    def feedback(self, tenant: str, *, limit: int) -> list[Feedback]:
        """Return feedback; see the port."""
        with self._reading(tenant) as connection:
            return feedback.feedback(connection, self._sealer, tenant, limit)

    def feedback_count(self, tenant: str) -> int:
        """Return how much feedback there is; see the port."""
        with self._reading(tenant) as connection:
            return feedback.feedback_count(connection, tenant)

    def unlearned(self, tenant: str) -> dict[str, int]:
        """Return uses to learn from; see the port."""
        with self._reading(tenant) as connection:
            return feedback.unlearned(connection, self._sealer, tenant)

    def tokens(self, token_id: str | None = None) -> list[Token]:
        """Return tokens; see the port."""
        self._admit()
        with self._connections.reading() as connection:
            found = tokens(connection, self._sealer, token_id)
        return self._current(found)

    def token_by_hash(self, digest: bytes) -> Token | None:
        """Return the token with a hash; see the port."""
        self._admit()
        with self._connections.reading() as connection:
            found = token_by_hash(connection, self._sealer, digest)
        return next(iter(self._current([found] if found else [])), None)

    def _current(self, found: list[Token]) -> list[Token]:
        """Return tokens once their tenants were met: one in an older copy of the store may be revoked since."""
        for tenant in {token.tenant for token in found if not self.has_met(token.tenant)}:
            self.head(tenant)
        return found

    def tenants(self) -> list[str]:
        """Return the names of tenants; see the port."""
        with self._connections.reading() as connection:
            return [name for (name,) in connection.execute(SQL["tenants"])]

    def facts(self, tenant: str, now: datetime, *, scopes: Collection[str] | None = None) -> dict[str, Any]:
        """Return counts for ``status``; see the port and ``facts.py``."""
        with self._reading(tenant) as connection:
            found = counted.facts(connection, tenant, now, scopes)
        size = 0 if self._connections.in_memory else Path(self._connections.path).stat().st_size
        return found | {
            "store_id": self.store_id,
            "file_bytes": size,
            "read_only": self.read_only,
            "sealed": self._sealer.active,
            "anchor": self._state,
            "adopted": self.foreign is None,
        }

    # --- upkeep

    def verify(self, tenant: str | None = None) -> tuple[dict[str, int], list[Fault]]:
        """Check everything; see the port and ``check.py``."""
        return check_store(self._connections, self._sealer, self._anchor, tenant)

    def notes(self) -> list[str]:
        """Return plain sentences on how far the store can vouch for itself."""
        with self._connections.reading() as connection:
            kept = [str(value) for (value,) in connection.execute(SQL["notes"])]
        if self.foreign is not None:
            kept.append(self.foreign)
        elif not self._sealer.active:
            kept.append(f"the store is not sealed, so an edit that recomputes every hash goes unnoticed: {self._state}")
        return kept

    def adopt(self, note: str) -> None:
        """Accept the store as it stands, once its chain was verified: a new key, all seals anew, heads noted anew.

        ``note`` is kept in the store for good where it was foreign, else until the next one.

        Raises:
            StoreUnavailable: there is no anchor, or it cannot be written.
            Tampered: the chain does not hold.
        """
        if self._anchor is None:
            raise StoreUnavailable("this machine has no place for a sealing key; set a configuration folder")
        name = "note_adopted" if self.foreign is None else "note_foreign"
        try:
            self._sealer = renew.adopt(self._connections, self._anchor, (name, note))
        except OSError as fault:
            raise StoreUnavailable("the configuration folder cannot be written; see to it and try again") from fault
        self.foreign, self._state = None, "kept"
        with self._known_lock:
            self._known.clear()

    def rebuild(self, tenant: str) -> int:
        """Compute the records anew from the journal; see the port."""
        with self.write() as writer:
            count = renew.rebuild(writer.connection(tenant), self._sealer, tenant)
            writer.ledger.recount_records(tenant)
            return count

    def restore_journal(self, tenant: str, commits: Iterator[tuple[Commit, list[Event]]]) -> Head:
        """Write an exported journal into an empty tenant; see the port. Features are to be computed afterwards."""
        with self.write() as writer:
            head = renew.restore(writer.connection(tenant), self._sealer, tenant, commits)
            writer.set_head(tenant, head, head.seq)
            writer.ledger.recount_records(tenant)
            return head

    def close(self) -> None:
        """Release everything; a second call does nothing."""
        self._connections.close()


class _Checked(SqliteWriter):
    """A writer that meets a tenant before it writes for it."""

    def __init__(self, connection: sqlite3.Connection, sealer: Sealer, store: SqliteStore) -> None:
        super().__init__(connection, sealer)
        self._store = store

    def _meet(self, tenant: str) -> None:
        if not self._store.has_met(tenant):
            self._store.meet(self._db, tenant, self._store.noted(tenant))

    def connection(self, tenant: str) -> sqlite3.Connection:
        """Return the connection, for upkeep of one tenant inside this transaction."""
        self._meet(tenant)
        return self._db

    def append(self, tenant: str, stage: Any) -> Commit:
        """Write a commit; see ``SqliteWriter``."""
        self._meet(tenant)
        return super().append(tenant, stage)
