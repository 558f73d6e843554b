"""Import: memories from a file in any of the formats here, each through the gates, with source ``import``.

The format is told by content, not by name: a vault by its seals, messages by role and content, a legacy vault by its
ids, and what is no JSON by its headings and lists.

Invariants
(1) A file that cannot be read, or that was cut, is an error; nothing of it is stored.
(2) A line or item that cannot be used is reported with its number and never stops the others.
(3) Importing the same file again stores nothing again. An item is known by the file's own name for it, whatever its
    text is by now: a correction or a redaction here is not undone by the file. An item known only by its place is the
    same when the text is, or when what is stored begins alike and was redacted or edited since.
(4) Nothing enters without passing the gates as new text, whoever imports it; ``exports`` brings an export back.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, assert_never, get_args

from keepward.errors import InvalidInput, NotFound
from keepward.interchange import legacy, markdown, messages, vault
from keepward.interchange.reading import Flaw, Item, Plan, Source, Unusable, opened, parse
from keepward.model.change import Insert
from keepward.model.commit import Reason
from keepward.model.memory import Record, Status, Tier
from keepward.model.proposal import Committed, Duplicate, Outcome, Quarantined, Refused
from keepward.model.trust import RESERVED, Actor
from keepward.model.value import Value, unknown

if TYPE_CHECKING:
    from keepward.memory import Memory

Format = Literal["auto", "vault", "messages", "legacy-jsonl", "markdown"]
FORMATS: tuple[Format, ...] = get_args(Format)
#: Memories in one commit.
BATCH = 100
#: How many lines ``auto`` looks at before it gives up on damaged ones.
_PROBE = 50


class Importer(NamedTuple):
    """How one format is told and read. Another one is a module with these two functions, and a row in ``IMPORTERS``."""

    #: Whether a JSON value, a line or a whole file, is of this format.
    looks_like: Callable[[Any], bool]
    #: Read a file into items for a handle; the session is what the user named.
    plan: Callable[[Source, Memory, str | None], Plan]


def recognise(source: Source) -> Format:
    """Tell the format of a file by what is in it.

    Raises:
        InvalidInput: it looks like none of them, or like damaged JSON.
    """
    fault = ""
    is_json = source.first() in {"{", "["}
    for _, value in itertools.islice(source.values(), _PROBE if is_json else 0):
        if isinstance(value, Unusable):
            fault = fault or str(value)
        elif known := _format_of(value):
            return known
    if is_json:
        try:
            known = _format_of(parse(source.text()))
        except Unusable as problem:
            raise InvalidInput(f"{source.name} cannot be read: {fault or problem}") from problem
        if known is not None:
            return known
    elif markdown.looks_like(source.text(), source.suffix):
        return "markdown"
    raise InvalidInput(f"{source.name} is in no format known here: name one of {', '.join(FORMATS[1:])}")


def _format_of(value: Any) -> Format | None:
    if isinstance(value, list):
        value = next((each for each in value if isinstance(each, dict)), None)
    return next((name for name, importer in IMPORTERS.items() if importer.looks_like(value)), None)


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
        InvalidInput: unreadable, cut, empty or unrecognised; nothing was stored.
    """
    if format not in FORMATS:
        raise InvalidInput(unknown("format", format, FORMATS))
    with opened(target) as source:
        chosen = recognise(source) if format == "auto" else format
        plan = IMPORTERS[chosen].plan(source, mem, session)
        return take(mem, plan, chosen, source.name, on_progress=on_progress, on_result=on_result)


