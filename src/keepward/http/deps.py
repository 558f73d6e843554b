"""What routes depend on: the caller's handle, and leave to change something.

    from keepward.http.deps import Handle, Writes
    from keepward.http.route import KeepwardRoute

    router = APIRouter(route_class=KeepwardRoute)

    @router.post("/memory/items", dependencies=[Writes])
    def remember(memory: Handle, body: Item) -> JSONResponse: ...

Invariants
(1) A request acts under its own credential: a token, else a console session, else, where reads are open and the
    path is one of them, as a stranger. Anything else is a 401.
(2) A call of a session that is not a GET carries the session's CSRF token in ``Keepward-Csrf``.
(3) ``Keepward-Tenant`` and ``Keepward-Scope`` move the handle as far as its credential reaches, else 403.
(4) A token is taken from ``Authorization: Bearer`` alone, never from a query.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser

from keepward.app import Memory
from keepward.errors import KeepwardError, Unauthorised
from keepward.http.problems import STATUS, Problem
from keepward.http.serving import Serving
from keepward.http.sessions import Session, same
from keepward.http.strangers import OPEN, Stranger
from keepward.model.trust import PREFIX

CSRF = "Keepward-Csrf"
TENANT = "Keepward-Tenant"
SCOPE = "Keepward-Scope"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_CALLER = "keepward.caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who makes a request."""

    handle: Memory = field(repr=False)
    #: Whose allowance and whose answers these are: the token's id, or the name of who has none.
    principal: str
    #: The session it came by; None for a token.
    session: Session | None = field(default=None, repr=False)


def serving_of(request: Request) -> Serving:
    """Return what the requests of this server share."""
    serving: Serving = request.app.state.serving
    return serving


def handle_of(serving: Serving, headers: Headers, *, method: str = "POST", path: str = "") -> Memory:
    """Return the handle of a request by its headers; reads the store, so call it in a thread.

    Without ``path`` only a token counts, as for `/mcp`.

    Raises:
        Problem: 401 without a credential that holds, 403 where it does not reach, 400 for a wrong name.
    """
    try:
        caller = caller_of(serving, headers, method=method, path=path)
    except KeepwardError as fault:
        raise Problem(STATUS.get(fault.code, 500), fault.code, str(fault)) from fault
    confirm(caller.handle)
    return caller.handle


def caller_of(serving: Serving, headers: Headers, *, method: str, path: str) -> Caller:
    """Return who makes a request; see (1) to (4). Reads the store only for a token that was not seen before.

    Raises:
        Problem, Unauthorised, InvalidInput: as the problems of ``handle_of``.
    """
    session: Session | None = None
    if "authorization" in headers:
        handle = _by_token(serving, _bearer(headers))
    elif path and (session := _session(serving, headers)):
        if method not in _SAFE and not same(headers.get(CSRF, ""), session.csrf):
            raise Problem(403, "csrf", f"a changing call of a session carries its token in {CSRF}; GET /session has it")
        handle = session.handle
    elif serving.options.open_reads and (method, path) in OPEN:
        handle = serving.stranger()
    else:
        raise unauthenticated(wrong=bool(path and session_name(serving, headers)))
    principal = principal_of(handle)
    tenant, scope = headers.get(TENANT), headers.get(SCOPE)
    if tenant is not None or scope is not None:
        if isinstance(handle, Stranger):
            # Nothing binds it to a place, so it stays where it was let in.
            raise Unauthorised("open reads show one tenant and scope; another takes a token")
        handle = handle.at(tenant=tenant, scope=scope)
    return Caller(handle=handle, principal=principal, session=session)


def principal_of(handle: Memory) -> str:
    """Return whose allowance and whose answers a handle's are: the token's id, or the name of who has none."""
    return handle.actor.credential or handle.actor.label


async def identify(request: Request) -> Caller:
    """Return who makes this request; asked once, remembered with it."""
    known: Caller | None = request.scope.get(_CALLER)
    if known is not None:
        return known
    serving, headers = serving_of(request), request.headers
    asked: Any = {"method": request.method, "path": request.scope["path"]}
    token = headers.get("authorization", "").partition(" ")[2].strip()
    if token and serving.known(token) is None:
        caller = await run_in_threadpool(caller_of, serving, headers, **asked)
    else:
        # Nothing is read, so no thread is needed.
        caller = caller_of(serving, headers, **asked)
    request.scope[_CALLER] = caller
    return caller


def confirm(handle: Memory) -> None:
    """See that the credential of a handle still holds; reads the store.

    Raises:
        Problem: it was revoked or has expired: 401.
    """
    try:
        # Asking for anything of the store asks for the token too.
        _ = handle.policy
    except Unauthorised as fault:
        raise unauthenticated(wrong=True) from fault


def unauthenticated(*, wrong: bool = False) -> Problem:
    """Return the problem of a caller without a credential, or with one that does not hold."""
    challenge = 'Bearer realm="keepward"' + (', error="invalid_token"' if wrong else "")
    detail = (
        "this credential does not open this store; ask the owner for a token, or open the link of `keepward serve`"
        if wrong
        else "send a token as `Authorization: Bearer kw_...`; `keepward token create` makes one"
    )
    return Problem(401, "unauthenticated", detail, headers={"WWW-Authenticate": challenge})


def _bearer(headers: Headers) -> str:
    sent = headers.getlist("authorization")
    scheme, _, token = sent[0].partition(" ")
    token = token.strip()
    if len(sent) > 1 or scheme.lower() != "bearer" or not token.startswith(PREFIX) or not token.isascii():
        raise unauthenticated(wrong=True)
    return token


def _by_token(serving: Serving, token: str) -> Memory:
    try:
        return serving.holding(token)
    except Unauthorised as fault:
        raise unauthenticated(wrong=True) from fault


def session_name(serving: Serving, headers: Headers) -> str | None:
    """Return the value of the session's cookie, or None."""
    return cookie_parser(headers.get("cookie", "")).get(serving.cookie)


def _session(serving: Serving, headers: Headers) -> Session | None:
    name = session_name(serving, headers)
    return None if name is None else serving.sessions.find(name)


async def _handle(request: Request) -> Memory:
    return (await identify(request)).handle


async def _writes(request: Request) -> None:
    caller = await identify(request)
    if caller.handle.actor.is_owner:
        return
    wait = serving_of(request).rates.take(caller.principal)
    if wait:
        seconds = max(1, math.ceil(wait))
        raise Problem(
            429,
            "rate_limited",
            f"too many changes in a minute; go on in {seconds} s, or send many at once; "
            "the owner sets how many with `writes_per_minute` under [server]",
            headers={"Retry-After": str(seconds)},
        )


#: The caller's own handle.
Handle = Annotated[Memory, Depends(_handle)]
#: Counts a change; for ``dependencies=[Writes]`` of every changing route.
Writes = Depends(_writes)
