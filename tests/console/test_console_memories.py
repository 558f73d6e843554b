"""Memories and one of them: what a person finds, how it is changed, and that the prompt follows."""

from __future__ import annotations

import json
import struct
import zlib

import pytest

from keepward.core.memory import Status
from keepward.interchange.imports import load
from support import tamper

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import NARROW, faults_of_access, scrolls_sideways

pytestmark = pytest.mark.proof


@pytest.fixture
def bakery(console):
    """Two agents, a page from the web, something retired, and a memory made from two others."""
    assistant, scout = console.agent(), console.agent("scout")
    rye = assistant.remember("Rye dough rests a day", tier="archival", tags=["bread"]).records[0]
    opening = assistant.remember("The shop opens at eight", tier="archival", tags=["hours"]).records[0]
    web = scout.remember("Refunds go out by wire", tier="archival", source="web", evidence=["https://r.example"])
    plan = assistant.remember("Begin the rye the evening before", derived_from=[rye.id], tier="archival").records[0]
    console.owner.forget(opening.id, reason="it opens at seven now")
    return {"rye": rye.id, "opening": opening.id, "web": web.records[0].id, "plan": plan.id}


def listed(page):
    """Return the links to the memories that are listed."""
    return page.get_by_role("list", name="Memories").locator("a.memory-link")


def test_facets_narrow_the_list_and_the_address_holds_them(console, bakery):
    with console.page("/memories") as page:
        page.get_by_role("link", name="Rye dough").wait_for()
        page.get_by_role("group", name="Source").get_by_label("web").check()
        page.get_by_role("link", name="Rye dough").wait_for(state="detached")
        assert "source=web" in page.url
        page.reload()
        page.get_by_role("link", name="Refunds").wait_for()
        expect(listed(page)).to_have_text([each.text for each in console.owner.list_memories(sources=["web"])])


def test_a_search_shows_why_each_was_found(console, bakery):
    with console.page("/memories") as page:
        # A key does nothing before the page is there.
        page.get_by_role("link", name="Rye dough").wait_for()
        page.keyboard.press("/")
        page.keyboard.type("rye dough")
        page.keyboard.press("Enter")
        found = page.get_by_role("region", name="Found")
        found.get_by_role("link", name="Rye dough").wait_for()
        expect(found).to_contain_text("found by words")
        first = found.get_by_role("link").first.inner_text()
    assert first == console.owner.recall("rye dough").hits[0].memory.text


def test_a_search_takes_scopes_dates_and_fields_of_its_own(console, bakery):
    agent = console.agent()
    agent.remember("Rye rolls are baked twice", tier="archival", metadata={"oven": "stone"}, reason="seen")
    agent.remember("Rye sticks are baked once", tier="archival", metadata={"oven": "steel"}, reason="seen")
    where = {"oven": "stone"}
    with console.page("/memories?q=rye&since=2000-01-01&within=/") as page:
        found = page.get_by_role("region", name="Found")
        found.get_by_role("link", name="Rye sticks").wait_for()
        page.get_by_text("More filters").wait_for()
        page.get_by_label("Fields of its own, as JSON").fill('{"oven": "stone"')
        page.keyboard.press("Enter")
        page.get_by_text("This is no JSON object").wait_for()
        page.get_by_label("Fields of its own, as JSON").fill(json.dumps(where))
        page.keyboard.press("Enter")
        expect(found.locator("a.memory-link")).to_have_text(["Rye rolls are baked twice"])
        page.reload()
        expect(found.locator("a.memory-link")).to_have_text(["Rye rolls are baked twice"])
        page.get_by_label("Written to").fill("2001-01-01")
        page.get_by_text("Nothing is found").wait_for()
    assert [hit.memory.text for hit in console.owner.recall("rye", where=where)] == ["Rye rolls are baked twice"]


