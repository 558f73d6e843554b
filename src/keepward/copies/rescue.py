"""Rescuing: a new store out of what still proves itself of a damaged one.

Invariants
(1) The damaged store is read and never written.
(2) The journal is carried over as it is up to the first commit that does not hold; head and ids are those of the
    damaged store up to there.
(3) Memories that hold by themselves behind that come with commits of kind ``rescue``, at their newest version that
    holds. One of which a newer version is known and lost is archived: it may have been changed or retired.
(4) Everything that was lost is named.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from keepward.engine.blobs import put
from keepward.engine.commit import store_steps
from keepward.engine.index import reindex
from keepward.engine.session import Session
from keepward.engine.traces import erased_commitments
from keepward.errors import InvalidInput, KeepwardError, StoreUnavailable, Unauthorised
from keepward.model.blob import PREFIX, place
from keepward.model.commit import Step
from keepward.model.copies import Rescued, RescuedTenant
from keepward.model.memory import Record, Status
from keepward.model.query import Filter
from keepward.model.trust import Actor
from keepward.model.value import from_micros, to_micros
from keepward.open import anchor_in, blobs_of, open_engine
from keepward.ports.world import Clock, IdSource
from keepward.store.file import id_file
from keepward.store.salvage import Salvaged, Wreck
from keepward.store.seals import Sealer
from keepward.store.sqlite import remove

#: Memories of one commit.
_TOGETHER = 500
_REASON = "rescued from a damaged store: newer than the first commit that did not hold"


def rescue(
    broken: str | Path,
    new: str | Path,
    *,
    actor: Actor,
    config_dir: Path | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> Rescued:
    """Make the store ``new`` out of what holds of ``broken``; see ``Memory.rescue``."""
    broken, new = Path(broken).expanduser().absolute(), Path(new).expanduser().absolute()
    if not isinstance(actor, Actor) or not actor.is_owner:
        raise Unauthorised("rescuing a store takes the owner")
    if new.exists() or id_file(new).exists():
        raise InvalidInput(f"{new} is there already; name a file that is not")
    if not new.parent.is_dir():
        raise StoreUnavailable(f"the folder {new.parent} does not exist; create it")
    told = on_progress or (lambda _: None)
    with tempfile.TemporaryDirectory(dir=new.parent, prefix=f".{new.name}.") as folder:
        told(f"reading {broken}")
        with closing(Wreck(broken, Path(folder) / "copy.db")) as wreck:
            sealer = _sealer(wreck.store_id, config_dir)
            try:
                engine = open_engine(str(new), create=True, clock=clock, ids=ids, config_dir=config_dir)
                with closing(engine.store):
                    stones = erased_commitments(engine)
                    tenants, blobs, lost_blobs = [], 0, []
                    for name in wreck.tenants():
                        found = wreck.salvaged(name, sealer, stones)
                        told(f"tenant {name}: {len(found.commits)} of {found.newest} commits hold")
                        session = Session(engine=engine, tenant=name, scope="/", actor=actor)
                        carried, missing = _carry_blobs(session, wreck, broken)
                        blobs += len(carried)
                        lost_blobs += missing
                        tenants.append(_bring(session, found, carried, told))
                    store_id = engine.store.store_id
            except BaseException:
                # All of it was made here.
                remove(new, ".id", ".id.turns")
                raise
    return Rescued(
        path=str(new),
        store_id=store_id,
        of=wreck.store_id,
        sealed=sealer.active,
        tenants=tuple(tenants),
        blobs=blobs,
        lost_blobs=tuple(lost_blobs),
    )


def _sealer(store_id: str, config_dir: Path | None) -> Sealer:
    """Return the damaged store's seals, those of a store without a key where this machine has none."""
    anchor = anchor_in(config_dir)
    if anchor is None or not store_id.isalnum():
        return Sealer(None)
    # Bound by its id alone: nothing is noted of a place where a damaged file stands.
    anchor.bind(store_id)
    return Sealer(anchor.key())


