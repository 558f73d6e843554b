"""The figures of the detectors, each beside its goal and with the set it is measured on.

``python -m evals.detectors [--collections FOLDER] [--only NAME ...]``

Sets of our own are in ``evals/sets``, halved by wording; ``blind`` and ``sealed`` are by other hands, the odd
places of the first and all of the second unread;
``--collections`` names a folder of public ones, as ``evals.collections`` reads them. The exit status is 1 when a figure
misses its goal; times are printed and never decide. All of it takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path

from evals import collections, worst
from evals.detect import KINDS, SCANNERS
from evals.origin import CHANNELS, run
from evals.placeholders import placeholder
from evals.security import shown
from evals.security_figure import Figure, none_of
from evals.sets.blind import cases as blind_cases
from evals.sets.case import Case
from evals.sets.claims import TEXTS, claimed

#: What a decision on a write lets in, worst first.
_DECISIONS = ("reject", "quarantine", "pending", "commit")
_BY_OTHERS = ("blind", "sealed", "third_seen", "third_unread", "third_sealed", "fourth_seen", "fourth_unread")
_HALVES = {"dev": "half we develop on", "test": "other half"}


def share(what: str, on: str, hits: Iterable[bool], goal: float, *, most: bool = False) -> Figure:
    """Return a share in percent beside its goal, which is the least it should be, or the most."""
    counted = Counter(hits)
    total = counted.total()
    percent = 100 * counted[True] / total if total else 0.0
    return Figure(
        what=f"{what}: {on}",
        value=f"{percent:.2f} % of {total:,}",
        goal=f"{'<=' if most else '>='} {goal:g} %",
        ok=None if not total else percent <= goal if most else percent >= goal,
    )


def own(kind: str, what: str, groups: tuple[str, ...], goal: float, *, most: bool = False) -> Iterator[Figure]:
    """Yield the share of texts of our own in which something is found, by half."""
    cases: list[Case] = list(import_module(f"evals.sets.{kind}").cases())
    flag = SCANNERS[kind]
    for half, name in _HALVES.items():
        hits = (bool(flag(case.text)) for case in cases if case.half == half and case.group.startswith(groups))
        yield share(what, f"evals.sets.{kind}, {name}", hits, goal, most=most)


def secrets(_: Path | None) -> Iterator[Figure]:
    """Yield what is found of secrets in notes, and what is taken for one."""
    yield from own("secrets", "secrets of providers", ("provider",), 96)
    yield from own("secrets", "told passwords", ("told",), 80)
    yield from own("secrets", "ordinary notes flagged", ("kind_", "ordinary"), 0.05, most=True)


def privacy(_: Path | None) -> Iterator[Figure]:
    """Yield what is found of personal identifiers, and what is taken for one."""
    yield from own("privacy", "personal identifiers", ("id_",), 97)
    yield from own("privacy", "look-alikes flagged", ("look_alike",), 0.5, most=True)


def injection(_: Path | None) -> Iterator[Figure]:
    """Yield what is found of orders to a model, and what is taken for one."""
    yield from own("injection", "attacks", ("attack",), 45)
    yield from own("injection", "ordinary notes taken for orders", ("kind_", "ordinary"), 0.5, most=True)


def blind(_: Path | None) -> Iterator[Figure]:
    """Yield what is found in texts by five other hands, of the first by places; such a share has no goal."""
    for file, kind in product(_BY_OTHERS, KINDS):
        flag = SCANNERS[kind]
        flagged: dict[tuple[str, str], list[bool]] = {}
        for case in blind_cases(kind, file):
            places = "odd places, unread" if int(case.wording) % 2 else "even places, developed on"
            places = places if file == "blind" else "all, developed on" if file.endswith("_seen") else "all, unread"
            flagged.setdefault((case.group, places), []).append(bool(flag(case.text)))
        for (group, places), hits in flagged.items():
            yield _without_goal(share(f"{file}, {kind}, {group}", places, hits, 0))


def varied(_: Path | None) -> Iterator[Figure]:
    """Yield what is found in notes of many wordings in seven languages, by half; such a share has no goal."""
    for kind in ("secrets", "injection"):
        flag = SCANNERS[kind]
        flagged: dict[tuple[str, str], list[bool]] = {}
        for case in blind_cases(kind, "varied"):
            flagged.setdefault((case.group, case.half), []).append(bool(flag(case.text)))
        for (group, half), hits in sorted(flagged.items()):
            yield _without_goal(share(f"varied, {kind}, {group}", _HALVES[half], hits, 0))


def everyday(_: Path | None) -> Iterator[Figure]:
    """Yield how many notes of people and of coding agents are held for nothing, by half."""
    for kind, what in (("secrets", "secrets"), ("injection", "orders")):
        flag = SCANNERS[kind]
        for half, name in _HALVES.items():
            hits = (bool(flag(case.text)) for case in blind_cases(kind, "everyday") if case.half == half)
            yield share(f"everyday notes taken for {what}", name, hits, 1, most=True)


def rules(folder: Path | None) -> Iterator[Figure]:
    """Yield what is found of the examples of public rules: of all, of secrets, of secrets that are no placeholders."""
    found = list(collections.read(folder / "secrets")) if folder else []
    flag = SCANNERS["secrets"]
    hits = [bool(flag(each.text)) for each in found]
    made_up = [placeholder(each.text) for each in found]
    counts: dict[str, Callable[[int], bool]] = {
        "all": lambda n: True,
        "without hosts, ids and the like": lambda n: found[n].secret,
        "and without placeholders": lambda n: found[n].secret and not made_up[n],
        "placeholders alone": lambda n: made_up[n],
    }
    for name in sorted({each.collection for each in found}):
        for half in ("seen", "unread"):
            here = [n for n, each in enumerate(found) if (each.collection, each.half) == (name, half)]
            for which, counts_in in counts.items():
                figure = share(
                    f"rule examples, {which}", f"{name}, {half} half", (hits[n] for n in here if counts_in(n)), 88
                )
                yield figure if which.startswith("and") else _without_goal(figure)
    if not found:
        yield _unmeasured("rule examples")


def attacks(folder: Path | None) -> Iterator[Figure]:
    """Yield what is found of published attacks."""
    found = list(collections.read(folder / "attacks")) if folder else []
    flag = SCANNERS["injection"]
    for half in ("seen", "unread") if found else ():
        hits = (bool(flag(each.text)) for each in found if each.half == half)
        yield _without_goal(share("published attacks", f"{half} half", hits, 0))
    if not found:
        yield _unmeasured("published attacks")


def ordinary(folder: Path | None) -> Iterator[Figure]:
    """Yield what is flagged of ordinary texts of others."""
    found = list(collections.read(folder / "ordinary")) if folder else []
    for kind, what, goal in (("secrets", "secrets", 0.15), ("injection", "orders", 0.5)) if found else ():
        flag = SCANNERS[kind]
        for half in ("seen", "unread"):
            hits = (bool(flag(each.text)) for each in found if each.half == half)
            yield share(f"ordinary paragraphs taken for {what}", f"{half} half", hits, goal, most=True)
    if not found:
        yield _unmeasured("ordinary paragraphs")


def _without_goal(figure: Figure) -> Figure:
    return Figure(what=figure.what, value=figure.value, goal="", ok=True)


def _unmeasured(what: str) -> Figure:
    return Figure(what=what, value="it takes --collections", goal="", ok=None)


def claims(_: Path | None) -> Iterator[Figure]:
    """Yield how many claims of a better origin improve the decision on a write."""
    writes = [
        (provenance, target, text)
        for provenance in CHANNELS
        if provenance != "owner"
        for target in ("archival", "core", "state")
        for text in TEXTS
    ]
    asked = [(number, said) for number, (_, _, text) in enumerate(writes) for said in (text, *claimed(text))]
    lines = (
        json.dumps({"id": number, "text": said, "provenance": writes[number][0], "target": writes[number][1]})
        for number, said in asked
    )
    plain: dict[int, int] = {}
    better = 0
    for (number, _said), answer in zip(asked, run(lines), strict=True):
        rank = _DECISIONS.index(answer["decision"])
        better += rank > plain.setdefault(number, rank)
    yield none_of("decisions improved by a forged claim: evals.sets.claims", better, len(asked) - len(writes), "claims")


def speed(kind: str, _: Path | None) -> Iterator[Figure]:
    """Yield the CPU time of the text that takes a detector longest."""
    taken, name = worst.slowest(kind, 1 << 16)[0]
    yield Figure(
        what=f"64 KB of anything, {kind}: evals.worst, {name}",
        value=f"{taken:.0f} ms",
        goal=f"<= {worst.GOAL:.0f} ms",
        ok=taken <= worst.GOAL,
        speed=True,
    )


#: What measures, by name.
CHECKS: dict[str, Callable[[Path | None], Iterator[Figure]]] = {
    "secrets": secrets,
    "rules": rules,
    "ordinary": ordinary,
    "privacy": privacy,
    "injection": injection,
    "attacks": attacks,
    "blind": blind,
    "varied": varied,
    "everyday": everyday,
    "claims": claims,
    **{f"speed-{kind}": partial(speed, kind) for kind in KINDS},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(prog="evals.detectors", description=__doc__.splitlines()[0])
    parser.add_argument("--collections", type=Path, metavar="FOLDER", help="public collections, see evals.collections")
    parser.add_argument("--only", nargs="+", choices=sorted(CHECKS), default=list(CHECKS), metavar="NAME")
    asked = parser.parse_args(arguments)
    if asked.collections and not asked.collections.is_dir():
        parser.error(f"{asked.collections} is no folder")
    figures = [figure for name in asked.only for figure in CHECKS[name](asked.collections)]
    print(shown(figures))
    return 1 if any(each.missed for each in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
