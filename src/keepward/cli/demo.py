"""The demo: a small bakery's team, an agent that remembers for them, and what governance does about it.

Invariants
(1) Everything shown is what a store really answered; nothing is scripted but what the people and the agent say, which
    stands in `demo.toml`.
(2) It works without a network, a key or a settings file, and writes to the store it is given alone.
(3) The planted key is built here from pieces and is never shown.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.call import Answer, Call, named_actor
from keepward.cli.command import command
from keepward.cli.memories import compiled_data, show_written
from keepward.cli.review import memories, rollback_data, show_proposal, show_rollback
from keepward.cli.store import show_verification, verification_data
from keepward.core.patterns import table
from keepward.errors import InvalidInput, Unauthorised
from keepward.place import Place, address, place_of

if TYPE_CHECKING:
    from keepward.cli.screen import Screen
    from keepward.core.trust import Actor
    from keepward.memory import Memory

#: What stands for the planted key (3).
_KEY = "[a cloud access key]"


@command()
def demo(call: Call) -> Answer:
    """Play a short conversation into a new store and show what is kept, held, refused and undone.

    The store is made in a fresh folder, or at --db. It needs no network and no key.
    """
    # KEEPWARD_DB names a store in use; the demo only goes where it was sent by hand.
    place = place_of(call.db) if call.db else Path(tempfile.mkdtemp(prefix="keepward-demo-")) / "demo.db"
    if place.exists():
        raise InvalidInput("the demo plays into a new store: name a --db PATH where there is none yet")
    default = call.environ.get("KEEPWARD_EMBEDDER") or "auto"
    with opened(call, place, named_actor("operator"), default) as (agent, owner):
        scenes = list(play(agent, owner))
    steps = [{"step": each.name, "title": each.title, **each.data} for each in scenes]
    known = {each["step"]: each for each in steps}
    # Where the command is not on the path, as after `make up`, it is named by the file it was started from.
    program = "keepward" if shutil.which("keepward") or not sys.argv[0].endswith("keepward") else sys.argv[0]
    lines = ('recall "allergens"', "log", f"receipt {known['context']['receipt']}")
    following = [f"{program} {line} --db {place}" for line in lines]
    data = {"path": str(place), "ok": known["verified"]["ok"], "steps": steps, "next": following}

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        screen.line("Keepward: memory for AI agents that one can audit, approve and undo.", "bold")
        screen.line(f"A demo in {len(scenes)} steps, in a store of its own.", "dim")
        for number, scene in enumerate(scenes, start=1):
            screen.heading(f"{number:>2}. {scene.title}")
            if scene.note:
                screen.line(scene.note, "dim", indent=4)
            screen.shift(4)
            scene.draw(screen, scene.data)
            screen.shift(-4)
        screen.heading("Next, try")
        for line in data["next"]:
            # Commands are not wrapped: they are there to be copied.
            screen.exact(f"  {line}\n")

    return Answer(data, draw, 0 if data["ok"] else 1)


@contextmanager
def opened(call: Call, path: Place, actor: Actor, embedder: str) -> Iterator[tuple[Memory, Memory]]:
    """Lend the agent's and the owner's handle on a new store."""
    from keepward.config import home
    from keepward.memory import Memory

    chosen = call.embedder or embedder
    with Memory.open(
        address(path), actor=actor, embedder=chosen, config_dir=home(call.environ), maintenance=False
    ) as owner:
        yield owner.acting_as(named_actor("agent:assistant")), owner


_story = partial(table, __package__, "demo.toml")


@dataclass(frozen=True, slots=True)
class Scene:
    """One step of the play."""

    name: str
    title: str
    #: One sentence on what to look at.
    note: str
    data: dict[str, Any]
    draw: Callable[[Screen, dict[str, Any]], None]


#: What an act answers: the data of its scene, and what draws them.
Played = tuple[dict[str, Any], Callable[["Screen", dict[str, Any]], None]]


def play(agent: Memory, owner: Memory) -> Iterator[Scene]:
    """Play the conversation on two handles of one new store; yield a scene after each step."""
    for scene in _story()["scenes"]:
        yield Scene(scene["name"], scene["title"], scene["note"], *_played(agent, owner, scene))


def leave_waiting(agent: Memory) -> None:
    """Propose three things that wait for a person, so that there is something in the queue to look at."""
    for each in _story()["waiting"]:
        agent.remember(**each)


def _played(agent: Memory, owner: Memory, scene: dict[str, Any]) -> Played:
    match scene["act"]:
        case "write":
            return _write(owner if scene["by"] == "owner" else agent, scene)
        case "talk":
            return _talk(agent, scene)
        case "queue":
            waiting = [each.to_dict() for each in owner.pending()]
            return {"proposals": waiting}, lambda screen, data: show_proposal(screen, data["proposals"][0])
        case "approve_own":
            return _approve_own(agent, owner.pending()[0].id)
        case "approve":
            item = owner.pending()[0]
            return owner.approve(item.id, digest=item.digest).to_dict(), show_written
        case "undo":
            return rollback_data(owner.rollback(owner.log(limit=1)[0].commit.id), dry_run=False), show_rollback
        case "verify":
            return verification_data(owner.verify()), show_verification
        case "compile":
            return _compile(agent), _show_compiled
    names = {record.id: record.text for record in owner.find(limit=None)}
    return _compile(agent), partial(_show_whole, names=names)


def _write(speaker: Memory, scene: dict[str, Any]) -> Played:
    results = []
    # Built from pieces (3): the right shape for a detector here, and for no scanner of source code.
    key = "AK" + "IA" + base64.b32encode(hashlib.sha256(b"a bakery has no cloud").digest())[:16].decode()
    for each in scene["writes"]:
        said = {**scene.get("with", {}), **each, "text": each["text"].replace(_KEY, key)}
        results.append({"text": each["text"], **speaker.remember(**said).to_dict()})

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        for each in data["writes"]:
            screen.line(f"“{each['text']}”")
            show_written(screen, each, indent=2, brief=True)

    return {"writes": results}, draw


def _talk(agent: Memory, scene: dict[str, Any]) -> Played:
    outcomes = agent.remember_many([{**scene["with"], **turn} for turn in scene["turns"]], reason=scene["reason"])
    words = [each.outcome for each in outcomes]
    turns = [
        {"speaker": turn["speaker"], "text": turn["text"], "outcome": word}
        for turn, word in zip(scene["turns"], words, strict=True)
    ]

    def draw(screen: Screen, data: dict[str, Any]) -> None:
        for each in data["turns"]:
            screen.labelled(each["speaker"], each["text"], width=7)
        counted = ", ".join(f"{words.count(word)} {word}" for word in sorted(set(words)))
        screen.line(f"{counted}: episodic events in one commit, kept for 30 days", "green")

    return {"turns": turns}, draw


def _approve_own(agent: Memory, proposal: str) -> Played:
    try:
        agent.approve(proposal)
        word, said = "FAULT", "the agent approved its own proposal"
    except Unauthorised as fault:
        word, said = "refused", str(fault)
    data = {"refused": word == "refused", "message": said}
    return data, lambda screen, data: screen.labelled(word, data["message"], "bold red")


def _compile(agent: Memory) -> dict[str, Any]:
    data = compiled_data(agent.context(_story()["question"], budget_tokens=_story()["budget"]))
    return {**data, "edit_is_in": _story()["edit"] in data["text"]}


def _show_compiled(screen: Screen, data: dict[str, Any]) -> None:
    _show_question(screen, data)
    mission = next((each for each in data["text"].splitlines() if _story()["mission"][:-1] in each), "")
    screen.labelled("mission", mission.lstrip("- "), "bold")
    edited = "the approved edit is in it" if data["edit_is_in"] else "the edit is gone, the first text is back"
    screen.labelled("", edited)
    screen.ids(data, "receipt")


def _show_question(screen: Screen, data: dict[str, Any]) -> None:
    screen.labelled("question", _story()["question"])
    screen.labelled("budget", f"{_story()['budget']} tokens; {data['tokens']} used")


def _show_whole(screen: Screen, data: dict[str, Any], *, names: dict[str, str]) -> None:
    _show_question(screen, data)
    screen.line()
    for line in data["text"].rstrip("\n").split("\n"):
        screen.line(f"| {line}".rstrip(), "cyan", hang=2)
    screen.line()
    screen.labelled("receipt", data["receipt"], "bold")
    for section in data["sections"]:
        screen.labelled("in", f"{section['name']}: {memories(section['items'])}, {section['tokens']} tokens")
    for left in data["excluded"]:
        text = names.get(left["id"], "an edit that waits for review")
        short = text if len(text) <= 40 else f"{text[:38].rstrip()} …"
        screen.labelled("left out", f"“{short}”: {left['reason']} ({left['code']})")
