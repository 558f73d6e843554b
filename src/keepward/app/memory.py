"""``Memory``: a handle with every verb, and how to open one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from keepward.app.blobs import Blobs
from keepward.app.copying import Copying
from keepward.app.credentials import Credentials
from keepward.app.decisions import Decisions
from keepward.app.erasing import Erasing
from keepward.app.handle import Shared
from keepward.app.inquiries import Inquiries
from keepward.app.jobs import Jobs
from keepward.app.learning import Learning
from keepward.app.opening import maintenance_of, open_kit
from keepward.app.tools import Tools
from keepward.app.writes import Writes
from keepward.errors import InvalidInput
from keepward.model.policy import Policy
from keepward.model.trust import SHARED, Actor
from keepward.verbs.arguments import DEFAULT, scope_named, tenant_named

if TYPE_CHECKING:
    from keepward.ports.models import Embedder, Redactor, Summarizer, TokenCounter
    from keepward.ports.world import Clock, IdSource

_log = logging.getLogger(__name__)


class Memory(Writes, Decisions, Inquiries, Credentials, Learning, Erasing, Copying, Jobs, Blobs, Tools):
    """A handle on a store of memories."""

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
        redactor: Redactor | None = None,
        identity: str | Path | None = None,
        user_file: str | Path | None = None,
        create: bool = True,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        config_dir: Path | None = None,
        maintenance: bool | Callable[[], None] | None = None,
    ) -> Memory:
        """Open a store; a file that is not there is created, in a folder that is.

        Without ``url`` it is the user's own, in the data folder (``KEEPWARD_DATA``, else the platform's), or
        ``keepward.db`` in the working folder where this machine knows it.
        The handle is an agent's unless an actor is named: it reads and proposes, and nothing it says reaches
        core memory unreviewed. ``actor=Actor.operator(...)`` opens it as its owner; no handle gets there later.
        With a ``token`` actor, tenant and scope are the token's, and the store has to be there. ``identity`` and
        ``user_file`` are text files outside the store; they are read anew at every compile. ``summarizer`` lets a
        model sum up in jobs; without one, they quote. ``redactor`` finds names and whatever else tells of a person, and
        what it finds is replaced by markers before anything is stored, beside what the built-in detectors find.

        Jobs that are due run by themselves in a thread that ``close`` stops: from the first write on, or from the
        start with ``maintenance=True``; a function is called instead, at closing, when something was written and jobs
        are due. With ``maintenance=False``, with ``KEEPWARD_MAINTENANCE=off``, and unless it is asked for, in
        ``:memory:`` or with a ``clock``, nothing runs until ``run_due`` is called.

        Raises:
            NotAStore, NewerSchema, StoreUnavailable: see the message; nothing was written.
            InvalidInput: an unknown embedder, counter, tenant or scope; a token and one of these beside it.
            Unauthorised: the token is unknown, expired or revoked.
        """
        from keepward.engine.kit import Who

        if token is not None and not (actor is None and tenant is None and scope is None):
            raise InvalidInput("a token says who asks and where: leave out actor, tenant and scope")
        if actor is not None and actor.credential is not None:
            raise InvalidInput("an actor with a credential comes from its token: give the token")
        who = Who(
            tenant=tenant_named(DEFAULT if tenant is None else tenant),
            scope=scope_named(SHARED if scope is None else scope),
            actor=actor or Actor.agent(),
        )
        path = _default(config_dir, create=create and token is None) if url is None else str(url)
        path = path.removeprefix("sqlite:///")
        keeper = maintenance_of(maintenance, own_time=clock is not None or path == ":memory:")
        kit = open_kit(
            path,
            policy=policy,
            embedder=embedder,
            counter=counter,
            summarizer=summarizer,
            redactor=redactor,
            identity=identity,
            user_file=user_file,
            create=create and token is None,
            clock=clock,
            ids=ids,
            config_dir=config_dir,
            maintenance=keeper,
        )
        memory = cls(Shared(kit, path, config_dir, maintenance=keeper), who)
        if maintenance is True:
            kit.wake(wrote=False)
        if token is None:
            return memory
        try:
            return memory.holding(token)
        except BaseException:
            memory.close()
            raise

    @property
    def head(self) -> str:
        """Name of the tenant's newest commit: its number, a colon, 16 digits of its hash; zeros before the first."""
        return self._kit.store.head(self._who.tenant).name


def _default(config_dir: Path | None, *, create: bool) -> str:
    from keepward.config import default_store, make_room

    path, left_alone = default_store(config_dir=config_dir)
    if left_alone:
        _log.warning("%s", left_alone, extra={"action": "left_alone"})
    if create:
        make_room(path)
    return str(path)
