"""Planners: the changes that each job proposes. A planner only reads; its batches pass the same gates as any write.

No job changes core, permanent or identity memories, and those whose access is approval or read-only.
A proposal that is pending or was rejected is not repeated until the memory changes; a memory that a person restored is
left alone as well.
The owner's own memories are never archived without a decision: each gets a proposal with its reason, and at most
``MAX_PENDING`` of these are pending at a time.
Memories are summarised, compared and merged only within one scope, subject, sensitivity and class of trust.
A derived memory expires no later than the first of its sources, and its confidence is that of the least certain one. If
it replaces its sources, they are archived in the same commit.
The summary of a session lives as long as the events that it sums up. These stay, unless policy lets a model's summary
replace them.
Of memories that state the same, the most trusted, then the most important one stays word for word. Two texts that
differ in a number, a date, a name, a unit, a negation or any word but a filler stay two memories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from keepward.core.brief import shorten
from keepward.core.change import BOOKKEEPING, Archive, Change, Expire, Insert, Replace, Retire
from keepward.core.commit import Reason
from keepward.core.evidence import SourceCheck, SourceState, how_changed, revised_text
from keepward.core.job import Alike
from keepward.core.memory import (
    Access,
    Kind,
    Record,
    Sensitivity,
    Stability,
    Status,
    Tier,
    confidence_at,
    half_life,
    importance_at,
    round_share,
)
from keepward.core.policy import Policy, access_for
from keepward.core.principals import Actor, Trust, branch_of
from keepward.core.proposal import Proposal
from keepward.core.query import EVERYTHING, Filter
from keepward.core.quotes import FOLLOW, LINES, QUOTE, lines_by_source, quotes_metadata
from keepward.core.value import to_micros
from keepward.errors import ModelUnavailable
from keepward.gates.detectors.near_duplicate import (
    NormalizedText,
    compare,
    differ_in_grammar_only,
    has_differences,
    ratio,
)
from keepward.jobs.extracts import MAX_EXPIRY_SPREAD, by_expiry, extract, session_extract, split_sentences
from keepward.jobs.pacing import paced
from keepward.ports.models import Summarizer
from keepward.ports.store import Features
from keepward.retrieval.time_expressions import MONTHS, phrase, resolve, spell_out_dates
from keepward.retrieval.vector_index import unpack
from keepward.storage.reads import MAX_HOLDERS_PER_MINHASH, MIN_SHARED_MINHASHES, StoreReader

#: Changes in one commit.
CHANGES_PER_COMMIT = 200
#: Memories that one run expires; the next run takes the rest.
MAX_EXPIRED = 20_000
#: Newest memories that one run compares with all others; equal words are found among all.
MAX_RECENT = 5_000
#: Most proposals about the owner's memories that are pending at a time.
MAX_PENDING = 20
#: Characters of a reason that says how a source changed.
MAX_REASON = 900
#: Most sources of one summary, and most of their tags and evidence; the shape gate allows a few more.
MAX_SOURCES = 50
#: Most working notes of one summary.
_NOTES_PER_SUMMARY = 20
#: Characters of a session's name in a heading.
_MAX_SESSION_NAME_LENGTH = 64
#: At most one extracted event for so many volatile events.
_SOURCES_PER_EVENT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """What a planner may read."""

    reader: StoreReader
    tenant: str
    now: datetime
    policy: Policy
    #: Name of the job, which memories that it makes record.
    job: str
    new_id: Callable[[], str]
    summarizer: Summarizer | None = None
    #: Id of the embedder of recall; vectors of another one do not count.
    model: str | None = None
    #: Versions of memories in this job's pending or rejected proposals, by memory id.
    proposed: Mapping[str, int] = field(default_factory=dict)
    #: Sources of the memories in those proposals.
    proposed_sources: frozenset[str] = frozenset()
    #: Number of pending proposals of this job.
    pending: int = 0

    def may_modify(self, record: Record) -> bool:
        """Whether a job may change a memory."""
        if branch_of(record.scope) is not None:
            # A branch is its writers' draft.
            return False
        if record.tier is Tier.CORE or record.stability is Stability.PERMANENT or record.kind is Kind.IDENTITY:
            return False
        access = access_for(self.policy, record.tier, record.key, record.access)
        if access in {Access.READ_ONLY, Access.APPROVAL}:
            return False
        proposed = self.proposed.get(record.id)
        return proposed is None or any(version > proposed for version, _ in self._changes(record))

    def was_restored(self, record: Record) -> bool:
        """Whether the last change of a memory was a restore or a rollback."""
        return record.version > 1 and [op for _, op in self._changes(record)][-1:] in (["restore"], ["revert"])

    def was_forgotten(self, summary: Record) -> bool:
        """Whether a summary was forgotten with one of its sources, so that the others need a new one."""
        if summary.status is not Status.RETIRED:
            return False
        return self.reader.steps(self.tenant, summary.id)[-1].op == FOLLOW

    def _changes(self, record: Record) -> list[tuple[int, str]]:
        steps = self.reader.steps(self.tenant, record.id)
        return [(step.after.version, step.op) for step in steps if step.op not in BOOKKEEPING]

    def is_source(self, record: Record) -> bool:
        """Whether a memory is neither derived nor restored, so that it may be summarised."""
        return not record.derived_from and not self.was_restored(record)

    def modifiable(self, ids: Iterable[str]) -> Iterator[Record]:
        """Yield those of some memories that are active and that a job may change, in order."""
        names = iter(ids)
        while page := list(islice(names, CHANGES_PER_COMMIT)):
            for record in paced(self.reader.records(self.tenant, page).records):
                if record.is_live(self.now) and self.may_modify(record):
                    yield record

    def active(self, *tiers: Tier) -> list[Record]:
        """Return the active memories of some tiers that a job may change, oldest first, ties by id."""
        filters = Filter(scopes=(), tiers=tuple(tier.value for tier in tiers), include_sensitive=True)
        records = self.reader.find(self.tenant, filters, live_at=self.now, limit=None).records
        return sorted(
            (record for record in paced(records) if self.may_modify(record)),
            key=lambda record: (record.created_at, record.id),
        )

    def excess(self, tier: Tier) -> int:
        """Return how many active memories a tier has above its capacity, of all writers."""
        limit = self.policy.capacity.get(tier)
        if limit is None or self.reader.tally(self.tenant).get(tier.value, 0) <= limit:
            return 0
        live = replace(EVERYTHING, tiers=(tier.value,), statuses=(Status.ACTIVE.value,))
        return max(0, self.reader.count_listed(self.tenant, live, to_micros(self.now)) - limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedBatch:
    """Changes to propose together."""

    changes: tuple[Change, ...]
    reason: str
    #: All or nothing; otherwise each change is decided by itself.
    atomic: bool = False
    #: Number of active memories that it archives without a replacement.
    removes: int = 0
    session: str | None = None
    #: Id of the memory that takes over the use counts of the archived memories.
    heir: str | None = None
    #: Notes for the receipt of the run.
    notes: tuple[Reason, ...] = ()


def _batches(changes: Sequence[Change], reason: str, *, removes: bool = False) -> Iterator[ProposedBatch]:
    """Yield a batch for each ``CHANGES_PER_COMMIT`` changes; each change is decided by itself."""
    for start in range(0, len(changes), CHANGES_PER_COMMIT):
        part = tuple(changes[start : start + CHANGES_PER_COMMIT])
        yield ProposedBatch(changes=part, reason=reason, removes=len(part) if removes else 0)


def _archive_changes(records: Sequence[Record]) -> list[Change]:
    return [Archive(id=record.id, if_version=record.version) for record in records]


def expire(context: JobContext, *tiers: Tier) -> Iterator[ProposedBatch]:
    """Expire memories past their TTL, in some tiers or in all but core."""
    expired = context.reader.expired(context.tenant, context.now, limit=MAX_EXPIRED).records
    records = [record for record in expired if context.may_modify(record) and (not tiers or record.tier in tiers)]
    changes = [Expire(id=record.id, if_version=record.version) for record in records]
    yield from _batches(changes, "its TTL is over")


def decay(context: JobContext) -> Iterator[ProposedBatch]:
    """Archive decayed and unused memories of the kinds and tiers that policy names, the least confident first."""
    named = set(context.policy.archive_unused)
    decayed = [
        record
        for record in _decayed_memories(context)
        if record.trust is not Trust.OWNER and {record.kind.value, record.tier.value} & named
    ]
    yield from _batches(_archive_changes(decayed), "it has decayed: nobody confirmed or used it", removes=True)


def _decayed_memories(context: JobContext) -> list[Record]:
    """Return memories below both of policy's minimums, least confident first, ties by age and id.

    A memory that was used within its half-life is not returned.
    """
    policy, now = context.policy, to_micros(context.now)
    ids = context.reader.faded(
        context.tenant, now, confidence=policy.fade_confidence, importance=policy.fade_importance
    )
    doubtful = [
        record for record in context.modifiable(ids) if confidence_at(record, context.now) < policy.fade_confidence
    ]
    used = context.reader.usage(context.tenant, [record.id for record in doubtful])

    def is_useless(record: Record) -> bool:
        count, last = used.get(record.id, (0, record.created_at))
        span = half_life(record)
        if count and span is not None and context.now - last < span:
            return False
        return importance_at(record, context.now, last if count else None) < policy.fade_importance

    decayed = [record for record in doubtful if is_useless(record) and not context.was_restored(record)]
    return sorted(decayed, key=lambda record: (confidence_at(record, context.now), record.created_at, record.id))


def prune(context: JobContext) -> Iterator[ProposedBatch]:
    """Expire memories, archive the least useful ones of full tiers, and facts unused for ``archive_facts_after``.

    For the owner's memories among these, and for decayed ones of the owner, it asks instead.
    """
    yield from expire(context)
    asked: dict[str, tuple[Record, str]] = {}
    archived = set[str]()
    for tier in (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVAL):
        if not (excess := context.excess(tier)):
            continue
        full = f"the {tier.value} tier is over its capacity"
        ids = context.reader.least_worth_of_tier(context.tenant, tier.value, owner=False)
        records = list(islice(context.modifiable(ids), excess))
        archived |= {record.id for record in records}
        yield from _batches(_archive_changes(records), full, removes=True)
        ids = context.reader.least_worth_of_tier(context.tenant, tier.value, owner=True)
        for record in islice(context.modifiable(ids), min(excess - len(records), MAX_PENDING)):
            asked[record.id] = (record, f"{full}: is it still needed?")
    facts = [record for record in _unused_facts(context) if record.id not in archived]
    others = [record for record in facts if record.trust is not Trust.OWNER]
    yield from _batches(_archive_changes(others), "the fact was never used or confirmed", removes=True)
    for record in facts:
        if record.trust is Trust.OWNER:
            age = (context.now - record.text_at).days
            reason = f"the fact was never used or confirmed in {age} days: is it still needed?"
            asked.setdefault(record.id, (record, reason))
    for record in _decayed_memories(context):
        if record.trust is Trust.OWNER and record.tier is Tier.ARCHIVAL:
            idle, confidence = (context.now - record.reinforced_at).days, confidence_at(record, context.now)
            faded = f"its confidence has decayed from {record.confidence:g} to {confidence:g}"
            reason = f"nobody confirmed it for {idle} days; {faded}: is it still needed?"
            asked.setdefault(record.id, (record, reason))
    for record, reason in islice(asked.values(), max(0, MAX_PENDING - context.pending)):
        yield ProposedBatch(changes=(Retire(id=record.id, if_version=record.version),), reason=reason, atomic=True)


def _unused_facts(context: JobContext) -> list[Record]:
    """Return the facts that policy archives for their age, oldest first; none by default."""
    age, now = context.policy.archive_facts_after, to_micros(context.now)
    if age is None:
        return []
    before, importance = to_micros(context.now - age), context.policy.fade_importance
    ids = context.reader.unused_facts(context.tenant, now, before=before, importance=importance)
    # What a person restored is left alone.
    return [record for record in context.modifiable(ids[:MAX_EXPIRED]) if not context.was_restored(record)]


def stale_proposals(
    reader: StoreReader, tenant: str, found: SourceCheck, proposer: Actor
) -> Iterator[tuple[Change, str]]:
    """Yield what to ask about memories whose source changed: a revision if one word differs, or else a retirement.

    What was proposed since it changed, pending or rejected, is not asked again, and at most ``MAX_PENDING`` wait.
    """
    states: dict[str, SourceState] = {}
    for state in found:
        if state.state in {"changed", "missing"}:
            states.setdefault(state.memory, state)
    proposals = reader.documents(Proposal, tenant)
    queue = [item for name in ("pending", "rejected") for item in proposals.list(state=name, actor=proposer)]
    room = MAX_PENDING - sum(item.state == "pending" for item in queue)
    records = reader.records(tenant, sorted({*states} & {*found.stale})).records
    for record in records:
        asked = any(
            record.id in item.base and item.created_at >= (record.stale_at or item.created_at) for item in queue
        )
        if asked or room <= 0 or record.stale_at is None or record.tier is Tier.CORE or record.kind is Kind.IDENTITY:
            continue
        room -= 1
        state = states[record.id]
        how = how_changed(state)
        reason = f"its source {state.reference} {'is missing' if state.state == 'missing' else 'changed'}"
        reason = shorten(f"{reason}{': ' if how else ''}{how}", MAX_REASON)
        revised = None
        if state.before is not None and state.after is not None:
            revised = revised_text(record.text, state.before, state.after)
        if revised is not None:
            yield Replace(id=record.id, text=revised, if_version=record.version), reason
        else:
            yield Retire(id=record.id, if_version=record.version), reason


def compact(context: JobContext) -> Iterator[ProposedBatch]:
    """Expire working memories, and summarise the oldest notes of long sessions: one scope and session each.

    The newest notes, half of ``thread_length``, stay as they are.
    """
    yield from expire(context, Tier.WORKING)
    notes = [record for record in context.active(Tier.WORKING) if record.key is None and context.is_source(record)]
    for group in _groups(notes, lambda record: record.session or ""):
        length = context.policy.thread_length
        old = group[: len(group) - length // 2] if len(group) > length else []
        for part in _chunk_group(old, 2, _NOTES_PER_SUMMARY):
            heading = _session_heading(part[0].session, f"Notes of {part[0].scope}")
            yield _summary_batch(context, part, heading=heading, reason="summarised the oldest notes of a long session")


def summarize(context: JobContext) -> Iterator[ProposedBatch]:
    """Summarise the events of each session, archive summaries that outlive theirs, and extract events of other days.

    A model's summary replaces the extract of the same events.
    """
    filters = Filter(scopes=(), kinds=(Kind.SUMMARY.value,), include_sensitive=True)
    written = [
        summary
        for summary in context.reader.find(context.tenant, filters, live_at=None, limit=None).records
        if branch_of(summary.scope) is None
        and summary.session
        and summary.derived_from
        and not context.was_forgotten(summary)
    ]
    yield from _batches(_archive_changes(_outlived(context, written)), "the messages that it sums up have ended")
    extracts = [summary for summary in written if LINES in summary.metadata]
    extracted = {name for summary in extracts for name in summary.derived_from}
    covered = {name for summary in written if LINES not in summary.metadata for name in summary.derived_from}
    covered |= context.proposed_sources
    done = covered if context.summarizer is not None else covered | extracted
    events = [record for record in context.active(Tier.EPISODIC) if record.kind is Kind.EVENT and record.session]
    new = [record for record in events if record.id not in done and context.is_source(record)]
    for group in _groups(new, lambda record: record.session or ""):
        for part in _chunk_group(group, context.policy.summary_least, context.policy.summary_most):
            ids = {record.id for record in part}
            covered |= ids
            replaced = [
                summary
                for summary in extracts
                if summary.is_live(context.now)
                and not ids.isdisjoint(summary.derived_from)
                and covered.issuperset({record.id for record in events} & {*summary.derived_from})
                and context.may_modify(summary)
            ]
            yield from _session_batches(context, part, replaced, extracted)


def _outlived(context: JobContext, summaries: Sequence[Record]) -> list[Record]:
    """Return the live summaries of sessions all of whose events ended after they were summed up."""
    outlived = []
    for summary in summaries:
        quotes = lines_by_source(summary)
        if not summary.is_live(context.now) or (summary.trust is Trust.OWNER and quotes is None):
            continue
        names = [
            name for n, name in enumerate(summary.derived_from) if quotes is None or quotes[1][n]
        ] or summary.derived_from
        sources = context.reader.records(context.tenant, list(names)).records
        if any(source.is_live(context.now) for source in sources):
            continue
        # A summary that replaced its sources archived them before it was written.
        replaced = all(
            source.status is Status.ARCHIVED and (source.updated_at or source.created_at) <= summary.created_at
            for source in sources
        )
        if sources and not replaced and context.may_modify(summary) and not context.was_restored(summary):
            outlived.append(summary)
    return outlived


def _session_batches(
    context: JobContext, sources: Sequence[Record], replaced: Sequence[Record], extracted: set[str]
) -> Iterator[ProposedBatch]:
    """Yield the batch that sums up a part of a session, by the model or as an extract; none if it states nothing.

    ``replaced`` are the extracts that a model's summary makes needless, ``extracted`` the ids of their sources.
    """
    reason, limit = "summarised the oldest events of a session", context.policy.text_limit[Tier.EPISODIC]
    heading = f"{_session_heading(sources[0].session, 'A session')}, {_span(sources)}:"
    text, notes = _by_model(context, sources, limit - len(heading) - 1)
    archived: Sequence[Record] = ()
    if text is not None:
        archived = [*replaced, *(sources if context.policy.archive_summarized else ())]
        summary = _derived_memory(context, sources, f"{heading}\n{text}")
    else:
        sources = [source for source in sources if source.id not in extracted]
        quoted = session_extract(sources, limit)
        if quoted is None:
            if notes:
                yield ProposedBatch(changes=(), reason=reason, notes=notes)
            return
        summary = _derived_memory(context, sources, quoted[0], metadata=quotes_metadata(quoted[1]))
    events = _extracted_events(context, [source for source in sources if source.stability is Stability.VOLATILE])
    # Archive first: the gates compare the summary with the memories that will be active next to it.
    changes = (*_archive_changes(archived), summary, *events)
    yield ProposedBatch(changes=changes, reason=reason, atomic=True, session=summary.session, notes=notes)


def _session_heading(session: str | None, otherwise: str) -> str:
    if session is None:
        return otherwise
    return (
        f"Session {session}"
        if len(session) <= _MAX_SESSION_NAME_LENGTH
        else f"Session {session[:_MAX_SESSION_NAME_LENGTH]}…"
    )


def _groups(records: Iterable[Record], also: Callable[[Record], str]) -> Iterator[list[Record]]:
    """Yield groups that may be summarised together: equal in ``also``, with similar expiry; oldest first in each."""
    by_key: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        trust = min(record.trust, Trust.AGENT)
        key = (record.scope, record.subject or "", record.sensitivity.value, str(int(trust)), also(record))
        by_key.setdefault(key, []).append(record)
    for _, group in sorted(by_key.items()):
        yield from by_expiry(group)


def _chunk_group(group: Sequence[Record], least: int, most: int) -> Iterator[list[Record]]:
    """Yield parts of a group, oldest first, of at most ``most`` memories, and at least ``least`` and 2.

    A part has at most ``MAX_SOURCES`` pieces of evidence, so it may have fewer memories. A memory that leaves no room
    for a second one is left out.
    """
    least, most = max(least, 2), min(max(most, 2), MAX_SOURCES)
    rest = list(group)
    while rest and len(rest) >= min(least, most):
        part, evidence = [], set[str]()
        for record in rest[:most]:
            evidence |= set(record.evidence)
            if len(evidence) > MAX_SOURCES:
                break
            part.append(record)
        if len(part) >= 2:
            yield part
        rest = rest[max(len(part), 1) :]


def _summary_batch(context: JobContext, sources: Sequence[Record], *, heading: str, reason: str) -> ProposedBatch:
    """Return a batch that replaces its sources by a summary, by the model or as an extract."""
    heading = f"{heading}, {_span(sources)}:"
    limit = context.policy.text_limit[sources[0].tier] - len(heading) - 1
    text, notes = _by_model(context, sources, limit)
    fields: dict[str, Any] = {}
    if text is None:
        text, lines = extract(sources, limit)
        fields = {"metadata": quotes_metadata(lines)}
    summary = _derived_memory(context, sources, f"{heading}\n{text}", **fields)
    # Archive first: the gates compare the summary with the memories that will be active next to it.
    changes = (*_archive_changes(sources), summary)
    return ProposedBatch(changes=changes, reason=reason, atomic=True, session=summary.session, notes=notes)


def _span(sources: Sequence[Record]) -> str:
    first, last = sources[0].said_at, sources[-1].said_at
    return f"{first:%Y-%m-%d %H:%M} UTC" if first == last else f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"


def _derived_memory(context: JobContext, sources: Sequence[Record], text: str, **fields: Any) -> Insert:
    """Return a new memory derived from others; fields that are not given are theirs, if they agree."""
    expires_at = min((record.expires_at for record in sources if record.expires_at is not None), default=None)
    sensitive = any(record.sensitivity is Sensitivity.SENSITIVE for record in sources)
    volatile = any(record.stability is Stability.VOLATILE for record in sources)
    categories, sessions = {record.category for record in sources}, {record.session for record in sources}
    derived: dict[str, Any] = {
        "tier": sources[0].tier.value,
        "kind": "summary",
        "scope": sources[0].scope,
        "subject": sources[0].subject,
        "category": categories.pop() if len(categories) == 1 else None,
        "session": sessions.pop() if len(sessions) == 1 else None,
        "tags": tuple(sorted({tag for record in sources for tag in record.tags}))[:MAX_SOURCES],
        "derived_from": tuple(record.id for record in sources),
        "confidence": round_share(min(confidence_at(record, context.now) for record in sources)),
        "importance": round_share(max(importance_at(record, context.now) for record in sources)),
        "sensitivity": (Sensitivity.SENSITIVE if sensitive else Sensitivity.NORMAL).value,
        "stability": (Stability.VOLATILE if volatile else Stability.STABLE).value,
        "ttl": None if expires_at is None else expires_at - context.now,
        "occurred_at": sources[0].said_at,
        "job": context.job,
        # Identifiers in a sensitive source were stored with consent.
        "consent": sensitive,
    }
    return Insert(id=context.new_id(), text=text, **{**derived, **fields})


def _by_model(context: JobContext, sources: Sequence[Record], limit: int) -> tuple[str | None, tuple[Reason, ...]]:
    """Return the model's summary in at most ``limit`` characters, None without a usable one, and how it was made."""
    if context.summarizer is None:
        return None, ()
    text = ""
    try:
        texts = [extract([record], len(record.text) + _MAX_SESSION_NAME_LENGTH)[0] for record in sources]
        text = context.summarizer.summarize(texts, limit=limit).strip()
        code, detail = "model", f"summarised by {context.summarizer.id}"
        if not 0 < len(text) <= limit:
            code, detail, text = "model_unusable", "extracted instead: the model's text did not fit", ""
    except ModelUnavailable as exc:
        code, detail = "model_unavailable", f"extracted instead of summarised: {exc}"
    return text or None, (Reason(gate="summarize", code=code, detail=detail),)


