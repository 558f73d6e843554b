"""Runs: tell a fresh store everything through its front door, ask it everything, keep the answers.

Invariants
(1) Each conversation is a tenant of its own in a store in a temporary folder, which is gone afterwards.
(2) Nothing but ``Memory``, ``Policy`` and the importer is used; ids in answers are those of the data set.
(3) Two answers are equal when ranking, context ids and context texts are; latencies never count.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evals import locomo, sets_turns
from evals.recall_sets import Asked, Conversation, DataSet, Told
from evals.recall_vectors import WordlessVectors
from evals.stores import Targets, files
from evals.target import Target
from keepward import Actor, Committed, Memory, Policy, Tier
from keepward.interchange.run import ImportRun
from keepward.ports.models import Embedder, TokenCounter

BUDGETS = (1_000, 2_000, 4_000)
#: Hits asked for.
LIMIT = 50
#: Longest text, in characters.
LONGEST = 8_000
#: A long reply is one memory.
POLICY = Policy(text_limit=dict.fromkeys(Tier, LONGEST))

#: A day of turns that ask for nothing that was told, such as "thanks".
SMALL_TALK = tuple(line[0] for line in sets_turns.lines("seen", "smalltalk"))

#: Where the clock of an aged run begins when nothing that was told has a date.
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

Progress = Callable[[str, int, int], None]


class Clock:
    """Stands still until it is set."""

    def __init__(self, start: datetime) -> None:
        self.instant = start

    def now(self) -> datetime:
        return self.instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A context."""

    #: Ids of the memories in it, in the order of the text.
    ids: tuple[str, ...]
    text: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of one question."""

    conversation: str
    question: str
    #: Ids best first.
    ranked: tuple[str, ...]
    #: By budget in tokens.
    contexts: Mapping[int, Pack] = field(default_factory=dict)
    #: The context without a budget; None where none was asked for.
    plain: Pack | None = None
    latency_ms: float = 0.0
    #: By budget in tokens.
    context_ms: Mapping[int, float] = field(default_factory=dict)

    def line(self) -> str:
        """Return the answer as one line of a run file."""
        made = {str(budget): it for budget, it in self.contexts.items()}
        if self.plain is not None:
            made["none"] = self.plain
        packs = {budget: {"ids": list(it.ids), "text": it.text} for budget, it in made.items()}
        return json.dumps(
            {
                "conversation": self.conversation,
                "question": self.question,
                "ranked": list(self.ranked),
                "contexts": packs,
                "latency_ms": round(self.latency_ms, 3),
            },
            ensure_ascii=False,
        )


@dataclass(slots=True, kw_only=True)
class Run:
    """All answers on one data set, and what the store did with what it was told."""

    answers: list[Answer] = field(default_factory=list)
    #: Outcomes of writing: ``committed``, ``quarantined``, ``duplicate``, ``refused``, ``failed``.
    outcomes: Counter[str] = field(default_factory=Counter)
    #: (conversation, id, why) of what was told and is no live memory.
    lost: list[tuple[str, str, str]] = field(default_factory=list)
    #: Reasons for which memories stayed out of contexts, other than lack of room, by code.
    excluded: Counter[str] = field(default_factory=Counter)
    #: Memories in contexts by section, summed over contexts.
    placed: Counter[str] = field(default_factory=Counter)
    #: Tokens of the context of each line of small talk, which nothing that was told bears on.
    quiet: list[int] = field(default_factory=list)
    ingest_seconds: float = 0.0
    #: Answers of recall by words alone, and by vectors alone.
    parts: dict[str, list[Answer]] = field(default_factory=dict)


def run(
    data: DataSet,
    *,
    embedder: Embedder | None,
    counter: TokenCounter,
    budgets: Sequence[int] = BUDGETS,
    policy: Policy = POLICY,
    parts: bool = False,
    aged: bool = False,
    stores: Targets = files,
    progress: Progress = lambda *_: None,
) -> Run:
    """Tell and ask a whole data set.

    ``parts`` also asks by words alone and by vectors alone, without contexts. ``aged`` sets the
    store's clock: each memory is told on its own day, and all questions are asked a day after the last; else now.
    """
    done = Run()
    days = [each.at for it in data.conversations for each in it.told if each.at is not None]
    clock = Clock(min(days, default=EPOCH)) if aged else None
    with TemporaryDirectory() as name, stores(Path(name)) as target:
        with opened(target, embedder, counter, policy, clock) as mem:
            start = time.perf_counter()
            for conversation in data.conversations:
                here = mem.at(tenant=conversation.name)
                tell(here, conversation, data.file, clock, done)
                if policy.candidates == "database":
                    mem.at(tenant=conversation.name).reindex()
            done.ingest_seconds = time.perf_counter() - start
            if clock is not None:
                clock.instant += timedelta(days=1)
            for conversation in data.conversations:
                here = mem.at(tenant=conversation.name)
                names = _names(here, conversation, done)
                for place, asked in enumerate(conversation.asked, 1):
                    answer = _ask(here, asked, asked.text, conversation.name, names, budgets, done)
                    done.answers.append(answer)
                    progress(conversation.name, place, len(conversation.asked))
                done.quiet += [here.context(text).tokens for text in SMALL_TALK]
        if parts:
            done.parts = dict(_parts(data, target, embedder, counter, policy, clock))
    return done


def _parts(
    data: DataSet,
    target: Target,
    embedder: Embedder | None,
    counter: TokenCounter,
    policy: Policy,
    clock: Clock | None,
) -> Iterator[tuple[str, list[Answer]]]:
    asked = [(each, question) for each in data.conversations for question in each.asked if question.evidence]
    # One word that nobody used for each question, so that recall has its vector and none of its words.
    words = {f"qzx{place}zxq": question.text for place, (_, question) in enumerate(asked)}
    ways: list[tuple[str, Embedder | None]] = [("words", None)]
    if embedder is not None:
        ways.append(("vectors", WordlessVectors(embedder, words)))
    for way, model in ways:
        with opened(target, model, counter, policy, clock) as mem:
            names = {each.name: _names(mem.at(tenant=each.name), each, Run()) for each in data.conversations}
            found = []
            for (each, question), word in zip(asked, words, strict=True):
                said = question.text if way == "words" else word
                here = mem.at(tenant=each.name)
                found.append(_ask(here, question, said, each.name, names[each.name], (), Run()))
            yield way, found


@contextmanager
def opened(
    target: Target, embedder: Embedder | None, counter: TokenCounter, policy: Policy, clock: Clock | None
) -> Iterator[Memory]:
    with Memory.open(
        target.address,
        actor=Actor.operator(),
        embedder=embedder,
        counter=counter,
        policy=policy,
        config_dir=target.home,
        clock=clock,
    ) as mem:
        yield mem


def tell(mem: Memory, conversation: Conversation, file: Path | None, clock: Clock | None, done: Run) -> None:
    if file is not None and clock is None:
        run = ImportRun(mem, file.name)
        run.add(locomo.rows(file, tenant=mem.tenant, notes=run.notes))
        imported = run.finish("messages")
        done.outcomes.update(
            committed=imported.committed,
            duplicate=imported.duplicates,
            quarantined=imported.quarantined,
            refused=imported.refused,
            failed=len(imported.failed),
        )
        return
    for day, told in groupby(conversation.told, key=lambda each: each.at and each.at.date()):
        # Without a clock the days do not matter to the store, and a commit a day is how memory grows.
        if clock is not None and day is not None:
            clock.instant = max(clock.now(), datetime.combine(day, time_of_day(23), tzinfo=UTC))
        for outcome in mem.remember_many([fields_of(each) for each in told], reason="recall evaluation"):
            done.outcomes["committed" if isinstance(outcome, Committed) else type(outcome).__name__.lower()] += 1


def fields_of(told: Told) -> dict[str, Any]:
    fields: dict[str, Any] = {"text": told.text, "aliases": (told.id,), "occurred_at": told.at}
    if told.session is not None:
        fields |= {"tier": "episodic", "kind": "event", "stability": "stable"}
    given = {"speaker": told.speaker, "session": told.session, "key": told.key, "tags": tuple(told.tags) or None}
    return fields | {name: value for name, value in given.items() if value is not None}


def _names(mem: Memory, conversation: Conversation, done: Run) -> dict[str, str]:
    """Return the data set's ids by memory id, and note what is not there and why."""
    names: dict[str, str] = {}
    drawn: dict[str, str] = {}
    for record in mem.list_memories(limit=None):
        alias = record.aliases[0] if record.aliases else record.id
        part = record.metadata.get("part")
        names[record.id] = alias.removesuffix(f"/{part}") if part else alias
        if record.source == "extracted":
            drawn[record.id] = record.derived_from[0]
    names |= {fact: names[turn] for fact, turn in drawn.items()}
    held: dict[str, str] = {}
    for item in mem.pending(limit=None):
        for step in item.steps:
            if step.after is not None and step.after.aliases:
                held[step.after.aliases[0]] = ", ".join(f"{each.gate}: {each.code}" for each in item.reasons)
    there = set(names.values())
    for told in conversation.told:
        if told.id not in there:
            done.lost.append((conversation.name, told.id, held.get(told.id, "duplicate or refused")))
    return names


