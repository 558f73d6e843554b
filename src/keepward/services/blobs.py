"""Blobs: bytes that memories refer to, who may put and read them, and how long they stay.

Invariants
(1) Bytes are read by who sees a live memory that refers to them, or has put them; by who decides, also those of a
    proposal that waits. For everybody else they are not there, and are said so in the same words.
(2) What is read is what was put: the hash is compared at every read, and bytes that differ are never returned.
(3) A memory refers only to what its writer might read: a name alone, guessed or overheard, opens nothing.
(4) A secret is never stored: bytes, and what gzip and zip among them hold, are scanned before the first is written.
    What could not be looked into is noted. What was erased is not put again.
(5) A blob stays for as long as a version of a memory or a waiting proposal refers to it; then it goes, a day after it
    was last put. The row goes first, in a transaction that sees what refers to it; then the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from msgspec.structs import replace

from keepward.core.blob import (
    MAX_BLOB_BYTES,
    REF_PREFIX,
    UNREFERENCED_GRACE,
    Blob,
    BlobUpload,
    StoredBlob,
    parse_ref,
    ref_of,
    with_upload,
)
from keepward.core.commit import Reason
from keepward.core.journal import Fault
from keepward.core.media import content_type_fits, content_type_of, decode_text, is_textual, media_type_of
from keepward.core.memory import ContentType, Record
from keepward.core.proposal import Proposal
from keepward.errors import Conflict, InvalidInput, KeepwardError, NotFound, StoreUnavailable, Tampered, Unauthorised
from keepward.ports.world import BlobStore
from keepward.services.erasure_references import tombstone_for
from keepward.services.request_context import Engine, RequestContext
from keepward.services.unpack import unpack_files
from keepward.storage.reads import Reader

_NOT_FOUND = "there is no blob by that name that this handle may read; check the name, the tenant and the scope"


def put(session: RequestContext, data: bytes, media_type: str | None) -> Blob:
    """Keep bytes, once where they are the same, and return what they are called; errors are as for ``put_blob``."""
    if not all(actor.may_propose for actor in (session.actor, *session.via)):
        raise Unauthorised("putting a blob takes the right to propose; ask the owner for a token that has it")
    if not (session.policy.enabled and session.policy.capture):
        raise Conflict("memory is switched off by policy; nothing was stored")
    if not isinstance(data, bytes | bytearray):
        raise InvalidInput("a blob is bytes; read the file in binary")
    if not data:
        raise InvalidInput("there are no bytes to keep")
    if len(data) > MAX_BLOB_BYTES:
        raise InvalidInput(
            f"a blob is at most {MAX_BLOB_BYTES // 2**20} MB; keep the rest elsewhere and remember where"
        )
    raw = bytes(data)
    named, active = media_type_of(media_type, raw)
    notes = _check_secrets(raw, named)
    files, ref, now = files_of(session.engine), ref_of(raw), session.clock.now()
    blob = Blob(ref=ref, bytes=len(raw), media_type=named, active=active, notes=notes)
    fresh = BlobUpload(
        kind=session.actor.kind.value, name=session.actor.name, credential=session.actor.credential, at=now
    )
    _check_not_erased(session, ref)
    with translate_file_errors(), files.locked():
        new = StoredBlob(tenant=session.tenant, blob=blob, at=now, puts=())
        kept = session.store.documents(StoredBlob, session.tenant).get(ref) or new
        files.save(kept.place, raw)
        with session.store.write() as writer:
            _check_not_erased(session.for_transaction(writer), ref)
            kept = writer.documents(StoredBlob, session.tenant).get(ref) or kept
            writer.put(replace(kept, puts=with_upload(kept.puts, fresh, session.actor)))
    return replace(kept.blob, notes=notes)


def blob_info(session: RequestContext, ref: str) -> Blob:
    """Return name, size and media type of a blob. Errors are as for ``read``."""
    return _readable(session, ref).blob


def read(session: RequestContext, ref: str) -> bytes:
    """Return the bytes of a blob.

    Raises:
        NotFound: none that this handle may read; see (1).
        Tampered: they are not what was put, or their file is gone; see (2).
    """
    kept = _readable(session, ref)
    with translate_file_errors():
        data = files_of(session.engine).read(kept.place)
    if data is None:
        raise Tampered(f"the file of blob {kept.blob.ref} is gone; run `keepward verify`, and put it again")
    if ref_of(data) != kept.blob.ref:
        raise Tampered(f"the bytes of blob {kept.blob.ref} were changed; run `keepward verify`, and put them again")
    return data


def may_read(session: RequestContext, blob: StoredBlob) -> bool:
    """Whether a handle may read a blob; see (1)."""
    if any(each.by(session.actor) for each in blob.puts):
        return True
    now = session.clock.now()
    # Of a memory whose words are hidden no reference is read.
    holders = session.reader.records(session.store.blob_holders(session.tenant, blob.blob.ref)).records
    if any(each.blob == blob.blob.ref and each.is_live(now) for each in holders):
        return True
    return session.actor.may_decide and blob.blob.ref in pending_refs(session.store, session.tenant, now)


def refusal_reason(session: RequestContext, before: Record | None, after: Record) -> Reason | None:
    """Return why a memory may not refer to what it refers to; None where it may, or does not refer to more."""
    ref = after.blob
    if ref is None or (before is not None and before.blob == ref and before.content_type is after.content_type):
        return None
    try:
        kept = session.store.documents(StoredBlob, session.tenant).get(parse_ref(ref))
    except InvalidInput as fault:
        return Reason(gate="blob", code="bad_blob", detail=str(fault))
    if kept is None or not may_read(session, kept):
        return Reason(gate="blob", code="unknown_blob", detail=f"{_NOT_FOUND}; put the bytes first")
    if not content_type_fits(after.content_type, kept.blob.media_type):
        detail = f"the blob is {kept.blob.media_type}: that is no {after.content_type.value}; name its content type"
        return Reason(gate="blob", code="content_type", detail=detail)
    return None


def content_type(session: RequestContext, ref: object) -> str:
    """Return the content type of a memory that names a blob and no content type; ``file`` for one not to be had."""
    try:
        kept = session.store.documents(StoredBlob, session.tenant).get(parse_ref(ref))
    except (InvalidInput, Tampered):
        return ContentType.FILE.value
    return (content_type_of(kept.blob.media_type) if kept else ContentType.FILE).value


def describe(engine: Engine, tenant: str, ref: str) -> str:
    """Return a blob in words for who decides about it: hash, size, media type; never its bytes."""
    try:
        kept = engine.store.documents(StoredBlob, tenant).get(ref)
    except Tampered:
        return f"{ref}, and what is known of it does not match its seal"
    if kept is None:
        return f"{ref}, which is not kept here"
    blob = kept.blob
    active = ", active content" if blob.active else ""
    return f"{blob.ref}, {blob.bytes} bytes, {blob.media_type}{active}"


def pending_refs(store: Reader, tenant: str, now: datetime) -> set[str]:
    """Return the refs of proposals that wait and have not run out."""
    return refs_of(item for item in store.documents(Proposal, tenant).list(state="pending") if item.expires_at > now)


def refs_of(items: Iterable[Proposal]) -> set[str]:
    """Return the refs of what proposals would store."""
    return {step.after.blob for item in items for step in item.steps if step.after.blob is not None}


def blob_ref_of(payload: bytes) -> str | None:
    """Return the ref in a record's payload, None where it has none."""
    # Written so only by the field itself: a quotation mark inside of a text is escaped.
    return json.loads(payload).get("blob") if b'"blob":"' in payload else None


