"""Summarize: the oldest events of a session become one summary, and what happened on another day an event of that day.

Invariants
(1) Only passing events are summed up: a transcript that was told to last stays as it is.
(2) At least ``summary_least`` of a session, at most the oldest ``summary_most`` at a time; what is left is fewer
    than that, so that a second run finds nothing.
(3) Fewer memories hold afterwards than before: of three sources at most one gives an event of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from keepward.jobs.deriving import derived, groups, happened, is_source, named_after, portions, summed_up
from keepward.jobs.desk import Ask, Desk, Plan
from keepward.model.change import Insert
from keepward.model.commit import Reason
from keepward.model.memory import Kind, Record, Stability, Tier
from keepward.model.value import to_micros
from keepward.retrieval.times import MONTHS, phrase, resolve, spelled_out
from keepward.retrieval.units import sentences

_DAY_PARTS = 3
_SOURCES_AN_EVENT = 3


def plan(desk: Desk) -> Plan:
    """Ask for one summary a portion of a session."""
    passing = [
        record
        for record in desk.live(Tier.EPISODIC)
        if record.kind is Kind.EVENT and record.session and record.stability is Stability.VOLATILE
    ]
    events = [record for record in passing if is_source(desk, record)]
    asks: list[Ask] = []
    told: list[Reason] = []
    for group in groups(events, lambda each: (each.session or "",)):
        for part in portions(group, desk.policy.summary_least, desk.policy.summary_most):
            of = named_after(part[0].session, "A session")
            ask, notes = summed_up(
                desk, part, of=of, reason="summed up the oldest of a session", extracted=_events(desk, part)
            )
            asks.append(ask)
            told += notes
    return Plan(asks=tuple(asks), reasons=tuple(dict.fromkeys(told)))


def _events(desk: Desk, sources: Sequence[Record]) -> list[Insert]:
    """Return events of other days that the sources tell of, one a source, in the order in which they were told."""
    found: list[Insert] = []
    for source in sources:
        if len(found) >= len(sources) // _SOURCES_AN_EVENT:
            break
        for sentence in sentences(source.text):
            day = _other_day(sentence, happened(source))
            if day is not None:
                # "yesterday" would mean another day beside the date of what happened.
                told = spelled_out(sentence, to_micros(happened(source)))
                found.append(derived(desk, [source], told, kind="event", occurred_at=day, speaker=source.speaker))
                break
    return found


def _other_day(sentence: str, said: datetime) -> datetime | None:
    """Return the first day that a sentence names and that is not the day on which it was said; None for none."""
    today = phrase(said.date())
    for named in resolve(sentence, to_micros(said)):
        parts = named.split(" ")
        # A month or a year alone is no day.
        if len(parts) == _DAY_PARTS and named != today:
            return datetime(int(parts[2]), MONTHS.index(parts[1]) + 1, int(parts[0]), tzinfo=UTC)
    return None
