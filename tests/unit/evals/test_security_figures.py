"""The table of figures: what misses its goal decides, what is slow does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from evals import security
from evals.security_figure import Figure, none_of
from evals.security_gates import crossing
from evals.target import Target

from keepward.services.reading.visible import VisibleReader


def test_something_that_must_not_happen_and_did_misses_its_goal() -> None:
    assert none_of("leaks", 1, 400, "calls").missed


def test_nothing_measured_is_no_good_figure() -> None:
    assert none_of("leaks", 0, 0, "calls").missed


def test_a_speed_decides_nothing() -> None:
    assert not Figure(what="verify", value="10 events/s", goal="50,000", ok=False, speed=True).missed


def test_each_figure_is_next_to_its_goal() -> None:
    line = security.shown([none_of("leaks", 0, 400, "calls")]).splitlines()[-1]
    assert line.split() == ["leaks", "0", "of", "400", "calls", "0"]


@pytest.mark.parametrize("bad", [True, False])
def test_the_exit_status_says_whether_a_goal_was_missed(monkeypatch: pytest.MonkeyPatch, bad: bool) -> None:
    monkeypatch.setitem(security.CHECKS, "scopes", lambda *_: [none_of("leaks", int(bad), 400, "calls")])
    assert security.main(["--only", "scopes"]) == int(bad)


@pytest.mark.slow
def test_a_handle_that_sees_everything_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VisibleReader, "can_see", lambda *_: True)
    assert crossing(Target(tmp_path), False)[0].missed
