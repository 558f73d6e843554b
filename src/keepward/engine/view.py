"""Views: what the gates are shown of the store, read in one go for each step.

An overlay holds what earlier steps of the same proposal would store, so that a draft is judged as the
state it would make.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

from keepward.engine import nearby
from keepward.engine.features import words
from keepward.engine.kit import Kit, Who
from keepward.errors import Conflict, InvalidInput, NotFound, StaleVersion, Tampered, Unauthorised
from keepward.gates.detect.likeness import Form
from keepward.gates.verdict import View
from keepward.model.change import (
    BOOKKEEPING,
    Append,
    Change,
    Expire,
    Insert,
    Move,
    Promote,
    Replace,
    Restore,
    Retire,
    Revert,
    Supersede,
)
from keepward.model.commit import Step
from keepward.model.journal import CommitView
from keepward.model.memory import Kind, Record, Sensitivity, Status, Tier, importance_at
from keepward.model.query import Filter
from keepward.model.trust import ActorKind, Trust, visible_from
from keepward.model.value import plain_key
from keepward.ports.searching import Likely
from keepward.ports.store import PREFIX, Features, Reader, Slot

#: Candidates for a likeness looked at closely, and the newest holders of one mark that are counted.
ALIKE = 8
#: Of six marks, how many likely duplicates share; of texts that share four fifths of their words, one in 600
#: pairs shares fewer.
SHARED_MARKS = 2
CROWD = 64
_PAGE = 1_000
#: Kinds of actor that work on a whole store: upkeep, and what brings memories in. No token makes one of these.
_WHOLE = frozenset({ActorKind.JOB, ActorKind.SYSTEM, ActorKind.IMPORTER})
_USER_SOURCES = frozenset({"user_message", "user", "chat"})


@dataclass(slots=True)
class Overlay:
    """What the steps judged so far would store."""

    records: dict[str, Record] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    #: Ids by where a memory stands and by mark.
    marks: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    arrivals: Counter[Tier] = field(default_factory=Counter)
    #: Active memories of the tenant by tier when the proposal began; None until asked.
    tally: dict[str, int] | None = None
    #: Ids that new memories would have had, to the memories that said the same already.
    renamed: dict[str, str] = field(default_factory=dict)
    #: By id of a new memory, what was found out about it before it is judged; see ``nearby``.
    ahead: dict[str, tuple[Sequence[Likely], bool]] = field(default_factory=dict)
    #: New memories that no erasure stands against.
    unburied: dict[str, Record] = field(default_factory=dict)
    #: Texts of this proposal as they are compared.
    forms: dict[str, Form] = field(default_factory=dict)
    #: By id, the text that a vector was given for, its model, and the vector as it is kept.
    vectors: dict[str, tuple[str, str, bytes]] = field(default_factory=dict)
    _words: dict[str, tuple[Record, Features]] = field(default_factory=dict)

    def features(self, record: Record) -> Features:
        """Return ``words`` of a record, with the vector that was given for this very text, where one was."""
        text, model, packed = self.vectors.get(record.id, ("", "", b""))
        features = self.words(record)
        return replace(features, model=model, vectors=packed, units=1) if packed and text == record.text else features

    def words(self, record: Record) -> Features:
        """Return the features of a record that need no model, computed once for each form of it."""
        kept = self._words.get(record.id)
        if kept is None or (kept[0] is not record and _spoken(kept[0]) != _spoken(record)):
            form = self.forms.get(record.text)
            if form is None:
                form = self.forms[record.text] = Form(record.text)
            kept = self._words[record.id] = (record, words(record, form))
        return kept[1]

    def take(self, before: Record | None, after: Record) -> None:
        """Add one step."""
        features = self.words(after)
        self.records[after.id] = after
        if before is not None and before.key is not None:
            self.keys.pop((before.scope, before.key), None)
        if after.key is not None and after.status is Status.ACTIVE:
            self.keys[after.scope, after.key] = after.id
        if before is None:
            self.arrivals[after.tier] += 1
        held = self.marks.setdefault(_place(after), {})
        for mark in features.marks:
            held.setdefault(mark, []).append(after.id)

    def similar(self, record: Record, features: Features) -> list[Record]:
        """Return records of this proposal that share marks with one, most first, ties by age, at most 8."""
        held = self.marks.get(_place(record), {})
        crowds = [crowd for mark in features.marks if (crowd := held.get(mark))]
        if len(crowds) < SHARED_MARKS:
            return []
        # Counted in one go: to begin anew for each mark costs as much as the counting.
        shared = Counter(chain.from_iterable([crowd[-CROWD:] for crowd in crowds]))
        shared.pop(record.id, None)
        likely = [(-count, other) for other, count in shared.items() if count >= SHARED_MARKS]
        nearest = heapq.nsmallest(ALIKE, likely)
        return [each for _, other in nearest if (each := self.records[other]).status is Status.ACTIVE]


def _spoken(record: Record) -> tuple[object, ...]:
    """Return what the features of a record depend on."""
    return (
        record.text,
        record.key,
        record.tags,
        record.category,
        record.speaker,
        record.occurred_at,
        record.kind,
        record.created_at,
    )


def _place(record: Record) -> str:
    """Return what must be equal for two memories to be compared."""
    return f"{record.tier._value_} {record.sensitivity._value_} {record.scope}"


def ask_for_sensitive(who: Who) -> None:
    """See that a handle may ask for sensitive memories.

    Raises:
        Unauthorised: it may not.
    """
    if not who.actor.able("sensitive"):
        raise Unauthorised(f"asking for sensitive memories {GRANT} --can read,propose,sensitive`")


#: How a right is got that is no credential's by default.
GRANT = "takes a right of its own: the owner gives it with `keepward token create --name NAME"
#: Stands where the words of a sensitive memory would, for who may not read them.
WITHHELD = "sensitive: ask the owner for a token with the right `sensitive`"


def reaches(who: Who, scope: str) -> bool:
    """Whether a handle sees what lies in a scope: its own and those above, as recall does.

    Who decides about what others said also sees what lies below, and so do the programs that serve a whole store.
    """
    if scope in visible_from(who.scope):
        return True
    oversees = who.actor.may_decide or who.actor.kind in _WHOLE
    return oversees and who.scope in visible_from(scope)


def withholds(who: Who, record: Record) -> bool:
    """Whether a handle may not read what a record says, since it is sensitive."""
    if record.sensitivity is not Sensitivity.SENSITIVE or record.status is Status.ERASED:
        return False
    return not (who.actor.able("sensitive") or who.actor.kind in _WHOLE)


def withheld_from(kit: Kit, who: Who, records: Sequence[Record]) -> frozenset[str]:
    """Return the ids of memories a handle may not read: sensitive as these records have them, or by now."""
    if who.actor.able("sensitive") or not records:
        return frozenset()
    newest = kit.store.records(who.tenant, sorted({record.id for record in records})).records
    return frozenset(record.id for record in (*records, *newest) if withholds(who, record))


def still_shown(kit: Kit, who: Who, records: Sequence[Record]) -> list[Record]:
    """Return records of the past without those that became sensitive since, where the handle may not read that."""
    hidden = withheld_from(kit, who, records)
    return [record for record in records if record.id not in hidden or withholds(who, record)]


def veiled(record: Record) -> Record:
    """Return a record without what it says: whose, where and when it is stay, and how to get at the rest."""
    bare: dict[str, Any] = dict.fromkeys(("key", "subject", "category", "blob", "metadata_json", "session"))
    bare |= dict.fromkeys(("speaker", "job", "occurred_at"))
    return replace(record, text=WITHHELD, tags=(), evidence=(), aliases=(), **bare)


def shown(kit: Kit, who: Who, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps a handle may read: those within reach, without the words of those that are withheld from it.

    Who decides about what others said reaches all of them.
    """
    within = [
        step
        for step in steps
        if who.actor.may_decide or all(reaches(who, side.scope) for side in (step.before, step.after) if side)
    ]
    hidden = withheld_from(kit, who, [side for step in within for side in (step.before, step.after) if side])
    return tuple(
        replace(step, before=step.before and veiled(step.before), after=veiled(step.after))
        if step.after.id in hidden
        else step
        for step in within
    )


