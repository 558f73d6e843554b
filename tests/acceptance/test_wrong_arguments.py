"""A wrong argument of the library is an error that names it; nothing is lost, and nothing meaningless is taken.

Every operation and every other call, with every parameter of its signature. What is taken on purpose is in ``TAKEN``,
with the reason. A new parameter that takes what it should not fails the test that has its cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calls import EXAMPLES, Stage
from keepward import Actor, KeepwardError, Memory, Policy
from keepward.api import OPERATIONS
from keepward.core import change
from keepward.draft import Draft
from keepward.errors import Conflict, InvalidInput, NotFound, Unauthorised
from support.wrong_arguments import TAKEN, Call, Case, arguments_of, cases, parameters_of, refused, sample, unnamed


class Library:
    """The calls of the library, each on a store in which its right arguments are right."""

    def __init__(self, folder: Path) -> None:
        document = folder / "identity.md"
        document.write_text("I keep the lighthouse", "utf-8")
        self.home = Memory.open(
            ":memory:", actor=Actor.operator("ada"), config_dir=folder, identity=document, embedder=None
        )
        self._stages = 0

    def stage(self) -> Stage:
        self._stages += 1
        return Stage(self.home, f"t{self._stages}")

    def operation(self, name: str) -> Call:
        """Return the example call of an operation, on a stage of its own."""
        about, stage = OPERATIONS[name], self.stage()
        types = {each.name: each.annotation for each in about.signature.parameters.values()}
        args = stage.fill(EXAMPLES[name].args) | self._own_args().get(name, {})
        return Call(name, getattr(stage.owner, name), types, args, stage.owner)

    def _own_args(self) -> Mapping[str, Mapping[str, Any]]:
        """Return arguments that differ from the example, by operation."""
        # An owner's token takes no further rights.
        return {"create_token": {"rights": "agent"}}

    def other(self, name: str) -> Call:
        """Return a call of a handle, a draft, a change or a class, by the name it has in ``OTHERS``."""
        return OTHERS[name](self.stage(), name)


def _method(find: Callable[[Stage], Any], **args: Any) -> Callable[[Stage, str], Call]:
    """Return how to call a function that a stage leads to."""

    def make(stage: Stage, name: str) -> Call:
        function = find(stage)
        return Call(name, function, parameters_of(function), stage.fill(args), stage.owner)

    return make


def _change(kind: type[Any], **args: Any) -> Callable[[Stage, str], Call]:
    """Return how to propose one change of a kind."""

    def make(stage: Stage, name: str) -> Call:
        types = {each.name: each.type for each in msgspec.structs.fields(kind)}
        return Call(name, lambda **given: stage.owner.propose([kind(**given)]), types, stage.fill(args), stage.owner)

    return make


def _drafted(method: str, **args: Any) -> Callable[[Stage, str], Call]:
    """Return how to propose a draft in which one method was called."""

    def make(stage: Stage, name: str) -> Call:
        def run(**given: Any) -> Any:
            with stage.owner.draft() as draft:
                getattr(draft, method)(**given)
            return draft.outcome

        return Call(name, run, parameters_of(getattr(Draft, method)), stage.fill(args), stage.owner)

    return make


def _talk(stage: Stage, name: str) -> Call:
    def run(*, name: str, subject: str | None = None) -> Any:
        return stage.owner.session(name, subject=subject).user("I like tea")

    return Call(name, run, parameters_of(run), {"name": "s1"}, stage.owner)


def _open(stage: Stage, name: str) -> Call:
    def run(**given: Any) -> Any:
        Memory.open(":memory:", **given).close()

    types = {name: hint for name, hint in parameters_of(Memory.open).items() if name != "url"}
    return Call(name, run, types, {}, stage.owner)


def _policy(stage: Stage, name: str) -> Call:
    types = {each.name: each.type for each in msgspec.structs.fields(Policy)}
    return Call(name, lambda **given: Policy(**given), types, {}, stage.owner)


OF = {"id": "{memory}"}
#: Calls that are no operations.
OTHERS: Mapping[str, Callable[[Stage, str], Call]] = {
    "at": _method(lambda stage: stage.owner.at),
    "user": _method(lambda stage: stage.owner.user, name="ana"),
    "agent": _method(lambda stage: stage.owner.agent, name="planner"),
    "project": _method(lambda stage: stage.owner.project, name="shop"),
    "as_actor": _method(lambda stage: stage.owner.as_actor, actor=Actor.agent("x")),
    "with_token": _method(lambda stage: stage.owner.with_token, token="kw_" + "A" * 43),
    "run_job": _method(lambda stage: stage.owner.run_job, name="expire"),
    "Memory.open": _open,
    "Policy": _policy,
    "session": _talk,
    **{
        f"Actor.{kind}": _method(lambda _, kind=kind: getattr(Actor, kind), name="ana")
        for kind in ("agent", "user", "operator", "reviewer", "importer")
    },
    "Replace": _change(change.Replace, **OF, text="No one keeps it"),
    "Append": _change(change.Append, **OF, text="and is old"),
    "Supersede": _change(change.Supersede, **OF, by="{own}"),
    "Move": _change(change.Move, **OF, tier="working"),
    "Promote": _change(change.Promote, **OF, text="It is kept"),
    "Retire": _change(change.Retire, **OF),
    "Archive": _change(change.Archive, **OF),
    "Restore": _change(change.Restore, id="{retired}"),
    "Reinforce": _change(change.Reinforce, **OF),
    "draft.insert": _drafted("insert", text="The crane is red"),
    "draft.replace": _drafted("replace", memory_id="{memory}", text="No one keeps it"),
    "draft.append": _drafted("append", memory_id="{memory}", text="and is old"),
    "draft.retire": _drafted("retire", memory_id="{memory}"),
    "draft.move": _drafted("move", memory_id="{memory}", tier="working"),
    "draft.supersede": _drafted("supersede", memory_id="{memory}", by="{own}"),
    "draft.promote": _drafted("promote", memory_id="{memory}", text="It is kept"),
    "draft.restore": _drafted("restore", memory_id="{retired}"),
    "draft.reinforce": _drafted("reinforce", memory_id="{memory}"),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    made = Library(tmp_path_factory.mktemp("wrong"))
    yield made
    assert made.home.verify().ok
    made.home.close()


def fault_of(call: Call, case: Case) -> str:
    """Return what is wrong with how a case is answered; empty if nothing is."""
    try:
        result = call.run(**arguments_of(call, case))
    except InvalidInput as refusal:
        return unnamed(case, str(refusal))
    except (NotFound, Conflict, Unauthorised):
        # The value is usable, and names nothing or an older state.
        return ""
    except KeepwardError as other:
        return f"{type(other).__name__}: {other}"
    except TypeError as unknown:
        # Python itself names an unknown argument of a class or of a method that is no operation.
        if case.wrong == "misspelt" and case.call not in OPERATIONS:
            return unnamed(case, str(unknown))
        return f"raw TypeError: {unknown}"[:200]
    except Exception as raw:
        return f"raw {type(raw).__name__}: {raw}"[:200]
    if (reasons := refused(result)) is not None:
        return unnamed(case, reasons)
    return "" if any(row in TAKEN for row in case.in_words()) else "taken silently"


def check(name: str, make: Callable[[], Call], *, share: int) -> None:
    """Make the cases of a call, or one in so many, and fail with all that are answered wrongly."""
    call, wrong = make(), []
    every = list(cases(call))
    for case in every if share == 1 else sample(every, share):
        head = call.store.head
        fault = fault_of(call, case)
        if fault:
            wrong.append(f"{case}: {fault}")
        if call.store.head != head:
            if not any(row in TAKEN for row in case.in_words()):
                wrong.append(f"{case}: changed the store")
            call = make()
    assert not wrong, "\n".join(wrong)


#: One case in so many.
SHARES = (12, pytest.param(1, marks=pytest.mark.slow))


@pytest.mark.promise("T30")
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_wrong_arguments_of_an_operation_are_refused(library: Library, name: str, share: int) -> None:
    check(name, lambda: library.operation(name), share=share)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", OTHERS)
def test_wrong_arguments_of_another_call_are_refused(library: Library, name: str, share: int) -> None:
    check(name, lambda: library.other(name), share=share)


def test_what_is_taken_on_purpose_is_a_case(library: Library) -> None:
    """A row of ``TAKEN`` that no case has would hide a new parameter of that name."""
    calls = [*map(library.operation, OPERATIONS), *map(library.other, OTHERS)]
    named = {row for call in calls for case in cases(call) for row in case.in_words()}
    assert set(TAKEN) - named == set()
