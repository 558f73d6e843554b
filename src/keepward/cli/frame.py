"""The frame around each command: options that all share, help in sections, errors as exit codes.

Invariants
(1) Every command takes the options of `COMMON`, after its name or before it; the nearer one wins.
(2) An error never shows a trace, and never repeats what was typed: it might be a memory or a secret.
(3) Exit codes are those of `EXIT_CODES` and no other, save 130 for an interrupt from the keyboard.
"""

from __future__ import annotations

import inspect
import os
import re
import typing
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from keepward import errors
from keepward.cli.call import Answer, Call

EXIT_CODES = {
    0: "done; a write was committed, or the same was already remembered",
    1: "an error, or `verify` or `doctor` found a fault",
    2: "the command line, a setting or an argument is wrong",
    3: "no such memory, commit, proposal or receipt",
    4: "a conflict, or the version named is no longer the newest",
    5: "a gate refused the write; nothing was stored but the receipt",
    6: "the write is held for review; approve it with `keepward approve ID`",
    7: "this principal may not do that",
    8: "the store is missing, locked, read-only, damaged, unknown to this machine or newer than this program",
}
#: Exit code by the stable code of an error; any other is 1.
EXIT_OF = {
    errors.InvalidInput.code: 2,
    "usage": 2,
    errors.NotFound.code: 3,
    errors.Conflict.code: 4,
    errors.StaleVersion.code: 4,
    errors.Unauthorised.code: 7,
    errors.StoreUnavailable.code: 8,
    errors.NotAStore.code: 8,
    errors.NewerSchema.code: 8,
    errors.StoreError.code: 8,
    errors.NotAdopted.code: 8,
    "interrupted": 130,
}
#: Exit code by outcome of a write.
EXIT_OF_OUTCOME = {"committed": 0, "duplicate": 0, "refused": 5, "quarantined": 6}

_AS_HELP = (
    "Who asks: agent or user, with :NAME if you like, or operator or reviewer, by your login. Commands that propose "
    "and read act as agent:cli; commands that decide act as the operator. [env: KEEPWARD_ACTOR]"
)
COMMON: dict[str, Any] = {
    "db": Annotated[
        str | None, typer.Option("--db", metavar="PATH", help="The store. [env: KEEPWARD_DB; default: your own]")
    ],
    "tenant": Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="[env: KEEPWARD_TENANT; default: default]")
    ],
    "scope": Annotated[
        str | None,
        typer.Option("--scope", metavar="SCOPE", help="shared, an agent's name, or a path such as /agents/orion."),
    ],
    "actor": Annotated[str | None, typer.Option("--as", metavar="WHO", help=_AS_HELP)],
    "embedder": Annotated[
        str | None,
        typer.Option(
            "--embedder",
            metavar="NAME",
            help="auto, minilm, hashed, none, or a server's model as http:URL#MODEL. [env: KEEPWARD_EMBEDDER]",
        ),
    ],
    "config": Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Settings. [default: keepward.toml beside the store]"),
    ],
    "as_json": Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")],
    "quiet": Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")],
}
_FLAGS = ("as_json", "quiet")
#: The same options as they are written, and whether a value follows.
OPTION_VALUES = {
    **dict.fromkeys(("--db", "--tenant", "--scope", "--as", "--embedder", "--config"), True),
    **dict.fromkeys(("--json", "--quiet", "-q"), False),
}

#: The root of usage errors, wherever the installed Typer keeps it.
UsageError: Any = next(each for each in typer.BadParameter.__mro__ if each.__name__ == "UsageError")
_TAKES = {"0..1": "a number from 0 to 1", **dict.fromkeys(("N", "SEQ", "TOKENS"), "a whole number")}
_PLAIN_OPTION = re.compile(r"--?[a-z][a-z-]{0,23}", re.ASCII)


#: Where Typer keeps what converts the value of a parameter; one that keeps it elsewhere converts as before.
_CONVERTER = "_runtime_param"


