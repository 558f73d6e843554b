"""What follows an erasure beyond the store: this machine's list, the lists beside backups, and the backups themselves.

Invariants
(1) What follows the erasing commit (the list, our backups, a clean file, the certificate) is taken up again when the
    store is opened next, should it be interrupted: the store notes that it is unclean until all of it is done.
(2) A list beside a backup holds no content and no key: ids, places, commitments, and hashes of revoked tokens. It is
    written when the backup is made and after every erasure, also while the backup itself is elsewhere.
(3) What a list says is carried out in what is restored, where a place has the very content that was erased.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from keepward import durable
from keepward.engine import traces as certificate
from keepward.engine.blobs import clean
from keepward.engine.credentials import revoke_again
from keepward.engine.erase import erase, replay
from keepward.engine.index import Indexes
from keepward.engine.session import Engine, Session
from keepward.errors import InvalidInput, KeepwardError, StoreError, StoreUnavailable
from keepward.model.codec import hidden
from keepward.model.journal import Erased, Selection
from keepward.model.trust import Actor, ActorKind, Rights
from keepward.model.value import from_micros, to_micros
from keepward.open import blobs_of
from keepward.results import read_json
from keepward.store.store import open_copy

logger = logging.getLogger(__name__)
#: What stands behind the name of a backup.
END = ".erased"
#: Entries that mean something elsewhere; paths of backups do not.
CARRIED = frozenset({"erasure", "lift", "revocation"})
_FORMAT = "keepward-erasures/1"
#: What an entry of each sort holds, beside what all of them hold.
_COMMON: dict[str, Any] = {"store": str, "at": int}
_FORMS: dict[str, dict[str, Any]] = {
    "revocation": {"hash": str},
    "erasure": {"tenant": str, "commit": str, "memories": list[str], "places": list[tuple[int, int, str]]},
    "lift": {"tenant": str, "memories": list[str]},
}


def settle_opened(engine: Engine) -> None:
    """Finish an erasure that was interrupted, and carry out in a new copy what was erased and revoked since.

    A store that cannot be written now is finished another time.
    """
    actor = Actor(kind=ActorKind.SYSTEM, name="keepward", rights=Rights.OWNER)
    try:
        session = Session(engine=engine, tenant="default", scope="/", actor=actor)
        if engine.store.copied:
            carry_out_again(session)
        if engine.store.unclean():
            settle(session)
    except (KeepwardError, OSError) as fault:
        logger.warning("an erasure is not finished: %s", fault, extra={"action": "erasing"})


def carry_out_again(session: Session) -> None:
    """Carry out in a store what this machine has erased and revoked."""
    if session.engine.erasures is not None and replay_all(session, session.store, session.engine.erasures.entries()):
        settle(session)
    revoke_again(session)


def erase_everywhere(session: Session, digest: str, chosen: Selection, *, reason: str) -> Erased:
    """Carry out an erasure, here and in the backups of the store; see ``engine.erase``."""
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
            writer.put_artefact(commit.tenant, certificate.CERTIFICATE, commit.id, text)
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
    """Carry out, in every backup that was made of this store, the erasures it does not know; return how that went.

    The list beside each is written anew, also where the backup itself is away.
    """
    if session.engine.erasures is None:
        return []
    entries = session.engine.erasures.entries()
    mine = [each for each in entries if each.get("entry") == "backup" and each["store"] == session.store.store_id]
    outcomes = []
    for path in dict.fromkeys(each["path"] for each in mine):
        unlisted = _unlisted(session.engine, Path(path))
        if not Path(path).exists():
            outcomes.append({"path": path, "state": f"not found{unlisted}"})
            continue
        try:
            gone = replay_into(session, Path(path), entries)
            went = f"cleaned: {gone} places" if gone else "held nothing of it"
            outcomes.append({"path": path, "state": f"{went}{unlisted}"})
        except KeepwardError as fault:
            outcomes.append({"path": path, "state": f"not cleaned: {fault}{unlisted}"})
    return outcomes


def _unlisted(engine: Engine, backup: Path) -> str:
    """Write the list beside a backup anew; return what has to be said where that failed."""
    try:
        if backup.exists() or _list_path(backup).exists():
            write_beside(engine, backup)
    except OSError:
        return "; the list beside it could not be written"
    return ""


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
        own = [each for each in entries if each.get("entry") in {"erasure", "lift"} and each["tenant"] == name]
        if own:
            gone += replay(replace(session, engine=copy, tenant=tenant, scope="/"), own)
    return gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What the lists beside a backup say."""

    entries: tuple[dict[str, Any], ...] = ()
    #: When the newest of them was written; None where there is none.
    at: datetime | None = None


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


def write_beside(engine: Engine, backup: Path) -> None:
    """Write the list of this store beside a backup, in place of an older one.

    Raises:
        OSError: it cannot be written.
    """
    listed = engine.erasures.entries() if engine.erasures else []
    own = {commit for tenant in engine.store.tenants() for commit in engine.store.erasing(tenant)}
    carried = [each for each in listed if each.get("entry") in CARRIED]
    mine = [each for each in carried if each.get("store") == engine.store.store_id or each.get("commit") in own]
    head = {"list": _FORMAT, "store": engine.store.store_id, "at": to_micros(engine.clock.now())}
    lines = (json.dumps(each, sort_keys=True, separators=(",", ":")) + "\n" for each in (head, *mine))
    durable.replace(_list_path(backup), "".join(lines).encode("ascii"))


def read_beside(backup: Path) -> Beside:
    """Return what the list of a backup says, with those of other backups in its folder, which may be newer.

    Raises:
        InvalidInput: one of them is damaged.
        StoreUnavailable: one of them cannot be read.
    """
    own = _list_path(backup)
    found: list[dict[str, Any]] = []
    times: list[int] = []
    try:
        for file in sorted(backup.parent.glob(f"*{END}")):
            lines = file.read_text("ascii", errors="replace").splitlines()
            head = _entry(lines[0]) if lines else None
            if head is None or head.get("list") != _FORMAT:
                if file == own:
                    raise _damaged(file)
                continue
            entries = [_entry(line) for line in lines[1:]]
            if not isinstance(head.get("at"), int) or not all(_is_entry(each) for each in entries):
                raise _damaged(file)
            times.append(head["at"])
            found += [each for each in entries if each is not None and each not in found]
    except OSError as fault:
        raise StoreUnavailable(f"a list of erasures beside the backup cannot be read: {fault.strerror}") from fault
    return Beside(entries=tuple(found), at=from_micros(max(times)) if times else None)


def _list_path(backup: Path) -> Path:
    return backup.with_name(backup.name + END)


def _damaged(file: Path) -> InvalidInput:
    return InvalidInput(f"{file.name} is not a list of erasures as it was written; move it away to go on without it")


def _entry(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _is_entry(entry: dict[str, Any] | None) -> bool:
    """Whether an entry has the form in which it was written."""
    form = _FORMS.get(str(entry.get("entry"))) if entry else None
    if entry is None or form is None:
        return False
    try:
        for name, hint in (_COMMON | form).items():
            read_json(hint, entry.get(name))
        read_json(list[str], entry.get("proposals", []))
    except StoreError:
        return False
    return True
