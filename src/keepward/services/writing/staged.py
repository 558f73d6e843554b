"""What the gates see of the store for one change, after the earlier changes of the same proposal.

A memory matters to the gates if it is the nearest, if its text may state the same, or if it was revised before.
The other memories are left out unread. ``prefetch`` asks the store about a batch once, on one state of the store.
"""

from __future__ import annotations

import heapq
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from typing import Any

from msgspec import structs

from keepward.core import change as ask
from keepward.core.memory import CORE_BLOCKS, ContentType, Kind, Record, Status, Tier
from keepward.core.principals import ActorKind, Trust, branch_of, is_within_scope, main_scope
from keepward.core.query import Filter
from keepward.core.value import plain_key
from keepward.errors import Conflict, InvalidInput, StaleVersion
from keepward.gates import pipeline
from keepward.gates.authority import with_source_that_holds
from keepward.gates.detectors.matcher import Finding
from keepward.gates.detectors.near_duplicate import NormalizedText, fold
from keepward.gates.detectors.normalize import Text
from keepward.gates.gate_types import GateContext, GateInput
from keepward.gates.state import MAY_REAFFIRM
from keepward.ports.store import Features
from keepward.retrieval.chunking import PROVIDED
from keepward.services.access import is_unchanged_since, key_holder
from keepward.services.reading.visible import ID_BEGINNING, VisibleReader
from keepward.services.request_context import RequestContext
from keepward.services.search.features import feature_fields_of, text_features
from keepward.services.writing.following import is_contained
from keepward.services.writing.tombstones import blocked_by_erasure
from keepward.storage.reads import MAX_DUPLICATE_CANDIDATES, MIN_SHARED_MINHASHES
from keepward.storage.rows import dedup_partition

#: Longest history that is searched for a corrected text, in versions.
MAX_VERSIONS_SEARCHED = 50


def prefetch(context: RequestContext, records: Sequence[Record], staged_state: StagedState) -> None:
    """Ask the store about new memories before they are judged one by one."""
    seen = [record for record in records if VisibleReader(context).can_see(record.scope)]
    fresh = [(record, staged_state.text_features(record)) for record in seen]
    if not fresh:
        return
    likely = context.store.duplicate_candidates(context.tenant, fresh, context.clock.now())
    staged_state.prefetched = {record.id: found for (record, _), found in zip(fresh, likely, strict=True)}
    ids = list(dict.fromkeys(chain.from_iterable(likely)))
    if ids:
        staged_state.read = {record.id: record for record in context.store.records(context.tenant, ids).records}
    if blocked_by_erasure(context, *records) is None:
        staged_state.not_erased = {record.id: record for record in records}


def neighbours(context: RequestContext, after: Record, staged_state: StagedState) -> tuple[Record, ...]:
    """Return the memories that a new one may duplicate, the nearest first."""
    if after.kind is Kind.EVENT and after.tier is Tier.EPISODIC and after.aliases:
        # Events are compared by alias, not by text.
        staged = [
            record
            for record in staged_state.records.values()
            if record.scope == after.scope and set(record.aliases) & set(after.aliases)
        ]
        stored = context.store.same_event(context.tenant, after.aliases, after.scope, after.session).records
        return (*staged, *stored)
    features = staged_state.text_features(after)
    found: list[Record] = []
    for record in staged_state.similar(after, features):
        other = staged_state.text_features(record)
        kindred = other.trait == features.trait or other.digest == features.digest
        if not found or kindred or record.version > 1:
            found.append(record)
    ids: list[str] = []
    for name, must_be_read in _duplicate_candidates(context, after, staged_state).items():
        if name not in staged_state.records and (must_be_read or not (found or ids)):
            ids.append(name)
    if ids:
        partition = (after.scope, after.tier, after.sensitivity)
        now = context.clock.now()
        read = [staged_state.read[name] for name in ids if name in staged_state.read]
        stored = read if len(read) == len(ids) else context.store.records(context.tenant, ids).records
        found += (
            record
            for record in stored
            if record.is_live(now) and (record.scope, record.tier, record.sensitivity) == partition
        )
    return tuple(found)


def _duplicate_candidates(context: RequestContext, after: Record, staged_state: StagedState) -> dict[str, bool]:
    """Return the ids of stored memories that a new one may duplicate, and whether each must be read."""
    known = staged_state.prefetched.get(after.id)
    if known is None:
        asked = [(after, staged_state.text_features(after))]
        (known,) = context.store.duplicate_candidates(context.tenant, asked, context.clock.now())
        staged_state.prefetched[after.id] = known
    return known


