"""Features: what recall and the duplicate gate need of a memory, computed once when it is written.

Vectors of a slow model are computed before any transaction, in one batch for a proposal. Without an embedder, or if it
fails, the memory is stored with its words alone. Every vector of a query comes from ``query_vectors_of``. A memory
without text has no words: its key and tags do not make it a hit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from keepward.core.memory import ContentType, Kind, Record, is_textless
from keepward.core.principals import Trust
from keepward.core.value import to_micros
from keepward.errors import InvalidInput, ModelUnavailable
from keepward.gates.detectors.near_duplicate import NormalizedText, normalise
from keepward.ports.models import Embedder
from keepward.ports.store import Features
from keepward.retrieval import advice, chunking, tokenizer
from keepward.retrieval.preferences import mentions_liking, states_preference
from keepward.retrieval.ranking import ModelScale
from keepward.retrieval.vector_index import pack

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: Fields that the features of a memory are computed from, except its creation time.
FEATURE_FIELDS = ("text", "key", "tags", "category", "speaker", "occurred_at", "kind")
feature_fields_of = attrgetter(*FEATURE_FIELDS)
#: Number of minhashes of a text. Texts that share half of their words share at least one in 98 of 100 cases
#: (Broder 1997, "On the resemblance and containment of documents").
MINHASH_COUNT = 6
_PRIME = (1 << 61) - 1
_MULTIPLIERS = tuple(
    int.from_bytes(hashlib.blake2b(f"keepward/mark/{n}".encode(), digest_size=16).digest()[:8], "big") % _PRIME | 1
    for n in range(2 * MINHASH_COUNT)
)


def text_digest(text: str | NormalizedText) -> bytes:
    """Return 16 bytes that are equal for texts with the same normal form."""
    plain = text.plain if isinstance(text, NormalizedText) else normalise(text)
    return hashlib.sha256(plain.encode()).digest()[:16]


def minhashes_of(terms: Sequence[str]) -> tuple[int, ...]:
    """Return the minhashes of a text's terms, each below 2**61; () for a text without terms."""
    return tuple(map(min, zip(*map(_hash_values, set(terms)), strict=True)))


@lru_cache(maxsize=16_384)
def _hash_values(term: str) -> tuple[int, ...]:
    """Return the values of a term under each hash function; the minima over all terms are the minhashes."""
    value = tokenizer.term_hash(term)
    return tuple((_MULTIPLIERS[2 * n] * value + _MULTIPLIERS[2 * n + 1]) % _PRIME for n in range(MINHASH_COUNT))


def text_features(record: Record, normalized: NormalizedText | None = None) -> Features:
    """Return the features that need no model; ``normalized`` is the record's normalised text, if already known."""
    normalized = normalized or NormalizedText(record.text)
    own = tokenizer.analyse(record.text)
    metadata = chunking.indexed_metadata(
        record.text,
        speaker=record.speaker,
        created_at=_happened(record),
        key=record.key,
        tags=record.tags,
        category=record.category,
    )
    around = tokenizer.analyse("" if is_textless(record) else metadata)
    return Features(
        terms=tokenizer.pack(
            own.kept + around.kept or own.stopped + around.stopped, own.names, marker_terms=_marker_terms(record)
        ),
        # Two pictures with one description are two memories.
        digest=text_digest(normalized if record.blob is None else f"{record.text}\n{record.blob}"),
        marks=minhashes_of(own.terms),
        trait=normalized.token_signature,
    )


def _marker_terms(record: Record) -> list[str]:
    """Return the properties of a text that are stored like terms."""
    terms = (
        [tokenizer.PREFERENCE_TERM] if chunking.is_user_text(record.speaker) and states_preference(record.text) else []
    )
    if chunking.speaker_name(record.speaker) is not None and chunking.is_question(record.text.rstrip()):
        terms.append(tokenizer.QUESTION_TERM)
    return terms


def mentions_preference(record: Record) -> bool:
    """Whether a memory states a preference of the user, or a liking such as "Ana prefers tabs"."""
    return chunking.is_user_text(record.speaker) and (states_preference(record.text) or mentions_liking(record.text))


