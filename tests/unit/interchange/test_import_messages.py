import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from keepward.core.memory import Tier
from keepward.core.policy import Policy
from keepward.errors import InvalidInput
from keepward.interchange import messages
from keepward.interchange.reading import Flaw, Item, opened

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Chat(io.BytesIO):
    name = "chat.json"


def handle(limit=1200):
    return SimpleNamespace(policy=Policy(text_limit=dict.fromkeys(Tier, limit)))


def plan(value, *, session=None, limit=1200):
    with opened(Chat(json.dumps(value).encode())) as source:
        made = messages.plan(replace(source, session=session), handle(limit))
        return list(made.entries), made.left


def one(**fields):
    entries, _ = plan([{"role": "user", "content": "hi"} | fields])
    return entries[0]


def test_a_message_is_an_event_said_by_its_role():
    fields = one().fields
    assert (fields["text"], fields["kind"], fields["speaker"], fields["session"]) == ("hi", "event", "user", "chat")


def test_a_message_with_a_name_is_said_by_that_name():
    assert one(name="Ana").fields["speaker"] == "Ana"


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-03-01T12:00:00Z",
        "2026-03-01T13:00:00+01:00",
        "2026-03-01 12:00:00",
        1772366400,
        1772366400.0,
        1772366400000,
        1772366400000000,
        "1772366400",
    ],
)
def test_times_are_read_as_iso_or_as_an_epoch(stamp):
    assert one(timestamp=stamp).fields["occurred_at"] == NOON


@pytest.mark.parametrize("stamp", ["yesterday", True, 2**62, "nan", [1]])
def test_a_time_that_cannot_be_read_is_a_flaw(stamp):
    assert isinstance(one(timestamp=stamp), Flaw)


def test_the_text_parts_of_a_content_list_are_joined():
    content = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "two"}]
    assert one(content=content).fields["text"] == "one\n\ntwo"


def test_messages_without_text_are_left_out_and_counted():
    calls = {"role": "assistant", "content": None, "tool_calls": [{"id": "x"}]}
    entries, left = plan([calls, {"role": "user", "content": "hi"}])
    assert (len(entries), left) == (1, {"messages without text (calls of tools, pictures)": 1})


@pytest.mark.parametrize(
    "row", [{"role": "robot", "content": "x"}, {"content": "x"}, {"role": "user", "content": 5}, 7, None]
)
def test_a_message_that_cannot_be_used_is_a_flaw_with_its_number(row):
    entries, _ = plan([{"role": "user", "content": "hi"}, row])
    assert (type(entries[0]), entries[1].number) == (Item, 2)


def test_a_long_message_becomes_numbered_parts():
    entries, _ = plan([{"role": "user", "content": "A sentence of words. " * 100}], limit=500)
    assert [each.fields["metadata"]["part"] for each in entries] == list(range(1, len(entries) + 1))


def test_a_message_is_known_by_its_own_id():
    assert one(id="msg_7").fields["aliases"] == ("msg_7",)


def test_a_message_without_an_id_is_known_by_its_place():
    assert one().fields["aliases"] == ("chat#1",)


def test_the_session_can_be_named():
    entries, _ = plan([{"role": "user", "content": "hi"}], session="monday")
    assert entries[0].fields["session"] == "monday"


def test_an_object_with_messages_is_a_session_of_its_own_name():
    entries, _ = plan({"session_id": "s1", "messages": [{"role": "user", "content": "hi"}]})
    assert entries[0].fields["session"] == "s1"


def test_jsonl_may_hold_a_conversation_a_line(put):
    rows = [{"messages": [{"role": "user", "content": text}]} for text in ("one", "two")]
    with opened(put("talks.jsonl", rows)) as source:
        made = messages.plan(source, handle())
        assert [entry.fields["session"] for entry in made.entries] == ["talks#1", "talks#2"]


def test_a_damaged_line_is_a_flaw_between_good_ones(put):
    with opened(put("c.jsonl", '{"role":"user","content":"a"}\n{oops\n{"role":"user","content":"b"}\n')) as source:
        entries = list(messages.plan(source, handle()).entries)
    assert [type(entry) for entry in entries] == [Item, Flaw, Item]


def test_a_document_that_is_no_list_of_messages_is_an_error(put):
    path = put("a.json", json.dumps({"text": "hi"}, indent=1))
    with opened(path) as source, pytest.raises(InvalidInput, match="list of messages"):
        messages.plan(source, handle())
