"""The start of a session: what a coding agent is shown before the first prompt, by kind and without a question.

Shown are core, permanent memories and rules, states, working notes, preferences, facts of the project, and the
assistant's last message of the last session. Prompts of a user and summaries, which may quote prompts, are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from keepward.context.compiler import MAX_PINNED_RULES, compile_context
from keepward.context.sections import Entry
from keepward.core.compiled import CompiledContext
from keepward.core.memory import Kind, Record, Tier
from keepward.core.principals import Trust, main_scope, project_of
from keepward.core.query import Filter
from keepward.services.access import require_core
from keepward.services.reading.contexts import ContextRequest, GatheredInput, gather, result_of, save_receipt
from keepward.services.reading.visible import VisibleReader
from keepward.services.recorded_reads import record_read
from keepward.services.request_context import RequestContext
from keepward.services.search.features import mentions_preference

#: A longer message of an assistant is not shown, in characters.
MAX_REPLY_LENGTH: Final = 300
#: Newest rules, facts and states among which preferences are found; newest events among which the last message of an
#: assistant is found.
MAX_READ, MAX_EVENTS = 1_000, 200
#: Newest preferences, and newest facts, that are shown.
MAX_PREFERENCES, MAX_FACTS = 30, 10
#: Facts leave first if room is short, and come after what guides every answer.
_GUIDING, _OTHER = 1.0, 0.4


def session_start(
    context: RequestContext, conversation: str, *, budget_tokens: int, recorded: bool = True
) -> CompiledContext:
    """Compile what the session of this name begins with; the text is empty if there is nothing.

    With ``recorded=False`` it reaches no model: it has no receipt and counts no use.

    Raises:
        Tampered: a core block was edited outside Keepward or is missing.
        ContextTooSmall: core memory alone exceeds the budget.
    """
    gathered = gather(context, "", ContextRequest(budget_tokens=budget_tokens))
    require_core(gathered.withheld, ())
    gathered = _with_chosen(context, gathered, conversation)
    inputs, compiled = gathered.inputs, compile_context(gathered.inputs)
    if not recorded:
        return result_of(gathered, compiled, None, ())
    included = {item.id for section in compiled.sections for item in section.items}
    recalled = [candidate.record for candidate in inputs.recalled]
    groups = (inputs.core, inputs.pinned, inputs.state, inputs.working, recalled)
    delivered = [record for records in groups for record in records if record.id in included]
    record_read(context, delivered)
    return result_of(gathered, compiled, *save_receipt(context, gathered, compiled, delivered))


def last_reply(context: RequestContext, *, conversation: str | None = None) -> Record | None:
    """Return the newest message of an assistant at this scope, or in one session; None if there is none."""
    scopes = tuple(dict.fromkeys((context.scope, main_scope(context.scope))))
    events = Filter(scopes=scopes, kinds=(Kind.EVENT.value,), session=conversation)
    found = VisibleReader(context).find(events, live_at=context.clock.now(), limit=MAX_EVENTS).records
    return next((record for record in found if record.metadata.get("role") == "assistant"), None)


def _with_chosen(context: RequestContext, gathered: GatheredInput, conversation: str) -> GatheredInput:
    """Return the input of a context with rules, preferences, facts and the last message."""
    inputs = gathered.inputs
    if not (context.policy.enabled and context.policy.recall):
        return gathered
    kinds = (Kind.RULE.value, Kind.FACT.value, Kind.STATE.value)
    found = (
        VisibleReader(context)
        .find(
            Filter(scopes=VisibleReader(context).scopes, kinds=kinds, permanent=False),
            live_at=inputs.now,
            limit=MAX_READ,
        )
        .records
    )
    shown = {record.id for records in (inputs.core, inputs.pinned, inputs.state, inputs.working) for record in records}
    listed = [
        record
        for record in found
        if record.trust >= Trust.AGENT and record.id not in shown and record.holds_at(inputs.now)
    ]
    rules = [record for record in listed if record.kind is Kind.RULE]
    facts = [record for record in listed if record.kind is not Kind.RULE]
    preferences = [record for record in facts if mentions_preference(record)]
    preferred = {record.id for record in preferences}
    facts = [record for record in facts if record.id not in preferred and _is_own(context, record)]
    reply = last_reply(context)
    replies = [] if reply is None or reply.session == conversation or len(reply.text) > MAX_REPLY_LENGTH else [reply]
    # Rules are listed with the permanent ones, as far as a context lists them; these come first.
    pinned = [record for record in inputs.pinned if record.kind is Kind.RULE and record.holds_at(inputs.now)]
    room = max(0, MAX_PINNED_RULES - len(pinned))
    guides = [*rules[room:], *preferences[:MAX_PREFERENCES], *replies]
    chosen = replace(
        inputs,
        pinned=[*inputs.pinned, *rules[:room]],
        working=[record for record in inputs.working if record.kind not in {Kind.EVENT, Kind.SUMMARY}],
        recalled=[*_ranked(guides, _GUIDING), *_ranked(facts[:MAX_FACTS], _OTHER)],
    )
    return replace(gathered, inputs=chosen)


def _is_own(context: RequestContext, record: Record) -> bool:
    """Whether a fact is one of this project; without a project, of exactly this scope. Working notes have a section."""
    project = project_of(context.scope)
    own = project_of(record.scope) == project if project else main_scope(record.scope) == main_scope(context.scope)
    return own and record.tier is Tier.ARCHIVAL


def _ranked(records: Iterable[Record], score: float) -> list[Entry]:
    return [Entry(record=record, score=score, strength=score) for record in records]
