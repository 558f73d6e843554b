"""The composition root: the one place that chooses adapters and reads the environment."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from keepward.errors import InvalidInput, KeepwardError, StoreUnavailable
from keepward.model.policy import Policy

if TYPE_CHECKING:
    from keepward.engine.kit import Kit
    from keepward.jobs.maintenance import Handover, Maintenance
    from keepward.ports.blobs import BlobStore
    from keepward.ports.erasing import ErasureList
    from keepward.ports.models import Embedder, Redactor, Summarizer, TokenCounter
    from keepward.ports.store import Store
    from keepward.ports.world import Anchor, Clock, IdSource

logger = logging.getLogger(__name__)


def open_kit(
    path: str,
    *,
    policy: Policy | None,
    embedder: str | Embedder | None,
    counter: str | TokenCounter,
    summarizer: Summarizer | None,
    redactor: Redactor | None = None,
    identity: str | Path | None,
    user_file: str | Path | None,
    create: bool,
    clock: Clock | None,
    ids: IdSource | None,
    config_dir: Path | None,
    maintenance: Maintenance | Handover | None = None,
) -> Kit:
    """Open a store with everything around it; see ``Memory.open``."""
    from keepward.adapters.clock import SystemClock
    from keepward.adapters.ids import RandomIds
    from keepward.engine.index import Indexes
    from keepward.engine.kit import Kit
    from keepward.stores.sqlite.store import open_sqlite

    # Models are chosen first: a name that means nothing must not leave a new store behind.
    models = _embedder(embedder, config_dir), _counter(counter)
    kit = Kit(
        store=open_sqlite(path, anchor=anchor_in(config_dir), create=create),
        clock=clock or SystemClock(),
        ids=ids or RandomIds(),
        embedder=models[0],
        counter=models[1],
        summarizer=summarizer,
        redactor=redactor,
        policy=policy or Policy(),
        identity=_document(identity),
        user_file=_document(user_file),
        indexes=Indexes(),
        erasures=_erasures(config_dir),
        blobs=blobs_of(path),
        wake=_nobody if maintenance is None else maintenance.wake,
    )
    if kit.store.foreign is None and (kit.store.copied or kit.store.unclean()):
        _settle(kit)
    if maintenance is not None and kit.store.foreign is None:
        maintenance.attend(kit)
    return kit


def _nobody(*, wrote: bool) -> None:
    del wrote


def maintenance_of(choice: bool | Callable[[], None] | None, *, own_time: bool) -> Maintenance | Handover | None:
    """Return what runs due jobs; ``own_time`` says that nothing begins by itself unless it is asked for."""
    if choice is None:
        from keepward.config import maintained

        choice = not own_time and maintained()
    if choice is False:
        return None
    from keepward.jobs.maintenance import Handover, Maintenance

    return Maintenance() if choice is True else Handover(choice)


def maintain(
    path: str,
    *,
    policy: Policy,
    embedder: str,
    counter: str,
    identity: Path | None,
    user_file: Path | None,
    config_dir: Path,
    halted: Callable[[], bool],
) -> None:
    """Open a store that is there, run the jobs that are due until ``halted`` says to stop, and close it."""
    from keepward.jobs.maintenance import run_pending

    kit = open_kit(
        path,
        policy=policy,
        embedder=embedder,
        counter=counter,
        summarizer=None,
        identity=identity,
        user_file=user_file,
        create=False,
        clock=None,
        ids=None,
        config_dir=config_dir,
    )
    try:
        run_pending(kit, halted=halted)
    finally:
        kit.store.close()


def bare_kit(store: Store, *, config_dir: Path | None, clock: Clock | None, ids: IdSource | None) -> Kit:
    """Return a store with what an erasure needs around it, and no models."""
    from keepward.adapters.clock import SystemClock
    from keepward.adapters.ids import RandomIds
    from keepward.engine.index import Indexes
    from keepward.engine.kit import Kit
    from keepward.models.tokens import choose_counter

    return Kit(
        store=store,
        clock=clock or SystemClock(),
        ids=ids or RandomIds(),
        embedder=None,
        counter=choose_counter("estimate"),
        policy=Policy(),
        identity=_document(None),
        user_file=_document(None),
        indexes=Indexes(),
        erasures=_erasures(config_dir),
    )


def blobs_of(path: str | Path) -> BlobStore:
    """Return where a store at a path keeps its blobs: the folder beside its file, or nowhere beyond this process."""
    from keepward.adapters.blobs import FileBlobs, MemoryBlobs, folder_of

    return MemoryBlobs() if str(path) == ":memory:" else FileBlobs(folder_of(path))


def _settle(kit: Kit) -> None:
    """Finish an erasure that was interrupted, and carry out in a new copy what was erased and revoked since.

    A store that cannot be written now is finished another time.
    """
    from keepward.app.copying import recall_again
    from keepward.app.erasing import settle
    from keepward.engine.kit import Who
    from keepward.model.trust import Actor, ActorKind, Rights

    actor = Actor(kind=ActorKind.SYSTEM, name="keepward", rights=Rights.OWNER)
    try:
        who = Who(tenant="default", scope="/", actor=actor)
        if kit.store.copied:
            recall_again(kit, who)
        if kit.store.unclean():
            settle(kit, who)
    except (KeepwardError, OSError) as fault:
        logger.warning("an erasure is not finished: %s", fault, extra={"action": "erasing"})


def _erasures(config_dir: Path | None) -> ErasureList | None:
    from keepward.adapters.anchor import default_config_dir
    from keepward.adapters.erasures import FileErasures

    try:
        return FileErasures(config_dir or default_config_dir())
    except OSError:
        return None


def _embedder(choice: str | Embedder | None, config_dir: Path | None) -> Embedder | None:
    if choice is None or not isinstance(choice, str):
        return choice
    from keepward.models import choose

    key = os.environ.get("KEEPWARD_EMBEDDER_KEY")
    try:
        found = choose(choice, api_key=key)
        if key and choice.strip().startswith("http"):
            _bind_key(key, choice, config_dir)
        return found
    except ValueError as fault:
        raise InvalidInput(str(fault)) from fault


def _bind_key(key: str, choice: str, config_dir: Path | None) -> None:
    """Let a key go to one host alone.

    Raises:
        InvalidInput: it went to another before.
    """
    from urllib.parse import urlsplit

    from keepward.accepted import host_of_key
    from keepward.adapters.anchor import default_config_dir

    url = choice.strip().removeprefix("http:") if not choice.strip().startswith(("http://", "https://")) else choice
    host = urlsplit(url.strip()).netloc
    try:
        bound = host_of_key(config_dir or default_config_dir(), key, host)
    except OSError as fault:
        raise StoreUnavailable("the host of KEEPWARD_EMBEDDER_KEY cannot be noted; see to the folder") from fault
    if bound != host:
        raise InvalidInput(
            f"KEEPWARD_EMBEDDER_KEY belongs to {bound} and is sent to no other host; set the key of this server, or "
            "let it go with `keepward config --release-key`"
        )


def _counter(choice: str | TokenCounter) -> TokenCounter:
    if not isinstance(choice, str):
        return choice
    from keepward.models.tokens import choose_counter

    try:
        return choose_counter(choice)
    except ValueError as fault:
        raise InvalidInput(str(fault)) from fault


def anchor_in(config_dir: Path | None) -> Anchor | None:
    """Return the anchor of a configuration folder, the user's own by default; None where there is no home."""
    from keepward.adapters.anchor import FileAnchor, default_config_dir

    try:
        return FileAnchor(config_dir or default_config_dir())
    except OSError:
        # No home at all: the store works unsealed, and status and verify say so.
        return None


def _document(path: str | Path | None) -> Callable[[], tuple[str, str] | None]:
    if path is None:
        return lambda: None
    place = Path(path)

    def read() -> tuple[str, str] | None:
        try:
            text = place.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as fault:
            raise InvalidInput(f"{place.name} cannot be read as UTF-8 text") from fault
        return hashlib.sha256(text.encode()).hexdigest()[:16], text

    return read