def test_a_search_as_one_types_is_narrowed_by_facets(console, bakery):
    console.agent("scout").remember("Rye is sold in sacks", tier="archival", reason="seen")
    with console.page("/memories") as page:
        # A key does nothing before the page is there.
        page.get_by_role("link", name="Rye dough").wait_for()
        page.keyboard.press("/")
        page.keyboard.type("rye")
        found = page.get_by_role("region", name="Found")
        found.get_by_role("link", name="Rye dough").wait_for()
        page.get_by_role("group", name="Written by").get_by_label("agent:scout").check()
        expect(found.locator(".memory-link")).to_have_text(["Rye is sold in sacks"])
        expect(found.locator("mark")).to_have_text(["Rye"])
        expect(found).to_contain_text("said by agent:scout")


def test_filters_are_saved_under_a_name_used_again_and_deleted(console, bakery):
    with console.page("/memories?q=rye&author=agent:assistant") as page:
        page.get_by_role("button", name="Save these filters").click()
        page.get_by_label("Name of these filters").fill("what the assistant says of rye")
        page.keyboard.press("Enter")
        page.goto(f"{console.url}/console/memories")
        saved = page.get_by_role("region", name="Saved filters")
        saved.get_by_role("link", name="what the assistant").click()
        page.wait_for_url("**/memories?q=rye&author=agent:assistant")
        page.get_by_role("region", name="Found").get_by_role("link", name="Rye dough").wait_for()
        saved.get_by_role("button", name="Delete the saved filter").click()
        expect(saved.get_by_role("link")).to_have_count(0)
        page.reload()
        page.get_by_role("region", name="Found").wait_for()
        expect(saved.get_by_role("link")).to_have_count(0)


def test_an_earlier_commit_shows_what_was_active_then(console, bakery):
    with console.page("/memories?at=2") as page:
        page.get_by_role("link", name="The shop opens at eight").wait_for()
        expect(listed(page)).to_have_text([each.text for each in console.owner.list_memories(as_of=2)])


def test_several_are_forgotten_by_keys_and_come_back_by_undo(console, bakery):
    before = {each.id for each in console.owner.list_memories()}
    with console.page("/memories") as page:
        page.get_by_role("link", name="Rye dough").wait_for()
        for key in "jxjx":
            page.keyboard.press(key)
        page.get_by_role("button", name="Forget…").click()
        page.get_by_label("Reason (recorded").fill("both are wrong")
        page.keyboard.press("Enter")
        page.get_by_text("Forgot 2 memories.").last.wait_for()
        assert len(console.owner.list_memories()) == len(before) - 2
        assert "Refunds" not in console.owner.context("refunds and rye").text
        page.keyboard.press("u")
        page.get_by_text("Undone.").last.wait_for()
    assert {each.id for each in console.owner.list_memories()} == before


def test_selection_is_exported_as_a_file_another_store_imports(console, bakery, stage):
    with console.page("/memories?q=rye") as page:
        page.get_by_label("Select Rye dough rests a day").check()
        with page.expect_download() as given:
            page.get_by_role("button", name="Export").click()
        file = console.folder / given.value.suggested_filename
        given.value.save_as(file)
    elsewhere = stage().owner
    load(elsewhere, file)
    assert [(each.text, each.tags) for each in elsewhere.list_memories()] == [("Rye dough rests a day", ("bread",))]


def test_memory_is_revised_and_undo_reverts_the_prompt(console, bakery):
    with console.page(f"/memories/{bakery['rye']}") as page:
        page.get_by_role("region", name="What it says").wait_for()
        page.keyboard.press("e")
        page.get_by_label("Text").fill("Rye dough rests two days")
        page.get_by_label("Reason (recorded").fill("measured")
        page.get_by_role("dialog").get_by_role("button", name="Revise").click()
        page.get_by_text("Revised.").last.wait_for()
        assert "two days" in console.owner.context("rye dough").text
        page.get_by_role("button", name="Undo").click()
        page.get_by_text("Undone.").last.wait_for()
    assert "two days" not in console.owner.context("rye dough").text


