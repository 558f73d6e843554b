"""Tables of a recall evaluation, in Markdown.

Invariants
(1) Scores are shown in points, 0..100, latencies in milliseconds.
(2) A total counts every scored question once and leaves out the categories that stand apart.
(3) Sets are listed worst first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evals.recall_run import Answer, Run
from evals.recall_score import Fault, below_parts, means, percentile, scores
from evals.recall_sets import APART, CATEGORIES, Asked, DataSet

#: Points by which a part may be better than the whole.
ALLOWED = 1.0
#: Scores by which the parts are compared with the whole.
JUDGED = ("recall@10", "ndcg@10")
_RANKING = ("recall@5", "recall@10", "recall@20", "recall@50", "full@10", "full@50", "ndcg@10", "mrr")

Scored = list[tuple[Asked, dict[str, float]]]


def scored(data: DataSet, answers: Iterable[Answer]) -> Scored:
    """Return question and scores for each answered question with evidence."""
    by_id = {asked.id: asked for each in data.conversations for asked in each.asked}
    return [
        (by_id[answer.question], scores(answer.ranked, {b: it.ids for b, it in answer.contexts.items()}, evidence))
        for answer in answers
        if (evidence := by_id[answer.question].evidence)
    ]


def total(rows: Scored) -> dict[str, float]:
    """Return the means of all questions that count."""
    return means(row for asked, row in rows if asked.category not in APART)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; numbers of points and milliseconds have one decimal."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *([_cell(each) for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _points(row: Mapping[str, float], names: Iterable[str]) -> list[object]:
    return [100 * row[name] if name in row else "" for name in names]


def overall(data: DataSet, done: Run, baselines: Mapping[str, Sequence[Answer]]) -> str:
    """Return one row for Keepward and one for each baseline: ranking, contexts, latency, use of budgets."""
    budgets = sorted(done.answers[0].contexts) if done.answers else []
    counted = {asked.id for each in data.conversations for asked in each.asked if asked.category not in APART}
    names = [*_RANKING, *(f"context@{budget}" for budget in budgets)]
    rows: list[list[object]] = []
    for name, answers in [("**Keepward**", done.answers), *baselines.items()]:
        kept = [answer for answer in answers if answer.question in counted]
        used = [
            100 * sum(it.contexts[budget].tokens for it in kept) / (budget * max(1, len(kept))) for budget in budgets
        ]
        rows.append([name, *_points(total(scored(data, answers)), names), " / ".join(f"{each:.0f}" for each in used)])
    return table([data.name, *names, "budget used, %"], rows)


def by_category(data: DataSet, done: Run) -> str:
    """Return one row a category and one for the total of those that count."""
    rows = scored(data, done.answers)
    names = list(rows[0][1]) if rows else []
    lines: list[list[object]] = []
    for category in sorted({asked.category for asked, _ in rows}):
        chosen = [row for asked, row in rows if asked.category == category]
        label = f"{category} {CATEGORIES.get(category, '')}".strip() + (" (apart)" if category in APART else "")
        lines.append([label, len(chosen), *_points(means(chosen), names)])
    lines.append(["total", sum(asked.category not in APART for asked, _ in rows), *_points(total(rows), names)])
    return table([data.name, "n", *names], lines)


def latencies(done: Run) -> str:
    """Return medians and 95th percentiles in milliseconds, embedding of the question included."""
    ways = {"recall": [answer.latency_ms for answer in done.answers]}
    for budget in sorted(done.answers[0].context_ms) if done.answers else []:
        ways[f"context of {budget}"] = [answer.context_ms[budget] for answer in done.answers]
    rows = [[name, percentile(values, 0.5), percentile(values, 0.95)] for name, values in ways.items()]
    return table(["latency, ms", "p50", "p95"], rows)


def tokens(data: DataSet, done: Run) -> str:
    """Return what a turn costs: tokens of contexts, and the evidence in them, without a budget and with each.

    The last row is small talk, which nothing that was told bears on.
    """
    figures = token_figures(data, done)
    rows = [[name, each["n"], each["mean"], each["p95"], each.get("evidence", "")] for name, each in figures.items()]
    return table([f"{data.name}, tokens a turn", "n", "mean", "p95", "evidence, %"], rows)


def token_figures(data: DataSet, done: Run) -> dict[str, dict[str, float]]:
    """Return, by what was asked for, how many contexts (``n``), tokens (``mean``, ``p95``) and points of evidence."""
    counted = {asked.id: asked for each in data.conversations for asked in each.asked if asked.category not in APART}
    kept = [answer for answer in done.answers if answer.question in counted]
    ways = {"no budget": [(counted[it.question].evidence, it.plain) for it in kept if it.plain is not None]}
    for budget in sorted(done.answers[0].contexts) if done.answers else []:
        ways[f"budget {budget}"] = [(counted[it.question].evidence, it.contexts[budget]) for it in kept]
    found: dict[str, dict[str, float]] = {}
    for name, packs in ways.items():
        found[name] = _spread([pack.tokens for _, pack in packs])
        shares = [len(wanted.intersection(pack.ids)) / len(wanted) for wanted, pack in packs if wanted]
        if shares:
            found[name]["evidence"] = 100 * sum(shares) / len(shares)
    return found | {"small talk, no budget": _spread(done.quiet)}


def _spread(counts: Sequence[int]) -> dict[str, float]:
    return {"n": len(counts), "mean": sum(counts) / max(1, len(counts)), "p95": percentile(counts, 0.95)}


def figures(data: DataSet, done: Run) -> dict[str, object]:
    """Return the figures of a set for programs: scores in points, tokens a turn, latencies in milliseconds."""
    rows = scored(data, done.answers)
    kinds = sorted({asked.category for asked, _ in rows})
    return {
        "name": data.name,
        "told": sum(len(each.told) for each in data.conversations),
        "outcomes": {name: count for name, count in sorted(done.outcomes.items()) if count},
        "asked": len(done.answers),
        "scored": sum(asked.category not in APART for asked, _ in rows),
        "scores": _rounded(total(rows)),
        "categories": {kind: _rounded(means(row for asked, row in rows if asked.category == kind)) for kind in kinds},
        "tokens": {
            name: {key: round(value, 2) for key, value in each.items()}
            for name, each in token_figures(data, done).items()
        },
        "recall_ms": {
            name: round(percentile((answer.latency_ms for answer in done.answers), share), 2)
            for name, share in (("p50", 0.5), ("p95", 0.95))
        },
    }


def _rounded(row: Mapping[str, float]) -> dict[str, float]:
    return {name: round(100 * value, 2) for name, value in row.items()}


def faults(data: DataSet, done: Run) -> list[Fault]:
    """Return, for each score that is judged, the best part and by how much it is better than the whole."""
    whole = total(scored(data, done.answers))
    parts = {name: total(scored(data, answers)) for name, answers in done.parts.items()}
    return [below_parts(whole, parts, score) for score in JUDGED] if parts and whole else []


def against_parts(sets: Sequence[tuple[DataSet, Run, Mapping[str, Sequence[Answer]]]]) -> str:
    """Return the whole beside its parts and plain rank fusion for each set, the one furthest below a part first."""
    ways = [*dict.fromkeys(name for _, done, _ in sets for name in done.parts), "rank fusion"]
    rows: list[tuple[float, list[object]]] = []
    for data, done, baselines in sets:
        found = faults(data, done)
        if not found:
            continue
        worst = max(found, key=lambda fault: fault.points)
        whole = total(scored(data, done.answers))
        counted = [asked for asked, _ in scored(data, done.answers) if asked.category not in APART]
        cells: list[object] = [data.name, len(counted)]
        for score in JUDGED:
            cells += _points(whole, [score])
            for name in ways:
                cells += _points(total(scored(data, (done.parts | dict(baselines)).get(name, ()))), [score])
        verdict = (
            "holds" if worst.points <= ALLOWED else f"**below {worst.part} by {worst.points:.1f} ({worst.score})**"
        )
        rows.append((-worst.points, [*cells, verdict]))
    head = ["set", "n", *(f"{score} {name}" for score in JUDGED for name in ("whole", *ways)), "at most 1 below a part"]
    rows.sort(key=lambda pair: (pair[0], str(pair[1][0])))
    worst = (
        f"\n\nThe worst gap: {-rows[0][0]:.1f} points, on {rows[0][1][0]}; above 0 a part is better." if rows else ""
    )
    return table(head, [row for _, row in rows]) + worst


def own_sets(sets: Sequence[tuple[DataSet, Run, Mapping[str, Sequence[Answer]]]]) -> str:
    """Return each set with its baselines' recall@10 beside it, worst first."""
    names = ["recall@5", "recall@10", "full@10", "ndcg@10", "mrr"]
    budgets = sorted({budget for _, done, _ in sets for answer in done.answers for budget in answer.contexts})
    names += [f"context@{budget}" for budget in budgets]
    ways = list(dict.fromkeys(name for _, _, baselines in sets for name in baselines if name != "nothing"))
    rows: list[list[object]] = []
    for data, done, baselines in sets:
        whole = total(scored(data, done.answers))
        beside = [total(scored(data, baselines.get(way, ()))) for way in ways]
        cells = [cell for row in beside for cell in _points(row, ["recall@10"])]
        rows.append([data.name, len(done.answers), *_points(whole, names), *cells])
    rows.sort(key=lambda row: (row[3], str(row[0])))
    return table(["set", "n", *names, *(f"recall@10 {way}" for way in ways)], rows)


