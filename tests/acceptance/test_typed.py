"""What a person types is checked: by mypy and pyright before it runs, and by the library when it does."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import json
import pickle
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pytest

from keepward import Actor, AsyncMemory, Client, Committed, Insert, InvalidInput, Memory, NotFound, Policy, Tier
from keepward.core import change
from keepward.draft import Draft
from keepward.types import CHOICES

ROOT = Path(__file__).parents[2]
#: Each line marked so has to be found wrong, and no other.
WRONG = """
from keepward import AsyncMemory, Client, Memory, Tier

mem = Memory.open(":memory:")
mem.remember("a", teir="core")  # wrong
mem.remember("a", tier="archivall")  # wrong
mem.remember("a", confidence="high")  # wrong
mem.revise("a", reason="b", tag=["x"])  # wrong
mem.append("a", "b", reason="c", confidence="high")  # wrong
mem.merge(["a"], "b", reason="x", tierr="archival")  # wrong
mem.remember("a", tier="archival", kind="fact", tags=["x"], ttl=5)
mem.recall("a", purpose="answr")  # wrong
mem.list_memories(tiers="core")  # wrong
mem.list_memories(kinds=["fakt"], sort="age")  # wrong
mem.context("a", format="html")  # wrong
mem.recall("a", tiers=["core", Tier.EPISODIC], kinds=("fact",), order="fused")
with mem.draft(reason="x") as d:
    d.insert("x", tier="arch")  # wrong
    d.replace("x", tagz=[])  # wrong
    d.move("x", tier="cor")  # wrong
remote = Client("http://127.0.0.1:8321", "token")
remote.remember("a", tier="archivall")  # wrong


async def main() -> None:
    async with AsyncMemory.open("x.db") as m:
        out = await m.remember("a", tier="archival")
        if out.record:
            print(out.id, out.record.text)
        await m.remember("a", tier="archivall")  # wrong
        await m.revise("a", reason="b", tag=["x"])  # wrong
        async with m.draft(reason="x") as d:
            await d.insert("x", tier="arch")  # wrong
"""


def wrong_lines() -> set[int]:
    return {n for n, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")}


@pytest.fixture
def samples(tmp_path: Path) -> list[Path]:
    """Return the samples of the README, in one file after the chat API that they call."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    readme = tmp_path / "readme.py"
    readme.write_text(
        "\n".join(["def chat(messages: list[dict[str, str]]) -> str:\n    raise NotImplementedError\n", *blocks])
    )
    (tmp_path / "wrong.py").write_text(WRONG)
    return [readme]


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    return done.stdout


@pytest.mark.slow
def test_mypy_accepts_the_readme_and_finds_every_error(samples: list[Path], tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = True\nmypy_path = {ROOT / 'src'}\n")
    names = [each.name for each in samples]
    told = run(tmp_path, "mypy", "--follow-imports=silent", "--no-error-summary", *names, "wrong.py")
    found = [line for line in told.splitlines() if ": error:" in line]
    assert {int(line.split(":")[1]) for line in found if line.startswith("wrong.py")} == wrong_lines()
    assert [line for line in found if not line.startswith("wrong.py")] == []


@pytest.mark.proof
@pytest.mark.skipif(importlib.util.find_spec("basedpyright") is None, reason="basedpyright is in the proof group")
def test_pyright_accepts_the_readme_and_finds_every_error(samples: list[Path], tmp_path: Path) -> None:
    config = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT / "src")], "include": ["."]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    told = run(tmp_path, "basedpyright", "--outputjson", "--pythonpath", sys.executable)
    found = [each for each in json.loads(told)["generalDiagnostics"] if each["severity"] == "error"]
    slips = [each for each in found if each["file"].endswith("wrong.py")]
    assert {each["range"]["start"]["line"] + 1 for each in slips} == wrong_lines()
    assert [each for each in found if each not in slips] == []


