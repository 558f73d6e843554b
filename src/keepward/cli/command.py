"""Base classes of commands: common options, help in sections, errors as exit codes.

Every command takes the options of `COMMON_OPTIONS`, before its name or after it; the one after the name wins. An error
is one sentence, never a trace. Exit codes are those of `EXIT_CODES`, and 130 for an interrupt from the keyboard.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

import click

from keepward import errors
from keepward.cli.command_context import CommandContext, CommandResult
from keepward.core.foreign_words import METHODS, call_instead, handle_of, known_argument

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
#: Exit code by the stable code of an error; the default is 1.
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
    errors.Tampered.code: 8,
    "interrupted": 130,
}
#: Type of an option by its metavar; the default is text.
_TYPES: dict[str, type] = {"0..1": float, **dict.fromkeys(("N", "SEQ", "TOKENS"), int)}


def option(flag: str, meaning: str, metavar: str | None = None, name: str = "", **extra: Any) -> click.Option:
    """Return an option; without a metavar it is a switch.

    ``name`` is the name of the parameter, by default that of the flag.
    """
    kind: dict[str, Any] = {"is_flag": True} if metavar is None else {"type": _TYPES.get(metavar, str)}
    kind["show_default"] = metavar is not None and extra.get("default") not in (None, "")
    declared = [*flag.split(", "), *([name] if name else [])]
    return click.Option(declared, help=meaning, metavar=metavar, **kind, **extra)


class argument(click.Argument):  # noqa: N801  named like ``option``
    """An argument with its meaning. `[ID]` is optional; `ID...` may be given several times; `a|b` is one of these."""

    def __init__(self, metavar: str, meaning: str, name: str, *, required: bool = True, default: Any = None) -> None:
        self.meaning = meaning
        words = metavar.strip("[]")
        super().__init__(
            [name],
            metavar=metavar,
            required=required and not metavar.startswith("["),
            nargs=-1 if "..." in metavar else 1,
            type=click.Choice(words.split("|")) if words.islower() else str,
            **({} if default is None else {"default": default}),
        )

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return str(self.metavar), self.meaning + ("  [required]" if self.required else "")


#: The options that every command takes, by the name of their field of `CommandContext`.
COMMON_OPTIONS: dict[str, click.Option] = {
    str(common.name): common
    for common in (
        option("--db", "The store. [env: KEEPWARD_DB; default: your own]", "PATH"),
        option("--tenant", "[env: KEEPWARD_TENANT; default: default]", "NAME"),
        option("--scope", "shared, an agent's name, or a path such as /agents/orion.", "SCOPE"),
        option("--user", "Use the scope of this user, a person the agent talks with; me is your login.", "NAME"),
        option(
            "--agent", "Use the scope of this agent, and act as it unless --as or KEEPWARD_ACTOR names another.", "NAME"
        ),
        option("--project", "Use the scope of this project, which its agents share; . is this repository.", "NAME"),
        option("--branch", "Read and write on this branch of memory.", "NAME"),
        option(
            "--as",
            "Who acts: agent or user, optionally with :NAME, or operator or reviewer, with your login name. By default "
            "the --agent; without one, commands that propose or read act as agent:cli, and commands that decide as the "
            "operator. [env: KEEPWARD_ACTOR]",
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
        option("--quiet, -q", "Print only errors on stderr."),
    )
}


class Command(click.Command):
    """A function of a `CommandContext` and of its own parameters, with the options of `COMMON_OPTIONS`."""

    def __init__(
        self, name: str, function: Callable[..., CommandResult | None], params: tuple[click.Parameter, ...]
    ) -> None:
        self.function = function
        own = {param.name for param in params}
        shared = [common for name, common in COMMON_OPTIONS.items() if name not in own]
        super().__init__(name, params=[*params, *shared], help=inspect.cleandoc(function.__doc__ or ""))

    def invoke(self, ctx: click.Context) -> int:
        """Run the function and print its result; return the exit code."""
        params = dict(ctx.params)
        outer: dict[str, Any] = ctx.obj or {}
        for name, common in COMMON_OPTIONS.items():
            # An unset variable in a script would reach the scope that everybody shares.
            if "" in (params.get(name), outer.get(name)):
                raise errors.InvalidInput(f"{common.opts[0]} is empty: give a value, or leave the option out")
        shared: dict[str, Any] = {
            name: params.pop(name) or outer.get(name)
            for name, common in COMMON_OPTIONS.items()
            if common in self.params
        }
        if "everything" in params and params["limit"] is not None and params["limit"] < 1:
            raise errors.InvalidInput("limit is at least 1; --no-limit shows all")
        with CommandContext(**shared, environ=os.environ) as context:
            try:
                result = self.function(context, **params)
            except errors.Unauthorised as fault:
                if hint := context.refusal_hint:
                    raise errors.Unauthorised(f"{fault}; {hint}") from fault
                raise
        if result and result.code == EXIT_CODE_OF["unauthorised"] and (hint := context.refusal_hint):
            result = dataclasses.replace(result, messages=(*result.messages, hint))
        return context.print_result(result) if result else 0

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the words after the command in its usage line."""
        del ctx
        return ["[OPTIONS]", *(str(param.metavar) for param in self.params if isinstance(param, argument))]

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
    """Make a command of a function. The default name is that of the function."""
    return lambda function: Command(name or function.__name__.replace("_", "-"), function, params)


