"""Reducer: a memory after a change.

* Pure functions: the result depends only on the arguments.
* A change alters only the fields that it names; its version follows the one before it.
* A derived memory gets the strictest sensitivity, narrowest scope, earliest expiry, lowest trust and lowest
  confidence of its parents.
* ``Revert`` restores the content of the named version, whatever came after it.
* A new text is its actor's, and dates from now: ``text_by`` and ``text_at``. Spoken words lose their
  speaker when another actor changes them, and the time when they were said.
* The trust of a memory is at most that of the least trusted actor who set one of its fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar, assert_never

from msgspec import field
from msgspec.structs import replace

from keepward.core import change as changes
from keepward.core.change import UNSET
from keepward.core.json_form import JsonText
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
    is_textless,
    round_share,
)
from keepward.core.policy import Policy, access_for
from keepward.core.principals import (
    CLAIMED,
    PEOPLE,
    ROLES,
    SOURCES,
    Actor,
    ActorKind,
    Trust,
    branch_of,
    branch_scope,
    default_source,
    is_task_scope,
    trust_of,
    user_of,
    visible_from,
)
from keepward.core.serialization import encode_record
from keepward.core.value import MAX_DEPTH, Data, is_too_deep, unknown_name_message
from keepward.errors import Conflict, InvalidInput

_E = TypeVar("_E", bound=StrEnum)
_STATUS_AFTER = {changes.Retire: Status.RETIRED, changes.Archive: Status.ARCHIVED, changes.Expire: Status.EXPIRED}
#: Fields that an edit may name.
EDITABLE_FIELDS = (
    "text",
    "category",
    "subject",
    "tags",
    "evidence",
    "speaker",
    "occurred_at",
    "valid_from",
    "valid_until",
)
_SHARE_FIELDS = ("confidence", "importance")
#: Fields that a new memory copies from its change; others are computed.
COPIED_FIELDS = tuple(
    sorted(
        set(changes.Insert.__struct_fields__)
        & set(Record.__struct_fields__)
        - {"tier", "kind", "tags", "content_type", "source", "evidence", "derived_from", "confidence", "importance"}
        - {"sensitivity", "stability", "access", "subject"}
    )
)


class ChangeContext(Data):
    """The inputs of the reducer besides the change."""

    now: datetime
    actor: Actor
    policy: Policy
    #: Records named in ``derived_from``.
    parents: Mapping[str, Record] = field(default_factory=dict)
    #: Lowest trust among the texts that the writer read recently; None unless it is below the writer's own trust.
    heard: Trust | None = None
    #: For Revert: the record at the version to return to.
    earlier: Record | None = None


def apply(change: changes.Change, before: Record | None, context: ChangeContext) -> Record:
    """Return the record after a change.

    Raises:
        InvalidInput: a name of a tier or kind is unknown, or the scopes of two parents exclude each other.
        Conflict: the memory does not exist or has the wrong status.
    """
    if isinstance(change, changes.Insert):
        return (
            _insert(change, context) if before is None else _signed(before, _upsert(change, before, context), context)
        )
    if before is None:
        raise Conflict("the memory does not exist any more; list memories again")
    now = context.now
    match change:
        case changes.Replace():
            after = _replace(change, before, context)
        case changes.Append():
            after = _append(change, before, context)
        case changes.Supersede():
            after = replace(before, status=Status.SUPERSEDED, superseded_by=change.by)
        case changes.Move():
            after = _move(change, before, context)
        case changes.Promote():
            after = _promote(change, before, context)
        case changes.Retire() | changes.Archive() | changes.Expire():
            if isinstance(change, changes.Expire) and before.status_at(now) is not Status.EXPIRED:
                raise Conflict("the memory has not expired yet")
            after = replace(before, status=_STATUS_AFTER[type(change)])
        case changes.Restore():
            after = _restore(change, before, context)
        case changes.Reinforce():
            importance = round_share(min(1.0, importance_at(before, now) + change.gain))
            confirmed = now if change.confirms else before.reinforced_at
            # Whatever a program repeats, only a person says that a memory is true although its source has changed.
            vouched = change.confirms and context.actor.kind in PEOPLE
            stale_at = None if vouched else before.stale_at
            after = replace(before, reinforced_at=confirmed, importance=importance, stale_at=stale_at)
        case changes.Revert():
            # Without its change on a branch, a memory of main is seen there again.
            after = context.earlier or replace(before, status=Status.RETIRED, branched_from=None)
            return replace(after, version=before.version + 1)
        case _:
            assert_never(change)
    return _signed(before, replace(after, version=before.version + 1, updated_at=now), context)


def _signed(before: Record, after: Record, context: ChangeContext) -> Record:
    """Return a changed record with the author and the time of its text."""
    if has_same_text(before, after):
        return replace(after, text_by=before.text_by, text_at=before.text_at)
    return replace(after, text_by=context.actor.label, text_at=context.now)


def has_same_text(before: Record, after: Record) -> bool:
    """Whether two versions say the same; a memory without text says its metadata."""
    same = (before.text, before.blob) == (after.text, after.blob)
    return same and (not is_textless(after) or before.metadata_json == after.metadata_json)


def _without_speaker(before: Record, text: str, actor: Actor) -> dict[str, Any]:
    """Return the fields that new words take from spoken words: its time, and the speaker if another one."""
    if before.speaker is None or text == before.text:
        return {}
    return {"occurred_at": None} if _is_speaker(actor, before) else {"occurred_at": None, "speaker": None}


def _is_speaker(actor: Actor, record: Record) -> bool:
    """Whether an actor is the speaker of a memory: a person by name or role, a program if it wrote the memory too."""
    name, speaker = actor.name.casefold(), (record.speaker or "").casefold()
    if actor.kind in PEOPLE:
        return speaker == name or (actor.kind is ActorKind.USER and speaker == "user")
    return record.text_by == actor.label and speaker in {name, "assistant"}


def content(record: Record) -> bytes:
    """Return the content of a record without its version number, for comparison."""
    return encode_record(replace(record, version=0))


def default_tier(change: changes.Insert) -> str:
    """Return the default tier of a write.

    It is working in the scope of a task, and archival otherwise, unless the kind decides.
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
    """Return the default kind of a write."""
    if tier is Tier.CORE:
        named = {"persona": Kind.IDENTITY, "operating_rules": Kind.RULE, "workspace_state": Kind.STATE}
        return named.get(key or "", Kind.FACT)
    return {Tier.WORKING: Kind.STATE, Tier.EPISODIC: Kind.EVENT}.get(tier, Kind.FACT)


