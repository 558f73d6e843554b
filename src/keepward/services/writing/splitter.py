"""Split a long text into parts that fit a tier, each a memory of its own.

The parts contain the entire text except white space at the cuts. No cut goes through a finding of a gate: a secret must
not pass because it was cut in two.

Late imports: a program that does not need it starts faster.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

#: Where a text may be cut, best first: paragraphs, lines, sentences, words. The match itself is dropped.
_BREAK_PATTERNS = (
    re.compile(r"\n(?:[ \t]*\n)+"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…])[ \t]+|(?<=[.!?…][\"')\]»”])[ \t]+|(?<=[。！？])"),
    re.compile(r"[ \t]+"),
)
#: Zero-width joiner and variation selector: they make one visible character of those around them.
_JOINERS = "\u200d\ufe0f"
#: Characters that are scanned at once, and the overlap with the next scan: the memory of a detector must not grow with
#: the file.
_WINDOW, _OVERLAP = 32_768, 4_096
#: Replaces a secret while a text is cut; the number of digits in it.
_PLACEHOLDER_DIGITS = 20
_PLACEHOLDER = re.compile(rf"\ue000([0-9]{{{_PLACEHOLDER_DIGITS}}})\ue001")


class UnusableItem(ValueError):
    """A line or an item that cannot be used; the message is one sentence without its content."""


def split_text(text: str, limit: int, *, source: bool = False) -> list[str]:
    """Split a text into parts of at most ``limit`` characters, at paragraphs, lines, sentences or words.

    In a message or document (``source``) a secret counts as long as its marker, since the gates redact it.

    Raises:
        UnusableItem: it contains a certain secret and is no source, or a finding too long for one part.
    """
    text = text.strip()
    if len(text) <= limit:
        return [text]
    if source and _PLACEHOLDER.search(text) is None:
        return _split_around_secrets(text, limit)
    return _split_at_spans(text, limit, _finding_spans(text, source=source))


def _split_around_secrets(text: str, limit: int) -> list[str]:
    """Split a text with placeholders for its secrets, and put them back into the parts.

    A secret that is recognised only by words in another part is replaced by its marker.
    """
    from keepward.gates.detectors.matcher import marker, redact
    from keepward.gates.detectors.secrets import scan

    findings = [finding for finding in scan(text) if finding.end > finding.start]
    secrets: list[tuple[str, str]] = []
    short, position = "", 0
    for finding in findings:
        if finding.start >= position:
            short += f"{text[position : finding.start]}\ue000{len(secrets):0{_PLACEHOLDER_DIGITS}}\ue001"
            secrets.append((text[finding.start : finding.end], marker(finding.detector)))
        elif finding.end > position:
            secrets[-1] = (secrets[-1][0] + text[position : finding.end], secrets[-1][1])
        position = max(position, finding.end)
    short += text[position:]
    spans = [match.span() for match in _PLACEHOLDER.finditer(short)]
    spans += [span for span in _finding_spans(short, source=True) if span[1] - span[0] <= limit // 2]
    pieces: list[str] = []
    for piece in _split_at_spans(short, limit, sorted(spans)) if len(short) > limit else [short]:
        own = [secrets[int(match[1])] for match in _PLACEHOLDER.finditer(piece)]
        restored = _PLACEHOLDER.sub(lambda match: secrets[int(match[1])][0], piece)
        redacted = redact(restored, scan(restored)) if own else restored
        visible = any(secret in redacted for secret, _ in own)
        pieces.append(_PLACEHOLDER.sub(lambda match: secrets[int(match[1])][1], piece) if visible else restored)
    return pieces


def _split_at_spans(text: str, limit: int, spans: list[tuple[int, int]]) -> list[str]:
    pieces: list[str] = []
    start = 0
    while len(text) - start > limit:
        end, resume = _cut(text, start, limit, spans)
        pieces.append(text[start:end].rstrip())
        start = resume
    pieces.append(text[start:])
    return [piece for piece in pieces if piece]


def split_item(fields: dict[str, Any], limit: int) -> Iterator[dict[str, Any]]:
    """Yield the fields of each part of an item, linked by ``part`` and ``parts`` in the metadata.

    Raises:
        UnusableItem: as in ``split_text``.
    """
    pieces = split_text(fields["text"], limit, source=fields.get("kind") in {"event", "document"})
    if len(pieces) == 1:
        yield fields
        return
    for number, piece in enumerate(pieces, 1):
        aliases = tuple(f"{alias}/{number}" for alias in fields.get("aliases", ()))
        metadata = {**(fields.get("metadata") or {}), "part": number, "parts": len(pieces)}
        yield {**fields, "text": piece, "aliases": aliases, "metadata": metadata}


def _finding_spans(text: str, *, source: bool) -> list[tuple[int, int]]:
    # Detectors are imported only if a text has to be split.
    from keepward.gates.detectors import injection, pii, secrets
    from keepward.gates.detectors.normalize import Text

    spans: set[tuple[int, int]] = set()
    for start in range(0, max(1, len(text) - _OVERLAP), _WINDOW - _OVERLAP):
        window = Text(text[start : start + _WINDOW])
        findings = secrets.scan(window)
        certain = [finding for finding in findings if finding.certainty == "certain"]
        if certain and not source:
            raise UnusableItem(f"holds a secret ({certain[0].detector}): take it out and try again")
        findings = [*findings, *pii.scan(window), *injection.scan(window, likely=False)]
        spans.update((start + finding.start, start + finding.end) for finding in findings)
    return sorted(spans)


def _cut(text: str, start: int, limit: int, spans: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the end of the part that begins at ``start``, and where the next part begins."""
    limit_end = start + limit
    for pattern in _BREAK_PATTERNS:
        for match in reversed(list(pattern.finditer(text, start + limit // 2, limit_end + 1))):
            inside = any(first < match.end() and match.start() < last for first, last in spans)
            if match.start() <= limit_end and not inside:
                return match.start(), match.end()
    cut = limit_end
    while cut > start + 1 and (unicodedata.combining(text[cut]) or text[cut] in _JOINERS or text[cut - 1] in _JOINERS):
        cut -= 1
    # Spans may overlap, so move to the start of each until the cut is in none.
    while hit := next((span for span in spans if span[0] < cut < span[1]), None):
        cut = hit[0]
        if cut <= start:
            raise UnusableItem("has a passage that a gate marks and that is longer than the text limit")
    return cut, cut
