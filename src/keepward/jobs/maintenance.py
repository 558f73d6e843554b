"""Maintenance: a thread runs the due jobs while a program has a store open.

No caller waits for it. It starts after a second without a write, and closing the store stops it before the next
proposal or batch.
The store's clock decides which jobs are due. A tenant is maintained at most once a minute by all processes together: a
row in the store says when the next may start, and each job has its lease.
A store that cannot be written, or that policy switched off, is left alone.
The thread holds only a weak reference to the store: a store that is garbage collected ends it.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta
from queue import Empty, SimpleQueue

from msgspec.structs import replace

from keepward.core.job import JobRow
from keepward.core.principals import Actor, ActorKind, Role
from keepward.errors import KeepwardError
from keepward.jobs.runner import JobStopped, job_states, run_job
from keepward.locks import ForkSafeLock
from keepward.services.request_context import Engine, RequestContext

logger = logging.getLogger(__name__)

#: The actor of jobs that run without a request.
MAINTENANCE_ACTOR = Actor(kind=ActorKind.SYSTEM, name="maintenance", rights=Role.OWNER)
#: Shortest time between two maintenance runs of a tenant.
MIN_INTERVAL = timedelta(minutes=1)
#: Seconds without a write before a run starts, and how often it waits that long at most.
IDLE_BEFORE_START_S, MAX_IDLE_WAITS = 1.0, 30
#: Seconds that closing waits for a running job; after that the job ends without a receipt.
STOP_TIMEOUT_S = 2.0
#: Seconds that the exit of the process then waits: a thread that computes during interpreter exit crashes it.
EXIT_TIMEOUT_S = 30.0
#: Job name of the row that says when a tenant may next be maintained; no job has this name.
_SCHEDULE_ROW = "maintenance"


def run_pending(engine: Engine, *, should_stop: Callable[[], bool]) -> None:
    """Run the due jobs, tenant by tenant, until ``should_stop`` says so; failures are logged."""
    if engine.store.read_only or not engine.policy.enabled:
        return
    try:
        for tenant in engine.store.tenants():
            if should_stop():
                return
            due = due_jobs(engine, tenant)
            if not due or not _claim_tenant(engine, tenant):
                continue
            context = RequestContext(engine=engine, tenant=tenant, scope="/", actor=MAINTENANCE_ACTOR)
            for name in due:
                if should_stop():
                    return
                outcome = run_job(context, name, should_stop=should_stop).outcome
                level = logging.WARNING if outcome == "failed" else logging.INFO
                extra = {"action": "job", "job": name, "outcome": outcome}
                logger.log(level, "job %s: %s", name, outcome, extra=extra)
    except JobStopped:
        logger.info("maintenance was stopped and goes on another time", extra={"action": "maintenance"})
    except KeepwardError as exc:
        logger.warning("maintenance: %s", exc, extra={"action": "maintenance", "error": exc.code})


def due_jobs(engine: Engine, tenant: str) -> list[str]:
    """Return the jobs of a tenant that are due and not running; none if it was maintained less than a minute ago."""
    now = engine.clock.now()
    if any(row.job == _SCHEDULE_ROW and row.is_leased_at(now) for row in engine.store.documents(JobRow, tenant).list()):
        return []
    states = job_states(RequestContext(engine=engine, tenant=tenant, scope="/", actor=MAINTENANCE_ACTOR))
    return [state.name for state in states if state.due and state.running_until is None]


def _claim_tenant(engine: Engine, tenant: str) -> bool:
    """Record that a tenant is maintained from now on; return False if another process was first."""
    with engine.store.write() as writer:
        row = writer.job_row(tenant, _SCHEDULE_ROW)
        now = engine.clock.now()
        if row.is_leased_at(now):
            return False
        writer.put(replace(row, holder=engine.ids.new_id(now), until=now + MIN_INTERVAL, last_at=now))
    return True


class DeferredMaintenance:
    """Runs nothing itself: when the store closes after a write with jobs due, it calls ``on_close``."""

    def __init__(self, on_close: Callable[[], None]) -> None:
        self._on_close = on_close
        self._engine: Engine | None = None
        self._wrote = False

    def attach(self, engine: Engine) -> None:
        """Set the store to maintain."""
        self._engine = engine

    def wake(self, *, wrote: bool) -> None:
        """Record whether something was written."""
        self._wrote = self._wrote or wrote

    def stop(self) -> None:
        """Call ``on_close`` if jobs are due; the store is still open."""
        engine = self._engine
        if not self._wrote or engine is None or not engine.policy.enabled:
            return
        try:
            if any(due_jobs(engine, tenant) for tenant in engine.store.tenants()):
                self._on_close()
        except KeepwardError as exc:
            logger.info("maintenance: %s", exc, extra={"action": "maintenance", "error": exc.code})


class Maintenance:
    """Runs due jobs in a thread of its own, from the first ``wake`` until ``stop``."""

    def __init__(self) -> None:
        #: Weak, so that this does not keep the store open.
        self._engine: weakref.ref[Engine] | None = None
        self._lock = ForkSafeLock()
        #: A queue, as the garbage collector may put into it while this allocates.
        self._woken: SimpleQueue[None] = SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def attach(self, engine: Engine) -> None:
        """Set the store to maintain."""
        woken = self._woken
        self._engine = weakref.ref(engine, lambda _: woken.put(None))

    def wake(self, *, wrote: bool) -> None:
        """Check for due jobs soon; returns at once."""
        del wrote
        self._woken.put(None)
        with self._lock:
            # A thread does not survive a fork: the child starts its own.
            if self._engine is None or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._run, name="keepward-maintenance", daemon=True)
            self._thread.start()
            # Stop before interpreter exit, where a computing thread cannot end cleanly.
            atexit.register(self.stop)

    def stop(self) -> None:
        """Stop before the next proposal or batch, and wait for that."""
        self._stopping.set()
        self._woken.put(None)
        atexit.unregister(self.stop)
        with self._lock:
            thread, self._thread, self._engine = self._thread, None, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_TIMEOUT_S)
            if thread.is_alive():
                atexit.register(thread.join, EXIT_TIMEOUT_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            woken = self._was_woken(MIN_INTERVAL.total_seconds())
            for _ in range(MAX_IDLE_WAITS):
                if not woken:
                    break
                if self._stopping.wait(IDLE_BEFORE_START_S):
                    return
                woken = self._was_woken(0)
            reference = self._engine
            engine = None if reference is None else reference()
            if engine is None:
                atexit.unregister(self.stop)
                return
            run_pending(engine, should_stop=self._stopping.is_set)
            del engine

    def _was_woken(self, timeout_s: float) -> bool:
        """Wait to be woken, at most so many seconds; return whether that happened."""
        with contextlib.suppress(Empty):
            self._woken.get(block=timeout_s > 0, timeout=timeout_s)
            with contextlib.suppress(Empty):
                while True:
                    self._woken.get(block=False)
            return True
        return False
