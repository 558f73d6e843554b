"""Commands made from operations: the signature in ``api.py`` gives their arguments, options, types and defaults.

Only the words for a terminal are here. An option has the help of ``HELP``, else the description in ``types.py``. An
option that was not given is not sent, so the operation's own default applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter
from typing import Any, Literal, get_args, get_origin

import click
from msgspec import Meta

from keepward.api import OPERATIONS
from keepward.cli.command import COMMON_OPTIONS, Command, argument, option
from keepward.cli.command_context import CommandContext, CommandResult, DefaultRole, read_text, to_json_object
from keepward.core.change import UNSET
from keepward.core.value import load_json
from keepward.errors import InvalidInput
from keepward.operations import REQUIRED, Argument, Operation

#: Help by parameter, or by operation and parameter, where the description in ``types.py`` says less at a terminal.
HELP: Mapping[str, str] = {
    "memory_id": "The memory's id, the first 8 or more characters of it, or its key.",
    "memory_ids": "Two memories or more, of one subject, scope and sensitivity.",
    "name": "A memory's id, alias or key.",
    "proposal_id": "Id of a proposal.",
    "receipt_id": "Receipt of a context.",
    "receipt.receipt_id": "Id of a receipt.",
    "feedback.receipt_id": "The receipt of a `context` or a `recall --receipt`.",
    "first": "Receipt of a compiled context.",
    "second": "Receipt of a compiled context.",
    "ids": "Ids of memories, or their aliases.",
    "commit": "A commit's number, id or first characters of the id.",
    "query": "The search text; - reads stdin.",
    "bisect.query": "The query of the context; - reads stdin.",
    "objective": "The task of the model; - reads stdin.",
    "text": "The new text; - reads stdin.",
    "remember.text": "What to remember; - reads stdin.",
    "merge.text": "Text of the summary; - reads stdin. [default: the texts, one per line]",
    "reason": "Why; it is stored in the journal.",
    "if_version": "Change it only if N is still its newest version.",
    "remember.if_version": "Write to the key only if N is its newest version; 0: only if the key is unused.",
    "remember.tier": "core, working, episodic or archival. [default: archival]",
    "merge.tier": "Tier of the summary. [default: episodic]",
    "remember.kind": "rule, fact, state, event, summary or document.",
    "move.key": "Another stable name; in core, the name of a block.",
    "amend.if_version": "The version that was shown, if the memory has changed since.",
    "scope": "Another scope, such as shared or /agents/orion.",
    "source": "Where the text comes from. Without a new text, only the owner may change it.",
    "remember.source": "user_message, tool, document, web, inference ...",
    "remember.confidence": "How likely it is true. [default: by source]",
    "remember.importance": "How useful it is. [default: by source]",
    "ttl": "New time to live from now; `never` removes it.",
    "remember.ttl": "Time to live, such as 90s, 15m, 24h, 30d or 2w.",
    "restore.ttl": "A new time to live, for an expired memory.",
    "access": "Who may change it without approval: read_only, approval, append or read_write.",
    "purpose": "What the result is used for: answer, act or core.",
    "occurred_at": "When it happened, as ISO 8601.",
    "consent": "The person consents: store personal identifiers in the text.",
    "blob": "A blob that TEXT describes, stored by `blob put`.",
    "by": "The memory that replaces it: its id, the first characters of it, or its key.",
    "amend.digest": "The digest that was shown; another one is not approved.",
    "limit": "Maximum number of items.",
    "include_sensitive": "Include sensitive memories.",
    "include_ended": "Include retired, archived, superseded and expired memories.",
    "as_of": "Read a past state: a commit's number or id, or a time.",
    "log.until": "Up to and including a commit's number or id, or a time.",
    "bisect.since": "A commit whose context does not contain it.",
    "within": "Only from this scope and the scopes below it.",
    "budget_tokens": "Maximum number of tokens. [default: by policy]",
    "contains": "The text to search for in the context.",
    "impact.source": "A source such as web, or a reference in evidence.",
    "contain.source": "A source such as web, or a reference in evidence.",
    "contain.reason": "Why; it is stored in the commit.",
    **dict.fromkeys(("revise.tags", "amend.tags"), "New tags, which replace the old ones."),
    "plan_erase.reason": "request, consent, retention, mistake, secret or other.",
    "plan_erase.source": "Every memory from this source, reference or external id.",
    "plan_erase.subject": "Every memory about this subject.",
    "with_later": "Also undo later commits that changed the same memories.",
    "dry_run": "Show the plan and change nothing.",
}
#: Names of values in help, where the type and the name of the option do not give one.
_METAVARS: Mapping[str, str] = {
    **dict.fromkeys(("memory_id", "proposal_id", "by", "derived_from", "leave_out", "memory", "used", "ignored"), "ID"),
    **dict.fromkeys(("memory_ids", "ids"), "ID..."),
    **dict.fromkeys(("receipt_id", "first", "second"), "RECEIPT"),
    **dict.fromkeys(("since", "until", "occurred_since", "occurred_until", "occurred_at", "as_of"), "TIME"),
    **dict.fromkeys(("reason", "contains"), "TEXT"),
    **dict.fromkeys(("metadata", "where"), "JSON"),
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
#: Arguments that `-` reads from stdin.
_STDIN = frozenset({"text", "query", "objective"})


def parameters(about: Operation, *, without: str = "", only: str = "", optional: str = "") -> Iterator[click.Parameter]:
    """Yield the arguments and options of an operation.

    ``only`` selects some, ``without`` leaves some out, and ``optional`` names one that the command can do without.
    """
    by_position = [
        name for name, each in about.signature.parameters.items() if each.kind is Parameter.POSITIONAL_OR_KEYWORD
    ]
    for each in sorted(about.arguments.values(), key=lambda each: each.name == "reason"):
        if each.name in without.split() or (only and each.name not in only.split()):
            continue
        is_optional = each.default is not REQUIRED or each.name == optional
        is_list = list in _kinds(each.kind)
        text = _of(HELP, about, each.name) or _choices(each.kind) or each.doc
        metavar, flag = _of(_METAVARS, about, each.name) or _metavar(each), _of(_FLAGS, about, each.name)
        if each.name in by_position and not flag:
            yield argument(f"[{metavar}]" if is_optional else str(metavar), text, each.name)
            continue
        flag = flag or "--" + (each.name.removesuffix("s") if is_list else each.name).replace("_", "-")
        named = _RENAMED.get(each.name, each.name) if each.name in COMMON_OPTIONS else each.name
        if is_list:
            prefix = "Only " if text and _choices(each.kind) == text else ""
            yield option(flag, f"{prefix}{text} May be repeated.".strip(), metavar, named, multiple=True)
        elif metavar is None:
            yield option(flag, text, name=named)
        else:
            default = each.default if is_optional and each.default is not UNSET else None
            yield option(flag, text, metavar, named, required=not is_optional, default=default)


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
    """Return a command that runs an operation and prints its result. Its help is the docstring of the operation."""
    about = OPERATIONS[operation]

    def run(call: CommandContext, **args: Any) -> CommandResult:
        result = getattr(call.memory(role), operation)(**args)
        return present(result) if present else CommandResult(to_json_object(result))

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
    if "metadata" in named:
        named["metadata"] = _json_object(named["metadata"])
    if named.get("ttl") == "never" and about.signature.parameters["ttl"].default is UNSET:
        named["ttl"] = None
    return named


def _json_object(text: str) -> dict[str, Any]:
    """Return the object of the option `--metadata`."""
    try:
        value = load_json(text)
    except ValueError as fault:
        raise InvalidInput("--metadata is not JSON, or is nested too deeply") from fault
    if not isinstance(value, dict):
        raise InvalidInput("--metadata takes a JSON object")
    return value


def _of(table: Mapping[str, str], about: Operation, name: str) -> str:
    return table.get(f"{about.name}.{name}") or table.get(name, "")


def _metavar(each: Argument) -> str | None:
    """Return the name of a value in help; None for a switch."""
    kinds = _kinds(each.kind)
    if kinds <= {bool, int, float}:
        return {bool: None, int: "N"}.get(kinds.pop(), "0..1")
    return (each.name.removesuffix("s") if list in kinds else each.name).upper()


def _choices(kind: Any) -> str:
    """Return the names of a closed set as `a, b or c.`; the empty text for any other type."""
    names: tuple[Any, ...] = ()
    for part in _parts(kind):
        names = names or (get_args(part) if get_origin(part) is Literal else ())
        names = names or (tuple((part.extra_json_schema or {}).get("enum", ())) if isinstance(part, Meta) else ())
    return f"{', '.join(names[:-1])} or {names[-1]}." if names else ""


def _kinds(kind: Any) -> set[Any]:
    """Return the plain types in a type, and ``list`` for a list."""
    origins = {str if get_origin(part) is Literal else get_origin(part) or part for part in _parts(kind)}
    return origins & {bool, int, float, str, list, dict}


def _parts(kind: Any) -> Iterator[Any]:
    """Yield a type, its notes, and the types in it."""
    yield kind
    if get_origin(kind) is not Literal:
        for part in get_args(kind):
            yield from _parts(part)
