"""Reads files of other programs: bytes to lines, JSON values and rows, with a reason for every unreadable part.

Invariants
(1) A file is read in passes over a seekable source; a pass has at most one row in memory, see ``ROW_LIMIT``.
(2) Every unreadable part is an error with its number and a reason: ``UnusableItem`` for a line, an item or a value,
    ``InvalidInput`` for a file.
(3) A value contains no NaN, no number beyond 64 bits, no NUL and no lone surrogate.
(4) Bytes of a stream stay in memory and are never written to a file, because no gate has checked them yet.
(5) An item's number is its line in a JSONL or Markdown file, else its index among the file's items, from 1.
"""

from __future__ import annotations

import codecs
import io
import itertools
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Any, cast

from keepward.errors import InvalidInput
from keepward.services.writing.splitter import UnusableItem
from keepward.storage.forks import refuse_if_open

#: Maximum bytes of one row: a line of JSONL, an item of a JSON list, a row of SQLite, or a file that is one text.
ROW_LIMIT = 20_000_000
#: Maximum bytes in total of an archive, of the rows of a SQLite file, and of a stream that can be read only once.
TOTAL_LIMIT = 100_000_000
#: Maximum items of one file, and values of one JSON text. Each comma and bracket counts as a value, also in strings.
ITEM_LIMIT = 500_000
VALUE_LIMIT = 2_000_000
#: First bytes of archives and SQLite files; another file with a NUL in its first bytes is not read.
ZIP_MAGIC, SQLITE_MAGIC = b"PK\x03\x04", b"SQLite format 3\0"
_PIECE = 1 << 20
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
#: Maximum number of lines that are read to learn the form of a file, if the first ones are damaged.
PROBED_LINES = 50
_BOM = b"\xef\xbb\xbf"
_BLANKS: Any = re.compile(r"[ \t\r\n]*")
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSource:
    """A file that can be read again from its beginning."""

    stream: IO[bytes]
    #: File name without folders, or ``stream``.
    name: str
    #: Path of the file; None for a stream.
    path: Path | None = None

    @property
    def stem(self) -> str:
        """The file name without its ending, for naming a session."""
        return PurePath(self.name).stem or self.name

    @property
    def suffix(self) -> str:
        """The ending in lower case, such as ``.md``."""
        return PurePath(self.name).suffix.lower()

    def first(self) -> str:
        """Return the first character that is not blank; an empty text if it is not ASCII."""
        self.stream.seek(0)
        while piece := self.stream.read(4096):
            start = piece.removeprefix(_BOM).lstrip()
            if start:
                return start[:1].decode("ascii", "ignore")
        return ""

    def begins(self, magic: bytes) -> bool:
        self.stream.seek(0)
        return self.stream.read(len(magic)) == magic

    def lines(self) -> Iterator[tuple[int, str | UnusableItem]]:
        """Yield (line number from 1, text without its line end) for each line that is not blank.

        One pass at a time: a new one, or any other read, ends the earlier one.

        For a line that is not UTF-8, or longer than ``ROW_LIMIT``, an ``UnusableItem`` is yielded.
        """
        self.stream.seek(0)
        number = 0
        while raw := self.stream.readline(ROW_LIMIT + 1):
            number += 1
            if number == 1:
                raw = raw.removeprefix(_BOM)
            if len(raw) > ROW_LIMIT and not raw.endswith(b"\n"):
                while raw and not raw.endswith(b"\n"):
                    raw = self.stream.readline(ROW_LIMIT)
                yield number, UnusableItem(f"the line is longer than {ROW_LIMIT // 10**6} MB")
                continue
            try:
                text = raw.decode().rstrip("\r\n")
            except UnicodeDecodeError:
                yield number, UnusableItem("the line is not UTF-8 text")
                continue
            if text.strip():
                yield number, text

    def values(self) -> Iterator[tuple[int, Any]]:
        """Yield (line number, value) of each line of JSON; an ``UnusableItem`` for an unreadable line."""
        for number, line in self.lines():
            try:
                yield number, line if isinstance(line, UnusableItem) else parse(line)
            except UnusableItem as exc:
                yield number, exc

    def objects(self) -> Iterator[tuple[int, Any]]:
        """Yield the same as ``values``.

        Raises:
            InvalidInput: at the end, if the file is truncated there, or no line of it is an object.
        """
        good, first_error, number, last = False, "no line is an object", 0, None
        for number, last in self.values():
            if isinstance(last, UnusableItem) and first_error == "no line is an object":
                first_error = f"line {number}: {last}"
            good = good or isinstance(last, dict)
            yield number, last
        if not good:
            raise self.unreadable(first_error)
        if isinstance(last, UnusableItem):
            self.stream.seek(-1, io.SEEK_END)
            if self.stream.read(1) == b"\n":
                return
            raise InvalidInput(f"{self.name} ends within line {number}: it was cut. Nothing was imported")

    def document(self) -> Any:
        """Return the value of the file as one JSON text."""
        try:
            return parse(self.text())
        except UnusableItem as exc:
            raise self.unreadable(exc) from exc

    def unreadable(self, reason: object) -> InvalidInput:
        return InvalidInput(f"{self.name} cannot be read, nothing was imported: {reason}")

    def elements(self) -> Iterator[tuple[int, Any]]:
        """Yield (number from 1, value) of each element of a JSON list, or of the one value.

        One element is in memory at a time. Elements are not checked for NULs and lone surrogates. One pass at a time,
        as with ``lines``.

        Raises:
            InvalidInput: the file is damaged or truncated.
        """
        try:
            yield from self._elements()
        except UnusableItem as exc:
            raise self.unreadable(exc) from exc

    def _elements(self) -> Iterator[tuple[int, Any]]:
        # Not ijson: its C parser reads half a surrogate pair as "?", without an error. Its Python parser keeps it, and
        # reads 13 MB/s where this reads 175.
        if self.first() != "[":
            yield 1, parse(self.text())
            return
        self.stream.seek(0)
        decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        text, at, number, mark, ended = "", 0, 0, "[", False
        while True:
            try:
                at = _BLANKS.match(text, at).end()
                if number and text[at : at + 1] == "]":
                    break
                start = _BLANKS.match(text, at + 1).end()
                if text[at : at + 1] != mark or start >= len(text):
                    raise json.JSONDecodeError("nothing more is read", text, at)
                if not number and text[start] == "]":
                    at = start
                    break
                value, end = _DECODER.raw_decode(text, start)
                if end >= len(text):
                    # The end of the list is not read yet, or a number continues.
                    raise json.JSONDecodeError("nothing more is read", text, end)
            except json.JSONDecodeError as exc:
                if ended:
                    raise UnusableItem(f"not valid JSON behind item {number}: it seems damaged or cut") from exc
                if len(text) - at > ROW_LIMIT:
                    raise UnusableItem(f"item {number + 1} is longer than {ROW_LIMIT // 10**6} MB") from exc
                # The text doubles, so that a long item is not parsed again for each piece.
                piece = self.stream.read(max(_PIECE, len(text) - at))
                try:
                    text, at, ended = text[at:] + decode(piece, not piece), 0, not piece
                except UnicodeDecodeError as wrong:
                    raise UnusableItem(f"not UTF-8 text behind item {number}") from wrong
                _check_value_count(text)
            except RecursionError as exc:
                raise UnusableItem(f"item {number + 1} is nested too deeply") from exc
            else:
                number, at, mark = number + 1, end, ","
                yield number, value
        pieces = iter(lambda: self.stream.read(_PIECE), b"")
        if text[at + 1 :].strip() or any(piece.strip() for piece in pieces):
            raise UnusableItem("something follows the end of the list")

    def text(self) -> str:
        self.stream.seek(0)
        data = self.stream.read(ROW_LIMIT + 1)
        if len(data) > ROW_LIMIT:
            limit = f"{ROW_LIMIT // 10**6} MB"
            raise InvalidInput(f"{self.name} is one text of more than {limit}: split it, or make it JSONL")
        try:
            return data.removeprefix(_BOM).decode()
        except UnicodeDecodeError as exc:
            raise InvalidInput(f"{self.name} is not UTF-8 text (byte {exc.start}); save it as UTF-8") from exc


