"""The parts of an erasure: find erased words elsewhere, tombstones, the erasure list, and certificates.

Texts are compared in normal form without case. Words are searched only in what was said about the memory itself, and
long texts in derived memories, proposals, receipts and stored documents.
A receipt of a context with an erased memory keeps no digest from which a short text could be guessed.
Recognising erased content takes the key of this machine. A text is recognised if it has the same normal form, and a
memory also by an alias or reference, for a handle that sees the scope of the erasure. For other handles a write is like
any other: its outcome reveals nothing of what was erased.
Feedback that names an erased memory loses the name and keeps its number, so that the held-out set stays the same.
A certificate has no content. Its ``commit`` has everything that the hash of the erasing commit covers, so that a copy
of the journal and a SHA-256 library are enough to check it; see docs/internals/journal-format.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from keepward.core.commit import (
    DETAILS,
    ERASED,
    Commit,
    CommitDetails,
    Event,
    decode_details,
    parse_event_position,
)
from keepward.core.journal import ErasePlan
from keepward.core.memory import CORE_BLOCKS, NAME_FIELDS, NAME_LIST_FIELDS, Record, Status
from keepward.core.principals import user_of
from keepward.core.serialization import tenant_digest
from keepward.core.value import to_micros
from keepward.errors import NotFound
from keepward.gates.detectors.near_duplicate import NormalizedText, fold
from keepward.services.access import items_of
from keepward.services.reading.learned_order import RERANKER
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import Engine, RequestContext

#: Shortest folded text that is searched inside other texts, in characters.
MIN_QUOTE_LENGTH = 12
#: Fields with a digest of content.
_DIGESTS = frozenset({"digest", "approved_digest", "context_id"})
_WORD = re.compile(r"\w{3,}")
#: Reasons that the program itself writes.
_BUILTIN_REASONS = frozenset({"remembered", "said again", "confirmed", "import", "imported"})


@dataclass(frozen=True, slots=True)
class ErasedText:
    """The content of the erased memories."""

    #: Folded texts of all their versions.
    texts: frozenset[str]
    #: Those that are searched inside other texts.
    long: tuple[str, ...]
    #: Folded names: keys, aliases, references, subjects, tags and the like.
    names: frozenset[str]
    #: Words of three letters and more of texts and names.
    words: frozenset[str]
    #: Users in whose scopes they are.
    users: frozenset[str]
    #: Traits of the texts, by which the store finds equal ones.
    traits: frozenset[bytes]

    def equals(self, text: str) -> bool:
        """Whether a text equals that of an erased memory."""
        return fold(text) in self.texts

    def within(self, text: str) -> bool:
        """Whether a text equals or contains that of an erased memory."""
        plain = fold(text)
        return plain in self.texts or any(text in plain for text in self.long)

    def mentioned_in(self, text: str | None) -> bool:
        """Whether a text about an erased memory uses any of its words."""
        if not text or text in _BUILTIN_REASONS:
            return False
        return self.within(text) or not self.words.isdisjoint(_WORD.findall(fold(text)))


def erased_text_of(records: Iterable[Record]) -> ErasedText:
    """Return the content of versions of memories, except erased ones."""
    texts: set[str] = set()
    names: set[str] = set()
    users: set[str] = set()
    traits: set[bytes] = set()
    for record in records:
        if record.status is Status.ERASED:
            continue
        if record.text:
            traits.add(NormalizedText(record.text).token_signature)
        if (user := user_of(record.scope)) is not None:
            users.add(user)
        texts.add(fold(record.text))
        names.update(fold(text) for name in NAME_FIELDS if (text := getattr(record, name)))
        names.update(fold(text) for name in NAME_LIST_FIELDS for text in getattr(record, name))
        names.update(fold(text) for text in _strings(record.metadata))
    texts.discard("")
    names.discard("")
    return ErasedText(
        texts=frozenset(texts),
        long=tuple(sorted(text for text in texts if len(text) >= MIN_QUOTE_LENGTH)),
        names=frozenset(names),
        words=frozenset(word for text in texts | names for word in _WORD.findall(text)),
        users=frozenset(users),
        traits=frozenset(traits),
    )


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def mentions_content(details: CommitDetails, traces: ErasedText, *, only: bool) -> bool:
    """Whether the details of a commit that made a version of an erased memory have to be erased.

    ``only``: it made no version of another memory.
    """
    if details.approved_digest is not None:
        return True
    builtin = details.reason in _BUILTIN_REASONS or bool(details.undoes)
    return (only and not builtin) or traces.mentioned_in(details.reason) or traces.mentioned_in(details.session)


def residual_details(details: CommitDetails) -> CommitDetails:
    """Return a commit's details without what may reveal content."""
    return CommitDetails(
        actor=details.actor,
        reason=ERASED,
        receipt=details.receipt,
        policy=details.policy,
        proposal=details.proposal,
        approved_by=details.approved_by,
        undoes=details.undoes,
    )


