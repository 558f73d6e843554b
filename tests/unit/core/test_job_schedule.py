"""When a job is due: from its schedule, its last run and the clock alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from keepward.core.job import LEASE_DURATION, MAX_CLOCK_SKEW, SCHEDULES, JobRow, due_at, parse_schedule
from keepward.core.policy import Policy
from keepward.errors import InvalidInput
from keepward.jobs.registry import JOBS

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def row(**fields) -> JobRow:
    return JobRow(tenant="t", job="prune", **fields)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1h", "every hour"),
        ("90m", "every 90 minutes"),
        ("2d", "every 2 days"),
        ("90s", "every 90 seconds"),
        ("03:00", "daily at 03:00 UTC"),
        (" 23:59 ", "daily at 23:59 UTC"),
    ],
)
def test_a_schedule_says_what_it_is(text, said):
    assert str(parse_schedule(text)) == said


def test_off_is_no_schedule():
    assert parse_schedule("off") is None


@pytest.mark.parametrize("text", ["", "24:00", "0h", "soon", "٣h"])
def test_what_is_no_schedule_is_refused_with_what_would_be(text):
    with pytest.raises(InvalidInput, match="such as 03:00"):
        parse_schedule(text)


def test_a_daily_job_is_due_at_its_time_of_day():
    assert due_at(parse_schedule("03:00"), row(last_at=NOW), NOW) == datetime(2026, 3, 2, 3, 0, tzinfo=UTC)


def test_daily_job_run_on_time_is_due_a_day_later():
    at = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
    assert due_at(parse_schedule("03:00"), row(last_at=at), NOW) == at + timedelta(days=1)


def test_daily_job_run_early_is_due_the_same_day():
    assert due_at(parse_schedule("17:00"), row(last_at=NOW), NOW) == datetime(2026, 3, 1, 17, 0, tzinfo=UTC)


def test_failed_run_of_a_frequent_job_follows_its_schedule():
    assert due_at(parse_schedule("5m"), row(last_at=NOW, outcome="failed"), NOW) == NOW + timedelta(minutes=5)


def test_last_run_in_the_future_does_not_delay_a_job():
    assert due_at(parse_schedule("03:00"), row(last_at=NOW + timedelta(days=400)), NOW) == NOW


def test_overlong_lease_is_ignored():
    assert not row(holder="x", until=NOW + LEASE_DURATION + MAX_CLOCK_SKEW + timedelta(seconds=1)).is_leased_at(NOW)


def test_lease_and_run_of_a_server_ahead_count():
    last = row(last_at=NOW + MAX_CLOCK_SKEW)
    assert row(holder="x", until=NOW + MAX_CLOCK_SKEW + LEASE_DURATION).is_leased_at(NOW)
    assert due_at(parse_schedule("1h"), last, NOW) == NOW + MAX_CLOCK_SKEW + timedelta(hours=1)


def test_the_catalogue_is_what_policy_schedules():
    assert [job.name for job in JOBS] == list(SCHEDULES) == list(Policy().jobs)
