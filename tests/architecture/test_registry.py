"""The registry of verbs is what the surfaces offer."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from typing import Any

import pytest

from keepward import Memory
from keepward.verbs import MISSING, Request, Verb, registry, verb_of

VERBS = list(registry().values())


@pytest.fixture(scope="module")
def operations() -> dict[str, tuple[str, str, Any]]:
    """Method, path and description of each operation of the HTTP API, by name."""
    from keepward.http.server import create_app

    with Memory.open(":memory:", embedder=None) as memory:
        described = create_app(memory).openapi()
    return {
        each["operationId"]: (method.upper(), path, each)
        for path, methods in described["paths"].items()
        for method, each in methods.items()
    }


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_api_offers_a_verb_where_the_registry_says(verb: Verb, operations: dict[str, Any]) -> None:
    method, path, described = operations[verb.operation]
    assert (method, path) == (verb.method, verb.path.replace(":named", ""))
    assert str(verb.status) in described["responses"]
    assert "429" in described["responses"]
    assert verb.doc.split("\n")[0].rstrip(".;") in described["description"] or verb.group == "blobs"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_verb_says_what_it_takes_and_gives(verb: Verb) -> None:
    assert verb.request.__doc__
    assert verb.result is not None
    assert verb_of(verb.request) is verb
    assert verb.right in {"read", "propose", "approve", "erase", "owner"}
    taken = verb.path.replace("}", "{").split("{")[1::2]
    assert set(taken) <= verb.arguments.keys()
    assert all(verb.arguments[name].default is MISSING for name in taken)


def test_what_was_left_out_is_not_what_is_empty() -> None:
    from keepward.verbs.write import Revise

    assert "category" not in Revise(memory_id="a", reason="b", values={}).given()
    assert Revise(memory_id="a", reason="b", values={"category": None}).given()["category"] is None
    with pytest.raises(TypeError, match="Revise needs memory_id"):
        Revise(values={})
    with pytest.raises(AttributeError):
        Revise(memory_id="a", reason="b").reason = "c"  # type: ignore[misc]


def test_the_registry_loads_no_engine_and_no_framework() -> None:
    script = (
        "import sys; from keepward.verbs import registry; registry();"
        "print([name for name in sys.modules if name in {'pydantic', 'numpy', 'sqlite3'}"
        " or name.startswith(('keepward.services', 'keepward.gates', 'keepward.storage'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


PLAIN = [each for each in VERBS if each.request.function and each.request.parameters is Request.parameters]


@pytest.mark.parametrize("verb", PLAIN, ids=lambda verb: verb.name)
def test_a_verb_without_a_run_of_its_own_names_a_function_that_takes_its_arguments(verb: Verb) -> None:
    module, name = verb.request.function.split(":")
    function = getattr(importlib.import_module(f"keepward.{module}"), name)
    inspect.signature(function).bind(None, **dict.fromkeys(verb.request.names))


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_call_has_the_arguments_and_defaults_of_its_request(verb: Verb) -> None:
    method = getattr(Memory, verb.name, None)
    if method is None or verb.name in {"approve_many", "pending"}:
        # One has no method of its own; the others take what people write and turn it into what is sent.
        return
    parameters = inspect.signature(method).parameters
    for name in set(parameters) & set(verb.request.names):
        default = getattr(verb.request, name, inspect.Parameter.empty)
        assert parameters[name].default in (default, None if default is inspect.Parameter.empty else default), name


def test_the_tools_for_models_are_those_that_the_registry_names() -> None:
    with Memory.open(":memory:", embedder=None) as memory:
        assert {each["name"] for each in memory.tools()} == {verb.tool for verb in VERBS if verb.tool}
