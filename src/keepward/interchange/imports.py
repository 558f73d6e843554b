"""Import: memories from a file, each through the gates, with source ``import``.

Invariants
(1) A file that cannot be read, or that was cut, is an error; nothing of it is stored.
(2) A line or item that cannot be used is reported with its number and never stops the others.
(3) Importing the same file again stores nothing again.
(4) Nothing enters without passing the gates as new text, whoever imports it; ``restoring`` brings an export back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, assert_never

from keepward.errors import InvalidInput
from keepward.interchange import vault
from keepward.interchange.formats import FORMATS, Format, plan_of, recognise
from keepward.interchange.items import Flaw, Item, Plan
from keepward.interchange.known import Known
from keepward.interchange.reading import opened
from keepward.interchange.restoring import live_plan
from keepward.model.commit import Reason
from keepward.model.proposal import Committed, Duplicate, Outcome, Quarantined, Refused
from keepward.model.trust import Actor
from keepward.model.value import Value, unknown

if TYPE_CHECKING:
    from keepward.memory import Memory

#: Memories in one commit.
BATCH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported(Value):
    """What came of an import: ``total`` is the sum of the counts and of ``failed``."""

    format: Format
    total: int
    committed: int
    #: Known already, in memory or waiting for review.
    duplicates: int
    #: Held for a person.
    quarantined: int
    refused: int
    #: (line or item number, plain reason) of what could not be used.
    failed: tuple[tuple[int, str], ...]
    #: The same for what the gates refused.
    refusals: tuple[tuple[int, str], ...]
    #: Tenants that the file's memories belong to, in order of first appearance.
    tenants: tuple[str, ...]
    #: Plain sentences on what was done otherwise than one might expect.
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one line or item."""

    number: int
    outcome: Literal["committed", "duplicate", "quarantined", "refused", "failed"]
    reasons: tuple[Reason, ...] = ()
    #: In plain words, where there is more to say than the reasons do; never content.
    detail: str = ""


def load(
    mem: Memory,
    target: str | Path | IO[str] | IO[bytes],
    *,
    format: Format = "auto",  # noqa: A002 - the word people use
    session: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
) -> Imported:
    """Import a file into the tenant of the handle, under the name of its actor.

    ``session`` names the session of ``messages``; default is the file's name. ``on_progress`` gets
    (done, total) after every batch; ``total`` may grow where long texts are split. ``on_result`` gets what became
    of each line as it is known, in the order of deciding.

    Raises:
        InvalidInput: unreadable, cut, empty or unrecognised, or the tenant is not one of a LoCoMo file's;
            nothing was stored.
    """
    if format not in FORMATS:
        raise InvalidInput(unknown("format", format, FORMATS))
    with opened(target) as source:
        chosen = recognise(source) if format == "auto" else format
        if chosen == "vault":
            plan = live_plan(mem, source, vault.survey(source))
        else:
            plan = plan_of(chosen, source, mem, session)
        return _Intake(mem=mem, format=chosen, name=source.name, report=on_progress, result=on_result).take(plan)


