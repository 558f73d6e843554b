"""Private words do not come back: each is used at most as often as here, which is in its ordinary sense or still to go.

``python tools/words.py --source`` prints the counts. Lower a number when a use goes; never raise one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Most uses in comments and strings of the package, and in its identifiers.
MAX_USES = {
    "told": (9, 5), "kept": (33, 13), "stands": (6, 0), "beside": (3, 0), "anew": (1, 0), "handed": (5, 0),
    "heed": (0, 0), "sight": (0, 0), "bearer": (17, 1), "lots": (0, 0), "marks": (24, 16), "calm": (0, 0),
    "held": (29, 41), "place": (37, 50), "settle": (0, 2), "outdo": (0, 0), "meet": (2, 0), "carry": (9, 9),
    "lend": (0, 0), "turn": (18, 94), "gone": (2, 0), "home": (49, 30), "whole": (23, 6), "look": (58, 9),
    "somebody": (5, 0),
}  # fmt: skip


@pytest.fixture
def words() -> Iterator[object]:
    sys.path.insert(0, str(ROOT / "tools"))
    import words

    yield words
    sys.path.remove(str(ROOT / "tools"))


def test_private_words_of_the_package_do_not_grow(words) -> None:
    texts, names = words.source_uses()
    grown = {
        word: (texts[word], names[word])
        for word, (most_texts, most_names) in MAX_USES.items()
        if texts[word] > most_texts or names[word] > most_names
    }
    assert grown == {}
    assert MAX_USES.keys() == words.PRIVATE_WORDS.keys()
