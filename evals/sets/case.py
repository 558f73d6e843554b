"""One labelled text, and which half of its set it belongs to.

Invariants
(1) The half depends on the wording, not on the values put into it: no wording is in both halves.
(2) Sets are generated from fixed seeds; the same code gives the same texts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One labelled text."""

    #: Group the figures are reported by, such as ``provider`` or ``ordinary``.
    group: str
    #: Stable name of the wording (template) the text was made from.
    wording: str
    #: Number of the text within its wording.
    number: int
    text: str
    #: Whether a detector should flag it.
    wanted: bool

    @property
    def id(self) -> str:
        """Unique within one set."""
        return f"{self.group}/{self.wording}/{self.number}"

    @property
    def half(self) -> str:
        """``dev`` or ``test``, by a stable hash of group and wording."""
        digest = hashlib.sha256(f"{self.group}/{self.wording}".encode()).digest()
        return "dev" if digest[0] % 2 == 0 else "test"
