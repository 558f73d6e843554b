"""Cursors: where the next page of a list begins.

Invariants
(1) A cursor belongs to one query: path, parameters other than ``cursor`` and ``limit``, tenant and scope. With any
    other it is refused.
(2) It holds no content: what a route puts in is numbers, ids and names of heads. It gives no rights either: what
    it leads to is asked for under the caller's own.
(3) It survives a restart of the server.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from keepward.http.deps import SCOPE, TENANT
from keepward.http.problems import Problem

#: Longest cursor, in characters.
LONGEST = 512
_SUM = 12
_OWN = frozenset({"cursor", "limit"})


def encode_cursor(request: Request, position: Mapping[str, int | str | None]) -> str:
    """Return the cursor of a position in the answer to a request: base64url text."""
    payload = json.dumps(dict(position), sort_keys=True, separators=(",", ":")).encode("ascii")
    return base64.urlsafe_b64encode(_sum(request, payload) + payload).rstrip(b"=").decode("ascii")


def decode_cursor(request: Request, cursor: str) -> dict[str, Any]:
    """Return the position that a cursor of the same query stands for.

    Raises:
        Problem: it was changed, or is of another query: 400.
    """
    try:
        if len(cursor) > LONGEST:
            raise ValueError("too long")
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        given, payload = data[:_SUM], data[_SUM:]
        if not hmac.compare_digest(given, _sum(request, payload)):
            raise ValueError("another query")
        position = json.loads(payload)
    except (ValueError, binascii.Error) as fault:
        raise Problem(400, "bad_cursor", "the cursor is not of this query; begin again without one") from fault
    return dict(position)


def _sum(request: Request, payload: bytes) -> bytes:
    asked = sorted((name, value) for name, value in request.query_params.multi_items() if name not in _OWN)
    query = json.dumps([request.url.path, asked, request.headers.get(TENANT), request.headers.get(SCOPE)])
    return hashlib.sha256(b"keepward/cursor/v1\0" + query.encode("ascii") + b"\0" + payload).digest()[:_SUM]
