"""Everything that follows an erasure outside the store: this machine's list of erasures, and the backups.

Invariants
(1) An interrupted erasure is finished when the store is opened next: its list entry, backups, scrubbed file and
    certificate. Until then the store records that a scrub is pending.
(2) The erasures of the list are applied to a restored backup, where it has exactly the erased content. If the list is
    lost, nothing shows what was erased after the backup was made.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from keepward.core.journal import Erased
from keepward.core.principals import Actor, ActorKind, Role
from keepward.core.serialization import tenant_digest
from keepward.errors import KeepwardError, StoreUnavailable
from keepward.open import blobs_of
from keepward.services.request_context import Engine, RequestContext
from keepward.services.search.index_cache import IndexCache
from keepward.services.tokens import revoke_again
from keepward.services.undoing import erasure_references as certificate
from keepward.services.undoing.erasure import erase, replay
from keepward.services.writing.blobs import remove_orphans
from keepward.storage.documents import ReceiptArtefact
from keepward.storage.store import open_copy

logger = logging.getLogger(__name__)


def finish_interrupted_erasure(engine: Engine) -> None:
    """Finish an interrupted erasure.

    If the store cannot be written now, the next opening tries again.
    """
    actor = Actor(kind=ActorKind.SYSTEM, name="keepward", rights=Role.OWNER)
    context = RequestContext(engine=engine, tenant="default", scope="/", actor=actor)
    _attempt(lambda: finish_erasures(context))


def reapply_erasures(context: RequestContext) -> None:
    """Apply to a store the erasures and revocations that this machine has recorded."""
    if context.engine.erasures is not None and apply_erasures_in_all_tenants(
        context, context.store, context.engine.erasures.entries()
    ):
        finish_erasures(context)
    revoke_again(context)


def erase_everywhere(context: RequestContext, digest: str, *, reason: str = "request", **targets: Any) -> Erased:
    """Apply an erasure to the store and its backups; see ``services.undoing.erasure``."""
    done = erase(context, digest, reason=reason, **targets)
    _attempt(lambda: finish_erasures(context))
    return done


def _attempt(step: Callable[[], object]) -> bool:
    """Take a step that follows an erasure; return whether it succeeded.

    The erasure is valid in any case. While a step fails a scrub stays pending, and the next opening tries again.
    """
    try:
        step()
    except (KeepwardError, OSError) as exc:
        logger.warning("an erasure is not finished: %s", exc, extra={"action": "erasing"})
        return False
    return True


def finish_erasures(context: RequestContext) -> None:
    """Finish erasing commits: list entry, backups, file, certificates; see (1).

    Each step is taken even if one before it fails.
    """
    store, open_ones = context.store, []
    for tenant in store.tenants():
        if erasing := set(store.erasing(tenant)):
            certified = store.artefact_names(tenant, certificate.CERTIFICATE_KIND)
            open_ones += store.erasures(tenant, erasing - certified)
    entries = [certificate.erasure_list_entry(context.engine, commit, events) for commit, events in open_ones]
    outcomes: list[dict[str, str]] = []
    finished = [
        _attempt(lambda: add_to_erasure_list(context.engine, entries)),
        _attempt(lambda: outcomes.extend(clean_backups(replace(context, scope="/")))),
        context.engine.blobs is None or _attempt(lambda: remove_orphans(context.engine)),
        _attempt(lambda: _drop_index_files(context.engine, {commit.tenant for commit, _ in open_ones})),
        context.store.scrub() is None,
    ]
    if not all(finished):
        return
    with context.store.write() as writer:
        for (commit, events), entry in zip(open_ones, entries, strict=True):
            issued = certificate.certificate(
                context.engine,
                commit,
                events,
                entry,
                file="the file was rewritten from its live rows, and its log emptied",
                backups=outcomes,
            )
            text = json.dumps(issued, ensure_ascii=False, sort_keys=True)
            writer.put(ReceiptArtefact(commit.tenant, certificate.CERTIFICATE_KIND, commit.id, text))
        writer.clear_scrub_pending()


def _drop_index_files(engine: Engine, tenants: Iterable[str]) -> None:
    """Remove the files of search indexes that may have erased content.

    Raises:
        StoreUnavailable: one cannot be removed.
    """
    dropped = [engine.indexes.drop_erased_files(engine.store, tenant) for tenant in tenants]
    if not all(dropped):
        raise StoreUnavailable("an index file with erased content cannot be removed; allow writes to its folder")


def clean_backups(context: RequestContext) -> list[dict[str, str]]:
    """Apply to every backup of this store the erasures since it was made; return the results."""
    if context.engine.erasures is None:
        return []
    entries = context.engine.erasures.entries()
    mine = [entry for entry in entries if entry.get("entry") == "backup" and entry["store"] == context.store.store_id]
    paths = dict.fromkeys(each["path"] for each in mine)
    return [{"path": path, "state": _clean_backup(context, Path(path), entries)} for path in paths]


def _clean_backup(context: RequestContext, file: Path, entries: Sequence[dict[str, Any]]) -> str:
    """Apply the listed erasures to a backup; return in words how far it is clean."""
    try:
        # Unlike ``exists``, this distinguishes a missing file from a folder that cannot be entered.
        file.stat()
        erased = apply_erasures_to(context, file, entries)
    except (FileNotFoundError, NotADirectoryError):
        return "not found"
    except OSError as exc:
        return f"not reached: {exc.strerror or 'the disk gave an error'}"
    except KeepwardError as exc:
        cause = exc.__cause__
        return f"not reached: {exc}" if isinstance(cause, OSError) else f"not cleaned: {exc}"
    return f"cleaned: {erased} places" if erased else "held nothing of it"


def apply_erasures_to(context: RequestContext, file: Path, entries: Sequence[dict[str, Any]]) -> int:
    """Apply the listed erasures to a copy of a store and scrub its file; return the number of erased payloads.

    Raises:
        StoreUnavailable, NotAStore, Tampered: the copy cannot be used.
    """
    with closing(open_copy(file)) as store:
        erased = apply_erasures_in_all_tenants(context, store, entries)
        if erased or store.scrub_pending():
            remove_orphans(replace(context.engine, store=store, blobs=blobs_of(file)))
            waits = store.scrub()
            if waits is not None:
                raise KeepwardError(waits)
            with store.write() as writer:
                writer.clear_scrub_pending()
        return erased


def apply_erasures_in_all_tenants(context: RequestContext, store: Any, entries: Sequence[dict[str, Any]]) -> int:
    """Apply the listed erasures to every tenant of a store; return the number of erased payloads."""
    copy = replace(context.engine, store=store, indexes=IndexCache(), embedder=None)
    erased = 0
    for tenant in store.tenants():
        name = tenant_digest(tenant)
        own = [entry for entry in entries if entry.get("entry") == "erasure" and entry["tenant"] == name]
        if own:
            erased += replay(replace(context, engine=copy, tenant=tenant, scope="/"), own)
    return erased


def add_to_erasure_list(engine: Engine, entries: Sequence[dict[str, Any]]) -> None:
    """Add missing erasures to this machine's list."""
    if engine.erasures is None:
        return
    known = {entry.get("commit") for entry in engine.erasures.entries()}
    engine.erasures.add([entry for entry in entries if entry["commit"] not in known])


def restore_erasure_list(engine: Engine) -> None:
    """Add to this machine's list the erasures of the journal that the list has lost."""
    known = {entry.get("commit") for entry in engine.erasures.entries()} if engine.erasures else set()
    for tenant in engine.store.tenants():
        missing = set(engine.store.erasing(tenant)) - known
        if missing:
            erasures = engine.store.erasures(tenant, missing)
            add_to_erasure_list(engine, [certificate.erasure_list_entry(engine, *each) for each in erasures])
