"""``Client``: the operations of ``Memory`` on a server, with the same values and errors; and what comes in a stream.

Invariants
(1) An operation has the name, the arguments and the defaults that it has in ``Memory``; docs/client.md names the few
    that concern files of a machine and are not here.
(2) Nothing is read from the environment: address and token are what the caller says, and go nowhere else.
(3) Handles on one server share its connections; only tenant and scope differ. Who asks is the token's bearer.
(4) Events come in the order of the commits, each once; after a break they go on exactly where they stopped.
(5) An export under its final name is whole, see ``durable``. An import is sent once; one that breaks off says so,
    whatever was told before.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from keepward import durable
from keepward.client import encoding
from keepward.client.encoding import Draft
from keepward.client.transport import RETRY_DELAY_S, ResponseBody, Transport, reading, response_body
from keepward.core.commit import Reason
from keepward.core.copies import ExportPlan, RestoredExport
from keepward.core.principals import Actor
from keepward.core.results import UNREADABLE_ANSWER, error_of, from_json
from keepward.errors import InvalidInput, KeepwardError, StoreError, StoreUnavailable
from keepward.handles import Handles
from keepward.operations import Operation, split_arguments

if TYPE_CHECKING:
    from typing import Self

    from keepward.core.proposal import Proposal, ProposedStep

#: Bytes read from a file at a time.
_CHUNK = 1 << 16
_LINES = "application/x-ndjson"
#: Seconds without a sign of life after which a stream of events is lost; a server gives one every 15.
_SILENCE_TIMEOUT_S = 60.0
#: Seconds that a stream stands before its server counts as one that is back, and the longest between two looks for it.
_STABLE_AFTER_S, _MAX_RETRY_DELAY_S = 1.0, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEvent:
    """A commit that took place, as far as the token may know: names, and no text."""

    #: Number of the commit; ``events(after=seq)`` goes on behind it.
    seq: int
    #: Sort of the event, as the server calls it.
    event: str
    #: What the server tells of it: id, operations, tiers.
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLine:
    """What became of one line of an import."""

    #: Number of the line or item, from 1.
    number: int
    #: ``committed``, ``duplicate``, ``quarantined``, ``refused`` or ``failed``.
    outcome: str
    reasons: tuple[Reason, ...] = ()
    #: One sentence on why it could not be used.
    detail: str | None = None


class Client(Handles):
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
        token's unless named. ``timeout`` is in seconds, for each step of a call, for the longest wait that a server
        may ask for, and for how long ``events`` waits for one that went away; ``retries`` is how often a call is sent
        again that can be. ``transport`` is an httpx2 transport, as for a proxy or an authority of one's own, or a
        whole httpx2 client, which is left open.

        Raises:
            InvalidInput: no address of a server; a token that would travel in the clear to another machine, unless
                ``allow_insecure``; the `client` extra is missing.
        """
        self._way = Transport(
            url, token, timeout=timeout, retries=retries, transport=transport, allow_insecure=allow_insecure
        ).at(tenant, scope)

    @property
    def tenant(self) -> str:
        """The tenant this handle reads and writes; the token's, which is asked for, unless one was named."""
        return self._way.tenant or str(self._server_status["tenant"])

    @property
    def scope(self) -> str:
        """The scope this handle stands at; the token's, which is asked for, unless one was named."""
        named = not self._way.people and self._way.scope
        return named or str(self._server_status["scope"])

    @property
    def actor(self) -> Actor:
        """On whose behalf this handle asks, as the server says."""
        return from_json(Actor, self._server_status["actor_record"])

    @property
    def now(self) -> datetime:
        """The store's clock, as the server says."""
        return from_json(datetime, self._server_status["now"])

    @property
    def head(self) -> str:
        """Name of the tenant's newest commit: its number, a colon, and 16 hex digits of its hash."""
        return str(self._server_status["head"])

    def __repr__(self) -> str:
        # What the token names is not asked for here.
        return f"<Client {self._way.url} tenant={self._way.tenant} scope={self._way.scope}>"

    def at(self, *, tenant: str | None = None, scope: str | None = None) -> Self:
        """Return a handle at another tenant or scope of the same server.

        Whether the token reaches there the server says at the first call: ``Unauthorised`` where it does not.
        """
        moved = object.__new__(type(self))
        moved._way = self._way.at(tenant, scope)
        return moved

    def _handle_for(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        names: tuple[str, ...] = (),
    ) -> Self:
        moved = object.__new__(type(self))
        moved._way = self._way.of(user=user, agent=agent, project=project, names=names)
        return moved

    def close(self) -> None:
        """Close the connections, for all handles on them."""
        self._way.close()

    def draft(self, *, reason: str = "", session: str | None = None) -> Draft:
        """Collect changes in a ``with`` block and propose them together at its end; an error discards them."""
        return Draft(self._way, reason, session)

    def shown(self, item: Proposal) -> list[ProposedStep]:
        """Return what an approval would store, byte for byte, with every invisible character written out.

        It is computed here, from what was read; the server is not asked.
        """
        from keepward.services.review_queue import review_steps

        return review_steps(item)

    # --- streams

    def events(self, *, after: int | None = None) -> Iterator[CommitEvent]:
        """Yield commits as they happen, of this process or another, for as long as the server tells of them.

        ``after`` is the number of the last commit that is known, 0 for all; None begins with what happens next.

        Raises:
            StoreUnavailable: the server was lost and did not come back within the timeout; is not there at all.
            Unauthorised: the token ended.
        """
        way = self._way
        # Named from the start, so that nothing is missed where the connection breaks before the first event.
        seen = _seq_of_head(self.head) if after is None else after
        #: Whether the server was ever heard, when it was lost, and how often and how long it was waited for since.
        known, lost, tries, pause = False, way.clock(), 0, RETRY_DELAY_S
        while True:
            # The server closes it as it stops; whether it comes back is seen by asking.
            fault = StoreUnavailable("the server tells of no more events; try again")
            opened: float | None = None
            try:
                for each in _listen_for_commits(way, seen):
                    # An event, or a stream that stood for a while, is a server that was there again.
                    if each is None:
                        opened, known = way.clock(), True
                    else:
                        seen, opened = each.seq, -math.inf
                        yield each
            except StoreUnavailable as told:
                fault = told
            now = way.clock()
            if opened is not None and now - opened >= _STABLE_AFTER_S:
                lost, tries, pause = now, 0, RETRY_DELAY_S
            waits = known and way.retries and now + pause - lost <= way.timeout
            if tries >= way.retries and not waits:
                raise fault
            way.sleep(pause)
            tries, pause = tries + 1, min(2 * pause, _MAX_RETRY_DELAY_S)

    def export(self, target: str | Path | IO[str]) -> int:
        """Write every version of every memory of the tenant as JSON lines, oldest first; return how many.

        A path is replaced in one step and is readable by its owner alone; a stream is left open.

        Raises:
            InvalidInput: the path is that of a store on this machine.
            StoreUnavailable: the file cannot be written, or the server does not answer to the end.
        """
        if not isinstance(target, str | Path):
            return _export(self._way, target.write)
        path = Path(target).expanduser()
        if path.with_name(path.name + ".id").exists():
            raise InvalidInput(f"{path.name} is a store; name another file for the export")
        try:
            with durable.atomic_replace(path) as out:
                return _export(self._way, lambda line: out.write(line.encode()))
        except OSError as fault:
            raise StoreUnavailable(f"cannot write {path.name}: {fault.strerror or 'output error'}") from fault

    def import_(
        self,
        source: str | Path | IO[bytes] | bytes,
        *,
        format: str = "auto",  # noqa: A002  the word people use
        user: str | None = None,
        session: str | None = None,
        on_result: Callable[[ImportedLine], None] | None = None,
    ) -> dict[str, Any]:
        """Bring memories in from a file, each through the gates; return what came of it, as plain values.

        ``user`` puts all of it into one user; without it each user of the file has a scope.
        ``on_result`` is told what became of each line, as it is known. The file is read as it is sent.

        Raises:
            InvalidInput: it cannot be read, here or there.
            StoreUnavailable: the connection broke; importing the same file again stores nothing twice.
        """
        query = [("format", format), ("user", user), ("session", session)]
        headers = {"Content-Type": _LINES, "Accept": _LINES}
        with _open_source(source) as content:
            sending = self._way.stream("POST", "/memory/import", query=query, content=content, headers=headers)
            with sending as answer:
                for line in answer.iter_lines():
                    found = _parse_line(line) or {}
                    if "error" in found:
                        raise from_json(KeepwardError, found["error"])
                    if "summary" in found:
                        return dict(found["summary"])
                    if on_result is not None and "line" in found:
                        on_result(_imported_line(found))
        raise StoreUnavailable("the import broke off; what was told of is done, so import the same file again")

    def plan_restore_export(self, source: str | Path | IO[bytes] | bytes) -> ExportPlan:
        """Return what bringing an export back as it was would restore, under a digest; for the owner alone."""
        return from_json(ExportPlan, _send_file(self._way, "/memory/restore-export/plan", source, []))

    def restore_export(self, source: str | Path | IO[bytes] | bytes, digest: str) -> RestoredExport:
        """Write an export into an empty tenant as it is, given the digest of its plan; for the owner alone."""
        return from_json(RestoredExport, _send_file(self._way, "/memory/restore-export", source, [("digest", digest)]))

    @property
    def _server_status(self) -> ResponseBody:
        return self._way.get("/memory/status")

    def _send(self, about: Operation, given: dict[str, Any]) -> Any:
        sent, local = split_arguments(about, given)
        local = {name: value for name, value in local.items() if value is not None}
        if local.pop("kind", "write") != "write":
            raise InvalidInput("a call over HTTP is always of kind 'write': leave it out")
        if "predicate" in local:
            raise InvalidInput("a predicate cannot be sent to a server: give the text to look for as `contains`")
        return encoding.execute(about, about.read(sent), self._way, **local)


