"""How often the client sends a request whose connection breaks after the server has read it, for each operation."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from calls import EXAMPLES, operation_of
from keepward import Client, Replace
from keepward.api import OPERATIONS
from keepward.errors import StoreUnavailable

#: The server commits these once under their key.
KEYED = {
    *("remember", "revise", "append", "forget", "archive", "restore", "reinforce", "move", "promote", "supersede"),
    *("merge", "propose", "approve", "amend", "update_identity"),
}
#: They do something each time that the server reads them.
ONCE = {
    *("remember_many", "add", "forget_many", "forget_matching", "feedback", "reject", "reopen", "approve_many"),
    *("reject_many", "rollback", "contain", "erase", "adopt", "train_reranker", "run_jobs", "rebuild", "reindex"),
    *("create_token", "revoke_token", "notices", "check", "create_branch", "merge_branch", "discard_branch"),
}
#: Equal bytes are stored once.
HARMLESS = {"put_blob"}
ID, DIGEST = "019d0000-0000-7000-8000-000000000000", "ab" * 32
#: What the client reads before an approval.
READ_BEFORE = {"digest": DIGEST}


class BreakingServer:
    """A server that reads each request and closes the connection, except for reads that precede a decision."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self.client = Client(self.url, "kw_" + "A" * 43, retries=2)
        self.client._transport.sleep = lambda seconds: None

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as file:
                head = b"".join(iter(file.readline, b"\r\n")).decode()
                sent = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:])
                file.read(int(sent.get("content-length", 0)))
                method, path, _ = head.split(" ", 2)
                self.asked.append((method, path, sent.get("idempotency-key", "")))
                if path.endswith("/call/proposal"):
                    body = json.dumps(READ_BEFORE).encode()
                    kind = b"Content-Type: application/json\r\nConnection: close\r\n"
                    connection.sendall(b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (kind, len(body), body))

    def close(self) -> None:
        self.client.close()
        # A blocked accept does not notice that its socket was closed.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[BreakingServer]:
    breaking = BreakingServer()
    yield breaking
    breaking.close()


def filled(value: Any) -> Any:
    """Return the arguments of an example with an id or a digest for each name in braces."""
    if isinstance(value, str):
        known = {"blob": f"sha256:{DIGEST}", "head": "7"}
        return re.sub(r"\{(\w+)\}", lambda name: known.get(name[1], DIGEST if "digest" in name[1] else ID), value)
    if isinstance(value, Mapping):
        return {key: filled(each) for key, each in value.items()}
    if isinstance(value, Replace):
        return Replace(id=ID, text=value.text)
    return [filled(each) for each in value] if isinstance(value, list) else value


def requests_of(server: BreakingServer, method: str, args: Mapping[str, Any]) -> Counter[tuple[str, str, str]]:
    """Return the requests of a call with two retries, without those before it that were answered."""
    server.asked.clear()
    with pytest.raises(StoreUnavailable):
        getattr(server.client, method)(**args)
    last = server.asked[-1]
    return Counter(each for each in server.asked if each[:2] == last[:2])


def test_each_operation_is_in_the_table() -> None:
    changing = {name for name, about in OPERATIONS.items() if about.changes} | {"notices"}
    assert changing == KEYED | ONCE | HARMLESS
    assert len(KEYED) + len(ONCE) + len(HARMLESS) == len(changing)


def test_no_request_that_does_something_is_sent_twice(server: BreakingServer) -> None:
    expected = {
        name: 1 if name.partition(" ")[0] in ONCE else 3 for name in EXAMPLES if name not in {"proposal", "status"}
    }
    found = {}
    for name in expected:
        sent = requests_of(server, operation_of(name).method.__name__, filled(EXAMPLES[name].args))
        # A repeated request is the same one, under the same key.
        found[name] = sent.total() if len(sent) == 1 else 0
        assert bool(next(iter(sent))[2]) == (name.partition(" ")[0] in KEYED), name
    assert found == expected


def test_recall_with_a_receipt_is_sent_once(server: BreakingServer) -> None:
    assert requests_of(server, "recall", {"query": "tea", "receipt": True}).total() == 1
