"""Evaluate contexts over 300 facts of one person: what comes in, what bears on the question, what is put first.

    python -m evals.facts [--embedder minilm] [--cache DIR] [--only nothing,asked,pairs,corrections,advice]

Everything is told and asked through ``Memory``, with the default policy and the default budget of a context. A line
counts as recalled where its section is ``recalled``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

from evals import sets_facts
from evals.recall_report import table
from evals.recall_run import Clock, opened
from evals.recall_vectors import chosen
from evals.sets_facts import NOTHING, PAIRS, Fact, Pair, Question
from evals.stores import files
from keepward import Committed, Memory, Policy
from keepward.embedding.tokens import choose_counter
from keepward.ports.models import Embedder

TOLD = datetime(2025, 1, 6, 9, tzinfo=UTC)
LATER = timedelta(days=30)
#: Requests for advice in one store, and facts beside their preferences: 40 memories.
TOGETHER, BESIDE = 10, 30
PARTS = ("nothing", "asked", "pairs", "corrections", "advice")

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a context holds: ids of memories by section, and its text."""

    recalled: tuple[str, ...]
    pinned: frozenset[str]
    text: str

    def line_of(self, text: str) -> str:
        """Return the line that shows a memory; empty where none does."""
        return next((line for line in self.text.splitlines() if text in line), "")

    def day_of(self, text: str) -> str:
        """Return the day that the context gives a memory: on its line, else in the heading above."""
        above, found, _ = self.text.partition(text)
        days = _DAY.findall(self.line_of(text).replace(text, ""))
        headings = [line for line in above.splitlines() if line.startswith("#")]
        days += _DAY.findall(headings[-1]) if headings else []
        return days[0] if found and days else ""


@contextmanager
def store(embedder: Embedder | None, clock: Clock | None = None) -> Iterator[Memory]:
    """Lend an empty store of the owner's in a temporary folder."""
    with (
        TemporaryDirectory() as name,
        files(Path(name)) as target,
        opened(target, embedder, choose_counter("estimate"), Policy(), clock) as mem,
    ):
        yield mem


def remember(mem: Memory, text: str, **fields: Any) -> str:
    """Remember a text; return the id of the new memory, empty where none was made."""
    outcome = mem.remember(text, **fields)
    return outcome.id if isinstance(outcome, Committed) else ""


def tell(mem: Memory, facts: Sequence[Fact]) -> dict[str, str]:
    """Remember facts, half of them with a kind and a subject; return the ids of the set by memory id."""
    names: dict[str, str] = {}
    for place, fact in enumerate(facts):
        fields: dict[str, Any] = {"kind": fact.kind} if place % 2 or fact.kind != "fact" else {}
        names[remember(mem, fact.text, **fields, **({"subject": "ana"} if place % 2 else {}))] = fact.id
    names.pop("", None)
    return names


def context(mem: Memory, query: str) -> Context:
    """Return the default context for a query."""
    made = mem.context(query)
    sections = {section.name: [item.id for item in section.items] for section in made.sections}
    recalled = tuple(sections.pop("recalled", ()))
    return Context(recalled=recalled, pinned=frozenset(chain(*sections.values())), text=made.text)


def about_nothing(mem: Memory) -> list[list[object]]:
    """Return how many lines are recalled for questions that no fact answers."""
    counts = {group: [len(context(mem, each.text).recalled) for each in sets_facts.nothing(group)] for group in NOTHING}
    counts["both"] = list(chain(*counts.values()))
    return [
        [group, len(each), median(each), mean(each), sum(not count for count in each)] for group, each in counts.items()
    ]


def answerable(mem: Memory, names: dict[str, str], questions: Sequence[Question]) -> tuple[list[object], list[str]]:
    """Return the figures of questions that facts answer, and which of them were lost."""
    shares: list[float] = []
    lines: list[int] = []
    lost: list[str] = []
    for each in questions:
        made = context(mem, each.text)
        found = [names[name] for name in made.recalled]
        pinned = {names[name] for name in made.pinned}
        if not each.bearing & {*found, *pinned}:
            lost.append(each.text)
        lines.append(len(found))
        if not each.bearing <= pinned:
            shares.append(100 * sum(name in each.bearing for name in found) / len(found) if found else 0.0)
    kept = len(questions) - len(lost)
    return [len(questions), 100 * kept / len(questions), median(shares), mean(shares), median(lines)], lost


