"""Score the retrieval core alone, in process: evidence recall@10, nDCG@10 and MRR by set, with its parts beside it.

    python -m evals.recall_lab --locomo FILE [--cache FOLDER] [--only NAME ...]

Each conversation is a tenant. "text" drops the query's vector, "vector" its terms; "hybrid" must never be more
than a point below the better of the two on any set.
"""

import argparse
import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from evals import sets_recall
from keepward.adapters.embed_minilm import MiniLmEmbedder
from keepward.retrieval import analyze, units
from keepward.retrieval.index import Allowed, Entry, Index, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One memory of a set."""

    id: str
    text: str
    speaker: str | None = None
    created_at: int = 0
    session: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question and the memories that answer it."""

    text: str
    evidence: frozenset[str]
    category: str = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One tenant."""

    name: str
    told: Sequence[Told]
    asked: Sequence[Asked] = field(default_factory=tuple)


def locomo(path: Path, *, captions: bool = True) -> list[Conversation]:
    """LoCoMo, categories 1 to 4; odd evidence ids split and repaired, ids that name no turn dropped."""
    conversations = []
    for sample in json.loads(path.read_text(encoding="utf-8")):
        talk = sample["conversation"]
        told = []
        for number in range(1, 100):
            turns = talk.get(f"session_{number}")
            if not isinstance(turns, list):
                continue
            at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            for order, turn in enumerate(turns):
                text = turn["text"]
                if captions and turn.get("blip_caption"):
                    text = f"{text} [shares {turn['blip_caption']}]"
                told.append(
                    Told(
                        id=turn["dia_id"],
                        text=text,
                        speaker=turn["speaker"],
                        created_at=int(at.timestamp() + order) * 1_000_000,
                        session=f"{sample['sample_id']}/{number}",
                    )
                )
        known = {t.id for t in told}
        asked = []
        for question in sample["qa"]:
            pairs = re.findall(r"D:?(\d+):(\d+)", " ".join(question.get("evidence", [])))
            evidence = frozenset(f"D{int(s)}:{int(t)}" for s, t in pairs) & known
            if question["category"] != 5 and evidence:
                asked.append(Asked(text=question["question"], evidence=evidence, category=str(question["category"])))
        conversations.append(Conversation(name=sample["sample_id"], told=told, asked=asked))
    return conversations


def merged(conversations: Sequence[Conversation], turns: int) -> list[Conversation]:
    """The same talk told in long memories without a named speaker: `turns` turns of a session in each."""
    made = []
    for conversation in conversations:
        groups: dict[tuple[str | None, int], list[Told]] = {}
        counts: dict[str | None, int] = {}
        for told in conversation.told:
            at = counts.get(told.session, 0)
            counts[told.session] = at + 1
            groups.setdefault((told.session, at // turns), []).append(told)
        home = {t.id: group[0].id for group in groups.values() for t in group}
        made.append(
            Conversation(
                name=conversation.name,
                told=[
                    Told(
                        id=group[0].id,
                        text="\n".join(f"{t.speaker}: {t.text}" for t in group),
                        created_at=group[0].created_at,
                        session=group[0].session,
                    )
                    for group in groups.values()
                ],
                asked=[
                    Asked(text=a.text, evidence=frozenset(home[i] for i in a.evidence), category=a.category)
                    for a in conversation.asked
                ],
            )
        )
    return made


def scattered(conversations: Sequence[Conversation]) -> list[Conversation]:
    """The same turns as notes: the speaker inside the text, no session."""
    return [
        Conversation(
            name=c.name,
            told=[Told(id=t.id, text=f"{t.speaker} said: {t.text}", created_at=t.created_at) for t in c.told],
            asked=c.asked,
        )
        for c in conversations
    ]


class Embedded:
    """The embedder behind a file, so that a second run costs nothing."""

    def __init__(self, cache: Path | None) -> None:
        self._file = None if cache is None else cache / "minilm.npz"
        self._known: dict[str, np.ndarray] = {}
        if self._file is not None and self._file.exists():
            with np.load(self._file) as held:
                self._known = dict(zip(held["keys"].tolist(), held["vectors"], strict=True))
        self._embedder: MiniLmEmbedder | None = None

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        keys = [hashlib.blake2b(t.encode(), digest_size=12).hexdigest() for t in texts]
        missing = {k: t for k, t in zip(keys, texts, strict=True) if k not in self._known}
        if missing:
            self._embedder = self._embedder or MiniLmEmbedder()
            self._known |= dict(zip(missing, self._embedder.embed(list(missing.values())), strict=True))
            if self._file is not None:
                np.savez(self._file, keys=np.array(list(self._known)), vectors=np.array(list(self._known.values())))
        return np.array([self._known[k] for k in keys], dtype=np.float32)


def entries(conversation: Conversation, embed: Callable[[Sequence[str]], np.ndarray]) -> list[Entry]:
    """What the engine would hand to the index."""
    texts: list[list[str]] = []
    previous: dict[str, Told] = {}
    for told in conversation.told:
        before = previous.get(told.session) if told.session else None
        question = before.text if before and before.text.rstrip().endswith("?") else None
        texts.append(
            units.sentence_units(told.text, speaker=told.speaker, question=question, key=told.key, tags=told.tags)
        )
        if told.session:
            previous[told.session] = told
    vectors = embed([t for group in texts for t in group])
    made, at = [], 0
    for position, (told, group) in enumerate(zip(conversation.told, texts, strict=True)):
        indexed = units.indexed_text(
            told.text, speaker=told.speaker, created_at=told.created_at, key=told.key, tags=told.tags
        )
        made.append(
            Entry(
                id=told.id,
                version=1,
                position=position,
                scope="/",
                tier="episodic",
                kind="event",
                key=told.key,
                tags=told.tags,
                session=told.session,
                speaker=told.speaker,
                created_at=told.created_at,
                terms=analyze.pack(analyze.terms(indexed)),
                vector_model="minilm",
                units=vectors[at : at + len(group)],
            )
        )
        at += len(group)
    return made


def scores(ranked: Sequence[str], evidence: frozenset[str]) -> tuple[float, float, float]:
    """Recall@10, nDCG@10 and reciprocal rank, each 0..1."""
    top = ranked[:10]
    gain = sum(1 / math.log2(n + 2) for n, i in enumerate(top) if i in evidence)
    best = sum(1 / math.log2(n + 2) for n in range(min(10, len(evidence))))
    first = next((1 / (n + 1) for n, i in enumerate(ranked) if i in evidence), 0.0)
    return sum(i in evidence for i in top) / len(evidence), gain / best, first


def ask(
    conversations: Sequence[Conversation], embed: Callable[[Sequence[str]], np.ndarray]
) -> Iterator[tuple[str, str, Asked, list[str], float]]:
    """Yield (way, conversation, question, ranked ids, seconds)."""
    allowed = Allowed(scopes=frozenset(("/",)), now=0)
    for conversation in conversations:
        index = Index()
        index.apply(entries(conversation, embed))
        vectors = embed([a.text for a in conversation.asked])
        for asked, vector in zip(conversation.asked, vectors, strict=True):
            found = tuple(analyze.terms(asked.text))
            for way, query in (
                ("text", Query(text=asked.text, terms=found)),
                ("vector", Query(text="", terms=(), vector=vector, vector_model="minilm")),
                ("hybrid", Query(text=asked.text, terms=found, vector=vector, vector_model="minilm")),
            ):
                start = time.perf_counter()
                ranked = [s.id for s in index.search(query, allowed, 50)]
                yield way, conversation.name, asked, ranked, time.perf_counter() - start


def report(name: str, conversations: Sequence[Conversation], embed: Callable[[Sequence[str]], np.ndarray]) -> str:
    """One line a set."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    categories: dict[str, list[float]] = {}
    spent: list[float] = []
    for way, _, asked, ranked, seconds in ask(conversations, embed):
        rows.setdefault(way, []).append(scores(ranked, asked.evidence))
        if way == "hybrid":
            categories.setdefault(asked.category, []).append(rows[way][-1][0])
            spent.append(seconds)
    cells = [f"{name:<14}{len(rows['hybrid']):>5}"]
    for way in ("text", "vector", "hybrid"):
        recall, gain, first = (100 * float(np.mean(c)) for c in zip(*rows[way], strict=True))
        cells.append(f"{recall:6.1f} {gain:5.1f} {first:5.1f}")
    cells.append(f"{1000 * float(np.median(spent)):5.2f} ms")
    cells.append(" ".join(f"{c}:{100 * float(np.mean(v)):.0f}" for c, v in sorted(categories.items())))
    return " | ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--no-captions", action="store_true")
    options = parser.parse_args()
    embed = Embedded(options.cache)
    chosen: list[tuple[str, list[Conversation]]] = []
    if options.locomo:
        talks = locomo(options.locomo, captions=not options.no_captions)
        chosen += [("locomo", talks), ("locomo-long", merged(talks, 8)), ("locomo-notes", scattered(talks))]
    for name, told, asked in sets_recall.every():
        conversation = Conversation(
            name=name, told=[Told(**t) for t in told], asked=[Asked(text=q, evidence=frozenset(e)) for q, e in asked]
        )
        chosen.append((name, [conversation]))
    print(f"{'set':<14}{'n':>5} | text r@10 nDCG MRR  | vector             | hybrid             | p50")
    for name, conversations in chosen:
        if not options.only or name in options.only:
            print(report(name, conversations, embed), flush=True)


if __name__ == "__main__":
    main()
