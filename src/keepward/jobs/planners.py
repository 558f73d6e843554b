"""Planners: what each job asks for. A planner reads and asks; its asks pass the same gates as any write.

Invariants
(1) Core, permanent and identity memories, and those that a person keeps under approval or read-only, are touched by
    no job.
(2) A question that a person has not decided, or has refused, is not asked again until the memory changes; a memory
    that a person brought back is left alone likewise.
(3) The owner's own words are never archived unasked: such a question is one proposal a memory, each with its reason,
    and at most ``QUESTIONS`` of them wait at a time.
(4) Memories are summed up, compared and merged only within one scope, subject, sensitivity and class of trust.
(5) A derived memory expires no later than the first of its sources, and is no surer than the least sure of them. It
    is committed together with the archiving of its volatile sources, or not at all.
(6) Of memories that state the same, the most trusted, then the most important, stays word for word. Two texts that
    differ in a number, a date, a name, a unit, a negation or any other word but a filler stay two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from keepward.core.change import BOOKKEEPING, Archive, Change, Expire, Insert, Replace, Retire
from keepward.core.commit import Reason
from keepward.core.job import Alike
from keepward.core.memory import (
    Access,
    Kind,
    Record,
    Sensitivity,
    Stability,
    Tier,
    confidence_at,
    half_life,
    importance_at,
    round_share,
)
from keepward.core.policy import Policy, access_for
from keepward.core.principals import Trust
from keepward.core.query import Filter
from keepward.core.value import to_micros
from keepward.errors import ModelUnavailable
from keepward.gates.detectors.near_duplicate import compare
from keepward.ports.models import Embedder, Summarizer
from keepward.ports.store import IndexedMemory
from keepward.retrieval.chunking import sentences, speaker_name
from keepward.retrieval.time_expressions import MONTHS, phrase, resolve, spell_out_dates
from keepward.services.gate_context import least_useful
from keepward.storage.reads import MAX_HOLDERS_PER_MINHASH, MIN_SHARED_MINHASHES, Reader

#: Changes in one commit.
CHANGES_PER_COMMIT = 200
#: Memories that one run expires; the rest is for the next.
MAX_EXPIRED = 20_000
QUESTIONS = 20
#: Sources of one summary may expire this much later than the first of them.
MAX_EXPIRY_SPREAD = timedelta(days=7)
#: Most sources of one summary, and most of their tags and evidence; the shape gate takes a few more.
MAX_SOURCES = 50
#: Working notes of one summary.
_NOTES_PER_SUMMARY = 20
#: Characters of a session's name in a heading.
_MAX_SESSION_NAME_LENGTH = 64
_DAY_PARTS = 3
#: Of so many volatile events at most one gives an event of another day.
_SOURCES_PER_EVENT = 3
_ELLIPSIS = " …"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """What a planner may look at."""

    reader: Reader
    tenant: str
    now: datetime
    policy: Policy
    #: Name of the job; what it makes carries it.
    job: str
    new_id: Callable[[], str]
    summarizer: Summarizer | None = None
    #: What recall uses; vectors of another embedder do not count.
    embedder: Embedder | None = None
    #: Versions of memories that this job has asked a person about, by memory id; see (2).
    asked: Mapping[str, int] = field(default_factory=dict)
    #: Sources of the memories in those proposals.
    proposed_sources: frozenset[str] = frozenset()
    #: Proposals of this job that wait.
    waiting: int = 0

    def may_modify(self, record: Record) -> bool:
        """Whether a job may touch a memory at all; see (1) and (2)."""
        if record.tier is Tier.CORE or record.stability is Stability.PERMANENT or record.kind is Kind.IDENTITY:
            return False
        access = access_for(self.policy, record.tier, record.key, record.access)
        if access in {Access.READ_ONLY, Access.APPROVAL}:
            return False
        asked = self.asked.get(record.id)
        return asked is None or any(version > asked for version, _ in self._changes(record))

    def was_restored(self, record: Record) -> bool:
        """Whether somebody restored a memory, or undid what was done to it, and nothing else happened since."""
        return record.version > 1 and [op for _, op in self._changes(record)][-1:] in (["restore"], ["revert"])

    def _changes(self, record: Record) -> list[tuple[int, str]]:
        steps = self.reader.steps(self.tenant, record.id)
        return [(step.after.version, step.op) for step in steps if step.op not in BOOKKEEPING]

    def is_source(self, record: Record) -> bool:
        """Whether a memory was stated and not derived, and was not brought back: neither is summed up again."""
        return not record.derived_from and not self.was_restored(record)

    def live(self, *tiers: Tier) -> list[Record]:
        """Return the active memories of some tiers that a job may touch, oldest first, ties by id."""
        everything = Filter(scopes=(), tiers=tuple(tier.value for tier in tiers), include_sensitive=True)
        found = self.reader.find(self.tenant, everything, live_at=self.now, limit=None).records
        return sorted(
            (record for record in found if self.may_modify(record)), key=lambda each: (each.created_at, each.id)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedBatch:
    """Changes to propose."""

    changes: tuple[Change, ...]
    reason: str
    #: All or nothing; else each change is decided by itself.
    whole: bool = False
    #: Live memories that it archives with nothing in their place.
    removes: int = 0
    session: str | None = None
    #: Id of the memory that takes over the use counts of the memories that this archives.
    heir: str | None = None
    #: What the receipt of the run says of it.
    notes: tuple[Reason, ...] = ()


def _batches(changes: Sequence[Change], reason: str, *, removes: bool = False) -> Iterator[ProposedBatch]:
    """Yield an ask for each ``CHANGES_PER_COMMIT`` changes; each change is decided by itself."""
    for start in range(0, len(changes), CHANGES_PER_COMMIT):
        part = tuple(changes[start : start + CHANGES_PER_COMMIT])
        yield ProposedBatch(changes=part, reason=reason, removes=len(part) if removes else 0)


def _archive_changes(records: Sequence[Record]) -> list[Change]:
    return [Archive(id=record.id, if_version=record.version) for record in records]


def expire(context: JobContext, *tiers: Tier) -> Iterator[ProposedBatch]:
    """Ask to note as expired what is past its term, in some tiers or in all but core."""
    found = context.reader.expired(context.tenant, context.now, limit=MAX_EXPIRED).records
    mine = [record for record in found if context.may_modify(record) and (not tiers or record.tier in tiers)]
    yield from _batches([Expire(id=each.id, if_version=each.version) for each in mine], "its term is over")


def decay(context: JobContext) -> Iterator[ProposedBatch]:
    """Ask to archive what has decayed and nobody used, of what policy names, the least confident first."""
    named = set(context.policy.archive_unused)
    gone = [
        each
        for each in _decayed_memories(context)
        if each.trust is not Trust.OWNER and {each.kind.value, each.tier.value} & named
    ]
    yield from _batches(_archive_changes(gone), "it has faded: nobody confirmed or used it", removes=True)


def _decayed_memories(context: JobContext) -> list[Record]:
    """Return memories below both of policy's minimums, least confident first, ties by age and id.

    What was used within its half-life is of use, however little its numbers say.
    """
    low = [
        each
        for each in context.live(Tier.ARCHIVAL, Tier.EPISODIC, Tier.WORKING)
        if confidence_at(each, context.now) < context.policy.fade_confidence
    ]
    used = context.reader.usage(context.tenant, [each.id for each in low])

    def is_useless(record: Record) -> bool:
        count, last = used.get(record.id, (0, record.created_at))
        span = half_life(record)
        if count and span is not None and context.now - last < span:
            return False
        return importance_at(record, context.now, last if count else None) < context.policy.fade_importance

    gone = [each for each in low if is_useless(each) and not context.was_restored(each)]
    return sorted(gone, key=lambda each: (confidence_at(each, context.now), each.created_at, each.id))


def prune(context: JobContext) -> Iterator[ProposedBatch]:
    """Ask to expire, to archive the least useful memories of full tiers, and to let go of decayed ones of the owner."""
    yield from expire(context)
    tally = context.reader.tally(context.tenant)
    for tier in (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVAL):
        limit = context.policy.capacity.get(tier)
        if limit is None or tally.get(tier.value, 0) <= limit:
            continue
        over = context.reader.expired(context.tenant, context.now, limit=-1).records
        excess = tally[tier.value] - sum(1 for each in over if each.tier is tier) - limit
        spares = [record for record in context.live(tier) if record.trust is not Trust.OWNER]
        spares = least_useful(context.reader, context.tenant, spares, context.now)[: max(excess, 0)]
        yield from _batches(_archive_changes(spares), f"the {tier.value} tier is over its capacity", removes=True)
    owned = [each for each in _decayed_memories(context) if each.trust is Trust.OWNER and each.tier is Tier.ARCHIVAL]
    for record in owned[: max(0, QUESTIONS - context.waiting)]:
        idle, sure = (context.now - record.reinforced_at).days, confidence_at(record, context.now)
        yield ProposedBatch(
            changes=(Retire(id=record.id, if_version=record.version),),
            reason=f"nobody confirmed it for {idle} days; its confidence has faded from {record.confidence:g} to "
            f"{sure:g}: is it still needed?",
            whole=True,
        )


def compact(context: JobContext) -> Iterator[ProposedBatch]:
    """Ask to expire working memories, and to sum up the oldest notes of long threads: one scope and session each.

    Half of ``thread_length``, the newest notes, stay as they are.
    """
    yield from expire(context, Tier.WORKING)
    notes = [record for record in context.live(Tier.WORKING) if record.key is None and context.is_source(record)]
    for group in _groups(notes, lambda each: each.session or ""):
        length = context.policy.thread_length
        old = group[: len(group) - length // 2] if len(group) > length else []
        for part in _chunk_group(old, 2, _NOTES_PER_SUMMARY):
            heading = _session_heading(part[0].session, f"Notes of {part[0].scope}")
            yield _summary_batch(context, part, heading=heading, reason="summed up the oldest notes of a long thread")


def summarize(context: JobContext) -> Iterator[ProposedBatch]:
    """Ask for summaries of each session's events, and for events of other days that volatile ones mention."""
    events = [each for each in context.live(Tier.EPISODIC) if each.kind is Kind.EVENT and each.session]
    summaries = Filter(scopes=(), kinds=(Kind.SUMMARY.value,), include_sensitive=True)
    written = context.reader.find(context.tenant, summaries, live_at=None, limit=None).records if events else ()
    done = context.proposed_sources.union(*(each.derived_from for each in written))
    fresh = [each for each in events if each.id not in done and context.is_source(each)]
    for group in _groups(fresh, lambda each: each.session or ""):
        for part in _chunk_group(group, context.policy.summary_least, context.policy.summary_most):
            heading = _session_heading(part[0].session, "A session")
            extracted = _extracted_events(context, [each for each in part if not _stays_active(each)])
            yield _summary_batch(
                context, part, heading=heading, reason="summed up the oldest of a session", extracted=extracted
            )


