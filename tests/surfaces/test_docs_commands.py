"""Every command line on a page of the documentation has a command and options that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from keepward.cli.main import command_tree

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def command_lines(page: str) -> Iterator[str]:
    """Yield what follows ``keepward`` in blocks of commands and in code within a sentence."""
    for block in re.findall(r"^ *```(?:console|sh|text)\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE):
        yield from re.findall(r"^\s*(?:\$ )?keepward (.*)$", block, re.MULTILINE)
    yield from (" ".join(code.split()) for code in re.findall(r"`keepward ([a-z-][^`]*)`", page))


def options_of(command: click.Command) -> dict[str, bool]:
    """Return whether each option of a command takes a value."""
    params = [each for each in command.params if isinstance(each, click.Option)]
    return {name: not each.is_flag for each in params for name in (*each.opts, *each.secondary_opts)}


def unknown(line: str) -> list[str]:
    """Return the words of a command line that are no command or no option."""
    command: click.Command = command_tree()
    options = {**options_of(command), "--help": False}
    wrong, is_value = [], False
    for word in re.split(r"\s#\s", f"{line} ")[0].split():
        if word.startswith("--"):
            wrong += [word] if word not in options else []
            is_value = options.get(word, False)
        elif isinstance(command, click.Group) and not is_value:
            found = command.get_command(click.Context(command), word)
            wrong += [word] if found is None else []
            command = found or command
            options |= options_of(command)
        else:
            is_value = False
    return wrong


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_of_a_page_exist(path: Path) -> None:
    wrong = {line: words for line in command_lines(path.read_text()) if (words := unknown(line))}
    assert wrong == {}
