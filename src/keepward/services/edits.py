"""Writes as callers ask for them: arguments become changes, and changes are proposed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from msgspec.structs import replace

from keepward.core import change as changes
from keepward.core.change import CHANGE_BY_OPERATION, UNSET, Change, Insert, Replace
from keepward.core.proposal import Outcome
from keepward.core.value import one_of
from keepward.errors import InvalidInput, NotFound, Unauthorised
from keepward.services import arguments, read
from keepward.services.request_context import RequestContext, record_read


def remember(session: RequestContext, /, text: str, *, reason: str = "", **fields: Any) -> Outcome:
    """Propose a new memory."""
    change = new_memory(session, text, fields)
    return _propose(session, [change], reason, conversation=change.session)


def update_by_key(session: RequestContext, /, key: str, text: str, *, reason: str = "", **fields: Any) -> Outcome:
    """Propose the text of a keyed state."""
    return remember(session, text, reason=reason, **{"kind": "state", **fields, "key": key})


def remember_many(
    session: RequestContext,
    /,
    items: Sequence[Mapping[str, Any] | str],
    *,
    mode: str = "each",
    reason: str = "",
    kind: str = "write",
    batch: int = 500,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Propose many memories ``batch`` at a time, or all together; ``on_progress`` is called with (done, total)."""
    from keepward.services.write import propose_each

    one_of("mode", mode, ("each", "atomic"))
    if arguments.integer("batch", batch) < 1:
        raise InvalidInput("a batch is at least 1")
    new = new_memories(session, items)
    if mode == "atomic":
        return [_propose(session, new, reason, kind=kind)] * len(new) if new else []
    outcomes: list[Outcome] = []
    for start in range(0, len(new), batch):
        outcomes += propose_each(session, new[start : start + batch], reason=reason, kind=kind)
        if on_progress is not None:
            on_progress(len(outcomes), len(new))
    return outcomes


def revise(session: RequestContext, /, memory_id: str, *, reason: str = "", **fields: Any) -> Outcome:
    """Propose new text or fields."""
    return _edit(session, changes.Replace, memory_id, reason, fields)


def append(session: RequestContext, /, memory_id: str, *, reason: str = "", **fields: Any) -> Outcome:
    """Propose an addition."""
    return _edit(session, changes.Append, memory_id, reason, fields)


def forget(session: RequestContext, /, memory_id: str, *, reason: str = "", **fields: Any) -> Outcome:
    """Propose that a memory no longer holds."""
    return _edit(session, changes.Retire, memory_id, reason, fields)


def archive(session: RequestContext, /, memory_id: str, *, reason: str = "", **fields: Any) -> Outcome:
    """Propose to put a memory away."""
    return _edit(session, changes.Archive, memory_id, reason, fields)


def restore(session: RequestContext, /, memory_id: str, *, reason: str = "", **fields: Any) -> Outcome:
    """Propose to bring a memory back."""
    return _edit(session, changes.Restore, memory_id, reason, fields)


def reinforce(session: RequestContext, /, memory_id: str, *, reason: str = "", **fields: Any) -> Outcome:
    """Propose that a memory is confirmed."""
    return _edit(session, changes.Reinforce, memory_id, reason, fields)


def move(session: RequestContext, /, memory_id: str, *, reason: str = "", **fields: Any) -> Outcome:
    """Propose another tier, scope or key."""
    return _edit(session, changes.Move, memory_id, reason, fields)


def promote(session: RequestContext, /, memory_id: str, text: str, *, reason: str = "") -> Outcome:
    """Propose lasting knowledge."""
    return _edit(session, changes.Promote, memory_id, reason, {"text": text})


def supersede(session: RequestContext, /, memory_id: str, by: str, *, reason: str = "") -> Outcome:
    """Propose that one memory is replaced by another."""
    return _edit(session, changes.Supersede, memory_id, reason, {"by": by})


def merge(
    session: RequestContext, /, memory_ids: Sequence[str], text: str | None = None, *, reason: str = "", **fields: Any
) -> Outcome | None:
    """Propose one summary in place of several memories; None for fewer than two."""
    ids = list(dict.fromkeys(resolve_id(session, each) for each in memory_ids))
    if len(ids) < 2:
        return None
    records = [read.get(session, each) for each in ids]
    record_read(session, records)
    first = records[0]
    if len({(each.subject, each.scope, each.sensitivity) for each in records}) > 1:
        raise InvalidInput("only memories of one subject, scope and sensitivity can be merged")
    if fields.get("subject", first.subject) != first.subject:
        raise InvalidInput("a summary is about whom its memories are about: leave `subject` out")
    joined = text if text is not None else "\n".join(each.text for each in records)
    given = {"kind": "summary", "scope": first.scope, "subject": first.subject, **fields}
    summary = new_memory(session, joined, {**given, "derived_from": tuple(ids)})
    made: list[Change] = [summary, *(changes.Supersede(id=each, by=summary.id) for each in ids)]
    return _propose(session, made, reason.strip() or "merged")


