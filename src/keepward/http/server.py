"""The server: the HTTP API, the page and `/mcp` as one application, from the first request to the last.

Invariants
(1) Nothing is bound that ``ServerOptions.checked`` refuses, and nothing is served before the port is ours.
(2) A stop (SIGTERM, Ctrl-C) lets requests finish for ten seconds, ends streams, and closes the store.
(3) `/mcp` stands among the routes, behind the same edge, limits and watch; its changes count like any other.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.requests import Request

from keepward.errors import InvalidInput
from keepward.http.app import create_app
from keepward.http.credentials import handle_of, principal_of
from keepward.http.options import ServerOptions
from keepward.http.serving import Serving
from keepward.http.telemetry import logging_to
from keepward.memory import Memory

logger = logging.getLogger("keepward.server")
#: Seconds that a request may take after the server was asked to stop.
PATIENCE = 10


def build(memory: Memory, options: ServerOptions) -> FastAPI:
    """Return the whole application for an owner's handle; ``app.state.serving`` is what it shares.

    Raises:
        InvalidInput: the options cannot be served safely.
    """
    serving = Serving(memory=memory, options=options.checked())
    if not (options.mcp and has_mcp()):
        return create_app(memory, options=options, serving=serving)
    from keepward.mcp import http

    def authenticate(request: Request) -> Memory:
        return handle_of(serving, request.headers)

    def admit(handle: Memory) -> float:
        return 0.0 if handle.actor.is_owner else serving.rates.take(principal_of(handle))

    hooks: dict[str, Any] = {"authenticate": authenticate, "admit": admit, "body_limit": options.body_limit}
    # Any server of a database may get the next call of a session.
    hooks["stateless"] = serving.shares is not None
    routes = http.routes(memory, profile=options.mcp_profile, **hooks)
    app = create_app(memory, options=options, serving=serving, lifespan=lambda _: http.lifespan(routes))
    # Among the routes (3): a mount would answer the exact path with a redirect.
    app.router.routes.extend(routes)
    return app


def has_mcp() -> bool:
    """Whether the package for `/mcp` is installed."""
    return find_spec("mcp") is not None


def bind(options: ServerOptions) -> tuple[socket.socket, ServerOptions]:
    """Return a bound socket, and the options with the port that it has.

    Raises:
        InvalidInput: the port is taken, or the host is none of this machine's.
    """
    options = options.checked()
    try:
        found = socket.getaddrinfo(options.host or None, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as fault:
        raise InvalidInput("that host is not a name or address of this machine; give another with --host") from fault
    try:
        # A port that a stopped server left a moment ago can be taken again; one that listens cannot.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(2048)
    except OSError as fault:
        bound.close()
        raise InvalidInput(_why(fault, options)) from fault
    bound.setblocking(False)
    return bound, replace(options, port=bound.getsockname()[1])


def _why(fault: OSError, options: ServerOptions) -> str:
    if fault.errno == errno.EADDRINUSE:
        return f"port {options.port} is taken; stop what listens there, or name another with --port"
    if fault.errno in {errno.EACCES, errno.EPERM}:
        return f"this user may not listen on port {options.port}; name one above 1023 with --port"
    return "that host is not an address of this machine; give another with --host"


def prepare(app: FastAPI) -> Server:
    """Return the server of an application, ready to run.

    Raises:
        InvalidInput: the certificate or its key cannot be used.
    """
    serving: Serving = app.state.serving
    options = serving.options
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=PATIENCE,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
    )
    try:
        config.load()
    except OSError as fault:
        # ssl.SSLError is one of these.
        raise InvalidInput("the certificate or its key cannot be read; give PEM files that belong together") from fault
    return Server(config, serving)


class Server(uvicorn.Server):
    """Ends streams when it is asked to stop, and then returns instead of ending the process (2)."""

    def __init__(self, config: uvicorn.Config, serving: Serving) -> None:
        super().__init__(config)
        self._serving = serving

    def answer(self, bound: socket.socket) -> None:
        """Answer requests on a bound socket until the process is asked to stop; the store is the caller's to close."""
        options = self._serving.options
        with logging_to(as_json=options.log_json, quiet=options.quiet):
            self.run(sockets=[bound])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self._serving.stopping.set()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take the signals that stop; afterwards the caller closes the store and chooses the exit code."""
        with super().capture_signals():
            try:
                yield
            finally:
                # What was captured would be raised again, and end the process with the store still open.
                self._captured_signals.clear()
