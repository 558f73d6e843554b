"""Fold: what a memory looks like after a change, and how a commit is undone.

Invariants
(1) Pure: the result depends on the arguments alone.
(2) A change touches the fields it names and no other; a version follows the one before it.
(3) What is derived inherits strictest sensitivity, narrowest scope, earliest expiry, least trust and
    least confidence of its parents.
(4) A ``Revert`` gives the content of the version that it names, whatever came after that.
(5) A memory is trusted no more than the least trusted of those who set any of its fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar, assert_never

from msgspec import field
from msgspec.structs import replace

from keepward.core import change as ask
from keepward.core.change import UNSET
from keepward.core.memory import (
    Access,
    ContentType,
    Kind,
    Record,
    Sensitivity,
    Stability,
    Status,
    Tier,
    confidence_at,
    importance_at,
    round_share,
)
from keepward.core.policy import Policy, access_for
from keepward.core.principals import (
    SOURCES,
    Actor,
    ActorKind,
    Trust,
    default_source,
    is_task_scope,
    trust_of,
    user_of,
    visible_from,
)
from keepward.core.serialization import encode_record
from keepward.core.value import Data, unknown_name_message
from keepward.errors import Conflict, InvalidInput

_E = TypeVar("_E", bound=StrEnum)
_STATUS_AFTER = {ask.Retire: Status.RETIRED, ask.Archive: Status.ARCHIVED, ask.Expire: Status.EXPIRED}
#: Fields that an edit names, those that are sorted among them; and shares.
_EDITABLE_FIELDS = ("text", "category", "subject", "tags", "evidence")
_SHARE_FIELDS = ("confidence", "importance")
#: Fields that a new memory takes from its change as they stand there; each other one is computed.
_COPIED_FIELDS = tuple(
    sorted(
        set(ask.Insert.__struct_fields__)
        & set(Record.__struct_fields__)
        - {"tier", "kind", "tags", "content_type", "source", "evidence", "derived_from", "confidence", "importance"}
        - {"sensitivity", "stability", "access", "subject"}
    )
)


class ChangeContext(Data):
    """What a fold needs to know besides the change."""

    now: datetime
    actor: Actor
    policy: Policy
    #: Records named in ``derived_from``.
    parents: Mapping[str, Record] = field(default_factory=dict)
    #: Least trust of what the writer was handed lately, where that is below its own.
    heard: Trust | None = None
    #: For Revert: the record at the version to return to.
    earlier: Record | None = None


def apply(change: ask.Change, before: Record | None, frame: ChangeContext) -> Record:
    """Return the record after a change.

    Raises:
        InvalidInput: a name of a tier, kind, ... is unknown, or parents' scopes exclude each other.
        Conflict: the change needs a memory that is not there, or one in another status.
    """
    if isinstance(change, ask.Insert):
        return _insert(change, frame) if before is None else _upsert(change, before, frame)
    if before is None:
        raise Conflict("the memory is gone; look it up again")
    now = frame.now
    match change:
        case ask.Replace():
            after = _replace(change, before, frame)
        case ask.Append():
            after = _append(change, before, frame)
        case ask.Supersede():
            after = replace(before, status=Status.SUPERSEDED, superseded_by=change.by)
        case ask.Move():
            after = _move(change, before, frame)
        case ask.Promote():
            after = _promote(change, before, frame)
        case ask.Retire() | ask.Archive() | ask.Expire():
            if isinstance(change, ask.Expire) and before.status_at(now) is not Status.EXPIRED:
                raise Conflict("the memory's term is not over; it holds until then")
            after = replace(before, status=_STATUS_AFTER[type(change)])
        case ask.Restore():
            after = _restore(change, before, frame)
        case ask.Reinforce():
            raised = round_share(min(1.0, importance_at(before, now) + change.gain))
            confirmed = now if change.confirms else before.reinforced_at
            after = replace(before, reinforced_at=confirmed, importance=raised)
        case ask.Revert():
            after = frame.earlier or replace(before, status=Status.RETIRED)
            return replace(after, version=before.version + 1)
        case _:
            assert_never(change)
    return replace(after, version=before.version + 1, updated_at=now)


def content(record: Record) -> bytes:
    """Return what a record says regardless of its version number, for comparing states."""
    return encode_record(replace(record, version=0))


def default_tier(change: ask.Insert) -> str:
    """Return the tier of a write that names none, whoever writes: remembering is for good.

    Working in the scope of a task, by kind where the kind decides, else archival. Never core, except for an
    identity, which no write can store.
    """
    match change.kind:
        case "event" | "summary":
            return Tier.EPISODIC.value
        case "rule" | "document":
            return Tier.ARCHIVAL.value
        case "identity":
            return Tier.CORE.value
    return Tier.WORKING.value if is_task_scope(change.scope) else Tier.ARCHIVAL.value


def default_kind(tier: Tier, key: str | None) -> Kind:
    """Return the kind of a write that names none."""
    if tier is Tier.CORE:
        named = {"persona": Kind.IDENTITY, "operating_rules": Kind.RULE, "workspace_state": Kind.STATE}
        return named.get(key or "", Kind.FACT)
    return {Tier.WORKING: Kind.STATE, Tier.EPISODIC: Kind.EVENT}.get(tier, Kind.FACT)


def default_stability(tier: Tier, kind: Kind) -> Stability:
    """Return the stability of a write that names none."""
    if kind is Kind.IDENTITY:
        return Stability.PERMANENT
    if tier is Tier.WORKING or kind in {Kind.EVENT, Kind.SUMMARY}:
        return Stability.VOLATILE
    return Stability.STABLE


def default_ttl(tier: Tier, kind: Kind, stability: Stability, policy: Policy) -> timedelta | None:
    """Return the time to live of a write that names none; only volatile memories get one."""
    if stability is not Stability.VOLATILE:
        return None
    if tier is Tier.WORKING:
        return policy.ttl_working
    return policy.ttl_by_kind.get(kind, policy.ttl_volatile)


def metadata_text(metadata: Mapping[str, Any] | None) -> str | None:
    """Return the metadata as JSON text with sorted keys, or None when empty.

    Raises:
        InvalidInput: values JSON cannot hold, such as NaN or a date.
    """
    if not metadata:
        return None
    try:
        return json.dumps(metadata, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as fault:
        raise InvalidInput(
            "metadata holds what JSON has, finite numbers included; write dates, bytes and the like as texts"
        ) from fault


def _enum_member(enum: type[_E], value: str, what: str) -> _E:
    try:
        return enum(value)
    except ValueError as fault:
        raise InvalidInput(unknown_name_message(what, value, list(enum))) from fault


def _insert(change: ask.Insert, frame: ChangeContext) -> Record:
    tier = _enum_member(Tier, default_tier(change) if change.tier is None else change.tier, "tier")
    kind = default_kind(tier, change.key) if change.kind is None else _enum_member(Kind, change.kind, "kind")
    stability = (
        _enum_member(Stability, change.stability, "stability") if change.stability else default_stability(tier, kind)
    )
    ttl = change.ttl if change.ttl is not None else default_ttl(tier, kind, stability, frame.policy)
    source = change.source or default_source(frame.actor)
    known = SOURCES.get(source, SOURCES["unknown"])
    trust = trust_of(frame.actor, source)
    born = Record(
        **{name: getattr(change, name) for name in _COPIED_FIELDS},
        subject=change.subject if change.subject is not None else user_of(change.scope),
        version=1,
        tier=tier,
        kind=kind,
        tags=_sorted(change.tags),
        content_type=_enum_member(ContentType, change.content_type, "content type"),
        metadata_json=metadata_text(change.metadata),
        source=source,
        trust=trust,
        heard=frame.heard if frame.heard is not None and frame.heard < trust else None,
        evidence=_sorted(change.evidence),
        derived_from=tuple(frame.parents[name].id if name in frame.parents else name for name in change.derived_from),
        confidence=round_share(known.confidence if change.confidence is None else change.confidence),
        importance=round_share(known.importance if change.importance is None else change.importance),
        sensitivity=_enum_member(Sensitivity, change.sensitivity or "normal", "sensitivity"),
        stability=stability,
        access=_enum_member(Access, change.access, "access") if change.access else None,
        author=frame.actor.label,
        created_at=frame.now,
        expires_at=None if ttl is None else frame.now + ttl,
        reinforced_at=frame.now,
    )
    return inherit(born, list(frame.parents.values()))


def inherit(child: Record, parents: Sequence[Record]) -> Record:
    """Return the child with what it must take over from its parents (3).

    Raises:
        InvalidInput: two parents lie in scopes neither of which sees the other.
    """
    if not parents:
        return child
    scopes = sorted({child.scope, *(parent.scope for parent in parents)}, key=lambda scope: (len(scope), scope))
    narrowest = scopes[-1]
    if not set(scopes) <= set(visible_from(narrowest)):
        raise InvalidInput("memories of scopes that cannot see each other cannot be joined")
    ends = [each.expires_at for each in (child, *parents) if each.expires_at is not None]
    sensitive = any(each.sensitivity is Sensitivity.SENSITIVE for each in (child, *parents))
    return replace(
        child,
        scope=narrowest,
        trust=min(child.trust, *(parent.trust for parent in parents)),
        heard=_lowest_taint(child.heard, *(parent.heard for parent in parents)),
        confidence=min(child.confidence, *(confidence_at(parent, child.created_at) for parent in parents)),
        sensitivity=Sensitivity.SENSITIVE if sensitive else Sensitivity.NORMAL,
        expires_at=min(ends) if ends else None,
        evidence=_sorted([*child.evidence, *(item for parent in parents for item in parent.evidence)]),
    )


def _sorted(items: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(set(items)))


def reinforced_by(existing: Record, restated: Record, change: ask.Insert, frame: ChangeContext) -> Record | None:
    """Return a memory with what a restatement of it adds: trust, evidence, confidence, the kind of a rule.

    Nothing is ever weakened. None where nothing is added; where it comes from somebody who is trusted less; and where
    a program says again what it may have read here, with more trust than there was: only a person lends that.
    """
    person = frame.actor.kind in {ActorKind.OPERATOR, ActorKind.USER}
    raised = restated.trust > existing.trust
    if restated.trust < existing.trust or (raised and not person) or existing.kind is Kind.EVENT:
        return None
    backed = not set(restated.evidence) <= set(existing.evidence)
    surer = restated.confidence > existing.confidence and (
        backed or raised or (person and change.confidence is not None)
    )
    after = replace(
        existing,
        trust=restated.trust,
        heard=None if person else _lowest_taint(existing.heard, restated.heard),
        source=restated.source if raised or surer else existing.source,
        evidence=_sorted([*existing.evidence, *restated.evidence]),
        confidence=restated.confidence if surer else existing.confidence,
        kind=Kind.RULE if change.kind == Kind.RULE.value else existing.kind,
    )
    if content(after) == content(existing):
        return None
    importance, now = importance_at(existing, frame.now), frame.now
    return replace(after, version=existing.version + 1, importance=importance, updated_at=now, reinforced_at=now)


def _trust_of_new_text(before: Record, frame: ChangeContext, source: str | None) -> Trust:
    """Return the trust of new text: an owner's own words count as the owner's, others' never raise it."""
    owner = frame.actor.is_owner
    return trust_of(frame.actor, source or default_source(frame.actor), () if owner else (before.trust,))


