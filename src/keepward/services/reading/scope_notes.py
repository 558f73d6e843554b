"""Notes on results: memories in scopes below that were not read, and scopes whose names differ only in case.

They are added to what an operation returns and stored in no receipt, because who may read a receipt may not be allowed
to see these scopes. Each takes one lookup in an index of scopes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from keepward.core.commit import Reason
from keepward.core.compiled import CompiledContext
from keepward.core.memory import Record
from keepward.core.messages import Added
from keepward.core.principals import SHARED_SCOPE
from keepward.core.proposal import Committed, Duplicate, Outcome, Quarantined
from keepward.core.query import Memories, Recall
from keepward.core.value import pluralize
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import RequestContext

#: Memories below that are counted, and scopes that a note names.
MAX_COUNTED, MAX_NAMED = 100, 3
#: Arguments of a read that choose its scopes, or another time.
_CHOOSING = ("as_of", "within", "below", "scopes")
_STORED = (Committed, Quarantined, Duplicate)
#: Results of reads that have notes.
READS: tuple[type, ...] = (Recall, CompiledContext, Memories)


def notes_of_read(context: RequestContext, args: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the notes on scopes that a read with these arguments needs."""
    return (*_below_notes(context, args), *_case_notes(context, VisibleReader(context).scopes))


def with_notes(result: Any, notes: tuple[str, ...]) -> Any:
    """Return the result of a read with these notes."""
    if not notes:
        return result
    return replace(result, notes=(*result.notes, *notes))


def with_reasons(context: RequestContext, result: Any) -> Any:
    """Return the result of a write of memories with the notes on scopes that it needs."""
    if isinstance(result, Added):
        notes = _case_notes(context, [context.scope])
        return replace(result, notes=(*result.notes, *notes)) if notes else result
    if isinstance(result, _STORED):
        return _with_reasons(result, _case_notes(context, _scopes_of([result])))
    if isinstance(result, list) and result and isinstance(result[0], Outcome):
        # One outcome says it for all.
        return [_with_reasons(result[0], _case_notes(context, _scopes_of(result))), *result[1:]]
    return result


def _below_notes(context: RequestContext, args: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a note on memories in scopes below, if the handle may list them and the read did not choose its scopes."""
    policy = context.policy
    if any(args.get(name) for name in _CHOOSING) or not (policy.enabled and policy.recall):
        return ()
    counts, may_be_more = VisibleReader(context).scopes_below(limit=MAX_COUNTED)
    if not counts:
        return ()
    count, named = sum(counts.values()), list(counts)[:MAX_NAMED]
    memories = f"{'at least ' if may_be_more else ''}{pluralize(count, 'memory', 'memories')} in scopes below"
    verb = "was" if count == 1 and not may_be_more else "were"
    scopes = ", ".join(named) + (", …" if may_be_more or len(counts) > len(named) else "")
    return (f'{memories} {verb} not read ({scopes}); at(scope="{named[0]}") or --scope {named[0]} reads there',)


def _case_notes(context: RequestContext, scopes: Iterable[str]) -> tuple[str, ...]:
    """Return a note for each of some scopes that has memories under a name that differs only in case."""
    wanted = sorted({*scopes} - {SHARED_SCOPE})
    pairs = VisibleReader(context).scopes_in_other_case(wanted) if wanted else []
    return tuple(
        f"{scope} and {other} differ only in upper and lower case and are two names; use one spelling"
        for scope, other in pairs[:MAX_NAMED]
    )


def _scopes_of(outcomes: Iterable[Outcome]) -> set[str]:
    return {record.scope for outcome in outcomes for record in _records_of(outcome)}


def _records_of(outcome: Outcome) -> Iterable[Record]:
    return [step.after for step in outcome.item.steps] if isinstance(outcome, Quarantined) else outcome.records


def _with_reasons(outcome: Outcome, notes: Iterable[str]) -> Outcome:
    reasons = tuple(Reason(gate="scope", code="other_case", detail=note) for note in notes)
    return replace(outcome, reasons=(*outcome.reasons, *reasons)) if reasons else outcome
