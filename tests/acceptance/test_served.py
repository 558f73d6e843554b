"""The served store from outside: calls made up from the description of the API, with credentials that must not do."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import httpx2
import pytest
from sampled import Call, Sampler, operations

from keepward import Actor, Memory
from keepward.http import ServerOptions, create_app
from keepward.http.routes import RIGHTS
from support.clock import SteppingClock
from support.openapi import described

JSON = {"Content-Type": "application/json"}
BASE = "http://127.0.0.1:8321"
API = described()
CLOSED = [each for each in operations(API) if not each.public]
#: Calls of the frame that any token may make; what they tell is of the server and not of a store.
ANYBODY = {each.name for each in CLOSED if each.told["tags"][0] == "server"}
#: How many calls across tenants and scopes are made up; the goal of the project is 5,000.
CROSSINGS = int(os.environ.get("KEEPWARD_CROSSINGS", "5000"))
#: Stands in everything that is planted, and in nothing that is sent.
MARKER = "quokka" + "zanzibar"


@pytest.fixture(scope="module")
def harbour(tmp_path_factory):
    """One store that is served: memories, a proposal, a receipt, a blob, and tokens that hold or do not."""
    folder, clock = tmp_path_factory.mktemp("harbour"), SteppingClock()
    memory = Memory.open(
        folder / "memory.db", actor=Actor.operator("olga"), embedder="none", clock=clock, config_dir=folder / "home"
    )
    agent = memory.as_actor(Actor.agent("assistant"))
    ferry = memory.remember("The ferry leaves at six", tier="archival").records[0]
    memory.at(scope="/agents/afar").remember("A lamp burns", tier="archival", category="lamps")
    memory.remember("Carry people over", tier="core", key="mission")
    held = agent.remember("Carry parcels over", tier="core", key="mission", confidence=0.9).item
    issued = {
        "expired": memory.create_token("late", rights="owner", expires=timedelta(minutes=1)),
        "revoked": memory.create_token("gone", rights="owner"),
        "agent": memory.create_token("claude"),
        "reviewer": memory.create_token("rita", rights="reviewer"),
    }
    memory.revoke_token(issued["revoked"].token.id)
    clock.advance(timedelta(minutes=2))
    pool = {
        "any": ["x", "30d", "2026-03-01T09:00:00Z", "0", "f" * 64, "f" * 32, '"abc"', "/", "sha256:" + "0" * 64, "a_job"],
        "id": [ferry.id],
        "approve.id": [held.id],
        "amend.id": [held.id],
        "reject.id": [held.id],
        "reopen.id": [held.id],
        "ids": [ferry.id, held.id],
        "commit_id": ["1", "2"],
        "memory": [ferry.id],
        "expires": ["30d"],
        "can": ["read"],
    }  # fmt: skip
    app = create_app(memory, options=ServerOptions(writes_per_minute=0))
    secrets = {name: each.secret for name, each in issued.items()}
    secrets["owner"] = memory.owner_token().read_text().strip()
    yield SimpleNamespace(memory=memory, app=app, secrets=secrets, pool=pool)
    memory.close()


def made(harbour, found, seed=7):
    """Return a call of each operation with everything it needs."""
    sampler = Sampler(API, harbour.pool, seed)
    calls = [sampler.call(each, optional=0.0) for each in found]
    # The description has no words for either: exactly one parameter, a header that is needed and answered by 428.
    changed = {"impact": {"query": {"source": "web"}}, "approve": {"headers": {"If-Match": "*"}}}
    changed["amend"] = {"headers": {"If-Match": "*", **JSON}}
    return [replace(each, **changed.get(each.operation, {})) for each in calls]


def answers(app, calls, headers, query=""):
    """Make calls one after the other; return their answers in order."""

    async def make():
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
            return [await one(client, each) for each in calls]

    def one(client, call: Call):
        url = f"{call.url}{'&' if '?' in call.url else '?'}{query}" if query else call.url
        return client.request(call.method, url, content=call.body, headers={**call.headers, **headers})

    return asyncio.run(make())


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


WRONG = {
    "none": lambda _: {},
    "unknown": lambda _: bearer("kw_" + "x" * 43),
    "expired": lambda s: bearer(s["expired"]),
    "revoked": lambda s: bearer(s["revoked"]),
    "shortened": lambda s: bearer(s["owner"][:-1]),
    "lengthened": lambda s: bearer(s["owner"] + "x"),
    "of another scheme": lambda s: {"Authorization": f"Basic {s['owner']}"},
    "without a scheme": lambda s: {"Authorization": s["owner"]},
    "as a cookie": lambda s: {"Cookie": f"keepward-8321={s['owner']}"},
    "in a header of its own": lambda s: {"X-Api-Key": s["owner"]},
}
IN_QUERY = ("token", "access_token", "authorization", "api_key")


@pytest.mark.promise("C51", "C70", "C71", "C114", "Z49")
@pytest.mark.parametrize("credential", WRONG)
def test_no_operation_answers_to_a_wrong_credential(harbour, credential):
    assert accepted(harbour, WRONG[credential](harbour.secrets)) == []


@pytest.mark.promise("Z49")
@pytest.mark.parametrize("name", IN_QUERY)
def test_no_operation_answers_to_a_token_in_the_query(harbour, name):
    assert accepted(harbour, {}, f"{name}={harbour.secrets['owner']}") == []


def accepted(harbour, headers, query=""):
    """Return the operations that answered a call of nobody by anything but 401, or left a trace of it."""
    before, calls = harbour.memory.head, made(harbour, CLOSED)
    told = zip(calls, answers(harbour.app, calls, headers, query), strict=True)
    found = [call.operation for call, answer in told if answer.status_code != 401]
    return found if harbour.memory.head == before else [*found, "something was written"]


def test_the_rights_of_every_operation_are_reported():
    assert {each.name for each in CLOSED} - ANYBODY == set(RIGHTS)


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory):
    """Two tenants, and two agents in one of them, each with some of everything; one holds a token and is curious."""
    folder = tmp_path_factory.mktemp("neighbours")
    memory = Memory.open(
        folder / "memory.db", actor=Actor.operator("olga"), embedder="none", config_dir=folder / "home"
    )
    app = create_app(memory, options=ServerOptions(writes_per_minute=0))
    names: dict[str, list[str]] = {}
    for tenant, scope in (("harbour", "/agents/other"), ("abroad", "/"), ("abroad", "/agents/curious")):
        for name, found in planted(memory, app, tenant, scope).items():
            names.setdefault(name, []).extend(found)
    curious = memory.create_token("curious", tenant="harbour", scope="/agents/curious")
    own = memory.at(tenant="harbour", scope="/agents/curious").remember("Curious about piers", tier="archival")
    names["id"] += [own.records[0].id]
    yield SimpleNamespace(memory=memory, app=app, secret=curious.secret, names=names)
    memory.close()


def planted(memory, app, tenant, scope):
    """Leave the marker in every place there is, out of reach of the curious; return the names of those places."""
    here = memory.at(tenant=tenant, scope=scope)
    place = f"{tenant}{scope}".replace("/", "-")
    fields = {"tags": [MARKER], "subject": MARKER, "session": MARKER, "category": MARKER, "metadata": {"note": MARKER}}
    note = here.remember(f"Captain {MARKER} rows at {place}", tier="archival", reason=f"said {MARKER}", **fields)
    block = here.remember(f"Serve {MARKER} at {place}", tier="core", key="mission")
    keyed = here.remember(f"Berth {MARKER} at {place}", key="berth", kind="state")
    agent = memory.as_actor(Actor.agent("assistant")).at(tenant=tenant, scope=scope)
    held = agent.remember(f"Serve {MARKER} and more", tier="core", key="mission", confidence=0.9)
    told = here.context("who rows, and where is the berth?")
    blob = here.put_blob(f"picture of {MARKER} {place}".encode())
    here.remember(f"A picture at {place}", tier="archival", blob=blob.ref)
    token = memory.create_token(f"{MARKER}{len(place)}", tenant=tenant, scope=scope)
    records = [each.records[0].id for each in (note, block, keyed)]
    commits = [each.commit.id for each in (note, block, keyed)]
    receipts = [told.receipt.id, note.receipt.id, held.receipt.id]
    return {
        "id": [*records, held.item.id, token.token.id, *receipts],
        "ref": [blob.ref],
        "blob": [blob.ref],
        "commit_id": [*commits, str(note.commit.seq)],
        "commit": commits,
        "name": [*records, "berth", "mission"],
        "receipt": receipts,
        "other": receipts,
        "If-Match": ["*", f'"{held.item.digest}"', f'"{here.head}"'],
        "digest": [held.item.digest],
        **dict.fromkeys(("ids", "used", "ignored", "derived_from", "memory", "by", "aliases"), records),
    }


#: What is asked in queries and bodies: words of what was planted, but for the marker itself.
ASKED = {
    "any": ["captain", "who rows?", "30d", "2026-03-01T09:00:00Z", "0", "f" * 64, '"abc"', "/agents/other", "a_job"],
    "query": ["captain rows", "berth", "serve", "picture"],
    "objective": ["captain rows", "berth", "serve"],
    "text": ["I row as well", "The berth is taken", "Serve everybody"],
    "contains": ["Captain", "Berth"],
    "key": ["berth", "mission"],
    "scope": ["/agents/other", "/", "/agents/curious"],
    "tenant": ["abroad", "harbour"],
    "as_of": ["0", "1", "3", "2026-03-01T09:00:00Z"],
    "earlier": ["0", "1", "2"],
}
#: Its answer has no end; what it tells is the subject of tests/surfaces/test_http_routes_stream.py.
ENDLESS = {"events"}


@pytest.mark.proof
def test_nothing_leaks_across_tenants_and_scopes(neighbours):
    sampler = Sampler(API, {**ASKED, **neighbours.names}, seed=11)
    dice = random.Random(11)
    foreign = neighbours.memory.at(tenant="abroad"), neighbours.memory.at(tenant="harbour", scope="/agents/other")
    before = [state(each) for each in foreign]
    chosen = [each for each in operations(API) if each.name not in ENDLESS]
    calls = []
    for number in range(CROSSINGS):
        call = sampler.call(chosen[number % len(chosen)], optional=dice.choice((0.0, 0.2, 0.6)))
        moved = {"Keepward-Tenant": ["harbour", "abroad"], "Keepward-Scope": ASKED["scope"]}
        more = {name: dice.choice(values) for name, values in moved.items() if dice.random() < 0.25}
        calls.append(replace(call, headers={**call.headers, **more}))
    told = answers(neighbours.app, calls, bearer(neighbours.secret))
    statuses = Counter(answer.status_code for answer in told)
    leaks = [
        (call.operation, call.url, dict(call.headers), call.body, about(answer))
        for call, answer in zip(calls, told, strict=True)
        if MARKER.encode() in answer.content or MARKER in str(answer.headers)
    ]
    print(f"\n{CROSSINGS} calls across tenants and scopes: {dict(sorted(statuses.items()))}")
    assert leaks == []
    assert [state(each) for each in foreign] == before
    assert not any(status >= 500 for status in statuses)


def about(answer):
    """Return an answer's status and what stands around the marker."""
    at = answer.text.find(MARKER)
    return answer.status_code, answer.text[max(0, at - 100) : at + 60]


