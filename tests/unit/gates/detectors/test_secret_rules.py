"""Each line of ``rules/secrets.toml`` finds its example and passes a near miss."""

from random import Random
from string import ascii_lowercase, ascii_uppercase, digits

import pytest

from keepward.gates.detectors import secrets, tables
from keepward.gates.detectors.normalize import Text
from keepward.gates.detectors.rules import make_rule
from keepward.gates.detectors.secrets import CHARACTERS, TOKEN_RUN, parse_formats, parse_rule
from keepward.gates.detectors.tables import read, split_entries

TABLES = read("secrets")
RULES = [parse_rule(line) for line in TABLES["rules"].splitlines()]
FORMATS = [(name, form) for name, forms in map(parse_formats, TABLES["formats"].splitlines()) for form in forms]


def rule_of(row):
    return make_rule(row, lambda: row["pattern"], split_entries(row["literals"]))


def near_miss(row):
    """The example with a placeholder in the place of its value, or what the line names as a look-alike."""
    if "not" in row:
        return row["not"]
    text = row["example"]
    start, end = next(Text(text).spans(row["pattern"]))
    return text[:start] + text[start:end][:2] + "x" * 8 + text[end:]


def names(text):
    return {finding.detector for finding in secrets.scan(text)}


def test_each_rule_finds_its_example():
    missed = []
    for row in RULES:
        text = row["example"]
        found = names(text)
        # Whether by this rule or by one that covers it, the detector says so.
        if not found or not (row["name"] in found or any(rule_of(row).findings(Text(text).normal))):
            missed.append((row["name"], text))
    assert missed == []


def test_each_rule_passes_a_near_miss():
    assert [(row["name"], near_miss(row)) for row in RULES if any(rule_of(row).findings(Text(near_miss(row))))] == []


def test_a_literal_of_each_rule_is_in_its_example():
    literals = [(row, literal) for row in RULES for literal in split_entries(row["literals"])]
    assert [literal for _, literal in literals if literal != literal.lower()] == []
    lower = [(row, Text(row["example"]).normal.lower) for row in RULES]
    assert [
        row["name"] for row, text in lower if not any(each in text for each in split_entries(row["literals"]))
    ] == []


def made_token(form, characters):
    """A token of a format, each run filled by ``characters``: of the set of characters, and how many."""

    def fill(run):
        kind, least, _, _ = run.groups()
        letters = CHARACTERS[kind].replace("A-Z", ascii_uppercase).replace("a-z", ascii_lowercase) if kind else ""
        letters = letters.replace("0-9", digits).replace("a-f", "abcdef").replace("A-F", "ABCDEF")
        if kind:
            return characters(letters, int(least))
        whole = characters("0123456789abcdef", 32)
        return "-".join((whole[:8], whole[8:12], whole[12:16], whole[16:20], whole[20:]))

    return TOKEN_RUN.sub(fill, form)


def test_a_token_of_each_format_is_found():
    missed = []
    for name, form in FORMATS:
        rnd = Random(form)
        token = made_token(form, lambda letters, count, rnd=rnd: "".join(rnd.choices(letters, k=count)))
        found = secrets.scan(f"use {token} here")
        if not any(each.start <= 4 and each.end >= 4 + len(token) * 2 // 3 for each in found):
            missed.append((name, token))
    assert missed == []


def test_a_placeholder_in_a_format_is_no_token():
    assert [form for name, form in FORMATS if name in names(made_token(form, lambda _, count: "x" * count))] == []


def test_random_value_near_a_service_name_is_found():
    value = "9fK2mX7bR1vTz8WcY5nHd4Qp"
    services = TABLES["services"]["names"].split()
    assert [each for each in services if not secrets.scan(f"{each}_key: {value}")] == []
    assert [each for each in services if secrets.scan(f"{each}_project_id: {value}")] == []


@pytest.fixture
def fresh_rules():
    """Let the next scan read the tables anew, and again after the test."""
    caches = (secrets._rule_sets, secrets._prefilter_pattern, secrets._split_rules)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_an_added_rule_is_read(monkeypatch, fresh_rules):
    line = "toy_token  toy_  toy_[a-z0-9]{12}  toy_4f9k2l7m8x1q\n"
    added = {**TABLES, "rules": TABLES["rules"] + line}
    given = tables.read
    monkeypatch.setattr(secrets, "read", lambda name, **how: added if name == "secrets" else given(name, **how))
    text = "the key is toy_9f2k4m1x7q3z for now"
    assert [text[each.start : each.end] for each in secrets.scan(text)] == ["toy_9f2k4m1x7q3z"]
