"""The learned reranker: which weights are in use, how they are trained from feedback, and how an erasure drops them.

One stored document has the results of the newest training and names its weights by their SHA-256; another contains
them. An erasure empties both. Every read ranks with them, one of a past state too; a context replays from its receipt.
Agents teach and people decide: only people's feedback is held out to judge the weights.

Late imports: a program that does not need it starts faster.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from keepward.core.commit import ERASED, Reason
from keepward.core.memory import Record, importance_at
from keepward.core.query import Feedback, Training
from keepward.core.value import from_micros, to_micros
from keepward.errors import Conflict, Tampered
from keepward.services.access import items_of
from keepward.services.reading.visible import VisibleReader
from keepward.services.search.features import embedder_id, known_embedder_id, query_vectors_of
from keepward.storage.documents import ReceiptArtefact

if TYPE_CHECKING:
    from keepward.retrieval.reranker import Example, RerankerWeights
    from keepward.services.request_context import RequestContext

#: Kind of the document with the weights, whose name is their hash.
RERANKER = "reranker"
#: Kind and name of the document with the results of the newest training.
TRAINING = ("training", "newest")
WEIGHTS_ERASED = (
    "an erasure dropped the weights that had learned from it; run `keepward train` to learn again from the rest"
)
_ERASED = json.dumps({"why": WEIGHTS_ERASED})
#: Most feedback of people, and of agents, that a training reads: the newest.
MAX_FEEDBACK = 10_000
_MAX_CACHED = 8
_NO_HUMAN_FEEDBACK = (
    "feedback of agents counts only next to feedback of people, of which there is none: give feedback as a person, "
    "such as with --as operator, or set policy.agent_feedback_share to 1"
)
_NO_PAIRS = (
    "no feedback has both a memory that was used and one that was not, from one receipt: name both with "
    "`keepward feedback RECEIPT --used ID --ignored ID`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveReranker:
    """The reranker as the newest training made it."""

    #: The results of the training, as JSON values; empty before the first.
    facts: Mapping[str, Any] = field(default_factory=dict)
    #: None if none are in use.
    weights: RerankerWeights | None = None
    #: Why weights that should be in use cannot be used.
    fault: str | None = None

    @property
    def version(self) -> str | None:
        """The first 16 hex digits of the weights' hash, as receipts name it."""
        name = self.facts.get("weights")
        return name and name[:16]

    def unusable_reason(self, model: str | None) -> str | None:
        """Return why the weights cannot be used with this embedder, or None."""
        if self.weights is None or self.weights.model == model:
            return None
        if model is None:
            return "it was trained with another embedder, or with one that is unavailable now"
        return "it was trained with another embedder; run `keepward train` to train it with this one"


def ask_reranker(context: RequestContext) -> None:
    """Let what ``active_reranker`` reads come with the answer to the next read."""
    context.store.ask_artefact(context.tenant, *TRAINING)


def active_reranker(context: RequestContext) -> ActiveReranker:
    """Return the reranker; it is cached until the next training or erasure."""
    try:
        results = context.store.artefact(context.tenant, *TRAINING)
    except Tampered as exc:
        return ActiveReranker(fault=str(exc))
    if results is None:
        return ActiveReranker()
    found = context.engine.rerankers.get(context.tenant)
    if found is None or found[0] != results:
        found = results, _read(context, json.loads(results or _ERASED))
        if len(context.engine.rerankers) >= _MAX_CACHED:
            context.engine.rerankers.clear()
        context.engine.rerankers[context.tenant] = found
    return found[1]


def _read(context: RequestContext, facts: Mapping[str, Any]) -> ActiveReranker:
    active = ActiveReranker(facts=facts)
    if not facts.get("serving"):
        return active
    try:
        text = context.store.artefact(context.tenant, RERANKER, facts["weights"])
        return dataclasses.replace(active, weights=_load_weights(facts["weights"], text))
    except (Tampered, ValueError) as exc:
        return dataclasses.replace(active, fault=str(exc))


def _load_weights(name: str, text: str | None) -> RerankerWeights:
    from keepward.retrieval.reranker import load

    if text is None:
        raise ValueError("its weights are missing")
    data = base64.b64decode(text, validate=True)
    if hashlib.sha256(data).hexdigest() != name:
        raise ValueError("its weights are not those that were trained")
    return load(data)


def unseen_feedback(context: RequestContext, active: ActiveReranker) -> int:
    """Return the number of feedbacks since the last training."""
    return max(0, context.store.feedback_count(context.tenant) - int(active.facts.get("seen", 0)))


