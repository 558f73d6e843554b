"""The handle: one tenant, one scope, one actor on one opened store.

Handles on the same store share its connection, its models and its policy; only who asks, and from where,
differs.

Invariants
(1) Rights come from how a handle was opened. Only an owner's handle gives others, and only with fewer rights:
    an agent's, a user's or a reviewer's cannot turn itself into anybody else.
(2) A token's handle keeps to its tenant and to its scope or below; an owner's may go anywhere. Each call asks anew
    whether the token still holds, and so do handles derived from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from keepward.errors import InvalidInput, KeepwardError, Unauthorised
from keepward.model.policy import Policy
from keepward.model.trust import Actor, stands_below, visible_from
from keepward.verbs.arguments import scope_named, tenant_named

if TYPE_CHECKING:
    from typing import Self

    from keepward.engine.kit import Kit, Who
    from keepward.jobs.maintenance import Handover, Maintenance


@dataclass(slots=True)
class Shared:
    """What all handles on one opened store share."""

    kit: Kit
    path: str
    #: Folder of keys and tokens; None for the user's own.
    config_dir: Path | None = None
    closed: bool = field(default=False)
    #: Runs jobs that are due; None where that is switched off.
    maintenance: Maintenance | Handover | None = None

    def usable(self) -> Kit:
        """Return the kit, unless the store was closed."""
        if self.closed:
            raise InvalidInput("the store is closed; open it again")
        return self.kit


class Handle:
    """What every part of the front door stands on."""

    def __init__(self, shared: Shared, who: Who) -> None:
        self._shared, self._who = shared, who

    @property
    def tenant(self) -> str:
        """The tenant this handle reads and writes."""
        return self._who.tenant

    @property
    def scope(self) -> str:
        """The scope this handle stands at."""
        return self._who.scope

    @property
    def actor(self) -> Actor:
        """On whose behalf this handle asks."""
        return self._who.actor

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._kit.policy

    @property
    def path(self) -> str:
        """The store's file."""
        return self._shared.path

    @property
    def now(self) -> datetime:
        """The store's clock."""
        return self._kit.clock.now()

    def acting_as(self, actor: Actor) -> Self:
        """Return a handle of an actor with fewer rights on the same store; see (1).

        An owner's handle stays accountable for what it gives out: what it proposed itself, none of these approve.

        Raises:
            Unauthorised: the actor has rights that this handle cannot give.
        """
        if actor == self._who.actor:
            return type(self)(self._shared, self._who)
        if not stands_below(actor, self._who.actor) or actor.credential is not None:
            raise Unauthorised(
                "a handle acts as nobody else, and an owner's as nobody with an owner's rights; open the store "
                "with that actor, or with its token"
            )
        return type(self)(self._shared, replace(self._who, actor=actor, via=(self._who.actor, *self._who.via)))

    def at(self, *, tenant: str | None = None, scope: str | None = None) -> Self:
        """Return a handle at another tenant or scope of the same store.

        Raises:
            InvalidInput: the name of one is none, or holds what looks like a secret.
            Unauthorised: a token does not reach there; see (2).
        """
        who = self._who
        if tenant is not None:
            who = replace(who, tenant=tenant_named(tenant))
        if scope is not None:
            who = replace(who, scope=scope_named(scope))
        bound = who.actor.credential is not None and not who.actor.is_owner
        if bound and (who.tenant != self._who.tenant or self._who.scope not in visible_from(who.scope)):
            raise Unauthorised("this token does not reach that tenant or scope; ask the owner for another")
        return type(self)(self._shared, who)

    def close(self) -> None:
        """Write what is still counted and release the store, for all handles on it."""
        from keepward.engine.commit import flush_uses

        if self._shared.closed:
            return
        self._shared.closed = True
        kit = self._shared.kit
        if self._shared.maintenance is not None:
            self._shared.maintenance.stop()
        try:
            if kit.uses and kit.policy.enabled:
                with kit.store.write() as writer:
                    flush_uses(kit, writer)
        except KeepwardError:
            # Uses are a convenience; a store that cannot be written closes all the same.
            kit.uses.clear()
        finally:
            kit.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _kit(self) -> Kit:
        kit = self._shared.usable()
        if any(actor.credential is not None for actor in (self._who.actor, *self._who.via)):
            from keepward.engine.credentials import confirm

            for actor in (self._who.actor, *self._who.via):
                confirm(kit, actor)
        return kit

    def _owner(self, what: str, right: str = "admin") -> None:
        if not (self._who.actor.is_owner and self._who.actor.able(right)):
            raise Unauthorised(f"{what} takes the owner; open the store with an operator as the actor")
