"""Memories whose files, git objects, pages and memories change: marked, left out, flagged, proposed, and fresh again."""

from __future__ import annotations

import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from outcomes import committed_record

from keepward import Actor, InvalidInput, Memory, Policy, Unauthorised

ON_BOTH_DATABASES = True
QUESTION = "Which port does the service use?"
PORT = "The service listens on port 8080"
#: The clock of these tests stands at 2026-03-01.
FLAG = "(its source changed on 2026-03-01)"
SOURCE = '''"""Settings."""

PORT = 8080


class Server:
    host = "db-7"

    def start(self):
        return self.host
'''


@pytest.fixture
def root(tmp_path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "conf.py").write_text(SOURCE)
    (folder / "notes.txt").write_text("Deploys go to db-7.\nTests run at night.\n")
    return folder


@pytest.fixture
def owner(path, tmp_path, clock, root):
    if isinstance(path, Path):
        path.parent.mkdir()
    given = {"embedder": None, "clock": clock, "config_dir": tmp_path / "config"}
    policy = Policy(evidence_roots=(str(root),))
    with Memory.open(path, actor=Actor.operator("olga"), policy=policy, **given) as memory:
        yield memory


def edit(root: Path, old: str, new: str, name: str = "conf.py") -> None:
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))


def cite(memory: Memory, *evidence: str, text: str = PORT, **fields) -> str:
    return committed_record(memory.remember(text, evidence=list(evidence), **fields)).id


def prompts(memory: Memory) -> dict[str, str]:
    return {purpose: memory.context(QUESTION, purpose=purpose).text for purpose in ("answer", "act")}


def test_a_changed_line_marks_the_memory_and_says_what_changed(owner, root):
    name = cite(owner, "file:conf.py#PORT")
    assert owner.check() == []
    edit(root, "8080", "9090")
    found = owner.check()
    assert [(each.state, each.before, each.after) for each in found] == [("changed", "PORT = 8080", "PORT = 9090")]
    assert (found.checked, found.marked, found.stale) == (1, (name,), (name,))


def test_act_leaves_a_stale_memory_out_and_answer_flags_it(owner, root):
    cite(owner, "file:conf.py#PORT")
    edit(root, "8080", "9090")
    owner.check()
    told = prompts(owner)
    assert f"{PORT} {FLAG}" in told["answer"]
    assert PORT not in told["act"]
    hits = {purpose: len(owner.recall(QUESTION, purpose=purpose)) for purpose in ("answer", "act", "core")}
    assert hits == {"answer": 1, "act": 0, "core": 0}
    made = owner.context(QUESTION, purpose="act", preview=True)
    assert [(each.code, each.why) for each in made.explanation.candidates] == [
        ("stale", "its source changed on 2026-03-01")
    ]


def test_nothing_is_marked_before_a_check(owner, root):
    cite(owner, "file:conf.py#PORT")
    edit(root, "8080", "9090")
    assert PORT in prompts(owner)["act"]


@pytest.mark.parametrize("fields", [{"kind": "state", "key": "port"}, {"kind": "rule", "stability": "permanent"}])
def test_sections_that_every_context_has_follow_the_mark(owner, root, fields):
    cite(owner, "file:conf.py#PORT", **fields)
    edit(root, "8080", "9090")
    owner.check()
    told = prompts(owner)
    assert "its source changed on 2026-03-01)" in told["answer"]
    assert PORT not in told["act"]


def test_a_core_block_is_flagged_and_never_cut(owner, root):
    cite(owner, "file:conf.py#PORT", tier="core", key="operating_rules")
    edit(root, "8080", "9090")
    owner.check()
    assert all(f"{PORT} {FLAG}" in text for text in prompts(owner).values())


def test_the_mark_goes_when_the_source_is_again_as_cited(owner, root):
    name = cite(owner, "file:conf.py#PORT")
    edit(root, "8080", "9090")
    owner.check()
    edit(root, "9090", "8080")
    assert owner.check().cleared == (name,)
    assert FLAG not in prompts(owner)["answer"]
    assert PORT in prompts(owner)["act"]