def test_type_checker_knows_exactly_the_exported_names() -> None:
    for name, known in CHOICES.items():
        hint = getattr(change, "".join(part.title() for part in name.split("_")) + "Name")
        literals = next((each for each in get_args(hint) if get_args(each)), hint)
        assert get_args(literals) == tuple(map(str, known)), name


@pytest.mark.parametrize(
    ("kind", "method", "beside"),
    [
        (change.Insert, Memory.remember, {"id"}),
        (change.Insert, Memory.merge, {"id"}),
        (change.Insert, Draft.insert, {"id"}),
        (change.Replace, Memory.revise, {"id"}),
        (change.Replace, Memory.amend, {"id"}),
        (change.Replace, Draft.replace, {"id"}),
        (change.Append, Memory.append, {"id"}),
        (change.Append, Draft.append, {"id"}),
    ],
)
def test_an_operation_takes_every_field_of_its_change(kind: Any, method: Any, beside: set[str]) -> None:
    taken = inspect.signature(method).parameters
    fields = {each.name: each.default for each in msgspec.structs.fields(kind) if each.name not in beside}
    assert fields.keys() <= taken.keys()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"teir": "core"}, "no argument `teir`; did you mean `tier`?"),
        ({"tier": "archivall"}, "unknown tier: did you mean archival? use one of core"),
        ({"tier": ["core"]}, "tier is a text"),
        ({"source": "user_mesage"}, "did you mean user_message?"),
        ({"sensitivity": "secret"}, "use one of normal, sensitive"),
        ({"confidence": "high"}, "confidence is a number"),
        ({"consent": "yes"}, "consent is True or False"),
        ({"metadata": {1: "a"}}, "metadata is a JSON object"),
        ({"tags": "one"}, "tags is a list of texts"),
        ({"tags": None}, "tags is a list of texts"),
        ({"evidence": [5]}, "evidence is a list of texts"),
        ({"occurred_at": 5}, "occurred_at is an aware datetime"),
        ({"occurred_at": "yesterday"}, "not an instant"),
        ({"scope": 5}, "scope is a text"),
        ({"ttl": {}}, "ttl: not a duration"),
        ({"scope": "ana@example"}, "8 segments of 1 to 64 ASCII letters, digits and `. _ -`"),
        ({"id": "mine"}, "the store assigns ids"),
    ],
)
def test_unaccepted_argument_is_an_error_with_a_suggestion(mem: Memory, fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        mem.remember("The ferry leaves at six", **fields)
    assert says in str(caught.value)
    with pytest.raises((InvalidInput, TypeError)), mem.draft(reason="two") as draft:
        draft.insert("The ferry leaves at six", **fields)
    assert mem.list_memories() == []


@pytest.mark.parametrize(
    "fields",
    [{"tag": ["a"]}, {"tags": None}, {"confidence": "high"}, {"source": "webb"}, {"ttl": "soon"}, {"kind": "fact"}],
)
def test_an_edit_takes_its_own_fields_alone(mem: Memory, fields: dict[str, Any]) -> None:
    out = mem.remember("The ferry leaves at six", tier="archival")
    with pytest.raises(InvalidInput):
        mem.revise(str(out.id), reason="again", **fields)
    with pytest.raises(InvalidInput):
        mem.append(str(out.id), "and at nine", reason="again", **fields)


def test_every_outcome_has_the_same_attributes(mem: Memory) -> None:
    done = mem.remember("The ferry leaves at six", tier="archival")
    again = mem.remember("The ferry leaves at six", tier="archival")
    held = mem.remember("Ship it", tier="core", key="mission", confidence=0.9)
    refused = mem.remember("The ferry leaves", confidence=2.0)
    assert isinstance(done, Committed)
    assert done.commit.id == mem.log()[-1].commit.id
    assert [each.ok for each in (done, again, held, refused)] == [True, True, False, False]
    assert [each.id for each in (done, again, refused)] == [done.records[0].id, done.records[0].id, None]
    assert held.item is not None
    assert (held.id, held.record, held.records, held.commit) == (held.item.steps[0].after.id, None, (), None)
    assert [each.item for each in (done, again, refused)] == [None] * 3
    assert (refused.record, refused.records, refused.commit) == (None, (), None)
    assert (done.record, again.records[0].id) == (done.records[0], done.id)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda mem: mem.recall("x", kinds=["rul"]), "unknown kind: did you mean rule?"),
        (lambda mem: mem.list_memories(tiers=["archivall"]), "unknown tier: did you mean archival?"),
        (lambda mem: mem.recall("x", tiers="archival"), "tiers is a list of texts"),
        (lambda mem: mem.recall("x", purpose="awnser"), "did you mean answer?"),
        (lambda mem: mem.recall("x", min_importance="high"), "min_importance is a number"),
        (lambda mem: mem.recall("x", limit="ten"), "limit is a whole number, not str"),
        (lambda mem: mem.recall(5), "query is a text, not int"),
        (lambda mem: mem.context("x", format="markdwn"), "did you mean markdown?"),
        (lambda mem: mem.create_token("x", rights="reviwer"), "did you mean reviewer?"),
        (lambda mem: mem.create_token("x", expires="soon"), "not a duration"),
        (lambda mem: mem.run_job("expre"), "did you mean expire?"),
        (lambda mem: mem.remember_many(["a"], mode="atomci"), "did you mean atomic?"),
        (lambda _: Policy(jobs={"expre": "1h"}), "did you mean expire?"),
        (lambda _: Policy(enabled="no"), "policy.enabled takes bool"),
        (lambda _: Policy(when_full="drop"), "policy.when_full takes Literal['archive', 'refuse']"),
        (lambda _: Policy(least_trust={"answer": "internet"}), "policy.least_trust takes Mapping[str, Trust]"),
        (lambda _: Policy(pending_limit=-1), "no number below 0"),
        (lambda _: Actor.user("ana\nsystem:"), "an actor has a name: a line"),
        (lambda _: Memory.open("mysql://host/memory"), "a file or a postgresql:// address"),
        (lambda _: Memory.open(":memory:", embedder="hased"), "did you mean hashed?"),
        (lambda _: Memory.open(":memory:", embedder=len), "embedder is an object with a method `embed`"),
        (lambda _: Memory.open(":memory:", clock=datetime.now), "clock is an object with a method `now`"),
        (lambda _: Memory.open(":memory:", redactor="names"), "no plug-in of keepward.redactors is installed"),
    ],
)
def test_unknown_name_is_never_an_empty_answer(owner: Memory, ask: Any, says: str) -> None:
    with pytest.raises((InvalidInput, NotFound)) as caught:
        ask(owner)
    assert says in str(caught.value)
    assert owner.list_memories() == []


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda mem: mem.get(Insert(id="a", text="b")), "memory_id is a text, not Insert"),
        (lambda mem: mem.recall("x", limit=None), "limit is a whole number, not None"),
        (lambda mem: mem.recall("x", receipt="no"), "receipt is True or False, not str"),
        (lambda mem: mem.recall("x", within=5), "within is a text, not int"),
        (lambda mem: mem.list_memories(as_of=1.5), "as_of is a commit's number or id"),
        (lambda mem: mem.list_memories(since="yesterday"), "since is not an instant: use ISO 8601"),
        (lambda mem: mem.list_memories(until=datetime(2026, 1, 1)), "until is an aware datetime"),  # noqa: DTZ001
        (lambda mem: mem.add(None), "messages is a list, not None"),
        (lambda mem: mem.add([{"role": "user", "content": "hi"}], session=5), "session is a text, not int"),
        (lambda mem: mem.forget("x", reason=None), "reason is a text, not None"),
        (lambda mem: mem.archive("x", reason="y", if_version="1"), "if_version is a whole number, not str"),
        (
            lambda mem: mem.archive("x", reason="y", if_version=2**60),
            "if_version is the number of a version, such as 3",
        ),
        (lambda mem: mem.remember("x", key="y", if_version=-1), "if_version is the number of a version, such as 3"),
        (lambda mem: mem.log(before=2**60), "before is the number of a commit, such as 120"),
        (lambda mem: mem.bisect("x", contains="y", since=-1), "since is the number of a commit, such as 120"),
        (lambda mem: mem.show(2**60), "commit is a commit's number, its id, or the first characters of its id"),
        (lambda mem: mem.propose([5], reason="x"), "changes are a list of Insert(...)"),
        (lambda mem: mem.remember_many(["a"], batch=0), "batch is at least 1"),
        (lambda mem: mem.approve_many(None), "items is a list, not None"),
        (lambda mem: mem.plan_erase(5), "ids is a list of texts, not int"),
        (lambda mem: mem.at(scope=5), "unknown scope"),
        (lambda mem: mem.at(scope="users/ana"), "starts with a slash: /users/ana"),
        (lambda mem: mem.at(tenant=5), "a tenant is 1 to 128 letters"),
        (lambda mem: mem.as_actor("orion"), "an actor is, for example, Actor.user('ana')"),
    ],
)
def test_argument_of_another_type_is_named_and_nothing_stored(owner: Memory, ask: Any, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ask(owner)
    assert says in str(caught.value)
    assert owner.head == "0:" + "0" * 16
    assert owner.verify().ok


def test_no_file_is_named_after_what_is_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="store is a path"):
        Memory.open(b"memory.db")  # type: ignore[arg-type]
    assert [*tmp_path.iterdir()] == []


