"""Streams: commits as they come, export and import line by line, and the bytes of blobs.

Invariants
(1) The id of an event is the number of its commit. Whoever names the last one it saw gets every later one that it
    may see, in order, each once; commits of other processes too. An event says which memories were touched and how:
    ids, operations, tiers; never a text or a reason. Of the review queue it says, to who may decide and asked for it,
    that it changed. It ends when its credential no longer holds, and with the server.
(2) What hands over results one by one works in one thread of its own, for a reader of the store belongs to its thread.
    What fails before the first result is an error of the call; what fails later ends the answer. When the reader goes
    away, the work is told at its next result; what it had done stays done.
(3) An export that breaks off ends without its last lines; its first line names the head that it must end in.
(4) An import is read to its end before anything of it is stored, so that a file that was cut stores nothing; each line
    then has an answer of its own. Until its lines are judged it is held in memory, and no byte of it is in a file.
(5) A blob is handed over and never shown: an attachment of its own type, or of none where a browser might run it.
"""

from __future__ import annotations

import asyncio
import io
import json
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Annotated, Any

from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from keepward.core import plain
from keepward.core.journal import CommitView
from keepward.errors import KeepwardError, NotFound
from keepward.http.answers import Call, failure, json_response, over_http, shape
from keepward.http.credentials import serving_of
from keepward.http.reading import Problem, etag_of_text, not_modified, seq_of
from keepward.http.serving import RELEASED, Serving
from keepward.interchange import load, plan_restore_export, restore_export, write_vault
from keepward.interchange.imports import Format
from keepward.interchange.run import Result
from keepward.memory import Memory, queue_mark, session_of
from keepward.services import blobs
from keepward.types import Limit, Word

#: Seconds between two looks at the head, and between two signs of life.
LOOK = 0.5
HEARTBEAT = 15
#: Seconds after which the head is looked at where the database tells of commits and has told of none.
QUIET = 10
#: Commits that are read in one go.
BATCH = 100
#: Results that may wait for a slow reader.
AHEAD = 64

