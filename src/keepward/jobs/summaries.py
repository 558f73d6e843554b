"""Summaries: groups of memories that are summed up together, and the text that does it without a model.

Invariants
(1) A group is of one scope, subject, sensitivity and class of origin, so that nothing crosses these, and nothing
    that nobody vouched for drags down what somebody did.
(2) What is derived holds no longer than the first of its sources would, and is no surer than the least sure of
    them is by now. It is committed together with the archiving of its volatile sources, or not at all. Stable events
    stay active; a summary that only quotes them is volatile.
(3) Without a model every sentence stands in a source, word for word, and in their order; nothing is added but who
    spoke. Where all sources fit they stand in full; else each has its say before any has a second one.
(4) Of a thread of more than ``thread_length`` working notes half of that, the newest, stay as they are. Of a session's
    events at least ``summary_least`` are summed up, at most the oldest ``summary_most`` at a time, and of three
    volatile ones at most one gives an event of its own. No event is in two summaries. So a second run finds nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from keepward.errors import ModelUnavailable
from keepward.jobs.plan import Ask, Plan, Planning, lapsed
from keepward.model.change import Archive, Change, Insert
from keepward.model.commit import Reason
from keepward.model.memory import Kind, Record, Sensitivity, Stability, Tier, confidence_at, importance_at, share
from keepward.model.query import Filter
from keepward.model.trust import Trust
from keepward.model.value import to_micros
from keepward.retrieval.analyze import terms
from keepward.retrieval.dates import MONTHS, phrase, resolve, spelled_out
from keepward.retrieval.units import named, sentences

#: Sources may end this much later than the first of them: longer, and summing up would cost more than it saves.
SPREAD = timedelta(days=7)
#: Most sources of one summary, and most of their tags and evidence; the shape gate takes a few more.
MOST = 50
#: Working notes of one summary.
_NOTES = 20
_NAME = 64
_DAY_PARTS = 3
_SOURCES_AN_EVENT = 3
#: What a question counts for beside a statement, and what a sentence with a number does.
_QUESTION, _FIGURE = 0.5, 1.25
_CUT = " …"


def compact(on: Planning) -> Plan:
    """Ask to expire working memories, and to sum up the oldest notes of long threads: one scope and session each."""
    parts: list[tuple[Ask, tuple[Reason, ...]]] = [(ask, ()) for ask in lapsed(on, Tier.WORKING)]
    notes = [record for record in on.live(Tier.WORKING) if record.key is None and is_source(on, record)]
    for group in groups(notes, lambda each: (each.session or "",)):
        length = on.policy.thread_length
        old = group[: len(group) - length // 2] if len(group) > length else []
        for part in portions(old, 2, _NOTES):
            of = _named_after(part[0].session, f"Notes of {part[0].scope}")
            parts.append(summed_up(on, part, of=of, reason="summed up the oldest notes of a long thread"))
    return Plan.of(parts)


def summarize(on: Planning) -> Plan:
    """Plan summaries of each session's events, and events for other days that volatile ones mention."""
    events = [each for each in on.live(Tier.EPISODIC) if each.kind is Kind.EVENT and each.session]
    summaries = Filter(scopes=(), kinds=(Kind.SUMMARY.value,), include_sensitive=True)
    written = on.reader.find(on.tenant, summaries, live_at=None, limit=None).records if events else ()
    done = on.proposed_sources.union(*(each.derived_from for each in written))
    parts: list[tuple[Ask, tuple[Reason, ...]]] = []
    fresh = [each for each in events if each.id not in done and is_source(on, each)]
    for group in groups(fresh, lambda each: (each.session or "",)):
        for part in portions(group, on.policy.summary_least, on.policy.summary_most):
            of = _named_after(part[0].session, "A session")
            why = "summed up the oldest of a session"
            leaving = [each for each in part if not _stays_active(each)]
            parts.append(summed_up(on, part, of=of, reason=why, extracted=_events(on, leaving)))
    return Plan.of(parts)


def _stays_active(source: Record) -> bool:
    """Whether an event stays active after it was summarised; a volatile one is archived."""
    return source.tier is Tier.EPISODIC and source.stability is not Stability.VOLATILE


def is_source(on: Planning, record: Record) -> bool:
    """Whether a memory was told and not derived, and was not brought back: neither is summed up again."""
    return not record.derived_from and not on.brought_back(record)


