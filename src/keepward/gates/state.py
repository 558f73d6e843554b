"""The gates that judge against what is stored: confidence, duplicate and capacity.

Invariants
(1) Equal after the declared normalisation is the same, and so is a text that differs in words that add nothing ("the",
    "really"). A text that differs in any other word, number or sign is another fact, and its writer is told which
    memory it resembles.
(2) An earlier value of a key, or a superseded memory, that is merely restated is an echo and revives nothing.
(3) Events are occurrences: only the same event, by id or by text, session and instant, is a duplicate.
(4) A full tier refuses agents, or makes room by archiving its least useful memory, as policy says. It never refuses
    people, so that no agent can lock them out. Core never makes room.
"""

from __future__ import annotations

from msgspec.structs import replace

from keepward.core.change import TEXT_CHANGES, Insert, Move, Promote, Restore
from keepward.core.commit import Reason
from keepward.core.memory import ContentType, Kind, Record, Tier, confidence_at
from keepward.core.policy import Policy
from keepward.core.principals import ActorKind, Trust
from keepward.core.reducer import content
from keepward.gates.detectors.near_duplicate import NormalizedText, is_near_duplicate, match, normalise
from keepward.gates.gate_types import (
    DuplicateMatch,
    GateContext,
    GateInput,
    Quarantine,
    Refuse,
    Rewrite,
    Verdict,
    reasons_of,
)

#: Neighbours looked at for a likeness worth a word.
NEAREST = 1
#: What an upsert brings and what says nothing new.
_PASSING = (
    *("updated_at", "reinforced_at", "expires_at", "occurred_at", "session"),
    *("source", "trust", "heard", "confidence"),
)
_MAY_REAFFIRM = {ActorKind.OPERATOR, ActorKind.USER, ActorKind.SYSTEM}
_PEOPLE = {ActorKind.OPERATOR, ActorKind.USER}
_confidence, _duplicate, _capacity = map(reasons_of, ("confidence", "duplicate", "capacity"))


