"""Commands made from operations: the signature in ``api.py`` gives their arguments, options, types and defaults.

An option has the description of its parameter in ``types.py``. An option that was not given is not sent, so the
operation's own default applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter
from typing import Any, Literal, get_args, get_origin

import click
from msgspec import Meta

from keepward.api import OPERATIONS
from keepward.cli.command import COMMON_OPTIONS, Command, argument, option
from keepward.cli.command_context import CommandContext, CommandResult, DefaultRole, read_text
from keepward.cli.outcomes import write_result
from keepward.core.change import UNSET
from keepward.core.json_form import to_json
from keepward.core.value import load_json
from keepward.errors import InvalidInput
from keepward.operations import REQUIRED, Argument, Operation, parts_of

#: Names of values in help, where the type and the name of the option do not give one.
_METAVARS: Mapping[str, str] = {
    **dict.fromkeys(("memory_id", "proposal_id", "by", "derived_from", "leave_out", "memory", "used", "ignored"), "ID"),
    **dict.fromkeys(("memory_ids", "ids"), "ID..."),
    **dict.fromkeys(("receipt_id", "first", "second"), "RECEIPT"),
    **dict.fromkeys(("since", "until", "occurred_since", "occurred_until", "occurred_at", "as_of"), "TIME"),
    **dict.fromkeys(("valid_from", "valid_until", "valid_at"), "TIME"),
    **dict.fromkeys(("reason", "contains"), "TEXT"),
    **dict.fromkeys(("metadata", "where", "contents"), "JSON"),
    **dict.fromkeys(("before", "bisect.since"), "SEQ"),
    **dict.fromkeys(("evidence", "blob"), "REF"),
    "budget_tokens": "TOKENS",
    "plan_erase.reason": "REASON",
    "digest": "HEX",
    "ttl": "DURATION",
    "within": "SCOPE",
    "without": "NAME",
}
#: Flags that differ from the name, and parameters by position that are options in a command.
_FLAGS: Mapping[str, str] = {"budget_tokens": "--budget", "move.scope": "--to", "by": "--by", "merge.text": "--text"}
#: Names of parameters that an option of every command has.
_RENAMED = {"actor": "writer", "scope": "target"}
#: Flags that an option of every command has.
_COMMON_FLAGS = frozenset(flag for each in COMMON_OPTIONS.values() for flag in each.opts)
#: Arguments that `-` reads from stdin.
_STDIN = frozenset({"text", "query", "objective"})


def parameters(about: Operation, *, without: str = "", only: str = "", optional: str = "") -> Iterator[click.Parameter]:
    """Yield the arguments and options of an operation.

    ``only`` selects some, ``without`` leaves some out, and ``optional`` names one that the command can do without.
    Those with the flag of an option of every command, such as ``scopes``, are left out.
    """
    by_position = [
        name for name, each in about.signature.parameters.items() if each.kind is Parameter.POSITIONAL_OR_KEYWORD
    ]
    for each in sorted(about.arguments.values(), key=lambda each: each.name == "reason"):
        if each.name in without.split() or (only and each.name not in only.split()):
            continue
        is_optional = each.default is not REQUIRED or each.name == optional
        is_list = list in _kinds(each.kind)
        one = _name_of_one(each) if is_list else each.name
        text = _help(each)
        metavar, flag = _of(_METAVARS, about, each.name) or _metavar(each, one), _of(_FLAGS, about, each.name)
        if each.name in by_position and not flag:
            yield argument(f"[{metavar}]" if is_optional else str(metavar), text, each.name)
            continue
        flag = flag or "--" + one.replace("_", "-")
        if flag in _COMMON_FLAGS:
            continue
        named = _RENAMED.get(each.name, each.name) if each.name in COMMON_OPTIONS else each.name
        if is_list:
            yield option(flag, f"{text} May be repeated.".strip(), metavar, named, multiple=True)
        elif metavar is None:
            yield option(flag, text, name=named)
        else:
            default = each.default if is_optional and each.default is not UNSET else None
            yield option(flag, text, metavar, named, required=not is_optional, default=default)


def _help(each: Argument) -> str:
    """Return the help of an argument or option: its description, and what only a command takes."""
    text, choices = each.doc.replace("`", "").rstrip("."), _choices(each.kind)
    parts = [text.replace("one of these", choices or "one of these") or choices]
    parts += ["- reads stdin"] if each.name in _STDIN else []
    parts += ["`never` removes it"] if each.name == "ttl" and each.default is UNSET else []
    return "; ".join(part for part in parts if part) + "."


def operation_command(
    *own: click.Parameter, of: str = "", name: str = "", **chosen: str
) -> Callable[[Callable[..., CommandResult | None]], Command]:
    """Make a command of a function that takes the arguments of an operation, and parameters of its own.

    The operation is that of the function's name, or ``of``. The function gets only what the user named. ``chosen`` is
    for ``parameters``.
    """

    def made(function: Callable[..., CommandResult | None]) -> Command:
        title = name or function.__name__
        about = OPERATIONS[of or title]

        def run(call: CommandContext, **args: Any) -> CommandResult | None:
            return function(call, **_named(about, args))

        run.__doc__ = function.__doc__
        params = (*parameters(about, **chosen), *own)
        return Command(title.replace("_", "-"), run, params)

    return made


def simple_command(
    operation: str,
    role: DefaultRole = "propose",
    present: Callable[[Any], CommandResult] | None = None,
    **options: str,
) -> Command:
    """Return a command that runs an operation and prints its result. Its help is the docstring of the operation.

    The result of one write is shown as that of ``remember``; ``present`` shows it in another way.
    """
    about = OPERATIONS[operation]
    if present is None and about.is_one_write:
        present = write_result

    def run(call: CommandContext, **args: Any) -> CommandResult:
        result = getattr(call.memory(role), operation)(**args)
        return present(result) if present else CommandResult(to_json(about.as_object(result)))

    # What concerns HTTP only is left out.
    run.__doc__ = "\n\n".join(part for part in about.doc.split("\n\n") if "over http" not in part.lower())
    return operation_command(of=operation, **{"name": operation, **options})(run)


def _named(about: Operation, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that the user named, by the parameters of the operation."""
    names = {shown: name for name, shown in _RENAMED.items()}
    named = {
        names.get(shown, shown): value
        for shown, value in args.items()
        if value is not None and value is not False and value != ()
    }
    for name in _STDIN & named.keys():
        named[name] = read_text(named[name])
    for name in {"metadata", "contents"} & named.keys():
        named[name] = _json_object(name, named[name])
    if named.get("ttl") == "never" and about.signature.parameters["ttl"].default is UNSET:
        named["ttl"] = None
    return named


