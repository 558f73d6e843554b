"""Planning: what a job may look at, what it asks for, and the jobs that expire, fade and prune.

Invariants
(1) A planner reads and asks; it changes nothing. What it asks for passes the same gates as any write.
(2) Core, permanent and identity memories, and those that a person keeps under approval or read-only, are nobody's
    upkeep.
(3) What a person was asked about and has not decided, or has refused, is not asked again until it changes; what a
    person brought back is left alone likewise.
(4) The owner's own words are never put away unasked: such a question is one proposal a memory, each with its reason,
    and at most ``QUESTIONS`` of them wait at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from keepward.engine.look import least_useful
from keepward.model.change import BOOKKEEPING, Archive, Change, Expire, Retire
from keepward.model.commit import Reason
from keepward.model.memory import Access, Kind, Record, Stability, Tier, confidence_at, half_life, importance_at
from keepward.model.policy import Policy, access_for
from keepward.model.query import Filter
from keepward.model.trust import Trust
from keepward.ports.models import Embedder, Summarizer
from keepward.store.reads import Reader

#: Changes in one commit.
BATCH = 200
#: Memories that one run expires; the rest is for the next.
MOST_EXPIRED = 20_000
QUESTIONS = 20
_KEPT = frozenset({Access.READ_ONLY, Access.APPROVAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """What a planner may look at."""

    reader: Reader
    tenant: str
    now: datetime
    policy: Policy
    #: Name of the job; what it makes carries it.
    job: str
    new_id: Callable[[], str]
    summarizer: Summarizer | None = None
    #: What recall uses; vectors of another embedder do not count.
    embedder: Embedder | None = None
    #: Versions of memories that this job has asked a person about, by memory id; see (3).
    asked: Mapping[str, int] = field(default_factory=dict)
    #: Sources of the memories in those proposals.
    proposed_sources: frozenset[str] = frozenset()
    #: Proposals of this job that wait.
    waiting: int = 0

    def mine(self, record: Record) -> bool:
        """Whether a job may touch a memory at all; see (2) and (3)."""
        if record.tier is Tier.CORE or record.stability is Stability.PERMANENT or record.kind is Kind.IDENTITY:
            return False
        if access_for(self.policy, record.tier, record.key, record.access) in _KEPT:
            return False
        asked = self.asked.get(record.id)
        return asked is None or any(version > asked for version, _ in self._changes(record))

    def brought_back(self, record: Record) -> bool:
        """Whether somebody restored a memory, or undid what was done to it, and nothing else happened since.

        What a person brought back is not put away again by the job that they corrected.
        """
        return record.version > 1 and [op for _, op in self._changes(record)][-1:] in (["restore"], ["revert"])

    def _changes(self, record: Record) -> list[tuple[int, str]]:
        steps = self.reader.steps(self.tenant, record.id)
        return [(step.after.version, step.op) for step in steps if step.op not in BOOKKEEPING]

    def live(self, *tiers: Tier) -> list[Record]:
        """Return the memories of some tiers that hold and that a job may touch, oldest first, ties by id."""
        everything = Filter(scopes=(), tiers=tuple(tier.value for tier in tiers), include_sensitive=True)
        found = self.reader.find(self.tenant, everything, live_at=self.now, limit=None).records
        return sorted((record for record in found if self.mine(record)), key=lambda each: (each.created_at, each.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Changes to propose."""

    changes: tuple[Change, ...]
    reason: str
    #: All or nothing; else each change stands for itself.
    whole: bool = False
    #: Live memories that it puts away with nothing in their place.
    removes: int = 0
    session: str | None = None
    #: The memory that the uses of those it archives count for from now on.
    heir: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a planner wants done, and what the receipt is to say beside it."""

    asks: tuple[Ask, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[tuple[Ask, tuple[Reason, ...]]]) -> Plan:
        """Return a plan of asks, each with what is to be said of it; every reason once."""
        reasons = dict.fromkeys(reason for _, reasons in parts for reason in reasons)
        return cls(asks=tuple(ask for ask, _ in parts), reasons=tuple(reasons))


@dataclass(slots=True)
class Tally:
    """What a run has come to so far."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: tuple[Reason, ...] = ()
    commits: tuple[str, ...] = ()
    proposals: tuple[str, ...] = ()
    #: Why there was nothing to do, in one sentence; None when it ran.
    skipped: str | None = None


