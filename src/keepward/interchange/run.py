"""One import: deduplication, batches through the gates, the outcome of each line, progress and the summary.

A reader yields rows: a line or item number, and an item or the reason why there is none. An item is a dictionary of
arguments of ``Memory.remember``, without ``source``, and of these:

* ``name``: the item's id in the file. An item without one is recognized by its text.
* ``when``: when it happened, in any form of an instant.
* ``versions``: earlier texts, oldest first, each with its time. They become versions of the memory.
* ``retired``: True if the memory was deleted there. It is forgotten here, and only its history has it.
* ``uses``: how often it was used there, and when last.
* ``parents``: the ids in the file of the items from which it was derived.
* ``identity``: True for a text of the identity; it becomes a proposal of its own, with the texts of its scope.
* ``user``: the id of its user; it goes to ``/users/<id>`` below the scope of the run.
* ``account``: the account that exported it; a user if a file has several accounts.
* ``group``: a possible user. A file with several groups is imported for a named user only.

Invariants
(1) Every row has an outcome. An unusable item is reported with its number and does not stop the others.
(2) Nothing is stored twice. An item is recognized by its name even if its text has changed, so an import does not undo
    a correction or redaction. A name derived from a text is derived after redaction.
(3) Every item passes the gates as new text, for every actor. Core blocks, memories with a key and rules without
    evidence need approval, in one proposal. So do permanent memories, unless the owner vouches for the file. A
    person's import has the trust of a user.
(4) Every imported memory has the reference of its import in its evidence.
(5) A dry run passes the same gates and stores nothing.
(6) Users do not mix: items of two users go to two scopes, unless the caller names one user for all. What one user has
    is no duplicate for another.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from keepward.core.change import Change, Replace, Retire
from keepward.core.commit import Reason
from keepward.core.memory import Kind, Record, Status, Tier
from keepward.core.messages import parse_timestamp
from keepward.core.principals import SHARED_SCOPE, Actor, ActorKind, is_scope, parse_scope, user_of
from keepward.core.proposal import Refused
from keepward.core.value import Value, plain_name
from keepward.errors import InvalidInput, NotFound
from keepward.gates.detectors import pii, secrets
from keepward.gates.detectors.matcher import redact
from keepward.gates.validation import ALIAS_LEFT_OUT
from keepward.interchange.parsing import Row, require_well_formed
from keepward.memory import request_context_of
from keepward.services.review.edits import new_memories
from keepward.services.review.identity import identity_change
from keepward.services.writing.ingest import propose_facts
from keepward.services.writing.splitter import UnusableItem, split_item
from keepward.services.writing.write import DryRun, propose

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.services.request_context import RequestContext

#: Maximum number of items of one file.
ITEM_LIMIT = 500_000
#: Memories in one commit, and in one proposal.
BATCH_SIZE = 100
REVIEW_SIZE = 1_000
#: Number of items between two reports of progress.
_REPORT_EVERY = 1_000
#: Maximum number of passes over deferred items, whose parents must be stored first.
_MAX_PARENT_PASSES = 16
_MAX_NAME = 200
#: Maximum number of users and groups that a message lists.
_MAX_LISTED = 5
_EPISODIC_KINDS = frozenset({"event", "summary"})

_Outcome = Literal["committed", "duplicate", "quarantined", "refused", "failed"]
#: The outcome of each item of a batch, and its reasons.
_Judged = list[tuple[Any, tuple[Reason, ...]]]


class Imported(Value):
    """The result of an import. ``total`` is the sum of the counts and of ``failed``."""

    format: str
    total: int
    committed: int
    #: Items that are in memory or in the review queue already.
    duplicates: int
    #: Items that are now in the review queue.
    quarantined: int
    refused: int
    #: (line or item number, reason) of each unusable item.
    failed: tuple[tuple[int, str], ...]
    #: The same for each item that the gates refused.
    refusals: tuple[tuple[int, str], ...]
    #: Tenants of the file's memories, in order of first appearance.
    tenants: tuple[str, ...]
    #: Sentences about unexpected results, such as skipped parts.
    notes: tuple[str, ...]
    #: In the evidence of every imported memory. ``impact``, ``contain`` and ``erase`` take it as a source.
    reference: str
    #: Number of facts of conversations, by outcome.
    facts: Mapping[str, int]
    #: Whether nothing was stored; the counts are then those of a real import.
    dry_run: bool


class LineResult(Value):
    """The result of one line or item."""

    number: int
    outcome: _Outcome
    reasons: tuple[Reason, ...] = ()
    #: A sentence in addition to the reasons; it never contains content.
    detail: str = ""


class ImportRun:
    """One import. Call ``measure``, then ``add`` for each file, then ``finish``."""

    def __init__(
        self,
        mem: Memory,
        name: str,
        *,
        user: str | None = None,
        session: str | None = None,
        facts: bool = False,
        subject: str | None = None,
        untrusted: bool = False,
        dry_run: bool = False,
        on_progress: Callable[[int, int], None] | None = None,
        on_result: Callable[[LineResult], None] | None = None,
    ) -> None:
        self.mem, self.name, self.session = mem, name, session
        owner = mem.actor.is_owner
        if untrusted and mem.actor.kind is ActorKind.USER:
            raise InvalidInput("only the owner imports a file as untrusted: import it as the owner, or as an agent")
        #: Whether the owner vouches for the file.
        self._vouched = owner and not untrusted
        # The owner decides proposals, so another actor has to propose.
        self._proposer = mem.as_actor(Actor.importer(mem.actor.name)) if owner else mem
        self._writer = mem if self._vouched else self._proposer
        own = user_of(mem.scope)
        if own and user not in {None, own}:
            raise InvalidInput(f"this is the handle of user {own}: open the store at / to import for {user}")
        #: The user of all items: the named one, or that of the handle.
        self.user = own or user
        #: Scope of items that name no scope and no user.
        self.scope = mem.scope if own or user is None else _scope_of(mem.scope, user)
        self._facts, self._subject = facts and not dry_run, subject or user
        self._on_progress, self._on_result = on_progress, on_result
        #: Whether nothing is stored.
        self._dry_run = dry_run
        #: Judges items without storing them, by whether they need approval.
        self._rehearsals = {needs: self._rehearsal(needs) for needs in (False, True)}
        #: Sentences, and the number of skipped parts by description.
        self.notes: list[str] = ["a dry run extracts no facts"] if facts and dry_run else []
        self.skipped = Counter[str]()
        #: Number of parts that are not memories of their own, by description.
        self.included = Counter[str]()
        #: Whether files next to the imported one, such as blobs, may be stored now.
        self.storing = False
        self.items = 0
        self._total = self._done = self._reported = 0
        #: Names of all items, and of the added ones.
        self._names, self._taken = set[str](), set[str]()
        self._users, self._accounts = set[str](), set[str]()
        #: Possible users.
        self.groups = set[str]()
        self._counts, self._fact_counts, self._redacted = Counter[str](), Counter[str](), Counter[str]()
        self._failed: list[tuple[int, str]] = []
        self._refusals: list[tuple[int, str]] = []
        self._fact_notes: list[str] = []
        #: Items that the next commit stores, and items that wait for the next proposal.
        self._next: list[tuple[int, dict[str, Any]]] = []
        self._waiting: list[tuple[int, dict[str, Any]]] = []
        #: Number and item of each text of an identity, by scope.
        self._identities: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        #: Items whose parents must be added first.
        self._deferred: list[tuple[int, str, dict[str, Any], tuple[str, ...]]] = []
        #: Records of an earlier import, which may contain facts that it did not extract.
        self._known_records: list[Record] = []
        self._limits = {str(tier): limit for tier, limit in mem.policy.text_limit.items()}
        self._deduplicator = Deduplicator(mem)

    @property
    def reference(self) -> str:
        """The reference in the evidence of every imported memory (4)."""
        return f"import:{' '.join(self.name.split())[:_MAX_NAME]}"

    def measure(self, rows: Iterable[Row], file: str) -> None:
        """Read a file to its end before anything is stored: count its rows, and collect its users.

        Raises:
            InvalidInput: the file is damaged, truncated, or has too many items.
        """
        for count, (_, row) in enumerate(rows, 1):
            if count > ITEM_LIMIT:
                raise InvalidInput(f"{file} has more than {ITEM_LIMIT} items: split it, and import the parts")
            self._total += 1
            if not isinstance(row, UnusableItem):
                self.items += 1
                for field, known in (
                    ("name", self._names),
                    ("user", self._users),
                    ("account", self._accounts),
                    ("group", self.groups),
                ):
                    if isinstance(row.get(field), str):
                        known.add(row[field])
            if self._total % _REPORT_EVERY == 0:
                self._report()

    def require_user(self) -> None:
        """Check that the items of several users can be distinguished (6)."""
        if self.user is None and len(self.groups) > 1:
            raise InvalidInput(
                f"{self.name} has {len(self.groups)} groups or accounts, each of which may be a user: "
                f"{_listed(self.groups)}. Import everything for one user with --user NAME (`user=`), or split the file"
            )

    def add(self, rows: Iterable[Row], file: str = "") -> None:
        """Add the rows of a file; ``file`` is the prefix of the reasons of unusable rows."""
        for number, row in rows:
            self._done += 1
            try:
                items = list(self._items(row))
            except UnusableItem as exc:
                self._fail(number, f"{file}{exc}")
                continue
            self._done += len(items) - 1
            for name, item, parents in items:
                self._add_item(number, name, item, parents)

    def _fail(self, number: int, reason: str) -> None:
        self._failed.append((number, reason))
        self._report_result(number, "failed", detail=reason)

    def finish(self, format: str) -> Imported:  # noqa: A002 - the word people use
        """Store the deferred items and the last batches, and return the result of the import."""
        for last in (*[False] * _MAX_PARENT_PASSES, True):
            if last:
                # The remaining items are parents of each other, or their chain of parents is too long.
                self._names.clear()
            deferred, self._deferred = self._deferred, []
            for item in reversed(deferred):
                self._add_item(*item)
        self._flush()
        self._propose_waiting()
        for scope, parts in self._identities.items():
            self._propose_identity(scope, parts)
        self._propose_facts(self._known_records)
        self._report()
        return Imported(
            format=format,
            total=self._done,
            committed=self._counts["committed"],
            duplicates=self._counts["duplicate"],
            quarantined=self._counts["quarantined"],
            refused=self._counts["refused"],
            failed=tuple(sorted(self._failed)),
            refusals=tuple(sorted(self._refusals)),
            tenants=(self.mem.tenant,) if self._done > len(self._failed) else (),
            notes=tuple(self._all_notes()),
            reference=self.reference,
            facts=dict(sorted(self._fact_counts.items())),
            dry_run=self._dry_run,
        )

    def _items(self, row: dict[str, Any] | UnusableItem) -> Iterator[tuple[str, dict[str, Any], tuple[str, ...]]]:
        """Yield the name of an item, the arguments of ``remember``, and its parents; a long text is split."""
        if isinstance(row, UnusableItem):
            raise row
        require_well_formed(row)
        item = {"scope": None, "tier": None, **row}
        name, when, parents, user, account, _, versions = (
            item.pop(field, None) for field in ("name", "when", "parents", "user", "account", "group", "versions")
        )
        text = item.get("text")
        if not isinstance(text, str) or not (text.strip() or item.get("key") or item.get("blob")):
            raise UnusableItem("it has no text")
        for field in ("tier", "kind", "session", "scope"):
            if not isinstance(item.get(field), str | None):
                raise UnusableItem(f"its {field} is a text")
        try:
            if when not in (None, ""):
                item["occurred_at"] = when if isinstance(when, datetime) else parse_timestamp(when)
            for field in ("valid_from", "valid_until"):
                if (at := item.get(field)) not in (None, ""):
                    item[field] = at if isinstance(at, datetime) else parse_timestamp(at)
            earlier = tuple((each, parse_timestamp(at) if at else None) for each, at in versions or ())
        except InvalidInput as exc:
            raise UnusableItem("its time is neither ISO 8601 nor a number since 1970") from exc
        user = user or (account if len(self._accounts) > 1 else None)
        named = self.user or (_user_name(str(user)) if user else None)
        try:
            if named is not None:
                item["scope"] = self.scope if self.user else _scope_of(self.scope, named)
                item["subject"] = item.get("subject") or named
            item["scope"] = parse_scope(item["scope"] or self.scope)
        except InvalidInput as exc:
            raise UnusableItem(str(exc)) from exc
        item["aliases"] = (name,) if isinstance(name, str) and name.strip() else ()
        item["aliases"] += tuple(row.get("aliases") or ())
        item["evidence"] = (*(row.get("evidence") or ()), self.reference)
        tier = item["tier"] or ("episodic" if item.get("kind") in _EPISODIC_KINDS else "archival")
        limit = self._limits.get(tier)
        unsplittable = item.get("key") is not None or tier == Tier.CORE
        parts = (item,) if limit is None or unsplittable else tuple(split_item(item, limit))
        if earlier and len(parts) == 1:
            item["versions"] = earlier
        for part in parts:
            if not part["aliases"]:
                # An alias exempts a fact from the duplicate check, so a fact of a session has its name as evidence.
                field = "evidence" if part.get("session") and part.get("kind") != "event" else "aliases"
                part[field] = (self._deduplicator.name_of(part), *part[field])
            yield (*part["aliases"], part["evidence"][0])[0], part, tuple(parents or ())

    def _add_item(self, number: int, name: str, item: dict[str, Any], parents: tuple[str, ...]) -> None:
        if any(parent in self._names and parent not in self._taken for parent in parents):
            self._deferred.append((number, name, item, parents))
            return
        self._taken.add(name)
        known = self._deduplicator.find(name, item)
        if known is not None:
            self._counts["duplicate"] += 1
            self._report_result(number, "duplicate", detail="known already, in memory or in the review queue")
            # An earlier import may have been interrupted, or did not extract facts.
            self._known_records += [known] if isinstance(known, Record) else []
            return
        if item.pop("identity", False):
            self._identities.setdefault(item["scope"], []).append((number, item))
            return
        if parents:
            # Parents must be stored first.
            unstored = {alias for _, other in self._next for alias in other["aliases"][:1]}
            if not unstored.isdisjoint(parents):
                self._flush()
            self._link(item, parents)
        keyed = item.get("key") is not None or item["tier"] == Tier.CORE
        if keyed or self._is_weak_rule(item) or (item.get("stability") == "permanent" and not self._vouched):
            self._waiting.append((number, item))
            if len(self._waiting) == REVIEW_SIZE:
                self._propose_waiting()
            return
        if ("versions" in item or "retired" in item) and self._store_history(number, item):
            return
        self._next.append((number, item))
        if len(self._next) == BATCH_SIZE:
            self._flush()

    def _is_weak_rule(self, item: Mapping[str, Any]) -> bool:
        """Whether an item is a rule without evidence of its own, or of low confidence."""
        if item.get("kind") != Kind.RULE:
            return False
        confidence = item.get("confidence")
        sure = isinstance(confidence, int | float) and confidence >= self.mem.policy.rule_floor
        return not (sure and set(item["evidence"]) - {self.reference})

    def _store_history(self, number: int, item: dict[str, Any]) -> bool:
        """Store a memory with its earlier versions in a commit of its own; False if only its present text can come."""
        if self._dry_run:
            self._count_history(item)
            return False
        self._flush()
        context = request_context_of(self._writer)
        ((outcome, reasons),) = self._rehearse([_at_first(item)], needs_approval=False)
        if outcome == "committed":
            done = propose(context, _history(context, item), reason=f"import of {self.name}", kind="import")
            outcome, reasons = done.outcome, done.reasons
            if outcome == "committed":
                self._count(number, outcome, reasons)
                self._count_history(item)
                return True
        if item.get("retired"):
            self._count(number, outcome, reasons)
            return True
        self.skipped["earlier versions that the gates refuse"] += len(item["versions"])
        return False

    def _count_history(self, item: Mapping[str, Any]) -> None:
        self.included["earlier versions"] += len(item.get("versions", ()))
        self.included["deleted memories, as forgotten ones"] += item.get("retired", False)

    def _link(self, item: dict[str, Any], parents: tuple[str, ...]) -> None:
        """Set the ids of an item's parents in this store; missing parents stay in the evidence as names."""
        found, missing = [], []
        for name in parents:
            record = self._deduplicator.by_name(name, item["scope"])
            if record is not None and not self._deduplicator.has_ignored_names(record):
                found.append(record.id)
            elif not self._dry_run or name not in self._taken:
                missing.append(name)
        item["derived_from"] = tuple(dict.fromkeys(found))
        item["evidence"] = (*item["evidence"], *missing)
        self.skipped["parents that are missing or pending review: the evidence has their names"] += len(missing)

    # --- one batch

    def _flush(self) -> None:
        batch, self._next = self._next, []
        self._store_batch(batch, needs_approval=False)
        self._report(len(self._waiting))

    def _propose_waiting(self) -> None:
        batch, self._waiting = self._waiting, []
        self._store_batch(batch, needs_approval=True)
        self._report(len(self._next))

    def _store_batch(self, batch: list[tuple[int, dict[str, Any]]], *, needs_approval: bool) -> None:
        """Store or propose a batch and count its outcomes; a failing one is halved to find the failing items."""
        if not batch:
            return
        items = [{**item, "source": "import"} for _, item in batch]
        judged: _Judged | None
        try:
            if needs_approval:
                judged = self._propose(items)
            else:
                present = [_present(item) for item in items]
                judged = self._rehearse(present, needs_approval=False) if self._dry_run else self._remember(present)
        except InvalidInput as exc:
            if len(batch) == 1:
                self._fail(batch[0][0], str(exc))
                return
            judged = None
        if judged is None:
            middle = len(batch) // 2
            self._store_batch(batch[:middle], needs_approval=needs_approval)
            self._store_batch(batch[middle:], needs_approval=needs_approval)
            return
        for (number, _), (outcome, reasons) in zip(batch, judged, strict=True):
            self._count(number, outcome, reasons)
        self._count_uses(item for (_, item), (outcome, _) in zip(batch, judged, strict=True) if outcome == "committed")

    def _count_uses(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Count earlier uses of stored memories; their importance there has learned from these already."""
        used = {item["aliases"][0]: item for item in items if item.get("uses") and item["aliases"]}
        self.included["counts of uses"] += len(used)
        if not used or self._dry_run:
            return
        found = ((self._deduplicator.by_name(name, item["scope"]), item["uses"]) for name, item in used.items())
        ids = {record.id: uses for record, uses in found if record is not None}
        context = request_context_of(self.mem)
        with context.store.write() as writer:
            writer.count_uses(context.tenant, ids)
            writer.learn_uses(context.tenant, {name: count for name, (count, _) in ids.items()})

    def _count(self, number: int, outcome: Any, reasons: tuple[Reason, ...]) -> None:
        self._report_result(number, outcome, reasons)
        self._counts[outcome] += 1
        self._counts["alike"] += outcome == "duplicate"
        self._counts["unnamed"] += any(each.code == ALIAS_LEFT_OUT for each in reasons)
        if outcome == "refused":
            self._refusals.append((number, "; ".join(reason.detail for reason in reasons) or "refused"))

    def _rehearsal(self, needs_approval: bool) -> DryRun:
        return DryRun(request_context_of(self._handle(needs_approval)), f"import of {self.name}")

    def _handle(self, needs_approval: bool) -> Memory:
        return self._proposer if needs_approval else self._writer

    def _rehearse(self, items: list[dict[str, Any]], *, needs_approval: bool) -> _Judged:
        new = new_memories(request_context_of(self._handle(needs_approval)), items)
        # Only a dry run goes on with what it has judged.
        rehearsal = self._rehearsals[needs_approval] if self._dry_run else self._rehearsal(needs_approval)
        found = rehearsal.evaluate(new)
        return [("quarantined" if needs_approval and word == "committed" else word, why) for word, why in found]

    def _remember(self, items: list[dict[str, Any]]) -> _Judged:
        outcomes = self._writer.remember_many(
            items, mode="each", reason=f"import of {self.name}", kind="import", batch=BATCH_SIZE
        )
        stored = [each.record for each in outcomes if each.record is not None]
        self._propose_facts(stored)
        self._redacted.update(kind for each in outcomes if each.record is not None for kind in each.redacted)
        return [(each.outcome, each.reasons) for each in outcomes]

    def _propose(self, items: list[dict[str, Any]]) -> _Judged | None:
        """Propose items as one proposal, but for those that the gates refuse; None if the rest is refused together."""
        judged = self._rehearse([_present(item) for item in items], needs_approval=True)
        accepted = [item for item, (outcome, _) in zip(items, judged, strict=True) if outcome == "quarantined"]
        if self._dry_run or not accepted:
            return judged
        context, reason = request_context_of(self._proposer), f"import of {self.name}: lasting memories"
        versions = sum(len(item.get("versions", ())) for item in accepted)
        outcome = propose(context, [change for item in accepted for change in _history(context, item)], reason=reason)
        self.included["earlier versions"] += versions if outcome.outcome == "quarantined" else 0
        if versions and isinstance(outcome, Refused):
            self.skipped["earlier versions that the gates refuse"] += versions
            outcome = propose(context, new_memories(context, [_present(item) for item in accepted]), reason=reason)
        if isinstance(outcome, Refused) and len(items) > 1:
            return None
        done = (outcome.outcome, outcome.reasons)
        return [done if word == "quarantined" else (word, why) for word, why in judged]

    def _propose_identity(self, scope: str, parts: list[tuple[int, dict[str, Any]]]) -> None:
        """Propose the texts of an identity as one block, the newest first; store too long ones as documents."""
        parts.sort(key=lambda part: str(part[1].get("occurred_at") or ""), reverse=True)
        context, reason = request_context_of(self._proposer.at(scope=scope)), f"import of {self.name}: the identity"
        names = tuple(name for _, item in parts for name in item["aliases"])
        change = identity_change(
            context,
            "\n\n".join(item["text"] for _, item in parts),
            source="import",
            evidence=(self.reference,),
            aliases=names,
        )
        ((word, reasons),) = DryRun(context, reason, identity=True).evaluate([change])
        if any(each.code in _TOO_LONG for each in reasons):
            self.notes.append(_LONG_IDENTITY)
            documents = {"tier": "archival", "kind": "document", "stability": "permanent"}
            self._store_batch([(n, item | documents) for n, item in parts], needs_approval=not self._vouched)
            return
        if not self._dry_run:
            outcome = propose(context, [change], reason=reason, identity=True)
            word, reasons = outcome.outcome, outcome.reasons
        for number, _ in parts:
            self._count(number, "quarantined" if word == "committed" else word, reasons)

    def _propose_facts(self, records: Sequence[Record]) -> None:
        """Propose the facts in conversations, session by session, from the scope of their messages."""
        messages = [
            each for each in records if self._facts and each.tier is Tier.EPISODIC and each.status is Status.ACTIVE
        ]
        for (scope, _, subject), group in itertools.groupby(
            messages, lambda each: (each.scope, each.session, each.subject)
        ):
            context = request_context_of(self._deduplicator.view(scope))
            outcomes, notes = propose_facts(context, list(group), self._subject or subject)
            self._fact_counts.update(each.outcome for each in outcomes)
            self._fact_notes += [note for note in notes if note not in self._fact_notes]

    # --- results

    def _report(self, waiting: int = 0) -> None:
        """Report the number of finished rows; ``waiting`` rows were read and are not stored yet."""
        self._reported = max(self._reported, self._done - waiting)
        if self._on_progress is not None:
            self._on_progress(self._reported, max(self._total, self._done))

    def _report_result(
        self, number: int, outcome: _Outcome, reasons: tuple[Reason, ...] = (), detail: str = ""
    ) -> None:
        if self._on_result is not None:
            self._on_result(LineResult(number=number, outcome=outcome, reasons=reasons, detail=detail))

    def _all_notes(self) -> Iterator[str]:
        yield from dict.fromkeys(self.notes)
        users = self._users | (self._accounts if len(self._accounts) > 1 else set())
        if users and self.user is None:
            yield f"each user has a scope: {_listed(f'{each} /users/{_user_name(each)}' for each in users)}"
        yield from (f"imported too: {count} {what}" for what, count in sorted(self.included.items()) if count)
        yield from (f"left out: {count} {what}" for what, count in sorted(self.skipped.items()) if count)
        yield from self._fact_notes
        if self._redacted:
            named = ", ".join(f"{kind.replace('_', ' ')} in {count}" for kind, count in sorted(self._redacted.items()))
            yield f"replaced by a marker: {named}"
        if self._counts["unnamed"]:
            yield "old ids that are the name of a core block, a key or an id here were not stored as aliases"
        if self._counts["alike"]:
            yield f"{self._counts['alike']} say what another memory says already and were not stored"
        known = self._deduplicator.counts
        yield from (f"{known[what]} {what}" for what in (_WAITING, _DIFFERING, _INACTIVE) if known[what])


#: Codes of a text that is too long for its block.
_TOO_LONG = frozenset({"too_long", "over_budget"})
_LONG_IDENTITY = (
    "the identity is too long for its block: its texts were imported as permanent documents. Write a shorter one and "
    "propose it with `keepward identity propose -f FILE`"
)
_WAITING = "imported before and still pending review"
_DIFFERING = "edited or redacted since they were imported; they stay as they are here"
_INACTIVE = "no longer active here (retired, archived or superseded); they stay inactive"


def _present(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``remember`` for the present text of an item."""
    return {name: value for name, value in item.items() if name not in {"versions", "retired", "uses"}}


def _at_first(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same for its first version."""
    text, when = item["versions"][0] if item.get("versions") else (item["text"], item.get("occurred_at"))
    return _present(item) | {"text": text, "occurred_at": when, "source": "import"}


def _history(context: RequestContext, item: Mapping[str, Any]) -> list[Change]:
    """Return the changes that store an item with all its versions."""
    changes: list[Change] = [*new_memories(context, [_at_first(item)])]
    memory_id = changes[0].id
    later = (*item.get("versions", ())[1:], (item["text"], item.get("occurred_at"))) if item.get("versions") else ()
    changes += [Replace(id=memory_id, text=text, occurred_at=when, source="import") for text, when in later]
    return [*changes, Retire(id=memory_id)] if item.get("retired") else changes


class Deduplicator:
    """Finds the memories and pending proposals of a tenant that an import contains again (2)."""

    def __init__(self, mem: Memory) -> None:
        self._mem = mem
        # An empty tenant has no duplicates; a search for each item would double the time.
        self._empty = mem.head.startswith("0:")
        self._views = {mem.scope: mem}
        #: Scope, session and alias, or scope, session and text, of each pending proposal.
        self._waiting = set(_pending_names(mem))
        self._seen: set[tuple[str, str | None, str]] = set()
        self._repeats = Counter[tuple[str, ...]]()
        self._loaded: tuple[tuple[str, str], dict[str, Record]] = (("", ""), {})
        #: The number of reported duplicates, by the sentence that reports them.
        self.counts = Counter[str]()

    def name_of(self, item: Mapping[str, Any]) -> str:
        """Return a name for an item that has none: a digest of its session, speaker, time, text and repetition."""
        text = redact(item["text"], [*secrets.scan(item["text"]), *pii.scan(item["text"])])
        said = (item["scope"], *(str(item.get(name) or "") for name in ("session", "speaker", "occurred_at")), text)
        # Without a session, repeated texts count once.
        self._repeats[said] += item.get("session") is not None
        digest = hashlib.sha256(json.dumps([*said[1:], self._repeats[said]]).encode())
        return f"text:{digest.hexdigest()[:32]}"

    def find(self, name: str, item: Mapping[str, Any]) -> Record | Literal["waiting", "seen"] | None:
        """Return the memory of an item, or whether it is pending or repeated in this import; None for a new one."""
        scope, session = item["scope"], item.get("session")
        if (scope, session, name) in self._seen:
            return "seen"
        self._seen.add((scope, session, name))
        view = self.view(scope)
        if not self._waiting.isdisjoint({(scope, session, name), (scope, session, item["text"])}):
            self.counts[_WAITING] += 1
            return "waiting"
        if self._empty:
            return None
        found = self.by_name(name, scope) if session is None else self._of_session(view, session).get(name)
        if found is not None and self.has_ignored_names(found) and found.text != item["text"]:
            found = None
        if found is not None:
            self.counts[_DIFFERING] += found.text != item["text"]
            self.counts[_INACTIVE] += found.status is not Status.ACTIVE
        return found

    def by_name(self, name: str, scope: str) -> Record | None:
        """Return the memory with a name of the file, visible from a scope, or None."""
        with suppress(NotFound, InvalidInput):
            found = self.view(scope).get(name)
            # A key of this store is no name of the file.
            return found if plain_name(name) in {found.id, *found.aliases} else None
        return None

    def has_ignored_names(self, record: Record) -> bool:
        """Whether this import ignores the names of a memory: an owner imports, and an agent chose them."""
        return self._mem.actor.is_owner and record.author.partition(":")[0] == ActorKind.AGENT

    def view(self, scope: str) -> Memory:
        """Return the handle at the scope of an item: a reader sees its own scope and those above."""
        if scope not in self._views:
            self._views[scope] = self._mem.at(scope=scope)
            self._waiting.update(_pending_names(self._views[scope]))
        return self._views[scope]

    def _of_session(self, view: Memory, session: str) -> dict[str, Record]:
        if self._loaded[0] != (view.scope, session):
            found = view.list_memories(session=session, limit=None, include_ended=True)
            named = {name: each for each in found for name in (*each.evidence, each.id, *each.aliases)}
            self._loaded = (view.scope, session), named
        return self._loaded[1]


def _pending_names(view: Memory) -> Iterator[tuple[str, str | None, str]]:
    """Yield the scope and session with each name and text of the pending proposals that a handle can see.

    For an owner's import, an agent's proposals have a text only.
    """
    for proposal in view.pending(limit=None):
        unnamed = view.actor.is_owner and proposal.proposer.kind is ActorKind.AGENT
        for after in (step.after for step in proposal.steps):
            names = () if unnamed else (*after.evidence, *after.aliases)
            yield from ((after.scope, after.session, name) for name in (*names, after.text))


def _scope_of(scope: str, user: str) -> str:
    try:
        return parse_scope(f"{scope.removesuffix(SHARED_SCOPE)}/users/{user}")
    except InvalidInput as exc:
        raise InvalidInput(f"{user!r} is no valid name of a user: use a name or an id such as u-1042") from exc


def _user_name(own_id: str) -> str:
    """Return the name of a user; for a personal identifier or an invalid name, a digest of it."""
    if "/" not in own_id and is_scope(f"/users/{own_id}") and not pii.scan(own_id):
        return own_id
    return f"u-{hashlib.sha256(own_id.encode()).hexdigest()[:12]}"


def _listed(names: Iterable[str]) -> str:
    names = sorted(names)
    return ", ".join(names[:_MAX_LISTED]) + (", …" if len(names) > _MAX_LISTED else "")