def _stays_active(source: Record) -> bool:
    """Whether an event stays active after it was summarised; a volatile one is archived."""
    return source.tier is Tier.EPISODIC and source.stability is not Stability.VOLATILE


def _session_heading(session: str | None, otherwise: str) -> str:
    if session is None:
        return otherwise
    return (
        f"Session {session}"
        if len(session) <= _MAX_SESSION_NAME_LENGTH
        else f"Session {session[:_MAX_SESSION_NAME_LENGTH]}…"
    )


def _groups(records: Iterable[Record], also: Callable[[Record], str]) -> Iterator[list[Record]]:
    """Yield groups as in (4), of one ``also`` and of like expiry each; oldest first within each."""
    by_key: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        trust = min(record.trust, Trust.AGENT)
        key = (record.scope, record.subject or "", record.sensitivity.value, str(int(trust)), also(record))
        by_key.setdefault(key, []).append(record)
    for alike in (by_key[each] for each in sorted(by_key)):
        lasting = [record for record in alike if record.expires_at is None]
        ending = sorted((each.expires_at, each.id, each) for each in alike if each.expires_at is not None)
        clusters: list[list[Record]] = []
        first: datetime | None = None
        for expires_at, _, record in ending:
            if first is None or expires_at > first + MAX_EXPIRY_SPREAD:
                clusters.append([])
                first = expires_at
            clusters[-1].append(record)
        for cluster in (*clusters, lasting):
            if cluster:
                yield sorted(cluster, key=lambda each: (_happened(each), each.created_at, each.id))


