"""The engine under the detectors: rules with their literals, one search for many patterns, and redaction.

Invariants
(1) Patterns over user text run on google-re2, so a scan takes time linear in the text.
(2) A pack runs a rule only where one of the rule's literals occurs; ordinary text costs one search.
(3) Spans are half-open, in code points of the text that was given, whatever form matched.
(4) A text that yields more than ``MAX_FINDINGS`` is covered to its end by one last finding: a flood hides
    nothing and costs no more than the limit.
(5) Findings are sorted by start, then end (longer first), then name; no two are equal.
(6) Redacting twice changes nothing: a marker holds no digits and no secret shape.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from keepward.gates.detect.tables import once
from keepward.gates.detect.text import Text, sieved

Certainty = Literal["certain", "likely"]
#: Returns the part of a span that counts, None where it does not: of the text, the start and the end.
Check = Callable[[Text, int, int], tuple[int, int] | None]

#: Findings after which the rest of a text counts as one finding.
MAX_FINDINGS = 400
#: Candidates a rule may look at in one text before the rest counts as a flood.
MAX_CANDIDATES = 200
#: Looks after which the literals of a pack, and the patterns of a sieve, are worth compiling together; and the longest
#: text that one look is good for, in bytes.
_PACK_PAYS_FROM, _SIEVE_PAYS_FROM = 100, 1_500
SHORT = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One span of one text that a detector points at.

    It carries positions and names only, so that it may be logged, stored and shown.
    """

    #: Stable snake_case name of the rule, such as ``aws_access_key`` or ``iban``.
    detector: str
    #: Half-open span in code points of the text that was given.
    start: int
    end: int
    #: ``certain``: a documented format or a valid check digit. ``likely``: wording and shape only.
    certainty: Certainty = "certain"


