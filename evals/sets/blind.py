"""Texts as people write them to an assistant, and what only looks like them, in nine files.

Invariants
(1) A line ``§ KIND GROUP`` says what the lines after it are, each a text, of every kind where it is ``ordinary``; what
    comes before the first is for readers.
(2) A middle dot keeps scanners of repositories from taking a text for a leak; it falls away before the text is read.
(3) The texts of ``blind`` are by another hand. Those at even places of a group are developed on. Nobody who works on
    the rules reads those at odd places: their shares are printed, and no text.
(4) The texts of ``sealed`` are by a further hand, and nobody who works on the rules reads any of them.
(5) The texts of ``varied`` are our own, written before any was shown to a detector; their half is by their wording.
(6) The texts of ``third_seen`` and ``third_unread`` are halves of a set by a third hand. The one is developed on, the
    other is read by nobody who works on the rules, and neither is ``third_sealed``, further texts by that hand.
(7) The texts of ``everyday`` are our own notes that hold nothing, written before any was shown to a detector; their
    half is by their wording, and one half is counted and not looked at.
(8) The texts of ``fourth_seen`` and ``fourth_unread`` are halves of a set by two further hands, named in their groups;
    the one is developed on, the other is read by nobody who works on the rules.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evals.sets.case import Case

#: Groups in which nothing should be found.
_UNWANTED: Final = ("innocent", "look-alike")


def cases(kind: str, file: str = "blind") -> Iterator[Case]:
    """Yield the texts of one file for the detector of one kind."""
    text = (Path(__file__).parent / f"{file}.txt").read_text("utf-8").replace("·", "")
    for part in text.split("\n§ ")[1:]:
        heading, *lines = filter(None, part.splitlines())
        of, group = heading.split()
        for number, line in enumerate(lines if of in (kind, "ordinary") else ()):
            wording = line if file in ("varied", "everyday") else str(number)
            yield Case(group=group, wording=wording, number=number, text=line, wanted=not group.startswith(_UNWANTED))
