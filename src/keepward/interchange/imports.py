"""Import: memories from files, folders and archives of many systems, each through the gates, with source ``import``.

The format of each file is told by its content, not by its name: a vault by its seals, a ChatGPT export by the tree of
its conversations, SQLite by its tables, and what is no JSON by its headings and lists. ``run`` says what is promised of
a run.

Invariants
(1) A file that cannot be read, or that was cut, is an error; nothing of it is stored. In a folder or an archive it is
    told with its name and the others are read.
(2) Each file is read twice: once to its end, and then to store it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from keepward.core.value import unknown_name_message
from keepward.errors import InvalidInput
from keepward.interchange import chats, legacy, markdown, messages, peers, records, tables, tabular, vault
from keepward.interchange.archive import Bundle, open_bundle
from keepward.interchange.parsing import SQLITE_MAGIC, Row, Source
from keepward.interchange.run import Imported, ImportRun, LineResult
from keepward.services.splitter import UnusableItem

if TYPE_CHECKING:
    from keepward.memory import Memory

Format = Literal[
    "auto",
    "vault",
    "messages",
    "legacy-jsonl",
    "markdown",
    "records",
    "chatgpt",
    "claude",
    "mcp-memory",
    "mem0",
    "letta",
    "zep",
    "langgraph",
    "notes-table",
    "block-tables",
    "memory-bank",
    "csv",
    "lines",
]
FORMATS: tuple[Format, ...] = get_args(Format)
#: How many lines ``auto`` looks at before it gives up on damaged ones.
_PROBE = 50
#: Files that are named among those left out.
_MAX_NAMED_FILES = 5


class Reader(NamedTuple):
    """How one format is told and read. Another one is a module with these two functions, and a row in ``READERS``."""

    #: Whether a JSON value, a line or a whole file, is of this format.
    detect: Callable[[Any], bool]
    #: Yield the rows of a file; InvalidInput where it cannot be read, was cut, or holds nothing.
    read: Callable[[Source, ImportRun], Iterator[Row]]


def detect(source: Source) -> Format:
    """Tell the format of a file by what is in it."""
    if source.begins(SQLITE_MAGIC):
        return tables.detect(source)
    error, opens = "", source.first()
    values = source.elements() if opens == "[" else source.values() if opens == "{" else iter(())
    for _, value in itertools.islice(values, _PROBE):
        if isinstance(value, UnusableItem):
            error = error or str(value)
        elif known := _format_of(value):
            return known
    if opens == "{" and error and (known := _format_of(source.document())):
        return known
    if opens not in {"{", "["} and tabular.is_csv(source):
        return "csv"
    if opens not in {"{", "["} and markdown.detect(source.text(), source.suffix):
        return "markdown"
    raise InvalidInput(f"{source.name} is in no format known here: name its format, one of {', '.join(FORMATS[1:])}")


def _format_of(value: Any) -> Format | None:
    return next((name for name, reader in READERS.items() if reader.detect(value)), None)


def load(
    mem: Memory,
    target: str | Path | IO[str] | IO[bytes],
    *,
    format: Format = "auto",  # noqa: A002 - the word people use
    user: str | None = None,
    session: str | None = None,
    facts: bool = False,
    subject: str | None = None,
    dry_run: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    on_result: Callable[[LineResult], None] | None = None,
) -> Imported:
    """Import a file, a folder or a zip archive into the tenant of the handle, under the name of its actor.

    What a file says of a user goes to ``/users/<id>`` below the handle's scope, with that user as the subject. ``user``
    puts all of it into one user, and so does the handle of a user. ``session`` names the session of ``messages``;
    default is the file's name. With ``facts``, what users tell of themselves in conversations is proposed as facts, as
    ``Memory.add`` does; ``subject`` is who they are. With ``dry_run`` everything is judged and nothing stored.
    ``on_progress`` gets (done, total) while the rows are counted and after every batch; ``total`` may grow.
    ``on_result`` gets what became of each line as it is known, in the order of deciding.

    Raises:
        InvalidInput: unreadable, cut, empty or unrecognised, or of several users that cannot be told apart; nothing was
            stored.
    """
    with open_bundle(target) as bundle:
        formats = formats_of(bundle, format)
        options: dict[str, Any] = {"user": user, "session": session, "facts": facts, "subject": subject}
        run = ImportRun(mem, bundle.name, dry_run=dry_run, on_progress=on_progress, on_result=on_result, **options)
        notes, readable = [*run.notes, *bundle.notes], _measure_files(run, bundle, formats)
        # What the first pass left out is left out again.
        run.notes, run.skipped, run.storing = notes, Counter(bundle.left), not dry_run
        for inside in readable:
            with bundle.files[inside]() as source:
                run.add(READERS[formats[inside]].read(source, run), f"{inside}: " if bundle.many else "")
        return run.finish(Counter(formats.values()).most_common(1)[0][0])


def holds_items(
    mem: Memory,
    target: str | Path | IO[str] | IO[bytes],
    *,
    format: Format = "auto",  # noqa: A002  the word of the command line
    user: str | None = None,
    session: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> bool:
    """Return whether an import holds anything that could be stored.

    Raises:
        InvalidInput: see ``load``.
    """
    with open_bundle(target) as bundle:
        run = ImportRun(mem, bundle.name, user=user, session=session, on_progress=on_progress)
        _measure_files(run, bundle, formats_of(bundle, format))
        return run.items > 0


def _measure_files(run: ImportRun, bundle: Bundle, formats: Mapping[str, Format]) -> list[str]:
    """Read all files to their end; return the paths of those that can be read (1)."""
    readable = []
    for inside, format in formats.items():  # noqa: A001 - the word people use
        try:
            with bundle.files[inside]() as source:
                run.measure(READERS[format].read(source, run), inside)
            readable.append(inside)
        except InvalidInput as exc:
            if not bundle.many:
                raise
            run.add([(0, UnusableItem(f"{inside}: {exc}"))])
    run.require_user()
    return readable


def formats_of(bundle: Bundle, format: Format) -> dict[str, Format]:  # noqa: A002 - the word people use
    """Return the format of each file that is read, by its path; what is left out is added to the notes.

    Raises:
        InvalidInput: there is nothing to read, or a file that stands alone is of another format than was named.
    """
    if format not in FORMATS:
        raise InvalidInput(unknown_name_message("format", format, FORMATS))
    found: dict[str, Format] = {}
    other: dict[str, str] = {}
    for inside, opened in bundle.files.items():
        try:
            with opened() as source:
                told = detect(source)
        except InvalidInput as exc:
            if format == "auto" or bundle.many:
                other[inside] = str(exc)
                continue
            told = format
        if format not in {"auto", told} and (bundle.many or told not in _LINE_FORMATS or format not in _LINE_FORMATS):
            other[inside] = f"{inside} looks like {told}, not {format}: leave the format out, or name {told}"
            continue
        found[inside] = told if format == "auto" else format
    if not found:
        raise InvalidInput(next(iter(other.values()), f"{bundle.name} holds no file that could be read"))
    named = f"{', '.join(itertools.islice(other, _MAX_NAMED_FILES))}{', …' if len(other) > _MAX_NAMED_FILES else ''}"
    bundle.notes += [f"left out as of another format, or of none that is known: {named}"] if other else []
    return found


def _never(_: Any) -> bool:
    return False


#: In the order in which a value is tried; Markdown and SQLite are told by the whole file, see ``detect``.
READERS: dict[Format, Reader] = {
    "vault": Reader(vault.detect, vault.read),
    "records": Reader(records.detect, records.read),
    "chatgpt": Reader(chats.is_chatgpt, chats.read_chatgpt),
    "claude": Reader(chats.is_claude, chats.read_claude),
    "mcp-memory": Reader(peers.is_server_memory, peers.read_server_memory),
    "mem0": Reader(peers.is_mem0, peers.read_mem0),
    "letta": Reader(peers.is_letta, peers.read_letta),
    "zep": Reader(peers.is_zep, peers.read_zep),
    "block-tables": Reader(tables.is_block, tables.read_blocks),
    "langgraph": Reader(_never, tables.read_langgraph),
    "notes-table": Reader(_never, tables.read_notes),
    "memory-bank": Reader(_never, tables.read_memory_file),
    "messages": Reader(messages.detect, messages.read),
    "legacy-jsonl": Reader(legacy.detect, legacy.read),
    "markdown": Reader(_never, markdown.read),
    "csv": Reader(_never, tabular.read_csv),
    "lines": Reader(_never, tabular.read_lines),
}
#: What one may well be read as another, where it is named.
_LINE_FORMATS = frozenset({"vault", "records", "messages", "legacy-jsonl", "markdown", "csv", "lines"})
