"""What comes in at all, and what every answer carries."""

import gzip

import pytest
from http_stage import JSON, Stage

from keepward.errors import InvalidInput
from keepward.http import ServerOptions
from keepward.http.middleware import SECURITY_HEADERS, hosts_of


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    stage = Stage(tmp_path_factory.mktemp("edge"), writes_per_minute=0)
    yield stage
    stage.memory.close()


@pytest.fixture(scope="module")
def owner(stage):
    return stage.owner


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost:8321", "LOCALHOST:8321", "[::1]:8321"])
def test_the_server_answers_to_loopback_names_at_its_port(stage, host):
    assert stage.client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example:8321", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.example:8321", ""])
def test_the_server_answers_to_no_other_name(stage, host):
    answer = stage.client.get("/health", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "bad_host")


def test_two_host_names_are_refused(stage):
    answer = stage.client.get("/health", headers=[("Host", "127.0.0.1:8321"), ("Host", "evil.example")])
    assert answer.status_code == 421


def test_allowed_host_is_accepted_with_and_without_its_port():
    found = hosts_of(ServerOptions(behind_proxy=True, allow_hosts=("memory.example",)))
    assert {"memory.example", "memory.example:8321"} <= found


def test_server_on_all_interfaces_answers_only_allowed_hosts(tmp_path):
    found = hosts_of(ServerOptions(host="0.0.0.0", behind_proxy=True))
    assert found == {"localhost:8321", "127.0.0.1:8321", "[::1]:8321"}


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8321"])
def test_a_page_of_another_origin_cannot_call(stage, owner, origin):
    answer = stage.client.get("/memory/status", headers={**owner, "Origin": origin})
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")


def test_the_servers_own_page_calls(stage, owner):
    assert stage.client.get("/memory/status", headers={**owner, "Origin": "http://127.0.0.1:8321"}).status_code == 200


def test_an_origin_that_is_allowed_calls(tmp_path):
    stage = Stage(tmp_path, allow_origins=("https://console.example",))
    answer = stage.client.get("/memory/status", headers={**stage.owner, "Origin": "https://console.example"})
    stage.memory.close()
    assert answer.status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_browser_labels_as_from_another_site_is_refused(stage, owner, site):
    assert stage.client.get("/memory/status", headers={**owner, "Sec-Fetch-Site": site}).status_code == 403


def test_a_link_elsewhere_may_lead_to_the_page(stage):
    assert stage.client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_there_are_no_cors_headers_even_for_a_preflight(stage):
    headers = {"Origin": "http://127.0.0.1:8321", "Access-Control-Request-Method": "POST"}
    answer = stage.client.options("/memory/items", headers=headers)
    assert [name for name in answer.headers if name.startswith("access-control")] == []


ANSWERS = {
    "a page": ("GET", "/", {}),
    "an answer": ("GET", "/memory/status", {}),
    "a refusal": ("GET", "/memory/status", {"Authorization": "Bearer kw_x"}),
    "nowhere": ("GET", "/nowhere", {}),
    "another method": ("PUT", "/health", {}),
    "a broken route": ("GET", "/broken", {}),
    "another host": ("GET", "/health", {"Host": "evil.example"}),
    "too large": ("POST", "/memory/items", {"Content-Length": "99999999"}),
}


@pytest.mark.parametrize(("method", "path", "headers"), ANSWERS.values(), ids=ANSWERS)
def test_every_answer_carries_the_headers_that_keep_a_browser_safe(stage, owner, method, path, headers):
    answer = stage.client.request(method, path, headers={**owner, **headers})
    assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_scripts_and_styles_come_from_the_server_alone():
    assert "script-src 'self';" in SECURITY_HEADERS["Content-Security-Policy"]
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


BAD_JSON = {
    "not JSON": b"{",
    "not UTF-8": b'{"text": "\xff"}',
    "a byte order mark": b'\xef\xbb\xbf{"text": "a"}',
    "a lone surrogate": b'{"text": "\\ud800"}',
    "NUL": b'{"text": "a\\u0000b"}',
    "NaN": b'{"text": "a", "rest": NaN}',
    "a number out of range": b'{"text": "a", "rest": 1e999}',
    "an integer beyond 64 bits": b'{"text": "a", "number": 9223372036854775808}',
    "a name twice": b'{"text": "a", "text": "b"}',
    "33 levels": b'{"text": "a", "rest": ' + b"[" * 32 + b"]" * 32 + b"}",
    "100,000 closed levels": b"[" * 100_000 + b"]" * 100_000,
    "more after it": b'{"text": "a"} {}',
}


