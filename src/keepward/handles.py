"""Handles of users, agents and projects. Each sets a scope, an actor and a subject.

| handle                            | writes                    | also reads                                  |
| --------------------------------- | ------------------------- | ------------------------------------------- |
| ``user("ana")``                   | ``/users/ana``            | ``/``                                       |
| ``agent("planner")``              | ``/agents/planner``       | ``/``                                       |
| ``project("shop")``               | ``/projects/shop``        | ``/``                                       |
| ``project("shop").user("ana")``   | ``/projects/shop/users/ana`` | ``/projects/shop``, ``/users/ana``, ``/`` |
| ``project("shop").agent("plan")`` | ``/projects/shop``        | ``/``                                       |

``branch("try-x")`` is a handle on a branch, at the same scope; see ``services.branch_state``.

* A handle never has more trust or rights than the handle it came from. A token's handle stays within its scope.
* The order does not matter: ``user(u).project(p)`` equals ``project(p).user(u)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keepward.core.policy import Policy
    from keepward.core.principals import Actor

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from keepward.api import MemoryAPI
from keepward.core.foreign_words import missing_method
from keepward.errors import InvalidInput
from keepward.services.arguments import check_name, texts

if TYPE_CHECKING:
    from typing import Self

    from keepward.core.commit import ErasureReason
    from keepward.core.journal import Erased, ErasePlan

#: HTTP headers with the names; a proxy sets them after authentication.
NAMED_HANDLE_HEADERS = {
    "user": "Keepward-User",
    "agent": "Keepward-Agent",
    "project": "Keepward-Project",
    "branch": "Keepward-Branch",
}
#: HTTP header with the further names of a user, percent-encoded and separated by commas.
NAMES_HEADER = "Keepward-User-Names"
#: Maximum number of further names of a user, and of characters of each.
MAX_NAMES, MAX_NAME_LENGTH = 8, 64


class _HandleType(ABCMeta):
    """The type of handles: the AttributeError about a class names the call here, as for ``from_config``."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise AttributeError(missing_method(cls.__name__, name), name=name, obj=cls)


class ForeignMethodHints(metaclass=_HandleType):
    """A handle whose AttributeError names the equivalent of a method of another memory system."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(missing_method(type(self).__name__, name), name=name, obj=self)


def check_user_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return valid further names of a user; else raise InvalidInput."""
    further = (names,) if isinstance(names, str) else texts("names", names)
    if len(further) > MAX_NAMES or not all(name.isprintable() and name.strip() for name in further):
        raise InvalidInput(f"names of a user are at most {MAX_NAMES} lines of text, such as names=['Ana Silva']")
    if any(len(name) > MAX_NAME_LENGTH for name in further):
        raise InvalidInput(f"a name of a user has at most {MAX_NAME_LENGTH} characters")
    return further


class Handles(ForeignMethodHints, MemoryAPI):
    """A handle that returns handles of users, agents and projects."""

    @abstractmethod
    def _handle_for(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        names: tuple[str, ...] = (),
    ) -> Self: ...

    def user(self, name: str, *, names: Sequence[str] = ()) -> Self:
        """Return a handle of a user: a person whom the agent talks with. ``names`` are further names of that person.

        Memories written by this handle have the user as ``subject`` by default. In its queries, "I" means the user.

        Raises:
            InvalidInput: a name is not valid.
            Unauthorised: the token does not reach this scope.
        """
        return self._handle_for(user=check_name("user", name), names=check_user_names(names))

    def agent(self, name: str) -> Self:
        """Return a handle of an agent. In a project or at a user it writes there, visible to others.

        From an owner's handle, the new handle has the rights of an agent. From a token's handle, the actor stays the
        same.
        """
        return self._handle_for(agent=check_name("agent", name))

    def project(self, name: str) -> Self:
        """Return a handle of a project, which its agents share."""
        return self._handle_for(project=check_name("project", name))

    @property
    @abstractmethod
    def branch_name(self) -> str | None:
        """The branch of this handle; None on main."""

    @abstractmethod
    def branch(self, name: str | None) -> Self:
        """Return a handle on a branch, or with None on main; the tenant, the scope and the actor stay the same.

        It reads main under the changes of the branch, and writes to the branch alone. ``create_branch`` makes one.

        Raises:
            InvalidInput: the name is not valid.
        """

    @overload
    def erase(
        self,
        digest: None = None,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: ErasureReason = "request",
        include_citing: bool = False,
    ) -> ErasePlan: ...
    @overload
    def erase(
        self,
        digest: str,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: ErasureReason = "request",
        include_citing: bool = False,
    ) -> Erased: ...
    def erase(
        self,
        digest: str | None = None,
        ids: Sequence[str] | str = (),
        *,
        subject: str | None = None,
        source: str | None = None,
        reason: ErasureReason = "request",
        include_citing: bool = False,
        **unknown: Any,
    ) -> ErasePlan | Erased:
        """Erase exactly what the plan with this digest lists; without a digest, return the plan.

        For the handle of a user, no selection means everything of that user and everything that cites it. Read
        ``plan = ana.erase()``, then call ``ana.erase(plan.digest)``.

        Raises:
            Conflict: the selection gives another plan now; nothing was erased.
        """
        chosen: Any = {"subject": subject, "source": source, "reason": reason, "include_citing": include_citing}
        # The operation names what an unknown argument may mean.
        chosen |= unknown
        return self.plan_erase(ids, **chosen) if digest is None else super().erase(digest, ids, **chosen)


class LocalHandle(Handles):
    """A handle in the process that has the store open."""

    @property
    @abstractmethod
    def actor(self) -> Actor:
        """The actor of this handle."""

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """The policy in force."""

    @abstractmethod
    def at(self, *, tenant: str | None = None, scope: str | None = None) -> Self:
        """Return a handle of the same actor at another scope or tenant."""
