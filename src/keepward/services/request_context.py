"""``Engine``, an opened store with its models; ``RequestContext``, who asks it and from where; taint by reads.

An agent that reads untrusted text and then remembers it uses its own words, so the text does not show its source.
Therefore each read of low trust taints the agent's writes for ``TAINT_WINDOW``. The agent is known by its token or
name. Receipts record reads through other processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from keepward.core.memory import Record
from keepward.core.policy import Policy
from keepward.core.principals import Actor, ActorKind, Trust
from keepward.core.reducer import ChangeContext
from keepward.core.value import to_micros
from keepward.errors import Unauthorised
from keepward.ports.models import Embedder, Extractor, Redactor, Reranker, Summarizer, TokenCounter
from keepward.ports.world import BlobStore, Clock, ErasureList, IdentityDocument, IdSource
from keepward.services.index_cache import IndexCache
from keepward.services.reader import Reader
from keepward.storage.store import EventStore
from keepward.storage.writer import UnitOfWork

if TYPE_CHECKING:
    from keepward.gates.gate_types import Gate
    from keepward.services.reranker import ActiveReranker


class MaintenanceTrigger(Protocol):
    """Called after each commit with ``wrote=True``, and when a read finds missing vectors."""

    def __call__(self, *, wrote: bool) -> None: ...


class ModelCallInTransaction(Exception):
    """A model is needed for a text inside a transaction, where none may be called."""


class _ClosedRedactor:
    def find(self, text: str) -> Sequence[tuple[int, int, str]]:
        raise ModelCallInTransaction


@dataclass(slots=True)
class ReadTaint:
    """What each actor of one tenant has read lately, from this process and from receipts of others."""

    #: Time of the last read, by actor key and trust.
    last: dict[tuple[str, Trust], datetime] = field(default_factory=dict)
    #: Newest receipt that was taken into account.
    receipt_id: str = ""
    #: Writes of the tenant at that time, plus later writes of this process.
    writes: int = -1


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Engine:
    """One opened store with its models and files; shared by all handles on it."""

    store: EventStore
    #: The store's file, or the address of its database without the password.
    path: str = ""
    clock: Clock
    ids: IdSource
    embedder: Embedder | None
    counter: TokenCounter
    policy: Policy
    identity: IdentityDocument
    user_file: IdentityDocument
    indexes: IndexCache
    #: Summarises sessions and notes; None for the built-in one, which quotes and needs no model.
    summarizer: Summarizer | None = None
    #: Extracts facts from messages; None for the built-in rules, which need no model.
    extractor: Extractor | None = None
    #: Finds personal data in addition to the built-in detectors.
    redactor: Redactor | None = None
    #: Reorders the hits of a search; None for the built-in order.
    reranker: Reranker | None = None
    #: Gates of plug-ins by name; they run after the built-in content gates.
    gates: tuple[tuple[str, Gate], ...] = ()
    #: Uses not yet written, by (tenant, memory id); written with the next write or at close.
    uses: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Time of the last of these uses.
    used_at: dict[tuple[str, str], datetime] = field(default_factory=dict)
    #: What actors have read lately, by tenant.
    read_taint: dict[str, ReadTaint] = field(default_factory=dict)
    #: Cached rerankers, by tenant and commit number.
    rerankers: dict[tuple[str, int], ActiveReranker] = field(default_factory=dict)
    #: Mean vectors of requests for advice, by the embedder's id.
    advice_vectors: dict[str, Any] = field(default_factory=dict)
    #: How close models put unrelated texts, by the embedder's id.
    model_scales: dict[str, Any] = field(default_factory=dict)
    #: Records erasures outside the store; None if this machine has no configuration directory.
    erasures: ErasureList | None = None
    #: Starts maintenance.
    wake: MaintenanceTrigger = lambda *, wrote: None
    #: Blobs next to the store; None for a copy that is opened for reading only.
    blobs: BlobStore | None = None

    def count_uses(self, tenant: str, ids: Iterable[str]) -> None:
        """Count one use of each of these memories, all at the same instant."""
        keys, now = [(tenant, memory_id) for memory_id in ids], self.clock.now()
        self.uses.update(keys)
        self.used_at.update(dict.fromkeys(keys, now))

    def write_uses(self, writer: UnitOfWork) -> None:
        """Write the uses counted since the last write."""
        uses, used_at = dict(self.uses), dict(self.used_at)
        self.uses.clear()
        self.used_at.clear()
        groups: dict[tuple[str, datetime], list[str]] = {}
        for (tenant, memory_id), count in sorted(uses.items()):
            when = used_at.get((tenant, memory_id)) or self.clock.now()
            groups.setdefault((tenant, when), []).extend([memory_id] * count)
        for (tenant, when), ids in groups.items():
            writer.count_use(tenant, ids, when)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Who asks an opened store, and from where."""

    engine: Engine
    tenant: str
    scope: str
    actor: Actor
    #: Actors of the handles that this one was derived from, nearest first: it has no right that one of them lacks.
    via: tuple[Actor, ...] = ()
    #: Whether writes have the consent of the people they name; the actor has that right.
    consent: bool = False
    #: Whether a person inspects the store, in the console or by a command: then reads count as no use.
    inspects: bool = False
    #: Names of the handle's user, in addition to the name in the user's scope.
    names: tuple[str, ...] = ()
    #: The open transaction that this session reads in; None outside one.
    writer: UnitOfWork | None = None
    #: The engine's. In a transaction: its view of the store, and a redactor that refuses calls.
    store: EventStore = field(init=False, repr=False, compare=False)
    redactor: Redactor | None = field(init=False, repr=False, compare=False)
    clock: Clock = field(init=False, repr=False, compare=False)
    ids: IdSource = field(init=False, repr=False, compare=False)
    embedder: Embedder | None = field(init=False, repr=False, compare=False)
    policy: Policy = field(init=False, repr=False, compare=False)
    indexes: IndexCache = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        engine, inside = self.engine, self.writer is not None
        object.__setattr__(self, "store", self.writer if inside else engine.store)
        object.__setattr__(self, "redactor", _ClosedRedactor() if inside and engine.redactor else engine.redactor)
        object.__setattr__(self, "clock", engine.clock)
        object.__setattr__(self, "ids", engine.ids)
        object.__setattr__(self, "embedder", engine.embedder)
        object.__setattr__(self, "policy", engine.policy)
        object.__setattr__(self, "indexes", engine.indexes)

    @property
    def reader(self) -> Reader:
        """What this session may see in its tenant."""
        return Reader(self)

    @property
    def embeds_inside(self) -> bool:
        """Whether the embedder is fast enough to be called inside a transaction."""
        return getattr(self.embedder, "in_transaction", False)

    @property
    def asks_models(self) -> bool:
        """Whether a write calls a model that is too slow for a transaction."""
        return self.redactor is not None or (self.embedder is not None and not self.embeds_inside)

    @property
    def credential(self) -> dict[str, str]:
        """The token that was used, as a fact of a receipt; empty without one."""
        token = next((actor.credential for actor in (self.actor, *self.via) if actor.credential), None)
        return {} if token is None else {"credential": token}

    def change_context(self, **extra: Any) -> ChangeContext:
        """Return the context in which a change is applied now, by this actor; see ``ChangeContext`` for ``extra``."""
        return ChangeContext(now=self.clock.now(), actor=self.actor, policy=self.policy, **extra)

    def for_transaction(self, writer: UnitOfWork) -> RequestContext:
        """Return a session that reads in a transaction and calls no slow model."""
        return replace(self, writer=writer)

    def require_owner(self, what: str, right: str = "admin") -> None:
        """Require an owner with a right; for ``erase``, every actor that the handle was derived from needs it.

        Raises:
            Unauthorised: another actor asks.
        """
        if not (self.actor.is_owner and self.actor.has_right(right)):
            raise Unauthorised(f"{what} takes the owner; act as an operator, or use an owner's token")
        if right == "erase" and not all(actor.has_right("erase") for actor in self.via):
            raise Unauthorised("this token may not erase; ask the owner for one that may")


