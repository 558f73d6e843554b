"""Wrong arguments over HTTP, with the client and at the terminal: a refusal that names them, never a fault of ours.

The cases are those of the library; MCP has a table of its own, because a model writes other things.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from itertools import count
from pathlib import Path
from typing import Any

import click
import pytest
from http_fixtures import BASE, HttpTestServer
from starlette.testclient import TestClient

from calls import EXAMPLES, Stage
from keepward import Client, KeepwardError, Memory
from keepward.api import OPERATIONS
from keepward.cli.command import EXIT_CODES
from keepward.cli.main import command_tree, main
from keepward.client.encoding import to_json_value
from keepward.errors import Conflict, InvalidInput, NotFound, Unauthorised
from keepward.http.routes import CALLED_BY_NAME
from support.wrong_arguments import TAKEN, Call, Case, arguments_of, cases, refused, sample, unnamed

#: Arguments that need the digest or version of the state of a call, which another case may change.
_OWN: Mapping[str, Mapping[str, Any]] = {
    "create_token": {"rights": "agent"},
    "approve_many": {"items": [{"id": "{proposal}"}]},
}
#: What the client and HTTP take on purpose, besides what the library takes.
TAKEN_OVER_HTTP: Mapping[str, str] = {
    "*: tuple in it": "JSON has one kind of lists",
    "*: datetime in it": "JSON has texts for instants",
    "metadata: set in it": "a set is sent as a list",
    "metadata: int as key": "names in JSON are texts",
}
#: A body that is too large is refused before it is read, so the refusal names no argument.
_TOO_LARGE = "the body may have at most 1 MB"
#: One case in so many.
SHARES = (24, pytest.param(1, marks=pytest.mark.slow))


class World(HttpTestServer):
    """A server of a store with an identity document."""

    def open(self, actor: Any, **options: Any) -> Memory:
        document = self.folder / "identity.md"
        document.write_text("I keep the lighthouse", "utf-8")
        return super().open(actor, identity=document, **options)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._numbers = count(1)

    def call(self, name: str) -> Call:
        """Return the example call of an operation by the client, in a tenant of its own."""
        about, number = OPERATIONS[name], next(self._numbers)
        stage = Stage(self.memory, f"t{number}")
        tenant = None if name == "update_identity" else stage.tenant
        token = self.memory.owner_token().read_text().strip()
        client = Client(BASE, token, transport=TestClient(self.app, BASE), retries=0, tenant=tenant)
        own = {"text": f"I keep harbour {number}"} if name == "update_identity" else _OWN.get(name, {})
        types = {each.name: each.annotation for each in about.signature.parameters.values()}
        args = stage.fill(EXAMPLES[name].args | own)
        return Call(name, getattr(client, name), types, args, self.memory if tenant is None else stage.owner)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("wrong"))
    yield made
    assert made.memory.verify().ok
    made.memory.close()


def check(world: World, name: str, share: int, fault_of: Callable[[Call, Case], str]) -> None:
    """Make the cases of a call, or one in so many, and fail with all that are answered wrongly."""
    call, wrong = world.call(name), list[str]()
    every = list(cases(call))
    for case in every if share == 1 else sample(every, share):
        head = call.store.head
        if fault := fault_of(call, case):
            wrong.append(f"{case}: {fault}")
        if call.store.head != head:
            if not is_taken(case):
                wrong.append(f"{case}: changed the store")
            call = world.call(name)
    assert not wrong, "\n".join(wrong)


def is_taken(case: Case) -> bool:
    return any(row in TAKEN or row in TAKEN_OVER_HTTP for row in case.in_words())


def fault_of_client(call: Call, case: Case) -> str:
    """Return what is wrong with the answer of the client; empty if nothing is."""
    try:
        result = call.run(**arguments_of(call, case))
    except InvalidInput as refusal:
        return unnamed(case, str(refusal)) if _TOO_LARGE not in str(refusal) else ""
    except (NotFound, Conflict, Unauthorised):
        return ""
    except KeepwardError as other:
        return f"{type(other).__name__}: {other}"[:200]
    except Exception as raw:
        return f"raw {type(raw).__name__}: {raw}"[:200]
    if (reasons := refused(result)) is not None:
        return unnamed(case, reasons)
    return "" if is_taken(case) else "taken silently"


def fault_of_http(call: Call, case: Case) -> str:
    """Return what is wrong with the answer to a call by name with the value as it is in JSON."""
    if OPERATIONS[call.name].is_local(case.argument.removesuffix("x")):
        # It is not sent.
        return ""
    given = {
        name: value for name, value in arguments_of(call, case).items() if value is not None or name == case.argument
    }
    filters = given.pop("filters", None)
    if filters is not None:
        given |= {case.argument.rpartition(".")[2]: getattr(filters, case.argument.rpartition(".")[2], filters)}
    try:
        body = json.dumps(given, default=lambda value: to_json_value(value))
    except (TypeError, ValueError, RecursionError, KeepwardError):
        return "" if case.wrong else "JSON cannot say it"
    client = call.run.__self__._transport.http
    headers = {"Content-Type": "application/json", **call.run.__self__._transport._headers({})}
    answer = client.post(f"{BASE}/memory/call/{call.name}", content=body.encode("utf-8", "replace"), headers=headers)
    if answer.status_code >= 500:
        return f"{answer.status_code} {answer.text}"[:200]
    if answer.status_code >= 400:
        problem = answer.json()
        # JSON that no one may send is refused before its arguments are read.
        named = problem["code"] in ("invalid_body", "invalid_input", "refused")
        return unnamed(case, problem["detail"]) if named else ""
    return "" if is_taken(case) or '"refused"' in answer.text else "taken silently"


@pytest.mark.promise("T30")
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_client_refuses_a_wrong_argument_and_names_it(world: World, name: str, share: int) -> None:
    check(world, name, share, fault_of_client)


@pytest.mark.promise("T30")
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", CALLED_BY_NAME)
def test_http_refuses_a_wrong_argument_and_names_it(world: World, name: str, share: int) -> None:
    check(world, name, share, fault_of_http)


#: Words that may stand where a command takes another word.
WORDS = {
    "empty": "",
    "blank": " \t",
    "NUL": "a\0b",
    "byte that is not UTF-8": "a\udce9b",
    "surrogate": "a\ud800b",
    "unknown": "nonesuch",
    "-1": "-1",
    "10**22": str(10**22),
    "1e400": "1e400",
    "nan": "nan",
    "half JSON": '{"a":',
    "list": "[]",
    "deep": "[" * 3_000,
    "beyond year 9999": "9999-12-31T23:59:59-23:00",
    "long": "word " * 5_000,
}
#: Commands that run until they are stopped, open a browser, or ask for a passphrase.
_NOT_RUN = {"serve", "mcp", "open", "hook", "demo", "drill"}


def commands() -> list[str]:
    root = click.Context(command_tree(), info_name="keepward")
    names = [name for name in command_tree().paths if name.partition(" ")[0] not in _NOT_RUN]
    return [name for name in names if not isinstance(command_tree().get_command(root, name), click.Group)]


@pytest.mark.slow
@pytest.mark.parametrize("name", commands())
def test_command_ends_with_a_documented_exit_code(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    for variable, value in {"HOME": "home", "DATA": ".", "DB": "k.db"}.items():
        monkeypatch.setenv(f"KEEPWARD_{variable}", str(tmp_path / value))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KEEPWARD_EMBEDDER", "none")
    monkeypatch.setenv("KEEPWARD_PASSPHRASE", "a harbour in the rain")
    monkeypatch.chdir(tmp_path)
    Memory.open(tmp_path / "k.db", embedder=None, config_dir=tmp_path / "home").close()
    root = click.Context(command_tree(), info_name="keepward")
    command: Any = command_tree().get_command(root, name)
    own = [each for each in command.params if each.name not in {one.name for one in command_tree().params}]
    needed = ["x" for each in own if isinstance(each, click.Argument) and each.required]
    wrong = []
    for number, each in enumerate(own):
        for said, word in WORDS.items():
            if isinstance(each, click.Argument):
                words = [*needed[:number], word, *needed[number + 1 :]]
            elif each.is_flag:
                continue
            else:
                words = [*needed, each.opts[0], word]
            code, err = ended([*name.split(" "), *words])
            if code not in EXIT_CODES or "unexpected " in err.replace("unexpected extra", ""):
                wrong.append(f"{each.name}, {said}: {code} {err[:160]}")
    assert not wrong, "\n".join(wrong)


def ended(words: list[str]) -> tuple[int, str]:
    """Return the exit code of a command, and what it said."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code = main(words)
    return code, err.getvalue() + out.getvalue()
