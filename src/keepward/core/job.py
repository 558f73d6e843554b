"""Jobs: schedules, due times, leases and results of runs.

* The due time of a job depends only on its schedule, its last run and the clock.
* A lease ends at its instant. If its holder was killed, other processes run the job after that.
* Every run has one outcome (``run``, ``failed`` or ``skipped``) and a receipt.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from typing import Literal

from keepward.core.commit import Reason, Receipt
from keepward.core.memory import Record
from keepward.core.value import Data, Instant, Value, parse_duration
from keepward.errors import InvalidInput

RunOutcome = Literal["run", "failed", "skipped"]

#: Default schedules of all jobs, in the order in which due jobs run.
SCHEDULES = {
    "expire": "1h",
    "compact_working": "1h",
    "summarize_episodic": "02:00",
    "consolidate": "02:30",
    "decay_archival": "03:00",
    "prune": "03:30",
    "check_sources": "03:45",
    "learn_importance": "01:00",
    "train_reranker": "04:30",
    "sweep_blobs": "05:00",
    "compact_receipts": "05:15",
    "integrity_audit": "04:00",
    "embed": "05:30",
}
#: Names all due jobs.
DUE = "due"
#: A failed run is retried after this time, if the schedule is later.
RETRY_DELAY = timedelta(hours=1)
#: How long a lease is valid unless renewed.
LEASE_DURATION = timedelta(minutes=10)
#: Maximum difference between the clocks of servers; less than half a lease, when its holder renews it.
MAX_CLOCK_SKEW = timedelta(minutes=2)
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


class Every(Data):
    """A fixed interval after the last run."""

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
    """Parse ``15m``, ``1h``, ``2d`` (an interval), ``03:00`` (a time of day in UTC), or ``off`` (None).

    Raises:
        InvalidInput: anything else, or an interval under a minute.
    """
    schedule = text.strip()
    if schedule == "off":
        return None
    if match := _TIME.fullmatch(schedule):
        return Daily(at=time(int(match[1]), int(match[2])))
    try:
        term = parse_duration(schedule)
    except InvalidInput:
        term = timedelta(0)
    if term < timedelta(minutes=1):
        raise InvalidInput("a schedule is an interval such as 1h, a time of day in UTC such as 03:00, or off")
    return Every(term=term)


def due_at(schedule: Schedule | None, row: JobRow, now: datetime) -> datetime | None:
    """Return the instant from which a job is due: ``now`` if it never ran, None if it is off."""
    if schedule is None:
        return None
    if row.last_at is None or row.last_at > now + MAX_CLOCK_SKEW:
        # A last run in the future means that the clock was set back: do not wait for it.
        return now
    following = schedule.after(row.last_at)
    return min(following, row.last_at + RETRY_DELAY) if row.outcome == "failed" else following


class JobRow(Data):
    """The stored state of one job of a tenant: its lease and its last run."""

    tenant: str
    job: str
    #: Id of the run with the lease; empty if there is none.
    holder: str = ""
    #: When the lease ends.
    until: Instant | None = None
    #: Start of the last run.
    last_at: Instant | None = None
    outcome: RunOutcome | None = None
    #: Id of the last run's receipt.
    receipt: str | None = None

    def is_leased_at(self, now: datetime) -> bool:
        """Whether the job is leased at an instant; an end later than any lease allows does not count."""
        return (
            bool(self.holder) and self.until is not None and now < self.until <= now + LEASE_DURATION + MAX_CLOCK_SKEW
        )


class Run(Value):
    """One run of a job, or why it was skipped."""

    job: str
    outcome: RunOutcome
    #: One sentence; never memory content.
    why: str
    #: Counts by name, zeros included.
    counts: dict[str, int]
    reasons: tuple[Reason, ...] = ()
    #: Ids of the commits it made, in order.
    commits: tuple[str, ...] = ()
    #: Ids of its pending proposals, in order.
    proposals: tuple[str, ...] = ()
    started_at: Instant
    ended_at: Instant
    #: Stored, unless the policy switches memory off.
    receipt: Receipt


class JobState(Value):
    """The state of a job."""

    name: str
    #: What it does, in one sentence.
    does: str
    #: In words; ``off`` if the policy switches it off.
    schedule: str
    due: bool
    #: The time from which it is due; None if it is off.
    due_at: Instant | None
    #: Start of the last run; None if it never ran.
    last_at: Instant | None = None
    last_outcome: RunOutcome | None = None
    last_receipt: str | None = None
    #: End of the lease of the current run.
    running_until: Instant | None = None


class Alike(Value):
    """Two active memories that resemble each other."""

    first: Record
    second: Record
    #: 0..1: semantic similarity if both have vectors of the same embedder, else similarity of letters.
    score: float
    #: Whether they say the same, so that ``consolidate`` merges them.
    same: bool
    #: How they differ: number, date, name, unit, negation, order, value.
    differs: tuple[str, ...] = ()