def groups(records: Iterable[Record], also: Callable[[Record], tuple[str, ...]]) -> Iterator[list[Record]]:
    """Yield groups as in (1), of one ``also`` each and of terms at most ``SPREAD`` apart; oldest first within each."""
    by_key: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        origin = min(record.trust, Trust.AGENT)
        key = (record.scope, record.subject or "", record.sensitivity.value, str(int(origin)), *also(record))
        by_key.setdefault(key, []).append(record)
    for key in sorted(by_key):
        for cluster in _by_end(by_key[key]):
            yield sorted(cluster, key=lambda each: (_happened(each), each.created_at, each.id))


def _by_end(records: list[Record]) -> Iterator[list[Record]]:
    ending = sorted((record.expires_at, record.id, record) for record in records if record.expires_at is not None)
    clusters: list[list[Record]] = []
    begins: datetime | None = None
    for ends, _, record in ending:
        if begins is None or ends > begins + SPREAD:
            clusters.append([])
            begins = ends
        clusters[-1].append(record)
    lasting = [record for record in records if record.expires_at is None]
    yield from (*clusters, *([lasting] if lasting else []))


def portions(group: Sequence[Record], least: int, most: int) -> Iterator[list[Record]]:
    """Yield parts of a group, oldest first, of at most ``most`` and at least ``least``, and at least 2."""
    least, most = max(least, 2), min(max(most, 2), MOST)
    rest = list(group)
    while rest and len(rest) >= min(least, most):
        part = _fitting(rest[:most])
        if len(part) < 2:
            return
        yield part
        rest = rest[len(part) :]


def _fitting(sources: list[Record]) -> list[Record]:
    """Return the first of the sources whose evidence, taken together, a memory can hold."""
    evidence: set[str] = set()
    for at, source in enumerate(sources):
        evidence |= set(source.evidence)
        if len(evidence) > MOST:
            return sources[:at]
    return sources


def summed_up(
    on: Planning, sources: Sequence[Record], *, of: str, reason: str, extracted: Sequence[Insert] = ()
) -> tuple[Ask, tuple[Reason, ...]]:
    """Return an ask that puts a summary in place of its volatile sources, and what is to be said of how it was made."""
    first, last = _happened(sources[0]), _happened(sources[-1])
    span = f"{first:%Y-%m-%d %H:%M}" if first == last else f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"
    heading = f"{of}, {span} UTC, {len(sources)} in all:"
    body, reasons = _body(on, sources, on.policy.text_limit[sources[0].tier] - len(heading) - 1)
    # A quote says nothing that its sources do not say. Where they stay, it is needed for a few days only.
    brief = all(_stays_active(each) for each in sources) and not any(each.code == "model" for each in reasons)
    summary = _derived(on, sources, f"{heading}\n{body}", **({"stability": Stability.VOLATILE.value} if brief else {}))
    # The sources go first: what the gates compare the summary with is what will stand beside it.
    archives = [Archive(id=each.id, if_version=each.version) for each in sources if not _stays_active(each)]
    changes: tuple[Change, ...] = (*archives, summary, *extracted)
    return Ask(changes=changes, reason=reason, whole=True, session=summary.session), reasons


def _derived(on: Planning, sources: Sequence[Record], text: str, **fields: object) -> Insert:
    """Return a new memory made of others; what is not named is theirs, as far as they agree."""
    ends = min((each.expires_at for each in sources if each.expires_at is not None), default=None)
    sensitive = any(each.sensitivity is Sensitivity.SENSITIVE for each in sources)
    passing = any(each.stability is Stability.VOLATILE for each in sources)
    given: dict[str, object] = {
        "tier": sources[0].tier.value,
        "kind": "summary",
        "scope": sources[0].scope,
        "subject": sources[0].subject,
        "category": _common({each.category for each in sources}),
        "session": _common({each.session for each in sources}),
        "tags": tuple(sorted({tag for each in sources for tag in each.tags}))[:MOST],
        "derived_from": tuple(each.id for each in sources),
        "confidence": share(min(confidence_at(each, on.now) for each in sources)),
        "importance": share(max(importance_at(each, on.now) for each in sources)),
        "sensitivity": (Sensitivity.SENSITIVE if sensitive else Sensitivity.NORMAL).value,
        "stability": (Stability.VOLATILE if passing else Stability.STABLE).value,
        "ttl": None if ends is None else ends - on.now,
        "occurred_at": _happened(sources[0]),
        "job": on.job,
        # Identifiers that stand in a sensitive source were kept with consent.
        "consent": sensitive,
    }
    return Insert(id=on.new_id(), text=text, **{**given, **fields})  # type: ignore[arg-type]


def _common(values: set[str | None]) -> str | None:
    return next(iter(values)) if len(values) == 1 else None


