"""Requests as HTTP calls, and answers as results; most follow from the registry, and each other one is named here.

Invariants
(1) What stands for "leave it as it is" is left out; None is sent where it empties a field.
(2) What cannot be sent without a loss is an error, and nothing is sent.
(3) Every write carries a key of its own, so that one that is sent again is carried out once.
(4) Ids are the server's to give: in a proposal the id of an ``Insert`` is a name by which its other changes may
    refer to it, and the outcome holds the id that the memory got.
(5) An approval names the digest of what it is about. Where the caller names none, what waits is read first, and the
    approval is bound to that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum
from functools import singledispatch
from typing import Any, get_args
from urllib.parse import quote

from keepward.client.transport import Answer, Transport, answer_of
from keepward.errors import InvalidInput, KeepwardError, Tampered
from keepward.model.blob import Blob, parse_ref, ref_of
from keepward.model.change import KEEP, Change, Insert, Revert, Supersede, operation
from keepward.model.journal import CommitView
from keepward.model.memory import Record
from keepward.model.proposal import Decided, Outcome
from keepward.model.query import Memories, Recall, check_names
from keepward.results import from_json, read_json
from keepward.verbs import Request, arguments, inquiry, journal, read, review, upkeep, verb_of, write

#: Most items of one page; most commits on one, each with all that it changed.
PAGE = 500
_COMMITS = 100
#: Most proposals decided, and most items sent, in one call.
_MANY = 200
_ITEMS = 500
#: Most bytes of the items in one call; a server takes a megabyte unless it was told otherwise.
_BYTES = 900_000
#: Arguments that name a moment of the past.
_MOMENTS = frozenset({"as_of", "earlier", "later"})


def path_of(*parts: str) -> str:
    """Return a path under ``/memory`` whose parts hold no separator; each is one text of the caller's.

    Raises:
        InvalidInput: a part that no path can hold.
    """
    return "/memory/" + "/".join(_part(part) for part in parts)


def _part(part: Any) -> str:
    if not isinstance(part, str) or part in {"", ".", ".."}:
        raise InvalidInput("a name in an address is a text that is not empty")
    return quote(part, safe="")


# --- requests


@singledispatch
def carry_out(request: Request[Any], way: Transport, **local: Any) -> Any:
    """Have a request carried out by a server: here those of which the registry says all."""
    verb = verb_of(type(request))
    places = re.findall(r"{(\w+)}", verb.path)
    path = verb.path.format_map({wire: _part(getattr(request, verb.arguments[wire].name)) for wire in places})
    asked = {name: value for name, value in arguments_of(request).items() if name not in places}
    if verb.method in {"GET", "DELETE"}:
        answer = answer_of(way.call(verb.method, path, query=list(asked.items())))
    else:
        answer = answer_of(way.call(verb.method, path, body=asked or None))
    result = read_json(verb.result, answer[verb.answer] if verb.answer else answer)
    if "on_progress" in local:
        # A server says nothing on the way.
        done = result if isinstance(result, int) else result.feedback
        local["on_progress"](done, done)
    return result


def arguments_of(request: Request[Any]) -> dict[str, Any]:
    """Return what was given of a request as JSON values by wire name, without what is the default anyhow."""
    found = {}
    given = request.given()
    for wire, argument in verb_of(type(request)).arguments.items():
        value = given.get(argument.name, argument.default)
        if value is argument.default or value == argument.default or value is None:
            continue
        found[wire] = moment(value) if wire in _MOMENTS else plain(_listed(argument.name, value, argument.default))
    return found


def _listed(name: str, value: Any, default: Any) -> Any:
    """See that a list is one; a text alone would be taken for its letters."""
    return list(arguments.texts(name, value)) if default == () and isinstance(value, str) else value


@carry_out.register
def _(request: read.Recall, way: Transport) -> Recall:
    asked = _filtered(request)
    if request.limit < 1:
        raise InvalidInput("a limit is at least 1")
    if request.receipt and request.limit > PAGE:
        raise InvalidInput(f"a receipt of a recall over HTTP names at most {PAGE} memories")
    query = [*asked.items(), ("limit", min(request.limit, PAGE))]
    # A receipt that is kept is one more each time it is asked for.
    answer = way.get("/memory/search", query, once=request.receipt)
    found, cursor = from_json(Recall, answer), answer.get("cursor")
    while len(found) < request.limit and cursor:
        further = way.get("/memory/search", [*query, ("cursor", cursor)])
        hits, cursor = (*found.hits, *from_json(Recall, further).hits), further.get("cursor")
        found = replace(found, hits=hits[: request.limit])
    return found


@carry_out.register
def _(request: read.Find, way: Transport) -> Memories:
    if request.limit is not None and request.limit < 1:
        raise InvalidInput("a limit is at least 1")
    items, last = _pages(way, "/memory/items", _filtered(request), request.limit)
    # A server of an older release says nothing of it.
    lost, notes = (tuple(map(str, last.get(name, ()))) for name in ("withheld", "notes"))
    return Memories(read_json(list[Record], items), withheld=lost, notes=notes)


@carry_out.register
def _(request: review.Pending, way: Transport) -> Any:
    return read_json(verb_of(type(request)).result, _pages(way, "/memory/quarantine", {"state": request.state})[0])


@carry_out.register
def _(request: review.Notices, way: Transport) -> Any:
    return read_json(verb_of(type(request)).result, way.get("/memory/notices", once=True)["items"])


@carry_out.register
def _(request: journal.Log, way: Transport) -> list[CommitView]:
    if request.limit < 1:
        raise InvalidInput("a limit is at least 1")
    found: list[CommitView] = []
    before = request.before
    while len(found) < request.limit:
        query = [("before", before), ("limit", min(request.limit - len(found), _COMMITS)), ("events", True)]
        page = way.get("/memory/commits", query)
        found += read_json(list[CommitView], page["items"])
        before = page.get("next_before")
        if before is None:
            break
    return found


@carry_out.register
def _(request: inquiry.Bisect, way: Transport, *, predicate: Any = None) -> Any:
    if predicate is not None:
        raise InvalidInput("a predicate cannot be sent to a server: give the text to look for as `contains`")
    if not request.contains:
        raise InvalidInput("give the text to look for")
    return read_json(verb_of(type(request)).result, way.post("/memory/bisect", arguments_of(request)))


@carry_out.register
def _(request: write.Remember, way: Transport) -> Outcome:
    return _proposed(way, "/memory/items", new_memory(request) | present({"reason": request.reason or None}))


@carry_out.register
def _(request: write.UpdateByKey, way: Transport) -> Outcome:
    return carry_out(request.remember(), way)  # type: ignore[no-any-return]


@carry_out.register
def _(request: write.Edit, way: Transport) -> Outcome:
    _part(request.memory_id)
    return _edited(way, [change(request.change())], getattr(request, "reason", ""))


@carry_out.register
def _(request: write.Propose, way: Transport, *, kind: str = "write") -> Outcome:
    _only_write(kind)
    if not request.reason.strip():
        raise InvalidInput("say why: a change carries a `reason`")
    changes, about = [change(each) for each in request.changes], {"reason": request.reason, "session": request.session}
    made = {each.id for each in request.changes if isinstance(each, Insert)}
    if not any(made.intersection(_named(each)) for each in request.changes):
        return _edited(way, changes, request.reason, request.session)
    # One of them names a memory that another makes: its id is known once that is staged.
    place = path_of("drafts", str(way.post("/memory/drafts", present(about))["id"]))
    names: dict[str, str] = {}
    try:
        for item, sent in zip(request.changes, changes, strict=True):
            answer = way.post(f"{place}/changes", {"changes": [renamed(sent, names)]})
            if isinstance(item, Insert):
                names[item.id] = str(answer["ids"][0])
    except KeepwardError:
        with contextlib.suppress(KeepwardError):
            way.call("DELETE", place)
        raise
    return _proposed(way, f"{place}/finish", None)


@carry_out.register
def _(request: write.Merge, way: Transport) -> Outcome | None:
    ids = list(arguments.texts("memory_ids", request.memory_ids))
    if not ids:
        return None
    fields = _sent(arguments.insert(request.values))
    body = {"ids": ids, "reason": request.reason, **fields, **present({"text": request.text})}
    answer = way.post("/memory/items/merge", body)
    return read_json(Outcome, answer) if answer.get("outcome") not in {None, "none"} else None


@carry_out.register
def _(request: write.ForgetMany, way: Transport) -> tuple[Outcome | None, list[str]]:
    ids = list(arguments.texts("memory_ids", request.memory_ids))
    if not ids:
        return None, []
    answer = way.post("/memory/items/forget", {"ids": ids, "reason": request.reason})
    return read_json(Outcome | None, answer["outcome"]), read_json(list[str], answer["missing"])


@carry_out.register
def _(
    request: write.RememberMany, way: Transport, *, kind: str = "write", batch: int = _ITEMS, on_progress: Any = None
) -> list[Outcome]:
    _only_write(kind)
    if batch < 1:
        raise InvalidInput("a batch holds at least 1 item")
    sent = [{"text": each} if isinstance(each, str) else _sent(each) for each in request.items]
    outcomes: list[Outcome] = []
    for part in [sent] if request.mode == "atomic" else _parts(sent, min(batch, _ITEMS)):
        if part:
            body = {"items": part, "mode": request.mode, **present({"reason": request.reason or None})}
            found = read_json(list[Outcome], way.post("/memory/items/batch", body)["outcomes"])
            # All or nothing is one outcome, for all of them.
            outcomes += found * len(part) if request.mode == "atomic" and len(found) == 1 else found
        if on_progress is not None and request.mode != "atomic":
            on_progress(len(outcomes), len(sent))
    return outcomes


@carry_out.register
def _(request: review.Approve, way: Transport) -> Outcome:
    place = path_of("quarantine", request.proposal_id)
    seen: Any = way.get(place)["digest"] if request.digest is None else request.digest
    if not (isinstance(seen, str) and seen.isascii() and seen.isalnum()):
        raise InvalidInput("a digest is hex digits, as they stand with what waits")
    return _proposed(way, f"{place}/approve", None, {"If-Match": f'"{seen}"'})


@carry_out.register
def _(request: review.ApproveMany, way: Transport) -> list[Decided]:
    return _decided(way, "approve", "items", request.items)


@carry_out.register
def _(request: review.RejectMany, way: Transport) -> list[Decided]:
    return _decided(way, "reject", "ids", list(dict.fromkeys(request.ids)), reason=request.reason)


@carry_out.register
def _(request: journal.RollBack, way: Transport) -> Any:
    body = {"with_later": request.with_later, "dry_run": request.dry_run}
    # Whatever the newest commit is: one that touches the same memories is a conflict, and not undone.
    headers = None if request.dry_run else {"If-Match": "*"}
    answer = way.post(path_of("rollback", str(request.commit)), body, headers)
    return read_json(verb_of(type(request)).result, answer)


@carry_out.register
def _(request: upkeep.PutBlob, way: Transport) -> Blob:
    if not isinstance(request.data, bytes):
        raise InvalidInput("a blob is made of bytes")
    headers = {"Content-Type": request.media_type or "application/octet-stream"}
    return from_json(Blob, answer_of(way.call("POST", "/memory/blobs", content=request.data, headers=headers)))


@carry_out.register
def _(request: upkeep.GetBlob, way: Transport) -> Blob:
    return from_json(Blob, way.get(path_of("blobs", parse_ref(request.ref), "about")))


@carry_out.register
def _(request: upkeep.ReadBlob, way: Transport) -> bytes:
    path = path_of("blobs", parse_ref(request.ref))
    data: bytes = way.call("GET", path, headers={"Accept": "*/*"}).content
    if ref_of(data) != request.ref:
        raise Tampered("the bytes are not those that were put")
    return data


def _filtered(request: read.Filtered[Any]) -> dict[str, Any]:
    """Return the arguments of a request that filters but its limit, after a look at its names."""
    asked = {name: value for name, value in arguments_of(request).items() if name != "limit"}
    named = {name: arguments.texts(name, getattr(request, name)) for name in ("tiers", "kinds", "content_types")}
    arguments.texts("tags", request.tags)
    check_names(**named)
    return asked


def _pages(way: Transport, path: str, asked: Mapping[str, Any], limit: int | None = None) -> tuple[list[Any], Answer]:
    """Return the items of a list, all of them or the first ones, page after page, and the last answer."""
    found: list[Any] = []
    cursor: str | None = None
    # The size stays the same: a page begins where the one before ended.
    query = [*asked.items(), ("limit", PAGE if limit is None else min(PAGE, limit))]
    while True:
        answer = way.get(path, [*query, ("cursor", cursor)])
        found += read_json(list[Any], answer["items"])
        cursor = answer.get("cursor")
        if cursor is None or (limit is not None and len(found) >= limit):
            return found if limit is None else found[:limit], answer


def _proposed(way: Transport, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Outcome:
    outcome: Outcome = read_json(Outcome, way.post(path, body, headers))
    return outcome


def _edited(way: Transport, changes: list[dict[str, Any]], reason: str, session: str | None = None) -> Outcome:
    if not reason.strip():
        raise InvalidInput("say why: a change carries a `reason`")
    if not changes:
        raise InvalidInput("a proposal needs at least one change")
    return _proposed(way, "/memory/edit", {"reason": reason, "changes": changes, **present({"session": session})})


def _decided(way: Transport, what: str, name: str, items: Sequence[Any], **more: Any) -> list[Decided]:
    found: list[Decided] = []
    for start in range(0, len(items), _MANY):
        body = {name: items[start : start + _MANY], **more}
        found += read_json(list[Decided], way.post(f"/memory/quarantine/{what}", body)["results"])
    return found


def _only_write(kind: str) -> None:
    if kind != "write":
        raise InvalidInput("a call over HTTP is always of kind 'write': leave it out")


def _parts(items: list[dict[str, Any]], most: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the items in order, so many and so large a part as one call takes."""
    part: list[dict[str, Any]] = []
    size = 0
    for item in items:
        weight = len(json.dumps(item, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 1
        if part and (len(part) == most or size + weight > _BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += weight
    if part:
        yield part


# --- values as JSON


def plain(value: Any) -> Any:
    """Return an argument as JSON values; a span of time is text such as ``90s``, or a number of seconds.

    Raises:
        InvalidInput: see (2).
    """
    match value:
        case Enum():
            return plain(value.value)
        case None | bool() | int() | float() | str():
            return value
        case timedelta():
            seconds, rest = divmod(value, timedelta(seconds=1))
            return value.total_seconds() if rest else f"{seconds}s"
        case datetime():
            if value.tzinfo is None:
                raise InvalidInput("an instant needs a time zone")
            return value.isoformat()
        case Mapping():
            if not all(isinstance(name, str) for name in value):
                raise InvalidInput("names in an object are texts")
            return {name: plain(each) for name, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case set() | frozenset():
            return sorted(plain(each) for each in value)
    raise InvalidInput("an argument is not plain JSON: texts, numbers, booleans, lists and objects")


def moment(as_of: Any) -> str:
    """Return a moment of the past as text: a commit's number or name, or an instant."""
    if isinstance(as_of, bool) or not isinstance(as_of, int | str | datetime):
        raise InvalidInput("a moment is a commit's number, its id, or an instant")
    return str(plain(as_of))


def present(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not None, as JSON values."""
    return {name: plain(value) for name, value in given.items() if value is not None}


def new_memory(request: write.Remember) -> dict[str, Any]:
    """Return text and fields of a new memory, checked as the library checks them."""
    return {"text": arguments.text(request.text), **_sent(arguments.insert(request.values))}


def change(item: Change) -> dict[str, Any]:
    """Return a change as ``op`` with its arguments; a new memory gets its id from the server.

    Raises:
        InvalidInput: rollback alone makes changes of this sort.
    """
    if isinstance(item, Revert):
        raise InvalidInput("a change cannot be a Revert: use rollback")
    if not isinstance(item, get_args(Change)):
        raise InvalidInput("a proposal is made of changes, such as Insert(...) or Replace(...)")
    given = {each.name: (getattr(item, each.name), each.default) for each in dataclasses.fields(item)}
    sent = {name: value for name, (value, usual) in given.items() if value is not usual and value != usual}
    if isinstance(item, Insert):
        # Where a memory goes is always said: the default of a handle is its own scope, that of an Insert is shared.
        sent = {name: value for name, value in sent.items() if name != "id"} | {"scope": item.scope}
    return {"op": operation(item), **_sent(sent)}


def renamed(change: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a change to be sent, with the ids that memories got in place of those that they were given here."""
    found = {
        name: names.get(value, value) if name in {"id", "by"} and isinstance(value, str) else value
        for name, value in change.items()
    }
    if "derived_from" in found:
        found["derived_from"] = [names.get(each, each) for each in found["derived_from"]]
    return found


def _sent(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return named arguments of a change, without those that stay as they are; see (1)."""
    found = {name: value for name, value in given.items() if value is not KEEP}
    for name in ("tags", "evidence", "derived_from", "aliases"):
        if name in found:
            found[name] = arguments.texts(name, found[name])
    return {name: plain(value) for name, value in found.items()}


def _named(item: Change) -> tuple[str, ...]:
    match item:
        case Insert():
            return tuple(item.derived_from)
        case Supersede():
            return item.id, item.by
    return (item.id,)
