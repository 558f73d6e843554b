"""Readable output of results, for a terminal or a pipe, with or without colour.

Stored text is printed as plain text: markup is not interpreted, and control characters are written out. Every line fits
the width: that of the terminal, `COLUMNS`, or 80. A colour only repeats what a word says.

Late imports: other commands start faster.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from keepward.core.results import changed_fields
from keepward.core.value import format_time

#: Minimum width of a table's last column, in cells. If less is left, each row becomes a block.
_MIN_LAST_COLUMN = 16
#: Nearest plain character for one that the stream's encoding lacks.
_ASCII_FALLBACKS = {"“": '"', "”": '"', "·": "-", "…": "...", "’": "'"}
#: Joiners of ordinary text: Persian, Indic scripts, emoji.
_JOINERS = "\u200c\u200d"
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)")
#: An object with these fields is a memory.
_MEMORY = frozenset({"id", "text", "tier", "status"})
#: Fields of an event that are a memory or None.
_EVENT = frozenset({"before", "after"})
#: An object with these fields is a commit, a receipt or a proposal, which is shown by its id.
_NAMED = frozenset({"id", "tenant"})
#: Fields whose value is a JSON value that the caller chose. It is shown as JSON.
_JSON_FIELDS = frozenset({"metadata", "value"})
#: Values that are left out.
_EMPTY: tuple[Any, ...] = (None, "", [], {})
#: Styles of outcomes.
_STYLES = {
    **dict.fromkeys(("committed", "approved", "serving", "fired", "run"), "bold green"),
    **dict.fromkeys(("quarantined", "inconclusive"), "bold yellow"),
    **dict.fromkeys(("refused", "error", "failed", "breached", "FAULT"), "bold red"),
}


def escape_invisible(text: str, *, joiners: bool = True) -> str:
    """Return text with control and invisible characters written out as `<U+202E>`.

    Line breaks and tabs stay. For a reviewer, ``joiners=False`` writes out the two joiners as well. The result cannot
    move a terminal's cursor or hide a word.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"<U+{ord(char):04X}>"
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        and char not in "\n\t"
        and not (joiners and char in _JOINERS)
        else char
        for char in text
    )


