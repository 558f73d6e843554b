"""Pipes: work that hands over its results one by one, as the body of an answer.

Invariants
(1) The work runs in one thread of its own, for a reader of the store belongs to its thread.
(2) What fails before the first result is an error of the call; what fails later ends the answer.
(3) When the reader goes away, be it before it read anything, the work is told at its next result; what it had done
    stays done.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

#: Results that may wait for a slow reader.
AHEAD = 64
#: Seconds between two looks at whether the reader is still there.
_LOOK = 0.5

Put = Callable[[bytes], None]


class Gone(Exception):
    """Nobody reads the results any more."""


class Pipe:
    """One piece of work under way."""

    def __init__(self, work: Callable[[Put], None]) -> None:
        """Begin the work; it calls what it is given with each piece of the body.

        Returns once there is a first piece, or none.

        Raises:
            Exception: whatever the work raised before its first piece; see (2).
        """
        self._work = work
        self._pieces: queue.Queue[bytes | BaseException | None] = queue.Queue(AHEAD)
        self._gone = threading.Event()
        threading.Thread(target=self._run, name="keepward-pipe", daemon=True).start()
        first = self._pieces.get()
        if isinstance(first, BaseException):
            raise first
        self._first = first

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces in order; a failure is raised in its place."""
        piece: bytes | BaseException | None = self._first
        try:
            while piece is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
                piece = self._pieces.get()
        finally:
            self.close()

    def close(self) -> None:
        """Say that nobody reads the results any more."""
        self._gone.set()

    def _run(self) -> None:
        try:
            self._work(self._put)
        except Gone:
            return
        except BaseException as fault:  # noqa: BLE001  it is raised where the answer is made
            self._last(fault)
        else:
            self._last(None)

    def _put(self, piece: bytes) -> None:
        while True:
            if self._gone.is_set():
                raise Gone
            try:
                self._pieces.put(piece, timeout=_LOOK)
            except queue.Full:
                continue
            return

    def _last(self, end: BaseException | None) -> None:
        while not self._gone.is_set():
            try:
                self._pieces.put(end, timeout=_LOOK)
            except queue.Full:
                continue
            return


class Piped(StreamingResponse):
    """An answer whose body comes out of a pipe, which is closed however the answer ends."""

    def __init__(self, pipe: Pipe, media_type: str) -> None:
        super().__init__(iter(pipe), media_type=media_type)
        self._pipe = pipe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            # A caller that was gone before the first piece never began to read (3).
            self._pipe.close()
