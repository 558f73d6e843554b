"""What the gates are shown of the store for one change, with what earlier changes of the same proposal would store.

Invariants
(1) A memory matters to the gates when it is the nearest, when its text may state the same, or when it was revised
    before; the others are left out unread, and their order is that of the store.
(2) What lies ahead of a batch is asked once, on one state of the store; a commit in between makes the whole batch
    be judged anew.
"""

from __future__ import annotations

import heapq
import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any

from keepward.core import change as ask
from keepward.core.memory import ContentType, Kind, Record, Status, Tier, importance_at
from keepward.core.principals import ActorKind, Trust
from keepward.core.query import Filter
from keepward.core.value import plain_key
from keepward.errors import Conflict, InvalidInput, StaleVersion
from keepward.gates import pipeline
from keepward.gates.detectors.matcher import Finding
from keepward.gates.detectors.near_duplicate import NormalizedText
from keepward.gates.detectors.normalize import Text
from keepward.gates.gate_types import GateContext, GateInput
from keepward.ports.store import MIN_ID_PREFIX, DuplicateCandidate, Features
from keepward.retrieval.chunking import PROVIDED
from keepward.services.access import is_unchanged_since, key_holder
from keepward.services.erasure_references import blocked_by_erasure
from keepward.services.request_context import RequestContext
from keepward.services.search_features import text_digest, text_features
from keepward.storage.reads import MAX_DUPLICATE_CANDIDATES, MIN_SHARED_MINHASHES, Reader
from keepward.storage.rows import dedup_partition

#: What of a memory its features are made of, beside when it was written; and where it is compared.
FEATURE_FIELDS = ("text", "key", "tags", "category", "speaker", "occurred_at", "kind")
feature_fields_of = attrgetter(*FEATURE_FIELDS)
#: Versions of a memory that are looked through for a text that was corrected.
MAX_VERSIONS_SEARCHED = 50


def prefetch(session: RequestContext, records: Sequence[Record], overlay: StagedState) -> None:
    """Ask the store about new memories that are about to be judged one by one."""
    fresh = [(record, overlay.words(record)) for record in records]
    if not fresh:
        return
    found = session.store.duplicate_candidates(session.tenant, fresh, session.clock.now())
    overlay.ahead = {record.id: each for (record, _), each in zip(fresh, found, strict=True)}
    if blocked_by_erasure(session, *records) is None:
        overlay.unburied = {record.id: record for record in records}


def neighbours(session: RequestContext, after: Record, overlay: StagedState) -> tuple[Record, ...]:
    """Return the memories that matter to whether a new one is a duplicate, the nearest first (1)."""
    if after.kind is Kind.EVENT and after.tier is Tier.EPISODIC and after.aliases:
        # Events are compared by name, not by likeness.
        mine = [record for record in overlay.records.values() if set(record.aliases) & set(after.aliases)]
        return (*mine, *session.store.records(session.tenant, after.aliases).records)
    features = overlay.words(after)
    found: list[Record] = []
    for record in overlay.similar(after, features):
        theirs = overlay.words(record)
        kindred = theirs.trait == features.trait or theirs.digest == features.digest
        if not found or kindred or record.version > 1:
            found.append(record)
    wanted: list[str] = []
    for each in _duplicate_candidates(session, after, overlay):
        if each.id in overlay.records:
            continue
        # 0: its version is not known before it is read.
        if each.kindred or not (found or wanted) or each.version != 1:
            wanted.append(each.id)
    if wanted:
        place = (after.scope, after.tier, after.sensitivity)
        now = session.clock.now()
        read = session.store.records(session.tenant, wanted).records
        found += (each for each in read if each.is_live(now) and (each.scope, each.tier, each.sensitivity) == place)
    return tuple(found)


def _duplicate_candidates(session: RequestContext, after: Record, overlay: StagedState) -> Sequence[DuplicateCandidate]:
    known = overlay.ahead.get(after.id)
    if known is None:
        ((likely, has_digest),) = session.store.duplicate_candidates(
            session.tenant, [(after, overlay.words(after))], session.clock.now()
        )
        known = overlay.ahead[after.id] = (likely, has_digest)
    return known[0]


