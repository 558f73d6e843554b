"""Measure which patterns Python's `re` may run where google-re2 has no wheel: `python tools/measure_patterns.py`.

A pattern may run if each hostile text of 64 KB takes it at most 50 ms, in full or by windows. The texts are made
from the pattern: what it begins with, what it repeats, and what it almost matches, over and over. The list is
`src/keepward/core/measured_patterns.txt`; a pattern that is in it is not measured again.
"""

from __future__ import annotations

import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from keepward.core import linear_patterns
from keepward.gates.detectors import checks, credentials_in_prose, injection, normalize, pii, placeholders, secrets
from keepward.gates.detectors.matcher import Rule
from keepward.gates.detectors.tables import read
from keepward.retrieval import preferences

LIST = Path(linear_patterns.__file__).with_name("measured_patterns.txt")
LIMIT_SECONDS, CHARS = 0.05, 65_536
#: A pattern over a value is given this much of it.
VALUE_CHARS = 300
#: So many texts are measured in full.
SLOWEST = 6
#: So many ways of choosing among alternatives.
VARIANTS = 3
FILLERS = (
    *("a", "A", "0", " ", "\n", "\t", "-", "_", ".", "=", "/", "+", "'", '"', "é", "я", "日", "\u200b", "<", "[", "{"),
    *("a ", "A1", "a1b2", "0 ", "a.", "a-", "a\n", "0x", "a@", "a=", "-----", "x: ", "1.", "a, ", "f0 ", "A a"),
    *("the password is ", "ignore ", "please send the ", "key=", "my card number is ", "token: ", "https://"),
)
HEAD = """# Which patterns `re` runs where google-re2 is not installed: digest, verdict, milliseconds at worst, name.
# Made by `python tools/measure_patterns.py`.
"""


class Used(NamedTuple):
    """A pattern, where it is used, and the longest text that it is given."""

    name: str
    pattern: str
    chars: int = CHARS


def inventory() -> Iterator[Used]:
    """Yield every pattern that the gates and the recall of preferences have."""
    sets = (*secrets._rule_sets(), secrets._services(), pii._rules().labelled)
    rules: list[Rule] = [*injection._rules(), *pii._rules().forms, *pii._rules().shapes]
    for rule in (*rules, *(rule for each in sets for rule in each.rules)):
        yield Used(rule.name, rule.pattern)
        yield from (Used(rule.name, each) for each in (rule.gate, rule.split) if each)
    for each in sets:
        yield Used("prefilter", each.gate)
    yield Used("secret_assignment", secrets._assignment())
    for _, pattern in credentials_in_prose.phrase_patterns()[1]:
        yield Used("told_secret", pattern)
    tables = read("injection")
    yield Used("disguised_order", tables["closed_up"])
    for name, title in (("runs", "invisible_text"), ("inside", "invisible_text"), ("turning", "bidi_control")):
        yield Used(title, tables["hidden_characters"][name])
    for pattern in (secrets.LONG_RUN, secrets._prefilter_pattern(), *normalize.TRACES, pii._ANY_DIGITS):
        yield Used("prefilter", pattern)
    assigned, services = read("credentials_in_prose")["assigned"]["gate"], read("secrets")["services"]["gate"]
    prose = credentials_in_prose.phrase_patterns()[0], *credentials_in_prose._noun_and_value()
    for pattern in (assigned, services, pii._rules().any_shape, pii._rules().any_label, *prose):
        yield Used("prefilter", pattern)
    for pattern in normalize._DECODERS:
        yield Used("encoded_order", pattern)
    yield from (Used("number_of_something_else", each, VALUE_CHARS) for each in pii.context_patterns())
    for table in ("placeholders", "ordinary"):
        yield Used("placeholder", checks.values_pattern(table), VALUE_CHARS)
    yield Used("placeholder", placeholders.made_up_pattern())
    yield Used("preference", preferences.preference_pattern())


