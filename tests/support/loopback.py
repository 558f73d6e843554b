"""A server on this machine that answers as a test scripts it, and keeps what it was asked."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Script:
    """What the server says next, and what it saw; a test says what an answer is by ``answer``."""

    #: Statuses of the next answers; 200 when they are used up.
    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    #: The bytes to answer with in place of ``answer``.
    body: bytes | None = None
    #: Answers wait until it is set.
    hold: threading.Event | None = None
    #: Path, authorisation and body of each call, in the order in which they came.
    seen: list[tuple[str, str | None, dict[str, Any]]] = field(default_factory=list)
    #: The encodings that each call accepts.
    encodings: list[str | None] = field(default_factory=list)

    def answer(self, asked: dict[str, Any]) -> Any:
        """Return what the server answers to a body, as JSON has it."""
        raise AssertionError(f"nothing is scripted for {asked}")


class Server(ThreadingHTTPServer):
    """A server on a free port, and the script that it follows."""

    script: Script

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing where a client hung up before its answer.

        Python 3.11 parses source to print a traceback. In a thread that breaks a parse of another test.
        """
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving() -> Iterator[Server]:
    """Serve for as long as the block lasts; the script is set by each test."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            script: Script = self.server.script
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.seen.append((self.path, self.headers.get("Authorization"), asked))
            script.encodings.append(self.headers.get("Accept-Encoding"))
            if script.hold is not None:
                script.hold.wait(60)
            status = script.statuses.pop(0) if script.statuses else 200
            body = script.body if script.body is not None else json.dumps(script.answer(asked)).encode()
            self.send_response(status)
            for name, value in script.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(20)
