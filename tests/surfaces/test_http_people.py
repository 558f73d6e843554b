"""Users, agents and projects over HTTP: by headers, for a proxy, and by the client."""

from __future__ import annotations

import itertools

import pytest
from http_fixtures import HttpTestServer

from keepward import Actor, Client, InvalidInput, Unauthorised


def texts(answer):
    return {each["text"] for each in answer.json()["items"]}


def test_headers_name_the_user_the_project_and_the_agent(world):
    proxy = world.bearer("proxy")
    for headers in ({"Keepward-User": "ana"}, {"Keepward-User": "bob"}, {"Keepward-Project": "shop"}):
        said = proxy.post("/memory/items", json={"text": f"This is of {headers}"}, headers=headers)
        assert said.status_code == 201
    both = {"Keepward-User": "ana", "Keepward-Project": "shop", "Keepward-Agent": "planner"}
    assert proxy.get("/memory/status", headers=both).json()["scope"] == "/projects/shop/users/ana"
    found = texts(proxy.get("/memory/items", headers=both))
    assert found == {"This is of {'Keepward-User': 'ana'}", "This is of {'Keepward-Project': 'shop'}"}
    assert proxy.get("/memory/users").json()["items"] == [
        {"name": "ana", "memories": 1},
        {"name": "bob", "memories": 1},
    ]
    assert proxy.get("/memory/projects").json()["items"] == [{"name": "shop", "memories": 1}]


def test_the_address_names_the_user_the_project_and_the_agent(world):
    app = world.bearer("app")
    query = {"user": "ana", "project": "shop", "agent": "planner"}
    said = app.post("/memory/items", params=query, json={"text": "The till jams on Mondays"})
    assert (said.status_code, texts(app.get("/memory/items", params={"user": "bob", "limit": 5}))) == (201, set())
    assert texts(app.get("/memory/items?limit=5&user=ana&project=shop")) == {"The till jams on Mondays"}
    assert app.get("/memory/status", params=query).json()["scope"] == "/projects/shop/users/ana"
    assert app.get("/memory/items", params={"user": "a/b"}).status_code == 400
    assert app.get("/memory/items?user=ana&user=bob").status_code == 400


def test_every_address_of_the_memory_documents_the_names_of_a_handle(world):
    named = [{"$ref": f"#/components/parameters/{name}"} for name in ("user", "agent", "project", "branch")]
    documented = {
        path
        for path, calls in world.api["paths"].items()
        for each in calls.values()
        if all(name in each.get("parameters", ()) for name in named)
    }
    assert documented == {path for path in world.api["paths"] if path.startswith("/memory/")} - {"/memory/import"}
    assert set(world.api["components"]["parameters"]) == {"user", "agent", "project", "branch"}


@pytest.mark.parametrize("name", ["user", "agent", "project"])
def test_the_address_cannot_add_to_the_names_of_a_proxy(world, name):
    proxy = world.bearer("proxy")
    for header in ("Keepward-User", "Keepward-Agent", "Keepward-Project"):
        answer = proxy.get("/memory/status", params={name: "bob"}, headers={header: "ana"})
        assert (answer.status_code, "not in both" in answer.json()["detail"]) == (400, True)


def test_a_mistyped_header_is_refused_and_stores_nothing(world):
    answer = world.bearer().post("/memory/items", json={"text": "Bob takes insulin"}, headers={"Keepward-Usr": "bob"})
    assert (answer.status_code, "no header keepward-usr" in answer.json()["detail"]) == (400, True)
    assert world.memory.list_memories() == []


def test_a_token_of_a_user_names_no_other_in_the_address(world):
    world.memory.user("bob").remember("Bob takes insulin")
    token = world.memory.create_token("phone", scope="/users/ana").secret
    answer = world.nobody.get("/memory/items", params={"user": "bob"}, headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, "insulin" in answer.text) == (403, False)


