"""A real Chromium on a real server over a real store, for the tests of the console.

Invariants
(1) The browser is one that is installed: `CHROMIUM`, or a program of the usual names. Nothing is downloaded here.
(2) A page that a test was given must not have logged an error, thrown one, been reported by the content security
    policy, or asked anybody but its server. `Console.page` checks that when the block ends; `expected` names what a
    test brings about on purpose.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from playwright.sync_api import Browser, BrowserContext, Page, expect

from keepward import Actor, Memory
from keepward.http.app_state import AppState, ServerOptions
from keepward.http.server import Server, bind, create_app, prepare

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
#: Milliseconds that `expect` waits for what it says, on a machine that may be busy with something else.
PATIENCE = 20_000
expect.set_options(timeout=PATIENCE)
AXE = Path(__file__).parents[2] / "console" / "node_modules" / "axe-core" / "axe.min.js"
#: Of the store of the demo: what its customers ask, and what a page of the web says wrongly.
QUESTION = "Is there sesame in the walnut bread?"
WRONG = "The walnut bread of the bakery Krume is free of sesame."
#: Where a screen shows more than its path does, by name; what stands in braces are ids.
SHOWN = {
    "context": f"/context?q={QUESTION}&budget=700",
    "compare": "/context?view=compare&a={first}&b={second}",
    "branches": "/branches?closed=1",
    "recall": "/recall?q=What happens with the bread that is left over",
    "memory": "/memories/{wrong}",
    "core": "/core?block=operating_rules&open=history",
}
#: The console's own table of screens, and pictures of them.
TABLE = Path(__file__).parents[2] / "console" / "src" / "screens.tsx"
PICTURES = Path(__file__).parents[2] / "docs" / "console"
#: Run by the page before anything else: what the content security policy reports.
_LISTEN = """
window.reports = [];
document.addEventListener("securitypolicyviolation", (event) => window.reports.push(event.violatedDirective));
"""


def chromium() -> str | None:
    """Return the path of a Chromium of this machine; None where there is none (1)."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named if Path(named).is_file() else None
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Console:
    """One store, its server on a port of its own, and pages that look at it.

    ``owner`` is the owner's handle: a test arranges with it, and looks at the end whether the store says the same.
    """

    def __init__(
        self,
        folder: Path,
        browser: Browser,
        *,
        policy: Any = None,
        embedder: str = "none",
        maintenance: bool | None = None,
        identity: Path | None = None,
        **options: Any,
    ) -> None:
        self.browser, self.folder = browser, folder
        #: Milliseconds that a page waits for what a test does with it.
        self.patience = PATIENCE
        given: dict[str, Any] = {
            "embedder": embedder,
            "policy": policy,
            "maintenance": maintenance,
            "identity": identity,
        }
        self.owner = Memory.open(folder / "m.db", actor=Actor.operator("ana"), config_dir=folder / "home", **given)
        bound, chosen = bind(ServerOptions(port=0, quiet=True, writes_per_minute=0, **options))
        self.options = chosen
        self.serving = AppState(memory=self.owner, options=chosen)
        self.app = create_app(self.owner, options=chosen, serving=self.serving)
        self._start(bound)

    @property
    def url(self) -> str:
        """Address of the server, without a slash at its end."""
        return self.options.url

    def _start(self, bound: socket.socket) -> None:
        self.serving.stopping.clear()
        self._server: Server = prepare(self.app)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [bound]}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the server; the store stays open, and sessions are remembered."""
        self.serving.stopping.set()
        self._server.should_exit = True
        self._thread.join(timeout=20)

    def start(self) -> None:
        """Start the server again, on the port it had."""
        bound, _ = bind(replace(self.options))
        self._start(bound)

    def close(self) -> None:
        """Stop the server and close the store."""
        self.stop()
        self.owner.close()

    def agent(self, name: str = "assistant") -> Memory:
        """Return a handle of an agent."""
        return self.owner.as_actor(Actor.agent(name))

    @contextmanager
    def page(
        self,
        path: str = "/",
        *,
        expected: Sequence[str] = (),
        context: BrowserContext | None = None,
        credential: str = "",
        **settings: Any,
    ) -> Iterator[Page]:
        """Lend a page on a screen, signed in by a link of its own; see (2).

        ``path`` begins with a slash and is within the console. ``expected`` are parts of messages that may be logged.
        ``credential`` is the id of a reviewer's token; without one the page is the owner's.
        ``settings`` are those of a browser context, such as ``viewport`` or ``color_scheme``.
        """
        made = context or self.browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce", **settings})
        made.add_init_script(_LISTEN)
        page = made.new_page()
        page.set_default_timeout(self.patience)
        logged: list[str] = []
        page.on("console", lambda said: logged.append(said.text) if said.type in {"error", "warning"} else None)
        page.on("pageerror", lambda fault: logged.append(str(fault)))
        foreign: list[str] = []
        page.on("request", lambda sent: None if sent.url.startswith((self.url, "data:")) else foreign.append(sent.url))
        try:
            self.sign_in(page, credential)
            page.goto(f"{self.url}/console{path}")
            page.get_by_role("heading", level=1).wait_for()
            yield page
            reports = page.evaluate("window.reports")
            assert [each for each in logged if not any(part in each for part in expected)] == []
            assert (reports, foreign) == ([], [])
        finally:
            page.close()
            if context is None:
                made.close()

    def sign_in(self, page: Page, credential: str = "") -> None:
        """Open the console by a fresh link, as the owner or by a reviewer's token."""
        page.goto(self.serving.console_link(credential))
        page.get_by_role("heading", level=1).wait_for()