def _chunk_group(group: Sequence[Record], least: int, most: int) -> Iterator[list[Record]]:
    """Yield parts of a group, oldest first, of at most ``most`` and at least ``least``, and at least 2.

    A memory can hold the evidence of a part, taken together.
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
        if len(part) < 2:
            return
        yield part
        rest = rest[len(part) :]


def _summary_batch(
    context: JobContext, sources: Sequence[Record], *, heading: str, reason: str, extracted: Sequence[Insert] = ()
) -> ProposedBatch:
    """Return an ask that puts a summary in place of its volatile sources."""
    first, last = _happened(sources[0]), _happened(sources[-1])
    span = f"{first:%Y-%m-%d %H:%M}" if first == last else f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"
    heading = f"{heading}, {span} UTC, {len(sources)} in all:"
    body, notes = _summary_text(context, sources, context.policy.text_limit[sources[0].tier] - len(heading) - 1)
    # A quote adds nothing to its sources. Where they stay, it is needed for a few days only.
    brief = all(_stays_active(each) for each in sources) and not any(each.code == "model" for each in notes)
    summary = _derived_memory(
        context, sources, f"{heading}\n{body}", **({"stability": Stability.VOLATILE.value} if brief else {})
    )
    # The sources go first: the gates compare the summary with what will be active next to it.
    archives = _archive_changes([each for each in sources if not _stays_active(each)])
    changes = (*archives, summary, *extracted)
    return ProposedBatch(changes=changes, reason=reason, whole=True, session=summary.session, notes=notes)


def _derived_memory(context: JobContext, sources: Sequence[Record], text: str, **fields: Any) -> Insert:
    """Return a new memory made of others; what is not named is theirs, as far as they agree."""
    ends = min((each.expires_at for each in sources if each.expires_at is not None), default=None)
    sensitive = any(each.sensitivity is Sensitivity.SENSITIVE for each in sources)
    volatile = any(each.stability is Stability.VOLATILE for each in sources)
    categories, sessions = {each.category for each in sources}, {each.session for each in sources}
    given: dict[str, Any] = {
        "tier": sources[0].tier.value,
        "kind": "summary",
        "scope": sources[0].scope,
        "subject": sources[0].subject,
        "category": categories.pop() if len(categories) == 1 else None,
        "session": sessions.pop() if len(sessions) == 1 else None,
        "tags": tuple(sorted({tag for each in sources for tag in each.tags}))[:MAX_SOURCES],
        "derived_from": tuple(each.id for each in sources),
        "confidence": round_share(min(confidence_at(each, context.now) for each in sources)),
        "importance": round_share(max(importance_at(each, context.now) for each in sources)),
        "sensitivity": (Sensitivity.SENSITIVE if sensitive else Sensitivity.NORMAL).value,
        "stability": (Stability.VOLATILE if volatile else Stability.STABLE).value,
        "ttl": None if ends is None else ends - context.now,
        "occurred_at": _happened(sources[0]),
        "job": context.job,
        # Identifiers in a sensitive source were kept with consent.
        "consent": sensitive,
    }
    return Insert(id=context.new_id(), text=text, **{**given, **fields})


def _happened(record: Record) -> datetime:
    return record.occurred_at or record.created_at


def _summary_text(context: JobContext, sources: Sequence[Record], limit: int) -> tuple[str, tuple[Reason, ...]]:
    """Return a text of at most so many characters, of the model's or quoted, and how it was made."""
    if context.summarizer is None:
        return extractive_summary(sources, limit), ()
    text = ""
    try:
        text = context.summarizer.summarize(
            [extractive_summary([each], len(each.text) + _MAX_SESSION_NAME_LENGTH) for each in sources], limit=limit
        ).strip()
        code, detail = "model", f"summed up by {context.summarizer.id}"
        if not 0 < len(text) <= limit:
            code, detail, text = "model_unusable", "quoted instead: the model's text did not fit", ""
    except ModelUnavailable as exc:
        code, detail = "model_unavailable", f"quoted instead of summed up: {exc}"
    return text or extractive_summary(sources, limit), (Reason(gate="summarize", code=code, detail=detail),)


