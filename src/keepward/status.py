"""Status: what a store contains, whether it is intact, and what stops it from working well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from json import dumps
from typing import Any

from keepward import deadline
from keepward.core.journal import Check, Fault, Verification
from keepward.core.json_form import to_json
from keepward.core.linear_patterns import has_re2, rules_off
from keepward.core.memory import CORE_BLOCKS, Tier
from keepward.core.principals import branch_of, main_scope
from keepward.core.query import Filter
from keepward.core.value import format_time, pluralize
from keepward.embedding import model_files
from keepward.errors import ModelUnavailable
from keepward.jobs.runner import job_states
from keepward.machine.backup_list import DUE_AFTER, backup_status
from keepward.retrieval.chunking import CURRENT_VERSIONS
from keepward.services import tokens
from keepward.services.reading.contexts import missing_files
from keepward.services.reading.learned_order import reranker_status
from keepward.services.reading.memory_tests import newest_run
from keepward.services.reading.reindex import uses_database_index
from keepward.services.reading.verification import heads_to_verify, store_verification, verification_status
from keepward.services.reading.visible import VisibleReader, core_blocks
from keepward.services.request_context import RequestContext
from keepward.services.review import identity
from keepward.services.review.decisions import expired_count, proposals
from keepward.services.search.features import embedder_id, known_embedder_id, query_vectors_of, vectors_of
from keepward.services.writing import blobs

#: How each embedder without meaning adds to words.
_MEANING = {"none": " alone", "hashed": " and their parts"}
_OUTSIDE = Fault(
    check="store", row="store", detail="rows do not match, here or in other scopes: the owner runs `keepward verify`"
)
#: A proposal that is pending for longer counts as stuck.
STUCK_AFTER = timedelta(days=7)


def verify(context: RequestContext, *, on_progress: Callable[[int, int], None] | None = None) -> Verification:
    """Check the store with every tenant, and store the result, which ``status`` reports.

    ``on_progress`` is called with the rows that were checked, of how many; an exception in it ends the check. A handle
    that sees only some scopes learns whether the store is intact, and nothing of its rows.
    """
    store, sees_rows = context.store, VisibleReader(context).sees_store

    def report(done: int, total: int) -> None:
        deadline.check()
        if on_progress is not None:
            on_progress(*(done, total) if sees_rows else (100 * done // max(total, 1), 100))

    heads = heads_to_verify(context)
    checked, faults = store.verify(on_progress=report)
    with store.inspecting():
        count, blob_faults = blobs.check(context.engine)
    found, checked = (*faults, *blob_faults), {**checked, "blob_files": count}
    unstored = store_verification(context, heads, found, everywhere=True)
    if not sees_rows:
        return Verification(ok=not found, checked={}, faults=(_OUTSIDE,) if found else ())
    notes = (*store.notes(), *([unstored] if unstored else ()))
    return Verification(ok=not found, checked=checked, faults=found, notes=notes)


def tenants(context: RequestContext) -> list[str]:
    """Return the names of all tenants with memories.

    Raises:
        Unauthorised: the handle is not an owner's.
    """
    context.require_owner("listing tenants")
    return context.store.tenants()


def _allow_untrusted_counts(context: RequestContext) -> AbstractContextManager[None]:
    """Open an untrusted store for counting; no other reads of it are allowed."""
    return nullcontext() if context.store.foreign is None else context.store.inspecting()


def status(context: RequestContext) -> dict[str, Any]:
    """Return counts, sizes, the review queue, the use of budgets, and the state of each job, as plain JSON values."""
    with _allow_untrusted_counts(context):
        return _status(context)


def _status(context: RequestContext) -> dict[str, Any]:
    now = context.clock.now()
    head = context.store.head(context.tenant)
    facts = context.store.facts(context.tenant, now, scopes=VisibleReader(context).overseen_scopes)
    created = [item.created_at for item in proposals(context)]
    oldest = min(created, default=None)
    if not VisibleReader(context).oversees_all:
        facts |= {"quarantine": len(created), "quarantine_oldest": oldest and oldest.isoformat()}
    by_tier = facts.get("by_tier", {})
    recipes = facts.pop("vectors_by_recipe")
    model = known_embedder_id(context.embedder)
    if model is not None:
        current = sum(recipes.get(model, {}).get(version, 0) for version in CURRENT_VERSIONS)
        facts["vectors_pending"] += sum(facts["vectors_by_embedder"].values()) - current
    jobs = {
        job.name: {
            "last_at": job.last_at and job.last_at.isoformat(),
            "last_outcome": job.last_outcome,
            "due_at": job.due_at and job.due_at.isoformat(),
            "due": job.due,
        }
        for job in job_states(context)
    }
    return {
        "path": context.engine.path,
        "tenant": context.tenant,
        "scope": main_scope(context.scope),
        "branch": branch_of(context.scope),
        "actor": context.actor.label,
        "head": head.name,
        "policy": context.policy.version,
        "enabled": context.policy.enabled,
        "capture": context.policy.capture,
        "recall": context.policy.recall,
        "embedder": "unavailable" if model is None and context.embedder else model,
        "counter": context.engine.counter.name,
        **facts,
        "candidates": "database" if uses_database_index(context.engine, context.tenant) else "process",
        "notes": [*context.store.notes(), *missing_files(context)],
        "capacity": {
            str(tier): {
                "live": by_tier.get(str(tier), 0),
                "max": limit,
                "utilisation": round(by_tier.get(str(tier), 0) / limit, 6) if limit else None,
            }
            for tier, limit in sorted(context.policy.capacity.items())
        },
        "quarantine": {
            "depth": len(created),
            "oldest_at": oldest.isoformat() if oldest else None,
            "oldest_age_seconds": int((now - oldest).total_seconds()) if oldest else None,
            "stuck": sum(now - at > STUCK_AFTER for at in created),
            "expired": expired_count(context),
        },
        # Drafts exist only in their author's process; only the queue can get stuck.
        "stuck_drafts": sum(now - at > STUCK_AFTER for at in created),
        "blocks": _blocks(context),
        "reranker": reranker_status(context),
        "verification": verification_status(context),
        "memory_tests": to_json(newest_run(context)),
        "backups": backup_status(context, facts["commits"]),
        "jobs": jobs,
    }


def _blocks(context: RequestContext) -> dict[str, dict[str, Any]]:
    active = {record.key: record for record in core_blocks(context).records}
    document = context.engine.identity()
    texts = {key: record.text for key, record in active.items() if key is not None}
    texts |= {CORE_BLOCKS[0]: document[1]} if document else {}
    return {
        name: {
            "tokens": context.engine.counter.count(texts[name]) if texts.get(name) else 0,
            "budget": context.policy.block_budget.get(name, 0),
            "id": active[name].id if name in active else None,
            "version": active[name].version if name in active else None,
        }
        for name in dict.fromkeys((*CORE_BLOCKS, *context.policy.core_keys))
    }


def doctor(context: RequestContext) -> list[Check]:
    """Check everything that stops a store from working well; ``verify`` proves that it is intact."""
    with _allow_untrusted_counts(context):
        return list(_checks(context, _status(context)))


def _checks(context: RequestContext, facts: dict[str, Any]) -> Iterator[Check]:
    policy, foreign, queue, reranker = context.policy, context.store.foreign, facts["quarantine"], facts["reranker"]

    def check(name: str, ok: bool, detail: str, remedy: str) -> Check:
        return Check(name=name, ok=ok, detail=detail, remedy=remedy)

    yield check("store", True, f"opens; schema {facts['schema']}, head {facts['head']}", "")
    yield check(
        "adopted",
        foreign is None,
        foreign or "this machine knows the store",
        "run `keepward adopt`, which shows what is in it first",
    )
    yield check(
        "writable",
        not facts["read_only"],
        "read-only" if facts["read_only"] else "can be written",
        "let this user write the file, its folder and the files next to it with its name, or its role the database",
    )
    yield check(
        "seal",
        facts["sealed"] and facts["anchor"] in {"kept", "memory"},
        "seals are not checked before the store is adopted"
        if foreign
        else f"rows are {'sealed' if facts['sealed'] else 'not sealed'}; anchor: {facts['anchor']}",
        "run `keepward adopt`"
        if foreign
        else "let this user read and write the configuration folder, where the sealing key is stored",
    )
    scopes = () if VisibleReader(context).sees_store else VisibleReader(context).scopes
    unreadable = context.store.unreadable_memories(
        context.tenant, Filter(scopes=scopes, include_sensitive=True), live_at=None, tiers=tuple(Tier)
    )
    yield check(
        "records",
        not unreadable,
        f"memories that cannot be shown: {len(unreadable)}"
        if unreadable
        else "no record is missing; only `keepward verify` checks each of them and the journal",
        "run `keepward verify`, then `keepward rebuild` if the journal is intact",
    )
    yield _verification_check(facts)
    yield _backup_check(context, facts)
    if VisibleReader(context).sees_store:
        yield _erasures_are_listed(context)
    yield check(
        "policy",
        policy.enabled and policy.capture and policy.recall,
        "memory is on" if policy.enabled else "memory is switched off",
        "set enabled, capture and recall in the settings",
    )
    yield _embedder_check(context, facts["embedder"] or "none")
    yield check(
        "vectors",
        not facts["vectors_pending"],
        _vector_note(facts, facts["vectors_pending"]),
        "run `keepward reindex`; a server or program that keeps the store open does it by itself",
    )
    if VisibleReader(context).sees_store:
        missing = blobs.count_missing(context.engine, context.tenant)
        yield check(
            "blobs",
            not missing,
            f"{facts['blobs']['count']} stored, {missing} of them without their file",
            "upload the same bytes again or restore a backup; `keepward verify` names them",
        )
    yield check(
        "review",
        not queue["stuck"],
        f"{queue['depth']} proposals are pending, {queue['stuck']} of them for more than {STUCK_AFTER.days} days; "
        f"{queue['expired']} expired undecided: `keepward pending --state expired`",
        "run `keepward pending`, then approve or reject",
    )
    if not has_re2():
        off = ", ".join(rules_off())
        yield check(
            "detection",
            not off,
            f"the package google-re2 is not installed; these rules find less or nothing: {off}",
            "install google-re2, or use a Python that it has a wheel for",
        )
    over = [name for name, block in facts["blocks"].items() if block["tokens"] > block["budget"]]
    yield check(
        "blocks",
        not over,
        f"over budget: {', '.join(over)}" if over else "every core block is within its budget",
        "shorten the block or the identity file, or raise its budget",
    )
    yield identity.check(context)
    if context.actor.is_owner:
        refused = tokens.scoped_owners(context)
        yield check(
            "tokens",
            not refused,
            f"owner's tokens with a scope, which are refused: {', '.join(token.name for token in refused)}"
            if refused
            else "no owner's token has a scope",
            "; ".join(f"run `keepward token revoke {token.id}`" for token in refused)
            + ", and make a token without a scope for who needs one"
            if refused
            else "",
        )
    yield check(
        "reranker",
        reranker["error"] is None,
        f"{'serves' if reranker['serving'] else 'does not serve'}: {reranker['why']}",
        "recall goes on without it; give feedback and run `keepward train`",
    )


def _verification_check(facts: dict[str, Any]) -> Check:
    """Report the newest verification, which is stored; nothing is verified now."""
    found = facts["verification"]
    covered = (
        f"{found['commits']} of {pluralize(facts['commits'], 'commit', 'commits')} verified, {format_time(found['at'])}"
    )
    if found["state"] == "damaged":
        faults = pluralize(found["faults"], "fault", "faults")
        covered = f"{faults} found since {format_time(found['damaged_since']) or 'the result was edited'}; {covered}"
    return Check(
        name="verification",
        ok=found["state"] != "damaged",
        detail=covered if found["state"] != "unverified" else "nothing is verified so far",
        remedy="run `keepward verify`, which names the faults; then restore a backup, or run `keepward store recover`",
    )


def _backup_check(context: RequestContext, facts: dict[str, Any]) -> Check:
    found = facts["backups"]
    file = f" in {found['path']}" if found["path"] else ""
    lost = (
        f"; {pluralize(found['missing'], 'newer backup is', 'newer backups are')} missing" if found["missing"] else ""
    )
    if found["at"]:
        detail = f"the newest has {found['commits']} of {pluralize(facts['commits'], 'commit', 'commits')}, made "
        detail += f"{format_time(found['at'])}{file}"
    elif found["state"] == "unknown":
        detail = "`keepward backup` does not copy this store: its database or its host has to"
    else:
        detail = "this machine made no backup of this store that still exists"
    return Check(
        name="backups",
        ok=True,
        warning=found["state"] == "due",
        detail=f"{detail}{lost}",
        remedy=f"run `keepward backup COPY.db`; a backup is due after {DUE_AFTER.days} days",
    )


def _embedder_check(context: RequestContext, name: str) -> Check:
    """Ask the embedder for the vectors of a query and of a document, and name their prefixes."""
    detail = f"{name}: recall by words{_MEANING.get(name.partition(':')[0], ' and meaning')}"
    remedy = "run `keepward model install` and leave `embedder` out of the settings, or choose another embedder"
    if name.startswith("hashed") and (missing := model_files.missing_package()):
        detail += f"; the model needs the package {missing}, which is not installed"
    try:
        if context.embedder is not None:
            query_vectors_of(context.embedder, ["check"])
            vectors_of(context.embedder, ["check"])
            embedder_id(context.embedder)
            prefixes = getattr(context.embedder, "prefixes", None)
            if prefixes is not None:
                query, document = (dumps(prefix, ensure_ascii=False) if prefix else "none" for prefix in prefixes)
                detail += f"; prefix of queries: {query}, of documents: {document}"
    except ModelUnavailable as exc:
        detail = f"recall by words alone, and new memories wait for a vector: {exc}"
        remedy = "start the server or correct `embedder` in the settings; then run `keepward reindex`"
        return Check(name="embedder", ok=False, detail=detail, remedy=remedy)
    return Check(name="embedder", ok=context.embedder is not None, detail=detail, remedy=remedy)


def _erasures_are_listed(context: RequestContext) -> Check:
    """Check that every erasure of the tenant is on this machine's list."""
    made, file = context.store.erasing(context.tenant), context.engine.erasures
    unread, listed = "", set()
    try:
        listed = {entry.get("commit") for entry in (file.entries() if file else ())}
    except OSError as exc:
        unread = f"this machine's list cannot be read ({exc.strerror}): give this user the right to it; "
    missing = set(made) - listed
    return Check(
        name="erasures",
        ok=not missing and not unread,
        detail=f"{unread}{len(made)} made; not on this machine's list: {len(missing)}",
        remedy="a restored backup may contain what was erased; import the list with `keepward key import`, or "
        "rebuild it from the journal with `keepward adopt`",
    )


def _vector_note(facts: dict[str, Any], pending: int) -> str:
    """Return a sentence on the memories without a vector, and on the vectors that they have until then."""
    by_embedder = facts["vectors_by_embedder"]
    others = {name: count for name, count in by_embedder.items() if name != facts["embedder"]}
    outdated = pending - sum(others.values()) - (facts["live"] - sum(by_embedder.values()))
    text = f"{pluralize(pending, 'memory waits', 'memories wait')} for a vector"
    if pending and others:
        had = ", ".join(f"{count} of {name}" for name, count in others.items())
        text += f"; the embedder has changed: there are vectors {had}"
    if outdated > 0:
        text += f"; {outdated} of them are ranked by what an earlier release computed until then"
    return text
