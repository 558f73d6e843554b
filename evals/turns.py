"""Evaluate what a model reads in everyday turns: twelve kinds of objectives, in stores of 60 and of 600 memories.

    python -m evals.turns [--half unread] [--sizes 60,600] [--embedders auto,hashed,none,foreign] [--cache DIR]
    python -m evals.turns --half seen --misses --only tasks

Everything is told and asked through ``Memory`` with the default policy. A line counts as recalled where its section is
``recalled``. *Foreign* has the vectors of the model and a constant component, so that cosines lie between 0.7 and 1.
*Plain* is the best five by cosine of all texts of the same store, which is what most memories hand over.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from evals import sets_turns
from evals.recall_report import table
from evals.recall_run import Clock
from evals.recall_vectors import chosen
from keepward import Actor, Memory
from keepward.ports.models import Embedder

BEGIN = datetime(2025, 1, 6, 9, tzinfo=UTC)
BETWEEN = timedelta(hours=7)
LATER = timedelta(days=30)
SIZES = (60, 600)
EMBEDDERS = ("auto", "hashed", "none", "foreign")
#: Ways to store a statement.
WAYS = ("remember", "add", "session", "event")
PLAIN = 5
#: Notes in a flood, and budgets of its contexts.
NOTES, FLOOD_BUDGETS = (10, 30, 100, 300), (None, 1_000)

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2})?|\b\d{2}:\d{2}\b")


class Foreign:
    """Vectors of a model with a constant component: cosines c become (c + 3) / 4."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.id = "foreign:" + inner.id.replace(":", "-")
        self.dim = inner.dim + 1

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 vectors, shape (len(texts), dim), rows L2-normalised."""
        vectors = self._inner.embed(texts)
        constant = np.full((len(texts), 1), 3**0.5, dtype=np.float32)
        return np.asarray(np.hstack((vectors, constant)) / 2, dtype=np.float32)


def embedder_of(name: str, cache: Path | None) -> Embedder | None:
    """Return the embedder of a column."""
    if name != "foreign":
        return chosen("minilm" if name == "auto" else name, cache)
    inner = chosen("minilm", cache)
    assert inner is not None
    return Foreign(inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a context has: recalled ids and tokens, and the text."""

    recalled: tuple[str, ...]
    tokens: int
    text: str

    def has(self, text: str) -> bool:
        """Return whether a line has the text, whatever its spaces."""
        return " ".join(text.split()) in " ".join(self.text.split())

    def place(self, text: str) -> int:
        """Return where the text begins, or -1."""
        return self.text.find(text)

    def date_of(self, text: str) -> str:
        """Return the day and time that the context gives a line: behind its text, else in its heading."""
        lines = self.text.splitlines()
        at = next((n for n, line in enumerate(lines) if text in line), None)
        if at is None:
            return ""
        heading = next((line for line in reversed(lines[:at]) if line.startswith("### ")), "")
        marks = _DAY.findall(lines[at].replace(text, ""))
        if not marks or (":" in marks[-1][-3:] and len(marks[-1]) == 5):
            marks = _DAY.findall(heading) + marks
        return " ".join(marks)