def _extracted_events(context: JobContext, sources: Sequence[Record]) -> list[Insert]:
    """Return events of other days that the sources mention, at most one a source, in the order of the sources."""
    events: list[Insert] = []
    for source in sources:
        if len(events) >= len(sources) // _SOURCES_PER_EVENT:
            break
        said_at = source.said_at
        for sentence in split_sentences(source.text):
            phrases = [day for day in resolve(sentence, to_micros(said_at)) if day != phrase(said_at.date())]
            days = [day.split(" ") for day in phrases]
            # A month or a year alone is no day.
            day = next((parts for parts in days if len(parts) == 3), None)
            if day is not None:
                at = datetime(int(day[2]), MONTHS.index(day[1]) + 1, int(day[0]), tzinfo=UTC)
                # "yesterday" would mean another day next to the date of the event.
                text = spell_out_dates(sentence, to_micros(said_at))
                events.append(
                    _derived_memory(
                        context,
                        [source],
                        text,
                        kind="event",
                        occurred_at=at,
                        speaker=source.speaker,
                        metadata={QUOTE: sentence},
                    )
                )
                break
    return events


#: With how many memories of one minhash each is compared, once the comparisons would exceed their limit.
FEW_HOLDERS_PER_MINHASH = 2


class SimilarPairs:
    """The pairs of unkeyed memories that score ``floor`` or more or state the same, to be read once, in no order.

    Candidates share minhashes, so that the work grows with the memories and not with their pairs. If more than
    ``MAX_HOLDERS_PER_MINHASH`` memories share a minhash, each is compared with the newest of them; with fewer where
    the memories would else need more than ``most`` comparisons.
    """

    def __init__(
        self,
        context: JobContext,
        memories: Iterable[tuple[Record, Features]],
        *,
        floor: float,
        most: int | None = None,
    ) -> None:
        #: Whether a memory was compared with a part of those whose words it shares.
        self.is_partial = False
        #: Number of pairs that were compared.
        self.compared = 0
        self._context, self._floor, self._most = context, floor, most
        entries = [_Compared(*memory) for memory in paced(memories) if is_comparable(context, memory[0])]
        self._entries = sorted(entries, key=lambda entry: (entry.record.created_at, entry.record.id))

    def __iter__(self) -> Iterator[Pair]:
        buckets: dict[tuple[Any, ...], list[int]] = {}
        for n, entry in enumerate(paced(self._entries)):
            record = entry.record
            partition = (record.scope, record.tier, record.sensitivity, record.subject, record.kind, record.stability)
            shared: Counter[int] = Counter()
            # Each memory gets its part of the comparisons, whatever those before it left.
            is_spent = self._most is not None and self.compared * len(self._entries) > self._most * (n + 1)
            holders = FEW_HOLDERS_PER_MINHASH if is_spent else MAX_HOLDERS_PER_MINHASH
            for fingerprint in (entry.features.digest, *entry.features.marks):
                bucket = buckets.setdefault((*partition, fingerprint), [])
                # An equal digest means an equal text, which is enough.
                weight = MIN_SHARED_MINHASHES if isinstance(fingerprint, bytes) else 1
                self.is_partial |= len(bucket) > holders
                shared.update(dict.fromkeys(bucket[-holders:], weight))
                bucket.append(n)
            for other in sorted(shared):
                if shared[other] >= MIN_SHARED_MINHASHES:
                    self.compared += 1
                    pair = _compare_pair(self._context, self._entries[other], entry, self._floor)
                    if pair is not None:
                        yield pair


