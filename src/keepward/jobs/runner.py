"""The runner: one run of a job, from the lease to the receipt.

Invariants
(1) Of two runs that want a job of a tenant, in whatever process, one gets the lease and the other is skipped. A
    lease ends by its time; one that is lost stops the run before its next proposal.
(2) Every run, failed run and skipped run has a receipt, except where policy switched memory off: then nothing at
    all is written.
(3) Whatever a planner raises becomes a failed run; it never keeps another job from running.
(4) A job that would put away more than policy's share of the live memories puts none away and asks a person.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from keepward.engine.commit import flush_uses
from keepward.engine.kit import Kit, Who
from keepward.engine.view import withholds
from keepward.errors import Conflict, KeepwardError, NotFound
from keepward.jobs.alike import pairs
from keepward.jobs.carrying import Tally, carry_out, desk_of
from keepward.jobs.catalogue import CATALOGUE, Job
from keepward.jobs.desk import Done
from keepward.jobs.embedding import wanting
from keepward.model.commit import Receipt
from keepward.model.job import LEASE, Alike, JobRow, JobState, Run, RunOutcome, due_at, parse_schedule
from keepward.model.trust import Actor, ActorKind, Rights, visible_from
from keepward.model.value import unknown
from keepward.ports.store import Writer

logger = logging.getLogger(__name__)


def states(kit: Kit, who: Who) -> list[JobState]:
    """Return how every job of the tenant stands, in the order in which they run."""
    now = kit.clock.now()
    rows = {row.job: row for row in kit.store.job_rows(who.tenant)}
    return [_state(kit, who, job, rows.get(job.name), now) for job in CATALOGUE]


def _state(kit: Kit, who: Who, job: Job, row: JobRow | None, now: datetime) -> JobState:
    schedule = parse_schedule(job.schedule(kit.policy))
    row = row or JobRow(tenant="", job=job.name)
    at = due_at(schedule, row, now)
    if at is not None and at > now and job.name == "embed" and row.outcome != "failed" and wanting(kit, who.tenant):
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
        running_until=row.until if row.held_at(now) else None,
    )


def run_due(kit: Kit, who: Who) -> list[Run]:
    """Run what is due, one after the other; return what became of each."""
    due = [state.name for state in states(kit, who) if state.due]
    return [run_job(kit, who, name) for name in due]


class Halted(Exception):
    """A run was asked to stop, and did before its next proposal or batch; it is as due as before."""


def run_job(kit: Kit, who: Who, name: str, *, force: bool = False, halted: Callable[[], bool] = lambda: False) -> Run:
    """Run one job where it is due, or now where ``force`` says so; ``halted`` tells whether to stop.

    Raises:
        NotFound: there is no such job.
        StoreUnavailable: the store cannot be written, so that there could be no receipt.
        Halted: it was asked to stop.
    """
    job = next((each for each in CATALOGUE if each.name == name), None)
    if job is None:
        raise NotFound(unknown("job", name, [each.name for each in CATALOGUE]))
    return _Running(kit, who, job, halted).run(force=force)


class _Running:
    """One run."""

    def __init__(self, kit: Kit, caller: Who, job: Job, halted: Callable[[], bool]) -> None:
        self._halted = halted
        actor = Actor(kind=ActorKind.JOB, name=job.name, rights=Rights.AGENT)
        self._kit, self._job, self._caller = kit, job, caller
        self._who = Who(tenant=caller.tenant, scope="/", actor=actor, via=(caller.actor, *caller.via))
        self._began = kit.clock.now()
        self._holder = kit.ids.new_id(self._began)
        self._until = self._began

    def run(self, *, force: bool) -> Run:
        """Take the lease, do the work, and leave a receipt."""
        policy = self._kit.policy
        if not policy.enabled:
            return self._end("skipped", "memory is switched off by policy; nothing was written", keep=False)
        if self._job.writes and not policy.capture:
            return self._end("skipped", "policy switched writing off: set capture to go on")
        refusal = self._take(force=force)
        if refusal is not None:
            return self._end("skipped", refusal, row=False)
        tally = Tally()
        try:
            done = self._work(tally)
        except Halted:
            self._let_go()
            raise
        except Exception as fault:
            logger.exception("job failed", extra={"action": "job_failed", "job": self._job.name})
            return self._end("failed", _told(fault), tally)
        except BaseException:
            self._let_go()
            raise
        if done is not None and done.skipped is not None:
            return self._end("skipped", done.skipped, tally)
        return self._end("run", self._job.told(self._counts(tally)), tally)

    def _take(self, *, force: bool) -> str | None:
        """Take the lease; return None, or why there is none to take."""
        now = self._began
        with self._kit.store.write() as writer:
            flush_uses(self._kit, writer)
            row = writer.job_row(self._who.tenant, self._job.name)
            if row is not None and row.held_at(now):
                return f"another run holds the lease until {row.until:%Y-%m-%d %H:%M:%S} UTC"
            state = _state(self._kit, self._who, self._job, row, now)
            if not force and not state.due:
                when = f"not due before {state.due_at:%Y-%m-%d %H:%M} UTC" if state.due_at else "off by policy"
                return f"{when}; force runs it now"
            row = row or JobRow(tenant=self._who.tenant, job=self._job.name)
            self._until = now + LEASE
            writer.put_job_row(replace(row, holder=self._holder, until=self._until))
        return None

    def keep_lease(self) -> None:
        """Renew the lease once half of it is over.

        Raises:
            Conflict: it was lost.
            Halted: the run was asked to stop.
        """
        if self._halted():
            raise Halted
        now = self._kit.clock.now()
        if now + LEASE / 2 < self._until:
            return
        with self._kit.store.write() as writer:
            row = self._held(writer)
            if row is None:
                raise Conflict("another run took the lease over; what was committed stands")
            self._until = now + LEASE
            writer.put_job_row(replace(row, until=self._until))

    def _held(self, writer: Writer) -> JobRow | None:
        row = writer.job_row(self._who.tenant, self._job.name)
        return row if row is not None and row.holder == self._holder else None

    def _let_go(self) -> None:
        with self._kit.store.write() as writer:
            row = self._held(writer)
            if row is not None:
                writer.put_job_row(replace(row, holder="", until=None))

    def _work(self, tally: Tally) -> Done | None:
        if self._job.plan is not None:
            carry_out(self._kit, self._who, self._job, tally, self.keep_lease)
            return None
        assert self._job.do is not None
        done = self._job.do(self._kit, self._who, self.keep_lease)
        tally.add(done.counts)
        tally.reasons += done.reasons
        tally.commits += done.commits
        return done

    def _counts(self, tally: Tally) -> dict[str, int]:
        return {**dict.fromkeys(self._job.counts, 0), **dict(sorted(tally.counts.items()))}

    def _end(
        self,
        outcome: RunOutcome,
        why: str,
        tally: Tally | None = None,
        *,
        keep: bool = True,
        row: bool = True,
    ) -> Run:
        """Write the receipt, and with ``row`` that this was the job's last run; the lease ends with it."""
        kit, now, told = self._kit, self._kit.clock.now(), tally or Tally()
        counts = self._counts(told)
        receipt = Receipt(
            id=kit.ids.new_id(now),
            tenant=self._who.tenant,
            kind="job",
            at=now,
            actor=self._who.actor.label,
            policy=kit.policy.version,
            head=_head(kit, self._who.tenant),
            reasons=tuple(told.reasons),
            facts={
                "job": self._job.name,
                "outcome": outcome,
                "why": why,
                "counts": counts,
                "commits": list(told.commits),
                "proposals": list(told.proposals),
                "started_at": self._began.isoformat(),
                "asked_by": self._caller.actor.label,
                **self._who.credential,
            },
        )
        if keep:
            self._keep(receipt, outcome, row=row)
        return Run(
            job=self._job.name,
            outcome=outcome,
            why=why,
            counts=counts,
            reasons=receipt.reasons,
            commits=tuple(told.commits),
            proposals=tuple(told.proposals),
            started_at=self._began,
            ended_at=now,
            receipt=receipt,
        )

    def _keep(self, receipt: Receipt, outcome: RunOutcome, *, row: bool) -> None:
        with self._kit.store.write() as writer:
            writer.put_receipt(receipt)
            if not row:
                return
            kept = writer.job_row(self._who.tenant, self._job.name)
            if kept is not None and kept.holder not in {"", self._holder} and kept.held_at(receipt.at):
                # Another run took over; what it leaves behind is the newer word.
                return
            writer.put_job_row(
                JobRow(
                    tenant=self._who.tenant,
                    job=self._job.name,
                    last_at=self._began,
                    outcome=outcome,
                    receipt=receipt.id,
                )
            )


def _told(fault: Exception) -> str:
    """Return what a failed run says: our own messages hold no content, anybody else's might."""
    return f"{fault.code}: {fault}" if isinstance(fault, KeepwardError) else f"unexpected {type(fault).__name__}"


def _head(kit: Kit, tenant: str) -> str:
    try:
        return kit.store.head(tenant).name
    except KeepwardError:
        # The journal is damaged, and that is what an audit has to be able to say.
        return "unknown"


def candidates(kit: Kit, who: Who, *, floor: float) -> list[Alike]:
    """Return the pairs within sight of a handle that score ``floor`` or more, best first; see ``alike.pairs``."""
    found = pairs(desk_of(kit, who, "consolidate"), floor=floor, scopes=visible_from(who.scope))
    return [pair for pair in found if not withholds(who, pair.first)]
