"""The noise detector keeps facts and names journal marks."""

import pytest

from keepward.gates.detectors.noise import MAX_NOISE_CHARS, classify, phrases

JOURNAL = [
    "tick marker for burst 5",
    "TICK MARKER: 17",
    "[12:00:03] runtime snapshot saved",
    "heartbeat ok",
    "heartbeat received, all systems nominal",
    "**heartbeat**",
    "ｈｅａｒｔｂｅａｔ ok",
    "check-in",
    "burst tick 5/10",
    "No changes. Routine scan complete.",
    "(ephemeral) tick 5",
]
EMPTY = [
    "no changes",
    "No change detected",
    "2026-11-21 12:00: no changes",
    "Nothing new to report today.",
    "status unchanged",
    "System status unchanged; nothing to report",
]
FACTS = [
    "heartbeat interval is 30 s",
    "No changes to the API are allowed after Friday",
    "HEARTBEAT_INTERVAL=30",
    "heartbeat 30 s",
    "heartbeat not ok",
    "heartbeat ok?",
    "check-in is at 15:00",
    "daily check-in with Ana",
    "no changes after 18:00",
    "No changes, please",
    "The routine scan runs on Mondays",
    "tick marker colour is red",
    "the log is ephemeral",
    "runtime snapshots live in /var/snap",
    "nothing to report to the tax office",
    "status unchanged: degraded",
    "the user likes tea",
    "",
]


@pytest.mark.parametrize("text", JOURNAL)
def test_a_journal_mark_alone_is_journal_noise(text):
    found = classify(text)
    assert found is not None
    assert found.code == "journal"


@pytest.mark.parametrize("text", EMPTY)
def test_a_report_of_nothing_is_an_empty_report(text):
    found = classify(text)
    assert found is not None
    assert found.code == "empty_report"


def test_a_text_that_says_something_is_stored():
    assert [text for text in FACTS if classify(text) is not None] == []


def test_harmless_phrases_in_a_sentence_are_stored():
    assert [
        phrase
        for phrase in phrases().names
        if classify(f"The word {phrase} appears in the contract with Acme") is not None
    ] == []


def test_a_text_over_the_limit_is_stored_unread():
    assert classify("heartbeat " * MAX_NOISE_CHARS) is None
