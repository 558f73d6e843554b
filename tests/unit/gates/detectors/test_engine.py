"""Packs, bounds and redaction."""

from keepward.gates.detectors import matcher, pii
from keepward.gates.detectors.matcher import Finding

IBAN = "DE89 3704 0044 0532 0130 00"


def test_redact_puts_a_typed_marker_instead_of_a_span():
    text = f"pay to {IBAN} now"
    assert matcher.redact(text, pii.scan(text)) == "pay to [IBAN] now"


def test_redact_merges_overlapping_spans_under_the_longest_name():
    findings = [Finding(detector="short", start=0, end=3), Finding(detector="longer", start=2, end=9)]
    assert matcher.redact("abcdefghij", findings) == "[LONGER]j"


def test_a_flood_of_findings_covers_the_text_to_its_end():
    text = "a.b@example.org " * 2000
    assert pii.scan(text)[-1].end == len(text)


def test_a_flood_of_findings_stays_bounded():
    assert len(pii.scan("a.b@example.org " * 2000)) <= matcher.MAX_FINDINGS + 1


def test_spans_count_code_points_after_wide_characters():
    text = "😀é密 dana@example.org"
    (finding,) = pii.scan(text)
    assert text[finding.start : finding.end] == "dana@example.org"


def test_a_lone_surrogate_does_not_shift_spans():
    text = "\ud800 dana@example.org"
    (finding,) = pii.scan(text)
    assert text[finding.start : finding.end] == "dana@example.org"


def test_settled_drops_a_likely_finding_inside_a_certain_one():
    inner = Finding(detector="b", start=2, end=4, certainty="likely")
    outer = Finding(detector="a", start=0, end=9)
    assert matcher.merge_findings([inner, outer], 9) == [outer]
