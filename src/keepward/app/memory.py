"""``Memory``: a handle with every verb, and how to open one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from keepward.app.decisions import Decisions
from keepward.app.handle import Shared
from keepward.app.opening import open_kit
from keepward.app.writes import Writes
from keepward.domain.policy import Policy
from keepward.domain.scope import parse_scope, parse_tenant
from keepward.domain.trust import Actor

if TYPE_CHECKING:
    from keepward.ports.models import Embedder, TokenCounter
    from keepward.ports.world import Clock, IdSource

#: The file a store is kept in when none is named.
DEFAULT_PATH = "keepward.db"


class Memory(Writes, Decisions):
    """A handle on a store of memories."""

    @classmethod
    def open(
        cls,
        url: str | Path = DEFAULT_PATH,
        *,
        tenant: str = "default",
        scope: str = "/",
        actor: Actor | None = None,
        policy: Policy | None = None,
        embedder: str | Embedder | None = "auto",
        counter: str | TokenCounter = "estimate",
        identity: str | Path | None = None,
        user_file: str | Path | None = None,
        create: bool = True,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        config_dir: Path | None = None,
    ) -> Memory:
        """Open a store; a file that is not there is created.

        The handle is an agent's unless an actor is named: it reads and proposes, and nothing it says reaches
        core memory unreviewed. ``identity`` and ``user_file`` are text files outside the store; they are read
        anew at every compile.

        Raises:
            NotAStore, NewerSchema, StoreUnavailable: see the message; nothing was written.
            InvalidInput: an unknown embedder, counter, tenant or scope.
        """
        from keepward.engine.kit import Who

        who = Who(tenant=parse_tenant(tenant), scope=parse_scope(scope), actor=actor or Actor.agent())
        path = str(url).removeprefix("sqlite:///")
        kit = open_kit(
            path,
            policy=policy,
            embedder=embedder,
            counter=counter,
            identity=identity,
            user_file=user_file,
            create=create,
            clock=clock,
            ids=ids,
            config_dir=config_dir,
        )
        return cls(Shared(kit, path), who)
