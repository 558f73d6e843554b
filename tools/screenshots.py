"""Make a picture of each screen of the console: four widths, light and dark, on the store of the demo.

usage: python tools/screenshots.py FOLDER [SCREEN...]

It takes the built console and an installed Chromium (`CHROMIUM` names another one). The names of the screens are those
of `docs/console`. A picture is as high as its page.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from playwright.sync_api import sync_playwright

from support.browser import ARGUMENTS, Console, branched, chromium, furnished, loaded, shown

WIDTHS = (390, 800, 1440, 2560)
SCHEMES = ("light", "dark")
HEIGHT = 900


def main(folder: Path, names: list[str]) -> int:
    """Write the pictures as NAME-WIDTH-SCHEME.png; return an exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    path = chromium()
    if path is None:
        print("there is no Chromium on this machine: name one in CHROMIUM", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as store, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        console = Console(furnished(Path(store)), browser, embedder="hashed", maintenance=False)
        branched(console.owner)
        addresses = shown(console)
        unknown = set(names) - set(addresses)
        if unknown:
            print(f"no such screen: {', '.join(sorted(unknown))}; there are {', '.join(addresses)}", file=sys.stderr)
            return 2
        for scheme in SCHEMES:
            for width in WIDTHS:
                viewport = {"width": width, "height": HEIGHT}
                with console.page("/", viewport=viewport, color_scheme=scheme) as page:
                    for name in names or addresses:
                        page.goto(f"{console.url}/console{addresses[name]}")
                        page.get_by_role("heading", level=1).wait_for()
                        loaded(page)
                        page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
        console.close()
        browser.close()
    print(f"wrote {len(WIDTHS) * len(SCHEMES) * len(names or addresses)} pictures to {folder}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python tools/screenshots.py FOLDER [SCREEN...]")
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