@dataclass(slots=True, kw_only=True)
class Store:
    """A store of one user, with a clock, and the texts that it has."""

    memory: Memory
    clock: Clock
    embedder: Embedder | None
    texts: list[str] = field(default_factory=list)
    _vectors: np.ndarray | None = None
    told: int = 0

    def tell(self, statements: Iterable[str], way: str = "remember", reply: str = "Okay.", **fields: Any) -> None:
        """Tell each statement in one way, 7 hours apart."""
        for text in statements:
            self._tell(text, way, reply, fields)

    def _tell(self, text: str, way: str, reply: str, fields: dict[str, Any]) -> None:
        self.clock.instant += BETWEEN
        self.told += 1
        self.texts.append(text)
        self._vectors = None
        if way in {"remember", "event"}:
            given: dict[str, Any] = {"kind": "event", "stability": "stable", "occurred_at": self.clock.instant}
            self.memory.remember(text, **(given | fields if way == "event" else fields))
            return
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]
        self.texts.append(reply)
        # A session has six messages of the user.
        self.memory.add(messages, session=f"s{self.told // 6}" if way == "session" else None)

    def context(self, objective: str, **options: Any) -> Context:
        """Return the context of an objective, with the defaults of everybody."""
        made = self.memory.context(objective, **options)
        sections = {section.name: section for section in made.sections}
        recalled = sections.get("recalled")
        items = () if recalled is None else tuple(item.id for item in recalled.items)
        return Context(recalled=items, tokens=0 if recalled is None else recalled.tokens, text=made.text)

    def plain(self, objective: str, count: int = PLAIN) -> list[str]:
        """Return the best texts by cosine, best first."""
        if self.embedder is None:
            return []
        if self._vectors is None:
            self._vectors = self.embedder.embed(self.texts)
        scores = self._vectors @ self.embedder.embed([objective])[0]
        return [self.texts[place] for place in np.argsort(-scores, kind="stable")[:count].tolist()]


@contextmanager
def store(embedder: Embedder | None) -> Iterator[Store]:
    """Lend an empty store of one user."""
    clock = Clock(BEGIN)
    with (
        TemporaryDirectory() as name,
        Memory.open(
            ":memory:",
            actor=Actor.operator("robin"),
            embedder=embedder,
            clock=clock,
            config_dir=Path(name),
            maintenance=False,
        ) as memory,
    ):
        yield Store(memory=memory.user("robin"), clock=clock, embedder=embedder)


@dataclass(slots=True, kw_only=True)
class Found:
    """Figures of one column by name, and the objectives that were missed."""

    figures: dict[str, float] = field(default_factory=dict)
    misses: list[str] = field(default_factory=list)


