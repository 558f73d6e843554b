"""Tending a store over HTTP: long checks that tell how far they have come, and the settings in force.

Invariants
(1) A check is one stream of lines: `done` of `total`, at the end the whole result. What fails before the first line is
    an error of the call; a reader that goes away ends the check.
(2) A drill attacks a copy, and what that makes the copy say is not logged; requests are logged as ever.
(3) Settings are read and never changed here: a settings file is accepted where the server runs.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from starlette.responses import Response

from keepward.config import InForce, Settings, changed_since, in_force
from keepward.core import plain
from keepward.errors import Unauthorised
from keepward.http.answers import Call, json_response, over_http, shape
from keepward.http.credentials import serving_of
from keepward.http.schemas import mirror, model
from keepward.http.streams import LINES, STREAMING, Tell, piped_lines

TOLD = {"description": "How far it has come, as it goes on; the last line has `result`, or `error`.", "content": LINES}
EXTRA = {STREAMING: True}


@over_http("POST /memory/verify/watch", name="watch_verify", right="read", changes=False)
def about_watch_verify(self: Any) -> Any:
    """Check as `verify` does, and tell how far it has come.

    Lines have `done` of `total` rows, the last has `result`.
    """


@over_http("POST /memory/drill", name="drill", right="owner")
def about_drill(self: Any) -> Any:
    """Attack a copy of the store, for the owner alone: a line for each attack as it ends, the last with `result`.

    The store, its key and its noted heads are not touched.
    """


@over_http("GET /memory/settings", name="settings", right="owner")
def about_settings(self: Any) -> Any:
    """Return each setting in force and where it comes from, and whether the settings file waits for acceptance.

    For the owner alone; a file is accepted where the server runs.
    """


_SettingsFile: Any = model(
    "SettingsFile",
    "The settings file that was read when the server started.",
    # ``accepted``: all of it holds; ``changed``: it says something else by now, which holds after a restart.
    {"path": str, "digest": str, "named": bool, "accepted": bool, "changed": bool},
    {"loosens": dict[str, str], "withheld": list[str], "accept_with": str | None},
)
InForceModel: Any = model(
    "SettingsInForce",
    "The settings of a server as they hold.",
    {"file": _SettingsFile | None, "items": list[mirror(InForce, "SettingInForce")]},  # type: ignore[misc]
)


def settings(call: Call) -> Response:
    _owners(call, "reading the settings")
    serving = serving_of(call.http)
    read = serving.settings or Settings(policy=serving.memory.policy, server=serving.options)
    found = in_force(read, serving.memory.policy, serving.options)
    file = None
    if read.file is not None:
        file = {
            "path": str(read.file),
            "digest": read.digest,
            "named": read.named,
            "accepted": not read.withheld,
            "changed": changed_since(read),
            "loosens": dict(read.loosens),
            "withheld": list(read.withheld),
            "accept_with": f"keepward config --accept {read.digest}" if read.withheld else None,
        }
    return json_response({"file": file, "items": shape(found)})


def watch_verify(call: Call) -> Response:
    """Check the store, a line for every part."""

    def work(tell: Tell) -> None:
        with serving_of(call.http).limited(call.memory, reads=True):
            found = call.memory.verify(on_progress=lambda done, total: tell({"done": done, "total": total}))
        tell({"result": shape(found)})

    return piped_lines(call, work)


def drill(call: Call) -> Response:
    """Attack a copy of the store, a line for every attack."""
    from keepward.drill.attacks import ATTACKS
    from keepward.drill.drill import DrillResult, counts_of
    from keepward.drill.drill import drill as attack

    _owners(call, "the drill, which copies the whole store,")
    memory, place = call.memory, serving_of(call.http).place or Path(call.memory.path)
    total, done = len(ATTACKS), count(1)

    def work(tell: Tell) -> None:
        def send(line: DrillResult) -> None:
            tell({"done": next(done), "total": total, "line": plain.plain(line)})

        lines = attack(place, tenant=memory.tenant, policy=memory.policy, on_result=send)
        tell({"result": counts_of(lines) | {"checks": [plain.plain(each) for each in lines]}})

    return piped_lines(call, work)


def _owners(call: Call, what: str) -> None:
    if not call.memory.actor.is_owner:
        raise Unauthorised(f"{what} takes the owner")
