"""The authority gate: who may do what to which memory.

The gate decides by the actor, the operation, the trust, and the strictest access of tier, block and memory, before and
after the change. Wording never matters.

Invariants
(1) Only a proposal of its own changes the text of the identity, and only the owner's passes without review. The
    owner alone withdraws or restores it.
(2) A write to core, a permanent memory and a promotion need review, unless they are the owner's. If policy requires
    four eyes, the owner's need review as well.
(3) A stricter access never permits more.
(4) A source with less trust does not change a memory with more trust without review, whatever the operation and field.
    Exceptions: upkeep outside of core, an owner who may approve alone, and a memory or core block that the owner
    opened to agents by its access.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import islice

import msgspec

from keepward.core import change as changes
from keepward.core.commit import Reason
from keepward.core.memory import Access, Kind, Stability, Tier
from keepward.core.policy import Policy, access_for
from keepward.core.principals import (
    CLAIMED,
    SOURCES,
    Actor,
    ActorKind,
    Role,
    Trust,
    branch_of,
    branch_scope,
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
    is_identity,
    reasons_of,
    retires_own_message,
)

_reason = reasons_of("authority")
_APPLY_BY_HAND = _reason(
    "apply_by_hand", "the persona is a file: its owner applies the diff that `keepward identity` shows"
)
#: Name of a trust level in messages.
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
    """Refuse operations that this actor may not request; quarantine those that need a reviewer."""
    forbidden = tuple(_refusal_reasons(case, view, policy))
    if forbidden:
        return Refuse(reasons=forbidden)
    # Outside of core, a memory that may be written may be reinforced; a job or the system archives and expires it.
    is_upkeep = case.after.tier is not Tier.CORE and (
        isinstance(case.change, changes.Reinforce)
        or (
            isinstance(case.change, changes.Archive | changes.Expire)
            and case.actor.kind in {ActorKind.JOB, ActorKind.SYSTEM}
        )
    )
    if is_upkeep or policy.may_self_approve(case.actor):
        return Rewrite(after=case.after, reasons=(_APPLY_BY_HAND,)) if view.identity_in == "file" else None
    needs_review = (*_quarantine_reasons(case, view, policy), *_below_target_trust(case, view, policy))
    if needs_review:
        return Quarantine(reasons=needs_review)
    claimed = _claims_higher_source(case, view)
    return Rewrite(after=case.after, reasons=(claimed,)) if claimed else None


def _refusal_reasons(case: GateInput, view: GateContext, policy: Policy) -> Iterator[Reason]:
    after, before, actor = case.after, case.before, case.actor
    sides = [side for side in (before, after) if side is not None]
    withdraws = isinstance(case.change, changes.Retire | changes.Archive | changes.Restore | changes.Revert)
    if view.identity_in is None and any(map(is_identity, sides)) and not (actor.is_owner and withdraws):
        yield _reason("identity_is_immune", "the identity is no ordinary memory: propose a text by `update_identity`")
        return
    if view.contained and not actor.is_owner:
        yield _reason("contained", "this memory was contained: only the owner can restore it")
    if actor.rights is Role.REVIEWER:
        yield _reason("reviewers_do_not_write", "a reviewer approves and rejects; only agents and the owner write")
    elif not actor.may_propose:
        yield _reason("credential_reads_only", "this token only reads; ask the owner for a token that may propose")
    # What a branch changes of a memory of main is on the branch.
    scopes = [branch_scope(branch_of(after.scope), side.scope) for side in sides]
    outside = (outside_rights(case.scope, case.write_scope, scope) for scope in scopes)
    yield from islice(filter(None, outside), 1)
    if after.tier is Tier.CORE and view.identity_in is None:
        if after.key not in policy.core_keys:
            yield _reason(
                "unknown_block", f"core memory consists of blocks: use a key of {', '.join(policy.core_keys)}"
            )
        elif after.key == "human" and _needs_user_evidence(actor) and not _has_user_evidence(case, view):
            detail = (
                "the human block needs evidence: the id of a user message that the user's own handle recorded. "
                "If the user or the owner proposes the block, a message that an agent recorded is enough"
            )
            yield _reason("needs_user_evidence", detail)
    if not actor.is_owner and view.identity_in is None and Access.READ_ONLY in _accesses(case, policy):
        yield _reason("read_only", "this memory is read-only: only the owner writes it, or changes its access")


def _quarantine_reasons(case: GateInput, view: GateContext, policy: Policy) -> Iterator[Reason]:
    after, before, change = case.after, case.before, case.change
    if view.identity_in is not None:
        yield _reason("owner_decides", "the identity takes the owner's own approval; a reviewer's is not enough")
    if view.identity_in == "file":
        yield _APPLY_BY_HAND
    accesses = _accesses(case, policy)
    if Access.APPROVAL in accesses:
        where = f"the block `{after.key}`" if after.tier is Tier.CORE else "this memory"
        yield _reason("needs_approval", f"{where} changes only with approval")
    elif (
        Access.APPEND in accesses
        and before is not None
        and not isinstance(change, changes.Insert | changes.Append)
        and not retires_own_message(case)
    ):
        name = changes.operation(change)
        yield _reason("append_only", f"text may be added to this memory; to {name} it needs approval")
    if isinstance(change, changes.Promote) or (
        after.stability is Stability.PERMANENT and (before is None or before.stability is not Stability.PERMANENT)
    ):
        yield _reason("permanence_needs_approval", "a permanent memory needs approval")
    if isinstance(change, changes.Retire) and case.actor.kind in {ActorKind.JOB, ActorKind.SYSTEM}:
        yield _reason("automatic_removal", "a job may archive a memory; to retire it needs approval")
    if after.trust < Trust.AGENT and _brings_text(case):
        if after.key is not None:
            yield _reason("untrusted_origin", f"text with the trust `{after.trust.label}` needs review under a key")
        if after.kind is Kind.RULE:
            yield _reason("untrusted_origin", f"text with the trust `{after.trust.label}` needs review as a rule")


def _below_target_trust(case: GateInput, view: GateContext, policy: Policy) -> Iterator[Reason]:
    """Yield a reason if the change has less trust than the memory (4)."""
    before, change = case.before, case.change
    if before is None:
        return
    trust = case.after.trust
    if not isinstance(change, changes.TEXT_CHANGES):
        # The record's trust covers the source of new text. Other changes have the trust of the actor.
        trust = min(trust, trust_of(case.actor, default_source(case.actor)))
    if view.successor is not None:
        trust = min(trust, view.successor.trust)
    if trust >= before.trust:
        return
    if trust >= Trust.AGENT and (before.tier is Tier.CORE or before.access is not None):
        # The owner's setting, not a default, may let agents make this change.
        access = access_for(policy, before.tier, before.key, before.access)
        adds = isinstance(change, changes.Append | changes.Insert)
        if access is Access.READ_WRITE or (access is Access.APPEND and adds):
            return
    detail = f"the {before.trust.label} said this, and {_SOURCE_PHRASES[trust]} wants to change it: a person decides"
    yield _reason("lower_trust", detail)


def with_source_that_holds(case: GateInput, view: GateContext) -> GateInput:
    """Return a step whose record has the source that holds, and a claimed one in its evidence.

    An event with the source of a user is left as it is: an agent relays the user's words, and its trust says so.
    """
    after, claimed = case.after, getattr(case.change, "source", None)
    if after.source != claimed or _claims_higher_source(case, view) is None:
        return case
    if after.kind is Kind.EVENT and SOURCES[after.source].trust <= Trust.USER:
        return case
    evidence = tuple(sorted({*after.evidence, f"{CLAIMED}{claimed}"}))
    record = msgspec.structs.replace(after, source=default_source(case.actor), evidence=evidence)
    return dataclasses.replace(case, after=record)


def _claims_higher_source(case: GateInput, view: GateContext) -> Reason | None:
    """Return a reason if an agent claims a source above its own, unless the store recorded the cited message."""
    source = getattr(case.change, "source", None)
    if case.actor.kind is not ActorKind.AGENT or source not in SOURCES or view.user_evidence:
        return None
    own = trust_of(case.actor, source)
    if SOURCES[source].trust <= own:
        return None
    detail = (
        f"{_SOURCE_PHRASES[own]} may not claim the source {source}, so the trust is that of {_SOURCE_PHRASES[own]}: "
        "cite as evidence the id of a message from that source that this store recorded"
    )
    return _reason("claimed_source", detail)


def _brings_text(case: GateInput) -> bool:
    """Whether a text is new under its key or in its tier: written, or moved under a key or into core."""
    before, after = case.before, case.after
    if isinstance(case.change, changes.Move) and before is not None:
        return after.key != before.key or (after.tier is Tier.CORE and before.tier is not Tier.CORE)
    return isinstance(case.change, changes.TEXT_CHANGES)


def approver_certifies_text(case: GateInput) -> bool:
    """Whether an approval of this change certifies the text: it is new, or moves under a key, into core or permanence.

    To approve a retirement, a restoration or a move to another scope does not state that the text is true.
    """
    if isinstance(case.change, changes.Replace) and case.before is not None:
        return case.after.text != case.before.text
    return isinstance(case.change, changes.Promote) or _brings_text(case)


def _accesses(case: GateInput, policy: Policy) -> set[Access]:
    sides = [(side, side.access) for side in (case.before, case.after) if side is not None]
    if case.before is None and case.actor.kind is ActorKind.IMPORTER:
        # A person decides on a file with a read-only block; its access is for later writes.
        sides = [(case.after, None)]
    return {access_for(policy, side.tier, side.key, own) for side, own in sides}


def outside_rights(handle: str, write_scope: str, scope: str) -> Reason | None:
    """Return why a handle at one scope may not write to another; None if it may."""
    if scope not in visible_from(handle) and not is_within_scope(scope, handle):
        return _reason("out_of_scope", "the scope is not visible to this handle: open the store at that scope")
    if not is_within_scope(scope, write_scope):
        detail = f"this token writes at {write_scope} and below: ask the owner for one with the right `share`"
        return _reason("out_of_scope", detail)
    return None


def _needs_user_evidence(actor: Actor) -> bool:
    """Whether an actor may propose the human block only with evidence: not the owner, nor the owner's import."""
    return not actor.is_owner and actor.kind is not ActorKind.IMPORTER


def _has_user_evidence(case: GateInput, view: GateContext) -> bool:
    """Whether new text cites a recorded user message itself: evidence of an earlier text does not count."""
    change = case.change
    references = case.after.evidence
    if isinstance(change, changes.Insert | changes.Append):
        references = change.evidence
    elif isinstance(change, changes.Replace) and change.text is not changes.UNSET:
        references = () if change.evidence is changes.UNSET else change.evidence
    return any(reference in view.user_evidence for reference in references)
