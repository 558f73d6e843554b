"""The blob command: content that is no text, kept beside the store; and how `remember` takes a file.

Invariants
(1) A file is looked at before it is read whole: what is too large is refused by its size.
(2) What is written out is for its owner alone, and never in place of another file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepward import durable
from keepward.cli.call import Answer, Call
from keepward.errors import InvalidInput
from keepward.model.blob import LIMIT

if TYPE_CHECKING:
    from keepward.app import Memory
    from keepward.cli.screen import Screen
    from keepward.model.blob import Blob

ACTIONS = ("put", "get", "show")
MediaType = Annotated[
    str | None, typer.Option("--media-type", metavar="TYPE", help="Such as image/png. [default: by the bytes]")
]


def blob(
    call: Call,
    action: Annotated[str, typer.Argument(metavar="put|get|show", help="What to do.", show_default=False)],
    target: Annotated[
        str, typer.Argument(metavar="FILE|REF", help="A file to keep; - reads stdin. Or a blob.", show_default=False)
    ],
    out: Annotated[
        str | None,
        typer.Argument(metavar="[OUT]", help="A file that is not there yet; - is stdout.", show_default=False),
    ] = None,
    media_type: MediaType = None,
) -> Answer:
    """Keep a picture, a recording or any file of up to 32 MB for memories to refer to, or fetch one.

    What no memory refers to goes a day after it was put. `remember TEXT --file FILE` does both in one step.
    """
    if action not in ACTIONS:
        raise InvalidInput(f"blob takes {', '.join(ACTIONS)}")
    if (out is None) == (action == "get") or (media_type is not None and action != "put"):
        raise InvalidInput("blob put takes FILE and --media-type, blob get takes REF and OUT, blob show takes REF")
    if action == "put":
        return _put(call, target, media_type)
    return _show(call, target) if out is None else _get(call, target, out)


def _put(call: Call, file: str, media_type: str | None) -> Answer:
    data = content_of(file)
    with call.memory(create=True) as memory:
        found = memory.put_blob(data, media_type=media_type)
    return _answer(found, "kept", next_step=f'keepward remember "what it is" --blob {found.ref}')


def _show(call: Call, ref: str) -> Answer:
    with call.memory() as memory:
        return _answer(memory.blob(ref), "blob")


def _get(call: Call, ref: str, out: str) -> Answer:
    if out == "-" and call.as_json:
        raise InvalidInput("with --json name a file: keepward blob get REF OUT --json")
    with call.memory() as memory:
        found, data = memory.blob(ref), memory.read_blob(ref)
    if out == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return Answer(data={}, show=lambda screen: None)
    path = Path(out).expanduser()
    try:
        with durable.fresh(path) as file:
            file.write(data)
    except FileExistsError as fault:
        raise InvalidInput("OUT is there already; name another file") from fault
    return _answer(found, "fetched", path=str(path))


def content_of(file: str) -> bytes:
    """Return the bytes of a file, or of stdin where `-` was given.

    Raises:
        InvalidInput: there is no such file, or it is too large (1).
    """
    if file == "-":
        data = sys.stdin.buffer.read(LIMIT + 1)
    else:
        path = Path(file).expanduser()
        if not path.is_file():
            raise InvalidInput("there is no such file; check the path")
        if path.stat().st_size > LIMIT:
            raise InvalidInput(f"a blob is at most {LIMIT // 2**20} MB; keep the rest elsewhere and remember where")
        data = path.read_bytes()
    return data


def attached(memory: Memory, file: str | None, ref: str | None, media_type: str | None) -> dict[str, Any]:
    """Return what `remember` takes for a file or a blob that it is to refer to, nothing for neither.

    Raises:
        InvalidInput: both were given, or a media type without a file.
    """
    if (file is not None and ref is not None) or (media_type is not None and file is None):
        raise InvalidInput("give --file, with --media-type if you like, or --blob for one that is kept already")
    if file is not None:
        ref = memory.put_blob(content_of(file), media_type=media_type).ref
    return {} if ref is None else {"blob": ref}


def _answer(found: Blob, word: str, *, path: str | None = None, next_step: str | None = None) -> Answer:
    data = {
        "ref": found.ref,
        "bytes": found.bytes,
        "media_type": found.media_type,
        "active": found.active,
        "path": path,
        "next": next_step,
    }

    def draw(screen: Screen) -> None:
        screen.labelled(word, f"{found.media_type}, {found.bytes} bytes", style="bold green")
        screen.exact(found.ref)
        if found.active:
            screen.labelled("careful", "active content: it may run when it is opened", style="bold yellow")
        if path:
            screen.labelled("file", path)

    return Answer(data=data, show=draw, talk=(f"refer to it: {next_step}",) if next_step else ())
