"""Who is let in: tokens, sessions, strangers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from http_stage import Stage
from msgspec import structs
from starlette.datastructures import Headers

from keepward.core.principals import StoredToken
from keepward.http.auth import CSRF_HEADER, SCOPE, TENANT, handle_of
from keepward.http.login_sessions import LoginSessions
from keepward.http.requests import Problem
from keepward.memory import request_context_of


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    stage.memory.close()


@pytest.fixture
def opened(tmp_path):
    stage = Stage(tmp_path, open_reads=True)
    yield stage
    stage.memory.close()


CALLS = [
    ("GET", "/memory/status"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/session"),
    ("DELETE", "/session"),
    ("POST", "/session/link"),
]


@pytest.mark.promise("C114", "Z49")
@pytest.mark.parametrize(("method", "path"), CALLS)
def test_call_without_a_credential_gets_401_with_advice(stage, method, path):
    answer = stage.client.request(method, path)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="keepward"')


WRONG = {
    "unknown": "Bearer kw_" + "a" * 43,
    "not a token": "Bearer hello",
    "not ASCII": b"Bearer kw_\xe9",
}


@pytest.mark.promise("Z49")
@pytest.mark.parametrize("sent", WRONG.values(), ids=WRONG)
def test_a_wrong_credential_is_answered_with_401(stage, sent):
    answer = stage.client.get("/memory/status", headers={"Authorization": sent})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


@pytest.mark.promise("Z49")
def test_a_token_opens_nothing_by_another_scheme_or_in_two_headers(stage):
    right = stage.owner["Authorization"]
    sent = [[right.replace("Bearer", "Basic")], [right.replace("Bearer ", "")], [right, right], [right, "Basic x"]]
    headers = [
        [("Authorization", each) for each in values] for values in ([right], [right.lower()[:6] + right[6:]], *sent)
    ]
    statuses = [stage.client.get("/memory/status", headers=each).status_code for each in headers]
    assert statuses == [200, 200, 401, 401, 401, 401]


@pytest.mark.promise("Z49")
def test_a_token_in_the_query_opens_nothing(stage):
    secret = stage.owner["Authorization"].removeprefix("Bearer ")
    assert stage.client.get("/memory/status", params={"token": secret}).status_code == 401


@pytest.mark.promise("Z49")
def test_token_revoked_during_use_opens_nothing_more(stage):
    issued = stage.memory.create_token("claude")
    header = {"Authorization": f"Bearer {issued.secret}"}
    before = stage.client.get("/memory/status", headers=header).status_code
    stage.memory.revoke_token(issued.token.id)
    assert (before, stage.client.get("/memory/status", headers=header).status_code) == (200, 401)


def test_owners_token_with_a_scope_is_refused_with_the_reason(stage):
    issued = stage.memory.create_token("ola", rights="owner")
    with request_context_of(stage.memory).store.write() as writer:
        (stored,) = writer.documents(StoredToken, None).list(id=issued.token.id)
        writer.put(structs.replace(stored, scope="/users/ana"))
    answer = stage.client.get("/memory/status", headers={"Authorization": f"Bearer {issued.secret}"})
    assert answer.status_code == 401
    assert f"keepward token revoke {issued.token.id}" in answer.json()["detail"]


@pytest.mark.promise("Z49")
def test_route_without_store_access_rejects_a_revoked_token_too(stage):
    issued = stage.memory.create_token("claude")
    header = {"Authorization": f"Bearer {issued.secret}"}
    stage.client.get("/probe", headers=header)
    stage.memory.revoke_token(issued.token.id)
    assert stage.client.get("/probe", headers=header).status_code == 401


def test_a_caller_acts_as_the_holder_of_its_token(stage):
    told = stage.client.get("/memory/status", headers=stage.token("claude", scope="/agents/claude")).json()
    assert told == {"actor": "agent:claude", "tenant": "default", "scope": "/agents/claude"}


def test_headers_move_a_caller_below_its_own_scope(stage):
    headers = {**stage.token(scope="/agents/claude"), SCOPE: "/agents/claude/tasks/7"}
    assert stage.client.get("/memory/status", headers=headers).json()["scope"] == "/agents/claude/tasks/7"


@pytest.mark.parametrize("moved", [{SCOPE: "/"}, {SCOPE: "/agents/other"}, {TENANT: "other"}], ids=str)
def test_token_cannot_leave_its_scope_or_tenant(stage, moved):
    answer = stage.client.get("/memory/status", headers={**stage.token(scope="/agents/claude"), **moved})
    assert (answer.status_code, answer.json()["code"]) == (403, "unauthorised")


def test_a_code_opens_a_session_of_the_owners(stage):
    browser, _ = stage.session()
    assert browser.get("/memory/status").json()["actor"] == "operator:ana"


def test_a_code_works_once(stage):
    code = stage.code()
    first = stage.client.post("/session", json={"code": code})
    assert (first.status_code, stage.browser().post("/session", json={"code": code}).status_code) == (200, 401)


def test_a_code_is_void_after_ten_minutes(stage):
    code = stage.code()
    stage.ticks.now += 601
    assert stage.client.post("/session", json={"code": code}).status_code == 401


def test_session_cookie_is_hidden_from_scripts_and_other_sites(stage):
    cookie = stage.client.post("/session", json={"code": stage.code()}).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


def test_behind_tls_the_cookie_is_secure_and_host_bound(tmp_path):
    stage = Stage(tmp_path, behind_proxy=True)
    cookie = stage.client.post("/session", json={"code": stage.code()}).headers["set-cookie"]
    stage.memory.close()
    assert cookie.startswith("__Host-keepward-8321=")
    assert "Secure" in cookie


def test_a_session_ends_after_twelve_hours(stage):
    browser, _ = stage.session()
    stage.ticks.now += 12 * 3600 + 1
    assert browser.get("/memory/status").status_code == 401


def test_a_session_that_was_ended_opens_nothing(stage):
    browser, csrf = stage.session()
    kept = dict(browser.cookies)
    browser.delete("/session", headers=csrf)
    again = stage.browser()
    again.cookies.update(kept)
    assert again.get("/memory/status").status_code == 401


@pytest.mark.parametrize("header", [{}, {CSRF_HEADER: "wrong"}], ids=["none", "wrong"])
def test_a_changing_call_of_a_session_needs_its_csrf_token(stage, header):
    browser, _ = stage.session()
    answer = browser.post("/memory/items", json={"text": "Ana likes tea"}, headers=header)
    assert (answer.status_code, answer.json()["code"]) == (403, "csrf")


def test_with_its_csrf_token_a_session_writes(stage):
    browser, csrf = stage.session()
    assert browser.post("/memory/items", json={"text": "Ana likes tea"}, headers=csrf).status_code == 201


def test_a_session_ends_with_the_owners_token(stage):
    browser, _ = stage.session()
    for token in stage.memory.tokens():
        stage.memory.revoke_token(token.id)
    assert browser.get("/memory/status").status_code == 401


def test_expired_session_does_not_close_open_reads(opened):
    stale = {"Cookie": f"{opened.serving.cookie}=of-another-day"}
    paths = ("/memory/status", "/memory/quarantine")
    assert [opened.client.get(path, headers=stale).status_code for path in paths] == [200, 401]


def test_wrong_codes_are_counted_and_the_eleventh_waits(stage):
    statuses = [stage.client.post("/session", json={"code": f"wrong{n}"}).status_code for n in range(11)]
    assert statuses == [401] * 10 + [429]


def test_the_right_link_opens_however_many_wrong_codes_were_sent(stage):
    code = stage.code()
    for n in range(30):
        stage.client.post("/session", json={"code": f"wrong{n}"})
    assert stage.client.post("/session", json={"code": code}).status_code == 200
    assert stage.client.post("/session", json={"code": code}).status_code == 429


def test_after_a_minute_codes_are_taken_again(stage):
    for n in range(10):
        stage.client.post("/session", json={"code": f"wrong{n}"})
    stage.ticks.now += 60
    assert stage.client.post("/session", json={"code": stage.code()}).status_code == 200


def test_the_owner_gets_another_link(stage):
    url = stage.client.post("/session/link", headers=stage.owner).json()["url"]
    answer = stage.browser().post("/session", json={"code": url.partition("#code=")[2]})
    assert (url.startswith("http://127.0.0.1:8321/#code="), answer.status_code) == (True, 200)


def test_an_agent_gets_no_link(stage):
    assert stage.client.post("/session/link", headers=stage.token(rights="agent")).status_code == 403


@pytest.mark.parametrize("moved", [{TENANT: "other"}, {SCOPE: "/agents/orion"}], ids=str)
def test_anonymous_reader_stays_in_the_opened_scope_and_tenant(opened, moved):
    assert opened.client.get("/memory/status", headers=moved).status_code == 403


def test_a_wrong_token_is_refused_where_reads_are_open_too(opened):
    assert opened.client.get("/memory/status", headers={"Authorization": "Bearer kw_x"}).status_code == 401


def test_path_outside_the_api_accepts_tokens_but_no_sessions(stage):
    stage.code()
    browser, _ = stage.session()
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    with pytest.raises(Problem) as caught:
        handle_of(stage.serving, Headers({"cookie": cookie}))
    assert caught.value.status == 401


def test_path_outside_the_api_acts_as_the_token_holder(stage):
    assert handle_of(stage.serving, Headers(stage.token("claude"))).actor.label == "agent:claude"


def test_reviewer_links_evict_no_link_or_session_of_owners(stage, monkeypatch):
    monkeypatch.setattr(LoginSessions, "OPEN", replace(LoginSessions.OPEN, max_entries=4))
    browser, _ = stage.session()
    owners, reviewer = stage.code(), stage.token("rita", rights="reviewer")
    for _ in range(10):
        # The rate of changes is another limit.
        stage.ticks.now += 1
        link = stage.client.post("/session/link", headers=reviewer).json()["url"]
        stage.browser().post("/session", json={"code": link.partition("#code=")[2]})
    opened = stage.browser().post("/session", json={"code": owners}).status_code
    assert (opened, browser.get("/memory/status").status_code) == (200, 200)


def test_links_of_one_reviewer_evict_none_of_anothers(stage):
    rita, rob = stage.token("rita", rights="reviewer"), stage.token("rob", rights="reviewer")
    link = stage.client.post("/session/link", headers=rob).json()["url"]
    for _ in range(10):
        stage.client.post("/session/link", headers=rita)
    opened = stage.browser().post("/session", json={"code": link.partition("#code=")[2]})
    assert (opened.status_code, opened.json()["principal"]) == (200, "reviewer:rob")