def hostile(used: Used) -> Iterator[str]:
    """Yield texts that a pattern may take long for, each as long as what it is given at most."""
    tree = parser.parse(linear_patterns.translated(used.pattern))
    units = set(FILLERS)
    starts: set[tuple[str, str]] = set()
    for variant in range(VARIANTS):
        text, pumps = _sample(tree, variant)
        units |= {text + end for end in ("", " ", "\n", "a")} | {
            text[:-1],
            text[:-1] + " ",
            text[: len(text) // 2],
        }
        for before, body in pumps:
            starts.add((before, body))
            units |= {body, before + body, before + body * 20}
    for unit in sorted(filter(None, units)):
        yield _filled("", unit, used.chars)
    for before, body in sorted(starts):
        if body:
            yield _filled(before, body, used.chars)


def _filled(before: str, unit: str, chars: int) -> str:
    return (before + unit * (chars // len(unit) + 1))[:chars]


def _sample(tree: Any, variant: int) -> tuple[str, list[tuple[str, str]]]:
    """Return a text that a pattern matches, and the (text before, body) of what it repeats."""
    text, pumps = "", []
    for kind, value in tree:
        if kind is code.LITERAL:
            text += chr(value)
        elif kind is code.NOT_LITERAL or kind is code.ANY:
            text += "b" if value == ord("a") else "a"
        elif kind is code.IN:
            text += _of_class(value, variant)
        elif kind is code.BRANCH:
            inner, more = _sample(value[1][variant % len(value[1])], variant)
            pumps += [(text + before, body) for before, body in more]
            text += inner
        elif kind is code.SUBPATTERN:
            inner, more = _sample(value[-1], variant)
            pumps += [(text + before, body) for before, body in more]
            text += inner
        elif kind in {code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT}:
            least, most, repeated = value
            inner, more = _sample(repeated, variant)
            pumps += [(text + before, body) for before, body in more]
            if most > 1:
                pumps.append((text, inner))
            text += inner * (least if variant % 2 else max(least, min(most, 3)))
    return text, pumps


def _of_class(items: Any, variant: int) -> str:
    """Return a character of a class."""
    candidates = "a0 A-_.=/\n\"'x9é日"
    candidates = candidates[variant:] + candidates[:variant]
    parsed = parser.parse("a")
    parsed.data = [(code.IN, items)]
    pattern = compiler.compile(parsed)
    found = next(filter(pattern.match, candidates), None)
    return found or next((char for char in map(chr, range(0x3000)) if pattern.match(char)), "")


def verdict(used: Used) -> tuple[str, int]:
    """Return how a pattern may run, and the milliseconds that it took at worst."""
    try:
        pattern = re.compile(linear_patterns.translated(used.pattern))
    except re.error:
        return "off", 0
    slowest = _slowest(used, lambda text: deque(pattern.finditer(text), maxlen=0))
    if slowest <= LIMIT_SECONDS:
        return "full", round(slowest * 1_000)
    # What `occurs` tests guards other patterns, and must not miss a long match.
    if used.chars == CHARS and used.name != "prefilter":
        slowest = _slowest(used, lambda text: deque(linear_patterns.find_in_windows(pattern, text), maxlen=0))
    return "windows" if slowest <= LIMIT_SECONDS else "off", round(slowest * 1_000)


def _slowest(used: Used, search: Callable[[str], object]) -> float:
    """Return the seconds of the slowest text, found by an eighth of each."""
    short, shorter = used.chars // 8, used.chars // 32
    ranked: list[tuple[float, bool, str]] = []
    for text in hostile(used):
        seconds = _seconds(search, text[:short])
        grows = seconds > 0.000_2 and seconds > 8 * _seconds(search, text[:shorter])
        ranked.append((seconds, grows, text))
        if 8 * seconds > 2 * LIMIT_SECONDS and 8 * _seconds(search, text[:short]) > 2 * LIMIT_SECONDS:
            return 8 * seconds
    ranked.sort(reverse=True)
    slowest = 0.0
    for number, (_, grows, text) in enumerate(ranked):
        if number < SLOWEST or grows:
            # Another program may have had the processor: what is slow is measured again.
            seconds = _seconds(search, text)
            for _ in range(2 if LIMIT_SECONDS < seconds < 4 * LIMIT_SECONDS else 0):
                seconds = min(seconds, _seconds(search, text))
            slowest = max(slowest, seconds)
        if slowest > LIMIT_SECONDS:
            break
    return slowest


def _seconds(search: Callable[[str], object], text: str) -> float:
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    started = time.process_time()
    try:
        search(text)
    except TimeoutError:
        return 1.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return time.process_time() - started


def _stop(*_: object) -> None:
    raise TimeoutError


def main() -> int:
    """Measure what is new, and write the list."""
    signal.signal(signal.SIGALRM, _stop)
    known = linear_patterns.measured()
    lines: list[str] = []
    for used in {linear_patterns.digest(each.pattern): each for each in inventory()}.values():
        name = linear_patterns.digest(used.pattern)
        how, milliseconds = known[name][:2] if name in known else verdict(used)
        lines.append(f"{name} {how} {milliseconds} {used.name}")
        print(lines[-1], flush=True)
    LIST.write_text(HEAD + "\n".join(sorted(lines, key=lambda line: (line.split()[3], line))) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