def default_stability(tier: Tier, kind: Kind) -> Stability:
    """Return the default stability of a write."""
    if kind is Kind.IDENTITY:
        return Stability.PERMANENT
    if tier is Tier.WORKING or kind in {Kind.EVENT, Kind.SUMMARY}:
        return Stability.VOLATILE
    return Stability.STABLE


def default_ttl(tier: Tier, kind: Kind, stability: Stability, policy: Policy) -> timedelta | None:
    """Return the default time to live of a write; None unless the memory is volatile."""
    if stability is not Stability.VOLATILE:
        return None
    if tier is Tier.WORKING:
        return policy.ttl_working
    return policy.ttl_by_kind.get(kind, policy.ttl_volatile)


def metadata_text(metadata: Mapping[str, Any] | None) -> JsonText | None:
    """Return the metadata as JSON text with sorted keys; None if empty.

    Raises:
        InvalidInput: a value that JSON cannot represent, such as NaN or a date.
    """
    if not metadata:
        return None
    if is_too_deep(metadata):
        raise InvalidInput(f"metadata is nested at most {MAX_DEPTH} levels deep; write what is deeper as text")
    try:
        return JsonText.of(metadata)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput(
            "metadata takes JSON values with finite numbers; write dates, bytes and the like as text"
        ) from exc


def _enum_member(enum: type[_E], value: str, what: str) -> _E:
    try:
        return enum(value)
    except ValueError as exc:
        raise InvalidInput(unknown_name_message(what, value, list(enum))) from exc