def _trust_after_edit(before: Record, frame: ChangeContext, source: str | None = None) -> Trust:
    """Return the trust of a memory of which somebody sets a field (5)."""
    return trust_of(frame.actor, source or default_source(frame.actor), (before.trust,))


def _taint_of_new_text(before: Record, frame: ChangeContext) -> Trust | None:
    """Return the mark of new text: an owner's own words carry none, others' never take one away."""
    return None if frame.actor.is_owner else _lowest_taint(before.heard, frame.heard)


def _lowest_taint(*marks: Trust | None) -> Trust | None:
    return min((mark for mark in marks if mark is not None), default=None)


def _upsert(change: ask.Insert, before: Record, frame: ChangeContext) -> Record:
    """Apply an insert whose key is taken: the occupant takes the new text and the fields that were named."""
    asked = _insert(replace(change, id=before.id), frame)
    if access_for(frame.policy, before.tier, before.key, before.access) is Access.APPEND:
        after = _append(change, before, frame)
        return replace(after, version=before.version + 1, updated_at=frame.now)
    sensitive = Sensitivity.SENSITIVE in {asked.sensitivity, before.sensitivity}
    kept = {name: getattr(before, name) for name in ("tier", "kind", "stability") if not getattr(change, name)}
    named = ("subject", "category", "tags", "evidence", "access")
    kept |= {name: getattr(before, name) for name in named if not getattr(asked, name)}
    if change.metadata is None:
        # An object without members is one all the same, and empties what was there.
        kept["metadata_json"] = before.metadata_json
    return replace(
        asked,
        **kept,
        version=before.version + 1,
        expires_at=_renewed(change, before, frame),
        trust=min(_trust_of_new_text(before, frame, change.source), asked.trust),
        heard=_taint_of_new_text(before, frame),
        importance=before.importance if change.importance is None else asked.importance,
        sensitivity=Sensitivity.SENSITIVE if sensitive else Sensitivity.NORMAL,
        aliases=_sorted([*before.aliases, *change.aliases]),
        author=before.author,
        created_at=before.created_at,
        updated_at=frame.now,
    )


