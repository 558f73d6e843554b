"""The verbs as Python calls: a signature for each, over one way to send a request.

``Memory`` sends it to the store that it has opened, ``Client`` to a server; the values and the errors are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import CO_VARKEYWORDS, Parameter, signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from keepward import verbs
from keepward.core.value import meant
from keepward.verbs import Request

if TYPE_CHECKING:
    from typing import Self

P = ParamSpec("P")
R = TypeVar("R")


#: Arguments of other memory systems, each with what does it here.
ARGUMENTS: Mapping[str, str] = {
    "user_id": 'a user has a handle: memory.user("ana").add(...)',
    "agent_id": 'an agent has a handle: memory.agent("planner").add(...)',
    "run_id": 'a run is a session: add(..., session="run-1")',
    "top_k": 'the number of hits is `limit`: recall("...", limit=5)',
    "k": 'the number of hits is `limit`: recall("...", limit=5)',
}
#: Said to who names a place in a call that asks from where its handle stands.
_PLACE = "it asks from where the handle stands: `at(scope=...)` gives one elsewhere"


class Calls(ABC):
    """What carries out requests; as a context manager it closes itself at the end."""

    @property
    @abstractmethod
    def scope(self) -> str:
        """The scope this handle stands at."""

    @abstractmethod
    def close(self) -> None:
        """Release what the handle and all others beside it have open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError(
            "a handle is neither pickled nor copied: open the store, or make a client, in each process; `at()` gives "
            "another handle here"
        )

    @abstractmethod
    def _send(self, request: Request[R], **local: Any) -> R:
        """Have a request carried out; ``local`` is what stays in this process, such as ``on_progress``."""


def send(handle: Calls, request: Request[R], **local: Any) -> R:
    """Have a request carried out by a handle; for surfaces, which make requests from what they read."""
    return handle._send(request, **local)  # noqa: SLF001  a part of the handle


def sends(group: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Carry out the verb that has a method's name with the method's arguments; the method is its signature.

    What the verb's request does not name stays in this process; ``**fields`` are its ``values``, or where it has none
    arguments like any other.
    """

    def made(method: Callable[P, R]) -> Callable[P, R]:
        code = method.__code__
        places = code.co_varnames[1 : code.co_argcount]
        own = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        is_open = bool(code.co_flags & CO_VARKEYWORDS)

        @wraps(method)
        def call(self: Calls, /, *args: Any, **named: Any) -> Any:
            getattr(verbs, group)
            request = verbs.VERBS[method.__name__].request
            if len(args) > len(places):
                raise TypeError(f"{method.__name__} takes {', '.join(places) or 'nothing'} by place, the rest by name")
            given, local = dict(zip(places, args, strict=False)), {}
            lifts = is_open and "values" in request.names
            for name, value in named.items():
                if name in request.names and (name in own or (is_open and not lifts)):
                    given[name] = value
                elif name in own:
                    local[name] = value
                elif not lifts or name in ARGUMENTS:
                    near = ARGUMENTS.get(name) or (
                        _PLACE if name in {"scope", "tenant"} else meant(name, own | {*request.names})
                    )
                    raise TypeError(f"{method.__name__} takes no {name}; {near}".rstrip("; "))
            if lifts:
                given["values"] = {name: value for name, value in named.items() if name not in own}
            if missing := [name for name in places if name in request.needed - given.keys()]:
                raise TypeError(f"{method.__name__} needs {', '.join(missing)}")
            return self._send(request(**given), **local)

        return call  # type: ignore[return-value]

    return made


def sharing(other: Callable[..., Any], names: Collection[str]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Write out the ``**`` of a method in its signature: the arguments of these names, as another method has them."""

    def made(method: Callable[P, R]) -> Callable[P, R]:
        own = signature(method)
        shared = [each for each in signature(other).parameters.values() if each.name in names]
        parameters = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        at = next((place for place, each in enumerate(parameters) if each.kind is Parameter.KEYWORD_ONLY), None)
        at = len(parameters) if at is None else at
        written = own.replace(parameters=[*parameters[:at], *shared, *parameters[at:]])
        method.__signature__ = written  # type: ignore[attr-defined]
        return method

    return made


def taking(other: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Give a method the arguments of another one, with their defaults."""

    def made(method: Callable[..., R]) -> Callable[P, R]:
        written = signature(other).replace(return_annotation=signature(method).return_annotation)
        method.__signature__ = written  # type: ignore[attr-defined]
        return method

    return made