def previous_statements(
    session: RequestContext, revised: Sequence[Record], after: Record, overlay: StagedState, *, known: bool
) -> tuple[Record, ...]:
    """Return what said the same and does not any more: earlier versions of these records, and superseded memories.

    ``known`` is whether any memory of the tenant may have the text.
    """
    if after.kind not in {Kind.FACT, Kind.RULE}:
        # A state comes and goes; that it is as it was before is news.
        return ()
    digest = overlay.words(after).digest
    earlier: list[Record] = []
    for record in revised:
        # A fact that was corrected more often than that is a state in all but name.
        if (
            not 1 < record.version <= MAX_VERSIONS_SEARCHED
            or record.kind is Kind.STATE
            or text_digest(record.text) == digest
        ):
            continue
        history = (step.after for step in session.store.steps(session.tenant, record.id))
        earlier += [version for version in history if text_digest(version.text) == digest]
    old = session.store.superseded(session.tenant, after.scope, digest).records if known else []
    return (*earlier, *old)


#: What an id, or the beginning of one that may stand for it, looks like.
_ID = re.compile(rf"[0-9a-f-]{{{MIN_ID_PREFIX},36}}")
_KIND = re.compile(r"[a-z][a-z_]{0,40}")
_MARKER = re.compile(r"\[[A-Z_]+\]")


def find_personal_data(
    session: RequestContext, case: GateInput, known: dict[str, tuple[Finding, ...]]
) -> dict[str, tuple[Finding, ...]]:
    """Return what the redactor finds, by text, and note it in ``known``; nothing where there is none.

    Raises:
        ModelUnavailable: it cannot be used now.
        InvalidInput: it named a span outside of the text, or a kind that is no name.
    """
    if session.redactor is None:
        return {}
    stored = [text.text for _, text in case.texts]
    for text in stored:
        if text not in known:
            spans = [_finding(text, *span) for span in session.redactor.find(text)]
            known[text] = tuple(each for each in spans if not _MARKER.fullmatch(text[each.start : each.end]))
    return {text: known[text] for text in stored if known[text]}


def _finding(text: str, start: int, end: int, kind: str) -> Finding:
    if not (0 <= start < end <= len(text) and _KIND.fullmatch(kind)):
        raise InvalidInput("the redactor named a span outside of the text, or a kind that is no lower-case name")
    return Finding(detector=kind, start=start, end=end)


#: Newest holders of one mark that are counted: those of a proposal are at hand.
MAX_MINHASH_HOLDERS = 64
_USER_SOURCES = frozenset({"user_message", "user", "chat"})


@dataclass(slots=True)
class StagedState:
    """What the steps judged so far would store."""

    records: dict[str, Record] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    #: Ids by where a memory stands and by mark.
    marks: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    arrivals: Counter[Tier] = field(default_factory=Counter)
    #: Active memories of the tenant by tier when the proposal began; None until asked.
    tally: dict[str, int] | None = None
    #: Ids that new memories would have had, to the memories that said the same already.
    renamed: dict[str, str] = field(default_factory=dict)
    #: By id of a new memory, what was found out about it before it is judged; see ``prefetch``.
    ahead: dict[str, tuple[Sequence[DuplicateCandidate], bool]] = field(default_factory=dict)
    #: New memories that no erasure stands against.
    unburied: dict[str, Record] = field(default_factory=dict)
    #: Texts of this proposal as they are compared.
    forms: dict[str, NormalizedText] = field(default_factory=dict)
    #: By id, the text that a vector was given for, its model, and the vector as it is kept.
    vectors: dict[str, tuple[str, str, bytes]] = field(default_factory=dict)
    _words: dict[str, tuple[Record, Features]] = field(default_factory=dict)

    def features(self, record: Record) -> Features:
        """Return ``words`` of a record, with the vector that was given for this very text, where one was."""
        text, model, packed = self.vectors.get(record.id, ("", "", b""))
        features = self.words(record)
        if not packed or text != record.text:
            return features
        return replace(features, model=model, recipe=PROVIDED, vectors=packed, units=1)

    def words(self, record: Record) -> Features:
        """Return the features of a record that need no model, computed once for each form of it."""
        kept = self._words.get(record.id)
        if kept is None or (
            kept[0] is not record
            and (kept[0].created_at, *feature_fields_of(kept[0])) != (record.created_at, *feature_fields_of(record))
        ):
            form = self.forms.get(record.text)
            if form is None:
                form = self.forms[record.text] = NormalizedText(record.text)
            kept = self._words[record.id] = (record, text_features(record, form))
        return kept[1]

    def take(self, before: Record | None, after: Record) -> None:
        """Add one step."""
        features = self.words(after)
        self.records[after.id] = after
        if before is not None and before.key is not None:
            self.keys.pop((before.scope, before.key), None)
        if after.key is not None and after.status is Status.ACTIVE:
            self.keys[after.scope, after.key] = after.id
        if before is None:
            self.arrivals[after.tier] += 1
        held = self.marks.setdefault(dedup_partition(after), {})
        for mark in features.marks:
            held.setdefault(mark, []).append(after.id)

    def similar(self, record: Record, features: Features) -> list[Record]:
        """Return records of this proposal that share marks with one, most first, ties by age, at most 8."""
        held = self.marks.get(dedup_partition(record), {})
        crowds = [crowd for mark in features.marks if (crowd := held.get(mark))]
        if len(crowds) < MIN_SHARED_MINHASHES:
            return []
        # Counted in one go: to begin anew for each mark costs as much as the counting.
        shared = Counter(chain.from_iterable([crowd[-MAX_MINHASH_HOLDERS:] for crowd in crowds]))
        shared.pop(record.id, None)
        likely = [(-count, other) for other, count in shared.items() if count >= MIN_SHARED_MINHASHES]
        nearest = heapq.nsmallest(MAX_DUPLICATE_CANDIDATES, likely)
        return [each for _, other in nearest if (each := self.records[other]).status is Status.ACTIVE]


