"""The calls of who governs memories: review, the journal, inquiries, erasing, upkeep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from keepward import verbs
from keepward.calls import Calls, sends
from keepward.core.change import KEEP, ContentTypeName, KindName, ReplaceFields, TierName
from keepward.core.value import Duration
from keepward.verbs.arguments import texts

if TYPE_CHECKING:
    from keepward.core.browse import Member
    from keepward.core.commit import Receipt
    from keepward.core.copies import Adoption
    from keepward.core.job import Alike, JobState, Run
    from keepward.core.journal import (
        Bisection,
        Blame,
        CommitView,
        Containment,
        ContextDifference,
        Contradictions,
        Difference,
        Erased,
        ErasePlan,
        Erasure,
        Impact,
        Lifted,
        Rollback,
        Verification,
    )
    from keepward.core.proposal import Background, Decided, Outcome, Queue, Waiting
    from keepward.core.query import AsOf, Purpose, Reinforced, Training
    from keepward.core.trust import Issued, Token
    from keepward.verbs.erase import Reason


class Govern(Calls):
    """Deciding, undoing, inquiring, erasing, and upkeep."""

    # --- deciding

    def pending(self, *, state: str | None = "pending") -> list[Waiting]:
        """Return proposals in the review queue, oldest first; ``state`` None for all of them."""
        return self._send(verbs.review.Pending(state="all" if state is None else state))

    @sends("review")
    def queue(
        self,
        *,
        state: str = "pending",
        proposer: str | None = None,
        gate: str | None = None,
        tier: str | None = None,
        offset: int = 0,
        limit: int = 50,
    ) -> Queue:
        """Return one window of the proposals that this handle may read, oldest first, with how many there are.

        ``proposer`` is ``kind:name``; ``offset`` counts from 0; ``state`` may be ``all``.
        """

    @sends("review")
    def background(self, proposal_id: str) -> Background:
        """Return what bears on a decision: what each gate looks for, evidence opened, what is similar, whom it reached.

        Takes a reviewer or the owner.
        """

    @sends("review")
    def proposal(self, proposal_id: str) -> Waiting:
        """Return a proposal, whatever became of it, by its id or the first letters of it."""

    @sends("review")
    def notices(self) -> list[Waiting]:
        """Return, once, the decisions on this actor's own proposals that went against them."""

    @sends("review")
    def approve(self, proposal_id: str, *, digest: str | None = None) -> Outcome:
        """Store exactly what was proposed; takes a reviewer or the owner, never the proposer."""

    @sends("review")
    def amend(
        self,
        proposal_id: str,
        text: str = KEEP,
        *,
        digest: str | None = None,
        memory: str | None = None,
        if_version: int | None = None,
        **fields: Unpack[ReplaceFields],
    ) -> Outcome:
        """Approve a proposal with changes of one's own to what it would store, which the gates judge again.

        Fields are those of ``revise``; ``memory`` says which is meant, where it would store several texts. New words
        are stored as the reviewer's, and the proposal is closed as approved with changes. What the gates refuse, or
        would hold for another reason than the proposal, is ``Refused``, and the proposal goes on waiting.

        A proposal that is ``stale`` takes ``if_version``, the version of the memory in ``current``: the change is then
        made to what that says.
        """

    @sends("review")
    def reject(self, proposal_id: str, *, reason: str) -> Receipt:
        """Discard a proposal; what held before still holds."""

    @sends("review")
    def reopen(self, proposal_id: str, *, reason: str) -> Receipt:
        """Put a rejected or expired proposal back into the queue, where it waits as it did."""

    def approve_many(self, ids: Iterable[str] | Mapping[str, str | None]) -> list[Decided]:
        """Approve each by id, or by id with the digest that was seen; each gets its own answer, in the order given."""
        wanted = dict(ids) if isinstance(ids, Mapping) else dict.fromkeys(texts("ids", ids))
        items = [{"id": name, "digest": digest} for name, digest in wanted.items()]
        return self._send(verbs.review.ApproveMany(items=items))

    @sends("review")
    def reject_many(self, ids: Iterable[str], *, reason: str) -> list[Decided]:
        """Reject each for one reason; each gets its own answer, in the order given."""

    # --- the journal

    @sends("journal")
    def log(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        actor: str | None = None,
        kind: str | None = None,
        until: AsOf = None,
    ) -> list[CommitView]:
        """Return commits within reach, newest first, with seq below ``before``.

        ``actor`` made or approved them: ``kind:name``, or a name alone; ``kind`` is a commit's, such as ``approve``;
        ``until`` is the moment of the newest.
        """

    @sends("journal")
    def show(self, commit: str) -> CommitView:
        """Return one commit by id, a unique prefix of it, or its number."""

    @sends("journal")
    def diff(self, earlier: AsOf, later: AsOf = None) -> list[Difference]:
        """Return the memories that differ between the states after two commits; ``0`` is the empty store."""

    @sends("journal")
    def rollback(self, commit: str, *, with_later: bool = False, dry_run: bool = False) -> Rollback:
        """Undo one commit exactly; a second call changes nothing and gives the first receipt."""

    @sends("journal")
    def verify(self, *, on_progress: Callable[[int, int], None] | None = None) -> Verification:
        """Check the chain, every seal, every projection and the anchor.

        ``on_progress`` is called with (rows looked at, rows there are); over HTTP once, at the end.
        """

    @sends("journal")
    def rebuild(self) -> int:
        """Compute the tenant's records anew from the journal; return how many there are."""

    @sends("journal")
    def reindex(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Compute terms and vectors anew where they are missing or of another embedder; return how many.

        Over HTTP ``on_progress`` is called once, at the end.
        """

    @sends("journal")
    def tenants(self) -> list[str]:
        """Return the names of all tenants with memories; for the owner alone."""

    @sends("browse")
    def users(self) -> list[Member]:
        """Return the users with memories at this scope and below, each with how many, by name."""

    @sends("browse")
    def projects(self) -> list[Member]:
        """Return the projects with memories at this scope and below, each with how many, by name."""

    # --- inquiring

    @sends("inquiry")
    def impact(
        self,
        *,
        source: str | None = None,
        actor: str | None = None,
        session: str | None = None,
        commit: str | None = None,
        memory: str | None = None,
    ) -> Impact:
        """Return what one of these touched: memories, everything derived from them, every context that held any.

        A source is a class such as ``web`` or a reference in evidence; an actor is ``kind:name``. Takes a
        reviewer or the owner.
        """

    def contain(
        self,
        plan: str | None = None,
        *,
        source: str | None = None,
        actor: str | None = None,
        session: str | None = None,
        commit: str | None = None,
        memory: str | None = None,
        reason: str = "",
    ) -> Containment:
        """Take all that one of these touched out of use, in one commit that one rollback undoes.

        Without ``plan`` nothing is written: what comes back is the plan and its digest. With that digest as
        ``plan`` exactly this is carried out, by the owner alone.
        """
        chosen = {"source": source, "actor": actor, "session": session, "commit": commit, "memory": memory}
        if plan is None:
            return self._send(verbs.inquiry.PlanContain(**chosen))
        return self._send(verbs.inquiry.Contain(**chosen, digest=plan, reason=reason))

    @sends("inquiry")
    def blame(self, name: str) -> Blame:
        """Return which commit, actor, source and approval made each value of a memory, by id or key."""

    @sends("inquiry")
    def contradictions(
        self,
        *,
        limit: int = 50,
        tiers: Sequence[TierName] = (),
        kinds: Sequence[KindName] = (),
        tags: Sequence[str] = (),
        content_types: Sequence[ContentTypeName] = (),
        subject: str | None = None,
        category: str | None = None,
        session: str | None = None,
        min_importance: float = 0.0,
        include_sensitive: bool = False,
    ) -> Contradictions:
        """Return pairs of memories that say nearly the same and differ in something, with what differs.

        The closest come first; nothing is changed, merged or superseded. Filters apply as in ``recall``, to both. The
        pairs are those of ``merge_candidates`` that are not the same: of one scope, tier, subject and kind, and no
        keyed memories, events or core memories.
        """

    def bisect(
        self,
        query: str,
        *,
        contains: str | None = None,
        predicate: Callable[[str], bool] | None = None,
        since: int = 0,
        purpose: Purpose = "answer",
    ) -> Bisection:
        """Return the commit with which the context for a query began to hold a text, or to pass a predicate.

        A predicate cannot be sent to a server.
        """
        request = verbs.inquiry.Bisect(query=query, contains=contains or "", since=since, purpose=purpose)
        return self._send(request, predicate=predicate)

    @sends("inquiry")
    def context_diff(self, first: str, second: str) -> ContextDifference:
        """Return what differs between two compiled contexts, by receipt id, and the commit responsible for each."""

    # --- erasing, and accepting a store

    @sends("erase")
    def plan_erase(
        self,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: Reason = "request",
        include_citing: bool = False,
    ) -> ErasePlan:
        """Return what erasing these memories would destroy, under a digest; change nothing.

        ``subject`` and ``source`` take memories of the whole tenant; ``source`` is a reference in evidence, a
        foreign name, or the name of a source. A user's handle that names nothing takes all that is the user's and all
        that cites it. ``reason`` is one of the codes of ``core.commit.REASONS``.
        What derives from one of these or cites it stays, and is listed as ``candidates`` with its text;
        ``include_citing`` takes it along, for example a fact whose evidence is an erased message.
        """

    @sends("erase")
    def erase(
        self,
        digest: str,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: Reason = "request",
        include_citing: bool = False,
    ) -> Erased:
        """Carry out exactly the plan with this digest, given what it was planned for.

        Raises:
            Conflict: what would be erased has changed; nothing was erased.
        """

    @sends("erase")
    def lift_erasure(self, name: str) -> Lifted:
        """Allow what an erased memory said to be remembered again, given its id; for the owner alone.

        What was erased stays erased: only saying it anew is no longer refused.

        Raises:
            NotFound: no such memory within reach.
            InvalidInput: it was not erased.
            Conflict: nothing stands in the way.
        """

    @sends("erase")
    def certificates(self) -> list[Erasure]:
        """Return what was erased in this tenant, newest first: each has a certificate by its commit."""

    @sends("erase")
    def certificate(self, name: str) -> dict[str, Any]:
        """Return the certificate of an erasure, by the id of an erased memory or of the erasing commit."""

    @sends("erase")
    def plan_adopt(self) -> Adoption:
        """Return what accepting the store as it stands would accept, under a digest; change nothing."""

    @sends("erase")
    def adopt(self, digest: str) -> Adoption:
        """Accept the store as it stands, given the digest of what was shown.

        What this machine has erased is carried out in it again. The tokens of a foreign store end, and it says for
        good that it was one.

        Raises:
            Conflict: the store is not in the state that was shown.
            Tampered: its journal does not hold in itself; nothing was accepted.
            StoreUnavailable: it can only be read, or this machine has no place to note it.
        """

    # --- upkeep

    @sends("upkeep")
    def train_reranker(self) -> Training:
        """Train the reranker from all feedback, as an owner; it is used only if it orders held-out feedback better."""

    @sends("upkeep")
    def learn_importance(self) -> Reinforced:
        """Turn the uses counted since the last time into importance, in one commit; for the owner alone."""

    @sends("upkeep")
    def jobs(self) -> list[JobState]:
        """Return every job with its schedule and its last run, in the order in which they run."""

    @sends("upkeep")
    def run_job(self, name: str, *, force: bool = False) -> Run:
        """Run a job where it is due, for the owner alone; ``force`` runs it although it is not.

        Whatever becomes of it is a value with a receipt: ``run``, ``failed`` or ``skipped``.

        Raises:
            NotFound: there is no such job.
            Unauthorised: this handle is not an owner's.
        """

    @sends("upkeep")
    def pause_job(self, name: str, *, paused: bool = True) -> JobState:
        """Keep a job from running by itself, or let it again; ``run_job`` with ``force`` runs it all the same.

        For the owner alone; it leaves a receipt.

        Raises:
            NotFound: there is no such job.
        """

    @sends("upkeep")
    def run_due(self) -> list[Run]:
        """Run every job that is due by the store's clock, one after the other, for the owner alone."""

    @sends("upkeep")
    def merge_candidates(self, *, floor: float = 0.8, limit: int = 50) -> list[Alike]:
        """Return pairs of memories in this handle's sight that resemble each other, best first; change nothing.

        ``floor`` is the least score, 0..1. Sensitive memories are shown only to who may read them.
        """

    @sends("upkeep")
    def create_token(
        self,
        name: str,
        *,
        rights: str = "agent",
        can: Sequence[str] | None = None,
        tenant: str | None = None,
        scope: str | None = None,
        expires: datetime | Duration | None = None,
    ) -> Issued:
        """Make a token for a bearer of that name; its ``secret`` is shown now and never again.

        ``rights`` is ``agent``, ``reviewer`` or ``owner``; ``can`` narrows it, as in ``["read"]``. Tenant and
        scope are this handle's unless named. ``expires`` is an instant, a term (seconds, a timedelta,
        text such as ``30d``), or None.
        """

    @sends("upkeep")
    def tokens(self) -> list[Token]:
        """Return every token of the store, oldest first, without its secret; for the owner alone."""

    @sends("upkeep")
    def revoke_token(self, token_id: str) -> Receipt:
        """End a token; handles that it opened are refused from then on."""
