"""Export and import."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

from support import foreign


def test_an_export_says_how_many_lines_it_wrote(run, saved):
    assert run("export", "vault.jsonl", "--json").json["lines"] == 1


def test_a_round_trip_preserves_ids_versions_and_heads(run, saved):
    run("revise", saved["id"], "Ana prefers spaces", "--reason", "new", "--as", "operator")
    head = run("export", "vault.jsonl", "--json").json["head"]
    digest = run("restore-export", "vault.jsonl", "--db", "other.db", "--json").json["digest"]
    assert run("restore-export", "vault.jsonl", "--db", "other.db", "--apply", digest).code == 0
    again = run("status", "--db", "other.db", "--json").json["head"]
    memory = run("get", saved["id"], "--db", "other.db", "--json").json
    assert (again, memory["version"]) == (head, 2)


def test_a_plan_of_a_restore_makes_no_store(run, saved, tmp_path):
    run("export", "vault.jsonl")
    plan = run("restore-export", "vault.jsonl", "--db", "new.db")
    told = (plan.code, "nothing was changed" in plan.err, "made a new store" in plan.err)
    assert (told, list(tmp_path.rglob("*:memory:*")), list(tmp_path.rglob("new.db"))) == ((0, True, False), [], [])


def test_messages_come_in_from_stdin(run):
    body = json.dumps([{"role": "user", "content": "I like green tea"}]).encode()
    assert run("import", "-", "--format", "messages", "--json", stdin=body).json["committed"] == 1


def test_a_missing_file_is_an_error_and_makes_no_store(run, tmp_path):
    ran = run("import", "nowhere.json")
    assert (ran.code, (tmp_path / "keepward.db").exists()) == (2, False)


def test_an_import_reads_a_pipe_once(run):
    reading, writing = os.pipe()
    os.write(writing, b"# Ferry\n\n- The ferry leaves at six\n")
    os.close(writing)
    ran = run("import", "--from", "markdown", f"/dev/fd/{reading}")
    os.close(reading)
    assert (ran.code, "1 committed" in ran.out) == (0, True)


def test_a_generated_column_of_a_sqlite_file_is_not_computed(run, tmp_path):
    foreign.computed_store(tmp_path / "s.db")
    ran = run("import", "s.db")
    assert (ran.code, "s.db: the table 'store' has the generated column 'boom'" in ran.err) == (2, True)


def test_an_empty_path_is_not_this_folder(run, tmp_path):
    (tmp_path / "notes.md").write_text("- The ferry leaves at six\n")
    assert (run("import", "").code, (tmp_path / "keepward.db").exists()) == (2, False)


def test_an_import_of_which_nothing_was_stored_exits_5(run, tmp_path):
    key = "AK" + "IA" + "QWERTYUIOPASDFGH"
    (tmp_path / "notes.json").write_text(json.dumps([{"text": f"the key is {key}"}]))
    assert run("import", "notes.json", "--format", "records").code == 5


def test_an_export_says_what_is_not_in_it(run, saved):
    assert (
        "not included: the review queue, receipts, feedback, learned weights and usage counts"
        in run("export", "vault.jsonl").err
    )


def test_everything_about_one_person_is_written_as_one_object(run, saved, tmp_path):
    file = tmp_path / "ana.json"
    told = run("export", str(file), "--subject", "ana")
    found = json.loads(file.read_text("utf-8"))
    assert [each["id"] for each in found["memories"]] == [saved["id"]]
    assert "memory, 1 version, 0 proposals, 0 contexts" in told.out
    assert [sentence for sentence in found["left_out"] if sentence not in told.err] == []
    assert run("export", str(file), "--subject", "ana").code == 2
    assert json.loads(run("export", "--subject", "ana").out)["memories"] == found["memories"]


@pytest.mark.parametrize("actor", [(), ("--as", "operator")])
def test_one_user_is_exported_as_notes_only(run, tmp_path, actor):
    for user in ("ana", "bo"):
        run("remember", f"{user} likes tea", "--user", user)
    refused = run("export", "--user", "bo", *actor)
    assert (refused.code, refused.out, "export FOLDER --markdown --scope /users/bo" in refused.err) == (2, "", True)
    assert run("export", "bo", "--user", "bo", "--markdown", *actor).code == 0
    assert [path.name[:12] for path in (tmp_path / "bo").rglob("*.md")] == ["bo likes tea"]


@pytest.fixture
def foreign_folder(tmp_path):
    foreign.written(tmp_path)


def test_an_import_says_how_to_see_and_to_undo_it(run, foreign_folder):
    ran = run("import", "chatgpt-export.zip")
    assert "keepward impact --source import:chatgpt-export.zip" in ran.err


def test_a_dry_run_says_what_would_come_and_stores_nothing(run, saved, foreign_folder):
    head = run("status", "--json").json["head"]
    ran = run("import", "mem0.json", "--dry-run")
    assert ("would import" in ran.out, run("status", "--json").json["head"]) == (True, head)


@pytest.fixture
def fresh(run, tmp_path, monkeypatch):
    """A machine without store, key or folders of Keepward; lists what a command left there."""
    monkeypatch.setenv("KEEPWARD_DATA", str(tmp_path / "data" / "keepward"))

    def left_by(*arguments, **how):
        ran = run(*arguments, **how)
        return ran, [each.name for each in (tmp_path / "data", tmp_path / "home") if each.exists()]

    return left_by


CHAT = json.dumps([{"role": "user", "content": "I like green tea"}])


@pytest.mark.parametrize("source", ["chat.json", "-"])
def test_a_dry_run_without_a_store_leaves_nothing_on_disk(fresh, tmp_path, source):
    (tmp_path / "chat.json").write_text(CHAT)
    ran, left = fresh("import", source, "--dry-run", "--json", stdin=CHAT.encode())
    assert (ran.code, ran.json["committed"], left) == (0, 1, [])


UNUSABLE = {
    "not a chat": "no format that anybody knows",
    "an empty agent file": json.dumps({"agents": [{}], "blocks": [{"value": ""}]}),
    "a damaged line": json.dumps({"role": "user", "content": None}),
}


@pytest.mark.parametrize("content", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("source", ["chat.json", "-"])
def test_an_import_of_nothing_usable_leaves_nothing_on_disk(fresh, tmp_path, source, content):
    (tmp_path / "chat.json").write_text(content)
    assert fresh("import", source, stdin=content.encode())[1] == []


WRONG = [
    ("import", "chat.json", "--embedder", "nobody-knows"),
    ("import", "chat.json", "--scope", "../above"),
    ("add", "agent.json"),
    ("remember", "Ana likes tea", "--tier", "nowhere"),
    ("restore-export", "chat.json", "--apply", "0" * 64),
]


@pytest.mark.parametrize(
    "arguments",
    [
        "migrate",
        "migrate old.db",
        "migrate old.db --to new.db",
        "recover",
        "recover old.db",
        "recover old.db new.db --to third.db",
        "recover old.db new.db --dry-run",
    ],
)
def test_store_takes_the_arguments_of_its_action_alone(run, saved, arguments):
    ran = run("store", *arguments.split())
    assert (ran.code, "store migrate takes" in ran.err or "store recover takes" in ran.err) == (2, True)


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_failing_first_command_leaves_nothing_on_disk(fresh, tmp_path, arguments):
    (tmp_path / "chat.json").write_text(CHAT)
    (tmp_path / "agent.json").write_text(json.dumps([{"role": "narrator", "content": "Once upon a time"}]))
    ran, left = fresh(*arguments)
    assert (ran.code, left) == (2, [])


def test_a_token_without_its_store_leaves_nothing_on_disk(fresh, tmp_path, monkeypatch):
    (tmp_path / "chat.json").write_text(CHAT)
    monkeypatch.setenv("KEEPWARD_TOKEN", "kw_" + "0" * 43)
    ran, left = fresh("import", "chat.json")
    assert (ran.code, ":memory:" in ran.err, left) == (8, False, [])


def test_a_wrong_digest_restores_nothing_and_makes_no_store(run, saved, tmp_path):
    run("export", "vault.jsonl")
    ran = run("restore-export", "vault.jsonl", "--db", "new.db", "--apply", "0" * 64)
    assert (ran.code, list(tmp_path.rglob("new.db"))) == (4, [])


def test_wrong_format_name_is_a_usage_error_with_a_suggestion(run, foreign_folder):
    ran = run("import", "zep.json", "--from", "mem0")
    assert (ran.code, "seems to be zep" in ran.err) == (2, True)


def test_notes_are_exported_into_a_folder(run, saved, tmp_path):
    told = run("export", "notes", "--markdown", "--json").json
    assert (told["lines"], len(list((tmp_path / "notes").glob("*.md")))) == (1, 1)
    assert run("export", "--markdown").code == 2


def test_an_import_that_needs_a_user_makes_no_store(fresh, tmp_path):
    facts = [{"uuid": each, "name": "IS", "fact": f"{each} rows", "group_id": each} for each in ("ana", "bo")]
    (tmp_path / "groups.json").write_text(json.dumps(facts))
    ran, left = fresh("import", "groups.json")
    assert (ran.code, "--user NAME" in ran.err, left) == (2, True, [])


def test_live_memories_go_out_as_legacy_lines(run, saved, tmp_path):
    assert run("export", "old.jsonl", "--legacy", "--json").json["lines"] == 1
    assert json.loads((tmp_path / "old.jsonl").read_text())["tier"] == "register"
    assert run("export", "old.jsonl", "--legacy").code == 2


@pytest.mark.parametrize(
    "forms", ["--legacy --markdown", "--legacy --subject ana", "--markdown --subject ana"], ids=lambda each: each
)
def test_an_export_has_one_form(run, saved, tmp_path, forms):
    ran = run("export", "out", *forms.split())
    assert (ran.code, "exclude each other" in ran.err, (tmp_path / "out").exists()) == (2, True, False)


@pytest.mark.parametrize(("options", "bar"), [((), True), (("--quiet",), False)])
def test_an_import_draws_a_bar_at_a_terminal(run, saved, tmp_path, options, bar):
    (tmp_path / "notes.csv").write_text("text\nTea is at four\nRain came at noon\n")
    theirs, ours = pty.openpty()
    command = [sys.executable, "-m", "keepward", "import", str(tmp_path / "notes.csv"), *options]
    done = subprocess.run(command, stdin=ours, stdout=subprocess.PIPE, stderr=ours, timeout=120, check=False)
    os.write(ours, b".")
    os.close(ours)
    drawn = os.read(theirs, 65_536).decode()
    os.close(theirs)
    assert (done.returncode, "importing" in drawn, "2/2" in drawn) == (0, bar, bar)