def files_of(engine: Engine) -> BlobStore:
    """Return where bytes are kept.

    Raises:
        StoreUnavailable: this store has no place for them.
    """
    if engine.blobs is None:
        raise StoreUnavailable("this store has no place for blobs; open it by its path")
    return engine.blobs


@contextmanager
def translate_file_errors() -> Iterator[None]:
    """Turn what the system says of files into an error that tells what to do."""
    try:
        yield
    except OSError as fault:
        why = fault.strerror or "input or output error"
        raise StoreUnavailable(f"the folder of blobs beside the store cannot be used: {why}") from fault


def _check_secrets(data: bytes, media_type: str) -> tuple[str, ...]:
    """See that a content holds no secret; return what could not be looked into."""
    from keepward.gates.detectors.secrets import find_content_secret

    notes: list[str] = []
    for inside, part in chain([("", data)], (("what is packed in ", each) for each in unpack_files(data, notes))):
        text = decode_text(part)
        if text is None and not inside and is_textual(media_type):
            text = part.decode("latin-1")
        found = find_content_secret(part, text)
        if found is not None:
            where = "" if found.line is None else f" in line {found.line}"
            told = f"{inside}the content holds what looks like a secret ({found.detector}){where}"
            raise InvalidInput(f"{told}: take it out; nothing was stored")
    return tuple(dict.fromkeys(notes))


def _check_not_erased(session: RequestContext, ref: str) -> None:
    stone = tombstone_for(session, (), (ref,))
    if stone is not None:
        raise Conflict(f"this was erased and is not stored again: tombstone {stone}")


def _readable(session: RequestContext, ref: str) -> StoredBlob:
    kept = session.store.documents(StoredBlob, session.tenant).get(parse_ref(ref))
    if kept is None or not may_read(session, kept):
        raise NotFound(_NOT_FOUND)
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyResult:
    """Blobs that went into a copy of the store."""

    blobs: int
    #: Those whose file was gone or changed; they are not in the copy.
    faulty: tuple[str, ...]


