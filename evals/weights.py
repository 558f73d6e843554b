"""Learn the weights of the linear model of orders to a model, on the texts that are developed on.

    python -m evals.weights [--write] [--threshold SCORE] [--collections FOLDER]

It prints what five-fold cross-validation finds and flags at each threshold. ``--write`` learns from all developed texts
and puts weights and threshold into ``injection.npz``. Texts of one wording are in one fold. No unread text is read. The
same texts give the same weights, up to the rounding of the machine.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evals import collections
from evals.sets import injection
from evals.sets.blind import cases as blind
from keepward.gates.detectors import injection_classifier as classifier
from keepward.gates.detectors.normalize import Text

Floats = npt.NDArray[np.float64]

_ROOT = Path(__file__).parents[1]
_FILE = Path(classifier.__file__).with_name("injection.npz")
FOLDS, SIZE = 5, 1 << classifier.HASH_BITS
#: How far weights may grow, and steps of learning.
_LOOSE, _STEPS = 60.0, 40
#: Documents that speak of attacks are no ordinary text.
_ABOUT_ATTACKS = re.compile("detector|secur|threat|inject|drill|attack|reference")


class Example(NamedTuple):
    """A text that is an order or none, and how much it counts."""

    group: str
    wording: str
    text: str
    is_order: bool
    weight: float


def developed() -> Iterator[Example]:
    """Yield the texts of our own sets that are developed on."""
    for each in injection.cases():
        if each.half == "dev" and each.group != "attack_disguised":
            yield Example("own", each.wording, each.text, each.wanted, 0.2)
    for file in ("blind", "varied", "everyday", "third_seen", "fourth_seen", "orders"):
        for kind in ("injection", "secrets") if file not in ("everyday", "orders") else ("injection",):
            for each in blind(kind, file):
                seen = int(each.wording) % 2 == 0 if file == "blind" else each.half == "dev"
                if seen or file in ("third_seen", "fourth_seen", "orders"):
                    hard = file not in ("everyday", "orders") and kind == "injection"
                    group = (
                        "hard" if hard else "written" if file == "orders" else file if file == "everyday" else "secrets"
                    )
                    yield Example(group, each.group + each.wording, each.text, kind == "injection" and each.wanted, 1.0)


def ordinary(folder: Path | None) -> Iterator[Example]:
    """Yield paragraphs of our documents, messages of our talks, and ordinary texts of public collections."""
    for path in sorted((_ROOT / "docs").rglob("*.md")):
        if not _ABOUT_ATTACKS.search(str(path.relative_to(_ROOT))):
            for paragraph in re.split(r"\n\s*\n", path.read_text("utf-8")):
                if 30 < len(paragraph) < 1_500:
                    yield Example("ordinary", paragraph[:40], paragraph, False, 0.3)
    for line in (_ROOT / "evals/sets_talk/dev.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            yield Example("ordinary", line[:40], line.partition(" | ")[0], False, 0.5)
    for path in sorted((_ROOT / "evals/sets_recall").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and 25 < len(node.value) < 1_500:
                yield Example("ordinary", node.value[:40], node.value, False, 0.3)
    yield from _talk()
    for found in collections.read(folder / "ordinary") if folder else ():
        if found.half == "seen":
            yield Example("ordinary", found.text[:40], found.text, False, 0.3)


def _talk() -> Iterator[Example]:
    """Yield turns between people, and of people and an assistant."""
    for name in ("fresh", "blind"):
        for line in (_ROOT / f"evals/sets_recall/{name}.txt").read_text("utf-8").splitlines():
            if len(line) > 25 and not line.startswith("§"):
                yield Example("talk", line[:40], line, False, 0.5)


class Table:
    """The features of many texts, each text a row; a feature counts once a text."""

    def __init__(self, rows: Sequence[npt.NDArray[np.int64]]) -> None:
        self.rows = rows
        lengths = np.array([len(row) for row in rows])
        self.columns = np.concatenate(rows)
        self.begins = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        self.row = np.repeat(np.arange(len(rows)), lengths)
        self.share = (1 / np.sqrt(lengths))[self.row]

    def scores(self, weights: Floats) -> Floats:
        """Return the score of each row; the last weight is the bias."""
        scores: Floats = np.add.reduceat(weights[self.columns] * self.share, self.begins) + weights[-1]
        return scores

    def sums(self, errors: Floats) -> Floats:
        """Return, a weight, the sum of the errors of the rows that have it."""
        return np.append(np.bincount(self.columns, errors[self.row] * self.share, SIZE), errors.sum())


def rows_of(examples: Sequence[Example]) -> list[npt.NDArray[np.int64]]:
    """Return the numbers of the weights of each text."""
    return [np.unique(classifier.features(Text(each.text).normal.text)[1]) for each in examples]


def learn(rows: Sequence[npt.NDArray[np.int64]], examples: Sequence[Example]) -> Floats:
    """Return the weights of logistic regression, the bias last."""
    table = Table(rows)
    wanted = np.array([each.is_order for each in examples], dtype=float)
    counts = np.array([each.weight for each in examples])

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = table.scores(weights)
        missed = (counts * np.logaddexp(0, np.where(wanted == 1, -scores, scores))).sum()
        drawn = np.append(weights[:-1] / _LOOSE, 0)
        return missed + 0.5 * (drawn @ weights), table.sums(counts * (1 / (1 + np.exp(-scores)) - wanted)) + drawn

    return _lowest(loss, np.zeros(SIZE + 1))


def _lowest(loss: Callable[[Floats], tuple[float, Floats]], at: Floats) -> Floats:
    """Go down a smooth slope by L-BFGS with a memory of eight steps."""
    value, slope = loss(at)
    moves: list[tuple[Floats, Floats]] = []
    for _ in range(_STEPS):
        way = slope.copy()
        parts = []
        for move, turn in reversed(moves):
            parts.append((move @ way) / (turn @ move))
            way -= parts[-1] * turn
        way *= (moves[-1][0] @ moves[-1][1]) / (moves[-1][1] @ moves[-1][1]) if moves else 10 / np.abs(slope).sum()
        for (move, turn), part in zip(moves, reversed(parts), strict=True):
            way += (part - (turn @ way) / (turn @ move)) * move
        pace = 1.0
        while True:
            there = at - pace * way
            value_there, slope_there = loss(there)
            if value_there <= value - 1e-4 * pace * (slope @ way) or pace < 1e-6:
                break
            pace /= 2
        move, turn = there - at, slope_there - slope
        if move @ turn <= 1e-12:
            return there
        moves = [*moves, (move, turn)][-8:]
        at, value, slope = there, value_there, slope_there
    return at


def cross_validated(rows: Sequence[npt.NDArray[np.int64]], examples: Sequence[Example]) -> Floats:
    """Return the score of each text by the weights that are learned without its fold."""
    folds = np.array([zlib.crc32(f"{each.group} {each.wording}".encode()) % FOLDS for each in examples])
    scores = np.zeros(len(examples))
    for fold in range(FOLDS):
        kept, left = ([int(at) for at in np.flatnonzero(each)] for each in (folds != fold, folds == fold))
        weights = learn([rows[at] for at in kept], [examples[at] for at in kept])
        scores[left] = Table([rows[at] for at in left]).scores(weights)
    return scores


def show(examples: Sequence[Example], scores: Floats) -> None:
    """Print the shares that pass each threshold, by group."""
    groups = sorted({(each.group, each.is_order) for each in examples})
    print("threshold " + " ".join(f"{group + (' order' if wanted else ''):>14}" for group, wanted in groups))
    for threshold in np.arange(-2.0, 1.01, 0.25):
        shares = [
            100
            * np.mean(
                [
                    score > threshold
                    for each, score in zip(examples, scores, strict=True)
                    if (each.group, each.is_order) == (group, wanted)
                ]
            )
            for group, wanted in groups
        ]
        print(f"{threshold:>9.2f} " + " ".join(f"{share:>12.2f} %" for share in shares))


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, print, and write if asked to."""
    parser = argparse.ArgumentParser(prog="evals.weights", description=__doc__.splitlines()[0])
    parser.add_argument("--collections", type=Path, metavar="FOLDER", help="public collections, see evals.collections")
    parser.add_argument("--threshold", type=float, default=-0.25, help="what a score has to pass; it becomes 0")
    parser.add_argument("--write", action="store_true", help="put weights and threshold into injection.npz")
    asked = parser.parse_args(arguments)
    examples = [*developed(), *ordinary(asked.collections)]
    rows = rows_of(examples)
    if not asked.write:
        show(examples, cross_validated(rows, examples))
        return 0
    weights = learn(rows, examples)
    scale = np.abs(weights[:-1]).max() / 127
    np.savez_compressed(
        _FILE,
        weights=np.rint(weights[:-1] / scale).astype(np.int8),
        scale_and_bias=np.array([scale, weights[-1] - asked.threshold]),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
