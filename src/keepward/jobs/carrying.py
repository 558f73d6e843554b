"""Carrying out a plan: every ask goes through the engine's one write path, and what became of it is counted.

Invariants
(1) An ask that meets a change made meanwhile is left for the next run; it takes no other ask with it.
(2) A plan that puts away more than policy's share of the live memories becomes one proposal that waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from keepward.engine.kit import Kit, Who
from keepward.engine.write import propose, propose_each
from keepward.errors import Conflict, NotFound
from keepward.jobs.catalogue import Job
from keepward.jobs.desk import Ask, Desk
from keepward.model.commit import Reason
from keepward.model.memory import Kind, Record, Status
from keepward.model.proposal import Committed, Duplicate, Outcome, Quarantined, Refused, Waiting

#: Most changes of one question to a person.
ASKED = 500
#: Reasons kept of what was held or refused, so that a receipt stays readable.
_TOLD = 20


@dataclass(slots=True)
class Tally:
    """What a run has come to so far."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: tuple[Reason, ...] = ()
    commits: tuple[str, ...] = ()
    proposals: tuple[str, ...] = ()

    def add(self, counts: dict[str, int]) -> None:
        """Add counts."""
        self.counts.update(counts)

    def take(self, outcome: Outcome, changes: int = 1) -> None:
        """Count what became of a proposal of so many changes."""
        match outcome:
            case Committed():
                if outcome.commit.id not in self.commits:
                    self.commits += (outcome.commit.id,)
                self.counts.update(_name(record) for record in outcome.records)
            case Quarantined():
                self.proposals += (outcome.item.id,)
                self.counts["held"] += changes
                self.tell(outcome.reasons)
            case Refused():
                self.counts["refused"] += changes
                self.tell(outcome.reasons)
            case Duplicate():
                self.counts["known"] += changes

    def tell(self, reasons: tuple[Reason, ...]) -> None:
        """Keep reasons, each once."""
        self.reasons = tuple(dict.fromkeys((*self.reasons, *reasons)))[:_TOLD]


def _name(record: Record) -> str:
    """Return under what a record of a commit is counted."""
    if record.status is Status.ARCHIVED:
        return "archived"
    if record.status is Status.EXPIRED:
        return "expired"
    if record.version == 1:
        return "events" if record.kind is Kind.EVENT else "summaries"
    return "merged"


def carry_out(kit: Kit, who: Who, job: Job, tally: Tally, keep_lease: Callable[[], None]) -> None:
    """Plan, and propose what was planned; ``keep_lease`` is called before each proposal and may raise."""
    assert job.plan is not None
    queue = _queue(kit, who)
    plan = job.plan(desk_of(kit, who, job.name, queue))
    tally.add(plan.counts)
    tally.tell(plan.reasons)
    removes = sum(ask.removes for ask in plan.asks)
    waiting = sum(1 for item in queue if item.state == "pending" for step in item.steps if step.op == "archive")
    live = int(kit.store.facts(who.tenant, kit.clock.now())["live"]) if removes else 0
    share = kit.policy.removal_share
    too_many = removes > 0 and removes + waiting > share * live
    for ask in plan.asks:
        if too_many and ask.removes:
            continue
        keep_lease()
        _ask(kit, who, ask, tally)
    if too_many:
        keep_lease()
        _question(kit, who, plan.asks, tally, f"{removes + waiting} of {live} live memories", share)


def _queue(kit: Kit, who: Who) -> list[Waiting]:
    """Return this job's proposals on which a person was asked and that still stand: waiting, or rejected."""
    now = kit.clock.now()
    standing = [item for state in ("pending", "rejected") for item in kit.store.queue(who.tenant, state=state)]
    return [
        item
        for item in standing
        if item.proposer.label == who.actor.label and (item.state == "rejected" or item.expires_at > now)
    ]


def desk_of(kit: Kit, who: Who, job: str, queue: Sequence[Waiting] = ()) -> Desk:
    """Return what a planner may look at, given the proposals that a person was asked about."""
    now = kit.clock.now()
    asked: dict[str, int] = {}
    for item in queue:
        asked.update(item.base)
    return Desk(
        reader=kit.store,
        tenant=who.tenant,
        now=now,
        policy=kit.policy,
        job=job,
        new_id=lambda: kit.ids.new_id(now),
        summarizer=kit.summarizer,
        embedder=kit.embedder,
        asked=asked,
        waiting=sum(1 for item in queue if item.state == "pending"),
    )


def _ask(kit: Kit, who: Who, ask: Ask, tally: Tally) -> None:
    if ask.whole:
        try:
            outcome = propose(kit, who, ask.changes, reason=ask.reason, session=ask.session, kind="job")
        except (NotFound, Conflict):
            tally.counts["moved"] += 1
        else:
            tally.take(outcome, len(ask.changes))
            if ask.heir is not None and isinstance(outcome, Committed):
                gone = [record.id for record in outcome.records if record.status is Status.ARCHIVED]
                counted = kit.store.usage(who.tenant, gone)
                kit.uses[who.tenant, ask.heir] += sum(count for count, _ in counted.values())
        return
    try:
        outcomes = propose_each(kit, who, ask.changes, reason=ask.reason, session=ask.session, kind="job")
    except (NotFound, Conflict):
        if len(ask.changes) == 1:
            tally.counts["moved"] += 1
            return
        # One of them met a change made meanwhile: the others stand on their own.
        for change in ask.changes:
            _ask(kit, who, Ask(changes=(change,), reason=ask.reason, session=ask.session), tally)
        return
    for each in outcomes:
        tally.take(each)


def _question(kit: Kit, who: Who, asks: tuple[Ask, ...], tally: Tally, many: str, share: float) -> None:
    """Propose what would put too much away as one proposal that waits for a person."""
    putting_away = [ask for ask in asks if ask.removes]
    changes = [change for ask in putting_away for change in ask.changes]
    detail = f"it would put away {many}, more than the share of {share:.0%} that policy lets a job put away in one run"
    if len(changes) > ASKED:
        detail += f"; these are the first {ASKED}"
    reason = Reason(gate="jobs", code="removal_share", detail=f"{detail}: a person decides")
    why = "; ".join(dict.fromkeys(ask.reason for ask in putting_away))
    tally.take(propose(kit, who, changes[:ASKED], reason=why, kind="job", held=(reason,)), len(changes[:ASKED]))
