"""A process that writes: ``python writers.py <store> <config> <name> <count>`` tells each seq it was given."""

from __future__ import annotations

import sys
from pathlib import Path

from keepward.machine.clock import RandomIds
from keepward.machine.trust_store import TrustStore
from keepward.storage.store import open_store

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.factories import RecordFactory


def main(path: str, config: str, name: str, count: str) -> None:
    make = RecordFactory(RandomIds())
    with open_store(Path(path), anchor=TrustStore(config)) as store:
        for n in range(int(count)):
            stage = make.stage(make.record(f"{name} {n}"))
            with store.write() as writer:
                commit = writer.append("ada", stage)
                writer.put_receipt(make.receipt("ada", stage.details.receipt))
            sys.stdout.write(f"{commit.seq}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