def test_numpy_numbers_enums_and_iterators_equal_plain_values(owner: Memory) -> None:
    out = owner.remember("Ana prefers tabs", confidence=np.float32(0.5), subject=Tier.CORE, tier=np.str_("archival"))
    assert out.record is not None
    assert (out.record.confidence, type(out.record.subject), out.record.subject) == (0.5, str, "core")
    assert len(owner.recall("tabs", limit=np.int64(3), tiers=[Tier.ARCHIVAL])) == 1
    assert [len(owner.list_memories(tiers=iter([tier]))) for tier in ("archival", "core")] == [1, 0]
    assert owner.verify().ok


def test_a_handle_shows_where_it_is_and_no_token(owner: Memory) -> None:
    assert repr(owner.at(scope="/agents/orion")).endswith("tenant=default scope=/agents/orion actor=operator:olga>")
    client = Client("http://127.0.0.1:8321", "kw_" + "a" * 43, tenant="acme")
    assert repr(client) == "<Client http://127.0.0.1:8321 tenant=acme scope=None>"
    assert repr(AsyncMemory(owner)).startswith("<AsyncMemory ")


def test_results_and_policy_survive_pickling(owner: Memory) -> None:
    owner.remember("Ana prefers tabs", metadata={"stars": 4})
    for value in (owner.recall("tabs"), owner.context("tabs"), owner.facets(), Policy(jobs={"expire": "1h"})):
        assert pickle.loads(pickle.dumps(value)) == value == copy.deepcopy(value)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda mem: mem.recall("tabs", 3), "recall takes query by position, the rest by name"),
        (lambda mem: mem.recall("tabs", lmit=3), "no argument `lmit`; did you mean `limit`?"),
        (lambda mem: mem.remember(), "remember needs text"),
        (lambda mem: mem.recall("tabs", scope="/app"), 'it is that of the handle: memory.at(scope="'),
        (pickle.dumps, "open the store, or create a client, in each process"),
    ],
)
def test_malformed_call_is_answered_with_the_correct_form(mem: Memory, call: Any, says: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(mem)
    assert says in str(caught.value)


def test_partial_tier_table_of_a_policy_preserves_other_defaults() -> None:
    policy = Policy(text_limit={"core": 100}, access={"core": "append"})
    assert dict(policy.text_limit) == {**Policy().text_limit, Tier.CORE: 100}
    with Memory.open(":memory:", policy=policy) as memory:
        assert memory.remember("Ana prefers tabs").outcome == "committed"
