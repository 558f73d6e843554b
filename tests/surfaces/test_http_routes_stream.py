"""Routes that stream: events as they come, export, import line by line."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from contextlib import suppress

import pytest
from http_fixtures import HttpTestServer, called, events_of, streamed
from starlette.requests import ClientDisconnect

from keepward import Actor
from keepward.http import streams
from keepward.http.slots import IMPORT, STREAM
from keepward.services.read_taint import actor_key
from support import foreign


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "HEAD_POLL_INTERVAL_S", 0.002)
    world = HttpTestServer(tmp_path)
    yield world
    world.memory.close()


@pytest.fixture
def owner(world):
    return {"Authorization": world.owner.headers["authorization"]}


def filled(world, count=3, scope="/"):
    memory = world.memory.at(scope=scope)
    return [memory.remember(f"Ferry {n}{n} goes to island {n}", tier="archival").commit for n in range(count)]


def seen(body, kind="commit"):
    return [each for each in events_of(body) if each["event"] == kind]


def listened(world, headers, count, query="?after=0"):
    status, body = streamed(
        world, f"/memory/events{query}", headers, lambda sent: sent.count(b"event: commit") >= count
    )
    assert status == 200
    return seen(body)


def test_event_names_touched_ids_without_text(world, owner):
    made = world.memory.remember("The ferry leaves at six", tier="archival", tags=["ferry"])
    event = listened(world, owner, 1)[0]
    assert (event["id"], event["data"]["changes"], "ferry" in json.dumps(event)) == (
        "1",
        [{"op": "insert", "id": made.records[0].id, "version": 1, "tier": "archival"}],
        False,
    )


@pytest.mark.parametrize("way", ["after", "Last-Event-ID"])
def test_stream_resumes_exactly_after_the_last_seen_event(world, owner, way):
    commits = filled(world)
    query, more = ("?after=1", {}) if way == "after" else ("", {"Last-Event-ID": "1"})
    found = listened(world, {**owner, **more}, 2, query)
    assert [each["data"]["id"] for each in found] == [each.id for each in commits[1:]]


def test_last_event_id_header_overrides_the_query(world, owner):
    filled(world)
    found = listened(world, {**owner, "Last-Event-ID": "2"}, 1, "?after=0")
    assert [each["id"] for each in found] == ["3"]


def test_stream_without_a_start_reports_later_commits_of_any_process(world, owner):
    filled(world)
    started = threading.Event()

    def write():
        started.wait(10)
        with world.open(Actor.operator("other")) as other:
            other.remember("The crane is red", tier="archival")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()

    def enough(sent):
        if sent:
            started.set()
        return b"event: commit" in sent

    _, body = streamed(world, "/memory/events", owner, enough)
    writer.join(40)
    assert [each["id"] for each in seen(body)] == ["4"]


def test_many_commits_arrive_in_order_exactly_once(world, owner, monkeypatch):
    monkeypatch.setattr(streams, "MAX_COMMITS_PER_READ", 2)
    filled(world, 5)
    assert [each["id"] for each in listened(world, owner, 5)] == ["1", "2", "3", "4", "5"]


def test_a_stream_passes_over_what_its_caller_may_not_see(world):
    filled(world, 1)
    filled(world, 1, scope="/agents/orion")
    filled_again = world.memory.remember("The crane is red", tier="archival").commit
    elysia = {"Authorization": world.bearer("elysia", scope="/agents/elysia").headers["authorization"]}
    assert [each["id"] for each in listened(world, elysia, 2)] == ["1", str(filled_again.seq)]


def _proposing(world, headers, query):
    """Return the events of a stream during which something was proposed, and then a commit made."""

    def propose(sent):
        if b"event: commit" in sent and not world.memory.pending():
            world.memory.as_actor(Actor.agent("claude")).remember("We sail by night", tier="core", key="mission")
            world.memory.remember("The crane is red", tier="archival")
        return sent.count(b"event: commit") == 2 and (b"event: review" in sent or "reviews" not in query)

    filled(world, 1)
    _, body = streamed(world, f"/memory/events?after=0{query}", headers, propose)
    return [(each["event"], each["data"].get("waiting")) for each in events_of(body)]


def test_a_stream_says_that_the_queue_changed_to_who_asks(world, owner):
    assert ("review", 1) in _proposing(world, owner, "&reviews=true")


def test_a_stream_ends_when_its_token_is_revoked(world):
    issued = world.memory.create_token("claude")
    filled(world, 1)

    def revoke(sent):
        if b"event: commit" in sent and b"event: end" not in sent:
            world.memory.revoke_token(issued.token.id)
        return False

    _, body = streamed(world, "/memory/events?after=0", {"Authorization": f"Bearer {issued.secret}"}, revoke)
    assert [each["data"]["code"] for each in seen(body, "end")] == ["unauthorised"]


def test_a_stream_without_events_says_that_it_is_open(world, owner):
    def wait(sent):
        world.ticks.now += streams.HEARTBEAT_INTERVAL_S
        return b"still here" in sent

    _, body = streamed(world, "/memory/events", owner, wait)
    assert body == b": commits after 0\n\n: still here\n\n"


def test_a_stream_ends_when_the_server_stops(world, owner):
    def stop(sent):
        if sent:
            world.serving.stopping.set()
        return False

    status, body = streamed(world, "/memory/events", owner, stop)
    assert (status, seen(body)) == (200, [])


def test_a_wrong_number_of_a_query_is_described_without_null(world):
    said = world.owner.get("/memory/events?after=x").json()["errors"][0]["message"]
    assert said == "must be the number of a commit, such as 120"


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [("?after=9", {}, 404), ("?after=-1", {}, 400), ("?after=x", {}, 400), ("", {"Last-Event-ID": "x"}, 400)],
)
def test_a_beginning_that_is_none_is_refused(world, query, headers, status):
    assert world.owner.get(f"/memory/events{query}", headers=headers).status_code == status


def test_invalid_header_is_reported_in_api_terms(world):
    answer = world.owner.get("/memory/events", headers={"Last-Event-ID": "x"})
    assert answer.json()["errors"][0]["where"] == "header.Last-Event-ID"


def test_an_export_for_one_user_is_refused(world):
    world.memory.remember("Ana likes tea", scope="/users/ana")
    answer = world.owner.get("/memory/export?user=bo")
    assert (answer.status_code, "every scope, not only /users/bo" in answer.text) == (400, True)
    assert "tea" not in answer.text


def test_an_export_restores_into_another_server_with_its_head(world, tmp_path):
    filled(world)
    world.memory.revise(world.memory.list_memories()[0].id, "Ferry 9 goes nowhere", reason="winter")
    lines = world.owner.get("/memory/export")
    (tmp_path / "other").mkdir()
    other = HttpTestServer(tmp_path / "other")
    plan = other.owner.post("/memory/restore-export/plan", content=lines.content)
    given = {"digest": plan.json()["digest"]}
    agents = other.bearer().post("/memory/restore-export", content=lines.content, params=given)
    told = other.owner.post("/memory/restore-export", content=lines.content, params=given)
    heads = (world.memory.head, other.memory.head)
    other.memory.close()
    assert (lines.headers["content-type"], told.json()["versions"], heads[0], agents.status_code) == (
        "application/x-ndjson",
        4,
        heads[1],
        403,
    )


def messages(*texts):
    return "".join(json.dumps({"role": "user", "content": each}) + "\n" for each in texts)


def answers(response):
    return [json.loads(line) for line in response.text.splitlines()]


def test_each_import_line_has_its_own_answer(world):
    secret = "AKIA" + "Q3EGRVZ7XN2LKPWD"
    body = messages("I like green tea", f"my key is {secret}") + "not json\n" + messages("The ferry is late today")
    told = answers(world.bearer().post("/memory/import", content=body))
    outcomes = {each["line"]: each["outcome"] for each in told if "line" in each}
    assert (outcomes, told[-1]["summary"]["total"]) == (
        {1: "committed", 2: "committed", 3: "failed", 4: "committed"},
        4,
    )


@pytest.mark.parametrize(("query", "trust", "acts"), [("", "user", True), ("&untrusted=true", "import", False)])
def test_an_import_acts_only_if_the_owner_vouches_for_it(world, query, trust, acts):
    body = "The reading list is Dune and Emma\n"
    told = answers(world.owner.post(f"/memory/import?format=lines{query}", content=body))
    assert told[-1]["summary"]["committed"] == 1
    listed = world.owner.post("/memory/call/list_memories", json={"within": "/"}).json()["items"]
    assert {each["trust"] for each in listed} == {trust}
    asked = {"objective": "reading list", "purpose": "act"}
    assert ("Dune" in world.bearer().post("/memory/compile", json=asked).json()["text"]) is acts


@pytest.mark.parametrize(
    ("body", "query"),
    [
        ("", ""),
        ("{", ""),
        (messages("hello") + '{"role": "us', ""),
        ("[]", ""),
        ("x", "?format=tape"),
        ("x", "?format=vault"),
    ],
)
def test_an_unreadable_import_is_refused_completely(world, body, query):
    answer = world.owner.post(f"/memory/import{query}", content=body)
    assert (answer.status_code, world.memory.list_memories()) == (400, [])


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_a_generated_column_of_a_sqlite_file_is_not_computed(world, tmp_path, query):
    foreign.computed_store(tmp_path / "s.db")
    answer = world.bearer().post(f"/memory/import{query}", content=(tmp_path / "s.db").read_bytes())
    assert (answer.status_code, "generated column 'boom'" in answer.text) == (400, True)


@pytest.fixture
def no_temporary_files(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "there is no such folder"))


def pictures(count):
    """Return messages without a text, a megabyte each."""
    shown = [{"type": "image", "data": "A" * 1_000_000}]
    return (json.dumps({"role": "user", "content": shown}) + "\n") * count


def test_an_import_stays_in_memory_and_in_no_file(world, no_temporary_files):
    body = messages("I like green tea") + pictures(20) + messages("The ferry is late today")
    told = answers(world.bearer().post("/memory/import", content=body))
    assert (told[-1]["summary"]["committed"], [each["outcome"] for each in told[:-1]]) == (2, ["committed"] * 2)


def imports(world):
    """Return how many imports are held at this moment."""
    return sum(each.slots.in_use(IMPORT) for each in world.servings)


def let_in(world, work, client, times=1):
    """Take slots of a client's token in every server."""
    handle = world.memory.with_token(client.headers["Authorization"].removeprefix("Bearer "))
    key, owner = actor_key(handle.actor), handle.actor.is_owner
    for serving in world.servings:
        for _ in range(times):
            asyncio.run(serving.slots.acquire(work, key, owner=owner))


