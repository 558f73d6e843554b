"""Entries: which memories may come into a context, and why the others may not.

Invariants
(1) Every given memory has an entry for the section it stands in, or one reason; one that was recalled as well has a
    second entry, and the newest version alone of a memory has any.
(2) Of two reasons for one version the first in order counts, so that the order of the given sequences does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from keepward.context.lines import Line
from keepward.context.sections import (
    Candidate,
    Inputs,
    core_order,
    is_turn,
    pinned_order,
    state_order,
    working_order,
)
from keepward.model.commit import Reason
from keepward.model.compiled import Mask
from keepward.model.memory import Record, Sensitivity, Status, Tier, confidence_at, is_textless
from keepward.model.trust import SOURCES, Trust

#: In which order what is not recalled stands in its section.
ORDER: dict[str, Callable[[Record], Any]] = {
    "core": core_order,
    "pinned": pinned_order,
    "state": state_order,
    "working": working_order,
}
_ENDED = {
    Status.EXPIRED: "its time to live is over",
    Status.SUPERSEDED: "another memory has replaced it",
    Status.RETIRED: "it was retired",
    Status.ARCHIVED: "it was archived",
    Status.ERASED: "it was erased",
}
_CLASS = {Tier.CORE: 0, Tier.WORKING: 1, Tier.EPISODIC: 2, Tier.ARCHIVAL: 3}
_DAY = timedelta(days=1)


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """A memory on its way into a section."""

    record: Record
    section: str
    #: Faded by the whole days to the instant of the context, 0..1.
    confidence: float
    #: Position among what was recalled, from 0.
    rank: int = 0
    #: Which of the groups of about equally relevant memories it is in, from 0, the most relevant.
    band: int = 0
    score: float | None = None
    strength: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    weak: bool = False
    #: Set once it is screened.
    masks: tuple[Mask, ...] = ()
    line: Line | None = None
    #: Tokens of the line by itself.
    cost: int = 0
    #: Id and version.
    key: tuple[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.record.id, self.record.version

    @property
    def by_person(self) -> bool:
        """Whether a person wrote or approved it."""
        return self.record.trust >= Trust.USER

    @property
    def is_note(self) -> bool:
        """Whether it is there whatever is asked, and no person wrote or approved it."""
        return self.section in {"pinned", "state", "working"} and not self.by_person

    @property
    def eviction(self) -> tuple[int, int, int, bool, float, float, int, datetime, str, int]:
        """Sort key: what is evicted first comes first, see the compiler's invariant on a lack of room."""
        record = self.record
        section, band, tier, rank = 0, 0, 0, 0
        if self.section == "working":
            section = 1
        elif self.section not in {"pinned", "state"}:
            section, band, tier, rank = 2, self.band, _CLASS[record.tier], self.rank
        # The rank knows what was written later; instants and ids of what was written at once are by chance.
        tie = -rank, record.updated_at or record.created_at, record.id, record.version
        # Of what is there whatever is asked, the words of people stay longest.
        return -section, -band, -tier, section < 2 and self.by_person, self.confidence, self.strength, *tie


def folded(record: Record, body: str) -> str:
    """Return what equal memories share: their words, and the key, speaker and day that give them meaning."""
    day = record.occurred_at.date().isoformat() if record.occurred_at else ""
    speaker = record.speaker if is_turn(record) else None
    return "\0".join((record.key or "", speaker or "", day, " ".join(body.split()).casefold()))


def consider(inputs: Inputs) -> tuple[list[Entry], dict[tuple[str, int], Reason]]:
    """Return entries for what may come in, and by id and version why the others may not."""
    entries: list[Entry] = []
    reasons: dict[tuple[str, int], Reason] = {}
    for name, version, given in inputs.excluded:
        reasons[name, version] = min(reasons.get((name, version), given), given, key=_in_order)
    sources: list[tuple[str, Sequence[Candidate]]] = []
    for section in ORDER:
        records: Iterable[Record] = getattr(inputs, section)
        ordered = sorted(records, key=lambda record: (record.id, record.version))
        sources.append((section, [Candidate(record=record) for record in ordered]))
    sources.append(("recalled", inputs.recalled))
    least = inputs.policy.least_trust.get(inputs.purpose, Trust.UNKNOWN)
    newest: dict[str, int] = {}
    for it in (it for _, candidates in sources for it in candidates):
        newest[it.record.id] = max(it.record.version, newest.get(it.record.id, 0))
    seen: tuple[set[str], set[str]] = (set(), set())
    for section, candidates in sources:
        recalled = section == "recalled"
        for rank, it in enumerate(candidates):
            record = it.record
            key = record.id, record.version
            why = reasons.get(key) or _unfit(record, section, newest[record.id], inputs, least)
            if why is not None:
                reasons[key] = why
            elif record.id not in seen[recalled]:
                seen[recalled].add(record.id)
                entries.append(
                    Entry(
                        record=record,
                        section=section,
                        confidence=_sureness(record, inputs.now),
                        rank=rank,
                        score=_finite(it.score) if recalled else None,
                        strength=_finite(it.score if it.strength is None else it.strength),
                        parts=it.parts,
                        weak=it.weak,
                    )
                )
    return entries, reasons


def reason(code: str, detail: str) -> Reason:
    """Return a reason of the compiler."""
    return Reason(gate="compile", code=code, detail=detail)


def _in_order(why: Reason) -> tuple[str, str, str]:
    return why.gate, why.code, why.detail


def _finite(value: float) -> float:
    return round(value, 6) if math.isfinite(value) else 0.0


def _sureness(record: Record, now: datetime) -> float:
    """Return confidence, 0..1, faded by whole days since it was confirmed; a claimed one counts as its source's.

    Within a day nothing is surer for being newer: else, of memories that are about equally relevant, the minutes
    between two writes would decide, and the seconds until the question.
    """
    days = (now - record.reinforced_at) // _DAY
    source = SOURCES.get(record.source or "", SOURCES["unknown"])
    if record.trust < Trust.USER:
        # A source that an agent is not trusted with gives it no more than its own.
        default = source.confidence if source.trust <= record.trust else SOURCES["assistant"].confidence
        record = replace(record, confidence=min(record.confidence, default))
    return confidence_at(record, record.reinforced_at + days * _DAY if days > 0 else record.reinforced_at)


def _unfit(record: Record, section: str, newest: int, inputs: Inputs, least: Trust) -> Reason | None:
    """Return why a memory may not come in, whatever its score."""
    status = record.status_at(inputs.now)
    if status is not Status.ACTIVE:
        return reason(status.value, _ENDED[status])
    if record.version < newest:
        return reason("superseded", "a newer version of it was given")
    if record.sensitivity is Sensitivity.SENSITIVE and not inputs.include_sensitive:
        return reason("sensitive", "it is sensitive and was not asked for")
    if section != "core" and record.effective_trust < least:
        detail = f"its origin ({record.effective_trust.label}) is below {least.label}, the least this purpose accepts"
        return reason("trust", detail)
    if is_textless(record):
        return reason("textless", "it has no text; it is read by its key")
    if section == "state" and record.key is None:
        return reason("unkeyed", "state without a key is found by recall alone")
    return None
