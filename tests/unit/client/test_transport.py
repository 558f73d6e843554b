"""How the client speaks to a server: what it sends, when again, and what it makes of an answer."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from keepward import errors
from keepward.client import Client
from keepward.client.client import ImportedLine
from keepward.core.change import Revert

URL = "http://127.0.0.1:8321"
#: Put together here, so that no file holds one.
TOKEN = "kw_" + "a1" * 21 + "b"
RECEIPT = {
    "id": "r1",
    "tenant": "default",
    "kind": "refusal",
    "at": "2026-03-01T09:30:00+00:00",
    "actor": "agent:a",
    "policy": "p",
    "head": "0:0",
    "reasons": [],
    "facts": {},
}
REFUSED = {"outcome": "refused", "receipt": RECEIPT, "reasons": []}


class Server:
    """Answers from a list, one after the other, and remembers what was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked, self.slept = list(answers), [], []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    def client(self, **named: Any) -> Client:
        client = Client(URL, TOKEN, transport=httpx2.MockTransport(self), **named)
        client._transport.sleep, client._transport.clock = self.slept.append, lambda: sum(self.slept)
        return client


def ok(value: Any = None) -> Callable[[], httpx2.Response]:
    return lambda: httpx2.Response(200, json={"head": "0:0"} if value is None else value)


def problem(status: int, code: str, **headers: str) -> Callable[[], httpx2.Response]:
    body = json.dumps({"status": status, "code": code, "detail": "What to do."}).encode()
    return lambda: httpx2.Response(
        status, content=body, headers={"content-type": "application/problem+json", **headers}
    )


# --- where a token goes


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8321", "http://localhost", "http://[::1]:8321", "https://memory.example"]
)
def test_a_token_goes_to_this_machine_or_over_tls(url: str) -> None:
    Client(url, TOKEN).close()


@pytest.mark.parametrize("url", ["http://memory.example", "http://10.0.0.7:8321", "http://127.0.0.1.memory.example"])
def test_a_token_does_not_travel_in_the_clear(url: str) -> None:
    with pytest.raises(errors.InvalidInput, match="unencrypted"):
        Client(url, TOKEN)


def test_who_says_that_the_way_is_safe_is_believed() -> None:
    Client("http://memory.example", TOKEN, allow_insecure=True).close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://memory.example",
        "http://a:b@127.0.0.1",
        "http://h:x",
        None,
    ],
)
def test_what_is_no_address_is_an_error(url: Any) -> None:
    with pytest.raises(errors.InvalidInput):
        Client(url, TOKEN)


@pytest.mark.parametrize("token", ["", "kw_\n", 7])
def test_invalid_token_is_an_error_that_does_not_repeat_it(token: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="not valid"):
        Client(URL, token)


@pytest.mark.parametrize("named", [{"timeout": 0}, {"timeout": float("nan")}, {"retries": -1}, {"retries": True}])
def test_limits_that_mean_nothing_are_errors(named: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput):
        Client(URL, TOKEN, **named)


def test_no_token_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPWARD_TOKEN", TOKEN)
    server = Server(ok())
    client = Client(URL, transport=httpx2.MockTransport(server))
    _ = client.head
    assert "authorization" not in server.asked[0].headers


def test_neither_proxy_nor_netrc_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    http = Client(URL, TOKEN)._transport.http
    assert (http.trust_env, http._mounts) == (False, {})


def test_a_token_is_not_shown() -> None:
    assert TOKEN not in repr(Client(URL, TOKEN)._transport)


@pytest.mark.parametrize("call", [lambda client: client.head, lambda client: client.import_(b"x")])
@pytest.mark.parametrize("status", [300, 307])
def test_a_redirect_is_not_followed(call: Callable[[Client], Any], status: int) -> None:
    server = Server(httpx2.Response(status, headers={"location": "http://elsewhere.example/memory/status"}))
    follower = httpx2.Client(transport=httpx2.MockTransport(server), follow_redirects=True)
    with pytest.raises(errors.StoreError, match=f"answered {status} and not as Keepward does"):
        call(Client(URL, TOKEN, transport=follower))
    assert [each.url.host for each in server.asked] == ["127.0.0.1"]


# --- what is sent


def test_every_call_carries_the_token_and_where_it_is_about() -> None:
    server = Server(ok())
    _ = server.client(tenant="ada", scope="orion").head
    headers = server.asked[0].headers
    assert [headers[name] for name in ("authorization", "keepward-tenant", "keepward-scope")] == [
        f"Bearer {TOKEN}",
        "ada",
        "/agents/orion",
    ]


