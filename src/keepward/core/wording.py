"""Wording: who said the present text of a memory. A text to which lines were added has several authors."""

from __future__ import annotations


class Wording:
    """The authors of the text of one memory, version by version, oldest first."""

    __slots__ = ("_authors", "_stamp", "_text", "present")

    def __init__(self) -> None:
        self._authors: dict[tuple[str, object], frozenset[str]] = {}
        self._stamp: tuple[str, object] = ("", None)
        self._text = ""
        #: The authors of the text of the newest version.
        self.present: frozenset[str] = frozenset()

    def add(self, text: str, by: str, at: object) -> None:
        """Add a version with the author and the time of its text."""
        stamp = by, at
        if stamp not in self._authors:
            added_lines = self._stamp in self._authors and text.startswith(f"{self._text}\n")
            self._authors[stamp] = self._authors[self._stamp] | {by} if added_lines else frozenset({by})
        # A rollback brings back an earlier text, and with it the authors of that text.
        self._stamp, self._text, self.present = stamp, text, self._authors[stamp]