#: How long a read taints later writes.
TAINT_WINDOW = timedelta(hours=1)
_BY_LABEL = {trust.label: trust for trust in Trust}


def actor_key(actor: Actor) -> str:
    """Return what distinguishes one actor from another: its token, else its kind and name."""
    return actor.credential or actor.label


def _lowest_trust(session: RequestContext, records: Iterable[Record]) -> Trust | None:
    """Return the lowest trust of what an agent reads, if below the agent's own; else None."""
    if session.actor.kind is not ActorKind.AGENT:
        return None
    lowest = min((record.effective_trust for record in records), default=Trust.AGENT)
    return lowest if lowest < Trust.AGENT else None


def record_read(session: RequestContext, records: Iterable[Record]) -> Trust | None:
    """Record a read of an agent; return its lowest trust if that is below an agent's and newly recorded."""
    lowest = _lowest_trust(session, records) if session.policy.mark_what_was_read else None
    if lowest is None:
        return None
    last, now = session.engine.read_taint.setdefault(session.tenant, ReadTaint()).last, session.clock.now()
    key = (actor_key(session.actor), lowest)
    before = last.get(key)
    last[key] = now
    return lowest if before is None or now - before > TAINT_WINDOW / 2 else None


def taint_fields(session: RequestContext, records: Iterable[Record]) -> dict[str, str]:
    """Return the fields of a receipt about a read of low trust; none if its trust is not below an agent's."""
    lowest = _lowest_trust(session, records)
    return {} if lowest is None else {"handed": lowest.label, "to": actor_key(session.actor)}


def lowest_trust_read(session: RequestContext) -> Trust | None:
    """Return the lowest trust of what an agent has read lately, if below the agent's own; else None.

    Reads through other processes are found in their receipts, once for each state of the tenant.
    """
    if session.actor.kind is not ActorKind.AGENT or not session.policy.mark_what_was_read:
        return None
    now, actors = session.clock.now(), {actor_key(actor) for actor in (session.actor, *session.via)}
    taint = session.engine.read_taint.setdefault(session.tenant, ReadTaint())
    writes = session.store.writes(session.tenant)
    if writes != taint.writes:
        taint.writes = writes
        # Receipt ids are UUIDv7: they begin with the time in milliseconds.
        millis = to_micros(now - TAINT_WINDOW) // 1000
        first_id = f"{millis >> 16:08x}-{millis & 0xFFFF:04x}"
        for receipt in session.store.low_trust_deliveries(session.tenant, max(first_id, taint.receipt_id)):
            taint.receipt_id = max(taint.receipt_id, receipt["id"])
            trust = _BY_LABEL.get(receipt.get("handed", ""))
            if trust is not None and isinstance(receipt.get("to"), str):
                key, at = (receipt["to"], trust), datetime.fromisoformat(receipt["at"])
                taint.last[key] = max(at, taint.last.get(key, at))
    recent = (trust for (name, trust), at in taint.last.items() if name in actors and now - at <= TAINT_WINDOW)
    return min(recent, default=None)