class Turns:
    """The kinds, for one half, one embedder and one size."""

    def __init__(self, half: str, embedder: Embedder | None, size: int) -> None:
        self._half, self._embedder, self._size = half, embedder, size
        self._filler = [line[0] for line in sets_turns.lines(half, "filler")]

    @contextmanager
    def _filled(self, statements: Sequence[str], way: str = "remember", each: int = 1) -> Iterator[Store]:
        """Lend a store with statements between others, in one order; ``each`` memories come of one statement."""
        replies = [line[0] for line in sets_turns.lines(self._half, "replies")]
        others = self._filler[: max(0, self._size - len(statements))]
        step = len(others) / max(1, len(statements))
        with store(self._embedder) as made:
            done = 0
            for place, text in enumerate(statements):
                until = round(step * (place + 1))
                for n in range(done, until):
                    made.tell([others[n]], way, replies[n % len(replies)])
                done = until
                made.tell([text], way, replies[place % len(replies)])
            yield made

    def _asked(self, name: str, way: str = "remember", ask: int = -1, fact: int = 0) -> Found:
        """Tell the statements of a file, ask for each, and count what is in the context."""
        cases = sets_turns.lines(self._half, name)
        found = Found()
        made: list[Context] = []
        hits = plain = double = 0
        first: list[float] = []
        # Chunks keep a store of 60 at 60.
        room = self._size if self._size > len(cases) else 54
        for begin in range(0, len(cases), room):
            chunk = cases[begin : begin + room]
            with self._filled([case[fact] for case in chunk], way) as here:
                for case in chunk:
                    context = here.context(case[ask])
                    made.append(context)
                    inside = context.has(case[fact])
                    hits += inside
                    near = here.plain(case[ask], 2 * PLAIN)
                    plain += case[fact] in near[:PLAIN]
                    double += case[fact] in near
                    if not inside:
                        ranked = [hit.memory.text for hit in here.memory.recall(case[ask], limit=50)]
                        rank = ranked.index(case[fact]) + 1 if case[fact] in ranked else 0
                        first.append(rank)
                        found.misses.append(f"{name}: {case[fact]} | {case[ask]} | rank {rank or 'beyond 50'}")
        count = len(cases)
        found.figures |= {
            "in": 100 * hits / count,
            "plain": 100 * plain / count,
            "plain 10": 100 * double / count,
            "lines": median(len(each.recalled) for each in made),
            "tokens": median(each.tokens for each in made),
            "misses to rank 10": sum(1 for rank in first if 0 < rank <= 10),
            "misses beyond": sum(1 for rank in first if not 0 < rank <= 10),
        }
        return found

    def questions(self) -> Found:
        """Ask ordinary questions that one memory answers."""
        return self._asked("questions")

    def tasks(self) -> Found:
        """Set tasks and name topics."""
        return self._asked("tasks")

    def advice(self) -> Found:
        """Ask for advice that has to respect a limit."""
        return self._asked("advice")

    def languages(self) -> Found:
        """Ask in ten languages."""
        return self._asked("languages", ask=2, fact=1)

    def silence(self) -> Found:
        """Small talk, world knowledge and what was never told, by three ways to store."""
        found = Found()
        statements = [line[0] for line in sets_turns.lines(self._half, "questions")]
        for way in WAYS[:3]:
            with self._filled(statements, way) as here:
                said = [line[0] for line in sets_turns.lines(self._half, "smalltalk")]
                talk = [here.context(text) for text in said]
                found.figures[f"small talk, {way}"] = 100 * sum(not each.recalled for each in talk) / len(talk)
                found.figures[f"small talk, {way}, tokens"] = median(each.tokens for each in talk)
                loud = [text for text, each in zip(said, talk, strict=True) if each.recalled]
                found.misses += [f"small talk by {way}: {text}" for text in loud]
                for name in ("world", "never"):
                    asked = [here.context(line[0]) for line in sets_turns.lines(self._half, name)]
                    found.figures[f"{name}, {way}, lines"] = median(len(each.recalled) for each in asked)
                    found.figures[f"{name}, {way}, tokens"] = median(each.tokens for each in asked)
        return found

    def ways(self) -> Found:
        """Store the same facts in four ways, and ask the same questions."""
        found = Found()
        hits: list[float] = []
        lines: list[float] = []
        for way in WAYS:
            part = self._asked("questions", way)
            hits.append(part.figures["in"])
            lines.append(part.figures["lines"])
            found.figures |= {f"{way} in": hits[-1], f"{way} lines": lines[-1]}
        return Found(figures=found.figures | {"hits": max(hits) - min(hits), "lines": max(lines) - min(lines)})

    def small(self) -> Found:
        """Ask in small stores on one person."""
        found = Found()
        right = asked = 0
        for each in sets_turns.small(self._half):
            with store(self._embedder) as here:
                here.tell(each.statements)
                for objective, bearing in each.objectives:
                    context = here.context(objective)
                    missing = [each.statements[n] for n in bearing if not context.has(each.statements[n])]
                    asked += 1
                    right += not missing
                    if missing:
                        found.misses.append(f"small: {objective} | {len(each.statements)} | {missing}")
        found.figures["all"] = 100 * right / asked
        return found

    def updates(self) -> Found:
        """Tell something, a month later that it changed, and ask."""
        return self._pairs("updates", newer=True)

    def both(self) -> Found:
        """Tell two statements that both hold, and ask for one of them."""
        return self._pairs("both", newer=False)

    def _pairs(self, name: str, *, newer: bool) -> Found:
        cases = sets_turns.lines(self._half, name)
        found = Found()
        counts = dict.fromkeys(("wanted", "outdated alone", "both", "apart", "first", "recall first", "plain alone"), 0)
        # Pairs of a store of 60: 27 of them.
        room = 27 if self._size <= 60 else len(cases)
        lines: list[int] = []
        for begin in range(0, len(cases), room):
            chunk = cases[begin : begin + room]
            others = self._filler[: max(0, self._size - 2 * len(chunk))]
            with store(self._embedder) as here:
                here.tell(others[::2])
                here.tell(case[0] for case in chunk)
                here.tell(others[1::2])
                here.clock.instant += LATER
                here.tell(case[1] for case in chunk)
                for first, second, question in chunk:
                    context = here.context(question)
                    lines.append(len(context.recalled))
                    ranked = [hit.memory.text for hit in here.memory.recall(question, limit=50)]
                    plain = here.plain(question)
                    old, new = context.has(first), context.has(second)
                    wanted = new if newer else old
                    counts["wanted"] += wanted
                    counts["outdated alone"] += old and not new
                    counts["plain alone"] += first in plain and second not in plain
                    counts["both"] += old and new
                    apart = old and new and context.date_of(first) != context.date_of(second)
                    counts["apart"] += apart
                    counts["first"] += old and not (new and context.place(second) < context.place(first))
                    counts["recall first"] += first in ranked and second not in ranked[: ranked.index(first)]
                    if (newer and not new) or (not newer and not (old and new)):
                        places = [ranked.index(text) + 1 if text in ranked else 0 for text in (first, second)]
                        found.misses.append(f"{name}: {first} | {second} | {question} | ranks {places}")
        count = len(cases)
        found.figures = {each: 100 * total / count for each, total in counts.items()}
        found.figures["apart"] = 100 * counts["apart"] / max(1, counts["both"])
        found.figures["lines"] = median(lines)
        return found

    def replies(self) -> Found:
        """Repeat the same reply in thirty sessions; ask about what the user said there."""
        replies = [line[0] for line in sets_turns.lines(self._half, "replies")]
        statements = [line[0] for line in sets_turns.lines(self._half, "questions")]
        questions = [line[1] for line in sets_turns.lines(self._half, "questions")]
        others = [*statements, *self._filler]
        found = Found()
        right = asked = 0
        together = max(1, self._size // 60)
        for begin in range(0, len(replies), together):
            group = replies[begin : begin + together]
            with store(self._embedder) as here:
                for n in range(30):
                    for place, reply in enumerate(group):
                        text = others[(begin + n * len(group) + place) % len(others)]
                        here.clock.instant += BETWEEN
                        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": reply}]
                        here.memory.add(messages, session=f"r{n}-{place}")
                for reply, question in zip(group, [*questions[begin:], *questions], strict=False):
                    for objective in (question, reply):
                        made = here.context(objective)
                        count = sum(
                            line.rstrip().endswith(reply) or f"{reply} (" in line for line in made.text.splitlines()
                        )
                        asked += 1
                        right += count <= 1
                        if count > 1:
                            found.misses.append(f"replies: {reply} | {objective} | {count}")
        found.figures["at most one"] = 100 * right / asked
        return found

    def forgetting(self) -> Found:
        """Tell in sessions with summaries, forget by words, and ask."""
        cases = sets_turns.lines(self._half, "forgetting")
        found = Found()
        gone = dict.fromkeys(("context", "recall", "anywhere"), 0)
        others = self._filler[: max(0, self._size - len(cases))]
        with store(self._embedder) as here:
            here.tell(others)
            for begin in range(0, len(cases), 3):
                here.clock.instant += BETWEEN
                with here.memory.session(f"f{begin}") as talk:
                    for case in cases[begin : begin + 3]:
                        talk.user(case[0])
                        talk.assistant("Good to know.")
            for _, word, _ in cases:
                plan = here.memory.plan_forget_matching(word)
                if plan.matches:
                    here.memory.forget_matching(word, digest=plan.digest)
            for statement, word, question in cases:
                absent = {
                    "context": word not in here.context(question).text,
                    "recall": not any(word in hit.memory.text for hit in here.memory.recall(question, limit=50)),
                    "anywhere": not any(word in record.text for record in here.memory.list_memories(limit=None)),
                }
                for name, value in absent.items():
                    gone[name] += value
                if not all(absent.values()):
                    found.misses.append(f"forgetting: {word} | {statement} | {absent}")
        found.figures = {name: 100 * total / len(cases) for name, total in gone.items()}
        return found

    def floods(self) -> Found:
        """Write notes from the web beside what a person wrote, and ask."""
        found = Found()
        right = asked = 0
        others = self._filler[: self._size - 2]
        for story in sets_turns.floods(self._half):
            with store(self._embedder) as here:
                here.tell(others)
                here.tell([story.fact])
                here.tell([story.rule], kind="rule")
                asks = [
                    (objective, wanted, budget)
                    for objective, wanted in ((story.question, story.fact), (story.task, story.rule))
                    for budget in FLOOD_BUDGETS
                ]
                # What is not in the context without notes is the ranking's fault.
                asks = [each for each in asks if here.context(each[0], budget_tokens=each[2]).has(each[1])]
                done = 0
                for count in NOTES:
                    for n in range(done, count):
                        note = story.notes[n % len(story.notes)]
                        around = n // len(story.notes)
                        text = note if not around else f"{note} ({story.notes[(n + around) % len(story.notes)]})"
                        here.tell([text], source="web")
                    done = count
                    for objective, wanted, budget in asks:
                        inside = here.context(objective, budget_tokens=budget).has(wanted)
                        asked += 1
                        right += inside
                        if not inside:
                            found.misses.append(f"flood of {count}, {budget}: {wanted} | {objective}")
        found.figures |= {"in": 100 * right / max(1, asked), "asked": asked}
        return found


KINDS: dict[str, Callable[[Turns], Found]] = {
    name: getattr(Turns, name)
    for name in (
        "questions",
        "tasks",
        "silence",
        "ways",
        "small",
        "updates",
        "both",
        "replies",
        "forgetting",
        "advice",
        "languages",
        "floods",
    )
}
#: Kinds whose stores have a size of their own.
_OWN_SIZE = {"small"}
#: Rows: kind, figure, what is printed, the goal.
ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("questions", "in", "questions: fact in the context, %", "plain 10, 97 / 87"),
    ("questions", "plain", "questions: plain, %", ""),
    ("questions", "plain 10", "questions: plain with ten lines, %", ""),
    ("questions", "lines", "questions: lines", "4"),
    ("questions", "tokens", "questions: tokens", ""),
    ("tasks", "in", "tasks and topics: fact in the context, %", "plain"),
    ("tasks", "plain", "tasks and topics: plain, %", ""),
    ("tasks", "lines", "tasks and topics: lines", "6"),
    ("tasks", "tokens", "tasks and topics: tokens", ""),
    ("tasks", "misses to rank 10", "tasks and topics: misses at rank 4 to 10", ""),
    ("tasks", "misses beyond", "tasks and topics: misses beyond rank 10", ""),
    ("silence", "small talk, remember", "small talk: no line, remember, %", "95"),
    ("silence", "small talk, add", "small talk: no line, add, %", "95"),
    ("silence", "small talk, session", "small talk: no line, sessions, %", "95"),
    ("silence", "small talk, session, tokens", "small talk: tokens, sessions", ""),
    ("silence", "world, remember, lines", "world knowledge: lines, remember", "3"),
    ("silence", "world, session, lines", "world knowledge: lines, sessions", "3"),
    ("silence", "world, session, tokens", "world knowledge: tokens, sessions", "80"),
    ("silence", "never, remember, lines", "never told: lines, remember", "3"),
    ("silence", "never, session, lines", "never told: lines, sessions", "3"),
    ("silence", "never, session, tokens", "never told: tokens, sessions", "80"),
    ("ways", "hits", "stored four ways: spread of hits, points", "2"),
    ("ways", "lines", "stored four ways: spread of lines", "2"),
    ("ways", "session in", "stored in sessions: fact in the context, %", ""),
    ("ways", "session lines", "stored in sessions: lines", ""),
    ("small", "all", "small stores: all that bears, %", "100 / 97 / 97"),
    ("updates", "wanted", "updates: newer present, %", "95"),
    ("updates", "outdated alone", "updates: outdated fact alone, %", ""),
    ("updates", "plain alone", "updates: outdated fact alone, plain, %", ""),
    ("updates", "apart", "updates: both told apart, %", "100"),
    ("updates", "lines", "updates: lines", ""),
    ("both", "both", "both hold: both present, %", "97"),
    ("both", "first", "both hold: asked one first, %", "as in recall"),
    ("both", "recall first", "both hold: asked one first in recall, %", ""),
    ("replies", "at most one", "repeated replies: at most one line, %", "98"),
    ("forgetting", "context", "forgotten: in no context, %", "100"),
    ("forgetting", "recall", "forgotten: in no recall, %", "100"),
    ("forgetting", "anywhere", "forgotten: in no memory, %", "100"),
    ("advice", "in", "advice: limit in the context, %", "plain"),
    ("advice", "plain", "advice: plain, %", ""),
    ("advice", "lines", "advice: lines", ""),
    ("languages", "in", "other languages: fact in the context, %", ""),
    ("languages", "plain", "other languages: plain, %", ""),
    ("languages", "lines", "other languages: lines", ""),
    ("floods", "in", "floods: what was in without notes is in, %", "100"),
    ("floods", "asked", "floods: contexts", ""),
)