def record_before(session: RequestContext, change: ask.Change, overlay: StagedState) -> Record | None:
    """Return the record a change builds on, None for a new memory.

    Raises:
        NotFound: the memory is not there, or not within reach.
        Unauthorised: it is sensitive, another's, and the handle has no right to read that.
        StaleVersion: the memory has been changed since the version that ``if_version`` names.
        Conflict: the memory no longer holds, and the change is not one that brings it back; or what is to
            replace it does not hold.
    """
    if isinstance(change, ask.Insert):
        if change.key is None:
            return None
        held = overlay.keys.get((change.scope, change.key))
        there = overlay.records[held] if held else key_holder(session, change.scope, change.key)
        if there is not None:
            session.reader.check_key_holder(there)
        if change.if_version not in {None, there.version if there else 0} and not (
            there and there.id not in overlay.records and is_unchanged_since(session, there, change.if_version or 0)
        ):
            seen = f"memory {there.id} at version {there.version}" if there else "nobody"
            raise StaleVersion(f"the key is held by {seen}; read it again and decide anew")
        return there
    before = newest_record(session, change.id, overlay)
    wanted = getattr(change, "if_version", None)
    # An earlier change of the same proposal is no bookkeeping, so nothing but the newest version will do behind it.
    own = before.id in overlay.records
    if wanted not in {None, before.version} and (own or not is_unchanged_since(session, before, wanted)):
        raise StaleVersion(
            f"memory {before.id} is at version {before.version}, not {wanted}; read it again and decide anew"
        )
    state = before.status_at(session.clock.now())
    if state is Status.ERASED:
        raise Conflict(f"memory {before.id} was erased and cannot come back; what is left is its tombstone")
    # What was replaced or has run out may still be retired, so that it can be told apart from what is kept.
    ends = isinstance(change, ask.Retire) and state in {Status.SUPERSEDED, Status.EXPIRED}
    ends = ends or (isinstance(change, ask.Expire) and before.status is Status.ACTIVE)
    if not ends and not isinstance(change, ask.Restore | ask.Revert) and state is not Status.ACTIVE:
        raise Conflict(f"memory {before.id} is {state.value}; restore it first")
    if isinstance(change, ask.Supersede):
        _successor(session, change, before, overlay)
    return before


def newest_record(session: RequestContext, name: str, overlay: StagedState) -> Record:
    """Return a memory as the proposal has made it so far."""
    held = overlay.records.get(name)
    if held is None:
        held = session.reader.fetch(name, own=True)
        held = overlay.records.get(held.id, held)
    return held


def _successor(session: RequestContext, change: ask.Supersede, before: Record, overlay: StagedState) -> None:
    """See that what replaces a memory is another one that holds, so that every chain ends in a live memory."""
    by = newest_record(session, change.by, overlay)
    if by.id == before.id:
        raise Conflict(f"memory {by.id} cannot be replaced by itself; name another")
    if not by.is_live(session.clock.now()):
        raise Conflict(f"memory {by.id} does not hold and cannot replace another; restore it first")


def parents_of(session: RequestContext, change: ask.Change, overlay: StagedState) -> dict[str, Record]:
    """Return the records a new memory names as what it was made from.

    Raises:
        NotFound: one of them is not within reach.
    """
    if not isinstance(change, ask.Insert):
        return {}
    return {parent: newest_record(session, parent, overlay) for parent in change.derived_from}