def two_told(mem: Memory, clock: Clock, given: Sequence[Pair], *, newer_answers: bool) -> dict[str, int]:
    """Tell all older statements, the newer ones a month later, and ask; count what is first, marked and dated."""
    days = [f"{TOLD:%Y-%m-%d}", f"{TOLD + LATER:%Y-%m-%d}"]
    ids: dict[str, str] = {}
    for told in ([each.older for each in given], [each.newer for each in given]):
        ids |= {text: remember(mem, text) for text in told}
        clock.instant += LATER
    found = dict.fromkeys(("stored", "first in recall", "first in context", "both shown", "marked", "both dated"), 0)
    for each in given:
        texts = (each.newer, each.older) if newer_answers else (each.older, each.newer)
        right, wrong = (ids[text] for text in texts)
        found["stored"] += bool(right and wrong)
        made = context(mem, each.question)
        found["first in recall"] += _precedes(right, wrong, [hit.memory.id for hit in mem.recall(each.question)])
        found["first in context"] += _precedes(right, wrong, made.recalled)
        found["both shown"] += right in made.recalled and wrong in made.recalled
        shown = [made.line_of(each.older).replace(each.older, ""), made.line_of(each.newer).replace(each.newer, "")]
        found["marked"] += any("earlier" in line for line in shown)
        found["both dated"] += [made.day_of(text) for text in (each.older, each.newer)] == days
    return found


def _precedes(right: str, wrong: str, ranked: Sequence[str]) -> bool:
    return right in ranked and wrong not in ranked[: ranked.index(right)]


def advised(embedder: Embedder | None) -> list[object]:
    """Ask for advice in stores of forty memories each; return in how many contexts the preference is."""
    requests = sets_facts.advice()
    facts = [fact for fact in sets_facts.facts() if not fact.id.startswith(("pref", "rule"))]
    heeded = 0
    lines: list[int] = []
    for place in range(0, len(requests), TOGETHER):
        group = requests[place : place + TOGETHER]
        start = place // TOGETHER * BESIDE
        with store(embedder) as mem:
            tell(mem, facts[start : start + BESIDE])
            for each in group:
                mem.remember(each.preference)
            for each in group:
                made = context(mem, each.text)
                heeded += bool(made.line_of(each.preference))
                lines.append(len(made.recalled))
    return [len(requests), heeded, median(lines)]


def figures(embedder: Embedder | None, only: Sequence[str]) -> None:
    """Print the tables, each with its goal."""
    if {"nothing", "asked"} & {*only}:
        with store(embedder) as mem:
            names = tell(mem, sets_facts.facts())
            pinned = context(mem, "who is the president of France?").pinned
            lost = [fact.id for fact in sets_facts.facts() if fact.id not in names.values()]
            _print(
                f"Of 300 facts {len(names)} are stored{', all but ' + ', '.join(lost) if lost else ''}; "
                f"{len(pinned)} are in every context."
            )
            if "nothing" in only:
                head = ["nothing remembered", "questions", "recalled lines, median (goal 2)", "mean", "without any"]
                _print(table(head, about_nothing(mem)))
            if "asked" in only:
                _answerable(mem, names)
    if "pairs" in only:
        _two_told(embedder, {kind: sets_facts.pairs(kind) for kind in PAIRS})
    if "corrections" in only:
        _two_told(embedder, {"corrections": sets_facts.corrections()})
    if "advice" in only:
        _print(
            table(["requests for advice", "preference in the context", "recalled lines, median"], [advised(embedder)])
        )


def _answerable(mem: Memory, names: dict[str, str]) -> None:
    rows: list[list[object]] = []
    every: list[Question] = []
    lost: list[str] = []
    for half, unread in (("development", False), ("unread", True)):
        questions = sets_facts.asked(unread=unread)
        row, missing = answerable(mem, names, questions)
        rows.append([half, *row])
        lost += [] if unread else missing
        every += questions
    rows.append(["both", *answerable(mem, names, every)[0]])
    head = ["answerable", "questions", "answers kept, % (goal 97)"]
    head += ["lines that bear, %, median (goal 35)", "mean", "recalled lines, median"]
    _print(table(head, rows))
    if lost:
        _print("Lost of the development half:", *(f"* {text}" for text in lost))


def _two_told(embedder: Embedder | None, groups: dict[str, list[Pair]]) -> None:
    corrected = "corrections" in groups
    rows: list[list[object]] = []
    for name, given in groups.items():
        clock = Clock(TOLD)
        with store(embedder, clock) as mem:
            found = two_told(mem, clock, given, newer_answers=corrected)
        rows.append([name, len(given), *found.values()])
    goals = ("newer first in recall (goal 20)", 30) if corrected else ("right one first in recall (goal 27)", 0)
    head = ["both hold" if not corrected else "corrected", "pairs", "both stored", goals[0], "first in context"]
    _print(table([*head, "both shown", "marked (goal 0)", "both dated"], rows))


def _print(*lines: str) -> None:
    print("\n".join(lines), end="\n\n", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print figures; return 0."""
    parser = argparse.ArgumentParser(prog="python -m evals.facts", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--embedder", default="minilm", help="a name that keepward knows, such as minilm, hashed, none")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in between runs")
    options = parser.parse_args(arguments)
    embedder = chosen(options.embedder, options.cache)
    _print(f"Embedder {options.embedder}.")
    figures(embedder, options.only.split(","))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
