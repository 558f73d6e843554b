"""Chats written one by one by people who had not read how recall works: ``fresh.txt``, ``blind.txt``, ``sealed.txt``.

Invariants
(1) A line that begins with § is a mark, lines between marks are text: `§person NAME`, `§session DATE TIME SUBJECT`,
    `§user LABEL` and `§reply LABEL` before a turn, `§ask KIND: QUESTION => LABELS` of the turns that answer it.
(2) Labels are unique to a person; only turns that answer something have one.
(3) Between people a session is `§talk DATE TIME SUBJECT`, and each of its lines a turn: `NAME: TEXT` or
    `NAME [LABEL]: TEXT`.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from evals.sets_recall.assistant import KINDS as LONG_KINDS
from evals.sets_recall.assistant import Chat

KINDS: Final = LONG_KINDS | {
    "preference": "preferences that the request never names",
    "remark": "earlier remarks that explain later ones",
    "list": "lists over sessions",
    "date": "dates",
}
_MARK: Final = re.compile(r"^§(person|session|talk|user|reply|ask) ?(.*)\n", re.MULTILINE)
_SAID: Final = re.compile(r"^(\w+)(?: \[(\w+)\])?: (.*)$", re.MULTILINE)
_MINUTE: Final = 60_000_000


def chats(file: str = "fresh.txt") -> list[Chat]:
    """Return the chats, one a person or pair: name, turns, and (question, kind, ids of the turns that answer it).

    Raises:
        KeyError: a question names a label that is not there, or a category that is none.
    """
    _, *parts = _MARK.split((Path(__file__).parent / file).read_text("utf-8"))
    found: list[Chat] = []
    session, at = "", 0
    for mark, words, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        said: list[tuple[str, str, str]] = []
        if mark == "person":
            labels: dict[str, str] = {}
            turns: list[dict[str, Any]] = []
            found.append((words, turns, []))
        elif mark == "ask":
            kind, _, rest = words.partition(": ")
            question, _, names = rest.partition(" =>")
            found[-1][2].append((question, KINDS[kind], [labels[name] for name in names.split()]))
        elif mark in ("session", "talk"):
            session = words
            at = int(datetime.fromisoformat(words[:16]).replace(tzinfo=UTC).timestamp()) * 1_000_000
            said = _SAID.findall(text)
        else:
            said = [("assistant" if mark == "reply" else "user", words, text)]
        for speaker, label, line in said:
            at += 2 * _MINUTE
            turn = {"id": f"{len(turns)}/{speaker}", "text": line.strip(), "speaker": speaker, "session": session}
            turns.append(turn | {"created_at": at})
            labels[label] = turn["id"]
    return found
