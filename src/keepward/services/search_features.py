"""Features: what recall and the duplicate gate need of a memory, computed once when it is written.

Invariants
(1) Vectors of a model are computed before any transaction, in one batch for a whole proposal.
(2) Without an embedder, or when it fails, the memory is stored with its words alone and is found by them.
(3) What has no text has no words either: neither its key nor its tags make it an answer.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from keepward.core.memory import ContentType, Kind, Record, is_textless
from keepward.core.principals import Trust
from keepward.core.value import to_micros
from keepward.errors import ModelUnavailable
from keepward.gates.detectors.near_duplicate import NormalizedText, normalise
from keepward.ports.models import Embedder
from keepward.ports.store import Features
from keepward.retrieval import advice, chunking, tokenizer
from keepward.retrieval.preferences import mentions_liking, states_preference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

#: Minima over this many hash functions mark a text; texts that share half of their words share at least
#: one mark in 98 of 100 cases (Broder 1997, "On the resemblance and containment of documents").
MINHASH_COUNT = 6
_PRIME = (1 << 61) - 1
_MULTIPLIERS = tuple(
    int.from_bytes(hashlib.blake2b(f"keepward/mark/{n}".encode(), digest_size=16).digest()[:8], "big") % _PRIME | 1
    for n in range(2 * MINHASH_COUNT)
)


def text_digest(text: str | NormalizedText) -> bytes:
    """Return 16 bytes that are equal for texts equal under the declared normalisation."""
    plain = text.plain if isinstance(text, NormalizedText) else normalise(text)
    return hashlib.sha256(plain.encode()).digest()[:16]


def minhashes_of(terms: Sequence[str]) -> tuple[int, ...]:
    """Return the marks of a text's terms, each below 2**61; () for a text without terms."""
    return tuple(map(min, zip(*map(_hash_values, set(terms)), strict=True)))


@lru_cache(maxsize=16_384)
def _hash_values(term: str) -> tuple[int, ...]:
    """Return the places of a term in each of the shuffles whose minima are marks."""
    value = tokenizer.term_hash(term)
    return tuple((_MULTIPLIERS[2 * n] * value + _MULTIPLIERS[2 * n + 1]) % _PRIME for n in range(MINHASH_COUNT))


def text_features(record: Record, form: NormalizedText | None = None) -> Features:
    """Return the features that need no model; ``form`` is that of the record's text, where it was made already."""
    form = form or NormalizedText(record.text)
    own = tokenizer.analyse(record.text)
    beside = chunking.indexed_metadata(
        record.text,
        speaker=record.speaker,
        created_at=_happened(record),
        key=record.key,
        tags=record.tags,
        category=record.category,
    )
    around = tokenizer.analyse("" if is_textless(record) else beside)
    return Features(
        terms=tokenizer.pack(
            own.kept + around.kept or own.stopped + around.stopped, own.names, marker_terms=_features_of(record)
        ),
        # Two pictures under one description are two memories.
        digest=text_digest(form if record.blob is None else f"{record.text}\n{record.blob}"),
        marks=minhashes_of(own.terms),
        trait=form.token_signature,
    )


def _features_of(record: Record) -> list[str]:
    """Return the features of a text that are stored like terms."""
    found = (
        [tokenizer.PREFERENCE_TERM] if chunking.is_user_text(record.speaker) and states_preference(record.text) else []
    )
    if chunking.speaker_name(record.speaker) is not None and chunking.is_question(record.text.rstrip()):
        found.append(tokenizer.QUESTION_TERM)
    return found


def mentions_preference(record: Record) -> bool:
    """Whether a memory states a preference of the user, or a liking such as "Ana prefers tabs"."""
    return chunking.is_user_text(record.speaker) and (states_preference(record.text) or mentions_liking(record.text))


def _happened(record: Record) -> int | None:
    """Return when what an event tells happened, in microseconds since 1970; None for what has no date."""
    happened = record.happened_at
    return None if happened is None else to_micros(happened)


