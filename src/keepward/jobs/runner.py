"""The runner: when each job is due, and one run of a job, from its lease to its receipt.

Invariants
(1) Of two runs that want a job of a tenant, in whatever process, one gets the lease and the other is skipped. A
    lease ends by its time; one that is lost stops the run before its next proposal.
(2) Every run, failed run and skipped run has a receipt, except where policy switched memory off: then nothing at
    all is written.
(3) Whatever a planner raises becomes a failed run; it never keeps another job from running.
(4) An ask that meets a change made meanwhile is left for the next run; it takes no other ask with it.
(5) A job that would archive more than policy's share of the live memories archives none: what it would do becomes
    one proposal that waits for a person.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from datetime import datetime

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
from keepward.core.journal import Contradiction, Contradictions
from keepward.core.memory import Kind, Record, Status
from keepward.core.principals import Actor, ActorKind, Role
from keepward.core.proposal import Committed, Duplicate, Outcome, Proposal, Quarantined, Refused
from keepward.core.query import Filter, check_limit
from keepward.core.value import unknown_name_message
from keepward.errors import Conflict, InvalidInput, KeepwardError, NotFound
from keepward.jobs.planners import JobContext, ProposedBatch, similar_pairs
from keepward.jobs.registry import JOBS, Job, RunCounts
from keepward.services.index_cache import lacks_embedding
from keepward.services.read import find
from keepward.services.request_context import RequestContext
from keepward.services.transaction import receipt_of
from keepward.services.write import propose, propose_each

logger = logging.getLogger(__name__)

#: Most changes of one question to a person.
MAX_ASKED = 500
#: Reasons kept of what was held or refused, so that a receipt stays readable.
_MAX_REASONS = 20
#: Least score of a pair that may be a contradiction.
_CONTRADICTION_SCORE = 0.6


def job_states(session: RequestContext) -> list[JobState]:
    """Return how every job of the tenant stands, in the order in which they run."""
    now = session.clock.now()
    rows = {row.job: row for row in session.store.documents(JobRow, session.tenant).list()}
    empty = JobRow(tenant=session.tenant, job="")
    return [_job_state(session, job, rows.get(job.name, empty), now) for job in JOBS]


def _job_state(session: RequestContext, job: Job, row: JobRow, now: datetime) -> JobState:
    schedule = parse_schedule(session.policy.jobs.get(job.name, SCHEDULES[job.name]))
    at = due_at(schedule, row, now)
    if at is not None and at > now and job.name == "embed" and row.outcome != "failed" and lacks_embedding(session):
        # One that failed is tried again after a while: a server of embeddings may be down.
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


def _job_named(name: str) -> Job:
    job = next((each for each in JOBS if each.name == name), None)
    if job is None:
        raise NotFound(unknown_name_message("job", name, [each.name for each in JOBS]))
    return job


def run_jobs(session: RequestContext, name: str, *, force: bool = False) -> list[Run]:
    """Run one job, or every job that is due for the name ``DUE``, one after the other; return what became of each.

    Raises:
        NotFound: there is no such job.
    """
    names = [state.name for state in job_states(session) if state.due] if name == DUE else [name]
    return [run_job(session, each, force=force) for each in names]


class JobStopped(BaseException):
    """A run was asked to stop, and did before its next proposal or batch; it is as due as before. No failure."""


def run_job(
    session: RequestContext, name: str, *, force: bool = False, should_stop: Callable[[], bool] = lambda: False
) -> Run:
    """Run one job where it is due, or now where ``force`` says so; ``halted`` tells whether to stop.

    Raises:
        NotFound: there is no such job.
        StoreUnavailable: the store cannot be written, so that there could be no receipt.
        Halted: it was asked to stop.
    """
    return _JobRun(session, _job_named(name), should_stop).run(force=force)


class _JobRun:
    """One run."""

    def __init__(self, caller: RequestContext, job: Job, should_stop: Callable[[], bool]) -> None:
        self._halted = should_stop
        actor = Actor(kind=ActorKind.JOB, name=job.name, rights=Role.AGENT)
        self._job, self._caller = job, caller
        self._session = dataclasses.replace(caller, scope="/", actor=actor, via=(caller.actor, *caller.via))
        self._began = self._until = caller.clock.now()
        self._holder = caller.ids.new_id(self._began)
        self._tally = RunCounts()

    def run(self, *, force: bool) -> Run:
        """Take the lease, do the work, and leave a receipt."""
        policy = self._session.policy
        if not policy.enabled:
            return self._finish("skipped", "memory is switched off by policy; nothing was written", keep=False)
        if self._job.writes and not policy.capture:
            return self._finish("skipped", "policy switched writing off: set capture to go on")
        refusal = self._take(force=force)
        if refusal is not None:
            return self._finish("skipped", refusal, row=False)
        try:
            if self._job.do is not None:
                self._job.do(self._session, self._tally, self.keep_lease)
            else:
                self._execute()
        except Exception as exc:
            logger.exception("job failed", extra={"action": "job_failed", "job": self._job.name})
            # Our own messages hold no content, anybody else's might.
            why = f"{exc.code}: {exc}" if isinstance(exc, KeepwardError) else f"unexpected {type(exc).__name__}"
            return self._finish("failed", why)
        except BaseException:
            self._set_lease(None)
            raise
        if self._tally.skipped is not None:
            return self._finish("skipped", self._tally.skipped)
        found = [f"{name} {count}" for name, count in self._counts().items() if count]
        return self._finish("run", ", ".join(found) or "there was nothing to do")

    def _take(self, *, force: bool) -> str | None:
        """Take the lease; return None, or why there is none to take."""
        with self._session.store.write() as writer:
            self._session.engine.write_uses(writer)
            row = writer.job_row(self._session.tenant, self._job.name)
            # Only now this run is alone: whoever was before it ended before this instant.
            now = self._began = self._session.clock.now()
            if row.is_leased_at(now):
                return f"another run holds the lease until {row.until:%Y-%m-%d %H:%M:%S} UTC"
            state = _job_state(self._session.for_transaction(writer), self._job, row, now)
            if not force and not state.due:
                when = f"not due before {state.due_at:%Y-%m-%d %H:%M} UTC" if state.due_at else "off by policy"
                return f"{when}; force runs it now"
            self._until = now + LEASE_DURATION
            writer.put(replace(row, holder=self._holder, until=self._until))
        return None

    def keep_lease(self) -> None:
        """Renew the lease once half of it is over.

        Raises:
            Conflict: it was lost.
            Halted: the run was asked to stop.
        """
        if self._halted():
            raise JobStopped
        now = self._session.clock.now()
        if now + LEASE_DURATION / 2 < self._until:
            return
        self._until = now + LEASE_DURATION
        if not self._set_lease(self._until):
            raise Conflict("another run took the lease over; what was committed stands")

    def _set_lease(self, until: datetime | None) -> bool:
        """Let the lease of this run end then, or at once; return False where another run took it over."""
        with self._session.store.write() as writer:
            row = writer.job_row(self._session.tenant, self._job.name)
            if row.holder == self._holder:
                writer.put(replace(row, holder=self._holder if until else "", until=until))
            return row.holder == self._holder

    def _execute(self) -> None:
        """Plan, and propose what was planned."""
        assert self._job.plan is not None
        engine, tenant, queue = self._session.engine, self._session.tenant, self._queue()
        asks = list(self._job.plan(_job_context(self._session, self._job.name, queue)))
        self._add_reasons([note for ask in asks for note in ask.notes])
        removes = sum(ask.removes for ask in asks)
        waiting = sum(1 for item in queue if item.state == "pending" for step in item.steps if step.op == "archive")
        live = int(engine.store.facts(tenant, engine.clock.now())["live"]) if removes else 0
        too_many = removes > 0 and removes + waiting > engine.policy.removal_share * live
        for ask in asks:
            if not (too_many and ask.removes):
                self.keep_lease()
                self._ask(ask)
        if too_many:
            self.keep_lease()
            self._propose_for_review(
                [ask for ask in asks if ask.removes], f"{removes + waiting} of {live} live memories"
            )

    def _queue(self) -> list[Proposal]:
        """Return this job's proposals that wait for a person or were rejected."""
        now, store = self._session.clock.now(), self._session.store
        return [
            item
            for state in ("pending", "rejected")
            for item in store.documents(Proposal, self._session.tenant).list(state=state, actor=self._session.actor)
            if item.state == "rejected" or item.expires_at > now
        ]

    def _ask(self, ask: ProposedBatch) -> None:
        session = self._session
        try:
            if ask.whole:
                outcome = propose(session, ask.changes, reason=ask.reason, conversation=ask.session, kind="job")
                self._count(outcome, len(ask.changes))
                if ask.heir is not None and isinstance(outcome, Committed):
                    gone = [record.id for record in outcome.records if record.status is Status.ARCHIVED]
                    used = session.store.usage(session.tenant, gone)
                    session.engine.uses[session.tenant, ask.heir] += sum(count for count, _ in used.values())
                return
            for each in propose_each(session, ask.changes, reason=ask.reason, conversation=ask.session, kind="job"):
                self._count(each, 1)
        except (NotFound, Conflict):
            if ask.whole or len(ask.changes) == 1:
                self._tally.counts["moved"] += 1
                return
            # One of them met a change made meanwhile: the others stand on their own.
            for change in ask.changes:
                self._ask(dataclasses.replace(ask, changes=(change,)))

    def _propose_for_review(self, asks: Sequence[ProposedBatch], many: str) -> None:
        """Propose what would put too much away as one proposal that waits for a person."""
        changes = [change for ask in asks for change in ask.changes]
        share = f"{self._session.policy.removal_share:.0%}"
        detail = f"it would put away {many}, more than the share of {share} that policy lets a job put away in one run"
        if len(changes) > MAX_ASKED:
            detail += f"; these are the first {MAX_ASKED}"
        held = (Reason(gate="jobs", code="removal_share", detail=f"{detail}: a person decides"),)
        why = "; ".join(dict.fromkeys(ask.reason for ask in asks))
        part = changes[:MAX_ASKED]
        self._count(propose(self._session, part, reason=why, kind="job", quarantine_reasons=held), len(part))

    def _count(self, outcome: Outcome, changes: int) -> None:
        """Count what became of a proposal of so many changes."""
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

    def _finish(self, outcome: RunOutcome, why: str, *, keep: bool = True, row: bool = True) -> Run:
        """Write the receipt, and with ``row`` that this was the job's last run; the lease ends with it."""
        now, tally, counts = self._session.clock.now(), self._tally, self._counts()
        try:
            head = self._session.store.head(self._session.tenant).name
        except KeepwardError:
            # The journal is damaged, and that is what an audit has to be able to say.
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
            **self._session.credential,
        }
        receipt = receipt_of(self._session, "job", facts, tally.reasons, at=now, head=head)
        if keep:
            with self._session.store.write() as writer:
                writer.put_receipt(receipt)
                kept = writer.job_row(self._session.tenant, self._job.name)
                # Where another run took over, its row is the newer one.
                taken = kept.holder not in {"", self._holder} and kept.is_leased_at(now)
                if row and not taken:
                    writer.put(
                        replace(kept, holder="", until=None, last_at=self._began, outcome=outcome, receipt=receipt.id)
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
    """Return under what a record of a commit is counted."""
    if record.status in {Status.ARCHIVED, Status.EXPIRED}:
        return record.status.value
    if record.version == 1:
        return "events" if record.kind is Kind.EVENT else "summaries"
    return "merged"


def _job_context(session: RequestContext, job: str, queue: Sequence[Proposal] = ()) -> JobContext:
    """Return what a planner may look at, given the proposals that a person was asked about."""
    engine, now = session.engine, session.clock.now()
    return JobContext(
        reader=engine.store,
        tenant=session.tenant,
        now=now,
        policy=engine.policy,
        job=job,
        new_id=lambda: engine.ids.new_id(now),
        summarizer=engine.summarizer,
        embedder=engine.embedder,
        asked={memory_id: version for item in queue for memory_id, version in item.base.items()},
        proposed_sources=frozenset(
            name for item in queue for step in item.steps if step.op == "insert" for name in step.after.derived_from
        ),
        waiting=sum(1 for item in queue if item.state == "pending"),
    )


def candidates(session: RequestContext, *, floor: float, limit: int | None) -> list[Alike]:
    """Return the pairs visible from a handle's scope that score ``floor`` or more, best first; see ``pairs``."""
    if not 0 <= floor <= 1:
        raise InvalidInput("a floor is a number from 0 to 1")
    check_limit(limit)
    found = similar_pairs(_job_context(session, "consolidate"), floor=floor, scopes=session.reader.scopes)
    # A pair is of one sensitivity.
    return [pair for pair in found if session.reader.can_read(pair.first)][:limit]


def contradictions(session: RequestContext, filters: Filter, *, limit: int) -> Contradictions:
    """Return the pairs of active memories that say nearly the same and differ in something, the closest first.

    They are the merge candidates that do not state the same. Which one holds is for a person to decide. A pair is
    shown where a list under the same filters shows both memories to the handle.

    Raises:
        InvalidInput: a limit below 1, an unknown tier, kind or content type.
    """
    check_limit(limit)
    listed = find(session, filters, limit=None, include_ended=False)
    records = {record.id: record for record in listed}
    found = []
    for pair in candidates(session, floor=_CONTRADICTION_SCORE, limit=None):
        if pair.differs and not pair.same and pair.first.id in records and pair.second.id in records:
            older, newer = sorted(
                (records[pair.first.id], records[pair.second.id]),
                key=lambda each: (each.occurred_at or each.created_at, each.created_at, each.id),
            )
            found.append(Contradiction(older=older, newer=newer, differs=pair.differs, score=pair.score))
    return Contradictions(
        items=tuple(found[:limit]),
        total=len(found),
        compared=len(records),
        withheld=listed.withheld,
        notes=tuple(listed.notes),
    )
