"""Freshness: whether the files, git objects, pages and memories that memories cite still say the same.

What a source says is recorded after the write that cites it. A check compares it with what the source says now. If it
differs, the memory is marked as stale in the journal: `act` leaves it out, and a context says so. The mark goes if
the source is again as cited, or if the memory is revised or confirmed.

What is recorded is a document of the store and not in the journal: the first check after an import records it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import Literal

from msgspec.structs import replace

from keepward.core.commit import Step
from keepward.core.evidence import (
    MAX_EXCERPT,
    CitedSource,
    CitedSources,
    FoundSource,
    Reference,
    SourceCheck,
    SourceState,
    first_difference,
    nearest_line,
    references_in,
)
from keepward.core.memory import Record, Sensitivity, Status
from keepward.core.principals import is_within_scope
from keepward.errors import Conflict, KeepwardError, Unauthorised
from keepward.gates.content import redact_secrets
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext
from keepward.services.transaction import store_steps

logger = logging.getLogger(__name__)
#: The op of a commit that flags memories as stale, or removes the flag.
FLAG = "flag"
#: Memories in one commit, and that are read at once.
_BATCH = 200
_Contents = Mapping[str, str]


def check(context: RequestContext, /, *, contents: _Contents | None = None) -> SourceCheck:
    """Compare what the memories of this scope and below cite, and mark those whose source changed.

    Raises:
        Unauthorised: it takes a reviewer or the owner, as `act` leaves out what is marked.
    """
    if not context.actor.may_decide:
        raise Unauthorised("a check of sources takes a reviewer or the owner")
    reader = VisibleReader(context)
    sensitive, within = reader.may_ask_for_sensitive, reader.write_scope()

    def may_check(record: Record) -> bool:
        within_both = is_within_scope(record.scope, within) and is_within_scope(record.scope, context.scope)
        return within_both and (sensitive or record.sensitivity is Sensitivity.NORMAL)

    return check_sources(context, may_check, pages=contents or {})


def check_sources(
    context: RequestContext,
    may_check: Callable[[Record], bool] = lambda _: True,
    *,
    pages: _Contents = MappingProxyType({}),
    before_part: Callable[[], None] = lambda: None,
) -> SourceCheck:
    """Do the same for some memories; a job renews its lease by `before_part`."""
    if not context.policy.enabled:
        return SourceCheck(checked=0, fresh=0)
    found = _Found()
    ids = context.store.citing_sources(context.tenant)
    for start in range(0, len(ids), _BATCH):
        before_part()
        _check_batch(context, ids[start : start + _BATCH], may_check, pages, found)
    states = sorted(found.states, key=lambda each: (each.state != "changed", each.state, each.memory, each.reference))
    return SourceCheck(
        items=tuple(states),
        checked=found.checked,
        fresh=found.fresh,
        marked=tuple(found.marked),
        cleared=tuple(found.cleared),
        stale=tuple(found.stale),
    )


@dataclass(slots=True)
class _Found:
    states: list[SourceState] = field(default_factory=list)
    marked: list[str] = field(default_factory=list)
    cleared: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    checked: int = 0
    fresh: int = 0


def _check_batch(
    context: RequestContext,
    ids: Sequence[str],
    may_check: Callable[[Record], bool],
    pages: _Contents,
    found: _Found,
) -> None:
    now = context.clock.now()
    stored = context.store.records(context.tenant, ids).records
    records = [record for record in stored if record.is_live(now) and may_check(record)]
    known = {each.id: each for each in context.store.documents(CitedSources, context.tenant).list(ids=[*ids])}
    steps: list[Step] = []
    recorded: list[CitedSources] = []
    for record in records:
        states, sources = _compare(context, record, known.get(record.id), pages)
        found.checked += len(states)
        found.fresh += sum(each.state == "fresh" for each in states)
        found.states += [each for each in states if each.state != "fresh"]
        before = known.get(record.id)
        if sources and sources != (() if before is None else before.sources):
            recorded.append(CitedSources(tenant=context.tenant, id=record.id, at=now, sources=sources))
        is_stale = any(each.state in {"changed", "missing"} for each in states)
        # A source that could not be read says nothing of the mark.
        is_known = is_stale or not any(each.state == "unread" for each in states)
        if is_known and is_stale is (record.stale_at is None):
            after = replace(record, version=record.version + 1, stale_at=now if is_stale else None, updated_at=now)
            steps.append(Step(op=FLAG, before=record, after=after))
    if recorded:
        with context.store.write() as writer:
            writer.put_all(recorded)
    found.stale += [record.id for record in records if record.stale_at is not None and record.id not in _ids(steps)]
    if not steps:
        return
    reason = "their sources changed, or are again as cited"
    base = {step.after.id: step.after.version - 1 for step in steps}
    try:
        store_steps(context, steps, reason=reason, kind="job", base=base)
    except Conflict:
        # Another write changed one of them meanwhile: the next check compares again.
        return
    found.marked += [step.after.id for step in steps if step.after.stale_at is not None]
    found.stale += [step.after.id for step in steps if step.after.stale_at is not None]
    found.cleared += [step.after.id for step in steps if step.after.stale_at is None]


def _ids(steps: Iterable[Step]) -> set[str]:
    return {step.after.id for step in steps}


def _compare(
    context: RequestContext, record: Record, known: CitedSources | None, pages: _Contents
) -> tuple[list[SourceState], tuple[CitedSource, ...]]:
    """Return the state of each reference of a memory, and what is recorded of them now."""
    before = {} if known is None else {each.reference: each for each in known.sources}
    states: list[SourceState] = []
    sources: list[CitedSource] = []
    for reference in references_in(record.evidence):
        cited, found = before.get(reference.text), _read(context, record, reference, pages)
        state = _state_of(record, reference, cited, found)
        states.append(state)
        if cited is not None:
            sources.append(cited)
        elif state.state == "recorded" and found.text is not None:
            sources.append(_cited(reference, found.text))
    return states, tuple(sources)


def _state_of(record: Record, reference: Reference, cited: CitedSource | None, found: FoundSource) -> SourceState:
    own = {"memory": record.id, "text": record.text, "reference": reference.text}
    if not found.readable:
        return SourceState(**own, state="unread", why=found.why)
    expected = reference.digest or (cited.digest if cited is not None else "")
    before = cited.text if cited is not None else reference.cited or None
    if found.text is None:
        if cited is None and not (reference.cited and found.content):
            # It never was there, as far as is known: the reference may be wrong.
            return SourceState(**own, state="unread", why=found.why)
        after = nearest_line(before or "", found.content) if found.content else None
        state: Literal["missing", "changed"] = "missing" if after is None else "changed"
        return SourceState(**own, state=state, before=before, after=_safe(after), why=found.why)
    if not expected:
        return SourceState(**own, state="recorded")
    if _digest(found.text) == expected:
        return SourceState(**own, state="fresh")
    # The text of then is cut, and has no secrets: so is that of now.
    old, new = first_difference(cited.text, _safe(found.text) or "") if cited is not None and cited.text else ("", "")
    why = None if old or new or not (cited and cited.text) else f"it differs after its first {MAX_EXCERPT} characters"
    return SourceState(**own, state="changed", before=old or None, after=new or None, why=why)


def _read(context: RequestContext, record: Record, reference: Reference, pages: _Contents) -> FoundSource:
    """Return what a reference cites now."""
    match reference.form:
        case "url":
            text = pages.get(reference.name)
            if text is None:
                return FoundSource(None, "no page is fetched: hand its text in as `contents`", readable=False)
            return FoundSource(text, content=text)
        case "memory":
            # One that readers of this memory see: otherwise a mark would tell of another scope.
            scopes = VisibleReader(context).scopes_above(record.scope)
            others = context.store.records(context.tenant, [reference.name]).records
            other = next((each for each in others if each.scope in scopes), None)
            if other is None:
                return FoundSource(None, "there is no memory by that id", readable=False)
            status = other.status_at(context.clock.now())
            return FoundSource(other.text) if status is Status.ACTIVE else FoundSource(None, f"it is {status.value}")
        case _:
            sources = context.engine.sources
            if sources is None:
                return FoundSource(None, "this store reads no files", readable=False)
            return sources.read(reference)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _safe(text: str | None) -> str | None:
    """Return a part of a source without secrets."""
    return None if text is None else redact_secrets(text)[:MAX_EXCERPT]


def _cited(reference: Reference, text: str) -> CitedSource:
    # The text of a memory is in its own history alone, where an erasure finds it.
    excerpt = "" if reference.form == "memory" else _safe(text) or ""
    return CitedSource(reference=reference.text, digest=_digest(text), text=excerpt)


def record_sources(context: RequestContext, steps: Iterable[Step]) -> None:
    """Record what the sources of new, revised and confirmed memories say now.

    The write is done; if this fails, the next check records them.
    """
    try:
        recorded = [
            CitedSources(tenant=context.tenant, id=step.after.id, at=context.clock.now(), sources=sources)
            for step in steps
            if _cites_now(step) and (sources := _sources_now(context, step.after))
        ]
        if recorded:
            with context.store.write() as writer:
                writer.put_all(recorded)
    except KeepwardError as exc:
        logger.warning("sources were not recorded: %s", exc, extra={"action": "sources_not_recorded"})


def copy_sources(context: RequestContext, originals: Mapping[str, str]) -> None:
    """Copy what the cited sources said from one memory to another, as a merge does.

    ``originals`` has, by the id of the memory that gets them, the id of the memory on the branch.
    """
    known = {
        each.id: each for each in context.store.documents(CitedSources, context.tenant).list(ids=[*originals.values()])
    }
    copied = [replace(known[other], id=name) for name, other in originals.items() if other in known]
    if copied:
        with context.store.write() as writer:
            writer.put_all(copied)


def _sources_now(context: RequestContext, record: Record) -> tuple[CitedSource, ...]:
    """Return what the sources of a memory say; of those that it has from its parents, what they said to these.

    On a branch, the same text has what its sources said on main.
    """
    names = [*record.derived_from]
    if record.branched_id is not None:
        on_main = context.store.records(context.tenant, [record.branched_id]).records
        names += [each.id for each in on_main if each.text == record.text]
    parents = context.store.documents(CitedSources, context.tenant).list(ids=names)
    inherited = {each.reference: each for parent in parents for each in parent.sources}
    found: list[CitedSource] = []
    for reference in references_in(record.evidence):
        if reference.text in inherited:
            found.append(inherited[reference.text])
        elif (source := _read(context, record, reference, {})).text is not None:
            found.append(_cited(reference, source.text))
    return tuple(found)


def _cites_now(step: Step) -> bool:
    """Whether a step writes, revises or confirms a memory with sources."""
    before, after = step.before, step.after
    if step.op == FLAG or after.status is not Status.ACTIVE or not after.evidence:
        return False
    if before is None or (before.text, before.evidence) != (after.text, after.evidence):
        return True
    return before.stale_at is not None and after.stale_at is None
