"""Searching: what ranking and the duplicate gate ask a store about many memories at once.

Invariants
(1) A profile is sealed or was checked; what is likely is only told, and checked where it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from keepward.model.memory import Kind, Record, Sensitivity, idle_since
from keepward.model.value import to_micros

if TYPE_CHECKING:
    from keepward.ports.store import Features


class Profile(NamedTuple):
    """One live memory version as ranking sees it.

    Shares are 0..1, instants microseconds since 1970, UTC. A tuple, since a cold start makes all of them.
    """

    id: str
    version: int
    #: Position of the newest version.
    touched: int
    #: Order of arrival: position of the first version.
    position: int
    scope: str
    tier: str
    kind: str
    content_type: str
    key: str | None
    subject: str | None
    category: str | None
    #: None for what is no event.
    session: str | None
    speaker: str | None
    tags: tuple[str, ...]
    #: Rank of ``model.trust.Trust``.
    trust: int
    sensitive: bool
    importance: float
    confidence: float
    #: From when importance fades; None: it does not.
    idle_since: int | None
    #: When what it tells happened, or else when it was first written.
    created_at: int
    expires_at: int | None
    #: Empty where they are not kept and have to be computed.
    terms: bytes
    vector_model: str | None
    units: bytes | None

    @classmethod
    def of(cls, record: Record, features: Features, *, touched: int, position: int) -> Profile:
        """Return how ranking sees a record."""
        vectors = features.model is not None and features.units > 0
        return cls(
            id=record.id,
            version=record.version,
            touched=touched,
            position=position,
            scope=record.scope,
            tier=record.tier.value,
            kind=record.kind.value,
            content_type=record.content_type.value,
            key=record.key,
            subject=record.subject,
            category=record.category,
            session=record.session if record.kind is Kind.EVENT else None,
            speaker=record.speaker,
            tags=record.tags,
            trust=int(record.effective_trust),
            sensitive=record.sensitivity is Sensitivity.SENSITIVE,
            importance=record.importance,
            confidence=record.confidence,
            idle_since=None if (since := idle_since(record)) is None else to_micros(since),
            created_at=to_micros(record.occurred_at or record.created_at),
            expires_at=None if record.expires_at is None else to_micros(record.expires_at),
            terms=features.terms,
            vector_model=features.model if vectors else None,
            units=features.vectors if vectors else None,
        )


class Likely(NamedTuple):
    """A memory that may say the same as another, before it is read. A tuple, since a batch makes eight a memory."""

    id: str
    version: int
    #: Whether the texts are equal under the declared normalisation.
    equal: bool
    #: Whether they may state the same, as far as their traits tell.
    kindred: bool
