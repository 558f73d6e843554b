"""Compare memory systems with one model: the same turns, questions, prompt of the answer, and judge.

    python -m evals.compare_systems --dataset locomo --data locomo10.json --url http://127.0.0.1:11434/v1 \\
        --model MODEL --results results.jsonl [--systems keepward,full,none,mem0,langmem,graphiti] [--json]

Each system is told each conversation in a store of its own, some turns at a time. Then, for each question, it gives its
notes; the model answers from them, and the model says whether the answer agrees with that of the data set. Every call
goes through a meter (`evals.model_meter`). The key of the model comes from the environment variable OPENAI_API_KEY.

Each answer is a line of the file of results. A run that was stopped goes on with what is missing: conversations whose
questions are all answered are not told again, and answers are not asked again. What failed is tried again.

The exit status is 2 when the arguments make no sense or a package is missing, 1 when something failed, else 0.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evals import published
from evals.memory_systems import SYSTEMS, Setup, System
from evals.model_meter import Meter, ModelFault
from evals.recall_report import table
from evals.recall_score import percentile
from evals.recall_sets import Asked, Conversation, DataSet, Told
from evals.recall_vectors import chosen
from keepward import __version__
from keepward.embedding.tokens import choose_counter
from keepward.ports.models import TokenCounter

ANSWER = """\
Answer the question from the notes. Notes come from a memory of earlier conversations; newer notes replace older ones.
Answer in one short sentence. If the notes do not tell, answer "I do not know".

Notes:
{notes}

Question: {question}
"""
JUDGE = """\
Decide whether an answer to a question is right. It is right if it says what the expected answer says, in any words and
with any further detail that does not contradict it. Dates count as equal if they name the same time.

Question: {question}
Expected answer: {expected}
Answer: {answer}

Reply with one word: RIGHT or WRONG.
"""
_VERDICT = re.compile(r"\b(RIGHT|WRONG)\b")


@dataclass(slots=True)
class Results:
    """The lines of a file of results, and the file that new ones are added to."""

    file: Path
    #: By system and conversation: what storing it took.
    stored: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    #: By system and question.
    answered: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def begin(self, run: dict[str, Any]) -> None:
        """Read the file, or write its first line.

        Raises:
            ValueError: the file is from a run with other options, or is no file of results.
        """
        if not self.file.exists() or not self.file.stat().st_size:
            self.add({"kind": "run", **run})
            return
        lines = self.file.read_text("utf-8").splitlines(keepends=True)
        if not lines[-1].endswith("\n"):
            # The run was stopped while it wrote the last line.
            self.file.write_text("".join(lines[:-1]), "utf-8")
            lines.pop()
        first, *others = [json.loads(line) for line in lines] or [{}]
        if first != {"kind": "run", **run}:
            differing = ", ".join(name for name in run if first.get(name) != run[name])
            raise ValueError(f"{self.file.name} is from a run with another {differing}: name another file of --results")
        for line in others:
            self._take(line)

    def add(self, line: dict[str, Any]) -> None:
        """Write a line."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        if line["kind"] == "stored":
            self.stored[line["system"], line["conversation"]] = line
        elif line["kind"] == "answered":
            self.answered[line["system"], line["question"]] = line

    def missing(self, system: str, questions: Iterable[Asked]) -> list[Asked]:
        """Return the questions that have no answer yet, or failed."""
        return [
            each for each in questions if "error" in self.answered.get((system, each.id), {"error": "not asked yet"})
        ]


def questions_of(data: Sequence[DataSet], *, count: int | None, seed: int) -> dict[str, list[Asked]]:
    """Return the questions with an answer by conversation, ``count`` of all where it is given, drawn by the seed."""
    every = [(each.name, asked) for it in data for each in it.conversations for asked in each.asked if asked.answer]
    if count is not None and count < len(every):
        places = sorted(random.Random(seed).sample(range(len(every)), count))
        every = [every[place] for place in places]
    found: dict[str, list[Asked]] = {}
    for name, asked in every:
        found.setdefault(name, []).append(asked)
    return found


def portions(told: Sequence[Told], size: int) -> Iterator[tuple[Told, ...]]:
    """Yield turns in the order of telling, at most ``size`` at a time, never of two sessions."""
    for _, group in groupby(told, key=lambda turn: turn.session):
        turns = tuple(group)
        for start in range(0, len(turns), size):
            yield turns[start : start + size]


