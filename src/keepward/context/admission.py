"""Admission: which memories may come into a context, and the ledger of those in and those out.

Invariants
(1) Each given memory has at most one reason to be out, and none while it is in.
(2) A memory is screened at most once, and always before it comes in.
(3) The same words with the same key, speaker and day come in once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from keepward.context.budget import Entry, allotments
from keepward.context.guard import tidy
from keepward.context.render import Line, Opened, added, line_of
from keepward.context.sections import Candidate, Inputs
from keepward.model.commit import Reason
from keepward.model.compiled import Mask
from keepward.model.memory import Record, Sensitivity, Status, confidence_at
from keepward.model.trust import Trust

_ENDED = {
    Status.EXPIRED: "its time to live is over",
    Status.SUPERSEDED: "another memory has replaced it",
    Status.RETIRED: "it was retired",
    Status.ARCHIVED: "it was archived",
    Status.ERASED: "it was erased",
}


def reason(code: str, detail: str) -> Reason:
    """Return a reason of the compiler's."""
    return Reason(gate="compile", code=code, detail=detail)


#: Of one character. A counter that takes one for more tokens than bytes costs a screening in vain, no more.
_MOST_BYTES = 4
NO_ROOM = reason("budget", "there was no room for it")


def finite(value: float) -> float:
    """Return the value to six decimals; 0 for what is not a number."""
    return round(value, 6) if math.isfinite(value) else 0.0


