"""Learning: the two jobs that have engines of their own, from use and from feedback."""

from __future__ import annotations

from collections.abc import Callable

from keepward.engine.kit import Kit, Who
from keepward.engine.learned import standing, unseen
from keepward.engine.training import train_reranker
from keepward.engine.use import learn_importance
from keepward.jobs.desk import Done


def reinforce(kit: Kit, who: Who, _: Callable[[], None]) -> Done:
    """Turn uses into importance, in one commit where there are any."""
    found = learn_importance(kit, who)
    counts = {"reinforced": len(found.records), "uses": found.uses}
    return Done(counts=counts, commits=(found.commit.id,) if found.commit else ())


def train(kit: Kit, who: Who, _: Callable[[], None]) -> Done:
    """Train the reranker where there is feedback that it has not seen."""
    stands = standing(kit.store, who.tenant, kit.store.head(who.tenant).seq)
    if not unseen(kit.store, who.tenant, stands):
        return Done(skipped="there is no feedback that was not learned from")
    found = train_reranker(kit, who)
    reason = () if found.receipt is None else found.receipt.reasons
    return Done(
        counts={"feedback": found.feedback}, reasons=tuple(reason), commits=(found.commit.id,) if found.commit else ()
    )
