"""A session: on whose behalf, and from where, verbs are carried out on an opened store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepward.errors import Unauthorised
from keepward.model.trust import Actor

if TYPE_CHECKING:
    from keepward.engine.kit import Kit, Who


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An opened store, and who asks."""

    kit: Kit
    who: Who
    #: The store's file or address.
    path: str

    @property
    def tenant(self) -> str:
        """The tenant that is read and written."""
        return self.who.tenant

    @property
    def actor(self) -> Actor:
        """On whose behalf it is asked."""
        return self.who.actor

    def owner(self, what: str, right: str = "admin") -> None:
        """See that an owner asks; to erase, everybody behind the handle has to have the right.

        Raises:
            Unauthorised: it is somebody else.
        """
        if not (self.actor.is_owner and self.actor.able(right)):
            raise Unauthorised(f"{what} takes the owner; open the store with an operator as the actor")
        if right == "erase" and not all(actor.able("erase") for actor in self.who.via):
            raise Unauthorised("this token may not erase; ask the owner for one that may")
