"""Feedback: kept beside the journal, bound to a receipt, and turned into examples to learn from.

Invariants
(1) Feedback names memories that its receipt shows, and nothing else; whoever reaches the receipt may give it.
(2) Feedback holds ids alone. What to learn from is computed anew from the receipt, the memories and the index, so
    what was erased teaches nothing any more.
(3) Giving feedback changes no answer: only a training, which is a commit, does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from keepward.domain.erasure import ERASED
from keepward.domain.feedback import Feedback
from keepward.domain.instant import to_micros
from keepward.domain.memory import Record
from keepward.domain.query import Recall
from keepward.domain.receipt import Reason, Receipt
from keepward.engine.commit import flush_uses
from keepward.engine.kit import Kit, Who
from keepward.engine.view import reaches
from keepward.errors import InvalidInput, NotFound, StoreUnavailable, Tampered
from keepward.gates import privacy, secrets

if TYPE_CHECKING:
    from keepward.retrieval.learn import Example

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
                },
            },
            "items": [
                {"id": hit.memory.id, "version": hit.memory.version, "score": hit.score, "parts": hit.parts}
                for hit in found
            ],
            **who.credential,
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
    shown = _shown(_receipt(kit, who, receipt_id))
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
        receipt=receipt_id,
        actor=who.actor.label,
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


def _shown(receipt: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return, by id, what a receipt says of the memories it shows."""
    sections = receipt.get("sections") or [{"items": receipt.get("items", [])}]
    return {item["id"]: item for section in sections for item in section["items"]}


def examples(kit: Kit, who: Who, *, limit: int) -> list[Example]:
    """Return the newest feedback as examples, oldest first; one that teaches nothing any more is left out.

    Raises:
        ModelUnavailable: the embedder failed.
    """
    from keepward.retrieval.learn import Example

    log = kit.store.feedback(who.tenant, limit=limit)
    usable: list[tuple[Feedback, dict[str, Any], dict[str, dict[str, Any]]]] = []
    receipts: dict[str, dict[str, Any] | None] = {}
    for given in log:
        if given.receipt not in receipts:
            receipts[given.receipt] = _kept(kit, who, given.receipt)
        receipt = receipts[given.receipt]
        if receipt is not None and receipt["inputs"]["objective"] != ERASED:
            ranked = {name: item for name, item in _shown(receipt).items() if "score" in item}
            usable.append((given, receipt, ranked))
    records = _records(kit, who, [name for given, _, _ in usable for name in (*given.used, *given.ignored)])
    model, dim = (kit.embedder.id, kit.embedder.dim) if kit.embedder else ("", 0)
    queries = _queries(kit, [receipt["inputs"]["objective"] for _, receipt, _ in usable])
    found: list[Example] = []
    with kit.indexes.lock:
        index = kit.indexes.level(kit.store, who.tenant)
        for given, receipt, ranked in usable:
            ids = [name for name in (*given.used, *given.ignored) if name in ranked and name in records]
            vectors, known = index.own_vectors(ids, model, dim)
            fused, facts = _facts([ranked[name] for name in ids], [records[name] for name in ids], receipt)
            used = frozenset(given.used)
            found.append(
                Example(
                    n=given.n,
                    query=queries[receipt["inputs"]["objective"]],
                    vectors=vectors,
                    known=known,
                    fused=fused,
                    facts=facts,
                    used=_flags([name in used for name in ids]),
                )
            )
    return [example for example in found if example.pairs()]


def _kept(kit: Kit, who: Who, receipt_id: str) -> dict[str, Any] | None:
    try:
        return kit.store.receipt(who.tenant, receipt_id)
    except Tampered:
        # ``verify`` names it; it teaches nothing.
        return None


def _records(kit: Kit, who: Who, ids: Sequence[str]) -> dict[str, Record]:
    wanted = sorted(set(ids))
    return {record.id: record for record in kit.store.records(who.tenant, wanted).records} if wanted else {}


def _queries(kit: Kit, texts: Sequence[str]) -> dict[str, Any]:
    import numpy as np

    asked = list(dict.fromkeys(texts))
    if kit.embedder is None or not asked:
        return dict.fromkeys(asked, np.zeros(0, dtype=np.float32))
    return dict(zip(asked, kit.embedder.embed(asked), strict=True))


def _facts(
    items: Sequence[Mapping[str, Any]], records: Sequence[Record], receipt: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Return fused scores and facts as they were when the receipt was written."""
    import numpy as np

    from keepward.retrieval.rerank import PARTS, facts_of

    parts = [item["parts"] for item in items]
    # A learned score is not what is learned from, or training would chase itself.
    fused = np.array([item["parts"].get("fused", item["score"]) for item in items], dtype=np.float64)
    happened = [to_micros(record.occurred_at or record.created_at) for record in records]
    facts = facts_of(
        [np.array([part.get(name, 0.0) for part in parts], dtype=np.float64) for name in PARTS[:4]],
        happened=np.array(happened, dtype=np.int64),
        now=int(receipt["inputs"]["now"]),
        importance=np.array([record.importance for record in records], dtype=np.float64),
        trust=np.array([int(record.trust) for record in records], dtype=np.int64),
    )
    return fused, facts


def _flags(values: Sequence[bool]) -> Any:
    import numpy as np

    return np.array(values, dtype=np.bool_)
