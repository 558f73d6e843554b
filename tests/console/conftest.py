"""What the tests of the console stand on: one browser for all of them, and a store and a server for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """One Chromium; without one on this machine the tests say so and the rest goes on."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
    from support.browser import ARGUMENTS, chromium

    path = chromium()
    if path is None:
        pytest.skip("there is no Chromium on this machine: install Debian's, or name one in CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield running
        running.close()


@pytest.fixture
def stage(tmp_path: Path, browser: Any) -> Iterator[Callable[..., Any]]:
    """Make a `support.browser.Console`: a fresh store and its server, closed after the test."""
    from support.browser import Console

    made: list[Any] = []

    def make(**options: Any) -> Any:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Console(folder, browser, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Iterator[Any]:
    """The store of `serve --demo` and its server, for tests that leave it as they found it."""
    from support.browser import Console, furnished

    console = Console(furnished(tmp_path_factory.mktemp("demo")), browser, embedder="hashed", maintenance=False)
    yield console
    console.close()


@pytest.fixture
def console(stage: Callable[..., Any]) -> Any:
    """A fresh store and its server; `console.page()` lends a page that is signed in."""
    return stage()