def sweep(engine: Engine, tenant: str) -> dict[str, int]:
    """Remove a tenant's blobs that nothing has referred to for ``UNREFERENCED_GRACE``, and files without a row.

    Returns how many ``blobs`` and their ``bytes``, and how many ``strays``: files as an interrupted write leaves them.

    Raises:
        StoreUnavailable: the store or its folder cannot be written.
    """
    gone: list[StoredBlob] = []
    now = engine.clock.now()
    old = [
        each.blob.ref
        for each in engine.store.documents(StoredBlob, tenant).list()
        if each.last_upload <= now - UNREFERENCED_GRACE
    ]
    if not all(engine.store.blob_holders(tenant, ref) for ref in old):
        with engine.store.write() as writer:
            # No one else writes meanwhile: what is referred to now is what will be.
            referred = writer.blob_refs(tenant) | pending_refs(writer, tenant, now)
            free = [each for each in writer.documents(StoredBlob, tenant).list() if each.blob.ref not in referred]
            gone = [
                each
                for each in free
                if each.last_upload <= now - UNREFERENCED_GRACE and writer.drop_blob(tenant, each.blob.ref)
            ]
    size, strays = sum(each.blob.bytes for each in gone), max(0, remove_orphans(engine) - len(gone))
    return {"blobs": len(gone), "bytes": size, "strays": strays}


def remove_orphans(engine: Engine) -> int:
    """Remove every file that neither a row nor the journal names; return how many there were.

    Raises:
        StoreUnavailable: the folder cannot be written.
        Tampered: a row does not match its seal, so that what it names is not known; nothing was removed.
    """
    files = files_of(engine)
    with translate_file_errors(), files.locked(alone=True):
        known = {
            each.place
            for tenant in engine.store.blob_tenants()
            for each in engine.store.documents(StoredBlob, tenant).list(strict=True)
        }
        strays = [place for place in files.paths() if place not in known]
        if strays:
            # Where a row was taken away the journal still says so, and the bytes are not ours to take away as well.
            refs = {ref for tenant in engine.store.tenants() for ref in engine.store.blob_refs(tenant)}
            strays = [place for place in strays if REF_PREFIX + place.rpartition("/")[2] not in refs]
        for place in strays:
            files.remove(place)
    return len(strays)


def check(engine: Engine, tenant: str | None = None) -> tuple[int, list[Fault]]:
    """Read every blob, of one tenant or all, and compare its hash; return how many, and faults by tenant and ref.

    A row that does not match its seal, a ref without a row and an older store are the store's own to name.
    """
    if engine.blobs is None:
        return 0, []
    count, faults = 0, []
    try:
        for name in engine.store.blob_tenants() if tenant is None else [tenant]:
            with suppress(Tampered):
                for each in engine.store.documents(StoredBlob, name).list():
                    count += 1
                    wrong = _fault_of(engine.blobs, each)
                    if wrong:
                        faults.append(Fault(check="blobs", row=f"blobs {name}/{each.blob.ref}", detail=wrong))
    except KeepwardError as fault:
        # A store that is damaged is looked at all the same; what is wrong with it is a fault like any other.
        faults.append(Fault(check="blobs", row="blobs", detail=f"they cannot be read: {fault}"))
    return count, faults


def _fault_of(files: BlobStore, kept: StoredBlob) -> str | None:
    try:
        data = files.read(kept.place)
    except OSError as fault:
        return f"its file cannot be read: {fault.strerror or 'input or output error'}"
    if data is None:
        return "its file is gone; put the same bytes again, or erase the memories that refer to it"
    if ref_of(data) != kept.blob.ref or len(data) != kept.blob.bytes:
        return "its bytes were changed; put the right ones again"
    return None


def count_missing(engine: Engine, tenant: str) -> int:
    """Return how many blobs of a tenant have no file of their size; the heavy proof is ``check``."""
    if engine.blobs is None:
        return 0
    return sum(
        1
        for each in engine.store.documents(StoredBlob, tenant).list()
        if engine.blobs.size(each.place) != each.blob.bytes
    )


def copy(source: BlobStore, target: BlobStore, wanted: Iterable[StoredBlob]) -> CopyResult:
    """Copy the files of blobs, each compared with its hash; one that does not hold is named and left out.

    Raises:
        StoreUnavailable: a folder cannot be read or written.
    """
    count, faulty = 0, []
    with translate_file_errors():
        for each in wanted:
            data = source.read(each.place)
            if data is None or ref_of(data) != each.blob.ref:
                faulty.append(each.blob.ref)
                continue
            with target.locked():
                target.save(each.place, data)
            count += 1
    return CopyResult(blobs=count, faulty=tuple(faulty))
