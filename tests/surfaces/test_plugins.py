"""Plug-ins of another distribution, chosen by name: in Python, and in the settings of the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from keepward import InvalidInput, Memory

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
"""
ENTRIES = """
[keepward.embedders]
letters = shop_plugins:Letters
broken = shop_plugins:broken
[keepward.rerankers]
shortest = shop_plugins:Shortest
[keepward.extractors]
birthdays = shop_plugins:Birthdays
[keepward.redactors]
codename = shop_plugins:Codename
[keepward.gates]
prices = shop_plugins:prices
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a distribution with five plug-ins on the path."""
    site = tmp_path / "site"
    info = site / "shop_plugins-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "shop_plugins.py").write_text(SOURCE)
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
        ({"gates": "prices, taxes"}, "use one of prices"),
        ({"embedder": "letter"}, "no embedder is named"),
        ({"embedder": "broken"}, "fails with RuntimeError"),
    ],
)
def test_plugin_that_cannot_be_used_is_one_sentence(tmp_path: Path, chosen: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as fault:
        opened(tmp_path, **chosen)
    assert "hunter2" not in str(fault.value)
    assert not (tmp_path / "a.db").exists()