def extractive_summary(sources: Sequence[Record], limit: int) -> str:
    """Return what the sources say, word for word, one a line and in their order, in at most ``limit`` characters.

    Nothing is added but who spoke. Where not all of it fits, each source has its first sentence before any has its
    second one.
    """
    texts = [" ".join(source.text.split()) for source in sources]
    speakers = [speaker_name(source.speaker) or (source.speaker or "").strip() for source in sources]
    openings = [f"{speaker}: " if speaker else "" for speaker in speakers]
    lines = [opening + text for opening, text in zip(openings, texts, strict=True)]
    if len("\n".join(lines)) <= limit:
        return "\n".join(lines)
    parts = [[" ".join(each.split()) for each in sentences(text)] or [text] for text in texts]
    chosen: list[list[str]] = [[] for _ in sources]
    left = limit + 1
    for place in range(max(map(len, parts), default=0)):
        for opening, said, own in zip(openings, parts, chosen, strict=True):
            if place >= len(said) or any(said[place] in each for each in chosen):
                continue
            # A space, or a line break and who spoke.
            room = len(said[place]) + (1 if own else 1 + len(opening))
            if room <= left:
                own.append(said[place])
                left -= room
    found = [opening + " ".join(own) for opening, own in zip(openings, chosen, strict=True) if own]
    return "\n".join(found) or lines[0][: max(limit - len(_ELLIPSIS), 0)].rstrip() + _ELLIPSIS


