"""Forgetting by words: which least score and least share of the best score find what was meant.

    python -m evals.forgetting

Prints for each embedder and each pair of thresholds: of the memories that were meant, the share that is listed
(found); of those listed, the share that was meant (right); and of the requests that mean nothing in the store, the
share that lists nothing (empty). The pair in use is marked.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

from keepward import Memory
from keepward.embedding import choose_embedder
from keepward.services.undoing.forget import MIN_SCORE, MIN_SCORE_SHARE

_SET = Path(__file__).parent / "sets" / "forgetting.txt"
_SCORES = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3)
_SHARES = (0.0, 0.5, 0.6, 0.8)


def main() -> None:
    lines = [line for line in _SET.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    facts = dict(line.split(" ", 1) for line in lines if "|" not in line)
    wanted = {ask.strip(): set(names.split()) for ask, names in (line.split("|") for line in lines if "|" in line)}
    for name in ("minilm", "hashed", "none"):
        print(f"\n{name}\n  score  share  found  right  empty")
        with Memory.open(":memory:", embedder=choose_embedder(name)) as memory:
            names = {memory.remember(text).id: fact for fact, text in facts.items()}
            strong = {
                ask: [(names[hit.memory.id], hit.score) for hit in memory.recall(ask, limit=50) if not hit.weak]
                for ask in wanted
            }
        for score, share in product(_SCORES, _SHARES):
            listed = {
                ask: {fact for fact, each in hits if each >= max(score, share * hits[0][1])}
                for ask, hits in strong.items()
            }
            right = sum(len(listed[ask] & meant) for ask, meant in wanted.items())
            found = right / sum(map(len, wanted.values()))
            precise = right / max(1, sum(map(len, listed.values())))
            nothing = [not listed[ask] for ask, meant in wanted.items() if not meant]
            mark = " *" if (score, share) == (MIN_SCORE, MIN_SCORE_SHARE) else ""
            empty = sum(nothing) / len(nothing)
            print(f"  {score:5.2f}  {share:5.1f}  {found:5.0%}  {precise:5.0%}  {empty:5.0%}{mark}")


if __name__ == "__main__":
    main()
