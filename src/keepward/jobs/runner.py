"""The runner: when each job is due, and one run of a job from its lease to its receipt.

Of two runs of a job of a tenant, in any processes, one gets the lease and the other is skipped. A lease ends at its
time; a lost lease stops the run before its next proposal.
Every run has a receipt, whether it was done, failed or skipped; only if policy switched memory off nothing is written.
An exception of a planner makes a failed run and stops no other job.
A batch that conflicts with a change made meanwhile is left for the next run; the other batches go on.
A job that would archive more than policy's share of the active memories archives none: it makes one proposal instead
that a person decides.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from heapq import nsmallest

from msgspec.structs import replace

from keepward.core.commit import Reason
from keepward.core.job import (
    DUE,
    LEASE_DURATION,
    SCHEDULES,
    Alike,
    JobRow,
    JobState,
    Run,
    RunOutcome,
    due_at,
    parse_schedule,
)
from keepward.core.memory import Kind, Record, Status
from keepward.core.principals import Actor, ActorKind, Role
from keepward.core.proposal import Committed, Duplicate, Outcome, Proposal, Quarantined, Refused
from keepward.core.query import EVERYTHING
from keepward.core.value import to_micros, unknown_name_message
from keepward.errors import Conflict, KeepwardError, NotFound, Unauthorised
from keepward.jobs.planners import CHANGES_PER_COMMIT, JobContext, ProposedBatch, SimilarPairs
from keepward.jobs.registry import JOBS, Job, RunCounts
from keepward.services.reading.reindex import lacks_embedding
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext
from keepward.services.search.features import known_embedder_id
from keepward.services.transaction import receipt_of
from keepward.services.writing.write import propose, propose_each

logger = logging.getLogger(__name__)

#: Most changes of one proposal to a person.
MAX_ASKED = CHANGES_PER_COMMIT
#: Most reasons of quarantined or refused changes in a receipt, so that it stays readable.
_MAX_REASONS = 20


def job_states(context: RequestContext) -> list[JobState]:
    """Return the state of every job of the tenant, in the order in which they run."""
    now = context.clock.now()
    rows = {row.job: row for row in context.store.documents(JobRow, context.tenant).list()}
    empty = JobRow(tenant=context.tenant, job="")
    return [_job_state(context, job, rows.get(job.name, empty), now) for job in JOBS]


def list_jobs(context: RequestContext) -> list[JobState]:
    """Return every job with its schedule and its last run, for a handle that may read."""
    if not context.actor.has_right("read"):
        raise Unauthorised("this token may not read; ask the owner for one that may")
    return job_states(context)


def _job_state(context: RequestContext, job: Job, row: JobRow, now: datetime) -> JobState:
    schedule = parse_schedule(context.policy.jobs.get(job.name, SCHEDULES[job.name]))
    at = due_at(schedule, row, now)
    if at is not None and at > now and job.name == "embed" and row.outcome != "failed" and lacks_embedding(context):
        # A failed run is repeated after a while: a server of embeddings may be down.
        at = now
    return JobState(
        name=job.name,
        does=job.does,
        schedule="off" if schedule is None else str(schedule),
        due=at is not None and at <= now,
        due_at=at,
        last_at=row.last_at,
        last_outcome=row.outcome,
        last_receipt=row.receipt,
        running_until=row.until if row.is_leased_at(now) else None,
    )


def run_jobs(context: RequestContext, name: str, *, force: bool = False) -> list[Run]:
    """Run one job, or all due jobs for the name ``DUE``, one after the other; return the runs.

    Raises:
        NotFound: there is no such job.
    """
    names = [state.name for state in job_states(context) if state.due] if name == DUE else [name]
    return [run_job(context, job, force=force) for job in names]


class JobStopped(BaseException):
    """A run stopped on request before its next proposal or batch; it is no failure, and the job stays due."""


def run_job(
    context: RequestContext, name: str, *, force: bool = False, should_stop: Callable[[], bool] = lambda: False
) -> Run:
    """Run one job if it is due, or in any case with ``force``; ``should_stop`` asks it to stop.

    Raises:
        NotFound: there is no such job.
        StoreUnavailable: the store cannot be written, so there is no receipt.
        JobStopped: it was asked to stop.
    """
    job = next((job for job in JOBS if job.name == name), None)
    if job is None:
        raise NotFound(unknown_name_message("job", name, [job.name for job in JOBS]))
    return _JobRun(context, job, should_stop).run(force=force)


class _JobRun:
    """One run."""

    def __init__(self, caller: RequestContext, job: Job, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        actor = Actor(kind=ActorKind.JOB, name=job.name, rights=Role.AGENT)
        self._job, self._caller = job, caller
        self._context = dataclasses.replace(caller, scope="/", actor=actor, via=(caller.actor, *caller.via))
        self._began = self._until = caller.clock.now()
        self._holder = caller.ids.new_id(self._began)
        self._tally = RunCounts()

    def run(self, *, force: bool) -> Run:
        """Acquire the lease, do the work, and write a receipt."""
        policy = self._context.policy
        if not policy.enabled:
            return self._finish("skipped", "memory is switched off by policy; nothing was written", save=False)
        if self._job.writes and not policy.capture:
            return self._finish("skipped", "policy switched writing off: set capture to go on")
        refusal = self._acquire_lease(force=force)
        if refusal is not None:
            return self._finish("skipped", refusal, row=False)
        try:
            if self._job.do is not None:
                self._job.do(self._context, self._tally, self.keep_lease)
            else:
                self._execute()
        except Exception as exc:
            logger.exception("job failed", extra={"action": "job_failed", "job": self._job.name})
            # Messages of our own errors contain no memory text; others might.
            why = f"{exc.code}: {exc}" if isinstance(exc, KeepwardError) else f"unexpected {type(exc).__name__}"
            return self._finish("failed", why)
        except BaseException:
            self._set_lease(None)
            raise
        if self._tally.skipped is not None:
            return self._finish("skipped", self._tally.skipped)
        counts = [f"{name} {count}" for name, count in self._counts().items() if count]
        return self._finish("run", ", ".join(counts) or "there was nothing to do")

    def _acquire_lease(self, *, force: bool) -> str | None:
        """Acquire the lease; return None, or why it is not available."""
        with self._context.store.write() as writer:
            self._context.engine.uses.write(writer, self._context.tenant)
            row = writer.job_row(self._context.tenant, self._job.name)
            # From here on the run is alone: any run before it has ended.
            now = self._began = self._context.clock.now()
            if row.is_leased_at(now):
                return f"another run holds the lease until {row.until:%Y-%m-%d %H:%M:%S} UTC"
            state = _job_state(self._context.for_transaction(writer), self._job, row, now)
            if not force and not state.due:
                when = f"not due before {state.due_at:%Y-%m-%d %H:%M} UTC" if state.due_at else "off by policy"
                return f"{when}; force runs it now"
            self._until = now + LEASE_DURATION
            writer.put(replace(row, holder=self._holder, until=self._until))
        return None

    def keep_lease(self) -> None:
        """Renew the lease after half of its duration.

        Raises:
            Conflict: the lease was lost.
            JobStopped: the run was asked to stop.
        """
        if self._should_stop():
            raise JobStopped
        now = self._context.clock.now()
        if now + LEASE_DURATION / 2 < self._until:
            return
        self._until = now + LEASE_DURATION
        if not self._set_lease(self._until):
            raise Conflict("another run took the lease over; what was committed stays")

    def _set_lease(self, until: datetime | None) -> bool:
        """Set when the lease of this run ends, None for now; return False if another run took it over."""
        with self._context.store.write() as writer:
            row = writer.job_row(self._context.tenant, self._job.name)
            if row.holder == self._holder:
                writer.put(replace(row, holder=self._holder if until else "", until=until))
            return row.holder == self._holder

    def _execute(self) -> None:
        """Plan the job, and propose the planned batches."""
        assert self._job.plan is not None
        engine, tenant, now = self._context.engine, self._context.tenant, self._context.clock.now()
        # What this job has proposed before: it waits for a decision, or was rejected.
        queue = [
            item
            for state in ("pending", "rejected")
            for item in engine.store.documents(Proposal, tenant).list(state=state, actor=self._context.actor)
            if item.state == "rejected" or item.expires_at > now
        ]
        batches = list(self._job.plan(_job_context(self._context, self._job.name, queue)))
        self._add_reasons([note for batch in batches for note in batch.notes])
        removes = sum(batch.removes for batch in batches)
        pending = sum(1 for item in queue if item.state == "pending" for step in item.steps if step.op == "archive")
        live = replace(EVERYTHING, statuses=(Status.ACTIVE.value,))
        active = engine.store.count_listed(tenant, live, to_micros(engine.clock.now())) if removes else 0
        too_many = removes > 0 and removes + pending > engine.policy.removal_share * active
        for batch in batches:
            # A batch without changes only has notes.
            if batch.changes and not (too_many and batch.removes):
                self.keep_lease()
                self._propose(batch)
        if too_many:
            self.keep_lease()
            self._propose_for_review(
                [batch for batch in batches if batch.removes], f"{removes + pending} of {active} active memories"
            )

    def _propose(self, batch: ProposedBatch) -> None:
        context, changes = self._context, batch.changes
        try:
            if batch.atomic:
                outcome = propose(context, changes, reason=batch.reason, conversation=batch.session, kind="job")
                self._count(outcome, len(changes))
                if batch.heir is not None and isinstance(outcome, Committed):
                    archived = [record.id for record in outcome.records if record.status is Status.ARCHIVED]
                    used = context.store.usage(context.tenant, archived)
                    for count, last in used.values():
                        context.engine.uses.count(context.tenant, [batch.heir] * count, last)
                return
            outcomes = propose_each(context, changes, reason=batch.reason, conversation=batch.session, kind="job")
            for outcome in outcomes:
                self._count(outcome, 1)
        except (NotFound, Conflict):
            if batch.atomic or len(changes) == 1:
                self._tally.counts["moved"] += 1
                return
            # One change conflicts with a change made meanwhile; propose each by itself.
            for change in changes:
                self._propose(dataclasses.replace(batch, changes=(change,)))

    def _propose_for_review(self, batches: Sequence[ProposedBatch], many: str) -> None:
        """Propose changes that would archive too much as one quarantined proposal."""
        changes = [change for batch in batches for change in batch.changes]
        share = f"{self._context.policy.removal_share:.0%}"
        detail = f"it would archive {many}, more than the share of {share} that policy lets a job archive in one run"
        if len(changes) > MAX_ASKED:
            detail += f"; these are the first {MAX_ASKED}"
        quarantine = (Reason(gate="jobs", code="removal_share", detail=f"{detail}: a person decides"),)
        why = "; ".join(dict.fromkeys(batch.reason for batch in batches))
        part = changes[:MAX_ASKED]
        outcome = propose(self._context, part, reason=why, kind="job", quarantine_reasons=quarantine)
        self._count(outcome, len(part))

    def _count(self, outcome: Outcome, changes: int) -> None:
        """Count the outcome of a proposal with so many changes."""
        tally = self._tally
        match outcome:
            case Committed():
                if outcome.commit.id not in tally.commits:
                    tally.commits += (outcome.commit.id,)
                tally.counts.update(_count_name(record) for record in outcome.records)
            case Quarantined():
                tally.proposals += (outcome.item.id,)
                tally.counts["held"] += changes
                self._add_reasons(outcome.reasons)
            case Refused():
                tally.counts["refused"] += changes
                self._add_reasons(outcome.reasons)
            case Duplicate():
                tally.counts["known"] += changes

    def _add_reasons(self, reasons: Sequence[Reason]) -> None:
        self._tally.reasons = tuple(dict.fromkeys((*self._tally.reasons, *reasons)))[:_MAX_REASONS]

    def _counts(self) -> dict[str, int]:
        return {**dict.fromkeys(self._job.counts, 0), **dict(sorted(self._tally.counts.items()))}

    def _finish(self, outcome: RunOutcome, why: str, *, save: bool = True, row: bool = True) -> Run:
        """End the lease and write the receipt, unless ``save`` is off; with ``row`` this becomes the job's last run."""
        now, tally, counts = self._context.clock.now(), self._tally, self._counts()
        try:
            head = self._context.store.head(self._context.tenant).name
        except KeepwardError:
            # The journal is damaged; an audit must be able to report that.
            head = "unknown"
        facts = {
            "job": self._job.name,
            "outcome": outcome,
            "why": why,
            "counts": counts,
            "commits": list(tally.commits),
            "proposals": list(tally.proposals),
            "started_at": self._began.isoformat(),
            "asked_by": self._caller.actor.label,
            **self._context.credential,
        }
        receipt = receipt_of(self._context, "job", facts, tally.reasons, at=now, head=head)
        if save:
            with self._context.store.write() as writer:
                writer.put_receipt(receipt)
                stored = writer.job_row(self._context.tenant, self._job.name)
                # If another run took over, its row is newer.
                taken = stored.holder not in {"", self._holder} and stored.is_leased_at(now)
                if row and not taken:
                    writer.put(
                        replace(stored, holder="", until=None, last_at=self._began, outcome=outcome, receipt=receipt.id)
                    )
        return Run(
            job=self._job.name,
            outcome=outcome,
            why=why,
            counts=counts,
            reasons=receipt.reasons,
            commits=tally.commits,
            proposals=tally.proposals,
            started_at=self._began,
            ended_at=now,
            receipt=receipt,
        )


