"""Recovery: a new store out of the beginning of a damaged one that is still valid.

Invariants
(1) The damaged file is never opened for writing: it is copied with its log, and the copy is read.
(2) A commit is restored unchanged, as from an export, while every commit before it is valid: its hash, seals and
    contents. So the head of the new store is that of the old one at this commit.
(3) Content that this machine has erased is not restored. The result names everything that was lost or skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from keepward.core.blob import REF_PREFIX, blob_path
from keepward.core.commit import DETAILS, EMPTY_HASH, Commit, Event, decode_details, parse_event_position
from keepward.core.copies import RecoveredTenant, RecoveryResult
from keepward.core.principals import Actor
from keepward.core.value import from_micros
from keepward.errors import InvalidInput, KeepwardError, StoreUnavailable, Unauthorised
from keepward.locations import parse_file
from keepward.open import blobs_of, open_engine, trust_store_in
from keepward.ports.world import Clock, IdSource
from keepward.services.reading.reindex import reindex
from keepward.services.request_context import RequestContext
from keepward.services.writing.blobs import put
from keepward.services.writing.tombstones import erased_commitments
from keepward.storage.damaged import read_damaged
from keepward.storage.erasing import empty_positions
from keepward.storage.file import id_file
from keepward.storage.journal import event_of, payload_matches_event, verified_commit
from keepward.storage.rows import CommitRow, EventRow, event_flaw
from keepward.storage.seals import Sealer
from keepward.storage.sql import Row
from keepward.storage.sqlite import remove

_REF = re.compile(rb'"blob":"(sha256:[0-9a-f]{64})"')
_INVALID = (KeepwardError, ValueError, TypeError, OverflowError)


def recover(
    broken: str | Path,
    new: str | Path,
    *,
    actor: Actor,
    config_dir: Path | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> RecoveryResult:
    """Create the store ``new`` from the valid beginning of ``broken``; see ``Memory.recover``."""
    broken, new = parse_file(broken), parse_file(new)
    if not isinstance(actor, Actor) or not actor.is_owner:
        raise Unauthorised("recovering a store takes the owner")
    if new.exists() or id_file(new).exists():
        raise InvalidInput(f"{new} is there already; name a file that is not")
    if not new.parent.is_dir():
        raise StoreUnavailable(f"the folder {new.parent} does not exist; create it")
    report = on_progress or (lambda _: None)
    report(f"reading {broken}")
    store_id, tables, skipped = read_damaged(broken, new.parent)
    sealer = _sealer(store_id, config_dir)
    try:
        engine = open_engine(str(new), create=True, clock=clock, ids=ids, config_dir=config_dir)
        with closing(engine.store):
            erased = erased_commitments(engine)
            names = {row[0] for name in ("commits", "events") for row in tables[name] if isinstance(row[0], str)}
            tenants, blobs, lost_blobs = [], 0, []
            for name in sorted(names):
                damaged = _DamagedTenant(name, sealer, erased, tables)
                context = RequestContext(engine=engine, tenant=name, scope="/", actor=actor)
                copied, lost = _copy_blobs(context, damaged, broken)
                blobs += copied
                lost_blobs += lost
                tenants.append(_restore(context, damaged))
                known = tenants[-1].commits + tenants[-1].lost_commits
                report(f"tenant {name}: {tenants[-1].commits} of {known} commits hold")
            new_id = engine.store.store_id
    except BaseException:
        # Everything in the new store was created on this machine.
        remove(new, ".id", ".id.turns")
        raise
    return RecoveryResult(
        path=str(new),
        store_id=new_id,
        of=store_id,
        sealed=sealer.active,
        tenants=tuple(tenants),
        blobs=blobs,
        lost_blobs=tuple(lost_blobs),
        skipped=skipped,
    )


def _sealer(store_id: str, config_dir: Path | None) -> Sealer:
    """Return the sealer of the damaged store; one without a key if this machine has none."""
    anchor = trust_store_in(config_dir)
    if anchor is None or not store_id.isalnum():
        return Sealer(None)
    # Bound by its id alone: the path of a damaged file is not recorded.
    anchor.bind(store_id)
    return Sealer(anchor.key())


class _DamagedTenant:
    """The valid content of one tenant."""

    def __init__(self, tenant: str, sealer: Sealer, erased: Collection[str], tables: dict[str, list[Row]]) -> None:
        self._tenant, self._sealer, self._erased = tenant, sealer, erased
        own = {table: [row for row in rows if row[0] == tenant] for table, rows in tables.items()}
        commits = (CommitRow._make(row[1:]) for row in own["commits"])
        self._commits = {row.seq: row for row in commits if _is_number(row.seq)}
        self._events: dict[int, list[EventRow]] = {}
        #: By memory, the newest version that any row names.
        self.newest: dict[str, int] = {}
        events = (EventRow._make(row[1:]) for row in own["events"])
        numbered = (row for row in events if _is_number(row.seq) and _is_number(row.n))
        for row in sorted(numbered, key=lambda row: (row.seq, row.n)):
            self._events.setdefault(row.seq, []).append(row)
        named = ((row.memory_id, row.version) for rows in self._events.values() for row in rows)
        for memory_id, version in (*named, *(row[1:] for row in own["records"])):
            if isinstance(memory_id, str) and _is_number(version):
                self.newest[memory_id] = max(self.newest.get(memory_id, 0), version)
        self._documents = own["documents"]
        self._erased_commitments: dict[Any, Any] = {
            name: body.get("promise") for name, body in self.documents("erased")
        }
        #: Number of the newest commit that any row names.
        self.known_commits = max((*self._commits, *self._events, 0))
        self.commits = self._chain()
        #: Blobs that the contents of these commits refer to.
        payloads = [event.payload or b"" for _, events in self.commits for event in events]
        self.refs = sorted({ref.decode() for payload in payloads for ref in _REF.findall(payload)})

    def documents(self, kind: str) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yield id and body of the readable documents of a kind."""
        for row in self._documents:
            with suppress(ValueError, TypeError, RecursionError):
                body = json.loads(row[3]) if row[1] == kind else None
                if isinstance(body, dict):
                    yield row[2], body

    def _chain(self) -> list[tuple[Commit, list[Event]]]:
        """Return the valid commits from the first on; each erased content is named by one of them."""
        found: list[tuple[Commit, list[Event]]] = []
        before = EMPTY_HASH
        while (valid := self._valid_commit(len(found) + 1)) and valid[0].prev == before:
            found.append(valid)
            before = valid[0].hash
        while True:
            named = {
                parse_event_position(name)
                for commit, _ in found
                if commit.kind == "erase" and commit.payload is not None
                for name in decode_details(commit.payload).erased
            }
            unnamed = (at for at, each in enumerate(found) if empty_positions(*each).keys() - named)
            if (short := next(unnamed, None)) is None:
                return found
            found = found[:short]

    def _valid_commit(self, seq: int) -> tuple[Commit, list[Event]] | None:
        row, events = self._commits.get(seq), self._events.get(seq, [])
        if row is None:
            return None
        try:
            erased_commitment = (
                bytes.fromhex(self._erased_commitments[f"{seq}/{DETAILS}"]) if row.payload is None else None
            )
            commit, own = verified_commit(self._sealer, self._tenant, row, events, erased_commitment)
        except (KeyError, *_INVALID):
            return None
        came_back = commit.payload is not None and commit.commitment().hex() in self._erased
        return None if came_back or not all(self._is_valid_event(event) for event in events) else (commit, own)

    def _is_valid_event(self, row: EventRow) -> bool:
        if event_flaw(self._sealer, self._tenant.encode(), row) is not None:
            return False
        came_back = row.payload is not None and row.payload_commit.hex() in self._erased
        return not came_back and payload_matches_event(event_of(row))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _copy_blobs(context: RequestContext, damaged: _DamagedTenant, broken: Path) -> tuple[int, list[str]]:
    """Copy the blobs that valid commits refer to; return how many, and the missing ones."""
    files, copied = blobs_of(broken), set()
    own = blob_path(context.tenant, from_micros(0), f"{REF_PREFIX}{'0' * 64}").partition("/")[0]
    places = {REF_PREFIX + path.rpartition("/")[2]: path for path in files.paths() if path.startswith(f"{own}/")}
    types = {ref: (body.get("blob") or {}).get("media_type") for ref, body in damaged.documents("blobs")}
    for ref in damaged.refs:
        with suppress(KeyError, OSError, AttributeError, *_INVALID):
            data = files.read(places[ref])
            if data is not None and put(context, data, types.get(ref)).ref == ref:
                copied.add(ref)
    return len(copied), [ref for ref in damaged.refs if ref not in copied]


def _restore(context: RequestContext, damaged: _DamagedTenant) -> RecoveredTenant:
    """Restore the valid commits of a tenant into the new store; see (2)."""
    tenant, store = context.tenant, context.store
    if damaged.commits:
        store.restore_journal(tenant, iter(damaged.commits))
        reindex(context, ended=True)
    restored = {event.memory_id: event.version for _, events in damaged.commits for event in events}
    behind = {name: restored.get(name) for name, newest in damaged.newest.items() if restored.get(name, 0) < newest}
    return RecoveredTenant(
        tenant=tenant,
        head=store.head(tenant).name,
        commits=len(damaged.commits),
        lost_commits=damaged.known_commits - len(damaged.commits),
        outdated=tuple(sorted(name for name, version in behind.items() if version is not None)),
        lost=tuple(sorted(name for name, version in behind.items() if version is None)),
    )
