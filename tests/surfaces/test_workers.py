"""A server of several processes: any of them answers any request, and one that dies takes nothing acknowledged along."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from keepward import Memory

pytestmark = pytest.mark.slow


class Served:
    """A running server of two workers."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self.folder = address, folder
        self.environ = {**os.environ, "KEEPWARD_HOME": str(folder / "home"), "KEEPWARD_EMBEDDER": "none"}
        command = [sys.executable, "-m", "keepward", "--db", address, "serve", "--workers", "2"]
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [*command, "--port", "0"], env=self.environ, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        assert self.process.stdout is not None
        self.printed: list[str] = []
        for line in iter(self.process.stdout.readline, ""):
            self.printed.append(line)
            if line.startswith("stop"):
                break
        found = re.search(r"(http://127\.0\.0\.1:\d+)/#code=(\S+)", "".join(self.printed))
        assert found is not None, self.printed
        self.url, self.code = found[1], found[2]
        for _ in range(600):
            try:
                if self.get("/ready").status_code == 200 and len(self.workers()) == 2:
                    break
            except httpx2.HTTPError:
                pass
            time.sleep(0.05)

    def workers(self) -> list[int]:
        """Return the ids of the processes that answer."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                    started = (entry / "cmdline").read_text()
                except OSError:
                    continue
                if parent == str(self.process.pid) and "spawn_main" in started:
                    found.append(int(entry.name))
        return sorted(found)

    def replace_workers(self, count: int = 2) -> None:
        """Kill workers one after the other, and wait until another one is in the place of each."""
        for pid in self.workers()[:count]:
            os.kill(pid, signal.SIGKILL)
            for _ in range(1200):
                now = self.workers()
                if pid not in now and len(now) == 2:
                    break
                time.sleep(0.05)
            else:
                pytest.fail("no worker took the place of the killed one")

    def get(self, path: str, **given: Any) -> httpx2.Response:
        """Ask over a new connection, which any worker may accept."""
        for _ in range(5):
            try:
                return httpx2.get(f"{self.url}{path}", **given)
            except httpx2.TransportError:
                time.sleep(0.1)
        return httpx2.get(f"{self.url}{path}", **given)

    def owner(self) -> Memory:
        return Memory.open(self.address, token=self.token(), embedder=None, config_dir=self.folder / "home")

    def token(self) -> str:
        return next((self.folder / "home").rglob("owner.token")).read_text().strip()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()
        return code


@pytest.fixture(params=["file", "database"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    address = str(tmp_path / "m.db") if request.param == "file" else request.getfixturevalue("database")
    server = Served(address, tmp_path)
    yield server
    if server.process.poll() is None:
        server.stop()


def test_a_session_and_a_code_of_one_worker_count_at_all(served: Served) -> None:
    assert len([line for line in served.printed if line.startswith("console")]) == 1
    opened = httpx2.post(f"{served.url}/session", json={"code": served.code})
    assert opened.status_code == 200
    again = [httpx2.post(f"{served.url}/session", json={"code": served.code}).status_code for _ in range(6)]
    served.replace_workers()
    cookies = dict(opened.cookies.items())
    seen = [served.get("/session", cookies=cookies).status_code for _ in range(12)]
    assert (again, seen) == ([401] * 6, [200] * 12)


def test_the_limit_of_an_actor_counts_the_requests_of_all_workers(served: Served) -> None:
    with served.owner() as owner:
        token = owner.create_token("claude", rights="agent", scope="/").secret
    headers = {"Authorization": f"Bearer {token}"}
    begun = time.monotonic()
    codes = Counter(
        httpx2.post(f"{served.url}/memory/items", json={"text": f"Berth {n * 7} is free"}, headers=headers).status_code
        for n in range(100)
    )
    # It refills by one a second.
    assert codes[201] <= 60 + (time.monotonic() - begun) + 1
    assert codes[201] + codes[429] == 100


def test_a_killed_worker_loses_nothing_acknowledged(served: Served) -> None:
    token, kept, stopped = served.token(), [], threading.Event()

    def write(number: int) -> None:
        for turn in range(10_000):
            if stopped.is_set():
                return
            text = f"Berth {turn} of quay {number} is free on day {turn * 13 + number}"
            try:
                answer = httpx2.post(
                    f"{served.url}/memory/items", json={"text": text}, headers={"Authorization": f"Bearer {token}"}
                )
            except httpx2.TransportError:
                continue
            if answer.status_code == 201:
                kept.append(answer.json()["id"])

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    served.replace_workers(1)
    while len(kept) < 40:
        time.sleep(0.05)
    stopped.set()
    for writer in writers:
        writer.join()
    assert served.stop() == 0
    with served.owner() as owner:
        stored = {str(record.id) for record in owner.list_memories(limit=None)}
        assert (set(kept) - stored, owner.verify().faults, len(kept) >= 40) == (set(), (), True)


def test_a_taken_port_is_one_line(served: Served) -> None:
    port = served.url.rpartition(":")[2]
    command = [sys.executable, "-m", "keepward", "--db", served.address, "serve"]
    second = subprocess.run(
        [*command, "--workers", "2", "--port", port], env=served.environ, capture_output=True, text=True, check=False
    )
    assert (second.returncode, second.stdout, second.stderr.count("\n")) == (2, "", 1), second
    assert "is in use" in second.stderr
