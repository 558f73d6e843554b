"""Requests as HTTP calls, and answers as results: the registry says most of it, ``carry_out`` the rest.

Invariants
(1) What stands for "leave it as it is" is left out; None is sent where it empties a field.
(2) What cannot be sent without a loss is ``InvalidInput``, and nothing is sent.
(3) Every write carries a key of its own, so that one that is sent again is carried out once.
(4) A draft makes the ids of its new memories itself. An id of an ``Insert`` that is no UUIDv7 is a name by which other
    changes of the proposal refer to it, and the outcome holds the id that the memory got.
(5) An approval names the digest of what it is about. Where the caller names none, what waits is read first, and the
    approval is bound to that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import singledispatch
from types import TracebackType
from typing import Any, Unpack, get_args
from urllib.parse import quote

import msgspec

from keepward.adapters.world import RandomIds, SystemClock
from keepward.calls.draft import Draft as LocalDraft
from keepward.client.transport import Answer, Transport, answer_of
from keepward.core.blob import Blob, parse_ref, ref_of
from keepward.core.change import KEEP, Change, Insert, InsertFields, Revert, operation
from keepward.core.journal import Verification
from keepward.core.memory import Record
from keepward.core.proposal import Decided, Outcome
from keepward.core.query import MOST_HITS, Memories, Recall, check_limit, check_names
from keepward.errors import InvalidInput, KeepwardError, StaleVersion, Tampered
from keepward.results import from_json, read_json
from keepward.verbs import Request, arguments, journal, read, review, upkeep, verb_of, write

#: Most items of one page; most commits on one, each with all that it changed.
PAGE = 500
_COMMITS = 100
#: Most proposals decided, and most items sent, in one call.
_MANY = 200
_ITEMS = 500
#: Most bytes of the items in one call; a server takes a megabyte unless it was told otherwise.
_BYTES = 900_000
#: Arguments that name a moment of the past.
_MOMENTS = frozenset({"as_of", "earlier", "later", "until"})


def path_of(*parts: str) -> str:
    """Return a path under ``/memory`` whose parts hold no separator; each is one text of the caller's."""
    return "/memory/" + "/".join(_part(part) for part in parts)


def _part(part: Any) -> str:
    if not isinstance(part, str) or part in {"", ".", ".."}:
        raise InvalidInput("a name in an address is a text that is not empty")
    return quote(part, safe="")


# --- requests


@singledispatch
def carry_out(request: Request[Any], way: Transport, **local: Any) -> Any:
    """Have a request carried out by a server: here those of which the registry says all."""
    asked = arguments_of(request)
    result = read_json(verb_of(type(request)).result, _answer(request, way, asked))
    if "on_progress" in local:
        # A server says nothing on the way.
        done = result if isinstance(result, int) else _size(result)
        local["on_progress"](done, done)
    return result


def _size(result: Any) -> int:
    return sum(result.checked.values()) if isinstance(result, Verification) else int(result.feedback)


