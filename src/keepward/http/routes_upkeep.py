"""Routes of upkeep: feedback and learning, checks, jobs, tenants."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel
from starlette.responses import Response

from keepward.http.bodies_calls import GiveFeedback, RunJob
from keepward.http.credentials import Handle, Writes
from keepward.http.documented import answers, link, page
from keepward.http.parameters import Limit, Share
from keepward.http.route import KeepwardRoute
from keepward.http.schemas import Given
from keepward.http.shapes import json_response, listed, shape

router = APIRouter(route_class=KeepwardRoute, tags=["upkeep"])

JobName = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[a-z][a-z_]*$")]
Checks = page(Given["Check"], "Checks", ok=bool)
Tenants = page(str, "Tenants")
JobStates = page(Given["JobState"], "Jobs")
Runs = page(Given["Run"], "Runs")
Alikes = page(Given["Alike"], "Candidates")


class Rebuilt(BaseModel):
    """How many records were computed anew."""

    records: int
    head: str


class Reindexed(BaseModel):
    """How many memories got terms and vectors anew."""

    indexed: int


@router.post(
    "/memory/feedback",
    operation_id="feedback",
    dependencies=[Writes],
    responses=answers(Given["Feedback"], problems=(404, 409), body=True, changes=True),
)
def feedback(memory: Handle, body: GiveFeedback) -> Response:
    """Say which memories of a context, or of a recall with a receipt, were used and which were not."""
    return json_response(shape(memory.feedback(body.receipt, used=body.used, ignored=body.ignored)))


@router.post(
    "/memory/learn",
    operation_id="learn_importance",
    dependencies=[Writes],
    responses=answers(Given["Reinforced"], problems=(409,), changes=True),
)
def learn(memory: Handle) -> Response:
    """Turn the uses counted since the last time into importance, in one commit; for the owner alone."""
    return json_response(shape(memory.learn_importance()))


@router.post(
    "/memory/train",
    operation_id="train_reranker",
    dependencies=[Writes],
    responses=answers(Given["Training"], problems=(409,), changes=True),
)
def train(memory: Handle) -> Response:
    """Train the reranker from all feedback, for the owner alone; it serves only where it proves better."""
    return json_response(shape(memory.train_reranker()))


@router.post("/memory/verify", operation_id="verify", responses=answers(Given["Verification"]))
def verify(memory: Handle) -> Response:
    """Check the chain, every seal, every projection and the anchor; a fault is an answer and not an error."""
    return json_response(shape(memory.verify()))


@router.post("/memory/rebuild", operation_id="rebuild", dependencies=[Writes], responses=answers(Rebuilt, changes=True))
def rebuild(memory: Handle) -> Response:
    """Compute the tenant's records anew from the journal; for the owner alone."""
    return json_response({"records": memory.rebuild(), "head": memory.head})


@router.post(
    "/memory/reindex", operation_id="reindex", dependencies=[Writes], responses=answers(Reindexed, changes=True)
)
def reindex(memory: Handle) -> Response:
    """Compute terms and vectors anew where they are missing or of another embedder; for the owner alone."""
    return json_response({"indexed": memory.reindex()})


@router.get("/memory/doctor", operation_id="doctor", responses=answers(Checks))
def doctor(memory: Handle) -> Response:
    """Return what was looked at, whether it is well, and what to do when it is not."""
    found = memory.doctor()
    return json_response(listed([shape(each) for each in found], ok=all(each.ok for each in found)))


@router.get("/memory/tenants", operation_id="tenants", responses=answers(Tenants))
def tenants(memory: Handle) -> Response:
    """Return the names of all tenants with memories; for the owner alone."""
    return json_response(listed(list(memory.tenants())))


@router.get(
    "/memory/jobs",
    operation_id="jobs",
    responses=answers(JobStates, links={"run": link("run_job", name="$response.body#/items/0/name")}),
)
def jobs(memory: Handle) -> Response:
    """Return every job with its schedule and its last run, in the order in which they run."""
    return json_response(listed([shape(each) for each in memory.jobs()]))


@router.post(
    "/memory/jobs/run-due",
    operation_id="run_due",
    dependencies=[Writes],
    responses=answers(Runs, problems=(409,), changes=True),
)
def run_due(memory: Handle) -> Response:
    """Run every job that is due by the store's clock, for the owner alone."""
    return json_response(listed([shape(each) for each in memory.run_due()]))


@router.post(
    "/memory/jobs/{name}/run",
    operation_id="run_job",
    dependencies=[Writes],
    responses=answers(Given["Run"], problems=(404, 409), body=True, changes=True),
)
def run_job(memory: Handle, name: JobName, body: RunJob | None = None) -> Response:
    """Run a job where it is due, for the owner alone; what becomes of it is an answer with a receipt."""
    return json_response(shape(memory.run_job(name, force=bool(body and body.force))))


@router.get("/memory/candidates", operation_id="merge_candidates", responses=answers(Alikes))
def merge_candidates(memory: Handle, floor: Annotated[Share, Query()] = 0.8, limit: Limit = 50) -> Response:
    """Return pairs of memories that resemble each other, best first; change nothing."""
    found: list[Any] = memory.merge_candidates(floor=floor, limit=limit)
    return json_response(listed([shape(each) for each in found]))
