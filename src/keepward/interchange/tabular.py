"""Plain texts: a CSV with a column `text`, and a file with one text a line. Each becomes an archival fact."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keepward.core.memory import Tier
from keepward.errors import InvalidInput
from keepward.interchange.reading import Flaw, Item, Plan, Source, few_enough, noted
from keepward.services.parts import Unusable

if TYPE_CHECKING:
    from keepward.memory import Memory

#: Columns that are fields of a memory; other columns become metadata.
_TEXTS = frozenset(
    ("tier", "kind", "key", "category", "subject", "session", "speaker", "scope", "stability", "sensitivity", "ttl")
)
_NUMBERS = frozenset(("confidence", "importance"))
#: Columns whose cells hold several values, separated by commas.
_LISTS = frozenset(("tags", "evidence"))
#: Columns that say when it happened; the first filled one counts.
_TIMES = ("occurred_at", "date", "created_at")
_DELIMITERS = ",;\t"


def is_csv(source: Source) -> bool:
    """Whether the file's name says that it is a table; another one is named by its format."""
    return source.suffix in {".csv", ".tsv"}


def plan_csv(source: Source, mem: Memory) -> Plan:
    """Read a table: `text` and fields by their column, everything else into metadata."""
    whole = source.text()
    delimiter = max(_DELIMITERS, key=whole.split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(whole, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = [name.strip().lower() for name in next(reader, [])]
        if "text" not in columns:
            raise InvalidInput(f"{source.name} has no column `text`; the first line names the columns")
        rows = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as fault:
        raise InvalidInput(f"{source.name} cannot be read as CSV, line {reader.line_num}: {fault}") from fault
    few_enough(source.name, len(rows))
    limit = mem.policy.text_limit[Tier.ARCHIVAL]

    def entries() -> Iterator[Item | Flaw]:
        for number, cells in rows:
            try:
                fields = _fields(columns, cells)
            except Unusable as fault:
                yield Flaw(number=number, reason=str(fault))
                continue
            yield from noted(number, limit, **fields)

    return Plan(total=len(rows), entries=entries())


def plan_lines(source: Source, mem: Memory) -> Plan:
    """Read one text a line; blank lines are skipped."""
    limit = mem.policy.text_limit[Tier.ARCHIVAL]

    def entries() -> Iterator[Item | Flaw]:
        for number, line in source.lines():
            if isinstance(line, Unusable):
                yield Flaw(number=number, reason=str(line))
            else:
                yield from noted(number, limit, line)

    return Plan(total=sum(1 for _ in source.lines()), entries=entries())


def _fields(columns: list[str], cells: list[str]) -> dict[str, Any]:
    if len(cells) > len(columns):
        raise Unusable("it has more cells than there are columns; put quotes around a text with commas")
    row = {name: cell.strip() for name, cell in zip(columns, cells, strict=False) if name and cell.strip()}
    found: dict[str, Any] = {"text": row.pop("text", None), "name": row.pop("id", None)}
    if row.get("tier") == Tier.CORE:
        raise Unusable("a table brings no core memory; write it with `keepward block`")
    found |= {"when": next((row[name] for name in _TIMES if name in row), None)}
    for name in _TIMES:
        row.pop(name, None)
    for name in list(row):
        if name in _TEXTS:
            found[name] = row.pop(name)
        elif name in _LISTS:
            found[name] = tuple(part.strip() for part in row.pop(name).split(",") if part.strip())
        elif name in _NUMBERS:
            try:
                found[name] = float(row.pop(name))
            except ValueError as fault:
                raise Unusable(f"its {name} is not a number") from fault
    return {**found, "metadata": row or None}