def test_a_call_cannot_leave_the_user_named_by_the_proxy(world):
    world.memory.user("bob").remember("Bob takes insulin")
    world.memory.user("ana").remember("Ana takes the ferry")
    proxy = world.bearer("proxy")
    for scope in ("/", "/users/bob", "/agents/x", "/users/bob/tasks/1"):
        headers = {"Keepward-User": "ana", "Keepward-Scope": scope}
        found = proxy.get("/memory/items", headers=headers)
        if scope != "/":
            # The user lies in no other place that a call may name.
            assert found.status_code == 403
            continue
        assert texts(found) == {"Ana takes the ferry"}
        asked = "/memory/items?scope=%2Fusers%2Fbob&below=true"
        assert "insulin" not in proxy.get(asked, headers=headers).text
        for place in ("/users/bob", "/projects/shop"):
            wrong = proxy.post("/memory/items", json={"text": "Gulls", "scope": place}, headers=headers).json()
            assert wrong["outcome"] == "refused"


def test_a_token_of_a_user_goes_to_no_other(world):
    world.memory.user("bob").remember("Bob takes insulin")
    ana = world.client(world.memory.user("ana").create_token("ana").secret)
    assert ana.get("/memory/status").json()["scope"] == "/users/ana"
    names = ("ana", "bob", "eve")
    for header, name in itertools.product(("Keepward-User", "Keepward-Project", "Keepward-Agent"), names):
        answer = ana.get("/memory/items", headers={header: name})
        reaches = header == "Keepward-Agent" or (header, name) == ("Keepward-User", "ana")
        assert answer.status_code == (200 if reaches else 403), (header, name)
        assert "insulin" not in answer.text


def test_a_token_lists_users_at_its_scope_and_below(world):
    owner = world.memory
    for handle in (owner.user("ana"), owner.user("bob"), owner.project("shop").user("ana"), owner.project("mill")):
        handle.remember(f"This is of {handle.scope}")

    def listed(token, headers=None):
        asked = (token.get(f"/memory/{each}", headers=headers).json()["items"] for each in ("users", "projects"))
        return [[(each["name"], each["memories"]) for each in found] for found in asked]

    tokens = {
        each.scope: world.client(each.create_token("x").secret) for each in (owner.user("ana"), owner.project("shop"))
    }
    assert listed(tokens["/users/ana"]) == [[("ana", 1)], []]
    assert listed(tokens["/projects/shop"]) == [[("ana", 1)], [("shop", 1)]]
    assert tokens["/users/ana"].get("/memory/users", headers={"Keepward-User": "bob"}).status_code == 403
    proxy = world.bearer("proxy")
    assert listed(proxy) == [[("ana", 2), ("bob", 1)], [("mill", 1), ("shop", 1)]]
    assert listed(proxy, {"Keepward-User": "bob"}) == [[("bob", 1)], []]


@pytest.mark.parametrize("headers", [{"Keepward-User": "a/b"}, {"Keepward-User": ""}, {"Keepward-Project": ".."}])
def test_a_header_with_a_wrong_name_is_refused(world, headers):
    assert world.owner.get("/memory/items", headers=headers).status_code == 400


def test_a_header_that_appears_twice_is_refused(world):
    twice = [("Keepward-User", "ana"), ("Keepward-User", "bob")]
    assert world.owner.get("/memory/items", headers=twice).status_code == 400


def test_a_stranger_names_no_user(tmp_path):
    world = HttpTestServer(tmp_path, open_reads=True)
    assert world.nobody.get("/memory/status").status_code == 200
    assert world.nobody.get("/memory/status", headers={"Keepward-User": "ana"}).status_code == 403
    world.memory.close()


def test_cursors_and_idempotency_keys_belong_to_one_user(world):
    proxy = world.bearer("proxy")
    for name in ("ana", "bob"):
        for number in range(3):
            headers = {"Keepward-User": name}
            proxy.post("/memory/items", json={"text": f"{name} says {number} to the crane"}, headers=headers)
    page = proxy.get("/memory/items?limit=1", headers={"Keepward-User": "ana"}).json()
    other = proxy.get(f"/memory/items?limit=1&cursor={page['cursor']}", headers={"Keepward-User": "bob"})
    assert other.status_code == 400
    key = {"Idempotency-Key": "the-same"}
    first = proxy.post("/memory/items", json={"text": "Tea at four"}, headers={"Keepward-User": "ana", **key})
    again = proxy.post("/memory/items", json={"text": "Tea at four"}, headers={"Keepward-User": "bob", **key})
    assert first.status_code == 201
    assert again.status_code == 422