def _carry_blobs(session: Session, wreck: Wreck, broken: Path) -> tuple[set[str], list[str]]:
    """Put the tenant's blobs into the new store; return those that came, and those that did not."""
    carried: set[str] = set()
    lost: list[str] = []
    files = blobs_of(broken)
    known = {row[0]: row[1:] for row in wreck.blobs(session.tenant)}
    # What was known of a blob may be lost: its file tells its name and its day.
    own = place(session.tenant, from_micros(0), f"{PREFIX}{'0' * 64}").partition("/")[0]
    for path in files.places():
        folder, _, rest = path.partition("/")
        ref = PREFIX + rest.rpartition("/")[2]
        if folder == own and ref not in known and wreck.names(session.tenant, ref):
            day = datetime.strptime(f"{rest[:10]} +0000", "%Y/%m/%d %z")
            known[ref] = (None, None, to_micros(day))
    for ref, (media_type, _, day) in known.items():
        try:
            data = files.read(place(session.tenant, from_micros(day), ref))
            if data is not None and put(session, data, media_type).ref == ref:
                carried.add(ref)
                continue
        except (KeepwardError, OSError, ValueError, TypeError):
            pass
        lost.append(str(ref))
    return carried, lost


def _bring(session: Session, found: Salvaged, blobs: set[str], told: Callable[[str], None]) -> RescuedTenant:
    if found.commits:
        session.store.restore_journal(session.tenant, iter(found.commits))
        reindex(session, ended=True)
    head = session.store.head(session.tenant).name
    lost = sorted(found.lost | {each.id for each in found.later if each.blob is not None and each.blob not in blobs})
    later = [each for each in found.later if each.blob is None or each.blob in blobs]
    for start in range(0, len(later), _TOGETHER):
        part = later[start : start + _TOGETHER]
        before = {each.id: each for each in session.store.records(session.tenant, [each.id for each in part]).records}
        _commit(session, _steps(session, part, before, found.outdated))
        told(f"tenant {found.tenant}: {start + len(part)} of {len(later)} newer memories brought over")
    came = {each.id for each in later}
    stale = session.store.records(session.tenant, sorted(found.outdated - came)).records
    _commit(
        session,
        [
            Step(op="archive", before=each, after=replace(each, version=each.version + 1, status=Status.ARCHIVED))
            for each in stale
            if each.status is Status.ACTIVE
        ],
    )
    return RescuedTenant(
        tenant=found.tenant,
        head=head,
        commits=len(found.commits),
        lost_commits=found.lost_commits,
        rescued=tuple(each.id for each in later),
        outdated=tuple(sorted(found.outdated - set(lost))),
        lost=tuple(lost),
    )


def _commit(session: Session, steps: list[Step]) -> None:
    if steps:
        base = {each.after.id: each.before.version if each.before else 0 for each in steps}
        store_steps(session, steps, base=base, reason=_REASON, kind="rescue")


def _steps(session: Session, part: list[Record], before: dict[str, Record], outdated: set[str]) -> list[Step]:
    """Return what makes each memory the one that was found; of two that hold a key the later one keeps it."""
    held: dict[tuple[str, str | None], str] = {
        (each.scope, each.key): each.id for each in part if each.key and _active(each, outdated)
    }
    keyed = Filter(scopes=(), keyed=True, include_sensitive=True)
    own = {each.id for each in part}
    for each in session.store.find(session.tenant, keyed, live_at=None, limit=None).records:
        if each.status is Status.ACTIVE and each.id not in own:
            held.setdefault((each.scope, each.key), each.id)
    steps = []
    for record in part:
        old = before.get(record.id)
        after = replace(record, version=old.version + 1 if old else 1)
        if record.status is Status.ACTIVE and not _active(record, outdated):
            after = replace(after, status=Status.ARCHIVED)
        elif record.key and held.get((record.scope, record.key)) not in {record.id, None}:
            # Its key went on to another memory, and the commit that says how is lost.
            after = replace(after, status=Status.ARCHIVED)
        steps.append(Step(op="restore", before=old, after=after))
    return steps


def _active(record: Record, outdated: set[str]) -> bool:
    return record.status is Status.ACTIVE and record.id not in outdated