def confidence(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Divert or hold what is below its tier's floor.

    What was aimed at core and stated below its floor goes to the archive, and its writer is told; what is below the
    archive's floor waits for a person. What is moved to another tier has to reach its floor with what its confidence
    has faded to. A core edit that states no confidence keeps its default and is judged by the reviewer.
    """
    after = case.after
    floor = policy.confidence_floor.get(after.tier, 0.0)
    detail = f"confidence is below {floor:g}, the floor of the {after.tier.value} tier"
    below = Quarantine(reasons=(_confidence("below_floor", detail),))
    if isinstance(case.change, Move) and case.before is not None and after.tier not in {case.before.tier, Tier.CORE}:
        return below if confidence_at(case.before, view.now) < floor else None
    if not isinstance(case.change, TEXT_CHANGES) or after.confidence >= floor:
        return None
    if after.tier is Tier.CORE:
        if case.change.confidence is None:
            return None
        if after.confidence >= policy.confidence_floor.get(Tier.ARCHIVAL, 0.0) and case.before is None:
            category = after.category or after.key
            diverted = replace(after, tier=Tier.ARCHIVAL, key=None, category=category, kind=Kind.FACT)
            detail = f"confidence is below {floor:g}, the floor of core: kept in the archive instead"
            return Rewrite(after=diverted, reasons=(_confidence("diverted_to_archival", detail),))
    return below


def duplicate(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Answer with the existing memory where there is one: it is confirmed, not stored twice."""
    if not isinstance(case.change, Insert):
        return None
    after = case.after
    if case.before is not None and _says_nothing_new(case.before, after):
        return _duplicate_of(case.before, "unchanged", "says exactly this already")
    # A program that writes a value to a key of its own sets it, and says nothing again.
    before, value = case.before, after.content_type is ContentType.STRUCTURED
    own = before is not None and (
        (value and before.author == case.actor.label) or normalise(before.text) == normalise(after.text)
    )
    if view.echoes and case.actor.kind not in _MAY_REAFFIRM and not own:
        plain = normalise(after.text)
        for old in view.echoes:
            if normalise(old.text) == plain:
                detail = f"{old.id} said this and no longer holds: to reaffirm it, revise that memory with a reason"
                return Refuse(reasons=(_duplicate("echo", detail),))
    if case.before is not None:
        return None
    if after.kind is Kind.EVENT and after.tier is Tier.EPISODIC:
        return _same_event(after, view)
    if after.key is not None:
        return None
    form = view.forms.get(after.text) or NormalizedText(after.text)
    # Two pictures under one description are two memories, and so are two that other systems tell apart by name.
    others = [
        other
        for other in view.neighbours
        if other.kind is not Kind.EVENT
        and other.subject == after.subject
        and other.blob == after.blob
        and (not after.aliases or set(after.aliases) & set(other.aliases))
    ]
    forms = {other.id: view.forms.get(other.text) or NormalizedText(other.text) for other in others}
    overlap, ratio = policy.duplicate_overlap, policy.similarity_threshold
    found = match(form, list(forms.values()), ratio_floor=ratio)
    if found is not None:
        place, exact = found
        if exact:
            return _duplicate_of(others[place], "duplicate", "says exactly this")
        return _duplicate_of(others[place], "near_duplicate", "says the same in other words")
    for other in view.neighbours[:NEAREST]:
        # The nearest memory that is alike by a floor and states another fact is named; both are kept.
        if other.kind is Kind.EVENT or other.subject != after.subject:
            continue
        if is_near_duplicate(form, forms.get(other.id) or other.text, overlap_floor=overlap, ratio_floor=ratio):
            return Rewrite(after=after, reasons=(_naming(other, "similar", "is similar; both are kept"),))
    return None


def _duplicate_of(other: Record, code: str, what: str) -> DuplicateMatch:
    return DuplicateMatch(existing=other, reasons=(_naming(other, code, what),))


def _naming(other: Record, code: str, what: str) -> Reason:
    return _duplicate(code, f"{other.id} {what}")


def _says_nothing_new(before: Record, after: Record) -> bool:
    """Whether an upsert changes nothing but times and trust."""
    return content(replace(after, **{name: getattr(before, name) for name in _PASSING})) == content(before)


def _same_event(after: Record, view: GateContext) -> Verdict | None:
    for other in view.neighbours:
        shared = set(after.aliases) & set(other.aliases) and after.session == other.session
        again = (
            after.occurred_at is not None
            and (after.occurred_at, after.session, after.speaker) == (other.occurred_at, other.session, other.speaker)
            and not (after.aliases or other.aliases)
            and after.text == other.text
        )
        if shared or again:
            return _duplicate_of(other, "same_event", "records this event already")
    return None


def capacity(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Refuse what does not fit: core in its token budgets, the other tiers in their numbers."""
    after = case.after
    if after.tier is Tier.CORE:
        # What is no block has no budget: the authority gate says which blocks there are.
        budget = policy.block_budget.get(after.key or "", 0)
        grows = isinstance(case.change, (*TEXT_CHANGES, Promote, Restore))
        if after.key not in policy.core_keys or not grows or view.tokens <= budget:
            return None
        detail = f"the block `{after.key}` would hold {view.tokens} tokens of {budget}: shorten it"
        return Refuse(reasons=(_capacity("over_budget", detail),))
    arrives = case.before is None or isinstance(case.change, Restore) or case.before.tier is not after.tier
    limit = policy.capacity.get(after.tier)
    if case.actor.kind in _PEOPLE or after.trust >= Trust.USER:
        return None
    if not arrives or limit is None or view.counts.get(after.tier, 0) < limit or makes_room(case, view, policy):
        return None
    detail = f"the {after.tier.value} tier is full ({limit} memories): forget or archive one first"
    return Refuse(reasons=(_capacity("full", detail),))


def makes_room(case: GateInput, view: GateContext, policy: Policy) -> bool:
    """Whether a full tier archives its least useful memory for this one."""
    return policy.when_full == "archive" and case.after.trust >= Trust.AGENT and view.spare is not None