def _insert(change: changes.Insert, context: ChangeContext) -> Record:
    tier = _enum_member(Tier, default_tier(change) if change.tier is None else change.tier, "tier")
    kind = default_kind(tier, change.key) if change.kind is None else _enum_member(Kind, change.kind, "kind")
    # The summary of a session lives as long as its messages.
    lasting = kind is Kind.SUMMARY and bool(change.session and change.derived_from)
    usual = Stability.STABLE if lasting else default_stability(tier, kind)
    stability = _enum_member(Stability, change.stability, "stability") if change.stability else usual
    ttl = change.ttl if change.ttl is not None else default_ttl(tier, kind, stability, context.policy)
    source = change.source or default_source(context.actor)
    known = SOURCES.get(source, SOURCES["unknown"])
    trust = trust_of(context.actor, source, _trust_of_role(change))
    record = Record(
        **{name: getattr(change, name) for name in COPIED_FIELDS},
        subject=change.subject if change.subject is not None else user_of(change.scope),
        version=1,
        tier=tier,
        kind=kind,
        tags=_sorted(change.tags),
        content_type=_enum_member(ContentType, change.content_type, "content type"),
        metadata_json=metadata_text(change.metadata),
        source=source,
        trust=trust,
        heard=context.heard if context.heard is not None and context.heard < trust else None,
        evidence=_sorted(change.evidence),
        derived_from=tuple(
            context.parents[name].id if name in context.parents else name for name in change.derived_from
        ),
        confidence=round_share(known.confidence if change.confidence is None else change.confidence),
        importance=round_share(known.importance if change.importance is None else change.importance),
        sensitivity=_enum_member(Sensitivity, change.sensitivity or "normal", "sensitivity"),
        stability=stability,
        access=_enum_member(Access, change.access, "access") if change.access else None,
        author=context.actor.label,
        created_at=context.now,
        expires_at=None if ttl is None else context.now + ttl,
        reinforced_at=context.now,
    )
    return inherit(record, list(context.parents.values()))


def _trust_of_role(change: changes.Insert) -> tuple[Trust, ...]:
    """Return the trust of the role that spoke an imported message; a person's import does not raise it."""
    role = (change.metadata or {}).get("role") if change.source == "import" else None
    source = ROLES.get(role) if isinstance(role, str) else None
    return () if source is None else (SOURCES[source].trust,)


def inherit(child: Record, parents: Sequence[Record]) -> Record:
    """Return the child with the restrictions of its parents.

    Raises:
        InvalidInput: two parents are in scopes that cannot see each other.
    """
    if not parents:
        return child
    # On a branch, the new memory stays on it, wherever its parents are.
    branch = branch_of(child.scope)
    named = {child.scope, *(branch_scope(branch, parent.scope) for parent in parents)}
    scopes = sorted(named, key=lambda scope: (len(scope), scope))
    narrowest = scopes[-1]
    if not set(scopes) <= set(visible_from(narrowest)):
        raise InvalidInput("memories of scopes that cannot see each other cannot be combined")
    expiries = [rec.expires_at for rec in (child, *parents) if rec.expires_at is not None]
    begins = max((rec.valid_from for rec in (child, *parents) if rec.valid_from is not None), default=None)
    ends = min((rec.valid_until for rec in (child, *parents) if rec.valid_until is not None), default=None)
    sensitive = any(rec.sensitivity is Sensitivity.SENSITIVE for rec in (child, *parents))
    return replace(
        child,
        scope=narrowest,
        trust=min(child.trust, *(parent.trust for parent in parents)),
        heard=_lowest_taint(child.heard, *(parent.heard for parent in parents)),
        confidence=min(child.confidence, *(confidence_at(parent, child.created_at) for parent in parents)),
        sensitivity=Sensitivity.SENSITIVE if sensitive else Sensitivity.NORMAL,
        expires_at=min(expiries) if expiries else None,
        # Parents that never hold together leave the earliest end.
        valid_from=None if begins is not None and ends is not None and ends <= begins else begins,
        valid_until=ends,
        stale_at=max((rec.stale_at for rec in parents if rec.stale_at is not None), default=None),
        evidence=_sorted([*child.evidence, *(item for parent in parents for item in parent.evidence)]),
    )


def _sorted(items: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(set(items)))


