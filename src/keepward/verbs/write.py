"""The verbs that propose: everything they say passes the gates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypedDict, get_args

from msgspec.structs import replace

from keepward.core import change as changes_of
from keepward.core.change import (
    BY_OPERATION,
    KEEP,
    AppendFields,
    Change,
    Insert,
    InsertFields,
    KeyedFields,
    ReplaceFields,
)
from keepward.core.messages import Added
from keepward.core.proposal import Forgetting, Outcome
from keepward.core.value import chosen
from keepward.errors import InvalidInput, NotFound, Unauthorised
from keepward.verbs import MISSING, Judged, Limit, Request, Wire, arguments, fields, verb

if TYPE_CHECKING:
    from keepward.services.session import Session

EMPTY: Any = {}
#: Whether a text may be the id of a new memory.
IS_NEW_ID = re.compile(fields.NEW_ID_PATTERN).match


class MoveFields(TypedDict, total=False):
    """Where a memory may be put; what is left out stays."""

    tier: str
    scope: str
    #: None takes its name away.
    key: str | None


class Remembering(Request[Outcome]):
    """A request that makes a memory."""

    makes: ClassVar[type[Any]] = Insert


@verb("remember", "POST /memory/items", right="propose", status=201, tool="remember")
class Remember(Remembering):
    """Propose a new memory; with a key that is taken, an update of its holder."""

    text: fields.Text
    values: InsertFields = EMPTY
    reason: fields.Because = ""

    def run(self, session: Session) -> Outcome:
        change = new_memory(session, self.text, self.values)
        return propose(session, [change], reason=self.reason, within=change.session)


@verb("update_by_key", "PUT /memory/keys/{key}", right="propose", status=201)
class UpdateByKey(Remembering):
    """Propose the text of a keyed state: created when missing, updated in place when there."""

    key: fields.Key
    text: fields.Text
    values: KeyedFields = EMPTY
    reason: fields.Because = ""

    def remember(self) -> Remember:
        """Return it as what it is: a memory with a key."""
        given: InsertFields = {"kind": "state", **self.values, "key": self.key}
        return Remember(text=self.text, values=given, reason=self.reason)

    def run(self, session: Session) -> Outcome:
        return self.remember().run(session)


@verb("remember_many", "POST /memory/items/batch", right="propose", answer="outcomes")
class RememberMany(Request[list[Outcome]]):
    """Propose many memories: each by itself, in the order given, or all or none. It counts as one change."""

    #: Texts, or the arguments of ``remember`` but for its reason.
    items: Annotated[list[Any], Limit(minItems=1, maxItems=fields.MOST)]
    mode: Annotated[Literal["each", "atomic"], Limit("`each`: every item by itself; `atomic`: all or none.")] = "each"
    reason: Annotated[str, Judged("Why.")] = ""

    def run(self, session: Session, *, kind: str = "write", batch: int = 500, on_progress: Any = None) -> list[Outcome]:
        """Propose them ``batch`` at a time, or all together; ``on_progress`` is called with (done, total)."""
        from keepward.services.write import propose_each

        chosen("mode", self.mode, ("each", "atomic"))
        if arguments.whole("batch", batch) < 1:
            raise InvalidInput("a batch is at least 1")
        changes = self.changes(session)
        if self.mode == "atomic":
            return [propose(session, changes, reason=self.reason, kind=kind)] * len(changes) if changes else []
        outcomes: list[Outcome] = []
        for start in range(0, len(changes), batch):
            part = changes[start : start + batch]
            outcomes += propose_each(session, part, reason=self.reason, kind=kind)
            if on_progress is not None:
                on_progress(len(outcomes), len(changes))
        return outcomes

    def changes(self, session: Session) -> list[Insert]:
        """Return the changes that make them, each with an id."""
        return [_one_of_many(session, item) for item in self.items]


@verb("add", "POST /memory/messages", right="propose", status=201)
class Add(Request[Added]):
    """Add messages of a talk as events of a session, and propose the facts that they tell.

    A message with an `id` is added once. What a user asks to remember ("remember that ...") becomes a fact as it was
    said; the model that the owner chose may propose more. Each is derived from the message that told it.
    """

    #: Objects with `role`, `content` and, where there is one, `name`, `id` and `timestamp`.
    messages: Annotated[list[Any], Limit("As chat APIs take them.", minItems=1, maxItems=fields.MOST)]
    session: fields.ReadLine | None = None
    #: Whom the talk is about, and whose words those of the role `user` are.
    subject: fields.ReadLine | None = None
    extract: Annotated[bool, Limit("Whether facts are proposed.")] = True
    # Refused at the edge: a talk without a word has nothing for a gate to judge.
    reason: Annotated[str, Limit("Why.", maxLength=1000)] = ""

    def run(self, session: Session, *, on_progress: Any = None) -> Added:
        """Add them; ``on_progress`` is called with (done, total)."""
        from keepward.services.ingest import add

        return add(
            session,
            self.messages,
            conversation=self.session,
            subject=self.subject,
            extract=self.extract,
            reason=self.reason or "said in a talk",
            on_progress=on_progress,
        )


@verb("update_identity", "PUT /memory/identity", right="propose", status=201)
class UpdateIdentity(Request[Outcome]):
    """Propose a new edition of the identity document: it waits for the owner, whose own word decides at once."""

    function = "services.identity:update_identity"
    text: Annotated[fields.Text, Judged("All that the document is to say.")]
    reason: fields.Because = ""


class Edit(Request[Outcome]):
    """A request that changes one memory; ``makes`` is the change, whose fields it takes."""

    makes: ClassVar[type[Any]]
    memory_id: fields.NamedId
    reason: fields.Because = ""

    def run(self, session: Session) -> Outcome:
        return propose(session, [self.change(session)], reason=self.reason)

    def change(self, session: Session | None = None) -> Change:
        """Return the change; in a session, of a memory that is there, and by its own id."""
        given = {name: value for name, value in self.given().items() if name != "reason" and value is not MISSING}
        given["id"] = given.pop("memory_id")
        if session is not None:
            given |= {name: known_id(session, given[name]) for name in ("id", "by") if name in given}
        made: Change = arguments.naming(arguments.change(self.makes, given))
        return made


@verb("revise", "PATCH /memory/items/{id}", right="propose", status=201, tool="revise")
class Revise(Edit):
    """Propose new text or fields for a memory; takes the `If-Match` that its GET gave."""

    makes = changes_of.Replace
    text: fields.Text = KEEP
    values: ReplaceFields = EMPTY
    if_version: fields.Version | None = None


@verb("append", "POST /memory/items/{id}/append", right="propose", status=201)
class Append(Edit):
    """Propose an addition to a memory, after a line break."""

    makes = changes_of.Append
    text: fields.Text
    values: AppendFields = EMPTY
    if_version: fields.Version | None = None


@verb("forget", "DELETE /memory/items/{id}", right="propose", status=201, tool="forget")
class Forget(Edit):
    """Propose that a memory no longer holds; it can be restored. `If-Match` is heeded where it is sent."""

    makes = changes_of.Retire
    if_version: fields.Version | None = None


@verb("archive", "POST /memory/items/{id}/archive", right="propose", status=201)
class Archive(Edit):
    """Propose to put a memory away: it is not at hand until it is restored."""

    makes = changes_of.Archive
    if_version: fields.Version | None = None


@verb("restore", "POST /memory/items/{id}/restore", right="propose", status=201)
class Restore(Edit):
    """Propose to bring back a retired, archived, superseded or expired memory."""

    makes = changes_of.Restore
    ttl: fields.Ttl | None = None
    if_version: fields.Version | None = None


@verb("reinforce", "POST /memory/items/{id}/reinforce", right="propose", status=201)
class Reinforce(Edit):
    """Propose that a memory is confirmed: its confidence starts anew."""

    makes = changes_of.Reinforce
    gain: fields.Share = 0.0


@verb("move", "POST /memory/items/{id}/move", right="propose", status=201)
class Move(Edit):
    """Propose another tier, scope or key."""

    makes = changes_of.Move
    values: MoveFields = EMPTY
    if_version: fields.Version | None = None


@verb("promote", "POST /memory/items/{id}/promote", right="propose", status=201)
class Promote(Edit):
    """Propose lasting knowledge: permanent, with its canonical text, core when its key is a block's."""

    makes = changes_of.Promote
    text: fields.Text


