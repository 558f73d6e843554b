"""Records that the store keeps for itself, such as which learned weights serve: facts under a key, version by version.

Invariants
(1) They are no memories: archived, in a scope that nobody can stand in, they are in no recall, list, context,
    duplicate answer or count of what is live.
(2) They change by commits like any other, and a rollback gives back the facts that stood before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from keepward.core.commit import Step
from keepward.core.memory import ContentType, Kind, Record, Sensitivity, Stability, Status, Tier
from keepward.core.principals import RESERVED_SCOPE, Trust
from keepward.core.query import Filter
from keepward.storage.reads import Reader

if TYPE_CHECKING:
    from keepward.services.request_context import RequestContext

#: Key of the record that names the learned weights, and kind of the documents that hold them.
RERANKER = "reranker"


def system_records(store: Reader, tenant: str, key: str) -> list[Record]:
    """Return the records under a key; one that a rollback has withdrawn is not archived."""
    mine = Filter(scopes=(RESERVED_SCOPE,), key=key, include_sensitive=True)
    return store.find(tenant, mine, live_at=None, limit=None).records


def system_record_step(
    session: RequestContext, before: Record | None, key: str, text: str, facts: Mapping[str, Any]
) -> Step:
    """Return the change, or the making, of a record that keeps facts under a key."""
    now = session.clock.now()
    metadata = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    if before is not None:
        held = {"text": text, "metadata_json": metadata, "status": Status.ARCHIVED, "updated_at": now}
        after = replace(before, version=before.version + 1, **held)
        return Step(op="replace", before=before, after=after)
    born = Record(
        id=session.ids.new_id(now),
        version=1,
        tier=Tier.ARCHIVAL,
        kind=Kind.DOCUMENT,
        text=text,
        scope=RESERVED_SCOPE,
        key=key,
        content_type=ContentType.STRUCTURED,
        metadata_json=metadata,
        source="job",
        trust=Trust.OWNER,
        confidence=1.0,
        importance=0.5,
        sensitivity=Sensitivity.NORMAL,
        stability=Stability.PERMANENT,
        status=Status.ARCHIVED,
        author=session.actor.label,
        created_at=now,
        reinforced_at=now,
    )
    return Step(op="insert", before=None, after=born)
