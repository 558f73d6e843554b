"""Check texts again before a model reads them: mask secrets, and leave out instructions to the model.

A result depends only on the text, its names and its source; it is cached under their hash, without the words.
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
from keepward.gates.detectors.injection import scan as find_instructions
from keepward.gates.detectors.matcher import marker
from keepward.gates.detectors.normalize import Text
from keepward.gates.detectors.secrets import cannot_match, scan
from keepward.locks import ForkSafeLock

#: Cached results.
MAX_CACHED = 16_384
_cache: OrderedDict[bytes, OutputFilterResult] = OrderedDict()
_lock = ForkSafeLock()


def filter_output(records: Sequence[Record]) -> list[OutputFilterResult]:
    """Check texts before they are rendered: mask secrets, leave out instructions to the model.

    A text that a person wrote or approved is never taken for an instruction.
    """
    keys = []
    for record in records:
        inputs = (record.text, record.key, record.speaker, int(record.trust), likely_injection_counts(record))
        keys.append(hashlib.blake2b(marshal.dumps(inputs, 2), digest_size=20).digest())
    with _lock:
        results = {key: _cache[key] for key in keys if key in _cache}
    for key, record in zip(keys, records, strict=True):
        if key not in results:
            results[key] = _filter_record(record)
    with _lock:
        for key, result in results.items():
            _cache[key] = result
            _cache.move_to_end(key)
        while len(_cache) > MAX_CACHED:
            _cache.popitem(last=False)
    return [results[key] for key in keys]


def _filter_record(record: Record) -> OutputFilterResult:
    names = "\n".join(name for name in (record.key, record.speaker) if name)
    if names and scan(names):
        detail = "its key or speaker contains what looks like a secret"
        return OutputFilterResult(drop=Reason(gate="compile", code="secret", detail=detail))
    # The prefilter excludes a secret in most texts, for a fifth of the time of a scan.
    text = Text(record.text)
    findings = () if cannot_match(text) else scan(text)
    masks = tuple((finding.start, finding.end, marker(finding.detector).strip("[]")) for finding in findings)
    likely = likely_injection_counts(record)
    if record.trust < Trust.USER and any(find_instructions(part, likely=likely) for part in (text, Text(names))):
        reason = Reason(gate="compile", code="injection", detail="the text reads like an instruction to the model")
        return OutputFilterResult(text_masks=masks, drop=reason)
    return OutputFilterResult(text_masks=masks)
