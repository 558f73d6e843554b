"""Streamable HTTP: routes at exactly `/mcp` for a host application, in both eras.

The host adds the routes to its own and enters the lifespan; a mounted application would answer `/mcp` with a
redirect. Host and origin are the host's to check, as is how much a body may hold beyond the limit named here.

Invariants
(1) Every request is authenticated anew, before anything of it is read; who asks in a session is who began it.
(2) A person cannot be asked here: whoever holds an agent's token could answer for them. What is held stays held.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from keepward.errors import KeepwardError, Unauthorised
from keepward.mcp.profiles import Profile
from keepward.mcp.profiles import profile as profile_of
from keepward.mcp.server import Admit, Context, as_agent, build
from keepward.state import Drafts

if TYPE_CHECKING:
    from keepward.memory import Memory

PATH = "/mcp"
#: Where a request carries its handle from the door to the tool.
_HANDLE = "keepward.handle"
#: Name of the agent that an owner's handle is lowered to.
AGENT = "mcp"

#: Returns the handle of a request, or raises: a `KeepwardError`, or what the host application answers itself.
Authenticate = Callable[[Request], "Memory"]


class Endpoint:
    """The application behind `/mcp`."""

    def __init__(
        self, profile: Profile, authenticate: Authenticate, admit: Admit | None, body_limit: int, stateless: bool
    ) -> None:
        self._authenticate, self._body_limit, self._stateless = authenticate, body_limit, stateless
        self._server = build(profile, _handle_of, admit=admit)
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve for as long as the block lasts; sessions end with it."""
        self._manager = StreamableHTTPSessionManager(
            self._server,
            max_request_body_size=self._body_limit,
            max_sessions=1_000,
            stateless=self._stateless,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        try:
            async with self._manager.run():
                yield
        finally:
            self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._manager is None:
            raise RuntimeError("enter `lifespan(routes)` of keepward.mcp.http around the application")
        try:
            handle = await anyio.to_thread.run_sync(self._known, Request(scope))
        except Unauthorised as fault:
            await _refused(str(fault))(scope, receive, send)
            return
        except KeepwardError as fault:
            await JSONResponse({"error": {"code": fault.code, "message": str(fault)}}, 503)(scope, receive, send)
            return
        inner = {**scope, _HANDLE: handle, "user": _user(handle)}
        await self._manager.handle_request(inner, receive, send)

    def _known(self, request: Request) -> Memory:
        handle = as_agent(self._authenticate(request), AGENT)
        if not handle.actor.able("read"):
            raise Unauthorised
        return handle


def routes(
    memory: Memory,
    *,
    profile: str | Profile = "default",
    authenticate: Authenticate | None = None,
    admit: Admit | None = None,
    body_limit: int = 1 << 20,
    stateless: bool = False,
    drafts: Drafts | None = None,
) -> list[Route]:
    """Return the routes of the protocol, for a host application to add to its own.

    ``authenticate`` is called in a thread for each request; without it a bearer token is asked for and looked up.
    What it raises beside a `KeepwardError` is left to the host. ``admit`` counts the changes of a handle. ``stateless``
    begins no sessions, so that every call may come to another server; edits are begun in ``drafts``.
    """
    chosen = profile_of(profile, drafts) if isinstance(profile, str) else profile
    endpoint = Endpoint(chosen, authenticate or _by_token(memory), admit, body_limit, stateless)
    return [Route(PATH, endpoint=endpoint)]


@asynccontextmanager
async def lifespan(found: Iterable[BaseRoute]) -> AsyncIterator[None]:
    """Run what stands behind these routes for as long as the host application runs; others are passed over."""
    async with AsyncExitStack() as stack:
        for each in found:
            endpoint = getattr(each, "endpoint", None)
            if isinstance(endpoint, Endpoint):
                await stack.enter_async_context(endpoint.running())
        yield


def _by_token(memory: Memory) -> Authenticate:
    def authenticate(request: Request) -> Memory:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise Unauthorised("this server asks for a token: send it as `Authorization: Bearer`")
        return memory.holding(token.strip())

    return authenticate


def _handle_of(ctx: Context) -> Memory:
    request: Any = ctx.request
    handle: Memory = request.scope[_HANDLE]
    return handle


def _user(handle: Memory) -> AuthenticatedUser:
    """Return who a session belongs to: principal, credential, tenant and scope, and nothing that opens a door."""
    actor = handle.actor
    parts = (actor.label, actor.credential or "", handle.tenant, handle.scope)
    name = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return AuthenticatedUser(AccessToken(token=name, client_id=name, scopes=[]))


def _refused(sentence: str) -> JSONResponse:
    return JSONResponse(
        {"error": {"code": Unauthorised.code, "message": sentence}}, 401, headers={"WWW-Authenticate": "Bearer"}
    )
