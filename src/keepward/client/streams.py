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
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from keepward import durable
from keepward.client import wire
from keepward.client.calls import Calls, answer_of
from keepward.client.decode import UNREADABLE, decode, decode_hint, error_of
from keepward.client.transport import path_of, reading
from keepward.errors import InvalidInput, KeepwardError, StoreError, StoreUnavailable, Tampered
from keepward.model.blob import Blob, parse_ref, ref_of
from keepward.model.commit import Reason

if TYPE_CHECKING:
    from keepward.model.copies import ExportPlan, RestoredExport

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


class Streams(Calls):
    """Events, blobs, export, import."""

    def events(self, *, after: int | None = None) -> Iterator[Happened]:
        """Yield commits as they happen, of this process or another, for as long as the server tells of them.

        ``after`` is the number of the last commit that is known, 0 for all; None begins with what happens next.

        Raises:
            StoreUnavailable: the server was lost and did not come back.
            Unauthorised: the token ended.
        """
        # Named from the start, so that nothing is missed where the connection breaks before the first event.
        seen = _number(self.head) if after is None else after
        lost = 0
        while True:
            try:
                for each in self._listen(seen):
                    seen, lost = each.seq, 0
                    yield each
            except StoreUnavailable:
                if lost >= self._transport.retries:
                    raise
            else:
                # The server closed it, as it does when it stops; whether it comes back is seen by asking.
                if lost >= self._transport.retries:
                    raise StoreUnavailable("the server tells of no more events; try again")
            self._transport.sleep(0.1 * 2**lost)
            lost += 1

    def put_blob(self, data: bytes, *, media_type: str | None = None) -> Blob:
        """Keep 1 byte to 32 MB, for memories to refer to: ``remember("what it shows", blob=blob.ref)``."""
        if not isinstance(data, bytes):
            raise InvalidInput("a blob is made of bytes")
        headers = {"Content-Type": media_type or "application/octet-stream"}
        return decode(Blob, answer_of(self._call("POST", "/memory/blobs", content=data, headers=headers)))

    def blob(self, ref: str) -> Blob:
        """Return size and media type of a blob that a live memory within reach refers to, or that one has put."""
        return decode(Blob, self._get(path_of("blobs", parse_ref(ref), "about")))

    def read_blob(self, ref: str) -> bytes:
        """Return the bytes of a blob, compared with its hash here as well.

        Raises:
            Tampered: they are not those that the name stands for.
        """
        data: bytes = self._call("GET", path_of("blobs", parse_ref(ref)), headers={"Accept": "*/*"}).content
        if ref_of(data) != ref:
            raise Tampered("the bytes are not those that were put")
        return data

    def export(self, target: str | Path | IO[str]) -> int:
        """Write every version of every memory of the tenant as JSON lines, oldest first; return how many.

        A path is replaced in one step and is readable by its owner alone; a stream is left open.
        """
        if not isinstance(target, str | Path):
            return self._export(target.write)
        path = Path(target).expanduser()
        try:
            with durable.replacing(path) as out:
                return self._export(lambda line: out.write(line.encode()))
        except OSError as fault:
            raise StoreUnavailable(f"cannot write {path.name}: {fault.strerror or 'output error'}") from fault

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
        query = [("format", format), *wire.present(session=session).items()]
        headers = self._headers({"Content-Type": _LINES, "Accept": _LINES})
        with _opened(source) as content:
            way = self._transport.stream("POST", "/memory/import", query=query, content=content, headers=headers)
            with way as answer:
                for line in answer.iter_lines():
                    told = _parsed(line) or {}
                    if "error" in told:
                        raise decode_hint(KeepwardError, told["error"])
                    if "summary" in told:
                        return dict(told["summary"])
                    if on_result is not None and "line" in told:
                        on_result(_line(told))
        raise StoreUnavailable("the import broke off; what was told of is done, so import the same file again")

    def plan_restore_export(self, source: str | Path | IO[bytes] | bytes) -> ExportPlan:
        """Return what bringing an export back as it was would restore, under a digest; for the owner alone."""
        from keepward.model.copies import ExportPlan

        return decode(ExportPlan, self._sent("/memory/restore-export/plan", source, []))

    def restore_export(self, source: str | Path | IO[bytes] | bytes, digest: str) -> RestoredExport:
        """Write an export into an empty tenant as it is, given the digest of its plan; for the owner alone."""
        from keepward.model.copies import RestoredExport

        return decode(RestoredExport, self._sent("/memory/restore-export", source, [("digest", digest)]))

    def _sent(self, path: str, source: str | Path | IO[bytes] | bytes, query: list[tuple[str, str]]) -> Any:
        headers = self._headers({"Content-Type": _LINES})
        with _opened(source) as content:
            way = self._transport.stream("POST", path, query=query, content=content, headers=headers)
            with way as answer:
                return json.loads("".join(answer.iter_lines()))

    def _listen(self, after: int) -> Iterator[Happened]:
        headers = self._headers({"Accept": "text/event-stream", "Last-Event-ID": str(after)})
        with self._transport.stream("GET", "/memory/events", headers=headers, silence=_SILENCE) as answer:
            for each in reading().EventSource(answer):
                if each.event == "end":
                    told = _parsed(each.data) or {}
                    raise error_of(told.get("code"), told.get("detail"), 503)
                if each.id.isdecimal() and each.data:
                    yield Happened(seq=int(each.id), event=each.event, facts=_parsed(each.data) or {})

    def _export(self, write: Callable[[str], object]) -> int:
        count = 0
        headers = self._headers({"Accept": _LINES})
        with self._transport.stream("GET", "/memory/export", headers=headers) as answer:
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
    reasons = decode_hint(tuple[Reason, ...], told.get("reasons") or [])
    detail = told.get("detail")
    if detail is None and reasons:
        detail = "; ".join(each.detail for each in reasons)
    number, outcome = decode_hint(int, told["line"]), decode_hint(str, told.get("outcome"))
    return Line(number=number, outcome=outcome, reasons=reasons, detail=detail)
