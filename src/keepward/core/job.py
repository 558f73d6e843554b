"""Jobs: what maintenance there is, when it is due, and what a run of it came to.

Invariants
(1) When a job is due follows from its schedule, its last run and the clock alone.
(2) A lease ends at its instant, whoever holds it: a holder that was killed keeps a job from running no longer than
    that.
(3) Every run has one outcome: ``run``, ``failed`` or ``skipped``; each has a receipt.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from typing import Literal

from keepward.core.commit import Reason, Receipt
from keepward.core.memory import Record
from keepward.core.value import Data, Value, parse_duration
from keepward.errors import InvalidInput

RunOutcome = Literal["run", "failed", "skipped"]

#: Every job with its schedule where policy names no other, in the order in which jobs that are due run.
SCHEDULES = {
    "expire": "1h",
    "compact_working": "1h",
    "summarize_episodic": "02:00",
    "consolidate": "02:30",
    "decay_archival": "03:00",
    "prune": "03:30",
    "learn_importance": "01:00",
    "train_reranker": "04:30",
    "sweep_blobs": "05:00",
    "compact_receipts": "05:15",
    "integrity_audit": "04:00",
    "embed": "05:30",
}
#: Stands for the name of a job where all that are due are meant.
DUE = "due"
#: A failed run is tried again after this, where the schedule says later.
RETRY_DELAY = timedelta(hours=1)
#: How long a lease holds unless it is renewed.
LEASE_DURATION = timedelta(minutes=10)
#: How far apart the clocks of servers may be; less than half a lease, after which its holder renews it.
MAX_CLOCK_SKEW = timedelta(minutes=2)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


class Every(Data):
    """At a fixed distance from the last run."""

    term: timedelta

    def after(self, last: datetime) -> datetime:
        """Return the next instant after a run."""
        return last + self.term

    def __str__(self) -> str:
        seconds = int(self.term.total_seconds())
        for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
            if seconds % size == 0:
                count = seconds // size
                return f"every {unit}" if count == 1 else f"every {count} {unit}s"
        return f"every {seconds} seconds"


class Daily(Data):
    """Once a day, at a time in UTC."""

    at: time

    def after(self, last: datetime) -> datetime:
        """Return the next instant after a run."""
        today = datetime.combine(last.astimezone(UTC).date(), self.at, tzinfo=UTC)
        return today if today > last else today + timedelta(days=1)

    def __str__(self) -> str:
        return f"daily at {self.at:%H:%M} UTC"


Schedule = Every | Daily


def parse_schedule(text: str) -> Schedule | None:
    """Read ``15m``, ``1h``, ``2d`` (a distance), ``03:00`` (a time of day in UTC), or ``off`` (None).

    Raises:
        InvalidInput: anything else, or a distance under a minute.
    """
    told = text.strip()
    if told == "off":
        return None
    if found := _TIME.fullmatch(told):
        return Daily(at=time(int(found[1]), int(found[2])))
    try:
        term = parse_duration(told)
    except InvalidInput:
        term = timedelta(0)
    if term < timedelta(minutes=1):
        raise InvalidInput("a schedule is a distance such as 1h, a time of day in UTC such as 03:00, or off")
    return Every(term=term)


def due_at(schedule: Schedule | None, row: JobRow, now: datetime) -> datetime | None:
    """Return the instant from which a job is due, ``now`` for one that never ran; None for one that is off."""
    if schedule is None:
        return None
    if row.last_at is None or row.last_at > now + MAX_CLOCK_SKEW:
        # A last run far in the future means that the clock was set back; waiting for it could take for ever.
        return now
    following = schedule.after(row.last_at)
    return min(following, row.last_at + RETRY_DELAY) if row.outcome == "failed" else following


class JobRow(Data):
    """What a store keeps of one job of a tenant: who may run it now, and its last run."""

    tenant: str
    job: str
    #: Id of the run that holds the lease; empty when there is none.
    holder: str = ""
    #: When the lease ends.
    until: datetime | None = None
    #: When the last run began.
    last_at: datetime | None = None
    outcome: RunOutcome | None = None
    #: Id of the last run's receipt.
    receipt: str | None = None

    def is_leased_at(self, now: datetime) -> bool:
        """Whether somebody holds the lease at an instant; one that reaches further than a lease can is none."""
        return (
            bool(self.holder) and self.until is not None and now < self.until <= now + LEASE_DURATION + MAX_CLOCK_SKEW
        )


class Run(Value):
    """One execution of a job, or why there was none."""

    job: str
    outcome: RunOutcome
    #: One sentence; never memory content.
    why: str
    #: How many of what, by name; what did not occur is 0.
    counts: dict[str, int]
    reasons: tuple[Reason, ...] = ()
    #: Ids of the commits it made, in order.
    commits: tuple[str, ...] = ()
    #: Ids of the proposals it made that wait for a person, in order.
    proposals: tuple[str, ...] = ()
    started_at: datetime
    ended_at: datetime
    #: Kept in the store, except where policy switched memory off.
    receipt: Receipt


class JobState(Value):
    """How a job stands."""

    name: str
    #: What it does, in one sentence.
    does: str
    #: In words; ``off`` for one that policy switched off.
    schedule: str
    due: bool
    #: From when it is due; None for one that is off.
    due_at: datetime | None
    #: When the last run began; None for a job that never ran.
    last_at: datetime | None = None
    last_outcome: RunOutcome | None = None
    last_receipt: str | None = None
    #: Until when a run that goes on now holds the lease.
    running_until: datetime | None = None


class Alike(Value):
    """Two live memories that resemble each other."""

    first: Record
    second: Record
    #: 0..1: closeness in meaning where both have vectors of one embedder, else of their letters.
    score: float
    #: Whether they state the same, so that ``consolidate`` makes one of them.
    same: bool
    #: What keeps them apart: number, date, name, unit, negation, order, value.
    differs: tuple[str, ...] = ()
