"""The verbs of maintenance: what jobs there are, running them, and what they would make one of."""

from __future__ import annotations

from keepward.app.handle import Handle
from keepward.errors import InvalidInput, Unauthorised
from keepward.model.job import Alike, JobState, Run


class Jobs(Handle):
    """Jobs of this handle's tenant; there is no daemon, whoever keeps a store calls ``run_due``."""

    def jobs(self) -> list[JobState]:
        """Return every job with its schedule and its last run, in the order in which they run."""
        from keepward.jobs.runner import states

        if not self._who.actor.able("read"):
            raise Unauthorised("this credential does not read; ask the owner for one that may")
        return states(self._kit, self._who)

    def run_job(self, name: str, *, force: bool = False) -> Run:
        """Run a job where it is due, for the owner alone; ``force`` runs it although it is not.

        Whatever becomes of it is a value with a receipt: ``run``, ``failed`` or ``skipped``.

        Raises:
            NotFound: there is no such job.
            Unauthorised: this handle is not an owner's.
        """
        from keepward.jobs.runner import run_job

        self._owner("running a job")
        if not isinstance(name, str):
            raise InvalidInput("a job is named by a text")
        return run_job(self._kit, self._who, name, force=force)

    def run_due(self) -> list[Run]:
        """Run every job that is due by the store's clock, one after the other, for the owner alone."""
        from keepward.jobs.runner import run_due

        self._owner("running jobs")
        return run_due(self._kit, self._who)

    def merge_candidates(self, *, floor: float = 0.8, limit: int = 50) -> list[Alike]:
        """Return pairs of memories in this handle's sight that resemble each other, best first; change nothing.

        ``floor`` is the least score, 0..1. Sensitive memories are shown only to who may read them.
        """
        from keepward.jobs.runner import candidates

        if not isinstance(floor, int | float) or isinstance(floor, bool) or not 0 <= floor <= 1:
            raise InvalidInput("a floor is a number from 0 to 1")
        if limit < 1:
            raise InvalidInput("a limit is at least 1")
        return candidates(self._kit, self._who, floor=floor)[:limit]