@pytest.mark.parametrize("work", [IMPORT, STREAM], ids=lambda work: work.name)
def test_token_over_its_stream_limit_is_refused_others_not(world, work):
    agent, other = world.bearer(), world.bearer("other")
    let_in(world, work, agent, work.token)
    statuses = [called_as(world, work, client) for client in (agent, other, world.owner)]
    assert statuses == [429, 200, 200]


@pytest.mark.parametrize("work", [IMPORT, STREAM], ids=lambda work: work.name)
def test_all_agents_together_leave_a_share_to_the_owner(world, work):
    for n in range(work.agents // work.token):
        let_in(world, work, world.bearer(f"agent{n}"), work.token)
    assert [called_as(world, work, client) for client in (world.bearer("late"), world.owner)] == [429, 200]


def called_as(world, work, client):
    if work is IMPORT:
        return client.post("/memory/import", content=messages("hello there")).status_code
    headers = {"Authorization": client.headers["Authorization"]}
    return streamed(world, "/memory/events", headers, lambda sent: bool(sent))[0]


@pytest.mark.parametrize(
    ("body", "query"), [(messages("hello there"), ""), ("{", ""), ("x", "?format=vault"), ("x", "?format=zip")]
)
def test_an_import_that_is_over_is_released(world, body, query):
    world.owner.post(f"/memory/import{query}", content=body)
    assert imports(world) == 0


def test_import_cancelled_while_sending_stores_nothing_and_frees_its_slot(world, owner):
    pieces = [{"type": "http.request", "body": messages("I like green tea").encode(), "more_body": True}]
    with suppress(ClientDisconnect):
        called(world, "/memory/import", owner, pieces)
    assert (world.memory.list_memories(), imports(world)) == ([], 0)


def test_import_cancelled_before_its_answer_frees_its_slot(world, owner, monkeypatch, caplog):
    monkeypatch.setattr("keepward.http.streams.MAX_QUEUED_RESULTS", 1)
    body = "".join(messages(f"Ferry {n}{n} goes to island {n}") for n in range(9)).encode()

    def gone(message):
        raise OSError

    with suppress(OSError):
        called(world, "/memory/import", owner, [{"type": "http.request", "body": body, "more_body": False}], gone)
    for thread in threading.enumerate():
        if thread.name == "keepward-pipe":
            thread.join(10)
    gc.collect()
    assert imports(world) == 0
    assert "never retrieved" not in caplog.text


def test_partial_failure_ends_with_an_error_and_preserves_stored_lines(world, monkeypatch):
    from keepward import StoreUnavailable
    from keepward.interchange import run

    real, calls = run.ImportRun._remember, []

    def full(self, batch):
        calls.append(len(batch))
        if len(calls) > 1:
            raise StoreUnavailable("the disk is full; free space and try again")
        return real(self, batch)

    monkeypatch.setattr(run, "BATCH_SIZE", 1)
    monkeypatch.setattr(run.ImportRun, "_remember", full)
    told = answers(world.owner.post("/memory/import", content=messages("I like green tea", "The ferry is late")))
    assert (told[0]["outcome"], told[-1]["error"]["code"], len(world.memory.list_memories())) == (
        "committed",
        "store_unavailable",
        1,
    )


def test_an_archive_that_unpacks_to_too_much_stores_nothing(world, tmp_path, monkeypatch):
    monkeypatch.setattr("keepward.interchange.archive.TOTAL_LIMIT", 5_000_000)
    path = foreign.zipped(tmp_path / "bomb.zip", {f"{n}.md": "- a fact" + " " * 1_000_000 for n in range(6)})
    answer = world.bearer().post("/memory/import?name=bomb.zip", content=path.read_bytes())
    assert (answer.status_code, "more than 5 MB" in answer.json()["detail"]) == (400, True)
    assert world.memory.list_memories() == []
