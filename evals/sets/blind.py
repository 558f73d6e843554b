"""Texts by another hand, in ``blind.txt``: what people tell an assistant, and what only looks like it.

Invariants
(1) A line ``§ KIND GROUP`` says what the lines after it are, each a text; what comes before the first is for readers.
(2) A middle dot keeps scanners of repositories from taking a text for a leak; it falls away before the text is read.
(3) The texts at even places of a group are developed on. Nobody who works on the rules reads those at odd places:
    their shares are printed, and no text.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evals.sets.case import Case

#: Groups in which nothing should be found.
_UNWANTED: Final = ("innocent", "look-alike")


def cases(kind: str) -> Iterator[Case]:
    """Yield the texts for the detector of one kind."""
    text = (Path(__file__).parent / "blind.txt").read_text("utf-8").replace("·", "")
    for part in text.split("\n§ ")[1:]:
        heading, *lines = filter(None, part.splitlines())
        of, group = heading.split()
        for number, line in enumerate(lines if of == kind else ()):
            yield Case(group=group, wording=str(number), number=0, text=line, wanted=group not in _UNWANTED)
