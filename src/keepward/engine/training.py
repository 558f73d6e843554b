"""Training: from feedback to a committed reranker, or to the finding that there is none worth serving.

Invariants
(1) A training is a commit of kind ``job``: it names the weights by their hash and says whether they serve; the
    weights are kept in the same transaction. Rolling it back brings back what served before.
(2) New weights serve only where they do better on held-out feedback than the plain order and than what serves now.
(3) A training that finds nothing new changes nothing.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from keepward.domain.commit import Commit, Step
from keepward.domain.memory import ContentType, Kind, Record, Sensitivity, Stability, Status, Tier
from keepward.domain.receipt import Reason, Receipt
from keepward.domain.scope import RESERVED
from keepward.domain.trust import Trust
from keepward.engine.commit import store_steps
from keepward.engine.feedback import examples
from keepward.engine.kit import Kit, Who
from keepward.engine.learned import KEY, Standing, standing

if TYPE_CHECKING:
    from keepward.retrieval.learn import Example, Judged
    from keepward.retrieval.rerank import Weights

#: Feedback looked at, newest first: what the replay buffer holds, and what is held out beside it.
LOOKED_AT = 13_333


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What a training found and did."""

    #: Version of the weights that stand now, None when there are none.
    version: str | None
    serving: bool
    #: Feedbacks that could be learned from, and those of them that were held out.
    feedback: int
    held_out: int
    #: Shares of held-out pairs in the right order, 0..1: by the weights, by the fused score, by cosine.
    learned: float
    fused: float
    cosine: float
    #: ``learned`` less the better of the other two.
    gain: float
    #: In words, why they serve or do not.
    why: str
    #: None when nothing new was found.
    commit: Commit | None
    receipt: Receipt | None


def train_reranker(kit: Kit, who: Who) -> Training:
    """Train the reranker from the feedback of the tenant.

    Raises:
        ModelUnavailable: the embedder failed; nothing was changed.
        Conflict: another training was faster; run it again.
    """
    from keepward.retrieval.learn import judge, train
    from keepward.retrieval.rerank import name_of

    model, dim = (kit.embedder.id, kit.embedder.dim) if kit.embedder else (None, 0)
    stands = standing(kit.store, who.tenant, kit.store.head(who.tenant).seq)
    told = examples(kit, who, limit=LOOKED_AT)
    fresh = train(told, model=model, dim=dim)
    judged = judge(fresh, told)
    weights = fresh
    if stands.serves and stands.weights is not None and stands.weights.model == model:
        before = judge(stands.weights, told)
        if before.gain >= judged.gain and before.serves:
            weights, judged = stands.weights, before
    packed = weights.pack()
    name = name_of(packed)
    facts = _facts(name, judged, weights)
    if stands.told.get("erased"):
        # Which weights went with an erasure has to be known for as long as an older state can name them.
        facts["erased"] = stands.told["erased"]
    if not fresh.steps or (facts == stands.told and stands.fault is None):
        kept = fresh.steps > 0 or stands.serves
        return _found(stands.version if kept else None, stands.serves, told, judged, None, None)
    text = base64.b64encode(packed).decode()
    step = _step(kit, who, stands, facts, judged)
    stored = store_steps(
        kit,
        who,
        [step],
        base={step.after.id: step.before.version if step.before else 0},
        reason="trained the reranker from feedback",
        kind="job",
        reasons=(Reason(gate="rerank", code="serves" if judged.serves else "off", detail=judged.why),),
        receipt_kind="job",
        also=lambda writer: writer.put_artefact(who.tenant, KEY, name, text),
    )
    return _found(name[:16], judged.serves, told, judged, stored.commit, stored.receipt)


def _facts(name: str, judged: Judged, weights: Weights) -> dict[str, Any]:
    return {
        "weights": name,
        "serving": judged.serves,
        "held_out": judged.feedbacks,
        "pairs": judged.pairs,
        "learned": judged.learned,
        "fused": judged.fused,
        "cosine": judged.cosine,
        "gain": judged.gain,
        "why": judged.why,
        "seen": weights.seen,
        "steps": weights.steps,
        "embedder": weights.model,
    }


def _found(
    version: str | None,
    serving: bool,
    told: list[Example],
    judged: Judged,
    commit: Commit | None,
    receipt: Receipt | None,
) -> Training:
    numbers = {name: value for name, value in asdict(judged).items() if name in {"learned", "fused", "cosine", "gain"}}
    return Training(
        version=version,
        serving=serving,
        feedback=len(told),
        held_out=judged.feedbacks,
        why=judged.why,
        commit=commit,
        receipt=receipt,
        **numbers,
    )


def _step(kit: Kit, who: Who, stands: Standing, facts: dict[str, Any], judged: Judged) -> Step:
    """Return the change of the record that names the weights; see ``engine.learned``."""
    now = kit.clock.now()
    metadata = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    text = f"The learned reranker {facts['weights'][:16]} {'serves' if judged.serves else 'does not serve'}."
    if stands.record is not None:
        before = stands.record
        after = replace(before, version=before.version + 1, text=text, metadata=metadata, updated_at=now)
        return Step(op="replace", before=before, after=after)
    born = Record(
        id=kit.ids.new_id(now),
        version=1,
        tier=Tier.ARCHIVAL,
        kind=Kind.DOCUMENT,
        text=text,
        scope=RESERVED,
        key=KEY,
        content_type=ContentType.STRUCTURED,
        metadata=metadata,
        source="job",
        trust=Trust.OWNER,
        confidence=1.0,
        importance=0.5,
        sensitivity=Sensitivity.NORMAL,
        stability=Stability.PERMANENT,
        # Never active: it is no memory, and whatever looks at live memories must pass it by.
        status=Status.ARCHIVED,
        author=who.actor.label,
        created_at=now,
        reinforced_at=now,
    )
    return Step(op="insert", before=None, after=born)
