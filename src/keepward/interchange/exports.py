"""Export: the journal of a tenant as a vault file.

Invariants
(1) A file under its final name is whole, see ``durable``.
(2) The export ends at the head that was newest when it began, however much is written meanwhile.
(3) A journal that does not hold is not exported as if it did.
(4) Weights of the reranker stand in the first line that names them; what is named and not there is counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from keepward import durable
from keepward.engine.blobs import ref_in
from keepward.engine.learned import named_in
from keepward.errors import StoreUnavailable, Tampered, Unauthorised
from keepward.interchange import sidecar
from keepward.interchange.lines import event_fields, event_line, export_fields
from keepward.memory import read_weights
from keepward.model.commit import Head, recompute

if TYPE_CHECKING:
    from keepward.memory import Memory


@dataclass(slots=True, kw_only=True)
class Tally:
    """What an export holds beside its lines."""

    #: Blobs that lines refer to.
    refs: set[str] = field(default_factory=set)
    #: Names of weights of the reranker that came with it, and of those that were named and could not be read.
    weights: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)


def write_vault(mem: Memory, target: str | Path | TextIO, *, blobs: bool = True, tally: Tally | None = None) -> int:
    """Write every version of every memory of the tenant, oldest first; return the number of lines.

    A path is replaced in one step and is readable by its owner alone; a stream is left open. An empty
    tenant gives no lines. ``blobs``: the content that lines refer to goes to a folder beside a path, see
    ``sidecar``; a stream holds the references alone. What else it holds is counted in ``tally``. Not in it are
    the review queue, receipts, feedback and counts of use.

    Raises:
        Unauthorised: the handle is not the owner's; an export holds every scope.
        Tampered: a commit does not match its hash.
        StoreUnavailable: the file cannot be written; what was there before is unchanged.
    """
    if not mem.actor.is_owner:
        raise Unauthorised("an export holds every scope of the tenant: open the store as its owner")
    tally = tally or Tally()
    if not isinstance(target, str | Path):
        count = 0
        plain = (getattr(target, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
        for line in _lines(mem, tally):
            # A terminal that cannot show every letter gets them escaped, and not an error half way.
            target.write((json.dumps(json.loads(line), separators=(",", ":")) if plain else line) + "\n")
            count += 1
        return count
    path = Path(target)
    try:
        return _replaced(mem, path, tally, blobs=blobs)
    except OSError as fault:
        raise StoreUnavailable(f"cannot write {path.name}: {fault.strerror or 'output error'}") from fault


def _replaced(mem: Memory, path: Path, tally: Tally, *, blobs: bool) -> int:
    count = 0
    with durable.replacing(path) as out:
        for line in _lines(mem, tally):
            out.write(f"{line}\n".encode())
            count += 1
        # First, so that a file under its final name never waits for what it refers to.
        if blobs:
            sidecar.write(mem, path, tally.refs)
    return count


def _lines(mem: Memory, tally: Tally) -> Iterator[str]:
    """Yield the lines of a vault."""
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
            weights = None if event.payload is None else _beside(mem, event.payload, tally)
            fields = event_fields(event, first, len(events), export if first and commit.seq == 1 else None, weights)
            yield event_line(fields)
        if commit.seq == head.seq:
            if commit.hash != head.hash:
                break
            return
    raise Tampered("the journal does not end in its head; run `keepward verify`")


def _beside(mem: Memory, payload: bytes, tally: Tally) -> str | None:
    """Return the weights that a payload is the first to name, if they are there; count what it refers to."""
    ref, name = ref_in(payload), named_in(payload)
    if ref is not None:
        tally.refs.add(ref)
    if name is None or name in tally.weights | tally.lost:
        return None
    text, erased = read_weights(mem, name)
    if text is not None:
        tally.weights.add(name)
    elif not erased:
        tally.lost.add(name)
    return text
