"""Plug-ins of another distribution, chosen by name: in Python, and in the settings of the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from keepward import Actor, InvalidInput, Memory, ModelUnavailable

SOURCE = """
import numpy as np
from keepward.core.commit import Reason
from keepward.core.messages import Fact
from keepward.gates.gate_types import Quarantine


class Letters:
    id, dim = "letters:26", 26

    def __init__(self, weight="1"):
        self.weight = float(weight)

    def embed(self, texts):
        found = np.array([[t.lower().count(chr(97 + n)) * self.weight for n in range(26)] for t in texts], np.float32)
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)


class Shortest:
    id = "shortest"

    def rerank(self, query, texts):
        return [1 / (1 + len(text)) for text in texts]


class Wrong:
    id = "wrong"

    def __init__(self, scores):
        self.scores = scores

    def rerank(self, query, texts):
        return {"too few": [0.5], "too large": [2.0] * len(texts), "no numbers": ["high"] * len(texts)}[self.scores]


class Birthdays:
    id = "birthdays"

    def extract(self, turns):
        return [Fact(text=each.text, turn=0, quote=each.text) for each in turns if "birthday" in each.text]


class Codename:
    def find(self, text):
        at = text.find("Zephyr")
        return [(at, at + 6, "codename")] if at >= 0 else []


def prices(case, view, policy):
    if "price" in case.after.text:
        return Quarantine(reasons=(Reason(gate="prices", code="price", detail="a person checks prices"),))


def broken():
    raise RuntimeError("hunter2")


class Stop(BaseException):
    pass


class Ending:
    # Each method ends the program, or tries to.

    id, dim, name = "ending", 3, "ending"

    def __init__(self, how="exit"):
        self.how = how

    def stop(self, *args, **kwargs):
        if self.how == "exit":
            raise SystemExit("hunter2")
        if self.how == "stop":
            raise Stop("hunter2")
        if self.how == "cancel":
            import asyncio
            raise asyncio.CancelledError("hunter2")
        raise RuntimeError("hunter2")

    embed = rerank = extract = find = count = summarize = stop


class Lazy(Ending):
    # It raises only when its answer is read.

    def stop(self, *args, **kwargs):
        yield Ending.stop(self)

    embed = rerank = extract = find = stop


class Unnamed(Ending):
    # It raises when a property is read.

    @property
    def id(self):
        self.stop()


def ending_gate(case, view, policy):
    if "pier" in case.after.text:
        raise SystemExit("hunter2")


def wrong_gate(case, view, policy):
    return "yes" if "pier" in case.after.text else None


def ending():
    raise SystemExit(3)
