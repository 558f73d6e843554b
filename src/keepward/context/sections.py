"""Sections: what a context is made of, and in which order things stand in it.

Invariants
(1) Every order here is total: its last key is the id.
(2) Identity, core, pinned and state form the stable prefix; working and recalled the dynamic tail.
(3) In pinned, state and recalled a person's own memories come first, then the other origins, the least trusted last.
    Each origin is one run, so that it takes one heading. In working the task's own come first, whatever their origin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from keepward.core.commit import Reason
from keepward.core.compiled import Exclusion, Mask, Section
from keepward.core.memory import CORE_BLOCKS, Kind, Record, Tier
from keepward.core.policy import Policy
from keepward.core.principals import SHARED_SCOPE, Trust, is_task_scope
from keepward.core.value import to_micros

Format = Literal["markdown", "messages"]
FORMATS: tuple[Format, ...] = ("markdown", "messages")
#: Microseconds.
_DAY = 86_400_000_000
#: All sections, in the order of the text.
SECTIONS = ("identity", "core", "pinned", "state", "working", "recalled")
#: The sections that change seldom, so that a provider may cache them.
PREFIX_SECTIONS = frozenset(SECTIONS[:4])


@dataclass(slots=True, kw_only=True, eq=False)
class Candidate:
    """One recalled memory, before it is known whether it fits."""

    record: Record
    #: The score of recall, 0..1.
    score: float = 0.0
    #: The number that ranked it, where that is not the score. Bands of about equal relevance are shares of it.
    strength: float | None = None
    #: Named parts of the score.
    parts: Mapping[str, float] = field(default_factory=dict)
    #: Whether recall marked the hit as weak. A weak hit in a context counts as no use.
    weak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFilterResult:
    """What a second look at a memory's text found."""

    #: Spans to replace by ``[NAME]``: start, end, name; offsets in characters of the record's text.
    text_masks: tuple[Mask, ...] = ()
    #: Set when the memory must not be rendered at all.
    drop: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileInput:
    """Everything a compiled context depends on."""

    #: What the context is for, already redacted; it stands in the receipt.
    objective: str = ""
    purpose: str = "answer"
    now: datetime
    #: Name of the head whose state was read.
    head: str = ""
    #: Scope the reader stands at.
    scope: str = SHARED_SCOPE
    policy: Policy
    #: The cap of the whole text. None: policy caps working and recalled memories together, and the recalled lines.
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
    #: Best first, more than fit.
    recalled: Sequence[Candidate] = ()
    #: What was left out before: id, version, reason. It is never rendered.
    excluded: Sequence[tuple[str, int, Reason]] = ()
    #: Name and function of the token counter; 0 for the empty text.
    counter_name: str
    count: Callable[[str], int]
    #: Looks at records together, at each at most once, and always before it is rendered.
    screen: Callable[[Sequence[Record]], Sequence[OutputFilterResult]] = lambda records: [
        OutputFilterResult() for _ in records
    ]
    #: Names of embedder, reranker and the like, for the receipt.
    versions: Mapping[str, str] = field(default_factory=dict)
    include_sensitive: bool = False
    include_weak: bool = False
    #: Ranked memories that ``excluded`` does not name, counted by code.
    unlisted: Mapping[str, int] = field(default_factory=dict)
    format: Format = "markdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileResult:
    """A context and how it came about."""

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
    #: JSON-safe and enough for ``render.replay``; holds no memory text.
    facts: dict[str, Any]


def scope_depth(scope: str) -> int:
    """Return the number of segments of a scope; 0 for the shared one."""
    return 0 if scope == SHARED_SCOPE else scope.count("/")


def happened_at(record: Record) -> datetime:
    """Return when what the memory tells happened, as far as is known."""
    return record.occurred_at or record.created_at


def core_order(record: Record) -> tuple[int, str, int, str, int, str]:
    """Sort key of core: the fixed blocks, other keys by name, what has no key; shared scope first."""
    key = record.key or ""
    rank = CORE_BLOCKS.index(key) if key in CORE_BLOCKS else len(CORE_BLOCKS) + (not key)
    return rank, key, scope_depth(record.scope), record.scope, to_micros(record.created_at), record.id


def origin_order(record: Record) -> tuple[int, int]:
    """Sort key of an origin within a section (3): a person's own first, then by trust of author and of what it read."""
    return max(0, Trust.USER - record.trust), 0 if record.heard is None else 1 + Trust.OWNER - record.heard


def newest_rules(pinned: Sequence[Record], limit: int) -> frozenset[str]:
    """Return the ids of the newest permanent rules; further ones are recalled like facts."""
    rules = sorted((each.updated_at or each.created_at, each.id) for each in pinned if each.kind is Kind.RULE)
    return frozenset(name for _, name in rules[-limit:])


def pinned_order(record: Record) -> tuple[tuple[int, int], bool, int, str, int, str]:
    """Sort key of pinned: by origin; rules, the rest; within, own scope first, then oldest first."""
    return (
        origin_order(record),
        record.kind is not Kind.RULE,
        -scope_depth(record.scope),
        record.scope,
        to_micros(record.created_at),
        record.id,
    )


def state_order(record: Record) -> tuple[tuple[int, int], int, str, str, str]:
    """Sort key of state: by origin; shared scope first, then by key."""
    return origin_order(record), scope_depth(record.scope), record.scope, record.key or "", record.id


def working_order(record: Record) -> tuple[bool, int, str, int, str]:
    """Sort key of working: the task's own first, shared last; newest first within a scope."""
    renewed = to_micros(record.updated_at or record.created_at)
    return not is_task_scope(record.scope), -scope_depth(record.scope), record.scope, -renewed, record.id


#: Sort key of each section that is there whatever is asked.
SECTION_SORT_KEYS: dict[str, Callable[[Record], Any]] = {
    "core": core_order,
    "pinned": pinned_order,
    "state": state_order,
    "working": working_order,
}


def is_turn(record: Record) -> bool:
    """Whether the memory is a dated or spoken event, shown under its date."""
    told = record.session is not None or record.speaker is not None or record.occurred_at is not None
    return record.tier is Tier.EPISODIC and record.kind is not Kind.SUMMARY and told
