"""Contexts: gather what the compiler needs, compile, keep the receipt, and replay it.

Invariants
(1) What held at the read's instant goes in or is excluded with a reason; nothing is dropped in silence.
(2) A context and its receipt are kept in one transaction; a store that cannot be written still compiles
    and says that the receipt was not kept.
(3) A replay reads records at the versions the receipt names, and nothing else.
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

from keepward.context.compiler import (
    MAX_CONTEXT_TOKENS,
    MAX_PINNED_RULES,
    OUT_OF_BUDGET,
    compile_context,
    memory_block,
    snapshot,
)
from keepward.context.entries import compile_reason
from keepward.context.render import digest
from keepward.context.render import replay as render_again
from keepward.context.sections import FORMATS, Candidate, CompileInput, CompileResult, Format, newest_rules
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

#: Ended working memories are named among the exclusions for this long.
EXPIRED_NAMED_FOR = timedelta(days=7)
#: Ranked memories are at most so many for each line that a context without a budget may recall; with a budget one for
#: every so many of its tokens, and at least so many.
CANDIDATES_PER_ITEM = 3
TOKENS_PER_CANDIDATE = 12
MIN_CANDIDATES = 60
#: They are read by rank, about so many tokens each and at least so many at once, until their texts take all the room.
TOKENS_PER_READ = 40
MIN_READ_BATCH = 8
#: Tokens that a line has beside its text, at least: the kind of the memory.
LINE_OVERHEAD_TOKENS = 3
#: A request for advice lets in so many remembered preferences that are weak hits.
MAX_WEAK_PREFERENCES = 10
#: Ranked memories that stay out are named twice as many as were read, and at least so many; the rest is counted.
MIN_NAMED_EXCLUSIONS = 20
#: Why a memory stays out that the reader has at hand.
ALREADY_SEEN = compile_reason("seen", "the reader has it already")
WEAK_HIT = compile_reason("weak", "it hardly bears on the objective, and weak hits were not asked for")
#: Why a proposal does.
AWAITING_REVIEW = compile_reason("quarantine", "it waits for a person's decision")
#: Of what waits so many are named, the newest: a receipt does not grow with a queue that nobody looks after.
MAX_NAMED_PROPOSALS = 20
ContextMode = Literal["context", "snapshot", "memory_block"]
_COMPILERS: dict[ContextMode, Callable[[CompileInput], CompileResult]] = {
    "context": compile_context,
    "snapshot": snapshot,
    "memory_block": memory_block,
}
#: What outside core stands in a section whatever is asked, and filters that let all of it through and little else.
_ALWAYS_INCLUDED: dict[str, tuple[Callable[[Record], bool], dict[str, Any]]] = {
    "pinned": (lambda each: each.stability is Stability.PERMANENT and each.tier is not Tier.CORE, {"permanent": True}),
    "state": (
        # Of a hidden one the key is hidden as well: it is named among the exclusions.
        lambda each: each.kind is Kind.STATE and (each.key is not None or each.text == HIDDEN_TEXT) and not each.pinned,
        {"keyed": True, "kinds": (Kind.STATE.value,)},
    ),
    "working": (
        lambda each: each.tier is Tier.WORKING and each.stability is not Stability.PERMANENT,
        {"tiers": (Tier.WORKING.value,), "permanent": False},
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """How a context is asked for."""

    #: None for the policy's.
    budget_tokens: int | None = None
    purpose: str = "answer"
    as_of: AsOf = None
    format: Format = "markdown"
    include_sensitive: bool = False
    #: Core blocks, by key or id, that may be missing where they do not hold; others stay in.
    without: Collection[str] = ()
    #: Whether weak hits come in as well.
    include_weak: bool = False
    #: Ids of what is not recalled again.
    seen: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredInput:
    """What goes into a context, and what is reported next to it."""

    inputs: CompileInput
    used: tuple[str, ...]
    notes: tuple[str, ...]
    withheld: list[UnreadableMemory]


def context(
    session: RequestContext, objective: str, *, which: ContextMode = "context", preview: bool = False, **asked: Any
) -> CompiledContext:
    """Compile what the handle's scope remembers for an objective: all of it, or one part; see ``ContextRequest``.

    ``snapshot`` is what is always injected, ``memory_block`` what is relevant to the objective. A ``preview`` is
    explained; no receipt is kept and no use is counted.

    Raises:
        Tampered: a core block was edited outside of Keepward or is missing, and ``without`` does not name it.
        ContextTooSmall: core memory alone is larger than the budget.
        InvalidInput: an unknown purpose or format, or a budget that is not from 1 to 128,000.
        NotFound: ``as_of`` names no commit.
        Unauthorised: no receipt says what a preview showed, so it takes a reviewer or the owner.
    """
    if preview and not session.actor.may_decide:
        raise Unauthorised("a preview leaves no receipt; it takes a reviewer or the owner")
    request = ContextRequest(**asked)
    if request.include_sensitive:
        session.reader.check_sensitive()
    gathered = _gather(session, objective, request)
    if which != "memory_block":
        require_core(gathered.withheld, request.without)
    inputs, made = gathered.inputs, _COMPILERS[which](gathered.inputs)
    people = {
        each.id for group in (inputs.pinned, inputs.state, inputs.working) for each in group if each.trust >= Trust.USER
    }
    lost = [each.id for each in made.excluded if each.reason.code == OUT_OF_BUDGET.code and each.id in people]
    if lost:
        named = ", ".join(lost[:MAX_NAMED_PROPOSALS])
        note = f"no room for {len(lost)} memories that a person wrote, raise the budget: {named}"
        gathered = dataclasses.replace(gathered, notes=(*gathered.notes, note))
    held = {item.id for section in made.sections for item in section.items}
    groups = (inputs.core, inputs.pinned, inputs.state, inputs.working, [each.record for each in inputs.recalled])
    handed = [record for group in groups for record in group if record.id in held]
    record_read(session, handed)
    explanation = _explanation(session, inputs, made) if preview else None
    receipt, unkept = (None, ()) if preview else _save_receipt(session, gathered, made, handed)
    return CompiledContext(
        text=made.text,
        context_id=made.context_id,
        receipt=receipt,
        sections=made.sections,
        excluded=made.excluded,
        tokens=made.tokens,
        prefix_digest=made.prefix_digest,
        tail_digest=made.tail_digest,
        used=gathered.used,
        notes=(*gathered.notes, *unkept),
        head=inputs.head,
        kept=receipt is not None,
        withheld=ids_of(gathered.withheld),
        unlisted=inputs.unlisted,
        explanation=explanation,
    )


def bisect(
    session: RequestContext, query: str, predicate: Callable[[str], bool], *, since: int = 0, purpose: str = "answer"
) -> Bisection:
    """Return the commit with which the context for a query began to pass a predicate, in about log2(n) compiles.

    ``since`` is a commit whose context does not pass, 0 for the empty store. Where the answer changed more
    than once in between, it is one of the changes to passing.

    Raises:
        InvalidInput: the newest context does not pass, or that of ``since`` does.
    """
    high = session.store.head(session.tenant).seq
    if not 0 <= since <= high:
        raise NotFound("there is no such commit in this tenant; `keepward log` lists them")

    def text(seq: int) -> str:
        # Before the first commit nothing is remembered; what comes from documents does not hang on commits.
        if not seq:
            return ""
        return compile_context(_gather(session, query, ContextRequest(purpose=purpose, as_of=seq)).inputs).text

    texts = {since: text(since), high: text(high)}
    if not predicate(texts[high]):
        raise InvalidInput("the context after the newest commit does not pass: there is nothing to look for")
    if predicate(texts[since]):
        raise InvalidInput("the context at the start passes already: begin at an earlier commit")
    low = since
    while high - low > 1:
        middle = (low + high) // 2
        texts[middle] = text(middle)
        if predicate(texts[middle]):
            high = middle
        else:
            low = middle
    view = session.reader.commit(str(high))
    return Bisection(commit=view, compiled=len(texts), before=texts[low], after=texts[high])


def _gather(session: RequestContext, objective: str, asked: ContextRequest) -> GatheredInput:
    if asked.budget_tokens is not None and not 1 <= asked.budget_tokens <= MAX_CONTEXT_TOKENS:
        raise InvalidInput(f"a budget is from 1 to {MAX_CONTEXT_TOKENS:,} tokens")
    if asked.format not in FORMATS:
        raise InvalidInput(unknown_name_message("format", asked.format, list(FORMATS)))
    at = read_point(session, asked.as_of)
    everything = Filter(scopes=session.reader.scopes, include_sensitive=True)
    on = session.policy.enabled and session.policy.recall
    gathering = _InputReader(session=session, asked=asked, at=at, everything=everything)
    if on:
        gathering.add_always_included()
    found = Recall(hits=(), used=(), notes=(), head=at.head.name, now=at.now)
    if objective.strip():
        found = gathering.add_recalled(objective)
    sections = gathering.sections
    inputs = CompileInput(
        objective=redact_personal_data(redact_secrets(objective)),
        purpose=asked.purpose,
        now=at.now,
        head=at.head.name,
        scope=session.scope,
        policy=session.policy,
        budget_tokens=asked.budget_tokens,
        identity=_redact_document(session.engine.identity()) if on else None,
        user_file=_redact_document(session.engine.user_file()) if on else None,
        core=sections["core"],
        pinned=sections["pinned"],
        state=sections["state"],
        working=[each for each in sections["working"] if each.kind is not Kind.STATE or each.key is None],
        recalled=gathering.candidates,
        excluded=gathering.excluded,
        unlisted=gathering.unlisted,
        counter_name=session.engine.counter.name,
        count=session.engine.counter.count,
        screen=filter_output,
        versions=models_used(session, found),
        include_sensitive=asked.include_sensitive,
        include_weak=asked.include_weak,
        format=asked.format,
    )
    gone = {each.id: each for each in corrupt_memories(gathering.damaged)}
    gone |= {each.id: each for each in corrupt_memories(gathering.damaged_blocks, core=True)}
    if at.seq is None and on:
        gone |= {each.id: each for each in unreadable_memories(session, everything, live_at=at.now)}
    lost = sorted(gone.values(), key=lambda each: each.id or "~")
    notes = (*found.notes, *gathering.notes, *unreadable_notes(lost))
    return GatheredInput(inputs=inputs, used=found.used, notes=notes, withheld=lost)


@dataclass(slots=True, kw_only=True)
class _InputReader:
    """The memories of one context, as they are read."""

    session: RequestContext
    asked: ContextRequest
    at: ReadPoint
    #: The filter that all that is visible passes.
    everything: Filter
    #: What may stand in a context whatever is asked.
    sections: dict[str, list[Record]] = field(
        default_factory=lambda: {name: [] for name in ("core", *_ALWAYS_INCLUDED)}
    )
    candidates: list[Candidate] = field(default_factory=list)
    #: What stays out unread, by id and version.
    excluded: list[tuple[str, int, Reason]] = field(default_factory=list)
    #: What stays out and is not named, counted by code.
    unlisted: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    damaged_blocks: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def add_always_included(self) -> None:
        """Read what stands in a context whatever is asked: in one snapshot, for each reading opens and ends one."""
        session = self.session
        with session.store.read_snapshot(session.tenant):
            if self.at.seq is None:
                blocks = core_blocks(session)
                self.sections["core"] = [session.reader.hide_content(each) for each in blocks.records]
                self.damaged_blocks = blocks.damaged
                waiting = session.reader.pending_ids()
            else:
                # A state of the past is folded from the journal: once, and not for each section.
                past = self._find({})
                waiting = []
                self.sections["core"] = [each for each in past if each.tier is Tier.CORE and self._is_recent(each)]
            for section, (belongs, narrowed) in _ALWAYS_INCLUDED.items():
                records = self._find(narrowed) if self.at.seq is None else past
                self.sections[section] = [each for each in records if belongs(each) and self._is_recent(each)]
        more = len(waiting) - MAX_NAMED_PROPOSALS
        why = (
            replace(AWAITING_REVIEW, detail=f"{AWAITING_REVIEW.detail}, as {more:,} older ones do")
            if more > 0
            else AWAITING_REVIEW
        )
        self.excluded = [(name, 0, why) for name in waiting[-MAX_NAMED_PROPOSALS:]]

    def _find(self, narrowed: dict[str, Any]) -> list[Record]:
        """Return the records that pass a filter and may be shown; note damaged ones."""
        found = self.session.reader.find(replace(self.everything, **narrowed), live_at=None, as_of=self.at.seq)
        self.damaged.extend(found.damaged)
        return found.records

    def _is_recent(self, record: Record) -> bool:
        """Whether a record is active, or ended lately enough to be named among the exclusions."""
        ended = record.expires_at is not None and record.expires_at <= self.at.now - EXPIRED_NAMED_FOR
        return record.status is Status.ACTIVE and not ended

    def add_recalled(self, objective: str) -> Recall:
        """Rank memories for an objective, and read by rank those that may come in until they take all the room."""
        from keepward.retrieval.advice import asks_advice

        asked, policy, budget = self.asked, self.session.policy, self.asked.budget_tokens
        rules = newest_rules(self.sections["pinned"], MAX_PINNED_RULES)
        # A rule beyond the cap is recalled like any other memory.
        fixed = {
            each.id
            for section, records in self.sections.items()
            for each in records
            if section != "pinned" or each.kind is not Kind.RULE or each.id in rules
        }
        most = (
            policy.max_items * CANDIDATES_PER_ITEM
            if budget is None
            else max(MIN_CANDIDATES, budget // TOKENS_PER_CANDIDATE)
        )
        found, scored = rank(
            self.session,
            objective,
            replace(self.everything, tiers=(Tier.EPISODIC.value, Tier.ARCHIVAL.value)),
            limit=min(MAX_HITS, most + len(fixed)),
            purpose=asked.purpose,
            at=self.at,
            gated=False,
        )
        seen = frozenset(asked.seen)
        self.excluded += [
            (each.id, each.version, ALREADY_SEEN) for each in scored if each.id in seen and each.id not in fixed
        ]
        ranked = [each for each in scored if each.id not in fixed and each.id not in seen]
        weak = set() if asked.include_weak else {each.id for each in ranked if each.weak}
        records = self._read_until_full([each.id for each in ranked if each.id not in weak])
        if weak and asks_advice(objective):
            records |= self._read_preferences([each.id for each in ranked if each.id in weak])
        most_named = max(MIN_NAMED_EXCLUSIONS, 2 * len(records))
        for each in ranked:
            record = records.get(each.id)
            if record is not None:
                strength = max(each.parts["fused"] + each.parts.get("learned", 0.0), 0.0)
                self.candidates.append(
                    Candidate(record=record, score=each.score, strength=strength, parts=each.parts, weak=each.weak)
                )
            elif each.id not in self.damaged:
                why = WEAK_HIT if each.id in weak else OUT_OF_BUDGET
                if most_named:
                    most_named -= 1
                    self.excluded.append((each.id, each.version, why))
                else:
                    self.unlisted[why.code] += 1
        return found

    def _read(self, ids: Sequence[str]) -> list[Record]:
        """Return the records of some memories that may be shown; note damaged ones and those left out."""
        found = self.session.reader.records(ids, as_of=self.at.seq)
        self.damaged.extend(found.damaged)
        if found.left_out:
            self.notes = (f"left out: {HIDDEN_TEXT}",)
        return found.records

    def _read_until_full(self, ids: Sequence[str]) -> dict[str, Record]:
        """Return memories by id, read in order until their texts take all the room."""
        asked, policy, count = self.asked, self.session.policy, self.session.engine.counter.count
        budget = policy.context_budget if asked.budget_tokens is None else asked.budget_tokens
        room = min(budget, policy.retrieved_budget)
        least = policy.least_trust.get(asked.purpose, Trust.UNKNOWN)
        records: dict[str, Record] = {}
        used, step = 0, max(MIN_READ_BATCH, room // TOKENS_PER_READ)
        with self.session.store.read_snapshot(self.session.tenant):
            while ids and used < room:
                part = self._read(ids[:step])
                ids = ids[step:]
                for each in part:
                    records[each.id] = each
                    hidden = each.sensitivity is Sensitivity.SENSITIVE and not asked.include_sensitive
                    if not hidden and each.effective_trust >= least and each.is_live(self.at.now):
                        used += count(each.text) + LINE_OVERHEAD_TOKENS
                # As many as will do if they are as long as those before.
                step = max(MIN_READ_BATCH, len(records) * (room - used) // used if used else room // TOKENS_PER_READ)
        return records

    def _read_preferences(self, ids: Sequence[str]) -> dict[str, Record]:
        """Return by id the first remembered preferences among some memories."""
        found: dict[str, Record] = {}
        for start in range(0, len(ids), TOKENS_PER_READ):
            with self.session.store.read_snapshot(self.session.tenant):
                part = ids[start : start + TOKENS_PER_READ]
                read = {each.id: each for each in self._read(part)}
            for name in part:
                if name in read and len(found) < MAX_WEAK_PREFERENCES and mentions_preference(read[name]):
                    found[name] = read[name]
            if len(found) == MAX_WEAK_PREFERENCES:
                break
        return found


def _redact_document(document: tuple[str, str] | None) -> tuple[str, str] | None:
    """Return version and text of a document with its secrets masked: it is shown to a model and kept for replay."""
    if document is None:
        return None
    safe = redact_secrets(document[1])
    return document if safe == document[1] else (digest(safe)[:16], safe)


def _explanation(session: RequestContext, inputs: CompileInput, compiled: CompileResult) -> Explanation:
    """Explain a context of which nothing is kept; its documents are those of the inputs."""
    documents = {"identity": inputs.identity, "user_file": inputs.user_file}

    def document(kind: str, version: str) -> str | None:
        kept = documents.get(kind)
        return kept[1] if kept is not None and kept[0] == version else None

    return explain_context(session, compiled.facts, document)


def _save_receipt(
    session: RequestContext, gathered: GatheredInput, compiled: CompileResult, handed: Sequence[Record]
) -> tuple[Receipt | None, tuple[str, ...]]:
    """Keep the receipt of a context; return it, or None and a note why it was not kept."""
    inputs = gathered.inputs
    receipt, unkept = save_read_receipt(
        session,
        "compile",
        {**compiled.facts, "context_id": compiled.context_id, "signals": list(gathered.used)},
        delivered=handed,
        notes=gathered.notes,
        head=inputs.head,
        also=lambda writer: _save_documents(writer, session, inputs),
    )
    if unkept and not session.inspects:
        # A receipt that is kept counts them by itself.
        shown = (item.id for section in compiled.sections for item in section.items if not item.weak)
        session.engine.count_uses(session.tenant, shown)
    return receipt, unkept


def _save_documents(writer: UnitOfWork, session: RequestContext, inputs: CompileInput) -> None:
    for kind, document in (("identity", inputs.identity), ("user_file", inputs.user_file)):
        if document is not None:
            writer.put(ReceiptArtefact(session.tenant, kind, *document))


def replay(session: RequestContext, receipt_id: str) -> Replayed:
    """Render a compiled context again from its receipt, byte for byte.

    Raises:
        NotFound: no such compile receipt within reach.
    """
    versions: dict[str, dict[int, Record]] = {}

    def fetch(memory_id: str, version: int) -> Record | None:
        if memory_id not in versions:
            versions[memory_id] = session.reader.contents(memory_id)
        return versions[memory_id].get(version)

    receipt = session.reader.receipt_of_read(receipt_id, COMPILE_RECEIPT_KINDS)
    return render_again(receipt, fetch, partial(session.store.artefact, session.tenant))
