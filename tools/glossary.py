"""Explain the words of the glossary on every page of the site, as tooltips. MkDocs runs it as a hook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "glossary.md"
ROW = re.compile(r'^\| <a id="[\w-]+"></a>([\w -]+) \| (.*) \|$', re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Append the meaning of each word as an abbreviation, except on generated pages and on the glossary."""
    if page.file.src_uri.startswith("reference/"):
        return markdown
    meanings = ROW.findall(PAGE.read_text("utf-8"))
    return markdown + "\n" + "".join(f"\n*[{word}]: {meaning.replace('`', '')}" for word, meaning in meanings)
