"""A redactor of one's own finds what no form tells of, and nothing of it is stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from outcomes import kept

from keepward import Actor, InvalidInput, Memory, ModelUnavailable

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
        record = kept(done)
        assert (record.text, record.speaker) == ("[PERSON] lives by the quay, [EMAIL]", "[PERSON]")
        assert set(done.redacted) == {"person", "email"}
    assert all(NAME.encode() not in each.read_bytes() for each in tmp_path.glob("named.db*"))


@pytest.mark.promise("C94")
def test_without_one_the_built_in_detectors_go_by_form_alone(opened: Callable[..., Memory]) -> None:
    with opened("plain") as mem:
        assert kept(mem.remember(f"{NAME} lives by the quay", tier="archival")).text == f"{NAME} lives by the quay"


def test_a_redactor_that_cannot_be_used_stops_the_write(opened: Callable[..., Memory], tmp_path: Path) -> None:
    with opened("down", redactor=Names(up=False)) as mem:
        with pytest.raises(ModelUnavailable):
            mem.remember(f"{NAME} lives by the quay", tier="archival")
        assert (mem.list_memories(), mem.pending()) == ([], [])


def test_consent_preserves_what_it_finds(opened: Callable[..., Memory]) -> None:
    with opened("kept", redactor=Names(), actor=Actor.agent(also=["consent"])) as mem:
        record = kept(mem.remember(f"{NAME} lives by the quay", tier="archival", consent=True))
        assert (record.text, record.sensitivity.value) == (f"{NAME} lives by the quay", "sensitive")


def test_a_revision_is_asked_about_as_well(opened: Callable[..., Memory]) -> None:
    with opened("revised", redactor=Names()) as mem:
        record = kept(mem.remember("Somebody lives by the quay", tier="archival"))
        assert (
            kept(mem.revise(record.id, text=f"{NAME} lives there", reason=f"{NAME} said so")).text
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
        made = kept(mem.remember("The ferry leaves at six", tier="archival"))
        text = kept(mem.append(made.id, f"so says {NAME}", reason="heard")).text
    assert text == "The ferry leaves at six\n[PERSON] comes at seven\nso says [PERSON]"
    assert text.replace("[PERSON]", NAME) in asked
