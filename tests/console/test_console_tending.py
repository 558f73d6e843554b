"""Looking after a store in the console: commits, erasures, jobs, tokens, integrity and settings.

Each journey ends in what the store holds, in what an agent is told, or in an answer of the API.
"""

from __future__ import annotations

import json

import httpx2
import pytest

from support import tamper

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from keepward.settings import load
from support.browser import faults_of_access

pytestmark = pytest.mark.proof


def remember(console, text, **fields):
    return console.owner.remember(text, **{"tier": "archival", "reason": "told", **fields})


def mission(console, *texts):
    """Give the mission these texts, one after the other; return the numbers of the commits."""
    found = []
    for text in texts:
        done = console.owner.remember(text, key="mission", kind="state", tier="core", reason=f"why {text}")
        found.append(done.commit.seq)
    return found


def prompt(console):
    return console.agent().context("what is the mission?").text


# --- commits


def test_commit_is_rolled_back_after_its_preview_and_restored(console):
    _, second = mission(console, "Ship before Easter.", "Ship before Whitsun.")
    with console.page("/commits") as page:
        page.get_by_role("link", name="why Ship before Whitsun.").click()
        page.get_by_role("button", name="Roll back…").click()
        preview = page.get_by_role("dialog")
        preview.get_by_text("No later commit is in the way").wait_for()
        expect(preview.get_by_role("list", name="What would change")).to_contain_text("Ship before Easter.")
        assert "Whitsun" in prompt(console)
        preview.get_by_role("button", name="Roll back", exact=True).click()
        page.get_by_text(f"Rolled back commit {second}").first.wait_for()
        assert "Ship before Easter." in prompt(console)
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("Undone.").first.wait_for()
    assert "Ship before Whitsun." in prompt(console)


def test_rollback_names_blocking_commits_and_can_include_them(console):
    _, second, third = mission(console, "Ship before Easter.", "Ship before Whitsun.", "Ship in June.")
    with console.page(f"/commits?at={second}") as page:
        page.get_by_role("button", name="Roll back…").click()
        preview = page.get_by_role("dialog")
        preview.get_by_role("link", name=f"commit {third}").wait_for()
        run = preview.get_by_role("button", name="Roll back", exact=True)
        expect(run).to_be_disabled()
        preview.get_by_label("Undo the later commits").check()
        preview.get_by_text("2 commits are undone together").wait_for()
        run.click()
        page.get_by_text(f"Rolled back commit {second}").first.wait_for()
    assert "Ship before Easter." in prompt(console)


@pytest.mark.parametrize("touched", [False, True])
def test_rollback_is_refused_only_if_its_memory_was_changed_in_between(console, touched):
    _, second = mission(console, "Ship before Easter.", "Ship before Whitsun.")
    with console.page(f"/commits?at={second}", expected=["412"] if touched else []) as page:
        page.get_by_role("button", name="Roll back…").click()
        page.get_by_role("dialog").get_by_text("No later commit is in the way").wait_for()
        if touched:
            mission(console, "Ship in June.")
        else:
            remember(console, "Something else in between")
        page.get_by_role("dialog").get_by_role("button", name="Roll back", exact=True).click()
        if touched:
            page.get_by_role("dialog").get_by_text("it has changed since you read it").wait_for()
        else:
            page.get_by_text(f"Rolled back commit {second}").first.wait_for()
    assert ("Ship in June." if touched else "Ship before Easter.") in prompt(console)


def test_the_journal_is_sifted_and_the_address_preserves_it(console):
    remember(console, "The pier is long", reason="mine")
    console.agent("orion").remember("The buoy is green", tier="archival", reason="orions")
    with console.page("/commits") as page:
        page.get_by_label("Who made or approved it").fill("agent:orion")
        page.keyboard.press("Enter")
        journal = page.get_by_role("list", name="Commits, newest first")
        expect(journal.get_by_role("listitem")).to_have_count(1)
        page.reload()
        expect(journal.get_by_role("listitem")).to_have_count(1)
        expect(journal).to_contain_text("orions")
        told = page.request.get(console.url + page.get_by_role("link", name="JSON").first.get_attribute("href")).json()
    assert [each["details"]["actor"] for each in told["items"]] == ["agent:orion"]


def test_what_is_being_typed_stays_when_something_is_committed(console):
    remember(console, "The pier is long")
    with console.page("/commits") as page:
        page.get_by_text("live", exact=True).wait_for()
        page.get_by_label("Who made or approved it").fill("agent:orion")
        console.agent("orion").remember("The buoy is green", tier="archival", reason="orions")
        page.get_by_text("orions").first.wait_for()
        page.keyboard.press("Enter")
        expect(page.get_by_role("list", name="Commits, newest first").get_by_role("listitem")).to_have_count(1)
    assert len(console.owner.log(actor="agent:orion")) == 1


