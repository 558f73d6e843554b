"""Calls of other systems on the pages of a move are calls that their released packages have."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.samples import unrun

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
#: By page and object of its program: the wheel, and where the methods of this object are.
CALLS = {
    ("from-mem0", "memory"): ("mem0ai>=2.2,<3", "mem0/memory/main.py", "Memory"),
    ("from-letta", "client.agents"): (
        "letta-client>=1.12,<2",
        "letta_client/resources/agents/agents.py",
        "AgentsResource",
    ),
    ("from-letta", "client.agents.blocks"): (
        "letta-client>=1.12,<2",
        "letta_client/resources/agents/blocks.py",
        "BlocksResource",
    ),
    ("from-letta", "client.agents.passages"): (
        "letta-client>=1.12,<2",
        "letta_client/resources/agents/passages.py",
        "PassagesResource",
    ),
    ("from-letta", "client.agents.messages"): (
        "letta-client>=1.12,<2",
        "letta_client/resources/agents/messages.py",
        "MessagesResource",
    ),
}


@pytest.mark.proof
@pytest.mark.nightly
@pytest.mark.parametrize(("page", "owner"), CALLS)
def test_released_packages_have_the_calls_of_a_page(page: str, owner: str, tmp_path: Path) -> None:
    package, module, kind = CALLS[page, owner]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(tmp_path), package], check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    tree = ast.parse(zipfile.ZipFile(wheel).read(module))
    (owning,) = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == kind]
    methods = {each.name: each.args for each in owning.body if isinstance(each, ast.FunctionDef)}
    (program,) = unrun("python", (HOWTO / f"{page}.md").read_text("utf-8"))
    calls = [
        node
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == owner
    ]
    assert calls
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        takes = methods[call.func.attr]
        assert len(call.args) < len(takes.args), ast.unparse(call)
        known = {each.arg for each in (*takes.args, *takes.kwonlyargs)}
        assert {each.arg for each in call.keywords} <= known, ast.unparse(call)
