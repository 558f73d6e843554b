"""The compiler: from memories and a budget to one context, with a reason for all that stayed out.

Invariants
(1) A pure function of ``Inputs``; the order of the given sequences does not matter, but for ``recalled``.
(2) The text never counts more than the budget; core is always in, or there is an error.
(3) Every given memory is in exactly one section or excluded for exactly one reason. The same words with the same key,
    speaker and day come in once, and no summary comes in where its sources may.
(4) Nothing is rendered that does not hold at ``now``, or that was not screened; a memory is screened at most once.
(5) When room is short, recalled memories go first, then working, then pinned and state; of the last three the words of
    people stay longest. Notes of agents there leave what people's memories need, up to half of a limit. A confidence
    counts at most as the default of its source. Of the recalled ones the less relevant goes first; of about equally
    relevant memories archival goes before episodic, and within a tier the lowest confidence first, faded by whole days;
    ties by lower score, then rank, then older.
(6) Tokens by section and by tier are whole numbers of at least 0 that sum to the tokens of the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from keepward.context.entries import ORDER, Entry, consider, folded, reason
from keepward.context.facts import facts_of
from keepward.context.lines import Line, document, line_of, tidy
from keepward.context.render import Rendered, Tally, render, tally, with_documents
from keepward.context.sections import SECTIONS, Compiled, Inputs, newest_rules, recalled_order
from keepward.errors import ContextTooSmall
from keepward.model.commit import Reason
from keepward.model.compiled import Excluded, Item, Mask, Section
from keepward.model.memory import Kind, Tier

#: Why most of what stays out does.
NO_ROOM = reason("budget", "there was no room for it")
#: Why a summary stays out where its sources may come in.
SUMMED_UP = reason("repeat", "memories that it sums up were recalled")
#: The largest budget, in tokens.
MOST_TOKENS = 128_000
#: Most memories of a kind: pinned rules, and recalled summaries.
RULE_CAP = 10
SUMMARY_CAP = 5
#: Share of a band's best score from which memories count as about equally relevant.
ALIKE = 0.9
#: Share of the best score from which a recalled fact stands among the first.
NEAR = 0.5
_STABLE = frozenset({"pinned", "state"})
_TAIL = frozenset({"working", "recalled"})


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
    """Assemble recalled memories alone; the empty text when there are none."""
    alone = replace(inputs, identity=None, user_file=None, core=(), pinned=(), state=(), working=())
    return _Assembly(alone, "memory_block").result()


class _Assembly:
    """One context being put together, most needed first: who is in, who is out and why, what has been spent."""

    def __init__(self, inputs: Inputs, mode: str) -> None:
        policy, named = inputs.policy, inputs.budget_tokens
        self._inputs = inputs
        self._mode = mode
        self._identity = document("identity", inputs.identity[1]) if inputs.identity else None
        self._user_file = document("user_file", inputs.user_file[1]) if inputs.user_file else None
        self._entries, self._reasons = consider(inputs)
        #: Memories that say the same as another one, and that one.
        self._repeats: dict[tuple[str, int], tuple[str, int]] = {}
        self._kept: dict[tuple[str, int], Entry] = {}
        #: Which memory says what, by the folded words.
        self._holders: dict[str, tuple[str, int]] = {}
        self._findings: dict[tuple[str, int], tuple[Mask, ...] | None] = {}
        self._whole = MOST_TOKENS if named is None else named
        #: Most tokens that sections take together.
        self._limits = {
            frozenset({"recalled"}): policy.retrieved_budget,
            frozenset({"working"}): policy.working_budget,
            _TAIL: policy.context_budget if named is None else named,
            _STABLE: policy.pinned_budget,
            frozenset(SECTIONS): self._whole,
        }
        self._most_recalled = policy.max_items if named is None else None
        self._spent = dict.fromkeys(SECTIONS, 0)
        #: Tokens of people's memories that are not in the context yet, by section.
        self._wanted = dict.fromkeys(SECTIONS, 0)

    def result(self) -> Compiled:
        self._take_core([entry for entry in self._entries if entry.section == "core"])
        pinned = newest_rules([entry.record for entry in self._entries if entry.section == "pinned"], RULE_CAP)
        stable = [entry for entry in self._entries if entry.section in _STABLE]
        for entry in stable:
            capped = entry.section == "pinned" and entry.record.kind is Kind.RULE and entry.record.id not in pinned
            if capped and self._mode == "context":
                self._reasons[entry.key] = reason("cap", f"a context pins the {RULE_CAP} newest rules")
        if any(entry.is_note for entry in self._entries):
            self._want([entry for entry in self._entries if entry.by_person and entry.key not in self._reasons])
        self._take([entry for entry in stable if entry.key not in self._reasons])
        self._take([entry for entry in self._entries if entry.section == "working"])
        ids = {entry.record.id for entry in self._entries}
        recalled = []
        for entry in self._entries:
            if entry.section != "recalled":
                continue
            if entry.record.kind is Kind.SUMMARY and not ids.isdisjoint(entry.record.derived_from):
                self._reasons[entry.key] = SUMMED_UP
            else:
                recalled.append(entry)
        band, best = -1, 0.0
        for entry in recalled:
            # A band begins with the best that is left and holds those that score at least ``ALIKE`` of it.
            if band < 0 or entry.strength < ALIKE * best:
                band, best = band + 1, entry.strength
            entry.band = band
        self._take(recalled)
        return self._compiled(*self._fitted())

    # --- who comes in

    def _screen(self, entries: Iterable[Entry]) -> None:
        """Screen together what was not screened yet, and write the lines."""
        fresh = {entry.key: entry.record for entry in entries if entry.key not in self._findings}
        for (key, record), found in zip(fresh.items(), self._inputs.screen([*fresh.values()]), strict=True):
            if found.drop is not None:
                self._reasons[key] = found.drop
            self._findings[key] = None if found.drop else tidy(found.text_masks, len(record.text))
        for entry in entries:
            masks = self._findings[entry.key]
            if masks is not None:
                entry.masks = masks
                entry.line = line_of(entry.section, entry.record, masks)

    def _keep(self, entry: Entry, words: str) -> None:
        self._kept[entry.key] = entry
        self._holders[words] = entry.key
        self._reasons.pop(entry.key, None)
        self._repeats.pop(entry.key, None)

    def _take_core(self, entries: list[Entry]) -> None:
        self._screen(entries)
        lines = [line for line in (self._identity, self._user_file) if line]
        for entry in entries:
            if entry.line is not None:
                self._keep(entry, folded(entry.record, entry.line.body or ""))
                lines.append(entry.line)
        for line in lines:
            tokens, limit = self._inputs.count(line.body or ""), self._inputs.policy.block_budget.get(line.block or "")
            if limit is not None and tokens > limit:
                raise ContextTooSmall(
                    f"the {line.block} block is {tokens - limit} tokens over its budget of {limit}; "
                    "shorten it or raise block_budget"
                )
        needed, budget = self._inputs.count(self._rendered().text), self._whole
        if needed > budget:
            raise ContextTooSmall(
                f"core memory needs {needed} tokens, {needed - budget} more than the budget of {budget}; "
                "raise the budget or shorten a block"
            )
        self._spent["core"] = needed

    def _want(self, entries: list[Entry]) -> None:
        """Count the tokens that people's memories outside core would use."""
        entries = [entry for entry in entries if entry.section != "core"]
        self._screen(entries)
        for entry in entries:
            if entry.line is not None:
                entry.cost = self._inputs.count(f"\n\n{entry.line.own}")
                self._wanted[entry.section] += entry.cost

    def _room(self, entry: Entry) -> int:
        """Return the tokens left for a memory, by the prices of the lines that are in."""
        return min(
            limit
            - sum(self._spent[name] for name in names)
            - (min(sum(self._wanted[name] for name in names), limit // 2) if entry.is_note else 0)
            for names, limit in self._limits.items()
            if entry.section in names
        )

    def _take(self, entries: list[Entry]) -> None:
        """Take in what fits, best first, each line at its own price; a long one does not block a short one."""
        count = self._inputs.count
        self._screen(entries)
        summaries = taken = 0
        for entry in sorted(entries, key=lambda entry: entry.eviction, reverse=True):
            if entry.line is None or entry.key in self._kept:
                continue
            if entry.by_person:
                self._wanted[entry.section] -= entry.cost
            words = folded(entry.record, entry.line.body or "")
            if (holder := self._holders.get(words)) is not None:
                self._repeats[entry.key] = holder
                continue
            summary = entry.record.kind is Kind.SUMMARY and entry.record.tier is Tier.EPISODIC
            if why := self._over_cap(entry, taken, summaries if summary else 0):
                self._reasons[entry.key] = why
                continue
            entry.cost = count(f"\n\n{entry.line.own}")
            if entry.cost > self._room(entry):
                self._reasons[entry.key] = NO_ROOM
                continue
            self._spent[entry.section] += entry.cost
            taken, summaries = taken + 1, summaries + summary
            self._keep(entry, words)

    def _over_cap(self, entry: Entry, taken: int, summaries: int) -> Reason | None:
        """Return why no further recalled memory comes in, whatever the room; None where one may."""
        if entry.section != "recalled":
            return None
        if self._most_recalled is not None and taken >= self._most_recalled:
            return reason("cap", f"a context recalls at most {self._most_recalled} memories")
        if summaries >= SUMMARY_CAP:
            return reason("cap", f"a context recalls at most {SUMMARY_CAP} summaries")
        return None

    # --- how it comes out

    def _section(self, name: str) -> list[Entry]:
        """Return the entries of a section in the order of the text."""
        entries = [entry for entry in self._kept.values() if entry.section == name]
        if name != "recalled":
            return sorted(entries, key=lambda entry: ORDER[name](entry.record))
        by_id = {entry.record.id: entry for entry in entries}
        least = NEAR * max((it.strength for it in entries), default=0.0)
        order = recalled_order({key: (it.record, it.strength >= least, it.rank) for key, it in by_id.items()})
        return [by_id[key] for key in order]

    def _rendered(self) -> Rendered:
        lines: list[Line] = [entry.line for name in SECTIONS[1:] for entry in self._section(name) if entry.line]
        return render(with_documents(lines, self._identity, self._user_file))

    def _fitted(self) -> tuple[Rendered, Tally]:
        """Count the text as a whole, and while a limit is broken drop the last of what it is about."""
        while True:
            rendered = self._rendered()
            tokens = tally(rendered, self._inputs.count)
            over, movable = self._excess(tokens)
            if not movable:
                return rendered, tokens
            tail = False
            for place, entry in enumerate(sorted(movable, key=lambda entry: entry.eviction)):
                # The last one that prices call for may stay: with a line its heading goes as well. Pinned memories and
                # state go only where the text without the tail was counted and is too long.
                if place and (over <= entry.cost or (tail and entry.section in _STABLE)):
                    break
                tail = tail or entry.section in _TAIL
                del self._kept[entry.key]
                self._reasons[entry.key] = NO_ROOM
                over -= entry.cost

    def _excess(self, tokens: Tally) -> tuple[int, list[Entry]]:
        """Return by how many tokens a limit is broken, and which memories may go for it."""
        for names, limit in self._limits.items():
            over = tokens.of(names) - limit
            movable = [it for it in self._kept.values() if it.section in names and it.section != "core"]
            if over > 0 and movable:
                notes = [it for it in movable if it.is_note]
                crowding = sum(it.cost for it in notes) > limit // 2 and any(it.by_person for it in movable)
                return over, notes if crowding else movable
        return 0, []

    def _left_out(self) -> tuple[Excluded, ...]:
        final = dict(self._reasons)
        for key, holder in self._repeats.items():
            known = holder in self._kept
            final[key] = reason("repeat", f"{holder[0]} says the same and is in the context") if known else NO_ROOM
        out = sorted(final.keys() - self._kept.keys())
        return tuple(Excluded(id=key[0], version=key[1], reason=final[key]) for key in out)

    def _compiled(self, rendered: Rendered, tokens: Tally) -> Compiled:
        """Return the finished context with its facts."""
        digests = rendered.section_digests()
        sections = tuple(
            Section(
                name=name,
                tokens=tokens.by_section[name],
                digest=digests[name],
                items=() if name == "identity" else tuple(map(self._item, self._section(name))),
            )
            for name in SECTIONS
            if name in digests
        )
        excluded = self._left_out()
        facts = facts_of(self._inputs, self._mode, rendered, tokens, sections, excluded)
        return Compiled(
            text=rendered.formatted(self._inputs.format),
            context_id=facts["context_id"],
            sections=sections,
            excluded=excluded,
            tokens=tokens.whole,
            tokens_by_tier=facts["tokens_by_tier"],
            prefix_digest=rendered.prefix_digest,
            tail_digest=rendered.tail_digest,
            facts=facts,
        )

    def _item(self, entry: Entry) -> Item:
        record, line = entry.record, entry.line
        return Item(
            id=record.id,
            version=record.version,
            tier=record.tier._value_,
            kind=record.kind._value_,
            tokens=entry.cost or self._inputs.count(f"\n\n{line.own}" if line else ""),
            masks=entry.masks,
            score=entry.score,
            parts=dict(sorted(entry.parts.items())),
            weak=entry.weak,
            block=line.block if line else None,
        )
