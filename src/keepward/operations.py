"""Operations: what is known of each, read from the signature of its method in ``api.py``.

The library, the awaited handle, the client, HTTP routes, tools and commands all use ``OPERATIONS``.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib import import_module
from inspect import Parameter, Signature, getdoc, signature
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import msgspec

from keepward.core.change import Append, Insert, Move, Replace
from keepward.core.proposal import Outcome
from keepward.core.value import Data, unknown_field_message
from keepward.errors import InvalidInput
from keepward.services.arguments import argument_reader
from keepward.types import FIELDS, PARAMETERS, Alias, Limit, Local, RequiredInJson

if TYPE_CHECKING:
    from keepward.services.request_context import RequestContext

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

#: The default of a parameter that has to be given.
REQUIRED: Any = Parameter.empty
#: Operations by name, in the order of ``api.py``.
OPERATIONS: dict[str, Operation] = {}
#: What to do instead of giving an argument that other systems have.
_HINTS = {
    **dict.fromkeys(("scope", "tenant"), "it asks from where the handle stands: `at(scope=...)` gives one elsewhere"),
    "id": "ids are given by the store; keep a foreign id in `aliases`",
    "user_id": 'a user has a handle: memory.user("ana").add(...)',
    "agent_id": 'an agent has a handle: memory.agent("planner").add(...)',
    "run_id": 'a run is a session: add(..., session="run-1")',
    **dict.fromkeys(("top_k", "k"), 'the number of hits is `limit`: recall("...", limit=5)'),
}


class UnknownParameter(InvalidInput, TypeError):
    """An argument that the operation does not take, or one that is missing."""


class Argument(NamedTuple):
    """A parameter of an operation."""

    #: In Python.
    name: str
    #: In JSON and in a query.
    wire: str
    #: Its type in JSON, with ``Limit`` and ``Judged`` in ``Annotated``.
    kind: Any
    #: ``REQUIRED`` where it has to be given.
    default: Any
    #: Its description; empty where the name says all.
    doc: str
    #: The parameter whose value holds it, such as ``filters``; None for a parameter of its own.
    within: str | None = None


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation and where it is offered."""

    name: str
    #: The method in ``api.py``; its signature and docstring define the operation.
    method: Callable[..., Any]
    #: Name of the function that carries it out, as ``module:name`` below ``keepward``.
    by: str
    #: ``read``, ``propose``, ``approve``, ``erase``, or ``owner``, which is a class of principals and not a right.
    right: str
    #: Method and path of the HTTP API; names in braces are parameters.
    http_method: str
    path: str
    #: HTTP status of the answer; 0 for the usual one.
    own_status: int
    #: Key of the result in the answer, or one for each part of it; empty where the result is the whole answer.
    answer: str
    #: Whether it changes something: it counts against the rate of changes.
    changes: bool
    #: Name of the tool for models; empty where there is none.
    tool: str
    #: What the owner alone does, such as ``rebuilding``; empty where others may.
    owner: str
    #: The change that it proposes, whose fields it takes; None for an operation of another sort.
    makes: type[Data] | None

    def run(self, session: RequestContext, args: Mapping[str, Any], local: Mapping[str, Any]) -> Any:
        """Carry it out in an open store."""
        if self.owner:
            session.require_owner(self.owner, "erase" if self.right == "erase" else "admin")
        # A change has defaults of its own: what was not given stays as it is.
        asked = args if self.makes is not None else {**self._defaults, **args}
        return self.function(session, **asked, **local)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function that carries it out; it is imported when it is first needed."""
        module, name = self.by.split(":")
        found: Callable[..., Any] = getattr(import_module(f"keepward.{module}"), name)
        return found

    def read(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with plain types: texts, numbers, tuples.

        Raises:
            InvalidInput: a value of another type; the message names the argument.
        """
        readers, defaults = self._readers, self.signature.parameters
        return {
            name: readers[name](name, value) if name in readers and value is not defaults[name].default else value
            for name, value in args.items()
        }

    @cached_property
    def signature(self) -> Signature:
        """The parameters after ``self``, and the result, with their types."""
        found = signature(self.method, eval_str=True)
        return found.replace(parameters=list(found.parameters.values())[1:])

    @property
    def result(self) -> Any:
        """The type of what it returns."""
        return self.signature.return_annotation

    @property
    def is_one_write(self) -> bool:
        """Whether it returns what became of one write."""
        return self.result in (Outcome, Outcome | None)

    @property
    def status(self) -> int:
        """HTTP status of the answer when it was carried out."""
        return self.own_status or (201 if self.is_one_write else 200)

    @cached_property
    def arguments(self) -> Mapping[str, Argument]:
        """What can be sent, by its name in JSON, in order; the fields of a group such as ``filters`` stand alone."""
        found: dict[str, Argument] = {}
        for each in self.signature.parameters.values():
            group = _group(each.annotation)
            if self._kind(each.name) is Local:
                continue
            if group is None:
                made = [_argument(each.name, self._kind(each.name), each.annotation, each.default)]
            else:
                made = [
                    _argument(one.name, self._kind(one.name), one.type, one.default, within=each.name)
                    for one in msgspec.structs.fields(group)
                ]
            found.update((one.wire, one) for one in made)
        return MappingProxyType(found)

    @property
    def doc(self) -> str:
        """Its description without the part on errors."""
        return (getdoc(self.method) or "").partition("\n\nRaises:")[0].replace("``", "`").strip()

    def is_local(self, name: str) -> bool:
        """Return whether a parameter stays in this process, such as ``on_progress``."""
        return self._kind(name) is Local

    def _kind(self, name: str) -> Any:
        own = PARAMETERS.get(f"{self.name}.{name}")
        if own is None and self.makes is not None:
            own = FIELDS.get(name)
        return PARAMETERS.get(name) if own is None else own

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        found = self.signature.parameters.items()
        return {name: each.default for name, each in found if each.default is not REQUIRED and not self.is_local(name)}

    @cached_property
    def _readers(self) -> Mapping[str, Any]:
        found = {
            each.name: argument_reader(each.name, each.kind) for each in self.arguments.values() if not each.within
        }
        # The fields of a change are read together.
        fields = self.makes.__struct_fields__ if self.makes in (Insert, Replace, Append, Move) else ()
        return {name: read for name, read in found.items() if read is not None and name not in fields}