class Screen:
    """Writes to one stream with rich. A style is, for example, `bold green`."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._stream = stream
        self._console = Console(file=stream, markup=False, highlight=False, emoji=False)

    def _print(self, renderable: Any, indent: int = 0) -> None:
        from rich.padding import Padding

        with self._console.capture() as captured:
            self._console.print(Padding(renderable, (0, 0, 0, indent), expand=False) if indent else renderable)
        for line in captured.get().removesuffix("\n").split("\n"):
            self._stream.write(line.rstrip() + "\n")

    def line(self, text: str = "", style: str = "", *, indent: int = 0) -> None:
        """Print a paragraph, wrapped at the width."""
        from rich.text import Text

        self._print(Text(escape_invisible(text), style, overflow="fold"), indent)

    def heading(self, text: str) -> None:
        """Print a heading with an empty line before it."""
        self.line()
        self.line(text, "bold cyan")

    def verbatim(self, text: str) -> None:
        """Print a text without wrapping. At a terminal, control characters are written out."""
        self._stream.write((escape_invisible(text) if self._console.is_terminal else text).removesuffix("\n") + "\n")

    def labelled(
        self, label: str, text: str | Iterable[str] | None, style: str = "", *, width: int = 12, indent: int = 0
    ) -> None:
        """Print `label   text` for each text, wrapped; nothing if there is no text.

        One long word, such as a path or a digest, is not wrapped, so that it can be copied.
        """
        from rich.table import Table
        from rich.text import Text

        for paragraph in [text] if isinstance(text, str) else text or ():
            if paragraph.isascii() and len(paragraph) > self._console.width - indent - width and " " not in paragraph:
                self.verbatim(escape_invisible(f"{' ' * indent}{label:<{width - 1}} {paragraph}"))
            elif paragraph:
                grid = Table.grid(padding=(0, 1, 0, 0))
                grid.add_column(style="dim", no_wrap=True, width=max(width - 1, len(label)))
                grid.add_column(overflow="fold")
                grid.add_row(escape_invisible(label), Text(escape_invisible(paragraph), style))
                self._print(grid, indent)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str = "", indent: int = 0) -> None:
        """Print rows under headings; the last column is wrapped in the remaining width.

        If too little width remains, each row becomes a block with one cell per line.
        """
        from rich.cells import cell_len
        from rich.table import Table
        from rich.text import Text

        if not rows:
            self.line(empty, "dim")
            return
        shown = [[" ".join(escape_invisible(cell).split()) for cell in row] for row in rows]
        widths = [max(map(cell_len, column)) for column in zip(columns, *shown, strict=True)]
        room = self._console.width - indent - sum(widths[:-1]) - 2 * len(widths[:-1])
        if room < min(_MIN_LAST_COLUMN, widths[-1]):
            for number, row in enumerate(shown):
                if number:
                    self.line()
                for name, cell in zip(columns, row, strict=True):
                    self.labelled(name, cell, width=max(map(len, columns)) + 2, indent=indent)
            return
        table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for name in columns:
            table.add_column(name, no_wrap=name != columns[-1], overflow="fold")
        for row in shown:
            table.add_row(*(Text(cell, _STYLES.get(cell, "")) for cell in row))
        self._print(table, indent)

    def change(self, field: str, before: object, after: object, *, joiners: bool = True, indent: int = 2) -> None:
        """Print one field of a diff: the old value after `-`, the new one after `+`."""
        self.line(f"{field}:", "dim", indent=indent)
        for sign, value, style in (("-", before, "red"), ("+", after, "green")):
            self.labelled(sign, escape_invisible(as_text(value), joiners=joiners), style, width=2, indent=indent + 2)

    def result(self, data: Mapping[str, Any], hidden: Sequence[str] = (), *, indent: int = 0) -> None:
        """Print any result from its JSON: fields with their names, and lists as tables.

        ``memory`` prints the memories in it, and ``event`` the events.

        Empty fields and the fields in ``hidden`` are left out, at every depth.
        """
        filled = {name: _by_id(value) for name, value in data.items() if name not in hidden and value not in _EMPTY}
        width = max((len(name) for name in filled), default=0) + 2
        for name, value in filled.items():
            label = name.replace("_", " ")
            match value:
                case list() if isinstance(value[0], dict):
                    is_alone = len(filled) == 1 and not indent
                    if not is_alone:
                        self.line(f"{label}:", "dim", indent=indent)
                    self._items(value, hidden, 0 if is_alone else indent + 2)
                case dict() if _is_memory(value):
                    self.line(label, "dim", indent=indent)
                    self.memory(value, indent=indent + 2)
                case dict() if _is_nested(name, value):
                    self.line(label, "dim", indent=indent)
                    self.result(value, hidden, indent=indent + 2)
                case str() | list() if name == "next":
                    # Commands are not wrapped, so that they can be copied.
                    for line in [value] if isinstance(value, str) else value:
                        self.verbatim(f"{' ' * indent}{label:<{width - 1}} {escape_invisible(line)}")
                case _:
                    text = _cell(value)
                    self.labelled(label, text, _STYLES.get(text, ""), width=min(width, 20), indent=indent)
        if not filled and not indent:
            self.line("Nothing found.", "dim")

    def _items(self, items: list[dict[str, Any]], hidden: Sequence[str], indent: int) -> None:
        if _is_memory(items[0]):
            for each in items:
                self.memory(each, indent=indent)
            return
        if all(map(_is_event, items)):
            for each in items:
                self.event(each, indent=indent)
            return
        items = [{name: _by_id(value) for name, value in each.items()} for each in items]
        names = dict.fromkeys(name for each in items for name in each)
        columns = [name for name in names if any(each.get(name) not in _EMPTY for each in items)]
        columns = [name for name in columns if name not in hidden]
        if not any(_is_nested(name, each.get(name)) for each in items for name in columns):
            cells = {name: [_cell(each.get(name)) for each in items] for name in columns}
            # The longest column of words comes last, because only the last one is wrapped.
            longest = max(cells, key=lambda name: max((" " in cell, len(cell)) for cell in cells[name]))
            cells[longest] = cells.pop(longest)
            self.table(
                [name.replace("_", " ") for name in cells], list(zip(*cells.values(), strict=True)), indent=indent
            )
            return
        for number, each in enumerate(items):
            if number:
                self.line()
            self.result(each, hidden, indent=indent)

    def memory(self, data: Mapping[str, Any], *, indent: int = 0) -> None:
        """Print a memory in two lines: its text, and its id, tier, kind and key."""
        self.line(data["text"], indent=indent)
        ended = data["status"] != "active" and data["status"]
        until = data["expires_at"] and f"until {format_time(data['expires_at'])}"
        facts = [data["id"], data["tier"], data["kind"], data["key"] and f"key {data['key']}", until, ended]
        facts += valid_time(data)
        self.line(" · ".join(filter(None, facts)), "dim", indent=indent + 2)

    def event(self, data: Mapping[str, Any], *, indent: int = 0) -> None:
        """Print one event of a memory: the fields that differ; for a new or removed memory its text."""
        before, after = data["before"], data["after"]
        side = after or before
        if side is None:
            # Neither side has the memory, for example because a later commit removed it.
            return
        word = data.get("op") or ("added" if not before else "removed" if not after else "changed")
        parts = [f"{word} {describe_kind(side)}", f"v{side['version']}", side["id"], data.get("actor")]
        parts += [
            data.get("approved_by") and f"approved by {data['approved_by']}",
            data.get("at") and format_time(data["at"]),
        ]
        self.line(" · ".join(filter(None, parts)), "bold", indent=indent)
        if data.get("reason"):
            self.labelled("because", data["reason"], indent=indent + 2)
        if not before or not after:
            self.change("text", before and before["text"], after and after["text"], indent=indent + 2)
        for change in changed_fields(before, after) if before and after else ():
            self.change(change["field"], change["before"], change["after"], indent=indent + 2)


def _by_id(value: object) -> object:
    """Return the id of a commit, receipt or proposal, also of a commit with its steps; any other value as it is."""
    if isinstance(value, dict) and isinstance(value.get("commit"), dict) and "steps" in value:
        value = value["commit"]
    return value["id"] if isinstance(value, dict) and value.keys() >= _NAMED else value


def _is_event(item: Mapping[str, Any]) -> bool:
    return item.keys() >= _EVENT and all(item[side] is None or _is_memory(item[side]) for side in _EVENT)


def _is_memory(value: object) -> bool:
    return isinstance(value, dict) and value.keys() >= _MEMORY


def valid_time(memory: Mapping[str, Any]) -> list[str]:
    """Return when a memory holds, such as ``valid until 2027-01-03``, and since when it is stale; empty for always."""
    times = {name: memory.get(name) for name in ("valid_from", "valid_until")}
    dates = [
        f"{name.replace('_', ' ')} {at[:10] if at[11:19] == '00:00:00' else format_time(at)}"
        for name, at in times.items()
        if at
    ]
    stale_at = memory.get("stale_at")
    return [*dates, f"its source changed on {stale_at[:10]}"] if stale_at else dates


def describe_kind(record: Mapping[str, Any]) -> str:
    """Return tier, kind and key of a memory in words."""
    return f"{record['tier']} {record['kind']}{' · key ' + record['key'] if record['key'] else ''}"


def _is_nested(name: str, value: object) -> bool:
    """Whether a value needs lines of its own: it contains objects, lists or long texts."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return name not in _JSON_FIELDS and any(isinstance(each, dict | list) or len(str(each)) > 60 for each in items)


