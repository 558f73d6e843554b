"""Events of clients: what is read of them, and the answer in each one's format."""

from __future__ import annotations

import json

import pytest

from keepward.hooks.events import CLIENTS, format_answer, parse_event

CLAUDE = CLIENTS["claude"]


def event(client=CLAUDE, what="prompt", **fields):
    return parse_event(client, what, json.dumps({"session_id": "s1", "cwd": "/srv/bakery", "prompt": "hi", **fields}))


def test_a_prompt_is_read_with_its_session_and_project():
    found = event()
    assert (found.session, found.project, found.prompt) == ("s1", "bakery", "hi")


@pytest.mark.parametrize(
    "data", ["", "no JSON", "[]", "3", "null", '{"prompt": "hi"}', '{"session_id": 3}', "[" * 9999]
)
def test_what_cannot_be_read_is_no_event(data):
    assert parse_event(CLAUDE, "prompt", data) is None


def test_a_resumed_session_knows_what_it_was_reported():
    assert (event(what="start", source="resume").afresh, event(what="start", source="startup").afresh) == (False, True)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        *(("claude", "last_assistant_message"), ("codex", "last_assistant_message"), ("gemini", "prompt_response")),
        *(("cursor", "text"), ("opencode", "last_assistant_message")),
    ],
)
def test_message_of_the_assistant_is_read_in_each_clients_field(name, field):
    client = CLIENTS[name]
    assert event(client, "reply", **{field: "Done."}).reply == "Done."
    assert (event(client, "reply", **{field: None}).reply, event(client, "prompt", **{field: "Done."}).reply) == (
        "",
        "",
    )
    assert format_answer(client, event(client, "reply", **{field: "Done."}), "known") == ""


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_text_is_added_under_the_clients_event_name(name):
    client = CLIENTS[name]
    found = json.loads(format_answer(client, event(client), "known"))
    assert found == {"hookSpecificOutput": {"hookEventName": event(client).name, "additionalContext": "known"}}


def test_cursor_reads_text_at_the_start_alone():
    client = CLIENTS["cursor"]
    start = parse_event(client, "start", '{"conversation_id": "c1"}')
    assert json.loads(format_answer(client, start, "known")) == {"additional_context": "known"}
    assert format_answer(client, parse_event(client, "prompt", '{"conversation_id": "c1"}'), "known") == ""


def test_opencode_reads_the_text_itself():
    client = CLIENTS["opencode"]
    assert format_answer(client, event(client), "known") == "known"


@pytest.mark.parametrize("name", ["codex", "opencode"])
def test_these_have_no_event_for_the_end(name):
    assert event(CLIENTS[name], "end") is None