@pytest.fixture
def client(world):
    with Client("http://127.0.0.1:8321", world.owner.headers["Authorization"][7:], transport=world.nobody) as client:
        yield client


def test_the_client_gives_the_same_handles(world, client):
    ana = client.user("ana", names=["Ana Silva", "Anita, the elder"])
    ana.remember("I moved to Porto")
    client.user("bob").remember("I moved to Rome")
    assert {each.text for each in ana.list_memories()} == {"I moved to Porto"}
    assert {each.subject for each in ana.list_memories()} == {"ana"}
    assert ana.scope == "/users/ana"
    assert ana.project("shop").scope == client.project("shop").user("ana").scope == "/projects/shop/users/ana"
    assert client.project("shop").agent("planner").actor.kind == "agent"
    assert ana.at(scope="/users/bob").scope == "/users/bob"
    assert [(each.name, each.memories) for each in client.users()] == [("ana", 1), ("bob", 1)]
    assert client.projects() == []
    plan = ana.erase()
    assert [each.text for each in plan.targets] == ["I moved to Porto"]
    ana.erase(plan.digest)
    assert [each.name for each in client.users()] == ["bob"]
    with pytest.raises(InvalidInput, match="u-1042"):
        client.user("ana@example.com")
    with pytest.raises(AttributeError, match="recall"):
        _ = client.search


def test_a_client_of_an_agent_erases_nothing(world):
    token = world.memory.create_token("planner").secret
    with Client("http://127.0.0.1:8321", token, transport=world.nobody) as client, pytest.raises(Unauthorised):
        client.user("ana").erase()
    assert world.memory.actor == Actor.operator("olga")


def test_a_read_says_which_scopes_below_were_not_read(world, client):
    world.memory.remember("Lunch is at noon")
    world.memory.user("ana").remember("Ana prefers tabs")
    told = 'in scopes below was not read (/users/ana); at(scope="/users/ana")'
    asks = (
        lambda reader: reader.get("/memory/search?query=tabs"),
        lambda reader: reader.get("/memory/items"),
        lambda reader: reader.get("/memory/items?sort=importance"),
        lambda reader: reader.post("/memory/compile", json={"objective": "tabs"}),
    )
    for ask in asks:
        assert [" ".join(ask(reader).json()["notes"]).count(told) for reader in (world.owner, world.bearer())] == [1, 0]
    for result in (client.recall("tabs"), client.list_memories(), client.context("tabs")):
        assert [told in note for note in result.notes].count(True) == 1


def test_a_name_in_another_case_is_said_at_a_read_and_a_write(world, client):
    world.memory.user("ana").remember("Ana prefers tabs")
    told, proxy = "/users/Ana and /users/ana differ only in upper and lower case", world.bearer("proxy")
    listed = proxy.get("/memory/items", headers={"Keepward-User": "Ana"}).json()
    wrote = proxy.post("/memory/items", json={"text": "Ana rows"}, headers={"Keepward-User": "Ana"}).json()
    assert [told in note for note in listed["notes"]] == [True]
    assert [told in reason["detail"] for reason in wrote["reasons"]].count(True) == 1
    outcome = client.user("Ana").remember("Ana has a boat")
    assert [told in reason.detail for reason in outcome.reasons].count(True) == 1
    with Client("http://127.0.0.1:8321", _token(world, "/users/Ana"), transport=world.nobody) as own:
        assert (own.recall("tabs").notes, own.remember("Ana sings").reasons) == (
            ("no embedder: found by words alone",),
            (),
        )


def _token(world, scope):
    return world.memory.create_token("own", scope=scope).secret
