"""Make, compare, merge and discard branches; see ``services.branch_state`` for what a branch is.

A merge writes to main what the branch changed, through the write path: every gate judges each change as a write of its
author, so that what would wait on main waits now. What main has changed as well since the branch did is a conflict,
and only a person decides on it. What landed leaves the branch in a commit of its own.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Literal

from msgspec.structs import replace

from keepward.core.branch import Branch, BranchChange, BranchDiff, BranchMerge, BranchPage, MergedChange, Side
from keepward.core.change import (
    Append,
    Archive,
    Change,
    Insert,
    Move,
    Promote,
    Replace,
    Restore,
    Retire,
    Supersede,
    operation,
)
from keepward.core.commit import Reason, Receipt, Step
from keepward.core.memory import Kind, Record, Sensitivity, Stability, Status, Tier
from keepward.core.principals import (
    CLAIMED,
    REGISTRY,
    SOURCES,
    Actor,
    ActorKind,
    Role,
    Trust,
    branch_of,
    branch_scope,
    default_source,
    is_within_scope,
    main_scope,
    parse_branch,
    trust_of,
)
from keepward.core.proposal import Outcome, Proposal
from keepward.core.reducer import COPIED_FIELDS, EDITABLE_FIELDS, metadata_text
from keepward.core.value import Duration
from keepward.errors import Conflict, InvalidInput, Unauthorised
from keepward.gates.content import redact_personal_data, redact_secrets
from keepward.services.access import is_unchanged_since, key_holder
from keepward.services.arguments import expiry_time, valid_scope
from keepward.services.branch_state import branch_records, branch_state
from keepward.services.reading.output_filter import filter_output
from keepward.services.reading.visible import HIDDEN_TEXT, VisibleReader
from keepward.services.recorded_reads import record_read
from keepward.services.request_context import RequestContext
from keepward.services.transaction import store_steps
from keepward.services.writing.freshness import copy_sources
from keepward.services.writing.write import propose, propose_each

#: Most open branches of a tenant.
MAX_BRANCHES = 32
#: Longest reason of a branch, in characters.
MAX_REASON = 900
_MERGED = "merge of the branch {}"


# --- the branches themselves


def create_branch(
    context: RequestContext, /, name: str, *, reason: str = "", expires: Duration | None = None
) -> Branch:
    """Make a branch at the handle's scope: one memory in the registry, with its name as key."""
    if branch_of(context.scope) is not None:
        raise InvalidInput("a branch is made from main: leave this branch first")
    _check_may_write(context)
    valid_scope(f"/{parse_branch(name)}")
    at, now = branch_scope(REGISTRY, context.scope), context.clock.now()
    records = _registry(context)
    for other in records:
        if other.key != name:
            continue
        if is_within_scope(at, other.scope) and other.scope != at and not other.is_live(now):
            raise Conflict(f"a branch `{name}` expired above this scope: discard it, or choose another name")
        if other.is_live(now) and (is_within_scope(other.scope, at) or is_within_scope(at, other.scope)):
            raise Conflict(f"there is a branch `{name}` already: merge or discard it, or choose another name")
    if sum(record.is_live(now) for record in records) >= MAX_BRANCHES:
        raise Conflict(f"{MAX_BRANCHES} branches are open: merge or discard one first")
    term = expiry_time("expires", context.policy.review_ttl if expires is None else expires)
    if (now + term if isinstance(term, timedelta) else term) <= now:
        raise InvalidInput("expires: a branch expires in the future")
    source = default_source(context.actor)
    record = Record(
        id=context.ids.new_id(now),
        version=1,
        tier=Tier.ARCHIVAL,
        kind=Kind.STATE,
        text=redact_personal_data(redact_secrets(reason.strip()[:MAX_REASON])),
        scope=at,
        key=name,
        metadata_json=metadata_text({"base": context.store.head(context.tenant).name}),
        source=source,
        trust=trust_of(context.actor, source),
        confidence=1.0,
        importance=0.5,
        stability=Stability.VOLATILE,
        author=context.actor.label,
        created_at=now,
        reinforced_at=now,
        expires_at=now + term if isinstance(term, timedelta) else term,
    )
    # What expired under this name ends with what it left: it would be read on the new branch.
    expired = [other for other in records if other.key == name and is_within_scope(other.scope, at)]
    left = [*expired, *_left_on(context, name)]
    steps = [*_end(context, left), Step(op=operation(Insert), before=None, after=record)]
    store_steps(context, steps, reason=f"made the branch {name}", kind="branch")
    return _described(context, record)


