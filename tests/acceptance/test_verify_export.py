"""The single-file verifier on real exports, and on exports that were edited, cut, reordered and spliced."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest
from export_tool import TOOL, TOOLS

from keepward import Actor, Memory
from keepward.interchange import write_vault


@pytest.fixture
def owner(tmp_path, clock):
    with Memory.open(
        tmp_path / "m.db", embedder=None, clock=clock, config_dir=tmp_path / "config", actor=Actor.operator("olga")
    ) as memory:
        yield memory


@pytest.fixture
def filled_store(owner):
    """Commits of one and of many events, versions, odd letters, nested metadata, a rollback."""
    first = owner.remember("Ana prefers tabs", tier="archival", tags=["editor"], evidence=["chat:42"]).records[0]
    owner.revise(first.id, "Ana prefers spaces", reason="she changed her mind")
    owner.remember_many([f"the list has the entry {n}" for n in (3, 14, 159)], mode="atomic")
    gone = owner.remember("The office has a red door", tier="archival")
    owner.rollback(gone.commit.id)
    owner.remember("Zürich \u2028 东京 \U0001f600", tier="archival", metadata={"n": [1, {"x": None}]})
    return owner


@pytest.fixture
def export(filled_store, tmp_path):
    path = tmp_path / "vault.jsonl"
    write_vault(filled_store, path)
    return path


@pytest.fixture
def check(tmp_path, capsys):
    """Check lines; return the exit code and what was said."""

    def run(lines, *more):
        path = tmp_path / "bent.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        code = TOOLS.main([str(path), *more])
        return code, capsys.readouterr().out

    return run


@pytest.fixture
def lines(export):
    return export.read_bytes().splitlines()


def bent(line, **fields):
    """Return a line with fields changed, written as an export writes it."""
    text = json.dumps({**json.loads(line), **fields}, ensure_ascii=False, separators=(",", ":"))
    return text.translate(TOOLS.BREAKS).encode()


def test_a_real_export_holds(check, lines):
    code, said = check(lines)
    assert (code, said.splitlines()[-1]) == (0, "verified")


def test_it_says_what_it_checked(check, lines):
    assert "sequence    6 commits, 8 events, no gap\n" in check(lines)[1]


def test_it_runs_alone_with_nothing_but_the_standard_library(export):
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(TOOL), str(export)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "verified")


def test_it_is_written_for_python_3_9():
    ast.parse(TOOL.read_text("utf-8"), feature_version=(3, 9))


def test_it_imports_only_the_standard_library():
    names: set[str] = set()
    for node in ast.walk(ast.parse(TOOL.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).split(".")[0])
    assert names <= set(sys.stdlib_module_names)


def test_an_edited_text_is_named_with_its_line(check, lines):
    code, said = check([*lines[:1], lines[1].replace(b"spaces", b"spices"), *lines[2:]])
    assert (code, said) == (1, "FAULT       line 2: its content does not open its commitment\n")


@pytest.mark.parametrize(
    "fields",
    [
        {"op": "insert"},
        {"version": 3},
        {"n": 1},
        {"seq": 4},
        {"salt": "00" * 16},
        {"seal": "00" * 32},
        {"tier": "core"},
        {"status": "retired"},
        {"scope": "/agents/x"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_an_edited_field_of_an_event_is_noticed(check, lines, fields):
    assert check([lines[0], bent(lines[1], **fields), *lines[2:]])[0] == 1


@pytest.mark.parametrize("name", ["id", "at", "kind", "actor_kind", "events", "details", "salt", "prev", "hash"])
def test_an_edited_field_of_a_commit_is_noticed(check, lines, name):
    commit = json.loads(lines[1])["commit"]
    other = {
        "id": commit["id"][:-1] + ("e" if commit["id"].endswith("f") else "f"),
        "at": "2026-03-01T09:00:01+00:00",
        "kind": "job",
        "actor_kind": "agent",
        "events": 2,
        "details": {**commit["details"], "reason": "no"},
        "salt": "00" * 16,
        "prev": "00" * 32,
        "hash": "00" * 32,
    }
    assert check([lines[0], bent(lines[1], commit={**commit, name: other[name]}), *lines[2:]])[0] == 1


def test_a_cut_tail_is_noticed(check, lines):
    code, said = check(lines[:-1])
    assert (code, "it was cut or added to" in said) == (1, True)


def test_a_cut_inside_a_commit_is_noticed(check, lines):
    assert "commit 3 lacks 2 of its lines" in check(lines[:3])[1]


def test_a_missing_beginning_is_noticed(check, lines):
    assert check(lines[1:])[1] == "FAULT       line 1: the beginning is missing: the first line names no head\n"


@pytest.mark.parametrize("place", range(1, 7))
def test_a_line_that_was_taken_out_is_noticed(check, lines, place):
    assert check([*lines[:place], *lines[place + 1 :]])[0] == 1


@pytest.mark.parametrize("place", range(7))
def test_two_lines_that_changed_places_are_noticed(check, lines, place):
    lines[place], lines[place + 1] = lines[place + 1], lines[place]
    assert check(lines)[0] == 1


def test_a_line_that_appears_twice_is_noticed(check, lines):
    assert check([*lines[:2], lines[1], *lines[2:]])[0] == 1


def test_an_export_of_another_store_spliced_in_is_noticed(check, lines, tmp_path, clock):
    with Memory.open(
        tmp_path / "b.db", embedder=None, clock=clock, config_dir=tmp_path / "config", actor=Actor.operator("olga")
    ) as other:
        first = other.remember("Bo prefers tabs", tier="archival").records[0]
        other.revise(first.id, "Bo prefers spaces", reason="no")
        write_vault(other, tmp_path / "b.jsonl")
    spliced = (tmp_path / "b.jsonl").read_bytes().splitlines()[1]
    assert check([lines[0], spliced, *lines[2:]])[0] == 1


def test_an_older_export_is_caught_by_a_head_noted_elsewhere(check, filled_store, lines):
    filled_store.remember("One more thing", tier="archival")
    code, said = check(lines, "--head", filled_store.status()["head"])
    assert (code, "it is another one, or an older copy" in said) == (1, True)


def test_externally_recorded_head_is_found_in_a_longer_export(check, filled_store, lines, tmp_path):
    noted = filled_store.status()["head"]
    filled_store.remember("One more thing", tier="archival")
    write_vault(filled_store, tmp_path / "later.jsonl")
    assert check((tmp_path / "later.jsonl").read_bytes().splitlines(), "--head", noted)[0] == 0


def test_a_field_too_many_is_noticed(check, lines):
    assert check([lines[0], bent(lines[1], note="approved"), *lines[2:]])[0] == 1


def test_a_field_that_appears_twice_is_noticed(check, lines):
    twice = lines[1].replace(b'"op":', b'"text":"Ana prefers tea","op":', 1)
    assert check([lines[0], twice, *lines[2:]])[1] == "FAULT       line 2: a field stands twice\n"


def test_another_spelling_of_the_same_values_is_noticed(check, lines):
    assert check([lines[0], lines[1].replace(b"spaces", b"s\\u0070aces"), *lines[2:]])[0] == 1


def test_a_blank_between_fields_is_noticed(check, lines):
    assert check([lines[0], lines[1].replace(b'"op":', b'"op": ', 1), *lines[2:]])[0] == 1


def test_an_empty_file_is_a_fault(check):
    assert check([])[1] == "FAULT       after line 0: the file holds no memory version\n"


def test_a_file_that_is_not_there_exits_with_2(tmp_path, capsys):
    assert TOOLS.main([str(tmp_path / "none.jsonl")]) == 2


@pytest.mark.slow
def test_any_changed_byte_is_noticed(check, lines):
    # Every seventh byte of the whole file, so that each field is hit somewhere.
    whole = b"\n".join(lines)
    missed = []
    for at in range(0, len(whole), 7):
        if whole[at : at + 1] == b"\n":
            continue
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        try:
            TOOLS.verify(changed.split(b"\n"))
        except TOOLS.Fault:
            continue
        missed.append(whole[at - 20 : at + 20])
    assert missed == []


# --- with erased content


@pytest.fixture
def erased(filled_store, tmp_path):
    """The line of a memory, and the lines of an export once its content was erased."""
    record = filled_store.remember("Cleo lives at the harbour", tier="archival", reason="Cleo said so").records[0]
    write_vault(filled_store, tmp_path / "before.jsonl")
    filled_store.erase(filled_store.plan_erase([record.id]).digest, [record.id])
    write_vault(filled_store, tmp_path / "erased.jsonl")
    before, after = ((tmp_path / f"{name}.jsonl").read_bytes().splitlines() for name in ("before", "erased"))
    return before[-1], after


def test_an_export_with_erased_content_holds(check, erased):
    assert check(erased[1])[0] == 0


def test_it_says_how_much_was_erased(check, erased):
    assert "contents open theirs, 1 were erased\n" in check(erased[1])[1]


def test_content_that_no_erasure_names_may_not_be_missing(check, lines):
    line = json.loads(lines[1])
    gone = {"id": line["id"], "version": 2, "erased": True, "op": line["op"], "seq": 2, "n": 0, "salt": ""}
    text = json.dumps({**gone, "seal": line["seal"], "commit": line["commit"]}, separators=(",", ":")).encode()
    assert "the content at 2.0 is missing, and no later erasure names it" in check([lines[0], text, *lines[2:]])[1]


def test_content_that_was_erased_may_not_be_here_again(check, erased):
    back, lines = erased
    place = next(at for at, line in enumerate(lines) if b'"erased":true,"op"' in line)
    assert "was erased and is here again" in check([*lines[:place], back, *lines[place + 1 :]])[1]
