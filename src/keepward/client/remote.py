"""``Client``: the verbs of ``Memory`` on a server, with the same values and the same errors.

Invariants
(1) A verb has the name, the arguments and the defaults that it has in ``Memory``; docs/client.md names the few that
    concern files of a machine and are not here.
(2) Nothing is read from the environment: address and token are what the caller says, and go nowhere else.
(3) Handles on one server share its connections; only tenant and scope differ. Who asks is the token's bearer.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from keepward.calls.govern import Govern
from keepward.calls.use import Use
from keepward.client import streams, wire
from keepward.client.streams import Happened, Line
from keepward.client.transport import Answer, Transport
from keepward.client.wire import Draft
from keepward.model.trust import Actor
from keepward.results import from_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from keepward.model.copies import ExportPlan, RestoredExport
    from keepward.model.proposal import Shown, Waiting
    from keepward.verbs import Request


class Client(Use, Govern):
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
        self._way = Transport.open(
            url, token, timeout=timeout, retries=retries, transport=transport, allow_insecure=allow_insecure
        ).at(tenant, scope)

    @property
    def tenant(self) -> str:
        """The tenant this handle reads and writes; the token's, which is asked for, unless one was named."""
        return self._way.tenant or str(self._standing["tenant"])

    @property
    def scope(self) -> str:
        """The scope this handle stands at; the token's, which is asked for, unless one was named."""
        return self._way.scope or str(self._standing["scope"])

    @property
    def actor(self) -> Actor:
        """On whose behalf this handle asks, as the server says."""
        return from_json(Actor, self._standing["actor_record"])

    @property
    def now(self) -> datetime:
        """The store's clock, as the server says."""
        return from_json(datetime, self._standing["now"])

    @property
    def head(self) -> str:
        """Name of the tenant's newest commit: its number, a colon, and 16 hex digits of its hash."""
        return str(self._standing["head"])

    def at(self, *, tenant: str | None = None, scope: str | None = None) -> Self:
        """Return a handle at another tenant or scope of the same server.

        Whether the token reaches there the server says at the first call: ``Unauthorised`` where it does not.
        """
        moved = object.__new__(type(self))
        moved._way = self._way.at(tenant, scope)
        return moved

    def close(self) -> None:
        """Close the connections, for all handles on them."""
        self._way.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def draft(self, *, reason: str, session: str | None = None) -> Draft:
        """Collect changes in a ``with`` block and propose them together at its end; an error discards them."""
        return Draft(self._way, reason, session)

    def shown(self, item: Waiting) -> list[Shown]:
        """Return what an approval would store, byte for byte, with every invisible character written out.

        It is computed here, from what was read; the server is not asked.
        """
        from keepward.engine.review import for_review

        return for_review(item)

    # --- streams

    def events(self, *, after: int | None = None) -> Iterator[Happened]:
        """Yield commits as they happen, of this process or another, for as long as the server tells of them.

        ``after`` is the number of the last commit that is known, 0 for all; None begins with what happens next.

        Raises:
            StoreUnavailable: the server was lost and did not come back.
            Unauthorised: the token ended.
        """
        return streams.events(self._way, after, lambda: self.head)

    def export(self, target: str | Path | IO[str]) -> int:
        """Write every version of every memory of the tenant as JSON lines, oldest first; return how many.

        A path is replaced in one step and is readable by its owner alone; a stream is left open.
        """
        return streams.export(self._way, target)

    def import_(
        self,
        source: str | Path | IO[bytes] | bytes,
        *,
        format: str = "auto",  # noqa: A002  the word people use
        session: str | None = None,
        on_result: Callable[[Line], None] | None = None,
    ) -> dict[str, Any]:
        """Bring memories in from a file, each through the gates; return what came of it, as plain values.

        ``on_result`` is told what became of each line, as it is known. The file is read as it is sent.

        Raises:
            InvalidInput: it cannot be read, here or there.
            StoreUnavailable: the connection broke; importing the same file again stores nothing twice.
        """
        return streams.import_lines(self._way, source, [("format", format), ("session", session)], on_result)

    def plan_restore_export(self, source: str | Path | IO[bytes] | bytes) -> ExportPlan:
        """Return what bringing an export back as it was would restore, under a digest; for the owner alone."""
        return streams.plan_restore(self._way, source)

    def restore_export(self, source: str | Path | IO[bytes] | bytes, digest: str) -> RestoredExport:
        """Write an export into an empty tenant as it is, given the digest of its plan; for the owner alone."""
        return streams.restore(self._way, source, digest)

    @property
    def _standing(self) -> Answer:
        return self._way.get("/memory/status")

    def _send(self, request: Request[Any], **local: Any) -> Any:
        return wire.carry_out(request, self._way, **{name: value for name, value in local.items() if value is not None})
