"""Handles of users, agents and projects: each is a scope, an actor and a subject, and nothing more.

| handle                            | writes                    | also reads                                  |
| --------------------------------- | ------------------------- | ------------------------------------------- |
| ``user("ana")``                   | ``/users/ana``            | ``/``                                       |
| ``agent("planner")``              | ``/agents/planner``       | ``/``                                       |
| ``project("shop")``               | ``/projects/shop``        | ``/``                                       |
| ``project("shop").user("ana")``   | ``/projects/shop/users/ana`` | ``/projects/shop``, ``/users/ana``, ``/`` |
| ``project("shop").agent("plan")`` | ``/projects/shop``        | ``/``                                       |

Invariants
(1) No handle has more trust or rights than the one that gave it, and a token's handle stays within its scope.
(2) The order does not matter: ``user(u).project(p)`` is ``project(p).user(u)``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from keepward.api import MemoryAPI
from keepward.core.principals import is_scope, project_of, user_of
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from typing import Self

    from keepward.core.journal import Erased, ErasePlan
    from keepward.types import ErasureReason

#: Headers of a request over HTTP that name them; a proxy sets them for whom it has authenticated.
NAMED_HANDLE_HEADERS = {"user": "Keepward-User", "agent": "Keepward-Agent", "project": "Keepward-Project"}
#: Header with the names of a user, percent-encoded and parted by commas.
NAMES_HEADER = "Keepward-User-Names"
#: Most names that a user's handle knows the user by, and characters of each.
MAX_NAMES, MAX_NAME_LENGTH = 8, 64
#: Methods of other memory systems, each with the call that does it here.
FOREIGN_METHOD_HINTS: Mapping[str, str] = {
    "search": 'recall("Where does Ana live?", limit=5)',
    "get_all": "list_memories(limit=None)",
    "delete": 'forget(memory_id, reason="asked to")',
    "delete_all": 'user("ana").erase(), which plans it, and erase(plan.digest)',
}


class ForeignMethodHints:
    """A handle that says which call does what another system has a name for."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = f"; here it is {FOREIGN_METHOD_HINTS[name]}" if name in FOREIGN_METHOD_HINTS else ""
            raise AttributeError(f"{type(self).__name__} has no {name}{hint}", name=name, obj=self)


def scope_for(scope: str, *, user: str | None = None, agent: str | None = None, project: str | None = None) -> str:
    """Return the scope of a user, an agent or a project, asked for by a handle at a scope."""
    project, user = project or project_of(scope), user or user_of(scope)
    if agent is not None:
        return scope if project or user else f"/agents/{agent}"
    return (f"/projects/{project}" if project else "") + (f"/users/{user}" if user else "")


def check_name(kind: str, name: str) -> str:
    """Return the name of a user, an agent or a project."""
    if isinstance(name, str) and "/" not in name and is_scope(f"/{kind}s/{name}"):
        return name
    raise InvalidInput(
        f"the name of a {kind} is 1 to 64 letters of ASCII, digits and `. _ -`, the first no `.` or `-`: use an id "
        "such as u-1042 in place of an address, and give what people are called as `names`"
    )


def check_user_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the further names of a user."""
    found = (names,) if isinstance(names, str) else tuple(names)
    if len(found) > MAX_NAMES or not all(
        isinstance(each, str) and each.isprintable() and each.strip() for each in found
    ):
        raise InvalidInput(f"names of a user are at most {MAX_NAMES} lines of text, such as names=['Ana Silva']")
    if any(len(each) > MAX_NAME_LENGTH for each in found):
        raise InvalidInput(f"a name of a user has at most {MAX_NAME_LENGTH} characters")
    return found


class Handles(ForeignMethodHints, MemoryAPI):
    """A handle that gives those of users, agents and projects."""

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
        """Return a handle of a user, somebody whom the agent talks with; ``names`` are what they are called.

        What is written by it is about the user, unless a ``subject`` is named. Asked by it, "I" is the user.

        Raises:
            InvalidInput: a name is none.
            Unauthorised: the token does not reach there.
        """
        return self._handle_for(user=check_name("user", name), names=check_user_names(names))

    def agent(self, name: str) -> Self:
        """Return a handle of an agent, a program; in a project or at a user it writes there, for others to see.

        An owner's handle gives one with an agent's rights. A token's bearer stays who it is.
        """
        return self._handle_for(agent=check_name("agent", name))

    def project(self, name: str) -> Self:
        """Return a handle of a project, a place of work that its agents share."""
        return self._handle_for(project=check_name("project", name))

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
    ) -> ErasePlan | Erased:
        """Carry out exactly the plan with this digest, given what it was planned for; without a digest, plan.

        A user's handle that names nothing means all that is the user's and all that cites it:
        ``plan = ana.erase()`` and, once it was looked at, ``ana.erase(plan.digest)``.

        Raises:
            Conflict: what would be erased has changed; nothing was erased.
        """
        chosen: Any = {"subject": subject, "source": source, "reason": reason, "include_citing": include_citing}
        return self.plan_erase(ids, **chosen) if digest is None else super().erase(digest, ids, **chosen)
