"""Forget by words: the memories that a text really matches, planned under a digest and retired in one commit.

A plan also shows what quotes a match, and follows it; see ``services.writing.following``.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from keepward.core.change import Retire
from keepward.core.json_form import canonical
from keepward.core.memory import Record
from keepward.core.principals import main_scope
from keepward.core.proposal import Forgetting, Match
from keepward.core.query import Filter, Hit
from keepward.core.quotes import LINES
from keepward.core.serialization import digest as keyless_digest
from keepward.errors import Conflict
from keepward.services.access import corrupt_memories, unreadable_notes
from keepward.services.reading.queries import save_recall_receipt
from keepward.services.reading.recall import search
from keepward.services.reading.visible import VisibleReader
from keepward.services.recorded_reads import record_read
from keepward.services.request_context import RequestContext
from keepward.services.writing.following import followers, shortened_in
from keepward.services.writing.write import propose

#: Most memories of one plan.
_MAX_MATCHES = 500
#: Lowest score of a match, 0..1, and its lowest share of the best score: printed by ``python -m evals.forgetting``.
MIN_SCORE, MIN_SCORE_SHARE = 0.06, 0.6
#: Why a memory is in a plan that only quotes, merges or sums up a match.
QUOTES = ("quotes",)


def plan_forget_matching(context: RequestContext, text: str) -> Forgetting:
    """Return the memories of the handle's own scope that a text matches, best first, under a digest."""
    reader = VisibleReader(context)
    scopes = tuple(dict.fromkeys((context.scope, main_scope(context.scope))))
    filters = Filter(scopes=scopes, hidden=reader.hidden(), include_sensitive=reader.may_ask_for_sensitive)
    # The learned order knows what is useful, not what is meant, so it is not used here.
    result = search(context, text, filters, limit=_MAX_MATCHES, purpose="answer", order="fused")
    # A message may be close in meaning alone. To be forgotten, it must share a word with the text.
    strong = [hit for hit in result.hits if not hit.weak and (hit.memory.session is None or "words" in hit.why)]
    threshold = max(MIN_SCORE, MIN_SCORE_SHARE * max((hit.score for hit in strong), default=0.0))
    found = {hit.memory.id: hit for hit in strong if hit.score >= threshold}
    # A summary that only quotes other matches loses their lines; it is no match of its own.
    quotes = followers(context, found)
    while any(found.pop(name, None) for name in _quoting(context, found)):
        quotes = followers(context, found)
    matches = replace(result, hits=tuple(found.values()))
    if record_read(context, [hit.memory for hit in matches]) is not None:
        save_recall_receipt(context, text, "answer", matches)
    removed = [record for _, record in sorted(quotes.removed.items()) if VisibleReader(context).can_see(record.scope)]
    lines = shortened_in(context, quotes)
    changed = [
        *([hit.memory.id, hit.memory.version] for hit in matches),
        *([name, record.version] for name, record in sorted(quotes.removed.items())),
        *([name, before.version] for name, (before, _) in sorted(quotes.shortened.items())),
    ]
    return Forgetting(
        matches=(
            *(_match(hit.memory, score=hit.score, why=hit.why) for hit in matches),
            *(_match(VisibleReader(context).hide_content(record), score=0.0, why=QUOTES) for record in removed),
        ),
        shortened=lines,
        digest=keyless_digest("forgetting", canonical([context.tenant, context.scope, text, changed])).hex(),
        notes=(*result.notes, *unreadable_notes(corrupt_memories(result.withheld))),
    )


def _quoting(context: RequestContext, found: Mapping[str, Hit]) -> list[str]:
    """Return the summaries of quotes among some hits that lose lines of the others."""
    return [
        name
        for name, hit in found.items()
        if LINES in hit.memory.metadata and name in followers(context, found.keys() - {name}).shortened
    ]


def _match(record: Record, *, score: float, why: tuple[str, ...]) -> Match:
    return Match(
        id=record.id,
        version=record.version,
        text=record.text,
        score=score,
        why=why,
        tier=record.tier,
        text_at=record.text_at,
    )


def forget_matching(context: RequestContext, text: str, digest: str, reason: str = "") -> Forgetting:
    """Retire what the plan with this digest lists, in one commit; do nothing if the plan is empty.

    Raises:
        Conflict: the plan has another digest now.
    """
    plan = plan_forget_matching(context, text)
    if plan.digest != digest:
        raise Conflict("the plan is not the one you saw: what it would forget has changed; look at it again")
    if not plan.matches:
        return plan
    # What quotes a match follows it in the same commit.
    changes = [Retire(id=match.id, if_version=match.version) for match in plan.matches if match.why != QUOTES]
    return replace(plan, outcome=propose(context, changes, reason=reason))