def branches(
    context: RequestContext, /, *, closed: bool = False, offset: int = 0, limit: int | None = 50
) -> BranchPage:
    """Return a page of the branches that the handle sees: the open ones, and with ``closed`` the others after them."""
    now, reader = context.clock.now(), VisibleReader(_on_main(context))
    visible = [
        record
        for record in _registry(context, active=not closed)
        # An erased one has no name.
        if record.key is not None and reader.can_see(main_scope(record.scope))
    ]
    listed = [record for record in visible if record.is_live(now)]
    if closed:
        ended = [record for record in visible if not record.is_live(now)]
        listed += sorted(ended, key=lambda record: _closed_at(record, now) or now, reverse=True)
    shown = listed[offset : None if limit is None else offset + limit]
    return BranchPage(items=tuple(_described(context, record) for record in shown), offset=offset, total=len(listed))


def discard_branch(context: RequestContext, /, name: str) -> Receipt:
    """Retire everything of a branch in one commit; return its receipt."""
    _check_may_write(context)
    reader = VisibleReader(_on_main(context))
    named = [
        record
        for record in _registry(context)
        if record.key == parse_branch(name) and reader.can_see(main_scope(record.scope))
    ]
    if not named:
        # It may have expired, but it was made.
        _at_branch(context, name)
    if len(named) > 1:
        # Branches of one name never overlap, so each is below another scope.
        scopes = ", ".join(sorted(main_scope(record.scope) for record in named))
        raise Conflict(f"there are {len(named)} branches `{name}`, at {scopes}: name the scope of the one to discard")
    record = named[-1]
    there = dataclasses.replace(context, scope=branch_scope(name, context.scope))
    owner = context.actor.is_owner and context.actor.has_right("approve")
    if not owner and record.author != context.actor.label:
        raise Unauthorised("a branch is discarded by who made it, or by the owner")
    steps = _end(there, [record, *_left_on(there, name, main_scope(record.scope))])
    done = store_steps(
        there,
        steps,
        reason=f"discarded the branch {name}",
        kind="discard",
        base={step.after.id: step.after.version - 1 for step in steps},
    )
    return done.receipt


def _check_may_write(context: RequestContext) -> None:
    if not (context.policy.enabled and context.policy.capture):
        raise Unauthorised("memory takes no writes now: it is switched off by policy")
    if context.actor.rights is Role.REVIEWER or not context.actor.may_propose:
        raise Unauthorised("a branch takes an actor who may propose, such as an agent or the owner")


def _registry(context: RequestContext, *, active: bool = True) -> Sequence[Record]:
    """Return the records of the branches of the tenant, oldest first: the active ones, of which some may have expired,
    or all."""
    store, tenant = context.store, context.tenant
    ids = store.ids_on_branch(tenant, REGISTRY, active=active)
    found = {record.id: record for record in store.records(tenant, ids).records} if ids else {}
    return [found[name] for name in ids if name in found]


def _left_on(context: RequestContext, name: str, root: str | None = None) -> list[Record]:
    """Return the memories on a branch that are active, or that hide one of main."""
    scope = context.scope if root is None else root
    return [
        record
        for record in branch_records(dataclasses.replace(context, scope=branch_scope(name, scope)))
        if (record.status is Status.ACTIVE or record.branched_from is not None)
        and is_within_scope(main_scope(record.scope), main_scope(scope))
    ]


