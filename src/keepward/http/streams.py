"""Streams: commits as they come, export and import line by line, and the bytes of blobs.

Invariants
(1) The id of an event is the number of its commit. Whoever names the last one it saw gets every later one that it
    may see, in order, each once; commits of other processes too. An event says which memories were touched and how:
    ids, operations, tiers; never a text or a reason. Of the review queue it says, to who may decide and asked for it,
    that it changed. It ends when its credential no longer holds, and with the server.
(2) What writes line by line works in one thread of its own, for a reader of the store belongs to its thread. What fails
    before the first line is an error of the call, what fails later is the last line. Where the reader goes away the
    work ends at its next line; what it had done stays done.
(3) An export that breaks off ends without its last lines; its first line names the head that it must end in.
(4) An import is read to its end before anything of it is stored, so that a file that was cut stores nothing; each line
    then has an answer of its own. Until its lines are judged it is held in memory, and no byte of it is in a file.
(5) A blob is handed over and never shown: an attachment of its own type, or of none where a browser might run it.
"""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Annotated, Any

from anyio import create_memory_object_stream, from_thread
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from keepward.core import results
from keepward.core.journal import CommitView
from keepward.errors import KeepwardError, NotFound
from keepward.http.app_state import RELEASE_STACK_KEY, AppState
from keepward.http.auth import app_state_of
from keepward.http.handlers import OperationCall, error_fields, http_operation, json_response, json_value
from keepward.http.requests import Problem, head_seq, not_modified, text_etag
from keepward.interchange import load, plan_restore_export, restore_export, write_vault
from keepward.interchange.imports import Format
from keepward.interchange.run import LineResult
from keepward.memory import Memory, queue_version, request_context_of
from keepward.services import blobs
from keepward.types import FilterText, Limit

#: Seconds between two looks at the head, and between two signs of life.
HEAD_POLL_INTERVAL_S = 0.5
HEARTBEAT_INTERVAL_S = 15
#: Commits that are read in one go.
MAX_COMMITS_PER_READ = 100
#: Lines that may wait for a slow reader.
MAX_QUEUED_RESULTS = 64

#: Writes one line, or raises where nobody reads it any more.
WriteText = Callable[[str], object]

