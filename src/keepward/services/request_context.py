"""``Engine``, an opened store with its models; ``Session``, who asks it, and from where; what agents were handed.

Invariants
(1) An agent that read a page and then remembers it says so in its own words, and nothing in the text tells where it
    came from. What it was handed does, for ``TAINT_WINDOW``, known by its token or name; what other processes handed it
    stands in their receipts.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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

_log = logging.getLogger(__name__)


class MaintenanceTrigger(Protocol):
    """Called after each commit, with ``wrote``, and where a read finds that vectors are missing."""

    def __call__(self, *, wrote: bool) -> None: ...


class ModelCallInTransaction(Exception):
    """A model has to be asked about a text, and inside of a transaction none is."""


class _ClosedRedactor:
    def find(self, text: str) -> Sequence[tuple[int, int, str]]:
        raise ModelCallInTransaction


@dataclass(slots=True)
class ReadTaint:
    """What principals of one tenant were handed, and up to which id the receipts of other processes were read."""

    last: dict[tuple[str, Trust], datetime] = field(default_factory=dict)
    read: str = ""
    #: Transactions of the tenant when they were read, those of this process since then left out.
    writes: int = -1


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Engine:
    """One opened store with everything around it; shared by all handles on it."""

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
    #: Sums up sessions and notes; None for the built-in one, which quotes and needs no model.
    summarizer: Summarizer | None = None
    #: Finds the facts of a talk; None for the built-in rules, which need no model.
    extractor: Extractor | None = None
    #: Finds personal data beside the built-in detectors; None for these alone.
    redactor: Redactor | None = None
    #: Puts what a search found in another order; None for the built-in order.
    reranker: Reranker | None = None
    #: Gates of plug-ins by name, which are asked after the built-in gates on content.
    gates: tuple[tuple[str, Gate], ...] = ()
    #: Uses not yet written, by (tenant, memory id); written with the next write or at close.
    uses: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: When each of them was last used.
    used_at: dict[tuple[str, str], datetime] = field(default_factory=dict)
    #: What agents were handed lately, by tenant; see ``handed``.
    handed: dict[str, ReadTaint] = field(default_factory=dict)
    #: Rerankers at a few commits, by tenant and commit number.
    rerankers: dict[tuple[str, int], ActiveReranker] = field(default_factory=dict)
    #: Remembers erasures outside of the store; None where this machine has no place for it.
    erasures: ErasureList | None = None
    #: Wakes maintenance.
    wake: MaintenanceTrigger = lambda *, wrote: None
    #: Bytes beside the store; None for a copy that is only looked into.
    blobs: BlobStore | None = None

    def record_outside_store(self, what: str, entry: Mapping[str, Any]) -> bool:
        """Note outside of the store what holds whatever an older copy of it says; return whether that was possible."""
        try:
            if self.erasures is not None:
                self.erasures.add([entry])
                return True
        except OSError as fault:
            _log.warning("%s could not be listed outside the store: %s", what, fault, extra={"action": "not_listed"})
        return False

    def count_uses(self, tenant: str, ids: Iterable[str]) -> None:
        """Count that memories were handed out together, at one instant: they are written together as well."""
        keys, now = [(tenant, each) for each in ids], self.clock.now()
        self.uses.update(keys)
        self.used_at.update(dict.fromkeys(keys, now))

    def write_uses(self, writer: UnitOfWork) -> None:
        """Write the uses counted since the last write."""
        taken, at = dict(self.uses), dict(self.used_at)
        self.uses.clear()
        self.used_at.clear()
        groups: dict[tuple[str, datetime], list[str]] = {}
        for (tenant, memory_id), count in sorted(taken.items()):
            when = at.get((tenant, memory_id)) or self.clock.now()
            groups.setdefault((tenant, when), []).extend([memory_id] * count)
        for (tenant, when), ids in groups.items():
            writer.count_use(tenant, ids, when)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """On whose behalf, and from where, something is asked of an opened store."""

    engine: Engine
    tenant: str
    scope: str
    actor: Actor
    #: Whose handles this one was derived from, nearest first: what they may not do, it may not either.
    via: tuple[Actor, ...] = ()
    #: Whether all that is written is written with the consent of whom it names; the actor has that right.
    consent: bool = False
    #: Whether a person inspects the store, in the console or by a command: nothing that is read counts as use.
    inspects: bool = False
    #: What its user is called, besides the name of the user's scope.
    names: tuple[str, ...] = ()
    #: The open transaction that this session reads in; None outside of one.
    writer: UnitOfWork | None = None
    #: The engine's, where there is a transaction, its view of the store, and a redactor that refuses to be asked.
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
        """What this session may see of its tenant."""
        return Reader(self)

    @property
    def embeds_inside(self) -> bool:
        """Whether the embedder is quick enough to be asked inside of a transaction."""
        return getattr(self.embedder, "in_transaction", False)

    @property
    def asks_models(self) -> bool:
        """Whether a write asks a model that no transaction may wait for."""
        return self.redactor is not None or (self.embedder is not None and not self.embeds_inside)

    @property
    def credential(self) -> dict[str, str]:
        """The token that was used, as a fact of a receipt; empty for a handle opened in this process."""
        token = next((each.credential for each in (self.actor, *self.via) if each.credential), None)
        return {} if token is None else {"credential": token}

    def frame(self, **more: Any) -> ChangeContext:
        """Return what a change is folded in: now, as this actor, by the policy; ``more`` is as ``Frame`` has it."""
        return ChangeContext(now=self.clock.now(), actor=self.actor, policy=self.policy, **more)

    def for_transaction(self, writer: UnitOfWork) -> RequestContext:
        """Return the session of a transaction: what it reads is what that transaction sees, and no model is asked."""
        return replace(self, writer=writer)

    def owner(self, what: str, right: str = "admin") -> None:
        """See that an owner asks; to erase, everybody behind the handle has to have the right.

        Raises:
            Unauthorised: it is somebody else.
        """
        if not (self.actor.is_owner and self.actor.has_right(right)):
            raise Unauthorised(f"{what} takes the owner; act as an operator, or use an owner's token")
        if right == "erase" and not all(actor.has_right("erase") for actor in self.via):
            raise Unauthorised("this token may not erase; ask the owner for one that may")


#: How long what was handed counts.
TAINT_WINDOW = timedelta(hours=1)
_BY_LABEL = {each.label: each for each in Trust}


def actor_key(actor: Actor) -> str:
    """Return what tells one bearer from another: its token, else its kind and name."""
    return actor.credential or actor.label


def _lowest_trust(session: RequestContext, records: Iterable[Record]) -> Trust | None:
    """Return the least trust of what an agent is handed, where that is below its own; None otherwise."""
    if session.actor.kind is not ActorKind.AGENT:
        return None
    least = min((record.effective_trust for record in records), default=Trust.AGENT)
    return least if least < Trust.AGENT else None


def record_read(session: RequestContext, records: Iterable[Record]) -> Trust | None:
    """Note what is handed to an agent; return its least trust where that is below an agent's and is news."""
    least = _lowest_trust(session, records) if session.policy.mark_what_was_read else None
    if least is None:
        return None
    last, now = session.engine.handed.setdefault(session.tenant, ReadTaint()).last, session.clock.now()
    key = (actor_key(session.actor), least)
    before = last.get(key)
    last[key] = now
    return least if before is None or now - before > TAINT_WINDOW / 2 else None


