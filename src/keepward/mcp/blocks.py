"""Core blocks as tools: read, appended to, and replaced, one by one or as edits that are proposed together.

An edit of a block is an ordinary proposal: as policy stands an agent's waits for a person, under an access of
`append` an addition is committed at once.

Begun edits are a draft, see ``state``: kept for an hour at most, for the principal that began them alone, and in no
file. What a block would read is told by the changes that are staged.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from keepward.errors import InvalidInput
from keepward.mcp.tool import Answer, Tool, items, obj, text, texts, tool, whole
from keepward.mcp.tools import OUTCOME, filled, writes, written
from keepward.model.memory import CORE_BLOCKS, Tier
from keepward.model.policy import access_for
from keepward.model.trust import visible_from
from keepward.model.value import counted
from keepward.state import Draft, Drafts, ServerState

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.model.memory import Record

_LABEL = text("Name of the block, such as mission.")
_REASON = text("Why; the person who decides reads it.")
_BEGUN = text("Id of the begun edits.")
_CHANGE = {
    "reason": _REASON,
    "evidence": texts("Ids or references that back it; the human block needs a recorded user message."),
    "edits": text("Id of begun edits; without one the change is proposed at once."),
}
_STAGED = {"edits": text(), "count": whole("Changes collected so far.")}
_CHANGED = {**OUTCOME, **_STAGED, "outcome": text(enum=[*OUTCOME["outcome"]["enum"], "staged"])}
_changes = partial(tool, gives=_CHANGED, always=("outcome",))
_BLOCK = obj({"label": text(), "text": text(), "tokens": whole(), "budget": whole()})


@tool("Read core blocks", gives={"blocks": items(_BLOCK)}, reads=True)
def read_blocks(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Show every core block: its text, its tokens of its budget, and who may change it."""
    found = blocks(memory)
    lines = [
        f"{each['label']} ({each['tokens']} of {each['budget']} tokens, {each['access']}): "
        f"{each['text'] or ('(kept in its own document)' if each['tokens'] else '(empty)')}"
        for each in found
    ]
    return Answer(data={"blocks": found}, text="\n".join(lines))


