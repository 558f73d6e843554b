"""The command line: every command in its section, and one way out for every error.

Invariants
(1) `main` returns an exit code and never raises; see `cli_frame` for the codes.
(2) With `--json` an error is one object on stdout, {"error": {"code", "message"}}; the message is on stderr too.
"""

from __future__ import annotations

import codecs
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import typer

from keepward.errors import KeepwardError
from keepward.surfaces import (
    cli_blobs,
    cli_config,
    cli_demo,
    cli_drill,
    cli_erase,
    cli_inquiry,
    cli_jobs,
    cli_journal,
    cli_key,
    cli_learn,
    cli_mcp,
    cli_move,
    cli_read,
    cli_review,
    cli_serve,
    cli_store,
    cli_token,
    cli_write,
)
from keepward.surfaces.cli_call import Answer, print_json
from keepward.surfaces.cli_frame import EXIT_OF, OPTION_VALUES, UsageError, add, add_root, explain
from keepward.surfaces.cli_screen import nearest
from keepward.surfaces.present import visible

PROGRAM = "keepward"
#: What Typer answers after an interrupt from the keyboard.
INTERRUPTED = 130
ABOUT = """Memory for AI agents that one can audit, approve and undo.

Commands that propose (remember, revise, forget, archive, restore, import) and those that read act as the agent `cli`:
agents in a shell use them, and nothing of an agent's reaches core memory unreviewed. Commands that decide or look
after the store (approve, reject, rollback, verify, export ...) act as the operator, you, by the name of your login.
`--as operator` makes a write your own: it is decided by that, at once. Where KEEPWARD_ACTOR names somebody, `--as`
can only name somebody with fewer rights.
"""
SECTIONS: dict[str, tuple[tuple[str, Callable[..., Answer]], ...]] = {
    "Start": (("init", cli_store.init), ("demo", cli_demo.demo), ("status", cli_store.status)),
    "Serve": (("serve", cli_serve.serve), ("mcp", cli_mcp.mcp), ("connect", cli_mcp.connect)),
    "Propose": (
        ("remember", cli_write.remember),
        ("revise", cli_write.revise),
        ("forget", cli_write.forget),
        ("archive", cli_write.archive),
        ("restore", cli_write.restore),
        ("blob", cli_blobs.blob),
    ),
    "Read": (
        ("recall", cli_read.recall),
        ("context", cli_read.context),
        ("replay", cli_read.replay),
        ("list", cli_read.list_memories),
        ("get", cli_read.get),
        ("history", cli_read.history),
    ),
    "Learn": (("feedback", cli_learn.feedback), ("train", cli_learn.train)),
    "Decide": (("pending", cli_review.pending), ("approve", cli_review.approve), ("reject", cli_review.reject)),
    "Audit and undo": (
        ("log", cli_journal.log),
        ("show", cli_journal.show),
        ("diff", cli_journal.diff),
        ("receipt", cli_journal.receipt),
        ("rollback", cli_journal.rollback),
        ("impact", cli_inquiry.impact),
        ("contain", cli_inquiry.contain),
        ("blame", cli_inquiry.blame),
        ("bisect", cli_inquiry.bisect),
        ("context-diff", cli_inquiry.context_diff),
    ),
    "Look after the store": (
        ("token", cli_token.token),
        ("config", cli_config.config),
        ("jobs", cli_jobs.jobs),
        ("erase", cli_erase.erase),
        ("backup", cli_erase.backup),
        ("restore-backup", cli_erase.restore_backup),
        ("rescue", cli_erase.rescue),
        ("adopt", cli_erase.adopt),
        ("key", cli_key.key),
        ("verify", cli_store.verify),
        ("drill", cli_drill.drill),
        ("rebuild", cli_store.rebuild),
        ("reindex", cli_store.reindex),
        ("doctor", cli_store.doctor),
        ("export", cli_move.export),
        ("import", cli_move.import_file),
        ("restore-export", cli_move.restore_export),
        ("version", cli_store.version),
    ),
}

#: Every command by name, with its section.
COMMANDS = {name: (panel, function) for panel, rows in SECTIONS.items() for name, function in rows}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, `sys.argv` by default; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8" and isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without UTF-8 gets the nearest plain sign, and not an error.
        codecs.register_error("keepward.nearest", nearest)
        sys.stdout.reconfigure(errors="keepward.nearest")
    with warnings.catch_warnings(), _logging():
        # What the library warns of it logs as well, in a line without paths and line numbers.
        warnings.simplefilter("ignore", UserWarning)
        return _run(given)


def _run(given: list[str]) -> int:
    try:
        code = command_tree(_named(given))(given, prog_name=PROGRAM, standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.stdout.flush()
        return int(code or 0)
    except UsageError as fault:
        path = fault.ctx.command_path if fault.ctx else PROGRAM
        return _failed(given, "usage", f"{explain(fault)}; see `{path} --help`")
    except KeepwardError as fault:
        return _failed(given, fault.code, str(fault))
    except BrokenPipeError:
        # The reader has gone, as in `keepward log | head`; what is left in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, typer.Abort):
        return _failed(given, "interrupted", "interrupted; what was not committed was not stored")
    except OSError as fault:
        return _failed(given, "io_error", f"the system says: {fault.strerror or 'input or output error'}")
    except Exception as fault:
        # (1): a trace helps nobody at a prompt and may quote a memory.
        if os.environ.get("KEEPWARD_TRACE"):
            raise
        what = type(fault).__name__
        return _failed(given, "internal", f"unexpected {what}; set KEEPWARD_TRACE=1 to see where, and report it")


@cache
def command_tree(only: str | None = None) -> Any:
    """Return the commands for Typer to run: one of them, or all.

    All take 40 ms to build, one takes 5; a start for one command need not build the others.
    """
    # Rich help costs a start of its own and wraps worse in a pipe; plain help reads well everywhere.
    app = typer.Typer(name=PROGRAM, rich_markup_mode=None, pretty_exceptions_enable=False)
    add_root(app, ABOUT)
    for name, (panel, function) in COMMANDS.items():
        if only in {None, name}:
            add(app, name, function, panel=panel)
    return typer.main.get_command(app)


def _named(arguments: Sequence[str]) -> str | None:
    """Return the command that is certainly meant; None when all are needed, as for help and for a slip."""
    takes_value = {flag for flag, many in OPTION_VALUES.items() if many}
    position = 0
    while position < len(arguments) and arguments[position] in OPTION_VALUES:
        position += 2 if arguments[position] in takes_value else 1
    name = arguments[position] if position < len(arguments) else ""
    return name if name in COMMANDS and "_KEEPWARD_COMPLETE" not in os.environ else None


@contextmanager
def _logging() -> Iterator[None]:
    """Show what the library logs as lines on stderr, each once, for as long as the command runs."""
    seen: set[str] = set()

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if message not in seen:
                seen.add(message)
                print(f"{PROGRAM}: {message}", file=sys.stderr)  # noqa: T201 - stderr is where a command talks

    logger, handler = logging.getLogger(PROGRAM), Lines(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _failed(arguments: list[str], code: str, message: str) -> int:
    head = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--json" in head:
        print_json({"error": {"code": code, "message": message}})
    print(f"{PROGRAM}: {visible(message)}", file=sys.stderr)  # noqa: T201 - stderr is where a command talks
    return EXIT_OF.get(code, 1)