def _end(context: RequestContext, records: Iterable[Record]) -> list[Step]:
    """Return the steps that retire memories of a branch, so that they hide nothing of main any more."""
    ended = {"status": Status.RETIRED, "branched_from": None, "updated_at": context.clock.now()}
    return [
        Step(op=operation(Retire), before=each, after=replace(each, **ended, version=each.version + 1))
        for each in records
    ]


def _on_main(context: RequestContext) -> RequestContext:
    return dataclasses.replace(context, scope=main_scope(context.scope))


def _at_branch(context: RequestContext, name: str) -> RequestContext:
    """Return the context of the same handle on a branch.

    Raises:
        NotFound: there is no open branch of this name here.
    """
    there = dataclasses.replace(context, scope=branch_scope(parse_branch(name), context.scope))
    branch_state(there)
    return there


def _record_of(there: RequestContext) -> Record:
    state = branch_state(there)
    assert state is not None
    return state.record


def _closed_at(record: Record, now: datetime) -> datetime | None:
    """Return when a branch was discarded or expired; None if it is open."""
    if record.is_live(now):
        return None
    return record.expires_at if record.status is Status.ACTIVE else record.updated_at


def _described(context: RequestContext, record: Record) -> Branch:
    name, root = record.key or "", main_scope(record.scope)
    there = dataclasses.replace(context, scope=branch_scope(name, context.scope))
    reader, is_active = VisibleReader(there), record.status is Status.ACTIVE
    there_now = [
        each
        for each in branch_records(there)
        if reader.can_see(each.scope) and is_within_scope(main_scope(each.scope), root)
    ]
    commits = context.store.first_and_newest(context.tenant, [record.id, *(each.id for each in there_now)])
    made, last, kind = commits[record.id]
    # Another branch may have had the name before, or have it now.
    own = [each for each in there_now if made < commits[each.id][0] and (is_active or commits[each.id][0] <= last)]
    retired = [commits[each.id] for each in own if each.status is Status.RETIRED and each.branched_from is None]
    merged = sum(newest_kind == "merge" for _, _, newest_kind in retired)
    # What a branch had at its end was retired with it.
    changes = (
        sum(_is_change(context, each) for each in own) if is_active else sum(newest == last for _, newest, _ in retired)
    )
    closed_at = _closed_at(record, context.clock.now())
    state: Literal["open", "merged", "discarded", "expired"] = "open"
    if merged and not changes:
        state = "merged"
    elif closed_at is not None:
        state = "discarded" if kind == "discard" else "expired"
    return Branch(
        name=name,
        scope=root,
        author=record.author,
        created_at=record.created_at,
        expires_at=record.expires_at,
        base=str(record.metadata.get("base", "")),
        reason=record.text,
        changes=changes,
        merged=merged,
        state=state,
        closed_at=closed_at,
    )


# --- differences


def branch_changes(context: RequestContext, /, name: str, *, offset: int = 0, limit: int | None = 50) -> BranchDiff:
    """Return a page of what a branch changes of what the handle sees, conflicts first."""
    there = _at_branch(context, name)
    reader = VisibleReader(there)
    listed = sorted(_changes(there), key=lambda each: not each.conflict)
    counts = Counter(each.op for each in listed) + Counter(conflicts=sum(each.conflict for each in listed))
    changes = listed[offset : None if limit is None else offset + limit]
    record_read(there, [side for each in changes for side in (each.branch, each.main) if side is not None])
    filtered = filter_output([each.branch for each in changes])
    shown = [
        replace(_readable(reader, each), instructs=result.drop is not None)
        for each, result in zip(changes, filtered, strict=True)
    ]
    return BranchDiff(
        branch=_described(context, _record_of(there)),
        changes=tuple(shown),
        offset=offset,
        total=len(listed),
        counts=dict(sorted(counts.items())),
    )


