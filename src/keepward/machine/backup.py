"""Backup, restore, and adoption of a store from elsewhere. Only the owner may call them.

Invariants
(1) A restored backup has nothing that this machine has erased since: the recorded erasures are applied to it before it
    gets its final name.
(2) A token that was revoked since is not valid in it either.
(3) An older state is accepted only on request: the caller calls ``restore``, or gives ``adopt`` the digest of the plan.
(4) A restored store that this machine has no key for is untrusted, like any other file: only ``adopt`` accepts it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from keepward import durable
from keepward.core.blob import StoredBlob
from keepward.core.commit import Head
from keepward.core.copies import AdoptedBlock, AdoptedToken, AdoptionPlan, Backup, Restored
from keepward.core.json_form import canonical
from keepward.core.memory import Tier
from keepward.core.principals import Actor, StoredToken
from keepward.core.proposal import Proposal
from keepward.core.query import Filter
from keepward.core.serialization import digest, tenant_digest
from keepward.core.value import to_micros
from keepward.errors import Conflict, InvalidInput, StoreUnavailable, Tampered, Unauthorised
from keepward.locations import parse_file
from keepward.machine.erasures import apply_erasures_to, reapply_erasures, restore_erasure_list
from keepward.open import bare_engine, blobs_of, trust_store_in
from keepward.ports.world import BlobStore
from keepward.services.request_context import Engine, RequestContext
from keepward.services.tokens import revoke_again, revoke_all
from keepward.services.writing import blobs
from keepward.storage.file import adopt_copy, give_copy_new_id, id_file, read_id, restore_file, use_wal
from keepward.storage.sqlite import remove
from keepward.storage.store import UNKNOWN_STORE, EventStore, open_copy

#: Note on a backup that this machine's erasure list does not know.
NO_ERASURE_LIST_MESSAGE = (
    "this machine has no list of what was erased and revoked in that store. What was erased or revoked after the "
    "backup was made may be back, and erased texts may be stored again. Import the list with `keepward key import` "
    "and restore the backup again, or erase and revoke again"
)


def back_up(engine: Engine, store: str, path: str | Path) -> Backup:
    """Write a copy of the live store, whose file is ``store``; see ``Memory.backup``."""
    target = parse_file(path)
    # Locked, so that no file is removed between the copy of the rows and that of the files.
    lock = blobs.files_of(engine).locked() if engine.store.blob_tenants() else contextlib.nullcontext()
    with blobs.translate_file_errors(), lock:
        engine.store.backup(target)
        with closing(open_copy(target)) as copy:
            heads = copy.heads()
            copied = _copy_blobs(copy, blobs.files_of(engine), target)
    listed = engine.erasures is not None
    try:
        _list_backup(engine, engine.store.store_id, target, Path(store).absolute(), heads)
    except OSError:
        listed = False
    return Backup(
        path=str(target),
        bytes=target.stat().st_size,
        heads=_names(heads),
        listed=listed,
        blobs=copied.blobs,
        faulty=copied.faulty,
    )


def restore(backup: str | Path, to: str | Path, *, actor: Actor, config_dir: Path | None, **world: Any) -> Restored:
    """Restore a backup as a new store; see ``Memory.restore_backup``."""
    if not isinstance(actor, Actor) or not actor.is_owner:
        raise Unauthorised("restoring a backup takes the owner")
    source, target = parse_file(backup), parse_file(to)
    world["config_dir"] = config_dir
    anchor = trust_store_in(config_dir)
    if anchor is None:
        raise StoreUnavailable("this machine has no place for a sealing key; set a configuration folder")
    aside = target.with_name(f".{target.name}.restoring")
    remove(aside)
    try:
        restore_file(source, aside, target)
        store_id, engine, entries, warning = _check_source(source, aside, **world)
        context = RequestContext(engine=engine, tenant="default", scope="/", actor=actor)
        erased = apply_erasures_to(context, aside, entries)
        with closing(open_copy(aside)) as copy:
            copied = _copy_blobs(copy, blobs_of(source), target)
            revoked = revoke_again(replace(context, engine=bare_engine(copy, **world)))
        known = anchor.bind(store_id) == "known"
        separate = any(_original_exists(entry, store_id, target) for entry in entries)
        if separate:
            store_id = give_copy_new_id(aside)
        aside.rename(target)
        durable.flush(target.parent)
        use_wal(target)
        if known:
            adopt_copy(target, store_id, anchor)
    finally:
        remove(aside)
    with closing(open_copy(target)) as copy:
        heads = copy.heads()
        engine = bare_engine(copy, **world)
        if engine.erasures is not None:
            # Later erasures of the restored store must reach this backup too.
            _list_backup(engine, store_id, source, target, {})
            if known:
                restore_erasure_list(engine)
        # An existing folder may contain blobs that were erased since.
        blobs.remove_orphans(replace(engine, blobs=blobs_of(target)))
    return Restored(
        path=str(target),
        store_id=store_id,
        separate=separate,
        heads=_names(heads),
        erased=erased,
        revoked=revoked,
        warning=warning if known else f"{UNKNOWN_STORE}. {warning}",
        blobs=copied.blobs,
        faulty=copied.faulty,
    )


def plan_adopt(context: RequestContext) -> AdoptionPlan:
    """Return what adopting this store would accept, with a digest; change nothing."""
    store, now = context.store, context.clock.now()
    _, faults = store.verify()
    if store.foreign is not None:
        # That the store is not trusted yet is no damage.
        faults = [fault for fault in faults if fault.detail != store.foreign]
    with store.inspecting():
        heads = dict(sorted(store.heads().items()))
        core = [each for name in heads for each in _core_blocks(store, name, now)]
        tokens = [
            AdoptedToken(id=each.id, name=each.name, rights=each.rights.value, tenant=each.tenant, scope=each.scope)
            for each in store.documents(StoredToken, None).list()
            if each.state(now) == "valid"
        ]
        facts = {name: store.facts(name, now) for name in heads}
        live = {name: int(found["live"]) for name, found in facts.items()}
        waiting = {name: len(store.documents(Proposal, name).list(state="pending")) for name in heads}
    shown = [[each.tenant, each.scope, each.key, each.text] for each in core]
    named_heads = {name: [head.seq, head.hash.hex()] for name, head in heads.items()}
    named = digest("adopt", canonical([store.store_id, named_heads, shown, [token.id for token in tokens]])).hex()
    return AdoptionPlan(
        digest=named,
        heads=_names(heads),
        faults=tuple(faults),
        foreign=store.foreign is not None and not store.is_copy,
        core=tuple(core),
        tokens=tuple(tokens),
        live=live,
        erased=sum(found["by_status"].get("erased", 0) for found in facts.values()),
        waiting=waiting,
    )


def adopt(context: RequestContext, digest: str) -> AdoptionPlan:
    """Accept the store, given the digest of the plan that was shown; see ``Memory.adopt``."""
    plan = plan_adopt(context)
    if plan.digest != digest:
        raise Conflict("the store has changed since it was shown; look at the plan again")
    note = "the store was accepted as it was and all rows were resealed, on an owner's request"
    if context.store.is_copy:
        note = f"the store is a copy that was adopted on {context.clock.now():%Y-%m-%d} as a store of its own"
    elif plan.foreign:
        # Before the store is accepted, so that the tokens never open it.
        with context.store.inspecting():
            revoke_all(context.engine)
        note = (
            f"the store came from elsewhere and was adopted on {context.clock.now():%Y-%m-%d} as it was, with "
            f"{len(plan.core)} core blocks; its {len(plan.tokens)} tokens were ended"
        )
        if plan.erased:
            note += (
                f"; its {plan.erased} erased memories were erased under another home's key: what they said is not "
                "refused here when it is said again, and backups made elsewhere may hold it still"
            )
    context.store.adopt(note)
    restore_erasure_list(context.engine)
    reapply_erasures(context)
    for tenant in context.store.tenants():
        context.indexes.drop(context.store, tenant)
    return plan


def _core_blocks(store: EventStore, tenant: str, now: datetime) -> list[AdoptedBlock]:
    """Return the live core blocks of a tenant, unchecked."""
    found = store.find(tenant, Filter(tiers=(Tier.CORE.value,), include_sensitive=True), live_at=now, limit=None)
    blocks = [
        AdoptedBlock(tenant=tenant, scope=record.scope, key=record.key, text=record.text) for record in found.records
    ]
    return sorted(blocks, key=lambda each: (each.scope, each.key or "", each.text))


def _list_backup(engine: Engine, store_id: str, backup: Path, of: Path, heads: Mapping[str, Head]) -> None:
    """Add a backup of a store to this machine's list, if there is one."""
    if engine.erasures is not None:
        entry = {"entry": "backup", "store": store_id, "path": str(backup), "of": str(of)}
        named = {tenant_digest(name): head.name for name, head in sorted(heads.items())}
        engine.erasures.add([{**entry, "at": to_micros(engine.clock.now()), "heads": named}])


