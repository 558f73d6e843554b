"""The commands on the journal."""

from __future__ import annotations


def test_log_reports_where_the_next_page_begins(run, saved, held):
    first = run("log", "--limit", "1", "--json").json
    second = run("log", "--limit", "1", "--before", str(first["next_before"]), "--json").json
    assert [each["commit"]["seq"] for each in second["items"]] == [1]


def test_rollback_of_a_later_forgotten_memory_is_a_conflict(run, saved):
    run("forget", saved["id"], "--reason", "wrong", "--as", "operator")
    ran = run("rollback", saved["commit"]["id"])
    assert (ran.code, "conflict" in ran.out, "unexpected" in ran.err) == (4, True, False)


def test_several_changes_are_undone_one_after_the_other_newest_first(run, saved):
    made = [
        run("revise", saved["id"], f"Ana prefers {what}", "--reason", "new", "--as", "operator", "--json").json[
            "commit"
        ]["id"]
        for what in ("spaces", "both", "neither")
    ]
    assert run("rollback", made[0]).code == 4
    for commit in reversed(made):
        assert run("rollback", commit).code == 0
    assert run("get", saved["id"], "--json").json["text"] == "Ana prefers tabs for indentation"
