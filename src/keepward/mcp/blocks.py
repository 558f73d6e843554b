"""Tools that read, append to and replace core blocks.

An edit of a block is an ordinary proposal. Under the default policy an agent's edit needs approval; if the access of
the block is `append`, an addition is committed at once.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, Unpack

from msgspec import Meta

from keepward.core.escaping import escape_label, quoted
from keepward.core.memory import CORE_BLOCKS, Record, Tier
from keepward.core.policy import access_for
from keepward.core.principals import branch_scope, visible_from
from keepward.errors import InvalidInput
from keepward.handles import LocalHandle
from keepward.mcp.tool import ToolAnswer, tool
from keepward.mcp.tools import drop_empty, write_result

_Label = Annotated[str, Meta(description="Name of the block, such as mission.")]


class Justified(TypedDict, total=False):
    """Why a block changes."""

    reason: Annotated[str, Meta(description="The reviewer reads it.")]
    evidence: Annotated[list[str], Meta(description="The human block needs a recorded user message.")]


class Passage(Justified, total=False):
    """What to replace, and why."""

    old: Annotated[str, Meta(description="The exact passage to replace. Default: the complete block.")]


@tool(reads=True)
def read_blocks(memory: LocalHandle) -> ToolAnswer:
    """Show every core block: its text, its tokens of its budget, and who may change it."""
    listed = blocks(memory)
    lines = [
        f"{escape_label(block['label'])} ({block['tokens']} of {block['budget']} tokens, {block['access']}): "
        f"{quoted(block['text']) or ('(in a document of its own)' if block['tokens'] else '(empty)')}"
        for block in listed
    ]
    return ToolAnswer(data={"blocks": listed}, text="\n".join(lines))


@tool()
def block_append(
    memory: LocalHandle,
    label: _Label,
    text: Annotated[str, Meta(description="The line to add.")],
    **why: Unpack[Justified],
) -> ToolAnswer:
    """Add a line to a core block."""
    record = _key_holders(memory).get(label)
    if record is None:
        return write_result(memory, memory.remember(text, tier="core", key=label, **why))
    return write_result(memory, memory.append(record.id, text, **why))


@tool(destroys=True)
def block_replace(
    memory: LocalHandle,
    label: _Label,
    new: str,
    **passage: Unpack[Passage],
) -> ToolAnswer:
    """Replace a passage of a core block, or the complete block."""
    why: dict[str, Any] = {**passage}
    old, record = why.pop("old", None), _key_holders(memory).get(label)
    if record is None:
        if old is not None:
            raise InvalidInput("this block is empty; leave out `old` to write it")
        return write_result(memory, memory.remember(new, tier="core", key=label, **why))
    text = new
    if old is not None:
        if record.text.count(old) != 1:
            raise InvalidInput("`old` must occur in the block exactly once; read the block and quote a longer passage")
        text = record.text.replace(old, new)
    # A version that the agent has not read is not overwritten.
    return write_result(memory, memory.revise(record.id, text, if_version=record.version, **why))


@tool(destroys=True)
def update_identity(
    memory: LocalHandle,
    text: Annotated[str, Meta(description="The complete new text; at most 500 tokens.")],
    reason: str = "",
) -> ToolAnswer:
    """Propose a new text of the identity, the persona at the start of every prompt. The owner must approve it."""
    return write_result(memory, memory.update_identity(text, reason=reason))


#: The tools of core blocks.
TOOLS = (read_blocks, block_append, block_replace, update_identity)


def blocks(memory: LocalHandle) -> list[dict[str, Any]]:
    """Return every core block, empty ones included, in the order of compiled contexts.

    If the persona is a document of its own, only its size is here; compiled contexts contain its text.
    """
    records, policy = _key_holders(memory), memory.policy
    sizes = memory.status()["blocks"]
    result = []
    for label in dict.fromkeys((*CORE_BLOCKS, *policy.core_keys)):
        # With an identity file, the block `persona` is not what contexts begin with.
        record = records.get(label) if sizes.get(label, {}).get("id") else None
        block = {
            "label": label,
            "text": record.text if record else "",
            "tokens": sizes.get(label, {}).get("tokens", 0),
            "budget": policy.block_budget.get(label, 0),
            "access": access_for(policy, Tier.CORE, label, record.access if record else None).value,
        }
        if record is not None:
            fields = {"id": record.id, "version": record.version, "scope": record.scope, "trust": record.trust.label}
            block |= drop_empty(fields)
        result.append(block)
    return result


def _key_holders(memory: LocalHandle) -> dict[str, Record]:
    """Return the active core memories by key; of two with the same key, the one of the nearer scope."""
    visible = visible_from(branch_scope(memory.branch_name, memory.scope))
    listed = memory.list_memories(tiers=(Tier.CORE.value,), limit=None)
    records = [record for record in listed if record.scope in visible]
    return {
        str(record.key): record
        for record in sorted(records, key=lambda record: (-visible.index(record.scope), record.id))
    }
