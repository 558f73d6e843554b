"""Change the code in one place at a time, and print which changes no test notices: `make mutants`.

`python tools/mutants.py [--base REF] [PATH ...]` takes the files of the package that changed since REF, or the files
below the paths. It draws changes by seed and tries as many as fit into the minutes. Each change is made in a copy of
the package below `build/mutants`, on which only the everyday tests of its line run. `--map` finds these tests again.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import os
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

from coverage import CoverageData

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "mutants"
LINES, TIMES, CONFIG, MAPPED = BUILD / "lines", BUILD / "tests.xml", BUILD / "coverage.ini", BUILD / "mapped"
EVERYDAY = [
    *(sys.executable, "-m", "pytest", "-q", "--ignore=tests/console", "--ignore=tests/proof", "-p", "no:schemathesis"),
    *("-m", "not slow and not proof and not nightly"),
]
#: A process that a test starts is measured too, for the test that starts it.
SETTINGS = f"""[run]
source_pkgs = keepward
data_file = {LINES}
parallel = true
patch = subprocess
context = ${{PYTEST_CURRENT_TEST-}}
relative_files = true
"""
#: Tests of the first, short run of a change, and lines before and after it that choose them.
FIRST, NEAR = 12, 20
#: The reason of a change whose tests did not end in time. It counts once that is so without other changes beside it.
TOO_SLOW = "too slow"
#: Memory that a change may take, and characters to print around it.
MEMORY, AROUND = 8 << 30, 24
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Continue: ast.Break, ast.Break: ast.Continue,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes of a file that it replaces, and the lines that run them."""

    file: str
    lines: range
    statement: range
    start: int
    end: int
    old: str
    new: str
    #: Whether it is a statement, not an expression.
    whole: bool

    def __str__(self) -> str:
        # Both ends of a long expression are the same.
        first = max(same_length(self.old, self.new) - AROUND, 0)
        last = max(same_length(self.old[first:][::-1], self.new[first:][::-1]) - AROUND, 0)
        old, new = (
            f"{'...' * bool(first)}{text[first : len(text) - last]}{'...' * bool(last)}"
            for text in (self.old, self.new)
        )
        return f"{self.file}:{self.lines.start}  {old}  ->  {new}"