def previous_statements(
    context: RequestContext, revised: Sequence[Record], after: Record, staged_state: StagedState
) -> tuple[Record, ...]:
    """Return records that once stated the same in any capitals: earlier versions of ``revised``, and what has ended."""
    if after.kind not in {Kind.FACT, Kind.RULE}:
        # A state may return to an earlier value; that is news.
        return ()
    folded = fold(after.text)
    earlier: list[Record] = []
    for record in revised:
        # A fact that was corrected more often is a state in all but name.
        if not 1 < record.version <= MAX_VERSIONS_SEARCHED or record.kind is Kind.STATE or fold(record.text) == folded:
            continue
        history = (step.after for step in context.store.steps(context.tenant, record.id))
        earlier += [version for version in history if fold(version.text) == folded]
    features = staged_state.text_features(after)
    ended = context.store.superseded(context.tenant, after.scope, features.digest, features.trait).records
    old = [record for record in ended if fold(record.text) == folded]
    return (*earlier, *old)


def trust_of_known_text(context: RequestContext, after: Record, staged_state: StagedState) -> Trust | None:
    """Return the trust of the same words where the writer may read them, if lower than that of the record; else None.

    Capitals, punctuation and filler words make no other text. Messages are left out: they record what was said, not
    that it is so.
    """
    if after.kind is Kind.EVENT and after.speaker is not None:
        return None
    reader = VisibleReader(context)
    scopes = {*reader.scopes, after.scope} if reader.can_see(after.scope) else {*reader.scopes}
    trait = NormalizedText(after.text).token_signature
    found = [
        record.trust
        for record in staged_state.records.values()
        if record.id != after.id and record.scope in scopes and staged_state.text_features(record).trait == trait
    ]
    known = context.store.known_trust(
        context.tenant, trait, after.id, scopes, include_sensitive=reader.may_ask_for_sensitive
    )
    lowest = min([*found, *([] if known is None else [known])], default=after.trust)
    return lowest if lowest < after.trust else None


_KIND = re.compile(r"[a-z][a-z_]{0,40}")
_MARKER = re.compile(r"\[[A-Z_]+\]")


def find_personal_data(
    context: RequestContext, case: GateInput, known: dict[str, tuple[Finding, ...]]
) -> dict[str, tuple[Finding, ...]]:
    """Return what the redactor finds, by text, and add it to ``known``; empty without a redactor.

    Raises:
        ModelUnavailable: the redactor cannot be used now.
        InvalidInput: it named a span outside the text, or a kind that is not a lower-case name.
    """
    if context.redactor is None:
        return {}
    texts = [text.text for _, text in case.texts]
    for text in texts:
        if text not in known:
            findings = [_finding(text, span) for span in context.redactor.find(text)]
            known[text] = tuple(span for span in findings if not _MARKER.fullmatch(text[span.start : span.end]))
    return {text: known[text] for text in texts if known[text]}


def _finding(text: str, span: tuple[int, int, str]) -> Finding:
    try:
        start, end, kind = span
        fits = 0 <= start < end <= len(text) and _KIND.fullmatch(kind)
    except (TypeError, ValueError):
        fits = None
    if not fits:
        raise InvalidInput("the redactor named a span outside the text, or a kind that is not a lower-case name")
    return Finding(detector=kind, start=start, end=end)


#: Only so many newest memories of this proposal are counted for each minhash.
MAX_MINHASH_HOLDERS = 64
_USER_SOURCES = frozenset({"user_message", "user", "chat"})


