"""Limits: how much one call may carry, and how often one principal may change something.

Invariants
(1) A body over its limit is answered with 413, whether its length was announced or it came in chunks, and
    whatever the route would have made of it.
(2) A body comes within ``body_timeout`` seconds and one more for each 64 KB of it, or it is answered with 408: whoever
    sends a byte now and then holds nothing up.
(3) A principal has one allowance for all its calls; it fills up evenly, to the whole of a minute at most.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keepward.http.options import ServerOptions
from keepward.http.problems import Problem

#: Most principals whose allowance is remembered; the one asked longest ago is forgotten, at a full allowance.
MOST = 4096
#: Paths of calls that bring a file.
FILES = ("/memory/import", "/memory/restore-export", "/memory/restore-export/plan")
#: Bytes that a slow line brings in a second.
_SLOW = 65_536


class Rates:
    """The allowances of all principals; ``per_minute`` 0 is no limit."""

    def __init__(self, per_minute: int, *, monotonic: Callable[[], float]) -> None:
        self._per_minute, self._monotonic = per_minute, monotonic
        self._lock = threading.Lock()
        #: What is left, and when that was so.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, principal: str) -> float:
        """Count one change; return 0, or the seconds to wait when it is one too many and was not counted."""
        if not self._per_minute:
            return 0.0
        now, refill = self._monotonic(), self._per_minute / 60
        with self._lock:
            left, at = self._left.pop(principal, (float(self._per_minute), now))
            left = min(float(self._per_minute), left + (now - at) * refill)
            # Rounding must not cost the last one of a minute.
            enough = left >= 1 - 1e-9
            self._left[principal] = (left - 1 if enough else left, now)
            while len(self._left) > MOST:
                self._left.popitem(last=False)
        return 0.0 if enough else (1 - left) / refill


class BodyLimit:
    """Refuses bodies that are too large, for everything behind it."""

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        self._limits = {"/memory/blobs": options.blob_limit, **dict.fromkeys(FILES, options.import_limit)}
        self._app, self._limit, self._timeout = app, options.body_limit, options.body_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on, counting what is read of its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limits.get(scope["path"], self._limit)
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not announced.isdigit():
            problem = Problem(400, "bad_request", "Content-Length is a whole number")
            await problem.response()(scope, receive, send)
            return
        if len(announced) > 18 or int(announced) > limit:
            await _problem(limit, scope["path"]).response()(scope, receive, send)
            return
        await _Counted(self._app, scope["path"], limit, receive, send, timeout=self._timeout).run(scope)


class _Counted:
    """One call whose body is counted as it is read."""

    def __init__(self, app: ASGIApp, path: str, limit: int, receive: Receive, send: Send, *, timeout: float) -> None:
        self._app, self._path, self._limit, self._receive, self._send = app, path, limit, receive, send
        self._timeout, self._began = timeout, asyncio.get_running_loop().time()
        self._read = 0
        self._over = self._started = self._whole = False
        self._fault = _problem(limit, path)

    async def run(self, scope: Scope) -> None:
        try:
            await self._app(scope, self._take, self._give)
        except Problem:
            if not self._over or self._started:
                raise
        if self._over and not self._started:
            await self._fault.response()(scope, self._receive, self._send)

    async def _take(self) -> Message:
        try:
            async with asyncio.timeout_at(self._until()):
                message = await self._receive()
        except TimeoutError:
            self._over, self._fault = True, _slow()
            raise self._fault from None
        if message["type"] == "http.request":
            self._whole = not message.get("more_body", False)
            self._read += len(message.get("body", b""))
            if self._read > self._limit:
                self._over = True
                raise self._fault
        return message

    def _until(self) -> float | None:
        """Return when the body has to be whole (2); None once it is, for then nothing but an end is waited for."""
        return None if self._whole else self._began + self._timeout + self._read / _SLOW

    async def _give(self, message: Message) -> None:
        # (1): what a route made of the half-read body is dropped, unless its answer was on the way already.
        if self._over and not self._started:
            return
        self._started = True
        await self._send(message)


def _slow() -> Problem:
    detail = "the body did not come in time; send it in one go, or raise body_timeout of [server]"
    return Problem(408, "timeout", detail, headers={"Connection": "close"})


def _problem(limit: int, path: str) -> Problem:
    way = "import the file on the server's machine" if path in FILES else "send less at once"
    size = f"{limit // (1 << 20)} MB" if limit >= 1 << 20 else f"{limit} bytes"
    # The rest of the body stays unread, so the connection cannot be used again.
    return Problem(413, "too_large", f"a body here is at most {size}; {way}", headers={"Connection": "close"})
