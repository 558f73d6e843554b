"""Large stores in the console: a queue of 10,000, 100,000 memories, and how soon there is something to see."""

from __future__ import annotations

from statistics import median

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from support.browser import Console, loaded
from support.bulk_data import many_memories, many_waiting

pytestmark = [pytest.mark.proof, pytest.mark.slow]
#: Milliseconds from the whole document to the first content, and to all of it, of the page that is open.
VIEW = """() => {
  const [document_] = performance.getEntriesByType('navigation');
  const [paint] = performance.getEntriesByName('first-contentful-paint');
  return [paint.startTime - document_.responseEnd, performance.now() - document_.responseEnd];
}"""
#: Milliseconds that the state of the store takes the same browser to fetch, as the median of five.
BARE = """async () => {
  const spent = [];
  for (let turn = 0; turn < 5; turn += 1) {
    const began = performance.now();
    await (await fetch('/memory/status')).json();
    spent.push(performance.now() - began);
  }
  return spent.sort((one, other) => one - other)[2];
}"""
#: Milliseconds from a key to the frame that shows what it opened, and of a bare frame, each as often as a number says.
KEYS = """async (times) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => done(performance.now())));
  const title = () => document.querySelector('article .diff, article .proposal-words')?.textContent;
  const keys = [], frames = [];
  for (let turn = 0; turn < times; turn += 1) {
    await frame();
    const bare = performance.now();
    frames.push((await frame()) - bare);
    const before = title(), began = performance.now();
    document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}));
    let now = await frame();
    while (title() === before || title() === undefined) now = await frame();
    keys.push(now - began);
  }
  return [keys, frames];
}"""


@pytest.fixture(scope="module")
def large(tmp_path_factory, browser):
    """A store of 100,000 memories, and 10,000 proposals that wait."""
    console = Console(tmp_path_factory.mktemp("large"), browser)
    console.patience = 40_000
    many_memories(console.owner, 100_000)
    many_waiting(console.owner, 10_000)
    yield console
    console.close()


def test_queue_of_ten_thousand_scrolls_to_its_end(large):
    with large.page("/review") as page:
        queue = page.get_by_role("listbox")
        page.get_by_role("listbox").get_by_role("option").first.wait_for()
        queue.evaluate("(list) => list.scrollTo(0, list.scrollHeight)")
        last = page.get_by_role("option").filter(has_text="Guess 9999:")
        last.click()
        assert page.get_by_role("option").count() < 60
        page.locator("article").get_by_text("Guess 9999:").first.wait_for()
        page.locator("article button[aria-disabled=false]").first.wait_for()
        page.keyboard.press("a")
        page.get_by_text("Approved “Guess 9999").first.wait_for()
    assert large.owner.pending(state="approved")[0].steps[0].after.text.startswith("Guess 9999")


def test_numbers_are_seen_within_a_second_after_the_document(large, record_property):
    with large.page("/") as page:
        # Once, so that what the server reads for the first time is not counted, nor what the sign-in asked for.
        loaded(page)
        page.reload()
        page.locator("a.tile, div.tile").first.wait_for()
        first, all_of_it = page.evaluate(VIEW)
        loaded(page)
        bare = page.evaluate(BARE)
    record_property("ratios", {"first paint": first / bare, "tiles": all_of_it / bare})
    print(f"\nfirst paint {first:.0f} ms, tiles {all_of_it:.0f} ms, a bare status {bare:.0f} ms")
    # A machine that is busy with something else takes longer for the bare call too.
    assert (first < max(1_000, 3 * bare), all_of_it < max(1_000, 20 * bare)) == (True, True)


def test_a_key_answers_within_a_tenth_of_a_second(large, record_property):
    with large.page("/review") as page:
        page.locator("article").first.wait_for()
        keys, frames = page.evaluate(KEYS, 20)
    record_property("ratios", {"a key": median(keys) / median(frames)})
    print(f"\na key {median(keys):.0f} ms, a bare frame {median(frames):.0f} ms")
    assert median(keys) < max(100, 6 * median(frames))
