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

from keepward.cli import (
    blobs,
    config,
    demo,
    drill,
    erase,
    inquiry,
    jobs,
    journal,
    key,
    learn,
    mcp,
    move,
    read,
    review,
    serve,
    store,
    token,
    write,
)
from keepward.cli.call import Answer, print_json
from keepward.cli.frame import EXIT_OF, OPTION_VALUES, UsageError, add, add_root, explain
from keepward.cli.screen import nearest
from keepward.errors import KeepwardError
from keepward.present import visible

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
    "Start": (("init", store.init), ("demo", demo.demo), ("status", store.status)),
    "Serve": (("serve", serve.serve), ("mcp", mcp.mcp), ("connect", mcp.connect)),
    "Propose": (
        ("remember", write.remember),
        ("revise", write.revise),
        ("forget", write.forget),
        ("archive", write.archive),
        ("restore", write.restore),
        ("blob", blobs.blob),
    ),
    "Read": (
        ("recall", read.recall),
        ("context", read.context),
        ("replay", read.replay),
        ("list", read.list_memories),
        ("get", read.get),
        ("history", read.history),
    ),
    "Learn": (("feedback", learn.feedback), ("train", learn.train)),
    "Decide": (("pending", review.pending), ("approve", review.approve), ("reject", review.reject)),
    "Audit and undo": (
        ("log", journal.log),
        ("show", journal.show),
        ("diff", journal.diff),
        ("receipt", journal.receipt),
        ("rollback", journal.rollback),
        ("impact", inquiry.impact),
        ("contain", inquiry.contain),
        ("blame", inquiry.blame),
        ("bisect", inquiry.bisect),
        ("context-diff", inquiry.context_diff),
    ),
    "Look after the store": (
        ("token", token.token),
        ("config", config.config),
        ("jobs", jobs.jobs),
        ("erase", erase.erase),
        ("backup", erase.backup),
        ("restore-backup", erase.restore_backup),
        ("rescue", erase.rescue),
        ("adopt", erase.adopt),
        ("key", key.key),
        ("verify", store.verify),
        ("drill", drill.drill),
        ("rebuild", store.rebuild),
        ("reindex", store.reindex),
        ("doctor", store.doctor),
        ("export", move.export),
        ("import", move.import_file),
        ("restore-export", move.restore_export),
        ("version", store.version),
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
