"""What a person looks at to decide: the queue by windows, and what bears on one proposal.

Invariants
(1) Every row that is counted or shown matches its seal.
(2) Between two windows no proposal is read again unless it was written anew in between, which its seal tells; what is
    held for that is who, why and where, and no text.
(3) A reviewer sees every field of the payload, byte for byte, but that every character no reader sees is written as
    ``⟦U+200B⟧``; two payloads that differ never look the same.
(4) What is opened for a decision is no more than who decides may read; nothing is written and no use is counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from keepward.engine.read import search
from keepward.engine.review import as_read, compared, proposal, within_reach
from keepward.engine.session import Session
from keepward.engine.view import handed_in, proven, reaches, veiled, withheld_from
from keepward.errors import KeepwardError, Unauthorised
from keepward.gates.detect.text import show_invisible
from keepward.model.codec import encode_record
from keepward.model.memory import VERSION_FIELDS, Record
from keepward.model.proposal import Background, Evidence, Queue, Reached, Shown, Similar, Waiting
from keepward.model.query import Filter, check_limit
from keepward.model.trust import visible_from
from keepward.model.value import from_micros

#: Most memories that are shown as similar.
ALIKE = 5
#: From so many proposals on all of them are read at once.
_MANY = 500
#: Of a text, so many characters are looked for.
GIST = 2_000
#: What each gate looks for, for somebody who reads it the first time.
MEANING: Mapping[str, str] = {
    "secrets": "It looks for passwords, keys and tokens, which memory never keeps.",
    "privacy": "It looks for data about persons, which stays only where the person agreed.",
    "injection": "It looks for text that gives orders to a model that reads it.",
    "ethics": "It looks for what the rules of the owner keep out of memory.",
    "shape": "It looks whether a memory is complete and of a usable form.",
    "noise": "It looks for what is not worth remembering.",
    "authority": "It asks whether who proposes this may change it alone.",
    "confidence": "It asks whether the proposer is sure enough.",
    "duplicate": "It looks for what is remembered already or was corrected before.",
    "capacity": "It asks whether there is room.",
    "jobs": "It keeps an automatic step from putting away too much at once.",
}


@dataclass(frozen=True, slots=True)
class Row:
    """What the queue is sorted, filtered and counted by (2)."""

    id: str
    state: str
    created_at: datetime
    until: datetime
    proposer: str
    gates: tuple[str, ...]
    tiers: tuple[str, ...]
    ops: tuple[str, ...]
    #: Of what it would change, before and after.
    scopes: frozenset[str]


def queue(
    session: Session,
    *,
    state: str = "pending",
    proposer: str | None = None,
    gate: str | None = None,
    tier: str | None = None,
    offset: int = 0,
    limit: int = 50,
) -> Queue:
    """Return one window of the proposals that a handle may read, oldest first, and how many there are.

    ``counts`` has, of all that have the state, how many there are by proposer, gate, tier and operation.
    """
    check_limit(limit)
    now = session.clock.now()
    known = [each for each in _rows(session) if state in {"all", _state(each, now)}]
    chosen = [
        each
        for each in known
        if (proposer in {None, each.proposer})
        and (gate is None or gate in each.gates)
        and (tier is None or tier in each.tiers)
    ]
    ids = [each.id for each in chosen[offset : offset + limit]]
    found = {each.id: each for each in session.store.proposals(session.tenant, ids)}
    read = (within_reach(session, as_read(session, found[each])) for each in ids if each in found)
    counts = {
        "proposer": Counter(each.proposer for each in known),
        "gate": Counter(gate for each in known for gate in each.gates),
        "tier": Counter(tier for each in known for tier in each.tiers),
        "op": Counter(op for each in known for op in each.ops),
    }
    return Queue(
        items=tuple(compared(session, [item for item in read if item is not None])),
        offset=offset,
        total=len(chosen),
        counts={name: dict(sorted(each.items())) for name, each in counts.items()},
        oldest_at=chosen[0].created_at if chosen else None,
    )


def waiting_rows(session: Session) -> list[Row]:
    """Return the rows of the proposals that wait, of those that a handle may read, oldest first."""
    now = session.clock.now()
    return [each for each in _rows(session) if _state(each, now) == "pending"]


def ran_out(session: Session) -> int:
    """Return how many proposals expired undecided and can be reopened, of those that a handle may read.

    Those of jobs are left out: a job asks again. Of a body that was dropped no operation is left.
    """
    now = session.clock.now()
    old = (each for each in _rows(session) if _state(each, now) == "expired" and each.ops)
    return sum(not each.proposer.startswith("job:") for each in old)


def _state(row: Row, now: datetime) -> str:
    return "expired" if row.state == "pending" and row.until <= now else row.state


def _rows(session: Session) -> list[Row]:
    """Return the rows of what a handle may read of the tenant's queue, oldest first; see (2)."""
    store, tenant = session.store, session.tenant
    writes = store.writes(tenant)
    when, known = session.engine.queues.get(tenant, (None, {}))
    if when != writes:
        marks = store.queue_marks(tenant)
        anew = [name for name, mark in marks.items() if name not in known or known[name][0] != mark]
        bodies = store.queue_bodies(tenant, None if len(anew) > _MANY else anew)
        read = {body["id"]: _row_in(body) for body in bodies}
        # What does not hold is not among the rows, and is looked at anew the next time.
        known = {
            name: (mark, read[name]) if name in read else known[name]
            for name, mark in marks.items()
            if name in read or (name in known and known[name][0] == mark)
        }
        session.engine.queues[tenant] = (writes, known)
    rows = [row for _, row in known.values()]
    if session.actor.may_decide:
        return rows
    # Of thousands most lie in the same scopes.
    within = {scopes: all(reaches(session, at) for at in scopes) for scopes in {row.scopes for row in rows}}
    return [row for row in rows if within[row.scopes]]


