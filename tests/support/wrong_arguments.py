"""Wrong arguments, generated from signatures: each case replaces one argument of a call that is right.

A test of a surface makes the calls. ``TAKEN`` lists what the library takes on purpose; a surface may take more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from inspect import Parameter, signature, unwrap
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from keepward import Policy
from keepward.core import change

SURROGATE, NUL, LONG = "a\ud800b", "a\0b", "word " * 2_000_000


class Call(NamedTuple):
    """A call with arguments that are right."""

    name: str
    run: Callable[..., Any]
    #: The types of its parameters, by name.
    parameters: Mapping[str, Any]
    args: Mapping[str, Any]
    #: A handle on the store that it must not change.
    store: Any


class Case(NamedTuple):
    """A call with one wrong argument."""

    call: str
    #: With a dot if it is a part of a group, such as ``filters.tiers``.
    argument: str
    #: What is wrong, such as ``nan``.
    wrong: str
    value: Any

    def __str__(self) -> str:
        return f"{self.call}({self.argument}: {self.wrong})"

    def in_words(self) -> tuple[str, ...]:
        """Return the case as a table lists it: for this call, for each call, for each argument."""
        own = f"{self.argument.rpartition('.')[2]}: {self.wrong}"
        return f"{self.call}.{self.argument}: {self.wrong}", own, f"*: {self.wrong}"


def parameters_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the named parameters of a function."""
    named = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    # The fields of a change have their types where the change is defined.
    names = vars(change) if hasattr(unwrap(function), "__signature__") else {}
    names = {**names, **getattr(unwrap(function), "__globals__", {})}
    types: dict[str, Any] = {}
    for each in signature(function).parameters.values():
        if each.kind not in named or each.name in {"self", "cls"}:
            continue
        while isinstance(each.annotation, str) and each.name not in types:
            try:
                types[each.name] = eval(each.annotation, names)
            except NameError as imported_for_types_only:
                names[imported_for_types_only.name] = object
        types.setdefault(each.name, each.annotation)
    return types


def nested(depth: int) -> dict[str, Any]:
    """Return an object that contains one that contains one, to a depth."""
    made: dict[str, Any] = {}
    for _ in range(depth - 1):
        made = {"a": made}
    return made


_NAIVE, _FIRST = datetime(2026, 1, 1), datetime(1, 1, 1, tzinfo=UTC)  # noqa: DTZ001  naive on purpose
_LAST = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
#: For every parameter.
_NEVER: Mapping[str, Any] = {"object": object(), "complex": 1j}
_NUMBERS: Mapping[str, Any] = {
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "10**22": 10**22,
    "2**63": 2**63,
    "10**400": 10**400,
    "-10**400": -(10**400),
    "-1": -1,
    "bool": True,
    "list": [7],
    "dict": {"x": 1},
    "bytes": b"7",
}
_TEXTS: Mapping[str, Any] = {"NUL": NUL, "surrogate": SURROGATE, "empty": "", "blank": " \t", "10 MB": LONG}
_IN_JSON: Mapping[str, Any] = {
    "nan": math.nan,
    "inf": math.inf,
    "10**20": 10**20,
    "10**400": 10**400,
    "NUL": NUL,
    "surrogate": SURROGATE,
    "object": object(),
    "set": {1},
    "bytes": b"x",
    "tuple": (1, 2),
    "datetime": _FIRST,
    "10 MB": LONG,
}
#: What is wrong, by what a parameter takes.
WRONG: Mapping[str, Mapping[str, Any]] = {
    "text": {**_TEXTS, "int": 7, "bytes": b"x", "list": ["x"], "dict": {"x": 1}, "path": Path("x"), "nan": math.nan},
    "name": {**_TEXTS, "unknown": "nonesuch", "capitals": "NONESUCH", "int": 7, "list": ["x"], "bytes": b"x"},
    "int": {**_NUMBERS, "0": 0, "1.5": 1.5, "text": "7"},
    "float": {**_NUMBERS, "1.5": 1.5, "text": "0.5"},
    "bool": {"0": 0, "1": 1, "text": "yes", "list": [True], "nan": math.nan},
    "list": {
        "text": "x",
        "int": 7,
        "dict": {"x": 1},
        "bytes": b"x",
        "set of int": {7},
        "None in it": [None],
        "int in it": [7],
        "list in it": [["x"]],
        "object in it": [object()],
        "unknown in it": ["no such/!"],
        **{f"{name} in it": [value] for name, value in _TEXTS.items()},
        "2,001 in it": [f"x{n}" for n in range(2_001)],
        "empty list": [],
        "twice in it": ["x", "x"],
    },
    "numbers": {"text": "x", "int": 7, "nan in it": [math.nan], "10**400 in it": [10**400], "text in it": ["x"]},
    "dict": {
        "text": "x",
        "int": 7,
        "list": [1],
        "bytes": b"x",
        "int as key": {7: 1},
        "NUL in a key": {NUL: 1},
        "surrogate in a key": {SURROGATE: 1},
        "depth 37": nested(37),
        "depth 3,000": nested(3_000),
        **{f"{name} in it": {"a": value} for name, value in _IN_JSON.items()},
    },
    "instant": {
        **_TEXTS,
        "naive": _NAIVE,
        "year 1": _FIRST,
        "year 9999": _LAST,
        "date": date(2026, 1, 1),
        "words": "yesterday",
        "year 1 as text": "0001-01-01T00:00:00Z",
        "year 9999 as text": "9999-12-31T23:59:59Z",
        "beyond year 9999": "9999-12-31T23:59:59-23:00",
        "list": ["x"],
        "bytes": b"x",
        "nan": math.nan,
    },
    "as of": {**_NUMBERS, **_TEXTS, "naive": _NAIVE, "year 1": _FIRST, "year 9999": _LAST, "words": "yesterday"},
    "duration": {
        **_NUMBERS,
        **_TEXTS,
        "0": 0,
        "words": "soon",
        "longest": timedelta.max,
        "negative": timedelta(-1),
    },
    "bytes": {"text": "x", "int": 7, "list": [1], "empty": b""},
    "function": {"text": "x", "int": 7},
    "path": {**_TEXTS, "int": 7, "list": ["x"], "bytes": b"x"},
    "other": {"text": "x", "int": 7, "list": [1], "dict": {"x": 1}, "bytes": b"x"},
}
#: The first that a type is or has, with the row above.
_ROWS: Sequence[tuple[Callable[[set[Any]], bool], str]] = (
    (lambda kinds: {datetime, int} <= kinds, "as of"),
    (lambda kinds: timedelta in kinds, "duration"),
    (lambda kinds: datetime in kinds, "instant"),
    (lambda kinds: Path in kinds, "path"),
    (lambda kinds: any(isinstance(each, type) and issubclass(each, Mapping) for each in kinds), "dict"),
    (lambda kinds: any(isinstance(each, type) and issubclass(each, list | tuple) for each in kinds), "list"),
    (lambda kinds: Sequence in kinds, "list"),
    (lambda kinds: Literal in kinds, "name"),
    *((lambda kinds, kind=kind: kind in kinds, row) for kind, row in ((bool, "bool"), (str, "text"))),  # type: ignore[misc]
    *((lambda kinds, kind=kind: kind in kinds, row) for kind, row in ((float, "float"), (int, "int"))),  # type: ignore[misc]
    (lambda kinds: bytes in kinds, "bytes"),
    (lambda kinds: Callable in kinds, "function"),
)


