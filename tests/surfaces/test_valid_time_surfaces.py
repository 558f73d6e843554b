"""Dates of a memory at the command line, over HTTP, as a tool, and in files that are imported and exported."""

from __future__ import annotations

import json
import re

from mcp_made import call, result_text, served

from keepward import Actor, Memory

QUESTION = "Where is the office?"
LINZ, GRAZ, WIEN = (f"The office is in {city}" for city in ("Linz", "Graz", "Wien"))
#: Fields of the three memories, whatever the day of the test.
DATES = {LINZ: {"valid_until": "2020-01-01"}, GRAZ: {"valid_from": "2020-01-01", "valid_until": "2100-01-03"}}
DATES[WIEN] = {"valid_from": "2100-01-03"}


def flags(fields):
    return [part for name, value in fields.items() for part in (f"--{name.replace('_', '-')}", value)]


def test_commands_take_and_show_the_dates(run):
    for text, fields in DATES.items():
        assert run("remember", text, *flags(fields), "--as", "operator").code == 0
    found = " ".join(run("recall", QUESTION).out.split())
    assert GRAZ in found
    assert "valid until 2100-01-03" in found
    assert LINZ not in found
    assert LINZ in run("recall", QUESTION, "--valid-at", "2019-06-01").out
    made = run("context", QUESTION)
    assert f"{GRAZ} (holds until 2100-01-03)" in made.out
    assert WIEN not in made.out
    assert f"{LINZ} (held until 2020-01-01)" in run("context", QUESTION, "--valid-at", "2019-06-01").out
    listed = run("list").out
    assert all(text in listed for text in DATES)
    assert [each["text"] for each in run("list", "--valid-at", "2101-01-01", "--json").json["items"]] == [WIEN]
    receipt = re.search(r"receipt ([0-9a-f-]{36})", made.err)[1]
    assert "it held until 2020-01-01" in run("receipt", receipt, "--as", "operator").out


def test_a_memory_ends_at_the_command_line(run, saved):
    assert run("revise", saved["id"], "--valid-until", "2020-01-01", "--as", "operator").code == 0
    assert "Nothing found" in run("recall", "indentation").out
    wrong = run("revise", saved["id"], "--valid-from", "2021-01-01", "--as", "operator")
    assert "valid_until is later than valid_from" in wrong.out + wrong.err
    assert run("remember", "Tea at four", "--valid-until", "soon").code == 2


def test_routes_take_and_return_the_dates(world):
    for text, fields in DATES.items():
        made = world.owner.post("/memory/items", json={"text": text, **fields}).json()
        assert made["outcome"] == "committed"
    hits = world.owner.get("/memory/search", params={"query": QUESTION}).json()["hits"]
    assert [(hit["memory"]["text"], hit["memory"]["valid_until"]) for hit in hits] == [(GRAZ, "2100-01-03T00:00:00Z")]
    asked = {"query": QUESTION, "valid_at": "2019-06-01"}
    assert [hit["memory"]["text"] for hit in world.owner.get("/memory/search", params=asked).json()["hits"]] == [LINZ]
    listed = world.owner.get("/memory/items", params={"valid_at": "2101-01-01"}).json()
    assert [each["text"] for each in listed["items"]] == [WIEN]
    made = world.owner.post("/memory/compile", json={"objective": QUESTION}).json()
    assert f"{GRAZ} (holds until 2100-01-03)" in made["text"]
    assert {each["reason"]["code"] for each in made["excluded"]} == {"not_valid"}
    past = world.owner.post("/memory/compile", json={"objective": QUESTION, "valid_at": "2019-06-01"}).json()
    assert LINZ in past["text"]
    route = f"/memory/items/{hits[0]['memory']['id']}"
    tag = {"If-Match": world.owner.get(route).headers["etag"]}
    ended = world.owner.patch(route, json={"valid_until": "2021-01-01"}, headers=tag)
    assert ended.json()["records"][0]["valid_until"] == "2021-01-01T00:00:00Z"
    wrong = world.owner.get("/memory/search", params={"query": QUESTION, "valid_at": "soon"})
    assert wrong.status_code == 400


def test_a_model_writes_and_reads_the_dates(agent):
    server = served(agent)
    for text, fields in DATES.items():
        call(server, "remember", {"text": text, **fields})
    found = result_text(call(server, "recall", {"query": QUESTION}))
    assert GRAZ in found
    assert "until 2100-01-03" in found
    assert LINZ not in found
    assert LINZ in result_text(call(server, "recall", {"query": QUESTION, "valid_at": "2019-06-01"}))
    assert "(holds until 2100-01-03)" in result_text(call(server, "get_context", {"objective": QUESTION}))


def test_files_keep_the_dates(run, tmp_path):
    table = "".join(
        f"{text},{DATES[text].get('valid_from', '')},{DATES[text].get('valid_until', '')}\n" for text in DATES
    )
    (tmp_path / "offices.csv").write_text(f"text,valid_from,valid_until\n{table}")
    assert run("import", "offices.csv", "--as", "operator").code == 0
    assert [hit["memory"]["text"] for hit in run("recall", QUESTION, "--json").json["hits"]] == [GRAZ]
    items = run("list", "--json").json["items"]
    (tmp_path / "offices.jsonl").write_text("".join(json.dumps(each) + "\n" for each in items))
    other = ("--db", "other.db")
    assert run("import", "offices.jsonl", "--as", "operator", *other).code == 0
    assert [hit["memory"]["text"] for hit in run("recall", QUESTION, "--json", *other).json["hits"]] == [GRAZ]
    again = {each["text"]: each["valid_until"] for each in run("list", "--json", *other).json["items"]}
    assert again == {LINZ: "2020-01-01T00:00:00Z", GRAZ: "2100-01-03T00:00:00Z", WIEN: None}


def test_a_memory_test_asks_for_another_time(tmp_path):
    with Memory.open(tmp_path / "m.db", config_dir=tmp_path / "c", embedder=None, actor=Actor.operator()) as memory:
        for text, fields in DATES.items():
            memory.remember(text, **fields)
        tests = [
            {"objective": QUESTION, "contains": GRAZ, "lacks": [LINZ, WIEN]},
            {"objective": QUESTION, "valid_at": "2101-01-01", "contains": WIEN, "lacks": GRAZ},
            {"query": QUESTION, "valid_at": "2019-01-01", "contains": LINZ, "lacks": GRAZ},
        ]
        assert memory.run_tests(tests).failed == 0
