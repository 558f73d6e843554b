"""What one reader sees: the allowed rows, their statistics, their neighbours and sessions.

Invariants
(1) everything here is computed from allowed rows only, as if the others did not exist; so a hidden memory
    changes neither a score nor an order.
(2) a sight holds for instants in [since, until) of one generation of the index.
(3) where no row has a session, what tells of neighbours is one cell shown for every row: five bytes a row are held
    and not 25, and a reader's first search after a write need not fill the rest.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from keepward.retrieval.columns import Columns, Mask
from keepward.retrieval.entries import Allowed
from keepward.retrieval.lexical import length_norm

Rows = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sight:
    """Arrays over all rows; cells of hidden rows have no meaning."""

    mask: Mask
    #: Whether every row is allowed.
    whole: bool
    #: Allowed rows.
    count: int
    #: Instants for which the mask holds: since <= now < until.
    since: int
    until: int
    #: BM25 length norms of the memory, of it with the one before, of it with both neighbours; float32.
    norm: Floats
    norm_before: Floats
    norm_both: Floats
    #: Row before and after in the same session, or the row count (one past the end) where there is none.
    before: Rows
    after: Rows
    #: Session number of each row, or `sessions` where it has none.
    session: Rows
    sessions: int
    #: BM25 length norm of each session, and how many rows it has.
    session_norm: Floats
    turns: npt.NDArray[np.intp]


def look(columns: Columns, lengths: Floats, allowed: Allowed) -> Sight:
    """Compute the sight of a reader; `lengths` is the number of terms of each row."""
    mask = columns.mask(allowed)
    expires = columns["expires_at"]
    limits = expires[mask]
    gone = limits[limits <= allowed.now]
    coming = limits[limits > allowed.now]
    since = int(gone.max()) if len(gone) else int(np.iinfo(np.int64).min)
    until = int(coming.min()) if len(coming) else allowed.now + 1
    if allowed.min_importance is not None:
        # What fades passes at one instant and not at the next.
        since, until = allowed.now, allowed.now + 1
    mask &= expires > allowed.now
    count = int(np.count_nonzero(mask))
    before, after, session, sessions = _neighbours(columns, mask)
    norm = length_norm(lengths, _mean(lengths[mask]))
    norm_before = norm_both = norm
    totals = np.zeros(0, dtype=np.float32)
    turns = np.zeros(0, dtype=np.intp)
    if sessions:
        padded = np.append(lengths, np.float32(0.0))
        with_before = lengths + padded[before]
        with_both = with_before + padded[after]
        norm_before = length_norm(with_before, _mean(with_before[mask]))
        norm_both = length_norm(with_both, _mean(with_both[mask]))
        spoken = np.flatnonzero(mask & (session < sessions))
        totals = np.bincount(session[spoken], weights=lengths[spoken], minlength=sessions).astype(np.float32)
        turns = np.bincount(session[spoken], minlength=sessions)
    return Sight(
        mask=mask,
        whole=count == len(mask),
        count=count,
        since=since,
        until=until,
        norm=norm,
        norm_before=norm_before,
        norm_both=norm_both,
        before=before,
        after=after,
        session=session,
        sessions=sessions,
        session_norm=length_norm(totals, _mean(totals)),
        turns=turns,
    )


def _mean(lengths: Floats) -> float:
    # Sums of whole numbers are exact in float64, so the mean does not depend on the order of rows.
    return float(lengths.sum(dtype=np.float64)) / len(lengths) if len(lengths) else 0.0


def _neighbours(columns: Columns, mask: Mask) -> tuple[Rows, Rows, Rows, int]:
    n = len(columns)
    codes, positions = columns["session"], columns["position"]
    rows = np.flatnonzero(mask & (codes >= 0))
    if not len(rows):
        nobody = np.broadcast_to(np.int32(n), n)
        return nobody, nobody, np.broadcast_to(np.int32(0), n), 0
    before = np.full(n, n, dtype=np.int32)
    after = np.full(n, n, dtype=np.int32)
    session = np.empty(n, dtype=np.int32)
    if np.all(positions[rows[1:]] >= positions[rows[:-1]]):
        # Rows mostly arrive in order and session by session: a stable sort of nearly sorted codes is linear.
        order = rows[np.argsort(codes[rows], kind="stable")]
    else:
        order = rows[np.lexsort((positions[rows], codes[rows]))]
    ordered = codes[order]
    same = ordered[1:] == ordered[:-1]
    before[order[1:][same]] = order[:-1][same]
    after[order[:-1][same]] = order[1:][same]
    numbers = np.concatenate(([0], np.cumsum(~same)))
    sessions = int(numbers[-1]) + 1
    session[:] = sessions
    session[order] = numbers
    return before, after, session, sessions