@_changes(
    "Append to a core block",
    takes={"label": _LABEL, "text": text("The line to add."), **_CHANGE},
    needs=("label", "text"),
)
def block_append(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Add a line to a core block, now or as one of begun edits."""
    block = _current(memory, given["label"], _begun(drafts, memory, given))
    if block is None:
        return _insert(drafts, memory, given, given["text"])
    memory_id, _, version = block
    fields: dict[str, Any] = {"text": given["text"], "evidence": given.get("evidence", [])}
    if "edits" in given:
        return _staged(drafts, memory, given, {"op": "append", "id": memory_id, **fields}, version)
    return written(memory, memory.append(memory_id, reason=_why(given), **fields))


@_changes(
    "Replace text of a core block",
    takes={
        "label": _LABEL,
        "old": text("The passage to replace, word for word; without it the whole block is."),
        "new": text("What stands there instead."),
        **_CHANGE,
    },
    needs=("label", "new"),
    destroys=True,
)
def block_replace(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Replace a passage of a core block, or all of it, now or as one of begun edits."""
    block = _current(memory, given["label"], _begun(drafts, memory, given))
    if block is None:
        if "old" in given:
            raise InvalidInput("this block is empty; leave out `old` to write it")
        return _insert(drafts, memory, given, given["new"])
    memory_id, now, version = block
    fields: dict[str, Any] = {name: given[name] for name in ("evidence",) if name in given}
    fields["text"] = _replaced(now, given.get("old"), given["new"])
    if "edits" in given:
        return _staged(drafts, memory, given, {"op": "replace", "id": memory_id, **fields}, version)
    # What was not seen is not overwritten.
    return written(memory, memory.revise(memory_id, reason=_why(given), if_version=version, **fields))


@writes(
    "Propose a new identity",
    takes={"text": text("All that the identity is to say; at most 500 tokens."), "reason": _REASON},
    needs=("text", "reason"),
    destroys=True,
)
def update_identity(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Propose a new edition of the identity, the persona that opens every prompt. It waits for its owner."""
    return written(memory, memory.update_identity(given["text"], reason=given["reason"]))


@tool("Begin edits", takes={"reason": _REASON}, needs=("reason",), gives=_STAGED)
def begin_edits(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Begin edits that are proposed together. They are kept for an hour."""
    name = drafts.begin(memory, given["reason"]).id
    said = f"edits {name} are begun; nothing is visible until finished"
    return Answer(data={"edits": name, "count": 0}, text=said)


@writes("Finish edits", takes={"edits": _BEGUN}, needs=("edits",), destroys=True)
def finish_edits(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Propose all begun edits as one: all are carried out, held or refused together."""
    if not drafts.get(memory, given["edits"]).changes:
        drafts.discard(memory, given["edits"])
        raise InvalidInput("these edits hold no change; they are discarded")
    return written(memory, drafts.finish(memory, given["edits"]))


@tool("Discard edits", takes={"edits": _BEGUN}, needs=("edits",), gives={"discarded": whole()})
def discard_edits(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Drop begun edits; nothing of them is kept."""
    count = len(drafts.discard(memory, given["edits"]).changes)
    return Answer(data={"discarded": count}, text=f"{counted(count, 'change', 'changes')} discarded")


def block_tools(drafts: Drafts | None = None) -> tuple[Tool, ...]:
    """Return the tools, over edits of their own unless some are given."""
    begun = drafts or Drafts(ServerState(time.monotonic))
    rows = (read_blocks, block_append, block_replace, update_identity, begin_edits, finish_edits, discard_edits)
    return tuple(replace(each, run=partial(each.run, begun)) for each in rows)


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
    return {str(record.key): record for record in sorted(found, key=lambda record: (len(record.scope), record.id))}


def _begun(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Draft | None:
    return drafts.get(memory, given["edits"]) if "edits" in given else None


def _current(memory: Memory, label: str, edits: Draft | None) -> tuple[str, str, int | None] | None:
    """Return id, text and version of a block, as the edits would leave it; None for one that is not set.

    Within edits that touched it already the version is None: they build on themselves.
    """
    record = _holders(memory).get(label)
    block: tuple[str, str, int | None] | None = (record.id, record.text, record.version) if record else None
    for memory_id, sent in zip(edits.ids, edits.changes, strict=True) if edits else ():
        change = json.loads(sent)
        if change.get("key") == label or (block and memory_id == block[0]):
            text = change["text"] if change["op"] != "append" or not block else f"{block[1]}\n{change['text']}"
            block = (memory_id, text, None)
    return block


def _insert(drafts: Drafts, memory: Memory, given: dict[str, Any], words: str) -> Answer:
    fields: dict[str, Any] = {"tier": "core", "key": given["label"], "evidence": given.get("evidence", [])}
    if "edits" in given:
        return _staged(drafts, memory, given, {"op": "insert", "text": words, **fields}, None)
    return written(memory, memory.remember(words, reason=_why(given), **fields))


def _staged(
    drafts: Drafts, memory: Memory, given: dict[str, Any], change: dict[str, Any], version: int | None
) -> Answer:
    change |= {} if version is None else {"if_version": version}
    count = len(drafts.stage(memory, given["edits"], [change])[0].changes)
    said = f"collected; {counted(count, 'change waits', 'changes wait')} for finish_edits"
    return Answer(data={"outcome": "staged", "edits": given["edits"], "count": count}, text=said)


def _replaced(now: str, old: str | None, new: str) -> str:
    if old is None:
        return new
    if not old or now.count(old) != 1:
        raise InvalidInput("`old` has to stand in the block exactly once; read the block and quote it more fully")
    return now.replace(old, new)


def _why(given: dict[str, Any]) -> str:
    if "reason" not in given:
        raise InvalidInput("say why in `reason`, or collect the change under begun `edits`")
    return str(given["reason"])
