"""The image, the files of compose, Kubernetes and systemd, and the workflows: what they run works, and schemas take them."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
UNIT = (ROOT / "deploy" / "keepward.service").read_text("utf-8")
KUBERNETES = list(yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text("utf-8")))
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def _of_image(instruction: str) -> list[str]:
    """Return the words of the last instruction of the image, such as its ``CMD``."""
    return json.loads(re.findall(rf"^\s*{instruction} (\[.*\])$", DOCKERFILE, re.MULTILINE)[-1])


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


@pytest.fixture
def served(tmp_path):
    """Run the entry point of the image with its arguments on a free port; return how to ask it."""
    port = _free_port()
    assert _of_image("ENTRYPOINT") == ["tini", "--", "keepward"]
    start = _of_image("CMD")
    folders = {name: tmp_path / name for name in ("data", "keys", "tmp", "work")}
    for each in folders.values():
        each.mkdir()
    environ = {"PATH": os.environ["PATH"], "KEEPWARD_DATA": str(folders["data"]), "KEEPWARD_HOME": str(folders["keys"])}
    environ |= {"HOME": "/nonexistent", "TMPDIR": str(folders["tmp"]), "KEEPWARD_EMBEDDER": "none"}
    command = [sys.executable, "-m", "keepward", *start, "--port", str(port)]
    with subprocess.Popen(command, env=environ, cwd=folders["work"], stdout=subprocess.DEVNULL) as server:

        def ask(path: str, host: str = "localhost") -> int:
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host})
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return answer.status
            except urllib.error.HTTPError as fault:
                with fault:
                    return fault.code

        deadline = time.monotonic() + 120
        while server.poll() is None and time.monotonic() < deadline:
            try:
                if ask("/ready") == 200:
                    break
            except OSError:
                time.sleep(0.05)
        try:
            yield ask, port, folders
        finally:
            server.terminate()
            assert server.wait(60) == 0


def test_image_makes_its_store_and_answers_its_health_check(served):
    ask, port, folders = served
    words = json.loads(re.search(r"HEALTHCHECK[^\[]*CMD (\[.*\])", DOCKERFILE)[1])
    done = subprocess.run([sys.executable, *[each.replace("8321", str(port)) for each in words[1:]]], check=False)
    assert done.returncode == 0
    assert (folders["data"] / "keepward.db").exists()
    # Nothing of the store's keys lies beside it, and nothing else of the file system was written.
    assert not list(folders["data"].rglob("key"))
    assert list((folders["keys"] / "stores").glob("*/key"))
    assert list(folders["work"].iterdir()) == []
    assert ask("/health") == 200
    assert ask("/health", "evil.example") == 421


def test_image_runs_without_rights_and_without_a_home():
    user = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
    assert user == [("10001", "10001")]
    assert _of_image("ENTRYPOINT")[:2] == ["tini", "--"]
    assert "KEEPWARD_DATA=/data" in DOCKERFILE
    assert "KEEPWARD_HOME=/keys" in DOCKERFILE


def test_image_takes_all_that_the_package_is_built_from():
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"!{project['readme']}" in ignored
    assert "!src" in ignored
    assert "!LICENSE" in ignored


def test_compose_has_a_read_only_server_on_the_role_of_the_documentation():
    server, database = COMPOSE["services"]["keepward"], COMPOSE["services"]["db"]
    assert server["read_only"]
    assert server["cap_drop"] == ["ALL"]
    assert server["environment"]["KEEPWARD_DB"] == "postgresql://keepward@db/memory"
    assert all(each.startswith("127.0.0.1:") for each in server["ports"])
    (script,) = [each.split(":")[0] for each in database["volumes"] if each.startswith("./")]
    statements = (ROOT / script).read_text("utf-8")
    page = (ROOT / "docs" / "howto" / "postgresql.md").read_text("utf-8")
    for each in ("CREATE ROLE keepward LOGIN PASSWORD", "CREATE DATABASE memory OWNER keepward;"):
        assert each in statements
        assert each in page


def test_kubernetes_has_a_server_without_rights_that_its_probes_reach():
    (deployment,) = [each for each in KUBERNETES if each["kind"] == "Deployment"]
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsUser"] == 10001
    assert container["securityContext"]["readOnlyRootFilesystem"]
    hosts = [
        given for name, given in zip(container["args"], container["args"][1:], strict=False) if name == "--allow-host"
    ]
    for probe in ("readinessProbe", "livenessProbe"):
        (header,) = container[probe]["httpGet"]["httpHeaders"]
        assert header["value"] in hosts
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/data", "/keys", "/tmp"}


def test_unit_has_its_folders_apart():
    folders = re.search(r"^Environment=KEEPWARD_DATA=/var/lib/(\S+) KEEPWARD_HOME=/var/lib/(\S+)$", UNIT, re.MULTILINE)
    assert re.search(r"^StateDirectory=(.+)$", UNIT, re.MULTILINE)[1].split() == list(folders.groups())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_pins_its_actions_and_gives_few_rights(path):
    text = path.read_text("utf-8")
    actions = re.findall(r"uses: (\S+)(.*)", text)
    assert actions
    assert [
        name for name, note in actions if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name) or " # v" not in note
    ] == []
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_runs_what_stands_in_the_repository(path):
    for name in re.findall(r"(?:python|bash) ((?:tools|\.ci)/\S+)", path.read_text("utf-8")):
        assert (ROOT / name).is_file(), name
    for target in re.findall(r"run: make (\S+)", path.read_text("utf-8")):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE), target


def test_tests_run_on_every_system_and_python_that_is_declared():
    matrix = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))["jobs"]["everyday"]["strategy"][
        "matrix"
    ]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    pythons = [each.rpartition(" ")[2] for each in declared if re.search(r"Python :: 3\.\d+$", each)]
    assert matrix["python"] == pythons
    assert [each.split("-")[0] for each in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert sum("Operating System ::" in each for each in declared) == 3


SCHEMAS = [
    ("vendor.github-workflows", [str(path.relative_to(ROOT)) for path in WORKFLOWS]),
    ("custom.github-workflows-require-timeout", [str(path.relative_to(ROOT)) for path in WORKFLOWS]),
    ("vendor.dependabot", [".github/dependabot.yml"]),
    ("vendor.compose-spec", ["compose.yaml"]),
]


def _passes(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("schema", "files"), SCHEMAS, ids=[name for name, _ in SCHEMAS])
def test_file_keeps_its_schema(schema, files):
    _passes(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files)


@pytest.mark.slow
def test_kubernetes_takes_the_example():
    _passes(str(Path(sys.executable).with_name("kubernetes-validate")), "--strict", "deploy/kubernetes.yaml")


@pytest.mark.slow
def test_hadolint_finds_nothing():
    _passes(str(Path(sys.executable).with_name("hadolint")), "Dockerfile")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit(tmp_path):
    unit = tmp_path / "keepward.service"
    unit.write_text(UNIT.replace("/opt/keepward/bin/keepward", sys.executable), "utf-8")
    _passes("systemd-analyze", "verify", "--man=no", str(unit))
