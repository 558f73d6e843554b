"""Core blocks as tools: read, appended to, and replaced, one by one or as edits that are proposed together.

An edit of a block is an ordinary proposal: as policy stands an agent's waits for a person, under an access of
`append` an addition is committed at once.

Invariants
(1) Begun edits are kept in this process alone: a text that no gate has judged is never written to disk.
(2) Only the principal that began edits sees them, from the tenant and scope where they were begun.
(3) They end by being finished, by being discarded, or by themselves after an hour; there is room for a limited
    number, and who begins one too many is told, while nothing of others is dropped.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from keepward.errors import InvalidInput, KeepwardError, NotFound
from keepward.mcp.tool import Answer, Tool, items, obj, text, texts, tool, whole
from keepward.mcp.tools import ALWAYS, OUTCOME, filled, written
from keepward.model.memory import CORE_BLOCKS, Tier
from keepward.model.policy import access_for
from keepward.model.trust import visible_from
from keepward.model.value import counted

if TYPE_CHECKING:
    from keepward.calls.draft import Draft
    from keepward.memory import Memory
    from keepward.model.memory import Record

#: How long edits are kept, in seconds.
TERM = 3_600.0
#: Most edits of all principals, and of one; most changes in one.
MOST, MOST_EACH, MOST_CHANGES = 1_024, 16, 100

_LABEL = text("Name of the block, such as mission.")
_REASON = text("Why; the person who decides reads it.")
_EDITS = text("Id of begun edits; without one the change is proposed at once.")
_BEGUN = text("Id of the begun edits.")
_EVIDENCE = texts("Ids or references that back it; the human block needs a recorded user message.")
_STAGED = {"edits": text(), "count": whole("Changes collected so far.")}
_CHANGED = {**OUTCOME, **_STAGED, "outcome": text(enum=[*OUTCOME["outcome"]["enum"], "staged"])}
_BLOCK = obj({"label": text(), "text": text(), "tokens": whole(), "budget": whole()})


@dataclass(slots=True)
class Edits:
    """One draft and what the blocks in it would read."""

    draft: Draft
    until: float
    #: Id and text of each block touched.
    staged: dict[str, tuple[str, str]] = field(default_factory=dict)


class Drafts:
    """The edits begun in this process, by who began them and by their id."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._begun: dict[tuple[tuple[str, ...], str], Edits] = {}

    def begin(self, memory: Memory, reason: str) -> str:
        """Begin edits; return their id.

        Raises:
            InvalidInput: there is no room for one more.
        """
        name, owner = secrets.token_hex(8), _owner(memory)
        with self._lock:
            self._expire()
            own = sum(principal == owner for principal, _ in self._begun)
            if own >= MOST_EACH or len(self._begun) >= MOST:
                raise InvalidInput("too many edits are begun; finish or discard one first")
            self._begun[owner, name] = Edits(memory.draft(reason=reason), self._monotonic() + TERM)
        return name

    def of(self, memory: Memory, name: str, *, end: bool = False) -> Edits:
        """Return edits of the caller's own, and ``end`` them where that is asked for.

        Raises:
            NotFound: there are none by that id, or they have ended.
        """
        with self._lock:
            self._expire()
            found = self._begun.pop((_owner(memory), name), None) if end else self._begun.get((_owner(memory), name))
        if found is None:
            raise NotFound("there are no such edits here; they end after an hour: begin them again")
        if not end and len(found.draft) >= MOST_CHANGES:
            raise InvalidInput(f"{MOST_CHANGES} edits go together at most; finish these first")
        return found

    def put_back(self, memory: Memory, name: str, edits: Edits) -> None:
        """Keep edits that were ended and could not be proposed; their hour goes on."""
        with self._lock:
            self._begun[_owner(memory), name] = edits

    def _expire(self) -> None:
        now = self._monotonic()
        self._begun = {key: edits for key, edits in self._begun.items() if edits.until > now}


