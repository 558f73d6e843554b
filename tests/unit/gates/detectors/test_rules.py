"""Every rule of every table finds its positive example, passes its negative one, and is reachable by its literals."""

import io
import json
from importlib import import_module
from pathlib import Path

import pytest

from keepward.gates.detectors import credentials_in_prose, injection, secrets, tables
from keepward.gates.detectors.normalize import Text
from keepward.gates.detectors.rules import load
from keepward.gates.detectors.tables import read, split_entries

#: Tables of rules by file, and the detector that reads them.
TABLES = {
    "injection": (injection, ("rule",)),
}
RULES = [
    pytest.param(detector, read(file, include_examples=True)[table], load(file, table), id=f"{file}-{table}")
    for file, (detector, names) in TABLES.items()
    for table in names
]
FILES = [path.stem for path in sorted((Path(tables.__file__).parent / "rules").glob("*.toml"))]


def example(text):
    """An example as it is read: without the middle dot that keeps scanners of repositories away."""
    return Text(text.replace("·", "")).normal


def names(detector, text):
    return {finding.detector for finding in detector.scan(text)}


@pytest.mark.parametrize(("detector", "rows", "rules"), RULES)
def test_each_rule_finds_its_positive_example(detector, rows, rules):
    missed = []
    for row, rule in zip(rows, rules, strict=True):
        text = example(row["positive"])
        found = names(detector, text)
        # Whether by this rule or by one that covers it, the detector says so.
        if not found or not (rule.name in found or any(rule.findings(text))):
            missed.append((rule.name, row["positive"]))
    assert missed == []


@pytest.mark.parametrize(("detector", "rows", "rules"), RULES)
def test_each_rule_passes_its_negative_example(detector, rows, rules):
    pairs = zip(rows, rules, strict=True)
    pairs = ((row.get("negative", ""), rule) for row, rule in pairs)
    assert [negative for negative, rule in pairs if any(rule.findings(example(negative)))] == []


@pytest.mark.parametrize(("detector", "rows", "rules"), RULES)
def test_a_literal_of_each_rule_is_in_its_positive_example(detector, rows, rules):
    assert [rule.name for rule in rules for literal in rule.literals if literal != literal.lower()] == []
    texts = [example(row["positive"]).lower for row in rows]
    pairs = [(rule, text) for rule, text in zip(rules, texts, strict=True) if rule.literals]
    assert [rule.name for rule, text in pairs if not any(literal in text for literal in rule.literals)] == []


@pytest.mark.parametrize("file", FILES)
def test_every_table_names_where_it_is_from(file):
    tables = read(file, include_examples=True)
    rows = [row for table in tables.values() if isinstance(table, list) for row in table if isinstance(row, dict)]
    assert tables.get("source") or (rows and all(row.get("source") for row in rows))


@pytest.mark.parametrize(
    "row",
    [
        *read("credentials_in_prose", include_examples=True)["phrase"],
        read("credentials_in_prose", include_examples=True)["assigned"],
    ],
    ids=lambda row: row["positive"],
)
def test_a_phrase_reports_a_password(row):
    assert secrets.scan(row["positive"])
    assert not secrets.scan(row["negative"])


PROXIMITY = read("credentials_in_prose", include_examples=True)["rule"]


@pytest.mark.parametrize("row", PROXIMITY, ids=lambda row: row["name"])
def test_proximity_rule_matches_its_positive_and_skips_its_negative_example(row):
    told = {rule for *_, rule in credentials_in_prose.find_near_words(example(row["positive"]).text)}
    assert row["name"] in told
    assert names(secrets, row["positive"]) == {"told_secret"}
    assert not list(credentials_in_prose.find_near_words(example(row["negative"]).text))


def test_proximity_words_are_written_in_normal_form():
    lists = read("credentials_in_prose")["words"].values()
    assert [word for text in lists for word in split_entries(text) if Text(word).normal.text != word] == []


def test_the_program_answers_each_line_and_reports_bad_ones(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[4])
    answer = import_module("evals.detect").answer
    out, err = io.StringIO(), io.StringIO()
    status = answer("secrets", ['{"id": 1, "text": "my pin is 4711"}', "not json"], out, err)
    assert (status, json.loads(out.getvalue())) == (1, {"id": 1, "flag": True, "spans": [[10, 14]]})
