"""Policy: governance as data. Every number and switch here is read by code.

Invariants
(1) A policy is immutable and has a version, the hash of what it governs; receipts name it.
(2) A policy can tighten or loosen; it can never let a proposer approve itself.
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
from keepward.core.memory import CORE_BLOCKS, Access, Kind, Tier
from keepward.core.principals import Actor, Trust, parse_scope
from keepward.core.value import Data, unknown_name_message
from keepward.errors import InvalidInput

#: Where work is done, which governs nothing: receipts say it by themselves.
_DEPLOYMENT_FIELDS = frozenset({"candidates", "process_limit"})
#: Tables in which every name is looked for: what is left out is as usual.
_COMPLETED_TABLES = frozenset({"text_limit", "access", "least_trust"})


def _frozen(**values: Any) -> Any:
    return field(default_factory=lambda: MappingProxyType(dict(values)))


class EthicsRule(Data):
    """A rule of the owner's own: texts that match a pattern are held or refused."""

    name: str
    #: RE2 pattern, matched anywhere, without regard to case.
    pattern: str
    action: Literal["quarantine", "refuse"] = "quarantine"
    #: Tiers it applies to; empty means all.
    tiers: tuple[Tier, ...] = ()


class Policy(Data, dict=True):
    """All limits, floors, budgets and permissions of one store."""

    #: Off: nothing is written, every context is empty, the host runs on.
    enabled: bool = True
    #: Off: writes are refused with a reason, reads work.
    capture: bool = True
    #: Off: recall and compile return nothing and say so.
    recall: bool = True

    #: On: the owner's edits of core, of lasting knowledge and of rules wait as an agent's do, and whoever proposed
    #: does not approve. Off: what the owner's credential does is decided by that.
    four_eyes: bool = False

    #: Longest text per tier, in characters.
    text_limit: Mapping[Tier, int] = _frozen(**dict.fromkeys(Tier, 1200))
    #: Longest metadata, in characters of JSON: of a memory whose content is structured it is the content.
    metadata_limit: int = 8_192
    structured_limit: int = 262_144
    #: Scopes that may be written; empty means every well-formed path.
    scopes: tuple[str, ...] = ()

    #: Time to live given where the writer states none: by kind, for volatile memories.
    ttl_by_kind: Mapping[Kind, timedelta] = _frozen(**{Kind.EVENT: timedelta(days=30), Kind.SUMMARY: timedelta(days=7)})
    #: The same for other volatile memories, and for the working tier.
    ttl_volatile: timedelta = timedelta(days=30)
    ttl_working: timedelta = timedelta(hours=24)
    #: How long a draft or proposal waits before it is rejected by expiry.
    review_ttl: timedelta = timedelta(days=30)
    #: Most proposals of one agent or user that may wait at once; a further one is refused.
    pending_limit: int = 100
    #: How long what was proposed is kept once that is decided or past its term; its digest stays.
    review_keep: timedelta = timedelta(days=30)

    #: Least confidence a tier accepts, 0..1.
    confidence_floor: Mapping[Tier, float] = _frozen(
        **{Tier.CORE: 0.8, Tier.ARCHIVAL: 0.3, Tier.EPISODIC: 0.0, Tier.WORKING: 0.0}
    )
    #: Least confidence of a rule, 0..1; a rule also needs evidence. The owner's word needs neither.
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
    #: The same for named core blocks; stricter than the tier wins, and so does the block's own.
    block_access: Mapping[str, Access] = _frozen(persona=Access.READ_ONLY)
    #: Core keys that may be proposed; a key outside is refused.
    core_keys: tuple[str, ...] = CORE_BLOCKS

    #: Most live memories per tier of a tenant; core is bounded by its token budgets instead.
    capacity: Mapping[Tier, int] = _frozen(
        **{Tier.WORKING: 1_000_000, Tier.EPISODIC: 1_000_000, Tier.ARCHIVAL: 1_000_000}
    )
    #: What a full tier does when an agent writes: archive the least useful, or refuse. People always write.
    when_full: Literal["archive", "refuse"] = "archive"

    #: Share (0..1) of shared words from which another fact is named as similar.
    duplicate_overlap: float = 0.60
    #: Share (0..1) of shared letters in order from which another fact is named as similar, and from which a text that
    #: differs only in words such as "the" is a duplicate.
    similarity_threshold: float = 0.70

    #: Token budget of each core block.
    block_budget: Mapping[str, int] = _frozen(
        persona=500, human=400, operating_rules=400, mission=300, workspace_state=300
    )
    #: Most tokens of the pinned and state sections, of working memory, and of recalled memories in any context.
    pinned_budget: int = 4_000
    working_budget: int = 4_000
    retrieved_budget: int = 16_000
    #: Most tokens of working and recalled memories together, and most recalled lines, where no budget is named.
    context_budget: int = 2_000
    max_items: int = 30

    #: Where candidates of recall come from: an index in the process, or PostgreSQL's own, once it has made one. `auto`:
    #: that of the database for tenants with more memories than the limit.
    candidates: Literal["auto", "process", "database"] = "auto"
    #: Most active memories of a tenant whose index is held in the process under `candidates = "auto"`.
    process_limit: int = 200_000

    #: Least trust each purpose accepts.
    least_trust: Mapping[str, Trust] = _frozen(answer=Trust.UNKNOWN, act=Trust.AGENT, core=Trust.USER)

    #: Whether what an agent writes within an hour of being handed something of lower trust is marked with that, and
    #: counts as that for the purposes `act` and `core`.
    mark_what_was_read: bool = True

    #: Share (0..1) of what one training of the reranker learns from that feedback of agents and other programs may make
    #: up beside that of people, who alone decide whether it serves; 0 leaves agents out, 1 makes no difference.
    agent_feedback_share: float = 0.25

    #: When each job runs: a distance such as `1h`, a time of day in UTC such as `03:00`, or `off`.
    jobs: Mapping[str, str] = _frozen(**SCHEDULES)
    #: Share (0..1) of the live memories that a job may put away in one run; beyond it, it asks.
    removal_share: float = 0.10
    #: Kinds and tiers of which a memory is archived that nobody used or confirmed for long; others are kept, however
    #: old they are.
    archive_unused: tuple[str, ...] = ("event", "working")
    #: Shares of confidence and importance, as faded by now, below both of which such a memory is archived.
    fade_confidence: float = 0.10
    fade_importance: float = 0.25
    #: Passing events of one session that are summed up: the least there must be, and the most at once.
    summary_least: int = 5
    summary_most: int = 10
    #: Working notes of one thread that are kept as they are; where there are more, the oldest are summed up.
    thread_length: int = 20
    #: Passing memories that are merged: their age, the least there must be, and the most in one.
    merge_after: timedelta = timedelta(days=7)
    merge_least: int = 3
    merge_most: int = 5
    #: Age from which receipts of contexts are reduced to what a replay needs.
    compact_receipts_after: timedelta = timedelta(days=90)
    #: Closeness in meaning, 0..1, that memories which state the same need to be merged.
    merge_cosine: float = 0.95

    #: Rules of the owner's own.
    memory_ethics: tuple[EthicsRule, ...] = ()

    def may_self_approve(self, actor: Actor) -> bool:
        """Whether what this principal asks for needs nobody else's decision."""
        return actor.is_owner and not self.four_eyes

    def __post_init__(self) -> None:
        self._check_types()
        for name, text in self.jobs.items():
            if name not in SCHEDULES:
                raise InvalidInput(f"policy.jobs: {unknown_name_message('job', name, SCHEDULES)}")
            try:
                parse_schedule(text)
            except InvalidInput as fault:
                raise InvalidInput(f"policy.jobs.{name}: {fault}") from fault
        for scope in self.scopes:
            parse_scope(scope)
        if not 0.0 <= self.agent_feedback_share <= 1.0:
            raise InvalidInput("policy.agent_feedback_share is a share, from 0 to 1")

    def _check_types(self) -> None:
        """Convert each value to the type of its field; fill the tables in ``_COMPLETED_TABLES`` with defaults.

        Raises:
            InvalidInput: a field has a value of another type.
        """
        for each in _fields():
            value = getattr(self, each.name)
            usual: Any = each.default_factory() if callable(each.default_factory) else each.default
            if value == usual and type(value) is type(usual):
                continue
            try:
                value = msgspec.convert(value, each.type)
                numbers = value.values() if isinstance(value, dict) else (value,)
                if any(isinstance(number, int | float) and not number >= 0 for number in numbers):
                    raise ValueError("a number below 0")
            except ValueError as exc:
                raise InvalidInput(
                    f"policy.{each.name} takes {Policy.__annotations__[each.name]}, and no number below 0"
                ) from exc
            if isinstance(value, dict):
                value = MappingProxyType({**usual, **value} if each.name in _COMPLETED_TABLES else value)
            force_setattr(self, each.name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping that cannot be changed cannot be copied or pickled either.
        given = asdict(self)
        plain: dict[str, Any] = {
            name: dict(value) if isinstance(value, MappingProxyType) else value for name, value in given.items()
        }
        return partial(Policy, **plain), ()

    @cached_property
    def version(self) -> str:
        """The first 16 hex digits of the SHA-256 of the policy's canonical JSON, but for ``_DEPLOYMENT_FIELDS``."""
        governing = {name: value for name, value in self.as_dict().items() if name not in _DEPLOYMENT_FIELDS}
        text = json.dumps(governing, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """Return the policy as plain JSON values, durations in seconds, keys as in a settings file."""
        from keepward.core.results import to_plain

        found: dict[str, Any] = to_plain(self)
        return found


@cache
def _fields() -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(Policy)


#: Strictest first; the strictest of tier, block and memory decides.
STRICTNESS = (Access.READ_ONLY, Access.APPROVAL, Access.APPEND, Access.READ_WRITE)


def access_for(policy: Policy, tier: Tier, key: str | None, own: Access | None) -> Access:
    """Return the strictest of the tier's access, the named core block's and the memory's own."""
    candidates = [policy.access[tier]]
    if tier is Tier.CORE and key is not None and key in policy.block_access:
        candidates.append(policy.block_access[key])
    if own is not None:
        candidates.append(own)
    return min(candidates, key=STRICTNESS.index)
