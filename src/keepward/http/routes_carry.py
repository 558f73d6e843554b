"""Routes that carry memories over: export and import, as streams of JSON lines.

Invariants
(1) An export that breaks off ends without its last lines; its first line names the head that it must end in.
(2) An import is read to its end before anything of it is stored, so that a file that was cut stores nothing; each line
    then has an answer of its own.
(3) Until its lines are judged an import is held in memory, and no byte of it is written to a file.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from keepward import present
from keepward.errors import KeepwardError
from keepward.http.credentials import Handle, Writes, serving_of
from keepward.http.documented import answers
from keepward.http.frame import told
from keepward.http.parameters import TextQuery
from keepward.http.pipes import Pipe, Piped, Put
from keepward.http.problems import Problem
from keepward.http.route import STREAMING, KeepwardRoute
from keepward.http.schemas import mirror
from keepward.http.shapes import failure, json_response, shape
from keepward.interchange import load, plan_restore_export, restore_export, write_vault
from keepward.interchange.imports import Result
from keepward.memory import Memory
from keepward.model.copies import ExportPlan, RestoredExport

router = APIRouter(route_class=KeepwardRoute, tags=["carry"])

NDJSON = "application/x-ndjson"
_LINES = {"type": "string", "description": "JSON values, one a line."}
_SENT = {"type": "string", "minLength": 1, "description": "Lines of the format; what is empty is no import."}
Formats = Literal["auto", "vault", "locomo", "messages", "legacy-jsonl", "markdown"]


class Upload(io.BytesIO):
    """The body of an import, and its place among those that the server holds; both end when it is closed."""

    name = "upload"

    def __init__(self, leave: Callable[[], None]) -> None:
        super().__init__()
        self._leave = leave

    def close(self) -> None:
        """Let go of the bytes and of the place."""
        if not self.closed:
            self._leave()
        super().close()


@router.get(
    "/memory/export",
    operation_id="export",
    response_class=Response,
    responses={
        200: {"description": "One memory version a line, oldest first.", "content": {NDJSON: {"schema": _LINES}}},
        **told(400, 401, 403, 421, 422, 500, 503),
    },
)
def export(memory: Handle) -> Response:
    """Return every version of every memory of the tenant, for the owner alone; `restore-export` brings it back."""

    def write(put: Put) -> None:
        lines: Any = _Lines(put)
        write_vault(memory, lines)

    return Piped(Pipe(write), NDJSON)


class _Lines:
    encoding = "utf-8"

    def __init__(self, put: Put) -> None:
        self._put = put

    def write(self, text: str) -> int:
        self._put(text.encode())
        return len(text)


@router.post(
    "/memory/import",
    operation_id="import",
    dependencies=[Writes],
    response_class=Response,
    responses={
        200: {
            "description": "What became of each line, as it is known; the last line has `summary`, or `error`.",
            "content": {NDJSON: {"schema": _LINES}},
        },
        **told(400, 401, 403, 409, 413, 421, 422, 429, 500, 503),
    },
    openapi_extra={
        STREAMING: True,
        "requestBody": {
            "required": True,
            "content": {NDJSON: {"schema": _SENT}, "text/plain": {"schema": _SENT}},
        },
    },
)
async def import_lines(
    request: Request,
    memory: Handle,
    format: Annotated[Formats, Query()] = "auto",  # noqa: A002
    session: TextQuery = None,
) -> Response:
    """Bring memories in, each through the gates, those of an export too; it counts as one change.

    Where the caller goes away half way, what was stored stays, and sending all of it again stores nothing twice.
    """
    upload = await _received(request)
    try:
        pipe = await run_in_threadpool(Pipe, lambda put: _import(memory, upload, format, session, put))
    except BaseException:
        upload.close()
        raise
    return Piped(pipe, NDJSON)


async def _received(request: Request) -> Upload:
    """Read the body of a call that brings a file."""
    places = serving_of(request).imports
    if not places.acquire(blocking=False):
        detail = "too many imports are under way; send this one again when one of them is over"
        raise Problem(429, "rate_limited", detail, headers={"Retry-After": "5"})
    upload = Upload(places.release)
    try:
        async for piece in request.stream():
            upload.write(piece)
        upload.seek(0)
    except BaseException:
        upload.close()
        raise
    return upload


_BODY = {
    STREAMING: True,
    "requestBody": {"required": True, "content": {NDJSON: {"schema": _SENT}, "text/plain": {"schema": _SENT}}},
}


@router.post(
    "/memory/restore-export/plan",
    operation_id="plan_restore_export",
    responses=answers(mirror(ExportPlan), problems=(409, 413), changes=True),
    dependencies=[Writes],
    openapi_extra=_BODY,
)
async def plan_restoring(request: Request, memory: Handle) -> Response:
    """Return what bringing an export of one's own back would restore, under a digest; for the owner alone."""
    with await _received(request) as upload:
        return json_response(shape(await run_in_threadpool(plan_restore_export, memory, upload)))


@router.post(
    "/memory/restore-export",
    operation_id="restore_export",
    responses=answers(mirror(RestoredExport), problems=(409, 413), changes=True),
    dependencies=[Writes],
    openapi_extra=_BODY,
)
async def restore_lines(
    request: Request, memory: Handle, digest: Annotated[str, Query(pattern="^[0-9a-f]{64}$")]
) -> Response:
    """Write an export into an empty tenant as it is, given the digest of its plan; for the owner alone."""
    with await _received(request) as upload:
        return json_response(shape(await run_in_threadpool(restore_export, memory, upload, digest)))


def _import(memory: Memory, upload: Upload, chosen: Formats, session: str | None, put: Put) -> None:
    begun = False

    def tell(result: Result) -> None:
        nonlocal begun
        begun = True
        put(
            _line(
                {
                    "line": result.number,
                    "outcome": result.outcome,
                    "reasons": present.reasons(result.reasons),
                    "detail": result.detail,
                }
            )
        )

    with upload:
        try:
            done = load(memory, upload, format=chosen, session=session, on_result=tell)
        except KeepwardError as fault:
            if not begun:
                raise
            put(_line({"error": failure(fault)}))
        else:
            put(_line({"summary": present.plain(done.as_dict())}))


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
