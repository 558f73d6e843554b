"""What a release needs, as commands for its workflow and for a person.

``python tools/release.py check v0.2.0`` fails unless every file names this version and the changelog has its date.
``python tools/release.py notes v0.2.0`` prints the section of the changelog.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "clients/typescript/package.json"
_HEADING = re.compile(r"^## (\S+) \(([^)]*)\)$", re.MULTILINE)


def versions(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each file that names the version, with the version that it names."""

    def text(name: str) -> str:
        return (root / name).read_text("utf-8")

    for name, pattern in (
        ("src/keepward/__init__.py", r'^__version__ = "(.+)"$'),
        ("CITATION.cff", r"^version: (.+)$"),
        ("deploy/kubernetes.yaml", r"image: ghcr\.io/keepward/keepward:(.+)$"),
        ("server.json", r"keepward\[mcp\]==([^\"]+)"),
    ):
        for found in re.finditer(pattern, text(name), re.MULTILINE):
            yield name, found[1]
    server = json.loads(text("server.json"))
    yield from (("server.json", each["version"]) for each in (server, *server["packages"]))
    for name in ("plugins/keepward/.claude-plugin/plugin.json", "console/package.json", PACKAGE):
        yield name, json.loads(text(name))["version"]


def sections(root: Path) -> dict[str, tuple[str, str]]:
    """Return the date and the text of each version in the changelog."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    found = list(_HEADING.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)]
    return {each[1]: (each[2], text[each.end() : end].strip() + "\n") for each, end in zip(found, ends, strict=True)}


def problems(root: Path, version: str) -> list[str]:
    """Return what keeps a version from being released."""
    found = [f"{name} names {said}" for name, said in versions(root) if said != version]
    date = sections(root).get(version, ("", ""))[0]
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
        found.append(f"CHANGELOG.md needs the heading `## {version} (YYYY-MM-DD)`")
    return found


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run one command; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "notes"])
    parser.add_argument("tag", help="the version, or its tag, such as v0.2.0")
    given = parser.parse_args(arguments)
    version = given.tag.removeprefix("v")
    if given.command == "check":
        for each in (found := problems(root, version)):
            print(each, file=sys.stderr)
        return 1 if found else 0
    if version not in sections(root):
        print(f"CHANGELOG.md has no section {version}", file=sys.stderr)
        return 1
    print(sections(root)[version][1], end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