def _extracted_events(context: JobContext, sources: Sequence[Record]) -> list[Insert]:
    """Return events of other days that the sources tell of, one a source, in the order in which they were told."""
    found: list[Insert] = []
    for source in sources:
        if len(found) >= len(sources) // _SOURCES_PER_EVENT:
            break
        said = _happened(source)
        for sentence in sentences(source.text):
            days = [each.split(" ") for each in resolve(sentence, to_micros(said)) if each != phrase(said.date())]
            # A month or a year alone is no day.
            day = next((each for each in days if len(each) == _DAY_PARTS), None)
            if day is not None:
                at = datetime(int(day[2]), MONTHS.index(day[1]) + 1, int(day[0]), tzinfo=UTC)
                # "yesterday" would mean another day next to the date of the event.
                text = spell_out_dates(sentence, to_micros(said))
                found.append(
                    _derived_memory(context, [source], text, kind="event", occurred_at=at, speaker=source.speaker)
                )
                break
    return found


def similar_pairs(context: JobContext, *, floor: float, scopes: Iterable[str] | None = None) -> list[Alike]:
    """Return pairs of unkeyed memories that score ``floor`` or more or state the same, best first, ties by id.

    Likely pairs share minhashes, so that the work grows with the memories and not with their pairs. A minhash that
    more than ``MAX_HOLDERS_PER_MINHASH`` memories share compares each with the newest of them.
    """
    within = None if scopes is None else frozenset(scopes)
    entries = [
        each
        for each in context.reader.indexed(context.tenant)
        if each.record.tier in {Tier.ARCHIVAL, Tier.EPISODIC}
        and each.record.kind is not Kind.EVENT
        and each.record.key is None
        and each.record.is_live(context.now)
        and (within is None or each.record.scope in within)
        and context.may_modify(each.record)
    ]
    entries.sort(key=lambda each: (each.record.created_at, each.record.id))
    buckets: dict[tuple[Any, ...], list[int]] = {}
    found: list[Alike] = []
    for at, entry in enumerate(entries):
        record = entry.record
        partition = (record.scope, record.tier, record.sensitivity, record.subject, record.kind, record.stability)
        shared: Counter[int] = Counter()
        for mark in (entry.features.digest, *entry.features.marks):
            bucket = buckets.setdefault((*partition, mark), [])
            # An equal digest is an equal text, and enough.
            shared.update(
                dict.fromkeys(bucket[-MAX_HOLDERS_PER_MINHASH:], MIN_SHARED_MINHASHES if isinstance(mark, bytes) else 1)
            )
            bucket.append(at)
        likely = (entries[other] for other in sorted(shared) if shared[other] >= MIN_SHARED_MINHASHES)
        found += filter(None, (_compare_pair(context, other, entry, floor) for other in likely))
    return sorted(found, key=lambda pair: (-pair.score, pair.first.id, pair.second.id))