def _ask(
    mem: Memory,
    asked: Asked,
    said: str,
    conversation: str,
    names: Mapping[str, str],
    budgets: Sequence[int],
    done: Run,
) -> Answer:
    start = time.perf_counter()
    hits = mem.recall(said, limit=LIMIT)
    latency = time.perf_counter() - start
    packs: dict[int, Pack] = {}
    spent: dict[int, float] = {}
    for budget in budgets:
        start = time.perf_counter()
        made = mem.context(said, budget_tokens=budget)
        spent[budget] = 1000 * (time.perf_counter() - start)
        done.excluded.update(each.reason.code for each in made.excluded if each.reason.code != "budget")
        done.placed.update({section.name: len(section.items) for section in made.sections})
        items = (names.get(item.id) for section in made.sections for item in section.items)
        packs[budget] = Pack(ids=_once(items), text=made.text, tokens=made.tokens)
    plain = None
    if budgets:
        made = mem.context(said)
        items = (names.get(item.id) for section in made.sections for item in section.items)
        plain = Pack(ids=_once(items), text=made.text, tokens=made.tokens)
    return Answer(
        conversation=conversation,
        question=asked.id,
        ranked=_once(names.get(hit.memory.id) for hit in hits),
        contexts=packs,
        plain=plain,
        latency_ms=1000 * latency,
        context_ms=spent,
    )


def _once(ids: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in ids if name is not None))


def differences(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """Return the questions whose lines of two run files differ in more than latency, or that one file lacks."""
    sides = [{line["question"]: line for line in map(json.loads, lines)} for lines in (first, second)]
    for line in (line for side in sides for line in side.values()):
        line.pop("latency_ms", None)
    return [name for name in dict.fromkeys([*sides[0], *sides[1]]) if sides[0].get(name) != sides[1].get(name)]
