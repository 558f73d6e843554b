"""Reading data sets for the recall evaluation."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from evals.recall_sets import ASSISTANT, BLIND, FRESH, SEALED, UNREAD, assistant, evidence_of, locomo, own, together
from evals.sets_recall.assistant import KINDS
from evals.sets_recall.fresh import KINDS as ALL

KNOWN = ("D8:6", "D9:17", "D11:26", "D30:5")


@pytest.mark.parametrize(
    ("entries", "ids"),
    [
        (["D8:6; D9:17"], {"D8:6", "D9:17"}),
        (["D:11:26"], {"D11:26"}),
        (["D30:05"], {"D30:5"}),
        (["D8:6 D9:17", "D30:5"], {"D8:6", "D9:17", "D30:5"}),
        (["D8:6", "D8:6"], {"D8:6"}),
        ([], set()),
    ],
)
def test_odd_evidence_ids_are_split_and_repaired(entries, ids):
    assert evidence_of(entries, KNOWN)[0] == ids


def test_an_id_that_names_no_message_is_dropped_and_counted():
    assert evidence_of(["D8:6", "D99:1"], KNOWN) == (frozenset({"D8:6"}), 0, 1)


def test_repairs_are_counted_by_entry():
    assert evidence_of(["D8:6; D9:17", "D30:05", "D11:26"], KNOWN)[1] == 2


@pytest.fixture
def file(tmp_path):
    turns = [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "I have a boat."},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a red boat"},
    ]
    sample = {
        "sample_id": "conv-1",
        "conversation": {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns},
        "qa": [
            {"question": "Who sails?", "evidence": ["D1:1"], "category": 5},
            {"question": "Which colour?", "evidence": ["D1:02"], "category": 4},
        ],
    }
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([sample, {**sample, "sample_id": "conv-2"}]), "utf-8")
    return path


def test_a_question_preserves_its_number_when_categories_are_left_out(file):
    assert [asked.id for asked in locomo(file, categories=["4"]).conversations[0].asked] == ["conv-1#1"]


def test_a_caption_is_part_of_what_was_reported(file):
    assert "a red boat" in locomo(file).conversations[0].told[1].line


def test_a_file_of_another_format_is_an_error(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('[{"messages": []}]', "utf-8")
    with pytest.raises(ValueError, match="not in the LoCoMo format"):
        locomo(path)


def test_evidence_of_our_own_sets_names_what_was_reported():
    for data in own():
        told = {each.id for it in data.conversations for each in it.told}
        assert all(asked.evidence <= told for it in data.conversations for asked in it.asked)


def test_sets_merged_preserve_what_answers():
    sets = own()[:-1]
    everything = together(sets).conversations[0]
    assert {name for asked in everything.asked for name in asked.evidence} <= {told.id for told in everything.told}


def test_the_unread_chats_share_no_question_with_the_others():
    first, second = (
        {asked.text for chat in assistant(name).conversations for asked in chat.asked} for name in (ASSISTANT, UNREAD)
    )
    assert not first & second


@pytest.mark.parametrize(
    ("name", "kinds"),
    [(FRESH, set(KINDS.values())), (BLIND, set(ALL.values()) - {"contradictions"}), (SEALED, set(ALL.values()))],
)
def test_such_chats_ask_at_least_five_questions_of_every_kind(name, kinds):
    asked = Counter(each.category for chat in assistant(name).conversations for each in chat.asked)
    assert set(asked) == kinds
    assert min(asked.values()) >= 5


@pytest.mark.parametrize("name", [FRESH, BLIND, SEALED])
def test_every_chat_question_is_answered_except_the_unanswerable(name):
    asked = [each for chat in assistant(name).conversations for each in chat.asked]
    assert all(bool(each.evidence) == (each.category != KINDS["never"]) for each in asked)
