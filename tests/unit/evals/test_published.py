"""Data sets of others, read from small files that were written by hand in their formats."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime

import pytest
from evals import recall
from evals.published import beam, factconsolidation, realtalk


def written(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def message(number, role, content, **more):
    return {"role": role, "id": number, "content": content} | more


PROBES = {
    "abstention": [
        {"question": "Which car do I drive?", "ideal_response": "You never said.", "rubric": ["never said"]}
    ],
    "knowledge_update": [
        {
            "question": "How tall is the shelf?",
            "answer": "Two metres",
            "source_chat_ids": {"original_info": [0], "updated_info": [[2, 99]]},
            "rubric": ["two metres"],
        }
    ],
    "instruction_following": [{"question": "List my tools.", "source_chat_ids": [1], "rubric": ["a list", "short"]}],
}


@pytest.fixture
def chats(tmp_path):
    folder = tmp_path / "100K" / "2"
    first = [
        message(0, "user", "The shelf is one metre. ->-> 1,1", time_anchor="March-05-2024"),
        message(1, "assistant", "Noted."),
    ]
    batches = [
        {"batch_number": 1, "turns": [first]},
        {"batch_number": 2, "turns": [[message(2, "user", "I rebuilt the shelf: two metres.")]]},
    ]
    written(folder / "chat.json", batches)
    written(folder / "probing_questions" / "probing_questions.json", PROBES)
    return tmp_path / "100K"


def test_a_chat_of_beam_is_its_messages_in_sessions_with_dates(chats):
    first, second, third = beam(chats).conversations[0].told
    assert (first.id, first.text, first.speaker, first.session) == ("0", "The shelf is one metre.", "user", "batch-1")
    assert (second.speaker, third.session) == ("assistant", "batch-2")
    assert {each.at for each in (first, second, third)} == {datetime(2024, 3, 5, tzinfo=UTC)}


def test_evidence_of_beam_is_every_number_of_a_message_that_was_told(chats):
    data = beam(chats)
    by_kind = {each.category: each for each in data.conversations[0].asked}
    assert by_kind["knowledge_update"].evidence == {"0", "2"}
    assert by_kind["abstention"].evidence == frozenset()
    assert data.dropped == 1


def test_an_answer_of_beam_is_its_text_or_else_its_rubric(chats):
    answers = {each.category: each.answer for each in beam(chats).conversations[0].asked}
    assert answers == {
        "abstention": "You never said.",
        "knowledge_update": "Two metres",
        "instruction_following": "a list; short",
    }


def test_a_shortened_beam_chat_replaces_the_complete_one(chats):
    written(chats / "2" / "chat_trunecated.json", [{"turns": [[message(0, "user", "Only this.")]]}])
    assert [each.text for each in beam(chats).conversations[0].told] == ["Only this."]


def test_chats_of_beam_come_in_the_order_of_their_numbers(chats):
    for number in ("10", "3"):
        written(chats / number / "chat.json", [{"turns": [[message(0, "user", "Hello.")]]}])
        written(chats / number / "probing_questions" / "probing_questions.json", {})
    assert [each.name for each in beam(chats, limit=2).conversations] == ["100K-2", "100K-3"]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("chat.json", "{", "cannot be read as JSON"),
        ("chat.json", {}, "is not a JSON list"),
        ("chat.json", [{"turns": [[{"role": "user", "content": "x"}]]}], "a message of batch 1"),
        ("chat.json", [{"turns": [[message(0, "user", "x"), message(0, "user", "y")]]}], "two messages have one id"),
        ("probing_questions/probing_questions.json", {"abstention": [{"rubric": []}]}, "abstention lacks 'question'"),
        ("probing_questions/probing_questions.json", [], "is not a JSON object"),
    ],
)
def test_a_chat_of_beam_that_is_malformed_is_an_error(chats, name, value, says):
    written(chats / "2" / name, value)
    with pytest.raises(ValueError, match=says):
        beam(chats)


def test_a_folder_without_chats_of_beam_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="not in the BEAM format"):
        beam(tmp_path)


CHAT = {
    "name": {"speaker_1": "Ines", "speaker_2": "Tom"},
    "session_1": [
        {"clean_text": "I moved to Porto.", "speaker": "Ines", "date_time": "05.01.2024, 09:10:11", "dia_id": "D1:1"},
        {
            "clean_text": "Look",
            "blip_caption": "a tram",
            "speaker": "Tom",
            "date_time": "05.01.2024, 09:11:00",
            "dia_id": "D1:2",
        },
    ],
    "session_1_date_time": "05.01.2024, 09:10:11",
    "events_session_1": {"agent_a": []},
    "qa": [{"question": "Where does Ines live?", "answer": "Porto", "evidence": ["D1:01"], "category": 1}],
}


def test_a_chat_of_realtalk_is_its_messages_with_the_time_of_each(tmp_path):
    written(tmp_path / "Chat_1_Ines_Tom.json", CHAT)
    first, second = realtalk(tmp_path).conversations[0].told
    assert (first.id, first.speaker, first.session) == ("D1:1", "Ines", "session_1")
    assert first.at == datetime(2024, 1, 5, 9, 10, 11, tzinfo=UTC)
    assert second.text == "Look [shares a photo: a tram]"


def test_a_question_of_realtalk_has_answer_category_and_evidence(tmp_path):
    data = realtalk(written(tmp_path / "Chat_1_Ines_Tom.json", CHAT))
    (asked,) = data.conversations[0].asked
    assert (asked.answer, asked.category, asked.evidence) == ("Porto", "1", {"D1:1"})
    assert data.repaired == 1


@pytest.mark.parametrize(
    "change",
    [
        {"session_1": [{"text": "no clean text"}]},
        {"session_1": [CHAT["session_1"][0] | {"date_time": "yesterday"}]},
        {"qa": [{"answer": "x"}]},
        {"qa": ["x"]},
    ],
)
def test_a_chat_of_realtalk_that_is_malformed_is_an_error(tmp_path, change):
    with pytest.raises(ValueError, match="not in the REALTALK format"):
        realtalk(written(tmp_path / "Chat_1_Ines_Tom.json", CHAT | change))


def test_a_file_without_sessions_is_no_chat_of_realtalk(tmp_path):
    with pytest.raises(ValueError, match="has no session_1"):
        realtalk(written(tmp_path / "Chat_1.json", {"qa": []}))


ROW = {
    "context": "Here is a list of facts:\n"
    "0. The anthem of Arvia was composed by Lena Holt.\n"
    "1. Lena Holt plays the harp.\n"
    "2. The anthem of Belm was composed by Otto Rey.\n"
    "3. The anthem of Arvia was composed by Otto Rey.\n"
    "4. The anthem of Arvia was composed by Otto Rey.",
    "questions": ["Who composed the anthem of Arvia?", "Who painted the gate?"],
    "answers": [["Otto Rey", "O. Rey"], ["Mia Lund"]],
    "metadata": {"source": "factconsolidation_sh_6k", "qa_pair_ids": ["a", "b"]},
}


def test_the_evidence_of_factconsolidation_is_the_newest_fact_that_answers(tmp_path):
    data = factconsolidation(written(tmp_path / "facts.json", [ROW]))
    first, second = data.conversations[0].asked
    assert (first.evidence, first.answer) == ({"4"}, "Otto Rey or O. Rey")
    assert (second.evidence, data.dropped) == (frozenset(), 1)


def test_questions_of_several_steps_have_no_evidence(tmp_path):
    row = ROW | {"metadata": {"source": "factconsolidation_mh_6k"}}
    data = factconsolidation(written(tmp_path / "facts.jsonl", json.dumps(row)))
    assert [(each.category, each.evidence) for each in data.conversations[0].asked] == [
        ("several steps", frozenset())
    ] * 2
    assert data.dropped == 0


def test_rows_of_other_sets_are_passed_over(tmp_path):
    other = {"metadata": {"source": "eventqa_full"}, "context": "", "questions": [], "answers": []}
    data = factconsolidation(written(tmp_path / "facts.json", [other, ROW]))
    assert [each.name for each in data.conversations] == ["factconsolidation_sh_6k"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("{", "is not JSON"),
        ([{"context": ""}], "not in the FactConsolidation format: 'metadata'"),
        ([ROW | {"answers": [["x"]]}], "not in the FactConsolidation format"),
        ([ROW | {"context": "no numbers"}], "has no numbered facts"),
        ([], "no row of factconsolidation"),
    ],
)
def test_a_file_that_is_not_factconsolidation_is_an_error(tmp_path, value, says):
    with pytest.raises(ValueError, match=says):
        factconsolidation(written(tmp_path / "facts.json", value))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match="pip install pyarrow"):
        factconsolidation(written(tmp_path / "facts.parquet", "PAR1"))


def test_the_command_asks_a_set_of_others_and_prints_its_recall(chats, capsys):
    status = recall.main(["--dataset", "beam", "--data", str(chats), "--embedder", "hashed", "--no-parts"])
    printed = capsys.readouterr().out
    assert status == 0
    assert "| knowledge_update | 1 |" in printed


def test_the_command_says_what_a_malformed_file_lacks(tmp_path, capsys):
    file = written(tmp_path / "Chat_1.json", {"qa": []})
    assert recall.main(["--dataset", "realtalk", "--data", str(file), "--embedder", "none"]) == 1
    assert "has no session_1" in capsys.readouterr().err