def test_two_states_are_compared(console):
    first, second = mission(console, "Ship before Easter.", "Ship before Whitsun.")
    remember(console, "The pier is long")
    with console.page("/commits") as page:
        page.get_by_role("button", name="Compare two states").click()
        page.get_by_text("2 memories differ").wait_for()
        page.get_by_label("or after commit number").fill(str(first))
        page.keyboard.press("Enter")
        page.get_by_label("or commit number; empty is now").fill(str(second))
        page.keyboard.press("Enter")
        page.get_by_text("1 memory differs").wait_for()
        shown = page.get_by_role("list", name="What differs").inner_text()
    differing = console.owner.diff(first, second)
    assert [each.after.text in shown and each.before.text in shown for each in differing] == [True]


def test_a_commit_shows_its_receipt(console):
    done = remember(console, "The pier is long")
    with console.page(f"/commits?at={done.commit.seq}") as page:
        page.get_by_role("button", name=done.receipt.id[:13]).click()
        page.get_by_role("dialog").get_by_text(done.receipt.id).first.wait_for()


# --- erasing


def test_erasure_is_planned_confirmed_by_typing_and_certified(console):
    bo = remember(console, "Bo lives at Elm Street 3", subject="bo").record
    guest = remember(console, "A guest lives near the elm", derived_from=[bo.id]).record
    with console.page("/erase") as page:
        page.get_by_label("Who or what is to go").fill("BO")
        people = page.get_by_role("list", name="People and sources")
        expect(people.get_by_label("All about bo")).to_be_checked()
        page.get_by_role("button", name="Plan for what is ticked").click()
        page.get_by_role("list", name="What goes").get_by_text("Bo lives at Elm Street 3").wait_for()
        page.get_by_role("list", name="What stays").get_by_text("A guest lives near the elm").wait_for()
        erase = page.get_by_role("button", name="Erase for good")
        expect(erase).to_be_disabled()
        page.get_by_label("to confirm").fill("erase 1")
        erase.click()
        page.get_by_role("heading", name="Erased", exact=True).wait_for()
        with page.expect_download() as saved:
            page.get_by_role("link", name="as JSON").first.click()
        certificate = json.loads(saved.value.path().read_text())
        with page.expect_download() as saved:
            page.get_by_role("link", name="Certificate to read and print").first.click()
        printed = console.folder / "certificate.html"
        saved.value.save_as(printed)
    read = console.browser.new_page()
    read.goto(printed.as_uri())
    read.get_by_role("heading", name="Certificate of erasure").wait_for()
    expect(read.get_by_role("listitem").filter(has_text=bo.id)).to_have_count(1)
    assert faults_of_access(read) == []
    read.close()
    assert (certificate["memories"], certificate["reason"]) == ([bo.id], "request")
    assert [each.id for each in console.owner.list_memories(limit=None)] == [guest.id]
    assert "Elm Street" not in str(console.owner.history(bo.id))


def test_remaining_copies_are_erased_too_on_request(console):
    bo = remember(console, "Bo lives at Elm Street 3").record
    remember(console, "A guest lives near the elm", derived_from=[bo.id])
    with console.page(f"/erase?ids={bo.id}") as page:
        page.get_by_role("button", name="Erase it too").click()
        page.get_by_label("erase 2").fill("erase 2")
        page.get_by_role("button", name="Erase for good").click()
        page.get_by_role("heading", name="Erased", exact=True).wait_for()
    assert console.owner.list_memories(limit=None) == []


# --- jobs and tokens


def test_a_job_is_run_and_its_receipt_is_there(console):
    with console.page("/jobs") as page:
        job = page.get_by_role("region", name="integrity_audit")
        job.get_by_role("button", name="Run now").click()
        job.get_by_role("button", name="Receipt").click()
        page.get_by_role("dialog").get_by_text("integrity_audit").first.wait_for()
    states = {each.name: each for each in console.owner.jobs()}
    assert states["integrity_audit"].last_outcome == "run"


def test_a_token_is_made_narrow_shown_once_used_and_revoked(console):
    with console.page("/tokens") as page:
        page.get_by_role("button", name="Make a token").click()
        page.get_by_label("Name, as receipts").fill("luc")
        page.get_by_label("propose").uncheck()
        page.get_by_label("Scope: what it may see").fill("/agents/luc")
        page.get_by_role("button", name="Make it").click()
        secret = page.get_by_label("The token", exact=True).inner_text()
        page.get_by_role("button", name="I have it").click()
        assert secret not in page.content()
        bearer = httpx2.Client(base_url=console.url, headers={"Authorization": f"Bearer {secret}"})
        with bearer:
            told = bearer.get("/memory/status").json()
            refused = bearer.post("/memory/items", json={"text": "The pier is long"}).status_code
            page.reload()
            row = page.get_by_role("row", name="luc")
            row.get_by_text("just now").first.wait_for()
            row.get_by_role("button", name="Revoke…").click()
            page.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
            page.get_by_text("The token of luc has ended.").first.wait_for()
            ended = bearer.get("/memory/status").status_code
    assert (told["scope"], told["actor"], refused, ended) == ("/agents/luc", "agent:luc", 422, 401)