STREAMING = "x-streaming"
NDJSON = "application/x-ndjson"
OCTET_STREAM = "application/octet-stream"
NDJSON_CONTENT = {NDJSON: {"schema": {"type": "string", "description": "JSON values, one a line."}}}
_UPLOAD_SCHEMA = {"type": "string", "minLength": 1, "description": "Lines of the format; what is empty is no import."}
#: What the description says of the body of a call that brings a file.
UPLOAD_BODY = {
    STREAMING: True,
    "requestBody": {
        "required": True,
        "content": {NDJSON: {"schema": _UPLOAD_SCHEMA}, "text/plain": {"schema": _UPLOAD_SCHEMA}},
    },
}
BLOB_BODY = {
    "requestBody": {
        "content": {OCTET_STREAM: {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
        "required": True,
    }
}
EXPORT_ANSWER = {"description": "One memory version a line, oldest first.", "content": NDJSON_CONTENT}
IMPORT_ANSWER = {
    "description": "What became of each line, as it is known; the last line has `summary`, or `error`.",
    "content": NDJSON_CONTENT,
}
EVENTS_ANSWER = {
    "description": "`event: commit`, `id:` the commit's number, `data:` an object; `event: review` where it was asked "
    "for; `event: end` says why.",
    "content": {"text/event-stream": {}},
}
BLOB_ANSWER = {"description": "The bytes.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
Ref = Annotated[str, Limit("As `POST /memory/blobs` gave it.", pattern=r"^sha256:[0-9a-f]{64}$")]
LastSeq = Annotated[int, Limit("Number of the last commit that was seen.", minimum=0, maximum=2**53)]


@http_operation("GET /memory/events", name="events", right="read")
def about_events(self: Any, *, after: LastSeq | None = None, reviews: bool = False) -> Any:
    """Return commits as they come: ids, operations and tiers of what the caller may see, no text.

    Without `after` or `Last-Event-ID` it begins with what comes next. With `reviews` it also says when the review queue
    changed, to whoever may decide: `event: review`, with how many wait.
    """


@http_operation("GET /memory/export", name="export", right="owner")
def about_export(self: Any) -> Any:
    """Return every version of every memory of the tenant, for the owner alone; `restore-export` brings it back."""


@http_operation("POST /memory/import", name="import", right="propose")
def about_import(
    self: Any,
    *,
    format: Format = "auto",  # noqa: A002  the word people use
    user: Annotated[FilterText, Limit("Put all of it into this user; without one, each user of the file has a scope.")]
    | None = None,
    session: FilterText | None = None,
    name: FilterText | None = None,
    facts: bool = False,
    subject: FilterText | None = None,
    dry_run: bool = False,
) -> Any:
    """Bring memories in, each through the gates, those of an export too; it counts as one change.

    The body is a file of any system that `keepward import` knows: lines, a document, or the bytes of a zip archive or
    of a SQLite file. Where the caller goes away half way, what was stored stays, and sending all of it again stores
    nothing twice.
    """


@http_operation("POST /memory/restore-export/plan", name="plan_restore_export", right="owner", changes=True)
def about_plan_restore_export(self: Any) -> Any:
    """Return what bringing an export of one's own back would restore, under a digest; for the owner alone."""


@http_operation("POST /memory/restore-export", name="restore_export", right="owner")
def about_restore_export(self: Any, *, digest: Annotated[str, Limit(pattern=r"^[0-9a-f]{64}$")]) -> Any:
    """Write an export into an empty tenant as it is, given the digest of its plan; for the owner alone."""


def events(call: OperationCall) -> Response:
    serving, last = app_state_of(call.http), call.beside["last_event_id"]
    newest = head_seq(call.memory.head)
    start = int(last) if last is not None else call.given.get("after")
    if start is not None and start > newest:
        raise NotFound("there is no such commit yet; the `head` of GET /memory/status begins with the newest")
    begin, reviews = newest if start is None else start, bool(call.given.get("reviews"))
    body = _commits(call.memory, serving, begin, reviews=reviews)
    return EventSourceResponse(
        body,
        ping=HEARTBEAT_INTERVAL_S,
        ping_message_factory=lambda: ServerSentEvent(comment="still here"),
        # It sees by itself that the server stops, and ends its answer; one that is cut off is an error in the log.
        shutdown_grace_period=4 * HEAD_POLL_INTERVAL_S,
    )


async def _commits(memory: Memory, serving: AppState, seq: int, *, reviews: bool) -> AsyncIterator[ServerSentEvent]:
    mark: tuple[int, ...] | None = None
    # The head of the answer goes out with the first piece; a comment lets the caller know that it is heard.
    yield ServerSentEvent(comment="commits after " + str(seq))
    while not serving.stopping.is_set():
        try:
            found, seq = await run_in_threadpool(_commits_after, memory, seq)
            before, mark = mark, await run_in_threadpool(queue_version, memory) if reviews else None
        except KeepwardError as exc:
            yield _event("end", {"code": exc.code, "detail": str(exc)})
            return
        for view in found:
            told = view.to_dict()
            data = {name: told[name] for name in ("seq", "id", "at", "kind", "actor", "changes")}
            yield _event("commit", data, view.commit.seq)
        if before is not None and mark is not None and before != mark:
            yield _event("review", {"waiting": mark[0]})
        if not found:
            await asyncio.sleep(HEAD_POLL_INTERVAL_S)


def _commits_after(memory: Memory, seq: int) -> tuple[list[CommitView], int]:
    """Return commits after a number that the handle may see, oldest first, and the number of the last one looked at."""
    newest = head_seq(memory.head)
    found: list[CommitView] = []
    while seq < newest and len(found) < MAX_COMMITS_PER_READ:
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


class LineStreamResponse(StreamingResponse):
    """An answer of the JSON lines that some work writes, in a thread of its own; see (2)."""

    def __init__(self, call: OperationCall, work: Callable[[WriteText], None]) -> None:
        """Begin the work; return once there is a first line, or none. The slot of the call is released at its end.

        Raises:
            Exception: whatever the work raised before its first line.
        """
        self._loop = from_thread.run_sync(asyncio.get_running_loop)
        self._sent, self._received = create_memory_object_stream[bytes](MAX_QUEUED_RESULTS)
        self._done: Future[None] = Future()
        self._released = call.http.scope[RELEASE_STACK_KEY].pop_all()
        threading.Thread(target=self._run, args=(work,), name="keepward-pipe", daemon=True).start()
        first = from_thread.run(anext, self._received, b"")
        if not first:
            from_thread.run_sync(self._received.close)
            self._done.result()
        super().__init__(self._lines(first), media_type=NDJSON)

    def _run(self, work: Callable[[WriteText], None]) -> None:
        with self._released, suppress(RuntimeError):
            try:
                work(lambda text: self._wait_in_loop(self._sent.send(text.encode())))
                self._done.set_result(None)
            except BaseException as exc:  # noqa: BLE001  it is raised where the answer is made
                self._done.set_exception(exc)
            try:
                self._loop.call_soon_threadsafe(self._sent.close)
            except RuntimeError:
                # The server has stopped: nobody waits.
                self._sent.close()

    def _wait_in_loop(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            sending = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise
        sending.result()

    async def _lines(self, line: bytes) -> AsyncIterator[bytes]:
        while line:
            yield line
            line = await anext(self._received, b"")
        exc = self._done.exception()
        if isinstance(exc, KeepwardError | Problem):
            told = exc.facts() if isinstance(exc, Problem) else error_fields(exc)
            yield line_of({"error": told}).encode()
        elif exc is not None:
            raise exc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Where the reader has gone, the work fails at its next line.
        with self._received:
            await super().__call__(scope, receive, send)


def line_of(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


class _ExportTarget:
    """What an export is written to."""

    encoding = "utf-8"

    def __init__(self, write: WriteText) -> None:
        self.write = write


class Upload(io.BytesIO):
    """The body of an import."""

    name = "upload"


async def receive_upload(request: Request) -> Upload:
    """Read the body of a call that brings a file."""
    upload = Upload()
    async for piece in request.stream():
        upload.write(piece)
    upload.seek(0)
    return upload


def export(call: OperationCall) -> Response:
    def work(write: WriteText) -> None:
        target: Any = _ExportTarget(write)
        write_vault(call.memory, target)

    return LineStreamResponse(call, work)


def import_file(call: OperationCall) -> Response:
    upload: Upload = call.beside["received"]
    names = ("format", "user", "session", "facts", "subject", "dry_run")
    how: dict[str, Any] = {name: call.given.get(name) for name in names}
    upload.name = call.given.get("name") or upload.name

    def work(write: WriteText) -> None:
        def judged(result: LineResult) -> None:
            why = results.to_plain(result.reasons)
            write(line_of({"line": result.number, "outcome": result.outcome, "reasons": why, "detail": result.detail}))

        with app_state_of(call.http).call_limits(call.memory, reads=False), upload:
            done = load(call.memory, upload, **how, on_result=judged)
            write(line_of({"summary": results.to_plain(done.as_dict())}))

    return LineStreamResponse(call, work)


def plan_restore(call: OperationCall) -> Response:
    with call.beside["received"] as upload:
        return json_response(json_value(plan_restore_export(call.memory, upload)))


def restore_upload(call: OperationCall) -> Response:
    with call.beside["received"] as upload:
        return json_response(json_value(restore_export(call.memory, upload, call.given["digest"])))


def put_blob(call: OperationCall) -> Response:
    kind = call.http.headers.get("content-type", "").partition(";")[0].strip().lower()
    held = call.memory.put_blob(call.beside["received"], media_type=None if kind in {"", OCTET_STREAM} else kind)
    return json_response(json_value(held), 201, {"Location": f"/memory/blobs/{held.ref}"})


def read_blob(call: OperationCall) -> Response:
    held = blobs.blob_info(request_context_of(call.memory), call.given["ref"])
    tag = text_etag(held.ref)
    if same := not_modified(call.http, tag):
        return same
    headers, kind = {"Content-Disposition": "attachment", "ETag": tag}, OCTET_STREAM if held.active else held.media_type
    return Response(call.run(), headers=headers, media_type=kind)
