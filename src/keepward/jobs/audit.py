"""Audit: whether what the store claims holds, and whether every core block is within its budget.

It changes nothing. What it finds stands in the run's receipt by table and key, never by content.
"""

from __future__ import annotations

from collections.abc import Callable

from keepward.engine import blobs
from keepward.engine.kit import Kit, Who
from keepward.errors import KeepwardError
from keepward.jobs.desk import Done
from keepward.model.commit import Reason
from keepward.model.journal import Fault
from keepward.model.memory import CORE_BLOCKS, Tier
from keepward.model.query import Filter

#: Faults told one by one; the count tells of all.
TOLD = 50
#: Tables whose keys are names that people chose.
_NAMED = frozenset({"aliases"})


def audit(kit: Kit, who: Who, _: Callable[[], None]) -> Done:
    """Verify the tenant: chain, commits and their receipts, seals, projections, and the budgets of core blocks."""
    checked, found = kit.store.verify(who.tenant)
    files, lost = blobs.check(kit, who.tenant)
    try:
        blocks, over = _blocks(kit, who)
    except KeepwardError as fault:
        blocks, over = 0, [Fault(check="blocks", row="records", detail=str(fault))]
    faults = [*found, *lost, *over]
    return Done(
        counts={"checked": sum(checked.values()) + files + blocks, "faults": len(faults)},
        reasons=tuple(_reason(fault) for fault in faults[:TOLD]),
    )


def _blocks(kit: Kit, who: Who) -> tuple[int, list[Fault]]:
    """Return how many blocks there are, of all scopes, and those over their budget."""
    core = Filter(scopes=(), tiers=(Tier.CORE.value,), include_sensitive=True)
    records = kit.store.find(who.tenant, core, live_at=kit.clock.now(), limit=None).records
    texts = [(record.key or "", f"records {who.tenant}/{record.id}", record.text) for record in records]
    identity = kit.identity()
    if identity is not None:
        texts.append((CORE_BLOCKS[0], "identity document", identity[1]))
    over = []
    for key, row, text in sorted(texts):
        tokens, budget = kit.counter.count(text), kit.policy.block_budget.get(key, 0)
        if tokens > budget:
            over.append(Fault(check="blocks", row=row, detail=f"it holds {tokens} tokens of {budget}: shorten it"))
    return len(texts), over


def _reason(fault: Fault) -> Reason:
    row = fault.check if fault.check in _NAMED else fault.row
    return Reason(gate="audit", code=fault.check, detail=f"{row}: {fault.detail}")
