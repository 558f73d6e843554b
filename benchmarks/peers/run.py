"""Measure one memory: ``python -m benchmarks.peers.run NAME SIZE`` prints one JSON object."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import p50, p95, times
from benchmarks.peers.adapters import PEERS
from benchmarks.peers.material import Material

ADDS = 100


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def measure(name: str, size: int) -> dict[str, float]:
    """Fill a memory to `size`, then time single adds and searches."""
    material = Material(size + ADDS)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place) / "store"
        folder.mkdir()
        peer = PEERS[name](folder, material)
        start = time.perf_counter()
        peer.fill(material.texts[:size])
        filled = time.perf_counter() - start
        adds = times(lambda n: peer.add(material.texts[size + n]), ADDS)
        found: list[list[str]] = []
        peer.search(material.queries[0])
        searches = times(lambda n: found.append(peer.search(material.queries[n])), len(material.queries))
        peer.close()
        hits = sum(meant in texts for meant, texts in zip(material.meant, found, strict=True))
        return {
            "bulk_per_s": size / filled,
            "add_ms": p50(adds),
            "add_p95_ms": p95(adds),
            "search_ms": p50(searches),
            "found": hits / len(found),
            "bytes": size_of(folder) / (size + ADDS),
        }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
