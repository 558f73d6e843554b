"""Operations as HTTP requests: ``POST /memory/call/{operation}`` with the arguments that they have in Python.

* ``UNSET`` arguments are omitted; None is sent if it empties a field.
* An argument that JSON cannot represent exactly raises ``InvalidInput`` before anything is sent.
* A write of one outcome has an idempotency key. Other changes are sent once, unless the rate limit rejected them.
* A draft assigns the ids of its new memories. An ``Insert`` with an id that is not a UUIDv7 gets a new id; other
  changes of the proposal may refer to it by the given id.
* An approval needs a digest. Without one, the proposal is read first, and the approval is bound to that version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import Enum
from types import TracebackType
from typing import Any, get_args

import msgspec

from keepward.api import OPERATIONS
from keepward.client.transport import ResponseBody, Transport, read_result, response_body
from keepward.core.blob import Blob, parse_ref, ref_of
from keepward.core.branch import BranchDiff, BranchPage
from keepward.core.change import UNSET, Change, Insert, Revert, operation
from keepward.core.journal import CommitPage, Differences, Rollback, Verification
from keepward.core.json_form import to_json
from keepward.core.memory_test import MemoryTest
from keepward.core.proposal import DecisionResult, Outcome, ProposalPage
from keepward.core.query import Memories, Recall
from keepward.core.value import json_problem
from keepward.draft import Draft as LocalDraft
from keepward.errors import InvalidInput, KeepwardError, StaleVersion, Tampered
from keepward.machine.clock import RandomIds, SystemClock
from keepward.operations import Operation
from keepward.services import arguments
from keepward.types import MAX_DECISIONS, MAX_ITEMS, MAX_PAGE_SIZE

#: Maximum number of commits with their events on one page.
_MAX_COMMITS_PER_PAGE = 100
#: Maximum bytes of the items in one request; by default a server accepts one megabyte.
_MAX_BODY_BYTES = 900_000
#: Results of operations on no ids, which a server does not take.
_OF_NO_IDS: Mapping[str, Any] = {"merge": None, "forget_many": (None, [])}

# --- operations


def call_operation(operation: Operation, args: Mapping[str, Any], transport: Transport, **local: Any) -> Any:
    """Run an operation on a server."""
    own = _SPECIAL_OPERATIONS.get(operation.name)
    if own is not None:
        return own(operation, args, transport, **local)
    if operation.name in _OF_NO_IDS and not args["memory_ids"]:
        return _OF_NO_IDS[operation.name]
    result = _call(operation, transport, arguments_of(operation, args))
    if "on_progress" in local:
        # A server reports no progress.
        done = result if isinstance(result, int) else _processed_count(result)
        local["on_progress"](done, done)
    return result


def _processed_count(result: Any) -> int:
    return sum(result.checked.values()) if isinstance(result, Verification) else int(result.feedback)


def _call(operation: Operation, transport: Transport, params: Mapping[str, Any]) -> Any:
    """Send an operation with its arguments and return its result."""
    answer, keys = _answer(operation, transport, params), operation.answer.split()
    if not answer and type(None) in get_args(operation.result):
        return None
    found = answer if not keys else answer[keys[0]] if len(keys) == 1 else [answer[key] for key in keys]
    return read_result(operation.result, found)


def _answer(
    operation: Operation,
    transport: Transport,
    params: Mapping[str, Any],
    query: Mapping[str, Any] | None = None,
    *,
    repeats: bool = True,
) -> ResponseBody:
    """Send an operation with its arguments and return the response; ``query`` has what only HTTP has."""
    return response_body(
        transport.call(
            "POST",
            f"/memory/call/{operation.name}",
            query=(query or {}).items(),
            body=params,
            keyed=operation.is_one_write,
            # Notices are returned once.
            repeats=repeats and not operation.changes and operation.name != "notices",
        )
    )


def arguments_of(operation: Operation, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON values, without defaults."""
    fields = {*args} & {*operation.makes.__struct_fields__} - {"id"} if operation.makes is not None else set[str]()
    params: dict[str, Any] = {}
    for argument in operation.arguments.values():
        name = argument.name
        value = (args if argument.within is None else args.get(argument.within) or {}).get(name)
        if name in fields or value is None or value is argument.default or value == argument.default:
            continue
        params[name] = json.dumps(value) if name == "where" and not isinstance(value, str) else _sent(name, value)
    return params | _changed_arguments(_read_fields(operation, {name: args[name] for name in fields}))


