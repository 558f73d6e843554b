"""Streams: commit events, export and import line by line, and the bytes of blobs.

* The id of an event is the number of its commit. A client that sends the last id gets every later visible event, in
  order, each once, also of other processes. An event names the touched memories (ids, operations, tiers), never a
  text or a reason. On request, reviewers also get an event when the review queue changes. A stream ends with its
  credential and with the server.
* A stream of lines is written in one thread, because a read connection belongs to its thread. A failure before the
  first line is an error of the request; a later one is the last line. If the client disconnects, the work ends at its
  next line; finished work stays.
* An interrupted export lacks its last lines; its first line contains the head that it must end with.
* An import is read completely before anything is stored, so a truncated file stores nothing. Each line then has its
  own result. Until then the file is only in memory.
* A blob is sent as an attachment with its type, or without one if a browser might execute it.
"""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from types import SimpleNamespace
from typing import Annotated, Any

from anyio import CancelScope, create_memory_object_stream, from_thread
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from keepward.core.journal import CommitView
from keepward.core.json_form import encode_json
from keepward.errors import KeepwardError, NotFound
from keepward.http.app_state import RELEASE_STACK_KEY, AppState
from keepward.http.auth import app_state_of
from keepward.http.handlers import OperationCall, error_fields, http_operation, json_response
from keepward.http.requests import Problem, head_seq, not_modified, text_etag
from keepward.interchange import load, plan_restore_export, restore_export, write_vault
from keepward.interchange.imports import Format
from keepward.interchange.run import LineResult
from keepward.memory import Memory, queue_version, request_context_of
from keepward.services.writing import blobs
from keepward.types import COMMIT_NUMBER, Line

#: Seconds between two polls of the head, and between two heartbeats.
HEAD_POLL_INTERVAL_S = 0.5
HEARTBEAT_INTERVAL_S = 15
#: Maximum number of commits in one read.
MAX_COMMITS_PER_READ = 100
#: Maximum number of lines queued for a slow client.
MAX_QUEUED_RESULTS = 64

#: Writes one line; raises if the client has disconnected.
WriteText = Callable[[str], object]

STREAMING = "x-streaming"
NDJSON = "application/x-ndjson"
OCTET_STREAM = "application/octet-stream"
NDJSON_CONTENT = {NDJSON: {"schema": {"type": "string", "description": "One JSON value on each line."}}}
_UPLOAD_SCHEMA = {"type": "string", "minLength": 1, "description": "Lines of the format; not empty."}
#: OpenAPI description of the body of an upload.
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
EXPORT_ANSWER = {"description": "One memory version on each line, oldest first.", "content": NDJSON_CONTENT}
IMPORT_ANSWER = {
    "description": "The result of each line; the last line has `summary` or `error`.",
    "content": NDJSON_CONTENT,
}
EVENTS_ANSWER = {
    "description": "`event: commit`, `id:` the commit's number, `data:` an object; `event: review` if requested; "
    "`event: end` has the reason.",
    "content": {"text/event-stream": {}},
}
BLOB_ANSWER = {"description": "The bytes.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
Ref = Annotated[str, Meta(description="From `POST /memory/blobs`.", pattern=r"^sha256:[0-9a-f]{64}$")]
LastSeq = Annotated[
    int, Meta(title=COMMIT_NUMBER, description="Number of the last commit that you have.", ge=0, le=2**53)
]


@http_operation("GET /memory/events", name="events", right="read")
def about_events(
    self: Any,
    *,
    after: LastSeq | None = None,
    reviews: Annotated[bool, Meta(description="Also report changes of the review queue.")] = False,
) -> Any:
    """Return commits as they happen: ids, operations and tiers of visible memories, no text.

    Without `after` or `Last-Event-ID`, it begins with the next commit. With `reviews`, reviewers and the owner also get
    `event: review` with the number of pending proposals when the review queue changes.
    """


@http_operation("GET /memory/export", name="export", right="owner")
def about_export(self: Any) -> Any:
    """Return every version of every memory of the tenant. Requires the owner; `restore-export` restores it."""


@http_operation("POST /memory/import", name="import", right="propose")
def about_import(
    self: Any,
    *,
    format: Annotated[Format, Meta(description="The system that wrote it.")] = "auto",  # noqa: A002  the word people use
    user: Annotated[
        Line, Meta(description="Import all memories for this user; without it, each user of the file gets a scope.")
    ]
    | None = None,
    session: Line | None = None,
    name: Annotated[Line, Meta(description="Name of the file; it names the session of messages.")] | None = None,
    facts: Annotated[
        bool, Meta(description="Also propose the facts that users ask to remember in conversations.")
    ] = False,
    subject: Line | None = None,
    untrusted: Annotated[bool, Meta(description="The owner does not vouch for the file.")] = False,
    dry_run: Annotated[bool, Meta(description="Run the gates and store nothing.")] = False,
) -> Any:
    """Import memories, each through the gates; the request counts as one change.

    The body is a file of any system that `keepward import` reads: lines, a document, a zip archive or a SQLite file. If
    the connection breaks, stored memories stay, and sending the file again stores nothing twice.
    """


@http_operation("POST /memory/restore-export/plan", name="plan_restore_export", right="owner", changes=True)
def about_plan_restore_export(self: Any) -> Any:
    """Return what restoring your export would write, with a digest. Requires the owner."""


@http_operation("POST /memory/restore-export", name="restore_export", right="owner")
def about_restore_export(self: Any, *, digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]) -> Any:
    """Restore an export into an empty tenant. `digest` is that of its plan. Requires the owner."""


