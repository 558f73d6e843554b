"""Users of a file do not mix: each has a scope, or the caller names one for all, or the import asks."""

import json

import pytest

from keepward import Actor
from keepward.errors import InvalidInput
from keepward.interchange import load
from support import foreign

MEM0 = [
    {"id": "1", "memory": "Alice takes insulin", "hash": "a", "user_id": "alice"},
    {"id": "2", "memory": "Bob drinks oat milk", "hash": "b", "user_id": "bob"},
]
CHAT = [
    {"user_id": "alice", "messages": [{"role": "user", "content": "I take insulin"}]},
    {"user_id": "bob", "messages": [{"role": "user", "content": "I drink oat milk"}]},
]
RECORDS = [
    {"id": "1", "text": "Alice takes insulin", "user_id": "alice"},
    {"id": "2", "text": "Bob drinks oat milk", "user_id": "bob"},
]
ZEP = {
    "facts": [
        {"uuid": "1", "name": "TAKES", "fact": "Alice takes insulin", "user_id": "alice"},
        {"uuid": "2", "name": "DRINKS", "fact": "Bob drinks oat milk", "user_id": "bob"},
    ]
}
GROUPS = {
    "facts": [
        {**{k: v for k, v in each.items() if k != "user_id"}, "group_id": each["user_id"]} for each in ZEP["facts"]
    ]
}


def claude(*accounts):
    return [
        {
            "uuid": f"c-{account}",
            "name": "Talk",
            "account": {"uuid": account},
            "chat_messages": [{"uuid": f"m-{account}", "sender": "human", "text": f"I am {account}"}],
        }
        for account in accounts
    ]


def places(mem):
    return {(each.scope, each.subject) for each in mem.list_memories(within="/", limit=None)}


@pytest.mark.parametrize(
    ("rows", "named"), [(MEM0, "auto"), (CHAT, "auto"), (RECORDS, "records"), (ZEP, "auto")], ids=str
)
@pytest.mark.parametrize("actor", [Actor.operator(), Actor.agent("lyra")])
def test_each_user_of_a_file_has_a_scope(make_store, put, rows, named, actor):
    mem = make_store(actor=actor)
    done = load(mem, put("users.json", json.dumps(rows)), format=named)
    assert (done.committed, "each user has a scope: alice /users/alice, bob /users/bob" in done.notes) == (2, True)
    bob = mem.at(scope="/users/bob")
    assert [(each.scope, each.subject) for each in bob.list_memories()] == [("/users/bob", "bob")]
    assert "insulin" not in bob.context("What does Bob drink?").text
    assert mem.list_memories() == []


@pytest.mark.parametrize("column", ["user", "user_id", "userid", "User"])
def test_the_users_of_a_table_have_scopes(mem, put, column):
    path = put("crm.csv", f"id,text,{column}\n1,Takes insulin,alice\n2,Drinks oat milk,bob\n3,The shop opens at six,\n")
    note = "each user has a scope: alice /users/alice, bob /users/bob"
    assert note in load(mem, path, dry_run=True).notes
    assert note in load(mem, path).notes
    assert places(mem) == {("/users/alice", "alice"), ("/users/bob", "bob"), ("/", None)}


@pytest.mark.parametrize("rows", [MEM0, CHAT, ZEP, GROUPS], ids=str)
def test_a_named_user_gets_all_of_a_file(mem, put, rows):
    load(mem, put("users.json", json.dumps(rows)), user="ana")
    assert places(mem) == {("/users/ana", "ana")}


def test_a_users_scope_lies_below_the_handles(mem, put):
    load(mem.at(scope="/projects/shop"), put("users.json", json.dumps(MEM0)))
    assert {scope for scope, _ in places(mem)} == {"/projects/shop/users/alice", "/projects/shop/users/bob"}


def test_a_file_of_groups_asks_for_the_user(mem, put):
    with pytest.raises(InvalidInput, match=r"2 groups or accounts.*alice, bob.*--user NAME"):
        load(mem, put("groups.json", json.dumps(GROUPS)))
    assert mem.list_memories(within="/") == []


def test_an_export_of_two_chatgpt_accounts_asks_for_the_user(mem, tmp_path):
    for name in ("one", "two"):
        (tmp_path / "all" / name).mkdir(parents=True)
        (tmp_path / "all" / name / "user.json").write_text(
            json.dumps({"id": f"user-{name}", "email": "x@mail.example.org"})
        )
        (tmp_path / "all" / name / "conversations.json").write_text(json.dumps(foreign.chatgpt_export()))
    with pytest.raises(InvalidInput, match="user-one, user-two"):
        load(mem, tmp_path / "all")
    assert load(mem, tmp_path / "all", user="ana").failed == ()
    assert places(mem) == {("/users/ana", "ana")}


def test_several_accounts_of_a_claude_export_are_users(make_store, put):
    mem, other = make_store("one"), make_store("other")
    load(mem, put("conversations.json", json.dumps(claude("a-1"))))
    load(other, put("conversations.json", json.dumps(claude("a-1", "a-2"))))
    assert (places(mem), places(other)) == ({("/", None)}, {("/users/a-1", "a-1"), ("/users/a-2", "a-2")})


