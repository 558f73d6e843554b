"""What an erasure leaves: how words of erased memories are found elsewhere, tombstones, what was learned, certificates.

Invariants
(1) Texts are compared folded: under the declared normalisation and without case. A short text is looked for only
    where something was said about the memory itself; elsewhere "tea" would stand in too much.
(2) What a receipt keeps of a context with an erased memory is no digest that a short text could be guessed from.
(3) Recognising what was erased takes the key of this machine. A text is recognised when it is equal under the declared
    normalisation, by whoever sees the scope that it was erased in; a memory also by a foreign name or reference. For
    everybody else a write is as any other: its answer tells nothing of what was erased.
(4) Feedback that names an erased memory loses the name and keeps its number, so that what is held out stays so.
    All learned weights go where feedback names an erased memory, or is on a receipt that shows one.
(5) A certificate holds no content. Its ``commit`` holds all that the hash of the erasing commit covers, so that whoever
    has a copy of the journal can check with a SHA-256 library alone that it was made: see
    docs/internals/journal-format.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from keepward.core.commit import (
    DETAILS,
    ERASED,
    ERASED_ALIAS_PREFIX,
    Commit,
    CommitDetails,
    Event,
    Reason,
    decode_details,
    erasure_fingerprint,
    parse_event_position,
)
from keepward.core.journal import ErasePlan
from keepward.core.memory import CORE_BLOCKS, NAME_FIELDS, NAME_LIST_FIELDS, Record, Status
from keepward.core.serialization import tenant_digest
from keepward.core.value import to_micros
from keepward.errors import Conflict, NotFound
from keepward.gates.detectors.near_duplicate import normalise
from keepward.services.access import items_of
from keepward.services.request_context import Engine, RequestContext
from keepward.services.system_records import RERANKER

if TYPE_CHECKING:
    from collections.abc import Generator

#: Characters from which on a folded text is looked for inside of others.
MIN_QUOTE_LENGTH = 12
#: Fields in which a digest over content stands.
_DIGESTS = frozenset({"digest", "approved_digest", "context_id"})
_WORD = re.compile(r"\w{3,}")
#: Reasons that this program gives itself.
_BUILTIN_REASONS = frozenset({"remembered", "said again", "confirmed", "import", "imported"})


def fold_text(text: str) -> str:
    """Return the form in which texts are compared here."""
    return normalise(text).casefold()


@dataclass(frozen=True, slots=True)
class ErasedText:
    """What the erased memories said."""

    #: Folded texts of all their versions.
    texts: frozenset[str]
    #: Those that are looked for inside of others.
    long: tuple[str, ...]
    #: Folded names: keys, aliases, references, subjects, tags and the like.
    names: frozenset[str]
    #: Words of three letters and more of texts and names.
    words: frozenset[str]

    def equals(self, text: str) -> bool:
        """Whether a text is that of an erased memory."""
        return fold_text(text) in self.texts

    def within(self, text: str) -> bool:
        """Whether a text is, or holds, that of an erased memory."""
        plain = fold_text(text)
        return plain in self.texts or any(each in plain for each in self.long)

    def quoted_in(self, value: Any) -> bool:
        """Whether the texts in a value hold a long one of an erased memory."""
        plain = fold_text("\n".join(_strings(value)))
        return any(each in plain for each in self.long)

    def mentioned_in(self, text: str | None) -> bool:
        """Whether a text that was said about an erased memory uses any of its words."""
        if not text or text in _BUILTIN_REASONS:
            return False
        return self.within(text) or not self.words.isdisjoint(_WORD.findall(fold_text(text)))


def erased_text_of(records: Iterable[Record]) -> ErasedText:
    """Return what versions of memories said; those that are erased already said nothing."""
    texts: set[str] = set()
    names: set[str] = set()
    for record in records:
        if record.status is Status.ERASED:
            continue
        texts.add(fold_text(record.text))
        names.update(fold_text(text) for name in NAME_FIELDS if (text := getattr(record, name)))
        names.update(fold_text(text) for name in NAME_LIST_FIELDS for text in getattr(record, name))
        names.update(fold_text(text) for text in _strings(record.metadata))
    texts.discard("")
    names.discard("")
    return ErasedText(
        texts=frozenset(texts),
        long=tuple(sorted(text for text in texts if len(text) >= MIN_QUOTE_LENGTH)),
        names=frozenset(names),
        words=frozenset(word for text in texts | names for word in _WORD.findall(text)),
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


def mentions_content(details: CommitDetails, traces: ErasedText, *, own: bool, whole: bool) -> bool:
    """Whether a commit's details have to go.

    ``own``: it made a version of an erased memory; ``whole``: of nothing else.
    """
    if not own:
        return any(traces.within(text) for text in (details.reason, details.session) if text)
    if details.approved_digest is not None:
        return True
    stock = details.reason in _BUILTIN_REASONS or bool(details.undoes)
    return (whole and not stock) or traces.mentioned_in(details.reason) or traces.mentioned_in(details.session)


def residual_details(details: CommitDetails) -> CommitDetails:
    """Return what of a commit's details says nothing of its content."""
    return CommitDetails(
        actor=details.actor,
        reason=ERASED,
        receipt=details.receipt,
        policy=details.policy,
        proposal=details.proposal,
        approved_by=details.approved_by,
        undoes=details.undoes,
    )


