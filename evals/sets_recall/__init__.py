"""Small recall sets of our own writing, each of a different character.

Invariants
(1) every set is a tenant of its own: what was told, and questions with the ids that answer them.
(2) a module holds its set as plain lines; `lines` reads them; nothing is drawn at random.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

_NAMES = (
    "chats",
    "preferences",
    "implicit",
    "corrected",
    "keyed",
    "linked",
    "siblings",
    "chinese",
    "japanese",
    "german",
)

Set = tuple[str, list[dict[str, Any]], list[tuple[str, list[str]]]]

_DAY = 86_400_000_000
_START = 1_750_000_000_000_000


def lines(told: str, asked: str) -> tuple[list[dict[str, Any]], list[tuple[str, list[str]]]]:
    """Read `id | text` (or `id | session | speaker | text`) and `question => id id`; one memory a day apart."""
    memories = []
    for number, line in enumerate(filter(None, map(str.strip, told.splitlines()))):
        cells = [cell.strip() for cell in line.split("|", 3)]
        memory: dict[str, Any] = {"id": cells[0], "text": cells[-1], "created_at": _START + number * _DAY}
        if len(cells) == 4:
            memory |= {"session": cells[1] or None, "speaker": cells[2] or None}
        memories.append(memory)
    questions = []
    for line in filter(None, map(str.strip, asked.splitlines())):
        question, _, ids = line.rpartition("=>")
        questions.append((question.strip(), ids.split()))
    return memories, questions


def every() -> Iterator[Set]:
    """Yield (name, memories, questions) of each set."""
    for name in _NAMES:
        module = import_module(f"{__name__}.{name}")
        memories, questions = module.load()
        known = {m["id"] for m in memories}
        unknown = {i for _, ids in questions for i in ids} - known
        if unknown or len(known) != len(memories):
            raise ValueError(f"set {name}: ids that name no memory, or twice: {sorted(unknown)}")
        yield name, memories, questions
