"""The identity: what is told of the document that opens every context, and of its editions."""

from __future__ import annotations

import hashlib
from datetime import datetime

from keepward.core.value import Value

#: Digits of an edition that make the version, by which receipts name it.
EDITION_ID_CHARS = 16


def edition_of(text: str) -> str:
    """Return the SHA-256 of a document's text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Edition(Value):
    """One edition that the journal knows of, and how it came to hold."""

    version: str
    #: SHA-256 of its text, in hex, and of the text that it took the place of.
    edition: str
    before: str | None
    at: datetime
    #: ``kind:name`` of who made the commit, and of who approved it.
    actor: str
    approved_by: str | None
    reason: str
    commit: str


class Identity(Value):
    """The identity document as it stands, or one of its editions."""

    #: Of the text that follows; None where there is no document.
    version: str | None
    text: str | None
    tokens: int
    budget: int
    #: Whether it is what holds now.
    current: bool
    #: Why no new edition can be proposed here, and what to do; None where one can.
    obstacle: str | None
    #: Whether the document is another than the journal names last: somebody has edited the file.
    edited: bool
    #: Oldest first.
    editions: tuple[Edition, ...]