def is_comparable(context: JobContext, record: Record) -> bool:
    """Whether ``SimilarPairs`` compares a memory with others."""
    return (
        record.tier in {Tier.ARCHIVAL, Tier.EPISODIC}
        and record.kind is not Kind.EVENT
        and record.key is None
        and record.is_live(context.now)
        and context.may_modify(record)
    )


@dataclass(slots=True, eq=False)
class _Compared:
    """One memory that is compared with others; what its comparison needs is computed once."""

    record: Record
    features: Features
    text: NormalizedText = field(init=False)
    _vector: Any = None

    def __post_init__(self) -> None:
        self.text = NormalizedText(self.record.text)

    @property
    def vector(self) -> Any:
        """The vector of its entire text."""
        if self._vector is None:
            self._vector = unpack(self.features.vectors)[0]
        return self._vector


class Pair(NamedTuple):
    """Two memories that resemble each other, the older first."""

    score: float
    first: _Compared
    second: _Compared
    same: bool
    #: Whether the texts differ in more than fillers.
    differs: bool

    @property
    def order(self) -> tuple[Any, ...]:
        """Sorts the most alike first, ties by id."""
        return -self.score, self.first.record.id, self.second.record.id

    def alike(self) -> Alike:
        """Return it with the names of what differs, which take longer than the comparison."""
        found = compare(self.first.text, self.second.text)
        return Alike(
            first=self.first.record, second=self.second.record, score=self.score, same=self.same, differs=found.differs
        )


