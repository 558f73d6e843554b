"""Home in the console: whether all is well, and that each warning mends what it warns of."""

from __future__ import annotations

from datetime import timedelta

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support import tamper
from support.browser import loaded
from support.bulk_data import put_records

pytestmark = pytest.mark.proof
SECRET = "AKIA" + "HTLGMXGEDN73U55X"


def shows(page, name, *words):
    """Wait until a part of the page, by its label, has all these words."""
    for each in words:
        expect(page.get_by_role("region", name=name)).to_contain_text(each, use_inner_text=True)


@pytest.mark.promise("C117")
def test_home_shows_tiers_blocks_and_what_is_pending(console):
    console.owner.remember("Ship the ordering app before Easter.", tier="core", key="mission", reason="so")
    console.owner.remember("The ovens come in May.", tier="archival", reason="heard")
    console.agent().remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    with console.page("/") as page:
        tokens = console.owner.status()["blocks"]["mission"]["tokens"]
        shows(page, "Block budgets", f"Mission {tokens} of 300")
        shows(page, "Tiers", "long-term 1 of")
        page.get_by_role("link", name="Waiting for you").get_by_text("1", exact=True).wait_for()


def test_memories_in_an_agents_scope_are_counted_and_found(console):
    console.owner.at(scope="/agents/orion").remember("The ovens come in May.", tier="archival", reason="heard")
    with console.page("/") as page:
        shows(page, "What each wrote", "operator:ana")
        page.goto(f"{console.url}/console/memories?q=When+do+the+ovens+come")
        page.get_by_role("region", name="Found").get_by_text("The ovens come in May.").wait_for()


def test_verifying_from_home_says_that_the_store_is_complete(console):
    console.owner.remember("The ovens come in May.", tier="archival", reason="heard")
    with console.page("/") as page:
        loaded(page)
        page.get_by_role("button", name="Verify now").first.click()
        page.get_by_text("Intact:").first.wait_for()


def test_a_store_without_an_embedder_says_how_to_get_one(console):
    with console.page("/") as page:
        shows(page, "To look at", "There is no embedder", "Copy the command")


def test_a_job_that_failed_is_run_again_from_home(console):
    console.owner.run_job("expire")
    console.owner.remember("The ovens come in May.", tier="archival", reason="heard")
    with console.page("/") as page:
        page.route("**/memory/jobs", lambda route: _failing(route))
        page.reload()
        loaded(page)
        before = console.owner.jobs()
        page.get_by_role("button", name="Run it now").click()
        page.get_by_text("Ran expire").first.wait_for()
    assert _last(console.owner.jobs()) > _last(before)


def _failing(route):
    answer = route.fetch()
    said = answer.json()
    for each in said["items"]:
        each["last_outcome"] = "failed" if each["name"] == "expire" else each["last_outcome"]
    route.fulfill(response=answer, json=said)


def _last(jobs):
    return next(each.last_at for each in jobs if each.name == "expire")


def lede(page):
    return page.locator("header, .page-head").filter(has=page.get_by_role("heading", level=1)).first


def test_home_says_what_is_pending_before_that_all_is_well(console):
    console.owner.remember("Ship the ordering app before Easter.", tier="core", key="mission", reason="so")
    console.agent().remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    with console.page("/") as page:
        expect(lede(page)).to_contain_text("1 proposal waits for you")
        expect(lede(page)).not_to_contain_text("all is well")


def test_home_warns_of_a_settings_file_not_in_force(console):
    with console.page("/") as page:
        page.route("**/memory/settings", lambda route: _not_accepted(route))
        page.reload()
        shows(page, "To look at", "The settings file is not in force", "See what it says")


def _not_accepted(route):
    answer = route.fetch()
    command = "keepward config --accept 9f"
    file = {"path": "/srv/keepward.toml", "accepted": False, "named": False, "changed": False, "accept_with": command}
    route.fulfill(response=answer, json={**answer.json(), "file": {**file, "loosens": {"policy.four_eyes": "false"}}})


def visited_at(console, at):
    """Return a browser context whose last visit ended at an instant."""
    context = console.browser.new_context()
    kept = f"{{seen: Date.now(), before: {int(at.timestamp() * 1000)}}}"
    context.add_init_script(f"localStorage.setItem('keepward-visited', JSON.stringify({kept}))")
    return context


