"""The verbs of people, over HTTP: review, the journal, upkeep; each says what ``Memory``'s says.

Invariants
(1) An approval names the digest of what it is about. Where the caller names none, what waits is read first, and the
    approval is bound to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from keepward.client import wire
from keepward.client.calls import Answer, Calls
from keepward.client.decode import decode, decode_each
from keepward.client.transport import path_of
from keepward.errors import InvalidInput
from keepward.model.commit import Receipt
from keepward.model.proposal import Outcome, Waiting

if TYPE_CHECKING:
    from keepward.model.journal import CommitView, Difference, Rollback, Verification
    from keepward.model.proposal import Decided, Shown
    from keepward.model.query import AsOf, Reinforced, Training

#: Most proposals decided in one call.
_MANY = 200
#: Commits on a page, each with all that it changed.
_COMMITS = 100


class Decisions(Calls):
    """Reviewing, undoing, checking, learning."""

    def pending(self, *, state: str | None = "pending") -> list[Waiting]:
        """Return proposals in the review queue, oldest first; ``state`` None for all of them."""
        return decode_each(Waiting, self._pages("/memory/quarantine", [("state", "all" if state is None else state)]))

    def notices(self) -> list[Waiting]:
        """Return, once, the decisions on this actor's own proposals that went against them."""
        return decode_each(Waiting, self._get("/memory/notices", once=True)["items"])

    def approve(self, proposal_id: str, *, digest: str | None = None) -> Outcome:
        """Store exactly what was proposed; takes a reviewer or the owner, never the proposer."""
        place = path_of("quarantine", proposal_id)
        seen = self._get(place)["digest"] if digest is None else digest
        if not (isinstance(seen, str) and seen.isascii() and seen.isalnum()):
            raise InvalidInput("a digest is hex digits, as they stand with what waits")
        return self._proposed(f"{place}/approve", None, {"If-Match": f'"{seen}"'})

    def reject(self, proposal_id: str, *, reason: str) -> Receipt:
        """Discard a proposal; what held before still holds."""
        return _receipt(self._post(path_of("quarantine", proposal_id, "reject"), {"reason": reason}))

    def approve_many(self, ids: Iterable[str] | Mapping[str, str | None]) -> list[Decided]:
        """Approve each by id, or by id with the digest that was seen; each gets its own answer, in the order given."""
        wanted = dict(ids) if isinstance(ids, Mapping) else dict.fromkeys(ids)
        items = [{"id": name, "digest": digest} for name, digest in wanted.items()]
        return self._decided("approve", "items", items, {})

    def reject_many(self, ids: Iterable[str], *, reason: str) -> list[Decided]:
        """Reject each for one reason; each gets its own answer, in the order given."""
        return self._decided("reject", "ids", list(dict.fromkeys(ids)), {"reason": reason})

    def shown(self, item: Waiting) -> list[Shown]:
        """Return what an approval would store, byte for byte, with every invisible character written out.

        It is computed here, from what was read; the server is not asked.
        """
        from keepward.engine.review import for_review

        return for_review(item)

    def log(self, *, limit: int = 50, before: int | None = None) -> list[CommitView]:
        """Return commits within reach, newest first, with seq below ``before``."""
        from keepward.model.journal import CommitView

        if limit < 1:
            raise InvalidInput("a limit is at least 1")
        found: list[CommitView] = []
        while len(found) < limit:
            asked = [("before", before), ("limit", min(limit - len(found), _COMMITS)), ("events", True)]
            page = self._get("/memory/commits", asked)
            found += decode_each(CommitView, page["items"])
            before = page.get("next_before")
            if before is None:
                break
        return found

    def show(self, commit: str) -> CommitView:
        """Return one commit by id, a unique prefix of it, or its number."""
        from keepward.model.journal import CommitView

        return decode(CommitView, self._get(path_of("commits", str(commit))))

    def diff(self, earlier: AsOf, later: AsOf = None) -> list[Difference]:
        """Return the memories that differ between the states after two commits; ``0`` is the empty store."""
        from keepward.model.journal import Difference

        asked = [("earlier", wire.moment(earlier)), ("later", wire.moment(later))]
        return decode_each(Difference, self._get("/memory/diff", asked)["items"])

    def rollback(self, commit: str, *, with_later: bool = False, dry_run: bool = False) -> Rollback:
        """Undo one commit exactly; a second call changes nothing and gives the first receipt."""
        from keepward.model.journal import Rollback

        body = {"with_later": with_later, "dry_run": dry_run}
        # Whatever the newest commit is: one that touches the same memories is a conflict, and not undone.
        headers = None if dry_run else {"If-Match": "*"}
        return decode(Rollback, self._post(path_of("rollback", str(commit)), body, headers))

    def verify(self) -> Verification:
        """Check the chain, every seal, every projection and the anchor."""
        from keepward.model.journal import Verification

        return decode(Verification, self._post("/memory/verify"))

    def rebuild(self) -> int:
        """Compute the tenant's records anew from the journal; return how many there are."""
        return decode(int, self._post("/memory/rebuild")["records"])

    def reindex(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Compute terms and vectors anew where they are missing or of another embedder; return how many.

        ``on_progress`` is told once, at the end: a server says nothing on the way.
        """
        count = decode(int, self._post("/memory/reindex")["indexed"])
        if on_progress is not None:
            on_progress(count, count)
        return count

    def tenants(self) -> list[str]:
        """Return the names of all tenants with memories; for the owner alone."""
        return decode_each(str, self._get("/memory/tenants")["items"])

    def train_reranker(self, *, on_progress: Callable[[int, int], None] | None = None) -> Training:
        """Train the reranker from all feedback, for the owner alone; it serves only where it proves better.

        ``on_progress`` is told once, at the end: a server says nothing on the way.
        """
        from keepward.model.query import Training

        found = decode(Training, self._post("/memory/train"))
        if on_progress is not None:
            on_progress(found.feedback, found.feedback)
        return found

    def learn_importance(self) -> Reinforced:
        """Turn the uses counted since the last time into importance, in one commit; for the owner alone."""
        from keepward.model.query import Reinforced

        return decode(Reinforced, self._post("/memory/learn"))

    def _decided(self, what: str, name: str, items: list[Any], said: Mapping[str, Any]) -> list[Decided]:
        from keepward.model.proposal import Decided

        found: list[Decided] = []
        for start in range(0, len(items), _MANY):
            body = {name: items[start : start + _MANY], **said}
            found += decode_each(Decided, self._post(f"/memory/quarantine/{what}", body)["results"])
        return found


def _receipt(answer: Answer) -> Receipt:
    return decode(Receipt, answer.get("receipt_record", answer))