@dataclass(slots=True)
class StagedState:
    """The state that the steps judged so far would leave."""

    records: dict[str, Record] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    #: By the id of a memory of main, the id of the state that this proposal gives it on a branch.
    states: dict[str, str] = field(default_factory=dict)
    #: Ids by dedup partition and minhash.
    minhashes: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    arrivals: Counter[Tier] = field(default_factory=Counter)
    #: Active memories of the tenant by tier when the proposal began; None until counted.
    tally: dict[str, int] | None = None
    #: Ids proposed for new memories, to the ids of the stored duplicates.
    renamed: dict[str, str] = field(default_factory=dict)
    #: By id of a new memory, its duplicate candidates; see ``prefetch``.
    prefetched: dict[str, dict[str, bool]] = field(default_factory=dict)
    #: These candidates by id, as stored.
    read: dict[str, Record] = field(default_factory=dict)
    #: New memories that match no erasure.
    not_erased: dict[str, Record] = field(default_factory=dict)
    #: Texts of this proposal in the form in which they are compared.
    normalized: dict[str, NormalizedText] = field(default_factory=dict)
    #: By id: the text that a vector was supplied for, its model, and the packed vector.
    vectors: dict[str, tuple[str, str, bytes]] = field(default_factory=dict)
    #: Whether the proposal is a new text of the identity.
    proposes_identity: bool = False
    #: The text of the identity; None until it was read.
    identity: str | None = None
    _text_features: dict[tuple[Any, ...], Features] = field(default_factory=dict)

    def features(self, record: Record) -> Features:
        """Return the features of a record, with a supplied vector if it is for exactly this text."""
        text, model, packed = self.vectors.get(record.id, ("", "", b""))
        features = self.text_features(record)
        if not packed or text != record.text:
            return features
        return structs.replace(features, model=model, recipe=PROVIDED, vectors=packed, units=1)

    def text_features(self, record: Record) -> Features:
        """Return the features that need no model, computed once."""
        key = (record.text_at, record.blob, *feature_fields_of(record))
        if key not in self._text_features:
            normalized = self.normalized.setdefault(record.text, NormalizedText(record.text))
            self._text_features[key] = text_features(record, normalized)
        return self._text_features[key]

    def add_step(self, before: Record | None, after: Record) -> None:
        """Apply one step to the staged state."""
        features = self.text_features(after)
        self.records[after.id] = after
        if after.branched_id is not None:
            self.states[after.branched_id] = after.id
        if before is not None and before.key is not None:
            self.keys.pop((before.scope, before.key), None)
        if after.key is not None and after.status is Status.ACTIVE:
            self.keys[after.scope, after.key] = after.id
        if before is None:
            self.arrivals[after.tier] += 1
        by_minhash = self.minhashes.setdefault(dedup_partition(after), {})
        for minhash in features.marks:
            by_minhash.setdefault(minhash, []).append(after.id)

    def similar(self, record: Record, features: Features) -> list[Record]:
        """Return at most 8 staged records that share minhashes with one: most shared first, then by age."""
        by_minhash = self.minhashes.get(dedup_partition(record), {})
        holders = [ids for minhash in features.marks if (ids := by_minhash.get(minhash))]
        if len(holders) < MIN_SHARED_MINHASHES:
            return []
        # One Counter for all: a new one for each minhash costs as much as the counting.
        shared = Counter(chain.from_iterable([ids[-MAX_MINHASH_HOLDERS:] for ids in holders]))
        shared.pop(record.id, None)
        likely = [(-count, other) for other, count in shared.items() if count >= MIN_SHARED_MINHASHES]
        nearest = heapq.nsmallest(MAX_DUPLICATE_CANDIDATES, likely)
        return [staged for _, other in nearest if (staged := self.records[other]).status is Status.ACTIVE]


def record_before(context: RequestContext, change: ask.Change, staged_state: StagedState) -> Record | None:
    """Return the record that a change builds on; None for a new memory.

    Raises:
        NotFound: the memory does not exist or is not visible.
        Unauthorised: it is sensitive, another actor wrote it, and the handle may not read it.
        StaleVersion: the memory has changed since ``if_version``.
        Conflict: the memory is not active and the change does not restore it, or its replacement is not active.
    """
    if isinstance(change, ask.Insert):
        if change.key is None:
            return None
        staged_id = staged_state.keys.get((change.scope, change.key))
        if staged_id:
            stored: Record | None = staged_state.records[staged_id]
        else:
            stored = _key_holder(context, change.scope, change.key, staged_state)
        if stored is not None:
            VisibleReader(context).check_key_holder(stored)
        if change.if_version not in {None, stored.version if stored else 0} and not (
            stored
            and stored.id not in staged_state.records
            and is_unchanged_since(context, stored, change.if_version or 0)
        ):
            holder = (
                f"memory {stored.id} at version {stored.version} has the key" if stored else "no memory has the key"
            )
            raise StaleVersion(f"{holder}; read it again and decide again")
        return stored
    before = newest_record(context, change.id, staged_state)
    expected = getattr(change, "if_version", None)
    # Bookkeeping between two versions is allowed; an earlier change of the same proposal is not.
    staged = before.id in staged_state.records
    if expected not in {None, before.version} and (staged or not is_unchanged_since(context, before, expected)):
        raise StaleVersion(
            f"memory {before.id} is at version {before.version}, not {expected}; read it again and decide again"
        )
    status = before.status_at(context.clock.now())
    if status is Status.ERASED:
        raise Conflict(f"memory {before.id} was erased and cannot be restored; only its tombstone is left")
    # A superseded or expired memory may still be retired.
    retires = isinstance(change, ask.Retire) and status in {Status.SUPERSEDED, Status.EXPIRED}
    retires = retires or (isinstance(change, ask.Expire) and before.status is Status.ACTIVE)
    if not retires and not isinstance(change, ask.Restore | ask.Revert) and status is not Status.ACTIVE:
        raise Conflict(f"memory {before.id} is {status.value}; restore it first")
    if isinstance(change, ask.Supersede):
        # Every chain of replacements must end in an active memory.
        by = newest_record(context, change.by, staged_state)
        if by.id == before.id:
            raise Conflict(f"memory {by.id} cannot be replaced by itself; name another")
        if not by.is_live(context.clock.now()):
            raise Conflict(f"memory {by.id} is not active and cannot replace another; restore it first")
    return before


