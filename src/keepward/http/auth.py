"""Authentication: the actor of a request, by token, login session or anonymous read.

* A request acts under its token (``Authorization: Bearer`` only), else its login session, else as anonymous reader
  if the server allows it for this path. Otherwise it gets 401.
* A one-time code opens one login session within ten minutes. A session lasts twelve hours, while its token is valid:
  the owner's, or that of the reviewer who requested the code. Only the SHA-256 of codes and sessions is stored.
* After ten wrong codes in a minute, from any clients, further wrong codes are refused for a minute. A correct code
  still works: it has 192 bits, so many guesses reveal nothing.
* A request of a session other than GET needs the CSRF token of the session in ``Keepward-Csrf``.
* An anonymous reader reads status, core blocks, search and contexts, nothing sensitive, and changes nothing.
* ``Keepward-Tenant``, ``Keepward-Scope``, ``Keepward-Project``, ``Keepward-User``, ``Keepward-Agent`` and
  ``Keepward-Branch`` select a handle within the reach of the credential, else 403.
* Secrets are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser

from keepward.core.principals import TOKEN_PREFIX, Actor, ActorKind, Role
from keepward.errors import InvalidInput, KeepwardError, Unauthorised
from keepward.handles import NAMED_HANDLE_HEADERS, NAMES_HEADER
from keepward.http.login_sessions import LoginSession, _text
from keepward.http.requests import SCOPE, SCOPE_HEADERS, TENANT, Problem, problem_of
from keepward.memory import Memory, inspection_handle
from keepward.services.read_taint import actor_key
from keepward.services.tokens import TOKEN_REFUSED

if TYPE_CHECKING:
    from keepward.http.app_state import AppState

CSRF_HEADER = "Keepward-Csrf"
#: A mistyped one would be ignored, and its request would reach another scope.
_OUR_HEADERS = frozenset(name.lower() for name in (*SCOPE_HEADERS, NAMES_HEADER, CSRF_HEADER))
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_CALLER = "keepward.caller"


def csrf_token_of(name: str) -> str:
    """Return the CSRF token of a login session from its name, which scripts cannot read."""
    return _text(hashlib.sha256(b"keepward/csrf/v1\0" + name.encode("utf-8", "surrogatepass")).digest())


#: The reads of ``open_reads``, by method and path.
ANONYMOUS_READS = frozenset(
    {
        *(("GET", f"/memory/{name}") for name in ("status", "core", "search")),
        *(("POST", f"/memory/{name}") for name in ("compile", "call/status", "call/recall", "call/context")),
    }
)
#: It may not read sensitive memories.
_ANONYMOUS_READER = Actor(kind=ActorKind.AGENT, name="stranger", rights=Role.AGENT, can=("read",))
#: Why a login session ended whose token is no longer valid.
_SESSION_ENDED = "the token of this session was revoked or has expired; ask the owner for another, or open a new link"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The actor of a request."""

    handle: Memory = field(repr=False)
    #: The login session and its name; None for a token.
    session: LoginSession | None = field(default=None, repr=False)
    name: str = field(default="", repr=False)


def app_state_of(request: Request) -> AppState:
    """Return the shared state of this server."""
    serving: AppState = request.app.state.serving
    return serving


def handle_of(serving: AppState, headers: Headers) -> Memory:
    """Return the handle of a request with a token, as for `/mcp`. It reads the store, so call it in a thread.

    Raises:
        Problem: 401 without a valid credential, 403 if it does not reach the tenant or scope, 400 for an invalid name.
    """
    try:
        caller = caller_of(serving, headers)
    except KeepwardError as exc:
        raise problem_of(exc) from exc
    require_valid_credential(caller.handle)
    return caller.handle


