"""Every operation is offered where it says, and carried out by a function that takes its arguments."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

from keepward import Memory
from keepward.api import OPERATIONS, MemoryAPI
from keepward.operations import REQUIRED
from keepward.types import PARAMETERS

EVERY = list(OPERATIONS.values())


@pytest.fixture(scope="module")
def described() -> dict[str, tuple[str, str, Any]]:
    """Method, path and description of each operation of the HTTP API, by name."""
    from keepward.http.server import create_app

    with Memory.open(":memory:", embedder=None) as memory:
        paths = create_app(memory).openapi()["paths"]
    return {
        each["operationId"]: (method.upper(), path, each)
        for path, methods in paths.items()
        for method, each in methods.items()
    }


def test_http_offers_every_operation_at_its_path(described: dict[str, Any]) -> None:
    for each in EVERY:
        method, path, about = described[each.name]
        assert (method, path) == (each.http_method, each.path.replace(":named", "")), each.name
        assert {str(each.status), "429"} <= about["responses"].keys(), each.name
        assert each.doc.split("\n")[0].rstrip(".;") in about["description"], each.name


def test_every_operation_has_a_description_a_result_and_a_right() -> None:
    for each in EVERY:
        assert each.doc, each.name
        assert each.result is not inspect.Signature.empty, each.name
        assert each.right in {"read", "propose", "approve", "erase", "owner"}, each.name
        taken = each.path.replace("}", "{").split("{")[1::2]
        assert [each.arguments[name].default for name in taken] == [REQUIRED] * len(taken), each.name


def test_the_function_of_every_operation_takes_its_arguments_and_defaults() -> None:
    for each in EVERY:
        function = inspect.signature(each.function)
        function.bind(None, **dict.fromkeys(each.signature.parameters))
        differ = {
            name: (one.default, function.parameters[name].default)
            for name, one in each.signature.parameters.items()
            if name in function.parameters and one.default is not inspect.Parameter.empty
            if function.parameters[name].default not in (one.default, inspect.Parameter.empty)
        }
        assert differ == {}, each.name


def test_arguments_that_do_not_fit_are_named() -> None:
    with Memory.open(":memory:", embedder=None) as memory:
        with pytest.raises(TypeError, match="supersede needs by"):
            memory.supersede("a")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="no argument `limits`; did you mean `limit`"):
            memory.recall("tabs", limits=3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="get takes memory_id by position"):
            memory.get("a", "b")  # type: ignore[misc]
        with pytest.raises(TypeError, match="it is that of the handle"):
            memory.recall("tabs", scope="/")  # type: ignore[call-arg]


def test_operations_load_no_engine_and_no_framework() -> None:
    script = (
        "import sys; import keepward.api;"
        "print([name for name in sys.modules if name in {'pydantic', 'numpy', 'sqlite3'}"
        " or name.startswith(('keepward.services.request_context', 'keepward.gates', 'keepward.storage'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_tools_for_models_are_those_that_operations_name() -> None:
    with Memory.open(":memory:", embedder=None) as memory:
        assert {each["name"] for each in memory.tools()} == {each.tool for each in EVERY if each.tool}


@pytest.mark.parametrize("about", EVERY, ids=lambda each: each.name)
def test_every_parameter_has_one_description_that_help_shows_too(about: Any) -> None:
    shown = getattr(MemoryAPI, about.name).__doc__
    for each in about.arguments.values():
        assert each.doc, f"describe `{about.name}.{each.name}` in PARAMETERS of keepward/types.py"
        assert each.within or f"* ``{each.name}``: {each.doc.replace('`', '``')}" in shown, each.name


def test_every_type_by_name_is_that_of_a_parameter() -> None:
    """A misspelt name in the table of types would be silent."""
    from keepward.http.routes import ALL_OPERATIONS

    named = {
        name
        for about in ALL_OPERATIONS.values()
        for each in (*about.arguments.values(), *about.signature.parameters.values())
        for name in (each.name, f"{about.name}.{each.name}")
    }
    assert PARAMETERS.keys() - named == set()