def readable(kit: Kit, who: Who, view: CommitView) -> CommitView:
    """Return a commit with what the handle may read of it; without its reason, where words are withheld."""
    steps = shown(kit, who, view.steps)
    hidden = any(step.after.text == WITHHELD for step in steps)
    return replace(without_reason(view) if hidden else view, steps=steps)


def without_reason(view: CommitView) -> CommitView:
    """Return a commit without the words that its writer gave as the reason; its hash still holds."""
    commit = replace(view.commit, salt=b"", payload=None, payload_commit=view.commit.commitment())
    return replace(view, commit=commit, details=replace(view.details, reason=WITHHELD))


def fetch(kit: Kit, who: Who, memory_id: str, *, as_of: int | None = None, own: bool = False) -> Record:
    """Return the newest record of a memory that the handle reaches and may read.

    ``memory_id`` is its id, an alias, its key as seen from the handle's scope, or the first 8 or more characters
    of its id, tried in this order. ``own`` also gives a sensitive memory to the one who wrote it, to change it unread.

    Raises:
        NotFound: no such memory within reach.
        Unauthorised: it is sensitive, and the handle has no right to read that.
        InvalidInput: more than one memory within reach begins so.
        Tampered: its row does not match its seal.
    """
    record = _resolve(kit, who, memory_id, as_of)
    see_readable(kit, who, record, own=own)
    return record