STREAMING = "x-streaming"
NDJSON = "application/x-ndjson"
UNKNOWN = "application/octet-stream"
LINES = {NDJSON: {"schema": {"type": "string", "description": "JSON values, one a line."}}}
_SENT = {"type": "string", "minLength": 1, "description": "Lines of the format; what is empty is no import."}
#: What the description says of the body of a call that brings a file.
FILE = {
    STREAMING: True,
    "requestBody": {"required": True, "content": {NDJSON: {"schema": _SENT}, "text/plain": {"schema": _SENT}}},
}
BYTES = {
    "requestBody": {
        "content": {UNKNOWN: {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
        "required": True,
    }
}
EXPORTED = {"description": "One memory version a line, oldest first.", "content": LINES}
IMPORTED = {
    "description": "What became of each line, as it is known; the last line has `summary`, or `error`.",
    "content": LINES,
}
TOLD = {
    "description": "`event: commit`, `id:` the commit's number, `data:` an object; `event: review` where it was asked "
    "for; `event: end` says why.",
    "content": {"text/event-stream": {}},
}
READ = {"description": "The bytes.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
Ref = Annotated[str, Limit("As `POST /memory/blobs` gave it.", pattern=r"^sha256:[0-9a-f]{64}$")]
Seen = Annotated[int, Limit("Number of the last commit that was seen.", minimum=0, maximum=2**53)]


@over_http("GET /memory/events", name="events", right="read")
def about_events(self: Any, *, after: Seen | None = None, reviews: bool = False) -> Any:
    """Return commits as they come: ids, operations and tiers of what the caller may see, no text.

    Without `after` or `Last-Event-ID` it begins with what comes next. With `reviews` it also says when the review queue
    changed, to whoever may decide: `event: review`, with how many wait.
    """


@over_http("GET /memory/export", name="export", right="owner")
def about_export(self: Any) -> Any:
    """Return every version of every memory of the tenant, for the owner alone; `restore-export` brings it back."""


@over_http("POST /memory/import", name="import", right="propose")
def about_import(
    self: Any,
    *,
    format: Format = "auto",  # noqa: A002  the word people use
    user: Annotated[Word, Limit("Put all of it into this user; without one, each user of the file has a scope.")]
    | None = None,
    session: Word | None = None,
    name: Word | None = None,
    facts: bool = False,
    subject: Word | None = None,
    dry_run: bool = False,
) -> Any:
    """Bring memories in, each through the gates, those of an export too; it counts as one change.

    The body is a file of any system that `keepward import` knows: lines, a document, or the bytes of a zip archive or
    of a SQLite file. Where the caller goes away half way, what was stored stays, and sending all of it again stores
    nothing twice.
    """


@over_http("POST /memory/restore-export/plan", name="plan_restore_export", right="owner", changes=True)
def about_plan_restore_export(self: Any) -> Any:
    """Return what bringing an export of one's own back would restore, under a digest; for the owner alone."""


@over_http("POST /memory/restore-export", name="restore_export", right="owner")
def about_restore_export(self: Any, *, digest: Annotated[str, Limit(pattern=r"^[0-9a-f]{64}$")]) -> Any:
    """Write an export into an empty tenant as it is, given the digest of its plan; for the owner alone."""


def events(call: Call) -> Response:
    serving, last = serving_of(call.http), call.beside["last_event_id"]
    newest = seq_of(call.memory.head)
    start = int(last) if last is not None else call.given.get("after")
    if start is not None and start > newest:
        raise NotFound("there is no such commit yet; the `head` of GET /memory/status begins with the newest")
    begin, reviews = newest if start is None else start, bool(call.given.get("reviews"))
    body = _commits(call.memory, serving, begin, reviews=reviews)
    return EventSourceResponse(
        body,
        ping=HEARTBEAT,
        ping_message_factory=lambda: ServerSentEvent(comment="still here"),
        # It sees by itself that the server stops, and ends its answer; one that is cut off is an error in the log.
        shutdown_grace_period=4 * LOOK,
    )


async def _commits(memory: Memory, serving: Serving, seq: int, *, reviews: bool) -> AsyncIterator[ServerSentEvent]:
    # A database tells of commits, and a proposal is none.
    news = _News(memory.tenant, serving, quiet=2 * LOOK if reviews else QUIET)
    mark: tuple[int, ...] | None = None
    try:
        # The head of the answer goes out with the first piece; a comment lets the caller know that it is heard.
        yield ServerSentEvent(comment="commits after " + str(seq))
        while not serving.stopping.is_set():
            news.begin()
            try:
                found, seq = await run_in_threadpool(_later, memory, seq)
                before, mark = mark, await run_in_threadpool(queue_mark, memory) if reviews else None
            except KeepwardError as fault:
                yield _event("end", {"code": fault.code, "detail": str(fault)})
                return
            for view in found:
                told = view.to_dict()
                data = {name: told[name] for name in ("seq", "id", "at", "kind", "actor", "changes")}
                yield _event("commit", data, view.commit.seq)
            if before is not None and mark is not None and before != mark:
                yield _event("review", {"waiting": mark[0]})
            if not found:
                await news.wait()
    finally:
        news.close()


class _News:
    """Waits for a commit of a tenant: until the database tells of one, or where it does not, for a while."""

    def __init__(self, tenant: str, serving: Serving, *, quiet: float) -> None:
        self._tenant, self._serving, self._quiet = tenant, serving, quiet
        self._loop, self._heard = asyncio.get_running_loop(), asyncio.Event()
        self._hearing = ExitStack()
        if serving.shares is not None:
            self._hearing.enter_context(serving.shares.hearing(self._hear))

    def _hear(self, tenant: str) -> None:
        if tenant in {"", self._tenant}:
            with suppress(RuntimeError):
                # The loop has ended, and the stream with it.
                self._loop.call_soon_threadsafe(self._heard.set)

    def begin(self) -> None:
        """Wait from here on for what is committed after this."""
        self._heard.clear()

    async def wait(self) -> None:
        """Return once it may be worth while to look."""
        shares, until = self._serving.shares, self._loop.time() + self._quiet
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._heard.wait(), LOOK)
            quiet = shares is not None and shares.hears and self._loop.time() < until
            if self._heard.is_set() or self._serving.stopping.is_set() or not quiet:
                return

    def close(self) -> None:
        self._hearing.close()


def _later(memory: Memory, seq: int) -> tuple[list[CommitView], int]:
    """Return commits after a number that the handle may see, oldest first, and the number of the last one looked at."""
    newest = seq_of(memory.head)
    found: list[CommitView] = []
    while seq < newest and len(found) < BATCH:
        seq += 1
        try:
            found.append(memory.show(str(seq)))
        except NotFound:
            # Nothing in it is within the caller's reach.
            continue
    return found, seq


def _event(kind: str, data: dict[str, Any], seq: int | None = None) -> ServerSentEvent:
    text = json.dumps(data, separators=(",", ":"))
    return ServerSentEvent(data=text, event=kind, id=None if seq is None else str(seq), sep="\n")


Put = Callable[[bytes], None]


class Gone(Exception):
    """Nobody reads the results any more."""


class Piped(StreamingResponse):
    """An answer of the pieces that some work hands over, in a thread of its own."""

    def __init__(self, call: Call | None, work: Callable[[Put], None]) -> None:
        """Begin the work; return once there is a first piece, or none. The slot of the call is released at its end.

        Raises:
            Exception: whatever the work raised before its first piece; see (2).
        """
        self._pieces: queue.Queue[bytes | BaseException | None] = queue.Queue(AHEAD)
        self._gone = threading.Event()
        self._released = ExitStack() if call is None else call.http.scope[RELEASED].pop_all()
        threading.Thread(target=self._run, args=(work,), name="keepward-pipe", daemon=True).start()
        self._first = self._next()
        super().__init__(self.pieces(), media_type=NDJSON)

    def _next(self) -> bytes | None:
        piece = self._pieces.get()
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def pieces(self) -> Iterator[bytes]:
        """Yield the pieces in order; a failure is raised in its place."""
        piece = self._first
        try:
            while piece is not None:
                yield piece
                piece = self._next()
        finally:
            self.close()

    def close(self) -> None:
        """Say that nobody reads the pieces any more."""
        self._gone.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # However it ended, and were it before the first piece was read (2).
            self.close()

    def _run(self, work: Callable[[Put], None]) -> None:
        with self._released, suppress(Gone):
            try:
                work(self._put)
                self._put(None)
            except BaseException as fault:  # noqa: BLE001  it is raised where the answer is made
                self._put(fault)

    def _put(self, piece: bytes | BaseException | None) -> None:
        while not self._gone.is_set():
            with suppress(queue.Full):
                self._pieces.put(piece, timeout=LOOK)
                return
        raise Gone


#: Hands over one JSON object as a line.
Tell = Callable[[dict[str, Any]], None]


def piped_lines(call: Call, work: Callable[[Tell], None]) -> Piped:
    """Return an answer of the lines that some work tells; an error after the first of them is the last line."""

    def run(put: Put) -> None:
        begun = False

        def tell(value: dict[str, Any]) -> None:
            nonlocal begun
            put(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")
            begun = True

        try:
            work(tell)
        except (KeepwardError, Problem) as fault:
            if not begun:
                raise
            told = fault.facts() if isinstance(fault, Problem) else failure(fault)
            tell({"error": told})

    return Piped(call, run)


class _Lines:
    """What an export is written to."""

    encoding = "utf-8"

    def __init__(self, put: Put) -> None:
        self._put = put

    def write(self, text: str) -> int:
        self._put(text.encode())
        return len(text)


class Upload(io.BytesIO):
    """The body of an import."""

    name = "upload"


async def received(request: Request) -> Upload:
    """Read the body of a call that brings a file."""
    upload = Upload()
    async for piece in request.stream():
        upload.write(piece)
    upload.seek(0)
    return upload


def export(call: Call) -> Response:
    def write(put: Put) -> None:
        lines: Any = _Lines(put)
        write_vault(call.memory, lines)

    return Piped(call, write)


def bring_in(call: Call) -> Response:
    upload: Upload = call.beside["received"]
    how = {name: call.given.get(name) for name in ("format", "user", "session", "facts", "subject", "dry_run")}
    upload.name = call.given.get("name") or upload.name

    def work(tell: Tell) -> None:
        with serving_of(call.http).bounded(call.memory, reads=False):
            _import(call.memory, upload, how, tell)

    return piped_lines(call, work)


def _import(memory: Memory, upload: Upload, how: dict[str, Any], tell: Tell) -> None:
    def judged(result: Result) -> None:
        why = plain.plain(result.reasons)
        tell({"line": result.number, "outcome": result.outcome, "reasons": why, "detail": result.detail})

    with upload:
        done = load(memory, upload, **how, on_result=judged)
        tell({"summary": plain.plain(done.as_dict())})


def plan_restoring(call: Call) -> Response:
    with call.beside["received"] as upload:
        return json_response(shape(plan_restore_export(call.memory, upload)))


def restore(call: Call) -> Response:
    with call.beside["received"] as upload:
        return json_response(shape(restore_export(call.memory, upload, call.given["digest"])))


def put_blob(call: Call) -> Response:
    kind = call.http.headers.get("content-type", "").partition(";")[0].strip().lower()
    held = call.memory.put_blob(call.beside["received"], media_type=None if kind in {"", UNKNOWN} else kind)
    return json_response(shape(held), 201, {"Location": f"/memory/blobs/{held.ref}"})


def read_blob(call: Call) -> Response:
    held = blobs.about(session_of(call.memory), call.given["ref"])
    tag = etag_of_text(held.ref)
    if same := not_modified(call.http, tag):
        return same
    headers, kind = {"Content-Disposition": "attachment", "ETag": tag}, UNKNOWN if held.active else held.media_type
    return Response(call.run(), headers=headers, media_type=kind)
