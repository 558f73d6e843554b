"""Erasure: what stays of a memory whose content was destroyed, and how it is known again.

Invariants
(1) A tombstone holds nothing a person typed but its scope: no text, no name, no reference.
(2) A mark says nothing without the key, which is never in the store.
(3) What an erasure destroyed is named by places: ``seq.n`` for an event's content, ``seq`` for a commit's own.
"""

from __future__ import annotations

import hmac
from dataclasses import replace
from datetime import datetime
from typing import Literal

from keepward.errors import Tampered
from keepward.model.memory import ContentType, Record, Sensitivity, Stability, Status
from keepward.model.trust import Trust

#: Stands where a reason, a digest or a name stood.
ERASED = "[erased]"
#: What the aliases of a tombstone begin with; no memory may be given such a name.
MARK = "erased:"
#: Why something is erased: a code, so that the reason repeats nothing.
REASONS = ("request", "consent", "retention", "mistake", "secret", "other")
#: n of a commit's own content among its events.
OWN = -1

Place = tuple[int, int]
Sort = Literal["text", "name"]


def mark(key: bytes, tenant: str, sort: Sort, content: bytes) -> str:
    """Return the keyed mark of a text's normalised digest, or of an alias or reference.

    The first 16 bytes of HMAC-SHA256 over ``keepward/tombstone/v1``, the tenant's name, the sort, and the content.
    """
    body = b"\0".join((b"keepward/tombstone/v1", tenant.encode(), sort.encode(), content))
    return f"{MARK}{sort}:{hmac.digest(key, body, 'sha256')[:16].hex()}"


def blank(record: Record, version: int) -> Record:
    """Return a version of a memory without anything it said; see (1)."""
    return replace(
        record,
        version=version,
        text="",
        key=None,
        subject=None,
        category=None,
        tags=(),
        content_type=ContentType.TEXT,
        blob=None,
        metadata_json=None,
        source="unknown",
        trust=Trust.UNKNOWN,
        heard=None,
        evidence=(),
        derived_from=(),
        confidence=0.0,
        importance=0.0,
        sensitivity=Sensitivity.NORMAL,
        stability=Stability.STABLE,
        access=None,
        status=Status.ERASED,
        superseded_by=None,
        session=None,
        speaker=None,
        job=None,
        aliases=(),
        occurred_at=None,
        expires_at=None,
    )


def tombstone(record: Record, *, now: datetime, by: str, marks: tuple[str, ...]) -> Record:
    """Return the last version of an erased memory; ``by`` is ``kind:name`` of who erased it."""
    return replace(blank(record, record.version + 1), author=by, aliases=marks, updated_at=now, reinforced_at=now)


def place_name(place: Place) -> str:
    """Return ``seq.n``, or ``seq`` for a commit's own content."""
    seq, n = place
    return str(seq) if n == OWN else f"{seq}.{n}"


def parse_place(name: str) -> Place:
    """Return the place of a name.

    Raises:
        Tampered: ``place_name`` did not write it.
    """
    seq, dot, n = name.partition(".")
    try:
        place = (int(seq), int(n) if dot else OWN)
    except ValueError as fault:
        raise Tampered("an erasure names what is no place; run `keepward verify`") from fault
    if place_name(place) != name:
        raise Tampered("an erasure names what is no place; run `keepward verify`")
    return place
