"""Several processes that serve one store on one port.

The first process binds the socket and starts the workers; it replaces one that dies. Each worker opens the store. What
requests share (login sessions, codes, rate limits) is in the database; for a SQLite store, in a file of this run.
"""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess

from keepward.errors import KeepwardError, StoreUnavailable
from keepward.http import server
from keepward.http.app_state import ServerOptions
from keepward.http.telemetry import logging_to
from keepward.memory import Memory
from keepward.settings import Settings
from keepward.storage.server_state import ServerState

#: Seconds after which a worker that does not answer the first process is replaced: a busy machine is no reason.
HUNG_AFTER_S = 60
logger = logging.getLogger("keepward.server")
#: Path and key of the file that workers share; None where the database has the state.
SharedFile = tuple[Path, bytes] | None


@contextmanager
def shared_file(*, needed: bool) -> Iterator[SharedFile]:
    """Make the file of what requests share, in a folder of this user alone, for the block."""
    if not needed:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="keepward-server-", ignore_cleanup_errors=True) as folder:
        yield Path(folder) / "state.db", secrets.token_bytes(32)


def state_in(file: SharedFile) -> ServerState | None:
    """Return the entries of a shared file; None where the database has them."""
    # Processes of one machine have one monotonic clock.
    return None if file is None else ServerState(time.monotonic, path=file[0], secret=file[1])


class WorkerConfig(uvicorn.Config):
    """What a worker needs to open the store and to serve it; it is sent to the worker's process."""

    def __init__(
        self, open_store: Callable[[], Memory], options: ServerOptions, settings: Settings | None, file: SharedFile
    ) -> None:
        settings_of_all: dict[str, Any] = {"workers": options.workers, "timeout_worker_healthcheck": HUNG_AFTER_S}
        super().__init__("keepward.http.workers", **settings_of_all, **server.config_of(options))
        self._open_store, self._options, self._settings, self._file = open_store, options, settings, file

    def load(self) -> None:
        """Open the store in a worker, and build the application."""
        block = ExitStack()
        block.enter_context(logging_to(as_json=self._options.log_json, quiet=self._options.quiet))
        try:
            memory = block.enter_context(self._open_store())
            app = server.build(memory, self._options, self._settings, shared=state_in(self._file))
            inner = app.router.lifespan_context

            @asynccontextmanager
            async def lifespan(_: Any) -> AsyncIterator[None]:
                with block:
                    async with inner(app):
                        yield

            app.router.lifespan_context = lifespan
            _set_on_stop_signal(app.state.serving.stopping.set)
            self.app = app
            super().load()
        except (KeepwardError, OSError) as exc:
            logger.error("a worker cannot serve: %s", exc, extra={"action": "worker_failed"})
            sys.exit(STARTUP_FAILURE)


def _set_on_stop_signal(stop: Callable[[], None]) -> None:
    """Call a function as soon as the process is asked to stop, before what handles the signal now."""
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)

        def handle(number: int, frame: FrameType | None, before: Any = before) -> None:
            stop()
            before(number, frame)

        signal.signal(number, handle)


def serve(
    open_store: Callable[[], Memory],
    options: ServerOptions,
    settings: Settings | None,
    bound: socket.socket,
    file: SharedFile,
) -> None:
    """Serve a bound socket with ``options.workers`` processes until this one is stopped.

    ``open_store`` returns the owner's handle; it is called in each worker.

    Raises:
        StoreUnavailable: a worker could not start; its log says why.
    """
    before = {number: signal.getsignal(number) for number in SIGNALS}
    with logging_to(as_json=options.log_json, quiet=options.quiet):
        try:
            supervisor = Multiprocess(WorkerConfig(open_store, options, settings, file), [bound])
            supervisor.run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise StoreUnavailable("a worker could not start, so the server has stopped; the lines above say why")
