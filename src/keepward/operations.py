"""The registry of operations, read from the signatures of the methods in ``api.py``.

The library, the async handle, the client, HTTP routes, MCP tools and commands all use ``OPERATIONS``.

Late imports: a program that does not need it starts faster.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from importlib import import_module
from inspect import CO_VARKEYWORDS, Parameter, Signature, get_annotations, getdoc, signature
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from msgspec import Meta

from keepward.core.change import Append, ChangedFields, Insert, Move, NewFields, Replace
from keepward.core.foreign_words import handle_of, known_argument
from keepward.core.principals import BRANCH_PREFIX
from keepward.core.proposal import Outcome
from keepward.core.query import Filter, Filters, SearchFilters
from keepward.core.value import Data, unknown_field_message
from keepward.errors import InvalidInput
from keepward.services.argument_types import argument_reader, group_reader
from keepward.services.arguments import plain_text
from keepward.types import FIELDS, PARAMETERS, Alias, Local, RequiredInJson

if TYPE_CHECKING:
    from keepward.services.request_context import RequestContext

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _defaults_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return {each.name: each.default for each in msgspec.structs.fields(struct)}


#: The defaults of filters; those of these names differ from their parsed form.
_NO_FILTERS = _defaults_of(Filter) | {
    "scopes": (),
    "below": False,
    "within": None,
    "where": None,
    "include_ended": False,
}
#: The default of a required parameter.
REQUIRED: Any = Parameter.empty
#: Operations by name, in the order of ``api.py``.
OPERATIONS: dict[str, Operation] = {}
#: Defaults of the fields that operations take by name, by the class that lists these fields.
_FIELD_DEFAULTS: Mapping[Any, Mapping[str, Any]] = {
    # A new memory without a scope is at the handle's.
    NewFields: _defaults_of(Insert) | {"scope": None},
    ChangedFields: _defaults_of(Replace),
    SearchFilters: _NO_FILTERS,
    Filters: _NO_FILTERS | {"include_sensitive": True},
}
#: By what an argument names: the sentence about it. No operation has such an argument.
_HANDLE_HINTS = {
    "user": 'a user has a handle: memory.user("ana").{name}(...)',
    "agent": 'an agent has a handle: memory.agent("planner").{name}(...)',
    "project": 'a project has a handle: memory.project("shop").{name}(...)',
    "scope": 'it is that of the handle: memory.at(scope="/agents/planner").{name}(...)',
    "tenant": 'it is that of the handle: memory.at(tenant="acme").{name}(...)',
    "session": 'it is about all sessions; one session is read by memory.recall("...", session="s1")',
}


class UnknownParameter(InvalidInput, TypeError):
    """An unknown or missing argument of an operation."""


class Argument(NamedTuple):
    """A parameter of an operation."""

    #: In Python.
    name: str
    #: In JSON and in a query.
    wire: str
    #: Its type in JSON, with limits and a description in ``Annotated``.
    kind: Any
    #: ``REQUIRED`` if it has none.
    default: Any
    #: Its description; empty if the name says enough.
    doc: str
    #: The group that contains it, such as ``filters``; None for a separate parameter.
    within: str | None = None


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation and its surfaces."""

    name: str
    #: The method in ``api.py``; its signature and docstring define the operation.
    method: Callable[..., Any]
    #: Name of the function that implements it, as ``module:name`` below ``keepward``.
    by: str
    #: The right it needs: ``read``, ``propose``, ``approve``, ``erase``; or the role ``owner``.
    right: str
    #: Method and path of the HTTP API; names in braces are parameters.
    http_method: str
    path: str
    #: HTTP status of the response; 0 for the default.
    own_status: int
    #: Keys of the response with the parts of the result; empty if the result is the complete response.
    answer: str
    #: Whether it changes something; the rate limit of changes applies then.
    changes: bool
    #: Name of the MCP tool; empty if there is none.
    tool: str
    #: The action for error messages if only the owner may do it, such as ``rebuilding``; else empty.
    owner: str
    #: The change that it proposes, whose fields are its parameters; None if it proposes none.
    makes: type[Data] | None

    def run(self, context: RequestContext, args: Mapping[str, Any], local: Mapping[str, Any]) -> Any:
        """Run the operation in an open store."""
        if self.owner:
            context.require_owner(self.owner, "erase" if self.right == "erase" else "admin")
        # A change has defaults of its own; omitted fields stay unchanged.
        params = args if self.makes is not None else {**self._defaults, **args}
        from keepward.services.reading import scope_notes

        if context.scope.startswith(BRANCH_PREFIX):
            # A closed branch is neither read nor written.
            from keepward.services.branch_state import branch_state

            branch_state(context)
        if self.changes:
            return scope_notes.with_reasons(context, self.function(context, **params, **local))
        with context.engine.store.sharing_snapshot(context.tenant):
            # Asked first, as its answer comes with the head, which every read needs.
            notes = scope_notes.notes_of_read(context, args) if self.result in scope_notes.READS else ()
            return scope_notes.with_notes(self.function(context, **params, **local), notes)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function that implements it; imported at first use."""
        module, name = self.by.split(":")
        function: Callable[..., Any] = getattr(import_module(f"keepward.{module}"), name)
        return function

    def read(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with plain types, such as texts, numbers and tuples, within their limits.

        Raises:
            InvalidInput: another type, or outside the limits; the message names the argument.
        """
        readers, defaults = self._readers, self.signature.parameters
        return {
            name: readers[name](name, value) if name in readers and value is not defaults[name].default else value
            for name, value in args.items()
        }

    @cached_property
    def signature(self) -> Signature:
        """The parameters after ``self``, and the result, with their types."""
        shown = signature(self.method)
        hints = get_annotations(self.method, eval_str=True)
        if (fields := _fields_by_name(self.method)) is not None:
            hints = get_type_hints(fields) | hints
        parameters = [param.replace(annotation=hints[param.name]) for param in [*shown.parameters.values()][1:]]
        return shown.replace(parameters=parameters, return_annotation=hints["return"])

    @property
    def result(self) -> Any:
        """The type of what it returns."""
        return self.signature.return_annotation

    def as_object(self, result: Any) -> Any:
        """Return a result as its response has it: an object with the keys of ``answer``, if there are some."""
        keys = self.answer.split()
        return dict(zip(keys, result if len(keys) > 1 else [result], strict=True)) if keys else result

    @property
    def is_one_write(self) -> bool:
        """Whether it returns the outcome of one write."""
        return self.result in (Outcome, Outcome | None)

    @property
    def status(self) -> int:
        """HTTP status of a successful response."""
        return self.own_status or (201 if self.is_one_write else 200)

    @cached_property
    def arguments(self) -> Mapping[str, Argument]:
        """Its arguments by their names in JSON, in order; the fields of a group such as ``filters`` are separate
        arguments.
        """
        arguments: dict[str, Argument] = {}
        for param in self.signature.parameters.values():
            group = _group(param.annotation)
            if self.is_local(param.name):
                continue
            if group is None:
                made = [_argument(param.name, self._kind(param.name), param.annotation, param.default)]
            else:
                defaults = _FIELD_DEFAULTS[group]
                made = [
                    _argument(name, self._kind(name), hint, defaults[name], within=param.name)
                    for name, hint in get_type_hints(group).items()
                ]
            arguments.update((argument.wire, argument) for argument in made)
        return MappingProxyType(arguments)

    @property
    def doc(self) -> str:
        """Its docstring without the errors."""
        return (getdoc(self.method) or "").partition("\n\nRaises:")[0].replace("``", "`").strip()

    def documented(self, names: Iterable[str]) -> str:
        """Return its docstring with a list of the parameters with these names: the same words as on every surface."""
        prose, raises, errors = (getdoc(self.method) or "").partition("\n\nRaises:")
        docs = {name: _doc(self._kind(name)) for name in names}
        listed = "\n".join(f"* ``{name}``: {doc.replace('`', '``')}" for name, doc in docs.items() if doc)
        return prose + (f"\n\n{listed}" if listed else "") + raises + errors

    def is_local(self, name: str) -> bool:
        """Return whether a parameter is not sent to a server, such as ``on_progress``."""
        return name in self._local_names

    def _kind(self, name: str) -> Any:
        own = PARAMETERS.get(f"{self.name}.{name}")
        if own is None and self.makes is not None:
            own = FIELDS.get(name)
        return PARAMETERS.get(name) if own is None else own

    @cached_property
    def _local_names(self) -> frozenset[str]:
        kinds = {name: self._kind(name) for name in self.signature.parameters}
        return frozenset(name for name, kind in kinds.items() if kind is Local or Local in _notes(kind))

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        params = self.signature.parameters.items()
        return {
            name: param.default for name, param in params if param.default is not REQUIRED and not self.is_local(name)
        }

    @cached_property
    def _readers(self) -> Mapping[str, Any]:
        """The parsers of its arguments; the fields of a change that may be omitted are read together."""
        fields = self.makes.__struct_fields__ if self.makes in (Insert, Replace, Append, Move) else ()
        readers: dict[str, Any] = {}
        for param in self.signature.parameters.values():
            if param.name in fields:
                if param.default is REQUIRED:
                    readers[param.name] = plain_text
                continue
            group = _group(param.annotation)
            if group is None:
                each = _argument(param.name, self._kind(param.name), param.annotation, param.default)
                readers[param.name] = argument_reader(param.name, each.kind, param.annotation, each.wire)
                continue
            hints = get_type_hints(group)
            grouped = {
                each.name: argument_reader(each.name, each.kind, hints[each.name], each.wire)
                for each in self.arguments.values()
                if each.within == param.name
            }
            readers[param.name] = group_reader(group.__name__, grouped)
        return readers


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
    """Register a method without a body as an operation; ``http`` is a method and path, such as ``GET /memory/search``.

    ``by`` is the function that implements it, such as ``services.reading.queries:recall``. It takes the request context
    and the parameters of the method by name. ``name`` replaces the name of the method.
    """
    http_method, path = http.split(" ")

    def made(method: Callable[P, R]) -> Callable[P, R]:
        own_name = name or method.__name__
        code = method.__code__
        positional = code.co_varnames[1 : code.co_argcount]
        named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        described = [*positional, *named]
        if (fields := _fields_by_name(method)) is not None:
            described += fields.__annotations__
            shows_fields(method)
        known = frozenset(described)
        optional = positional[len(positional) - len(method.__defaults__ or ()) :]
        required = {*positional} - {*optional} | {*named} - (method.__kwdefaults__ or {}).keys()
        writes = right != "read" and http_method != "GET" and not own_name.startswith("plan_")
        about = into[own_name] = Operation(
            name=own_name,
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
            if len(args) > len(positional):
                raise UnknownParameter(
                    f"{own_name} takes {', '.join(positional) or 'nothing'} by position, the rest by name"
                )
            params = dict(zip(positional, args, strict=False))
            for param, value in named.items():
                if param not in known:
                    raise UnknownParameter(f"{own_name}: {_unknown_argument(own_name, param, (*positional, *known))}")
                if param in params:
                    raise UnknownParameter(f"{own_name} got {param} twice")
                params[param] = value
            if missing := sorted(required - params.keys()):
                raise UnknownParameter(f"{own_name} needs {', '.join(missing)}")
            return self._send(about, params)

        call.__doc__ = about.documented(described)
        return call  # type: ignore[return-value]

    return made


def shows_fields(method: Callable[P, R]) -> Callable[P, R]:
    """Let the signature of a method with ``**fields: Unpack[...]`` show each of them with its default."""
    own, fields = signature(method), _fields_by_name(method)
    by_name = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=_FIELD_DEFAULTS[fields][name], annotation=hint.__forward_arg__)
        for name, hint in fields.__annotations__.items()
    ]
    taken = [param for param in own.parameters.values() if param.kind is not Parameter.VAR_KEYWORD]
    method.__signature__ = own.replace(parameters=[*taken, *by_name])  # type: ignore[attr-defined]
    return method


