"""The example call of each operation on every surface: for each right, from other scopes, and for sensitive memories."""

from __future__ import annotations

import asyncio
import io
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from http_fixtures import BASE, HttpTestServer
from mcp_made import call, result_text, served

from calls import EXAMPLES, WORD, Example, Stage, operation_of, right_of
from keepward import Actor, AsyncMemory, Client, KeepwardError, Memory
from keepward.api import OPERATIONS
from keepward.cli.main import main
from keepward.core.compiled import CompiledContext
from keepward.core.principals import ROLE_RIGHTS, ActorKind, Role

NOTICE = "ask the owner for a token with the right `sensitive`"
#: Options of a token by right; ``none`` is a token of no one.
TOKENS: dict[str, dict[str, Any]] = {
    "none": {},
    "read": {"can": ["read"]},
    "propose": {},
    "approve": {"rights": "reviewer"},
    "owner": {"rights": "owner"},
}
UNKNOWN_TOKEN = "kw_" + "A" * 43
#: Who may make the calls that need a right.
ALLOWED = {
    "read": {"read", "propose", "approve", "owner"},
    "propose": {"propose", "owner"},
    "approve": {"approve", "owner"},
    "erase": {"owner"},
    "owner": {"owner"},
}


class Answer(NamedTuple):
    """What a caller gets: a code, ``answer`` for success, and everything that it can read."""

    code: str
    text: str


