"""Tools of the profile `blocks`: core blocks read, appended to, and replaced, alone or together.

An edit of a block is an ordinary proposal: as policy stands an agent's waits for a person, under an access of
`append` an addition is committed at once. Edits that belong together are begun, collected and finished as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keepward import present
from keepward.errors import InvalidInput, KeepwardError
from keepward.mcp import blocks_read
from keepward.mcp.drafts import Drafts, Edits
from keepward.mcp.spec import Given, Tool, items, obj, text, texts, whole
from keepward.mcp.tools_write import ALWAYS, OUTCOME, written
from keepward.model.memory import Tier

if TYPE_CHECKING:
    from keepward.memory import Memory

_LABEL = text("Name of the block, such as mission.")
_REASON = text("Why; the person who decides reads it.")
_EDITS = text("Id of begun edits; without one the change is proposed at once.")
_EVIDENCE = texts("Ids or references that back it; the human block needs a recorded user message.")
_STAGED = {"edits": text(), "count": whole("Changes collected so far.")}


def block_tools(drafts: Drafts | None = None) -> tuple[Tool, ...]:
    """Return the tools, with drafts of their own unless some are given."""
    kept = _Edits(drafts or Drafts())
    return _tools(kept)


def read(memory: Memory, given: Mapping[str, Any]) -> Given:
    """Return every core block."""
    del given
    found = blocks_read.blocks(memory)
    lines = [
        f"{each['label']} ({each['tokens']} of {each['budget']} tokens, {each['access']}): "
        f"{each['text'] or ('(kept in its own document)' if each['tokens'] else '(empty)')}"
        for each in found
    ]
    return Given(data={"blocks": found}, text="\n".join(lines))


class _Edits:
    """The tools that change blocks, over one set of drafts."""

    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts

    def append(self, memory: Memory, given: Mapping[str, Any]) -> Given:
        """Add a line to a block, or write one that is empty."""
        edits = self._of(memory, given)
        block = _standing(memory, given["label"], edits)
        added, evidence = given["text"], tuple(given.get("evidence", ()))
        if block is None:
            return _insert(memory, given, edits, added)
        memory_id, now, version = block
        if edits is None:
            return written(memory, memory.append(memory_id, added, reason=_why(given), evidence=evidence))
        edits.draft.append(memory_id, added, evidence=evidence, if_version=version)
        return _collected(given, edits, memory_id, f"{now}\n{added}")

    def replace(self, memory: Memory, given: Mapping[str, Any]) -> Given:
        """Replace a passage of a block, or all of it."""
        edits = self._of(memory, given)
        block = _standing(memory, given["label"], edits)
        if block is None:
            if "old" in given:
                raise InvalidInput("this block is empty; leave out `old` to write it")
            return _insert(memory, given, edits, given["new"])
        memory_id, now, version = block
        whole_text = _replaced(now, given.get("old"), given["new"])
        # What was not seen is not overwritten.
        fields: dict[str, Any] = {"if_version": version}
        if "evidence" in given:
            fields["evidence"] = tuple(given["evidence"])
        if edits is None:
            return written(memory, memory.revise(memory_id, whole_text, reason=_why(given), **fields))
        edits.draft.replace(memory_id, whole_text, **fields)
        return _collected(given, edits, memory_id, whole_text)

    def begin(self, memory: Memory, given: Mapping[str, Any]) -> Given:
        """Begin edits."""
        name = self._drafts.begin(memory, given["reason"])
        return Given(
            data={"edits": name, "count": 0}, text=f"edits {name} are begun; nothing is visible until finished"
        )

    def finish(self, memory: Memory, given: Mapping[str, Any]) -> Given:
        """Propose begun edits as one."""
        edits = self._drafts.take(memory, given["edits"])
        if not len(edits.draft):
            raise InvalidInput("these edits hold no change; they are discarded")
        try:
            with edits.draft:
                pass
        except KeepwardError:
            # The edits are still there to be finished another time, or discarded.
            self._drafts.put_back(memory, given["edits"], edits)
            raise
        assert edits.draft.outcome is not None
        return written(memory, edits.draft.outcome)

    def discard(self, memory: Memory, given: Mapping[str, Any]) -> Given:
        """Drop begun edits."""
        edits = self._drafts.take(memory, given["edits"])
        count = len(edits.draft)
        edits.draft.discard()
        return Given(data={"discarded": count}, text=f"{present.counted(count, 'change', 'changes')} discarded")

    def _of(self, memory: Memory, given: Mapping[str, Any]) -> Edits | None:
        return self._drafts.of(memory, given["edits"]) if "edits" in given else None


def _standing(memory: Memory, label: str, edits: Edits | None) -> tuple[str, str, int | None] | None:
    """Return id, text and version of a block, as the edits would leave it; None for one that is not set.

    Within edits that touched it already the version is None: they build on themselves.
    """
    if edits is not None and label in edits.staged:
        return (*edits.staged[label], None)
    record = blocks_read.holders(memory).get(label)
    return (record.id, record.text, record.version) if record else None


def _insert(memory: Memory, given: Mapping[str, Any], edits: Edits | None, words: str) -> Given:
    fields: dict[str, Any] = {
        "tier": Tier.CORE.value,
        "key": given["label"],
        "evidence": tuple(given.get("evidence", ())),
    }
    if edits is None:
        return written(memory, memory.remember(words, reason=_why(given), **fields))
    return _collected(given, edits, edits.draft.insert(words, **fields), words)


def _collected(given: Mapping[str, Any], edits: Edits, memory_id: str, words: str) -> Given:
    edits.staged[given["label"]] = (memory_id, words)
    count = len(edits.draft)
    return Given(
        data={"outcome": "staged", "edits": given["edits"], "count": count},
        text=f"collected; {present.counted(count, 'change waits', 'changes wait')} for finish_edits",
    )


def _replaced(now: str, old: str | None, new: str) -> str:
    if old is None:
        return new
    if not old or now.count(old) != 1:
        raise InvalidInput("`old` has to stand in the block exactly once; read the block and quote it more fully")
    return now.replace(old, new)


def _why(given: Mapping[str, Any]) -> str:
    if "reason" not in given:
        raise InvalidInput("say why in `reason`, or collect the change under begun `edits`")
    return str(given["reason"])


def _tools(kept: _Edits) -> tuple[Tool, ...]:
    outcome = {**OUTCOME, **_STAGED, "outcome": text(options=(*OUTCOME["outcome"]["enum"], "staged"))}
    return (
        Tool(
            name="read_blocks",
            title="Read core blocks",
            about="Show every core block: its text, its tokens of its budget, and who may change it.",
            run=read,
            gives={"blocks": items(obj({"label": text(), "text": text(), "tokens": whole(), "budget": whole()}))},
            always=("blocks",),
            reads=True,
        ),
        Tool(
            name="block_append",
            title="Append to a core block",
            about="Add a line to a core block, now or as one of begun edits.",
            run=kept.append,
            takes={
                "label": _LABEL,
                "text": text("The line to add."),
                "reason": _REASON,
                "evidence": _EVIDENCE,
                "edits": _EDITS,
            },
            needs=("label", "text"),
            gives=outcome,
            always=("outcome",),
        ),
        Tool(
            name="block_replace",
            title="Replace text of a core block",
            about="Replace a passage of a core block, or all of it, now or as one of begun edits.",
            run=kept.replace,
            takes={
                "label": _LABEL,
                "old": text("The passage to replace, word for word; without it the whole block is."),
                "new": text("What stands there instead."),
                "reason": _REASON,
                "evidence": _EVIDENCE,
                "edits": _EDITS,
            },
            needs=("label", "new"),
            gives=outcome,
            always=("outcome",),
            destroys=True,
        ),
        Tool(
            name="begin_edits",
            title="Begin edits",
            about="Begin edits that are proposed together. They are kept for an hour.",
            run=kept.begin,
            takes={"reason": _REASON},
            needs=("reason",),
            gives=_STAGED,
            always=("edits", "count"),
        ),
        Tool(
            name="finish_edits",
            title="Finish edits",
            about="Propose all begun edits as one: all are carried out, held or refused together.",
            run=kept.finish,
            takes={"edits": text("Id of the begun edits.")},
            needs=("edits",),
            gives=OUTCOME,
            always=ALWAYS,
            destroys=True,
        ),
        Tool(
            name="discard_edits",
            title="Discard edits",
            about="Drop begun edits; nothing of them is kept.",
            run=kept.discard,
            takes={"edits": text("Id of the begun edits.")},
            needs=("edits",),
            gives={"discarded": whole()},
            always=("discarded",),
        ),
    )
