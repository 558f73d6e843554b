"""``Engine``, an opened store with its models; ``RequestContext``, who asks it and from where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from keepward.core.policy import Policy
from keepward.core.principals import Actor
from keepward.core.reducer import ChangeContext
from keepward.errors import Unauthorised
from keepward.ports.models import Embedder, Extractor, Redactor, Reranker, Summarizer, TokenCounter
from keepward.ports.world import BlobStore, Clock, ErasureList, IdentityDocument, IdSource, SourceReader
from keepward.services.pending_uses import PendingUses
from keepward.services.read_taint import ReadTaint
from keepward.services.search.index_cache import IndexCache
from keepward.storage.store import EventStore
from keepward.storage.writer import UnitOfWork

if TYPE_CHECKING:
    from keepward.gates.gate_types import Gate


class MaintenanceTrigger(Protocol):
    """Called after each commit with ``wrote=True``, and when a read finds missing vectors."""

    def __call__(self, *, wrote: bool) -> None: ...


class ModelCallInTransaction(Exception):
    """A model is needed for a text inside a transaction, where none may be called."""


class _ClosedRedactor:
    def find(self, text: str) -> Sequence[tuple[int, int, str]]:
        raise ModelCallInTransaction


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
    #: Uses not yet written; those of a tenant are written with its next write, or at close.
    uses: PendingUses = field(default_factory=PendingUses)
    #: What actors have read lately, by tenant.
    _read_taint: dict[str, ReadTaint] = field(default_factory=dict)
    #: Cached rerankers by tenant, each after the stored results that it is of.
    rerankers: dict[str, tuple[str, Any]] = field(default_factory=dict)
    #: Mean vectors of requests for advice, by the embedder's id.
    advice_vectors: dict[str, Any] = field(default_factory=dict)
    #: How close models put unrelated texts, by the embedder's id.
    model_scales: dict[str, Any] = field(default_factory=dict)
    #: States of branches by tenant and scope, each after the head that it was read at; see ``branch_state``.
    branches: dict[tuple[str, str], Any] = field(default_factory=dict)
    #: Records erasures outside the store; None if this machine has no configuration directory.
    erasures: ErasureList | None = None
    #: Starts maintenance.
    wake: MaintenanceTrigger = lambda *, wrote: None
    #: Reads cited files and git objects; None for a store that reads none.
    sources: SourceReader | None = None
    #: Blobs next to the store; None for a copy that is opened for reading only.
    blobs: BlobStore | None = None

    def taint_of(self, tenant: str) -> ReadTaint:
        """Return what the actors of a tenant have read lately."""
        return self._read_taint.get(tenant) or self._read_taint.setdefault(tenant, ReadTaint())


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
    #: Scope of the actor's token, read when this call began; None before that, or without a token.
    token_scope: str | None = None
    #: The open transaction that this context reads in; None outside one.
    writer: UnitOfWork | None = None
    #: The state of the branch of its scope, once it was read; see ``branch_state``.
    branch_states: list[Any] = field(init=False, repr=False, compare=False, default_factory=list)
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
        """Return a context that reads in a transaction and calls no slow model."""
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