def forget_many(
    session: RequestContext, /, memory_ids: Sequence[str], *, reason: str = ""
) -> tuple[Outcome | None, list[str]]:
    """Propose in one commit that memories no longer hold; return the outcome and the ids that were not found."""
    here, missing = [], []
    for each in dict.fromkeys(memory_ids):
        try:
            here.append(resolve_id(session, each))
        except NotFound:
            missing.append(each)
    retired = [changes.Retire(id=each) for each in here]
    return _propose(session, retired, reason) if here else None, missing


def propose(
    session: RequestContext, /, changes: Sequence[Change], *, reason: str = "", kind: str = "write", **extra: Any
) -> Outcome:
    """Propose changes that are carried out, held or refused together; ``session`` is the conversation."""
    if not all(isinstance(each, get_args(Change)) for each in changes):
        raise InvalidInput("changes are a list of Insert(...), Replace(...) and the others of keepward")
    checked = [arguments.require_content(each) for each in changes]
    return _propose(session, checked, reason, conversation=extra.get("session"), kind=kind, named=True)


def amend(
    session: RequestContext,
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
    """Approve a proposal with changes of one's own."""
    from keepward.services.review import amend as amended

    given = {} if text is UNSET else {"text": text}
    change = arguments.build_change(Replace, {"id": "", **given, **fields})
    return amended(
        session, proposal_id, change, digest=digest, memory=memory, if_version=if_version, leave_out=tuple(leave_out)
    )


def parse_change(session: RequestContext, sent: Mapping[str, Any]) -> Change:
    """Return a change as JSON has it: an ``op`` with the fields of its change, of a new memory those of ``remember``.

    A new memory may be given its id, a fresh UUIDv7, so that later changes can name it.

    Raises:
        InvalidInput: an id, instant, duration or scope that cannot be read.
    """
    fields = dict(sent)
    makes = CHANGE_BY_OPERATION[fields.pop("op")]
    if makes is not Insert:
        made: Change = arguments.build_change(makes, fields)
        return made
    name = fields.pop("id", None)
    new = new_memory(session, fields.pop("text"), fields)
    if name is None:
        return new
    if not arguments.IS_NEW_ID(name):
        raise InvalidInput("the id of a new memory is a UUIDv7 in small letters; leave it out to be given one")
    return replace(new, id=name)


def new_memory(session: RequestContext, text: str, given: Mapping[str, Any], *, each: bool = False) -> Insert:
    """Return the change that makes a memory, with an id; with ``each`` unknown names are left to a gate."""
    found = arguments.insert_fields(given, each=each)
    if found.get("scope") is None:
        found["scope"] = session.scope
    if found.get("blob") is not None and "content_type" not in found:
        from keepward.services.blobs import content_type

        found["content_type"] = content_type(session, found["blob"])
    said = arguments.text(text)
    if found.get("vector") is not None:
        _check_vector(session, found["vector"])
    return Insert(id=session.ids.new_id(session.clock.now()), text=said, **found)


def new_memories(session: RequestContext, items: Sequence[Any]) -> list[Insert]:
    """Return an ``Insert`` for each text or mapping; a gate refuses those with a wrong field."""
    return [_one_of_many(session, item) for item in items]


def resolve_id(session: RequestContext, name: Any) -> str:
    """Return the id of a memory that is there and that the session may change, by id or alias."""
    if not isinstance(name, str) or not name:
        raise InvalidInput("a memory is named by its id, a text")
    return session.reader.fetch(name, own=True).id


def _edit(session: RequestContext, makes: type[Any], memory_id: str, reason: str, fields: Mapping[str, Any]) -> Outcome:
    given: dict[str, Any] = {"id": memory_id, **fields}
    given |= {name: resolve_id(session, given[name]) for name in ("id", "by") if name in given}
    return _propose(session, [arguments.require_content(arguments.build_change(makes, given))], reason)


def _propose(
    session: RequestContext,
    asked: Sequence[Change],
    reason: str,
    *,
    conversation: str | None = None,
    kind: str = "write",
    named: bool = False,
) -> Outcome:
    from keepward.services.write import propose as proposed

    return proposed(session, asked, reason=reason, conversation=conversation, kind=kind, named=named)


def _one_of_many(session: RequestContext, item: Any) -> Insert:
    if isinstance(item, str):
        return new_memory(session, item, {})
    if not isinstance(item, Mapping):
        raise InvalidInput("an item is a text, or a mapping of the arguments of `remember`")
    if "text" not in item:
        raise InvalidInput("an item needs a `text`")
    # What is wrong with one item of many is told in its place, by a gate.
    given = {name: value for name, value in item.items() if name != "text"}
    return new_memory(session, item["text"], given, each=True)


def _check_vector(session: RequestContext, vector: Sequence[float]) -> None:
    actor, embedder = session.actor, session.embedder
    if actor.credential is not None and not actor.is_owner:
        raise Unauthorised("a vector decides what a memory is found by: with a token, only the owner gives one")
    if embedder is None:
        raise InvalidInput("this store is open without an embedder: there is nothing to compare a vector with")
    if len(vector) != embedder.dim:
        raise InvalidInput(f"a vector of this store has {embedder.dim} numbers ({embedder.id})")
