"""The authority gate: who may do what to which memory.

Decided from the actor, the operation and the strictest access of tier, block and memory, both of what
is there and of what it would become. Origin decides, wording never does.

Invariants
(1) The identity is immune: no actor writes, moves, retires or restores it as a memory. A new edition of its document
    is judged like the core block that it makes, and never through for anybody but the owner.
(2) Nothing that is not the owner's own reaches core, permanence or a promotion unreviewed; where policy asks for
    four eyes, nor does the owner's.
(3) A stricter access only ever tightens.
(4) What is trusted less changes nothing of what is trusted more unreviewed, whatever the operation and the field. Where
    the owner opened a memory or a core block by its access, an agent's own words may.
"""

from __future__ import annotations

from collections.abc import Iterator

from keepward.core import change as ask
from keepward.core.commit import Reason
from keepward.core.memory import CORE_BLOCKS, Access, Kind, Record, Stability, Tier
from keepward.core.policy import Policy, access_for
from keepward.core.principals import (
    SOURCES,
    ActorKind,
    Role,
    Trust,
    default_source,
    is_within_scope,
    trust_of,
    visible_from,
)
from keepward.gates.gate_types import (
    GateContext,
    GateInput,
    Quarantine,
    Refuse,
    Rewrite,
    Verdict,
    reasons_of,
    retires_own_turn,
)

_reason = reasons_of("authority")
#: How a message names an origin.
_SOURCE_PHRASES = {
    Trust.UNKNOWN: "something of unknown origin",
    Trust.WEB: "the web",
    Trust.IMPORT: "an import",
    Trust.DOCUMENT: "a document",
    Trust.TOOL: "a tool",
    Trust.AGENT: "an agent",
    Trust.USER: "the user",
    Trust.OWNER: "the owner",
}


def authority(case: GateInput, view: GateContext, policy: Policy) -> Verdict | None:
    """Refuse what this actor may not ask for; hold what a person has to decide."""
    forbidden = tuple(_refusal_reasons(case, view, policy))
    if forbidden:
        return Refuse(reasons=forbidden)
    if policy.may_self_approve(case.actor) or _is_upkeep(case):
        return None
    held = (*_quarantine_reasons(case, policy), *_below_target_trust(case, view, policy))
    if held:
        return Quarantine(reasons=held)
    claimed = _claims_higher_source(case, view)
    return Rewrite(after=case.after, reasons=(claimed,)) if claimed else None


def _refusal_reasons(case: GateInput, view: GateContext, policy: Policy) -> Iterator[Reason]:
    after, before, actor = case.after, case.before, case.actor
    sides = [side for side in (before, after) if side is not None]
    if not view.edition and any(_is_identity(side) for side in sides):
        detail = "the identity lives in its own document and is no memory: propose a new edition of that document"
        yield _reason("identity_is_immune", detail)
        return
    if view.contained and not actor.is_owner:
        yield _reason("contained", "this memory was contained: only the owner can bring it back")
    if actor.rights is Role.REVIEWER:
        yield _reason("reviewers_do_not_write", "a reviewer approves and rejects; writing takes an agent or the owner")
    elif not actor.may_propose:
        yield _reason("credential_reads_only", "this credential only reads; ask the owner for one that may propose")
    for side in sides:
        if not _is_within_handle(case.scope, side.scope):
            yield _reason("out_of_scope", "this handle does not reach that scope: open the store at that scope")
            break
        if not is_within_scope(side.scope, case.write_scope):
            detail = f"this token writes at {case.write_scope} and below: ask the owner for one that can `share`"
            yield _reason("out_of_scope", detail)
            break
    if after.tier is Tier.CORE:
        if after.key not in policy.core_keys:
            yield _reason("unknown_block", f"core memory is kept in blocks: use a key of {', '.join(policy.core_keys)}")
        elif after.key == "human" and not actor.is_owner and not _has_user_evidence(case, view):
            detail = (
                "the human block needs as evidence the id of a user message that the user's own handle recorded; "
                "one that an agent recorded is enough when the user or the owner proposes the block"
            )
            yield _reason("needs_user_evidence", detail)
    if not actor.is_owner and Access.READ_ONLY in _accesses(case, policy):
        yield _reason("read_only", f"this memory is read-only for a {actor.kind.value}")


