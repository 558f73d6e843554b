"""The comparison of memory systems, with a model that answers by rule."""

from __future__ import annotations

import base64
import json

import httpx2
import numpy as np
import pytest
from evals import compare_systems
from evals.compare_systems import portions, questions_of
from evals.memory_systems import SYSTEMS, Entry, Nothing
from evals.model_meter import Meter
from evals.recall_sets import Asked, Conversation, DataSet, Told

from keepward.embedding import choose_embedder
from support.chat_model import PROMPT_TOKENS, REPLY_TOKENS, ChatModel, chatting


def turn(speaker, number, text):
    return {"speaker": speaker, "dia_id": number, "text": text}


TALK = {
    "sample_id": "talk-1",
    "conversation": {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [turn("Ada", "D1:1", "I sold the red bicycle."), turn("Ben", "D1:2", "I teach chess.")],
        "session_2_date_time": "9:10 am on 9 May, 2023",
        "session_2": [turn("Ben", "D2:1", "What a day."), turn("Ada", "D2:2", "My boat is called Heron.")],
    },
    "qa": [
        {"question": "What is the boat of Ada called?", "answer": "Heron", "evidence": ["D2:2"], "category": 4},
        {"question": "What did Ada sell?", "answer": "bicycle", "evidence": ["D1:1"], "category": 1},
        {"question": "What did Ben buy?", "adversarial_answer": "a car", "evidence": [], "category": 5},
    ],
}


@pytest.fixture
def model():
    with chatting(ChatModel()) as served:
        yield served


@pytest.fixture
def compared(tmp_path, model, capsys):
    file = tmp_path / "talks.json"
    file.write_text(json.dumps([TALK]), "utf-8")
    results = tmp_path / "results.jsonl"

    def main(*more, systems="keepward,full,none"):
        given = ["--dataset", "locomo", "--data", str(file), "--url", model.url, "--model", "rule", "--json"]
        status = compare_systems.main(
            [*given, "--results", str(results), "--embedder", "hashed", "--systems", systems, *more]
        )
        printed = capsys.readouterr()
        return status, json.loads(printed.out)["systems"] if printed.out else printed.err

    main.results = results
    return main


def test_each_system_is_asked_the_same_and_judged_alike(compared):
    status, systems = compared()
    assert status == 0
    assert {name: (each["questions"], each["right"]) for name, each in systems.items()} == {
        "keepward": (2, 100),
        "full": (2, 100),
        "none": (2, 0),
    }


def test_right_answers_are_told_by_category(compared, model):
    model.reply = lambda body: ChatModel.reply(model, body) if "Heron" in str(body) else {"content": "WRONG"}
    _, systems = compared(systems="full")
    assert systems["full"]["categories"] == {"1": 0, "4": 100}


def test_a_question_without_an_answer_is_not_asked(compared, model):
    compared()
    assert not [body for body in model.asked if "What did Ben buy?" in str(body)]


def test_answer_and_judge_have_temperature_0_and_the_seed(compared, model):
    compared("--seed", "7", systems="none")
    assert {(body["temperature"], body["seed"]) for body in model.asked} == {(0, 7)}


def test_the_judge_can_be_another_model(compared, model):
    compared("--judge", "strict", systems="none")
    assert [body["model"] for body in model.asked] == ["rule", "strict"] * 2