@verb("supersede", "POST /memory/items/{id}/supersede", right="propose", status=201)
class Supersede(Edit):
    """Propose that one memory is replaced by another."""

    makes = changes_of.Supersede
    by: fields.Id


@verb("merge", "POST /memory/items/merge", right="propose", status=201)
class Merge(Request[Outcome | None]):
    """Propose one summary in place of several memories of one subject, scope and sensitivity."""

    makes: ClassVar[type[Any]] = Insert
    memory_ids: Annotated[list[fields.Id], Limit(minItems=1, maxItems=64), Wire("ids")]
    text: fields.Text | None = None
    values: InsertFields = EMPTY
    reason: fields.Because = ""

    def run(self, session: Session) -> Outcome | None:
        """Propose it; None for fewer than two memories."""
        from keepward.verbs.read import Get

        ids = list(dict.fromkeys(known_id(session, each) for each in self.memory_ids))
        if len(ids) < 2:
            return None
        records = [Get(memory_id=each).run(session) for each in ids]
        first = records[0]
        if len({(each.subject, each.scope, each.sensitivity) for each in records}) > 1:
            raise InvalidInput("only memories of one subject, scope and sensitivity can be merged")
        if self.values.get("subject", first.subject) != first.subject:
            raise InvalidInput("a summary is about whom its memories are about: leave `subject` out")
        joined = self.text if self.text is not None else "\n".join(each.text for each in records)
        given = {"kind": "summary", "scope": first.scope, "subject": first.subject, **self.values}
        summary = new_memory(session, joined, {**given, "derived_from": tuple(ids)})
        made: list[Change] = [summary, *(changes_of.Supersede(id=each, by=summary.id) for each in ids)]
        return propose(session, made, reason=self.reason.strip() or "merged")


