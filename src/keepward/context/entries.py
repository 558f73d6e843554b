"""Entries: the memories that may come into a context, and the reasons why the others may not.

Every given memory has an entry for its section, or one reason. A memory that was recalled as well has a second entry.
Only the newest version has entries. Of two reasons for a version the first in sort order counts, so that the order of
the input does not matter.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TypeAlias

from msgspec.structs import replace

from keepward.context.lines import valid_time
from keepward.context.sections import SECTION_SORT_KEYS, CompileInput, Entry, is_turn, origin_order
from keepward.core.commit import Reason
from keepward.core.memory import Record, Sensitivity, Status, Tier, confidence_at, is_textless
from keepward.core.principals import SOURCES, Trust
from keepward.core.value import to_micros

#: Id and version of a memory.
MemoryVersion: TypeAlias = tuple[str, int]
_INACTIVE_REASONS = {
    Status.EXPIRED: "its time to live is over",
    Status.SUPERSEDED: "another memory has replaced it",
    Status.RETIRED: "it was retired",
    Status.ARCHIVED: "it was archived",
    Status.ERASED: "it was erased",
}
_TIER_ORDER = {Tier.CORE: 0, Tier.WORKING: 1, Tier.EPISODIC: 2, Tier.ARCHIVAL: 3}
_DAY = timedelta(days=1)
_DAY_US = 86_400_000_000
_reason_sort_key = attrgetter("gate", "code", "detail")


def eviction_key(entry: Entry) -> tuple[int, int, int, int, bool, float, float, int, datetime, str, int]:
    """Sort key: the entry that is evicted first comes first; see the compiler."""
    record, section, level, band, tier, rank = entry.record, 0, 0, 0, 0, 0
    if entry.section == "working":
        section = 1
    elif entry.section == "recalled":
        section, level, band, tier, rank = 2, int(entry.level), entry.band, _TIER_ORDER[record.tier], entry.rank
    # The rank knows which memory is newer; times and ids of one batch are arbitrary.
    tie = -rank, record.text_at, record.id, record.version
    # In the fixed sections memories of people stay longest.
    return -section, level, -band, -tier, section < 2 and entry.by_person, entry.confidence, entry.strength, *tie


def repeat_key(record: Record, body: str | None = None) -> tuple[str, ...]:
    """Return what equal memories share: the words, and the key, speaker and subject that give them meaning.

    ``body`` is the text that is shown, if that is not the text of the record.
    """
    words = " ".join((record.text if body is None else body).split()).casefold()
    return record.key or "", record.speaker or "", record.subject or "", words


def without_repeats(entries: Sequence[Entry]) -> dict[MemoryVersion, MemoryVersion]:
    """Keep one of equal recalled entries, the most trusted and then the last said, at the place of the best one.

    Returns the others, each with the one that may be shown.
    """
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        if entry.section == "recalled" and entry.line is not None and not entry.has_candidate_sources:
            groups.setdefault(repeat_key(entry.record, entry.line.body), []).append(entry)
    repeats: dict[MemoryVersion, MemoryVersion] = {}
    for group in groups.values():
        shown = max(group, key=lambda entry: (entry.record.trust, entry.at, entry.record.id))
        best = min(group, key=lambda entry: entry.rank)
        shown.rank, shown.band, shown.strength = best.rank, best.band, best.strength
        shown.level = max(entry.level for entry in group)
        repeats |= {entry.key: shown.key for entry in group if entry is not shown}
    return repeats


def sort_entries(section: str, entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries of a section in the order of the text.

    Recalled ones are grouped by trust, the best first. Messages of one session and day are together, in the order
    they were said, at the position of the best of them.
    """
    if section != "recalled":
        order = SECTION_SORT_KEYS[section]
        return sorted(entries, key=lambda entry: order(entry.record))
    entries = [*entries]
    best: dict[tuple[object, ...], int] = {}

    def talk(entry: Entry) -> tuple[object, ...]:
        """Return what messages of one talk share: trust, session and day; an id for any other memory."""
        record = entry.record
        if not entry.is_turn or record.session is None:
            return (record.id,)
        return origin_order(record), record.session, entry.at // _DAY_US

    for entry in entries:
        best[talk(entry)] = min(entry.rank, best.get(talk(entry), entry.rank))

    def position(entry: Entry) -> tuple[tuple[int, int], int, int, int, str]:
        record = entry.record
        return origin_order(record), best[talk(entry)], entry.at, to_micros(record.created_at), record.id

    return sorted(entries, key=position)


