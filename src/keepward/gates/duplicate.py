"""The duplicate gate: what is remembered already is confirmed, not stored twice.

Equal after the declared normalisation is the same. A similar text is the same only when numbers, dates,
names, units, negation and roles agree; a fact that differs by one number is another fact, and its writer
is told which memory it resembles. An earlier value of a key, or a superseded memory, that is merely
restated is an echo and revives nothing.
Events are occurrences: only the same event, by id or by text, session and instant, is a duplicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from keepward.gates.detect.likeness import Form, alike, match, normalise
from keepward.gates.verdict import Case, Refuse, Rewrite, Same, Verdict, View
from keepward.model.change import Insert
from keepward.model.commit import Reason
from keepward.model.fold import content
from keepward.model.memory import Kind, Record, Tier
from keepward.model.policy import Policy
from keepward.model.trust import ActorKind

#: Neighbours looked at for a likeness worth a word.
NEAREST = 1
_MAY_REAFFIRM = {ActorKind.OPERATOR, ActorKind.USER, ActorKind.SYSTEM}


def judge(case: Case, view: View, policy: Policy) -> Verdict | None:
    """Answer with the existing memory where there is one."""
    if not isinstance(case.change, Insert):
        return None
    after = case.after
    if case.before is not None and _says_nothing_new(case.before, after):
        return Same(existing=case.before, reasons=(_reason("unchanged", case.before, "says exactly this already"),))
    form = view.forms.get(after.text) or Form(after.text)
    text = form.plain
    if case.actor.kind not in _MAY_REAFFIRM and not (case.before and normalise(case.before.text) == text):
        for old in view.echoes:
            if normalise(old.text) == text:
                detail = f"{old.id} said this and no longer holds: to reaffirm it, revise that memory with a reason"
                return Refuse(reasons=(Reason(gate="duplicate", code="echo", detail=detail),))
    if case.before is not None:
        return None
    if after.kind is Kind.EVENT and after.tier is Tier.EPISODIC:
        return _same_event(after, view)
    if after.key is not None:
        return None
    # Two pictures under one description are two memories.
    others = [
        other
        for other in view.neighbours
        if other.kind is not Kind.EVENT and other.subject == after.subject and other.blob == after.blob
    ]
    forms = {other.id: view.forms.get(other.text) or Form(other.text) for other in others}
    found = match(
        form,
        list(forms.values()),
        overlap_floor=policy.duplicate_overlap,
        ratio_floor=policy.similarity_threshold,
    )
    if found is not None:
        other, exact = others[found[0]], found[1]
        what = "says exactly this" if exact else "says the same in other words"
        return Same(existing=other, reasons=(_reason("duplicate" if exact else "near_duplicate", other, what),))
    return _similar(after, form, forms, view, policy)


def _similar(after: Record, form: Form, forms: Mapping[str, Form], view: View, policy: Policy) -> Verdict | None:
    """Name the nearest memory that is alike by a floor and states another fact; both are kept."""
    for other in view.neighbours[:NEAREST]:
        if other.kind is Kind.EVENT or other.subject != after.subject:
            continue
        theirs = forms.get(other.id) or other.text
        if alike(form, theirs, overlap_floor=policy.duplicate_overlap, ratio_floor=policy.similarity_threshold):
            return Rewrite(after=after, reasons=(_reason("similar", other, "is similar; both are kept"),))
    return None


def _says_nothing_new(before: Record, after: Record) -> bool:
    """Whether an upsert changes nothing but times and trust."""
    same = replace(
        after,
        updated_at=before.updated_at,
        reinforced_at=before.reinforced_at,
        expires_at=before.expires_at,
        occurred_at=before.occurred_at,
        session=before.session,
        source=before.source,
        trust=before.trust,
        heard=before.heard,
        confidence=before.confidence,
    )
    return content(same) == content(before)


def _same_event(after: Record, view: View) -> Verdict | None:
    for other in view.neighbours:
        shared = set(after.aliases) & set(other.aliases) and after.session == other.session
        again = (
            after.occurred_at is not None
            and (after.occurred_at, after.session, after.speaker) == (other.occurred_at, other.session, other.speaker)
            and not (after.aliases or other.aliases)
            and after.text == other.text
        )
        if shared or again:
            return Same(existing=other, reasons=(_reason("same_event", other, "records this event already"),))
    return None


def _reason(code: str, other: Record, what: str) -> Reason:
    return Reason(gate="duplicate", code=code, detail=f"{other.id} {what}")