@pytest.mark.parametrize("name", ["a/../b?c#d ü", "..", "\r\nHost: evil"])
def test_no_argument_is_in_an_address(name: str) -> None:
    server = Server(problem(404, "not_found"))
    with pytest.raises(errors.NotFound):
        server.client().get(name)
    assert server.asked[0].url.raw_path == b"/memory/call/get"
    assert json.loads(server.asked[0].content) == {"memory_id": name}


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, object(), "\ud800"])
def test_non_json_value_is_an_error_and_nothing_is_sent(value: Any) -> None:
    server = Server(ok())
    with pytest.raises(errors.InvalidInput):
        server.client().remember("text", metadata={"a": value})
    assert server.asked == []


def test_recall_with_a_receipt_names_what_a_page_has() -> None:
    server = Server(ok({"hits": [], "cursor": None}))
    for limit in (500, 501):
        with pytest.raises(errors.InvalidInput if limit > 500 else errors.StoreError):
            server.client().recall("tea", limit=limit, receipt=True)
    assert len(server.asked) == 1


def test_unset_fields_are_not_sent_and_emptied_fields_are() -> None:
    server = Server(httpx2.Response(422, json=REFUSED, headers={"content-type": "application/problem+json"}))
    server.client().revise("m1", category=None, reason="wrong")
    assert json.loads(server.asked[0].content) == {"memory_id": "m1", "category": None, "reason": "wrong"}


def test_a_duration_is_sent_to_the_microsecond() -> None:
    server = Server(httpx2.Response(422, json=REFUSED, headers={"content-type": "application/problem+json"}))
    server.client().remember("tea", ttl=timedelta(days=1, microseconds=1))
    assert json.loads(server.asked[0].content)["ttl"] == 86_400.000001


def test_an_item_that_is_no_text_and_no_mapping_is_an_error() -> None:
    with pytest.raises(errors.InvalidInput, match="an item is a text, or a mapping"):
        Server(ok()).client().remember_many(["tea", 3])  # type: ignore[list-item]


def test_a_change_that_rollback_alone_makes_is_an_error() -> None:
    with pytest.raises(errors.InvalidInput, match="rollback"):
        Server(ok()).client().propose([Revert(id="m1", to_version=1, if_version=2)], reason="no")


def test_caller_cannot_choose_the_commit_kind_over_http() -> None:
    with pytest.raises(errors.InvalidInput, match="kind"):
        Server(ok()).client().remember_many(["a"], kind="import")


def test_a_predicate_cannot_be_sent() -> None:
    with pytest.raises(errors.InvalidInput, match="contains"):
        Server(ok()).client().bisect("a", predicate=bool)


def test_many_items_are_sent_in_parts_that_a_server_takes() -> None:
    def answer() -> httpx2.Response:
        count = len(json.loads(server.asked[-1].content)["items"])
        return httpx2.Response(200, json={"outcomes": [REFUSED] * count})

    server = Server(answer)
    told: list[tuple[int, int]] = []
    outcomes = server.client().remember_many(
        ["x" * 400_000] * 3 + ["y"] * 600, on_progress=lambda done, total: told.append((done, total))
    )
    sizes = [len(each.content) for each in server.asked]
    assert (len(outcomes), max(sizes) < 1 << 20, told) == (603, True, [(2, 603), (502, 603), (603, 603)])


# --- what is sent again


def test_a_read_is_sent_again_where_the_connection_broke() -> None:
    server = Server(httpx2.ReadError("broken"), ok())
    assert server.client().head == "0:0"


def test_a_write_is_sent_again_under_the_same_key() -> None:
    server = Server(
        httpx2.ReadTimeout("late"),
        httpx2.Response(422, json=REFUSED, headers={"content-type": "application/problem+json"}),
    )
    server.client().remember("one")
    assert len({each.headers["idempotency-key"] for each in server.asked}) == 1


@pytest.mark.parametrize(
    ("fault", "call", "kind"),
    [
        (httpx2.ReadError("broken"), lambda client: client.revoke_token("t1"), errors.StoreUnavailable),
        # It reports something once.
        (httpx2.ReadError("broken"), lambda client: client.notices(), errors.StoreUnavailable),
        (problem(403, "unauthorised"), lambda client: client.head, errors.Unauthorised),
    ],
)
def test_what_may_have_happened_or_was_refused_is_not_repeated(fault: Any, call: Any, kind: type[Exception]) -> None:
    server = Server(fault)
    with pytest.raises(kind):
        call(server.client())
    assert len(server.asked) == 1


def test_retry_after_delay_is_respected() -> None:
    server = Server(problem(429, "rate_limited", **{"retry-after": "7"}), ok())
    _ = server.client().head
    assert server.slept == [7.0]


def test_retry_after_date_uses_the_servers_clock() -> None:
    headers = {"retry-after": "Sun, 01 Mar 2026 09:30:05 GMT", "date": "Sun, 01 Mar 2026 09:30:00 GMT"}
    server = Server(problem(503, "store_unavailable", **headers), ok())
    _ = server.client().head
    assert server.slept == [5.0]


