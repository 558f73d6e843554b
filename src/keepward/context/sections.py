"""Sections: the parts of a context, and the order of memories in each.

Identity, core, pinned and state form the stable prefix; working and recalled the dynamic tail.
In pinned, state and recalled a person's own memories come first, then less trusted ones: each group has one heading.
In working the task's own memories come first. Every order is total: its last key is the id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from keepward.context.lines import Line
from keepward.core.commit import Reason
from keepward.core.compiled import Exclusion, Mask, Section
from keepward.core.memory import CORE_BLOCKS, Kind, Record, Tier
from keepward.core.policy import Policy
from keepward.core.principals import SHARED_SCOPE, Trust, is_task_scope
from keepward.core.value import to_micros
from keepward.types import Format

#: All sections, in the order of the text.
SECTIONS = ("identity", "core", "pinned", "state", "working", "recalled")
#: Sections that change seldom, so that a provider may cache them.
PREFIX_SECTIONS = frozenset(SECTIONS[:4])


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """A memory that may come into a section if it fits. The compiler works on copies of those that it is given."""

    record: Record
    section: str = "recalled"
    #: The score of recall, 0..1; None in a fixed section.
    score: float | None = None
    #: The number that ranked it; it decides which memories are about equally relevant.
    strength: float = 0.0
    #: Named parts of the score.
    parts: Mapping[str, float] = field(default_factory=dict)
    #: Whether it does not bear on the objective; then it does not count as a use.
    weak: bool = False
    #: The trust level at which it was chosen as if there were no less trusted memories; those give way to it.
    level: Trust = Trust.UNKNOWN

    # The compiler sets the rest.

    #: Whether a person wrote or approved it.
    by_person: bool = False
    #: Whether it belongs to a fixed section, and no person wrote or approved it.
    is_agent_note: bool = False
    #: Whether it is a dated or spoken event; ``at`` is its time, in microseconds since 1970.
    is_turn: bool = False
    at: int = 0
    #: Decayed by the full days until the context, 0..1.
    confidence: float = 0.0
    #: Position among the recalled memories, from 0.
    rank: int = 0
    #: Group of about equally relevant memories, from 0, the most relevant.
    band: int = 0
    #: Whether it is a summary, and one of its sources is a candidate too.
    has_candidate_sources: bool = False
    #: Set by the output filter.
    masks: tuple[Mask, ...] = ()
    line: Line | None = None
    #: Tokens of the line without headings.
    cost: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """Id and version of the memory."""
        return self.record.id, self.record.version


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFilterResult:
    """The findings of the output filter for one memory."""

    #: Spans to replace by ``[NAME]``: start, end, name; offsets in characters of the record's text.
    text_masks: tuple[Mask, ...] = ()
    #: Set if the memory must not be rendered.
    drop: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileInput:
    """Everything that a compiled context depends on."""

    #: What the context is for, already redacted; the receipt stores it.
    objective: str = ""
    purpose: str = "answer"
    now: datetime
    #: Only what holds at this instant comes in; None for now.
    valid_at: datetime | None = None
    #: Name of the head whose state was read.
    head: str = ""
    #: Scope of the reader.
    scope: str = SHARED_SCOPE
    policy: Policy
    #: The limit of the total text. None: the policy limits the tail.
    budget_tokens: int | None = None
    #: Version and text of the identity document.
    identity: tuple[str, str] | None = None
    #: Version and text of the file about the user; it opens the ``human`` block.
    user_file: tuple[str, str] | None = None
    core: Sequence[Record] = ()
    #: Permanent memories outside core, of every visible scope.
    pinned: Sequence[Record] = ()
    #: Keyed state.
    state: Sequence[Record] = ()
    working: Sequence[Record] = ()
    #: Best first; more than fit.
    recalled: Sequence[Entry] = ()
    #: Memories that were left out before: id, version, reason.
    excluded: Sequence[tuple[str, int, Reason]] = ()
    #: Name and function of the token counter; it counts 0 for an empty text.
    counter_name: str
    count: Callable[[str], int]
    #: The output filter. It gets each record at most once, and before that record is rendered.
    screen: Callable[[Sequence[Record]], Sequence[OutputFilterResult]] = lambda records: [
        OutputFilterResult() for _ in records
    ]
    #: Names of embedder, reranker and the like, for the receipt.
    versions: Mapping[str, str] = field(default_factory=dict)
    include_sensitive: bool = False
    #: Number of ranked memories that ``excluded`` does not name, by code.
    unlisted: Mapping[str, int] = field(default_factory=dict)
    format: Format = "markdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileResult:
    """A context, its sections and its receipt's facts."""

    text: str
    #: SHA-256 in hex over everything that determines the text.
    context_id: str
    #: In the order of the text; only those with content.
    sections: tuple[Section, ...]
    #: By id, then version.
    excluded: tuple[Exclusion, ...]
    #: Tokens of the text by the counter.
    tokens: int
    #: The same by tier; they sum to ``tokens``.
    tokens_by_tier: Mapping[str, int]
    #: SHA-256 in hex of the stable prefix and of the dynamic tail.
    prefix_digest: str
    tail_digest: str
    #: Plain JSON without memory text, enough for ``render.replay``.
    facts: dict[str, Any]


