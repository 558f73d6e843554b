"""Routes that destroy, and that accept a store: for the owner alone, by plan and digest.

Invariants
(1) What is carried out is the plan that was shown, or nothing.
(2) After an erasure nothing of it is left in this server's memory: kept answers and drafts are dropped.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from keepward import present
from keepward.http.bodies_calls import Adopt, Erase, Lift, PlanErase
from keepward.http.credentials import Handle, Writes, serving_of
from keepward.http.documented import answers, link
from keepward.http.drafts import drafts_of
from keepward.http.parameters import Name
from keepward.http.route import KeepwardRoute
from keepward.http.schemas import Given
from keepward.http.shapes import json_response, shape

router = APIRouter(route_class=KeepwardRoute, tags=["erase"])


_Erased: Any = Given["Erased"]


class Certificate(BaseModel):
    """What was erased, what proves it, and what it cannot promise."""

    model_config = ConfigDict(extra="allow")


class Destroyed(_Erased):  # type: ignore[misc]
    """An erasure that was carried out."""

    certificate: Certificate


@router.post(
    "/memory/erase/plan",
    operation_id="plan_erase",
    responses=answers(Given["ErasePlan"], problems=(404, 409), body=True),
)
def plan_erase(memory: Handle, body: PlanErase) -> Response:
    """Return what erasing these memories would destroy, under a digest; change nothing."""
    return json_response(shape(memory.plan_erase(**_chosen(body))))


@router.post(
    "/memory/erase",
    operation_id="erase",
    dependencies=[Writes],
    responses=answers(
        Destroyed,
        problems=(404, 409),
        body=True,
        changes=True,
        links={"certificate": link("certificate", name="$response.body#/commit")},
    ),
)
def erase(request: Request, memory: Handle, body: Erase) -> Response:
    """Carry out exactly the plan with this digest, given what it was planned for; nothing brings it back."""
    done = memory.erase(body.digest, **_chosen(body))
    serving_of(request).answers.clear()
    drafts_of(request).clear()
    return json_response({**shape(done), "certificate": present.plain(memory.certificate(done.commit.id))})


@router.post(
    "/memory/erase/lift",
    operation_id="lift_erasure",
    dependencies=[Writes],
    responses=answers(Given["Lifted"], problems=(404, 409), body=True, changes=True),
)
def lift_erasure(memory: Handle, body: Lift) -> Response:
    """Allow what an erased memory said to be remembered again; what was erased stays erased."""
    return json_response(shape(memory.lift_erasure(body.name)))


def _chosen(body: PlanErase) -> dict[str, Any]:
    return {"ids": body.ids, "subject": body.subject, "source": body.source, "reason": body.reason}


@router.get("/memory/certificates/{name}", operation_id="certificate", responses=answers(Certificate, problems=(404,)))
def certificate(memory: Handle, name: Name) -> Response:
    """Return the certificate of an erasure, by the id of an erased memory or of the erasing commit."""
    return json_response(present.plain(memory.certificate(name)))


@router.post(
    "/memory/adopt/plan",
    operation_id="plan_adopt",
    responses=answers(Given["Adoption"], links={"adopt": link("adopt", body={"digest": "$response.body#/digest"})}),
)
def plan_adopt(memory: Handle) -> Response:
    """Return what accepting the store as it stands would accept, under a digest; change nothing."""
    return json_response(shape(memory.plan_adopt()))


@router.post(
    "/memory/adopt",
    operation_id="adopt",
    dependencies=[Writes],
    responses=answers(Given["Adoption"], problems=(409,), body=True, changes=True),
)
def adopt(memory: Handle, body: Adopt) -> Response:
    """Accept the store as it stands, given the digest of what was shown."""
    return json_response(shape(memory.adopt(body.digest)))