def _fields_by_name(method: Callable[..., Any]) -> Any:
    """Return the class of the fields that a method takes as ``**fields: Unpack[...]``; None if it takes none."""
    code = method.__code__
    if not code.co_flags & CO_VARKEYWORDS:
        return None
    # Annotations are texts until something needs their types.
    annotation = method.__annotations__[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]]
    return method.__globals__[annotation.removeprefix("Unpack[").removesuffix("]")]


def _unknown_argument(operation: str, given: str, known: Sequence[str]) -> str:
    """Return the message about an unknown argument; the call here for one that names whose memory is meant."""
    if known_argument(given, known) is None:
        if handle := handle_of(given):
            return _HANDLE_HINTS[handle].format(name=operation)
        if given == "id":
            return "the store assigns ids; put a foreign id into `aliases`"
    return unknown_field_message("argument", given, known)


def async_method(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return a method of a handle or draft as a coroutine method that runs it in a thread."""

    @wraps(method)
    async def call(self: Any, /, *args: P.args, **named: P.kwargs) -> R:
        # The method is found by name, because the class of the handle may override it.
        result: R = await self._threads.run(getattr(self._target, method.__name__), *args, **named)
        return result

    return call


def split_arguments(about: Operation, args: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments to send, and the local ones."""
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
        kind = _optional(kind) if _takes_none(hint) and default is not REQUIRED else without_none(kind)
    wire = next((note.name for note in notes if isinstance(note, Alias)), name)
    return Argument(name, wire, kind, default, _doc(kind), within)


def _doc(kind: Any) -> str:
    """Return the description of a type; empty if it has none."""
    return next((note.description for note in _notes(kind) if isinstance(note, Meta) and note.description), "")


def _takes_none(hint: Any) -> bool:
    return type(None) in get_args(hint)


def _optional(kind: Any) -> Any:
    return kind if _takes_none(kind) else kind | None


def without_none(kind: Any) -> Any:
    """Return a type without None."""
    if not _takes_none(kind):
        return kind
    return Union[tuple(part for part in get_args(kind) if part is not type(None))]  # noqa: UP007  known when it runs


def _group(hint: Any) -> Any:
    """Return the class of a group of parameters, such as ``Filters``; None if it is one parameter."""
    kinds = (hint, *get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return next(filter(is_typeddict, kinds), None)


def parts_of(kind: Any) -> Iterator[Any]:
    """Yield a type, its notes, and the types in it."""
    yield kind
    if get_origin(kind) is not Literal:
        for part in get_args(kind):
            yield from parts_of(part)


def _notes(kind: Any) -> Iterator[Any]:
    """Yield the notes of a type, then those of its parts."""
    if get_origin(kind) is Annotated:
        inner, *own = get_args(kind)
        # The last note describes the complete type.
        yield from reversed(own)
        yield from _notes(inner)
    elif get_origin(kind) in (Union, types.UnionType, list):
        for part in get_args(kind):
            yield from _notes(part)
