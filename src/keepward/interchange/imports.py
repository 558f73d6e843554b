"""Import: memories from files, folders and archives of many systems, each through the gates, with source ``import``.

The format is told by content, not by name, of each file by itself: a vault by its seals, a ChatGPT export by the
tree of its conversations, and what is no JSON by its headings and lists.

Invariants
(1) A file that cannot be read, or that was cut, is an error; nothing of it is stored. In a folder or an archive it is
    reported with its name and the others are read.
(2) A line or item that cannot be used is reported with its number and never stops the others.
(3) Importing the same file again stores nothing again. An item is known by the file's own name for it, whatever its
    text is by now: a correction or a redaction here is not undone by the file. An item known only by its place is the
    same when the text is, or when what is stored begins alike and was redacted or edited since.
(4) Nothing enters without passing the gates as new text, whoever imports it; ``exports`` brings an export back.
(5) Everything that came with one import names it in its evidence, so that it is seen, contained and erased by one name.
(6) A dry run passes the same gates and stores nothing.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import msgspec

from keepward.core.commit import Reason
from keepward.core.memory import Record, Status, Tier
from keepward.core.proposal import Refused
from keepward.core.trust import RESERVED, Actor
from keepward.core.value import Value, unknown
from keepward.errors import InvalidInput
from keepward.gates.validation import ALIAS_LEFT_OUT
from keepward.interchange import chats, graphs, legacy, markdown, messages, notes, stores, tabular, vault
from keepward.interchange.archive import Bundle, bundled
from keepward.interchange.known import Known
from keepward.interchange.reading import SQLITE, Flaw, Item, Plan, Source, few_enough, parse
from keepward.memory import session_of
from keepward.services.parts import Unusable

if TYPE_CHECKING:
    from keepward.memory import Memory
    from keepward.services.session import Session

Format = Literal[
    "auto",
    "vault",
    "messages",
    "legacy-jsonl",
    "markdown",
    "records",
    "chatgpt",
    "claude",
    "mcp-memory",
    "mem0",
    "letta",
    "zep",
    "langgraph",
    "csv",
    "lines",
]
FORMATS: tuple[Format, ...] = get_args(Format)
#: What became of an item, or would, and why.
_Judged = tuple[str, tuple[Reason, ...]]
_Rehearsal = Callable[[list[dict[str, Any]]], list[_Judged]]
#: Memories in one commit.
BATCH = 100
#: How many lines ``auto`` looks at before it gives up on damaged ones.
_PROBE = 50
_LONGEST_NAME = 200
#: Files that are named among those left out.
_NAMED = 5


class Importer(NamedTuple):
    """How one format is told and read. Another one is a module with these two functions, and a row in ``IMPORTERS``."""

    #: Whether a JSON value, a line or a whole file, is of this format.
    looks_like: Callable[[Any], bool]
    #: Read a file into items for a handle; InvalidInput where it cannot be read, was cut, or holds nothing.
    plan: Callable[[Source, Memory], Plan]


def recognise(source: Source) -> Format:
    """Tell the format of a file by what is in it."""
    if source.begins(SQLITE):
        return "langgraph"
    fault, opens = "", source.first()
    values = source.elements() if opens == "[" else source.values() if opens == "{" else iter(())
    try:
        for _, value in itertools.islice(values, _PROBE):
            if isinstance(value, Unusable):
                fault = fault or str(value)
            elif known := _format_of(value):
                return known
        if opens == "{" and fault and (known := _format_of(parse(source.text()))):
            return known
    except Unusable as problem:
        raise InvalidInput(f"{source.name} cannot be read: {fault or problem}") from problem
    if opens not in {"{", "["} and tabular.is_csv(source):
        return "csv"
    if opens not in {"{", "["} and markdown.looks_like(source.text(), source.suffix):
        return "markdown"
    raise InvalidInput(f"{source.name} is in no format known here: name its format, one of {', '.join(FORMATS[1:])}")


def _format_of(value: Any) -> Format | None:
    return next((name for name, importer in IMPORTERS.items() if importer.looks_like(value)), None)


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
    #: Stands in the evidence of all that came with it; what ``impact``, ``contain`` and ``erase`` take as a source.
    reference: str
    #: Facts that conversations told, by what became of them.
    facts: Mapping[str, int]
    #: Whether nothing was stored, and the counts say what would have been.
    dry_run: bool

    def as_dict(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


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
    facts: bool = False,
    subject: str | None = None,
    dry_run: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
) -> Imported:
    """Import a file, a folder or a zip archive into the tenant of the handle, under the name of its actor.

    ``session`` names the session of ``messages``; default is the file's name. With ``facts``, what users tell of
    themselves in conversations is proposed as facts, as ``Memory.add`` does; ``subject`` is who they are. With
    ``dry_run`` everything is judged and nothing stored. ``on_progress`` gets (done, total) after every batch; ``total``
    may grow. ``on_result`` gets what became of each line as it is known, in the order of deciding.

    Raises:
        InvalidInput: unreadable, cut, empty or unrecognised; nothing was stored.
    """
    with bundled(target) as bundle, ExitStack() as stack:
        chosen = formats_of(bundle, format, on_progress)
        plan = _plan_of(bundle, chosen, mem, session, stack, keep=not dry_run)
        if facts and dry_run:
            plan.notes.append("facts are not looked for in a dry run")
        most = Counter(chosen.values()).most_common(1)[0][0]
        return Intake(
            mem=mem,
            plan=plan,
            format=most,
            name=bundle.name,
            report=on_progress,
            result=on_result,
            facts=facts and not dry_run,
            subject=subject,
            rehearsal=_rehearsal(session_of(mem), f"import of {bundle.name}") if dry_run else None,
        ).take()


def holds_items(
    mem: Memory,
    target: str | Path | IO[str] | IO[bytes],
    *,
    format: Format = "auto",  # noqa: A002 - the word people use
    session: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> bool:
    """Return whether an import holds anything that could be stored; it is read up to the first such item.

    Raises:
        InvalidInput: see ``load``.
    """
    with bundled(target) as bundle, ExitStack() as stack:
        chosen = formats_of(bundle, format, on_progress)
        plan = _plan_of(bundle, chosen, mem, session, stack, keep=False)
        return any(isinstance(each, Item) for each in plan.entries)


def _rehearsal(session: Session, reason: str) -> _Rehearsal:
    """Return what judges items as ``remember_many`` would, each call on those before it, and stores nothing."""
    from keepward.services.write import Rehearsal
    from keepward.verbs.write import RememberMany

    rehearsal = Rehearsal(session, reason)
    return lambda items: rehearsal.judge(RememberMany(items=items).changes(session))


def formats_of(
    bundle: Bundle,
    format: Format,  # noqa: A002 - the word people use
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Format]:
    """Return the format of each file that is read, by its path; what is left out is added to the notes.

    ``on_progress`` gets (done, total) of a folder's or an archive's files, before each.

    Raises:
        InvalidInput: there is nothing to read, or a file that stands alone is of another format than was named.
    """
    if format not in FORMATS:
        raise InvalidInput(unknown("format", format, FORMATS))
    found: dict[str, Format] = {}
    other: dict[str, str] = {}
    for done, (inside, opened) in enumerate(bundle.files.items()):
        if on_progress is not None and bundle.many:
            on_progress(done, len(bundle.files))
        try:
            with opened() as source:
                told = recognise(source)
        except InvalidInput as fault:
            if format == "auto" or bundle.many:
                other[inside] = str(fault)
                continue
            told = format
        if format not in {"auto", told} and (bundle.many or told not in _ALIKE or format not in _ALIKE):
            other[inside] = f"{inside} looks like {told}, not {format}: leave the format out, or name {told}"
            continue
        found[inside] = told if format == "auto" else format
    if not found:
        raise InvalidInput(next(iter(other.values()), f"{bundle.name} holds no file that could be read"))
    named = f"{', '.join(itertools.islice(other, _NAMED))}{', …' if len(other) > _NAMED else ''}"
    bundle.notes += [f"left out as of another format, or of none that is known: {named}"] if other else []
    return found


def _plan_of(
    bundle: Bundle, chosen: dict[str, Format], mem: Memory, session: str | None, stack: ExitStack, *, keep: bool
) -> Plan:
    """Return the plans of all files as one; that of a file which stands alone is made at once, so that it may fail."""
    paths = [each for each in bundle.files if bundle.many]
    beside = {name.lower(): each for each in paths for name in (PurePosixPath(each).stem, each.rpartition(".")[0])}

    def planned(inside: str) -> Plan:
        source = stack.enter_context(bundle.files[inside]())
        source = replace(source, beside=beside, keep=keep, session=session)
        plan = IMPORTERS[chosen[inside]].plan(source, mem)
        if chosen[inside] != "vault":
            few_enough(inside, plan.total)
        return plan

    if not bundle.many:
        return planned(next(iter(chosen)))
    made = Plan(total=len(chosen), entries=iter(()), notes=bundle.notes, left=bundle.left)

    def entries() -> Iterator[Item | Flaw]:
        for inside in chosen:
            try:
                plan = planned(inside)
            except InvalidInput as fault:
                yield Flaw(number=0, reason=f"{inside}: {fault}")
                continue
            made.total += plan.total - 1
            for each in plan.entries:
                yield Flaw(number=each.number, reason=f"{inside}: {each.reason}") if isinstance(each, Flaw) else each
            made.notes += plan.notes
            made.left.update(plan.left)
            stack.pop_all().close()

    made.entries = entries()
    return made


@dataclass(slots=True, kw_only=True)
class Intake:
    """One import under way: what a plan holds, taken in as ``load`` does."""

    mem: Memory
    plan: Plan
    format: Format
    #: The file's, for the reasons of the commits.
    name: str
    report: Callable[[int, int], None] | None = None
    result: Callable[[Result], None] | None = None
    facts: bool = False
    subject: str | None = None
    rehearsal: _Rehearsal | None = None
    known: Known = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str]] = field(default_factory=list)
    refusals: list[tuple[int, str]] = field(default_factory=list)
    more: list[str] = field(default_factory=list)
    #: Memories in which a marker replaces a secret or an identifier, by its kind.
    masked: Counter[str] = field(default_factory=Counter)
    done: int = 0
    reported: int = 0
    #: Whether anything was read that could be stored.
    met: bool = False

    def __post_init__(self) -> None:
        self.known = Known(self.mem)

    @property
    def reference(self) -> str:
        """What stands in the evidence of all that comes with it (5)."""
        return f"import:{' '.join(self.name.split())[:_LONGEST_NAME]}"

    def take(self) -> Imported:
        self._tell()
        waiting: dict[bool, list[Item]] = {}
        heard: list[Record] = []
        for entry in self.plan.entries:
            self.done += 1
            if isinstance(entry, Flaw):
                self._failed(entry.number, entry.reason)
                continue
            self.met = True
            if self.known.meets(entry):
                self.counts["duplicate"] += 1
                self._result(entry.number, "duplicate", detail="known already, in memory or waiting for review")
                # What an import before this one was not asked for, or was broken off at, is made up for.
                heard += [self.known.found] if self.known.found is not None else []
                continue
            if entry.parents:
                # What it was made from has to be stored first.
                open_names = {each.fields["aliases"][0] for batch in waiting.values() for each in batch}
                if not open_names.isdisjoint(entry.parents):
                    self._flush_all(waiting)
                self._link(entry)
            entry.fields["evidence"] = (*entry.fields.get("evidence", ()), self.reference)
            unowned = entry.review == "unless_owner" and not self.mem.actor.is_owner
            held = entry.review == "always" or unowned
            waiting.setdefault(held, []).append(entry)
            if len(waiting[held]) == BATCH:
                self._flush(waiting, held)
        self._flush_all(waiting)
        self._listen(heard)
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
            tenants=(self.mem.tenant,) if self.met else (),
            notes=tuple(self._notes()),
            reference=self.reference,
            facts=dict(sorted(self.told.items())),
            dry_run=self.rehearsal is not None,
        )

    def _flush_all(self, waiting: dict[bool, list[Item]]) -> None:
        for held in list(waiting):
            self._flush(waiting, held)

    def _link(self, item: Item) -> None:
        """Name the parents of an item by their ids here; those that are not here stay as evidence."""
        found, missing = [], []
        for name in item.parents:
            record = self.known.by_name(name, item.fields.get("scope"))
            if record is not None:
                found.append(record.id)
            elif self.rehearsal is None or name not in self.known.names:
                missing.append(name)
        item.fields["derived_from"] = tuple(dict.fromkeys(found))
        item.fields["evidence"] = (*item.fields.get("evidence", ()), *missing)
        self.plan.left["parents that are not here, or wait for review: they stand in the evidence"] += len(missing)

    def _flush(self, waiting: dict[bool, list[Item]], held: bool) -> None:
        self._judge(waiting.pop(held), held)
        self._tell(sum(map(len, waiting.values())))

    def _tell(self, open_items: int = 0) -> None:
        """Report how many items are through; ``open_items`` were read and are not."""
        through = max(self.reported, self.done - open_items)
        self.reported = through
        if self.report is not None:
            self.report(through, max(self.plan.total, self.done))

    def _judge(self, batch: list[Item], held: bool) -> None:
        """Have a batch judged and count what became of it; by halves, what cannot be part of it is singled out."""
        judge = self._propose if held and self.rehearsal is None else self.rehearsal or self._remember
        try:
            judged = judge([{**item.fields, "source": "import"} for item in batch])
        except InvalidInput as fault:
            if len(batch) == 1:
                self._failed(batch[0].number, str(fault))
                return
            judged = None
        if judged is None:
            middle = len(batch) // 2
            self._judge(batch[:middle], held)
            self._judge(batch[middle:], held)
            return
        for item, (word, reasons) in zip(batch, judged, strict=True):
            outcome = "quarantined" if held and self.rehearsal and word == "committed" else word
            self._result(item.number, outcome, reasons)
            self.counts[outcome] += 1
            self.counts["alike"] += outcome == "duplicate"
            self.counts["unnamed"] += any(each.code == ALIAS_LEFT_OUT for each in reasons)
            if outcome == "refused":
                self.refusals.append((item.number, "; ".join(reason.detail for reason in reasons) or "refused"))

    def _remember(self, rows: list[dict[str, Any]]) -> list[_Judged]:
        outcomes = self.mem.remember_many(
            rows,
            mode="each",
            reason=f"import of {self.name}",
            kind="import",
            batch=BATCH,
            on_progress=lambda done, total: self._tell(total - done),
        )
        self._listen([each.record for each in outcomes if each.record is not None])
        self.masked.update(kind for each in outcomes if each.record is not None for kind in each.redacted)
        return [(each.outcome, each.reasons) for each in outcomes]

    def _listen(self, records: Sequence[Record]) -> None:
        """Propose the facts that conversations tell, of each session by itself."""
        from keepward.services.ingest import propose_facts

        said = [each for each in records if self.facts and each.tier is Tier.EPISODIC and each.status is Status.ACTIVE]
        for _, group in itertools.groupby(said, lambda each: each.session):
            outcomes, notes = propose_facts(session_of(self.mem), list(group), self.subject)
            self.told.update(each.outcome for each in outcomes)
            self.more += [note for note in notes if note not in self.more]

    def _propose(self, rows: list[dict[str, Any]]) -> list[_Judged] | None:
        """Put memories before a person as one proposal; None where one of several is refused, and all with it."""
        # The owner decides what waits, so somebody else has to ask.
        asker = Actor.importer(self.mem.actor.name) if self.mem.actor.is_owner else self.mem.actor
        with self.mem.acting_as(asker).draft(reason=f"import of {self.name}: lasting memories") as draft:
            for row in rows:
                draft.insert(**row)
        assert draft.outcome is not None
        if isinstance(draft.outcome, Refused) and len(rows) > 1:
            return None
        return [(draft.outcome.outcome, draft.outcome.reasons)] * len(rows)

    def _failed(self, number: int, reason: str) -> None:
        self.failed.append((number, reason))
        self._result(number, "failed", detail=reason)

    def _result(self, number: int, outcome: Any, reasons: tuple[Reason, ...] = (), detail: str = "") -> None:
        if self.result is not None:
            self.result(Result(number=number, outcome=outcome, reasons=reasons, detail=detail))

    def _notes(self) -> Iterator[str]:
        yield from dict.fromkeys(self.plan.notes)
        yield from (f"left out: {count} {what}" for what, count in sorted(self.plan.left.items()) if count)
        yield from self.more
        if self.masked:
            named = ", ".join(f"{kind.replace('_', ' ')} in {count}" for kind, count in sorted(self.masked.items()))
            yield f"replaced by a marker: {named}"
        if self.counts["unnamed"]:
            yield "old ids that are the name of a core block, a key or an id here were not kept as aliases"
        if self.counts["alike"]:
            yield f"{self.counts['alike']} say what another memory says already and were not stored beside it"
        for what, sentence in (
            ("waiting", "imported before and still waiting for review"),
            ("differing", "edited or redacted since they were imported; they stay as they are here"),
            ("ended", "no longer held here (retired, archived or superseded); they were not revived"),
        ):
            if count := getattr(self.known, what):
                yield f"{count} {sentence}"


def _vault_plan(source: Source, mem: Memory) -> Plan:
    """Read the live memories of an export into items; old ids become aliases."""
    found = vault.survey(source)
    came = "the live memories were imported as new ones, without their history"
    told = [f"{came}; `keepward restore-export` brings back an export of your own as it was"]
    now = mem.now
    wanted = frozenset(found.newest.values())
    newest = [(record.is_live(now), record.scope == RESERVED) for _, record in vault.records(source, wanted)]
    live, own = sum(holds for holds, _ in newest), sum(reserved for _, reserved in newest)
    folder = source.path and vault.folder_of(source.path)
    beside = vault.Sidecar(folder=folder) if source.keep else None
    left = Counter({notes.ENDED: len(wanted) - live - own})
    return Plan(total=live, entries=_entries(mem, source, wanted, now, beside), notes=told, left=left)


def _entries(
    mem: Memory, source: Source, wanted: frozenset[int], now: datetime, beside: vault.Sidecar | None
) -> Iterator[Item | Flaw]:
    for number, record in vault.records(source, wanted):
        if not record.is_live(now):
            continue
        if beside is not None and record.blob is not None and not beside.take(mem, record.blob):
            yield Flaw(number=number, reason=f"it refers to a blob: {beside.flaws[record.blob]}")
            continue
        yield Item(
            number=number,
            fields=_fields(record, now, taken=beside is not None),
            named=True,
            review=notes.review_of(record.tier, pinned=record.pinned),
            parents=record.derived_from,
        )


def _fields(record: Record, now: datetime, *, taken: bool) -> dict[str, Any]:
    found = {name: getattr(record, name) for name in sorted(notes.CARRIED)}
    return {name: value.value if isinstance(value, Enum) else value for name, value in found.items()} | {
        # Bytes that are not taken over cannot be referred to.
        "blob": record.blob if taken else None,
        "metadata": record.metadata or None,
        # A core block was judged by a person there, and is judged again here: its floor is not in question.
        "confidence": None if record.tier is Tier.CORE else record.confidence,
        "ttl": record.expires_at and record.expires_at - now,
        "occurred_at": record.occurred_at or record.created_at,
        "aliases": (record.id, *record.aliases),
    }


#: In the order in which a value is tried; Markdown and SQLite are told by the whole file, see ``recognise``.
IMPORTERS: dict[Format, Importer] = {
    "vault": Importer(vault.looks_like, _vault_plan),
    "records": Importer(notes.is_record, notes.plan_records),
    "chatgpt": Importer(chats.is_chatgpt, chats.plan_chatgpt),
    "claude": Importer(chats.is_claude, chats.plan_claude),
    "mcp-memory": Importer(graphs.is_server_memory, graphs.plan_server_memory),
    "mem0": Importer(stores.is_mem0, stores.plan_mem0),
    "letta": Importer(stores.is_letta, stores.plan_letta),
    "zep": Importer(graphs.is_zep, graphs.plan_zep),
    "langgraph": Importer(lambda _: False, stores.plan_langgraph),
    "messages": Importer(messages.looks_like, messages.plan),
    "legacy-jsonl": Importer(legacy.looks_like, legacy.plan),
    "markdown": Importer(lambda _: False, markdown.plan),
    "csv": Importer(lambda _: False, tabular.plan_csv),
    "lines": Importer(lambda _: False, tabular.plan_lines),
}
#: What one may well be read as another, where it is named.
_ALIKE = frozenset({"vault", "records", "messages", "legacy-jsonl", "markdown", "csv", "lines"})
