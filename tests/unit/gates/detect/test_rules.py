"""Every rule of every pack compiles and is reachable through its literals."""

import io
import json
from importlib import import_module
from pathlib import Path

import pytest

from keepward.gates.detect import engine, identifiers, injection, privacy, secrets
from keepward.gates.detect.keyblocks import BLOCKS
from keepward.gates.detect.orders import CERTAIN, LIKELY
from keepward.gates.detect.orders_abroad import ABROAD_CERTAIN, ABROAD_LIKELY
from keepward.gates.detect.providers import PREFIXED, SQUEEZED

FAST = (*PREFIXED, *SQUEEZED, *BLOCKS)


@pytest.mark.slow
def test_every_rule_compiles():
    for rule in (*FAST, *CERTAIN, *LIKELY, *ABROAD_CERTAIN, *ABROAD_LIKELY):
        assert engine.compiled(rule.pattern).pattern


def test_literals_are_lower_case():
    assert all(lit == lit.lower() for rule in FAST for lit in rule.literals)


@pytest.mark.parametrize(("name", "modules", "shape"), identifiers.SHAPES)
def test_every_shape_has_a_check(name, modules, shape):
    assert any(privacy._module(module) for module in modules), name


@pytest.mark.parametrize("scan", [secrets.scan, privacy.scan, injection.scan])
def test_an_empty_text_yields_nothing(scan):
    assert scan("") == []


def test_the_program_answers_each_line_and_reports_bad_ones(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[4])
    answer = import_module("evals.detect").answer
    out, err = io.StringIO(), io.StringIO()
    status = answer("secrets", ['{"id": 1, "text": "my pin is 4711"}', "not json"], out, err)
    assert (status, json.loads(out.getvalue())) == (1, {"id": 1, "flag": True, "spans": [[10, 14]]})
