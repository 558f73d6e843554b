"""Record what an agent reads, and say what it has read lately; see ``ReadTaint``."""

from __future__ import annotations

from collections.abc import Iterable

from keepward.core.memory import Record
from keepward.core.principals import ActorKind, Trust
from keepward.services.read_taint import TAINT_WINDOW, actor_key
from keepward.services.request_context import RequestContext


def _lowest_trust(session: RequestContext, records: Iterable[Record]) -> Trust | None:
    """Return the lowest trust of what an agent reads, if below the agent's own; else None."""
    if session.actor.kind is not ActorKind.AGENT:
        return None
    lowest = min((record.effective_trust for record in records), default=Trust.AGENT)
    return lowest if lowest < Trust.AGENT else None


def record_read(session: RequestContext, records: Iterable[Record]) -> Trust | None:
    """Record a read of an agent; return its lowest trust if that is below an agent's and newly recorded."""
    lowest = _lowest_trust(session, records) if session.policy.mark_what_was_read else None
    if lowest is None:
        return None
    now = session.clock.now()
    before = session.engine.taint_of(session.tenant).note(actor_key(session.actor), lowest, now)
    return lowest if before is None or now - before > TAINT_WINDOW / 2 else None


def taint_fields(session: RequestContext, records: Iterable[Record]) -> dict[str, str]:
    """Return the fields of a receipt about a read of low trust; none if its trust is not below an agent's."""
    lowest = _lowest_trust(session, records)
    return {} if lowest is None else {"handed": lowest.label, "to": actor_key(session.actor)}


def lowest_trust_read(session: RequestContext) -> Trust | None:
    """Return the lowest trust of what an agent has read lately, if below the agent's own; else None.

    Reads through other processes are found in their receipts, once for each state of the tenant.
    """
    if session.actor.kind is not ActorKind.AGENT or not session.policy.mark_what_was_read:
        return None
    taint, now = session.engine.taint_of(session.tenant), session.clock.now()
    taint.learn(session.store, session.tenant, now)
    return taint.lowest({actor_key(actor) for actor in (session.actor, *session.via)}, now)
