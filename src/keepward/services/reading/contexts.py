"""Contexts: gather the input of the compiler, compile it, store the receipt, and replay it.

Every memory that was active at the instant of the read goes in or is excluded with a reason.
A context and its receipt are stored in one transaction. If the store cannot be written, the context is still compiled
and a note says that there is no receipt. A replay reads only records, at the versions that the receipt names.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from keepward.context import compiler
from keepward.context.compiler import (
    MAX_PINNED_RULES,
    OUT_OF_BUDGET,
    compile_context,
)
from keepward.context.entries import compile_reason, not_holding_reason, repeat_key
from keepward.context.render import digest
from keepward.context.render import replay as render_again
from keepward.context.sections import CompileInput, CompileResult, Entry, newest_rules
from keepward.core.commit import Reason, Receipt
from keepward.core.compiled import CompiledContext, Explanation, Replayed
from keepward.core.memory import CORE_BLOCKS, Kind, Record, Sensitivity, Stability, Status, Tier
from keepward.core.principals import Trust
from keepward.core.query import MAX_HITS, AsOf, Filter, Recall
from keepward.core.value import to_micros
from keepward.errors import NotFound, Unauthorised
from keepward.gates.content import redact_personal_data, redact_secrets
from keepward.ports.store import UnreadableMemory
from keepward.retrieval.advice import asks_advice
from keepward.retrieval.small_talk import has_content
from keepward.services.access import (
    COMPILE_RECEIPT_KINDS,
    corrupt_memories,
    ids_of,
    require_core,
    unreadable_memories,
    unreadable_notes,
)
from keepward.services.arguments import instant
from keepward.services.reading.explain import explain_context
from keepward.services.reading.output_filter import filter_output
from keepward.services.reading.recall import Ranking, ReadPoint, models_used, rank, read_point
from keepward.services.reading.visible import HIDDEN_TEXT, VisibleReader, VisibleRecords, core_blocks
from keepward.services.recorded_reads import record_read
from keepward.services.request_context import RequestContext
from keepward.services.transaction import save_read_receipt
from keepward.storage.documents import ReceiptArtefact
from keepward.storage.writer import UnitOfWork
from keepward.types import Format

if TYPE_CHECKING:
    from keepward.retrieval.index import IndexHit

#: Expired working memories are listed among the exclusions for this long.
EXPIRED_NAMED_FOR = timedelta(days=7)
#: Number of ranked memories: with a budget, one for each so many tokens, and at least the minimum.
TOKENS_PER_CANDIDATE = 12
MIN_CANDIDATES = 100
#: The best so many memories are in a context, whether they bear on the objective or not.
BEST_LINES = 3
#: The same for a request for advice: the limits and likings that it needs are said in other words.
ADVICE_LINES = 10
#: A store of at most so many memories, whose texts need at most this share of the budget, is in as a whole.
SMALL_STORE = 20
SMALL_STORE_SHARE = 0.25
#: Memories of these trust levels are chosen as if there were no less trusted ones: those of people, then of agents.
_LEVELS = (Trust.USER, Trust.AGENT)
#: Ranked memories are read in batches of the room divided by this number, at least the minimum, until the room is used.
TOKENS_PER_READ = 40
MIN_READ_BATCH = 8
#: Tokens of a line in addition to its text, at least: the kind of the memory.
LINE_OVERHEAD_TOKENS = 3
#: A receipt names at least this many excluded ranked memories, or twice the number that was read; the others are
#: counted.
MIN_NAMED_EXCLUSIONS = 20
ALREADY_SEEN = compile_reason("seen", "the reader has it already")
WEAK_HIT = compile_reason("weak", "it hardly bears on the objective")
NO_CONTENT = "nothing was recalled: the objective is a greeting, thanks or arithmetic"
AWAITING_REVIEW = compile_reason("quarantine", "it waits for a person's decision")
#: Maximum number of the newest pending proposals that a receipt names, so that it does not grow with the review queue.
MAX_NAMED_PROPOSALS = 20
#: Number of memories of a memory block without a query.
MAX_NEWEST = 20
ContextMode = Literal["context", "snapshot", "memory_block"]
_COMPILERS: dict[ContextMode, Callable[[CompileInput], CompileResult]] = {
    "context": compile_context,
    "snapshot": compiler.snapshot,
    "memory_block": compiler.memory_block,
}
#: Sections with fixed content: the test for their records, and a filter of the store that passes these and few others.
_ALWAYS_INCLUDED: dict[str, tuple[Callable[[Record], bool], dict[str, Any]]] = {
    "pinned": (
        lambda record: record.stability is Stability.PERMANENT and record.tier is not Tier.CORE,
        {"permanent": True},
    ),
    "state": (
        # A hidden state has no visible key, so it is listed among the exclusions.
        lambda record: (
            record.kind is Kind.STATE and (record.key is not None or record.text == HIDDEN_TEXT) and not record.pinned
        ),
        {"keyed": True, "kinds": (Kind.STATE.value,)},
    ),
    "working": (
        lambda record: record.tier is Tier.WORKING and record.stability is not Stability.PERMANENT,
        {"tiers": (Tier.WORKING.value,), "permanent": False},
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """The options of a context."""

    #: None for the policy's budget.
    budget_tokens: int | None = None
    purpose: str = "answer"
    as_of: AsOf = None
    #: Only what holds at this instant; None for now.
    valid_at: datetime | str | None = None
    format: Format = "markdown"
    include_sensitive: bool = False
    #: Number of the newest summaries that are recalled whatever the objective.
    summaries: int = 0
    #: Core blocks, by key or id, that may be missing if they are corrupt.
    without: Collection[str] = ()
    #: Ids of memories that are not recalled again.
    seen: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredInput:
    """The input of the compiler, and what is reported next to its result."""

    inputs: CompileInput
    used: tuple[str, ...]
    notes: tuple[str, ...]
    withheld: list[UnreadableMemory]


def build_context(
    context: RequestContext, objective: str, *, which: ContextMode = "context", preview: bool = False, **options: Any
) -> CompiledContext:
    """Compile the visible memories for an objective: all parts or one; see ``ContextRequest`` for ``options``.

    ``snapshot`` is the part that every objective gets, ``memory_block`` the memories relevant to this one. A
    ``preview`` is explained; it stores no receipt and counts no use.

    Raises:
        Tampered: a core block was edited outside Keepward or is missing, and ``without`` does not name it.
        ContextTooSmall: core memory alone exceeds the budget.
        InvalidInput: an unknown purpose or format, or a budget outside 1 to 128,000.
        NotFound: ``as_of`` names no commit.
        Unauthorised: a preview without the right to decide, as no receipt records what it showed.
    """
    if preview and not context.actor.may_decide:
        raise Unauthorised("a preview leaves no receipt; it takes a reviewer or the owner")
    request = ContextRequest(**options)
    if request.include_sensitive:
        VisibleReader(context).check_sensitive()
    gathered = gather(context, objective, request, bearing_only=which == "memory_block")
    if which != "memory_block":
        require_core(gathered.withheld, request.without)
    inputs, compiled = gathered.inputs, _COMPILERS[which](gathered.inputs)
    by_people = {
        record.id
        for records in (inputs.pinned, inputs.state, inputs.working)
        for record in records
        if record.trust >= Trust.USER
    }
    dropped = [item.id for item in compiled.excluded if item.reason.code == OUT_OF_BUDGET.code and item.id in by_people]
    if dropped:
        named = ", ".join(dropped[:MAX_NAMED_PROPOSALS])
        note = f"no room for {len(dropped)} memories that a person wrote, raise the budget: {named}"
        gathered = dataclasses.replace(gathered, notes=(*gathered.notes, note))
    included = {item.id for section in compiled.sections for item in section.items}
    recalled = [candidate.record for candidate in inputs.recalled]
    groups = (inputs.core, inputs.pinned, inputs.state, inputs.working, recalled)
    delivered = [record for records in groups for record in records if record.id in included]
    record_read(context, delivered)
    explanation: Explanation | None = None
    receipt: Receipt | None = None
    receipt_notes: tuple[str, ...] = ()
    if preview:
        documents = {"identity": inputs.identity, "user_file": inputs.user_file}

        def document(kind: str, version: str) -> str | None:
            given = documents.get(kind)
            return given[1] if given is not None and given[0] == version else None

        explanation = explain_context(context, compiled.facts, document)
    else:
        receipt, receipt_notes = save_receipt(context, gathered, compiled, delivered)
    return result_of(gathered, compiled, receipt, receipt_notes, explanation)


def snapshot(context: RequestContext, **options: Any) -> CompiledContext:
    """Compile the part of a context that belongs in every prompt of this scope."""
    return build_context(context, "", which="snapshot", **options)


def memory_block(context: RequestContext, query: str, **options: Any) -> CompiledContext:
    """Compile only the memories relevant to a query."""
    return build_context(context, query, which="memory_block", **options)


def compile_unrecorded(
    context: RequestContext, objective: str, request: ContextRequest, which: ContextMode = "context"
) -> CompileResult:
    """Compile a context that reaches no model: without a receipt, and without counting a use.

    Raises:
        Tampered, ContextTooSmall, InvalidInput, NotFound: as ``build_context``.
    """
    if request.include_sensitive:
        VisibleReader(context).check_sensitive()
    gathered = gather(context, objective, request, bearing_only=which == "memory_block")
    if which != "memory_block":
        require_core(gathered.withheld, request.without)
    return _COMPILERS[which](gathered.inputs)


def gather(
    context: RequestContext, objective: str, request: ContextRequest, *, bearing_only: bool = False
) -> GatheredInput:
    """Read the input of a context; ``bearing_only`` recalls only what bears on the objective, which may be nothing."""
    at = read_point(context, request.as_of)
    reader = VisibleReader(context)
    everything = Filter(scopes=reader.scopes, hidden=reader.hidden(at.seq), include_sensitive=True)
    on = context.policy.enabled and context.policy.recall
    valid_at = None if request.valid_at is None else instant("valid_at", request.valid_at)
    input_reader = _InputReader(
        context=context,
        request=request,
        at=at,
        holding_at=valid_at or at.now,
        everything=everything,
        bearing_only=bearing_only,
    )
    if on:
        input_reader.add_always_included()
    result = Recall(hits=(), used=(), notes=(), head=at.head.name, now=at.now)
    if objective.strip():
        result = input_reader.add_recalled(objective)
    elif on and bearing_only:
        input_reader.add_newest(MAX_NEWEST)
    if on and request.summaries:
        input_reader.add_newest(request.summaries, kinds=(Kind.SUMMARY.value,), tiers=(Tier.EPISODIC.value,))
    sections = input_reader.sections
    inputs = CompileInput(
        objective=redact_personal_data(redact_secrets(objective)),
        purpose=request.purpose,
        now=at.now,
        valid_at=valid_at,
        head=at.head.name,
        scope=context.scope,
        policy=context.policy,
        budget_tokens=request.budget_tokens,
        identity=_redact_document(context.engine.identity()) if on else None,
        user_file=_redact_document(context.engine.user_file()) if on else None,
        core=sections["core"],
        pinned=sections["pinned"],
        state=sections["state"],
        working=[record for record in sections["working"] if record.kind is not Kind.STATE or record.key is None],
        recalled=input_reader.candidates,
        excluded=input_reader.excluded,
        unlisted=input_reader.unlisted,
        counter_name=context.engine.counter.name,
        count=context.engine.counter.count,
        screen=filter_output,
        versions=models_used(context, result),
        include_sensitive=request.include_sensitive,
        format=request.format,
    )
    unreadable = {memory.id: memory for memory in corrupt_memories(input_reader.damaged)}
    unreadable |= {memory.id: memory for memory in corrupt_memories(input_reader.damaged_blocks, core=True)}
    if at.seq is None and on:
        # A missing block of core memory is noticed by every context.
        missing = unreadable_memories(context, everything, live_at=at.now, tiers=(Tier.CORE.value,))
        unreadable |= {memory.id: memory for memory in missing}
    withheld = sorted(unreadable.values(), key=lambda memory: memory.id or "~")
    notes = (*result.notes, *input_reader.notes, *unreadable_notes(withheld), *(missing_files(context) if on else ()))
    return GatheredInput(inputs=inputs, used=result.used, notes=notes, withheld=withheld)


@dataclass(slots=True, kw_only=True)
class _Chosen:
    """The memories that were chosen for a context, in the order of their relevance."""

    #: Whether a budget is filled; then what was brought along comes after all hits.
    fills: bool
    records: dict[str, Record] = field(default_factory=dict)
    hits: dict[str, IndexHit] = field(default_factory=dict)
    #: Memories that a chosen one brought along, by the id of that one.
    related: dict[str, list[str]] = field(default_factory=dict)
    #: The trust level at which a memory was chosen as if there were no less trusted ones.
    levels: dict[str, Trust] = field(default_factory=dict)
    _texts: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def lines(self) -> int:
        """Number of different lines, at least."""
        return len(self._texts)

    def add(self, hit: IndexHit, record: Record, *, counts: bool = True) -> None:
        """Add a memory; ``counts`` is whether it may be shown."""
        self.hits[hit.id] = hit
        self.records[hit.id] = record
        # A summary is not shown together with a memory that it sums up.
        if counts and self.records.keys().isdisjoint(record.derived_from):
            self._texts.add(repeat_key(record))

    def add_related(self, hit: IndexHit, other: IndexHit, record: Record) -> None:
        """Add a memory about the same as a hit."""
        if other.id not in self.records:
            self.hits[other.id], self.records[other.id] = other, record
            self.related.setdefault(hit.id, []).append(other.id)

    def add_unranked(self, record: Record) -> None:
        """Add a memory of a small store that the objective did not find."""
        self.records[record.id] = record

    def candidates(self) -> list[Entry]:
        """Return the candidates of the compiler, best first; what was said about the same follows what brought it.

        Where a budget is filled, what was brought along comes after all hits; a hit among it keeps its rank.
        """
        brought = dict.fromkeys(name for names in self.related.values() for name in names)
        if self.fills:
            brought = {name: None for name in brought if not self.hits[name].parts}
        ranked = sorted(
            (name for name in self.records if name not in brought), key=lambda name: -_strength(self.hits.get(name))
        )
        if self.fills:
            hits = [self._candidate(name, _strength(self.hits.get(name))) for name in ranked]
            return hits + [self._candidate(name, 0.0) for name in brought]
        return [
            self._candidate(each, _strength(self.hits.get(name)), brought_by=name)
            for name in ranked
            for each in self._with_related(name)
        ]

    def _with_related(self, name: str) -> Iterator[str]:
        """Yield a memory, then what it brought along, which may have brought others."""
        yield name
        for other in self.related.get(name, ()):
            yield from self._with_related(other)

    def _candidate(self, name: str, strength: float, *, brought_by: str = "") -> Entry:
        """Return a candidate; one without a trust level has that of the memory that brought it along."""
        hit = self.hits.get(name)
        return Entry(
            record=self.records[name],
            score=0.0 if hit is None else hit.score,
            strength=strength,
            parts={} if hit is None else hit.parts,
            weak=hit is None or hit.weak,
            level=self.levels.get(name, self.levels.get(brought_by, Trust.UNKNOWN)),
        )


def _strength(hit: IndexHit | None) -> float:
    """Return the number that ranked a hit; 0 for a memory that is no hit."""
    return 0.0 if hit is None else max(hit.parts["fused"] + hit.parts.get("learned", 0.0), 0.0)


@dataclass(slots=True, kw_only=True)
class _InputReader:
    """Reads the memories of one context."""

    context: RequestContext
    request: ContextRequest
    at: ReadPoint
    #: What does not hold at this instant is excluded.
    holding_at: datetime
    #: A filter that every visible memory passes.
    everything: Filter
    bearing_only: bool
    #: The fixed sections.
    sections: dict[str, list[Record]] = field(
        default_factory=lambda: {name: [] for name in ("core", *_ALWAYS_INCLUDED)}
    )
    candidates: list[Entry] = field(default_factory=list)
    #: Excluded without being read: id, version, reason.
    excluded: list[tuple[str, int, Reason]] = field(default_factory=list)
    #: Number of exclusions that are not named, by code.
    unlisted: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    damaged_blocks: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def add_always_included(self) -> None:
        """Read the fixed sections in one snapshot, as every read outside one would open its own."""
        context = self.context
        with context.store.read_snapshot(context.tenant):
            if self.at.seq is None:
                for _, narrowed in _ALWAYS_INCLUDED.values():
                    VisibleReader(context).ask_find(replace(self.everything, **narrowed), live_at=None)
                blocks = core_blocks(context)
                self.sections["core"] = [VisibleReader(context).hide_content(record) for record in blocks.records]
                self.damaged_blocks = blocks.damaged
                pending = VisibleReader(context).pending_ids()
            else:
                # A past state is rebuilt from the journal: once, not for each section.
                past = self._find({})
                pending = []
                with_file = context.engine.identity.name is not None
                self.sections["core"] = [
                    record
                    for record in past
                    if record.tier is Tier.CORE and self._is_recent(record)
                    # With a file, the file alone is the persona.
                    if not (with_file and record.key == CORE_BLOCKS[0])
                ]
            for section, (belongs, narrowed) in _ALWAYS_INCLUDED.items():
                records = self._find(narrowed) if self.at.seq is None else past
                self.sections[section] = [record for record in records if belongs(record) and self._is_recent(record)]
        unnamed = len(pending) - MAX_NAMED_PROPOSALS
        why = (
            replace(AWAITING_REVIEW, detail=f"{AWAITING_REVIEW.detail}, as {unnamed:,} older ones do")
            if unnamed > 0
            else AWAITING_REVIEW
        )
        self.excluded = [(name, 0, why) for name in pending[-MAX_NAMED_PROPOSALS:]]

    def _find(self, narrowed: dict[str, Any], *, limit: int | None = None) -> list[Record]:
        """Return the records that pass a filter and may be shown; collect corrupt ones and note hidden ones."""
        filters = replace(self.everything, **narrowed)
        found = VisibleReader(self.context).find(filters, live_at=None, limit=limit, as_of=self.at.seq)
        return self._readable(found)

    def _is_recent(self, record: Record) -> bool:
        """Whether a record is active, or expired recently enough to be listed among the exclusions."""
        long_expired = record.expires_at is not None and record.expires_at <= self.at.now - EXPIRED_NAMED_FOR
        return record.status is Status.ACTIVE and not long_expired

    def add_recalled(self, objective: str) -> Recall:
        """Choose memories for an objective: the best, those that bear on it, and what else was said about the same.

        A named budget is filled, best first. A small store is chosen as a whole.
        """
        if not has_content(objective):
            self.notes = (*self.notes, NO_CONTENT)
            return Recall(hits=(), used=(), notes=(), head=self.at.head.name, now=self.at.now)
        pinned = [record for record in self.sections["pinned"] if record.holds_at(self.holding_at)]
        rules = newest_rules(pinned, MAX_PINNED_RULES)
        # A rule beyond the cap is recalled like any other memory.
        fixed = {
            record.id
            for section, records in self.sections.items()
            for record in records
            if section != "pinned" or record.kind is not Kind.RULE or record.id in rules
        }
        ranking = self._rank(objective, len(fixed), most_not_holding=MIN_NAMED_EXCLUSIONS)
        for record in self._read(ranking.not_holding):
            if record.id not in fixed and (reason := not_holding_reason(record, self.holding_at)) is not None:
                self.excluded.append((record.id, record.version, reason))
        seen = frozenset(self.request.seen)
        self.excluded += [
            (hit.id, hit.version, ALREADY_SEEN) for hit in ranking.hits if hit.id in seen and hit.id not in fixed
        ]
        hits = [hit for hit in ranking.hits if hit.id not in fixed and hit.id not in seen]
        chosen = _Chosen(fills=self._fills)
        if not self._choose_small_store(ranking, hits, fixed, chosen):
            self._choose(hits, chosen, objective)
            self._choose_trusted(objective, fixed | seen, hits[:BEST_LINES], chosen)
        self.candidates = chosen.candidates()
        names_left = max(MIN_NAMED_EXCLUSIONS, 2 * len(chosen.records))
        for hit in hits:
            if hit.id not in chosen.records and hit.id not in self.damaged:
                why = WEAK_HIT if hit.weak else OUT_OF_BUDGET
                if names_left:
                    names_left -= 1
                    self.excluded.append((hit.id, hit.version, why))
                else:
                    self.unlisted[why.code] += 1
        return ranking.result

    def add_newest(self, number: int, **narrowed: Any) -> None:
        """Let the newest memories that pass a filter come before all other recalled ones."""
        # Those of one kind are few, and are compared by the time when they were said.
        newest = self._newest(number, narrowed, None if narrowed else number)
        chosen = {record.id for record in newest}
        strongest = max((each.strength or 0.0 for each in self.candidates), default=0.0)
        asked = [
            Entry(record=record, score=0.0, strength=strongest, parts={}, weak=True, level=Trust.OWNER)
            for record in newest
        ]
        self.candidates = [*asked, *(each for each in self.candidates if each.record.id not in chosen)]
        self.excluded = [each for each in self.excluded if each[0] not in chosen]

    def _newest(self, number: int, narrowed: dict[str, Any], limit: int | None) -> list[Record]:
        """Return the newest memories that may be shown and that the fixed sections leave out, newest first."""
        read = -1
        while True:
            found = self._find(narrowed, limit=limit)
            shown = [
                record
                for record in found
                if self._is_admissible(record)
                and record.sensitivity is Sensitivity.NORMAL
                and record.stability is not Stability.PERMANENT
                and record.tier is not Tier.CORE
                and record.id not in self.request.seen
            ]
            if limit is None or len(shown) >= number or len(found) <= read:
                return sorted(shown, key=lambda record: (record.said_at, record.id), reverse=True)[:number]
            limit, read = 4 * limit, len(found)

    @property
    def _room(self) -> int:
        """Tokens for recalled memories."""
        policy, budget = self.context.policy, self.request.budget_tokens
        return min(policy.context_budget if budget is None else budget, policy.retrieved_budget)

    @property
    def _fills(self) -> bool:
        """Whether the budget is filled with the best hits."""
        return self.request.budget_tokens is not None and not self.bearing_only

    def _rank(
        self, objective: str, fixed: int, min_trust: Trust = Trust.UNKNOWN, *, most_not_holding: int = 0
    ) -> Ranking:
        budget = self.request.budget_tokens
        candidates = MIN_CANDIDATES if budget is None else max(MIN_CANDIDATES, budget // TOKENS_PER_CANDIDATE)
        return rank(
            self.context,
            objective,
            replace(
                self.everything,
                tiers=(Tier.EPISODIC.value, Tier.ARCHIVAL.value),
                valid_at=to_micros(self.holding_at),
            ),
            limit=min(MAX_HITS, candidates + fixed),
            purpose=self.request.purpose,
            at=self.at,
            gated=False,
            min_trust=min_trust,
            related=True,
            most_not_holding=most_not_holding,
        )

    def _choose_small_store(self, ranking: Ranking, hits: list[IndexHit], fixed: set[str], chosen: _Chosen) -> bool:
        """Choose everything if the store is small; return whether it is."""
        if self.bearing_only or not 0 < ranking.visible <= SMALL_STORE + len(fixed):
            return False
        found = self._find({"tiers": (Tier.EPISODIC.value, Tier.ARCHIVAL.value)})
        seen = self.request.seen
        listed = {record.id for record in found}
        if missing := [hit.id for hit in hits if hit.id not in listed and hit.id not in self.damaged]:
            # Rows that the index names and the list lacks are missing or were edited; a read by id reports them.
            self._read(missing)
        records = {
            record.id: record
            for record in found
            if record.id not in fixed and record.id not in seen and record.status is Status.ACTIVE
        }
        count = self.context.engine.counter.count
        lines = [record for record in records.values() if self._is_admissible(record)]
        tokens = sum(count(record.text) + LINE_OVERHEAD_TOKENS for record in lines)
        if len(lines) > SMALL_STORE or tokens > SMALL_STORE_SHARE * self._room:
            return False
        for hit in hits:
            if hit.id in records:
                chosen.add(hit, records[hit.id])
        for record in found:
            if record.id in records and record.id not in chosen.records:
                chosen.add_unranked(record)
        return True

    def _is_admissible(self, record: Record) -> bool:
        """Whether a memory may be shown; the compiler gives the reason for others."""
        request = self.request
        hidden = record.sensitivity is Sensitivity.SENSITIVE and not request.include_sensitive
        min_trust = self.context.policy.least_trust.get(request.purpose, Trust.UNKNOWN)
        shown = record.is_live(self.at.now) and record.holds_at(self.holding_at) and record.may_guide(request.purpose)
        return not hidden and record.effective_trust >= min_trust and shown

    def _choose(self, hits: Sequence[IndexHit], chosen: _Chosen, objective: str) -> None:
        """Choose the best lines and those that bear; with a named budget, all until it is full."""
        best = 0 if self.bearing_only else ADVICE_LINES if asks_advice(objective) else BEST_LINES
        wanted = [hit for hit in hits if self._fills or not hit.weak]
        self._read_until_full(wanted, chosen)
        weak = [hit for hit in hits if hit.id not in chosen.records and hit.weak]
        if self._fills:
            return
        # Of equal texts one line is shown, so weak ones are read until there are enough different lines.
        while weak and (missing := best - chosen.lines) > 0:
            self._read_batch(weak[:missing], chosen)
            weak = weak[missing:]

    def _choose_trusted(
        self, objective: str, fixed: frozenset[str] | set[str], best: Sequence[IndexHit], chosen: _Chosen
    ) -> None:
        """Choose what people and agents wrote as if there were nothing less trusted, and let it stay longest.

        The best hits of all stay as long.
        """
        for level in _LEVELS:
            if all(record.trust >= level for record in chosen.records.values()):
                continue
            if self._fills and level is Trust.AGENT:
                chosen.levels |= {hit.id: chosen.levels.get(hit.id, level) for hit in best}
            hits = [hit for hit in self._rank(objective, len(fixed), level).hits if hit.id not in fixed]
            best_lines = self._best_lines_of(level, chosen)
            bearing = [hit for n, hit in enumerate(hits) if n < best_lines or not hit.weak]
            self._read_until_full([hit for hit in bearing if hit.id not in chosen.records], chosen)
            # An agent's answer may be what the objective asks for, so only the best lines of people go before it.
            for hit in bearing[:BEST_LINES] if level is Trust.USER else bearing:
                chosen.levels[hit.id] = max(level, chosen.levels.get(hit.id, level))

    def _best_lines_of(self, level: Trust, chosen: _Chosen) -> int:
        """Return how many of the best lines of a trust level are chosen, whether they bear on the objective or not.

        Notes from tools, documents and the web push none of them out. Next to an agent's lines, one is enough.
        """
        trusts = [record.trust for record in chosen.records.values()]
        if self.bearing_only:
            return 0
        if min(trusts) < Trust.AGENT:
            return MAX_HITS if self._fills else BEST_LINES
        return int(max(trusts) < level)

    def _read(self, ids: Sequence[str]) -> list[Record]:
        """Return records that may be shown; collect corrupt ones and note hidden ones."""
        return self._readable(VisibleReader(self.context).records(ids, as_of=self.at.seq))

    def _readable(self, found: VisibleRecords) -> list[Record]:
        self.damaged.extend(found.damaged)
        if found.left_out and f"left out: {HIDDEN_TEXT}" not in self.notes:
            self.notes = (*self.notes, f"left out: {HIDDEN_TEXT}")
        return found.records

    def _read_until_full(self, hits: Sequence[IndexHit], chosen: _Chosen) -> None:
        """Read memories in order until the texts of those that may be shown use all the room."""
        count, room = self.context.engine.counter.count, self._room
        used, batch = 0, max(MIN_READ_BATCH, room // TOKENS_PER_READ)
        with self.context.store.read_snapshot(self.context.tenant):
            while hits and used < room:
                for record in self._read_batch(hits[:batch], chosen):
                    used += count(record.text) + LINE_OVERHEAD_TOKENS
                hits = hits[batch:]
                # The next batch fills the room if its texts are as long as the earlier ones.
                batch = max(
                    MIN_READ_BATCH, len(chosen.records) * (room - used) // used if used else room // TOKENS_PER_READ
                )

    def _read_batch(self, hits: Sequence[IndexHit], chosen: _Chosen) -> list[Record]:
        """Read memories and what else was said about the same; return those that may be shown."""
        related = [other for hit in hits for other in hit.related]
        skipped = {*self.request.seen, *chosen.records}
        ids = dict.fromkeys(hit.id for hit in (*hits, *related) if hit.id not in skipped)
        records = {record.id: record for record in self._read([*ids])} if ids else {}
        shown: list[Record] = []
        for hit in hits:
            record = records.get(hit.id)
            if record is None:
                continue
            may_be_shown = self._is_admissible(record)
            chosen.add(hit, record, counts=may_be_shown)
            shown += [record] if may_be_shown else []
            for other in hit.related:
                if other.id in records:
                    chosen.add_related(hit, other, records[other.id])
        return shown


def missing_files(context: RequestContext) -> tuple[str, ...]:
    """Return a note for each file of the settings, identity or about the user, that does not exist."""
    files = {"identity": context.engine.identity, "user_file": context.engine.user_file}
    return tuple(
        f"there is no file {file.name}, which `{setting}` names: write it, or take it out of the settings"
        for setting, file in files.items()
        if file.name is not None and file() is None
    )


def _redact_document(document: tuple[str, str] | None) -> tuple[str, str] | None:
    """Return version and text of a document without secrets: a model reads it, and it is stored for replay."""
    if document is None:
        return None
    safe = redact_secrets(document[1])
    return document if safe == document[1] else (digest(safe)[:16], safe)


def result_of(
    gathered: GatheredInput,
    compiled: CompileResult,
    receipt: Receipt | None,
    notes: tuple[str, ...],
    explanation: Explanation | None = None,
) -> CompiledContext:
    """Return a compiled context with its receipt; ``notes`` say why that was not stored."""
    return CompiledContext(
        text=compiled.text,
        context_id=compiled.context_id,
        receipt=receipt,
        sections=compiled.sections,
        excluded=compiled.excluded,
        tokens=compiled.tokens,
        prefix_digest=compiled.prefix_digest,
        tail_digest=compiled.tail_digest,
        used=gathered.used,
        notes=(*gathered.notes, *notes),
        head=gathered.inputs.head,
        kept=receipt is not None,
        withheld=ids_of(gathered.withheld),
        unlisted=gathered.inputs.unlisted,
        explanation=explanation,
    )


def save_receipt(
    context: RequestContext, gathered: GatheredInput, compiled: CompileResult, delivered: Sequence[Record]
) -> tuple[Receipt | None, tuple[str, ...]]:
    """Store the receipt of a context; return it, or None and a note why it was not stored."""
    inputs = gathered.inputs
    documents = {"identity": inputs.identity, "user_file": inputs.user_file}

    def save_documents(writer: UnitOfWork) -> None:
        for kind, document in documents.items():
            if document is not None:
                writer.put(ReceiptArtefact(context.tenant, kind, *document))

    if not context.inspects:
        shown = (item.id for section in compiled.sections for item in section.items if not item.weak)
        context.engine.uses.count(context.tenant, shown, context.clock.now())
    return save_read_receipt(
        context,
        "compile",
        {**compiled.facts, "context_id": compiled.context_id, "signals": list(gathered.used)},
        delivered=delivered,
        notes=gathered.notes,
        head=inputs.head,
        also=save_documents,
    )


def replay(context: RequestContext, receipt_id: str) -> Replayed:
    """Render a compiled context again from its receipt, byte for byte.

    Raises:
        NotFound: no compile receipt with this id is visible.
    """
    versions: dict[str, dict[int, Record | None]] = {}

    def fetch(memory_id: str, version: int) -> Record | None:
        if memory_id not in versions:
            versions[memory_id] = VisibleReader(context).contents(memory_id)
        record = versions[memory_id].get(version)
        if record is None and version in versions[memory_id]:
            # It was moved to where this handle does not see it.
            raise NotFound("there is no compiled context by that id in this tenant")
        return record

    receipt = VisibleReader(context).receipt_of_read(receipt_id, COMPILE_RECEIPT_KINDS)
    return render_again(receipt, fetch, partial(context.store.artefact, context.tenant))
