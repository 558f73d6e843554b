"""Deriving: groups of memories that may be summed up together, and the change that does it.

Invariants
(1) A group is of one scope, subject, sensitivity and class of origin, so that nothing crosses these, and nothing
    that nobody vouched for drags down what somebody did.
(2) What is derived holds no longer than the first of its sources would, and is no surer than the least sure of
    them is by now.
(3) A summary is committed together with the archiving of its sources, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from keepward.errors import ModelUnavailable
from keepward.jobs.desk import Ask, Desk
from keepward.jobs.quoting import quoted
from keepward.model.change import Archive, Change, Insert
from keepward.model.commit import Reason
from keepward.model.memory import Record, Sensitivity, Stability, confidence_at, importance_at, share
from keepward.model.trust import Trust

#: Sources may end this much later than the first of them: longer, and summing up would cost more than it saves.
SPREAD = timedelta(days=7)
#: Most sources of one summary, and most of their tags and evidence; the shape gate takes a few more.
MOST = 50
_NAME = 64


def happened(record: Record) -> datetime:
    """Return when what a memory tells took place, as far as is known."""
    return record.occurred_at or record.created_at


def groups(records: Iterable[Record], also: Callable[[Record], tuple[str, ...]]) -> Iterator[list[Record]]:
    """Yield groups as in (1), of one ``also`` each and of terms at most ``SPREAD`` apart; oldest first within each."""
    by_key: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        origin = min(record.trust, Trust.AGENT)
        key = (record.scope, record.subject or "", record.sensitivity.value, str(int(origin)), *also(record))
        by_key.setdefault(key, []).append(record)
    for key in sorted(by_key):
        for cluster in _by_end(by_key[key]):
            yield sorted(cluster, key=lambda each: (happened(each), each.created_at, each.id))


def _by_end(records: list[Record]) -> Iterator[list[Record]]:
    lasting = [record for record in records if record.expires_at is None]
    ending = sorted((record.expires_at, record.id, record) for record in records if record.expires_at is not None)
    cluster: list[Record] = []
    begins: datetime | None = None
    for ends, _, record in ending:
        if begins is None or ends > begins + SPREAD:
            if cluster:
                yield cluster
            cluster, begins = [], ends
        cluster.append(record)
    if cluster:
        yield cluster
    if lasting:
        yield lasting


def portions(group: Sequence[Record], least: int, most: int) -> Iterator[list[Record]]:
    """Yield parts of a group, oldest first, of at most ``most`` and at least ``least``, and at least 2."""
    least, most = max(least, 2), min(max(most, 2), MOST)
    rest = list(group)
    while len(rest) >= min(least, most):
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


def derived(desk: Desk, sources: Sequence[Record], text: str, **fields: object) -> Insert:
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
        "confidence": share(min(confidence_at(each, desk.now) for each in sources)),
        "importance": share(max(importance_at(each, desk.now) for each in sources)),
        "sensitivity": (Sensitivity.SENSITIVE if sensitive else Sensitivity.NORMAL).value,
        "stability": (Stability.VOLATILE if passing else Stability.STABLE).value,
        "ttl": None if ends is None else ends - desk.now,
        "occurred_at": happened(sources[0]),
        "job": desk.job,
        # Identifiers that stand in a sensitive source were kept with consent.
        "consent": sensitive,
    }
    return Insert(id=desk.new_id(), text=text, **{**given, **fields})  # type: ignore[arg-type]


def _common(values: set[str | None]) -> str | None:
    return next(iter(values)) if len(values) == 1 else None


def summed_up(
    desk: Desk, sources: Sequence[Record], *, of: str, reason: str, extracted: Sequence[Insert] = ()
) -> tuple[Ask, tuple[Reason, ...]]:
    """Return an ask that puts a summary in place of its sources, and what is to be told of how it was made."""
    first, last = happened(sources[0]), happened(sources[-1])
    span = f"{first:%Y-%m-%d %H:%M}" if first == last else f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"
    heading = f"{of}, {span} UTC, {len(sources)} in all:"
    limit = desk.policy.text_limit[sources[0].tier] - len(heading) - 1
    body, told = _body(desk, sources, limit)
    summary = derived(desk, sources, f"{heading}\n{body}")
    # The sources go first: what the gates compare the summary with is what will stand beside it.
    archives = [Archive(id=each.id, if_version=each.version) for each in sources]
    changes: tuple[Change, ...] = (*archives, summary, *extracted)
    return Ask(changes=changes, reason=reason, whole=True, session=summary.session), told


def _body(desk: Desk, sources: Sequence[Record], limit: int) -> tuple[str, tuple[Reason, ...]]:
    if desk.summarizer is None:
        return quoted(sources, limit), ()
    try:
        text = desk.summarizer.summarize([quoted([each], len(each.text) + _NAME) for each in sources], limit=limit)
    except ModelUnavailable as fault:
        return quoted(sources, limit), (_told("model_unavailable", f"quoted instead of summed up: {fault}"),)
    text = text.strip()
    if not 0 < len(text) <= limit:
        return quoted(sources, limit), (_told("model_unusable", "quoted instead: the model's text did not fit"),)
    return text, (_told("model", f"summed up by {desk.summarizer.id}"),)


def _told(code: str, detail: str) -> Reason:
    return Reason(gate="summarize", code=code, detail=detail)


def named_after(session: str | None, otherwise: str) -> str:
    """Return how a summary speaks of a session, in at most 80 characters."""
    if session is None:
        return otherwise
    return f"Session {session}" if len(session) <= _NAME else f"Session {session[:_NAME]}…"


def is_source(desk: Desk, record: Record) -> bool:
    """Whether a memory was told and not derived, and was not brought back: neither is summed up again."""
    return not record.derived_from and not desk.brought_back(record)