def test_what_another_actor_changed_meanwhile_is_not_written_over(console, bakery):
    with console.page(f"/memories/{bakery['rye']}") as page:
        page.get_by_role("button", name="Revise").click()
        page.get_by_label("Text").fill("Rye dough rests two days")
        page.get_by_label("Reason (recorded").fill("measured")
        console.agent().revise(bakery["rye"], "Rye dough rests three days", reason="asked Ana")
        page.get_by_role("dialog").get_by_role("button", name="Revise").click()
        page.get_by_text("Somebody changed this memory").wait_for()
    assert console.owner.get(bakery["rye"]).text == "Rye dough rests three days"


def test_what_was_retired_is_restored(console, bakery):
    with console.page(f"/memories/{bakery['opening']}") as page:
        page.get_by_role("button", name="Restore").click()
        page.get_by_label("Reason (recorded").fill("it was right after all")
        page.keyboard.press("Enter")
        page.get_by_text("Restored.").last.wait_for()
    assert console.owner.get(bakery["opening"]).status is Status.ACTIVE


def test_a_lineage_leads_to_what_a_memory_was_made_from(console, bakery):
    with console.page(f"/memories/{bakery['plan']}") as page:
        page.get_by_role("group", name="Lineage").get_by_role("link", name="Rye dough").click()
        page.wait_for_url(f"**/memories/{bakery['rye']}")
        page.get_by_role("region", name="What it says").get_by_text("Rye dough rests a day").wait_for()
    assert console.owner.lineage(bakery["plan"]).memories[0].id == bakery["rye"]


def picture() -> bytes:
    """Return a PNG of one pixel."""

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(b"\0\0\0\0")) + part(b"IEND", b"")


def test_picture_is_shown_and_executable_content_is_only_downloaded(console):
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>window.ran = 1</script></svg>"
    shown, active = (
        console.owner.remember(text, blob=console.owner.put_blob(data).ref, content_type=kind, tier="archival")
        for text, data, kind in (("A loaf", picture(), "image"), ("A plan of the ovens", svg, "file"))
    )
    with console.page(f"/memories/{shown.records[0].id}") as page:
        page.get_by_role("img", name="A loaf").wait_for()
        page.wait_for_function("() => document.querySelector('figure img').naturalWidth === 1")
    with console.page(f"/memories/{active.records[0].id}") as page:
        page.get_by_text("It could run in a browser").wait_for()
        expect(page.locator("figure img")).to_have_count(0)
        with page.expect_download() as given:
            page.get_by_role("link", name="Download").click()
        assert given.value.path().read_bytes() == svg
        assert page.evaluate("window.ran") is None


@pytest.mark.parametrize(
    "settings", [{}, {"color_scheme": "dark"}, {"viewport": NARROW}], ids=["light", "dark", "phone"]
)
@pytest.mark.parametrize("place", ["/memories", "/memories?view=reading", "/memories?q=rye", "/memories/{plan}"])
def test_each_is_for_everybody_and_no_wider_than_its_window(console, bakery, place, settings):
    with console.page(place.format(**bakery), **settings) as page:
        page.get_by_text("Begin the rye").first.wait_for()
        assert (faults_of_access(page), scrolls_sideways(page)) == ([], False)


@pytest.mark.parametrize("width", [761, 1100])
def test_a_memory_is_readable_at_every_width(console, bakery, width):
    with console.page("/memories", viewport={"width": width, "height": 800}) as page:
        text = page.get_by_role("link", name="Rye dough")
        text.wait_for()
        assert text.bounding_box()["width"] >= 240
        assert not scrolls_sideways(page)


def test_a_damaged_memory_is_said_to_be_damaged(console, bakery):
    tamper.run(console.owner.path, tamper.BENT_BODY.format(bakery["rye"]))
    with console.page("/memories") as page:
        page.get_by_role("link", name="Refunds").wait_for()
        row = page.get_by_role("listitem").filter(has_text="cannot be shown")
        expect(row).to_contain_text("does not match its seal")
        row.get_by_role("link", name="Integrity").click()
        page.get_by_role("heading", name="Integrity", level=1).wait_for()