def _json_object(name: str, text: str) -> dict[str, Any]:
    """Return the object of an option."""
    try:
        value = load_json(text)
    except ValueError as fault:
        raise InvalidInput(f"--{name} is not JSON, or is nested too deeply") from fault
    if not isinstance(value, dict):
        raise InvalidInput(f"--{name} takes a JSON object")
    return value


def _of(table: Mapping[str, str], about: Operation, name: str) -> str:
    return table.get(f"{about.name}.{name}") or table.get(name, "")


def _name_of_one(each: Argument) -> str:
    """Return the name of one item of a list: that in a query, such as ``status`` of ``statuses``."""
    return each.wire if each.wire != each.name else each.name.removesuffix("s")


def _metavar(each: Argument, one: str) -> str | None:
    """Return the name of a value in help; None for a switch."""
    kinds = _kinds(each.kind)
    if kinds <= {bool, int, float}:
        return {bool: None, int: "N"}.get(kinds.pop(), "0..1")
    return one.upper()


def _choices(kind: Any) -> str:
    """Return the names of a closed set as `a, b or c`; the empty text for any other type."""
    names: tuple[Any, ...] = ()
    for part in parts_of(kind):
        names = names or (get_args(part) if get_origin(part) is Literal else ())
        names = names or (tuple((part.extra_json_schema or {}).get("enum", ())) if isinstance(part, Meta) else ())
    return f"{', '.join(names[:-1])} or {names[-1]}" if names else ""


def _kinds(kind: Any) -> set[Any]:
    """Return the plain types in a type, and ``list`` for a list."""
    origins = {str if get_origin(part) is Literal else get_origin(part) or part for part in parts_of(kind)}
    return origins & {bool, int, float, str, list, dict}
