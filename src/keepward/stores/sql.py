"""Named queries and forward-only migrations, both kept as .sql files.

Invariants
(1) A query is named by a line ``-- name --``; a fragment is a query others include as ``{{name}}``.
(2) Migrations are numbered from 1 without a gap and never edited: the hash of each is recorded when it
    runs and compared afterwards.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)
_FRAGMENT = re.compile(r"\{\{(\w+)\}\}")
_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema."""

    #: From 1; also the schema number of a store after it.
    number: int
    name: str
    sql: str
    #: Hex digest of the file.
    sha256: str


def parse_queries(text: str) -> dict[str, str]:
    """Return the statements of a queries file by name, fragments filled in."""
    parts = _NAME.split(text)
    raw = {
        name: "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip().rstrip(";")
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }

    def filled(body: str) -> str:
        return _FRAGMENT.sub(lambda match: filled(raw[match[1]]), body)

    return {name: filled(body) for name, body in raw.items()}


@cache
def load_queries(package: str) -> dict[str, str]:
    """Return the statements of a package's ``queries.sql``."""
    return parse_queries(files(package).joinpath("queries.sql").read_text("utf-8"))


@cache
def load_migrations(package: str) -> tuple[Migration, ...]:
    """Return the migrations of a package, in order.

    Raises:
        ValueError: a number is missing or used twice.
    """
    found = []
    for entry in files(package).joinpath("migrations").iterdir():
        match = _FILE.fullmatch(entry.name)
        if match:
            body = entry.read_bytes()
            found.append(
                Migration(
                    number=int(match[1]),
                    name=match[2],
                    sql=body.decode(),
                    sha256=hashlib.sha256(body).hexdigest(),
                )
            )
    found.sort(key=lambda each: each.number)
    if [each.number for each in found] != list(range(1, len(found) + 1)):
        raise ValueError("migrations must be numbered from 1 without a gap")
    return tuple(found)
