"""Import memories from files, folders and archives of many systems, through the gates, with source ``import``.

The content of a file determines its format, not its name: a vault has seals, a ChatGPT export a tree of conversations,
SQLite tables, and Markdown headings and lists. ``run`` lists the guarantees of a run.

Invariants
(1) A file that is unreadable or truncated is an error; nothing of it is stored. In a folder or an archive the error has
    the name of the file, and the other files are imported.
(2) Each file is read twice: to its end for a check, and then to store it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from keepward.core.value import unknown_name_message
from keepward.errors import InvalidInput
from keepward.interchange import chats, legacy, markdown, messages, peers, records, tables, tabular, tiers, vault
from keepward.interchange.archive import Bundle, open_bundle
from keepward.interchange.parsing import PROBED_LINES, SQLITE_MAGIC, ImportSource, Row
from keepward.interchange.run import Imported, ImportRun, LineResult
from keepward.services.writing.splitter import UnusableItem

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
    "tiers",
    "csv",
    "lines",
]
FORMATS: tuple[Format, ...] = get_args(Format)
#: Files that are named among those left out.
_MAX_NAMED_FILES = 5


class ImportFormat(NamedTuple):
    """Functions to detect and read one format. A new format is a module with both, and a row in ``READERS``."""

    #: Whether a JSON value (a line or a complete file) has this format.
    detect: Callable[[Any], bool]
    #: Yield the rows of a file. InvalidInput if it is unreadable, truncated or empty.
    read: Callable[[ImportSource, ImportRun], Iterator[Row]]


def detect(source: ImportSource) -> Format:
    """Return the format of a file, by its content."""
    if source.begins(SQLITE_MAGIC):
        return tables.detect(source)
    error, opens = "", source.first()
    values = source.elements() if opens == "[" else source.values() if opens == "{" else iter(())
    for _, value in itertools.islice(values, PROBED_LINES):
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
    raise InvalidInput(f"{source.name} has no known format: name its format, one of {', '.join(FORMATS[1:])}")


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
    untrusted: bool = False,
    dry_run: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    on_result: Callable[[LineResult], None] | None = None,
) -> Imported:
    """Import a file, a folder or a zip archive into the tenant of the handle, under the name of its actor.

    Memories of a user go to ``/users/<id>`` below the handle's scope, with that user as the subject. ``user``, or the
    handle of a user, assigns everything to one user. ``session`` names the session of ``messages``; the default is the
    file's name. ``facts`` also proposes the facts of conversations, like ``Memory.add``; ``subject`` is the name of
    the user. The memories of a person's import have the trust of a user; with ``untrusted``, and for an agent, that of
    an import. Core blocks and memories with a key wait in the review queue. ``dry_run`` runs the gates and stores
    nothing. ``on_progress`` gets (done, total) while the rows are counted and after every batch; ``total`` may grow.
    ``on_result`` gets the result of each line.

    Raises:
        InvalidInput: the file is unreadable, truncated, empty or of unknown format, or its users cannot be
            distinguished; nothing was stored.
    """
    with open_bundle(target) as bundle:
        formats = formats_of(bundle, format)
        options: dict[str, Any] = {"user": user, "session": session, "facts": facts, "subject": subject}
        options |= {"untrusted": untrusted}
        run = ImportRun(mem, bundle.name, dry_run=dry_run, on_progress=on_progress, on_result=on_result, **options)
        notes, readable = [*run.notes, *bundle.notes], _measure_files(run, bundle, formats)
        # The second pass counts the skipped parts again.
        run.notes, run.skipped, run.storing = notes, Counter(bundle.left), not dry_run
        for inside in readable:
            with bundle.files[inside]() as source:
                run.add(READERS[formats[inside]].read(source, run), f"{inside}: " if bundle.many else "")
        return run.finish(Counter(formats.values()).most_common(1)[0][0])


def contains_items(
    mem: Memory,
    target: str | Path | IO[str] | IO[bytes],
    *,
    format: Format = "auto",  # noqa: A002  the word of the command line
    user: str | None = None,
    session: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> bool:
    """Return whether an import contains anything that could be stored.

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
    """Return the format of each readable file by its path; a note lists the files that are left out.

    Raises:
        InvalidInput: there is no readable file, or a single file has another format than the named one.
    """
    if format not in FORMATS:
        raise InvalidInput(unknown_name_message("format", format, FORMATS))
    formats_by_path: dict[str, Format] = {}
    other: dict[str, str] = {}
    for inside, opened in bundle.files.items():
        try:
            with opened() as source:
                detected = detect(source)
        except InvalidInput as exc:
            if format == "auto" or bundle.many:
                other[inside] = str(exc)
                continue
            detected = format
        if format not in {"auto", detected} and (
            bundle.many or detected not in _LINE_FORMATS or format not in _LINE_FORMATS
        ):
            other[inside] = f"{inside} seems to be {detected}, not {format}: leave the format out, or name {detected}"
            continue
        formats_by_path[inside] = detected if format == "auto" else format
    if not formats_by_path:
        raise InvalidInput(next(iter(other.values()), f"{bundle.name} contains no readable file"))
    named = f"{', '.join(itertools.islice(other, _MAX_NAMED_FILES))}{', …' if len(other) > _MAX_NAMED_FILES else ''}"
    bundle.notes += [f"left out, because the format is another or unknown: {named}"] if other else []
    return formats_by_path


def _never(_: Any) -> bool:
    return False


#: In the order of detection. Markdown and SQLite need the complete file, see ``detect``.
READERS: dict[Format, ImportFormat] = {
    "vault": ImportFormat(vault.detect, vault.read),
    "records": ImportFormat(records.detect, records.read),
    "chatgpt": ImportFormat(chats.is_chatgpt, chats.read_chatgpt),
    "claude": ImportFormat(chats.is_claude, chats.read_claude),
    "mcp-memory": ImportFormat(peers.is_server_memory, peers.read_server_memory),
    "mem0": ImportFormat(peers.is_mem0, peers.read_mem0),
    "letta": ImportFormat(peers.is_letta, peers.read_letta),
    "zep": ImportFormat(peers.is_zep, peers.read_zep),
    "block-tables": ImportFormat(tables.is_block, tables.read_blocks),
    "langgraph": ImportFormat(_never, tables.read_langgraph),
    "notes-table": ImportFormat(_never, tables.read_notes),
    "memory-bank": ImportFormat(_never, tables.read_memory_file),
    "messages": ImportFormat(messages.detect, messages.read),
    "legacy-jsonl": ImportFormat(legacy.detect, legacy.read),
    "tiers": ImportFormat(tiers.detect, tiers.read),
    "markdown": ImportFormat(_never, markdown.read),
    "csv": ImportFormat(_never, tabular.read_csv),
    "lines": ImportFormat(_never, tabular.read_lines),
}
#: A file of one of these formats may be read as another of them, if that is named.
_LINE_FORMATS = frozenset({"vault", "records", "messages", "legacy-jsonl", "markdown", "csv", "lines"})
