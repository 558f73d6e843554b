"""Measure whether "I", "the user" and the name are one person: ten facts and ten questions of each of five people.

    python -m evals.people [--embedder minilm]

Each fact is stored as "I ...", as "Ana ..." and as "The user ...", and asked for by "I", "the user" and "Ana": in a
store for each person, in one store with a scope for each, and in one scope that all share. Printed is the share of
questions whose fact comes first, and how many contexts of 1,000 tokens hold a memory of another person.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from keepward import Actor, Memory

FACTS = Path(__file__).with_name("people.txt")
STORED, ASKED = ("I", "name", "user"), ("I", "user", "name")
GOAL = 80


@dataclass(frozen=True, slots=True)
class Person:
    """A person with facts, each a statement and a question in the first and in the third person."""

    id: str
    name: str
    facts: list[tuple[str, str, str, str]] = field(default_factory=list)

    def statement(self, fact: int, by: str) -> str:
        """Return a fact as "I ...", "Ana ..." or "The user ..."."""
        return self.facts[fact][0] if by == "I" else self.facts[fact][1].format(*[self._who(by, "The user")] * 2)

    def question(self, fact: int, by: str) -> str:
        """Return the question for a fact, about "I", "the user" or "Ana"."""
        return self.facts[fact][2] if by == "I" else self.facts[fact][3].format(self._who(by, "the user"))

    def _who(self, by: str, user: str) -> str:
        return self.name.split()[0] if by == "name" else user


def people() -> list[Person]:
    """Return the people of ``people.txt``."""
    found: list[Person] = []
    for line in FACTS.read_text("utf-8").splitlines():
        if line.startswith("@"):
            name, _, full = line[1:].partition(" ")
            found.append(Person(name, full))
        elif line and not line.startswith("#"):
            first, third, asked, of = (part.strip() for part in line.split("|"))
            found[-1].facts.append((first, third, asked, of))
    return found


@dataclass(slots=True)
class Cell:
    """What came of all questions of one sort."""

    asked: int = 0
    first: int = 0
    foreign: int = 0

    def add(self, other: Cell) -> None:
        """Count what another one counted."""
        self.asked += other.asked
        self.first += other.first
        self.foreign += other.foreign

    @property
    def share(self) -> float:
        """Percent of the questions whose fact came first."""
        return 100 * self.first / self.asked


def measure(everybody: Sequence[Person], stored: str, *, embedder: str, scope: str | None = None) -> dict[str, Cell]:
    """Ask everything in one store that was told about these people in one way; by the way of asking.

    ``scope`` is where everything is told, in place of each person's own.
    """
    cells = {asked: Cell() for asked in ASKED}
    with Memory.open(":memory:", embedder=embedder, actor=Actor.operator("eval")) as memory:
        handles = {person.id: memory.user(person.id, names=[person.name]) for person in everybody}
        told: dict[str, tuple[str, int]] = {}
        for person in everybody:
            for fact in range(len(person.facts)):
                text = person.statement(fact, stored)
                outcome = handles[person.id].remember(text, subject=person.id, **({"scope": scope} if scope else {}))
                told[outcome.record.id] = (person.id, fact)  # type: ignore[union-attr]
        for person, fact, asked in product(everybody, range(10), ASKED):
            question, cell = person.question(fact, asked), cells[asked]
            hits = handles[person.id].recall(question, limit=5).hits
            cell.asked += 1
            cell.first += bool(hits) and told[hits[0].memory.id] == (person.id, fact)
            if scope is None and len(everybody) > 1:
                context = handles[person.id].context(question, budget_tokens=1_000).text
                others = (each for each in everybody if each is not person)
                cell.foreign += any(each.statement(n, stored) in context for each in others for n in range(10))
    return cells


def figures(embedder: str) -> Iterator[tuple[str, str, dict[str, Cell]]]:
    """Yield where it was stored, in which words, and the cells by the way of asking."""
    everybody = people()
    for stored in STORED:
        yield "one store", stored, measure(everybody, stored, embedder=embedder)
        yield "one scope", stored, measure(everybody, stored, embedder=embedder, scope="/")
        apart = {asked: Cell() for asked in ASKED}
        for person in everybody:
            for asked, cell in measure([person], stored, embedder=embedder).items():
                apart[asked].add(cell)
        yield "a store each", stored, apart


def main() -> int:
    """Print the figures; the exit status is 1 where a cell misses the goal or a context leaks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", default="minilm")
    print(f"{'':14}{'stored as':10}" + "".join(f"{f'asked: {each}':>14}" for each in ASKED))
    cells: list[Cell] = []
    for stores, stored, row in figures(parser.parse_args().embedder):
        cells += row.values()
        print(f"{stores:14}{stored:10}" + "".join(f"{cell.share:13.0f}%" for cell in row.values()), flush=True)
    foreign, asked = sum(cell.foreign for cell in cells), sum(cell.asked for cell in cells)
    mean = 100 * sum(cell.first for cell in cells) / asked
    print(f"right first: {mean:.1f} % of {asked}; contexts with a memory of another person: {foreign}")
    return int(foreign > 0 or any(cell.share < GOAL for cell in cells))


if __name__ == "__main__":
    raise SystemExit(main())
