"""``Memory``: a handle on an open store, with every operation.

Handles on the same store share its connection, models and policy. Each has its own actor, tenant and scope.

* Rights come from how a handle was opened. Only an owner's handle returns handles of other actors, with fewer
  rights. The handle of an agent, user or reviewer cannot become another actor.
* The handle of an agent without a token may return handles of other agents. What those agents read taints later
  writes of the first agent too.
* The handle of a token stays in its tenant, and at its scope or below. An owner's token reaches everything. Each
  call checks that the token is still valid, also on derived handles.

Late imports: a program that does not need it starts faster.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from msgspec.structs import replace

from keepward.core.policy import Policy
from keepward.core.principals import (
    GRANTABLE_RIGHTS,
    ROLE_RIGHTS,
    SHARED_SCOPE,
    Actor,
    ActorKind,
    branch_of,
    branch_scope,
    main_scope,
    may_act_as,
    parse_branch,
)
from keepward.draft import Draft
from keepward.errors import InvalidInput, KeepwardError, StoreUnavailable, Unauthorised
from keepward.handles import LocalHandle
from keepward.operations import Operation, UnknownParameter, split_arguments
from keepward.services.access import context_at
from keepward.services.arguments import DEFAULT, scope_for, valid_scope, valid_tenant
from keepward.services.reading.visible import VisibleReader
from keepward.settings import default_store, maintenance_enabled, make_data_folder
from keepward.tools import Tools

if TYPE_CHECKING:
    from typing import Self

    from keepward.core.commit import Commit, Event, Head
    from keepward.core.copies import Backup, MigrationResult, RecoveryResult, Restored
    from keepward.core.proposal import Proposal, ProposedStep
    from keepward.core.value import Duration
    from keepward.gates.gate_types import Gate
    from keepward.jobs.maintenance import DeferredMaintenance, Maintenance
    from keepward.ports.models import Embedder, Extractor, Redactor, Reranker, Summarizer, TokenCounter
    from keepward.ports.world import Clock, IdSource
    from keepward.services.request_context import Engine, RequestContext
    from keepward.shadow import Shadow
    from keepward.storage.server_state import SharedState

_log = logging.getLogger(__name__)
_ACTOR = "an actor is, for example, Actor.user('ana') or Actor.operator('ana')"

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True)
class OpenStore:
    """What all handles on one open store share."""

    engine: Engine
    #: Folder of keys and tokens; None means the default folder.
    config_dir: Path | None = None
    closed: bool = False
    #: Runs due jobs; None if switched off.
    maintenance: Maintenance | DeferredMaintenance | None = None

    def require_open(self) -> Engine:
        """Return the engine; raise InvalidInput if the store is closed."""
        if self.closed:
            raise InvalidInput("the store is closed; open it again")
        return self.engine


class Memory(LocalHandle, Tools):
    """A handle on a store of memories."""

    def __new__(cls, *given: Any, **_: Any) -> Self:
        """Refuse a call without an open store, as ``Memory()`` opens one in other systems."""
        if not given or not isinstance(given[0], OpenStore):
            raise UnknownParameter(f'a store is opened by name: {cls.__name__}.open("memory.db")')
        return super().__new__(cls)

    def __init__(self, shared: OpenStore, context: RequestContext) -> None:
        self._shared, self._unconfirmed = shared, context

    @classmethod
    def open(
        cls,
        url: str | Path | None = None,
        *,
        tenant: str | None = None,
        scope: str | None = None,
        actor: Actor | None = None,
        token: str | None = None,
        policy: Policy | None = None,
        embedder: str | Embedder | None = "auto",
        embedder_prefixes: str = "auto",
        embedder_timeout: Duration = "5s",
        counter: str | TokenCounter = "estimate",
        summarizer: Summarizer | None = None,
        extractor: str | Extractor | None = None,
        redactor: str | Redactor | None = None,
        reranker: str | Reranker | None = None,
        gates: str | Mapping[str, Gate] | None = None,
        identity: str | Path | None = None,
        user_file: str | Path | None = None,
        create: bool = True,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        config_dir: Path | None = None,
        maintenance: bool | Callable[[], None] | None = None,
        consent: bool = False,
    ) -> Memory:
        """Open a store. A missing file is created; its folder must exist.

        Without ``url``, this opens the user's store in the data folder (``KEEPWARD_DATA``, or that of the platform). If
        the working folder has a ``keepward.db`` that this machine trusts, that file is opened instead.

        Without ``actor``, the handle is an agent's. An agent reads and proposes; its writes to core memory need a
        review. ``actor=Actor.operator(...)`` opens the store as its owner; no handle gains these rights later. A
        ``token`` determines actor, tenant and scope, and the store must exist.

        ``identity`` and ``user_file`` are text files outside the store, read for each compiled context, never written.

        * ``embedder_prefixes``: what a named model needs in front of queries and documents; see docs/howto/model.md.
        * ``embedder_timeout``: how long a query waits for a server of embeddings; then words find memories.
        * ``summarizer``: a model that summarizes in jobs. Without one, jobs quote.
        * ``extractor``: a model that finds further facts for ``add``. A chat server's model is
          ``https://host/v1#model``, with ``KEEPWARD_EXTRACTOR_KEY``.
        * ``redactor``: finds texts, such as names, that markers replace before storage, in addition to the built-in
          detectors.
        * ``reranker``: orders the results of a search.
        * ``gates``: check writes in addition to the built-in gates.

        A text names a plug-in; see docs/howto/plugins.md.

        ``consent=True`` says that the people concerned agreed to everything written here. Their identifiers are stored,
        and these memories are sensitive. An agent's handle gets the rights ``consent`` and ``sensitive``; a token must
        have them.

        Due jobs run in a thread from the first write on, or from the start with ``maintenance=True``; ``close`` stops
        it. If ``maintenance`` is a function, it is called at closing if something was written and jobs are due. No job
        runs with ``maintenance=False``, with ``KEEPWARD_MAINTENANCE=off``, or by default with ``:memory:`` or a
        ``clock``.

        Raises:
            NotAStore, NewerSchema, StoreUnavailable: see the message; nothing was written.
            InvalidInput: an unknown embedder, counter, actor, tenant or scope, or a token together with one of these.
            Unauthorised: the token is unknown, expired or revoked.
        """
        from keepward.open import check_options
        from keepward.services.request_context import RequestContext

        options = {"create": create, "consent": consent, "maintenance": maintenance, "gates": gates}
        files = {"identity": identity, "user_file": user_file, "config_dir": config_dir}
        check_options(**options, **files, embedder_prefixes=embedder_prefixes, embedder_timeout=embedder_timeout)
        if token is not None and not (actor is None and tenant is None and scope is None):
            raise InvalidInput("a token determines actor, tenant and scope: leave these arguments out")
        if not isinstance(actor, Actor | None) or not isinstance(policy, Policy | None):
            raise InvalidInput(f"{_ACTOR}; a policy is a Policy(...)")
        if not isinstance(url, str | PathLike | None):
            raise InvalidInput("the store is a path, as text or as a Path, or the address of a database")
        if actor is not None and actor.credential is not None:
            raise InvalidInput("an actor with a credential comes from its token: give the token")
        asking: dict[str, Any] = {
            "tenant": valid_tenant(DEFAULT if tenant is None else tenant),
            "scope": valid_scope(SHARED_SCOPE if scope is None else scope),
            "actor": _with_consent_rights(actor or Actor.agent()) if consent else actor or Actor.agent(),
            "consent": consent,
        }
        create = create and token is None
        path = (_default_url(config_dir, create=create) if url is None else str(url)).removeprefix("sqlite:///")
        keeper = _create_maintenance(maintenance, own_time=clock is not None or path == ":memory:")
        models: dict[str, Any] = {"embedder": embedder, "counter": counter, "extractor": extractor}
        models |= {"embedder_prefixes": embedder_prefixes, "embedder_timeout": embedder_timeout}
        models |= {"summarizer": summarizer, "redactor": redactor, "reranker": reranker, "gates": gates}
        models |= {"identity": identity, "user_file": user_file}
        world: dict[str, Any] = {"clock": clock, "ids": ids, "config_dir": config_dir}
        engine = _open_engine(path, keeper, policy=policy, create=create, **models, **world)
        memory = cls(OpenStore(engine, config_dir, maintenance=keeper), RequestContext(engine=engine, **asking))
        if maintenance is True:
            engine.wake(wrote=False)
        try:
            return memory if token is None else memory.with_token(token, consent=consent)
        except BaseException:
            memory.close()
            raise

    # --- actor, tenant and scope

    @property
    def tenant(self) -> str:
        """The tenant that this handle reads and writes."""
        return self._unconfirmed.tenant

    @property
    def scope(self) -> str:
        """The scope of this handle, such as ``/agents/planner``; on a branch, that on main."""
        return main_scope(self._unconfirmed.scope)

    @property
    def branch_name(self) -> str | None:
        """The branch of this handle; None on main."""
        return branch_of(self._unconfirmed.scope)

    @property
    def actor(self) -> Actor:
        """The actor of this handle."""
        return self._unconfirmed.actor

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._engine.policy

    @property
    def path(self) -> str:
        """The file of the store, or the address of its database without the password."""
        return self._shared.engine.path

    @property
    def now(self) -> datetime:
        """The current time by the clock of the store."""
        return self._engine.clock.now()

    @property
    def head(self) -> str:
        """The name of the newest commit of the tenant: its number, a colon and 16 digits of its hash; zeros if none."""
        return self._engine.store.head(self.tenant).name

    def as_actor(self, actor: Actor) -> Self:
        """Return a handle of an actor with fewer rights on the same store.

        The new handle cannot approve what this owner proposed.

        Raises:
            Unauthorised: this handle may not act as that actor.
        """
        if not isinstance(actor, Actor):
            raise InvalidInput(_ACTOR)
        if actor == self._unconfirmed.actor:
            return type(self)(self._shared, self._unconfirmed)
        if not may_act_as(actor, self._unconfirmed.actor) or actor.credential is not None:
            raise Unauthorised(
                "only an owner's handle acts as another, and only as one with fewer rights; open the store with that "
                "actor, or with its token"
            )
        return type(self)(
            self._shared,
            dataclasses.replace(
                self._unconfirmed,
                actor=actor,
                via=(self.actor, *self._unconfirmed.via),
                consent=False,
                inspects=False,
            ),
        )

    def at(self, *, tenant: str | None = None, scope: str | None = None) -> Self:
        """Return a handle at another tenant or scope of the same store.

        Raises:
            InvalidInput: a name is not valid, or it contains what looks like a secret.
            Unauthorised: the token of this handle does not reach that tenant or scope.
        """
        return type(self)(self._shared, context_at(self._unconfirmed, tenant=tenant, scope=scope))

    def branch(self, name: str | None) -> Self:
        branch = None if name is None else parse_branch(name)
        there = dataclasses.replace(self._unconfirmed, scope=branch_scope(branch, self.scope))
        return type(self)(self._shared, there)

    def _handle_for(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        names: tuple[str, ...] = (),
    ) -> Self:
        scope = scope_for(self.scope, user=user, agent=agent, project=project)
        names = names if user is not None else self._unconfirmed.names
        context = dataclasses.replace(self.at(scope=scope)._unconfirmed, names=names)  # noqa: SLF001  same class
        actor = context.actor
        if agent is not None and actor.is_owner:
            return type(self)(self._shared, context).as_actor(Actor.agent(agent))
        if agent is not None and actor.kind is ActorKind.AGENT and actor.credential is None and actor.name != agent:
            context = dataclasses.replace(context, actor=replace(actor, name=agent), via=(actor, *context.via))
        return type(self)(self._shared, context)

    def with_token(self, token: str, *, consent: bool = False) -> Self:
        """Return a handle on the same store that uses a token: its actor, its tenant and its scope.

        ``consent`` is as for ``open``.

        Raises:
            Unauthorised: the token is unknown, expired or revoked, or lacks the right ``consent``.
        """
        from keepward.services.reading.visible import GRANT_HINT
        from keepward.services.request_context import RequestContext
        from keepward.services.tokens import authenticate

        engine = self._shared.require_open()
        known = authenticate(engine, token)
        if consent and not known.actor.has_right("consent"):
            raise Unauthorised(f"this token gives no consent: {GRANT_HINT} --can read,propose,consent,sensitive`")
        asking: dict[str, Any] = {"tenant": known.tenant, "scope": known.scope, "actor": known.actor}
        return type(self)(self._shared, RequestContext(engine=engine, consent=consent, **asking))

    def owner_token(self) -> Path:
        """Return the file with the owner's token, mode 0600 in the configuration folder. It is created if missing.

        Raises:
            Unauthorised: this handle is not the owner's.
            StoreUnavailable: the configuration folder cannot be written.
        """
        from keepward.machine.trust_store import TokenFile
        from keepward.services.tokens import authenticate

        context = request_context_of(self, owners="the owner's token")
        try:
            file = TokenFile(self._shared.config_dir, context.store.store_id)
            known = file.read()
            if known is not None:
                try:
                    if authenticate(context.engine, known).actor.is_owner:
                        return file.path
                except Unauthorised:
                    # It was revoked, or belongs to another copy of this store: replace it.
                    pass
            file.write(self.create_token(self.actor.name, rights="owner", scope="/").secret)
        except OSError as exc:
            raise StoreUnavailable("the owner's token cannot be written on this machine; set KEEPWARD_HOME") from exc
        return file.path

    def close(self) -> None:
        """Write pending use counts and close the store for all handles on it."""
        if self._shared.closed:
            return
        self._shared.closed = True
        engine = self._shared.engine
        if self._shared.maintenance is not None:
            self._shared.maintenance.stop()
        try:
            for tenant in engine.uses.tenants() if engine.policy.enabled else ():
                with engine.store.write(brief=True) as writer:
                    engine.uses.write(writer, tenant)
        except KeepwardError:
            # Use counts are dispensable: a read-only store closes without them.
            engine.uses.clear()
        finally:
            engine.store.close()

    def __repr__(self) -> str:
        return f"<Memory {self.path} tenant={self.tenant} scope={self.scope} actor={self.actor.label}>"

    # --- operations that stay in this process

    def draft(self, *, reason: str = "", session: str | None = None) -> Draft:
        """Collect changes in a ``with`` block and propose them together at its end. An error discards them."""
        from keepward.services.review.edits import new_memory

        return Draft(self.propose, reason, session, lambda text, given: new_memory(self._context, text, given))

    def shadow(self, host: Callable[P, T], *, budget_tokens: int | None = None) -> Shadow[P, T]:
        """Try Keepward next to a host's own memory: ``host`` returns what the host adds to a prompt.

        Call the result as ``host``; it returns the host's answer, byte for byte, and its errors are those of the host.
        The first text among the arguments is the objective of a context that reaches no model: it counts no use and
        has no receipt. ``capture(messages)`` stores what was said; ``report()`` says what Keepward would have added.

        Example:
            >>> search = memory.shadow(host.search)
            >>> prompt = search("Where do we deploy?")  # the host's own
            >>> print(search.text)  # what Keepward would have added
            >>> print(search.report())
        """
        from keepward.services.reading.contexts import ContextRequest, compile_unrecorded
        from keepward.shadow import Shadow

        request = ContextRequest(budget_tokens=budget_tokens)
        return Shadow(self, host, lambda query: compile_unrecorded(self._context, query, request))

    def proposed_steps(self, item: Proposal) -> list[ProposedStep]:
        """Return what an approval would store, byte for byte, with every invisible character escaped."""
        from keepward.services.review.queue import review_steps
        from keepward.services.writing import blobs

        return review_steps(item, lambda ref: blobs.describe(self._engine, item.tenant, ref))

    def journal(self, *, after: int = 0) -> Iterator[tuple[Commit, list[Event]]]:
        """Yield the tenant's commits with their events as stored, oldest first."""
        context = request_context_of(self, owners="reading the journal")
        return context.store.events(context.tenant, after=after)

    def restore_journal(self, commits: Iterator[tuple[Commit, list[Event]]]) -> Head:
        """Write an exported journal into this empty tenant, byte for byte, and index it."""
        from keepward.services.reading.reindex import reindex
        from keepward.services.writing.tombstones import reject_erased

        context = request_context_of(self, owners="restoring a journal")
        head = context.store.restore_journal(context.tenant, reject_erased(context.engine, commits))
        reindex(context, ended=True)
        return head

    def backup(self, path: str | Path) -> Backup:
        """Write a consistent copy of the open store to a new file that only this user can read.

        Its blobs are copied to a folder next to the file. The same folder gets a list of all erasures and revocations,
        without content, for a machine that has lost its own list.
        """
        from keepward.machine.backup import back_up

        context = request_context_of(self, owners="a backup")
        return back_up(context.engine, self.path, path)

    def move_store(
        self, to: str | Path, *, dry_run: bool = False, on_progress: Callable[[int, int], None] | None = None
    ) -> MigrationResult:
        """Copy the complete store to a new file or database, with the head of every tenant.

        This store does not change. An interrupted move continues where it stopped, and a repeated move copies only
        newer commits. The log warns about writes during the move. ``dry_run`` returns what would be copied.

        Raises:
            Unauthorised: the handle is not the owner's.
            Tampered: this store is damaged.
            Conflict: the other store has another history of a tenant.
            StoreUnavailable: the other store cannot be reached or written.
        """
        from keepward.machine.migration import migrate_store

        context = request_context_of(self, owners="moving a store")
        report = on_progress or (lambda done, steps: None)
        folder = self._shared.config_dir
        return migrate_store(context.engine, self.path, to, config_dir=folder, dry_run=dry_run, report=report)

    @classmethod
    def restore_backup(
        cls,
        backup: str | Path,
        to: str | Path,
        *,
        actor: Actor,
        config_dir: Path | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
    ) -> Restored:
        """Restore a backup as a new store at ``to`` and accept its older state.

        Later erasures are applied to it first: those recorded on this machine and those listed in the folder of the
        backup. If the original store still exists, the copy gets an id of its own. A store that this machine has no
        key for is not accepted: its owner adopts it.

        Raises:
            Unauthorised: the actor is not an owner.
            Tampered: the journal of the backup is damaged, or is not the one that was backed up.
            StoreUnavailable, NotAStore, InvalidInput: a file cannot be used.
        """
        from keepward.machine.backup import restore

        return restore(backup, to, actor=actor, config_dir=config_dir, clock=clock, ids=ids)

    @classmethod
    def recover(
        cls,
        broken: str | Path,
        new: str | Path,
        *,
        actor: Actor,
        config_dir: Path | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> RecoveryResult:
        """Recover a damaged store up to its first invalid commit into a new store at ``new``.

        The damaged file is only read. Commits are restored unchanged, so heads stay equal up to there. The result lists
        the memories and blobs that were lost. Run ``reindex`` to compute vectors.
        ``on_progress`` is called with a sentence for each step.

        Raises:
            Unauthorised: the actor is not an owner.
            NotAStore: the file contains nothing of a store.
            InvalidInput, StoreUnavailable: ``new`` exists already, or cannot be created.
        """
        from keepward.machine.recovery import recover

        return recover(broken, new, actor=actor, config_dir=config_dir, clock=clock, ids=ids, on_progress=on_progress)

    # --- running operations

    def _send(self, about: Operation, given: dict[str, Any]) -> Any:
        context = self._context
        return about.run(context, *split_arguments(about, about.read(given)))

    @property
    def _context(self) -> RequestContext:
        self._shared.require_open()
        actors = (self.actor, *self._unconfirmed.via)
        if all(actor.credential is None for actor in actors):
            # Each call reads the state of a branch again.
            return self._unconfirmed if self.branch_name is None else dataclasses.replace(self._unconfirmed)
        from keepward.services.tokens import require_valid

        own, *_ = [require_valid(self._unconfirmed, actor) for actor in actors]
        return dataclasses.replace(self._unconfirmed, token_scope=None if own is None else own.scope)

    @property
    def _engine(self) -> Engine:
        return self._context.engine


def run_maintenance(path: str, *, should_stop: Callable[[], bool], **chosen: Any) -> None:
    """Open an existing store, run due jobs until ``should_stop`` returns true, and close it.

    ``chosen`` are arguments of ``Memory.open``.
    """
    from keepward.jobs.maintenance import run_pending

    engine = _open_engine(path, None, create=False, **chosen)
    try:
        run_pending(engine, should_stop=should_stop)
    finally:
        engine.store.close()


def request_context_of(memory: Memory, *, owners: str = "") -> RequestContext:
    """Return the request context of a handle.

    Raises:
        Unauthorised: ``owners`` names an action of the owner, and the actor is another.
    """
    context = memory._context  # noqa: SLF001  a handle's own
    if owners:
        context.require_owner(owners)
    return context


def server_state_of(memory: Memory, monotonic: Callable[[], float]) -> SharedState | None:
    """Return the state that several servers over one database share; None for a single server."""
    return memory._shared.require_open().store.shared(monotonic)  # noqa: SLF001  a handle's own


def queue_version(memory: Memory) -> tuple[int, ...] | None:
    """Return a version of the visible review queue that changes with it; None if the actor may not decide.

    The number of pending proposals comes first. For a handle that sees every scope it reads only an index, so it can be
    called every second.
    """
    context = request_context_of(memory)
    return VisibleReader(context).queue_version() if context.actor.may_decide else None


def inspection_handle(memory: Memory) -> Memory:
    """Return a handle of the same actor whose reads do not count as uses, for a person who inspects the store."""
    context = dataclasses.replace(memory._unconfirmed, inspects=True)  # noqa: SLF001  a handle's own
    return type(memory)(memory._shared, context)  # noqa: SLF001


def from_token_id(memory: Memory, credential: str) -> Memory:
    """Return the handle of an owner's token by its id. Each call checks that the token is valid.

    Raises:
        Unauthorised: there is no such token, or the handle is not the owner's.
    """
    from keepward.services.request_context import RequestContext
    from keepward.services.tokens import get_token

    owner = request_context_of(memory, owners="a token by its id")
    token = get_token(owner, credential)
    context = RequestContext(engine=owner.engine, tenant=token.tenant, scope=token.scope, actor=token.actor)
    return type(memory)(memory._shared, context)  # noqa: SLF001


def _with_consent_rights(actor: Actor) -> Actor:
    """Return the actor with the rights to record consent and to read sensitive memories."""
    if not actor.may_propose:
        raise Unauthorised("consent applies to writes, and this actor may not write")
    if actor.has_right("consent") and actor.has_right("sensitive"):
        return actor
    own = ROLE_RIGHTS[actor.rights] if actor.can is None else actor.can
    return replace(actor, can=tuple(sorted(GRANTABLE_RIGHTS.union(own))))


def _open_engine(path: str, keeper: Maintenance | DeferredMaintenance | None, **chosen: Any) -> Engine:
    """Open a store, finish an interrupted erasure, and attach maintenance."""
    from keepward.open import open_engine

    if keeper is not None:
        chosen["wake"] = keeper.wake
    engine = open_engine(path, **chosen)
    if engine.store.foreign is None:
        if engine.store.scrub_pending():
            from keepward.machine.erasures import finish_interrupted_erasure

            finish_interrupted_erasure(engine)
        if keeper is not None:
            keeper.attach(engine)
    return engine


def _create_maintenance(
    choice: bool | Callable[[], None] | None, *, own_time: bool
) -> Maintenance | DeferredMaintenance | None:
    """Return what runs due jobs. With ``own_time``, nothing runs unless ``choice`` asks for it."""
    if choice is None:
        choice = not own_time and maintenance_enabled()
    if choice is False:
        return None
    from keepward.jobs.maintenance import DeferredMaintenance, Maintenance

    return Maintenance() if choice is True else DeferredMaintenance(choice)


def _default_url(config_dir: Path | None, *, create: bool) -> str:
    path, left_alone = default_store(config_dir=config_dir)
    if left_alone:
        _log.warning("%s", left_alone, extra={"action": "left_alone"})
    if create:
        make_data_folder(path)
    return str(path)
