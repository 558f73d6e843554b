"""What an agent was handed lately: the least trusted origin of what it read, which marks what it writes.

An agent that read a page and then remembers "the supplier's new account is ..." says it in its own words; nothing in
the text tells where it came from. What it was handed does.

Invariants
(1) Known for each principal of a tenant, by its token or its name, for ``LATELY`` after it was handed something.
(2) What other processes handed it stands in their receipts: a context leaves one, and so does a recall that handed out
    something of an origin of which there was none lately. The journal is not written.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from keepward.engine.kit import Handed, Kit, Who
from keepward.model.memory import Record
from keepward.model.trust import Actor, ActorKind, Trust
from keepward.model.value import to_micros

#: How long what was handed counts.
LATELY = timedelta(hours=1)
_BY_LABEL = {each.label: each for each in Trust}


def principal(actor: Actor) -> str:
    """Return what tells one bearer from another: its token, else its kind and name."""
    return actor.credential or actor.label


def note(kit: Kit, who: Who, records: Iterable[Record]) -> Trust | None:
    """Note what is handed to an agent; return its least trust where that is below an agent's and is news (2)."""
    if who.actor.kind is not ActorKind.AGENT or not kit.policy.mark_what_was_read:
        return None
    least = min((record.effective_trust for record in records), default=Trust.AGENT)
    if least >= Trust.AGENT:
        return None
    of, key, now = kit.handed.setdefault(who.tenant, Handed()), (principal(who.actor), least), kit.clock.now()
    before = of.last.get(key)
    of.last[key] = now
    return least if before is None or now - before > LATELY / 2 else None


def facts(who: Who, records: Iterable[Record]) -> dict[str, str]:
    """Return what a receipt says of what was handed: nothing, where none of it is below an agent's trust."""
    if who.actor.kind is not ActorKind.AGENT:
        return {}
    least = min((record.effective_trust for record in records), default=Trust.AGENT)
    return {"handed": least.label, "to": principal(who.actor)} if least < Trust.AGENT else {}


def least(kit: Kit, who: Who) -> Trust | None:
    """Return the least trust of what an agent was handed lately, where that is below its own; None otherwise."""
    if who.actor.kind is not ActorKind.AGENT or not kit.policy.mark_what_was_read:
        return None
    now = kit.clock.now()
    of = kit.handed.setdefault(who.tenant, Handed())
    _read(kit, who.tenant, of, now)
    mine = principal(who.actor)
    lately = [trust for (name, trust), at in of.last.items() if name == mine and now - at <= LATELY]
    return min(lately, default=None)


def _read(kit: Kit, tenant: str, of: Handed, now: datetime) -> None:
    """Take over what receipts of other processes say."""
    millis = to_micros(now - LATELY) // 1000
    begin = f"{millis >> 16:08x}-{millis & 0xFFFF:04x}"
    for receipt in kit.store.handed(tenant, max(begin, of.read)):
        of.read = max(of.read, receipt["id"])
        trust = _BY_LABEL.get(receipt.get("handed", ""))
        if trust is not None and isinstance(receipt.get("to"), str):
            key, at = (receipt["to"], trust), datetime.fromisoformat(receipt["at"])
            of.last[key] = max(at, of.last.get(key, at))