def _check_value_count(text: str) -> None:
    """Refuse a JSON text with too many values for the memory: a list of three bytes is an object of 60 bytes."""
    if len(text) > VALUE_LIMIT and sum(map(text.count, ",[{")) > VALUE_LIMIT:
        raise UnusableItem(f"it contains more than {VALUE_LIMIT} values")


@contextmanager
def open_source(target: str | Path | IO[str] | IO[bytes]) -> Iterator[ImportSource]:
    """Open a path or a stream for reading in passes; a stream that can be read only once is buffered in memory.

    Raises:
        InvalidInput: the file is missing, a folder, unreadable, empty, not in UTF-8 or a store that this process has
            open; or the stream is longer than ``TOTAL_LIMIT``.
    """
    path = Path(target) if isinstance(target, str | Path) else None
    if path is None:
        name = PurePath(str(getattr(target, "name", "stream"))).name.strip("<>") or "stream"
        rereadable = False
        with suppress(OSError, ValueError):
            rereadable = isinstance(target, io.BytesIO | io.BufferedReader) and target.seekable() and target.tell() == 0
        with io.BytesIO() as buffer:
            stream = cast("IO[bytes]", target) if rereadable else _buffer_stream(target, buffer, name)
            yield require_readable(ImportSource(stream=stream, name=name))
        return
    refuse_if_open(path)
    try:
        # Opening a named pipe without a writer would not return.
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NONBLOCK))  # noqa: SIM115
        if _NONBLOCK:
            os.set_blocking(file.fileno(), True)
    except OSError as exc:
        raise InvalidInput(f"cannot read {path.name}: {exc.strerror or 'it cannot be opened'}") from exc
    with file, io.BytesIO() as buffer:
        rereadable = file.seekable()
        source = file if rereadable else _buffer_stream(file, buffer, path.name)
        yield require_readable(ImportSource(stream=source, name=path.name, path=path if rereadable else None))


