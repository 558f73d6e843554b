"""The demo command: a new store, the play, and what to try next."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepward.cli.call import Answer, Call, named_actor
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.cli.screen import Screen


def demo(call: Call) -> Answer:
    """Play a short conversation into a new store and show what is kept, held, refused and undone.

    The store is made in a fresh folder, or at --db. It needs no network and no key.
    """
    from keepward.app import Memory
    from keepward.cli.example import play
    from keepward.config import home

    # KEEPWARD_DB names a store in use; the demo only goes where it was sent by hand.
    place = Path(call.db).expanduser() if call.db else Path(tempfile.mkdtemp(prefix="keepward-demo-")) / "demo.db"
    if place.exists():
        raise InvalidInput("the demo plays into a new store: name a --db PATH where there is none yet")
    chosen = call.embedder or call.environ.get("KEEPWARD_EMBEDDER") or "auto"
    with Memory.open(
        place, actor=named_actor("operator"), embedder=chosen, config_dir=home(call.environ), maintenance=False
    ) as owner:
        scenes = list(play(owner.acting_as(named_actor("agent:assistant")), owner))
    steps: list[dict[str, Any]] = [{"step": each.name, "title": each.title, **each.data} for each in scenes]
    ids = {each["step"]: each for each in steps}
    # Where the command is not on the path, as after `make up`, it is named by the file it was started from.
    program = "keepward" if shutil.which("keepward") or not sys.argv[0].endswith("keepward") else sys.argv[0]
    named = f"--db {place}"
    following = [
        f'{program} recall "allergens" {named}',
        f"{program} log {named}",
        f"{program} receipt {ids['context']['receipt']} {named}",
    ]
    data = {"path": str(place), "ok": ids["verified"]["ok"], "steps": steps, "next": following}

    def draw(screen: Screen) -> None:
        screen.line("Keepward: memory for AI agents that one can audit, approve and undo.", "bold")
        screen.line(f"A demo in {len(scenes)} steps, in a store of its own.", "dim")
        for number, scene in enumerate(scenes, start=1):
            screen.heading(f"{number:>2}. {scene.title}")
            if scene.note:
                screen.line(scene.note, "dim", indent=4)
            screen.shift(4)
            scene.draw(screen)
            screen.shift(-4)
        screen.heading("Next, try")
        for command in following:
            # Commands are not wrapped: they are there to be copied.
            screen.exact(f"  {command}\n")

    return Answer(data=data, show=draw, code=0 if data["ok"] else 1)