class _Asked(msgspec.Struct, gc=False):
    objective: str = ""


class _Query(msgspec.Struct, gc=False):
    inputs: _Asked | None = None


_query = msgspec.json.Decoder(_Query).decode


def objective_in(receipt: bytes) -> str:
    """Return the query of a receipt of a recall or a context, given as JSON text; empty for any other receipt."""
    try:
        asked = _query(receipt).inputs
    except ValueError:
        return ""
    return "" if asked is None else asked.objective


def receipt_without_content(
    body: dict[str, Any],
    ids: Collection[str],
    proposals: Collection[str],
    documents: Collection[str],
    traces: ErasedText,
) -> dict[str, Any]:
    """Return a receipt without erased content; the same object if it has none."""
    named = any(target.get("id") in ids for target in body.get("targets", ())) or body.get("proposal") in proposals
    shows = body.get("kind") in {"compile", "recall"} and (
        not items_of(body).keys().isdisjoint(ids)
        or any(version in documents for version in body.get("documents", {}).values())
    )
    cleaned = {
        name: _value_without_content(name, value, ids, traces, own=named or shows) for name, value in body.items()
    }
    if shows and "sections" in body:
        cleaned |= _context_without_content(cleaned, ids, documents)
    elif shows:
        cleaned["items"] = [without_scores(item) if item["id"] in ids else item for item in cleaned["items"]]
    return body if cleaned == body else cleaned