class Ledger:
    """Who is in, who is out and why, and what has been spent."""

    def __init__(self, inputs: Inputs, *, each: bool) -> None:
        """Begin; with ``each`` every memory must reach the floor, else the best alone."""
        self.inputs = inputs
        self._each = each
        #: Score of the best that was recalled and may come in but for the floor.
        self.best: float | None = None
        #: How many the floor keeps out.
        self.below = 0
        self.reasons: dict[tuple[str, int], Reason] = {}
        #: Memories that say what another one says.
        self.repeats: dict[tuple[str, int], tuple[str, int]] = {}
        self.kept: dict[tuple[str, int], Entry] = {}
        #: Headings that are paid for.
        self.opened: Opened = set()
        #: Estimated tokens of what is in.
        self.spent = 0
        self._holders: dict[str, tuple[str, int]] = {}
        self._findings: dict[tuple[str, int], tuple[Mask, ...] | None] = {}
        self._counted: dict[str, int] = {}
        self._least = inputs.policy.least_trust.get(inputs.purpose, Trust.UNKNOWN)
        for name, version, why in sorted(inputs.excluded, key=lambda out: (*out[:2], *out[2].as_dict().values())):
            self.reasons.setdefault((name, version), why)

    def count(self, text: str) -> int:
        """Return the tokens of a short text, each text counted once."""
        known = self._counted.get(text)
        if known is None:
            known = self._counted[text] = self.inputs.count(text)
        return known

    @property
    def room(self) -> int:
        """Estimated tokens left of the whole budget."""
        return self.inputs.budget_tokens - self.spent

    def allotment(self, section: str) -> int:
        """Return the token budget a section shares in."""
        return next(tokens for names, tokens in allotments(self.inputs.policy) if section in names)

    def gathered(self) -> list[Entry]:
        """Return entries for what may come in, noting why the others may not.

        A memory given for several sections has an entry for the first, and one for ``recalled``.
        """
        sources = self._sources()
        scores = [finite(each.score) for each in self.inputs.recalled if self._may(each)]
        self.best = max(scores, default=None)
        newest: dict[str, int] = {}
        for _, candidates in sources:
            for each in candidates:
                record = each.record
                if record.version > newest.get(record.id, 0):
                    newest[record.id] = record.version
        entries: list[Entry] = []
        seen: tuple[set[str], set[str]] = (set(), set())
        now = self.inputs.now
        for section, candidates in sources:
            recalled = section == "recalled"
            held = seen[recalled]
            for rank, each in enumerate(candidates):
                record = each.record
                key = (record.id, record.version)
                why = self.reasons.get(key) or self._unfit(each, section, newest[record.id])
                if why is not None:
                    self.reasons[key] = why
                elif record.id not in held:
                    held.add(record.id)
                    entries.append(
                        Entry(
                            record=record,
                            section=section,
                            confidence=confidence_at(record, now),
                            rank=rank,
                            score=finite(each.score) if recalled else None,
                            strength=finite(each.score if each.strength is None else each.strength),
                            parts=each.parts,
                        )
                    )
        return entries

    def _sources(self) -> list[tuple[str, list[Candidate]]]:
        sources: list[tuple[str, list[Candidate]]] = []
        for section in ("core", "pinned", "state", "working"):
            records: Iterable[Record] = getattr(self.inputs, section)
            ordered = sorted(records, key=lambda record: (record.id, record.version))
            sources.append((section, [Candidate(record=record) for record in ordered]))
        return [*sources, ("recalled", list(self.inputs.recalled))]

    def _unfit(self, candidate: Candidate, section: str, newest: int) -> Reason | None:
        inputs, record = self.inputs, candidate.record
        status = record.status_at(inputs.now)
        if status is not Status.ACTIVE:
            return reason(status.value, _ENDED[status])
        if record.version < newest:
            return reason("superseded", "a newer version of it was given")
        if record.sensitivity is Sensitivity.SENSITIVE and not inputs.include_sensitive:
            return reason("sensitive", "it is sensitive and was not asked for")
        if section != "core" and record.effective_trust < self._least:
            return reason("trust", f"the purpose needs an origin of at least {self._least.label}")
        if section == "state" and record.key is None:
            return reason("unkeyed", "state without a key is found by recall alone")
        if section == "recalled":
            score = candidate.score if self._each else self.best or 0.0
            if not score >= inputs.floor:
                self.below += 1
                whose = "its score" if self._each else "even the best score"
                return reason("relevance", f"{whose} is below the floor of {inputs.floor:g}")
        return None

    def _may(self, candidate: Candidate) -> bool:
        """Whether this reader may be shown a recalled memory: what is hidden from them speaks for nothing."""
        inputs, record = self.inputs, candidate.record
        return (
            record.status_at(inputs.now) is Status.ACTIVE
            and record.trust >= self._least
            and (inputs.include_sensitive or record.sensitivity is not Sensitivity.SENSITIVE)
        )

    def bare(self, entry: Entry, opened: Opened) -> int:
        """Return the estimated price of an entry as it stands, unscreened, noting the headings it opens."""
        return sum(map(self.count, added(entry.plain, self.inputs.format, opened)))

    def screened(self, entry: Entry) -> Line | None:
        """Return the line of an entry with its masks, or None when it must not be rendered."""
        if entry.key not in self._findings:
            found = self.inputs.screen(entry.record)
            if found.drop is not None:
                self.reasons[entry.key] = found.drop
                self.repeats.pop(entry.key, None)
            masks = tidy(found.text_masks, len(entry.record.text))
            self._findings[entry.key] = None if found.drop else masks
        known = self._findings[entry.key]
        if known is None:
            return None
        entry.masks = known
        return line_of(entry.section, entry.record, known) if known else entry.plain

    def says_known(self, entry: Entry, body: str) -> bool:
        """Whether something that is in says the same; if so, note it."""
        holder = self._holders.get(entry.folded(body))
        if holder is None or holder == entry.key or holder not in self.kept:
            return False
        self.repeats[entry.key] = holder
        return True

    def admit(self, entry: Entry, room: int) -> bool:
        """Take an entry in if it fits, may be rendered and says something new; note why not."""
        # Counting costs far less than screening, and is not needed where a token a byte would fit.
        text = entry.record.text
        if _MOST_BYTES * len(text) <= room or self.count(text) <= room:
            line = self.screened(entry)
            if line is None or self.says_known(entry, line.body or ""):
                return False
            opened = set(self.opened)
            cost = sum(map(self.count, added(line, self.inputs.format, opened)))
            if cost <= room:
                self.opened = opened
                self.spent += cost
                entry.cost = cost
                self.keep(entry, line)
                return True
        self.reasons[entry.key] = NO_ROOM
        return False

    def keep(self, entry: Entry, line: Line) -> None:
        """Take an entry in whatever it costs."""
        entry.line = line
        self.kept[entry.key] = entry
        self._holders[entry.folded(line.body or "")] = entry.key
        self.reasons.pop(entry.key, None)
        self.repeats.pop(entry.key, None)

    def drop(self, entry: Entry) -> None:
        """Put an entry out for lack of room."""
        del self.kept[entry.key]
        self.reasons[entry.key] = NO_ROOM

    def outcome(self) -> list[tuple[tuple[str, int], Reason]]:
        """Return why each memory that is out is out, by id and version."""
        final = dict(self.reasons)
        for key, holder in self.repeats.items():
            known = holder in self.kept
            final[key] = reason("repeat", f"{holder[0]} says the same and is in the context") if known else NO_ROOM
        return sorted((pair for pair in final.items() if pair[0] not in self.kept), key=lambda pair: pair[0])
