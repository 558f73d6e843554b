"""The verbs of review: what waits, and what is decided on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from keepward.model.commit import Receipt
from keepward.model.proposal import Decided, Outcome, Waiting
from keepward.verbs import Limit, Request, fields, verb

if TYPE_CHECKING:
    from keepward.engine.session import Session


@verb("pending", "GET /memory/quarantine", right="read", answer="items", tool="pending")
class Pending(Request[list[Waiting]]):
    """Return proposals that the caller may read, oldest first: what, why, from where, and the digest to approve."""

    function = "engine.review:pending"
    state: fields.State = "pending"


@verb("notices", "GET /memory/notices", right="read", answer="items")
class Notices(Request[list[Waiting]]):
    """Return, once, the decisions on the caller's own proposals that went against them."""

    def run(self, session: Session) -> list[Waiting]:
        engine = session.engine
        if not engine.store.untold(session.tenant, engine.clock.now()):
            # Asked by every command of an agent: there is seldom anything to tell.
            return []
        from keepward.engine.review import notices

        return notices(session)


@verb("approve", "POST /memory/quarantine/{id}/approve", right="approve", status=201)
class Approve(Request[Outcome]):
    """Store exactly what was proposed; `If-Match` carries the ETag of what was seen."""

    function = "engine.review:approve"
    proposal_id: fields.NamedId
    digest: fields.Digest | None = None


@verb("reject", "POST /memory/quarantine/{id}/reject", right="approve", answer="receipt_record")
class Reject(Request[Receipt]):
    """Discard a proposal; what held before still holds, and the proposer is told the reason once."""

    function = "engine.review:reject"
    proposal_id: fields.NamedId
    reason: fields.Why


@verb("approve_many", "POST /memory/quarantine/approve", right="approve", answer="results")
class ApproveMany(Request[list[Decided]]):
    """Approve each by the digest that was seen; each gets its own answer, and one that fails stops no other."""

    function = "engine.review:approve_many"
    #: Each an ``id`` with the ``digest`` that was seen, which may be left out.
    items: Annotated[list[Any], Limit(minItems=1, maxItems=fields.MANY)]


@verb("reject_many", "POST /memory/quarantine/reject", right="approve", answer="results")
class RejectMany(Request[list[Decided]]):
    """Reject each for one reason; each gets its own answer, and one that fails stops no other."""

    function = "engine.review:reject_many"
    ids: Annotated[list[fields.Id], Limit(minItems=1, maxItems=fields.MANY)]
    reason: fields.ReadWhy
