"""The machinery under the detectors: rule packs on a linear-time engine, and redaction.

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

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from keepward.gates.detect.finding import Certainty, Finding

#: Findings after which the rest of a text counts as one finding.
MAX_FINDINGS = 400
#: Candidates a rule may look at in one text before the rest counts as a flood.
MAX_CANDIDATES = 1000
#: Texts after which a sieve is worth compiling, and the longest text it takes, in bytes.
_PAYS_FROM = 100
_SHORT = 8_192

_ASCII_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One pattern of a pack."""

    #: Detector name the findings carry.
    name: str
    #: RE2 syntax. With a group called ``v`` the span is that group, else the whole match.
    pattern: str
    #: Lower-case literals; at least one occurs (in any case) in every text the pattern can match.
    literals: tuple[str, ...]
    certainty: Certainty = "certain"
    #: Whether the matched text is accepted; None accepts all.
    check: Callable[[str], bool] | None = None
    #: Whether an ASCII letter or digit right before or after the span refuses the match.
    bounded: bool = True


@functools.cache
def compiled(pattern: str) -> Any:
    """Compile once, over bytes: byte offsets spare re2's own costly conversion."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 32 << 20
    return re2.compile(pattern.encode(), options)


@functools.cache
def _groups(pattern: str) -> dict[str, int]:
    """Return the named groups of a pattern; re2 makes the table anew each time, which costs more than a search."""
    return {name.decode(): index for name, index in compiled(pattern).groupindex.items()}


@functools.cache
def warm(pattern: str) -> Any:
    """Compile a pattern that only asks whether something occurs; captures are off, which is faster."""
    return sieved((pattern,))


def sieved(patterns: Sequence[str]) -> Any:
    """Compile patterns together; ``Match`` gives the places of those that occur, or None (RE2's ``FilteredRE2``).

    It first looks for strings without which a pattern cannot match, all of them in one pass, and runs the
    patterns that are left.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = 32 << 20
    found = re2.Filter()
    for pattern in patterns:
        found.Add(pattern.encode(), options)
    found.Compile()
    return found


def occurs(pattern: str, data: bytes) -> bool:
    """Whether the pattern matches anywhere in UTF-8 text."""
    return warm(pattern).Match(data) is not None


class Haystack:
    """One text in the form the engine searches: bytes, with a way back to code points.

    A lone surrogate becomes one question mark, so positions stay true for any str.
    """

    __slots__ = ("_index", "_lower", "data", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode("utf-8", "replace")
        self._index: list[int] | None = None
        self._lower: str | None = None

    @property
    def lower(self) -> str:
        """The text in lower case, for literal tests only; its length may differ."""
        if self._lower is None:
            self._lower = self.text.lower()
        return self._lower

    def point(self, offset: int) -> int:
        """Turn a byte offset into a code point offset."""
        if len(self.data) == len(self.text):
            return offset
        if self._index is None:
            # Every byte but a continuation byte (10xxxxxx) begins a code point.
            self._index = list(accumulate(self.data.translate(_LEADS), initial=0))
        return self._index[offset]

    def occurs(self, pattern: str) -> bool:
        """Whether the pattern matches anywhere."""
        return occurs(pattern, self.data)

    def spans(self, pattern: str) -> Iterator[tuple[int, int]]:
        """Yield spans of the pattern, or of its group ``v`` where it has one."""
        group = _groups(pattern).get("v", 0)
        for match in compiled(pattern).finditer(self.data):
            start, end = match.span(group)
            if start >= 0:
                yield self.point(start), self.point(end)

    def groups(self, pattern: str) -> Iterator[dict[str, tuple[int, int]]]:
        """Yield, a match, the spans of all named groups that took part; ``""`` is the whole match."""
        names = _groups(pattern)
        for match in compiled(pattern).finditer(self.data):
            start, end = match.span()
            found = {"": (self.point(start), self.point(end))}
            for name, index in names.items():
                start, end = match.span(index)
                if start >= 0:
                    found[name] = (self.point(start), self.point(end))
            yield found


_LEADS = bytes(0 if 0x80 <= byte < 0xC0 else 1 for byte in range(256))


class Sieve:
    """Many patterns asked at once, in a process that has many texts to ask them of.

    Compiling them together takes as long as a hundred texts do without it; so it waits until it pays. A long
    text is not asked here: patterns without a telling string would all read it.

    ``behind`` holds, by a pattern that is asked first, the places of those that matter only where it occurs; they
    count as absent from any other text. It spares the patterns that have no telling string of their own.
    """

    __slots__ = ("_all", "_asked", "_behind", "_filter", "_inner", "_open", "_patterns")

    def __init__(self, patterns: Iterable[str], behind: Mapping[str, Collection[int]] | None = None) -> None:
        self._patterns = tuple(patterns)
        self._all = range(len(self._patterns))
        self._behind = {gate: tuple(places) for gate, places in (behind or {}).items()}
        hidden = {place for places in self._behind.values() for place in places}
        self._open = tuple(place for place in self._all if place not in hidden)
        self._inner: list[tuple[tuple[int, ...], Any]] = []
        self._asked = 0
        self._filter: Any = None

    def matching(self, data: bytes) -> Collection[int]:
        """Return the places of the patterns that occur in UTF-8 text, or all where each has to be asked by itself."""
        if len(data) > _SHORT:
            return self._all
        if self._filter is None:
            self._asked += 1
            if self._asked < _PAYS_FROM:
                return self._all
            self._inner = [(places, sieved(self._at(places))) for places in self._behind.values()]
            self._filter = sieved((*self._at(self._open), *self._behind))
        found = self._filter.Match(data) or ()
        if not self._inner or not found:
            return found
        ends = len(self._open)
        places = [self._open[each] for each in found if each < ends]
        for group, inner in (self._inner[each - ends] for each in found if each >= ends):
            places += [group[each] for each in inner.Match(data) or ()]
        return places

    def _at(self, places: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._patterns[place] for place in places)

    def silent(self, data: bytes) -> bool:
        """Whether it is known that no pattern occurs in UTF-8 text."""
        return not self.matching(data)


class Pack:
    """Rules that share one gate: a single search for any of their literals."""

    __slots__ = ("_gate", "_literals", "_rules", "_set", "_users")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._literals = tuple(sorted({literal for rule in rules for literal in rule.literals}))
        self._gate = "(?i)" + _any_of(self._literals)
        place = {literal: index for index, literal in enumerate(self._literals)}
        users: list[list[int]] = [[] for _ in self._literals]
        for number, rule in enumerate(self._rules):
            for literal in rule.literals:
                users[place[literal]].append(number)
        self._users = tuple(map(tuple, users))
        self._set: Any = None

    def awake(self, hay: Haystack) -> list[Rule]:
        """The rules whose literals occur, in the order of the pack."""
        if not hay.occurs(self._gate):
            return []
        found: Iterable[int] = self._matcher().Match(hay.data) if len(hay.data) < 1 << 17 else ()
        if not found:
            # The set gives up without a word when it runs out of memory; the plain test never does.
            lower = hay.lower
            found = [index for index, literal in enumerate(self._literals) if literal in lower]
        return [self._rules[number] for number in sorted({n for index in found for n in self._users[index]})]

    def _matcher(self) -> Any:
        if self._set is None:
            self._set = literal_set(self._literals, case_sensitive=False)
        return self._set

    def scan(self, hay: Haystack) -> Iterator[Finding]:
        """Yield findings rule by rule, in no overall order."""
        for rule in self.awake(hay):
            yield from run(rule, hay)


def literal_set(literals: Iterable[str], *, case_sensitive: bool = True) -> Any:
    """Compile literals together; ``Match`` gives the places of those that occur, in one pass."""
    import re2

    options = re2.Options()
    options.case_sensitive = case_sensitive
    options.max_mem = 64 << 20
    options.log_errors = False
    found = re2.Set.SearchSet(options)
    for literal in literals:
        found.Add(_quoted(literal))
    found.Compile()
    return found


def run(rule: Rule, hay: Haystack) -> Iterator[Finding]:
    """Yield the findings of one rule."""
    text = hay.text
    for count, (start, end) in enumerate(hay.spans(rule.pattern)):
        if count >= MAX_CANDIDATES:
            yield Finding(detector=rule.name, start=start, end=len(text), certainty=rule.certainty)
            return
        if rule.bounded and not bounded(text, start, end):
            continue
        if rule.check is None or rule.check(text[start:end]):
            yield Finding(detector=rule.name, start=start, end=end, certainty=rule.certainty)


def bounded(text: str, start: int, end: int) -> bool:
    """Whether no ASCII letter or digit touches the span on either side."""
    return not (
        (start > 0 and text[start - 1] in _ASCII_WORD and text[start] in _ASCII_WORD)
        or (end < len(text) and text[end] in _ASCII_WORD and text[end - 1] in _ASCII_WORD)
    )


def _any_of(literals: Iterable[str]) -> str:
    # A literal that begins with a shorter one adds nothing to the gate.
    kept: list[str] = []
    for literal in sorted(literals):
        if not kept or not literal.startswith(kept[-1]):
            kept.append(literal)
    return "(?:" + "|".join(_quoted(literal) for literal in kept) + ")"


def _quoted(literal: str) -> str:
    return "".join("\\" + char if char in r"\.+*?()|[]{}^$/-" else char for char in literal)


def any_of(words: Iterable[str]) -> str:
    """A non-capturing alternation of literal words, longest first, blanks matching any spacing."""
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return "(?:" + "|".join(_quoted(word).replace(" ", r"\s+") for word in ordered) + ")"


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


def redact(text: str, findings: Iterable[Finding], *, only: frozenset[str] | None = None) -> str:
    """Replace each span by a marker such as ``[IBAN]``; overlapping spans become one.

    A merged span carries the name of its longest finding, the earlier one on a tie. ``only`` names the
    detectors to act on; None means all.
    """
    ordered = sorted(
        (f for f in findings if (only is None or f.detector in only) and f.end > f.start),
        key=lambda f: (f.start, -f.end, f.detector),
    )
    parts: list[str] = []
    position = 0
    index = 0
    while index < len(ordered):
        best = ordered[index]
        start, end = best.start, best.end
        index += 1
        while index < len(ordered) and ordered[index].start < end:
            other = ordered[index]
            if other.end - other.start > best.end - best.start:
                best = other
            end = max(end, other.end)
            index += 1
        parts += (text[position:start], marker(best.detector))
        position = end
    parts.append(text[position:])
    return "".join(parts)


def marker(detector: str) -> str:
    """The text that stands for what a detector removed."""
    return f"[{detector.upper()}]"
