"""The compiler: turn memories and a budget into one context, with a reason for each memory that stays out.

It is a pure function of ``CompileInput``; only the order of ``recalled`` matters.
Every memory is in exactly one section, or excluded for exactly one reason. A memory that is inactive at ``now`` or did
not pass the output filter is never rendered. Memories with the same text, key, speaker and subject come in once: the
most trusted one, then the last said. A summary stays out if one of its sources is a candidate.

The text never exceeds the budget. Core is always in, or there is an error. If room is short, memories leave in this
order: recalled, then working, then pinned and state.
* Recalled: what less trusted sources wrote leaves before what bears and was written by people, then agents. Then the
  less relevant leave first. If they are about equally relevant, archival memories leave before episodic
  ones. In one tier, memories leave by lower confidence, then lower score, lower rank and greater age.
* Other sections: memories that a person wrote or approved leave last. Notes of agents never use the part of a limit
  that people's memories need, up to half of the limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from keepward.context.entries import (
    MemoryVersion,
    compile_reason,
    eviction_key,
    filter_candidates,
    repeat_key,
    sort_entries,
    without_repeats,
)
from keepward.context.lines import document_line, line_of, merge_spans
from keepward.context.render import (
    RENDERER,
    RenderedText,
    TokenCounts,
    count_section_tokens,
    digest,
    insert_documents,
    is_sparing,
    render,
)
from keepward.context.sections import SECTIONS, CompileInput, CompileResult, Entry, newest_rules
from keepward.core.commit import Reason
from keepward.core.compiled import ContextItem, Exclusion, Section
from keepward.core.json_form import canonical
from keepward.core.memory import Kind, Tier
from keepward.core.value import to_micros
from keepward.errors import ContextTooSmall

#: The most frequent reason for which a memory stays out.
OUT_OF_BUDGET = compile_reason("budget", "there was no room for it")
#: The reason for a summary one of whose sources is a candidate.
SOURCES_RECALLED = compile_reason("repeat", "memories that it sums up were recalled")
#: The largest budget, in tokens.
MAX_CONTEXT_TOKENS = 128_000
#: Maximum number of recalled lines, if neither the policy nor a budget limits them.
MAX_RECALLED = 30
#: Maximum number of pinned rules, and of recalled summaries.
MAX_PINNED_RULES = 10
MAX_RECALLED_SUMMARIES = 5
#: Memories that score at least this share of the best one count as about equally relevant: they form a band.
SCORE_BAND_RATIO = 0.9
_STABLE_SECTIONS = frozenset({"pinned", "state"})
_TAIL_SECTIONS = frozenset({"working", "recalled"})


def compile_context(inputs: CompileInput) -> CompileResult:
    """Assemble the context for an objective.

    Raises:
        ContextTooSmall: a core block exceeds its own budget, or identity and core exceed the total budget.
    """
    return _ContextBuilder(inputs, "context").build()


def snapshot(inputs: CompileInput) -> CompileResult:
    """Assemble what is injected for every objective: core memories, pinned ones and keyed state.

    It contains neither identity document nor user file. A context begins with the same sections.

    Raises:
        ContextTooSmall: as in ``compile_context``.
    """
    fixed = replace(inputs, identity=None, user_file=None, working=(), recalled=())
    return _ContextBuilder(fixed, "snapshot").build()


def memory_block(inputs: CompileInput) -> CompileResult:
    """Assemble recalled memories alone; an empty text if there are none."""
    alone = replace(inputs, identity=None, user_file=None, core=(), pinned=(), state=(), working=())
    return _ContextBuilder(alone, "memory_block").build()


class _ContextBuilder:
    """One context under construction: what is in, what is out and why, and the tokens spent."""

    def __init__(self, inputs: CompileInput, mode: str) -> None:
        policy, budget = inputs.policy, inputs.budget_tokens
        self._inputs = inputs
        self._mode = mode
        self._identity = document_line("identity", inputs.identity[1]) if inputs.identity else None
        self._user_file = document_line("user_file", inputs.user_file[1]) if inputs.user_file else None
        self._reasons: dict[MemoryVersion, Reason] = {}
        #: Memories that repeat another one, and that one.
        self._repeats: dict[MemoryVersion, MemoryVersion] = {}
        self._included: dict[MemoryVersion, Entry] = {}
        #: Id and version by the normalised text of an included memory.
        self._by_text: dict[tuple[str, ...], MemoryVersion] = {}
        self._budget = MAX_CONTEXT_TOKENS if budget is None else budget
        #: Maximum number of tokens of each group of sections.
        self._limits = (
            (frozenset({"recalled"}), policy.retrieved_budget),
            (frozenset({"working"}), policy.working_budget),
            (_TAIL_SECTIONS, policy.context_budget if budget is None else budget),
            (_STABLE_SECTIONS, policy.pinned_budget),
            (frozenset(SECTIONS), self._budget),
        )
        self._spent = dict.fromkeys(SECTIONS, 0)
        #: Tokens of people's memories that are not included yet, by section.
        self._reserved = dict.fromkeys(SECTIONS, 0)

    def build(self) -> CompileResult:
        entries = self._filter_output(self._apply_kind_caps())
        self._repeats = without_repeats(entries)
        self._add_core([entry for entry in entries if entry.section == "core"])
        for entry in entries:
            if entry.by_person and entry.section != "core" and entry.key not in self._reasons:
                self._reserved[entry.section] += entry.cost
        for sections in (_STABLE_SECTIONS, {"working"}, {"recalled"}):
            self._fill([entry for entry in entries if entry.section in sections])
        return self._build_result(*self._fit_to_budget())

    # --- choose the memories

    def _apply_kind_caps(self) -> list[Entry]:
        """Return the entries within the cap on pinned rules; assign recalled ones to bands."""
        entries, self._reasons = filter_candidates(self._inputs)
        rules = newest_rules([entry.record for entry in entries if entry.section == "pinned"], MAX_PINNED_RULES)
        ids = {entry.record.id for entry in entries}
        admitted: list[Entry] = []
        band, best = -1, 0.0
        for entry in entries:
            record = entry.record
            if entry.section == "pinned" and record.kind is Kind.RULE and record.id not in rules:
                self._reasons[entry.key] = compile_reason("cap", f"a context pins the {MAX_PINNED_RULES} newest rules")
                continue
            if entry.section == "recalled":
                entry.has_candidate_sources = record.kind is Kind.SUMMARY and not ids.isdisjoint(record.derived_from)
                # A band is the best remaining entry and those that score at least ``SCORE_BAND_RATIO`` of it.
                if not entry.has_candidate_sources and (band < 0 or entry.strength < SCORE_BAND_RATIO * best):
                    band, best = band + 1, entry.strength
                entry.band = band
            admitted.append(entry)
        return admitted

    def _filter_output(self, entries: list[Entry]) -> list[Entry]:
        """Return the entries that may be shown, with their lines and token counts."""
        records = {entry.key: entry.record for entry in entries}
        findings = dict(zip(records, self._inputs.screen([*records.values()]), strict=True))
        shown: list[Entry] = []
        for entry in entries:
            finding = findings[entry.key]
            if finding.drop is not None:
                self._reasons[entry.key] = SOURCES_RECALLED if entry.has_candidate_sources else finding.drop
                continue
            entry.masks = merge_spans(finding.text_masks, len(entry.record.text)) if finding.text_masks else ()
            entry.line = line_of(entry.section, entry.record, entry.masks, self._inputs.now)
            entry.cost = self._inputs.count(f"\n\n{entry.line.paragraph}")
            shown.append(entry)
        return shown

    def _include(self, entry: Entry, text: tuple[str, ...]) -> None:
        self._included[entry.key] = entry
        self._by_text[text] = entry.key
        self._reasons.pop(entry.key, None)
        self._repeats.pop(entry.key, None)

    def _add_core(self, entries: list[Entry]) -> None:
        lines = [line for line in (self._identity, self._user_file) if line]
        for entry in entries:
            if entry.line is not None:
                self._include(entry, repeat_key(entry.record, entry.line.body))
                lines.append(entry.line)
        for line in lines:
            tokens, limit = self._inputs.count(line.body or ""), self._inputs.policy.block_budget.get(line.block or "")
            if limit is not None and tokens > limit:
                raise ContextTooSmall(
                    f"the {line.block} block is {tokens - limit} tokens over its budget of {limit}; "
                    "shorten it or raise block_budget"
                )
        needed, budget = self._inputs.count(self._render()[0].text), self._budget
        if needed > budget:
            raise ContextTooSmall(
                f"core memory needs {needed} tokens, {needed - budget} more than the budget of {budget}; "
                "raise the budget or shorten a block"
            )
        self._spent["core"] = needed

    def _fill(self, entries: list[Entry]) -> None:
        """Include what fits, best first, by the token count of each line; a long line does not block a short one."""
        max_recalled = self._inputs.policy.max_items
        if max_recalled is None and self._inputs.budget_tokens is None:
            max_recalled = MAX_RECALLED
        summaries = included = 0
        for entry in sorted(entries, key=eviction_key, reverse=True):
            if entry.line is None or entry.key in self._included:
                continue
            if entry.by_person:
                self._reserved[entry.section] -= entry.cost
            if entry.has_candidate_sources:
                self._reasons[entry.key] = SOURCES_RECALLED
                continue
            if entry.key in self._repeats:
                continue
            text = repeat_key(entry.record, entry.line.body)
            if (original := self._by_text.get(text)) is not None:
                self._repeats[entry.key] = original
                continue
            recalled, why = entry.section == "recalled", None
            summary = recalled and entry.record.kind is Kind.SUMMARY and entry.record.tier is Tier.EPISODIC
            if recalled and max_recalled is not None and included >= max_recalled:
                why = compile_reason("cap", f"a context recalls at most {max_recalled} memories (max_items)")
            elif summary and summaries >= MAX_RECALLED_SUMMARIES:
                why = compile_reason("cap", f"a context recalls at most {MAX_RECALLED_SUMMARIES} summaries")
            elif not self._fits(entry):
                why = OUT_OF_BUDGET
            if why is not None:
                self._reasons[entry.key] = why
                continue
            included, summaries = included + 1, summaries + summary
            self._spent[entry.section] += entry.cost
            self._include(entry, text)

    def _fits(self, entry: Entry) -> bool:
        """Whether every limit has room for a memory, by the token counts of the included lines."""
        for sections, limit in self._limits:
            if entry.section in sections:
                room, reserved = limit, 0
                for name in sections:
                    room -= self._spent[name]
                    reserved += self._reserved[name]
                if entry.cost > room - (min(reserved, limit // 2) if entry.is_agent_note else 0):
                    return False
        return True

    # --- render the result

    def _render(self) -> tuple[RenderedText, dict[str, list[Entry]]]:
        """Return the text, and the ordered entries of each section."""
        by_section: dict[str, list[Entry]] = {name: [] for name in SECTIONS[1:]}
        for entry in self._included.values():
            by_section[entry.section].append(entry)
        ordered = {name: sort_entries(name, entries) for name, entries in by_section.items()}
        lines = [entry.line for entries in ordered.values() for entry in entries if entry.line]
        documented = insert_documents(lines, self._identity, self._user_file)
        return render(documented, sparing=is_sparing(self._inputs.budget_tokens)), ordered

    def _fit_to_budget(self) -> tuple[RenderedText, dict[str, list[Entry]], TokenCounts]:
        """Count the rendered text; while it exceeds a limit, drop the entries that are evicted first."""
        while True:
            rendered, ordered = self._render()
            tokens = count_section_tokens(rendered, self._inputs.count)
            over, movable = self._tokens_over_budget(tokens)
            if not movable:
                return rendered, ordered, tokens
            tail = False
            for position, entry in enumerate(sorted(movable, key=eviction_key)):
                # Dropping the last line of a heading drops the heading too. So before an entry that may just fit then,
                # render again. Pinned memories and state are dropped only if the text without the tail is too long.
                if position and (over <= entry.cost or (tail and entry.section in _STABLE_SECTIONS)):
                    break
                tail = tail or entry.section in _TAIL_SECTIONS
                del self._included[entry.key]
                self._reasons[entry.key] = OUT_OF_BUDGET
                over -= entry.cost

    def _tokens_over_budget(self, tokens: TokenCounts) -> tuple[int, list[Entry]]:
        """Return by how many tokens a limit is exceeded, and which entries may be dropped for it."""
        for sections, limit in self._limits:
            over = sum([tokens.by_section.get(name, 0) for name in sections]) - limit
            if over <= 0:
                continue
            movable = [
                entry for entry in self._included.values() if entry.section in sections and entry.section != "core"
            ]
            if movable:
                notes = [entry for entry in movable if entry.is_agent_note]
                has_people = any(entry.by_person for entry in movable)
                notes_exceed_half = sum([entry.cost for entry in notes]) > limit // 2
                return over, notes if has_people and notes_exceed_half else movable
        return 0, []

    def _build_result(
        self, rendered: RenderedText, ordered: dict[str, list[Entry]], tokens: TokenCounts
    ) -> CompileResult:
        """Return the finished context with the facts of its receipt."""
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
        reasons = dict(self._reasons)
        for key, original in self._repeats.items():
            reasons[key] = (
                compile_reason("repeat", f"{original[0]} says the same and is in the context")
                if original in self._included
                else OUT_OF_BUDGET
            )
        out = sorted(reasons.keys() - self._included.keys())
        excluded = tuple([Exclusion(id=key[0], version=key[1], reason=reasons[key]) for key in out])
        facts = self._receipt_facts(rendered, tokens, sections, excluded)
        return CompileResult(
            text=rendered.formatted(self._inputs.format),
            context_id=facts["context_id"],
            sections=sections,
            excluded=excluded,
            tokens=tokens.total,
            tokens_by_tier=facts["tokens_by_tier"],
            prefix_digest=facts["digests"]["prefix"],
            tail_digest=facts["digests"]["tail"],
            facts=facts,
        )

    def _receipt_facts(
        self,
        rendered: RenderedText,
        tokens: TokenCounts,
        sections: tuple[Section, ...],
        excluded: tuple[Exclusion, ...],
    ) -> dict[str, Any]:
        """Return what the receipt records: plain JSON without memory text, enough to render the context again.

        The id of the context is the hash of all that determines the text, and of the text.
        """
        inputs = self._inputs
        documents = {"identity": inputs.identity, "user_file": inputs.user_file}
        identified = {
            "compiled": self._mode,
            "renderer": RENDERER,
            "format": inputs.format,
            "inputs": {
                "objective": inputs.objective,
                "purpose": inputs.purpose,
                "now": to_micros(inputs.now),
                **({} if inputs.valid_at is None else {"valid_at": inputs.valid_at.isoformat()}),
                "head": inputs.head,
                "scope": inputs.scope,
                "policy": inputs.policy.version,
                "budget_tokens": inputs.budget_tokens,
                "counter": inputs.counter_name,
                "versions": dict(sorted(inputs.versions.items())),
                "include_sensitive": inputs.include_sensitive,
            },
            "documents": {kind: document[0] for kind, document in documents.items() if document is not None},
            "digests": {
                "text": digest(rendered.formatted(inputs.format)),
                "prefix": rendered.prefix_digest,
                "tail": rendered.tail_digest,
            },
        }
        return {
            "context_id": digest(canonical(identified).decode()),
            **identified,
            "tokens": tokens.total,
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
            "excluded": [{"id": item.id, "version": item.version, **item.reason.as_dict()} for item in excluded],
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
