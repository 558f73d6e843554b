"""Containment: take everything that a source, actor, session, commit or memory touched out of use, in one commit.

Invariants
(1) Plan, digest, apply: what is carried out is the set and the versions that were shown, or nothing.
(2) Nothing is deleted. A contained memory is archived by the op ``contain``; its history names the commit.
(3) It is in no prompt, no recall and no duplicate answer; nobody but the owner brings it back, and restating
    a contained fact revives nothing.
(4) One rollback of the commit gives every memory back as it was, whatever its status had been.
"""

from __future__ import annotations

from dataclasses import replace

from keepward.engine.commit import store_steps
from keepward.engine.impact import impact
from keepward.engine.kit import Kit, Who
from keepward.errors import Conflict, InvalidInput, Unauthorised
from keepward.gates import authority, secrets
from keepward.gates.verdict import Case, Refuse, View
from keepward.model.change import Archive
from keepward.model.codec import canonical, digest
from keepward.model.commit import Step
from keepward.model.inquiry import Containment, Selector
from keepward.model.memory import Record, Status

#: The op of its events and the kind of its commit.
CONTAIN = "contain"


def contain(kit: Kit, who: Who, selector: Selector, *, plan: str | None, reason: str) -> Containment:
    """Return the plan; carry it out when ``plan`` is its digest. With nothing left to contain, do nothing.

    Raises:
        Unauthorised: planning takes a reviewer or the owner, carrying out the owner.
        Conflict: the set is not the one whose digest was named.
        InvalidInput: a secret in the reason.
    """
    if plan is not None and not (who.actor.is_owner and who.actor.able("admin")):
        raise Unauthorised("containing takes the owner; a reviewer can plan it and show the digest")
    found = impact(kit, who, selector)
    items = tuple(record for record in (*found.direct, *found.derived) if not _is_gone(kit, who, record))
    named = _digest(who.tenant, selector, items)
    result = Containment(applied=False, impact=found, items=items, digest=named)
    if plan is None or not items:
        return result
    if plan != named:
        raise Conflict("the plan is not the one you saw: what it would contain has changed; look at it again")
    why = f"contain {selector}: {reason.strip()}" if reason.strip() else f"contain {selector}"
    if secrets.scrub(why) != why:
        raise InvalidInput("the reason holds what looks like a secret; leave it out")
    steps = [_step(kit, who, record) for record in items]
    stored = store_steps(
        kit,
        who,
        steps,
        base={record.id: record.version for record in items},
        reason=why,
        kind=CONTAIN,
        details={"approved_by": who.actor.label, "approved_digest": named},
        receipt_kind="contain",
    )
    return replace(result, applied=True, commit=stored.commit, receipt=stored.receipt)


def _is_gone(kit: Kit, who: Who, record: Record) -> bool:
    """Whether a memory is contained already, or erased."""
    if record.status is Status.ERASED:
        return True
    return record.status is Status.ARCHIVED and kit.store.history(who.tenant, record.id)[-1][1].op == CONTAIN


def _digest(tenant: str, selector: Selector, items: tuple[Record, ...]) -> str:
    return digest(
        "containment",
        canonical([tenant, selector.way, selector.value, [[record.id, record.version] for record in items]]),
    ).hex()


def _step(kit: Kit, who: Who, record: Record) -> Step:
    now = kit.clock.now()
    after = replace(record, status=Status.ARCHIVED, version=record.version + 1, updated_at=now)
    case = Case(change=Archive(id=record.id), actor=who.actor, scope=who.scope, before=record, after=after)
    if not (kit.policy.enabled and kit.policy.capture):
        raise Unauthorised("memory is switched off by policy; switch capture on to contain")
    verdict = authority.judge(case, View(now=now), kit.policy)
    if isinstance(verdict, Refuse):
        raise Unauthorised(verdict.reasons[0].detail)
    return Step(op=CONTAIN, before=record, after=after)
