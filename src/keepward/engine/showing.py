"""Showing: a waiting proposal as its reviewer has to see it.

Invariants
(1) ``payload`` is what an approval stores, byte for byte, but that every character no reader sees is written as
    ``⟦U+200B⟧``; two payloads that differ never look the same.
(2) Nothing is left out: every field of the payload stands in ``payload``, also where ``changes`` passes over it.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from keepward.gates.detect.normal import show_invisible
from keepward.model.codec import encode_record
from keepward.model.memory import Record
from keepward.model.proposal import Shown, Waiting
from keepward.model.value import from_micros

_BOOKKEEPING = frozenset({"v", "id", "version", "updated_at", "created_at", "reinforced_at", "author"})


def legible(text: str) -> str:
    """Return a text with every character that no reader sees written out, as ``⟦U+200B⟧``.

    A text that holds such a mark itself has its bracket written out too, so that it cannot pass for one.
    """
    return show_invisible(text.replace("⟦U+", "⟦U+27E6⟧U+"))


def shown(item: Waiting, blob: Callable[[str], str] | None = None) -> list[Shown]:
    """Return the steps of a proposal, in the order in which they would be stored.

    ``blob`` says in words what a reference to a blob stands for.
    """
    return [
        Shown(
            op=step.op,
            id=step.after.id,
            base=item.base.get(step.after.id, 0),
            payload=legible(encode_record(step.after).decode()),
            changes=_changes(step.before, step.after, blob),
        )
        for step in item.steps
    ]


def _changes(
    before: Record | None, after: Record, blob: Callable[[str], str] | None
) -> tuple[tuple[str, str | None, str | None], ...]:
    old = json.loads(encode_record(before)) if before else {}
    new = json.loads(encode_record(after))
    names = sorted((old.keys() | new.keys()) - _BOOKKEEPING)
    differing = [name for name in names if old.get(name) != new.get(name)]
    if blob is not None and "blob" in differing:
        old, new = ({**side, "blob": blob(side["blob"])} if "blob" in side else side for side in (old, new))
    return tuple((name, _told(name, old.get(name)), _told(name, new.get(name))) for name in differing)


def _told(name: str, value: object) -> str | None:
    if value is None:
        return None
    if name in {"confidence", "importance"} and isinstance(value, int):
        return f"{value / 10_000:g}"
    if name in {"expires_at", "occurred_at"} and isinstance(value, int):
        return from_micros(value).isoformat()
    return legible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