def figures(
    half: str, sizes: Sequence[int], embedders: Sequence[str], only: Sequence[str], cache: Path | None
) -> tuple[dict[tuple[str, str, int], Found], str]:
    """Measure each kind; return what was found by kind, embedder and size, and the table."""
    found: dict[tuple[str, str, int], Found] = {}
    for name in embedders:
        embedder = embedder_of(name, cache)
        for size in sizes:
            turns = Turns(half, embedder, size)
            for kind in only:
                if kind in _OWN_SIZE and size != sizes[0]:
                    found[kind, name, size] = found[kind, name, sizes[0]]
                else:
                    found[kind, name, size] = KINDS[kind](turns)
    head = ["figure", "goal", *(f"{name} {size}" for name in embedders for size in sizes)]
    rows = [
        [label, goal, *(_shown(found[kind, name, size], figure) for name in embedders for size in sizes)]
        for kind, figure, label, goal in ROWS
        if kind in only
    ]
    return found, table(head, rows)


def _shown(found: Found, figure: str) -> str:
    value = found.figures.get(figure)
    return "" if value is None else f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(prog="python -m evals.turns", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", choices=sets_turns.HALVES, default="unread")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="memories in a store, with commas between")
    parser.add_argument("--embedders", default=",".join(EMBEDDERS), help="of auto, hashed, none, foreign")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, with commas between")
    parser.add_argument("--cache", type=Path, help="a folder to keep vectors in between runs")
    parser.add_argument("--misses", action="store_true", help="print what was missed; of the seen half alone")
    options = parser.parse_args(arguments)
    if options.misses and options.half != "seen":
        parser.error("the misses of the unread half are not printed")
    if sets_turns.digest(options.half) != sets_turns.DIGESTS.get(options.half):
        parser.error(f"the files of the {options.half} half are not those of its digest")
    sizes = [int(size) for size in options.sizes.split(",")]
    found, printed = figures(options.half, sizes, options.embedders.split(","), options.only.split(","), options.cache)
    print(f"Half: {options.half}, digest {sets_turns.DIGESTS[options.half][:16]}.\n\n{printed}")
    if options.misses:
        for (kind, name, size), each in found.items():
            print(f"\n{kind}, {name}, {size}: {len(each.misses)} missed", *each.misses, sep="\n* ")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
