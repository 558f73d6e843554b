"""The identity: the document at the start of every context, and its editions."""

from __future__ import annotations

import hashlib
from datetime import datetime

from keepward.core.value import Value

#: Length of the version of an edition: the first digits of its hash.
EDITION_ID_CHARS = 16


def edition_of(text: str) -> str:
    """Return the SHA-256 of a document's text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Edition(Value):
    """One edition in the journal, and the commit that made it."""

    version: str
    #: SHA-256 of its text and of the text before, in hex.
    edition: str
    before: str | None
    at: datetime
    #: ``kind:name`` of the author of the commit and of the approver.
    actor: str
    approved_by: str | None
    reason: str
    commit: str


class Identity(Value):
    """The identity document, or one of its editions."""

    #: Version of the text; None without a document.
    version: str | None
    text: str | None
    tokens: int
    budget: int
    #: Whether this edition is in force.
    current: bool
    #: Why no edition can be proposed here, and what to do; None if one can.
    obstacle: str | None
    #: Whether the file was edited and differs from the last edition in the journal.
    edited: bool
    #: Oldest first.
    editions: tuple[Edition, ...]
