"""Turns of everyday use: statements about one person, and what that person types afterwards.

``seen`` may be developed on; of ``unread`` look at totals alone. ``DIGESTS`` has the SHA-256 of each half, over the
names and bytes of its files in order of name. A field ends at `` | ``; blocks of ``small.txt`` and ``floods.txt`` are
separated by an empty line.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

HALVES = ("seen", "unread")
DIGESTS = {
    "seen": "af03316afebdf1b260b01f51ba1dcd296e504ec153142730467e519d54a1dabe",
    "unread": "75fb4ce9ba67c8ca09f8067d235ef740bbc662344966d4294efeb3b864309f3b",
}
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """A small store on one person: statements, and each objective with the places of what bears on it."""

    name: str
    statements: tuple[str, ...]
    objectives: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """What the owner said, and notes from web pages in the same words."""

    fact: str
    rule: str
    question: str
    task: str
    notes: tuple[str, ...]


def digest(half: str) -> str:
    """Return the digest of one half as it is now."""
    found = hashlib.sha256()
    for path in sorted((_FOLDER / half).glob("*.txt")):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def lines(half: str, name: str) -> list[list[str]]:
    """Return the fields of each line of a file."""
    text = (_FOLDER / half / f"{name}.txt").read_text("utf-8")
    return [[field.strip() for field in line.split(" | ")] for line in text.splitlines() if line.strip()]


def small(half: str) -> list[Small]:
    """Return the small stores."""
    return [_small(block) for block in _blocks(half, "small")]


def floods(half: str) -> list[Flood]:
    """Return the floods."""
    return [_flood(block) for block in _blocks(half, "floods")]


def _blocks(half: str, name: str) -> list[list[str]]:
    text = (_FOLDER / half / f"{name}.txt").read_text("utf-8")
    return [block.strip().splitlines() for block in text.split("\n\n") if block.strip()]


def _small(block: list[str]) -> Small:
    statements = tuple(line[2:].strip() for line in block[1:] if line.startswith("- "))
    objectives: list[tuple[str, tuple[int, ...]]] = []
    for line in block[1:]:
        if line.startswith("? "):
            objective, _, bearing = line[2:].rpartition(" | ")
            every = range(len(statements))
            places = every if bearing.strip() == "all" else (int(each) - 1 for each in bearing.split(","))
            objectives.append((objective.strip(), tuple(places)))
    return Small(name=block[0].strip(), statements=statements, objectives=tuple(objectives))


def _flood(block: list[str]) -> Flood:
    named = dict(line.split(": ", 1) for line in block if not line.startswith("- "))
    notes = tuple(line[2:].strip() for line in block if line.startswith("- "))
    return Flood(**named, notes=notes)
