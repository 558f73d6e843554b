"""Evaluate forgetting on the cases of ForgetEval: what was replaced, released or purged must not come back.

    python -m evals.forgeteval --data external_subset_cases_v07.json [--embedder minilm] [--json]

A case has ``setup_facts``, ``mutations``, a ``final_query``, and texts that the first five hits must have and must not
have. Keepward does a mutation as a program would: ``supersede`` remembers the new text and supersedes the first hit of
the old query, ``release`` is ``forget_matching``, ``purge`` erases what ``plan_forget_matching`` lists. No person and
no model chooses anything.

A case passes *asked* if the hits of the final query are right. It passes *probed* if, further, none of the forbidden
texts is found when it is itself the query; this is the authors' repaired score. Nothing is approved, so a fact that a
gate holds back is missing.

Format: "Agent Memory Can Only Forget What Its Deletion Path Can See", the supplement ``forgeteval-anon-supp``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evals.recall_report import table
from evals.recall_run import POLICY, opened
from evals.recall_vectors import chosen
from evals.stores import files
from keepward import Memory, __version__
from keepward.embedding.tokens import choose_counter

#: Hits that count.
HITS = 5
#: Mutations, and how many texts each has.
MUTATIONS = {"supersede": 2, "release": 1, "purge": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case."""

    id: str
    category: str
    facts: tuple[str, ...]
    #: Name of the mutation, and its texts.
    mutations: tuple[tuple[str, ...], ...]
    query: str
    wanted: tuple[str, ...]
    forbidden: tuple[str, ...]


def read(file: Path) -> list[Case]:
    """Read cases: a JSON list of them, or an object that has them under ``admitted_cases``.

    Raises:
        ValueError: the file is not of this format.
    """
    try:
        value = json.loads(file.read_text("utf-8"))
        cases = [_case(each) for each in (value["admitted_cases"] if isinstance(value, dict) else value)]
    except (KeyError, TypeError, ValueError) as fault:
        raise ValueError(f"{file.name} is not in the ForgetEval format: {fault}") from fault
    if not cases:
        raise ValueError(f"{file.name} is not in the ForgetEval format: it has no cases")
    return cases


def _case(value: dict[str, Any]) -> Case:
    mutations = tuple(tuple(each) for each in value["mutations"])
    for name, *texts in mutations:
        if MUTATIONS.get(name) != len(texts):
            raise ValueError(f"{value['id']} has a mutation {name} with {len(texts)} texts")
    return Case(
        id=value["id"],
        category=str(value.get("category") or value.get("family") or "all"),
        facts=tuple(value["setup_facts"]),
        mutations=mutations,
        query=value["final_query"],
        wanted=tuple(value["must_contain"]),
        forbidden=tuple(value["must_not_contain"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of one case."""

    case: Case
    #: Everything that was wanted is in the hits of the final query.
    has_wanted: bool
    #: Something forbidden is in the hits of the final query.
    has_forbidden: bool
    #: Something forbidden is in the hits of that text.
    reachable: bool
    #: Outcomes of the writes of facts, by name.
    outcomes: Counter[str]

    @property
    def asked(self) -> bool:
        """Whether the hits of the final query are right."""
        return self.has_wanted and not self.has_forbidden

    @property
    def probed(self) -> bool:
        """Whether, further, nothing forbidden can be found."""
        return self.asked and not self.reachable


def run(cases: Sequence[Case], *, embedder: str = "minilm", cache: Path | None = None) -> Iterator[Verdict]:
    """Try each case in a tenant of its own."""
    with TemporaryDirectory() as name, files(Path(name)) as target:
        model, counter = chosen(embedder, cache), choose_counter("estimate")
        with opened(target, model, counter, POLICY, None) as memory:
            for number, case in enumerate(cases):
                yield _tried(memory.at(tenant=f"case-{number}"), case)


def _tried(memory: Memory, case: Case) -> Verdict:
    outcomes = Counter(memory.remember(text).outcome for text in case.facts)
    for name, *texts in case.mutations:
        _mutate(memory, name, texts)
    found = _hits(memory, case.query)
    probes = [_hits(memory, text) for text in case.forbidden]
    return Verdict(
        case=case,
        has_wanted=all(text.casefold() in found for text in case.wanted),
        has_forbidden=any(text.casefold() in found for text in case.forbidden),
        reachable=any(text.casefold() in hits for text in case.forbidden for hits in probes),
        outcomes=outcomes,
    )


def _mutate(memory: Memory, name: str, texts: Sequence[str]) -> None:
    if name == "supersede":
        hits = memory.recall(texts[0], limit=2)
        new = memory.remember(texts[1]).id
        # The new text may be a fact that is there already, and the first hit.
        old = next((hit.memory.id for hit in hits if hit.memory.id != new), None)
        if old is not None and new is not None:
            memory.supersede(old, by=new)
        return
    plan = memory.plan_forget_matching(texts[0])
    ids = [match.id for match in plan.matches]
    if not ids:
        return
    if name == "release":
        memory.forget_matching(texts[0], digest=plan.digest)
    else:
        memory.erase(memory.plan_erase(ids).digest, ids)


def _hits(memory: Memory, text: str) -> str:
    return "\n".join(hit.memory.text for hit in memory.recall(text, limit=HITS)).casefold()


def report(verdicts: Sequence[Verdict]) -> str:
    """Return a row for each category and one for all: shares in points, worst first."""
    rows = [[name, *figures.values()] for name, figures in summary(verdicts).items()]
    rows.sort(key=lambda row: (row[0] == "all cases", row[3], row[0]))
    return table(["category", "n", "asked", "probed", "has what is wanted", "lacks what is forbidden"], rows)


def summary(verdicts: Sequence[Verdict]) -> dict[str, dict[str, float]]:
    """Return the figures of each category and of all cases."""
    kinds = {"all cases": list(verdicts)}
    for verdict in verdicts:
        kinds.setdefault(verdict.case.category, []).append(verdict)
    return {
        name: {
            "n": len(each),
            "asked": 100 * sum(it.asked for it in each) / len(each),
            "probed": 100 * sum(it.probed for it in each) / len(each),
            "wanted": 100 * sum(it.has_wanted for it in each) / len(each),
            "clean": 100 * sum(not (it.has_forbidden or it.reachable) for it in each) / len(each),
        }
        for name, each in kinds.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m evals.forgeteval", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the file of cases")
    parser.add_argument("--embedder", default="minilm", help="a name that keepward knows: minilm, hashed, none")
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in between runs")
    parser.add_argument("--limit", type=int, help="take the first cases alone")
    parser.add_argument("--json", action="store_true", help="print the figures and each case as one JSON object")
    options = parser.parse_args(arguments)
    try:
        cases = read(options.data)[: options.limit]
    except (OSError, ValueError) as fault:
        print(fault, file=sys.stderr)
        return 1
    verdicts = list(run(cases, embedder=options.embedder, cache=options.cache))
    outcomes = sum((each.outcomes for each in verdicts), Counter())
    if options.json:
        passed = {each.case.id: {"asked": each.asked, "probed": each.probed} for each in verdicts}
        head = {"version": __version__, "embedder": options.embedder, "outcomes": dict(sorted(outcomes.items()))}
        print(json.dumps(head | {"categories": summary(verdicts), "cases": passed}, indent=2, ensure_ascii=False))
        return 0
    print(report(verdicts))
    stored = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    print(f"\nKeepward {__version__}, embedder {options.embedder}; facts: {stored}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
