"""The compiler: from memories and a budget to one context, with a reason for all that stayed out.

Invariants
(1) A pure function of ``Inputs``; the order of the given sequences does not matter, but for ``recalled``.
(2) The text never counts more than the budget; core is always in, or there is an error.
(3) Every given memory is in exactly one section or excluded for exactly one reason. The same words with the same key,
    speaker and day come in once.
(4) Nothing is rendered that does not hold at ``now``, or that was not screened; a memory is screened at most once.
(5) When room is short, what was recalled goes first, then working, then what is pinned and state. Of what was recalled
    the less relevant goes first; of about equally relevant memories archival goes before episodic, and within a tier
    the lowest confidence first, faded by whole days; ties by lower score, then rank, then older.
(6) Tokens by section and by tier are whole numbers of at least 0 that sum to the tokens of the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from keepward.context.entries import ORDER, Entry, consider, reason
from keepward.context.facts import facts_of
from keepward.context.lines import Line, Opened, added, alone_in, document, line_of, tidy
from keepward.context.render import Rendered, Tally, render, tally, with_documents
from keepward.context.sections import (
    SECTIONS,
    Compiled,
    Inputs,
    depth,
    recalled_order,
    renewed_at,
)
from keepward.errors import ContextTooSmall
from keepward.model.compiled import Excluded, Item, Mask, Section
from keepward.model.memory import Kind, Tier

#: Why most of what stays out does.
NO_ROOM = reason("budget", "there was no room for it")
#: Most memories of a kind: pinned rules, and recalled summaries.
RULE_CAP = 10
SUMMARY_CAP = 5
#: Share of a band's best score from which memories count as about equally relevant.
ALIKE = 0.9
#: Share of the best score from which a recalled fact stands among the first.
NEAR = 0.5
#: Of one character. A counter that takes one for more tokens than bytes costs a screening in vain, no more.
_MOST_BYTES = 4
#: Sections that share a budget.
_SHARING = (frozenset({"pinned", "state"}), frozenset({"working"}), frozenset({"recalled"}))


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


@lru_cache(maxsize=64)
def _ordered(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names in their order: the same few parts make up the scores of all that was recalled."""
    return tuple(sorted(names))


def _last_to_go(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: entry.eviction, reverse=True)


def _is_summary(entry: Entry) -> bool:
    return entry.record.kind is Kind.SUMMARY and entry.record.tier is Tier.EPISODIC


def _cap_order(entry: Entry) -> tuple[int, float, int, str]:
    """Sort key of what a cap keeps: own scope first, then surest, then newest."""
    return -depth(entry.record.scope), -entry.confidence, -renewed_at(entry.record), entry.record.id