def _renewed(change: ask.Insert, before: Record, frame: ChangeContext) -> datetime | None:
    if change.ttl is not None:
        return frame.now + change.ttl
    stability = Stability(change.stability) if change.stability else before.stability
    tier = Tier(change.tier) if change.tier else before.tier
    ttl = default_ttl(tier, before.kind, stability, frame.policy)
    if ttl is not None:
        return frame.now + ttl
    return before.expires_at


def _replace(change: ask.Replace, before: Record, frame: ChangeContext) -> Record:
    given = {name: value for name in _EDITABLE_FIELDS if (value := getattr(change, name)) is not UNSET}
    after: dict[str, Any] = {
        name: _sorted(value) if name in {"tags", "evidence"} else value for name, value in given.items()
    }
    after |= {name: round_share(value) for name in _SHARE_FIELDS if (value := getattr(change, name)) is not None}
    if change.metadata is not UNSET:
        after["metadata_json"] = metadata_text(change.metadata)
    if change.ttl is not UNSET:
        after["expires_at"] = None if change.ttl is None else frame.now + change.ttl
    if change.text is not UNSET or (change.source is not None and frame.actor.is_owner):
        # An owner who names a source vouches for the text as it stands.
        after |= {
            "trust": _trust_of_new_text(before, frame, change.source),
            "heard": _taint_of_new_text(before, frame),
            "source": change.source or default_source(frame.actor),
            "reinforced_at": frame.now,
        }
    elif not (frame.actor.kind is ActorKind.JOB and set(after) <= {"evidence"}):
        # A job gives what stays the evidence of what it lets go, and says nothing itself.
        after["trust"] = _trust_after_edit(before, frame, change.source)
    if change.sensitivity is not None:
        wanted = _enum_member(Sensitivity, change.sensitivity, "sensitivity")
        # Only the owner may declare that something sensitive no longer is.
        if wanted is Sensitivity.SENSITIVE or frame.actor.is_owner:
            after["sensitivity"] = wanted
    return replace(before, **after)


