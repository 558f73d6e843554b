"""Chats of people with an assistant, written one by one in ``fresh.txt`` by somebody who had not read how recall works.

Invariants
(1) A line that begins with § is a mark, lines between marks are text: `§person NAME`, `§session DATE TIME SUBJECT`,
    `§user LABEL` and `§reply LABEL` before a turn, `§ask KIND: QUESTION => LABELS` of the turns that answer it.
(2) Labels are unique to a person; only turns that answer something have one.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from evals.sets_recall.assistant import KINDS, Chat

_MARK: Final = re.compile(r"^§(person|session|user|reply|ask) ?(.*)\n", re.MULTILINE)
_MINUTE: Final = 60_000_000


def chats() -> list[Chat]:
    """Return the chats, one a person: name, turns, and (question, kind, ids of the turns that answer it).

    Raises:
        KeyError: a question names a label that is not there, or a category that is none.
    """
    _, *parts = _MARK.split((Path(__file__).parent / "fresh.txt").read_text("utf-8"))
    found: list[Chat] = []
    session, at = "", 0
    for mark, words, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if mark == "person":
            labels: dict[str, str] = {}
            turns: list[dict[str, Any]] = []
            found.append((words, turns, []))
        elif mark == "session":
            session = words
            at = int(datetime.fromisoformat(words[:16]).replace(tzinfo=UTC).timestamp()) * 1_000_000
        elif mark == "ask":
            kind, _, rest = words.partition(": ")
            question, _, names = rest.partition(" => ")
            found[-1][2].append((question, KINDS[kind], [labels[name] for name in names.split()]))
        else:
            at += 2 * _MINUTE
            speaker = "assistant" if mark == "reply" else "user"
            turn = {"id": f"{len(turns)}/{speaker}", "text": text.strip(), "speaker": speaker, "session": session}
            turns.append(turn | {"created_at": at})
            labels[words] = turn["id"]
    return found