def _quarantine_reasons(case: GateInput, policy: Policy) -> Iterator[Reason]:
    after, before, change = case.after, case.before, case.change
    accesses = _accesses(case, policy)
    if Access.APPROVAL in accesses:
        where = f"the block `{after.key}`" if after.tier is Tier.CORE else "this memory"
        yield _reason("needs_approval", f"{where} changes only with a person's approval")
    elif (
        Access.APPEND in accesses
        and before is not None
        and not isinstance(change, ask.Insert | ask.Append)
        and not retires_own_turn(case)
    ):
        what = ask.operation(change)
        yield _reason("append_only", f"this memory takes additions; to {what} it needs a person's approval")
    if isinstance(change, ask.Promote) or (
        after.stability is Stability.PERMANENT and (before is None or before.stability is not Stability.PERMANENT)
    ):
        yield _reason("permanence_needs_approval", "lasting knowledge is made by approval or promotion")
    if isinstance(change, ask.Retire) and case.actor.kind in {ActorKind.JOB, ActorKind.SYSTEM}:
        yield _reason("automatic_removal", "an automatic step archives; to retire takes a person's approval")
    if after.trust < Trust.AGENT and _brings_text(case):
        if after.key is not None:
            yield _reason(
                "untrusted_origin", f"a keyed memory does not take text of {after.trust.label} origin unreviewed"
            )
        if after.kind is Kind.RULE:
            yield _reason("untrusted_origin", f"a rule does not take text of {after.trust.label} origin unreviewed")


def _below_target_trust(case: GateInput, view: GateContext, policy: Policy) -> Iterator[Reason]:
    """Object to a change that is trusted less than what it changes (4)."""
    before, change = case.before, case.change
    if before is None:
        return
    least = case.after.trust
    if not isinstance(change, ask.TEXT_CHANGES):
        # What these set is in the trust of what they make; of the others only who asks is known.
        least = min(least, trust_of(case.actor, default_source(case.actor)))
    if view.successor is not None:
        least = min(least, view.successor.trust)
    if least >= before.trust or (least >= Trust.AGENT and _is_opened_to_agents(case, policy)):
        return
    detail = f"the {before.trust.label} said this, and {_SOURCE_PHRASES[least]} wants to change it: a person decides"
    yield _reason("lower_trust", detail)


def _claims_higher_source(case: GateInput, view: GateContext) -> Reason | None:
    """Return that an agent named a source above its own, unless the store recorded the message that it names."""
    source = getattr(case.change, "source", None)
    if case.actor.kind is not ActorKind.AGENT or source not in SOURCES or view.user_evidence:
        return None
    own = trust_of(case.actor, source)
    if SOURCES[source].trust <= own:
        return None
    detail = (
        f"the source {source} is not {_SOURCE_PHRASES[own]}'s to claim and it counts as {_SOURCE_PHRASES[own]}'s: "
        "name as evidence the id of a message of theirs that this store recorded"
    )
    return _reason("claimed_source", detail)


def _is_opened_to_agents(case: GateInput, policy: Policy) -> bool:
    """Whether the owner's setting, and not a default, lets agents do this to the memory."""
    before = case.before
    if before is None or (before.tier is not Tier.CORE and before.access is None):
        return False
    access = access_for(policy, before.tier, before.key, before.access)
    adds = isinstance(case.change, ask.Append | ask.Insert) and access is Access.APPEND
    return access is Access.READ_WRITE or adds


def _brings_text(case: GateInput) -> bool:
    """Whether a text comes to where it was not: written there, or moved under a key or into core."""
    before, after = case.before, case.after
    if isinstance(case.change, ask.Move) and before is not None:
        return after.key != before.key or (after.tier is Tier.CORE and before.tier is not Tier.CORE)
    return isinstance(case.change, ask.TEXT_CHANGES)


def approver_certifies_text(case: GateInput) -> bool:
    """Whether who approves this change approves the text itself: it is new, or comes under a key, into core, to last.

    Who lets a memory go, come back or lie elsewhere has not said that it is true.
    """
    if isinstance(case.change, ask.Replace) and case.before is not None:
        return case.after.text != case.before.text
    return isinstance(case.change, ask.Promote) or _brings_text(case)


def _is_upkeep(case: GateInput) -> bool:
    """Whether it is an automatic step that policy allows everywhere: confirm, or put away what is not core."""
    if case.after.tier is Tier.CORE:
        return False
    upkeep = case.actor.kind in {ActorKind.JOB, ActorKind.SYSTEM}
    return isinstance(case.change, ask.Reinforce) or (upkeep and isinstance(case.change, ask.Archive | ask.Expire))


def _accesses(case: GateInput, policy: Policy) -> set[Access]:
    sides = [side for side in (case.before, case.after) if side is not None]
    return {access_for(policy, side.tier, side.key, side.access) for side in sides}


def _is_identity(record: Record) -> bool:
    return record.kind is Kind.IDENTITY or (record.tier is Tier.CORE and record.key == CORE_BLOCKS[0])


def _is_within_handle(handle: str, scope: str) -> bool:
    """Whether a handle sees a scope or stands above it."""
    return scope in visible_from(handle) or is_within_scope(scope, handle)


def _has_user_evidence(case: GateInput, view: GateContext) -> bool:
    """Whether new text names a recorded user message itself: what backed an earlier text does not back it."""
    change = case.change
    named = case.after.evidence
    if isinstance(change, ask.Insert | ask.Append):
        named = change.evidence
    elif isinstance(change, ask.Replace) and change.text is not ask.UNSET:
        named = () if change.evidence is ask.UNSET else change.evidence
    return any(reference in view.user_evidence for reference in named)