def located(form: Text, start: int, end: int, name: str, certainty: Certainty) -> Finding:
    """Return a finding for a span of a form, where that stands in the text that was given."""
    first, last = form.span(start, end)
    return Finding(detector=name, start=first, end=last, certainty=certainty)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One pattern and what a match has to pass."""

    #: Detector name the findings carry.
    name: str
    #: Makes the pattern, where it is first asked for; most of them never are.
    written: Callable[[], str]
    #: Lower-case literals; at least one occurs (in any case) in every text the pattern can match.
    literals: tuple[str, ...] = ()
    certainty: Certainty = "certain"
    checks: tuple[Check, ...] = ()
    #: A cheaper pattern that occurs wherever this one does.
    gate: str = ""
    #: A pattern for the same with blanks, quotes and line ends taken out of it.
    split: str = ""
    #: Whether no string tells at a glance where the pattern cannot match.
    bare: bool = False

    @once
    def pattern(self) -> str:
        """RE2 syntax. With a group called ``v`` the span is that group, else the whole match."""
        return self.written()

    def findings(self, text: Text) -> Iterator[Finding]:
        """Yield what the rule finds in a text."""
        if self.gate and not text.occurs(self.gate):
            return
        for count, (start, end) in enumerate(text.spans(self.pattern)):
            if count >= MAX_CANDIDATES:
                yield self._finding(text, start, len(text.text))
                return
            span = self._accepted(text, start, end)
            if span is not None:
                yield self._finding(text, *span)

    def _accepted(self, text: Text, start: int, end: int) -> tuple[int, int] | None:
        for check in self.checks:
            span = check(text, start, end)
            if span is None:
                return None
            start, end = span
        return start, end

    def _finding(self, text: Text, start: int, end: int) -> Finding:
        return located(text, start, end, self.name, self.certainty)


class Sieve:
    """Many patterns asked at once, in a process that has many texts to ask them of.

    Compiling them together takes as long as some 500 texts do without it, and each asks it several times; so it waits
    until it pays. A long text is not asked here: patterns without a telling string would all read it.

    ``behind`` holds, by a pattern that is asked first, the places of those that matter only where it occurs; they
    count as absent from any other text. It spares the patterns that have no telling string of their own.
    """

    __slots__ = ("_asked", "_behind", "_filter", "_inner", "_open", "_patterns")

    def __init__(
        self, patterns: Callable[[], Iterable[str]], behind: Mapping[str, Collection[int]] | None = None
    ) -> None:
        self._patterns = patterns
        self._behind = behind or {}
        self._open: list[int] = []
        self._inner: list[tuple[tuple[int, ...], Any]] = []
        self._asked = 0
        self._filter: Any = None

    def _compile(self) -> None:
        # Threads may do this at once: each comes to the same, and the filter is what says that it is done.
        patterns = tuple(self._patterns())
        hidden = {place for places in self._behind.values() for place in places}
        self._open = [place for place in range(len(patterns)) if place not in hidden]
        self._inner = [
            (places, sieved([patterns[place] for place in places])) for places in map(tuple, self._behind.values())
        ]
        self._filter = sieved([*(patterns[place] for place in self._open), *self._behind])

    def matching(self, data: bytes) -> Collection[int] | None:
        """Return the places of the patterns that occur in UTF-8 text, None where each has to be asked by itself."""
        if len(data) > SHORT:
            return None
        if self._filter is None:
            self._asked += 1
            if self._asked < _SIEVE_PAYS_FROM:
                return None
            self._compile()
        found: Collection[int] = self._filter.Match(data) or ()
        if not self._inner or not found:
            return found
        ends = len(self._open)
        places = [self._open[each] for each in found if each < ends]
        for group, inner in (self._inner[each - ends] for each in found if each >= ends):
            places += [group[each] for each in inner.Match(data) or ()]
        return places

    def silent(self, data: bytes) -> bool:
        """Whether it is known that no pattern occurs in UTF-8 text."""
        found = self.matching(data)
        return found is not None and not found


class Pack:
    """Rules that share one gate: a single search for any of their literals.

    A new process looks for each literal by itself until compiling them together pays.
    """

    __slots__ = ("_asked", "_folded", "_gate", "_literals", "_set", "_users", "rules")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._literals = tuple(sorted({literal for rule in self.rules for literal in rule.literals}))
        self._gate = any_literal(self._literals)
        place = {literal: index for index, literal in enumerate(self._literals)}
        users: list[list[int]] = [[] for _ in self._literals]
        for number, rule in enumerate(self.rules):
            for literal in rule.literals:
                users[place[literal]].append(number)
        self._users = tuple(map(tuple, users))
        self._folded = tuple(map(str.casefold, self._literals))
        self._set: Any = None
        self._asked = 0

    def awake(self, text: Text) -> list[Rule]:
        """The rules whose literals occur, in the order of the pack."""
        found: Iterable[int] = ()
        if self._pays(text):
            if not text.occurs(self._gate):
                return []
            if self._set is None:
                self._set = literal_set(self._literals, case_sensitive=False)
            found = self._set.Match(text.data) if len(text.data) < 1 << 17 else ()
        if not found:
            # The set gives up without a word when it runs out of memory; the plain test never does.
            folded = text.text.casefold()
            found = [index for index, literal in enumerate(self._folded) if literal in folded]
        return [self.rules[number] for number in sorted({n for index in found for n in self._users[index]})]

    def _pays(self, text: Text) -> bool:
        self._asked += 1
        return self._set is not None or self._asked >= _PACK_PAYS_FROM or len(text.data) > SHORT

    def scan(self, text: Text) -> Iterator[Finding]:
        """Yield findings rule by rule, in no overall order."""
        for rule in self.awake(text):
            yield from rule.findings(text)


def literal_set(literals: Iterable[str], *, case_sensitive: bool = True) -> Any:
    """Compile literals together; ``Match`` gives the places of those that occur, in one pass."""
    import re2

    options = re2.Options()
    options.case_sensitive = case_sensitive
    options.max_mem = 64 << 20
    options.log_errors = False
    found = re2.Set.SearchSet(options)
    for literal in literals:
        found.Add(quoted(literal))
    found.Compile()
    return found


def any_literal(literals: Iterable[str]) -> str:
    """Return a pattern for any of the literals, in any case."""
    begin: list[str] = []
    for literal in sorted(literals):
        # One that begins with a shorter one adds nothing.
        if not begin or not literal.startswith(begin[-1]):
            begin.append(literal)
    return "(?i)(?:" + "|".join(map(quoted, begin)) + ")"


def quoted(literal: str) -> str:
    """Return the pattern of a literal."""
    return "".join("\\" + char if char in r"\.+*?()|[]{}^$/-" else char for char in literal)


def settled(findings: Iterable[Finding], length: int) -> list[Finding]:
    """Put findings in order, drop doubles and those inside another of at least the same certainty."""
    rank = {"certain": 0, "likely": 1}
    ordered = sorted(set(findings), key=lambda f: (f.start, -f.end, rank[f.certainty], f.detector))
    kept: list[Finding] = []
    certain_to = likely_to = -1
    for finding in ordered:
        if finding.end <= certain_to or (finding.certainty == "likely" and finding.end <= likely_to):
            continue
        if len(kept) == MAX_FINDINGS:
            kept.append(Finding(detector=finding.detector, start=finding.start, end=length, certainty="certain"))
            break
        kept.append(finding)
        if finding.certainty == "certain":
            certain_to = max(certain_to, finding.end)
        likely_to = max(likely_to, finding.end)
    return kept


def redact(text: str, findings: Iterable[Finding]) -> str:
    """Replace each span by a marker such as ``[IBAN]``; overlapping spans become one.

    A merged span carries the name of its longest finding, the earlier one on a tie.
    """
    parts: list[str] = []
    position = 0
    merged: list[tuple[int, int, Finding]] = []
    for finding in sorted(findings, key=lambda f: (f.start, -f.end, f.detector)):
        if finding.end <= finding.start:
            continue
        if merged and finding.start < merged[-1][1]:
            start, end, best = merged[-1]
            longer = finding.end - finding.start > best.end - best.start
            merged[-1] = (start, max(end, finding.end), finding if longer else best)
        else:
            merged.append((finding.start, finding.end, finding))
    for start, end, finding in merged:
        parts += (text[position:start], marker(finding.detector))
        position = end
    return "".join((*parts, text[position:]))


def marker(detector: str) -> str:
    """The text that stands for what a detector removed."""
    return f"[{detector.upper()}]"
