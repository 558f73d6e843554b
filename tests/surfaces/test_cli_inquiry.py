"""The commands of an inquiry, and the drill."""

from __future__ import annotations

import pytest

from keepward.drill.drill import DrillResult


@pytest.fixture
def poison(run):
    return run("remember", "Refunds go by wire", "--tier", "archival", "--source", "web", "--json").json


def test_impact_lists_memories_and_contexts(run, poison):
    context = run("context", "refunds", "--json").json["receipt"]
    found = run("impact", "--source", "web", "--json").json
    assert ([each["id"] for each in found["direct"]], [each["receipt"] for each in found["contexts"]]) == (
        [poison["id"]],
        [context],
    )


def test_impact_by_nothing_exits_2(run, poison):
    assert run("impact").code == 2


def test_impact_as_an_agent_exits_7(run, poison):
    assert run("impact", "--source", "web", "--as", "agent").code == 7


def test_contain_without_a_digest_shows_the_plan_and_changes_nothing(run, poison):
    plan = run("contain", "--source", "web", "--json").json
    assert (plan["applied"], run("get", poison["id"], "--json").json["status"]) == (False, "active")


def test_contain_with_the_digest_takes_it_out_of_the_prompt(run, poison):
    plan = run("contain", "--source", "web", "--json").json
    done = run("contain", "--source", "web", "--apply", plan["digest"], "--reason", "bad page", "--json").json
    assert (done["applied"], "wire" in run("context", "refunds", "--json").json["text"]) == (True, False)


def test_contain_with_another_digest_exits_4(run, poison):
    assert run("contain", "--source", "web", "--apply", "0" * 64).code == 4


def test_contain_as_an_agent_exits_7(run, poison):
    plan = run("contain", "--source", "web", "--json").json
    assert run("contain", "--source", "web", "--apply", plan["digest"], "--as", "agent").code == 7


def test_contain_says_how_to_undo_it(run, poison):
    plan = run("contain", "--source", "web", "--json").json
    done = run("contain", "--source", "web", "--apply", plan["digest"])
    assert "undo it with `keepward rollback " in done.err


def test_blame_names_the_commit_of_a_value(run, saved):
    fields = run("blame", saved["id"], "--json").json["fields"]
    assert next(each["commit"] for each in fields if each["field"] == "text") == saved["commit"]


def test_blame_of_an_unknown_name_exits_3(run, saved):
    assert run("blame", "nothing").code == 3


def test_contradictions_show_both_texts_and_the_command_that_settles_them(run):
    older, newer = (
        run("remember", f"the API runs on port {port}", "--tier", "archival", "--json").json["id"]
        for port in ("8080", "9443")
    )
    shown = run("contradictions").out
    settle = f"keepward supersede {older} --by {newer} --reason TEXT"
    assert all(each in shown for each in ("port 8080", "port 9443", settle))


def test_the_command_that_contradictions_suggest_settles_them(run):
    for port in ("8080", "9443"):
        run("remember", f"the API runs on port {port}", "--tier", "archival")
    [pair] = run("contradictions", "--json").json["items"]
    done = run(*pair["next"].split()[1:], "--as", "operator")
    assert (done.code, run("contradictions", "--json").json["items"]) == (0, [])


def test_bisect_names_the_commit_and_how_to_undo_it(run, saved):
    found = run("bisect", "indentation", "--contains", "tabs", "--json").json
    assert (found["commit"]["id"], found["next"][0]) == (saved["commit"], f"keepward rollback {saved['commit']}")


def test_context_diff_names_the_commit_behind_what_was_added(run, saved):
    first = run("context", "indentation", "--json").json["receipt"]
    added = run("remember", "Bo prefers spaces for indentation", "--tier", "archival", "--json").json
    second = run("context", "indentation", "--json").json["receipt"]
    found = run("context-diff", first, second, "--json").json["items"]
    assert [(each["change"], each["id"], each["commit"]) for each in found] == [("added", added["id"], added["commit"])]


@pytest.fixture
def found(monkeypatch):
    """Let the drill find one line of a status."""

    def answer(status):
        line = DrillResult(name="x", title="a page writes a core block", status=status, defence="none")
        monkeypatch.setattr("keepward.drill.drill.drill", lambda *_, **__: [line])

    return answer


@pytest.mark.parametrize(("status", "code"), [("fired", 0), ("breached", 1), ("inconclusive", 1)])
def test_a_drill_exits_by_its_worst_line(run, saved, found, status, code):
    found(status)
    assert run("drill").code == code


def test_a_drill_names_the_breached_defence(run, saved, found):
    found("breached")
    shown = run("drill").out
    assert ("breached" in shown, "a page writes a core block" in shown) == (True, True)


def test_a_drill_without_a_store_exits_8(run):
    assert run("drill").code == 8


def test_a_drill_as_an_agent_exits_7(run, saved):
    assert run("drill", "--as", "agent").code == 7
