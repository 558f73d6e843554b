"""What all commands share: options, help, errors, exit codes, streams."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keepward import __main__ as program
from keepward import errors
from keepward.cli.command import EXIT_CODE_OF, EXIT_CODES
from keepward.cli.main import command_tree
from support import tamper

COMMANDS = list(command_tree().paths)


def test_help_lists_every_command(run):
    told = run("--help").out
    assert [name for name in COMMANDS if f"\n  {name} " not in told] == []


def test_help_documents_every_exit_code(run):
    told = run("--help").out.partition("Exit codes:")[2]
    assert [int(line.split()[0]) for line in told.splitlines() if line.strip()[:1].isdigit()] == list(EXIT_CODES)


def test_help_says_who_a_command_acts_as(run):
    assert "--as operator" in " ".join(run("--help").out.split())


def test_help_fits_80_columns_and_lists_shared_options(run):
    shared = ("--db", "--tenant", "--scope", "--as", "--json", "--quiet")
    for command in COMMANDS:
        told = run(command, "--help").out
        assert [line for line in told.splitlines() if len(line) > 80] == [], command
        assert [option for option in shared if option not in told] == [], command


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("remember", "TEXT Text of the memory; - reads stdin. [required]"),
        ("remember", "--tier TIER core, working, episodic or archival. Default: by kind, else archival."),
        (
            "remember",
            "--evidence REF References that support it, such as chat:42. A check compares file:PATH#NAME,",
        ),
        ("revise", "[TEXT] "),
        ("revise", "`never` removes it."),
        ("forget", "[ID] "),
        ("merge", "ID... "),
        ("list", "--limit N Maximum number of items. [default: 50]"),
        ("context-diff", "RECEIPT "),
        ("bisect", "--contains TEXT The text to search for in the context."),
        ("list", "--tier TIER Only with core, working, episodic or archival. May be repeated."),
        ("mcp", "--name NAME Name of the agent; receipts contain it. --list"),
    ],
)
def test_help_says_what_an_argument_is_and_what_happens_without_it(run, command, told):
    assert told in " ".join(run(command, "--help").out.split())


def test_without_a_command_the_help_is_shown(run):
    ran = run()
    assert (ran.code, ran.out.startswith("Usage: keepward")) == (0, True)


@pytest.mark.parametrize("place", ["before", "after"])
def test_shared_options_work_before_and_after_the_command(run, tmp_path, place):
    options = ("--db", "other.db", "--json")
    run(*options, "init") if place == "before" else run("init", *options)
    assert (tmp_path / "other.db").exists()


def test_the_nearer_of_two_options_wins(run):
    assert run("--tenant", "a", "init", "--tenant", "b", "--json").json["tenant"] == "b"


def test_the_environment_names_the_store(run, tmp_path, monkeypatch):
    monkeypatch.setenv("KEEPWARD_DB", str(tmp_path / "named.db"))
    assert run("init", "--json").json["path"] == str(tmp_path / "named.db")


def test_an_option_beats_the_environment(run, monkeypatch):
    monkeypatch.setenv("KEEPWARD_TENANT", "acme")
    assert run("init", "--tenant", "other", "--json").json["tenant"] == "other"


USAGE = {
    "an unknown command": ("rember", "x"),
    "an unknown option": ("recall", "x", "--depth", "3"),
    "a missing argument": ("recall",),
    "too many arguments": ("recall", "x", "y"),
    "an option without its value": ("recall", "x", "--limit"),
    "a number that is none": ("recall", "x", "--limit", "many"),
    "no command with --json": (),
    "a job and all jobs": ("jobs", "run", "prune", "--due"),
    "a digest for several": ("approve", "one", "other", "--digest", "00"),
    "no reason": ("reject", "one"),
    "an unknown format": ("import", "chat.json", "--format", "carrier-pigeon"),
}


@pytest.mark.parametrize("arguments", USAGE.values(), ids=USAGE.keys())
def test_a_usage_error_exits_2_with_one_object_on_stdout(run, arguments):
    ran = run(*arguments, "--json")
    assert (ran.code, ran.json["error"].keys()) == (2, {"code", "message"})
    assert ran.err == f"keepward: {ran.json['error']['message']}\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("remember", "my", "tea"), "put quotes around"),
        (("remember", "-tea"), "put -- before"),
        (("recall", "x", "--limit", "many"), "'many' is not a valid integer"),
        (("remembr", "x"), "did you mean `remember`?"),
        (("search", "x"), "did you mean `recall`?"),
        (("get-all",), "did you mean `list`?"),
    ],
)
def test_a_usage_error_says_what_helps(run, arguments, told):
    assert told in run(*arguments).err


def test_every_error_has_a_documented_exit_code():
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    assert [each.code for each in classes if EXIT_CODE_OF.get(each.code, 1) not in EXIT_CODES] == []


ACCESS = "; give this user access to the file and its folders"


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (PermissionError(13, "Permission denied", "/srv/k.db"), f"Permission denied (/srv/k.db){ACCESS}"),
        (PermissionError(13, "Permission denied"), f"Permission denied{ACCESS}"),
        (OSError(28, "No space left on device", "/srv/k.db"), "No space left on device (/srv/k.db)"),
        (OSError("odd"), "input or output error"),
    ],
)
def test_fault_of_the_system_names_the_file_and_what_helps(run, monkeypatch, fault, line):
    def broken(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("keepward.memory.Memory.open", broken)
    ran = run("init")
    assert (ran.code, ran.err) == (1, f"keepward: the system reports: {line}\n")


def test_an_unexpected_fault_is_one_line_and_no_trace(run, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("hunter2")

    monkeypatch.setattr("keepward.memory.Memory.open", broken)
    ran = run("init")
    assert (ran.code, ran.out, "hunter2" in ran.err, len(ran.err.splitlines())) == (1, "", False, 1)


@pytest.mark.parametrize(
    ("given", "asked", "code"),
    [
        ("agent:claude", "operator", 7),
        ("agent:claude", "agent:claude", 0),
        ("reviewer", "agent", 0),
        ("operator", "agent", 0),
    ],
)
def test_as_can_only_lower_who_the_environment_names(run, saved, monkeypatch, given, asked, code):
    monkeypatch.setenv("KEEPWARD_ACTOR", given)
    assert run("list", "--as", asked).code == code


@pytest.mark.parametrize(
    "arguments",
    [
        ("erase", "{id}"),
        ("restore-backup", "copy.db", "--to", "back.db"),
        ("export", "vault.jsonl"),
        ("jobs", "run", "prune"),
        ("train",),
        ("drill",),
        ("tenants",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_agent_may_not_run_a_command_of_people(run, saved, arguments):
    run("backup", "copy.db")
    assert run(*(each.format(**saved) for each in arguments), "--as", "agent:bot").code == 7


def test_an_agent_named_by_the_environment_cannot_approve(run, held, monkeypatch):
    monkeypatch.setenv("KEEPWARD_ACTOR", "agent:claude")
    assert run("approve", held["item"]["id"]).code == 7


@pytest.mark.parametrize("who", ["root", "agent:"])
def test_as_takes_known_principals_alone(run, saved, who):
    assert run("list", "--as", who).code == 2


def test_a_scope_narrows_what_is_seen(run):
    run("remember", "Orion likes maps", "--scope", "orion", "--as", "operator")
    seen = [len(run("list", "--scope", scope, "--json").json["items"]) for scope in ("orion", "vega")]
    assert seen == [1, 0]


LIGHT = "import sys, keepward.cli.main as c; c.main(['--help']); print(sorted({'numpy', 'rich', 'pydantic', "
LIGHT += "'keepward.memory', 'sqlite3', 'fastapi', 'starlette', 'uvicorn', 'mcp'} & sys.modules.keys()))"


def test_help_imports_nothing_heavy():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_runs_as_a_program(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "keepward", "recall", "x", "--json"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 8


@pytest.mark.slow
@pytest.mark.parametrize(("closed", "code"), [("remember - <&-", 5), ("version >&-", 0), ("recall x 2>&-", 8)])
def test_a_stream_that_the_caller_closed_is_empty(tmp_path, closed, code):
    line = f"{sys.executable} -m keepward --db {tmp_path}/memory.db --embedder none {closed}"
    done = subprocess.run(["sh", "-c", line], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "Error" in done.stderr) == (code, False)


def test_a_reader_that_goes_away_is_no_fault(run, saved):
    code = "import sys; from keepward.cli.main import main; sys.exit(main(['--help']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert (child.stderr.read(), child.wait()) == ("", 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize(("option", "buffered"), [("", ""), pytest.param("--json", "1", marks=pytest.mark.slow)])
def test_full_stdout_is_one_line_without_a_traceback(run, saved, option, buffered):
    line = f"{sys.executable} -m keepward list {option} >/dev/full"
    environment = {**os.environ, "PYTHONUNBUFFERED": buffered}
    done = subprocess.run(["sh", "-c", line], check=False, capture_output=True, text=True, timeout=60, env=environment)
    assert (done.returncode, done.stderr.splitlines()) == (1, ["keepward: the system reports: No space left on device"])


def test_write_to_an_in_memory_store_warns_of_its_loss(run):
    assert "none of it is stored" in run("remember", "Ana prefers tabs", "--db", ":memory:").err


def test_unknown_format_is_named_by_its_first_option(run, tmp_path):
    assert run("import", str(tmp_path), "--from", "nonsense").err.startswith("keepward: --from: unknown format")


def test_an_interrupt_exits_130_and_says_what_it_means(run, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("keepward.memory.Memory.open", interrupted)
    ran = run("init", "--json")
    assert (ran.code, ran.json["error"]["code"], "again to continue" in ran.err) == (130, "interrupted", True)


def test_what_the_library_logs_is_one_line_on_stderr(run, saved, tmp_path):
    tamper.run(tmp_path / "keepward.db", tamper.BENT_BODY.format(saved["id"]))
    told = run("list", "--json")
    assert (told.code, told.err.count("keepward: memory "), len(told.err.splitlines())) == (0, 1, 2)


def test_a_message_cannot_move_the_cursor(run, saved):
    assert "\x1b" not in run("get", "\x1b[2Jid").err


def loaded_by_a_recall(store: Path, names: str, *options: str) -> str:
    """Run a recall in a process of its own; return its exit code and the modules among ``names`` that it loaded."""
    script = (
        "import sys; from keepward.cli.main import main;"
        "code = main(['recall', 'tabs', '--db', *sys.argv[1:]]);"
        f"print(code, sorted(name for name in sys.modules if name.startswith({names})))"
    )
    given = [sys.executable, "-c", script, str(store), *options]
    return subprocess.run(given, capture_output=True, text=True, check=True).stdout.splitlines()[-1]


def test_a_command_loads_no_converter_that_it_does_not_need(tmp_path):
    assert loaded_by_a_recall(tmp_path / "none.db", "'pydantic'") == "8 []"


@pytest.mark.slow
def test_a_recall_loads_nothing_that_writes(saved, tmp_path):
    names = "('keepward.gates.pipeline', 'keepward.services.review.edits')"
    assert loaded_by_a_recall(tmp_path / "keepward.db", names, "--quiet", "--json") == "0 []"


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_completion_is_shown_for_the_shell_that_runs(run, monkeypatch, shell):
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    assert "_KEEPWARD_COMPLETE" in run("--show-completion").out


@pytest.mark.parametrize(
    ("shell", "file", "begins"),
    [
        ("bash", ".bashrc", 'eval "$(_KEEPWARD_COMPLETE=bash_source keepward)"\n'),
        ("zsh", ".zshrc", 'eval "$(_KEEPWARD_COMPLETE=zsh_source keepward)"\n'),
        ("fish", ".config/fish/completions/keepward.fish", "function _keepward_completion"),
    ],
)
def test_completion_is_installed_once(run, monkeypatch, tmp_path, shell, file, begins):
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    monkeypatch.setenv("HOME", str(tmp_path))
    texts = []
    for _ in range(2):
        assert run("--install-completion").code == 0
        texts.append((tmp_path / file).read_text())
    assert (texts[0] == texts[1], texts[0].startswith(begins)) == (True, True)


def test_a_shell_gets_the_commands_that_begin_so(run, monkeypatch):
    for name, value in (("_KEEPWARD_COMPLETE", "bash_complete"), ("COMP_WORDS", "keepward rec"), ("COMP_CWORD", "1")):
        monkeypatch.setenv(name, value)
    assert run().out.split() == ["plain,recall", "plain,receipt"]


def test_completion_for_another_shell_is_an_error(run, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert run("--show-completion").code == 2


def test_command_skips_garbage_collection_at_its_end(monkeypatch):
    steps: list[object] = []
    monkeypatch.setattr(gc, "set_threshold", steps.append)
    monkeypatch.setattr(gc, "freeze", lambda: steps.append("frozen"))
    monkeypatch.setattr(sys, "argv", ["keepward", "--version"])
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert (program.main(), steps[-1]) == (0, "frozen")
