"""Learn the weights by which sentences are weighed on the texts that are developed on; print the shares of both halves.

    python -m evals.weights [--collections FOLDER] [--write]

A weight says how much a feature speaks for an order; those that can only speak against are kept at 0 or below, all
others at 0 or above, so that a weight cannot make up for one that is wrong. A text with several candidates counts by
its best.
``--write`` puts them into ``rules/sentences.toml``. The same texts give the same weights.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evals import collections
from evals.sets import injection
from evals.sets.blind import cases as blind
from keepward.gates.detect import sentences
from keepward.gates.detect.text import Text

_FILE = Path(sentences.__file__).parent / "rules/sentences.toml"
#: How much a missed order weighs beside a false find, and how strongly weights are drawn to 0.
_MISSED, _DRAWN = 2.0, 1e-4
_ROUNDS, _STEPS = 6, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One text: what may be an order in it, by features."""

    group: str
    wanted: bool
    half: str
    weight: float
    found: tuple[tuple[str, ...], ...]


#: Kinds of words in orders that may speak for one or against one by themselves.
_EITHER = frozenset(("you", "not", "must", "before", "when", "asks", "reads", "this", "owner", "begins"))


def examples(folder: Path | None) -> list[Example]:
    """Return the texts of our own, the even places of those by another hand, and public ones."""
    given = [("own", each, 1.0) for each in injection.cases()]
    given += [("blind", each, 5.0) for each in blind("injection") if int(each.wording) % 2 == 0]
    given += [("varied", each, 5.0) for each in blind("injection", "varied")]
    given += [("secrets", each, 5.0) for each in blind("secrets", "varied") if not each.wanted]
    rows = [
        (name, each.text, each.wanted, "dev" if name == "blind" else each.half, weight) for name, each, weight in given
    ]
    for name, wanted in (("ordinary", False), ("attacks", True)):
        rows += [
            (name, each.text, wanted, "dev" if each.half == "seen" else "test", 1.0)
            for each in (collections.read(folder / name) if folder else ())
        ]
    return [
        Example(
            group=name,
            wanted=wanted,
            half=half,
            weight=weight,
            found=tuple(dict.fromkeys(tuple(each) for *_, each in sentences.windows(Text(text).normal.text))),
        )
        for name, text, wanted, half, weight in rows
    ]


def _against(feature: str) -> bool:
    return not sentences.COUNTER.isdisjoint(feature.split(", "))


class Learner:
    """Logistic regression over sets of features, with signs that are given."""

    def __init__(self, given: Sequence[Example]) -> None:
        self.examples = given
        self.sets: dict[tuple[str, ...], int] = {}
        self.of = [[self.sets.setdefault(each, len(self.sets)) for each in example.found] for example in given]
        seen = Counter(
            feature
            for example in given
            if example.half == "dev"
            for feature in {feature for each in example.found for feature in each}
            if example.wanted or _against(feature)
        )
        self.features = sorted(feature for feature, count in seen.items() if count >= 4)
        places = {feature: place for place, feature in enumerate(self.features)}
        pairs = [(row, places[each]) for found, row in self.sets.items() for each in found if each in places]
        self.rows, self.columns = np.array(pairs).T
        against = [_against(name) for name in self.features]
        either = [name in _EITHER for name in self.features]
        self.least = np.where(np.array(against) | np.array(either), -9.0, 0.0)
        self.most = np.where(against, 0.0, 9.0)

    def sums(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of each set of features, without the base."""
        return np.bincount(self.rows, weights=weights[self.columns], minlength=len(self.sets))

    def learn(self) -> tuple[np.ndarray, float]:
        """Return the weights and the base."""
        size, count = len(self.features), len(self.sets)
        state = np.zeros((3, size + 1))
        state[0, size] = -3.0
        against = np.zeros(count)
        for example, found in zip(self.examples, self.of, strict=True):
            if example.half == "dev" and not example.wanted:
                for row in found:
                    against[row] += example.weight if against[row] < example.weight else 0.2
        against = np.minimum(against, 6.0)
        # Before anything is learned: what has most around it.
        best = np.array([len(each) for each in self.sets], dtype=float)
        step = 0
        for _ in range(_ROUNDS):
            wanted = np.zeros(count)
            for example, found in zip(self.examples, self.of, strict=True):
                if example.half == "dev" and example.wanted and found:
                    wanted[max(found, key=lambda row: best[row])] += example.weight * _MISSED
            total = wanted.sum() + against.sum()
            for _ in range(_STEPS):
                step += 1
                chance = 1 / (1 + np.exp(-(self.sums(state[0, :size]) + state[0, size])))
                error = against * chance - wanted * (1 - chance)
                slope = np.bincount(self.columns, weights=error[self.rows], minlength=size)
                slope = np.append(slope, error.sum()) / total
                state[1] = 0.9 * state[1] + 0.1 * slope
                state[2] = 0.99 * state[2] + 0.01 * slope**2
                pace = 0.04 / (np.sqrt(state[2] / (1 - 0.99**step)) + 1e-8)
                state[0] -= pace * state[1] / (1 - 0.9**step)
                inner = state[0, :size]
                inner[:] = np.sign(inner) * np.maximum(np.abs(inner) - np.minimum(pace[:size], 40.0) * _DRAWN * 0.2, 0)
                np.clip(inner, self.least, self.most, out=inner)
            best = self.sums(state[0, :size])
        return state[0, :size], float(state[0, size])

    def shares(self, weights: np.ndarray, base: float) -> None:
        """Print the share of texts in which something is found, by group and half, for several floors."""
        sums = self.sums(weights) + base
        for floor in (-1.0, 0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0):
            hits: dict[tuple[str, bool, str], list[bool]] = {}
            for example, found in zip(self.examples, self.of, strict=True):
                key = (example.group, example.wanted, example.half)
                hits.setdefault(key, []).append(any(sums[row] > floor for row in found))
            print(f"floor {floor}")
            for (group, wanted, half), each in sorted(hits.items()):
                what = "found" if wanted else "false"
                print(f"  {group:<12}{half:<6}{100 * np.mean(each):>8.2f} % of {len(each):,} {what}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, print, and write if asked to."""
    parser = argparse.ArgumentParser(prog="evals.weights", description=__doc__.splitlines()[0])
    parser.add_argument("--collections", type=Path, metavar="FOLDER", help="public collections, see evals.collections")
    parser.add_argument("--floor", type=float, default=2.5, help="what a score has to pass; it becomes 0")
    parser.add_argument("--write", action="store_true", help="put the weights into rules/sentences.toml")
    asked = parser.parse_args(arguments)
    learner = Learner(examples(asked.collections))
    weights, base = learner.learn()
    learner.shares(weights, base)
    if asked.write:
        text = _FILE.read_text("utf-8")
        heading = "[weights]\n"
        rows = [("base", base - asked.floor)]
        rows += [(name, weight) for name, weight in zip(learner.features, weights, strict=True) if abs(weight) >= 0.05]
        table = heading + "".join(f'"{name}" = {weight:.2f}\n' for name, weight in rows)
        _FILE.write_text(re.sub(re.escape(heading) + r"[^\[]*", lambda _: table, text), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