# --- integrity and settings


def test_a_store_is_verified(console):
    for n in range(30):
        remember(console, f"Shelf {n} holds flour {n * 7}")
    with console.page("/integrity") as page:
        page.get_by_role("button", name="Verify now").wait_for()
        page.keyboard.press("v")
        page.get_by_text("Everything is intact.").wait_for()
        commits = console.owner.verify().checked["commits"]
        expect(page.get_by_role("region", name="Verify")).to_contain_text(f"{commits} commits")


def test_what_does_not_hold_is_named(console):
    remember(console, "The pier is long")
    tamper.edit(console.folder / "m.db", "commits", "kind = 'approve'")
    # Home, which the link opens first, cannot list what was written lately.
    with console.page("/integrity", expected=["500"]) as page:
        page.get_by_role("button", name="Verify now").click()
        named = page.get_by_role("list", name="Faults")
        named.wait_for()
        shown = named.inner_text()
    faults = console.owner.verify().faults
    assert faults
    assert [each.row for each in faults if each.row not in shown] == []


def test_setting_shows_its_source_and_pending_acceptance(console):
    file = console.folder / "keepward.toml"
    file.write_text('[policy]\nfour_eyes = true\n[policy.access]\ncore = "read_write"\n')
    environ = {"KEEPWARD_HOME": str(console.folder / "home"), "KEEPWARD_SCOPE": "/agents/luc"}
    settings = load(store=console.folder / "m.db", environ=environ)
    console.serving.settings = settings
    with console.page("/settings?own=yes") as page:
        page.get_by_role("row", name="scope").get_by_text("environment").wait_for()
        page.get_by_text("waits for acceptance").first.wait_for()
        page.get_by_text(f"keepward config --accept {settings.digest}").wait_for()
        page.get_by_role("row", name="access").first.get_by_text("waits", exact=True).wait_for()
    assert settings.withheld == ("policy.access", "policy.four_eyes")


def test_retention_is_found_by_name_has_units_and_gives_the_line_that_changes_it(console):
    with console.page("/") as page:
        page.keyboard.press("Control+k")
        # An empty field lists all commands, with the screens first.
        page.get_by_role("combobox").fill("retention")
        page.get_by_role("option", name="Retention: how long things are kept", selected=True).wait_for()
        page.keyboard.press("Enter")
        kept = page.get_by_role("region", name="Retention")
        expect(kept.get_by_role("listitem", name="Working memory")).to_contain_text("1 day")
        expect(kept.get_by_role("listitem", name="Volatile memories of kind event")).to_contain_text("30 days")
        working = kept.get_by_role("listitem", name="Working memory")
        working.get_by_text("Change").click()
        working.get_by_label("Keep for").fill("90")
        expect(working).to_contain_text("a whole number and a unit")
        working.get_by_label("Keep for").fill("12h")
        line = working.locator("code.lines").inner_text()
    (console.folder / "keepward.toml").write_text(line)
    settings = load(store=console.folder / "m.db", environ={"KEEPWARD_HOME": str(console.folder / "home")})
    assert settings.loosens == {"policy.ttl_working": '"12h"'}


def test_dialog_of_a_token_says_what_each_class_sees(console):
    remember(console, "The pier is long")
    remember(console, "The safe is behind the clock", sensitivity="sensitive")
    console.owner.at(scope="/agents/lab").remember("The buoy is green", tier="archival", reason="so")
    agent = console.agent("luc")
    with console.page("/tokens?new=1") as page:
        told = page.get_by_role("dialog").get_by_role("status")
        expect(told).to_contain_text("It reads 1 memory that all share; 1 memory in scopes below only where")
        expect(told).to_contain_text("Sensitive ones are left out")
        assert [each.text for each in agent.list_memories()] == ["The pier is long"]
        page.get_by_label("read what is sensitive").check()
        expect(told).to_contain_text("It reads 2 memories")
        page.get_by_label("reviewer").check()
        expect(told).to_contain_text("and 1 memory in scopes below.")
        page.get_by_label("owner").check()
        expect(told).to_have_text("It sees everything.")


def test_core_counts_the_tokens_of_its_headings(console):
    console.owner.remember("Carry people over the river.", tier="core", key="mission", reason="so")
    tokens = console.owner.context("", preview=True).tokens
    assert tokens > console.owner.status()["blocks"]["mission"]["tokens"]
    with console.page("/core") as page:
        expect(page.get_by_role("main")).to_contain_text(f"{tokens} tokens in every prompt")
