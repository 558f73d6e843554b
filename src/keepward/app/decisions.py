"""The verbs of people: review, the journal, and upkeep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from keepward.app.handle import Handle
from keepward.errors import InvalidInput
from keepward.model.commit import Commit, Event, Head, Receipt
from keepward.model.proposal import Outcome, Waiting

if TYPE_CHECKING:
    from keepward.model.journal import CommitView, Difference, Rollback, Verification
    from keepward.model.proposal import Decided, Shown
    from keepward.model.query import AsOf


class Decisions(Handle):
    """Reviewing, undoing, checking."""

    def pending(self, *, state: str | None = "pending") -> list[Waiting]:
        """Return proposals in the review queue, oldest first; ``state`` None for all of them."""
        from keepward.engine.review import pending

        return pending(self._kit, self._who, state=state)

    def notices(self) -> list[Waiting]:
        """Return, once, the decisions on this actor's own proposals that went against them."""
        kit = self._kit
        if not kit.store.untold(self._who.tenant, kit.clock.now()):
            # Asked by every command of an agent: there is seldom anything to tell.
            return []
        from keepward.engine.review import notices

        return notices(kit, self._who)

    def approve(self, proposal_id: str, *, digest: str | None = None) -> Outcome:
        """Store exactly what was proposed; takes a reviewer or the owner, never the proposer."""
        from keepward.engine.review import approve

        return approve(self._kit, self._who, proposal_id, digest=digest)

    def reject(self, proposal_id: str, *, reason: str) -> Receipt:
        """Discard a proposal; what held before still holds."""
        from keepward.engine.review import reject

        return reject(self._kit, self._who, proposal_id, reason=reason)

    def approve_many(self, ids: Iterable[str] | Mapping[str, str | None]) -> list[Decided]:
        """Approve each by id, or by id with the digest that was seen; each gets its own answer, in the order given."""
        from keepward.engine.review import approve_many

        wanted = dict(ids) if isinstance(ids, Mapping) else dict.fromkeys(ids)
        return approve_many(self._kit, self._who, wanted)

    def reject_many(self, ids: Iterable[str], *, reason: str) -> list[Decided]:
        """Reject each for one reason; each gets its own answer, in the order given."""
        from keepward.engine.review import reject_many

        return reject_many(self._kit, self._who, list(ids), reason=reason)

    def shown(self, item: Waiting) -> list[Shown]:
        """Return what an approval would store, byte for byte, with every invisible character written out."""
        from keepward.engine import blobs
        from keepward.engine.review import for_review

        return for_review(item, lambda ref: blobs.shown(self._kit, item.tenant, ref))

    def log(self, *, limit: int = 50, before: int | None = None) -> list[CommitView]:
        """Return commits within reach, newest first, with seq below ``before``."""
        from keepward.engine.audit import log

        if limit < 1:
            raise InvalidInput("a limit is at least 1")
        return log(self._kit, self._who, limit=limit, before=before)

    def show(self, commit: str) -> CommitView:
        """Return one commit by id, a unique prefix of it, or its number."""
        from keepward.engine.audit import show

        return show(self._kit, self._who, commit)

    def diff(self, earlier: AsOf, later: AsOf = None) -> list[Difference]:
        """Return the memories that differ between the states after two commits; ``0`` is the empty store."""
        from keepward.engine.audit import diff

        return diff(self._kit, self._who, earlier, later)

    def rollback(self, commit: str, *, with_later: bool = False, dry_run: bool = False) -> Rollback:
        """Undo one commit exactly; a second call changes nothing and gives the first receipt."""
        from keepward.engine.undo import roll_back

        return roll_back(self._kit, self._who, commit, with_later=with_later, dry_run=dry_run)

    def verify(self) -> Verification:
        """Check the chain, every seal, every projection and the anchor."""
        from keepward.engine.audit import verify

        return verify(self._kit)

    def rebuild(self) -> int:
        """Compute the tenant's records anew from the journal; return how many there are."""
        self._owner("rebuilding")
        count = self._kit.store.rebuild(self._who.tenant)
        self._kit.indexes.forget(self._who.tenant)
        return count

    def journal(self, *, after: int = 0) -> Iterator[tuple[Commit, list[Event]]]:
        """Yield the tenant's commits with their events as stored, oldest first."""
        self._owner("reading the whole journal")
        return self._kit.store.events(self._who.tenant, after=after)

    def restore_journal(self, commits: Iterator[tuple[Commit, list[Event]]]) -> Head:
        """Write an exported journal into this empty tenant, byte for byte, and index it."""
        from keepward.engine.reindex import reindex
        from keepward.engine.traces import unerased

        self._owner("restoring a journal")
        head = self._kit.store.restore_journal(self._who.tenant, unerased(self._kit, commits))
        reindex(self._kit, self._who, ended=True)
        return head

    def reindex(self, *, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Compute terms and vectors anew where they are missing or of another embedder; return how many."""
        from keepward.engine.reindex import reindex

        self._owner("reindexing")
        return reindex(self._kit, self._who, on_progress=on_progress)

    def tenants(self) -> list[str]:
        """Return the names of all tenants with memories; for the owner alone."""
        self._owner("listing tenants")
        return self._kit.store.tenants()