class Group(click.Group):
    """The commands by section, each loaded on first use, and the exit codes at the end of help.

    ``sections`` maps each title to its commands, written as ``module.function``, or as the name of an operation.
    """

    def __init__(self, sections: Mapping[str, str], **extra: Any) -> None:
        super().__init__(invoke_without_command=True, subcommand_metavar="COMMAND [ARGS]...", **extra)
        self.sections = {title: [_name(path) for path in paths.split()] for title, paths in sections.items()}
        self.paths = {_name(path): path for paths in sections.values() for path in paths.split()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.paths)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        del ctx
        if cmd_name not in self.paths:
            return None
        module, _, function = self.paths[cmd_name].rpartition(".")
        found = importlib.import_module(f"keepward.cli.{module or 'parameters'}")
        command: Command = getattr(found, function) if module else found.simple_command(function)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the named command; the error for an unknown name suggests the most similar one."""
        if args[0] not in self.paths and not args[0].startswith("-"):
            own = METHODS.get(args[0].replace("-", "_"), "").partition("(")[0].partition("_")[0]
            guess = [own] if own in self.paths else difflib.get_close_matches(args[0], self.paths, 1)
            ctx.fail(f"no such command: {args[0]}" + (f"; did you mean `{guess[0]}`?" if guess else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in self.sections.items():
            with formatter.section(title):
                commands = [(name, self.get_command(ctx, name)) for name in names]
                formatter.write_dl([(f"{name:<8}", cmd.get_short_help_str(200)) for name, cmd in commands if cmd])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])


def _name(path: str) -> str:
    return path.rpartition(".")[2].strip("_").replace("_", "-")


def _option_here(exc: click.NoSuchOption) -> str | None:
    """Return the option or argument that a word of another system means."""
    params = exc.ctx.command.params if exc.ctx is not None else []
    by_name = {str(param.name): param for param in params}
    given = exc.option_name.lstrip("-")
    meant = by_name.get(known_argument(given, by_name) or "")
    if meant is None:
        handle = handle_of(given)
        return f"--{handle}" if handle in COMMON_OPTIONS else call_instead(given)
    return meant.opts[0] if isinstance(meant, click.Option) else f"the argument {meant.metavar}"


def explain_usage_error(exc: click.UsageError) -> str:
    """Return the message of a usage error, with a hint about lost quotes or dashes."""
    message = exc.format_message().rstrip(".")
    if isinstance(exc, click.NoSuchOption):
        if meant := _option_here(exc):
            return f"No such option '{exc.option_name}'; here it is {meant}"
        return f"{message}; put -- before a text that starts with a dash"
    return f"{message}; put quotes around a text that has spaces" if "unexpected extra" in message else message
