"""erase, backup, restore-backup, adopt: shown first, carried out by digest."""

from __future__ import annotations

import html
import json


def test_erase_carries_out_the_plan_that_was_shown(run, saved):
    digest = run("erase", saved["id"], "--json").json["plan"]["digest"]
    done = run("erase", saved["id"], "--apply", digest, "--json").json
    assert (done["applied"], run("get", saved["id"], "--json").json["status"]) == (True, "erased")


def test_the_plan_names_the_command_that_carries_it_out(run, saved):
    told = run("erase", saved["id"])
    assert "--apply" in told.err
    assert saved["id"] in told.out


def test_the_certificate_is_json_with_and_without_json(run, saved):
    digest = run("erase", saved["id"], "--json").json["plan"]["digest"]
    run("erase", saved["id"], "--apply", digest)
    plain = json.loads(run("erase", saved["id"], "--certificate").out)
    assert plain == run("erase", saved["id"], "--certificate", "--json").json["certificate"]


def test_the_certificate_is_a_page_to_print_without_the_erased_words(run, saved):
    digest = run("erase", saved["id"], "--json").json["plan"]["digest"]
    run("erase", saved["id"], "--apply", digest)
    page = html.unescape(run("erase", saved["id"], "--certificate", "--html").out)
    told = run("erase", saved["id"], "--certificate", "--json").json["certificate"]
    assert page.startswith("<!doctype html>")
    assert "@media print" in page
    assert [words for words in (saved["id"], told["commit"]["hash"], *told["limits"]) if words not in page] == []
    assert "tabs" not in page
    assert run("erase", saved["id"], "--html").code == 2


def test_plan_shows_texts_and_takes_citing_memories_along(run, saved):
    fact = run("remember", "Ana takes Ramipril", "--evidence", saved["id"], "--json").json["id"]
    plan = run("erase", saved["id"])
    assert ("Ana prefers tabs" in plan.out, "Ana takes Ramipril" in plan.out) == (True, True)
    assert "--include-citing" in plan.err
    digest = run("erase", saved["id"], "--include-citing", "--json").json["plan"]["digest"]
    run("erase", saved["id"], "--include-citing", "--apply", digest)
    assert run("get", fact, "--json").json["status"] == "erased"


def test_a_backup_comes_back_as_a_store(run, saved):
    run("backup", "copy.db")
    made = run("restore-backup", "copy.db", "--to", "back.db", "--json").json
    assert (made["separate"], len(run("list", "--db", "back.db", "--json").json["items"])) == (True, 1)
    assert run("verify", "--db", "back.db").code == 0


def test_adopt_shows_what_it_means_before_it_is_done(run, saved):
    plan = run("adopt", "--json").json
    done = run("adopt", "--apply", plan["digest"], "--json").json
    assert (plan["applied"], bool(plan["warning"]), done["applied"], run("verify").code) == (False, True, True, 0)
