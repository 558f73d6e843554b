"""Feedback: kept beside the journal, bound to a receipt.

Invariants
(1) Feedback names memories that its receipt shows, and nothing else; whoever reaches the receipt may give it.
(2) Feedback holds ids, who said it and how far that is relied on. One principal has one word on a receipt: said
    again, it takes the place of what was said before.
(3) Giving feedback changes no answer: only a training, which is a commit, does; see ``lessons``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from keepward.engine import handed
from keepward.engine.commit import flush_uses
from keepward.engine.kit import Kit, Who
from keepward.engine.lessons import shown_by
from keepward.engine.view import reaches
from keepward.errors import InvalidInput, NotFound, StoreUnavailable
from keepward.gates import privacy, secrets
from keepward.model.commit import Reason, Receipt
from keepward.model.query import Feedback, Recall
from keepward.model.trust import default_source, trust_of
from keepward.model.value import to_micros

#: Receipts that show memories somebody was given.
KINDS = frozenset({"recall", "compile"})
#: Most ids in one feedback.
MOST = 1_000


def keep_recall(kit: Kit, who: Who, query: str, purpose: str, found: Recall) -> Recall:
    """Keep a receipt of a recall; return the recall with its id, or with a note on why there is none."""
    if not kit.policy.enabled:
        return replace(found, notes=(*found.notes, "the receipt was not kept: memory is switched off by policy"))
    now = kit.clock.now()
    receipt = Receipt(
        id=kit.ids.new_id(now),
        tenant=who.tenant,
        kind="recall",
        at=now,
        actor=who.actor.label,
        policy=kit.policy.version,
        head=found.head,
        reasons=tuple(Reason(gate="recall", code="note", detail=note) for note in found.notes),
        facts={
            "inputs": {
                "objective": privacy.scrub(secrets.scrub(query)),
                "purpose": purpose,
                "now": to_micros(found.now),
                "scope": who.scope,
                "versions": {
                    "embedder": kit.embedder.id if kit.embedder else "none",
                    "reranker": found.reranker or "none",
                    "relevance": found.calibration or "none",
                },
            },
            "relevance": {"floor": found.floor, "below": found.below},
            "items": [
                {
                    "id": hit.memory.id,
                    "version": hit.memory.version,
                    "score": hit.score,
                    "weak": hit.weak,
                    "parts": hit.parts,
                }
                for hit in found
            ],
            **who.credential,
            **handed.facts(who, [hit.memory for hit in found]),
        },
    )
    try:
        with kit.store.write() as writer:
            writer.put_receipt(receipt)
            flush_uses(kit, writer)
    except StoreUnavailable:
        return replace(found, notes=(*found.notes, "the receipt was not kept: the store cannot be written"))
    return replace(found, receipt=receipt.id)


def give(kit: Kit, who: Who, receipt_id: str, *, used: Sequence[str], ignored: Sequence[str]) -> Feedback:
    """Keep which memories of a recall or context were used, and which were not.

    A second one of the same actor on the same receipt takes the place of the first. With memory switched off by
    policy nothing is kept, and the number is 0.

    Raises:
        NotFound: no recall or compile receipt by that id within reach.
        InvalidInput: an id that the receipt does not show, one on both sides, or none at all.
    """
    receipt = _receipt(kit, who, receipt_id)
    shown = shown_by(receipt)
    sides = tuple(sorted(set(used))), tuple(sorted(set(ignored)))
    named = {*sides[0], *sides[1]}
    if not named or len(named) > MOST:
        raise InvalidInput(f"name from 1 to {MOST} memories that were used or ignored")
    if len(named) < len(sides[0]) + len(sides[1]):
        raise InvalidInput("a memory was either used or ignored; name it once")
    if named - shown.keys():
        raise InvalidInput("feedback names memories that its receipt shows; one of these is not in it")
    given = Feedback(
        tenant=who.tenant,
        at=kit.clock.now(),
        receipt=receipt["id"],
        actor=who.actor.label,
        trust=trust_of(who.actor, default_source(who.actor)),
        used=sides[0],
        ignored=sides[1],
    )
    if not kit.policy.enabled:
        return given
    with kit.store.write() as writer:
        return writer.put_feedback(given)


def _receipt(kit: Kit, who: Who, receipt_id: str) -> dict[str, Any]:
    receipt = kit.store.receipt(who.tenant, receipt_id)
    known = receipt is not None and receipt.get("kind") in KINDS
    if receipt is None or not known or not (who.actor.may_decide or reaches(who, receipt["inputs"]["scope"])):
        raise NotFound("there is no receipt of a recall or a context by that id in this tenant")
    return receipt