def see_readable(kit: Kit, who: Who, record: Record, *, own: bool) -> None:
    """See that a handle may read a memory, or with ``own`` change one of its own.

    Raises:
        Unauthorised: it may not.
    """
    if not (own and record.author == who.actor.label) and withheld_from(kit, who, [record]):
        raise Unauthorised(f"memory {record.id} is {WITHHELD}")


def _resolve(kit: Kit, who: Who, memory_id: str, as_of: int | None) -> Record:
    found = kit.store.records(who.tenant, [memory_id], as_of=as_of)
    if found.damaged:
        raise Tampered(f"memory {memory_id} does not match its seal and was not used; run `keepward verify`")
    if found.records and reaches(who, found.records[0].scope):
        return found.records[0]
    # The nearest scope wins, as in a context.
    for scope in sorted(visible_from(who.scope), key=lambda each: (-len(each), each)):
        holder = occupant(kit, who, scope, memory_id)
        if holder is not None:
            return holder if as_of is None else _resolve(kit, who, holder.id, as_of)
    if len(memory_id) >= PREFIX:
        begun = kit.store.records(who.tenant, kit.store.beginning(who.tenant, memory_id, limit=CROWD), as_of=as_of)
        within = [record for record in begun.records if reaches(who, record.scope)]
        if len(within) > 1:
            raise InvalidInput("more than one memory begins so; give more of its id")
        if within:
            return within[0]
    raise NotFound("there is no memory by that id or key here; check the id, the tenant and the scope")


def says_the_same(kit: Kit, who: Who, record: Record, version: int) -> bool:
    """Whether nothing but bookkeeping has come between an earlier version of a memory and this newest one."""
    if not 0 < version < record.version:
        return version == record.version
    later = [step for _, step in kit.store.history(who.tenant, record.id) if step.after.version > version]
    return bool(later) and all(step.op in BOOKKEEPING for step in later)


