"""Requests as HTTP calls, and answers as results: the registry says most of it, ``execute`` the rest.

Invariants
(1) What stands for "leave it as it is" is left out; None is sent where it empties a field.
(2) What cannot be sent without a loss is ``InvalidInput``, and nothing is sent.
(3) Every write of memories has an idempotency key of its own. Another change is sent once, unless the rate was too
    high.
(4) A draft makes the ids of its new memories itself. An id of an ``Insert`` that is no UUIDv7 is a name by which other
    changes of the proposal refer to it, and the outcome holds the id that the memory got.
(5) An approval names the digest of what it is about. Where the caller names none, what waits is read first, and the
    approval is bound to that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import Enum
from types import TracebackType
from typing import Any, get_args
from urllib.parse import quote

import msgspec

from keepward.adapters.world import RandomIds, SystemClock
from keepward.api import OPERATIONS
from keepward.client.transport import ResponseBody, Transport, response_body
from keepward.core.blob import Blob, parse_ref, ref_of
from keepward.core.change import UNSET, Change, Insert, Revert, operation
from keepward.core.journal import Verification
from keepward.core.memory import Record
from keepward.core.proposal import DecisionResult, Outcome, Proposal, ProposalPage
from keepward.core.query import MAX_HITS, Memories, Recall, check_limit, check_names
from keepward.core.results import from_json
from keepward.core.value import Data
from keepward.draft import Draft as LocalDraft
from keepward.errors import InvalidInput, KeepwardError, StaleVersion, Tampered
from keepward.operations import Operation
from keepward.services import arguments

#: Most items of one page; most commits on one, each with all that it changed.
MAX_PAGE_SIZE = 500
_MAX_COMMITS_PER_PAGE = 100
#: Most proposals decided, and most items sent, in one call.
_MAX_DECISIONS = 200
_MAX_ITEMS = 500
#: Most bytes of the items in one call; a server takes a megabyte unless it was told otherwise.
_MAX_BODY_BYTES = 900_000
#: Arguments that name a moment of the past.
_AS_OF_ARGUMENTS = frozenset({"as_of", "earlier", "later", "until"})


def path_of(*parts: str) -> str:
    """Return a path under ``/memory`` whose parts hold no separator; each is one text of the caller's."""
    return "/memory/" + "/".join(_part(part) for part in parts)


def _part(part: Any) -> str:
    if not isinstance(part, str) or part in {"", ".", ".."}:
        raise InvalidInput("a name in an address is a text that is not empty")
    return quote(part, safe="")


# --- operations


def execute(operation: Operation, args: Mapping[str, Any], transport: Transport, **local: Any) -> Any:
    """Have an operation carried out by a server."""
    own = _SPECIAL_OPERATIONS.get(operation.name)
    if own is not None:
        return own(operation, args, transport, **local)
    if operation.makes is not None and "memory_id" in args:
        return _propose_changes(transport, [_change_to_json(change_of(operation, args))], args.get("reason", ""))
    result = from_json(operation.result, _call_operation(operation, transport, arguments_of(operation, args)))
    if "on_progress" in local:
        # A server says nothing on the way.
        done = result if isinstance(result, int) else _processed_count(result)
        local["on_progress"](done, done)
    return result


def change_of(operation: Operation, args: Mapping[str, Any]) -> Change:
    """Return the change of one memory that an operation proposes."""
    _part(args["memory_id"])
    fields = {name: value for name, value in args.items() if name not in {"memory_id", "reason"}}
    change = arguments.build_change(operation.makes, {"id": args["memory_id"], **fields})  # type: ignore[arg-type]
    made: Change = arguments.require_content(change)
    return made


def _default(operation: Operation, name: str) -> Any:
    return operation.signature.parameters[name].default


def _processed_count(result: Any) -> int:
    return sum(result.checked.values()) if isinstance(result, Verification) else int(result.feedback)