def without_scores(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of a receipt without its scores: with enough queries they would reveal its vector."""
    return {name: value for name, value in item.items() if name not in {"score", "weak", "parts"}}


def _context_without_content(body: dict[str, Any], ids: Collection[str], documents: Collection[str]) -> dict[str, Any]:
    """Return the changed fields of a compile receipt: digests of an erased text, and names of blocks."""
    erased = {kind for kind, version in body.get("documents", {}).items() if version in documents}
    sections = []
    for section in body["sections"]:
        items = [
            {**item, "block": "core"}
            if item["id"] in ids and item.get("block") not in {None, "core", *CORE_BLOCKS}
            else item
            for item in section["items"]
        ]
        items = [without_scores(item) if item["id"] in ids else item for item in items]
        affected = any(item["id"] in ids for item in items) or (
            section["name"] in {"identity", "core"} and bool(erased)
        )
        sections.append({**section, "items": items, "digest": ERASED if affected else section["digest"]})
    return {
        "sections": sections,
        "documents": {kind: ERASED if kind in erased else version for kind, version in body["documents"].items()},
        "digests": dict.fromkeys(body["digests"], ERASED),
    }


def _value_without_content(name: str, value: Any, ids: Collection[str], traces: ErasedText, *, own: bool) -> Any:
    if isinstance(value, str):
        if own and (name in _DIGESTS or (name == "objective" and traces.mentioned_in(value))):
            return ERASED
        return ERASED if traces.within(value) else value
    if name == "targets" and isinstance(value, list):
        return [{**item, "key": None} if item.get("id") in ids and item.get("key") else item for item in value]
    if name in {"sections", "digests"}:
        return value
    if isinstance(value, list):
        return [_value_without_content(name, item, ids, traces, own=own) for item in value]
    if isinstance(value, dict):
        if own and value.get("gate") == "review" and "detail" in value:
            # A reviewer wrote this free text, so it may repeat content.
            value = {**value, "detail": ERASED}
        return {key: _value_without_content(key, inner, ids, traces, own=own) for key, inner in value.items()}
    return value


FORMAT = "keepward-erasure/1"
#: Kinds of stored texts: counts of erased rows outside the journal, by the first memory; certificates, by commit.
COUNTS_KIND = "erasure"
CERTIFICATE_KIND = "certificate"
#: Names of the counts in a certificate.
_CLEANED = {"receipts": "receipts", "proposals": "proposals", "kept_documents": "documents", "feedback": "feedback"}
_CLEANED |= {"learned_weights": "weights", "blobs": "blobs"}
LIMITS = (
    "Copies of the store, of its exports and of its backups that were made elsewhere are out of reach.",
    "An older journal or backup that is brought back on this machine is held against the list of erasures.",
    "A disk that moves blocks (an SSD, a file system with snapshots) may keep old ones until it reuses them.",
    "Other servers of a database drop their index files when they next search the tenant.",
    "Processes that recalled it may hold it in memory, and models and their hosts keep what they were given.",
    "Documents outside the store, such as an identity or user file, are their owner's to edit.",
    "Memories derived from it that were left in place, and those that say the same in other words, still say so.",
    "Names of scopes, tenants and actors stay; so do ids, times, and how many versions there were.",
)


def erasure_counts(plan: ErasePlan, queued: Iterable[str]) -> str:
    """Return, as JSON text, how many rows outside the journal an erasure changes, and the ids of erased proposals."""
    weights = sum(1 for kind, _ in plan.artefacts if kind == RERANKER)
    counts = {name: len(getattr(plan, name)) for name in ("receipts", "proposals", "feedback", "blobs")}
    counts |= {"documents": len(plan.artefacts) - weights, "weights": weights}
    # An older copy finds these proposals by id, as its journal does not name them.
    return json.dumps({**counts, "queued": sorted(queued)})


def find_erasure(context: RequestContext, name: str) -> tuple[Commit, list[Event]]:
    """Return an erasing commit, by the name of an erased memory, or by its own id, number or id prefix.

    Raises:
        NotFound: nothing was erased under that name.
    """
    with suppress(NotFound):
        record = VisibleReader(context).fetch(name)
        erasing = [
            view.commit.id for view, step in context.store.history(context.tenant, record.id) if step.op == "erase"
        ]
        name = erasing[-1] if erasing else name
    view = context.store.commit(context.tenant, name)
    if view is None or view.commit.kind != "erase":
        raise NotFound("nothing was erased under that name; give an erased memory's id or the commit's")
    return context.store.erasures(context.tenant, {view.commit.id})[0]


def erasure_list_entry(engine: Engine, commit: Commit, events: Sequence[Event]) -> dict[str, Any]:
    """Return the entry of an erasure in the erasure list."""
    positions = [parse_event_position(name) for name in decode_details(commit.payload or b"").erased]
    commitments = engine.store.commitments_at(commit.tenant, positions)
    counts = engine.store.artefact(commit.tenant, COUNTS_KIND, events[0].memory_id) if events else None
    return {
        "entry": "erasure",
        "store": engine.store.store_id,
        "tenant": tenant_digest(commit.tenant),
        "commit": commit.id,
        "seq": commit.seq,
        "at": to_micros(commit.at),
        "memories": sorted(event.memory_id for event in events if event.op == "erase"),
        "places": [[*each, commitments[each].hex()] for each in sorted(positions)],
        "proposals": json.loads(counts).get("queued", []) if counts else [],
    }


def certificate_of(context: RequestContext, name: str) -> dict[str, Any]:
    """Return the certificate of an erasure, or a preliminary one; ``name`` is as in ``find_erasure``."""
    commit, events = find_erasure(context, name)
    stored = context.store.artefact(context.tenant, CERTIFICATE_KIND, commit.id)
    if stored is not None:
        return dict(json.loads(stored))
    file = "not yet: close other readers and open the store again"
    entry = erasure_list_entry(context.engine, commit, events)
    return certificate(context.engine, commit, events, entry, file=file, backups=())


def certificate(
    engine: Engine,
    commit: Commit,
    events: Sequence[Event],
    entry: dict[str, Any],
    *,
    file: str,
    backups: Sequence[dict[str, str]],
) -> dict[str, Any]:
    """Return the certificate as JSON values; ``file`` and ``backups`` say in words how far these are clean.

    ``entry`` is that of the erasure list.
    """
    details = decode_details(commit.payload or b"")
    versions = sum(1 for _, n, _ in entry["places"] if n != DETAILS)
    stored = engine.store.artefact(commit.tenant, COUNTS_KIND, events[0].memory_id) if events else None
    counts = json.loads(stored) if stored else {}
    return {
        "certificate": FORMAT,
        "store": entry["store"],
        "tenant": entry["tenant"],
        "at": commit.at.isoformat(),
        "by": details.actor,
        "reason": details.reason,
        "memories": entry["memories"],
        "places": entry["places"],
        "cleaned": {
            "versions": versions,
            "commit_details": len(entry["places"]) - versions,
            "words_vectors_and_marks_of": len(entry["memories"]),
            **{name: counts.get(counted) for name, counted in _CLEANED.items()},
            "file_and_log": file,
            "backups": list(backups),
        },
        "recognised_again": engine.erasures is not None and engine.erasures.key() is not None,
        "limits": list(LIMITS),
        "commit": {
            "id": commit.id,
            "seq": commit.seq,
            "at": to_micros(commit.at),
            "kind": commit.kind,
            "actor_kind": commit.actor_kind,
            "prev": commit.prev.hex(),
            "events": commit.events_hash.hex(),
            "details": (commit.payload or b"").decode(),
            "salt": commit.salt.hex(),
            "hash": commit.hash.hex(),
        },
    }