def _is_change(context: RequestContext, record: Record) -> bool:
    """Whether a memory on a branch changes something: it is live, or the state of a memory of main."""
    return record.branched_from is not None or record.is_live(context.clock.now())


def _changes(there: RequestContext) -> list[BranchChange]:
    """Return the changes of the handle's branch that the handle may see, oldest first."""
    reader, main = VisibleReader(there), _on_main(there)
    root = main_scope(_record_of(there).scope)
    records = [
        record
        for record in branch_records(there)
        if _is_change(there, record)
        and reader.can_see(record.scope)
        and is_within_scope(main_scope(record.scope), root)
    ]
    sources = [record.branched_id for record in records if record.branched_id is not None]
    stored = there.store.records(there.tenant, sources).records if sources else []
    now_on_main = {record.id: record for record in stored}
    hidden = reader.hidden()
    found = []
    for record in records:
        if record.branched_id is None:
            found.append(_added(main, record, hidden))
            continue
        base = next(
            (
                step.after
                for step in there.store.steps(there.tenant, record.branched_id)
                if step.after.version == record.branched_version
            ),
            None,
        )
        current = now_on_main.get(record.branched_id)
        found.append(
            BranchChange(
                id=record.id,
                op="changed" if record.is_live(there.clock.now()) else "removed",
                of=record.branched_id,
                branch=record,
                base=base,
                main=current,
                conflict=current is None
                or base is None
                or not (
                    is_unchanged_since(main, current, base.version)
                    or _says_the_same(record, current)
                    # It was changed and changed back, as by the rollback of a merge.
                    or _says_the_same(base, current)
                ),
            )
        )
    return found


def _added(main: RequestContext, record: Record, hidden: frozenset[str]) -> BranchChange:
    """Return the change that a new memory makes; main may have got one under its key meanwhile."""
    holder = None if record.key is None else key_holder(main, main_scope(record.scope), record.key)
    if holder is None or holder.id in hidden:
        return BranchChange(id=record.id, op="added", branch=record)
    same = _says_the_same(record, holder)
    return BranchChange(id=record.id, op="added", of=holder.id, branch=record, main=holder, conflict=not same)


#: Fields that an edit names, besides the evidence, of which a merge leaves claims out.
_EDITED_FIELDS = tuple(name for name in EDITABLE_FIELDS if name != "evidence")
#: Fields in which a branch and main may differ. Who said a text, and when, is not what it says.
_COMPARED_FIELDS = (
    *(name for name in _EDITED_FIELDS if name not in {"speaker", "occurred_at"}),
    *("tier", "key", "metadata_json", "sensitivity", "access", "blob"),
)


def _says_the_same(record: Record, main: Record) -> bool:
    """Whether main has what the branch made of a memory."""
    if record.status is not Status.ACTIVE or main.status is not Status.ACTIVE:
        return record.status is main.status
    same_scope = main_scope(record.scope) == main.scope
    return same_scope and all(getattr(record, name) == getattr(main, name) for name in _COMPARED_FIELDS)


# --- merging


@dataclasses.dataclass(slots=True, kw_only=True)
class _Item:
    """One change of a branch, the changes that bring it to main, and their outcomes."""

    change: BranchChange
    changes: list[Change]
    outcomes: list[Outcome] = dataclasses.field(default_factory=list)

    @property
    def record(self) -> Record:
        return self.change.branch

    @property
    def main_id(self) -> str | None:
        outcome = next((each for each in self.outcomes if each.ok), None)
        return self.change.of if outcome is None or self.change.of is not None else outcome.id

    def result(self, **fields: Any) -> MergedChange:
        reasons = tuple(reason for outcome in self.outcomes for reason in outcome.reasons)
        fields = {"main_id": self.main_id, "reasons": reasons, **fields}
        return MergedChange(id=self.record.id, text=self.record.text, **fields)


