"""The command line: every command in its section, and one handler for every error.

`main` returns an exit code and never raises; see `command` for the codes. With `--json` an error is one object on
stdout, {"error": {"code", "message"}}; the message is on stderr too.

Late imports: other commands start faster.
"""

from __future__ import annotations

import codecs
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import click

from keepward import __version__, durable
from keepward.cli.command import COMMON_OPTIONS, EXIT_CODE_OF, Group, explain_usage_error, option
from keepward.cli.command_context import print_json
from keepward.cli.render import escape_invisible, replace_unencodable
from keepward.errors import InvalidInput, KeepwardError

PROGRAM = "keepward"
#: A shell sets this variable to ask for completions.
COMPLETION_VARIABLE = "_KEEPWARD_COMPLETE"
PROGRAM_DESCRIPTION = """Memory for AI agents that you can audit, approve and undo.

Commands that propose (remember, revise, move, forget, archive, restore, import) or read act as the agent `cli`. Agents
use them in a shell; a reviewer must approve every change of an agent to core memory. Commands that decide or maintain
the store (approve, reject, rollback, verify, export ...) act as the operator: you, with your login name.
`--as operator` makes a write your own: it needs no approval. If KEEPWARD_ACTOR is set, `--as` can only name an actor
with fewer rights.
"""
#: Module and function of each command, by section, in the order of help. Only the command that runs is loaded. A name
#: without a module is that of an operation, whose command takes its arguments and prints its result.
SECTIONS = {
    "Start": "store.init model.model demo.demo store.status",
    "Serve": "serve.serve serve.open_ serve.mcp serve.connect hook.hook hook.shadow",
    "Propose": "memories.remember backup.add memories.revise memories.move promote memories.merge "
    "reinforce memories.block memories.forget supersede archive restore "
    "memories.blob memories.identity",
    "Read": "memories.recall memories.context memories.replay memories.list_ get memories.history",
    "Learn": "memories.feedback memories.train",
    "Decide": "review.pending review.approve review.amend review.reject review.reopen",
    "Branch": "branches.branch",
    "Audit and undo": "review.log review.show review.diff review.receipt review.rollback review.impact review.contain "
    "review.blame testing.check testing.test testing.bisect review.context_diff review.contradictions",
    "Maintain the store": "store.token store.tenants store.config store.jobs backup.erase backup.backup "
    "backup.restore_backup backup.store backup.adopt store.key store.verify store.drill store.rebuild store.reindex "
    "store.doctor backup.export backup.import_ backup.restore_export store.version",
}


@cache
def command_tree() -> Group:
    """Return the group of all commands."""
    params = [
        option("--version", "Print the version."),
        *COMMON_OPTIONS.values(),
        option("--install-completion", "Install completion for the current shell."),
        option("--show-completion", "Show completion for the current shell, to copy it or customize the installation."),
    ]
    return Group(SECTIONS, name=PROGRAM, params=params, help=PROGRAM_DESCRIPTION, callback=_root)


@click.pass_context
def _root(
    ctx: click.Context, /, version: bool, install_completion: bool, show_completion: bool, **common: Any
) -> int | None:
    """Store the options before a command, or run without a command."""
    ctx.obj = common
    if version:
        click.echo(f"{PROGRAM} {__version__}")
        ctx.exit()
    if install_completion or show_completion:
        _completion(install=install_completion)
        ctx.exit()
    if ctx.invoked_subcommand is None:
        if common["as_json"]:
            ctx.fail("there is no command")
        click.echo(ctx.get_help())
    return None


