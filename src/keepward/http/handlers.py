"""Handlers: run operations over HTTP and turn results into responses.

* Later pages are read from the state and the clock of the first page.
* A write answers 201 committed, 202 quarantined, 200 duplicate, 422 refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate
from typing import Any

from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.responses import Response

from keepward.core.branch import BranchDiff, BranchPage
from keepward.core.change import BOOKKEEPING
from keepward.core.journal import CommitPage, CommitView, Differences, Rollback
from keepward.core.json_form import encode_json, to_json
from keepward.core.memory import Record
from keepward.core.principals import Token, branch_scope, visible_from
from keepward.core.proposal import (
    Committed,
    DecisionResult,
    Outcome,
    Proposal,
    ProposalPage,
    Quarantined,
    Refused,
    is_too_long_for_tier,
)
from keepward.core.query import MAX_HITS, Memories, Recall
from keepward.core.quotes import FOLLOW
from keepward.errors import KeepwardError, NotFound, StaleVersion, Unauthorised
from keepward.http.auth import app_state_of
from keepward.http.requests import (
    STATUS_OF_CODE,
    PageState,
    Problem,
    bad_cursor,
    cursor_of,
    head_seq,
    memory_etag,
    not_modified,
    page_offset,
    require_match,
    text_etag,
)
from keepward.memory import Memory, request_context_of
from keepward.operations import Operation, operation
from keepward.services.reading.queries import is_counted
from keepward.services.reading.recall import parse_as_of
from keepward.services.review import decisions
from keepward.services.review.edits import parse_change
from keepward.services.undoing.rollback import undo_digest

#: A page of the log ends before the commit with which it would have more steps; each has two memories.
MAX_STEPS_PER_PAGE = 1_000
_STATUS = {"committed": 201, "quarantined": 202, "duplicate": 200}


def error_fields(exc: KeepwardError) -> dict[str, Any]:
    """Return an error as a part of a response."""
    return {"code": exc.code, "detail": str(exc), "status": STATUS_OF_CODE.get(exc.code, 500)}


def page_fields(items: Sequence[Any], cursor: str | None = None, **extra: Any) -> dict[str, Any]:
    """Return one page of a list; ``cursor`` leads to the next page, null at the end."""
    return {"items": items, "cursor": cursor, **extra}


def write_response(result: Outcome) -> Response:
    """Return the response of a write: 201 committed, 202 quarantined, 200 duplicate, 422 refused."""
    if isinstance(result, Refused):
        detail = "; ".join(reason.detail for reason in result.reasons) or "a gate refused the write"
        detail += (
            ": POST /memory/import?format=markdown with the text as the body" if is_too_long_for_tier(result) else ""
        )
        return Problem(422, "refused", detail, **to_json(result)).response()
    headers: dict[str, str] = {}
    if (
        isinstance(result, Committed)
        and sum(step["op"] != FOLLOW for step in result.receipt.facts.get("targets", ())) == 1
    ):
        # What followed a forgotten memory is in the body alone.
        headers = {"Location": f"/memory/items/{result.id}", "ETag": memory_etag(result.records[0])}
    elif isinstance(result, Quarantined):
        headers = {"Location": f"/memory/quarantine/{result.item.id}"}
    return json_response(result, _STATUS[result.outcome], headers)


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response of a result, or of JSON values with results in them."""
    return Response(encode_json(body), status, dict(headers or {}), "application/json")