def filter_candidates(inputs: CompileInput) -> tuple[list[Entry], dict[MemoryVersion, Reason]]:
    """Return copies of the entries that may come in, and by id and version why the others may not."""
    entries: list[Entry] = []
    reasons: dict[MemoryVersion, Reason] = {}
    for name, version, reason in inputs.excluded:
        known = reasons.get((name, version))
        reasons[name, version] = reason if known is None else min(known, reason, key=_reason_sort_key)
    given: dict[str, Sequence[Entry]] = {}
    for section in SECTION_SORT_KEYS:
        records: Iterable[Record] = getattr(inputs, section)
        ordered = sorted(records, key=attrgetter("id", "version"))
        given[section] = [Entry(record=record, section=section) for record in ordered]
    given["recalled"] = inputs.recalled
    min_trust = inputs.policy.least_trust.get(inputs.purpose, Trust.UNKNOWN)
    newest: dict[str, int] = {}
    for candidates in given.values():
        for entry in candidates:
            record = entry.record
            newest[record.id] = max(record.version, newest.get(record.id, 0))
    seen: set[tuple[str, bool]] = set()
    for section, candidates in given.items():
        recalled = section == "recalled"
        for rank, entry in enumerate(candidates):
            record, key = entry.record, entry.key
            why = reasons.get(key) or _exclusion_reason(record, section, newest[record.id], inputs, min_trust)
            if why is not None:
                reasons[key] = why
            elif (record.id, recalled) not in seen:
                seen.add((record.id, recalled))
                by_person = record.trust >= Trust.USER
                entries.append(
                    dataclasses.replace(
                        entry,
                        section=section,
                        score=None if entry.score is None else _finite(entry.score),
                        strength=_finite(entry.strength),
                        by_person=by_person,
                        is_agent_note=not by_person and not recalled and section != "core",
                        is_turn=is_turn(record),
                        at=to_micros(record.said_at),
                        confidence=_decayed_confidence(record, inputs.now),
                        rank=rank,
                    )
                )
    return entries, reasons


def compile_reason(code: str, detail: str) -> Reason:
    """Return a reason of the compiler."""
    return Reason(gate="compile", code=code, detail=detail)


def _finite(value: float) -> float:
    return round(value, 6) if math.isfinite(value) else 0.0


def _decayed_confidence(record: Record, now: datetime) -> float:
    """Return the confidence, 0..1, decayed by full days; a claimed one counts at most as the default of its source.

    Only full days count: otherwise minutes between two writes would decide between equally relevant memories.
    """
    days = (now - record.reinforced_at) // _DAY
    if record.trust < Trust.USER:
        source = SOURCES.get(record.source or "", SOURCES["unknown"])
        # A source that the writer is not trusted with counts as the writer's own.
        default = source.confidence if source.trust <= record.trust else SOURCES["assistant"].confidence
        record = replace(record, confidence=min(record.confidence, default))
    return confidence_at(record, record.reinforced_at + days * _DAY if days > 0 else record.reinforced_at)


def not_holding_reason(record: Record, at: datetime) -> Reason | None:
    """Return why a memory may not come in by its valid time; None if it holds at an instant."""
    if record.holds_at(at):
        return None
    return compile_reason("not_valid", f"it {valid_time(record, at)}")


def _exclusion_reason(
    record: Record, section: str, newest: int, inputs: CompileInput, min_trust: Trust
) -> Reason | None:
    """Return why a memory may not come in at any score."""
    status = record.status_at(inputs.now)
    if status is not Status.ACTIVE:
        return compile_reason(status.value, _INACTIVE_REASONS[status])
    if record.version < newest:
        return compile_reason("superseded", "a newer version of it was given")
    if (reason := not_holding_reason(record, inputs.valid_at or inputs.now)) is not None:
        return reason
    if record.sensitivity is Sensitivity.SENSITIVE and not inputs.include_sensitive:
        return compile_reason("sensitive", "it is sensitive and was not asked for")
    if min_trust and section != "core" and record.effective_trust < min_trust:
        trust = record.effective_trust.label
        detail = f"its origin ({trust}) is below {min_trust.label}, the least this purpose accepts"
        return compile_reason("trust", detail)
    if not record.may_guide(inputs.purpose) and record.stale_at is not None:
        return compile_reason("stale", f"its source changed on {record.stale_at.date().isoformat()}")
    if is_textless(record):
        return compile_reason("textless", "it has no text; it is read by its key")
    if section == "state" and record.key is None:
        return compile_reason("unkeyed", "state without a key is found by recall alone")
    return None
