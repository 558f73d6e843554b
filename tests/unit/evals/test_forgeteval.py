"""Cases of ForgetEval, written by hand in its format."""

from __future__ import annotations

import json

import pytest
from evals import forgeteval
from evals.forgeteval import read, run, summary

FACTS = [
    "Rosa's locker is number 17.",
    "Rosa's bicycle is red.",
    "The choir sings on Tuesdays.",
    "Nils bakes rye bread.",
]


def case(mutations, query, wanted, forbidden, **more):
    return {
        "id": "case-1",
        "category": "one",
        "setup_facts": FACTS,
        "mutations": mutations,
        "final_query": query,
        "must_contain": wanted,
        "must_not_contain": forbidden,
    } | more


@pytest.fixture
def tried(tmp_path):
    def verdict(*cases):
        file = tmp_path / "cases.json"
        file.write_text(json.dumps({"admitted_cases": cases}), "utf-8")
        return list(run(read(file), embedder="hashed"))

    return verdict


@pytest.mark.parametrize(
    ("mutations", "query", "wanted", "forbidden"),
    [
        (
            [["supersede", "Rosa's locker number", "Rosa moved to locker 40."]],
            "Which locker does Rosa have?",
            ["locker 40"],
            ["number 17"],
        ),
        ([["release", "Rosa's bicycle is red"]], "What do you know of Rosa?", ["17"], ["bicycle"]),
        ([["purge", "Rosa's locker is number 17"]], "What do you know of Rosa?", ["bicycle"], ["number 17"]),
        # The new text is there already.
        ([["supersede", "Rosa's locker number", FACTS[0]]], "Rosa's locker", ["17"], []),
    ],
)
def test_a_mutation_leaves_what_is_wanted_and_nothing_forbidden(tried, mutations, query, wanted, forbidden):
    (verdict,) = tried(case(mutations, query, wanted, forbidden))
    assert (verdict.asked, verdict.probed) == (True, True)


def test_what_is_found_by_its_own_words_is_not_forgotten(tried):
    kept = [f"Shelf {number} is for Rosa's jars." for number in range(6)]
    (verdict,) = tried(case([], "Rosa's jars on a shelf", [], ["rye bread"], setup_facts=[*FACTS, *kept]))
    assert (verdict.asked, verdict.probed) == (True, False)


def test_cases_do_not_see_each_other(tried):
    first = case([], "Rosa's locker", ["17"], [])
    second = case([], "Rosa's locker", [], ["17"], id="case-2", setup_facts=["The choir sings on Tuesdays."])
    assert [each.probed for each in tried(first, second)] == [True, True]


def test_figures_are_shares_by_category_and_of_all(tried):
    good = case([], "Rosa's locker", ["17"], [])
    bad = case([], "Rosa's locker", [], ["17"], id="case-2", category="two")
    figures = summary(tried(good, bad))
    assert {name: each["probed"] for name, each in figures.items()} == {"all cases": 50, "one": 100, "two": 0}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("{", "not in the ForgetEval format"),
        ({"cases": []}, "'admitted_cases'"),
        ([], "has no cases"),
        ([{"id": "x"}], "'mutations'"),
        ([case([["purge", "a", "b"]], "q", [], [])], "case-1 has a mutation purge with 2 texts"),
        ([case([["rewrite", "a"]], "q", [], [])], "a mutation rewrite"),
    ],
)
def test_a_file_that_is_malformed_is_an_error(tmp_path, capsys, value, says):
    file = tmp_path / "cases.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    assert forgeteval.main(["--data", str(file)]) == 1
    assert says in capsys.readouterr().err


def test_the_command_prints_a_table_and_as_json_each_case(tmp_path, capsys):
    file = tmp_path / "cases.json"
    file.write_text(json.dumps([case([], "Rosa's locker", ["17"], [])]), "utf-8")
    assert forgeteval.main(["--data", str(file), "--embedder", "none"]) == 0
    assert "| all cases | 1 | 100.0 | 100.0 |" in capsys.readouterr().out
    assert forgeteval.main(["--data", str(file), "--embedder", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cases"] == {"case-1": {"asked": True, "probed": True}}
