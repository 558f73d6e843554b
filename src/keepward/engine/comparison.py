"""Comparison: what differs between two compiled contexts, and why.

Invariants
(1) Everything is read from the two receipts and the journal; nothing is compiled.
(2) Each item that differs has a commit, where one between the two heads touched it, and a sentence in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from keepward.engine.kit import Kit, Who
from keepward.engine.view import reaches, readable
from keepward.errors import NotFound
from keepward.model.inquiry import ContextDifference, ContextItem
from keepward.model.journal import CommitView
from keepward.model.value import from_micros

_Held = Mapping[str, tuple[int, str]]


def context_diff(kit: Kit, who: Who, first: str, second: str) -> ContextDifference:
    """Return what differs between the contexts of two receipts.

    Raises:
        NotFound: one of them is not a compile receipt within reach.
    """
    a, b = _receipt(kit, who, first), _receipt(kit, who, second)
    before, after = _held(a), _held(b)
    names = [
        *(("added", name) for name in sorted(after.keys() - before.keys())),
        *(("removed", name) for name in sorted(before.keys() - after.keys())),
        *(("changed", name) for name in sorted(before.keys() & after.keys()) if before[name][0] != after[name][0]),
    ]
    asked = {**a["inputs"], **_documents(a)}, {**b["inputs"], **_documents(b)}
    return ContextDifference(
        first=first,
        second=second,
        same=a["digests"]["text"] == b["digests"]["text"],
        items=tuple(_item(kit, who, change, name, (a, before), (b, after)) for change, name in names),
        inputs={
            name: (asked[0].get(name), asked[1].get(name))
            for name in sorted(asked[0].keys() | asked[1].keys())
            if asked[0].get(name) != asked[1].get(name)
        },
    )


def _receipt(kit: Kit, who: Who, receipt_id: str) -> dict[str, Any]:
    receipt = kit.store.receipt(who.tenant, receipt_id)
    if receipt is None or receipt.get("kind") != "compile":
        raise NotFound("there is no compile receipt by that id in this tenant")
    if not (who.actor.may_decide or reaches(who, receipt["inputs"]["scope"])):
        raise NotFound("there is no compile receipt by that id in this tenant")
    return receipt


def _documents(receipt: Mapping[str, Any]) -> dict[str, Any]:
    return dict(receipt["documents"])


def _held(receipt: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    return {item["id"]: (item["version"], part["name"]) for part in receipt["sections"] for item in part["items"]}


def _item(
    kit: Kit,
    who: Who,
    change: Any,
    name: str,
    first: tuple[Mapping[str, Any], _Held],
    second: tuple[Mapping[str, Any], _Held],
) -> ContextItem:
    (a, before), (b, after) = first, second
    commit = _between(kit, who, name, _seq(a), _seq(b))
    lacking = b if change == "removed" else a
    return ContextItem(
        id=name,
        change=change,
        section=(after.get(name) or before[name])[1],
        before=before[name][0] if name in before else None,
        after=after[name][0] if name in after else None,
        commit=commit,
        why=_why(kit, who, name, commit, lacking, (a, b)),
    )


def _seq(receipt: Mapping[str, Any]) -> int:
    return int(receipt["inputs"]["head"].split(":")[0])


def _between(kit: Kit, who: Who, memory_id: str, one: int, other: int) -> CommitView | None:
    """Return the newest commit after the earlier head, up to the later one, that touched a memory."""
    low, high = sorted((one, other))
    for view, _ in reversed(kit.store.history(who.tenant, memory_id)):
        if low < view.commit.seq <= high:
            return readable(kit, who, view)
    return None


def _why(
    kit: Kit,
    who: Who,
    memory_id: str,
    commit: CommitView | None,
    lacking: Mapping[str, Any],
    both: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> str:
    if commit is not None:
        ops = ", ".join(dict.fromkeys(step.op for step in commit.steps))
        return f"commit {commit.commit.seq} ({ops}) by {commit.details.actor}: {commit.details.reason}"
    for left in lacking["excluded"]:
        if left["id"] == memory_id:
            return f"left out of the other: {left['detail']} ({left['code']})"
    if _ended(kit, who, memory_id, from_micros(lacking["inputs"]["now"])):
        return "its term ended between the two"
    differ = [name for name in sorted(both[0]["inputs"]) if both[0]["inputs"][name] != both[1]["inputs"].get(name)]
    asked = [name for name in differ if name not in {"head", "now"}]
    if asked:
        return f"the two were asked differently: {', '.join(asked)}"
    return "it ranks otherwise among what was remembered in between"


def _ended(kit: Kit, who: Who, memory_id: str, now: datetime) -> bool:
    found = kit.store.records(who.tenant, [memory_id]).records
    return bool(found) and found[0].expires_at is not None and found[0].expires_at <= now