def compare(
    data: Sequence[DataSet],
    questions: dict[str, list[Asked]],
    systems: Sequence[str],
    results: Results,
    *,
    meter: Meter,
    counter: TokenCounter,
    judge: str,
    budget: int | None,
    portion: int,
) -> None:
    """Tell and ask what is missing in the results."""
    for name in systems:
        for conversation in (each for it in data for each in it.conversations):
            missing = results.missing(name, questions.get(conversation.name, ()))
            if not missing:
                continue
            with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                setup = Setup(meter=meter, counter=counter, folder=Path(folder), budget=budget)
                fault = ""
                try:
                    system = SYSTEMS[name].open(setup)
                except Exception as exc:  # noqa: BLE001  whatever another system raises is a line of the results
                    results.add(_stored(name, conversation, 0.0, meter, error=_said(exc)))
                    continue
                try:
                    fault = _tell(system, name, conversation, portion, meter, results)
                    for asked in missing if not fault else ():
                        line = _asked(system, asked, meter, counter, judge)
                        results.add({"kind": "answered", "system": name, "conversation": conversation.name} | line)
                        _show(f"{name}, {conversation.name}: {asked.id}")
                finally:
                    system.close()


def _tell(system: System, name: str, conversation: Conversation, portion: int, meter: Meter, results: Results) -> str:
    """Tell a system all turns; return why that failed."""
    meter.take()
    start = time.perf_counter()
    fault = ""
    try:
        for turns in portions(conversation.told, portion):
            system.tell(turns)
    except Exception as exc:  # noqa: BLE001  whatever another system raises is a line of the results
        fault = _said(exc)
    results.add(_stored(name, conversation, time.perf_counter() - start, meter, error=fault))
    _show(f"{name}, {conversation.name}: {len(conversation.told)} turns told{f', {fault}' if fault else ''}")
    return fault


def _stored(name: str, conversation: Conversation, seconds: float, meter: Meter, *, error: str) -> dict[str, Any]:
    line = {"kind": "stored", "system": name, "conversation": conversation.name, "turns": len(conversation.told)}
    return line | {"seconds": round(seconds, 3)} | asdict(meter.take()) | ({"error": error} if error else {})


def _asked(system: System, asked: Asked, meter: Meter, counter: TokenCounter, judge: str) -> dict[str, Any]:
    """Ask one question; return the line of its answer without the names."""
    line: dict[str, Any] = {"question": asked.id, "category": asked.category}
    try:
        start = time.perf_counter()
        notes = system.notes(asked.text)
        line["search_seconds"] = round(time.perf_counter() - start, 4)
        searched = meter.take()
        prompt = ANSWER.format(notes=notes, question=asked.text)
        line["answer"] = meter.ask(prompt)
        read = meter.take()
        verdict = meter.ask(
            JUDGE.format(question=asked.text, expected=asked.answer, answer=line["answer"]), model=judge
        )
        meter.take()
        said = _VERDICT.findall(verdict.upper())
        if not said:
            raise ModelFault(f"the judge said neither RIGHT nor WRONG: {verdict[:80]}")
        line |= {
            "right": said[-1] == "RIGHT",
            "notes_tokens": counter.count(notes),
            # Where the model does not say what it read, it is counted here.
            "tokens_read": searched.tokens_in + (read.tokens_in or counter.count(prompt)),
            "search_calls": searched.calls,
        }
    except Exception as exc:  # noqa: BLE001  whatever another system raises is a line of the results
        meter.take()
        line["error"] = _said(exc)
    return line


def _said(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}"[:300]


def figures(results: Results, systems: Sequence[str], questions: dict[str, list[Asked]]) -> dict[str, dict[str, Any]]:
    """Return the figures of each system; shares in points of all questions, so a failure is not right."""
    every = [asked for each in questions.values() for asked in each]
    found: dict[str, dict[str, Any]] = {}
    for name in systems:
        lines = [results.answered.get((name, asked.id), {"error": "not asked"}) for asked in every]
        good = [line for line in lines if "error" not in line]
        stored = [results.stored[name, each] for each in questions if (name, each) in results.stored]
        kinds = sorted({asked.category for asked in every})
        read = [line["tokens_read"] for line in good]
        found[name] = {
            "questions": len(every),
            "right": _points(line.get("right", False) for line in lines),
            "failed": len(lines) - len(good),
            "tokens_read": {"mean": sum(read) / max(1, len(read)), "p95": percentile(read, 0.95)},
            "notes_tokens": sum(line["notes_tokens"] for line in good) / max(1, len(good)),
            "search_seconds": sum(line["search_seconds"] for line in good) / max(1, len(good)),
            "storing": {
                key: sum(line[key] for line in stored)
                for key in ("turns", "calls", "tokens_in", "tokens_out", "seconds")
            },
            "categories": {
                kind: _points(
                    line.get("right", False) for asked, line in zip(every, lines, strict=True) if asked.category == kind
                )
                for kind in kinds
            },
        }
    return found


def _points(right: Iterable[bool]) -> float:
    kept = list(right)
    return 100 * sum(kept) / max(1, len(kept))