def _compare_pair(context: JobContext, a: IndexedMemory, b: IndexedMemory, floor: float) -> Alike | None:
    """Return how two memories compare; None where they neither score ``floor`` nor state the same."""
    from keepward.retrieval.vector_index import unpack

    policy, model, cosine = context.policy, context.embedder.id if context.embedder else None, None
    if model is not None and a.features.model == b.features.model == model and a.features.units and b.features.units:
        # Rounded here, so that a floor taken from a score keeps that score in.
        cosine = round(float(unpack(a.features.vectors)[0] @ unpack(b.features.vectors)[0]), 4)
    equal = a.features.digest == b.features.digest
    if cosine is not None and not equal and cosine < min(floor, policy.merge_cosine):
        return None
    like = compare(a.record.text, b.record.text)
    same = equal or (
        not like.differs
        and like.ratio >= policy.similarity_threshold
        and (cosine is None or cosine >= policy.merge_cosine)
    )
    score = min(max(round(like.ratio, 4) if cosine is None else cosine, 0.0), 1.0)
    if not same and score < floor:
        return None
    return Alike(first=a.record, second=b.record, score=score, same=same, differs=tuple(like.differs))


def consolidate(context: JobContext) -> Iterator[ProposedBatch]:
    """Ask to let one of several memories that state the same stay, and to merge what is old and volatile."""
    touched = set[str]()
    for ask in _duplicate_batches(context):
        touched |= {change.id for change in ask.changes}
        yield ask
    old = [
        record
        for record in context.live(Tier.EPISODIC, Tier.ARCHIVAL)
        if record.stability is Stability.VOLATILE
        and record.reinforced_at <= context.now - context.policy.merge_after
        and record.key is None
        and record.id not in touched
        # The events of a session are summed up as a session.
        and not (record.kind is Kind.EVENT and record.session)
        and context.is_source(record)
    ]
    for group in _groups(old, lambda each: each.tier.value):
        if len(group) < min(context.policy.merge_least, context.policy.merge_most):
            continue
        # The small rest goes first: what a crash leaves behind is enough for the next run to go on with.
        for part in reversed(list(_chunk_group(group, 2, context.policy.merge_most))):
            heading = f"Notes about {part[0].subject}" if part[0].subject else "Notes"
            yield _summary_batch(context, part, heading=heading, reason="merged old passing memories")


def _duplicate_batches(context: JobContext) -> Iterator[ProposedBatch]:
    """Yield asks to archive all but one of memories that state the same; their evidence goes to that one."""
    records: dict[str, Record] = {}
    near: dict[str, set[str]] = {}
    for pair in similar_pairs(context, floor=context.policy.merge_cosine):
        if pair.same:
            for one, other in ((pair.first, pair.second), (pair.second, pair.first)):
                records[one.id] = one
                near.setdefault(one.id, set()).add(other.id)

    def worth(record: Record) -> tuple[object, ...]:
        decayed = importance_at(record, context.now), confidence_at(record, context.now)
        return record.trust, *decayed, record.created_at, record.id

    taken: set[str] = set()
    for best in sorted(records.values(), key=worth, reverse=True):
        if best.id in taken or context.was_restored(best):
            continue
        others = []
        for other in (records[name] for name in sorted(near[best.id] - taken)):
            # What stays is active about as long as what goes would have been.
            lasts = best.expires_at is None or (
                other.expires_at is not None and other.expires_at <= best.expires_at + MAX_EXPIRY_SPREAD
            )
            others += [other] if lasts and not context.was_restored(other) else []
        if not others:
            continue
        taken |= {best.id, *(each.id for each in others)}
        changes = _archive_changes(others)
        evidence = {item for each in others if each.trust >= best.trust for item in each.evidence}
        added = {*best.evidence, *evidence}
        if evidence - set(best.evidence) and len(added) <= MAX_SOURCES:
            changes.append(Replace(id=best.id, evidence=tuple(sorted(added)), if_version=best.version))
        reason = f"memory {best.id} states the same"
        yield ProposedBatch(changes=tuple(changes), reason=reason, whole=True, heir=best.id)
