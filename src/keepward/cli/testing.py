"""Commands of memory tests: run the tests of files, and find the commit that changed a context.

Late imports: a command that reads no test file starts faster.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext, CommandResult
from keepward.cli.parameters import operation_command
from keepward.cli.review import show_commit
from keepward.core.value import pluralize
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keepward.cli.render import Screen
    from keepward.memory_tests import FileTest

_ONLY = option("--only", "Only tests whose name contains this; case is ignored.", "TEXT")


@command(
    argument("FILE...", "Files of tests, in YAML or TOML.", "files"),
    option("--at, --as-of", "Test a past state: a commit's number or id, or an instant.", "TIME", "as_of"),
    _ONLY,
    option("--junit-xml", "Also write the results to this file, as JUnit XML.", "PATH", "junit"),
)
def test(
    call: CommandContext, files: tuple[str, ...], as_of: str | None, only: str | None, junit: str | None
) -> CommandResult:
    """Test what contexts contain; exits with 1 if a test fails.

    With GITHUB_ACTIONS=true, stderr also has an annotation for each failed test.
    """
    from keepward.memory_tests import github_annotations, junit_xml

    by_file = _read(files, only)
    tests = [each.test for found in by_file.values() for each in found]
    label = ", ".join(by_file) + (f", only {only}" if only else "")
    run = call.memory("decide").run_tests(tests, as_of=as_of, label=label[:256])
    results = iter(run.items)
    results_of = {name: [(each, next(results)) for each in found] for name, found in by_file.items()}
    if junit:
        try:
            Path(junit).write_text(junit_xml(results_of), encoding="utf-8")
        except OSError as exc:
            raise InvalidInput(f"{junit} cannot be written: {exc.strerror}") from None
    data = {
        "ok": not run.failed,
        "passed": run.passed,
        "failed": run.failed,
        "head": run.head,
        "files": [
            {"file": name, "items": [{**result.to_dict(), "line": each.line or None} for each, result in pairs]}
            for name, pairs in results_of.items()
        ],
    }
    marks = tuple(github_annotations(results_of)) if call.environ.get("GITHUB_ACTIONS") == "true" else ()
    return CommandResult(data, _show, 0 if data["ok"] else 1, (*run.notes, *marks))


def _show(screen: Screen, data: dict[str, Any]) -> None:
    for file in data["files"]:
        screen.heading(file["file"])
        for item in file["items"]:
            size = f"{pluralize(item['tokens'], 'token', 'tokens')}, {pluralize(item['lines'], 'line', 'lines')}"
            word, style = ("passed", "bold green") if item["passed"] else ("failed", "bold red")
            screen.labelled(word, f"{item['name']}  ({size})", style, width=8)
            if not item["passed"]:
                for failure in item["failures"]:
                    screen.line(failure, "red", indent=8)
                screen.line("its context:" if item["text"] else "its context is empty", "dim", indent=8)
                for line in item["text"].splitlines():
                    screen.line(line, "dim", indent=10)
    seq = data["head"].partition(":")[0]
    screen.line()
    screen.line(
        f"{data['passed']} passed, {data['failed']} failed at commit {seq}.",
        "bold green" if data["ok"] else "bold red",
    )


def _read(files: Sequence[str], only: str | None) -> dict[str, list[FileTest]]:
    """Return the tests of each file whose name contains ``only``."""
    from keepward.memory_tests import read_tests

    found = {name: read_tests(Path(name)) for name in files}
    part = (only or "").casefold()
    chosen = {name: [each for each in tests if part in each.test.title.casefold()] for name, tests in found.items()}
    if not any(chosen.values()):
        names = ", ".join(each.test.title for tests in found.values() for each in tests[:5])
        raise InvalidInput(f"--only fits no test; there are, for example: {names}")
    return chosen


@operation_command(
    option("--test", "Instead of QUERY and --contains: a file with the test that fails now.", "FILE", "file"),
    _ONLY,
    without="purpose test",
    optional="query",
)
def bisect(
    call: CommandContext, query: str | None = None, file: str | None = None, only: str | None = None, **args: Any
) -> CommandResult:
    """Find the first commit after which the context for a query contains a text, or after which a test fails."""
    memory = call.memory("decide")
    if file:
        tests = [each.test for each in _read((file,), only)[file]]
        failing = [test for test, result in zip(tests, memory.run_tests(tests).items, strict=True) if not result.passed]
        if len(failing) != 1:
            names = ", ".join(test.title for test in failing)
            raise InvalidInput(f"several tests fail, name one with --only: {names}" if failing else "every test passes")
        args["test"] = failing[0]
    result = memory.bisect(query, **args)
    name = result.commit.commit.id
    next_commands = [f"keepward rollback {name}", f"keepward contain --commit {name}"]

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        show_commit(screen, data["commit"])
        screen.result({"compiled": data["compiled"], "next": next_commands})

    return CommandResult({**result.to_dict(), "next": next_commands}, draw)


@operation_command()
def check(call: CommandContext, **args: Any) -> CommandResult:
    """Compare memories with the sources that they cite, and mark what is stale; exits with 1 if something is.

    Files and git repositories are read below the folders of `evidence_roots` in the settings; nothing is fetched.
    `--contents '{"https://example.org/terms": "..."}'` hands in pages.
    """
    found = call.memory("decide").check(**args)
    others = pluralize(found.checked, "source", "sources")
    summary = (
        f"{others} checked, {found.fresh} as cited; {pluralize(len(found.stale), 'memory is', 'memories are')} stale"
    )
    return CommandResult(found.to_dict(), _show_sources, 1 if found.stale else 0, (summary,))


def _show_sources(screen: Screen, data: dict[str, Any]) -> None:
    for each in data["items"]:
        screen.labelled(
            each["state"], each["text"], "yellow" if each["state"] in {"changed", "missing"} else "dim", width=10
        )
        screen.labelled("", [f"{each['reference']} · memory {each['memory']}"], "dim", width=10)
        for sign, name in (("-", "before"), ("+", "after")):
            if each[name] is not None:
                screen.labelled("", [f"{sign} {each[name]}"], width=10)
        if each["why"]:
            screen.labelled("", [each["why"]], "dim", width=10)