def operation(
    http: str,
    *,
    by: str = "",
    name: str = "",
    right: str,
    status: int = 0,
    answer: str = "",
    changes: bool | None = None,
    tool: str = "",
    owner: str = "",
    makes: type[Data] | None = None,
    into: dict[str, Operation] = OPERATIONS,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make an operation of a method without a body; ``http`` is a method and path, such as ``GET /memory/search``.

    ``by`` is the function that carries it out, such as ``services.search:recall``. It takes a session and the
    parameters of the method by name. ``name`` takes the place of the method's.
    """
    http_method, path = http.split(" ")

    def made(method: Callable[P, R]) -> Callable[P, R]:
        called = name or method.__name__
        code = method.__code__
        places = code.co_varnames[1 : code.co_argcount]
        known = frozenset(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
        optional = places[len(places) - len(method.__defaults__ or ()) :]
        needed = known - (method.__kwdefaults__ or {}).keys() - {*optional}
        writes = right != "read" and http_method != "GET" and not called.startswith("plan_")
        about = into[called] = Operation(
            name=called,
            method=method,
            by=by,
            right=right,
            http_method=http_method,
            path=path,
            own_status=status,
            answer=answer,
            changes=writes if changes is None else changes,
            tool=tool,
            owner=owner,
            makes=makes,
        )

        @wraps(method)
        def call(self: Any, /, *args: Any, **named: Any) -> Any:
            if len(args) > len(places):
                raise UnknownParameter(f"{called} takes {', '.join(places) or 'nothing'} by place, the rest by name")
            given = dict(zip(places, args, strict=False))
            for each, value in named.items():
                if each not in known:
                    raise UnknownParameter(
                        f"{called}: {_HINTS.get(each) or unknown_field_message('argument', each, known)}"
                    )
                if each in given:
                    raise UnknownParameter(f"{called} is given {each} twice")
                given[each] = value
            if missing := sorted(needed - given.keys()):
                raise UnknownParameter(f"{called} needs {', '.join(missing)}")
            return self._send(about, given)

        return call  # type: ignore[return-value]

    return made


def async_method(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return a method of a handle or draft as one of its awaited twin, which calls it in a thread."""

    @wraps(method)
    async def call(self: Any, /, *args: P.args, **named: P.kwargs) -> R:
        # By name: a handle may be of a class that narrows a method.
        result: R = await self._threads.run(getattr(self._target, method.__name__), *args, **named)
        return result

    return call


def split_arguments(about: Operation, args: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments that can be sent, and those that stay in this process."""
    local = {name: value for name, value in args.items() if about.is_local(name)}
    return {name: value for name, value in args.items() if name not in local}, local


def _argument(name: str, kind: Any, hint: Any, default: Any, within: str | None = None) -> Argument:
    if default is msgspec.NODEFAULT:
        default = REQUIRED
    notes = list(_notes(kind))
    if RequiredInJson in notes:
        default = REQUIRED
    if kind is None:
        kind = hint
    else:
        kind = _optional(kind) if _takes_none(hint) and default is not REQUIRED else _without_none(kind)
    wire = next((each.name for each in notes if isinstance(each, Alias)), name)
    doc = next((each.doc for each in notes if isinstance(each, Limit) and each.doc), "")
    return Argument(name, wire, kind, default, doc, within)


def _takes_none(hint: Any) -> bool:
    return type(None) in get_args(hint)


def _optional(kind: Any) -> Any:
    return kind if _takes_none(kind) else kind | None


def _without_none(kind: Any) -> Any:
    """Return a type without None."""
    if not _takes_none(kind):
        return kind
    return Union[tuple(each for each in get_args(kind) if each is not type(None))]  # noqa: UP007  known when it runs


def _group(hint: Any) -> type[msgspec.Struct] | None:
    """Return the class of a group of parameters, such as ``Filters``."""
    kinds = (hint, *get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return next((each for each in kinds if isinstance(each, type) and getattr(each, "is_group", False)), None)


def _notes(kind: Any) -> Iterator[Any]:
    """Yield what is noted of a type: its own notes, then those of its parts."""
    if get_origin(kind) is Annotated:
        inner, *own = get_args(kind)
        # What was noted last describes it as a whole.
        yield from reversed(own)
        yield from _notes(inner)
    elif get_origin(kind) in (Union, types.UnionType, list):
        for each in get_args(kind):
            yield from _notes(each)
