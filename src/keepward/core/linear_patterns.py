"""Regular expressions in RE2's syntax that no text can slow down, with the package google-re2 and without it.

RE2 runs every pattern in linear time. Where it has no wheel, Python's ``re`` runs a pattern only if
``measured_patterns.txt`` says that hostile texts took it at most 50 ms: over the complete text, or over windows of it,
where a match has a maximum length. Any other pattern finds nothing, and ``keepward doctor`` names its rule.
`tools/measure_patterns.py` makes that list.

Late imports: few texts need it.
"""

from __future__ import annotations

import functools
import hashlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

#: ASCII classes of RE2, to be used inside brackets.
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
#: Their complements; in any case, two signs above U+0100 are an s and a k.
_COMPLEMENTS = {
    "D": r"\x00-/:-\U0010ffff",
    "W": r"\x00-/:-@\[-\^`{-\u017e\u0180-\u2129\u212b-\U0010ffff",
    "S": r"\x00-\x08\x0b\x0e-\x1f!-\U0010ffff",
}
#: The properties of Unicode that patterns use, as patterns of one character. Letters with a case: up to Armenian.
_PROPERTIES = {
    "L": r"[^\W\d_]",
    "N": r"\d",
    "Lu": "[" + "".join(char for char in map(chr, range(0x600)) if char.isupper()) + "]",
    "Ll": "[" + "".join(char for char in map(chr, range(0x600)) if char.islower()) + "]",
}
_PART = re.compile(
    r"\\[pP](?:\{\w+\}|\w)|\\x\{[0-9A-Fa-f]+\}|\\x[0-9A-Fa-f]{2}|\\(?s:.)|\[\^?\]?|\(\?P<\w+>|\(\?[a-z-]*[:)]|(?s:.)"
)


#: Characters of a window, and the distance of two. A match that is longer than their difference may be missed.
WINDOW_CHARS, WINDOW_STEP = 768, 512


#: An unbounded run at the start of a pattern. A match never begins inside such a run, but at its first character.
_LEADING_RUN = re.compile(r"(\(\?i\))?(\[(?:\\.|[^\]\\])+\])(?:\+|\{\d+,\})")


class Verdict(NamedTuple):
    """What was measured of a pattern."""

    #: How it runs: "full", by "windows", or not at all: "off".
    how: str
    milliseconds: int
    #: The rule with this pattern, or where it is used.
    name: str


@functools.cache
def has_re2() -> bool:
    """Whether the package google-re2 is installed."""
    try:
        import re2  # noqa: F401
    except ImportError:
        return False
    return True


def digest(pattern: str) -> str:
    """Return the name of a pattern in the list of measured ones."""
    return hashlib.sha256(pattern.encode()).hexdigest()[:16]


@functools.cache
def measured() -> dict[str, Verdict]:
    """Return what was measured of each pattern, by its digest."""
    text = (pkgutil.get_data(__package__, "measured_patterns.txt") or b"").decode()
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {row[0]: Verdict(row[1], int(row[2]), row[3]) for row in rows}


def rules_off() -> list[str]:
    """Return the names of the rules that find nothing, because RE2 is missing and ``re`` takes too long."""
    off = {row.name for row in measured().values() if row.how == "off"}
    # What a prefilter guards is searched without it.
    return [] if has_re2() else sorted(off - {"prefilter"})


def runs(pattern: str) -> bool:
    """Whether a pattern runs here."""
    return has_re2() or _how(pattern) != "off"


def _how(pattern: str) -> str:
    verdict = measured().get(digest(pattern))
    return "off" if verdict is None else verdict.how


@functools.cache
def compile_bytes(pattern: str) -> Any:
    """Compile a pattern over UTF-8 text, because re2's conversion of offsets in str is slow."""
    if not has_re2():
        return _BytesPattern(pattern)
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 32 << 20
    return re2.compile(pattern.encode(), options)


@functools.cache
def named_groups(pattern: str) -> dict[str, int]:
    """Return the named groups of a pattern. Cached, because re2 takes longer to make the table than to search."""
    groups = compile_bytes(pattern).groupindex.items()
    return {name if isinstance(name, str) else name.decode(): index for name, index in groups}


def compile_str(pattern: str) -> Any:
    """Compile a pattern over str, without captures; without RE2 one that does not run matches nothing."""
    if not has_re2():
        return re.compile(translated(pattern) if runs(pattern) else r"(?!)")
    import re2

    options = re2.Options()
    options.never_capture = True
    return re2.compile(pattern, options)


def compile_prefilter(patterns: Sequence[str]) -> Any:
    """Compile patterns together; ``Match`` returns the indices of those that occur, or None (RE2's ``FilteredRE2``).

    One pass searches for strings that a match must contain; then only the remaining patterns run.
    """
    if not has_re2():
        return _Prefilter([compile_bytes(pattern) for pattern in patterns])
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


@functools.cache
def _occurrence_test(pattern: str) -> Any:
    """Compile a pattern without captures, which is faster, to test whether it occurs."""
    return compile_prefilter((pattern,))


def occurs(pattern: str, data: bytes) -> bool:
    """Whether the pattern matches anywhere in UTF-8 text. One that does not run may, so what it guards is searched."""
    return not runs(pattern) or _occurrence_test(pattern).Match(data) is not None


def literal_set(literals: Iterable[str]) -> Any:
    """Compile literals together; ``Match`` returns the indices of those that occur in any case, in one pass.

    It may return nothing for a text with literals, when RE2 runs out of memory or is not installed.
    """
    if not has_re2():
        return _Prefilter([])
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.max_mem = 64 << 20
    options.log_errors = False
    found = re2.Set.SearchSet(options)
    for literal in literals:
        found.Add(escape_literal(literal))
    found.Compile()
    return found


