"""Learned: which reranker serves, read from the journal, and loud when it cannot be loaded.

Invariants
(1) What serves is what the journal says at the commit that is read: one record in the reserved scope names the
    weights by their hash, so that a state of the past ranks as it did then, and a rollback brings the weights before.
(2) Weights are kept as an artefact under their hash; what does not give that hash is never used.
(3) Of weights that came with an import it cannot be told from the feedback here what they have seen; they are marked.
(4) That record is no memory; see ``own``.
"""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from keepward.engine.own import own_records
from keepward.errors import Tampered
from keepward.model.memory import Record, Status
from keepward.model.trust import RESERVED
from keepward.store.reads import Reader

if TYPE_CHECKING:
    from keepward.engine.session import Session
    from keepward.retrieval.rerank import Weights

#: Key of the record, and kind of the artefact.
KEY = "reranker"
#: Kind of the text that marks, by their name, weights that came with an import.
CARRIED = "reranker-carried"
#: Why weights of the past do not serve a state of the past.
ERASED = "its weights went with an erasure of what they had learned from"
_STATES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the journal says of the reranker at one commit."""

    #: The record that says it, None before the first training.
    record: Record | None = None
    #: SHA-256 of the weights in hex.
    name: str | None = None
    #: Whether it was found good enough to serve.
    chosen: bool = False
    #: What training found, as JSON values; see ``engine.training``.
    told: dict[str, Any] = field(default_factory=dict)
    weights: Weights | None = None
    #: Why the weights cannot be used, in words.
    fault: str | None = None

    @property
    def version(self) -> str | None:
        """The name cut to 16 hex digits, as it stands in receipts."""
        return self.name and self.name[:16]

    @property
    def serves(self) -> bool:
        """Whether recall is to be ordered by it."""
        return self.chosen and self.weights is not None


@dataclass(slots=True)
class Rerankers:
    """The rerankers of one opened store, by tenant and commit."""

    _kept: OrderedDict[tuple[str, int], Standing] = field(default_factory=OrderedDict)

    def at(self, store: Reader, tenant: str, seq: int) -> Standing:
        """Return what stands at a commit of the tenant's journal."""
        kept = self._kept.get((tenant, seq))
        if kept is None:
            kept = self._kept[tenant, seq] = standing(store, tenant, seq)
            while len(self._kept) > _STATES:
                self._kept.popitem(last=False)
        return kept

    def forget(self, tenant: str) -> None:
        """Let go of what was read for a tenant: some of it was erased."""
        for place in [place for place in self._kept if place[0] == tenant]:
            del self._kept[place]


def _newest(store: Reader, tenant: str) -> tuple[list[str], set[str]]:
    """Return the ids of the records that name weights, and the names of weights that went with an erasure."""
    records = own_records(store, tenant, KEY)
    return [record.id for record in records], {name for each in records for name in each.metadata.get("erased", ())}


def standing(store: Reader, tenant: str, seq: int | None = None) -> Standing:
    """Read what stands at a commit, at the newest where none is named; see ``Rerankers.at``."""
    ids, erased = _newest(store, tenant)
    if not ids:
        return Standing()
    found = store.records(tenant, ids, as_of=store.head(tenant).seq if seq is None else seq)
    if found.damaged:
        return Standing(fault="the record that names its weights does not match its seal")
    record = next((each for each in found.records if each.status is Status.ARCHIVED), None)
    if record is None:
        return Standing()
    told = record.metadata
    name = told.get("weights")
    plain = Standing(record=record, name=name, chosen=bool(told.get("serving")), told=told)
    if not plain.chosen or name is None:
        return plain
    try:
        text = store.artefact(tenant, KEY, name)
        if text is None and name in erased:
            return replace(plain, chosen=False, told={**told, "why": ERASED})
        if text is None:
            return replace(plain, fault="its weights are missing")
        return replace(plain, weights=checked(name, text))
    except (Tampered, ValueError) as fault:
        return replace(plain, fault=str(fault))


def named_in(payload: bytes) -> str | None:
    """Return the name of the weights that a record's payload names; None for any other memory's."""
    # Written so only by the field itself: a quotation mark inside of a text is escaped.
    if f'"scope":"{RESERVED}"'.encode() not in payload:
        return None
    fields = json.loads(payload)
    if fields.get("scope") != RESERVED or fields.get("key") != KEY:
        return None
    name = json.loads(fields.get("metadata") or "{}").get("weights")
    return name if isinstance(name, str) else None


def text_of(store: Reader, tenant: str, name: str) -> tuple[str | None, bool]:
    """Return the text of kept weights, None where there is none that can be used; and whether they were erased."""
    try:
        text = store.artefact(tenant, KEY, name)
        if text is None:
            return None, name in _newest(store, tenant)[1]
        checked(name, text)
        return text, False
    except (Tampered, ValueError):
        return None, False


def checked(name: str, text: str) -> Weights:
    """Return the weights of a text, as it is kept and exported.

    Raises:
        ValueError: they are not the ones of this name, are damaged, or are written in another way.
    """
    from keepward.retrieval.rerank import unpack

    packed = base64.b64decode(text, validate=True)
    if base64.b64encode(packed).decode() != text:
        raise ValueError("its weights are not written as they must be")
    return unpack(packed, name=name)


def keep_carried(session: Session, name: str, text: str) -> None:
    """Keep weights that came with an import, marked as such.

    Raises:
        ValueError: they are not the ones of this name.
    """
    checked(name, text)
    with session.store.write() as writer:
        writer.put_artefact(session.tenant, KEY, name, text)
        writer.put_artefact(session.tenant, CARRIED, name, "")


def is_carried(store: Reader, tenant: str, name: str | None) -> bool:
    """Whether weights came with an import."""
    return name is not None and store.artefact(tenant, CARRIED, name) is not None


def unseen(store: Reader, tenant: str, stands: Standing) -> int:
    """Return how much feedback the weights that stand have not seen."""
    feedback = store.feedback_count(tenant)
    seen = 0 if is_carried(store, tenant, stands.name) else int(stands.told.get("seen", 0))
    return max(0, feedback - seen)


def facts(session: Session, seq: int) -> dict[str, Any]:
    """Return what ``status`` says of the reranker, as JSON values."""
    store, tenant = session.store, session.tenant
    stands, model = standing(store, tenant, seq), session.embedder.id if session.embedder else None
    why = stands.fault or (unfit(stands, model) if stands.serves else None)
    if why is None:
        why = str(stands.told.get("why", "it was never trained; give feedback, then run `keepward train`"))
    return {
        "version": stands.version,
        "serving": stands.serves and unfit(stands, model) is None,
        "held_out": stands.told.get("held_out", 0),
        "pairs": stands.told.get("pairs", 0),
        "gain": stands.told.get("gain", 0.0),
        "feedback": store.feedback_count(tenant),
        "unseen": unseen(store, tenant, stands),
        "from_agents": stands.told.get("from_agents", 0.0),
        "agents_at_most": session.policy.agent_feedback_share,
        "error": stands.fault,
        "why": why,
    }


def unfit(stands: Standing, model: str | None) -> str | None:
    """Return why weights that serve cannot serve this embedder, or None."""
    if stands.weights is None or stands.weights.model == model:
        return None
    return "it was trained with another embedder; run `keepward train` to train it with this one"