@verb("forget_many", "POST /memory/items/forget", right="propose", answer="outcome missing")
class ForgetMany(Request[tuple[Outcome | None, list[str]]]):
    """Propose in one commit that memories no longer hold; names that are not there are listed."""

    memory_ids: Annotated[fields.Ids, Wire("ids")]
    reason: fields.Because = ""

    def run(self, session: Session) -> tuple[Outcome | None, list[str]]:
        """Propose it; return the outcome and the ids that were not found."""
        here, missing = [], []
        for each in dict.fromkeys(self.memory_ids):
            try:
                here.append(known_id(session, each))
            except NotFound:
                missing.append(each)
        retired = [changes_of.Retire(id=each) for each in here]
        return propose(session, retired, reason=self.reason) if here else None, missing


@verb("plan_forget_matching", "POST /memory/forget/plan", right="propose")
class PlanForgetMatching(Request[Forgetting]):
    """Return which memories of the caller's own scope a text matches, best first, under a digest; change nothing.

    Weak hits of `GET /memory/search` are no matches.
    """

    function = "services.forget:plan_forget_matching"
    text: fields.Question


@verb("forget_matching", "POST /memory/forget", right="propose")
class ForgetMatching(Request[Forgetting]):
    """Propose in one commit that the memories of the plan with this digest no longer hold; a rollback undoes it."""

    function = "services.forget:forget_matching"
    text: fields.Question
    digest: fields.Digest
    reason: fields.Because = ""


