"""The catalogue: every job there is, in the order in which jobs that are due run.

Invariants
(1) The names are those of ``model.job.SCHEDULES``, in its order.
(2) A job either plans, and the runner carries the plan out, or does what an engine of its own does.
(3) An audit changes nothing; what it finds stands in the run's receipt by table and key, never by content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from keepward.engine import blobs, review
from keepward.engine.index import reindex, take_in, unembedded
from keepward.engine.learned import standing, unseen
from keepward.engine.session import Session
from keepward.engine.training import train_reranker
from keepward.engine.use import learn_importance
from keepward.errors import KeepwardError
from keepward.jobs.consolidate import consolidate
from keepward.jobs.plan import Plan, Planning, Tally, decay, expire, prune
from keepward.jobs.summaries import compact, summarize
from keepward.model.commit import Reason
from keepward.model.journal import Fault
from keepward.model.memory import CORE_BLOCKS, Tier
from keepward.model.query import Filter

#: Faults told one by one; the count tells of all.
FAULTS = 50
#: Memories embedded between two writes: few, so that a run that is asked to stop does so soon.
EMBEDDED = 16

#: Given what keeps the lease, to be called between parts of the work; it may raise.
Do = Callable[[Session, Tally, Callable[[], None]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One maintenance task."""

    name: str
    #: What it does, in one sentence.
    does: str
    #: What its receipts always count, also when it is none.
    counts: tuple[str, ...]
    plan: Callable[[Planning], Plan] | None = None
    do: Do | None = None
    #: Off for one that looks and changes no memory.
    writes: bool = True


def _embed(session: Session, tally: Tally, keep_lease: Callable[[], None]) -> None:
    if unembedded(session.engine, session.tenant):
        tally.counts["embedded"] += reindex(session, batch=EMBEDDED, before_batch=keep_lease)
    else:
        take_in(session.engine, session.tenant, keep_lease)


def _reinforce(session: Session, tally: Tally, _: Callable[[], None]) -> None:
    found = learn_importance(session)
    tally.counts.update(reinforced=len(found.records), uses=found.uses)
    tally.commits += (found.commit.id,) if found.commit else ()


def _train(session: Session, tally: Tally, _: Callable[[], None]) -> None:
    if not unseen(session.store, session.tenant, standing(session.store, session.tenant)):
        tally.skipped = "there is no feedback that was not learned from"
        return
    found = train_reranker(session)
    tally.counts["feedback"] += found.feedback
    tally.reasons += () if found.receipt is None else found.receipt.reasons
    tally.commits += (found.commit.id,) if found.commit else ()


def _sweep(session: Session, tally: Tally, _: Callable[[], None]) -> None:
    dropped = review.drop_bodies(session)
    found = blobs.sweep(session.engine, session.tenant)
    tally.counts.update(blobs=found.blobs, bytes=found.bytes, strays=found.strays, proposals=dropped)


def _audit(session: Session, tally: Tally, _: Callable[[], None]) -> None:
    checked, found = session.store.verify(session.tenant)
    files, lost = blobs.check(session.engine, session.tenant)
    try:
        blocks, over = _blocks(session)
    except KeepwardError as fault:
        blocks, over = 0, [Fault(check="blocks", row="records", detail=str(fault))]
    faults = [*found, *lost, *over]
    tally.counts.update(checked=sum(checked.values()) + files + blocks, faults=len(faults))
    for each in faults[:FAULTS]:
        # The keys of aliases are names that people chose.
        row = each.check if each.check == "aliases" else each.row
        tally.reasons += (Reason(gate="audit", code=each.check, detail=f"{row}: {each.detail}"),)


def _blocks(session: Session) -> tuple[int, list[Fault]]:
    """Return how many core blocks there are, of all scopes, and those over their budget."""
    core = Filter(scopes=(), tiers=(Tier.CORE.value,), include_sensitive=True)
    records = session.store.find(session.tenant, core, live_at=session.clock.now(), limit=None).records
    texts = [(record.key or "", f"records {session.tenant}/{record.id}", record.text) for record in records]
    identity = session.engine.identity()
    if identity is not None:
        texts.append((CORE_BLOCKS[0], "identity document", identity[1]))
    over = []
    for key, row, text in sorted(texts):
        tokens, budget = session.engine.counter.count(text), session.policy.block_budget.get(key, 0)
        if tokens > budget:
            over.append(Fault(check="blocks", row=row, detail=f"it holds {tokens} tokens of {budget}: shorten it"))
    return len(texts), over


CATALOGUE = (
    Job(
        name="expire",
        does="Notes what is past its term as expired, so that it frees its key and its place.",
        counts=("expired",),
        plan=expire,
    ),
    Job(
        name="compact_working",
        does="Expires working memory past its term and sums up the oldest notes of long threads.",
        counts=("expired", "archived", "summaries"),
        plan=compact,
    ),
    Job(
        name="summarize_episodic",
        does="Sums up the oldest events of each session that has enough, and keeps what happened on a day of its own.",
        counts=("archived", "summaries", "events"),
        plan=summarize,
    ),
    Job(
        name="consolidate",
        does="Makes one of memories that state the same, and merges old passing ones.",
        counts=("archived", "merged", "summaries"),
        plan=consolidate,
    ),
    Job(
        name="decay_archival",
        does="Puts away what has faded in the archive and was of no use.",
        counts=("archived",),
        plan=decay,
    ),
    Job(
        name="prune",
        does="Expires, makes room in full tiers, and asks about faded memories that only the owner can let go.",
        counts=("expired", "archived"),
        plan=prune,
    ),
    Job(
        name="reinforce",
        does="Turns the uses counted since the last time into importance.",
        counts=("reinforced", "uses"),
        do=_reinforce,
    ),
    Job(
        name="train_reranker",
        does="Trains the reranker from new feedback; it serves only where it proves better.",
        counts=("feedback",),
        do=_train,
    ),
    Job(
        name="sweep_blobs",
        does="Removes blobs that nothing has referred to for a day, what interrupted writes left of others, and the "
        "bodies of proposals that were decided long ago.",
        counts=("blobs", "bytes", "strays", "proposals"),
        do=_sweep,
    ),
    Job(
        name="integrity_audit",
        does="Verifies the journal and all that is computed from it, and that every core block is in its budget.",
        counts=("checked", "faults"),
        do=_audit,
        writes=False,
    ),
    Job(
        name="embed",
        does="Computes vectors for memories that have none of the embedder in use; due at once where some are missing.",
        counts=("embedded",),
        do=_embed,
    ),
)
