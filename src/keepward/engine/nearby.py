"""Nearby: which memories may say what a new one says, found for a whole batch at once and read only where they matter.

Invariants
(1) A memory matters to the gates when it is the nearest, when its text may state the same, or when it was revised
    before; the others are left out unread, and their order is that of the store.
(2) What lies ahead of a batch is asked once, on one state of the store; a commit in between makes the whole batch
    be judged anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keepward.engine.features import text_digest
from keepward.engine.kit import Kit, Who
from keepward.engine.tombstones import revived
from keepward.model.memory import Kind, Record, Tier
from keepward.ports.searching import Likely

if TYPE_CHECKING:
    from keepward.engine.view import Overlay

#: Versions of a memory that are looked through for a text that was corrected.
REVISED = 50


def look_ahead(kit: Kit, who: Who, records: Sequence[Record], overlay: Overlay) -> None:
    """Ask the store about new memories that are about to be judged one by one."""
    fresh = [(record, overlay.words(record)) for record in records]
    if not fresh:
        return
    found = kit.store.likely(who.tenant, fresh, kit.clock.now())
    overlay.ahead = {record.id: each for (record, _), each in zip(fresh, found, strict=True)}
    if revived(kit, who.tenant, *records) is None:
        overlay.unburied = {record.id: record for record in records}


def neighbours(kit: Kit, who: Who, after: Record, overlay: Overlay) -> tuple[Record, ...]:
    """Return the memories that matter to whether a new one is a duplicate, the nearest first (1)."""
    if after.kind is Kind.EVENT and after.tier is Tier.EPISODIC and after.aliases:
        # Events are compared by name, not by likeness.
        mine = [record for record in overlay.records.values() if set(record.aliases) & set(after.aliases)]
        return (*mine, *kit.store.records(who.tenant, after.aliases).records)
    features = overlay.words(after)
    found: list[Record] = []
    for record in overlay.similar(after, features):
        theirs = overlay.words(record)
        kindred = theirs.trait == features.trait or theirs.digest == features.digest
        if not found or kindred or record.version > 1:
            found.append(record)
    wanted: list[str] = []
    for each in _likely(kit, who, after, overlay):
        if each.id in overlay.records:
            continue
        # 0: its version is not known before it is read.
        if each.kindred or not (found or wanted) or each.version != 1:
            wanted.append(each.id)
    if wanted:
        place = (after.scope, after.tier, after.sensitivity)
        now = kit.clock.now()
        read = kit.store.records(who.tenant, wanted).records
        found += (each for each in read if each.is_live(now) and (each.scope, each.tier, each.sensitivity) == place)
    return tuple(found)


def _likely(kit: Kit, who: Who, after: Record, overlay: Overlay) -> Sequence[Likely]:
    known = overlay.ahead.get(after.id)
    if known is None:
        ((likely, has_digest),) = kit.store.likely(who.tenant, [(after, overlay.words(after))], kit.clock.now())
        known = overlay.ahead[after.id] = (likely, has_digest)
    return known[0]


def echoes(
    kit: Kit, who: Who, revised: Sequence[Record], after: Record, overlay: Overlay, *, known: bool
) -> tuple[Record, ...]:
    """Return what said the same and does not any more: earlier versions of these records, and superseded memories.

    ``known`` is whether any memory of the tenant may have the text.
    """
    if after.kind not in {Kind.FACT, Kind.RULE}:
        # A state comes and goes; that it is as it was before is news.
        return ()
    digest = overlay.words(after).digest
    earlier: list[Record] = []
    for record in revised:
        # A fact that was corrected more often than that is a state in all but name.
        if not 1 < record.version <= REVISED or record.kind is Kind.STATE or text_digest(record.text) == digest:
            continue
        history = (step.after for _, step in kit.store.history(who.tenant, record.id))
        earlier += [version for version in history if text_digest(version.text) == digest]
    old = kit.store.superseded(who.tenant, after.scope, digest).records if known else []
    return (*earlier, *old)