def _append(change: ask.Append | ask.Insert, before: Record, frame: ChangeContext) -> Record:
    surest = before.confidence if change.confidence is None else round_share(change.confidence)
    return replace(
        before,
        text=f"{before.text}\n{change.text}",
        trust=_trust_after_edit(before, frame, change.source),
        heard=_lowest_taint(before.heard, frame.heard),
        evidence=_sorted([*before.evidence, *change.evidence]),
        confidence=min(before.confidence, surest),
        reinforced_at=frame.now,
    )


def _move(change: ask.Move, before: Record, frame: ChangeContext) -> Record:
    after: dict[str, Any] = {}
    if change.tier is not UNSET:
        after["tier"] = _enum_member(Tier, change.tier, "tier")
        if before.tier is Tier.WORKING and after["tier"] is not Tier.WORKING:
            # The term was the working tier's, not the memory's.
            after |= {"stability": Stability.STABLE, "expires_at": None}
        elif before.tier is not Tier.WORKING and after["tier"] is Tier.WORKING:
            ends = frame.now + frame.policy.ttl_working
            after |= {"stability": Stability.VOLATILE, "expires_at": min(before.expires_at or ends, ends)}
    if change.scope is not UNSET:
        after["scope"] = change.scope
    if change.key is not UNSET and change.key != before.key:
        # A name is a field like any other (5).
        after |= {"key": change.key, "trust": _trust_after_edit(before, frame)}
    return replace(before, **after)


def _promote(change: ask.Promote, before: Record, frame: ChangeContext) -> Record:
    return replace(
        before,
        text=change.text,
        tier=Tier.CORE if before.key in frame.policy.core_keys else Tier.ARCHIVAL,
        kind=Kind.FACT if before.kind in {Kind.STATE, Kind.EVENT} else before.kind,
        stability=Stability.PERMANENT,
        expires_at=None,
        source="promotion",
        trust=trust_of(frame.actor, "promotion", () if frame.actor.is_owner else (before.trust,)),
        reinforced_at=frame.now,
    )


def _restore(change: ask.Restore, before: Record, frame: ChangeContext) -> Record:
    if before.is_live(frame.now):
        raise Conflict("the memory already holds; there is nothing to restore")
    lapsed = before.expires_at is not None and before.expires_at <= frame.now
    ttl = change.ttl
    if ttl is None and lapsed:
        ttl = default_ttl(before.tier, before.kind, before.stability, frame.policy) or frame.policy.ttl_volatile
    return replace(
        before,
        status=Status.ACTIVE,
        superseded_by=None,
        expires_at=before.expires_at if ttl is None else frame.now + ttl,
        reinforced_at=frame.now,
    )
