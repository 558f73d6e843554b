"""Calls: what every part of the client stands on.

Invariants
(1) Handles on one server share its connections; only tenant and scope differ. Who asks is the token's bearer.
(2) A list is read to the end that was asked for, page after page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from keepward.client.decode import UNREADABLE, decode, decode_hint
from keepward.client.transport import Transport
from keepward.errors import InvalidInput, StoreError
from keepward.model.proposal import Outcome
from keepward.model.trust import Actor, parse_scope, parse_tenant

if TYPE_CHECKING:
    from typing import Self

    import httpx2

#: Most items of one page.
PAGE = 500


class Calls:
    """A tenant and a scope on a server."""

    def __init__(self, transport: Transport, *, tenant: str | None = None, scope: str | None = None) -> None:
        self._transport, self._tenant, self._scope = transport, tenant, scope

    @property
    def tenant(self) -> str:
        """The tenant this handle reads and writes; the token's, which is asked for, unless one was named."""
        return self._tenant or str(self._standing()["tenant"])

    @property
    def scope(self) -> str:
        """The scope this handle stands at; the token's, which is asked for, unless one was named."""
        return self._scope or str(self._standing()["scope"])

    @property
    def actor(self) -> Actor:
        """On whose behalf this handle asks, as the server says."""
        return decode(Actor, self._standing()["actor_record"])

    @property
    def now(self) -> datetime:
        """The store's clock, as the server says."""
        return decode(datetime, self._standing()["now"])

    @property
    def head(self) -> str:
        """Name of the tenant's newest commit: its number, a colon, and 16 hex digits of its hash."""
        return str(self._standing()["head"])

    def at(self, *, tenant: str | None = None, scope: str | None = None) -> Self:
        """Return a handle at another tenant or scope of the same server.

        Whether the token reaches there the server says at the first call: ``Unauthorised`` where it does not.
        """
        moved = object.__new__(type(self))
        Calls.__init__(
            moved,
            self._transport,
            tenant=self._tenant if tenant is None else parse_tenant(tenant),
            scope=self._scope if scope is None else parse_scope(scope),
        )
        return moved

    def close(self) -> None:
        """Close the connections, for all handles on them."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _standing(self) -> Answer:
        return self._get("/memory/status")

    def _headers(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        where = {"Keepward-Tenant": self._tenant, "Keepward-Scope": self._scope}
        return {name: value for name, value in where.items() if value is not None} | dict(given or {})

    def _call(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **sent: Any
    ) -> httpx2.Response:
        """Send one call from here; see ``Transport.call``."""
        return self._transport.call(method, path, headers=self._headers(headers), **sent)

    def _get(self, path: str, query: Iterable[tuple[str, Any]] = (), *, once: bool = False) -> Answer:
        return answer_of(self._call("GET", path, query=query, once=once))

    def _post(
        self, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        return answer_of(self._call("POST", path, body=None if body is None else dict(body), headers=headers))

    def _proposed(self, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None) -> Outcome:
        """Send a write and return its outcome."""
        outcome: Outcome = decode_hint(Outcome, self._post(path, body, headers))
        return outcome

    def _pages(
        self,
        path: str,
        query: Iterable[tuple[str, Any]] = (),
        *,
        limit: int | None = None,
        told: dict[str, Any] | None = None,
    ) -> list[Any]:
        """Return the items of a list, all of them or the first ones; see (2). ``told`` takes up what else it says."""
        found: list[Any] = []
        cursor: str | None = None
        # The size stays the same: a page begins where the one before ended.
        size = PAGE if limit is None else min(PAGE, limit)
        while True:
            answer = self._get(path, [*query, ("limit", size), ("cursor", cursor)])
            found += decode_hint(list[Any], answer["items"])
            if told is not None:
                told.update(answer)
            cursor = answer.get("cursor")
            if cursor is None or (limit is not None and len(found) >= limit):
                return found if limit is None else found[:limit]


class Answer(dict[str, Any]):
    """An object that a server sent; asking it for what is not there says that it is no answer of ours."""

    def __missing__(self, name: str) -> Any:
        raise StoreError(UNREADABLE)


def answer_of(response: httpx2.Response) -> Answer:
    """Return the object that a server sent, an empty one where it sent nothing.

    Raises:
        StoreError: it is something else.
    """
    if not response.content:
        return Answer()
    try:
        told = response.json()
    except ValueError as fault:
        raise StoreError(UNREADABLE) from fault
    if not isinstance(told, dict):
        raise StoreError(UNREADABLE)
    return Answer(told)


def only(name: str, value: str, allowed: str) -> None:
    """See that an argument which a server does not take has the one value it stands for there.

    Raises:
        InvalidInput: it has another.
    """
    if value != allowed:
        raise InvalidInput(f"a call over HTTP is always of {name} {allowed!r}: leave it out")