def before_of(kit: Kit, who: Who, change: Change, overlay: Overlay) -> Record | None:
    """Return the record a change builds on, None for a new memory.

    Raises:
        NotFound: the memory is not there, or not within reach.
        Unauthorised: it is sensitive, another's, and the handle has no right to read that.
        StaleVersion: the memory has been changed since the version that ``if_version`` names.
        Conflict: the memory no longer holds, and the change is not one that brings it back; or what is to
            replace it does not hold.
    """
    if isinstance(change, Insert):
        if change.key is None:
            return None
        held = overlay.keys.get((change.scope, change.key))
        there = overlay.records[held] if held else occupant(kit, who, change.scope, change.key)
        if there is not None and not reaches(who, there.scope):
            raise NotFound("this handle does not see that scope, where the key is taken: open the store at that scope")
        if there is not None:
            see_readable(kit, who, there, own=True)
        return there
    before = newest(kit, who, change.id, overlay)
    wanted = getattr(change, "if_version", None)
    # An earlier change of the same proposal is no bookkeeping, so nothing but the newest version will do behind it.
    own = before.id in overlay.records
    if wanted not in {None, before.version} and (own or not says_the_same(kit, who, before, wanted)):
        raise StaleVersion(
            f"memory {before.id} is at version {before.version}, not {wanted}; read it again and decide anew"
        )
    state = before.status_at(kit.clock.now())
    if state is Status.ERASED:
        raise Conflict(f"memory {before.id} was erased and cannot come back; what is left is its tombstone")
    # What was replaced or has run out may still be retired, so that it can be told apart from what is kept.
    ends = isinstance(change, Retire) and state in {Status.SUPERSEDED, Status.EXPIRED}
    ends = ends or (isinstance(change, Expire) and before.status is Status.ACTIVE)
    if not ends and not isinstance(change, Restore | Revert) and state is not Status.ACTIVE:
        raise Conflict(f"memory {before.id} is {state.value}; restore it first")
    if isinstance(change, Supersede):
        _successor(kit, who, change, before, overlay)
    return before


def newest(kit: Kit, who: Who, name: str, overlay: Overlay) -> Record:
    """Return a memory as the proposal has made it so far."""
    held = overlay.records.get(name)
    if held is None:
        held = fetch(kit, who, name, own=True)
        held = overlay.records.get(held.id, held)
    return held


def _successor(kit: Kit, who: Who, change: Supersede, before: Record, overlay: Overlay) -> None:
    """See that what replaces a memory is another one that holds, so that every chain ends in a live memory."""
    by = newest(kit, who, change.by, overlay)
    if by.id == before.id:
        raise Conflict(f"memory {by.id} cannot be replaced by itself; name another")
    if not by.is_live(kit.clock.now()):
        raise Conflict(f"memory {by.id} does not hold and cannot replace another; restore it first")


def occupant(kit: Kit, who: Who, scope: str, key: str) -> Record | None:
    """Return the active memory under a key of exactly one scope; an expired one still holds its key."""
    key = plain_key(key)
    found = kit.store.find(
        who.tenant, Filter(scopes=(scope,), key=key, include_sensitive=True), live_at=None, limit=None
    )
    active = [record for record in found.records if record.status is Status.ACTIVE]
    return active[0] if active else None


def parents_of(kit: Kit, who: Who, change: Change, overlay: Overlay) -> dict[str, Record]:
    """Return the records a new memory names as what it was made from.

    Raises:
        NotFound: one of them is not within reach.
    """
    if not isinstance(change, Insert):
        return {}
    return {parent: newest(kit, who, parent, overlay) for parent in change.derived_from}