def taint_fields(session: RequestContext, records: Iterable[Record]) -> dict[str, str]:
    """Return what a receipt says of what was handed: nothing, where none of it is below an agent's trust."""
    least = _lowest_trust(session, records)
    return {} if least is None else {"handed": least.label, "to": actor_key(session.actor)}


def lowest_trust_read(session: RequestContext) -> Trust | None:
    """Return the least trust of what an agent was handed lately, where that is below its own; None otherwise.

    What other processes handed it is read from their receipts, once for each state of the tenant.
    """
    if session.actor.kind is not ActorKind.AGENT or not session.policy.mark_what_was_read:
        return None
    now, mine = session.clock.now(), {actor_key(each) for each in (session.actor, *session.via)}
    of = session.engine.handed.setdefault(session.tenant, ReadTaint())
    writes = session.store.writes(session.tenant)
    if writes != of.writes:
        of.writes = writes
        millis = to_micros(now - TAINT_WINDOW) // 1000
        begin = f"{millis >> 16:08x}-{millis & 0xFFFF:04x}"
        for receipt in session.store.low_trust_deliveries(session.tenant, max(begin, of.read)):
            of.read = max(of.read, receipt["id"])
            trust = _BY_LABEL.get(receipt.get("handed", ""))
            if trust is not None and isinstance(receipt.get("to"), str):
                key, at = (receipt["to"], trust), datetime.fromisoformat(receipt["at"])
                of.last[key] = max(at, of.last.get(key, at))
    return min(
        (trust for (name, trust), at in of.last.items() if name in mine and now - at <= TAINT_WINDOW), default=None
    )
