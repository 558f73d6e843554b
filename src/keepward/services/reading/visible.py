"""``VisibleReader``: what one handle may see of its tenant. Services return only data that comes from it.

A write has to know some things that its handle may not see: who has a key, what says the same, what was erased. It asks
``context.store`` for these and returns none of them.

A handle sees its own scope and those above; one that may decide on other actors' proposals also sees those below. At a
user of a project it sees that user's own scope as well, unless its token is limited to the project.
On a branch it sees the same scopes of the branch and of main, without the memories of main that the branch has a state
of; those of a branch are seen on that branch alone.
The journal, proposals and receipts of a scope are readable by handles that see the scope. The owner reads them all, at
any scope. A decision writes: a token decides on what is at its own scope and below.
The content of a sensitive memory is hidden from a handle without that right, also in versions from before it became
sensitive.

Late imports: a program that does not need it starts faster.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from keepward.core.commit import Receipt, Step
from keepward.core.journal import (
    CommitView,
    DamagedCommit,
    Delivery,
    Difference,
    Differences,
    Version,
    Versions,
    damage_note,
)
from keepward.core.json_form import MAX_SAFE_INTEGER, HexBytes
from keepward.core.memory import (
    CORE_BLOCKS,
    NAME_FIELDS,
    NAME_LIST_FIELDS,
    MemoryFields,
    Record,
    Sensitivity,
    Status,
    Tier,
    has_same_content,
)
from keepward.core.principals import (
    RESERVED_SCOPE,
    SHARED_SCOPE,
    ActorKind,
    branch_of,
    branch_scope,
    is_read_within,
    is_within_scope,
    main_scope,
    visible_from,
)
from keepward.core.proposal import Proposal
from keepward.core.query import Filter
from keepward.core.value import plain_key, plain_name, to_micros
from keepward.errors import Conflict, InvalidInput, NotFound, Tampered, Unauthorised
from keepward.ports.store import MIN_ID_PREFIX, ReadResult, ScopeRange
from keepward.services.access import commit_of, first_active, items_of, records_under_key
from keepward.services.branch_state import branch_states

if TYPE_CHECKING:
    from keepward.services.request_context import RequestContext

#: The beginning of an id that names a memory.
ID_BEGINNING = re.compile(rf"[0-9a-f-]{{{MIN_ID_PREFIX},36}}")
#: Memories to check that share a prefix of their id.
MAX_ID_MATCHES = 64
#: Most ids that a message names.
MAX_NAMED = 5
#: How to get a right that no role has by default.
GRANT_HINT = "takes a right of its own: the owner gives it with `keepward token create --name NAME"
#: Replaces the text of a sensitive memory for a handle that may not read it.
HIDDEN_TEXT = "sensitive: ask the owner for a token with the right `sensitive`"
#: Kinds of actor that work on the entire store: jobs and importers. No token makes one of these.
_STORE_WIDE_ACTORS = frozenset({ActorKind.JOB, ActorKind.SYSTEM, ActorKind.IMPORTER})


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleRecords:
    """Memories as a handle may see them, in the order of the read."""

    records: list[Record] = field(default_factory=list)
    #: Ids of memories that do not match their seal.
    damaged: list[str] = field(default_factory=list)
    #: Ids of memories in scopes that the handle does not see.
    elsewhere: frozenset[str] = frozenset()
    #: Whether memories were left out that became sensitive after the state that was read.
    left_out: bool = False


@dataclass(frozen=True, slots=True)
class VisibleReader:
    """What one handle may see; ``below`` restricts it to a scope and those below."""

    context: RequestContext
    below: str | None = None

    def within(self, scope: str | None) -> VisibleReader:
        """Return a reader that is restricted to a scope and those below.

        A handle that may decide can do this for its scope and those below. Others can do it in what is theirs alone:
        at and below the scope of their token, or without a token that of their handle. The shared scope is not
        anyone's own.

        Raises:
            Unauthorised: the handle may not.
        """
        if scope is None:
            return self
        own = self.context.scope
        there = branch_scope(branch_of(own), scope)
        if is_within_scope(there, own) and (
            self._sees_below or (self._token_scope() or main_scope(own)) != SHARED_SCOPE
        ):
            return VisibleReader(self.context, there)
        raise Unauthorised(
            "memories below a scope are listed for its own agent and for a reviewer: open the store at that scope"
        )

    # Rights.

    @property
    def _sees_below(self) -> bool:
        """Whether it sees the scopes below its own."""
        return self.context.actor.may_decide or self.context.actor.kind in _STORE_WIDE_ACTORS

    @property
    def may_ask_for_sensitive(self) -> bool:
        """Whether it may request sensitive memories."""
        return self.context.actor.has_right("sensitive")

    def check_sensitive(self) -> None:
        """Require the right to request sensitive memories.

        Raises:
            Unauthorised: the actor lacks it.
        """
        if not self.may_ask_for_sensitive:
            raise Unauthorised(f"asking for sensitive memories {GRANT_HINT} --can read,propose,sensitive`")

    def check_decider(self, what: str) -> None:
        """Require the right to ask about the work of other actors; ``what`` begins the error message.

        Raises:
            Unauthorised: the actor lacks it.
        """
        if not self.context.actor.may_decide:
            raise Unauthorised(f"{what} shows what others did; it takes a reviewer or the owner")

    def can_see(self, scope: str) -> bool:
        """Whether a scope is visible."""
        if self.below is not None:
            return is_read_within(scope, self.below)
        return scope in self.scopes or (self._sees_below and is_read_within(scope, self.context.scope))

    @property
    def oversees_all(self) -> bool:
        """Whether the journal, proposals and receipts of every scope are readable: the owner's handle has no limit."""
        return self.context.actor.is_owner and self.context.actor.may_decide

    @property
    def sees_store(self) -> bool:
        """Whether it reads what belongs to no scope, such as the receipts of tokens and of jobs."""
        return self.oversees_all or self.can_see(RESERVED_SCOPE)

    def oversees(self, scope: str) -> bool:
        """Whether the journal, proposals and receipts of a scope are readable."""
        return self.oversees_all or self.can_see(scope)

    @property
    def overseen_scopes(self) -> ScopeRange | None:
        """The scopes whose journal, proposals and receipts are readable; None for all."""
        if self.oversees_all or self.can_see(RESERVED_SCOPE):
            return None
        return ScopeRange(each=self.scopes, below=self.context.scope if self._sees_below else None)

    def _hides(self, record: Record) -> bool:
        """Whether the content of a record must be hidden."""
        if record.sensitivity is not Sensitivity.SENSITIVE or record.status is Status.ERASED:
            return False
        return not (self.may_ask_for_sensitive or self.context.actor.kind in _STORE_WIDE_ACTORS)

    def _hidden(self, records: Sequence[Record]) -> frozenset[str]:
        """Return the ids of memories to hide: sensitive in these records or in their newest versions."""
        if self.may_ask_for_sensitive or not records:
            return frozenset()
        newest = self.context.store.records(self.context.tenant, sorted({record.id for record in records})).records
        return frozenset(record.id for record in (*records, *newest) if self._hides(record))

    def hide_content(self, record: Record) -> Record:
        """Return a record of any scope, without its content if it may not be read."""
        return _without_content(record) if self._hides(record) else record

    def can_read(self, record: Record) -> bool:
        """Whether a record is visible with its content."""
        return self.can_see(record.scope) and not self._hides(record)

    # Scopes.

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that a context is made of: its own first, the shared one last."""
        own = main_scope(self.context.scope)
        visible = visible_from(self.context.scope)
        # All others lie above its own scope, so its token sees them.
        if all(is_within_scope(own, main_scope(scope)) for scope in visible) or self.context.actor.is_owner:
            return visible
        bound = self._token_scope()
        if bound is None:
            return visible
        reached = visible_from(bound)
        return tuple(s for s in visible if is_within_scope(main_scope(s), bound) or main_scope(s) in reached)

    def states(self, as_of: int | None = None) -> Mapping[str, str]:
        """Return, by the id of a memory of main, the id of its state on the branch of the handle; empty on main."""
        return branch_states(self.context, as_of=as_of)

    def hidden(self, as_of: int | None = None) -> frozenset[str]:
        """Return the ids of memories of main that the branch of the handle has its own state of."""
        return frozenset(self.states(as_of))

    def scopes_above(self, scope: str) -> set[str]:
        """Return the visible scopes among its own, another scope and those above that."""
        return {name for name in (*self.scopes, *visible_from(scope)) if self.can_see(name)}

    def visible_scopes(self, *, below: bool) -> dict[str, Any]:
        """Return the fields of a filter that name the visible scopes; without ``below`` its own and those above."""
        found: dict[str, Any] = {"scopes": self.scopes, "hidden": self.hidden()}
        if self.below is not None:
            scopes = tuple(dict.fromkeys((self.below, main_scope(self.below))))
            return found | {"scopes": scopes, "below": self.below}
        return found | {"below": self.context.scope if below and self._sees_below else None}

    def memories_below(self) -> dict[str, int]:
        """Return the number of active memories in its own scope and each one below."""
        context, now = self.context, to_micros(self.context.clock.now())
        scopes = tuple(dict.fromkeys((context.scope, main_scope(context.scope))))
        own = Filter(scopes=scopes, below=context.scope, hidden=self.hidden(), include_sensitive=True)
        live = replace(own, statuses=(Status.ACTIVE.value,), now=now)
        return context.store.scope_counts(context.tenant, live, now)

    def scopes_below(self, *, limit: int) -> tuple[dict[str, int], bool]:
        """Return the scopes below its own with their number of active memories, and whether there may be more.

        It is empty if the handle may not list them. At most ``limit`` memories are read.
        """
        context = self.context
        with suppress(Unauthorised):
            self.within(context.scope)
            return context.store.scopes_below(
                context.tenant,
                context.scope,
                context.clock.now(),
                include_sensitive=self.may_ask_for_sensitive,
                limit=limit,
            )
        return {}, False

    def scopes_in_other_case(self, scopes: Sequence[str]) -> list[tuple[str, str]]:
        """Return (scope, other) where the other has memories and differs only in case.

        A token learns only of scopes that it reaches.
        """
        pairs: list[tuple[str, str]] = self.context.store.scopes_in_other_case(self.context.tenant, scopes)
        bound = None if self.context.actor.is_owner or not pairs else self._token_scope()
        return [pair for pair in pairs if bound is None or is_within_scope(main_scope(pair[1]), bound)]

    def write_scope(self) -> str:
        """Return the scope at and below which it may write: that of its token, unless it has the right ``share``."""
        scope = SHARED_SCOPE if self.context.actor.has_right("share") else self._token_scope() or SHARED_SCOPE
        return branch_scope(branch_of(self.context.scope), scope)

    def _token_scope(self) -> str | None:
        """Return the scope of its token, on main; None without a token."""
        if self.context.actor.credential is None:
            return None
        if self.context.token_scope is not None:
            return self.context.token_scope
        from keepward.services.tokens import get_token

        return get_token(self.context, self.context.actor.credential).scope

    # Memories.

    def fetch(self, memory_id: str, *, as_of: int | None = None, own: bool = False) -> Record:
        """Return the newest record of a memory that it may read.

        ``memory_id`` is an id, or the name of a memory: a key as seen from the handle's scope, the first 8 or more
        characters of an id, or an alias. A name of several memories means the one of the highest trust, then the first
        in this order. ``own`` also returns a sensitive memory to its author, who may change it unread.

        Raises:
            NotFound: no such memory is visible.
            Unauthorised: it is sensitive, and the handle may not read it.
            InvalidInput: more than one visible id has this prefix.
            Tampered: its row does not match its seal.
        """
        record = self._resolve(memory_id, as_of)
        self._check_readable(record, own=own, newest=as_of is None)
        return record

    def fetch_only(self, name: str) -> Record:
        """Return a memory as ``fetch`` does, but refuse a name that several memories have.

        Raises:
            Conflict: the name is also a key or an alias of another visible memory.
        """
        record = self.fetch(name)
        if record.id == name:
            return record
        store, tenant, spellings = self.context.store, self.context.tenant, {name, plain_name(name), plain_key(name)}
        holders = {holder for _, holder in store.ids_by_key(tenant, spellings, self.scopes)}
        holders |= {holder for _, holder in store.ids_by_alias(tenant, spellings, self.can_see)}
        others = store.records(tenant, sorted(holders - {record.id})).records if holders - {record.id} else []
        named = [
            other.id
            for other in others
            if (other.status is Status.ACTIVE or not spellings.isdisjoint(other.aliases))
            and other.id not in self.hidden()
        ]
        if named:
            ids = ", ".join(sorted([record.id, *named])[:MAX_NAMED])
            raise Conflict(f"{len(named) + 1} memories have this name, and erasing cannot be undone: give an id: {ids}")
        return record

    def _check_readable(self, record: Record, *, own: bool, newest: bool) -> None:
        """Require that the content may be read, or with ``own`` changed by its author; ``newest`` saves a lookup.

        Raises:
            Unauthorised: the handle may not.
        """
        if own and record.text_by == self.context.actor.label:
            return
        if self._hides(record) if newest else self._hidden([record]):
            raise Unauthorised(f"memory {record.id} is {HIDDEN_TEXT}")

    def check_key_holder(self, record: Record) -> None:
        """Require that the memory that has a key may be changed.

        Raises:
            NotFound: its scope is not visible.
            Unauthorised: the memory is sensitive, of another author, and the handle may not read it.
        """
        if not self.can_see(record.scope):
            raise NotFound("this handle does not see that scope, where the key is taken: open the store at that scope")
        self._check_readable(record, own=True, newest=False)

    def _resolve(self, memory_id: str, as_of: int | None) -> Record:
        context, states = self.context, self.states(as_of)
        memory_id = states.get(memory_id, memory_id)
        names = list(dict.fromkeys((memory_id, plain_name(memory_id))))
        stored = context.store.records(context.tenant, names, as_of=as_of, scopes=self.scopes, sees=self.can_see)
        visible = [record for record in stored.records if self.can_see(record.scope) and record.id not in states]
        if by_id := next((record for record in visible if record.id in names), None):
            return by_id
        damaged = f"memory {memory_id} does not match its seal and was not used; run `keepward verify`"
        if not {*names}.isdisjoint(stored.damaged):
            raise Tampered(damaged)
        inactive: list[Record] = []
        keyed: list[Record] = []
        # The nearest scope wins, as in a context.
        for scope in self.scopes:
            with_key = [each for each in records_under_key(context, scope, memory_id) if each.id not in states]
            if holder := first_active(with_key):
                keyed = [holder]
                break
            inactive += with_key
        prefixed = self._with_id_prefix(memory_id, as_of) if ID_BEGINNING.fullmatch(memory_id) else []
        named = [*keyed, *prefixed]
        if inactive and not named:
            last = max(inactive, key=lambda record: (record.updated_at or record.created_at, record.id))
            visible = [record for record in visible if record.name_trust > last.name_trust]
            if not visible:
                raise NotFound(f"the memory under that key is {last.status.value}: name it by its id, {last.id}")
        # No lower trust takes a name that a higher one has. Any writer may choose an alias, so it comes last.
        named += visible
        if named:
            record = max(named, key=lambda each: each.name_trust)
            if len(prefixed) > 1 and record in prefixed:
                raise InvalidInput("more than one memory has an id that begins so; give more of it")
            return self._resolve(record.id, as_of) if record in keyed and as_of is not None else record
        if stored.damaged:
            raise Tampered(damaged)
        raise NotFound("there is no memory by that id or key here; check the id, the tenant and the scope")

    def _with_id_prefix(self, prefix: str, as_of: int | None = None) -> list[Record]:
        store, tenant = self.context.store, self.context.tenant
        states = self.states(as_of)
        found = store.ids_with_prefix(tenant, prefix, limit=MAX_ID_MATCHES)
        ids = list(dict.fromkeys(states.get(name, name) for name in found))
        records = store.records(tenant, ids, as_of=as_of).records
        return [record for record in records if self.can_see(record.scope)]

    def ids_beginning(self, prefix: str) -> set[str]:
        """Return the ids of visible memories with a prefix."""
        return {record.id for record in self._with_id_prefix(prefix)}

    def records(self, ids: Sequence[str], *, as_of: int | None = None) -> VisibleRecords:
        """Return memories by id or alias, as they are or were."""
        if states := self.states(as_of):
            ids = list(dict.fromkeys(states.get(name, name) for name in ids))
        found = self.context.store.records(self.context.tenant, ids, as_of=as_of, scopes=self.scopes, sees=self.can_see)
        return self._visible(found.records, found.damaged, as_of)

    def _with_scopes(self, filters: Filter, as_of: int | None = None) -> Filter | None:
        """Return a filter with the visible ones of its scopes, by default of its own; None if it has none."""
        hidden = self.hidden(as_of)
        if hidden != filters.hidden:
            filters = replace(filters, hidden=hidden)
        if filters.below is not None:
            return filters
        scopes = tuple(scope for scope in filters.scopes or self.scopes if self.can_see(scope))
        return replace(filters, scopes=scopes) if scopes else None

    def ask_find(self, filters: Filter, *, live_at: datetime | None) -> None:
        """Let the answer to a later ``find`` with these values come with that to the next read."""
        visible = self._with_scopes(filters)
        if visible is not None:
            self.context.store.ask_find(self.context.tenant, visible, live_at=live_at)

    def find(
        self, filters: Filter, *, live_at: datetime | None, limit: int | None = None, as_of: int | None = None
    ) -> VisibleRecords:
        """Return the memories that pass a filter, in the order of the store; by default in its own scopes."""
        visible = self._with_scopes(filters, as_of)
        if visible is None:
            return VisibleRecords()
        filters = visible
        found = self.context.store.find(self.context.tenant, filters, live_at=live_at, limit=limit, as_of=as_of)
        return self._visible(found.records, found.damaged, as_of)

    def _visible(self, records: list[Record], damaged: list[str], as_of: int | None) -> VisibleRecords:
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
        """Return the ids of visible memories derived from a memory, sorted."""
        store, tenant = self.context.store, self.context.tenant
        ids = store.children(tenant, [memory_id])
        records = store.records(tenant, ids, as_of=as_of).records if ids else []
        hidden = self.hidden(as_of)
        return tuple(sorted(each.id for each in records if self.can_see(each.scope) and each.id not in hidden))

    def derivations(self, ids: Sequence[str]) -> set[tuple[str, str]]:
        """Return pairs of these ids and the ids of memories derived from them, visible or not."""
        store, tenant = self.context.store, self.context.tenant
        children = store.records(tenant, store.children(tenant, ids)).records
        return {(parent, child.id) for child in children for parent in child.derived_from if parent in ids}

    def references(self, names: Sequence[str]) -> dict[str, Record]:
        """Return the memories that references name, by each of their names, as a decider on a proposal reads them.

        A hidden memory keeps the names by which it may be referred to.
        """
        records = self.context.store.records(self.context.tenant, names).records
        return {
            name: replace(self.hide_content(record), aliases=record.aliases)
            for record in records
            if self.oversees(record.scope)
            for name in (record.id, *record.aliases)
        }

    def overseen(self, ids: Sequence[str]) -> VisibleRecords:
        """Return memories that the journal names, as they are now."""
        found = self.context.store.records(self.context.tenant, ids)
        visible = [self.hide_content(record) for record in found.records if self.oversees(record.scope)]
        # The scope of a damaged one is not known.
        return VisibleRecords(records=visible, damaged=found.damaged if self.oversees_all else [])

    def overseen_ids(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of memories whose scope is readable, in order."""
        if self.oversees_all or not ids:
            return tuple(ids)
        found = {record.id: record.scope for record in self.context.store.records(self.context.tenant, ids).records}
        return tuple(name for name in ids if name in found and self.oversees(found[name]))

    def readable_scopes(self, scopes: Sequence[str]) -> tuple[str, ...]:
        """Return those of some scopes whose journal, proposals and receipts are readable."""
        return tuple(filter(self.oversees, scopes))

    # The journal.

    def readable_records(self, steps: Sequence[Step]) -> tuple[Record, ...]:
        """Return what steps make of memories, in readable scopes."""
        return tuple(step.after for step in steps if self.oversees(step.after.scope))

    def readable_versions(
        self, versions: Iterable[tuple[int, MemoryFields, bool]]
    ) -> Iterator[tuple[int, MemoryFields, bool]]:
        """Yield the versions of ``ListReads.written`` of a time when the memory was in a readable scope."""
        if self.oversees_all:
            return iter(versions)
        # They are many, and of few scopes.
        oversees = functools.cache(self.oversees)
        return (version for version in versions if oversees(version[1].scope))

    def _hide_step_content(self, groups: Sequence[Sequence[Step]]) -> list[tuple[Step, ...]]:
        """Return the visible steps of each group, without content that may not be read."""
        visible = [tuple(steps) for steps in groups]
        if not self.oversees_all:
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
        return self.oversees(scope) and (before is None or before.scope == scope or self.oversees(before.scope))

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Return the visible steps, without content that may not be read."""
        return self._hide_step_content([steps])[0]

    def visible_commits(self, views: Sequence[CommitView]) -> list[CommitView]:
        """Return commits with their visible steps; if content is hidden, also without the reason."""
        shown = []
        for view, steps in zip(views, self._hide_step_content([view.steps for view in views]), strict=True):
            hidden = any(step.after.text == HIDDEN_TEXT for step in steps)
            shown.append(replace(_without_reason(view) if hidden else view, steps=steps))
        return shown

    @property
    def _sees_everything(self) -> bool:
        """Whether no scope and no content is hidden from it, so that it may read what a damaged row says."""
        return self.oversees_all and self.may_ask_for_sensitive

    def commit(self, name: str, *, partly: bool = False) -> CommitView:
        """Return a commit by its id, the beginning of its id or its number; it may have no visible step.

        ``partly`` also returns what can be read of a damaged one.

        Raises:
            NotFound: there is no such commit.
            InvalidInput: several visible ones begin so.
            Tampered: it is damaged; with ``partly`` only if nothing of it can be read.
        """
        try:
            view = commit_of(self.context, name, partly=partly)
        except InvalidInput:
            shown = self._commits_shown(self.context.store.commit_ids(self.context.tenant, name))
            view = commit_of(self.context, _only(shown, name), partly=partly)
        return self._readable_commit(view)

    def _readable_commit(self, view: CommitView) -> CommitView:
        """Return a commit with the steps that the handle may see; of a damaged one, the reason only if it sees all."""
        shown = self.visible_commits([view])[0]
        # A change that cannot be read may be of a scope or content that is hidden.
        return shown if self._sees_everything or not view.damage else _without_reason(shown)

    def commits(
        self, *, before: int | None, page: int, kind: str | None, actor: str | None
    ) -> Iterator[CommitView | DamagedCommit]:
        """Yield commits with a visible step, and damaged ones, newest first; ``page`` is the number to read at once."""
        while before != 1:
            read = self.context.store.commits(
                self.context.tenant, before=before, limit=page, kind=kind, actor=actor, scopes=self.overseen_scopes
            )
            intact = iter(self.visible_commits([each for each in read if isinstance(each, CommitView)]))
            for each in read:
                if isinstance(each, DamagedCommit):
                    yield each
                elif (view := next(intact)).steps:
                    yield view
            if len(read) < page:
                return
            before = seq_of_entry(read[-1])

    def commits_until(self, seq: int) -> int:
        """Return how many of the first ``seq`` commits changed a memory in its scopes; all of them if it sees all."""
        scopes = self.overseen_scopes
        return seq if scopes is None else self.context.store.commits_until(self.context.tenant, seq, scopes)

    def commits_changing(
        self, ids: Sequence[str], fields: Sequence[str], *, after: int, until: int
    ) -> tuple[dict[str, list[CommitView]], tuple[str, ...]]:
        """Return, by memory id, the commits in a range that changed at least one of the named fields, oldest first.

        The second value has sentences about versions that cannot be read.
        """
        commits: dict[str, list[CommitView]] = {}
        notes: list[str] = []
        for name, (history, damaged) in self.context.store.readable_histories(self.context.tenant, ids).items():
            between = [(view, step) for view, step in history if after < view.commit.seq <= until]
            changing = [view for view, step in between if _changes(step, fields)]
            commits[name] = [self._readable_commit(view) for view in changing]
            notes += _notes_on_versions(name, damaged)
            notes += (note for view in changing for note in view.damage)
        return commits, tuple(dict.fromkeys(notes))

    def differences(
        self, earlier: int | None, later: int | None, *, offset: int = 0, limit: int | None = None
    ) -> Differences:
        """Return a page of the memories that differ between the active ones after two commits; damaged ones are named.

        They come by id, and those that differ in importance and uses only come last.
        """
        store, tenant = self.context.store, self.context.tenant
        low, high = sorted(MAX_SAFE_INTEGER if seq is None else seq for seq in (earlier, later))
        # Nothing else can differ.
        ids = store.changed_between(tenant, low, high)
        found = [store.records(tenant, ids, as_of=seq) for seq in (earlier, later)]
        withheld = tuple(sorted({name for state in found for name in state.damaged}))
        first, second = (
            {
                record.id: record
                for record in state.records
                if record.status is Status.ACTIVE and record.id not in withheld and self.oversees(record.scope)
            }
            for state in found
        )
        changed = {
            name: (first.get(name), second.get(name))
            for name in sorted(first.keys() | second.keys())
            if first.get(name) != second.get(name)
        }
        kinds = {name: _kind_of_difference(*pair) for name, pair in changed.items()}
        # The sort is stable: they stay in the order of their ids.
        listed = sorted(changed, key=lambda name: kinds[name] == "importance")
        shown = {name: changed[name] for name in listed[offset : None if limit is None else offset + limit]}
        hidden = self._hidden([side for pair in shown.values() for side in pair if side])
        return Differences(
            items=tuple(
                Difference(id=name, before=before and _without_content(before), after=after and _without_content(after))
                if name in hidden
                else Difference(id=name, before=before, after=after)
                for name, (before, after) in shown.items()
            ),
            offset=offset,
            total=len(changed),
            counts=dict(sorted(Counter(kinds.values()).items())),
            withheld=withheld,
            notes=tuple(damage_note(f"memory {name}", "a version does not match its seal") for name in withheld),
        )

    def history(self, memory_id: str) -> Versions:
        """Return every version of a memory, oldest first, except those of a time when it was not visible.

        A version that does not match its seal is named instead.
        """
        notes = list[str]()
        try:
            memory_id = self.fetch(memory_id).id
            unread = None
        except Tampered as exc:
            # Who else may read it is not known.
            if not self._sees_everything:
                raise
            unread = exc
        history, damaged = self.context.store.readable_histories(self.context.tenant, [memory_id])[memory_id]
        notes += _notes_on_versions(memory_id, damaged)
        if unread is not None:
            if not (history or damaged):
                raise unread
            notes.append(damage_note(f"memory {memory_id}, as it is now,", "it does not match its seal"))
        versions: list[Version] = []
        for view, step in history:
            after, before = step.after, step.before
            if not self.can_see(after.scope):
                continue
            before = before if before and self.can_see(before.scope) else None
            hidden = any(self._hides(side) for side in (before, after) if side)
            may_say_why = not hidden and (self._sees_everything or not view.damage)
            shown, damage = view if may_say_why else _without_reason(view), view.damage
            if after.version - 1 in damaged:
                damage += (f"what changed with version {after.version} is not known: the one before it is damaged",)
            versions.append(
                Version(
                    record=self.hide_content(after),
                    before=before and self.hide_content(before),
                    op=step.op,
                    commit=shown.commit,
                    details=shown.details,
                    damage=damage,
                )
            )
        return Versions(id=memory_id, items=tuple(versions), damaged=tuple(sorted(damaged)), notes=tuple(notes))

    def versions(self, ids: Collection[str]) -> tuple[dict[str, dict[int, tuple[str, Record]]], dict[str, set[int]]]:
        """Return, by memory and version, the commit that made it and its record; then the versions that are damaged."""
        versions: dict[str, dict[int, tuple[str, Record]]] = {}
        unread: dict[str, set[int]] = {}
        for name, (history, damaged) in self.context.store.readable_histories(self.context.tenant, ids).items():
            # A memory that is sensitive now is hidden in all its versions.
            hidden = bool(history) and self._hides(history[-1][1].after)
            versions[name] = {
                after.version: (view.commit.id, _without_content(after) if hidden else self.hide_content(after))
                for view, after in ((view, step.after) for view, step in history)
                if self.oversees(after.scope)
            }
            if damaged:
                unread[name] = {*damaged}
        return versions, unread

    def contents(self, memory_id: str) -> dict[int, Record | None]:
        """Return the versions of a memory, except erased ones; None for one of a scope that is not readable.

        Raises:
            Unauthorised: it is sensitive now, and the handle may not read it.
        """
        records = [step.after for step in self.context.store.steps(self.context.tenant, memory_id)]
        hidden = bool(records) and self._hides(records[-1])
        if hidden and self.oversees(records[-1].scope):
            raise Unauthorised(f"memory {memory_id} is {HIDDEN_TEXT}")
        return {
            record.version: record if self.oversees(record.scope) and not hidden else None
            for record in records
            if record.status is not Status.ERASED
        }

    # Proposals.

    def proposal(self, proposal_id: str) -> Proposal:
        """Return a stored proposal, by its id or the beginning of its id.

        Raises:
            NotFound: none with this id is visible.
        """
        stored = self.context.store.documents(Proposal, self.context.tenant)
        try:
            item = stored.get(proposal_id, prefix=True)
        except InvalidInput:
            item = stored.get(_only((each.id for each in self._proposals(None)), proposal_id))
        if item is None or not self.sees_all_of(item):
            raise NotFound("there is no proposal by that id in this tenant; `keepward pending` lists them")
        return self.hide_proposal_content([item])[0]

    def proposals(self, state: str | None) -> list[Proposal]:
        """Return the visible proposals with a stored state, or all of them, oldest first."""
        return self.hide_proposal_content(self._proposals(state))

    def pending_ids(self) -> list[str]:
        """Return the ids of the visible proposals that are pending and not expired, oldest first."""
        now = self.context.clock.now()
        return [item.id for item in self._proposals("pending") if item.expires_at > now]

    def queue_version(self) -> tuple[int, ...]:
        """Return values that change with the visible pending proposals; their number comes first."""
        if self.overseen_scopes is None:
            return self.context.store.queue_change_counter(self.context.tenant)
        items = self._proposals("pending")
        times = [to_micros(item.created_at) for item in items]
        return (len(items), *times[:1], *times[-1:])

    def _proposals(self, state: str | None) -> list[Proposal]:
        stored = self.context.store.documents(Proposal, self.context.tenant).list(state=state)
        return [item for item in stored if self.sees_all_of(item)]

    def sees_all_of(self, item: Proposal) -> bool:
        """Whether every step of a proposal is visible; without its content, whether it is one's own."""
        if self.oversees_all:
            return True
        if not item.steps:
            return self.sees_store or self._is_actor_of(item.proposer.label, item.proposer.credential)
        return all(self._shows(step) for step in item.steps)

    def decides_on(self, item: Proposal) -> bool:
        """Whether everything that a proposal changes is where this handle may write."""
        bound = SHARED_SCOPE if self.oversees_all else self.write_scope()
        sides = (side for step in item.steps for side in (step.before, step.after) if side is not None)
        return all(is_within_scope(side.scope, bound) for side in sides)

    def _is_actor_of(self, label: str, credential: str | None) -> bool:
        """Whether what an actor made with a token, or without one, is this handle's own."""
        own = next((each.credential for each in (self.context.actor, *self.context.via) if each.credential), None)
        return label == self.context.actor.label and credential in {None, own}

    def hide_proposal_content(self, items: Sequence[Proposal]) -> list[Proposal]:
        """Return proposals with their visible steps, without content that may not be read; a decider sees all."""
        if self.context.actor.may_decide:
            return list(items)
        steps = self._hide_step_content([item.steps for item in items])
        return [replace(item, steps=visible) for item, visible in zip(items, steps, strict=True)]

    # Results of writes.

    def own_step(self, step: Step) -> Step:
        """Return a step for its author, without the earlier content that it may not read."""
        return _step_without_content(step) if step.before is not None and self._hides(step.before) else step

    def own_commit(self, commit_id: str) -> tuple[CommitView, dict[str, Any]] | None:
        """Return a commit and its receipt for their author; None if one of them is missing."""
        store, tenant = self.context.store, self.context.tenant
        view, receipt = store.commit(tenant, commit_id), store.receipt(tenant, commit_id)
        if view is None or receipt is None:
            return None
        return replace(view, steps=tuple(map(self.own_step, view.steps))), receipt

    def existing(self, record: Record) -> Record:
        """Return a memory for the author of a duplicate: without its content if the author may not read it."""
        return record if self.can_read(record) else _without_content(record)

    # Receipts.

    def receipt(self, receipt_id: str) -> tuple[dict[str, Any], CommitView | None]:
        """Return a receipt and its commit, if it has one, without changes that are not visible.

        Raises:
            NotFound: none with this id is visible.
        """
        store, tenant = self.context.store, self.context.tenant
        stored = self._stored_receipt(receipt_id)
        if stored is None or not self._visible_receipts([stored]):
            raise NotFound("there is no receipt by that id in this tenant")
        commit = store.readable_commit(tenant, stored["commit"]) if "commit" in stored else None
        view = None if commit is None else self._readable_commit(commit)
        return stored if commit is None else self._own_part(stored, commit), view

    def _stored_receipt(self, name: str) -> dict[str, Any] | None:
        """Return a receipt by its id or the beginning of its id, which only visible ones make ambiguous."""
        store, tenant = self.context.store, self.context.tenant
        try:
            return store.receipt(tenant, name)
        except InvalidInput:
            visible = self._visible_receipts(list(store.receipts(tenant, name)))
            return store.receipt(tenant, _only((receipt["id"] for receipt in visible), name))

    def _own_part(self, receipt: dict[str, Any], commit: CommitView) -> dict[str, Any]:
        """Return the receipt of a commit without its changes that are not visible, nor reasons that may name them."""
        shown = {step.after.id for step in commit.steps if self.oversees_all or self._shows(step)}
        is_intact = self.oversees_all or not commit.damage
        if is_intact and all(step.after.id in shown for step in commit.steps):
            return receipt
        targets = [target for target in receipt.get("targets", ()) if target["id"] in shown]
        return {**receipt, "targets": targets, "reasons": []}

    def own_receipt(self, receipt: Receipt, steps: Sequence[Step]) -> Receipt:
        """Return the receipt of a decision without changes that are not visible, nor reasons that may name them."""
        shown = {step.after.id for step in steps if self.oversees_all or self._shows(step)}
        if all(step.after.id in shown for step in steps):
            return receipt
        targets = [target for target in receipt.facts["targets"] if target["id"] in shown]
        reasons = tuple(reason for reason in receipt.reasons if reason.gate != "quotes")
        return replace(receipt, reasons=reasons, facts={**receipt.facts, "targets": targets})

    def receipt_of_read(self, receipt_id: str, kinds: Mapping[str, str]) -> dict[str, Any]:
        """Return the receipt of a read, of one of these kinds; the error message uses their names.

        Raises:
            NotFound: none with this id is visible.
        """
        receipt = self._stored_receipt(receipt_id)
        if receipt is None or receipt.get("kind") not in kinds or not self._visible_receipts([receipt]):
            raise NotFound(f"there is no {' or '.join(kinds.values())} by that id in this tenant")
        return receipt

    def receipts_before(
        self, receipt_id: str | None, *, limit: int
    ) -> Iterator[tuple[str, dict[str, Any] | None, bool]]:
        """Yield receipts from before one, newest first: the id, the receipt or None, and whether it is damaged.

        None is one that is damaged or not visible. A damaged one is named to those who see every scope.

        Raises:
            Unauthorised: the list takes a reviewer or the owner.
        """
        self.check_decider("a list of receipts")
        read = self.context.store.receipts_before(self.context.tenant, receipt_id, limit=limit)
        intact = [receipt for _, receipt in read if receipt is not None]
        visible = {receipt["id"]: receipt for receipt in self._visible_receipts(intact)}
        sees_all = self.overseen_scopes is None
        return ((name, visible.get(name), receipt is None and sees_all) for name, receipt in read)

    def _visible_receipts(self, receipts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the visible ones among receipts.

        That of a read is visible where its scope is, that of a commit if a change of it is, and that of a decision if
        the proposal is. All others are their actor's, and visible to those who see every scope.
        """
        if self.overseen_scopes is None:
            return list(receipts)
        store, tenant = self.context.store, self.context.tenant

        def named(fact: str) -> list[str]:
            return [str(receipt[fact]) for receipt in receipts if fact in receipt]

        commits = self._commits_shown(named("commit"))
        items = store.documents(Proposal, tenant).list(ids=sorted({*named("proposal")})) if named("proposal") else ()
        proposals = {item.id for item in items if self.sees_all_of(item)}
        existing = {record.id for record in self.records(named("existing")).records} if named("existing") else set()

        def is_visible(receipt: dict[str, Any]) -> bool:
            own = self.sees_store or self._is_actor_of(receipt["actor"], receipt.get("credential"))
            inputs = receipt.get("inputs")
            if isinstance(inputs, dict) and "scope" in inputs:
                # It shows what its reader saw: at a user of a project, that is the user's own scope too.
                scope = inputs["scope"]
                return self.can_see(scope) and (own or all(map(self.can_see, visible_from(scope))))
            if "commit" in receipt:
                return receipt["commit"] in commits
            return own or receipt.get("proposal") in proposals or receipt.get("existing") in existing

        return [receipt for receipt in receipts if is_visible(receipt)]

    def _commits_shown(self, ids: Sequence[str]) -> set[str]:
        """Return those of some commits that have a visible change."""
        store, tenant, shown = self.context.store, self.context.tenant, set[str]()
        for name in store.commits_within(tenant, ids, self.overseen_scopes):
            view = store.readable_commit(tenant, name)
            if view is not None and any(map(self._shows, view.steps)):
                shown.add(name)
        return shown

    def delivery(self, receipt_id: str, pairs: set[tuple[str, int]]) -> Delivery | None:
        """Return a context that contained these versions; None if its receipt is not visible.

        Raises:
            Tampered: its receipt does not say so.
        """
        try:
            receipt = self.context.store.receipt(self.context.tenant, receipt_id)
            shown = {} if receipt is None else items_of(receipt)
            if receipt is None or not pairs <= {(name, item["version"]) for name, item in shown.items()}:
                raise Tampered(f"receipt {receipt_id} does not name what its context contained; run `keepward verify`")
        except Tampered:
            if self.oversees_all:
                raise
            # Its scope is not known.
            return None
        if not self._visible_receipts([receipt]):
            return None
        facts = {"at": receipt["at"], "actor": receipt["actor"], "purpose": receipt["inputs"]["purpose"]}
        return Delivery(receipt=receipt["id"], items=tuple(sorted(pairs)), **facts)


def _only(ids: Iterable[str], prefix: str) -> str:
    """Return the one visible id that begins with a text; empty if none does.

    Raises:
        InvalidInput: several begin so.
    """
    found = [name for name in ids if name.startswith(prefix)]
    if len(found) > 1:
        raise InvalidInput("more than one begins so; give more of its id")
    return found[0] if found else ""


def _notes_on_versions(memory_id: str, damaged: Mapping[int, str]) -> list[str]:
    """Return a sentence about each version that cannot be read, given why."""
    return [damage_note(f"version {each} of memory {memory_id}", damaged[each]) for each in sorted(damaged)]


def _kind_of_difference(before: Record | None, after: Record | None) -> str:
    """Return ``added``, ``removed``, ``changed``, or ``importance`` if nothing else differs but uses."""
    if before is None or after is None:
        return "added" if before is None else "removed"
    return "importance" if has_same_content(before, after) else "changed"


def _without_content(record: Record) -> Record:
    """Return a record without its content: author, scope and times stay, and a hint how to get access."""
    emptied: dict[str, Any] = {**dict.fromkeys(NAME_FIELDS), **dict.fromkeys(NAME_LIST_FIELDS, ())}
    emptied |= dict.fromkeys(("occurred_at", "valid_from", "valid_until"))
    return replace(record, text=HIDDEN_TEXT, metadata_json=None, **emptied)


def _changes(step: Step, fields: Sequence[str]) -> bool:
    return step.before is None or any(getattr(step.before, name) != getattr(step.after, name) for name in fields)


def _step_without_content(step: Step) -> Step:
    return replace(step, before=step.before and _without_content(step.before), after=_without_content(step.after))


def seq_of_entry(entry: CommitView | DamagedCommit) -> int:
    """Return the number of a commit of a list."""
    return entry.seq if isinstance(entry, DamagedCommit) else entry.commit.seq


def _without_reason(view: CommitView) -> CommitView:
    """Return a commit without its reason; its hash still verifies."""
    commit = replace(view.commit, salt=HexBytes(), payload=None, payload_commit=view.commit.commitment())
    return replace(view, commit=commit, details=replace(view.details, reason=HIDDEN_TEXT))


def core_blocks(context: RequestContext, *, approved: bool = False) -> ReadResult:
    """Return the visible active core blocks as stored; if two have one key, the one of the nearer scope.

    With an identity file the block ``persona`` is left out, unless the ``approved`` text is wanted.
    """
    reader = VisibleReader(context)
    scopes = reader.scopes
    filters = Filter(scopes=scopes, tiers=(Tier.CORE.value,), hidden=reader.hidden(), include_sensitive=True)
    found = context.store.find(context.tenant, filters, live_at=context.clock.now(), limit=None)
    nearest = sorted(found.records, key=lambda record: (-scopes.index(record.scope), record.id))
    blocks = {record.key: record for record in nearest}
    if context.engine.identity.name is not None and not approved:
        blocks.pop(CORE_BLOCKS[0], None)
    return ReadResult(records=list(blocks.values()), damaged=found.damaged)
