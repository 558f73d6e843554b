"""What a SQLite store keeps of jobs: one sealed row a tenant and job.

A row that does not match its seal counts as none: at worst a job runs once too often, which changes nothing.
"""

from __future__ import annotations

import logging
import sqlite3
from typing import cast

from keepward.model.job import JobRow, RunOutcome
from keepward.model.value import from_micros, to_micros
from keepward.stores.sql import load_queries
from keepward.stores.sqlite.rows import Row
from keepward.stores.sqlite.seals import Sealer

SQL = load_queries("keepward.stores.sqlite")
_log = logging.getLogger(__name__)


def put_job_row(connection: sqlite3.Connection, sealer: Sealer, row: JobRow) -> None:
    """Keep a row in place of what was."""
    values = (
        row.tenant,
        row.job,
        row.holder,
        None if row.until is None else to_micros(row.until),
        None if row.last_at is None else to_micros(row.last_at),
        row.outcome,
        row.receipt,
    )
    connection.execute(SQL["set_job"], (*values, sealer.row("jobs", *values)))


def job_rows(connection: sqlite3.Connection, sealer: Sealer, tenant: str, job: str | None = None) -> list[JobRow]:
    """Return the rows of a tenant, or of one job, by name, without those that do not hold."""
    found = []
    for row in connection.execute(SQL["jobs"], {"tenant": tenant, "job": job}):
        if sealer.holds_row(row[-1], "jobs", *row[:-1]):
            found.append(_row(row))
        else:
            _log.warning("what was kept of a job does not match its seal", extra={"action": "damaged"})
    return found


def _row(row: Row) -> JobRow:
    tenant, job, holder, until, last_at, outcome, receipt, _ = row
    return JobRow(
        tenant=tenant,
        job=job,
        holder=holder,
        until=None if until is None else from_micros(until),
        last_at=None if last_at is None else from_micros(last_at),
        outcome=cast("RunOutcome | None", outcome),
        receipt=receipt,
    )
