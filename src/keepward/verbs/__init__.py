"""The registry of verbs: one request type a verb, from which every surface is derived.

A request names the arguments of a verb, with their limits and what is said of them; ``run`` carries it out on an opened
store. ``@verb`` says beside it what right it takes and where it stands in the HTTP API. The library, the awaited
handle, the client, routes, tools and commands read it from ``registry()``; how, tells docs/adr/0031.

Invariants
(1) What was not given is not in ``given``: left out and None are two things, and only None empties a field.
(2) Nothing here validates: values are read by surfaces (from JSON) and by ``arguments`` (from Python), and judged by
    the gates.
(3) Importing this package imports no engine: ``run`` does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

if TYPE_CHECKING:
    from keepward.services.session import Session
    from keepward.verbs import browse, erase, inquiry, journal, read, review, upkeep, write

R = TypeVar("R")
#: Modules that hold requests, in the order in which surfaces show them.
GROUPS = ("read", "browse", "write", "review", "journal", "inquiry", "erase", "upkeep")
__all__ = ["GROUPS", "MISSING", "VERBS", "Argument", "Judged", "Limit", "Request", "Verb", "Wire", "arguments_of"]
__all__ += ["browse", "erase", "inquiry", "journal", "read", "registry", "review", "upkeep", "verb", "write"]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


#: Stands for the default of an argument that has to be given.
MISSING: Any = _Missing()
#: The default of a list.
NONE: Any = ()


class Limit:
    """Limits that a surface refuses an argument by, in words of JSON Schema, and what is said of it."""

    __slots__ = ("doc", "schema")

    def __init__(self, doc: str = "", **schema: Any) -> None:
        self.doc, self.schema = doc, MappingProxyType(schema)


class Judged(Limit):
    """Limits that stand in the schema and are judged by a gate, so that a refusal has reasons and a receipt."""


class Wire(NamedTuple):
    """How an argument is called in a query, where that differs."""

    name: str


class Argument(NamedTuple):
    """One argument of a verb."""

    #: As Python calls it.
    name: str
    #: As JSON and a query call it.
    wire: str
    #: Its type on the wire, with ``Limit`` and ``Judged`` in ``Annotated``.
    kind: Any
    #: ``MISSING`` where it has to be given.
    default: Any
    #: What surfaces say of it; empty where its name says all.
    doc: str
    #: Name of the field that it is lifted from, such as ``values``; None for one of the request's own.
    within: str | None = None


class Request(Generic[R]):
    """A verb with its arguments; the base of all requests, which are frozen and take keywords alone."""

    #: Fields of the class, in order, and those that have to be given.
    names: ClassVar[tuple[str, ...]] = ()
    needed: ClassVar[frozenset[str]] = frozenset()
    #: The function that carries it out, by its module, where ``run`` does no more than call it; see ``parameters``.
    function: ClassVar[str] = ""
    #: What takes an owner, in words.
    owner: ClassVar[str] = ""
    verb: ClassVar[Verb]
    __slots__ = ("__dict__",)

    def __init_subclass__(cls) -> None:
        own = [name for name, hint in inspect.get_annotations(cls).items() if "ClassVar" not in str(hint)]
        cls.names = (*cls.names, *(name for name in own if name not in cls.names))
        cls.needed = frozenset(name for name in cls.names if not hasattr(cls, name))

    def __init__(self, **given: Any) -> None:
        if wrong := sorted(self.needed - given.keys()) or sorted(given.keys() - set(self.names)):
            word = "needs" if wrong[0] in self.needed else "does not take"
            raise TypeError(f"{type(self).__name__} {word} {', '.join(wrong)}; it takes {', '.join(self.names)}")
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a request is frozen")

    def __repr__(self) -> str:
        # Names alone: what is asked for may be private.
        return f"{type(self).__name__}({', '.join(self.__dict__)})"

    def given(self) -> dict[str, Any]:
        """Return what was given, fields of its own and lifted ones side by side; see (1)."""
        found: dict[str, Any] = {}
        for name, value in self.__dict__.items():
            if name in LIFTED:
                found |= value
            else:
                found[name] = value
        return found

    def run(self, session: Session, *_: Any, **local: Any) -> R:
        """Carry it out in an opened store; ``local`` is what no surface sends, such as ``on_progress``."""
        if self.owner:
            session.owner(self.owner, "erase" if self.verb.right == "erase" else "admin")
        module, name = self.function.split(":")
        result: R = getattr(import_module(f"keepward.{module}"), name)(session, **self.parameters(session), **local)
        return result

    def parameters(self, session: Session) -> dict[str, Any]:
        """Return what the function is called with: the fields by name, unless a request says otherwise."""
        return {each: getattr(self, each) for each in self.names}


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb and where it is offered; its request and its result type say the rest."""

    name: str
    request: type[Request[Any]]
    #: ``read``, ``propose``, ``approve``, ``erase``, or ``owner``, which is a class of principals and not a right.
    right: str
    #: Under which surfaces show it.
    group: str
    #: Of the HTTP API; names in braces are arguments.
    method: str
    path: str
    #: What the API calls it.
    operation: str
    #: Of the answer that carried it out.
    status: int = 200
    #: Key that the result stands under in the answer, or one for each part of it; empty where it is the whole.
    answer: str = ""
    #: Whether it changes something: it counts against the rate of changes.
    changes: bool = False
    #: Name of the tool for models; empty where there is none.
    tool: str = ""

    @cached_property
    def result(self) -> Any:
        """The type of what it returns."""
        bases = (base for kind in self.request.__mro__ for base in kind.__dict__.get("__orig_bases__", ()))
        return next(kind for base in bases for kind in get_args(base) if not isinstance(kind, TypeVar))

    @cached_property
    def arguments(self) -> Mapping[str, Argument]:
        """Its arguments by wire name, in order."""
        return arguments_of(self.request)

    @property
    def doc(self) -> str:
        """What the API says of it."""
        return (self.request.__doc__ or "").replace("\n    ", "\n").strip()