def test_the_mark_goes_with_a_revision_and_the_new_source_counts(owner, root):
    name = cite(owner, "file:conf.py#PORT")
    edit(root, "8080", "9090")
    owner.check()
    owner.revise(name, "The service listens on port 9090")
    assert "port 9090" in prompts(owner)["act"]
    assert owner.check() == []
    edit(root, "9090", "7070")
    assert [each.before for each in owner.check()] == ["PORT = 9090"]


def test_a_person_confirms_and_a_program_does_not(owner, root):
    name = cite(owner, "file:conf.py#PORT")
    edit(root, "PORT = 8080", "PORT = 8_080")
    owner.check()
    owner.as_actor(Actor.agent("bot")).reinforce(name)
    assert owner.get(name).stale_at is not None
    owner.reinforce(name)
    assert owner.get(name).stale_at is None
    assert owner.check() == []


def test_what_is_said_again_by_a_person_is_confirmed(owner, root):
    name = cite(owner, "file:conf.py#PORT")
    edit(root, "PORT = 8080", "PORT = 8_080")
    owner.check()
    assert owner.remember(PORT).outcome == "duplicate"
    assert owner.get(name).stale_at is None
    assert owner.check() == []


@pytest.mark.parametrize(
    ("cited", "old", "new", "before", "after"),
    [
        ("conf.py#Server.host", "db-7", "db-9", 'host = "db-7"', 'host = "db-9"'),
        ("conf.py#Server.start", "return self.host", "return None", "return self.host", "return None"),
        ("notes.txt#Deploys go to db-7.", "db-7", "db-9", "Deploys go to db-7.", "Deploys go to db-9."),
        ("notes.txt", "at night", "at noon", "Tests run at night.", "Tests run at noon."),
        ("conf.py#PORT = 8080", "8080", "9090", "PORT = 8080", "PORT = 9090"),
    ],
)
def test_each_way_to_cite_a_file(owner, root, cited, old, new, before, after):
    cite(owner, f"file:{cited}")
    name = cited.partition("#")[0]
    (root / name).write_text(
        f"\n{(root / name).read_text()}\nother = 1\n" if "#" in cited else (root / name).read_text()
    )
    assert owner.check() == []
    edit(root, old, new, name)
    assert [(each.before, each.after) for each in owner.check()] == [(before, after)]


def test_a_lost_file_makes_stale_and_one_that_never_was_does_not(owner, root):
    cite(owner, "file:conf.py")
    cite(owner, "file:never.py", text="The service logs to standard output")
    assert [each.state for each in owner.check()] == ["unread"]
    (root / "conf.py").unlink()
    assert [(each.state, each.why) for each in owner.check()] == [
        ("missing", "there is no such file"),
        ("unread", "there is no such file"),
    ]
    assert len(owner.check().stale) == 1


@pytest.mark.parametrize("way", ["above", "absolute", "link"])
def test_no_file_outside_of_the_roots_is_read(owner, root, tmp_path, way):
    secret = tmp_path / "secret.txt"
    secret.write_text("PORT = 8080\n")
    (root / "inside.txt").symlink_to(secret)
    name = {"above": "../secret.txt", "absolute": str(secret), "link": "inside.txt"}[way]
    cite(owner, f"file:{name}#PORT = 8080")
    secret.write_text("PORT = 9090\n")
    found = owner.check()
    assert [(each.state, each.why) for each in found] == [("unread", "it lies outside of the accepted folders")]
    assert found.stale == ()


def test_without_a_root_nothing_is_read(path, tmp_path, clock, root):
    if isinstance(path, Path):
        path.parent.mkdir()
    with Memory.open(path, actor=Actor.operator(), clock=clock, embedder=None, config_dir=tmp_path / "c") as memory:
        cite(memory, f"file:{root}/conf.py#PORT")
        edit(root, "8080", "9090")
        (state,) = memory.check()
        assert (state.state, state.why) == ("unread", "no folder is accepted: set `evidence_roots` under [policy]")


