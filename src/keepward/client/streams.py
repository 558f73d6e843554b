"""What goes over in a stream: events as they happen, blobs, and a tenant's memories as JSON lines, out and in.

Invariants
(1) Events come in the order of the commits, each once; after a break they go on exactly where they stopped.
(2) An export under its final name is whole, see ``durable``.
(3) An import is sent once. One that breaks off says so, whatever was told before.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from keepward import durable
from keepward.client.transport import Transport, answer_of, reading
from keepward.errors import InvalidInput, KeepwardError, StoreError, StoreUnavailable
from keepward.model.commit import Reason
from keepward.model.copies import ExportPlan, RestoredExport
from keepward.results import UNREADABLE, error_of, from_json, read_json

#: Bytes read from a file at a time.
_CHUNK = 1 << 16
_LINES = "application/x-ndjson"
#: Seconds without a sign of life after which a stream of events is lost; a server gives one every 15.
_SILENCE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """A commit that took place, as far as the token may know: names, and no text."""

    #: Number of the commit; ``events(after=seq)`` goes on behind it.
    seq: int
    #: Sort of the event, as the server calls it.
    event: str
    #: What the server tells of it: id, operations, tiers.
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What became of one line of an import."""

    #: Number of the line or item, from 1.
    number: int
    #: ``committed``, ``duplicate``, ``quarantined``, ``refused`` or ``failed``.
    outcome: str
    reasons: tuple[Reason, ...] = ()
    #: One sentence on why it could not be used.
    detail: str | None = None


def events(way: Transport, after: int | None, head: Callable[[], str]) -> Iterator[Happened]:
    """Yield commits as they happen; ``head`` names the newest one. See ``Client.events``."""
    # Named from the start, so that nothing is missed where the connection breaks before the first event.
    seen = _number(head()) if after is None else after
    lost, retries = 0, way.retries
    while True:
        try:
            for each in _listen(way, seen):
                seen, lost = each.seq, 0
                yield each
        except StoreUnavailable:
            if lost >= retries:
                raise
        else:
            # The server closed it, as it does when it stops; whether it comes back is seen by asking.
            if lost >= retries:
                raise StoreUnavailable("the server tells of no more events; try again")
        way.sleep(0.1 * 2**lost)
        lost += 1


def export(way: Transport, target: str | Path | IO[str]) -> int:
    """Write an export to a path or stream; return how many lines it has. See ``Client.export``."""
    if not isinstance(target, str | Path):
        return _export(way, target.write)
    path = Path(target).expanduser()
    try:
        with durable.replacing(path) as out:
            return _export(way, lambda line: out.write(line.encode()))
    except OSError as fault:
        raise StoreUnavailable(f"cannot write {path.name}: {fault.strerror or 'output error'}") from fault


def import_lines(
    way: Transport,
    source: str | Path | IO[bytes] | bytes,
    query: list[tuple[str, Any]],
    on_result: Callable[[Line], None] | None,
) -> dict[str, Any]:
    """Send a file to be imported; return what came of it. See ``Client.import_``."""
    headers = {"Content-Type": _LINES, "Accept": _LINES}
    with _opened(source) as content:
        sending = way.stream("POST", "/memory/import", query=query, content=content, headers=headers)
        with sending as answer:
            for line in answer.iter_lines():
                found = _parsed(line) or {}
                if "error" in found:
                    raise read_json(KeepwardError, found["error"])
                if "summary" in found:
                    return dict(found["summary"])
                if on_result is not None and "line" in found:
                    on_result(_line(found))
    raise StoreUnavailable("the import broke off; what was told of is done, so import the same file again")


def plan_restore(way: Transport, source: str | Path | IO[bytes] | bytes) -> ExportPlan:
    """Send an export and return what bringing it back would restore."""
    return from_json(ExportPlan, _sent(way, "/memory/restore-export/plan", source, []))


def restore(way: Transport, source: str | Path | IO[bytes] | bytes, digest: str) -> RestoredExport:
    """Send an export to be brought back, by the digest of its plan."""
    return from_json(RestoredExport, _sent(way, "/memory/restore-export", source, [("digest", digest)]))


def _sent(way: Transport, path: str, source: str | Path | IO[bytes] | bytes, query: list[tuple[str, str]]) -> Any:
    headers = {"Content-Type": _LINES}
    with (
        _opened(source) as content,
        way.stream("POST", path, query=query, content=content, headers=headers) as answer,
    ):
        answer.read()
        return answer_of(answer)


def _listen(way: Transport, after: int) -> Iterator[Happened]:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    with way.stream("GET", "/memory/events", headers=headers, silence=_SILENCE) as answer:
        for each in reading().EventSource(answer):
            if each.event == "end":
                found = _parsed(each.data) or {}
                raise error_of(found.get("code"), found.get("detail"), 503)
            if each.id.isdecimal() and each.data:
                yield Happened(seq=int(each.id), event=each.event, facts=_parsed(each.data) or {})


def _export(way: Transport, write: Callable[[str], object]) -> int:
    count = 0
    with way.stream("GET", "/memory/export", headers={"Accept": _LINES}) as answer:
        for line in answer.iter_lines():
            if line:
                write(line + "\n")
                count += 1
    return count


@contextlib.contextmanager
def _opened(source: str | Path | IO[bytes] | bytes) -> Iterator[Any]:
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


def _parsed(line: str) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        told = json.loads(line)
    except ValueError as fault:
        raise StoreError(UNREADABLE) from fault
    return told if isinstance(told, dict) else None


def _number(head: str) -> int:
    number = head.partition(":")[0]
    if not number.isdecimal():
        raise StoreError(UNREADABLE)
    return int(number)


def _line(told: Mapping[str, Any]) -> Line:
    line = from_json(Line, {**told, "number": told["line"], "reasons": told.get("reasons") or []})
    said = "; ".join(each.detail for each in line.reasons) or None
    return line if line.detail is not None else replace(line, detail=said)