def _cell(value: object) -> str:
    return format_time(value) if isinstance(value, str) and _INSTANT.fullmatch(value) else as_text(value)


def as_text(value: object) -> str:
    """Return a JSON value in one line; the empty text for an empty value."""
    if value in (None, [], {}):
        return ""
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.3f}".rstrip("0").rstrip(".")
        case list() if not any(isinstance(each, dict | list) for each in value):
            return ", ".join(map(as_text, value))
        case dict() if not any(isinstance(each, dict | list) for each in value.values()):
            return ", ".join(f"{name} {as_text(each)}" for name, each in value.items() if each not in _EMPTY)
        case list() | dict():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


@contextmanager
def progress(label: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a callback that draws a bar on stderr; None if stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    import click

    with click.progressbar(length=1, label=label, file=sys.stderr, show_pos=True) as bar:

        def report(done: int, total: int) -> None:
            bar.length = max(1, total)
            bar.update(done - bar.pos)

        yield report


def replace_unencodable(exc: UnicodeError) -> tuple[str, int]:
    """Handle an encoding error: replace each character by a similar plain one, or by a question mark."""
    assert isinstance(exc, UnicodeEncodeError)
    return "".join(_ASCII_FALLBACKS.get(char, "?") for char in exc.object[exc.start : exc.end]), exc.end
