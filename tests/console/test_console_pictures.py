"""A picture of every screen, light and dark, from the store of the demo: `docs/console` has them, and the README one.

``KEEPWARD_PICTURES=write`` makes them anew. Without it they are looked for, and not compared: fonts differ by machine.
"""

from __future__ import annotations

import base64
import os

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
from playwright.sync_api import expect

from support.browser import PICTURES, branched, loaded, shown

pytestmark = pytest.mark.proof
#: Bytes of one picture, at most.
MOST = 80_000
#: Names the folder of the test as a reader's would be named.
AT_HOME = """(folder) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(folder, "~/demo");
}"""


def test_every_screen_has_its_pictures(demo):
    addresses = shown(demo)
    wanted = {f"{name}-{scheme}.webp": (name, scheme) for name in addresses for scheme in ("light", "dark")}
    if os.environ.get("KEEPWARD_PICTURES") == "write":
        PICTURES.mkdir(exist_ok=True)
        for each in PICTURES.glob("*.webp"):
            each.unlink()
        # The others show the store as the demo leaves it.
        for picture, (name, scheme) in sorted(wanted.items(), key=lambda each: each[1][0] == "branches"):
            if name == "branches" and not demo.owner.branches():
                branched(demo.owner)
            with demo.page(addresses[name], color_scheme=scheme) as page:
                loaded(page)
                page.wait_for_load_state("networkidle")
                expect(page.get_by_role("definition").get_by_text("…", exact=True)).to_have_count(0)
                page.evaluate(AT_HOME, str(demo.folder))
                told = {"format": "webp", "quality": 60}
                taken = page.context.new_cdp_session(page).send("Page.captureScreenshot", told)
                (PICTURES / picture).write_bytes(base64.b64decode(taken["data"]))
    sizes = {each.name: each.stat().st_size for each in PICTURES.glob("*.webp")}
    assert (set(sizes), [name for name, size in sizes.items() if not 2_000 < size < MOST]) == (set(wanted), [])
