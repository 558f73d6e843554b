"""The verbs that propose: everything they say passes the gates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Unpack

from keepward.app.reads import Reads
from keepward.errors import InvalidInput, NotFound, Unauthorised
from keepward.model.change import (
    KEEP,
    Append,
    AppendFields,
    Archive,
    Change,
    Insert,
    InsertFields,
    KeyedFields,
    Move,
    Promote,
    Reinforce,
    Replace,
    ReplaceFields,
    Restore,
    Retire,
    Supersede,
    TierName,
)
from keepward.model.proposal import Outcome
from keepward.model.value import Duration, chosen
from keepward.verbs import arguments
from keepward.verbs.arguments import duration


class Draft:
    """Changes being collected; nothing is judged or visible until the block ends."""

    def __init__(self, memory: Writes, reason: str, session: str | None) -> None:
        self._memory, self._reason, self._session = memory, reason, session
        self._changes: list[Change] = []
        #: What became of it; None until the block has ended without an error.
        self.outcome: Outcome | None = None

    def insert(self, text: str, **fields: Unpack[InsertFields]) -> str:
        """Stage a new memory with the fields of ``Memory.remember``; return the id it will have."""
        change = self._memory._insert(text, fields)  # noqa: SLF001  a draft is a part of its handle
        self._changes.append(change)
        return change.id

    def replace(
        self, memory_id: str, text: str = KEEP, *, if_version: int | None = None, **fields: Unpack[ReplaceFields]
    ) -> None:
        """Stage new text or fields for a memory."""
        self._changes.append(_replace(memory_id, text, {"if_version": if_version, **fields}))

    def append(
        self, memory_id: str, text: str, *, if_version: int | None = None, **fields: Unpack[AppendFields]
    ) -> None:
        """Stage an addition."""
        self._changes.append(_append(memory_id, text, {"if_version": if_version, **fields}))

    def retire(self, memory_id: str, *, if_version: int | None = None) -> None:
        """Stage a retirement."""
        self._changes.append(Retire(id=memory_id, if_version=if_version))

    def move(
        self,
        memory_id: str,
        *,
        tier: TierName = KEEP,
        scope: str = KEEP,
        key: str | None = KEEP,
        if_version: int | None = None,
    ) -> None:
        """Stage a move to another tier, scope or key."""
        asked = {"tier": tier, "scope": scope, "key": key, "if_version": if_version}
        self._changes.append(Move(id=memory_id, **arguments.move(asked)))

    def supersede(self, memory_id: str, by: str) -> None:
        """Stage that a memory is replaced by another."""
        self._changes.append(Supersede(id=memory_id, by=by))

    def promote(self, memory_id: str, text: str) -> None:
        """Stage a promotion to lasting knowledge."""
        self._changes.append(Promote(id=memory_id, text=text))

    def restore(self, memory_id: str, *, ttl: Duration | None = None, if_version: int | None = None) -> None:
        """Stage that an ended memory comes back; ``ttl`` gives an expired one a new term."""
        self._changes.append(Restore(id=memory_id, ttl=duration(ttl), if_version=if_version))

    def reinforce(self, memory_id: str, *, gain: float = 0.0) -> None:
        """Stage that a memory is confirmed."""
        self._changes.append(Reinforce(id=memory_id, gain=gain))

    def stage(self, change: Change) -> None:
        """Stage a change as it is."""
        self._changes.append(change)

    def discard(self) -> None:
        """Drop everything that was staged."""
        self._changes.clear()

    def __len__(self) -> int:
        return len(self._changes)

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._changes:
            self.outcome = self._memory.propose(self._changes, reason=self._reason, session=self._session)


class Writes(Reads):
    """Proposing changes."""

    def remember(self, text: str, *, reason: str = "", **fields: Unpack[InsertFields]) -> Outcome:
        """Propose a new memory; with a ``key`` that is taken, an update of its holder.

        Fields, all optional: ``tier kind key scope subject category tags content_type blob metadata source evidence
        derived_from confidence importance ttl stability sensitivity access session speaker job aliases
        occurred_at consent vector``; see ``model.change.InsertFields``.

        Raises:
            InvalidInput: a field, or a name of a tier, kind, ..., that there is not; a value of another type.
        """
        change = self._insert(text, fields)
        return self.propose([change], reason=reason or "remembered", session=change.session)

    def revise(
        self,
        memory_id: str,
        text: str = KEEP,
        *,
        reason: str,
        if_version: int | None = None,
        **fields: Unpack[ReplaceFields],
    ) -> Outcome:
        """Propose new text or fields for a memory; ``if_version`` makes a stale edit fail.

        Fields, all optional: ``category subject tags metadata source evidence confidence importance sensitivity ttl
        consent``; what is left out stays, None empties.
        """
        change = _replace(self._id(memory_id), text, {"if_version": if_version, **fields})
        return self.propose([change], reason=reason)

    def append(
        self,
        memory_id: str,
        text: str,
        *,
        reason: str,
        if_version: int | None = None,
        **fields: Unpack[AppendFields],
    ) -> Outcome:
        """Propose an addition to a memory, after a line break.

        Fields, all optional: ``source evidence confidence consent``.
        """
        change = _append(self._id(memory_id), text, {"if_version": if_version, **fields})
        return self.propose([change], reason=reason)

    def forget(self, memory_id: str, *, reason: str, if_version: int | None = None) -> Outcome:
        """Propose that a memory no longer holds; it can be restored."""
        return self.propose([Retire(id=self._id(memory_id), if_version=if_version)], reason=reason)

    def archive(self, memory_id: str, *, reason: str, if_version: int | None = None) -> Outcome:
        """Propose to put a memory away: it holds and is not at hand until ``restore`` brings it back."""
        return self.propose([Archive(id=self._id(memory_id), if_version=if_version)], reason=reason)

    def restore(
        self,
        memory_id: str,
        *,
        reason: str,
        ttl: Duration | None = None,
        if_version: int | None = None,
    ) -> Outcome:
        """Propose to bring back a retired, archived, superseded or expired memory."""
        change = Restore(id=self._id(memory_id), ttl=duration(ttl), if_version=if_version)
        return self.propose([change], reason=reason)

    def reinforce(self, memory_id: str, *, reason: str = "confirmed", gain: float = 0.0) -> Outcome:
        """Propose that a memory is confirmed: its confidence starts anew."""
        return self.propose([Reinforce(id=self._id(memory_id), gain=gain)], reason=reason)

    def move(
        self,
        memory_id: str,
        *,
        reason: str,
        tier: TierName = KEEP,
        scope: str = KEEP,
        key: str | None = KEEP,
        if_version: int | None = None,
    ) -> Outcome:
        """Propose another tier, scope or key."""
        asked = {"tier": tier, "scope": scope, "key": key, "if_version": if_version}
        return self.propose([Move(id=self._id(memory_id), **arguments.move(asked))], reason=reason)

    def promote(self, memory_id: str, text: str, *, reason: str) -> Outcome:
        """Propose lasting knowledge: permanent, with its canonical text, core when its key is a block's."""
        return self.propose([Promote(id=self._id(memory_id), text=text)], reason=reason)

    def supersede(self, memory_id: str, by: str, *, reason: str) -> Outcome:
        """Propose that one memory is replaced by another."""
        return self.propose([Supersede(id=self._id(memory_id), by=self._id(by))], reason=reason)

    def merge(
        self, memory_ids: Sequence[str], text: str | None = None, *, reason: str, **fields: Unpack[InsertFields]
    ) -> Outcome | None:
        """Propose one summary in place of several memories, which it supersedes; None for fewer than two.

        Without a text the summary is theirs, one a line.

        Raises:
            InvalidInput: they differ in subject, scope or sensitivity, or the summary is to be about somebody else.
        """
        ids = list(dict.fromkeys(self._id(each) for each in arguments.texts("memory_ids", memory_ids)))
        if not reason.strip():
            raise InvalidInput("say why: a change carries a `reason`")
        if len(ids) < 2:
            return None
        records = [self.get(memory_id) for memory_id in ids]
        if len({(each.subject, each.scope, each.sensitivity) for each in records}) > 1:
            raise InvalidInput("only memories of one subject, scope and sensitivity can be merged")
        if fields.get("subject", records[0].subject) != records[0].subject:
            raise InvalidInput("a summary is about whom its memories are about: leave `subject` out")
        joined = text if text is not None else "\n".join(each.text for each in records)
        given = {"kind": "summary", "scope": records[0].scope, "subject": records[0].subject, **fields}
        summary = self._insert(joined, {**given, "derived_from": tuple(ids)})
        return self.propose([summary, *(Supersede(id=each, by=summary.id) for each in ids)], reason=reason)

    def update_by_key(self, key: str, text: str, *, reason: str = "", **fields: Unpack[KeyedFields]) -> Outcome:
        """Propose the text of a keyed state: created when missing, updated in place when there."""
        given: KeyedFields = {"kind": "state", **fields}
        return self.remember(text, reason=reason, key=key, **given)

    def forget_many(self, memory_ids: Sequence[str], *, reason: str) -> tuple[Outcome | None, list[str]]:
        """Retire all that are there in one commit; return the outcome and the ids that were not found."""
        here, missing = [], []
        for memory_id in dict.fromkeys(memory_ids):
            try:
                here.append(self._id(memory_id))
            except NotFound:
                missing.append(memory_id)
        outcome = self.propose([Retire(id=each) for each in here], reason=reason) if here else None
        return outcome, missing

    def propose(
        self, changes: Sequence[Change], *, reason: str, session: str | None = None, kind: str = "write"
    ) -> Outcome:
        """Propose changes that are carried out, held or refused together."""
        from keepward.engine.write import propose

        if not reason.strip():
            raise InvalidInput("say why: a change carries a `reason`")
        return propose(self._kit, self._who, changes, reason=reason, session=session, kind=kind)

    def draft(self, *, reason: str, session: str | None = None) -> Draft:
        """Collect changes in a ``with`` block and propose them together at its end; an error discards them."""
        return Draft(self, reason, session)

    def remember_many(
        self,
        items: Sequence[Mapping[str, Any] | str],
        *,
        mode: Literal["each", "atomic"] = "each",
        reason: str = "",
        kind: str = "write",
        batch: int = 500,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> list[Outcome]:
        """Propose many memories: texts, or mappings of ``remember``'s arguments.

        ``each``: every item is judged alone, the good ones are committed ``batch`` at a time, and outcomes
        come in the order given. ``atomic``: all or nothing, one outcome for each item.
        """
        from keepward.engine.write import propose_each

        reason = reason or "remembered"
        chosen("mode", mode, ("each", "atomic"))
        changes = [self._insert(item, {}) if isinstance(item, str) else self._from_mapping(item) for item in items]
        if mode == "atomic":
            return [self.propose(changes, reason=reason, kind=kind)] * len(changes) if changes else []
        outcomes: list[Outcome] = []
        for start in range(0, len(changes), batch):
            part = changes[start : start + batch]
            outcomes += propose_each(self._kit, self._who, part, reason=reason, kind=kind)
            if on_progress is not None:
                on_progress(len(outcomes), len(changes))
        return outcomes

    def _from_mapping(self, item: Mapping[str, Any]) -> Insert:
        if not isinstance(item, Mapping):
            raise InvalidInput("an item is a text, or a mapping of the arguments of `remember`")
        fields = dict(item)
        try:
            text = fields.pop("text")
        except KeyError as fault:
            raise InvalidInput("an item needs a `text`") from fault
        # One item of many: what is wrong with it is told in its place, by a gate.
        return self._insert(text, fields, each=True)

    def _insert(self, text: str, fields: Mapping[str, Any], *, each: bool = False) -> Insert:
        given = arguments.insert(fields, each=each)
        if given.get("scope") is None:
            given["scope"] = self._who.scope
        if given.get("blob") is not None and "content_type" not in given:
            from keepward.engine.blobs import content_type

            given["content_type"] = content_type(self._kit, self._who, given["blob"])
        said = arguments.text(text)
        if given.get("vector") is not None:
            self._fits(given["vector"])
        return Insert(id=self._kit.ids.new_id(self._kit.clock.now()), text=said, **given)

    def _fits(self, vector: Sequence[float]) -> None:
        actor, embedder = self._who.actor, self._kit.embedder
        if actor.credential is not None and not actor.is_owner:
            raise Unauthorised("a vector decides what a memory is found by: with a token, only the owner gives one")
        if embedder is None:
            raise InvalidInput("this store is open without an embedder: there is nothing to compare a vector with")
        if len(vector) != embedder.dim:
            raise InvalidInput(f"a vector of this store has {embedder.dim} numbers ({embedder.id})")

    def _id(self, memory_id: str) -> str:
        if not isinstance(memory_id, str) or not memory_id:
            raise InvalidInput("a memory is named by its id, a text")
        from keepward.engine.view import fetch

        return fetch(self._kit, self._who, memory_id, own=True).id


def _replace(memory_id: str, text: str, fields: Mapping[str, Any]) -> Replace:
    return Replace(id=memory_id, text=arguments.text(text, keep=True), **arguments.replace(fields))


def _append(memory_id: str, text: str, fields: Mapping[str, Any]) -> Append:
    return Append(id=memory_id, text=arguments.text(text), **arguments.append(fields))
