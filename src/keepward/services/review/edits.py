"""Writes with the parameters of callers: arguments become changes, which are proposed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from msgspec.structs import replace

from keepward.core import change as changes
from keepward.core.change import CHANGE_BY_OPERATION, UNSET, Change, Insert, Replace
from keepward.core.principals import branch_of, main_scope
from keepward.core.proposal import Outcome
from keepward.core.quotes import quotes_metadata
from keepward.errors import InvalidInput, NotFound, Unauthorised
from keepward.services import arguments
from keepward.services.reading import recall
from keepward.services.reading.visible import VisibleReader
from keepward.services.recorded_reads import record_read
from keepward.services.request_context import RequestContext
from keepward.services.review.decisions import amend as amended
from keepward.services.writing.blobs import content_type
from keepward.services.writing.write import propose as propose_changes
from keepward.services.writing.write import propose_each


def remember(context: RequestContext, /, text: str, *, reason: str = "", **fields: Any) -> Outcome:
    """Propose a new memory."""
    change = new_memory(context, text, fields)
    return _propose(context, [change], reason, conversation=change.session)


def remember_many(
    context: RequestContext,
    /,
    items: Sequence[Mapping[str, Any] | str],
    *,
    mode: str = "each",
    reason: str = "",
    kind: str = "write",
    batch: int = 500,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Propose many memories in batches, or all as one; ``on_progress`` is called with (done, total)."""
    new = new_memories(context, items)
    if mode == "atomic":
        return [_propose(context, new, reason, kind=kind)] * len(new) if new else []
    outcomes: list[Outcome] = []
    for start in range(0, len(new), batch):
        outcomes += propose_each(context, new[start : start + batch], reason=reason, kind=kind)
        if on_progress is not None:
            on_progress(len(outcomes), len(new))
    return outcomes


def _change_of_memory(change_type: type[Any]) -> Callable[..., Outcome]:
    """Return the operation that proposes one type of change of one memory."""

    def edit(context: RequestContext, /, memory_id: str, *, reason: str = "", **fields: Any) -> Outcome:
        given: dict[str, Any] = {"id": memory_id, **fields}
        given |= {name: resolve_id(context, given[name]) for name in ("id", "by") if name in given}
        return _propose(context, [arguments.require_content(arguments.build_change(change_type, given))], reason)

    return edit


revise = _change_of_memory(changes.Replace)
append = _change_of_memory(changes.Append)
forget = _change_of_memory(changes.Retire)
archive = _change_of_memory(changes.Archive)
restore = _change_of_memory(changes.Restore)
reinforce = _change_of_memory(changes.Reinforce)
move = _change_of_memory(changes.Move)
promote = _change_of_memory(changes.Promote)
supersede = _change_of_memory(changes.Supersede)


def merge(
    context: RequestContext, /, memory_ids: Sequence[str], text: str | None = None, *, reason: str = "", **fields: Any
) -> Outcome | None:
    """Propose one summary instead of several memories; None for fewer than two."""
    ids = list(dict.fromkeys(resolve_id(context, name) for name in memory_ids))
    if len(ids) < 2:
        return None
    records = [recall.get(context, memory_id) for memory_id in ids]
    record_read(context, records)
    first = records[0]
    if len({(record.subject, record.scope, record.sensitivity) for record in records}) > 1:
        raise InvalidInput("only memories of one subject, scope and sensitivity can be merged")
    if fields.get("subject", first.subject) != first.subject:
        raise InvalidInput("a summary is about whom its memories are about: leave `subject` out")
    joined = text if text is not None else "\n".join(record.text for record in records)
    inherited = {"kind": "summary", "scope": main_scope(first.scope), "subject": first.subject, **fields}
    if text is None and isinstance(inherited.get("metadata"), Mapping | None):
        lines = quotes_metadata([record.text.count("\n") + 1 for record in records])
        inherited["metadata"] = {**(inherited.get("metadata") or {}), **lines}
    summary = new_memory(context, joined, inherited)
    summary = replace(summary, derived_from=(*ids, *summary.derived_from))
    merged: list[Change] = [summary, *(changes.Supersede(id=memory_id, by=summary.id) for memory_id in ids)]
    return _propose(context, merged, reason.strip() or "merged")


def forget_many(
    context: RequestContext, /, memory_ids: Sequence[str], *, reason: str = ""
) -> tuple[Outcome | None, list[str]]:
    """Propose to retire memories in one commit; return the outcome and the ids that were not found."""
    found, missing = [], []
    for name in dict.fromkeys(memory_ids):
        try:
            found.append(resolve_id(context, name))
        except NotFound:
            missing.append(name)
    retired = [changes.Retire(id=memory_id) for memory_id in found]
    return _propose(context, retired, reason) if found else None, missing


