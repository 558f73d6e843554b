"""The registry: every job, what it does, and what its receipts count.

An audit changes nothing; the receipt of its run names faults by table and key, never by content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from keepward.core.commit import Reason
from keepward.core.journal import Fault
from keepward.core.memory import CORE_BLOCKS, Tier
from keepward.core.principals import branch_of
from keepward.core.proposal import Quarantined
from keepward.core.query import Feedback, Filter
from keepward.errors import Conflict, KeepwardError, NotFound
from keepward.jobs import planners
from keepward.jobs.pacing import Pace
from keepward.jobs.planners import JobContext, ProposedBatch
from keepward.services.reading.learned_order import active_reranker, train_reranker, unseen_feedback
from keepward.services.reading.reindex import lacks_embedding, reindex, sync_database_index
from keepward.services.reading.verification import heads_to_verify, store_verification
from keepward.services.request_context import RequestContext
from keepward.services.review import decisions
from keepward.services.review.feedback import learn_importance
from keepward.services.writing import blobs
from keepward.services.writing.freshness import check_sources
from keepward.services.writing.write import propose
from keepward.storage.sql import prefix_range

#: Most faults of an audit that a receipt names; the count includes all.
MAX_FAULTS = 50
#: Memories embedded between two writes: few, so that a run can stop soon.
_EMBEDDING_BATCH = 16
#: Receipts that are compacted in one transaction.
_RECEIPT_BATCH = 200
#: Fields that a replay does not need: of the receipt of a context, and of each memory in it.
_DROPPED_RECEIPT_FIELDS = frozenset({"excluded", "unlisted", "signals", "tokens_by_tier"})
_DROPPED_ITEM_FIELDS = frozenset({"kind", "tokens", "score", "parts"})


@dataclass(slots=True)
class RunCounts:
    """The results of a run so far."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: tuple[Reason, ...] = ()
    commits: tuple[str, ...] = ()
    proposals: tuple[str, ...] = ()
    #: Why there was nothing to do, in one sentence; None if it ran.
    skipped: str | None = None