@pytest.mark.parametrize("user", ["+351 912 345 678", "x" * 300, "../c"])
def test_an_id_that_is_no_name_becomes_one(mem, put, user):
    done = load(mem, put("users.json", json.dumps([{**MEM0[0], "user_id": user}, MEM0[1]])))
    names = {name for _, name in places(mem)}
    assert (done.committed, len(names), "bob" in names, user in names) == (2, 2, True, False)
    assert mem.list_memories(within="/users", subject=min(names - {"bob"}))[0].text == "Alice takes insulin"


@pytest.mark.parametrize(("scope", "user"), [("/", "a b"), ("/", ".."), ("/users/alice", "bob")])
def test_a_user_that_cannot_be_meant_is_an_error(mem, put, scope, user):
    with pytest.raises(InvalidInput, match="user"):
        load(mem.at(scope=scope), put("users.json", json.dumps(MEM0)), user=user)
    assert mem.list_memories(within="/") == []


@pytest.mark.parametrize("actor", [Actor.operator(), Actor.agent("lyra")])
def test_facts_from_talks_are_about_their_user(make_store, put, actor):
    mem = make_store(actor=actor)
    said = [
        {"user_id": name, "messages": [{"role": "user", "content": f"Remember that my boat is called {boat}"}]}
        for name, boat in (("alice", "Kite"), ("bob", "Gull"))
    ]
    done = load(mem, put("talks.json", json.dumps(said)), facts=True)
    assert done.facts == {"committed": 2}
    for name in ("alice", "bob"):
        (fact,) = mem.at(scope=f"/users/{name}").list_memories(kinds=["fact"])
        assert (fact.scope, fact.subject) == (f"/users/{name}", name)


def test_an_agent_imports_facts_for_a_named_user(make_store, put):
    mem = make_store(actor=Actor.agent("lyra"))
    said = [{"role": "user", "content": "Remember that my boat is called Kite"}]
    path = put("msgs.json", json.dumps(said))
    assert load(mem, path, user="dora").facts == {}
    assert load(mem, path, user="dora", facts=True, subject="Dora").facts == {"committed": 1}
    (fact,) = mem.at(scope="/users/dora").list_memories(kinds=["fact"])
    assert (fact.text, fact.subject) == ("my boat is called Kite", "Dora")


def chat(*texts):
    return json.dumps([{"role": "user", "content": text} for text in texts])


@pytest.mark.parametrize("actor", [Actor.operator(), Actor.agent("lyra")])
def test_users_who_wrote_the_same_get_their_own_messages(make_store, tmp_path, actor):
    mem = make_store(actor=actor)
    for user, text in (("ana", "I live in Porto"), ("bo", "I live in Lyon")):
        (tmp_path / user).mkdir()
        path = tmp_path / user / "chat.json"
        path.write_text(chat(text, "Hello!", "Thanks"))
        first, again = load(mem, path, user=user), load(mem, path, user=user)
        assert (first.committed, again.duplicates) == (3, 3)
        found = mem.at(scope=f"/users/{user}").list_memories()
        assert {each.text for each in found} == {text, "Hello!", "Thanks"}


@pytest.mark.parametrize("actor", [Actor.operator(), Actor.agent("lyra")])
@pytest.mark.parametrize("name", ["chatgpt-export.zip", "mem0.json", "memory.jsonl", "notes.db"])
def test_one_file_is_imported_for_each_user_once(make_store, tmp_path, name, actor):
    foreign.written(tmp_path)
    mem = make_store(actor=actor)
    ana, bo, again = (load(mem, tmp_path / name, user=user) for user in ("ana", "bo", "bo"))
    assert (bo.committed, bo.quarantined, bo.duplicates) == (ana.committed, ana.quarantined, ana.duplicates)
    assert (bo.refused, again.committed, again.duplicates) == (0, 0, again.total)


def test_a_message_is_added_once_for_each_user_and_session(mem):
    said = [{"id": "m1", "role": "user", "content": "Hello!"}]
    for user, session in (("ana", "a"), ("bo", "a"), ("bo", "b")):
        handle = mem.at(scope=f"/users/{user}")
        outcomes = [handle.add(said, session=session).turns[0].outcome for _ in range(2)]
        assert outcomes == ["committed", "duplicate"]
    assert mem.at(scope="/users/bo").get("m1").scope == "/users/bo"


def test_the_erasure_of_one_user_leaves_the_import_of_another(mem, tmp_path):
    foreign.written(tmp_path)
    for user in ("ana", "bo"):
        load(mem, tmp_path / "memory.jsonl", user=user)
    bo = mem.at(scope="/users/bo")
    before, ana = bo.list_memories(limit=None), mem.at(scope="/users/ana")
    ana.erase(ana.plan_erase().digest)
    assert (bo.list_memories(limit=None), ana.list_memories()) == (before, [])
