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
from keepward.engine.receipts import compact_receipts
from keepward.engine.reranker import read_reranker, train_reranker, unseen_feedback
from keepward.engine.session import Session
from keepward.engine.use import learn_importance
from keepward.errors import KeepwardError
from keepward.jobs.consolidate import consolidate
from keepward.jobs.plan import Plan, Planning, Tally, decay, expire, prune
from keepward.jobs.summaries import compact, summarize
from keepward.model.commit import Reason
from keepward.model.journal import Fault
from keepward.model.memory import CORE_BLOCKS, Tier
from keepward.model.patterns import table
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
    active = read_reranker(session.store, session.tenant, session.store.head(session.tenant).seq)
    if active.fault is None and not unseen_feedback(session, active):
        tally.skipped = "there is no feedback that was not learned from"
        return
    found = train_reranker(session)
    tally.counts["feedback"] += found.feedback
    tally.reasons += () if found.receipt is None else found.receipt.reasons
    tally.commits += (found.commit.id,) if found.commit else ()


def _sweep(session: Session, tally: Tally, _: Callable[[], None]) -> None:
    dropped = review.drop_bodies(session)
    tally.counts.update(blobs.sweep(session.engine, session.tenant), proposals=dropped)


def _compact_receipts(session: Session, tally: Tally, keep_lease: Callable[[], None]) -> None:
    tally.counts["receipts"] += compact_receipts(session, keep_lease)


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
        tally.reasons += (Reason(gate="audit", code=each.check, detail=f"{each.row}: {each.detail}"),)


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


_PLANS: dict[str, Callable[[Planning], Plan]] = {
    "expire": expire,
    "compact_working": compact,
    "summarize_episodic": summarize,
    "consolidate": consolidate,
    "decay_archival": decay,
    "prune": prune,
}
_DONE: dict[str, Do] = {
    "reinforce": _reinforce,
    "train_reranker": _train,
    "sweep_blobs": _sweep,
    "compact_receipts": _compact_receipts,
    "integrity_audit": _audit,
    "embed": _embed,
}
#: Those that look and change no memory.
_READERS = ("integrity_audit",)
CATALOGUE = tuple(
    Job(
        name=name,
        does=told["does"],
        counts=tuple(told["counts"]),
        plan=_PLANS.get(name),
        do=_DONE.get(name),
        writes=name not in _READERS,
    )
    for name, told in table(__package__, "catalogue.toml").items()
)
