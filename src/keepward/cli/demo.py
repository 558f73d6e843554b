"""The demo: a small bakery's team, and agents whose memory is governed.

All results shown are real answers of a store; only the words of people and agents are scripted, in `demo.toml`. The
demo needs no network, key or settings file, and writes only to its own store. The planted cloud key is built from
pieces and never shown.

Late imports: other commands start faster.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.command import command
from keepward.cli.command_context import CommandContext, CommandResult, named_actor
from keepward.cli.review import show_proposal
from keepward.cli.store import verification_data
from keepward.core.results import outcome_summary
from keepward.errors import InvalidInput, Unauthorised
from keepward.locations import Location, address_of, parse_location

if TYPE_CHECKING:
    from keepward.cli.render import Screen
    from keepward.core.principals import Actor
    from keepward.memory import Memory

#: Shown instead of the planted key.
_KEY = "[a cloud access key]"


@command()
def demo(call: CommandContext) -> CommandResult:
    """Play a short story into a new store: writes are committed, quarantined, refused and undone.

    The store is made in a new folder, or at --db. The demo needs no network and no key.
    """
    # KEEPWARD_DB names a store in use; the demo writes only where --db says.
    path = parse_location(call.db) if call.db else Path(tempfile.mkdtemp(prefix="keepward-demo-")) / "demo.db"
    if path.exists():
        raise InvalidInput("the demo needs a new store: choose a --db PATH that does not exist")
    embedder = call.embedder or call.environ.get("KEEPWARD_EMBEDDER") or "auto"
    scenes = seed_demo_store(call, path, named_actor("operator"), embedder)
    steps = [{"step": scene.name, "title": scene.title, **scene.data} for scene in scenes]
    by_name = {step["step"]: step for step in steps}
    # If `keepward` is not on the PATH, for example after `make up`, show the file that was started.
    program = "keepward" if shutil.which("keepward") or not sys.argv[0].endswith("keepward") else sys.argv[0]
    lines = ("pending", 'recall "sesame"', f"receipt {by_name['context']['receipt']['id']}")
    next_commands = [f"{program} {line} --db {path}" for line in lines]
    data = {"path": str(path), "ok": by_name["verified"]["ok"], "steps": steps, "next": next_commands}

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        screen.line("Keepward: memory for AI agents that you can audit, approve and undo.", "bold")
        for number, scene in enumerate(scenes, start=1):
            screen.heading(f"{number:>2}. {scene.title}")
            if scene.note:
                screen.line(scene.note, "dim", indent=4)
            _show_scene(screen, scene.data)
        screen.heading("Next, try")
        for line in data["next"]:
            # Commands are not wrapped, so that they can be copied.
            screen.verbatim(f"  {line}\n")

    return CommandResult(data, draw, 0 if data["ok"] else 1)


@dataclass(frozen=True, slots=True)
class Scene:
    """One step of the story."""

    name: str
    title: str
    #: One sentence about the step.
    note: str
    data: dict[str, Any]


@cache
def _story() -> dict[str, Any]:
    return tomllib.loads(resources.files("keepward.cli").joinpath("demo.toml").read_text("utf-8"))


def seed_demo_store(call: CommandContext, path: Location, actor: Actor, embedder: str) -> list[Scene]:
    """Play the story into a new store; return its scenes."""
    from keepward.memory import Memory
    from keepward.settings import config_folder

    options: dict[str, Any] = {"actor": actor, "embedder": embedder, "config_dir": config_folder(call.environ)}
    with Memory.open(address_of(path), maintenance=False, **options) as owner:
        return list(play(owner))


def play(owner: Memory) -> Iterator[Scene]:
    """Play the story on a new store; yield a scene after each step. At the end three proposals are pending."""
    for scene in _story()["scenes"]:
        yield Scene(scene["name"], scene["title"], scene["note"], _play_scene(owner, scene))


def _play_scene(owner: Memory, scene: dict[str, Any]) -> dict[str, Any]:
    match scene["act"]:
        case "write":
            return {"writes": _writes(owner, scene)}
        case "pending":
            return {"proposals": [proposal.to_dict() for proposal in owner.pending()]}
        case "approve_own":
            return _approve_own(owner)
        case "approve":
            item = owner.pending()[0]
            return outcome_summary(owner.approve(item.id, digest=item.digest))
        case "rollback":
            return owner.rollback(owner.log(limit=1)[0].commit.id).to_dict()
        case "verify":
            return verification_data(owner.verify())
    bot = owner.as_actor(named_actor("agent:support-bot"))
    data = bot.context(_story()["question"], budget_tokens=_story()["budget"]).to_dict()
    data |= {"question": _story()["question"], "edit_is_in": _story()["edit"] in data["text"]}
    return data if scene["act"] == "context" else {name: data[name] for name in ("question", "edit_is_in", "receipt")}


def _writes(owner: Memory, scene: dict[str, Any]) -> list[dict[str, Any]]:
    speaker = owner if scene["by"] == "operator" else owner.as_actor(named_actor(scene["by"]))
    # Built from pieces, so that our detector finds the key and scanners of source code do not.
    key = "AK" + "IA" + base64.b32encode(hashlib.sha256(b"a bakery has no cloud").digest())[:16].decode()
    results = []
    for write in scene["writes"]:
        fields = {**scene.get("with", {}), **write, "text": write["text"].replace(_KEY, key)}
        outcome = speaker.remember(**fields)
        results.append({"text": write["text"], **outcome_summary(outcome)})
    return results


def _approve_own(owner: Memory) -> dict[str, Any]:
    agent = owner.as_actor(named_actor("agent:assistant"))
    try:
        agent.approve(owner.pending()[0].id)
    except Unauthorised as fault:
        return {"refused": True, "message": str(fault)}
    return {"refused": False, "message": "the agent approved its own proposal"}


def _show_scene(screen: Screen, data: dict[str, Any]) -> None:
    for write in data.get("writes", ()):
        screen.line(f"“{write['text']}”", indent=4)
        version = f" v{write['version']}" if write["version"] else ""
        reasons = [f"{reason['detail']} ({reason['code']})" for reason in write["reasons"]]
        screen.line("; ".join([f"{write['outcome']}{version}", *reasons]), "dim", indent=6)
    for proposal in data.get("proposals", ()):
        show_proposal(screen, proposal)
    if "text" in data:
        for line in data["text"].rstrip("\n").split("\n"):
            screen.line(f"| {line}".rstrip(), "cyan", indent=4)
        left_out = dict(Counter(item["reason"]["code"] for item in data["excluded"]))
        data = {**{name: data[name] for name in ("question", "tokens", "receipt")}, "left_out": left_out}
    hidden = ("writes", "proposals", "targets", "version", "memories", "first_fault", "checked", "hash")
    screen.result(data, hidden, indent=4)