class _Assembly:
    """One context being put together, most needed first: who is in, who is out and why, what has been spent."""

    def __init__(self, inputs: Inputs, mode: str) -> None:
        self._inputs = inputs
        self._mode = mode
        self._identity = document("identity", inputs.identity[1]) if inputs.identity else None
        self._user_file = document("user_file", inputs.user_file[1]) if inputs.user_file else None
        self._considered = consider(inputs, each=mode == "memory_block")
        self._reasons = self._considered.reasons
        #: Memories that say what another one says.
        self._repeats: dict[tuple[str, int], tuple[str, int]] = {}
        self._kept: dict[tuple[str, int], Entry] = {}
        #: What was recalled and is in, in the order of the text; None where that has changed.
        self._in_order: list[Entry] | None = None
        #: Those of them that were recalled.
        self._recalled: dict[tuple[str, int], Entry] = {}
        #: Headings that are paid for, and estimated tokens of what is in.
        self._opened: Opened = {}
        self._spent = 0
        #: Sections, blocks, origins and days in which a further line opens nothing.
        self._full: set[tuple[object, ...]] = set()
        #: Who says what, by the folded words.
        self._holders: dict[str, tuple[str, int]] = {}
        self._findings: dict[tuple[str, int], tuple[Mask, ...] | None] = {}
        self._counted: dict[str, int] = {}
        budgets = (inputs.policy.pinned_budget, inputs.policy.working_budget, inputs.policy.retrieved_budget)
        self._limits = dict(zip(_SHARING, budgets, strict=True))

    def result(self) -> Compiled:
        entries = self._considered.entries
        self._take_core([entry for entry in entries if entry.section == "core"])
        self._take_stable([entry for entry in entries if entry.section in {"pinned", "state"}])
        self._take([entry for entry in entries if entry.section == "working"])
        recalled = [entry for entry in entries if entry.section == "recalled"]
        self._take_recalled(recalled)
        rendered, tokens = self._settled(recalled)
        return self._compiled(rendered, tokens)

    # --- who comes in

    def _count(self, text: str) -> int:
        """Return the tokens of a short text, each text counted once."""
        known = self._counted.get(text)
        if known is None:
            known = self._counted[text] = self._inputs.count(text)
        return known

    def _price(self, line: Line, alone: int) -> int:
        """Return the estimated tokens that a line adds, noting the headings it opens: ``alone`` where it opens none."""
        place = line.section, line.block, line.mark, line.under
        if place in self._full:
            return alone
        before = len(self._opened)
        parts, gone = added(line, self._inputs.format, self._opened)
        if before == len(self._opened):
            self._full.add(place)
        return sum(map(self._count, parts)) - self._count(gone)

    @property
    def _room(self) -> int:
        """Estimated tokens left of the whole budget."""
        return self._inputs.budget_tokens - self._spent

    def _allotment(self, section: str) -> int:
        """Return the token budget a section shares in."""
        return next(tokens for names, tokens in self._limits.items() if section in names)

    def _look(self, entries: Iterable[Entry]) -> None:
        """Screen together what was not screened yet."""
        fresh = {entry.key: entry.record for entry in entries if entry.key not in self._findings}
        for (key, record), found in zip(fresh.items(), self._inputs.screen([*fresh.values()]), strict=True):
            if found.drop is not None:
                self._reasons[key] = found.drop
            self._findings[key] = None if found.drop else tidy(found.text_masks, len(record.text))

    def _screened(self, entry: Entry) -> Line | None:
        """Return the line of an entry with its masks, or None when it must not be rendered."""
        if entry.key not in self._findings:
            self._look([entry])
        known = self._findings[entry.key]
        if known is None:
            return None
        if entry.line is None:
            entry.masks = known
            entry.line = line_of(entry.section, entry.record, known)
            entry.alone = self._count(alone_in(entry.line, self._inputs.format))
        return entry.line

    def _says_known(self, entry: Entry, body: str) -> bool:
        """Whether something that is in says the same; if so, note it."""
        holder = self._holders.get(entry.folded(body))
        if holder is None or holder == entry.key or holder not in self._kept:
            return False
        self._repeats[entry.key] = holder
        return True

    def _longer(self, entry: Entry, room: int) -> bool:
        """Whether it takes more than the room by itself: counting costs far less than writing or screening."""
        if entry.line is not None:
            return entry.alone > room
        text = entry.record.text
        return _MOST_BYTES * len(text) > room and self._count(text) > room

    def _admit(self, entry: Entry, room: int) -> bool:
        """Take an entry in if it fits, may be rendered and says something new; note why not."""
        if not self._longer(entry, room):
            line = self._screened(entry)
            if line is None or self._says_known(entry, line.body or ""):
                return False
            # What stands under headings costs no less than it does by itself.
            before = len(self._opened)
            if entry.alone <= room and (cost := self._price(line, entry.alone)) <= room:
                self._spent += cost
                entry.cost = cost
                self._keep(entry, line)
                return True
            while len(self._opened) > before:
                self._opened.popitem()
        self._reasons[entry.key] = NO_ROOM
        return False

    def _keep(self, entry: Entry, line: Line) -> None:
        """Take an entry in whatever it costs."""
        self._kept[entry.key] = entry
        self._in_order = None
        if entry.section == "recalled":
            self._recalled[entry.key] = entry
        self._holders[entry.folded(line.body or "")] = entry.key
        self._reasons.pop(entry.key, None)
        self._repeats.pop(entry.key, None)

    def _drop(self, entry: Entry) -> None:
        """Put an entry out for lack of room."""
        self._in_order = None
        self._kept.pop(entry.key, None)
        self._recalled.pop(entry.key, None)
        self._reasons[entry.key] = NO_ROOM

    def _take_core(self, entries: list[Entry]) -> None:
        budget = self._inputs.budget_tokens
        lines = [line for line in (self._identity, self._user_file) if line]
        for entry in entries:
            line = self._screened(entry)
            if line is not None:
                self._keep(entry, line)
                lines.append(line)
        for line in lines:
            tokens, limit = self._count(line.body or ""), self._inputs.policy.block_budget.get(line.block or "")
            if limit is not None and tokens > limit:
                raise ContextTooSmall(
                    f"the {line.block} block is {tokens - limit} tokens over its budget of {limit}; "
                    "shorten it or raise block_budget"
                )
        needed = self._count(self._rendered().text)
        if needed > budget:
            raise ContextTooSmall(
                f"core memory needs {needed} tokens, {needed - budget} more than the budget of {budget}; "
                "raise the budget or shorten a block"
            )
        self._spent = needed

    def _take_stable(self, entries: list[Entry]) -> None:
        capped = [
            entry
            for entry in sorted(entries, key=_cap_order)
            if self._mode == "context" and entry.section == "pinned" and entry.record.kind is Kind.RULE
        ][RULE_CAP:]
        for entry in capped:
            self._reasons[entry.key] = reason("cap", f"a context pins at most {RULE_CAP} memories of this kind")
        self._take([entry for entry in entries if entry not in capped])

    def _take(self, entries: list[Entry]) -> None:
        """Take in what fits, best kept first; a long one does not block a short one behind it."""
        room = min((self._allotment(entry.section) for entry in entries), default=0)
        for entry in _last_to_go(entries):
            if entry.key not in self._kept and self._admit(entry, min(room, self._room)):
                room -= entry.cost

    def _take_recalled(self, entries: list[Entry]) -> None:
        """Choose by relevance within the section's own limits and the room that is left (5).

        Ranked entries fall into bands: each begins with the best that is left and holds those that score at least
        ``ALIKE`` of it.
        """
        band, best = -1, 0.0
        for entry in entries:
            if band < 0 or entry.strength < ALIKE * best:
                band, best = band + 1, entry.strength
            entry.band = band
        self._look(entries)
        shown = [entry for entry in entries if self._findings[entry.key] is not None]
        room = min(self._allotment("recalled"), self._room)
        for entry in _last_to_go(shown):
            room -= self._offer(entry, room)

    def _offer(self, entry: Entry, room: int) -> int:
        """Take in a recalled entry unless a limit keeps it out, and return what it costs."""
        if entry.key in self._kept or not self._within_caps(entry) or not self._admit(entry, room):
            return 0
        return entry.cost

    def _within_caps(self, entry: Entry) -> bool:
        """Whether no limit but the room keeps a recalled entry out; note which one does."""
        most, recalled = self._inputs.policy.max_items, self._recalled
        if len(recalled) >= most:
            self._reasons[entry.key] = reason("cap", f"a context recalls at most {most} memories")
            return False
        if not _is_summary(entry) or sum(map(_is_summary, recalled.values())) < SUMMARY_CAP:
            return True
        self._reasons[entry.key] = reason("cap", f"a context recalls at most {SUMMARY_CAP} summaries")
        return False

    # --- how it comes out

    def _section(self, name: str) -> list[Entry]:
        """Return the entries of a section in the order of the text."""
        if name != "recalled":
            entries = [entry for entry in self._kept.values() if entry.section == name]
            return sorted(entries, key=lambda entry: ORDER[name](entry.record))
        if self._in_order is not None:
            return self._in_order
        by_id = {entry.record.id: entry for entry in self._recalled.values()}
        least = NEAR * max((it.strength for it in by_id.values()), default=0.0)
        order = recalled_order({key: (it.record, it.strength >= least, it.rank) for key, it in by_id.items()})
        self._in_order = [by_id[key] for key in order]
        return self._in_order

    def _rendered(self) -> Rendered:
        lines = [entry.line for name in SECTIONS[1:] for entry in self._section(name) if entry.line]
        return render(with_documents(lines, self._identity, self._user_file), self._inputs.format)

    def _excess(self, tokens: Tally) -> tuple[int, list[Entry]]:
        """Return by how many tokens a limit is broken, and who may go for it."""
        over, names = tokens.whole - self._inputs.budget_tokens, frozenset(SECTIONS) - {"core"}
        if over <= 0:
            excess = ((tokens.of(names) - limit, names) for names, limit in self._limits.items())
            over, names = next(((more, names) for more, names in excess if more > 0), (0, frozenset()))
        return over, [entry for entry in self._kept.values() if entry.section in names] if over else []

    def _settled(self, recalled: list[Entry]) -> tuple[Rendered, Tally]:
        """Evict while the true count is over a limit, then use the room that estimates left unused (2)."""
        count = self._inputs.count
        rendered = self._rendered()
        tokens = tally(rendered, count)
        while True:
            over, movable = self._excess(tokens)
            if not movable:
                break
            for entry in sorted(movable, key=lambda entry: entry.eviction):
                if over <= 0:
                    break
                self._drop(entry)
                over -= entry.cost
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
                self._drop(extra.pop())
            if not extra:
                break
        return rendered, tokens

    def _take_extra(self, tokens: Tally, recalled: list[Entry]) -> list[Entry]:
        """Take in by rank what was left for lack of room and may fit by the true count."""
        slack = min(self._inputs.budget_tokens - tokens.whole, self._allotment("recalled") - tokens.of({"recalled"}))
        extra: list[Entry] = []
        for entry in recalled:
            if slack <= 0:
                break
            why = self._reasons.get(entry.key)
            waits = entry.key in self._repeats or (why is not None and why.code in {"budget", "cap"})
            if waits and (cost := self._offer(entry, slack)):
                slack -= cost
                extra.append(entry)
        return extra

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
        facts = facts_of(self._inputs, self._mode, rendered, tokens, sections, excluded, below=self._considered.below)
        return Compiled(
            text=rendered.text,
            context_id=facts["context_id"],
            sections=sections,
            excluded=excluded,
            tokens=tokens.whole,
            tokens_by_tier=facts["tokens_by_tier"],
            prefix_digest=rendered.prefix_digest,
            tail_digest=rendered.tail_digest,
            facts=facts,
            best=self._considered.best,
            below=self._considered.below,
        )

    def _item(self, entry: Entry) -> Item:
        record, line = entry.record, entry.line
        return Item(
            id=record.id,
            version=record.version,
            tier=record.tier._value_,
            kind=record.kind._value_,
            tokens=entry.alone,
            masks=entry.masks,
            score=entry.score,
            parts={name: entry.parts[name] for name in _ordered(tuple(entry.parts))},
            weak=entry.score is not None and entry.score < self._inputs.policy.relevance_weak,
            block=line.block if line else None,
        )
