"""The verbs of copies: backup, restore, and accepting a store that came from elsewhere. For the owner alone.

Invariants
(1) A backup that comes back holds nothing that this machine has erased since: the list is carried out in it before
    it stands under its name.
(2) Nor does a token that was revoked since hold in it again.
(3) An older state is accepted only by name: ``restore_backup`` is asked for it, ``adopt`` takes the digest of what
    was shown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward import durable
from keepward.app.erasing import replay_all, replay_into, settle
from keepward.app.erasure_lists import list_again, read_beside, write_beside
from keepward.app.handle import Handle
from keepward.errors import Conflict, StoreUnavailable, Tampered, Unauthorised
from keepward.model.codec import canonical, digest
from keepward.model.copies import (
    AdoptedBlock,
    AdoptedToken,
    Adoption,
    Backup,
    Rescued,
    Restored,
)
from keepward.model.memory import Tier
from keepward.model.query import Filter
from keepward.model.trust import Actor
from keepward.model.value import to_micros

if TYPE_CHECKING:
    from keepward.engine.blobs import Copied
    from keepward.engine.kit import Kit, Who
    from keepward.ports.blobs import BlobStore
    from keepward.ports.store import Store
    from keepward.ports.world import Clock, IdSource
    from keepward.stores.sqlite.store import SqliteStore

#: Said of a backup of which this machine's lists know nothing.
FORGOTTEN = (
    "this machine has no list of what was erased and revoked in that store: what was erased after the backup was made "
    "may be back, and be said again. Bring the list with `keepward key import`, or erase and revoke it anew"
)
#: Said of it where a list lies beside it; the time of that is put in.
LISTED = (
    "this machine has no list of its own of what was erased and revoked in that store; the one beside the backup, of "
    "{at}, was carried out. What was erased after that may be back, and what was erased before the backup was made can "
    "be said again: bring the list and its key with `keepward key import`, or erase and revoke it anew"
)


class Copying(Handle):
    """Copies of the store, and stores that are copies."""

    def backup(self, path: str | Path) -> Backup:
        """Write a consistent copy of the live store, readable by its owner alone, to a file that is not there yet.

        Its blobs go to a folder beside it, as they lie beside the store, and so does a list of what was erased and
        revoked, without content, for a machine that has lost its own.
        """
        self._owner("a backup")
        kit, target = self._kit, Path(path).expanduser().absolute()
        from keepward.engine.blobs import files_of, reachable
        from keepward.stores.sqlite.copies import open_copy

        # Held, so that nothing is removed between the copy of the rows and that of the files.
        held = files_of(kit).holding() if kit.store.blob_tenants() else contextlib.nullcontext()
        with reachable(), held:
            kit.store.backup(target)
            copy = open_copy(target)
            try:
                heads = copy.tails()
                carried = _carry(copy, files_of(kit), target)
            finally:
                copy.close()
        entry = {
            "entry": "backup",
            "store": kit.store.store_id,
            "path": str(target),
            "of": str(Path(self.path).absolute()),
            "at": to_micros(kit.clock.now()),
            "heads": {digest("tenant", name.encode()).hex(): head.name for name, head in sorted(heads.items())},
        }
        listed = kit.erasures is not None
        if kit.erasures is not None:
            try:
                kit.erasures.note([entry])
            except OSError:
                listed = False
        try:
            list_again(kit)
            write_beside(kit, target)
        except OSError as fault:
            raise StoreUnavailable(
                f"the backup was written, the list of erasures beside it was not: {fault.strerror or 'output error'}"
            ) from fault
        return Backup(
            path=str(target),
            bytes=target.stat().st_size,
            heads={name: head.name for name, head in sorted(heads.items())},
            listed=listed,
            blobs=carried.blobs,
            faulty=carried.faulty,
        )

    @classmethod
    def restore_backup(
        cls,
        backup: str | Path,
        to: str | Path,
        *,
        actor: Actor,
        config_dir: Path | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> Restored:
        """Bring a backup back as the store at ``to``, which must not be there; its older state is accepted by this.

        Erasures that were made since are carried out in it first: those that this machine has listed, and those of
        the lists in the folder of the backup. Where the store that it was made of is still
        there, the copy gets an id of its own.

        Raises:
            Unauthorised: the actor is not an owner.
            Tampered: the backup's journal does not hold, or is not that of the backup that was made.
            StoreUnavailable, NotAStore, InvalidInput: a file cannot be used.
        """
        if not actor.is_owner:
            raise Unauthorised("restoring a backup takes the owner")
        source, target = Path(backup).expanduser().absolute(), Path(to).expanduser().absolute()
        return _restore(source, target, actor, config_dir=config_dir, clock=clock, ids=ids)

    @classmethod
    def rescue(
        cls,
        broken: str | Path,
        new: str | Path,
        *,
        actor: Actor,
        config_dir: Path | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Rescued:
        """Make a new store at ``new``, which must not be there, of every commit and memory of a damaged one that holds.

        The damaged file is read and never written. Commits come as they are up to the first that does not hold, newer
        memories in one commit of kind ``rescue``; what was lost is named. It has vectors once it was reindexed.
        ``on_progress`` is called with sentences.

        Raises:
            Unauthorised: the actor is not an owner.
            NotAStore: nothing of the file can be read as a store.
            InvalidInput, StoreUnavailable: ``new`` is there already, or cannot be made.
        """
        from keepward.app.rescuing import rescue

        source, target = Path(broken).expanduser().absolute(), Path(new).expanduser().absolute()
        return rescue(source, target, actor=actor, config_dir=config_dir, clock=clock, ids=ids, on_progress=on_progress)

    def plan_adopt(self) -> Adoption:
        """Return what accepting the store as it stands would accept, under a digest; change nothing."""
        self._owner("accepting a store")
        return plan_adopt(self._kit)

    def adopt(self, digest: str) -> Adoption:
        """Accept the store as it stands, given the digest of what was shown.

        What this machine has erased is carried out in it again. The tokens of a foreign store end, and it says for
        good that it was one.

        Raises:
            Conflict: the store is not in the state that was shown.
            Tampered: its journal does not hold in itself; nothing was accepted.
            StoreUnavailable: it can only be read, or this machine has no place to note it.
        """
        self._owner("accepting a store")
        return adopt(self._kit, self._who, digest)


def plan_adopt(kit: Kit) -> Adoption:
    """Return what accepting the store as it stands would accept, under a digest; change nothing."""
    store, now = kit.store, kit.clock.now()
    _, faults = store.verify()
    if store.foreign is not None:
        # That it was sealed elsewhere is what foreign means, and no damage.
        faults = [each for each in faults if each.row != "meta sealed_by"]
    with store.inspecting():
        tails = dict(sorted(store.tails().items()))
        core = [each for name in tails for each in _core(store, name, now)]
        tokens = [
            AdoptedToken(id=each.id, name=each.name, rights=each.rights.value, tenant=each.tenant, scope=each.scope)
            for each in store.tokens()
            if each.state(now) == "valid"
        ]
        facts = {name: store.facts(name, now) for name in tails}
        live = {name: int(found["live"]) for name, found in facts.items()}
        waiting = {name: len(store.queue(name)) for name in tails}
    shown = [[each.tenant, each.scope, each.key, each.text] for each in core]
    whole = {name: [head.seq, head.hash.hex()] for name, head in tails.items()}
    named = digest("adopt", canonical([store.store_id, whole, shown, [each.id for each in tokens]])).hex()
    return Adoption(
        digest=named,
        heads={name: head.name for name, head in tails.items()},
        faults=tuple(faults),
        foreign=store.foreign is not None,
        core=tuple(core),
        tokens=tuple(tokens),
        live=live,
        erased=sum(found["by_status"].get("erased", 0) for found in facts.values()),
        waiting=waiting,
    )


def adopt(kit: Kit, who: Who, digest: str) -> Adoption:
    """Accept the store as it stands, given the digest of what was shown.

    What this machine has erased is carried out in it again. The tokens of a foreign store end, and it says for
    good that it was one.

    Raises:
        Conflict: the store is not in the state that was shown.
        Tampered: its journal does not hold in itself; nothing was accepted.
        StoreUnavailable: it can only be read, or this machine has no place to note it.
    """
    from keepward.engine.credentials import disown

    plan = plan_adopt(kit)
    if plan.digest != digest:
        raise Conflict("the store is not in the state that was shown; look at it again")
    note = "the store was accepted as it stood and all seals were made anew, on an owner's request"
    if plan.foreign:
        # Before it is accepted: there is no moment in which they open it.
        with kit.store.inspecting():
            disown(kit)
        note = (
            f"the store came from elsewhere and was adopted on {kit.clock.now():%Y-%m-%d} as it stood, with "
            f"{len(plan.core)} core blocks; its {len(plan.tokens)} tokens were ended"
        )
        if plan.erased:
            note += (
                f"; its {plan.erased} erased memories were erased under another home's key: what they said is not "
                "refused here when it is said again, and backups made elsewhere may hold it still"
            )
    kit.store.adopt(note)
    list_again(kit)
    recall_again(kit, who)
    for tenant in kit.store.tenants():
        kit.indexes.forget(tenant)
    return plan


def recall_again(kit: Kit, who: Who) -> None:
    """Carry out in a store what this machine has erased and revoked."""
    from keepward.engine.credentials import revoke_again

    if kit.erasures is not None and replay_all(kit, who, kit.store, kit.erasures.entries()):
        settle(kit, who)
    revoke_again(kit, who)


def _core(store: Store, tenant: str, now: datetime) -> list[AdoptedBlock]:
    """Return the live core blocks of a tenant as they stand."""
    found = store.find(tenant, Filter(tiers=(Tier.CORE.value,), include_sensitive=True), live_at=now, limit=None)
    told = [AdoptedBlock(tenant=tenant, scope=each.scope, key=each.key, text=each.text) for each in found.records]
    return sorted(told, key=lambda each: (each.scope, each.key or "", each.text))


def _restore(
    source: Path, target: Path, actor: Actor, *, config_dir: Path | None, clock: Clock | None, ids: IdSource | None
) -> Restored:
    from keepward.app.opening import anchor_in, bare_kit, blobs_of
    from keepward.engine.blobs import clean
    from keepward.engine.kit import Who
    from keepward.stores.sqlite.copies import accept, bring_back, open_copy, rename

    anchor = anchor_in(config_dir)
    if anchor is None:
        raise StoreUnavailable("this machine has no place for a sealing key; set a configuration folder")
    aside = target.with_name(f".{target.name}.restoring")
    for name in _files(aside):
        name.unlink(missing_ok=True)
    try:
        bring_back(source, aside, target)
        store_id, kit, entries, warning = _before(source, aside, config_dir=config_dir, clock=clock, ids=ids)
        who = Who(tenant="default", scope="/", actor=actor)
        gone = replay_into(kit, who, aside, entries)
        copy = open_copy(aside)
        try:
            carried = _carry(copy, blobs_of(source), target)
        finally:
            copy.close()
        revoked = _revoke_into(aside, who, config_dir=config_dir, clock=clock, ids=ids)
        separate = any(_lives(each, store_id, target) for each in entries)
        if separate:
            store_id = rename(aside)
        aside.rename(target)
        durable.flush(target.parent)
        accept(target, store_id, anchor)
    finally:
        for name in _files(aside):
            with contextlib.suppress(OSError):
                name.unlink(missing_ok=True)
    copy = open_copy(target)
    try:
        heads = copy.tails()
        kit = bare_kit(copy, config_dir=config_dir, clock=clock, ids=ids)
        _list_again(kit, source, store_id, target)
        # A folder that was there already may hold what was erased since.
        clean(replace(kit, blobs=blobs_of(target)))
    finally:
        copy.close()
    return Restored(
        path=str(target),
        store_id=store_id,
        separate=separate,
        heads={name: head.name for name, head in sorted(heads.items())},
        erased=gone,
        revoked=revoked,
        warning=warning,
        blobs=carried.blobs,
        faulty=carried.faulty,
    )


def _before(source: Path, aside: Path, **world: Any) -> tuple[str, Kit, list[dict[str, Any]], str]:
    """Look at a backup and at the lists that know of it, before it is a store.

    Returns the id of the store it was made of, a kit, what was erased since it was made as far as is known, and what
    has to be said of that.
    """
    from keepward.app.opening import bare_kit
    from keepward.stores.sqlite.copies import open_copy

    copy = open_copy(aside)
    kit = bare_kit(copy, **world)
    try:
        entries = kit.erasures.entries() if kit.erasures else []
        made_here = _as_made(kit, source, entries)
        store_id = copy.store_id
    finally:
        copy.close()
    beside = read_beside(source)
    fresh = [each for each in beside.entries if each not in entries]
    if kit.erasures is not None:
        kit.erasures.note([each for each in fresh if each["entry"] == "revocation"])
    if made_here:
        return store_id, kit, [*entries, *fresh], ""
    warning = LISTED.format(at=f"{beside.at:%Y-%m-%d %H:%M} UTC") if beside.at else FORGOTTEN
    return store_id, kit, [*entries, *fresh], warning


def _revoke_into(file: Path, who: Who, **world: Any) -> int:
    """End, in a copy, the tokens that were revoked since it was made; return how many."""
    from keepward.app.opening import bare_kit
    from keepward.engine.credentials import revoke_again
    from keepward.stores.sqlite.copies import open_copy

    copy = open_copy(file)
    try:
        return revoke_again(bare_kit(copy, **world), who)
    finally:
        copy.close()


def _carry(copy: SqliteStore, source: BlobStore, target: Path) -> Copied:
    """Copy the blobs that a copy of a store knows to the folder beside ``target``."""
    from keepward.app.opening import blobs_of
    from keepward.engine import blobs as blob_upkeep

    wanted = [each for tenant in copy.blob_tenants() for each in copy.blobs(tenant)]
    return blob_upkeep.copy(source, blobs_of(target), wanted)


def _files(file: Path) -> list[Path]:
    return [file.with_name(file.name + end) for end in ("", "-wal", "-shm", "-journal")]


def _as_made(kit: Kit, source: Path, entries: list[dict[str, Any]]) -> bool:
    """Hold a backup against what was noted when it was made: its journal must still pass through those heads.

    Returns whether this machine has a list that tells of a backup of this store.

    Raises:
        Tampered: it does not.
    """
    made = [each for each in entries if each.get("entry") == "backup" and each["path"] == str(source)]
    noted = made[-1]["heads"] if made and made[-1]["store"] == kit.store.store_id else {}
    for tenant in kit.store.tenants():
        said = noted.pop(digest("tenant", tenant.encode()).hex(), None)
        view = kit.store.commit(tenant, said.partition(":")[0]) if said else None
        if said and (view is None or f"{view.commit.seq}:{view.commit.hash.hex()[:16]}" != said):
            raise Tampered("the backup is not the one that was made: its journal was rewritten or cut")
    if noted:
        raise Tampered("the backup is not the one that was made: a tenant is gone")
    return any(each.get("store") == kit.store.store_id for each in entries)


def _lives(entry: dict[str, Any], store_id: str, target: Path) -> bool:
    """Whether the store that a backup was made of is still where it was."""
    if entry.get("entry") != "backup" or entry["store"] != store_id or entry["of"] == str(target):
        return False
    beside = Path(f"{entry['of']}.id")
    try:
        return Path(entry["of"]).exists() and beside.read_text("ascii").strip() == store_id
    except (OSError, UnicodeDecodeError):
        return False


def _list_again(kit: Kit, source: Path, store_id: str, target: Path) -> None:
    """Note the backup as one of the restored store too, and the erasures that were carried out in it."""
    if kit.erasures is None:
        return
    kit.erasures.note(
        [
            {
                "entry": "backup",
                "store": store_id,
                "path": str(source),
                "of": str(target),
                "at": to_micros(kit.clock.now()),
                "heads": {},
            }
        ]
    )
    list_again(kit)
