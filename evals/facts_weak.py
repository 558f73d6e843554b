"""Thresholds of a weak hit: what each would keep in a context, over facts and over turns of talks.

A hit is weak where its best cosine is below the threshold and it shares no rare word with the query. A word is rare
where at most 1 % of the visible memories hold it, or at most three. Words are found here, by a plain stemmer, and
the cosine is that of the hit, so that the curve depends on no implementation of the rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory

import Stemmer

from evals import recall_sets, sets_facts
from evals.recall_report import table
from evals.recall_run import POLICY, Run, opened, tell
from evals.recall_sets import DataSet
from evals.sets_facts import NOTHING, Question
from evals.stores import files
from keepward import Memory
from keepward.embedding.tokens import choose_counter
from keepward.ports.models import Embedder

THRESHOLDS = [*(place / 50 for place in range(5, 26)), 0.6, 0.7, 0.9]
#: Shares of the best cosine that a hit must reach besides.
SHARES = (0.0, 0.6, 0.7, 0.8)
#: What a context of the default policy may hold of recalled memories.
MAX_LINES, MAX_TOKENS = 30, 2_000
RARE_SHARE, RARE_COUNT = 0.01, 3

_WORD = re.compile(r"[^\W_]+")
_COMMON = """a about after all also am an and any are as at be been before being but by can could did do does doing done
    for from had has have he her here hers him his how i if in into is it its just let ll me might more most must my no
    not of on one or our out over own s said say shall she should so some such t than that the their them then there
    these they this to too up us ve very was we were what when where which while who whom whose why will with would you
    your"""
_STOPPED = frozenset(_COMMON.split())
_stem = Stemmer.Stemmer("english").stemWord


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One hit."""

    id: str
    cosine: float
    rare: bool
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The hits of one question, best first."""

    #: ``asked``, or the group of questions that nothing answers.
    group: str
    bearing: frozenset[str]
    hits: tuple[Seen, ...]

    def lines(self, threshold: float, share: float = 0.0) -> list[str]:
        """Return the ids of what a context would hold; ``share`` is the least part of the best cosine."""
        found: list[str] = []
        room = MAX_TOKENS
        least = max(threshold, share * max((hit.cosine for hit in self.hits), default=0.0))
        for hit in self.hits:
            if (hit.rare or hit.cosine >= least) and hit.tokens <= room and len(found) < MAX_LINES:
                found.append(hit.id)
                room -= hit.tokens
        return found


def words(text: str) -> frozenset[str]:
    """Return the stems of a text, without the commonest words."""
    found = (word for word in _WORD.findall(text.casefold()) if word not in _STOPPED)
    return frozenset(_stem(word) for word in found if len(word) > 1 or word.isdigit())


def looks(mem: Memory, names: Mapping[str, str], groups: Mapping[str, Sequence[Question]]) -> list[Look]:
    """Ask all questions of a store; return what was found, with names by memory id."""
    counter = choose_counter("estimate")
    held = {record.id: words(record.text) for record in mem.list_memories(limit=None)}
    counts = Counter(word for each in held.values() for word in each)
    most = max(RARE_COUNT, RARE_SHARE * len(held))
    found = []
    for group, questions in groups.items():
        for each in questions:
            rare = {word for word in words(each.text) if counts[word] <= most}
            hits = [
                Seen(
                    id=names.get(hit.memory.id, hit.memory.id),
                    cosine=hit.parts.get("cosine", 0.0),
                    rare=bool(rare & held[hit.memory.id]),
                    tokens=counter.count(hit.memory.text),
                )
                for hit in mem.recall(each.text, limit=50)
            ]
            found.append(Look(group=group, bearing=each.bearing, hits=tuple(hits)))
    return found


def curves(looked: Sequence[Look]) -> str:
    """Return a table for each share of the best cosine that a hit must reach besides the threshold."""
    titles = ["No share of the best cosine:", *(f"At least {share:.0%} of the best cosine:" for share in SHARES[1:])]
    return "\n\n".join(f"{title}\n\n{_curve(looked, share)}" for title, share in zip(titles, SHARES, strict=True))


def _curve(looked: Sequence[Look], share: float) -> str:
    groups = [group for group in dict.fromkeys(look.group for look in looked) if group != "asked"]
    rows: list[list[object]] = []
    for threshold in THRESHOLDS:
        row: list[object] = [f"{threshold:.2f}"]
        for group in groups:
            counts = [len(look.lines(threshold, share)) for look in looked if look.group == group]
            row += [median(counts), mean(counts)]
        row.append(median(len(look.lines(threshold, share)) for look in looked if look.group != "asked"))
        answered = [(look.bearing, look.lines(threshold, share)) for look in looked if look.group == "asked"]
        kept = [any(name in bearing for name in lines) for bearing, lines in answered]
        evidence = [len(bearing & {*lines}) / len(bearing) for bearing, lines in answered]
        shares = [100 * sum(name in bearing for name in lines) / max(len(lines), 1) for bearing, lines in answered]
        row += [100 * mean(kept), 100 * mean(evidence), median(shares), mean(shares)]
        rows.append([*row, median(len(each) for _, each in answered)])
    head = ["threshold"]
    for group in groups:
        size = sum(look.group == group for look in looked)
        head += [f"lines for {group} ({size}), median", "mean"]
    head.append("both, median")
    return table(
        [*head, "answers kept, %", "evidence kept, %", "lines that bear, %, median", "mean", "lines, median"], rows
    )


def talks(embedder: Embedder | None, locomo: Path | None) -> Iterator[tuple[str, list[Look]]]:
    """Yield the looks at each set of talks: those of a file, fresh chats with an assistant, and long ones."""
    sets = [recall_sets.assistant(recall_sets.FRESH), recall_sets.assistant()]
    if locomo is not None:
        sets.insert(0, recall_sets.locomo(locomo, name=locomo.stem))
    for data in sets:
        yield data.name, list(_talked(data, embedder))


def _talked(data: DataSet, embedder: Embedder | None) -> Iterator[Look]:
    with (
        TemporaryDirectory() as name,
        files(Path(name)) as target,
        opened(target, embedder, choose_counter("estimate"), POLICY, None) as mem,
    ):
        for conversation in data.conversations:
            here = mem.at(tenant=conversation.name)
            tell(here, conversation, None, None, Run())
            names = {record.id: record.aliases[0] for record in here.list_memories(limit=None) if record.aliases}
            answerable = [each for each in conversation.asked if each.evidence and each.category != "5"]
            never = [each for each in conversation.asked if each not in answerable]
            groups = {
                "general": sets_facts.nothing(NOTHING[0]),
                "never said": [Question(text=each.text) for each in never],
                "asked": [Question(text=each.text, bearing=each.evidence) for each in answerable],
            }
            yield from looks(here, names, groups)
