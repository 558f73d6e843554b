"""The commands that read."""

from __future__ import annotations

import pytest


def test_a_missing_embedder_is_one_visible_line(run, saved):
    assert run("recall", "indentation").err.splitlines() == ["no embedder: found by words alone"]


READS = [("list",), ("recall", "tabs"), ("context", "tabs")]


@pytest.mark.parametrize("found", [False, True])
@pytest.mark.parametrize("read", READS)
def test_a_read_names_scopes_below_to_the_owner_only(run, read, found):
    run("remember", "Ana prefers tabs", "--scope", "orion")
    if found:
        run("remember", "We all prefer tabs", "--as", "operator")
    told = (
        'in scopes below was not read (/agents/orion); at(scope="/agents/orion") or --scope /agents/orion reads there'
    )
    assert [told in note for note in run(*read, "--json").json["notes"]].count(True) == 1
    assert [run(*read, *more).err.count(told) for more in ([], ["--as", "operator"], ["--as", "agent"])] == [1, 1, 0]
    assert "not read" not in run(*read, "--scope", "/agents/orion").err


@pytest.mark.parametrize("read", [("list", "--within", "/"), ("recall", "tabs", "--within", "/")])
def test_a_read_of_what_lies_below_names_no_scope(run, read):
    run("remember", "Ana prefers tabs", "--scope", "orion")
    assert "not read" not in run(*read, "--as", "operator").err


@pytest.mark.parametrize("option", ["--user", "--agent", "--project"])
def test_a_name_in_another_case_is_said(run, option):
    run("remember", "Ana prefers tabs", option, "ana", "--as", "operator")
    told = f"/{option[2:]}s/Ana and /{option[2:]}s/ana differ only in upper and lower case"
    assert [" ".join(run(*read, option, "Ana").err.split()).count(told) for read in READS] == [1, 1, 1]
    wrote = run("remember", "Ana rows on Sundays", option, "Ana", "--as", "operator", "--json")
    assert [told in each["detail"] for each in wrote.json["reasons"]].count(True) == 1


def test_a_list_that_is_cut_says_so(run, saved):
    run("remember", "Bo prefers spaces for indentation", "--as", "operator")
    ran = run("list", "--limit", "1", "--json")
    assert (ran.json["notes"], len(ran.json["items"])) == (["only the newest 1 are shown; --no-limit shows all"], 1)


def test_a_list_of_ended_ones_says_which_they_are(run, saved):
    run("forget", saved["id"], "--reason", "over", "--as", "operator")
    assert run("list", "--include-ended").out.splitlines()[-1].endswith(" · retired")


def test_a_list_says_until_when_a_memory_holds(run, saved):
    until = run("remember", "Guests sleep in the study", "--ttl", "3d", "--json").json["records"][0]["expires_at"]
    assert f"until {until[:16].replace('T', ' ')} UTC" in " ".join(run("list").out.split())


def test_a_log_that_is_cut_says_how_to_go_on(run, saved):
    run("remember", "Bo prefers spaces for indentation", "--as", "operator")
    assert run("log", "--limit", "1").out.splitlines()[-1] == "older commits: keepward log --before 2"


def test_context_prints_its_text_and_nothing_else_on_stdout(run, saved):
    told = run("context", "indentation", "--budget", "500", "--json").json["text"]
    assert run("context", "indentation", "--budget", "500").out.rstrip("\n") == told.rstrip("\n")


def test_core_over_the_budget_is_an_error_with_code_1(run, held):
    ran = run("context", "plan", "--budget", "1", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "context_too_small")


@pytest.mark.parametrize("command", ["recall", "get", "status"])
def test_reading_a_missing_store_exits_8_and_makes_none(run, tmp_path, command):
    more = ["x"] if command in {"recall", "context", "get", "history"} else []
    ran = run(command, *more)
    assert (ran.code, "keepward init" in ran.err, list(tmp_path.glob("*.db"))) == (8, True, [])


def test_recall_shows_weak_hits_and_labels_them(run, saved):
    for n in range(4):
        run("remember", f"Crew {n} checks the indentation of every plank of deck {n}", "--as", "operator")
    hits = run("recall", "who prefers tabs for indentation?", "--json").json["hits"]
    weak = [hit["memory"]["text"] for hit in hits if hit["weak"]]
    shown = " ".join(run("recall", "who prefers tabs for indentation?").out.split())
    assert (bool(weak), [text in shown for text in weak], shown.count("weak, score")) == (
        True,
        [True] * len(weak),
        len(weak),
    )


def test_a_recall_of_too_many_gets_the_range(run, saved):
    ran = run("recall", "tabs", "--limit", "1001")
    assert (ran.code, ran.err.strip()) == (2, "keepward: limit is from 1 to 1,000")


@pytest.mark.parametrize("limit", ["0"])
@pytest.mark.parametrize("name", ["recall", "list", "log", "pending", "contradictions"])
def test_a_limit_of_nothing_is_refused_with_what_helps(run, saved, name, limit):
    ran = run(name, *(["tabs"] if name == "recall" else []), "--limit", limit)
    told = {"recall": "limit is from 1 to 1,000", "contradictions": "limit is from 1 to 100"}.get(
        name, "limit is at least 1"
    )
    told += "; --no-limit shows all" if name in {"list", "pending"} else ""
    assert (ran.code, ran.err.strip()) == (2, f"keepward: {told}")


@pytest.mark.parametrize("name", ["get", "blame"])
def test_no_python_is_printed_to_people(run, name):
    given = ["--metadata", '{"stars": {"of": [1, null, true]}}', "--as", "operator", "--json"]
    kept = run("remember", "The ferry leaves at six", *given).json["id"]
    shown = " ".join(run(name, kept).out.split())
    assert ('{"stars": {"of": [1, null, true]}}' in shown, "None" in shown, "{'" in shown) == (True, False, False)


def test_a_switch_is_printed_as_yes_or_no(run, saved):
    other = run("context", "tabs", "--json").json["receipt"]["id"]
    one = run("context", "tabs", "--include-sensitive", "--as", "operator", "--json").json["receipt"]["id"]
    shown = run("context-diff", one, other).out
    assert ("include sensitive  yes, no" in shown, "True" in shown) == (True, False)
