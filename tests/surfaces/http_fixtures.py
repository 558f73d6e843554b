"""A whole server in this process: a store in a file, its clock, and clients that hold every answer against OpenAPI."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from starlette.routing import Match
from starlette.testclient import TestClient

from keepward import Actor, Memory, Policy
from keepward.http import ServerOptions, create_app
from keepward.http.app_state import AppState
from support.clock import SteppingClock
from support.database import emptied
from support.openapi import described

BASE = "http://127.0.0.1:8321"
PROBLEM = "application/problem+json"


class Ticks:
    """Seconds; stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Client(TestClient):
    """Calls as one bearer; an answer that OpenAPI does not describe is a failure."""

    world: HttpTestServer

    def request(self, method: str, url: Any, **options: Any) -> Any:  # type: ignore[override]
        answer = super().request(method, url, **options)
        self.world.check(method, answer)
        return answer


class RoundRobin:
    """Servers of one store, asked in turn."""

    def __init__(self, apps: Sequence[Any]) -> None:
        self._apps, self._turn = apps, count()
        self.routes, self.openapi = apps[0].routes, apps[0].openapi

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._apps[next(self._turn) % len(self._apps)](scope, receive, send)


class HttpTestServer:
    """One store and one server on it, or so many on a database."""

    #: Address of a database, and how many servers serve it, where the environment says so.
    DATABASE, SERVERS = os.environ.get("KEEPWARD_TEST_DATABASE"), 3
    #: Numbers of the schemas in which the worlds that are open have their stores.
    _open: ClassVar[set[int]] = set()

    def __init__(self, folder: Path, policy: Policy | None = None, embedder: str = "none", **options: Any) -> None:
        self.folder, self._number = folder, -1
        self.path: Any = self._schema() if self.DATABASE else folder / "memory.db"
        self.clock, self.ticks = SteppingClock(datetime(2026, 3, 1, 9, tzinfo=UTC)), Ticks()
        chosen = ServerOptions(**{"writes_per_minute": 0, **options}).checked()
        self.servings = []
        for _ in range(self.SERVERS if self.DATABASE else 1):
            memory = self.open(Actor.operator("olga"), policy=policy, embedder=embedder)
            self.servings.append(AppState(memory=memory, options=chosen, monotonic=self.ticks))
            if (shares := self.servings[-1].shares) is not None:
                # Moved by the test, like everything here.
                vars(shares)["now"] = self.ticks
        self.serving, self.memory = self.servings[0], self.servings[0].memory
        close = self.memory.close

        def close_all() -> None:
            for each in self.servings[1:]:
                each.memory.close()
            close()
            self._open.discard(self._number)

        # Whoever has a world closes its memory.
        vars(self.memory)["close"] = close_all
        apps = [create_app(each.memory, options=chosen, serving=each) for each in self.servings]
        self.app: Any = apps[0] if len(apps) == 1 else RoundRobin(apps)
        self.api = described()
        self.nobody = self.client(None)
        self.owner = self.client(self.memory.owner_token().read_text().strip())

    def _schema(self) -> str:
        """Return the address of a schema of this world's own, without a row."""
        import psycopg

        self._number = next(n for n in count() if n not in self._open)
        self._open.add(self._number)
        with psycopg.connect(str(self.DATABASE), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS world_{self._number}".encode())
        return emptied(f"{self.DATABASE}&options=-csearch_path%3Dworld_{self._number}")

    def open(self, actor: Actor, **options: Any) -> Memory:
        """Open the store by itself, as another process would."""
        given = {"embedder": "none", "clock": self.clock, "config_dir": self.folder / "home", **options}
        return Memory.open(self.path, actor=actor, **given)

    def client(self, token: str | None) -> Client:
        client = Client(self.app, base_url=BASE)
        client.world = self
        if token is not None:
            client.headers["Authorization"] = f"Bearer {token}"
        return client

    def bearer(self, name: str = "claude", **options: Any) -> Client:
        """Return a client with a new token."""
        return self.client(self.memory.create_token(name, **options).secret)

    def check(self, method: str, answer: Any) -> None:
        if method == "HEAD":
            # It is described by its GET.
            return
        if answer.status_code in {429, 503}:
            assert answer.headers["retry-after"].isdecimal(), f"{method} {answer.request.url} does not say when"
        path = next(
            (
                getattr(route, "path_format", route.path)
                for route in self.app.routes
                if route.matches({"type": "http", "method": method, "path": answer.request.url.path})[0] is Match.FULL
            ),
            None,
        )
        described = self.api["paths"].get(path, {}).get(method.lower())
        if described is None and path is not None and path.startswith("/memory/call/"):
            # A call by name is answered as the operation's own route answers.
            every = (each for methods in self.api["paths"].values() for each in methods.values())
            described = next(each for each in every if each["operationId"] == path.rpartition("/")[2])
        if described is None:
            assert answer.status_code in {404, 405}, (method, path, answer.status_code)
            return
        responses = described["responses"]
        assert str(answer.status_code) in responses, f"{method} {path} answered {answer.status_code}: {answer.text}"
        content = responses[str(answer.status_code)].get("content")
        kind = answer.headers.get("content-type", "").partition(";")[0]
        if content is None:
            assert answer.content == b""
            return
        assert kind in content or "*/*" in content, f"{method} {path}: {kind}"
        schema = content.get(kind, {}).get("schema", {})
        if kind in {"application/json", PROBLEM}:
            fault = differs(self.api, schema, answer.json(), "$")
            assert fault is None, f"{method} {path} {answer.status_code}: {fault}"


def differs(api: dict[str, Any], schema: dict[str, Any], value: Any, at: str) -> str | None:
    """Return where a value is not what a schema says; a key that is not described is a difference too."""
    if "$ref" in schema:
        return differs(api, api["components"]["schemas"][schema["$ref"].rpartition("/")[2]], value, at)
    if "anyOf" in schema:
        faults = [differs(api, each, value, at) for each in schema["anyOf"]]
        return None if None in faults else str(faults)
    if "enum" in schema and value not in schema["enum"]:
        return f"{at}: not one of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        return f"{at}: not {schema['const']}"
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
    }
    kind = schema.get("type")
    if kind is not None and (
        not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind in {"integer", "number"})
    ):
        return f"{at}: not of type {kind}"
    if kind == "array":
        faults = [differs(api, schema.get("items", {}), item, f"{at}[{n}]") for n, item in enumerate(value)]
        return next(filter(None, faults), None)
    if kind == "object":
        known, more = schema.get("properties", {}), schema.get("additionalProperties", not schema.get("properties"))
        missing = [name for name in schema.get("required", ()) if name not in value]
        strange = [name for name in value if name not in known] if more is False or more is None else []
        if not more and not strange:
            strange = [name for name in value if name not in known]
        if missing or strange:
            return f"{at}: missing {missing}, not described {strange}"
        rest = more if isinstance(more, dict) else {}
        faults = [differs(api, known.get(name, rest), item, f"{at}.{name}") for name, item in value.items()]
        return next(filter(None, faults), None)
    return None


