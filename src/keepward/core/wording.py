"""Wording: who said the present text of a memory. A text to which lines were added has several authors."""

from __future__ import annotations

from typing import Generic, TypeVar

Author = TypeVar("Author")


class Wording(Generic[Author]):
    """The authors of the text of one memory, version by version, oldest first."""

    __slots__ = ("_authors", "_newest", "present")

    def __init__(self) -> None:
        self._authors: dict[tuple[str, Author, object], frozenset[Author]] = {}
        self._newest = ""
        #: The authors of the text of the newest version.
        self.present: frozenset[Author] = frozenset()

    def add(self, text: str, by: Author, at: object) -> None:
        """Add a version with the author and the time of its text."""
        version = text, by, at
        if version not in self._authors:
            added_lines = self._authors and text.startswith(f"{self._newest}\n")
            self._authors[version] = self.present | {by} if added_lines else frozenset({by})
        # A rollback brings back an earlier text, and with it the authors of that text.
        self._newest, self.present = text, self._authors[version]