def _send_file(
    transport: Transport, path: str, source: str | Path | IO[bytes] | bytes, query: list[tuple[str, str]]
) -> Any:
    headers = {"Content-Type": _LINES}
    with (
        _open_source(source) as content,
        transport.stream("POST", path, query=query, content=content, headers=headers) as answer,
    ):
        answer.read()
        return response_body(answer)


def _listen_for_commits(transport: Transport, after: int) -> Iterator[CommitEvent | None]:
    """Yield None once the server tells of events, and then each after that number."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    with transport.stream("GET", "/memory/events", headers=headers, silence=_SILENCE_TIMEOUT_S) as answer:
        yield None
        for each in reading().EventSource(answer):
            if each.event == "end":
                found = _parse_line(each.data) or {}
                raise error_of(found.get("code"), found.get("detail"), 503)
            if each.id.isdecimal() and each.data:
                yield CommitEvent(seq=int(each.id), event=each.event, facts=_parse_line(each.data) or {})


def _export(transport: Transport, write: Callable[[str], object]) -> int:
    count = 0
    with transport.stream("GET", "/memory/export", headers={"Accept": _LINES}) as answer:
        for line in answer.iter_lines():
            if line:
                write(line + "\n")
                count += 1
    return count


@contextlib.contextmanager
def _open_source(source: str | Path | IO[bytes] | bytes) -> Iterator[Any]:
    """Lend what is to be sent, piece by piece."""
    if isinstance(source, bytes):
        yield source
        return
    if not isinstance(source, str | Path):
        yield _pieces(source)
        return
    path = Path(source).expanduser()
    try:
        stream = path.open("rb")
    except OSError as fault:
        raise InvalidInput(f"cannot read {path.name}: {fault.strerror or 'input error'}") from fault
    with stream:
        yield _pieces(stream)


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_CHUNK):
        if not isinstance(piece, bytes):
            raise InvalidInput("an import is read as bytes: open the file with mode 'rb'")
        yield piece


def _parse_line(line: str) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        told = json.loads(line)
    except ValueError as fault:
        raise StoreError(UNREADABLE_ANSWER) from fault
    return told if isinstance(told, dict) else None


def _seq_of_head(head: str) -> int:
    number = head.partition(":")[0]
    if not number.isdecimal():
        raise StoreError(UNREADABLE_ANSWER)
    return int(number)


def _imported_line(fields: Mapping[str, Any]) -> ImportedLine:
    line = from_json(ImportedLine, {**fields, "number": fields["line"], "reasons": fields.get("reasons") or []})
    said = "; ".join(each.detail for each in line.reasons) or None
    return line if line.detail is not None else replace(line, detail=said)
