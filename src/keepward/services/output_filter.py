"""Check texts again before a model is shown them: mask secrets, and leave out instructions to the model.

Invariants
(1) A result depends on the text, its names and its source alone; it is cached by their hash, without their words.
"""

from __future__ import annotations

import hashlib
import marshal
from collections import OrderedDict
from collections.abc import Sequence

from keepward.context.sections import OutputFilterResult
from keepward.core.commit import Reason
from keepward.core.memory import Record
from keepward.core.principals import Trust
from keepward.gates.content import likely_injection_counts
from keepward.locks import ForkSafeLock

#: Results that are cached.
MAX_CACHED = 16_384
_cache: OrderedDict[bytes, OutputFilterResult] = OrderedDict()
_lock = ForkSafeLock()


def filter_output(records: Sequence[Record]) -> list[OutputFilterResult]:
    """Check texts that are about to be rendered: mask secrets, leave out instructions to the model.

    What a person wrote or approved is not taken for an instruction.
    """
    keys = []
    for record in records:
        judged = (record.text, record.key, record.speaker, int(record.trust), likely_injection_counts(record))
        keys.append(hashlib.blake2b(marshal.dumps(judged, 2), digest_size=20).digest())
    with _lock:
        found = {key: _cache[key] for key in keys if key in _cache}
    for key, record in zip(keys, records, strict=True):
        if key not in found:
            found[key] = _filter_record(record)
    with _lock:
        for key, screened in found.items():
            _cache[key] = screened
            _cache.move_to_end(key)
        while len(_cache) > MAX_CACHED:
            _cache.popitem(last=False)
    return [found[key] for key in keys]


def _filter_record(record: Record) -> OutputFilterResult:
    from keepward.gates.detectors.injection import scan as find_instructions
    from keepward.gates.detectors.matcher import marker
    from keepward.gates.detectors.normalize import Text
    from keepward.gates.detectors.secrets import cannot_match, scan

    names = "\n".join(name for name in (record.key, record.speaker) if name)
    if names and scan(names):
        detail = "its key or speaker holds what looks like a secret"
        return OutputFilterResult(drop=Reason(gate="compile", code="secret", detail=detail))
    # The prefilter rules out a secret in most texts, for a fifth of what it takes to find one.
    text = Text(record.text)
    found = () if cannot_match(text) else scan(text)
    masks = tuple((each.start, each.end, marker(each.detector).strip("[]")) for each in found)
    soft = likely_injection_counts(record)
    if record.trust < Trust.USER and any(find_instructions(each, likely=soft) for each in (text, Text(names))):
        reason = Reason(gate="compile", code="injection", detail="the text reads like an instruction to the model")
        return OutputFilterResult(text_masks=masks, drop=reason)
    return OutputFilterResult(text_masks=masks)
