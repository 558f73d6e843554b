"""Evaluate recall and contexts through the front door: tables in Markdown, a run file, a check of determinism.

    python -m evals.recall --dataset locomo --data FILE... --out run.jsonl [--repeat run2.jsonl]
    python -m evals.recall --dataset beam | realtalk | factconsolidation --data PATH...
    python -m evals.recall --dataset own | assistant | unread | fresh | blind | sealed | all

Invariants
(1) The exit status is 3 when two runs differ, 2 when the arguments make no sense, 1 when the run failed, else 0.
(2) Nothing is kept but the files that are named.
(3) Of the sets that nobody tunes on nothing but totals is printed or kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from evals import published, recall_baselines, recall_report, recall_sets
from evals.recall_run import BUDGETS, LONGEST, POLICY, Answer, Run, differences, run
from evals.recall_sets import CATEGORIES, DataSet
from evals.recall_vectors import chosen
from evals.stores import STORE, Targets, targets
from keepward import __version__
from keepward.embedding.tokens import choose_counter
from keepward.ports.models import Embedder, TokenCounter

#: Sets that nobody tunes on.
UNTUNED = (recall_sets.UNREAD, recall_sets.FRESH, recall_sets.BLIND, recall_sets.SEALED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; return the exit status."""
    options = _options(arguments)
    with targets(options.store) as stores, targets(options.repeat_store or options.store) as others:
        return _evaluated(options, stores, others if options.repeat_store else stores)


def _evaluated(options: argparse.Namespace, stores: Targets, others: Targets) -> int:
    embedder, counter = chosen(options.embedder, options.cache), choose_counter(options.counter)
    policy = replace(POLICY, candidates=options.candidates)
    try:
        sets = _sets(options)
    except ValueError as fault:
        print(fault, file=sys.stderr)
        return 1
    finished: list[tuple[DataSet, Run, dict[str, list[Answer]]]] = []
    measured: list[dict[str, object]] = []
    say = _silent if options.json else _print
    for data in sets:
        done = run(
            data,
            embedder=embedder,
            counter=counter,
            parts=not (options.no_parts or options.json),
            aged=options.aged,
            policy=policy,
            stores=stores,
            progress=_show,
        )
        measured.append(recall_report.figures(data, done))
        baselines = {} if options.json else _baselines(data, embedder, counter)
        if options.dataset in UNTUNED:
            say(f"* {recall_report.remarks(data, done)[0]}")
            say(recall_report.by_category(data, done))
            say(recall_report.tokens(data, done))
            say(recall_report.against_parts([(data, done, baselines)]))
            continue
        finished.append((data, done, baselines))
        say(*(f"* {note}" for note in recall_report.remarks(data, done)))
        if data.published or data.name == recall_sets.ASSISTANT:
            say(recall_report.overall(data, done, baselines))
            say(recall_report.by_category(data, done))
            say(recall_report.latencies(done))
        say(recall_report.tokens(data, done))
    if any(not data.published for data, _, _ in finished):
        say(recall_report.own_sets([each for each in finished if not each[0].published]))
    if finished and not options.no_parts:
        say(recall_report.against_parts(finished))
    say(
        f"Embedder {options.embedder}{', vectors from a cache' if options.cache else ''}; tokens by {counter.name}; "
        f"policy: retrieved_budget {POLICY.retrieved_budget}, texts up to {LONGEST}"
        f"{'; each memory told on its own day' if options.aged else ''}."
    )
    if options.json:
        run_by = {"version": __version__, "embedder": options.embedder, "counter": counter.name, "aged": options.aged}
        print(json.dumps(run_by | {"sets": measured}, indent=2, ensure_ascii=False))
    lines = [answer.line() for _, done, _ in finished for answer in done.answers]
    if options.out:
        options.out.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    if not options.repeat:
        return 0
    second = (
        run(
            data,
            embedder=embedder,
            counter=counter,
            aged=options.aged,
            policy=policy,
            stores=others,
            progress=_show,
        )
        for data in sets
    )
    again = [answer.line() for done in second for answer in done.answers]
    options.repeat.write_text("".join(f"{line}\n" for line in again), "utf-8")
    differing = differences(lines, again)
    say(f"determinism: {len(differing)} of {len(lines)} questions differ between two fresh runs")
    for name in differing[:10]:
        print(f"* {name}", file=sys.stderr if options.json else sys.stdout)
    return 3 if differing else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.recall", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dataset", choices=(*published.READERS, "own", "assistant", *UNTUNED, "all"), default="all")
    parser.add_argument(
        "--data", type=Path, nargs="+", default=[], help="files or folders of the data set, as published, each a set"
    )
    parser.add_argument("--out", type=Path, help="write the answers, one JSON object a line")
    parser.add_argument("--repeat", type=Path, help="run again from nothing, write that too, count differences")
    parser.add_argument("--store", help=f"{STORE} [default: file, or postgresql with --candidates database]")
    parser.add_argument("--repeat-store", help="where --repeat runs; else where the first run did")
    parser.add_argument("--embedder", default="minilm", help="a name that keepward knows, such as minilm, hashed, none")
    parser.add_argument("--counter", default="estimate", help="what counts tokens")
    parser.add_argument("--limit", type=int, help="take the first conversations of the file alone")
    parser.add_argument("--categories", default=",".join(CATEGORIES), help="of LoCoMo, with commas between")
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in between runs")
    parser.add_argument("--aged", action="store_true", help="tell each memory on its own day, ask after the last")
    parser.add_argument("--candidates", choices=("process", "database"), default="process", help="where they come from")
    parser.add_argument("--json", action="store_true", help="print the figures alone, as one JSON object")
    parser.add_argument("--no-parts", action="store_true", help="leave out recall by words and by vectors alone")
    options = parser.parse_args(arguments)
    options.store = options.store or ("postgresql" if options.candidates == "database" else "file")
    if options.dataset in published.READERS and not options.data:
        parser.error(f"--data names the files or folders of {options.dataset}")
    if options.dataset in UNTUNED and (options.out or options.repeat):
        parser.error(f"of the set {options.dataset} nothing is kept: leave out --out and --repeat")
    for file in options.data:
        if not file.exists():
            parser.error(f"there is no file or folder {file}")
    for file in filter(None, (options.out, options.repeat)):
        if not file.absolute().parent.is_dir():
            parser.error(f"there is no folder to write {file} to")
    if unknown := set(options.categories.split(",")) - set(CATEGORIES):
        parser.error(f"no such category: {', '.join(sorted(unknown))}")
    return options


