"""Make rules of the tables in ``rules/*.toml``: patterns with their literals, and lists of words in any language.

A word of a list is written as the normal form leaves it: a blank stands for any spacing, ``*`` for letters that go on.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from keepward.gates.detect.checks import check_named
from keepward.gates.detect.engine import Rule, quoted
from keepward.gates.detect.tables import listed, read
from keepward.model.patterns import regex

#: What stands around a label, and between a label and its number.
EDGE = r"(?:^|[^\p{L}\p{N}_])"
_NO_LETTER = r"(?:$|[^\p{L}])"
#: A run in the format of a token: of which characters, and how many.
RUN = regex(r"\{([AaUzdhHwb])(\d+)(?:-(\d+)|(\+))?\}|\{u\}")
#: What the letters of runs stand for, as the inside of a set in a pattern.
CHARACTERS = {
    "A": "A-Za-z0-9",
    "a": "a-z0-9",
    "U": "A-Z0-9",
    "z": "A-Za-z",
    "d": "0-9",
    "h": "0-9a-f",
    "H": "0-9A-Fa-f",
    "w": "A-Za-z0-9_-",
    "b": "A-Za-z0-9+/",
}
_UUID = "-".join(f"[0-9a-fA-F]{{{count}}}" for count in (8, 4, 4, 4, 12))
_NUMBER = r"[A-Z0-9][A-Z0-9](?:[ ./-]?[A-Z0-9]){4,20}"


@functools.cache
def load(name: str, table: str = "rule") -> tuple[Rule, ...]:
    """Return the rules of one table of a file, in its order."""
    tables = read(name)
    rows = tables[table]
    return tuple(_MAKERS[table](row, tables) for row in (rows.splitlines() if isinstance(rows, str) else rows))


def split_forms(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Yield those rules that have a pattern for a text without blanks, quotes and line ends, with that pattern."""
    for rule in rules:
        if rule.split:
            yield Rule(name=rule.name, written=functools.partial(str, rule.split), literals=rule.literals)


def expanded(pattern: str, tables: Mapping[str, Any]) -> str:
    """Put the lists of a file in place of their names in braces."""
    for name, alternatives in tables.get("lists", {}).items():
        pattern = pattern.replace(f"{{{name}}}", f"(?:{'|'.join(alternatives)})")
    return pattern


def _rule(row: Mapping[str, Any], tables: Mapping[str, Any]) -> Rule:
    row = {"checks": tables.get("checks", ""), **row}
    return _made(row, lambda: expanded(row["pattern"], tables), listed(row.get("literals", "")))


def _format(row: str, _tables: Mapping[str, Any]) -> Rule:
    """What a token of a provider looks like: fixed pieces, and runs of characters between braces."""
    name, form = row.split()
    telling = max(RUN.sub(" ", form).split(), key=len).lower()
    checks = f"apart not_example spread:{form.index('{')}"
    return _made({"name": name, "checks": checks}, functools.partial(_format_pattern, form), (telling,))


def _format_pattern(form: str) -> str:
    pattern, last = "", 0
    for run in RUN.finditer(form):
        kind, least, most, more = run.groups()
        counted = f"{{{least},{most or ''}}}" if most or more else f"{{{least}}}"
        pattern += quoted(form[last : run.start()]) + (f"[{CHARACTERS[kind]}]{counted}" if kind else _UUID)
        last = run.end()
    return pattern + quoted(form[last:])


def _services(row: str, tables: Mapping[str, Any]) -> Rule:
    """A value beside the name of a service, in an assignment."""
    names = row.split()

    def written() -> str:
        return rf"(?i)\b{any_word(names)}{tables['between']}(?P<v>{tables['value']})"

    return _made({"name": "service_key", "certainty": "likely", "checks": "service_value"}, written, names)


def _made(row: Mapping[str, Any], written: Callable[[], str], literals: Iterable[str] = (), *checks: str) -> Rule:
    return Rule(
        name=row["name"],
        written=written,
        literals=tuple(literals),
        certainty=row.get("certainty", "certain"),
        checks=tuple(map(check_named, (*row.get("checks", "").split(), *checks))),
        gate=row.get("gate", ""),
        split=row.get("split", ""),
        bare=row.get("bare", False),
    )


def any_word(words: Iterable[str], *, begin: str = "", end: str = "") -> str:
    """Return a pattern for any word of a list, with these around it but where ``*`` says that letters go on."""
    return "(?:" + "|".join(_word(word, begin, end) for word in words if word) + ")"


def _word(word: str, begin: str, end: str) -> str:
    pattern = "".join(map(_part, re.split(r"(.?\*| )", word.lstrip("*"))))
    begins = begin if word[0].isascii() and word[0].isalnum() else ""
    return begins + pattern + (end if word[-1].isascii() and word[-1].isalnum() else "")


def _part(part: str) -> str:
    if part == " ":
        return r"\s+"
    if part[-1:] == "*":
        return quoted(part[:-1]) + (r"\w*" if part[:-1].isascii() else r"[^\x00-\x7f]*")
    return quoted(part)


def literals_of(words: Iterable[str]) -> tuple[str, ...]:
    """Return what stands in every text that holds one of the words."""
    return tuple(dict.fromkeys(max(word.replace("*", " ").split(), key=len) for word in words))


def _shape(row: Mapping[str, Any], tables: Mapping[str, Any]) -> Rule:
    """A form that ordinary text does not have, around a number that has to hold."""
    return _made(row, lambda: row["pattern"], (), "closed", f"number:{row['number']}", "personal")


def _label(row: Mapping[str, Any], tables: Mapping[str, Any]) -> Rule:
    """A word beside a number that has a check digit, or at least its form."""
    number = row.get("pattern", _NUMBER)
    return _labelled(row, rf"{tables['between']}(?P<v>{number})", f"fits:{row.get('number', 'any')}")


def _dated(row: Mapping[str, Any], tables: Mapping[str, Any]) -> Rule:
    """A word beside a date."""
    date = row["date"].replace("MONTHS", "|".join(row["months"].split()))
    return _labelled(row, rf"[^\n\d]{{0,24}}?(?P<v>{date})", "closed")


def _labelled(row: Mapping[str, Any], rest: str, check: str) -> Rule:
    labels = listed(row["labels"])
    return _made(row, lambda: f"(?i){EDGE}{any_word(labels)}{rest}", literals_of(labels), check)


def label_gate(name: str) -> str:
    """Return a pattern that occurs wherever one of the labels of a file does."""
    tables = read(name)
    labels = dict.fromkeys(word for row in (*tables["dated"], *tables["label"]) for word in listed(row["labels"]))
    return rf"(?i){EDGE}{any_word(labels)}{_NO_LETTER}"


_MAKERS: dict[str, Callable[[Any, Mapping[str, Any]], Rule]] = {
    "rule": _rule,
    "formats": _format,
    "names": _services,
    "shape": _shape,
    "label": _label,
    "dated": _dated,
}
