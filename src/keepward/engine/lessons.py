"""Lessons: feedback as examples to learn from, with what the memories and receipts say today.

Invariants
(1) What was erased teaches nothing any more, and neither does what cannot be read.
(2) Every fourth feedback of a person is held out, counted among people's feedback alone: what others say, and how
    often, changes nothing about it.
(3) What agents and other programs say is never held out, so nobody but people decide whether weights serve. Where a
    person spoke of a memory on a receipt, others' word on the same does not count. Policy can lift the difference.
(4) A flood of one class does not push the feedback of the other out of what is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepward.engine.checkpoints import Checkpoints, Progress
from keepward.engine.kit import Kit, Who
from keepward.errors import Tampered
from keepward.model.commit import ERASED
from keepward.model.memory import Record, importance_at
from keepward.model.query import Feedback
from keepward.model.value import from_micros, to_micros

if TYPE_CHECKING:
    from keepward.retrieval.learn import Example

#: Feedback of a class that is looked at, newest first: what the replay buffer holds, and what is held out beside it.
LOOKED_AT = 13_333
#: Queries turned into vectors between two checkpoints, and receipts read between two reports.
QUERIES = 256
RECEIPTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """One feedback and what is made of it."""

    given: Feedback
    held_out: bool
    bounded: bool
    used: tuple[str, ...]
    ignored: tuple[str, ...]


def examples(kit: Kit, who: Who, *, kept: Checkpoints | None = None, progress: Progress | None = None) -> list[Example]:
    """Return the feedback that teaches something, oldest first.

    Vectors of queries are taken from, and left in, ``kept``.

    Raises:
        ModelUnavailable: the embedder failed; what was embedded until then is kept.
    """
    from keepward.retrieval.learn import Example

    told = progress or Progress()
    said = _counted(kit, who)
    told.size = len(said)
    shown = _shown(kit, who, said, told)
    names = [name for each in said if each.given.receipt in shown for name in (*each.used, *each.ignored)]
    records = _records(kit, who, names)
    model, dim = (kit.embedder.id, kit.embedder.dim) if kit.embedder else ("", 0)
    queries = _queries(kit, [receipt["inputs"]["objective"] for receipt, _ in shown.values()], kept, told)
    found: list[Example] = []
    with kit.indexes.lock:
        index = kit.indexes.level(kit.store, who.tenant)
        for each in said:
            if each.given.receipt not in shown:
                continue
            receipt, ranked = shown[each.given.receipt]
            ids = [name for name in (*each.used, *each.ignored) if name in ranked and name in records]
            vectors, known = index.own_vectors(ids, model, dim)
            fused, facts = _facts([ranked[name] for name in ids], [records[name] for name in ids], receipt)
            used = frozenset(each.used)
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
                    used=_flags([name in used for name in ids]),
                )
            )
    return [example for example in found if example.pairs]


def _counted(kit: Kit, who: Who) -> list[_Said]:
    """Return the feedback that counts, oldest first, and how."""
    from keepward.retrieval.learn import HELD_OUT

    most = kit.store.feedback_count(who.tenant)
    log = kit.store.feedback(who.tenant, limit=most) if most else []
    share = kit.policy.agent_feedback_share
    people = [given for given in log if given.by_person or share >= 1.0]
    held_out = {given.n for turn, given in enumerate(people, start=1) if turn % HELD_OUT == 0}
    numbers = {given.n for given in people}
    others = [given for given in log if given.n not in numbers] if share > 0.0 else []
    spoken: dict[str, set[str]] = {}
    for given in people:
        spoken.setdefault(given.receipt, set()).update(given.used, given.ignored)
    looked_at = sorted((*people[-LOOKED_AT:], *others[-LOOKED_AT:]), key=lambda given: given.n)
    return [_said(given, given.n in held_out, given.n not in numbers, spoken) for given in looked_at]


def _said(given: Feedback, held_out: bool, bounded: bool, spoken: Mapping[str, set[str]]) -> _Said:
    taken = spoken.get(given.receipt, set()) if bounded else set()
    return _Said(
        given=given,
        held_out=held_out,
        bounded=bounded,
        used=tuple(name for name in given.used if name not in taken),
        ignored=tuple(name for name in given.ignored if name not in taken),
    )


def _shown(
    kit: Kit, who: Who, said: Sequence[_Said], told: Progress
) -> dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]]:
    """Return, by id, the receipts that can be learned from, and the memories that they rank, by id."""
    found: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {}
    for done, each in enumerate(said, start=1):
        if each.given.receipt not in found:
            receipt = _kept(kit, who, each.given.receipt)
            if receipt is not None and receipt["inputs"]["objective"] != ERASED:
                ranked = {name: item for name, item in shown_by(receipt).items() if "score" in item}
                found[each.given.receipt] = (receipt, ranked)
        if done % RECEIPTS == 0 or done == len(said):
            told.told(0, done, len(said))
    return found


def shown_by(receipt: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return, by id, what a receipt says of the memories it shows."""
    sections = receipt.get("sections") or [{"items": receipt.get("items", [])}]
    return {item["id"]: item for section in sections for item in section["items"]}


def _kept(kit: Kit, who: Who, receipt_id: str) -> dict[str, Any] | None:
    try:
        return kit.store.receipt(who.tenant, receipt_id)
    except Tampered:
        # ``verify`` names it; it teaches nothing.
        return None


def _records(kit: Kit, who: Who, ids: Sequence[str]) -> dict[str, Record]:
    wanted = sorted(set(ids))
    return {record.id: record for record in kit.store.records(who.tenant, wanted).records} if wanted else {}


def _queries(kit: Kit, texts: Sequence[str], kept: Checkpoints | None, told: Progress) -> dict[str, Any]:
    """Return the vectors of queries by text; computed in batches that depend on the texts alone."""
    import numpy as np

    from keepward.retrieval.checkpoint import name_of_texts

    asked = list(dict.fromkeys(texts))
    found: dict[str, Any] = dict.fromkeys(asked, np.zeros(0, dtype=np.float32))
    for start in range(0, len(asked) if kit.embedder else 0, QUERIES):
        assert kit.embedder is not None
        part = asked[start : start + QUERIES]
        name = name_of_texts(kit.embedder.id, part)
        vectors = None if kept is None else kept.vectors(name, len(part), kit.embedder.dim)
        if vectors is None:
            vectors = np.asarray(kit.embedder.embed(part), dtype=np.float32)
            # A last or only batch that is not full changes with the next feedback, and costs little.
            if kept is not None and len(part) == QUERIES:
                kept.keep_vectors(name, vectors)
        found |= dict(zip(part, vectors, strict=True))
        told.told(1, start + len(part), len(asked))
    told.told(1, 1, 1)
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


def _flags(values: Sequence[bool]) -> Any:
    import numpy as np

    return np.array(values, dtype=np.bool_)
