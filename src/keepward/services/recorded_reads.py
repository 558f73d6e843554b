"""Record what an agent reads, and say what it has read lately; see ``ReadTaint``."""

from __future__ import annotations

from collections.abc import Iterable

from keepward.core.memory import Record
from keepward.core.principals import ActorKind, Trust
from keepward.services.read_taint import TAINT_WINDOW, actor_key
from keepward.services.request_context import RequestContext


def _lowest_trust(context: RequestContext, records: Iterable[Record]) -> Trust | None:
    """Return the lowest trust of what an agent reads, if below the agent's own; else None."""
    if context.actor.kind is not ActorKind.AGENT:
        return None
    lowest = min((record.effective_trust for record in records), default=Trust.AGENT)
    return lowest if lowest < Trust.AGENT else None


def record_read(context: RequestContext, records: Iterable[Record]) -> Trust | None:
    """Record a read of an agent; return its lowest trust if that is below an agent's and newly recorded."""
    lowest = _lowest_trust(context, records) if context.policy.mark_what_was_read else None
    if lowest is None:
        return None
    now = context.clock.now()
    before = context.engine.taint_of(context.tenant).note(actor_key(context.actor), lowest, now)
    return lowest if before is None or now - before > TAINT_WINDOW / 2 else None


def taint_fields(context: RequestContext, records: Iterable[Record]) -> dict[str, str]:
    """Return the fields of a receipt about a read of low trust; none if its trust is not below an agent's."""
    lowest = _lowest_trust(context, records)
    return {} if lowest is None else {"handed": lowest.label, "to": actor_key(context.actor)}


def lowest_trust_read(context: RequestContext) -> Trust | None:
    """Return the lowest trust of what an agent has read lately, if below the agent's own; else None.

    Reads through other processes are found in their receipts, once for each state of the tenant.
    """
    if context.actor.kind is not ActorKind.AGENT or not context.policy.mark_what_was_read:
        return None
    taint, now = context.engine.taint_of(context.tenant), context.clock.now()
    taint.learn(context.store, context.tenant, now)
    return taint.lowest({actor_key(actor) for actor in (context.actor, *context.via)}, now)
