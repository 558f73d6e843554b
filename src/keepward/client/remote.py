"""``Client``: the verbs of ``Memory`` on a server, with the same values and the same errors.

Invariants
(1) A verb has the name, the arguments and the defaults that it has in ``Memory``; docs/client.md names the few that
    concern files of a machine and are not here.
(2) Nothing is read from the environment: address and token are what the caller says, and go nowhere else.
"""

from __future__ import annotations

from typing import Any

from keepward.client.decisions import Decisions
from keepward.client.inquiries import Inquiries
from keepward.client.streams import Streams
from keepward.client.transport import Transport
from keepward.client.writes import Writes
from keepward.model.trust import parse_scope, parse_tenant


class Client(Writes, Decisions, Inquiries, Streams):
    """A handle on the memories of a server; it may be used by many threads."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        tenant: str | None = None,
        scope: str | None = None,
        timeout: float = 30.0,
        retries: int = 2,
        transport: Any = None,
        allow_insecure: bool = False,
    ) -> None:
        """Prepare calls to a server; nothing is sent yet.

        Without a token only what the server opened to everybody is answered. ``tenant`` and ``scope`` are the
        token's unless named. ``timeout`` is in seconds, for each step of a call and for the longest wait that a
        server may ask for; ``retries`` is how often a call is sent again that can be. ``transport`` is an httpx2
        transport, as for a proxy or an authority of one's own, or a whole httpx2 client, which is left open.

        Raises:
            InvalidInput: no address of a server; a token that would travel in the clear to another machine, unless
                ``allow_insecure``; the `client` extra is missing.
        """
        way = Transport.open(
            url, token, timeout=timeout, retries=retries, transport=transport, allow_insecure=allow_insecure
        )
        super().__init__(
            way,
            tenant=None if tenant is None else parse_tenant(tenant),
            scope=None if scope is None else parse_scope(scope),
        )