def state(handle):
    """Return every version of every memory that is at exactly a handle's place."""
    return sorted(
        (each.id, each.version)
        for each in handle.list_memories(limit=None, include_ended=True)
        if each.scope == handle.scope
    )


@pytest.mark.proof
def test_the_marker_is_where_the_crossings_expect_it(neighbours):
    owner = neighbours.memory.owner_token().read_text().strip()
    asked = Call(operation="list_memories", method="GET", path="/memory/items")
    (answer,) = answers(neighbours.app, [asked], {**bearer(owner), "Keepward-Tenant": "abroad"})
    assert MARKER in answer.text


# What such calls found once, each by itself.


def one(harbour, method, path, body=None, who="owner", **headers):
    """Make one call with a token that holds; return its answer."""
    call = Call(
        operation="", method=method, path=path, headers={**JSON, **headers}, body=body and json.dumps(body).encode()
    )
    return answers(harbour.app, [call], bearer(harbour.secrets[who]))[0]


def test_insert_without_text_adds_nothing(harbour):
    event = {"tier": "episodic", "key": "tide"}
    assert one(harbour, "POST", "/memory/items", {"text": "The tide was high", **event}).status_code == 201
    assert one(harbour, "POST", "/memory/items", {"text": " ", **event}).status_code == 422


