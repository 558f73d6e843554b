"""One more look at texts about to be shown to a model: secrets are masked, and orders to the model left out.

Invariants
(1) What is found is a function of the text, its names and its origin alone; it is remembered for these, by their hash
    and without their words.
"""

from __future__ import annotations

import hashlib
import marshal
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from keepward.context.sections import Screened
from keepward.gates.content import BETWEEN, TOGETHER, softly_worded_counts
from keepward.locks import Lock
from keepward.model.commit import Reason
from keepward.model.memory import Record
from keepward.model.trust import Trust

#: Findings that are remembered.
SCREENED = 16_384
_known: OrderedDict[bytes, Screened] = OrderedDict()
_lock = Lock()


def screen(records: Sequence[Record]) -> list[Screened]:
    """Look once more at texts about to be rendered: mask secrets, leave out orders to the model.

    What a person wrote or approved is not taken for an order.
    """
    keys = [_key(record) for record in records]
    with _lock:
        found = {key: _known[key] for key in keys if key in _known}
    fresh = {key: record for key, record in zip(keys, records, strict=True) if key not in found}
    for batch in _batches(fresh):
        calm = len(batch) > 1 and _calm(batch.values())
        found |= {
            key: Screened() if calm and not softly_worded_counts(record) else _screened(record)
            for key, record in batch.items()
        }
    with _lock:
        for key in found:
            _known[key] = found[key]
            _known.move_to_end(key)
        while len(_known) > SCREENED:
            _known.popitem(last=False)
    return [found[key] for key in keys]


def _batches(fresh: dict[bytes, Record]) -> Iterator[dict[bytes, Record]]:
    """Yield records whose texts are short enough to be looked at together."""
    batch: dict[bytes, Record] = {}
    size = 0
    for key, record in fresh.items():
        length = sum(map(len, _words(record)))
        if batch and size + length > TOGETHER:
            yield batch
            batch, size = {}, 0
        batch[key] = record
        size += length
    if batch:
        yield batch


def _words(record: Record) -> list[str]:
    return [words for words in (record.text, record.key, record.speaker) if words]


def _calm(records: Iterable[Record]) -> bool:
    """Whether one look at texts together rules out that there is anything to find in any of them."""
    from keepward.gates.detect import injection, secrets
    from keepward.gates.detect.text import Text

    text = Text(BETWEEN.join(words for record in records for words in _words(record)))
    return text.is_plain and secrets.calm(text) and injection.calm(text)


def _key(record: Record) -> bytes:
    judged = (record.text, record.key, record.speaker, int(record.trust), softly_worded_counts(record))
    return hashlib.blake2b(marshal.dumps(judged, 2), digest_size=20).digest()


def _screened(record: Record) -> Screened:
    from keepward.gates.detect.engine import marker
    from keepward.gates.detect.injection import scan as orders
    from keepward.gates.detect.secrets import calm, scan
    from keepward.gates.detect.text import Text

    names = "\n".join(name for name in (record.key, record.speaker) if name)
    if names and scan(names):
        detail = "its key or speaker holds what looks like a secret"
        return Screened(drop=Reason(gate="compile", code="secret", detail=detail))
    # One look rules out a secret in most texts, for a fifth of what it takes to find one.
    text = Text(record.text)
    found = () if calm(text) else scan(text)
    masks = tuple((each.start, each.end, marker(each.detector).strip("[]")) for each in found)
    soft = softly_worded_counts(record)
    if record.trust < Trust.USER and any(orders(each, likely=soft) for each in (text, Text(names))):
        reason = Reason(gate="compile", code="injection", detail="the text reads like an instruction to the model")
        return Screened(text_masks=masks, drop=reason)
    return Screened(text_masks=masks)