def answered_questions(records: Sequence[Record], tail: Callable[[str], Record | None]) -> dict[str, str]:
    """Return, by memory id, the text of the turn before, where a turn may answer a question in it.

    ``records`` in the order of their arrival; ``tail`` gives the last turn of a session before the first of them.
    """
    asked: dict[str, str] = {}
    last: dict[str, Record | None] = {}
    for record in records:
        if record.kind is not Kind.EVENT or record.session is None:
            continue
        if record.session not in last:
            last[record.session] = tail(record.session)
        previous = last[record.session]
        if previous is not None and may_answer(record, previous):
            asked[record.id] = previous.text
        last[record.session] = record
    return asked


def may_answer(record: Record, previous: Record) -> bool:
    """Whether a turn may answer a question in the turn before; what is trusted less is no part of a talk."""
    one_talk = min(record.trust, Trust.AGENT) == min(previous.trust, Trust.AGENT)
    return one_talk and "?" in previous.text and previous.speaker != record.speaker


def with_vectors(
    embedder: Embedder | None, records: Sequence[Record], base: Sequence[Features], asked: Mapping[str, str]
) -> list[Features]:
    """Return the features with vectors added where there are none; ``asked`` has, by memory id, the turn answered."""
    if embedder is None or not records:
        return list(base)
    missing = [n for n, features in enumerate(base) if not features.vectors]
    if len(missing) < len(base):
        rest = with_vectors(embedder, [records[n] for n in missing], [base[n] for n in missing], asked)
        found = dict(zip(missing, rest, strict=True))
        return [found.get(n, features) for n, features in enumerate(base)]
    from keepward.retrieval.vector_index import pack

    texts = [
        chunking.field_passages(record.text)
        if record.content_type is ContentType.STRUCTURED
        else chunking.sentence_passages(
            record.text,
            speaker=record.speaker,
            created_at=_happened(record),
            question=asked.get(record.id),
            subject=record.subject,
        )
        for record in records
    ]
    if not any(texts):
        # What is found by its fields alone has no text, and is not looked at again.
        return [replace(features, model=embedder.id, recipe=chunking.EMBEDDING_VERSION) for features in base]
    try:
        vectors = vectors_of(embedder, [unit for group in texts for unit in group])
    except ModelUnavailable as fault:
        logger.warning("embedding failed: %s", fault, extra={"action": "embedding_failed", "model": embedder.id})
        return list(base)
    result, start = [], 0
    for features, group in zip(base, texts, strict=True):
        rows = vectors[start : start + len(group)]
        start += len(group)
        packed_units = pack(rows) if group else b""
        with_model = replace(features, model=embedder.id, recipe=chunking.EMBEDDING_VERSION)
        result.append(replace(with_model, vectors=packed_units, units=len(group)))
    return result


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the vectors of texts, a row each.

    Raises:
        ModelUnavailable: the embedder is, or gives something else than it promises.
    """
    import numpy as np

    found = embedder.embed(texts)
    try:
        rows = np.asarray(found, dtype=np.float32)
    except (TypeError, ValueError):
        rows = np.zeros(0, dtype=np.float32)
    if rows.shape != (len(texts), embedder.dim) or not np.isfinite(rows).all() or not rows.any(axis=1).all():
        promised = f"{embedder.dim} finite numbers, not all zero, for each text"
        raise ModelUnavailable(f"the embedder {embedder.id} did not give {promised}; mend its `embed`")
    return rows


@lru_cache(maxsize=4)
def mean_advice_vector(embedder: Embedder) -> NDArray[np.float32]:
    """Return what requests for advice have in common by an embedder: their mean vector, of length 1.

    Raises:
        ModelUnavailable: the embedder is.
    """
    import numpy as np

    mean = vectors_of(embedder, advice.EXAMPLES).mean(axis=0, dtype=np.float64)
    return np.asarray(mean / max(float(np.sqrt(np.dot(mean, mean))), 1e-9), dtype=np.float32)


def pack_vector(vector: Sequence[float]) -> bytes:
    """Return a vector of length 1 as it is kept."""
    import numpy as np

    from keepward.retrieval.vector_index import pack

    return pack(np.asarray([vector], dtype=np.float32))
