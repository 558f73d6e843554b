"""The command that clients' hooks call: an event on standard input, what to add to the prompt on standard output.

Invariants
(1) It never fails its caller: whatever goes wrong is a line in `hook.log`, and the exit code is 0.
(2) It ends in time: what is not done by then is given up, and nothing is printed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from keepward.cli.call import Call
from keepward.cli.command import argument, command, option

if TYPE_CHECKING:
    from keepward.hooks.seen import Seen
    from keepward.memory import Memory

#: Switches hooks off in one shell or program.
SWITCH = "KEEPWARD_HOOKS"
#: Seconds that an event may take, and bytes that its log may have before it begins anew.
_LIMIT = {"start": 8.0, "prompt": 4.0, "compact": 8.0, "end": 8.0}
_LOG = 256 << 10


@command(
    argument("EVENT", "start, prompt, compact or end.", "event"),
    option("--client", "claude, codex, gemini or cursor: whose format it is.", "NAME", default="claude"),
    option("--name", "Name of the agent. [default: the client's]", "NAME"),
)
def hook(call: Call, event: str, client: str, name: str | None) -> None:
    """Answer a hook of a client: `keepward connect CLIENT --hooks` writes the calls.

    At the start of a session and at a prompt it prints what to add, in the client's format; a prompt becomes an event
    of the session, and at compaction and at its end the session is summed up. It goes through a running
    `keepward mcp` of the same agent where there is one. KEEPWARD_HOOKS=off switches it off.
    """
    if call.environ.get(SWITCH, "").lower() in {"off", "0", "false", "no"}:
        return
    try:
        with _in_time(_LIMIT.get(event, 4.0)):
            sys.stdout.write(_answer(call, event, client, name or client))
            sys.stdout.flush()
    except Exception as fault:  # noqa: BLE001  (1)
        _note(call, f"{event} {client}: {type(fault).__name__}: {fault}")


def _answer(call: Call, what: str, name: str, agent: str) -> str:
    from keepward.errors import InvalidInput
    from keepward.hooks import events, local

    client = events.CLIENTS.get(name)
    if client is None or not events.name_of(client, what):
        raise InvalidInput(f"an event is start, prompt, compact or end, of {', '.join(events.CLIENTS)}")
    event = events.read(client, what, sys.stdin.read())
    if event is None:
        raise InvalidInput("standard input held no event of this client")
    where = _socket(call, agent)
    text = local.ask(where, events.packed(event))
    if text is None:
        from keepward.hooks.act import act

        # What is due runs elsewhere: a hook has no time for it.
        environ = {**call.environ, "KEEPWARD_MAINTENANCE": "off"}
        with replace(call, quiet=True, actor=f"agent:{agent}", environ=environ) as quiet:
            text = act(quiet.memory(create=True), event, _seen(call))
    return events.answer(client, event, text)


def answered(call: Call, memory: Memory) -> AbstractContextManager[object]:
    """Answer hooks of the same agent for as long as its server runs."""
    from keepward.hooks import events, local
    from keepward.hooks.act import act

    where = _socket(replace(call, scope=memory.scope, tenant=memory.tenant), memory.actor.name)
    if call.environ.get(SWITCH, "").lower() == "off":
        return nullcontext()
    seen, lock = _seen(call), threading.Lock()

    def reply(line: str) -> str:
        event = events.unpacked(line)
        if event is None:
            return ""
        with lock:
            return act(memory, event, seen)

    return local.listening(where, reply)


def _socket(call: Call, agent: str) -> Path:
    from keepward.config import home
    from keepward.hooks import local

    tenant, scope = call.tenant or "default", call.scope or "/"
    runtime = call.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(runtime) / "keepward" if Path(runtime).is_absolute() else home(call.environ) / "run"
    return local.place(folder, store=call.url, tenant=tenant, scope=scope, agent=agent)


def _seen(call: Call) -> Seen:
    from keepward.config import home
    from keepward.hooks.seen import Seen

    return Seen(home(call.environ) / "run" / "sessions")


@contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    """End this process after so long, whatever it is doing (2); what it was writing is written or not, as a whole."""
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _note(call: Call, line: str) -> None:
    from keepward.config import home

    try:
        log = home(call.environ) / "hook.log"
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        whole = log.exists() and log.stat().st_size > _LOG
        with log.open("w" if whole else "a", encoding="utf-8") as out:
            out.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {' '.join(line.split())[:500]}\n")
    except OSError:
        # There is nowhere to say it.
        return
