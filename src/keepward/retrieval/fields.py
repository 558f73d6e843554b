"""Coverage: the share of a query that a memory, its neighbours and its session hold.

Invariants
(1) one term gives a memory at most its idf; the sum over the query's terms, unseen ones included, and one word
    that was not said, is the most that any memory could have, and scores are shares of it.
(2) a window is a memory with its neighbours as if it were one text; a memory outside any session is its own
    neighbourhood, so that it competes on level terms with turns of a conversation.
(3) additions happen term by term in hash order, so a score does not depend on where its row stands.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from keepward.retrieval import lexical
from keepward.retrieval.analyze import is_gram, term_hash
from keepward.retrieval.sight import Sight

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int32]

#: Weights of the windows and the session beside the memory's own text, which has 1.
WINDOW_BEFORE: Final = np.float32(0.5)
WINDOW_BOTH: Final = np.float32(0.5)
SESSION: Final = np.float32(0.3)
#: What a memory without a session gets for its own text.
ALONE: Final = np.float32(1.5)
#: Every query means more than its words: it is counted as if it held this many further ones, unseen. A
#: query of one common word can then not be covered in full by each memory that has the word.
UNSAID: Final = 1.0
#: An unseen pair of characters is rather a seam between two words than a word.
UNSEEN_GRAM: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coverage:
    """Shares of the query by row, float32; hidden rows have 0."""

    #: Of the memory's own text, 0..1.
    own: Floats
    #: With windows and session, 0..2.3.
    full: Floats
    #: How many allowed rows hold each term, by its hash.
    holders: Mapping[int, int]


def coverage(terms: tuple[str, ...], postings: lexical.TermStore, sight: Sight) -> Coverage | None:
    """Score the allowed rows; None where no allowed row holds any of the terms."""
    n = len(sight.mask)
    keys = {term_hash(term): is_gram(term) for term in terms}
    own = np.zeros(n, dtype=np.float32)
    full = np.zeros(n + 1, dtype=np.float32)
    in_session = np.zeros(sight.sessions + 1, dtype=np.float32)
    scratch = np.zeros(n + 1, dtype=np.float32)
    most = UNSAID * lexical.idf(sight.count, 0)
    holders: dict[int, int] = {}
    for key, gram in sorted(keys.items()):
        rows, counts = postings.postings(key)
        if not sight.whole:
            seen = sight.mask[rows]
            rows, counts = rows[seen], counts[seen]
        holders[key] = len(rows)
        weight = lexical.idf(sight.count, len(rows))
        if not len(rows):
            most += weight * (UNSEEN_GRAM if gram else 1.0)
            continue
        most += weight
        gain = np.float32(weight)
        share = gain * lexical.saturated(counts, sight.norm[rows])
        own[rows] += share
        if not sight.sessions:
            full[rows] += ALONE * share
            continue
        spoken = sight.session[rows] < sight.sessions
        full[rows] += np.where(spoken, np.float32(1.0), ALONE) * share
        rows, counts = rows[spoken], counts[spoken]
        _windows(rows, counts, gain, sight, full, scratch)
        totals = np.bincount(sight.session[rows], weights=counts, minlength=sight.sessions)
        held = np.flatnonzero(totals)
        in_session[held] += (
            SESSION * gain * lexical.saturated(totals[held].astype(np.float32), sight.session_norm[held])
        )
    if not any(holders.values()):
        return None
    if sight.sessions:
        full[:n] += in_session[sight.session]
        if not sight.whole:
            full[:n] *= sight.mask
    scale = np.float32(1.0 / most)
    return Coverage(own=own * scale, full=full[:n] * scale, holders=holders)


def _windows(rows: Rows, counts: Floats, gain: np.float32, sight: Sight, full: Floats, scratch: Floats) -> None:
    """Add one term's share of both windows to `full`; `scratch` (one cell more than rows) is left zero."""
    last = len(scratch) - 1
    after, before = sight.after[rows], sight.before[rows]
    scratch[rows] += counts
    scratch[after] += counts
    # A row may stand here twice: assignment through an index adds its share once, as it should.
    touched = np.concatenate((rows, after[after < last]))
    full[touched] += WINDOW_BEFORE * gain * lexical.saturated(scratch[touched], sight.norm_before[touched])
    scratch[before] += counts
    touched = np.concatenate((touched, before[before < last]))
    full[touched] += WINDOW_BOTH * gain * lexical.saturated(scratch[touched], sight.norm_both[touched])
    scratch[touched] = 0.0
    scratch[last] = 0.0
