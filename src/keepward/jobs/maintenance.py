"""Maintenance: a thread runs the jobs that are due while a program keeps a store open.

Invariants
(1) No caller waits for it. It begins once nothing was written for a second, and closing the store stops it before the
    next proposal or batch.
(2) What is due follows from the store's clock. A tenant is maintained at most once a minute, whatever the number of
    processes: a row in the store says when the next may begin, and each job has its lease.
(3) A store that cannot be written, and one that policy switched off, is left alone.
(4) It keeps no store open: a store that was not closed and is not referred to any more ends its thread.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import sys
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta
from queue import Empty, SimpleQueue

from msgspec.structs import replace

from keepward.core.job import JobRow
from keepward.core.principals import Actor, ActorKind, Role
from keepward.errors import KeepwardError
from keepward.locks import ForkSafeLock
from keepward.services.request_context import Engine, RequestContext

logger = logging.getLogger(__name__)

#: Asks for the jobs that nobody asked for.
MAINTENANCE_ACTOR = Actor(kind=ActorKind.SYSTEM, name="maintenance", rights=Role.OWNER)
#: Distance between two looks at a tenant.
MIN_INTERVAL = timedelta(minutes=1)
#: Seconds without a write before it begins, and the most of them that it waits for.
IDLE_BEFORE_START_S, MAX_IDLE_WAITS = 1.0, 30
#: Seconds for which it keeps the interpreter from other threads.
SWITCH_INTERVAL_S = 0.0005
#: Seconds that closing waits for a job that does not stop; it then ends without its last words.
STOP_TIMEOUT_S = 2.0
#: Seconds that the end of the process waits for it then: what computes as the interpreter ends takes the process down.
EXIT_TIMEOUT_S = 30.0
#: The row of ``JobRow`` that says when a tenant may next be looked after; no job has this name.
_SCHEDULE_ROW = "maintenance"


def run_pending(engine: Engine, *, should_stop: Callable[[], bool]) -> None:
    """Run the jobs that are due, tenant by tenant, until ``halted`` says to stop; what fails is logged."""
    from keepward.jobs.runner import JobStopped, run_job

    if engine.store.read_only or not engine.policy.enabled:
        return
    try:
        for tenant in engine.store.tenants():
            if should_stop():
                return
            due = due_jobs(engine, tenant)
            if not due or not _claim_tenant(engine, tenant):
                continue
            session = RequestContext(engine=engine, tenant=tenant, scope="/", actor=MAINTENANCE_ACTOR)
            for name in due:
                if should_stop():
                    return
                outcome = run_job(session, name, should_stop=should_stop).outcome
                level = logging.WARNING if outcome == "failed" else logging.INFO
                extra = {"action": "job", "job": name, "outcome": outcome}
                logger.log(level, "job %s: %s", name, outcome, extra=extra)
    except JobStopped:
        logger.info("maintenance was stopped and goes on another time", extra={"action": "maintenance"})
    except KeepwardError as exc:
        logger.warning("maintenance: %s", exc, extra={"action": "maintenance", "error": exc.code})


def due_jobs(engine: Engine, tenant: str) -> list[str]:
    """Return the jobs of a tenant that are due and do not run; none where it was maintained a moment ago."""
    # Imported here, since it imports all that writes: a command that reads does not wait for that.
    from keepward.jobs.runner import job_states

    now = engine.clock.now()
    if any(row.job == _SCHEDULE_ROW and row.is_leased_at(now) for row in engine.store.documents(JobRow, tenant).list()):
        return []
    found = job_states(RequestContext(engine=engine, tenant=tenant, scope="/", actor=MAINTENANCE_ACTOR))
    return [state.name for state in found if state.due and state.running_until is None]


def _claim_tenant(engine: Engine, tenant: str) -> bool:
    """Note that a tenant is maintained from now on; return False where another process was first (2)."""
    with engine.store.write() as writer:
        row = writer.job_row(tenant, _SCHEDULE_ROW)
        now = engine.clock.now()
        if row.is_leased_at(now):
            return False
        writer.put(replace(row, holder=engine.ids.new_id(now), until=now + MIN_INTERVAL, last_at=now))
    return True


class DeferredMaintenance:
    """Runs nothing: when the store is closed it tells whoever opened it that jobs are due, if anything was written."""

    def __init__(self, on_close: Callable[[], None]) -> None:
        self._leave = on_close
        self._engine: Engine | None = None
        self._wrote = False

    def attach(self, engine: Engine) -> None:
        """Take the store that is to be looked after."""
        self._engine = engine

    def wake(self, *, wrote: bool) -> None:
        """Note that something was written."""
        self._wrote = self._wrote or wrote

    def stop(self) -> None:
        """Tell, while the store is still open."""
        engine = self._engine
        if not self._wrote or engine is None or not engine.policy.enabled:
            return
        try:
            if any(due_jobs(engine, tenant) for tenant in engine.store.tenants()):
                self._leave()
        except KeepwardError as fault:
            logger.info("maintenance: %s", fault, extra={"action": "maintenance", "error": fault.code})


class Maintenance:
    """Runs what is due in a thread of its own, from the first time it is woken until it is stopped."""

    def __init__(self) -> None:
        #: See (4).
        self._engine: weakref.ref[Engine] | None = None
        self._lock = ForkSafeLock()
        #: A queue, since the collector may put into it wherever this allocates.
        self._woken: SimpleQueue[None] = SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def attach(self, engine: Engine) -> None:
        """Take the store that is to be looked after."""
        woken = self._woken
        self._engine = weakref.ref(engine, lambda _: woken.put(None))

    def wake(self, *, wrote: bool) -> None:
        """Look for jobs that are due, soon; returns at once."""
        del wrote
        self._woken.put(None)
        with self._lock:
            # A thread does not outlive a fork: the child starts its own.
            if self._engine is None or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._run, name="keepward-maintenance", daemon=True)
            self._thread.start()
            # Before the interpreter takes itself apart: a thread that computes then cannot end well.
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
            found = self._engine
            engine = None if found is None else found()
            if engine is None:
                atexit.unregister(self.stop)
                return
            turns = sys.getswitchinterval()
            try:
                # Whoever writes meanwhile waits for the interpreter at each of its statements: not as long like this.
                sys.setswitchinterval(SWITCH_INTERVAL_S)
                run_pending(engine, should_stop=self._stopping.is_set)
            finally:
                sys.setswitchinterval(turns)
                del engine

    def _was_woken(self, timeout_s: float) -> bool:
        """Wait to be woken, at most so many seconds; return whether that was so, however often."""
        with contextlib.suppress(Empty):
            self._woken.get(block=timeout_s > 0, timeout=timeout_s)
            with contextlib.suppress(Empty):
                while True:
                    self._woken.get(block=False)
            return True
        return False