def gate_context(
    session: RequestContext, change: ask.Change, before: Record | None, after: Record, overlay: StagedState
) -> GateContext:
    """Return what the gates may see of the store for one step, but for what ``compare`` adds."""
    now = session.clock.now()
    writes = isinstance(change, (*ask.TEXT_CHANGES, ask.Promote, ask.Restore, ask.Revert))
    seen: dict[str, Any] = {"now": now}
    if after.tier is Tier.CORE and writes:
        seen["tokens"] = session.engine.counter.count(after.text)
    identity = session.engine.identity()
    if identity is not None:
        seen["identity_text"] = identity[1]
    claims = getattr(change, "source", None) in _USER_SOURCES and session.actor.kind is ActorKind.AGENT
    if (after.tier is Tier.CORE and after.key == "human") or (claims and after.evidence):
        seen["user_evidence"] = _recorded_evidence(session, after.evidence)
    if isinstance(change, ask.Move | ask.Restore):
        _key_is_free(session, after, overlay)
    if isinstance(change, ask.Insert | ask.Move):
        seen["taken"] = _taken_names(session, before, after, overlay)
    if isinstance(change, ask.Supersede):
        seen["successor"] = overlay.records.get(change.by) or session.reader.fetch(change.by, own=True)
    if isinstance(change, ask.Restore):
        seen["contained"] = session.store.steps(session.tenant, after.id)[-1].op == "contain"
    return GateContext(**seen)


def with_comparisons(session: RequestContext, case: GateInput, view: GateContext, overlay: StagedState) -> GateContext:
    """Return a view with the memories that a step is compared with, and how many its tier holds."""
    change, before, after = case.change, case.before, case.after
    seen: dict[str, Any] = {}
    arrives = before is None or before.tier is not after.tier or isinstance(change, ask.Restore)
    if arrives and after.tier in session.policy.capacity:
        if overlay.tally is None:
            overlay.tally = session.store.tally(session.tenant)
        count = overlay.tally.get(after.tier._value_, 0) + overlay.arrivals[after.tier]
        full = count >= session.policy.capacity[after.tier]
        seen = {"counts": {after.tier: count}, "spare": _evictable_memory(session, after.tier) if full else None}
    if not isinstance(change, ask.Insert):
        return replace(view, **seen)
    near = neighbours(session, after, overlay) if before is None else ()
    # What a value under another name was before says nothing of this one.
    named = after.key is not None and after.content_type is ContentType.STRUCTURED
    revised = (before,) if before is not None else () if named else near
    known = overlay.ahead.get(after.id, ((), True))[1]
    past = previous_statements(session, revised, after, overlay, known=known)
    return replace(view, **seen, neighbours=near, echoes=past, forms=overlay.forms)


def case_of(
    session: RequestContext, change: ask.Change, before: Record | None, after: Record, *, reason: str = ""
) -> GateInput:
    """Return one step of a handle, for the gates."""
    return GateInput(
        change=change,
        actor=session.actor,
        scope=session.scope,
        write_scope=session.reader.write_scope(),
        before=before,
        after=after,
        reason=reason,
    )


def _taken_names(session: RequestContext, before: Record | None, after: Record, overlay: StagedState) -> frozenset[str]:
    """Return new aliases, and a new key, by which another memory goes that the handle sees.

    An alias is compared with keys whatever its case and look-alike letters; both are compared with ids.
    """
    forms = {each: _key_forms(each) for each in after.aliases if before is None or each not in before.aliases}
    scopes = session.reader.scopes_above(after.scope)
    if forms:
        holders = session.store.ids_by_key(session.tenant, {form for each in forms.values() for form in each}, scopes)
        holders += [(key, held) for (scope, key), held in overlay.keys.items() if scope in scopes]
        keys = {key for key, held in holders if held != after.id}
    taken = {name for name, spelled in forms.items() if not spelled.isdisjoint(keys)}
    if after.key is not None and (before is None or before.key != after.key):
        forms[after.key] = {after.key}
    taken |= {
        name for name, spelled in forms.items() if any(_begins_an_id(session, form, after.id) for form in spelled)
    }
    return frozenset(taken)


def _key_forms(alias: str) -> set[str]:
    """Return the keys that an alias may be taken for."""
    plain = plain_key(alias)
    folded = Text(plain).normal.text
    return {form for each in (plain, folded) for form in (each, each.casefold(), each.upper(), each.title())}


