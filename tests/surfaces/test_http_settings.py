"""The settings in force, over HTTP."""

from __future__ import annotations

import pytest
from http_fixtures import BASE, HttpTestServer
from starlette.testclient import TestClient

from keepward.http.app_state import ServerOptions
from keepward.http.server import build
from keepward.settings import load


@pytest.fixture
def world(tmp_path):
    world = HttpTestServer(tmp_path)
    world.memory.remember("The ferry leaves at six", tier="archival")
    yield world
    world.memory.close()


def test_a_reviewer_does_not_read_settings(world):
    assert world.bearer("rita", rights="reviewer").get("/memory/settings").status_code == 403


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


def test_a_duration_is_written_as_the_file_takes_it(world):
    found = {each["name"]: each for each in world.owner.get("/memory/settings").json()["items"]}
    assert found["policy.ttl_working"]["value"] == "1d"
    assert found["policy.ttl_by_kind"]["default"] == {"event": "30d", "summary": "7d"}
    assert found["policy.archive_facts_after"]["value"] is None
    assert found["embedder_timeout"]["value"] == "5s"


def test_a_token_says_when_it_was_last_used(world):
    bearer = world.bearer()
    world.ticks.now += 60
    bearer.get("/memory/status")
    world.ticks.now += 30
    used = {each["name"]: each["used_at"] for each in world.owner.get("/memory/tokens").json()["items"]}
    assert used["claude"] == "2026-03-01T08:59:30Z"