def _happened(record: Record) -> int | None:
    """Return the time of an event in microseconds since 1970; None for a memory without a date."""
    happened = record.happened_at
    return None if happened is None else to_micros(happened)


def answered_questions(records: Sequence[Record], tail: Callable[[str], Record | None]) -> dict[str, str]:
    """Return, by memory id, the text of the previous message if the memory may answer a question in it.

    ``records`` are in order of arrival; ``tail`` returns the last message of a session before them.
    """
    questions: dict[str, str] = {}
    last: dict[str, Record | None] = {}
    for record in records:
        if record.kind is not Kind.EVENT or record.session is None:
            continue
        if record.session not in last:
            last[record.session] = tail(record.session)
        previous = last[record.session]
        if previous is not None and may_answer(record, previous):
            questions[record.id] = previous.text
        last[record.session] = record
    return questions


def may_answer(record: Record, previous: Record) -> bool:
    """Whether a message may answer a question in the previous one; both must be trusted alike."""
    trusted_alike = min(record.trust, Trust.AGENT) == min(previous.trust, Trust.AGENT)
    return trusted_alike and "?" in previous.text and previous.speaker != record.speaker


def with_vectors(
    embedder: Embedder | None, records: Sequence[Record], base: Sequence[Features], questions: Mapping[str, str]
) -> list[Features]:
    """Add vectors to features without any; ``questions`` has, by memory id, the question that it answers.

    Raises:
        ModelUnavailable: as in ``vectors_of``.
    """
    if embedder is None or not records:
        return list(base)
    missing = [n for n, features in enumerate(base) if not features.vectors]
    if len(missing) < len(base):
        rest = with_vectors(embedder, [records[n] for n in missing], [base[n] for n in missing], questions)
        added = dict(zip(missing, rest, strict=True))
        return [added.get(n, features) for n, features in enumerate(base)]
    texts = [
        chunking.field_passages(record.text)
        if record.content_type is ContentType.STRUCTURED
        else chunking.sentence_passages(
            record.text,
            speaker=record.speaker,
            created_at=_happened(record),
            question=questions.get(record.id),
            subject=record.subject,
        )
        for record in records
    ]
    if not any(texts):
        # Marked as embedded: a memory with metadata only has no text, and must not be checked again.
        model = embedder_id(embedder)
        return [replace(features, model=model, recipe=chunking.EMBEDDING_VERSION) for features in base]
    vectors = vectors_of(embedder, [unit for group in texts for unit in group])
    model = embedder_id(embedder)
    result, start = [], 0
    for features, group in zip(base, texts, strict=True):
        rows = vectors[start : start + len(group)]
        start += len(group)
        packed_units = pack(rows) if group else b""
        with_model = replace(features, model=model, recipe=chunking.EMBEDDING_VERSION)
        result.append(replace(with_model, vectors=packed_units, units=len(group)))
    return result


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the vectors of documents, one row each.

    Raises:
        ModelUnavailable: the embedder is unavailable, fails, or returns something else than it promises.
    """
    return _checked_vectors(embedder, "embed", texts)


def checked_query_vector(embedder: Embedder, vector: Sequence[float]) -> NDArray[np.float32]:
    """Return the vector of a query that its caller computed, as one row.

    Raises:
        InvalidInput: it has another number of dimensions than the vectors of the store.
    """
    if len(vector) != embedder.dim:
        raise InvalidInput(f"the vector has {len(vector)} numbers, those of this store have {embedder.dim}")
    return np.asarray([vector], dtype=np.float32)


def query_vectors_of(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the vectors of queries: by ``embed_query`` if the embedder has it, else by ``embed``.

    Raises:
        ModelUnavailable: as in ``vectors_of``.
    """
    return _checked_vectors(embedder, "embed_query" if hasattr(embedder, "embed_query") else "embed", texts)


