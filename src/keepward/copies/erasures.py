"""What follows an erasure beyond the store: this machine's list of erasures, and our backups.

Invariants
(1) What follows the erasing commit (the list, our backups, a clean file, the certificate) is resumed when the store is
    opened next, should it be interrupted: the store notes that it is unclean until all of it is done.
(2) A backup that is restored is erased as the list says, where it has the very content that was erased. Where the
    list was lost, nobody knows what was erased after the backup was made.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from keepward.core.journal import Erased, Selection
from keepward.core.serialization import hidden
from keepward.core.trust import Actor, ActorKind, Rights
from keepward.errors import KeepwardError
from keepward.open import blobs_of
from keepward.services import traces as certificate
from keepward.services.blobs import clean
from keepward.services.erase import erase, replay
from keepward.services.index import Indexes
from keepward.services.session import Engine, Session
from keepward.services.tokens import revoke_again
from keepward.storage.documents import KeptText
from keepward.storage.store import open_copy

logger = logging.getLogger(__name__)


def settle_opened(engine: Engine) -> None:
    """Finish an erasure that was interrupted.

    A store that cannot be written now is finished another time.
    """
    actor = Actor(kind=ActorKind.SYSTEM, name="keepward", rights=Rights.OWNER)
    try:
        session = Session(engine=engine, tenant="default", scope="/", actor=actor)
        settle(session)
    except (KeepwardError, OSError) as fault:
        logger.warning("an erasure is not finished: %s", fault, extra={"action": "erasing"})


def carry_out_again(session: Session) -> None:
    """Carry out in a store what this machine has erased and revoked."""
    if session.engine.erasures is not None and replay_all(session, session.store, session.engine.erasures.entries()):
        settle(session)
    revoke_again(session)


def erase_everywhere(session: Session, digest: str, chosen: Selection, *, reason: str) -> Erased:
    """Carry out an erasure, here and in the backups of the store; see ``services.erase``."""
    done = erase(session, digest, chosen, reason=reason)
    settle(session)
    return done


def settle(session: Session) -> None:
    """Finish what erasing commits began: the list, our backups, the file, the certificates; see (1)."""
    open_ones = []
    for tenant in session.store.tenants():
        for commit, events in certificate.erasures(session.engine, tenant):
            if session.store.artefact(tenant, certificate.CERTIFICATE, commit.id) is None:
                open_ones.append((commit, events))
    remember(session.engine, [certificate.entry(session.engine, commit, events) for commit, events in open_ones])
    outcomes = clean_backups(replace(session, scope="/"))
    if session.store.scrub() is not None or not _swept(session.engine):
        return
    with session.store.write() as writer:
        for commit, events in open_ones:
            told = certificate.certificate(
                session.engine,
                commit,
                events,
                file="the file was written anew from what is live, and its log emptied",
                backups=outcomes,
            )
            text = json.dumps(told, ensure_ascii=False, sort_keys=True)
            writer.put(KeptText(commit.tenant, certificate.CERTIFICATE, commit.id, text))
        writer.settle()


def _swept(engine: Engine) -> bool:
    """Remove the files of erased blobs, which have no row any more; return whether that is done."""
    try:
        if engine.blobs is not None:
            clean(engine)
    except KeepwardError as fault:
        # The erasure stands; the store stays unclean, and the next opening tries again.
        logger.warning("erased blobs are still there: %s", fault, extra={"action": "erasing"})
        return False
    return True


def clean_backups(session: Session) -> list[dict[str, str]]:
    """Erase in every backup of this store what was erased since it was made; return how that went."""
    if session.engine.erasures is None:
        return []
    entries = session.engine.erasures.entries()
    mine = [each for each in entries if each.get("entry") == "backup" and each["store"] == session.store.store_id]
    outcomes = []
    for path in dict.fromkeys(each["path"] for each in mine):
        state = "not found"
        if Path(path).exists():
            try:
                gone = replay_into(session, Path(path), entries)
                state = f"cleaned: {gone} places" if gone else "held nothing of it"
            except KeepwardError as exc:
                state = f"not cleaned: {exc}"
        outcomes.append({"path": path, "state": state})
    return outcomes


def replay_into(session: Session, file: Path, entries: Sequence[dict[str, Any]]) -> int:
    """Carry out the erasures of the list in a copy of a store, and clean its file; return how many places went.

    Raises:
        StoreUnavailable, NotAStore, Tampered: the copy cannot be used.
    """
    with closing(open_copy(file)) as store:
        gone = replay_all(session, store, entries)
        if gone or store.unclean():
            clean(replace(session.engine, store=store, blobs=blobs_of(file)))
            waits = store.scrub()
            if waits is not None:
                raise KeepwardError(waits)
            with store.write() as writer:
                writer.settle()
        return gone


def replay_all(session: Session, store: Any, entries: Sequence[dict[str, Any]]) -> int:
    """Carry out the erasures of the list in every tenant of a store; return how many places went."""
    copy = replace(session.engine, store=store, indexes=Indexes(), embedder=None)
    gone = 0
    for tenant in store.tenants():
        name = hidden(tenant)
        own = [each for each in entries if each.get("entry") == "erasure" and each["tenant"] == name]
        if own:
            gone += replay(replace(session, engine=copy, tenant=tenant, scope="/"), own)
    return gone


def remember(engine: Engine, entries: Sequence[dict[str, Any]]) -> None:
    """Add erasures to this machine's list, those that it does not name yet."""
    if engine.erasures is None:
        return
    known = {entry.get("commit") for entry in engine.erasures.entries()}
    engine.erasures.note([entry for entry in entries if entry["commit"] not in known])


def list_again(engine: Engine) -> None:
    """Add to this machine's list what the journal says was erased, where the list has lost it."""
    known = {entry.get("commit") for entry in engine.erasures.entries()} if engine.erasures else set()
    for tenant in engine.store.tenants():
        if known.issuperset(engine.store.erasing(tenant)):
            continue
        remember(
            engine,
            [certificate.entry(engine, commit, events) for commit, events in certificate.erasures(engine, tenant)],
        )
