"""The engine of the detectors: rules with their literals, one search for many literals, and redaction.

Invariants
(1) Patterns over user text run on google-re2, so a scan takes time linear in the text (``core.linear_patterns``).
(2) A rule runs only if one of its literals occurs in the text; ordinary text costs one search.
(3) Spans are half-open, in code points of the original text, whatever form matched.
(4) After ``MAX_FINDINGS`` findings, one last finding covers the rest of the text, so a flood hides nothing.
(5) Findings are sorted by start, then end (longer first), then name; no two are equal.
(6) A second redaction changes nothing: a marker has no digits and does not resemble a secret.

Late imports: few texts need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from keepward.core.linear_patterns import escape_literal, literal_set
from keepward.gates.detectors.normalize import Text
from keepward.gates.detectors.tables import lazy_property

Certainty = Literal["certain", "likely"]
#: Takes a text, start and end; returns the part of the span that counts, or None.
Check = Callable[[Text, int, int], tuple[int, int] | None]

#: After this many findings the rest of a text counts as one finding.
MAX_FINDINGS = 400
#: After this many candidates of a rule the rest of a text counts as one finding.
MAX_CANDIDATES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One span that a detector found. It contains positions and names only, so it may be logged, stored and shown."""

    #: Stable snake_case name of the rule, such as ``aws_access_key`` or ``iban``.
    detector: str
    #: Half-open span in code points of the original text.
    start: int
    end: int
    #: ``certain``: a documented format or a valid check digit. ``likely``: wording and shape only.
    certainty: Certainty = "certain"


def finding_at(form: Text, start: int, end: int, name: str, certainty: Certainty) -> Finding:
    """Return a finding for a span of a form, mapped to the original text."""
    first, last = form.original_span(start, end)
    return Finding(detector=name, start=first, end=last, certainty=certainty)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One pattern, and the checks that a match must pass."""

    #: Detector name of the findings.
    name: str
    #: Makes the pattern on first use; most patterns are never used.
    make_pattern: Callable[[], str]
    #: Lower-case literals; at least one occurs (in any case) in every text the pattern can match.
    literals: tuple[str, ...] = ()
    certainty: Certainty = "certain"
    checks: tuple[Check, ...] = ()
    #: A cheaper pattern that occurs in every text with a match.
    gate: str = ""
    #: The pattern for a text without blanks, quotes and line ends.
    split: str = ""
    #: Whether its literals are too common for a prefilter.
    bare: bool = False

    @lazy_property
    def pattern(self) -> str:
        """RE2 syntax. With a group called ``v`` the span is that group, else the complete match."""
        return self.make_pattern()

    def findings(self, text: Text) -> Iterator[Finding]:
        """Yield the findings of the rule in a text."""
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
        return finding_at(text, start, end, self.name, self.certainty)


class RuleSet:
    """Rules with one prefilter: a rule runs only if one of its literals occurs."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        users: dict[str, list[int]] = {}
        for number, rule in enumerate(self.rules):
            for literal in rule.literals:
                users.setdefault(literal, []).append(number)
        self._users = users
        #: A pattern that occurs in every text with a match of any rule.
        self.gate = any_literal(users)

    @lazy_property
    def _literals(self) -> Any:
        return literal_set(self._users)

    def candidates(self, text: Text) -> list[Rule]:
        """Return the rules whose literals occur, in their order."""
        if not text.occurs(self.gate):
            return []
        users = list(self._users.values())
        found = self._literals.Match(text.data) if len(text.data) < 1 << 17 else ()
        if not found:
            # RE2 returns nothing if it runs out of memory or is not installed; this test always works.
            folded = text.text.casefold()
            found = [index for index, literal in enumerate(self._users) if literal.casefold() in folded]
        return [self.rules[number] for number in sorted({number for index in found for number in users[index]})]

    def scan(self, text: Text) -> Iterator[Finding]:
        """Yield findings rule by rule, in no overall order."""
        for rule in self.candidates(text):
            yield from rule.findings(text)


def any_literal(literals: Iterable[str]) -> str:
    """Return a pattern for any of the literals, in any case."""
    begin: list[str] = []
    for literal in sorted(literals):
        # A literal that begins with a shorter one adds nothing.
        if not begin or not literal.startswith(begin[-1]):
            begin.append(literal)
    return "(?i)(?:" + "|".join(map(escape_literal, begin)) + ")"


def merge_findings(findings: Iterable[Finding], length: int) -> list[Finding]:
    """Sort findings; drop duplicates, and findings inside another with at least the same certainty."""
    rank = {"certain": 0, "likely": 1}
    ordered = sorted(set(findings), key=lambda f: (f.start, -f.end, rank[f.certainty], f.detector))
    merged_findings: list[Finding] = []
    certain_to = likely_to = -1
    for finding in ordered:
        if finding.end <= certain_to or (finding.certainty == "likely" and finding.end <= likely_to):
            continue
        if len(merged_findings) == MAX_FINDINGS:
            merged_findings.append(
                Finding(detector=finding.detector, start=finding.start, end=length, certainty="certain")
            )
            break
        merged_findings.append(finding)
        if finding.certainty == "certain":
            certain_to = max(certain_to, finding.end)
        likely_to = max(likely_to, finding.end)
    return merged_findings


def redact(text: str, findings: Iterable[Finding]) -> str:
    """Replace each span by a marker such as ``[IBAN]``; overlapping spans become one.

    The marker of a merged span has the name of its longest finding, or of the earlier one on a tie.
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
    """The marker that replaces a finding of a detector."""
    return f"[{detector.upper()}]"
