"""The command that clients' hooks call: an event on standard input, what to add to the prompt on standard output.

Invariants
(1) It never fails its caller: whatever goes wrong is a line in `hook.log`, and the exit code is 0.
(2) It ends in time: what is not done by then is given up, and nothing is printed.
(3) A token of this store in the environment is heeded: the hook has no more rights than its bearer. One that this store
    does not know is of something else, and changes nothing.
(4) Without a scope it is the login's, in the project of the folder that the event names: of another project it reads
    nothing, and nothing that it stores is read there.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from keepward.cli.command import argument, command, option
from keepward.cli.command_context import CommandContext
from keepward.hooks import socket_client

if TYPE_CHECKING:
    from keepward.memory import Memory


@command(
    argument("EVENT", "start, prompt, compact or end.", "event"),
    option("--client", "claude, codex, gemini, opencode or cursor: whose format it is.", "NAME", default="claude"),
    option("--name", "Name of the agent. [default: the client's]", "NAME"),
)
def hook(call: CommandContext, event: str, client: str, name: str | None) -> None:
    """Answer a hook of a client: `keepward connect CLIENT --hooks` writes the calls.

    At the start of a session and at a prompt it prints what to add, in the client's format; a prompt becomes an event
    of the session, and at compaction and at its end the session is summed up. It goes through a running
    `keepward mcp` of the same agent where there is one. KEEPWARD_HOOKS=off switches it off.

    The user is the login and the project is the repository of the folder that the event names; what another project
    was told is not shown. `--scope /` is one scope for all projects.
    """
    if socket_client.is_off(call.environ):
        return
    try:
        with _time_limit(call, event):
            sys.stdout.write(_reply(call, event, client, name or client))
            sys.stdout.flush()
    except Exception as fault:  # noqa: BLE001  (1)
        socket_client.append_log(call.environ, f"{event} {client}: {type(fault).__name__}: {fault}")


def _reply(call: CommandContext, kind: str, client: str, agent: str) -> str:
    data = sys.stdin.read(socket_client.MAX_EVENT_BYTES + 1)
    if len(data.encode()) > socket_client.MAX_EVENT_BYTES:
        from keepward.errors import InvalidInput

        raise InvalidInput(socket_client.TOO_LARGE)
    scope = call.settings.scope
    scope, user, project = socket_client.resolve_names(
        call.scope or (scope if scope != "/" else None), call.user, call.project
    )
    call = replace(call, scope=scope or "/", user=user, project=project)
    end = socket_client.connect(str(_socket(call, agent, (scope, user, project))), socket_client.EVENT_TIMEOUT_S)
    answer = socket_client.request(end, socket_client.encode_request(kind, client, data.encode())) if end else None
    if answer is not None:
        return answer.decode()
    # What is due runs elsewhere: a hook has no time for it.
    environ = {**call.environ, "KEEPWARD_MAINTENANCE": "off", "KEEPWARD_TOKEN": ""}
    with replace(call, quiet=True, user=None, project=None, actor=f"agent:{agent}", environ=environ) as quiet:
        return _handle_event(call, lambda: _open_as_agent(call, quiet, agent), kind, client, str(Path.cwd()), data)


def _open_as_agent(call: CommandContext, quiet_call: CommandContext, agent: str) -> Memory:
    """Open the store as an agent by name, or as the bearer of a token of this store; see (3)."""
    memory, secret = quiet_call.memory(create=True), call.environ.get("KEEPWARD_TOKEN")
    if not secret:
        return memory
    from keepward.core.principals import Actor, hash_token
    from keepward.memory import request_context_of

    if request_context_of(memory).store.token_by_hash(hash_token(secret)) is None:
        return memory
    held = memory.with_token(secret)
    return held.as_actor(Actor.agent(agent)) if held.actor.is_owner else held


def _handle_event(
    call: CommandContext, memory: Callable[[], Memory], what: str, name: str, folder: str, data: str
) -> str:
    """Do what an event asks for; return what its client is to read. The store is opened once the event is known.

    The call names the user and the project below the memory's scope (4); a token of some other scope stays there.
    """
    from keepward.core.principals import is_within_scope
    from keepward.errors import InvalidInput
    from keepward.hooks import events

    client = events.CLIENTS.get(name)
    if client is None or not events.event_name(client, what):
        raise InvalidInput(f"an event is start, prompt, compact or end, of {', '.join(events.CLIENTS)}")
    event = events.parse_event(client, what, data)
    if event is None:
        raise InvalidInput("standard input held no event of this client")
    from keepward.hooks.event_handler import DeliveredIds, handle_event
    from keepward.settings import config_folder

    seen = DeliveredIds(config_folder(call.environ) / "run" / "sessions")
    asked = memory()
    where = replace(call, scope=asked.scope).named_scope_in(event.folder or folder) or asked.scope
    asked = asked.at(scope=where) if is_within_scope(where, asked.scope) else asked
    return events.format_answer(client, event, handle_event(asked, event, seen))


def serve_hooks(call: CommandContext, memory: Memory) -> AbstractContextManager[object]:
    """Answer hooks of the same agent for as long as its server runs; the memory is at the scope without its project."""
    from keepward.hooks import socket_server

    if socket_client.is_off(call.environ):
        return nullcontext()
    user, project = call.user or "", call.project or ""
    named = (call.scope or "", user, project) if user or project else (memory.scope, "", "")
    where = _socket(replace(call, tenant=memory.tenant), memory.actor.name, named)
    lock = threading.Lock()

    def reply(what: str, client: str, folder: str, data: str) -> str:
        with lock:
            return _handle_event(call, lambda: memory, what, client, folder, data)

    return socket_server.listen(where, reply)


def _socket(call: CommandContext, agent: str, where: tuple[str, str, str]) -> Path:
    tenant = call.tenant or "default"
    return Path(socket_client.socket_path(call.environ, store=call.url, tenant=tenant, agent=agent, where=where))


@contextmanager
def _time_limit(call: CommandContext, what: str) -> Iterator[None]:
    """End this process at the limit, whatever it is doing (2); what it was writing is written or not, as a whole."""

    def end() -> None:
        socket_client.append_log(call.environ, f"{what}: given up after {socket_client.EVENT_TIMEOUT_S:g} seconds")
        os._exit(0)

    timer = threading.Timer(socket_client.EVENT_TIMEOUT_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