class _AsTyped:
    """Takes what needs no converting, and leaves everything else to Typer: its converters load pydantic, for 0.1 s."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if isinstance(kind, type) and type(value) is kind:
            return value
        if kind == list[str] and isinstance(value, tuple | list) and all(type(each) is str for each in value):
            return list(value)
        setattr(param, _CONVERTER, None)
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _unburdened(params: list[Any]) -> list[Any]:
    for each in params:
        if getattr(each, _CONVERTER, each) is None:
            setattr(each, _CONVERTER, _AsTyped())
    return params


class Group(TyperGroup):
    """Lists commands in the sections they were registered under, and the exit codes at the end."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, for which nothing is loaded that they do not need."""
        return _unburdened(super().get_params(ctx))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section a panel, in the order of registration."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None) or "Commands"
                panels.setdefault(str(panel), []).append((f"{name:<8}", command.get_short_help_str(200)))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write who a command acts as, and the exit codes."""
        del ctx
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])


class Command(TyperCommand):
    """Shows a command's own options apart from those that every command takes."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, for which nothing is loaded that they do not need."""
        return _unburdened(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands behind the command in its usage line."""
        named = [each.metavar or each.name for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return ["[OPTIONS]", *map(str, named)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, own options, then `COMMON`."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Options of every command": []}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            if row is None:
                continue
            if param.param_type_name == "argument":
                sections["Arguments"].append((str(param.metavar or param.name), row[1]))
            elif param.name in COMMON or param.name == "help":
                sections["Options of every command"].append(row)
            else:
                sections["Options"].append(row)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def add(app: typer.Typer, name: str, function: Callable[..., Answer], *, panel: str) -> None:
    """Register a command: a function of a `Call` and of its own parameters, which returns an `Answer`."""

    def invoke(ctx: typer.Context, **given: Any) -> None:
        near = {key: given.pop(key) for key in COMMON}
        outer: dict[str, Any] = ctx.obj or {}
        chosen: dict[str, Any] = {key: near[key] or outer.get(key) for key in COMMON}
        call = Call(**chosen, environ=os.environ)
        raise typer.Exit(call.answer(function(call, **given)))

    hints = typing.get_type_hints(function, include_extras=True)
    own = [
        each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for each in list(inspect.signature(function).parameters.values())[1:]
    ]
    app.command(name, cls=Command, rich_help_panel=panel)(_signed(invoke, own, doc=function.__doc__))


def add_root(app: typer.Typer, doc: str) -> None:
    """Register what stands before a command: the options of `COMMON`, and `--version`."""

    def invoke(ctx: typer.Context, *, version: bool, **given: Any) -> None:
        ctx.obj = given
        if version:
            from importlib.metadata import version as installed

            typer.echo(f"keepward {installed('keepward')}")
            raise typer.Exit
        if ctx.invoked_subcommand is None:
            if given["as_json"]:
                ctx.fail("Missing command.")
            typer.echo(ctx.get_help())

    asked = Annotated[bool, typer.Option("--version", help="Print the version.")]
    own = [inspect.Parameter("version", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=asked)]
    app.callback(invoke_without_command=True, cls=Group)(_signed(invoke, own, doc=doc))


def _signed(invoke: Any, own: list[inspect.Parameter], *, doc: str | None) -> Any:
    """Give a function the signature that Typer is to see: a context, its own parameters, `COMMON` (1)."""
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if name in _FLAGS else None, annotation=annotation
        )
        for name, annotation in COMMON.items()
    ]
    ctx = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    invoke.__doc__ = doc
    invoke.__signature__ = inspect.Signature([ctx, *own, *shared])
    invoke.__annotations__ = {each.name: each.annotation for each in (ctx, *own, *shared)}
    return invoke


def explain(fault: Any) -> str:
    """Return what is wrong with a command line, in words that repeat nothing that was typed (2)."""
    param: Any = getattr(fault, "param", None)
    name = ""
    if param is not None:
        name = "/".join(param.opts) if param.param_type_name == "option" else (param.metavar or param.name.upper())
    match type(fault).__name__:
        case "NoSuchOption":
            option = str(getattr(fault, "option_name", ""))
            known = option if _PLAIN_OPTION.fullmatch(option) else "by that name"
            return f"there is no option {known}; put -- before a text that starts with a dash"
        case "MissingParameter":
            return f"{name} is missing"
        case "BadParameter" if name:
            return f"{name} takes {_TAKES.get(param.metavar, 'another value')}"
        case "BadOptionUsage" | "BadArgumentUsage":
            option = str(getattr(fault, "option_name", "") or "")
            return f"{option if _PLAIN_OPTION.fullmatch(option) else 'an option'} needs a value"
    said = fault.format_message()
    if "unexpected extra" in said:
        return "there are too many arguments; put quotes around a text that has spaces"
    if "No such command" in said:
        guess = said.partition("Did you mean ")[2].strip("?' \n")
        return "there is no such command" + (f"; did you mean `{guess}`?" if guess else "")
    return "there is no command" if "Missing command" in said else "the command line cannot be read"
