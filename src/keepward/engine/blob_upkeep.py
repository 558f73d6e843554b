"""Upkeep of blobs: what nothing refers to goes, what is referred to is there, and copies have theirs.

Invariants
(1) A blob stays for as long as a version of a memory refers to it, whether it holds or not: rollback and restore
    bring back a memory with its content. Only erasing ends that.
(2) One that nothing refers to, in the journal or in the queue, goes a day after it was last put; no read removes any.
(3) The row goes first, in a transaction that sees what refers to it; then the file. What a crash leaves between the
    two is a file without a row, and those go at the next upkeep.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from keepward.engine.blobs import files_of, reachable, waiting_refs
from keepward.engine.kit import Kit
from keepward.errors import KeepwardError, Tampered
from keepward.model.blob import GRACE, PREFIX, Kept, ref_of
from keepward.model.journal import Fault
from keepward.ports.blobs import BlobStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep removed."""

    #: Blobs that nothing referred to.
    blobs: int
    #: Their size in bytes.
    bytes: int
    #: Files that no row named, as an interrupted write leaves them.
    strays: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """Blobs that went into a copy of the store."""

    blobs: int
    bytes: int
    #: Those whose file was gone or changed; they are not in the copy.
    faulty: tuple[str, ...]


def sweep(kit: Kit, tenant: str | None = None) -> Swept:
    """Remove what nothing refers to for longer than ``GRACE``, of one tenant or all, and files that no row names.

    Raises:
        StoreUnavailable: the store or its folder cannot be written.
    """
    gone: list[Kept] = []
    for name in kit.store.blob_tenants() if tenant is None else [tenant]:
        gone += _forgotten(kit, name)
    return Swept(blobs=len(gone), bytes=sum(each.blob.bytes for each in gone), strays=max(0, clean(kit) - len(gone)))


def _forgotten(kit: Kit, tenant: str) -> list[Kept]:
    latest = kit.clock.now() - GRACE
    due = [each for each in kit.store.blobs(tenant) if each.last_put <= latest]
    due = [each for each in due if not kit.store.blob_holders(tenant, each.blob.ref)]
    if not due:
        return []
    gone = []
    with kit.store.write() as writer:
        # Nobody writes meanwhile: what is referred to now is what will be.
        referred = kit.store.blob_refs(tenant) | waiting_refs(kit, tenant)
        newest = {each.blob.ref: each for each in kit.store.blobs(tenant)}
        for each in due:
            ref = each.blob.ref
            stale = ref in newest and newest[ref].last_put <= latest
            if stale and ref not in referred and writer.drop_blob(tenant, ref):
                gone.append(each)
    return gone


def clean(kit: Kit) -> int:
    """Remove every file that neither a row nor the journal names; return how many there were.

    Raises:
        StoreUnavailable: the folder cannot be written.
        Tampered: a row does not match its seal, so that what it names is not known; nothing was removed.
    """
    files = files_of(kit)
    with reachable(), files.holding(alone=True):
        known = {place for tenant in kit.store.blob_tenants() for place in kit.store.blob_places(tenant)}
        strays = [place for place in files.places() if place not in known]
        if strays:
            # Where a row was taken away the journal still says so, and the bytes are not ours to take away as well.
            refs = {ref for tenant in kit.store.tenants() for ref in kit.store.blob_refs(tenant)}
            strays = [place for place in strays if PREFIX + place.rpartition("/")[2] not in refs]
        for place in strays:
            files.remove(place)
    return len(strays)


def check(kit: Kit, tenant: str | None = None) -> tuple[int, list[Fault]]:
    """Read every blob, of one tenant or all, and compare its hash; return how many, and faults by tenant and ref.

    A row that does not match its seal, a ref without a row and an older store are the store's own to name.
    """
    if kit.blobs is None:
        return 0, []
    count, faults = 0, []
    try:
        for name in kit.store.blob_tenants() if tenant is None else [tenant]:
            with suppress(Tampered):
                for each in kit.store.blobs(name):
                    count += 1
                    wrong = _wrong(kit.blobs, each)
                    if wrong:
                        faults.append(Fault(check="blobs", row=f"blobs {name}/{each.blob.ref}", detail=wrong))
    except KeepwardError as fault:
        # A store that is damaged is looked at all the same; what is wrong with it is a fault like any other.
        faults.append(Fault(check="blobs", row="blobs", detail=f"they cannot be read: {fault}"))
    return count, faults


def _wrong(files: BlobStore, kept: Kept) -> str | None:
    try:
        data = files.read(kept.place)
    except OSError as fault:
        return f"its file cannot be read: {fault.strerror or 'input or output error'}"
    if data is None:
        return "its file is gone; put the same bytes again, or erase the memories that refer to it"
    if ref_of(data) != kept.blob.ref or len(data) != kept.blob.bytes:
        return "its bytes were changed; put the right ones again"
    return None


def absent(kit: Kit, tenant: str) -> int:
    """Return how many blobs of a tenant have no file of their size; the heavy proof is ``check``."""
    if kit.blobs is None:
        return 0
    return sum(1 for each in kit.store.blobs(tenant) if kit.blobs.size(each.place) != each.blob.bytes)


def copy(source: BlobStore, target: BlobStore, wanted: Iterable[Kept]) -> Copied:
    """Copy the files of blobs, each compared with its hash; one that does not hold is named and left out.

    Raises:
        StoreUnavailable: a folder cannot be read or written.
    """
    count, size, faulty = 0, 0, []
    with reachable():
        for each in wanted:
            data = source.read(each.place)
            if data is None or ref_of(data) != each.blob.ref:
                faulty.append(each.blob.ref)
                continue
            with target.holding():
                target.keep(each.place, data)
            count, size = count + 1, size + len(data)
    return Copied(blobs=count, bytes=size, faulty=tuple(faulty))