def streamed(
    world: HttpTestServer, path: str, headers: dict[str, str], until: Callable[[bytes], bool]
) -> tuple[int, bytes]:
    """Call a route whose answer has no end; hang up once enough has come, and return status and body."""

    async def call() -> tuple[int, bytes]:
        name, _, query = path.partition("?")
        status, body = 0, b""
        enough, asked = asyncio.Event(), False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await enough.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal status, body
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                body += message.get("body", b"")
                if until(body):
                    enough.set()

        scope = _scope("GET", name, headers, query)
        await asyncio.wait_for(world.app(scope, receive, send), 20)
        return status, body

    return asyncio.run(call())


def called(
    world: HttpTestServer,
    path: str,
    headers: dict[str, str],
    pieces: list[dict[str, Any]],
    send: Callable[[Any], None] = lambda message: None,
) -> None:
    """Post pieces of a body, then hang up; ``send`` is given what the server answers."""

    async def call() -> None:
        waiting = iter(pieces)

        async def receive() -> dict[str, Any]:
            return next(waiting, {"type": "http.disconnect"})

        async def answer(message: Any) -> None:
            send(message)

        await asyncio.wait_for(world.app(_scope("POST", path, headers), receive, answer), 20)

    asyncio.run(call())


def _scope(method: str, path: str, headers: dict[str, str], query: str = "") -> dict[str, Any]:
    sent = {"host": "127.0.0.1:8321", **{key.lower(): value for key, value in headers.items()}}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(key.encode(), value.encode()) for key, value in sent.items()],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8321),
    }


def events_of(body: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream: {event, id, data}; comments are left out."""
    return list(_events(body.decode()))


def _events(text: str) -> Iterator[dict[str, Any]]:
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if fields:
            yield {"event": fields.get("event"), "id": fields.get("id"), "data": json.loads(fields["data"])}