def _buffer_stream(stream: Any, buffer: io.BytesIO, name: str) -> io.BytesIO:
    """Read a stream into memory, where it can be read again; see (4)."""
    try:
        while piece := stream.read(_PIECE):
            buffer.write(piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece)
            if buffer.tell() > TOTAL_LIMIT:
                limit = f"{TOTAL_LIMIT // 10**6} MB"
                raise InvalidInput(f"{name} is a stream of more than {limit}: save it to a file and import that")
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"cannot read {name} to its end") from exc
    return buffer


def require_readable(source: ImportSource) -> ImportSource:
    """Return the source; raise ``InvalidInput`` if it is unreadable or empty."""
    try:
        source.stream.seek(0)
        start = source.stream.read(4096)
        blank = not start.removeprefix(_BOM).strip() and not any(source.lines())
    except OSError as exc:
        raise InvalidInput(f"cannot read {source.name}: {exc.strerror or 'input error'}") from exc
    if start[:2] in _UTF16_BOMS:
        raise InvalidInput(f"{source.name} is UTF-16; save it as UTF-8")
    if b"\0" in start and not start.startswith((ZIP_MAGIC, SQLITE_MAGIC)):
        raise InvalidInput(f"{source.name} is not a text file")
    if blank:
        raise InvalidInput(f"{source.name} is empty; nothing was imported. Check that it was written to its end")
    return source


def parse(text: str, *, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Return the value of one JSON text; ``pairs`` makes an object from its names and values."""
    _check_value_count(text)
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_int=_parse_int, parse_float=_parse_float, object_pairs_hook=pairs
        )
    except json.JSONDecodeError as exc:
        where = f"line {exc.lineno} column {exc.colno}" if "\n" in text else f"column {exc.colno}"
        raise UnusableItem(f"not valid JSON at {where}: it seems damaged or cut") from exc
    except RecursionError as exc:
        raise UnusableItem("nested too deeply") from exc
    if "\\u" in text:
        require_well_formed(value)
    return value


def rows(source: ImportSource, *lists: str) -> Iterator[tuple[int, Any, dict[str, Any]]]:
    """Yield (number, value, the object around it) of each item of a file.

    Items are those of a JSON list, of an object's lists of these names, or one a line.
    """
    probed = itertools.islice(source.values(), PROBED_LINES)
    first = next((value for _, value in probed if isinstance(value, dict)), None)
    if source.first() != "[" and first is not None and not any(isinstance(first.get(name), list) for name in lists):
        yield from ((number, value, {}) for number, value in source.objects())
        return
    numbers = itertools.count(1)
    for _, value in source.elements():
        inner = [value[name] for name in lists if isinstance(value, dict) and isinstance(value.get(name), list)]
        for each in itertools.chain(*inner) if inner else (value,):
            yield next(numbers), each, value if inner else {}


def list_or_empty(value: Any) -> list[Any]:
    """Return a JSON value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def require_well_formed(value: Any) -> None:
    """Raise ``UnusableItem`` if a text of a JSON value contains a NUL or a lone surrogate."""
    try:
        flat = json.dumps(value, ensure_ascii=False, default=str)
        flat.encode()
    except UnicodeEncodeError as exc:
        raise UnusableItem("contains a lone surrogate (half a character)") from exc
    except RecursionError as exc:
        raise UnusableItem("nested too deeply") from exc
    if "\\u0000" in flat and any("\0" in text for text in strings(value)):
        raise UnusableItem("contains a NUL character")


def strings(value: Any) -> Iterator[str]:
    """Yield every text of a JSON value, keys of objects included, in order."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting.extend(part for pair in reversed(item.items()) for part in reversed(pair))
        elif isinstance(item, list | tuple):
            waiting.extend(reversed(item))


def _no_constant(name: str) -> Any:
    raise UnusableItem(f"{name} is not a JSON number")


def _parse_int(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= (value := int(digits)) < 2**63:
        raise UnusableItem("a number beyond 64 bits; write it as text")
    return value


def _parse_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise UnusableItem("a number too large to be read")
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_int=_parse_int, parse_float=_parse_float)
#: A row of a reader: a line or item number, and the item or the reason why there is none.
Row = tuple[int, dict[str, Any] | UnusableItem]


def permanent_item(text: Any, **fields: Any) -> dict[str, Any]:
    """Return an item without an expiry, a fact unless ``fields`` say otherwise."""
    return {"text": text.strip() if isinstance(text, str) else text, "tier": "archival", "kind": "fact", **fields}