#: Gets a function that renews the lease, to be called between parts of the work; it may raise.
JobFunction = Callable[[RequestContext, RunCounts, Callable[[], None]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One maintenance task. It plans changes that the run proposes, or does its work itself."""

    name: str
    #: What it does, in one sentence.
    does: str
    #: Counts that its receipts always have, even if 0.
    counts: tuple[str, ...]
    plan: Callable[[JobContext], Iterable[ProposedBatch]] | None = None
    do: JobFunction | None = None
    #: False for a job that only reads.
    writes: bool = True


def _embed(context: RequestContext, tally: RunCounts, keep_lease: Callable[[], None]) -> None:
    if lacks_embedding(context):
        tally.counts["embedded"] += reindex(context, batch=_EMBEDDING_BATCH, before_batch=keep_lease)
    else:
        sync_database_index(context.engine, context.tenant, keep_lease)


def _check_sources(context: RequestContext, tally: RunCounts, keep_lease: Callable[[], None]) -> None:
    found = check_sources(context, before_part=keep_lease)
    tally.counts.update(checked=found.checked, marked=len(found.marked), cleared=len(found.cleared))
    for change, reason in planners.stale_proposals(context.store, context.tenant, found, context.actor):
        keep_lease()
        quarantine = (Reason(gate="sources", code="source_changed", detail=f"{reason}: a person decides"),)
        with suppress(NotFound, Conflict):
            outcome = propose(context, [change], reason=reason, kind="job", quarantine_reasons=quarantine)
            if isinstance(outcome, Quarantined):
                tally.proposals += (outcome.item.id,)
                tally.counts["proposed"] += 1


def _learn(context: RequestContext, tally: RunCounts, keep_lease: Callable[[], None]) -> None:
    uses, commits = learn_importance(context, keep_lease)
    tally.counts.update(reinforced=len(uses), uses=sum(uses.values()))
    tally.commits += commits


def _train(context: RequestContext, tally: RunCounts, _: Callable[[], None]) -> None:
    active = active_reranker(context)
    if active.fault is None and not unseen_feedback(context, active):
        tally.skipped = "there is no feedback that was not learned from"
        return
    found = train_reranker(context)
    tally.counts["feedback"] += found.feedback
    tally.reasons += () if found.receipt is None else found.receipt.reasons


def _sweep(context: RequestContext, tally: RunCounts, keep_lease: Callable[[], None]) -> None:
    dropped = decisions.drop_old_contents(context, keep_lease)
    tally.counts.update(blobs.sweep(context.engine, context.tenant, keep_lease), proposals=dropped)


def _compact_receipts(context: RequestContext, tally: RunCounts, keep_lease: Callable[[], None]) -> None:
    """Reduce receipts of contexts that are older than policy says to what a replay needs.

    A receipt with feedback stays as it is: the reranker is trained on its scores.
    """
    now = context.clock.now()
    until, after = now - context.policy.compact_receipts_after, ""
    while True:
        keep_lease()
        with context.store.write() as writer:
            # Read in the writing transaction: otherwise an erasure in between would be undone.
            page = writer.compactable_receipts(context.tenant, until, after=after, limit=_RECEIPT_BATCH)
            # The id of a feedback begins with that of its receipt.
            ends = {"low": page[0]["id"], "high": prefix_range(page[-1]["id"])["high"]} if page else {}
            given = writer.documents(Feedback, context.tenant).list(**ends) if page else ()
            with_feedback = {feedback.receipt for feedback in given}
            compacted = {
                receipt["id"]: _compact_receipt(receipt, now.isoformat())
                for receipt in page
                if receipt["kind"] == "compile" and receipt["id"] not in with_feedback
            }
            writer.rewrite_receipts(context.tenant, compacted)
            tally.counts["receipts"] += len(compacted)
        if not page:
            return
        after = page[-1]["id"]


def _compact_receipt(receipt: Mapping[str, Any], at: str) -> dict[str, Any]:
    sections = [
        {
            **section,
            "items": [
                {name: value for name, value in item.items() if name not in _DROPPED_ITEM_FIELDS}
                for item in section["items"]
            ],
        }
        for section in receipt["sections"]
    ]
    rest = {name: value for name, value in receipt.items() if name not in _DROPPED_RECEIPT_FIELDS}
    return {**rest, "sections": sections, "compacted_at": at}


def _audit(context: RequestContext, tally: RunCounts, _: Callable[[], None]) -> None:
    heads = heads_to_verify(context, context.tenant)
    checked, store_faults = context.store.verify(context.tenant, on_progress=Pace())
    files, blob_faults = blobs.check(context.engine, context.tenant)
    store_verification(context, heads, [*store_faults, *blob_faults], everywhere=False)
    try:
        blocks, block_faults = _count_core_blocks(context)
    except KeepwardError as exc:
        blocks, block_faults = 0, [Fault(check="blocks", row="records", detail=str(exc))]
    faults = [*store_faults, *blob_faults, *block_faults]
    tally.counts.update(checked=sum(checked.values()) + files + blocks, faults=len(faults))
    for fault in faults[:MAX_FAULTS]:
        tally.reasons += (Reason(gate="audit", code=fault.check, detail=f"{fault.row}: {fault.detail}"),)


def _count_core_blocks(context: RequestContext) -> tuple[int, list[Fault]]:
    """Return the number of core blocks in all scopes, and a fault for each that is over its budget."""
    core = Filter(scopes=(), tiers=(Tier.CORE.value,), include_sensitive=True)
    records = context.store.find(context.tenant, core, live_at=context.clock.now(), limit=None).records
    texts = [
        (record.key or "", f"records {context.tenant}/{record.id}", record.text)
        for record in records
        if branch_of(record.scope) is None
    ]
    identity = context.engine.identity()
    if identity is not None:
        texts.append((CORE_BLOCKS[0], "identity document", identity[1]))
    over = []
    for key, row, text in sorted(texts):
        tokens, budget = context.engine.counter.count(text), context.policy.block_budget.get(key, 0)
        if tokens > budget:
            over.append(Fault(check="blocks", row=row, detail=f"it has {tokens} tokens of {budget}: shorten it"))
    return len(texts), over


#: Every job, in the order in which due jobs run.
JOBS = (
    Job(
        name="expire",
        does="Marks memories past their TTL as expired, which frees their keys and their room.",
        counts=("expired",),
        plan=planners.expire,
    ),
    Job(
        name="compact_working",
        does="Expires working memory past its TTL and summarises the oldest notes of long sessions.",
        counts=("expired", "archived", "summaries"),
        plan=planners.compact,
    ),
    Job(
        name="summarize_episodic",
        does="Summarises the oldest events of each session that has enough, extracts events of other days, "
        "and archives summaries whose events have ended.",
        counts=("archived", "summaries", "events"),
        plan=planners.summarize,
    ),
    Job(
        name="consolidate",
        does="Merges memories that state the same, and summarises old volatile ones.",
        counts=("archived", "merged", "summaries"),
        plan=planners.consolidate,
    ),
    Job(
        name="decay_archival",
        does="Archives memories whose confidence has decayed and that were not used.",
        counts=("archived",),
        plan=planners.decay,
    ),
    Job(
        name="prune",
        does="Expires memories, makes room in full tiers, archives facts that were long unused, as policy says, "
        "and asks whether such memories of the owner are needed.",
        counts=("expired", "archived"),
        plan=planners.prune,
    ),
    Job(
        name="check_sources",
        does="Compares memories with the files, git objects and memories that they cite, flags what is stale, "
        "and proposes a revision or a retirement.",
        counts=("checked", "marked", "cleared"),
        do=_check_sources,
    ),
    Job(
        name="learn_importance",
        does="Turns the uses counted since the last run into importance.",
        counts=("reinforced", "uses"),
        do=_learn,
    ),
    Job(
        name="train_reranker",
        does="Trains the reranker from new feedback; it serves only if it proves better.",
        counts=("feedback",),
        do=_train,
    ),
    Job(
        name="sweep_blobs",
        does="Deletes blobs without a reference for a day, files that interrupted writes left behind, "
        "and the content of proposals that were decided long ago.",
        counts=("blobs", "bytes", "strays", "proposals"),
        do=_sweep,
    ),
    Job(
        name="compact_receipts",
        does="Reduces old receipts of contexts to what a replay needs.",
        counts=("receipts",),
        do=_compact_receipts,
    ),
    Job(
        name="integrity_audit",
        does="Verifies the journal and all that is computed from it, and that every core block is within its budget.",
        counts=("checked", "faults"),
        do=_audit,
        writes=False,
    ),
    Job(
        name="embed",
        does="Computes missing vectors with the present embedder; due at once if some are missing.",
        counts=("embedded",),
        do=_embed,
    ),
)
