"""Old receipts of contexts: compacted to what a replay needs, so that they do not grow with every context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keepward.engine.session import Session
from keepward.model.query import Feedback

#: Receipts that are compacted in one transaction.
AT_ONCE = 200
#: What a replay does not need: of the receipt, and of each memory in it.
_FACTS = frozenset({"excluded", "unlisted", "signals", "tokens_by_tier"})
_OF_AN_ITEM = frozenset({"kind", "tokens", "score", "parts"})


def compact_receipts(session: Session, keep_lease: Callable[[], None]) -> int:
    """Compact receipts of contexts that are older than policy keeps whole; return how many.

    One that somebody gave feedback on stays whole: the reranker is trained from its scores.
    """
    now = session.clock.now()
    until, after, count = now - session.policy.compact_receipts_after, "", 0
    while True:
        keep_lease()
        with session.store.write() as writer:
            # Read where it is written: an erasure in between would be undone.
            page = writer.whole_receipts(session.tenant, until, after=after, limit=AT_ONCE)
            judged = {given.receipt for given in writer.documents(Feedback, session.tenant).list()} if page else set()
            for receipt in page:
                if receipt["kind"] == "compile" and receipt["id"] not in judged:
                    writer.rewrite_receipt(session.tenant, receipt["id"], compacted(receipt, now.isoformat()))
                    count += 1
        if not page:
            return count
        after = page[-1]["id"]


def compacted(receipt: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Return a receipt of a context with what a replay needs, who asked for what, and ``compacted_at``."""
    sections = [
        {**section, "items": [_without(item, _OF_AN_ITEM) for item in section["items"]]}
        for section in receipt["sections"]
    ]
    return {**_without(receipt, _FACTS), "sections": sections, "compacted_at": at}


def _without(value: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if name not in names}
