"""Contexts: gather what the compiler needs, compile, keep the receipt, and replay it.

Invariants
(1) What held at the read's instant goes in or is excluded with a reason; nothing is dropped in silence.
(2) A context and its receipt are kept in one transaction; a store that cannot be written still compiles
    and says that the receipt was not kept.
(3) A replay reads records at the versions the receipt names, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from keepward.context.compiler import NO_ROOM, compile_context, memory_block, snapshot
from keepward.context.render import Artefact, Fetch, digest
from keepward.context.render import replay as render_again
from keepward.context.sections import Candidate, Compiled, Format, Inputs
from keepward.engine.audit import core_of
from keepward.engine.commit import keep_read
from keepward.engine.read import Need, Stand, below_floor, floor_of, made_with, search, stand
from keepward.engine.screening import screen
from keepward.engine.session import Engine, Session, note_handed
from keepward.engine.view import (
    COMPILED,
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
from keepward.model.memory import Kind, Record, Sensitivity, Stability, Status, Tier, is_textless
from keepward.model.query import AsOf, Filter, Recall
from keepward.model.trust import Trust, visible_from
from keepward.model.value import unknown
from keepward.ports.store import Found, Withheld
from keepward.store.writer import Writer

#: Ended working memories are named among the exclusions for this long.
REMEMBERED = timedelta(days=7)
#: Recalled candidates ranked for each one that fits: of as many as policy lets in, or where that is a lot of as many
#: as the budget has room for, a candidate for every so many tokens. They are read by rank, so many at once, until their
#: texts alone take all the room.
SPARE = 3
LEAST_CANDIDATES = 60
TOKENS_A_CANDIDATE = 12
LEAST_READ = 8
TOKENS_A_READ = 40
#: Tokens that a line has beside its text, at least: the kind of the memory.
BESIDE_A_TEXT = 3
FORMATS: tuple[Format, ...] = ("markdown", "xml", "messages")
#: Why a memory stays out that the reader has at hand.
SEEN = Reason(gate="compile", code="seen", detail="the reader has it already")
#: Why a proposal does.
WAITING = Reason(gate="compile", code="quarantine", detail="it waits for a person's decision")
#: Of what waits so many are named, the newest: a receipt does not grow with a queue that nobody looks after.
NAMED = 20
#: Why what a program keeps under a key alone does.
TEXTLESS = Reason(gate="compile", code="textless", detail="it has no text; it is read by its key")
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
    #: What scores below is not relevant; None for the policy's.
    floor: float | None = None
    #: Ids of what is not recalled again.
    seen: Collection[str] = ()


def context(session: Session, objective: str, *, which: Which = "context", **asked: Any) -> CompiledContext:
    """Compile what the handle's scope remembers for an objective: all of it, or one part alone; see ``Asked``.

    ``snapshot`` is what is always injected, ``memory_block`` what is relevant to the objective.

    Raises:
        Tampered: a core block was edited outside of Keepward or is missing, and ``without`` does not name it.
        ContextTooSmall: core memory alone is larger than the budget.
        InvalidInput: an unknown purpose or format, a budget below 1, or a floor outside 0..1.
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
    inputs = _without_seen(gathered.inputs, frozenset(asked.seen)) if asked.seen else gathered.inputs
    return inputs, _COMPILERS[which](inputs), gathered


def _without_seen(inputs: Inputs, seen: frozenset[str]) -> Inputs:
    again = [each.record for each in inputs.recalled if each.record.id in seen]
    return replace(
        inputs,
        recalled=[each for each in inputs.recalled if each.record.id not in seen],
        excluded=[*inputs.excluded, *((each.id, each.version, SEEN) for each in again)],
    )


def text_at(session: Session, objective: str, seq: int, *, purpose: str = "answer") -> str:
    """Return the context's text as it was after a commit; nothing is kept of it, since nobody is given it."""
    return compile_context(_gather(session, objective, Asked(purpose=purpose, as_of=seq)).inputs).text