def caller_of(serving: AppState, headers: Headers, *, method: str = "POST", path: str = "") -> Caller:
    """Return the actor of a request. The store is read only for a token that is not cached.

    Without ``path``, only a token counts.
    """
    session: LoginSession | None = None
    name = cookie_parser(headers.get("cookie", "")).get(serving.cookie) if path else None
    if "authorization" in headers:
        handle = _by_token(serving, headers)
    elif name and (session := serving.sessions.find(name)):
        try:
            handle = inspection_handle(serving.session_handle(session.credential))
        except Unauthorised as exc:
            # Whoever has the session had the token: this reveals nothing.
            raise unauthenticated(wrong=True, detail=_SESSION_ENDED) from exc
        if method not in _SAFE and not _same(headers.get(CSRF_HEADER, ""), csrf_token_of(name)):
            raise Problem(
                403, "csrf", f"a change by a login session needs its token in {CSRF_HEADER}; GET /session returns it"
            )
    elif serving.options.open_reads and (method, path) in ANONYMOUS_READS:
        if any(name in headers for name in (*SCOPE_HEADERS, NAMES_HEADER)):
            raise Unauthorised("anonymous reads see one tenant and scope; another needs a token")
        handle = serving.memory.as_actor(_ANONYMOUS_READER)
    else:
        raise unauthenticated(wrong=name is not None)
    if handle.actor.credential is not None:
        serving.used[handle.actor.credential] = serving.monotonic()
    if unknown := sorted({name for name in headers if name.startswith("keepward-")} - _OUR_HEADERS):
        raise InvalidInput(f"there is no header {unknown[0]}: the headers are {', '.join(sorted(_OUR_HEADERS))}")
    tenant, scope = headers.get(TENANT), headers.get(SCOPE)
    if tenant is not None or scope is not None:
        handle = handle.at(tenant=tenant, scope=scope)
    if any(name in headers for name in (*NAMED_HANDLE_HEADERS.values(), NAMES_HEADER)):
        handle = _handle_for_names(handle, headers)
    return Caller(handle=handle, session=session, name=name or "")


def _handle_for_names(handle: Memory, headers: Headers) -> Memory:
    """Return the handle of the project, user, agent and branch in the headers."""
    if any(len(headers.getlist(name)) > 1 for name in (*NAMED_HANDLE_HEADERS.values(), NAMES_HEADER)):
        raise InvalidInput("a request may name one user, one agent, one project and one branch, each header once")
    user, agent, project, branch = map(headers.get, NAMED_HANDLE_HEADERS.values())
    if project is not None:
        handle = handle.project(project)
    if user is not None:
        names = [unquote(name) for name in headers.get(NAMES_HEADER, "").split(",") if name]
        handle = handle.user(user, names=names)
    if agent is not None:
        handle = handle.agent(agent)
    return handle if branch is None else handle.branch(branch)


def _by_token(serving: AppState, headers: Headers) -> Memory:
    sent = headers.getlist("authorization")
    scheme, _, token = sent[0].partition(" ")
    token = token.strip()
    if len(sent) > 1 or scheme.lower() != "bearer" or not token.startswith(TOKEN_PREFIX) or not token.isascii():
        raise unauthenticated(wrong=True)
    try:
        return serving.handle_of_token(token)
    except Unauthorised as exc:
        raise unauthenticated(wrong=True, detail="" if str(exc) == TOKEN_REFUSED else str(exc)) from exc


async def identify(request: Request) -> Caller:
    """Return the actor of this request, cached in the request."""
    known: Caller | None = request.scope.get(_CALLER)
    if known is not None:
        return known
    serving, headers = app_state_of(request), request.headers
    params: Any = {"method": request.method, "path": request.scope["path"]}
    token = headers.get("authorization", "").partition(" ")[2].strip()
    if serving.cached_handle(token) is None if token else serving.is_one_of_many:
        caller = await run_in_threadpool(caller_of, serving, headers, **params)
    else:
        # The store is not read, so no thread is needed.
        caller = caller_of(serving, headers, **params)
    request.scope[_CALLER] = caller
    return caller


def require_valid_credential(handle: Memory) -> None:
    """Raise 401 unless the credential of a handle is valid; reads the store."""
    try:
        # Any access to the store checks the token.
        _ = handle.policy
    except Unauthorised as exc:
        raise unauthenticated(wrong=True) from exc


def unauthenticated(*, wrong: bool = False, detail: str = "") -> Problem:
    """Return the problem of a request without a credential, or with an invalid one; ``detail`` says why it is."""
    challenge = 'Bearer realm="keepward"' + (', error="invalid_token"' if wrong else "")
    detail = detail or (
        "this credential does not open this store; ask the owner for a token, or open the link of `keepward serve`"
        if wrong
        else "send a token as `Authorization: Bearer kw_...`; `keepward token create` makes one"
    )
    return Problem(401, "unauthenticated", detail, headers={"WWW-Authenticate": challenge})


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode("ascii"))


async def count_write(request: Request) -> None:
    """Count a change of the caller.

    Raises:
        Problem: 429, too many changes in a minute.
    """
    caller = await identify(request)
    if caller.handle.actor.is_owner:
        return
    serving = app_state_of(request)
    wait = await serving.call_state(serving.rates.take, actor_key(caller.handle.actor))
    if wait:
        seconds = max(1, math.ceil(wait))
        detail = (
            f"too many changes in a minute; continue in {seconds} s, or send many items in one request; "
            "the owner sets the limit as `writes_per_minute` under [server]"
        )
        raise Problem(429, "rate_limited", detail, headers={"Retry-After": str(seconds)})