def merge_branch(context: RequestContext, /, name: str, *, take: Mapping[str, Side] | None = None) -> BranchMerge:
    """Write to main what a branch changed; ``take`` decides on conflicts, by id."""
    _check_may_write(context)
    there = _at_branch(context, name)
    state, reader, main = _record_of(there), VisibleReader(there), _on_main(context)
    chosen = dict(take or {})
    conflicts: list[BranchChange] = []
    items: list[_Item] = []
    refused: list[MergedChange] = []
    dropped: list[_Item] = []
    changes = _changes(there)
    unknown = {*chosen} - {each.id for each in changes} - {each.of for each in changes}
    if unknown:
        raise InvalidInput(f"`take` names a memory that this branch does not change: {min(unknown)}")
    new_ids = {each.id: context.ids.new_id(context.clock.now()) for each in changes if each.of is None}
    new_ids |= {each.id: each.of for each in changes if each.of is not None}
    for each in changes:
        side = chosen.get(each.id, chosen.get(each.of or ""))
        if not reader.can_read(each.branch):
            reason = Reason(gate="authority", code="sensitive", detail=HIDDEN_TEXT)
            refused.append(MergedChange(id=each.id, text=HIDDEN_TEXT, reasons=(reason,)))
        elif side == "main":
            dropped.append(_Item(change=each, changes=[]))
        elif each.conflict and (side is None or each.main is None):
            conflicts.append(_readable(reader, each))
        else:
            items.append(_Item(change=each, changes=_changes_on_main(context, each, new_ids)))
    waiting = _still_waiting(main, name, items)
    commits = _write(there, main, name, [item for item in items if item.record.id not in waiting])
    landed = [item for item in items if item.record.id not in waiting and all(each.ok for each in item.outcomes)]
    copy_sources(main, {item.main_id: item.record.id for item in landed if item.main_id is not None})
    ended = [item.record for item in (*landed, *dropped)]
    receipt = None
    if ended:
        steps = _end(there, ended)
        base = {step.after.id: step.after.version - 1 for step in steps}
        done = store_steps(there, steps, reason=f"merged into main from the branch {name}", kind="merge", base=base)
        receipt = done.receipt.id
    asked = [item for item in items if item not in landed and item.record.id not in waiting]
    queued = [
        item.result(proposal=next((each.item.id for each in item.outcomes if each.item is not None), None))
        for item in asked
        if all(each.outcome != "refused" for each in item.outcomes)
    ]
    queued += [
        item.result(proposal=again.id, reasons=again.reasons)
        for item in items
        if (again := waiting.get(item.record.id)) is not None
    ]
    refused += [item.result() for item in asked if any(each.outcome == "refused" for each in item.outcomes)]
    return BranchMerge(
        branch=_described(context, state),
        landed=tuple(item.result() for item in landed),
        waiting=tuple(queued),
        refused=tuple(refused),
        dropped=tuple(item.result() for item in dropped),
        conflicts=tuple(conflicts),
        commits=commits,
        receipt=receipt,
    )


def _readable(reader: VisibleReader, change: BranchChange) -> BranchChange:
    """Return a change without content that the handle may not read."""
    hide = reader.hide_content
    base, main = change.base and hide(change.base), change.main and hide(change.main)
    return replace(change, branch=hide(change.branch), base=base, main=main)


def _still_waiting(main: RequestContext, name: str, items: Sequence[_Item]) -> dict[str, Proposal]:
    """Return, by the id on the branch, the pending proposal of an earlier merge that says the same."""
    now = main.clock.now()
    pending = [
        item
        for item in main.store.documents(Proposal, main.tenant).list(state="pending")
        if item.expires_at > now and item.reason == _MERGED.format(name)
    ]
    found = {}
    for item in items:
        record, scope = item.record, main_scope(item.record.scope)
        for proposal in pending:
            after = proposal.steps[-1].after
            same = after.scope == scope and after.text == record.text and after.key == record.key
            removes = (after.status is Status.ACTIVE) is (record.status is Status.ACTIVE)
            if same and removes and item.change.of in {None, after.id}:
                found[record.id] = proposal
    return found