def test_a_root_is_an_absolute_path():
    with pytest.raises(InvalidInput, match="absolute paths of folders"):
        Policy(evidence_roots=("app",))


def git(root: Path, *arguments: str) -> str:
    names = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", "-C", str(root), *names, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@needs_git
@pytest.mark.parametrize("way", ["a folder of it", "a link to it", "a file that names it"])
def test_no_repository_outside_of_the_roots_is_read(owner, root, tmp_path, way):
    outside = tmp_path if way == "a folder of it" else tmp_path / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "secret.txt").write_text("PORT = 8080\n")
    git(outside, "init", "-q", "-b", "main")
    git(outside, "add", "secret.txt")
    git(outside, "commit", "-qm", "one")
    if way == "a link to it":
        (root / ".git").symlink_to(outside / ".git")
    elif way == "a file that names it":
        (root / ".git").write_text(f"gitdir: {outside / '.git'}\n")
    cite(owner, "git:main:secret.txt")
    assert [(each.state, each.why) for each in owner.check()] == [("unread", "no accepted folder is a git repository")]


@needs_git
def test_a_git_revision_is_compared_without_a_working_copy(owner, root):
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    commit = git(root, "rev-parse", "HEAD")
    branch, fixed = cite(owner, "git:main:conf.py#PORT"), cite(owner, f"git:{commit}:conf.py", text="It was 8080 first")
    kept = cite(owner, f"git:{commit[:12]}", text="The first commit has the settings")
    edit(root, "8080", "9090")
    assert owner.check() == []
    git(root, "commit", "-qam", "two")
    found = owner.check()
    assert [(each.memory, each.before, each.after) for each in found] == [(branch, "PORT = 8080", "PORT = 9090")]
    assert not {fixed, kept} & {*found.stale}


def test_no_git_is_said(owner, root, monkeypatch):
    cite(owner, "git:main:conf.py")
    monkeypatch.setenv("PATH", str(root))
    assert [(each.state, each.why) for each in owner.check()] == [("unread", "git is not installed")]


def test_a_page_is_compared_with_what_the_caller_hands_in(owner):
    address, text = "https://example.org/terms", "Refunds within 14 days"
    digest = sha256(text.encode()).hexdigest()
    cite(owner, f"url:{address} sha256:{digest}", text="Refunds are possible within 14 days")
    later = cite(owner, "url:https://example.org/other", text="Shipping takes two days")
    assert [each.state for each in owner.check()] == ["unread", "unread"]
    assert owner.check(contents={address: text}).fresh == 1
    pages = {address: "Refunds within 30 days", "https://example.org/other": "Two days"}
    assert {each.state for each in owner.check(contents=pages)} == {"changed", "recorded"}
    found = owner.check(contents={"https://example.org/other": "Three days"})
    changed = [(each.memory, each.before, each.after) for each in found if each.state == "changed"]
    assert changed == [(later, "Two days", "Three days")]
    with pytest.raises(InvalidInput, match="value of contents is a text"):
        owner.check(contents={"https://example.org/other": 7})


def test_a_memory_that_another_cites(owner):
    first = cite(owner, text="The office is in Linz")
    second = cite(owner, f"memory:{first}", text="Visitors take the train to Linz")
    assert owner.check() == []
    owner.revise(first, "The office is in Graz")
    assert [(each.memory, each.state) for each in owner.check()] == [(second, "changed")]
    owner.forget(first)
    assert [(each.state, each.why) for each in owner.check()] == [("missing", "it is retired")]


