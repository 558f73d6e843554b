"""Secrets in a text: documented provider formats, keys, credentials, assignments and told passwords.

Invariants
(1) Findings of a documented format are ``certain``; told and assigned values are ``likely``.
(2) The same rules read the text as given, with invisible characters and look-alikes undone, with escapes
    undone, with quotes and line breaks squeezed out, and decoded from base64 or hexadecimal.
(3) Spans always refer to the text that was given.
(4) A variable's name ends in a secret word (``token_count`` and ``key_id`` are no secrets), and a value read from
    elsewhere (a variable, a call, a template, a path) is none.
(5) Of bytes that are no text the runs of readable characters are looked at, and there a documented format alone counts:
    what reads like a password is too often chance. What is packed or enciphered is not opened, and nobody says it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from keepward.gates.detect import credentials_in_prose, placeholders
from keepward.gates.detect.checks import (
    dense,
    digits,
    entropy,
    high_entropy,
    not_example,
    ordinary,
    passphrase,
    placeholder,
    strong,
)
from keepward.gates.detect.engine import Finding, Pack, Rule, Sieve, located, quoted, settled
from keepward.gates.detect.rules import any_word, made
from keepward.gates.detect.tables import columns, listed, read
from keepward.gates.detect.text import TRACES, Text
from keepward.model.patterns import regex

_JUNK = " \t\r\n\"'`+\\"
_JUNK_BYTES = _JUNK.encode()
#: Every match of a rule without a telling string (``bare``) holds a run.
RUN = r"[A-Za-z0-9%+./=_~-]{16}"
#: Assigned values looked at in one text; what comes after is covered as a flood.
_MOST_ASSIGNED = 250
#: Characters of a blob that are looked at at once, and how many of them the next window looks at again: more than the
#: longest key block, so that none is cut in two.
WINDOW, OVERLAP = 65_536, 8_192


#: A run in the format of a token: of which characters, and how many.
TOKEN_RUN = regex(r"\{([AaUzdhHwb])(\d+)(?:-(\d+)|(\+))?\}|\{u\}")
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


def parse_rule(line: str) -> dict[str, str]:
    """Return the columns of a line of ``rules`` by name, with its checks and its certainty."""
    row = {"checks": "apart not_example"} | columns(line, "name", "literals", "pattern", "example")
    return row | {"checks": row["checks"].removeprefix("none"), "certainty": row.get("likely", "certain")}


def parse_formats(line: str) -> tuple[str, list[str]]:
    """Return the name and the forms of a line of ``formats``."""
    name, *forms = line.split()
    return name, forms


def _rules() -> Iterator[Rule]:
    tables = read("secrets")
    for line in tables["rules"].splitlines():
        row = parse_rule(line)
        yield made(row, functools.partial(str, row["pattern"]), listed(row["literals"]))
    for line in tables["formats"].splitlines():
        name, forms = parse_formats(line)
        for form in forms:
            literal = max(TOKEN_RUN.sub(" ", form).split(), key=len).lower()
            checks = f"apart not_example spread:{form.index('{')}"
            yield made({"name": name, "checks": checks}, functools.partial(_token_pattern, form), (literal,))


def _token_pattern(form: str) -> str:
    pattern, last = "", 0
    for run in TOKEN_RUN.finditer(form):
        kind, least, most, more = run.groups()
        counted = f"{{{least},{most or ''}}}" if most or more else f"{{{least}}}"
        pattern += quoted(form[last : run.start()]) + (f"[{CHARACTERS[kind]}]{counted}" if kind else _UUID)
        last = run.end()
    return pattern + quoted(form[last:])


@functools.cache
def _pack() -> Pack:
    return Pack(_rules())


@functools.cache
def _services() -> Pack:
    """Return rules for values beside the names of services, in an assignment: one for each line of names."""
    table = read("secrets")["services"]

    def rule(names: list[str]) -> Rule:
        written = lambda: rf"(?i)\b{any_word(names)}{table['between']}(?P<v>{table['value']})"  # noqa: E731
        return made({"name": "service_key", "certainty": "likely", "checks": "service_value"}, written, names)

    return Pack(rule(line.split()) for line in table["names"].splitlines())


@functools.cache
def _split_pack() -> tuple[Pack, Sieve]:
    """Return rules for a text without blanks, quotes and line ends, and one search for all of them."""
    split = (rule for rule in _pack().rules if rule.split)
    pack = Pack(
        Rule(name=rule.name, written=functools.partial(str, rule.split), literals=rule.literals) for rule in split
    )
    return pack, Sieve(lambda: (rule.pattern for rule in pack.rules))


@functools.cache
def _anything() -> Sieve:
    """One search for rules, keys of services, assignments, told values and encodings, in this order."""
    rules = _pack().rules
    bare = [place for place, rule in enumerate(rules) if rule.bare]
    telling, said = credentials_in_prose.patterns()
    first, english = len(rules) + 2, len(said) - 1
    others = (read("secrets")["services"]["gate"], read("credentials_in_prose")["assigned"]["gate"], *said, *TRACES)
    return Sieve(
        lambda: (*(rule.pattern for rule in rules), *others), {RUN: bare, telling: range(first, first + english)}
    )


def calm(text: Text) -> bool:
    """Whether one look at the whole text rules out any finding, in it and in each of its lines.

    False means only that it has to be scanned.
    """
    if not text.is_plain or not _anything().silent(text.data):
        return False
    return _split_pack()[1].silent(text.data.translate(None, _JUNK_BYTES))


def scan(given: str | Text) -> list[Finding]:
    """Return what looks like a secret, by start of span, then end, longer first."""
    text = given if isinstance(given, Text) else Text(given)
    form = text.normal
    if form.text == text.text:
        findings = list(_plain(text, _anything().matching(text.data)))
    else:
        findings = list(_plain(form))
        if form.origin is None:
            # A folded letter may have been part of the secret itself.
            findings += _plain(text)
    if form.unescaped is not None:
        findings += _plain(form.unescaped)
    for piece in form.hidden:
        # One finding covers the run: half an encoding is no safer than the whole.
        inner = next(iter(_plain(Text(piece.text))), None)
        if inner is not None:
            found = Finding(detector=inner.detector, start=piece.start, end=piece.end, certainty=inner.certainty)
            findings.append(found)
    if not _split_pack()[1].silent(form.data.translate(None, _JUNK_BYTES)):
        findings += _split(form)
    return settled(placeholders.without_stand_ins(text.text, findings), len(text.text))


def _plain(text: Text, occurring: Collection[int] | None = None) -> Iterator[Finding]:
    """Yield findings of all rules, or only of those that are known to occur, by their places in ``_anything``."""
    rules = len(_pack().rules)
    if occurring is None or occurring:
        if occurring is None or min(occurring) < rules:
            yield from _pack().scan(text)
        # Names of services are looked for where a value stands that may be a key: most texts have none.
        if (occurring is None or rules in occurring) and text.occurs(read("secrets")["services"]["gate"]):
            yield from _services().scan(text)
        yield from _assigned(text)
        yield from credentials_in_prose.in_prose(
            text, None if occurring is None else {place - rules - 2 for place in occurring}
        )


def _split(form: Text) -> Iterator[Finding]:
    """Find keys broken up by blanks, line ends, quotes and plus signs."""
    whole = form.text
    tight = Text(form.data.translate(None, _JUNK_BYTES).decode())
    rules = _split_pack()[0].awake(tight)
    if not rules or len(tight.text) == len(whole):
        return
    kept = form.places_without(_JUNK)
    for rule in rules:
        for count, (start, end) in enumerate(tight.spans(rule.pattern)):
            if count > 200:
                return
            body = tight.text[start:end]
            first, last = kept[start], kept[end - 1] + 1
            while last < len(whole) and (whole[last] in "-_" or (whole[last].isascii() and whole[last].isalnum())):
                last += 1
            glued = first > 0 and whole[first - 1].isascii() and whole[first - 1].isalnum()
            if (
                last - first > end - start
                and not glued
                and not_example(body)
                and entropy(body) >= 3.2
                and digits(body[4:])
            ):
                yield located(form, first, last, rule.name, "certain")


@functools.cache
def _assignment() -> str:
    table = read("credentials_in_prose")["assigned"]
    password, key = (
        any_word(sorted(listed(table[name]), key=lambda word: (-len(word), word))) for name in ("password", "key")
    )
    return rf"(?i)(?:(?P<p>{password})|(?P<k>{key})){table['after']}"


def _assigned(text: Text) -> Iterator[Finding]:
    """Yield the values assigned to secret-named variables: ``DB_PASSWORD=...``, ``"api_key": "..."`` (4)."""
    if not text.occurs(read("credentials_in_prose")["assigned"]["gate"]):
        return
    whole = text.text
    for count, groups in enumerate(text.groups(_assignment())):
        start, end = groups["v"]
        if count >= _MOST_ASSIGNED:
            yield located(text, start, len(whole), "secret_assignment", "likely")
            return
        value = whole[start:end].rstrip(".)]}\\" if "(" not in whole[start:end] else "\\")
        first = groups[""][0]
        name = groups.get("p") or groups["k"]
        glued = first > 0 and whole[first - 1].isalnum() and whole[first].islower() and name[1] - name[0] <= 4
        if "p" in groups:
            # Only code and configuration assign a plain quoted word: password = "sunshine".
            word = groups["q"][1] > groups["q"][0] and value.isalpha() and "=" in whole[name[1] : start]
            # So do a variable of the environment and a line of settings: PGPASSWORD=sunshine.
            word = word or (value.isalpha() and _is_setting(whole, first, name, start, end))
            counts = not glued and (strong(value) or passphrase(value) or (word and _word_assigned(value)))
        else:
            value = value.split("&", 1)[0]
            counts = high_entropy(value, least=12) and (dense(value) or not ordinary(value)) and "sha256:" not in value
            counts = counts and not (glued and whole[first - 1].islower())
            if whole[slice(*name)].lower() == "key":
                counts = counts and _names_a_secret(whole[max(0, first - 40) : first]) and digits(value) >= 3
        if counts and len(value) >= 4:
            yield located(text, start, start + len(value), "secret_assignment", "likely")


def _names_a_secret(before: str) -> bool:
    """Whether a variable whose name ends in "key" may hold a secret: ``CLAY_KEY``, and not ``cache_key``."""
    if not before.endswith(("_", "-")):
        return False
    return credentials_in_prose.last_word(before) not in credentials_in_prose.no_keys()


def _is_setting(text: str, first: int, name: tuple[int, int], start: int, end: int) -> bool:
    """Whether a word is assigned to a variable in capitals, or at the end of a line to ``some_password:``."""
    capitals = text[slice(*name)].isupper() and text[name[1] : start] == "="
    line = first > 0 and text[first - 1] in "_-" and text[end : end + 1] in ("", "\n")
    return (capitals or line) and credentials_in_prose.plain_word(text[start:end])


def _word_assigned(value: str) -> bool:
    usual = value.lower() in {"password", "secret", "test", "pass"}
    return not (usual or placeholder(value) or ordinary(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class InContent:
    """The first secret of a blob's content."""

    detector: str
    #: Line of a text, from 1; None in what is no text.
    line: int | None


def secret_in(data: bytes, text: str | None) -> InContent | None:
    """Return the first secret of a content, None when there is none; ``text`` is the content read as a text (5)."""
    if text is not None:
        for start, part in _windows(text):
            for finding in scan(part):
                line = text.count("\n", 0, start + finding.start) + 1
                return InContent(detector=finding.detector, line=line)
        return None
    narrow, wide = rb"[\t\n\r\x20-\x7e]{16,}", rb"(?:[\t\n\r\x20-\x7e]\0){16,}"
    for pattern in (narrow, wide):
        runs = b"\n".join(match[0] for match in re.finditer(pattern, data)).decode("ascii").replace("\0", "")
        for _, part in _windows(runs):
            for finding in scan(part):
                if finding.certainty == "certain":
                    return InContent(detector=finding.detector, line=None)
    return None


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Yield (start, part) of a text; a part ends at a line's end where there is one in its last quarter."""
    start = 0
    while start + WINDOW < len(text):
        end = start + WINDOW
        cut = text.rfind("\n", end - WINDOW // 4, end)
        end = end if cut < 0 else cut
        yield start, text[start:end]
        start = end - OVERLAP
    if text[start:].strip():
        yield start, text[start:]
