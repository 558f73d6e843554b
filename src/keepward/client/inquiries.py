"""The verbs of an inquiry, of feedback, tokens, erasing and jobs, over HTTP; each says what ``Memory``'s says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from keepward.client import wire
from keepward.client.calls import Calls, answer_of
from keepward.client.decode import decode, decode_each
from keepward.client.transport import path_of
from keepward.errors import InvalidInput
from keepward.model.commit import Receipt
from keepward.model.job import Alike, JobState, Run
from keepward.model.query import Feedback
from keepward.model.trust import Issued, Token
from keepward.model.value import Duration
from keepward.verbs.arguments import ending, texts

if TYPE_CHECKING:
    from keepward.engine.erase import ErasePlan
    from keepward.model.copies import Adoption
    from keepward.model.inquiry import Bisection, Blame, Containment, ContextDifference, Impact
    from keepward.model.journal import Erased, Lifted


class Inquiries(Calls):
    """Impact, containment, blame, bisection, feedback, tokens, erasing."""

    def impact(
        self,
        *,
        source: str | None = None,
        actor: str | None = None,
        session: str | None = None,
        commit: str | None = None,
        memory: str | None = None,
    ) -> Impact:
        """Return what one of these touched: memories, everything derived from them, every context that held any."""
        from keepward.model.inquiry import Impact

        asked = wire.present(source=source, actor=actor, session=session, commit=commit, memory=memory)
        return decode(Impact, self._get("/memory/impact", list(asked.items())))

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

        Without ``plan`` nothing is written: what comes back is the plan and its digest.
        """
        from keepward.model.inquiry import Containment

        chosen = wire.present(source=source, actor=actor, session=session, commit=commit, memory=memory)
        if plan is None:
            return decode(Containment, self._post("/memory/contain/plan", chosen))
        return decode(Containment, self._post("/memory/contain", {**chosen, "digest": plan, "reason": reason}))

    def blame(self, name: str) -> Blame:
        """Return which commit, actor, source and approval made each value of a memory, by id or key."""
        from keepward.model.inquiry import Blame

        return decode(Blame, self._get(path_of("blame", name)))

    def bisect(
        self,
        query: str,
        *,
        contains: str | None = None,
        predicate: Callable[[str], bool] | None = None,
        since: int = 0,
        purpose: str = "answer",
    ) -> Bisection:
        """Return the commit with which the context for a query began to hold a text; a predicate cannot be sent."""
        from keepward.model.inquiry import Bisection

        if predicate is not None:
            raise InvalidInput("a predicate cannot be sent to a server: give the text to look for as `contains`")
        if not contains:
            raise InvalidInput("give the text to look for")
        body = {"query": query, "contains": contains, "since": since, "purpose": purpose}
        return decode(Bisection, self._post("/memory/bisect", body))

    def context_diff(self, first: str, second: str) -> ContextDifference:
        """Return what differs between two compiled contexts, by receipt id, and the commit responsible for each."""
        from keepward.model.inquiry import ContextDifference

        return decode(ContextDifference, self._get(path_of("receipts", first, "diff", second)))

    def feedback(self, receipt_id: str, *, used: Sequence[str] = (), ignored: Sequence[str] = ()) -> Feedback:
        """Say which memories of a context, or of a recall with ``receipt=True``, were used and which were not."""
        if not isinstance(receipt_id, str) or not receipt_id:
            raise InvalidInput("feedback is on a receipt: give its id, a text")
        said = {"used": list(texts("used", used)), "ignored": list(texts("ignored", ignored))}
        return decode(Feedback, self._post("/memory/feedback", {"receipt": receipt_id, **said}))

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
        """Make a token for a bearer of that name; its ``secret`` is shown now and never again."""
        if isinstance(can, str):
            raise InvalidInput("can is a list of texts")
        body = wire.present(
            name=name,
            rights=rights,
            can=None if can is None else sorted(can),
            tenant=tenant,
            scope=scope,
            expires=ending(expires),
        )
        return decode(Issued, self._post("/memory/tokens", body))

    def tokens(self) -> list[Token]:
        """Return every token of the store, oldest first, without its secret or its hash; for the owner alone."""
        return decode_each(Token, self._get("/memory/tokens")["items"])

    def revoke_token(self, token_id: str) -> Receipt:
        """End a token; handles that it opened are refused from then on."""
        answer = answer_of(self._call("DELETE", path_of("tokens", token_id)))
        return decode(Receipt, answer.get("receipt_record", answer))

    def plan_erase(
        self,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: str = "request",
    ) -> ErasePlan:
        """Return what erasing these memories would destroy, under a digest; change nothing."""
        from keepward.engine.erase import ErasePlan

        return decode(ErasePlan, self._post("/memory/erase/plan", _selection(ids, subject, source, reason)))

    def erase(
        self,
        digest: str,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: str = "request",
    ) -> Erased:
        """Carry out exactly the plan with this digest, given what it was planned for."""
        from keepward.model.journal import Erased

        body = {"digest": digest, **_selection(ids, subject, source, reason)}
        return decode(Erased, self._post("/memory/erase", body))

    def lift_erasure(self, name: str) -> Lifted:
        """Allow what an erased memory said to be remembered again, given its id; for the owner alone."""
        from keepward.model.journal import Lifted

        return decode(Lifted, self._post("/memory/erase/lift", {"name": name}))

    def certificate(self, name: str) -> dict[str, Any]:
        """Return the certificate of an erasure, by the id of an erased memory or of the erasing commit."""
        return dict(self._get(path_of("certificates", name)))

    def plan_adopt(self) -> Adoption:
        """Return what accepting the store as it stands would accept, under a digest; change nothing."""
        from keepward.model.copies import Adoption

        return decode(Adoption, self._post("/memory/adopt/plan"))

    def adopt(self, digest: str) -> Adoption:
        """Accept the store as it stands, given the digest of what was shown."""
        from keepward.model.copies import Adoption

        return decode(Adoption, self._post("/memory/adopt", {"digest": digest}))

    def jobs(self) -> list[JobState]:
        """Return every job with its schedule and its last run, in the order in which they run."""
        return decode_each(JobState, self._get("/memory/jobs")["items"])

    def run_job(self, name: str, *, force: bool = False) -> Run:
        """Run a job where it is due, for the owner alone; ``force`` runs it although it is not."""
        return decode(Run, self._post(path_of("jobs", name, "run"), {"force": force}))

    def run_due(self) -> list[Run]:
        """Run every job that is due by the store's clock, one after the other, for the owner alone."""
        return decode_each(Run, self._post("/memory/jobs/run-due")["items"])

    def merge_candidates(self, *, floor: float = 0.8, limit: int = 50) -> list[Alike]:
        """Return pairs of memories in this handle's sight that resemble each other, best first; change nothing."""
        asked = [("floor", floor), ("limit", limit)]
        return decode_each(Alike, self._get("/memory/candidates", asked)["items"])


def _selection(ids: Sequence[str] | str, subject: str | None, source: str | None, reason: str) -> dict[str, Any]:
    chosen = {"ids": [ids] if isinstance(ids, str) else list(ids), "reason": reason}
    return chosen | wire.present(subject=subject, source=source)