#: Verbs by name; all of them are there after ``registry()``.
VERBS: dict[str, Verb] = {}
#: Fields whose members stand beside the request's own on the wire.
LIFTED = frozenset({"values"})
Q = TypeVar("Q", bound="type[Request[Any]]")


def verb(
    name: str,
    http: str,
    *,
    right: str,
    operation: str = "",
    status: int = 200,
    answer: str = "",
    changes: bool | None = None,
    group: str = "",
    tool: str = "",
    into: dict[str, Verb] = VERBS,
) -> Callable[[Q], Q]:
    """Put a request into a registry; ``http`` is a method and a path, such as ``GET /memory/search``."""
    method, path = http.split(" ")
    writes = right != "read" and method != "GET" and not name.startswith("plan_")

    def register(request: Q) -> Q:
        into[name] = request.verb = Verb(
            name=name,
            request=request,
            right=right,
            group=group or request.__module__.rpartition(".")[2],
            method=method,
            path=path,
            operation=operation or name,
            status=status,
            answer=answer,
            changes=writes if changes is None else changes,
            tool=tool,
        )
        return request

    return register


def registry() -> Mapping[str, Verb]:
    """Return every verb by name, group by group."""
    for name in GROUPS:
        import_module(f"{__name__}.{name}")
    return VERBS


def verb_of(request: type[Any]) -> Verb:
    found: Verb = request.verb
    return found


def arguments_of(request: type[Request[Any]]) -> Mapping[str, Argument]:
    """Return the arguments of a request by wire name; those of a lifted field stand in its place."""
    from keepward.verbs.fields import WIRE

    found: dict[str, Argument] = {}
    hints = get_type_hints(request, include_extras=True)
    for name in request.names:
        hint = hints[name]
        bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        if is_typeddict(bare):
            makes = request.makes  # type: ignore[attr-defined]  # every lifted field has one
            defaults = {each.name: each.default for each in msgspec.structs.fields(makes)}
            for each in get_type_hints(bare):
                found[each] = _argument(each, WIRE[each], defaults[each], within=name)
        else:
            default = getattr(request, name, MISSING)
            argument = _argument(name, hint, default)
            found[argument.wire] = argument
    return MappingProxyType(found)


def _argument(name: str, kind: Any, default: Any, within: str | None = None) -> Argument:
    notes = _notes(kind)
    wire = next((each.name for each in notes if isinstance(each, Wire)), name)
    doc = next((each.doc for each in notes if isinstance(each, Limit) and each.doc), "")
    return Argument(name, wire, kind, default, doc, within)


def _notes(kind: Any) -> list[Any]:
    """Return what is noted of a type: outermost last, those of an optional type's other half before."""
    if get_origin(kind) is Annotated:
        inner, *own = get_args(kind)
        return [*own, *_notes(inner)]
    return [note for each in get_args(kind) if each is not type(None) for note in _notes(each)][:4]


def __getattr__(name: str) -> Any:
    if name in GROUPS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
