"""Blobs: bytes that memories refer to, who may upload and read them, and how long they are stored.

A blob may be read by an actor that sees an active memory which refers to it, or that uploaded it. An actor that may
decide also reads the blobs of pending proposals. For others the blob does not exist, in the same words.
Every read compares the hash; bytes that differ are never returned.
A memory refers only to blobs that its writer may read: a guessed name opens nothing.
A secret is never stored: bytes, and the files in gzip and zip archives, are scanned before the first byte is written. A
note says what could not be scanned. Erased bytes are not stored again.
A blob is stored as long as a version of a memory or a pending proposal refers to it; it is deleted a day after its last
upload at the earliest. The row is deleted first, in a transaction that sees all references; then the file.

Late imports: a program that does not need it starts faster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
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
from keepward.services.reading.visible import VisibleReader
from keepward.services.request_context import Engine, RequestContext
from keepward.services.writing.tombstones import tombstone_for
from keepward.services.writing.unpack import Budget, unpack_files, unpack_parts
from keepward.storage.reads import StoreReader

#: Blobs that one transaction of a sweep deletes.
SWEPT_AT_ONCE = 200
_NOT_FOUND = "there is no blob by that name that this handle may read; check the name, the tenant and the scope"


def put(context: RequestContext, data: bytes, media_type: str | None) -> Blob:
    """Store bytes, once if they are the same, and return the blob; errors are as in ``put_blob``."""
    if not all(actor.may_propose for actor in (context.actor, *context.via)):
        raise Unauthorised("putting a blob takes the right to propose; ask the owner for a token that has it")
    if not (context.policy.enabled and context.policy.capture):
        raise Conflict("memory is switched off by policy; nothing was stored")
    if not isinstance(data, bytes | bytearray):
        raise InvalidInput("a blob is bytes; read the file in binary")
    if not data:
        raise InvalidInput("the blob is empty: there are no bytes to store")
    if len(data) > MAX_BLOB_BYTES:
        raise InvalidInput(
            f"a blob has at most {MAX_BLOB_BYTES // 2**20} MB; store the rest elsewhere and remember where"
        )
    raw = bytes(data)
    named, active = media_type_of(media_type, raw)
    notes = _check_secrets(raw, named)
    files, ref, now = files_of(context.engine), ref_of(raw), context.clock.now()
    blob = Blob(ref=ref, bytes=len(raw), media_type=named, active=active, notes=notes)
    upload = BlobUpload(
        kind=context.actor.kind.value, name=context.actor.name, credential=context.actor.credential, at=now
    )
    _check_not_erased(context, ref)
    with translate_file_errors(), files.locked():
        new = StoredBlob(tenant=context.tenant, blob=blob, at=now, puts=())
        stored = context.store.documents(StoredBlob, context.tenant).get(ref) or new
        files.save(stored.place, raw)
        with context.store.write() as writer:
            _check_not_erased(context.for_transaction(writer), ref)
            stored = writer.documents(StoredBlob, context.tenant).get(ref) or stored
            writer.put(replace(stored, puts=with_upload(stored.puts, upload, context.actor)))
    return replace(stored.blob, notes=notes)


def blob_info(context: RequestContext, ref: str) -> Blob:
    """Return name, size and media type of a blob; errors are as in ``read``."""
    return _readable(context, ref).blob


def read(context: RequestContext, ref: str) -> bytes:
    """Return the bytes of a blob.

    Raises:
        NotFound: there is none that this handle may read.
        Tampered: the bytes are not those that were uploaded, or their file is missing.
    """
    stored = _readable(context, ref)
    with translate_file_errors():
        data = files_of(context.engine).read(stored.place)
    if data is None:
        raise Tampered(f"the file of blob {stored.blob.ref} is missing; run `keepward verify`, and upload it again")
    if ref_of(data) != stored.blob.ref:
        raise Tampered(
            f"the bytes of blob {stored.blob.ref} were changed; run `keepward verify`, and upload them again"
        )
    return data


def may_read(context: RequestContext, blob: StoredBlob) -> bool:
    """Whether a handle may read a blob."""
    if any(upload.by(context.actor) for upload in blob.puts):
        return True
    now = context.clock.now()
    # A hidden memory shows no reference, so it does not count.
    holders = VisibleReader(context).records(context.store.blob_holders(context.tenant, blob.blob.ref)).records
    if any(record.blob == blob.blob.ref and record.is_live(now) for record in holders):
        return True
    if not context.actor.may_decide:
        return False
    pending = context.store.documents(Proposal, context.tenant).list(state="pending", refs=[blob.blob.ref])
    return blob.blob.ref in refs_of(
        item for item in pending if item.expires_at > now and VisibleReader(context).sees_all_of(item)
    )


def refusal_reason(context: RequestContext, before: Record | None, after: Record) -> Reason | None:
    """Return why a memory may not refer to its blob; None if it may, or if the reference is not new."""
    ref = after.blob
    if ref is None or (before is not None and before.blob == ref and before.content_type is after.content_type):
        return None
    try:
        stored = context.store.documents(StoredBlob, context.tenant).get(parse_ref(ref))
    except InvalidInput as exc:
        return Reason(gate="blob", code="bad_blob", detail=str(exc))
    if stored is None or not may_read(context, stored):
        return Reason(gate="blob", code="unknown_blob", detail=f"{_NOT_FOUND}; upload the bytes first")
    if not content_type_fits(after.content_type, stored.blob.media_type):
        detail = f"the blob is {stored.blob.media_type}, not {after.content_type.value}; name its content type"
        return Reason(gate="blob", code="content_type", detail=detail)
    return None


def content_type(context: RequestContext, ref: object) -> str:
    """Return the content type for a memory that names only a blob; ``file`` if the blob cannot be read."""
    try:
        stored = context.store.documents(StoredBlob, context.tenant).get(parse_ref(ref))
    except (InvalidInput, Tampered):
        return ContentType.FILE.value
    return (content_type_of(stored.blob.media_type) if stored else ContentType.FILE).value


def describe(engine: Engine, tenant: str, ref: str) -> str:
    """Describe a blob for a reviewer: hash, size and media type, never its bytes."""
    try:
        stored = engine.store.documents(StoredBlob, tenant).get(ref)
    except Tampered:
        return f"{ref}, whose row does not match its seal"
    if stored is None:
        return f"{ref}, which is not stored here"
    blob = stored.blob
    active = ", active content" if blob.active else ""
    return f"{blob.ref}, {blob.bytes} bytes, {blob.media_type}{active}"


def pending_refs(store: StoreReader, tenant: str, now: datetime) -> set[str]:
    """Return the refs of proposals that are pending and not expired."""
    return refs_of(item for item in store.documents(Proposal, tenant).list(state="pending") if item.expires_at > now)


def refs_of(items: Iterable[Proposal]) -> set[str]:
    """Return the refs of the records that proposals would store."""
    return {step.after.blob for item in items for step in item.steps if step.after.blob is not None}


def blob_ref_of(payload: bytes) -> str | None:
    """Return the ref in a record's payload; None if it has none."""
    # Only the field itself is written so: a quotation mark in a text is escaped.
    return json.loads(payload).get("blob") if b'"blob":"' in payload else None