def _budget_and_format(engine: Engine, budget_tokens: int | None, form: str) -> tuple[int, Format]:
    budget = engine.policy.context_budget if budget_tokens is None else budget_tokens
    if budget < 1:
        raise InvalidInput("a budget is at least 1 token")
    for name in FORMATS:
        if name == form:
            return budget, name
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
    budget, chosen = _budget_and_format(session.engine, asked.budget_tokens, asked.format)
    at = stand(session, asked.as_of)
    seq, now = at.seq, at.now
    scopes = visible_from(session.scope)
    everything = Filter(scopes=scopes, include_sensitive=True)
    on = session.policy.enabled and session.policy.recall
    standing = _fixed(session, at, everything)
    core, pinned, state, working = standing.core, standing.pinned, standing.state, standing.working
    damaged = standing.damaged
    fixed = {record.id for group in (core, pinned, state, working) for record in group}
    working = [each for each in working if not (each.kind is Kind.STATE and each.key is not None)]
    least = session.policy.least_trust.get(asked.purpose, Trust.UNKNOWN)
    excluded = _unfit([*pinned, *state, *working], least)
    recalled: list[Candidate] = []
    found = Recall(hits=(), used=(), notes=at.notes, head=at.head, now=now)
    room = min(budget, session.policy.retrieved_budget)
    need = _need(session, least, now, room, sensitive=asked.include_sensitive)
    if objective.strip():
        lasting = replace(everything, tiers=(Tier.EPISODIC.value, Tier.ARCHIVAL.value))
        most = min(session.policy.max_items * SPARE, max(LEAST_CANDIDATES, budget // TOKENS_A_CANDIDATE))
        # One stand for all of it: no section is of another instant, and none of a state before the one named.
        found = search(
            session,
            objective,
            lasting,
            limit=min(1_000, most + len(fixed)),
            purpose=asked.purpose,
            gated=False,
            unread=fixed,
            need=need,
            at=at,
        )
        damaged.extend(found.withheld)
        low = _unfit([hit.memory for hit in found.hits], least)
        unfit = {name for name, _, _ in low}
        excluded += [*low, *((each.id, each.version, NO_ROOM) for each in need.left)]
        recalled = _candidates(found, without=unfit)
    excluded += [(name, 0, standing.why_waiting) for name in standing.waiting]
    barred = {name for name, _, _ in excluded}
    inputs = Inputs(
        objective=scrub_private(scrub_secret(objective)),
        purpose=asked.purpose,
        now=now,
        head=at.head,
        scope=session.scope,
        policy=session.policy,
        budget_tokens=budget,
        identity=_clean(session.engine.identity()) if on else None,
        user_file=_clean(session.engine.user_file()) if on else None,
        core=core,
        pinned=[each for each in pinned if each.id not in barred],
        state=[each for each in state if each.id not in barred],
        working=[each for each in working if each.id not in barred],
        recalled=recalled,
        excluded=excluded,
        counter_name=session.engine.counter.name,
        count=session.engine.counter.count,
        screen=screen,
        versions=made_with(session, found),
        include_sensitive=asked.include_sensitive,
        floor=floor_of(session.engine, asked.floor),
        format=chosen,
    )
    gone = {each.id: each for each in unsound(damaged)} | {
        each.id: each for each in unsound(standing.damaged_blocks, core=True)
    }
    if seq is None and on:
        gone |= {each.id: each for each in withheld(session, everything, live_at=now)}
    lost = sorted(gone.values(), key=lambda each: each.id or "~")
    return Gathered(inputs=inputs, used=found.used, notes=(*found.notes, *notes_of(lost)), withheld=lost)


def _candidates(found: Recall, *, without: Collection[str]) -> list[Candidate]:
    """Return what was recalled, best first."""
    return [
        Candidate(
            record=hit.memory,
            score=hit.score,
            strength=max(hit.parts["fused"] + hit.parts.get("learned", 0.0), 0.0),
            parts=hit.parts,
        )
        for hit in found.hits
        if hit.memory.id not in without
    ]


def _need(session: Session, least: Trust, now: datetime, room: int, *, sensitive: bool) -> Need:
    """Return the need of so many tokens of memories that may come in."""
    count = session.engine.counter.count
    seen = used = 0

    def more(read: Sequence[Record]) -> int:
        nonlocal seen, used
        shown = (it for it in read if it.effective_trust >= least and it.is_live(now))
        texts = (it.text for it in shown if sensitive or it.sensitivity is not Sensitivity.SENSITIVE)
        used += sum(count(text) + BESIDE_A_TEXT for text in texts)
        seen += len(read)
        if used >= room:
            return 0
        # As many as will do if they are as long as those before.
        return max(LEAST_READ, seen * (room - used) // used if used else room // TOKENS_A_READ)

    return Need(more=more)


def _unfit(records: list[Record], least: Trust) -> list[tuple[str, int, Reason]]:
    """Return what is trusted less than a purpose accepts, or has no text, and why it stays out."""
    below = f"is below {least.label}, the least this purpose accepts"
    unfit = []
    for each in records:
        if each.effective_trust < least:
            detail = f"its origin ({each.effective_trust.label}) {below}"
            unfit.append((each.id, each.version, Reason(gate="compile", code="trust", detail=detail)))
        elif is_textless(each):
            unfit.append((each.id, each.version, TEXTLESS))
    return unfit


def _clean(document: tuple[str, str] | None) -> tuple[str, str] | None:
    """Return version and text of a document with its secrets masked: it is shown to a model and kept for replay."""
    if document is None:
        return None
    safe = scrub_secret(document[1])
    return document if safe == document[1] else (digest(safe)[:16], safe)


def notes_on(inputs: Inputs, compiled: Compiled, gathered: Gathered) -> tuple[str, ...]:
    """Return what is to be said of a context: what could not take part, and what was left out below the floor."""
    if compiled.below and compiled.best is not None and compiled.best < inputs.floor:
        return (*gathered.notes, below_floor(compiled.below, inputs.floor))
    return gathered.notes


def held_in(inputs: Inputs, compiled: Compiled) -> list[Record]:
    """Return the records that a context holds."""
    held = {item.id for section in compiled.sections for item in section.items}
    groups = (inputs.core, inputs.pinned, inputs.state, inputs.working, [each.record for each in inputs.recalled])
    return [record for group in groups for record in group if record.id in held]


def _keep(session: Session, inputs: Inputs, compiled: Compiled, gathered: Gathered) -> CompiledContext:
    notes, given = notes_on(inputs, compiled, gathered), held_in(inputs, compiled)
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
        floor=inputs.floor,
        best=compiled.best,
        below=compiled.below,
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