def test_a_delay_as_long_as_the_timeout_is_waited_for() -> None:
    server = Server(problem(429, "rate_limited", **{"retry-after": "30"}), ok())
    _ = server.client().head
    assert server.slept == [30.0]


def test_more_patience_than_the_timeout_is_an_error_at_once() -> None:
    server = Server(problem(429, "rate_limited", **{"retry-after": "31"}))
    with pytest.raises(errors.StoreUnavailable):
        _ = server.client().head
    assert (len(server.asked), server.slept) == (1, [])


def test_it_is_not_sent_more_often_than_was_said() -> None:
    server = Server(httpx2.ConnectError("refused"))
    with pytest.raises(errors.StoreUnavailable):
        _ = server.client(retries=3).head
    assert (len(server.asked), server.slept) == (4, [0.1, 0.2, 0.4])


# --- what an answer is


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (httpx2.ConnectError("refused"), "no server answers at http://127.0.0.1:8321; start one with `keepward serve`"),
        (httpx2.ReadTimeout("late"), "did not answer in time"),
        (httpx2.RemoteProtocolError("cut"), "broke off"),
    ],
)
def test_a_server_out_of_reach_is_one_plain_line(fault: Exception, line: str) -> None:
    with pytest.raises(errors.StoreUnavailable, match=line):
        _ = Server(fault).client(retries=0).head


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, content=b"<html>hello</html>"),
        httpx2.Response(200, json=[1]),
        httpx2.Response(200, json={}),
        httpx2.Response(500, content=b"oops"),
        httpx2.Response(500, content=b"[]", headers={"content-type": "application/problem+json"}),
        httpx2.Response(500, content=b"{", headers={"content-type": "application/problem+json"}),
    ],
)
def test_an_answer_of_something_else_is_an_error_of_ours(answer: httpx2.Response) -> None:
    with pytest.raises(errors.StoreError):
        Server(answer).client().verify()


def test_a_page_after_the_other_is_read_to_the_end() -> None:
    server = Server(ok({"items": [], "cursor": "next"}), ok({"items": [], "cursor": None}))
    server.client().list_memories(limit=None)
    assert [each.url.params.get("cursor") for each in server.asked] == [None, "next"]


def test_a_blob_with_other_bytes_is_not_handed_on() -> None:
    server = Server(httpx2.Response(200, content=b"other"))
    with pytest.raises(errors.Tampered):
        server.client().read_blob("sha256:" + "0" * 64)


# --- streams


def sse(*lines: str) -> Callable[[], httpx2.Response]:
    return lambda: httpx2.Response(200, text="\n".join(lines) + "\n", headers={"content-type": "text/event-stream"})


def commit(seq: int) -> str:
    return f'event: commit\nid: {seq}\ndata: {{"seq": {seq}}}\n'


def test_events_go_on_after_a_break_exactly_where_they_stopped() -> None:
    server = Server(sse(commit(3), commit(4)), httpx2.ReadError("broken"), sse(commit(5)))
    found = server.client().events(after=2)
    seen = [next(found).seq for _ in range(3)]
    assert (seen, [each.headers["last-event-id"] for each in server.asked]) == ([3, 4, 5], ["2", "4", "4"])


def test_events_begin_behind_the_newest_commit_by_default() -> None:
    server = Server(ok({"head": "7:ab"}), sse(commit(8)))
    assert next(server.client().events()).seq == 8
    assert server.asked[1].headers["last-event-id"] == "7"


def test_events_end_with_the_error_of_the_server() -> None:
    server = Server(sse(commit(3), 'event: end\ndata: {"code": "unauthorised", "detail": "It ended."}\n'))
    found = server.client().events(after=2)
    next(found)
    with pytest.raises(errors.Unauthorised, match="It ended"):
        next(found)


def test_event_stream_of_a_lost_server_ends_with_an_error() -> None:
    server = Server(sse(commit(3)), httpx2.ConnectError("refused"))
    found = server.client(retries=1).events(after=2)
    next(found)
    with pytest.raises(errors.StoreUnavailable):
        next(found)


def test_event_stream_resumes_within_the_timeout() -> None:
    refused = httpx2.ConnectError("refused")
    server = Server(sse(commit(3)), *[refused] * 7, sse(commit(4)))
    found = server.client().events(after=2)
    assert ([next(found).seq, next(found).seq], sum(server.slept)) == ([3, 4], pytest.approx(16.3))


def test_event_stream_of_a_missing_server_ends_at_once() -> None:
    server = Server(httpx2.ConnectError("refused"))
    with pytest.raises(errors.StoreUnavailable):
        next(server.client().events(after=2))
    assert sum(server.slept) < 1