def _compare_pair(context: JobContext, a: _Compared, b: _Compared, floor: float) -> Pair | None:
    """Return how two memories compare; None if they neither score ``floor`` nor state the same."""
    policy, model, cosine = context.policy, context.model, None
    if a.record.never_holds_with(b.record):
        return None
    if model is not None and a.features.model == b.features.model == model and a.features.units and b.features.units:
        # Rounded, so that a floor copied from a shown score includes that pair.
        cosine = round(float(a.vector @ b.vector), 4)
    equal = a.features.digest == b.features.digest
    if cosine is not None and not equal and cosine < min(floor, policy.merge_cosine):
        return None
    # To name what differs takes longer than to measure how much does.
    of_letters = ratio(a.text, b.text)
    if cosine is None and not equal and of_letters < min(floor, policy.similarity_threshold):
        return None
    differs = has_differences(a.text, b.text)
    same = equal or (
        of_letters >= policy.similarity_threshold
        and (cosine is None or cosine >= policy.merge_cosine)
        and (not differs or differ_in_grammar_only(a.text, b.text))
    )
    # What holds at another time is another statement.
    valid = [(record.valid_from, record.valid_until) for record in (a.record, b.record)]
    same = same and valid[0] == valid[1]
    score = min(max(round(of_letters, 4) if cosine is None else cosine, 0.0), 1.0)
    return None if not same and score < floor else Pair(score, a, b, same, differs)


