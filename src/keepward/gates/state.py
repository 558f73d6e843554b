"""The gates that compare a write with the store: confidence, duplicate and capacity.

Invariants
(1) Two texts are duplicates if they are equal after normalization, or differ only in filler words ("the", "really").
    A text with any other difference is another fact; its writer learns which memory it resembles.
(2) A restated earlier value of a key, or of a superseded memory, is refused as an echo, also in other capitals.
(3) An event is a duplicate only if its scope, and its id or its text, session and instant are the same.
(4) A full tier refuses agents, or archives its least useful memory, according to policy. It never refuses people, so
    that agents cannot lock them out. Core archives nothing.
"""

from __future__ import annotations

import functools

from msgspec.structs import replace

from keepward.core.change import TEXT_CHANGES, Insert, Move, Promote, Restore
from keepward.core.commit import Reason
from keepward.core.memory import ContentType, Kind, Record, Tier, confidence_at
from keepward.core.patterns import lazy_regex
from keepward.core.policy import Policy
from keepward.core.principals import CLAIMED, PEOPLE, ActorKind, Trust
from keepward.core.reducer import content
from keepward.gates.detectors.near_duplicate import NormalizedText, fold, is_near_duplicate, match, normalise
from keepward.gates.detectors.normalize import Text
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

#: Nearest neighbours that are compared for the note "is similar".
NEAREST = 1
#: A sentence of the identity with MIN_QUOTE_CHARS is a quotation. A shorter one with MIN_SENTENCE_CHARS is a quotation
#: if the text has at most MAX_REMAINDER_CHARS further characters.
MIN_QUOTE_CHARS, MIN_SENTENCE_CHARS, MAX_REMAINDER_CHARS = 30, 8, 16
_ENDS = lazy_regex(r"[.!?;:。！？；：]+")
_PUNCTUATION = lazy_regex(r"[\W_]+")
#: Fields of an upsert that do not make it a new statement.
_METADATA_FIELDS = (
    *("text_by", "text_at", "updated_at", "reinforced_at", "expires_at", "occurred_at", "session", "stale_at"),
    *("source", "trust", "heard", "confidence"),
)
#: Actors who may state again what has ended.
MAY_REAFFIRM = {*PEOPLE, ActorKind.SYSTEM}
_confidence, _duplicate, _capacity = map(reasons_of, ("confidence", "duplicate", "capacity"))


