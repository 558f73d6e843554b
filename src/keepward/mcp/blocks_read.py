"""The core blocks as a reader at a scope sees them; one shape for tools and resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepward.mcp.shapes import bare
from keepward.model.memory import CORE_BLOCKS, Tier
from keepward.model.policy import access_for
from keepward.model.trust import visible_from

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.model.memory import Record


def holders(memory: Memory) -> dict[str, Record]:
    """Return the live core memories by key; of two with one key the nearer scope's counts."""
    visible = visible_from(memory.scope)
    found = [each for each in memory.find(tiers=(Tier.CORE.value,), limit=None) if each.scope in visible]
    nearest = sorted(found, key=lambda record: (len(record.scope), record.id))
    return {str(record.key): record for record in nearest}


def blocks(memory: Memory) -> list[dict[str, Any]]:
    """Return every block in the order in which it is compiled, set or not.

    A persona that lives in its own document has its size alone here: its text is in the compiled context.
    """
    held, policy = holders(memory), memory.policy
    sizes = memory.status()["blocks"]
    found = []
    for label in dict.fromkeys((*CORE_BLOCKS, *policy.core_keys)):
        record = held.get(label)
        found.append(
            {
                "label": label,
                "text": record.text if record else "",
                "tokens": sizes.get(label, {}).get("tokens", 0),
                "budget": policy.block_budget.get(label, 0),
                "access": access_for(policy, Tier.CORE, label, record.access if record else None).value,
                **bare(
                    {
                        "id": record and record.id,
                        "version": record and record.version,
                        "scope": record and record.scope,
                        "trust": record and record.trust.label,
                    }
                ),
            }
        )
    return found
