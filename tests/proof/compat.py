"""Run each adapter on the oldest and the newest release that its extra allows: `python compat.py [EXTRA ...]`.

Every pair gets an environment of its own, which is removed afterwards. On the newest release the page of the adapter
runs, too, with nothing installed but what it says. The page of a vendor, and one over MCP, runs on both, with the
package itself; the server of a vendor is a script.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.samples import blocks  # noqa: E402

PROGRAMS = Path(__file__).parent / "frameworks"
#: The programs of each extra, and what else they import.
RUNS = {
    "langgraph": ("langmem", ["langmem"]),
    "anthropic": ("anthropic", []),
    "openai-agents": ("openai_agents", []),
    "claude-agent-sdk": ("claude_agent_sdk", []),
    "agent-framework": ("agent_framework", []),
    "google-adk": ("google_adk", []),
    "llama-index": ("llama_index", []),
    "pydantic-ai": ("pydantic_ai", []),
    "crewai": ("crewai", ["pytest"]),
    "strands": ("strands", []),
}
#: The package of each vendor's page, and the lowest version with what the page uses.
VENDORS = {
    "openai": ("openai", "1.60.0"),
    "claude": ("anthropic", "0.45.0"),
    "gemini": ("google-genai", "1.20.0"),
    "ollama": ("ollama", "0.4.0"),
    "litellm": ("litellm", "1.70.0"),
}
#: The same of each page over MCP.
OVER_MCP = {
    "agno": ("agno[mcp]", "3.1.0"),
    "haystack": ("mcp-haystack", "2.0.0"),
    "dspy": ("dspy", "3.4.0"),
    "smolagents": ("smolagents[mcp]", "1.22.0"),
    "autogen": ("autogen-ext[mcp]", "0.6.1"),
    "semantic-kernel": ("semantic-kernel[mcp]", "1.30.0"),
}
#: Those which need an older `mcp` than `keepward mcp`: the server has an environment of its own.
APART = {"smolagents", "autogen", "semantic-kernel"}


def bounds() -> dict[str, tuple[str, str]]:
    """Return the package of each extra and the lowest version that it allows."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    found = {name: re.fullmatch(r"([\w-]+)>=([\d.]+),<\d+", extras[name][0]) for name in RUNS}
    return {name: (match[1], match[2]) for name, match in found.items() if match}


def page_of(extra: str) -> tuple[list[str], list[str]]:
    """Return what the page of an adapter installs besides its extra, and its programs."""
    page = (ROOT / "docs" / "howto" / "frameworks" / f"{extra}.md").read_text("utf-8")
    installed = [word for line in re.findall(r"^pip install (.*)$", page, re.MULTILINE) for word in line.split()]
    return [word for word in installed if not word.startswith("'keepward[")], blocks("python", page)


def fault_of(extra: str, wanted: str) -> str:
    """Return why a program does not run with a release; empty if it does."""
    name, more = RUNS[extra]
    further, programs = page_of(extra)
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder) / "venv" / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        env = {**os.environ, "HOME": folder, "KEEPWARD_EMBEDDER": "none", "PYTHONPATH": str(PROGRAMS)}
        env |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}
        program = str(PROGRAMS / f"run_{name}.py")
        newest = "==" not in wanted
        for command in (
            [sys.executable, "-m", "venv", str(Path(folder) / "venv")],
            [*pip, f"keepward[{extra}] @ {ROOT.as_uri()}", wanted, *(further if newest else [])],
            # Each program of the page has a store of its own.
            *(
                [python, "-c", f"import os; os.makedirs('{n}'); os.chdir('{n}')\n{text}"]
                for n, text in enumerate(programs)
                if newest
            ),
            *([[*pip, wanted, *more]] if more else []),
            [python, program, "remember"],
            [python, program, "recall"],
        ):
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                return (done.stderr or done.stdout).strip().rpartition("\n")[2] or "no message"
    return ""


def fault_of_page(name: str, wanted: str) -> str:
    """Return why the page of a vendor, or one over MCP, does not run with a release; empty if it does."""
    installed, programs = page_of(name)
    ours = f"keepward{'[mcp]' if name in OVER_MCP else ''} @ {ROOT.as_uri()}"
    others = [word.strip("'") for word in installed if word.strip("'") not in {"keepward", wanted.partition("==")[0]}]
    with tempfile.TemporaryDirectory() as folder:
        scripts, server = Path(folder) / "venv" / "bin", Path(folder) / "server" / "bin"
        python = str(scripts / "python")
        env = {**os.environ, "HOME": folder, "KEEPWARD_EMBEDDER": "none", "LITELLM_LOCAL_MODEL_COST_MAP": "true"}
        env["PATH"] = os.pathsep.join([str(scripts), str(server), env["PATH"]])
        apart = [(server, [ours]), (scripts, [wanted, *others])]
        commands: list[tuple[list[str], str]] = []
        for where, packages in apart if name in APART else [(scripts, [ours, wanted, *others])]:
            commands.append(([sys.executable, "-m", "venv", str(where.parent)], ""))
            commands.append(([str(where / "python"), "-m", "pip", "install", "--quiet", *packages], ""))
        if name in VENDORS:
            commands.append(([python, str(PROGRAMS / "run_vendor.py")], "\n".join(programs)))
        else:
            commands += [([python, "-"], program) for program in programs]
        for command, given in commands:
            done = subprocess.run(
                command, cwd=folder, env=env, input=given, capture_output=True, text=True, timeout=1800, check=False
            )
            if done.returncode:
                return (done.stderr or done.stdout).strip().rpartition("\n")[2] or "no message"
    return ""


def main(chosen: list[str]) -> int:
    """Print a line for each extra or page, and release; return how many fail."""
    failed = 0
    for name, (package, lowest) in (bounds() | VENDORS | OVER_MCP).items():
        if chosen and name not in chosen:
            continue
        for wanted in (f"{package}=={lowest}", package):
            fault = fault_of(name, wanted) if name in RUNS else fault_of_page(name, wanted)
            failed += bool(fault)
            print(f"{name:<18}{wanted:<32}{fault or 'runs'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
