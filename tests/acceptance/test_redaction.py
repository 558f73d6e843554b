"""What is redacted: what is stored instead, a redactor of one's own, and duplicates afterwards."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from outcomes import committed_record, refused
from starlette.testclient import TestClient

from keepward import Actor, Client, Committed, Duplicate, InvalidInput, Memory, ModelUnavailable
from keepward.cli.main import main
from keepward.http import ServerOptions, create_app
from keepward.mcp import tools

# --- What is stored otherwise than it was said is told in the first line, and no field lets a personal identifier by


ADDRESS = "ana.smith" + "@" + "example.org"
TEXT = f"Ana is reached at {ADDRESS}"


def test_the_outcome_names_what_was_replaced(mem: Memory) -> None:
    done = mem.remember(TEXT, tier="archival")
    assert (done.redacted, mem.remember("Ana prefers tabs", tier="archival").redacted) == (("email",), ())


def test_with_consent_nothing_is_replaced(owner: Memory) -> None:
    done = owner.remember(TEXT, tier="archival", consent=True)
    assert (done.redacted, committed_record(done).text) == ((), TEXT)


def test_what_is_quarantined_says_it_too(mem: Memory) -> None:
    assert mem.remember(TEXT, tier="core", key="mission", confidence=0.9).redacted == ("email",)


def test_what_is_refused_has_replaced_nothing(mem: Memory) -> None:
    assert mem.remember("no changes", subject=ADDRESS).redacted == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"speaker": ADDRESS},
        {"evidence": [ADDRESS]},
        {"evidence": [f"she wrote: {ADDRESS}"]},
        {"metadata": {"from": {"address": [ADDRESS]}}},
        {"tags": [ADDRESS]},
        {"category": ADDRESS},
    ],
    ids=lambda fields: "-".join(fields),
)
def test_other_fields_are_treated_as_the_text_is(mem: Memory, path: Path, fields: dict[str, Any]) -> None:
    done = mem.remember("Ana prefers tabs", tier="archival", **fields)
    assert (done.ok, done.redacted) == (True, ("email",))
    mem.close()
    with closing(sqlite3.connect(path)) as raw:
        assert ADDRESS not in "\n".join(raw.iterdump())
        assert all(ADDRESS.encode() not in payload for (payload,) in raw.execute("SELECT payload FROM events"))


@pytest.mark.parametrize("field", ["subject", "key", "session"])
def test_name_that_is_an_address_is_refused_with_advice(mem: Memory, field: str) -> None:
    done = mem.remember("Ana prefers tabs", tier="archival", **{field: ADDRESS})
    assert refused(done) == {"email"}
    said = " ".join(each.detail for each in done.reasons)
    assert ("choose another name" in said, ADDRESS in said, mem.list_memories()) == (True, False, [])


def test_two_people_never_share_a_marker_as_their_name(owner: Memory) -> None:
    for name in ("ana", "ben"):
        owner.remember(f"{name} likes tea", tier="archival", subject=f"{name}@example.org", consent=True)
    assert [len(owner.list_memories(subject=f"{name}@example.org")) for name in ("ana", "ben")] == [1, 1]


def test_a_name_given_with_consent_makes_the_memory_sensitive(owner: Memory) -> None:
    done = committed_record(owner.remember("Ana prefers tabs", tier="archival", subject=ADDRESS, consent=True))
    assert (done.subject, done.sensitivity.value) == (ADDRESS, "sensitive")


@pytest.mark.parametrize("session", ["2026-03-01-1234567890", "019ca8a0-3e80-77cc-b9c0-e323d1cad773", "run 4711"])
def test_an_id_is_no_personal_identifier(mem: Memory, session: str) -> None:
    assert (
        committed_record(mem.remember("Ana prefers tabs", tier="archival", session=session, evidence=[session])).session
        == session
    )


def test_revision_preserves_a_name_given_with_consent(owner: Memory) -> None:
    record = committed_record(owner.remember("Ana prefers tabs", tier="archival", subject=ADDRESS, consent=True))
    assert committed_record(owner.revise(record.id, text="Ana prefers spaces", reason="news")).subject == ADDRESS


class TestSurfaces:
    """The first line, and a field."""

    def test_a_command_says_so_on_stderr(
        self,
        owner: Memory,
        path: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("KEEPWARD_HOME", str(tmp_path / "config"))
        monkeypatch.setenv("COLUMNS", "200")
        main(["remember", TEXT, "--db", str(path), "--embedder", "none"])
        said = capsys.readouterr().err
        assert ("redacted: email" in said, "consent" in said) == (True, True)
        main(["remember", f"Ben is reached at {ADDRESS}", "--json", "--db", str(path), "--embedder", "none"])
        assert "email" in [each["code"] for each in json.loads(capsys.readouterr().out)["reasons"]]

    def test_tools_say_it_in_text_and_values(self, mem: Memory) -> None:
        data, said = tools.describe_outcome(mem.remember(TEXT, tier="archival"))
        assert data["redacted"] == ["email"]
        assert "redacted: email" in said.splitlines()[0]

    def test_http_and_its_client_say_it_in_a_field(self, owner: Memory) -> None:
        token = owner.owner_token().read_text().strip()
        app = create_app(owner, options=ServerOptions(writes_per_minute=0))
        with TestClient(app) as server, Client("http://127.0.0.1:8321", token, transport=server) as client:
            answer = client.remember(TEXT, tier="archival")
            assert isinstance(answer, Committed)
            assert answer.redacted == ("email",)


def test_unauthorised_consent_does_not_label_redacted_text(mem):
    assert mem.remember(TEXT, tier="archival", consent=True).redacted == ("email",)


# --- A redactor of one's own finds what no form tells of, and nothing of it is stored


NAME = "Ana Smith"


class Names:
    """Knows one name; without a model it says so."""

    def __init__(self, *, up: bool = True, kind: str = "person") -> None:
        self.up, self.kind = up, kind

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Return where the name stands."""
        if not self.up:
            raise ModelUnavailable("the model is not there")
        return [(each.start(), each.end(), self.kind) for each in re.finditer(NAME, text)]


