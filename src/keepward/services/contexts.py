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

from keepward.context.compiler import MOST_TOKENS, NO_ROOM, RULE_CAP, compile_context, memory_block, snapshot
from keepward.context.entries import reason
from keepward.context.render import digest
from keepward.context.render import replay as render_again
from keepward.context.sections import FORMATS, Candidate, Compiled, Format, Inputs, newest_rules
from keepward.core.commit import Reason, Receipt
from keepward.core.compiled import CompiledContext, Explanation, Replayed
from keepward.core.journal import Bisection
from keepward.core.memory import Kind, Record, Sensitivity, Stability, Status, Tier
from keepward.core.query import MOST_HITS, AsOf, Filter, Recall
from keepward.core.trust import Trust
from keepward.core.value import unknown
from keepward.errors import InvalidInput, NotFound, Unauthorised
from keepward.gates.content import scrub_private, scrub_secret
from keepward.ports.store import Withheld
from keepward.services.commit import keep_read
from keepward.services.explain import explained
from keepward.services.features import tells_preference
from keepward.services.read import ReadPoint, made_with, rank, read_point
from keepward.services.reader import WITHHELD
from keepward.services.screening import screen
from keepward.services.session import Session, note_handed
from keepward.services.status import core_of
from keepward.services.view import (
    COMPILED,
    ids_of,
    notes_of,
    refuse_without_core,
    unsound,
    withheld,
)
from keepward.storage.documents import KeptText
from keepward.storage.writer import Writer