def _row_in(body: Mapping[str, Any]) -> Row:
    """Return the row of a proposal from its JSON values."""
    steps, proposer = body["steps"], body["proposer"]
    sides = [[step[side] for side in ("before", "after") if step[side]] for step in steps]
    return Row(
        body["id"],
        body["state"],
        datetime.fromisoformat(body["created_at"]),
        datetime.fromisoformat(body["expires_at"]),
        f"{proposer['kind']}:{proposer['name']}",
        tuple(dict.fromkeys(each["gate"] for each in body["reasons"])),
        tuple(dict.fromkeys(after["tier"] for *_, after in sides)),
        tuple(dict.fromkeys(each["op"] for each in steps)),
        frozenset(record["scope"] for step in sides for record in step),
    )


def background(session: Session, proposal_id: str) -> Background:
    """Return what bears on a decision: what each gate looks for, evidence opened, what is similar, whom it reached.

    Raises:
        Unauthorised: it takes a reviewer or the owner.
        NotFound: there is no such proposal.
    """
    if not session.actor.may_decide:
        raise Unauthorised("what bears on a proposal spans every scope; it takes a reviewer or the owner")
    item = proposal(session, proposal_id)
    own = {step.after.id for step in item.steps}
    texts = [step.after for step in item.steps if step.before is None or step.before.text != step.after.text]
    before = {step.after.id: step.before for step in item.steps if step.before is not None}
    return Background(
        id=item.id,
        meaning={each.gate: MEANING[each.gate] for each in item.reasons if each.gate in MEANING},
        evidence=_evidence(session, dict.fromkeys(ref for step in item.steps for ref in step.after.evidence)),
        similar=_similar(session, texts[0], own) if texts else (),
        reached=_reached(session, before) if before else None,
    )


def _evidence(session: Session, references: Iterable[str]) -> tuple[Evidence, ...]:
    named = list(references)
    records = session.store.records(session.tenant, named).records
    hidden = withheld_from(session, records)
    # Under the names that they were asked for by.
    known = {
        name: replace(veiled(each), aliases=each.aliases) if each.id in hidden else each
        for each in records
        for name in (each.id, *each.aliases)
    }
    return tuple(Evidence(reference=each, memory=known.get(each)) for each in named)


def _similar(session: Session, record: Record, own: set[str]) -> tuple[Similar, ...]:
    sensitive = session.actor.able("sensitive")
    filters = Filter(scopes=visible_from(record.scope), include_sensitive=sensitive)
    try:
        asked = {"limit": ALIKE + len(own), "purpose": "answer", "order": "fused"}
        found = search(session, record.text[:GIST], filters, **asked, gated=not sensitive)  # type: ignore[arg-type]
    except KeepwardError:
        # A decision does not wait for what only helps with it, such as a model that cannot be asked now.
        return ()
    hits = [each for each in found.hits if each.memory.id not in own][:ALIKE]
    return tuple(Similar(memory=each.memory, score=each.score, why=each.why) for each in hits)


def _reached(session: Session, before: Mapping[str, Record]) -> Reached:
    """Return how many contexts held what a proposal would change, as it stands, and the last of them."""
    held = handed_in(session, dict.fromkeys(before, 1))
    newest = (proven(session, name, held[name]) for name in sorted(held, reverse=True))
    return Reached(contexts=len(held), last=next(filter(None, newest), None))


def legible(text: str) -> str:
    """Return a text with every character that no reader sees written out, as ``⟦U+200B⟧``.

    A text that holds such a mark itself has its bracket written out too, so that it cannot pass for one.
    """
    return show_invisible(text.replace("⟦U+", "⟦U+27E6⟧U+"))


def for_review(item: Waiting, blob: Callable[[str], str] | None = None) -> list[Shown]:
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
    names = sorted((old.keys() | new.keys()) - VERSION_FIELDS - {"v"})
    differing = [name for name in names if old.get(name) != new.get(name)]
    if blob is not None and "blob" in differing:
        old, new = ({**side, "blob": blob(side["blob"])} if "blob" in side else side for side in (old, new))
    return tuple((name, _as_text(name, old.get(name)), _as_text(name, new.get(name))) for name in differing)


def _as_text(name: str, value: object) -> str | None:
    if value is None:
        return None
    if name in {"confidence", "importance"} and isinstance(value, int):
        return f"{value / 10_000:g}"
    if name in {"expires_at", "occurred_at"} and isinstance(value, int):
        return from_micros(value).isoformat()
    return legible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
