"""Runs of the recall evaluation."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from evals import recall
from evals.recall_report import by_category, tokens
from evals.recall_run import Answer, Pack, Run, differences, run
from evals.recall_sets import Asked, Conversation, DataSet, Told

from keepward.embedding.tokens import EstimateCounter


def line(question="c#0", *, ranked=("m1",), text="", latency_ms=1.0):
    packs = {1000: Pack(ids=("m1",), text=text, tokens=3)}
    return Answer(conversation="c", question=question, ranked=ranked, contexts=packs, latency_ms=latency_ms).line()


def test_a_line_of_a_run_file_has_the_agreed_fields():
    assert json.loads(line(text="t")) == {
        "conversation": "c",
        "question": "c#0",
        "ranked": ["m1"],
        "contexts": {"1000": {"ids": ["m1"], "text": "t"}},
        "latency_ms": 1.0,
    }


@pytest.mark.parametrize("other", [line(ranked=("m2",)), line(text="changed")])
def test_another_ranking_or_text_is_a_difference(other):
    assert differences([line()], [other]) == ["c#0"]


def test_a_missing_question_is_a_difference():
    assert differences([line(), line("c#1")], [line()]) == ["c#1"]


DAY = datetime(2025, 5, 1, 9, tzinfo=UTC)
TOLD = (
    Told(id="m0", text="The blue kayak hangs in the boathouse at the northern lake.", at=DAY),
    Told(id="m1", text="Grandmother's recipe for plum cake needs cardamom and rye flour.", at=DAY),
    Told(id="m2", text="The service key is " + "AKIA" + "HTLGMXGEDN73U55X", at=DAY),
)


@pytest.fixture(scope="module")
def data():
    asked = (
        Asked(id="c#0", text="Which spice goes into the plum cake?", category="all", evidence=frozenset({"m1"})),
        Asked(id="c#1", text="Where is the kayak?", category="all", evidence=frozenset({"m0"})),
        Asked(id="c#2", text="What is the service key?", category="all", evidence=frozenset({"m2"})),
    )
    return DataSet(name="small", conversations=(Conversation(name="c", told=TOLD, asked=asked),))


@pytest.fixture(scope="module")
def done(data):
    return run(data, embedder=None, counter=EstimateCounter(), budgets=(200,), parts=True)


def test_a_context_names_the_memories_in_it(done):
    assert "m1" in done.answers[0].contexts[200].ids


def test_what_a_gate_refused_is_named(done):
    assert [(name, why.split(":")[0]) for _, name, why in done.lost] == [("m2", "duplicate or refused")]


def test_without_an_embedder_the_words_are_the_complete_text(done):
    assert [answer.ranked for answer in done.parts["words"]] == [answer.ranked for answer in done.answers]


def test_a_second_run_is_the_same(data, done):
    again = run(data, embedder=None, counter=EstimateCounter(), budgets=(200,))
    assert differences([each.line() for each in done.answers], [each.line() for each in again.answers]) == []


def test_adversarial_questions_are_separate_from_the_total():
    asked = (
        Asked(id="c#0", text="?", category="4", evidence=frozenset({"m0"})),
        Asked(id="c#1", text="?", category="5", evidence=frozenset({"m0"})),
    )
    data = DataSet(name="s", conversations=(Conversation(name="c", told=TOLD, asked=asked),))
    answers = [Answer(conversation="c", question=each.id, ranked=("m0",) * (each.id == "c#0")) for each in asked]
    assert by_category(data, Run(answers=answers)).splitlines()[-1].startswith("| total | 1 | 100.0")


def test_the_context_without_a_budget_is_in_the_run_file(done):
    contexts = json.loads(done.answers[0].line())["contexts"]
    assert list(contexts) == ["200", "none"]
    assert "m1" in contexts["none"]["ids"]


def pack(ids, count):
    return Pack(ids=ids, text="", tokens=count)


def test_the_report_says_what_a_turn_costs_and_what_it_brings(data):
    answers = [
        Answer(
            conversation="c",
            question=f"c#{n}",
            ranked=(),
            contexts={200: pack(("m0", "m1", "m2"), 150)},
            plain=pack((f"m{n}",), 10 * n),
        )
        for n in range(3)
    ]
    rows = tokens(data, Run(answers=answers, quiet=[0] * 38 + [0, 7])).splitlines()[2:]
    assert rows == [
        "| no budget | 3 | 10.0 | 20 | 33.3 |",
        "| budget 200 | 3 | 150.0 | 150 | 100.0 |",
        "| small talk, no budget | 40 | 0.2 | 0 |  |",
    ]


def test_small_talk_brings_no_memory_into_a_context(done):
    assert set(done.quiet) == {0}


@pytest.fixture
def quick(data, monkeypatch):
    monkeypatch.setattr(recall.recall_sets, "own", lambda: [data])
    return ["--dataset", "own", "--embedder", "none", "--no-parts"]


def test_two_equal_runs_end_well(quick, tmp_path):
    files = ["--out", str(tmp_path / "one"), "--repeat", str(tmp_path / "two")]
    assert recall.main([*quick, *files]) == 0


def test_figures_come_as_one_json_object(quick, capsys):
    assert recall.main([*quick, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["sets"]
    assert (found["asked"], found["scored"], found["tokens"]["small talk, no budget"]["mean"]) == (3, 3, 0)
    assert found["scores"]["recall@10"] == pytest.approx(66.67)


@pytest.mark.parametrize("name", ["unread", "sealed"])
def test_held_back_sets_print_only_totals(name, data, monkeypatch, capsys):
    unread = replace(data, name=name)
    monkeypatch.setattr(recall.recall_sets, "assistant", lambda _: unread)
    recall.main(["--dataset", name, "--embedder", "none"])
    printed = capsys.readouterr().out
    assert f"| {name} |" in printed
    for each in unread.conversations:
        assert not [asked for asked in each.asked if asked.id in printed or asked.text in printed]