class World(HttpTestServer):
    """A server with an identity document, and its stages."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        # Commands use the clock of the machine.
        self.clock.set(datetime.now(UTC))
        self._tenants = count(1)
        #: For calls that change nothing.
        self.normal = Stage(self.memory, "default")
        self.elsewhere = self.stage(scope="/agents/orion")
        self.sensitive = self.stage(sensitivity="sensitive")

    def open(self, actor: Actor, **options: Any) -> Memory:
        document = self.folder / "identity.md"
        document.write_text("I keep the lighthouse", "utf-8")
        return super().open(actor, identity=document, **options)

    def stage(self, **target: Any) -> Stage:
        return Stage(self.memory, f"t{next(self._tenants)}", **target)


class Library:
    """A way to make an example call with a token."""

    def __init__(self, world: World) -> None:
        self.world = world

    @staticmethod
    def offers(example: Example) -> bool:
        return True

    def make(self, name: str, at: Stage, token: str) -> Answer:
        try:
            result = self.send(operation_of(name).method.__name__, at.fill(EXAMPLES[name].args), token)
        except KeepwardError as fault:
            return Answer(fault.code, str(fault))
        text = repr(result)
        errors = (
            [each.error.code for each in result if getattr(each, "error", None)] if isinstance(result, list) else []
        )
        return Answer("refused" if "Refused(" in text else "".join(errors) or "answer", text)

    def send(self, method: str, args: dict[str, Any], token: str) -> Any:
        return getattr(self.world.memory.with_token(token), method)(**args)


class Awaited(Library):
    def send(self, method: str, args: dict[str, Any], token: str) -> Any:
        async def run() -> Any:
            memory = await AsyncMemory(self.world.memory).with_token(token)
            return await getattr(memory, method)(**args)

        return asyncio.run(run())


class Http(Library):
    """The client, and the answer of the call by name that it reads; both as the route of the operation answers."""

    def make(self, name: str, at: Stage, token: str | None) -> Answer:
        answers: list[Any] = []
        transport = self.world.client(None)
        transport.event_hooks["response"].append(answers.append)
        self.client = Client(BASE, token, transport=transport, retries=0)
        answer = super().make(name, at, token)
        route = answers[-1]
        route.read()
        if route.status_code == 401:
            assert route.headers["www-authenticate"].startswith("Bearer")
            assert answer.code == "unauthorised"
        elif route.status_code >= 400:
            assert route.json()["code"] == answer.code, route.text
        return Answer(answer.code, answer.text + route.text)

    def send(self, method: str, args: dict[str, Any], token: str | None) -> Any:
        return getattr(self.client, method)(**args)


class Rest(Library):
    """The route of the operation itself, as a program without the client calls it."""

    def make(self, name: str, at: Stage, token: str) -> Answer:
        about, args = operation_of(name), dict(at.fill(EXAMPLES[name].args))
        filters = args.pop("filters", None)
        given = args | (filters or {})
        arguments = {wire: (each, given.get(each.name)) for wire, each in about.arguments.items()}
        sent = {wire: value for wire, (each, value) in arguments.items() if value not in (None, each.default)}
        path = about.path.format_map(sent)
        for wire in re.findall(r"\{(\w+)\}", about.path):
            del sent[wire]
        headers, body = {}, {"json": self.as_json(about.name, sent, at)}
        if about.name in ("revise", "approve", "amend", "rollback"):
            headers["If-Match"] = self.seen(about.name, args, at)
        if about.name == "put_blob":
            headers, body = {"Content-Type": args["media_type"]}, {"content": args["data"]}
        elif about.http_method in ("GET", "DELETE"):
            body = {"params": sent}
        answer = self.world.client(token).request(about.http_method, path, headers=headers, **body)
        if answer.status_code < 400:
            if '"refused"' in answer.text and '"refused":' not in answer.text:
                return Answer("refused", answer.text)
            results = answer.json().get("results", ()) if about.name.endswith("_many") else ()
            return Answer("".join(each["error"]["code"] for each in results if each["error"]) or "answer", answer.text)
        code = answer.json()["code"]
        return Answer("unauthorised" if code == "unauthenticated" else code, answer.text)

    @staticmethod
    def as_json(name: str, sent: dict[str, Any], at: Stage) -> dict[str, Any]:
        """Return a body: changes as objects, and decisions with the digest of what was seen."""
        if name == "propose":
            return {
                **sent,
                "changes": [{"op": "replace", "id": each.id, "text": each.text} for each in sent["changes"]],
            }
        if name == "approve_many":
            return {"items": [{"id": each, "digest": at.owner.proposal(each).digest} for each in sent["items"]]}
        return sent

    @staticmethod
    def seen(name: str, args: dict[str, Any], at: Stage) -> str:
        """Return the ETag of what the caller changes."""
        if name == "revise":
            return "*"
        if name == "rollback":
            return f'"{at.owner.rollback(args["commit"], dry_run=True).digest}"'
        return f'"{at.owner.proposal(args["proposal_id"]).digest}"'


class Mcp(Library):
    @staticmethod
    def offers(example: Example) -> bool:
        return example.tool is not None

    def make(self, name: str, at: Stage, token: str) -> Answer:
        try:
            agent = self.world.memory.with_token(token)
        except KeepwardError as fault:
            return Answer(fault.code, str(fault))
        result = call(served(agent), operation_of(name).tool, at.fill(EXAMPLES[name].tool))
        text = result_text(result) + str(result.structured_content)
        missing = "not_found" if "there is no" in text else "unauthorised"
        return Answer(missing if result.is_error else "refused" if "'refused'" in text else "answer", text)


class Cli(Library):
    #: Codes by exit code; after 6 the change is quarantined.
    CODES = {
        0: "answer",
        2: "invalid_input",
        3: "not_found",
        4: "conflict",
        5: "refused",
        6: "answer",
        7: "unauthorised",
    }

    @staticmethod
    def offers(example: Example) -> bool:
        return bool(example.command)

    def make(self, name: str, at: Stage, token: str) -> Answer:
        words = shlex.split(at.fill(EXAMPLES[name].command))
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setenv("KEEPWARD_HOME", str(self.world.folder / "home"))
            patch.setenv("KEEPWARD_TOKEN", token)
            patch.setenv("KEEPWARD_EMBEDDER", "none")
            code = main([*words, "--db", str(self.world.path), "--json"])
        return Answer(self.CODES.get(code, f"exit code {code}"), out.getvalue() + err.getvalue())


SURFACES = {kind.__name__.lower(): kind for kind in (Library, Awaited, Http, Rest, Mcp, Cli)}
#: Those that run the same methods and handlers as another one.
SLOW = {"awaited", "rest", "cli"}


def examples(*rights: str) -> list[str]:
    """Return the examples that need one of these rights."""
    return [name for name in EXAMPLES if right_of(name) in rights]


def on_surfaces(names: Iterable[str]) -> Any:
    """Run a test with each example on each surface that offers it."""
    calls = [
        pytest.param(surface, name, id=f"{surface}-{name}", marks=[pytest.mark.slow] if surface in SLOW else [])
        for surface, kind in SURFACES.items()
        for name in names
        if kind.offers(EXAMPLES[name])
    ]
    return pytest.mark.parametrize(("surface", "name"), calls, indirect=["surface"])


@pytest.fixture(scope="module", params=["library"])
def surface(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """Yield a surface on a store of its own."""
    world = World(tmp_path_factory.mktemp("calls"))
    yield SURFACES[request.param](world)
    world.memory.close()


def state(at: Stage) -> tuple[Any, ...]:
    """Return what a call that is denied leaves unchanged."""
    owner = at.owner
    proposals = [item.state for item in owner.pending(state="all")]
    return owner.head, proposals, owner.get(at.memory), owner.identity(), len(owner.tokens())


# --- the table


def test_every_operation_has_an_example_call() -> None:
    missing = OPERATIONS.keys() - {name.partition(" ")[0] for name in EXAMPLES}
    assert not missing, (
        f"add an example call to EXAMPLES in tests/calls.py for {', '.join(sorted(missing))}, such as "
        '"oldest": reads({"tags": ["style"]}, "oldest --tag style"); use `names` if it takes the id of a memory'
    )


def test_every_tool_has_an_example_call() -> None:
    missing = {each.tool for each in OPERATIONS.values() if each.tool} - {
        operation_of(name).tool for name, example in EXAMPLES.items() if example.tool is not None
    }
    assert not missing, f"add `tool={{...}}` to the example of {sorted(missing)} in tests/calls.py"


# --- rights


@pytest.mark.promise("F10", "C51", "C70", "C71", "C109", "C112", "C113", "C114", "C66", "C67")
@on_surfaces(EXAMPLES)
def test_call_is_allowed_with_its_right_only(surface: Library, name: str) -> None:
    about, example = operation_of(name), EXAMPLES[name]
    allowed = ALLOWED[right_of(name)]
    for who, given in TOKENS.items():
        changes = who in allowed and about.changes
        at = surface.world.stage() if changes else surface.world.normal
        at.fill([example.args, example.command])
        token = UNKNOWN_TOKEN if who == "none" else at.token(**given)
        before = state(at)
        answer = surface.make(name, at, token)
        if who in allowed:
            assert answer.code == "answer", (who, answer)
        else:
            asked = f"`{name}` answers `{who}`, also when there is nothing to do: it has to ask for its right first"
            assert answer.code in {"unauthorised", "refused"}, (asked, answer)
            assert state(at) == before, who
            assert who != "none" or WORD not in answer.text


@pytest.mark.promise("C51", "C70", "C71", "C109", "C112", "C113", "C114")
@pytest.mark.parametrize("name", EXAMPLES)
def test_without_a_token_every_route_is_closed(surface: Library, name: str) -> None:
    at = surface.world.normal
    at.fill(EXAMPLES[name].args)
    before = state(at)
    answer = Http(surface.world).make(name, at, None)
    assert (answer.code, WORD in answer.text, state(at)) == ("unauthorised", False, before)


@pytest.mark.promise("Z49")
def test_token_revoked_during_use_opens_no_route(surface: Library) -> None:
    at = surface.world.normal
    for example in EXAMPLES.values():
        at.fill(example.args)
    issued = at.owner.create_token("olga", rights="owner", tenant=at.tenant)
    client = surface.world.client(issued.secret)
    statuses = [client.get("/memory/status").status_code]
    at.owner.revoke_token(issued.token.id)
    before = state(at)
    for name, about in OPERATIONS.items():
        answers = [client.post(f"/memory/call/{name}", json=body) for body in ({}, {"no": "such argument"})]
        answers.append(client.request(about.http_method, about.path.replace("{id}", at.memory)))
        if name in ("put_blob", "read_blob"):
            del answers[:2]
        assert [answer.status_code for answer in answers] == [401] * len(answers), name
    assert (statuses, state(at)) == ([200], before)


@pytest.mark.promise("F10")
@pytest.mark.parametrize("name", examples("erase", "owner"))
def test_owner_without_a_right_is_refused(surface: Library, name: str) -> None:
    lacking = "erase" if right_of(name) == "erase" else "admin"
    limited = Actor(kind=ActorKind.OPERATOR, name="olga", rights=Role.OWNER, can=ROLE_RIGHTS[Role.OWNER] - {lacking})
    at = surface.world.normal
    args = at.fill(EXAMPLES[name].args)
    with pytest.raises(KeepwardError) as fault:
        getattr(at.owner.as_actor(limited), operation_of(name).method.__name__)(**args)
    assert fault.value.code == "unauthorised"


# --- scopes


@pytest.mark.promise("Z11", "A69", "D35", "D36", "C50")
@on_surfaces(examples("read", "propose"))
def test_call_finds_nothing_of_another_agents_scope(surface: Library, name: str) -> None:
    for scope in ("/", "/agents/lyra"):
        at = surface.world.stage(scope="/agents/orion") if operation_of(name).changes else surface.world.elsewhere
        answer = surface.make(name, at, at.token(scope=scope))
        assert (answer.code, WORD in answer.text) == (EXAMPLES[name].elsewhere, False), answer
        assert at.owner.get(at.memory).version == 1


#: Each surface with the calls of deciders, and one surface with all reads of them.
DECIDING = [(surface, name) for surface in SURFACES for name in examples("approve")]
DECIDING += [("library", name) for name in examples("read")]


@pytest.mark.parametrize(
    ("surface", "name"),
    [pair for pair in DECIDING if SURFACES[pair[0]].offers(EXAMPLES[pair[1]])],
    indirect=["surface"],
)
def test_decider_finds_nothing_of_another_scope(surface: Library, name: str) -> None:
    at = surface.world.stage(scope="/agents/orion") if operation_of(name).changes else surface.world.elsewhere
    answer = surface.make(name, at, at.token(scope="/agents/lyra", rights="reviewer"))
    assert (answer.code, WORD in answer.text) == (EXAMPLES[name].elsewhere, False), answer
    assert at.owner.get(at.memory).version == 1


@pytest.mark.parametrize("name", examples("approve"))
def test_decider_is_answered_in_its_own_scope(surface: Library, name: str) -> None:
    at = surface.world.stage(scope="/agents/orion") if operation_of(name).changes else surface.world.elsewhere
    assert surface.make(name, at, at.token(scope="/agents/orion", rights="reviewer")).code == "answer"


@pytest.mark.parametrize("name", examples("read", "propose"))
def test_call_is_answered_in_the_agents_own_scope(surface: Library, name: str) -> None:
    at = surface.world.stage(scope="/agents/orion") if operation_of(name).changes else surface.world.elsewhere
    assert surface.make(name, at, at.token(scope="/agents/orion")).code == "answer"


# --- sensitive memories


@on_surfaces([name for name in examples("read", "propose", "approve") if EXAMPLES[name].sensitive != "shown"])
def test_call_shows_no_words_of_a_sensitive_memory(surface: Library, name: str) -> None:
    at = surface.world.stage(sensitivity="sensitive") if operation_of(name).changes else surface.world.sensitive
    answer = surface.make(name, at, at.token(rights="reviewer" if right_of(name) == "approve" else "agent"))
    assert (answer.code, WORD in answer.text) == (EXAMPLES[name].sensitive, False), answer
    assert answer.code != "unauthorised" or NOTICE in answer.text
    assert at.owner.get(at.memory).version == 1


@pytest.mark.parametrize("name", examples("read", "propose"))
def test_agent_with_the_right_uses_sensitive_memories(surface: Library, name: str) -> None:
    at = surface.world.stage(sensitivity="sensitive") if operation_of(name).changes else surface.world.sensitive
    answer = surface.make(name, at, at.token(can=["read", "propose", "sensitive"]))
    # A context that looks for a text leaves sensitive memories out.
    assert (answer.code, NOTICE in answer.text) == ("invalid_input" if name == "bisect" else "answer", False), answer


# --- the same values


#: A server adds its own keys to the status, and when it saw a token.
DIFFERS = {"status", "tokens"}


@pytest.mark.promise("T21")
@pytest.mark.parametrize("surface", ["awaited", "http"], indirect=True)
@pytest.mark.parametrize("name", [name for name in EXAMPLES if not operation_of(name).changes and name not in DIFFERS])
def test_other_handles_return_the_values_of_the_library(surface: Library, name: str) -> None:
    at, method = surface.world.normal, operation_of(name).method.__name__
    args, token = at.fill(EXAMPLES[name].args), at.token(rights="owner")
    surface.make(name, at, token)
    expected, found = (handle.send(method, args, token) for handle in (Library(surface.world), surface))
    if isinstance(expected, CompiledContext):
        # Each has a receipt of its own.
        expected, found = (expected.text, expected.sections), (found.text, found.sections)
    assert found == expected