def confidence(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Divert or quarantine a write whose confidence is below the minimum of its tier.

    A write to core that states a lower confidence goes to the archive, with a reason. Below the archive's minimum it
    needs a reviewer. A memory that moves to another tier must reach that tier's minimum with its decayed confidence. A
    core edit without a confidence has the default; the reviewer decides on it anyway.
    """
    after = case.after
    minimum = policy.confidence_floor.get(after.tier, 0.0)
    detail = f"the confidence is below {minimum:g}, the minimum of the {after.tier.value} tier"
    below = Quarantine(reasons=(_confidence("below_floor", detail),))
    if isinstance(case.change, Move) and case.before is not None and after.tier not in {case.before.tier, Tier.CORE}:
        return below if confidence_at(case.before, view.now) < minimum else None
    if not isinstance(case.change, TEXT_CHANGES) or after.confidence >= minimum:
        return None
    if after.tier is Tier.CORE:
        if case.change.confidence is None:
            return None
        if after.confidence >= policy.confidence_floor.get(Tier.ARCHIVAL, 0.0) and case.before is None:
            category = after.category or after.key
            diverted = replace(after, tier=Tier.ARCHIVAL, key=None, category=category, kind=Kind.FACT)
            detail = f"the confidence is below {minimum:g}, the minimum of core: stored in the archive instead"
            return Rewrite(after=diverted, reasons=(_confidence("diverted_to_archival", detail),))
    return below


def _quotes_identity(after: Record, identity: str | None) -> bool:
    """Whether a text quotes a sentence of the identity; case, punctuation and look-alikes do not matter.

    A long sentence always counts; a short one only if the text contains little else.
    """
    if not identity:
        return False
    text = f" {_plainly(after.text)} "
    return any(
        f" {sentence} " in text
        and (len(sentence) >= MIN_QUOTE_CHARS or len(text) - len(sentence) <= MAX_REMAINDER_CHARS)
        for sentence in _sentences(identity)
    )


@functools.lru_cache(maxsize=8)
def _sentences(identity: str) -> tuple[str, ...]:
    lines = (part for line in identity.splitlines() for part in (line, *_ENDS.split(line)))
    plain = dict.fromkeys(map(_plainly, lines))
    return tuple(sentence for sentence in plain if len(sentence) >= MIN_SENTENCE_CHARS)


def _plainly(text: str) -> str:
    """Return the words of a text in lower case, separated by single blanks."""
    return " ".join(_PUNCTUATION.sub(" ", Text(text).normal.text.casefold()).split())


def duplicate(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Return the existing memory if a write repeats it, which confirms it; refuse a text that repeats the identity."""
    after = case.after
    if view.identity_in is None and _quotes_identity(after, view.identity_text):
        detail = "the text repeats the identity, which is in every context: leave it out"
        return Refuse(reasons=(_duplicate("identity_text", detail),))
    if not isinstance(case.change, Insert):
        return None
    if case.before is not None and _says_nothing_new(case.before, after):
        return _duplicate_of(case.before, "unchanged", "says exactly this already")
    # A program that writes a value to its own key sets it; this is no repetition.
    before, value = case.before, after.content_type is ContentType.STRUCTURED
    is_own_value = before is not None and (
        (value and before.author == case.actor.label) or normalise(before.text) == normalise(after.text)
    )
    if view.echoes and case.actor.kind not in MAY_REAFFIRM and not is_own_value:
        folded = fold(after.text)
        for old in view.echoes:
            if fold(old.text) == folded:
                detail = f"{old.id} said this and is inactive: to reaffirm it, revise that memory with a reason"
                return Refuse(reasons=(_duplicate("echo", detail),))
    if case.before is not None:
        return None
    if after.kind is Kind.EVENT and after.tier is Tier.EPISODIC:
        return _same_event(after, view)
    return None if after.key is not None else _same_text(after, view, policy)


def _same_text(after: Record, view: GateContext, policy: Policy) -> Verdict | None:
    """Return the neighbour that says the same, or a note on the nearest one that is similar."""
    form = view.forms.get(after.text) or NormalizedText(after.text)
    # Two pictures with one description are two memories, and so are two memories with different external ids.
    others = [
        other
        for other in view.neighbours
        if other.kind is not Kind.EVENT
        and other.subject == after.subject
        and other.blob == after.blob
        # What holds at another time is another statement.
        and (other.valid_from, other.valid_until) == (after.valid_from, after.valid_until)
        and (not after.aliases or set(after.aliases) & set(other.aliases))
    ]
    forms = {other.id: view.forms.get(other.text) or NormalizedText(other.text) for other in others}
    overlap, ratio = policy.duplicate_overlap, policy.similarity_threshold
    match_found = match(form, list(forms.values()), ratio_floor=ratio)
    if match_found is not None:
        index, exact = match_found
        if exact:
            return _duplicate_of(others[index], "duplicate", "says exactly this")
        return _duplicate_of(others[index], "near_duplicate", "says the same in other words")
    for other in view.neighbours[:NEAREST]:
        # A reason names the nearest memory if it is similar but states another fact.
        if other.kind is Kind.EVENT or other.subject != after.subject:
            continue
        if is_near_duplicate(form, forms.get(other.id) or other.text, overlap_floor=overlap, ratio_floor=ratio):
            return Rewrite(after=after, reasons=(_naming(other, "similar", "is similar; both are stored"),))
    return None


def _duplicate_of(other: Record, code: str, what: str) -> DuplicateMatch:
    return DuplicateMatch(existing=other, reasons=(_naming(other, code, what),))


def _naming(other: Record, code: str, what: str) -> Reason:
    return _duplicate(code, f"{other.id} {what}")


def _says_nothing_new(before: Record, after: Record) -> bool:
    """Whether an upsert changes only times, trust and a claimed source."""
    evidence = tuple(each for each in after.evidence if each in before.evidence or not each.startswith(CLAIMED))
    unchanged = {name: getattr(before, name) for name in _METADATA_FIELDS}
    return content(replace(after, evidence=evidence, **unchanged)) == content(before)


def _same_event(after: Record, view: GateContext) -> Verdict | None:
    for other in view.neighbours:
        has_same_id = set(after.aliases) & set(other.aliases) and after.session == other.session
        is_same = (
            after.occurred_at is not None
            and (after.occurred_at, after.session, after.speaker) == (other.occurred_at, other.session, other.speaker)
            and not (after.aliases or other.aliases)
            and after.text == other.text
        )
        if has_same_id or is_same:
            return _duplicate_of(other, "same_event", "records this event already")
    return None


def capacity(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Refuse a write beyond capacity: a token budget for core blocks, a number of memories for the other tiers."""
    after = case.after
    if after.tier is Tier.CORE:
        # A key that is no block has no budget; the authority gate refuses it.
        budget = policy.block_budget.get(after.key or "", 0)
        grows = isinstance(case.change, (*TEXT_CHANGES, Promote, Restore))
        if after.key not in policy.core_keys or not grows or view.tokens <= budget:
            return None
        detail = f"the block `{after.key}` would have {view.tokens} tokens, its budget is {budget}: shorten it"
        return Refuse(reasons=(_capacity("over_budget", detail),))
    arrives = case.before is None or isinstance(case.change, Restore) or case.before.tier is not after.tier
    limit = policy.capacity.get(after.tier)
    if case.actor.kind in PEOPLE or after.trust >= Trust.USER:
        return None
    if not arrives or limit is None or view.counts.get(after.tier, 0) < limit or makes_room(case, view, policy):
        return None
    detail = f"the {after.tier.value} tier is full ({limit} memories): forget or archive one first"
    return Refuse(reasons=(_capacity("full", detail),))


def makes_room(case: GateInput, view: GateContext, policy: Policy) -> bool:
    """Whether a full tier archives its least useful memory for this one."""
    return policy.when_full == "archive" and case.after.trust >= Trust.AGENT and view.spare is not None
