"""Core blocks as tools: read, appended to, and replaced.

An edit of a block is an ordinary proposal: as policy stands an agent's waits for a person, under an access of
`append` an addition is committed at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict

from msgspec import Meta

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
    reason: Annotated[str, Meta(description="The person who decides reads it.")]
    evidence: Annotated[list[str], Meta(description="The human block needs a recorded user message.")]


class AppendArguments(_Change, total=False):
    text: Required[Annotated[str, Meta(description="The line to add.")]]


class ReplaceArguments(_Change, total=False):
    old: Annotated[str, Meta(description="The passage to replace, word for word; without it all of the block.")]
    new: Required[str]


class IdentityArguments(TypedDict, total=False):
    text: Required[Annotated[str, Meta(description="All that the identity says; at most 500 tokens.")]]
    reason: str


@tool(reads=True)
def read_blocks(memory: Memory, args: dict[str, Any]) -> ToolAnswer:
    """Show every core block: its text, its tokens of its budget, and who may change it."""
    found = blocks(memory)
    lines = [
        f"{each['label']} ({each['tokens']} of {each['budget']} tokens, {each['access']}): "
        f"{each['text'] or ('(kept in its own document)' if each['tokens'] else '(empty)')}"
        for each in found
    ]
    return ToolAnswer(data={"blocks": found}, text="\n".join(lines))


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
    """Replace a passage of a core block, or all of it."""
    record = _key_holders(memory).get(args["label"])
    if record is None:
        if "old" in args:
            raise InvalidInput("this block is empty; leave out `old` to write it")
        return _insert(memory, args, args["new"])
    fields: dict[str, Any] = {name: args[name] for name in ("evidence",) if name in args}
    fields["text"] = _replace_passage(record.text, args.get("old"), args["new"])
    # What was not seen is not overwritten.
    return write_result(
        memory, memory.revise(record.id, reason=args.get("reason", ""), if_version=record.version, **fields)
    )


@tool(IdentityArguments, destroys=True)
def update_identity(memory: Memory, args: dict[str, Any]) -> ToolAnswer:
    """Propose a new edition of the identity, the persona that opens every prompt. It waits for its owner."""
    return write_result(memory, memory.update_identity(args["text"], reason=args.get("reason", "")))


#: The tools of core blocks.
TOOLS = (read_blocks, block_append, block_replace, update_identity)


def blocks(memory: Memory) -> list[dict[str, Any]]:
    """Return every core block in the order in which it is compiled, set or not.

    A persona that lives in its own document has its size alone here: its text is in the compiled context.
    """
    held, policy = _key_holders(memory), memory.policy
    sizes = memory.status()["blocks"]
    found = []
    for label in dict.fromkeys((*CORE_BLOCKS, *policy.core_keys)):
        record = held.get(label)
        block = {
            "label": label,
            "text": record.text if record else "",
            "tokens": sizes.get(label, {}).get("tokens", 0),
            "budget": policy.block_budget.get(label, 0),
            "access": access_for(policy, Tier.CORE, label, record.access if record else None).value,
        }
        if record is not None:
            where = {"id": record.id, "version": record.version, "scope": record.scope, "trust": record.trust.label}
            block |= drop_empty(where)
        found.append(block)
    return found


def _key_holders(memory: Memory) -> dict[str, Record]:
    """Return the live core memories by key; of two with one key the nearer scope's counts."""
    visible = visible_from(memory.scope)
    found = [each for each in memory.list_memories(tiers=(Tier.CORE.value,), limit=None) if each.scope in visible]
    return {
        str(record.key): record
        for record in sorted(found, key=lambda record: (-visible.index(record.scope), record.id))
    }


def _insert(memory: Memory, args: dict[str, Any], words: str) -> ToolAnswer:
    fields: dict[str, Any] = {"tier": "core", "key": args["label"], "evidence": args.get("evidence", [])}
    return write_result(memory, memory.remember(words, reason=args.get("reason", ""), **fields))


def _replace_passage(now: str, old: str | None, new: str) -> str:
    if old is None:
        return new
    if not old or now.count(old) != 1:
        raise InvalidInput("`old` has to stand in the block exactly once; read the block and quote it more fully")
    return now.replace(old, new)
