"""Commands: what one is made of, the options that all share, help in sections, faults as exit codes.

Invariants
(1) Every command takes the options of `COMMON_OPTIONS`, after its name or before it; the nearer one wins.
(2) An error is one sentence and never a trace.
(3) Exit codes are those of `EXIT_CODES` and no other, save 130 for an interrupt from the keyboard.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

import click

from keepward import errors
from keepward.cli.command_context import CommandContext, CommandResult
from keepward.core.query import check_limit

EXIT_CODES = {
    0: "done; a write was committed, or was a duplicate",
    1: "an error, or `verify` or `doctor` found a fault",
    2: "the command line, a setting or an argument is wrong",
    3: "no such memory, commit, proposal or receipt",
    4: "a conflict, or the version named is no longer the newest",
    5: "a gate refused the write; no memory was stored",
    6: "the write is quarantined; approve it with `keepward approve ID`",
    7: "this actor may not do that",
    8: "the store is missing, locked, read-only, damaged, unknown to this machine or newer than this program",
}
#: Exit code by the stable code of an error; any other is 1.
EXIT_CODE_OF = {
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
#: Type of an option by its metavar; any other is text.
_TYPES: dict[str, type] = {"0..1": float, **dict.fromkeys(("N", "SEQ", "TOKENS"), int)}


def option(flag: str, meaning: str, metavar: str | None = None, name: str = "", **more: Any) -> click.Option:
    """Return an option; without a metavar it is a switch. ``name`` is that of the parameter, by default the flag's."""
    asked: dict[str, Any] = {"is_flag": True} if metavar is None else {"type": _TYPES.get(metavar, str)}
    asked["show_default"] = metavar is not None and more.get("default") not in (None, "")
    declared = [*flag.split(", "), *([name] if name else [])]
    return click.Option(declared, help=meaning, metavar=metavar, **asked, **more)


class argument(click.Argument):  # noqa: N801  named like ``option``
    """An argument with its meaning; needed unless its metavar has brackets, any number of times with dots."""

    def __init__(self, metavar: str, meaning: str, name: str, *, needed: bool = True, default: Any = None) -> None:
        self.needed, self.meaning = needed and not metavar.startswith("["), meaning
        super().__init__(
            [name],
            metavar=metavar,
            required=self.needed,
            nargs=-1 if metavar.endswith("...") else 1,
            **({} if default is None else {"default": default}),
        )

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return str(self.metavar), self.meaning + ("  [required]" if self.needed else "")


#: The options that every command takes (1), by the name of their field of `Call`.
COMMON_OPTIONS: dict[str, click.Option] = {
    str(each.name): each
    for each in (
        option("--db", "The store. [env: KEEPWARD_DB; default: your own]", "PATH"),
        option("--tenant", "[env: KEEPWARD_TENANT; default: default]", "NAME"),
        option("--scope", "shared, an agent's name, or a path such as /agents/orion.", "SCOPE"),
        option("--user", "At this user, somebody whom the agent talks with; me is the login.", "NAME"),
        option("--agent", "At this agent, a program, and as it where --as does not say otherwise.", "NAME"),
        option(
            "--project",
            "At this project, a place of work that its agents share; . is this repository.",
            "NAME",
        ),
        option(
            "--as",
            "Who acts: agent or user, optionally with :NAME, or operator or reviewer, by your login. Commands that "
            "propose and read act as agent:cli; commands that decide act as the operator. [env: KEEPWARD_ACTOR]",
            "ACTOR",
            name="actor",
        ),
        option(
            "--embedder",
            "auto, minilm, hashed, none, or a server's model as http:URL#MODEL. [env: KEEPWARD_EMBEDDER]",
            "NAME",
        ),
        option("--config", "Settings. [default: keepward.toml next to the store]", "FILE"),
        option("--json", "Print one JSON object on stdout, nothing else.", name="as_json"),
        option("--quiet, -q", "Say nothing on stderr but errors."),
    )
}


class Command(click.Command):
    """A function of a `Call` and of its own parameters, with the options of `COMMON_OPTIONS`."""

    def __init__(
        self, name: str, function: Callable[..., CommandResult | None], params: tuple[click.Parameter, ...]
    ) -> None:
        self.function = function
        own = {each.name for each in params}
        shared = [each for key, each in COMMON_OPTIONS.items() if key not in own]
        super().__init__(name, params=[*params, *shared], help=inspect.cleandoc(function.__doc__ or ""))

    def invoke(self, ctx: click.Context) -> int:
        """Run it and print what it answers; return the exit code."""
        given = dict(ctx.params)
        outer: dict[str, Any] = ctx.obj or {}
        shared: dict[str, Any] = {
            key: given.pop(key) or outer.get(key) for key, each in COMMON_OPTIONS.items() if each in self.params
        }
        if "everything" in given:
            check_limit(given["limit"], hint="; --no-limit shows all")
        with CommandContext(**shared, environ=os.environ) as call:
            answer = self.function(call, **given)
        return call.answer(answer) if answer else 0

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return what follows the command in its usage line."""
        del ctx
        return ["[OPTIONS]", *(str(each.metavar) for each in self.params if isinstance(each, argument))]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write arguments, own options, then `COMMON_OPTIONS`."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "Options of every command": []}
        for param in self.get_params(ctx):
            shared = param.name in COMMON_OPTIONS or "--help" in param.opts
            title = "Arguments" if isinstance(param, argument) else "Options of every command" if shared else "Options"
            sections[title] += filter(None, [param.get_help_record(ctx)])
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def command(*params: click.Parameter, name: str = "") -> Callable[[Callable[..., CommandResult | None]], Command]:
    """Make a command of a function: its parameters in order, and its name where it is not the function's."""
    return lambda function: Command(name or function.__name__.replace("_", "-"), function, params)


class Group(click.Group):
    """The commands by section, each loaded when it is asked for, and the exit codes at the end of help.

    ``sections`` has for each title the places of its commands, as ``module.function``.
    """

    def __init__(self, sections: Mapping[str, str], **more: Any) -> None:
        super().__init__(invoke_without_command=True, subcommand_metavar="COMMAND [ARGS]...", **more)
        self.sections = {title: [_name(place) for place in places.split()] for title, places in sections.items()}
        self.places = {_name(place): place for places in sections.values() for place in places.split()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        del ctx
        if cmd_name not in self.places:
            return None
        module, _, function = self.places[cmd_name].partition(".")
        found: Command = getattr(importlib.import_module(f"keepward.cli.{module}"), function)
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that is named; a slip is answered with the name that is most like it."""
        if args[0] not in self.places and not args[0].startswith("-"):
            guess = difflib.get_close_matches(args[0], self.places, 1)
            ctx.fail(f"no such command: {args[0]}" + (f"; did you mean `{guess[0]}`?" if guess else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in self.sections.items():
            with formatter.section(title):
                found = [(name, self.get_command(ctx, name)) for name in names]
                formatter.write_dl([(f"{name:<8}", each.get_short_help_str(200)) for name, each in found if each])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])


def _name(place: str) -> str:
    return place.rpartition(".")[2].strip("_").replace("_", "-")


def explain_usage_error(exc: click.UsageError) -> str:
    """Return what is wrong with a command line, with what helps where quotes or dashes were lost."""
    said = exc.format_message().rstrip(".")
    if isinstance(exc, click.NoSuchOption):
        return f"{said}; put -- before a text that starts with a dash"
    return f"{said}; put quotes around a text that has spaces" if "unexpected extra" in said else said
