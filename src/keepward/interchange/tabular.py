"""Plain texts: a CSV with a column `text`, and a file with one text a line. Each becomes an archival fact."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from msgspec import structs

from keepward.core.change import Insert
from keepward.core.memory import Tier
from keepward.errors import InvalidInput
from keepward.interchange.parsing import ImportSource, Row, permanent_item
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem

#: What the writer of a table does not choose: ids, and where the content and the trust come from.
_NOT_CHOSEN = frozenset(("id", "text", "source", "blob", "content_type", "access", "job", "if_version"))
_TYPES = {field.name: field.type for field in structs.fields(Insert) if field.name not in _NOT_CHOSEN}
#: Columns of one text: the fields of a new memory that are texts, and times. Unknown columns are metadata.
_TEXTS = {name for name, kind in _TYPES.items() if kind in (str, str | None)}
_TEXTS |= {"ttl", "valid_from", "valid_until"}
#: Columns with a number, and how it is read.
_NUMBERS = {
    name: int if kind == int | None else float for name, kind in _TYPES.items() if kind in (int | None, float | None)
}
#: Columns whose cells hold several values, separated by commas.
_LISTS = frozenset(("tags", "evidence"))
#: Columns with the time of the event; the first filled one counts.
_TIMES = ("occurred_at", "date", "created_at")
#: Columns that name the user of a row, in this order: the first that is not empty is used.
_USERS = ("user_id", "userid", "user")
_DELIMITERS = ",;\t"


def is_csv(source: ImportSource) -> bool:
    """Whether the file has the ending of a table; for other files the caller names the format."""
    return source.suffix in {".csv", ".tsv"}


def read_csv(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read a table: `text` and fields by their column, everything else into metadata."""
    text = source.text()
    delimiter = max(_DELIMITERS, key=text.split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = [name.strip().lower() for name in next(reader, [])]
        if "text" not in columns:
            raise InvalidInput(f"{source.name} has no column `text`; the first line names the columns")
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, _item(columns, cells)
    except csv.Error as exc:
        raise InvalidInput(f"{source.name} cannot be read as CSV, line {reader.line_num}: {exc}") from exc


def read_lines(source: ImportSource, run: ImportRun) -> Iterator[Row]:
    """Read one text a line; blank lines are skipped."""
    for number, line in source.lines():
        yield number, line if isinstance(line, UnusableItem) else permanent_item(line)


def _item(columns: list[str], cells: list[str]) -> dict[str, Any] | UnusableItem:
    if len(cells) > len(columns):
        return UnusableItem("it has more cells than there are columns; put quotes around a text with commas")
    row = {name: cell.strip() for name, cell in zip(columns, cells, strict=False) if name and cell.strip()}
    found: dict[str, Any] = {"name": row.pop("id", None)}
    text = row.pop("text", None)
    if row.get("tier") == Tier.CORE:
        return UnusableItem("a table cannot contain core memory; write it with `keepward block`")
    found["when"] = next((row[name] for name in _TIMES if name in row), None)
    found["user"] = next((row[name] for name in _USERS if name in row), None)
    for name in list(row):
        if name in _TIMES or name in _USERS:
            del row[name]
        elif name in _TEXTS:
            found[name] = row.pop(name)
        elif name in _LISTS:
            found[name] = tuple(part.strip() for part in row.pop(name).split(",") if part.strip())
        elif name in _NUMBERS:
            try:
                found[name] = _NUMBERS[name](row.pop(name))
            except ValueError:
                return UnusableItem(f"its {name} is not a number")
    return permanent_item(text, **found, metadata=row or None)