def files_of(engine: Engine) -> BlobStore:
    """Return the blob store.

    Raises:
        StoreUnavailable: this store has none.
    """
    if engine.blobs is None:
        raise StoreUnavailable("this store has no folder for blobs; open it by its path")
    return engine.blobs


@contextmanager
def translate_file_errors() -> Iterator[None]:
    """Turn file errors of the system into an error that says what to do."""
    try:
        yield
    except OSError as exc:
        why = exc.strerror or "input or output error"
        raise StoreUnavailable(f"the folder of blobs next to the store cannot be used: {why}") from exc


def _check_secrets(data: bytes, media_type: str) -> tuple[str, ...]:
    """Refuse a content with a secret; return notes on what could not be scanned."""
    from keepward.gates.detectors.secrets import find_content_secret

    notes: list[str] = []
    for prefix, part, text in _contents(data, media_type, notes):
        secret = find_content_secret(part, text)
        if secret is not None:
            where = "" if secret.line is None else f" in line {secret.line}"
            problem = f"{prefix}the content contains what looks like a secret ({secret.detector}){where}"
            raise InvalidInput(f"{problem}: take it out; nothing was stored")
    return tuple(dict.fromkeys(notes))


def _contents(data: bytes, media_type: str, notes: list[str]) -> Iterator[tuple[str, bytes, str | None]]:
    """Yield the content and what is packed in it, with a prefix for messages and its text, if it is text."""
    budget, inside = Budget(), "what is packed in "
    text = decode_text(data)
    if text is None and is_textual(media_type):
        text = data.decode("latin-1")
    files = ((inside, part, decode_text(part)) for part in unpack_files(data, notes, budget))
    for prefix, file, file_text in chain([("", data, text)], files):
        yield prefix, file, file_text
        # Pictures have random ids in their metadata, which resemble secrets. As bytes, only documented formats count.
        yield from ((inside, part, None) for part in unpack_parts(file, notes, budget))


def _check_not_erased(context: RequestContext, ref: str) -> None:
    tombstone = tombstone_for(context, (), (ref,))
    if tombstone is not None:
        raise Conflict(f"this was erased and is not stored again: tombstone {tombstone}")


def _readable(context: RequestContext, ref: str) -> StoredBlob:
    stored = context.store.documents(StoredBlob, context.tenant).get(parse_ref(ref))
    if stored is None or not may_read(context, stored):
        raise NotFound(_NOT_FOUND)
    return stored


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyResult:
    """Blobs that were copied with a store."""

    blobs: int
    #: Refs of blobs whose file was missing or changed; they are not in the copy.
    faulty: tuple[str, ...]