def _key_holder(context: RequestContext, scope: str, key: str, staged_state: StagedState) -> Record | None:
    """Return the active memory under a key of one scope; on a branch, else that of main under it."""
    holder = key_holder(context, scope, key)
    if holder is not None or branch_of(scope) is None:
        return holder
    holder = key_holder(context, main_scope(scope), key)
    if holder is None or holder.id in VisibleReader(context).hidden() or holder.id in staged_state.states:
        return None
    return holder


def newest_record(context: RequestContext, name: str, staged_state: StagedState) -> Record:
    """Return a memory as the proposal has changed it so far."""
    staged = staged_state.records.get(staged_state.states.get(name, name))
    if staged is None:
        stored = VisibleReader(context).fetch(name, own=True)
        staged = staged_state.records.get(staged_state.states.get(stored.id, stored.id), stored)
    return staged


def parents_of(context: RequestContext, change: ask.Change, staged_state: StagedState) -> dict[str, Record]:
    """Return the records that a new memory is derived from.

    Raises:
        NotFound: one of them is not visible.
    """
    if not isinstance(change, ask.Insert):
        return {}
    return {parent: newest_record(context, parent, staged_state) for parent in change.derived_from}


def gate_context(
    context: RequestContext, change: ask.Change, before: Record | None, after: Record, staged_state: StagedState
) -> GateContext:
    """Return what the gates may see of the store for one step, without what ``with_comparisons`` adds."""
    now = context.clock.now()
    writes = isinstance(change, (*ask.TEXT_CHANGES, ask.Promote, ask.Restore, ask.Revert))
    fields: dict[str, Any] = {"now": now}
    if after.tier is Tier.CORE and writes:
        fields["tokens"] = context.engine.counter.count(after.text)
    document = context.engine.identity
    if staged_state.proposes_identity:
        fields["identity_in"] = "block" if document.name is None else "file"
    claims = getattr(change, "source", None) in _USER_SOURCES and context.actor.kind is ActorKind.AGENT
    if (after.tier is Tier.CORE and after.key == "human") or (claims and after.evidence):
        fields["user_evidence"] = _recorded_evidence(context, after.evidence)
    if isinstance(change, ask.Move | ask.Restore):
        _check_key_is_free(context, after, staged_state)
    if isinstance(change, ask.Insert | ask.Move):
        fields["taken"] = _taken_names(context, before, after, staged_state)
    if isinstance(change, ask.Supersede):
        fields["successor"] = staged_state.records.get(change.by) or VisibleReader(context).fetch(change.by, own=True)
    if isinstance(change, ask.Restore):
        fields["contained"] = before is not None and is_contained(context, before)
    return GateContext(**fields)


def _identity_filter(context: RequestContext) -> Filter:
    return Filter(
        scopes=VisibleReader(context).scopes, key=CORE_BLOCKS[0], tiers=(Tier.CORE.value,), include_sensitive=True
    )


def ask_identity(context: RequestContext) -> None:
    """Let the text of the identity, which new texts are compared with, come with the answer to the next read."""
    if context.engine.identity.name is None:
        VisibleReader(context).ask_find(_identity_filter(context), live_at=None)


