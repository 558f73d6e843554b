"""A server in this process: a fresh store, a clock that moves when told, and a few routes that show the frame.

The routes of the API have tests of their own; these stand for any of them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

from http_fixtures import BASE, Ticks
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from keepward import Actor, Memory, Policy
from keepward.http import ServerOptions, create_app
from keepward.http.app_state import AppState
from keepward.http.auth import CSRF_HEADER
from keepward.http.handlers import json_response
from keepward.http.inputs import Inputs, Parameter
from keepward.http.requests import StrictRequest, cursor_of, memory_etag, not_modified, page_offset, require_match
from keepward.http.routes import route

JSON = {"Content-Type": "application/json"}


class Item(Struct, forbid_unknown_fields=True):
    """A new text."""

    text: str
    number: int | UnsetType | None = UNSET
    rest: Any = UNSET


ITEM = Inputs({}, Item)
PAGE = Inputs(
    {
        "limit": Parameter("query", Annotated[int, Meta(ge=1, le=9)], 2),
        "tag": Parameter("query", list[str]),
        "cursor": Parameter("query", str),
    }
)


def status(_: Request, memory: Memory) -> Response:
    return json_response({"actor": memory.actor.label, "tenant": memory.tenant, "scope": memory.scope})


def core(_: Request, memory: Memory) -> Response:
    return json_response([each.text for each in memory.list_memories(tiers=["core"], limit=None)])


def search(request: Request, memory: Memory) -> Response:
    asked = request.query_params
    found = memory.recall(asked["query"], include_sensitive=asked.get("include_sensitive") == "true")
    return json_response([each.memory.text for each in found])


def compiled(request: StrictRequest, memory: Memory) -> Response:
    return json_response({"text": memory.context(ITEM.read(request)["text"]).text})


def queue(_: Request, memory: Memory) -> Response:
    return json_response([each.id for each in memory.pending()])


def remember(request: StrictRequest, memory: Memory) -> Response:
    outcome = memory.remember(ITEM.read(request)["text"], tier="archival").to_dict()
    return json_response(outcome, 422 if outcome["outcome"] == "refused" else 201)


def get(request: Request, memory: Memory) -> Response:
    record = memory.get(request.path_params["id"])
    tag = memory_etag(record)
    return not_modified(request, tag) or json_response(record, headers={"ETag": tag})


def revise(request: StrictRequest, memory: Memory) -> Response:
    body = ITEM.read(request)
    record = memory.get(request.path_params["id"])
    require_match(request, memory_etag(record))
    return json_response(memory.revise(record.id, body["text"], reason="test", if_version=record.version).to_dict())


def page(request: StrictRequest, _: Memory) -> Response:
    given = PAGE.read(request)
    start, _ = page_offset(request, given.get("cursor"))
    return json_response({"at": start, "cursor": cursor_of(request, start + given["limit"], None)})


def erase(_: Request, __: Memory) -> Response:
    return json_response({"applied": True})


async def blob(request: Request, _: Memory) -> Response:
    return json_response({"bytes": len(await request.body())})


async def stream(request: Request, _: Memory) -> Response:
    return json_response({"bytes": sum([len(chunk) async for chunk in request.stream()])})


def broken(_: Request, __: Memory) -> Response:
    raise ZeroDivisionError("quoted memory text")


ROUTES = [
    route("GET", "/memory/status", status),
    route("GET", "/memory/core", core),
    route("GET", "/memory/search", search, name="recall", known={"query": False, "include_sensitive": False}),
    route("POST", "/memory/compile", compiled, parsed=True),
    route("GET", "/memory/quarantine", queue),
    route("POST", "/memory/items", remember, parsed=True, changes=True),
    route("GET", "/memory/items/{id}", get, name="get"),
    route("PATCH", "/memory/items/{id}", revise, parsed=True, changes=True),
    route("GET", "/probe", page, known=PAGE.query),
    route("POST", "/memory/erase", erase, changes=True),
    route("POST", "/memory/blobs", blob),
    route("POST", "/memory/import", stream, described=lambda: {"x-streaming": True}),
    route("GET", "/broken", broken),
]


class Stage:
    """One store and one server on it."""

    def __init__(self, folder: Path, policy: Policy | None = None, **options: Any) -> None:
        self.path = folder / "memory.db"
        self.memory = Memory.open(
            self.path, actor=Actor.operator("ana"), embedder="none", policy=policy, config_dir=folder / "home"
        )
        self.ticks, self.drawn = Ticks(), 0
        chosen = ServerOptions(**options).checked()
        self.serving = AppState(memory=self.memory, options=chosen, monotonic=self.ticks, random=self._random)
        self.app = create_app(self.memory, options=chosen, serving=self.serving, routes=ROUTES)
        self.client = self.browser()

    def _random(self, size: int) -> bytes:
        self.drawn += 1
        return hashlib.sha256(str(self.drawn).encode()).digest()[:size]

    def browser(self, base: str = BASE) -> TestClient:
        """Return a client without a credential, and with cookies of its own."""
        return TestClient(self.app, base_url=base, raise_server_exceptions=False)

    def token(self, name: str = "claude", **options: Any) -> dict[str, str]:
        """Return the header of a new token."""
        return {"Authorization": f"Bearer {self.memory.create_token(name, **options).secret}"}

    @property
    def owner(self) -> dict[str, str]:
        """The header of the owner's token."""
        return {"Authorization": f"Bearer {self.memory.owner_token().read_text().strip()}"}

    def code(self) -> str:
        """Return the one-time code of a new link."""
        return self.serving.console_link().partition("#code=")[2]

    def session(self) -> tuple[TestClient, dict[str, str]]:
        """Return a browser with a session, and the header that changing calls of it carry."""
        browser = self.browser()
        opened = browser.post("/session", json={"code": self.code()})
        return browser, {CSRF_HEADER: opened.json()["csrf"]}
