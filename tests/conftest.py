"""What every test stands on: nothing runs in the background unless asked for, and nobody's own store is touched."""

from __future__ import annotations

import faulthandler
import gc
import os
import re
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

pytest.register_assert_rewrite("support")
pytest_plugins = ["support.database"]
# Jobs that begin by themselves would make what a test sees depend on when it looks. Tests of maintenance switch it on.
os.environ["KEEPWARD_MAINTENANCE"] = "off"
# One test process per core: threads of numpy would only wait for each other. numpy reads this when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if sys.platform == "win32":
    # Files whose tests themselves use what only Unix has; what they test is not left out of the package.
    unix = re.compile(
        r"\bos\.(fork|pread|get[eu]?uid|mkfifo|kill)\b|\bfcntl\b|/proc/|/dev/|signal\.SIG|AF_UNIX|symlink_to|st_mode"
    )
    files = Path(__file__).parent.rglob("test_*.py")
    collect_ignore = [str(path) for path in files if unix.search(path.read_text("utf-8"))]

#: Folders of tests are in memory where it has room: a store on disk waits for the disk at every commit.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30
if (
    os.access(MEMORY, os.W_OK)
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(MEMORY).free > ROOM
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.fixture(autouse=True, scope="session")
def no_negative_limits() -> Iterator[None]:
    """Fail where a statement is sent with a negative limit: SQLite then reads everything, and PostgreSQL refuses it."""
    from keepward.storage.driver import SqliteConnection

    run = SqliteConnection.run

    def checked(self: SqliteConnection, name: str, values: Any = (), /, **named: Any) -> Any:
        assert min(named.get("limit", 0), named.get("most", 0)) >= 0, f"the statement {name} has a negative limit"
        return run(self, name, values, **named)

    SqliteConnection.run = checked  # type: ignore[method-assign]
    yield
    SqliteConnection.run = run  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collection: what is made here lives until the end, and looking through it takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


#: Seconds that a part of an everyday test may take, and of another one, on a machine that is slow and busy.
LIMIT, LONG = 240, 1100


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """End what a fixture waits for in vain."""
    return (yield from limited(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """End what a test waits for in vain."""
    return (yield from limited(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """End what the end of a fixture waits for in vain."""
    return (yield from limited(item))


def limited(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test that hangs fail, and the others go on."""
    if not hasattr(signal, "SIGALRM"):
        # Windows: `faulthandler_timeout` ends the process.
        return (yield)
    limit = LONG if any(map(item.get_closest_marker, ("slow", "proof", "nightly"))) else LIMIT

    def over(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"this took longer than {limit} s")

    before = signal.signal(signal.SIGALRM, over)
    # Again and again, since to clean up can mean to wait in vain as well.
    signal.setitimer(signal.ITIMER_REAL, limit, 10)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pytest_unconfigure() -> None:
    """End the process although a thread of a test that failed waits in vain."""
    faulthandler.dump_traceback_later(120, exit=True, file=sys.__stderr__)


@pytest.fixture(scope="session", autouse=True)
def _folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep stores without a path, and the keys of all stores, out of the folders of the person who runs the tests."""
    from keepward.embedding import model_files

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEEPWARD_MODELS", str(model_files.folder().parent))
        patch.setenv("KEEPWARD_DATA", str(tmp_path_factory.mktemp("data")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield
