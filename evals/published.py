"""Data sets that others published, read from the files that they publish: BEAM, REALTALK, FactConsolidation.

Each becomes what LoCoMo becomes: messages or facts that are told, questions, and the ids that answer them. Nothing is
fetched. A file of another shape is a ``ValueError`` that names the file and what it lacks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evals.recall_sets import Asked, Conversation, DataSet, Told, evidence_of, locomo

#: What the answer is called, by kind of question of BEAM.
_BEAM_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary")
#: What BEAM's generator left at the end of a user's message.
_BEAM_MARK = re.compile(r"\s*->->\s*[\d,\s]*$")
_SESSION = re.compile(r"session_(\d+)")
_FACT = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)
_WORD = re.compile(r"\w+")


def beam(path: Path, *, limit: int | None = None) -> DataSet:
    """Read chats of BEAM below a folder, such as ``chats/100K``, or one chat, such as ``chats/100K/1``.

    A chat is a folder with ``chat.json`` and ``probing_questions/probing_questions.json``. Where there is a
    ``chat_trunecated.json``, it is read instead, as the authors do. A message is told under its ``id``, a batch is a
    session. The evidence of a question is every number in its ``source_chat_ids``; abstention has none.
    The chats of 10M tokens number their messages again in each plan and are not read.

    Source: Tavakoli et al. (2025), "Beyond a Million Tokens".
    """
    questions = sorted(path.rglob("probing_questions/probing_questions.json"), key=lambda file: _natural(file.parts))
    if not questions:
        raise ValueError(f"{path.name} is not in the BEAM format: no probing_questions/probing_questions.json below it")
    conversations: list[Conversation] = []
    dropped = 0
    for file in questions[:limit]:
        folder = file.parent.parent
        name = f"{folder.parent.name}-{folder.name}"
        cut = folder / "chat_trunecated.json"
        told = _beam_messages(cut if cut.exists() else folder / "chat.json", name)
        there = {each.id for each in told}
        asked: list[Asked] = []
        for category, probes in _object(file, name).items():
            for probe in probes:
                try:
                    named = {str(number) for number in _numbers(probe.get("source_chat_ids", ()))}
                    said = next((probe[key] for key in _BEAM_ANSWERS if key in probe), "; ".join(probe["rubric"]))
                    text = probe["question"]
                except (AttributeError, KeyError, TypeError) as fault:
                    raise ValueError(f"{name}: a question of {category} lacks {fault}") from fault
                dropped += len(named - there)
                number = f"{name}#{len(asked)}"
                asked.append(
                    Asked(id=number, text=text, category=category, evidence=frozenset(named & there), answer=said)
                )
        conversations.append(Conversation(name=name, told=told, asked=tuple(asked)))
    return DataSet(name=f"beam {path.name}", conversations=tuple(conversations), published=True, dropped=dropped)


def _beam_messages(file: Path, name: str) -> tuple[Told, ...]:
    told: list[Told] = []
    at: datetime | None = None
    for number, batch in enumerate(_list(file, name), 1):
        for message in _messages(batch):
            try:
                if message.get("time_anchor"):
                    at = datetime.strptime(message["time_anchor"], "%B-%d-%Y").replace(tzinfo=UTC)
                text = _BEAM_MARK.sub("", message["content"]).strip()
                item = Told(id=str(message["id"]), text=text, speaker=message["role"], session=f"batch-{number}", at=at)
            except (KeyError, TypeError, ValueError) as fault:
                raise ValueError(f"{name}: a message of batch {number} is not in the BEAM format: {fault}") from fault
            if text:
                told.append(item)
    if len({each.id for each in told}) < len(told):
        raise ValueError(f"{name}: two messages have one id; only chats of 100K, 500K and 1M can be read")
    return tuple(told)


def _messages(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the messages of a batch, however deep its lists of turns are."""
    if isinstance(value, dict) and "content" in value:
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _messages(inner)


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _numbers(inner)


def realtalk(path: Path, *, limit: int | None = None) -> DataSet:
    """Read chats of REALTALK: a folder of ``Chat_*.json``, or one such file.

    A chat has ``session_N`` with messages (``clean_text``, ``speaker``, ``date_time``, ``dia_id``) and ``qa`` with
    questions, answers, categories and the ids of the evidence. Chats without ``qa`` are told and asked nothing.

    Source: Lee et al. (2025), "REALTALK: A 21-Day Real-World Dataset for Long-Term Conversation".
    """
    files = sorted(path.glob("Chat_*.json"), key=lambda file: _natural(file.parts)) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path.name} is not in the REALTALK format: no Chat_*.json in it")
    conversations: list[Conversation] = []
    repaired = dropped = 0
    for file in files[:limit]:
        chat = _object(file, file.stem)
        try:
            told = tuple(_realtalk_messages(chat))
            asked: list[Asked] = []
            for number, qa in enumerate(chat.get("qa", ())):
                evidence, mended, lost = evidence_of(qa.get("evidence", ()), (each.id for each in told))
                repaired, dropped = repaired + mended, dropped + lost
                fields = {"text": qa["question"], "category": str(qa["category"]), "answer": str(qa.get("answer", ""))}
                asked.append(Asked(id=f"{file.stem}#{number}", evidence=evidence, **fields))
        except (AttributeError, KeyError, TypeError, ValueError) as fault:
            raise ValueError(f"{file.name} is not in the REALTALK format: {fault}") from fault
        if not told:
            raise ValueError(f"{file.name} is not in the REALTALK format: it has no session_1")
        conversations.append(Conversation(name=file.stem, told=told, asked=tuple(asked)))
    return DataSet(
        name="realtalk", conversations=tuple(conversations), published=True, repaired=repaired, dropped=dropped
    )