def _count_name(record: Record) -> str:
    """Return the name under which a record of a commit is counted."""
    if record.status in {Status.ARCHIVED, Status.EXPIRED}:
        return record.status.value
    if record.version == 1:
        return "events" if record.kind is Kind.EVENT else "summaries"
    return "merged"


def _job_context(context: RequestContext, job: str, queue: Sequence[Proposal] = ()) -> JobContext:
    """Return the context of a planner, given the job's proposals in the review queue."""
    engine, now = context.engine, context.clock.now()
    return JobContext(
        reader=engine.store,
        tenant=context.tenant,
        now=now,
        policy=engine.policy,
        job=job,
        new_id=lambda: engine.ids.new_id(now),
        summarizer=engine.summarizer,
        model=known_embedder_id(engine.embedder),
        proposed={memory_id: version for item in queue for memory_id, version in item.base.items()},
        proposed_sources=frozenset(
            name for item in queue for step in item.steps if step.op == "insert" for name in step.after.derived_from
        ),
        pending=sum(1 for item in queue if item.state == "pending"),
    )


def candidates(context: RequestContext, *, floor: float, limit: int | None) -> list[Alike]:
    """Return the visible pairs that score ``floor`` or more, best first; see ``SimilarPairs``."""
    reader = VisibleReader(context)
    scopes = frozenset(reader.scopes)
    memories = (
        (record, features)
        for record, features in context.store.indexed(context.tenant)
        if record.scope in scopes and reader.can_read(record)
    )
    pairs = SimilarPairs(comparison(context), memories, floor=floor)
    if limit is None:
        found = sorted(pairs, key=lambda pair: pair.order)
    else:
        found = nsmallest(limit, pairs, key=lambda pair: pair.order)
    return [pair.alike() for pair in found]


def comparison(context: RequestContext) -> JobContext:
    """Return the context in which memories are compared, as by ``consolidate`` without its proposals."""
    return _job_context(context, "consolidate")
