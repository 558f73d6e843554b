"""``Client``: the operations of ``Memory`` on a server, and streams of events, exports and imports.

* An operation has the same name, arguments, defaults, results and errors as in ``Memory``. docs/howto/client.md
  lists the few operations on local files that are missing here.
* Nothing is read from the environment. Address and token come from the caller and go only to that server.
* Handles on one server share its connections and differ in tenant and scope. The actor is that of the token.
* Events come in the order of the commits, each once. After a break they continue where they stopped.
* An export file under its final name is complete; see ``durable``. An import is sent once; a broken one is reported.

Late imports: a program that does not need it starts faster.
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
from keepward.client.encoding import ClientDraft
from keepward.client.transport import (
    RETRY_DELAY_S,
    UNREADABLE_ANSWER,
    ResponseBody,
    Transport,
    http_library,
    read_result,
    response_body,
)
from keepward.core.commit import Reason
from keepward.core.copies import ExportPlan, RestoredExport
from keepward.core.principals import Actor, main_scope
from keepward.errors import InvalidInput, StoreError, StoreUnavailable, error_of
from keepward.handles import NAMED_HANDLE_HEADERS, Handles
from keepward.operations import Operation, split_arguments

if TYPE_CHECKING:
    from typing import Self

    from keepward.core.proposal import Proposal, ProposedStep

#: Bytes read from a file at a time.
_CHUNK = 1 << 16
_LINES = "application/x-ndjson"
#: Seconds without data after which an event stream is lost; a server sends a heartbeat every 15 seconds.
_SILENCE_TIMEOUT_S = 60.0
#: Seconds after which an open stream counts as stable, and the maximum delay between two attempts to reconnect.
_STABLE_AFTER_S, _MAX_RETRY_DELAY_S = 1.0, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEvent:
    """A commit, as far as the token may know it: names, no texts."""

    #: Number of the commit; ``events(after=seq)`` continues after it.
    seq: int
    #: Name of the event.
    event: str
    #: Id, operations and tiers.
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLine:
    """The result of one line of an import."""

    #: Number of the line or item, from 1.
    number: int
    #: ``committed``, ``duplicate``, ``quarantined``, ``refused`` or ``failed``.
    outcome: str
    reasons: tuple[Reason, ...] = ()
    #: One sentence: why it was not stored.
    detail: str | None = None


class Client(Handles):
    """A handle on the memories of a server. Threads may share it."""

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
        """Prepare requests to a server; nothing is sent yet.

        Without a token, only what the server allows anonymously works. ``tenant`` and ``scope`` default to those of the
        token. ``timeout`` is in seconds. It limits each step of a request, the longest wait that a server may ask for,
        and how long ``events`` waits for a lost server. ``retries`` is how often a repeatable request is repeated.
        ``transport`` is an httpx2 transport, for example for a proxy or your own certificate authority, or an httpx2
        client, which stays open.

        Raises:
            InvalidInput: the address is not valid, the token would be sent unencrypted to another machine without
                ``allow_insecure``, or the `client` extra is missing.
        """
        self._transport = Transport(
            url, token, timeout=timeout, retries=retries, transport=transport, allow_insecure=allow_insecure
        ).at(tenant, scope)

    @property
    def tenant(self) -> str:
        """The tenant of this handle; by default that of the token, read from the server."""
        return self._transport.tenant or str(self._server_status["tenant"])

    @property
    def scope(self) -> str:
        """The scope of this handle; by default that of the token, read from the server."""
        named = not self._transport.handle_headers and self._transport.scope
        return named or main_scope(str(self._server_status["scope"]))

    @property
    def branch_name(self) -> str | None:
        """The branch of this handle; None on main."""
        return self._transport.handle_headers.get(NAMED_HANDLE_HEADERS["branch"])

    @property
    def actor(self) -> Actor:
        """The actor of the token, read from the server."""
        return read_result(Actor, self._server_status["actor_record"])

    @property
    def now(self) -> datetime:
        """The current time by the clock of the store, read from the server."""
        return read_result(datetime, self._server_status["now"])

    @property
    def head(self) -> str:
        """The name of the newest commit of the tenant: its number, a colon and 16 digits of its hash."""
        return str(self._server_status["head"])

    def __repr__(self) -> str:
        # No request is sent for the defaults of the token.
        return f"<Client {self._transport.url} tenant={self._transport.tenant} scope={self._transport.scope}>"

    def at(self, *, tenant: str | None = None, scope: str | None = None) -> Self:
        """Return a handle at another tenant or scope of the same server.

        The first request checks whether the token reaches it; if not, it raises ``Unauthorised``.
        """
        handle = object.__new__(type(self))
        handle._transport = self._transport.at(tenant, scope)
        return handle

    def _handle_for(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        names: tuple[str, ...] = (),
    ) -> Self:
        handle = object.__new__(type(self))
        handle._transport = self._transport.of(user=user, agent=agent, project=project, names=names)
        return handle

    def branch(self, name: str | None) -> Self:
        handle = object.__new__(type(self))
        handle._transport = self._transport.on(name)
        return handle

    def close(self) -> None:
        """Close the connections for all handles on them."""
        self._transport.close()

    def draft(self, *, reason: str = "", session: str | None = None) -> ClientDraft:
        """Collect changes in a ``with`` block and propose them together at its end. An error discards them."""
        return ClientDraft(self._transport, reason, session)

    def proposed_steps(self, item: Proposal) -> list[ProposedStep]:
        """Return what an approval would store, byte for byte, with every invisible character escaped.

        It is computed locally from the proposal.
        """
        from keepward.services.review.queue import review_steps

        return review_steps(item)

    # --- streams

    def events(self, *, after: int | None = None) -> Iterator[CommitEvent]:
        """Yield commits as they happen, of any process.

        ``after`` is the number of the last known commit, 0 for all; None begins with the next commit.

        Raises:
            StoreUnavailable: the server cannot be reached, or was lost and did not come back within the timeout.
            Unauthorised: the token expired or was revoked.
        """
        transport = self._transport
        # Always send a position, so that no event is missed if the connection breaks before the first one.
        seen = _seq_of_head(self.head) if after is None else after
        #: Whether the server ever answered, when it was lost, and the attempts and the delay since.
        known, lost, attempts, delay = False, transport.clock(), 0, RETRY_DELAY_S
        while True:
            # A stopping server closes the stream; reconnecting shows whether it comes back.
            exc = StoreUnavailable("the server closed the event stream; try again")
            opened: float | None = None
            try:
                for commit in _listen_for_commits(transport, seen):
                    # An event, or a stream that stays open for a while, shows that the server is back.
                    if commit is None:
                        opened, known = transport.clock(), True
                    else:
                        seen, opened = commit.seq, -math.inf
                        yield commit
            except StoreUnavailable as error:
                exc = error
            now = transport.clock()
            if opened is not None and now - opened >= _STABLE_AFTER_S:
                lost, attempts, delay = now, 0, RETRY_DELAY_S
            may_wait = known and transport.retries and now + delay - lost <= transport.timeout
            if attempts >= transport.retries and not may_wait:
                raise exc
            transport.sleep(delay)
            attempts, delay = attempts + 1, min(2 * delay, _MAX_RETRY_DELAY_S)

    def export(self, target: str | Path | IO[str]) -> int:
        """Write every version of every memory of the tenant as JSON lines, oldest first; return their number.

        A file is replaced atomically and only this user can read it. A stream stays open.

        Raises:
            InvalidInput: the path is that of a store on this machine.
            StoreUnavailable: the file cannot be written, or the response was interrupted.
        """
        if not isinstance(target, str | Path):
            return _export(self._transport, target.write)
        path = Path(target).expanduser()
        if path.with_name(path.name + ".id").exists():
            raise InvalidInput(f"{path.name} is a store; name another file for the export")
        try:
            with durable.atomic_replace(path) as out:
                return _export(self._transport, lambda line: out.write(line.encode()))
        except OSError as exc:
            raise StoreUnavailable(f"cannot write {path}: {exc.strerror or 'output error'}") from exc

    def import_(
        self,
        source: str | Path | IO[bytes] | bytes,
        *,
        format: str = "auto",  # noqa: A002  the word people use
        user: str | None = None,
        session: str | None = None,
        untrusted: bool = False,
        on_result: Callable[[ImportedLine], None] | None = None,
    ) -> dict[str, Any]:
        """Import memories from a file, each through the gates; return a summary as JSON values.

        With ``user``, all memories belong to this user; without it, each user of the file gets a scope. The memories of
        a person's import have the trust of a user, unless the file is ``untrusted``. ``on_result``
        is called with the result of each line. The file is read while it is sent.

        Raises:
            InvalidInput: the file cannot be read, here or on the server.
            StoreUnavailable: the connection broke. Import the same file again; nothing is stored twice.
        """
        query = [("format", format), ("user", user), ("session", session), ("untrusted", untrusted or None)]
        headers = {"Content-Type": _LINES, "Accept": _LINES}
        with _open_source(source) as content:
            sending = self._transport.stream("POST", "/memory/import", query=query, content=content, headers=headers)
            with sending as answer:
                for line in answer.iter_lines():
                    message = _parse_line(line) or {}
                    if "error" in message:
                        raise error_of(message["error"]["code"], message["error"].get("detail"))
                    if "summary" in message:
                        return dict(message["summary"])
                    if on_result is not None and "line" in message:
                        on_result(_imported_line(message))
        raise StoreUnavailable("the import was interrupted; import the same file again, nothing is stored twice")

    def plan_restore_export(self, source: str | Path | IO[bytes] | bytes) -> ExportPlan:
        """Return what restoring an export would write, with a digest. Requires the owner."""
        return read_result(ExportPlan, _send_file(self._transport, "/memory/restore-export/plan", source, []))

    def restore_export(self, source: str | Path | IO[bytes] | bytes, digest: str) -> RestoredExport:
        """Restore an export into an empty tenant. ``digest`` is that of its plan. Requires the owner."""
        return read_result(
            RestoredExport, _send_file(self._transport, "/memory/restore-export", source, [("digest", digest)])
        )

    @property
    def _server_status(self) -> ResponseBody:
        return response_body(self._transport.call("GET", "/memory/status"))

    def _send(self, about: Operation, given: dict[str, Any]) -> Any:
        sent, local = split_arguments(about, about.read(given))
        local = {name: value for name, value in local.items() if value is not None}
        if local.pop("kind", "write") != "write":
            raise InvalidInput("`kind` is always 'write' over HTTP: leave it out")
        if "vector" in local:
            raise InvalidInput("a server embeds the query itself: leave `vector` out, and give the query")
        if "predicate" in local:
            raise InvalidInput("a predicate cannot be sent to a server: give the text to look for as `contains`")
        return encoding.call_operation(about, sent, self._transport, **local)


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
    """Yield None when the stream opens, then event commit after a number."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    with transport.stream("GET", "/memory/events", headers=headers, silence=_SILENCE_TIMEOUT_S) as answer:
        yield None
        for event in http_library().EventSource(answer):
            if event.event == "end":
                problem = _parse_line(event.data) or {}
                raise error_of(problem.get("code"), problem.get("detail"), 503)
            if event.id.isdecimal() and event.data:
                yield CommitEvent(seq=int(event.id), event=event.event, facts=_parse_line(event.data) or {})


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
    """Yield the content to send, in chunks."""
    if isinstance(source, bytes):
        yield source
        return
    if not isinstance(source, str | Path):
        yield _pieces(source)
        return
    path = Path(source).expanduser()
    try:
        stream = path.open("rb")
    except OSError as exc:
        raise InvalidInput(f"cannot read {path.name}: {exc.strerror or 'input error'}") from exc
    with stream:
        yield _pieces(stream)


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_CHUNK):
        if not isinstance(piece, bytes):
            raise InvalidInput("an import needs bytes: open the file with mode 'rb'")
        yield piece


def _parse_line(line: str) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise StoreError(UNREADABLE_ANSWER) from exc
    return message if isinstance(message, dict) else None


def _seq_of_head(head: str) -> int:
    number = head.partition(":")[0]
    if not number.isdecimal():
        raise StoreError(UNREADABLE_ANSWER)
    return int(number)


def _imported_line(fields: Mapping[str, Any]) -> ImportedLine:
    line = read_result(ImportedLine, {**fields, "number": fields["line"]})
    detail = "; ".join(reason.detail for reason in line.reasons) or None
    return line if line.detail is not None else replace(line, detail=detail)
