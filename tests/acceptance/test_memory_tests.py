"""Memory tests: what a context must contain, on the present state and on past ones."""

from __future__ import annotations

import pytest
from outcomes import committed_record

from keepward import Actor, InvalidInput, Memory, NotFound, Policy, Unauthorised
from support import tamper

DEPLOY = {"name": "target", "objective": "Where do we deploy?", "contains": "db-7"}


@pytest.fixture
def owner(tmp_path, clock):
    with Memory.open(
        tmp_path / "m.db", embedder=None, clock=clock, config_dir=tmp_path / "config", actor=Actor.operator("olga")
    ) as memory:
        memory.remember("The deploy target is db-7")
        yield memory


def failures(memory, **test):
    return memory.run_tests([{**DEPLOY, **test}])[0].failures


@pytest.mark.parametrize(("test", "says"), [
    ({}, ()),
    ({"contains": ["db-7", "deploy"]}, ()),
    ({"contains": ["db-7", "db-9", "DB-7"]}, ("missing: db-9", "missing: DB-7")),
    ({"lacks": "db-7"}, ("not allowed: db-7",)),
    ({"lacks": ["db-9"]}, ()),
    ({"max_lines": 1}, ()),
    ({"max_lines": 0}, ("1 line, at most 0",)),
    ({"max_tokens": 1}, None),
])  # fmt: skip
def test_each_condition_that_fails_has_a_sentence(owner, test, says):
    found = failures(owner, **test)
    assert found == says if says is not None else found[0].endswith("tokens, at most 1")


def test_a_query_tests_only_what_bears_on_it(owner):
    owner.remember("Ship by June", tier="core", key="mission")
    asked = {"name": "t", "lacks": "June"}
    both = owner.run_tests([{"objective": "Where do we deploy?", **asked}, {"query": "Where do we deploy?", **asked}])
    assert [result.passed for result in both] == [False, True]


@pytest.mark.parametrize("place", [{"user": "ana"}, {"scope": "/users/ana"}])
def test_a_test_reads_the_context_of_whom_it_names(owner, place):
    owner.user("ana").remember("Ana drinks sencha")
    tea = {"query": "What does Ana drink?", "contains": "sencha"}
    assert [result.passed for result in owner.run_tests([tea, {**tea, **place}])] == [False, True]


def test_a_test_runs_on_a_past_state_and_changes_no_stored_result(owner):
    owner.run_tests([DEPLOY], label="now")
    owner.forget(owner.list_memories()[0].id, reason="gone")
    assert failures(owner) == ("missing: db-7",)
    assert owner.run_tests([DEPLOY], as_of=1).passed == 1
    assert owner.status()["memory_tests"]["failing"] == ["target"]


def test_a_run_stores_no_receipt_and_counts_no_use(owner):
    owner.run_tests([DEPLOY])
    assert owner.receipts(kinds=["compile"]).items == ()
    assert owner.impact(memory=owner.list_memories()[0].id).contexts == ()


def test_status_shows_the_newest_run_to_those_who_see_the_store(owner):
    assert owner.status()["memory_tests"] is None
    owner.run_tests([DEPLOY, {**DEPLOY, "name": "other", "lacks": "db-7"}], label="agent.memory.yaml")
    shown = owner.status()["memory_tests"]
    assert (shown["label"], shown["by"], shown["passed"], shown["failed"]) == (
        "agent.memory.yaml",
        "operator:olga",
        1,
        1,
    )
    assert shown["failing"] == ["other"]
    token = owner.create_token("rita", rights="reviewer", scope="/agents/x").secret
    assert owner.with_token(token).status()["memory_tests"] is None


def test_a_run_that_cannot_be_stored_says_so(tmp_path, clock):
    given = {"embedder": None, "clock": clock, "config_dir": tmp_path / "config", "actor": Actor.operator("olga")}
    with Memory.open(tmp_path / "off.db", policy=Policy(enabled=False), **given) as off:
        run = off.run_tests([{"objective": "Where?", "lacks": "db-7"}])
        assert run.notes == ("the run is not stored: policy switches memory off",)
        assert off.status()["memory_tests"] is None


