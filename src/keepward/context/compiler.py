"""The compiler: from memories and a budget to one context, with a reason for all that stayed out.

Invariants
(1) A pure function of ``Inputs``; the order of the given sequences does not matter, but for ``recalled``.
(2) The text never counts more than the budget; core is always in, or there is an error.
(3) Every given memory is in exactly one section or excluded for exactly one reason.
(4) Nothing is rendered that does not hold at ``now`` or that was not screened.
(5) Recalled memories are chosen by relevance; tier and confidence decide between about equally relevant ones.
    They are shown in reading order.
"""

from __future__ import annotations

from dataclasses import replace

from keepward.context.admission import NO_ROOM, Ledger, reason
from keepward.context.budget import (
    IDENTITY_CAP,
    RULE_CAP,
    SUMMARY_CAP,
    Entry,
    Tally,
    allotments,
    banded,
    kept_order,
    tally,
    victims,
)
from keepward.context.facts import compiled
from keepward.context.render import Rendered, document, render, with_documents
from keepward.context.sections import (
    SECTIONS,
    Compiled,
    Inputs,
    core_order,
    depth,
    pinned_order,
    recalled_order,
    renewed_at,
    state_order,
    working_order,
)
from keepward.errors import ContextTooSmall
from keepward.model.memory import Kind, Tier

_ORDER = {"core": core_order, "pinned": pinned_order, "state": state_order, "working": working_order}
_CAPS = {Kind.IDENTITY: IDENTITY_CAP, Kind.RULE: RULE_CAP}
#: Reasons that say only that there was no room.
_ROOM = frozenset({"budget", "cap"})


def compile_context(inputs: Inputs) -> Compiled:
    """Assemble the context of an objective.

    Raises:
        ContextTooSmall: a core block is over its own budget, or identity and core over the whole one.
    """
    return _Assembly(inputs, "context").result()


def snapshot(inputs: Inputs) -> Compiled:
    """Assemble what is injected every time whatever the objective: core memories, pinned ones and keyed state.

    Neither identity document nor user file take part, and no cap on kinds holds.

    Raises:
        ContextTooSmall: as for ``compile_context``.
    """
    fixed = replace(inputs, identity=None, user_file=None, working=(), recalled=())
    return _Assembly(fixed, "snapshot").result()


def memory_block(inputs: Inputs) -> Compiled:
    """Assemble recalled memories alone; the empty text when there are none.

    Each with a score below the floor is excluded with the code ``relevance``.
    """
    alone = replace(inputs, identity=None, user_file=None, core=(), pinned=(), state=(), working=())
    return _Assembly(alone, "memory_block").result()