def lines(*values: dict[str, Any]) -> httpx2.Response:
    return httpx2.Response(200, text="".join(json.dumps(each) + "\n" for each in values))


def test_an_import_sends_its_file_and_reports_each_line(tmp_path) -> None:
    (tmp_path / "chat.txt").write_bytes(b"tea\n")
    reason = {"gate": "secrets", "code": "key", "detail": "a key"}
    answer = lines(
        {"line": 1, "outcome": "refused", "reasons": [reason, reason], "detail": None},
        {"line": 2, "outcome": "failed", "reasons": [], "detail": "no JSON"},
        {"summary": {"total": 2}},
    )
    for source in (b"tea\n", tmp_path / "chat.txt", io.BytesIO(b"tea\n")):
        server, told = Server(answer), list[ImportedLine]()
        summary = server.client().import_(source, user="ana", session="s1", on_result=told.append)
        assert (summary, server.asked[0].content) == ({"total": 2}, b"tea\n")
        assert dict(server.asked[0].url.params) == {"format": "auto", "user": "ana", "session": "s1"}
        assert [(each.number, each.outcome, each.detail) for each in told] == [
            (1, "refused", "a key; a key"),
            (2, "failed", "no JSON"),
        ]


def test_an_import_that_broke_off_is_an_error() -> None:
    with pytest.raises(errors.StoreUnavailable, match="interrupted"):
        Server(lines({"line": 1, "outcome": "committed"})).client().import_(b"x")


def test_failed_remote_import_raises_the_same_error() -> None:
    server = Server(lines({"line": 1, "outcome": "committed"}, {"error": {"code": "conflict", "detail": "Moved."}}))
    with pytest.raises(errors.Conflict, match=r"Moved\."):
        server.client().import_(b"x")


def test_unreadable_file_is_an_error_and_nothing_is_sent(tmp_path) -> None:
    server = Server(ok())
    with pytest.raises(errors.InvalidInput, match="cannot read"):
        server.client().import_(tmp_path / "nothing")
    assert server.asked == []


def test_an_export_replaces_a_file_in_one_step(tmp_path) -> None:
    target = tmp_path / "vault.jsonl"
    target.write_text("before")
    count = Server(lines({"a": 1}, {"b": 2})).client().export(target)
    assert (count, target.read_text(), target.stat().st_mode & 0o777) == (2, '{"a": 1}\n{"b": 2}\n', 0o600)


def test_an_export_does_not_replace_a_store(tmp_path) -> None:
    (tmp_path / "m.db.id").touch()
    with pytest.raises(errors.InvalidInput, match="is a store; name another file"):
        Server(lines({"a": 1})).client().export(tmp_path / "m.db")


def test_an_export_that_breaks_off_leaves_what_was_there(tmp_path) -> None:
    def pieces():
        yield b'{"a": 1}\n'
        raise httpx2.ReadError("broken")

    target = tmp_path / "vault.jsonl"
    target.write_text("before")
    with pytest.raises(errors.StoreUnavailable):
        Server(lambda: httpx2.Response(200, content=pieces())).client().export(target)
    assert (target.read_text(), [each.name for each in tmp_path.iterdir()]) == ("before", ["vault.jsonl"])


# --- drafts


def test_a_draft_asks_for_nothing_before_its_end() -> None:
    server = Server(ok())

    def failing() -> None:
        with server.client().draft(reason="two") as draft:
            draft.insert("a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert server.asked == []


def test_without_the_extra_there_is_one_plain_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(errors.InvalidInput, match=r"pip install 'keepward\[client\]'"):
        Client(URL, TOKEN)


CALLS: dict[str, Callable[[Client], Any]] = {
    "recall": lambda client: client.recall("a"),
    "list_memories": lambda client: client.list_memories(),
    "get": lambda client: client.get("a"),
    "context": lambda client: client.context("a"),
    "remember": lambda client: client.remember("a"),
    "remember_many": lambda client: client.remember_many(["a"]),
    "approve_many": lambda client: client.approve_many(["a"]),
    "log": lambda client: client.log(),
    "verify": lambda client: client.verify(),
    "plan_erase": lambda client: client.plan_erase("a"),
    "put_blob": lambda client: client.put_blob(b"a"),
    "head": lambda client: client.head,
    "events": lambda client: next(client.events()),
}


@pytest.mark.parametrize("verb", sorted(CALLS))
@pytest.mark.parametrize("body", [b"{}", b"hello"])
def test_invalid_answer_is_a_keepward_error_for_every_call(verb: str, body: bytes) -> None:
    with pytest.raises(errors.StoreError, match="cannot be read"):
        CALLS[verb](Server(lambda: httpx2.Response(200, content=body)).client())
