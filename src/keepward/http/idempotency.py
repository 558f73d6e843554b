"""Idempotency keys: a repeated write returns the result of the first one.

* A key belongs to its actor and tenant while the commit has its content. The store has keyed hashes of the key and the
  request; see ``storage.writer``.
* The same key with another request is refused. A request that committed nothing runs again.
* The response is built from the commit and its receipt, so any server of the store returns it, also after a restart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from keepward import idempotency
from keepward.errors import KeepwardError
from keepward.http.auth import identify, require_valid_credential
from keepward.http.handlers import write_response
from keepward.http.requests import SCOPE_HEADERS, Problem
from keepward.idempotency import IdempotencyKey
from keepward.memory import Memory, request_context_of
from keepward.services.read_taint import actor_key
from keepward.services.writing.write import repeated_outcome

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


async def respond_once(request: Request, inner: Callable[[Request], Awaitable[Response]]) -> Response:
    """Answer a request under its key; a committed result is returned again.

    Raises:
        Problem: the key is not 1 to 255 printable ASCII characters.
        IdempotencyReused: the key was sent with another request.
    """
    name, handle = request.headers[KEY_HEADER], (await identify(request)).handle
    if not _KEY.fullmatch(name):
        raise Problem(400, "bad_request", f"{KEY_HEADER} is 1 to 255 printable ASCII characters")
    key = IdempotencyKey((actor_key(handle.actor), name), await _digest(request))
    before = await run_in_threadpool(_stored_response, handle, key)
    if before is not None:
        return before
    try:
        with idempotency.with_key(key):
            return await inner(request)
    except (KeepwardError, Problem):
        # Another server may have just run the same request.
        before = await run_in_threadpool(_stored_response, handle, key)
        if before is None:
            raise
        return before


async def _digest(request: Request) -> bytes:
    state = hashlib.sha256()
    headers = (request.headers.get(name, "") for name in (*SCOPE_HEADERS, "If-Match", "Content-Type"))
    for part in (request.method, request.scope["path"], str(request.url.query), *headers):
        state.update(part.encode("utf-8", "surrogatepass") + b"\0")
    state.update(await request.body())
    return state.digest()


def _stored_response(handle: Memory, key: IdempotencyKey) -> Response | None:
    require_valid_credential(handle)
    outcome = repeated_outcome(request_context_of(handle), key)
    if outcome is None:
        return None
    response = write_response(outcome)
    response.headers[REPLAYED_HEADER] = "true"
    return response