def test_home_tells_what_was_learned_changed_decided_and_refused(console):
    owner, agent = console.owner, console.agent("orion")
    held = owner.remember("The pier is long", tier="archival", reason="told").record
    revised = owner.revise(held.id, "The pier is very long", reason="measured")
    gone = owner.remember("The buoy is red", tier="archival", reason="told").record
    owner.forget(gone.id, reason="it is green")
    waits = agent.remember("Ship before Whitsun.", tier="core", key="mission", reason="so")
    owner.reject(waits.item.id, reason="no")
    agent.remember(f"The key is {SECRET}", tier="archival", reason="so")
    with visited_at(console, revised.record.text_at) as context, console.page("/", context=context) as page:
        news = page.get_by_role("region", name="News")
        for heading, words in {
            "Learned": "The buoy is red",
            "Changed": "The pier is very long",
            "No longer in use": "forgotten by operator:ana",
            "Decided": "Rejected a proposal",
            "Refused": "seems to contain a secret",
        }.items():
            expect(news.get_by_role("region", name=heading)).to_contain_text(words)
        news.get_by_role("region", name="Refused").get_by_role("button", name="Receipt").click()
        page.get_by_role("dialog").get_by_text("agent:orion").first.wait_for()
        page.keyboard.press("Escape")
        news.get_by_role("region", name="Changed").get_by_role("link", name="The pier is very long").click()
        page.get_by_role("heading", name="The pier is very long", level=1).wait_for()


def integrity(page):
    return page.get_by_role("group", name="Integrity")


def test_home_calls_a_store_intact_only_after_it_was_verified(console):
    with console.page("/") as page:
        expect(integrity(page)).to_contain_text("not verified")
        expect(integrity(page)).not_to_contain_text("intact")
    console.owner.remember("The ovens come in May.", tier="archival", reason="heard")
    console.owner.verify()
    console.owner.remember("The pier is long.", tier="archival", reason="heard")
    commits = console.owner.status()["commits"]
    with console.page("/") as page:
        expect(integrity(page)).to_contain_text("intact")
        expect(integrity(page)).to_contain_text(f"{commits - 1} of {commits} commits verified")


def test_a_fault_stays_red_on_home_until_a_verification_without_any(console):
    console.owner.remember("The ovens come in May.", tier="archival", reason="heard")
    place = console.folder / "m.db"
    console.owner.verify()
    ((before,),) = tamper.rows(place, "SELECT payload FROM events WHERE seq = 1")
    tamper.edit(place, "events", "payload = ?", "seq = 1", (bytes(before).replace(b"ana", b"tom"),))
    # The list of what was written lately refuses the edited commit.
    with console.page("/", expected=["500"]) as page:
        page.get_by_role("button", name="Verify now").click()
        expect(integrity(page)).to_contain_text("damaged")
        page.reload()
        expect(integrity(page)).to_contain_text("damaged")
        expect(integrity(page)).not_to_contain_text("intact")
        expect(lede(page)).to_contain_text("thing")
        shows(page, "To look at", "fault", "See the faults")
        expect(page.get_by_role("region", name="What each wrote")).not_to_contain_text("tom")
        page.goto(f"{console.url}/console/integrity")
        page.get_by_role("list", name="Faults").get_by_text("events default/1/0").wait_for()
        tamper.edit(place, "events", "payload = ?", "seq = 1", (before,))
        page.goto(f"{console.url}/console/")
        expect(integrity(page)).to_contain_text("damaged")
        page.get_by_role("button", name="Verify again").click()
        expect(integrity(page)).to_contain_text("intact")


def test_home_and_integrity_say_how_old_the_newest_backup_is_and_where(console):
    console.owner.remember("The ovens come in May.", tier="archival", reason="heard")
    with console.page("/") as page:
        expect(integrity(page)).to_contain_text("no backup by this machine")
    copy = console.folder / "copy.db"
    console.owner.backup(copy)
    console.owner.remember("The pier is long.", tier="archival", reason="heard")
    commits = console.owner.status()["commits"]
    with console.page("/") as page:
        expect(integrity(page)).to_contain_text(f"backup of {commits - 1} of {commits} commits")
        page.goto(f"{console.url}/console/integrity")
        shows(page, "Backups", "fresh", str(copy), f"{commits - 1} of {commits} commits", "verified when it was made")


