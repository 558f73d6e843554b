"""The verbs of upkeep: feedback and learning, jobs, tokens and blobs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from keepward.core.blob import Blob
from keepward.core.commit import Receipt
from keepward.core.job import Alike, JobState, Run
from keepward.core.query import Feedback, Training
from keepward.core.trust import Issued, Token
from keepward.errors import InvalidInput, Unauthorised
from keepward.verbs import NONE, Judged, Limit, Request, Wire, fields, verb
from keepward.verbs.arguments import ending, scope_named, tenant_named

if TYPE_CHECKING:
    from keepward.services.session import Session

JobName = Annotated[str, Limit(minLength=1, maxLength=64, pattern=r"^[a-z][a-z_]*$")]
Right = Literal["read", "propose", "approve", "erase", "admin", "sensitive", "consent"]


@verb("feedback", "POST /memory/feedback", right="read", changes=True)
class GiveFeedback(Request[Feedback]):
    """Say which memories of a context, or of a recall with a receipt, were used and which were not."""

    function = "services.use:give"
    receipt_id: Annotated[str, Limit(minLength=1, maxLength=64), Wire("receipt")]
    used: Annotated[list[fields.Id], Limit(maxItems=fields.MOST)] = NONE
    ignored: Annotated[list[fields.Id], Limit(maxItems=fields.MOST)] = NONE

    def parameters(self, session: Session) -> dict[str, Any]:
        if not self.receipt_id:
            raise InvalidInput("feedback is on a receipt: give its id, a text")
        return super().parameters(session)


@verb("train_reranker", "POST /memory/train", right="owner")
class TrainReranker(Request[Training]):
    """Train the reranker from all feedback, as an owner; it is used only if it orders held-out feedback better."""

    function = "services.reranker:train_reranker"
    owner = "training the reranker"


@verb("jobs", "GET /memory/jobs", right="read", answer="items")
class Jobs(Request[list[JobState]]):
    """Return every job with its schedule and its last run, in the order in which they run."""

    def run(self, session: Session) -> list[JobState]:
        from keepward.jobs.runner import states

        if not session.actor.able("read"):
            raise Unauthorised("this credential does not read; ask the owner for one that may")
        return states(session)


@verb("run_job", "POST /memory/jobs/{name}/run", right="owner", answer="items")
class RunJob(Request[list[Run]]):
    """Run a job if it is due, for the owner alone; what becomes of it is an answer with a receipt.

    The name `due` runs every job that is due.
    """

    function = "jobs.runner:run_jobs"
    owner = "running a job"
    name: JobName
    force: Annotated[bool, Limit("Run it even when it is not due.")] = False


@verb("merge_candidates", "GET /memory/candidates", right="read", answer="items")
class MergeCandidates(Request[list[Alike]]):
    """Return pairs of memories that resemble each other, best first; change nothing."""

    function = "jobs.runner:candidates"
    floor: fields.Floor = 0.8
    limit: fields.Most = 50


@verb("create_token", "POST /memory/tokens", right="owner", status=201, group="tokens")
class CreateToken(Request[Issued]):
    """Make a token for a bearer of that name; its secret is shown now and never again."""

    name: Annotated[
        str, Judged("Its bearer, as receipts name it.", minLength=1, maxLength=64, pattern=r"^[!-~]([ -~]*[!-~])?$")
    ]
    rights: Literal["agent", "reviewer", "owner"] = "agent"
    can: (
        Annotated[list[Right], Judged("As far as its class goes; an owner's can do everything.", minItems=1)] | None
    ) = None
    tenant: Annotated[str, Judged(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._@:-]{0,127}$")] | None = None
    scope: fields.Scope | None = None
    #: An instant, or a term such as `30d`; left out, it does not expire.
    expires: fields.Term | None = None

    def run(self, session: Session) -> Issued:
        from keepward.services.tokens import create

        end = ending(self.expires)
        return create(
            session,
            name=self.name,
            rights=self.rights,
            can=None if self.can is None else frozenset(self.can),
            tenant=session.tenant if self.tenant is None else tenant_named(self.tenant),
            scope=session.scope if self.scope is None else scope_named(self.scope),
            expires_at=session.clock.now() + end if isinstance(end, timedelta) else end,
        )


@verb("tokens", "GET /memory/tokens", right="owner", answer="items", group="tokens")
class Tokens(Request[list[Token]]):
    """Return every token of the store, oldest first, without its secret."""

    function = "services.tokens:listed"


@verb("revoke_token", "DELETE /memory/tokens/{id}", right="owner", answer="receipt_record", group="tokens")
class RevokeToken(Request[Receipt]):
    """End a token; whoever holds it is refused from then on."""

    function = "services.tokens:revoke"
    token_id: fields.NamedId


@verb("put_blob", "POST /memory/blobs", right="propose", status=201, group="blobs")
class PutBlob(Request[Blob]):
    """Keep 1 byte to 32 MB for memories to refer to; the same bytes are kept once.

    `Content-Type` says what they are; without one, or with `application/octet-stream`, the bytes themselves do.
    """

    function = "services.blobs:put"
    data: bytes
    media_type: str | None = None


@verb("read_blob", "GET /memory/blobs/{ref}", right="read", group="blobs")
class ReadBlob(Request[bytes]):
    """Return the bytes of a blob that a memory within reach refers to, or that the caller has put.

    `HEAD` answers with its size and media type alone.
    """

    function = "services.blobs:read"
    ref: str