def reranker_status(context: RequestContext) -> dict[str, Any]:
    """Return what ``status`` reports of the reranker, as JSON values."""
    active = active_reranker(context)
    unusable = active.unusable_reason(known_embedder_id(context.embedder))
    untrained = "it was never trained; give feedback, then run `keepward train`"
    # Feedback is counted for all scopes together.
    counts = VisibleReader(context).sees_store
    return {
        "version": active.version,
        "serving": active.weights is not None and unusable is None,
        **{name: active.facts.get(name, 0) if counts else 0 for name in ("held_out", "pairs")},
        **{name: active.facts.get(name, 0.0) if counts else 0.0 for name in ("gain", "from_agents")},
        "feedback": context.store.feedback_count(context.tenant) if counts else 0,
        "unseen": unseen_feedback(context, active) if counts else 0,
        "agents_at_most": context.policy.agent_feedback_share,
        "error": active.fault,
        "why": active.fault or unusable or active.facts.get("why", untrained),
    }


def train_reranker(context: RequestContext) -> Training:
    """Train the reranker from the tenant's feedback; it serves if it proves better on held-out feedback.

    If policy switches memory or writing off, nothing is done.

    Raises:
        ModelUnavailable: the embedder failed; nothing was changed.
        Conflict: something was erased meanwhile; run it again.
    """
    from keepward.retrieval.reranker import HeldOutResult, evaluate_held_out, train
    from keepward.services.transaction import receipt_of  # Imported here: a recall loads no writing code.

    head = context.store.head(context.tenant)
    active = active_reranker(context)
    if not (context.policy.enabled and context.policy.capture):
        return _training_result(active, HeldOutResult(why="memory is switched off by policy; nothing was done"))
    examples = training_examples(context)
    model, dim = (embedder_id(context.embedder), context.embedder.dim) if context.embedder else (None, 0)
    weights, share = train(examples, model=model, dim=dim, share=context.policy.agent_feedback_share)
    result = evaluate_held_out(weights, examples)
    seen = context.store.feedback_count(context.tenant)
    if seen and not examples:
        result = dataclasses.replace(result, why=f"{result.why}; {_NO_PAIRS}")
    if examples and all(example.from_agent for example in examples):
        result = dataclasses.replace(result, why=f"{result.why}; {_NO_HUMAN_FEEDBACK}")
    data = weights.dump()
    name = hashlib.sha256(data).hexdigest()
    facts = {
        "weights": name,
        "serving": result.serves,
        "held_out": result.feedbacks,
        "pairs": result.pairs,
        "gain": result.gain,
        "why": result.why,
        "from_agents": share,
        "seen": seen,
    }
    learned = weights.left.any() or weights.features.any()
    if active.fault is None and not (learned or active.weights):
        return _training_result(ActiveReranker(), result, feedback=len(examples))
    if active.fault is None and facts == active.facts:
        return _training_result(active, result, feedback=len(examples), from_agents=share)

    reason = Reason(gate="rerank", code="serves" if result.serves else "off", detail=result.why)
    receipt = receipt_of(context, "job", {"weights": name, "seen": seen}, (reason,))
    with context.store.write() as writer:
        if any(commit.kind == "erase" for commit, _ in writer.events(context.tenant, after=head.seq)):
            raise Conflict("memories were erased while the reranker was trained; nothing was stored: train it again")
        earlier = [f"{RERANKER}/{each}" for each in writer.artefact_names(context.tenant, RERANKER)]
        writer.delete(ReceiptArtefact, context.tenant, *earlier)
        writer.put(ReceiptArtefact(context.tenant, RERANKER, name, base64.b64encode(data).decode()))
        writer.replace_artefact(ReceiptArtefact(context.tenant, *TRAINING, json.dumps(facts)))
        writer.put_receipt(receipt)
    now = ActiveReranker(facts=facts, weights=weights if result.serves else None)
    return replace(_training_result(now, result, feedback=len(examples), from_agents=share), receipt=receipt)


def _training_result(active: ActiveReranker, result: Any, **extra: Any) -> Training:
    numbers = {
        name: value
        for name, value in dataclasses.asdict(result).items()
        if name in {"learned", "fused", "cosine", "gain"}
    }
    return Training(
        version=active.version,
        serving=active.weights is not None,
        held_out=result.feedbacks,
        why=result.why,
        receipt=None,
        **{"feedback": 0, **numbers, **extra},
    )