@tool("Read core blocks", gives={"blocks": items(_BLOCK)}, reads=True)
def read_blocks(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Show every core block: its text, its tokens of its budget, and who may change it."""
    del drafts, given
    found = blocks(memory)
    lines = [
        f"{each['label']} ({each['tokens']} of {each['budget']} tokens, {each['access']}): "
        f"{each['text'] or ('(kept in its own document)' if each['tokens'] else '(empty)')}"
        for each in found
    ]
    return Answer(data={"blocks": found}, text="\n".join(lines))


@tool(
    "Append to a core block",
    takes={
        "label": _LABEL,
        "text": text("The line to add."),
        "reason": _REASON,
        "evidence": _EVIDENCE,
        "edits": _EDITS,
    },
    needs=("label", "text"),
    gives=_CHANGED,
    always=("outcome",),
)
def block_append(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Add a line to a core block, now or as one of begun edits."""
    edits = drafts.of(memory, given["edits"]) if "edits" in given else None
    block = _current(memory, given["label"], edits)
    if block is None:
        return _insert(memory, given, edits, given["text"])
    memory_id, now, version = block
    evidence = tuple(given.get("evidence", ()))
    if edits is None:
        return written(memory, memory.append(memory_id, given["text"], reason=_why(given), evidence=evidence))
    edits.draft.append(memory_id, given["text"], evidence=evidence, if_version=version)
    return _collected(given, edits, memory_id, f"{now}\n{given['text']}")


@tool(
    "Replace text of a core block",
    takes={
        "label": _LABEL,
        "old": text("The passage to replace, word for word; without it the whole block is."),
        "new": text("What stands there instead."),
        "reason": _REASON,
        "evidence": _EVIDENCE,
        "edits": _EDITS,
    },
    needs=("label", "new"),
    gives=_CHANGED,
    always=("outcome",),
    destroys=True,
)
def block_replace(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Replace a passage of a core block, or all of it, now or as one of begun edits."""
    edits = drafts.of(memory, given["edits"]) if "edits" in given else None
    block = _current(memory, given["label"], edits)
    if block is None:
        if "old" in given:
            raise InvalidInput("this block is empty; leave out `old` to write it")
        return _insert(memory, given, edits, given["new"])
    memory_id, now, version = block
    words = _replaced(now, given.get("old"), given["new"])
    # What was not seen is not overwritten.
    fields: dict[str, Any] = {"if_version": version}
    if "evidence" in given:
        fields["evidence"] = tuple(given["evidence"])
    if edits is None:
        return written(memory, memory.revise(memory_id, words, reason=_why(given), **fields))
    edits.draft.replace(memory_id, words, **fields)
    return _collected(given, edits, memory_id, words)


@tool("Begin edits", takes={"reason": _REASON}, needs=("reason",), gives=_STAGED)
def begin_edits(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Begin edits that are proposed together. They are kept for an hour."""
    name = drafts.begin(memory, given["reason"])
    said = f"edits {name} are begun; nothing is visible until finished"
    return Answer(data={"edits": name, "count": 0}, text=said)


@tool("Finish edits", takes={"edits": _BEGUN}, needs=("edits",), gives=OUTCOME, always=ALWAYS, destroys=True)
def finish_edits(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Propose all begun edits as one: all are carried out, held or refused together."""
    edits = drafts.of(memory, given["edits"], end=True)
    if not len(edits.draft):
        raise InvalidInput("these edits hold no change; they are discarded")
    try:
        with edits.draft:
            pass
    except KeepwardError:
        # The edits are still there to be finished another time, or discarded.
        drafts.put_back(memory, given["edits"], edits)
        raise
    assert edits.draft.outcome is not None
    return written(memory, edits.draft.outcome)


@tool("Discard edits", takes={"edits": _BEGUN}, needs=("edits",), gives={"discarded": whole()})
def discard_edits(drafts: Drafts, memory: Memory, given: dict[str, Any]) -> Answer:
    """Drop begun edits; nothing of them is kept."""
    edits = drafts.of(memory, given["edits"], end=True)
    count = len(edits.draft)
    edits.draft.discard()
    return Answer(data={"discarded": count}, text=f"{counted(count, 'change', 'changes')} discarded")


def block_tools(drafts: Drafts | None = None) -> tuple[Tool, ...]:
    """Return the tools, over edits of their own unless some are given."""
    begun = drafts or Drafts()
    rows = (read_blocks, block_append, block_replace, begin_edits, finish_edits, discard_edits)
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


def _current(memory: Memory, label: str, edits: Edits | None) -> tuple[str, str, int | None] | None:
    """Return id, text and version of a block, as the edits would leave it; None for one that is not set.

    Within edits that touched it already the version is None: they build on themselves.
    """
    if edits is not None and label in edits.staged:
        return (*edits.staged[label], None)
    record = _holders(memory).get(label)
    return (record.id, record.text, record.version) if record else None


def _insert(memory: Memory, given: dict[str, Any], edits: Edits | None, words: str) -> Answer:
    fields: dict[str, Any] = {"tier": "core", "key": given["label"], "evidence": tuple(given.get("evidence", ()))}
    if edits is None:
        return written(memory, memory.remember(words, reason=_why(given), **fields))
    return _collected(given, edits, edits.draft.insert(words, **fields), words)


def _collected(given: dict[str, Any], edits: Edits, memory_id: str, words: str) -> Answer:
    edits.staged[given["label"]] = (memory_id, words)
    count = len(edits.draft)
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


def _owner(memory: Memory) -> tuple[str, ...]:
    actor = memory.actor
    return (actor.label, actor.credential or "", memory.tenant, memory.scope)
