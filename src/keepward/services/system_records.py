"""Records of the store's own, such as the one that names the learned weights: facts under a key, version by version.

They are no memories. They are archived, in a scope that no handle can have, so no recall, list, context, duplicate
check or count of active memories includes them. They change by commits, and a rollback restores their earlier facts.
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

#: Key of the record that names the learned weights, and kind of the documents that contain them.
RERANKER = "reranker"


def system_records(store: Reader, tenant: str, key: str) -> list[Record]:
    """Return the records under a key; one that a rollback withdrew is not archived."""
    return store.find(tenant, system_filter(key), live_at=None, limit=None).records


def system_filter(key: str) -> Filter:
    """Return the filter of the records under a key."""
    return Filter(scopes=(RESERVED_SCOPE,), key=key, include_sensitive=True)


def system_record_step(
    session: RequestContext, before: Record | None, key: str, text: str, facts: Mapping[str, Any]
) -> Step:
    """Return the step that creates or changes the record with facts under a key."""
    now = session.clock.now()
    metadata = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    if before is not None:
        changed = {"text": text, "metadata_json": metadata, "status": Status.ARCHIVED, "updated_at": now}
        changed |= {"text_by": session.actor.label, "text_at": now}
        after = replace(before, version=before.version + 1, **changed)
        return Step(op="replace", before=before, after=after)
    record = Record(
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
    return Step(op="insert", before=None, after=record)
