"""Contexts: gather the input of the compiler, compile it, store the receipt, and replay it.

Every memory that was active at the instant of the read goes in or is excluded with a reason.
A context and its receipt are stored in one transaction. If the store cannot be written, the context is still compiled
and a note says that there is no receipt. A replay reads only records, at the versions that the receipt names.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Literal

from msgspec.structs import replace

from keepward.context import compiler
from keepward.context.compiler import (
    MAX_CONTEXT_TOKENS,
    MAX_PINNED_RULES,
    OUT_OF_BUDGET,
    compile_context,
)
from keepward.context.entries import compile_reason
from keepward.context.render import digest
from keepward.context.render import replay as render_again
from keepward.context.sections import FORMATS, Candidate, CompileInput, CompileResult, newest_rules
from keepward.core.commit import Reason, Receipt
from keepward.core.compiled import CompiledContext, Explanation, Replayed
from keepward.core.journal import Bisection
from keepward.core.memory import Kind, Record, Sensitivity, Stability, Status, Tier
from keepward.core.principals import Trust
from keepward.core.query import MAX_HITS, AsOf, Filter, Recall
from keepward.core.value import unknown_name_message
from keepward.errors import InvalidInput, NotFound, Unauthorised
from keepward.gates.content import redact_personal_data, redact_secrets
from keepward.ports.store import UnreadableMemory
from keepward.services.access import (
    COMPILE_RECEIPT_KINDS,
    corrupt_memories,
    ids_of,
    require_core,
    unreadable_memories,
    unreadable_notes,
)
from keepward.services.explain import explain_context
from keepward.services.output_filter import filter_output
from keepward.services.read import ReadPoint, models_used, rank, read_point
from keepward.services.reader import HIDDEN_TEXT
from keepward.services.request_context import RequestContext, record_read
from keepward.services.search_features import mentions_preference
from keepward.services.status import core_blocks
from keepward.services.transaction import save_read_receipt
from keepward.storage.documents import ReceiptArtefact
from keepward.storage.writer import UnitOfWork
from keepward.types import Format

#: Expired working memories are listed among the exclusions for this long.
EXPIRED_NAMED_FOR = timedelta(days=7)
#: Number of ranked memories: without a budget, so many for each line that a context may recall. With a budget, one for
#: each so many tokens, and at least the minimum.
CANDIDATES_PER_ITEM = 3
TOKENS_PER_CANDIDATE = 12
MIN_CANDIDATES = 60
#: Ranked memories are read in batches of the room divided by this number, at least the minimum, until the room is used.
TOKENS_PER_READ = 40
MIN_READ_BATCH = 8
#: Tokens of a line in addition to its text, at least: the kind of the memory.
LINE_OVERHEAD_TOKENS = 3
#: A request for advice adds at most so many preferences that are weak hits.
MAX_WEAK_PREFERENCES = 10
#: A receipt names at least this many excluded ranked memories, or twice the number that was read; the others are
#: counted.
MIN_NAMED_EXCLUSIONS = 20
ALREADY_SEEN = compile_reason("seen", "the reader has it already")
WEAK_HIT = compile_reason("weak", "it hardly bears on the objective, and weak hits were not asked for")
AWAITING_REVIEW = compile_reason("quarantine", "it waits for a person's decision")
#: Maximum number of the newest pending proposals that a receipt names, so that it does not grow with the review queue.
MAX_NAMED_PROPOSALS = 20
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
    format: Format = "markdown"
    include_sensitive: bool = False
    #: Core blocks, by key or id, that may be missing if they are corrupt.
    without: Collection[str] = ()
    #: Whether weak hits are included.
    include_weak: bool = False
    #: Ids of memories that are not recalled again.
    seen: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredInput:
    """The input of the compiler, and what is reported next to its result."""

    inputs: CompileInput
    used: tuple[str, ...]
    notes: tuple[str, ...]
    withheld: list[UnreadableMemory]


def context(
    session: RequestContext, objective: str, *, which: ContextMode = "context", preview: bool = False, **options: Any
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
    if preview and not session.actor.may_decide:
        raise Unauthorised("a preview leaves no receipt; it takes a reviewer or the owner")
    request = ContextRequest(**options)
    if request.include_sensitive:
        session.reader.check_sensitive()
    gathered = _gather(session, objective, request)
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
    record_read(session, delivered)
    explanation: Explanation | None = None
    receipt: Receipt | None = None
    receipt_notes: tuple[str, ...] = ()
    if preview:
        documents = {"identity": inputs.identity, "user_file": inputs.user_file}

        def document(kind: str, version: str) -> str | None:
            given = documents.get(kind)
            return given[1] if given is not None and given[0] == version else None

        explanation = explain_context(session, compiled.facts, document)
    else:
        receipt, receipt_notes = _save_receipt(session, gathered, compiled, delivered)
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
        notes=(*gathered.notes, *receipt_notes),
        head=inputs.head,
        kept=receipt is not None,
        withheld=ids_of(gathered.withheld),
        unlisted=inputs.unlisted,
        explanation=explanation,
    )


def snapshot(session: RequestContext, **options: Any) -> CompiledContext:
    """Compile the part of a context that belongs in every prompt of this scope."""
    return context(session, "", which="snapshot", **options)


def memory_block(session: RequestContext, query: str, **options: Any) -> CompiledContext:
    """Compile only the memories relevant to a query."""
    return context(session, query, which="memory_block", **options)


def bisect(
    session: RequestContext,
    query: str,
    *,
    contains: str | None = None,
    predicate: Callable[[str], bool] | None = None,
    since: int = 0,
    purpose: str = "answer",
) -> Bisection:
    """Return the commit that made the context for a query contain a text or pass a predicate.

    It compiles about log2(n) contexts. ``since`` is a commit whose context does not pass, 0 for the empty store. If the
    result changed more than once, the commit is one of those that made it pass.

    Raises:
        InvalidInput: the newest context does not pass, or that of ``since`` passes; or there is no single condition.
    """
    if bool(contains) == (predicate is not None):
        raise InvalidInput("give either the text to look for or a predicate")
    part = contains or ""
    passes = predicate if predicate is not None else lambda text: part in text
    high = session.store.head(session.tenant).seq
    if not 0 <= since <= high:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")

    def text(seq: int) -> str:
        # The empty store has no memories, and documents do not depend on commits.
        if not seq:
            return ""
        return compile_context(_gather(session, query, ContextRequest(purpose=purpose, as_of=seq)).inputs).text

    texts = {since: text(since), high: text(high)}
    if not passes(texts[high]):
        raise InvalidInput("the context after the newest commit does not pass: there is nothing to look for")
    if passes(texts[since]):
        raise InvalidInput("the context at the start passes already: begin at an earlier commit")
    low = since
    while high - low > 1:
        middle = (low + high) // 2
        texts[middle] = text(middle)
        if passes(texts[middle]):
            high = middle
        else:
            low = middle
    view = session.reader.commit(str(high))
    return Bisection(commit=view, compiled=len(texts), before=texts[low], after=texts[high])


def _gather(session: RequestContext, objective: str, request: ContextRequest) -> GatheredInput:
    if request.budget_tokens is not None and not 1 <= request.budget_tokens <= MAX_CONTEXT_TOKENS:
        raise InvalidInput(f"a budget is from 1 to {MAX_CONTEXT_TOKENS:,} tokens")
    if request.format not in FORMATS:
        raise InvalidInput(unknown_name_message("format", request.format, list(FORMATS)))
    at = read_point(session, request.as_of)
    everything = Filter(scopes=session.reader.scopes, include_sensitive=True)
    on = session.policy.enabled and session.policy.recall
    input_reader = _InputReader(session=session, request=request, at=at, everything=everything)
    if on:
        input_reader.add_always_included()
    result = Recall(hits=(), used=(), notes=(), head=at.head.name, now=at.now)
    if objective.strip():
        result = input_reader.add_recalled(objective)
    sections = input_reader.sections
    inputs = CompileInput(
        objective=redact_personal_data(redact_secrets(objective)),
        purpose=request.purpose,
        now=at.now,
        head=at.head.name,
        scope=session.scope,
        policy=session.policy,
        budget_tokens=request.budget_tokens,
        identity=_redact_document(session.engine.identity()) if on else None,
        user_file=_redact_document(session.engine.user_file()) if on else None,
        core=sections["core"],
        pinned=sections["pinned"],
        state=sections["state"],
        working=[record for record in sections["working"] if record.kind is not Kind.STATE or record.key is None],
        recalled=input_reader.candidates,
        excluded=input_reader.excluded,
        unlisted=input_reader.unlisted,
        counter_name=session.engine.counter.name,
        count=session.engine.counter.count,
        screen=filter_output,
        versions=models_used(session, result),
        include_sensitive=request.include_sensitive,
        include_weak=request.include_weak,
        format=request.format,
    )
    unreadable = {memory.id: memory for memory in corrupt_memories(input_reader.damaged)}
    unreadable |= {memory.id: memory for memory in corrupt_memories(input_reader.damaged_blocks, core=True)}
    if at.seq is None and on:
        unreadable |= {memory.id: memory for memory in unreadable_memories(session, everything, live_at=at.now)}
    withheld = sorted(unreadable.values(), key=lambda memory: memory.id or "~")
    notes = (*result.notes, *input_reader.notes, *unreadable_notes(withheld))
    return GatheredInput(inputs=inputs, used=result.used, notes=notes, withheld=withheld)


@dataclass(slots=True, kw_only=True)
class _InputReader:
    """Reads the memories of one context."""

    session: RequestContext
    request: ContextRequest
    at: ReadPoint
    #: A filter that every visible memory passes.
    everything: Filter
    #: The fixed sections.
    sections: dict[str, list[Record]] = field(
        default_factory=lambda: {name: [] for name in ("core", *_ALWAYS_INCLUDED)}
    )
    candidates: list[Candidate] = field(default_factory=list)
    #: Excluded without being read: id, version, reason.
    excluded: list[tuple[str, int, Reason]] = field(default_factory=list)
    #: Number of exclusions that are not named, by code.
    unlisted: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    damaged_blocks: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def add_always_included(self) -> None:
        """Read the fixed sections in one snapshot, as every read outside one would open its own."""
        session = self.session
        with session.store.read_snapshot(session.tenant):
            if self.at.seq is None:
                blocks = core_blocks(session)
                self.sections["core"] = [session.reader.hide_content(record) for record in blocks.records]
                self.damaged_blocks = blocks.damaged
                pending = session.reader.pending_ids()
            else:
                # A past state is rebuilt from the journal: once, not for each section.
                past = self._find({})
                pending = []
                self.sections["core"] = [
                    record for record in past if record.tier is Tier.CORE and self._is_recent(record)
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

    def _find(self, narrowed: dict[str, Any]) -> list[Record]:
        """Return the records that pass a filter and may be shown; collect corrupt ones."""
        found = self.session.reader.find(replace(self.everything, **narrowed), live_at=None, as_of=self.at.seq)
        self.damaged.extend(found.damaged)
        return found.records

    def _is_recent(self, record: Record) -> bool:
        """Whether a record is active, or expired recently enough to be listed among the exclusions."""
        long_expired = record.expires_at is not None and record.expires_at <= self.at.now - EXPIRED_NAMED_FOR
        return record.status is Status.ACTIVE and not long_expired

    def add_recalled(self, objective: str) -> Recall:
        """Rank memories for an objective and read them by rank until their texts use all the room."""
        from keepward.retrieval.advice import asks_advice

        request, policy, budget = self.request, self.session.policy, self.request.budget_tokens
        rules = newest_rules(self.sections["pinned"], MAX_PINNED_RULES)
        # A rule beyond the cap is recalled like any other memory.
        fixed = {
            record.id
            for section, records in self.sections.items()
            for record in records
            if section != "pinned" or record.kind is not Kind.RULE or record.id in rules
        }
        max_candidates = (
            policy.max_items * CANDIDATES_PER_ITEM
            if budget is None
            else max(MIN_CANDIDATES, budget // TOKENS_PER_CANDIDATE)
        )
        result, ranked = rank(
            self.session,
            objective,
            replace(self.everything, tiers=(Tier.EPISODIC.value, Tier.ARCHIVAL.value)),
            limit=min(MAX_HITS, max_candidates + len(fixed)),
            purpose=request.purpose,
            at=self.at,
            gated=False,
        )
        seen = frozenset(request.seen)
        self.excluded += [
            (hit.id, hit.version, ALREADY_SEEN) for hit in ranked if hit.id in seen and hit.id not in fixed
        ]
        ranked = [hit for hit in ranked if hit.id not in fixed and hit.id not in seen]
        weak = set() if request.include_weak else {hit.id for hit in ranked if hit.weak}
        records = self._read_until_full([hit.id for hit in ranked if hit.id not in weak])
        if weak and asks_advice(objective):
            records |= self._read_preferences([hit.id for hit in ranked if hit.id in weak])
        names_left = max(MIN_NAMED_EXCLUSIONS, 2 * len(records))
        for hit in ranked:
            record = records.get(hit.id)
            if record is not None:
                strength = max(hit.parts["fused"] + hit.parts.get("learned", 0.0), 0.0)
                self.candidates.append(
                    Candidate(record=record, score=hit.score, strength=strength, parts=hit.parts, weak=hit.weak)
                )
            elif hit.id not in self.damaged:
                why = WEAK_HIT if hit.id in weak else OUT_OF_BUDGET
                if names_left:
                    names_left -= 1
                    self.excluded.append((hit.id, hit.version, why))
                else:
                    self.unlisted[why.code] += 1
        return result

    def _read(self, ids: Sequence[str]) -> list[Record]:
        """Return records that may be shown; collect corrupt ones and note hidden ones."""
        found = self.session.reader.records(ids, as_of=self.at.seq)
        self.damaged.extend(found.damaged)
        if found.left_out:
            self.notes = (f"left out: {HIDDEN_TEXT}",)
        return found.records

    def _read_until_full(self, ids: Sequence[str]) -> dict[str, Record]:
        """Return memories by id, read in order until their texts use all the room."""
        request, policy, count = self.request, self.session.policy, self.session.engine.counter.count
        budget = policy.context_budget if request.budget_tokens is None else request.budget_tokens
        room = min(budget, policy.retrieved_budget)
        min_trust = policy.least_trust.get(request.purpose, Trust.UNKNOWN)
        records: dict[str, Record] = {}
        used, batch = 0, max(MIN_READ_BATCH, room // TOKENS_PER_READ)
        with self.session.store.read_snapshot(self.session.tenant):
            while ids and used < room:
                for record in self._read(ids[:batch]):
                    records[record.id] = record
                    hidden = record.sensitivity is Sensitivity.SENSITIVE and not request.include_sensitive
                    if not hidden and record.effective_trust >= min_trust and record.is_live(self.at.now):
                        used += count(record.text) + LINE_OVERHEAD_TOKENS
                ids = ids[batch:]
                # The next batch fills the room if its texts are as long as the earlier ones.
                batch = max(MIN_READ_BATCH, len(records) * (room - used) // used if used else room // TOKENS_PER_READ)
        return records

    def _read_preferences(self, ids: Sequence[str]) -> dict[str, Record]:
        """Return by id the first preferences of the user among some memories."""
        preferences: dict[str, Record] = {}
        for start in range(0, len(ids), TOKENS_PER_READ):
            with self.session.store.read_snapshot(self.session.tenant):
                batch = ids[start : start + TOKENS_PER_READ]
                read = {record.id: record for record in self._read(batch)}
            for name in batch:
                if name in read and len(preferences) < MAX_WEAK_PREFERENCES and mentions_preference(read[name]):
                    preferences[name] = read[name]
            if len(preferences) == MAX_WEAK_PREFERENCES:
                break
        return preferences


def _redact_document(document: tuple[str, str] | None) -> tuple[str, str] | None:
    """Return version and text of a document without secrets: a model reads it, and it is stored for replay."""
    if document is None:
        return None
    safe = redact_secrets(document[1])
    return document if safe == document[1] else (digest(safe)[:16], safe)


def _save_receipt(
    session: RequestContext, gathered: GatheredInput, compiled: CompileResult, delivered: Sequence[Record]
) -> tuple[Receipt | None, tuple[str, ...]]:
    """Store the receipt of a context; return it, or None and a note why it was not stored."""
    inputs = gathered.inputs
    documents = {"identity": inputs.identity, "user_file": inputs.user_file}

    def save_documents(writer: UnitOfWork) -> None:
        for kind, document in documents.items():
            if document is not None:
                writer.put(ReceiptArtefact(session.tenant, kind, *document))

    receipt, notes = save_read_receipt(
        session,
        "compile",
        {**compiled.facts, "context_id": compiled.context_id, "signals": list(gathered.used)},
        delivered=delivered,
        notes=gathered.notes,
        head=inputs.head,
        also=save_documents,
    )
    if notes and not session.inspects:
        # A stored receipt would have counted these uses.
        shown = (item.id for section in compiled.sections for item in section.items if not item.weak)
        session.engine.count_uses(session.tenant, shown)
    return receipt, notes


def replay(session: RequestContext, receipt_id: str) -> Replayed:
    """Render a compiled context again from its receipt, byte for byte.

    Raises:
        NotFound: no compile receipt with this id is visible.
    """
    versions: dict[str, dict[int, Record]] = {}

    def fetch(memory_id: str, version: int) -> Record | None:
        if memory_id not in versions:
            versions[memory_id] = session.reader.contents(memory_id)
        return versions[memory_id].get(version)

    receipt = session.reader.receipt_of_read(receipt_id, COMPILE_RECEIPT_KINDS)
    return render_again(receipt, fetch, partial(session.store.artefact, session.tenant))
