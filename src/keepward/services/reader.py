"""``Reader``: what one handle may see of its tenant; services return nothing of the store but what they have from it.

What a write has to know whatever its handle sees (who holds a key, what says the same, what was erased) is asked of
``session.store``, and nothing of it is returned.

Invariants
(1) A handle sees its own scope and those above; who decides about what others said also sees those below. At a user
    of a project it sees that user's own scope as well, unless its token reaches the project alone.
(2) The journal, proposals and receipts of a scope are for who sees that scope, and for who decides.
(3) The words of a sensitive memory are replaced for who may not read them, also in the past before it was sensitive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from keepward.core.commit import Step
from keepward.core.journal import CommitView, Delivery, Difference, Version
from keepward.core.memory import NAME_FIELDS, NAME_LIST_FIELDS, Record, Sensitivity, Status
from keepward.core.principals import SHARED_SCOPE, ActorKind, is_within_scope, visible_from
from keepward.core.proposal import Proposal
from keepward.core.query import EVERYTHING, Filter
from keepward.core.value import plain_name
from keepward.errors import InvalidInput, NotFound, Tampered, Unauthorised
from keepward.ports.store import MIN_ID_PREFIX
from keepward.services.access import commit_of, first_active, items_of, records_under_key

if TYPE_CHECKING:
    from keepward.services.request_context import RequestContext

#: Memories looked at that begin with the same letters of an id.
MAX_ID_MATCHES = 64
#: How a right is got that is no credential's by default.
GRANT_HINT = "takes a right of its own: the owner gives it with `keepward token create --name NAME"
#: Stands where the words of a sensitive memory would, for who may not read them.
HIDDEN_TEXT = "sensitive: ask the owner for a token with the right `sensitive`"
#: Kinds of actor that work on a whole store: upkeep, and what brings memories in. No token makes one of these.
_STORE_WIDE_ACTORS = frozenset({ActorKind.JOB, ActorKind.SYSTEM, ActorKind.IMPORTER})


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleRecords:
    """Memories as a handle may see them, in the order in which they were read."""

    records: list[Record] = field(default_factory=list)
    #: Ids of those that failed their seal.
    damaged: list[str] = field(default_factory=list)
    #: Ids of those in scopes that the handle does not see.
    elsewhere: frozenset[str] = frozenset()
    #: Whether some were left out that became sensitive after the state that was read.
    left_out: bool = False


@dataclass(frozen=True, slots=True)
class Reader:
    """What one handle may see; ``below`` is the scope at and below which alone it looks."""

    session: RequestContext
    below: str | None = None

    def within(self, scope: str | None) -> Reader:
        """Return the reader of what lies in a scope and below it.

        Who decides about what others said may list that, where it stands at that scope or above. Others may in what
        is theirs alone: at the scope of their token, or of their handle where there is none, and below it. The shared
        scope is nobody's.

        Raises:
            Unauthorised: it may not.
        """
        if scope is None:
            return self
        if is_within_scope(scope, self.session.scope) and (
            (self._token_scope() or self.session.scope) != SHARED_SCOPE or self._sees_whole_store
        ):
            return Reader(self.session, scope)
        raise Unauthorised(
            "what lies below a scope is listed for its own agent and for who decides: open the store at that scope"
        )

    # Rights.

    @property
    def _sees_whole_store(self) -> bool:
        """Whether it sees what lies below its scope; see (1)."""
        return self.session.actor.may_decide or self.session.actor.kind in _STORE_WIDE_ACTORS

    @property
    def may_ask_for_sensitive(self) -> bool:
        """Whether it may ask for sensitive memories."""
        return self.session.actor.has_right("sensitive")

    def check_sensitive(self) -> None:
        """See that it may ask for sensitive memories.

        Raises:
            Unauthorised: it may not.
        """
        if not self.may_ask_for_sensitive:
            raise Unauthorised(f"asking for sensitive memories {GRANT_HINT} --can read,propose,sensitive`")

    def check_every_scope(self, what: str) -> None:
        """See that it may ask about every scope of the tenant; ``what`` begins the refusal.

        Raises:
            Unauthorised: it may not.
        """
        if not self.session.actor.may_decide:
            raise Unauthorised(f"{what} spans every scope; it takes a reviewer or the owner")

    def can_see(self, scope: str) -> bool:
        """Whether what lies in a scope is visible; see (1)."""
        if self.below is not None:
            return is_within_scope(scope, self.below)
        return scope in self.scopes or (self._sees_whole_store and is_within_scope(scope, self.session.scope))

    def _oversees(self, scope: str) -> bool:
        """Whether it reads what the journal, proposals and receipts say of a scope; see (2)."""
        return self.session.actor.may_decide or self.can_see(scope)

    def _hides(self, record: Record) -> bool:
        """Whether it may not read what a record says; see (3)."""
        if record.sensitivity is not Sensitivity.SENSITIVE or record.status is Status.ERASED:
            return False
        return not (self.may_ask_for_sensitive or self.session.actor.kind in _STORE_WIDE_ACTORS)

    def _hidden(self, records: Sequence[Record]) -> frozenset[str]:
        """Return the ids of memories that it may not read: sensitive as these records have them, or by now."""
        if self.may_ask_for_sensitive or not records:
            return frozenset()
        newest = self.session.store.records(self.session.tenant, sorted({record.id for record in records})).records
        return frozenset(record.id for record in (*records, *newest) if self._hides(record))

    def hide_content(self, record: Record) -> Record:
        """Return a record of whatever scope, without its words where it may not read them."""
        return _without_content(record) if self._hides(record) else record

    def can_read(self, record: Record) -> bool:
        """Whether it may see a record with its words."""
        return self.can_see(record.scope) and not self._hides(record)

    # Scopes.

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that a context is made of: its own first, the shared one last; see (1)."""
        own = self.session.scope
        visible = visible_from(own)
        # All others lie above its own scope, and so within reach of its token.
        if all(is_within_scope(own, scope) for scope in visible) or self.session.actor.is_owner:
            return visible
        bound = self._token_scope()
        return (
            visible
            if bound is None
            else tuple(s for s in visible if is_within_scope(s, bound) or s in visible_from(bound))
        )

    def scopes_above(self, scope: str) -> set[str]:
        """Return the visible ones of its own scopes, of another scope and of those above that."""
        return {each for each in (*self.scopes, *visible_from(scope)) if self.can_see(each)}

    def scopes_with_memories(self, *, below: bool) -> list[str]:
        """Return the visible scopes that have memories; without ``below`` its own and those above."""
        below = below or self.below is not None
        found = self.session.store.scopes(self.session.tenant)
        return [scope for scope in found if (self.can_see(scope) if below else scope in self.scopes)]

    def memories_below(self) -> dict[str, int]:
        """Return how many memories hold in each scope at its own and below: it may go there."""
        session = self.session
        scopes = [scope for scope in session.store.scopes(session.tenant) if is_within_scope(scope, session.scope)]
        found: dict[str, int] = session.store.facts(session.tenant, session.clock.now(), scopes=scopes)["by_scope"]
        return found

    def write_scope(self) -> str:
        """Return the scope at and below which it may write: that of its token, unless it has the right ``share``."""
        return SHARED_SCOPE if self.session.actor.has_right("share") else self._token_scope() or SHARED_SCOPE

    def _token_scope(self) -> str | None:
        """Return the scope of its token; None where it has no token."""
        if self.session.actor.credential is None:
            return None
        from keepward.services.tokens import get_token

        return get_token(self.session, self.session.actor.credential).scope

    # Memories.

    def fetch(self, memory_id: str, *, as_of: int | None = None, own: bool = False) -> Record:
        """Return the newest record of a memory that it sees and may read.

        ``memory_id`` is its id, its key as seen from the handle's scope, the first 8 or more characters of its id, or
        an alias, tried in this order. ``own`` also gives a sensitive memory to the one who wrote it, to change it
        unread.

        Raises:
            NotFound: no such memory is visible.
            Unauthorised: it is sensitive, and the handle has no right to read that.
            InvalidInput: more than one visible memory begins so.
            Tampered: its row does not match its seal.
        """
        record = self._resolve(memory_id, as_of)
        self._check_words(record, own=own, newest=as_of is None)
        return record

    def _check_words(self, record: Record, *, own: bool, newest: bool) -> None:
        """See that it may read a memory, or with ``own`` change one of its own; ``newest`` is what was just read.

        Raises:
            Unauthorised: it may not.
        """
        if own and record.author == self.session.actor.label:
            return
        if self._hides(record) if newest else self._hidden([record]):
            raise Unauthorised(f"memory {record.id} is {HIDDEN_TEXT}")

    def check_key_holder(self, record: Record) -> None:
        """See that it may change the memory that holds a key.

        Raises:
            NotFound: it does not see the scope.
            Unauthorised: the memory is sensitive, another's, and the handle has no right to read that.
        """
        if not self.can_see(record.scope):
            raise NotFound("this handle does not see that scope, where the key is taken: open the store at that scope")
        self._check_words(record, own=True, newest=False)

    def _resolve(self, memory_id: str, as_of: int | None) -> Record:
        session = self.session
        names = list(dict.fromkeys((memory_id, plain_name(memory_id))))
        found = session.store.records(session.tenant, names, as_of=as_of)
        within = [record for record in found.records if self.can_see(record.scope)]
        if by_id := next((record for record in within if record.id in names), None):
            return by_id
        damaged = f"memory {memory_id} does not match its seal and was not used; run `keepward verify`"
        if not {*names}.isdisjoint(found.damaged):
            raise Tampered(damaged)
        ended: list[Record] = []
        # The nearest scope wins, as in a context.
        for scope in self.scopes:
            under = records_under_key(session, scope, memory_id)
            if holder := first_active(under):
                return holder if as_of is None else self._resolve(holder.id, as_of)
            ended += under
        if len(memory_id) >= MIN_ID_PREFIX:
            alike = self._beginning(memory_id, as_of)
            if len(alike) > 1:
                raise InvalidInput("more than one memory begins so; give more of its id")
            if alike:
                return alike[0]
        if ended:
            last = max(ended, key=lambda record: (record.updated_at or record.created_at, record.id))
            raise NotFound(f"what stood under that key is {last.status.value}: name it by its id, {last.id}")
        # Anybody who writes chooses aliases, so every other name comes first.
        if within:
            return within[0]
        if found.damaged:
            raise Tampered(damaged)
        raise NotFound("there is no memory by that id or key here; check the id, the tenant and the scope")

    def _beginning(self, name: str, as_of: int | None = None) -> list[Record]:
        store, tenant = self.session.store, self.session.tenant
        begun = store.records(tenant, store.ids_with_prefix(tenant, name, limit=MAX_ID_MATCHES), as_of=as_of)
        return [record for record in begun.records if self.can_see(record.scope)]

    def ids_beginning(self, name: str) -> set[str]:
        """Return the ids of visible memories that begin so."""
        return {record.id for record in self._beginning(name)}

    def records(self, ids: Sequence[str], *, as_of: int | None = None) -> VisibleRecords:
        """Return memories of these ids or aliases, as they are or as they were."""
        found = self.session.store.records(self.session.tenant, ids, as_of=as_of)
        return self._seen(found.records, found.damaged, as_of)

    def find(
        self, filters: Filter, *, live_at: datetime | None, limit: int | None = None, as_of: int | None = None
    ) -> VisibleRecords:
        """Return the memories that pass a filter, in the order of the store; without scopes those of its own."""
        scopes = tuple(scope for scope in filters.scopes or self.scopes if self.can_see(scope))
        if not scopes:
            return VisibleRecords()
        if scopes != filters.scopes:
            filters = replace(filters, scopes=scopes)
        found = self.session.store.find(self.session.tenant, filters, live_at=live_at, limit=limit, as_of=as_of)
        return self._seen(found.records, found.damaged, as_of)

    def _seen(self, records: list[Record], damaged: list[str], as_of: int | None) -> VisibleRecords:
        scopes = {scope for scope in {record.scope for record in records} if self.can_see(scope)}
        visible = [record for record in records if record.scope in scopes]
        elsewhere = frozenset(record.id for record in records if record.scope not in scopes)
        if self.may_ask_for_sensitive:
            return VisibleRecords(records=visible, damaged=damaged, elsewhere=elsewhere)
        hidden = frozenset[str]() if as_of is None else self._hidden(visible)
        shown = [
            self.hide_content(record) if record.sensitivity is Sensitivity.SENSITIVE else record
            for record in visible
            if record.id not in hidden or record.sensitivity is Sensitivity.SENSITIVE
        ]
        return VisibleRecords(records=shown, damaged=damaged, elsewhere=elsewhere, left_out=len(shown) < len(visible))

    def children(self, memory_id: str, *, as_of: int | None = None) -> tuple[str, ...]:
        """Return the ids of visible memories that were made from a memory, sorted."""
        store, tenant = self.session.store, self.session.tenant
        children = store.children(tenant, [memory_id])
        made = store.records(tenant, children, as_of=as_of).records if children else []
        return tuple(sorted(each.id for each in made if self.can_see(each.scope)))

    def derivations(self, ids: Sequence[str]) -> set[tuple[str, str]]:
        """Return the ids of these memories with those of what was made from them: also of what is not visible."""
        store, tenant = self.session.store, self.session.tenant
        children = store.records(tenant, store.children(tenant, ids)).records
        return {(parent, each.id) for each in children for parent in each.derived_from if parent in ids}

    def references(self, names: Sequence[str]) -> dict[str, Record]:
        """Return the memories that references mean, by every name of theirs, as who decides on a proposal reads them.

        What is hidden keeps the names that it may be referred to by.
        """
        found = self.session.store.records(self.session.tenant, names).records
        return {
            name: replace(self.hide_content(each), aliases=each.aliases)
            for each in found
            if self._oversees(each.scope)
            for name in (each.id, *each.aliases)
        }

    def overseen(self, ids: Sequence[str]) -> VisibleRecords:
        """Return memories that the journal names, as they are; see (2)."""
        found = self.session.store.records(self.session.tenant, ids)
        visible = [self.hide_content(each) for each in found.records if self._oversees(each.scope)]
        return VisibleRecords(records=visible, damaged=found.damaged)

    # The journal.

    def _hide_step_content(self, groups: Sequence[Sequence[Step]]) -> list[tuple[Step, ...]]:
        """Return the visible steps of each group, without the words that it may not read; see (2) and (3)."""
        visible = [tuple(steps) for steps in groups]
        if not self.session.actor.may_decide:
            visible = [tuple(step for step in steps if self._shows(step)) for steps in visible]
        if self.may_ask_for_sensitive:
            return visible
        hidden = self._hidden(
            [side for steps in visible for step in steps for side in (step.before, step.after) if side]
        )
        if not hidden:
            return visible
        return [
            tuple(_step_without_content(step) if step.after.id in hidden else step for step in steps)
            for steps in visible
        ]

    def _shows(self, step: Step) -> bool:
        before, scope = step.before, step.after.scope
        return self._oversees(scope) and (before is None or before.scope == scope or self._oversees(before.scope))

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Return the visible ones of some steps, without the words that it may not read."""
        return self._hide_step_content([steps])[0]

    def _hide_commit_content(self, views: Sequence[CommitView]) -> list[CommitView]:
        """Return commits with their visible steps; without the reason, where words are hidden."""
        found = []
        for view, steps in zip(views, self._hide_step_content([view.steps for view in views]), strict=True):
            hidden = any(step.after.text == HIDDEN_TEXT for step in steps)
            found.append(replace(_without_reason(view) if hidden else view, steps=steps))
        return found

    def commit(self, name: str) -> CommitView:
        """Return a commit by its id, the first letters of it or its number; it may have no visible step.

        Raises:
            NotFound: there is none.
        """
        return self._hide_commit_content([commit_of(self.session, name)])[0]

    def commits(self, *, before: int | None, page: int, kind: str | None, actor: str | None) -> Iterator[CommitView]:
        """Yield commits of which a step is visible, newest first; so many are read at once."""
        while before != 1:
            read = self.session.store.commits(self.session.tenant, before=before, limit=page, kind=kind, actor=actor)
            yield from (view for view in self._hide_commit_content(read) if view.steps)
            if len(read) < page:
                return
            before = read[-1].commit.seq

    def commits_changing(
        self, ids: Sequence[str], fields: Sequence[str], *, after: int, until: int
    ) -> dict[str, list[CommitView]]:
        """Return, by memory, the commits of a stretch of the journal that changed one of some fields, oldest first."""
        found = {}
        for name, history in self.session.store.histories(self.session.tenant, ids).items():
            between = [(view, step) for view, step in history if after < view.commit.seq <= until]
            changing = [view for view, step in between if _changes(step, fields)]
            found[name] = self._hide_commit_content(changing)
        return found

    def differences(self, earlier: int | None, later: int | None) -> list[Difference]:
        """Return the memories that differ between the active ones after two commits, by id."""
        states: list[dict[str, Record]] = []
        for seq in (earlier, later):
            found = self.session.store.find(self.session.tenant, EVERYTHING, live_at=None, limit=None, as_of=seq)
            active = (each for each in found.records if each.status is Status.ACTIVE)
            states.append({each.id: each for each in active if self._oversees(each.scope)})
        first, second = states
        changed = {
            name: (first.get(name), second.get(name))
            for name in sorted(first.keys() | second.keys())
            if first.get(name) != second.get(name)
        }
        hidden = self._hidden([side for pair in changed.values() for side in pair if side])
        return [
            Difference(id=name, before=before and _without_content(before), after=after and _without_content(after))
            if name in hidden
            else Difference(id=name, before=before, after=after)
            for name, (before, after) in changed.items()
        ]

    def history(self, memory_id: str) -> list[Version]:
        """Return every version of a memory, oldest first; those of a time when it was not visible are left out."""
        record = self.fetch(memory_id)
        versions: list[Version] = []
        for made, step in self.session.store.history(self.session.tenant, record.id):
            after, before = step.after, step.before
            if not self.can_see(after.scope):
                continue
            before = before if before and self.can_see(before.scope) else None
            hidden = any(self._hides(side) for side in (before, after) if side)
            view = _without_reason(made) if hidden else made
            versions.append(
                Version(
                    record=self.hide_content(after),
                    before=before and self.hide_content(before),
                    op=step.op,
                    commit=view.commit,
                    details=view.details,
                )
            )
        return versions

    def versions(self, ids: Collection[str]) -> dict[str, dict[int, tuple[str, Record]]]:
        """Return, by memory and version, the commit that made it and what it says."""
        found: dict[str, dict[int, tuple[str, Record]]] = {}
        for name, history in self.session.store.histories(self.session.tenant, ids).items():
            # What is sensitive by now was so all along, for who may not read it.
            hidden = bool(history) and self._hides(history[-1][1].after)
            found[name] = {
                after.version: (view.commit.id, _without_content(after) if hidden else self.hide_content(after))
                for view, after in ((view, step.after) for view, step in history)
                if self._oversees(after.scope)
            }
        return found

    def contents(self, memory_id: str) -> dict[int, Record]:
        """Return the versions of a memory that a receipt which it reads names, but for erased ones.

        Raises:
            Unauthorised: it is sensitive by now, and the handle has no right to read that.
        """
        steps = self.session.store.steps(self.session.tenant, memory_id)
        if steps:
            self._check_words(steps[-1].after, own=False, newest=True)
        return {step.after.version: step.after for step in steps if step.after.status is not Status.ERASED}

    # Proposals.

    def proposal(self, proposal_id: str) -> Proposal:
        """Return a proposal as it is stored, by its id or the first letters of it.

        Raises:
            NotFound: none by that id is visible.
        """
        item = self.session.store.documents(Proposal, self.session.tenant).get(proposal_id, prefix=True)
        if item is None or not self._sees_all_of(item):
            raise NotFound("there is no proposal by that id in this tenant; `keepward pending` lists them")
        return self.hide_proposal_content([item])[0]

    def proposals(self, state: str | None) -> list[Proposal]:
        """Return the visible proposals that are stored with a state, or all of them, oldest first."""
        return self.hide_proposal_content(self._proposals(state))

    def pending_ids(self) -> list[str]:
        """Return the ids of the visible proposals that wait and are not past their term, oldest first."""
        now = self.session.clock.now()
        return [item.id for item in self._proposals("pending") if item.expires_at > now]

    def _proposals(self, state: str | None) -> list[Proposal]:
        stored = self.session.store.documents(Proposal, self.session.tenant).list(state=state)
        return [item for item in stored if self._sees_all_of(item)]

    def _sees_all_of(self, item: Proposal) -> bool:
        return self.session.actor.may_decide or all(self._shows(step) for step in item.steps)

    def hide_proposal_content(self, items: Sequence[Proposal]) -> list[Proposal]:
        """Return proposals with their visible steps, without the words that it may not read; who decides reads all."""
        if self.session.actor.may_decide:
            return list(items)
        steps = self._hide_step_content([item.steps for item in items])
        return [replace(item, steps=each) for item, each in zip(items, steps, strict=True)]

    # Answers to who writes.

    def own_step(self, step: Step) -> Step:
        """Return what is told of a step to who made it: not what the memory said before, where it may not read that."""
        return _step_without_content(step) if step.before is not None and self._hides(step.before) else step

    def own_commit(self, commit_id: str) -> tuple[CommitView, dict[str, Any]] | None:
        """Return a commit and its receipt as they are told to who made it; None where one of them is not there."""
        store, tenant = self.session.store, self.session.tenant
        view, receipt = store.commit(tenant, commit_id), store.receipt(tenant, commit_id)
        if view is None or receipt is None:
            return None
        return replace(view, steps=tuple(map(self.own_step, view.steps))), receipt

    def existing(self, record: Record) -> Record:
        """Return what is told of a memory to who said the same: whatever it is, it may not read its words."""
        return record if self.can_read(record) else _without_content(record)

    # Receipts.

    def receipt(self, receipt_id: str) -> tuple[dict[str, Any], CommitView | None]:
        """Return a receipt and the commit that it is of.

        Raises:
            NotFound: none by that id is visible.
        """
        store, tenant = self.session.store, self.session.tenant
        stored = store.receipt(tenant, receipt_id)
        made = store.commit(tenant, stored["commit"]) if stored and "commit" in stored else None
        view = None if made is None else self._hide_commit_content([made])[0]
        scope = (stored or {}).get("inputs", {}).get("scope", self.session.scope)
        if stored is None or (view and not view.steps) or not self._oversees(scope):
            raise NotFound("there is no receipt by that id in this tenant")
        return stored, view

    def receipt_of_read(self, receipt_id: str, kinds: Mapping[str, str]) -> dict[str, Any]:
        """Return the receipt of a read, of one of these kinds; their names stand in the refusal.

        Raises:
            NotFound: none by that id is visible.
        """
        receipt = self.session.store.receipt(self.session.tenant, receipt_id)
        known = receipt is not None and receipt.get("kind") in kinds
        if receipt is None or not known or not self._oversees(receipt["inputs"]["scope"]):
            raise NotFound(f"there is no {' or '.join(kinds.values())} by that id in this tenant")
        return receipt

    def receipts_before(self, receipt_id: str | None, *, limit: int) -> list[dict[str, Any]]:
        """Return so many receipts of the tenant from before one, newest first.

        Raises:
            Unauthorised: they span every scope of the tenant, and take a reviewer or the owner.
        """
        self.check_every_scope("a list of receipts")
        return self.session.store.receipts_before(self.session.tenant, receipt_id, limit=limit)

    def delivery(self, receipt_id: str, pairs: set[tuple[str, int]]) -> Delivery | None:
        """Return a context as far as it held these versions; None where its receipt does not say so, or is hidden."""
        with suppress(Tampered):
            receipt = self.session.store.receipt(self.session.tenant, receipt_id)
            shown = {} if receipt is None else items_of(receipt)
            if receipt is not None and pairs <= {(name, item["version"]) for name, item in shown.items()}:
                inputs = receipt["inputs"]
                if self._oversees(inputs["scope"]):
                    told = {"at": receipt["at"], "actor": receipt["actor"], "purpose": inputs["purpose"]}
                    return Delivery(receipt=receipt["id"], items=tuple(sorted(pairs)), **told)
        return None


def _without_content(record: Record) -> Record:
    """Return a record without what it says: whose, where and when it is stay, and how to get at the rest."""
    bare: dict[str, Any] = {**dict.fromkeys(NAME_FIELDS), **dict.fromkeys(NAME_LIST_FIELDS, ())}
    return replace(record, text=HIDDEN_TEXT, metadata_json=None, occurred_at=None, **bare)


def _changes(step: Step, fields: Sequence[str]) -> bool:
    return step.before is None or any(getattr(step.before, each) != getattr(step.after, each) for each in fields)


def _step_without_content(step: Step) -> Step:
    return replace(step, before=step.before and _without_content(step.before), after=_without_content(step.after))


def _without_reason(view: CommitView) -> CommitView:
    """Return a commit without the words that its writer gave as the reason; its hash still holds."""
    commit = replace(view.commit, salt=b"", payload=None, payload_commit=view.commit.commitment())
    return replace(view, commit=commit, details=replace(view.details, reason=HIDDEN_TEXT))
