"""Core blocks as tools: read, appended to, and replaced.

An edit of a block is an ordinary proposal: as policy stands an agent's waits for a person, under an access of
`append` an addition is committed at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keepward.core.memory import CORE_BLOCKS, Tier
from keepward.core.policy import access_for
from keepward.core.trust import visible_from
from keepward.errors import InvalidInput
from keepward.mcp.tool import Answer, items, obj, text, texts, tool, whole
from keepward.mcp.tools import filled, writes, written

if TYPE_CHECKING:
    from keepward.core.memory import Record
    from keepward.memory import Memory

_LABEL = text("Name of the block, such as mission.")
_REASON = text("Why; the person who decides reads it.")
_CHANGE = {
    "reason": _REASON,
    "evidence": texts("Ids or references that back it; the human block needs a recorded user message."),
}
_BLOCK = obj({"label": text(), "text": text(), "tokens": whole(), "budget": whole()})


@tool("Read core blocks", gives={"blocks": items(_BLOCK)}, reads=True)
def read_blocks(memory: Memory, given: dict[str, Any]) -> Answer:
    """Show every core block: its text, its tokens of its budget, and who may change it."""
    found = blocks(memory)
    lines = [
        f"{each['label']} ({each['tokens']} of {each['budget']} tokens, {each['access']}): "
        f"{each['text'] or ('(kept in its own document)' if each['tokens'] else '(empty)')}"
        for each in found
    ]
    return Answer(data={"blocks": found}, text="\n".join(lines))


@writes(
    "Append to a core block",
    takes={"label": _LABEL, "text": text("The line to add."), **_CHANGE},
    needs=("label", "text", "reason"),
)
def block_append(memory: Memory, given: dict[str, Any]) -> Answer:
    """Add a line to a core block."""
    record = _holders(memory).get(given["label"])
    if record is None:
        return _insert(memory, given, given["text"])
    fields: dict[str, Any] = {"text": given["text"], "evidence": given.get("evidence", [])}
    return written(memory, memory.append(record.id, reason=given["reason"], **fields))


@writes(
    "Replace text of a core block",
    takes={
        "label": _LABEL,
        "old": text("The passage to replace, word for word; without it the whole block is."),
        "new": text("What stands there instead."),
        **_CHANGE,
    },
    needs=("label", "new", "reason"),
    destroys=True,
)
def block_replace(memory: Memory, given: dict[str, Any]) -> Answer:
    """Replace a passage of a core block, or all of it."""
    record = _holders(memory).get(given["label"])
    if record is None:
        if "old" in given:
            raise InvalidInput("this block is empty; leave out `old` to write it")
        return _insert(memory, given, given["new"])
    fields: dict[str, Any] = {name: given[name] for name in ("evidence",) if name in given}
    fields["text"] = _replaced(record.text, given.get("old"), given["new"])
    # What was not seen is not overwritten.
    return written(memory, memory.revise(record.id, reason=given["reason"], if_version=record.version, **fields))


@writes(
    "Propose a new identity",
    takes={"text": text("All that the identity is to say; at most 500 tokens."), "reason": _REASON},
    needs=("text", "reason"),
    destroys=True,
)
def update_identity(memory: Memory, given: dict[str, Any]) -> Answer:
    """Propose a new edition of the identity, the persona that opens every prompt. It waits for its owner."""
    return written(memory, memory.update_identity(given["text"], reason=given["reason"]))


#: The tools of core blocks.
TOOLS = (read_blocks, block_append, block_replace, update_identity)


def blocks(memory: Memory) -> list[dict[str, Any]]:
    """Return every core block in the order in which it is compiled, set or not.

    A persona that lives in its own document has its size alone here: its text is in the compiled context.
    """
    held, policy = _holders(memory), memory.policy
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
            block |= filled(where)
        found.append(block)
    return found


def _holders(memory: Memory) -> dict[str, Record]:
    """Return the live core memories by key; of two with one key the nearer scope's counts."""
    visible = visible_from(memory.scope)
    found = [each for each in memory.find(tiers=(Tier.CORE.value,), limit=None) if each.scope in visible]
    return {
        str(record.key): record
        for record in sorted(found, key=lambda record: (-visible.index(record.scope), record.id))
    }


def _insert(memory: Memory, given: dict[str, Any], words: str) -> Answer:
    fields: dict[str, Any] = {"tier": "core", "key": given["label"], "evidence": given.get("evidence", [])}
    return written(memory, memory.remember(words, reason=given["reason"], **fields))


def _replaced(now: str, old: str | None, new: str) -> str:
    if old is None:
        return new
    if not old or now.count(old) != 1:
        raise InvalidInput("`old` has to stand in the block exactly once; read the block and quote it more fully")
    return now.replace(old, new)
