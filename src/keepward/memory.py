"""``Memory``: a handle on an opened store, with every operation.

Handles on the same store share its connection, its models and its policy; only who asks, and from where, differs.

Invariants
(1) Rights come from how a handle was opened. Only an owner's handle gives others, and only with fewer rights:
    an agent's, a user's or a reviewer's cannot turn itself into anybody else.
    An agent's handle that no token binds gives those of other agents, and answers for what they were handed.
(2) A token's handle keeps to its tenant and to its scope or below; an owner's may go anywhere. Each call asks anew
    whether the token still holds, and so do handles derived from it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from keepward.core.policy import Policy
from keepward.core.principals import (
    GRANTABLE_RIGHTS,
    ROLE_RIGHTS,
    SHARED_SCOPE,
    Actor,
    ActorKind,
    is_within_scope,
    may_act_as,
)
from keepward.errors import InvalidInput, KeepwardError, StoreUnavailable, Unauthorised
from keepward.handles import Handles, scope_for
from keepward.operations import Operation, split_arguments
from keepward.services.arguments import DEFAULT, valid_scope, valid_tenant
from keepward.tools import Tools

if TYPE_CHECKING:
    from typing import Self

    from keepward.core.commit import Commit, Event, Head
    from keepward.core.copies import Backup, MigrationResult, RecoveryResult, Restored
    from keepward.core.proposal import Outcome, Proposal, ProposedStep
    from keepward.draft import Draft
    from keepward.gates.gate_types import Gate
    from keepward.idempotency import IdempotencyKey
    from keepward.jobs.maintenance import DeferredMaintenance, Maintenance
    from keepward.ports.models import Embedder, Extractor, Redactor, Reranker, Summarizer, TokenCounter
    from keepward.ports.world import Clock, IdSource
    from keepward.services.request_context import Engine, RequestContext
    from keepward.storage.server_state import SharedState

_log = logging.getLogger(__name__)
_ACTOR = "an actor is such as Actor.user('ana') or Actor.operator('ana')"


@dataclass(slots=True)
class OpenStore:
    """What all handles on one opened store share."""

    engine: Engine
    #: Folder of keys and tokens; None for the user's own.
    config_dir: Path | None = None
    closed: bool = False
    #: Runs jobs that are due; None where that is switched off.
    maintenance: Maintenance | DeferredMaintenance | None = None

    def require_open(self) -> Engine:
        """Return the engine, unless the store was closed."""
        if self.closed:
            raise InvalidInput("the store is closed; open it again")
        return self.engine


class Memory(Handles, Tools):
    """A handle on a store of memories."""

    def __init__(self, shared: OpenStore, session: RequestContext) -> None:
        self._shared, self._unconfirmed = shared, session

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
        """Open a store; a file that is not there is created, in a folder that is.

        Without ``url`` it is the user's own, in the data folder (``KEEPWARD_DATA``, else the platform's), or
        ``keepward.db`` in the working folder where this machine knows it.
        The handle is an agent's unless an actor is named: it reads and proposes, and nothing it says reaches
        core memory unreviewed. ``actor=Actor.operator(...)`` opens it as its owner; no handle gets there later.
        With a ``token`` actor, tenant and scope are the token's, and the store has to be there. ``identity`` and
        ``user_file`` are text files outside the store; they are read anew at every compile. The tenant that it is
        opened for proposes editions of the identity. ``summarizer`` lets a model sum up in jobs; without one, they
        quote. ``extractor`` lets a model find further facts for ``add``: a chat server's model as
        ``https://host/v1#model``, with ``KEEPWARD_EXTRACTOR_KEY``. What ``redactor`` finds, such as names, is
        replaced by markers before anything is stored, beside what the built-in detectors find. ``reranker`` orders
        what a search found, and ``gates`` judge writes beside the built-in ones. Texts name plug-ins:
        docs/howto/plugins.md.

        With ``consent``, people gave theirs to all that is written here: their identifiers stay in it, and it is
        sensitive, which this handle may read. An agent's handle is given both rights by this; a token has to have them.

        Jobs that are due run by themselves in a thread that ``close`` stops: from the first write on, or from the
        start with ``maintenance=True``; a function is called instead, at closing, when something was written and jobs
        are due. With ``maintenance=False``, with ``KEEPWARD_MAINTENANCE=off``, and unless it is asked for, in
        ``:memory:`` or with a ``clock``, nothing runs until ``run_job`` is called.

        Raises:
            NotAStore, NewerSchema, StoreUnavailable: see the message; nothing was written.
            InvalidInput: an unknown embedder, counter, actor, tenant or scope; a token and one of these beside it.
            Unauthorised: the token is unknown, expired or revoked.
        """
        from keepward.services.request_context import RequestContext

        if token is not None and not (actor is None and tenant is None and scope is None):
            raise InvalidInput("a token says who asks and where: leave out actor, tenant and scope")
        if not isinstance(actor, Actor | None) or not isinstance(policy, Policy | None):
            raise InvalidInput(f"{_ACTOR}, a policy a Policy(...)")
        if not isinstance(url, str | PathLike | None):
            raise InvalidInput("a store is named by a path, as text or as a Path, or by the address of a database")
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
        models |= {"summarizer": summarizer, "redactor": redactor, "reranker": reranker, "gates": gates}
        models |= {"identity": identity, "user_file": user_file}
        world: dict[str, Any] = {"clock": clock, "ids": ids, "config_dir": config_dir}
        engine = _open_engine(path, keeper, policy=policy, create=create, **models, **world)
        memory = cls(OpenStore(engine, config_dir, maintenance=keeper), RequestContext(engine=engine, **asking))
        if maintenance is True:
            engine.wake(wrote=False)
        try:
            handle = memory if token is None else memory.with_token(token, consent=consent)
        except BaseException:
            memory.close()
            raise
        if identity is not None and engine.store.foreign is None:
            engine.identity.tenant = handle.tenant
        return handle

    # --- the handle: who asks, and from where

    @property
    def tenant(self) -> str:
        """The tenant this handle reads and writes."""
        return self._unconfirmed.tenant

    @property
    def scope(self) -> str:
        """The scope this handle stands at."""
        return self._unconfirmed.scope

    @property
    def actor(self) -> Actor:
        """On whose behalf this handle asks."""
        return self._unconfirmed.actor

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._engine.policy

    @property
    def path(self) -> str:
        """The store's file, or the address of its database without the password."""
        return self._shared.engine.path

    @property
    def now(self) -> datetime:
        """The store's clock."""
        return self._engine.clock.now()

    @property
    def head(self) -> str:
        """Name of the tenant's newest commit: its number, a colon, 16 digits of its hash; zeros before the first."""
        return self._engine.store.head(self.tenant).name

    def as_actor(self, actor: Actor) -> Self:
        """Return a handle of an actor with fewer rights on the same store; see (1).

        An owner's handle stays accountable for what it gives out: what it proposed itself, none of these approve.

        Raises:
            Unauthorised: the actor has rights that this handle cannot give.
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
            InvalidInput: the name of one is none, or holds what looks like a secret.
            Unauthorised: a token does not reach there; see (2).
        """
        session = self._unconfirmed
        if tenant is not None:
            session = dataclasses.replace(session, tenant=valid_tenant(tenant))
        if scope is not None:
            session = dataclasses.replace(session, scope=valid_scope(scope), names=())
        bound = session.actor.credential is not None and not session.actor.is_owner
        if bound and (session.tenant != self.tenant or not is_within_scope(session.scope, self.scope)):
            raise Unauthorised("this token does not reach that tenant or scope; ask the owner for another")
        return type(self)(self._shared, session)

    def _handle_for(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        names: tuple[str, ...] = (),
    ) -> Self:
        scope = scope_for(self.scope, user=user, agent=agent, project=project)
        kept = names if user is not None else self._unconfirmed.names
        session = dataclasses.replace(self.at(scope=scope)._unconfirmed, names=kept)  # noqa: SLF001  of its own class
        actor = session.actor
        if agent is not None and actor.is_owner:
            return type(self)(self._shared, session).as_actor(Actor.agent(agent))
        if agent is not None and actor.kind is ActorKind.AGENT and actor.credential is None and actor.name != agent:
            session = dataclasses.replace(session, actor=replace(actor, name=agent), via=(actor, *session.via))
        return type(self)(self._shared, session)

    def with_token(self, token: str, *, consent: bool = False) -> Self:
        """Return the handle of a token's bearer on the same store; actor, tenant and scope are the token's.

        ``consent`` is as for ``open``.

        Raises:
            Unauthorised: the token is unknown, expired or revoked, or gives no consent.
        """
        from keepward.services.reader import GRANT_HINT
        from keepward.services.request_context import RequestContext
        from keepward.services.tokens import authenticate

        engine = self._shared.require_open()
        known = authenticate(engine, token)
        if consent and not known.actor.has_right("consent"):
            raise Unauthorised(f"this token gives no consent: {GRANT_HINT} --can read,propose,consent,sensitive`")
        asking: dict[str, Any] = {"tenant": known.tenant, "scope": known.scope, "actor": known.actor}
        return type(self)(self._shared, RequestContext(engine=engine, consent=consent, **asking))

    def owner_token(self) -> Path:
        """Return the file with the owner's token, 0600 in the configuration folder; made when missing.

        Raises:
            Unauthorised: this handle is not an owner's.
            StoreUnavailable: this machine has no place for it.
        """
        from keepward.adapters.trust_store import TokenFile
        from keepward.services.tokens import authenticate

        session = request_context_of(self, owners="the owner's token")
        try:
            file = TokenFile(self._shared.config_dir, session.store.store_id)
            known = file.read()
            if known is not None:
                try:
                    if authenticate(session.engine, known).actor.is_owner:
                        return file.path
                except Unauthorised:
                    # Revoked, or of another copy of this store: make a new one in its place.
                    pass
            file.write(self.create_token(self.actor.name, rights="owner", scope="/").secret)
        except OSError as fault:
            raise StoreUnavailable("this machine has no place for the owner's token; set KEEPWARD_HOME") from fault
        return file.path

    def close(self) -> None:
        """Write what is still counted and release the store, for all handles on it."""
        if self._shared.closed:
            return
        self._shared.closed = True
        engine = self._shared.engine
        if self._shared.maintenance is not None:
            self._shared.maintenance.stop()
        try:
            if engine.uses and engine.policy.enabled:
                with engine.store.write(brief=True) as writer:
                    engine.write_uses(writer)
        except KeepwardError:
            # Uses are a convenience; a store that cannot be written closes all the same.
            engine.uses.clear()
        finally:
            engine.store.close()

    def __repr__(self) -> str:
        return f"<Memory {self.path} tenant={self.tenant} scope={self.scope} actor={self.actor.label}>"

    # --- operations that stay in this process

    def draft(self, *, reason: str = "", session: str | None = None) -> Draft:
        """Collect changes in a ``with`` block and propose them together at its end; an error discards them."""
        from keepward.draft import Draft
        from keepward.services.edits import new_memory

        return Draft(self, reason, session, lambda text, given: new_memory(self._session, text, given))

    def shown(self, item: Proposal) -> list[ProposedStep]:
        """Return what an approval would store, byte for byte, with every invisible character written out."""
        from keepward.services import blobs
        from keepward.services.review_queue import review_steps

        return review_steps(item, lambda ref: blobs.describe(self._engine, item.tenant, ref))

    def journal(self, *, after: int = 0) -> Iterator[tuple[Commit, list[Event]]]:
        """Yield the tenant's commits with their events as stored, oldest first."""
        session = request_context_of(self, owners="reading the whole journal")
        return session.store.events(session.tenant, after=after)

    def restore_journal(self, commits: Iterator[tuple[Commit, list[Event]]]) -> Head:
        """Write an exported journal into this empty tenant, byte for byte, and index it."""
        from keepward.services.erasure_references import reject_erased
        from keepward.services.index_cache import reindex

        session = request_context_of(self, owners="restoring a journal")
        head = session.store.restore_journal(session.tenant, reject_erased(session.engine, commits))
        reindex(session, ended=True)
        return head

    def backup(self, path: str | Path) -> Backup:
        """Write a consistent copy of the live store, readable by its owner alone, to a file that is not there yet.

        Its blobs go to a folder beside it, as they lie beside the store, and so does a list of what was erased and
        revoked, without content, for a machine that has lost its own.
        """
        from keepward.copies.backup import back_up

        session = request_context_of(self, owners="a backup")
        return back_up(session.engine, self.path, path)

    def move_store(
        self, to: str | Path, *, dry_run: bool = False, on_progress: Callable[[int, int], None] | None = None
    ) -> MigrationResult:
        """Carry the whole store over to a new file, or to the address of a database, with the heads of every tenant.

        This store stays as it is. A move that was stopped goes on where it was; one that is repeated brings over what
        was written since; where something was written meanwhile, the log warns. ``dry_run`` says what would be moved.

        Raises:
            Unauthorised: the handle is not an owner's.
            Tampered: something in this store does not hold.
            Conflict: the other store has a history of its own of a tenant.
            StoreUnavailable: the other place cannot be reached or written.
        """
        from keepward.copies.migration import migrate_store

        session = request_context_of(self, owners="moving a store")
        report = on_progress or (lambda done, steps: None)
        folder = self._shared.config_dir
        return migrate_store(session.engine, self.path, to, config_dir=folder, dry_run=dry_run, report=report)

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
        """Bring a backup back as the store at ``to``, which must not be there; its older state is accepted by this.

        Erasures that were made since are carried out in it first: those that this machine has listed, and those of
        the lists in the folder of the backup. Where the store that it was made of is still
        there, the copy gets an id of its own.

        Raises:
            Unauthorised: the actor is not an owner.
            Tampered: the backup's journal does not hold, or is not that of the backup that was made.
            StoreUnavailable, NotAStore, InvalidInput: a file cannot be used.
        """
        from keepward.copies.backup import restore

        return restore(backup, to, actor=actor, config_dir=config_dir, clock=clock, ids=ids)

    @classmethod
    def rescue(
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
        """Make a new store at ``new``, which must not be there, of every commit and memory of a damaged one that holds.

        The damaged file is read and never written. Commits come as they are up to the first that does not hold, newer
        memories in one commit of kind ``rescue``; what was lost is named. It has vectors once it was reindexed.
        ``on_progress`` is called with sentences.

        Raises:
            Unauthorised: the actor is not an owner.
            NotAStore: nothing of the file can be read as a store.
            InvalidInput, StoreUnavailable: ``new`` is there already, or cannot be made.
        """
        from keepward.copies.recovery import recover

        return recover(broken, new, actor=actor, config_dir=config_dir, clock=clock, ids=ids, on_progress=on_progress)

    # --- how requests are carried out

    def _send(self, about: Operation, given: dict[str, Any]) -> Any:
        session = self._session
        sent, local = split_arguments(about, given)
        return about.run(session, about.read(sent), local)

    @property
    def _session(self) -> RequestContext:
        self._shared.require_open()
        actors = (self.actor, *self._unconfirmed.via)
        if any(actor.credential is not None for actor in actors):
            from keepward.services.tokens import require_valid

            for actor in actors:
                require_valid(self._unconfirmed, actor)
        return self._unconfirmed

    @property
    def _engine(self) -> Engine:
        return self._session.engine


def run_maintenance(path: str, *, should_stop: Callable[[], bool], **chosen: Any) -> None:
    """Open a store that is there, run the jobs that are due until ``halted`` says to stop, and close it.

    ``chosen`` are arguments of ``Memory.open``.
    """
    from keepward.jobs.maintenance import run_pending

    engine = _open_engine(path, None, create=False, **chosen)
    try:
        run_pending(engine, should_stop=should_stop)
    finally:
        engine.store.close()


def request_context_of(memory: Memory, *, owners: str = "") -> RequestContext:
    """Return the session of a handle, for what the engine offers and no operation does.

    Raises:
        Unauthorised: what is named as the owner's is asked by another.
    """
    session = memory._session  # noqa: SLF001  a handle's own
    if owners:
        session.owner(owners)
    return session


def server_state_of(memory: Memory, monotonic: Callable[[], float]) -> SharedState | None:
    """Return what several servers of the memory's store share between requests; None where one stands alone."""
    return memory._shared.require_open().store.shared(monotonic)  # noqa: SLF001  a handle's own


def outcome_under_key(memory: Memory, key: IdempotencyKey) -> Outcome | None:
    """Return once more what became of the write that a call committed under a key; None where it committed nothing."""
    from keepward.services import write

    return write.repeated_outcome(request_context_of(memory), key)


def queue_version(memory: Memory) -> tuple[int, ...] | None:
    """Return what tells one state of the tenant's review queue from another; None to a handle that may not decide.

    It reads an index alone, so that it can be asked for every second.
    """
    session = request_context_of(memory)
    return session.store.queue_change_counter(session.tenant) if session.actor.may_decide else None


def inspection_handle(memory: Memory) -> Memory:
    """Return a handle of the same actor for a person who inspects the store: what it reads counts as no use."""
    session = dataclasses.replace(memory._unconfirmed, inspects=True)  # noqa: SLF001  a handle's own
    return type(memory)(memory._shared, session)  # noqa: SLF001


def from_token_id(memory: Memory, credential: str) -> Memory:
    """Return the handle of an owner's token by its id; each use of it asks whether the token holds.

    Raises:
        Unauthorised: there is no such token, or the handle is not an owner's.
    """
    from keepward.services.request_context import RequestContext
    from keepward.services.tokens import get_token

    owner = request_context_of(memory, owners="a token by its id")
    token = get_token(owner, credential)
    session = RequestContext(engine=owner.engine, tenant=token.tenant, scope=token.scope, actor=token.actor)
    return type(memory)(memory._shared, session)  # noqa: SLF001


def _with_consent_rights(actor: Actor) -> Actor:
    """Return an actor who may say that people consented, and may read what was kept with that."""
    if not actor.may_propose:
        raise Unauthorised("consent goes with what is written, and this actor writes nothing")
    if actor.has_right("consent") and actor.has_right("sensitive"):
        return actor
    return replace(actor, can=(ROLE_RIGHTS[actor.rights] if actor.can is None else actor.can) | GRANTABLE_RIGHTS)


def _open_engine(path: str, keeper: Maintenance | DeferredMaintenance | None, **chosen: Any) -> Engine:
    """Open a store, finish what an interrupted erasure has left, and let maintenance attend to it."""
    from keepward.open import open_engine

    if keeper is not None:
        chosen["wake"] = keeper.wake
    engine = open_engine(path, **chosen)
    if engine.store.foreign is None:
        if engine.store.scrub_pending():
            from keepward.copies.erasures import finish_interrupted_erasure

            finish_interrupted_erasure(engine)
        if keeper is not None:
            keeper.attach(engine)
    return engine


def _create_maintenance(
    choice: bool | Callable[[], None] | None, *, own_time: bool
) -> Maintenance | DeferredMaintenance | None:
    """Return what runs due jobs; ``own_time`` says that nothing begins by itself unless it is asked for."""
    if choice is None:
        from keepward.settings import maintenance_enabled

        choice = not own_time and maintenance_enabled()
    if choice is False:
        return None
    from keepward.jobs.maintenance import DeferredMaintenance, Maintenance

    return Maintenance() if choice is True else DeferredMaintenance(choice)


def _default_url(config_dir: Path | None, *, create: bool) -> str:
    from keepward.settings import default_store, make_data_folder

    path, left_alone = default_store(config_dir=config_dir)
    if left_alone:
        _log.warning("%s", left_alone, extra={"action": "left_alone"})
    if create:
        make_data_folder(path)
    return str(path)