@pytest.mark.parametrize("body", BAD_JSON.values(), ids=BAD_JSON)
def test_what_is_not_plain_json_is_refused_with_400(stage, owner, body):
    answer = stage.client.post("/memory/items", content=body, headers={**owner, **JSON})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_json")


def test_32_levels_are_read(stage, owner):
    body = b'{"text": "deep enough", "rest": ' + b"[" * 31 + b"]" * 31 + b"}"
    assert stage.client.post("/memory/items", content=body, headers={**owner, **JSON}).status_code == 201


def test_an_escaped_pair_of_surrogates_is_one_character(stage, owner):
    answer = stage.client.post(
        "/memory/items", content=b'{"text": "Tea \\ud83c\\udf75 at nine"}', headers={**owner, **JSON}
    )
    assert answer.status_code == 201


TYPES = {
    "text": "text/plain",
    "another JSON": "application/merge-patch+json",
    "another charset": "application/json; charset=latin-1",
    "none": "",
}


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)
def test_a_body_comes_as_application_json_or_not_at_all(stage, owner, kind):
    answer = stage.client.post("/memory/items", content=b'{"text": "a"}', headers={**owner, "Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


SAYS = {
    "another charset": (b'{"text": "a"}', "application/json; charset=latin-1", "in UTF-8"),
    "a byte order mark": (b'\xef\xbb\xbf{"text": "a"}', "application/json", "begins with a byte order mark"),
}


@pytest.mark.parametrize(("body", "kind", "says"), SAYS.values(), ids=SAYS)
def test_invalid_body_is_reported_by_field_name(stage, owner, body, kind, says):
    answer = stage.client.post("/memory/items", content=body, headers={**owner, "Content-Type": kind})
    assert says in answer.json()["detail"]


def test_a_compressed_body_is_refused_as_compressed(stage, owner):
    headers = {**owner, "Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = stage.client.post("/memory/items", content=gzip.compress(b'{"text": "a"}'), headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (415, "send the body without Content-Encoding")


def test_a_charset_of_utf_8_may_be_named(stage, owner):
    headers = {**owner, "Content-Type": 'Application/JSON; charset="UTF-8"'}
    assert stage.client.post("/memory/items", content=b'{"text": "Named charset"}', headers=headers).status_code == 201


def test_caller_without_a_credential_learns_nothing_of_the_body(stage):
    assert stage.client.post("/memory/items", content=b"{", headers=JSON).status_code == 401


@pytest.mark.parametrize("path", ["/memory/items/%00", "/probe?tag=%00", "/memory/items/%ff", "/probe?tag=%c3%28"])
def test_an_address_with_nul_or_broken_utf_8_is_refused(stage, owner, path):
    answer = stage.client.get(path, headers=owner)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


def test_unknown_parameter_is_refused(stage, owner):
    answer = stage.client.get("/probe?limits=3", headers=owner)
    assert (answer.status_code, answer.json()["detail"]) == (400, "query: no parameter `limits`; did you mean `limit`?")


def test_a_parameter_that_appears_twice_is_refused(stage, owner):
    assert stage.client.get("/probe?limit=3&limit=4", headers=owner).status_code == 400


def test_a_parameter_that_takes_several_values_may_appear_twice(stage, owner):
    assert stage.client.get("/probe?tag=a&tag=b", headers=owner).status_code == 200


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_a_large_answer_is_compressed_for_whoever_accepts_it(stage, owner, coding):
    answer = stage.client.get("/openapi.json", headers={**owner, "Accept-Encoding": coding})
    assert answer.headers.get("content-encoding") == ("gzip" if coding == "gzip" else None)
    assert int(answer.headers["content-length"]) < len(answer.content) / (3 if coding == "gzip" else 1) + 1
    assert (answer.headers["vary"], answer.json()["openapi"]) == ("Accept-Encoding", "3.1.0")


def test_the_secret_of_a_session_is_never_compressed(stage):
    code = stage.app.state.serving.console_link("").partition("code=")[2]
    answer = stage.client.post("/session", json={"code": code}, headers={"Accept-Encoding": "gzip"})
    assert ("csrf" in answer.json(), "content-encoding" in answer.headers) == (True, False)


SECRET = "hunt" + "er2-needle"
NUMBER = 987654
ECHOES = {
    "a value": ("POST", "/memory/items", {"json": {"text": 5, "number": SECRET}}),
    "a name": ("POST", "/memory/items", {"json": {"text": "a", SECRET: 1}}),
    "a path": ("GET", f"/memory/items/{SECRET}", {}),
    "a proposal": ("GET", f"/memory/quarantine/{SECRET}", {}),
    "a proposal to decide": ("POST", f"/memory/quarantine/{SECRET}/reject", {"json": {"reason": "no"}}),
    "a job": ("POST", f"/memory/jobs/{SECRET}/run", {}),
    "a moment": ("GET", f"/memory/items?as_of={NUMBER}", {}),
    "a commit": ("GET", f"/memory/commits/{SECRET}", {}),
    "a receipt": ("GET", f"/memory/receipts/{SECRET}", {}),
    "a subject": ("POST", "/memory/erase/plan", {"json": {"subject": SECRET}}),
    "a path nowhere": ("GET", f"/{SECRET}", {}),
    "a parameter": ("GET", f"/probe?limit={SECRET}", {}),
    "a parameter's name": ("GET", f"/probe?{SECRET}=1", {}),
    "a cursor": ("GET", f"/probe?cursor={SECRET}", {}),
    "no JSON": ("POST", "/memory/items", {"content": SECRET.encode(), "headers": JSON}),
    "a scope": ("GET", "/memory/status", {"headers": {"Keepward-Scope": f"//{SECRET}"}}),
    "a key": ("POST", "/memory/items", {"json": {"text": "a"}, "headers": {"Idempotency-Key": f"{SECRET} x"}}),
}


@pytest.mark.parametrize(("method", "path", "sent"), ECHOES.values(), ids=ECHOES)
def test_an_error_repeats_nothing_of_what_was_sent(stage, owner, method, path, sent):
    sent = {**sent, "headers": {**owner, **sent.get("headers", {})}}
    answer = stage.client.request(method, path, **sent)
    repeated = SECRET in answer.text or str(NUMBER) in answer.text
    assert (400 <= answer.status_code < 500, repeated) == (True, False)


REFUSED = {
    "another host without TLS": {"host": "0.0.0.0"},
    "a name without TLS": {"host": "memory.example"},
    "open reads elsewhere": {"host": "0.0.0.0", "behind_proxy": True, "open_reads": True},
    "open reads behind a proxy": {"behind_proxy": True, "open_reads": True},
    "a certificate without its key": {"tls_cert": "cert.pem"},
    "a port that is none": {"port": 70_000},
    "a negative limit": {"body_limit": -1},
}


@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_served_safely_is_refused(options):
    with pytest.raises(InvalidInput):
        ServerOptions(**options).checked()


@pytest.mark.parametrize("options", [{"behind_proxy": True}, {"tls_cert": "c.pem", "tls_key": "k.pem"}], ids=str)
def test_with_tls_in_front_any_host_is_served(options):
    assert ServerOptions(host="0.0.0.0", **options).checked().secure


@pytest.mark.parametrize(("options", "url"), [
    ({}, "http://127.0.0.1:8321"),
    ({"host": "::1"}, "http://[::1]:8321"),
    ({"host": "0.0.0.0", "behind_proxy": True}, "http://127.0.0.1:8321"),
    ({"behind_proxy": True, "allow_hosts": ("memory.example",)}, "https://memory.example"),
    ({"tls_cert": "c", "tls_key": "k", "allow_hosts": ("memory.example",)}, "https://memory.example:8321"),
    ({"tls_cert": "c", "tls_key": "k"}, "https://127.0.0.1:8321"),
])  # fmt: skip
def test_the_link_names_the_server_as_a_browser_reaches_it(options, url):
    assert ServerOptions(**options).url == url


@pytest.mark.parametrize(
    "said",
    [
        [("Content-Length", "2"), ("Transfer-Encoding", "chunked")],
        [("Content-Length", "2"), ("Content-Length", "2")],
        [("Transfer-Encoding", "gzip, chunked")],
    ],
)
def test_a_body_whose_length_is_said_twice_ends_the_connection(stage, owner, said):
    headers = [*owner.items(), ("Content-Type", "application/json"), *said]
    answer = stage.client.post("/memory/items", headers=headers, content=b"{}")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    assert answer.headers["connection"] == "close"