def test_versions_are_shown_around_one_that_is_damaged(console):
    record = console.owner.remember("Rye is milled on Mondays", tier="archival", reason="told").record
    for day in ("Tuesdays", "Fridays"):
        console.owner.revise(record.id, f"Rye is milled on {day}", reason="told")
    tamper.edit(console.owner.path, "events", "payload = salt", "version = 2")
    with console.page(f"/memories/{record.id}") as page:
        versions = page.get_by_role("region", name="Versions")
        expect(versions.get_by_role("alert").first).to_contain_text(f"version 2 of memory {record.id} is damaged")
        expect(versions).to_contain_text("Rye is milled on Mondays")
        expect(versions).to_contain_text("what changed with version 3 is not known")
        expect(page.get_by_role("region", name="Fields").get_by_role("alert").first).to_contain_text("version 2")
        assert faults_of_access(page) == []


def test_earlier_versions_are_shown_where_the_newest_is_damaged(console):
    record = console.owner.remember("Rye is milled on Mondays", tier="archival", reason="told").record
    console.owner.revise(record.id, "Rye is milled on Fridays", reason="told")
    tamper.edit(console.owner.path, "records", "body = seal")
    tamper.edit(console.owner.path, "events", "payload = salt", "version = 2")
    with console.page(f"/memories/{record.id}", expected=["status of 500", "500 (Internal"]) as page:
        expect(page.get_by_role("region", name="Versions")).to_contain_text("Rye is milled on Mondays")
        expect(page.get_by_role("alert").first).to_contain_text("does not match its seal")


def found_by_keys(page, words):
    """Search from the keyboard; return the rows of what is found."""
    page.get_by_role("link", name="Rye dough").wait_for()
    page.keyboard.press("/")
    page.keyboard.type(words)
    return page.get_by_role("grid", name="Memories that were found").get_by_role("row")


def test_arrows_walk_what_a_search_found_and_enter_opens_it(console, bakery):
    console.agent().remember("Rye rolls are baked twice", tier="archival", reason="seen")
    with console.page("/memories") as page:
        rows = found_by_keys(page, "rye")
        expect(rows).to_have_count(3)
        box = page.get_by_role("combobox", name="Search by words")
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        second = rows.nth(1)
        expect(second).to_have_attribute("aria-selected", "true")
        expect(box).to_have_attribute("aria-activedescendant", second.get_attribute("id"))
        text = second.locator(".memory-link").inner_text()
        assert faults_of_access(page) == []
        page.keyboard.press("Enter")
        page.get_by_role("region", name="What it says").get_by_text(text).wait_for()


def test_escape_leaves_a_search_with_what_it_found_and_keys_go_on(console, bakery):
    with console.page("/memories") as page:
        rows = found_by_keys(page, "rye")
        expect(rows).to_have_count(2)
        page.keyboard.press("Escape")
        box = page.get_by_role("combobox", name="Search by words")
        expect(box).to_have_value("rye")
        page.keyboard.press("j")
        expect(rows.first).to_have_attribute("aria-selected", "true")
        expect(box).to_have_value("rye")


def test_arrows_in_the_box_walk_the_list_that_is_browsed(console, bakery):
    with console.page("/memories") as page:
        first = listed(page).first
        text = first.inner_text()
        page.keyboard.press("/")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.get_by_role("region", name="What it says").get_by_text(text).wait_for()


@pytest.mark.parametrize("view", ["reading", "table"])
def test_a_row_says_what_to_heed_of_a_memory(console, view):
    owner = console.owner
    owner.at(scope="/agents/lab").remember("Tomas pays in rates", tier="archival", sensitivity="sensitive", reason="so")
    owner.remember("The oven may be broken", tier="archival", confidence=0.4, source="web", reason="read")
    with console.page(f"/memories?view={view}") as page:
        rows = page.get_by_role("list", name="Memories").get_by_role("listitem")
        pays = rows.filter(has_text="Tomas pays")
        expect(pays).to_contain_text("sensitive")
        expect(pays).to_contain_text("only for agent lab")
        oven = rows.filter(has_text="The oven")
        expect(oven).to_contain_text("unsure, 40 %")
        expect(oven).to_contain_text("from the web")
        assert faults_of_access(page) == []
