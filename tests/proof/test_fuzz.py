"""The HTTP API, fuzzed from outside over loopback: every operation, every phase, well-formed calls and broken ones."""

from __future__ import annotations

import json
import os

import pytest
from fuzzing import fuzz, served

pytestmark = pytest.mark.proof

#: Most examples of a phase and operation; the goal of the project, 50,000 calls, takes `KEEPWARD_FUZZ=500`.
SHORT = 24
EXAMPLES = int(os.environ.get("KEEPWARD_FUZZ", SHORT))
#: What fuzzing does not get into by itself, and why; each has tests of its own in tests/surfaces.
OUT_OF_REACH = {
    # They take the cookie of a session, which takes a code that was just made in the terminal.
    "POST /session",
    "GET /session",
    "DELETE /session",
    # They take the digest of a plan that was made for the same names, with nothing written in between.
    "POST /memory/forget",
    "POST /memory/erase",
    "GET /memory/certificates/{name}",
    "POST /memory/contain",
    "POST /memory/adopt",
    # Any text fits their description, and few texts are an export of something.
    "POST /memory/import",
    "POST /memory/restore-export",
    "POST /memory/restore-export/plan",
    # It names memories that one receipt shows, each in one of two lists.
    "POST /memory/feedback",
    # Its body is that of the operation in its path.
    "POST /memory/call/{operation}",
    # It takes a proposal that waits, the tag of it, and a change that its gates let through.
    "POST /memory/quarantine/{id}/amend",
}
#: Ids differ from run to run, and with them what a draw gets into, and what it finds that no description can say yet.
CHANCE = 3
#: The same for operations that need a tag of what they change, or a handle that sees it: each has tests of its own.
MISSED = 6


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    """What became of a run as the owner and a shorter one as an agent, and of the store by then."""
    with served(tmp_path_factory.mktemp("fuzz")) as server:
        owner = fuzz(server, bearer="owner", examples=EXAMPLES)
        agent = fuzz(server, bearer="agent", examples=max(2, EXAMPLES // 8))
        print(f"\n{owner.calls + agent.calls} calls: {dict(sorted((owner.answered + agent.answered).items()))}")
        whole = json.loads(server.call("POST", "/memory/verify")[1])
        yield {"owner": owner, "agent": agent, "verified": whole, "log": server.log()}


def test_no_call_is_answered_by_an_error_of_the_servers(fuzzed):
    assert (fuzzed["owner"].broken, fuzzed["agent"].broken) == (0, 0), fuzzed["log"]


@pytest.mark.parametrize("bearer", ["owner", "agent"])
def test_every_answer_is_as_described(fuzzed, bearer):
    assert fuzzed[bearer].code == 0, fuzzed[bearer].said


def test_nearly_every_description_fits_what_is_read(fuzzed):
    found = fuzzed["owner"].misfits | fuzzed["agent"].misfits
    print("\n".join(f"{operation}: {kind}\n{example}" for (operation, kind), example in found.items()))
    assert len(found) <= (0 if EXAMPLES > SHORT else CHANCE), found


def test_at_least_ten_thousand_calls_were_made(fuzzed):
    assert fuzzed["owner"].calls + fuzzed["agent"].calls >= 10_000


def test_nearly_every_operation_was_got_into(fuzzed):
    missed = set(fuzzed["owner"].unreached) - OUT_OF_REACH
    assert len(missed) <= MISSED, missed


def test_the_store_is_complete_afterwards(fuzzed):
    assert (fuzzed["verified"]["ok"], fuzzed["verified"]["faults"]) == (True, [])


def test_the_server_had_nothing_to_complain_of(fuzzed):
    # The one line is of a call whose request line is no HTTP, which no answer can describe.
    told = [line for line in fuzzed["log"].splitlines() if "Invalid HTTP request received" not in line]
    assert told == []