def report(found: dict[str, dict[str, Any]]) -> str:
    """Return the tables: one row for each system; then right answers by category."""
    head = ["system", "n", "right, %", "failed", "tokens read, mean", "p95", "of them notes", "search, s"]
    head += ["storing: calls", "tokens read", "tokens written", "s"]
    rows: list[list[object]] = []
    for name, each in found.items():
        storing = each["storing"]
        rows.append(
            [
                name,
                each["questions"],
                each["right"],
                each["failed"],
                each["tokens_read"]["mean"],
                each["tokens_read"]["p95"],
                each["notes_tokens"],
                f"{each['search_seconds']:.3f}",
                *(storing[key] for key in ("calls", "tokens_in", "tokens_out")),
                float(storing["seconds"]),
            ]
        )
    kinds = list(next(iter(found.values()))["categories"]) if found else []
    by_kind = [[name, *(each["categories"][kind] for kind in kinds)] for name, each in found.items()]
    return f"{table(head, rows)}\n\n{table(['right, %', *kinds], by_kind)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; return the exit status."""
    options = _options(arguments)
    systems = options.systems.split(",")
    if lacking := [SYSTEMS[name].install for name in systems if not all(map(find_spec, SYSTEMS[name].modules))]:
        print(f"not installed: pip install {' '.join(lacking)}", file=sys.stderr)
        return 2
    try:
        data = [published.READERS[options.dataset](path, limit=options.limit) for path in options.data]
    except (OSError, ValueError) as fault:
        print(fault, file=sys.stderr)
        return 2
    embedder, counter = chosen(options.embedder, options.cache), choose_counter(options.counter)
    if embedder is None:
        print("an embedder is needed: other systems search by vectors alone", file=sys.stderr)
        return 2
    questions = questions_of(data, count=options.questions, seed=options.seed)
    judge = options.judge or options.model
    run = {
        "dataset": options.dataset,
        "sets": [each.name for each in data],
        "model": options.model,
        "judge": judge,
        "embedder": options.embedder,
        "counter": counter.name,
        "seed": options.seed,
        "questions": sum(map(len, questions.values())),
        "budget": options.budget,
        "portion": options.portion,
        "prompts": [ANSWER, JUDGE],
    }
    results = Results(options.results)
    meter = Meter(
        options.url, options.model, key=os.environ.get("OPENAI_API_KEY", ""), embedder=embedder, seed=options.seed
    )
    try:
        results.begin(run)
    except (OSError, ValueError, KeyError) as fault:
        print(fault, file=sys.stderr)
        return 2
    with meter.served():
        compare(
            data,
            questions,
            systems,
            results,
            meter=meter,
            counter=counter,
            judge=judge,
            budget=options.budget,
            portion=options.portion,
        )
    found = figures(results, systems, questions)
    versions = {name: _version(name) for name in systems}
    if options.json:
        print(json.dumps({"run": run, "versions": versions, "systems": found}, indent=2, ensure_ascii=False))
    else:
        print(report(found))
        print(f"\nModel {options.model}, judge {judge}, seed {options.seed}; embedder {options.embedder} for all.")
        print("Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items() if number) + ".")
    return int(any(each["failed"] for each in found.values()))


def _version(name: str) -> str:
    if name == "keepward":
        return __version__
    package = SYSTEMS[name].install.split()[0].strip("'").partition("[")[0] if SYSTEMS[name].install else ""
    try:
        return version(package) if package else ""
    except PackageNotFoundError:
        return ""


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m evals.compare_systems", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--dataset", choices=tuple(published.READERS), required=True)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="files or folders of the data set")
    parser.add_argument("--url", required=True, help="an OpenAI-compatible server, such as http://127.0.0.1:11434/v1")
    parser.add_argument("--model", required=True, help="the model that answers, and that the systems use")
    parser.add_argument("--judge", help="the model that judges [default: the same]")
    parser.add_argument("--results", type=Path, required=True, help="the file of results; a run goes on from it")
    parser.add_argument("--systems", default="keepward,full,none", help=f"of {', '.join(SYSTEMS)}, with commas between")
    parser.add_argument("--limit", type=int, help="take the first conversations of each set alone")
    parser.add_argument("--questions", type=int, help="draw so many questions of all")
    parser.add_argument("--seed", type=int, default=1, help="draws the questions; the model gets it, too")
    parser.add_argument(
        "--budget", type=int, help="the most tokens of notes, for all systems but full [default: their own]"
    )
    parser.add_argument("--portion", type=int, default=10, help="turns that are told at a time")
    parser.add_argument("--embedder", default="minilm", help="gives the vectors of all systems: minilm or hashed")
    parser.add_argument("--counter", default="estimate", help="what counts tokens where the model does not")
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in between runs")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    options = parser.parse_args(arguments)
    if unknown := set(options.systems.split(",")) - set(SYSTEMS):
        parser.error(f"no such system: {', '.join(sorted(unknown))}; there are {', '.join(SYSTEMS)}")
    if options.portion < 1:
        parser.error("--portion is at least 1")
    return options


def _show(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