def _identity_text(context: RequestContext) -> str:
    """Return the text of the identity that contexts of this handle begin with; empty without one."""
    if context.engine.identity.name is not None:
        return (context.engine.identity() or ("", ""))[1]
    blocks = VisibleReader(context).find(_identity_filter(context), live_at=None).records
    return "\n".join(block.text for block in blocks if block.status is Status.ACTIVE)


def _may_compare(context: RequestContext, record: Record) -> bool:
    """Whether an answer may depend on a record: its content is readable, or the handle's own."""
    return VisibleReader(context).can_read(record) or record.text_by == context.actor.label


def with_comparisons(
    context: RequestContext, case: GateInput, view: GateContext, staged_state: StagedState
) -> GateContext:
    """Add the memories that a step is compared with, and how many memories its tier has."""
    change, before, after = case.change, case.before, case.after
    fields: dict[str, Any] = {}
    # Nothing is compared with what the writer may not read.
    compares = isinstance(change, ask.Insert) and VisibleReader(context).can_see(after.scope)
    # Asked first, as the answer brings the row of the tenant, which counts its memories.
    near = neighbours(context, after, staged_state) if compares and before is None else ()
    arrives = before is None or before.tier is not after.tier or isinstance(change, ask.Restore)
    if arrives and after.tier in context.policy.capacity:
        if staged_state.tally is None:
            staged_state.tally = context.store.tally(context.tenant)
        count = staged_state.tally.get(after.tier._value_, 0) + staged_state.arrivals[after.tier]
        full = count >= context.policy.capacity[after.tier]
        fields = {
            "counts": {after.tier: count},
            "spare": _evictable_memory(context, after.tier, staged_state) if full else None,
        }
    if isinstance(change, ask.TEXT_CHANGES):
        if staged_state.identity is None:
            staged_state.identity = _identity_text(context)
        fields["identity_text"] = staged_state.identity
    if not compares:
        return replace(view, **fields)
    near = tuple(record for record in near if _may_compare(context, record))
    # The history of a value under another key says nothing of this one.
    has_own_key = after.key is not None and after.content_type is ContentType.STRUCTURED
    revised = (before,) if before is not None else () if has_own_key else near
    past = () if case.actor.kind in MAY_REAFFIRM else previous_statements(context, revised, after, staged_state)
    past = tuple(record for record in past if _may_compare(context, record))
    return replace(view, **fields, neighbours=near, echoes=past, forms=staged_state.normalized)


def case_of(
    context: RequestContext, change: ask.Change, before: Record | None, after: Record, *, reason: str = ""
) -> GateInput:
    """Return the input of the gates for one step of this handle."""
    return GateInput(
        change=change,
        actor=context.actor,
        scope=context.scope,
        write_scope=VisibleReader(context).write_scope(),
        before=before,
        after=after,
        reason=reason,
    )


def _taken_names(
    context: RequestContext, before: Record | None, after: Record, staged_state: StagedState
) -> frozenset[str]:
    """Return new aliases, and a new key, that already name another visible memory.

    Aliases are compared with keys without case and look-alike letters; both are compared with ids.
    """
    forms = {alias: _key_forms(alias) for alias in after.aliases if before is None or alias not in before.aliases}
    scopes = VisibleReader(context).scopes_above(after.scope)
    if forms:
        spellings = {form for group in forms.values() for form in group}
        holders = context.store.ids_by_key(context.tenant, spellings, scopes)
        holders += [(key, holder) for (scope, key), holder in staged_state.keys.items() if scope in scopes]
        # A higher trust takes a name from a lower one.
        other = {holder for _, holder in holders} - {after.id}
        stored = context.store.records(context.tenant, sorted(other)).records if other else []
        weaker = {record.id for record in stored if record.name_trust < after.name_trust}
        keys = {key for key, holder in holders if holder in other - weaker}
    taken = {name for name, spelled in forms.items() if not spelled.isdisjoint(keys)}
    if after.key is not None and (before is None or before.key != after.key):
        forms[after.key] = {after.key, after.key.casefold()}

    def names_another(form: str) -> bool:
        """Whether a form is the id of another visible memory, or its first 8 or more characters."""
        return bool(ID_BEGINNING.fullmatch(form) and VisibleReader(context).ids_beginning(form) - {after.id})

    taken |= {name for name, spelled in forms.items() if any(map(names_another, spelled))}
    return frozenset(taken)