def _call_operation(
    operation: Operation, transport: Transport, params: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Any:
    """Send an operation with its arguments by wire name; return what its result is read from."""
    places = re.findall(r"{(\w+)}", operation.path)
    given = {wire: params.get(wire, _default(operation, operation.arguments[wire].name)) for wire in places}
    path = operation.path.format_map({wire: _part(value) for wire, value in given.items()})
    sent = {name: value for name, value in params.items() if name not in places}
    takes = headers is None and len(operation.arguments) > len(places)
    if operation.http_method in {"GET", "DELETE"}:
        # What is told once is not asked for again.
        once = operation.name == "notices"
        answer = response_body(transport.call(operation.http_method, path, query=list(sent.items()), once=once))
    else:
        # Under its key the server commits a write of memories once, or recognises what it has.
        once = operation.changes and not (operation.is_one_write or operation.result == list[Outcome])
        answer = response_body(
            transport.call(
                operation.http_method, path, body=sent or ({} if takes else None), headers=headers, once=once
            )
        )
    keys = operation.answer.split()
    return answer if not keys else answer[keys[0]] if len(keys) == 1 else [answer[key] for key in keys]


def arguments_of(operation: Operation, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON values by wire name, without what is the default anyhow."""
    found, fields = {}, set[str]()
    if operation.makes is not None:
        fields = {*args} & {*operation.makes.__struct_fields__} - {"id", "text"}
    for wire, argument in operation.arguments.items():
        if argument.name in fields:
            continue
        value = args.get(argument.name)
        if argument.within is not None:
            value = getattr(args.get(argument.within), argument.name, argument.default)
        if value is None or value is argument.default or value == argument.default:
            continue
        if wire == "where" and not isinstance(value, str):
            value = json.dumps(value)
        found[wire] = format_as_of(value) if wire in _AS_OF_ARGUMENTS else to_json_value(value)
    if {"tier", "kind", "content_type"} <= operation.arguments.keys() and operation.makes is None:
        names = {"tiers": "tier", "kinds": "kind", "content_types": "content_type"}
        check_names(**{name: found.get(wire, ()) for name, wire in names.items()})
    return found | _changed_arguments(_read_fields(operation, {name: args[name] for name in fields}))


def _read_fields(operation: Operation, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a memory, read as the library reads them; what stays as it is is left out."""
    if operation.makes is None:
        return {}
    if operation.makes is Insert:
        return arguments.insert_fields(fields)
    change = arguments.build_change(operation.makes, {"id": "", **fields})
    return {name: getattr(change, name) for name in fields}


def _recall(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Recall:
    check_limit(args.get("limit"), MAX_HITS)
    receipt = bool(args.get("receipt"))
    if receipt and args.get("limit", 0) > MAX_PAGE_SIZE:
        raise InvalidInput(f"a receipt of a recall over HTTP names at most {MAX_PAGE_SIZE} memories")
    # A receipt that is kept is one more each time it is asked for.
    hits, answers = _pages(operation, args, transport, "hits", once=receipt)
    return from_json(Recall, {**answers[0], "hits": hits})


def _find(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Memories:
    items, answers = _pages(operation, args, transport)
    # A server of an older release says nothing of it.
    lost, notes = (tuple(map(str, answers[-1].get(name, ()))) for name in ("withheld", "notes"))
    counts: dict[str, Any] = {name: answers[0].get(name) for name in ("total", "head")}
    if counts["total"] is None:
        counts = {}
    return Memories(from_json(list[Record], items), withheld=lost, notes=notes, **counts)


def _list(operation: Operation, args: Mapping[str, Any], transport: Transport) -> list[Any]:
    return from_json(operation.result, _pages(operation, args, transport)[0])  # type: ignore[no-any-return]


def _pending(operation: Operation, args: Mapping[str, Any], transport: Transport) -> ProposalPage:
    items, answers = _pages(operation, args, transport)
    facts = from_json(_QueueSummary, answers[0])
    return ProposalPage(from_json(list[Proposal], items), **msgspec.structs.asdict(facts))


class _QueueSummary(Data):
    """What a page of the review queue says beside its proposals."""

    offset: int
    total: int
    counts: dict[str, dict[str, int]]
    oldest_at: datetime | None


def _pages(
    operation: Operation, args: Mapping[str, Any], transport: Transport, key: str = "items", *, once: bool = False
) -> tuple[list[Any], list[ResponseBody]]:
    """Return the items of a list, all of them or the first ones, and the answers that they came in, page by page."""
    limit: int | None = None
    if "limit" in operation.signature.parameters:
        limit = args.get("limit", _default(operation, "limit"))
    check_limit(limit)
    asked, size, cursor, onward = arguments_of(operation, args), MAX_PAGE_SIZE, "cursor", "cursor"
    if operation.name == "pending":
        cursor, onward = "offset", "next_offset"
    elif operation.name == "log":
        asked, size, cursor, onward = {**asked, "events": True}, _MAX_COMMITS_PER_PAGE, "before", "next_before"
    # The size stays the same: a page begins where the one before ended.
    asked["limit"] = size if limit is None else min(size, limit)
    answers: list[ResponseBody] = []
    found: list[Any] = []
    while True:
        answers.append(transport.get(operation.path, list(asked.items()), once=once))
        found += from_json(list[Any], answers[-1][key])
        asked[cursor] = answers[-1].get(onward)
        if asked[cursor] is None or (limit is not None and len(found) >= limit):
            return found[:limit], answers


def _propose(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Outcome:
    draft = Draft(transport, args.get("reason", ""), args.get("session"))
    for each in args["changes"]:
        draft.stage(arguments.require_content(each))
    return draft.send()


def _propose_changes(
    transport: Transport, changes: list[dict[str, Any]], reason: str, session: str | None = None
) -> Outcome:
    body = {"changes": changes, **without_none({"reason": reason or None, "session": session})}
    return from_json(Outcome, transport.post("/memory/edit", body))  # type: ignore[no-any-return]


def _update_by_key(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Outcome:
    # As a memory with a key: a key in a path may hold no slash.
    asked = {"kind": _default(operation, "kind"), **arguments_of(operation, args)}
    return from_json(Outcome, transport.post("/memory/items", asked))  # type: ignore[no-any-return]


def _merge(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Outcome | None:
    asked = arguments_of(operation, args)
    answer = _call_operation(operation, transport, asked) if asked.get("ids") else {}
    return from_json(Outcome, answer) if answer.get("outcome") else None


def _forget_many(
    operation: Operation, args: Mapping[str, Any], transport: Transport
) -> tuple[Outcome | None, list[str]]:
    asked = arguments_of(operation, args)
    if not asked.get("ids"):
        return None, []
    return from_json(tuple[Outcome | None, list[str]], _call_operation(operation, transport, asked))


def _remember_many(
    operation: Operation,
    args: Mapping[str, Any],
    transport: Transport,
    *,
    batch: int = _MAX_ITEMS,
    on_progress: Any = None,
) -> list[Outcome]:
    if batch < 1:
        raise InvalidInput("a batch holds at least 1 item")
    sent = [{"text": each} if isinstance(each, str) else _changed_arguments(each) for each in args["items"]]
    mode = args.get("mode", "each")
    asked = without_none({"mode": mode, "reason": args.get("reason") or None})
    outcomes: list[Outcome] = []
    for part in [sent] if mode == "atomic" else _batches(sent, min(batch, _MAX_ITEMS)):
        if part:
            found = from_json(list[Outcome], _call_operation(operation, transport, {"items": part, **asked}))
            # All or nothing is one outcome, for all of them.
            outcomes += found * len(part) if mode == "atomic" and len(found) == 1 else found
        if on_progress is not None and mode != "atomic":
            on_progress(len(outcomes), len(sent))
    return outcomes


def _approve(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Outcome:
    seen: Any = args.get("digest")
    if seen is None:
        seen = transport.get(path_of("quarantine", args["proposal_id"]))["digest"]
    if not (isinstance(seen, str) and seen.isascii() and seen.isalnum()):
        raise InvalidInput("a digest is hex digits, as they stand with what waits")
    asked = arguments_of(operation, args)
    if operation.name == "approve":
        asked.pop("digest", None)
    return from_json(Outcome, _call_operation(operation, transport, asked, {"If-Match": f'"{seen}"'}))  # type: ignore[no-any-return]


def _approve_many(operation: Operation, args: Mapping[str, Any], transport: Transport) -> list[DecisionResult]:
    return _decide_many(
        operation,
        transport,
        {"items": [_with_digest(dict(each), transport) for each in arguments.approvals(args["items"])]},
        "items",
    )


def _reject_many(operation: Operation, args: Mapping[str, Any], transport: Transport) -> list[DecisionResult]:
    ids = list(dict.fromkeys(args["ids"]))
    return _decide_many(operation, transport, {**arguments_of(operation, args), "ids": ids}, "ids")


def _decide_many(operation: Operation, transport: Transport, params: dict[str, Any], name: str) -> list[DecisionResult]:
    found: list[DecisionResult] = []
    for start in range(0, len(params[name]), _MAX_DECISIONS):
        part = params | {name: params[name][start : start + _MAX_DECISIONS]}
        found += from_json(list[DecisionResult], _call_operation(operation, transport, part))
    return found


def _with_digest(item: dict[str, Any], transport: Transport) -> dict[str, Any]:
    """Return a proposal to approve with a digest: the given one, else that of the proposal as it is now."""
    if item.get("digest") is not None:
        return item
    try:
        return item | {"digest": transport.get(path_of("quarantine", item["id"]))["digest"]}
    except KeepwardError:
        # The server says of each what is wrong with it.
        return item | {"digest": "0" * 64}


def _rollback(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Any:
    # Whatever the newest commit is: one that touches the same memories is a conflict, and not undone.
    asked = arguments_of(operation, args)
    if args.get("dry_run"):
        return from_json(operation.result, _call_operation(operation, transport, asked))
    for last in (False, False, True):
        head = transport.get(path_of("status"))["etag"]
        try:
            return from_json(operation.result, _call_operation(operation, transport, asked, {"If-Match": head}))
        except StaleVersion:
            # Another commit was made in between.
            if last:
                raise
    raise AssertionError


def _put_blob(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Blob:
    if not isinstance(args["data"], bytes):
        raise InvalidInput("a blob is made of bytes")
    headers = {"Content-Type": args.get("media_type") or "application/octet-stream"}
    return from_json(Blob, response_body(transport.call("POST", operation.path, content=args["data"], headers=headers)))


def _read_blob(operation: Operation, args: Mapping[str, Any], transport: Transport) -> bytes:
    path = path_of("blobs", parse_ref(args["ref"]))
    data: bytes = transport.call("GET", path, headers={"Accept": "*/*"}).content
    if ref_of(data) != args["ref"]:
        raise Tampered("the bytes are not those that were put")
    return data


def _bisect(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Any:
    if not args.get("contains"):
        raise InvalidInput("give the text to look for as `contains`")
    return from_json(operation.result, _call_operation(operation, transport, arguments_of(operation, args)))


#: Operations that take more than one call, or whose call is not made of their arguments alone.
_SPECIAL_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "recall": _recall,
    "list_memories": _find,
    "log": _list,
    "pending": _pending,
    "propose": _propose,
    "update_by_key": _update_by_key,
    "merge": _merge,
    "forget_many": _forget_many,
    "remember_many": _remember_many,
    "approve": _approve,
    "amend": _approve,
    "approve_many": _approve_many,
    "reject_many": _reject_many,
    "rollback": _rollback,
    "put_blob": _put_blob,
    "read_blob": _read_blob,
    "bisect": _bisect,
}


def _batches(items: list[dict[str, Any]], max_items: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the items in order, so many and so large a part as one call takes."""
    part: list[dict[str, Any]] = []
    size = 0
    for item in items:
        weight = len(json.dumps(item, ensure_ascii=False).encode("utf-8", "surrogatepass")) + 1
        if part and (len(part) == max_items or size + weight > _MAX_BODY_BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += weight
    if part:
        yield part


# --- values as JSON


def to_json_value(value: Any) -> Any:
    """Return an argument as JSON values; a span of time is text such as ``90s``, or a number of seconds."""
    match value:
        case Enum():
            return to_json_value(value.value)
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
            return {name: to_json_value(each) for name, each in value.items()}
        case list() | tuple():
            return [to_json_value(each) for each in value]
        case set() | frozenset():
            return sorted(to_json_value(each) for each in value)
    raise InvalidInput("an argument is not plain JSON: texts, numbers, booleans, lists and objects")


def format_as_of(as_of: Any) -> str:
    """Return a moment of the past as text: a commit's number or name, or an instant."""
    if isinstance(as_of, bool) or not isinstance(as_of, int | str | datetime):
        raise InvalidInput("a moment is a commit's number, its id, or an instant")
    return str(to_json_value(as_of))


def without_none(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not None, as JSON values."""
    return {name: to_json_value(value) for name, value in args.items() if value is not None}


def _change_to_json(item: Change) -> dict[str, Any]:
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
    return {"op": operation(item), **_changed_arguments(sent)}


def _changed_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return named arguments of a change, without those that stay as they are; see (1)."""
    found = {name: value for name, value in args.items() if value is not UNSET}
    for name in ("tags", "evidence", "derived_from", "aliases"):
        if name in found:
            found[name] = arguments.texts(name, found[name])
    return {name: to_json_value(value) for name, value in found.items()}


class Draft(LocalDraft):
    """Changes that are collected here, and sent to the server together at the end."""

    def __init__(self, way: Transport, reason: str, session: str | None) -> None:
        self._way, self._reason, self._session, self._ids = way, reason, session, RandomIds()
        self._sent: list[dict[str, Any]] = []
        self.outcome: Outcome | None = None
        #: Ids that new memories get, by the names that their ``Insert`` has here.
        self._names: dict[str, str] = {}

    def _insert(self, text: str, fields: Mapping[str, Any]) -> str:
        self._require_open()
        name = self._ids.new_id(SystemClock().now())
        self._sent.append(
            {"op": "insert", "id": name, **arguments_of(OPERATIONS["remember"], {"text": text, **fields})}
        )
        return name

    def stage(self, change: Change) -> None:
        """Stage a change that is there as data; the id of an ``Insert`` is a name for the changes that follow."""
        self._require_open()
        sent = _change_to_json(change)
        if isinstance(change, Insert) and not arguments.IS_NEW_ID(change.id):
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
        return _propose_changes(self._way, self._sent, self._reason, self._session)