def training_examples(context: RequestContext) -> list[Example]:
    """Return the feedback with a pair of a used and an ignored memory, oldest first.

    Every fourth feedback of a person is held out. An agent's feedback on a memory does not count if a person gave some
    on the same receipt. Receipts that cannot be read, or whose objective was erased, are left out.
    """
    import numpy as np

    from keepward.retrieval.reranker import HOLD_OUT_EVERY, Example

    log = sorted(context.store.documents(Feedback, context.tenant).list(), key=lambda feedback: feedback.n)
    equal_share = context.policy.agent_feedback_share >= 1.0
    people = [feedback for feedback in log if feedback.by_person or equal_share]
    held_out = {feedback.n for feedback in people[HOLD_OUT_EVERY - 1 :: HOLD_OUT_EVERY]}
    by_people: dict[str, set[str]] = {}
    for feedback in people:
        by_people.setdefault(feedback.receipt, set()).update(feedback.used, feedback.ignored)
    agents = [
        _feedback_without(feedback, by_people.get(feedback.receipt, ()))
        for feedback in log
        if not (feedback.by_person or equal_share)
    ]
    chosen = sorted((*people[-MAX_FEEDBACK:], *agents[-MAX_FEEDBACK:]), key=lambda feedback: feedback.n)
    receipts = {name: _receipt(context, name) for name in sorted({feedback.receipt for feedback in chosen})}
    named = sorted({name for feedback in chosen for name in (*feedback.used, *feedback.ignored)})
    records = {record.id: record for record in context.store.records(context.tenant, named).records} if named else {}
    objectives = sorted({receipt["inputs"]["objective"] for receipt in receipts.values() if receipt})
    texts, embedder = objectives, context.embedder
    model, dim = (embedder_id(embedder), embedder.dim) if embedder else ("", 0)
    vectors = query_vectors_of(embedder, texts) if embedder and texts else np.zeros((len(texts), 0), dtype=np.float32)
    queries = dict(zip(texts, vectors, strict=True))
    examples = []
    index = context.indexes.containing(context.store, context.tenant, named)
    for feedback in chosen:
        if (receipt := receipts[feedback.receipt]) is None:
            continue
        inputs = receipt["inputs"]
        items = {name: item for name, item in items_of(receipt).items() if "score" in item and name in records}
        ids = [name for name in (*feedback.used, *feedback.ignored) if name in items]
        example = Example(
            held_out=feedback.n in held_out,
            from_agent=not (feedback.by_person or equal_share),
            receipt=feedback.receipt,
            query=queries[inputs["objective"]],
            vectors=index.own_vectors(ids, model, dim)[0],
            # Scores before reranking: earlier weights must not teach later ones.
            fused=np.array([items[name]["parts"].get("fused", items[name]["score"]) for name in ids]),
            features=_features([(items[name]["parts"], records[name]) for name in ids], int(inputs["now"])),
            used=np.array([name in feedback.used for name in ids], dtype=np.bool_),
        )
        if example.pairs:
            examples.append(example)
    return examples


def _feedback_without(feedback: Feedback, ids: Collection[str]) -> Feedback:
    used, ignored = (tuple(name for name in side if name not in ids) for side in (feedback.used, feedback.ignored))
    return replace(feedback, used=used, ignored=ignored)


def _receipt(context: RequestContext, name: str) -> dict[str, Any] | None:
    try:
        receipt = context.store.receipt(context.tenant, name)
    except Tampered:
        # ``verify`` reports it.
        return None
    return None if receipt is None or receipt["inputs"]["objective"] == ERASED else receipt


def _features(shown: list[tuple[dict[str, float], Record]], now: int) -> Any:
    """Return the features of memories at an instant, from the parts of their scores then."""
    import numpy as np

    from keepward.retrieval.reranker import FEATURES, features_of

    return features_of(
        [np.array([parts.get(name, 0.0) for parts, _ in shown], dtype=np.float64) for name in FEATURES[:4]],
        happened=np.array([to_micros(record.said_at) for _, record in shown], dtype=np.int64),
        now=now,
        importance=np.array([importance_at(record, from_micros(now)) for _, record in shown], dtype=np.float64),
        trust=np.array([int(record.trust) for _, record in shown], dtype=np.int64),
    )


def training_data_to_remove(
    context: RequestContext, ids: Collection[str], receipts: Collection[str], artefacts: Collection[ReceiptArtefact]
) -> tuple[tuple[Feedback, ...], list[str]]:
    """Return what an erasure changes: feedback without the erased memories, and the names of weights to drop.

    All weights are dropped if some feedback names an erased memory, or is on a receipt that shows one. ``receipts``
    are the ids of these receipts, ``artefacts`` the stored texts.
    """
    named = context.store.documents(Feedback, context.tenant).list(refs=[*ids, *receipts])
    reduced = [
        _feedback_without(feedback, ids)
        for feedback in named
        if not {*feedback.used, *feedback.ignored}.isdisjoint(ids)
    ]
    affected = reduced or any(feedback.receipt in receipts for feedback in named)
    weights = sorted(item.version for item in artefacts if item.kind == RERANKER) if affected else []
    return tuple(sorted(reduced, key=lambda feedback: feedback.n)), weights
