"""Samples of code on pages, and what the pages say that they print."""

from __future__ import annotations

import re


def blocks(language: str, page: str) -> list[str]:
    """Return the blocks of a language, in order, without those that say why they do not run."""
    return re.findall(rf"(?<!-->\n\n)```{language}\n(.*?)```", page, re.DOTALL)


def unrun(language: str, page: str) -> list[str]:
    """Return the blocks of a language that say why they do not run."""
    return re.findall(rf"(?<=-->\n\n)```{language}\n(.*?)```", page, re.DOTALL)


def printed(page: str) -> list[str]:
    """Return the comments after ``print``, each up to a colon and a space."""
    return re.findall(r"^ *print\(.*\)  # (.*?)(?:: .*)?$", "\n".join(blocks("python", page)), re.MULTILINE)