def sweep(engine: Engine, tenant: str, before_part: Callable[[], None] = lambda: None) -> dict[str, int]:
    """Delete a tenant's blobs without a reference for ``UNREFERENCED_GRACE``, and files without a row.

    ``before_part`` is called before each transaction, of at most ``SWEPT_AT_ONCE`` blobs.
    Returns the number of ``blobs``, their ``bytes``, and ``strays``: files that interrupted writes left behind.

    Raises:
        StoreUnavailable: the store or its folder cannot be written.
    """
    deleted: list[StoredBlob] = []
    now = engine.clock.now()
    old = [
        stored.blob.ref
        for stored in engine.store.documents(StoredBlob, tenant).list()
        if stored.last_upload <= now - UNREFERENCED_GRACE
    ]
    if not all(engine.store.blob_holders(tenant, ref) for ref in old):
        with engine.store.read_snapshot(tenant):
            seq, referred = engine.store.head(tenant).seq, engine.store.blob_refs(tenant)
        unused = [ref for ref in old if ref not in referred]
        for start in range(0, len(unused), SWEPT_AT_ONCE):
            before_part()
            with engine.store.write() as writer:
                # No other process writes meanwhile, so no reference can be added.
                added = writer.blob_refs(tenant, after=seq) | pending_refs(writer, tenant, now)
                deleted += [
                    stored
                    for stored in writer.documents(StoredBlob, tenant).list(ids=unused[start : start + SWEPT_AT_ONCE])
                    if stored.blob.ref not in added
                    and stored.last_upload <= now - UNREFERENCED_GRACE
                    and writer.drop_blob(tenant, stored.blob.ref)
                ]
    size, strays = sum(stored.blob.bytes for stored in deleted), max(0, remove_orphans(engine) - len(deleted))
    return {"blobs": len(deleted), "bytes": size, "strays": strays}


def remove_orphans(engine: Engine) -> int:
    """Delete every file that neither a row nor the journal names; return how many there were.

    Raises:
        StoreUnavailable: the folder cannot be written.
        Tampered: a row does not match its seal, so its file is unknown; nothing was deleted.
    """
    files = files_of(engine)
    with translate_file_errors(), files.locked(alone=True):
        known = {
            stored.place
            for tenant in engine.store.blob_tenants()
            for stored in engine.store.documents(StoredBlob, tenant).list(strict=True)
        }
        strays = [path for path in files.paths() if path not in known]
        if strays:
            # If a row is missing but the journal still names its blob, the file stays.
            refs = {ref for tenant in engine.store.tenants() for ref in engine.store.blob_refs(tenant)}
            strays = [path for path in strays if REF_PREFIX + path.rpartition("/")[2] not in refs]
        for path in strays:
            files.remove(path)
    return len(strays)


def check(engine: Engine, tenant: str | None = None) -> tuple[int, list[Fault]]:
    """Read every blob, of one tenant or all, and compare its hash; return how many, and faults by tenant and ref.

    The store itself reports a row that does not match its seal, a ref without a row, and an older store.
    """
    if engine.blobs is None:
        return 0, []
    count, faults = 0, []
    try:
        for name in engine.store.blob_tenants() if tenant is None else [tenant]:
            with suppress(Tampered):
                for stored in engine.store.documents(StoredBlob, name).list():
                    count += 1
                    problem = _fault_of(engine.blobs, stored)
                    if problem:
                        faults.append(Fault(check="blobs", row=f"blobs {name}/{stored.blob.ref}", detail=problem))
    except KeepwardError as exc:
        # A damaged store must not stop the check: the damage is a fault like any other.
        faults.append(Fault(check="blobs", row="blobs", detail=f"they cannot be read: {exc}"))
    return count, faults


def _fault_of(files: BlobStore, stored: StoredBlob) -> str | None:
    try:
        data = files.read(stored.place)
    except OSError as exc:
        return f"its file cannot be read: {exc.strerror or 'input or output error'}"
    if data is None:
        return "its file is missing; upload the same bytes again, or erase the memories that refer to it"
    if ref_of(data) != stored.blob.ref or len(data) != stored.blob.bytes:
        return "its bytes were changed; upload the right ones again"
    return None


def count_missing(engine: Engine, tenant: str) -> int:
    """Return how many blobs of a tenant have no file of their size; ``check`` compares the content."""
    if engine.blobs is None:
        return 0
    return sum(
        1
        for stored in engine.store.documents(StoredBlob, tenant).list()
        if engine.blobs.size(stored.place) != stored.blob.bytes
    )


def copy(source: BlobStore, target: BlobStore, wanted: Iterable[StoredBlob]) -> CopyResult:
    """Copy the files of blobs, comparing each with its hash; a faulty one is named and left out.

    Raises:
        StoreUnavailable: a folder cannot be read or written.
    """
    count, faulty = 0, []
    with translate_file_errors():
        for stored in wanted:
            data = source.read(stored.place)
            if data is None or ref_of(data) != stored.blob.ref:
                faulty.append(stored.blob.ref)
                continue
            with target.locked():
                target.save(stored.place, data)
            count += 1
    return CopyResult(blobs=count, faulty=tuple(faulty))
