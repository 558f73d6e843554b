"""News: what happened to memories since an instant, in numbers, with the last of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from keepward.core.browse import Happening, Happenings, News
from keepward.core.journal import Version, damage_note
from keepward.core.memory import Status
from keepward.core.query import Filters
from keepward.core.reducer import has_same_text
from keepward.core.value import to_micros
from keepward.errors import NotFound, Tampered, Unauthorised
from keepward.services.arguments import instant
from keepward.services.reading import explain, recall
from keepward.services.reading.queries import parsed_filters
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext

#: Receipts that are read and checked to count decisions; of more, the database counts those of all scopes.
MAX_COUNTED = 2_000
_BATCH = 200
_DECISIONS, _REFUSAL = ("approval", "rejection"), "refusal"


def news(context: RequestContext, since: datetime | str, *, most: int = 3) -> News:
    """Return what happened since an instant, at this scope and below; of each at most ``most``, newest first.

    Raises:
        Unauthorised: it takes a reviewer or the owner.
    """
    reader = VisibleReader(context)
    reader.check_decider("what happened")
    begin = instant("since", since)
    with context.store.read_snapshot(context.tenant):
        at = recall.read_point(context, None)
    now = to_micros(at.now)
    filters, _ = parsed_filters(context, Filters(below=True, include_ended=True))
    found = context.store.recent(context.tenant, filters, now, since=to_micros(begin), most=most)

    notes: list[str] = []

    def happened(name: str, is_it: Callable[[Version], bool]) -> Happenings:
        total, ids = found[name]
        return Happenings(total=total, newest=tuple(filter(None, (_last(reader, each, is_it, notes) for each in ids))))

    receipts, counts = _receipts(context, begin, notes)
    return News(
        head=at.head.name,
        since=begin,
        learned=happened("learned", lambda version: version.record.version == 1),
        changed=happened(
            "changed", lambda version: version.before is None or not has_same_text(version.before, version.record)
        ),
        ended=happened("ended", lambda version: version.record.status is not Status.ACTIVE),
        erased=happened("erased", lambda version: version.record.status is Status.ERASED),
        decisions=_decided(context, receipts, _DECISIONS, notes, counts, most=most),
        refusals=_decided(context, receipts, [_REFUSAL], notes, counts, most=most),
        notes=tuple(dict.fromkeys(notes)),
    )


def _last(
    reader: VisibleReader, memory_id: str, is_it: Callable[[Version], bool], notes: list[str]
) -> Happening | None:
    """Return the last version of a memory that passes, or its expiry; None if it is not visible, or damaged.

    ``notes`` collects a sentence about a damaged one.
    """
    try:
        versions = reader.history(memory_id)
    except (NotFound, Unauthorised):
        return None
    except Tampered as exc:
        notes.append(damage_note(f"memory {memory_id}", str(exc)))
        return None
    if damage := [*versions.notes, *(note for each in versions for note in each.damage)]:
        notes.append(damage_note(f"memory {memory_id}", damage[0]))
        return None
    text = next((each.record.text for each in reversed(versions) if each.record.text), "")
    version = next(filter(is_it, reversed(versions)), None)
    if version is None:
        # It expired, and no job has noted that yet.
        ends = versions[-1].record.expires_at
        if ends is None:
            return None
        return Happening(memory=memory_id, text=text, op="expire", actor=None, at=ends, commit=None, receipt=None)
    return Happening(
        memory=memory_id,
        text="" if version.record.status is Status.ERASED else text,
        op=version.op,
        actor=version.details.actor,
        at=version.commit.at,
        commit=version.commit.id,
        receipt=version.details.receipt,
    )


def _receipts(
    context: RequestContext, since: datetime, notes: list[str]
) -> tuple[list[dict[str, Any]], Mapping[str, int] | None]:
    """Return the receipts of decisions since an instant, newest first, and how many there are of each kind.

    Of many, only the newest are returned. The numbers are None where receipts are damaged, or where there are many and
    the handle does not see them all.
    """
    reader, damaged = VisibleReader(context), False
    found: list[dict[str, Any]] = []
    before: str | None = None
    for _ in range(MAX_COUNTED // _BATCH):
        page = [*reader.receipts_before(before, limit=_BATCH)]
        for before, receipt, is_damaged in page:
            if is_damaged:
                notes.append(damage_note(f"receipt {before}", "it does not match its seal"))
                damaged = True
            if receipt is not None and datetime.fromisoformat(receipt["at"]) < since:
                return found, None if damaged else Counter(each["kind"] for each in found)
            if receipt is not None and receipt["kind"] in {*_DECISIONS, _REFUSAL}:
                found.append(receipt)
        if len(page) < _BATCH:
            return found, None if damaged else Counter(each["kind"] for each in found)
    if damaged or reader.overseen_scopes is not None:
        return found, None
    return found, context.store.decisions_since(context.tenant, since)


def _decided(
    context: RequestContext,
    receipts: Sequence[dict[str, Any]],
    kinds: Collection[str],
    notes: list[str],
    counts: Mapping[str, int] | None,
    *,
    most: int,
) -> Happenings:
    """Return the number of decisions of some kinds, and the newest with their reasons."""
    passing = [each for each in receipts if each["kind"] in kinds]

    def intact_receipts() -> Iterator[dict[str, Any]]:
        for each in passing[:most]:
            try:
                yield explain.receipt(context, each["id"])
            except Tampered as exc:
                notes.append(damage_note(f"receipt {each['id']}", str(exc)))

    newest = [
        Happening(
            memory=None,
            text=next((reason["detail"] for reason in each.get("reasons", ())), ""),
            op=each["kind"],
            actor=each["actor"],
            at=datetime.fromisoformat(each["at"]),
            commit=each.get("commit"),
            receipt=each["id"],
        )
        for each in intact_receipts()
    ]
    total = None if counts is None else sum(counts.get(kind, 0) for kind in kinds)
    return Happenings(total=total, newest=tuple(newest))