def _realtalk_messages(chat: dict[str, Any]) -> Iterator[Told]:
    for _, session in sorted((int(match[1]), name) for name in chat if (match := _SESSION.fullmatch(name))):
        for message in chat[session]:
            shown = str(message.get("blip_caption") or "").strip()
            text = f"{message['clean_text'].strip()} [shares a photo: {shown}]" if shown else message["clean_text"]
            at = datetime.strptime(message["date_time"].strip(), "%d.%m.%Y, %H:%M:%S").replace(tzinfo=UTC)
            if text.strip():
                yield Told(id=message["dia_id"], text=text.strip(), speaker=message["speaker"], session=session, at=at)


def factconsolidation(path: Path, *, limit: int | None = None) -> DataSet:
    """Read FactConsolidation: rows of the split ``Conflict_Resolution`` of MemoryAgentBench.

    The file is Parquet, as published (this needs ``pip install pyarrow``), a JSON list, or one JSON object a line. A
    row has a ``context`` of numbered facts, of which a later one replaces an earlier one, ``questions``, the accepted
    ``answers`` of each, and ``metadata.source``, such as ``factconsolidation_sh_6k``. Other rows are passed over.

    No row names its evidence, so it is derived. Of the facts that end with an accepted answer it is the one that
    shares most words with the question; of several, the newest. Only questions of one step (``_sh_``) have such a
    fact; those of several steps (``_mh_``) are asked and not scored.

    Source: Hu, Wang, McAuley (2025), "Evaluating Memory in LLM Agents via Incremental Multi-Turn Interactions".
    """
    conversations: list[Conversation] = []
    dropped = 0
    for row in _rows(path):
        try:
            source = row["metadata"]["source"]
            if not source.startswith("factconsolidation"):
                continue
            facts = {number: text.strip() for number, text in _FACT.findall(row["context"])}
            asked: list[Asked] = []
            for number, (question, accepted) in enumerate(zip(row["questions"], row["answers"], strict=True)):
                newest = _newest(facts, question, accepted) if "_sh_" in source else None
                dropped += newest is None and "_sh_" in source
                evidence = frozenset({newest} if newest is not None else ())
                kind = "one step" if "_sh_" in source else "several steps"
                asked.append(
                    Asked(
                        id=f"{source}#{number}",
                        text=question,
                        category=kind,
                        evidence=evidence,
                        answer=" or ".join(accepted),
                    )
                )
        except (AttributeError, KeyError, TypeError, ValueError) as fault:
            raise ValueError(f"{path.name} is not in the FactConsolidation format: {fault}") from fault
        if not facts:
            raise ValueError(f"{path.name} is not in the FactConsolidation format: {source} has no numbered facts")
        told = tuple(Told(id=number, text=text) for number, text in facts.items())
        conversations.append(Conversation(name=source, told=told, asked=tuple(asked)))
    if not conversations:
        raise ValueError(f"{path.name} is not in the FactConsolidation format: no row of factconsolidation_…")
    return DataSet(
        name="factconsolidation", conversations=tuple(conversations[:limit]), published=True, dropped=dropped
    )


def _newest(facts: dict[str, str], question: str, accepted: list[str]) -> str | None:
    words = set(_WORD.findall(question.casefold()))
    found: list[tuple[int, int, str]] = []
    for number, text in facts.items():
        plain = text.rstrip(". ").casefold()
        if any(re.search(rf"(?<!\w){re.escape(each.rstrip('. ').casefold())}$", plain) for each in accepted if each):
            found.append((len(words & set(_WORD.findall(plain))), int(number), number))
    return max(found)[2] if found else None


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        try:
            from pyarrow import parquet
        except ImportError as fault:
            raise ValueError(f"{path.name} is Parquet: pip install pyarrow, or write the rows as JSON lines") from fault
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        return rows
    text = path.read_text("utf-8")
    try:
        if text.lstrip().startswith("["):
            found: list[dict[str, Any]] = json.loads(text)
            return found
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except json.JSONDecodeError as fault:
        raise ValueError(f"{path.name} is not JSON: {fault}") from fault


def _natural(parts: tuple[str, ...]) -> list[tuple[int, int, str]]:
    """Return a key that sorts ``Chat_2`` before ``Chat_10``."""
    return [
        (int(piece.isdigit()), int(piece) if piece.isdigit() else 0, piece)
        for part in parts
        for piece in re.split(r"(\d+)", part)
    ]


def _object(file: Path, name: str) -> dict[str, Any]:
    return _of_type(file, name, dict)


def _list(file: Path, name: str) -> list[Any]:
    return _of_type(file, name, list)


def _of_type(file: Path, name: str, kind: type) -> Any:
    try:
        value = json.loads(file.read_text("utf-8"))
    except (OSError, json.JSONDecodeError) as fault:
        raise ValueError(f"{name}: {file.name} cannot be read as JSON: {fault}") from fault
    if not isinstance(value, kind):
        raise ValueError(f"{name}: {file.name} is not a JSON {'object' if kind is dict else 'list'}")
    return value


#: What reads a data set of others, by the name of it on the command line.
READERS: dict[str, Callable[..., DataSet]] = {
    "locomo": locomo,
    "beam": beam,
    "realtalk": realtalk,
    "factconsolidation": factconsolidation,
}
