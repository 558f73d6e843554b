"""The learned reranker: which weights serve, how they are trained from feedback, and how an erasure drops them.

One record in the reserved scope (see ``own``) names the weights by their SHA-256. A stored document under that name
holds them; it is empty once an erasure took them. So a state of the past ranks as it did then, and a rollback brings
the earlier weights back. Agents teach and people decide: only people's feedback is held out to judge weights by.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from keepward.core.commit import ERASED, Reason, Step
from keepward.core.memory import Record, Status, importance_at
from keepward.core.query import Feedback, Training
from keepward.core.value import from_micros, to_micros
from keepward.errors import Conflict, Tampered
from keepward.services.access import items_of
from keepward.services.search_features import vectors_of
from keepward.services.system_records import RERANKER, system_record_step, system_records
from keepward.storage.documents import ReceiptArtefact
from keepward.storage.reads import Reader

if TYPE_CHECKING:
    from keepward.retrieval.reranker import Example, RerankerWeights
    from keepward.services.request_context import RequestContext
    from keepward.storage.writer import UnitOfWork

WEIGHTS_ERASED = (
    "an erasure took the weights that had learned from it; run `keepward train` to learn again from the rest"
)
#: Feedback of people, and of agents, that a training reads: the newest.
MAX_FEEDBACK = 10_000
_MAX_CACHED = 8
_NO_HUMAN_FEEDBACK = (
    "what agents say counts beside what people say, and people have said nothing yet: give feedback as a person, "
    "such as with --as operator, or set policy.agent_feedback_share to 1"
)
_NO_PAIRS = (
    "no feedback has a pair of a memory that was of use and one that was not, out of one receipt: name both with "
    "`keepward feedback RECEIPT --used ID --ignored ID`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveReranker:
    """What the journal says of the reranker at one commit."""

    #: The record that says it, None before the first training.
    record: Record | None = None
    #: What training found, as JSON values.
    facts: Mapping[str, Any] = field(default_factory=dict)
    #: None where none serve.
    weights: RerankerWeights | None = None
    #: Why weights that should serve cannot be used.
    fault: str | None = None

    @property
    def version(self) -> str | None:
        """The first 16 hex digits of the name of its weights, as receipts name it."""
        name = self.facts.get("weights")
        return name and name[:16]

    def unusable_reason(self, model: str | None) -> str | None:
        """Return why weights that serve cannot serve this embedder, or None."""
        if self.weights is None or self.weights.model == model:
            return None
        return "it was trained with another embedder; run `keepward train` to train it with this one"


def active_reranker(session: RequestContext, seq: int) -> ActiveReranker:
    """Return the reranker at a commit; a few are cached."""
    cached, place = session.engine.rerankers, (session.tenant, seq)
    if place not in cached:
        if len(cached) >= _MAX_CACHED:
            cached.clear()
        cached[place] = read_reranker(session.store, session.tenant, seq)
    return cached[place]


def read_reranker(store: Reader, tenant: str, seq: int) -> ActiveReranker:
    """Return the reranker at a commit, read from the store."""
    ids = [record.id for record in system_records(store, tenant, RERANKER)]
    if not ids:
        return ActiveReranker()
    found = store.records(tenant, ids, as_of=seq)
    if found.damaged:
        return ActiveReranker(fault="the record that names its weights does not match its seal")
    # A record that a rollback has withdrawn is not archived.
    record = next((each for each in found.records if each.status is Status.ARCHIVED), None)
    if record is None:
        return ActiveReranker()
    active, name = ActiveReranker(record=record, facts=record.metadata), record.metadata.get("weights")
    if not (record.metadata.get("serving") and name):
        return active
    try:
        text = store.artefact(tenant, RERANKER, name)
        if text == "":
            return dataclasses.replace(active, facts={**active.facts, "why": WEIGHTS_ERASED})
        return dataclasses.replace(active, weights=_load_weights(name, text))
    except (Tampered, ValueError) as exc:
        return dataclasses.replace(active, fault=str(exc))


def _load_weights(name: str, text: str | None) -> RerankerWeights:
    from keepward.retrieval.reranker import load

    if text is None:
        raise ValueError("its weights are missing")
    data = base64.b64decode(text, validate=True)
    if hashlib.sha256(data).hexdigest() != name:
        raise ValueError("its weights are not those that were committed")
    return load(data)


def unseen_feedback(session: RequestContext, active: ActiveReranker) -> int:
    """Return how many feedbacks came after those that the reranker has seen."""
    return max(0, session.store.feedback_count(session.tenant) - int(active.facts.get("seen", 0)))


def reranker_status(session: RequestContext, seq: int) -> dict[str, Any]:
    """Return what ``status`` says of the reranker, as JSON values."""
    active = read_reranker(session.store, session.tenant, seq)
    unfit = active.unusable_reason(session.embedder.id if session.embedder else None)
    untrained = "it was never trained; give feedback, then run `keepward train`"
    return {
        "version": active.version,
        "serving": active.weights is not None and unfit is None,
        **{name: active.facts.get(name, 0) for name in ("held_out", "pairs")},
        **{name: active.facts.get(name, 0.0) for name in ("gain", "from_agents")},
        "feedback": session.store.feedback_count(session.tenant),
        "unseen": unseen_feedback(session, active),
        "agents_at_most": session.policy.agent_feedback_share,
        "error": active.fault,
        "why": active.fault or unfit or active.facts.get("why", untrained),
    }


def train_reranker(session: RequestContext) -> Training:
    """Train the reranker from the feedback of the tenant; it serves where held-out feedback says it is better.

    With memory or writing switched off by policy nothing is done.

    Raises:
        ModelUnavailable: the embedder failed; nothing was changed.
        Conflict: another training was faster, or something was erased meanwhile; run it again.
    """
    from keepward.retrieval.reranker import HeldOutResult, evaluate_held_out, train

    head = session.store.head(session.tenant)
    active = read_reranker(session.store, session.tenant, head.seq)
    if not (session.policy.enabled and session.policy.capture):
        return _training_result(active, HeldOutResult(why="memory is switched off by policy; nothing was done"))
    given = training_examples(session)
    model, dim = (session.embedder.id, session.embedder.dim) if session.embedder else (None, 0)
    weights, share = train(given, model=model, dim=dim, share=session.policy.agent_feedback_share)
    result = evaluate_held_out(weights, given)
    seen = session.store.feedback_count(session.tenant)
    if seen and not given:
        result = dataclasses.replace(result, why=f"{result.why}; {_NO_PAIRS}")
    if given and all(example.from_agent for example in given):
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
        return _training_result(ActiveReranker(), result, feedback=len(given))
    if active.fault is None and facts == active.facts:
        return _training_result(active, result, feedback=len(given), from_agents=share)

    def store_weights(writer: UnitOfWork) -> None:
        if any(commit.kind == "erase" for commit, _ in session.store.events(session.tenant, after=head.seq)):
            raise Conflict("memories were erased while the reranker was trained; nothing was kept: train it again")
        writer.delete(ReceiptArtefact, session.tenant, f"{RERANKER}/{name}")
        writer.put(ReceiptArtefact(session.tenant, RERANKER, name, base64.b64encode(data).decode()))

    text = f"The learned reranker {name[:16]} {'serves' if result.serves else 'does not serve'}."
    step = system_record_step(session, active.record, RERANKER, text, facts)
    from keepward.services.transaction import store_steps  # A recall loads nothing that writes.

    stored = store_steps(
        session,
        [step],
        base={step.after.id: step.before.version if step.before else 0},
        reason="trained the reranker from feedback",
        kind="job",
        reasons=(Reason(gate="rerank", code="serves" if result.serves else "off", detail=result.why),),
        receipt_kind="job",
        also=store_weights,
    )
    now = ActiveReranker(facts=facts, weights=weights if result.serves else None)
    training = _training_result(now, result, feedback=len(given), from_agents=share)
    return replace(training, commit=stored.commit, receipt=stored.receipt)


def _training_result(active: ActiveReranker, result: Any, **more: Any) -> Training:
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
        commit=None,
        receipt=None,
        **{"feedback": 0, **numbers, **more},
    )


def training_examples(session: RequestContext) -> list[Example]:
    """Return the feedback with a pair of a used and an ignored memory, oldest first.

    Every fourth feedback of a person is held out. Where a person spoke of a memory on a receipt, agents' word on it
    does not count. Receipts that cannot be read, and those whose objective was erased, teach nothing.
    """
    import numpy as np

    from keepward.retrieval.reranker import HOLD_OUT_EVERY, Example

    log = sorted(session.store.documents(Feedback, session.tenant).list(), key=lambda given: given.n)
    alike = session.policy.agent_feedback_share >= 1.0
    people = [given for given in log if given.by_person or alike]
    held_out = {given.n for given in people[HOLD_OUT_EVERY - 1 :: HOLD_OUT_EVERY]}
    spoken: dict[str, set[str]] = {}
    for given in people:
        spoken.setdefault(given.receipt, set()).update(given.used, given.ignored)
    agents = [
        _feedback_without(given, spoken.get(given.receipt, ())) for given in log if not (given.by_person or alike)
    ]
    chosen = sorted((*people[-MAX_FEEDBACK:], *agents[-MAX_FEEDBACK:]), key=lambda given: given.n)
    receipts = {name: _receipt(session, name) for name in sorted({given.receipt for given in chosen})}
    named = sorted({name for given in chosen for name in (*given.used, *given.ignored)})
    records = {record.id: record for record in session.store.records(session.tenant, named).records} if named else {}
    texts, embedder = sorted({each["inputs"]["objective"] for each in receipts.values() if each}), session.embedder
    model, dim = (embedder.id, embedder.dim) if embedder else ("", 0)
    vectors = vectors_of(embedder, texts) if embedder and texts else np.zeros((len(texts), 0), dtype=np.float32)
    queries = dict(zip(texts, vectors, strict=True))
    found = []
    with session.indexes.lock:
        index = session.indexes.of(session.engine, session.tenant, named)
        for given in chosen:
            if (receipt := receipts[given.receipt]) is None:
                continue
            inputs = receipt["inputs"]
            items = {name: item for name, item in items_of(receipt).items() if "score" in item and name in records}
            ids = [name for name in (*given.used, *given.ignored) if name in items]
            example = Example(
                held_out=given.n in held_out,
                from_agent=not (given.by_person or alike),
                receipt=given.receipt,
                query=queries[inputs["objective"]],
                vectors=index.own_vectors(ids, model, dim)[0],
                # Scores before reranking: earlier weights must not teach the next ones.
                fused=np.array([items[name]["parts"].get("fused", items[name]["score"]) for name in ids]),
                features=_features([(items[name]["parts"], records[name]) for name in ids], int(inputs["now"])),
                used=np.array([name in given.used for name in ids], dtype=np.bool_),
            )
            if example.pairs:
                found.append(example)
    return found


def _feedback_without(given: Feedback, ids: Collection[str]) -> Feedback:
    used, ignored = (tuple(name for name in side if name not in ids) for side in (given.used, given.ignored))
    return replace(given, used=used, ignored=ignored)


def _receipt(session: RequestContext, name: str) -> dict[str, Any] | None:
    try:
        receipt = session.store.receipt(session.tenant, name)
    except Tampered:
        # ``verify`` names it.
        return None
    return None if receipt is None or receipt["inputs"]["objective"] == ERASED else receipt


def _features(shown: list[tuple[dict[str, float], Record]], now: int) -> Any:
    """Return the features of memories as they were at an instant, from the parts of their scores then."""
    import numpy as np

    from keepward.retrieval.reranker import FEATURES, features_of

    return features_of(
        [np.array([parts.get(name, 0.0) for parts, _ in shown], dtype=np.float64) for name in FEATURES[:4]],
        happened=np.array([to_micros(each.occurred_at or each.created_at) for _, each in shown], dtype=np.int64),
        now=now,
        importance=np.array([importance_at(each, from_micros(now)) for _, each in shown], dtype=np.float64),
        trust=np.array([int(each.trust) for _, each in shown], dtype=np.int64),
    )


def training_data_to_remove(
    session: RequestContext, ids: Collection[str], receipts: Collection[str], kept: Collection[ReceiptArtefact]
) -> tuple[tuple[Feedback, ...], list[str]]:
    """Return what an erasure changes: feedback without the erased memories, and the names of weights that go.

    All weights go where there is feedback that names an erased memory, or on a receipt that shows one. ``receipts``
    are the ids of these receipts, ``kept`` the stored texts.
    """
    named = session.store.documents(Feedback, session.tenant).list(refs=[*ids, *receipts])
    fresh = [_feedback_without(given, ids) for given in named if not {*given.used, *given.ignored}.isdisjoint(ids)]
    touched = fresh or any(given.receipt in receipts for given in named)
    weights = sorted(each.version for each in kept if each.kind == RERANKER and each.text) if touched else []
    return tuple(sorted(fresh, key=lambda given: given.n)), weights


def stop_step(session: RequestContext) -> Step | None:
    """Return the change after which no weights serve; None where no training named any."""
    active = read_reranker(session.store, session.tenant, session.store.head(session.tenant).seq)
    if active.record is None:
        return None
    return system_record_step(
        session, active.record, RERANKER, "The learned reranker was erased.", {"why": WEIGHTS_ERASED}
    )
