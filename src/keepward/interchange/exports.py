"""Export: the journal of a tenant as a vault file.

Invariants
(1) A file under its final name is whole, see ``durable``.
(2) The export ends at the head that was newest when it began, however much is written meanwhile.
(3) A journal that does not hold is not exported as if it did.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from keepward import durable
from keepward.domain.commit import Head, recompute
from keepward.engine.blobs import ref_in
from keepward.errors import StoreUnavailable, Tampered, Unauthorised
from keepward.interchange import sidecar
from keepward.interchange.lines import event_fields, event_line, export_fields

if TYPE_CHECKING:
    from keepward.app import Memory


def write_vault(mem: Memory, target: str | Path | TextIO, *, blobs: bool = True) -> int:
    """Write every version of every memory of the tenant, oldest first; return the number of lines.

    A path is replaced in one step and is readable by its owner alone; a stream is left open. An empty
    tenant gives no lines. ``blobs``: the content that lines refer to goes to a folder beside a path, see
    ``sidecar``; a stream holds the references alone.

    Raises:
        Unauthorised: the handle is not the owner's; an export holds every scope.
        Tampered: a commit does not match its hash.
        StoreUnavailable: the file cannot be written; what was there before is unchanged.
    """
    if not mem.actor.is_owner:
        raise Unauthorised("an export holds every scope of the tenant: open the store as its owner")
    if not isinstance(target, str | Path):
        count = 0
        plain = (getattr(target, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
        for line in _lines(mem):
            # A terminal that cannot show every letter gets them escaped, and not an error half way.
            target.write((json.dumps(json.loads(line), separators=(",", ":")) if plain else line) + "\n")
            count += 1
        return count
    path = Path(target)
    try:
        return _replaced(mem, path, blobs=blobs)
    except OSError as fault:
        raise StoreUnavailable(f"cannot write {path.name}: {fault.strerror or 'output error'}") from fault


def _replaced(mem: Memory, path: Path, *, blobs: bool) -> int:
    count = 0
    refs: set[str] = set()
    with durable.replacing(path) as out:
        for line in _lines(mem, refs):
            out.write(f"{line}\n".encode())
            count += 1
        # First, so that a file under its final name never waits for what it refers to.
        if blobs:
            sidecar.write(mem, path, refs)
    return count


def _lines(mem: Memory, refs: set[str] | None = None) -> Iterator[str]:
    """Yield the lines of a vault; the blobs that they name are added to ``refs``."""
    newest = mem.log(limit=1)
    if not newest:
        return
    head = Head(seq=newest[0].commit.seq, hash=newest[0].commit.hash)
    export = export_fields(mem.tenant, head)
    for commit, events in mem.journal():
        if recompute(commit, events) != commit.hash or not events:
            raise Tampered(f"commit {commit.seq} does not match its hash; run `keepward verify`")
        for event in events:
            first = commit if event.n == 0 else None
            fields = event_fields(event, first, len(events), export if first and commit.seq == 1 else None)
            ref = None if refs is None or event.payload is None else ref_in(event.payload)
            if refs is not None and ref is not None:
                refs.add(ref)
            yield event_line(fields)
        if commit.seq == head.seq:
            if commit.hash != head.hash:
                break
            return
    raise Tampered("the journal does not end in its head; run `keepward verify`")
