"""Recall, lists and counts with the parameters of callers: parse names and instants, keep to what is visible."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from keepward.core.browse import Activity, Facets, Sources
from keepward.core.filters import parse_where
from keepward.core.memory import Record, Status, as_read
from keepward.core.principals import RESERVED_SCOPE, parse_scope
from keepward.core.query import AsOf, Filter, Filters, Memories, Order, Purpose, Recall
from keepward.core.value import plain_key, plain_name, to_micros
from keepward.gates.content import redact_personal_data, redact_secrets
from keepward.services.arguments import instant, valid_scope
from keepward.services.reading import lists
from keepward.services.reading import recall as read
from keepward.services.reading.recall import models_used
from keepward.services.reading.visible import VisibleReader
from keepward.services.recorded_reads import record_read
from keepward.services.request_context import RequestContext
from keepward.services.transaction import save_read_receipt

#: Filters that name several values.
_MULTIPLE = ("tiers", "kinds", "content_types", "sources", "trusts", "statuses", "authors")
_INSTANTS = ("since", "until", "occurred_since", "occurred_until")
#: Filters that the recall index cannot apply; with one of them ``list_memories`` returns a page with a total.
_NARROWING = (*_INSTANTS, "within", "where")
_COUNTED = ("scopes", "sources", "trusts", "statuses", "authors", "text", "below")


def recall(
    context: RequestContext,
    /,
    query: str,
    *,
    limit: int = 10,
    purpose: Purpose = "answer",
    as_of: AsOf = None,
    order: Order = "learned",
    floor: float | None = None,
    receipt: bool = False,
    **filters: Any,
) -> Recall:
    """Answer a query; save a receipt if the caller asked for one or the read must be recorded."""
    options: dict[str, Any] = {"limit": limit, "purpose": purpose, "as_of": as_of, "order": order, "floor": floor}
    chosen = filters_of(filters)
    result = _ranked(context, query, chosen, options)
    new_taint = record_read(context, [hit.memory for hit in result.hits])
    if receipt or new_taint is not None:
        saved = save_recall_receipt(context, query, purpose, result)
        result = saved if receipt else result
    return replace(result, hits=tuple(replace(hit, memory=as_read(hit.memory, result.now)) for hit in result.hits))


def find(
    context: RequestContext,
    /,
    *,
    as_of: AsOf = None,
    key: str | None = None,
    job: str | None = None,
    limit: int | None = 50,
    offset: int | None = None,
    sort: str = "created",
    ascending: bool = False,
    **given: Any,
) -> Memories:
    """Return the memories that pass all filters; a page with a total if the caller asked for one."""
    asked = Filters(**given)
    reader = VisibleReader(context).within(_within(asked))
    filters = replace(parsed_filters(asked, reader), key=None if key is None else plain_key(key), job=_name(job))
    counted = is_counted(given, offset=offset, sort=sort, ascending=ascending)
    page: dict[str, Any] = {"sort": sort, "ascending": ascending, "offset": offset or 0, "limit": limit}
    memories = lists.list_page(context, filters, reader, as_of=as_of, counted=counted, **page)
    record_read(context, memories)
    return memories


def is_counted(given: dict[str, Any], *, offset: int | None, sort: str, ascending: bool) -> bool:
    """Return whether ``list_memories`` answers with a page and a total."""
    return (
        offset is not None
        or sort != "created"
        or ascending
        or any(given.get(name) for name in _COUNTED)
        or any(given.get(name) is not None for name in _NARROWING)
    )


def get(context: RequestContext, /, memory_id: str, *, as_of: AsOf = None) -> Record:
    """Return a memory by id or alias, whatever its status."""
    record = read.get(context, memory_id, as_of=as_of)
    record_read(context, [record])
    return record


def facets(context: RequestContext, /, *, filters: Filters | None = None, **options: Any) -> Facets:
    """Return how many memories pass, and how many have each value."""
    asked = filters or Filters()
    reader = VisibleReader(context).within(_within(asked))
    return lists.facets(context, parsed_filters(asked, reader), reader, **options)


def activity(
    context: RequestContext, /, *, filters: Filters | None = None, by: str = "author", days: int = 30, zone: int = 0
) -> Activity:
    """Return how many versions were written on each day."""
    asked = replace(filters or Filters(), include_ended=True)
    reader = VisibleReader(context).within(_within(asked))
    return lists.activity(context, parsed_filters(asked, reader), reader, by=by, days=days, zone=zone)


def sources(context: RequestContext, /, *, filters: Filters | None = None, name: str | None = None) -> Sources:
    """Return what each actor, source, reference and session wrote."""
    asked = replace(filters or Filters(), include_ended=True)
    reader = VisibleReader(context).within(_within(asked))
    return lists.sources(context, parsed_filters(asked, reader), reader, name=name)


def filters_of(given: dict[str, Any]) -> Filters:
    """Return the filters of a search; sensitive memories are excluded by default."""
    return Filters(**{"include_sensitive": False} | given)


def _ranked(context: RequestContext, query: str, filters: Filters, options: dict[str, Any]) -> Recall:
    narrow = parsed_filters(filters, VisibleReader(context))
    if filters.include_sensitive:
        VisibleReader(context).check_sensitive()
    within = None
    if any(getattr(filters, name) is not None for name in _NARROWING):
        within = _within(filters)
        reader = VisibleReader(context).within(within)
        ids, scopes = lists.matching_ids(context, parsed_filters(filters, reader), reader, as_of=options["as_of"])
        narrow = replace(narrow, ids=ids, scopes=scopes or narrow.scopes)
    return read.recall(context, query, narrow, within=within, **options)


def parsed_filters(filters: Filters, reader: VisibleReader) -> Filter:
    """Return the filters of a list or a count, for what a reader sees."""
    several: dict[str, Any] = {name: tuple(getattr(filters, name)) for name in _MULTIPLE}
    if not (filters.statuses or filters.include_ended):
        several["statuses"] = (Status.ACTIVE.value,)
    given = {name: getattr(filters, name) for name in _INSTANTS}
    instants: dict[str, Any] = {name: None if value is None else instant(name, value) for name, value in given.items()}
    return Filter(
        **reader.visible_scopes(below=filters.below),
        # A facet may name the scope of the store's own records.
        named_scopes=tuple(name if name == RESERVED_SCOPE else parse_scope(name) for name in filters.scopes),
        **several,
        tags=tuple(map(plain_name, filters.tags)),
        subject=_name(filters.subject),
        category=_name(filters.category),
        session=_name(filters.session),
        text=filters.text,
        **instants,
        where=parse_where(filters.where),
        min_importance=filters.min_importance,
        include_sensitive=filters.include_sensitive,
    )


def _within(filters: Filters) -> str | None:
    return None if filters.within is None else valid_scope(filters.within)


def _name(value: str | None) -> str | None:
    return None if value is None else plain_name(value)


def save_recall_receipt(context: RequestContext, query: str, purpose: str, result: Recall) -> Recall:
    """Store the receipt of a recall; return the recall with its id, or with a note why there is none."""
    facts = {
        "inputs": {
            "objective": redact_personal_data(redact_secrets(query)),
            "purpose": purpose,
            "now": to_micros(result.now),
            "scope": context.scope,
            "versions": models_used(context, result),
        },
        "items": [
            {
                "id": hit.memory.id,
                "version": hit.memory.version,
                "score": hit.score,
                "weak": hit.weak,
                "parts": hit.parts,
            }
            for hit in result
        ],
        **context.credential,
    }
    delivered = [hit.memory for hit in result]
    receipt, receipt_notes = save_read_receipt(
        context, "recall", facts, delivered=delivered, notes=result.notes, head=result.head
    )
    return replace(result, receipt=receipt.id if receipt else None, notes=(*result.notes, *receipt_notes))
