"""Training: from feedback to a committed reranker, or to the finding that there is none worth serving.

Invariants
(1) A training is a commit of kind ``job``: it names the weights by their hash and says whether they serve; the
    weights are kept in the same transaction. Rolling it back brings back what served before.
(2) New weights serve only where they do better on held-out feedback than the plain order and than what serves now.
(3) A training that finds nothing new changes nothing.
(4) A training that was interrupted goes on from its last checkpoint and ends in the very weights that it would have
    ended in without; see ``checkpoints``.
(5) Weights that came with an import go on serving until there is enough feedback here to judge them by.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from keepward.engine import checkpoints
from keepward.engine.checkpoints import Checkpoints, Progress
from keepward.engine.commit import store_steps
from keepward.engine.kit import Kit, Who
from keepward.engine.learned import KEY, Standing, is_carried, standing
from keepward.engine.lessons import examples
from keepward.model.commit import Reason, Step
from keepward.model.memory import ContentType, Kind, Record, Sensitivity, Stability, Status, Tier
from keepward.model.query import Training
from keepward.model.trust import RESERVED, Trust

if TYPE_CHECKING:
    from keepward.ports.store import Writer
    from keepward.retrieval.learn import Course, Example, Judged
    from keepward.retrieval.rerank import Weights

#: Feedbacks learned from between two checkpoints.
EACH = 1_000
_AGENTS_ALONE = (
    "what agents say counts beside what people say, and people have said nothing yet: give feedback as a person, "
    "such as with --as operator, or set policy.agent_feedback_share to 1"
)


def train_reranker(kit: Kit, who: Who, *, on_progress: Callable[[int, int], None] | None = None) -> Training:
    """Train the reranker from the feedback of the tenant; ``on_progress`` is told (done, total) on the way.

    With memory or writing switched off by policy nothing is done.

    Raises:
        ModelUnavailable: the embedder failed; nothing was changed, and what was done until then is kept.
        Conflict: another training was faster, or something was erased meanwhile; run it again.
    """
    from keepward.retrieval.learn import judge, seen_in, unjudged
    from keepward.retrieval.rerank import name_of

    model, dim = (kit.embedder.id, kit.embedder.dim) if kit.embedder else (None, 0)
    head = kit.store.head(who.tenant)
    stands = standing(kit.store, who.tenant, head.seq)
    if not (kit.policy.enabled and kit.policy.capture):
        return _found(stands, [], unjudged("memory is switched off by policy; nothing was done"), 0.0)
    kept = Checkpoints(kit=kit, who=who, since=head.seq)
    progress = Progress(report=on_progress)
    told = examples(kit, who, kept=kept, progress=progress)
    course, resumed = _learned(kit, kept, told, progress, model=model, dim=dim)
    weights, from_agents = course.weights(model=model, seen=seen_in(told)), course.from_agents
    judged, still = judge(weights, told), False
    if stands.serves and stands.weights is not None and stands.weights.model == model:
        before = judge(stands.weights, told)
        still = not judged.enough and is_carried(kit.store, who.tenant, stands.name)
        if still:
            here = f"there is too little feedback here to judge it by: {before.why}"
            before = replace(before, why=f"it came with an import and serves on, since {here}")
        if still or (before.gain >= judged.gain and before.serves):
            weights, judged, from_agents = stands.weights, before, stands.told.get("from_agents", 0.0)
    if told and all(example.bounded for example in told):
        judged = replace(judged, why=f"{judged.why}; {_AGENTS_ALONE}")
    progress.told(checkpoints.PARTS - 1, 1, 1)
    packed = weights.pack()
    name = name_of(packed)
    facts = _facts(name, judged, weights, from_agents)
    if stands.told.get("erased"):
        # Which weights went with an erasure has to be known for as long as an older state can name them.
        facts["erased"] = stands.told["erased"]
    blank = not course.steps and not stands.serves
    if blank or still or (facts == stands.told and stands.fault is None):
        kept.end()
        return _found(replace(stands, name=None) if blank else stands, told, judged, from_agents, resumed=resumed)
    text = base64.b64encode(packed).decode()

    def also(writer: Writer) -> None:
        kept.unerased()
        writer.put_artefact(who.tenant, KEY, name, text)
        checkpoints.drop(writer, who.tenant)

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
        also=also,
    )
    ends = replace(stands, name=name, chosen=judged.serves, weights=weights)
    found = _found(ends, told, judged, from_agents, resumed=resumed)
    return replace(found, commit=stored.commit, receipt=stored.receipt)


def _learned(
    kit: Kit, kept: Checkpoints, told: list[Example], progress: Progress, *, model: str | None, dim: int
) -> tuple[Course, int]:
    """Return what all lessons taught, and how many of them had been learned from before an interruption."""
    from keepward.retrieval.checkpoint import Trail
    from keepward.retrieval.learn import Course, learn, lessons

    share = kit.policy.agent_feedback_share

    def begun() -> Trail:
        return Trail(model=model, dim=dim, share=share, seed=0)

    wanted = lessons(told)
    trail = begun()
    course = kept.course(trail, wanted)
    if course is None:
        course, trail = Course.begun(dim), begun()
    resumed = course.count
    for _ in learn(wanted, course, share=share):
        progress.told(checkpoints.PARTS - 1, course.count, len(told))
        # Behind the last lesson stands a step for the rest, which would not be there if more followed.
        if course.count % EACH == 0 and course.count < len(wanted):
            kept.keep_course(course, trail.follow(wanted, course.count))
    return course, resumed


def _facts(name: str, judged: Judged, weights: Weights, from_agents: float) -> dict[str, Any]:
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
        "from_agents": from_agents,
        "seen": weights.seen,
        "steps": weights.steps,
        "embedder": weights.model,
    }


def _found(stands: Standing, told: list[Example], judged: Judged, from_agents: float, *, resumed: int = 0) -> Training:
    numbers = {name: value for name, value in asdict(judged).items() if name in {"learned", "fused", "cosine", "gain"}}
    return Training(
        version=stands.version,
        serving=stands.serves,
        feedback=len(told),
        held_out=judged.feedbacks,
        why=judged.why,
        from_agents=from_agents,
        resumed=resumed,
        commit=None,
        receipt=None,
        **numbers,
    )


def _step(kit: Kit, who: Who, stands: Standing, facts: dict[str, Any], judged: Judged) -> Step:
    """Return the change of the record that names the weights; see ``engine.learned``."""
    now = kit.clock.now()
    metadata = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    text = f"The learned reranker {facts['weights'][:16]} {'serves' if judged.serves else 'does not serve'}."
    if stands.record is not None:
        before = stands.record
        after = replace(before, version=before.version + 1, text=text, metadata_json=metadata, updated_at=now)
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
        metadata_json=metadata,
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
