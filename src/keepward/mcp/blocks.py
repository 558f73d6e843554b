"""Tools that read, append to and replace core blocks.

An edit of a block is an ordinary proposal. Under the default policy an agent's edit needs approval; if the access of
the block is `append`, an addition is committed at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict

from msgspec import Meta

from keepward.core.escaping import escape_label, quoted
from keepward.core.memory import CORE_BLOCKS, Tier
from keepward.core.policy import access_for
from keepward.core.principals import visible_from
from keepward.errors import InvalidInput
from keepward.mcp.tool import ToolAnswer, tool
from keepward.mcp.tools import drop_empty, write_result

if TYPE_CHECKING:
    from keepward.core.memory import Record
    from keepward.memory import Memory


class _Change(TypedDict, total=False):
    label: Required[Annotated[str, Meta(description="Name of the block, such as mission.")]]
    reason: Annotated[str, Meta(description="The reviewer reads it.")]
    evidence: Annotated[list[str], Meta(description="The human block needs a recorded user message.")]


class AppendArguments(_Change, total=False):
    text: Required[Annotated[str, Meta(description="The line to add.")]]


class ReplaceArguments(_Change, total=False):
    old: Annotated[str, Meta(description="The exact passage to replace. Default: the complete block.")]
    new: Required[str]


class IdentityArguments(TypedDict, total=False):
    text: Required[Annotated[str, Meta(description="The complete new text; at most 500 tokens.")]]
    reason: str


@tool(reads=True)
def read_blocks(memory: Memory, args: dict[str, Any]) -> ToolAnswer:
    """Show every core block: its text, its tokens of its budget, and who may change it."""
    listed = blocks(memory)
    lines = [
        f"{escape_label(block['label'])} ({block['tokens']} of {block['budget']} tokens, {block['access']}): "
        f"{quoted(block['text']) or ('(in a document of its own)' if block['tokens'] else '(empty)')}"
        for block in listed
    ]
    return ToolAnswer(data={"blocks": listed}, text="\n".join(lines))


@tool(AppendArguments)
def block_append(memory: Memory, args: dict[str, Any]) -> ToolAnswer:
    """Add a line to a core block."""
    record = _key_holders(memory).get(args["label"])
    if record is None:
        return _insert(memory, args, args["text"])
    fields: dict[str, Any] = {"text": args["text"], "evidence": args.get("evidence", [])}
    return write_result(memory, memory.append(record.id, reason=args.get("reason", ""), **fields))


@tool(ReplaceArguments, destroys=True)
def block_replace(memory: Memory, args: dict[str, Any]) -> ToolAnswer:
    """Replace a passage of a core block, or the complete block."""
    record = _key_holders(memory).get(args["label"])
    if record is None:
        if "old" in args:
            raise InvalidInput("this block is empty; leave out `old` to write it")
        return _insert(memory, args, args["new"])
    fields: dict[str, Any] = {name: args[name] for name in ("evidence",) if name in args}
    fields["text"] = _replace_passage(record.text, args.get("old"), args["new"])
    # A version that the agent has not read is not overwritten.
    return write_result(
        memory, memory.revise(record.id, reason=args.get("reason", ""), if_version=record.version, **fields)
    )


@tool(IdentityArguments, destroys=True)
def update_identity(memory: Memory, args: dict[str, Any]) -> ToolAnswer:
    """Propose a new edition of the identity, the persona at the start of every prompt. The owner must approve it."""
    return write_result(memory, memory.update_identity(args["text"], reason=args.get("reason", "")))


#: The tools of core blocks.
TOOLS = (read_blocks, block_append, block_replace, update_identity)


def blocks(memory: Memory) -> list[dict[str, Any]]:
    """Return every core block, empty ones included, in the order of compiled contexts.

    If the persona is a document of its own, only its size is here; compiled contexts contain its text.
    """
    records, policy = _key_holders(memory), memory.policy
    sizes = memory.status()["blocks"]
    result = []
    for label in dict.fromkeys((*CORE_BLOCKS, *policy.core_keys)):
        record = records.get(label)
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


def _key_holders(memory: Memory) -> dict[str, Record]:
    """Return the active core memories by key; of two with the same key, the one of the nearer scope."""
    visible = visible_from(memory.scope)
    listed = memory.list_memories(tiers=(Tier.CORE.value,), limit=None)
    records = [record for record in listed if record.scope in visible]
    return {
        str(record.key): record
        for record in sorted(records, key=lambda record: (-visible.index(record.scope), record.id))
    }


def _insert(memory: Memory, args: dict[str, Any], text: str) -> ToolAnswer:
    fields: dict[str, Any] = {"tier": "core", "key": args["label"], "evidence": args.get("evidence", [])}
    return write_result(memory, memory.remember(text, reason=args.get("reason", ""), **fields))


def _replace_passage(now: str, old: str | None, new: str) -> str:
    if old is None:
        return new
    if not old or now.count(old) != 1:
        raise InvalidInput("`old` must occur in the block exactly once; read the block and quote a longer passage")
    return now.replace(old, new)
