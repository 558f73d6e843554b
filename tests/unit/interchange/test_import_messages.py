import io
import json
from datetime import UTC, datetime

import pytest

from keepward.core.memory import Tier
from keepward.core.policy import Policy
from keepward.errors import InvalidInput
from keepward.interchange import load, messages
from keepward.interchange.parsing import open_source
from keepward.interchange.run import ImportRun
from keepward.services.writing.splitter import UnusableItem

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Chat(io.BytesIO):
    name = "chat.json"


@pytest.fixture
def read(mem):
    def rows(value, **options):
        run = ImportRun(mem, "chat.json", **options)
        with open_source(Chat(json.dumps(value).encode())) as source:
            return list(messages.read(source, run)), run.skipped

    return rows


@pytest.fixture
def one(read):
    def item(**fields):
        rows, _ = read([{"role": "user", "content": "hi"} | fields])
        return rows[0][1]

    return item


def test_a_message_is_an_event_said_by_its_role(one):
    fields = one()
    assert (fields["text"], fields["kind"], fields["speaker"], fields["session"]) == ("hi", "event", "user", "chat")


def test_a_message_with_a_name_is_said_by_that_name(one):
    assert one(name="Ana")["speaker"] == "Ana"


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-03-01T12:00:00Z",
        "2026-03-01T13:00:00+01:00",
        1772366400,
        1772366400000000,
        "1772366400",
    ],
)
def test_times_are_read_as_iso_or_as_an_epoch(one, stamp):
    assert one(timestamp=stamp)["occurred_at"] == NOON


@pytest.mark.parametrize("stamp", ["yesterday", True, 2**62, "nan", [1]])
def test_a_time_that_cannot_be_read_is_a_flaw(one, stamp):
    assert isinstance(one(timestamp=stamp), UnusableItem)


def test_the_text_parts_of_a_content_list_are_joined(one):
    content = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "two"}]
    assert one(content=content)["text"] == "one\n\ntwo"


def test_messages_without_text_are_left_out_and_counted(read):
    calls = {"role": "assistant", "content": None, "tool_calls": [{"id": "x"}]}
    entries, left = read([calls, {"role": "user", "content": "hi"}])
    assert (len(entries), left) == (1, {"messages without text (calls of tools, pictures)": 1})


@pytest.mark.parametrize(
    "row", [{"role": "robot", "content": "x"}, {"content": "x"}, {"role": "user", "content": 5}, 7, None]
)
def test_an_unusable_message_is_reported_with_its_number(read, row):
    entries, _ = read([{"role": "user", "content": "hi"}, row])
    assert (type(entries[0][1]), entries[1][0], type(entries[1][1])) == (dict, 2, UnusableItem)


def test_a_long_message_becomes_numbered_parts(make_store, put):
    mem = make_store(policy=Policy(text_limit=dict.fromkeys(Tier, 500)))
    load(mem, put("chat.json", json.dumps([{"role": "user", "content": "A sentence of words. " * 100}])))
    found = mem.list_memories(session="chat", limit=None)
    assert sorted(each.metadata["part"] for each in found) == list(range(1, len(found) + 1))


def test_a_message_is_known_by_its_own_id(one):
    assert one(id="msg_7")["name"] == "msg_7"


def test_jsonl_may_hold_a_conversation_a_line(mem, put):
    load(mem, put("talks.jsonl", [{"messages": [{"role": "user", "content": text}]} for text in ("one", "two")]))
    assert {each.session for each in mem.list_memories()} == {"talks#1", "talks#2"}


def test_a_document_without_messages_is_an_error(mem, put):
    path = put("a.json", json.dumps({"text": "hi"}, indent=1))
    with pytest.raises(InvalidInput, match="list of messages"):
        load(mem, path, format="messages")