def test_the_job_marks_and_proposes_a_revision_and_performs_none(owner, root):
    name = cite(owner, "file:conf.py#PORT")
    edit(root, "8080", "9090")
    (run,) = owner.run_jobs("check_sources", force=True)
    assert (run.counts["marked"], run.counts["proposed"]) == (1, 1)
    assert owner.get(name).text == PORT
    (item,) = owner.pending()
    assert item.reason == "its source file:conf.py#PORT changed: PORT = 8080 → PORT = 9090"
    assert item.steps[0].after.text == "The service listens on port 9090"
    owner.run_jobs("check_sources", force=True)
    assert len(owner.pending()) == 1
    owner.approve(item.id)
    assert "port 9090" in prompts(owner)["act"]
    assert owner.check() == []


def test_where_no_word_tells_the_new_text_the_job_asks_to_retire(owner, root):
    cite(owner, "file:conf.py#Server.start", text="The server starts with its host")
    edit(root, "return self.host", "pass")
    owner.run_jobs("check_sources", force=True)
    (item,) = owner.pending()
    assert [step.op for step in item.steps] == ["retire"]
    owner.reject(item.id, reason="it still does")
    owner.run_jobs("check_sources", force=True)
    assert len(owner.pending()) == 0


def test_a_write_that_saw_the_version_before_the_mark_is_not_stale(owner, root):
    name = cite(owner, "file:conf.py#PORT")
    edit(root, "8080", "9090")
    owner.check()
    assert owner.revise(name, "The service listens on port 9090", if_version=1).outcome == "committed"


def test_the_past_and_a_replay_stay_as_they_were(owner, root, clock):
    name = cite(owner, "file:conf.py#PORT")
    before, made = owner.head, owner.context(QUESTION)
    clock.move(hours=1)
    edit(root, "8080", "9090")
    owner.check()
    flagged = owner.context(QUESTION)
    owner.revise(name, "The service listens on port 9090")
    assert FLAG not in owner.context(QUESTION, as_of=before).text
    assert [owner.replay(each.receipt.id).text for each in (made, flagged)] == [made.text, flagged.text]


def test_a_merge_of_a_stale_memory_is_stale(owner, root):
    name = cite(owner, "file:conf.py#PORT")
    other = cite(owner, text="The service writes logs to standard output")
    edit(root, "8080", "9090")
    owner.check()
    merged = owner.merge([name, other], text="It listens on port 8080 and logs to standard output").records[0]
    assert "(its source changed on " in owner.context(QUESTION).text
    assert owner.check().stale == (merged.id,)
    assert "8080" not in prompts(owner)["act"]


def test_a_change_far_down_a_file_is_said(owner, root):
    (root / "long.txt").write_text("".join(f"line {n}\n" for n in range(200)))
    cite(owner, "file:long.txt")
    edit(root, "line 190", "line 19x", "long.txt")
    assert [(each.before, each.why) for each in owner.check()] == [(None, "it differs after its first 400 characters")]


def test_free_text_evidence_is_left_alone(owner):
    cite(owner, "chat:42", "see the wiki", "file:", "git:-x:conf.py", "url:a b", "memory:")
    found = owner.check()
    assert (found.checked, found.items) == (0, ())


def test_an_agent_may_not_check(owner):
    with pytest.raises(Unauthorised):
        owner.as_actor(Actor.agent("bot")).check()


def test_a_secret_in_a_source_is_not_kept(owner, root, path):
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    edit(root, "PORT = 8080", f'PORT = "{key}"')
    cite(owner, "file:conf.py#PORT", text="The port is secret")
    edit(root, key, "changed")
    assert key not in repr(owner.check())
    if isinstance(path, Path):
        assert all(key.encode() not in file.read_bytes() for file in path.parent.iterdir() if file.is_file())


def test_erasing_a_memory_destroys_what_was_recorded_of_its_sources(owner, root, path):
    edit(root, "PORT = 8080", 'PORT = "biopsy"')
    name = cite(owner, "file:conf.py#PORT", text="The port has a strange name")
    owner.erase(owner.plan_erase(name).digest, name)
    assert owner.check().checked == 0
    assert owner.verify().ok
    if isinstance(path, Path):
        assert all(b"biopsy" not in file.read_bytes() for file in path.parent.iterdir() if file.is_file())