def _write(there: RequestContext, main: RequestContext, name: str, items: Sequence[_Item]) -> tuple[str, ...]:
    """Write changes of a branch to main with the rights and trust of their authors; return the ids of the commits.

    The changes of one author are one commit, except those that need several steps, such as a move with an edit.
    """
    reason, commits = _MERGED.format(name), list[str]()
    authors = _authors(there, [item.record for item in items])

    def writer_of(item: _Item) -> tuple[str, str, int]:
        scope = main_scope(item.record.scope)
        scope = scope if is_within_scope(scope, main.scope) else main.scope
        return authors[item.record.id], scope, int(item.record.effective_trust)

    # What goes frees the keys of what comes, which may replace others.
    stage = {Status.ACTIVE: 1, Status.SUPERSEDED: 2}
    ordered = sorted(items, key=lambda item: (writer_of(item), stage.get(item.record.status, 0)))
    for (author, scope, _), group in groupby(ordered, key=writer_of):
        listed = list(group)
        writer = dataclasses.replace(_acting(main, author), scope=scope)
        heard = _heard(writer, listed)
        single = [item for item in listed if len(item.changes) == 1]
        if single:
            changes = [item.changes[0] for item in single]
            outcomes = propose_each(writer, changes, reason=reason, kind="merge", heard=heard)
            for item, outcome in zip(single, outcomes, strict=True):
                item.outcomes.append(outcome)
        for item in listed:
            if len(item.changes) > 1:
                item.outcomes.append(propose(writer, item.changes, reason=reason, kind="merge", heard=heard))
        for item in listed:
            commits += [each.commit.id for each in item.outcomes if each.outcome == "committed"]
    return tuple(dict.fromkeys(commits))


def _heard(writer: RequestContext, items: Sequence[_Item]) -> Trust | None:
    """Return the trust of some changes of equal trust, if it is below that of what their writer says; else None."""
    trust = min(item.record.effective_trust for item in items)
    return trust if any(trust < trust_of(writer.actor, item.record.source) for item in items) else None


def _authors(there: RequestContext, records: Sequence[Record]) -> dict[str, str]:
    """Return, by id, who is answerable for a state: who wrote its text, or who changed it last if that is a program."""
    histories = there.store.histories(there.tenant, [record.id for record in records])
    last = {name: steps[-1][0].details.actor for name, steps in histories.items() if steps}
    found = {}
    for record in records:
        labels = [record.text_by, last.get(record.id, record.text_by)]
        found[record.id] = next((each for each in labels if not each.startswith("operator:")), labels[0])
    return found


def _acting(context: RequestContext, label: str) -> RequestContext:
    """Return the context of the author of a change: an owner's merge gives no agent more rights."""
    kind, _, name = label.partition(":")
    if not context.actor.is_owner or kind in {"operator", "reviewer"}:
        return context
    kinds = {ActorKind.AGENT.value, ActorKind.USER.value, ActorKind.IMPORTER.value}
    actor = Actor(kind=ActorKind(kind) if kind in kinds else ActorKind.AGENT, name=name, rights=Role.AGENT)
    return dataclasses.replace(context, actor=actor, via=(context.actor, *context.via), consent=False)