def furnished(folder: Path) -> Path:
    """Make the store that `serve --demo` shows in a folder, where a `Console` finds it; returns the folder."""
    from keepward.cli.demo import play

    given = {"actor": Actor.operator("ana"), "embedder": "hashed", "config_dir": folder / "home"}
    with Memory.open(folder / "m.db", maintenance=False, **given) as owner:
        assert [*play(owner)]
    return folder


def branched(owner: Memory) -> None:
    """Make branches on the store of the demo: one with a conflict, one merged, one discarded."""
    bot = owner.as_actor(Actor.agent("assistant"))
    ovens = bot.remember("The ovens are cleaned on Fridays after closing", tier="archival", reason="said").records[0].id
    rye = bot.remember("Rye dough rests for eight hours", tier="archival", reason="said").records[0].id
    for name, reason in (
        ("autumn-plan", "The plan for autumn: ovens, rye and the key"),
        ("menu", ""),
        ("old-notes", ""),
    ):
        owner.create_branch(name, reason=reason)
        there = bot.branch(name)
        if name != "autumn-plan":
            there.remember(f"A line of {name}: the soup is served at noon", tier="archival", reason="tried")
    there = bot.branch("autumn-plan")
    there.revise(ovens, "The ovens are cleaned on Mondays before opening", reason="a plan")
    there.revise(rye, "Rye dough rests for ten hours, in the cold room", reason="a plan")
    there.remember("The spare key is with the florist next door", tier="archival", reason="a plan")
    owner.as_actor(Actor.user("mira")).revise(ovens, "The ovens are cleaned on Saturdays", reason="a change")
    owner.merge_branch("menu")
    owner.discard_branch("old-notes")


def screens() -> list[str]:
    """Return the path of every screen of the navigation, as the console's own table has them."""
    return re.findall(r'path: "(/[^":]*)",\s*title: "[^"]*",\s*key:', TABLE.read_text("utf-8"))


def shown(demo: Console) -> dict[str, str]:
    """Return the address of every screen by name, on the store of the demo, and of what ``SHOWN`` has beside."""
    asked = demo.owner.receipts(kinds=["compile"], actor="support-bot", objective="walnut").items
    wrong = next(each.id for each in demo.owner.list_memories(limit=None) if each.text == WRONG)
    paths = {path.strip("/") or "home": path for path in screens()}
    names = {"first": asked[2].id, "second": asked[1].id, "wrong": wrong}
    return {**paths, **{name: address.format(**names) for name, address in SHOWN.items()}}


def screens_of_one(console: Console) -> list[str]:
    """Return the paths of the screens of one memory, for three of a store's."""
    return [f"/memories/{each.id}" for each in console.owner.list_memories(limit=3)]


def loaded(page: Page) -> None:
    """Wait until nothing on a page is being read any more."""
    expect(page.locator(".loading")).to_have_count(0, timeout=2 * PATIENCE)


def faults_of_access(page: Page) -> list[str]:
    """Return what axe-core finds wrong with a page: the rule and the elements, one a line."""
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true}}})")
    return [
        f"{each['id']}: {', '.join(str(node['target'][0]) for node in each['nodes'][:5])}"
        for each in found["violations"]
    ]


def scrolls_sideways(page: Page) -> bool:
    """Whether the page is wider than its window."""
    wider: bool = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return wider
