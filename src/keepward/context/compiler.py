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
(7) Facts are plain JSON values, hold no memory text, and are enough to make the bytes again. The context's id is the
    hash of all that determines the text, and of the text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from keepward.context.entries import (
    Entry,
    MemoryVersion,
    compile_reason,
    dedup_key,
    eviction_key,
    filter_candidates,
    sort_entries,
)
from keepward.context.lines import document_line, line_of, merge_spans
from keepward.context.render import RenderedText, TokenCounts, count_section_tokens, digest, insert_documents, render
from keepward.context.sections import SECTIONS, CompileInput, CompileResult, newest_rules
from keepward.core.commit import Reason
from keepward.core.compiled import ContextItem, Exclusion, Section
from keepward.core.memory import Kind, Tier
from keepward.core.serialization import canonical
from keepward.core.value import to_micros
from keepward.errors import ContextTooSmall

#: Why most of what stays out does.
OUT_OF_BUDGET = compile_reason("budget", "there was no room for it")
#: Why a summary stays out where its sources may come in.
SOURCES_RECALLED = compile_reason("repeat", "memories that it sums up were recalled")
#: The largest budget, in tokens.
MAX_CONTEXT_TOKENS = 128_000
#: Most memories of a kind: pinned rules, and recalled summaries.
MAX_PINNED_RULES = 10
MAX_RECALLED_SUMMARIES = 5
#: Share of a band's best score from which memories count as about equally relevant.
SCORE_BAND_RATIO = 0.9
_STABLE_SECTIONS = frozenset({"pinned", "state"})
_TAIL_SECTIONS = frozenset({"working", "recalled"})


def compile_context(inputs: CompileInput) -> CompileResult:
    """Assemble the context of an objective.

    Raises:
        ContextTooSmall: a core block is over its own budget, or identity and core over the whole one.
    """
    return _ContextBuilder(inputs, "context").result()


def snapshot(inputs: CompileInput) -> CompileResult:
    """Assemble what is injected every time whatever the objective: core memories, pinned ones and keyed state.

    Neither identity document nor user file take part, and no cap on kinds holds.

    Raises:
        ContextTooSmall: as for ``compile_context``.
    """
    fixed = replace(inputs, identity=None, user_file=None, working=(), recalled=())
    return _ContextBuilder(fixed, "snapshot").result()


def memory_block(inputs: CompileInput) -> CompileResult:
    """Assemble recalled memories alone; the empty text when there are none."""
    alone = replace(inputs, identity=None, user_file=None, core=(), pinned=(), state=(), working=())
    return _ContextBuilder(alone, "memory_block").result()


