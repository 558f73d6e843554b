"""The noise detector keeps facts and names journal marks."""

import pytest

from keepward.gates.detectors.noise import MAX_NOISE_CHARS, classify, phrases

JOURNAL = [
    "tick marker for burst 5",
    "Tick marker 17",
    "tick_marker #17",
    "TICK MARKER: 17",
    "runtime snapshot 12:00",
    "Runtime snapshot taken at 2026-11-21T12:00:00Z.",
    "[12:00:03] runtime snapshot saved",
    "heartbeat",
    "Heartbeat.",
    "heartbeat ok",
    "HEARTBEAT OK!",
    "heartbeat 42",
    "heartbeat received, all systems nominal",
    "the heartbeat is healthy",
    "heartbeat ✅",
    "**heartbeat**",
    "ｈｅａｒｔｂｅａｔ ok",
    "heart\u200bbeat ok",
    "check-in",
    "check\u2011in complete",
    "Check-in #5 done",
    "burst tick 5/10",
    "burst tick; burst tick; burst tick",
    "Routine scan complete. No changes.",
    "No changes. Routine scan complete.",
    "routine scan: no issues found",
    "ephemeral",
    "(ephemeral) tick 5",
    "this is ephemeral",
]
EMPTY = [
    "no changes",
    "No changes.",
    "No change detected",
    "There are no changes since the last tick",
    "2026-11-21 12:00: no changes",
    "nothing to report",
    "Nothing new to report today.",
    "There's nothing to report",
    "status unchanged",
    "Status is unchanged: ok",
    "System status unchanged; nothing to report",
]
FACTS = [
    "heartbeat interval is 30 s",
    "ephemeral volume must be mounted at /data",
    "hotel check-in is at 15:00",
    "No changes to the API are allowed after Friday",
    "heartbeat: 30",
    "heartbeat = 30",
    "HEARTBEAT_INTERVAL=30",
    "heartbeat.interval",
    "the heartbeat is 30",
    "heartbeat 30 s",
    "heartbeat 0.5",
    "heartbeat missed",
    "heartbeat not ok",
    "no heartbeat",
    "heartbeat off",
    "heartbeat ok?",
    "heartbeat ok, but db-7 is down",
    "the agent has a heartbeat",
    "check-in is at 15:00",
    "check-in 15:00",
    "check in the code",
    "daily check-in with Ana",
    "the log is ephemeral",
    "Ephemeral ports start at 49152",
    "no changes after 18:00",
    "No changes on weekends",
    "no changes allowed",
    "No changes, please",
    "nothing to report to the tax office",
    "status unchanged: degraded",
    "The routine scan runs on Mondays",
    "a routine scan found a lump",
    "runtime snapshots live in /var/snap",
    "tick marker colour is red",
    "心跳 heartbeat 正常",
    "Ana said: nothing to report",
    "the user likes tea",
    "ok",
    "42",
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
