"""Budget: who goes first when room is short, and whose the tokens are.

Invariants
(1) Core is never evicted. Of the rest what was recalled goes first, then working, then what is pinned and
    state.
(2) Of what was recalled the less relevant goes first; of about equally relevant memories archival goes before
    episodic, and within a tier the lowest confidence first; ties by lower score, then older, then lower id.
(3) Tokens by run are whole numbers of at least 0 that sum to the tokens of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from keepward.context.render import Line, Rendered, line_of
from keepward.context.sections import PREFIX, is_turn, renewed_at
from keepward.model.compiled import Mask
from keepward.model.memory import Record, Tier
from keepward.model.policy import Policy

#: Most memories of a kind: pinned identities and rules, and recalled summaries.
IDENTITY_CAP = 5
RULE_CAP = 10
SUMMARY_CAP = 5
#: Share of a band's best score from which memories count as about equally relevant.
ALIKE = 0.9

_CLASS = {Tier.CORE: 0, Tier.WORKING: 1, Tier.EPISODIC: 2, Tier.ARCHIVAL: 3}


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """A memory on its way into a section."""

    record: Record
    section: str
    #: Faded to the instant of the context, 0..1.
    confidence: float
    #: Position among what was recalled, from 0.
    rank: int = 0
    #: Which of the groups of about equally relevant memories it is in, from 0, the most relevant.
    band: int = 0
    score: float | None = None
    strength: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)
    #: Set once it is screened.
    masks: tuple[Mask, ...] = ()
    line: Line | None = None
    #: Estimated tokens, headings it opened included.
    cost: int = 0
    #: Id and version.
    key: tuple[str, int] = field(init=False)
    _plain: Line | None = field(default=None, init=False)
    _folded: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.key = self.record.id, self.record.version

    @property
    def plain(self) -> Line:
        """The line of the memory as it stands, unscreened: made when it is first asked for."""
        if self._plain is None:
            self._plain = line_of(self.section, self.record, ())
        return self._plain

    def folded(self, body: str) -> str:
        """Return what equal memories share, given the words that are shown; what it says unmasked is folded once."""
        if body != self.record.text:
            return folded(self.record, body)
        if self._folded is None:
            self._folded = folded(self.record, body)
        return self._folded

    @property
    def group(self) -> tuple[int, int, int]:
        """When its like is evicted, the highest first."""
        if self.section in {"pinned", "state"}:
            return 0, 0, 0
        return (1, 0, 0) if self.section == "working" else (2, self.band, _CLASS[self.record.tier])


def folded(record: Record, body: str) -> str:
    """Return what equal memories share: their words, and the key, speaker and day that give them meaning."""
    told = record.occurred_at.date().isoformat() if record.occurred_at else ""
    who = record.speaker if is_turn(record) else None
    return "\0".join((record.key or "", who or "", told, " ".join(body.split()).casefold()))


def eviction_order(entry: Entry) -> tuple[int, int, int, float, float, int, str, int]:
    """Sort key: what is evicted first comes first; see (1) and (2)."""
    record, (section, band, tier) = entry.record, entry.group
    newness = renewed_at(record)
    return -section, -band, -tier, entry.confidence, entry.strength, newness, record.id, record.version


def banded(entries: Sequence[Entry]) -> list[Entry]:
    """Put ranked entries into bands and return them with what is kept first first.

    A band begins with the best entry that is left and holds those that score at least ``ALIKE`` of it.
    """
    band, best = -1, 0.0
    for entry in entries:
        if band < 0 or entry.strength < ALIKE * best:
            band, best = band + 1, entry.strength
        entry.band = band
    return kept_order(entries)


def victims(entries: Iterable[Entry], tokens: int) -> list[Entry]:
    """Return the first to go until about ``tokens`` are freed: at least one where there is one."""
    gone: list[Entry] = []
    freed = 0
    for entry in sorted(entries, key=eviction_order):
        if freed >= tokens:
            break
        gone.append(entry)
        freed += entry.cost
    return gone


def allotments(policy: Policy) -> tuple[tuple[frozenset[str], int], ...]:
    """Return the sections that share a budget, and that budget in tokens."""
    return (
        (frozenset({"pinned", "state"}), policy.pinned_budget),
        (frozenset({"working"}), policy.working_budget),
        (frozenset({"recalled"}), policy.retrieved_budget),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Tokens of a text."""

    whole: int
    by_section: Mapping[str, int]
    by_tier: Mapping[str, int]
    #: Section the text closes with, where that is of the stable prefix, and the tokens of the closing mark.
    closing: tuple[str, int] = ("", 0)

    def of(self, sections: Iterable[str]) -> int:
        """Return the tokens of some sections together.

        The mark that closes a text without a tail is left out, so that the prefix is the same with one.
        """
        names = frozenset(sections)
        last, mark = self.closing
        return sum(self.by_section.get(name, 0) for name in names) - (mark if last in names else 0)


def tally(rendered: Rendered, count: Callable[[str], int]) -> Tally:
    """Count a text as a whole, and give each run what the text up to its end has more than up to its start.

    A counter for which a longer text counts less gives that run 0, so that (3) holds for any counter.
    """
    whole = count(rendered.text)
    by_section: dict[str, int] = {}
    by_tier: dict[str, int] = {}
    before = 0
    closing = ("", 0)
    for at, (section, tier, end) in enumerate(rendered.runs):
        last = at + 1 == len(rendered.runs)
        until = whole if last else max(before, min(whole, count(rendered.text[:end])))
        if last and section in PREFIX:
            closing = section, until - max(before, min(whole, count(rendered.text[: rendered.split])))
        by_section[section] = by_section.get(section, 0) + until - before
        by_tier[tier] = by_tier.get(tier, 0) + until - before
        before = until
    return Tally(whole=whole, by_section=by_section, by_tier=by_tier, closing=closing)


def kept_order(entries: Sequence[Entry]) -> list[Entry]:
    """Return entries with what is evicted last first."""
    return sorted(entries, key=eviction_order, reverse=True)