def _happened(record: Record) -> datetime:
    return record.occurred_at or record.created_at


def _body(on: Planning, sources: Sequence[Record], limit: int) -> tuple[str, tuple[Reason, ...]]:
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
    except ModelUnavailable as fault:
        code, detail = "model_unavailable", f"quoted instead of summed up: {fault}"
    return text or quoted(sources, limit), (Reason(gate="summarize", code=code, detail=detail),)


def _named_after(session: str | None, otherwise: str) -> str:
    if session is None:
        return otherwise
    return f"Session {session}" if len(session) <= _NAME else f"Session {session[:_NAME]}…"


def _events(on: Planning, sources: Sequence[Record]) -> list[Insert]:
    """Return events of other days that the sources tell of, one a source, in the order in which they were told."""
    found: list[Insert] = []
    for source in sources:
        if len(found) >= len(sources) // _SOURCES_AN_EVENT:
            break
        said = _happened(source)
        for sentence in sentences(source.text):
            day = _other_day(sentence, said)
            if day is not None:
                # "yesterday" would mean another day beside the date of what happened.
                text = spelled_out(sentence, to_micros(said))
                found.append(_derived(on, [source], text, kind="event", occurred_at=day, speaker=source.speaker))
                break
    return found


def _other_day(sentence: str, said: datetime) -> datetime | None:
    """Return the first day that a sentence names and that is not the day on which it was said; None for none."""
    today = phrase(said.date())
    for each in resolve(sentence, to_micros(said)):
        parts = each.split(" ")
        # A month or a year alone is no day.
        if len(parts) == _DAY_PARTS and each != today:
            return datetime(int(parts[2]), MONTHS.index(parts[1]) + 1, int(parts[0]), tzinfo=UTC)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sentence:
    source: int
    place: int
    text: str
    worth: float


def quoted(sources: Sequence[Record], limit: int) -> str:
    """Return what the sources say, one a line, oldest first, in at most ``limit`` characters.

    A sentence is worth the sum over its distinct terms of log(1 + sources that hold the term), divided by the
    square root of their number, so that what several sources speak of comes first and length alone does not pay.
    """
    lines = [_line(source, _plain(source.text)) for source in sources]
    if len("\n".join(lines)) <= limit:
        return "\n".join(lines)
    ranked = sorted(_sentences(sources), key=lambda each: (-each.worth, each.source, each.place))
    first: dict[int, _Sentence] = {}
    for each in ranked:
        first.setdefault(each.source, each)
    ahead = sorted(first.values(), key=lambda each: (-each.worth, each.source))
    chosen: list[_Sentence] = []
    for each in dict.fromkeys((*ahead, *ranked)):
        known = any(each.text == other.text for other in chosen)
        if not known and len(_drawn(sources, [*chosen, each])) <= limit:
            chosen.append(each)
    return _drawn(sources, chosen) or lines[0][: max(limit - len(_CUT), 0)].rstrip() + _CUT


def _sentences(sources: Sequence[Record]) -> list[_Sentence]:
    parts = [
        (at, place, text)
        for at, source in enumerate(sources)
        for place, text in enumerate([_plain(each) for each in sentences(source.text)] or [_plain(source.text)])
    ]
    held = [frozenset(terms(text)) for _, _, text in parts]
    spread: Counter[str] = Counter()
    for at in range(len(sources)):
        spread.update({term for (source, _, _), own in zip(parts, held, strict=True) if source == at for term in own})
    return [
        _Sentence(source=at, place=place, text=text, worth=_worth(text, own, spread))
        for (at, place, text), own in zip(parts, held, strict=True)
    ]


def _worth(text: str, own: frozenset[str], spread: Counter[str]) -> float:
    if not own:
        return 0.0
    worth = sum(math.log1p(spread[term]) for term in sorted(own)) / math.sqrt(len(own))
    worth *= _QUESTION if text.endswith(("?", "？")) else 1.0
    return worth * (_FIGURE if any(map(str.isdigit, text)) else 1.0)


def _drawn(sources: Sequence[Record], chosen: Sequence[_Sentence]) -> str:
    lines = []
    for at, source in enumerate(sources):
        own = sorted((each for each in chosen if each.source == at), key=lambda each: each.place)
        if own:
            lines.append(_line(source, " ".join(each.text for each in own)))
    return "\n".join(lines)


def _line(source: Record, text: str) -> str:
    speaker = named(source.speaker) or (source.speaker or "").strip()
    return f"{speaker}: {text}" if speaker else text


def _plain(text: str) -> str:
    return " ".join(text.split())
