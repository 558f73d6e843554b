"""The commands on the journal."""

from __future__ import annotations


def test_log_lists_the_newest_first(run, saved, held):
    assert [each["seq"] for each in run("log", "--json").json["commits"]] == [2, 1]


def test_log_names_the_receipt_of_each_commit(run, saved):
    assert run("log", "--json").json["commits"][0]["receipt"] == saved["receipt"]


def test_log_tells_where_the_next_page_begins(run, saved, held):
    first = run("log", "--limit", "1", "--json").json
    second = run("log", "--limit", "1", "--before", str(first["next_before"]), "--json").json
    assert [each["seq"] for each in second["commits"]] == [1]


def test_show_finds_a_commit_by_number(run, saved):
    assert run("show", "1", "--json").json["id"] == saved["commit"]


def test_show_has_before_and_after(run, saved):
    event = run("show", saved["commit"], "--json").json["events"][0]
    assert (event["before"], event["after"]["text"]) == (None, "Ana prefers tabs for indentation")


def test_an_unknown_commit_exits_3(run, saved):
    assert run("show", "99").code == 3


def test_diff_from_the_empty_store_has_everything(run, saved):
    assert [each["id"] for each in run("diff", "0", "1", "--json").json["differences"]] == [saved["id"]]


def test_diff_of_a_state_with_itself_is_empty(run, saved):
    assert run("diff", "1", "1", "--json").json["differences"] == []


def test_rollback_takes_a_memory_back(run, saved):
    run("rollback", saved["commit"])
    assert run("list", "--json").json["count"] == 0


def test_a_rollback_of_what_was_forgotten_since_is_a_conflict_and_no_fault(run, saved):
    run("forget", saved["id"], "--reason", "wrong", "--as", "operator")
    ran = run("rollback", saved["commit"])
    assert (ran.code, "conflict" in ran.out, "unexpected" in ran.err) == (4, True, False)


def test_rollback_carries_the_documented_keys(run, saved):
    found = run("rollback", saved["commit"], "--json").json
    assert found.keys() >= {"receipt", "targets", "conflicts", "dependents"}


def test_a_dry_run_changes_nothing(run, saved):
    before = run("status", "--json").json["head"]
    planned = run("rollback", saved["commit"], "--dry-run", "--json").json
    assert (planned["applied"], len(planned["targets"]), run("status", "--json").json["head"]) == (False, 1, before)


def test_a_later_change_of_the_same_memory_is_a_conflict(run, saved):
    run("revise", saved["id"], "Ana prefers spaces", "--reason", "new", "--as", "operator")
    ran = run("rollback", saved["commit"], "--json")
    assert (ran.code, ran.json["applied"], ran.json["conflicts"][0]["seq"]) == (4, False, 2)


def test_with_later_takes_the_later_change_too(run, saved):
    run("revise", saved["id"], "Ana prefers spaces", "--reason", "new", "--as", "operator")
    assert run("rollback", saved["commit"], "--with-later", "--json").json["applied"] is True


def test_several_changes_are_undone_one_after_the_other_newest_first(run, saved):
    made = [
        run("revise", saved["id"], f"Ana prefers {what}", "--reason", "new", "--as", "operator", "--json").json[
            "commit"
        ]
        for what in ("spaces", "both", "neither")
    ]
    assert run("rollback", made[0]).code == 4
    for commit in reversed(made):
        assert run("rollback", commit).code == 0
    assert run("get", saved["id"], "--json").json["text"] == "Ana prefers tabs for indentation"


def test_a_second_rollback_gives_the_first_receipt(run, saved):
    first = run("rollback", saved["commit"], "--json").json
    again = run("rollback", saved["commit"], "--json").json
    assert (again["already"], again["receipt"]) == (True, first["receipt"])


def test_an_agent_may_not_undo_the_owner(run, saved):
    assert run("rollback", saved["commit"], "--as", "agent").code == 7


def test_a_receipt_is_found_by_its_id(run, saved):
    assert run("receipt", saved["receipt"], "--json").json["kind"] == "commit"


def test_an_unknown_receipt_exits_3(run, saved):
    assert run("receipt", "nothing").code == 3