def propose(
    context: RequestContext, /, changes: Sequence[Change], *, reason: str = "", kind: str = "write", **extra: Any
) -> Outcome:
    """Propose changes that are committed, quarantined or refused together; ``session`` is the conversation."""
    if not all(isinstance(change, get_args(Change)) for change in changes):
        raise InvalidInput("changes are a list of Insert(...), Replace(...) and the others of keepward")
    ids = arguments.NewIds(lambda: context.ids.new_id(context.clock.now()))
    checked = [ids.assign(arguments.require_content(change)) for change in changes]
    return _propose(context, checked, reason, conversation=extra.get("session"), kind=kind, named=True)


def amend(
    context: RequestContext,
    /,
    proposal_id: str,
    text: str = UNSET,
    *,
    digest: str | None = None,
    memory: str | None = None,
    if_version: int | None = None,
    leave_out: Sequence[str] = (),
    **fields: Any,
) -> Outcome:
    """Approve a proposal with one's own changes."""
    new_text = {} if text is UNSET else {"text": text}
    change = arguments.build_change(Replace, {"id": "", **new_text, **fields})
    return amended(
        context, proposal_id, change, digest=digest, memory=memory, if_version=if_version, leave_out=tuple(leave_out)
    )


def parse_change(context: RequestContext, sent: Mapping[str, Any]) -> Change:
    """Return a change from JSON: its ``op`` and the fields of that change, for a new memory those of ``remember``.

    A new memory may be given its id, a fresh UUIDv7, so that later changes can name it.

    Raises:
        InvalidInput: an id, instant, duration or scope is invalid.
    """
    fields = dict(sent)
    change_type = CHANGE_BY_OPERATION[fields.pop("op")]
    if change_type is not Insert:
        change: Change = arguments.build_change(change_type, fields)
        return change
    name = fields.pop("id", None)
    new = new_memory(context, fields.pop("text"), fields)
    if name is None:
        return new
    if not arguments.IS_NEW_ID(name):
        raise InvalidInput("the id of a new memory is a UUIDv7 in small letters; leave it out to get one")
    return replace(new, id=name)


def new_memory(context: RequestContext, text: str, given: Mapping[str, Any], *, one_of_many: bool = False) -> Insert:
    """Return the change that makes a memory, with an id; with ``one_of_many`` a gate checks unknown names."""
    fields = arguments.insert_fields(given, one_of_many=one_of_many)
    if fields.get("scope") is None:
        # The write path puts it on the branch of the handle.
        fields["scope"] = context.scope if branch_of(context.scope) is None else UNSET
    if fields.get("blob") is not None and "content_type" not in fields:
        fields["content_type"] = content_type(context, fields["blob"])
    checked_text = arguments.text(text)
    if fields.get("vector") is not None:
        _check_vector(context, fields["vector"])
    return Insert(id=context.ids.new_id(context.clock.now()), text=checked_text, **fields)


def new_memories(context: RequestContext, items: Sequence[Any]) -> list[Insert]:
    """Return an ``Insert`` for each text or mapping; a gate refuses those with a wrong field."""
    inserts = []
    for item in items:
        if isinstance(item, str):
            inserts.append(new_memory(context, item, {}))
            continue
        if not isinstance(item, Mapping):
            raise InvalidInput("an item is a text, or a mapping of the arguments of `remember`")
        if "text" not in item:
            raise InvalidInput("an item needs a `text`")
        # A gate reports an invalid field, so that it affects only its own item.
        given = {name: value for name, value in item.items() if name != "text"}
        inserts.append(new_memory(context, item["text"], given, one_of_many=True))
    return inserts


def resolve_id(context: RequestContext, name: Any) -> str:
    """Return the id of a memory that the actor may change, by id or alias."""
    if not isinstance(name, str) or not name:
        raise InvalidInput("a memory is named by its id, a text")
    return VisibleReader(context).fetch(name, own=True).id


def _propose(
    context: RequestContext,
    proposed_changes: Sequence[Change],
    reason: str,
    *,
    conversation: str | None = None,
    kind: str = "write",
    named: bool = False,
) -> Outcome:
    return propose_changes(context, proposed_changes, reason=reason, conversation=conversation, kind=kind, named=named)


def _check_vector(context: RequestContext, vector: Sequence[float]) -> None:
    actor, embedder = context.actor, context.embedder
    if actor.credential is not None and not actor.is_owner:
        raise Unauthorised("a vector decides on which queries find a memory: with a token, only the owner gives one")
    if embedder is None:
        raise InvalidInput("this store is open without an embedder: there is nothing to compare a vector with")
    if len(vector) != embedder.dim:
        raise InvalidInput(f"a vector of this store has {embedder.dim} numbers ({embedder.id})")