#: Ended working memories are named among the exclusions for this long.
REMEMBERED = timedelta(days=7)
#: Ranked memories are at most so many for each line that a context without a budget may recall; with a budget one for
#: every so many of its tokens, and at least so many.
SPARE = 3
TOKENS_A_CANDIDATE = 12
LEAST_CANDIDATES = 60
#: They are read by rank, about so many tokens each and at least so many at once, until their texts take all the room.
TOKENS_A_READ = 40
LEAST_READ = 8
#: Tokens that a line has beside its text, at least: the kind of the memory.
BESIDE_A_TEXT = 3
#: A request for advice lets in so many remembered preferences that are weak hits.
PREFERENCES = 10
#: Ranked memories that stay out are named twice as many as were read, and at least so many; the rest is counted.
LEAST_NAMED = 20
#: Why a memory stays out that the reader has at hand.
SEEN = reason("seen", "the reader has it already")
WEAK = reason("weak", "it hardly bears on the objective, and weak hits were not asked for")
#: Why a proposal does.
WAITING = reason("quarantine", "it waits for a person's decision")
#: Of what waits so many are named, the newest: a receipt does not grow with a queue that nobody looks after.
NAMED = 20
Which = Literal["context", "snapshot", "memory_block"]
_COMPILERS: dict[Which, Callable[[Inputs], Compiled]] = {
    "context": compile_context,
    "snapshot": snapshot,
    "memory_block": memory_block,
}
#: What outside core stands in a section whatever is asked, and filters that let all of it through and little else.
_FIXED: dict[str, tuple[Callable[[Record], bool], dict[str, Any]]] = {
    "pinned": (lambda each: each.stability is Stability.PERMANENT and each.tier is not Tier.CORE, {"permanent": True}),
    "state": (
        # Of a hidden one the key is hidden as well: it is named among the exclusions.
        lambda each: each.kind is Kind.STATE and (each.key is not None or each.text == WITHHELD) and not each.pinned,
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
class Gathered:
    """What goes into a context, and what is reported next to it."""

    inputs: Inputs
    used: tuple[str, ...]
    notes: tuple[str, ...]
    withheld: list[Withheld]


def context(
    session: Session, objective: str, *, which: Which = "context", preview: bool = False, **asked: Any
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
        refuse_without_core(gathered.withheld, request.without)
    inputs, made = gathered.inputs, _COMPILERS[which](gathered.inputs)
    people = {
        each.id for group in (inputs.pinned, inputs.state, inputs.working) for each in group if each.trust >= Trust.USER
    }
    lost = [each.id for each in made.excluded if each.reason.code == NO_ROOM.code and each.id in people]
    if lost:
        named = ", ".join(lost[:NAMED])
        note = f"no room for {len(lost)} memories that a person wrote, raise the budget: {named}"
        gathered = dataclasses.replace(gathered, notes=(*gathered.notes, note))
    held = {item.id for section in made.sections for item in section.items}
    groups = (inputs.core, inputs.pinned, inputs.state, inputs.working, [each.record for each in inputs.recalled])
    handed = [record for group in groups for record in group if record.id in held]
    note_handed(session, handed)
    explanation = _explanation(session, inputs, made) if preview else None
    receipt, unkept = (None, ()) if preview else _keep(session, gathered, made, handed)
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
    session: Session, query: str, predicate: Callable[[str], bool], *, since: int = 0, purpose: str = "answer"
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


def _gather(session: Session, objective: str, asked: ContextRequest) -> Gathered:
    if asked.budget_tokens is not None and not 1 <= asked.budget_tokens <= MOST_TOKENS:
        raise InvalidInput(f"a budget is from 1 to {MOST_TOKENS:,} tokens")
    if asked.format not in FORMATS:
        raise InvalidInput(unknown("format", asked.format, list(FORMATS)))
    at = read_point(session, asked.as_of)
    everything = Filter(scopes=session.reader.scopes, include_sensitive=True)
    on = session.policy.enabled and session.policy.recall
    gathering = _Gathering(session=session, asked=asked, at=at, everything=everything)
    if on:
        gathering.add_fixed()
    found = Recall(hits=(), used=(), notes=(), head=at.head.name, now=at.now)
    if objective.strip():
        found = gathering.add_recalled(objective)
    sections = gathering.sections
    inputs = Inputs(
        objective=scrub_private(scrub_secret(objective)),
        purpose=asked.purpose,
        now=at.now,
        head=at.head.name,
        scope=session.scope,
        policy=session.policy,
        budget_tokens=asked.budget_tokens,
        identity=_clean(session.engine.identity()) if on else None,
        user_file=_clean(session.engine.user_file()) if on else None,
        core=sections["core"],
        pinned=sections["pinned"],
        state=sections["state"],
        working=[each for each in sections["working"] if each.kind is not Kind.STATE or each.key is None],
        recalled=gathering.candidates,
        excluded=gathering.excluded,
        unlisted=gathering.unlisted,
        counter_name=session.engine.counter.name,
        count=session.engine.counter.count,
        screen=screen,
        versions=made_with(session, found),
        include_sensitive=asked.include_sensitive,
        include_weak=asked.include_weak,
        format=asked.format,
    )
    gone = {each.id: each for each in unsound(gathering.damaged)}
    gone |= {each.id: each for each in unsound(gathering.damaged_blocks, core=True)}
    if at.seq is None and on:
        gone |= {each.id: each for each in withheld(session, everything, live_at=at.now)}
    lost = sorted(gone.values(), key=lambda each: each.id or "~")
    notes = (*found.notes, *gathering.notes, *notes_of(lost))
    return Gathered(inputs=inputs, used=found.used, notes=notes, withheld=lost)


@dataclass(slots=True, kw_only=True)
class _Gathering:
    """The memories of one context, as they are read."""

    session: Session
    asked: ContextRequest
    at: ReadPoint
    #: The filter that all that is visible passes.
    everything: Filter
    #: What may stand in a context whatever is asked.
    sections: dict[str, list[Record]] = field(default_factory=lambda: {name: [] for name in ("core", *_FIXED)})
    candidates: list[Candidate] = field(default_factory=list)
    #: What stays out unread, by id and version.
    excluded: list[tuple[str, int, Reason]] = field(default_factory=list)
    #: What stays out and is not named, counted by code.
    unlisted: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    damaged_blocks: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    def add_fixed(self) -> None:
        """Read what stands in a context whatever is asked: in one snapshot, for each reading opens and ends one."""
        session = self.session
        with session.store.together(session.tenant):
            if self.at.seq is None:
                blocks = core_of(session)
                self.sections["core"] = [session.reader.redacted(each) for each in blocks.records]
                self.damaged_blocks = blocks.damaged
                waiting = session.reader.pending_ids()
            else:
                # A state of the past is folded from the journal: once, and not for each section.
                past = self._find({})
                waiting = []
                self.sections["core"] = [each for each in past if each.tier is Tier.CORE and self._lasts(each)]
            for section, (belongs, narrowed) in _FIXED.items():
                records = self._find(narrowed) if self.at.seq is None else past
                self.sections[section] = [each for each in records if belongs(each) and self._lasts(each)]
        more = len(waiting) - NAMED
        why = replace(WAITING, detail=f"{WAITING.detail}, as {more:,} older ones do") if more > 0 else WAITING
        self.excluded = [(name, 0, why) for name in waiting[-NAMED:]]

    def _find(self, narrowed: dict[str, Any]) -> list[Record]:
        """Return the records that pass a filter and may be shown; note damaged ones."""
        found = self.session.reader.find(replace(self.everything, **narrowed), live_at=None, as_of=self.at.seq)
        self.damaged.extend(found.damaged)
        return found.records

    def _lasts(self, record: Record) -> bool:
        """Whether a record is active, or ended lately enough to be named among the exclusions."""
        ended = record.expires_at is not None and record.expires_at <= self.at.now - REMEMBERED
        return record.status is Status.ACTIVE and not ended

    def add_recalled(self, objective: str) -> Recall:
        """Rank memories for an objective, and read by rank those that may come in until they take all the room."""
        from keepward.retrieval.advice import asks_advice

        asked, policy, budget = self.asked, self.session.policy, self.asked.budget_tokens
        rules = newest_rules(self.sections["pinned"], RULE_CAP)
        # A rule beyond the cap is recalled like any other memory.
        fixed = {
            each.id
            for section, records in self.sections.items()
            for each in records
            if section != "pinned" or each.kind is not Kind.RULE or each.id in rules
        }
        most = policy.max_items * SPARE if budget is None else max(LEAST_CANDIDATES, budget // TOKENS_A_CANDIDATE)
        found, scored = rank(
            self.session,
            objective,
            replace(self.everything, tiers=(Tier.EPISODIC.value, Tier.ARCHIVAL.value)),
            limit=min(MOST_HITS, most + len(fixed)),
            purpose=asked.purpose,
            at=self.at,
            gated=False,
        )
        seen = frozenset(asked.seen)
        self.excluded += [(each.id, each.version, SEEN) for each in scored if each.id in seen and each.id not in fixed]
        ranked = [each for each in scored if each.id not in fixed and each.id not in seen]
        weak = set() if asked.include_weak else {each.id for each in ranked if each.weak}
        records = self._read_until_full([each.id for each in ranked if each.id not in weak])
        if weak and asks_advice(objective):
            records |= self._read_preferences([each.id for each in ranked if each.id in weak])
        most_named = max(LEAST_NAMED, 2 * len(records))
        for each in ranked:
            record = records.get(each.id)
            if record is not None:
                strength = max(each.parts["fused"] + each.parts.get("learned", 0.0), 0.0)
                self.candidates.append(
                    Candidate(record=record, score=each.score, strength=strength, parts=each.parts, weak=each.weak)
                )
            elif each.id not in self.damaged:
                why = WEAK if each.id in weak else NO_ROOM
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
            self.notes = (f"left out: {WITHHELD}",)
        return found.records

    def _read_until_full(self, ids: Sequence[str]) -> dict[str, Record]:
        """Return memories by id, read in order until their texts take all the room."""
        asked, policy, count = self.asked, self.session.policy, self.session.engine.counter.count
        budget = policy.context_budget if asked.budget_tokens is None else asked.budget_tokens
        room = min(budget, policy.retrieved_budget)
        least = policy.least_trust.get(asked.purpose, Trust.UNKNOWN)
        records: dict[str, Record] = {}
        used, step = 0, max(LEAST_READ, room // TOKENS_A_READ)
        with self.session.store.together(self.session.tenant):
            while ids and used < room:
                part = self._read(ids[:step])
                ids = ids[step:]
                for each in part:
                    records[each.id] = each
                    hidden = each.sensitivity is Sensitivity.SENSITIVE and not asked.include_sensitive
                    if not hidden and each.effective_trust >= least and each.is_live(self.at.now):
                        used += count(each.text) + BESIDE_A_TEXT
                # As many as will do if they are as long as those before.
                step = max(LEAST_READ, len(records) * (room - used) // used if used else room // TOKENS_A_READ)
        return records

    def _read_preferences(self, ids: Sequence[str]) -> dict[str, Record]:
        """Return by id the first remembered preferences among some memories."""
        found: dict[str, Record] = {}
        for start in range(0, len(ids), TOKENS_A_READ):
            with self.session.store.together(self.session.tenant):
                part = ids[start : start + TOKENS_A_READ]
                read = {each.id: each for each in self._read(part)}
            for name in part:
                if name in read and len(found) < PREFERENCES and tells_preference(read[name]):
                    found[name] = read[name]
            if len(found) == PREFERENCES:
                break
        return found


def _clean(document: tuple[str, str] | None) -> tuple[str, str] | None:
    """Return version and text of a document with its secrets masked: it is shown to a model and kept for replay."""
    if document is None:
        return None
    safe = scrub_secret(document[1])
    return document if safe == document[1] else (digest(safe)[:16], safe)


def _explanation(session: Session, inputs: Inputs, compiled: Compiled) -> Explanation:
    """Explain a context of which nothing is kept; its documents are those of the inputs."""
    documents = {"identity": inputs.identity, "user_file": inputs.user_file}

    def document(kind: str, version: str) -> str | None:
        kept = documents.get(kind)
        return kept[1] if kept is not None and kept[0] == version else None

    return explained(session, compiled.facts, document)


def _keep(
    session: Session, gathered: Gathered, compiled: Compiled, handed: Sequence[Record]
) -> tuple[Receipt | None, tuple[str, ...]]:
    """Keep the receipt of a context; return it, or None and a note why it was not kept."""
    inputs = gathered.inputs
    receipt, unkept = keep_read(
        session,
        "compile",
        {**compiled.facts, "context_id": compiled.context_id, "signals": list(gathered.used)},
        handed=handed,
        notes=gathered.notes,
        head=inputs.head,
        also=lambda writer: _keep_documents(writer, session, inputs),
    )
    if unkept and not session.inspects:
        # A receipt that is kept counts them by itself.
        shown = (item.id for section in compiled.sections for item in section.items if not item.weak)
        session.engine.count_uses(session.tenant, shown)
    return receipt, unkept


def _keep_documents(writer: Writer, session: Session, inputs: Inputs) -> None:
    for kind, document in (("identity", inputs.identity), ("user_file", inputs.user_file)):
        if document is not None:
            writer.put(KeptText(session.tenant, kind, *document))


def replay(session: Session, receipt_id: str) -> Replayed:
    """Render a compiled context again from its receipt, byte for byte.

    Raises:
        NotFound: no such compile receipt within reach.
    """
    versions: dict[str, dict[int, Record]] = {}

    def fetch(memory_id: str, version: int) -> Record | None:
        if memory_id not in versions:
            versions[memory_id] = session.reader.contents(memory_id)
        return versions[memory_id].get(version)

    receipt = session.reader.receipt_of_read(receipt_id, COMPILED)
    return render_again(receipt, fetch, partial(session.store.artefact, session.tenant))
