"""The catalogue: every job there is, in the order in which jobs that are due run.

Invariants
(1) The names are those of ``model.job.SCHEDULES``, in its order.
(2) A job either plans, and the runner carries the plan out, or does what an engine of its own does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from keepward.engine.kit import Kit, Who
from keepward.jobs import audit, compact, consolidate, decay, embedding, expire, learning, prune, summarize, sweep
from keepward.jobs.desk import Desk, Done, Plan
from keepward.model.job import SCHEDULES
from keepward.model.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One maintenance task."""

    name: str
    #: What it does, in one sentence.
    does: str
    #: What its receipts always count, also when it is none.
    counts: tuple[str, ...]
    plan: Callable[[Desk], Plan] | None = None
    #: Given what keeps the lease, to be called between parts of the work; it may raise.
    do: Callable[[Kit, Who, Callable[[], None]], Done] | None = None
    #: Off for one that looks and changes no memory.
    writes: bool = True

    def schedule(self, policy: Policy) -> str:
        """Return when it runs, as ``model.job.parse_schedule`` reads it."""
        return policy.jobs.get(self.name, SCHEDULES[self.name])

    def told(self, counts: Mapping[str, int]) -> str:
        """Return what a run came to, as a sentence."""
        found = [f"{name} {count}" for name, count in counts.items() if count]
        return ", ".join(found) if found else "there was nothing to do"


CATALOGUE = (
    Job(
        name="expire",
        does="Notes what is past its term as expired, so that it frees its key and its place.",
        counts=("expired",),
        plan=expire.plan,
    ),
    Job(
        name="compact_working",
        does="Expires working memory past its term and sums up the oldest notes of long threads.",
        counts=("expired", "archived", "summaries"),
        plan=compact.plan,
    ),
    Job(
        name="summarize_episodic",
        does="Sums up the oldest events of each session that has enough, and keeps what happened on a day of its own.",
        counts=("archived", "summaries", "events"),
        plan=summarize.plan,
    ),
    Job(
        name="consolidate",
        does="Makes one of memories that state the same, and merges old passing ones.",
        counts=("archived", "merged", "summaries"),
        plan=consolidate.plan,
    ),
    Job(
        name="decay_archival",
        does="Puts away what has faded in the archive and was of no use.",
        counts=("archived",),
        plan=decay.plan,
    ),
    Job(
        name="prune",
        does="Expires, makes room in full tiers, and asks about faded memories that only the owner can let go.",
        counts=("expired", "archived"),
        plan=prune.plan,
    ),
    Job(
        name="reinforce",
        does="Turns the uses counted since the last time into importance.",
        counts=("reinforced", "uses"),
        do=learning.reinforce,
    ),
    Job(
        name="train_reranker",
        does="Trains the reranker from new feedback; it serves only where it proves better.",
        counts=("feedback",),
        do=learning.train,
    ),
    Job(
        name="sweep_blobs",
        does="Removes blobs that nothing has referred to for a day, what interrupted writes left of others, and the "
        "bodies of proposals that were decided long ago.",
        counts=("blobs", "bytes", "strays", "proposals"),
        do=sweep.sweep,
    ),
    Job(
        name="integrity_audit",
        does="Verifies the journal and all that is computed from it, and that every core block is in its budget.",
        counts=("checked", "faults"),
        do=audit.audit,
        writes=False,
    ),
    Job(
        name="embed",
        does="Computes vectors for memories that have none of the embedder in use; due at once where some are missing.",
        counts=("embedded",),
        do=embedding.embed,
    ),
)
