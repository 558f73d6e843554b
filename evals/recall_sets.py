"""Sets that recall is measured on: what was told, what is asked, and which memories answer.

Invariants
(1) An evidence id names something that was told; what names nothing is dropped and counted.
(2) A question keeps the number it has in its file, whatever categories are chosen: ``<conversation>#<index>``.
(3) What was told stands in the order of telling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from evals import sets_recall
from evals.locomo import read_date
from evals.sets_recall import fresh
from evals.sets_recall.assistant import Chat, chats

#: Categories of LoCoMo; those apart are asked and reported, and counted in no total.
CATEGORIES = {"1": "several turns", "2": "time", "3": "open", "4": "one turn", "5": "adversarial"}
APART = frozenset({"5"})

#: Names of the sets of chats: the half that is developed on, the other, and three by other hands.
ASSISTANT, UNREAD, FRESH, BLIND, SEALED = "assistant", "unread", "fresh", "blind", "sealed"
_CHATS: dict[str, Callable[[], list[Chat]]] = {
    ASSISTANT: chats,
    UNREAD: partial(chats, unread=True),
    FRESH: fresh.chats,
    BLIND: partial(fresh.chats, "blind.txt"),
    SEALED: partial(fresh.chats, "sealed.txt"),
}

_CLEAN = re.compile(r"D[1-9]\d*:[1-9]\d*")
_ID = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One thing that was told, and becomes one memory."""

    #: Unique within its conversation.
    id: str
    text: str
    speaker: str | None = None
    session: str | None = None
    at: datetime | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The text under its key and after its speaker: what a product without fields would store."""
        return ": ".join(part for part in (self.key, self.speaker, self.text) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question."""

    id: str
    text: str
    category: str
    #: Ids of what answers it; empty where the file names none that was told. Such a question is not scored.
    evidence: frozenset[str]
    #: What a right answer says; empty where the set names none.
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What one tenant is told and asked."""

    name: str
    told: tuple[Told, ...]
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Conversations that are reported together."""

    name: str
    conversations: tuple[Conversation, ...]
    #: The file to import; None where each memory is remembered.
    file: Path | None = None
    #: Whether others published it; such a set is reported at length.
    published: bool = False
    #: Evidence entries that were not one plain id and were split or repaired.
    repaired: int = 0
    #: Evidence that names nothing that was told.
    dropped: int = 0


def evidence_of(entries: Sequence[str], known: Iterable[str]) -> tuple[frozenset[str], int, int]:
    """Return the ids that entries such as ``D8:6; D9:17``, ``D:11:26`` or ``D30:05`` mean.

    Returns the ids among ``known``, how many entries were split or repaired, and how many ids, or entries
    without any, were dropped.
    """
    there = frozenset(known)
    ids: set[str] = set()
    repaired = dropped = 0
    for entry in entries:
        found = {f"D{int(session)}:{int(turn)}" for session, turn in _ID.findall(entry)}
        repaired += bool(found) and not _CLEAN.fullmatch(entry)
        dropped += len(found - there) or not found
        ids |= found & there
    return frozenset(ids), repaired, dropped


def locomo(
    file: Path, *, limit: int | None = None, categories: Iterable[str] = tuple(CATEGORIES), name: str = "locomo"
) -> DataSet:
    """Read conversations of the LoCoMo format, the first ``limit`` of them, with questions of ``categories``.

    Raises:
        ValueError: the file is not of this format.
    """
    wanted = frozenset(categories)
    conversations: list[Conversation] = []
    repaired = dropped = 0
    try:
        samples = json.loads(file.read_text("utf-8"))[:limit]
        for sample in samples:
            told = tuple(_turns(sample["conversation"]))
            asked: list[Asked] = []
            for index, qa in enumerate(sample["qa"]):
                category = str(qa["category"])
                if category not in wanted:
                    continue
                evidence, mended, lost = evidence_of(qa.get("evidence", ()), (turn.id for turn in told))
                repaired, dropped = repaired + mended, dropped + lost
                number = f"{sample['sample_id']}#{index}"
                # What category 5 asks for was never said.
                answer = "" if category in APART else str(qa.get("answer", ""))
                asked.append(Asked(id=number, text=qa["question"], category=category, evidence=evidence, answer=answer))
            conversations.append(Conversation(name=sample["sample_id"], told=told, asked=tuple(asked)))
    except (KeyError, TypeError, json.JSONDecodeError) as fault:
        raise ValueError(f"{file.name} is not in the LoCoMo format") from fault
    return DataSet(
        name=name,
        conversations=tuple(conversations),
        file=file,
        published=True,
        repaired=repaired,
        dropped=dropped,
    )


def _turns(talk: dict[str, Any]) -> list[Told]:
    turns: list[Told] = []
    for _, session in sorted((int(match[1]), name) for name in talk if (match := _SESSION.fullmatch(name))):
        at = read_date(talk[f"{session}_date_time"])
        for turn in talk[session]:
            shown = (turn.get("blip_caption") or "").strip()
            text = f"{turn['text'].strip()} [shares a photo: {shown}]" if shown else turn["text"].strip()
            turns.append(Told(id=turn["dia_id"], text=text, speaker=turn["speaker"], session=session, at=at))
    return turns


def own() -> list[DataSet]:
    """Return the sets of our own writing, one tenant each, and all of them told to one tenant."""
    found = []
    for name, told, asked in sets_recall.every():
        conversation = Conversation(
            name=name,
            told=tuple(_remembered(memory) for memory in told),
            asked=tuple(
                Asked(id=f"{name}#{index}", text=question, category="all", evidence=frozenset(ids))
                for index, (question, ids) in enumerate(asked)
            ),
        )
        found.append(DataSet(name=name, conversations=(conversation,)))
    return [*found, together(found)]


def assistant(name: str = ASSISTANT) -> DataSet:
    """Return the chats of users with an assistant; of all but the first set nobody looks at more than totals."""
    conversations = tuple(
        Conversation(
            name=chat,
            told=tuple(_remembered(turn) for turn in told),
            asked=tuple(
                Asked(id=f"{chat}#{index}", text=question, category=kind, evidence=frozenset(ids))
                for index, (question, kind, ids) in enumerate(asked)
            ),
        )
        for chat, told, asked in _CHATS[name]()
    )
    return DataSet(name=name, conversations=conversations)


def together(sets: Sequence[DataSet], *, name: str = "together") -> DataSet:
    """Return one tenant that was told what all sets tell, in the order of time, and is asked all they ask.

    Kinds of memory that are apart in the sets compete here for the room of one context.
    """
    told = [replace(each, id=f"{it.name}:{each.id}") for data in sets for it in data.conversations for each in it.told]
    told.sort(key=lambda each: each.at or datetime.min.replace(tzinfo=UTC))
    asked = [
        replace(
            each,
            id=f"{name}#{index}",
            category=data.name,
            evidence=frozenset(f"{it.name}:{answer}" for answer in each.evidence),
        )
        for index, (data, it, each) in enumerate(
            (data, it, each) for data in sets for it in data.conversations for each in it.asked
        )
    ]
    return DataSet(name=name, conversations=(Conversation(name=name, told=tuple(told), asked=tuple(asked)),))


def _remembered(memory: dict[str, Any]) -> Told:
    fields = {name: memory[name] for name in ("id", "text", "speaker", "session", "key", "tags") if name in memory}
    micros = memory.get("created_at")
    return Told(**fields, at=None if micros is None else datetime.fromtimestamp(micros / 1_000_000, tz=UTC))
