"""What is stored otherwise than it was said is told in the first line, and no field lets a personal identifier by."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from outcomes import kept, refused
from starlette.testclient import TestClient

from keepward import Client, Committed, Memory
from keepward.cli.main import main
from keepward.http import ServerOptions, create_app
from keepward.mcp import tools

ADDRESS = "ana.smith" + "@" + "example.org"
TEXT = f"Ana is reached at {ADDRESS}"


def test_the_outcome_names_what_was_replaced(mem: Memory) -> None:
    done = mem.remember(TEXT, tier="archival")
    assert (done.redacted, mem.remember("Ana prefers tabs", tier="archival").redacted) == (("email",), ())


def test_with_consent_nothing_is_replaced(owner: Memory) -> None:
    done = owner.remember(TEXT, tier="archival", consent=True)
    assert (done.redacted, kept(done).text) == ((), TEXT)


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
    done = kept(owner.remember("Ana prefers tabs", tier="archival", subject=ADDRESS, consent=True))
    assert (done.subject, done.sensitivity.value) == (ADDRESS, "sensitive")


@pytest.mark.parametrize("session", ["2026-03-01-1234567890", "019ca8a0-3e80-77cc-b9c0-e323d1cad773", "run 4711"])
def test_an_id_is_no_personal_identifier(mem: Memory, session: str) -> None:
    assert (
        kept(mem.remember("Ana prefers tabs", tier="archival", session=session, evidence=[session])).session == session
    )


def test_revision_preserves_a_name_given_with_consent(owner: Memory) -> None:
    record = kept(owner.remember("Ana prefers tabs", tier="archival", subject=ADDRESS, consent=True))
    assert kept(owner.revise(record.id, text="Ana prefers spaces", reason="news")).subject == ADDRESS


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
        assert json.loads(capsys.readouterr().out)["redacted"] == ["email"]

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
