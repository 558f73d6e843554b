"""Forgetting reaches what quotes: which memories say what a forgotten one says, and what is left of each.

Only provenance decides; see ``core.quotes``. A memory that follows is forgotten or shortened in the commit that forgets
its source, by the op ``follow``. A rollback restores it, except for what another commit forgot: whatever was forgotten
and restored in between, it says what its newest version by another op says, without what is forgotten now.
A follower needs a decision of its own only if it is core, permanent, closed to the actor, or trusted more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from keepward.core.change import BOOKKEEPING
from keepward.core.commit import Reason, Step
from keepward.core.memory import Access, Record, Stability, Status, Tier
from keepward.core.policy import access_for
from keepward.core.principals import default_source, trust_of
from keepward.core.quotes import (
    FOLLOW,
    LINES,
    Shortened,
    lines_by_source,
    lost_lines,
    says_the_same,
    without_forgotten,
)
from keepward.services.access import descendants
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext

#: Ops that change a text without making a summary of quotes another text.
_QUOTING_OPS = frozenset({FOLLOW, "revert", "redact"})
_ENDED = frozenset({Status.RETIRED, Status.ERASED})


@dataclass(frozen=True, slots=True)
class Followers:
    """What becomes of the memories that derive from forgotten ones."""

    #: By id, the newest version of a memory that is forgotten entirely.
    removed: Mapping[str, Record] = field(default_factory=dict)
    #: By id, the newest version of a summary of quotes and what is left of it.
    shortened: Mapping[str, tuple[Record, Record]] = field(default_factory=dict)
    #: Ids of other summaries of quotes: they have no line of what is forgotten.
    clean: frozenset[str] = frozenset()


def followers(
    context: RequestContext,
    names: Iterable[str],
    staged: Mapping[str, Record] | None = None,
    *,
    ended: bool = False,
) -> Followers:
    """Return what follows memories that are about to be forgotten.

    ``staged`` are records that a proposal changed. With ``ended``, memories count that were forgotten before.
    """
    forgotten, changed = set(names), staged or {}
    lineage = descendants(context, forgotten)
    if not lineage:
        return Followers()
    stored = {record.id: record for record in context.store.records(context.tenant, [*lineage, *forgotten]).records}
    records = {name: changed.get(name, record) for name, record in stored.items()}
    edited = {
        name for name, record in records.items() if record.text != stored[name].text or _is_edited(context, record)
    }
    left_out = {Status.ERASED} if ended else _ENDED
    candidates = sorted(
        (record for name in lineage if (record := records.get(name)) is not None and record.status not in left_out),
        key=lambda record: (record.created_at, record.id),
    )
    sources: dict[str, Record | None] = dict.fromkeys(forgotten)
    fates: dict[str, Record | None] = {}
    # Sources are older than what derives from them, so the second pass usually changes nothing.
    while True:
        before = dict(fates)
        for record in candidates:
            known = [records[name] for name in record.derived_from if name in records]
            left = without_forgotten(record, sources, known, edited=record.id in edited)
            if left is not record:
                fates[record.id] = sources[record.id] = left
        if fates == before:
            break
    return Followers(
        removed={record.id: record for record in candidates if fates.get(record.id, record) is None},
        shortened={record.id: (record, left) for record in candidates if (left := fates.get(record.id)) is not None},
        clean=frozenset(
            record.id
            for record in candidates
            if record.id not in fates and record.id not in edited and lines_by_source(record) is not None
        ),
    )


def is_contained(context: RequestContext, record: Record) -> bool:
    """Whether a memory was contained and not restored."""
    if record.status is not Status.ARCHIVED:
        return False
    ops = [step.op for step in context.store.steps(context.tenant, record.id)]
    return next(op for op in reversed(ops) if op != FOLLOW) == "contain"


def _is_edited(context: RequestContext, record: Record) -> bool:
    """Whether the text of a summary of quotes was changed."""
    if record.version == 1 or LINES not in record.metadata:
        return False
    return any(
        step.before is not None and step.before.text != step.after.text and step.op not in _QUOTING_OPS
        for step in context.store.steps(context.tenant, record.id)
    )


def following_steps(context: RequestContext, found: Followers, *, status: Status = Status.RETIRED) -> list[Step]:
    """Return the steps that forget or shorten what follows, by id."""
    now = context.clock.now()
    left = {name: (record, replace(record, status=status)) for name, record in found.removed.items()} | dict(
        found.shortened
    )
    return [
        Step(op=FOLLOW, before=before, after=replace(after, version=before.version + 1, updated_at=now))
        for _, (before, after) in sorted(left.items())
    ]


def following_reason(steps: Sequence[Step]) -> Reason:
    """Return the reason that names what follows."""
    removed = [step.after.id for step in steps if step.after.status is not (step.before or step.after).status]
    short = [step.after.id for step in steps if step.after.id not in removed]
    parts = [f"forgotten, as they quote or sum it up: {', '.join(removed)}"] if removed else []
    parts += [f"shortened by the lines that quote it: {', '.join(short)}"] if short else []
    return Reason(gate="quotes", code="followed", detail="; ".join(parts))


def review_reasons(context: RequestContext, steps: Sequence[Step]) -> tuple[Reason, ...]:
    """Return why a person has to decide on what follows; empty if the actor may forget it."""
    if context.policy.may_self_approve(context.actor):
        return ()
    own = trust_of(context.actor, default_source(context.actor))
    protected = [
        record.id
        for record in (step.before for step in steps)
        if record is not None
        and (
            record.tier is Tier.CORE
            or record.stability is Stability.PERMANENT
            or record.trust > own
            or access_for(context.policy, record.tier, record.key, record.access) in {Access.READ_ONLY, Access.APPROVAL}
        )
    ]
    if not protected:
        return ()
    detail = f"it takes a decision to forget what quotes it: {', '.join(protected)}"
    return (Reason(gate="quotes", code="needs_approval", detail=detail),)


def without_forgotten_sources(
    context: RequestContext, restored: Sequence[Record], *, own: Collection[str] = ()
) -> dict[str, Record | None]:
    """Return, by id, restored or new memories without what other commits forgot; None if nothing is left.

    A memory that says nothing of a forgotten one is not in the result. Sources in ``own`` do not count: the same
    proposal changes them.
    """
    newest = {record.id: record for record in restored}
    changed: dict[str, Record | None] = {}
    for record in sorted(restored, key=lambda record: (record.created_at, record.id)):
        if not record.derived_from or record.status in _ENDED:
            continue
        missing = [name for name in record.derived_from if name not in newest and name not in own]
        known = {each.id: each for each in context.store.records(context.tenant, missing).records if missing}
        known |= {name: newest[name] for name in record.derived_from if name in newest}
        if not says_the_same(record, list(known.values())):
            continue
        sources: dict[str, Record | None] = {}
        for name, source in known.items():
            if name in changed:
                sources[name] = changed[name]
            elif source.status in _ENDED or (name not in newest and is_contained(context, source)):
                sources[name] = None
            elif LINES in source.metadata and _has_lost_lines(context, source):
                sources[name] = source
        left = without_forgotten(record, sources, list(known.values()), edited=_is_edited(context, record))
        if left is not record:
            changed[record.id] = left
    return changed


def unfollowed(context: RequestContext, record: Record) -> Record | None:
    """Return a memory as it was before it followed any source; None if it did not.

    Versions that an erasure destroyed do not count.
    """
    versions: list[Record] = []
    followed = False
    for step in reversed(context.store.steps(context.tenant, record.id)):
        if step.after.status is not Status.ERASED:
            versions.append(step.after)
        if step.op in BOOKKEEPING:
            continue
        if step.op != FOLLOW:
            break
        followed = True
    if not followed or not versions:
        return None

    def content(version: Record) -> tuple[int, bool, int]:
        parsed = lines_by_source(version)
        lines = sum(map(len, parsed[1])) if parsed else 0
        return lines, version.status is not Status.RETIRED, version.version

    return max(versions, key=content)


def _has_lost_lines(context: RequestContext, record: Record) -> bool:
    return any(step.op == FOLLOW for step in context.store.steps(context.tenant, record.id))


def shortened_in(context: RequestContext, found: Followers) -> tuple[Shortened, ...]:
    """Return what a plan shows of the shortened summaries that a handle may see, by id."""
    return tuple(
        Shortened(id=name, version=before.version, text=text if shown.text == before.text else shown.text)
        for name, (before, after) in sorted(found.shortened.items())
        if VisibleReader(context).can_see(before.scope)
        for shown, text in [(VisibleReader(context).hide_content(before), lost_lines(before, after))]
    )
