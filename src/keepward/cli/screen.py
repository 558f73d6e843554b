"""The screen: readable output, with or without a terminal, with or without colour.

Invariants
(1) What was remembered is printed as text alone: no markup is read from it, no control character passes.
(2) Every line fits the width: a terminal's own, `COLUMNS`, or 80.
(3) Meaning never hangs on colour; a word says the same.
"""

from __future__ import annotations

import os
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

_NARROWEST = 40
#: Most cells of a table's first column, and of those between it and the last.
_NAME, _ASIDE = 36, 16
#: What stands in for a sign that the stream's encoding lacks.
_NEAREST = {"“": '"', "”": '"', "·": "-", "…": "...", "’": "'"}

#: Joiners that ordinary writing needs: Persian, Indic scripts, emoji.
_JOINERS = "\u200c\u200d"


def visible(text: str, *, joiners: bool = True) -> str:
    """Return text with control and invisible characters written out as `<U+202E>`.

    Line breaks and tabs stay. With `joiners` False the two joiners are written out as well, as a
    reviewer needs them. What comes out cannot move a terminal's cursor or hide a word.
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
    """Writes to one stream."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        wide = stream.isatty()
        columns = os.environ.get("COLUMNS", "")
        width = int(columns) if columns.isdecimal() else None if wide else 80
        self._console: Console = Console(
            file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True, width=width
        )
        self.width = max(_NARROWEST, self._console.width)
        self._margin = 0

    def shift(self, columns: int) -> None:
        """Move the left margin of what follows by that many columns."""
        self._margin += columns

    def line(self, text: str = "", style: str = "", *, indent: int = 0, hang: int = 0) -> None:
        """Print a paragraph, wrapped at the width; its further lines are indented by `hang` more spaces."""
        indent += self._margin
        room = max(20, self.width - indent)
        for paragraph in visible(text).expandtabs(4).split("\n"):
            pieces = _wrapped(paragraph, room)
            if hang and len(pieces) > 1:
                pieces = _wrapped(paragraph, room - hang)
            for number, piece in enumerate(pieces):
                self._console.print((" " * (indent + (hang if number else 0)) + piece).rstrip(), style=style or None)

    def heading(self, text: str) -> None:
        """Print a heading with an empty line before it."""
        self._console.print()
        self.line(text, "bold cyan")

    def labelled(
        self, label: str, told: str | Iterable[str] | None, style: str = "", *, width: int = 12, indent: int = 0
    ) -> None:
        """Print `label   text` for each text, wrapped beneath itself; nothing where there is none."""
        from rich.text import Text

        for text in [told] if isinstance(told, str) else told or ():
            pieces = _wrapped_all(text.expandtabs(4), max(20, self.width - self._margin - indent - width))
            for number, piece in enumerate(pieces if text else ()):
                row = Text(" " * (self._margin + indent))
                row.append(f"{visible(label) if number == 0 else '':<{width - 1}} ", style="dim")
                row.append(piece, style=style or None)
                self._console.print(row)

    def fields(self, data: Mapping[str, Any], names: Iterable[str], style: str = "", **more: Any) -> None:
        """Print fields that are not empty, each under its name; a list in one line."""
        for name in names:
            self.labelled(name, as_text(data[name]), style, **more)

    def ids(self, data: Mapping[str, Any], *names: str, indent: int = 0) -> None:
        """Print what a result can be looked up by: its commit and its receipt, where nothing else is named."""
        self.fields(data, names or ("commit", "receipt"), "dim", indent=indent)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str = "") -> None:
        """Print rows under headings; the last column takes what room is left and is wrapped in it."""
        from rich.text import Text

        # The first column holds what names the row; the others give way.
        shown = [
            [_cut(_flat(cell), _NAME if place == 0 else _ASIDE) for place, cell in enumerate(row[:-1])]
            + [_flat(row[-1])]
            for row in rows
        ]
        if not shown:
            self.line(empty, "dim")
            return
        widths = [max(len(name), *(_cells(row[place]) for row in shown)) for place, name in enumerate(columns[:-1])]
        last = max(16, self.width - sum(widths) - 2 * len(widths))
        self._console.print(
            Text("  ".join([f"{name:<{size}}" for name, size in zip(columns, widths, strict=False)] + [columns[-1]])),
            style="dim",
        )
        for row in shown:
            lead = "".join(cell + " " * (size - _cells(cell) + 2) for cell, size in zip(row, widths, strict=False))
            for number, piece in enumerate(_wrapped(row[-1], last)):
                self._console.print(Text((lead if number == 0 else " " * _cells(lead)) + piece))

    def exact(self, text: str) -> None:
        """Print a text as it is, unwrapped; at a terminal control characters are written out all the same."""
        shown = visible(text) if self._console.is_terminal else text
        self._console.out(shown, style=None, highlight=False, end="" if shown.endswith("\n") else "\n")

    def change(self, field: str, before: object, after: object, *, joiners: bool = True) -> None:
        """Print one field of a diff: the old line marked `-`, the new one `+`."""
        self.line(f"{field}:", "dim", indent=2)
        for mark, value, style in (("-", before, "red"), ("+", after, "green")):
            text = visible(as_text(value), joiners=joiners)
            for number, piece in enumerate(_wrapped_all(text, max(20, self.width - self._margin - 6)) if text else ()):
                self.line(f"{mark} {piece}" if number == 0 else f"  {piece}", style, indent=4)


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what draws a bar on stderr; None where nobody would see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def as_text(value: object) -> str:
    """Return a JSON value in one line; nothing for one that is empty."""
    if value in (None, [], {}):
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _wrapped(paragraph: str, room: int) -> list[str]:
    from rich.cells import cell_len

    if cell_len(paragraph) <= room:
        return [paragraph.rstrip()]
    lead = len(paragraph) - len(paragraph.lstrip())
    # Wide characters take two cells: wrap at half the count rather than run over the edge.
    wide = cell_len(paragraph) > len(paragraph) * 1.3
    return textwrap.wrap(
        paragraph,
        room // 2 if wide else room,
        subsequent_indent=" " * min(lead, room // 4),
        break_on_hyphens=False,
    ) or [""]


def _wrapped_all(text: str, room: int) -> list[str]:
    return [piece for paragraph in visible(text).split("\n") for piece in _wrapped(paragraph, room)]


def _flat(text: str) -> str:
    return " ".join(visible(text).split())


def _cut(text: str, most: int) -> str:
    from rich.text import Text

    shown = Text(text)
    shown.truncate(most, overflow="ellipsis")
    return shown.plain


def nearest(fault: UnicodeError) -> tuple[str, int]:
    """Answer a codec that cannot encode a character: the plainest sign like it, or a question mark."""
    assert isinstance(fault, UnicodeEncodeError)
    return "".join(_NEAREST.get(char, "?") for char in fault.object[fault.start : fault.end]), fault.end


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
