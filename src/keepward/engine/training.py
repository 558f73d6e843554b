"""Training: from feedback to a committed reranker, or to the finding that there is none worth serving.

Invariants
(1) A training is a commit of kind ``job``: it names the weights by their hash and says whether they serve; the
    weights are kept in the same transaction. Rolling it back brings back what served before.
(2) New weights serve only where they do better on held-out feedback than the plain order and than what serves now.
(3) A training that finds nothing new, is interrupted, or during which something is erased, changes nothing.
(4) Weights that came with an import go on serving until there is enough feedback here to judge them by.
(5) What was erased teaches nothing any more, and neither does what cannot be read.
(6) Every fourth feedback of a person is held out, counted among people's feedback alone: what others say, and how
    often, changes nothing about it.
(7) What agents and other programs say is never held out, so nobody but people decide whether weights serve. Where a
    person spoke of a memory on a receipt, others' word on the same does not count. Policy can lift the difference.
(8) A flood of one class does not push the feedback of the other out of what is looked at.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from keepward.engine.commit import store_steps
from keepward.engine.features import vectors_of
from keepward.engine.learned import KEY, Standing, is_carried, standing
from keepward.engine.own import own_step
from keepward.engine.session import Engine, Session
from keepward.engine.view import items_of
from keepward.errors import Conflict, Tampered
from keepward.model.commit import ERASED, Reason
from keepward.model.memory import Record, importance_at
from keepward.model.query import Feedback, Training
from keepward.model.value import from_micros, to_micros

if TYPE_CHECKING:
    from keepward.retrieval.learn import Example, Judged
    from keepward.store.writer import Writer

#: Feedback of a class that is looked at, newest first: what the replay buffer holds, and what is held out beside it.
LOOKED_AT = 13_333
#: Queries embedded, and receipts read, between two reports.
QUERIES = 256
RECEIPTS = 64
#: Parts of a training that are reported, each as many as there are feedbacks: reading, embedding, learning.
_PARTS = 3
_AGENTS_ALONE = (
    "what agents say counts beside what people say, and people have said nothing yet: give feedback as a person, "
    "such as with --as operator, or set policy.agent_feedback_share to 1"
)
_NO_PAIRS = (
    "no feedback has a pair of a memory that was of use and one that was not, out of one receipt: name both with "
    "`keepward feedback RECEIPT --used ID --ignored ID`"
)


@dataclass(slots=True, kw_only=True)
class Progress:
    """Reports how far a training is: a constant total, a count that never falls and ends at it."""

    report: Callable[[int, int], None] | None = None
    #: Feedbacks looked at.
    size: int = 0
    done: int = 0

    def at(self, part: int, done: int, of: int) -> None:
        """Report that of a part, counted from 0, so much is done."""
        self.done = max(self.done, part * self.size + (self.size * done // of if of else self.size))
        if self.report is not None and self.size:
            self.report(self.done, _PARTS * self.size)


def train_reranker(session: Session, *, on_progress: Callable[[int, int], None] | None = None) -> Training:
    """Train the reranker from the feedback of the tenant, reporting (done, total) on the way.

    With memory or writing switched off by policy nothing is done.

    Raises:
        ModelUnavailable: the embedder failed; nothing was changed.
        Conflict: another training was faster, or something was erased meanwhile; run it again.
    """
    from keepward.retrieval.learn import judge, train, unjudged
    from keepward.retrieval.rerank import name_of

    model, dim = (session.embedder.id, session.embedder.dim) if session.embedder else (None, 0)
    head = session.store.head(session.tenant)
    stands = standing(session.store, session.tenant, head.seq)
    if not (session.policy.enabled and session.policy.capture):
        return _found(stands, [], unjudged("memory is switched off by policy; nothing was done"), 0.0)
    progress = Progress(report=on_progress)
    given = examples(session, progress)
    weights, from_agents = train(
        given,
        model=model,
        dim=dim,
        share=session.policy.agent_feedback_share,
        on_progress=lambda done: progress.at(_PARTS - 1, done, len(given)),
    )
    judged, still = judge(weights, given), False
    if stands.serves and stands.weights is not None and stands.weights.model == model:
        before = judge(stands.weights, given)
        still = not judged.enough and is_carried(session.store, session.tenant, stands.name)
        if still:
            here = f"there is too little feedback here to judge it by: {before.why}"
            before = replace(before, why=f"it came with an import and serves on, since {here}")
        if still or (before.gain >= judged.gain and before.serves):
            weights, judged, from_agents = stands.weights, before, stands.told.get("from_agents", 0.0)
    if progress.size and not given:
        judged = replace(judged, why=f"{judged.why}; {_NO_PAIRS}")
    if given and all(example.bounded for example in given):
        judged = replace(judged, why=f"{judged.why}; {_AGENTS_ALONE}")
    progress.at(_PARTS - 1, 1, 1)
    packed = weights.pack()
    name = name_of(packed)
    facts = {
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
    if stands.told.get("erased"):
        # Which weights went with an erasure has to be known for as long as an older state can name them.
        facts["erased"] = stands.told["erased"]
    blank = not weights.steps and not stands.serves
    if blank or still or (facts == stands.told and stands.fault is None):
        return _found(replace(stands, name=None) if blank else stands, given, judged, from_agents)

    def also(writer: Writer) -> None:
        if any(commit.kind == "erase" for commit, _ in session.store.events(session.tenant, after=head.seq)):
            raise Conflict("memories were erased while the reranker was trained; nothing was kept: train it again")
        writer.put_artefact(session.tenant, KEY, name, base64.b64encode(packed).decode())

    text = f"The learned reranker {name[:16]} {'serves' if judged.serves else 'does not serve'}."
    step = own_step(session, stands.record, KEY, text, facts)
    stored = store_steps(
        session,
        [step],
        base={step.after.id: step.before.version if step.before else 0},
        reason="trained the reranker from feedback",
        kind="job",
        reasons=(Reason(gate="rerank", code="serves" if judged.serves else "off", detail=judged.why),),
        receipt_kind="job",
        also=also,
    )
    ends = replace(stands, name=name, chosen=judged.serves, weights=weights)
    return replace(_found(ends, given, judged, from_agents), commit=stored.commit, receipt=stored.receipt)


def _found(stands: Standing, given: list[Example], judged: Judged, from_agents: float) -> Training:
    numbers = {name: value for name, value in asdict(judged).items() if name in {"learned", "fused", "cosine", "gain"}}
    return Training(
        version=stands.version,
        serving=stands.serves,
        feedback=len(given),
        held_out=judged.feedbacks,
        why=judged.why,
        from_agents=from_agents,
        commit=None,
        receipt=None,
        **numbers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """One feedback and what is made of it."""

    given: Feedback
    held_out: bool
    bounded: bool
    used: tuple[str, ...]
    ignored: tuple[str, ...]


def examples(session: Session, progress: Progress) -> list[Example]:
    """Return the feedback that teaches something, oldest first.

    Raises:
        ModelUnavailable: the embedder failed.
    """
    import numpy as np

    from keepward.retrieval.learn import Example

    said = _counted(session)
    progress.size = len(said)
    shown = _receipts_of(session, said, progress)
    wanted = sorted({name for each in said if each.given.receipt in shown for name in (*each.used, *each.ignored)})
    records = {record.id: record for record in session.store.records(session.tenant, wanted).records} if wanted else {}
    model, dim = (session.embedder.id, session.embedder.dim) if session.embedder else ("", 0)
    queries = _queries(session.engine, [receipt["inputs"]["objective"] for receipt, _ in shown.values()], progress)
    found: list[Example] = []
    with session.indexes.lock:
        index = session.indexes.of(session.engine, session.tenant, wanted)
        for each in said:
            if each.given.receipt not in shown:
                continue
            receipt, ranked = shown[each.given.receipt]
            ids = [name for name in (*each.used, *each.ignored) if name in ranked and name in records]
            vectors, known = index.own_vectors(ids, model, dim)
            fused, facts = _facts([ranked[name] for name in ids], [records[name] for name in ids], receipt)
            found.append(
                Example(
                    n=each.given.n,
                    held_out=each.held_out,
                    bounded=each.bounded,
                    receipt=each.given.receipt,
                    query=queries[receipt["inputs"]["objective"]],
                    vectors=vectors,
                    known=known,
                    fused=fused,
                    facts=facts,
                    used=np.array([name in each.used for name in ids], dtype=np.bool_),
                )
            )
    return [example for example in found if example.pairs]


def _counted(session: Session) -> list[_Said]:
    """Return the feedback that counts, oldest first, and how."""
    from keepward.retrieval.learn import HELD_OUT

    log = session.store.feedback(session.tenant)
    share = session.policy.agent_feedback_share
    people = [given for given in log if given.by_person or share >= 1.0]
    held_out = {given.n for turn, given in enumerate(people, start=1) if turn % HELD_OUT == 0}
    numbers = {given.n for given in people}
    others = [given for given in log if given.n not in numbers] if share > 0.0 else []
    spoken: dict[str, set[str]] = {}
    for given in people:
        spoken.setdefault(given.receipt, set()).update(given.used, given.ignored)

    def said(given: Feedback) -> _Said:
        bounded = given.n not in numbers
        taken = spoken.get(given.receipt, set()) if bounded else set()
        used, ignored = (tuple(name for name in side if name not in taken) for side in (given.used, given.ignored))
        return _Said(given=given, held_out=given.n in held_out, bounded=bounded, used=used, ignored=ignored)

    return [said(given) for given in sorted((*people[-LOOKED_AT:], *others[-LOOKED_AT:]), key=lambda given: given.n)]


def _receipts_of(
    session: Session, said: Sequence[_Said], progress: Progress
) -> dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]]:
    """Return, by id, the receipts that can be learned from, and the memories that they rank, by id."""
    found: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {}
    for done, each in enumerate(said, start=1):
        name = each.given.receipt
        if name not in found:
            try:
                receipt = session.store.receipt(session.tenant, name)
            except Tampered:
                # ``verify`` names it; it teaches nothing (5).
                receipt = None
            if receipt is not None and receipt["inputs"]["objective"] != ERASED:
                found[name] = (receipt, {key: item for key, item in items_of(receipt).items() if "score" in item})
        if done % RECEIPTS == 0 or done == len(said):
            progress.at(0, done, len(said))
    return found


def _queries(engine: Engine, texts: Sequence[str], progress: Progress) -> dict[str, Any]:
    """Return the vectors of queries by text; without an embedder they have no components."""
    import numpy as np

    asked = list(dict.fromkeys(texts))
    found: dict[str, Any] = dict.fromkeys(asked, np.zeros(0, dtype=np.float32))
    for start in range(0, len(asked) if engine.embedder else 0, QUERIES):
        assert engine.embedder is not None
        part = asked[start : start + QUERIES]
        found |= dict(zip(part, vectors_of(engine.embedder, part), strict=True))
        progress.at(1, start + len(part), len(asked))
    progress.at(1, 1, 1)
    return found


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
    asked = from_micros(int(receipt["inputs"]["now"]))
    facts = facts_of(
        [np.array([part.get(name, 0.0) for part in parts], dtype=np.float64) for name in PARTS[:4]],
        happened=np.array(happened, dtype=np.int64),
        now=int(receipt["inputs"]["now"]),
        importance=np.array([importance_at(record, asked) for record in records], dtype=np.float64),
        trust=np.array([int(record.trust) for record in records], dtype=np.int64),
    )
    return fused, facts
