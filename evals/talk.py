"""Evaluate what facts are found in a talk without any model, and what they add to contexts.

    python -m evals.talk [--half dev | unread | both]
    python -m evals.talk --contexts [--embedder minilm] [--cache FOLDER]

Messages of one person each tell some facts or none (``evals/sets_talk``). A fact counts as found where one of ours has
all of its words; ours counts as wrong where no fact of its message accounts for it.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

from evals import recall_sets
from evals.recall_report import scored, table, total
from evals.recall_run import BUDGETS, run
from evals.recall_vectors import chosen
from keepward import Memory
from keepward.models.tokens import choose_counter

HALVES = ("dev", "unread")


class Message(NamedTuple):
    """A message and the words of each fact that it tells."""

    text: str
    facts: tuple[frozenset[str], ...]


class Score(NamedTuple):
    """Facts there are, facts found, facts told, and those of them that are wrong."""

    facts: int
    found: int
    told: int
    wrong: tuple[str, ...]
    missed: tuple[str, ...]


def messages(half: str) -> list[Message]:
    """Return the messages of a half."""
    lines = (Path(__file__).parent / "sets_talk" / f"{half}.txt").read_text("utf-8").splitlines()
    rows = [line.rpartition(" |") for line in lines if line and not line.startswith("#")]
    return [Message(text, tuple(words(each) for each in facts.split(";") if each.strip())) for text, _, facts in rows]


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(re.findall(r"[\w':,.]*\w", text.casefold()))


def score(half: str) -> Score:
    """Add each message of a half to a store of its own, through the front door, and count."""
    total = found = told = 0
    wrong: list[str] = []
    missed: list[str] = []
    for number, message in enumerate(messages(half)):
        with Memory.open(":memory:", embedder=None) as memory:
            added = memory.add([{"role": "user", "content": message.text}], session=f"s{number}", subject="Ana")
        ours = [each.record.text for each in added.facts if each.record is not None]
        total, told = total + len(message.facts), told + len(ours)
        met = {fact: [each for each in ours if fact <= words(each)] for fact in message.facts}
        found += sum(bool(each) for each in met.values())
        missed += [message.text for each in met.values() if not each]
        right = {each for texts in met.values() for each in texts}
        wrong += [each for each in ours if each not in right]
    return Score(total, found, told, tuple(wrong), tuple(missed))


def contexts(embedder: str, cache: Path | None) -> str:
    """Return a row of the chats with an assistant as messages alone, and one with the facts that they tell."""
    data, model, counter = recall_sets.assistant(), chosen(embedder, cache), choose_counter("estimate")
    shown = ("recall@10", "ndcg@10", *(f"context@{budget}" for budget in BUDGETS))
    rows: list[list[object]] = []
    for label, facts in (("messages", False), ("messages and their facts", True)):
        done = run(data, embedder=model, counter=counter, facts=facts)
        means = total(scored(data, done.answers))
        rows.append([label, done.outcomes["committed"], *(100 * means[name] for name in shown)])
    return table(["told", "kept", *shown], rows)


def main(arguments: list[str] | None = None) -> int:
    """Print one row a half."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--half", choices=(*HALVES, "both"), default="both")
    parser.add_argument("--list", action="store_true", help="also what was missed or is wrong, of dev alone")
    parser.add_argument("--contexts", action="store_true", help="what facts add to recall and contexts of long chats")
    parser.add_argument("--embedder", default="minilm", help="a name that keepward knows, such as minilm, hashed, none")
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in between runs")
    given = parser.parse_args(arguments)
    if given.contexts:
        print(contexts(given.embedder, given.cache))
        return 0
    print("| set | facts told in it | found | facts of ours | wrong |\n| --- | ---: | ---: | ---: | ---: |")
    for half in HALVES if given.half == "both" else (given.half,):
        each = score(half)
        shares = f"{each.found / each.facts:.1%} | {each.told} | {len(each.wrong) / max(each.told, 1):.1%}"
        print(f"| {half}, {len(messages(half))} messages | {each.facts} | {shares} |")
        if given.list and half == "dev":
            for label, rows in (("missed", each.missed), ("wrong", each.wrong)):
                print(*(f"    {label}: {row}" for row in rows), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