"""
ENTRIES = """
[keepward.embedders]
letters = shop_plugins:Letters
broken = shop_plugins:broken
ending = shop_plugins:Ending
lazy = shop_plugins:Lazy
unnamed = shop_plugins:Unnamed
factory = shop_plugins:ending
module = ending_plugins:anything
[keepward.rerankers]
shortest = shop_plugins:Shortest
wrong = shop_plugins:Wrong
ending = shop_plugins:Ending
lazy = shop_plugins:Lazy
unnamed = shop_plugins:Unnamed
[keepward.extractors]
birthdays = shop_plugins:Birthdays
ending = shop_plugins:Ending
lazy = shop_plugins:Lazy
[keepward.redactors]
codename = shop_plugins:Codename
ending = shop_plugins:Ending
lazy = shop_plugins:Lazy
[keepward.gates]
prices = shop_plugins:prices
ending = shop_plugins:ending_gate
wrong = shop_plugins:wrong_gate
module = ending_plugins:anything
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a distribution with five plug-ins on the path."""
    site = tmp_path / "site"
    info = site / "shop_plugins-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "shop_plugins.py").write_text(SOURCE)
    (site / "ending_plugins.py").write_text("raise SystemExit(3)")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-plugins\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("shop_plugins", None)


def opened(tmp_path: Path, **chosen: Any) -> Memory:
    return Memory.open(tmp_path / "a.db", config_dir=tmp_path / "home", **{"embedder": "none", **chosen})


def test_embedder_plugin_makes_the_vectors(tmp_path: Path) -> None:
    with opened(tmp_path, embedder="letters:2") as mem:
        mem.remember("Ana prefers tabs")
        assert (mem.status()["embedder"], mem.recall("stab").used) == ("letters:26", ("vector",))


def test_reranker_plugin_orders_results_and_is_named(tmp_path: Path) -> None:
    with opened(tmp_path, reranker="shortest") as mem:
        mem.remember("The crane lifts forty tonnes of steel on the north side every day")
        mem.remember("The crane is red")
        found = mem.recall("how many tonnes of steel does the crane lift on the north side")
        assert found[0].memory.text == "The crane is red"
        assert (found.reranker, found[0].score > found[1].score) == ("shortest", True)


@pytest.mark.parametrize("scores", ["too few", "too large", "no numbers"])
def test_reranker_plugin_returns_a_score_from_0_to_1_for_each_text(tmp_path: Path, scores: str) -> None:
    with opened(tmp_path, reranker=f"wrong:{scores}") as mem:
        mem.remember("The pier is closed")
        mem.remember("The pier is long")
        with pytest.raises(InvalidInput, match="a score from 0 to 1 for each text"):
            mem.recall("pier")


def test_extractor_plugin_finds_facts_of_messages(tmp_path: Path) -> None:
    with opened(tmp_path, extractor="birthdays") as mem:
        added = mem.add([{"role": "user", "content": "My birthday is in May."}])
        assert [each.records[0].text for each in added.facts] == ["My birthday is in May."]


def test_redactor_plugin_masks_before_anything_is_stored(tmp_path: Path) -> None:
    with opened(tmp_path, redactor="codename") as mem:
        assert mem.remember("Zephyr ships in May").record.text == "[CODENAME] ships in May"


def test_gate_plugin_quarantines_with_its_reason(tmp_path: Path) -> None:
    with opened(tmp_path, gates="prices") as mem:
        outcome = mem.remember("The price of the crane is 9000 euros")
        assert (outcome.outcome, [each.code for each in outcome.reasons]) == ("quarantined", ["price"])
        assert mem.remember("The crane is red").ok


def test_plugins_of_settings_work_in_commands_and_hooks(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KEEPWARD_EMBEDDER", raising=False)
    settings = "\n".join(
        [
            'embedder = "letters"',
            'reranker = "shortest"',
            'extractor = "birthdays"',
            'redactor = "codename"',
            'gates = "prices"',
        ]
    )
    (tmp_path / "keepward.toml").write_text(settings)
    chosen = ("--config", "keepward.toml")
    assert "redacted: codename" in run("remember", "Zephyr ships in May", *chosen).err
    assert "a person checks prices" in run("remember", "The price is 9000 euros", *chosen).out
    assert run("status", *chosen, "--json").json["embedder"] == "letters:26"
    event = json.dumps({"session_id": "s1", "prompt": "Is Zephyr late?"}).encode()
    run("hook", "prompt", "--client", "claude", *chosen, stdin=event)
    assert "Is [CODENAME] late?" in run("list", "--within", "/", "--as", "operator", *chosen).out
    assert run("recall", "May", *chosen, "--json").json["reranker"] == "shortest"


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"reranker": "shorter"}, "did you mean shortest?"),
        ({"gates": "prices, taxes"}, "use one of ending, module, prices"),
        ({"embedder": "letter"}, "no embedder is named"),
        ({"embedder": "broken"}, "fails with RuntimeError"),
    ],
)
def test_plugin_that_cannot_be_used_is_one_sentence(tmp_path: Path, chosen: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as fault:
        opened(tmp_path, **chosen)
    assert "hunter2" not in str(fault.value)
    assert not (tmp_path / "a.db").exists()


# --- plug-ins that end the program: SystemExit and the like are errors as any other

HOWS = ("exit", "stop", "cancel", "raise")


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["ending", "lazy", "unnamed"])
def test_embedder_that_ends_the_program_counts_as_unavailable(tmp_path: Path, how: str, name: str) -> None:
    with opened(tmp_path, embedder=f"{name}:{how}") as mem:
        assert mem.remember("The pier is closed").ok
        found = mem.recall("pier")
        assert ([each.memory.text for each in found], "embedder" in found.notes[0]) == (["The pier is closed"], True)
        assert "hunter2" not in str(found.notes)
        assert (mem.status()["vectors_pending"], {each.name: each.ok for each in mem.doctor()}["embedder"]) == (
            1,
            False,
        )


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["ending", "lazy"])
def test_reranker_that_ends_the_program_leaves_the_order(tmp_path: Path, how: str, name: str) -> None:
    with opened(tmp_path, reranker=f"{name}:{how}") as mem:
        mem.remember("The pier is closed")
        found = mem.recall("pier")
        note = next(each for each in found.notes if "reranker" in each)
        assert ([each.memory.text for each in found], f"the reranker {name} raised" in note) == (
            ["The pier is closed"],
            True,
        )
        assert "hunter2" not in note
        assert "The pier is closed" in mem.context("Is the pier open?").text


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["ending", "lazy"])
def test_extractor_that_ends_the_program_leaves_the_messages(tmp_path: Path, how: str, name: str) -> None:
    with opened(tmp_path, extractor=f"{name}:{how}") as mem:
        added = mem.add([{"role": "user", "content": "Remember that the pier is closed."}])
        assert (len(added.facts), f"the extractor {name} raised" in str(added.notes)) == (1, True)
        assert "hunter2" not in str(added)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["ending", "lazy"])
def test_redactor_that_ends_the_program_stores_nothing(tmp_path: Path, how: str, name: str) -> None:
    with opened(tmp_path, redactor=f"{name}:{how}") as mem:
        with pytest.raises(ModelUnavailable, match=f"the redactor {name} raised") as fault:
            mem.remember("The pier is closed")
        assert ("hunter2" in str(fault.value), mem.list_memories(), mem.pending()) == (False, [], [])


@pytest.mark.parametrize("name", ["ending", "wrong"])
def test_gate_that_ends_the_program_lets_nothing_through(tmp_path: Path, name: str) -> None:
    with opened(tmp_path, gates=name) as mem:
        outcome = mem.remember("The pier is closed")
        told = [(each.gate, each.code) for each in outcome.reasons]
        assert (outcome.outcome, (name, "gate_failed") in told, mem.list_memories()) == ("quarantined", True, [])
        assert mem.remember("The crane is red").ok


@pytest.mark.parametrize("how", HOWS)
def test_counter_and_summarizer_that_end_the_program_are_errors(tmp_path: Path, how: str) -> None:
    import shop_plugins

    ending = shop_plugins.Ending(how)
    with opened(tmp_path, counter=ending) as mem:
        mem.remember("The pier is closed")
        with pytest.raises(ModelUnavailable, match="the counter ending raised"):
            mem.context("Is the pier closed?")
    with opened(tmp_path, summarizer=ending, actor=Actor.operator("olga")) as mem:
        with mem.session("deck") as session:
            for what in ("rail", "mast", "hull", "keel", "bell", "anchor"):
                session.user(f"We painted the {what}")
        run = mem.run_job("summarize_episodic")
        summaries = [each.text for each in mem.list_memories() if each.kind.value == "summary"]
        assert (run.outcome, len(summaries), "hunter2" in str(run)) == ("run", 1, False)


@pytest.mark.parametrize("chosen", [{"embedder": "factory"}, {"embedder": "module"}, {"gates": "module"}])
def test_plugin_that_ends_the_program_when_it_is_loaded_is_one_sentence(tmp_path: Path, chosen: dict[str, str]) -> None:
    (name,) = chosen.values()
    with pytest.raises(InvalidInput, match=f"the plug-in {name} of keepward.* fails with SystemExit"):
        opened(tmp_path, **chosen)
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize(
    ("setting", "code", "says"),
    [
        ('gates = "ending"', 6, "the gate failed"),
        ('gates = "module"', 2, "fails with SystemExit"),
        ('redactor = "ending"', None, "the redactor ending raised SystemExit"),
        ('embedder = "module"', 2, "fails with SystemExit"),
    ],
)
def test_commands_say_which_plugin_ended(
    run: Any, monkeypatch: pytest.MonkeyPatch, setting: str, code: int | None, says: str
) -> None:
    monkeypatch.delenv("KEEPWARD_EMBEDDER", raising=False)
    Path("keepward.toml").write_text(setting)
    ran = run("remember", "The pier is closed", "--config", "keepward.toml")
    assert (ran.code in {code or ran.code} - {0, 3}, says in ran.out + ran.err) == (True, True)
