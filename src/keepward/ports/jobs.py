"""Upkeep: what a store keeps of jobs, and what only jobs ask of it.

Invariants
(1) A row read and written in one transaction is a lease: of two runs that want a job, one finds the other's.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from keepward.model.job import JobRow

if TYPE_CHECKING:
    from keepward.ports.store import Found


class KeepsJobs(Protocol):
    """What a writer can do for a job."""

    def job_row(self, tenant: str, job: str) -> JobRow | None:
        """Return what is kept of a job, as this transaction sees it; None for one that never ran."""
        ...

    def put_job_row(self, row: JobRow) -> None:
        """Keep what is to be known of a job, in place of what was."""
        ...


class TellsJobs(Protocol):
    """What a reader can tell a job."""

    def job_rows(self, tenant: str) -> list[JobRow]:
        """Return what is kept of the tenant's jobs, by name; a row that fails its seal is left out."""
        ...

    def unembedded(self, tenant: str, now: datetime, model: str) -> bool:
        """Whether a live memory has no vectors of this embedder."""
        ...

    def lapsed(self, tenant: str, now: datetime, *, limit: int) -> Found:
        """Return active memories whose term is over, the longest ago first, ties by id."""
        ...
