"""Routes that carry memories over: export and import, as streams of JSON lines.

Invariants
(1) An export that breaks off ends without its last lines; its first line names the head that it must end in.
(2) An import is read to its end before anything of it is stored; each line then has an answer of its own.
"""

from __future__ import annotations

import json
import tempfile
from typing import IO, Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from keepward.app import Memory
from keepward.errors import KeepwardError
from keepward.interchange import load, write_vault
from keepward.interchange.imports import Result
from keepward.surfaces import present
from keepward.surfaces.api import schemas
from keepward.surfaces.api.deps import Handle, Writes
from keepward.surfaces.api.frame import told
from keepward.surfaces.api.parameters import TextQuery
from keepward.surfaces.api.pipes import Pipe, Put
from keepward.surfaces.api.route import STREAMING, KeepwardRoute
from keepward.surfaces.api.shapes import failure

router = APIRouter(route_class=KeepwardRoute, tags=["carry"])

NDJSON = "application/x-ndjson"
#: Bytes of an import that are held in memory; more goes to an unnamed file of the system's.
_SPOOL = 8 << 20
_LINES = {"type": "string", "description": "JSON values, one a line."}
_SENT = {"type": "string", "minLength": 1, "description": "Lines of the format; what is empty is no import."}
Formats = Literal["auto", "vault", "locomo", "messages", "legacy-jsonl", "markdown"]


class LineResult(BaseModel):
    """One line of the answer to an import: what became of one line or item."""

    line: int
    outcome: Literal["committed", "duplicate", "quarantined", "refused", "failed"]
    reasons: list[schemas.Why]  # type: ignore[valid-type]
    detail: str


class Upload:
    """The body of an import, as a file to be read."""

    name = "upload"

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; none at the end."""
        return self._file.read(size)


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
    """Return every version of every memory of the tenant, for the owner alone; `POST /memory/import` restores it."""

    def write(put: Put) -> None:
        lines: Any = _Lines(put)
        write_vault(memory, lines)

    return StreamingResponse(iter(Pipe(write)), media_type=NDJSON)


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
    """Bring memories in, each through the gates; it counts as one change.

    Where the caller goes away half way, what was stored stays, and sending all of it again stores nothing twice.
    """
    file = tempfile.SpooledTemporaryFile(_SPOOL)  # noqa: SIM115  closed by the work
    async for piece in request.stream():
        file.write(piece)
    file.seek(0)
    pipe = await run_in_threadpool(Pipe, lambda put: _import(memory, file, format, session, put))
    return StreamingResponse(iter(pipe), media_type=NDJSON)


def _import(memory: Memory, file: Any, chosen: Formats, session: str | None, put: Put) -> None:
    begun = False
    upload: Any = Upload(file)

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

    with file:
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
