"""Long checks that tell how far they have come, and the settings in force, over HTTP."""

from __future__ import annotations

import json

import pytest
from http_world import BASE, World
from starlette.testclient import TestClient

from keepward.config import load
from keepward.http.server import build
from keepward.http.serving import ServerOptions


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.memory.remember("The ferry leaves at six", tier="archival")
    yield world
    world.memory.close()


def lines(answer):
    return [json.loads(each) for each in answer.text.splitlines()]


def test_a_check_over_http_tells_how_far_it_has_come_and_ends_with_the_result(world):
    *told, last = lines(world.owner.post("/memory/verify/watch"))
    assert [each["done"] <= each["total"] for each in told] == [True] * len(told)
    assert (told[-1]["done"], last["result"]["ok"]) == (told[-1]["total"], True)
    assert last["result"]["checked"] == world.owner.post("/memory/verify").json()["checked"]


@pytest.mark.slow
@pytest.mark.skipif(World.DATABASE is not None, reason="a database's drill takes its address, which serve gives")
def test_a_drill_over_http_tells_each_attack_and_touches_nothing(world):
    before = world.memory.head
    *told, last = lines(world.owner.post("/memory/drill"))
    assert {each["line"]["status"] for each in told} == {"fired"}
    assert (len(told), last["result"]["ok"], world.memory.head) == (told[0]["total"], True, before)


def test_a_drill_of_a_store_that_cannot_be_copied_is_an_error_of_the_call(world):
    world.serving.place = world.folder / "nowhere.db"
    for each in world.servings:
        each.place = world.folder / "nowhere.db"
    assert world.owner.post("/memory/drill").status_code == 503


@pytest.mark.parametrize("call", [("POST", "/memory/drill"), ("GET", "/memory/settings")])
def test_a_reviewer_neither_drills_nor_reads_settings(world, call):
    assert world.bearer("rita", rights="reviewer").request(*call).status_code == 403


def test_each_setting_in_force_says_where_it_comes_from(world):
    file = world.folder / "keepward.toml"
    file.write_text(
        'tenant = "harbour"\nmaintenance = true\n[policy]\nfour_eyes = true\n[policy.access]\ncore = "read_write"\n'
    )
    environ = {"KEEPWARD_SCOPE": "/agents/orion", "KEEPWARD_HOME": str(world.folder / "home")}
    settings = load(store=world.folder / "memory.db", environ=environ)
    app = build(world.memory, ServerOptions(writes_per_minute=7, mcp=False), settings)
    told = TestClient(app, BASE, headers=world.owner.headers)
    found = told.get("/memory/settings").json()
    origins = {each["name"]: (each["origin"], each["waiting"]) for each in found["items"]}
    assert origins["maintenance"] == ("default", "true")
    assert origins["tenant"] == ("default", '"harbour"')
    assert origins["scope"] == ("environment", None)
    assert origins["server.writes_per_minute"] == ("program", None)
    assert origins["policy.capture"] == ("default", None)
    assert origins["policy.access"][0] == "default"
    assert origins["policy.access"][1] is not None
    assert (found["file"]["accepted"], found["file"]["withheld"]) == (False, sorted(found["file"]["loosens"]))
    assert found["file"]["accept_with"].endswith(settings.digest)
    file.write_text("")
    assert told.get("/memory/settings").json()["file"]["changed"]


def test_a_token_says_when_it_was_last_used(world):
    bearer = world.bearer()
    world.ticks.now += 60
    bearer.get("/memory/status")
    world.ticks.now += 30
    used = {each["name"]: each["used_at"] for each in world.owner.get("/memory/tokens").json()["items"]}
    assert used["claude"] == "2026-03-01T08:59:30+00:00"