def _names(heads: Mapping[str, Head]) -> dict[str, str]:
    return {name: head.name for name, head in sorted(heads.items())}


def _check_source(source: Path, aside: Path, **world: Any) -> tuple[str, Engine, list[dict[str, Any]], str]:
    """Check that the journal of a backup contains the heads that this machine's list has from when it was made.

    Returns the id of its original store, an engine, the entries of the list, and notes for the owner.

    Raises:
        Tampered: it does not contain them.
    """
    with closing(open_copy(aside)) as copy:
        engine = bare_engine(copy, **world)
        entries = engine.erasures.entries() if engine.erasures else []
        made = [entry for entry in entries if entry.get("entry") == "backup" and entry["path"] == str(source)]
        noted = made[-1]["heads"] if made and made[-1]["store"] == copy.store_id else {}
        for tenant in copy.tenants():
            said = noted.pop(tenant_digest(tenant), None)
            view = copy.commit(tenant, said.partition(":")[0]) if said else None
            if said and (view is None or f"{view.commit.seq}:{view.commit.hash.hex()[:16]}" != said):
                raise Tampered("the backup is not the one that was made: its journal was rewritten or cut")
        if noted:
            raise Tampered("the backup is not the one that was made: a tenant is missing")
    knows_store = any(each.get("store") == copy.store_id for each in entries)
    return copy.store_id, engine, entries, "" if knows_store else NO_ERASURE_LIST_MESSAGE


def _copy_blobs(copy: EventStore, source: BlobStore, target: Path) -> blobs.CopyResult:
    """Copy the blobs of a copied store to the folder next to ``target``."""
    wanted = [each for tenant in copy.blob_tenants() for each in copy.documents(StoredBlob, tenant).list()]
    return blobs.copy(source, blobs_of(target), wanted)


def _original_exists(entry: dict[str, Any], store_id: str, target: Path) -> bool:
    """Whether the original store of a backup still exists at its path."""
    if entry.get("entry") != "backup" or entry["store"] != store_id or entry["of"] == str(target):
        return False
    of = Path(entry["of"])
    try:
        return of.exists() and read_id(id_file(of)) == store_id
    except (OSError, InvalidInput):
        return False
