"""Policy: governance as data.

* A policy is immutable. Its version is the hash of what it governs; receipts contain it.
* No policy lets a proposer approve itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from functools import cache, cached_property, partial
from types import MappingProxyType
from typing import Any, Literal

import msgspec
from msgspec import field
from msgspec.structs import FieldInfo, asdict, force_setattr

from keepward.core.job import SCHEDULES, parse_schedule
from keepward.core.json_form import MAX_SAFE_INTEGER, to_json
from keepward.core.memory import CORE_BLOCKS, Access, Kind, Tier
from keepward.core.principals import Actor, Trust, parse_scope
from keepward.core.query import PURPOSES
from keepward.core.value import MAX_DURATION, Data, one_of, unknown_name_message
from keepward.errors import InvalidInput

#: Fields about deployment, not governance; receipts record them separately.
_DEPLOYMENT_FIELDS = frozenset({"candidates", "process_limit", "evidence_roots"})
#: Tables whose missing names get the defaults.
_COMPLETED_TABLES = frozenset({"text_limit", "access", "least_trust"})


def _frozen(**values: Any) -> Any:
    return field(default_factory=lambda: MappingProxyType(dict(values)))


class EthicsRule(Data):
    """The owner's own rule: texts that match a pattern are quarantined or refused."""

    name: str
    #: RE2 pattern, matched anywhere, without regard to case.
    pattern: str
    action: Literal["quarantine", "refuse"] = "quarantine"
    #: Tiers it applies to; empty means all.
    tiers: tuple[Tier, ...] = ()