def events(call: OperationCall) -> Response:
    serving, last = app_state_of(call.http), call.http_only["Last-Event-ID"]
    newest = head_seq(call.memory.head)
    start = int(last) if last is not None else call.given.get("after")
    if start is not None and start > newest:
        raise NotFound("there is no such commit yet; `head` of GET /memory/status begins with the newest number")
    begin, reviews = newest if start is None else start, bool(call.given.get("reviews"))
    body = _commits(call.memory, serving, begin, reviews=reviews)
    # A proxy must not hold events back.
    return StreamingResponse(body, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _commits(memory: Memory, serving: AppState, seq: int, *, reviews: bool) -> AsyncIterator[str]:
    version: tuple[int, ...] | None = None
    heartbeat = serving.monotonic()
    # The headers are sent with the first chunk, so a comment shows the client that the stream is open.
    yield _comment(f"commits after {seq}")
    while not serving.stopping.is_set():
        try:
            views, seq = await run_in_threadpool(_commits_after, memory, seq)
            before, version = version, await run_in_threadpool(queue_version, memory) if reviews else None
        except KeepwardError as exc:
            yield _event("end", {"code": exc.code, "detail": str(exc)})
            return
        for view in views:
            data = {name: getattr(view.commit, name) for name in ("seq", "id", "at", "kind")}
            # Events carry no text.
            changes = [
                {"op": step.op, **{name: getattr(step.after, name) for name in ("id", "version", "tier")}}
                for step in view.steps
            ]
            yield _event("commit", {**data, "actor": view.details.actor, "changes": changes}, view.commit.seq)
        if before is not None and version is not None and before != version:
            yield _event("review", {"waiting": version[0]})
        if serving.monotonic() >= heartbeat + HEARTBEAT_INTERVAL_S:
            yield _comment("still here")
            heartbeat = serving.monotonic()
        if not views:
            await asyncio.sleep(HEAD_POLL_INTERVAL_S)


def _commits_after(memory: Memory, seq: int) -> tuple[list[CommitView], int]:
    """Return visible commits after a number, oldest first, and the number of the last commit read."""
    newest = head_seq(memory.head)
    views: list[CommitView] = []
    while seq < newest and len(views) < MAX_COMMITS_PER_READ:
        seq += 1
        try:
            views.append(memory.show(str(seq)))
        except NotFound:
            # No change of the commit is visible to the caller.
            continue
    return views, seq


def _event(kind: str, data: dict[str, Any], seq: int | None = None) -> str:
    number = "" if seq is None else f"id: {seq}\n"
    return f"{number}event: {kind}\ndata: {encode_json(data).decode()}\n\n"


def _comment(text: str) -> str:
    return f": {text}\n\n"


class LineStreamResponse(StreamingResponse):
    """A response of JSON lines written by a function in its own thread."""

    def __init__(self, call: OperationCall, work: Callable[[WriteText], None]) -> None:
        """Begin the work and wait for its first line or its end. The slot of the request is released at its end.

        Raises:
            Exception: the work failed before its first line.
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
        try:
            try:
                work(lambda text: self._wait_in_loop(self._sent.send(text.encode())))
            finally:
                self._loop.call_soon_threadsafe(self._released.close)
            self._done.set_result(None)
        except BaseException as exc:  # noqa: BLE001  raised where the response is made
            self._done.set_exception(exc)
        with suppress(RuntimeError):
            # It fails if the server has stopped.
            self._loop.call_soon_threadsafe(self._sent.close)

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
            problem = exc.to_dict() if isinstance(exc, Problem) else error_fields(exc)
            yield line_of({"error": problem}).encode()
        elif exc is not None:
            raise exc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            # If the client disconnects, the work fails at its next line.
            with self._received, self._sent:
                await super().__call__(scope, receive, send)
        finally:
            # The work needs this loop until its end.
            with CancelScope(shield=True):
                ended = asyncio.wrap_future(self._done)
                await asyncio.wait([ended])
                # What a lost connection makes of the work is no error of the server.
                ended.exception()


def line_of(value: dict[str, Any]) -> str:
    return encode_json(value).decode() + "\n"


class Upload(io.BytesIO):
    """The body of an import."""

    name = "upload"


async def receive_upload(request: Request) -> Upload:
    """Read the body of an upload."""
    upload = Upload()
    async for piece in request.stream():
        upload.write(piece)
    upload.seek(0)
    return upload


def export(call: OperationCall) -> Response:
    def work(write: WriteText) -> None:
        target: Any = SimpleNamespace(write=write, encoding="utf-8")
        write_vault(call.memory, target)

    return LineStreamResponse(call, work)


def import_file(call: OperationCall) -> Response:
    upload: Upload = call.http_only["received"]
    names = ("format", "user", "session", "facts", "subject", "untrusted", "dry_run")
    how: dict[str, Any] = {name: call.given.get(name) for name in names}
    upload.name = call.given.get("name") or upload.name

    def work(write: WriteText) -> None:
        def judged(result: LineResult) -> None:
            line = {"line": result.number, "outcome": result.outcome, "reasons": result.reasons}
            write(line_of({**line, "detail": result.detail}))

        with app_state_of(call.http).call_limits(call.memory, reads=False), upload:
            done = load(call.memory, upload, **how, on_result=judged)
            write(line_of({"summary": done}))

    return LineStreamResponse(call, work)


def plan_restore(call: OperationCall) -> Response:
    with call.http_only["received"] as upload:
        return json_response(plan_restore_export(call.memory, upload))


def restore_upload(call: OperationCall) -> Response:
    with call.http_only["received"] as upload:
        return json_response(restore_export(call.memory, upload, call.given["digest"]))


def put_blob(call: OperationCall) -> Response:
    kind = call.http.headers.get("content-type", "").partition(";")[0].strip().lower()
    blob = call.memory.put_blob(call.http_only["received"], media_type=None if kind in {"", OCTET_STREAM} else kind)
    return json_response(blob, 201, {"Location": f"/memory/blobs/{blob.ref}"})


def read_blob(call: OperationCall) -> Response:
    blob = blobs.blob_info(request_context_of(call.memory), call.given["ref"])
    tag = text_etag(blob.ref)
    if same := not_modified(call.http, tag):
        return same
    headers, kind = {"Content-Disposition": "attachment", "ETag": tag}, OCTET_STREAM if blob.active else blob.media_type
    return Response(call.run(), headers=headers, media_type=kind)
