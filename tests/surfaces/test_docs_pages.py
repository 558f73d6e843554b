"""Pages that other tests do not run: links lead to headings that exist, and tables say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from keepward import KeepwardError, errors
from keepward.cli.command import EXIT_CODE_OF

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Where the site's generator adds headings of its own, so that the text does not have them all.
GENERATED = re.compile(r"^:::|generated from the code", re.MULTILINE)


def slug(heading: str) -> str:
    """Return the anchor of a heading, as Python-Markdown forms it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def prose(page: Path) -> str:
    """Return a page without its blocks of code, where `#` begins a comment."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    text = prose(page)
    return {slug(each) for each in re.findall(r"^#+ +(.+)$", text, re.MULTILINE)} | set(
        re.findall(r'<a id="([^"]+)"', text)
    )


def test_links_between_pages_lead_to_headings_that_exist() -> None:
    wrong = []
    checked = 0
    for page in sorted(DOCS.rglob("*.md")):
        for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if ":" in link or not anchor or target.suffix != ".md" or not target.is_relative_to(DOCS):
                continue
            if not target.exists():
                continue  # The generator writes some pages of the reference.
            checked += 1
            if anchor not in anchors(target) and not GENERATED.search(target.read_text("utf-8")):
                wrong.append(f"{page.relative_to(ROOT)}: {link}")
    assert checked > 100, "the pattern of links finds too few"
    assert not wrong, "\n".join(wrong)


def test_the_page_of_errors_has_the_exit_code_of_each() -> None:
    page = (DOCS / "reference" / "errors.md").read_text("utf-8")
    rows = {name: int(code) for name, code in re.findall(r"^\| `([A-Z]\w+)` \| (\d) \|", page, re.MULTILINE)}
    kinds = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, KeepwardError)}
    assert rows == {each.__name__: EXIT_CODE_OF.get(each.code, 1) for each in kinds - {KeepwardError}}


def test_the_glossary_is_in_order() -> None:
    words = re.findall(
        r"^\| <a id=.*?></a>([^|]+) \|", (DOCS / "reference" / "glossary.md").read_text("utf-8"), re.MULTILINE
    )
    assert words == sorted(words, key=str.lower)