@pytest.mark.promise("C94")
def test_what_it_finds_is_a_marker_before_anything_is_stored(opened: Callable[..., Memory], tmp_path: Path) -> None:
    address = "ana" + "@example.org"
    with opened("named", redactor=Names()) as mem:
        done = mem.remember(
            f"{NAME} lives by the quay, {address}", tier="archival", speaker=NAME, metadata={"by": NAME}
        )
        record = committed_record(done)
        assert (record.text, record.speaker) == ("[PERSON] lives by the quay, [EMAIL]", "[PERSON]")
        assert set(done.redacted) == {"person", "email"}
    assert all(NAME.encode() not in each.read_bytes() for each in tmp_path.glob("named.db*"))


@pytest.mark.promise("C94")
def test_without_one_the_built_in_detectors_go_by_form_alone(opened: Callable[..., Memory]) -> None:
    with opened("plain") as mem:
        assert (
            committed_record(mem.remember(f"{NAME} lives by the quay", tier="archival")).text
            == f"{NAME} lives by the quay"
        )


def test_a_redactor_that_cannot_be_used_stops_the_write(opened: Callable[..., Memory], tmp_path: Path) -> None:
    with opened("down", redactor=Names(up=False)) as mem:
        with pytest.raises(ModelUnavailable):
            mem.remember(f"{NAME} lives by the quay", tier="archival")
        assert (mem.list_memories(), mem.pending()) == ([], [])


def test_consent_preserves_what_it_finds(opened: Callable[..., Memory]) -> None:
    with opened("kept", redactor=Names(), actor=Actor.agent(also=["consent"])) as mem:
        record = committed_record(mem.remember(f"{NAME} lives by the quay", tier="archival", consent=True))
        assert (record.text, record.sensitivity.value) == (f"{NAME} lives by the quay", "sensitive")


def test_a_revision_is_asked_about_as_well(opened: Callable[..., Memory]) -> None:
    with opened("revised", redactor=Names()) as mem:
        record = committed_record(mem.remember("Somebody lives by the quay", tier="archival"))
        assert (
            committed_record(mem.revise(record.id, text=f"{NAME} lives there", reason=f"{NAME} said so")).text
            == "[PERSON] lives there"
        )


def test_a_kind_that_is_no_name_is_an_error(opened: Callable[..., Memory]) -> None:
    with opened("odd", redactor=Names(kind="A person!")) as mem, pytest.raises(InvalidInput, match="lower-case"):
        mem.remember(f"{NAME} lives by the quay", tier="archival")


def test_redactor_is_asked_about_text_changed_by_another_commit(
    opened: Callable[..., Memory],
) -> None:
    asked: list[str] = []

    class Slow(Names):
        def find(self, text: str) -> list[tuple[int, int, str]]:
            asked.append(text)
            if NAME in text and len([each for each in asked if NAME in each]) == 1:
                other.append(made.id, f"{NAME} comes at seven", reason="meanwhile")
            return super().find(text)

    with opened("raced", redactor=Slow()) as mem, opened("raced") as other:
        made = committed_record(mem.remember("The ferry leaves at six", tier="archival"))
        text = committed_record(mem.append(made.id, f"so says {NAME}", reason="heard")).text
    assert text == "The ferry leaves at six\n[PERSON] comes at seven\nso says [PERSON]"
    assert text.replace("[PERSON]", NAME) in asked


# --- What the gates put in place is compared with what is there, so that every write has an outcome and none an error


#: Built of pieces, so that no file holds an address.
ANA, BEN = "write to ana.lima" + "@example.org", "write to ben.roth" + "@example.org"
MISSION = {"text": "The museum keeps the harbour open", "tier": "core", "key": "mission", "confidence": 0.5}
CRANE = "The crane on the north quay was repaired"


def test_two_texts_that_are_redacted_to_one_are_one_memory(owner: Memory) -> None:
    first = committed_record(owner.remember(ANA, tier="archival"))
    second = owner.remember(BEN, tier="archival")
    assert isinstance(second, Duplicate)
    assert second.record.id == first.id


def test_two_texts_redacted_to_one_become_one_memory(owner: Memory) -> None:
    outcomes = owner.remember_many([{"text": text, "tier": "archival"} for text in (ANA, BEN, CRANE)])
    assert [type(outcome).__name__ for outcome in outcomes] == ["Committed", "Duplicate", "Committed"]


@pytest.mark.parametrize("tier", ["archival", "episodic"])
def test_a_fact_may_say_what_an_event_says(owner: Memory, tier: str) -> None:
    committed_record(owner.remember(CRANE, tier=tier, kind="event"))
    assert committed_record(owner.remember(CRANE, tier=tier, kind="fact")).text == CRANE


def test_what_is_diverted_to_another_tier_twice_is_one_memory(owner: Memory) -> None:
    first = committed_record(owner.remember(**MISSION))
    second = owner.remember(**MISSION)
    assert (first.tier.value, type(second).__name__) == ("archival", "Duplicate")