def _checked_vectors(embedder: Embedder, method: str, texts: Sequence[str]) -> NDArray[np.float32]:
    try:
        found = getattr(embedder, method)(texts)
        vectors = list(found) if isinstance(found, Iterator) else found
        rows, dim = _as_rows(vectors), embedder.dim
    except ModelUnavailable:
        raise
    except Exception as exc:
        # Only the type: the embedder's message may quote a memory.
        raise ModelUnavailable(f"{_shown(embedder)} raised {type(exc).__name__}; fix its `{method}`") from exc
    if rows.shape != (len(texts), dim) or not np.isfinite(rows).all() or not rows.any(axis=1).all():
        promised = f"{dim} finite numbers, not all zero, for each text"
        raise ModelUnavailable(f"{_shown(embedder)} did not return {promised}; fix its `{method}`")
    return rows


def _as_rows(vectors: Any) -> NDArray[np.float32]:
    try:
        return np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError):
        return np.zeros(0, dtype=np.float32)


def _shown(embedder: Embedder) -> str:
    return f"the embedder {known_embedder_id(embedder) or type(embedder).__name__}"


def embedder_id(embedder: Embedder) -> str:
    """Return the id of an embedder.

    Raises:
        ModelUnavailable: it has none now. A server says by its first answer how long its vectors are.
    """
    try:
        return embedder.id
    except ModelUnavailable:
        raise
    except Exception as exc:
        raise ModelUnavailable(f"the embedder raised {type(exc).__name__}; fix its `id`") from exc


def known_embedder_id(embedder: Embedder | None) -> str | None:
    """Return the id of an embedder; None without an embedder, or while it has no id."""
    try:
        return None if embedder is None else embedder_id(embedder)
    except ModelUnavailable:
        return None


def mean_advice_vector(embedder: Embedder, computed: dict[str, Any]) -> NDArray[np.float32]:
    """Return the mean vector of requests for advice by an embedder.

    ``computed`` has those that are known, by the embedder's id.

    Raises:
        ModelUnavailable: the embedder is unavailable.
    """
    model = embedder_id(embedder)
    if model not in computed:
        mean = query_vectors_of(embedder, advice.EXAMPLES).mean(axis=0, dtype=np.float64)
        computed[model] = np.asarray(mean, dtype=np.float32)
    vector: NDArray[np.float32] = computed[model]
    return vector


#: Texts that have nothing in common, to measure how close a model puts unrelated texts.
_UNRELATED: Final = (
    "The ferry leaves the island at dawn.",
    "Our accountant prefers spreadsheets.",
    "Rust is a systems language.",
    "My sister planted tomatoes.",
    "The museum is closed on Mondays.",
    "He broke his ankle skiing.",
    "Interest rates rose again.",
    "Please restart the mail server.",
    "The violin needs new strings.",
    "They adopted a grey cat.",
    "Volcanoes formed these hills.",
    "Our lease ends in October.",
    "Add salt before the water boils.",
    "Judges read the verdict aloud.",
    "The train driver waved.",
    "Whales sleep upright.",
)
#: A lower baseline counts as 0, and a higher one as the second number.
_MIN_BASELINE: Final = 0.2
_MAX_BASELINE: Final = 0.95


def model_scale(embedder: Embedder, computed: dict[str, Any]) -> ModelScale:
    """Return how close an embedder puts unrelated texts; its own ``cosine_scale`` if it has one.

    ``computed`` has those that are known, by the embedder's id.

    Raises:
        ModelUnavailable: the embedder is unavailable.
    """
    model = embedder_id(embedder)
    if model not in computed:
        known: tuple[float, float] | None = getattr(embedder, "cosine_scale", None)
        if known is None:
            vectors = query_vectors_of(embedder, _UNRELATED).astype(np.float64)
            vectors /= np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
            cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
            mean = float(cosines.mean())
            baseline = min(round(mean, 3), _MAX_BASELINE) if mean >= _MIN_BASELINE else 0.0
            known = baseline, round(float(cosines.std()) / (1.0 - baseline), 3)
        computed[model] = ModelScale(baseline=known[0], noise=known[1])
    scale: ModelScale = computed[model]
    return scale


def pack_vector(vector: Sequence[float]) -> bytes:
    """Return a vector of length 1 in its stored form."""
    return pack(np.asarray([vector], dtype=np.float32))
