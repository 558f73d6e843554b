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
from typing import Any, Literal

from msgspec.structs import replace

from keepward.context.compiler import MOST_TOKENS, NO_ROOM, RULE_CAP, compile_context, memory_block, snapshot
from keepward.context.entries import reason
from keepward.context.render import Artefact, Fetch, digest
from keepward.context.render import replay as render_again
from keepward.context.sections import FORMATS, Candidate, Compiled, Format, Inputs, newest_rules
from keepward.engine.audit import core_of
from keepward.engine.commit import keep_read
from keepward.engine.features import tells_preference
from keepward.engine.read import Need, Stand, made_with, search, stand
from keepward.engine.screening import screen
from keepward.engine.session import Session, note_handed
from keepward.engine.view import (
    COMPILED,
    WITHHELD,
    ask_for_sensitive,
    ids_of,
    notes_of,
    receipt_of_read,
    refuse_without_core,
    see_readable,
    still_shown,
    unsound,
    withheld,
)
from keepward.engine.waiting import waiting_rows
from keepward.errors import InvalidInput
from keepward.gates.content import scrub_private, scrub_secret
from keepward.model.commit import Reason
from keepward.model.compiled import CompiledContext, Replayed
from keepward.model.memory import Kind, Record, Sensitivity, Stability, Status, Tier
from keepward.model.query import MOST_HITS, AsOf, Filter, Recall
from keepward.model.trust import Trust, visible_from
from keepward.model.value import unknown
from keepward.ports.store import Found, Withheld
from keepward.store.writer import Writer

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
#: What stands in a section whatever is asked, and filters that let all of it through and little else.
_FIXED: dict[str, tuple[Callable[[Record], bool], dict[str, Any]]] = {
    "core": (lambda each: each.tier is Tier.CORE, {"tiers": ("core",)}),
    "pinned": (lambda each: each.stability is Stability.PERMANENT and each.tier is not Tier.CORE, {"permanent": True}),
    "state": (
        lambda each: each.kind is Kind.STATE and each.key is not None and not each.pinned,
        {"keyed": True, "kinds": (Kind.STATE.value,)},
    ),
    "working": (
        lambda each: each.tier is Tier.WORKING and each.stability is not Stability.PERMANENT,
        {"tiers": (Tier.WORKING.value,), "permanent": False},
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a context is asked for."""

    #: None for the policy's.
    budget_tokens: int | None = None
    purpose: str = "answer"
    as_of: AsOf = None
    format: str = "markdown"
    include_sensitive: bool = False
    #: Core blocks, by key or id, that may be missing where they do not hold; others stay in.
    without: Collection[str] = ()
    #: Whether weak hits come in as well.
    include_weak: bool = False
    #: Ids of what is not recalled again.
    seen: Collection[str] = ()


def context(session: Session, objective: str, *, which: Which = "context", **asked: Any) -> CompiledContext:
    """Compile what the handle's scope remembers for an objective: all of it, or one part alone; see ``Asked``.

    ``snapshot`` is what is always injected, ``memory_block`` what is relevant to the objective.

    Raises:
        Tampered: a core block was edited outside of Keepward or is missing, and ``without`` does not name it.
        ContextTooSmall: core memory alone is larger than the budget.
        InvalidInput: an unknown purpose or format, or a budget that is not from 1 to 128,000.
        NotFound: ``as_of`` names no commit.
    """
    return _keep(session, *compiled(session, objective, which, Asked(**asked)))


def compiled(session: Session, objective: str, which: Which, asked: Asked) -> tuple[Inputs, Compiled, Gathered]:
    """Compile a context and keep nothing of it; see ``context``."""
    if asked.include_sensitive:
        ask_for_sensitive(session)
    gathered = _gather(session, objective, asked)
    if which != "memory_block":
        refuse_without_core(gathered.withheld, asked.without)
    compiled = _COMPILERS[which](gathered.inputs)
    return (
        gathered.inputs,
        compiled,
        dataclasses.replace(gathered, notes=(*gathered.notes, *_fallen_out(gathered.inputs, compiled))),
    )


def _fallen_out(inputs: Inputs, compiled: Compiled) -> list[str]:
    """Return a note on what people wrote that had no room, though it is there whatever is asked."""
    lasting = (*inputs.pinned, *inputs.state, *inputs.working)
    people = {each.id for each in lasting if each.trust >= Trust.USER}
    lost = [each.id for each in compiled.excluded if each.reason.code == NO_ROOM.code and each.id in people]
    named = ", ".join(lost[:NAMED])
    return [f"no room for {len(lost)} memories that a person wrote, raise the budget: {named}"] if lost else []


def text_at(session: Session, objective: str, seq: int, *, purpose: str = "answer") -> str:
    """Return the context's text as it was after a commit; nothing is kept of it, since nobody is given it."""
    return compile_context(_gather(session, objective, Asked(purpose=purpose, as_of=seq)).inputs).text


def _format(budget_tokens: int | None, form: str) -> Format:
    if budget_tokens is not None and not 1 <= budget_tokens <= MOST_TOKENS:
        raise InvalidInput(f"a budget is from 1 to {MOST_TOKENS:,} tokens")
    for name in FORMATS:
        if name == form:
            return name
    raise InvalidInput(unknown("format", form, list(FORMATS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What goes into a context, and what is told beside it."""

    inputs: Inputs
    used: tuple[str, ...]
    notes: tuple[str, ...]
    withheld: list[Withheld]


@dataclass(slots=True, kw_only=True)
class Fixed:
    """What may stand in a context whatever is asked, and what of it does not hold."""

    core: list[Record] = field(default_factory=list)
    pinned: list[Record] = field(default_factory=list)
    state: list[Record] = field(default_factory=list)
    working: list[Record] = field(default_factory=list)
    #: Ids of the newest proposals that wait for a person, oldest first, and what is said of them.
    waiting: list[str] = field(default_factory=list)
    why_waiting: Reason = WAITING
    damaged: list[str] = field(default_factory=list)
    #: Core blocks among these.
    damaged_blocks: list[str] = field(default_factory=list)


def _fixed(session: Session, at: Stand, everything: Filter) -> Fixed:
    """Return what stands in a context whatever is asked: in one snapshot, for each reading opens and ends one."""
    if not (session.policy.enabled and session.policy.recall):
        return Fixed()
    damaged: list[str] = []

    def held(section: str) -> list[Record]:
        belongs, narrowed = _FIXED[section]
        records = then
        if at.seq is None:
            present = session.store.find(session.tenant, replace(everything, **narrowed), live_at=None, limit=None)
            records = present.records
            damaged.extend(present.damaged)
        lasting = [each for each in records if belongs(each) and each.status is Status.ACTIVE]
        return [each for each in lasting if each.expires_at is None or each.expires_at > at.now - REMEMBERED]

    with session.store.together(session.tenant):
        # A state of the past is folded from the journal: once, and not for each section.
        past = at.seq is not None
        before = Found()
        if past:
            before = session.store.find(session.tenant, everything, live_at=None, limit=None, as_of=at.seq)
        then = still_shown(session, before.records)
        damaged.extend(before.damaged)
        blocks = Found(records=held("core")) if past else core_of(session)
        waiting = [] if past else [each.id for each in waiting_rows(session)]
        more = len(waiting) - NAMED
        return Fixed(
            core=blocks.records,
            pinned=held("pinned"),
            state=held("state"),
            working=held("working"),
            waiting=waiting[-NAMED:],
            why_waiting=replace(WAITING, detail=f"{WAITING.detail}, as {more:,} older ones do")
            if more > 0
            else WAITING,
            damaged=damaged,
            damaged_blocks=blocks.damaged,
        )


def _gather(session: Session, objective: str, asked: Asked) -> Gathered:
    chosen = _format(asked.budget_tokens, asked.format)
    at = stand(session, asked.as_of)
    everything = Filter(scopes=visible_from(session.scope), include_sensitive=True)
    on = session.policy.enabled and session.policy.recall
    standing = _fixed(session, at, everything)
    damaged = standing.damaged
    recalled = _Recalled(found=Recall(hits=(), used=(), notes=(), head=at.head, now=at.now))
    if objective.strip():
        rules = newest_rules(standing.pinned, RULE_CAP)
        groups = (standing.core, standing.pinned, standing.state, standing.working)
        # A rule beyond the cap is recalled like any other memory.
        fixed = {
            each.id
            for group in groups
            for each in group
            if group is not standing.pinned or each.kind is not Kind.RULE or each.id in rules
        }
        recalled = _recalled(session, objective, asked, at, everything, fixed)
        damaged.extend(recalled.damaged)
    inputs = Inputs(
        objective=scrub_private(scrub_secret(objective)),
        purpose=asked.purpose,
        now=at.now,
        head=at.head,
        scope=session.scope,
        policy=session.policy,
        budget_tokens=asked.budget_tokens,
        identity=_clean(session.engine.identity()) if on else None,
        user_file=_clean(session.engine.user_file()) if on else None,
        core=standing.core,
        pinned=standing.pinned,
        state=standing.state,
        working=[each for each in standing.working if each.kind is not Kind.STATE or each.key is None],
        recalled=recalled.candidates,
        excluded=[*recalled.excluded, *((name, 0, standing.why_waiting) for name in standing.waiting)],
        unlisted=recalled.unlisted,
        counter_name=session.engine.counter.name,
        count=session.engine.counter.count,
        screen=screen,
        versions=made_with(session, recalled.found),
        include_sensitive=asked.include_sensitive,
        include_weak=asked.include_weak,
        format=chosen,
    )
    gone = {each.id: each for each in unsound(damaged)} | {
        each.id: each for each in unsound(standing.damaged_blocks, core=True)
    }
    if at.seq is None and on:
        gone |= {each.id: each for each in withheld(session, everything, live_at=at.now)}
    lost = sorted(gone.values(), key=lambda each: each.id or "~")
    notes = (*recalled.found.notes, *recalled.notes, *notes_of(lost))
    return Gathered(inputs=inputs, used=recalled.found.used, notes=notes, withheld=lost)


@dataclass(slots=True, kw_only=True)
class _Recalled:
    """What was ranked for an objective: what may come in, and what stays out unread."""

    found: Recall
    candidates: list[Candidate] = field(default_factory=list)
    excluded: list[tuple[str, int, Reason]] = field(default_factory=list)
    unlisted: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def _recalled(
    session: Session, objective: str, asked: Asked, at: Stand, everything: Filter, fixed: Collection[str]
) -> _Recalled:
    """Rank memories for an objective, and read by rank those that may come in until they take all the room."""
    from keepward.retrieval.advice import asks_advice

    policy, budget = session.policy, asked.budget_tokens
    most = policy.max_items * SPARE if budget is None else max(LEAST_CANDIDATES, budget // TOKENS_A_CANDIDATE)
    # Nothing is read by the search: what stays out is known without its text.
    need = Need(more=lambda _: 0)
    lasting = replace(everything, tiers=(Tier.EPISODIC.value, Tier.ARCHIVAL.value))
    found = search(
        session,
        objective,
        lasting,
        limit=min(MOST_HITS, most + len(fixed)),
        purpose=asked.purpose,
        gated=False,
        unread=fixed,
        need=need,
        at=at,
    )
    made = _Recalled(found=found)
    seen = frozenset(asked.seen)
    ranked = [each for each in need.left if each.id not in seen]
    made.excluded = [(each.id, each.version, SEEN) for each in need.left if each.id in seen]
    weak = {each.id for each in ranked if each.weak}
    kept_out = frozenset() if asked.include_weak else weak
    records: dict[str, Record] = {}
    room = min(policy.context_budget if budget is None else budget, policy.retrieved_budget)
    left = [each.id for each in ranked if each.id not in kept_out]
    _read(session, left, _until_full(session, asked, at, room), at, made, records)
    if kept_out and asks_advice(objective):
        left = [each.id for each in ranked if each.id in kept_out]
        records |= _preferences(session, left, at, made)
    most_named = max(LEAST_NAMED, 2 * len(records))
    for each in ranked:
        record = records.get(each.id)
        if record is not None:
            strength = max(each.parts["fused"] + each.parts.get("learned", 0.0), 0.0)
            made.candidates.append(
                Candidate(record=record, score=each.score, strength=strength, parts=each.parts, weak=each.id in weak)
            )
        elif each.id not in made.damaged:
            why = WEAK if each.id in kept_out else NO_ROOM
            if most_named:
                most_named -= 1
                made.excluded.append((each.id, each.version, why))
            else:
                made.unlisted[why.code] += 1
    return made


def _preferences(session: Session, ids: Sequence[str], at: Stand, made: _Recalled) -> dict[str, Record]:
    """Return by id the first remembered preferences among some memories."""
    found: dict[str, Record] = {}
    for start in range(0, len(ids), TOKENS_A_READ):
        read: dict[str, Record] = {}
        _read(session, ids[start : start + TOKENS_A_READ], lambda _: MOST_HITS, at, made, read)
        for name in ids[start : start + TOKENS_A_READ]:
            if name in read and len(found) < PREFERENCES and tells_preference(read[name]):
                found[name] = read[name]
        if len(found) == PREFERENCES:
            break
    return found


def _read(
    session: Session,
    ids: Sequence[str],
    more: Callable[[Sequence[Record]], int],
    at: Stand,
    made: _Recalled,
    records: dict[str, Record],
) -> None:
    """Read memories in order, as many at once as ``more`` says of those read before, until it says 0."""
    last: list[Record] = []
    with session.store.together(session.tenant):
        while ids and (step := more(last)):
            part = session.store.records(session.tenant, ids[:step], as_of=at.seq)
            last, ids = part.records, ids[step:]
            made.damaged.extend(part.damaged)
            if at.seq is not None:
                last = still_shown(session, last)
                if len(last) < len(part.records):
                    made.notes = (f"left out: {WITHHELD}",)
            records |= {each.id: each for each in last}


def _until_full(session: Session, asked: Asked, at: Stand, room: int) -> Callable[[Sequence[Record]], int]:
    """Return a function from the memories read last to how many to read next; 0 when their texts fill the room."""
    count = session.engine.counter.count
    least = session.policy.least_trust.get(asked.purpose, Trust.UNKNOWN)
    read = used = 0

    def more(last: Sequence[Record]) -> int:
        nonlocal read, used
        shown = (it for it in last if it.effective_trust >= least and it.is_live(at.now))
        texts = (it.text for it in shown if asked.include_sensitive or it.sensitivity is not Sensitivity.SENSITIVE)
        used += sum(count(text) + BESIDE_A_TEXT for text in texts)
        read += len(last)
        if used >= room:
            return 0
        # As many as will do if they are as long as those before.
        return max(LEAST_READ, read * (room - used) // used if used else room // TOKENS_A_READ)

    return more


def _clean(document: tuple[str, str] | None) -> tuple[str, str] | None:
    """Return version and text of a document with its secrets masked: it is shown to a model and kept for replay."""
    if document is None:
        return None
    safe = scrub_secret(document[1])
    return document if safe == document[1] else (digest(safe)[:16], safe)


def held_in(inputs: Inputs, compiled: Compiled) -> list[Record]:
    """Return the records that a context holds."""
    held = {item.id for section in compiled.sections for item in section.items}
    groups = (inputs.core, inputs.pinned, inputs.state, inputs.working, [each.record for each in inputs.recalled])
    return [record for group in groups for record in group if record.id in held]


def _keep(session: Session, inputs: Inputs, compiled: Compiled, gathered: Gathered) -> CompiledContext:
    notes, given = gathered.notes, held_in(inputs, compiled)
    facts = {**compiled.facts, "context_id": compiled.context_id, "signals": list(gathered.used)}
    note_handed(session, given)
    receipt, unkept = keep_read(
        session,
        "compile",
        facts,
        handed=given,
        notes=notes,
        head=inputs.head,
        also=lambda writer: _keep_documents(writer, session, inputs),
    )
    if unkept and not session.inspects:
        # A receipt that is kept counts them by itself.
        shown = (item.id for section in compiled.sections for item in section.items if not item.weak)
        session.engine.count_uses(session.tenant, shown)
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
        notes=(*notes, *unkept),
        head=inputs.head,
        kept=not unkept,
        withheld=ids_of(gathered.withheld),
        unlisted=inputs.unlisted,
    )


def _keep_documents(writer: Writer, session: Session, inputs: Inputs) -> None:
    for kind, document in (("identity", inputs.identity), ("user_file", inputs.user_file)):
        if document is not None:
            writer.put_artefact(session.tenant, kind, *document)


def replay(session: Session, receipt_id: str) -> Replayed:
    """Render a compiled context again from its receipt, byte for byte.

    Raises:
        NotFound: no such compile receipt within reach.
    """
    return render_again(receipt_of_read(session, receipt_id, COMPILED), *sources(session))


def sources(session: Session) -> tuple[Fetch, Artefact]:
    """Return what a replay fetches memories, at a version, and documents with."""
    versions: dict[str, dict[int, Record]] = {}

    def fetch(memory_id: str, version: int) -> Record | None:
        if memory_id not in versions:
            steps = session.store.steps(session.tenant, memory_id)
            if steps:
                see_readable(session, steps[-1].after, own=False)
            versions[memory_id] = {
                step.after.version: step.after for step in steps if step.after.status is not Status.ERASED
            }
        return versions[memory_id].get(version)

    return fetch, lambda kind, version: session.store.artefact(session.tenant, kind, version)
