"""A server of PostgreSQL that is further away: a proxy that counts round trips and delays each message.

A client waits for the server after each `Sync`, `Flush` or simple query that it sends. These are the round trips. It
does not wait after the `Sync` that follows the rollback of a read.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import parse_qs, urlsplit, urlunsplit

from benchmarks.texts import notes
from keepward import Memory


@dataclass
class Distance:
    """A running proxy: the address behind it, and what clients have sent through it."""

    address: str
    trips: int = 0
    #: The statements that were sent since each round trip before.
    statements: list[list[str]] = field(default_factory=lambda: [[]])
    _texts: dict[bytes, str] = field(default_factory=dict)
    _last: bytes = b"S"
    #: The last statement since a `Sync`. A `Sync` may arrive after `clear`, since a client does not wait for each.
    _statement: str = ""

    def clear(self) -> None:
        """Count from 0 again."""
        self.trips, self.statements = 0, [[]]

    def sent(self, kind: bytes, body: bytes) -> None:
        """Count one message of a client."""
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._texts[name] = text.decode()
        elif kind == b"B":
            self._statement = self._texts[body.split(b"\0", 2)[1]]
            self.statements[-1].append(self._statement)
        elif kind == b"Q":
            self.statements[-1].append(body[:-1].decode())
        ends_read = kind == b"S" and self._statement == "ROLLBACK"
        if kind == b"S":
            self._statement = ""
        # A flush that nothing precedes asks for nothing.
        if (kind in b"SQ" and not ends_read) or (kind == b"H" and self._last not in b"SH"):
            self.trips += 1
            self.statements.append([])
        self._last = kind


def calls_of(owner: Memory) -> dict[str, Callable[[], object]]:
    """Return calls whose round trips are counted, by name, on a store that this fills with 200 memories."""
    texts = list(notes(3_000))
    owner.remember_many([{"text": text, "tier": "archival"} for text in texts[:200]])
    ids = [str(record.id) for record in owner.list_memories(limit=100)]
    numbers = count(200)

    def batch(mode: str) -> object:
        return owner.remember_many([{"text": texts[next(numbers)]} for _ in range(50)], mode=mode)

    return {
        "remember": lambda: owner.remember(texts[next(numbers)]),
        "recall": lambda: owner.recall("what did the harbour say about the ferry"),
        "context": lambda: owner.context("plan the next trip of the ferry"),
        "get": lambda: owner.get(ids[0]),
        "list_memories": lambda: owner.list_memories(limit=50),
        "forget": lambda: owner.forget(ids.pop(), reason="x"),
        "a batch of 50": lambda: batch("each"),
        "an atomic batch of 50": lambda: batch("atomic"),
    }


@contextmanager
def distant(address: str, *, delay_s: float = 0.0) -> Iterator[Distance]:
    """Serve a database at another address, which each message reaches and leaves ``delay_s`` later."""
    parts = urlsplit(address)
    folder = parse_qs(parts.query).get("host", [""])[0]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"{parts.username}@127.0.0.1:{listener.getsockname()[1]}"
        far = Distance(urlunsplit(parts._replace(netloc=place, query="sslmode=disable&gssencmode=disable")))
        loop, ended, tasks = asyncio.new_event_loop(), asyncio.Event(), set[asyncio.Task[None]]()

        async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if folder:
                server = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{parts.port or 5432}")
            else:
                server = await asyncio.open_connection(parts.hostname, parts.port or 5432)
            for each in ((reader, server[1], delay_s, _Messages(far)), (server[0], writer, delay_s)):
                tasks.add(loop.create_task(_pass_on(*each)))

        async def serve() -> None:
            async with await asyncio.start_server(connect, sock=listener):
                await ended.wait()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
        thread.start()
        try:
            yield far
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join()
            loop.close()


class _Messages:
    """Finds the messages in what one client sends."""

    def __init__(self, distance: Distance) -> None:
        self._distance, self._rest, self._started = distance, b"", False

    def __call__(self, data: bytes) -> None:
        self._rest += data
        while len(self._rest) >= 5:
            start = 1 if self._started else 0
            end = start + struct.unpack_from("!I", self._rest, start)[0]
            if len(self._rest) < end:
                return
            if self._started:
                self._distance.sent(self._rest[:1], self._rest[5:end])
            self._rest, self._started = self._rest[end:], True


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float, note: _Messages | None = None
) -> None:
    loop, pending = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]]()

    async def send() -> None:
        data = b" "
        while data:
            at, data = await pending.get()
            await asyncio.sleep(at - loop.time())
            writer.write(data)

    sender = loop.create_task(send())
    try:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if note is not None:
                    note(data)
                pending.put_nowait((loop.time() + delay_s, data))
        pending.put_nowait((loop.time() + delay_s, b""))
        await sender
    finally:
        sender.cancel()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
