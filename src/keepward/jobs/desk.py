"""The desk: what a planner is given, and what it hands back.

Invariants
(1) A planner reads and asks; it changes nothing. What it asks for passes the same gates as any write.
(2) Core, permanent and identity memories, and those that a person keeps under approval or read-only, are nobody's
    upkeep.
(3) What a person was asked about and has not decided, or has refused, is not asked again until it changes; what a
    person brought back is left alone likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from keepward.model.change import BOOKKEEPING, Change
from keepward.model.commit import Reason
from keepward.model.memory import Access, Kind, Record, Stability, Tier
from keepward.model.policy import Policy, access_for
from keepward.model.query import Filter
from keepward.ports.models import Embedder, Summarizer
from keepward.ports.store import Reader

#: Changes in one commit.
BATCH = 200
_KEPT = frozenset({Access.READ_ONLY, Access.APPROVAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
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
    #: Proposals of this job that wait.
    waiting: int = 0

    def mine(self, record: Record) -> bool:
        """Whether a job may touch a memory at all; see (2) and (3)."""
        if record.tier is Tier.CORE or record.stability is Stability.PERMANENT or record.kind is Kind.IDENTITY:
            return False
        if access_for(self.policy, record.tier, record.key, record.access) in _KEPT:
            return False
        asked = self.asked.get(record.id)
        return asked is None or any(
            step.after.version > asked and step.op not in BOOKKEEPING
            for _, step in self.reader.history(self.tenant, record.id)
        )

    def brought_back(self, record: Record) -> bool:
        """Whether somebody restored a memory, or undid what was done to it, and nothing else happened since.

        What a person brought back is not put away again by the job that they corrected.
        """
        if record.version == 1:
            return False
        ops = [step.op for _, step in self.reader.history(self.tenant, record.id) if step.op not in BOOKKEEPING]
        return ops[-1:] in (["restore"], ["revert"])

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
    """What a planner wants done, and what it has to tell."""

    asks: tuple[Ask, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    #: What the receipt is to say beside the counts.
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a job did that has an engine of its own."""

    counts: dict[str, int] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    commits: tuple[str, ...] = ()
    #: Why there was nothing to do, in one sentence; None when it ran.
    skipped: str | None = None


def batches(changes: Sequence[Change], reason: str, *, removes: bool = False) -> Iterator[Ask]:
    """Yield independent changes as asks of ``BATCH`` each."""
    for start in range(0, len(changes), BATCH):
        part = tuple(changes[start : start + BATCH])
        yield Ask(changes=part, reason=reason, removes=len(part) if removes else 0)