def scope_depth(scope: str) -> int:
    """Return the number of segments of a scope; 0 for the shared one."""
    return 0 if scope == SHARED_SCOPE else scope.count("/")


def core_order(record: Record) -> tuple[int, str, int, str, int, str]:
    """Sort key of core: fixed blocks, other keys by name, memories without a key; shared scope first."""
    key = record.key or ""
    rank = CORE_BLOCKS.index(key) if key in CORE_BLOCKS else len(CORE_BLOCKS) + (not key)
    return rank, key, scope_depth(record.scope), record.scope, to_micros(record.created_at), record.id


def origin_order(record: Record) -> tuple[int, int]:
    """Sort key of trust in a section: a person's own first, then by trust of the author and of what it had read."""
    heard = 0 if record.heard is None else 1 + int(Trust.OWNER) - int(record.heard)
    return max(0, int(Trust.USER) - int(record.trust)), heard


def newest_rules(pinned: Sequence[Record], limit: int) -> frozenset[str]:
    """Return the ids of the newest permanent rules; older rules are recalled like facts."""
    rules = sorted((each.text_at, each.id) for each in pinned if each.kind is Kind.RULE)
    return frozenset(name for _, name in rules[-limit:])


def pinned_order(record: Record) -> tuple[tuple[int, int], bool, int, str, int, str]:
    """Sort key of pinned: by trust; rules first; own scope first, then oldest first."""
    return (
        origin_order(record),
        record.kind is not Kind.RULE,
        -scope_depth(record.scope),
        record.scope,
        to_micros(record.created_at),
        record.id,
    )


def state_order(record: Record) -> tuple[tuple[int, int], int, str, str, str]:
    """Sort key of state: by trust; shared scope first, then by key."""
    return origin_order(record), scope_depth(record.scope), record.scope, record.key or "", record.id


def working_order(record: Record) -> tuple[bool, int, str, int, str]:
    """Sort key of working: the task's own first, shared ones last; newest first in a scope."""
    renewed = to_micros(record.text_at)
    return not is_task_scope(record.scope), -scope_depth(record.scope), record.scope, -renewed, record.id


#: Sort key of each fixed section.
SECTION_SORT_KEYS: dict[str, Callable[[Record], Any]] = {
    "core": core_order,
    "pinned": pinned_order,
    "state": state_order,
    "working": working_order,
}


def is_turn(record: Record) -> bool:
    """Whether the memory is a dated or spoken event, shown under its date."""
    is_dated = record.session is not None or record.speaker is not None or record.occurred_at is not None
    return record.tier is Tier.EPISODIC and record.kind is not Kind.SUMMARY and is_dated