def _parts(hint: Any) -> list[Any]:
    """Return the types of which a value may be."""
    if get_origin(hint) is Annotated:
        return _parts(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return [part for each in get_args(hint) for part in _parts(each)]
    return [type(None) if hint is None else hint]


def wrong_values(hint: Any) -> dict[str, Any]:
    """Return the values that are wrong for a type, by what is wrong."""
    parts = _parts(hint)
    kinds = {get_origin(each) or each for each in parts}
    row = next((row for matches, row in _ROWS if matches(kinds)), "other")
    if row == "list" and any(get_args(each)[:1] == (float,) for each in parts):
        row = "numbers"
    return {**WRONG[row], **_NEVER, **({} if type(None) in parts else {"None": None})}


def cases(call: Call) -> Iterator[Case]:
    """Yield the cases of a call: each parameter with each value that is wrong for it, and with a misspelt name."""
    for name, hint in call.parameters.items():
        for wrong, value in wrong_values(hint).items():
            yield Case(call.name, name, wrong, value)
        yield Case(call.name, f"{name}x", "misspelt", call.args.get(name))
        for group in filter(is_typeddict, _parts(hint)):
            for part, part_hint in get_type_hints(group).items():
                for wrong, value in wrong_values(part_hint).items():
                    yield Case(call.name, f"{name}.{part}", wrong, group(**{part: value}))
            yield Case(call.name, f"{name}.tagsx", "misspelt", {"tagsx": ["a"]})


def arguments_of(call: Call, case: Case) -> dict[str, Any]:
    """Return the arguments of a case."""
    return {**call.args, case.argument.partition(".")[0]: case.value}


def sample(every: Sequence[Case], share: int) -> list[Case]:
    """Return one case in so many, the same in each run; cases with a long text only are left to the whole."""
    return [case for number, case in enumerate(every) if number % share == 0 and "10 MB" not in case.wrong]


#: What is taken on purpose, by argument and what is odd about it, with the reason. ``*`` stands for every argument;
#: a name with a dot belongs to one call.
TAKEN: Mapping[str, str] = {
    "reason: empty": "a default reason is recorded",
    "reason: blank": "a default reason is recorded",
    "objective: empty": "a context without an objective has what every prompt needs",
    "context.summaries: 0": "none, the default",
    "objective: blank": "a context without an objective has what every prompt needs",
    "memory_block.query: empty": "the newest memories",
    "memory_block.query: blank": "the newest memories",
    **{f"draft.{verb}.consent: 0": "it equals the default" for verb in ("insert", "replace", "append")},
    **{
        f"Policy.{each.name}: 0": "none at all"
        for each in msgspec.structs.fields(Policy)
        if each.type in (int, int | None)
    },
    **{f"Policy.{name}: 2,001 in it": "there is no maximum" for name in ("scopes", "core_keys")},
    **{f"Policy.core_keys: {odd}": "a key is the owner's own word" for odd in ("unknown in it", "10 MB in it")},
    "user.names: text": "one name",
    "user.names: unknown in it": "names of a person have any form",
    "Memory.open.embedder_prefixes: empty": "only a server or a runner reads it",
    "Memory.open.embedder_prefixes: blank": "only a server or a runner reads it",
    "Memory.open.embedder_prefixes: 10 MB": "only a server or a runner reads it",
    "Memory.open.embedder_prefixes: NUL": "only a server or a runner reads it",
    "Memory.open.embedder_prefixes: surrogate": "only a server or a runner reads it",
    "Memory.open.embedder_timeout: None": "no time is too long",
    "Memory.open.embedder_timeout: int": "seconds",
    **{f"Memory.open.counter: {odd}": "it has a method `count`" for odd in ("bytes", "list")},
    **{
        f"Memory.open.{part}: {odd}": "an empty setting names none"
        for part in ("redactor", "reranker")
        for odd in ("empty", "blank")
    },
    "Memory.open.redactor: bytes": "it has a method `find`",
    **{
        f"Memory.open.{file}: 10 MB": "a file that cannot be, as one that is missing"
        for file in ("identity", "user_file")
    },
    "Memory.open.config_dir: 10 MB": "a path that cannot be, as on a machine without a home folder",
    "content_type: None": "every memory has one, so None is the default",
    "erase.digest: None": "without a digest it returns the plan",
    "since: 0": "the empty store",
    "offset: 0": "the first page",
    "zone: 0": "UTC",
    "zone: -1": "a minute west of UTC",
    "*: year 1": "a bound before all memories",
    "*: year 9999": "a bound after all memories",
    "*: year 1 as text": "a bound before all memories",
    "*: year 9999 as text": "a bound after all memories",
    "*: twice in it": "a repeated item counts once",
    "*: empty list": "no filter, or nothing to do",
    "text: blank": "a part of a text may be a blank",
    "where: 10 MB in it": "a condition compares with any text",
    "where: tuple in it": "a tuple is a list",
    "where: 10**20 in it": "a condition compares with any value",
    "where: 10**400 in it": "a condition compares with any value",
    "where: NUL in a key": "a condition compares with any value",
    "where: NUL in it": "a condition compares with any value",
    "where: inf in it": "a condition compares with any value",
    "where: nan in it": "a condition compares with any value",
    "where: surrogate in a key": "a condition compares with any value",
    "where: surrogate in it": "a condition compares with any value",
    "aliases: unknown in it": "the ids of other systems have any form",
    "evidence: unknown in it": "references have any form",
    "tags: unknown in it": "tags are the caller's own words",
    "without: unknown in it": "it may name a block that is missing",
    "without: blank in it": "it may name a block that is missing",
    "seen: unknown in it": "a memory may be gone since the model read it",
    "seen: blank in it": "a memory may be gone since the model read it",
    "seen: 2,001 in it": "only a request over HTTP has a maximum",
    "memory_ids: unknown in it": "the answer lists what does not exist",
    "memory_ids: blank in it": "the answer lists what does not exist",
    "memory_ids: 2,001 in it": "the answer lists what does not exist",
    "ids: unknown in it": "each item has its own answer",
    "ids: blank in it": "each item has its own answer",
    "ids: 2,001 in it": "each item has its own answer",
    "items: unknown in it": "each item has its own answer",
    "items: blank in it": "each item has its own answer",
    "items: empty in it": "each item has its own answer",
    "items: 10 MB in it": "each item has its own answer",
    "items: 2,001 in it": "each item has its own answer",
}
#: Other words for an argument in messages.
WORDS: Mapping[str, tuple[str, ...]] = {
    "as_of": ("past state",),
    "earlier": ("past state",),
    "later": ("past state",),
    "until": ("past state",),
    "ttl": ("time to live",),
    "occurred_at": ("a date",),
    "within": ("scope",),
    "scopes": ("scope",),
    "data": ("blob",),
    "items": ("text", "item", "field"),
    "ref": ("blob",),
    "statuses": ("status",),
    "memory_id": ("id is", "id contains"),
    "memory": ("such text",),
    "used": ("memories",),
    "ignored": ("memories",),
    "name": ("session", "a user", "an agent", "a project"),
}


def refused(result: Any) -> str | None:
    """Return the reasons of a refused write; None for any other result."""
    found = [result, getattr(result, "outcome", None), *(result if isinstance(result, list | tuple) else ())]
    outcome = next((each for each in found if type(each).__name__ == "Refused"), None)
    return None if outcome is None else "; ".join(reason.detail for reason in outcome.reasons)


def unnamed(case: Case, message: str) -> str:
    """Return a fault if a message does not name the argument of a case."""
    name = case.argument.rpartition(".")[2]
    words = {name, name.removesuffix("_id").removesuffix("s"), *WORDS.get(name, ())}
    plain = message.replace("_", " ")
    return "" if any(word.replace("_", " ") in plain for word in words) else f"does not name it: {message[:160]}"
