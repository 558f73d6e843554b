"""The token command: credentials for agents and reviewers, made, listed and revoked by the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward.cli.call import Answer, Call
from keepward.errors import InvalidInput

if TYPE_CHECKING:
    from keepward.cli.screen import Screen
    from keepward.model.trust import Token

ACTIONS = ("create", "list", "revoke")

_EVERYWHERE = "it stands at / and so reaches every scope: --scope keeps an agent to its own"


def token(
    call: Call,
    action: Annotated[str, typer.Argument(metavar="create|list|revoke", help="What to do.", show_default=False)],
    target: Annotated[
        str | None, typer.Argument(metavar="ID", help="The token to revoke, by its id.", show_default=False)
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Who will bear the new token.")] = None,
    rights: Annotated[str, typer.Option(metavar="CLASS", help="agent, reviewer or owner.")] = "agent",
    can: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="read, propose, sensitive, consent; a reviewer: read, approve, sensitive.",
        ),
    ] = None,
    expires: Annotated[str | None, typer.Option(metavar="TERM", help="Such as 30d; without it, never.")] = None,
) -> Answer:
    """Make, list or revoke the tokens that agents and reviewers come with.

    A new token is shown once and kept as a hash. It opens this --tenant and --scope and nothing above.
    """
    if action not in ACTIONS:
        raise InvalidInput(f"token takes {', '.join(ACTIONS)}")
    if (target is None) == (action == "revoke"):
        raise InvalidInput("token revoke takes an ID; the others take none")
    if action != "create" and (name, can, expires) != (None, None, None):
        raise InvalidInput("--name, --rights, --can and --expires go with `token create`")
    if action == "create":
        return _create(call, name, rights, can, expires)
    return _list(call) if action == "list" else _revoke(call, str(target))


def _create(call: Call, name: str | None, rights: str, can: str | None, expires: str | None) -> Answer:
    if not name:
        raise InvalidInput("say who will bear the token: --name claude")
    narrowed = None if can is None else [each.strip() for each in can.split(",") if each.strip()]
    with call.memory("decide") as memory:
        issued = memory.create_token(name, rights=rights, can=narrowed, expires=expires)
        data = {**_told(issued.token, memory.now), "token": issued.secret}

    def draw(screen: Screen) -> None:
        screen.exact(issued.secret)
        _show(screen, data)

    talk = (
        f"this is shown once: give it to {name} as KEEPWARD_TOKEN",
        *((_EVERYWHERE,) if data["scope"] == "/" else ()),
    )
    return Answer(data=data, show=draw, talk=talk)


def _list(call: Call) -> Answer:
    with call.memory("decide") as memory:
        tokens = [_told(each, memory.now) for each in memory.tokens()]

    def draw(screen: Screen) -> None:
        rows = [
            (each["id"], each["rights"], each["state"], each["tenant"], f"{each['name']}, {each['scope']}")
            for each in tokens
        ]
        screen.table(("id", "rights", "state", "tenant", "bearer and scope"), rows, empty="There are no tokens.")

    return Answer(data={"tokens": tokens, "count": len(tokens)}, show=draw)


def _revoke(call: Call, token_id: str) -> Answer:
    with call.memory("decide") as memory:
        receipt = memory.revoke_token(token_id)
        found = next(each for each in memory.tokens() if each.id == token_id)
        data = {**_told(found, memory.now), "receipt": receipt.id}
    return Answer(data=data, show=lambda screen: _show(screen, data))


def _told(token: Token, now: Any) -> dict[str, Any]:
    from keepward.present import instant

    return {
        "id": token.id,
        "name": token.name,
        "rights": token.rights.value,
        "can": list(token.can),
        "tenant": token.tenant,
        "scope": token.scope,
        "state": token.state(now),
        "created_by": token.created_by,
        "created_at": instant(token.created_at),
        "expires_at": instant(token.expires_at),
        "revoked_at": instant(token.revoked_at),
    }


def _show(screen: Screen, data: dict[str, Any]) -> None:
    screen.labelled("token", f"{data['id']} ({data['state']})")
    screen.labelled("bearer", f"{data['name']}, {data['rights']}: {', '.join(data['can'])}")
    screen.labelled("reaches", f"tenant {data['tenant']}, scope {data['scope']}")
    if data["expires_at"]:
        screen.labelled("until", data["expires_at"])
