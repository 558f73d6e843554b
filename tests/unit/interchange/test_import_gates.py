import pytest

from keepward.core.principals import Actor
from keepward.errors import InvalidInput
from keepward.interchange import load

#: A conversation between two named people, each turn known by an id of the file's own.
TALK = [
    {"role": "user", "name": "Mira", "id": "D1:1", "content": "I started pottery in March."},
    {"role": "user", "name": "Joel", "id": "D1:2", "content": "Lovely! Thanks!"},
    {"role": "user", "name": "Joel", "id": "D1:3", "content": "Lovely! Thanks!"},
]


@pytest.fixture
def old_vault(put):
    return put(
        "vault.jsonl",
        [
            {"id": "00000000000a", "text": "The mission is calm software", "scope": "shared", "version": 1},
            {"id": "00000000000b", "text": "Atlas, then Borealis", "scope": "shared", "tier": "register",
             "topic_id": "projects", "version": 1},
            {"id": "00000000000c", "text": "Orion met the auditors", "scope": "orion", "tier": "log", "version": 1},
            {"id": "00000000000d", "text": "The archive moved to Porto", "scope": "shared", "version": 1},
        ],
    )  # fmt: skip


def counts(done):
    return (done.total, done.committed, done.duplicates, done.quarantined, done.refused, len(done.failed))


def test_a_conversation_is_one_commit(mem, put):
    load(mem, put("t.jsonl", TALK))
    assert len(mem.log()) == 1


@pytest.mark.parametrize("actor", [Actor.operator(), Actor.agent(), Actor.importer()])
def test_importing_a_conversation_again_gives_duplicates(make_store, put, actor):
    store, path = make_store(actor=actor), put("t.jsonl", TALK)
    load(store, path)
    assert counts(load(store, path)) == (3, 0, 3, 0, 0, 0)


def test_a_log_that_grew_brings_only_what_is_new(mem, put):
    rows = [{"role": "user", "content": text} for text in ("one", "two", "two")]
    load(mem, put("log.jsonl", rows))
    assert counts(load(mem, put("log.jsonl", [*rows, {"role": "user", "content": "three"}]))) == (4, 1, 3, 0, 0, 0)


def test_message_inserted_into_a_file_is_the_only_new_one(mem, put):
    rows = [{"role": "user", "content": text} for text in ("one", "two", "three")]
    load(mem, put("log.jsonl", rows))
    done = load(mem, put("log.jsonl", [rows[0], {"role": "user", "content": "and a half"}, *rows[1:]]))
    assert counts(done) == (4, 1, 3, 0, 0, 0)


def test_a_redacted_message_is_known_again(mem, put):
    path = put("log.jsonl", [{"role": "user", "content": "Write to ines.silva@mail.example.org soon"}])
    load(mem, path)
    assert counts(load(mem, path)) == (1, 0, 1, 0, 0, 0)


def test_a_forgotten_memory_is_not_revived_by_its_file(mem, put):
    path = put("notes.md", "- Tea, not coffee\n")
    load(mem, path)
    mem.forget(mem.list_memories()[0].id, reason="no longer")
    before = mem.list_memories()
    load(mem.as_actor(Actor.agent()), path)
    assert mem.list_memories() == before


def test_lasting_lines_of_a_legacy_vault_wait_as_one_proposal(make_store, old_vault):
    store = make_store(actor=Actor.importer())
    load(store, old_vault)
    assert [len(item.steps) for item in store.pending()] == [3]


def test_one_refused_line_does_not_hold_back_its_batch(make_store, put, made_up_key):
    rows = [
        {"id": f"{number:012x}", "text": text, "scope": "shared", "version": 1}
        for number, text in enumerate(["The mission is calm software", f"key {made_up_key}", "Porto has the archive"])
    ]
    done = load(make_store(actor=Actor.importer()), put("vault.jsonl", rows))
    assert (done.quarantined, [number for number, _ in done.refusals]) == (2, [2])


def test_line_that_repeats_a_memory_is_reported(mem, put):
    mem.remember("prefers tabs", tier="archival", kind="fact")
    done = load(mem, put("notes.md", "- prefers tabs\n"))
    assert done.notes == ("1 say what another memory says already and were not stored",)


def test_a_cut_file_is_an_error_and_nothing_is_stored(mem, put):
    with pytest.raises(InvalidInput, match="cut"):
        load(mem, put("log.jsonl", '{"role":"user","content":"a"}\n{"role":"us'))
    assert mem.log(limit=1) == []