class Policy(Data, dict=True):
    """All limits, thresholds, budgets and permissions of a store."""

    #: Off: nothing is written, and every context is empty.
    enabled: bool = True
    #: Off: writes are refused with a reason, reads work.
    capture: bool = True
    #: Off: recall and contexts return nothing and say so.
    recall: bool = True

    #: On: the owner's edits of core, permanent memories and rules need a review, and the proposer cannot approve them.
    #: Off: the owner's edits need no review.
    four_eyes: bool = False

    #: Longest text per tier, in characters.
    text_limit: Mapping[Tier, int] = _frozen(**dict.fromkeys(Tier, 1200))
    #: Longest metadata, in characters of JSON; the second limit applies to structured content.
    metadata_limit: int = 8_192
    structured_limit: int = 262_144
    #: Scopes that may be written; empty means every well-formed path.
    scopes: tuple[str, ...] = ()

    #: Default time to live of volatile memories, by kind.
    ttl_by_kind: Mapping[Kind, timedelta] = _frozen(**{Kind.EVENT: timedelta(days=30), Kind.SUMMARY: timedelta(days=7)})
    #: Default time to live of other volatile memories, and of the working tier.
    ttl_volatile: timedelta = timedelta(days=30)
    ttl_working: timedelta = timedelta(hours=24)
    #: Time after which a pending proposal expires.
    review_ttl: timedelta = timedelta(days=30)
    #: Maximum number of pending proposals of one agent or user; a further one is refused.
    pending_limit: int = 100
    #: How long the content of a decided or expired proposal is stored; its digest stays.
    review_keep: timedelta = timedelta(days=30)

    #: Minimum confidence of a memory, 0..1, by tier.
    confidence_floor: Mapping[Tier, float] = _frozen(
        **{Tier.CORE: 0.8, Tier.ARCHIVAL: 0.3, Tier.EPISODIC: 0.0, Tier.WORKING: 0.0}
    )
    #: Minimum confidence of a rule, 0..1; a rule also needs evidence. Neither applies to the owner.
    rule_floor: float = 0.8

    #: Who may change what, by tier.
    access: Mapping[Tier, Access] = _frozen(
        **{
            Tier.CORE: Access.APPROVAL,
            Tier.WORKING: Access.READ_WRITE,
            Tier.EPISODIC: Access.APPEND,
            Tier.ARCHIVAL: Access.READ_WRITE,
        }
    )
    #: Who may change core blocks, by key. The strictest of tier, block and memory applies.
    block_access: Mapping[str, Access] = _frozen(persona=Access.READ_ONLY)
    #: Core keys that may be proposed; other keys are refused.
    core_keys: tuple[str, ...] = CORE_BLOCKS

    #: Maximum number of active memories of a tenant, by tier. Core is limited by its token budgets.
    capacity: Mapping[Tier, int] = _frozen(
        **{Tier.WORKING: 1_000_000, Tier.EPISODIC: 1_000_000, Tier.ARCHIVAL: 1_000_000}
    )
    #: What a full tier does when an agent writes: archive the least useful memory, or refuse. People can always write.
    when_full: Literal["archive", "refuse"] = "archive"

    #: Minimum share (0..1) of common words for a similar fact.
    duplicate_overlap: float = 0.60
    #: Minimum share (0..1) of common letters in order for a similar fact, and for a duplicate that differs only in
    #: words such as "the".
    similarity_threshold: float = 0.70

    #: Token budget of each core block.
    block_budget: Mapping[str, int] = _frozen(
        persona=500, human=400, operating_rules=400, mission=300, workspace_state=300
    )
    #: Maximum tokens in a context: pinned and state sections, working memory, recalled memories.
    pinned_budget: int = 4_000
    working_budget: int = 4_000
    retrieved_budget: int = 16_000
    #: Maximum tokens of working and recalled memories together, without a requested budget.
    context_budget: int = 2_000
    #: Maximum recalled lines of a context. None: 30 without a requested budget, and as many as fit with one.
    max_items: int | None = None

    #: Index for the candidates of recall: in the process, or in PostgreSQL once it is built. `auto`: in the database
    #: for tenants with more memories than the limit.
    candidates: Literal["auto", "process", "database"] = "auto"
    #: Maximum number of active memories of a tenant for an index in the process under `candidates = "auto"`.
    process_limit: int = 200_000

    #: Minimum trust, by purpose.
    least_trust: Mapping[str, Trust] = _frozen(answer=Trust.UNKNOWN, act=Trust.AGENT, core=Trust.USER)

    #: Folders below which cited files and git repositories are read, as absolute paths; none by default.
    evidence_roots: tuple[str, ...] = ()

    #: Whether an agent's write is tainted by what it read with lower trust in the hour before. For the purposes `act`
    #: and `core`, it counts with that lower trust.
    mark_what_was_read: bool = True

    #: Maximum share (0..1) of agents' feedback in the training of the reranker. Only people's feedback decides whether
    #: the weights are used. 0 excludes agents, 1 sets no limit.
    agent_feedback_share: float = 0.25

    #: When each job runs: an interval such as `1h`, a time of day in UTC such as `03:00`, or `off`.
    jobs: Mapping[str, str] = _frozen(**SCHEDULES)
    #: Maximum share (0..1) of the active memories that a job may archive in one run; for more it makes a proposal.
    removal_share: float = 0.10
    #: Kinds and tiers whose memories are archived when long unused and unconfirmed; others are never archived for their
    #: age.
    archive_unused: tuple[str, ...] = ("event", "working")
    #: Such a memory is archived when both decayed confidence and decayed importance are below these values.
    fade_confidence: float = 0.10
    fade_importance: float = 0.25
    #: Age from which `prune` archives a fact that was never used nor confirmed, and whose decayed importance is below
    #: `fade_importance`. None: never. For the owner's facts it asks.
    archive_facts_after: timedelta | None = None
    #: Events of one session in a summary: minimum and maximum.
    summary_least: int = 5
    summary_most: int = 10
    #: On: a session's events are archived once a model has summarized them. Off: they stay.
    archive_summarized: bool = False
    #: Working notes of a session that stay as they are; beyond that, the oldest are summarized.
    thread_length: int = 20
    #: Volatile memories that are merged: minimum age, minimum and maximum number.
    merge_after: timedelta = timedelta(days=7)
    merge_least: int = 3
    merge_most: int = 5
    #: Age from which receipts of contexts are reduced to what a replay needs.
    compact_receipts_after: timedelta = timedelta(days=90)
    #: Minimum cosine, 0..1, of memories that say the same and are merged.
    merge_cosine: float = 0.95

    #: Rules of the owner's own.
    memory_ethics: tuple[EthicsRule, ...] = ()

    def may_self_approve(self, actor: Actor) -> bool:
        """Whether writes of this actor need no other actor's decision."""
        return actor.is_owner and not self.four_eyes

    def __post_init__(self) -> None:
        self._check_types()
        for name, text in self.jobs.items():
            if name not in SCHEDULES:
                raise InvalidInput(f"policy.jobs: {unknown_name_message('job', name, SCHEDULES)}")
            try:
                parse_schedule(text)
            except InvalidInput as exc:
                raise InvalidInput(f"policy.jobs.{name}: {exc}") from exc
        for scope in self.scopes:
            parse_scope(scope)
        for root in self.evidence_roots:
            if not root.startswith(("/", "~", "\\\\")) and root[1:3] not in {":\\", ":/"}:
                raise InvalidInput("policy.evidence_roots are absolute paths of folders, such as /srv/app")
        for name in self.least_trust:
            one_of("purpose in policy.least_trust", name, PURPOSES)
        for name in self.archive_unused:
            one_of("name in policy.archive_unused", name, (*Kind, *Tier))
        for key in (*self.core_keys, *self.block_access, *self.block_budget):
            if not key.strip() or not key.isprintable():
                raise InvalidInput("a key in policy.core_keys, block_access or block_budget is one line of text")

    def _check_types(self) -> None:
        """Convert each value to the type of its field; fill the tables in ``_COMPLETED_TABLES`` with defaults.

        Raises:
            InvalidInput: a field has a value of another type.
        """
        for field_info in _fields():
            value = getattr(self, field_info.name)
            usual: Any = field_info.default_factory() if callable(field_info.default_factory) else field_info.default
            if value == usual and type(value) is type(usual):
                continue
            try:
                value = msgspec.convert(value, field_info.type)
                if not all(map(_is_in_range, value.values() if isinstance(value, dict) else (value,))):
                    raise ValueError("out of range")
            except (ValueError, OverflowError) as exc:
                raise InvalidInput(
                    f"policy.{field_info.name} takes {Policy.__annotations__[field_info.name]}, and no number below 0, "
                    "no share above 1 and no time above a hundred years"
                ) from exc
            if isinstance(value, dict):
                value = MappingProxyType({**usual, **value} if field_info.name in _COMPLETED_TABLES else value)
            force_setattr(self, field_info.name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be copied or pickled.
        fields = asdict(self)
        plain: dict[str, Any] = {
            name: dict(value) if isinstance(value, MappingProxyType) else value for name, value in fields.items()
        }
        return partial(Policy, **plain), ()

    @cached_property
    def version(self) -> str:
        """The first 16 hex digits of the SHA-256 of the policy's canonical JSON, without ``_DEPLOYMENT_FIELDS``."""
        governing = {name: value for name, value in self.as_dict().items() if name not in _DEPLOYMENT_FIELDS}
        text = json.dumps(governing, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """Return the policy as JSON values: durations in seconds, keys as in a settings file."""
        return {name: plain_setting(value) for name, value in asdict(self).items()}


def plain_setting(value: Any) -> Any:
    """Return the value of a setting as JSON values; a duration is seconds."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {str(to_json(name)): plain_setting(item) for name, item in value.items()}
    return to_json(value)


def _is_in_range(value: Any) -> bool:
    """Whether a value of a field is no number, or one that the field takes; see ``_check_types``."""
    if isinstance(value, timedelta):
        return timedelta(0) <= value <= MAX_DURATION
    most = 1 if isinstance(value, float) else MAX_SAFE_INTEGER
    return not isinstance(value, int | float) or 0 <= value <= most


@cache
def _fields() -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(Policy)


#: Strictest first.
STRICTNESS = (Access.READ_ONLY, Access.APPROVAL, Access.APPEND, Access.READ_WRITE)


def access_for(policy: Policy, tier: Tier, key: str | None, own: Access | None) -> Access:
    """Return the strictest access of the tier, the named core block, and the memory."""
    candidates = [policy.access[tier]]
    if tier is Tier.CORE and key is not None and key in policy.block_access:
        candidates.append(policy.block_access[key])
    if own is not None:
        candidates.append(own)
    return min(candidates, key=STRICTNESS.index)
