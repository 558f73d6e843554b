"""The texts of a memory that are analysed for words, and those that are embedded.

Invariants
(1) The same memory always gives the same texts. A change of any rule needs the next `EMBEDDING_VERSION`: rules here,
    the question that is passed in, the computation of MiniLM, and the features (`services.features`). Stored memories
    are then embedded and analysed again.
(2) The text of a named speaker is embedded in the third person. A text that calls its subject "I" or "the user" is
    embedded as it is, and again with the subject's name.
(3) A text that is not blank has at least one passage, and at most `MAX_PASSAGES`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from keepward.core.patterns import lazy_regex
from keepward.retrieval.persons import third_person, with_name
from keepward.retrieval.preferences import preference_topic
from keepward.retrieval.roles import ROLES, USER
from keepward.retrieval.time_expressions import day_of, phrase, resolve
from keepward.retrieval.tokenizer import terms

#: Version of the rules by which texts are embedded, stored with the embedder's name next to every vector.
EMBEDDING_VERSION: Final = "5"
#: Prefix of the version if the vector came with the memory: such a vector is never recomputed.
PROVIDED_PREFIX: Final = "given"
PROVIDED: Final = f"{PROVIDED_PREFIX} {EMBEDDING_VERSION}"
CURRENT_VERSIONS: Final = (EMBEDDING_VERSION, PROVIDED)

MAX_PASSAGES: Final = 16
#: A longer text, in characters, that is not a person's has a vector of its opening instead of one of the full text. The
#: model reads 256 tokens at most, and the passages contain the rest.
_LONG: Final = 600
_OPENING: Final = 275
_NO_PERSON: Final = ROLES.union(("system", "tool"))
_SENTENCE: Final = lazy_regex(r"[^.!?。！？\n]+(?:[.!?。！？]+(?=\s|$|[^\x00-\x7f])|\n+|$)")

#: Minimum terms of a sentence that is embedded by itself: of a named speaker, of a user, and of a question.
_TERMS_OF_A_SENTENCE: Final = 4
_TERMS_OF_A_USER_SENTENCE: Final = 2
_TERMS_OF_AN_INFORMATIVE_QUESTION: Final = 10
_TERMS_OF_A_SHORT_TURN: Final = 10
_TERMS_OF_A_CHUNK: Final = 10


def speaker_name(speaker: str | None) -> str | None:
    """The speaker if it is a name, else None."""
    if speaker is None or not speaker.strip() or speaker.strip().casefold() in _NO_PERSON:
        return None
    return speaker.strip()


def is_user_text(speaker: str | None) -> bool:
    """Whether a text is the user's: its speaker is a user or is missing."""
    return speaker is None or not speaker.strip() or speaker.strip().casefold() in USER


def indexed_metadata(
    text: str,
    *,
    speaker: str | None = None,
    created_at: int | None = None,
    key: str | None = None,
    tags: Sequence[str] = (),
    category: str | None = None,
) -> str:
    """Metadata that are analysed with a text, one per line: key, category, tags, speaker, its date, dates in it."""
    head = [part for part in (key, category, *tags, speaker_name(speaker)) if part]
    tail = [] if created_at is None else [phrase(day_of(created_at)), *resolve(text, created_at)]
    return "\n".join((*head, *tail))


def sentences(text: str) -> list[str]:
    """Sentences in order, without white space around them. A text without punctuation is one sentence."""
    return [s for m in _SENTENCE.finditer(text) if (s := m.group().strip())]


def last_question(previous: str | None) -> str | None:
    """The last question in the previous message, or None."""
    questions = [s for s in sentences(previous or "") if is_question(s)]
    return questions[-1] if questions else None


def _informative_sentences(parts: list[str], min_terms: int) -> list[str]:
    """The sentences with at least `min_terms` terms. A question needs more: a short one states nothing."""
    return [s for s in parts if len(terms(s)) >= (_TERMS_OF_AN_INFORMATIVE_QUESTION if is_question(s) else min_terms)]


def is_question(text: str) -> bool:
    """Whether a text ends with a question mark."""
    return text.endswith(("?", "？"))


def _joined(parts: list[str]) -> list[str]:
    """Join neighbouring sentences into chunks of at least `_TERMS_OF_A_CHUNK` terms."""
    chunks: list[str] = []
    pending: list[str] = []
    count = 0
    for part in parts:
        pending.append(part)
        count += len(terms(part))
        if count >= _TERMS_OF_A_CHUNK:
            chunks.append(" ".join(pending))
            pending, count = [], 0
    if pending:
        # A short remainder would be a passage with little content that ranks high by chance.
        if chunks and count < _TERMS_OF_A_CHUNK // 2:
            pending = [chunks.pop(), *pending]
        chunks.append(" ".join(pending))
    return chunks


def _grouped(parts: list[str], max_groups: int) -> list[str]:
    """Join neighbouring parts into at most `max_groups` groups of nearly equal size."""
    if len(parts) <= max_groups:
        return parts
    cuts = [len(parts) * n // max_groups for n in range(max_groups + 1)]
    return [" ".join(parts[a:b]) for a, b in pairwise(cuts)]


def sentence_passages(
    text: str,
    *,
    speaker: str | None = None,
    created_at: int | None = None,
    question: str | None = None,
    subject: str | None = None,
) -> list[str]:
    """Texts to embed: the full text (or the opening of a long one), then its parts if it is long enough.

    `question` is the text of the previous message of the session, or None; its last question is put in front of the
    full text. A person's text is split into informative sentences, in the third person if the speaker has a name. A
    text of an assistant or a document is split into runs of sentences with ten terms or more, because a single sentence
    there lacks its topic. Key, tags and category are not embedded, so equal texts have equal vectors.
    """
    name = speaker_name(speaker)

    def in_third_person(part: str) -> str:
        return f"{name}: {third_person(part, name)}" if name else part

    question_text = last_question(question)
    full_text = in_third_person(text.strip())
    split = sentences(text)
    max_length: int | None = None
    if name:
        parts = _informative_sentences(split, _TERMS_OF_A_SENTENCE) if len(terms(text)) > _TERMS_OF_A_SHORT_TURN else []
    elif speaker is not None and speaker.strip() and is_user_text(speaker):
        parts = _informative_sentences(split, _TERMS_OF_A_USER_SENTENCE)
    else:
        runs = _joined(split)
        parts = runs if len(runs) > 1 else []
        if parts and len(text) > _LONG:
            max_length = _OPENING
    units = [(f"{question_text} {full_text}" if question_text else full_text)[:max_length]]
    if len(split) > 1:
        units.extend(in_third_person(part) for part in _grouped(parts, MAX_PASSAGES - 1))
    elif is_user_text(speaker) and (topic := preference_topic(text)):
        # Preferences have similar wordings. A request resembles the topic of a preference.
        units.append(topic)
    if subject and is_user_text(speaker) and (named_text := with_name(text.strip()[:_LONG], subject)):
        units = [*units[: MAX_PASSAGES - 1], named_text]
    return [u for u in dict.fromkeys(units) if u.strip()]


def field_passages(text: str) -> list[str]:
    """Texts to embed of structured data with one field per line: the full text, then each field."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return list(dict.fromkeys([text.strip(), *_grouped(lines, MAX_PASSAGES - 1)])) if lines else []
