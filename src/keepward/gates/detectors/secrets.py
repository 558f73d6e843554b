"""Secrets in a text: documented provider formats, keys, credentials, assignments and passwords in prose.

Invariants
(1) Findings of a documented format are ``certain``; values in prose and in assignments are ``likely``.
(2) The same rules read the original text, its normal form, its unescaped form, the form without quotes and line breaks,
    and decoded base64 or hexadecimal.
(3) Spans refer to the original text.
(4) An assignment counts if the variable's name ends in a secret word (not ``token_count`` or ``key_id``) and the value
    is a literal, not a variable, call, template or path.
(5) In binary data, only runs of readable characters are read, and only documented formats count, because random bytes
    often resemble a password. Compressed and encrypted data are not opened.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from keepward.core.linear_patterns import compile_prefilter, escape_literal
from keepward.core.patterns import lazy_regex
from keepward.gates.detectors import credentials_in_prose, placeholders
from keepward.gates.detectors.checks import (
    count_digits,
    entropy,
    high_entropy,
    is_everyday_token,
    is_placeholder,
    is_random_identifier,
    looks_like_password,
    not_example,
    passphrase,
)
from keepward.gates.detectors.matcher import Finding, Rule, RuleSet, finding_at, merge_findings
from keepward.gates.detectors.normalize import TRACES, Text
from keepward.gates.detectors.rules import any_word, make_rule
from keepward.gates.detectors.tables import columns, read, split_entries

_JUNK = " \t\r\n\"'`+\\"
_JUNK_BYTES = _JUNK.encode()
#: Every match of a rule without a rare literal (``bare``) contains such a run.
LONG_RUN = r"[A-Za-z0-9%+./=_~-]{16}"
#: Maximum number of assigned values in one text; the rest of the text is then one finding.
_MAX_ASSIGNED = 250
#: Characters of a window over a blob, and overlap of two windows. The overlap is longer than any key block, so that a
#: block is always complete in one window.
WINDOW_CHARS, OVERLAP_CHARS = 65_536, 8_192
#: A run in the format of a token: its set of characters, and its length.
TOKEN_RUN = lazy_regex(r"\{([AaUzdhHwb])(\d+)(?:-(\d+)|(\+))?\}|\{u\}")
#: Set of characters of each letter, for use in a pattern.
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
    row = {"checks": "has_word_boundaries not_example"} | columns(line, "name", "literals", "pattern", "example")
    return row | {"checks": row["checks"].removeprefix("none"), "certainty": row.get("likely", "certain")}


def parse_formats(line: str) -> tuple[str, list[str]]:
    """Return the name and the forms of a line of ``formats``."""
    name, *forms = line.split()
    return name, forms


def _token_pattern(form: str) -> str:
    pattern, last = "", 0
    for run in TOKEN_RUN.finditer(form):
        kind, least, most, more = run.groups()
        counted = f"{{{least},{most or ''}}}" if most or more else f"{{{least}}}"
        pattern += escape_literal(form[last : run.start()]) + (f"[{CHARACTERS[kind]}]{counted}" if kind else _UUID)
        last = run.end()
    return pattern + escape_literal(form[last:])


@functools.cache
def _rule_sets() -> tuple[RuleSet, RuleSet]:
    """Return the rules with rare literals, and those whose matches all contain a `LONG_RUN` (``bare``)."""
    tables, rules = read("secrets"), []
    for line in tables["rules"].splitlines():
        row = parse_rule(line)
        rules.append(make_rule(row, functools.partial(str, row["pattern"]), split_entries(row["literals"])))
    for line in tables["formats"].splitlines():
        name, forms = parse_formats(line)
        for form in forms:
            literal = max(TOKEN_RUN.sub(" ", form).split(), key=len).lower()
            checks = f"has_word_boundaries not_example spread:{form.index('{')}"
            made_row: dict[str, Any] = {"name": name, "checks": checks, "bare": len(literal) < 5}
            rules.append(make_rule(made_row, functools.partial(_token_pattern, form), (literal,)))
    return RuleSet(rule for rule in rules if not rule.bare), RuleSet(rule for rule in rules if rule.bare)


@functools.cache
def _services() -> RuleSet:
    """Return rules for values assigned after names of services: one for each line of names."""
    table = read("secrets")["services"]

    def rule(names: list[str]) -> Rule:
        written = lambda: rf"(?i)\b{any_word(names)}{table['between']}(?P<v>{table['value']})"  # noqa: E731
        return make_rule({"name": "service_key", "certainty": "likely", "checks": "service_value"}, written, names)

    return RuleSet(rule(line.split()) for line in table["names"].splitlines())


@functools.cache
def _split_rules() -> tuple[tuple[Rule, ...], Any]:
    """Return the rules that also read a text without blanks, quotes and line ends, and a prefilter for them."""
    rules = tuple(rule for each in _rule_sets() for rule in each.rules if rule.split)
    return rules, compile_prefilter([rule.split for rule in rules])


@functools.cache
def _prefilter_pattern() -> str:
    """Return a pattern that occurs in every text with an unsplit secret, except for secrets in prose."""
    assigned, services = read("credentials_in_prose")["assigned"]["gate"], read("secrets")["services"]["gate"]
    gates = (_rule_sets()[0].gate, LONG_RUN, assigned, services, credentials_in_prose.phrase_patterns()[0], *TRACES)
    return "|".join(f"(?:{gate})" for gate in gates)


def cannot_match(text: Text) -> bool:
    """Whether a prefilter excludes any finding in the text and in each of its lines. False: it must be scanned."""
    if not text.is_plain or text.occurs(_prefilter_pattern()) or credentials_in_prose.may_be_near_words(text):
        return False
    return _split_rules()[1].Match(text.data.translate(None, _JUNK_BYTES)) is None


def scan(given: str | Text) -> list[Finding]:
    """Return likely and certain secrets, by start of span, then end, longer first."""
    text = given if isinstance(given, Text) else Text(given)
    form = text.normal
    findings = list(_plain(form))
    if form.text != text.text and form.origin is None:
        # A look-alike letter may be a part of the secret.
        findings += _plain(text)
    if form.unescaped is not None:
        findings += _plain(form.unescaped)
    for piece in form.decoded_runs:
        # One finding covers the complete run, because half of an encoding is no safer.
        inner = next(iter(_plain(Text(piece.text))), None)
        if inner is not None:
            found = Finding(detector=inner.detector, start=piece.start, end=piece.end, certainty=inner.certainty)
            findings.append(found)
    findings += _find_split_keys(form)
    return merge_findings(placeholders.drop_placeholders(text.text, findings), len(text.text))


def _plain(text: Text) -> Iterator[Finding]:
    """Yield the findings in one form of a text."""
    telling, bare = _rule_sets()
    yield from telling.scan(text)
    if text.occurs(LONG_RUN):
        yield from bare.scan(text)
    # Names of services are searched only in texts with a value that may be a key.
    if text.occurs(read("secrets")["services"]["gate"]):
        yield from _services().scan(text)
    yield from _find_assigned(text)
    yield from credentials_in_prose.find_in_prose(text)


def _find_split_keys(form: Text) -> Iterator[Finding]:
    """Find keys split by blanks, line ends, quotes and plus signs."""
    rules, filter_ = _split_rules()
    tight = form.data.translate(None, _JUNK_BYTES)
    matches = filter_.Match(tight)
    if matches is None or len(tight) == len(form.data):
        return
    content, closed_up, original = form.text, Text(tight.decode()), form.indices_without(_JUNK)
    for rule in map(rules.__getitem__, matches):
        for start, end in itertools.islice(closed_up.spans(rule.split), 200):
            body = closed_up.text[start:end]
            first, last = original[start], original[end - 1] + 1
            while last < len(content) and (
                content[last] in "-_" or (content[last].isascii() and content[last].isalnum())
            ):
                last += 1
            glued = first > 0 and content[first - 1].isascii() and content[first - 1].isalnum()
            random = not_example(body) and entropy(body) >= 3.2 and count_digits(body[4:])
            if last - first > end - start and not glued and random:
                yield finding_at(form, first, last, rule.name, "certain")


@functools.cache
def _assignment() -> str:
    table = read("credentials_in_prose")["assigned"]
    password, key = (
        any_word(sorted(split_entries(table[name]), key=lambda word: (-len(word), word)))
        for name in ("password", "key")
    )
    return rf"(?i)(?:(?P<p>{password})|(?P<k>{key})){table['after']}"


def _find_assigned(text: Text) -> Iterator[Finding]:
    """Yield the values assigned to secret-named variables: ``DB_PASSWORD=...``, ``"api_key": "..."`` (4)."""
    if not text.occurs(read("credentials_in_prose")["assigned"]["gate"]):
        return
    content = text.text
    for count, groups in enumerate(text.groups(_assignment())):
        start, end = groups["v"]
        if count >= _MAX_ASSIGNED:
            yield finding_at(text, start, len(content), "secret_assignment", "likely")
            return
        value = content[start:end].rstrip(".)]}\\" if "(" not in content[start:end] else "\\")
        first = groups[""][0]
        name = groups.get("p") or groups["k"]
        glued = first > 0 and content[first - 1].isalnum() and content[first].islower() and name[1] - name[0] <= 4
        if "p" in groups:
            # A plain word in quotes is assigned in code and configuration only: password = "sunshine".
            word = groups["q"][1] > groups["q"][0] and value.isalpha() and "=" in content[name[1] : start]
            # Environment variables and settings need no quotes: PGPASSWORD=sunshine.
            word = word or (value.isalpha() and _is_setting(content, first, name, start, end))
            counts = not glued and (looks_like_password(value) or passphrase(value) or (word and _word_assigned(value)))
        else:
            value = value.split("&", 1)[0]
            counts = (
                high_entropy(value, min_length=12)
                and (is_random_identifier(value) or not is_everyday_token(value))
                and "sha256:" not in value
            )
            counts = counts and not (glued and content[first - 1].islower())
            if content[slice(*name)].lower() == "key":
                counts = counts and _names_a_secret(content[max(0, first - 40) : first]) and count_digits(value) >= 3
        if counts and len(value) >= 4:
            yield finding_at(text, start, start + len(value), "secret_assignment", "likely")


def _names_a_secret(before: str) -> bool:
    """Whether a variable whose name ends in "key" may contain a secret: ``CLAY_KEY``, but not ``cache_key``."""
    if not before.endswith(("_", "-")):
        return False
    return credentials_in_prose.last_word(before) not in credentials_in_prose.nonsecret_key_qualifiers()


def _is_setting(text: str, first: int, name: tuple[int, int], start: int, end: int) -> bool:
    """Whether a word is assigned to a variable in capitals, or at the end of a line to ``some_password:``."""
    capitals = text[slice(*name)].isupper() and text[name[1] : start] == "="
    line = first > 0 and text[first - 1] in "_-" and text[end : end + 1] in ("", "\n")
    return (capitals or line) and credentials_in_prose.plain_word(text[start:end])


def _word_assigned(value: str) -> bool:
    usual = value.lower() in {"password", "secret", "test", "pass"}
    return not (usual or is_placeholder(value) or is_everyday_token(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSecret:
    """The first secret of a blob's content."""

    detector: str
    #: Line of a text, from 1; None in what is no text.
    line: int | None