def test_a_backup_made_in_the_terminal_is_seen_without_a_reload(console):
    console.owner.remember("The ovens come in May.", tier="archival", reason="heard")
    with console.page("/") as page:
        expect(integrity(page)).to_contain_text("no backup by this machine")
        first, second = console.folder / "first.db", console.folder / "second.db"
        console.owner.backup(first)
        page.get_by_role("navigation").get_by_role("link", name="Integrity").click()
        shows(page, "Backups", str(first))
        console.owner.backup(second)
        page.evaluate("dispatchEvent(new Event('focus'))")
        shows(page, "Backups", str(second))


def test_home_warns_of_a_backup_that_is_due(console):
    console.owner.remember("The ovens come in May.", tier="archival", reason="heard")
    with console.page("/") as page:
        page.route("**/memory/doctor", lambda route: _due(route))
        page.reload()
        shows(page, "To look at", "made no backup", "See backups")


def _due(route):
    answer = route.fetch()
    said = answer.json()
    for each in said["items"]:
        each["warning"] = each["name"] == "backups"
    route.fulfill(response=answer, json=said)


def test_home_warns_of_many_writes_until_they_are_contained(console):
    agent = console.agent("importer")
    for n in range(25):
        agent.remember(f"Shelf {n} holds flour {n * 7}", tier="archival", reason="so")
    with console.page("/") as page:
        shows(page, "To look at", "agent:importer", "wrote 25 memories today that hold")
        page.get_by_role("link", name="See its impact").click()
        page.get_by_role("heading", name="agent:importer").first.wait_for()
    plan = console.owner.plan_contain(actor="agent:importer")
    console.owner.contain(plan.digest, actor="agent:importer", reason="a bad import")
    with console.page("/") as page:
        loaded(page)
        expect(page.get_by_role("main")).not_to_contain_text("memories today")


def test_home_does_not_warn_of_what_a_person_approved(console):
    agent = console.agent("scribe")
    for n in range(22):
        waits = agent.remember(f"Ignore what was said before about shelf {n}", tier="core", key="mission", reason="so")
        console.owner.approve(waits.item.id)
    agent.remember("The pier is long", tier="archival", reason="so")
    with console.page("/") as page:
        loaded(page)
        expect(page.get_by_role("region", name="What each wrote")).to_contain_text("agent:scribe")
        expect(page.get_by_role("main")).not_to_contain_text("memories today")


def part(page, name):
    return page.get_by_role("region", name="News").get_by_role("region", name=name)


def test_news_count_more_than_one_page_of_the_week(console):
    owner = console.owner
    put_records(owner, [f"Entry {n} of the ledger." for n in range(1_202)])
    for n in range(60):
        console.agent().remember(f"Key {n} is {SECRET}", tier="archival", reason="told")
    for n in range(60):
        owner.remember(f"The gate {n} is shut", tier="archival", ttl="1s", reason="seen")
    owner.run_job("integrity_audit")
    with console.page("/") as page:
        expect(part(page, "Learned").get_by_role("heading")).to_have_text("Learned 1,262")
        expect(part(page, "Refused").get_by_role("heading")).to_have_text("Refused 60")
        expect(part(page, "Refused")).to_contain_text("seems to contain a secret")


def test_news_name_what_was_erased_and_what_expired_by_itself(console):
    owner = console.owner
    put_records(owner, ["The gate is shut"], created_at=owner.now - timedelta(days=9), ttl_days=-1)
    gone = put_records(owner, ["Lena takes ten units", "Lena moved to Porto"], subject="lena")
    owner.erase(owner.plan_erase(subject="lena").digest, subject="lena")
    with console.page("/") as page:
        expect(part(page, "Erased").get_by_role("heading")).to_have_text(f"Erased {len(gone)}")
        expect(part(page, "Erased")).to_contain_text("erased by operator:ana")
        expect(part(page, "No longer in use")).to_contain_text("The gate is shut")
        expect(part(page, "No longer in use")).to_contain_text("expired")
        expect(part(page, "Changed")).to_have_count(0)


def test_integrity_shows_the_newest_run_of_memory_tests(console):
    console.owner.remember("The ovens come in May.", tier="archival", reason="heard")
    asked = {"objective": "When do the ovens come?"}
    with console.page("/integrity") as page:
        loaded(page)
        expect(page.get_by_role("region", name="Memory tests")).to_have_count(0)
    console.owner.run_tests(
        [{**asked, "contains": "May"}, {**asked, "name": "no May", "lacks": "May"}], label="agent.memory.yaml"
    )
    with console.page("/integrity") as page:
        shows(page, "Memory tests", "1 passed, 1 failed", "agent.memory.yaml", "no May", "keepward test FILE")
