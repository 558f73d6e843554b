"""blob, and remember with a file."""

from __future__ import annotations

import stat

import pytest

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture
def picture(tmp_path):
    (tmp_path / "house.png").write_bytes(PNG)
    return "house.png"


def test_put_and_get_give_the_same_bytes(run, picture, tmp_path):
    ref = run("blob", "put", picture, "--json").json["ref"]
    run("blob", "get", ref, "out.png")
    assert (tmp_path / "out.png").read_bytes() == PNG


def test_put_names_the_command_that_refers_to_it(run, picture):
    assert "keepward remember" in run("blob", "put", picture).err


def test_put_reads_stdin(run):
    assert run("blob", "put", "-", "--json", stdin=PNG).json["bytes"] == len(PNG)


def test_what_is_written_out_is_for_its_owner_alone(run, picture, tmp_path):
    run("blob", "get", run("blob", "put", picture, "--json").json["ref"], "out.png")
    assert stat.S_IMODE((tmp_path / "out.png").stat().st_mode) == 0o600


def test_get_replaces_no_file(run, picture, tmp_path):
    ref = run("blob", "put", picture, "--json").json["ref"]
    (tmp_path / "out.png").write_text("mine")
    assert (run("blob", "get", ref, "out.png").code, (tmp_path / "out.png").read_text()) == (2, "mine")


def test_remember_with_a_file_refers_to_it(run, picture):
    saved = run("remember", "the red house by the sea", "--file", picture, "--json").json
    record = run("get", saved["id"], "--json").json
    assert (record["content_type"], run("blob", "show", record["blob"], "--json").json["bytes"]) == ("image", len(PNG))


def test_remember_refers_to_a_blob_that_is_stored(run, picture):
    ref = run("blob", "put", picture, "--json").json["ref"]
    saved = run("remember", "the red house by the sea", "--blob", ref, "--json").json
    assert run("get", saved["id"], "--json").json["blob"] == ref


def test_wrong_media_type_is_an_error_and_nothing_is_remembered(run, picture):
    run("init")
    code = run("remember", "the red house", "--file", picture, "--media-type", "audio/ogg").code
    assert (code, len(run("list", "--json").json["items"])) == (2, 0)


def test_active_content_is_said_to_be_active(run, tmp_path):
    (tmp_path / "drawn.svg").write_text("<svg onload='x()'></svg>")
    assert "active content" in run("blob", "put", "drawn.svg").err


@pytest.mark.parametrize(
    "arguments",
    [
        ("put", "nowhere.png"),
        ("take", "x"),
        ("get", "sha256:x"),
        ("get", "sha256:" + "0" * 64, "-", "--json"),
    ],
)
def test_a_wrong_command_line_is_code_2(run, saved, arguments):
    assert run("blob", *arguments).code == 2


def test_too_large_file_is_refused_by_its_size(run, tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(32 * 2**20 + 1)
    assert "at most 32 MB" in run("blob", "put", "large").err


@pytest.mark.slow
def test_the_drill_takes_the_blobs_of_the_store_along(run, picture):
    run("remember", "the red house by the sea", "--file", picture, "--as", "operator", "--tier", "archival")
    told = run("drill", "--json").json
    assert (told["ok"], told["inconclusive"]) == (True, 0)
