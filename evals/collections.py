"""Public collections that a detector is measured with, read from a folder that is no part of the repository.

    secrets/NAME.json    what ``kingfisher rules list --format json`` prints, or any list of rules with ``id`` and
                         ``examples``; ``visible: false`` says that a rule finds no secret by itself: a host, an id
    attacks/NAME.*       attack texts
    ordinary/NAME.*      texts in which nothing is to be found

Texts stand in ``.jsonl`` (objects with ``text``), in ``.json`` (a list of strings) or in ``.txt`` (paragraphs).

Invariants
(1) The half of a text depends on its provider, or on its first 80 characters. The half ``seen`` was in view while rules
    were written, the half ``unread`` was not, but for the names of its providers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One text of a collection."""

    #: Name of its file, without the ending.
    collection: str
    text: str
    half: str
    #: Whether its rule says that it shows a secret.
    secret: bool = True


def read(folder: Path) -> Iterator[Found]:
    """Yield the texts of one kind, by the name of their file and in its order.

    Raises:
        ValueError: a file is none of those that can be read.
    """
    for file in sorted(folder.glob("*.*")):
        if file.suffix == ".txt":
            texts: list[object] = list(re.split(r"\n\s*\n", file.read_text("utf-8")))
        elif file.suffix == ".jsonl":
            texts = [json.loads(line)["text"] for line in file.read_text("utf-8").splitlines() if line.strip()]
        elif file.suffix == ".json":
            texts = json.loads(file.read_text("utf-8"))
        else:
            raise ValueError(f"{file.name} is no .jsonl, .json or .txt")
        for item in texts:
            if isinstance(item, dict):
                half, secret = _half(item["id"].rpartition(".")[0]), item.get("visible", True)
                for example in item["examples"]:
                    yield Found(collection=file.stem, text=example, half=half, secret=secret)
            elif isinstance(item, str) and item.strip():
                yield Found(collection=file.stem, text=item.strip(), half=_half(item.strip()[:80]))


def _half(name: str) -> str:
    return "seen" if hashlib.sha256(name.encode()).digest()[0] % 2 else "unread"
