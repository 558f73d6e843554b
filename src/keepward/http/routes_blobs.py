"""Routes of blobs: bytes up and down. A blob is never shown by this server, it is only handed over.

Invariants
(1) What comes down is an attachment of its own type, or of none where a browser might run it.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from keepward.http.credentials import Handle, Writes
from keepward.http.documented import answers, link
from keepward.http.frame import told
from keepward.http.parameters import IfNoneMatch
from keepward.http.reading import etag_of_text, not_modified
from keepward.http.route import KeepwardRoute
from keepward.http.schemas import Given
from keepward.http.shapes import json_response, shape

router = APIRouter(route_class=KeepwardRoute, tags=["blobs"])

UNKNOWN = "application/octet-stream"
Ref = Annotated[str, Path(pattern=r"^sha256:[0-9a-f]{64}$", description="As `POST /memory/blobs` gave it.")]
_BYTES = {"content": {UNKNOWN: {"schema": {"type": "string", "format": "binary", "minLength": 1}}}, "required": True}


@router.post(
    "/memory/blobs",
    operation_id="put_blob",
    status_code=201,
    dependencies=[Writes],
    responses=answers(
        Given["Blob"],
        status=201,
        problems=(409, 413),
        changes=True,
        links={
            "bytes": link("read_blob", ref="$response.body#/ref"),
            "about": link("blob", ref="$response.body#/ref"),
        },
    ),
    openapi_extra={"requestBody": _BYTES},
)
async def put_blob(request: Request, memory: Handle) -> Response:
    """Keep 1 byte to 32 MB for memories to refer to; the same bytes are kept once.

    `Content-Type` says what they are; without one, or with `application/octet-stream`, the bytes themselves do.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    data = await request.body()
    media_type = None if kind in {"", UNKNOWN} else kind
    kept = await run_in_threadpool(memory.put_blob, data, media_type=media_type)
    return json_response(shape(kept), 201, {"Location": f"/memory/blobs/{kept.ref}"})


@router.get(
    "/memory/blobs/{ref}",
    operation_id="read_blob",
    response_class=Response,
    responses={
        200: {"description": "The bytes.", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}},
        304: {"description": "They are the bytes that were named."},
        **told(400, 401, 403, 404, 421, 422, 500, 503),
    },
)
def read_blob(request: Request, memory: Handle, ref: Ref, if_none_match: IfNoneMatch = None) -> Response:
    """Return the bytes of a blob that a memory within reach refers to, or that the caller has put."""
    del if_none_match
    kept = memory.blob(ref)
    tag = etag_of_text(kept.ref)
    if same := not_modified(request, tag):
        return same
    headers = {"Content-Disposition": "attachment", "ETag": tag}
    return Response(memory.read_blob(ref), headers=headers, media_type=UNKNOWN if kept.active else kept.media_type)


@router.get("/memory/blobs/{ref}/about", operation_id="blob", responses=answers(Given["Blob"], problems=(404,)))
def about_blob(memory: Handle, ref: Ref) -> Response:
    """Return the size and media type of a blob."""
    return json_response(shape(memory.blob(ref)))