#: Operations that exist only over HTTP, by name.
HTTP_OPERATIONS: dict[str, Operation] = {}
#: Registers an operation that exists only over HTTP.
http_operation = partial(operation, into=HTTP_OPERATIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCall:
    """One request of an operation."""

    http: Request
    memory: Memory
    operation: Operation
    #: Sent arguments by JSON name; ``http_only`` are HTTP-only parameters.
    given: dict[str, Any]
    http_only: dict[str, Any]
    #: Whether arguments have their names in Python. Then ``digest`` and ``if_version`` say what the caller saw, and a
    #: header ``If-Match`` is not required.
    by_name: bool = False

    @property
    def names_digest(self) -> bool:
        """Whether the argument ``digest`` says what the caller saw."""
        return self.by_name and bool(self.given.get("digest"))

    def run(self, **overrides: Any) -> Any:
        """Run the operation; ``overrides`` replace sent arguments."""
        return getattr(self.memory, self.operation.name)(**self.arguments(**overrides))

    def arguments(self, **overrides: Any) -> dict[str, Any]:
        """Return the sent arguments by their names in Python."""
        own: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = {}
        for wire, value in {**self.given, **overrides}.items():
            argument = self.operation.arguments[wire]
            values = own if argument.within is None else groups.setdefault(argument.within, {})
            values[argument.name] = value
        return own | groups


def propose(call: OperationCall) -> Response:
    asks = request_context_of(call.memory)
    changes = [parse_change(asks, each) for each in call.given["changes"]]
    session = call.given.get("session")
    return write_response(call.memory.propose(changes, reason=call.given.get("reason", ""), session=session))


def status(call: OperationCall) -> Response:
    memory, report = call.memory, call.run()
    extra = {
        "path": report["path"] if memory.actor.is_owner else None,
        "actor_record": memory.actor,
        "now": memory.now,
    }
    return json_response({**report, **extra})


@http_operation("GET /memory/core", name="core", right="read")
def about_core(self: Any) -> Any:
    """Return the core blocks. If two have the same key, that of the nearer scope applies."""


def core(call: OperationCall) -> Response:
    memory = call.memory
    report = memory.status()
    listing = memory.list_memories(tiers=["core"], limit=None)
    scopes = visible_from(branch_scope(memory.branch_name, memory.scope))
    nearest = {
        record.key: record for record in sorted(listing, key=lambda record: (-scopes.index(record.scope), record.id))
    }
    # With an identity file, the block `persona` is not what contexts begin with.
    found = {name: nearest.pop(name, None) for name in report["blocks"]}
    blocks = [
        {"key": name, "tokens": each["tokens"], "budget": each["budget"], **_block(found[name] if each["id"] else None)}
        for name, each in report["blocks"].items()
    ]
    body = {"head": report["head"], "scope": memory.scope, "blocks": blocks}
    body["items"] = list(nearest.values())
    return json_response({**body, "withheld": listing.withheld, "notes": listing.notes})


def _block(record: Record | None) -> dict[str, Any]:
    own = {name: record and getattr(record, name) for name in ("id", "version", "text")}
    return {**own, "memory": record}


def search(call: OperationCall) -> Response:
    start, moment = page_offset(call.http, call.http_only["cursor"])
    end = start + call.given["limit"]
    params = {"limit": min(end, MAX_HITS)}
    try:
        # Read the state of the first page: by its clock, or, if a write was committed just before it, by the clock of
        # the commit of that state.
        recall: Recall = call.run(**params, as_of=moment.at) if moment else call.run(**params)
        if moment and head_seq(recall.head) != moment.seq:
            recall = call.run(**params, as_of=moment.seq)
    except NotFound as exc:
        raise _missing_state_error(call, exc) from exc
    has_more = len(recall.hits) == end < MAX_HITS
    moment = moment or PageState(seq=head_seq(recall.head), at=recall.now)
    page = asdict(replace(recall, hits=recall.hits[start:]))
    return json_response({**page, "cursor": cursor_of(call.http, end, moment) if has_more else None})


#: Parameters that order a list, with their defaults.
_ORDER: Mapping[str, Any] = {"offset": None, "sort": "created", "ascending": False}


def find(call: OperationCall) -> Response:
    memory, (start, moment) = call.memory, page_offset(call.http, call.http_only["cursor"])
    params = call.arguments()
    order = {name: params.pop(name, usual) for name, usual in _ORDER.items()}
    if is_counted(params, **order):
        return _ordered_page(call, start, moment)
    end, as_of = start + call.given["limit"], parse_as_of(call.given.get("as_of"))
    if as_of is not None and not (isinstance(as_of, datetime) and as_of > memory.now):
        # A past state does not change; the state of a future instant does.
        memories = call.run(limit=end + 1)
    elif moment is None:
        memories, moment = _read_settled_state(call, end + 1, as_of)
    else:
        try:
            memories = _read_past_state(call, moment)
        except NotFound as exc:
            raise _missing_state_error(call, exc) from exc
    cursor = cursor_of(call.http, end, moment) if len(memories) > end else None
    page = replace(memories, items=memories.items[start:end], head=memory.head, total=None)
    return json_response({**asdict(page), "cursor": cursor})


def _ordered_page(call: OperationCall, start: int, moment: PageState | None) -> Response:
    """Return one page of an ordered list; later pages are of the state of the first."""
    start = start or call.given.get("offset", 0)
    # Read the present while it is still that state.
    moved = {"as_of": moment.seq} if moment and moment.seq != head_seq(call.memory.head) else {}
    try:
        memories: Memories = call.run(offset=start, **moved)
    except NotFound as exc:
        raise _missing_state_error(call, exc) from exc
    end, total = start + call.given["limit"], memories.total or 0
    moment = moment or PageState(seq=head_seq(memories.head or ""), at=call.memory.now)
    cursor = cursor_of(call.http, end, moment) if end < total else None
    return json_response({**asdict(memories), "total": total, "cursor": cursor})


def _read_settled_state(call: OperationCall, limit: int, as_of: Any) -> tuple[Memories, PageState]:
    """Read the present and return its state. If writes keep coming, read that state explicitly."""
    memory = call.memory
    for _ in range(3):
        head, now = memory.head, as_of or memory.now
        memories = call.run(limit=limit)
        if memory.head == head:
            return memories, PageState(seq=head_seq(head), at=now)
    moment = PageState(seq=head_seq(memory.head), at=as_of or memory.now)
    return _read_past_state(call, moment), moment


def _read_past_state(call: OperationCall, moment: PageState) -> Memories:
    """Return all memories that pass in a state, by the clock of the first page."""
    memories: Memories = call.run(include_ended=True, limit=None, as_of=moment.seq)
    if call.given.get("include_ended"):
        return memories
    return replace(memories, items=tuple(record for record in memories if record.is_live(moment.at)))


def _missing_state_error(call: OperationCall, exc: NotFound) -> Exception:
    """Return the error of a missing state; with a cursor, the cursor is wrong."""
    return bad_cursor("belongs to a state that no longer exists") if call.http_only["cursor"] else exc


def get(call: OperationCall) -> Response:
    record: Record = call.run()
    tag = memory_etag(record)
    return not_modified(call.http, tag) or json_response(record, headers={"ETag": tag})


def log(call: OperationCall) -> Response:
    page: CommitPage = call.run()
    shown = _within(page.items, MAX_STEPS_PER_PAGE)
    if len(shown) < len(page):
        last = shown[-1].commit.seq
        damaged = tuple(each for each in page.damaged if each.seq > last)
        notes = tuple(each.note for each in damaged)
        page = replace(page, items=tuple(shown), next_before=last, damaged=damaged, notes=notes)
    return json_response(page)


def _within(commits: Sequence[CommitView], max_steps: int) -> Sequence[CommitView]:
    """Return the first commits with at most so many steps; at least one, if there is one."""
    sums = accumulate(len(view.steps) for view in commits)
    fitting = sum(1 for steps in sums if steps <= max_steps)
    return commits[: max(fitting, 1)]


def show(call: OperationCall) -> Response:
    view: CommitView = call.run()
    if view.damage:
        # A damaged commit cannot be rolled back, so nothing needs its digest.
        return json_response(view)
    tag = text_etag(undo_digest(request_context_of(call.memory), view.commit.id))
    return json_response(view, headers={"ETag": tag})


def rollback(call: OperationCall) -> Response:
    """Undo a commit if the caller saw the memories as they are, or return what would happen."""
    dry = call.given.get("dry_run", False)
    # Missing rights are reported before a missing header.
    done: Rollback = call.run(dry_run=True)
    if not done.already:
        where = "GET /memory/commits/{commit_id}, or the `etag` of a dry run"
        needed = not dry and not call.names_digest
        require_match(call.http, text_etag(done.digest), required=needed, where=where, any_version=False)
    if not dry:
        # The value in the body must not contradict the header.
        done = call.run(digest=call.given.get("digest") or done.digest)
    data = {**asdict(done), "dry_run": dry, "etag": text_etag(done.digest)}
    if done.conflicts and not dry:
        detail = "later commits changed the same memories, so nothing was changed; `with_later` undoes them too"
        return Problem(409, "conflict", detail, **to_json(data)).response()
    return json_response(data)


def pending(call: OperationCall) -> Response:
    page: ProposalPage = call.run()
    items = [_review_fields(call.memory, item) for item in page]
    return json_response({**asdict(page), "items": items, **_onward(page, len(page))})


def _onward(page: ProposalPage | Differences | BranchPage | BranchDiff, shown: int) -> dict[str, int | None]:
    """Return what leads to the next page: the number of items to skip, null at the end."""
    end = page.offset + shown
    return {"next_offset": end if end < page.total else None}


def _review_fields(memory: Memory, item: Proposal) -> dict[str, Any]:
    """Return a proposal for its reviewer; ``shown`` has every character that would be stored."""
    return {**asdict(item), "shown": memory.proposed_steps(item)}


def get_proposal(call: OperationCall) -> Response:
    item = call.run()
    return json_response(_review_fields(call.memory, item), headers={"ETag": text_etag(item.digest)})


def approve(call: OperationCall) -> Response:
    """Approve the version that the caller saw, also amended. Missing rights are reported first."""
    if not call.memory.actor.may_decide:
        return write_response(call.run())
    item = decisions.proposal(request_context_of(call.memory), call.given["id"])
    where = "GET /memory/quarantine/{id}; it is the digest of the proposal in quotes"
    needed = not call.names_digest
    require_match(call.http, text_etag(item.digest), required=needed, where=where, any_version=False)
    if call.given.get("digest") not in {None, item.digest}:
        # The value in the body must not contradict the header.
        raise StaleVersion
    return write_response(call.run(digest=item.digest))


def tokens(call: OperationCall) -> Response:
    serving, now = app_state_of(call.http), call.memory.now

    def used_at(item: Token) -> datetime | None:
        then = serving.used.get(item.id)
        return None if then is None else now - timedelta(seconds=serving.monotonic() - then)

    return json_response(page_fields([token(call.memory, item, used_at(item)) for item in call.run()]))


def create_token(call: OperationCall) -> Response:
    issued = call.run()
    return json_response({"token": token(call.memory, issued.token), "secret": issued.secret}, 201)


def token(memory: Memory, item: Token, used_at: datetime | None = None) -> dict[str, Any]:
    """Return a token with its state."""
    return {**asdict(item), "state": item.state(memory.now), "used_at": used_at}


def remember_many(call: OperationCall) -> Response:
    results, mode = call.run(), call.given.get("mode", "each")
    outcomes = results[:1] if mode == "atomic" else results
    return json_response({"mode": mode, "count": len(results), "outcomes": outcomes})


def update_memory(call: OperationCall) -> Response:
    """Change the version that the caller saw. Missing rights are reported first."""
    if not call.memory.actor.may_propose:
        return write_response(call.run())
    seen = check_if_match(call, required=call.operation.name == "revise" and not call.by_name)
    if seen is None:
        return write_response(call.run())
    if call.given.get("if_version") not in {None, seen}:
        # The value in the body must not contradict the header.
        raise StaleVersion
    return write_response(call.run(if_version=seen))


def check_if_match(call: OperationCall, *, required: bool) -> int | None:
    """Return the version that the caller saw, from ``If-Match``."""
    request, memory = call.http, call.memory
    if not required and "if-match" not in request.headers:
        return None
    try:
        record = memory.get(call.given["id"])
    except Unauthorised:
        # The writer may no longer read the memory, so there is no version to compare; the gates check the change.
        if request.headers.get("if-match", "").strip() == "*":
            return None
        raise
    versions = {memory_etag(record): record.version}
    if record.version > 1:
        for version in reversed(memory.history(record.id)):
            versions.setdefault(memory_etag(version.record), version.record.version)
            # A version before bookkeeping has the same content.
            if version.op not in BOOKKEEPING:
                break
    tag = require_match(request, *versions)
    return None if tag is None else versions[tag]


def erase(call: OperationCall) -> Response:
    done = call.run()
    return json_response({**asdict(done), "certificate": call.memory.certificate(done.commit.id)})


def certificate(call: OperationCall) -> Response:
    found = call.run()
    if call.http_only.get("format") != "html":
        return json_response(found)
    # Few servers print a certificate.
    from keepward.interchange.certificate import certificate_page

    name = f"erasure-{found['commit']['id']}.html"
    # A page of the server may have no styles of its own; a file may.
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(certificate_page(found), headers=headers, media_type="text/html")


def json_endpoint(extra: Callable[[OperationCall, Any], dict[str, Any]]) -> Callable[[OperationCall], Response]:
    """Return a handler that answers with the result and ``extra`` keys computed from it."""

    def answer(call: OperationCall) -> Response:
        result = call.run()
        if isinstance(result, Outcome):
            return write_response(result)
        more = extra(call, result)
        body = page_fields(result) if call.operation.answer == "items" else call.operation.as_object(result)
        # Null, if a write had nothing to do.
        return json_response({**body, **more} if more else body, call.operation.status if result is not None else 200)

    return answer


def _decision_counts(word: str) -> Callable[[OperationCall, Any], dict[str, Any]]:
    def counts(_: OperationCall, results: list[DecisionResult]) -> dict[str, Any]:
        done = sum(result.ok for result in results)
        return {word: done, "failed": len(results) - done}

    return counts


plain_endpoint = json_endpoint(lambda *_: {})
_approve_many, reject_many = json_endpoint(_decision_counts("approved")), json_endpoint(_decision_counts("rejected"))


def approve_many(call: OperationCall) -> Response:
    """Approve several proposals by digest. Missing rights are reported first."""
    lacking = [number for number, item in enumerate(call.given["items"]) if not item.get("digest")]
    if lacking and call.memory.actor.may_decide:
        detail = f"body.items.{lacking[0]}.digest: send the digest that you saw in GET /memory/quarantine"
        raise Problem(428, "precondition_required", detail)
    return _approve_many(call)


def diff(call: OperationCall) -> Response:
    found: Differences = call.run()
    later = call.given.get("later")
    span = {"from": str(call.given["earlier"]), "to": None if later is None else str(later)}
    return json_response({**asdict(found), **span, **_onward(found, len(found))})


def branches(call: OperationCall) -> Response:
    page: BranchPage = call.run()
    return json_response({**asdict(page), **_onward(page, len(page))})


def branch_changes(call: OperationCall) -> Response:
    found: BranchDiff = call.run()
    return json_response({**asdict(found), **_onward(found, len(found.changes))})


doctor = json_endpoint(lambda _, checks: {"ok": all(check.ok for check in checks)})
rebuild = json_endpoint(lambda call, _: {"head": call.memory.head})
