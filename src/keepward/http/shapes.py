"""Shapes: what answers have beside that which ``results`` gives of every value."""

from __future__ import annotations

import dataclasses
from typing import Any

from keepward.errors import KeepwardError
from keepward.http.problems import STATUS
from keepward.memory import Memory
from keepward.model.commit import Commit, Receipt
from keepward.model.journal import CommitView
from keepward.model.proposal import Decided, Waiting
from keepward.model.query import Recall
from keepward.results import to_json

#: Fields that are given by id with the whole beside them.
BESIDE: dict[Any, str] = {Commit: "header", Receipt: "record"}


def shape(value: Any) -> Any:
    """Return any value of a verb as JSON values; an error in it says what it would have been by itself."""
    if isinstance(value, list):
        return [shape(each) for each in value]
    if isinstance(value, Decided) and value.error is not None:
        return {**to_json(value), "error": failure(value.error)}
    return to_json(value)


outcome = to_json


def reviewed(memory: Memory, item: Waiting) -> dict[str, Any]:
    """Return a proposal as its reviewer needs it: ``shown`` has every character that would be stored."""
    return {**to_json(item), "shown": to_json(memory.shown(item))}


def failure(fault: KeepwardError) -> dict[str, Any]:
    """Return an error that is part of an answer."""
    return {**to_json(fault), "status": STATUS.get(fault.code, 500)}


def commit_view(view: CommitView, *, events: bool = True) -> dict[str, Any]:
    """Return a commit; ``events`` hold each memory before and after, null where they were not asked for."""
    found: dict[str, Any] = to_json(view) if events else {**to_json(view, without=("events",)), "events": None}
    return found


def recall(found: Recall, *, start: int = 0, cursor: str | None = None) -> dict[str, Any]:
    """Return the answer to a query from one hit on; ``memory`` of a hit is the whole record."""
    return {**to_json(dataclasses.replace(found, hits=found.hits[start:])), "cursor": cursor}
