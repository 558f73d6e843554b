"""Recall, lists and counts with the parameters of callers: parse names and instants, keep to what is visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from msgspec.structs import replace

from keepward.core.browse import Activity, Facets, Sources
from keepward.core.filters import parse_where
from keepward.core.memory import Record, Status, as_read
from keepward.core.principals import RESERVED_SCOPE, branch_of, branch_scope, main_scope, parse_scope
from keepward.core.query import AsOf, Filter, Filters, Memories, Order, Purpose, Recall, SearchFilters
from keepward.core.value import plain_key, plain_name, to_micros
from keepward.errors import InvalidInput
from keepward.gates.content import redact_personal_data, redact_secrets
from keepward.services.arguments import instant, parse_vector, valid_scope
from keepward.services.reading import lists
from keepward.services.reading import recall as read
from keepward.services.reading.recall import models_used
from keepward.services.reading.visible import VisibleReader
from keepward.services.recorded_reads import record_read
from keepward.services.request_context import RequestContext
from keepward.services.transaction import save_read_receipt

#: Filters that name several values.
_MULTIPLE = ("tiers", "kinds", "content_types", "sources", "trusts", "statuses", "authors")
#: Filters that name one value.
_NAMES = ("subject", "category", "session", "job")
_INSTANTS = ("since", "until", "occurred_since", "occurred_until")
#: Filters that the recall index cannot apply; with one of them ``list_memories`` returns a page with a total.
_NARROWING = (*_INSTANTS, "valid_at", "within", "where")
#: Filters of a search for which a list gives the ids first. The index has the sessions of messages only.
_LISTED = (*_INSTANTS, "within", "where", "session")
_COUNTED = ("scopes", "sources", "trusts", "statuses", "authors", "text", "below")


def recall(
    context: RequestContext,
    /,
    query: str = "",
    *,
    vector: Sequence[float] | None = None,
    limit: int = 10,
    purpose: Purpose = "answer",
    as_of: AsOf = None,
    order: Order = "learned",
    floor: float | None = None,
    receipt: bool = False,
    **filters: Unpack[SearchFilters],
) -> Recall:
    """Answer a query; save a receipt if the caller asked for one or the read must be recorded."""
    if vector is not None:
        vector = parse_vector("vector", vector)
    if not query.strip():
        if vector is None:
            raise InvalidInput("recall needs a query, or the `vector` of one")
        # Only a vector is compared, so no order by words can be learned.
        order = "cosine"
    parsed, reader = search_filters(context, filters)
    if any(filters.get(name) is not None for name in _LISTED):
        ids, scopes = lists.matching_ids(context, replace(parsed, valid_at=None), reader, as_of=as_of)
        parsed = replace(parsed, ids=ids, scopes=scopes or parsed.scopes, below=None, session=None)
    options: dict[str, Any] = {"limit": limit, "purpose": purpose, "as_of": as_of, "order": order}
    result = read.search(context, query, parsed, within=reader.below, vector=vector, **options)
    result = read.deliver(context, parsed, result, floor=floor, is_past=as_of is not None)
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
    limit: int | None = 50,
    offset: int | None = None,
    sort: str = "created",
    ascending: bool = False,
    **given: Unpack[Filters],
) -> Memories:
    """Return the memories that pass all filters; a page with a total if the caller asked for one."""
    filters, reader = parsed_filters(context, given)
    counted = is_counted(given, offset=offset, sort=sort, ascending=ascending)
    page: dict[str, Any] = {"sort": sort, "ascending": ascending, "offset": offset or 0, "limit": limit}
    memories = lists.list_page(context, filters, reader, as_of=as_of, counted=counted, **page)
    record_read(context, memories)
    return memories


def is_counted(given: Mapping[str, Any], *, offset: int | None, sort: str, ascending: bool) -> bool:
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
    return lists.facets(context, *parsed_filters(context, filters or {}), **options)


def activity(
    context: RequestContext, /, *, filters: Filters | None = None, by: str = "author", days: int = 30, zone: int = 0
) -> Activity:
    """Return how many versions were written on each day."""
    every: Filters = {**(filters or {}), "include_ended": True}
    return lists.activity(context, *parsed_filters(context, every), by=by, days=days, zone=zone)


def sources(context: RequestContext, /, *, filters: Filters | None = None, name: str | None = None) -> Sources:
    """Return what each actor, source, reference and session wrote."""
    every: Filters = {**(filters or {}), "include_ended": True}
    return lists.sources(context, *parsed_filters(context, every), name=name)


def search_filters(context: RequestContext, given: SearchFilters) -> tuple[Filter, VisibleReader]:
    """Return the filters of a search as ``parsed_filters`` does; sensitive memories are excluded by default.

    Raises:
        Unauthorised: the handle may not ask for sensitive memories.
    """
    if given.get("include_sensitive"):
        VisibleReader(context).check_sensitive()
    return parsed_filters(context, {"include_sensitive": False, **given})


def parsed_filters(context: RequestContext, given: SearchFilters | Filters) -> tuple[Filter, VisibleReader]:
    """Return the filters of a list or a count, and the reader of what they allow; what is not given is open."""
    asked: Mapping[str, Any] = given
    within, key = asked.get("within"), asked.get("key")
    reader = VisibleReader(context).within(None if within is None else valid_scope(within))
    parsed: dict[str, Any] = {name: tuple(asked.get(name, ())) for name in _MULTIPLE}
    if not (parsed["statuses"] or asked.get("include_ended")):
        parsed["statuses"] = (Status.ACTIVE.value,)
    parsed |= {name: plain_name(asked[name]) for name in _NAMES if asked.get(name) is not None}
    parsed |= {name: instant(name, asked[name]) for name in _INSTANTS if asked.get(name) is not None}
    if asked.get("valid_at") is not None:
        parsed["valid_at"] = to_micros(instant("valid_at", asked["valid_at"]))
    filters = Filter(
        **reader.visible_scopes(below=asked.get("below", False)),
        # A facet may name the scope of the store's own records.
        named_scopes=_named_scopes(context, asked.get("scopes", ())),
        **parsed,
        tags=tuple(map(plain_name, asked.get("tags", ()))),
        key=None if key is None else plain_key(key),
        text=asked.get("text"),
        where=parse_where(asked.get("where")),
        min_importance=asked.get("min_importance", 0.0),
        include_sensitive=asked.get("include_sensitive", True),
    )
    return filters, reader


def _named_scopes(context: RequestContext, names: Sequence[str]) -> tuple[str, ...]:
    """Return the named scopes, on a branch each with that of main."""
    branch = branch_of(context.scope)
    own = [main_scope(name) if branch is not None and branch_of(name) == branch else name for name in names]
    paths = [name if name == RESERVED_SCOPE else parse_scope(name) for name in own]
    return tuple(dict.fromkeys(each for path in paths for each in (branch_scope(branch, path), path)))


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
