"""The handle: one tenant, one scope, one actor on one opened store.

Handles on the same store share its connection, its models and its policy; only who asks, and from where,
differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from keepward.domain.policy import Policy
from keepward.domain.scope import parse_scope, parse_tenant
from keepward.domain.trust import Actor
from keepward.errors import InvalidInput, KeepwardError, Unauthorised

if TYPE_CHECKING:
    from typing import Self

    from keepward.engine.kit import Kit, Who


@dataclass(slots=True)
class Shared:
    """What all handles on one opened store share."""

    kit: Kit
    path: str
    closed: bool = field(default=False)


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
        """Return a handle of another actor on the same store."""
        return type(self)(self._shared, replace(self._who, actor=actor))

    def at(self, *, tenant: str | None = None, scope: str | None = None) -> Self:
        """Return a handle at another tenant or scope of the same store."""
        who = self._who
        if tenant is not None:
            who = replace(who, tenant=parse_tenant(tenant))
        if scope is not None:
            who = replace(who, scope=parse_scope(scope))
        return type(self)(self._shared, who)

    def close(self) -> None:
        """Write what is still counted and release the store, for all handles on it."""
        from keepward.engine.write import flush_uses

        if self._shared.closed:
            return
        self._shared.closed = True
        kit = self._shared.kit
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
        if self._shared.closed:
            raise InvalidInput("the store is closed; open it again")
        return self._shared.kit

    def _owner(self, what: str) -> None:
        if not self._who.actor.is_owner:
            raise Unauthorised(f"{what} takes the owner; open the store with an operator as the actor")