def receipt_without_content(
    body: dict[str, Any],
    ids: Collection[str],
    proposals: Collection[str],
    documents: Collection[str],
    traces: ErasedText,
) -> dict[str, Any]:
    """Return a receipt without what it says of the content of memories; the same object when it says nothing."""
    named = any(target.get("id") in ids for target in body.get("targets", ())) or body.get("proposal") in proposals
    held = body.get("kind") in {"compile", "recall"} and _holds(body, ids, documents)
    fresh = {name: _value_without_content(name, value, ids, traces, own=named or held) for name, value in body.items()}
    if held and "sections" in body:
        fresh |= _context_without_content(fresh, ids, documents)
    elif held:
        fresh["items"] = [without_scores(item) if item["id"] in ids else item for item in fresh["items"]]
    return body if fresh == body else fresh


def _holds(body: dict[str, Any], ids: Collection[str], documents: Collection[str]) -> bool:
    return not items_of(body).keys().isdisjoint(ids) or any(
        each in documents for each in body.get("documents", {}).values()
    )


def without_scores(item: dict[str, Any]) -> dict[str, Any]:
    """Return what a receipt says of a memory without its scores: with enough queries they tell where its vector is."""
    return {name: value for name, value in item.items() if name not in {"score", "weak", "parts"}}


def _context_without_content(body: dict[str, Any], ids: Collection[str], documents: Collection[str]) -> dict[str, Any]:
    """Return the fields of a compile receipt that change: digests over an erased text, and names of blocks."""
    gone = {kind for kind, version in body.get("documents", {}).items() if version in documents}
    sections = []
    for section in body["sections"]:
        items = [
            {**item, "block": "core"}
            if item["id"] in ids and item.get("block") not in {None, "core", *CORE_BLOCKS}
            else item
            for item in section["items"]
        ]
        items = [without_scores(item) if item["id"] in ids else item for item in items]
        mine = any(item["id"] in ids for item in items) or (section["name"] in {"identity", "core"} and bool(gone))
        sections.append({**section, "items": items, "digest": ERASED if mine else section["digest"]})
    return {
        "sections": sections,
        "documents": {kind: ERASED if kind in gone else version for kind, version in body["documents"].items()},
        "digests": dict.fromkeys(body["digests"], ERASED),
    }


def _value_without_content(name: str, value: Any, ids: Collection[str], traces: ErasedText, *, own: bool) -> Any:
    if isinstance(value, str):
        if own and (name in _DIGESTS or (name == "objective" and traces.mentioned_in(value))):
            return ERASED
        return ERASED if traces.within(value) else value
    if name == "targets" and isinstance(value, list):
        return [{**each, "key": None} if each.get("id") in ids and each.get("key") else each for each in value]
    if name in {"sections", "digests"}:
        return value
    if isinstance(value, list):
        return [_value_without_content(name, each, ids, traces, own=own) for each in value]
    if isinstance(value, dict):
        if own and value.get("gate") == "review" and "detail" in value:
            # What a reviewer wrote about it is free text, and may say anything of it.
            value = {**value, "detail": ERASED}
        return {key: _value_without_content(key, each, ids, traces, own=own) for key, each in value.items()}
    return value