def _sets(options: argparse.Namespace) -> list[DataSet]:
    if options.dataset in UNTUNED:
        data = recall_sets.assistant(options.dataset)
        if data.name == recall_sets.UNREAD:
            return [data]
        # A few people leave little to tell apart in a store of each; what they all say in one store is harder.
        return [data, recall_sets.together([data], name=f"{data.name}-together")]
    found: list[DataSet] = []
    if options.dataset in published.READERS and options.dataset != "locomo":
        return [published.READERS[options.dataset](path, limit=options.limit) for path in options.data]
    if options.dataset in ("locomo", "all"):
        categories = options.categories.split(",")
        found += [
            recall_sets.locomo(file, limit=options.limit, categories=categories, name=file.stem)
            for file in options.data
        ]
    if options.dataset in ("assistant", "all"):
        found.append(recall_sets.assistant())
    return [*found, *recall_sets.own()] if options.dataset in ("own", "all") else found


def _baselines(data: DataSet, embedder: Embedder | None, counter: TokenCounter) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for conversation in data.conversations:
        for name, answer in recall_baselines.answers(conversation, embedder=embedder, counter=counter, budgets=BUDGETS):
            found.setdefault(name, []).append(answer)
    return found


def _print(*parts: str) -> None:
    print("\n".join(parts), end="\n\n", flush=True)


def _silent(*_: str) -> None:
    """Print nothing: the figures follow as JSON."""


def _show(conversation: str, done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total:
        print(f"\r{conversation}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