@verb("propose", "POST /memory/edit", right="propose", status=201)
class Propose(Request[Outcome]):
    """Propose one or many changes that are carried out, held or refused together."""

    reason: fields.Because = ""
    session: fields.ReadLine | None = None
    #: Each an ``op`` with the fields of its change in ``core.change``; those of a new memory are ``remember``'s.
    changes: Annotated[list[Any], Limit(minItems=1, maxItems=fields.MOST)]
    mode: Literal["atomic"] = "atomic"

    def run(self, session: Session, *, kind: str = "write") -> Outcome:
        if not all(isinstance(change, get_args(Change)) for change in self.changes):
            raise InvalidInput("changes are a list of Insert(...), Replace(...) and the others of keepward")
        changes = [arguments.naming(each) for each in self.changes]
        return propose(session, changes, reason=self.reason, within=self.session, kind=kind, named=True)


def change_of(session: Session, sent: Mapping[str, Any]) -> Change:
    """Return a change as JSON has it: an ``op`` with the fields of its change, of a new memory those of ``remember``.

    A new memory may be given its id, a fresh UUIDv7, so that later changes can name it.

    Raises:
        InvalidInput: an id, instant, duration or scope that cannot be read.
    """
    fields = dict(sent)
    makes = BY_OPERATION[fields.pop("op")]
    if makes is not Insert:
        made: Change = arguments.change(makes, fields)
        return made
    name = fields.pop("id", None)
    new = new_memory(session, fields.pop("text"), fields)
    if name is None:
        return new
    if not IS_NEW_ID(name):
        raise InvalidInput("the id of a new memory is a UUIDv7 in small letters; leave it out to be given one")
    return replace(new, id=name)


def propose(
    session: Session,
    changes: Sequence[Change],
    *,
    reason: str,
    within: str | None = None,
    kind: str = "write",
    named: bool = False,
) -> Outcome:
    """Propose changes together; ``within`` is the conversation that they come from, ``named`` as in the engine."""
    from keepward.services.write import propose as proposed

    return proposed(session, changes, reason=reason, conversation=within, kind=kind, named=named)


def new_memory(session: Session, text: str, given: Mapping[str, Any], *, each: bool = False) -> Insert:
    """Return the change that makes a memory, with an id; with ``each`` names that there are not are left to a gate."""
    found = arguments.insert(given, each=each)
    if found.get("scope") is None:
        found["scope"] = session.scope
    if found.get("blob") is not None and "content_type" not in found:
        from keepward.services.blobs import content_type

        found["content_type"] = content_type(session, found["blob"])
    said = arguments.text(text)
    if found.get("vector") is not None:
        _fits(session, found["vector"])
    return Insert(id=session.ids.new_id(session.clock.now()), text=said, **found)


def known_id(session: Session, name: Any) -> str:
    """Return the id of a memory that is there and that the session may change, by id or alias."""
    if not isinstance(name, str) or not name:
        raise InvalidInput("a memory is named by its id, a text")
    return session.reader.fetch(name, own=True).id


def _one_of_many(session: Session, item: Any) -> Insert:
    if isinstance(item, str):
        return new_memory(session, item, {})
    if not isinstance(item, Mapping):
        raise InvalidInput("an item is a text, or a mapping of the arguments of `remember`")
    if "text" not in item:
        raise InvalidInput("an item needs a `text`")
    # One item of many: what is wrong with it is told in its place, by a gate.
    given = {name: value for name, value in item.items() if name != "text"}
    return new_memory(session, item["text"], given, each=True)


def _fits(session: Session, vector: Sequence[float]) -> None:
    actor, embedder = session.actor, session.embedder
    if actor.credential is not None and not actor.is_owner:
        raise Unauthorised("a vector decides what a memory is found by: with a token, only the owner gives one")
    if embedder is None:
        raise InvalidInput("this store is open without an embedder: there is nothing to compare a vector with")
    if len(vector) != embedder.dim:
        raise InvalidInput(f"a vector of this store has {embedder.dim} numbers ({embedder.id})")