def _begins_an_id(session: RequestContext, name: str, own: str) -> bool:
    """Whether a name is the id of another memory that the handle sees, or its first 8 or more characters."""
    return bool(_ID.fullmatch(name) and session.reader.ids_beginning(name) - {own})


def _key_is_free(session: RequestContext, after: Record, overlay: StagedState) -> None:
    if after.key is None:
        return
    holder = overlay.keys.get((after.scope, after.key))
    if holder is None:
        stored = key_holder(session, after.scope, after.key)
        # What this proposal has touched already holds the key by the overlay alone.
        holder = stored.id if stored is not None and stored.id not in overlay.records else None
    if holder not in {None, after.id}:
        raise Conflict("the key is held by another memory; revise that one, or choose another key")


def least_useful(reader: Reader, tenant: str, records: Sequence[Record], now: datetime) -> list[Record]:
    """Return records in the order in which a full tier gives them up.

    Least important by now first; being used makes a memory more important, at once and before the job that notes it.
    Then least used, least trusted, oldest, by id.
    """
    uses = reader.usage(tenant, [record.id for record in records])

    def useful(record: Record) -> tuple[float, int, Trust, datetime, str]:
        used, last = uses.get(record.id, (0, None))
        return (
            importance_at(record, now, last) * (1 + math.log1p(used)),
            used,
            record.trust,
            record.created_at,
            record.id,
        )

    return sorted(records, key=useful)


def _evictable_memory(session: RequestContext, tier: Tier) -> Record | None:
    """Return the least useful memory of a full tier that is not the owner's own."""
    everything = Filter(scopes=(), tiers=(tier.value,), permanent=False, include_sensitive=True)
    found = session.store.find(session.tenant, everything, live_at=None, limit=None).records
    spares = [record for record in found if record.status is Status.ACTIVE and record.trust is not Trust.OWNER]
    return next(iter(least_useful(session.store, session.tenant, spares, session.clock.now())), None)


def _recorded_evidence(session: RequestContext, evidence: tuple[str, ...]) -> frozenset[str]:
    """Return which references are recorded user messages that back what this handle proposes.

    What a user's handle proposes is also backed by a user message that an agent recorded.
    """
    least = Trust.AGENT if session.actor.kind is ActorKind.USER else Trust.USER
    found = session.store.records(session.tenant, evidence).records
    messages = [each for each in found if each.source in _USER_SOURCES and each.trust >= least]
    names = {name for record in messages for name in (record.id, *record.aliases)}
    return frozenset(names & set(evidence))


class _CpuMeter:
    """Seconds of processor time, asked of the system only where so much time went by that it matters."""

    def __init__(self) -> None:
        self._processor, self._wall, self._spent = time.thread_time(), time.perf_counter(), 0.0

    def __call__(self) -> float:
        wall = time.perf_counter()
        elapsed, self._wall = wall - self._wall, wall
        if elapsed > pipeline.GATE_BUDGET_S:
            # A thread that waited for its turn has used less: no more than since the first gate.
            elapsed = min(elapsed, time.thread_time() - self._processor)
        self._spent += elapsed
        return self._spent


#: Fields by which a memory is compared with others; the gates may change them.
_compared_fields = attrgetter("text", "tier", "scope", "sensitivity")


def evaluate_case(
    session: RequestContext, case: GateInput, overlay: StagedState, known: dict[str, tuple[Finding, ...]] | None = None
) -> pipeline.GateResult:
    """Return what the gates say of one step behind those of an ``overlay``.

    The redactor is asked where there is something to note what it finds in: ``known``.
    """
    view = gate_context(session, case.change, case.before, case.after, overlay)
    if known is not None:
        view = replace(view, personal=find_personal_data(session, case, known))

    def nearby(now: GateInput, view: GateContext) -> GateContext:
        if _compared_fields(now.after) != _compared_fields(case.after):
            # What was found out ahead is of the memory as it came.
            overlay.ahead.pop(case.after.id, None)
        return with_comparisons(session, now, view, overlay)

    return pipeline.run_gates(
        case, view, session.policy, meter=_CpuMeter(), compare=nearby, plugins=session.engine.gates
    )


def evaluate(
    session: RequestContext,
    change: ask.Change,
    before: Record | None,
    after: Record,
    *,
    overlay: StagedState | None = None,
    reason: str = "",
    known: dict[str, tuple[Finding, ...]] | None = None,
) -> pipeline.GateResult:
    """Return what the gates say of one change; see ``judge``."""
    return evaluate_case(
        session, case_of(session, change, before, after, reason=reason), overlay or StagedState(), known
    )