def _read_fields(operation: Operation, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a change as the library validates them."""
    if operation.makes is None:
        return {}
    if operation.makes is Insert:
        text = {name: value for name, value in fields.items() if name == "text" and value is not None}
        return text | arguments.insert_fields({name: value for name, value in fields.items() if name != "text"})
    change = arguments.build_change(operation.makes, {"id": "", **fields})
    return {name: getattr(change, name) for name in fields}


def _recall(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Recall:
    receipt = bool(args.get("receipt"))
    if receipt and args.get("limit", 0) > MAX_PAGE_SIZE:
        raise InvalidInput(f"a receipt of a recall over HTTP names at most {MAX_PAGE_SIZE} memories")
    # Each request with ``receipt`` stores another receipt.
    hits, answers = _pages(operation, args, transport, "hits", repeats=not receipt)
    return read_result(Recall, {**answers[0], "hits": hits})


def _find(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Memories:
    items, answers = _pages(operation, args, transport)
    counts = {name: answers[0].get(name) for name in ("total", "head")}
    if counts["total"] is None:
        counts = dict.fromkeys(counts)
    return read_result(Memories, {**answers[-1], **counts, "items": items})


def _log(operation: Operation, args: Mapping[str, Any], transport: Transport) -> CommitPage:
    items, answers = _pages(operation, args, transport)
    named = {name: [each for answer in answers for each in answer[name]] for name in ("damaged", "notes")}
    return read_result(CommitPage, {**answers[-1], **named, "items": items})


def _pending(operation: Operation, args: Mapping[str, Any], transport: Transport) -> ProposalPage:
    items, answers = _pages(operation, args, transport)
    return read_result(ProposalPage, {**answers[0], "items": items})


def _diff(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Differences:
    items, answers = _pages(operation, args, transport)
    return read_result(Differences, {**answers[0], "items": items})


def _branches(operation: Operation, args: Mapping[str, Any], transport: Transport) -> BranchPage:
    items, answers = _pages(operation, args, transport)
    return read_result(BranchPage, {**answers[0], "items": items})


def _branch_changes(operation: Operation, args: Mapping[str, Any], transport: Transport) -> BranchDiff:
    changes, answers = _pages(operation, args, transport, "changes")
    return read_result(BranchDiff, {**answers[0], "changes": changes})


def _pages(
    operation: Operation, args: Mapping[str, Any], transport: Transport, key: str = "items", *, repeats: bool = True
) -> tuple[list[Any], list[ResponseBody]]:
    """Return the items of a list up to its limit, and the responses that contained them."""
    limit: int | None = None
    if "limit" in operation.signature.parameters:
        limit = args.get("limit", operation.signature.parameters["limit"].default)
    params, query, size = arguments_of(operation, args), dict[str, Any](), MAX_PAGE_SIZE
    # What leads to the next page: an argument, or a cursor.
    onward = "before" if operation.name == "log" else "offset" if operation.name in _BY_OFFSET else None
    if operation.name == "log":
        size = _MAX_COMMITS_PER_PAGE
    # The size stays the same, so that pages are contiguous.
    params["limit"] = size if limit is None else min(size, limit)
    answers: list[ResponseBody] = []
    items: list[Any] = []
    while True:
        answers.append(_answer(operation, transport, params, query, repeats=repeats))
        items += read_result(list[Any], answers[-1][key])
        following = answers[-1].get("cursor" if onward is None else f"next_{onward}")
        if following is None or (limit is not None and len(items) >= limit):
            return items[:limit], answers
        if onward is None:
            query["cursor"] = following
        else:
            params[onward] = following


def _propose(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Outcome:
    draft = ClientDraft(transport, args.get("reason", ""), args.get("session"))
    for change in args["changes"]:
        _check_change(change)
        draft.stage(arguments.require_content(change))
    return draft.send()


def _remember_many(
    operation: Operation,
    args: Mapping[str, Any],
    transport: Transport,
    *,
    batch: int = MAX_ITEMS,
    on_progress: Any = None,
) -> list[Outcome]:
    sent = [_item_to_json(item) for item in args["items"]]
    mode = args.get("mode", "each")
    params = without_none({"mode": mode, "reason": args.get("reason") or None})
    outcomes: list[Outcome] = []
    for part in [sent] if mode == "atomic" else _batches(sent, min(batch, MAX_ITEMS)):
        if part:
            batch_outcomes = _call(operation, transport, {"items": part, **params})
            # An atomic write has one outcome for all items.
            outcomes += batch_outcomes * len(part) if mode == "atomic" and len(batch_outcomes) == 1 else batch_outcomes
        if on_progress is not None and mode != "atomic":
            on_progress(len(outcomes), len(sent))
    return outcomes


def _item_to_json(item: Any) -> dict[str, Any]:
    """Return one of many new memories as its arguments."""
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, Mapping):
        raise InvalidInput("an item is a text, or a mapping of the arguments of `remember`")
    return _changed_arguments(item)


def _approve(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Outcome:
    seen = args.get("digest") or _digest_of(args["proposal_id"], transport)
    return _call(operation, transport, {**arguments_of(operation, args), "digest": seen})  # type: ignore[no-any-return]


def _digest_of(proposal_id: str, transport: Transport) -> str:
    """Return the digest of the current version of a proposal."""
    return str(_answer(OPERATIONS["proposal"], transport, {"proposal_id": proposal_id})["digest"])


def _approve_many(operation: Operation, args: Mapping[str, Any], transport: Transport) -> list[DecisionResult]:
    items = [_with_digest(dict(item), transport) for item in arguments.approvals(args["items"])]
    return _decide_many(operation, transport, {"items": items}, "items")


def _reject_many(operation: Operation, args: Mapping[str, Any], transport: Transport) -> list[DecisionResult]:
    ids = list(dict.fromkeys(args["ids"]))
    return _decide_many(operation, transport, {**arguments_of(operation, args), "ids": ids}, "ids")


def _decide_many(operation: Operation, transport: Transport, params: dict[str, Any], name: str) -> list[DecisionResult]:
    results: list[DecisionResult] = []
    for start in range(0, len(params[name]), MAX_DECISIONS):
        part = params | {name: params[name][start : start + MAX_DECISIONS]}
        results += _call(operation, transport, part)
    return results


def _with_digest(item: dict[str, Any], transport: Transport) -> dict[str, Any]:
    """Return a proposal to approve with a digest: the given one, or that of the current proposal."""
    if item.get("digest") is not None:
        return item
    try:
        return item | {"digest": _digest_of(item["id"], transport)}
    except KeepwardError:
        # The server returns an error for each invalid item.
        return item | {"digest": "0" * 64}


def _rollback(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Any:
    params = arguments_of(operation, args)
    if args.get("dry_run") or args.get("digest") is not None:
        return _call(operation, transport, params)
    for last in (False, False, True):
        seen: Rollback = _call(operation, transport, {**params, "dry_run": True})
        try:
            return _call(operation, transport, {**params, "digest": seen.digest})
        except StaleVersion:
            # Another commit changed the same memories in between.
            if last:
                raise
    raise AssertionError


def _put_blob(operation: Operation, args: Mapping[str, Any], transport: Transport) -> Blob:
    if not isinstance(args["data"], bytes):
        raise InvalidInput("the data of a blob must be bytes")
    named = args.get("media_type")
    if named is not None and not named.strip():
        # An empty header would mean that the bytes decide.
        raise InvalidInput("media_type is empty: give the type of the bytes, or leave it out")
    headers = {"Content-Type": named or "application/octet-stream"}
    # Equal bytes are stored once.
    answer = transport.call("POST", operation.path, content=args["data"], headers=headers, repeats=True)
    return read_result(Blob, response_body(answer))


def _read_blob(operation: Operation, args: Mapping[str, Any], transport: Transport) -> bytes:
    path = f"/memory/blobs/{parse_ref(args['ref'])}"
    data: bytes = transport.call("GET", path, headers={"Accept": "*/*"}).content
    if ref_of(data) != args["ref"]:
        raise Tampered("the bytes differ from the uploaded ones")
    return data


#: Operations that need several requests or a special one.
#: Lists whose next page is named by the number of items before it.
_BY_OFFSET = frozenset({"pending", "diff", "branches", "branch_changes"})
_SPECIAL_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "recall": _recall,
    "list_memories": _find,
    "log": _log,
    "pending": _pending,
    "diff": _diff,
    "branches": _branches,
    "branch_changes": _branch_changes,
    "propose": _propose,
    "remember_many": _remember_many,
    "approve": _approve,
    "amend": _approve,
    "approve_many": _approve_many,
    "reject_many": _reject_many,
    "rollback": _rollback,
    "put_blob": _put_blob,
    "read_blob": _read_blob,
}


def _batches(items: list[dict[str, Any]], max_items: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the items in batches that fit into one request."""
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
    """Return an argument as JSON values; a duration is a number of seconds."""
    match value:
        case Enum():
            return to_json_value(value.value)
        case None | bool() | int() | float() | str():
            return value
        case timedelta():
            return value.total_seconds()
        case datetime():
            if value.tzinfo is None:
                raise InvalidInput("an instant needs a time zone")
            return value.isoformat()
        case Mapping():
            if not all(isinstance(name, str) for name in value):
                raise InvalidInput("the names of an object must be texts")
            return {name: to_json_value(item) for name, item in value.items()}
        case list() | tuple():
            return [to_json_value(item) for item in value]
        case MemoryTest():
            return to_json(value)
        case set() | frozenset():
            return sorted(to_json_value(item) for item in value)
    raise InvalidInput("an argument is not a JSON value: texts, numbers, booleans, lists and objects")


def without_none(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not None, as JSON values."""
    return {name: _sent(name, value) for name, value in args.items() if value is not None}


def _check_change(item: Any) -> None:
    if isinstance(item, Revert):
        raise InvalidInput("a change cannot be a Revert: use rollback")
    if not isinstance(item, get_args(Change)):
        raise InvalidInput("a proposal takes changes, such as Insert(...) or Replace(...)")


def _change_to_json(item: Change) -> dict[str, Any]:
    """Return a change as ``op`` with its arguments."""
    _check_change(item)
    fields = {field.name: (getattr(item, field.name), field.default) for field in msgspec.structs.fields(item)}
    sent = {name: value for name, (value, default) in fields.items() if value is not default and value != default}
    return {"op": operation(item), **_changed_arguments(sent)}


def _changed_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a change as JSON values, without ``UNSET`` ones."""
    params = {name: value for name, value in args.items() if value is not UNSET}
    for name in ("tags", "evidence", "derived_from", "aliases"):
        if name in params:
            params[name] = arguments.texts(name, params[name])
    return {name: _sent(name, value) for name, value in params.items()}


def _sent(name: str, value: Any) -> Any:
    """Return an argument as JSON values that every server takes; a refusal names it."""
    try:
        given = to_json_value(value)
    except InvalidInput as exc:
        raise InvalidInput(f"{name}: {exc}") from exc
    if problem := json_problem(given):
        raise InvalidInput(f"{name} has {problem}")
    return given


def _new_ids() -> arguments.NewIds:
    return arguments.NewIds(lambda: RandomIds().new_id(SystemClock().now()))


class ClientDraft(LocalDraft):
    """Changes that are collected here and sent to the server together."""

    def __init__(self, transport: Transport, reason: str, session: str | None) -> None:
        self._transport, self._reason, self._session = transport, reason, session
        self._ids = _new_ids()
        self._sent: list[dict[str, Any]] = []
        self.outcome: Outcome | None = None

    def _insert(self, text: str, fields: Mapping[str, Any]) -> str:
        self._require_open()
        name = self._ids.new_id()
        self._sent.append(
            {"op": "insert", "id": name, **arguments_of(OPERATIONS["remember"], {"text": text, **fields})}
        )
        return name

    def stage(self, change: Change) -> None:
        """Stage a change. Later changes may refer to an ``Insert`` by its id."""
        self._require_open()
        _check_change(change)
        self._sent.append(_change_to_json(self._ids.assign(change)))

    def discard(self) -> None:
        """Drop all staged changes."""
        self._sent.clear()
        self._ids = _new_ids()

    def __len__(self) -> int:
        return len(self._sent)

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        if kind is None and self._sent:
            self.outcome = self.send()

    def send(self) -> Outcome:
        """Propose all staged changes."""
        args = without_none({"reason": self._reason or None, "session": self._session})
        outcome: Outcome = _call(OPERATIONS["propose"], self._transport, {"changes": self._sent, **args})
        return outcome
