"""Forget by words: the memories that a text really matches, planned under a digest and retired in one commit."""

from __future__ import annotations

from msgspec.structs import replace

from keepward.core.change import Retire
from keepward.core.proposal import Forgetting, Match
from keepward.core.query import Filter
from keepward.core.serialization import canonical
from keepward.core.serialization import digest as keyless_digest
from keepward.errors import Conflict, InvalidInput
from keepward.services.access import corrupt_memories, unreadable_notes
from keepward.services.feedback import save_recall_receipt
from keepward.services.read import search
from keepward.services.request_context import RequestContext, record_read
from keepward.services.write import propose

#: Most memories of one plan.
_MAX_MATCHES = 500
#: Lowest score of a match, 0..1, and its lowest share of the best score: printed by ``python -m evals.forgetting``.
MIN_SCORE, MIN_SCORE_SHARE = 0.06, 0.6


def plan_forget_matching(session: RequestContext, text: str) -> Forgetting:
    """Return the memories of the session's own scope that a text matches, best first, under a digest."""
    if not text.strip():
        raise InvalidInput("say in words what to forget")
    filters = Filter(scopes=(session.scope,), include_sensitive=session.reader.may_ask_for_sensitive)
    # The learned order knows what is useful, not what is meant, so it is not used here.
    result = search(session, text, filters, limit=_MAX_MATCHES, purpose="answer", order="fused")
    # Messages of a session are never weak. To be forgotten, a message must share a word with the text.
    strong = [hit for hit in result.hits if not hit.weak and (hit.memory.session is None or "words" in hit.why)]
    threshold = max(MIN_SCORE, MIN_SCORE_SHARE * max((hit.score for hit in strong), default=0.0))
    matches = replace(result, hits=tuple(hit for hit in strong if hit.score >= threshold))
    if record_read(session, [hit.memory for hit in matches]) is not None:
        save_recall_receipt(session, text, "answer", matches)
    planned = [session.tenant, session.scope, text, [[hit.memory.id, hit.memory.version] for hit in matches]]
    return Forgetting(
        matches=tuple(
            Match(
                id=hit.memory.id,
                version=hit.memory.version,
                text=hit.memory.text,
                score=hit.score,
                why=hit.why,
                tier=hit.memory.tier,
                text_at=hit.memory.text_at,
            )
            for hit in matches
        ),
        digest=keyless_digest("forgetting", canonical(planned)).hex(),
        notes=(*result.notes, *unreadable_notes(corrupt_memories(result.withheld))),
    )


def forget_matching(session: RequestContext, text: str, digest: str, reason: str = "") -> Forgetting:
    """Retire what the plan with this digest lists, in one commit; do nothing if the plan is empty.

    Raises:
        Conflict: the plan has another digest now.
    """
    plan = plan_forget_matching(session, text)
    if plan.digest != digest:
        raise Conflict("the plan is not the one you saw: what it would forget has changed; look at it again")
    if not plan.matches:
        return plan
    changes = [Retire(id=match.id, if_version=match.version) for match in plan.matches]
    return replace(plan, outcome=propose(session, changes, reason=reason))