def test_the_key_of_the_environment_goes_to_the_model(compared, model, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-mine")
    compared(systems="none")
    assert {body["authorization"] for body in model.asked} == {"Bearer key-of-mine"}


def test_tokens_read_are_those_that_the_model_reports(compared):
    _, systems = compared(systems="keepward")
    assert systems["keepward"]["tokens_read"] == {"mean": PROMPT_TOKENS, "p95": PROMPT_TOKENS}


def test_notes_stay_within_the_budget(compared):
    _, systems = compared("--budget", "60", systems="keepward")
    assert 0 < systems["keepward"]["notes_tokens"] <= 60


class Asking(Nothing):
    """Asks the model once for each portion that it is told, and once for each search."""

    def __init__(self, setup):
        self.url = setup.meter.url

    def tell(self, turns):
        body = {"model": "rule", "messages": [{"role": "user", "content": "x"}]}
        httpx2.post(f"{self.url}/chat/completions", json=body).raise_for_status()

    def notes(self, question):
        self.tell(())
        return ""


def test_calls_and_tokens_of_a_system_are_counted_by_the_meter(compared, monkeypatch):
    monkeypatch.setitem(SYSTEMS, "asking", Entry(open=Asking))
    _, systems = compared("--portion", "1", systems="asking")
    storing = systems["asking"]["storing"]
    assert (storing["turns"], storing["calls"]) == (4, 4)
    assert (storing["tokens_in"], storing["tokens_out"]) == (4 * PROMPT_TOKENS, 4 * REPLY_TOKENS)
    assert systems["asking"]["tokens_read"]["mean"] == 2 * PROMPT_TOKENS


class Broken(Nothing):
    def tell(self, turns):
        raise OSError("no room")


def test_a_system_that_fails_is_told_and_the_others_go_on(compared, monkeypatch):
    monkeypatch.setitem(SYSTEMS, "broken", Entry(open=Broken))
    status, systems = compared(systems="broken,full")
    assert (status, systems["broken"]["failed"], systems["full"]["right"]) == (1, 2, 100)
    assert "OSError: no room" in compared.results.read_text("utf-8")


def test_a_second_run_asks_nothing_again(compared, model):
    first = compared()
    asked = len(model.asked)
    assert compared() == first
    assert len(model.asked) == asked


def test_what_failed_is_asked_again_and_nothing_else(compared, model):
    model.statuses = [429]
    status, systems = compared(systems="full")
    assert (status, systems["full"]["failed"], systems["full"]["right"]) == (1, 1, 50)
    asked = len(model.asked)
    status, systems = compared(systems="full")
    assert (status, systems["full"]["failed"], systems["full"]["right"]) == (0, 0, 100)
    assert len(model.asked) == asked + 2


def test_a_line_that_was_cut_off_is_made_again(compared, model):
    compared(systems="full")
    text = compared.results.read_text("utf-8")
    compared.results.write_text(text[:-20], "utf-8")
    status, systems = compared(systems="full")
    assert (status, systems["full"]["right"], len(model.asked)) == (0, 100, 4 + 2)


def test_results_of_other_options_are_not_mixed(compared):
    compared(systems="none")
    status, says = compared("--seed", "2", systems="none")
    assert status == 2
    assert "another seed" in says


def test_a_judge_that_does_not_decide_is_a_failure(compared, model):
    model.reply = lambda _: {"role": "assistant", "content": "perhaps"}
    status, systems = compared(systems="none")
    assert (status, systems["none"]["failed"]) == (1, 2)


@pytest.mark.skipif(compare_systems.find_spec("mem0") is not None, reason="mem0 is installed here")
def test_a_package_that_is_missing_is_named_with_what_installs_it(compared):
    assert compared(systems="mem0,none") == (2, "not installed: pip install mem0ai\n")


def test_a_model_that_is_not_there_is_a_failure_of_each_question(compared, model):
    model.url = "http://127.0.0.1:9/v1"
    status, systems = compared(systems="none")
    assert (status, systems["none"]["failed"]) == (1, 2)


def test_a_portion_never_has_turns_of_two_sessions():
    told = [Told(id=str(n), text="x", session="a" if n < 3 else "b") for n in range(5)]
    assert [[each.id for each in turns] for turns in portions(told, 2)] == [["0", "1"], ["2"], ["3", "4"]]


def test_questions_are_drawn_by_the_seed():
    asked = tuple(Asked(id=str(n), text="?", category="1", evidence=frozenset(), answer="x") for n in range(50))
    data = [DataSet(name="d", conversations=(Conversation(name="c", told=(), asked=asked),))]

    def drawn(seed):
        return [each.id for each in questions_of(data, count=10, seed=seed)["c"]]

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(drawn(1)) == 10


def test_embeddings_are_those_of_the_embedder_in_both_forms(model):
    embedder = choose_embedder("hashed")
    wanted = embedder.embed(["a red boat"])[0]
    with Meter(model.url, "rule", key="", embedder=embedder, seed=1).served() as meter:
        for form in ("float", "base64"):
            body = {"input": ["a red boat"], "model": "x", "encoding_format": form}
            (item,) = httpx2.post(f"{meter.url}/embeddings", json=body).json()["data"]
            vector = (
                np.frombuffer(base64.b64decode(item["embedding"]), "<f4") if form == "base64" else item["embedding"]
            )
            assert np.allclose(vector, wanted)