def test_an_insert_at_a_taken_key_names_a_known_source(harbour):
    event = {"tier": "episodic", "key": "current"}
    assert one(harbour, "POST", "/memory/items", {"text": "The current was strong", **event}).status_code == 201
    assert one(harbour, "POST", "/memory/items", {"text": "Then weak", **event, "source": "sea"}).status_code == 400


def test_insert_at_a_used_key_has_every_field(harbour):
    event = {"tier": "episodic", "key": "wind"}
    assert one(harbour, "POST", "/memory/items", {"text": "The wind blew", **event}).status_code == 201
    assert one(harbour, "POST", "/memory/items", {"text": "It fell", **event, "aliases": [" "]}).status_code == 422


def test_an_item_that_builds_on_nothing_spoils_no_other(harbour):
    items = [{"text": "Gulls nest on the pier"}, {"text": "So do terns", "derived_from": ["nowhere"]}]
    told = one(harbour, "POST", "/memory/items/batch", {"items": items}).json()
    assert [each["outcome"] for each in told["outcomes"]] == ["committed", "refused"]


def test_a_session_is_one_line(harbour):
    body = {"reason": "x", "session": "a\x07b", "changes": [{"op": "insert", "text": "Eels swim"}]}
    assert one(harbour, "POST", "/memory/edit", body).status_code == 422


def test_an_empty_if_none_match_is_no_tag(harbour):
    path = f"/memory/items/{harbour.pool['id'][0]}"
    assert one(harbour, "GET", path, **{"If-None-Match": ""}).status_code == 400


def test_instant_that_is_no_commit_id_is_not_found(harbour):
    path = f"/memory/diff?earlier={harbour.pool['id'][0]}"
    assert one(harbour, "GET", path).status_code == 404


def test_a_small_share_is_a_number(harbour):
    assert one(harbour, "GET", "/memory/items?min_importance=1.1125369292536007e-308").status_code == 200


def test_status_names_no_invisible_scope_or_category(harbour):
    told = one(harbour, "GET", "/memory/status", who="agent").json()
    assert ("/agents/afar" in told["by_scope"], "lamps" in told["by_category"]) == (False, False)


def test_status_names_every_scope_and_category_to_the_owner(harbour):
    told = one(harbour, "GET", "/memory/status").json()
    assert ("/agents/afar" in told["by_scope"], "lamps" in told["by_category"]) == (True, True)


def test_the_description_names_the_cookie_of_this_server(harbour):
    app = create_app(harbour.memory, options=ServerOptions(port=4711))
    assert app.openapi()["components"]["securitySchemes"]["session"]["name"] == "keepward-4711"
