"""Shapes: the answers whose keys are not the fields of the value they stand for.

Each function takes an answer and returns it with the fields of its class beside its own keys. An answer that has
the fields already, as ``present.plain`` gives them, is returned as it is.

Invariants
(1) Nothing is invented but what a server keeps to itself: the salt and payload of a commit, the hash of a token.
(2) A field that holds a commit or a receipt may stand as an id, with the whole of it beside; see ``BESIDE``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keepward.model.commit import Commit, Receipt

Answer = dict[str, Any]

#: What the name of a field ends with where the whole of it stands (2).
BESIDE: Mapping[Any, str] = {Commit: "_header", Receipt: "_record"}


def duplicate(value: Answer) -> Answer:
    """Return the fields of a write that said what was known."""
    return value if "record" in value else {**value, "record": value["records"][0]}


def quarantined(value: Answer) -> Answer:
    """Return the fields of a write that waits."""
    return value if "item" in value else {**value, "item": value["waiting"]}


def waiting(value: Answer) -> Answer:
    """Return the fields of a proposal in the queue."""
    return value if "steps" in value else {**value, "steps": value["diff"], "proposer": value["proposer_actor"]}


def commit(value: Answer) -> Answer:
    """Return the fields of a commit; what a server keeps to itself is empty (1)."""
    return {"salt": "", "payload": None, "payload_commit": None, **value}


def commit_view(value: Answer) -> Answer:
    """Return the fields of a commit with its details and steps."""
    if "steps" in value:
        return value
    return {**value, "commit": value["commit_header"], "steps": value["events"]}


def token(value: Answer) -> Answer:
    """Return the fields of a token; what a server keeps to itself is empty (1)."""
    return {"hash": "", **value}


def hit(value: Answer) -> Answer:
    """Return the fields of a recalled memory, its score as it was computed."""
    return {
        **value,
        "score": value.get("exact_score", value["score"]),
        "parts": value.get("exact_parts", value["parts"]),
    }


def recall(value: Answer) -> Answer:
    """Return the fields of the answer to a query."""
    left_out = [[each["id"], each["reason"]] if isinstance(each, dict) else each for each in value["excluded"]]
    return {**value, "excluded": left_out}


#: What turns an answer into fields, by the name of the class.
FIELDS: Mapping[str, Callable[[Answer], Answer]] = {
    "Commit": commit,
    "CommitView": commit_view,
    "Duplicate": duplicate,
    "Hit": hit,
    "Quarantined": quarantined,
    "Recall": recall,
    "Token": token,
    "Waiting": waiting,
}