def consolidate(context: JobContext) -> Iterator[ProposedBatch]:
    """Archive all but one of memories that state the same, and summarise old volatile ones."""
    changed = set[str]()
    for batch in _duplicate_batches(context):
        changed |= {change.id for change in batch.changes}
        yield batch
    since = context.now - context.policy.merge_after
    old = [
        record
        for record in sorted(
            context.modifiable(context.reader.passing(context.tenant, context.now, until=since)),
            key=lambda record: (record.created_at, record.id),
        )
        if record.stability is Stability.VOLATILE
        and record.id not in changed
        # Events of a session are summarised by session.
        and not (record.kind is Kind.EVENT and record.session)
        and context.is_source(record)
    ]
    for group in _groups(old, lambda record: record.tier.value):
        if len(group) < min(context.policy.merge_least, context.policy.merge_most):
            continue
        # The small rest goes first: after a crash enough is left for the next run to continue.
        for part in reversed(list(_chunk_group(group, 2, context.policy.merge_most))):
            heading = f"Notes about {part[0].subject}" if part[0].subject else "Notes"
            yield _summary_batch(context, part, heading=heading, reason="merged old volatile memories")


def _duplicate_batches(context: JobContext) -> Iterator[ProposedBatch]:
    """Yield batches that archive all but one of memories that state the same, which gets their evidence."""
    records: dict[str, Record] = {}
    near: dict[str, set[str]] = {}
    alike = context.reader.alike(context.tenant, context.now, newest=MAX_RECENT)
    pairs = SimilarPairs(context, alike, floor=context.policy.merge_cosine)
    for pair in sorted(pairs, key=lambda pair: pair.order):
        if pair.same:
            older, newer = pair.first.record, pair.second.record
            for record, other in ((older, newer), (newer, older)):
                records[record.id] = record
                near.setdefault(record.id, set()).add(other.id)

    def worth(record: Record) -> tuple[object, ...]:
        decayed = importance_at(record, context.now), confidence_at(record, context.now)
        return record.trust, *decayed, record.text_at, record.id

    taken: set[str] = set()
    for best in sorted(records.values(), key=worth, reverse=True):
        if best.id in taken or context.was_restored(best):
            continue
        others = []
        for other in (records[name] for name in sorted(near[best.id] - taken)):
            # The memory that stays must not expire much earlier than the archived one.
            lasts = best.expires_at is None or (
                other.expires_at is not None and other.expires_at <= best.expires_at + MAX_EXPIRY_SPREAD
            )
            others += [other] if lasts and not context.was_restored(other) else []
        if not others:
            continue
        taken |= {best.id, *(other.id for other in others)}
        evidence = {item for other in others if other.trust >= best.trust for item in other.evidence}
        added = {*best.evidence, *evidence}
        changes = _archive_changes(others)
        if evidence - set(best.evidence) and len(added) <= MAX_SOURCES:
            changes.append(Replace(id=best.id, evidence=tuple(sorted(added)), if_version=best.version))
        reason = f"memory {best.id} states the same"
        for start in range(0, len(changes), CHANGES_PER_COMMIT):
            part = tuple(changes[start : start + CHANGES_PER_COMMIT])
            yield ProposedBatch(changes=part, reason=reason, atomic=True, heir=best.id)
