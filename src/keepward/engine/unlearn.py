"""Unlearning: what feedback and training keep of memories that are erased, and how it goes.

Invariants
(1) Feedback that names an erased memory loses the name and keeps its number, so that what is held out stays so.
(2) Weights go, whether they serve or not, when they have seen feedback on a receipt that shows an erased memory:
    what was said there may have been said again since, in other words. Weights of which that cannot be told go too:
    those that came with an import go with any erasure.
(3) What served and went serves no more from the erasing commit on: recall is in the fused order until a training.
(4) Checkpoints of a training go with any erasure; see ``checkpoints``.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from keepward.engine.kit import Kit, Who
from keepward.engine.learned import CARRIED, KEY, standing
from keepward.model.commit import Step
from keepward.model.query import Feedback

#: Stands in the record of the reranker from then on.
WHY = "an erasure took the weights that had learned from it; run `keepward train` to learn anew from what is left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlearned:
    """What goes of what was learned."""

    #: Feedback as it is to be, by number.
    feedback: tuple[Feedback, ...] = ()
    #: Names of weights that go, sorted.
    weights: tuple[str, ...] = ()


def shows(body: Mapping[str, Any], ids: Collection[str]) -> bool:
    """Whether a receipt shows any of these memories, so that feedback on it may have named one."""
    parts = (body.get("items", ()), *(section["items"] for section in body.get("sections", ())))
    return any(item["id"] in ids for items in parts for item in items)


def unlearned(
    kit: Kit, who: Who, ids: Collection[str], receipts: Collection[str], kept: Collection[tuple[str, str, str]]
) -> Unlearned:
    """Return what has to go of what was learned from memories.

    ``receipts`` are the ids of those that show one, ``kept`` the kept texts as (kind, version, text).
    """
    most = kit.store.feedback_count(who.tenant)
    log = kit.store.feedback(who.tenant, limit=most) if most else []
    touched = [given.n for given in log if given.receipt in receipts or _names(given, ids)]
    fresh = [
        replace(
            given,
            used=tuple(name for name in given.used if name not in ids),
            ignored=tuple(name for name in given.ignored if name not in ids),
        )
        for given in log
        if _names(given, ids)
    ]
    carried = {name for kind, name, _ in kept if kind == CARRIED}
    weights = [
        name
        for kind, name, text in kept
        if kind == KEY and (name in carried or (touched and _seen(name, text) >= min(touched)))
    ]
    return Unlearned(feedback=tuple(sorted(fresh, key=lambda given: given.n)), weights=tuple(sorted(weights)))


def _names(given: Feedback, ids: Collection[str]) -> bool:
    return any(name in ids for name in (*given.used, *given.ignored))


def _seen(name: str, text: str) -> float:
    """Return the number of the last feedback that weights have seen; endless when that cannot be told."""
    from keepward.retrieval.rerank import unpack

    try:
        return unpack(base64.b64decode(text, validate=True), name=name).seen
    except (binascii.Error, ValueError):
        return float("inf")


def stopped(kit: Kit, who: Who, weights: Collection[str]) -> Step | None:
    """Return the change after which these weights serve no more; None when no training ever named weights."""
    stands = standing(kit.store, who.tenant, kit.store.head(who.tenant).seq)
    before = stands.record
    if before is None or not weights:
        return None
    told = dict(stands.told)
    told["erased"] = sorted({*told.get("erased", ()), *weights})
    text = before.text
    if told.get("weights") in weights:
        told |= {"weights": None, "serving": False, "why": WHY, "seen": 0, "held_out": 0, "pairs": 0, "gain": 0.0}
        text = "The learned reranker was erased and does not serve."
    metadata = json.dumps(told, sort_keys=True, separators=(",", ":"))
    after = replace(before, version=before.version + 1, text=text, metadata_json=metadata, updated_at=kit.clock.now())
    return Step(op="replace", before=before, after=after)