def take(
    mem: Memory,
    plan: Plan,
    format: Format,  # noqa: A002 - the word people use
    name: str,
    *,
    on_progress: Callable[[int, int], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
) -> Imported:
    """Import what a plan holds; ``name`` is the file's, for the reasons of the commits."""
    return _Intake(mem=mem, format=format, name=name, report=on_progress, result=on_result, known=Known(mem)).take(plan)


@dataclass(slots=True, kw_only=True)
class _Intake:
    """One import under way."""

    mem: Memory
    format: Format
    name: str
    report: Callable[[int, int], None] | None
    result: Callable[[Result], None] | None
    known: Known
    counts: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str]] = field(default_factory=list)
    refusals: list[tuple[int, str]] = field(default_factory=list)
    done: int = 0
    total: int = 0
    told: int = 0
    #: Whether anything was read that could be stored.
    met: bool = False

    def take(self, plan: Plan) -> Imported:
        self.total = plan.total
        self._tell()
        waiting: dict[bool, list[Item]] = {}
        for entry in plan.entries:
            self.done += 1
            if isinstance(entry, Flaw):
                self._failed(entry.number, entry.reason)
                continue
            self.met = True
            if self.known.meets(entry):
                self.counts["duplicate"] += 1
                self._result(entry.number, "duplicate", detail="known already, in memory or waiting for review")
                continue
            unowned = entry.review == "unless_owner" and not self.mem.actor.is_owner
            held = entry.review == "always" or unowned
            waiting.setdefault(held, []).append(entry)
            if len(waiting[held]) == BATCH:
                self._flush(waiting, held)
        for held in list(waiting):
            self._flush(waiting, held)
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
            notes=(*plan.notes, *self._notes()),
        )

    def _flush(self, waiting: dict[bool, list[Item]], held: bool) -> None:
        batch = waiting.pop(held)
        if held:
            # The owner decides what waits, so somebody else has to ask.
            asker = Actor.importer(self.mem.actor.name) if self.mem.actor.is_owner else self.mem.actor
            self._propose(self.mem.acting_as(asker), batch)
        else:
            self._remember(batch)
        self._tell(sum(map(len, waiting.values())))

    def _tell(self, open_items: int = 0) -> None:
        """Report how many items are through; ``open_items`` were read and are not."""
        through = max(self.told, self.done - open_items)
        self.told = through
        if self.report is not None:
            self.report(through, max(self.total, self.done))

    def _remember(self, batch: list[Item]) -> None:
        rows = [{**item.fields, "source": "import"} for item in batch]
        try:
            outcomes = self.mem.remember_many(
                rows,
                mode="each",
                reason=f"import of {self.name}",
                kind="import",
                batch=BATCH,
                on_progress=lambda done, total: self._tell(total - done),
            )
        except InvalidInput as fault:
            self._halve(batch, fault, self._remember)
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
            self._failed(batch[0].number, str(fault))
            return
        middle = len(batch) // 2
        again(batch[:middle])
        again(batch[middle:])

    def _failed(self, number: int, reason: str) -> None:
        self.failed.append((number, reason))
        self._result(number, "failed", detail=reason)

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
            if count := getattr(self.known, what):
                yield f"{count} {sentence}"


_Said = tuple[Any, Any, Any]


class Known:
    """The memories and waiting proposals of one tenant that an import may meet again."""

    def __init__(self, mem: Memory) -> None:
        self._mem = mem
        # Nothing can be known in an empty tenant; asking for each item would double the time.
        self._empty = not mem.log(limit=1)
        self._views: dict[str, Memory] = {}
        self._loaded: tuple[str, str] | None = None
        self._by_alias: dict[str, Record] = {}
        self._by_said: dict[_Said, list[Record]] = {}
        self._claimed: set[str] = set()
        self._seen: set[tuple[str | None, str]] = set()
        #: Text by session and alias, and texts by session.
        self._waiting: dict[tuple[str | None, str], str] = {}
        self._waiting_texts: set[tuple[str | None, str]] = set()
        for item in mem.pending():
            for step in item.steps:
                after = step.after
                self._waiting |= {(after.session, alias): after.text for alias in after.aliases}
                self._waiting_texts.add((after.session, after.text))
        #: How many were found, and what is odd about them.
        self.differing = 0
        self.ended = 0
        self.waiting = 0

    def meets(self, item: Item) -> bool:
        """Whether the item is known; a place name that belongs to another memory is taken off the item."""
        session, aliases = item.fields.get("session"), item.fields.get("aliases", ())
        name = (session, aliases[0]) if aliases else None
        if name in self._seen and item.named:
            return True
        if name is not None:
            self._seen.add(name)
        if self._waits(item, name, session):
            self.waiting += 1
            return True
        if self._empty or not (aliases or session):
            return False
        # A reader sees its own scope and those above, so each item is looked for from where it goes.
        view = self._from(item.fields.get("scope") or self._mem.scope)
        found = self._of_session(view, item, session) if session is not None else _named(view, aliases[0])
        if found is None:
            if aliases and session is not None and aliases[0] in self._by_alias:
                item.fields["aliases"] = aliases[1:]
            return False
        self._claimed.add(found.id)
        self.differing += found.text != item.fields["text"]
        self.ended += found.status is not Status.ACTIVE
        return True

    def _waits(self, item: Item, name: tuple[str | None, str] | None, session: str | None) -> bool:
        text = item.fields["text"]
        if (session, text) in self._waiting_texts:
            return True
        held = self._waiting.get(name) if name else None
        return held is not None and (item.named or _redacted(held, text))

    def _from(self, scope: str) -> Memory:
        if scope not in self._views:
            self._views[scope] = self._mem if scope == self._mem.scope else self._mem.at(scope=scope)
        return self._views[scope]

    def _of_session(self, view: Memory, item: Item, session: str) -> Record | None:
        if (view.scope, session) != self._loaded:
            self._load(view, session)
        aliases = item.fields.get("aliases", ())
        named = self._by_alias.get(aliases[0]) if aliases else None
        if item.named:
            return named
        for record in self._by_said.get(_said(item.fields), ()):
            if record.id not in self._claimed:
                return record
        if named is not None and named.id not in self._claimed and _same_place(named, item.fields):
            return named
        return None

    def _load(self, view: Memory, session: str) -> None:
        self._loaded = (view.scope, session)
        self._by_alias = {}
        said: defaultdict[_Said, list[Record]] = defaultdict(list)
        for record in view.find(session=session, limit=None, include_ended=True):
            self._by_alias |= dict.fromkeys(record.aliases, record)
            said[(record.speaker, record.occurred_at, record.text)].append(record)
        self._by_said = dict(said)


