"""What the index is told and asked: an entry for each live memory version, a query, who may see what.

Invariants
(1) positions are unique among the live entries of a tenant; they order memories by arrival.
(2) instants are microseconds since the epoch, UTC.
(3) `None` in an `Allowed` field means "no condition"; an empty set allows nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One live memory version as the index keeps it."""

    id: str
    version: int
    #: Order of arrival in the tenant's journal, unique among live entries.
    position: int
    scope: str
    tier: str
    kind: str
    content_type: str = "text"
    key: str | None = None
    subject: str | None = None
    category: str | None = None
    #: Conversation or run the memory came from; neighbours are looked for inside it.
    session: str | None = None
    #: Who said it, where named.
    speaker: str | None = None
    tags: tuple[str, ...] = ()
    #: 0 unknown .. 7 owner.
    trust: int = 0
    sensitive: bool = False
    importance: float = 0.5
    confidence: float = 0.5
    #: Microseconds since the epoch from which importance fades; None: it does not.
    idle_since: int | None = None
    #: Microseconds since the epoch.
    created_at: int = 0
    #: Microseconds since the epoch; gone at this instant. None: never.
    expires_at: int | None = None
    #: `analyze.pack(analyze.terms(units.indexed_text(...)), analyze.names(text))`.
    terms: bytes
    #: Id of the model of `units`; None where there are none.
    vector_model: str | None = None
    #: float32 (n_units, dim), or `vectors.pack` of it, which is four times smaller and faster to load.
    units: Floats | bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """What is looked for."""

    text: str
    #: `analyze.terms(text)`; repetitions and order do not matter.
    terms: tuple[str, ...]
    #: float32 (dim,), any length but zero; None for text only.
    vector: Floats | None = None
    vector_model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Which entries may be seen, counted and returned; conditions are joined by and."""

    #: Exact scope paths that the reader sees.
    scopes: frozenset[str] | None
    #: Entries with expires_at <= now are out.
    now: int
    tiers: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    #: At least one of these.
    tags: frozenset[str] | None = None
    content_types: frozenset[str] | None = None
    subject: str | None = None
    category: str | None = None
    session: str | None = None
    #: Of what importance has faded to at ``now``.
    min_importance: float | None = None
    min_trust: int | None = None
    include_sensitive: bool = False
    exclude: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One answer."""

    id: str
    version: int
    #: At least 0; comparable between queries of one tenant: coverage and cosine are absolute.
    score: float
    #: How sure it is that this bears on the query, 0..1, see ``relevance``; falls with the score.
    relevance: float = 0.0
    #: Rounded to 1e-6; the score is computed from the rounded parts.
    parts: Mapping[str, float] = field(default_factory=dict)
    #: Signals that spoke for this entry: "text", "vector", and "link", a name that a better answer holds too.
    used: tuple[str, ...] = ()
