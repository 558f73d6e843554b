"""Migration of a store to another path or database, with all its content and heads. Only the owner may call it.

Invariants
(1) The source is only read, and must be intact: a store with a fault is not migrated.
(2) A tenant is copied in one transaction. After an interruption, the next run copies the missing tenants, and copies
    again those that have changed since. Until a run has copied and verified everything, only the next run opens the new
    store.
(3) The heads are those of the source; the seals are the new store's own.
(4) Later writes to the source are not copied, and the owner is warned of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from keepward.core.copies import MigratedTenant, MigrationResult
from keepward.errors import InvalidInput, StoreUnavailable, Tampered
from keepward.locations import address_of, parse_location
from keepward.machine.erasures import restore_erasure_list
from keepward.open import bare_engine, blobs_of, trust_store_in
from keepward.services.request_context import Engine
from keepward.services.writing import blobs
from keepward.storage.store import EventStore, open_store

_log = logging.getLogger(__name__)
#: Progress: done and total of steps, which are a thousand rows of a tenant, a blob or a verified tenant.
ProgressCallback = Callable[[int, int], None]


def migrate_store(
    engine: Engine, source: str, to: str | Path, *, config_dir: Path | None, dry_run: bool, report: ProgressCallback
) -> MigrationResult:
    """Copy the store at ``source`` to another path or database; see ``Memory.move_store``."""
    target = parse_location(str(to))
    if isinstance(target, Path) and (target.is_dir() or str(target) == ":memory:"):
        raise InvalidInput("a store is moved to a file, or to the address of a database")
    if target.absolute() == parse_location(source).absolute():
        raise InvalidInput("this is the store's own path; name another one")
    names = engine.store.tenants()
    _require_verified(engine.store, names)
    if dry_run:
        return MigrationResult(
            place=str(target), tenants=tuple(_migrated_tenant(engine.store, each, carried=False) for each in names)
        )
    migrated, blob_paths = [], blobs.files_of(engine).paths() if engine.store.blob_tenants() else []
    each, done = {name: engine.store.copy_steps(name) for name in names}, 0
    steps = sum(each.values()) + len(blob_paths) + len(names)
    anchor = trust_store_in(config_dir)
    with closing(open_store(address_of(target), anchor=anchor, continues_copy=True)) as store:
        store.begin_copy(engine.store, names)
        for name in names:
            # Blobs come last: while rows are copied, no read looks for their files.
            carried = store.copy_tenant(engine.store, name, _counting(report, done, each[name], steps))
            migrated.append(_migrated_tenant(store, name, carried=carried))
            done += each[name]
            report(done, steps)
        files = store.blob_store() or blobs_of(address_of(target))
        with blobs.translate_file_errors(), blobs.files_of(engine).locked(), files.locked():
            for n, path in enumerate(blob_paths):
                content = blobs.files_of(engine).read(path)
                if content is not None:
                    files.save(path, content)
                report(done + n + 1, steps)
        for n, tenant in enumerate(migrated):
            report(steps - len(names) + n, steps)
            _, faults = store.verify(tenant.tenant)
            source_head = engine.store.head(tenant.tenant)
            # If commits were added to the source meanwhile, its head rightly differs.
            differs = source_head.name != tenant.head and source_head.seq <= tenant.commits
            if faults or differs or store.head(tenant.tenant).name != tenant.head:
                raise Tampered(f"the copy of the tenant {tenant.tenant} is damaged; move again")
        restore_erasure_list(bare_engine(store, config_dir=config_dir, clock=engine.clock, ids=engine.ids))
        store.end_copy()
        report(steps, steps)
        if behind := [each.tenant for each in migrated if engine.store.head(each.tenant).name != each.head]:
            text = "these tenants changed during the move: %s; stop all writers of the old store, then move again"
            _log.warning(text, ", ".join(behind), extra={"action": "moved_in_part"})
        return MigrationResult(
            place=str(target), store_id=store.store_id, tenants=tuple(migrated), blobs=len(blob_paths)
        )


def _counting(report: ProgressCallback, done: int, most: int, steps: int) -> Callable[[], None]:
    """Return what reports one more step at each call, but not the last of the ``most`` steps."""
    taken = 0

    def count() -> None:
        nonlocal taken
        taken = min(taken + 1, most - 1)
        if taken:
            report(done + taken, steps)

    return count


def _require_verified(store: EventStore, names: list[str]) -> None:
    """Verify that a store is intact; see (1)."""
    if not names:
        raise StoreUnavailable("there is nothing to move: no tenant has a commit")
    for tenant in names:
        _, faults = store.verify(tenant)
        if faults:
            what = "run `keepward verify`, then `keepward store recover`"
            raise Tampered(f"the tenant {tenant} is damaged ({faults[0].row}); {what}")


def _migrated_tenant(store: EventStore, tenant: str, *, carried: bool) -> MigratedTenant:
    head = store.head(tenant)
    return MigratedTenant(tenant=tenant, commits=head.seq, head=head.name, carried=carried)