def fingerprints(key: bytes, tenant: str, records: Iterable[Record], names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the marks of versions of a memory: their texts, their foreign names, and further references, sorted."""
    found = {erasure_fingerprint(key, tenant, "name", name.encode()) for name in names}
    for record in records:
        if record.status is Status.ERASED:
            found.update(name for name in record.aliases if name.startswith(ERASED_ALIAS_PREFIX))
            continue
        found.add(erasure_fingerprint(key, tenant, "text", normalise(record.text).encode()))
        found.update(erasure_fingerprint(key, tenant, "name", alias.encode()) for alias in record.aliases)
    return tuple(sorted(found))


def blocked_by_erasure(session: RequestContext, *records: Record) -> Reason | None:
    """Return why records must not be stored: an erasure named what they say; None when nothing stands against it."""
    if any(alias.startswith(ERASED_ALIAS_PREFIX) for record in records for alias in record.aliases):
        return Reason(
            gate="erased", code="reserved", detail=f"names that begin with {ERASED_ALIAS_PREFIX!r} are the store's own"
        )
    names = {name for record in records for name in (*record.aliases, *record.evidence)}
    names |= {record.blob for record in records if record.blob is not None}
    stone = tombstone_for(session, records, names)
    if stone is None:
        return None
    detail = f"this was erased and is not stored again: tombstone {stone}"
    return Reason(gate="erased", code="erased", detail=detail)


def tombstone_for(session: RequestContext, records: Iterable[Record], names: Iterable[str]) -> str | None:
    """Return the id of a tombstone that a handle sees and that stands against texts or names; None where none does."""
    erasures, tenant = session.engine.erasures, session.tenant
    key = erasures.key() if erasures else None
    if key is None:
        return None
    found = session.reader.records(fingerprints(key, tenant, records, names)).records
    return min((record.id for record in found if record.status is Status.ERASED), default=None)


def reject_erased(
    engine: Engine, commits: Iterable[tuple[Commit, list[Event]]]
) -> Iterator[tuple[Commit, list[Event]]]:
    """Pass on a journal that is to be restored.

    Raises:
        Conflict: it holds content that this machine erased; names the tombstone.
    """
    stones = erased_commitments(engine)
    for commit, events in commits:
        held = [event.payload_commit for event in events if event.payload is not None]
        if commit.payload is not None:
            held.append(commit.commitment())
        stone = next((stones[each.hex()] for each in held if each.hex() in stones), None)
        if stone is not None:
            told = f"this journal holds content that was erased since: tombstone {stone}; export the store again"
            raise Conflict(told)
        yield commit, events


def erased_commitments(engine: Engine) -> dict[str, str]:
    """Return, by commitment to erased content in hex, the id of the memory that was erased."""
    if engine.erasures is None:
        return {}
    return {
        promise: entry["memories"][0]
        for entry in engine.erasures.entries()
        if entry.get("entry") == "erasure"
        for _, _, promise in entry["places"]
    }


FORMAT = "keepward-erasure/1"
#: Kinds of kept texts: what went beside the journal, by the first memory; certificates, by commit.
COUNTS_KIND = "erasure"
CERTIFICATE_KIND = "certificate"
#: How a certificate names what is counted.
_CLEANED = {"receipts": "receipts", "proposals": "proposals", "kept_documents": "documents", "feedback": "feedback"}
_CLEANED |= {"learned_weights": "weights", "blobs": "blobs"}
LIMITS = (
    "Copies of the store, of its exports and of its backups that were made elsewhere are out of reach.",
    "An older journal or backup that is brought back on this machine is held against the list of erasures.",
    "A disk that moves blocks (an SSD, a file system with snapshots) may keep old ones until it reuses them.",
    "Processes that recalled it may hold it in memory, and models and their hosts keep what they were given.",
    "Documents outside the store, such as an identity or user file, are their owner's to edit.",
    "Memories derived from it that were left in place, and those that say the same in other words, still say so.",
    "Names of scopes, tenants and actors stay; so do ids, times, and how many versions there were.",
)


def erasure_counts(plan: ErasePlan, queued: Iterable[str]) -> str:
    """Return, as JSON text, how much beside the journal an erasure cleans, and the proposals that were erased."""
    weights = sum(1 for kind, _ in plan.artefacts if kind == RERANKER)
    found = {name: len(getattr(plan, name)) for name in ("receipts", "proposals", "feedback", "blobs")}
    found |= {"documents": len(plan.artefacts) - weights, "weights": weights}
    # By these ids an older copy, whose journal has no place of them, knows what to erase.
    return json.dumps({**found, "queued": sorted(queued)})


def erasing_commits(engine: Engine, tenant: str) -> list[tuple[Commit, list[Event]]]:
    """Return the commits of a tenant that erased something, oldest first."""
    return [(commit, events) for commit, events in engine.store.events(tenant) if commit.kind == "erase"]


def find_erasure(session: RequestContext, name: str) -> tuple[Commit, list[Event]]:
    """Return the erasing commit of an erased memory, or by its own id, number or first letters.

    Raises:
        NotFound: nothing was erased under that name.
    """
    with suppress(NotFound):
        record = session.reader.fetch(name)
        made = [view.commit.id for view, step in session.store.history(session.tenant, record.id) if step.op == "erase"]
        name = made[-1] if made else name
    view = session.store.commit(session.tenant, name)
    if view is None or view.commit.kind != "erase":
        raise NotFound("nothing was erased under that name; give an erased memory's id or the commit's")
    return commit_with_events(session.engine, session.tenant, view.commit.seq)


def commit_with_events(engine: Engine, tenant: str, seq: int) -> tuple[Commit, list[Event]]:
    """Return one commit with its events as stored."""
    rows = cast("Generator[tuple[Commit, list[Event]], None, None]", engine.store.events(tenant, after=seq - 1))
    with closing(rows):
        return next(rows)


def erasure_list_entry(engine: Engine, commit: Commit, events: Sequence[Event]) -> dict[str, Any]:
    """Return what the list of erasures keeps of one."""
    names = decode_details(commit.payload or b"").erased
    places: list[list[Any]] = []
    held: tuple[int, Commit | None, dict[int, bytes]] = (0, None, {})
    for seq, n in sorted(parse_event_position(name) for name in names):
        if seq != held[0]:
            made, own = commit_with_events(engine, commit.tenant, seq)
            held = (seq, made, {event.n: event.payload_commit for event in own})
        promise = held[1].commitment() if n == DETAILS and held[1] is not None else held[2][n]
        places.append([seq, n, promise.hex()])
    kept = engine.store.artefact(commit.tenant, COUNTS_KIND, events[0].memory_id) if events else None
    return {
        "entry": "erasure",
        "store": engine.store.store_id,
        "tenant": tenant_digest(commit.tenant),
        "commit": commit.id,
        "seq": commit.seq,
        "at": to_micros(commit.at),
        "memories": sorted(event.memory_id for event in events if event.op == "erase"),
        "places": places,
        "proposals": json.loads(kept).get("queued", []) if kept else [],
    }


def certificate_of(session: RequestContext, name: str) -> dict[str, Any]:
    """Return the certificate of an erasure, or a preliminary one; ``name`` is as for ``list_memories``."""
    commit, events = find_erasure(session, name)
    kept = session.store.artefact(session.tenant, CERTIFICATE_KIND, commit.id)
    if kept is not None:
        return dict(json.loads(kept))
    file = "not yet: close other readers and open the store again"
    return certificate(session.engine, commit, events, file=file, backups=())


def certificate(
    engine: Engine, commit: Commit, events: Sequence[Event], *, file: str, backups: Sequence[dict[str, str]]
) -> dict[str, Any]:
    """Return the certificate as JSON values. ``file`` and ``backups`` say in words how far they are clean."""
    details = decode_details(commit.payload or b"")
    told = erasure_list_entry(engine, commit, events)
    versions = sum(1 for _, n, _ in told["places"] if n != DETAILS)
    kept = engine.store.artefact(commit.tenant, COUNTS_KIND, events[0].memory_id) if events else None
    beside = json.loads(kept) if kept else {}
    return {
        "certificate": FORMAT,
        "store": told["store"],
        "tenant": told["tenant"],
        "at": commit.at.isoformat(),
        "by": details.actor,
        "reason": details.reason,
        "memories": told["memories"],
        "places": told["places"],
        "cleaned": {
            "versions": versions,
            "commit_details": len(told["places"]) - versions,
            "words_vectors_and_marks_of": len(told["memories"]),
            **{name: beside.get(counted) for name, counted in _CLEANED.items()},
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