def test_an_erasure_deletes_a_stored_run_that_names_its_words(owner):
    owner.run_tests([{**DEPLOY, "name": "The deploy target is db-7", "lacks": "db-7"}])
    plan = owner.plan_erase(owner.list_memories()[0].id)
    owner.erase(plan.digest, owner.list_memories()[0].id)
    assert owner.status()["memory_tests"] is None


@pytest.mark.parametrize(("test", "says"), [
    ({"contians": "x"}, "did you mean `contains`"),
    ({"contains": 7}, "contains is a text or a list of texts"),
    ({"contains": ""}, "contains is a text or a list of texts"),
    ({"max_lines": -1}, "max_lines is an integer"),
    ({"max_tokens": True}, "max_tokens is an integer"),
    ({"purpose": "guess"}, "purpose is one of answer, act, core"),
    ({"query": "too"}, "either `objective` or `query`"),
    ({"user": "ana", "scope": "/"}, "either `scope`, or"),
    ({"user": "a/b"}, "the name of a user"),
    ({"contains": []}, "tests nothing"),
])  # fmt: skip
def test_a_wrong_test_is_refused_with_its_number_and_field(owner, test, says):
    with pytest.raises(InvalidInput) as refused:
        owner.run_tests([DEPLOY, {**DEPLOY, **test}])
    assert says in str(refused.value)
    assert says.startswith("the name") or "test 2" in str(refused.value)
    assert owner.status()["memory_tests"] is None


@pytest.mark.parametrize("tests", [[], ["x"], [None]])
def test_what_is_no_test_is_refused(owner, tests):
    with pytest.raises(InvalidInput):
        owner.run_tests(tests)


def test_an_unknown_state_is_refused(owner):
    with pytest.raises(NotFound):
        owner.run_tests([DEPLOY], as_of=99)


def test_agents_run_no_tests_and_a_token_reaches_its_own_scope_only(owner):
    with pytest.raises(Unauthorised):
        owner.as_actor(Actor.agent("claude")).run_tests([DEPLOY])
    reviewer = owner.with_token(owner.create_token("rita", rights="reviewer", scope="/agents/x").secret)
    with pytest.raises(Unauthorised):
        reviewer.run_tests([{**DEPLOY, "scope": "/users/ana"}])


def test_bisect_names_the_commit_after_which_a_test_fails(owner):
    for number in range(20):
        owner.remember(f"Station {number} sells maps of valley {number}")
    wrong = committed_record(owner.remember("The deploy target is db-3 now"))
    for number in range(12):
        owner.remember(f"Harbour {number} opens at {number} in winter")
    test = {**DEPLOY, "lacks": "db-3"}
    found = owner.bisect(test=test)
    assert (found.commit.commit.seq, "db-3" in found.before, "db-3" in found.after) == (22, False, True)
    assert wrong.id in {step.after.id for step in found.commit.steps}
    assert owner.bisect(test=test, since=5).commit.commit.seq == 22


@pytest.mark.parametrize(("args", "says"), [
    ({"test": DEPLOY}, "the test passes now"),
    ({"test": {**DEPLOY, "contains": "db-9"}}, "the test fails at the start too"),
    ({"test": DEPLOY, "contains": "db-7"}, "give one of these"),
    ({"test": DEPLOY, "query": "deploy"}, "a test has its own"),
    ({"contains": "db-7"}, "give the query"),
    ({}, "give one of these"),
])  # fmt: skip
def test_a_bisection_without_one_clear_condition_is_refused(owner, args, says):
    with pytest.raises(InvalidInput, match=says):
        owner.bisect(**args)


def test_a_damaged_core_block_fails_the_test_as_it_fails_the_context(owner):
    block = committed_record(owner.remember("Ship by June", tier="core", key="mission"))
    tamper.run(owner.status()["path"], tamper.BENT_BODY.format(block.id))
    (result,) = owner.run_tests([DEPLOY])
    assert (result.passed, result.text) == (False, "")
    assert result.failures