def _changes_on_main(context: RequestContext, change: BranchChange, new_ids: Mapping[str, str]) -> list[Change]:
    """Return the changes that bring a change of a branch to main."""
    record, main = change.branch, change.main
    if main is None or (change.op == "added" and change.of is not None):
        return [_insert(context, record, new_ids)]
    base, name, seen = change.base or main, main.id, main.version
    if record.status is not Status.ACTIVE or change.op == "removed":
        if main.status is not Status.ACTIVE:
            return []
        if record.status is Status.SUPERSEDED and record.superseded_by is not None:
            by = new_ids.get(record.superseded_by, record.superseded_by)
            return [Supersede(id=name, by=by, if_version=seen)]
        ends = Archive if record.status is Status.ARCHIVED else Retire
        return [ends(id=name, if_version=seen)]
    found: list[Change] = []
    if main.status is not Status.ACTIVE:
        found.append(Restore(id=name, ttl=_ttl(context, record)))
    if record.source == "promotion" and base.source != "promotion":
        return [*found, Promote(id=name, text=record.text)]
    moved: dict[str, Any] = {}
    if record.tier is not base.tier:
        moved["tier"] = record.tier.value
    if main_scope(record.scope) != base.scope:
        moved["scope"] = main_scope(record.scope)
    if record.key != base.key:
        moved["key"] = record.key
    if moved:
        found.append(Move(id=name, **moved))
    rest = record.text.removeprefix(f"{base.text}\n")
    edited = _edited(context, record, base)
    if rest != record.text and not change.conflict and set(edited) <= {"text"}:
        evidence = _evidence(record, base)
        found.append(Append(id=name, text=rest, source=record.source, evidence=evidence))
    elif edited:
        source = record.source if "text" in edited else None
        found.append(Replace(id=name, source=source, **edited))
    if len(found) == 1 and not isinstance(found[0], Restore):
        found[0] = replace(found[0], if_version=seen)
    return found


def _edited(context: RequestContext, record: Record, base: Record) -> dict[str, Any]:
    """Return the fields of ``Replace`` that a branch changed of a memory."""
    found = {name: getattr(record, name) for name in _EDITED_FIELDS if getattr(record, name) != getattr(base, name)}
    if record.metadata_json != base.metadata_json:
        found["metadata"] = record.metadata
    if evidence := _evidence(record, base):
        found["evidence"] = tuple(sorted({*base.evidence, *evidence}))
    for name in ("confidence", "importance"):
        if getattr(record, f"stored_{name}") != getattr(base, f"stored_{name}"):
            found[name] = getattr(record, f"stored_{name}")
    for name in ("sensitivity", "access"):
        if getattr(record, name) is not getattr(base, name) and getattr(record, name) is not None:
            found[name] = getattr(record, name).value
    if record.expires_at != base.expires_at:
        found["ttl"] = _ttl(context, record)
    return found


def _evidence(record: Record, base: Record) -> tuple[str, ...]:
    """Return the references that a branch added, without claims that an agent may not make."""
    return tuple(each for each in record.evidence if each not in base.evidence and not each.startswith(CLAIMED))


def _ttl(context: RequestContext, record: Record) -> timedelta | None:
    return None if record.expires_at is None else max(record.expires_at - context.clock.now(), timedelta(seconds=1))


def _unless_default(value: float, default: float) -> float | None:
    return None if value == default else value


def _insert(context: RequestContext, record: Record, new_ids: Mapping[str, str]) -> Insert:
    """Return the change that writes a new memory of a branch to main."""
    fields: dict[str, Any] = {name: getattr(record, name) for name in COPIED_FIELDS}
    fields |= {
        "id": new_ids.get(record.id, ""),
        "scope": main_scope(record.scope),
        **{name: getattr(record, name) for name in ("subject", "tags", "source")},
    }
    parents = tuple(new_ids.get(parent, parent) for parent in record.derived_from)
    return Insert(
        **fields,
        tier=record.tier.value,
        kind=record.kind.value,
        content_type=record.content_type.value,
        metadata=record.metadata or None,
        evidence=tuple(each for each in record.evidence if not each.startswith(CLAIMED)),
        derived_from=parents,
        # A default stays one: a gate judges what a writer says of a memory.
        confidence=_unless_default(record.stored_confidence, SOURCES[record.source].confidence),
        importance=_unless_default(record.stored_importance, SOURCES[record.source].importance),
        ttl=_ttl(context, record),
        stability=record.stability.value,
        sensitivity=record.sensitivity.value if record.sensitivity is Sensitivity.SENSITIVE else None,
        access=None if record.access is None else record.access.value,
    )