def look(kit: Kit, who: Who, change: Change, before: Record | None, after: Record, overlay: Overlay) -> View:
    """Return what the gates may see of the store for one step."""
    now = kit.clock.now()
    writes = isinstance(change, Insert | Replace | Append | Promote | Restore | Revert)
    seen: dict[str, Any] = {"now": now}
    if after.tier is Tier.CORE and writes:
        seen["tokens"] = kit.counter.count(after.text)
    arrives = before is None or before.tier is not after.tier or isinstance(change, Restore)
    if arrives and after.tier in kit.policy.capacity:
        if overlay.tally is None:
            overlay.tally = kit.store.tally(who.tenant)
        count = overlay.tally.get(after.tier._value_, 0) + overlay.arrivals[after.tier]
        full = count >= kit.policy.capacity[after.tier]
        seen |= {"counts": {after.tier: count}, "spare": _spare(kit, who, after.tier) if full else None}
    identity = kit.identity()
    if identity is not None:
        seen["identity_text"] = identity[1]
    claims = getattr(change, "source", None) in _USER_SOURCES and who.actor.kind is ActorKind.AGENT
    if (after.tier is Tier.CORE and after.key == "human") or (claims and after.evidence):
        seen["user_evidence"] = _recorded(kit, who, after.evidence)
    if isinstance(change, Move | Restore):
        _key_is_free(kit, who, after, overlay)
    if isinstance(change, Supersede):
        seen["successor"] = overlay.records.get(change.by) or fetch(kit, who, change.by, own=True)
    if isinstance(change, Restore):
        seen["contained"] = kit.store.history(who.tenant, after.id)[-1][1].op == "contain"
    if not isinstance(change, Insert):
        return View(**seen)
    near = nearby.neighbours(kit, who, after, overlay) if before is None else ()
    revised = (before,) if before is not None else near
    known = overlay.ahead.get(after.id, ((), True))[1]
    past = nearby.echoes(kit, who, revised, after, overlay, known=known)
    return View(**seen, neighbours=near, echoes=past, forms=overlay.forms)


def _key_is_free(kit: Kit, who: Who, after: Record, overlay: Overlay) -> None:
    if after.key is None:
        return
    holder = overlay.keys.get((after.scope, after.key))
    if holder is None:
        stored = occupant(kit, who, after.scope, after.key)
        # What this proposal has touched already holds the key by the overlay alone.
        holder = stored.id if stored is not None and stored.id not in overlay.records else None
    if holder not in {None, after.id}:
        raise Conflict("the key is held by another memory; revise that one, or choose another key")


def least_useful(reader: Reader, tenant: str, records: Sequence[Record], now: datetime) -> list[Record]:
    """Return records in the order in which a full tier gives them up.

    Least important by now first, then least used, least trusted, oldest, by id.
    """
    ids = [record.id for record in records]
    uses: dict[str, tuple[int, datetime]] = {}
    for start in range(0, len(ids), _PAGE):
        uses |= reader.usage(tenant, ids[start : start + _PAGE])

    def useful(record: Record) -> tuple[float, int, Trust, datetime, str]:
        used = uses[record.id][0] if record.id in uses else 0
        return importance_at(record, now), used, record.trust, record.created_at, record.id

    return sorted(records, key=useful)


def _spare(kit: Kit, who: Who, tier: Tier) -> Record | None:
    """Return the least useful memory of a full tier that is not the owner's own."""
    everything = Filter(scopes=(), tiers=(tier.value,), permanent=False, include_sensitive=True)
    found = kit.store.find(who.tenant, everything, live_at=None, limit=None).records
    spares = [record for record in found if record.status is Status.ACTIVE and record.trust is not Trust.OWNER]
    return next(iter(least_useful(kit.store, who.tenant, spares, kit.clock.now())), None)


def _recorded(kit: Kit, who: Who, evidence: tuple[str, ...]) -> frozenset[str]:
    """Return which references are user messages that this store recorded on the user's channel."""
    found = kit.store.records(who.tenant, evidence).records
    messages = [each for each in found if each.source in _USER_SOURCES and each.trust >= Trust.USER]
    names = {name for record in messages for name in (record.id, *record.aliases)}
    return frozenset(names & set(evidence))


def digest_slot(record: Record, features: Features) -> Slot | None:
    """Return the slot that must still be free when a new text is written, None where repeats are allowed."""
    if record.kind is Kind.EVENT or record.key is not None:
        return None
    sensitive = Sensitivity(record.sensitivity)
    return record.tier.value, record.scope, sensitive.value, record.subject, features.digest
