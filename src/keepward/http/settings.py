"""The settings in force, readable by the owner."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from keepward.errors import Unauthorised
from keepward.http.auth import app_state_of
from keepward.http.handlers import OperationCall, http_operation, json_response
from keepward.settings import Settings, changed_since, effective_settings


@http_operation("GET /memory/settings", name="settings", right="owner")
def about_settings(self: Any) -> Any:
    """Return each setting with its origin, and whether the settings file needs to be accepted.

    Requires the owner. A settings file is accepted on the machine of the server.
    """


def settings(call: OperationCall) -> Response:
    if not call.memory.actor.is_owner:
        raise Unauthorised("reading the settings requires the owner")
    serving = app_state_of(call.http)
    read = serving.settings or Settings(policy=serving.memory.policy, server=serving.options)
    found = effective_settings(read, serving.memory.policy, serving.options)
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
    return json_response({"file": file, "items": found})