@dataclass(slots=True, kw_only=True)
class _Intake:
    """One import under way."""

    mem: Memory
    format: Format
    name: str
    report: Callable[[int, int], None] | None
    result: Callable[[Result], None] | None = None
    counts: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str]] = field(default_factory=list)
    refusals: list[tuple[int, str]] = field(default_factory=list)
    known: dict[str, Known] = field(default_factory=dict)
    done: int = 0
    total: int = 0
    told: int = 0

    def take(self, plan: Plan) -> Imported:
        self.total = plan.total
        self._tell()
        waiting: dict[tuple[str, bool], list[Item]] = {}
        for entry in plan.entries:
            self.done += 1
            if isinstance(entry, Flaw):
                self.failed.append((entry.number, entry.reason))
                self._result(entry.number, "failed", detail=entry.reason)
                continue
            tenant = entry.tenant or self.mem.tenant
            if self._known(tenant).meets(entry):
                self.counts["duplicate"] += 1
                self._result(entry.number, "duplicate", detail="known already, in memory or waiting for review")
                continue
            unowned = entry.review == "unless_owner" and not self.mem.actor.is_owner
            place = (tenant, entry.review == "always" or unowned)
            batch = waiting.setdefault(place, [])
            batch.append(entry)
            if len(batch) == BATCH:
                self._flush(waiting, place)
        for place in list(waiting):
            self._flush(waiting, place)
        self._tell()
        return Imported(
            format=self.format,
            total=self.done,
            committed=self.counts["committed"],
            duplicates=self.counts["duplicate"],
            quarantined=self.counts["quarantined"],
            refused=self.counts["refused"],
            failed=tuple(sorted(self.failed)),
            refusals=tuple(sorted(self.refusals)),
            tenants=tuple(self.known),
            notes=(*plan.notes, *self._notes()),
        )

    def _known(self, tenant: str) -> Known:
        if tenant not in self.known:
            self.known[tenant] = Known(self._at(tenant))
        return self.known[tenant]

    def _at(self, tenant: str) -> Memory:
        return self.mem if tenant == self.mem.tenant else self.mem.at(tenant=tenant)

    def _flush(self, waiting: dict[tuple[str, bool], list[Item]], place: tuple[str, bool]) -> None:
        batch = waiting.pop(place)
        tenant, held = place
        if held:
            # The owner decides what waits, so somebody else has to ask.
            asker = Actor.importer(self.mem.actor.name) if self.mem.actor.is_owner else self.mem.actor
            self._propose(self._at(tenant).acting_as(asker), batch)
        else:
            self._remember(self._at(tenant), batch)
        self._tell(sum(map(len, waiting.values())))

    def _tell(self, open_items: int = 0) -> None:
        """Report how many items are through; ``open_items`` were read and are not."""
        through = max(self.told, self.done - open_items)
        self.told = through
        if self.report is not None:
            self.report(through, max(self.total, self.done))

    def _remember(self, mem: Memory, batch: list[Item]) -> None:
        rows = [{**item.fields, "source": "import"} for item in batch]
        try:
            outcomes = mem.remember_many(
                rows,
                mode="each",
                reason=f"import of {self.name}",
                kind="import",
                batch=BATCH,
                on_progress=lambda done, total: self._tell(total - done),
            )
        except InvalidInput as fault:
            self._halve(batch, fault, lambda half: self._remember(mem, half))
            return
        for item, outcome in zip(batch, outcomes, strict=True):
            self._count(item, outcome)

    def _propose(self, mem: Memory, batch: list[Item]) -> None:
        """Put a batch before a person as one proposal; what cannot be part of it is singled out."""
        try:
            with mem.draft(reason=f"import of {self.name}: lasting memories") as draft:
                for item in batch:
                    draft.insert(**item.fields, source="import")
            outcome = draft.outcome
        except InvalidInput as fault:
            self._halve(batch, fault, lambda half: self._propose(mem, half))
            return
        assert outcome is not None
        if isinstance(outcome, Refused) and len(batch) > 1:
            self._halve(batch, None, lambda half: self._propose(mem, half))
            return
        for item in batch:
            self._count(item, outcome)

    def _halve(self, batch: list[Item], fault: InvalidInput | None, again: Callable[[list[Item]], None]) -> None:
        if len(batch) == 1:
            self.failed.append((batch[0].number, str(fault)))
            self._result(batch[0].number, "failed", detail=str(fault))
            return
        middle = len(batch) // 2
        again(batch[:middle])
        again(batch[middle:])

    def _result(self, number: int, outcome: Any, reasons: tuple[Reason, ...] = (), detail: str = "") -> None:
        if self.result is not None:
            self.result(Result(number=number, outcome=outcome, reasons=reasons, detail=detail))

    def _count(self, item: Item, outcome: Outcome) -> None:
        self._result(item.number, outcome.outcome, outcome.reasons)
        match outcome:
            case Committed() | Quarantined():
                self.counts[outcome.outcome] += 1
            case Duplicate():
                self.counts["duplicate"] += 1
                self.counts["alike"] += 1
            case Refused():
                self.counts["refused"] += 1
                detail = "; ".join(reason.detail for reason in outcome.reasons) or "refused"
                self.refusals.append((item.number, detail))
            case _:
                assert_never(outcome)

    def _notes(self) -> Iterator[str]:
        if self.counts["alike"]:
            yield f"{self.counts['alike']} say what another memory says already and were not stored beside it"
        for what, sentence in (
            ("waiting", "imported before and still waiting for review"),
            ("differing", "edited or redacted since they were imported; they stay as they are here"),
            ("ended", "no longer held here (retired, archived or superseded); they were not revived"),
        ):
            count = sum(getattr(known, what) for known in self.known.values())
            if count:
                yield f"{count} {sentence}"