def same_length(one: str, other: str) -> int:
    """Return how many characters two texts begin with in common."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def changed(node: ast.AST, **fields: object) -> ast.AST:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield what a node can become: other operators, conditions, numbers, and calls or results left out."""
    match node:
        case ast.Compare(ops=ops):
            for index, op in enumerate(ops):
                yield node, changed(node, ops=[*ops[:index], SWAPS[type(op)](), *ops[index + 1 :]])
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in SWAPS:
            yield node, changed(node, op=SWAPS[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, operand
        case ast.Constant(value=bool(value)):
            yield node, ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield node, ast.Constant(value + 1)
        case ast.Return(value=ast.AST() as value) if not isinstance(value, ast.Constant) or value.value is not None:
            yield node, ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Raise() | ast.Delete():
            yield node, ast.Pass()
        case ast.Continue() | ast.Break():
            yield node, SWAPS[type(node)]()
        case ast.Call(keywords=keywords):
            for index, keyword in enumerate(keywords):
                if keyword.arg:
                    yield node, changed(node, keywords=[*keywords[:index], *keywords[index + 1 :]])


def conditions(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield the conditions of a node, negated, if they have no operator of their own."""
    for test in [node.test] if isinstance(node, ast.If | ast.While | ast.IfExp) else getattr(node, "ifs", []):
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            yield test, ast.UnaryOp(ast.Not(), test)


def nodes(node: ast.AST, statement: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield each node that runs, with its statement. Positions inside of an f-string are wrong before Python 3.12."""
    yield node, statement
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr) and not only_types(child):
                yield from nodes(child, child if isinstance(child, ast.stmt) else statement)


def only_types(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name(id=name)) | ast.AnnAssign(annotation=ast.Name(id=name)):
            return name in {"TYPE_CHECKING", "TypeAlias"}
    return False


def mutants(file: str) -> Iterator[Mutant]:
    """Yield every change of a file."""
    source = (ROOT / file).read_bytes()
    starts = [0, *(found.end() for found in re.finditer(rb"\n", source))]
    tree = ast.parse(source)
    for node, statement in nodes(tree, tree):
        for old, new in chain(changes(node), conditions(node)):
            start, end = starts[old.lineno - 1] + old.col_offset, starts[old.end_lineno - 1] + old.end_col_offset
            last = statement.body[0].lineno - 1 if hasattr(statement, "body") else statement.end_lineno
            yield Mutant(
                file=file,
                lines=range(old.lineno, old.end_lineno + 1),
                statement=range(statement.lineno, max(last, statement.lineno) + 1),
                start=start,
                end=end,
                old=ast.unparse(old),
                new=ast.unparse(new),
                whole=isinstance(old, ast.stmt),
            )


def map_tests() -> None:
    """Run the everyday tests once and note which test runs which line."""
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    CONFIG.write_text(SETTINGS)
    shutil.copytree(ROOT / "src", MAPPED / "src", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        [
            *(*EVERYDAY, "--numprocesses=auto", "--dist=loadfile", "--cov", f"--cov-config={CONFIG}", "--cov-report="),
            *("--cov-context=test", f"--junitxml={TIMES}"),
        ],
        cwd=ROOT,
        check=False,
    )


def reported(test: str) -> tuple[str, str]:
    """Return the class and the name of a test as a report names them."""
    path, bracket, values = test.partition("[")
    *path, name = path.replace("/", ".").replace(".py::", "::").split("::")
    return ".".join(path), name + bracket + values


class Tests:
    """Which everyday tests run which line, and how long each takes."""

    def __init__(self) -> None:
        collected = subprocess.run(
            [*EVERYDAY, "--collect-only"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True
        )
        present = {reported(line): line for line in collected.stdout.splitlines() if "::" in line}
        self.seconds: dict[str, float] = {}
        for case in ElementTree.parse(TIMES).iter("testcase"):
            name = present.pop((case.get("classname", ""), case.get("name", "")), "")
            if name and not len(case):
                self.seconds[name] = float(case.get("time", 0))
        # The map does not have them, so each change gets them all.
        self.new = sorted(present.values())
        self._data = CoverageData(str(LINES))
        self._data.read()
        self._lines: dict[str, dict[int, set[str]]] = {}

    def lines(self, file: str) -> dict[int, set[str]]:
        """Return the tests of each line of a file as it is now; a new line has those of the line above."""
        if file not in self._lines:
            old: dict[int, set[str]] = {}
            imported = []
            for line, contexts in self._data.contexts_by_lineno(file).items():
                names = {
                    re.sub(r"(\|(run|setup|teardown)| \((call|setup|teardown)\))+$", "", each) for each in contexts
                }
                old[line] = names & self.seconds.keys()
                if names == {""}:
                    imported.append(line)
            # What runs when a module is imported belongs to no test.
            old.update(dict.fromkeys(imported, set[str]().union(*old.values())))
            before = (MAPPED / file).read_text().splitlines() if (MAPPED / file).exists() else []
            now = (ROOT / file).read_text().splitlines()
            same = {}
            for a, b, size in difflib.SequenceMatcher(None, before, now, autojunk=False).get_matching_blocks():
                same.update({b + step + 1: a + step + 1 for step in range(size)})
            found: dict[int, set[str]] = {}
            for line in range(1, len(now) + 1):
                found[line] = old.get(same[line], set()) if line in same else found.get(line - 1, set())
            self._lines[file] = found
        return self._lines[file]

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests of a change: first those that are short and run what few others run near it."""
        lines = self.lines(mutant.file)
        found = set[str]().union(*(lines[line] for line in mutant.lines))
        found = found or set[str]().union(*(lines[line] for line in mutant.statement))
        rare: dict[str, float] = defaultdict(float)
        for line in range(mutant.lines.start - NEAR, mutant.lines.stop + NEAR):
            for name in lines.get(line, ()):
                rare[name] += 1 / len(lines[line])
        # What a process does once counts for its first test alone, so others of the file follow.
        more = set[str]().union(*lines.values()) if 0 < len(found) <= FIRST else found
        # A database has to start.
        return sorted(
            more,
            key=lambda name: (
                name not in found,
                "postgres" in name,
                -rare[name] / (self.seconds[name] + 0.1),
                name,
            ),
        )

    def limited(self, names: list[str], seconds: float) -> list[str]:
        """Return the first of them that fit into a time."""
        total, taken = 0.0, []
        for name in names:
            total += self.seconds[name] + 0.01
            if total > seconds and taken:
                break
            taken.append(name)
        return taken


@dataclass(frozen=True)
class Outcome:
    """What the tests say of a change; ``killed`` is None if the time was over before."""

    mutant: Mutant
    killed: bool | None
    reason: str

    def __str__(self) -> str:
        return f"{'killed  ' if self.killed else 'survived'}  {self.mutant}  [{self.reason}]"


class Runs:
    """Folders with a copy of the package each, in which tests run at one time."""

    def __init__(self, tests: Tests, jobs: int, seconds: float, until: float) -> None:
        self._tests, self._seconds, self._until = tests, seconds, until
        self._folders: queue.Queue[Path] = queue.Queue()
        for number in range(jobs):
            folder = BUILD / f"copy-{number}"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(ROOT / "src", folder / "src")
            self._folders.put(folder)

    def run(self, mutant: Mutant) -> Outcome:
        """Run the tests of a change in a free folder."""
        if time.monotonic() >= self._until:
            return Outcome(mutant, None, "no time left")
        folder = self._folders.get()
        try:
            return self._run(mutant, folder)
        finally:
            shutil.copy2(ROOT / mutant.file, folder / mutant.file)
            self._folders.put(folder)

    def _run(self, mutant: Mutant, folder: Path) -> Outcome:
        target = folder / mutant.file
        source = (ROOT / mutant.file).read_bytes()
        new = mutant.new if mutant.whole else f"({mutant.new})"
        target.write_bytes(source[: mutant.start] + new.encode() + source[mutant.end :])
        # It is chosen by second and size, and another change can have the same.
        for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*"):
            compiled.unlink()
        every = self._tests.of(mutant)
        if not every and not self._tests.new:
            return Outcome(mutant, False, "no test runs it")
        names = self._tests.limited(every, self._seconds)
        for batch in (self._tests.new + names[:FIRST], names[FIRST:]):
            if batch:
                limit = 60 + 5 * sum(self._tests.seconds.get(name, 1) for name in batch)
                code, output = self._pytest(batch, folder, min(limit, self._until - time.monotonic()))
                if code is None and time.monotonic() >= self._until - 1:
                    return Outcome(mutant, None, "no time left")
                if code not in {0, 5}:
                    test = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", output, re.MULTILINE)
                    return Outcome(mutant, True, test[1] if test else TOO_SLOW if code is None else f"exit {code}")
        return Outcome(mutant, False, f"{len(names)} of {len(every)} tests")

    def _pytest(self, names: list[str], folder: Path, limit: float) -> tuple[int | None, str]:
        chosen, output = folder / "chosen", folder / "output"
        chosen.write_text("\n".join(names))
        command = [*EVERYDAY, "-x", "--tb=no", "-p", "no:cacheprovider", f"@{chosen}"]
        environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        with output.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            code: int | None = None
            for end in (None, signal.SIGINT, signal.SIGKILL):
                if end:
                    os.killpg(process.pid, end)
                try:
                    found = process.wait(max(limit, 0) if end is None else 10)
                except subprocess.TimeoutExpired:
                    continue
                code = found if end is None else None
                break
        return code, output.read_text(errors="replace")


def changed_files(base: str, folder: str) -> list[str]:
    """Return the Python files of a folder that differ from a commit, new ones too."""
    tracked = ["git", "diff", "--merge-base", "--name-only", "--diff-filter=d", base, "--", folder]
    untracked = ["git", "ls-files", "--others", "--exclude-standard", "--", folder]
    found = (
        subprocess.run(each, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True) for each in (tracked, untracked)
    )
    return sorted({line for each in found for line in each.stdout.splitlines() if line.endswith(".py")})


def python_files(paths: Iterable[Path]) -> list[str]:
    files = chain.from_iterable(path.rglob("*.py") if path.is_dir() else [path] for path in paths)
    return sorted(str(path.resolve().relative_to(ROOT)) for path in files)


def reported_outcome(outcome: Outcome) -> list[Outcome]:
    """Print what the tests say of a change; return nothing if the time was over before."""
    if outcome.killed is None:
        return []
    print(outcome, flush=True)
    return [outcome]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="main", help="take the files that changed since this commit")
    parser.add_argument("--minutes", type=float, default=10, help="end after this time")
    parser.add_argument("--most", type=int, default=300, help="draw at most this many changes")
    parser.add_argument("--seed", type=int, default=0, help="draw the same changes again")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="changes to try at one time")
    parser.add_argument("--seconds", type=float, default=20, help="run at most this much of the tests of a change")
    parser.add_argument("--map", action="store_true", help="find the tests of each line again, which takes minutes")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    options = parser.parse_args()
    os.chdir(ROOT)
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if options.map or not TIMES.exists():
        map_tests()
    until = time.monotonic() + 60 * options.minutes
    tests = Tests()
    files = python_files(options.paths) if options.paths else changed_files(options.base, "src/keepward")
    every = [mutant for file in files for mutant in mutants(file)]
    drawn = random.Random(options.seed).sample(every, min(options.most, len(every)))
    print(f"{len(drawn)} changes drawn of {len(every)} in {len(files)} files, seed {options.seed}", flush=True)
    runs, outcomes, slow = Runs(tests, options.jobs, options.seconds, until), [], []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(runs.run, drawn):
            if outcome.reason == TOO_SLOW:
                slow.append(outcome.mutant)
            else:
                outcomes += reported_outcome(outcome)
    for mutant in slow:
        outcomes += reported_outcome(runs.run(mutant))
    killed = sum(bool(outcome.killed) for outcome in outcomes)
    print(f"{killed} killed, {len(outcomes) - killed} survived, {len(drawn) - len(outcomes)} not tried")


if __name__ == "__main__":
    main()