def remarks(data: DataSet, done: Run) -> list[str]:
    """Return plain sentences on what was told, asked and lost."""
    told = sum(len(each.told) for each in data.conversations)
    asked = [question for each in data.conversations for question in each.asked]
    blank = {question.id for question in asked if not question.evidence}
    silent = sum(answer.question in blank and not answer.ranked for answer in done.answers)
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(done.outcomes.items()) if count)
    lost = {(conversation, name) for conversation, name, _ in done.lost}
    struck = sum(
        any((each.name, name) in lost for name in question.evidence)
        for each in data.conversations
        for question in each.asked
    )
    summary = (
        f"{data.name}: {told} told in {done.ingest_seconds:.1f} s ({outcomes}); {len(asked)} questions, "
        f"{len(blank)} without evidence and not scored, {silent} of them answered by nothing; "
        f"evidence entries repaired {data.repaired}, ids dropped {data.dropped}; "
        f"{struck} questions have evidence that is no live memory."
    )
    notes = [summary]
    notes += [f"not stored: {conversation} {name} ({why})" for conversation, name, why in done.lost]
    if done.excluded:
        codes = ", ".join(f"{code} {count}" for code, count in sorted(done.excluded.items()))
        notes.append(f"kept out of contexts other than for room, memories summed over contexts: {codes}.")
    places = ", ".join(f"{name} {count}" for name, count in sorted(done.placed.items()))
    if places:
        notes.append(f"memories in contexts by section, summed over contexts: {places}.")
    return notes
