"""The command line: every command in its section, and one way out for every error.

Invariants
(1) `main` returns an exit code and never raises; see `command` for the codes.
(2) With `--json` an error is one object on stdout, {"error": {"code", "message"}}; the message is on stderr too.
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

from keepward.cli.command import COMMON_OPTIONS, EXIT_CODE_OF, Group, explain_usage_error, option
from keepward.cli.command_context import print_json
from keepward.cli.render import escape_invisible, replace_unencodable
from keepward.errors import InvalidInput, KeepwardError

PROGRAM = "keepward"
#: In it a shell asks for what completes a command line.
COMPLETION_VARIABLE = "_KEEPWARD_COMPLETE"
PROGRAM_DESCRIPTION = """Memory for AI agents that one can audit, approve and undo.

Commands that propose (remember, revise, move, forget, archive, restore, import) and those that read act as the agent
`cli`: agents in a shell use them, and nothing of an agent's reaches core memory unreviewed. Commands that decide or
look after the store (approve, reject, rollback, verify, export ...) act as the operator, you, by the name of your
login. `--as operator` makes a write your own: it needs no approval. If KEEPWARD_ACTOR is set, `--as` can only name an
actor with fewer rights.
"""
#: Where each command is, by section, in the order of help. Only the command that runs is loaded.
SECTIONS = {
    "Start": "store.init model.model demo.demo store.status",
    "Serve": "serve.serve serve.open_ serve.mcp serve.connect hook.hook",
    "Propose": "memories.remember backup.add memories.revise memories.move memories.promote memories.merge "
    "memories.reinforce memories.block memories.forget memories.supersede memories.archive memories.restore "
    "memories.blob memories.identity",
    "Read": "memories.recall memories.context memories.replay memories.list_ memories.get memories.history",
    "Learn": "memories.feedback memories.train",
    "Decide": "review.pending review.approve review.amend review.reject review.reopen",
    "Audit and undo": "review.log review.show review.diff review.receipt review.rollback review.impact review.contain "
    "review.blame review.bisect review.context_diff review.contradictions",
    "Look after the store": "store.token store.tenants store.config store.jobs backup.erase backup.backup "
    "backup.restore_backup backup.store backup.adopt store.key store.verify store.drill store.rebuild store.reindex "
    "store.doctor backup.export backup.import_ backup.restore_export store.version",
}


@cache
def command_tree() -> Group:
    """Return the commands for click to run."""
    own = [
        option("--version", "Print the version."),
        *COMMON_OPTIONS.values(),
        option("--install-completion", "Install completion for the current shell."),
        option("--show-completion", "Show completion for the current shell, to copy it or customize the installation."),
    ]
    return Group(SECTIONS, name=PROGRAM, params=own, help=PROGRAM_DESCRIPTION, callback=_root)


@click.pass_context
def _root(
    ctx: click.Context, /, version: bool, install_completion: bool, show_completion: bool, **given: Any
) -> int | None:
    """Read the options before a command, or run without one."""
    ctx.obj = given
    if version:
        from importlib.metadata import version as installed

        click.echo(f"{PROGRAM} {installed(PROGRAM)}")
        ctx.exit()
    if install_completion or show_completion:
        _completion(install=install_completion)
        ctx.exit()
    if ctx.invoked_subcommand is None:
        if given["as_json"]:
            ctx.fail("there is no command")
        click.echo(ctx.get_help())
    return None


def _completion(*, install: bool) -> None:
    """Print what makes the shell that runs this complete commands, or write it where that shell reads it."""
    from click.shell_completion import get_completion_class

    shell = Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell)
    if kind is None:
        raise InvalidInput("completion is for bash, zsh and fish; SHELL names another")
    script = kind(command_tree(), {}, PROGRAM, COMPLETION_VARIABLE).source()
    if not install:
        click.echo(script)
        return
    fish = shell == "fish"
    file = Path.home() / (f".config/fish/completions/{PROGRAM}.fish" if fish else f".{shell}rc")
    line = script if fish else f'eval "$({COMPLETION_VARIABLE}={shell}_source {PROGRAM})"\n'
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or line not in file.read_text("utf-8"):
        with file.open("a", encoding="utf-8") as written:
            written.write(line)
    click.echo(f"completion for {shell} is in {file}; it works in the next shell")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, `sys.argv` by default; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8" and isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without UTF-8 gets the nearest plain sign, and not an error.
        codecs.register_error("keepward.nearest", replace_unencodable)
        sys.stdout.reconfigure(errors="keepward.nearest")
    with warnings.catch_warnings(), _logging():
        # What the library warns of it logs as well, in a line without paths and line numbers.
        warnings.simplefilter("ignore", UserWarning)
        if any("\udc80" <= each <= "\udcff" for each in "".join(given)):
            # Names of files among them are right as they are, so they are not decoded again.
            logging.getLogger(PROGRAM).warning("the arguments were not read as UTF-8: set PYTHONUTF8=1")
        return _run(given)


def _run(given: list[str]) -> int:
    tree = command_tree()
    try:
        if asked := os.environ.get(COMPLETION_VARIABLE):
            from click.shell_completion import shell_complete

            return shell_complete(tree, {}, PROGRAM, COMPLETION_VARIABLE, asked)
        with tree.make_context(PROGRAM, list(given)) as ctx:
            code = tree.invoke(ctx)
        sys.stdout.flush()
        return int(code or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as fault:
        path = fault.ctx.command_path if fault.ctx else PROGRAM
        return _failed(given, "usage", f"{explain_usage_error(fault)}; see `{path} --help`")
    except KeepwardError as fault:
        return _failed(given, fault.code, str(fault))
    except BrokenPipeError:
        # The reader closed the pipe, as in `keepward log | head`.
        _discard_stdout()
        return 1
    except (KeyboardInterrupt, click.Abort):
        stopped = "interrupted; uncommitted changes were not stored; run the command again to go on"
        return _failed(given, "interrupted", stopped)
    except OSError as fault:
        where = f" ({fault.filename})" if fault.filename else ""
        hint = "; give this user the right to it and to its folders" if isinstance(fault, PermissionError) else ""
        said = fault.strerror or "input or output error"
        return _failed(given, "io_error", f"the system says: {said}{where}{hint}")
    except Exception as fault:
        # A trace may quote a memory.
        if os.environ.get("KEEPWARD_TRACE"):
            raise
        what = type(fault).__name__
        return _failed(given, "internal", f"unexpected {what}; set KEEPWARD_TRACE=1 to see where, and report it")


@contextmanager
def _logging() -> Iterator[None]:
    """Show what the library logs as lines on stderr, each once, for as long as the command runs."""
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


def _failed(arguments: list[str], code: str, message: str) -> int:
    head = arguments[: arguments.index("--")] if "--" in arguments else arguments
    try:
        if "--json" in head:
            print_json({"error": {"code": code, "message": message}})
        sys.stdout.flush()
    except OSError:
        # Where stdout takes nothing more, the sentence on stderr is what is left.
        _discard_stdout()
    print(f"{PROGRAM}: {escape_invisible(message)}", file=sys.stderr)  # noqa: T201
    return EXIT_CODE_OF.get(code, 1)


def _discard_stdout() -> None:
    """Discard the buffer of stdout, which nobody reads any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