class _Assembly:
    """One context being put together, most needed first."""

    def __init__(self, inputs: Inputs, mode: str) -> None:
        self._inputs = inputs
        self._mode = mode
        self._ledger = Ledger(inputs, each=mode == "memory_block")
        self._full = reason("cap", f"a context recalls at most {inputs.policy.max_items} memories")
        self._identity = document("identity", inputs.identity[1]) if inputs.identity else None
        self._user_file = document("user_file", inputs.user_file[1]) if inputs.user_file else None

    def result(self) -> Compiled:
        entries = self._ledger.gathered()
        self._take_core([entry for entry in entries if entry.section == "core"])
        self._take_stable([entry for entry in entries if entry.section in {"pinned", "state"}])
        self._take([entry for entry in entries if entry.section == "working"])
        recalled = [entry for entry in entries if entry.section == "recalled"]
        self._take_recalled(recalled)
        rendered, tokens = self._settled(recalled)
        return compiled(
            self._inputs,
            self._mode,
            rendered=rendered,
            tokens=tokens,
            entries={name: self._section(name) for name in SECTIONS[1:]},
            left_out=self._ledger.outcome(),
            best=self._ledger.best,
            below=self._ledger.below,
            count=self._ledger.count,
        )

    def _take_core(self, entries: list[Entry]) -> None:
        ledger, budget = self._ledger, self._inputs.budget_tokens
        lines = [line for line in (self._identity, self._user_file) if line]
        for entry in entries:
            line = ledger.screened(entry)
            if line is not None:
                ledger.keep(entry, line)
                lines.append(line)
        for line in lines:
            tokens, limit = ledger.count(line.body or ""), self._inputs.policy.block_budget.get(line.block or "")
            if limit is not None and tokens > limit:
                raise ContextTooSmall(
                    f"the {line.block} block is {tokens - limit} tokens over its budget of {limit}; "
                    "shorten it or raise block_budget"
                )
        needed = ledger.count(self._rendered().text)
        if needed > budget:
            raise ContextTooSmall(
                f"core memory needs {needed} tokens, {needed - budget} more than the budget of {budget}; "
                "raise the budget or shorten a block"
            )
        ledger.spent = needed

    def _take_stable(self, entries: list[Entry]) -> None:
        allowed: list[Entry] = []
        taken = dict.fromkeys(_CAPS, 0)
        for entry in sorted(entries, key=_cap_order):
            kind = entry.record.kind
            if self._mode == "context" and entry.section == "pinned" and kind in _CAPS:
                taken[kind] += 1
                if taken[kind] > _CAPS[kind]:
                    detail = f"a context pins at most {_CAPS[kind]} memories of this kind"
                    self._ledger.reasons[entry.key] = reason("cap", detail)
                    continue
            allowed.append(entry)
        self._take(allowed)

    def _take(self, entries: list[Entry]) -> None:
        """Take in what fits, best kept first; a long one does not block a short one behind it."""
        ledger = self._ledger
        room = min((ledger.allotment(entry.section) for entry in entries), default=0)
        for entry in kept_order(entries):
            if entry.key not in ledger.kept and ledger.admit(entry, min(room, ledger.room)):
                room -= entry.cost

    def _take_recalled(self, entries: list[Entry]) -> None:
        """Choose by relevance within the section's own limits and the room that is left (5)."""
        ledger = self._ledger
        room, opened = min(ledger.allotment("recalled"), ledger.room), set(ledger.opened)
        chosen: list[Entry] = []
        said: dict[str, Entry] = {}
        for entry in banded(entries):
            if entry.key in ledger.kept or ledger.says_known(entry, entry.record.text):
                continue
            words = entry.folded(entry.record.text)
            if words in said:
                ledger.repeats[entry.key] = said[words].key
            elif self._within_caps(entry, chosen):
                price = ledger.bare(entry, ahead := set(opened))
                if price > room:
                    ledger.reasons[entry.key] = NO_ROOM
                    continue
                room -= price
                opened = ahead
                said[words] = entry
                chosen.append(entry)
        for entry in kept_order(chosen):
            ledger.admit(entry, ledger.room)

    def _within_caps(self, entry: Entry, chosen: list[Entry]) -> bool:
        if len(chosen) >= self._inputs.policy.max_items:
            self._ledger.reasons[entry.key] = self._full
            return False
        if not _is_summary(entry) or sum(map(_is_summary, chosen)) < SUMMARY_CAP:
            return True
        self._ledger.reasons[entry.key] = reason("cap", f"a context recalls at most {SUMMARY_CAP} summaries")
        return False

    def _section(self, name: str) -> list[Entry]:
        """Return the entries of a section in the order of the text."""
        entries = [entry for entry in self._ledger.kept.values() if entry.section == name]
        if name != "recalled":
            return sorted(entries, key=lambda entry: _ORDER[name](entry.record))
        by_id = {entry.record.id: entry for entry in entries}
        return [by_id[key] for key in recalled_order({key: (it.record, it.rank) for key, it in by_id.items()})]

    def _rendered(self) -> Rendered:
        lines = [entry.line for name in SECTIONS[1:] for entry in self._section(name) if entry.line]
        return render(with_documents(lines, self._identity, self._user_file), self._inputs.format)

    def _excess(self, tokens: Tally) -> tuple[int, list[Entry]]:
        """Return by how many tokens a limit is broken, and who may go for it."""
        budget = self._inputs.budget_tokens
        movable = [entry for entry in self._ledger.kept.values() if entry.section != "core"]
        if tokens.whole > budget:
            return tokens.whole - budget, movable
        for names, limit in allotments(self._inputs.policy):
            over = tokens.of(names) - limit
            if over > 0:
                return over, [entry for entry in movable if entry.section in names]
        return 0, []

    def _settled(self, recalled: list[Entry]) -> tuple[Rendered, Tally]:
        """Evict while the true count is over a limit, then use the room that estimates left unused (2)."""
        count = self._inputs.count
        rendered = self._rendered()
        tokens = tally(rendered, count)
        while True:
            over, movable = self._excess(tokens)
            if not movable:
                break
            for entry in victims(movable, over):
                self._ledger.drop(entry)
            rendered = self._rendered()
            tokens = tally(rendered, count)
        for _ in range(2):
            extra = self._take_extra(tokens, recalled)
            while extra:
                fuller = self._rendered()
                counted = tally(fuller, count)
                if not self._excess(counted)[0]:
                    rendered, tokens = fuller, counted
                    break
                self._ledger.drop(extra.pop())
            if not extra:
                break
        return rendered, tokens

    def _take_extra(self, tokens: Tally, recalled: list[Entry]) -> list[Entry]:
        """Take in by rank what was left for lack of room and may fit by the true count."""
        ledger = self._ledger
        taken = [entry for entry in ledger.kept.values() if entry.section == "recalled"]
        slack = min(
            self._inputs.budget_tokens - tokens.whole,
            ledger.allotment("recalled") - tokens.of({"recalled"}),
        )
        extra: list[Entry] = []
        for entry in recalled:
            if slack <= 0 or len(taken) >= self._inputs.policy.max_items:
                break
            why = ledger.reasons.get(entry.key)
            waits = entry.key in ledger.repeats or (why is not None and why.code in _ROOM)
            if entry.key in ledger.kept or not waits or not self._within_caps(entry, taken):
                continue
            if ledger.admit(entry, slack):
                slack -= entry.cost
                extra.append(entry)
                taken.append(entry)
        return extra


def _is_summary(entry: Entry) -> bool:
    return entry.record.kind is Kind.SUMMARY and entry.record.tier is Tier.EPISODIC


def _cap_order(entry: Entry) -> tuple[int, float, int, str]:
    """Sort key of what a cap keeps: own scope first, then surest, then newest."""
    record = entry.record
    return -depth(record.scope), -entry.confidence, -renewed_at(record), record.id
