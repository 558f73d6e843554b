"""Checkpoints: what a long training keeps on its way, so that an interruption costs little.

Invariants
(1) Checkpoints are kept under kinds of their own, which nothing but a training reads: they serve nothing, stand in no
    receipt, and go in the transaction in which the training ends.
(2) A checkpoint, or weights, are kept only where no memory was erased since the training began to read, and an
    erasure takes every checkpoint of the tenant with it: none holds anything of what was erased.
(3) What is taken up again is what would have been computed, bit for bit; what is damaged or of another training is
    left alone and computed anew.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keepward.engine.kit import Kit, Who
from keepward.errors import Conflict, Tampered
from keepward.ports.store import Writer

if TYPE_CHECKING:
    from keepward.retrieval.checkpoint import Trail
    from keepward.retrieval.learn import Course, Example
    from keepward.retrieval.rerank import Floats

#: Kinds of the kept texts: vectors of queries, by the texts; how far the learning has come.
VECTORS = "training-vectors"
COURSE = "training-course"
KINDS = (VECTORS, COURSE)
_NEWEST = "newest"
#: Parts of a training that are reported, each as many as there are feedbacks.
PARTS = 3


@dataclass(slots=True, kw_only=True)
class Checkpoints:
    """The checkpoints of one training."""

    kit: Kit
    who: Who
    #: Seq of the newest commit when the training began to read.
    since: int

    def vectors(self, name: str, count: int, dim: int) -> Floats | None:
        """Return vectors that were kept under a name; None where there are none."""
        from keepward.retrieval.checkpoint import vectors_of

        packed = self._kept(VECTORS, name)
        return None if packed is None else vectors_of(packed, count, dim)

    def keep_vectors(self, name: str, vectors: Floats) -> None:
        """Keep vectors under a name."""
        text = base64.b64encode(vectors.astype("<f4").tobytes()).decode()
        with self.kit.store.write() as writer:
            self.unerased()
            writer.put_artefact(self.who.tenant, VECTORS, name, text)

    def course(self, trail: Trail, told: Sequence[Example]) -> Course | None:
        """Return how far an interrupted training of this very feedback had come; ``trail`` has then followed it."""
        from keepward.retrieval.checkpoint import unpack

        packed = self._kept(COURSE, _NEWEST)
        return None if packed is None else unpack(packed, trail, told)

    def keep_course(self, course: Course, digest: str) -> None:
        """Keep how far the learning has come, in place of what was kept before."""
        from keepward.retrieval.checkpoint import pack

        text = base64.b64encode(pack(course, digest)).decode()
        with self.kit.store.write() as writer:
            self.unerased()
            writer.drop_artefacts(self.who.tenant, COURSE)
            writer.put_artefact(self.who.tenant, COURSE, _NEWEST, text)

    def unerased(self) -> None:
        """See that nothing was erased since; to be asked inside the transaction that writes what was learned.

        Raises:
            Conflict: something was.
        """
        store, tenant = self.kit.store, self.who.tenant
        if store.head(tenant).seq == self.since:
            return
        if any(commit.kind == "erase" for commit, _ in store.events(tenant, after=self.since)):
            raise Conflict("memories were erased while the reranker was trained; nothing was kept: train it again")

    def end(self) -> None:
        """Let go of what a training that ends without a commit has left, if anything."""
        kept = self.kit.store.artefacts(self.who.tenant)
        if any(kind in KINDS for kind, _, _ in kept):
            with self.kit.store.write() as writer:
                drop(writer, self.who.tenant)

    def _kept(self, kind: str, name: str) -> bytes | None:
        try:
            text = self.kit.store.artefact(self.who.tenant, kind, name)
            return None if text is None else base64.b64decode(text, validate=True)
        except (Tampered, binascii.Error):
            # ``verify`` names the row; what was in it is computed anew.
            return None


def drop(writer: Writer, tenant: str) -> None:
    """Let go of every checkpoint of a tenant."""
    for kind in KINDS:
        writer.drop_artefacts(tenant, kind)


@dataclass(slots=True, kw_only=True)
class Progress:
    """Tells how far a training is: a constant total, a count that never falls and ends at it."""

    report: Callable[[int, int], None] | None = None
    #: Feedbacks looked at; each part of the work counts for as many.
    size: int = 0
    _done: int = field(default=0)

    def told(self, part: int, done: int, of: int) -> None:
        """Report that of a part, counted from 0, so much is done."""
        self._done = max(self._done, part * self.size + (self.size * done // of if of else self.size))
        if self.report is not None and self.size:
            self.report(self._done, PARTS * self.size)
