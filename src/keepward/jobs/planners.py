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
    share,
)
from keepward.core.policy import Policy, access_for
from keepward.core.query import Filter
from keepward.core.trust import Trust
from keepward.core.value import to_micros
from keepward.errors import ModelUnavailable
from keepward.gates.detectors.near_duplicate import compare
from keepward.ports.models import Embedder, Summarizer
from keepward.ports.store import Indexed
from keepward.retrieval.chunking import named, sentences
from keepward.retrieval.time_expressions import MONTHS, phrase, resolve, spelled_out
from keepward.services.look import least_useful
from keepward.storage.reads import CROWD, SHARED, Reader

#: Changes in one commit.
BATCH = 200
#: Memories that one run expires; the rest is for the next.
MAX_EXPIRED = 20_000
QUESTIONS = 20
#: Sources of one summary may expire this much later than the first of them.
MAX_EXPIRY_SPREAD = timedelta(days=7)
#: Most sources of one summary, and most of their tags and evidence; the shape gate takes a few more.
MAX_SOURCES = 50
#: Working notes of one summary.
_NOTES = 20
#: Characters of a session's name in a heading.
_NAME = 64
_DAY_PARTS = 3
#: Of so many volatile events at most one gives an event of another day.
_SOURCES_AN_EVENT = 3
_CUT = " …"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
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

    def mine(self, record: Record) -> bool:
        """Whether a job may touch a memory at all; see (1) and (2)."""
        if record.tier is Tier.CORE or record.stability is Stability.PERMANENT or record.kind is Kind.IDENTITY:
            return False
        access = access_for(self.policy, record.tier, record.key, record.access)
        if access in {Access.READ_ONLY, Access.APPROVAL}:
            return False
        asked = self.asked.get(record.id)
        return asked is None or any(version > asked for version, _ in self._changes(record))

    def brought_back(self, record: Record) -> bool:
        """Whether somebody restored a memory, or undid what was done to it, and nothing else happened since."""
        return record.version > 1 and [op for _, op in self._changes(record)][-1:] in (["restore"], ["revert"])

    def _changes(self, record: Record) -> list[tuple[int, str]]:
        steps = self.reader.steps(self.tenant, record.id)
        return [(step.after.version, step.op) for step in steps if step.op not in BOOKKEEPING]

    def is_source(self, record: Record) -> bool:
        """Whether a memory was stated and not derived, and was not brought back: neither is summed up again."""
        return not record.derived_from and not self.brought_back(record)

    def live(self, *tiers: Tier) -> list[Record]:
        """Return the active memories of some tiers that a job may touch, oldest first, ties by id."""
        everything = Filter(scopes=(), tiers=tuple(tier.value for tier in tiers), include_sensitive=True)
        found = self.reader.find(self.tenant, everything, live_at=self.now, limit=None).records
        return sorted((record for record in found if self.mine(record)), key=lambda each: (each.created_at, each.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
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


def _batches(changes: Sequence[Change], reason: str, *, removes: bool = False) -> Iterator[Ask]:
    """Yield an ask for each ``BATCH`` changes; each change is decided by itself."""
    for start in range(0, len(changes), BATCH):
        part = tuple(changes[start : start + BATCH])
        yield Ask(changes=part, reason=reason, removes=len(part) if removes else 0)


def _archived(records: Sequence[Record]) -> list[Change]:
    return [Archive(id=record.id, if_version=record.version) for record in records]


def expire(on: Planning, *tiers: Tier) -> Iterator[Ask]:
    """Ask to note as expired what is past its term, in some tiers or in all but core."""
    found = on.reader.lapsed(on.tenant, on.now, limit=MAX_EXPIRED).records
    mine = [record for record in found if on.mine(record) and (not tiers or record.tier in tiers)]
    yield from _batches([Expire(id=each.id, if_version=each.version) for each in mine], "its term is over")


def decay(on: Planning) -> Iterator[Ask]:
    """Ask to archive what has decayed and nobody used, of what policy names, the least confident first."""
    named = set(on.policy.archive_unused)
    gone = [
        each for each in _decayed(on) if each.trust is not Trust.OWNER and {each.kind.value, each.tier.value} & named
    ]
    yield from _batches(_archived(gone), "it has faded: nobody confirmed or used it", removes=True)


def _decayed(on: Planning) -> list[Record]:
    """Return memories below both of policy's minimums, least confident first, ties by age and id.

    What was used within its half-life is of use, however little its numbers say.
    """
    low = [
        each
        for each in on.live(Tier.ARCHIVAL, Tier.EPISODIC, Tier.WORKING)
        if confidence_at(each, on.now) < on.policy.fade_confidence
    ]
    used = on.reader.usage(on.tenant, [each.id for each in low])

    def is_useless(record: Record) -> bool:
        count, last = used.get(record.id, (0, record.created_at))
        span = half_life(record)
        if count and span is not None and on.now - last < span:
            return False
        return importance_at(record, on.now, last if count else None) < on.policy.fade_importance

    gone = [each for each in low if is_useless(each) and not on.brought_back(each)]
    return sorted(gone, key=lambda each: (confidence_at(each, on.now), each.created_at, each.id))


def prune(on: Planning) -> Iterator[Ask]:
    """Ask to expire, to archive the least useful memories of full tiers, and to let go of decayed ones of the owner."""
    yield from expire(on)
    tally = on.reader.tally(on.tenant)
    for tier in (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVAL):
        limit = on.policy.capacity.get(tier)
        if limit is None or tally.get(tier.value, 0) <= limit:
            continue
        over = on.reader.lapsed(on.tenant, on.now, limit=-1).records
        excess = tally[tier.value] - sum(1 for each in over if each.tier is tier) - limit
        spares = [record for record in on.live(tier) if record.trust is not Trust.OWNER]
        spares = least_useful(on.reader, on.tenant, spares, on.now)[: max(excess, 0)]
        yield from _batches(_archived(spares), f"the {tier.value} tier is over its capacity", removes=True)
    owned = [each for each in _decayed(on) if each.trust is Trust.OWNER and each.tier is Tier.ARCHIVAL]
    for record in owned[: max(0, QUESTIONS - on.waiting)]:
        idle, sure = (on.now - record.reinforced_at).days, confidence_at(record, on.now)
        yield Ask(
            changes=(Retire(id=record.id, if_version=record.version),),
            reason=f"nobody confirmed it for {idle} days; its confidence has faded from {record.confidence:g} to "
            f"{sure:g}: is it still needed?",
            whole=True,
        )


def compact(on: Planning) -> Iterator[Ask]:
    """Ask to expire working memories, and to sum up the oldest notes of long threads: one scope and session each.

    Half of ``thread_length``, the newest notes, stay as they are.
    """
    yield from expire(on, Tier.WORKING)
    notes = [record for record in on.live(Tier.WORKING) if record.key is None and on.is_source(record)]
    for group in _groups(notes, lambda each: each.session or ""):
        length = on.policy.thread_length
        old = group[: len(group) - length // 2] if len(group) > length else []
        for part in _portions(old, 2, _NOTES):
            heading = _session_heading(part[0].session, f"Notes of {part[0].scope}")
            yield _summary(on, part, heading=heading, reason="summed up the oldest notes of a long thread")


def summarize(on: Planning) -> Iterator[Ask]:
    """Ask for summaries of each session's events, and for events of other days that volatile ones mention."""
    events = [each for each in on.live(Tier.EPISODIC) if each.kind is Kind.EVENT and each.session]
    summaries = Filter(scopes=(), kinds=(Kind.SUMMARY.value,), include_sensitive=True)
    written = on.reader.find(on.tenant, summaries, live_at=None, limit=None).records if events else ()
    done = on.proposed_sources.union(*(each.derived_from for each in written))
    fresh = [each for each in events if each.id not in done and on.is_source(each)]
    for group in _groups(fresh, lambda each: each.session or ""):
        for part in _portions(group, on.policy.summary_least, on.policy.summary_most):
            heading = _session_heading(part[0].session, "A session")
            extracted = _events(on, [each for each in part if not _stays_active(each)])
            yield _summary(on, part, heading=heading, reason="summed up the oldest of a session", extracted=extracted)


def _stays_active(source: Record) -> bool:
    """Whether an event stays active after it was summarised; a volatile one is archived."""
    return source.tier is Tier.EPISODIC and source.stability is not Stability.VOLATILE


def _session_heading(session: str | None, otherwise: str) -> str:
    if session is None:
        return otherwise
    return f"Session {session}" if len(session) <= _NAME else f"Session {session[:_NAME]}…"


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


def _portions(group: Sequence[Record], least: int, most: int) -> Iterator[list[Record]]:
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


def _summary(
    on: Planning, sources: Sequence[Record], *, heading: str, reason: str, extracted: Sequence[Insert] = ()
) -> Ask:
    """Return an ask that puts a summary in place of its volatile sources."""
    first, last = _happened(sources[0]), _happened(sources[-1])
    span = f"{first:%Y-%m-%d %H:%M}" if first == last else f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"
    heading = f"{heading}, {span} UTC, {len(sources)} in all:"
    body, notes = _body(on, sources, on.policy.text_limit[sources[0].tier] - len(heading) - 1)
    # A quote adds nothing to its sources. Where they stay, it is needed for a few days only.
    brief = all(_stays_active(each) for each in sources) and not any(each.code == "model" for each in notes)
    summary = _derived(on, sources, f"{heading}\n{body}", **({"stability": Stability.VOLATILE.value} if brief else {}))
    # The sources go first: the gates compare the summary with what will be active next to it.
    archives = _archived([each for each in sources if not _stays_active(each)])
    changes = (*archives, summary, *extracted)
    return Ask(changes=changes, reason=reason, whole=True, session=summary.session, notes=notes)


def _derived(on: Planning, sources: Sequence[Record], text: str, **fields: Any) -> Insert:
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
        "confidence": share(min(confidence_at(each, on.now) for each in sources)),
        "importance": share(max(importance_at(each, on.now) for each in sources)),
        "sensitivity": (Sensitivity.SENSITIVE if sensitive else Sensitivity.NORMAL).value,
        "stability": (Stability.VOLATILE if volatile else Stability.STABLE).value,
        "ttl": None if ends is None else ends - on.now,
        "occurred_at": _happened(sources[0]),
        "job": on.job,
        # Identifiers in a sensitive source were kept with consent.
        "consent": sensitive,
    }
    return Insert(id=on.new_id(), text=text, **{**given, **fields})


def _happened(record: Record) -> datetime:
    return record.occurred_at or record.created_at


def _body(on: Planning, sources: Sequence[Record], limit: int) -> tuple[str, tuple[Reason, ...]]:
    """Return a text of at most so many characters, of the model's or quoted, and how it was made."""
    if on.summarizer is None:
        return quoted(sources, limit), ()
    text = ""
    try:
        text = on.summarizer.summarize(
            [quoted([each], len(each.text) + _NAME) for each in sources], limit=limit
        ).strip()
        code, detail = "model", f"summed up by {on.summarizer.id}"
        if not 0 < len(text) <= limit:
            code, detail, text = "model_unusable", "quoted instead: the model's text did not fit", ""
    except ModelUnavailable as exc:
        code, detail = "model_unavailable", f"quoted instead of summed up: {exc}"
    return text or quoted(sources, limit), (Reason(gate="summarize", code=code, detail=detail),)


def quoted(sources: Sequence[Record], limit: int) -> str:
    """Return what the sources say, word for word, one a line and in their order, in at most ``limit`` characters.

    Nothing is added but who spoke. Where not all of it fits, each source has its first sentence before any has its
    second one.
    """
    texts = [" ".join(source.text.split()) for source in sources]
    speakers = [named(source.speaker) or (source.speaker or "").strip() for source in sources]
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
    return "\n".join(found) or lines[0][: max(limit - len(_CUT), 0)].rstrip() + _CUT


def _events(on: Planning, sources: Sequence[Record]) -> list[Insert]:
    """Return events of other days that the sources tell of, one a source, in the order in which they were told."""
    found: list[Insert] = []
    for source in sources:
        if len(found) >= len(sources) // _SOURCES_AN_EVENT:
            break
        said = _happened(source)
        for sentence in sentences(source.text):
            days = [each.split(" ") for each in resolve(sentence, to_micros(said)) if each != phrase(said.date())]
            # A month or a year alone is no day.
            day = next((each for each in days if len(each) == _DAY_PARTS), None)
            if day is not None:
                at = datetime(int(day[2]), MONTHS.index(day[1]) + 1, int(day[0]), tzinfo=UTC)
                # "yesterday" would mean another day next to the date of the event.
                text = spelled_out(sentence, to_micros(said))
                found.append(_derived(on, [source], text, kind="event", occurred_at=at, speaker=source.speaker))
                break
    return found


def pairs(on: Planning, *, floor: float, scopes: Iterable[str] | None = None) -> list[Alike]:
    """Return pairs of unkeyed memories that score ``floor`` or more or state the same, best first, ties by id.

    Likely pairs share minhashes, so that the work grows with the memories and not with their pairs. A minhash that
    more than ``CROWD`` memories share compares each with the newest of them.
    """
    within = None if scopes is None else frozenset(scopes)
    entries = [
        each
        for each in on.reader.indexed(on.tenant)
        if each.record.tier in {Tier.ARCHIVAL, Tier.EPISODIC}
        and each.record.kind is not Kind.EVENT
        and each.record.key is None
        and each.record.is_live(on.now)
        and (within is None or each.record.scope in within)
        and on.mine(each.record)
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
            shared.update(dict.fromkeys(bucket[-CROWD:], SHARED if isinstance(mark, bytes) else 1))
            bucket.append(at)
        likely = (entries[other] for other in sorted(shared) if shared[other] >= SHARED)
        found += filter(None, (_compared(on, other, entry, floor) for other in likely))
    return sorted(found, key=lambda pair: (-pair.score, pair.first.id, pair.second.id))


def _compared(on: Planning, a: Indexed, b: Indexed, floor: float) -> Alike | None:
    """Return how two memories compare; None where they neither score ``floor`` nor state the same."""
    from keepward.retrieval.vector_index import unpack

    policy, model, cosine = on.policy, on.embedder.id if on.embedder else None, None
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


def consolidate(on: Planning) -> Iterator[Ask]:
    """Ask to let one of several memories that state the same stay, and to merge what is old and volatile."""
    touched = set[str]()
    for ask in _doubles(on):
        touched |= {change.id for change in ask.changes}
        yield ask
    old = [
        record
        for record in on.live(Tier.EPISODIC, Tier.ARCHIVAL)
        if record.stability is Stability.VOLATILE
        and record.reinforced_at <= on.now - on.policy.merge_after
        and record.key is None
        and record.id not in touched
        # The events of a session are summed up as a session.
        and not (record.kind is Kind.EVENT and record.session)
        and on.is_source(record)
    ]
    for group in _groups(old, lambda each: each.tier.value):
        if len(group) < min(on.policy.merge_least, on.policy.merge_most):
            continue
        # The small rest goes first: what a crash leaves behind is enough for the next run to go on with.
        for part in reversed(list(_portions(group, 2, on.policy.merge_most))):
            heading = f"Notes about {part[0].subject}" if part[0].subject else "Notes"
            yield _summary(on, part, heading=heading, reason="merged old passing memories")


def _doubles(on: Planning) -> Iterator[Ask]:
    """Yield asks to archive all but one of memories that state the same; their evidence goes to that one."""
    records: dict[str, Record] = {}
    near: dict[str, set[str]] = {}
    for pair in pairs(on, floor=on.policy.merge_cosine):
        if pair.same:
            for one, other in ((pair.first, pair.second), (pair.second, pair.first)):
                records[one.id] = one
                near.setdefault(one.id, set()).add(other.id)

    def worth(record: Record) -> tuple[object, ...]:
        decayed = importance_at(record, on.now), confidence_at(record, on.now)
        return record.trust, *decayed, record.created_at, record.id

    taken: set[str] = set()
    for best in sorted(records.values(), key=worth, reverse=True):
        if best.id in taken or on.brought_back(best):
            continue
        others = []
        for other in (records[name] for name in sorted(near[best.id] - taken)):
            # What stays is active about as long as what goes would have been.
            lasts = best.expires_at is None or (
                other.expires_at is not None and other.expires_at <= best.expires_at + MAX_EXPIRY_SPREAD
            )
            others += [other] if lasts and not on.brought_back(other) else []
        if not others:
            continue
        taken |= {best.id, *(each.id for each in others)}
        changes = _archived(others)
        evidence = {item for each in others if each.trust >= best.trust for item in each.evidence}
        added = {*best.evidence, *evidence}
        if evidence - set(best.evidence) and len(added) <= MAX_SOURCES:
            changes.append(Replace(id=best.id, evidence=tuple(sorted(added)), if_version=best.version))
        reason = f"memory {best.id} states the same"
        yield Ask(changes=tuple(changes), reason=reason, whole=True, heir=best.id)