def _completion(*, install: bool) -> None:
    """Print the completion script of the current shell, or write it into the shell's startup file."""
    from click.shell_completion import get_completion_class

    shell = Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell)
    if kind is None:
        raise InvalidInput("completion exists for bash, zsh and fish; SHELL names another shell")
    script = kind(command_tree(), {}, PROGRAM, COMPLETION_VARIABLE).source()
    if not install:
        click.echo(script)
        return
    fish = shell == "fish"
    file = Path.home() / (f".config/fish/completions/{PROGRAM}.fish" if fish else f".{shell}rc")
    line = script if fish else f'eval "$({COMPLETION_VARIABLE}={shell}_source {PROGRAM})"\n'
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or line.encode() not in durable.read_regular(file, 100 << 20):
        with file.open("a", encoding="utf-8") as startup_file:
            startup_file.write(line)
    click.echo(f"completion for {shell} is in {file}; open a new shell to use it")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, `sys.argv` by default; return its exit code."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8" and isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without UTF-8 gets the nearest plain character, not an error.
        codecs.register_error("keepward.nearest", replace_unencodable)
        sys.stdout.reconfigure(errors="keepward.nearest")
    with warnings.catch_warnings(), _logging():
        # The library also logs its warnings, in a line without paths and line numbers.
        warnings.simplefilter("ignore", UserWarning)
        if any("\udc80" <= char <= "\udcff" for char in "".join(args)):
            # The arguments are not decoded again: file names among them are correct as they are.
            logging.getLogger(PROGRAM).warning("the arguments were not read as UTF-8: set PYTHONUTF8=1")
        return _run(args)


def _run(args: list[str]) -> int:
    tree = command_tree()
    try:
        for each in args:
            if "\0" in each or any("\ud800" <= char < "\udc80" or "\udcff" < char <= "\udfff" for char in each):
                # Neither a path nor the text of a memory may have one; the others are bytes of a path.
                raise InvalidInput("an argument contains a NUL or half a character: write it again")
        if instruction := os.environ.get(COMPLETION_VARIABLE):
            from click.shell_completion import shell_complete

            return shell_complete(tree, {}, PROGRAM, COMPLETION_VARIABLE, instruction)
        with tree.make_context(PROGRAM, list(args)) as ctx:
            code = tree.invoke(ctx)
        sys.stdout.flush()
        return int(code or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as fault:
        path = fault.ctx.command_path if fault.ctx else PROGRAM
        return _failed(args, "usage", f"{explain_usage_error(fault)}; see `{path} --help`")
    except KeepwardError as fault:
        return _failed(args, fault.code, str(fault))
    except BrokenPipeError:
        # The reader closed the pipe, as in `keepward log | head`.
        _discard_stdout()
        return 1
    except (KeyboardInterrupt, click.Abort):
        stopped = "interrupted; uncommitted changes were not stored; run the command again to continue"
        return _failed(args, "interrupted", stopped)
    except OSError as fault:
        path = f" ({fault.filename})" if fault.filename else ""
        hint = "; give this user access to the file and its folders" if isinstance(fault, PermissionError) else ""
        message = fault.strerror or "input or output error"
        return _failed(args, "io_error", f"the system reports: {message}{path}{hint}")
    except Exception as fault:
        # The default is no trace, because a trace may quote a memory.
        if os.environ.get("KEEPWARD_TRACE"):
            raise
        kind = type(fault).__name__
        return _failed(args, "internal", f"unexpected {kind}; set KEEPWARD_TRACE=1 to see where, and report it")


@contextmanager
def _logging() -> Iterator[None]:
    """Print each log message of the library once on stderr while the command runs."""
    seen: set[str] = set()

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if message not in seen:
                seen.add(message)
                print(f"{PROGRAM}: {message}", file=sys.stderr)  # noqa: T201

    logger, handler = logging.getLogger(PROGRAM), Lines(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _failed(args: list[str], code: str, message: str) -> int:
    head = args[: args.index("--")] if "--" in args else args
    try:
        if "--json" in head:
            print_json({"error": {"code": code, "message": message}})
        sys.stdout.flush()
    except OSError:
        # stdout is closed or full; the message still goes to stderr.
        _discard_stdout()
    print(f"{PROGRAM}: {escape_invisible(message)}", file=sys.stderr)  # noqa: T201
    return EXIT_CODE_OF.get(code, 1)


def _discard_stdout() -> None:
    """Discard the buffer of stdout, whose reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
