"""The sidecar of a vault file: a folder beside it with the blobs that its lines name.

Layout: ``<file>.blobs/<64 hex digits>`` holds the bytes, ``index.jsonl`` one line a blob: ref, bytes, media_type, and
``missing`` where the store itself had lost them.

Invariants
(1) The folder is 0700 and its files are 0600; the index comes last, so that what it names is there.
(2) What is taken from it passes the same checks as anything that is put, and has the hash that the vault names.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from keepward import durable
from keepward.errors import InvalidInput, KeepwardError
from keepward.model.blob import LIMIT, PREFIX, parse_ref, ref_of

if TYPE_CHECKING:
    from keepward.memory import Memory

INDEX = "index.jsonl"


def folder_of(file: Path) -> Path:
    """Return the folder beside a vault file."""
    return file.with_name(file.name + ".blobs")


def write(mem: Memory, file: Path, refs: set[str]) -> int:
    """Write the blobs of a vault file beside it, in place of what was there; return how many have their bytes.

    Raises:
        OSError: they cannot be written.
    """
    from keepward.memory import read_blobs

    folder = folder_of(file)
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(aside, ignore_errors=True)
    lines = []
    try:
        if refs:
            aside.mkdir(mode=0o700)
        for blob, data in read_blobs(mem, refs):
            line = {"ref": blob.ref, "bytes": blob.bytes, "media_type": blob.media_type}
            if data is not None:
                with durable.fresh(aside / blob.ref.removeprefix(PREFIX)) as out:
                    out.write(data)
            lines.append(line if data is not None else {**line, "missing": True})
        if refs:
            with durable.fresh(aside / INDEX) as out:
                out.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        if folder.is_dir():
            shutil.rmtree(folder)
        if refs:
            aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return sum("missing" not in line for line in lines)


@dataclass(slots=True, kw_only=True)
class Sidecar:
    """What lies beside a vault file that is being read."""

    #: None for a stream, which has nothing beside it.
    folder: Path | None
    taken: set[str] = field(default_factory=set)
    #: Why a blob could not be taken over, by ref.
    flaws: dict[str, str] = field(default_factory=dict)

    def take(self, mem: Memory, ref: str) -> bool:
        """Put a blob into the store; return whether it is kept there now. A second call does nothing."""
        if ref not in self.taken and ref not in self.flaws:
            try:
                data, media_type = self._read(ref)
                mem.put_blob(data, media_type=media_type)
                self.taken.add(ref)
            except (KeepwardError, OSError) as fault:
                said = fault.strerror or "it cannot be read" if isinstance(fault, OSError) else str(fault)
                self.flaws[ref] = said
        return ref in self.taken

    def notes(self) -> Iterator[str]:
        """Yield sentences on what was taken over, and what was not, with the first reason."""
        if self.taken:
            yield f"{len(self.taken)} blobs came with it"
        if self.flaws:
            ref, why = min(self.flaws.items())
            yield (
                f"{len(self.flaws)} blobs that it refers to could not be taken over, the first {ref[:19]}…: {why}; "
                "`verify` names the memories' blobs until they are put again"
            )

    def _read(self, ref: str) -> tuple[bytes, str | None]:
        if self.folder is None:
            raise InvalidInput("a stream has no folder of blobs beside it: import the file by its path")
        file = self.folder / parse_ref(ref).removeprefix(PREFIX)
        if not file.is_file():
            raise InvalidInput("its bytes are not in the folder of blobs beside the file")
        if file.stat().st_size > LIMIT:
            raise InvalidInput("its bytes are more than a blob may have")
        data = file.read_bytes()
        if ref_of(data) != ref:
            raise InvalidInput("its bytes are not those that its name says")
        return data, self._media_types().get(ref)

    def _media_types(self) -> dict[str, str]:
        found = {}
        try:
            lines = (self.folder / INDEX).read_text("utf-8").splitlines() if self.folder else []
        except (OSError, UnicodeDecodeError):
            # Without an index the bytes say what they are.
            return {}
        for line in lines:
            try:
                told = json.loads(line)
                found[str(told["ref"])] = str(told["media_type"])
            except (ValueError, KeyError, TypeError):
                continue
        return found
