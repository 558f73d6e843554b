"""Drafts over HTTP: changes that a server collects in memory, and judges together at the end.

Invariants
(1) Nothing is sent before the first change is staged; a block without changes asks for nothing.
(2) A block that ends with an error, or is discarded, leaves nothing; what could not be told to the server ends
    there by itself within the hour.
"""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from keepward.client import wire
from keepward.client.decode import decode_hint
from keepward.client.transport import path_of
from keepward.errors import KeepwardError
from keepward.model.change import (
    KEEP,
    AppendFields,
    Change,
    Insert,
    InsertFields,
    ReplaceFields,
    TierName,
)
from keepward.model.proposal import Outcome
from keepward.model.value import Duration
from keepward.verbs.arguments import duration

if TYPE_CHECKING:
    from keepward.client.writes import Writes


class Draft:
    """Changes being collected; nothing is judged or visible until the block ends."""

    def __init__(self, client: Writes, reason: str, session: str | None) -> None:
        self._client, self._reason, self._session = client, reason, session
        self._id: str | None = None
        self._staged = 0
        #: Ids that new memories got, by the ids that they were given here.
        self._names: dict[str, str] = {}
        #: What became of it; None until the block has ended without an error.
        self.outcome: Outcome | None = None

    def insert(self, text: str, **fields: Unpack[InsertFields]) -> str:
        """Stage a new memory with the fields of ``remember``; return the id it will have."""
        return str(self._stage({"op": "insert", **wire.insert(text, fields)}))

    def replace(
        self, memory_id: str, text: str = KEEP, *, if_version: int | None = None, **fields: Unpack[ReplaceFields]
    ) -> None:
        """Stage new text or fields for a memory."""
        self._stage({"op": "replace", "id": memory_id, **wire.replace(text, if_version, fields)})

    def append(
        self, memory_id: str, text: str, *, if_version: int | None = None, **fields: Unpack[AppendFields]
    ) -> None:
        """Stage an addition."""
        self._stage({"op": "append", "id": memory_id, **wire.append(text, if_version, fields)})

    def retire(self, memory_id: str, *, if_version: int | None = None) -> None:
        """Stage a retirement."""
        self._stage({"op": "retire", "id": memory_id, **wire.present(if_version=if_version)})

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
        given = wire.move(tier=tier, scope=scope, key=key, if_version=if_version)
        self._stage({"op": "move", "id": memory_id, **given})

    def supersede(self, memory_id: str, by: str) -> None:
        """Stage that a memory is replaced by another."""
        self._stage({"op": "supersede", "id": memory_id, "by": by})

    def promote(self, memory_id: str, text: str) -> None:
        """Stage a promotion to lasting knowledge."""
        self._stage({"op": "promote", "id": memory_id, "text": text})

    def restore(self, memory_id: str, *, ttl: Duration | None = None, if_version: int | None = None) -> None:
        """Stage that an ended memory comes back; ``ttl`` gives an expired one a new term."""
        self._stage({"op": "restore", "id": memory_id, **wire.present(ttl=duration(ttl), if_version=if_version)})

    def reinforce(self, memory_id: str, *, gain: float = 0.0) -> None:
        """Stage that a memory is confirmed."""
        self._stage({"op": "reinforce", "id": memory_id, "gain": gain})

    def discard(self) -> None:
        """Drop everything that was staged."""
        begun, self._id, self._staged = self._id, None, 0
        if begun is not None:
            self._client._call("DELETE", path_of("drafts", begun))  # noqa: SLF001  a draft is a part of its handle

    def stage(self, change: Change) -> None:
        """Stage a change that is there as data; the id of an ``Insert`` is a name for the changes that follow."""
        made = self._stage(wire.change(change))
        if isinstance(change, Insert):
            self._names[change.id] = str(made)

    def __len__(self) -> int:
        return self._staged

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            # The first error is the one to tell of (2).
            with contextlib.suppress(KeepwardError):
                self.discard()
        elif self._id is not None:
            self.outcome = decode_hint(Outcome, self._send("finish", None))

    def _stage(self, change: dict[str, Any]) -> Any:
        if self._id is None:
            begun = wire.present(reason=self._reason, session=self._session)
            self._id = str(self._client._post("/memory/drafts", begun)["id"])  # noqa: SLF001
        answer = self._send("changes", {"changes": [wire.renamed(change, self._names)]})
        (made,) = decode_hint(tuple[str | None], answer["ids"])
        self._staged += 1
        return made

    def _send(self, what: str, body: dict[str, Any] | None) -> Any:
        return self._client._post(path_of("drafts", str(self._id), what), body)  # noqa: SLF001
