"""Routes of tokens: make, list, revoke. For the owner alone; a secret is shown once."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from keepward import present
from keepward.http import schemas
from keepward.http.bodies_calls import CreateToken
from keepward.http.credentials import Handle, Writes
from keepward.http.documented import answers, link, page
from keepward.http.parameters import Name
from keepward.http.route import KeepwardRoute
from keepward.http.schemas import Instant
from keepward.http.shapes import json_response, listed
from keepward.memory import Memory
from keepward.model.trust import Token

router = APIRouter(route_class=KeepwardRoute, tags=["tokens"])


class TokenState(BaseModel):
    """What the store knows of a token; the token itself it does not know."""

    id: str
    name: str
    rights: Literal["agent", "reviewer", "owner"]
    can: list[str]
    tenant: str
    scope: str
    state: Literal["valid", "expired", "revoked"]
    created_by: str
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None


class IssuedToken(BaseModel):
    """A new token, and its secret: the only time that it is shown."""

    token: TokenState
    secret: str


class Revoked(BaseModel):
    """A token that holds no more."""

    id: str
    receipt: str
    receipt_record: schemas.ReceiptRecord  # type: ignore[valid-type]


Tokens = page(TokenState, "Tokens")


def _state(memory: Memory, token: Token) -> dict[str, Any]:
    # Its hash is of use to nobody who may not read the store itself.
    told = {name: value for name, value in present.plain(token).items() if name != "hash"}
    return {**told, "state": token.state(memory.now)}


@router.get("/memory/tokens", operation_id="tokens", responses=answers(Tokens))
def tokens(memory: Handle) -> Response:
    """Return every token of the store, oldest first, without its secret."""
    return json_response(listed([_state(memory, each) for each in memory.tokens()]))


@router.post(
    "/memory/tokens",
    operation_id="create_token",
    status_code=201,
    dependencies=[Writes],
    responses=answers(
        IssuedToken,
        status=201,
        body=True,
        changes=True,
        links={"revoke": link("revoke_token", id="$response.body#/token/id")},
    ),
)
def create_token(memory: Handle, body: CreateToken) -> Response:
    """Make a token for a bearer of that name; its secret is shown now and never again."""
    issued = memory.create_token(
        body.name,
        rights=body.rights,
        can=body.can,
        tenant=body.tenant,
        scope=body.scope,
        expires=body.expires,
    )
    return json_response({"token": _state(memory, issued.token), "secret": issued.secret}, 201)


@router.delete(
    "/memory/tokens/{id}",
    operation_id="revoke_token",
    dependencies=[Writes],
    responses=answers(Revoked, problems=(404, 409), changes=True),
)
def revoke_token(memory: Handle, id: Name) -> Response:  # noqa: A002
    """End a token; whoever holds it is refused from then on."""
    receipt = memory.revoke_token(id)
    return json_response({"id": id, "receipt": receipt.id, "receipt_record": present.plain(receipt)})