def batches(changes: Sequence[Change], reason: str, *, removes: bool = False) -> Iterator[Ask]:
    """Yield independent changes as asks of ``BATCH`` each."""
    for start in range(0, len(changes), BATCH):
        part = tuple(changes[start : start + BATCH])
        yield Ask(changes=part, reason=reason, removes=len(part) if removes else 0)


def expire(on: Planning) -> Plan:
    """Ask to expire what is past its term, in every tier but core; it has stopped to hold at that instant already."""
    return Plan(asks=tuple(lapsed(on)))


def lapsed(on: Planning, *tiers: Tier) -> Iterator[Ask]:
    """Yield asks for what is past its term, in some tiers or in all but core."""
    found = on.reader.lapsed(on.tenant, on.now, limit=MOST_EXPIRED).records
    mine = [record for record in found if on.mine(record) and (not tiers or record.tier in tiers)]
    yield from batches([Expire(id=each.id, if_version=each.version) for each in mine], "its term is over")


def decay(on: Planning) -> Plan:
    """Ask to archive what nobody used, of what policy names, the most faded first."""
    named = on.policy.archive_unused
    gone = [
        each for each in faded(on) if each.trust is not Trust.OWNER and {each.kind.value, each.tier.value} & set(named)
    ]
    return Plan(asks=tuple(batches(_archived(gone), "it has faded: nobody confirmed or used it", removes=True)))


def faded(on: Planning) -> list[Record]:
    """Return memories below both of policy's floors, least confident first, ties by age and id.

    What was used within its half-life is of use, however little its numbers say.
    """
    low = [
        each
        for each in on.live(Tier.ARCHIVAL, Tier.EPISODIC, Tier.WORKING)
        if confidence_at(each, on.now) < on.policy.fade_confidence
    ]
    used = on.reader.usage(on.tenant, [each.id for each in low])

    def useless(record: Record) -> bool:
        count, last = used.get(record.id, (0, record.created_at))
        span = half_life(record)
        if count and span is not None and on.now - last < span:
            return False
        return importance_at(record, on.now, last if count else None) < on.policy.fade_importance

    gone = [each for each in low if useless(each) and not on.brought_back(each)]
    return sorted(gone, key=lambda each: (confidence_at(each, on.now), each.created_at, each.id))


def prune(on: Planning) -> Plan:
    """Ask to expire, to make room in full tiers, and to be told what of the owner's may go."""
    return Plan(asks=(*lapsed(on), *_room(on), *_questions(on)))


def _room(on: Planning) -> Iterator[Ask]:
    """Yield asks for the least useful memories of a full tier, in the order in which a write to it would."""
    tally = on.reader.tally(on.tenant)
    for tier in (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVAL):
        limit = on.policy.capacity.get(tier)
        if limit is None or tally.get(tier.value, 0) <= limit:
            continue
        over = on.reader.lapsed(on.tenant, on.now, limit=-1).records
        excess = tally[tier.value] - sum(1 for each in over if each.tier is tier) - limit
        spares = [record for record in on.live(tier) if record.trust is not Trust.OWNER]
        spares = least_useful(on.reader, on.tenant, spares, on.now)[: max(excess, 0)]
        yield from batches(_archived(spares), f"the {tier.value} tier is over its capacity", removes=True)


def _archived(records: Sequence[Record]) -> list[Change]:
    return [Archive(id=record.id, if_version=record.version) for record in records]


def _questions(on: Planning) -> Iterator[Ask]:
    owned = [each for each in faded(on) if each.trust is Trust.OWNER and each.tier is Tier.ARCHIVAL]
    for record in owned[: max(0, QUESTIONS - on.waiting)]:
        idle, sure = (on.now - record.reinforced_at).days, confidence_at(record, on.now)
        yield Ask(
            changes=(Retire(id=record.id, if_version=record.version),),
            reason=f"nobody confirmed it for {idle} days; its confidence has faded from {record.confidence:g} to "
            f"{sure:g}: is it still needed?",
            whole=True,
        )