def escape_literal(literal: str) -> str:
    """Return the pattern of a literal."""
    return "".join("\\" + char if char in r"\.+*?()|[]{}^$/-" else char for char in literal)


def find_in_windows(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches that begin and end in one window of a text, so that the time is linear in the text."""
    last = 0
    for start in range(0, len(text) or 1, WINDOW_STEP):
        for match in pattern.finditer(text, max(start, last), start + WINDOW_CHARS):
            if match.start() >= start + WINDOW_STEP:
                break
            yield match
            last = max(match.end(), match.start() + 1)


class _BytesPattern:
    """A pattern of ``re`` over UTF-8 text, with the methods of re2 that are used."""

    def __init__(self, pattern: str) -> None:
        how = _how(pattern)
        self._pattern = re.compile(r"(?!)" if how == "off" else translated(pattern))
        self._finditer = find_in_windows if how == "windows" else re.Pattern.finditer
        self.groupindex = self._pattern.groupindex

    def finditer(self, data: bytes) -> Iterator[_BytesMatch]:
        text = data.decode("utf-8", "replace")
        return (_BytesMatch(match, ascii_only=len(text) == len(data)) for match in self._finditer(self._pattern, text))

    def search(self, data: bytes) -> _BytesMatch | None:
        return next(self.finditer(data), None)


class _BytesMatch:
    def __init__(self, match: re.Match[str], *, ascii_only: bool) -> None:
        self._match, self._ascii_only = match, ascii_only

    def span(self, group: int = 0) -> tuple[int, int]:
        start, end = self._match.span(group)
        if self._ascii_only or start < 0:
            return start, end
        first = len(self._match.string[:start].encode())
        return first, first + len(self._match.string[start:end].encode())


class _Prefilter:
    def __init__(self, patterns: Sequence[_BytesPattern]) -> None:
        self._patterns = patterns

    def Match(self, data: bytes) -> list[int] | None:  # noqa: N802 - the name in re2
        return [index for index, each in enumerate(self._patterns) if each.search(data) is not None] or None


def translated(pattern: str) -> str:
    r"""Return a pattern of RE2 in the syntax of ``re`` over str.

    ``\b``, ``\d``, ``\s`` and ``\w`` are about ASCII, ``$`` is the end of the text, and ``(?i)`` counts to the end of
    its group.

    Raises:
        re.error: it has something that is not translated, such as a property of a script.
    """
    out: list[str] = []
    if run := _LEADING_RUN.match(pattern):
        # Without this each position of a long run is tried, each to its end.
        before = f"(?<!{_translated_class('[', iter(_PART.findall(run[2][1:])))})"
        out.append(f"(?i:{before})" if run[1] else before)
    #: For each open group the flags that were set inside it.
    flags = [""]
    parts = iter(_PART.findall(pattern))
    for part in parts:
        if part[0] == "[":
            out.append(_translated_class(part, parts))
        elif part[0] == "(":
            if part.startswith("(?") and part.endswith(")"):
                flags[-1] += part[:-1] + ":"
                out.append(part[:-1] + ":")
            else:
                flags.append("")
                out.append(part)
        elif part == ")":
            out.append(")" * (1 + flags.pop().count("(")))
        elif part == "|":
            # A flag counts for the alternatives that follow, but not for the one before.
            out += (")" * flags[-1].count("("), "|", flags[-1])
        elif part == "$":
            out.append(r"\Z")
        elif part[0] == "\\":
            out.append(_translated_escape(part))
        else:
            out.append(part)
    return "".join(out) + ")" * flags[0].count("(")


def _translated_escape(part: str) -> str:
    kind = part[1]
    if kind in "pP":
        name = part[2:].strip("{}")
        if name not in _PROPERTIES or kind == "P":
            raise re.error(f"{part} is not translated")
        return _PROPERTIES[name]
    if kind == "x":
        return re.escape(chr(int(part[2:].strip("{}"), 16)))
    if kind in _CLASSES or kind in _COMPLEMENTS:
        return f"[{_CLASSES.get(kind) or _COMPLEMENTS[kind]}]"
    if kind in "bB":
        return f"(?a:{part})"
    return r"\Z" if kind == "z" else part


def _translated_class(opening: str, parts: Iterator[str]) -> str:
    """Return a class in brackets; properties of Unicode cannot be inside of one, and are alternatives to it."""
    inside, properties = "\\]" if opening.endswith("]") else "", []
    for part in parts:
        if part == "]":
            break
        if part[0] == "[":
            # A bracket inside a class is a character.
            inside += "\\" + part.rstrip("]")
            if part.endswith("]"):
                break
            continue
        kind = part[1:2] if part[0] == "\\" else ""
        if kind == "p":
            properties.append(_translated_escape(part))
        elif kind in _CLASSES or kind in _COMPLEMENTS:
            inside += _CLASSES.get(kind) or _COMPLEMENTS[kind]
        elif kind == "x":
            inside += re.escape(chr(int(part[2:].strip("{}"), 16)))
        else:
            inside += "\\" + part if part in {"&", "|", "~"} else part
    negated = opening.startswith("[^")
    if not properties:
        return f"[{'^' * negated}{inside}]"
    others = "|".join(properties)
    if negated:
        return f"(?:(?!{others}){f'[^{inside}]' if inside else '(?s:.)'})"
    return f"(?:{others}{f'|[{inside}]' if inside else ''})"