def reinforced_by(existing: Record, restated: Record, change: changes.Insert, context: ChangeContext) -> Record | None:
    """Return a memory with what a restatement adds: trust, evidence, confidence, the kind of a rule.

    Nothing is ever weakened. None means: nothing is added, or the restatement has lower trust, or a program repeats
    with higher trust what it may have read here. Only a person raises the trust.
    """
    person = context.actor.kind in PEOPLE
    raised = restated.trust > existing.trust
    if restated.trust < existing.trust or (raised and not person) or existing.kind is Kind.EVENT:
        return None
    evidence = {each for each in restated.evidence if not each.startswith(CLAIMED)}
    backed = not evidence <= {*existing.evidence}
    surer = restated.confidence > existing.confidence and (
        backed or raised or (person and change.confidence is not None)
    )
    after = replace(
        existing,
        trust=restated.trust,
        heard=None if person else _lowest_taint(existing.heard, restated.heard),
        source=restated.source if raised or surer else existing.source,
        evidence=_sorted([*existing.evidence, *evidence]),
        confidence=restated.confidence if surer else existing.confidence,
        kind=Kind.RULE if change.kind == Kind.RULE.value else existing.kind,
    )
    if content(after) == content(existing):
        return None
    importance, now = importance_at(existing, context.now), context.now
    return replace(after, version=existing.version + 1, importance=importance, updated_at=now, reinforced_at=now)


def _trust_of_new_text(before: Record, context: ChangeContext, source: str | None) -> Trust:
    """Return the trust of new text: the owner's own words count as the owner's; others never raise it."""
    owner = context.actor.is_owner
    return trust_of(context.actor, source or default_source(context.actor), () if owner else (before.trust,))


def _trust_after_edit(before: Record, context: ChangeContext, source: str | None = None) -> Trust:
    """Return the trust of a memory after an actor set one of its fields."""
    return trust_of(context.actor, source or default_source(context.actor), (before.trust,))


def _taint_of_new_text(before: Record, context: ChangeContext) -> Trust | None:
    """Return the taint of new text: none for the owner's own words; others never remove one."""
    return None if context.actor.is_owner else _lowest_taint(before.heard, context.heard)


def _lowest_taint(*taints: Trust | None) -> Trust | None:
    return min((taint for taint in taints if taint is not None), default=None)


def _upsert(change: changes.Insert, before: Record, context: ChangeContext) -> Record:
    """Apply an insert with a known key: the memory with that key gets the new text and the given fields."""
    requested = _insert(replace(change, id=before.id), context)
    if access_for(context.policy, before.tier, before.key, before.access) is Access.APPEND:
        return replace(_append(change, before, context), version=before.version + 1, updated_at=context.now)
    sensitive = Sensitivity.SENSITIVE in {requested.sensitivity, before.sensitivity}
    unchanged = {name: getattr(before, name) for name in ("tier", "kind", "stability") if not getattr(change, name)}
    named = ("subject", "category", "tags", "evidence", "access")
    unchanged |= {name: getattr(before, name) for name in named if not getattr(requested, name)}
    if change.metadata is None:
        # An empty object empties the metadata; None leaves it unchanged.
        unchanged["metadata_json"] = before.metadata_json
    return replace(
        requested,
        **unchanged,
        version=before.version + 1,
        expires_at=_renewed_expiry(change, before, context),
        trust=min(_trust_of_new_text(before, context, change.source), requested.trust),
        heard=_taint_of_new_text(before, context),
        importance=before.importance if change.importance is None else requested.importance,
        sensitivity=Sensitivity.SENSITIVE if sensitive else Sensitivity.NORMAL,
        aliases=_sorted([*before.aliases, *change.aliases]),
        author=before.author,
        created_at=before.created_at,
        updated_at=context.now,
    )


def _renewed_expiry(change: changes.Insert, before: Record, context: ChangeContext) -> datetime | None:
    if change.ttl is not None:
        return context.now + change.ttl
    stability = Stability(change.stability) if change.stability else before.stability
    tier = Tier(change.tier) if change.tier else before.tier
    ttl = default_ttl(tier, before.kind, stability, context.policy)
    if ttl is not None:
        return context.now + ttl
    return before.expires_at


