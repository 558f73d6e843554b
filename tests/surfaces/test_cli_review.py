"""The commands that decide."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from keepward.machine.clock import SystemClock


def test_many_that_wait_are_counted_with_how_several_are_decided(run):
    for number in range(11):
        run("remember", f"Ship app number {number}", "--tier", "core", "--key", "mission")
    assert "11 proposals; `approve` and `reject --reason` take several ids" in run("pending").err


def test_terminal_shows_newest_proposals_and_a_script_all(run, monkeypatch):
    monkeypatch.setattr("keepward.cli.review._DEFAULT_LIMIT", 2)
    for number in range(3):
        run("remember", f"Ship app number {number}", "--tier", "core", "--key", "mission")
    few = run("pending")
    assert [f"number {number}" in few.out for number in range(3)] == [False, True, True]
    assert "3 proposals; the newest 2 are shown" in few.err
    assert "number 0" in run("pending", "--no-limit").out
    asked = [run("pending", "--json", *more).json for more in ((), ("--limit", "1"), ("--limit", "1", "--no-limit"))]
    assert [(len(each["items"]), each["total"]) for each in asked] == [
        (3, 3),
        (1, 3),
        (3, 3),
    ]
    assert run("pending", "--limit", "0").code == 2


def test_the_default_actor_of_an_approval_is_an_operator(run, held):
    run("approve", held["item"]["id"])
    assert run("log", "--json").json["items"][0]["details"]["approved_by"].startswith("operator:")


def test_several_ids_print_results_and_exit_with_first_failure(run, held):
    ran = run("approve", "nobody", held["item"]["id"], "--json")
    assert ran.code == 3
    failed, approved = ran.json["results"]
    assert (failed["error"]["code"], approved["outcome"]["outcome"]) == ("not_found", "committed")


def test_quarantined_write_explains_how_the_owner_writes_directly(run):
    assert "--as operator" in run("remember", "Ship by June", "--tier", "core", "--key", "mission").err


@pytest.mark.parametrize("who", ["operator:somebody", "reviewer:somebody"])
def test_a_name_that_is_not_the_login_is_no_one(run, held, who):
    ran = run("approve", held["item"]["id"], "--as", who, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (7, "unauthorised")
    assert "token create" in ran.err
    assert run("pending", "--json").json["items"] != []


def test_the_login_is_the_systems_and_not_the_environments(run, monkeypatch):
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody")
    run("remember", "Ship by June", "--as", "operator")
    assert "somebody" not in run("log", "--json").out


@pytest.mark.promise("B82")
def test_an_identity_is_shown_proposed_and_approved_at_the_terminal(run, tmp_path, monkeypatch):
    (tmp_path / "IDENTITY.md").write_text("I am Orion.\n")
    (tmp_path / "next.md").write_text("I am Orion, and I sail.\n")
    run("init")
    monkeypatch.setenv("KEEPWARD_IDENTITY", str(tmp_path / "IDENTITY.md"))
    shown = run("identity")
    assert (shown.code, "I am Orion." in shown.out) == (0, True)
    held = run("identity", "propose", "-f", "next.md", "--reason", "he sails", "--json")
    assert held.code == 6
    assert "I am Orion, and I sail." in run("pending").out
    assert run("approve", held.json["item"]["id"], "--as", "agent").code == 7
    assert run("approve", held.json["item"]["id"]).code == 0
    assert (tmp_path / "IDENTITY.md").read_text() == "I am Orion.\n"
    assert "+I am Orion, and I sail." in run("identity").out
    assert "I am Orion, and I sail." in run("history", "persona").out
    (tmp_path / "IDENTITY.md").write_text("I am Orion, and I sail.\n")
    assert run("identity", "--json").json["diff"] == ""
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    wrong = [run("identity", "propose", "-f", name) for name in ("picture.png", "nowhere.md")]
    assert [(each.code, "cannot be read as UTF-8 text" in each.err) for each in wrong] == [(2, True)] * 2
    assert run("identity", "propose", "--reason", "x").code == 2
    assert run("identity", "--reason", "x").code == 2


@pytest.mark.promise("B82")
def test_owner_approves_a_manual_edit_of_the_identity(run, tmp_path, monkeypatch):
    page, run_doctor = tmp_path / "IDENTITY.md", ("doctor", "--embedder", "hashed")
    page.write_text("I am Orion.\n")
    run("init")
    monkeypatch.setenv("KEEPWARD_IDENTITY", str(page))
    approve = ("identity", "propose", "-f", str(page), "--as", "operator", "--embedder", "hashed")
    assert run(*approve).code == 0
    page.write_text("I am Orion, and I row.\n")
    warned = run(*run_doctor)
    assert (warned.code, run(*run_doctor, "--strict").code) == (0, 1)
    assert "keepward identity propose -f IDENTITY.md" in " ".join(warned.out.split())
    assert "Every check passed, 1 warning." in warned.out
    assert run(*approve).code == 0
    assert run(*run_doctor, "--strict").code == 0


def test_pending_labels_what_is_stale_and_shows_what_holds_now(run, held):
    revised = run("revise", "mission", "Ship next week", "--reason", "news", "--as", "operator", "--json")
    version = revised.json["records"][0]["version"]
    shown = run("pending").out
    assert "stale: the memory that it would change has changed" in shown
    assert "Ship next week (version 2" in shown
    name = run("pending", "--json").json["items"][0]["id"]
    assert f"keepward amend {name}" in " ".join(shown.split())
    done = run("amend", name, "Ship next week, calmly", "--if-version", str(version), "--as", "operator")
    assert (done.code, run("get", "mission", "--json").json["text"]) == (0, "Ship next week, calmly")


def test_what_expired_undecided_is_reported_with_the_way_back(run, held, monkeypatch):
    later = datetime.now(UTC) + timedelta(days=400)
    monkeypatch.setattr(SystemClock, "now", lambda self: later)
    said = [" ".join(run(command).out.split()) for command in ("pending", "status")]
    told = ["1 proposal expired without a decision" in each and "keepward reopen ID" in each for each in said]
    assert told == [True, True]
    assert "1 expired undecided" in " ".join(run("doctor").out.split())
    assert "expired undecided" not in run("pending", "--state", "all").out