class _ContextBuilder:
    """One context being put together, most needed first: who is in, who is out and why, what has been spent."""

    def __init__(self, inputs: CompileInput, mode: str) -> None:
        policy, budget = inputs.policy, inputs.budget_tokens
        self._inputs = inputs
        self._mode = mode
        self._identity = document_line("identity", inputs.identity[1]) if inputs.identity else None
        self._user_file = document_line("user_file", inputs.user_file[1]) if inputs.user_file else None
        self._reasons: dict[MemoryVersion, Reason] = {}
        #: Memories that say the same as another one, and that one.
        self._repeats: dict[MemoryVersion, MemoryVersion] = {}
        self._kept: dict[MemoryVersion, Entry] = {}
        #: Which memory says what, by the folded words.
        self._holders: dict[str, MemoryVersion] = {}
        self._whole = MAX_CONTEXT_TOKENS if budget is None else budget
        #: Most tokens that sections take together.
        self._limits = (
            (frozenset({"recalled"}), policy.retrieved_budget),
            (frozenset({"working"}), policy.working_budget),
            (_TAIL_SECTIONS, policy.context_budget if budget is None else budget),
            (_STABLE_SECTIONS, policy.pinned_budget),
            (frozenset(SECTIONS), self._whole),
        )
        self._most_recalled = policy.max_items if budget is None else None
        self._spent = dict.fromkeys(SECTIONS, 0)
        #: Tokens of people's memories that are not in the context yet, by section.
        self._wanted = dict.fromkeys(SECTIONS, 0)

    def result(self) -> CompileResult:
        entries = self._filter_output(self._apply_kind_caps())
        self._add_core([entry for entry in entries if entry.section == "core"])
        for entry in entries:
            if entry.by_person and entry.section != "core" and entry.key not in self._reasons:
                self._wanted[entry.section] += entry.cost
        for sections in (_STABLE_SECTIONS, {"working"}, {"recalled"}):
            self._take([entry for entry in entries if entry.section in sections])
        return self._compiled(*self._fit_to_budget())

    # --- who comes in

    def _apply_kind_caps(self) -> list[Entry]:
        """Return the entries that no cap on kinds bars, recalled ones in bands."""
        entries, self._reasons = filter_candidates(self._inputs)
        rules = newest_rules([entry.record for entry in entries if entry.section == "pinned"], MAX_PINNED_RULES)
        ids = {entry.record.id for entry in entries}
        admitted: list[Entry] = []
        band, best = -1, 0.0
        for entry in entries:
            record = entry.record
            if entry.section == "pinned" and record.kind is Kind.RULE and record.id not in rules:
                if self._mode == "context":
                    self._reasons[entry.key] = compile_reason(
                        "cap", f"a context pins the {MAX_PINNED_RULES} newest rules"
                    )
                    continue
            elif entry.section == "recalled":
                entry.summed_up = record.kind is Kind.SUMMARY and not ids.isdisjoint(record.derived_from)
                # A band: the best entry that is left, and those that score at least ``SCORE_BAND_RATIO`` of it.
                if not entry.summed_up and (band < 0 or entry.strength < SCORE_BAND_RATIO * best):
                    band, best = band + 1, entry.strength
                entry.band = band
            admitted.append(entry)
        return admitted

    def _filter_output(self, entries: list[Entry]) -> list[Entry]:
        """Return the entries that may be shown, with their lines and prices."""
        records = {entry.key: entry.record for entry in entries}
        findings = dict(zip(records, self._inputs.screen([*records.values()]), strict=True))
        shown: list[Entry] = []
        for entry in entries:
            found = findings[entry.key]
            if found.drop is not None:
                self._reasons[entry.key] = SOURCES_RECALLED if entry.summed_up else found.drop
                continue
            entry.masks = merge_spans(found.text_masks, len(entry.record.text)) if found.text_masks else ()
            entry.line = line_of(entry.section, entry.record, entry.masks)
            entry.cost = self._inputs.count(f"\n\n{entry.line.own}")
            shown.append(entry)
        return shown

    def _include(self, entry: Entry, words: str) -> None:
        self._kept[entry.key] = entry
        self._holders[words] = entry.key
        self._reasons.pop(entry.key, None)
        self._repeats.pop(entry.key, None)

    def _add_core(self, entries: list[Entry]) -> None:
        lines = [line for line in (self._identity, self._user_file) if line]
        for entry in entries:
            if entry.line is not None:
                self._include(entry, dedup_key(entry, entry.line.body or ""))
                lines.append(entry.line)
        for line in lines:
            tokens, limit = self._inputs.count(line.body or ""), self._inputs.policy.block_budget.get(line.block or "")
            if limit is not None and tokens > limit:
                raise ContextTooSmall(
                    f"the {line.block} block is {tokens - limit} tokens over its budget of {limit}; "
                    "shorten it or raise block_budget"
                )
        needed, budget = self._inputs.count(self._render()[0].text), self._whole
        if needed > budget:
            raise ContextTooSmall(
                f"core memory needs {needed} tokens, {needed - budget} more than the budget of {budget}; "
                "raise the budget or shorten a block"
            )
        self._spent["core"] = needed

    def _take(self, entries: list[Entry]) -> None:
        """Take in what fits, best first, each line at its own price; a long one does not block a short one."""
        summaries = taken = 0
        for entry in sorted(entries, key=eviction_key, reverse=True):
            if entry.line is None or entry.key in self._kept:
                continue
            if entry.by_person:
                self._wanted[entry.section] -= entry.cost
            if entry.summed_up:
                self._reasons[entry.key] = SOURCES_RECALLED
                continue
            words = dedup_key(entry, entry.line.body or "")
            if (holder := self._holders.get(words)) is not None:
                self._repeats[entry.key] = holder
                continue
            recalled, why = entry.section == "recalled", None
            summary = recalled and entry.record.kind is Kind.SUMMARY and entry.record.tier is Tier.EPISODIC
            if recalled and self._most_recalled is not None and taken >= self._most_recalled:
                why = compile_reason("cap", f"a context recalls at most {self._most_recalled} memories")
            elif summary and summaries >= MAX_RECALLED_SUMMARIES:
                why = compile_reason("cap", f"a context recalls at most {MAX_RECALLED_SUMMARIES} summaries")
            elif not self._fits(entry):
                why = OUT_OF_BUDGET
            if why is not None:
                self._reasons[entry.key] = why
                continue
            taken, summaries = taken + 1, summaries + summary
            self._spent[entry.section] += entry.cost
            self._include(entry, words)

    def _fits(self, entry: Entry) -> bool:
        """Whether every limit has room for a memory, by the prices of the lines that are in."""
        for sections, limit in self._limits:
            if entry.section in sections:
                room, wanted = limit, 0
                for name in sections:
                    room -= self._spent[name]
                    wanted += self._wanted[name]
                if entry.cost > room - (min(wanted, limit // 2) if entry.is_note else 0):
                    return False
        return True

    # --- how it comes out

    def _render(self) -> tuple[RenderedText, dict[str, list[Entry]]]:
        """Return the text of what is in, and the entries of each section in its order."""
        by_section: dict[str, list[Entry]] = {name: [] for name in SECTIONS[1:]}
        for entry in self._kept.values():
            by_section[entry.section].append(entry)
        ordered = {name: sort_entries(name, entries) for name, entries in by_section.items()}
        lines = [entry.line for entries in ordered.values() for entry in entries if entry.line]
        return render(insert_documents(lines, self._identity, self._user_file)), ordered

    def _fit_to_budget(self) -> tuple[RenderedText, dict[str, list[Entry]], TokenCounts]:
        """Count the text as a whole, and while a limit is broken drop the last of what it is about."""
        while True:
            rendered, ordered = self._render()
            tokens = count_section_tokens(rendered, self._inputs.count)
            over, movable = self._tokens_over_budget(tokens)
            if not movable:
                return rendered, ordered, tokens
            tail = False
            for place, entry in enumerate(sorted(movable, key=eviction_key)):
                # The last one that prices call for may stay: with a line its heading goes as well. Pinned memories and
                # state go only where the text without the tail was counted and is too long.
                if place and (over <= entry.cost or (tail and entry.section in _STABLE_SECTIONS)):
                    break
                tail = tail or entry.section in _TAIL_SECTIONS
                del self._kept[entry.key]
                self._reasons[entry.key] = OUT_OF_BUDGET
                over -= entry.cost

    def _tokens_over_budget(self, tokens: TokenCounts) -> tuple[int, list[Entry]]:
        """Return by how many tokens a limit is broken, and which memories may go for it."""
        for sections, limit in self._limits:
            over = sum([tokens.by_section.get(name, 0) for name in sections]) - limit
            if over <= 0:
                continue
            movable = [it for it in self._kept.values() if it.section in sections and it.section != "core"]
            if movable:
                notes = [it for it in movable if it.is_note]
                crowding = sum([it.cost for it in notes]) > limit // 2 and any(it.by_person for it in movable)
                return over, notes if crowding else movable
        return 0, []

    def _compiled(self, rendered: RenderedText, ordered: dict[str, list[Entry]], tokens: TokenCounts) -> CompileResult:
        """Return the finished context with its facts."""
        digests = rendered.section_digests()
        sections = tuple(
            Section(
                name=name,
                tokens=tokens.by_section[name],
                digest=digests[name],
                items=tuple([_item(entry) for entry in ordered.get(name, ())]),
            )
            for name in SECTIONS
            if name in digests
        )
        final = dict(self._reasons)
        for key, holder in self._repeats.items():
            known = holder in self._kept
            final[key] = (
                compile_reason("repeat", f"{holder[0]} says the same and is in the context") if known else OUT_OF_BUDGET
            )
        out = sorted(final.keys() - self._kept.keys())
        excluded = tuple([Exclusion(id=key[0], version=key[1], reason=final[key]) for key in out])
        facts = self._facts(rendered, tokens, sections, excluded)
        return CompileResult(
            text=rendered.formatted(self._inputs.format),
            context_id=facts["context_id"],
            sections=sections,
            excluded=excluded,
            tokens=tokens.whole,
            tokens_by_tier=facts["tokens_by_tier"],
            prefix_digest=facts["digests"]["prefix"],
            tail_digest=facts["digests"]["tail"],
            facts=facts,
        )

    def _facts(
        self,
        rendered: RenderedText,
        tokens: TokenCounts,
        sections: tuple[Section, ...],
        excluded: tuple[Exclusion, ...],
    ) -> dict[str, Any]:
        """Return what the receipt says of the context (7)."""
        inputs = self._inputs
        documents = {"identity": inputs.identity, "user_file": inputs.user_file}
        named = {
            "compiled": self._mode,
            "format": inputs.format,
            "inputs": {
                "objective": inputs.objective,
                "purpose": inputs.purpose,
                "now": to_micros(inputs.now),
                "head": inputs.head,
                "scope": inputs.scope,
                "policy": inputs.policy.version,
                "budget_tokens": inputs.budget_tokens,
                "counter": inputs.counter_name,
                "versions": dict(sorted(inputs.versions.items())),
                "include_sensitive": inputs.include_sensitive,
                "include_weak": inputs.include_weak,
            },
            "documents": {kind: given[0] for kind, given in documents.items() if given is not None},
            "digests": {
                "text": digest(rendered.formatted(inputs.format)),
                "prefix": rendered.prefix_digest,
                "tail": rendered.tail_digest,
            },
        }
        return {
            "context_id": digest(canonical(named).decode()),
            **named,
            "tokens": tokens.whole,
            "tokens_by_tier": dict(sorted(tokens.by_tier.items())),
            "sections": [
                {
                    "name": section.name,
                    "tokens": section.tokens,
                    "digest": section.digest,
                    "items": [_item_facts(item) for item in section.items],
                }
                for section in sections
            ],
            "excluded": [{"id": out.id, "version": out.version, **out.reason.as_dict()} for out in excluded],
            "unlisted": dict(sorted(inputs.unlisted.items())),
        }


def _item(entry: Entry) -> ContextItem:
    record = entry.record
    return ContextItem(
        id=record.id,
        version=record.version,
        tier=record.tier._value_,
        kind=record.kind._value_,
        tokens=entry.cost,
        masks=entry.masks,
        score=entry.score,
        parts=dict(sorted(entry.parts.items())),
        weak=entry.weak,
        block=entry.line.block if entry.line else None,
    )


def _item_facts(item: ContextItem) -> dict[str, Any]:
    facts: dict[str, Any] = {"id": item.id, "version": item.version, "tier": item.tier, "kind": item.kind}
    facts |= {"tokens": item.tokens, "masks": [list(mask) for mask in item.masks]}
    if item.block is not None:
        facts["block"] = item.block
    if item.score is not None:
        facts |= {"score": item.score, "weak": item.weak, "parts": dict(item.parts)}
    return facts
