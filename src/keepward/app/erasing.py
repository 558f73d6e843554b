"""The verbs of erasing: plan, erase, certificate, lift. For the owner alone.

Invariants
(1) What follows the erasing commit (the list, our backups, a clean file, the certificate) is taken up again when the
    store is opened next, should it be interrupted: the store notes that it is unclean until all of it is done.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.app.erasure_lists import has_list, remember, write_beside
from keepward.app.handle import Handle
from keepward.errors import KeepwardError, Unauthorised

if TYPE_CHECKING:
    from keepward.engine.erase import ErasePlan, Selection
    from keepward.engine.kit import Kit, Who
    from keepward.model.journal import Erased, Lifted


logger = logging.getLogger(__name__)


class Erasing(Handle):
    """Destroying content for good."""

    def plan_erase(
        self,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: str = "request",
    ) -> ErasePlan:
        """Return what erasing these memories would destroy, under a digest; change nothing.

        ``subject`` and ``source`` take memories of the whole tenant; ``source`` is a reference in evidence, a
        foreign name, or the name of a source. ``reason`` is one of the codes of ``model.commit.REASONS``.
        """
        from keepward.engine.erase import plan

        self._erasing()
        return plan(self._kit, self._who, _selection(ids, subject, source), reason=reason)

    def erase(
        self,
        digest: str,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: str = "request",
    ) -> Erased:
        """Carry out exactly the plan with this digest, given what it was planned for.

        Raises:
            Conflict: what would be erased has changed; nothing was erased.
        """
        from keepward.engine.erase import erase

        self._erasing()
        done = erase(self._kit, self._who, digest, _selection(ids, subject, source), reason=reason)
        settle(self._kit, self._who)
        return done

    def lift_erasure(self, name: str) -> Lifted:
        """Allow what an erased memory said to be remembered again, given its id; for the owner alone.

        What was erased stays erased: only saying it anew is no longer refused.

        Raises:
            NotFound: no such memory within reach.
            InvalidInput: it was not erased.
            Conflict: nothing stands in the way.
        """
        from keepward.engine.undo import lift

        self._erasing()
        return lift(self._kit, self._who, name)

    def certificate(self, name: str) -> dict[str, Any]:
        """Return the certificate of an erasure, by the id of an erased memory or of the erasing commit."""
        from keepward.engine import traces as certificate

        self._erasing()
        commit, events = certificate.find(self._kit, self._who, name)
        kept = self._kit.store.artefact(self.tenant, certificate.CERTIFICATE, commit.id)
        if kept is not None:
            return dict(json.loads(kept))
        return certificate.certificate(
            self._kit, commit, events, file="not yet: close other readers and open the store again", backups=()
        )

    def _erasing(self) -> None:
        self._owner("erasing", "erase")
        if not all(actor.able("erase") for actor in (self._who.actor, *self._who.via)):
            raise Unauthorised("this token may not erase; ask the owner for one that may")


def _selection(ids: Sequence[str] | str, subject: str | None, source: str | None) -> Selection:
    from keepward.engine.erase import Selection

    return Selection(ids=(ids,) if isinstance(ids, str) else tuple(ids), subject=subject, source=source)


def settle(kit: Kit, who: Who) -> None:
    """Finish what erasing commits began: the list, our backups, the file, the certificates; see (1)."""
    from dataclasses import replace

    from keepward.engine import traces as certificate

    open_ones = []
    for tenant in kit.store.tenants():
        for commit, events in certificate.erasures(kit, tenant):
            if kit.store.artefact(tenant, certificate.CERTIFICATE, commit.id) is None:
                open_ones.append((commit, events))
    remember(kit, [certificate.entry(kit, commit, events) for commit, events in open_ones])
    outcomes = clean_backups(kit, replace(who, scope="/"))
    if kit.store.scrub() is not None or not _swept(kit):
        return
    with kit.store.write() as writer:
        for commit, events in open_ones:
            told = certificate.certificate(
                kit,
                commit,
                events,
                file="the file was written anew from what is live, and its log emptied",
                backups=outcomes,
            )
            text = json.dumps(told, ensure_ascii=False, sort_keys=True)
            writer.put_artefact(commit.tenant, certificate.CERTIFICATE, commit.id, text)
        writer.settle()


def _swept(kit: Kit) -> bool:
    """Remove the files of erased blobs, which have no row any more; return whether that is done."""
    from keepward.engine.blobs import clean

    try:
        if kit.blobs is not None:
            clean(kit)
    except KeepwardError as fault:
        # The erasure stands; the store stays unclean, and the next opening tries again.
        logger.warning("erased blobs are still there: %s", fault, extra={"action": "erasing"})
        return False
    return True


def clean_backups(kit: Kit, who: Who) -> list[dict[str, str]]:
    """Carry out, in every backup that was made of this store, the erasures it does not know; return how that went.

    The list beside each is written anew, also where the backup itself is away.
    """
    if kit.erasures is None:
        return []
    entries = kit.erasures.entries()
    mine = [each for each in entries if each.get("entry") == "backup" and each["store"] == kit.store.store_id]
    outcomes = []
    for path in dict.fromkeys(each["path"] for each in mine):
        unlisted = _unlisted(kit, Path(path))
        if not Path(path).exists():
            outcomes.append({"path": path, "state": f"not found{unlisted}"})
            continue
        try:
            gone = replay_into(kit, who, Path(path), entries)
            went = f"cleaned: {gone} places" if gone else "held nothing of it"
            outcomes.append({"path": path, "state": f"{went}{unlisted}"})
        except KeepwardError as fault:
            outcomes.append({"path": path, "state": f"not cleaned: {fault}{unlisted}"})
    return outcomes


def _unlisted(kit: Kit, backup: Path) -> str:
    """Write the list beside a backup anew; return what has to be said where that failed."""
    try:
        if backup.exists() or has_list(backup):
            write_beside(kit, backup)
    except OSError:
        return "; the list beside it could not be written"
    return ""


def replay_into(kit: Kit, who: Who, file: Path, entries: Sequence[dict[str, Any]]) -> int:
    """Carry out the erasures of the list in a copy of a store, and clean its file; return how many places went.

    Raises:
        StoreUnavailable, NotAStore, Tampered: the copy cannot be used.
    """
    from dataclasses import replace

    from keepward.app.opening import blobs_of
    from keepward.engine.blobs import clean
    from keepward.stores.sqlite.copies import open_copy

    store = open_copy(file)
    try:
        gone = replay_all(kit, who, store, entries)
        if gone or store.unclean():
            clean(replace(kit, store=store, blobs=blobs_of(file)))
            waits = store.scrub()
            if waits is not None:
                raise KeepwardError(waits)
            with store.write() as writer:
                writer.settle()
        return gone
    finally:
        store.close()


def replay_all(kit: Kit, who: Who, store: Any, entries: Sequence[dict[str, Any]]) -> int:
    """Carry out the erasures of the list in every tenant of a store; return how many places went."""
    from dataclasses import replace

    from keepward.engine.erase import replay
    from keepward.engine.index import Indexes
    from keepward.model.codec import digest

    copy = replace(kit, store=store, indexes=Indexes(), embedder=None)
    gone = 0
    for tenant in store.tenants():
        name = digest("tenant", tenant.encode()).hex()
        own = [each for each in entries if each.get("entry") in {"erasure", "lift"} and each["tenant"] == name]
        if own:
            gone += replay(copy, replace(who, tenant=tenant, scope="/"), own)
    return gone