def find_content_secret(data: bytes, text: str | None) -> ContentSecret | None:
    """Return the first secret of a content, or None. ``text`` is the decoded content, if it is text (5)."""
    if text is not None:
        for start, part in _windows(text):
            for finding in scan(part):
                line = text.count("\n", 0, start + finding.start) + 1
                return ContentSecret(detector=finding.detector, line=line)
        return None
    narrow, wide = rb"[\t\n\r\x20-\x7e]{16,}", rb"(?:[\t\n\r\x20-\x7e]\0){16,}"
    for pattern in (narrow, wide):
        runs = b"\n".join(match[0] for match in re.finditer(pattern, data)).decode("ascii").replace("\0", "")
        for _, part in _windows(runs):
            for finding in scan(part):
                if finding.certainty == "certain":
                    return ContentSecret(detector=finding.detector, line=None)
    return None


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Yield (start, part) of a text; a part ends at a line end if there is one in its last quarter."""
    start = 0
    while start + WINDOW_CHARS < len(text):
        end = start + WINDOW_CHARS
        cut = text.rfind("\n", end - WINDOW_CHARS // 4, end)
        end = end if cut < 0 else cut
        yield start, text[start:end]
        start = end - OVERLAP_CHARS
    if text[start:].strip():
        yield start, text[start:]
