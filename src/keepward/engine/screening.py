"""Screening: one more look at a text that is about to be rendered for a model.

Invariants
(1) What was found is a function of the text, its names and its origin alone; it is remembered for these, by their
    hash and without their words, so that the same memory is looked at once and not with every context.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock

from keepward.context.sections import Screened
from keepward.gates.injection import softly_worded_counts
from keepward.model.commit import Reason
from keepward.model.memory import Record
from keepward.model.trust import Trust

#: Findings that are remembered.
REMEMBERED = 16_384
_known: OrderedDict[bytes, Screened] = OrderedDict()
_lock = Lock()


def screen(record: Record) -> Screened:
    """Look once more at a text about to be rendered: mask secrets, leave out orders to the model.

    What a person wrote or approved is not taken for an order.
    """
    key = _key(record)
    with _lock:
        known = _known.get(key)
        if known is not None:
            _known.move_to_end(key)
            return known
    found = _screened(record)
    with _lock:
        _known[key] = found
        while len(_known) > REMEMBERED:
            _known.popitem(last=False)
    return found


def _key(record: Record) -> bytes:
    judged = (record.text, record.key, record.speaker, int(record.trust), softly_worded_counts(record))
    return hashlib.blake2b(repr(judged).encode("utf-8", "surrogatepass"), digest_size=20).digest()


def _screened(record: Record) -> Screened:
    from keepward.gates.detect.engine import marker
    from keepward.gates.detect.injection import scan as orders
    from keepward.gates.detect.secrets import calm, scan

    names = "\n".join(name for name in (record.key, record.speaker) if name)
    if names and scan(names):
        detail = "its key or speaker holds what looks like a secret"
        return Screened(drop=Reason(gate="compile", code="secret", detail=detail))
    # One look rules out a secret in most texts, for a fifth of what it takes to find one.
    found = () if calm(record.text) else scan(record.text)
    masks = tuple((each.start, each.end, marker(each.detector).strip("[]")) for each in found)
    soft = softly_worded_counts(record)
    if record.trust < Trust.USER and any(
        each.certainty == "certain" or soft for text in (record.text, names) if text for each in orders(text)
    ):
        reason = Reason(gate="compile", code="injection", detail="the text reads like an instruction to the model")
        return Screened(text_masks=masks, drop=reason)
    return Screened(text_masks=masks)
