"""The verbs of review: what waits, and what is decided on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from keepward.core.change import KEEP, Replace, ReplaceFields
from keepward.core.commit import Receipt
from keepward.core.proposal import Decided, Outcome, Proposals, Waiting
from keepward.verbs import Limit, Request, arguments, fields, verb

if TYPE_CHECKING:
    from keepward.services.session import Session

EMPTY: Any = {}


@verb("pending", "GET /memory/quarantine", right="read", tool="pending")
class Pending(Request[Proposals]):
    """Return proposals that the caller may read, oldest first: what, why, from where, and the digest to approve.

    A page begins at `offset`, from 0; `counts` is of all that have the state, whatever else is asked for.
    """

    function = "services.waiting:pending"
    state: fields.State = "pending"
    proposer: Annotated[fields.Word, Limit("As `kind:name`.")] | None = None
    gate: Annotated[fields.Word, Limit("A gate that held it.")] | None = None
    tier: fields.OneTier | None = None
    offset: Annotated[int, Limit(minimum=0, maximum=2**31)] = 0
    limit: fields.Most | None = 50


@verb("proposal", "GET /memory/quarantine/{id}", right="read", operation="get_proposal")
class Proposal(Request[Waiting]):
    """Return a proposal, whatever became of it; its ETag is the digest that an approval is bound to.

    For reviewers and owners `review_context` has what bears on the decision: what each gate looks for, the evidence,
    similar memories, and how many contexts held what it would change.
    """

    function = "services.waiting:proposal"
    proposal_id: fields.NamedId


@verb("notices", "GET /memory/notices", right="read", answer="items")
class Notices(Request[list[Waiting]]):
    """Return, once, the decisions on the caller's own proposals that went against them."""

    def run(self, session: Session) -> list[Waiting]:
        engine = session.engine
        if not engine.store.untold(session.tenant, engine.clock.now()):
            # Asked by every command of an agent: there is seldom anything to tell.
            return []
        from keepward.services.review import notices

        return notices(session)


@verb("approve", "POST /memory/quarantine/{id}/approve", right="approve", status=201)
class Approve(Request[Outcome]):
    """Store exactly what was proposed; `If-Match` carries the ETag of what was seen."""

    function = "services.review:approve"
    proposal_id: fields.NamedId
    digest: fields.Digest | None = None


@verb("amend", "POST /memory/quarantine/{id}/amend", right="approve", status=201)
class Amend(Request[Outcome]):
    """Approve a proposal with changes of one's own; `If-Match` carries the ETag of what was seen.

    The gates judge it again, and new words are stored as the reviewer's. What they refuse, or would hold for another
    reason than the proposal, is 422 with reasons, and the proposal goes on waiting.
    """

    makes: ClassVar[type[Any]] = Replace
    proposal_id: fields.NamedId
    text: fields.Text = KEEP
    values: ReplaceFields = EMPTY
    memory: Annotated[fields.Id, Limit("Which one is meant, where it would store several texts.")] | None = None
    digest: fields.Digest | None = None
    if_version: (
        Annotated[
            int, Limit("Version of the memory that you saw, where it has changed since it was proposed.", minimum=1)
        ]
        | None
    ) = None

    def run(self, session: Session) -> Outcome:
        from keepward.services.review import amend

        given = {} if self.text is KEEP else {"text": self.text}
        change = arguments.change(Replace, {"id": "", **given, **self.values})
        seen: Any = {"digest": self.digest, "memory": self.memory, "if_version": self.if_version}
        return amend(session, self.proposal_id, change, **seen)


@verb("reject", "POST /memory/quarantine/{id}/reject", right="approve", answer="receipt_record")
class Reject(Request[Receipt]):
    """Discard a proposal; what held before still holds, and the proposer is told the reason once."""

    function = "services.review:reject"
    proposal_id: fields.NamedId
    reason: fields.Why


@verb("reopen", "POST /memory/quarantine/{id}/reopen", right="approve", answer="receipt_record")
class Reopen(Request[Receipt]):
    """Put a rejected or expired proposal back into the queue: it waits as it did, and nothing else changes."""

    function = "services.review:reopen"
    proposal_id: fields.NamedId
    reason: fields.Why


@verb("approve_many", "POST /memory/quarantine/approve", right="approve", answer="results")
class ApproveMany(Request[list[Decided]]):
    """Approve each by the digest that was seen; each gets its own answer, and one that fails stops no other."""

    function = "services.review:approve_many"
    #: Each an ``id`` with the ``digest`` that was seen, which may be left out.
    items: Annotated[list[Any], Limit(minItems=1, maxItems=fields.MANY)]


@verb("reject_many", "POST /memory/quarantine/reject", right="approve", answer="results")
class RejectMany(Request[list[Decided]]):
    """Reject each for one reason; each gets its own answer, and one that fails stops no other."""

    function = "services.review:reject_many"
    ids: Annotated[list[fields.Id], Limit(minItems=1, maxItems=fields.MANY)]
    reason: fields.ReadWhy
