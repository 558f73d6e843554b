"""The verbs that propose, over HTTP; each says what ``Memory``'s says.

Invariants
(1) Every call carries a key of its own, so that one that is sent again is carried out once.
(2) Ids are the server's to give: in a proposal the id of an ``Insert`` is a name by which its other changes may
    refer to it, and the outcome holds the id that the memory got.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Unpack

from keepward.client import wire
from keepward.client.calls import only
from keepward.client.decode import decode_hint
from keepward.client.drafts import Draft
from keepward.client.reads import Reads
from keepward.client.transport import path_of
from keepward.errors import InvalidInput
from keepward.model.change import (
    KEEP,
    AppendFields,
    Change,
    InsertFields,
    KeyedFields,
    ReplaceFields,
    TierName,
)
from keepward.model.proposal import Outcome
from keepward.model.value import Duration
from keepward.verbs import arguments
from keepward.verbs.arguments import duration, texts

#: Most bytes of the items in one call; a server takes a megabyte unless it was told otherwise.
_BYTES = 900_000
#: Most items in one call.
_ITEMS = 500


class Writes(Reads):
    """Proposing changes."""

    def remember(self, text: str, *, reason: str = "", **fields: Unpack[InsertFields]) -> Outcome:
        """Propose a new memory; with a ``key`` that is taken, an update of its holder."""
        said = {"reason": reason} if reason else {}
        return self._proposed("/memory/items", {**wire.insert(text, fields), **said})

    def revise(
        self,
        memory_id: str,
        text: str = KEEP,
        *,
        reason: str,
        if_version: int | None = None,
        **fields: Unpack[ReplaceFields],
    ) -> Outcome:
        """Propose new text or fields for a memory; ``if_version`` makes a stale edit fail."""
        return self._one({"op": "replace", "id": memory_id, **wire.replace(text, if_version, fields)}, reason)

    def append(
        self,
        memory_id: str,
        text: str,
        *,
        reason: str,
        if_version: int | None = None,
        **fields: Unpack[AppendFields],
    ) -> Outcome:
        """Propose an addition to a memory, after a line break."""
        return self._one({"op": "append", "id": memory_id, **wire.append(text, if_version, fields)}, reason)

    def forget(self, memory_id: str, *, reason: str, if_version: int | None = None) -> Outcome:
        """Propose that a memory no longer holds; it can be restored."""
        return self._one({"op": "retire", "id": memory_id, **wire.present(if_version=if_version)}, reason)

    def archive(self, memory_id: str, *, reason: str, if_version: int | None = None) -> Outcome:
        """Propose to put a memory away: it holds and is not at hand until ``restore`` brings it back."""
        return self._one({"op": "archive", "id": memory_id, **wire.present(if_version=if_version)}, reason)

    def restore(
        self,
        memory_id: str,
        *,
        reason: str,
        ttl: Duration | None = None,
        if_version: int | None = None,
    ) -> Outcome:
        """Propose to bring back a retired, archived, superseded or expired memory."""
        given = wire.present(ttl=duration(ttl), if_version=if_version)
        return self._one({"op": "restore", "id": memory_id, **given}, reason)

    def reinforce(self, memory_id: str, *, reason: str = "confirmed", gain: float = 0.0) -> Outcome:
        """Propose that a memory is confirmed: its confidence starts anew."""
        return self._one({"op": "reinforce", "id": memory_id, "gain": gain}, reason)

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
        given = wire.move(tier=tier, scope=scope, key=key, if_version=if_version)
        return self._one({"op": "move", "id": memory_id, **given}, reason)

    def promote(self, memory_id: str, text: str, *, reason: str) -> Outcome:
        """Propose lasting knowledge: permanent, with its canonical text, core when its key is a block's."""
        return self._one({"op": "promote", "id": memory_id, "text": text}, reason)

    def supersede(self, memory_id: str, by: str, *, reason: str) -> Outcome:
        """Propose that one memory is replaced by another."""
        return self._one({"op": "supersede", "id": memory_id, "by": by}, reason)

    def merge(
        self, memory_ids: Sequence[str], text: str | None = None, *, reason: str, **fields: Unpack[InsertFields]
    ) -> Outcome | None:
        """Propose one summary in place of several memories, which it supersedes; None for fewer than two."""
        ids = list(texts("memory_ids", memory_ids))
        if not ids:
            return None
        body = {"ids": ids, "reason": reason, **wire.fields(arguments.insert(fields))}
        answer = self._post("/memory/items/merge", body | wire.present(text=text))
        return _maybe(answer)

    def update_by_key(self, key: str, text: str, *, reason: str = "", **fields: Unpack[KeyedFields]) -> Outcome:
        """Propose the text of a keyed state: created when missing, updated in place when there."""
        given: KeyedFields = {"kind": "state", **fields}
        return self.remember(text, reason=reason, key=key, **given)

    def forget_many(self, memory_ids: Sequence[str], *, reason: str) -> tuple[Outcome | None, list[str]]:
        """Retire all that are there in one commit; return the outcome and the ids that were not found."""
        ids = list(texts("memory_ids", memory_ids))
        if not ids:
            return None, []
        answer = self._post("/memory/items/forget", {"ids": ids, "reason": reason})
        return decode_hint(Outcome | None, answer["outcome"]), decode_hint(list[str], answer["missing"])

    def propose(
        self, changes: Sequence[Change], *, reason: str, session: str | None = None, kind: str = "write"
    ) -> Outcome:
        """Propose changes that are carried out, held or refused together; for the ids of new memories see (2)."""
        only("kind", kind, "write")
        if not reason.strip():
            raise InvalidInput("say why: a change carries a `reason`")
        if not wire.refers(changes):
            body = {"reason": reason, "changes": [wire.change(each) for each in changes]}
            return self._proposed("/memory/edit", body | wire.present(session=session))
        with self.draft(reason=reason, session=session) as draft:
            for each in changes:
                draft.stage(each)
        if draft.outcome is None:
            raise InvalidInput("a proposal needs at least one change")
        return draft.outcome

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

        ``each``: every item is judged alone, at most ``batch`` of them and a megabyte in one call, and outcomes come
        in the order given. ``atomic``: all or nothing in one call, which has to fit into the server's limit.
        """
        only("kind", kind, "write")
        if batch < 1:
            raise InvalidInput("a batch holds at least 1 item")
        sent = [{"text": each} if isinstance(each, str) else wire.fields(each) for each in items]
        outcomes: list[Outcome] = []
        for part in [sent] if mode == "atomic" else _parts(sent, min(batch, _ITEMS)):
            if part:
                body = {"items": part, "mode": mode, **({"reason": reason} if reason else {})}
                told = decode_hint(list[Outcome], self._post("/memory/items/batch", body)["outcomes"])
                # All or nothing is one outcome, for all of them.
                outcomes += told * len(part) if mode == "atomic" and len(told) == 1 else told
            if on_progress is not None and mode != "atomic":
                on_progress(len(outcomes), len(sent))
        return outcomes

    def _one(self, change: dict[str, Any], reason: str) -> Outcome:
        """Propose one change of a memory that has to be there."""
        path_of(change["id"])
        if not reason.strip():
            raise InvalidInput("say why: a change carries a `reason`")
        return self._proposed("/memory/edit", {"reason": reason, "changes": [change]})


def _maybe(answer: Any) -> Outcome | None:
    """Return an outcome, or None where there is none to tell of."""
    told = isinstance(answer, dict) and answer.get("outcome") not in {None, "none"}
    outcome: Outcome | None = decode_hint(Outcome | None, answer if told else None)
    return outcome


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
