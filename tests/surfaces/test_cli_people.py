"""Users, agents and projects at the command line."""

from __future__ import annotations

from types import SimpleNamespace

import pytest


def remembered(run, *arguments):
    """Remember something and return what is stored of it."""
    said = run("remember", *arguments, "--json").json
    return run("get", said["id"], *arguments[1:], "--json").json


def texts(ran):
    return {each["text"] for each in ran.json["items"]}


def test_options_name_the_user_the_project_and_the_agent(run):
    said = remembered(run, "I take the ferry", "--user", "ana")
    assert (said["scope"], said["subject"]) == ("/users/ana", "ana")
    sold = remembered(run, "I sell tea", "--user", "ana", "--project", "shop")
    assert sold["scope"] == "/projects/shop/users/ana"
    planned = remembered(run, "Staging is on 9090", "--project", "shop", "--agent", "planner")
    assert (planned["scope"], planned["author"]) == ("/projects/shop", "agent:planner")
    run("remember", "I take the bus", "--user", "bob")
    assert texts(run("list", "--user", "ana", "--json")) == {"I take the ferry"}
    assert texts(run("--user", "ana", "list", "--project", "shop", "--json")) == {
        "I take the ferry",
        "I sell tea",
        "Staging is on 9090",
    }


def test_me_is_the_login(run, monkeypatch):
    monkeypatch.setattr("pwd.getpwuid", lambda number: SimpleNamespace(pw_name="ana silva"))
    assert remembered(run, "I prefer tabs", "--user", "me")["scope"] == "/users/ana-silva"


def test_a_wrong_name_is_an_error_with_advice(run):
    ran = run("remember", "I prefer tabs", "--user", "ana@example.com")
    assert ran.code != 0
    assert "u-1042" in ran.err


@pytest.mark.parametrize("option", ["--user", "--agent", "--project", "--scope", "--tenant"])
def test_an_empty_name_is_an_error_and_stores_nothing(run, option):
    for arguments in (("remember", "My diagnosis is asthma", option, ""), (option, "", "remember", "I have asthma")):
        ran = run(*arguments)
        assert (ran.code, f"{option} is empty" in ran.err) == (2, True)
    assert "there is no store" in run("list").err


def test_erasing_a_user_shows_the_plan_first(run):
    run("remember", "I take the ferry", "--user", "ana")
    run("remember", "I take the bus", "--user", "bob")
    planned = run("erase", "--user", "ana", "--json").json
    assert [each["text"] for each in planned["plan"]["targets"]] == ["I take the ferry"]
    assert texts(run("list", "--user", "ana", "--json")) == {"I take the ferry"}
    assert run("erase", "--user", "ana", "--apply", planned["plan"]["digest"], "--json").code == 0
    assert texts(run("list", "--user", "ana", "--json")) == set()
    assert texts(run("list", "--user", "bob", "--json")) == {"I take the bus"}
    assert "say what to erase" in run("erase").err


def test_a_token_of_a_user_limits_a_command_to_it(run, monkeypatch):
    run("remember", "I take the bus", "--user", "bob")
    made = run("token", "create", "--user", "ana", "--json").json
    assert (made["name"], made["scope"]) == ("ana", "/users/ana")
    monkeypatch.setenv("KEEPWARD_TOKEN", made["token"])
    assert remembered(run, "I take the ferry")["scope"] == "/users/ana"
    assert texts(run("list", "--user", "ana", "--json")) == {"I take the ferry"}
    for options in (["--user", "bob"], ["--project", "shop"], ["--agent", "x", "--user", "bob"]):
        ran = run("list", *options)
        assert ran.code != 0
        assert "bus" not in ran.out + ran.err