def _replace(change: changes.Replace, before: Record, context: ChangeContext) -> Record:
    given = {name: value for name in EDITABLE_FIELDS if (value := getattr(change, name)) is not UNSET}
    after = _without_speaker(before, given.get("text", before.text), context.actor)
    after |= {name: _sorted(value) if name in {"tags", "evidence"} else value for name, value in given.items()}
    after |= {name: round_share(value) for name in _SHARE_FIELDS if (value := getattr(change, name)) is not None}
    if change.metadata is not UNSET:
        after["metadata_json"] = metadata_text(change.metadata)
    if change.ttl is not UNSET:
        after["expires_at"] = None if change.ttl is None else context.now + change.ttl
    if change.text is not UNSET or (change.source is not None and context.actor.is_owner):
        # An owner who gives a source vouches for the current text.
        after |= {
            "trust": _trust_of_new_text(before, context, change.source),
            "heard": _taint_of_new_text(before, context),
            "source": change.source or default_source(context.actor),
            "reinforced_at": context.now,
        }
    elif not (context.actor.kind is ActorKind.JOB and set(after) <= {"evidence"}):
        # A job only moves evidence from a removed memory; it adds no claim of its own.
        after["trust"] = _trust_after_edit(before, context, change.source)
    moves_evidence = context.actor.kind is ActorKind.JOB and change.text is UNSET
    if (change.text is not UNSET or change.evidence is not UNSET) and not moves_evidence:
        after["stale_at"] = None
    if change.sensitivity is not None:
        sensitivity = _enum_member(Sensitivity, change.sensitivity, "sensitivity")
        # Only the owner may declare a sensitive memory normal.
        if sensitivity is Sensitivity.SENSITIVE or context.actor.is_owner:
            after["sensitivity"] = sensitivity
    if change.access is not None:
        after["access"] = _enum_member(Access, change.access, "access")
    return replace(before, **after)


def _append(change: changes.Append | changes.Insert, before: Record, context: ChangeContext) -> Record:
    confidence = before.confidence if change.confidence is None else round_share(change.confidence)
    text = f"{before.text}\n{change.text}"
    source = change.source or default_source(context.actor)
    return replace(
        before,
        **_without_speaker(before, text, context.actor),
        text=text,
        # A memory with lines of several sources has the source of the lowest trust.
        source=source if trust_of(context.actor, source) < before.trust else before.source,
        trust=_trust_after_edit(before, context, change.source),
        heard=_lowest_taint(before.heard, context.heard),
        evidence=_sorted([*before.evidence, *change.evidence]),
        confidence=min(before.confidence, confidence),
        reinforced_at=context.now,
    )


def _move(change: changes.Move, before: Record, context: ChangeContext) -> Record:
    after: dict[str, Any] = {}
    if change.tier is not UNSET:
        after["tier"] = _enum_member(Tier, change.tier, "tier")
        if before.tier is Tier.WORKING and after["tier"] is not Tier.WORKING:
            # The time to live was that of the working tier.
            after |= {"stability": Stability.STABLE, "expires_at": None}
        elif before.tier is not Tier.WORKING and after["tier"] is Tier.WORKING:
            expiry = context.now + context.policy.ttl_working
            after |= {"stability": Stability.VOLATILE, "expires_at": min(before.expires_at or expiry, expiry)}
    if change.scope is not UNSET:
        after["scope"] = change.scope
    if change.key is not UNSET and change.key != before.key:
        # The key is a field, so the trust of the actor applies.
        after |= {"key": change.key, "trust": _trust_after_edit(before, context)}
    return replace(before, **after)


def _promote(change: changes.Promote, before: Record, context: ChangeContext) -> Record:
    return replace(
        before,
        **_without_speaker(before, change.text, context.actor),
        text=change.text,
        tier=Tier.CORE if before.key in context.policy.core_keys else Tier.ARCHIVAL,
        kind=Kind.FACT if before.kind in {Kind.STATE, Kind.EVENT} else before.kind,
        stability=Stability.PERMANENT,
        expires_at=None,
        source="promotion",
        stale_at=None,
        trust=trust_of(context.actor, "promotion", () if context.actor.is_owner else (before.trust,)),
        reinforced_at=context.now,
    )


def _restore(change: changes.Restore, before: Record, context: ChangeContext) -> Record:
    if before.is_live(context.now):
        raise Conflict("the memory is active already; there is nothing to restore")
    expired = before.expires_at is not None and before.expires_at <= context.now
    ttl = change.ttl
    if ttl is None and expired:
        ttl = default_ttl(before.tier, before.kind, before.stability, context.policy) or context.policy.ttl_volatile
    return replace(
        before,
        status=Status.ACTIVE,
        superseded_by=None,
        expires_at=before.expires_at if ttl is None else context.now + ttl,
        reinforced_at=context.now,
    )
