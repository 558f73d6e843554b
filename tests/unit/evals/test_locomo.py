import json

import pytest
from evals import locomo

from keepward.errors import InvalidInput
from keepward.services.writing.splitter import UnusableItem


def talk(name: str = "talk-1", **more):
    return {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Mira",
            "speaker_b": "Joel",
            "session_2_date_time": "12:05 am on 2 June, 2023",
            "session_2": [{"speaker": "Joel", "dia_id": "D2:1", "text": "The kiln cracked."}],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Mira", "dia_id": "D1:1", "text": "I started pottery."},
                {"speaker": "Joel", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a blue bowl", "query": "bowl"},
            ],
            "session_3_date_time": "no date of mine",
        }
        | more,
        "qa": [{"question": "What cracked?", "answer": "The kiln"}],
    }


@pytest.fixture
def read(tmp_path):
    def entries(value, tenant: str = "talk-1"):
        file = tmp_path / "talks.json"
        file.write_text(json.dumps(value), "utf-8")
        notes = []
        return [item for _, item in locomo.rows(file, tenant=tenant, notes=notes)], notes

    return entries


def test_messages_come_in_the_order_of_their_sessions(read):
    entries, _ = read([talk()])
    assert [entry["name"] for entry in entries] == ["D1:1", "D1:2", "D2:1"]


def test_message_is_an_event_with_speaker_session_and_evidence(read):
    fields = read([talk()])[0][0]
    wanted = {"kind": "event", "stability": "stable", "session": "session_1", "speaker": "Mira", "evidence": ("D1:1",)}
    assert wanted.items() <= fields.items()


def test_a_tenant_without_a_conversation_is_an_error(read):
    with pytest.raises(InvalidInput, match="no conversation talk-9"):
        read([talk("talk-1"), talk("talk-2")], tenant="talk-9")


@pytest.mark.parametrize(
    "turn",
    [
        {"speaker": "Mira", "dia_id": "D1:9", "text": ""},
        {"speaker": "Mira", "dia_id": "nine", "text": "x"},
        {"dia_id": "D1:9", "text": "x"},
        {"speaker": "Mira", "dia_id": "D1:9", "text": "\ud800"},
        "x",
    ],
)
def test_a_message_that_cannot_be_used_is_reported(read, turn):
    entries, _ = read([talk(session_1=[turn])])
    assert isinstance(entries[0], UnusableItem)


@pytest.mark.parametrize("value", [[], [{"conversation": {}}], [talk(), talk()], {"x": 1}])
def test_a_file_that_is_not_complete_conversations_is_an_error(read, value):
    with pytest.raises(InvalidInput):
        read(value)
