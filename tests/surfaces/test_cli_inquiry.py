"""The commands of an inquiry, and the drill."""

from __future__ import annotations

import pytest

from keepward.drill.drill import DrillResult


@pytest.fixture
def poison(run):
    return run("remember", "Refunds go by wire", "--tier", "archival", "--source", "web", "--json").json


def test_impact_by_nothing_exits_2(run, poison):
    assert run("impact").code == 2


def test_contain_says_how_to_undo_it(run, poison):
    plan = run("contain", "--source", "web", "--json").json
    done = run("contain", "--source", "web", "--apply", plan["digest"])
    assert "undo it with `keepward rollback " in done.err


def test_contain_says_that_a_correction_stays_in_use(run, poison):
    (memory,) = run("list", "--json").json["items"]
    run("revise", memory["id"], "Tabs are fine", "--reason", "checked", "--as", "operator", "--speaker", "Ana")
    plan = run("contain", "--source", "web")
    assert "1 memory was corrected since by another writer and stays in use" in plan.err
    (now,) = run("list", "--json").json["items"]
    assert (now["speaker"], now["text_by"] == now["author"], "Tabs are fine" in run("list").out) == ("Ana", False, True)


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
    assert (found["commit"]["commit"]["id"], found["next"][0]) == (
        saved["commit"]["id"],
        f"keepward rollback {saved['commit']['id']}",
    )


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
