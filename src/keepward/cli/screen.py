"""The screen: readable output, with or without a terminal, with or without colour.

Invariants
(1) What was remembered is printed as text alone: no markup is read from it, no control character passes.
(2) Every line fits the width: a terminal's own, `COLUMNS`, or 80.
(3) Meaning never hangs on colour; a word says the same.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import click

_NARROWEST = 40
#: Most cells of a table's first column, and of those between it and the last.
_NAME, _ASIDE = 36, 16
#: Cells that its last column wants at least.
_LEAST = 16
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
    """Writes to one stream. A style is words such as `bold green`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._terminal = stream, stream.isatty()
        self._coloured = self._terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        columns = os.environ.get("COLUMNS", "")
        own = shutil.get_terminal_size().columns if self._terminal else 80
        self.width = max(_NARROWEST, int(columns) if columns.isdecimal() else own)
        self._margin = 0

    def shift(self, columns: int) -> None:
        """Move the left margin of what follows by that many columns."""
        self._margin += columns

    def _put(self, *parts: tuple[str, str]) -> None:
        """Print texts in a row, each in its style."""
        self._stream.write("".join(self._styled(text, style) for text, style in parts) + "\n")

    def _styled(self, text: str, style: str) -> str:
        if not (self._coloured and style and text):
            return text
        ways: dict[str, Any] = {word: True for word in style.split() if word in {"bold", "dim"}}
        return click.style(text, fg=next((word for word in style.split() if word not in ways), None), **ways)

    def line(self, text: str = "", style: str = "", *, indent: int = 0, hang: int = 0) -> None:
        """Print a paragraph, wrapped at the width; its further lines are indented by `hang` more spaces."""
        indent += self._margin
        room = max(20, self.width - indent)
        for paragraph in visible(text).expandtabs(4).split("\n"):
            pieces = _wrapped(paragraph, room)
            if hang and len(pieces) > 1:
                pieces = _wrapped(paragraph, room - hang)
            for number, piece in enumerate(pieces):
                self._put(((" " * (indent + (hang if number else 0)) + piece).rstrip(), style))

    def heading(self, text: str) -> None:
        """Print a heading with an empty line before it."""
        self._put()
        self.line(text, "bold cyan")

    def labelled(
        self, label: str, told: str | Iterable[str] | None, style: str = "", *, width: int = 12, indent: int = 0
    ) -> None:
        """Print `label   text` for each text, wrapped beneath itself; nothing where there is none."""
        for text in [told] if isinstance(told, str) else told or ():
            pieces = _wrapped_all(text.expandtabs(4), max(20, self.width - self._margin - indent - width))
            for number, piece in enumerate(pieces if text else ()):
                head = f"{visible(label) if number == 0 else '':<{width - 1}} "
                self._put((" " * (self._margin + indent), ""), (head, "dim"), (piece, style))

    def fields(self, data: Mapping[str, Any], names: Iterable[str], style: str = "", **more: Any) -> None:
        """Print fields that are not empty, each under its name; a list in one line."""
        for name in names:
            self.labelled(name, as_text(data[name]), style, **more)

    def ids(self, data: Mapping[str, Any], *names: str, indent: int = 0) -> None:
        """Print what a result can be looked up by: its commit and its receipt, where nothing else is named."""
        self.fields(data, names or ("commit", "receipt"), "dim", indent=indent)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str = "") -> None:
        """Print rows under headings; the last column takes what room is left and is wrapped in it.

        Where too little is left, each row stands by itself, its cells beside their headings.
        """
        # The first column holds what names the row; the others give way.
        shown = [[_cut(_flat(cell), _ASIDE if place else _NAME) for place, cell in enumerate(row[:-1])] for row in rows]
        if not shown:
            self.line(empty, "dim")
            return
        widths = [max(len(name), *(_cells(row[place]) for row in shown)) for place, name in enumerate(columns[:-1])]
        room = self.width - sum(widths) - 2 * len(widths)
        if room < min(_LEAST, max(_cells(_flat(row[-1])) for row in rows)):
            for row in rows:
                self._put(("", ""))
                for name, cell in zip(columns, row, strict=True):
                    self.labelled(name, _flat(cell), width=max(map(len, columns)) + 2)
            return
        heads = [f"{name:<{size}}" for name, size in zip(columns, widths, strict=False)]
        self._put(("  ".join([*heads, columns[-1]]), "dim"))
        for row, last in zip(shown, (_flat(row[-1]) for row in rows), strict=True):
            lead = "".join(cell + " " * (size - _cells(cell) + 2) for cell, size in zip(row, widths, strict=True))
            for number, piece in enumerate(_wrapped(last, max(_LEAST, room))):
                self._put(((" " * _cells(lead) if number else lead) + piece, ""))

    def exact(self, text: str) -> None:
        """Print a text as it is, unwrapped; at a terminal control characters are written out all the same."""
        self._stream.write((visible(text) if self._terminal else text).removesuffix("\n") + "\n")

    def change(self, field: str, before: object, after: object, *, joiners: bool = True) -> None:
        """Print one field of a diff: the old line marked `-`, the new one `+`."""
        self.line(f"{field}:", "dim", indent=2)
        for mark, value, style in (("-", before, "red"), ("+", after, "green")):
            text = visible(as_text(value), joiners=joiners)
            for number, piece in enumerate(_wrapped_all(text, max(20, self.width - self._margin - 6)) if text else ()):
                self.line(f"{' ' if number else mark} {piece}", style, indent=4)


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield what draws a bar on stderr; None where nobody would see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=1, label=what, file=sys.stderr, show_pos=True) as bar:

        def report(done: int, total: int) -> None:
            bar.length = max(1, total)
            bar.update(done - bar.pos)

        yield report


def as_text(value: object) -> str:
    """Return a JSON value in one line; nothing for one that is empty."""
    if value in (None, [], {}):
        return ""
    match value:
        case bool():
            return "yes" if value else "no"
        case list() if not any(isinstance(each, dict | list) for each in value):
            return ", ".join(map(as_text, value))
        case list() | dict():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _cells(text: str) -> int:
    """Return how many cells of a terminal a text takes: wide signs take two, joined and combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(char) in {"Mn", "Me", "Cf"} else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def _wrapped(paragraph: str, room: int) -> list[str]:
    taken = _cells(paragraph)
    if taken <= room:
        return [paragraph.rstrip()]
    lead = len(paragraph) - len(paragraph.lstrip())
    # Wide characters take two cells: wrap at half the count rather than run over the edge.
    room = room // 2 if taken > len(paragraph) * 1.3 else room
    hanging = " " * min(lead, room // 4)
    return textwrap.wrap(paragraph, room, subsequent_indent=hanging, break_on_hyphens=False) or [""]


def _wrapped_all(text: str, room: int) -> list[str]:
    return [piece for paragraph in visible(text).split("\n") for piece in _wrapped(paragraph, room)]


def _flat(text: str) -> str:
    return " ".join(visible(text).split())


def _cut(text: str, most: int) -> str:
    if _cells(text) <= most:
        return text
    while _cells(text) >= most:
        text = text[:-1]
    return f"{text}…"


def nearest(fault: UnicodeError) -> tuple[str, int]:
    """Answer a codec that cannot encode a character: the plainest sign like it, or a question mark."""
    assert isinstance(fault, UnicodeEncodeError)
    return "".join(_NEAREST.get(char, "?") for char in fault.object[fault.start : fault.end]), fault.end
