"""Facts of one person, questions about them, pairs that both hold, corrections and requests for advice.

They are plain lines. The first part of a fact's id says what it is: ``pref`` a preference, ``rule`` a rule.
Of ``asked.txt`` lines 1, 3, 5 … may be developed on. Lines 2, 4, 6 … are unread: look at their totals alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: Kinds of pairs of which both statements hold.
PAIRS = ("qualifier", "number", "name or year", "property", "person", "look-alikes")
#: Groups of questions about nothing remembered.
NOTHING = ("general", "near")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing to remember, for example ``srv9``."""

    id: str
    text: str

    @property
    def kind(self) -> str:
        """The kind to store: Keepward has no kind for a preference, which is a fact."""
        return "rule" if self.id.startswith("rule") else "fact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and the ids of the facts that bear on it."""

    text: str
    bearing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two statements, the second one told later, and a question."""

    older: str
    newer: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for advice, and the preference that the answer has to respect."""

    text: str
    preference: str


def facts() -> list[Fact]:
    """Return the 300 facts, in the order of telling."""
    return [Fact(id=name, text=text) for name, text in map(_cells, _lines("facts.txt"))]


def asked(*, unread: bool) -> list[Question]:
    """Return 50 questions that facts answer: those to develop on, or the unread ones."""
    rows = [line.rpartition("=>") for line in _lines("asked.txt")]
    every = [Question(text=text.strip(), bearing=frozenset(ids.split())) for text, _, ids in rows]
    return every[unread::2]


def nothing(group: str) -> list[Question]:
    """Return 100 questions that no fact answers: ``general`` ones, or ones ``near`` the topics of the facts."""
    return [Question(text=line) for line in _grouped("nothing.txt", NOTHING)[group]]


def pairs(kind: str) -> list[Pair]:
    """Return the thirty pairs of a kind; the older statement answers the question, and both hold."""
    return [_pair(line) for line in _grouped("pairs.txt", PAIRS)[kind]]


def corrections() -> list[Pair]:
    """Return thirty statements with the later one that corrects it, which answers the question."""
    return [_pair(line) for line in _lines("corrections.txt")]


def advice() -> list[Request]:
    """Return sixty requests for advice."""
    return [Request(text=text, preference=preference) for text, preference in map(_cells, _lines("advice.txt"))]


def _lines(name: str) -> list[str]:
    return (Path(__file__).parent / name).read_text("utf-8").splitlines()


def _cells(line: str) -> list[str]:
    return line.split(" | ")


def _pair(line: str) -> Pair:
    older, newer, question = _cells(line)
    return Pair(older=older, newer=newer, question=question)


def _grouped(name: str, groups: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in _lines(name):
        if line in groups:
            lines = found[line] = []
        else:
            lines.append(line)
    return found