def _named(view: Memory, alias: str) -> Record | None:
    try:
        return view.get(alias)
    except NotFound:
        return None


def _said(fields: dict[str, Any]) -> _Said:
    return (fields.get("speaker"), fields.get("occurred_at"), fields["text"])


def _same_place(record: Record, fields: dict[str, Any]) -> bool:
    same = (record.speaker, record.occurred_at) == _said(fields)[:2]
    return same and (record.version > 1 or _redacted(record.text, fields["text"]))


def _redacted(stored: str, text: str) -> bool:
    """Whether ``stored`` may be ``text`` with a marker in place of something."""
    return "[" in stored and text.startswith(stored.split("[", 1)[0])


def _vault_plan(source: Source, mem: Memory, session: str | None) -> Plan:
    """Read the live memories of an export into items; old ids become aliases."""
    del session  # each memory has its own
    found = vault.survey(source)
    came = "the live memories were imported as new ones, without their history"
    notes = [f"{came}; `keepward restore-export` brings back an export of your own as it was"]
    now = mem.now
    wanted = frozenset(found.newest.values())
    newest = [(record.is_live(now), record.scope == RESERVED) for _, record in vault.records(source, wanted)]
    live, own = sum(holds for holds, _ in newest), sum(reserved for _, reserved in newest)
    if live + own < len(wanted):
        notes.append(f"memories that no longer hold left out: {len(wanted) - live - own}")
    if found.weights:
        notes.append("the learned reranker was left out: it goes with its history alone")
    beside = vault.Sidecar(folder=source.path and vault.folder_of(source.path))
    return Plan(total=live, entries=_entries(mem, source, wanted, now, beside), notes=notes)


def _entries(
    mem: Memory, source: Source, wanted: frozenset[int], now: datetime, beside: vault.Sidecar
) -> Iterator[Item | Flaw]:
    for number, record in vault.records(source, wanted):
        if not record.is_live(now):
            continue
        if record.blob is not None and not beside.take(mem, record.blob):
            yield Flaw(number=number, reason=f"it refers to a blob: {beside.flaws[record.blob]}")
            continue
        yield Item(number=number, fields=_fields(record, now), named=True, review=_review(record))


def _review(record: Record) -> Literal["no", "unless_owner", "always"]:
    # A block that is there already must not be overwritten by a file without anybody looking.
    if record.tier is Tier.CORE:
        return "always"
    return "unless_owner" if record.pinned else "no"


#: What a memory brings from one store to another as it is.
_CARRIED = {each.name for each in fields(Insert)} & {each.name for each in fields(Record)} - {
    *("id", "source", "derived_from"),
}


def _fields(record: Record, now: datetime) -> dict[str, Any]:
    found = {name: getattr(record, name) for name in sorted(_CARRIED)}
    return {name: value.value if isinstance(value, Enum) else value for name, value in found.items()} | {
        "metadata": record.metadata or None,
        # A core block was judged by a person there, and is judged again here: its floor is not in question.
        "confidence": None if record.tier is Tier.CORE else record.confidence,
        "ttl": None if record.expires_at is None else record.expires_at - now,
        "aliases": (record.id, *record.aliases),
    }


#: In the order in which a value is tried; Markdown is told by the whole text, see ``recognise``.
IMPORTERS: dict[Format, Importer] = {
    "vault": Importer(vault.looks_like, _vault_plan),
    "messages": Importer(messages.looks_like, messages.plan),
    "legacy-jsonl": Importer(legacy.looks_like, legacy.plan),
    "markdown": Importer(lambda _: False, markdown.plan),
}