def _key_forms(alias: str) -> set[str]:
    """Return the keys that an alias may be mistaken for."""
    plain = plain_key(alias)
    folded = Text(plain).normal.text
    return {form for key in (plain, folded) for form in (key, key.casefold(), key.upper(), key.title())}


def _check_key_is_free(context: RequestContext, after: Record, staged_state: StagedState) -> None:
    if after.key is None:
        return
    holder = staged_state.keys.get((after.scope, after.key))
    if holder is None:
        stored = key_holder(context, after.scope, after.key)
        # For a memory that this proposal changed, the staged state alone counts.
        holder = stored.id if stored is not None and stored.id not in staged_state.records else None
    if holder not in {None, after.id}:
        raise Conflict("another memory has this key; revise that one, or choose another key")


def _evictable_memory(context: RequestContext, tier: Tier, staged_state: StagedState) -> Record | None:
    """Return the least useful memory of a full tier that this handle reads and may write; None if there is none.

    No person said it, and the proposal does not change it.
    """
    reader = VisibleReader(context)
    scopes = [scope for scope in reader.scopes if is_within_scope(scope, reader.write_scope())]
    for name in context.store.least_worth(context.tenant, tier.value, scopes):
        if name in staged_state.records:
            continue
        for record in context.store.records(context.tenant, [name]).records:
            # The list names it, and the record itself decides.
            is_free = record.status is Status.ACTIVE and record.tier is tier and not record.pinned
            if is_free and record.trust < Trust.USER and record.scope in scopes and reader.can_read(record):
                return record
    return None


def _recorded_evidence(context: RequestContext, evidence: tuple[str, ...]) -> frozenset[str]:
    """Return the references that are recorded user messages and support a proposal of this handle.

    For a user's own proposal, a user message that an agent recorded is enough.
    """
    minimum = Trust.AGENT if context.actor.kind is ActorKind.USER else Trust.USER
    reader = VisibleReader(context)
    records = context.store.records(context.tenant, evidence, scopes=reader.scopes, sees=reader.can_see).records
    messages = [record for record in records if record.source in _USER_SOURCES and record.trust >= minimum]
    names = {name for record in messages for name in (record.id, *record.aliases)}
    return frozenset(names & set(evidence))


class _CpuMeter:
    """Seconds of processor time. The system is asked only if the elapsed time may exceed the budget."""

    def __init__(self) -> None:
        self._processor, self._wall, self._spent = time.thread_time(), time.perf_counter(), 0.0

    def __call__(self) -> float:
        wall = time.perf_counter()
        elapsed, self._wall = wall - self._wall, wall
        if elapsed > pipeline.GATE_BUDGET_S:
            # A waiting thread uses less processor time than elapsed time.
            elapsed = min(elapsed, time.thread_time() - self._processor)
        self._spent += elapsed
        return self._spent


#: Fields that decide which memories one is compared with; gates may change them.
_compared_fields = attrgetter("text", "tier", "scope", "sensitivity")


def evaluate_case(
    context: RequestContext,
    case: GateInput,
    staged_state: StagedState,
    known: dict[str, tuple[Finding, ...]] | None = None,
) -> pipeline.GateResult:
    """Run the gates on one step after the staged ones.

    ``known`` holds the redactor's findings by text and gets new ones; without it the redactor is not asked.
    """
    view = gate_context(context, case.change, case.before, case.after, staged_state)
    case = with_source_that_holds(case, view)
    if known is not None:
        view = replace(view, personal=find_personal_data(context, case, known))

    def compare(now: GateInput, view: GateContext) -> GateContext:
        if _compared_fields(now.after) != _compared_fields(case.after):
            # The prefetched candidates are for the record before the gates changed it.
            staged_state.prefetched.pop(case.after.id, None)
        return with_comparisons(context, now, view, staged_state)

    return pipeline.run_gates(
        case, view, context.policy, meter=_CpuMeter(), compare=compare, plugins=context.engine.gates
    )


def evaluate(
    context: RequestContext,
    change: ask.Change,
    before: Record | None,
    after: Record,
    *,
    staged_state: StagedState | None = None,
    reason: str = "",
    known: dict[str, tuple[Finding, ...]] | None = None,
) -> pipeline.GateResult:
    """Run the gates on one change; see ``evaluate_case``."""
    return evaluate_case(
        context, case_of(context, change, before, after, reason=reason), staged_state or StagedState(), known
    )