def _answer(
    request: Request[Any], way: Transport, asked: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Any:
    """Send a request with its arguments by wire name; return what its result is read from."""
    verb = verb_of(type(request))
    places = re.findall(r"{(\w+)}", verb.path)
    path = verb.path.format_map({wire: _part(getattr(request, verb.arguments[wire].name)) for wire in places})
    sent = {name: value for name, value in asked.items() if name not in places}
    takes = headers is None and len(verb.arguments) > len(places)
    if verb.method in {"GET", "DELETE"}:
        # What is told once is not asked for again.
        once = isinstance(request, review.Notices)
        answer = answer_of(way.call(verb.method, path, query=list(sent.items()), once=once))
    else:
        answer = answer_of(way.call(verb.method, path, body=sent or ({} if takes else None), headers=headers))
    keys = verb.answer.split()
    return answer if not keys else answer[keys[0]] if len(keys) == 1 else [answer[key] for key in keys]


def arguments_of(request: Request[Any]) -> dict[str, Any]:
    """Return what was given of a request as JSON values by wire name, without what is the default anyhow."""
    found = {}
    for wire, argument in verb_of(type(request)).arguments.items():
        value = None if argument.within else getattr(request, argument.name)
        if value is None or value is argument.default or value == argument.default:
            continue
        if wire == "where" and not isinstance(value, str):
            value = json.dumps(value)
        found[wire] = moment(value) if wire in _MOMENTS else plain(value)
    if isinstance(request, read.Filtered):
        names = {"tiers": "tier", "kinds": "kind", "content_types": "content_type"}
        check_names(**{name: found.get(wire, ()) for name, wire in names.items()})
    return found | (_sent(_read_values(request)) if hasattr(request, "values") else {})


def _read_values(request: Any) -> Mapping[str, Any]:
    if request.makes is Insert:
        return arguments.insert(request.values)
    change = arguments.change(request.makes, {"id": "", **request.values})
    return {name: getattr(change, name) for name in request.values}


@carry_out.register
def _(request: read.Recall, way: Transport) -> Recall:
    check_limit(request.limit, MOST_HITS)
    if request.receipt and request.limit > PAGE:
        raise InvalidInput(f"a receipt of a recall over HTTP names at most {PAGE} memories")
    # A receipt that is kept is one more each time it is asked for.
    hits, answers = _pages(request, way, "hits", once=request.receipt)
    return from_json(Recall, {**answers[0], "hits": hits})


@carry_out.register
def _(request: read.Find, way: Transport) -> Memories:
    items, answers = _pages(request, way)
    # A server of an older release says nothing of it.
    lost, notes = (tuple(map(str, answers[-1].get(name, ()))) for name in ("withheld", "notes"))
    first = answers[0] if request.windowed else {}
    counts: dict[str, Any] = {name: first.get(name) for name in ("total", "head")}
    return Memories(read_json(list[Record], items), withheld=lost, notes=notes, **counts)


@carry_out.register(review.Pending)
@carry_out.register(journal.Log)
def _(request: Request[list[Any]], way: Transport) -> list[Any]:
    return read_json(verb_of(type(request)).result, _pages(request, way)[0])  # type: ignore[no-any-return]


def _pages(
    request: Request[Any], way: Transport, key: str = "items", *, once: bool = False
) -> tuple[list[Any], list[Answer]]:
    """Return the items of a list, all of them or the first ones, and the answers that they came in, page by page."""
    limit: int | None = getattr(request, "limit", None)
    check_limit(limit)
    asked, size, cursor, onward = arguments_of(request), PAGE, "cursor", "cursor"
    if isinstance(request, journal.Log):
        asked, size, cursor, onward = {**asked, "events": True}, _COMMITS, "before", "next_before"
    # The size stays the same: a page begins where the one before ended.
    asked["limit"] = size if limit is None else min(size, limit)
    answers: list[Answer] = []
    found: list[Any] = []
    while True:
        answers.append(way.get(verb_of(type(request)).path, list(asked.items()), once=once))
        found += read_json(list[Any], answers[-1][key])
        asked[cursor] = answers[-1].get(onward)
        if asked[cursor] is None or (limit is not None and len(found) >= limit):
            return found[:limit], answers


@carry_out.register
def _(request: write.UpdateByKey, way: Transport) -> Outcome:
    return carry_out(request.remember(), way)  # type: ignore[no-any-return]


@carry_out.register
def _(request: write.Edit, way: Transport) -> Outcome:
    _part(request.memory_id)
    return _edited(way, [_change(request.change())], getattr(request, "reason", ""))


@carry_out.register
def _(request: write.Propose, way: Transport) -> Outcome:
    draft = Draft(way, request.reason, request.session)
    for each in request.changes:
        draft.stage(each)
    return draft.send()


def _edited(way: Transport, changes: list[dict[str, Any]], reason: str, session: str | None = None) -> Outcome:
    body = {"reason": reason, "changes": changes, **present({"session": session})}
    return read_json(Outcome, way.post("/memory/edit", body))  # type: ignore[no-any-return]


@carry_out.register
def _(request: write.Merge, way: Transport) -> Outcome | None:
    asked = arguments_of(request)
    answer = _answer(request, way, asked) if asked["ids"] else {}
    return read_json(Outcome, answer) if answer.get("outcome") else None


@carry_out.register
def _(request: write.ForgetMany, way: Transport) -> tuple[Outcome | None, list[str]]:
    asked = arguments_of(request)
    if not asked["ids"]:
        return None, []
    return read_json(tuple[Outcome | None, list[str]], _answer(request, way, asked))  # type: ignore[no-any-return]


@carry_out.register
def _(request: write.RememberMany, way: Transport, *, batch: int = _ITEMS, on_progress: Any = None) -> list[Outcome]:
    if batch < 1:
        raise InvalidInput("a batch holds at least 1 item")
    sent = [{"text": each} if isinstance(each, str) else _sent(each) for each in request.items]
    asked = present({"mode": request.mode, "reason": request.reason or None})
    outcomes: list[Outcome] = []
    for part in [sent] if request.mode == "atomic" else _parts(sent, min(batch, _ITEMS)):
        if part:
            found = read_json(list[Outcome], _answer(request, way, {"items": part, **asked}))
            # All or nothing is one outcome, for all of them.
            outcomes += found * len(part) if request.mode == "atomic" and len(found) == 1 else found
        if on_progress is not None and request.mode != "atomic":
            on_progress(len(outcomes), len(sent))
    return outcomes


@carry_out.register(review.Approve)
@carry_out.register(review.Amend)
def _(request: review.Approve | review.Amend, way: Transport) -> Outcome:
    seen: Any = request.digest
    if seen is None:
        seen = way.get(path_of("quarantine", request.proposal_id))["digest"]
    if not (isinstance(seen, str) and seen.isascii() and seen.isalnum()):
        raise InvalidInput("a digest is hex digits, as they stand with what waits")
    asked = {} if isinstance(request, review.Approve) else arguments_of(request)
    return read_json(Outcome, _answer(request, way, asked, {"If-Match": f'"{seen}"'}))  # type: ignore[no-any-return]


@carry_out.register(review.ApproveMany)
@carry_out.register(review.RejectMany)
def _(request: review.ApproveMany | review.RejectMany, way: Transport) -> list[Decided]:
    name, asked = "ids" if isinstance(request, review.RejectMany) else "items", arguments_of(request)
    items = [_seen(each, way) for each in asked[name]] if name == "items" else list(dict.fromkeys(asked[name]))
    found: list[Decided] = []
    for start in range(0, len(items), _MANY):
        part = asked | {name: items[start : start + _MANY]}
        found += read_json(list[Decided], _answer(request, way, part))
    return found


def _seen(item: dict[str, Any], way: Transport) -> dict[str, Any]:
    """Return a proposal to approve with a digest: the given one, else that of the proposal as it is now."""
    if item.get("digest") is not None:
        return item
    try:
        return item | {"digest": way.get(path_of("quarantine", item["id"]))["digest"]}
    except KeepwardError:
        # The server says of each what is wrong with it.
        return item | {"digest": "0" * 64}


@carry_out.register
def _(request: journal.RollBack, way: Transport) -> Any:
    # Whatever the newest commit is: one that touches the same memories is a conflict, and not undone.
    kind, asked = verb_of(type(request)).result, arguments_of(request)
    if request.dry_run:
        return read_json(kind, _answer(request, way, asked))
    for last in (False, False, True):
        head = way.get(path_of("status"))["etag"]
        try:
            return read_json(kind, _answer(request, way, asked, {"If-Match": head}))
        except StaleVersion:
            # Another commit was made in between.
            if last:
                raise
    raise AssertionError


@carry_out.register
def _(request: upkeep.PutBlob, way: Transport) -> Blob:
    if not isinstance(request.data, bytes):
        raise InvalidInput("a blob is made of bytes")
    headers = {"Content-Type": request.media_type or "application/octet-stream"}
    return from_json(Blob, answer_of(way.call("POST", "/memory/blobs", content=request.data, headers=headers)))


@carry_out.register
def _(request: upkeep.ReadBlob, way: Transport) -> bytes:
    path = path_of("blobs", parse_ref(request.ref))
    data: bytes = way.call("GET", path, headers={"Accept": "*/*"}).content
    if ref_of(data) != request.ref:
        raise Tampered("the bytes are not those that were put")
    return data


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
    """Return an argument as JSON values; a span of time is text such as ``90s``, or a number of seconds."""
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


def _change(item: Change) -> dict[str, Any]:
    """Return a change as ``op`` with its arguments."""
    if isinstance(item, Revert):
        raise InvalidInput("a change cannot be a Revert: use rollback")
    if not isinstance(item, get_args(Change)):
        raise InvalidInput("a proposal is made of changes, such as Insert(...) or Replace(...)")
    given = {each.name: (getattr(item, each.name), each.default) for each in msgspec.structs.fields(item)}
    sent = {name: value for name, (value, usual) in given.items() if value is not usual and value != usual}
    if isinstance(item, Insert):
        # Where a memory goes is always said: the default of a handle is its own scope, that of an Insert is shared.
        sent["scope"] = item.scope
    return {"op": operation(item), **_sent(sent)}


def _sent(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return named arguments of a change, without those that stay as they are; see (1)."""
    found = {name: value for name, value in given.items() if value is not KEEP}
    for name in ("tags", "evidence", "derived_from", "aliases"):
        if name in found:
            found[name] = arguments.texts(name, found[name])
    return {name: plain(value) for name, value in found.items()}


class Draft(LocalDraft):
    """Changes that are collected here, and sent to the server together at the end."""

    def __init__(self, way: Transport, reason: str, session: str | None) -> None:
        self._way, self._reason, self._session, self._ids = way, reason, session, RandomIds()
        self._sent: list[dict[str, Any]] = []
        self.outcome: Outcome | None = None
        #: Ids that new memories get, by the names that their ``Insert`` has here.
        self._names: dict[str, str] = {}

    def insert(self, text: str, **fields: Unpack[InsertFields]) -> str:
        """Stage a new memory with the fields of ``remember``; return the id it will have."""
        self._see_open()
        name = self._ids.new_id(SystemClock().now())
        self._sent.append({"op": "insert", "id": name, **arguments_of(write.Remember(text=text, values=fields))})
        return name

    def stage(self, change: Change) -> None:
        """Stage a change that is there as data; the id of an ``Insert`` is a name for the changes that follow."""
        self._see_open()
        sent = _change(change)
        if isinstance(change, Insert) and not write.IS_NEW_ID(change.id):
            self._names[change.id] = self._ids.new_id(SystemClock().now())
        for name in {"id", "by"} & sent.keys():
            sent[name] = self._names.get(sent[name], sent[name])
        if "derived_from" in sent:
            sent["derived_from"] = [self._names.get(each, each) for each in sent["derived_from"]]
        self._sent.append(sent)

    def discard(self) -> None:
        """Drop everything that was staged."""
        self._sent.clear()

    def __len__(self) -> int:
        return len(self._sent)

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if kind is None and self._sent:
            self.outcome = self.send()

    def send(self) -> Outcome:
        """Propose everything that was staged."""
        return _edited(self._way, self._sent, self._reason, self._session)
