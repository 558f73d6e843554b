"""A server in this process: a fresh store, a clock that moves when told, and a few routes that show the frame.

The routes of the API have tests of their own; these stand for any of them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query
from http_fixtures import BASE, Ticks
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from keepward import Actor, Memory, Policy
from keepward.core import results
from keepward.http import ServerOptions, create_app
from keepward.http.app_state import AppState
from keepward.http.auth import CSRF_HEADER, Handle, Writes
from keepward.http.requests import cursor_of, memory_etag, not_modified, page_offset, require_match
from keepward.http.routes import KeepwardRoute

JSON = {"Content-Type": "application/json"}
router = APIRouter(route_class=KeepwardRoute)


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: str
    number: int | None = None
    rest: Any = None


@router.get("/memory/status")
def status(memory: Handle) -> dict[str, Any]:
    return {"actor": memory.actor.label, "tenant": memory.tenant, "scope": memory.scope}


@router.get("/memory/core")
def core(memory: Handle) -> list[str]:
    return [each.text for each in memory.list_memories(tiers=["core"], limit=None)]


@router.get("/memory/search", operation_id="recall")
def search(memory: Handle, query: str, include_sensitive: bool = False) -> list[str]:
    return [each.memory.text for each in memory.recall(query, include_sensitive=include_sensitive)]


@router.post("/memory/compile")
def compiled(memory: Handle, body: Item) -> dict[str, str]:
    return {"text": memory.context(body.text).text}


@router.get("/memory/quarantine")
def queue(memory: Handle) -> list[str]:
    return [each.id for each in memory.pending()]


@router.post("/memory/items", dependencies=[Writes], status_code=201)
def remember(memory: Handle, body: Item) -> JSONResponse:
    outcome = memory.remember(body.text, tier="archival").to_dict()
    return JSONResponse(outcome, 422 if outcome["outcome"] == "refused" else 201)


@router.get("/memory/items/{id}")
def get(request: Request, memory: Handle, id: str) -> Response:  # noqa: A002
    record = memory.get(id)
    tag = memory_etag(record)
    return not_modified(request, tag) or JSONResponse(results.record_as_dict(record), headers={"ETag": tag})


@router.patch("/memory/items/{id}", dependencies=[Writes])
def revise(request: Request, memory: Handle, id: str, body: Item) -> dict[str, Any]:  # noqa: A002
    record = memory.get(id)
    require_match(request, memory_etag(record))
    return memory.revise(id, body.text, reason="test", if_version=record.version).to_dict()


@router.get("/probe")
def page(
    request: Request,
    memory: Handle,
    limit: Annotated[int, Query(ge=1, le=9)] = 2,
    tag: Annotated[list[str] | None, Query()] = None,
    cursor: str | None = None,
) -> dict[str, Any]:
    del memory, tag
    start, _ = page_offset(request, cursor)
    return {"at": start, "cursor": cursor_of(request, start + limit, None)}


@router.post("/memory/erase", dependencies=[Writes])
def erase(memory: Handle) -> dict[str, bool]:
    del memory
    return {"applied": True}


@router.post("/memory/blobs")
async def blob(request: Request, memory: Handle) -> dict[str, int]:
    del memory
    return {"bytes": len(await request.body())}


@router.post("/memory/import", openapi_extra={"x-streaming": True})
async def stream(request: Request, memory: Handle) -> dict[str, int]:
    del memory
    return {"bytes": sum([len(chunk) async for chunk in request.stream()])}


@router.get("/broken")
def broken(memory: Handle) -> None:
    del memory
    raise ZeroDivisionError("quoted memory text")


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
        self.app = create_app(self.memory, options=chosen, serving=self.serving, routers=[router])
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
