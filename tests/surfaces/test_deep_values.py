"""Lists and objects nested hundreds of times and more, wherever a value is read: a clear error, and nothing stored."""

from __future__ import annotations

import pytest

from keepward import InvalidInput, Memory
from keepward.keys import import_key
from keepward.mcp.tools import remember

DEPTHS = (33, 3_000, 100_000)


def nested(depth: int, inner: object = 1) -> dict:
    value: object = inner
    for _ in range(depth):
        value = {"a": value}
    return value


def text_of(depth: int) -> str:
    return '{"a": ' * depth + "1" + "}" * depth


@pytest.fixture
def mem():
    with Memory.open(":memory:", embedder=None) as memory:
        yield memory


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", [dict, list, tuple])
def test_deep_metadata_is_refused_in_the_library(mem, depth, kind):
    value: object = 1
    for _ in range(depth):
        value = {"a": value} if kind is dict else kind([value])
    before = mem.remember("The pier is closed", key="pier", metadata={"a": 1}).record
    for write in (
        lambda: mem.remember("The pier is open", metadata={"a": value}),
        lambda: mem.revise(before.id, metadata={"a": value}, reason="x"),
        lambda: mem.draft().insert("The pier is open", metadata={"a": value}).propose(),
    ):
        with pytest.raises(InvalidInput, match="nested"):
            write()
    assert [each.metadata for each in mem.list_memories()] == [{"a": 1}]


def test_metadata_that_contains_itself_is_refused(mem):
    value: dict = {}
    value["a"] = [value, value]
    with pytest.raises(InvalidInput):
        mem.remember("The pier is open", metadata=value)


def test_metadata_of_32_levels_is_kept(mem):
    assert mem.remember("The pier is open", metadata=nested(32)).record.metadata == nested(32)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("make", [text_of, lambda depth: "[" * depth], ids=["closed", "open"])
def test_deep_json_is_a_usage_error_of_commands(run, depth, make):
    run("init")
    for command in (
        ("remember", "The pier is open", "--metadata", make(depth)),
        ("list", "--where", make(depth)),
        ("recall", "pier", "--where", make(depth)),
    ):
        ran = run(*command)
        assert (ran.code, "unexpected" in ran.err) == (2, False)
    assert run("list", "--json").json["items"] == []


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", ["vault.jsonl", "records.json", "chat.json", "agent.af"])
def test_deep_files_of_an_import_are_a_usage_error(run, tmp_path, depth, name):
    run("init")
    deep = text_of(depth)
    (tmp_path / name).write_text(
        {
            "vault.jsonl": f'{{"export": {deep}}}\n',
            "records.json": f'[{{"id": "a", "text": "The pier is open", "metadata": {deep}}}]',
            "chat.json": f'[{{"role": "user", "content": {deep}}}]',
            "agent.af": f'{{"agents": {deep}}}',
        }[name]
    )
    ran = run("import", name, *(("--format", "records") if name == "records.json" else ()))
    assert (ran.code != 0, "unexpected" in ran.err) == (True, False)
    assert run("list", "--json").json["items"] == []


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_values_of_addresses_and_bodies_are_refused(world, depth):
    for name in ("where", "limit", "cursor"):
        for value in (text_of(min(depth, 3_000)), "[" * min(depth, 20_000)):
            answer = world.owner.get("/memory/items", params={name: value})
            assert answer.status_code in {400, 414, 422}, (name, answer.text[:200])
    body = '{"text": "The pier is open", "metadata": ' + text_of(depth) + "}"
    answer = world.owner.post("/memory/items", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, world.memory.list_memories()) == (400, [])


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_arguments_of_tools_are_refused(mem, depth):
    for given in ({"text": "The pier is open", "tags": nested(depth)}, {"text": nested(depth)}):
        with pytest.raises(InvalidInput):
            remember.call(mem, given)
    answer = mem.call_tool("remember", text_of(depth))
    assert (answer.ok, mem.list_memories()) == (False, [])


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_file_of_a_key_is_no_key(tmp_path, depth):
    (tmp_path / "key").write_text(text_of(depth))
    with pytest.raises(InvalidInput, match="not a key"):
        import_key(tmp_path / "key", "x", config_dir=tmp_path / "home")
